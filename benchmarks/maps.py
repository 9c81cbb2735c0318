"""Calibration functions of the power study that the package does not have."""

from dataclasses import dataclass

import numpy as np

from caltest.results._naming import Specification

PERIOD = 0.2  # of the sine: three of 15 cells


@dataclass(frozen=True, repr=False)
class SineOfConfidence(Specification):
    """The map that changes the largest probability c to ``c + height * sin(2 pi c / 0.2)``, others in proportion."""

    height: float

    def __call__(self, prob):
        """Return the true class probabilities."""
        row, top = np.arange(len(prob)), prob.argmax(axis=1)
        confidence = prob[row, top]
        true = np.clip(confidence + self.height * np.sin(2 * np.pi * confidence / PERIOD), 0.0, 1.0)
        rest = 1 - confidence
        true = np.where(rest > 0, true, 1.0)
        result = prob * ((1 - true) / np.where(rest > 0, rest, 1.0))[:, None]
        result[row, top] = true
        return result / result.sum(axis=1, keepdims=True)


@dataclass(frozen=True, repr=False)
class MixedTemperature(Specification):
    """The map of temperature t where the predicted class is in the first half of the classes, else of 1 / t."""

    t: float

    def __call__(self, prob):
        """Return the true class probabilities."""
        first = prob.argmax(axis=1) < prob.shape[1] // 2
        power = np.where(first, 1 / self.t, self.t)[:, None]
        result = prob**power
        return result / result.sum(axis=1, keepdims=True)


@dataclass(frozen=True, repr=False)
class SecondToThird(Specification):
    """The map that moves a share of the second largest probability to the class of the third largest one."""

    share: float

    def __call__(self, prob):
        """Return the true class probabilities."""
        row = np.arange(len(prob))
        second, third = np.argsort(-prob, axis=1, kind="stable")[:, 1:3].T
        result = prob.copy()
        moved = self.share * prob[row, second]
        result[row, second] -= moved
        result[row, third] += moved
        return result
