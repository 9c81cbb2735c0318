"""caltest: may a classifier's predicted probabilities be taken at their word?

Statistical tests of calibration in the framework of Vaicenavicius et al. (2019): look at a model through a lens,
estimate its calibration function by histogram regression over a partition, measure the distance between what was
predicted and what happened, and compare it with what a perfectly calibrated model would have shown.
"""

from caltest import brownian, datasets
from caltest._result import CalibrationTestResult
from caltest._words import CalibrationWarning
from caltest.decomposition import ScoreDecomposition, score_decomposition
from caltest.distances import chebyshev, euclidean, squared_euclidean, total_variation
from caltest.hypothesis import calibration_error, calibration_test
from caltest.lenses import Canonical, ClassWise, Confidence, Groups, TopK, TopRank, WithinTop
from caltest.partitions import Edges, EqualMass, EqualWidth, Partition
from caltest.plotting import plot_reliability
from caltest.regression import HistogramRegression, histogram_regression
from caltest.reliability import ReliabilityCurve, reliability_curve
from caltest.resampling import Consistency
from caltest.statistics import ECE, KS, MCE, ClasswiseKS, IsotonicError, Kuiper, Omnibus, Statistic, TemperatureScore
from caltest.table import CalibrationTable, calibration_table
from caltest.trees import VarianceTree

__version__ = "0.1.0"

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "CalibrationTable",
    "CalibrationTestResult",
    "CalibrationWarning",
    "Canonical",
    "ClassWise",
    "ClasswiseKS",
    "Confidence",
    "Consistency",
    "Edges",
    "EqualMass",
    "EqualWidth",
    "Groups",
    "HistogramRegression",
    "IsotonicError",
    "Kuiper",
    "Omnibus",
    "Partition",
    "ReliabilityCurve",
    "ScoreDecomposition",
    "Statistic",
    "TemperatureScore",
    "TopK",
    "TopRank",
    "VarianceTree",
    "WithinTop",
    "brownian",
    "calibration_error",
    "calibration_table",
    "calibration_test",
    "chebyshev",
    "datasets",
    "euclidean",
    "histogram_regression",
    "plot_reliability",
    "reliability_curve",
    "score_decomposition",
    "squared_euclidean",
    "total_variation",
]
