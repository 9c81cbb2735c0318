"""Step-down max-T of all pairs: against the slow twin, and what holds of equal models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtr

from caltest.ranking._separation import Contributions, tiers
from tests.reference.cases import mostly_slow
from tests.reference.ranks import rank_sets, shown_better, tier_of


def contributions(losses, shares=None, least=0.0):
    """What units add to the mean losses ``(n_models, n_units)``."""
    n_models, n_units = losses.shape
    shares = np.full(n_units, 1 / n_units) if shares is None else shares
    return Contributions(losses * shares, shares, np.full((n_models, n_models), least), np.isfinite(losses).all(axis=1))


def signs_of(found, n_resamples, seed):
    """The signs that are drawn, in the order of the units."""
    centred = found.adds - found.adds.mean(axis=0)
    order = np.lexsort((np.sum(centred**3, axis=0), np.square(centred).sum(axis=0), found.share))
    drawn = np.random.default_rng(seed).integers(0, 2, size=(len(order), n_resamples), dtype=np.int8)
    signs = np.empty_like(drawn)
    signs[order] = drawn
    return (2 * signs.T.astype(int) - 1).tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_it_agrees_with_the_steps_of_the_slow_twin(weighted, alpha):
    rng = np.random.default_rng(1)
    n_models, n_units, n_resamples = 6, 30, 79
    losses = rng.normal(np.array([0.0, 0.0, 0.4, 0.8, 0.8, 1.6])[:, None], 1, (n_models, n_units))
    losses[4] = losses[3]
    shares = rng.dirichlet(np.full(n_units, 4.0)) if weighted else None
    found = contributions(losses, shares)
    pvalues = found.separate(n_resamples, np.random.default_rng(2)).pvalue
    shown = shown_better(found.adds.tolist(), found.share.tolist(), signs_of(found, n_resamples, 2), alpha)
    is_better = pvalues <= alpha + 1e-12
    assert {(int(j), int(k)) for j, k in np.argwhere(is_better)} == shown
    assert 2 < len(shown) < 15
    sets = list(zip(1 + is_better.sum(axis=0), n_models - is_better.sum(axis=1), strict=True))
    assert sets == rank_sets(n_models, shown)
    assert tiers(is_better) == [tier_of(j, shown) for j in range(n_models)]


def test_two_models_are_compared_by_the_exact_test_of_signs():
    """Of six questions that all favour one model, 1 of 64 arrangements of signs is as extreme."""
    losses = np.array([[0.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    n_resamples = 19_999
    pvalue = contributions(losses).separate(n_resamples, np.random.default_rng(0)).pvalue[0, 1]
    exact = 2 / 64  # the largest of both directions
    assert abs(pvalue - exact) < 4 * np.sqrt(exact * (1 - exact) / n_resamples) + 1 / n_resamples


def test_equal_models_are_tied_and_leave_the_others_as_they_are():
    rng = np.random.default_rng(0)
    losses = rng.normal(np.array([0.0, 0.5, 1.0])[:, None], 1, (3, 50))
    twice = np.concatenate([losses, losses, losses * (1 + 1e-15)])
    alone, several = (contributions(one).separate(199, np.random.default_rng(3)).pvalue for one in (losses, twice))
    same = np.arange(9) % 3
    for j in range(9):
        for k in range(9):
            if same[j] == same[k]:
                assert several[j, k] == 1
            else:
                assert several[j, k] == pytest.approx(alone[same[j], same[k]], abs=0.03)


def test_similar_models_are_told_apart_without_cancellation():
    """Differences of a relative size of 1e-9, which subtracting squares would lose."""
    rng = np.random.default_rng(0)
    one = rng.exponential(1, 200)
    change = 1e-9 * rng.normal(1, 0.5, 200)
    losses = np.stack([one, one + change, rng.exponential(1, 200)])
    pvalues = contributions(losses).separate(99, np.random.default_rng(1)).pvalue
    assert pvalues[0, 1] == 0.01
    assert pvalues[1, 0] == 1


def test_the_order_of_units_and_models_changes_nothing():
    rng = np.random.default_rng(4)
    losses = rng.normal(np.linspace(0, 1, 5)[:, None], 1, (5, 40))
    expected = contributions(losses).separate(99, np.random.default_rng(1)).pvalue
    rows, models = rng.permutation(40), rng.permutation(5)
    found = contributions(losses[models][:, rows]).separate(99, np.random.default_rng(1)).pvalue
    assert (found == expected[np.ix_(models, models)]).all()


def test_an_infinite_loss_is_behind_every_finite_one():
    rng = np.random.default_rng(5)
    losses = rng.normal(0, 1, (4, 30))
    found = contributions(losses)
    found = Contributions(found.adds, found.share, found.least, np.array([True, False, True, False]))
    pvalues = found.separate(99, np.random.default_rng(0)).pvalue
    assert (pvalues[np.ix_([0, 2], [1, 3])] == 0).all()
    assert (pvalues[[1, 3]] == 1).all()
    assert np.isinf(found.estimate[[1, 3]]).all()


def test_few_units_separate_nothing():
    losses = np.array([[0.0] * 20, [1.0] * 20])
    shares = np.array([0.9] + [0.1 / 19] * 19)
    assert (contributions(losses, shares).separate(99, np.random.default_rng(0)).pvalue == 1).all()
    assert contributions(losses).separate(99, np.random.default_rng(0)).pvalue[0, 1] == 0.01


def test_a_least_standard_error_separates_less():
    rng = np.random.default_rng(6)
    losses = rng.normal(np.array([0.0, 1.0])[:, None], 0.1, (2, 50))
    assert contributions(losses).separate(99, np.random.default_rng(0)).pvalue[0, 1] == 0.01
    assert contributions(losses, least=10.0).separate(99, np.random.default_rng(0)).pvalue[0, 1] > 0.5


def in_time(losses):
    """The same losses of stretches of time."""
    return replace(contributions(losses), in_time=True)


def test_two_models_in_time_are_compared_by_the_distribution_of_student():
    losses = np.random.default_rng(7).exponential(1, (2, 9))
    n_resamples, n = 19_999, losses.shape[1]
    difference = losses[1] - losses[0]
    t = abs(difference.mean()) / difference.std(ddof=1) * np.sqrt(n)
    expected = 2 * stdtr(n - 1, -t)
    pvalue = in_time(losses).separate(n_resamples, np.random.default_rng(0)).pvalue.min()
    assert abs(pvalue - expected) < 4 * np.sqrt(expected * (1 - expected) / n_resamples) + 1 / n_resamples


def test_in_time_no_direction_counts_but_that_of_the_sum():
    """Turned around their sum, units say the same: their order and skewness mean nothing."""
    rng, n = np.random.default_rng(8), 12
    losses = rng.exponential(1, (4, n)) + np.array([[0.0], [0.0], [0.5], [1.5]])
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, n - 1))]))[0]
    turn = basis * np.append(1.0, rng.choice([-1.0, 1.0], n - 1)) @ basis.T
    found, turned = (in_time(one).separate(9_999, np.random.default_rng(1)).pvalue for one in (losses, losses @ turn))
    assert np.abs(found - turned).max() < 4 * np.sqrt(2 * 0.25 / 9_999)
    assert (np.abs(losses @ turn - losses).max(axis=1) > 0.1).all()


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_models", mostly_slow([2, 20]))
def test_sets_of_normal_models_in_time_hold_all_ranks_with_the_level(n_models):
    """Of any number of models, with six units: the largest of 190 pairs has its own distribution."""
    rng, n_sets = np.random.default_rng(9), 400
    missed = sum(
        (in_time(rng.normal(0, 1, (n_models, 6))).separate(199, rng).pvalue <= 0.05).any() for _ in range(n_sets)
    )
    assert abs(missed - 0.05 * n_sets) < 4 * np.sqrt(n_sets * 0.05 * 0.95)


@pytest.mark.slow
def test_the_sets_of_equally_good_models_hold_all_ranks():
    """Ten equally good models with skewed losses: all ranks are 1, so that no set may begin later."""
    rng, n_sets, missed = np.random.default_rng(7), 400, 0
    for _ in range(n_sets):
        question = rng.normal(0, 1, 60)
        losses = np.exp(question + 0.7 * rng.normal(0, 1, (10, 60)))
        missed += (contributions(losses).separate(199, rng).pvalue <= 0.05).any()
    assert missed <= n_sets * 0.05 + 4 * np.sqrt(n_sets * 0.05 * 0.95)
