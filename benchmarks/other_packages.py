"""Calibration errors of other packages beside the call of caltest that returns the same number.

``docs/data/other-packages.csv`` has one row for each call of another package. Its words are written by hand: the two
calls, on which data sets they agree, to which precision, and why. This program writes the versions and the numbers, and
the tables of ``docs/other-packages.md`` from these rows::

    pip install '.[bench]' betacal calzone-tool netcal probmetrics pycalib
    python benchmarks/other_packages.py

Packages that are not installed keep their numbers. `rms` needs R (``apt install r-cran-rms``). ``--page`` computes
nothing. ``tests/benchmarks/test_other_packages.py`` computes the numbers of caltest on every run.
"""

import argparse
import csv
import math
import re
import subprocess
import sys
import tempfile
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # this checkout, whatever is installed

import caltest
from benchmarks.machine import ROOT
from benchmarks.pages import mark, with_table

DATA = ROOT / "docs" / "data" / "other-packages.csv"
PAGE = ROOT / "docs" / "other-packages.md"
PACKAGES = {
    "scikit-learn": ("sklearn.calibration", "sklearn.metrics"),
    "torchmetrics": ("torchmetrics.functional.classification",),
    "netcal": ("netcal.metrics",),
    "MAPIE": ("mapie.metrics.calibration",),
    "uncertainty-calibration": ("calibration",),
    "relplot": ("relplot", "relplot.metrics"),
    "probmetrics": ("probmetrics.metrics",),
    "calzone-tool": ("calzone.metrics", "calzone.utils"),
    "pycalib": ("pycalib.metrics",),
    "betacal": ("betacal",),
    "rms": (),
}
"""Distributions, and the modules whose names their calls use; rms is a package of R."""
ROOMS = (caltest.estimation, caltest.statistics, caltest)
KINDS = ("as they are", "two decimals", "0 and 1")
PRECISIONS = {"rounding": 1e-9, "tail": 1e-6, "float32": 2e-5, "fit": 1e-3}
"""The relative difference of numbers that are the same up to this."""
TINY = 1e-300
"""p-values of 0 are the smallest number that is not 0 here."""

Data = tuple[np.ndarray, np.ndarray]


def data_sets() -> dict[str, dict[str, Data]]:
    """Return labels and predictions of an event and of ten classes: without ties, on a grid, and with exact 0 and 1.

    They are those of the bundled network on CIFAR-10 at temperature 2. The event is a cat, among its 2,000 cats and
    dogs; ten classes are those of the first 2,000 images.
    """
    y, p = caltest.datasets.load_cifar10_vgg16()
    root = np.sqrt(p.astype(np.float64))
    pets = np.isin(y, (3, 5))
    cat, is_cat = root[pets, 3] / (root[pets, 3] + root[pets, 5]), (y[pets] == 3).astype(np.int64)
    y, p = y[:2000], root[:2000] / root[:2000].sum(axis=1, keepdims=True)
    top = p.max(axis=1, keepdims=True)
    event = (cat, np.rint(1 + 98 * cat) / 100, np.where(cat < 0.05, 0, np.where(cat > 0.95, 1, cat)))
    classes = (p, _hundredths(0.01 + 0.9 * p) / 100, np.where(top > 0.95, p == top, p))
    return {
        "event": {kind: (is_cat, prob) for kind, prob in zip(KINDS, event, strict=True)},
        "classes": {kind: (y, prob) for kind, prob in zip(KINDS, classes, strict=True)},
    }


def _hundredths(prob: np.ndarray) -> np.ndarray:
    """Return the nearest whole hundredths that add up to 100."""
    whole = np.floor(100 * prob)
    order = np.argsort(whole - 100 * prob, axis=1, kind="stable")
    larger = np.arange(prob.shape[1]) < np.rint(100 - whole.sum(axis=1))[:, None]
    np.put_along_axis(whole, order, np.take_along_axis(whole, order, axis=1) + larger, axis=1)
    return whole


