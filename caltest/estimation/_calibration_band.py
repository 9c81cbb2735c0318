"""The honest band: where an increasing calibration function may lie, all of it at once."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._bands import lower_band, smallest_tail
from caltest.hypothesis_tests.classical._run import two_outcome_problem
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_count, validate_level
from caltest.resampling._distributions import SMALLEST_PVALUE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CalibrationBand:
    """A band for an increasing calibration function; one entry per distinct prediction, in increasing order.

    Attributes
    ----------
    score : array of shape (n_scores,)
        Distinct predicted probabilities of the event.
    count : array of shape (n_scores,)
        Rows with each.
    recalibrated : array of shape (n_scores,)
        The increasing function that fits the outcomes best (isotonic regression).
    lower, upper : arrays of shape (n_scores,)
        The band. Between two scores it reaches from the lower end at the one before to the upper end at the one after;
        below all scores from 0, above all scores to 1.
    confidence_level : float
        Least probability with which the band holds the whole calibration function, if that increases.
    pvalue : float
        Of perfect calibration: the smallest level at which the band excludes the diagonal. Valid at every sample size.
    digits : int or None
        Decimals to which scores were rounded to form groups.
    lens : str
        What was looked at.
    n_samples, n_groups : int
        Number of rows, and of the groups whose blocks were bounded.
    """

    score: NDArray[np.float64]
    count: NDArray[np.int64]
    recalibrated: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    confidence_level: float
    pvalue: float
    digits: int | None
    lens: str
    n_samples: int
    n_groups: int

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Scores at which the diagonal leaves the band, ``(n_scores,)``."""
        return (self.lower > self.score) | (self.upper < self.score)

    @property
    def contains_diagonal(self) -> bool:
        """Whether the band holds the diagonal: perfect calibration is not rejected at the level of the band."""
        return not self.rejected.any()

    @property
    def rejected_regions(self) -> list[tuple[float, float]]:
        """Intervals of the probability axis on which the diagonal lies outside the band."""
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
        """Smallest delta such that at every score the band lies within delta of the diagonal.

        With the probability of the band the calibration function is within delta of every prediction that was made.
        """
        return float(np.maximum(self.upper - self.score, self.score - self.lower).max())

    def to_frame(self) -> pd.DataFrame:
        """Return one row per distinct score as a pandas frame."""
        import pandas as pd

        names = ("score", "count", "recalibrated", "lower", "upper", "rejected")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        level = f"{self.confidence_level:.4g}"
        rounded = "" if self.digits is None else f", in {self.n_groups} groups of {self.digits} decimals"
        facts = [
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {len(self.score)} distinct scores{rounded}"),
            ("level", f"{level}, for all scores at once, at every sample size"),
            ("p-value", f"{self.pvalue:.4g} of perfect calibration"),
        ]
        if self.contains_diagonal:
            said = "The band holds the diagonal: perfect calibration is not rejected, which is no proof of it."
        else:
            regions = self.rejected_regions
            shown = ", ".join(f"[{a:.4g}, {b:.4g}]" for a, b in regions[:5]) + (", ..." if len(regions) > 5 else "")
            said = f"Perfect calibration is rejected: the diagonal lies outside the band on {shown}."
        words = [
            said,
            f"With probability at least {level} the calibration function is within {self.tube:.4g} of every prediction "
            "made.",
            "Valid if the calibration function increases with the prediction, rows are independent, and the "
            "predictions were made without these labels.",
        ]
        lines = ["Band for an increasing calibration function", ""]
        lines += [*(f"  {label:<12} {text}" for label, text in facts), ""]
        for text in words:
            lines += textwrap.wrap(text, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def calibration_band(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    confidence_level: float = 0.95,
    digits: int | None = None,
) -> CalibrationBand:
    r"""Honest band for the calibration function, of which nothing is assumed but that it increases.

    Let :math:`x_1 < \dots < x_N` be the distinct scores, and :math:`n_{jk}` and :math:`s_{jk}` the rows and events of
    the scores :math:`x_j` to :math:`x_k`. If the calibration function r increases, :math:`s_{jk}` is stochastically
    between binomial variables of probability :math:`r(x_j)` and :math:`r(x_k)`, so that the bounds of Clopper and
    Pearson for one block bound r on one side of it, and with :math:`\delta = \alpha / (N (N + 1))` for each of the
    N (N + 1) bounds,

    .. math:: L(x_i) = \max_{j \le k \le i} B_\delta(s_{jk}, n_{jk} - s_{jk} + 1), \qquad
              U(x_i) = \min_{i \le j \le k} B_{1 - \delta}(s_{jk} + 1, n_{jk} - s_{jk})

    hold all of r with probability at least :math:`1 - \alpha`, at every sample size. B are quantiles of beta laws;
    tied scores are one score. The diagonal leaves the band exactly if
    :math:`P(\mathrm{Bin}(n_{jk}, x_k) \ge s_{jk}) < \delta` or :math:`P(\mathrm{Bin}(n_{jk}, x_j) \le s_{jk}) < \delta`
    for some block, so that N (N + 1) times the smallest of these probabilities is the smallest :math:`\alpha` that
    excludes it: a p-value of perfect calibration. It is conservative, for the bounds are many; `calibration_test` has
    more power. What the band adds is the other direction: everything outside it is excluded, hence ``tube``.

    Time grows with the square of N, but few blocks need more than a comparison: 10,000 scores take less than a second.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes. The confidence of a
        model may well be calibrated by a function that does not increase: think before you trust the band.
    confidence_level : float
        :math:`1 - \alpha`.
    digits : int, optional
        Scores that are equal when rounded to this many decimals form a group, and only blocks of whole groups are
        bounded: faster, and about as narrow, for very many scores. The band is still one for the scores themselves.

    Returns
    -------
    CalibrationBand
        Data for `caltest.plot_calibration_band`; prints as a report.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the lens has more than two outcomes.

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
    sample, seen = two_outcome_problem(y_true, y_prob, classes, lens, "calibration_band")
    groups = _Groups.of(sample, digits)
    reflected = groups.reflected
    log_level = math.log((1 - level) / (groups.n_groups * (groups.n_groups + 1.0)))
    low = groups.lower_band(log_level)
    high = 1 - reflected.lower_band(log_level)[::-1]
    # Inside a group the blocks that end with it, or begin with it, say nothing.
    lower = np.where(groups.is_last, low[groups.index], np.append(0.0, low)[groups.index])
    upper = np.where(groups.is_first, high[groups.index], np.append(high, 1.0)[groups.index + 1])
    log_count = math.log(groups.n_groups) + math.log(groups.n_groups + 1)
    tail = min(part.smallest_tail(-log_count) for part in (groups, reflected))
    return CalibrationBand(
        groups.score,
        groups.count,
        _isotonic(groups.events, groups.count),
        lower,
        upper,
        level,
        max(math.exp(tail + log_count), SMALLEST_PVALUE),
        digits,
        seen,
        sample.n_samples,
        groups.n_groups,
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """Neighbouring scores in groups whose blocks are bounded.

    Attributes
    ----------
    score, count, events : arrays of shape (n_scores,)
        Distinct scores, increasing, with their rows and events.
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
        """The same rows with scores and outcomes turned round: lower bounds of these are upper bounds of those."""
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
        """Return rows and events before each group, all of them last, and the groups at which a block may begin."""
        rows, events = (np.bincount(self.index, values).astype(np.int64) for values in (self.count, self.events))
        full = np.append(False, rows == events)[:-1]
        starts = np.flatnonzero((events > 0) & ~full)
        return np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(events)), starts

    def _log_factorial(self) -> NDArray[np.float64]:
        from scipy.special import gammaln

        return gammaln(np.arange(self.count.sum() + 1) + 1.0)


def _isotonic(events: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the increasing frequencies that fit best, ``(n_scores,)``."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(events / count, weights=count).x
