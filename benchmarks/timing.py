"""Times that a busy machine disturbs little: kinds interleaved, medians, and fixed costs separated.

What runs on one thread is measured in processor time, which on an idle machine is the time that a user waits and on a
busy one leaves out the waiting for a core.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any

TARGET_SECONDS = 0.4  # what a single measurement should last, so that the clock and the scheduler do not matter
LEAST = 64  # resamples: every loop's block divides it


Clock = Callable[[], float]
PROCESSOR: Clock = process_time
WALL: Clock = perf_counter


def seconds(run: Callable[[], Any], clock: Clock = PROCESSOR) -> float:
    """Return the time of one call."""
    begin = clock()
    run()
    return clock() - begin


def interleaved(
    runs: Mapping[Any, Callable[[], Any]], repeats: int, clock: Clock = PROCESSOR
) -> dict[Any, list[float]]:
    """Return the times of all runs, one round after another, so that a busy moment hits all; one round warms up."""
    taken: dict[Any, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            taken[name].append(seconds(run, clock))
    return taken


@dataclass(frozen=True)
class Cost:
    """Median seconds of a call: ``fixed``, plus ``per_resample`` for each resample."""

    fixed: float
    per_resample: float
    measured_resamples: int

    def at(self, n_resamples: int) -> float:
        """Return the seconds of a call."""
        return self.fixed + self.per_resample * n_resamples


def costs(
    runs: Mapping[str, Callable[[int], Any]],
    n_resamples: int,
    repeats: int,
    longest: Mapping[str, float] | None = None,
    *,
    least: int = LEAST,
    clock: Clock = PROCESSOR,
) -> dict[str, Cost]:
    """Return what each run costs, a function of the number of resamples, in which its time is linear.

    Measured at ``least`` resamples and at as many as take about `TARGET_SECONDS` (or the seconds of ``longest`` for the
    run), at most ``n_resamples``, in the same round: their difference is the slope, so that a fixed cost is never
    multiplied.
    """
    both, many = {}, {}
    for name, run in runs.items():
        few, most = partial(run, least), partial(run, 4 * least)
        few()  # warms up
        slope = (seconds(most, clock) - seconds(few, clock)) / (3 * least)
        wanted = int((longest or {}).get(name, TARGET_SECONDS) / max(slope, 1e-9)) // least * least
        many[name] = min(max(wanted, 4 * least), n_resamples)
        both[f"{name} few"], both[f"{name} many"] = few, partial(run, many[name])
    taken = interleaved(both, repeats, clock)
    found = {}
    for name, count in many.items():
        low, high = median(taken[f"{name} few"]), median(taken[f"{name} many"])
        slope = max(high - low, 0.0) / (count - least)
        found[name] = Cost(high - slope * count, slope, count)
    return found