def names(call: str, y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    """Return what a call of caltest may use."""
    used = set(re.findall(r"\w+", call))
    known = {name: getattr(room, name) for room in ROOMS for name in used.intersection(dir(room))}
    return known | _data_names(y, p)


def _data_names(y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    known = {"y": y, "p": p, "np": np, "caltest": caltest}
    if p.ndim == 2:
        known |= {"confidence": p.max(axis=1), "correct": (p.argmax(axis=1) == y).astype(np.int64)}
    return known


def here(row: dict[str, str], y: np.ndarray, p: np.ndarray) -> float:
    """Return the number of caltest, NaN where it has no such call."""
    return float(eval(row["here"], names(row["here"], y, p))) if row["here"] else math.nan


def theirs(row: dict[str, str], y: np.ndarray, p: np.ndarray) -> float | str:
    """Return the number of the other package, or the name of the error that it raises."""
    if row["package"] == "rms":
        return _in_r(row["theirs"], y, p)
    known = _data_names(y.copy(), p.copy())
    if row["package"] in ("torchmetrics", "probmetrics"):
        import torch

        known |= {"torch": torch, "y": torch.tensor(y), "p": torch.tensor(p, dtype=torch.float32)}
    for module in PACKAGES[row["package"]]:
        known |= vars(import_module(module))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(eval(row["theirs"], known))
        except (AssertionError, ArithmeticError, RuntimeError, ValueError) as error:
            return type(error).__name__


def _in_r(call: str, y: np.ndarray, p: np.ndarray) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, np.column_stack([y, p]), delimiter=",", fmt="%.17g")
        file.flush()
        code = (
            f'd <- read.csv("{file.name}", header=FALSE, colClasses="numeric"); y <- d[[1]]; p <- d[[2]]; '
            f'suppressMessages(library(rms)); cat(sprintf("%.15g", {call}))'
        )
        return float(subprocess.run(["Rscript", "-e", code], check=True, capture_output=True, text=True).stdout)


def installed(package: str) -> str:
    """Return the version that is installed, nothing if none is."""
    if package == "rms":
        try:
            code = 'cat(as.character(packageVersion("rms")))'
            return subprocess.run(["Rscript", "-e", code], check=True, capture_output=True, text=True).stdout
        except (FileNotFoundError, subprocess.CalledProcessError):
            return ""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def rows() -> list[dict[str, str]]:
    """Return the rows of the file."""
    with DATA.open(newline="") as file:
        return list(csv.DictReader(file))


def measured(row: dict[str, str], of_kind: dict[str, Data]) -> dict[str, str]:
    """Return a row with the numbers and the version that are found now."""
    found = dict(row)
    known = installed(row["package"])
    for kind, (y, p) in of_kind.items():
        found[f"here: {kind}"] = f"{here(row, y, p):.12g}"
        if known:
            number = theirs(row, y, p)
            found[f"theirs: {kind}"] = number if isinstance(number, str) else f"{number:.12g}"
    return found | ({"version": known} if known else {})


def same(row: dict[str, str], kind: str) -> bool:
    """Whether the two numbers of a data set are the same up to the precision of the row."""
    try:
        theirs, own = (float(row[f"{whose}: {kind}"]) for whose in ("theirs", "here"))
    except ValueError:  # the name of an error
        return False
    return math.isclose(theirs, own, rel_tol=PRECISIONS[row["precision"]], abs_tol=1e-15)


def agreed(row: dict[str, str]) -> list[str]:
    """Return the data sets on which the row says that the numbers agree."""
    return {"all": list(KINDS), "none": []}.get(row["agree"], row["agree"].split(", "))


def table(some: list[dict[str, str]]) -> str:
    """Return the table of the calls of one package."""
    lines = ["| there | here | " + " | ".join(KINDS) + " | why |", "|---|---|" + "---:|" * len(KINDS) + "---|"]
    for row in some:
        own = f"`{row['here']}`" if row["here"] else "none"
        lines.append(
            f"| `{row['theirs']}` | {own} | " + " | ".join(_cell(row, k) for k in KINDS) + f" | {row['why']} |"
        )
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, str], kind: str) -> str:
    theirs, own = (_shown(row[f"{whose}: {kind}"]) for whose in ("theirs", "here"))
    return theirs if same(row, kind) or own == "nan" else f"{theirs}; here {own}"


def _shown(number: str) -> str:
    try:
        value = float(number)
    except ValueError:
        return number
    return f"{0 if abs(value) < TINY else value:.5g}"


def counts(found: list[dict[str, str]]) -> str:
    """Return the table of packages: how many calls return the number of caltest on every data set, on some, on none."""
    lines = [
        "| package | version | calls | the same on all data | on some | on none |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for package in PACKAGES:
        some = [row for row in found if row["package"] == package]
        number = [len(agreed(row)) for row in some]
        shown = (len(some), number.count(3), len(some) - number.count(3) - number.count(0), number.count(0))
        lines.append(f"| {package} | {some[0]['version']} | " + " | ".join(map(str, shown)) + " |")
    return "\n".join(lines) + "\n"


def with_tables(text: str, found: list[dict[str, str]]) -> str:
    """Return the text of the page with its tables made from the rows."""
    text = with_table(text, mark("other_packages", "counts"), counts(found))
    for package in PACKAGES:
        for data, words in (("event", "An event"), ("classes", "Ten classes")):
            some = [row for row in found if (row["package"], row["data"]) == (package, data)]
            text = with_table(text, mark("other_packages", f"{package}, {data}"), f"{words}:\n\n{table(some)}")
    return text


def main() -> None:
    """Compute the numbers of the packages that are installed, and write the file and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="compute nothing: write the tables from the file")
    parser.add_argument("--only", nargs="+", choices=PACKAGES, default=list(PACKAGES), help="packages to compute")
    asked = parser.parse_args()
    found = rows()
    if not asked.page:
        data = data_sets()
        found = [measured(row, data[row["data"]]) if row["package"] in asked.only else row for row in found]
        with DATA.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    PAGE.write_text(with_tables(PAGE.read_text(), found))


if __name__ == "__main__":
    main()
