"""Simultaneous confidence band for a non-decreasing calibration function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._bands import lower_band, smallest_tail
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._sample import Sample, make_event_sample
from caltest.predictions._user_functions import Region
from caltest.predictions._validation import validate_count, validate_level
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.results import Result
from caltest.results._description import Description
from caltest.results._note import PAGE
from caltest.results._test_result import percent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationBand(Result):
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
        The band. Between two scores it reaches from the lower end at the one before to the upper end at the one after;
        below all scores from 0, above all scores to 1.
    confidence_level : float
        Level of the band: the probability that it contains a non-decreasing calibration function everywhere is at least
        this level.
    pvalue : float
        P-value of calibration: the smallest level at which the band excludes the diagonal, valid at every sample size.
    digits : int or None
        Decimals to which scores were rounded to form groups.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples, n_groups : int
        Number of observations, and of the groups of scores whose blocks were bounded.
    """

    score: NDArray[np.float64]
    count: NDArray[np.int64]
    recalibrated: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    confidence_level: float
    pvalue: float
    digits: int | None
    lens: LensLike
    lens_name: str
    n_samples: int
    n_groups: int

    _picture: ClassVar[str | None] = "plot_calibration_band"
    _derived: ClassVar[tuple[str, ...]] = ("contains_diagonal", "rejected_regions", "tube", "conclusion")

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Whether the diagonal is outside the band at each score, ``(n_scores,)``."""
        return (self.lower > self.score) | (self.upper < self.score)

    @property
    def contains_diagonal(self) -> bool:
        """Whether the band contains the diagonal, so that calibration is not rejected at the level of the band."""
        return not self.rejected.any()

    @property
    def rejected_regions(self) -> list[tuple[float, float]]:
        """Intervals of the probability axis on which the diagonal is outside the band."""
        after, before = np.append(self.score[1:], 1.0), np.append(0.0, self.score[:-1])
        below = [(x, min(end, right)) for x, end, right in zip(self.score, self.lower, after, strict=True) if end > x]
        above = [(max(end, left), x) for x, end, left in zip(self.score, self.upper, before, strict=True) if end < x]
        regions: list[tuple[float, float]] = []
        for start, end in sorted((float(a), float(b)) for a, b in below + above):
            if regions and start <= regions[-1][1]:
                regions[-1] = regions[-1][0], max(end, regions[-1][1])
            else:
                regions.append((start, end))
        return regions

    @property
    def tube(self) -> float:
        """Smallest delta such that the band is within delta of the diagonal at every score.

        At the level of the band, the calibration function is within delta of every prediction that was made.
        """
        return float(np.maximum(self.upper - self.score, self.score - self.lower).max())

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each distinct prediction as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Prediction, number of observations, isotonic fit, ends of the band, and whether the diagonal is outside.
        """
        import pandas as pd

        names = ("score", "count", "recalibrated", "lower", "upper", "rejected")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        p = f"p = {self.pvalue:.4g}"
        if self.contains_diagonal:
            return f"Calibration is not rejected ({p}). This does not prove that the model is calibrated."
        regions = self.rejected_regions
        shown = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in regions[:5]) + (" and others" if len(regions) > 5 else "")
        return f"Calibration is rejected ({p}). The diagonal is outside the band for predictions from {shown}."

    def _describe(self) -> Description:
        level = percent(self.confidence_level)
        groups = "" if self.digits is None else f" in {self.n_groups} groups (equal to {self.digits} decimals)"
        return Description(
            f"Calibration band ({self.lens_name}, {self.n_samples} observations)",
            [
                self.conclusion,
                f"With {level} confidence the calibration function differs from every prediction by at most "
                f"{self.tube:.4g}.",
            ],
            remarks=[
                f"Band: {level} confidence for all {len(self.score)} distinct predictions{groups} at once (valid at "
                "every sample size).",
                "Valid if the calibration function does not decrease with the prediction, observations are independent "
                f"and no label was used to make the predictions. [C101: {PAGE}]",
            ],
        )


