"""What goes wrong, and how often: the tables of docs/choosing-a-test.md and others, on simulated data.

``python benchmarks/pitfalls.py`` writes ``docs/data/pitfalls.csv`` and the tables of the pages in `STUDIES`, in less
than 10 minutes on one core. ``--page`` writes the tables from the data that is there, ``--data-sets`` sets how many
data sets are drawn in each setting.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed
    for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # one thread each
        os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import caltest  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import Studies  # noqa: E402
from caltest.simulation import Bumps, DirichletModel, ResampledPredictions, Shift, Temperature  # noqa: E402

SEED = 20190418
LEVEL = 0.05
N_RESAMPLES = 99  # exact at the level: (B + 1) times 0.05 is an integer
DATA_SETS = 400
"""In each setting of the first table; others have some multiple of it."""


class Row(NamedTuple):
    """A number of a table: a mean over data sets."""

    study: str
    setting: str
    n_samples: int
    method: str
    value: float
    data_sets: int


def rejected(y_true, y_prob, rng, **options) -> bool:
    """Return whether a Monte Carlo test rejects at the level."""
    return tested(y_true, y_prob, rng, **options).pvalue <= LEVEL


def tested(y_true, y_prob, rng, **options):
    """Return a Monte Carlo test; warnings are off, because what they warn of is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        return caltest.calibration_test(
            y_true, y_prob, method="monte-carlo", n_resamples=N_RESAMPLES, rng=rng, **options
        )


def rows(study: str, setting: str, n: int, count: int, measure: Callable[[np.random.Generator], dict]) -> Iterator[Row]:
    """Yield the means of what ``measure`` returns for one data set."""
    seeds = np.random.SeedSequence([SEED, *f"{study}, {setting}, {n}".encode()]).spawn(count)
    found = [measure(np.random.default_rng(seed)) for seed in seeds]
    for method in found[0]:
        yield Row(study, setting, n, method, float(np.mean([one[method] for one in found])), count)


def wide(frame: pd.DataFrame, index: list[str], columns: str = "method") -> pd.DataFrame:
    """Return the values with one row for each value of the index and one column for each method, in their order."""
    first = frame.set_index([*index, columns])["value"].unstack(columns)
    rows_in_order = frame[index].drop_duplicates()
    order = pd.MultiIndex.from_frame(rows_in_order) if len(index) > 1 else rows_in_order[index[0]]
    return first.loc[order, frame[columns].drop_duplicates()]


# Predictions resampled with the labels.

