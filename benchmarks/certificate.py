"""The certificate: which tests, lenses and sizes are measured, on how many data sets, and what came of it."""

import argparse
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import joblib
import pandas as pd

import caltest
from benchmarks import certificate_page, coverage, measured
from benchmarks.machine import ROOT, commit
from benchmarks.populations import KINDS, N_CLASSES, Population
from caltest import statistics
from caltest.predictions._sample import make_sample
from caltest.results._naming import describe
from caltest.results._progress import ProgressBar
from caltest.simulation import DirichletModel, Model, RejectionStudy, size_study
from caltest.simulation.studies._size import Battery

SEED = 20190416
AGAIN = "measured again"
"""The fact that lists rows which are newer than the others."""
TIMES = "seconds.txt"
"""In the folder of parts: how long each call took."""
N_RESAMPLES = 99
"""Exact at the three levels: (B + 1) times each is an integer."""
SIZES = (50, 100, 500, 2_000, 10_000)
REPLICATES = 10_000
FEW = 10
"""Where a test is slow, and for every test at the largest size, there are this many times fewer data sets."""

MODELS = {"3 classes": DirichletModel(3, 0.5), "10 classes": DirichletModel(10, 0.1)}
VIEWS = (
    ("3 classes", caltest.Canonical()),
    ("10 classes", caltest.Canonical()),
    ("10 classes", caltest.Confidence()),
    ("10 classes", caltest.TopK(2)),
    ("10 classes", caltest.TopRank(2)),
    ("10 classes", caltest.WithinTop(2)),
    ("10 classes", caltest.ClassWise(0)),
    ("10 classes", caltest.ClassGroups([[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]])),
)
WHOLE, TOP = caltest.Canonical(), caltest.Confidence()

POPULATIONS = {name: Population(name) for name in KINDS}
POPULATION_VIEWS = tuple(
    (name, lens) for name in KINDS for lens in ((WHOLE,) if N_CLASSES[name] == 2 else (WHOLE, TOP))
)
POPULATION_TESTS = ("ECE", "KS", "Kuiper", "Omnibus", "SquaredL2", "SKCE", "TCal", "CoxScore", "HosmerLemeshow")
"""What is measured on populations of practice, besides the ECE in 15 equal-width cells, and by Monte Carlo only."""
POPULATION_SHARES = {2_000: 0.1}
"""Of the data sets of other cells; all of them at the other sizes."""
FEWEST = 100
"""A rate of fewer data sets is hardly informative."""


