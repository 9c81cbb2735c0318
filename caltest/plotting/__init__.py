"""Pictures of results; nothing is computed here."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
