"""What must not change a result: equal weights, groups of one, the order of rows, rows of weight 0, halves of rows.

Every public function, and every `fit`, with `sample_weight` or `groups` needs an example here.
"""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import caltest as ct
from caltest import estimation, recalibration
from caltest.results import CalibrationWarning
from caltest.results._plain import to_plain
from tests.house.test_docstrings import PUBLIC
from tests.reference.examples import draw_labels

WEIGHTS, GROUPS = {"sample_weight"}, {"groups", "groups_a", "groups_b"}

NOT_ABOUT_OBSERVATIONS = {
    "caltest.ClassGroups": "its groups are of classes",
    "caltest.predictions.PredictionFile": "columns of a file",
    "caltest.predictions.read_predictions": "names of columns",
    "caltest.recalibration.Recalibrator.fit": "the base class of the methods",
}

N = 120


@dataclass(frozen=True, eq=False)
class Data:
    """Observations with two models, features, and a part that no group leaves; arrays by row."""

    y: np.ndarray
    p: np.ndarray
    q: np.ndarray
    x: np.ndarray
    part: np.ndarray
    weight: np.ndarray | None = None
    group: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Data":
        return Data(**{name: None if value is None else value[rows] for name, value in vars(self).items()})

    @property
    def models(self) -> dict[str, np.ndarray]:
        return {"a": self.p, "b": self.q}

    @property
    def three(self) -> np.ndarray:
        """Three classes, of which the second and the third never happen together."""
        return np.column_stack([1 - self.p, self.p * 0.25, self.p * 0.75])

    @property
    def weights(self) -> dict[str, Any]:
        return {} if self.weight is None else {"sample_weight": self.weight}

    @property
    def design(self) -> dict[str, Any]:
        return self.weights | ({} if self.group is None else {"groups": self.group})

    @property
    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Folds that neither the order of rows nor groups choose."""
        return [(np.flatnonzero(self.part != k), np.flatnonzero(self.part == k)) for k in range(3)]


@cache
def data() -> Data:
    """Two classes without ties, so that simulated labels do not depend on the order of rows."""
    rng = np.random.default_rng(2)
    p = rng.beta(1.5, 1.5, N)
    sharp = p**1.8 / (p**1.8 + (1 - p) ** 1.8)
    y = draw_labels(np.column_stack([1 - p, p]), rng)
    return Data(y, p, sharp, rng.normal(size=(N, 2)) + p[:, None], twenty() % 3)


def twenty() -> np.ndarray:
    return np.random.default_rng(4).permutation(np.arange(N) % 20)


def unequal() -> np.ndarray:
    return np.random.default_rng(3).exponential(size=N) + 0.1


# Examples.

FIXED = {"n_resamples": 99, "rng": 0}
CELLS = ct.EqualWidth(4)
ECE = ct.ECE(CELLS)


def call(function: Callable[..., Any], **options: Any) -> Callable[[Data], Any]:
    return lambda d: function(d.y, d.p, **options, **d.design)


def call_of_three(function: Callable[..., Any], **options: Any) -> Callable[[Data], Any]:
    return lambda d: function(d.y, d.three, **options, **d.design)


def compare_two_samples(d: Data) -> Any:
    one, other = (d.take(np.flatnonzero((d.part == 0) == which)) for which in (True, False))
    groups = {} if d.group is None else {"groups_a": one.group, "groups_b": other.group}
    return ct.unpaired_test(one.y, one.p, other.y, other.q, partition=CELLS, **groups, **FIXED)


def write_page(d: Data) -> str:
    """The page but for what was passed: the fingerprint of the data and the names of the arguments."""
    with TemporaryDirectory() as folder:
        text = ct.page.write_page(d.y, d.p, Path(folder) / "page.html", **d.design, **FIXED).read_text()
    return re.sub(
        r"<dt>(design of the observations|[^<]*fingerprint[^<]*|data)</dt>\s*<dd>.*?</dd>\s*", "", text, flags=re.S
    )


def score(d: Data) -> float:
    """Of a classifier that was fitted to all observations, with equal weights."""
    return ct.scorers.NegativeError(ECE)(GaussianNB().fit(data().x, data().y), d.x, d.y, **d.weights)


def fit(kind: type) -> Callable[[Data], Any]:
    return lambda d: kind().fit(d.p, d.y, **d.weights).predict_proba(data().p)


def fit_classifier(d: Data) -> Any:
    model = recalibration.RecalibratedClassifier(GaussianNB(), recalibration.TemperatureScaling(), cv=d.splits)
    return model.fit(d.x, d.y, **d.weights).predict_proba(data().x)


EXAMPLES: dict[str, Callable[[Data], Any]] = {
    "caltest.bootstrap_interval": call(ct.bootstrap_interval, statistic=ECE, **FIXED),
    "caltest.calibration_error": call(ct.calibration_error, statistic=ECE),
    "caltest.estimation.cutoff_interval": call(ct.estimation.cutoff_interval, **FIXED),
    "caltest.calibration_report": call(ct.calibration_report, n_kernel_resamples=19, **FIXED),
    "caltest.calibration_table": call(ct.calibration_table, statistic=ct.Omnibus(), **FIXED),
    "caltest.calibration_table of three classes": call_of_three(ct.calibration_table, **FIXED),
    "caltest.calibration_test": call(ct.calibration_test, statistic=ct.Omnibus(), **FIXED),
    "caltest.calibration_test of three classes": call_of_three(ct.calibration_test, statistic=ECE, **FIXED),
    "caltest.calibration_test with an exact distribution": call(ct.calibration_test, statistic=ECE, **FIXED),
    "caltest.cells_curve": call(ct.cells_curve, n_cells=[3, 5], **FIXED),
    "caltest.clinical_calibration": call(ct.clinical.clinical_calibration, thresholds=[0.4], **FIXED),
    "caltest.clinical.calibration_by_site": lambda d: ct.clinical.calibration_by_site(
        d.y, d.p, site=d.part, **d.design, **FIXED
    ),
    "caltest.clinical.update_test": call(ct.clinical.update_test, **FIXED),
    "caltest.leaderboard": lambda d: ct.leaderboard(d.y, d.models, **d.design, **FIXED),
    "caltest.compare_models": lambda d: ct.compare_models(d.y, d.models, partition=CELLS, **d.design, **FIXED),
    "caltest.calibration_test with folds": lambda d: ct.calibration_test(
        d.y, d.p, statistic=ECE, folds=d.part, **d.design, **FIXED
    ),
    "caltest.compare_models with folds": lambda d: ct.compare_models(
        d.y, d.models, partition=CELLS, folds=d.part, **d.design, **FIXED
    ),
    "caltest.paired_test with folds": lambda d: ct.paired_test(
        d.y, d.p, d.q, partition=CELLS, folds=d.part, **d.design, **FIXED
    ),
    "caltest.hypothesis_tests.by_fold": lambda d: ct.hypothesis_tests.by_fold(
        ct.calibration_test, d.y, d.p, d.part, **d.design, **FIXED
    ),
    "caltest.cross_val_calibration": lambda d: ct.cross_val_calibration(
        GaussianNB(), d.x, d.y, cv=d.splits, statistic=ECE, **d.design, **FIXED
    ),
    "caltest.detectable_error": lambda d: ct.detectable_error(d.p, **d.design, **FIXED),
    "caltest.equivalence_test": call(ct.equivalence_test, margin=0.1, partition=CELLS),
    "caltest.gce_table": call(ct.gce_table, **FIXED),
    "caltest.l2_interval": call(ct.l2_interval, partition=CELLS),
    "caltest.l2_interval of three classes": call_of_three(ct.l2_interval, partition=CELLS),
    "caltest.page.write_page": write_page,
    "caltest.simulation.metric_agreement": lambda d: ct.simulation.metric_agreement(
        d.y, d.models | {"third": np.sqrt(d.p)}, metrics=["ECE(EqualWidth(5))"], n_cells=[4, 5], **d.design, **FIXED
    ),
    "caltest.multilabel_table": lambda d: ct.multilabel_table(
        d.y[:, None], d.p[:, None], statistic=ECE, **d.design, **FIXED
    ),
    "caltest.paired_test": lambda d: ct.paired_test(d.y, d.p, d.q, partition=CELLS, **d.design, **FIXED),
    "caltest.recalibration.RecalibratedClassifier.fit": fit_classifier,
    "caltest.recalibration.cross_fitted_decomposition": lambda d: recalibration.cross_fitted_decomposition(
        d.y, d.p, folds=d.part, **d.design
    ),
    "caltest.recalibration_study": lambda d: ct.recalibration_study(
        d.y, d.models, [recalibration.TemperatureScaling()], folds=d.part, partition=CELLS, **d.design, **FIXED
    ),
    "caltest.rejection_curve": lambda d: ct.rejection_curve(d.y, d.models, n_points=10, **d.design),
    "caltest.reliability_curve": call(ct.reliability_curve, partition=CELLS, **FIXED),
    "caltest.scorers.NegativeError.__call__": score,
    "caltest.score_decomposition": call(ct.score_decomposition),
    "caltest.simplex_diagram": call_of_three(ct.simplex_diagram, **FIXED),
    "caltest.subgroup_tests": lambda d: ct.subgroup_tests(d.y, d.p, subgroup=d.part, **d.design, **FIXED),
    "caltest.temperature_curve": call(ct.temperature_curve, temperatures=[0.5, 1, 2], **FIXED),
    "caltest.training_track": lambda d: ct.training_track(None, [(d.y, d.p), (d.y, d.q)], **d.design, **FIXED),
    "caltest.unpaired_test": compare_two_samples,
}
SCORES = (
    "accuracy",
    "brier_score",
    "log_score",
    "mean_confidence",
    "overconfidence_score",
    "spherical_score",
    "underconfidence_score",
)
EXAMPLES |= {f"caltest.estimation.{name}": call(getattr(estimation, name)) for name in SCORES}
EVENTS = ("calibration_in_the_large", "calibration_slope")
EXAMPLES |= {f"caltest.estimation.{name}": call(getattr(estimation, name)) for name in EVENTS}
EXAMPLES["caltest.estimation.uncertainty_diagram"] = call(estimation.uncertainty_diagram, partition=CELLS, **FIXED)
MAPS = {
    f"{path}.fit": thing
    for path, thing in PUBLIC.items()
    if inspect.isclass(thing) and issubclass(thing, recalibration.Recalibrator) and not inspect.isabstract(thing)
}
EXAMPLES |= {path: fit(kind) for path, kind in MAPS.items()}

BY_CHANCE = {
    # random numbers are given to observations in their order; the differences of the verdict have these intervals
    "caltest.compare_models": r"simultaneous|^\.verdict\.others\.\d\.difference\.(interval\.|shown$)",
    "caltest.simplex_diagram": "pvalue|conclusion",  # simulated labels of three classes, too
    "caltest.calibration_test of three classes": "pvalue|noise|conclusion|numerical_error",
    "caltest.calibration_table of three classes": r"pvalue|noise|conclusion|error|direction|tests\.\d\.statistic$",
}
"""Numbers that rest on draws which another order of rows changes."""

ESTIMATES = {
    "caltest.bootstrap_interval": r"\.estimate$",
    "caltest.calibration_error": "",
    "caltest.estimation.cutoff_interval": r"\.estimate$",
    "caltest.calibration_table": r"\.tests\.0\.components\.0\.statistic$",
    "caltest.calibration_test": r"\.components\.0\.statistic$",
    "caltest.calibration_test of three classes": r"\.statistic$",
    "caltest.calibration_test with an exact distribution": r"\.statistic$",
    "caltest.cells_curve": r"\.value\.",
    "caltest.compare_models": r"\.models\.\d\.(accuracy|brier_mean_score|log_mean_score|estimate|variation)$",
    "caltest.simulation.metric_agreement": r"\.values\.",
    "caltest.multilabel_table": r"\.tests\.\d\.statistic$",
    "caltest.reliability_curve": r"\.(observed|predicted|expected|error|lower|upper)\b",
    "caltest.rejection_curve": r"\.(error|predicted_error|rejected|threshold)\.",
    "caltest.scorers.NegativeError.__call__": "",
    "caltest.recalibration.cross_fitted_decomposition": r"\.(mean_score|uncertainty)$",
    "caltest.score_decomposition": r"\.(mean_score|miscalibration|discrimination|uncertainty)$",
    "caltest.simplex_diagram": r"\.(observed|predicted|share)\.",
    "caltest.subgroup_tests": r"\.tests\.\d\.components\.0\.statistic$",
    "caltest.temperature_curve": r"\.(value|log_score)\.",
    "caltest.training_track": r"\.(accuracy|log_score|error)\.",
} | {f"caltest.estimation.{name}": "" for name in SCORES}
ESTIMATES |= {f"caltest.estimation.{name}": r"\.(estimate|intercept)$" for name in EVENTS}
ESTIMATES["caltest.estimation.uncertainty_diagram"] = r"\.(observed|predicted|expected|error|lower|upper)\b"
r"""What observations that are doubled with half of their weight leave as it is: plug-in estimates, by their paths.

