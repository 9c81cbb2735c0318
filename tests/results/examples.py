"""One small example of every kind of result."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

import caltest as ct
from caltest import (
    clinical,
    comparison,
    estimation,
    hypothesis_tests,
    ranking,
    recalibration,
    results,
    simulation,
    streaming,
)
from caltest.results import Result
from tests.reference.examples import draw_labels

N_RESAMPLES = 699
"""So many draws that no table of tests has too few."""


@cache
def problem(n: int = 300, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels and calibrated predictions."""
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.full(n_classes, 0.7), n)
    return draw_labels(y_prob, rng), y_prob


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    """Events and their probabilities."""
    y_true, y_prob = problem(n_classes=2)
    return y_true, y_prob[:, 1]


def three_models() -> dict[str, np.ndarray]:
    """Predictions of three models, one of them calibrated."""
    y_prob = problem()[1]
    sharp, vague = (y_prob**power / (y_prob**power).sum(axis=1, keepdims=True) for power in (2.0, 0.5))
    return {"calibrated": y_prob, "sharp": sharp, "vague": vague}


def epochs(n: int = 3) -> list[tuple[np.ndarray, np.ndarray]]:
    """Predictions after each epoch of a training."""
    y_true, models = problem()[0], three_models()
    return [(y_true, prob) for prob in list(models.values())[:n]]


def mean_interval(y_true: Any, y_prob: Any) -> tuple[float, float]:
    """An interval for calibration in the large."""
    deviation = y_true - y_prob[:, 1]
    reach = 1.96 * deviation.std() / np.sqrt(len(y_true))
    return deviation.mean() - reach, deviation.mean() + reach


def mean_target(y_prob: Any, class_prob: Any) -> float:
    """What that interval is to cover."""
    return float((class_prob - y_prob)[:, 1].mean())


def base_rates(labels: np.ndarray) -> np.ndarray:
    """A model that predicts the frequencies of its training labels."""
    return np.tile(np.bincount(labels, minlength=2) / len(labels), (60, 1))


def family(slope: float) -> simulation.GaussianMixture1D:
    """Models of a power study."""
    return simulation.GaussianMixture1D(0, slope)


MODEL = simulation.GaussianMixture1D(0, -2)
FIXED = {"n_resamples": N_RESAMPLES, "rng": 0}
PARTITION = ct.EqualWidth(4)
SUBGROUP = np.array(["east", "west"])
FOLD = np.arange(300) % 3

