"""What is named after a rejection: how often anything, and how often something wrong.

``python benchmarks/findings.py`` writes ``docs/data/findings.csv`` and the tables of ``docs/findings-evidence.md``, in
about ten minutes on one core. ``--page`` writes the tables from the data that is there, ``--data-sets`` sets how many
data sets are drawn in each setting.
"""

import os
import sys
import warnings
from collections import Counter
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
from scipy.special import expit, logit  # noqa: E402

import caltest  # noqa: E402
from benchmarks.groups import Design  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import Studies  # noqa: E402
from caltest.estimation.event._event_cells import EventCells  # noqa: E402
from caltest.estimation.event._regions import RegionCells, bend_pvalue  # noqa: E402
from caltest.results import Finding  # noqa: E402

SEED = 20261126
LEVEL = 0.05
N_RESAMPLES = 999
DRAWS = {"n_resamples": N_RESAMPLES, "n_exceedances": 60}
"""Draws of the test, which stop early where the p-value is above the level."""
DATA_SETS = 400

POPULATIONS: dict[str, Callable] = {
    "risks": lambda n, rng: expit(rng.normal(-1.6, 1.2, n)),
    "mild": lambda n, rng: expit(rng.normal(0, 1, n)),
    "sharp": lambda n, rng: expit(rng.normal(0, 4, n)),
    "rare, 1 %": lambda n, rng: expit(rng.normal(-5.1, 1, n)),
    "rare, 0.1 %": lambda n, rng: expit(rng.normal(-7.4, 1, n)),
    "three values": lambda n, rng: rng.choice([0.1, 0.3, 0.6], n),
    "sharp and rare": lambda n, rng: expit(rng.normal(-6, 3, n)),
    "uniform": lambda n, rng: rng.uniform(0.02, 0.98, n),
}
SIZES = 200, 2_000, 10_000
GROUPED = {
    "20 groups of 50": Design("spread", (50,) * 20, 0.1),
    "50 groups of 20": Design("spread", (20,) * 50, 0.1),
    "200 groups of 5": Design("spread", (5,) * 200, 0.3),
    "50 groups of 40, rare": Design("rare", (40,) * 50, 0.1),
}


