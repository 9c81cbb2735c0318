"""This checkout against another one, in the same run: ``python benchmarks/performance.py --against PATH``.

The ratios are kept in ``docs/data/speed-against.csv``, from which docs/speed-targets.md takes its table, by the
processor for which Numba compiles: that of the machine, or the one that ``NUMBA_CPU_NAME`` names.

One process of each checkout stays, and the two answer every call in turn, so that a moment in which the machine is
slow hits both: after one call that warms up, `ROUNDS` rounds or as many as take `LASTING` seconds, with the other
checkout first in every second round. The ratio is the median of the ratios of the rounds, the times are medians of
processor time. Starts are measured in fresh processes, which alternate as well. A call that a checkout does not have,
or that fails there, is left out.
"""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Self

from benchmarks import machine
from benchmarks.markdown import duration, ratio, table, verdict

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "data" / "speed-against.csv"
FIELDS = (
    "processor",
    "call",
    "seconds",
    "seconds_before",
    "ratio",
    "lower",
    "upper",
    "same_pvalue",
    "commit",
    "before",
)
ROUNDS = 15
LASTING = 8.0  # seconds, of all rounds of a call; five rounds at least
SHORTEST = 0.02  # seconds that a round lasts at least
REPEATS = 5  # fresh processes

ROWS = "resampling=caltest.Consistency(resample_predictions=True)"
TOP = "lens=caltest.Confidence()"
CALLS = {
    "default test, 9,999 draws": "caltest.calibration_test(*images, rng=0)",
    "the same, Dirichlet(1/2), 10 classes": "caltest.calibration_test(*simplex, rng=0)",
    "the same, 100 classes, 999 draws": "caltest.calibration_test(*softmax(100), n_resamples=999, rng=0)",
    "the same, 1,000 classes, 999 draws": "caltest.calibration_test(*softmax(1000), n_resamples=999, rng=0)",
    "default test, 200 observations, 99 draws": "caltest.calibration_test(*few, n_resamples=99, rng=0)",
    "confidence ECE, 15 cells, exact": f"caltest.calibration_test(*images, {TOP}, statistic=ece15)",
    "the same, 9,999 draws": (
        f"caltest.calibration_test(*images, {TOP}, statistic=ece15, method='monte-carlo', rng=0)"
    ),
    "the same, observations resampled, 999": (
        f"caltest.calibration_test(*images, {TOP}, statistic=ece15, {ROWS}, n_resamples=999, rng=0)"
    ),
    "equal-mass cells re-fitted, 999": (
        f"caltest.calibration_test(*images, {TOP}, statistic=caltest.ECE(caltest.EqualMass(15)), {ROWS}, "
        "n_resamples=999, rng=0)"
    ),
    "10 classes, fixed grid, 999 draws": "caltest.calibration_test(*simplex, statistic=grid, n_resamples=999, rng=0)",
    "the same, observations resampled": (
        f"caltest.calibration_test(*simplex, statistic=grid, {ROWS}, n_resamples=999, rng=0)"
    ),
    "tree re-fitted, 10 classes, 99": (
        f"caltest.calibration_test(*simplex, statistic=caltest.ECE(), {ROWS}, n_resamples=99, rng=0)"
    ),
    "tree re-fitted, 2 classes, 999": (
        f"caltest.calibration_test(*events, statistic=caltest.ECE(), {ROWS}, n_resamples=999, rng=0)"
    ),
    "KS of the confidence, 999 draws": (
        f"caltest.calibration_test(*images, {TOP}, statistic=caltest.KS(), n_resamples=999, rng=0)"
    ),
    "SKCE, 2,000 observations, 199 draws": (
        "caltest.calibration_test(*some, statistic=caltest.SKCE(), n_resamples=199, rng=0)"
    ),
    "SCE, 999 draws": "caltest.calibration_test(*images, statistic=caltest.statistics.SCE(), n_resamples=999, rng=0)",
    "KS of the confidence, 9,999 draws": f"caltest.calibration_test(*images, {TOP}, statistic=caltest.KS(), rng=0)",
    "confidence ECE, 1,000 cells, exact": (
        f"caltest.calibration_test(*images, {TOP}, statistic=caltest.ECE(caltest.EqualWidth(1000)))"
    ),
    "table of 12 lenses, 9,999 draws": "caltest.calibration_table(*images, rng=0)",
    "the same, Dirichlet(1/2)": "caltest.calibration_table(*simplex, rng=0)",
    "table of 12 lenses, 999 draws": "caltest.calibration_table(*images, n_resamples=999, rng=0)",
    "report, 2,000 observations, 199 draws": "caltest.calibration_report(*some, n_resamples=199, rng=0)",
    "subgroups by predicted class, 999 draws": (
        "caltest.subgroup_tests(*images, subgroup=images[1].argmax(axis=1), n_resamples=999, rng=0)"
    ),
    "comparison of 4 models": "caltest.compare_models(y_true=labels, models=models, rng=0)",
    "noise floor, 999 draws": "caltest.noise_floor(images[1], n_resamples=999, rng=0)",
    "ECE": "caltest.calibration_error(*images)",
    "l2 interval": "caltest.l2_interval(*images)",
    "bootstrap interval, 199 samples": "caltest.bootstrap_interval(*images, n_resamples=199, rng=0)",
    "reliability curve": "caltest.reliability_curve(*images)",
    "smooth reliability curve": "caltest.estimation.smooth_reliability_curve(*images, n_resamples=499, rng=0)",
    "Dirichlet recalibration, 10 classes": "caltest.recalibration.DirichletCalibration().fit(simplex[1], simplex[0])",
}
AIMS = {
    "default test, 9,999 draws": 1.5,
    "the same, Dirichlet(1/2), 10 classes": 1.96,
    "the same, 1,000 classes, 999 draws": 1.9,
    "default test, 200 observations, 99 draws": 2.2,
    "KS of the confidence, 9,999 draws": 1.4,
    "confidence ECE, 1,000 cells, exact": 3.7,
    "the same, Dirichlet(1/2)": 2.7,
    "subgroups by predicted class, 999 draws": 3.9,
    "comparison of 4 models": 2.6,
    "bootstrap interval, 199 samples": 6.4,
    "smooth reliability curve": 4.0,
    "Dirichlet recalibration, 10 classes": 2.1,
}
"""How many times as fast as commit 129b1e6 these calls were to become; all others at least 1 / 1.05."""
LEAST = 1 / 1.05
START = ("import caltest (wall clock)", "first default test in a process (wall clock)")

