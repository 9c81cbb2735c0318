"""The smallest differences between average prediction and frequency that a test of the average finds."""

from __future__ import annotations

import math

import numpy as np

from caltest.predictions._sample import Sample
from caltest.results._decision import FEWEST_EXPECTED

_POWER = 0.8
_N_HALVINGS = 40
_LARGEST_SHIFT = 20.0  # of logits


def detectable_differences(sample: Sample, alpha: float) -> tuple[float, float]:
    r"""Return by how much an event must be more frequent than predicted, and less, to be found with a power of 80 %.

    The probabilities p of the event (of several classes, of the predicted one) are shifted on the logit scale to q.
    With relative weights w, a two-sided test of the average at the level :math:`\alpha` finds the shift if

    .. math:: \Bigl\lvert\sum_i w_i (q_i - p_i)\Bigr\rvert \ge z_{1-\alpha/2} \sqrt{\sum_i w_i^2 p_i (1 - p_i)}
        + z_{0.8} \sqrt{\sum_i w_i^2 q_i (1 - q_i)}

    up to the normal approximation. A number is NaN if no shift is found, and both are if all predictions are 0 or 1, if
    fewer than 5 events, or 5 others, are expected, or if observations depend on each other.
    """
    from scipy.special import expit, logit, ndtri

    prob, weight = sample.expected, sample.weight_or_ones / sample.total_weight
    event = prob[:, 1] if sample.n_outcomes == 2 else prob.max(axis=1)
    rarer = min(weight @ event, weight @ (1 - event)) / np.square(weight).sum()
    if rarer < FEWEST_EXPECTED or sample.group is not None or sample.timing is not None:
        return math.nan, math.nan
    with np.errstate(divide="ignore"):
        logits = logit(event)
    critical = float(ndtri(1 - alpha / 2)) * math.sqrt(np.square(weight) @ (event * (1 - event)))
    more = float(ndtri(_POWER))
    sign, low, high = np.array([1.0, -1.0]), np.zeros(2), np.full(2, _LARGEST_SHIFT)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        moved = expit(logits + (sign * middle)[:, None])
        needed = critical + more * np.sqrt((moved * (1 - moved)) @ np.square(weight))
        found = np.abs((moved - event) @ weight) >= needed
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    differences = np.abs((expit(logits + (sign * high)[:, None]) - event) @ weight)
    up, down = np.where((high < _LARGEST_SHIFT) & (critical > 0), differences, math.nan).tolist()
    return up, down
