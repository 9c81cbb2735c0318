"""Sums of losses: against the slow twin, single observations and random directions that are drawn as such."""

import numpy as np
import pytest

from caltest.ranking._separation import Contributions
from caltest.ranking._summed_losses import SummedLosses, sums_of_losses
from tests.reference.ranks import summed_losses


def summed(losses, n_batches=1):
    """The sums of some batches."""
    parts = np.array_split(losses, n_batches, axis=1)
    return SummedLosses(losses.shape[1], sum(sums_of_losses(part, np.zeros(len(losses))) for part in parts))


def in_directions(losses):
    """The same losses one by one, compared by random directions."""
    n = losses.shape[1]
    every = np.ones(len(losses), dtype=bool)
    return Contributions(losses / n, np.full(n, 1 / n), np.zeros((len(losses),) * 2), every, in_time=True)


def test_sums_are_those_of_the_slow_twin():
    losses = np.random.default_rng(0).exponential(1, (3, 40))
    losses[1, 7] = np.inf
    found, expected = summed(losses, 4), summed_losses(losses.tolist())
    np.testing.assert_array_equal(found.table[2, :-1], expected["n_infinite"])
    np.testing.assert_allclose(found.estimate, expected["mean"], rtol=1e-12)
    np.testing.assert_allclose(found.central[0], expected["squares"], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.central[1], expected["cubes"], rtol=1e-9, atol=1e-12)


def test_similar_models_are_told_apart_without_cancellation():
    """Differences of a relative size of 1e-5, whose squares are 1e-10 of those of the losses."""
    rng = np.random.default_rng(0)
    one = rng.exponential(1, 2000)
    losses = np.stack([one, one + 1e-5 * rng.normal(1, 0.5, 2000), rng.exponential(1, 2000)])
    found = summed(losses, 5)
    assert found.central[0][0, 1] == pytest.approx(2000 * (losses[1] - losses[0]).var(), rel=1e-9)
    pvalues = found.separate(99, np.random.default_rng(1)).pvalue
    assert (pvalues[0, 1], pvalues[1, 0]) == (0.01, 1)


@pytest.mark.parametrize("n_models", [2, 8, 30])
def test_directions_have_the_distribution_of_those_of_observations(n_models):
    """Also of more models than observations, of which two are copies."""
    losses = np.random.default_rng(2).normal(0, 1, (n_models, 12)) + np.linspace(0, 1, n_models)[:, None]
    losses[-1] = losses[0]
    n_resamples = 9_999
    found = summed(losses, 3).separate(n_resamples, np.random.default_rng(0))
    other = in_directions(losses).separate(n_resamples, np.random.default_rng(1))
    for quantile in (0.25, 0.5, 0.9):
        limit = np.quantile(other.largest, quantile)
        tolerance = 4 * np.sqrt(2 * quantile * (1 - quantile) / n_resamples)
        if n_models > 2:
            assert abs((found.largest <= limit).mean() - quantile) < tolerance
    np.testing.assert_allclose(found.error, other.error, rtol=1e-9, atol=1e-12)
    assert found.pvalue[0, -1] == found.pvalue[-1, 0] == 1


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_models", [2, 20])
def test_sets_of_normal_models_hold_all_ranks_with_the_level(n_models):
    """The largest difference has its exact distribution, but for what Hall's transformation takes off."""
    rng, n_sets = np.random.default_rng(9), 1_000
    missed = sum(
        (summed(rng.normal(0, 1, (n_models, 20))).separate(199, rng).pvalue <= 0.05).any() for _ in range(n_sets)
    )
    assert missed <= 0.05 * n_sets + 4 * np.sqrt(n_sets * 0.05 * 0.95)


@pytest.mark.slow
def test_sets_of_skewed_models_hold_all_ranks():
    rng, n_sets = np.random.default_rng(7), 400
    missed = 0
    for _ in range(n_sets):
        losses = rng.normal(0, 1, (10, 100))
        losses[::2] = np.exp(losses[::2]) - np.exp(0.5)
        missed += (summed(losses, 3).separate(199, rng).pvalue <= 0.05).any()
    assert missed <= n_sets * 0.05 + 4 * np.sqrt(n_sets * 0.05 * 0.95)
