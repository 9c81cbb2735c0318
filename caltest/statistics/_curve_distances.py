"""Distances between the predictions and a smooth calibration curve: the integrated calibration index and its kin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._validation import is_number, one_of, require
from caltest.resampling.draws._signs import sums_of_groups
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, in_equal_batches
from caltest.statistics._local_regression import SMOOTHERS, LocalRegression
from caltest.statistics._logistic_curves import LogisticCurves, spline
from caltest.statistics._recalibration_scores import logits

_NUMBERS = 2**18  # of curves that are fitted at a time
_MANY = 2**6  # observations in each group, of which curves of few replicates stay in cache


def _validate_span(value: Any, name: str) -> float | None:
    if value is None:
        return None
    right_type = is_number(value)
    must = f"`{name}` must be None or a number above 0 and at most 1"
    require(right_type and 0 < value <= 1, must, value, right_type=right_type)
    return float(value)


@dataclass(frozen=True, repr=False)
class CurveDistance(Statistic):
    """Base class of summaries of the distances between predictions and a smooth calibration curve at them."""

    smoother: str = parameter("loess", one_of(*SMOOTHERS, "spline"))
    span: float | None = parameter(None, _validate_span)

    n_outcomes = 2
    measures_scatter = True

    def __post_init__(self) -> None:
        super().__post_init__()
        right = self.span is None or self.smoother in SMOOTHERS
        require(right, "`span` must be None for `smoother='spline'`, which has knots", self.span)

    @property
    def companions(self) -> Any:
        """The curve, which is that of other summaries too."""
        return CurveDistance, self.smoother, self.span

    @staticmethod
    def evaluate_companions(parts: Sequence[Any], sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return summaries of the distances to one curve."""
        return evaluate_together(parts, sample, outcomes)

    @staticmethod
    @abstractmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return the statistic ``(n_replicates,)`` of distances ``(n_replicates, n_samples)``, whose order may change.

        That is so for quantiles without weights, which are read last.
        """

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the distance ``(...)`` of outcomes ``(..., n_samples)``."""
        found: Floats = evaluate_together([self], sample, outcomes)[0]
        return found

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the distance of signed residuals; None for splines, which are no function of the residuals."""
        curve = sample.of_predictions(fit_curve, self.smoother, self.span)
        if not isinstance(curve, LocalRegression):
            return None
        expected, of_groups = sample.once(_coefficients_of_groups, curve)

        def distances(part: Floats) -> Floats:
            return self.read(_distances(sample, curve.at(expected + part @ of_groups)), sample.weight)

        return in_equal_batches(distances, signs, few=sample.n_samples > signs.shape[1] * _MANY)


def evaluate_together(parts: Sequence[CurveDistance], sample: Sample, outcomes: NDArray[Any]) -> Floats:
    """Return summaries ``(n_parts, ...)`` of the distances to the one curve of outcomes ``(..., n_samples)``."""
    curve = sample.of_predictions(fit_curve, parts[0].smoother, parts[0].span)

    def summaries(part: Floats) -> Floats:
        distance = _distances(sample, curve.fitted(part))
        found = {one: one.read(distance, sample.weight) for one in sorted(parts, key=_changes_order)}
        return np.stack([found[one] for one in parts])

    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    if isinstance(curve, LogisticCurves):  # whose values do not depend on the replicates beside them
        blocks = range(0, len(flat), max(_NUMBERS // sample.n_samples, 1))
        found = np.concatenate([summaries(flat[i : i + blocks.step]) for i in blocks], axis=-1)
    else:
        found = in_equal_batches(summaries, flat)
    return found.reshape(len(parts), *outcomes.shape[:-1])


def _changes_order(part: CurveDistance) -> bool:
    return isinstance(part, E50 | E90)


def _coefficients_of_groups(sample: Sample, curve: LocalRegression) -> tuple[Floats, Floats]:
    """Return the coefficients of the predictions, and what the residuals of each group add; for `Sample.once`."""
    residual = sample.outcome - sample.null_prob[:, 1]
    of_groups = np.column_stack([sums_of_groups(sample, row * residual) for row in curve.operator])
    return curve.operator @ sample.null_prob[:, 1], of_groups


def _distances(sample: Sample, fitted: Floats) -> Floats:
    """Return the distances of curves ``(n_replicates, n_samples)``, in their place, from the predictions."""
    fitted -= sample.null_prob[:, 1]
    return np.abs(fitted, out=fitted)


def fit_curve(sample: Sample, smoother: str, span: float | None) -> LocalRegression | LogisticCurves:
    """Return what fits smooth curves to outcomes of the predictions of a sample; for `Sample.of_predictions`."""
    if smoother == "spline":
        return spline(logits(sample), sample.weight_or_ones)
    make, usual_span = SMOOTHERS[smoother]
    return make(sample.event, sample.weight_or_ones, usual_span if span is None else span)


@dataclass(frozen=True, repr=False)
class ICI(CurveDistance):
    r"""Integrated calibration index: mean distance between the predictions and a smooth curve, for two outcomes.

    .. math:: \frac1n \sum_i |\hat r(p_i) - p_i|

    with the event's probability :math:`p_i` and a smooth estimate :math:`\hat r` of the frequency of the event given
    it. Its target is the expected miscalibration :math:`E|r(p) - p|`. The curve follows the labels, so that a
    calibrated model has a positive value, its noise floor, which is larger the smaller the sample. What the curve
    smooths over is missed.

    ``smoother="lowess"`` returns ``Eavg`` of ``val.prob`` in R's rms, ``smoother="loess"`` the index of Austin and
    Steyerberg, of ``loess(y ~ p)`` in R. Both fit polynomials to the nearest predictions, and are linear in the labels.
    They interpolate from points that are found from the smallest prediction on: for the complement of the event the
    value differs by the error of this interpolation, from the third decimal on. If most predictions are almost equal,
    as those of a rare class, loess has nearly all its points among them and misses the rest: of one class of ten in a
    sharp network its index was .034, and that of lowess and the spline .014 and .015.

    If the null hypothesis is a calibration function :math:`\rho`, :math:`\rho(p_i)` replaces :math:`p_i` in the
    difference. Sample weights multiply the weights of the local regressions, or the likelihood, and the distances.

    Parameters
    ----------
    smoother : {"loess", "lowess", "spline"}
        The smooth curve: local quadratic regression (Cleveland and Devlin 1988) or local linear regression without
        robustness steps (Cleveland 1979), as R computes them; or logistic regression on a restricted cubic spline of
        the logit with five knots (Harrell 2015), which needs predictions above 0 and below 1 and takes no groups.
    span : float, optional
        Share of the observations in each local regression, above 0 and at most 1; by default that of R, 0.75 for loess
        and 2/3 for lowess.

    Raises
    ------
    TypeError
        If ``smoother`` is not a text or ``span`` not a number.
    ValueError
        If ``smoother`` is unknown, or ``span`` is outside its range or given for a spline; when it is evaluated, if a
        prediction for a spline is 0 or 1.

    See Also
    --------
    E50 : Median distance.
    E90 : 90 % quantile of the distances.
    Emax : Largest distance.
    SmoothECE : Smooths residuals at the bandwidth that equals the error.
    KDEError : Smooths frequencies with a given kernel.

    References
    ----------
    P. C. Austin and E. W. Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics for quantifying
    the calibration of logistic regression models, Statistics in Medicine 38.
    W. S. Cleveland (1979), Robust locally weighted regression and smoothing scatterplots, Journal of the American
    Statistical Association 74.
    W. S. Cleveland and S. J. Devlin (1988), Locally weighted regression, the same journal 83.
    F. E. Harrell (2015), Regression modeling strategies, 2nd edition, Springer.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> wrong, doubt = (y_prob.argmax(axis=1) != y_true).astype(int), 1 - y_prob.max(axis=1)
    >>> for smoother in ("loess", "lowess"):
    ...     index = caltest.statistics.ICI(smoother)
    ...     print(smoother, round(caltest.calibration_error(wrong, doubt, statistic=index), 4))
    loess 0.0345
    lowess 0.0366
    """

    words = "mean distance to the smooth curve"

    @property
    def target(self) -> Distance:
        """The distance that is averaged."""
        return total_variation

    @staticmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return the mean."""
        return np.average(distance, axis=-1, weights=weight)


