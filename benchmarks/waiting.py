"""How long a user waits for a call, by observations and classes, and how much memory it needs (Linux).

A fresh process for each call runs it once on small data, so that nothing is compiled later, and then on data of every
size, with the defaults of the call; times are medians of three, of one call where it takes longer than 5 s. A row ends
where a call would take too long to measure.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.markdown import duration, table

ROOT = Path(__file__).parents[1]
LONGEST = 20.0  # seconds of a call that is still measured
CONFIDENCE = "lens=caltest.Confidence()"
CALLS = {
    "calibration_error": "caltest.calibration_error(y, p)",
    "calibration_test": "caltest.calibration_test(y, p, rng=0)",
    "calibration_test, 999 draws": "caltest.calibration_test(y, p, n_resamples=999, rng=0)",
    "calibration_test, ECE of the confidence": (
        f"caltest.calibration_test(y, p, {CONFIDENCE}, statistic=caltest.ECE(caltest.EqualWidth(15)), rng=0)"
    ),
    "calibration_test, KS of the confidence": (
        f"caltest.calibration_test(y, p, {CONFIDENCE}, statistic=caltest.KS(), rng=0)"
    ),
    "calibration_test, SKCE (199 draws)": (
        "caltest.calibration_test(y, p, statistic=caltest.SKCE(), n_resamples=199, rng=0)"
    ),
    "l2_interval": "caltest.l2_interval(y, p)",
    "bootstrap_interval (999 samples)": "caltest.bootstrap_interval(y, p, n_resamples=999, rng=0)",
    "reliability_curve": "caltest.reliability_curve(y, p)",
    "calibration_table (12 lenses)": "caltest.calibration_table(y, p, rng=0)",
    "calibration_report": "caltest.calibration_report(y, p, rng=0)",
    "subgroup_tests, 5 subgroups": "caltest.subgroup_tests(y, p, subgroup=np.arange(len(y)) % 5, rng=0)",
    "compare_models, 2 models": "caltest.compare_models(y, {'a': p, 'b': other}, rng=0)",
    "TemperatureScaling().fit": "caltest.recalibration.TemperatureScaling().fit(p, y)",
    "DirichletCalibration().fit": "caltest.recalibration.DirichletCalibration().fit(p, y)",
    "clinical_calibration": "caltest.clinical_calibration(y, p, rng=0)",
}
SIZES = (
    (1_000, 2),
    (10_000, 2),
    (100_000, 2),
    (1_000, 10),
    (10_000, 10),
    (100_000, 10),
    (1_000_000, 10),
    (10_000, 100),
)
CHILD = """
import json, sys, time, warnings
import numpy as np
import caltest
warnings.simplefilter("ignore")
run, longest = eval("lambda y, p, other: " + sys.argv[1]), float(sys.argv[2])

def kilobytes(field):
    with open("/proc/self/status") as lines:
        return int(next(line for line in lines if line.startswith(field)).split()[1])

def data(n, k):
    rng = np.random.default_rng(0)
    p = rng.standard_gamma(0.5, (n, k))
    p /= p.sum(axis=1, keepdims=True)
    truth = 0.95 * p + 0.05 / k
    y = (rng.random((n, 1)) >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    other = 0.9 * p + 0.1 / k
    return (y, p, other) if k > 2 else (y, p[:, 1].copy(), other[:, 1].copy())

found, rates = [], {}
for n, k in json.loads(sys.argv[3]):
    few = data(min(n, 300), k)
    if rates.get(k, 0.0) * n > longest:
        found.append(None)
        continue
    try:
        run(*few)
        arrays = data(n, k)
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # the peak begins with what is there now
        before = kilobytes("VmRSS")
        times = []
        while len(times) < 3 and sum(times) < 2:
            begin = time.process_time()
            run(*arrays)
            times.append(time.process_time() - begin)
        found.append([sorted(times)[len(times) // 2], 1024 * (kilobytes("VmHWM") - before) / arrays[1].nbytes])
    except (TypeError, ValueError, MemoryError) as error:
        print(sys.argv[1], n, k, error, file=sys.stderr)
        found.append(None)
        continue
    rates[k] = found[-1][0] / n
print(json.dumps(found))
"""


def section(sizes: tuple[tuple[int, int], ...] = SIZES, longest: float = LONGEST, calls: dict[str, str] = CALLS) -> str:
    """Return tables of processor time, for two classes and for more, and of memory at the largest size measured."""
    rows = []
    for name, call in calls.items():
        command = [sys.executable, "-c", CHILD, call, str(longest), json.dumps(sizes)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        found = json.loads(ran.stdout)
        largest = max((k for k, one in enumerate(found) if one is not None), key=lambda k: sizes[k][0] * sizes[k][1])
        n, n_classes = sizes[largest]
        memory = f"{found[largest][1]:.1f} ({n:,} x {n_classes})"
        rows.append((f"`{name}`", *("" if one is None else duration(one[0]) for one in found), memory))
        print(*rows[-1], sep=" | ", flush=True)
    return in_parts(sizes, rows)


def in_parts(sizes: tuple[tuple[int, int], ...], rows: list[tuple[str, ...]]) -> str:
    """Return tables for two classes, for more, and of memory, of rows of all: one would be too wide for the page."""
    head = ("observations x classes", *(f"{n:,} x {k}" for n, k in sizes), "memory")
    two = [place for place, (_, k) in enumerate(sizes, start=1) if k == 2]
    more = [place for place, (_, k) in enumerate(sizes, start=1) if k > 2]
    parts = []
    for places in (two, more, [len(sizes) + 1]):
        some = [tuple(row[k] for k in (0, *places)) for row in rows if any(row[k] for k in places)]
        parts.append(table(tuple(head[k] for k in (0, *places)), some))
    return "\n".join(parts)