EXAMPLES: dict[type[Result], Callable[[], Result]] = {
    results.TestResult: lambda: ct.calibration_test(*problem(), **FIXED),
    results.ComponentResult: lambda: ct.calibration_test(*problem(), **FIXED).components[0],
    results.Verdict: lambda: ct.calibration_test(*problem(), **FIXED).verdict,
    results.Finding: lambda: ct.calibration_test(problem()[0], three_models()["sharp"], **FIXED).findings[0],
    results.ModelsVerdict: lambda: example(comparison.ModelComparison).verdict,
    results.ModelDifference: lambda: example(comparison.ComparedPair).finding,
    results.MarginVerdict: lambda: example(hypothesis_tests.EquivalenceResult).verdict,
    results.MarginFinding: lambda: example(hypothesis_tests.EquivalenceResult).verdict.question,
    results.Number: lambda: ct.calibration_test(*problem(), **FIXED).verdict.numbers[0],
    hypothesis_tests.CalibrationTable: lambda: ct.calibration_table(*problem(), **FIXED),
    hypothesis_tests.CalibrationReport: lambda: ct.calibration_report(*problem(), **FIXED),
    ranking.Leaderboard: lambda: ct.leaderboard(
        problem()[0], three_models(), by=("log_score", "brier", "l2", "KS", "ECE"), n_resamples=199, rng=0
    ),
    ranking.QuestionsNeeded: lambda: example(ranking.Leaderboard).sample_size(("sharp", "vague")),
    ranking.Ranking: lambda: example(ranking.Leaderboard)["brier"],
    ranking.RankedModel: lambda: example(ranking.Ranking).models[0],
    ranking.Unranked: lambda: example(ranking.Leaderboard)["KS"],
    ranking.UnrankedModel: lambda: example(ranking.Unranked).models[0],
    clinical.ClinicalCalibration: lambda: clinical.clinical_calibration(*two_classes(), thresholds=[0.3], **FIXED),
    clinical.ClinicalCurve: lambda: example(clinical.ClinicalCalibration).curve,
    estimation.Measure: lambda: example(clinical.ClinicalCalibration)["ICI"],
    clinical.SiteCalibration: lambda: clinical.calibration_by_site(*two_classes(), site=np.arange(300) % 4, **FIXED),
    clinical.Site: lambda: example(clinical.SiteCalibration).sites[0],
    clinical.RandomEffects: lambda: example(clinical.SiteCalibration).summaries[0],
    clinical.UpdateTest: lambda: clinical.update_test(*two_classes(), **FIXED),
    clinical.ClinicalSampleSize: lambda: clinical.clinical_sample_size(two_classes()[1]),
    clinical.PrecisionCriterion: lambda: example(clinical.ClinicalSampleSize).criteria[0],
    clinical.OptimismCorrection: lambda: clinical.optimism_corrected(
        GaussianNB(), two_classes()[1][:, None], two_classes()[0], n_resamples=3, smoother="lowess", rng=0
    ),
    clinical.CorrectedMeasure: lambda: example(clinical.OptimismCorrection).measures[0],
    clinical.NetBenefit: lambda: example(clinical.ClinicalCalibration).net_benefits[0],
    hypothesis_tests.GCETable: lambda: ct.gce_table(*problem(), **FIXED),
    hypothesis_tests.SubgroupTests: lambda: ct.subgroup_tests(
        *problem(), subgroup=SUBGROUP[np.arange(300) % 2], **FIXED
    ),
    hypothesis_tests.SegmentTests: lambda: ct.subgroup_tests(
        *problem(), subgroup=SUBGROUP[np.arange(300) % 2], depth=2, **FIXED
    ),
    hypothesis_tests.MultilabelTable: lambda: ct.multilabel_table(
        problem()[0][:, None] == [0, 1], problem()[1][:, :2], **FIXED
    ),
    hypothesis_tests.CrossValidatedTests: lambda: ct.cross_val_calibration(
        GaussianNB(), problem()[1], problem()[0], cv=3, **FIXED
    ),
    hypothesis_tests.EquivalenceResult: lambda: ct.equivalence_test(*problem(), 0.1),
    hypothesis_tests.ToleranceResult: lambda: ct.tolerance_test(*problem(), 0.1),
    hypothesis_tests.ClassicalTestResult: lambda: ct.cox_test(*two_classes(), rng=0),
    estimation.CalibrationInTheLarge: lambda: estimation.calibration_in_the_large(*two_classes()),
    estimation.CalibrationSlope: lambda: estimation.calibration_slope(*two_classes()),
    estimation.L2Interval: lambda: ct.l2_interval(*problem()),
    estimation.BootstrapInterval: lambda: ct.bootstrap_interval(*problem(), n_resamples=99, rng=0),
    estimation.CutoffInterval: lambda: estimation.cutoff_interval(*two_classes(), n_resamples=99, rng=0),
    estimation.NoiseFloor: lambda: ct.noise_floor(problem()[1], n_resamples=99, rng=0),
    hypothesis_tests.DetectableError: lambda: ct.detectable_error(problem()[1], n_resamples=99, rng=0),
    hypothesis_tests.SampleSizePlan: lambda: hypothesis_tests.plan_sample_size(problem()[1], temperature=3, rng=0),
    hypothesis_tests.SmallestError: lambda: ct.detectable_error(problem()[1], n_resamples=99, rng=0).errors[0],
    estimation.HistogramRegression: lambda: ct.histogram_regression(*problem()),
    estimation.ReliabilityCurve: lambda: ct.reliability_curve(*two_classes()),
    estimation.UncertaintyDiagram: lambda: estimation.uncertainty_diagram(*problem()),
    estimation.CellTests: lambda: ct.reliability_curve(*two_classes()).cell_tests(),
    estimation.SimplexDiagram: lambda: ct.simplex_diagram(*problem(), rng=0),
    estimation.SmoothReliabilityCurve: lambda: ct.smooth_reliability_curve(*two_classes(), n_resamples=50, rng=0),
    estimation.CalibrationBand: lambda: ct.calibration_band(*two_classes(), n_resamples=19, rng=0),
    estimation.CumulativeGraphs: lambda: ct.cumulative_graphs(problem()[0], three_models(), n_resamples=99, rng=0),
    estimation.CumulativeGraph: lambda: example(estimation.CumulativeGraphs).models[0],
    estimation.PredictionDistribution: lambda: ct.prediction_distribution(problem()[1]),
    estimation.RejectionCurve: lambda: ct.rejection_curve(problem()[0], three_models(), n_points=20),
    estimation.TemperatureCurve: lambda: ct.temperature_curve(
        problem()[0], three_models(), temperatures=[0.5, 1, 2], n_resamples=19, rng=0
    ),
    estimation.CellsCurve: lambda: ct.cells_curve(problem()[0], three_models(), n_cells=[5, 9], n_resamples=19, rng=0),
    estimation.ShiftCurve: lambda: ct.shift_curve(problem()[1], problem(seed=1)[1], n_resamples=19, rng=0),
    estimation.IsotonicCurve: lambda: ct.isotonic_curve(*two_classes(), n_resamples=19, rng=0),
    estimation.ScoreDecomposition: lambda: ct.score_decomposition(*problem()),
    recalibration.CrossFittedDecomposition: lambda: recalibration.cross_fitted_decomposition(*problem(), rng=0),
    recalibration.RecalibrationStudy: lambda: ct.recalibration_study(
        problem()[0],
        {"sharp": three_models()["sharp"]},
        [recalibration.TemperatureScaling(), recalibration.PlattScaling()],
        folds=2,
        **FIXED,
    ),
    recalibration.RepairedModel: lambda: next(iter(example(recalibration.RecalibrationStudy))),
    results.BeforeAfter: lambda: example(recalibration.RecalibrationStudy).before_after("TemperatureScaling()"),
    recalibration.RepairedPair: lambda: example(recalibration.RecalibrationStudy).pairs[0],
    comparison.ModelComparison: lambda: ct.compare_models(problem()[0], three_models(), n_resamples=99, rng=0),
    comparison.ComparedModel: lambda: example(comparison.ModelComparison).models[0],
    comparison.ComparedPair: lambda: example(comparison.ModelComparison).pairs[0],
    hypothesis_tests.ResidualCorrelation: lambda: hypothesis_tests.residual_correlation(
        *problem(), n_resamples=99, rng=0
    ),
    hypothesis_tests.GivitiBelt: lambda: hypothesis_tests.giviti_belt(*two_classes()),
    hypothesis_tests.SafeTestResult: lambda: hypothesis_tests.safe_hosmer_lemeshow_test(*two_classes(), rng=0),
    hypothesis_tests.SumOfSquaresTest: lambda: hypothesis_tests.sum_of_squares_test(
        np.repeat([0, 1, 0, 1], [30, 10, 15, 25]),
        np.repeat([0.25, 0.625], 40),
        np.repeat([0.0, 1.0], 40),
        n_resamples=19,
        rng=0,
    ),
    hypothesis_tests.RevisionTest: lambda: hypothesis_tests.revision_test(
        np.arange(40) // 2 % 3 == 0,
        np.tile([0.3, 0.4], 20),
        time=np.arange(40) // 2 + np.tile([0, 1], 20),
        lead=np.tile([2, 1], 20),
    ),
    comparison.DifferenceResult: lambda: ct.paired_test(problem()[0], *list(three_models().values())[:2]),
    comparison.TrainingTrack: lambda: ct.training_track(None, epochs(), n_resamples=99, rng=0),
    simulation.MiscalibrationEstimate: lambda: MODEL.estimate_miscalibration(n_samples=2000, rng=0),
    streaming.MonitorResult: lambda: ct.CalibrationMonitor().update(*problem()).result(),
    streaming.NoticedError: lambda: ct.CalibrationMonitor().update(*problem()).result().verdict.detectable,
    simulation.ClassifierTruth: lambda: simulation.TrainedClassifier(
        simulation.RandomMixture(2, 2, seed=0), "naive Bayes", n_train=100
    ).truth(n_samples=5000, rng=0),
    simulation.RejectionStudy: lambda: simulation.size_study(MODEL, ct.KS(), 30, 20, n_resamples=19, rng=0),
    simulation.PowerStudy: lambda: simulation.power_study(family, [-2, -4], ct.KS(), 30, 10, n_resamples=19, rng=0),
    simulation.BiasStudy: lambda: simulation.bias_study(MODEL, [ct.ECE(PARTITION)], 30, 20, rng=0),
    simulation.CoverageStudy: lambda: simulation.coverage_study(
        MODEL, {"mean": (mean_interval, mean_target)}, 30, 20, rng=0
    ),
    simulation.SampleSize: lambda: simulation.sample_size(
        family(-4), ct.KS(), power=0.5, n_range=(100, 1000), n_replicates=24, n_resamples=19, rng=0
    ),
    simulation.MetricAgreement: lambda: simulation.metric_agreement(
        problem()[0], three_models(), n_cells=[5, 10], n_resamples=19, rng=0
    ),
    simulation.ApproximationStudy: lambda: simulation.approximation_study(
        MODEL, {"ECE": ct.ECE(PARTITION)}, [30, 60], 10, n_holdout=1000, rng=0
    ),
    simulation.LabelNoiseStudy: lambda: simulation.label_noise_study(
        base_rates, np.zeros(60, int), np.zeros(60, int), classes=[0, 1], shares=[0, 0.5], n_resamples=19, rng=0
    ),
    simulation.BestTemperatures: lambda: simulation.best_temperatures(
        *problem(), metrics=[ct.statistics.GCE(), ct.statistics.GCE("equal-mass")], n_grid=9
    ),
}
"""Every public kind of result."""


@cache
def example(kind: type[Result]) -> Any:
    """Return the example of a kind of result."""
    return EXAMPLES[kind]()


@cache
def described(kind: type[Result]) -> Any:
    """Return the description of that example."""
    return example(kind)._describe()


@cache
def content(kind: type[Result]) -> Any:
    """Return that example as a dict."""
    return example(kind).to_dict()
