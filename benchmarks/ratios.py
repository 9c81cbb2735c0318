"""The public call against the NumPy loops, case by case, and the exact null distribution."""

from dataclasses import dataclass
from functools import partial
from statistics import median

import caltest
from benchmarks import problems
from benchmarks.cases import CASES, CONFIDENCE, WIDE, Case, disagreement
from benchmarks.loops import confidence
from benchmarks.markdown import duration, ratio, table, verdict
from benchmarks.timing import Cost, costs, interleaved

OWN_SECONDS = 3.0  # a public call that takes longer is measured on fewer resamples
AGREE_RESAMPLES = 400
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
