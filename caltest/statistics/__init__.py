"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.bridge import Bridge
from caltest.statistics.cox import CoxScore
from caltest.statistics.cumulative import KS, ClasswiseKS
from caltest.statistics.hosmer_lemeshow import HosmerLemeshow
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore
from caltest.statistics.spiegelhalter import Spiegelhalter
from caltest.statistics.tcal import TCal, TCalScale

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "Bridge",
    "ClasswiseKS",
    "CoxScore",
    "HosmerLemeshow",
    "Omnibus",
    "Spiegelhalter",
    "Statistic",
    "TCal",
    "TCalScale",
    "TemperatureScore",
]
