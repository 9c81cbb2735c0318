"""T-Cal: debiased squared errors at all dyadic scales, combined by an exact min-p."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._dyadic import dyadic_errors
from caltest.predictions._partitions import EqualWidth
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_count
from caltest.statistics._base import Combination, Statistic
from caltest.statistics._squared_l2 import SquaredL2

_MOST_SCALES = 30


@dataclass(frozen=True, repr=False)
class TCal(Combination):
    r"""Adaptive T-Cal (Lee et al. 2023): min-p over debiased errors with 2, 4, 8, ... cells, for two-outcome lenses.

    Its components are ``SquaredL2(EqualWidth(m), estimator="t-cal")``. Predictions of exactly 1 lie in the last cell
    (bin); the authors' program has a separate cell for them.

    The smoothness of a miscalibration is not known in advance. The finest useful scale for n observations is
    :math:`2^b \le n`. Instead of a Bonferroni correction over scales, every scale has a rank among the same B + 1 data
    sets, including the observed one, and the p-value is the rank of the sorted ranks in lexicographic order, as in
    `Omnibus`: it is valid at every n. The statistic is :math:`-\log_{10}` of the smallest p-value over scales. The
    smallest attainable p-value is 1 / (B + 1); if the next rank did not break ties of the smallest one, it would be
    about the number of scales divided by B + 1.

    Parameters
    ----------
    n_scales : int
        Largest number of scales; scales with more cells than observations are left out.

    Raises
    ------
    TypeError
        If ``n_scales`` is not an integer.
    ValueError
        If ``n_scales`` < 1 or > 30.

    See Also
    --------
    SquaredL2 : The error at one scale.
    Omnibus : Min-p over other statistics.

    References
    ----------
    D. Lee, X. Huang, H. Hassani and E. Dobriban (2023), T-Cal: an optimal test for the calibration of predictive
    models, Journal of Machine Learning Research 24.

    Examples
    --------
    >>> import caltest
    >>> print(caltest.TCal(3).components[-1])
    SquaredL2(partition=EqualWidth(8), estimator='t-cal')
    """

    n_scales: int = _MOST_SCALES

    n_outcomes = 2

    def __post_init__(self) -> None:
        if validate_count(self.n_scales, "n_scales") > _MOST_SCALES:
            msg = f"`n_scales` must be an integer from 1 to {_MOST_SCALES}, got {self.n_scales}."
            raise ValueError(msg)

    @property
    def components(self) -> tuple[Statistic, ...]:
        """The scales, the coarsest first."""
        return tuple(SquaredL2(EqualWidth(2 ** (b + 1)), "t-cal") for b in range(self.n_scales))

    def for_sample(self, sample: Sample) -> TCal:
        """Return the test over the scales that are useful for the sample."""
        finest = max(sample.n_samples.bit_length() - 1, 1)
        return replace(self, n_scales=min(self.n_scales, finest))

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return every scale ``(n_scales, ...)``: one pass over the observations, then pairs of cells are merged."""
        if self != self.for_sample(sample):  # it would need memory for 2 ** n_scales cells
            msg = (
                f"`n_scales` is too large for {sample.n_samples} observations, got {self.n_scales}; "
                "call `for_sample` first."
            )
            raise ValueError(msg)
        if sample.weight is not None:
            return super().evaluate_components(sample, outcomes)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        errors = dyadic_errors(flat, *sample.once(self._finest)) / sample.n_samples
        return errors.reshape(self.n_scales, *outcomes.shape[:-1])

    def _finest(self, sample: Sample) -> tuple[NDArray[Any], ...]:
        """Return the arguments of `dyadic_errors` that depend on predictions only."""
        m = 2**self.n_scales
        event, prob = sample.event, sample.null_prob[:, 1]
        start = np.searchsorted(event, np.arange(m) / m)
        start = np.append(np.append(0, start[1:]), sample.n_samples)
        rows = np.diff(start).astype(np.float64)
        inverse = []
        for scale in range(self.n_scales):
            count = rows.reshape(m >> scale, -1).sum(axis=1)
            inverse.append(np.divide(1.0, count, where=count > 0, out=np.zeros_like(count)))
        cell = np.repeat(np.arange(m), np.diff(start))
        expected = np.bincount(cell, weights=prob, minlength=m)
        squares = np.bincount(cell, weights=np.square(prob), minlength=m)
        return 1 - 2 * prob, start, expected, squares, np.concatenate(inverse)
