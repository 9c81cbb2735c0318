"""How long a user waits in a fresh process: ``python benchmarks/cold_start.py``.

Each time is taken inside a separate process, from before the import, the kinds interleaved; medians. One run
beforehand fills Numba's cache and Python's bytecode. For a cold cache every process gets an empty folder. What first
calls compile is taken in processor time of the thread that compiles; `MOST_COMPILED` bounds it, and a test asks for it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from benchmarks.markdown import duration, ratio, table, verdict  # noqa: E402

REPEATS = 7
TIMED = """
from time import perf_counter
begin = perf_counter()
{code}
print(perf_counter() - begin)
"""
DATA = "import caltest\narrays = caltest.datasets.load_cifar10_vgg16()\n"
DEFAULT = DATA + "caltest.calibration_test(*arrays, {options}rng=0)"
CONFIDENCE = DATA + (
    "ece = caltest.ECE(caltest.EqualWidth(15))\n"
    "caltest.calibration_test(*arrays, lens=caltest.Confidence(), statistic=ece, {options}rng=0)"
)
COMMAND = 'from caltest.cli import main\nmain(["test", "--workers", "1"])'
SIMPLEX = """
import caltest, matplotlib, numpy
matplotlib.use("Agg")
y_prob = numpy.random.default_rng(0).dirichlet(numpy.full(1_000, 0.5), 2_000)
labels = y_prob.argmax(axis=1)
caltest.simplex_diagram(labels, y_prob, lens=caltest.TopK(2), rng=0).plot()
"""
COUNT_CACHE = """
import json, sys
hits = misses = 0
for module in [module for name, module in sys.modules.items() if name.startswith("caltest._compiled.")]:
    for kernel in vars(module).values():
        if hasattr(kernel, "stats"):
            hits += sum(kernel.stats.cache_hits.values())
            misses += sum(kernel.stats.cache_misses.values())
print(json.dumps([hits, misses]))
"""
# Seconds of every kernel that is compiled, for other types again; what it compiles for itself is counted as its own.
COUNT_COMPILED = """
import contextlib, io, json, time
from numba.core import event
taken, begun = dict(), []
class Compilations(event.Listener):
    def on_start(self, started):
        begun.append(time.thread_time())
    def on_end(self, ended):
        seconds = time.thread_time() - begun.pop()
        if not begun:
            name = ended.data["dispatcher"].py_func.__name__
            taken[name + " again" * (name in taken)] = seconds
event.register("numba:compile", Compilations())
with contextlib.redirect_stdout(io.StringIO()):
    {code}
print(json.dumps(taken))
"""
IMPORTS = "import caltest; from caltest.cli import main; y, p = caltest.datasets.load_cifar10_vgg16(); "
FIRST_CALLS = {
    "`caltest test`": 'main(["test", "--workers", "1"])',
    "`calibration_test`, ten classes": "caltest.calibration_test(y, p, rng=0)",
    "`calibration_test`, two classes": "caltest.calibration_test(y == 3, p[:, 3], rng=0)",
}
MOST_COMPILED = dict(zip(FIRST_CALLS, (8, 7, 7), strict=True))
MOST_KERNELS = 147
"""Functions in `caltest/_compiled` that are compiled alone; a new one replaces another one, or two.

