"""How is a clinical prediction model validated? In the terms of those who do it."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
