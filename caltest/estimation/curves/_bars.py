"""Bars and p-values of the cells of a reliability curve, and intervals of weighted frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.errors._cell_tests import cell_pvalue
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums
from caltest.predictions.inputs._parts import effective_of_sums, sums_in_parts
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.draws._schemes import Consistency, SignedGroups, TimedLabels
from caltest.resampling.draws._signs import SignDraws, group_of, residual_sums
from caltest.resampling.draws._similar_draws import SimilarDraws
from caltest.resampling.draws._timed_draws import SharedShockDraws, TimedDraws, inflation_of
from caltest.resampling.engine._pvalues import tail_pvalues

_ROUNDING = 1e-12
_EFFECTIVE_INTERVAL_ROUNDING = 1e-10  # of a sum of squares
_SMALLEST, _LARGEST = 1e-15, 0.9  # p-values between which is searched; a larger one counts as 1
_HALVINGS = 28  # of intervals in which an end or a p-value is searched: to 1e-7 or better
_LEAST_FREEDOM = 0.05  # Student's quantile is so large there that the number of groups counts
Ends = tuple[Floats, Floats]


def drawn_ends(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    r"""Return the ends ``(...)`` of an interval for one more draw, from draws ``(n_draws, ...)``.

    Of B draws and another one each is the smallest with the same probability. So the k-th smallest and the k-th largest
    draw with :math:`k = \lfloor (B + 1) (1 - \text{level}) / 2 \rfloor` leave at most half of 1 - level on either side,
    with ties too. With too few draws, k = 0, the ends are infinite.
    """
    outside = int((len(drawn) + 1) * (1 - level) / 2 * (1 + _ROUNDING))
    if not outside:
        return np.full(drawn.shape[1:], -np.inf), np.full(drawn.shape[1:], np.inf)
    ranks = [outside - 1, len(drawn) - outside]
    low, high = np.partition(drawn, ranks, axis=0)[ranks]
    return low, high


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Weights of events and of other labels in cells (bins), and what determines their effective number.

    Attributes
    ----------
    events, others : arrays of shape (n_cells,)
        Weight of the events and of the other labels, exactly 0 where there are none.
    squares : array of shape (n_cells,)
        Sum of the squared weights.
    terms : array of shape (n_terms, n_cells) or None
        Sums over groups; None if observations are independent.
    """

    events: Floats
    others: Floats
    squares: Floats
    terms: Floats | None

    @classmethod
    def of_cells(
        cls, event: Booleans, weight: Floats, group: Integers | None, cell: Integers, n_cells: int
    ) -> EffectiveCounts:
        """Return those of the observations of each cell; ``event``, ``weight``, ``group`` and ``cell`` ``(n,)``."""
        weight = weight / weight.mean()
        parts = (weight * event, weight * ~event)
        events, others, squares = (sums_in_parts(cell, values, n_cells) for values in (*parts, np.square(weight)))
        terms = None
        if group is not None:
            known, place = np.unique(group * n_cells + cell, return_inverse=True)
            of_groups = _terms(*(sums_in_parts(place, values, len(known)) for values in parts))
            terms = np.stack([sums_in_parts(known % n_cells, values, n_cells) for values in of_groups])
        return cls(events, others, squares, terms)

    @classmethod
    def of_first(cls, event: Floats, weight: Floats, group: Integers | None, last: Integers) -> EffectiveCounts:
        """Return those of the first observations, up to the positions ``last (n_cells,)``; weights are positive.

        ``event (n,)`` is 1 or 0, or what share of an observation counts as an event.
        """
        weight = weight / weight.mean()
        parts = np.stack([weight * event, weight * (1 - event)])
        events, others = np.cumsum(parts, axis=1)[:, last]
        squares = np.cumsum(np.square(weight))[last]
        terms = None
        if group is not None:
            before = _of_group_before(parts, group)
            terms = np.cumsum(_terms(*(before + parts)) - _terms(*before), axis=1)[:, last]
        return cls(events, others, squares, terms)

    @property
    def rate(self) -> Floats:
        """Weighted frequency of the event, ``(n_cells,)``; 0 without weight."""
        total = self.events + self.others
        return np.divide(self.events, total, out=np.zeros_like(total), where=total > 0)

    def number(self, level: float | Floats) -> Floats:
        """Return the effective number of observations for a level, ``(n_cells,)``."""
        total = self.events + self.others
        largest = effective_of_sums(total, self.squares)
        return largest if self.terms is None else _number_of_groups(self.rate, total, largest, self.terms, level)

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """Return confidence intervals for the frequencies, [0, 1] without weight."""
        return frequency_intervals(self.events, self.others, self.number(level), level)

    def bars(self, expected: Floats, level: float) -> tuple[Floats, Floats]:
        """Return where a frequency may lie so that its interval contains the expected one, ``(n_cells,)`` each."""
        number, alpha = self.number(level), (1 - level) / 2
        low = _last_accepted(expected, np.zeros_like(expected), lambda rate: _tails(rate, number, expected)[1], alpha)
        high = _last_accepted(expected, np.ones_like(expected), lambda rate: _tails(rate, number, expected)[0], alpha)
        return low, high

    def pvalues(self, expected: Floats) -> Floats:
        """Return 1 minus the smallest level of an interval that contains the expected frequency, ``(n_cells,)``."""
        smallest, largest = np.full(len(expected), _SMALLEST), np.full(len(expected), _LARGEST)

        def rejected(alpha: Floats) -> Booleans:
            return np.min(_tails(self.rate, self.number(1 - alpha), expected), axis=0) < alpha / 2

        never = ~rejected(largest)
        for _ in range(_HALVINGS):
            middle = np.sqrt(smallest * largest)
            found = rejected(middle)
            largest, smallest = np.where(found, middle, largest), np.where(found, smallest, middle)
        return np.where(never, 1.0, largest)


