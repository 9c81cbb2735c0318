"""Labels that share shocks of time and of groups: pairs of both kinds by loops, the moment equation, and the draws."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from caltest.predictions._sample import make_sample
from caltest.resampling.draws._group_shocks import N_TERMS
from caltest.resampling.draws._schemes import TimedLabels
from caltest.resampling.draws._signs import GroupsWithSurprise
from caltest.resampling.draws._timed_draws import (
    CrossedOutcome,
    SharedShockDraws,
    TimedDraws,
    TimedOutcome,
    inflation_of,
)
from tests.reference.cases import mostly_slow

CASES = [(2, False), (2, True), (3, True)]
N_DRAWS = 4000


def problem(seed, n_classes=2, *, weighted=False, n=60, lead=3, groups=6):
    """Patients who come back, several of them at a time, in no order."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    label = (rng.random(n)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
    weight = rng.uniform(0.2, 3, n) if weighted else None
    given = {"groups": rng.integers(groups, size=n), "time": rng.integers(n // 2, size=n), "lead": lead}
    return make_sample(label, prob, sample_weight=weight, **given)


def dependent(sample):
    """Which pairs are less than a lead apart, and which are of the same group, by loops."""
    step, lead, group, n = sample.timing.step, sample.timing.lead, sample.group, sample.n_samples
    close = [[abs(int(step[i]) - int(step[j])) < lead for j in range(n)] for i in range(n)]
    alike = [[bool(group[i] == group[j]) for j in range(n)] for i in range(n)]
    return np.array(close), np.array(alike)


def scores_in_sample(outcome, sample):
    """For each set of scores the weighted residual of each label, and its variance, in the order of the sample."""
    place = np.argsort(outcome.time.order)
    return [(one.residual[place], one.variance[place]) for one in outcome.scored]


@pytest.mark.parametrize(("n_classes", "weighted"), CASES)
def test_pairs_of_both_kinds_count_once(n_classes, weighted):
    sample = problem(1, n_classes, weighted=weighted)
    outcome = sample.once(TimedOutcome.of)
    assert isinstance(outcome, CrossedOutcome)
    near, alike = dependent(sample)
    either = near | alike
    assert either.sum() > max(near.sum(), alike.sum())
    labels = np.stack([sample.outcome, sample.outcome[::-1]])
    for label, (products, squares) in zip(labels, outcome.products(labels), strict=True):
        expected = own = 0.0
        for residual, variance in scores_in_sample(outcome, sample):
            e = residual[np.arange(sample.n_samples), label]
            e = e - variance * (e.sum() / variance.sum())
            expected += sum(e[i] * e[j] for i, j in zip(*np.nonzero(either), strict=True))
            own += sum(e * e)
        assert products == pytest.approx(expected)
        assert squares == pytest.approx(own)
    close = [variance @ either @ variance for _, variance in scores_in_sample(outcome, sample)]
    np.testing.assert_allclose(outcome.close, close)
    worth = [
        variance.sum() ** 2 / sum(variance[sample.group == g].sum() ** 2 for g in range(6))
        for _, variance in scores_in_sample(outcome, sample)
    ]
    assert outcome.n_groups == pytest.approx(min(worth))


def test_groups_of_one_observation_are_times_alone_and_one_time_apart_is_a_group_alone():
    label, prob = np.arange(40) % 2, np.linspace(0.1, 0.9, 40)
    time = {"time": np.arange(40), "lead": 3}
    alone, crossed = (make_sample(label, prob, groups=groups, **time) for groups in (None, np.arange(40)))
    assert crossed.group is None
    assert inflation_of(alone) == inflation_of(crossed)
    pairs = make_sample(label, prob, groups=np.arange(40) // 2, **time)  # the second one is close already
    assert pairs.once(TimedOutcome.of).products(label[None]) == pytest.approx(
        alone.once(TimedOutcome.of).products(label[None])
    )
    apart = make_sample(label, prob, groups=np.arange(40) % 5, time=np.arange(40), lead=1)
    assert apart.timing is None  # so that the test is that of groups


@pytest.mark.slow(few_draws=True)
def test_the_correlations_solve_both_moment_equations():
    """The expected sums are those of exact bivariate normal probabilities, pair by pair."""
    sample = problem(11, n=40, lead=2, groups=12)
    outcome = sample.once(TimedOutcome.of)
    in_time, alike = outcome.correlations(sample.outcome)
    assert 0 < in_time < 1 - alike
    assert alike > 0
    near, same = dependent(sample)
    step, lead = sample.timing.step, sample.timing.lead
    share = np.clip(1 - np.abs(step[:, None] - step) / lead, 0, None)
    place = np.argsort(outcome.time.order)
    bound = outcome.bound.astype(float)[place, 0]

    def covariance(i, j, rho):
        both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([bound[i], bound[j]])
        return both - sample.prob[i, 0] * sample.prob[j, 0]

    others = ~np.eye(40, dtype=bool)
    timed = {pair: share[pair] * covariance(*pair, in_time) for pair in zip(*np.nonzero(near & others), strict=True)}
    grouped = {pair: covariance(*pair, alike) for pair in zip(*np.nonzero(same & others), strict=True)}
    powers = np.arange(1, N_TERMS + 1)
    assert outcome.terms @ in_time**powers == pytest.approx(sum(timed.values()), rel=1e-3)
    assert outcome.alike.terms @ alike**powers == pytest.approx(sum(grouped.values()), rel=1e-3)
    ((_, squares),) = outcome.products(sample.outcome[None])
    total = sum(timed.values()) + sum(grouped.values())
    (ratio,) = outcome.inflation(sample.outcome[None])
    ((_, variance),) = scores_in_sample(outcome, sample)
    lost = variance @ (near | same) @ variance / variance.sum() ** 2
    assert total == pytest.approx((ratio / (1 - lost) - 1) * squares, rel=0.01)


@pytest.mark.parametrize(("in_time", "alike"), mostly_slow([(0.0, 0.5), (0.3, 0.4), (0.0, 1.0), (0.5, 0.5)]))
def test_margins_are_exact_and_shocks_are_those_of_windows_and_groups(in_time, alike):
    """Moments of 4,000 draws within four standard errors."""
    rng, lead = np.random.default_rng(0), 3
    prob, time, group = (
        rng.uniform(0.2, 0.8, 8),
        np.array([0, 0, 1, 2, 9, 9, 10, 20]),
        np.array([0, 1, 0, 1, 0, 2, 2, 1]),
    )
    sample = make_sample(np.arange(8) % 2, prob, time=time, lead=lead, groups=group)
    drawn = np.concatenate([some for _, some in TimedDraws(np.uint64(3), 0, N_DRAWS, in_time, alike).blocks(sample)])
    outcome = sample.once(TimedOutcome.of)
    bound = outcome.bound.astype(float)[np.argsort(outcome.time.order), 0]
    p = sample.prob[:, 1]
    assert (np.abs(drawn.mean(axis=0) - p) <= 4 * np.sqrt(p * (1 - p) / N_DRAWS)).all()
    for i in range(8):
        for j in range(i):
            shared = max(0.0, 1 - abs(int(sample.timing.step[i] - sample.timing.step[j])) / lead)
            of_group = alike * bool(sample.group[i] == sample.group[j])
            both = [
                multivariate_normal([0, 0], [[1, rho], [rho, 1]], allow_singular=True).cdf([bound[i], bound[j]])
                for rho in (of_group + in_time, of_group)
            ]
            expected = shared * both[0] + (1 - shared) * both[1]
            found = ((drawn[:, i] == 0) & (drawn[:, j] == 0)).mean()
            assert abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / N_DRAWS), (i, j)


def test_draws_are_scaled_to_the_observed_inflation_and_do_not_depend_on_their_number():
    sample = problem(4, 3, weighted=True)
    whole = TimedDraws(np.uint64(9), 0, 70, 0.3, 0.4)
    drawn, scale = (
        np.concatenate(each) for each in zip(*[some[1:] for some in whole.scaled_blocks(sample)], strict=True)
    )
    inflation = sample.once(TimedOutcome.of).inflation(drawn)
    np.testing.assert_allclose(scale**2 * inflation, inflation_of(sample))
    np.testing.assert_allclose(whole.scale(sample, drawn), scale)
    for size in (1, 37):
        parts = [outcomes for part in whole.slices(size) for _, outcomes in part.blocks(sample)]
        np.testing.assert_array_equal(np.concatenate(parts), drawn)
    further = TimedLabels(n_alike=3, surprises=sample.once(GroupsWithSurprise.of)).further
    assert further == ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5))
    draws = [SharedShockDraws.with_shares(one, sample, 5, 0) for one in further]
    assert [(one.correlation, one.alike) for one in draws] == list(further)


def test_more_groups_than_normal_numbers_at_a_time_have_their_own_shocks():
    n = 300
    sample = make_sample(np.arange(n) % 2, np.full(n, 0.5), time=np.arange(n), lead=2, groups=np.arange(n) % 150)
    drawn = np.concatenate([some for _, some in TimedDraws(np.uint64(5), 0, N_DRAWS, 0.0, 1.0).blocks(sample)])
    order = np.argsort(sample.group, kind="stable")
    pair = drawn[:, order].reshape(N_DRAWS, 150, 2)
    assert (pair[:, :, 0] == pair[:, :, 1]).all()
    residual = pair[:, :, 0] - 0.5
    covariance = residual.T @ residual / N_DRAWS
    np.fill_diagonal(covariance, 0.0)
    assert np.abs(covariance).max() <= 5 * 0.25 / math.sqrt(N_DRAWS)  # the largest one of 11,175
