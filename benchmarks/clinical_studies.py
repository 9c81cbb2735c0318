"""What is measured on each simulated data set of patients: intervals, p-values, widths."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import caltest
from benchmarks.clinical_designs import (
    CLUSTERS,
    CLUSTERS_WRONG,
    FEW,
    LARGE,
    RARE,
    RARE_WRONG,
    SHIFTED,
    STRONG,
    TOO_EXTREME,
    USUAL,
    Design,
)
from caltest.clinical import clinical_calibration, clinical_sample_size, optimism_corrected, update_test
from caltest.clinical._discrimination import c_statistic, concordance
from caltest.clinical._net_benefit import NetBenefit
from caltest.clinical._overall import brier_scores, likelihood_indexes
from caltest.clinical._sites import _ici, _summaries
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.scores._mean_interval import mean_interval
from caltest.hypothesis_tests import (
    giviti_belt,
    giviti_test,
    le_cessie_test,
    osius_rojek_test,
    safe_hosmer_lemeshow_test,
    stukel_test,
    sum_of_squares_test,
)
from caltest.predictions._sample import Sample, make_sample
from caltest.recalibration import TemperatureScaling, cross_fitted_decomposition
from caltest.statistics import E50, E90, ECI, ICI, Emax

SEED, LEVEL = 20261128, 0.05
N_RESAMPLES, FEW_RESAMPLES = 199, 19
"""Draws of p-values; of those that are slow as few as the level of 5 % needs."""
CURVE = ICI(), E50(), E90(), Emax(), ECI()


class Found(NamedTuple):
    """Of one data set: whether an interval lies above or below its target, or a p-value is small, and a number."""

    kind: str
    measure: str
    above: bool = False
    below: bool = False
    value: float = math.nan


@dataclass(frozen=True)
class Study:
    """What is measured, of which designs, and on how many data sets of each."""

    measure: Callable[[Any, np.random.Generator], Iterator[Found]]
    designs: Sequence[Any]
    data_sets: int


def covered(name: str, interval: tuple[float, float], target: float, value: float = math.nan) -> Iterator[Found]:
    """Yield whether an interval lies above or below its target; nothing if there is none. The number is its width."""
    low, high = interval
    if not (math.isnan(low) or math.isnan(target)):
        slack = 1e-9 * max(1.0, abs(target))
        width = high - low if math.isfinite(high - low) else math.nan
        yield Found(
            "coverage", name, low > target + slack, high < target - slack, width if math.isnan(value) else value
        )


def rejected(name: str, pvalue: float) -> Iterator[Found]:
    """Yield whether a p-value is at most 5 %; nothing if there is none."""
    if not math.isnan(pvalue):
        yield Found("level", name, pvalue <= LEVEL + 1e-12)


def measures(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure intervals of all but the distances to curves, and p-values of ratio and slope of calibrated ones."""
    event, prob, true, groups = design.patients(rng)
    if not 0 < event.sum() < design.n:
        return
    sample = make_sample(event, prob, **groups)
    cells, target, missed = sample.once(EventCells.of), design.targets, LEVEL / 2
    large, slope = InTheLarge.of(cells, 1 - LEVEL), Slope.of(cells, 1 - LEVEL)
    yield from covered("observed_expected", large.ratio_interval, float(true.sum() / prob.sum()))
    yield from covered("intercept", large.intercept_interval, _intercept(prob, true))
    yield from covered("calibration_slope", slope.interval, target["calibration_slope"])
    for name, one in (brier_scores(sample, missed) | likelihood_indexes(sample, cells, missed)).items():
        of_these = _unreliability(prob, true)
        yield from covered(name, one.interval, of_these if name == "unreliability_index" else target[name])
    yield from covered("c_statistic", c_statistic(sample, missed)[1], target["c_statistic"])
    benefit = NetBenefit.at(sample, design.threshold, missed)
    yield from covered("net_benefit", benefit.confidence_interval, target["net_benefit"])
    yield from covered("gain", benefit.gain_interval, target["gain"])
    if design.calibrated:
        yield from rejected("observed_expected, p-value", large.pvalue)
        if not math.isnan(slope.slope):
            yield from rejected("calibration_slope, p-value", slope.pvalue)


def _unreliability(prob: np.ndarray, true: np.ndarray) -> float:
    """Return U of infinitely many labels of these patients, twice the mean divergence of true from predicted risks.

    The true logits are linear in the predicted ones, so that the best intercept and slope are those of the design.
    """
    return 2 * float((true * np.log(true / prob) + (1 - true) * (np.log1p(-true) - np.log1p(-prob))).mean())