def frequency_intervals(events: Floats, others: Floats, number: Floats, level: float) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's intervals ``(n,)`` for shares of weights in effective numbers of observations.

    Parameters
    ----------
    events, others : arrays of shape (n,)
        Weight of the events and of the other labels, exactly 0 where there are none.
    number : array of shape (n,)
        Effective number of observations.
    level : float
        Level of the intervals.
    """
    total = events + others
    scale = np.divide(number, total, out=np.zeros_like(total), where=total > 0)
    return clopper_pearson(events * scale, others * scale, (1 - level) / 2)


def clopper_pearson(events: Floats, others: Floats, missed: float) -> tuple[Floats, Floats]:
    """Return the limits of a probability; each is missed with probability ``missed`` at most.

    Parameters
    ----------
    events, others : arrays of shape (n,)
        Numbers of events and of other labels, exactly 0 where there are none.
    missed : float
        One-sided error.
    """
    from scipy.special import betainccinv, betaincinv

    low = np.where(events > 0, betaincinv(np.where(events > 0, events, 1.0), others + 1, missed), 0.0)
    high = np.where(others > 0, betainccinv(events + 1, np.where(others > 0, others, 1.0), missed), 1.0)
    return low, high


def _terms(events: Floats, others: Floats) -> Floats:
    """Return what is summed over groups with these weights of events and of other labels, ``(n_terms, ...)``."""
    weight = events + others
    squares = np.square(weight)
    return np.stack([
        weight > 0,
        (events > 0) & (others > 0),
        squares,
        np.square(squares),
        squares * (events > 0),
        squares * (others > 0),
        events * weight,
        np.square(events),
        events * weight**3,
        np.square(events) * squares,
        events**3 * weight,
        events**4,
    ])  # fmt: skip


def _tails(rate: Floats, number: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of as large, and of as small a frequency if the expected one is true."""
    from scipy.special import betainc

    yes, no = number * rate, number * (1 - rate)
    upper = np.where(yes > 0, betainc(np.where(yes > 0, yes, 1.0), no + 1, expected), 1.0)
    lower = np.where(no > 0, 1 - betainc(yes + 1, np.where(no > 0, no, 1.0), expected), 1.0)
    return upper, lower


