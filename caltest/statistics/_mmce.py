"""Maximum mean calibration error: the kernel norm of the residuals of one probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._laplace import laplace_forms
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_positive
from caltest.resampling._signs import group_of
from caltest.statistics._base import Statistic


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    r"""Maximum mean calibration error (MMCE) of Kumar et al. (2018), for two-outcome lenses.

    .. math:: \Bigl(\frac{1}{n^2} \sum_{i, j} r_i r_j \, e^{-|p_i - p_j| / \gamma}\Bigr)^{1/2}, \qquad r_i = y_i - p_i

    with :math:`p_i` the event's probability and :math:`y_i` its indicator. Behind `Confidence` :math:`r_i` is
    correctness minus confidence, as in the paper. Pairs of an observation with itself count, so that a calibrated model
    has a value above 0, which decreases like :math:`n^{-1/2}`. It needs no cells. Its target is the norm of the mean
    residual, smoothed by a Laplace kernel. Sample weights multiply the residuals and replace n by their sum.

    Parameters
    ----------
    bandwidth : float
        :math:`\gamma`, 0.4 in the paper.

    Raises
    ------
    TypeError
        If ``bandwidth`` is not a number.
    ValueError
        If ``bandwidth`` is not positive and finite.

    See Also
    --------
    SKCE : Squared kernel error for any number of outcomes.

    References
    ----------
    A. Kumar, S. Sarawagi and U. Jain (2018), Trainable calibration measures for neural networks from kernel mean
    embeddings, ICML.

    Examples
    --------
    >>> import caltest
    >>> caltest.calibration_error([0, 1, 1, 1], [0.5] * 4, statistic=caltest.statistics.MMCE())
    0.25
    """

    bandwidth: float = 0.4

    n_outcomes = 2
    measures_scatter = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", validate_positive(self.bandwidth, "bandwidth"))

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        return self._norm(sample, outcomes, weight, -weight * sample.null_prob[:, 1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64]:
        """Return the error of signed residuals."""
        residual = sample.residual(1)
        return self._norm(sample, signs[:, group_of(sample)] > 0, 2 * residual, -residual)

    def _norm(
        self, sample: Sample, chosen: NDArray[Any], step: NDArray[np.float64], offset: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the error of residuals ``offset``, plus ``step`` where chosen, for ``chosen (..., n_samples)``."""
        total = sample.n_samples if sample.weight is None else sample.weight.sum()
        gap = np.diff(sample.event, prepend=-np.inf) / self.bandwidth
        flat = np.atleast_2d(chosen).reshape(-1, sample.n_samples)
        forms = laplace_forms(flat, step, offset, np.exp(-gap), -np.expm1(-2 * gap))
        return (np.sqrt(forms) / total).reshape(chosen.shape[:-1])
