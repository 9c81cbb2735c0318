"""Debiased estimates of the squared l2 calibration error, within given cells and at all dyadic scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import dyadic_errors, sum_over_events
from caltest._compiled._lookup import sum_selected
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._distances import Distance
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import CellSums, cells_of
from caltest.predictions.cells._partitions import EqualWidth, Partition, validate_partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import one_of, require, validate_count
from caltest.resampling.distributions._base import Distribution
from caltest.resampling.draws._signs import residual_sums
from caltest.resampling.draws._summaries import KeptSums
from caltest.results._naming import parameter
from caltest.statistics._base import Combination, Statistic

_MOST_SCALES = 30


@dataclass(frozen=True, repr=False)
class SquaredL2(Statistic):
    r"""Debiased estimate of the squared l2 calibration error over cells (bins); it may be negative.

    With the residuals :math:`e_i = y_i - p_i` (y one-hot; only that of the event behind a two-outcome lens) and their
    sums :math:`S_b` in the cells,

    .. math::
        T = \frac1n \sum_b \frac{|S_b|^2 - \sum_{i \in b} |e_i|^2}{n_b - 1},

    the U-statistic of the products :math:`e_i \cdot e_j` of different observations of a cell. Its target is the squared
    miscalibration averaged within cells, :math:`\sum_b w_b |\mu_b|^2` with :math:`\mu_b = E[e \mid b]` and shares
    :math:`w_b = n_b / n`. For observations that are independent and identically distributed given their cell it is
    exactly unbiased at every n. Given the predictions its mean is :math:`\sum_b w_b (|\mu_b|^2 - v_b / (n_b - 1))`,
    where :math:`\mu_b` and :math:`v_b` are the mean and the variance over the observations of the cell of the true
    deviations :math:`E[e_i \mid p_i]`. This is 0 if the model is calibrated, and slightly too low if the
    miscalibration varies within cells. A cell of one observation counts 0. A negative value is due to chance, or to
    outcomes that vary less than predicted; it is reported as it is. Results also contain ``root``,
    :math:`\sqrt{\max(T, 0)}`, and ``null_std``, the standard deviation of the null distribution.

    With sample weights w and sums of weighted residuals :math:`S_b`, a cell counts :math:`W_b / W` times
    :math:`(|S_b|^2 - \sum w_i^2 |e_i|^2) / (W_b^2 - \sum w_i^2)`.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex.
    estimator : {"unbiased", "t-cal", "kumar"}
        "unbiased" is T. "t-cal" (Lee et al. 2023) divides by :math:`n_b` instead of :math:`n_b - 1`, which shrinks
        towards 0. "kumar" (Kumar et al. 2019) is :math:`\sum_b w_b \bigl(|\bar y_b - \bar p_b|^2 - \sum_k
        \bar y_{bk} (1 - \bar y_{bk}) / (n_b - 1)\bigr)`. It subtracts the whole variance of the outcomes in the cell,
        including the part that the predictions explain. This is too much by the variance of calibrated predictions in
        the cell divided by :math:`n_b - 1`. It is equal to T if predictions do not vary within cells.

    Raises
    ------
    TypeError
        If ``partition`` is neither a partition nor a function, or ``estimator`` is not a text.
    ValueError
        If ``estimator`` is unknown.

    See Also
    --------
    ECE : Average absolute distance, which is biased upwards near calibration.
    caltest.l2_interval : Confidence interval for the same target.

    References
    ----------
    A. Kumar, P. Liang and T. Ma (2019), Verified uncertainty calibration, NeurIPS.
    D. Lee, X. Huang, H. Hassani and E. Dobriban (2023), T-Cal: an optimal test for the calibration of predictive
    models, JMLR.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> squared = caltest.SquaredL2(caltest.EqualMass(15))
    >>> result = caltest.calibration_test(y_true, y_prob, lens=caltest.Confidence(), statistic=squared, rng=0)
    >>> round(result.statistic, 5), round(result.derived["root"], 4), result.pvalue
    (0.00603, 0.0777, 0.0001)
    """

    words = "squared l2 error"
    degree = 2

    partition: Partition | Any = parameter(VarianceTree(), validate_partition)
    estimator: str = parameter("unbiased", one_of("unbiased", "t-cal", "kumar"))

    measures_scatter = True

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return the root of the estimate, clipped at 0, and the standard deviation of the null distribution."""
        return {"root": math.sqrt(max(value, 0.0)), "null_std": null.std}

    @property
    def target(self) -> Distance:
        """The distance that is averaged."""
        return squared_l2

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the signed estimate ``(...)`` of outcomes ``(..., n_samples)``."""
        sums = CellSums.of(sample, cells_of(sample, self.partition), outcomes)
        scale, squares = sample.once(self._scale)
        if self.estimator == "kumar":
            return _less_variance(sums, scale, squares)
        whole = np.square(_free(sums.observed_count - sums.predicted_sum)).sum(axis=-1)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.is_large:
            row = np.arange(sample.n_samples)
            total = np.array([self._own(sample, sample.given_null[row, drawn, None]).sum() for drawn in flat])
            return (whole * scale).sum(axis=-1) - total.reshape(outcomes.shape[:-1])
        own = sample.once(self._own_squares)
        if sample.n_outcomes == 2:
            step = own[:, 1] - own[:, 0]
            total = own[:, 0].sum() + sum_over_events(flat, step, np.array([0, sample.n_samples]))[:, 0]
        else:
            total = sum_selected(flat, own)
        return (whole * scale).sum(axis=-1) - total.reshape(outcomes.shape[:-1])

    def evaluate_sums(self, sums: KeptSums) -> Floats:
        """Return the estimate of kept sums of squared residuals."""
        cells = sums.cells(self.partition)
        scale = self._factor(cells.count, cells.count, cells.count > 1)
        if self.estimator == "kumar":
            return _less_variance(cells, scale, cells.count)
        gap = np.square(_free(cells.observed_count - cells.predicted_sum)).sum(axis=-1)
        return ((gap - cells.own) * scale).sum(axis=-1)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the estimate of signed residuals, whose squares do not change; None for "kumar"."""
        if self.estimator == "kumar":
            return None
        cells, (scale, _) = cells_of(sample, self.partition), sample.once(self._scale)
        signed, observed = (
            (np.square(_free(residual_sums(sample, some, cells))).sum(axis=-1) * scale).sum(axis=-1)
            for some in (signs, np.ones_like(signs[:1]))
        )
        return self.evaluate(sample, sample.outcome) + (signed - observed)

    def _scale(self, sample: Sample) -> tuple[Floats, Floats]:
        """Return the factor of squared residuals in each cell, 0 where there are no pairs, and sums of squared weights.

        Both ``(n_cells,)``.
        """
        cells = cells_of(sample, self.partition)
        squares = sums_in_parts(cells.index, np.square(sample.weight_or_ones), cells.n_cells)
        several = np.bincount(cells.index, minlength=cells.n_cells) > 1
        return self._factor(cells.count, squares, several), squares

    def _factor(self, count: Floats, squares: Floats, several: Booleans) -> Floats:
        """Return the share of each cell divided by its number of pairs, 0 where there are none."""
        pairs = np.square(count) - (0.0 if self.estimator == "t-cal" else squares)
        return np.divide(count / count.sum(), pairs, where=several, out=np.zeros(len(count)))

    def _own_squares(self, sample: Sample) -> Floats:
        """Return the squared residual of each outcome times the factor of its cell, ``(n_samples, n_outcomes)``."""
        return self._own(sample, sample.null_prob)

    def _own(self, sample: Sample, null_prob: NDArray[Any]) -> Floats:
        """Return the same of the outcomes that have some probabilities, ``(n_samples, n)``."""
        p = null_prob.astype(np.float64, copy=False)
        if sample.n_outcomes == 2:
            own = p[:, 1:] - [0, 1]
            np.square(own, out=own)
        else:
            own = 1 - 2 * p + sample.once(_lengths)[:, None]
        scale = sample.once(self._scale)[0][cells_of(sample, self.partition).index]
        own *= (scale if sample.weight is None else scale * np.square(sample.weight))[:, None]
        return own


