"""Is the model calibrated? Tests of calibration, of equivalence and of tolerance."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