@dataclass(frozen=True, repr=False)
class E50(CurveDistance):
    r"""Median distance between the predictions and a smooth curve, for two outcomes.

    .. math:: \operatorname{median}_i |\hat r(p_i) - p_i|

    with the curve :math:`\hat r` of `ICI`. Half of the predictions are nearer to the curve. Its target is the median of
    :math:`|r(p) - p|`. Of an even number of observations without weights it is the mean of the two in the middle.

    Parameters
    ----------
    smoother : {"loess", "lowess", "spline"}
        The smooth curve, as for `ICI`.
    span : float, optional
        Share of the observations in each local regression, as for `ICI`.

    Raises
    ------
    TypeError
        If ``smoother`` is not a text or ``span`` not a number.
    ValueError
        If ``smoother`` is unknown, or ``span`` is outside its range or given for a spline; when it is evaluated, if a
        prediction for a spline is 0 or 1.

    See Also
    --------
    ICI : Mean distance, with the definition of the curves.

    References
    ----------
    P. C. Austin and E. W. Steyerberg (2019), Statistics in Medicine 38.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> wrong, doubt = (y_prob.argmax(axis=1) != y_true).astype(int), 1 - y_prob.max(axis=1)
    >>> round(caltest.calibration_error(wrong, doubt, statistic=caltest.statistics.E50()), 4)
    0.0035
    """

    words = "median distance to the smooth curve"

    @staticmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return the median."""
        return _quantile(distance, weight, 0.5)


@dataclass(frozen=True, repr=False)
class E90(CurveDistance):
    r"""90 % quantile of the distances between the predictions and a smooth curve, for two outcomes.

    .. math:: \operatorname{quantile}_{0.9} |\hat r(p_i) - p_i|

    with the curve :math:`\hat r` of `ICI`. One prediction in ten is farther from the curve. Its target is the quantile
    of :math:`|r(p) - p|`. Between order statistics it is interpolated linearly, as by default in R and NumPy; with
    ``smoother="lowess"`` it is ``E90`` of ``val.prob`` in R's rms.

    Parameters
    ----------
    smoother : {"loess", "lowess", "spline"}
        The smooth curve, as for `ICI`.
    span : float, optional
        Share of the observations in each local regression, as for `ICI`.

    Raises
    ------
    TypeError
        If ``smoother`` is not a text or ``span`` not a number.
    ValueError
        If ``smoother`` is unknown, or ``span`` is outside its range or given for a spline; when it is evaluated, if a
        prediction for a spline is 0 or 1.

    See Also
    --------
    ICI : Mean distance, with the definition of the curves.

    References
    ----------
    P. C. Austin and E. W. Steyerberg (2019), Statistics in Medicine 38.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> wrong, doubt = (y_prob.argmax(axis=1) != y_true).astype(int), 1 - y_prob.max(axis=1)
    >>> round(caltest.calibration_error(wrong, doubt, statistic=caltest.statistics.E90("lowess")), 4)
    0.1639
    """

    words = "90 % quantile of the distances to the smooth curve"

    @staticmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return the quantile."""
        return _quantile(distance, weight, 0.9)


