"""What recalibration costs: ``python benchmarks/recalibration_cost.py`` writes docs/recalibration-details.md's tables.

Medians of fits on 5,000 observations of the bundled network; a study of nine methods in five folds; and 50,000
observations of 1,000 classes, each in a fresh process, with the growth of the peak of memory (Linux). Takes about
three minutes on an idle machine.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    for library in ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM"):  # small matrices: threads would wait for each other
        os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402

import caltest  # noqa: E402
from benchmarks.large import network  # noqa: E402
from benchmarks.markdown import duration, table  # noqa: E402
from benchmarks.pages import mark, with_table  # noqa: E402
from benchmarks.timing import WALL, interleaved  # noqa: E402
from caltest import recalibration as repair  # noqa: E402

SMALL = {
    "TemperatureScaling()": 20e-3,
    "VectorScaling()": None,
    "MatrixScaling()": 10,
    "DirichletCalibration()": 10,
    "PlattScaling()": None,
    "BetaCalibration()": None,
    "IsotonicCalibration()": None,
    "HistogramBinning()": None,
    "ScalingBinning()": None,
    "SplineCalibration()": 20e-3,
    "SplineCalibration(13)": 20e-3,
    "SplineCalibration(13, constrained=True)": 20e-3,
}
"""Methods, and the seconds that a fit should take at most where issue 16 of the project sets a target."""
STUDY_SECONDS, LARGE_SECONDS, LARGE_MEMORY = 180, 60, 4
LARGE = ("TemperatureScaling()", "VectorScaling()", "SplineCalibration()")
CHILD = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
import caltest
from caltest.recalibration import *

def kilobytes(field):
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(field)).split()[1])

warnings.simplefilter("ignore")
y, p = np.load(sys.argv[1] + "/y.npy"), np.load(sys.argv[1] + "/p.npy")
before, begun = kilobytes("VmRSS"), time.perf_counter()
fitted = eval(sys.argv[2]).fit(p, y)
halfway = time.perf_counter()
fitted.predict_proba(p)
taken = halfway - begun, time.perf_counter() - halfway
print(json.dumps([*taken, 1024 * (kilobytes("VmHWM") - before) / p.nbytes]))
"""


def against(value: float, target: float | None) -> str:
    """Return the target, and whether it was missed."""
    return "" if target is None else duration(target) + ("" if value <= target else ", **missed**")


def small(repeats: int) -> str:
    """Return the table of fits on 5,000 observations of ten classes."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    y_true, y_prob = y_true[:5000], y_prob[:5000].astype(float)
    known = {name: getattr(repair, name) for name in repair.__all__}
    made = {name: eval(name, known) for name in SMALL}
    runs = {name: lambda method=method: method.fit(y_prob, y_true) for name, method in made.items()}
    taken = {name: median(times) for name, times in interleaved(runs, repeats, WALL).items()}
    rows = [(f"`{name}`", duration(taken[name]), against(taken[name], target)) for name, target in SMALL.items()]
    return table(("fit to 5,000 x 10", "time", "at most"), rows)


def study(n_samples: int) -> str:
    """Return the time of a study with the nine default methods in five folds, on two threads."""
    y_true, y_prob = (values[:n_samples] for values in caltest.datasets.load_cifar10_vgg16())
    begun = time.perf_counter()
    caltest.recalibration_study(y_true, {"network": y_prob}, None, workers=2, rng=0)
    taken = time.perf_counter() - begun
    limit = against(taken, STUDY_SECONDS)
    return table(("nine methods, five folds", "time", "at most"), [(f"{n_samples:,} x 10", duration(taken), limit)])


def large(n_samples: int, n_classes: int) -> str:
    """Return the table of fits on many classes, in single precision."""
    rows = []
    with TemporaryDirectory() as folder:
        y_true, y_prob = network(n_samples, n_classes)
        np.save(f"{folder}/y.npy", y_true)
        np.save(f"{folder}/p.npy", y_prob)
        for name in LARGE:
            ran = subprocess.run(
                [sys.executable, "-c", CHILD, folder, name], cwd=ROOT, capture_output=True, text=True, check=True
            )
            fit, predict, grown = json.loads(ran.stdout)
            limits = against(fit + predict, LARGE_SECONDS), "" if grown <= LARGE_MEMORY else "**missed**"
            rows.append((f"`{name}`", duration(fit), duration(predict), limits[0], f"{grown:.1f}x", limits[1]))
    head = (f"{n_samples:,} x {n_classes:,}, float32", "fit", "predict", "both at most", "growth of memory", "4x")
    return table(head, rows)


def main() -> None:
    """Measure, and write or print the tables."""
    parser = argparse.ArgumentParser(description="What recalibration costs.")
    parser.add_argument("--quick", action="store_true", help="a smoke test that prints")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    asked = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
        tables = small(1 if asked.quick else 5), study(1000 if asked.quick else 10_000)
    made = f"{tables[0]}\n{tables[1]}\n{large(*((500, 20) if asked.quick else (50_000, 1_000)))}"
    print(made)
    if not asked.quick:
        page = asked.docs / "recalibration-details.md"
        page.write_text(with_table(page.read_text(), mark("recalibration_cost"), made))


if __name__ == "__main__":
    main()
