"""Problems of this room: labels that follow their predictions, and small problems with ties, zeros and ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

import caltest
from tests.reference.examples import draw_labels

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=12)
STANDARD_ERRORS = 4
LEVELS = (0.01, 0.05, 0.1)
FALSE_ALARM = 1e-3
"""Probability that the limits of a simulation are crossed by chance, over all its cases."""


def error(y_true: Any, y_prob: Any, statistic: Any, lens: Any = None, **options: Any) -> float:
    """The value of a statistic."""
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, lens=lens, **options)


def calibrated(n: int, n_classes: int, seed: int = 0, concentration: float = 0.5) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels that follow their predictions."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), size=n)
    return draw_labels(prob, rng), prob


def most_rejections(n_data_sets: int, n_limits: int) -> NDArray[Any]:
    """What a test of each of LEVELS exceeds with probability FALSE_ALARM at most, shared by all limits."""
    return np.asarray(binom.ppf(1 - FALSE_ALARM / n_limits, n_data_sets, LEVELS))


@st.composite
def problems(draw: Callable[..., Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of small integer odds: ties, zeros, ones and equal columns are common."""
    n_classes = draw(st.integers(2, 4))
    odds = st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any)
    rows = draw(st.lists(odds, min_size=1, max_size=16))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=len(rows), max_size=len(rows)))
    prob = np.array(rows, dtype=float)
    return np.array(labels), prob / prob.sum(axis=1, keepdims=True)


@st.composite
def event_problems(draw: Callable[..., Any], *, one_sign: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Multiples of 1/8 with ties, zeros and ones; with one sign, no outcome lies below its prediction."""
    eighths = draw(st.lists(st.integers(0, 8), min_size=1, max_size=12))
    happened = draw(st.lists(st.booleans(), min_size=len(eighths), max_size=len(eighths)))
    labels = [y or (one_sign and x > 0) for x, y in zip(eighths, happened, strict=True)]
    return np.array(labels, dtype=int), np.array(eighths) / 8
