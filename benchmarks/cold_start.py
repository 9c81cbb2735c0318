"""How long a user waits in a fresh process: ``python benchmarks/cold_start.py``.

Each time is taken inside a process of its own, from before the import, the kinds interleaved; medians of 7. One run
beforehand fills Numba's cache and Python's bytecode.
"""

import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
REPEATS = 7
TIMED = """
from time import perf_counter
begin = perf_counter()
{code}
print(perf_counter() - begin)
"""
FIRST_TEST = """
import caltest
caltest.calibration_test(*caltest.datasets.load_cifar10_vgg16(), {options}rng=0)
"""
RUNS = {
    "import numba": ("import numba", None),
    "import caltest": ("import caltest", 1.5),
    "first default test, import included": (FIRST_TEST.format(options=""), 5.0),
    "first default test of 99 resamples": (FIRST_TEST.format(options="n_resamples=99, "), None),
}


def seconds(code: str) -> float:
    """Run the code in a fresh process and return the time that it took there."""
    command = [sys.executable, "-c", TIMED.format(code=code)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(ran.stdout)


def main() -> None:
    """Print medians and their ratios to ``import numba``."""
    for code, _ in RUNS.values():
        seconds(code)
    taken = {name: [] for name in RUNS}
    for _ in range(REPEATS):
        for name, (code, _) in RUNS.items():
            taken[name].append(seconds(code))
    unit = median(taken["import numba"])
    for name, (_, target) in RUNS.items():
        wanted = f"   target at most {target:g} x" if target else ""
        row = f"{median(taken[name]):6.3f} s (min {min(taken[name]):.3f}) {median(taken[name]) / unit:6.2f} x{wanted}"
        print(f"{name:<36} {row}")


if __name__ == "__main__":
    main()
