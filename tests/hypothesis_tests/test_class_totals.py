"""Totals of classes against their exact distribution."""

import numpy as np
import pytest
from scipy.stats import binom

from caltest.hypothesis_tests._class_totals import ClassTotals, DrawnTotals
from caltest.predictions._sample import make_sample
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


def test_drawn_totals_are_those_of_the_distribution():
    """P-values of draws agree with those of the computed distribution within their Monte Carlo error."""
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([0.3, 0.3, 0.05], 800)
    drawn = np.array([np.bincount(draw(prob, rng), minlength=3) for _ in range(999)])
    outcome = draw(prob * [1.0, 0.88, 1.0] / (prob @ [1.0, 0.88, 1.0])[:, None], rng)
    known = ClassTotals.of(prob, outcome)
    found = DrawnTotals(known.count, (), drawn, prob.sum(axis=0))
    np.testing.assert_allclose(found.predicted, known.predicted, rtol=1e-9)
    np.testing.assert_array_equal(found.observed, known.observed)
    assert 0.001 <= found.pvalue.min() <= known.pvalue.min() + 4 * np.sqrt(0.05 / 999)
    for k in range(3):
        np.testing.assert_allclose(found.interval(k, 0.95), known.interval(k, 0.95), atol=0.01)
    order = np.array([2, 0, 1])
    permuted = DrawnTotals(known.count[order], (), drawn[:, order], prob.sum(axis=0)[order])
    np.testing.assert_array_equal(permuted.pvalue, found.pvalue[order])


@pytest.mark.slow
def test_the_level_of_drawn_totals():
    """Any class is named in at most 5 % of calibrated data sets, here with few draws and a rare class."""
    rng, rejected = np.random.default_rng(1), 0
    prob = rng.dirichlet([1.0, 0.5, 0.01], 60)
    for _ in range(1000):
        count, *drawn = (np.bincount(draw(prob, rng), minlength=3) for _ in range(40))
        rejected += DrawnTotals(count, (), np.array(drawn), prob.sum(axis=0)).pvalue.min() <= 0.05
    assert 10 < rejected <= binom.ppf(1 - 3e-5, 1000, 0.05)


def draw(prob, rng):
    """Labels with these probabilities."""
    return (rng.random((len(prob), 1)) > prob.cumsum(axis=1)[:, :-1]).sum(axis=1)


def test_totals_of_labels_that_depend_on_each_other_in_time_are_less_certain():
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.full(3, 2.0), 60)
    outcome = (rng.random((60, 1)) > prob.cumsum(axis=1)).sum(axis=1)
    prob, outcome = prob[:, [1, 0, 2]].repeat(7, axis=0), outcome.repeat(7)  # each week has one label
    sample = make_sample(outcome, prob, time=np.arange(420), lead=7)
    plain, timed = ClassTotals.of(sample.given, sample.outcome), DrawnTotals.in_time(sample)
    np.testing.assert_array_equal(timed.count, plain.count)
    np.testing.assert_allclose(timed.predicted, plain.predicted)
    assert (timed.pvalue >= plain.pvalue).all()
    assert timed.pvalue.min() > 3 * plain.pvalue.min()
    for k in range(3):
        (low, high), narrow = timed.interval(k, 0.95), plain.interval(k, 0.95)
        assert low < timed.observed[k] < high
        assert high - low > 1.5 * (narrow[1] - narrow[0])
