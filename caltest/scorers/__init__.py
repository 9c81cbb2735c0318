"""Scorers for scikit-learn: calibration errors with a minus sign, for `cross_validate`, `GridSearchCV` and the like."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
