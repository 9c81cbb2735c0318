"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.cumulative import KS, ClasswiseKS, Kuiper
from caltest.statistics.isotonic import IsotonicError
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore

__all__ = ["ECE", "KS", "MCE", "ClasswiseKS", "IsotonicError", "Kuiper", "Omnibus", "Statistic", "TemperatureScore"]