def _last_accepted(start: Floats, end: Floats, tail: Callable[[Floats], Floats], alpha: float) -> Floats:
    """Return the frequencies farthest from ``start`` whose tail, which falls towards ``end``, is at least alpha."""
    whole = tail(end) >= alpha
    good, bad = start, end
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        accepted = tail(middle) >= alpha
        good, bad = np.where(accepted, middle, good), np.where(accepted, bad, middle)
    return np.where(whole, end, good)


def _number_of_groups(rate: Floats, total: Floats, largest: Floats, terms: Floats, level: float | Floats) -> Floats:
    """Return the effective number of observations in groups, at most ``largest``."""
    from scipy.special import ndtri, stdtrit

    n_groups, n_mixed, w2, w4, with_event, with_other, kw, k2, kw3, k2w2, k3w, k4 = terms
    kish = effective_of_sums(total, w2)
    w2, w4 = np.where(w2 > 0, w2, 1.0), np.where(w4 > 0, w4, 1.0)
    second = k2 - 2 * rate * kw + rate**2 * w2
    fourth = k4 - 4 * rate * k3w + 6 * rate**2 * k2w2 - 4 * rate**3 * kw3 + rate**4 * w4
    varies = (n_mixed > 0.5) & (second > _EFFECTIVE_INTERVAL_ROUNDING * w2)
    second = np.where(varies, second, 1.0)
    spread = np.square(second) / np.maximum(fourth, np.square(second) / np.maximum(n_groups, 1.0))
    shown = np.minimum(with_event, with_other) * w2 / w4
    freedom = np.maximum(np.minimum(spread, shown) - 1, _LEAST_FREEDOM)
    tail = (1 + level) / 2
    variance = second / np.square(total) * n_groups / np.maximum(n_groups - 1, 1.0)
    number = rate * (1 - rate) / variance * np.square(ndtri(tail) / stdtrit(freedom, tail))
    return np.where(varies, np.clip(number, kish, np.maximum(largest, kish)), kish)


def _of_group_before(parts: Floats, group: Integers) -> Floats:
    """Return for each observation the sums ``(n_parts, n)`` over earlier ones of its group."""
    order = np.argsort(group, kind="stable")
    start = np.flatnonzero(np.append(True, np.diff(group[order]) > 0))
    # Shifted instead of subtracted: without events the sum of a group stays exactly 0.
    sums = np.concatenate([np.zeros((len(parts), 1)), np.cumsum(parts[:, order], axis=1)[:, :-1]], axis=1)
    before = np.empty_like(parts)
    before[:, order] = sums - np.repeat(sums[:, start], np.diff(np.append(start, len(group))), axis=1)
    return before


def exact_pvalues(sample: Sample, cells: Cells, counts: Sequence[PoissonBinomial]) -> Floats:
    """Return exact two-sided p-values ``(n_cells,)``."""
    probabilities, events = cells.split(sample.expected[:, 1]), cells.split(sample.outcome == 1)
    pvalues = [cell_pvalue(count, p, int(y.sum())) for count, p, y in zip(counts, probabilities, events, strict=True)]
    return np.where(contradicted_cells(sample, cells), SMALLEST_PVALUE, pvalues)


def exact_deviations(counts: Sequence[PoissonBinomial], size: NDArray[Any]) -> Floats:
    """Return the expected absolute difference of frequency and prediction under calibration, ``(n_cells,)``.

    ``size (n_cells,)`` is the number of observations of each cell.
    """
    found = []
    for count in counts:
        events = count.first + np.arange(len(count.pmf))
        found.append(np.abs(events - count.pmf @ events / count.pmf.sum()) @ count.pmf)
    return np.array(found) / size


