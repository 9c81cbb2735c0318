"""The monotonic sweep: the authors' program, by hand, and what it is."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from caltest.predictions._sample import make_sample

TOLERANCE = 1e-9


def error(y_true, y_prob, statistic, lens=None):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, lens=lens)


def swept(y_true, y_prob, norm="l1"):
    """The number of cells and the error."""
    statistic = caltest.statistics.MonotonicSweepECE(norm)
    sample = make_sample(y_true, y_prob)
    return int(statistic.n_cells(sample, sample.outcome)), float(statistic.evaluate(sample, sample.outcome))


def authors_sweep(score, event, power):
    """The sweep as Roelofs et al. released it: row i of n in cell floor(i B / n); stops at the first decrease."""
    order = np.argsort(score, kind="stable")
    n = len(score)
    chosen = 1
    for n_cells in range(2, n):
        cell = np.arange(n) * n_cells // n
        frequency = np.bincount(cell, event[order]) / np.bincount(cell)
        if (np.diff(frequency) < 0).any():
            break
        chosen = n_cells
    cell = np.arange(n) * chosen // n
    count = np.bincount(cell)
    gap = np.abs(np.bincount(cell, event[order]) - np.bincount(cell, score[order])) / count
    return chosen, ((count * gap**power).sum() / n) ** (1 / power)


@pytest.mark.parametrize("power", [1, 2])
def test_sweep_of_roelofs(power):
    """On the bundled confidences, 8 cells, and where the numbers of cells divide n = 5,040 and no scores are tied."""
    sweep = caltest.statistics.MonotonicSweepECE(f"l{power}")
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    expected = {1: 0.0397260302395, 2: 0.0756956122290}[power]
    assert error(y_true, y_prob, sweep, caltest.Confidence()) == pytest.approx(expected, abs=TOLERANCE)
    compared = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.4, 0.6, size=5040)
        event = (rng.random(5040) < score).astype(int)
        chosen, value = authors_sweep(score, event, power)
        if chosen < 10:  # 1 to 10 divide 5,040
            sample = make_sample(event, score)
            assert sweep.n_cells(sample, sample.outcome) == chosen, seed
            assert error(event, score, sweep) == pytest.approx(value, rel=1e-12), seed
            compared += 1
    assert compared > 10


def test_by_hand():
    # Two cells: 0/2 and 2/3 (array_split: three rows, then two): 1/3, 1/2. Three cells: 0/2, 1/2, 1/1. Four: decreases.
    y_prob = [0.1, 0.3, 0.5, 0.7, 0.9]
    assert swept([0, 0, 1, 0, 1], y_prob) == (3, pytest.approx((0.4 + 0.2 + 0.1) / 5, rel=1e-12))
    l2 = math.sqrt((0.4**2 / 2 + 0.2**2 / 2 + 0.1**2) / 5)
    assert swept([0, 0, 1, 0, 1], y_prob, "l2") == (3, pytest.approx(l2, rel=1e-12))
    # Scores that rank badly share one cell, those that rank perfectly have a cell each.
    assert swept([1, 1, 0, 0], [0.1, 0.2, 0.6, 0.7]) == (1, pytest.approx(0.1, rel=1e-12))
    assert swept([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.7]) == (4, pytest.approx((0.1 + 0.2 + 0.4 + 0.3) / 4, rel=1e-12))
    # Constant scores are never cut; equal frequencies are no decrease.
    assert swept([0, 1, 0, 1, 1], [0.5] * 5) == (5, pytest.approx(0.1, rel=1e-12))
    assert swept([0, 1, 0, 1], [0.1, 0.1, 0.8, 0.8])[0] == 4


@pytest.mark.slow(few_draws=True)
@settings(deadline=None, derandomize=True, database=None, max_examples=50)
@given(
    n=st.integers(1, 40),
    n_values=st.integers(1, 40),
    slope=st.sampled_from([0.0, 0.5, 1.0, 4.0]),
    seed=st.integers(0, 10**6),
)
def test_it_is_the_error_on_its_cells_and_one_more_cell_decreases(n, n_values, slope, seed):
    rng = np.random.default_rng(seed)
    y_prob = rng.integers(n_values + 1, size=n) / n_values
    y_true = (rng.random(n) < np.clip(0.5 + slope * (y_prob - 0.5), 0, 1)).astype(int)
    n_cells, value = swept(y_true, y_prob)
    assert value == pytest.approx(error(y_true, y_prob, caltest.ECE(caltest.EqualMass(n_cells))), abs=1e-12)

    def increases(n_cells):
        found = caltest.histogram_regression(y_true, y_prob, partition=caltest.EqualMass(n_cells))
        return bool(np.all(np.diff(found.observed[np.argsort(found.predicted[:, 1]), 1]) >= -1e-12))

    assert all(increases(fewer) for fewer in range(1, n_cells + 1))
    assert n_cells == n or not increases(n_cells + 1)
