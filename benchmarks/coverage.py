"""How often the intervals of the package contain their targets, for models with known truth."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

import caltest
from benchmarks.populations import KINDS, N_CLASSES, Population
from caltest.estimation.errors._squared_l2_target import squared_l2_target
from caltest.simulation import DirichletModel, Model, Shift, Temperature, coverage_study

SIZES = (200, 1_000, 10_000)
TRUTHS = {
    "calibrated": None,
    "temperature 1.1": Temperature(1.1),
    "temperature 1.3": Temperature(1.3),
    "temperature 2": Temperature(2.0),
    "under-confident 0.8": Temperature(0.8),
    "shifted by 0.4 logits": Shift(1, 0.4),
}
PREDICTIONS = {"spread": (2, 1.0), "sharp": (2, 0.15), "3 classes": (3, 0.5), "10 classes": (10, 0.1)}
"""Numbers of classes and concentrations of Dirichlet distributions; other names are those of `populations.KINDS`."""
POPULATION_TRUTHS = ("calibrated", "temperature 1.3", "shifted by 0.4 logits")
"""What is measured on populations of practice."""
EVENTS = tuple(name for name in KINDS if N_CLASSES[name] == 2)


@dataclass(frozen=True)
class Interval:
    """An interval of the certificate: how it is made, what it should contain and how often, and on how many data sets.

    ``make(model)`` returns a pair (build, target). Up to ``largest`` observations there are ``n_replicates`` data sets,
    a quarter of them with 10,000 observations.
    """

    name: str
    make: Callable[[Model], tuple]
    holds: str
    level: float
    n_replicates: int
    largest: int = SIZES[-1]
    predictions: tuple[str, ...] = ("spread", "sharp")


def l2(model, **options):
    """`l2_interval` and the binned calibration error of the data set."""
    return partial(caltest.l2_interval, **options), squared_l2_target


def bootstrap(model, kind):
    """`bootstrap_interval` of the ECE in 10 equal-mass cells, and the expected miscalibration of the model."""
    statistic = caltest.ECE(caltest.EqualMass(10))
    truth = model.expected_miscalibration()
    build = partial(caltest.bootstrap_interval, statistic=statistic, kind=kind, n_resamples=199)
    return build, lambda y_prob, class_prob: truth


def whole_band(model):
    """How far the truth is inside `calibration_band`, at the prediction where it is closest to an end."""

    def build(y_true, y_prob):
        band = caltest.calibration_band(y_true, y_prob, n_resamples=1)
        truth = model.calibration_function(np.stack([1 - band.score, band.score], axis=1))[:, 1]
        return float((band.lower - truth).max()), float((band.upper - truth).min())

    return build, _zero


def confidence_bars(model, simultaneous):
    """How far the mean of the calibration function is inside the confidence bars of a diagram."""

    def build(y_true, y_prob):
        curve = caltest.reliability_curve(y_true, y_prob, bars="confidence", simultaneous=simultaneous)
        truth = model.calibration_function(y_prob)[:, 1]
        cell = np.searchsorted(curve.upper[:-1], y_prob[:, 1], side="right")
        mean = np.bincount(cell, truth, curve.n_cells) / np.bincount(cell, minlength=curve.n_cells)
        picked = slice(None) if simultaneous else np.argsort(-curve.count)[:1]
        return float((curve.bar_lower - mean)[picked].max()), float((curve.bar_upper - mean)[picked].min())

    return build, _zero


def consistency_bars(model, simultaneous):
    """How far the observed frequency is inside the consistency bars of a diagram."""

    def build(y_true, y_prob):
        curve = caltest.reliability_curve(y_true, y_prob, simultaneous=simultaneous)
        picked = slice(None) if simultaneous else np.argsort(-curve.count)[:1]
        return float((curve.bar_lower - curve.observed)[picked].max()), float(
            (curve.bar_upper - curve.observed)[picked].min()
        )

    return build, _zero


def smooth_band(model):
    """The confidence band of `smooth_reliability_curve` at the prediction nearest to 0.3."""

    def build(y_true, y_prob, rng):
        curve = caltest.smooth_reliability_curve(y_true, y_prob, n_resamples=199, rng=rng)
        at = int(np.argmin(np.abs(curve.point - 0.3)))
        truth = model.calibration_function([[1 - curve.point[at], curve.point[at]]])[0, 1]
        return float(curve.confidence_lower[at] - truth), float(curve.confidence_upper[at] - truth)

    return build, _zero


def difference(model, variance):
    """`paired_test`'s interval for a model against its own predictions, sharpened."""

    def sharpened(y_prob):
        return Temperature(1 / 1.3)(y_prob)

    def build(y_true, y_prob, rng):
        found = caltest.paired_test(y_true, y_prob, sharpened(y_prob), variance=variance, n_resamples=199, rng=rng)
        return tuple(found.confidence_interval)

    def target(y_prob, class_prob):
        return squared_l2_target(y_prob, class_prob) - squared_l2_target(sharpened(y_prob), class_prob)

    return build, target