P-values, intervals and noise floors rest on the number of observations, debiased estimates on that of pairs.
"""

GROUP_AWARE = {
    "caltest.calibration_test": r"\.l2_error\.(estimate|root)$",
    "caltest.calibration_table": r"\.l2_error\.(estimate|root)$",
    "caltest.calibration_report": r"\.l2_error\.(estimate|root)$",
    "caltest.compare_models": r"\.models\.\d\.squared_l2$|\.pairs\.\d\.difference$",
    "caltest.equivalence_test": r"\.statistic$|\.interval\.(estimate|root)$",
    "caltest.l2_interval": r"\.(estimate|root)$",
    "caltest.l2_interval of three classes": r"\.(estimate|root)$",
    "caltest.multilabel_table": r"\.l2_error\.(estimate|root)$",
    "caltest.paired_test": r"\.(difference|estimate_a|estimate_b)$",
    "caltest.subgroup_tests": r"\.l2_error\.(estimate|root)$",
}
"""What they leave as it is if `groups` names the original: debiased estimates too."""

SMALL_SAMPLES = {
    "caltest.recalibration.AutomaticCalibration.fit": "folds may part copies",
    "caltest.recalibration.PlattScaling.fit": "its targets depend on the number of observations",
    "caltest.recalibration.ScalingBinning.fit": "it begins with PlattScaling",
    "caltest.recalibration.SplineCalibration.fit": "its penalty depends on the number of observations",
    "caltest.recalibration.RecalibratedClassifier.fit": "the classifier knows no weights of halves",
}
"""Maps that the number of observations changes, each with its reason; others do not change."""

WHOLE_NUMBERS = {
    "caltest.recalibration.PlattScaling.fit": "whole weights are numbers of observations, as in scikit-learn",
    "caltest.recalibration.ScalingBinning.fit": "it begins with PlattScaling",
}
"""Maps for which equal weights of 7 are seven observations."""

SLOW = {
    "caltest.clinical_calibration",
    "caltest.cross_val_calibration",
    "caltest.leaderboard",
    "caltest.paired_test with folds",
    "caltest.recalibration.InterceptCalibration.fit",
    "caltest.recalibration.MatrixScaling.fit",
    "caltest.training_track",
    "caltest.clinical.update_test",
    "caltest.calibration_report",
    "caltest.clinical.calibration_by_site",
    "caltest.recalibration.AutomaticCalibration.fit",
    "caltest.recalibration.DirichletCalibration.fit",
    "caltest.calibration_table",
    "caltest.calibration_table of three classes",
    "caltest.calibration_test of three classes",
    "caltest.calibration_test with an exact distribution",
    "caltest.calibration_test with folds",
    "caltest.compare_models",
    "caltest.compare_models with folds",
    "caltest.detectable_error",
    "caltest.equivalence_test",
    "caltest.hypothesis_tests.by_fold",
    "caltest.gce_table",
    "caltest.l2_interval of three classes",
    "caltest.multilabel_table",
    "caltest.page.write_page",
    "caltest.recalibration_study",
    "caltest.subgroup_tests",
}


# Properties.


def arguments() -> dict[str, set[str]]:
    """Functions, classes and methods of ours with arguments about observations, and these arguments."""
    functions: dict[str, Any] = {}
    for path, thing in PUBLIC.items():
        if inspect.isclass(thing):
            methods = inspect.getmembers(thing, inspect.isfunction)
            ours = [(name, method) for name, method in methods if method.__module__.startswith("caltest.")]
            functions |= {path if name == "__init__" else f"{path}.{name}": method for name, method in ours}
        elif callable(thing):
            functions[path] = thing
    names = {path: (WEIGHTS | GROUPS) & set(inspect.signature(thing).parameters) for path, thing in functions.items()}
    return {path: found for path, found in names.items() if found and path not in NOT_ABOUT_OBSERVATIONS}


ARGUMENTS = arguments()


def arguments_of(example: str) -> set[str]:
    return ARGUMENTS[re.split(" of | with ", example)[0]]


def weighted(example: str) -> bool:
    return bool(WEIGHTS & arguments_of(example))


def grouped(example: str) -> bool:
    return bool(GROUPS & arguments_of(example))


def designs(example: str, *, of_weights: bool = True, of_groups: bool = True) -> list[Data]:
    """Data without and with unequal weights and groups, as far as the function takes them."""
    weights = [False, True] if weighted(example) and of_weights else [False]
    groups = [False, True] if grouped(example) and of_groups else [False]
    return [design(weight, group) for weight in weights for group in groups]


@cache
def design(with_weights: bool, with_groups: bool) -> Data:
    return replace(data(), weight=unequal() if with_weights else None, group=twenty() if with_groups else None)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers and texts of a result, each by its path."""
    if isinstance(value, dict | list | tuple):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{path}.{name}")
    else:
        yield path, value


