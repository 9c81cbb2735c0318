"""Null distributions: simulated labels and resampled observations, exact and limit distributions, p-values."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
