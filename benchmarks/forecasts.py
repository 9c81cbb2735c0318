"""Forecasts in time: how often tests reject calibrated and wrong forecasts, and find residuals that are correlated.

``python -m benchmarks.forecasts`` writes docs/data/forecasts.csv and the tables of docs/forecasts.md. It takes about
a quarter of an hour on one core.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import caltest
from benchmarks.markdown import table
from benchmarks.pages import Studies
from benchmarks.streams import STREAMS, Stream, distorted

SEED = 20261127
N_RESAMPLES = 199
LEVEL = 0.05

CALIBRATED = (
    ("AR(.5)", 365, 3),
    ("AR(.8)", 100, 7),
    ("AR(.8)", 365, 7),
    ("AR(.8)", 1000, 7),
    ("AR(.95)", 100, 3),
    ("AR(.95)", 365, 7),
    ("AR(.95)", 1000, 30),
    ("Markov", 365, 7),
    ("season", 365, 7),
    ("shocks", 365, 7),
    ("batches of 50", 1000, 1),
    ("batches of 50", 1000, 4),
)
"""Streams, numbers of predictions and leads at which levels are measured."""
WRONG = (
    ("AR(.5)", 365, 3),
    ("AR(.8)", 365, 7),
    ("batches of 50", 1000, 4),
)
"""The same for predictions that are wrong in one of these ways."""
KINDS = ("shift", "slope", "region")
OVERLAPPING = (("AR(.5)", 100, 3), ("AR(.8)", 100, 3), ("AR(.8)", 365, 7), ("Markov", 100, 3))
"""The same for the test of residual correlation."""


class Row(NamedTuple):
    """How often a method rejects a stream of forecasts."""

    study: str
    stream: str
    n_samples: int
    lead: int
    wrong: str
    method: str
    rejected: float
    data_sets: int


def _blocks(stream: Stream, lead: int) -> dict[str, Any]:
    """Return stretches of time of two leads as groups."""
    return {"groups": stream.time // (2 * lead)}


METHODS: dict[str, Callable[[Stream, int], dict[str, Any]]] = {
    "as if independent": lambda stream, lead: {},
    "blocks as groups": _blocks,
    "time and lead": lambda stream, lead: {"time": stream.time, "lead": lead},
}


def level(data_sets: int) -> Iterator[Row]:
    """Measure how often the default test rejects calibrated forecasts."""
    yield from _rates("level", [(*case, "") for case in CALIBRATED], [*METHODS], data_sets)


def power(data_sets: int) -> Iterator[Row]:
    """Measure how often methods that hold their level reject wrong forecasts, on half as many data sets."""
    cases = [(*case, kind) for case in WRONG for kind in KINDS]
    yield from _rates("power", cases, [*METHODS][1:], data_sets // 2)


def _rates(study: str, cases: Any, methods: list[str], data_sets: int) -> Iterator[Row]:
    for number, (name, n, lead, kind) in enumerate(cases):
        rng = np.random.default_rng([SEED, 5 if study == "level" else 6, number])
        found = []
        for _ in range(data_sets):
            stream = STREAMS[name](rng, n, lead)
            stream = distorted(stream, kind) if kind else stream
            options = {"n_resamples": N_RESAMPLES, "rng": rng}
            found.append(
                [
                    caltest.calibration_test(
                        stream.y_true, stream.y_prob, **METHODS[method](stream, lead), **options
                    ).pvalue
                    for method in methods
                ]
            )
        for method, share in zip(methods, (np.array(found) <= LEVEL + 1e-12).mean(axis=0), strict=True):
            yield Row(study, name, n, lead, kind, method, float(share), data_sets)


def correlation(data_sets: int) -> Iterator[Row]:
    """Measure the test of residual correlation: next steps on twice as many sets, the same if wrong, and overlaps."""
    cases = [(name, n, 1, "") for name in STREAMS for n in (100, 1000) if "batch" not in name]
    cases = [case for case in cases if case[:2] != ("5 classes", 1000)]
    exact = len(cases)
    cases += [(name, 1000, 1, kind) for name in ("AR(.8)", "AR(.95)") for kind in KINDS]
    cases += [(*case, "") for case in OVERLAPPING]
    for number, (name, n, lead, kind) in enumerate(cases):
        rng = np.random.default_rng([SEED, 0, number])
        found, sets = [], 2 * data_sets if number < exact else data_sets // 2
        for _ in range(sets):
            stream = STREAMS[name](rng, n, lead)
            stream = distorted(stream, kind) if kind else stream
            found.append(
                caltest.hypothesis_tests.residual_correlation(
                    stream.y_true, stream.y_prob, time=stream.time, rng=rng
                ).pvalue
            )
        for alpha in (0.05, 0.001):
            share = float((np.array(found) <= alpha + 1e-12).mean())
            yield Row("correlation", name, n, lead, kind, f"{100 * alpha:g} %", share, sets)


def rates_table(frame: Any) -> str:
    """Return the table of a study: a row for each stream, a column for each method."""
    first = ["stream", "n_samples", "lead", "wrong"]
    methods = [*dict.fromkeys(frame["method"])]
    rows = []
    for (stream, n, lead, kind), part in frame.groupby(first, sort=False):
        rates = part.set_index("method")["rejected"]
        shown = [f"{100 * rates[method]:.1f}" for method in methods]
        rows.append((f"{stream}{f', wrong {kind}' if kind else ''}", f"{n:,}", f"{lead}", *shown))
    numbers = sorted(set(frame["data_sets"]))
    note = f"Per cent of {' to '.join(f'{number:,}' for number in numbers)} data sets.\n"
    return f"{table(('stream', 'predictions', 'lead', *methods), rows)}\n{note}"


STUDIES = Studies(
    program="forecasts",
    seed=SEED,
    n_resamples=N_RESAMPLES,
    data_sets=200,
    studies={
        "level": (level, rates_table, "forecasts.md"),
        "power": (power, rates_table, "forecasts.md"),
        "correlation": (correlation, rates_table, "forecasts.md"),
    },
)


if __name__ == "__main__":
    STUDIES.main("Forecasts in time.")
