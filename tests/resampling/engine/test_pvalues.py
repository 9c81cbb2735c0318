"""P-values: ranks with ties, min-p, and tails of computed distributions."""

import numpy as np
import pytest

from caltest.predictions._sample import make_sample
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.engine._pvalues import (
    RankedDraws,
    adjust_jointly,
    combine_pvalues,
    global_pvalue,
    rank_pvalues,
    smallest_pvalue,
    tail_pvalue,
    tail_pvalues,
)
from caltest.results._decision import rejects
from tests.reference import naive

POSSIBLE = make_sample([0, 1], [0.25, 0.75])
IMPOSSIBLE = make_sample([1, 1], [0.0, 0.75])


def test_tail_pvalues_equal_the_loops():
    for values in (
        [3.0, 1.0, 2.0],
        [1.0, 1.0, 1.0],
        [0.1 + 0.2, 0.3, 0.3 - 1e-10],
        [1.0, 1.0 + 1e-13, 1.0 - 1e-13, 1.0 - 1e-9],
        [0.0, 0.0, 1.0],
        [-1.0, -1.0 - 1e-13, -2.0, 0.0],
        [np.inf, 1.0, np.inf, 2.0],
        [5.0],
    ):
        np.testing.assert_array_equal(tail_pvalues(np.array(values)), naive.tail_pvalues(values), err_msg=str(values))
        assert tail_pvalues(np.array(values))[0] == naive.pvalue(values[0], values[1:]), values


def test_tail_pvalues_of_many_rows_with_ties():
    values = np.random.default_rng(0).integers(8, size=(2, 3, 40)) / 7
    values *= 1 + 1e-14 * np.random.default_rng(1).normal(size=values.shape)
    expected = [[naive.tail_pvalues(row) for row in rows] for rows in values]
    np.testing.assert_array_equal(tail_pvalues(values), expected)


def test_combination_equals_the_loops():
    for n_components, levels in [(1, 5), (2, 3), (3, 2), (3, 4), (3, 1000), (4, 10)]:
        rng = np.random.default_rng(levels)
        pvalues = tail_pvalues(rng.integers(levels, size=(n_components, 60)).astype(float))
        expected = naive.combine_pvalues(pvalues.tolist())
        np.testing.assert_array_equal(combine_pvalues(pvalues), expected, err_msg=f"{n_components}, {levels}")
        if n_components == 1:
            np.testing.assert_array_equal(combine_pvalues(pvalues), pvalues[0])


def test_ties_of_the_smallest_are_broken_by_the_next():
    pvalues = np.array([[0.25, 1.0, 0.25, 0.75], [0.5, 0.25, 1.0, 0.75]])
    # Sorted: (.25, .5), (.25, 1), (.25, 1), (.75, .75).
    np.testing.assert_array_equal(combine_pvalues(pvalues), [0.25, 0.75, 0.75, 1.0])


def test_combined_pvalues_are_uniform_where_there_are_no_ties():
    """All B + 1 data sets are treated alike, so that the p-value of any of them is valid."""
    values = np.random.default_rng(0).normal(size=(3, 200))
    combined = combine_pvalues(tail_pvalues(values))
    np.testing.assert_allclose(np.sort(combined), np.arange(1, 201) / 200)


def test_ranks_of_the_observed_data():
    rng = np.random.default_rng(3)
    observed, null = np.array([0.5, 2.5]), rng.normal(size=(2, 40))
    parts, combined = rank_pvalues(POSSIBLE, observed, null)
    rows = [[first, *row] for first, row in zip(observed, null, strict=True)]
    np.testing.assert_array_equal(parts, [naive.tail_pvalues(row) for row in rows])
    np.testing.assert_array_equal(combined, naive.combine_pvalues(parts.tolist()))
    alone, same = rank_pvalues(POSSIBLE, observed[:1], null[:1])
    np.testing.assert_array_equal(alone[0], same)


