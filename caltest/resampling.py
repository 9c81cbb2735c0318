r"""Where null distributions come from: how outcomes, and perhaps predictions, are redrawn.

:math:`D^\rho`, data whose true calibration function is :math:`\rho`, is drawn as in section 4.2 of Vaicenavicius et
al. (2019); what is held fixed decides when the p-value is valid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._kernels.draws import count_drawn, draw_multiplicities, draw_outcomes, draw_rows
from caltest._sample import CalibrationFunction, Sample, outcome_dtype, with_calibration_function
from caltest._validation import SeedLike, validate_count, validate_rng

_BLOCK_BYTES = 2**21  # drawn outcomes of a block: they should stay in cache until every statistic has read them
_BLOCK_REPLICATES = (8, 256)


@dataclass(frozen=True)
class Consistency:
    r"""Resampling under the hypothesis that the model is calibrated (Bröcker & Smith 2007).

    By default the predictions are held fixed and only outcomes are redrawn, :math:`y_i \sim \rho(g_i)`. The null law is
    then fully known and the p-value valid at every sample size, for every statistic.

    Parameters
    ----------
    resample_predictions : bool
        Also draw the rows with replacement, as the paper does, and fit data-dependent partitions again on every
        resample. This p-value is asymptotic only, and wrong when cells hold few rows, because copies of a row share a
        cell; the result of the test warns.
    calibration_function : callable, optional
        A known calibration function :math:`\rho` instead of the identity, from induced probabilities
        ``(n_samples, n_outcomes)`` to the same shape. Cells stay on the predictions; outcomes are drawn from
        :math:`\rho` and residuals are centred on it. It must not have been fitted on these labels.

    Raises
    ------
    ValueError
        If ``resample_predictions`` is no boolean or ``calibration_function`` not callable.

    Examples
    --------
    >>> Consistency()
    Consistency(resample_predictions=False, calibration_function=None)
    """

    resample_predictions: bool = False
    calibration_function: CalibrationFunction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.resample_predictions, bool):
            msg = f"`resample_predictions` must be True or False, got {self.resample_predictions!r}."
            raise ValueError(msg)
        if self.calibration_function is not None and not callable(self.calibration_function):
            msg = f"`calibration_function` must be a function of probabilities, got {self.calibration_function!r}."
            raise ValueError(msg)

    def under_null(self, sample: Sample) -> Sample:
        """Return the sample with the probabilities that its outcomes have under this null hypothesis."""
        if self.calibration_function is None:
            return sample
        return with_calibration_function(sample, self.calibration_function)

    def draws(self, n_resamples: int, rng: SeedLike = None) -> Draws:
        """Return ``n_resamples`` draws; all randomness of a test enters here."""
        outcome_seed, row_seed = validate_rng(rng).integers(2**64, size=2, dtype=np.uint64)
        count = validate_count(n_resamples, "n_resamples")
        return Draws(outcome_seed, row_seed if self.resample_predictions else None, 0, count)


def _threads(workers: int) -> int:
    if workers == -1:
        return os.cpu_count() or 1
    try:
        return validate_count(workers, "workers")
    except ValueError:
        msg = f"`workers` must be an integer >= 1, or -1 for all processors, got {workers!r}."
        raise ValueError(msg) from None


@dataclass(frozen=True)
class Draws:
    """The generator states of a range of replicates: what makes every null distribution, and makes it repeatable.

    Replicate r depends on the seeds and on r alone, so a test may be cut into slices in any way.

    Attributes
    ----------
    outcome_seed, row_seed : numpy.uint64
        Seeds of the outcomes and of the rows; without a row seed the predictions stay fixed.
    first, n_resamples : int
        The range of replicates.
    """

    outcome_seed: np.uint64
    row_seed: np.uint64 | None
    first: int
    n_resamples: int

    def slices(self, size: int) -> list[Draws]:
        """Cut into consecutive parts of at most ``size`` replicates."""
        return [
            replace(self, first=self.first + start, n_resamples=min(size, self.n_resamples - start))
            for start in range(0, self.n_resamples, size)
        ]

    def map(
        self,
        evaluate: Callable[[Draws], NDArray[np.float64]],
        workers: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float64]:
        """Return ``evaluate(part)`` joined along the last axis over parts of the replicates, on ``workers`` threads."""
        threads = _threads(workers)
        parts = self.slices(min(_BLOCK_REPLICATES[1], -(-self.n_resamples // (4 * threads))))
        values = []
        with ThreadPoolExecutor(threads) as pool:
            for part, value in zip(parts, pool.map(evaluate, parts), strict=True):
                values.append(value)
                if progress is not None:
                    progress(part.first + part.n_resamples, self.n_resamples)
        return np.concatenate(values, axis=-1)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield samples with outcomes ``(n_replicates, n_samples)`` drawn for them under the null hypothesis."""
        if self.row_seed is None:
            low, high = _BLOCK_REPLICATES
            size = min(max(_BLOCK_BYTES // sample.n_samples, low), high)
            for part in self.slices(size):
                yield sample, part._outcomes(sample)
        else:
            for part in self.slices(1):
                row = np.empty(sample.n_samples, dtype=np.int64)
                draw_rows(self.row_seed, part.first, row)
                outcomes = part._outcomes(sample, np.ascontiguousarray(sample.thresholds[:, row]))
                order = np.argsort(row, kind="stable")
                yield sample.take(row[order]), outcomes[:, order]

    def multiplicities(self, sample: Sample) -> Iterator[tuple[NDArray[np.uint16], NDArray[np.uint16]]]:
        """Yield how often each row was drawn, and how often with the event, ``(n_replicates, n_samples)`` each.

        The same draws as `blocks`, for resampled predictions and two outcomes, without copies of rows.
        """
        for part in self.slices(max(_BLOCK_BYTES // (4 * sample.n_samples), 1)):
            rows = np.empty((part.n_resamples, sample.n_samples), dtype=np.uint16)
            events = np.empty_like(rows)
            draw_multiplicities(sample.thresholds[0], self.row_seed, self.outcome_seed, part.first, rows, events)
            yield rows, events

    def counts(self, sample: Sample, cell: NDArray[Any], n_cells: int) -> Iterator[NDArray[np.int32]]:
        """Yield ``(n_replicates, n_cells)``: rows that fall to an outcome whose entry lies in each cell.

        The same draws as `blocks`, for fixed predictions, without storing outcomes. ``cell (n_samples, n_outcomes)``
        is the cell of every entry of the predictions, 0 to ``n_cells - 1``.
        """
        low, high = _BLOCK_REPLICATES
        for part in self.slices(min(max(_BLOCK_BYTES // (4 * n_cells), low), high)):
            counted = np.empty((part.n_resamples, n_cells), dtype=np.int32)
            count_drawn(sample.thresholds, cell, self.outcome_seed, part.first, counted)
            yield counted

    def _outcomes(self, sample: Sample, thresholds: NDArray[np.uint32] | None = None) -> NDArray[Any]:
        out = np.empty((self.n_resamples, sample.n_samples), dtype=outcome_dtype(sample.n_outcomes))
        draw_outcomes(sample.thresholds if thresholds is None else thresholds, self.outcome_seed, self.first, out)
        return out
