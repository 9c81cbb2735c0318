"""The statistic of the bridge test: mean and shape of the cumulative residual, combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._brownian_bridge import path_ends_and_bridges
from caltest.predictions._sample import Sample
from caltest.resampling._distributions import SMALLEST_PVALUE, Distribution, chi_squared
from caltest.statistics._base import Statistic


@dataclass(frozen=True, repr=False)
class Bridge(Statistic):
    r"""Statistic of the bridge test: mean and shape of the cumulative residual, combined by Fisher's method.

    It needs a two-outcome lens. With observations in the order of the event's probability, :math:`e_i = y_i - p_i`,
    :math:`v_i = p_i (1 - p_i)` and :math:`V = \sum_i v_i`, the path :math:`S_k = \sum_{i \le k} e_i / V^{1/2}` at the
    time :math:`t_k = \sum_{i \le k} v_i / V` tends to a Brownian motion if the model is calibrated. Its end and the
    Brownian bridge that is left after the end is subtracted in proportion to time are independent in the limit:

    .. math::
        M = |S_n|, \quad D = \max_k |S_k - t_k S_n|, \qquad
        T = -2 \log\bigl(2 \Phi(-M)\bigr) - 2 \log P(K > D),

    with K the supremum of the absolute value of a Brownian bridge (Kolmogorov's distribution). In the limit T follows
    chi-squared(4): ``calibration_test(..., method="asymptotic")``. The path is evaluated only at the end of a block of
    tied probabilities. M measures calibration in the large, D all other deviations of the path. Without variance T is
    0, or infinite if a prediction of 0 or 1 was wrong. Sample weights multiply the residuals, their squares the
    variances.

    See Also
    --------
    KS : Largest cumulative residual; detects deviations of the mean and of the shape together.

    References
    ----------
    M. Sadatsafavi and J. Petkau (2024), Non-parametric inference on calibration of predicted risks, Statistics in
    Medicine, doi 10.1002/sim.10138.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [0, 1, 0, 1, 1, 1, 0, 1], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75]
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.Bridge()), 4)
    1.7702
    """

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return T, ``(...)``, of outcomes ``(..., n_samples)``."""
        end, bridge = self.parts(sample, outcomes)
        return 0.0 - 2 * (log_normal_pvalue(np.abs(end)) + log_kolmogorov_pvalue(bridge))  # never -0

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared(4), the limit of the distribution of T."""
        return chi_squared(4)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return the signed mean, the shape, and their asymptotic p-values."""
        mean, shape = self.parts(sample, sample.outcome)
        logs = log_normal_pvalue(np.abs(mean)), log_kolmogorov_pvalue(shape)
        mean_pvalue, shape_pvalue = (max(float(np.exp(log)), SMALLEST_PVALUE) for log in logs)
        return {"mean": float(mean), "mean_pvalue": mean_pvalue, "shape": float(shape), "shape_pvalue": shape_pvalue}

    def parts(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the signed mean :math:`S_n` and the shape :math:`D`, ``(...)`` each."""
        start, expected, time, variance = sample.once(_path)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.weight is None:
            ends = path_ends_and_bridges(flat, start, expected, time)
        else:
            path = np.cumsum(sample.weight * flat, axis=1)[:, start[1:] - 1] - expected
            ends = np.column_stack([path[:, -1], np.abs(path - time * path[:, -1:]).max(axis=1)])
        # Without variance only wrong predictions of 0 or 1 move the path.
        contradicted = np.where(np.abs(ends) > 0, np.copysign(np.inf, ends), 0.0)
        ends = ends / np.sqrt(variance) if variance > 0 else contradicted
        return ends[:, 0].reshape(outcomes.shape[:-1]), ends[:, 1].reshape(outcomes.shape[:-1])


def _path(sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], float]:
    """Return the starts of tied blocks ``(n_blocks + 1,)``, expected events and times at their ends, and V."""
    start = np.append(np.flatnonzero(np.append(True, np.diff(sample.event) > 0)), sample.n_samples)
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    expected = np.cumsum(weight * sample.expected[:, 1])[start[1:] - 1]
    variance = np.cumsum(np.square(weight) * sample.expected.prod(axis=1))[start[1:] - 1]
    total = float(variance[-1])
    return start, expected, variance / total if total > 0 else np.zeros(len(variance)), total


def log_normal_pvalue(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of P(|N(0, 1)| >= z), accurate in the tail."""
    from scipy.special import log_ndtr

    return np.minimum(np.log(2.0) + log_ndtr(-z), 0.0)


def log_kolmogorov_pvalue(d: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the logarithm of P(K >= d), K the supremum of \|Brownian bridge\|, accurate in the tail.

    Beyond 1, five terms of :math:`2 \sum_k (-1)^{k-1} e^{-2 k^2 d^2}` are exact to rounding; the first one is factored
    out.
    """
    from scipy.special import kolmogorov

    square = np.square(np.maximum(d, 1.0))
    rest = sum((-1) ** (k - 1) * np.exp(-2 * (k * k - 1) * square) for k in range(2, 6))
    return np.where(d > 1, np.log(2.0) - 2 * square + np.log1p(rest), np.log(kolmogorov(np.minimum(d, 1.0))))
