"""One number: errors of calibration and test statistics."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
