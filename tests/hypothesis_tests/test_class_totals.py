"""Totals of classes against their exact distribution."""

import numpy as np
import pytest

from caltest.hypothesis_tests._class_totals import ClassTotals
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.engine._pvalues import correct_pvalues


@pytest.mark.parametrize("concentration", [0.05, 0.5, 5.0])
def test_pvalues_are_those_of_the_exact_distribution(concentration):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.full(8, concentration), 300)
    outcome = rng.integers(0, 8, 300)
    outcome[:40] = 3
    totals = ClassTotals.of(prob, outcome)
    count = np.bincount(outcome, minlength=8)
    exact = np.array([PoissonBinomial.of(p).two_sided(int(k)) for p, k in zip(prob.T, count, strict=True)])
    np.testing.assert_allclose(totals.predicted, prob.mean(axis=0))
    np.testing.assert_allclose(totals.observed, count / 300)
    np.testing.assert_allclose(totals.pvalue, correct_pvalues(exact), rtol=0.03, atol=1e-7)
    assert 0 < totals.pvalue.min() < 0.01


def test_one_hot_and_equal_predictions():
    certain = ClassTotals.of(np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 2, 2]))
    assert certain.pvalue.tolist() == [1, 1, 1]
    wrong = ClassTotals.of(np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 1, 2]))
    assert wrong.pvalue[0] == 1
    assert wrong.pvalue[1:].max() < 1e-10
    equal = ClassTotals.of(np.full((4, 4), 0.25), np.array([0, 0, 0, 0]))
    assert equal.pvalue[0] == pytest.approx(8 / 256)


def test_an_interval_excludes_the_prediction_where_the_pvalue_is_small():
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.full(3, 0.5), 400)
    totals = ClassTotals.of(prob, np.repeat([0, 1, 2], [90, 130, 180]))
    for k in range(3):
        low, high = totals.interval(k, 0.95)
        assert low < totals.observed[k] < high
        single = PoissonBinomial.of(prob[:, k]).two_sided(int(totals.count[k]))
        assert (low <= totals.predicted[k] <= high) == (3 * single > 0.05)


def test_blocks_change_nothing(monkeypatch):
    prob = np.random.default_rng(2).dirichlet(np.full(5, 0.5), 101)
    whole = ClassTotals.of(prob, np.arange(101) % 5)
    monkeypatch.setattr("caltest.hypothesis_tests._class_totals._BLOCK_VALUES", 50)
    np.testing.assert_allclose(
        ClassTotals.of(prob.astype(np.float32), np.arange(101) % 5).pvalue, whole.pvalue, rtol=1e-4
    )
