"""Calibration of predictions that do not fit into memory, or that keep coming."""

from caltest.results._other_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
