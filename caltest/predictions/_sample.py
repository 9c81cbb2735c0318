"""Samples: predictions and labels behind a lens, and what is computed from the predictions once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers, blocks
from caltest.predictions._lens import LensLike, outcome_dtype
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import (
    CalibrationFunction,
    Region,
    apply_calibration_function,
    apply_lens,
    apply_region,
)
from caltest.predictions.cells._order import stable_order, with_ties
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._times import Timing
from caltest.predictions.inputs._validation import is_large, validate_design, validate_given_problem
from caltest.results._other_names import AnswersOtherNames

Derived = TypeVar("Derived")

_BLOCK_ROWS = 2**13  # temporary arrays of many observations are made in parts


@dataclass(frozen=True, eq=False)
class Sample(AnswersOtherNames):
    """Predictions and outcomes behind a lens; two-outcome samples are sorted by the event's probability.

    Attributes
    ----------
    given : array of shape (n_samples, n_outcomes)
        Predictions as they are stored: a large array of float32 is not converted. `prob` holds the same numbers.
    outcome : array of shape (n_samples,), unsigned integers
        Observed outcomes.
    given_null : array of shape (n_samples, n_outcomes)
        Probabilities of the outcomes under the null hypothesis: ``given``, or a known calibration function of it.
    row : array of shape (n_samples,)
        Row of each observation in the caller's arrays.
    weight : array of shape (n_samples,) or None
        Weight of each observation, positive, 1 on average; None if all are equal.
    group : array of shape (n_samples,) or None
        Number of the group of each observation, from 0; observations of different groups are independent. None if
        all observations are independent.
    timing : Timing or None
        When predictions were made and how long after that labels are known; None if no two observations are less than
        that apart.

    See Also
    --------
    caltest.predictions.Lens : What a sample stands behind.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.4, 0.6], [0.1, 0.9]])
    >>> sample = Sample(prob, np.array([0, 1]), prob, row=np.arange(2))
    >>> sample.n_samples, sample.event
    (2, array([0.6, 0.9]))
    """

    given: NDArray[Any]
    outcome: NDArray[Any]
    given_null: NDArray[Any]
    row: Integers
    weight: Floats | None = None
    group: Integers | None = None
    timing: Timing | None = None
    _derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    _of_predictions: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    _lock: RLock = field(default_factory=RLock, init=False, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return len(self.given)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes behind the lens."""
        return self.given.shape[1]

    @property
    def n_groups(self) -> int | None:
        """Number of groups of observations; None if every observation is independent."""
        return None if self.group is None else int(np.count_nonzero(np.bincount(self.group)))

    @property
    def is_large(self) -> bool:
        """Whether tables of one double for each prediction should not be made."""
        return is_large(self.given)

    @cached_property
    def prob(self) -> Floats:
        """Predictions, ``(n_samples, n_outcomes)``; cells, scores and orders are made from them."""
        return self.given.astype(np.float64, copy=False)

    @cached_property
    def null_prob(self) -> Floats:
        """Probabilities of the outcomes under the null hypothesis, ``(n_samples, n_outcomes)``."""
        return self.prob if self.given_null is self.given else self.given_null.astype(np.float64, copy=False)

    @property
    def event(self) -> Floats:
        """Probability of the event of a two-outcome problem, ``(n_samples,)``, increasing."""
        return self.prob[:, 1]

    @property
    def weight_or_ones(self) -> Floats:
        """Weight of each observation, ``(n_samples,)``: 1 if all are equal."""
        return np.ones(self.n_samples) if self.weight is None else self.weight

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return self.n_samples if self.weight is None else float(self.weight.sum())

    @cached_property
    def thresholds(self) -> NDArray[np.uint32]:
        """Cumulative null probabilities from which labels are simulated, ``(n_outcomes - 1, n_samples)``."""
        return outcome_thresholds(self.null_prob)

    @cached_property
    def expected(self) -> Floats:
        """Probabilities with which labels are simulated, ``(n_samples, n_outcomes)``.

        They are ``null_prob``, clipped at 0 and divided by its sum.
        """
        return expected_outcomes(self.null_prob)

    @property
    def event_variance(self) -> Floats:
        """Variance of the outcome of each observation of a two-outcome problem, ``(n_samples,)``."""
        return self.expected[:, 0] * self.expected[:, 1]  # along an axis of two numbers a product is 30 times slower

    @cached_property
    def impossible(self) -> Integers:
        """Rows of the caller whose outcome has probability 0 under the null hypothesis, and that count, increasing."""
        return np.sort(self.row[are_impossible(self.given_null, self.outcome)])

    def once(self, derive: Callable[..., Derived], *arguments: Any) -> Derived:
        """Return ``derive(self, *arguments)``, computed once: what depends on predictions alone serves all draws."""
        return self._kept_in(self._derived, derive, arguments)

    def of_predictions(self, derive: Callable[..., Derived], *arguments: Any) -> Derived:
        """Return ``derive(self, *arguments)``, computed once for all labels: it must not depend on them."""
        return self._kept_in(self._of_predictions, derive, arguments)

    def _kept_in(self, kept: dict[Any, Any], derive: Callable[..., Derived], arguments: tuple[Any, ...]) -> Derived:
        key = (derive, *arguments)
        with self._lock:  # threads that need the same value wait for it
            if key not in kept:
                kept[key] = derive(self, *arguments)
            found: Derived = kept[key]
        return found

    def relabelled(self, outcome: NDArray[Any]) -> Sample:
        """Return the same predictions with other labels; what was computed from the predictions is kept."""
        sample = replace(self, outcome=outcome)
        for name in ("_of_predictions", "_lock"):
            object.__setattr__(sample, name, getattr(self, name))
        return sample

    def residual(self, k: int) -> Floats:
        """Return the indicator of outcome k minus its null probability, times the weight, ``(n_samples,)``."""
        residual = (self.outcome == k) - self.given_null[:, k].astype(np.float64)
        return residual if self.weight is None else residual * self.weight

    def take(self, row: Integers) -> Sample:
        """Return the sample of the observations at the given positions (increasing, repeats allowed)."""
        given = np.take(self.given, row, axis=0)  # several times as fast as an index
        return Sample(
            given,
            self.outcome[row],
            given if self.given_null is self.given else np.take(self.given_null, row, axis=0),
            self.row[row],
            None if self.weight is None else self.weight[row],
            None if self.group is None else self.group[row],
            None if self.timing is None else self.timing[row].settled(),
        )


