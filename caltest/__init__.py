"""caltest: may a classifier's predicted probabilities be taken at their word?

Statistical tests of calibration in the framework of Vaicenavicius et al. (2019): look at a model through a lens,
estimate its calibration function by histogram regression over a partition, measure the distance between what was
predicted and what happened, and compare it with what a perfectly calibrated model would have shown.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
