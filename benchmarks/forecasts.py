"""Forecasts in time: how often calibrated and wrong ones are rejected, and intervals miss, at any lead.

``python -m benchmarks.forecasts`` measures the cells that docs/data/forecasts.csv does not have yet, adds each to the
file when it is done, and writes the tables of docs/forecasts-evidence.md. All of them take some three hours on one
core. A cell has its own seed, so that the order of cells does not matter. To measure a cell again, remove its lines.
"""

import argparse
import csv
import zlib
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import caltest
from benchmarks.machine import ROOT, commit
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from benchmarks.streams import BATCH, STREAMS, Stream, distorted, powered

SEED = 20261127
N_RESAMPLES = 199
LEVEL = 0.05
LEADS = (1, 3, 7, 30)
SIZES = (100, 365, 1000, 10_000)
SHOWN = (365, 1000)
"""Sizes in the table of the page."""
GRID = ("AR(.9)", "AR(.95)", "Markov", "shocks", "batches of 50", "rare, 1 %", "5 classes", "AR(.5)", "season")
"""The streams of the levels; the last ones are the easier ones, and come last."""
WITH_ECE = 100
"""The size up to which the ECE is tested too at longer leads."""
KINDS = ("shift", "slope", "region")
DESIGNS = (
    ("AR(.8)", 365, 7),
    ("Markov", 365, 3),
    ("shocks", 365, 7),
    ("batches of 50", 1000, 3),
    ("rare, 1 %", 1000, 7),
    ("5 classes", 365, 7),
)
"""Streams, numbers of predictions and leads of the other methods."""


class Cell(NamedTuple):
    """What is measured at once: a stream of forecasts, which may be wrong in some way."""

    study: str
    stream: str
    n_samples: int
    lead: int
    wrong: str = ""

    @property
    def rng(self) -> np.random.Generator:
        """A generator of its own."""
        return np.random.default_rng([SEED, zlib.crc32(repr(tuple(self)).encode())])

    @property
    def is_possible(self) -> bool:
        """Whether the time is as long as the lead; what is shorter is refused."""
        return self.n_samples // (BATCH if "batch" in self.stream else 1) >= self.lead


class Row(NamedTuple):
    """How often a method rejects, or its interval misses, and how often nothing can be decided."""

    study: str
    stream: str
    n_samples: int
    lead: int
    wrong: str
    method: str
    rejected: float
    undecided: float
    data_sets: int
    commit: str


Found = dict[str, str]
"""For each method "rejected", "undecidable" or something else."""


def _designed(stream: Stream, lead: int) -> dict[str, Any]:
    return {"time": stream.time, "lead": lead}


