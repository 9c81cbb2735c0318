"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.cumulative import KS, ClasswiseKS
from caltest.statistics.kernel import MMCE, SKCE
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore

__all__ = ["ECE", "KS", "MCE", "MMCE", "SKCE", "ClasswiseKS", "Omnibus", "Statistic", "TemperatureScore"]
