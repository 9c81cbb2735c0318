"""How much an estimate varies from one set of rows to the next: bootstrap intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._calibration import validate_statistic
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Region, Sample, make_sample
from caltest.predictions._validation import SeedLike, validate_choice, validate_level, validate_rng
from caltest.resampling._schemes import Bootstrap
from caltest.results._test_result import finite
from caltest.statistics import ECE, Statistic

_GROUPS = 200  # of rows that the jackknife leaves out in turn
_VARIABILITY = (
    "This interval describes how much the estimate varies from one set of rows to the next; basic and BCa shift it by "
    "the bias that resampling shows, so that it need not hold the estimate. It is no confidence interval for the true "
    "miscalibration: most estimates are biased, upwards near calibration, and resampled rows add "
    "the bias once more. For the miscalibration itself see l2_interval"
)


@dataclass(frozen=True, eq=False)
class BootstrapInterval:
    """Result of `bootstrap_interval`; unpacks as ``low, high``.

    Attributes
    ----------
    low, high : float
        Ends of the interval.
    estimate : float
        The statistic on the rows as they are.
    standard_error : float
        Standard deviation of the bootstrap distribution.
    bootstrap_distribution : array of shape (n_resamples,)
        The statistic on resampled rows.
    name : str
        The statistic.
    method : {"percentile", "basic", "BCa"}
        How the ends were read off.
    confidence_level : float
        Share of the bootstrap distribution between the ends; for "BCa" after correction.
    bias_correction, acceleration : float or None
        What "BCa" corrects by.
    lens : str
        What was looked at.
    n_samples : int
        Number of rows.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    low: float
    high: float
    estimate: float
    standard_error: float
    bootstrap_distribution: NDArray[np.float64] = field(repr=False)
    name: str
    method: str
    confidence_level: float
    bias_correction: float | None
    acceleration: float | None
    lens: str
    n_samples: int
    notes: tuple[str, ...]

    @property
    def n_resamples(self) -> int:
        """Number of bootstrap samples."""
        return len(self.bootstrap_distribution)

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return all but the bootstrap distribution as plain Python objects, ready for JSON; infinity becomes None."""
        kept = {name: value for name, value in vars(self).items() if name not in {"bootstrap_distribution", "notes"}}
        numbers = {name: finite(value) for name, value in kept.items() if isinstance(value, float)}
        return {**kept, **numbers, "n_resamples": self.n_resamples, "notes": list(self.notes)}

    def __str__(self) -> str:
        facts = [
            ("statistic", self.name),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows"),
            ("method", f"{self.method}, {self.n_resamples} bootstrap samples of the rows"),
            ("estimate", f"{self.estimate:.4g}, standard error {self.standard_error:.2g}"),
            ("interval", f"{self.low:.4g} to {self.high:.4g}, level {self.confidence_level:.4g}"),
        ]
        lines = ["Variability of an estimate", "", *(f"  {label:<12} {text}" for label, text in facts), ""]
        for words in (f"{_VARIABILITY}.", *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def bootstrap_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    confidence_level: float = 0.95,
    method: str = "BCa",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> BootstrapInterval:
    r"""Bootstrap interval of an estimate: how much it varies from one set of rows to the next.

    Rows, each a prediction with its outcome, are drawn with replacement, and the statistic is computed again, its
    partition fitted again, on each of the ``n_resamples`` samples. With :math:`q_\beta` the quantiles of the values
    and :math:`\hat t` the estimate, at level :math:`1 - 2 \alpha`,

    * "percentile" is :math:`[q_\alpha, q_{1 - \alpha}]`;
    * "basic" is :math:`[2 \hat t - q_{1 - \alpha}, 2 \hat t - q_\alpha]`;
    * "BCa" is :math:`[q_{\beta(\alpha)}, q_{\beta(1 - \alpha)}]` with

    .. math:: \beta(\alpha) = \Phi\Bigl(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Bigr), \qquad
              z_0 = \Phi^{-1}(\#\{t^* < \hat t\} / B), \qquad
              a = \frac{\sum_g u_g^3}{6 (\sum_g u_g^2)^{3/2}},

    ties counted half. :math:`u_g` is the mean of the jackknife values less the g-th: the statistic without one row, or,
    of more than 200 rows, without one of 200 groups of rows drawn at random, which changes a by a standard error of
    :math:`\sqrt{15} / (6 \cdot 200) = .003`, and an end by .01 standard errors of the estimate.

    **No coverage of the true miscalibration.** A plug-in error such as `ECE` is biased upwards, and on resampled rows,
    which hold copies, once more: near calibration the percentile interval lies above the truth altogether. Use
    `l2_interval` for the miscalibration, and `calibration_test` to ask whether there is any.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        The estimator; ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    confidence_level : float
        Level of the interval.
    method : {"BCa", "percentile", "basic"}
        How the ends are found, as in ``scipy.stats.bootstrap``.
    n_resamples : int
        Number of bootstrap samples B.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    BootstrapInterval
        Prints as a report; unpacks as ``low, high``.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the statistic has no value of its own (`Omnibus`).

    References
    ----------
    B. Efron and R. J. Tibshirani (1993), An introduction to the bootstrap, chapters 13 and 14.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> low, high = caltest.bootstrap_interval(y_true, y_prob, lens=caltest.Confidence(), n_resamples=999, rng=0)
    >>> round(low, 3), round(high, 3)
    (0.036, 0.044)
    """
    level = validate_level(confidence_level, "confidence_level")
    validate_choice(method, "method", ("BCa", "percentile", "basic"))
    chosen = validate_statistic(ECE() if statistic is None else statistic)
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    generator = validate_rng(rng)
    draws = Bootstrap().draws(n_resamples, generator)
    estimate = float(chosen.evaluate(sample, sample.outcome))
    if not np.isfinite(estimate):
        return BootstrapInterval(
            math.nan,
            math.nan,
            estimate,
            math.nan,
            np.empty(0),
            str(chosen),
            method,
            level,
            None,
            None,
            lens_text(lens, classes),
            sample.n_samples,
            (f"the estimate is {estimate}: it has no bootstrap interval.",),
        )
    values = draws.map(lambda part: chosen.null(sample, part), workers)
    shares, notes = np.array([(1 - level) / 2, (1 + level) / 2]), _notes(estimate, values)
    correction, acceleration = None, None
    if method == "BCa":
        correction = _bias_correction(estimate, values)
        acceleration = _acceleration(_jackknife(chosen, sample, generator))
        shares = _corrected(shares, correction, acceleration)
    low, high = np.quantile(values, shares)
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return BootstrapInterval(
        float(low),
        float(high),
        estimate,
        float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        values,
        str(chosen),
        method,
        level,
        correction,
        acceleration,
        lens_text(lens, classes),
        sample.n_samples,
        notes,
    )


def _notes(estimate: float, values: NDArray[np.float64]) -> tuple[str, ...]:
    """Say where the estimate lies outside its own bootstrap distribution, or nothing varies."""
    if np.ptp(values) == 0:
        return ("the statistic has the same value on every bootstrap sample.",)
    below, above = float((values < estimate).mean()), float((values > estimate).mean())
    if max(below, above) <= 0.99:
        return ()
    side = "below" if above > below else "above"
    return (
        f"the estimate lies {side} {max(below, above):.0%} of its bootstrap distribution: resampling shifts it more "
        "than it varies, and no interval of this kind says much.",
    )


def _bias_correction(estimate: float, values: NDArray[np.float64]) -> float:
    """Return z0; an estimate outside all values counts as half a value from the end."""
    from scipy.special import ndtri

    below = ((values < estimate).mean() + (values <= estimate).mean()) / 2
    half = 0.5 / len(values)
    return float(ndtri(min(max(below, half), 1 - half)))


def _jackknife(statistic: Statistic, sample: Sample, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the statistic without each row, or each of many groups of rows, ``(n_groups,)``."""
    n = sample.n_samples
    n_groups = min(n, _GROUPS)
    if n == 1:
        return np.zeros(1)
    group = rng.permutation(n) % n_groups
    values = np.empty(n_groups)
    for g in range(n_groups):
        kept = sample.take(np.flatnonzero(group != g))
        values[g] = statistic.evaluate(kept, kept.outcome)
    return values


def _acceleration(values: NDArray[np.float64]) -> float:
    """Return the acceleration; 0 where nothing varies."""
    deviation = values.mean() - values
    squares = np.square(deviation).sum()
    negligible = squares <= len(values) * np.square(1e-12 * np.abs(values).max())
    return 0.0 if negligible else float((deviation**3).sum() / (6 * squares**1.5))


def _corrected(shares: NDArray[np.float64], correction: float, acceleration: float) -> NDArray[np.float64]:
    """Return the shares of the bootstrap distribution below the ends that "BCa" takes."""
    from scipy.special import ndtr, ndtri

    shifted = correction + ndtri(shares)
    room = 1 - acceleration * shifted
    return ndtr(correction + shifted / np.where(room > 0, room, np.finfo(float).tiny))
