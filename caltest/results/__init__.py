"""What every result has in common: how it prints, serialises and warns."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
