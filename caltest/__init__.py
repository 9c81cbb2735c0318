"""caltest: may a classifier's predicted probabilities be taken at their word?

Statistical tests of calibration in the framework of Vaicenavicius et al. (2019): look at a model through a lens,
estimate its calibration function by histogram regression over a partition, measure the distance between what was
predicted and what happened, and compare it with what a perfectly calibrated model would have shown.
"""

from caltest import datasets
from caltest._result import CalibrationTestResult
from caltest._words import CalibrationWarning
from caltest.classical import (
    BridgeResult,
    CoxResult,
    HosmerLemeshowResult,
    SpiegelhalterResult,
    TCalResult,
    bridge_test,
    cox_test,
    hosmer_lemeshow_test,
    spiegelhalter_test,
    tcal_test,
)
from caltest.distances import chebyshev, euclidean, squared_euclidean, total_variation
from caltest.hypothesis import calibration_error, calibration_test
from caltest.lenses import Canonical, ClassWise, Confidence, Groups, TopK, TopRank, WithinTop
from caltest.partitions import AgainstRest, Edges, EqualMass, EqualWidth, Partition
from caltest.plotting import plot_reliability
from caltest.regression import HistogramRegression, histogram_regression
from caltest.reliability import ReliabilityCurve, reliability_curve
from caltest.resampling import Consistency
from caltest.scores import (
    accuracy,
    brier_score,
    log_score,
    mean_confidence,
    overconfidence,
    spherical_score,
    underconfidence,
)
from caltest.statistics import (
    ECE,
    KS,
    MCE,
    Bridge,
    ClasswiseKS,
    CoxScore,
    HosmerLemeshow,
    Omnibus,
    Spiegelhalter,
    Statistic,
    TCal,
    TCalScale,
    TemperatureScore,
)
from caltest.table import CalibrationTable, calibration_table
from caltest.trees import VarianceTree

__version__ = "0.1.0"

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "AgainstRest",
    "Bridge",
    "BridgeResult",
    "CalibrationTable",
    "CalibrationTestResult",
    "CalibrationWarning",
    "Canonical",
    "ClassWise",
    "ClasswiseKS",
    "Confidence",
    "Consistency",
    "CoxResult",
    "CoxScore",
    "Edges",
    "EqualMass",
    "EqualWidth",
    "Groups",
    "HistogramRegression",
    "HosmerLemeshow",
    "HosmerLemeshowResult",
    "Omnibus",
    "Partition",
    "ReliabilityCurve",
    "Spiegelhalter",
    "SpiegelhalterResult",
    "Statistic",
    "TCal",
    "TCalResult",
    "TCalScale",
    "TemperatureScore",
    "TopK",
    "TopRank",
    "VarianceTree",
    "WithinTop",
    "accuracy",
    "bridge_test",
    "brier_score",
    "calibration_error",
    "calibration_table",
    "calibration_test",
    "chebyshev",
    "cox_test",
    "datasets",
    "euclidean",
    "histogram_regression",
    "hosmer_lemeshow_test",
    "log_score",
    "mean_confidence",
    "overconfidence",
    "plot_reliability",
    "reliability_curve",
    "spherical_score",
    "spiegelhalter_test",
    "squared_euclidean",
    "tcal_test",
    "total_variation",
    "underconfidence",
]
