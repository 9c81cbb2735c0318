"""The public call against the NumPy loops, case by case, the exact null distribution, and tests in time."""

from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

import caltest
from benchmarks import problems
from benchmarks.cases import CASES, CONFIDENCE, WIDE, Case, disagreement
from benchmarks.loops import confidence
from benchmarks.markdown import duration, ratio, table, verdict
from benchmarks.streams import BATCH, classes, exceedances
from benchmarks.timing import Cost, costs, interleaved

OWN_SECONDS = 3.0  # a public call that takes longer is measured on fewer resamples
AGREE_RESAMPLES = 400
IN_TIME = ((1, BATCH), (3, 1), (7, 1), (7, BATCH), (30, 1))
"""Leads, and predictions of the same time."""
N_IN_TIME = 100_000_000  # labels that are drawn for a test in time
EXACT_TARGETS = {10_000: 0.015, 1_000_000: 0.15}


@dataclass(frozen=True)
class Measured:
    """Costs of a case by name, "caltest" first."""

    case: Case
    n_samples: int
    costs: dict[str, Cost]


def measure(case: Case, n_resamples: int, repeats: int) -> Measured:
    """Time a case; raises if a loop and the package disagree."""
    arrays = case.problem()
    result = case.call(arrays, AGREE_RESAMPLES)
    for name, loop in case.loops.items():
        if problem := disagreement(result, *loop(*arrays, AGREE_RESAMPLES, seed=1)):
            msg = f"{case.name}, {name} loop: {problem}"
            raise AssertionError(msg)
    own = {"caltest": partial(case.call, arrays)}
    loops = {name: (lambda count, loop=loop: loop(*arrays, count, seed=2)) for name, loop in case.loops.items()}
    return Measured(case, len(arrays[0]), costs(own | loops, n_resamples, repeats, {"caltest": OWN_SECONDS}))


def section(n_resamples: int, repeats: int) -> str:
    """Return the table of ratios."""
    rows, measured_at = [], []
    for case in CASES.values():
        found = measure(case, n_resamples, repeats)
        seconds = {name: cost.at(n_resamples) for name, cost in found.costs.items()}
        own = seconds.pop("caltest")
        unit = 1e9 / n_resamples / found.n_samples
        others = [f"{name} {ratio(seconds[name] / own)}" for name in found.case.others]
        rows.append(
            (
                "; ".join([case.name, *others]),
                f">= {case.target}x",
                ratio(seconds["tuned"] / own),
                ratio(seconds["plain"] / own),
                verdict(seconds["tuned"] / own >= case.target),
                duration(own),
                duration(seconds["tuned"]),
                duration(seconds["plain"]),
                " / ".join(f"{value * unit:.3g}" for value in (own, seconds["tuned"], seconds["plain"])),
            )
        )
        print(*rows[-1], sep=" | ", flush=True)
        cost = found.costs["caltest"]
        if cost.measured_resamples < n_resamples:
            measured_at.append(
                f"{case.name}: caltest at {cost.measured_resamples} draws, {duration(cost.fixed)} of it fixed"
            )
    head = ("case", "target", "to the tuned loop", "to the plain loop", "target is", "caltest", "tuned", "plain", "ns")
    notes = "".join(f"* {line}\n" for line in measured_at)
    return table(head, rows) + (f"\nScaled up linearly:\n\n{notes}" if notes else "")


def exact_distribution(sizes: list[int], n_resamples: int, repeats: int) -> str:
    """Return the table of whole calls with the exact distribution, beside the loop that simulates labels instead."""
    rows = []
    for n in sizes:
        arrays = problems.simplex(n)
        statistic = caltest.ECE(partition=WIDE)
        call = partial(caltest.calibration_test, *arrays, lens=CONFIDENCE, statistic=statistic, method="exact")
        own = median(interleaved({"exact": call}, repeats)["exact"])
        loop = costs({"tuned": partial(_drawn, arrays)}, n_resamples, min(repeats, 3))["tuned"].at(n_resamples)
        target = EXACT_TARGETS.get(n, float("inf"))
        rows.append((f"{n:,}", f"<= {duration(target)}", duration(own), verdict(own <= target), duration(loop)))
        print(*rows[-1], sep=" | ", flush=True)
    return table(("observations", "target", "whole call", "target is", f"tuned loop, {n_resamples:,} draws"), rows)


def _drawn(arrays, n_resamples):
    return confidence.tuned_fixed(*arrays, n_resamples, seed=3)


def in_time(sizes: list[int], n_classes: list[int], n_resamples: int, repeats: int) -> str:
    """Return the table of how much longer tests take with `time` and `lead` than without, with the range of ratios."""
    rows = []
    statistics = {"default": {}, "ECE": {"statistic": caltest.ECE()}}
    for name, number, n in ((a, b, c) for a in statistics for b in n_classes for c in sizes):
        options = statistics[name] | {"rng": 0, "n_resamples": min(n_resamples, N_IN_TIME // n)}
        runs = {}
        for lead, size in IN_TIME:
            rng = np.random.default_rng(n)
            stream = exceedances(rng, n, lead) if number == 2 else classes(rng, n, lead, n_classes=number)
            call = partial(caltest.calibration_test, stream.y_true, stream.y_prob, **options)
            runs[lead, size] = call, partial(call, time=stream.time // size, lead=lead)
        taken = interleaved({(key, k): call for key, pair in runs.items() for k, call in enumerate(pair)}, repeats)
        each = [[b / a for a, b in zip(taken[key, 0], taken[key, 1], strict=True)] for key in runs]
        found = [f"{median(some):.1f} ({min(some):.1f} to {max(some):.1f})" for some in each]
        alone = median(second for key in runs for second in taken[key, 0])
        rows.append((name, str(number), f"{n:,}", f"{options['n_resamples']:,}", duration(alone), *found))
        print(*rows[-1], sep=" | ", flush=True)
    heads = [f"lead {lead}" + f", {size} a time" * (size > 1) for lead, size in IN_TIME]
    return table(("statistic", "classes", "predictions", "draws", "without times", *heads), rows)
