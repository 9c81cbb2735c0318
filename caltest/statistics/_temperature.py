"""The score of temperature scaling: is the model over- or under-confident?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import sum_selected
from caltest.predictions._sample import Sample
from caltest.statistics._base import Statistic


@dataclass(frozen=True)
class TemperatureScore(Statistic):
    r"""Two-sided score statistic of temperature scaling at temperature 1, :math:`|U|`.

    .. math:: U = \sum_i \Bigl[\log p_{i, y_i} - \sum_k p_{ik} \log p_{ik}\Bigr], \qquad 0 \log 0 = 0,

    the derivative, up to sign, of the log-likelihood of :math:`p_{ik}^{1/T} / \sum_l p_{il}^{1/T}` with respect to T
    at T = 1, hence the locally most powerful direction against a wrong temperature. U < 0: over-confident, U > 0:
    under-confident (`signed`). With a calibration function :math:`\rho` as null, the expectation is over
    :math:`\rho(p_i)`. An outcome that was given probability 0 makes it infinite. Sample weights multiply the terms.

    Examples
    --------
    A forecaster who says 0.9 and is right in 6 of 10 cases is over-confident:

    >>> import caltest
    >>> y_true, y_prob = [1] * 6 + [0] * 4, [0.9] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.TemperatureScore()), 4)
    6.5917
    """

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return :math:`|U|`, ``(...)``, of outcomes ``(..., n_samples)``."""
        return np.abs(self.signed(sample, outcomes))

    def signed(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return U itself, ``(...)``: negative where over-confident."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return sum_selected(flat, sample.once(_terms)).reshape(outcomes.shape[:-1])


def _terms(sample: Sample) -> NDArray[np.float64]:
    """Return the term of U for each row and outcome, ``(n_samples, n_outcomes)``; -inf where impossible."""
    # The floor matters only where a calibration function makes possible what the model excludes.
    terms = np.maximum(sample.prob, np.finfo(np.float64).tiny)
    np.log(terms, out=terms)
    terms -= np.einsum("ik,ik,ik->i", sample.null_prob > 0, sample.null_prob, terms)[:, None]
    terms[(sample.prob <= 0) & (sample.null_prob <= 0)] = -np.inf
    if sample.weight is not None:
        terms = np.where(sample.weight[:, None] > 0, terms, 0.0) * sample.weight[:, None]
    return terms
