"""Temperature scaling, with the temperature of the largest likelihood or of the smallest calibration error."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.curves._temperature_curve import minimise
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import induce
from caltest.predictions.inputs._refusals import refuse
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import Objective, blocks, softmax_in_place
from caltest.resampling.engine._evaluation import components
from caltest.resampling.engine._run import settle
from caltest.results._note import warn_user
from caltest.statistics import Statistic
from caltest.statistics._base import default_lens, validate_estimate

_FLATTEST, _SHARPEST = 0.01, 100.0  # root mean square of the tempered logits
_RATIO, _N_GRID, _TOLERANCE = 10.0, 61, 1e-4  # of the search for the smallest error
_EXACT, _MAX_STEPS = 1e-13, 200


@dataclass(eq=False, repr=False)
class TemperatureScaling(Recalibrator):
    r"""Temperature scaling: divide all logits by one number T (Guo et al. 2017).

    .. math:: \hat c_k(p) = \frac{p_k^{1/T}}{\sum_j p_j^{1/T}} = \mathrm{softmax}_k(z / T)

    A temperature above 1 makes predictions less sharp. The order of the classes stays the same, and so does the
    accuracy. What differs between classes is not repaired.

    With ``objective="log"`` T maximises the likelihood. The negative log-likelihood is convex in 1 / T, and its minimum
    is found to rounding by Newton's method with exact derivatives, kept inside a bracket. With a statistic T minimises
    the estimate of this error (Nixon et al. 2019, section 5.2), which jumps and has many local minima: 61 temperatures
    from a tenth of the one of the likelihood to ten times of it, equally spaced in log T, then SciPy's bounded search
    between the neighbours of the best one, to 1e-4 in log T; T = 1 is compared too. A narrow dip between two other
    temperatures may be missed; the paper's downhill simplex starts at one point only.

    Let r be the root mean square deviation of the logits from the mean of their row. T stays between r / 100 and 100 r,
    or at 1 where that lies outside, with a `CalibrationWarning` if it ends there: if every label has the largest
    probability, the likelihood grows as T goes to 0; if labels have on average no larger logits than other classes,
    predictions that are equal for all classes are best, that is infinite T. If all predictions are equal for all
    classes (r = 0), T is 1.

    Parameters
    ----------
    objective : "log" or Statistic
        What is optimised: the likelihood, or an error such as ``ECE()``, ``KS()``, ``SquaredL2()`` or ``GCE(...)``.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    lens : lens, optional
        What the error looks at; by default the whole prediction, or the confidence if the statistic needs two outcomes.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if ``objective`` is neither "log" nor a statistic.
    ValueError
        When fitted, if ``objective`` is another text or combines tests (`caltest.Omnibus`), or needs two outcomes and
        the lens returns more; and as in `Recalibrator.fit`.

    See Also
    --------
    caltest.temperature_curve : Errors and their noise floors against the temperature.
    caltest.TemperatureScore : The test whether T = 1 is right.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML, section 4.2.
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 5.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import TemperatureScaling
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> fitted = TemperatureScaling().fit(y_prob[:5000], y_true[:5000])
    >>> round(fitted.temperature_, 4)
    1.7359
    >>> labels, before = y_true[5000:], y_prob[5000:]
    >>> after = fitted.predict_proba(before)
    >>> [round(caltest.calibration_error(labels, prob, statistic=caltest.KS()), 4) for prob in (before, after)]
    [0.0356, 0.0101]
    """

    keeps_ranking: ClassVar[bool] = True
    _scale: ClassVar[str] = "logits"
    _fitted: ClassVar[tuple[str, ...]] = ("temperature_",)

    objective: str | Statistic = "log"
    _: KW_ONLY
    lens: LensLike | None = None

    def _validate(self) -> None:
        if not isinstance(self.objective, str):
            validate_estimate(self.objective)
        elif self.objective != "log":
            refuse(f'`objective` must be "log" or a statistic such as ECE(), got {self.objective!r}.')

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective:
        found = likely_temperature(values, outcome, weight)
        if found.caution:
            warn_user(found.caution)
        self.temperature_, objective = found.temperature, found.objective
        if not isinstance(self.objective, str):
            self.temperature_, objective = self._of_smallest_error(self.objective, values, outcome, weight)
        return objective

    def _leave_unchanged(self, n_classes: int) -> None:
        self.temperature_ = 1.0

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        return temper(values, self.temperature_)

    def _of_smallest_error(
        self, statistic: Statistic, logits: NDArray[Any], outcome: Integers, weight: Floats | None
    ) -> tuple[float, Objective]:
        lens = default_lens(statistic, logits.shape[1]) if self.lens is None else self.lens

        def error(log_temperature: float) -> float:
            prob = temper(logits, float(np.exp(log_temperature))).astype(np.float64, copy=False)
            sample = induce(prob, outcome, lens=lens, weight=weight)
            return float(components(settle(statistic, sample), sample, sample.outcome)[0])

        grid = np.log(self.temperature_) + np.linspace(-np.log(_RATIO), np.log(_RATIO), _N_GRID)
        place, least = minimise(error, grid, np.array([error(t) for t in grid]), _TOLERANCE)
        unchanged = error(0.0)
        if unchanged < least:
            return 1.0, Objective(unchanged, unchanged)
        return float(np.exp(place)), Objective(float(least), unchanged)


def temper(logits: NDArray[Any], temperature: float) -> NDArray[Any]:
    """Return the probabilities of logits at a temperature."""
    found = np.empty_like(logits)
    for rows in blocks(*logits.shape):
        np.multiply(logits[rows], 1 / temperature, out=found[rows])
        softmax_in_place(found[rows])
    return found


@dataclass(frozen=True)
class LikelyTemperature:
    """The temperature of the largest likelihood.

    Attributes
    ----------
    temperature : float
        The temperature T.
    objective : Objective
        The negative log-likelihood there, and at T = 1.
    caution : str
        Where `TemperatureScaling` has a rule for it; empty if there is a maximum.
    """

    temperature: float
    objective: Objective
    caution: str = ""


def likely_temperature(logits: NDArray[Any], outcome: Integers, weight: Floats | None = None) -> LikelyTemperature:
    """Return the temperature of the largest likelihood."""
    spread = _spread(logits, weight)
    if spread == 0:
        text = "All predictions are equal for all classes, so that no temperature changes them: it is 1."
        return LikelyTemperature(1.0, Objective(0.0, 0.0), text)
    low, high = min(_FLATTEST / spread, 1.0), max(_SHARPEST / spread, 1.0)  # of the inverse of the temperature
    below, above, inverse, unchanged = low, high, 1.0, np.nan
    for number in range(_MAX_STEPS):
        loss, slope, curvature = likelihood_derivatives(logits, outcome, weight, inverse)
        unchanged = unchanged if number else loss
        if (inverse == low and slope >= 0) or (inverse == high and slope <= 0):
            text = _at_limit(1 / inverse, flat=inverse == low)
            return LikelyTemperature(1 / inverse, Objective(loss, unchanged), text)
        below, above = (below, inverse) if slope > 0 else (inverse, above)
        step = inverse - slope / curvature if curvature > 0 else high if slope < 0 else low
        if abs(step - inverse) <= _EXACT * inverse:
            break
        if not below < step < above:  # a limit itself first, then the middle
            limit = low if step <= below else high
            step = limit if limit in {below, above} and inverse != limit else float(np.sqrt(below * above))
        inverse = step
    return LikelyTemperature(1 / inverse, Objective(loss, unchanged))


def likelihood_derivatives(
    logits: NDArray[Any], outcome: Integers, weight: Floats | None, inverse: float
) -> tuple[float, float, float]:
    r"""Return the negative log-likelihood, and its first and second derivative by the inverse :math:`\beta` of T.

    .. math:: -\sum_i w_i \log \mathrm{softmax}_{y_i}(\beta z_i), \qquad
              \sum_i w_i \bigl(\mathrm{E}_\beta z_i - z_{i y_i}\bigr), \qquad \sum_i w_i \mathrm{Var}_\beta z_i

    with the mean and the variance of the logits of a row under the probabilities softmax(βz).
    """
    loss = slope = curvature = 0.0
    for rows in blocks(*logits.shape):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        prob = np.exp(inverse * z)
        total = prob.sum(axis=1)
        mean = np.einsum("ik,ik->i", prob, z) / total
        own = z[np.arange(len(z)), outcome[rows]]
        z -= mean[:, None]
        z *= z
        variance = np.einsum("ik,ik->i", prob, z) / total
        lost = np.log(total) - inverse * own
        if weight is not None:
            loss += float(weight[rows] @ lost)
            slope += float(weight[rows] @ (mean - own))
            curvature += float(weight[rows] @ variance)
        else:
            loss += float(lost.sum())
            slope += float((mean - own).sum())
            curvature += float(variance.sum())
    return loss, slope, curvature


def _spread(logits: NDArray[Any], weight: Floats | None) -> float:
    """Return the root mean square deviation of logits from the mean of their row."""
    variance = np.concatenate([logits[rows].var(axis=1, dtype=np.float64) for rows in blocks(*logits.shape)])
    return float(np.sqrt(np.average(variance, weights=weight)))


def _at_limit(temperature: float, *, flat: bool) -> str:
    if flat:
        return (
            "The labels have no larger logits than the other classes, so that the likelihood has no maximum at a "
            f"finite temperature: it was set to {temperature:.4g}, where predictions are nearly equal for all classes. "
            "Check that columns and labels belong together."
        )
    return (
        "Nearly every label has the largest probability, so that the likelihood grows as the temperature goes to 0: it "
        f"was set to {temperature:.4g}, the smallest one allowed. Fit on more observations, which the model was not "
        "trained on."
    )
