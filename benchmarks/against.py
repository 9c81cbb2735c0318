"""This checkout against another one, in the same run: ``python benchmarks/performance.py --against PATH``.

Fresh processes of the two checkouts alternate. Each runs every call once to warm up and then for at least `LASTING`
seconds of processor time; medians of the medians of the processes count. A call that a checkout does not have, or that
fails there, is left out.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.markdown import duration, ratio, table

ROOT = Path(__file__).parents[1]
LASTING = 0.3  # seconds of processor time
REPEATS = 5

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
    "table of 12 lenses, 9,999 draws": "caltest.calibration_table(*images, rng=0)",
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
}
START = {
    "import caltest (wall clock)": "",
    "first default test in a process (wall clock)": "caltest.calibration_test(*images, rng=0)",
}

CHILD = """
from time import perf_counter, process_time
begin = perf_counter()
import caltest
imported = perf_counter() - begin
import functools, json, sys, warnings
from pathlib import Path
if not Path(caltest.__file__).is_relative_to(sys.argv[4]):
    sys.exit(f"caltest was imported from {caltest.__file__}.")
begin = perf_counter() - imported
images = caltest.datasets.load_cifar10_vgg16()
caltest.calibration_test(*images, rng=0)
first = perf_counter() - begin
from statistics import median
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
prob = rng.standard_gamma(0.5, (10_000, 10))
prob /= prob.sum(axis=1, keepdims=True)
simplex = (rng.random((10_000, 1)) >= np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1), prob
@functools.cache
def softmax(n_classes):
    prob = rng.standard_normal((10_000, n_classes), dtype=np.float32)
    prob = np.exp(2 * prob)
    prob /= prob.sum(axis=1, keepdims=True)
    return (rng.random((10_000, 1)) >= np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1), prob
event = rng.random(10_000)
events = rng.random(10_000) < event, event
few, some = (tuple(array[:n] for array in images) for n in (200, 2_000))
labels, models = caltest.datasets.load_digits_predictions()
ece15, grid = caltest.ECE(caltest.EqualWidth(15)), caltest.ECE(caltest.EqualWidth(3, axes="all"))
taken, answers = {}, {}
for name, call in json.loads(sys.argv[1]).items():
    run = eval("lambda: " + call)
    try:
        answer = run()
    except (AttributeError, TypeError, ValueError) as error:
        print(name, error, file=sys.stderr)
        continue
    times = []
    while not times or sum(times) < float(sys.argv[2]):
        begin = process_time()
        run()
        times.append(process_time() - begin)
    taken[name] = median(times)
    value = getattr(answer, "pvalue", answer)
    answers[name] = f"{value:.12g}" if isinstance(value, float) else ""
start = dict(zip(json.loads(sys.argv[3]), (imported, first)))
print(json.dumps({"taken": start | taken, "answers": answers}))
"""


def measure(checkout: Path, calls: dict[str, str], lasting: float) -> dict:
    """Return the seconds of every call, in a fresh process that imports caltest from a checkout."""
    place = checkout.resolve()
    command = [sys.executable, "-c", CHILD, json.dumps(calls), str(lasting), json.dumps(list(START)), str(place)]
    environment = os.environ | {"PYTHONPATH": str(place)}
    with TemporaryDirectory() as elsewhere:  # the working directory comes first on the path
        ran = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        msg = f"{checkout}: {ran.stderr}"
        raise RuntimeError(msg)
    return json.loads(ran.stdout)


def section(other: Path, repeats: int = REPEATS, calls: dict[str, str] = CALLS, lasting: float = LASTING) -> str:
    """Return the table of medians and ratios; a ratio above 1 means that this checkout is faster."""
    places = {"this": ROOT, "other": other}
    runs: dict[str, list[dict]] = {name: [] for name in places}
    for place in places.values():
        measure(place, {}, 0)  # compiles what has to be compiled
    for number in range(repeats):
        order: Sequence[str] = list(places) if number % 2 else list(places)[::-1]
        for name in order:
            runs[name].append(measure(places[name], calls, lasting))
    rows = []
    for call in (*START, *calls):
        own, theirs = ([run["taken"][call] for run in runs[name] if call in run["taken"]] for name in places)
        if not own or not theirs:
            rows.append((call, *("" if not times else duration(median(times)) for times in (own, theirs)), "", ""))
            continue
        answers = {run["answers"].get(call, "") for found in runs.values() for run in found}
        same = "" if answers == {""} else "yes" if len(answers) == 1 else "**no**"
        rows.append((call, duration(median(own)), duration(median(theirs)), ratio(median(theirs) / median(own)), same))
    return table(("call", "this checkout", "the other one", "ratio", "same p-value"), rows)
