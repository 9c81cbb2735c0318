"""Problems of this room: calibrated predictions, predictions at another temperature, and shared bounds."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.stats import binom

import caltest
from tests.reference.examples import TWO_OUTCOMES, draw_labels

ALPHA = 0.05
FALSE_ALARM = 1e-3
"""Probability that the limits of a simulation are crossed by chance, over all its cases."""
STANDARD_ERRORS = 4


def calibrated(n: int, n_classes: int, seed: int = 0, concentration: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and labels that follow them."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), size=n)
    return draw_labels(prob, rng), prob


def blunted(true_prob: np.ndarray, temperature: float) -> np.ndarray:
    """What a model predicts whose logits were divided by the temperature: softmax(log r / T)."""
    powered = true_prob ** (1 / temperature)
    return powered / powered.sum(axis=1, keepdims=True)


def sharpened(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and over-confident predictions of them."""
    y_true, prob = calibrated(n, n_classes, seed, concentration=1.0)
    return y_true, blunted(prob, 0.5)


def lens_for(statistic: Any) -> Any:
    """A lens that the statistic can judge; None where it judges the whole prediction."""
    return caltest.Confidence() if isinstance(statistic, TWO_OUTCOMES) else None


def most_rejections(n_data_sets: int, alpha: float, n_cases: int = 1) -> float:
    """What a test of this level exceeds with probability FALSE_ALARM at most, shared by all cases."""
    return binom.ppf(1 - FALSE_ALARM / n_cases, n_data_sets, alpha)


def draws_in_order(y_true: np.ndarray, y_prob: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """The simulated labels of every draw, in the caller's order of the observations."""
    from caltest.predictions._sample import make_sample

    base = make_sample(y_true, y_prob)
    drawn = np.concatenate([block for _, block in caltest.Consistency().draws(n_resamples, seed).blocks(base)])
    in_order = np.empty_like(drawn)
    in_order[:, base.row] = drawn
    return in_order


def codes(notes: Iterable[Any]) -> list[str]:
    """The codes of notes."""
    return [note.code for note in notes]


def words(result: Any) -> str:
    """A printed result without its line breaks."""
    return " ".join(str(result).split())


def count_rejections(pvalue: Callable[[int], float], n_data_sets: int, alpha: float = ALPHA) -> int:
    """How often ``pvalue(number of the data set)`` is at most alpha."""
    return sum(pvalue(i) <= alpha + 1e-12 for i in range(n_data_sets))
