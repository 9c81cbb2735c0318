"""Repair of miscalibrated predictions: recalibration methods as scikit-learn classifiers, saved as JSON."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