A heap, for smooth calibration errors, is two functions and the loop that calls them. Logistic regressions have one,
because batches of NumPy waited for their slowest fit, 8 to 35 times longer. Departures of the default test have one of
their own (`tally_lines`), 3 to 4 times as fast as the general one, which takes its place in a first default test.
"""
COMPILING = 6.0  # seconds of a first `caltest test`


class Run(NamedTuple):
    """What is timed in a process; ``target`` in units of ``import numba``, ``within`` in seconds."""

    code: str
    target: float | None = None
    cold: bool = False
    within: float | None = None

    def judge(self, own: float, unit: float) -> tuple[str, str]:
        """Return the target and whether it is reached."""
        if self.within is not None:
            return f"<= {duration(self.within)}", verdict(own <= self.within)
        return ("", "") if self.target is None else (f"<= {self.target:g}x", verdict(own <= self.target * unit))


RUNS = {
    "import numba": Run("import numba"),
    "import caltest": Run("import caltest", 1.5),
    "first default test, import included": Run(DEFAULT.format(options=""), 4.0),
    "first default test of 99 resamples": Run(DEFAULT.format(options="n_resamples=99, ")),
    "first confidence-ECE test, exact": Run(CONFIDENCE.format(options="")),
    "the same, cold cache": Run(CONFIDENCE.format(options=""), 8.0, cold=True),
    "first confidence-ECE test, drawn": Run(CONFIDENCE.format(options="method='monte-carlo', ")),
    "the same with a cold cache": Run(CONFIDENCE.format(options="method='monte-carlo', "), 8.0, cold=True),
    "`caltest test`, compiled before": Run(COMMAND, within=1.1),
    "first simplex picture of 1,000 classes, cold cache": Run(SIMPLEX, within=4.0, cold=True),
}


def in_fresh_process(code: str, cache: str | None = None) -> str:
    """Return what the code prints."""
    # An installed package has bytecode, whatever the environment of this process says.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


def seconds(run: Run) -> float:
    """Run the code in a fresh process and return the time that it took there."""
    code = TIMED.format(code=run.code)
    if not run.cold:
        return float(in_fresh_process(code).split()[-1])
    with TemporaryDirectory() as empty:
        return float(in_fresh_process(code, empty).split()[-1])


def cache_use(code: str) -> list[tuple[int, int]]:
    """Return hits and misses of Numba's cache in a first and a second process that share a new one."""
    with TemporaryDirectory() as empty:
        return [tuple(json.loads(in_fresh_process(code + COUNT_CACHE, empty))) for _ in range(2)]


def compiled_first(call: str) -> dict[str, float]:
    """Return the seconds of every kernel that the first of some calls compiles, the slowest one first."""
    with TemporaryDirectory() as empty:
        taken = json.loads(in_fresh_process(COUNT_COMPILED.format(code=IMPORTS + FIRST_CALLS[call]), empty))
    return dict(sorted(taken.items(), key=lambda kernel: -kernel[1]))


def n_kernels() -> int:
    """Return how many functions in `caltest/_compiled` are compiled alone, not into their callers."""
    files = (ROOT / "caltest" / "_compiled").glob("*.py")
    pattern = re.compile(r"^@(kernel|inner|reduction)\b", re.MULTILINE)
    return sum(len(pattern.findall(file.read_text(encoding="utf-8"))) for file in files)


def section(repeats: int = REPEATS) -> str:
    """Return the table of medians and their ratios to ``import numba``, and what the second process compiles."""
    for run in RUNS.values():
        seconds(run)
    taken = {name: [] for name in RUNS}
    for _ in range(repeats):
        for name, run in RUNS.items():
            taken[name].append(seconds(run))
    unit = median(taken["import numba"])
    rows = []
    for name, run in RUNS.items():
        own = median(taken[name])
        rows.append((name, duration(own), ratio(own / unit), *run.judge(own, unit)))
    (_, compiled), (hits, misses) = cache_use(CONFIDENCE.format(options="") + "\n" + DEFAULT.format(options=""))
    second = (
        f"\nOn a new cache the exact confidence-ECE test and the default test compile {compiled} kernels in the first "
        f"process; the second has {hits} hits and {misses} misses.\n"
    )
    first = f"\nThere are {n_kernels()} kernels, at most {MOST_KERNELS}.\n"
    for call, most in MOST_COMPILED.items():
        taken = compiled_first(call)
        total = sum(taken.values())
        slowest = ", ".join(f"{name} {duration(seconds)}" for name, seconds in list(taken.items())[:6])
        target = f", target: {COMPILING:g} s, {verdict(total <= COMPILING)}" if call == "`caltest test`" else ""
        first += (
            f"A first {call} compiles {len(taken)} of them (at most {most}) in {duration(total)}{target}; the slowest: "
            f"{slowest}.\n"
        )
    return table(("in a fresh process", "time", "to import numba", "target", "target is"), rows) + second + first


if __name__ == "__main__":
    print(section())
