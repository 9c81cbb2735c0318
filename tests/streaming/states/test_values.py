"""Statistics of a user in states: the values in memory, and simulated null distributions."""

from dataclasses import dataclass

import numpy as np
import pytest

import caltest
from caltest import ECE, Canonical, EqualWidth
from caltest.predictions import CellSums, Partition, cells_of
from caltest.statistics import KS, Statistic, TemperatureScore
from caltest.statistics._base import Combination
from caltest.streaming import CalibrationState, RedrawnCells

FOUR = EqualWidth(4)


@dataclass(frozen=True, repr=False)
class LargestExcess(Statistic):
    """Largest difference of the number of an outcome and its expectation in a cell, computed from sums."""

    partition: Partition = FOUR

    def evaluate(self, sample, outcomes):
        return self.excess(CellSums.of(sample, cells_of(sample, self.partition), outcomes))

    def evaluate_sums(self, sums):
        return self.excess(sums.cells(self.partition))

    def excess(self, cells):
        return np.abs(cells.observed_count - cells.predicted_sum).max(axis=(-2, -1))


@dataclass(frozen=True, repr=False)
class OfEvent(LargestExcess):
    """The same for two outcomes only."""

    n_outcomes = 2


@dataclass(frozen=True, repr=False)
class InMemory(LargestExcess):
    """The same where the observations are needed."""

    def evaluate_sums(self, sums):
        return None


@dataclass(frozen=True, repr=False)
class Both(Combination):
    """The largest excess, the path and a statistic of logarithms together."""

    first: Statistic = LargestExcess()

    @property
    def components(self):
        return self.first, KS(), TemperatureScore()


def events(n=400):
    rng = np.random.default_rng(8)
    p = rng.random(n)
    return (rng.random(n) < p**1.3).astype(int), p


def labels(n=300):
    rng = np.random.default_rng(9)
    p = rng.dirichlet(np.ones(3), n)
    return np.array([rng.choice(3, p=row) for row in p]), p


def test_two_outcomes():
    y, p = events()
    state, own = CalibrationState().update(y, p), LargestExcess()
    assert state.error(own) == pytest.approx(caltest.calibration_error(y, p, statistic=own), rel=1e-12)
    assert state.error_bounds(own) == (state.error(own),) * 2
    n = 1999
    for statistic in (own, Both()):
        found = state.test(statistic, n_resamples=n, rng=1)
        known = caltest.calibration_test(y, p, statistic=statistic, method="monte-carlo", n_resamples=n, rng=2)
        error = np.sqrt(2 * known.pvalue * (1 - known.pvalue) / n)
        assert abs(found.pvalue - known.pvalue) < 4 * error + 1 / n, statistic
        spread = np.hypot(found.components[0].null.std, known.components[0].null.std) / np.sqrt(n)
        assert abs(found.components[0].noise_floor - known.components[0].noise_floor) < 4 * spread, statistic
        assert [part.test_statistic for part in found.components] == list(statistic.components)


def test_many_outcomes():
    y, p = labels()
    cells = RedrawnCells(EqualWidth(4), n_resamples=99)
    state, own = CalibrationState(3, Canonical(), cells).update(y, p), LargestExcess()
    known = caltest.calibration_error(y, p, lens=Canonical(), statistic=own)
    assert state.error(own) == pytest.approx(known, rel=1e-12)
    assert state.test(own).null_distribution.shape == (99,)
    with pytest.raises(ValueError, match=r"a state of 3 outcomes has no observations, .*; got OfEvent\(\)\."):
        state.test(OfEvent())


def test_what_needs_the_observations():
    state = CalibrationState().update(*events())
    for statistic in (InMemory(), Both(InMemory()), Both(ECE(EqualWidth(7)))):
        with pytest.raises(ValueError, match=rf"a state has no observations, .*; got {type(statistic).__name__}\("):
            state.test(statistic, n_resamples=9)
    with pytest.raises(ValueError, match=r"the cells of EqualWidth\(7\) cannot be made of micro-cells"):
        state.test(LargestExcess(EqualWidth(7)), n_resamples=9)
    with pytest.raises(ValueError, match=r"got TCal\(\); of TCal a state needs the number of scales"):
        CalibrationState(micro_cells=2048).update([0, 1] * 3000, [0.25, 0.5] * 3000).test(caltest.statistics.TCal())
