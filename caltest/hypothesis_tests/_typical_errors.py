"""Errors that people make when they predict: all risks too low or too high, differences too large or too small."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.statistics._logistic_curves import expit

ErrorFamily = Literal["shift", "slope", "temperature"]
ErrorKind = Literal["too low", "too high", "too extreme", "not extreme enough", "over-confident", "under-confident"]

LARGEST_SHIFT, LARGEST_LOG_SLOPE = 6.0, 3.0
"""Amounts beyond which an error is not larger in any way that matters: odds times 403, slopes of 0.05 and 20."""
_LARGEST_LOGIT, _STEPS, _ROUNDING = 700.0, 60, 1e-12


@dataclass(frozen=True)
class TypicalError:
    r"""An error of one direction. With predictions p and the amount t > 0, the true probabilities are

    * of a shift :math:`\operatorname{logit} \pi = \operatorname{logit} p \pm t`; of several classes the odds of the
      most frequent one are multiplied by :math:`e^{\pm t}`,
    * of a slope :math:`\operatorname{logit} \pi = a + e^{\pm t} \operatorname{logit} p` with the a that keeps the mean,
    * of a temperature :math:`\pi_k \propto p_k^{1 / T}`, :math:`T = e^{\pm t}`.

    Predictions of 0 and 1 are right in all of them.

    Attributes
    ----------
    family : {"shift", "slope", "temperature"}
        What is wrong.
    kind : str
        What the predictions are called that are wrong in this direction.
    sign : {1, -1}
        Of the amount.
    """

    family: ErrorFamily
    kind: ErrorKind
    sign: int

    @property
    def largest(self) -> float:
        """The largest amount that is looked at."""
        return LARGEST_SHIFT if self.family == "shift" else LARGEST_LOG_SLOPE

    def size(self, amount: float) -> float:
        """Return the shift in logits, the slope or the temperature of an amount."""
        return self.sign * amount if self.family == "shift" else math.exp(self.sign * amount)

    def amount(self, size: float) -> float:
        """Return the amount of a shift in logits, a slope or a temperature of this direction."""
        return self.sign * (size if self.family == "shift" else math.log(size))

    def true_prob(self, prob: Floats, amount: float, weight: Floats | None = None) -> Floats:
        """Return the true probabilities ``(n_samples, n_outcomes)`` if the predictions are wrong by an amount."""
        size = self.size(amount)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(prob, 0.0))
        if prob.shape[1] == 2:
            logit = np.clip(logs[:, 1] - logs[:, 0], -_LARGEST_LOGIT, _LARGEST_LOGIT)
            moved = logit + size if self.family == "shift" else _with_slope(logit, prob[:, 1], size, weight)
            return np.where(
                np.isfinite(logs).all(axis=1, keepdims=True), expit(np.stack([-moved, moved], axis=1)), prob
            )
        if self.family == "shift":
            logs[:, shifted_class(prob, weight)] += size
        else:
            logs /= size
        logs -= logs.max(axis=1, keepdims=True)
        moved = np.exp(logs, out=logs)
        return moved / moved.sum(axis=1, keepdims=True)

    def information(self, prob: Floats, weight: Floats | None = None) -> float:
        """Return Fisher's information about the amount at 0; 0 if the predictions do not change with it.

        Weights ``(n_samples,)`` make it that of their effective number of observations, about.
        """
        if weight is not None:
            return self.information(prob) * float(weight.mean() ** 2 / np.square(weight).mean())
        if self.family == "shift":
            share = prob[:, shifted_class(prob)]
            return float((share * (1 - share)).sum())
        positive = np.maximum(prob, np.finfo(np.float64).tiny)
        logs = np.where(prob > 0, np.log(positive), 0.0)
        if self.family == "temperature":
            mean = (prob * logs).sum(axis=1, keepdims=True)
            spread, total = float((prob * np.square(logs - mean)).sum()), float((prob * np.square(logs)).sum())
        else:
            variance, logit = prob[:, 0] * prob[:, 1], logs[:, 1] - logs[:, 0]
            if not variance.any():
                return 0.0
            centre = np.average(logit, weights=variance)
            spread, total = float(variance @ np.square(logit - centre)), float(variance @ np.square(logit))
        return spread if spread > _ROUNDING * total else 0.0  # equal logits differ from their mean by rounding only


OF_EVENTS = (
    TypicalError("shift", "too low", 1),
    TypicalError("shift", "too high", -1),
    TypicalError("slope", "too extreme", -1),
    TypicalError("slope", "not extreme enough", 1),
)
"""Of two outcomes."""

OF_CLASSES = (
    *OF_EVENTS[:2],
    TypicalError("temperature", "over-confident", 1),
    TypicalError("temperature", "under-confident", -1),
)
"""Of several classes."""


def typical_errors(n_outcomes: int) -> tuple[TypicalError, ...]:
    """Return the errors of predictions of so many outcomes."""
    return OF_EVENTS if n_outcomes == 2 else OF_CLASSES


def shifted_class(prob: Floats, weight: Floats | None = None) -> int:
    """Return the column that a shift concerns: the event of two outcomes, or the most frequent class."""
    return 1 if prob.shape[1] == 2 else int(np.average(prob, axis=0, weights=weight).argmax())


def mean_change(prob: Floats, true_prob: Floats, weight: Floats | None = None) -> float:
    """Return the mean total variation distance; of two outcomes the mean change of the event's probability."""
    return float(np.average(np.abs(true_prob - prob).sum(axis=1), weights=weight) / 2)


def _with_slope(logit: Floats, event: Floats, slope: float, weight: Floats | None) -> Floats:
    """Return logits times a slope, plus the constant with which the probabilities keep their mean."""
    each = np.ones(1) if weight is None else weight
    scaled, total = slope * logit, float((event * each).sum())
    low, high = -_LARGEST_LOGIT * (1 + slope), _LARGEST_LOGIT * (1 + slope)
    constant = 0.0
    for _ in range(_STEPS):  # Newton's, and bisection where a step leaves the interval
        moved = expit(scaled + constant)
        excess = float((moved * each).sum()) - total
        low, high = (low, constant) if excess > 0 else (constant, high)
        curvature = float((moved * (1 - moved) * each).sum())
        if abs(excess) <= _ROUNDING * min(total, float(((1 - event) * each).sum())):
            break
        step = constant - excess / curvature if curvature > 0 else math.nan
        constant = step if low < step < high else (low + high) / 2
    return scaled + constant
