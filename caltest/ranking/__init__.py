"""Which models are better than which? Many models, and how well their ranks are known."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
