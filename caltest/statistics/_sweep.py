"""Calibration error on the largest number of equal-mass cells whose event frequencies do not decrease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._sweep import sweep
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_choice
from caltest.statistics._base import Statistic


@dataclass(frozen=True, repr=False)
class MonotonicSweepECE(Statistic):
    r"""Calibration error of the monotonic sweep (Roelofs et al. 2022), for two-outcome lenses.

    .. math::
        \sum_{b=1}^{B^*} \frac{n_b}{n} \bigl|\bar y_b - \bar p_b\bigr|, \qquad
        B^* = \max \{B \le n : \bar y_1 \le \dots \le \bar y_{B'} \text{ for all } B' \le B\}

    over the cells (bins) of ``EqualMass(B)``, with :math:`\bar p_b` the mean prediction and :math:`\bar y_b` the
    frequency of the event. The sweep stops at the first number of cells at which frequencies decrease somewhere. Its
    target is the miscalibration of a model with a non-decreasing calibration function, with as little smoothing as that
    allows. If the predictions do not discriminate, it stops at one cell, and only the overall gap is left; if the
    calibration function decreases somewhere, it stops at few cells, and the estimate is too small with any number of
    observations (docs/which-estimator.md). The cells
    depend on the outcomes and are chosen again for every draw, so that the p-value is valid. Tied predictions stay
    together, and cells are cut as by ``numpy.array_split``; the authors' program cuts ties in the order of the
    observations and distributes the remainder of n / B differently. Sample weights change means and frequencies, not
    the cells.

    Parameters
    ----------
    norm : {"l1", "l2"}
        The mean absolute gap, or the root of the mean squared gap (the default of the authors' program).

    Raises
    ------
    TypeError
        If ``norm`` is not a text.
    ValueError
        If ``norm`` is unknown.

    See Also
    --------
    ECE : The same on a given number of cells, ``ECE(EqualMass(15))``.
    IsotonicError : Assumes a non-decreasing calibration function too, without cells.

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens and M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> sweep = caltest.statistics.MonotonicSweepECE()
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=sweep), 4)
    0.0397
    """

    norm: str = "l1"

    n_outcomes = 2

    def __post_init__(self) -> None:
        validate_choice(self.norm, "norm", ("l1", "l2"))

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        return self._sweep(sample, outcomes)[1].reshape(outcomes.shape[:-1])

    def n_cells(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the chosen number of cells :math:`B^*`, ``(...)``; ties may leave fewer occupied cells."""
        return self._sweep(sample, outcomes)[0].reshape(outcomes.shape[:-1])

    def _sweep(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return sweep(flat, *sample.once(_sorted_sums), sample.weight is not None, self.norm == "l2")


def _sorted_sums(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return cumulative probabilities, cumulative weights and starts of blocks of ties, ``(n_samples + 1,)`` each."""
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    expected, mass = (np.append(0.0, np.cumsum(value)) for value in (weight * sample.null_prob[:, 1], weight))
    start = np.append(np.flatnonzero(np.append(True, np.diff(sample.event) > 0)), sample.n_samples)
    return expected, mass, start[np.searchsorted(start, np.arange(sample.n_samples + 1))]