CHILD = """
from time import perf_counter, process_time
begin = perf_counter()
import caltest
imported = perf_counter() - begin
import functools, json, sys, warnings
from pathlib import Path
if not Path(caltest.__file__).is_relative_to(sys.argv[1]):
    sys.exit(f"caltest was imported from {caltest.__file__}.")
begin = perf_counter() - imported
images = caltest.datasets.load_cifar10_vgg16()
caltest.calibration_test(*images, rng=0)
print(json.dumps([imported, perf_counter() - begin]), flush=True)
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
prob = rng.standard_gamma(0.5, (10_000, 10))
prob /= prob.sum(axis=1, keepdims=True)
simplex = (rng.random((10_000, 1)) >= np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1), prob
@functools.cache
def softmax(n_classes):
    rng = np.random.default_rng(n_classes)
    prob = rng.standard_normal((10_000, n_classes), dtype=np.float32)
    prob = np.exp(2 * prob)
    prob /= prob.sum(axis=1, keepdims=True)
    return (rng.random((10_000, 1)) >= np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1), prob
event = rng.random(10_000)
events = rng.random(10_000) < event, event
few, some = (tuple(array[:n] for array in images) for n in (200, 2_000))
labels, models = caltest.datasets.load_digits_predictions()
ece15, grid = caltest.ECE(caltest.EqualWidth(15)), caltest.ECE(caltest.EqualWidth(3, axes="all"))
for line in sys.stdin:
    call, often = json.loads(line)
    run = eval("lambda: " + call)
    try:
        begin = process_time()
        for _ in range(often):
            answer = run()
        taken = (process_time() - begin) / often
    except (AttributeError, TypeError, ValueError) as error:
        print(call, error, file=sys.stderr)
        print("null", flush=True)
        continue
    value = getattr(answer, "pvalue", answer)
    print(json.dumps([taken, f"{value:.12g}" if isinstance(value, float) else ""]), flush=True)
"""


