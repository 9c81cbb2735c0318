"""Null distributions: simulated labels and resampled observations, exact and limit distributions, p-values."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
