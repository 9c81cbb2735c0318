"""The bridge test's statistic: the mean and the shape of the cumulative residual, combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._brownian_bridge import path_ends_and_bridges
from caltest.predictions._sample import Sample
from caltest.statistics._base import Statistic, require_two_outcomes


@dataclass(frozen=True)
class Bridge(Statistic):
    r"""Mean and shape of the cumulative residual, combined by Fisher's method; for two-outcome lenses.

    With rows in the order of the event's probability, :math:`e_i = y_i - p_i`, :math:`v_i = p_i (1 - p_i)`,
    :math:`V = \sum_i v_i`, the path :math:`S_k = \sum_{i \le k} e_i / V^{1/2}` at the time
    :math:`t_k = \sum_{i \le k} v_i / V` behaves like a Brownian motion if the model is calibrated. Its end and the
    bridge that is left when the end is tied down are independent in the limit:

    .. math::
        M = |S_n|, \quad D = \max_k |S_k - t_k S_n|, \qquad
        T = -2 \log\bigl(2 \Phi(-M)\bigr) - 2 \log P(K > D),

    with K the supremum of a Brownian bridge (Kolmogorov's law); T then follows chi-squared(4). The path is read only
    at the end of a block of tied probabilities. M measures calibration in the large, D what remains of it. Without
    variance T is 0, or infinite if a certainty was contradicted. Sample weights multiply the residuals, their squares
    the variances.

    Raises
    ------
    ValueError
        If the lens has more than two outcomes.

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

    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return T, ``(...)``, of outcomes ``(..., n_samples)``."""
        end, bridge = self.parts(sample, outcomes)
        return 0.0 - 2 * (log_normal_pvalue(np.abs(end)) + log_kolmogorov_pvalue(bridge))  # never -0

    def parts(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the signed mean :math:`S_n` and the shape :math:`D`, ``(...)`` each."""
        require_two_outcomes(sample, "Bridge")
        start, expected, time, variance = sample.once(_path)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.weight is None:
            ends = path_ends_and_bridges(flat, start, expected, time)
        else:
            path = np.cumsum(sample.weight * flat, axis=1)[:, start[1:] - 1] - expected
            ends = np.column_stack([path[:, -1], np.abs(path - time * path[:, -1:]).max(axis=1)])
        # Without variance nothing moves the path but contradicted certainties.
        contradicted = np.where(np.abs(ends) > 0, np.copysign(np.inf, ends), 0.0)
        ends = ends / np.sqrt(variance) if variance > 0 else contradicted
        return ends[:, 0].reshape(outcomes.shape[:-1]), ends[:, 1].reshape(outcomes.shape[:-1])


def _path(sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], float]:
    """Return where blocks start ``(n_blocks + 1,)``, expected events and times at their ends ``(n_blocks,)``, and V."""
    start = np.append(np.flatnonzero(np.append(True, np.diff(sample.event) > 0)), sample.n_samples)
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    expected = np.cumsum(weight * sample.expected[:, 1])[start[1:] - 1]
    variance = np.cumsum(np.square(weight) * sample.expected.prod(axis=1))[start[1:] - 1]
    total = float(variance[-1])
    return start, expected, variance / total if total > 0 else np.zeros(len(variance)), total


def log_normal_pvalue(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log P(|N(0, 1)| >= z), accurate in the tail."""
    from scipy.special import log_ndtr

    return np.minimum(np.log(2.0) + log_ndtr(-z), 0.0)


def log_kolmogorov_pvalue(d: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return log P(sup of \|Brownian bridge\| >= d), accurate in the tail.

    Beyond 1, five terms of :math:`2 \sum_k (-1)^{k-1} e^{-2 k^2 d^2}` are exact to rounding; the first is taken out.
    """
    from scipy.special import kolmogorov

    square = np.square(np.maximum(d, 1.0))
    rest = sum((-1) ** (k - 1) * np.exp(-2 * (k * k - 1) * square) for k in range(2, 6))
    return np.where(d > 1, np.log(2.0) - 2 * square + np.log1p(rest), np.log(kolmogorov(np.minimum(d, 1.0))))