def are_impossible(prob: NDArray[Any], outcome: NDArray[Any]) -> Booleans:
    """Return whether outcomes ``(n,)`` have probability 0, of predictions ``(n, n_outcomes)``."""
    found = np.empty(len(prob), dtype=np.bool_)
    for rows in blocks(len(prob), 1, _BLOCK_ROWS):
        own = prob[rows]  # np.take is twice as fast as an index of two arrays
        place = np.arange(0, own.size, own.shape[1]) + outcome[rows]
        found[rows] = own.reshape(-1).take(place) <= 0
    return found


def expected_outcomes(null_prob: Floats) -> Floats:
    """Return the probabilities with which outcomes are simulated, ``(n, n_outcomes)``."""
    clipped = np.maximum(null_prob, 0.0)
    if clipped.shape[1] == 2:  # the same sums, several times as fast
        return clipped / (clipped[:, :1] + clipped[:, 1:])
    return clipped / clipped.sum(axis=1, keepdims=True)


def outcome_thresholds(prob: Floats) -> NDArray[np.uint32]:
    """Return cumulative probabilities times 2**32, ``(n_outcomes - 1, n_samples)``, from which labels are simulated.

    Sums that miss 1 are normalised and a slightly negative rest is clipped at 0 here, and nowhere else.
    """
    thresholds = np.empty((prob.shape[1] - 1, len(prob)), dtype=np.uint32)
    for rows in blocks(len(prob), 1, _BLOCK_ROWS):
        cumulative = np.cumsum(np.clip(prob[rows], 0.0, None), axis=1)
        share = cumulative[:, :-1].T / cumulative[:, -1]
        thresholds[:, rows] = np.minimum(np.rint(share * 2.0**32), 2.0**32 - 1)
    return thresholds