def calibration_band(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    region: Region | None = None,
    confidence_level: float = 0.95,
    digits: int | None = None,
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
    distributions; equal predictions are one score. The diagonal leaves the band exactly if
    :math:`P(\mathrm{Bin}(n_{jk}, x_k) \ge s_{jk}) < \delta` or :math:`P(\mathrm{Bin}(n_{jk}, x_j) \le s_{jk}) < \delta`
    for some block. So N (N + 1) times the smallest of these probabilities is the smallest :math:`\alpha` that excludes
    the diagonal: a p-value of calibration. It is conservative, because there are many bounds; `calibration_test` has
    more power. The band also shows how far the calibration function can be from the predictions, its ``tube``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes. The calibration
        function of a confidence may decrease; the band is not valid then.
    region : callable, optional
        From induced probabilities ``(n_samples, 2)`` to booleans ``(n_samples,)``; others are left out.
    confidence_level : float
        :math:`1 - \alpha`.
    digits : int, optional
        Scores that are equal when rounded to this many decimals form a group, and only blocks of whole groups are
        bounded. With very many scores this is faster, and the band is about as narrow. It is still a band for the
        scores themselves.

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
        has more than two outcomes; if ``confidence_level`` is not strictly between 0 and 1, or ``digits`` < 1; if no
        observation lies in the region.

    Notes
    -----
    Time grows with the square of N, but few blocks need more than a comparison: 10,000 scores take less than a second.

    References
    ----------
    T. Dimitriadis, L. Duembgen, A. Henzi, M. Puke and J. Ziegel (2023), Honest calibration assessment for binary
    outcome predictions, Biometrika 110, 663-680.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> band = caltest.calibration_band(y_true, y_prob)
    >>> band.contains_diagonal, round(band.tube, 2)
    (False, 0.48)
    """
    level = validate_level(confidence_level, "confidence_level")
    if digits is not None:
        validate_count(digits, "digits")
    sample, look = make_event_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    groups = _Groups.of(sample, digits)
    reflected = groups.reflected
    log_level = math.log((1 - level) / (groups.n_groups * (groups.n_groups + 1.0)))
    low = groups.lower_band(log_level)
    high = 1 - reflected.lower_band(log_level)[::-1]
    # Inside a group the blocks that end with it, or begin with it, give no bound.
    lower = np.where(groups.is_last, low[groups.index], np.append(0.0, low)[groups.index])
    upper = np.where(groups.is_first, high[groups.index], np.append(high, 1.0)[groups.index + 1])
    log_count = math.log(groups.n_groups) + math.log(groups.n_groups + 1)
    tail = min(part.smallest_tail(-log_count) for part in (groups, reflected))
    return CalibrationBand(
        score=groups.score,
        count=groups.count,
        recalibrated=_isotonic(groups.events, groups.count),
        lower=lower,
        upper=upper,
        confidence_level=level,
        pvalue=max(math.exp(tail + log_count), SMALLEST_PVALUE),
        digits=digits,
        lens=look,
        lens_name=lens_name(look, classes),
        n_samples=sample.n_samples,
        n_groups=groups.n_groups,
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """Neighbouring scores in groups whose blocks are bounded.

    Attributes
    ----------
    score, count, events : arrays of shape (n_scores,)
        Distinct scores, increasing, with their numbers of observations and events.
    index : array of shape (n_scores,)
        Group of each score, 0 to n_groups - 1.
    """

    score: NDArray[np.float64]
    count: NDArray[np.int64]
    events: NDArray[np.int64]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, sample: Sample, digits: int | None) -> _Groups:
        """Group the scores of a sample that are equal when rounded; without ``digits`` each is a group."""
        score, place = np.unique(np.clip(sample.event, 0.0, 1.0), return_inverse=True)
        count = np.bincount(place)
        events = np.bincount(place, weights=sample.outcome).astype(np.int64)
        shown = score if digits is None else np.round(score, digits)
        return cls(score, count, events, np.append(0, np.cumsum(np.diff(shown) > 0)))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.index[-1]) + 1

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether a score is the smallest of its group."""
        return np.append(True, np.diff(self.index) > 0)

    @property
    def is_last(self) -> NDArray[np.bool_]:
        """Whether a score is the largest of its group."""
        return np.append(np.diff(self.index) > 0, True)

    @property
    def reflected(self) -> _Groups:
        """The groups of reversed scores and outcomes, whose lower bounds are upper bounds of these."""
        turned = self.index[-1] - self.index
        return _Groups(1 - self.score[::-1], self.count[::-1], (self.count - self.events)[::-1], turned[::-1])

    def lower_band(self, log_level: float) -> NDArray[np.float64]:
        """Return the largest lower bound of all blocks at or before each group, ``(n_groups,)``."""
        return lower_band(*self._blocks(), self._log_factorial(), log_level)

    def smallest_tail(self, log_largest: float) -> float:
        """Return the smallest log probability of so many events in a block, at the score of its end."""
        last = np.ascontiguousarray(self.score[self.is_last])
        return float(smallest_tail(*self._blocks(), last, self._log_factorial(), log_largest))

    def _blocks(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the observations and events before each group, and the groups at which a block may begin."""
        rows, events = (np.bincount(self.index, values).astype(np.int64) for values in (self.count, self.events))
        full = np.append(False, rows == events)[:-1]
        starts = np.flatnonzero((events > 0) & ~full)
        return np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(events)), starts

    def _log_factorial(self) -> NDArray[np.float64]:
        from scipy.special import gammaln

        return gammaln(np.arange(self.count.sum() + 1) + 1.0)


def _isotonic(events: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the non-decreasing frequencies that fit best, ``(n_scores,)``."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(events / count, weights=count).x
