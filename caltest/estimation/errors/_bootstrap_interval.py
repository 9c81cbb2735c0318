"""Bootstrap intervals for the sampling variability of a calibration error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import EstimateOptions, look_for
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_choice, validate_level, validate_rng
from caltest.resampling.draws._rows import BootstrapDraws, LeftOut
from caltest.resampling.draws._signs import group_of
from caltest.resampling.engine._evaluation import components, null_values
from caltest.resampling.engine._run import settle
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._description import Description, counted, percent, sized
from caltest.results._naming import describe
from caltest.results._progress import reporting
from caltest.statistics import Statistic

_GROUPS = 200  # of observations that the jackknife leaves out in turn


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BootstrapInterval(Result):
    """Result of `bootstrap_interval`; unpacks as ``low, high``.

    Attributes
    ----------
    test_statistic : Statistic
        The statistic, as an object.
    estimate : float
        Its value on the observations.
    confidence_interval : ConfidenceInterval
        The interval: ``low`` and ``high``.
    confidence_level : float
        Level of the interval: the share of the bootstrap distribution between its ends, for "BCa" after correction.
    standard_error : float
        Standard deviation of the bootstrap distribution.
    bootstrap_distribution : array of shape (n_resamples,)
        The statistic on resampled observations.
    kind : {"percentile", "basic", "BCa"}
        How the ends were found.
    bias_correction, acceleration : float or None
        The two corrections of "BCa".
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples : int
        Number of observations.
    notes : tuple of Note
        Cautions.
    n_groups : int or None
        Number of groups, if whole groups were drawn.
    weighted : bool
        Whether the observations have weights.

    See Also
    --------
    caltest.bootstrap_interval : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> interval = caltest.bootstrap_interval(y_true, y_prob, n_resamples=99, rng=0)
    >>> low, high = interval
    >>> bool(low < high), interval.confidence_level, len(interval.bootstrap_distribution)
    (True, 0.95, 99)
    """

    test_statistic: Statistic
    estimate: float
    confidence_interval: ConfidenceInterval
    confidence_level: float
    standard_error: float
    bootstrap_distribution: Floats = field(repr=False)
    kind: str
    bias_correction: float | None
    acceleration: float | None
    lens: LensLike
    lens_name: str
    n_samples: int
    notes: tuple[Note, ...]
    n_groups: int | None = None
    weighted: bool = False

    _left_out: ClassVar[frozenset[str]] = frozenset({"bootstrap_distribution"})
    _derived: ClassVar[tuple[str, ...]] = ("n_resamples", "conclusion")

    @property
    def n_resamples(self) -> int:
        """Number of bootstrap samples."""
        return len(self.bootstrap_distribution)

    @property
    def conclusion(self) -> str:
        """The interval in words."""
        found = f"{describe(self.test_statistic)} is {self.estimate:.4g}"
        if not self.n_resamples:
            return f"{found}, so it has no bootstrap interval."
        return (
            f"{found}. Between data sets of {counted(self.n_samples)} it varies from {self.confidence_interval} "
            f"({percent(self.confidence_level)} {self.kind} bootstrap interval, standard error "
            f"{self.standard_error:.2g})."
        )

    def __iter__(self) -> Iterator[float]:
        return iter(self.confidence_interval)

    def _describe(self) -> Description:
        remarks = [
            "This interval describes how much the estimate varies. It is not a confidence interval for the true "
            "miscalibration: most estimates are biased, upwards near calibration, and resampling adds the bias once "
            "more. For the miscalibration itself use l2_interval."
        ]
        if self.kind != "percentile":
            shifts = f"The {self.kind} interval is shifted by the bias that resampling shows"
            remarks.append(f"{shifts}, so it need not contain the estimate.")
        if self.n_resamples:
            units = "the observations" if self.n_groups is None else "whole groups"
            remarks.append(f"Bootstrap distribution: {self.n_resamples:,} samples of {units} with replacement.")
        name = type(self.test_statistic).__name__
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        return Description(
            f"Bootstrap interval ({name}, {self.lens_name}, {size})",
            [self.conclusion],
            remarks=remarks,
            notes=self.notes,
        )


@reads_arguments
def bootstrap_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    confidence_level: float = 0.95,
    kind: str = "BCa",
    n_resamples: int | None = None,
    **options: Unpack[EstimateOptions],
) -> BootstrapInterval:
    r"""Compute a bootstrap interval for the sampling variability of a calibration error.

    Observations, each a prediction with its label, are drawn with replacement. The statistic is computed again on each
    of the ``n_resamples`` samples, its cells (bins) fitted again. With :math:`q_\beta` the quantiles of the values and
    :math:`\hat t` the estimate, at level :math:`1 - 2 \alpha`,

    * "percentile" is :math:`[q_\alpha, q_{1 - \alpha}]`;
    * "basic" is :math:`[2 \hat t - q_{1 - \alpha}, 2 \hat t - q_\alpha]`;
    * "BCa" is :math:`[q_{\beta(\alpha)}, q_{\beta(1 - \alpha)}]` with

    .. math:: \beta(\alpha) = \Phi\Bigl(z_0 + \frac{z_0 + z_\alpha}{1 - a (z_0 + z_\alpha)}\Bigr), \qquad
              z_0 = \Phi^{-1}(\#\{t^* < \hat t\} / B), \qquad
              a = \frac{\sum_g u_g^3}{6 (\sum_g u_g^2)^{3/2}},

    where ties count half. :math:`u_g` is the mean of the jackknife values minus the g-th one: the statistic without one
    observation or, of more than 200 observations, without one of 200 random groups. The groups change a with a standard
    error of :math:`\sqrt{15} / (6 \cdot 200) = .003`, and an end by 0.01 standard errors of the estimate.

    **It is not a confidence interval for the true miscalibration.** A plug-in error such as `ECE` is biased upwards,
    and resampled observations, which contain copies, add the bias once more. Near calibration the whole percentile
    interval lies above the true value. Use `l2_interval` for the miscalibration, and `calibration_test` to test whether
    there is any.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.
    statistic : Statistic or str, optional
        The estimator; ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; others are left out.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts. Labels are not repeated.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    confidence_level : float
        Level of the interval.
    kind : {"BCa", "percentile", "basic"}
        How the ends are found, as in ``scipy.stats.bootstrap``.
    n_resamples : int, optional
        Number of bootstrap samples B; by default 9,999, and 999 for more than 5,000,000 predicted probabilities.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.

    Returns
    -------
    BootstrapInterval
        Prints as a report; unpacks as ``low, high``.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic, or ``lens``, ``region``, ``n_resamples``, ``workers``, ``rng`` or ``progress``
        has another wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the
        statistic is a combination of tests (`Omnibus`), or needs two outcomes and the lens returns more; if ``kind`` is
        unknown, ``confidence_level`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if no observation lies in
        the region.

    See Also
    --------
    l2_interval : Confidence interval for the l2 calibration error.
    noise_floor : Distribution of the estimate if the model is calibrated.

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
    validate_choice(kind, "kind", ("BCa", "percentile", "basic"))
    chosen, sample, about = look_for(statistic, y_true, y_prob, options)
    chosen, generator = settle(chosen, sample), validate_rng(options["rng"])
    draws = BootstrapDraws.of(number_of_draws(n_resamples, USUAL_DRAWS, sample.given.size), generator)
    estimate = float(components(chosen, sample, sample.outcome)[0])
    about |= {
        "test_statistic": chosen,
        "estimate": estimate,
        "confidence_level": level,
        "kind": kind,
        "n_samples": sample.n_samples,
        "n_groups": sample.n_groups,
        "weighted": sample.weight is not None,
    }
    if not math.isfinite(estimate):
        return BootstrapInterval(
            **about,
            confidence_interval=ConfidenceInterval(math.nan, math.nan),
            standard_error=math.nan,
            bootstrap_distribution=np.empty(0),
            bias_correction=None,
            acceleration=None,
            notes=(Note("C601", "The estimate is infinite, as a label had probability 0: there is no interval."),),
        )
    evaluate = partial(null_values, chosen, sample)
    with reporting(options["progress"], "resampling observations") as report:
        values = draws.map(evaluate, options["workers"], report)
    shares = np.array([(1 - level) / 2, (1 + level) / 2])
    correction, acceleration = None, None
    if kind == "BCa":
        correction = _bias_correction(estimate, values)
        others = _left_out(sample, generator)
        acceleration = 0.0
        if others.n_resamples > 1:
            acceleration = _acceleration(others.map(evaluate, options["workers"]))
        shares = _corrected(shares, correction, acceleration)
    low, high = np.quantile(values, shares)
    if kind == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return BootstrapInterval(
        **about,
        confidence_interval=ConfidenceInterval(float(low), float(high)),
        standard_error=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        bootstrap_distribution=values,
        bias_correction=correction,
        acceleration=acceleration,
        notes=(*few_cells_notes(sample, chosen.partition), *_notes(estimate, values)),
    )


def _notes(estimate: float, values: Floats) -> tuple[Note, ...]:
    """Return a caution if the estimate is outside its bootstrap distribution, or if nothing varies."""
    if np.ptp(values) == 0:
        text = "The statistic has the same value on every bootstrap sample, so its variability cannot be estimated."
        return (Note("C602", text),)
    below, above = float((values < estimate).mean()), float((values > estimate).mean())
    if max(below, above) <= 0.99:
        return ()
    side = "above" if above > below else "below"
    return (
        Note(
            "C603",
            f"{percent(round(max(below, above), 4))} of the bootstrap values lie {side} the estimate, so this interval "
            "is unreliable. To estimate the miscalibration itself, use l2_interval.",
        ),
    )


def _bias_correction(estimate: float, values: Floats) -> float:
    """Return z0; an estimate outside all values counts as half a value from the end."""
    from scipy.special import ndtri

    below = ((values < estimate).mean() + (values <= estimate).mean()) / 2
    half = 0.5 / len(values)
    return float(ndtri(min(max(below, half), 1 - half)))


def _left_out(sample: Sample, rng: np.random.Generator) -> LeftOut:
    """Return the observations without each of them (of its groups), or without each of many sets of them."""
    _, unit = np.unique(group_of(sample), return_inverse=True)
    n = int(unit.max()) + 1
    return LeftOut.each((rng.permutation(n) % _GROUPS)[unit])


def _acceleration(values: Floats) -> float:
    """Return the acceleration; 0 where nothing varies."""
    deviation = values.mean() - values
    squares = np.square(deviation).sum()
    negligible = squares <= len(values) * np.square(1e-12 * np.abs(values).max())
    return 0.0 if negligible else float((deviation**3).sum() / (6 * squares**1.5))


def _corrected(shares: Floats, correction: float, acceleration: float) -> Floats:
    """Return the shares of the bootstrap distribution below the ends of "BCa"."""
    from scipy.special import ndtr, ndtri

    shifted = correction + ndtri(shares)
    room = 1 - acceleration * shifted
    return ndtr(correction + shifted / np.where(room > 0, room, np.finfo(float).tiny))