@dataclass(frozen=True)
class Entry:
    """A test of the certificate.

    ``null`` is how its null distribution is found: "Monte Carlo", "exact distribution" and "finite-sample bound" are
    valid at every size, "asymptotic" and "observations resampled" are not. Up to ``full`` observations there are all
    data sets, up to ``few`` a tenth of them, beyond none. ``lenses`` restricts the lenses; otherwise it is measured
    through every lens that the test accepts.
    """

    name: str
    test: object
    null: str
    full: int = SIZES[-1]
    few: int = SIZES[-1]
    lenses: tuple | None = None

    def battery(self) -> Battery:
        """Return how the test is run."""
        return Battery.of({self.name: self.test}, **OPTIONS[self.null])

    def n_replicates(self, n_samples: int, full: int = REPLICATES) -> int:
        """Return the number of data sets of a size."""
        if n_samples > self.few:
            return 0
        return max(full // FEW, 1) if n_samples > self.full or n_samples == SIZES[-1] else full


OPTIONS = {
    "Monte Carlo": {"n_resamples": N_RESAMPLES, "resampling": None, "method": "monte-carlo"},
    "exact distribution": {"n_resamples": N_RESAMPLES, "resampling": None, "method": "exact"},
    "asymptotic": {"n_resamples": N_RESAMPLES, "resampling": None, "method": "auto"},
    "finite-sample bound": {"n_resamples": N_RESAMPLES, "resampling": None, "method": "auto"},
    "observations resampled": {
        "n_resamples": N_RESAMPLES,
        "resampling": caltest.Consistency(resample_predictions=True),
        "method": "monte-carlo",
    },
}
SLOW = {"SKCE": (500, 2_000), "SmoothECE": (50, 10_000)}
"""Statistics of which there are fewer data sets: from which size on, and how far at all (0.1 s a test)."""


def band_test(y_true, y_prob, *, lens, rng):
    """Return the p-value of `calibration_band`."""
    return caltest.calibration_band(y_true, y_prob, lens=lens, n_resamples=N_RESAMPLES, rng=rng)


def table_test(y_true, y_prob, *, rng):
    """Return the global p-value of `calibration_table` with its default lenses."""
    with warnings.catch_warnings():  # too few draws for single tests; only the global p-value counts here
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        return caltest.calibration_table(y_true, y_prob, n_resamples=N_RESAMPLES, rng=rng)


def report_test(y_true, y_prob, *, rng):
    """Return the global p-value of `calibration_report` with its default lenses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        return caltest.calibration_report(y_true, y_prob, n_resamples=N_RESAMPLES, n_kernel_resamples=19, rng=rng)


def entries() -> list[Entry]:
    """Return every test: the statistics are found in the package, the rest is listed here."""
    named = [getattr(statistics, name) for name in statistics.__all__ if name != "Statistic"]
    kinds = [kind for kind in named if isinstance(kind, type)]
    drawn = [Entry(kind.__name__, kind(), "Monte Carlo", *SLOW.get(kind.__name__, ())) for kind in kinds]
    asymptotic = {
        "Spiegelhalter, normal": (partial(caltest.spiegelhalter_test, method="asymptotic"),),
        "Hosmer-Lemeshow, chi-squared": (partial(caltest.hosmer_lemeshow_test, method="asymptotic"),),
        "Cox, score": (partial(caltest.cox_test, kind="score", method="asymptotic"),),
        "bridge, limit": (partial(caltest.bridge_test, method="asymptotic"),),
        "KS, limit": (partial(caltest.calibration_test, statistic=caltest.KS(), method="asymptotic"),),
        "Kuiper, limit": (
            partial(caltest.calibration_test, statistic=caltest.statistics.Kuiper(), method="asymptotic"),
        ),
        "SKCE, bootstrap": (
            partial(caltest.skce_test, method="asymptotic", n_resamples=N_RESAMPLES),
            *(100, 500, (WHOLE, TOP)),
        ),
        "SKCE blocks, normal": (
            partial(caltest.skce_test, statistic=caltest.SKCE(estimator="block"), method="asymptotic"),
            *(100, 2_000, (WHOLE, TOP)),
        ),
    }
    sparse = caltest.ECE(caltest.EqualWidth(10, axes="all"))
    beta = statistics.KDEError(kernel="beta")
    options = {
        "ECE, scale weight p(1-p)": (caltest.ECE(caltest.EqualWidth(15), scale_weight="p(1-p)"),),
        "KS, scale weight (1-2p)^2": (caltest.KS(scale_weight="(1-2p)^2"),),
        "KDEError, beta kernel": (beta, 0),  # 40 ms a test already of 50 observations
    }
    return [
        *drawn,
        *(Entry(name, test, "Monte Carlo", *reach) for name, (test, *reach) in options.items()),
        Entry("calibration_table, global", table_test, "Monte Carlo", 100, 2_000, (WHOLE,)),
        Entry("calibration_report, global", report_test, "Monte Carlo", 100, 2_000, (WHOLE,)),
        Entry("ECE", caltest.ECE(), "exact distribution", 100, 2_000),
        Entry("MCE", caltest.MCE(), "exact distribution", 2_000),
        Entry("HosmerLemeshow", caltest.HosmerLemeshow(), "exact distribution", 100, 500),
        Entry("calibration_band", band_test, "Monte Carlo", 500, 2_000),
        *(Entry(name, test, "asymptotic", *reach) for name, (test, *reach) in asymptotic.items()),
        Entry("ECE", caltest.ECE(), "observations resampled", 100, 10_000, (WHOLE, TOP)),
        Entry("ECE, grid of 10 per axis", sparse, "observations resampled", 100, 2_000, (WHOLE,)),
    ]


def population_entries() -> list[Entry]:
    """Return the tests that are measured on populations of practice."""
    chosen = [entry for entry in entries() if entry.null == "Monte Carlo" and entry.name in POPULATION_TESTS]
    return [*chosen, Entry("ECE, 15 equal-width cells", caltest.ECE(caltest.EqualWidth(15)), "Monte Carlo")]


def model_of(name: str) -> Model:
    """Return a model of the certificate."""
    return MODELS[name] if name in MODELS else POPULATIONS[name]


@cache
def accepts(entry: Entry, model_name: str, lens: object) -> bool:
    """Return whether a test is measured through a lens: whether it accepts a small data set."""
    if entry.lenses is not None and lens not in entry.lenses:
        return False
    if entry.test in {table_test, report_test} and model_name != "3 classes":
        return False
    _, y_true, y_prob = model_of(model_name).draw(SIZES[0], 0)
    try:
        entry.battery().pvalues(y_true, y_prob, lens, 0)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Cell:
    """Tests that are applied to the same data sets and run in the same way."""

    model: str
    lens: object
    n_samples: int
    n_replicates: int
    null: str
    tests: Mapping[str, object]

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes behind the lens."""
        _, y_true, y_prob = model_of(self.model).draw(1, 0)
        return make_sample(y_true, y_prob, lens=self.lens).n_outcomes

    def only(self, names: Sequence[str]) -> "Cell":
        """Return the cell with the named tests alone; its p-values do not depend on the others."""
        return replace(self, tests={name: test for name, test in self.tests.items() if name in names})

    def __str__(self) -> str:
        return f"{self.model}, {describe(self.lens)}, n = {self.n_samples}, {self.null}, {self.n_replicates} data sets"

    def run(self, seed: int, **options: object) -> RejectionStudy:
        """Draw and test."""
        models, lenses = {self.model: model_of(self.model)}, {describe(self.lens): self.lens}
        common = {"lenses": lenses, "levels": certificate_page.LEVELS, "rng": seed, **OPTIONS[self.null], **options}
        return size_study(models, self.tests, self.n_samples, self.n_replicates, **common)


def cells(replicates: int = REPLICATES, shares: Sequence[float] = (1.0,) * len(SIZES)) -> Iterator[Cell]:
    """Yield all cells, the cheap sizes first; of each size a share of the data sets is drawn."""
    for n, share in zip(SIZES, shares, strict=True):
        parts = [(view, entries(), 1.0) for view in VIEWS]
        parts += [(view, population_entries(), POPULATION_SHARES.get(n, 1.0)) for view in POPULATION_VIEWS]
        for (model, lens), everything, part in parts:
            groups: dict[tuple[str, int], dict[str, object]] = {}
            for entry in everything:
                count = math.ceil(entry.n_replicates(n, replicates) * share * part)
                count = max(count, min(FEWEST, replicates)) if count else 0
                if count and accepts(entry, model, lens):
                    groups.setdefault((entry.null, count), {})[entry.name] = entry.test
            for (null, count), tests in groups.items():
                yield Cell(model, lens, n, count, null, tests)


def rows_of(cell: Cell, study: RejectionStudy) -> pd.DataFrame:
    """Return one row for each test: how often it was rejected at each level."""
    frame = study.to_frame()
    design = ["model", "lens", "n_samples", "test", "n_replicates"]
    wide = frame.pivot_table(index=design, columns="level", values="rejections", sort=False).astype(int)
    wide.columns = [certificate_page.COLUMNS[level] for level in wide.columns]
    wide = wide.reset_index()
    wide.insert(4, "null", cell.null)
    return wide


def main() -> None:
    """Measure what the command line asks for, and write data and page."""
    parser = argparse.ArgumentParser(description="Rejection rates of every test under calibrated models.")
    parser.add_argument(
        "--out", type=Path, help="folder of finished parts, which goes on where it stopped; new code needs a new one"
    )
    parser.add_argument("--replicates", type=int, default=REPLICATES, help="data sets per cell (default: %(default)s)")
    parser.add_argument("--cells", default="", help="only cells whose name holds this text; without --again printed")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: all processors)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the data")
    parser.add_argument(
        "--shares", type=float, nargs=len(SIZES), default=[1.0] * len(SIZES), help="shares of the data sets, by size"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data and page")
    parser.add_argument(
        "--again", nargs="+", metavar="TEST", help="measure only these tests, and put them into the data"
    )
    parser.add_argument("--outcomes", type=int, help="only through lenses with so many outcomes")
    asked = parser.parse_args()
    if not asked.page:
        if asked.out is None:
            parser.error("--out DIR is needed to measure")
        behind_it = commit()
        chosen = [cell for cell in cells(asked.replicates, asked.shares) if asked.cells in str(cell)]
        if asked.outcomes is not None:
            chosen = [cell for cell in chosen if cell.n_outcomes == asked.outcomes]
        if asked.again:
            chosen = [cell for cell in (cell.only(asked.again) for cell in chosen) if cell.tests]
        with timed(asked.out):
            frame = measure(chosen, asked.out, asked.workers)
            if asked.again:
                data = asked.docs / "validity.csv"
                behind = "rows" if asked.outcomes is None else f"rows with {asked.outcomes} outcomes"
                data.write_text(updated(data.read_text(), frame, f"{behind} at {behind_it}"))
                write_page(asked.docs)
                return
            if asked.cells:
                print(frame.to_string(index=False))
                return
            with ProgressBar("coverage") as bar:
                covered = coverage.measure(asked.out / "intervals", SEED, asked.workers, bar)
        facts = {
            "seed": SEED,
            "commit": behind_it,
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "duration": f"{sum(map(float, (asked.out / TIMES).read_text().split())) / 3600:.1f} hours",
            "processes": joblib.effective_n_jobs(asked.workers),
            "resamples": N_RESAMPLES,
            "shares": " ".join(f"{share:g}" for share in asked.shares),
        }
        about = "# " + "; ".join(f"{name}: {fact}" for name, fact in facts.items()) + "\n"
        (asked.docs / "validity.csv").write_text(about + frame.to_csv(index=False))
        (asked.docs / "coverage.csv").write_text(about + covered.to_csv(index=False))
    write_page(asked.docs)


def write_page(docs: Path) -> None:
    """Write from the data the tables of docs/validity.md and docs/validity-table.md, and what the package holds."""
    for file, text in measured.pages(docs).items():
        file.write_text(text)
        print(f"written: {file}")


def updated(text: str, frame: pd.DataFrame, what: str) -> str:
    """Return the data with some rows measured again or for the first time, listed in line one: "rows at f08f8f2"."""
    old, facts = certificate_page.read(text)
    design = ["model", "lens", "n_samples", "test", "null"]
    again = old[design].merge(frame, on=design, how="left").set_index(old.index)
    new = again["n_replicates"].notna()
    old.loc[new] = again[new].astype(old.dtypes)
    known = frame[design].merge(old[design], how="left", indicator="known")["known"].eq("both").to_numpy()
    old = pd.concat([old, frame[~known]], ignore_index=True)
    names = ", ".join(f"{test} in {count}" for test, count in frame["test"].value_counts(sort=False).items())
    earlier = [facts[AGAIN]] if AGAIN in facts else []
    facts[AGAIN] = " and ".join([*earlier, f"{names} {what} on {datetime.now(UTC):%Y-%m-%d}"])
    return "# " + "; ".join(f"{name}: {fact}" for name, fact in facts.items()) + "\n" + old.to_csv(index=False)


@contextmanager
def timed(out: Path) -> Iterator[None]:
    """Note the seconds that a call takes, which may be one of several that finish the parts of a folder."""
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    try:
        yield
    finally:
        with (out / TIMES).open("a") as file:
            file.write(f"{time.monotonic() - begun:.0f}\n")


def measure(chosen: list[Cell], out: Path, workers: int) -> pd.DataFrame:
    """Run cells one after the other, each in a separate folder, and return their rows."""
    cost = [cell.n_replicates * len(cell.tests) * (cell.n_samples + 500) for cell in chosen]
    rows, spent = [], 0
    # Small data sets are mostly Python: processes, not threads.
    with joblib.parallel_config(backend="loky", n_jobs=workers), ProgressBar("certificate") as bar:
        for cell, own in zip(chosen, cost, strict=True):
            folder = out / str(cell).replace(", ", "-").replace(" ", "").replace("(", "").replace(")", "")

            def report(done: float, of: float, spent: float = spent, own: float = own) -> None:
                bar(spent + own * done / of, sum(cost))

            rows.append(rows_of(cell, cell.run(SEED, out=folder, progress=report)))
            spent += own
    return pd.concat(rows, ignore_index=True)
