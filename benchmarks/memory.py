"""How far the peak of memory grows beyond the loaded predictions, in a fresh process for each call (Linux)."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import problems
from benchmarks.markdown import duration, ratio, table, verdict

ROOT = Path(__file__).parents[1]
TARGETS = {"default test": 3.0}  # times the predictions
TARGET = 4.0  # of all others
STATUS = Path("/proc/self/status")
FEW = 1000  # rows, whose arrays take next to nothing

# VmHWM of the child itself: ru_maxrss would begin with what its parent had.
CHILD = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
import caltest
from caltest import *

def kilobytes(field):
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(field)).split()[1])

folder, call, n_resamples = sys.argv[1], eval("lambda **options: " + sys.argv[2]), int(sys.argv[3])
warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
y_true, y_prob = np.load(folder + "/y_true.npy"), np.load(folder + "/y_prob.npy")
before = kilobytes("VmRSS")
begin = time.perf_counter()
call(n_resamples=n_resamples, rng=0)
grown = 1024 * (kilobytes("VmHWM") - before)
print(json.dumps([grown, time.perf_counter() - begin]))
"""
ROWS = "resampling=Consistency(resample_predictions=True)"
TEST = "calibration_test(y_true, y_prob, **options{})"
CALLS = {
    "default test": TEST.format(""),
    "table of 12 lenses": "calibration_table(y_true, y_prob, **options)",
    "report": "calibration_report(y_true, y_prob, **options)",
    "confidence ECE, exact": TEST.format(", lens=Confidence(), statistic=ECE(EqualWidth(15))"),
    "canonical ECE, fixed cells, predictions fixed": TEST.format(", statistic=ECE(EqualWidth(3, axes='all'))"),
    "confidence ECE, observations resampled": TEST.format(
        f", lens=Confidence(), statistic=ECE(EqualWidth(15)), {ROWS}"
    ),
    "equal-mass cells re-fitted": TEST.format(f", lens=Confidence(), statistic=ECE(EqualMass(15)), {ROWS}"),
    "canonical ECE, fixed cells, observations resampled": TEST.format(
        f", statistic=ECE(EqualWidth(3, axes='all')), {ROWS}"
    ),
    "canonical ECE, tree re-fitted": TEST.format(f", statistic=ECE(VarianceTree()), {ROWS}"),
}


def section(n: int, n_resamples: int) -> str:
    """Return the table; memory beyond the null distribution does not depend on the number of draws."""
    if not STATUS.exists():
        return "Not measured: no /proc on this system.\n"
    rows = []
    with TemporaryDirectory() as folder:
        y_true, y_prob = problems.simplex(n)
        np.save(f"{folder}/y_true.npy", y_true)
        np.save(f"{folder}/y_prob.npy", y_prob)
        size = y_prob.nbytes
        for name, call in CALLS.items():
            grown, seconds = measure(folder, call, n_resamples)
            growth = grown / size
            target = TARGETS.get(name, TARGET)
            reached = verdict(growth <= target)
            rows.append((name, f"{grown / 2**20:.0f} MB", ratio(growth), f"{target:g}x", reached, duration(seconds)))
            print(*rows[-1], sep=" | ", flush=True)
        for name, values in (("y_true", y_true), ("y_prob", y_prob)):
            np.save(f"{folder}/{name}.npy", values[:FEW])
        loaded, _ = measure(folder, CALLS["default test"], n_resamples)
    libraries = (
        f"\nUp to {loaded / 2**20:.0f} MB of each are libraries (a default test of {FEW:,} rows): Numba loads LLVM and "
        "scipy.linalg.\n"
    )
    head = (f"{n:,} x 10 float64 ({size / 2**20:.0f} MB), {n_resamples:,} draws", "growth of the peak")
    return table((*head, "of the predictions", "target", "target is", "time"), rows) + libraries


def measure(folder: str, call: str, n_resamples: int) -> tuple[float, float]:
    """Return bytes and seconds."""
    command = [sys.executable, "-c", CHILD, folder, call, str(n_resamples)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(json.loads(ran.stdout))
