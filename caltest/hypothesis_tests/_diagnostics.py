"""What a result says in words: its hypothesis, its conditions, and what the reader should know beyond the numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lenses import Canonical, ClassWise, Lens
from caltest.predictions._sample import Sample
from caltest.resampling._distributions import TIE_TOLERANCE
from caltest.resampling._draws import Draws
from caltest.resampling._schemes import Consistency
from caltest.results import CalibrationWarning
from caltest.results._naming import describe
from caltest.results._test_result import ComponentResult
from caltest.statistics import Statistic
from caltest.statistics._classwise_cells import EntryStatistic

_SPARSE_ROWS = 10  # cells of fewer rows make resampled predictions misleading: copies of a row share a cell
_TOLERATED = 0.05
_REFITS = 20
_UNUSUALLY_SMALL = 0.01


def sparsity_notes(parts: Sequence[Statistic], sample: Sample, draws: Draws, stacklevel: int = 5) -> list[str]:
    """Warn where copies of a row that share a cell make resampled predictions misleading.

    The warning names the place that called the public function, ``stacklevel`` calls up from here.
    """
    if not draws.resample_rows:
        return []
    notes = []
    for part in parts:
        rows = _rows_in_cells(part, sample)
        if not rows.size:
            continue
        sparse = rows[rows < _SPARSE_ROWS].sum() / rows.sum()
        refitted = np.mean(_refitted(part, sample, draws.slices(_REFITS)[0]))
        change = refitted / len(rows) - 1
        if sparse > _TOLERATED:
            notes.append(
                f"{sparse:.0%} of the rows lie in cells of {part} with fewer than {_SPARSE_ROWS} rows; the p-value "
                "from resampled predictions is not valid there."
            )
        if abs(change) > _TOLERATED:
            notes.append(
                f"re-fitted partitions of {part} have {refitted:.1f} cells on average, the observed one "
                f"{len(rows)}; the p-value from resampled predictions is not valid."
            )
    for note in notes:
        warnings.warn(note, CalibrationWarning, stacklevel=stacklevel)
    return notes


def _rows_in_cells(part: Statistic, sample: Sample) -> NDArray[Any]:
    """Return how many rows, or entries, each occupied cell of a statistic holds; nothing if it has no cells."""
    if isinstance(part, EntryStatistic):
        count = part.entry_cells(sample).count
        return count[count > 0]
    partition = getattr(part, "partition", None)
    return np.bincount([] if partition is None else sample.cells(partition).index)


def _refitted(part: Statistic, sample: Sample, draws: Draws) -> NDArray[Any]:
    """Return how many occupied cells a statistic has on each resample."""
    if isinstance(part, EntryStatistic):
        return np.array([len(_rows_in_cells(part, drawn)) for drawn, _ in draws.blocks(sample)])
    drawn_sums = draws.cell_sums(sample, part.partition)  # type: ignore[attr-defined]
    return np.concatenate([np.atleast_2d(sums.count > 0).sum(axis=1) for sums in drawn_sums])


def scatter_notes(parts: Sequence[Statistic], components: Sequence[ComponentResult]) -> list[str]:
    return [
        f"{component.name} lies below the 1 % quantile of its null: less scatter than the predictions claim, that is "
        "under-confidence, or rows that are not independent."
        for part, component in zip(parts, components, strict=True)
        if part.measures_scatter
        and component.null.std > TIE_TOLERANCE * abs(component.null.mean)
        and component.pvalue > 1 - _UNUSUALLY_SMALL
        and component.null.cdf(component.statistic) < _UNUSUALLY_SMALL
    ]


def constant_notes(components: Sequence[ComponentResult]) -> list[str]:
    return [
        f"{component.name} has the same value on every draw: here it tests nothing but impossible labels."
        for component in components
        if component.null.std <= TIE_TOLERANCE * abs(component.null.mean)
    ]


def impossible_notes(sample: Sample) -> list[str]:
    rows = sample.impossible
    if not rows.size:
        return []
    shown = ", ".join(map(str, rows[:5])) + (", ..." if rows.size > 5 else "")
    return [
        f"{rows.size} label(s) had been given probability 0 through this lens (row {shown}): impossible under the "
        "hypothesis, so the p-value is the smallest attainable."
    ]


def lens_text(lens: Lens | None, classes: Sequence[Any] | None) -> str:
    """Return the name of a lens, with that of the class where one is looked at and has a name."""
    name = describe(Canonical() if lens is None else lens)
    return f"{name} {list(classes)[lens.k]}" if isinstance(lens, ClassWise) and classes is not None else name


def hypothesis_text(resampling: Consistency) -> str:
    if resampling.calibration_function is None:
        return "P(Y = . | g(X)) = g(X) through the lens: outcomes follow the predictions"
    return f"P(Y = . | g(X)) = {describe(resampling.calibration_function)}(g(X)) through the lens"


def null_law_text(resampling: Consistency, draws: Draws) -> str:
    if resampling.resample_predictions:
        return f"{draws.n_resamples} resamples of rows and outcomes, partitions re-fitted (asymptotic)"
    return f"{draws.n_resamples} redraws of the outcomes, predictions fixed (valid at every sample size)"


def conditions_text(resampling: Consistency) -> tuple[str, ...]:
    made = "the predictions, any recalibration and the region were made without these labels"
    if resampling.calibration_function is not None:
        made = made.replace("the region", "the region and the calibration function")
    sound = f"rows are independent, and {made} (not pooled cross-validation folds)."
    if resampling.resample_predictions:
        return (sound, "cells hold many rows: this p-value is asymptotic; prefer fixed predictions.")
    return (sound,)
