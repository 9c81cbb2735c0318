"""How good are the methods? Models with known truth, and studies of estimates and tests on them."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