def test_impossible_labels_have_the_smallest_rank():
    observed, null = np.array([0.0, 0.0]), np.ones((2, 40))
    parts, combined = rank_pvalues(IMPOSSIBLE, observed, null)
    assert parts[:, 0].tolist() == [1 / 41] * 2
    assert combined[0] == 1 / 41
    ranked = [np.full(41, 0.5), np.full(41, 0.5)]
    assert global_pvalue([POSSIBLE, IMPOSSIBLE], ranked) == 1 / 41
    assert global_pvalue([POSSIBLE, POSSIBLE], ranked) == 1.0


@pytest.mark.parametrize(
    ("sample", "probability", "pvalue"),
    [
        (POSSIBLE, 0.25, 0.25),
        (POSSIBLE, 1 + 1e-12, 1.0),
        (POSSIBLE, 0.0, SMALLEST_PVALUE),
        (IMPOSSIBLE, 0.25, SMALLEST_PVALUE),
    ],
)
def test_tails_of_computed_distributions(sample, probability, pvalue):
    assert tail_pvalue(sample, probability) == pvalue


def test_the_smallest_pvalue_is_that_of_the_most_extreme_draws():
    """Two of four draws, or the data, share the largest value; a single largest one could be rarer with more draws."""
    shared, single = tail_pvalues(np.array([1.0, 2.0, 2.0, 0.0])), tail_pvalues(np.array([1.0, 2.0, 3.0, 0.0]))
    assert smallest_pvalue([shared], 3) == 0.5
    assert smallest_pvalue([single], 3) == 0.25
    assert smallest_pvalue([single], 999) == 0.001
    assert smallest_pvalue([shared, shared], 3) == 0.5
    assert smallest_pvalue([shared, single], 3) == 0.25


# Data sets that are not among the draws.


@pytest.mark.slow(few_draws=True)
def test_further_data_sets_are_rejected_as_observed_ones():
    rng = np.random.default_rng(0)
    for n_components, levels in [(1, 3), (1, 10**9), (2, 2), (3, 4), (3, 12), (3, 10**9), (6, 10**9)]:
        null, values = (rng.integers(levels, size=(n_components, n)) / 7 for n in (99, 300))
        values *= 1 + 1e-14 * rng.normal(size=values.shape)
        expected = np.array([rank_pvalues(POSSIBLE, value, null)[1][0] for value in values.T])
        for alpha in (0.01, 0.05, 0.1, 0.3, 0.5, 0.8):
            found = RankedDraws.of(null).rejected(values, alpha)
            np.testing.assert_array_equal(found, rejects(expected, alpha), err_msg=f"{n_components}, {levels}, {alpha}")


def test_a_further_data_set_counts_itself():
    draws = RankedDraws.of(np.array([[1.0, 2.0, 3.0]]))
    values = np.array([[4.0, 3.0, 2.5, 0.0, -np.inf]])  # p-values 0.25, 0.5, 0.5, 1, 1
    for alpha, expected in ((0.24, 0), (0.25, 1), (0.49, 1), (0.5, 3), (0.99, 3)):
        assert draws.rejected(values, alpha).tolist() == [True] * expected + [False] * (5 - expected), alpha


def test_step_down_adjusted_pvalues_equal_the_loops():
    rng = np.random.default_rng(0)
    for n_tests in (1, 2, 5):
        values = rng.integers(0, 12, (n_tests, 40)).astype(float)
        ranked = tail_pvalues(values)
        found, possible = adjust_jointly([POSSIBLE] * n_tests, ranked, [1 / 40] * n_tests)
        np.testing.assert_allclose(found, naive.step_down_pvalues(ranked.tolist()))
        reached = np.sum(ranked[:, 1:].min(axis=0) <= 1 / 40 + 1e-12)
        np.testing.assert_allclose(possible, (1 + reached) / 40)
        assert (found >= ranked[:, 0] - 1e-12).all()
        assert found.min() >= combine_pvalues(ranked)[0] - 1e-12
    found, _ = adjust_jointly([POSSIBLE, IMPOSSIBLE], ranked[:2], [1 / 40] * 2)
    assert found[1] == 1 / 40
