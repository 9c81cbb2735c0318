"""caltest tests whether a classifier is calibrated: do events predicted with probability 0.8 happen 80 % of the time?

It reports p-values, how large the miscalibration is and what error a calibrated model would have. A test chooses a lens
(the whole prediction, the confidence, one class), estimates the calibration function in cells (bins) of the
predictions, and compares its distance from the predictions with that of a calibrated model (Vaicenavicius et al. 2019).
"""

from caltest.results._other_names import ROOMS, attach
from caltest.results._picture import Picture

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ = [name for name in __all__ if name not in ROOMS]  # `from caltest import *` leaves `torch` and `page` to others
Picture.find = lambda name: getattr(__getattr__("plotting"), name)
del Picture, ROOMS, attach
