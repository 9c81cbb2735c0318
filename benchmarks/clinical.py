"""How often do intervals of a clinical validation contain their targets, and its tests reject calibrated predictions?

``python -m benchmarks.clinical`` measures in rounds. After each it writes docs/data/clinical.csv and the pages, and a
stopped measurement goes on with the cell that has the fewest data sets. To measure a cell again, remove its lines.
All rounds take some hours on one core. Each cell and round has its own seed.
"""

import argparse
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks import clinical_page, measured
from benchmarks.clinical_studies import SEED, STUDIES, Found
from benchmarks.machine import ROOT, commit

ROUNDS = 10


class Row(NamedTuple):
    """What was found in some data sets.

    Of the kind "coverage" ``above`` and ``below`` are the numbers of intervals that lie above and below their target,
    and ``value`` is the mean width; of a "level" ``above`` is the number of p-values that are at most 5 %; of a "mean"
    ``value`` is the mean of what the measure names.
    """

    study: str
    predictions: str
    events: int
    n: int
    kind: str
    measure: str
    sets: int
    above: int
    below: int
    value: float
    rounds: int
    commit: str

    def with_one(self, found: Found) -> "Row":
        """Return the row with one more data set."""
        sets = self.sets + 1
        value = self.value + (found.value - self.value) / sets if math.isfinite(found.value) else self.value
        return self._replace(sets=sets, above=self.above + found.above, below=self.below + found.below, value=value)


KEY = ["study", "predictions", "events"]


def cells() -> Iterator[tuple[str, int]]:
    """Yield each study with the place of a design of it."""
    return ((name, place) for name, study in STUDIES.items() for place in range(len(study.designs)))


def one_round(name: str, place: int, rows: Iterable[Row], number: int, data_sets: int) -> list[Row]:
    """Return the rows of a cell after another round."""
    study = STUDIES[name]
    design = study.designs[place]
    rng = np.random.default_rng([SEED, zlib.crc32(repr((name, design)).encode()), number])
    found = {row.measure: row._replace(rounds=number + 1, commit=commit()) for row in rows}
    for _ in range(data_sets):
        for one in study.measure(design, rng):
            row = found.get(one.measure) or Row(
                name,
                design.predictions,
                design.events,
                design.n,
                one.kind,
                one.measure,
                0,
                0,
                0,
                0.0,
                number + 1,
                commit(),
            )
            found[one.measure] = row.with_one(one)
    return list(found.values())


def read_data(data: Path) -> list[Row]:
    """Return the rows of a data file; none if there is no file."""
    if not data.exists():
        return []
    frame = pd.read_csv(data, keep_default_na=False)
    return [Row(*row) for row in frame.itertuples(index=False)]


def measure(data: Path, studies: Iterable[str], rounds: int, data_sets: int | None = None) -> None:
    """Measure the rounds that a data file does not have, and write it after each cell.

    The next cell is the one with the fewest data sets, of which a thousand patients count as one, so that slow cells
    wait.
    """

    def done(cell: tuple[str, int]) -> tuple[int, float]:
        own = _of_cell(rows, *cell)
        sets = max((row.sets for row in own), default=0)
        return max((row.rounds for row in own), default=0), sets + STUDIES[cell[0]].designs[cell[1]].n / 1000

    rows = read_data(data)
    while left := [cell for cell in cells() if cell[0] in studies and done(cell)[0] < rounds]:
        name, place = min(left, key=lambda cell: done(cell)[1])
        own = _of_cell(rows, name, place)
        new = one_round(name, place, own, done((name, place))[0], data_sets or STUDIES[name].data_sets // ROUNDS)
        rows = _in_order([*(row for row in rows if row not in own), *new])
        pd.DataFrame(rows).to_csv(data, index=False, float_format="%.6g")
        rows = read_data(data)


def _of_cell(rows: Iterable[Row], name: str, place: int) -> list[Row]:
    design = STUDIES[name].designs[place]
    key = name, design.predictions, design.events
    return [row for row in rows if (row.study, row.predictions, row.events) == key]


def _in_order(rows: list[Row]) -> list[Row]:
    designs = ((name, STUDIES[name].designs[place]) for name, place in cells())
    order = {(name, design.predictions, design.events): k for k, (name, design) in enumerate(designs)}
    return sorted(rows, key=lambda row: order[row.study, row.predictions, row.events])


def main() -> None:
    """Measure what the command line asks for, and write data and pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES), help="studies to measure")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of a tenth of the data sets each")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the pages from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and pages")
    asked = parser.parse_args()
    data = asked.docs / "data" / "clinical.csv"
    if not asked.page:
        measure(data, asked.only, asked.rounds)
    for page in (asked.docs / name for name in clinical_page.PAGES):
        page.write_text(clinical_page.page(page.read_text(), pd.read_csv(data, keep_default_na=False)))
    for file, text in measured.pages(asked.docs).items():
        file.write_text(text)


if __name__ == "__main__":
    main()