def smallest_pvalues(counts: Sequence[PoissonBinomial], size: NDArray[Any]) -> Floats:
    """Return the smallest possible exact p-values ``(n_cells,)``: those without events, or with nothing else.

    ``size (n_cells,)`` is the number of observations of each cell. A label of probability 0 has none: 0 stands for it.
    """
    extremes = [
        (count.pmf[0] if count.first == 0 else 0.0, count.pmf[-1] if count.counts[-1] == n else 0.0)
        for count, n in zip(counts, size, strict=True)
    ]
    return np.minimum(2 * np.min(extremes, axis=1), 1.0)


def smallest_drawn_pvalues(sample: Sample, cells: Cells, n_resamples: int) -> Floats:
    r"""Return the smallest possible p-values ``(n_cells,)`` from draws.

    The signs of G groups are one of :math:`2^G` patterns, so that a two-sided p-value is at least :math:`2^{1 - G}`.
    """
    heavy = np.ones(sample.n_samples, dtype=bool) if sample.weight is None else sample.weight > 0
    index, prob = cells.index[heavy], sample.expected[heavy]
    with np.errstate(divide="ignore"):
        same = [np.exp(np.bincount(index, np.log(prob[:, k]), cells.n_cells)) for k in (0, 1)]
    smallest = 2 * np.min(same, axis=0)
    impossible = np.bincount(index, (prob <= 0).any(axis=1), cells.n_cells) > 0  # such labels would reject alone
    if sample.group is not None:
        smallest = np.maximum(smallest, 2.0 ** (1 - groups_in_cells(sample, cells)))
    smallest = np.clip(smallest, 2 / (n_resamples + 1), 1.0)
    return np.where(impossible, 1 / (n_resamples + 1), smallest)


def groups_in_cells(sample: Sample, cells: Cells) -> Integers:
    """Return the number of groups with weight in each cell, ``(n_cells,)``."""
    heavy = slice(None) if sample.weight is None else sample.weight > 0
    pairs = np.unique(group_of(sample)[heavy] * cells.n_cells + cells.index[heavy])
    return np.bincount(pairs % cells.n_cells, minlength=cells.n_cells)


def consistency_bars(counts: Sequence[PoissonBinomial], cells: Cells, level: float) -> Ends:
    """Return exact consistency bars."""
    ends = np.array([count.central_interval(level) for count in counts]) / cells.count[:, None]
    return ends[:, 0], ends[:, 1]


