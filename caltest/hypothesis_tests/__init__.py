"""Is the model calibrated? Tests of calibration, of equivalence and of tolerance."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
