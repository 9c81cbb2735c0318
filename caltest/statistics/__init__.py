"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.cumulative import KS, ClasswiseKS
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore
from caltest.statistics.smooth import KDEError, SmoothECE

__all__ = ["ECE", "KS", "MCE", "ClasswiseKS", "KDEError", "Omnibus", "SmoothECE", "Statistic", "TemperatureScore"]
