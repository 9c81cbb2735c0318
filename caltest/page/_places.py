"""Where predictions and frequencies are compared: ranges of the predictions, classes and subgroups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions import ClassWise
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._sample import Sample, induce
from caltest.results._description import Table, as_percent
from caltest.results._finding import show_range

MOST_PLACES = 8
COMPATIBLE = "compatible with (95 %)"
"""The column of intervals; those of a table hold together."""
_MISSED = 0.05  # by all intervals of a table together
_FEWEST = 10  # observations of a range
_NEAR = 1e-9  # a prediction that is a round number belongs to the side of one half, so that the complement mirrors
_UP_TO_HALF = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
_ROUND = np.array([0.0, *_UP_TO_HALF, *(round(1 - edge, 3) for edge in reversed(_UP_TO_HALF[:-1])), 1.0])
_CUTS = np.where(_ROUND <= 0.5, _ROUND - _NEAR, _ROUND + _NEAR)


@dataclass(frozen=True)
class Place:
    """Some observations.

    Attributes
    ----------
    name : str
        What they have in common.
    n : int
        Their number.
    predicted, observed : float
        Average prediction and frequency.
    low, high : float
        What the data leave possible for the average true probability; NaN where it is not known.
    is_wrong : bool
        Whether calibration is rejected here.
    """

    name: str
    n: int
    predicted: float
    observed: float
    low: float
    high: float
    is_wrong: bool = False

    @classmethod
    def of(cls, name: str, sample: Sample, number: int, *, is_wrong: bool = False) -> Place:
        """Return some observations of two outcomes, whose interval is one of ``number`` that hold together."""
        weight = sample.weight_or_ones / sample.total_weight
        predicted, observed = float(weight @ sample.event), float(weight @ sample.outcome)
        found = InTheLarge.of(EventCells.of(sample), 1 - _MISSED / number)
        low, high = (float(np.clip(predicted * end, 0.0, 1.0)) for end in found.ratio_interval)
        return cls(name, sample.n_samples, predicted, observed, low, high, is_wrong)

    @property
    def interval(self) -> str:
        """The interval in per cent."""
        if math.isnan(self.low):
            return "-"
        low, high = as_percent(self.low), as_percent(self.high)
        return f"{low.removesuffix(' %')} to {high}"


def table_of(places: Sequence[Place], what: str, words: tuple[str, str]) -> Table:
    """Return places as a table; ``words`` are what the two averages are called.

    Numbers of observations are left out where they are equal, intervals where there are none, and decisions where
    nothing is wrong.
    """
    columns = {
        what: [one.name for one in places],
        words[0]: [as_percent(one.predicted) for one in places],
        words[1]: [as_percent(one.observed) for one in places],
        COMPATIBLE: [one.interval for one in places],
        "observations": [f"{one.n:,}" for one in places],
        "decision": ["wrong" if one.is_wrong else "" for one in places],
    }
    if len({one.n for one in places}) == 1 < len(places):
        del columns["observations"]
    for name, nothing in ((COMPATIBLE, "-"), ("decision", "")):
        if set(columns[name]) == {nothing}:
            del columns[name]
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)))


def ranges_of(sample: Sample) -> list[Place]:
    """Return at most eight ranges of the predictions between round numbers, each with at least ten observations."""
    ends = round_ranges(sample.event)
    place = np.searchsorted(_CUTS[np.isin(_ROUND, ends[1:-1])], sample.event, side="right")
    rows = [np.flatnonzero(place == k) for k in range(len(ends) - 1)]
    return [Place.of(show_range(ends[k], ends[k + 1]), sample.take(inside), len(rows)) for k, inside in enumerate(rows)]


def round_ranges(event: Floats) -> Floats:
    """Return round numbers from 0 to 1 between which ranges hold enough predictions each.

    Neighbours are joined until each has ten observations and at most eight are left, the smallest one first.

    Examples
    --------
    >>> import numpy as np
    >>> round_ranges(np.linspace(0, 1, 24)).tolist()
    [0.0, 0.6, 1.0]
    """
    size = np.bincount(np.searchsorted(_CUTS[1:-1], event, side="right"), minlength=len(_ROUND) - 1).tolist()
    ends = _ROUND.tolist()
    while len(size) > 1 and (len(size) > MOST_PLACES or min(size) < _FEWEST):
        off = [abs(low + high - 1) for low, high in pairwise(ends)]  # from one half: ties are mirrored
        k = min(range(len(size)), key=lambda j: (size[j], -off[j]))
        other = min((j for j in (k - 1, k + 1) if 0 <= j < len(size)), key=lambda j: (size[j], off[j]))
        size[min(k, other) : max(k, other) + 1] = [size[k] + size[other]]
        del ends[max(k, other)]
    return np.array(ends)


def classes_of(sample: Sample, names: Sequence[str]) -> list[Place]:
    """Return the classes whose totals differ most clearly from their predictions, at most eight."""
    weight = sample.weight_or_ones
    expected = weight @ sample.prob
    variance = weight**2 @ (sample.prob * (1 - sample.prob))
    observed = np.bincount(sample.outcome, weight, minlength=sample.n_outcomes)
    score = np.abs(observed - expected) / np.sqrt(np.maximum(variance, 1e-300))
    worst = map(int, np.argsort(-score, kind="stable")[:MOST_PLACES])
    design: dict[str, Any] = {"weight": sample.weight, "group": sample.group, "timing": sample.timing}
    return [
        Place.of(names[k], induce(sample.given, sample.outcome, lens=ClassWise(k), **design), len(names)) for k in worst
    ]


def subgroups_of(sample: Sample, members: Mapping[str, Booleans], wrong: Iterable[bool]) -> list[Place]:
    """Return subgroups: ``members`` are their names and observations, ``wrong`` which are rejected."""
    found = []
    for (name, inside), is_wrong in zip(members.items(), wrong, strict=True):
        rows = np.flatnonzero(inside[sample.row])
        found.append(Place.of(name, sample.take(rows), len(members), is_wrong=bool(is_wrong)))
    return found
