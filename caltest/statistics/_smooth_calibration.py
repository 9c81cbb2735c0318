"""Smooth calibration error: the largest mean residual that a Lipschitz weight of the predictions picks out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lipschitz import lipschitz_suprema
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.resampling import Distribution
from caltest.resampling.draws._signs import group_of
from caltest.statistics._base import Statistic, in_batches

_BATCH = 2**18  # numbers whose sums are kept at a time: they should stay in cache


@dataclass(frozen=True, repr=False)
class SmoothCalibrationError(Statistic):
    r"""Smooth calibration error (smCE) of Kakade & Foster (2008) and Błasiok et al. (2023), for two-outcome lenses.

    .. math:: \mathrm{smCE} = \max_{w} \Bigl|\frac1n \sum_i w(p_i) (y_i - p_i)\Bigr| \quad \text{over } w: [0, 1] \to
              [-1, 1] \text{ with } |w(p) - w(q)| \le |p - q|

    with the event's probability :math:`p_i` and its indicator :math:`y_i`. It has neither cells nor a bandwidth, and
    changes little if predictions change little. Its target is the same maximum over the whole population, which is at
    least the absolute mean residual and at most the expected miscalibration :math:`E|r(p) - p|`. As the maximum follows
    the labels, a calibrated model has a positive value of the order :math:`n^{-1/2}`, its noise floor. Deviations of
    opposite signs at close predictions cancel, so that a jagged calibration curve is hardly detected.

    The value is exact, to rounding: the maximum is a linear program on a line, whose dual, a median filter with a
    penalty on total variation, is solved by dynamic programming with two heaps in a time of n log n. Hu et al. (2024)
    solve the same program in n log² n.

    **Lower distance to calibration.** How far predictions have to be moved on average, :math:`E|p - u|`, to calibrated
    predictions u, which may be drawn at random given the prediction and the label, is known within a factor of 4:

    .. math:: \tfrac12\, \mathrm{smCE} \le \underline{\mathrm{dCE}} \le 2\, \mathrm{smCE}

    (Błasiok et al. 2023). Results of tests have both bounds as ``lower_distance_least`` and ``lower_distance_most``.
    They are those of the observed labels, so that half and twice the noise floor are what a calibrated model has. The
    distance to calibrated functions of what was known to the model is at least as large.

    Raises
    ------
    ValueError
        When it is evaluated, if a lens has more than two outcomes.

    See Also
    --------
    SmoothECE : Smooths residuals at the bandwidth that equals the error, another bound of the same distance.
    KS : Largest sum of residuals up to a prediction.

    References
    ----------
    J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023), A unifying theory of distance from calibration, STOC 2023.
    L. Hu, A. Jambulapati, K. Tian and C. Yang (2024), Testing calibration in nearly-linear time, NeurIPS 2024.
    S. M. Kakade and D. P. Foster (2008), Deterministic calibration and Nash equilibrium, Journal of Computer and System
    Sciences 74, 115-130.
    V. Kolmogorov, T. Pock and M. Rolinek (2016), Total variation on a tree, SIAM Journal on Imaging Sciences 9.

    Examples
    --------
    Residuals are 0.25 at one prediction and -0.25 at the other, which are 0.5 apart, so that the best weights are 0.25
    and -0.25, or 1 and 0.5:

    >>> import caltest
    >>> y_true, y_prob = [0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75]
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.SmoothCalibrationError())
    0.0625
    """

    words = "largest Lipschitz-weighted residual"

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        weight, expected = sample.weight_or_ones, sample.weight_or_ones * sample.null_prob[:, 1]
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        found = _suprema(sample, flat, lambda some: some * weight - expected)
        return found.reshape(outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the error of signed residuals."""
        residual, group = sample.weight_or_ones * (sample.outcome - sample.null_prob[:, 1]), group_of(sample)
        return _suprema(sample, signs, lambda some: some[:, group] * residual)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return the bounds of the lower distance to calibration."""
        return {"lower_distance_least": value / 2, "lower_distance_most": 2 * value}


def _suprema(sample: Sample, replicates: NDArray[Any], residuals: Callable[[NDArray[Any]], Floats]) -> Floats:
    """Return the error ``(n_replicates,)`` from the weighted residuals ``(n, n_samples)`` of some replicates each."""
    start, gap = sample.of_predictions(_points)

    def errors(some: NDArray[Any]) -> Floats:
        sums = residuals(some)
        if len(start) < sample.n_samples:
            sums = np.add.reduceat(sums, start, axis=-1)
        return np.asarray(lipschitz_suprema(np.cumsum(sums, axis=-1), gap)) / sample.total_weight

    return in_batches(errors, replicates, max(_BATCH // sample.n_samples, 1))


def _points(sample: Sample) -> tuple[Integers, Floats]:
    """Return the first observation of each different prediction, ``(n_points,)``, and the distances between them."""
    event = np.clip(sample.event, 0.0, 1.0)
    start = np.flatnonzero(np.append(True, np.diff(event) > 0))
    return start, np.diff(event[start])
