"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.cumulative import KS, ClasswiseKS
from caltest.statistics.gce import ACE, GCE, RMSCE, SCE, TACE, ClassConditionalECE
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore
from caltest.statistics.uncertainty import UCE

__all__ = [
    "ACE",
    "ECE",
    "GCE",
    "KS",
    "MCE",
    "RMSCE",
    "SCE",
    "TACE",
    "UCE",
    "ClassConditionalECE",
    "ClasswiseKS",
    "Omnibus",
    "Statistic",
    "TemperatureScore",
]
