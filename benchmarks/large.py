"""What calls on millions of observations cost: ``python benchmarks/large.py``, a few minutes; Linux.

Every call runs in a fresh process on data that are loaded from a file: wall time, processor time, and how far the peak
of memory grows beyond the loaded arrays, as a multiple of them. The figures of docs/large-data.md come from it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from benchmarks.markdown import table  # noqa: E402

CHILD = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
import caltest

def kilobytes(field):
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith(field)).split()[1])

warnings.simplefilter("ignore", caltest.results.CalibrationWarning)
y, p = np.load(sys.argv[1] + "/y.npy"), np.load(sys.argv[1] + "/p.npy")
groups = np.arange(len(y)) // 5
weight = 1.0 + np.arange(len(y)) % 2
subgroup = np.arange(len(y)) % 4
before, wall, processor = kilobytes("VmRSS"), time.perf_counter(), time.process_time()
str(eval(sys.argv[2]))
taken = time.perf_counter() - wall, time.process_time() - processor
print(json.dumps([*taken, 1024 * (kilobytes("VmHWM") - before) / (y.nbytes + p.nbytes)]))
"""
TESTS = {
    "calibration_test": "caltest.calibration_test(y, p, workers=2, rng=0)",
    "calibration_test, groups of 5": "caltest.calibration_test(y, p, groups=groups, workers=2, rng=0)",
    "calibration_test, weights": "caltest.calibration_test(y, p, sample_weight=weight, workers=2, rng=0)",
    "calibration_table": "caltest.calibration_table(y, p, workers=2, rng=0)",
}
SINGLE = {
    "calibration_error": "caltest.calibration_error(y, p)",
    "l2_interval": "caltest.l2_interval(y, p)",
    "reliability_curve": "caltest.reliability_curve(y, p)",
    "score_decomposition": "caltest.score_decomposition(y, p)",
    "subgroup_tests, 4 subgroups": "caltest.subgroup_tests(y, p, subgroup=subgroup, workers=2, rng=0)",
}
# Of less data 9,999 draws are made, which take minutes.
STOPPED = {"gce_table": "caltest.gce_table(y, p, workers=2, rng=0)"}
MANY = {name: TESTS[name] for name in ("calibration_test", "calibration_table")} | {
    "l2_interval": SINGLE["l2_interval"],
    "compare_models, 19 draws": "caltest.compare_models(y, {'a': p, 'b': p[:, ::-1]}, n_resamples=19, rng=0)",
}


def binary(n: int, *, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and float64 predictions of a rare event, calibrated if ``shift`` is 0."""
    rng = np.random.default_rng(0)
    logit = rng.normal(-1, 1.5, n)
    prob, true = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-logit - shift))
    return (rng.random(n) < true).astype(np.int64), np.column_stack([1 - prob, prob])


def network(n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and float32 predictions of many classes, calibrated."""
    rng = np.random.default_rng(0)
    prob = np.exp(3 * rng.normal(size=(n, n_classes)).astype(np.float32))
    prob /= prob.sum(axis=1, keepdims=True)
    label = (np.cumsum(prob, axis=1) < rng.random((n, 1))).sum(axis=1)
    return np.minimum(label, n_classes - 1), prob


def measure(folder: str, call: str) -> tuple[float, float, float]:
    """Return seconds, seconds of the processors, and the growth of memory as a multiple of the data."""
    command = [sys.executable, "-c", CHILD, folder, call]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(json.loads(ran.stdout.splitlines()[-1]))


def measure_command(path: str) -> tuple[float, float]:
    """Return seconds, and those of the processors, of ``caltest test`` on a file."""
    import resource
    import time

    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "caltest.cli", "test", path], cwd=ROOT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begin, spent


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="names of problems: 1e6, 5e6, wrong or classes")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the observations")
    options = parser.parse_args()
    problems = {
        "1e6": (lambda n: binary(n, shift=0.0), 10**6, TESTS | SINGLE),
        "5e6": (lambda n: binary(n, shift=0.0), 5 * 10**6, TESTS | SINGLE | STOPPED),
        "wrong": (lambda n: binary(n, shift=0.05), 5 * 10**6, TESTS),
        "classes": (lambda n: network(n, 1000), 50_000, MANY),
    }
    rows = []
    for name, (make, n, calls) in problems.items():
        if options.only and name not in options.only:
            continue
        y, p = make(max(100, int(options.scale * n)))
        size = f"{len(p):,} x {p.shape[1]}{', miscalibrated' if name == 'wrong' else ''}"
        with TemporaryDirectory() as folder:
            np.save(f"{folder}/y.npy", y)
            np.save(f"{folder}/p.npy", p)
            for call, code in calls.items():
                wall, processor, growth = measure(folder, code)
                rows.append((size, call, f"{wall:.1f} s", f"{processor:.1f} s", f"{growth:.1f}x"))
                print(*rows[-1], sep=" | ", flush=True)
            if p.shape[1] == 2:
                import pandas as pd

                frame = pd.DataFrame({"label": y, "prob_0": p[:, 0], "prob_1": p[:, 1]})
                frame.to_parquet(f"{folder}/data.parquet")
                wall, processor = measure_command(f"{folder}/data.parquet")
                rows.append((size, "`caltest test` on Parquet", f"{wall:.1f} s", f"{processor:.1f} s", ""))
                print(*rows[-1], sep=" | ", flush=True)
    print(table(("observations x classes", "call", "time", "processor", "memory / data"), rows))


if __name__ == "__main__":
    main()