def _lengths(sample: Sample) -> Floats:
    """Return the squared length of each null probability, ``(n_samples,)``."""
    if not sample.is_large:
        return np.square(sample.null_prob).sum(axis=1)
    return np.array([np.square(p.astype(np.float64)).sum() for p in sample.given_null])


def squared_l2(predicted: Floats, observed: Floats) -> Floats:
    """Return the squared deviation of the event, or of all of more than two outcomes."""
    square = np.square(observed - predicted)
    return square[..., 1] if square.shape[-1] == 2 else square.sum(axis=-1)


def _less_variance(sums: CellSums, scale: Floats, squares: Floats) -> Floats:
    """Return the estimate "kumar": the squared distances less the variance of the frequencies."""
    frequency = _free(sums.observed)
    gap = np.square(frequency - _free(sums.predicted)).sum(axis=-1)
    variance = (frequency * (1 - frequency)).sum(axis=-1)
    return (np.where(scale > 0, sums.share * gap, 0.0) - scale * squares * variance).sum(axis=-1)


def _free(outcomes: Floats) -> Floats:
    """Return the last axis without the first of two outcomes, which the other determines."""
    return outcomes[..., 1:] if outcomes.shape[-1] == 2 else outcomes


def _validate_scales(value: Any, name: str) -> None:
    few = validate_count(value, name) <= _MOST_SCALES
    require(few, f"`{name}` must be an integer from 1 to {_MOST_SCALES}", value)


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
    >>> print(caltest.statistics.TCal(3).components[-1])
    SquaredL2(partition=EqualWidth(8), estimator='t-cal')
    """

    n_scales: int = parameter(_MOST_SCALES, _validate_scales)

    n_outcomes = 2
    hint_of_sums = "; of TCal a state needs the number of scales, such as TCal(10)"

    @property
    def components(self) -> tuple[Statistic, ...]:
        """The scales, the coarsest first."""
        return tuple(SquaredL2(EqualWidth(2 ** (b + 1)), "t-cal") for b in range(self.n_scales))

    def for_sample(self, sample: Sample | KeptSums) -> TCal:
        """Return the test over the scales that are useful for the sample."""
        finest = max(sample.n_samples.bit_length() - 1, 1)
        return replace(self, n_scales=min(self.n_scales, finest))

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return every scale ``(n_scales, ...)``: one pass over the observations, then pairs of cells are merged."""
        if self != self.for_sample(sample):  # it would need memory for 2 ** n_scales cells
            refuse(
                f"`n_scales` is too large for {sample.n_samples:,} observations, got {self.n_scales}; "
                "call `for_sample` first."
            )
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