def make_sample(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    region: Region | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: Any = None,
    lead: Any = None,
) -> Sample:
    """Validate what the user passed and return the sample behind the lens."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    design = validate_design(sample_weight, groups, len(prob), time, lead)
    return induce(prob, outcome, lens=lens, region=region, **design)


def induce(
    prob: NDArray[Any],
    outcome: NDArray[Any],
    *,
    lens: LensLike | None = None,
    region: Region | None = None,
    weight: Floats | None = None,
    group: Integers | None = None,
    timing: Timing | None = None,
) -> Sample:
    """Return the sample behind the lens, restricted to the region; two outcomes are sorted by the event.

    Weights are relative. Observations of weight 0 are left out before anything is counted, the other weights are
    divided by their mean, so that their unit does not matter, and equal weights are dropped, so that they cannot change
    a result. So are groups of one observation each, and times that are all a lead or more apart. Events whose
    probabilities differ by rounding only are ties.
    """
    if lens is not None and not isinstance(lens, Canonical):
        prob, outcome = apply_lens(lens, prob, outcome)
    row = _rows_that_count(prob, region, weight)
    if prob.shape[1] == 2:  # simulated labels go by place, so that ties need one too
        row = stable_order(prob[:, 1]) if row is None else row[stable_order(prob[row, 1])]
    if row is None:
        row = np.arange(len(prob))
    else:
        prob = np.take(prob, row, axis=0)
    prob = np.ascontiguousarray(prob)
    if prob.shape[1] == 2:
        prob = with_ties(prob)
    return Sample(
        prob,
        outcome.astype(outcome_dtype(prob.shape[1]))[row],
        prob,
        row,
        None if weight is None else _relative(weight[row]),
        None if group is None else _shared(group[row]),
        None if timing is None else _needed(timing[row]),
    )


def _rows_that_count(prob: NDArray[Any], region: Region | None, weight: Floats | None) -> Integers | None:
    """Return the rows inside the region that have a positive weight, increasing; None for all."""
    counts = None if region is None else apply_region(region, prob)
    if weight is not None and not weight.all():
        counts = weight > 0 if counts is None else counts & (weight > 0)
    if counts is None:
        return None
    row = np.flatnonzero(counts)
    refuse_if(not row.size, "`region` must hold at least one observation (of positive weight), got none.")
    return row


def _relative(weight: Floats) -> Floats | None:
    """Return the weights divided by their mean, or None if they are all equal."""
    return None if weight.min() == weight.max() else weight / weight.mean()


def _shared(group: Integers) -> Integers | None:
    """Return the groups, numbered without gaps, which left out observations leave; None if all are of one each."""
    count = np.bincount(group)
    if count.max() <= 1:
        return None
    return group if count.all() else (np.cumsum(count > 0) - 1)[group]


def _needed(timing: Timing) -> Timing | None:
    """Return the timing of observations that others were left out of; None if all are independent."""
    return timing.settled() if timing.is_needed else None


def observations_that_count(
    weight: Floats | None, group: Integers | None, timing: None = None
) -> tuple[Integers | slice, Floats | None, Integers | None]:
    """Return the rows of positive weight, with their weights and groups as `induce` makes them."""
    row = slice(None) if weight is None or weight.all() else np.flatnonzero(weight)
    return row, None if weight is None else _relative(weight[row]), None if group is None else _shared(group[row])


def with_calibration_function(sample: Sample, calibration_function: CalibrationFunction) -> Sample:
    """Return the sample whose outcomes follow ``calibration_function(prob)`` under the null hypothesis."""
    null_prob = apply_calibration_function(calibration_function, sample.prob, "calibration_function")
    return replace(sample, given_null=null_prob)