def resampled_bars(sample: Sample, partition: Any, sums: CellSums, draws: RowDraws, level: float) -> Ends:
    """Return consistency bars from resampled observations."""
    drawn = draws.sums_of_fixed_cells(sample, partition)
    deviation = np.concatenate([
        np.where(part.count > 0, part.observed[..., 1] - part.predicted[..., 1], np.nan) for part in drawn
    ])  # fmt: skip
    expected = sums.predicted[:, 1]
    deviation[:, np.isnan(deviation).all(axis=0)] = 0.0
    low, high = np.nanquantile(deviation, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.clip(expected + low, 0.0, 1.0), np.clip(expected + high, 0.0, 1.0)


def confidence_bars(sums: CellSums, level: float) -> Ends:
    """Return Clopper-Pearson intervals."""
    return clopper_pearson(sums.observed_count[:, 1], sums.observed_count[:, 0], (1 - level) / 2)


def drawn_deviations(sample: Sample, cells: Cells, null: Consistency, n_resamples: int, rng: SeedLike) -> list[Floats]:
    """Return observed minus expected frequency of the event in each cell under calibration, ``(B + 1, n_cells)``.

    One array for simulated labels, and one for random signs of the groups if there are groups. Labels of forecasts in
    time share shocks as the observed ones do, and where these do not show how much, further arrays are of labels that
    share more of them. The first row of each is that of the data.
    """
    generator, scheme = validate_rng(rng), null.for_sample(sample)
    if isinstance(scheme, TimedLabels):
        draws: list[Draws] = [TimedDraws.as_observed(sample, n_resamples, generator)]
        similar = SimilarDraws.of_similar(sample, n_resamples, generator)
        draws += [] if similar is None else [similar]
        draws += [SharedShockDraws.with_shares(one, sample, n_resamples, generator) for one in scheme.further]
        return [_of_draws(sample, cells, one) for one in draws]
    schemes = dict.fromkeys([null, scheme])
    return [_of_draws(sample, cells, one.draws(n_resamples, generator)) for one in schemes]


def drawn_origin(sample: Sample, null: Consistency, n_resamples: int) -> str:
    """Return where these deviations come from, in words."""
    grouped = null.for_sample(sample)
    if not isinstance(grouped, SignedGroups):
        return null.origin(n_resamples)
    return (
        f"{n_resamples:,} Monte Carlo draws of the labels and {grouped.signs_in_words(n_resamples)}, "
        "predictions fixed, of which the larger p-value counts (asymptotic in the number of groups)"
    )


def origin_of_cells(sample: Sample, null: Consistency, n_resamples: int) -> str:
    """Return where bars and p-values of the cells of a curve come from, in words."""
    scheme = null.for_sample(sample)
    if isinstance(scheme, TimedLabels):
        text = scheme.origin_of_timed(f"{n_resamples:,}", inflation_of(sample), shared=0.0)
        worst = ", and of labels that share more of them; the wider bar and the larger p-value count"
        return f"{text}{worst * bool(scheme.further or SimilarDraws.of_similar(sample, n_resamples, 0))}"
    if not isinstance(scheme, SignedGroups):
        return null.origin(n_resamples)
    return (
        f"{n_resamples:,} Monte Carlo draws of the labels, {n_resamples:,} random signs of {sample.n_groups:,} groups, "
        "and the effective number of observations, of which the largest p-value counts (approximate)"
    )


def _of_draws(sample: Sample, cells: Cells, draws: Draws) -> Floats:
    weight = np.where(cells.count > 0, cells.count, 1.0)
    found = [_deviations(sample, cells, sample.outcome[None])]
    for _, drawn in draws.blocks(sample):
        if isinstance(draws, SignDraws):
            found.append(residual_sums(sample, drawn, cells)[..., 1] / weight)
        else:
            scale = draws.scale(sample, drawn)  # studentised, if labels depend on each other in time
            found.append(_deviations(sample, cells, drawn) * (1.0 if scale is None else scale[:, None]))
    return np.concatenate(found)


def _deviations(sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> Floats:
    sums = CellSums.of(sample, cells, outcomes)
    return sums.observed[..., 1] - sums.predicted[..., 1]


def quantile_bars(expected: Floats, deviations: list[Floats], level: float) -> Ends:
    """Return bars around the expected frequencies with at most half of 1 - level of the draws on either side."""
    ends = np.array([drawn_ends(found[1:], level) for found in deviations])
    low, high = expected + ends[:, 0].min(axis=0), expected + ends[:, 1].max(axis=0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def drawn_pvalues(sample: Sample, cells: Cells, deviations: list[Floats]) -> Floats:
    """Return two-sided p-values ``(n_cells,)``: twice the smaller tail of the first row among all; the largest."""
    tails = [[tail_pvalues(sign * found.T)[:, 0] for sign in (1, -1)] for found in deviations]
    pvalues = np.minimum(2 * np.min(tails, axis=1), 1.0).max(axis=0)
    return np.where(contradicted_cells(sample, cells), 1 / len(deviations[0]), pvalues)


def contradicted_cells(sample: Sample, cells: Cells) -> Booleans:
    """Return whether a label of the cell had been given probability 0, ``(n_cells,)``."""
    return np.array([rows.any() for rows in cells.split(np.isin(sample.row, sample.impossible))])


def effective_counts(sample: Sample, cells: Cells) -> EffectiveCounts:
    """Return events and other labels of each cell with their effective number."""
    weight = sample.weight_or_ones
    return EffectiveCounts.of_cells(sample.outcome == 1, weight, sample.group, cells.index, cells.n_cells)