def result(example: str, d: Data) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return dict(leaves(to_plain(EXAMPLES[example](d))))


expected = cache(result)
"""Of a design, which several tests compare with."""


def differences(
    one: dict[str, Any], other: dict[str, Any], tolerance: float, *, only: str = "", but: str | None = None
) -> dict[str, tuple[Any, Any]]:
    """Numbers and texts that differ, of paths that match ``only`` and not ``but``."""
    paths = [path for path in one.keys() | other.keys() if re.search(only, path)]
    paths = [path for path in paths if but is None or not re.search(but, path)]
    assert paths
    return {
        path: pair
        for path in sorted(paths)
        if not same(*(pair := (one.get(path, "absent"), other.get(path, "absent"))), tolerance)
    }


def same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return a == b


def each(examples: Any) -> Any:
    """One test for each of the examples."""
    marks = {name: [pytest.mark.slow(few_draws=True)] if name in SLOW else [] for name in examples}
    return pytest.mark.parametrize("example", [pytest.param(name, marks=some) for name, some in marks.items()])


def test_every_function_has_an_example():
    assert {re.split(" of | with ", name)[0] for name in EXAMPLES} == set(ARGUMENTS)
    assert {name for table in (BY_CHANCE, ESTIMATES, GROUP_AWARE, SMALL_SAMPLES) for name in table} <= set(EXAMPLES)