SETTINGS = {
    "10 classes, grid of 10 cells per axis": (10, lambda n: caltest.EqualWidth(10), (500, 2_000)),
    "3 classes, grid of 10 cells per axis": (3, lambda n: caltest.EqualWidth(10), (500,)),
    "10 classes, tree, min_leaf = n / 8": (10, lambda n: caltest.VarianceTree(min_leaf=n // 8), (200, 1_000)),
    "10 classes, tree, min_leaf = 0.7 n / 8": (
        10,
        lambda n: caltest.VarianceTree(min_leaf=int(0.7 * n / 8)),
        (200, 1_000),
    ),
    "2 classes, 15 equal-width cells": (2, lambda n: caltest.EqualWidth(15), (100, 1_000)),
}
FIXED, RESAMPLED, RATIO = "predictions fixed", "observations resampled", "ratio of null means"


def resampled(count: int) -> Iterator[Row]:
    """Yield rejection rates of calibrated models, and how much smaller values on resampled observations are."""
    rows_too = caltest.Consistency(resample_predictions=True)
    for setting, (n_classes, partition, sizes) in SETTINGS.items():
        model = DirichletModel(n_classes, 0.5)
        for n in sizes:

            def measure(rng, model=model, n=n, statistic=caltest.ECE(partition(n))):  # noqa: B008
                _, y_true, y_prob = model.draw(n, rng)
                fixed = tested(y_true, y_prob, rng, statistic=statistic)
                drawn = tested(y_true, y_prob, rng, statistic=statistic, resampling=rows_too)
                reject = {FIXED: fixed.pvalue <= LEVEL, RESAMPLED: drawn.pvalue <= LEVEL}
                return reject | {RATIO: drawn.noise_floor / fixed.noise_floor}

            yield from rows("resampled", setting, n, count, measure)


def resampled_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    found = wide(frame, ["setting", "n_samples"])
    lines = [
        (f"{setting}, n = {n:,}", *(f"{values[name]:.2f}" for name in (FIXED, RESAMPLED, RATIO)))
        for (setting, n), values in found.iterrows()
    ]
    return table(("setting", FIXED, RESAMPLED, RATIO), lines)


# Predictions pooled over folds.

N_FOLDS, PREVALENCE = 5, 0.3
POOLED, SEPARATE = "5 folds pooled", "5 fresh training sets"


def cells_of_equal_predictions(y_prob):
    """Return the partition that gives every distinct prediction a separate cell."""
    distinct = np.unique(y_prob)
    return caltest.Edges((distinct[1:] + distinct[:-1]) / 2) if len(distinct) > 1 else caltest.EqualWidth(1)


def folds(count: int) -> Iterator[Row]:
    """Yield rejection rates of a model that predicts the prevalence among its training labels."""
    n = 500
    size = n // N_FOLDS

    def measure(rng):
        fold = np.arange(n) % N_FOLDS
        y_true = rng.random(n) < PREVALENCE
        pooled = np.array([y_true[fold != k].mean() for k in range(N_FOLDS)])
        separate = rng.binomial(n - size, PREVALENCE, N_FOLDS) / (n - size)
        found = {}
        for name, predicted in ((POOLED, pooled), (SEPARATE, separate), ("the true prevalence", PREVALENCE)):
            y_prob = np.broadcast_to(predicted, N_FOLDS)[fold]
            cells = cells_of_equal_predictions(y_prob)
            found[f"{name}: ECE"] = rejected(y_true, y_prob, rng, statistic=caltest.ECE(cells))
            if len(np.unique(y_prob)) > 1:
                found[f"{name}: CoxScore"] = rejected(y_true, y_prob, rng, statistic=caltest.statistics.CoxScore())
        return found

    yield from rows("folds", "prevalence of the training labels", n, 4 * count, measure)


def folds_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    rate = frame.set_index("method")["value"]
    lines = [
        (name, *(f"{rate[key]:.3f}" if (key := f"{name}: {test}") in rate else "" for test in ("ECE", "CoxScore")))
        for name in dict.fromkeys(method.partition(":")[0] for method in frame["method"])
    ]
    return table(("predictions", "`ECE`, cells of equal predictions", "`CoxScore`"), lines)


# Number of cells behind two outcomes.

TWO_OUTCOMES = {
    "temperature 1.2": Temperature(1.2),
    "temperature 1 / 1.2": Temperature(1 / 1.2),
    "shifted by 0.3 logits": Shift(1, 0.3),
    "3 bumps": Bumps(3, scale=8.0),
    "10 bumps": Bumps(10, scale=16.0),
}
N_CELLS = {
    "5": lambda n: 5,
    "10": lambda n: 10,
    "15": lambda n: 15,
    "30": lambda n: 30,
    "n^(2/5)": lambda n: round(n**0.4),
    "sqrt(n)": lambda n: round(n**0.5),
}


def cells(count: int) -> Iterator[Row]:
    """Yield the power of the ECE of two outcomes by the number of equal-width cells."""
    for setting, truth in TWO_OUTCOMES.items():
        model = DirichletModel(2, 1.0, truth)
        for n in (500, 2_000, 10_000):

            def measure(rng, model=model, n=n):
                _, y_true, y_prob = model.draw(n, rng)
                return {
                    name: rejected(y_true, y_prob[:, 1], rng, statistic=caltest.ECE(caltest.EqualWidth(number(n))))
                    for name, number in N_CELLS.items()
                }

            yield from rows("cells", setting, n, count // 2, measure)


def cells_table(frame: pd.DataFrame) -> str:
    """Return the table of the page: mean power over the sizes."""
    found = wide(frame, ["setting", "n_samples"])
    power = found.groupby("setting", sort=False).mean()
    power.loc["mean"] = power.mean()
    lines = [(name, *(f"{rate:.2f}" for rate in rates)) for name, rates in power.iterrows()]
    return table(("number of cells", *found.columns), lines)


# Number of observations.

OBSERVATIONS = (100, 500, 2_000, 5_000)
TEMPERATURES = {"1 (calibrated)": 1.0, "1.2 (over-confident)": 1.2, "1 / 1.2 (under-confident)": 1 / 1.2}


def network(temperature: float) -> ResampledPredictions:
    """Return the predictions of the bundled network, whose true probabilities are those at a temperature."""
    return ResampledPredictions(caltest.datasets.load_cifar10_vgg16()[1], Temperature(temperature), name="vgg16")


def observations(count: int) -> Iterator[Row]:
    """Yield rejection rates of the default test by the number of observations."""
    for setting, temperature in TEMPERATURES.items():
        model = network(temperature)
        for n in OBSERVATIONS:

            def measure(rng, model=model, n=n):
                _, y_true, y_prob = model.draw(n, rng)
                return {"rejected": rejected(y_true, y_prob, rng)}

            yield from rows("observations", setting, n, count, measure)


def observations_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    found = wide(frame, ["setting"], "n_samples")
    lines = [
        (name, f"{network(TEMPERATURES[name]).expected_miscalibration():.3f}", *(f"{rate:.2f}" for rate in rates))
        for name, rates in found.iterrows()
    ]
    return table(("true temperature", "expected miscalibration", *(f"n = {n:,}" for n in found.columns)), lines)


# Smallest margin of an equivalence test.


def margins(count: int) -> Iterator[Row]:
    """Yield the mean of the smallest margin that an equivalence test of a calibrated model can show."""
    model = DirichletModel(2, 1.0)
    for n in (200, 1_000, 5_000, 10_000, 50_000):

        def measure(rng, n=n):
            _, y_true, y_prob = model.draw(n, rng)
            return {"smallest margin": caltest.equivalence_test(y_true, y_prob[:, 1], 0.05).smallest_margin}

        yield from rows("margins", "uniform predictions, calibrated", n, count // 4, measure)


def margins_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    head = ("observations", *(f"{n:,}" for n in frame["n_samples"]))
    return table(head, [("mean smallest margin", *(f"{value:.3f}" for value in frame["value"]))])


# Two models on the same observations.

PAIRS = ("both calibrated", "equally over-confident", "equally shifted", "temperature 1.3 against calibrated")


def sharpened(prob, temperature):
    """Return what a model predicts that is over-confident by a temperature."""
    power = prob**temperature
    return power / power.sum(axis=1, keepdims=True)


def shifted(prob, k, logits=0.5):
    """Return predictions whose log odds of a class are wrong by a constant."""
    weighted = prob * np.exp(logits * (np.arange(prob.shape[1]) == k))
    return weighted / weighted.sum(axis=1, keepdims=True)


def draw_pair(case: str, n: int, n_classes: int, rng: np.random.Generator):
    """Return labels and predictions of two models; in the first three cases they are equally miscalibrated."""
    vague = rng.dirichlet(np.ones(n_classes), size=n)
    weight = rng.standard_gamma(4 * n_classes * vague) + 1e-300
    prob = weight / weight.sum(axis=1, keepdims=True)  # given the vague prediction, its mean is the vague prediction
    y_true = (rng.random((n, 1)) >= prob.cumsum(axis=1)[:, :-1]).sum(axis=1)
    if case == "both calibrated":
        return y_true, prob, vague
    if case == "equally over-confident":
        half = rng.random((n, 1)) < 0.5
        sharp = sharpened(prob, 2)
        return y_true, np.where(half, sharp, prob), np.where(half, prob, sharp)
    if case == "equally shifted":
        return y_true, shifted(prob, 0), shifted(prob, n_classes - 1)
    return y_true, sharpened(prob, 1.3), prob


def pairs(count: int) -> Iterator[Row]:
    """Yield rejection rates of `paired_test`."""
    for n_classes in (2, 10):
        for n in (200, 1_000, 10_000):

            def measure(rng, n_classes=n_classes, n=n):
                drawn = {case: draw_pair(case, n, n_classes, rng) for case in PAIRS}
                return {case: caltest.paired_test(*arrays).pvalue <= LEVEL for case, arrays in drawn.items()}

            yield from rows("pairs", f"{n_classes} classes", n, count if n < 10_000 else 2 * count // 4, measure)


def pairs_table(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    found = wide(frame, ["setting", "n_samples"])
    lines = [
        (f"{setting}, n = {n:,}", *(f"{rates[case]:.3f}" for case in PAIRS)) for (setting, n), rates in found.iterrows()
    ]
    return table(("", *PAIRS), lines)


STUDIES = Studies(
    "pitfalls",
    SEED,
    N_RESAMPLES,
    DATA_SETS,
    {
        "resampled": (resampled, resampled_table, "resampled-predictions.md"),
        "folds": (folds, folds_table, "reading-a-p-value.md"),
        "cells": (cells, cells_table, "choosing-a-test.md"),
        "observations": (observations, observations_table, "reading-a-p-value.md"),
        "margins": (margins, margins_table, "how-much.md"),
        "pairs": (pairs, pairs_table, "comparing-models.md"),
    },
)


if __name__ == "__main__":
    STUDIES.main("What goes wrong with tests of calibration, and how often.")
