"""Cells that are too small for resampled observations: counted, noted and warned of."""

import warnings

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling import EntryCounts
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.engine._sparsity import SPARSE_ROWS, sparsity, sparsity_notes
from caltest.results import CalibrationWarning
from caltest.results._naming import describe
from tests.reference.cases import failures
from tests.reference.examples import simple_statistics
from tests.resampling.checks import problem, sample_for


def sizes(statistic, sample):
    """Observations or entries in each occupied cell, by loops; None if the statistic has no cells."""
    partition = getattr(statistic, "partition", None)
    if partition is not None:
        counts = {}
        for cell in cells_of(sample, partition).index.tolist():
            counts[cell] = counts.get(cell, 0) + 1
        return list(counts.values())
    summary = statistic.summary(sample)
    if not isinstance(summary, EntryCounts):
        return None
    counts = {}
    for cell in summary.cell.ravel().tolist():
        if cell < summary.n_cells - 1:  # the last one holds entries that are left out
            counts[cell] = counts.get(cell, 0) + 1
    return list(counts.values())


def counts_are_drawn_otherwise(statistic):
    """Whether draws of observations are counted in cells that are not fitted again."""
    partition = getattr(statistic, "partition", None)
    return partition is not None and not getattr(partition, "depends_on_sample", False)


@pytest.mark.slow
def test_cells_are_counted_as_by_loops():
    def check(statistic):
        sample = sample_for(statistic, *problem(60, 3))
        draws = RowDraws.of(30, 0)
        expected, found = sizes(statistic, sample), sparsity(statistic, sample, draws)
        if expected is None:
            assert found is None
            return
        share, n_cells, refitted = found
        assert n_cells == len(expected)
        sparse = sum(size for size in expected if size < SPARSE_ROWS)
        assert share == pytest.approx(sparse / sum(expected), rel=1e-12)
        if counts_are_drawn_otherwise(statistic):
            empty = np.exp(60 * np.log1p(-np.array(expected) / 60.0)) if len(expected) > 1 else np.zeros(1)
            spread = np.sqrt((empty * (1 - empty)).sum() / 20)  # at most: a cell is emptier where others are fuller
            assert abs(refitted - (1 - empty).sum()) <= 4 * spread + 1e-12
        else:
            resampled = [drawn for drawn, _ in draws.slices(20)[0].blocks(sample)]
            counted = np.mean([len(sizes(statistic, drawn)) for drawn in resampled])
            assert refitted == pytest.approx(counted, rel=1e-12)

    assert failures({describe(statistic): statistic for statistic in simple_statistics()}, check) == {}


def ten_cells(counts):
    """A sample with so many observations in each of ten cells."""
    event = np.repeat((np.arange(len(counts)) + 0.5) / 10, counts)
    return make_sample(np.zeros(len(event), dtype=int), event)


def codes(statistic, sample, draws):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = sparsity_notes([statistic], sample, draws)
    assert [str(warning.message) for warning in caught] == [str(note) for note in notes]
    assert all(warning.category is CalibrationWarning for warning in caught)
    return [note.code for note in notes]


def test_what_is_warned_of():
    ece = caltest.ECE(caltest.EqualWidth(10))
    draws = RowDraws.of(50, 0)
    assert codes(ece, ten_cells([100, 100]), draws) == []
    assert codes(ece, ten_cells([SPARSE_ROWS, 100]), draws) == []
    assert codes(ece, ten_cells([SPARSE_ROWS - 1, 100]), draws) == ["C301"]  # 8 % in a sparse cell
    assert codes(ece, ten_cells([SPARSE_ROWS - 1, 1000]), draws) == []  # less than 5 %
    assert codes(ece, ten_cells([1] * 8), draws) == ["C301", "C302"]  # a third of the cells is empty on a resample
    tree = caltest.ECE(caltest.VarianceTree(min_leaf=12))
    tied = make_sample(np.zeros(48, dtype=int), np.repeat([0.2, 0.4, 0.6, 0.8], 12))
    assert codes(tree, tied, draws) == ["C302"]  # a block of ties that is drawn less often is no leaf
    assert codes(caltest.KS(), ten_cells([1] * 8), draws) == []


def test_fixed_predictions_need_no_warning():
    assert codes(caltest.ECE(caltest.EqualWidth(10)), ten_cells([1] * 8), OutcomeDraws.of(50, 0)) == []


def test_notes_name_statistic_numbers_and_the_way_out():
    sample = ten_cells([1] * 8)
    with pytest.warns(CalibrationWarning):
        sparse, refitted = sparsity_notes([caltest.ECE(caltest.EqualWidth(10))], sample, RowDraws.of(50, 0))
    name = "ECE(partition=EqualWidth(10))"
    assert sparse.text == (
        f"100% of the observations lie in cells (bins) of {name} with fewer than 10 observations. The null "
        "distribution from resampled observations is not valid there; keep the predictions fixed, Consistency()."
    )
    assert f"On resampled observations {name} has " in refitted.text
    assert "cells (bins) on average instead of 8." in refitted.text


@pytest.mark.parametrize("call", [caltest.calibration_test, caltest.noise_floor])
def test_warnings_name_the_line_of_the_caller(call):
    rows = caltest.Consistency(resample_predictions=True)
    options = {"statistic": caltest.ECE(caltest.EqualWidth(10)), "resampling": rows, "n_resamples": 19, "rng": 0}
    event = np.arange(8) / 10 + 0.05
    arguments = (event,) if call is caltest.noise_floor else (np.zeros(8, dtype=int), event)
    with pytest.warns(CalibrationWarning) as caught:
        result = call(*arguments, **options)
    assert {warning.filename for warning in caught} == {__file__}
    assert {note.code for note in result.notes} >= {"C301", "C302"}