@dataclass(frozen=True, repr=False)
class Emax(CurveDistance):
    r"""Largest distance between the predictions and a smooth curve, for two outcomes.

    .. math:: \max_i |\hat r(p_i) - p_i|

    with the curve :math:`\hat r` of `ICI`. It is often that of the largest prediction, where few observations
    determine the curve: compare it with its noise floor. With ``smoother="lowess"`` it is ``Emax`` of ``val.prob`` in
    R's rms.

    Parameters
    ----------
    smoother : {"loess", "lowess", "spline"}
        The smooth curve, as for `ICI`.
    span : float, optional
        Share of the observations in each local regression, as for `ICI`.

    Raises
    ------
    TypeError
        If ``smoother`` is not a text or ``span`` not a number.
    ValueError
        If ``smoother`` is unknown, or ``span`` is outside its range or given for a spline; when it is evaluated, if a
        prediction for a spline is 0 or 1.

    See Also
    --------
    ICI : Mean distance, with the definition of the curves.
    MCE : Largest error of a cell (bin).

    References
    ----------
    P. C. Austin and E. W. Steyerberg (2019), Statistics in Medicine 38.
    F. E. Harrell (2015), Regression modeling strategies, 2nd edition, Springer.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> wrong, doubt = (y_prob.argmax(axis=1) != y_true).astype(int), 1 - y_prob.max(axis=1)
    >>> round(caltest.calibration_error(wrong, doubt, statistic=caltest.statistics.Emax("lowess")), 4)
    0.2739
    """

    words = "largest distance to the smooth curve"

    @staticmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return the maximum."""
        return np.asarray(distance.max(axis=-1))


@dataclass(frozen=True, repr=False)
class ECI(CurveDistance):
    r"""Estimated calibration index: mean squared distance between the predictions and a smooth curve, times 100.

    .. math:: \frac{100}n \sum_i (\hat r(p_i) - p_i)^2

    with the curve :math:`\hat r` of `ICI`, for two outcomes. Its target is :math:`100\, E(r(p) - p)^2`. It is
    ``ECI`` of ``val.prob.ci.2`` in R's CalibrationCurves; pmcalibration does not multiply by 100.

    Parameters
    ----------
    smoother : {"loess", "lowess", "spline"}
        The smooth curve, as for `ICI`.
    span : float, optional
        Share of the observations in each local regression, as for `ICI`.

    Raises
    ------
    TypeError
        If ``smoother`` is not a text or ``span`` not a number.
    ValueError
        If ``smoother`` is unknown, or ``span`` is outside its range or given for a spline; when it is evaluated, if a
        prediction for a spline is 0 or 1.

    See Also
    --------
    ICI : Mean distance, with the definition of the curves.
    SquaredL2 : Squared error without bias, in cells (bins).

    References
    ----------
    K. Van Hoorde, S. Van Huffel, D. Timmerman, T. Bourne and B. Van Calster (2015), A spline-based tool to assess and
    visualize the calibration of multiclass risk predictions, Journal of Biomedical Informatics 54, 283-293.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> wrong, doubt = (y_prob.argmax(axis=1) != y_true).astype(int), 1 - y_prob.max(axis=1)
    >>> round(caltest.calibration_error(wrong, doubt, statistic=caltest.statistics.ECI("lowess")), 4)
    0.6001
    """

    words = "mean squared distance to the smooth curve times 100"

    @staticmethod
    def read(distance: Floats, weight: Floats | None) -> Floats:
        """Return 100 times the mean square."""
        return 100 * np.average(np.square(distance), axis=-1, weights=weight)


def _quantile(distance: Floats, weight: Floats | None, share: float) -> Floats:
    """Return a quantile ``(n_replicates,)``; with weights, which are 1 on average, that of as many observations.

    The order statistic k of weighted observations is the smallest one up to which weights add up to k.
    """
    place = 1 + (distance.shape[-1] - 1) * share
    if weight is None:
        first = int(place) - 1
        distance.partition(first, axis=-1)  # of one order statistic it is several times as fast as of two
        below = distance[..., first]
        above = distance[..., first + 1 :].min(axis=-1) if first + 1 < distance.shape[-1] else below
        return np.asarray(below + (place - int(place)) * (above - below))
    order = np.argsort(distance, axis=-1)
    reached = np.cumsum(weight[order], axis=-1)
    ends = [
        np.take_along_axis(order, (reached < min(k, distance.shape[-1]) - 1e-9).sum(axis=-1, keepdims=True), axis=-1)
        for k in (np.floor(place), np.floor(place) + 1)
    ]
    low, high = (np.take_along_axis(distance, end, axis=-1)[..., 0] for end in ends)
    return np.asarray(low + (place - np.floor(place)) * (high - low))
