"""Statistics: estimators of miscalibration that serve as test statistics."""

from caltest.statistics._base import Statistic
from caltest.statistics.binned import ECE, MCE
from caltest.statistics.bridge import Bridge
from caltest.statistics.convex import ConvexECE
from caltest.statistics.cox import CoxScore
from caltest.statistics.cumulative import KS, ClasswiseKS, Kuiper
from caltest.statistics.gce import ACE, GCE, RMSCE, SCE, TACE, ClassConditionalECE
from caltest.statistics.hosmer_lemeshow import HosmerLemeshow
from caltest.statistics.isotonic import IsotonicError
from caltest.statistics.kernel import MMCE, SKCE
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.score import TemperatureScore
from caltest.statistics.smooth import KDEError, SmoothECE
from caltest.statistics.spiegelhalter import Spiegelhalter
from caltest.statistics.squared import SquaredL2
from caltest.statistics.sweep import MonotonicSweepECE
from caltest.statistics.tcal import TCal
from caltest.statistics.uncertainty import UCE

__all__ = [
    "ACE",
    "ECE",
    "GCE",
    "KS",
    "MCE",
    "MMCE",
    "RMSCE",
    "SCE",
    "SKCE",
    "TACE",
    "UCE",
    "Bridge",
    "ClassConditionalECE",
    "ClasswiseKS",
    "ConvexECE",
    "CoxScore",
    "HosmerLemeshow",
    "IsotonicError",
    "KDEError",
    "Kuiper",
    "MonotonicSweepECE",
    "Omnibus",
    "SmoothECE",
    "Spiegelhalter",
    "SquaredL2",
    "Statistic",
    "TCal",
    "TemperatureScore",
]
