"""The cutoff calibration error with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import CutoffOptions, event_of
from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.predictions._lens import LensLike
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse_if, require
from caltest.predictions.inputs._validation import validate_level, validate_rng
from caltest.resampling.draws._schemes import Consistency
from caltest.resampling.draws._signs import MANY_GROUPS, SignDraws, group_of
from caltest.resampling.engine._evaluation import Question, draw_nulls
from caltest.resampling.engine._stopping import FEWER_DRAWS, number_of_draws
from caltest.results import ConfidenceInterval, Result
from caltest.results._description import Description, percent, sized
from caltest.results._naming import describe
from caltest.results._progress import reporting
from caltest.statistics import Kuiper, Statistic
from caltest.statistics._base import validate_statistic
from caltest.statistics._cumulative import Cumulative


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CutoffInterval(Result):
    """Result of `cutoff_interval`; unpacks as ``low, high``.

    Attributes
    ----------
    test_statistic : Kuiper or KS
        The error, as an object.
    estimate : float
        Its value on the observations.
    confidence_interval : ConfidenceInterval
        The interval: ``low`` and ``high``; NaN if there are fewer than 10 groups.
    confidence_level : float
        Probability with which the interval contains the true error, at least.
    n_resamples : int
        Number of draws.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples : int
        Number of observations.
    n_groups : int or None
        Number of groups of observations, if only groups are independent.
    weighted : bool
        Whether the observations have weights.

    See Also
    --------
    caltest.estimation.cutoff_interval : The function that returns it.

    Examples
    --------
    >>> from caltest.estimation import cutoff_interval
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> interval = cutoff_interval(y_true, y_prob, rng=0)
    >>> low, high = interval
    >>> bool(low < interval.estimate < high), interval.confidence_level
    (True, 0.95)
    """

    test_statistic: Statistic
    estimate: float
    confidence_interval: ConfidenceInterval
    confidence_level: float
    n_resamples: int
    lens: LensLike
    lens_name: str
    n_samples: int
    n_groups: int | None = None
    weighted: bool = False

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def conclusion(self) -> str:
        """Size of the error in words."""
        found, (low, high) = f"{describe(self.test_statistic)} is {self.estimate:.4f}", self
        if math.isnan(low):
            return f"{found}. There are fewer than {MANY_GROUPS} groups, so that it has no interval."
        level = percent(self.confidence_level)
        return f"{found} ({level} confidence interval {low:.4f} to {high:.4f})."

    def __iter__(self) -> Iterator[float]:
        return iter(self.confidence_interval)

    def _describe(self) -> Description:
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        target = "over all intervals of" if isinstance(self.test_statistic, Kuiper) else "up to any threshold of the"
        remarks = [
            f"Target: the largest sum of errors {target} predictions, divided by the number of observations.",
            f"Interval: {self.n_resamples:,} draws; it is wider than needed if the error is large.",
        ]
        return Description(f"Cutoff calibration error ({self.lens_name}, {size})", [self.conclusion], remarks=remarks)


@reads_arguments
def cutoff_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    **options: Unpack[CutoffOptions],
) -> CutoffInterval:
    r"""Compute a confidence interval for the cutoff calibration error (`Kuiper`), or for `KS`.

    The target is the cutoff calibration error of Rossellini et al. (2025), the largest error over all intervals I of
    predictions,

    .. math:: \theta = \sup_I \bigl|E[(Y - p) \, 1\{p \in I\}]\bigr|,

    of which `Kuiper` is the value K on observations; with `KS` the intervals begin at 0. Both are the size
    :math:`\|C\|` of the cumulative residual C, and :math:`|K - \theta| \le \|C - E C\|` whatever is wrong with the
    model. So the interval is :math:`[K - q, K + q]`, within [0, 1], where q is the larger one of two quantiles at the
    confidence level: that of the statistic of residuals with random signs, which vary at least as much as :math:`C - E
    C` (the multiplier bootstrap), and that of labels that are simulated from the predictions. With ``groups`` whole
    groups have a sign, and no labels are simulated. Predictions nearer to 0 or 1 than 1 / n that were all right hardly
    vary in either: if there are any, q is at least :math:`-\log(1 - \mathrm{level}) / n` (the rule of three), or that
    share of the largest group.

    Parameters
    ----------
    statistic : Kuiper or KS, optional
        The error; ``Kuiper()`` by default.
    confidence_level : float
        Probability with which the interval contains its target, at least.
    n_resamples : int, optional
        Number of draws; 999 by default.

    Returns
    -------
    CutoffInterval
        Prints as a report; unpacks as ``low, high``.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic, or ``lens`` or ``region`` has a wrong type.
    ValueError
        If ``statistic`` is another one than `Kuiper` and `KS`; if ``y_prob`` has values outside [0, 1] or does not sum
        to 1, a label is unknown or lengths differ; if the lens has more than two outcomes; if ``confidence_level`` is
        not strictly between 0 and 1, or ``n_resamples`` is too small for it; if no observation lies in the region.

    See Also
    --------
    caltest.statistics.Kuiper : The error.
    caltest.l2_interval : Interval for the l2 error, which does not depend on the order of the predictions.
    caltest.bootstrap_interval : Sampling variability of any estimate; not a confidence interval for the error.

    Notes
    -----
    Calibrated models have an error of 0, which the interval contains as often as `calibration_test` does not reject. It
    is wider than needed where the error is large: simulated coverage of 95 % intervals was 96 to 100 % for
    miscalibrated models with 76 to 5,000 observations, 94 to 98 % for calibrated ones, and 91 to 95 % for calibrated
    ones with 12 to 111 groups of 10 observations (docs/clinical-validity.md). Fewer than 10 groups have no interval.

    References
    ----------
    R. Rossellini, J. A. Soloff, R. F. Barber, Z. Ren and R. Willett (2025), Can a calibration metric be both testable
    and actionable? Conference on Learning Theory.

    Examples
    --------
    The bundled network is over-confident:

    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> low, high = caltest.estimation.cutoff_interval(y_true, y_prob, lens=caltest.Confidence(), rng=0)
    >>> round(low, 3), round(high, 3)
    (0.034, 0.046)
    """
    level = validate_level(confidence_level, "confidence_level")
    chosen = Kuiper() if statistic is None else validate_statistic(statistic)
    require(isinstance(chosen, Cumulative), "`statistic` must be Kuiper() or KS()", chosen)
    number = number_of_draws(n_resamples, FEWER_DRAWS, 0)
    rank = math.ceil(round(level * (number + 1), 9))
    least = math.ceil(round(level / (1 - level), 9))
    refuse_if(rank > number, f"`n_resamples` must be at least {least} for this level, got {number}.")
    sample, about = event_of(y_true, y_prob, options)
    rng, question = validate_rng(options["rng"]), [Question(chosen, LensView(sample))]
    estimate, interval = float(chosen.evaluate(sample, sample.outcome)), UNKNOWN
    if sample.n_groups is None or sample.n_groups >= MANY_GROUPS:
        with reporting(options["progress"], "drawing signs") as report:
            drawn = draw_nulls(question, sample, SignDraws.of(number, rng), options["workers"], report)
        if sample.n_groups is None:
            drawn += draw_nulls(question, sample, Consistency().draws(number, rng), options["workers"])
        # Draws hardly differ where all predictions near 0 or 1 were right, but then the rule of three holds.
        sure = sample.weight_or_ones * (sample.event_variance * sample.n_samples < 1)
        unseen = -math.log(1 - level) * float(np.bincount(group_of(sample), sure).max()) / sample.total_weight
        reach = max(unseen, *(float(np.partition(values[0], rank - 1)[rank - 1]) for values in drawn))
        interval = ConfidenceInterval(max(estimate - reach, 0.0), min(estimate + reach, 1.0))
    return CutoffInterval(
        **about,
        test_statistic=chosen,
        estimate=estimate,
        confidence_interval=interval,
        confidence_level=level,
        n_resamples=number,
        n_samples=sample.n_samples,
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
    )