class Checkout:
    """A fresh process that has imported caltest from a checkout and run the default test once.

    Attributes
    ----------
    start : tuple of float
        Seconds that pass until caltest is imported, and until the first default test has ended.
    """

    def __init__(self, place: Path) -> None:
        place = place.resolve()
        self._elsewhere = TemporaryDirectory()  # the working directory comes first on the path
        command, environment = [sys.executable, "-c", CHILD, str(place)], os.environ | {"PYTHONPATH": str(place)}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self._process = subprocess.Popen(command, cwd=self._elsewhere.name, env=environment, text=True, **pipes)
        self.start = tuple(self._answer(place))

    def seconds(self, call: str, often: int = 1) -> tuple[float, str] | None:
        """Return the processor time of a call, the mean of several in a row, and its p-value; None where it fails."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([call, often]) + "\n")
        self._process.stdin.flush()
        found = self._answer(call)
        return None if found is None else (found[0], found[1])

    def _answer(self, asked: Any) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            msg = f"{asked}: {self.close()}"
            raise RuntimeError(msg)
        return json.loads(line)

    def close(self) -> str:
        """End the process; return what it has written to its standard error."""
        self._process.kill()
        errors = self._process.communicate()[1]
        self._elsewhere.cleanup()
        return errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def starts(places: list[Path], repeats: int) -> list[list[tuple[float, ...]]]:
    """Return the times of the starts of every checkout, in fresh processes that alternate."""
    found: list[list[tuple[float, ...]]] = [[] for _ in places]
    for number in range(repeats + 1):  # the first ones compile what has to be compiled
        for which, place in enumerate(places):
            with Checkout(place) as checkout:
                if number:
                    found[which].append(checkout.start)
    return found


def rounds(both: list[Checkout], call: str, lasting: float) -> tuple[list[list[float]], set[str]]:
    """Return the seconds of a call by checkout, empty where it has none, and its p-values."""
    first = [checkout.seconds(call) for checkout in both]
    answers = {found[1] for found in first if found is not None}
    if None in first:
        return [[] if found is None else [found[0]] for found in first], answers
    warm = [checkout.seconds(call) for checkout in both]
    often = max(1, round(SHORTEST / max(min(found[0] for found in warm if found), 1e-6)))
    taken: list[list[float]] = [[], []]
    begin = time.perf_counter()
    while len(taken[0]) < ROUNDS and (len(taken[0]) < 5 or time.perf_counter() - begin < lasting):
        for which in (0, 1) if len(taken[0]) % 2 else (1, 0):
            found = both[which].seconds(call, often)
            assert found is not None
            taken[which].append(found[0])
            answers.add(found[1])
    return taken, answers


def measure(
    other: Path, repeats: int = REPEATS, calls: dict[str, str] = CALLS, lasting: float = LASTING
) -> list[dict[str, str]]:
    """Return a row of `KEPT` for each call; a ratio above 1 means that this checkout is faster."""
    places = [ROOT, other]
    begun = starts(places, repeats)
    rows = [_row(name, [[start[k] for start in of] for of in begun], set()) for k, name in enumerate(START)]
    with Checkout(ROOT) as this, Checkout(other) as that:
        for name, call in calls.items():
            rows.append(_row(name, *rounds([this, that], call, lasting)))
            print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    known = {
        "processor": os.environ.get("NUMBA_CPU_NAME", "native"),
        "commit": machine.commit(),
        "before": machine.commit(other),
    }
    return [row | known for row in rows]


def _row(name: str, taken: list[list[float]], answers: set[str]) -> dict[str, str]:
    """Return medians, and the median and the quartiles of the ratios of the rounds."""
    own, theirs = ("" if not times else f"{median(times):.4g}" for times in taken)
    row = dict.fromkeys(FIELDS, "") | {"call": name, "seconds": own, "seconds_before": theirs}
    if all(taken) and len(taken[0]) > 1:
        ratios = quantiles([b / a for a, b in zip(*taken, strict=True)], n=4, method="inclusive")
        row |= {field: f"{value:.3f}" for field, value in zip(("lower", "ratio", "upper"), ratios, strict=True)}
    return row | {"same_pvalue": "" if answers <= {""} else "yes" if len(answers) == 1 else "no"}


def keep(rows: list[dict[str, str]]) -> None:
    """Write rows to `KEPT`, in place of those of the same processor."""
    others = [row for row in kept() if row["processor"] != rows[0]["processor"]]
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*others, *rows], key=lambda row: row["processor"] != "native"))


def kept() -> list[dict[str, str]]:
    """Return the rows of `KEPT`."""
    if not KEPT.exists():
        return []
    with KEPT.open(newline="") as file:
        return list(csv.DictReader(file))


def section(rows: list[dict[str, str]]) -> str:
    """Return the table: times of the processor that comes first, and the ratios of the others beside its own."""
    processors = list(dict.fromkeys(row["processor"] for row in rows))
    by_call = {(row["processor"], row["call"]): row for row in rows}
    lines = []
    for call in dict.fromkeys(row["call"] for row in rows):
        row = by_call[processors[0], call]
        times = (duration(float(row[field])) if row[field] else "" for field in ("seconds", "seconds_before"))
        others = [by_call.get((name, call), {}).get("ratio", "") for name in processors[1:]]
        aim = AIMS.get(call, LEAST)
        is_known = bool(row["ratio"])
        lines.append(
            (
                call,
                *times,
                ratio(float(row["ratio"])) if is_known else "",
                f"{float(row['lower']):.2f} to {float(row['upper']):.2f}" if is_known else "",
                *(ratio(float(other)) if other else "" for other in others),
                ratio(aim),
                verdict(float(row["ratio"]) >= aim) if is_known else "",
                row["same_pvalue"].replace("no", "**no**"),
            )
        )
    head = ("call", "now", "before", "ratio", "quartiles", *processors[1:], "aim", "aim is", "same p-value")
    return table(head, lines)
