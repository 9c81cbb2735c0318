"""caltest: may a classifier's predicted probabilities be taken at their word?

Statistical tests of calibration in the framework of Vaicenavicius et al. (2019): look at a model through a lens,
estimate its calibration function by histogram regression over a partition, measure the distance between what was
predicted and what happened, and compare it with what a perfectly calibrated model would have shown.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caltest import brownian, datasets
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
from caltest.decomposition import ScoreDecomposition, score_decomposition
from caltest.distances import chebyshev, euclidean, squared_euclidean, total_variation
from caltest.gce import GCETable, gce_table
from caltest.hypothesis import calibration_error, calibration_test
from caltest.kernels import euclidean_kernel, gaussian_kernel, total_variation_kernel
from caltest.lenses import Canonical, ClassWise, Confidence, Groups, TopK, TopRank, WithinTop
from caltest.partitions import AgainstRest, Edges, EqualMass, EqualWidth, Partition
from caltest.regression import HistogramRegression, histogram_regression
from caltest.reliability import ReliabilityCurve, reliability_curve
from caltest.report import CalibrationReport, calibration_report
from caltest.resampling import Bootstrap, Consistency
from caltest.scores import (
    accuracy,
    brier_score,
    log_score,
    mean_confidence,
    overconfidence,
    spherical_score,
    underconfidence,
)
from caltest.skce import KernelTestResult, skce_test
from caltest.smooth_reliability import SmoothReliabilityCurve, smooth_reliability_curve
from caltest.statistics import (
    ACE,
    ECE,
    GCE,
    KS,
    MCE,
    MMCE,
    RMSCE,
    SCE,
    SKCE,
    TACE,
    UCE,
    Bridge,
    ClassConditionalECE,
    ClasswiseKS,
    ConvexECE,
    CoxScore,
    HosmerLemeshow,
    IsotonicError,
    KDEError,
    Kuiper,
    MonotonicSweepECE,
    Omnibus,
    SmoothECE,
    Spiegelhalter,
    SquaredL2,
    Statistic,
    TCal,
    TemperatureScore,
)
from caltest.table import CalibrationTable, calibration_table
from caltest.trees import VarianceTree

if TYPE_CHECKING:
    from caltest import simulation
    from caltest._bootstrap_interval import BootstrapInterval, bootstrap_interval
    from caltest.band import CalibrationBand, calibration_band
    from caltest.cell_tests import CellTests
    from caltest.comparison import DifferenceResult, ModelComparison, compare_models, paired_test, unpaired_test
    from caltest.equivalence import EquivalenceResult, equivalence_test
    from caltest.floor import NoiseFloor, noise_floor
    from caltest.intervals import L2Interval, l2_interval
    from caltest.plotting import (
        plot_approximation,
        plot_bias_study,
        plot_calibration_band,
        plot_comparison,
        plot_label_noise,
        plot_metric_agreement,
        plot_power_study,
        plot_reliability,
        plot_size_study,
        plot_smooth_reliability,
        plot_training,
    )
    from caltest.subgroups import SubgroupTests, subgroup_tests
    from caltest.targets import squared_l2_target
    from caltest.tolerance import ToleranceResult, tolerance_pvalue, tolerance_test
    from caltest.training import TrainingTrack, track

_LATER = {
    "simulation": "caltest.simulation",
    "BootstrapInterval": "caltest._bootstrap_interval",
    "CalibrationBand": "caltest.band",
    "CellTests": "caltest.cell_tests",
    "DifferenceResult": "caltest.comparison",
    "EquivalenceResult": "caltest.equivalence",
    "L2Interval": "caltest.intervals",
    "ModelComparison": "caltest.comparison",
    "NoiseFloor": "caltest.floor",
    "SubgroupTests": "caltest.subgroups",
    "ToleranceResult": "caltest.tolerance",
    "TrainingTrack": "caltest.training",
    "bootstrap_interval": "caltest._bootstrap_interval",
    "calibration_band": "caltest.band",
    "compare_models": "caltest.comparison",
    "equivalence_test": "caltest.equivalence",
    "l2_interval": "caltest.intervals",
    "noise_floor": "caltest.floor",
    "paired_test": "caltest.comparison",
    "plot_approximation": "caltest.plotting",
    "plot_bias_study": "caltest.plotting",
    "plot_calibration_band": "caltest.plotting",
    "plot_comparison": "caltest.plotting",
    "plot_label_noise": "caltest.plotting",
    "plot_metric_agreement": "caltest.plotting",
    "plot_power_study": "caltest.plotting",
    "plot_reliability": "caltest.plotting",
    "plot_size_study": "caltest.plotting",
    "plot_smooth_reliability": "caltest.plotting",
    "plot_training": "caltest.plotting",
    "squared_l2_target": "caltest.targets",
    "subgroup_tests": "caltest.subgroups",
    "tolerance_pvalue": "caltest.tolerance",
    "tolerance_test": "caltest.tolerance",
    "track": "caltest.training",
    "unpaired_test": "caltest.comparison",
}
"""Names that are imported when they are first used, with their modules: no test waits for them."""

__version__ = "0.1.0"

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
    "AgainstRest",
    "Bootstrap",
    "BootstrapInterval",
    "Bridge",
    "BridgeResult",
    "CalibrationBand",
    "CalibrationReport",
    "CalibrationTable",
    "CalibrationTestResult",
    "CalibrationWarning",
    "Canonical",
    "CellTests",
    "ClassConditionalECE",
    "ClassWise",
    "ClasswiseKS",
    "Confidence",
    "Consistency",
    "ConvexECE",
    "CoxResult",
    "CoxScore",
    "DifferenceResult",
    "Edges",
    "EqualMass",
    "EqualWidth",
    "EquivalenceResult",
    "GCETable",
    "Groups",
    "HistogramRegression",
    "HosmerLemeshow",
    "HosmerLemeshowResult",
    "IsotonicError",
    "KDEError",
    "KernelTestResult",
    "Kuiper",
    "L2Interval",
    "ModelComparison",
    "MonotonicSweepECE",
    "NoiseFloor",
    "Omnibus",
    "Partition",
    "ReliabilityCurve",
    "ScoreDecomposition",
    "SmoothECE",
    "SmoothReliabilityCurve",
    "Spiegelhalter",
    "SpiegelhalterResult",
    "SquaredL2",
    "Statistic",
    "SubgroupTests",
    "TCal",
    "TCalResult",
    "TemperatureScore",
    "ToleranceResult",
    "TopK",
    "TopRank",
    "TrainingTrack",
    "VarianceTree",
    "WithinTop",
    "accuracy",
    "bootstrap_interval",
    "bridge_test",
    "brier_score",
    "brownian",
    "calibration_band",
    "calibration_error",
    "calibration_report",
    "calibration_table",
    "calibration_test",
    "chebyshev",
    "compare_models",
    "cox_test",
    "datasets",
    "equivalence_test",
    "euclidean",
    "euclidean_kernel",
    "gaussian_kernel",
    "gce_table",
    "histogram_regression",
    "hosmer_lemeshow_test",
    "l2_interval",
    "log_score",
    "mean_confidence",
    "noise_floor",
    "overconfidence",
    "paired_test",
    "plot_approximation",
    "plot_bias_study",
    "plot_calibration_band",
    "plot_comparison",
    "plot_label_noise",
    "plot_metric_agreement",
    "plot_power_study",
    "plot_reliability",
    "plot_size_study",
    "plot_smooth_reliability",
    "plot_training",
    "reliability_curve",
    "score_decomposition",
    "simulation",
    "skce_test",
    "smooth_reliability_curve",
    "spherical_score",
    "spiegelhalter_test",
    "squared_euclidean",
    "squared_l2_target",
    "subgroup_tests",
    "tcal_test",
    "tolerance_pvalue",
    "tolerance_test",
    "total_variation",
    "total_variation_kernel",
    "track",
    "underconfidence",
    "unpaired_test",
]


def __getattr__(name: str) -> Any:
    """Import a public name that is not there yet (PEP 562)."""
    if name not in _LATER:
        msg = f"module 'caltest' has no attribute {name!r}"
        raise AttributeError(msg)
    module = import_module(_LATER[name])
    found = globals()[name] = module if name == "simulation" else getattr(module, name)
    return found


def __dir__() -> list[str]:
    """Return all names, those too that were not used yet."""
    return sorted({*globals(), *__all__})
