"""Cells of equal mass of a state: sizes, odd predictions, and that labels have no part in them."""

import numpy as np
import pytest

import caltest
from caltest import ECE, Edges, EqualMass, EqualWidth
from caltest.streaming import CalibrationState, equal_mass_cells


def filled(prob, seed=0):
    y = (np.random.default_rng(seed).random(len(prob)) < prob).astype(int)
    return CalibrationState().update(y, prob), y


def sizes(cells, prob):
    return np.bincount(cells.fit(np.column_stack([1 - prob, prob]))(np.column_stack([1 - prob, prob])))


@pytest.mark.parametrize("shape", [(1, 1), (0.1, 0.1), (5, 5), (0.5, 20)])
@pytest.mark.parametrize("n_cells", [2, 7, 15])
def test_cells_differ_by_no_more_than_the_fullest_micro_cell(shape, n_cells):
    prob = np.random.default_rng(1).beta(*shape, 20_000)
    state, _ = filled(prob)
    fullest = state._answers().sums.micro.count.sum(axis=1).max()
    found = sizes(equal_mass_cells(state, n_cells), prob)
    assert len(found) == n_cells
    assert np.abs(found - 20_000 / n_cells).max() <= fullest


def test_labels_have_no_part():
    prob = np.random.default_rng(2).beta(0.3, 2, 5000)
    cells = {equal_mass_cells(filled(prob, seed)[0], 10) for seed in range(3)}
    cells.add(equal_mass_cells(CalibrationState().update(np.zeros(5000, int), prob), 10))
    assert len(cells) == 1


def test_tests_with_them_are_those_of_memory():
    prob = np.random.default_rng(3).beta(0.5, 0.5, 5000)
    state, y = filled(prob)
    for n_cells in (3, 15):
        statistic = ECE(equal_mass_cells(state, n_cells))
        here, there = state.test(statistic), caltest.calibration_test(y, prob, statistic=statistic)
        assert here.statistic == pytest.approx(there.statistic, rel=1e-12)
        assert here.pvalue == pytest.approx(there.pvalue, rel=1e-9)
        close = caltest.calibration_error(y, prob, statistic=ECE(EqualMass(n_cells)))
        assert here.statistic == pytest.approx(close, abs=0.01)


def test_odd_predictions():
    half = np.append(np.zeros(500), np.random.default_rng(4).random(500))
    found = sizes(equal_mass_cells(filled(half)[0], 4), half)
    assert found[0] >= 500
    assert found.sum() == 1000
    assert len(found) == 3  # two cuts lie within the zeros
    assert equal_mass_cells(filled(np.full(10, 0.3))[0], 5) == EqualWidth(1)
    assert equal_mass_cells(filled(half)[0], 1) == EqualWidth(1)
    two = np.repeat([0.25, 0.75], [10, 30])
    assert equal_mass_cells(filled(two)[0], 15) == Edges([equal_mass_cells(filled(two)[0], 15).edges[0]])
    assert sizes(equal_mass_cells(filled(two)[0], 15), two).tolist() == [10, 30]
    one_hot = np.repeat([0.0, 1.0], 20)
    assert sizes(equal_mass_cells(filled(one_hot)[0], 3), one_hot).tolist() == [20, 20]
    assert equal_mass_cells(CalibrationState().update([1], [0.5]), 3) == EqualWidth(1)


def test_refusals():
    with pytest.raises(TypeError, match="`state` must be a CalibrationState"):
        equal_mass_cells([0.5])
    with pytest.raises(ValueError, match="n_cells"):
        equal_mass_cells(CalibrationState().update([1], [0.5]), 0)
    with pytest.raises(ValueError, match="empty"):
        equal_mass_cells(CalibrationState())
    with pytest.raises(ValueError, match=r"equal_mass_cells\(state, 15\)"):
        CalibrationState().update([1], [0.5]).test(ECE(EqualMass(15)))
