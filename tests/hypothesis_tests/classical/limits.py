"""How often a limit distribution rejects calibrated predictions, against the figures in the documentation."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.engine._evaluation import null_values
from tests.hypothesis_tests.problems import STANDARD_ERRORS

_N_PREDICTIONS, _N_DRAWS = 20, 2000


def five_values(rng: np.random.Generator, n: int) -> np.ndarray:
    """Predictions with five values."""
    return rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], n)


def rare_events(rng: np.random.Generator, n: int) -> np.ndarray:
    """Predictions whose mean is 0.02."""
    return rng.beta(1, 50, n)


def check_size(statistic: Any, predict: Callable[..., np.ndarray], n: int, alpha: float, documented: str) -> None:
    """The share of rejections, over several sets of predictions with many simulated labels each, is as documented.

    The tolerance is 4 standard errors between sets of predictions, and half of the last digit that is documented.
    """
    shares = []
    for seed in range(_N_PREDICTIONS):
        sample = make_sample(np.zeros(n, dtype=int), predict(np.random.default_rng(seed), n))
        limit = statistic.asymptotic_distribution(sample).quantile(1 - alpha)
        values = null_values(statistic, sample, caltest.Consistency().draws(_N_DRAWS, rng=seed))
        shares.append(np.mean(values >= limit))
    error = np.std(shares, ddof=1) / math.sqrt(_N_PREDICTIONS)
    figure, last_digit = float(documented), 10.0 ** -len(documented.partition(".")[2])
    assert abs(np.mean(shares) - figure) < STANDARD_ERRORS * error + last_digit / 2, (np.mean(shares), error)
    assert abs(np.mean(shares) - alpha) > STANDARD_ERRORS * error, "the limit does not fail"
