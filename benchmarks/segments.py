"""Segments of calibrated predictions: how often is any of them called wrong, with and without adjustment?

``python -m benchmarks.segments`` measures all settings, writes docs/data/segments.csv and the table of
docs/where-miscalibrated.md. It takes some 5 minutes on one core.
"""

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import caltest
from benchmarks.markdown import table
from benchmarks.pages import Studies

SEED = 20261128
N_RESAMPLES = 199
"""The global p-value has its level with 199; far more are needed to name a segment, so that none is counted here."""
LEVEL = 0.05


class Setting(NamedTuple):
    """Numbers, levels and events of calibrated predictions."""

    n: int
    quantities: int
    categories: int
    rate: float


class Row(NamedTuple):
    """How often calibrated predictions are called wrong, and the largest difference of averages in points."""

    study: str
    n: int
    quantities: int
    categories: int
    rate: float
    segments: float
    smallest: float
    largest: float
    joint: float
    sets: int


SETTINGS = [
    Setting(500, 1, 1, 0.3),
    Setting(2_000, 2, 2, 0.3),
    Setting(2_000, 2, 2, 0.03),
]


def simulated(setting: Setting, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], pd.DataFrame]:
    """Return labels, predictions, and columns of which the predictions depend on the first."""
    quantities = rng.normal(size=(setting.n, setting.quantities))
    columns = {f"quantity {k}": values for k, values in enumerate(quantities.T)}
    columns |= {f"category {k}": rng.choice(list("abcd"), setting.n) for k in range(setting.categories)}
    odds = setting.rate / (1 - setting.rate) * np.exp(quantities[:, 0] / 2)
    prob = odds / (1 + odds)
    return (rng.random(setting.n) < prob).astype(int), prob, pd.DataFrame(columns)


def judged(setting: Setting, rng: np.random.Generator) -> tuple[float, ...]:
    """Return the number of segments, what an unadjusted list of them reports, and the joint decision."""
    y_true, y_prob, columns = simulated(setting, rng)
    options: dict[str, Any] = {"depth": 2, "statistic": caltest.KS(), "n_resamples": N_RESAMPLES, "rng": rng}
    tests = caltest.subgroup_tests(y_true, y_prob, subgroup=columns, **options)
    averages = np.array([test._about.averages for test in tests])
    return (
        len(tests),
        min(test.pvalue for test in tests) <= LEVEL + 1e-9,
        100 * np.abs(averages[:, 0] - averages[:, 1]).max(),
        tests.pvalue <= LEVEL + 1e-9,
    )


def measure(study: str, data_sets: int) -> Iterator[Row]:
    """Yield a row for each setting: those of more columns have a fifth of the data sets."""
    for setting in SETTINGS:
        rng = np.random.default_rng([SEED, zlib.crc32(repr(tuple(setting)).encode())])
        sets = max(1, data_sets // (1 if setting.quantities == 1 else 5))
        found = np.array([judged(setting, rng) for _ in range(sets)], dtype=float)
        yield Row(study, *setting, *found.mean(axis=0).tolist(), sets)


def shown(frame: pd.DataFrame) -> str:
    """Return the table."""
    rows = []
    for row in frame.to_dict("records"):
        columns = row["quantities"] + row["categories"]
        data = f"{row['n']:,} observations, {100 * row['rate']:g} % events, {columns} columns"
        rates = [f"{100 * row[name]:.1f} %" for name in ("smallest", "joint")]
        rows.append((data, f"{row['segments']:.0f}", f"{row['largest']:.1f}", *rates, f"{row['sets']:,}"))
    head = (
        *("calibrated predictions", "segments", "largest difference, points", "smallest p-value at most 5 %"),
        *("global p-value at most 5 %", "data sets"),
    )
    return table(head, rows)


STUDIES = Studies(
    program="segments",
    seed=SEED,
    n_resamples=N_RESAMPLES,
    data_sets=1000,
    studies={"calibrated": (partial(measure, "calibrated"), shown, "where-miscalibrated.md")},
)


if __name__ == "__main__":
    STUDIES.main("Segments of calibrated predictions.")
