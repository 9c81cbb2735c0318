"""Simultaneous confidence band for a non-decreasing calibration function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest._compiled._bands import lower_band, smallest_tails
from caltest.estimation._options import TestedEventOptions, event_of
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_count, validate_level
from caltest.resampling.distributions._base import TIE_TOLERANCE
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.engine._pvalues import rank_pvalues
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results import Note, Result
from caltest.results._decision import NO_PROOF, equate_pvalue, rejects
from caltest.results._description import Description, counted, percent
from caltest.results._note import PAGE
from caltest.results._picture import Picture
from caltest.results._progress import reporting
from caltest.results._verdict import Judged

_MOST_SCORES, _DIGITS = 10_000, 4  # the band takes time in proportion to the square of the groups
_ALL_UP_TO, _GROWTH = 8, 1.5  # lengths of the blocks that the test compares


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Neighbouring scores in groups whose blocks are bounded.

    Attributes
    ----------
    score, count, events : arrays of shape (n_scores,)
        Distinct scores, increasing, with their numbers of observations and events.
    index : array of shape (n_scores,)
        Group of each score, 0 to n_groups - 1.
    digits : int or None
        Decimals to which the scores of a group are equal; None if each score is a group.
    """

    score: Floats
    count: Integers
    events: Integers
    index: Integers
    digits: int | None

    @classmethod
    def of(cls, sample: Sample, digits: int | None = None) -> ScoreGroups:
        """Group the scores of a sample that are equal when rounded; without ``digits``, only where there are many."""
        score, place = np.unique(np.clip(sample.event, 0.0, 1.0), return_inverse=True)
        count = np.bincount(place)
        events = np.bincount(place, weights=sample.outcome).astype(np.int64)
        if digits is None and len(score) > _MOST_SCORES:
            digits = _DIGITS
        shown = score if digits is None else np.round(score, digits)
        return cls(score, count, events, np.append(0, np.cumsum(np.diff(shown) > 0)), digits)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.index[-1]) + 1

    @property
    def lengths(self) -> Integers:
        """Numbers of groups in the blocks that the test compares: all small ones, then some of the larger ones."""
        steps = np.arange(1 + math.log(max(self.n_groups / _ALL_UP_TO, 1.0)) / math.log(_GROWTH))
        longer = np.rint(_ALL_UP_TO * _GROWTH**steps).astype(np.int64)
        lengths = np.unique(np.concatenate([np.arange(1, _ALL_UP_TO + 1), longer]))
        return lengths[lengths <= self.n_groups]

    @cached_property
    def is_first(self) -> Booleans:
        """Whether a score is the smallest of its group."""
        return np.append(True, np.diff(self.index) > 0)

    @cached_property
    def is_last(self) -> Booleans:
        """Whether a score is the largest of its group."""
        return np.append(np.diff(self.index) > 0, True)

    @cached_property
    def observations(self) -> Integers:
        """Number of observations in each group."""
        return self._by_group(self.count)

    def _by_group(self, values: Integers) -> Integers:
        """Return sums over groups ``(..., n_groups)`` of values ``(..., n_scores)``."""
        return np.add.reduceat(values, np.flatnonzero(self.is_first), axis=-1)

    def band(self, lengths: Integers, log_level: float) -> tuple[Floats, Floats]:
        """Return the ends of the band ``(n_scores,)`` that blocks of some lengths bound at a level each."""
        events = self._by_group(self.events)
        if log_level == -math.inf:
            return np.zeros(len(self.score)), np.ones(len(self.score))
        low = self._lower_band(self.observations, events, lengths, log_level)
        rest = (self.observations - events)[::-1]
        high = 1 - self._lower_band(self.observations[::-1], rest, lengths, log_level)[::-1]
        # Inside a group the blocks that end with it, or begin with it, give no bound.
        lower = np.where(self.is_last, low[self.index], np.append(0.0, low)[self.index])
        upper = np.where(self.is_first, high[self.index], np.append(high, 1.0)[self.index + 1])
        return lower, upper

    def confidence_band(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the confidence band, ``(n_scores,)``: every block bounds it, in both directions."""
        log_level = math.log((1 - level) / (self.n_groups * (self.n_groups + 1.0)))
        return self.band(np.arange(1, self.n_groups + 1), log_level)

    def _lower_band(self, rows: Integers, events: Integers, lengths: Integers, log_level: float) -> Floats:
        full = np.append(False, rows == events)[:-1]
        begins = ((events > 0) & ~full) | (len(lengths) < self.n_groups)
        place = np.arange(len(rows) + 1)
        next_begin = np.minimum.accumulate(np.where(np.append(begins, True), place, len(rows))[::-1])[::-1]
        return lower_band(_before(rows), _before(events), next_begin, lengths, self._log_factorial, log_level)

    def drawn_tails(self, sample: Sample, draws: Draws) -> Floats:
        """Return the smallest tail of each draw of the labels, ``(n_resamples,)``."""
        start = np.append(0, np.cumsum(self.count))[:-1]  # observations are sorted by the event
        blocks = (outcomes for _, outcomes in draws.blocks(sample))
        return np.concatenate(
            [self.smallest_tails(np.add.reduceat(some, start, axis=1, dtype=np.int64)) for some in blocks]
        )

    def smallest_tails(self, events: Integers) -> Floats:
        """Return the smallest log tail probability of all blocks if the model is calibrated, ``(n_draws,)``.

        ``events (n_draws, n_scores)`` are the numbers of events. A tail is that of so many events in a block, or more,
        with the probability of its last score, or of so few with the probability of its first.
        """
        counted = self._by_group(events)
        best = np.zeros(len(events))
        last, first = self.score[self.is_last], 1 - self.score[self.is_first][::-1]
        rest = (self.observations - counted)[:, ::-1]
        for rows, some, score in ((self.observations, counted, last), (self.observations[::-1], rest, first)):
            smallest_tails(_before(rows), _before(some), self.lengths, score, self._log_factorial, best)
        return best

    @cached_property
    def _log_factorial(self) -> Floats:
        from scipy.special import gammaln

        return gammaln(np.arange(self.count.sum() + 1) + 1.0)


def _before(values: Integers) -> Integers:
    """Return the sums before each position of the last axis, and all of them last."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=np.int64)
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationBand(Judged, Result):
    """Result of `calibration_band`; one entry per distinct prediction, in increasing order.

    Attributes
    ----------
    score : array of shape (n_scores,)
        Distinct predicted probabilities of the event.
    count : array of shape (n_scores,)
        Number of observations with each of them.
    recalibrated : array of shape (n_scores,)
        The non-decreasing function that fits the labels best (isotonic regression).
    lower, upper : arrays of shape (n_scores,)
        The confidence band. Between two scores it reaches from the lower end at the one before to the upper end at the
        one after; below all scores from 0, above all scores to 1.
    test_lower, test_upper : arrays of shape (n_scores,)
        The band of the test, which is narrower as a rule. If the model is calibrated, it contains the diagonal with
        probability ``1 - alpha`` at least. It is no confidence band of other calibration functions.
    confidence_level : float
        The probability that the confidence band contains a non-decreasing calibration function everywhere is at least
        this level.
    alpha : float
        Level of the test: the probability that a calibrated model is rejected is at most this level.
    pvalue : float
        P-value of calibration by simulated labels, valid at every sample size. The band of the test excludes the
        diagonal exactly if it is at most ``alpha``.
    n_resamples : int
        Number of draws of the labels.
    digits : int or None
        Decimals to which scores were rounded to form groups.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples, n_groups : int
        Number of observations, and of the groups of scores whose blocks were bounded.

    See Also
    --------
    caltest.calibration_band : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> band = caltest.calibration_band(y_true, y_prob[:, 1], n_resamples=19, rng=0)
    >>> bool((band.lower <= band.upper).all()), band.confidence_level
    (True, 0.95)
    """

    score: Floats
    count: Integers
    recalibrated: Floats
    lower: Floats
    upper: Floats
    test_lower: Floats
    test_upper: Floats
    confidence_level: float
    alpha: float
    pvalue: float
    n_resamples: int
    digits: int | None
    lens: LensLike
    lens_name: str
    n_samples: int
    n_groups: int

    plot = Picture("plot_calibration_band")
    _derived: ClassVar[tuple[str, ...]] = ("contains_diagonal", "rejected_regions", "tube", "conclusion", "notes")
    _columns: ClassVar[tuple[str, ...]] = (
        *("score", "count", "recalibrated", "lower"),
        *("upper", "test_lower", "test_upper", "rejected"),
    )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions about what was passed."""
        return self._input_notes

    @property
    def rejected(self) -> Booleans:  # type: ignore[override]
        """Whether the diagonal is outside the band of the test at each score, ``(n_scores,)``."""
        return (self.test_lower > self.score) | (self.test_upper < self.score)

    @property
    def contains_diagonal(self) -> bool:
        """Whether the band of the test contains the diagonal, so that calibration is not rejected at its level."""
        return not self.rejected.any()

    @property
    def rejected_regions(self) -> list[tuple[float, float]]:
        """Intervals of the probability axis on which the diagonal is outside the band of the test.

        With ``digits`` gaps inside a group do not split an interval: only whole groups are compared.
        """
        after, before = np.append(self.score[1:], 1.0), np.append(0.0, self.score[:-1])
        x, low, high = self.score, self.test_lower, self.test_upper
        below = [(x, min(end, right)) for x, end, right in zip(x, low, after, strict=True) if end > x]
        above = [(max(end, left), x) for x, end, left in zip(x, high, before, strict=True) if end < x]
        regions: list[tuple[float, float]] = []
        for start, end in sorted((float(a), float(b)) for a, b in below + above):
            if regions and (start <= regions[-1][1] or self._in_one_group(regions[-1][1], start)):
                regions[-1] = regions[-1][0], max(end, regions[-1][1])
            else:
                regions.append((start, end))
        return regions

    def _in_one_group(self, one: float, other: float) -> bool:
        return self.digits is not None and round(one, self.digits) == round(other, self.digits)

    @property
    def tube(self) -> float:
        """Smallest delta such that the confidence band is within delta of the diagonal at every score.

        At the level of the band, the calibration function is within delta of every prediction that was made.
        """
        return float(np.maximum(self.upper - self.score, self.score - self.lower).max())

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        p = equate_pvalue(self.pvalue)
        if self.contains_diagonal:
            return f"Calibration is not rejected ({p}). {NO_PROOF}"
        regions = self.rejected_regions
        shown = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in regions[:5]) + (" and others" if len(regions) > 5 else "")
        return f"Calibration is rejected ({p}) for predictions from {shown}."

    def _describe(self) -> Description:
        level = percent(self.confidence_level)
        groups = (
            "" if self.digits is None else f" in {counted(self.n_groups, 'group')} (equal to {self.digits} decimals)"
        )
        return Description(
            f"Calibration band ({self.lens_name}, {counted(self.n_samples)})",
            [
                self.conclusion,
                f"With {level} confidence the calibration function differs from every prediction by at most "
                f"{self.tube:.4g}.",
            ],
            remarks=[
                f"Confidence band: {level} for all {len(self.score)} distinct predictions{groups} at once (valid at "
                "every sample size).",
                f"Test: the smallest tail probability of blocks of neighbouring predictions, {self.n_resamples:,} "
                "Monte Carlo draws of the labels, predictions fixed (valid at every sample size).",
                "Valid if the calibration function does not decrease with the prediction, observations are independent "
                f"and no label was used to make the predictions. [C101: {PAGE}]",
            ],
        )


@reads_arguments
def calibration_band(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    confidence_level: float = 0.95,
    digits: int | None = None,
    n_resamples: int | None = None,
    **options: Unpack[TestedEventOptions],
) -> CalibrationBand:
    r"""Compute a simultaneous confidence band for a non-decreasing calibration function (Dimitriadis et al. 2023).

    Let :math:`x_1 < \dots < x_N` be the distinct predicted probabilities (scores), and :math:`n_{jk}` and
    :math:`s_{jk}` the numbers of observations and events with scores from :math:`x_j` to :math:`x_k`. If the
    calibration function r does not decrease, :math:`s_{jk}` is stochastically between binomial variables with the
    probabilities
    :math:`r(x_j)` and :math:`r(x_k)`, so that the Clopper-Pearson bounds of one block bound r on one side of it. With
    :math:`\delta = \alpha / (N (N + 1))` for each of the N (N + 1) bounds,

    .. math:: L(x_i) = \max_{j \le k \le i} B_\delta(s_{jk}, n_{jk} - s_{jk} + 1), \qquad
              U(x_i) = \min_{i \le j \le k} B_{1 - \delta}(s_{jk} + 1, n_{jk} - s_{jk})

    contain r everywhere with probability at least :math:`1 - \alpha`, at every sample size. B are quantiles of beta
    distributions; equal predictions are one score. The band also shows how far the calibration function can be from the
    predictions, its ``tube``.

    N (N + 1) bounds share the level, so that the band is wide and rarely excludes anything. If the model is calibrated,
    the joint distribution of all these tail probabilities is known. The p-value of calibration is the rank of the
    smallest :math:`P(\mathrm{Bin}(n_{jk}, x_k) \ge s_{jk})` and :math:`P(\mathrm{Bin}(n_{jk}, x_j) \le s_{jk})` among
    those of simulated labels. The :math:`\alpha`-quantile of the smallest one takes the place of :math:`\delta` in the
    band of the test. Both use blocks of 1 to 8 scores and of some larger sizes, each 1.5 times the one before, for
    speed.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes. The calibration
        function of a confidence may decrease; the band is not valid then.
    confidence_level : float
        Level :math:`1 - \alpha` of the confidence band.
    alpha : float
        Level of the test, and of its band.
    digits : int, optional
        Scores that are equal when rounded to this many decimals form a group, and only blocks of whole groups are
        bounded: 4 by default where there are more than 10,000 scores, otherwise each score is a group. With many
        scores this is faster, and the band is about as narrow. It is still a band for the scores themselves.
    n_resamples : int, optional
        Number of draws of the labels for the p-value and the band of the test; 999 by default.

    Returns
    -------
    CalibrationBand
        Data for `caltest.plotting.plot_calibration_band`; prints as a report.

    Raises
    ------
    TypeError
        If ``lens``, ``region`` or ``digits`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the lens
        has more than two outcomes; if ``confidence_level`` or ``alpha`` is not strictly between 0 and 1, or ``digits``
        or ``n_resamples`` < 1; if no observation lies in the region.

    See Also
    --------
    caltest.isotonic_curve : The estimate without a band that holds everywhere.
    caltest.reliability_curve : Frequencies in cells (bins).

    Notes
    -----
    The confidence band is not as narrow as the band of the test, because the joint distribution of its tail
    probabilities depends on the unknown function r. A block with :math:`r(x_j) < r(x_k)` has fewer events than a
    binomial variable with probability :math:`r(x_k)`, which makes an error of that bound less likely; but blocks
    with different values of r are also less dependent than if r were constant, which makes an error of any of several
    bounds more likely. No function is known to be the worst case. The band of the test, of level 90 % and with 200
    uniform predictions, contained the diagonal in 91 % of calibrated sets, but a constant function in only 80 % and a
    function with one step in 83 % (1,000 sets each); the confidence band contained all of them in 99.9 % and more.

    Time of the confidence band grows with the square of the groups, but few blocks need more than a comparison: 10,000
    groups take less than a second. A draw of the labels takes time in proportion to N log N, about 5 ms for 10,000
    scores.

    References
    ----------
    T. Dimitriadis, L. Duembgen, A. Henzi, M. Puke and J. Ziegel (2023), Honest calibration assessment for binary
    outcome predictions, Biometrika 110, 663-680.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> band = caltest.calibration_band(y_true, y_prob, n_resamples=99, rng=0)
    >>> band.contains_diagonal, band.pvalue, round(band.tube, 2)
    (False, 0.01, 0.48)
    """
    level = validate_level(confidence_level, "confidence_level")
    alpha = options["alpha"]
    if digits is not None:
        validate_count(digits, "digits")
    draws = OutcomeDraws.of(number_of_draws(n_resamples), options["rng"])
    sample, about = event_of(y_true, y_prob, options)
    groups = ScoreGroups.of(sample, digits)
    lower, upper = groups.confidence_band(level)
    with reporting(options["progress"], "labels simulated") as report:
        null = draws.map(lambda some: groups.drawn_tails(sample, some), options["workers"], report)
    observed = groups.smallest_tails(groups.events[None])
    _, pvalues = rank_pvalues(sample, -observed, -null[None])
    # The p-value is at most alpha if the observed tail is below this one: as many draws may be smaller.
    rank = math.floor(alpha * (1 + TIE_TOLERANCE) * (draws.n_resamples + 1)) - 1
    critical = np.sort(null)[rank] if rank >= 0 else -math.inf
    # Not 0: where every draw has the tail 1, any smaller one is rejected.
    test_lower, test_upper = groups.band(groups.lengths, min(critical * (1 + TIE_TOLERANCE), -TIE_TOLERANCE))
    if not rejects(pvalues[0], alpha):  # then only the rounding of an end near 0 or 1 excludes a score
        test_lower, test_upper = np.minimum(test_lower, groups.score), np.maximum(test_upper, groups.score)
    return CalibrationBand(
        **about,
        score=groups.score,
        count=groups.count,
        recalibrated=_isotonic(groups.events, groups.count),
        lower=lower,
        upper=upper,
        test_lower=test_lower,
        test_upper=np.maximum(test_lower, test_upper),  # no function is that extreme in both directions
        confidence_level=level,
        alpha=alpha,
        pvalue=float(pvalues[0]),
        n_resamples=draws.n_resamples,
        digits=groups.digits,
        n_samples=sample.n_samples,
        n_groups=groups.n_groups,
    )


def _isotonic(events: Integers, count: Integers) -> Floats:
    """Return the non-decreasing frequencies that fit best, ``(n_scores,)``."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(events / count, weights=count).x
