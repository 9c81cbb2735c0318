"""Tables of pages that are made from data, and the command line of programs that simulate the data."""

import argparse
import io
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from benchmarks.machine import ROOT, commit

END = "<!-- end -->\n"


def mark(program: str, name: str = "") -> str:
    """Return the line of a page below which a table stands."""
    return f"<!-- made by benchmarks/{program}.py{f': {name}' if name else ''} -->\n"


def with_table(text: str, begin: str, content: str) -> str:
    """Return the text of a page with the content below a mark; a page without the mark stays as it is."""
    before, begin, rest = text.partition(begin)
    return f"{before}{begin}\n{content}\n{END}{rest.partition(END)[2]}" if begin else text


def read(text: str) -> pd.DataFrame:
    """Return the rows of a data file; its first line says where they are from."""
    return pd.read_csv(io.StringIO(text), comment="#", keep_default_na=False)


@dataclass(frozen=True)
class Studies:
    """The studies of a program, whose data are one file of docs/data and whose tables stand in pages.

    ``studies`` has for each name a function from a number of data sets to rows whose first column is the name, a
    function from these rows to the table, and the page.
    """

    program: str
    seed: int
    n_resamples: int
    data_sets: int
    studies: Mapping[str, tuple[Callable[[int], Iterable[tuple]], Callable[[pd.DataFrame], str], str]]

    @property
    def pages(self) -> list[str]:
        """The pages with tables."""
        return sorted({page for _, _, page in self.studies.values()})

    def with_tables(self, page: str, text: str, frame: pd.DataFrame) -> str:
        """Return the text of a page with its tables made from the data."""
        for name, (_, make, place) in self.studies.items():
            own = frame[frame["study"] == name]
            if place == page and len(own):
                text = with_table(text, mark(self.program, name), make(own))
        return text

    def measure(self, names: Iterable[str], data_sets: int) -> pd.DataFrame:
        """Return the rows of some studies."""
        found: list[tuple] = []
        for name in names:
            begin = time.process_time()
            found += self.studies[name][0](data_sets)
            print(f"{name}: {time.process_time() - begin:.0f} s of processor time", flush=True)
        return pd.DataFrame(found)

    def main(self, description: str) -> None:
        """Measure what the command line asks for, and write data and tables."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument(
            "--data-sets", type=int, default=self.data_sets, help="data sets per setting (default: %(default)s)"
        )
        parser.add_argument(
            "--only", nargs="+", choices=self.studies, help="studies to run; their data is printed, not written"
        )
        parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
        parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and pages")
        asked = parser.parse_args()
        data = asked.docs / "data" / f"{self.program}.csv"
        if not asked.page:
            measured = commit()
            frame = self.measure(asked.only or self.studies, asked.data_sets)
            if asked.only:
                print(frame.to_csv(index=False))
                return
            facts = f"seed: {self.seed}; commit: {measured}; date: {datetime.now(UTC):%Y-%m-%d}"
            about = f"# {facts}; resamples: {self.n_resamples}\n"
            data.write_text(about + frame.to_csv(index=False, float_format="%.5g"))
        frame = read(data.read_text())
        for page in self.pages:
            file = asked.docs / page
            file.write_text(self.with_tables(page, file.read_text(), frame))
        print(f"written: {data}, {', '.join(self.pages)}")