def _intercept(prob: np.ndarray, true: np.ndarray) -> float:
    """Return the shift of the logits with which the true number of events is expected."""
    return EventCells.of_counts(prob, np.ones(len(prob)), true).intercept()


def curves(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure intervals and p-values of distances to curves, by the public function."""
    event, prob, true, groups = design.patients(rng)
    if not 0 < event.sum() < design.n:
        return
    result = clinical_calibration(event, prob, n_resamples=N_RESAMPLES, rng=rng, **groups)
    sample = make_sample(event, prob)
    for one in CURVE:
        target = 0.0 if design.calibrated else float(one.evaluate(sample, true[sample.row]))
        yield from covered(one.name, result[one.name].confidence_interval, target)
    if not groups:
        interval = _ici(sample, LEVEL / 2, rng).confidence_interval
        target = 0.0 if design.calibrated else float(ICI().evaluate(sample, true[sample.row]))
        yield from covered("ICI of a site", interval, target)
    if design.calibrated:
        for one in result:
            if one.name in {"ICI", "E50", "E90", "Emax", "ECI", "brier", "unreliability_index"}:
                yield from rejected(f"{one.name}, p-value", one.pvalue)


def cutoffs(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure intervals of the largest error over intervals of predictions, and those of the bootstrap."""
    event, prob, true, groups = design.patients(rng)
    order = np.argsort(prob)
    path = np.concatenate([[0.0], np.cumsum((true - prob)[order])]) / design.n
    some: dict[str, Any] = {"n_resamples": N_RESAMPLES, "rng": rng, **groups}
    for name, target in (("Kuiper", float(np.ptp(path))), ("KS", float(np.abs(path).max()))):
        found = caltest.estimation.cutoff_interval(event, prob, statistic=name, **some)
        yield from covered(f"cutoff_interval, {name}", tuple(found), target)
    if design.n < 10_000:
        found = caltest.bootstrap_interval(event, prob, statistic=caltest.statistics.Kuiper(), **some)
        yield from covered("bootstrap_interval, Kuiper", tuple(found), float(np.ptp(path)))


def tests(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure levels of tests on calibrated predictions."""
    event, prob, _, groups = design.patients(rng)
    some: dict[str, Any] = {"n_resamples": FEW_RESAMPLES, "rng": rng}
    statistics = {
        "calibration_test": None,
        "SmoothCalibrationError": caltest.statistics.SmoothCalibrationError(),
        'ECE(EqualMass("cube-root"))': caltest.ECE(caltest.EqualMass("cube-root")),
        "Kuiper (cutoff calibration error)": caltest.statistics.Kuiper(),
    }
    for name, statistic in statistics.items():
        asked = {} if statistic is None else {"statistic": statistic}
        yield from rejected(name, caltest.calibration_test(event, prob, **asked, **some, **groups).pvalue)
    if 0 < event.sum() < design.n:
        yield Found("level", "update_test: any", update_test(event, prob, **some, **groups).update != "none")
    if groups:
        return
    classical = {"stukel_test": stukel_test, "osius_rojek_test": osius_rojek_test, "le_cessie_test": le_cessie_test}
    for name, test in classical.items():
        yield from rejected(name, test(event, prob, **some).pvalue)
        yield from rejected(f"{name}, asymptotic", _asymptotic(test, event, prob))
    yield from rejected("safe_hosmer_lemeshow_test", safe_hosmer_lemeshow_test(event, prob, rng=rng).pvalue)


def _asymptotic(test: Callable[..., Any], event: np.ndarray, prob: np.ndarray) -> float:
    """Return the p-value of the limit; NaN where it is refused."""
    try:
        return float(test(event, prob, method="asymptotic").pvalue)
    except ValueError:
        return math.nan


def giviti(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure levels of the GiViTI tests, and how often the whole belt contains the true curve."""
    event, prob, _, _ = design.patients(rng)
    if design.calibrated:
        yield from rejected("giviti_test", giviti_test(event, prob, n_resamples=FEW_RESAMPLES, rng=rng).pvalue)
        yield from rejected("giviti_test, asymptotic", giviti_test(event, prob, method="asymptotic").pvalue)
    try:
        belt = giviti_belt(event, prob)
    except ValueError:  # the labels are separated
        return
    if design.calibrated:
        yield from rejected("giviti_belt, p-value", belt.pvalue)
    true = expit(design.shift + design.slope * logit(belt.prediction))
    for name, low, high in (
        ("giviti_belt, 95 %", belt.lower, belt.upper), ("giviti_belt, 80 %", belt.inner_lower, belt.inner_upper)
    ):  # fmt: skip
        yield Found("coverage", f"{name}, everywhere", bool(((true < low - 1e-9) | (true > high + 1e-9)).any()))
        middle = int(np.argmin(np.abs(belt.prediction - np.median(prob))))
        yield Found("coverage", f"{name}, at the median", bool(not low[middle] <= true[middle] <= high[middle]))


def updates(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure how often an update of the slope is named that is not needed."""
    event, prob, _, _ = design.patients(rng)
    if 0 < event.sum() < design.n:
        found = update_test(event, prob, n_resamples=N_RESAMPLES, rng=rng).update
        yield Found("level", "update_test: slope", found == "intercept and slope")


@dataclass(frozen=True)
class Fitted:
    """A logistic regression of some features, all of which matter, and its own patients."""

    events: int
    features: int = 4
    noise: int = 0

    @property
    def predictions(self) -> str:
        """The features in words."""
        return f"{self.features} features that matter" + (f", {self.noise} that do not" if self.noise else "")

    @property
    def n(self) -> int:
        """Number of patients."""
        return round(self.events / 0.2)

    def patients(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, true risks and labels."""
        x = rng.standard_normal((n, self.features + self.noise))
        true = expit(-1.75 + 1.2 / math.sqrt(self.features) * x[:, : self.features].sum(axis=1))
        return x, true, (rng.random(n) < true).astype(int)

    @property
    def model(self) -> LogisticRegression:
        """The model, without a penalty."""
        return LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)


def fitted(design: Fitted, rng: np.random.Generator) -> Iterator[Found]:
    """Measure levels of tests of the labels that a model was fitted to."""
    x, _, event = design.patients(design.n, rng)
    try:
        prob = design.model.fit(x, event).predict_proba(x)[:, 1]
        ours = sum_of_squares_test(event, prob, x, n_resamples=N_RESAMPLES, rng=rng)
    except ValueError:  # the features separate the labels
        return
    yield from rejected("sum_of_squares_test", ours.pvalue)
    limit = sum_of_squares_test(event, prob, x, method="asymptotic")
    yield from rejected("sum_of_squares_test, asymptotic", limit.pvalue)
    limit = giviti_test(event, prob, kind="internal", method="asymptotic")
    yield from rejected('giviti_test(kind="internal")', limit.pvalue)
    try:
        yield from rejected('giviti_belt(kind="internal")', giviti_belt(event, prob, kind="internal").pvalue)
    except ValueError:
        return


def optimism(design: Fitted, rng: np.random.Generator) -> Iterator[Found]:
    """Measure apparent and corrected values, minus those of the model on many new patients."""
    x, _, event = design.patients(design.n, rng)
    try:
        model = design.model.fit(x, event)
        result = optimism_corrected(design.model, x, event, n_resamples=20, smoother="lowess", rng=rng)
    except ValueError:
        return
    new, true, _ = design.patients(20_000, rng)
    prob = model.predict_proba(new)[:, 1]
    inner = (prob > 1e-12) & (prob < 1 - 1e-12)
    fit = EventCells.of_counts(prob[inner], np.ones(int(inner.sum())), true[inner]).raw_fit
    brier = float((true * (1 - prob) ** 2 + (1 - true) * prob**2).mean())
    truth = {"calibration_slope": fit[1], "c_statistic": concordance(prob, true, 1 - true), "brier": brier}
    for name, value in truth.items():
        yield Found("mean", f"{name}, apparent minus new", value=result[name].apparent - value)
        yield Found("mean", f"{name}, corrected minus new", value=result[name].corrected - value)


@dataclass(frozen=True)
class Sites:
    """Hospitals with so many events each, whose logits and slopes vary."""

    sites: int
    events: int
    between: float

    @property
    def predictions(self) -> str:
        """The hospitals in words."""
        varies = f"logits vary by {self.between:g}" if self.between else "all alike"
        return f"{self.sites} hospitals, {varies}"

    @property
    def n(self) -> int:
        """Number of patients of a hospital."""
        return Design(self.events).n

    def values(self, rng: np.random.Generator, n: int = 500) -> dict[str, np.ndarray]:
        """Return true O/E, slopes and c-statistics of new hospitals."""
        odds = -1.9 + 1.2 * rng.standard_normal(2_000)
        prob, found = expit(odds), []
        for shift, slope in zip(*self.shocks(n, rng), strict=True):
            true = expit(shift + slope * odds)
            found.append((true.sum() / prob.sum(), slope, concordance(prob, true, 1 - true)))
        return dict(zip(("observed_expected", "calibration_slope", "c_statistic"), np.array(found).T, strict=True))

    def shocks(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return shifts and slopes of hospitals."""
        return self.between * rng.standard_normal(n), 1 + self.between / 2 * rng.standard_normal(n)


SCALES = {"log": (np.log, np.exp), "logit": (logit, expit), "linear": (np.asarray, np.asarray)}
_NEW: dict[Sites, dict[str, np.ndarray]] = {}


def sites(design: Sites, rng: np.random.Generator) -> Iterator[Found]:
    """Measure intervals for the mean over hospitals, the share of new ones in the prediction interval, and levels."""
    if design not in _NEW:
        _NEW[design] = design.values(np.random.default_rng(SEED))
    new = _NEW[design]
    samples, labels, risks = [], [], []
    for shift, slope in zip(*design.shocks(design.sites, rng), strict=True):
        odds = -1.9 + 1.2 * rng.standard_normal(design.n)
        event = (rng.random(design.n) < expit(shift + slope * odds)).astype(int)
        sample = make_sample(event, expit(odds))
        samples.append(sample)
        labels.append(event)
        risks.append(expit(odds))
    for one in _summaries(samples, LEVEL / 2):
        values = new[one.name]
        there, back = SCALES[one.scale]
        target = float(back(there(values).mean()))
        yield from covered(f"{one.name}, mean", one.confidence_interval, target)
        low, high = one.prediction_interval
        above, below = float((values < low).mean()), float((values > high).mean())
        yield Found("mean", f"{one.name}, new hospital", value=1 - above - below)
        if not design.between:
            yield from rejected(f"{one.name}, one value", one.pvalue)
    if not design.between and design.sites == 10:
        site = np.repeat(np.arange(design.sites), design.n)
        joint = caltest.subgroup_tests(
            np.concatenate(labels), np.concatenate(risks), subgroup=site, n_resamples=N_RESAMPLES, rng=rng
        )
        yield from rejected("calibrated in every hospital", joint.pvalue)


@dataclass(frozen=True)
class Wanted:
    """Patients of a validation, as many as the usual widths need."""

    events: int
    mean: float
    spread: float
    measure: str

    @property
    def design(self) -> Design:
        """The patients, of whom the number is not yet known."""
        return Design(1, self.mean, self.spread)

    @property
    def predictions(self) -> str:
        """What is wanted, in words."""
        return f"{self.measure}, {100 * self.design.frequency:.2g} % events"

    @property
    def n(self) -> int:
        """Number of patients that the formula returns."""
        z = (np.arange(20_000) + 0.5) / 20_000
        from scipy.special import ndtri

        risks = expit(self.mean + self.spread * ndtri(z))
        options = {"thresholds": [self.design.threshold]} if self.measure == "net_benefit" else {}
        return clinical_sample_size(risks, widths={self.measure: WIDTHS[self.measure]}, **options).n_samples


WIDTHS = {"observed_expected": 0.2, "calibration_slope": 0.2, "c_statistic": 0.1, "net_benefit": 0.2}


def widths(wanted: Wanted, rng: np.random.Generator) -> Iterator[Found]:
    """Measure how wide intervals are with the number of patients that the formula returns."""
    design = wanted.design
    n = wanted.n
    odds = design.mean + design.spread * rng.standard_normal(n)
    event = (rng.random(n) < expit(odds)).astype(int)
    sample = make_sample(event, expit(odds))
    cells, missed = sample.once(EventCells.of), LEVEL / 2
    found = {
        "observed_expected": lambda: InTheLarge.of(cells, 1 - LEVEL).ratio_interval,
        "calibration_slope": lambda: Slope.of(cells, 1 - LEVEL).interval,
        "c_statistic": lambda: c_statistic(sample, missed)[1],
        "net_benefit": lambda: _standardised_benefit(sample, design.threshold, missed),
    }[wanted.measure]()
    intervals = {"width": (found, 1.0)}
    if wanted.measure == "net_benefit":
        own = NetBenefit.at(sample, design.threshold, missed).confidence_interval
        intervals["width, for each patient"] = own, design.frequency
    for name, ((low, high), unit) in intervals.items():
        width = (high - low) / unit
        yield Found("mean", name, width > WIDTHS[wanted.measure], value=width)


def _standardised_benefit(sample: Sample, threshold: float, missed: float) -> tuple[float, float]:
    """Return the interval of the net benefit over the observed share of events, as the formula means it."""
    event, treated = sample.outcome > 0, sample.event >= threshold
    benefit = treated * np.where(event, 1.0, -threshold / (1 - threshold))
    value, share = benefit.mean() / event.mean(), event.mean()
    return mean_interval(value, (benefit - value * event) / share, sample, missed)


def decomposition(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure intervals of the terms of a cross-fitted decomposition of the Brier score."""
    event, prob, _, groups = design.patients(rng)
    cluster = groups.get("groups", np.arange(design.n))
    fold = rng.permutation(int(cluster.max()) + 1)[cluster] % 5
    if min(np.bincount(fold[event == 1], minlength=5).sum() - np.bincount(fold[event == 1], minlength=5)) < 1:
        return
    result = cross_fitted_decomposition(event, prob, folds=fold, rng=rng, **groups)
    new = replace(design, events=design.events, correlation=0.0)
    odds = new.mean + new.spread * np.random.default_rng(SEED).standard_normal(20_000)
    risk, true = expit(odds), expit(new.shift + new.slope * odds)

    def score(risks: np.ndarray) -> float:
        return float((true * (1 - risks) ** 2 + (1 - true) * risks**2).mean())

    mean, after = score(risk), 0.0
    for k in range(5):
        fit = TemperatureScaling().fit(np.column_stack([1 - prob, prob])[fold != k], event[fold != k])
        after += (fold == k).mean() * score(fit.predict_proba(np.column_stack([1 - risk, risk]))[:, 1])
    targets = {
        "mean_score": mean,
        "miscalibration": mean - after,
        "refinement": after,
        "discrimination": float(true.mean() * (1 - true.mean())) - after,
    }
    for name, target in targets.items():
        yield from covered(name, result.intervals[name], target)


def segments(design: Design, rng: np.random.Generator) -> Iterator[Found]:
    """Measure how often any segment of one or two columns is called wrong."""
    event, prob, _, groups = design.patients(rng)
    age, place = rng.normal(size=design.n) + logit(prob) / 4, rng.choice(list("abcd"), design.n)
    found = caltest.subgroup_tests(
        event, prob, subgroup=pd.DataFrame({"age": age, "place": place}), depth=2, statistic=caltest.KS(),
        n_resamples=N_RESAMPLES, rng=rng, **groups
    )  # fmt: skip
    yield from rejected("subgroup_tests(depth=2)", found.pvalue)


STUDIES: dict[str, Study] = {
    "measures": Study(
        measures,
        [FEW[0], *USUAL, *SHIFTED, *TOO_EXTREME, *STRONG, FEW[1], *RARE, *RARE_WRONG, *CLUSTERS, *CLUSTERS_WRONG],
        1000,
    ),
    "tests": Study(tests, [*USUAL, *STRONG[1:], RARE[0], RARE[2], *CLUSTERS], 1000),
    "cutoffs": Study(cutoffs, [*USUAL, LARGE[0], *SHIFTED, LARGE[1], *TOO_EXTREME, LARGE[2], RARE[0], *CLUSTERS], 400),
    "updates": Study(updates, SHIFTED, 1000),
    "sites": Study(sites, [Sites(k, n, tau) for k in (10, 30) for n in (20, 50) for tau in (0.0, 0.3)], 400),
    "widths": Study(widths, [Wanted(0, mean, 1.2, one) for mean in (-1.9, -3.5) for one in WIDTHS], 1000),
    "decomposition": Study(decomposition, [*USUAL, *TOO_EXTREME, RARE[0], *CLUSTERS], 400),
    "fitted": Study(fitted, [Fitted(events) for events in (20, 50, 200)], 400),
    "giviti": Study(giviti, [*USUAL, *TOO_EXTREME, *STRONG[1:], *RARE], 400),
    "curves": Study(
        curves, [FEW[0], *USUAL, *SHIFTED, *TOO_EXTREME, *RARE, RARE_WRONG[0], *CLUSTERS[1:], CLUSTERS_WRONG[1]], 400
    ),
    "segments": Study(segments, [*USUAL, RARE[0], CLUSTERS[2]], 400),
    "optimism": Study(optimism, [Fitted(events, 4, 4) for events in (20, 50, 200)], 400),
}
"""The studies, in the order in which they are measured."""
