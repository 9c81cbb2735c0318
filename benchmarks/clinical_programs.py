"""Numbers that programs for clinical validation print in their manuals, beside those of caltest.

``docs/data/clinical-programs.csv`` has one row for each printed number, written by hand: where it is printed, the call
here, and whether both are the same to all printed digits. This program writes the tables of
``docs/clinical-programs.md`` from it, with numbers that it computes::

    python benchmarks/clinical_programs.py

The data are made from seeds as in R (``tests/reference/recipes.py``).
"""

import csv
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # this checkout, whatever is installed

import caltest
from benchmarks.machine import ROOT
from benchmarks.pages import mark, with_table
from tests.reference import recipes

DATA = ROOT / "docs" / "data" / "clinical-programs.csv"
PAGE = ROOT / "docs" / "clinical-programs.md"
TESTS = (
    "giviti_belt",
    "hosmer_lemeshow_test",
    "osius_rojek_test",
    "spiegelhalter_test",
    "stukel_test",
    "sum_of_squares_test",
)
CURVES = [(name, getattr(caltest.statistics, name)) for name in ("ICI", "E90", "Emax")]
RECIPES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "`set.seed(123)`, own risks": recipes.resource_selection,
    "`set.seed(43657)`, own risks": recipes.stats_geek,
    "`mtcars`, am ~ wt + hp": lambda: recipes.mtcars("am", "wt", "hp"),
    "`mtcars`, vs ~ wt + mpg": lambda: recipes.mtcars("vs", "wt", "mpg"),
    "`colon`, 5-year deaths": recipes.colon,
    "`gof_demo`, own risks": recipes.gof_demo,
    "`set.seed(1)`, fitted": recipes.uniform_feature,
    "`set.seed(1)`, square left out": lambda: recipes.uniform_feature(bent=True),
    "`set.seed(1)`, published model": recipes.frozen,
    "`sim_dat`, published model": recipes.pmcalibration,
    "sequential trials": recipes.sequential_trials,
    "`testdata`": lambda: recipes.calibration_curves(1782, 1000),
    "`set.seed(1783)`, new patients": lambda: recipes.calibration_curves(1783, 500),
}


def as_printed(value: float, text: str) -> str:
    """A number with as many decimals as a printed one, or, in scientific notation, as many digits."""
    mantissa, *exponent = text.split("e")
    return f"{value:.{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}}"


def names(y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    """What the calls of rows may use: labels y and risks p, the measures m of both, and hl(g) for g groups."""
    measures = caltest.clinical.clinical_calibration(y, p, n_resamples=19, rng=0)

    def hl(groups: int) -> Any:
        edges = caltest.Edges(np.unique(np.quantile(p, np.arange(groups + 1) / groups))[1:-1], closed="right")
        return caltest.hosmer_lemeshow_test(y, p, partition=edges, covariance="mean", method="asymptotic")

    return {
        **{name: getattr(caltest.hypothesis_tests, name) for name in TESTS},
        "y": y,
        "p": p,
        "n": len(y),
        "np": np,
        "chi2": stats.chi2,
        "expit": special.expit,
        "logit": special.logit,
        "m": {one.name: one.estimate for one in measures},
        "w": {f"{name}": float(caltest.calibration_error(y, p, statistic=index("lowess"))) for name, index in CURVES},
        "hl": hl,
        "t": np.arange(1, 2000) / 2000,
    }


def rows() -> list[dict[str, str]]:
    """Return the rows of the file."""
    with DATA.open(newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def _names_of(data: str) -> dict[str, Any]:
    return names(*RECIPES[data]())


def here(row: dict[str, str]) -> float:
    """Return the number of caltest."""
    return float(eval(row["here"], dict(_names_of(row["data"]))))


def table(some: list[dict[str, str]]) -> str:
    """Return the table of one program."""
    lines = ["| data | quantity | here | printed | caltest |", "|---|---|---|---:|---:|"]
    for row in some:
        why = f" ({row['differs']})" if row["differs"] else ""
        lines.append(
            f"| {row['data']} | {row['quantity']}{why} | `{row['here']}` | {row['printed']} "
            f"| {as_printed(here(row), row['printed'])} |"
        )
    return "\n".join(lines) + "\n"


def with_tables(text: str) -> str:
    """Return the text of the page with its tables."""
    found = rows()
    for program in dict.fromkeys(row["program"] for row in found):
        some = [row for row in found if row["program"] == program]
        text = with_table(text, mark("clinical_programs", program), table(some))
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
