"""Simulated labels that share a shock in each group."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from caltest.resampling.draws._group_shocks import (
    LARGEST_CORRELATION,
    Shocks,
    correlation_in_groups,
    latent_bounds,
    latent_correlation,
)
from tests.reference import group_inversion as naive


def test_shocks_are_the_same_whenever_they_are_asked_for(monkeypatch):
    """Also if they are not kept, or made in other numbers of blocks of the same size."""
    kept = Shocks(3, 70, 5, 11)
    first = [*kept.blocks()]
    assert [part for part, *_ in first] == [slice(0, 32), slice(32, 64), slice(64, 70)]
    assert [block[1].shape for block in first] == [(5, 32), (5, 32), (5, 6)]
    monkeypatch.setattr("caltest.resampling.draws._group_shocks._KEPT", 0)
    for again in ([*kept.blocks()], [*Shocks(3, 70, 5, 11).blocks()]):
        for (_, shock, noise), (_, other, same) in zip(first, again, strict=True):
            np.testing.assert_array_equal(shock, other)
            np.testing.assert_array_equal(noise, same)


def test_bounds_are_quantiles_of_cumulative_probabilities():
    prob = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_allclose(latent_bounds(prob)[0], ndtri([0.2, 0.5]), rtol=1e-6)
    np.testing.assert_array_equal(latent_bounds(prob)[1:], [[-np.inf, np.inf], [0.0, np.inf]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_correlation_has_the_covariance_that_was_asked_for(n_classes):
    rng = np.random.default_rng(n_classes)
    prob = rng.dirichlet(np.ones(n_classes), 12)
    prob[0] = np.eye(n_classes)[0]
    weight, group = rng.exponential(size=12), np.repeat(np.arange(4), 3)
    start, n_columns = np.append(np.arange(0, 12, 3), 12), 1 if n_classes == 2 else n_classes
    arguments = latent_bounds(prob), weight, start, np.arange(4)
    for correlation in (0.1, 0.5, 0.9):
        target = naive.covariance_of_pairs(prob.tolist(), weight.tolist(), group.tolist(), correlation)
        target *= n_columns / n_classes  # of two classes both have the same covariances
        found = latent_correlation(*arguments, target=target, n_columns=n_columns)
        assert found == pytest.approx(correlation, abs=2e-3)  # the grid has steps of .01
        shuffled = rng.permutation(12)
        given = prob[shuffled], weight[shuffled], group[shuffled], 4
        assert correlation_in_groups(*given, target=target, n_columns=n_columns) == pytest.approx(found, abs=1e-9)
    assert latent_correlation(*arguments, target=0.0, n_columns=n_columns) == 0
    assert latent_correlation(*arguments, target=1e9, n_columns=n_columns) == LARGEST_CORRELATION


def test_covariance_of_two_labels_is_that_of_a_normal_pair():
    """The series of the twin against the bivariate normal distribution function."""
    prob, correlation = [[0.1, 0.9], [0.4, 0.6]], 0.6
    found = naive.covariance_of_pairs(prob, [1.0, 1.0], [0, 0], correlation)
    both = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf(ndtri([0.1, 0.4]))
    assert found == pytest.approx(4 * (both - 0.04), rel=1e-3)  # 16 terms; two pairs, two classes
