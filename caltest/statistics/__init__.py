"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.convex import ConvexECE
from caltest.statistics.cumulative import KS, ClasswiseKS
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore
from caltest.statistics.squared import SquaredL2
from caltest.statistics.sweep import MonotonicSweepECE

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "ClasswiseKS",
    "ConvexECE",
    "MonotonicSweepECE",
    "Omnibus",
    "SquaredL2",
    "Statistic",
    "TemperatureScore",
]
