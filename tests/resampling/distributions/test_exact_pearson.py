"""Pearson's statistic of counts of outcomes: its exact tail against all labels written down."""

from itertools import product
from math import fsum, prod

import numpy as np
import pytest

from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._exact import MOST_COUNTS, exact_pearson_pvalue, n_counts, pearson_statistic


def slow_statistic(labels, prob):
    """The definition, outcome by outcome."""
    total = 0.0
    for k in range(len(prob[0])):
        expected = fsum(p[k] for p in prob)
        if expected > 0:
            total += (list(labels).count(k) - expected) ** 2 / expected
    return total


def slow_pvalue(labels, prob):
    """All labels that have a statistic at least as large, and their probabilities."""
    observed = slow_statistic(labels, prob)
    possible = product(range(len(prob[0])), repeat=len(prob))
    larger = [other for other in possible if slow_statistic(other, prob) >= observed - 1e-9]
    return fsum(prod(p[k] for p, k in zip(prob, other, strict=True)) for other in larger)


def test_exact_tails_are_those_of_all_labels():
    rng = np.random.default_rng(0)
    for n_outcomes, n in ((3, 1), (3, 2), (3, 6), (4, 1), (4, 5)):
        tied = np.tile(np.full(n_outcomes, 1 / n_outcomes), (n, 1))
        corner = np.eye(n_outcomes)[rng.integers(n_outcomes, size=n)]
        faces = rng.dirichlet(np.ones(n_outcomes), n) * (np.arange(n_outcomes) > 0)
        faces /= faces.sum(axis=1, keepdims=True)
        for prob in (rng.dirichlet(np.ones(n_outcomes), n), tied, corner, faces):
            labels = [int(rng.choice(n_outcomes, p=p)) for p in prob]
            counts = np.bincount(labels, minlength=n_outcomes)
            expected = prob.sum(axis=0)
            statistic = float(pearson_statistic(counts - expected, expected))
            assert statistic == pytest.approx(slow_statistic(labels, prob.tolist()), abs=1e-12)
            found = exact_pearson_pvalue(prob, statistic)
            assert found == pytest.approx(slow_pvalue(labels, prob.tolist()), rel=1e-9), (n_outcomes, n)


def test_far_tails_are_precise_and_never_zero():
    """100 labels of one outcome that had the probability 1/3 each; no other count is as far."""
    prob = np.full((100, 3), 1 / 3)
    statistic = float(pearson_statistic(np.array([100.0, 0, 0]) - 100 / 3, np.full(3, 100 / 3)))
    assert exact_pearson_pvalue(prob, statistic) == pytest.approx(3 * (1 / 3) ** 100, rel=1e-10)
    assert exact_pearson_pvalue(prob, 1e9) == SMALLEST_PVALUE
    assert exact_pearson_pvalue(prob, 0.0) == pytest.approx(1, abs=1e-12)


def test_counts():
    assert (n_counts(2, 3), n_counts(1, 4)) == (6, 4)
    assert n_counts(198, 3) <= MOST_COUNTS < n_counts(199, 3)
    assert n_counts(47, 4) <= MOST_COUNTS < n_counts(48, 4)