@each(filter(weighted, EXAMPLES))
def test_equal_weights_change_nothing(example):
    for d in designs(example, of_weights=False):
        without = expected(example, d)
        for weight in (1.0, 7.0, 1 / N):
            if weight != 7 or example not in WHOLE_NUMBERS:
                found = result(example, replace(d, weight=np.full(N, weight)))
                assert differences(without, found, 1e-12) == {}, weight


@each(filter(weighted, EXAMPLES))
def test_the_unit_of_weights_changes_nothing(example):
    for d in designs(example):
        if d.weight is not None:
            assert differences(expected(example, d), result(example, replace(d, weight=100 * d.weight)), 1e-9) == {}


@each(filter(grouped, EXAMPLES))
def test_groups_of_one_change_nothing(example):
    for d in designs(example, of_groups=False):
        without = expected(example, d)
        for group in (np.arange(N), np.array([f"patient {k}" for k in np.random.default_rng(0).permutation(N)])):
            assert differences(without, result(example, replace(d, group=group)), 1e-12) == {}


@each(EXAMPLES)
def test_the_order_of_rows_changes_nothing(example):
    order = np.random.default_rng(1).permutation(N)
    for d in designs(example):
        found = differences(expected(example, d), result(example, d.take(order)), 1e-9, but=BY_CHANCE.get(example))
        assert found == {}