def fitted(prob: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    """Return intercept and slope to which a logistic recalibration of these predictions converges."""
    return EventCells.of_counts(prob, np.ones(len(prob)), true).raw_fit


def centred(prob: np.ndarray, slope: float) -> np.ndarray:
    """Return true probabilities with a slope, and the mean of the predictions."""
    cells = EventCells.of_counts(prob, np.ones(len(prob)), prob)
    return expit(cells.intercept(slope, total=prob.sum()) + slope * logit(prob))


def changed(prob: np.ndarray, low: float, high: float, to: float) -> np.ndarray:
    """Return true probabilities that are equal to the predictions but between two of them."""
    return np.where((prob >= low) & (prob < high), to, prob)


ERRORS: dict[str, tuple[str, Callable]] = {
    "shift +.4": ("risks", lambda p: expit(logit(p) + 0.4)),
    "shift -.4, rare 1 %": ("rare, 1 %", lambda p: expit(logit(p) - 0.4)),
    "shift +.4, rare 0.1 %": ("rare, 0.1 %", lambda p: expit(logit(p) + 0.4)),
    "slope .75, mean right": ("risks", lambda p: centred(p, 0.75)),
    "slope 1.35, mean right": ("risks", lambda p: centred(p, 1.35)),
    "shift and slope .75": ("risks", lambda p: expit(0.1 + 0.75 * logit(p))),
    "slope .5, mean right, sharp": ("sharp", lambda p: centred(p, 0.5)),
    "S-shape": ("uniform", lambda p: expit(logit(p) + 0.8 * np.sin(1.5 * logit(p)))),
    "60 to 80 % is 52 %": ("uniform", lambda p: changed(p, 0.6, 0.8, 0.52)),
    "two regions, mean right": ("uniform", lambda p: changed(changed(p, 0.6, 0.8, 0.55), 0.2, 0.4, 0.45)),
    "5 % wrong labels": ("risks", lambda p: 0.95 * p + 0.05 * (1 - p)),
    "one of three values wrong": ("three values", lambda p: np.where(p == 0.3, 0.22, p)),
}
CLASS_ERRORS: dict[str, Callable] = {
    "calibrated": lambda q: q,
    "temperature 1.2 (over-confident)": lambda q: normalised(q ** (1 / 1.2)),
    "temperature 1/1.2 (under-confident)": lambda q: normalised(q**1.2),
    "one class shifted by -.5": lambda q: normalised(q * np.exp([-0.5, *[0] * (q.shape[1] - 1)])),
    "half of one class is another": lambda q: np.column_stack([q[:, 0] / 2, q[:, 1] + q[:, 0] / 2, q[:, 2:]]),
}


def normalised(q: np.ndarray) -> np.ndarray:
    """Return rows that sum to 1."""
    return q / q.sum(axis=1, keepdims=True)


class Row(NamedTuple):
    """Shares of data sets: rejected, with a name, with a wrong one, and what the first sentence is about."""

    study: str
    population: str
    error: str
    n_samples: int
    rejected: float
    named: float
    false: float
    first: str
    data_sets: int


class Outcome(NamedTuple):
    """What happened in one data set."""

    rejected: bool
    names: tuple[str, ...] = ()
    false: tuple[str, ...] = ()


def outcome(label, prob, rng, is_true: Callable[[Finding], bool], group=None) -> Outcome:
    """Return what the default test names."""
    test = caltest.calibration_test(label, prob, groups=group, **DRAWS, rng=rng)
    found = test.findings
    return Outcome(test.rejected, tuple(e.kind for e in found), tuple(e.kind for e in found if not is_true(e)))


def of_event(label, prob, true, rng, group=None) -> Outcome:
    """Return what is named for an event, and what of it is not there or has the wrong direction."""

    def is_true(error: Finding) -> bool:
        if error.kind in {"too extreme", "not extreme enough"}:
            slope = 1.0 if true is prob else fitted(prob, true)[1]
            return abs(slope - 1) > 1e-6 and (slope < 1) == (error.kind == "too extreme")
        inside = (prob >= error.low - 1e-9) & (prob <= error.high + 1e-9)
        gap = (true - prob)[inside].sum()
        return abs(gap) > 1e-9 * len(prob) and (gap > 0) == (error.observed > error.predicted)

    return outcome(label, prob, rng, is_true, group)


def of_classes(prob, true, rng) -> Outcome:
    """Return what is named for several classes, and what is wrong."""
    label = (rng.random(len(prob))[:, None] > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    gaps, surplus = (true - prob).sum(axis=0), np.bincount(label, minlength=prob.shape[1]) - prob.sum(axis=0)

    def is_true(error: Finding) -> bool:
        if error.kind == "totals":
            named = [int(name) for name in error.classes]
            return bool(((np.abs(gaps) > 1e-9 * len(prob)) & (gaps * surplus > 0))[named].all())
        gap = (true - prob)[np.arange(len(prob)), prob.argmax(axis=1)].sum()
        return abs(gap) > 1e-9 * len(prob) and (gap > 0) == (error.kind == "under-confident")

    return outcome(label, prob, rng, is_true)


def row(setting: tuple[str, str, str, int], count: int, measure: Callable[[np.random.Generator], Outcome]) -> Row:
    """Return the shares of one setting: study, population, error, observations."""
    seeds = np.random.SeedSequence([SEED, *", ".join(map(str, setting)).encode()]).spawn(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        found = [measure(np.random.default_rng(seed)) for seed in seeds]
    first = Counter((one.names or ("nothing",))[0] for one in found if one.rejected)
    shares = "; ".join(f"{kind} {number / count:.3f}" for kind, number in first.most_common())
    print(*setting, file=sys.stderr, flush=True)
    numbers = (np.mean([bool(getattr(one, what)) for one in found]) for what in ("rejected", "names", "false"))
    return Row(*setting, *map(float, numbers), shares, count)


def calibrated(count: int) -> Iterator[Row]:
    """Yield how often anything is named for calibrated models."""

    def measure(make: Callable, n: int) -> Callable[[np.random.Generator], Outcome]:
        def one(rng: np.random.Generator) -> Outcome:
            prob = make(n, rng)
            return of_event((rng.random(n) < prob).astype(int), prob, prob, rng)

        return one

    for n in SIZES:
        for name, make in POPULATIONS.items():
            yield row(("calibrated", name, "none", n), count, measure(make, n))


def groups(count: int) -> Iterator[Row]:
    """Yield how often anything is named for calibrated models with groups of observations."""

    def measure(design: Design) -> Callable[[np.random.Generator], Outcome]:
        def one(rng: np.random.Generator) -> Outcome:
            label, prob, group = design.sample(rng)
            event = prob[:, 1]
            return of_event(label, event, event, rng, group)

        return one

    for name, design in GROUPED.items():
        yield row(("groups", name, "none", sum(design.sizes)), count, measure(design))


def errors(count: int) -> Iterator[Row]:
    """Yield what is named for models with errors."""

    def measure(make: Callable, error: Callable) -> Callable[[np.random.Generator], Outcome]:
        def one(rng: np.random.Generator) -> Outcome:
            prob = make(2_000, rng)
            true = error(prob)
            return of_event((rng.random(2_000) < true).astype(int), prob, true, rng)

        return one

    for name, (population, error) in ERRORS.items():
        yield row(("errors", population, name, 2_000), 3 * count // 4, measure(POPULATIONS[population], error))


def bends(count: int) -> Iterator[Row]:
    """Yield how often a bend is found where a logistic recalibration repairs everything, and no gate was asked."""

    def measure(make: Callable, n: int) -> Callable[[np.random.Generator], Outcome]:
        def one(rng: np.random.Generator) -> Outcome:
            prob = make(n, rng)
            cells = EventCells.of_counts(prob, np.ones(n), rng.random(n) < expit(0.3 + 0.7 * logit(prob)))
            return Outcome(bend_pvalue(RegionCells.of(cells), rng) <= LEVEL)

        return one

    for n in SIZES:
        for name, make in POPULATIONS.items():
            yield row(("bends", name, "shift .3, slope .7", n), count, measure(make, n))


def classes(count: int) -> Iterator[Row]:
    """Yield what is named for predictions of several classes."""

    def measure(n_classes: int, error: Callable) -> Callable[[np.random.Generator], Outcome]:
        def one(rng: np.random.Generator) -> Outcome:
            prob = rng.dirichlet(np.full(n_classes, 0.5), 2_000)
            return of_classes(prob, error(prob), rng)

        return one

    for n_classes in (3, 10, 30):
        for name, error in CLASS_ERRORS.items():
            yield row(("classes", f"{n_classes} classes", name, 2_000), count // 2, measure(n_classes, error))


def calibrated_table(frame: pd.DataFrame) -> str:
    """Return the table of calibrated models: named for each number of observations."""
    found = frame.pivot(index="population", columns="n_samples", values=["rejected", "named"])
    found = found.reindex(frame["population"].drop_duplicates())
    sizes = sorted(frame["n_samples"].unique())
    lines = [
        (name, *(f"{line['rejected', n]:.3f}, {line['named', n]:.3f}" for n in sizes))
        for name, line in found.iterrows()
    ]
    return table(("predictions", *(f"n = {n:,}: rejected, named" for n in sizes)), lines)


def errors_table(frame: pd.DataFrame) -> str:
    """Return a table of errors: rejected, named, wrongly named, and what comes first."""
    several = frame["population"].str.endswith("classes").any()
    lines = [
        (
            f"{line.population}, {line.error}" if several else line.error if line.error != "none" else line.population,
            *(f"{share:.3f}" for share in (line.rejected, line.named, line.false)),
            line.first,
        )
        for line in frame.itertuples()
    ]
    return table(
        ("error" if frame["error"].iloc[0] != "none" else "groups", "rejected", "named", "wrong", "first"), lines
    )


def bends_table(frame: pd.DataFrame) -> str:
    """Return the table of bends: found for each number of observations."""
    found = frame.pivot(index="population", columns="n_samples", values="rejected")
    found = found.reindex(frame["population"].drop_duplicates())
    lines = [(name, *(f"{share:.3f}" for share in line)) for name, line in found.iterrows()]
    return table(("predictions", *(f"n = {n:,}" for n in found.columns)), lines)


STUDIES = Studies(
    "findings",
    SEED,
    N_RESAMPLES,
    DATA_SETS,
    {
        "calibrated": (calibrated, calibrated_table, "findings-evidence.md"),
        "groups": (groups, errors_table, "findings-evidence.md"),
        "errors": (errors, errors_table, "findings-evidence.md"),
        "bends": (bends, bends_table, "findings-evidence.md"),
        "classes": (classes, errors_table, "findings-evidence.md"),
    },
)


if __name__ == "__main__":
    STUDIES.main("What is named after a rejection.")
