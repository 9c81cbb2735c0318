"""caltest: may a classifier's predicted probabilities be taken at their word?

Statistical tests of calibration in the framework of Vaicenavicius et al. (2019): look at a model through a lens,
estimate its calibration function by histogram regression over a partition, measure the distance between what was
predicted and what happened, and compare it with what a perfectly calibrated model would have shown.
"""

from caltest import datasets
from caltest._result import CalibrationTestResult
from caltest._words import CalibrationWarning
from caltest.distances import chebyshev, euclidean, squared_euclidean, total_variation
from caltest.hypothesis import calibration_error, calibration_test
from caltest.kernels import euclidean_kernel, gaussian_kernel, total_variation_kernel
from caltest.lenses import Canonical, ClassWise, Confidence, Groups, TopK, TopRank, WithinTop
from caltest.partitions import Edges, EqualMass, EqualWidth, Partition
from caltest.plotting import plot_reliability
from caltest.regression import HistogramRegression, histogram_regression
from caltest.reliability import ReliabilityCurve, reliability_curve
from caltest.resampling import Consistency
from caltest.skce import KernelTestResult, skce_test
from caltest.statistics import ECE, KS, MCE, MMCE, SKCE, ClasswiseKS, Omnibus, Statistic, TemperatureScore
from caltest.table import CalibrationTable, calibration_table
from caltest.trees import VarianceTree

__version__ = "0.1.0"

__all__ = [
    "ECE",
    "KS",
    "MCE",
    "MMCE",
    "SKCE",
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
    "KernelTestResult",
    "Omnibus",
    "Partition",
    "ReliabilityCurve",
    "Statistic",
    "TemperatureScore",
    "TopK",
    "TopRank",
    "VarianceTree",
    "WithinTop",
    "calibration_error",
    "calibration_table",
    "calibration_test",
    "chebyshev",
    "datasets",
    "euclidean",
    "euclidean_kernel",
    "gaussian_kernel",
    "histogram_regression",
    "plot_reliability",
    "reliability_curve",
    "skce_test",
    "squared_euclidean",
    "total_variation",
    "total_variation_kernel",
]