@each(filter(weighted, EXAMPLES))
def test_rows_of_weight_0_change_nothing(example):
    """Whatever their labels, predictions and groups."""
    for d in designs(example):
        more = d.take(np.append(np.arange(N), np.arange(30)))
        weight = np.append(np.ones(N) if d.weight is None else d.weight, np.zeros(30))
        p, q = (np.append(prob, np.linspace(0, 1, 30)[::step]) for prob, step in ((d.p, 1), (d.q, -1)))
        more = replace(more, y=np.append(d.y, 1 - d.y[:30]), p=p, q=q, weight=weight)
        groups = [None] if d.group is None else [more.group, *(np.append(d.group, np.full(30, g)) for g in (-1, 99))]
        for group in groups:
            part = more.part if group is None else np.where(np.abs(group - 49) < 50, more.part, 0)
            found = result(example, replace(more, group=group, part=part))
            assert differences(expected(example, d), found, 1e-9) == {}


def halved(d: Data) -> Data:
    twice = d.take(np.tile(np.arange(N), 2))
    return replace(twice, weight=np.tile(np.ones(N) if d.weight is None else d.weight, 2) / 2)


@each([*ESTIMATES, *(name for name in MAPS if name not in SMALL_SAMPLES)])
def test_halves_of_rows_leave_estimates(example):
    for d in designs(example):
        found = differences(expected(example, d), result(example, halved(d)), 1e-9, only=ESTIMATES.get(example, ""))
        assert found == {}


@each(GROUP_AWARE)
def test_halves_of_rows_in_a_group_leave_debiased_estimates(example):
    both = np.tile(np.arange(N), 2)
    for d in designs(example, of_groups=False):
        twice = replace(halved(d), group=both)
        assert differences(expected(example, d), result(example, twice), 1e-9, only=GROUP_AWARE[example]) == {}