def levels(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test by the default statistic and the ECE, on the same draws."""
    asked = {"default": None, "ECE": caltest.ECE()}
    options = _designed(stream, lead) | {"n_resamples": N_RESAMPLES, "method": "monte-carlo"}
    some = 2 if lead == 1 or len(stream.time) <= WITH_ECE else 1
    generators = [rng, deepcopy(rng)]
    return {
        name: caltest.calibration_test(
            stream.y_true, stream.y_prob, statistic=asked[name], rng=generator, **options
        ).decision
        for name, generator in [*zip(asked, generators, strict=True)][:some]
    }


def methods(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test as if labels were independent, with stretches of time of two leads as groups, and with time and lead."""
    designs = {
        "as if independent": {},
        "blocks as groups": {"groups": stream.time // (2 * lead)},
        "time and lead": _designed(stream, lead),
    }
    options = {"n_resamples": N_RESAMPLES, "rng": rng}
    return {
        name: caltest.calibration_test(stream.y_true, stream.y_prob, **design, **options).decision
        for name, design in designs.items()
    }


def power(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test by the methods that hold their level."""
    found = methods(stream, truth, lead, rng)
    return {name: found[name] for name in [*found][1:]}


def weights(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test with random weights, whose squares have twice the mean of weights of one."""
    weight = rng.exponential(size=len(stream.time))
    options = {"sample_weight": weight, "n_resamples": N_RESAMPLES, "rng": rng}
    return {
        "weights": caltest.calibration_test(stream.y_true, stream.y_prob, **_designed(stream, lead), **options).decision
    }


def subgroups(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test two subgroups, of every second prediction."""
    part = np.arange(len(stream.time)) % 2
    options = {"n_resamples": N_RESAMPLES, "rng": rng}
    found = caltest.subgroup_tests(stream.y_true, stream.y_prob, subgroup=part, **_designed(stream, lead), **options)
    return {"subgroups": found.decision}


def intervals(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Look whether the interval of the squared error misses it."""
    found = caltest.l2_interval(stream.y_true, stream.y_prob, **_designed(stream, lead))
    target = caltest.estimation.squared_l2_target(stream.y_prob, truth.y_prob, partition=found.partition)
    return {"interval": _missed(*found, target)}


def comparisons(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Look whether intervals of differences of three models miss, and whether the calibrated model is rejected."""
    models = {"right": truth.y_prob, "vague": powered(truth.y_prob, 0.6), "sharp": powered(truth.y_prob, 1.7)}
    target = {name: caltest.estimation.squared_l2_target(prob, truth.y_prob) for name, prob in models.items()}
    design = _designed(stream, lead)
    pair = caltest.paired_test(stream.y_true, models["vague"], models["sharp"], **design)
    found = caltest.compare_models(
        stream.y_true, models, statistic=caltest.ECE(), n_resamples=N_RESAMPLES, rng=rng, **design
    )
    away = [_missed(*one.simultaneous_interval, target[one.a] - target[one.b]) for one in found.pairs]
    return {
        "paired_test": _missed(*pair.confidence_interval, target["vague"] - target["sharp"]),
        "compare_models": "rejected" if "rejected" in away else "",
        "right model": "rejected" if found.models[0].pvalue_adjusted <= LEVEL else "",
    }


def _missed(low: float, high: float, target: float) -> str:
    slack = 1e-12
    return "" if low - slack <= target <= high + slack else "rejected"


def correlation(stream: Stream, truth: Stream, lead: int, rng: np.random.Generator) -> Found:
    """Test whether residuals are correlated, at two levels."""
    test = caltest.hypothesis_tests.residual_correlation
    pvalue = test(stream.y_true, stream.y_prob, time=stream.time, rng=rng).pvalue
    return {f"{100 * alpha:g} %": "rejected" if pvalue <= alpha + 1e-12 else "" for alpha in (LEVEL, 0.001)}


def _level_cells() -> Iterator[Cell]:
    """Yield the grid, the quick cells first."""
    for n in SIZES:
        for lead in LEADS:
            for name in GRID:
                yield Cell("level", name, n, lead)


def _correlation_cells() -> Iterator[Cell]:
    names = [name for name in STREAMS if "batch" not in name]
    yield from (
        Cell("correlation", name, n, 1) for n in (100, 1000) for name in names if (name, n) != ("5 classes", 1000)
    )
    yield from (Cell("correlation", name, 1000, 1, kind) for name in ("AR(.8)", "AR(.95)") for kind in KINDS)
    overlapping = (("AR(.5)", 100, 3), ("AR(.8)", 100, 3), ("AR(.8)", 365, 7), ("Markov", 100, 3))
    yield from (Cell("correlation", *one) for one in overlapping)


METHODS = (
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
POWER = (
    ("AR(.5)", 365, 3),
    ("AR(.8)", 365, 7),
    ("AR(.8)", 1000, 30),
    ("batches of 50", 1000, 4),
    ("batches of 50", 2500, 7),
)


class Study(NamedTuple):
    """A method, where it is measured, and on how many data sets."""

    measure: Callable[[Stream, Stream, int, np.random.Generator], Found]
    cells: Callable[[], Iterable[Cell]]
    data_sets: int


STUDIES: dict[str, Study] = {
    "level": Study(levels, _level_cells, 1000),
    "methods": Study(methods, lambda: (Cell("methods", *one) for one in METHODS), 400),
    "power": Study(power, lambda: (Cell("power", *one, kind) for one in POWER for kind in KINDS), 400),
    "weights": Study(weights, lambda: (Cell("weights", *one) for one in DESIGNS), 1000),
    "subgroups": Study(subgroups, lambda: (Cell("subgroups", *one) for one in DESIGNS), 1000),
    "intervals": Study(
        intervals, lambda: (Cell("intervals", *one, wrong) for one in DESIGNS for wrong in ("", "vague")), 1000
    ),
    "comparisons": Study(comparisons, lambda: (Cell("comparisons", *one) for one in DESIGNS), 1000),
    "correlation": Study(correlation, _correlation_cells, 400),
}


def cells() -> list[Cell]:
    """Return all cells; the levels of the largest data are last."""
    every = [cell for study in STUDIES.values() for cell in study.cells() if cell.is_possible]
    return sorted(every, key=lambda cell: cell.n_samples == max(SIZES))


def measure(cell: Cell, data_sets: int) -> list[Row]:
    """Return the rates of a cell, a row for each method."""
    rng, found = cell.rng, []
    for _ in range(data_sets):
        truth = STREAMS[cell.stream](rng, cell.n_samples, cell.lead)
        stream = distorted(truth, cell.wrong) if cell.wrong else truth
        found.append(STUDIES[cell.study].measure(stream, truth, cell.lead, rng))
    rows = []
    for method in found[0]:
        decisions = np.array([one[method] for one in found])
        shares = [float((decisions == word).mean()) for word in ("rejected", "undecidable")]
        rows.append(Row(*cell, method, *shares, data_sets, commit()))
    return rows


def read_data(data: Path) -> pd.DataFrame:
    """Return the rows of the data file in the order of the cells, in which they need not be measured."""
    frame = pd.read_csv(data, keep_default_na=False)
    place = {cell: number for number, cell in enumerate(cells())}
    return frame.iloc[np.argsort([place[Cell(*row)] for row in frame[[*Cell._fields]].values], kind="stable")]


def add_missing(data: Path, chosen: Iterable[Cell], data_sets: int | None = None) -> None:
    """Measure the cells that a file does not have, and add them to it one by one."""
    done = set()
    if data.exists():
        done = {Cell(*one) for one in read_data(data)[[*Cell._fields]].itertuples(index=False)}
    else:
        data.write_text(",".join(Row._fields) + "\n")
    for cell in chosen:
        if cell not in done:
            rows = measure(cell, data_sets or STUDIES[cell.study].data_sets)
            with data.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


def largest_rate(data_sets: int) -> float:
    """Return the rate above which a cell is listed: the level with four standard errors."""
    return LEVEL + 4 * float(np.sqrt(LEVEL * (1 - LEVEL) / data_sets))


def above(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are above the largest rate."""
    return frame[frame["rejected"] > frame["data_sets"].map(largest_rate)]


def levels_table(frame: pd.DataFrame) -> str:
    """Return the table of the levels of the default test: a row for each stream, a column for each size and lead."""
    default = frame[frame["method"] == "default"]
    shown = [(n, lead) for n in SHOWN for lead in LEADS]
    head = ("stream", *(f"{n:,}, lead {lead}" for n, lead in shown))
    rows = []
    for name in sorted(GRID, key=[*STREAMS].index):
        found = default[default["stream"] == name].set_index(["n_samples", "lead"])
        rows.append((name, *(_in_words(found.loc[one]) if one in found.index else "" for one in shown)))
    return f"{table(head, rows)}\n{_about(frame)}"


def _in_words(row: pd.Series) -> str:
    rate = f"{100 * row['rejected']:.1f}"
    rate = f"**{rate}**" if row["rejected"] > largest_rate(row["data_sets"]) else rate
    return rate if row["undecided"] < 0.005 else f"{rate} ({100 * row['undecided']:.0f})"


def _about(frame: pd.DataFrame) -> str:
    """Say how many rates are too large, and which."""
    limit, parts = largest_rate(int(frame["data_sets"].min())), []
    for method, part in frame.groupby("method", sort=False):
        listed = [
            f"{row.stream} n = {row.n_samples:,} lead {row.lead} ({100 * row.rejected:.1f})"
            for row in above(part).sort_values("rejected", ascending=False).itertuples()
        ]
        which = f": {'; '.join(listed)}" if listed else ""
        mean = 100 * part["rejected"].mean()
        parts.append(f"{method}: {len(listed)} of {len(part)} rates are above it (their mean is {mean:.1f}){which}.")
    sets = f"{int(frame['data_sets'].min()):,}"
    about = (
        f"Per cent of {sets} data sets; in brackets those that are undecidable. Sizes {_sizes(frame)}. The level with "
    )
    about += f"four standard errors is {100 * limit:.1f} %. "
    return about + " ".join(one[0].upper() + one[1:] for one in parts) + "\n"


def _sizes(frame: pd.DataFrame) -> str:
    return ", ".join(f"{n:,}" for n in sorted(set(frame["n_samples"])))


def power_table(frame: pd.DataFrame) -> str:
    """Return the table of groups against time and lead, a row for each stream and error."""
    methods = ("as if independent", "blocks as groups", "time and lead")
    return _rates_table(frame, methods)


def others_table(frame: pd.DataFrame) -> str:
    """Return the table of other functions on calibrated streams, a row for each stream."""
    right = frame.assign(
        method=frame["method"] + frame["wrong"].map(lambda kind: f", {kind}" if kind else ""), wrong=""
    )
    return _rates_table(right, [*dict.fromkeys(right["method"])])


def correlation_table(frame: pd.DataFrame) -> str:
    """Return the table of the test of residual correlation, a row for each stream."""
    return _rates_table(frame, [*dict.fromkeys(frame["method"])])


def _rates_table(frame: pd.DataFrame, names: Iterable[str]) -> str:
    names, rows = [*names], []
    for (stream, n, lead, kind), part in frame.groupby([*Cell._fields[1:]], sort=False):
        rates = part.set_index("method")
        shown = [_in_words(rates.loc[name]) if name in rates.index and not kind else "" for name in names]
        if kind:
            shown = [f"{100 * rates.loc[name, 'rejected']:.1f}" if name in rates.index else "" for name in names]
        rows.append((f"{stream}{f', wrong {kind}' if kind else ''}", f"{n:,}", f"{lead}", *shown))
    sets = sorted({int(number) for number in frame["data_sets"]})
    note = f"Per cent of {' to '.join(f'{number:,}' for number in sets)} data sets.\n"
    return f"{table(('stream', 'predictions', 'lead', *names), rows)}\n{note}"


TABLES: dict[str, tuple[Callable[[pd.DataFrame], str], tuple[str, ...]]] = {
    "level": (levels_table, ("level",)),
    "power": (power_table, ("methods", "power")),
    "others": (others_table, ("weights", "subgroups", "intervals", "comparisons")),
    "correlation": (correlation_table, ("correlation",)),
}
"""Tables of the page, and the studies whose rows they take."""


def with_tables(text: str, frame: pd.DataFrame) -> str:
    """Return the text of the page with its tables made from the data."""
    for name, (make, studies) in TABLES.items():
        if frame["study"].isin(studies).any():
            text = with_table(text, mark("forecasts", name), make(frame[frame["study"].isin(studies)]))
    return text


def main() -> None:
    """Measure what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description="Forecasts in time.")
    parser.add_argument("--data-sets", type=int, help="data sets per cell; by default 400 or 1,000")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and page")
    asked = parser.parse_args()
    data, page = asked.docs / "data" / "forecasts.csv", asked.docs / "forecasts-evidence.md"
    if not asked.page:
        add_missing(data, cells(), asked.data_sets)
    page.write_text(with_tables(page.read_text(), read_data(data)))


if __name__ == "__main__":
    main()