def _zero(y_prob, class_prob):
    return 0.0


TWO = ("spread", "sharp")
INTERVALS = (
    Interval(
        "l2_interval",
        l2,
        "the binned l2 calibration error of these observations",
        0.95,
        2_000,
        predictions=(*TWO, "3 classes", "10 classes", *KINDS),
    ),
    Interval("l2_interval, upper end", partial(l2, alternative="less"), "the same", 0.95, 1_000),
    Interval(
        "bootstrap_interval, BCa",
        partial(bootstrap, kind="BCa"),
        "the expected miscalibration, without a guarantee",
        0.95,
        400,
        1_000,
    ),
    Interval(
        "bootstrap_interval, percentile",
        partial(bootstrap, kind="percentile"),
        "the same, without a guarantee",
        0.95,
        400,
        1_000,
    ),
    Interval(
        "bootstrap_interval, basic", partial(bootstrap, kind="basic"), "the same, without a guarantee", 0.95, 400, 1_000
    ),
    Interval("calibration_band", whole_band, "the whole calibration function", 0.95, 1_000, 1_000, (*TWO, *EVENTS)),
    Interval(
        "confidence bars, one",
        partial(confidence_bars, simultaneous=False),
        "the mean of the calibration function in the fullest cell",
        0.9,
        1_000,
    ),
    Interval(
        "confidence bars, simultaneous", partial(confidence_bars, simultaneous=True), "that of all cells", 0.9, 1_000
    ),
    Interval(
        "consistency bars, one",
        partial(consistency_bars, simultaneous=False),
        "the observed frequency of the fullest cell, if calibrated",
        0.9,
        1_000,
    ),
    Interval(
        "consistency bars, simultaneous",
        partial(consistency_bars, simultaneous=True),
        "those of all cells, if calibrated",
        0.9,
        1_000,
    ),
    Interval(
        "smooth_reliability_curve",
        smooth_band,
        "the calibration function at 0.3, without a guarantee",
        0.9,
        200,
        1_000,
        ("spread",),
    ),
    Interval(
        "paired_test",
        partial(difference, variance="asymptotic"),
        "the difference of the binned squared l2 calibration errors",
        0.95,
        1_000,
    ),
    Interval("paired_test, bootstrap", partial(difference, variance="bootstrap"), "the same", 0.95, 400, 1_000),
)


def measure(out: Path, seed: int, workers: int, report: Callable[[float, float], None]) -> pd.DataFrame:
    """Return one row for each interval, model and number of observations; finished parts are stored in ``out``."""
    cells = [
        (interval, predictions, n) for interval in INTERVALS for predictions in interval.predictions for n in SIZES
    ]
    cells = [(interval, predictions, n) for interval, predictions, n in cells if n <= interval.largest]
    frames = []
    with joblib.parallel_config(backend="loky", n_jobs=workers):
        for number, (interval, predictions, n) in enumerate(cells):
            report(number, len(cells))
            frames.append(_measure(interval, predictions, n, out / f"{interval.name}-{predictions}-{n}", seed))
    return pd.concat(frames, ignore_index=True)


def model_of(predictions: str, truth: Callable | None) -> Model:
    """Return the model of some predictions and their truth."""
    given = [] if truth is None else [truth]
    return (
        Population(predictions, *given) if predictions in KINDS else DirichletModel(*PREDICTIONS[predictions], *given)
    )


def _measure(interval: Interval, predictions: str, n_samples: int, out: Path, seed: int) -> pd.DataFrame:
    population = predictions in KINDS
    count = interval.n_replicates // (4 if n_samples == SIZES[-1] else 1) // (4 if population else 1)
    frames = []
    for name, truth in TRUTHS.items():
        if truth is not None and "if calibrated" in interval.holds:
            continue
        if population and name not in POPULATION_TRUTHS:
            continue
        model = model_of(predictions, truth)
        study = coverage_study(
            {f"{predictions}, {name}": model},
            {interval.name: interval.make(model)},
            n_samples,
            count,
            out=out / name.replace(" ", "-"),
            rng=seed,
        )
        frames.append(study.to_frame())
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.assign(
        predictions=predictions, truth=[model.removeprefix(f"{predictions}, ") for model in frame["model"]]
    )
    frame = frame.assign(level=interval.level, holds=interval.holds)
    columns = ["interval", "predictions", "truth", "n_samples", "n_replicates", "level", "coverage", "above", "below"]
    return frame[[*columns, "width"]].round({"coverage": 6, "above": 6, "below": 6, "width": 6})
