"""Labels that are alike within groups: how alike the data allow them to be, and how they are simulated and scaled."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from caltest.predictions._sample import make_sample
from caltest.resampling.draws._alike_draws import ENOUGH_GROUPS, LARGEST_ICC, AlikeDraws, RareOutcome
from caltest.resampling.draws._signs import GroupsWithSurprise


def problem(seed, n_classes, weighted, n=60, n_groups=7):
    """Return a sample of few groups with rare events, or rarely wrong predictions."""
    rng = np.random.default_rng(seed)
    rest = rng.dirichlet(np.ones(n_classes - 1), n) * rng.uniform(0.02, 0.3, (n, 1))
    prob = np.column_stack([1 - rest.sum(axis=1), rest])
    label = (rng.random(n)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
    weight = rng.uniform(0.2, 3, n) if weighted else None
    return make_sample(label, prob, groups=rng.integers(n_groups, size=n), sample_weight=weight)


def residuals(sample, labels):
    """Return weighted residuals of the event or surprise, its probability and the weight of each observation."""
    found = []
    for prob, label, weight in zip(sample.prob, labels, sample.weight_or_ones, strict=True):
        usual = 0 if sample.n_outcomes == 2 else int(np.argmax(prob))
        found.append((weight * ((label != usual) - (1 - prob[usual])), 1 - prob[usual], weight))
    return found


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_design_effect_and_correlation_are_those_of_loops(n_classes, weighted):
    for seed in range(5):
        sample = problem(seed, n_classes, weighted)
        rare, terms = sample.of_predictions(RareOutcome.of), residuals(sample, sample.outcome)
        groups = [[t for t, g in zip(terms, sample.group, strict=True) if g == one] for one in set(sample.group)]
        own = sum(w**2 * p * (1 - p) for _, p, w in terms)
        squares = sum(sum(e for e, _, _ in group) ** 2 for group in groups)
        assert rare.design_effect(sample.outcome[None])[0] == pytest.approx(max(squares / own, 1))
        pairs = sum(sum(w * math.sqrt(p * (1 - p)) for _, p, w in group) ** 2 for group in groups) - own
        variance = [sum(w * p * (1 - p) for _, p, w in group) for group in groups]
        change = sum(e for e, _, _ in terms) / sum(variance)
        around = sum(
            (sum(e for e, _, _ in group) - change * v) ** 2 / (1 - v / sum(variance))
            for group, v in zip(groups, variance, strict=True)
        ) / sum(w**2 * p * (1 - p) * (1 + change * (1 - 2 * p)) for _, p, w in terms)
        assert rare.effect_around(sample.outcome[None])[0] == pytest.approx(around)
        number = GroupsWithSurprise.of(sample).effective_number - 1
        most = around * number / chi2.ppf(0.2, number)
        expected = min((most - 1) * own / pairs, max((around - 1) * own / pairs, LARGEST_ICC))
        split = [[p for e, p, w in group if e > 0] + [2.0] for group in groups]
        rest = [[p for e, p, w in group if e <= 0] + [-1.0] for group in groups]
        if all(min(one) > max(other) for one, other in zip(split, rest, strict=True)):
            expected = 1.0
        assert rare.largest_icc(sample) == pytest.approx(min(max(expected, 0), 1))


def test_few_groups_that_show_no_dependence_allow_the_largest_and_enough_groups_need_none():
    prob, groups = np.full(400, 0.05), np.arange(400) // 10
    some = np.zeros(400, dtype=int)
    some[0] = 1
    one = make_sample(some, prob, groups=groups)
    assert one.of_predictions(RareOutcome.of).largest_icc(one) == LARGEST_ICC
    some[: 10 * ENOUGH_GROUPS : 10] = 1  # an event in each of so many groups
    enough = make_sample(some, prob, groups=groups)
    assert enough.of_predictions(RareOutcome.of).largest_icc(enough) == 0


def test_labels_of_a_group_that_may_be_one_outcome_are_drawn_as_one():
    prob, groups = np.repeat([0.02, 0.1, 0.3, 0.04], 5), np.repeat(np.arange(4), 5)
    for events in ([], range(5), [*range(5), *range(10, 15)]):
        label = np.isin(np.arange(20), list(events)).astype(int)
        sample = make_sample(label, prob, groups=groups)
        assert sample.of_predictions(RareOutcome.of).largest_icc(sample) == 1.0
        ((_, drawn),) = AlikeDraws.as_alike(sample, 1.0, 30, 0).blocks(sample)
        assert (drawn.reshape(30, 4, 5) == drawn.reshape(30, 4, 5)[:, :, :1]).all()
    varied = prob + np.tile(np.arange(5) / 1000, 4)
    for events, one in (([4], True), ([4, 3], True), ([3], False), ([4, 9, 8], True), ([4, 9, 7], False)):
        sample = make_sample(np.isin(np.arange(20), events).astype(int), varied, groups=groups)
        assert sample.of_predictions(RareOutcome.of).may_be_one_draw(sample.outcome) is one


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_outcome_of_a_group_has_the_mean_probability_of_its_observations(n_classes, weighted):
    sample, number = problem(3, n_classes, weighted), 4_000
    labels = np.concatenate([some for _, some in AlikeDraws.as_alike(sample, 1.0, number, 0).blocks(sample)])
    top = np.zeros(sample.n_samples) if n_classes == 2 else sample.expected.argmax(axis=1)
    rare = 1 - sample.expected[np.arange(sample.n_samples), top.astype(int)]
    for one in np.unique(sample.group):
        inside = sample.group == one
        surprise = labels[:, inside] != top[inside]
        assert (surprise == surprise[:, :1]).all()
        mean = np.average(rare[inside], weights=sample.weight_or_ones[inside])
        assert surprise[:, 0].mean() == pytest.approx(mean, abs=4 * math.sqrt(mean * (1 - mean) / number))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_draw_does_not_depend_on_how_many_are_made(n_classes):
    sample = problem(1, n_classes, weighted=False)
    draws = AlikeDraws.as_alike(sample, 0.2, 100, 5)
    whole = np.concatenate([labels for _, labels in draws.blocks(sample)])
    parts = [labels for part in draws.slices(37) for _, labels in part.blocks(sample)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert len(whole) == 100


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_are_as_alike_as_they_are_asked_to_be(n_classes):
    sample, number = problem(2, n_classes, weighted=True, n=600, n_groups=60), 2_000
    draws = AlikeDraws.as_alike(sample, 0.2, number, np.random.SeedSequence().entropy)
    labels = np.concatenate([some for _, some in draws.blocks(sample)])
    rare = sample.of_predictions(RareOutcome.of)
    squares = np.square(rare.sums(labels)).sum(axis=1)
    found = (squares - rare.own) / rare.pairs
    assert found.mean() == pytest.approx(0.2, abs=4 * found.std() / math.sqrt(number))
    for k in range(n_classes):
        shares = (labels == k).mean(axis=0)
        error = np.sqrt(sample.expected[:, k] * (1 - sample.expected[:, k]) / number)
        assert (np.abs(shares - sample.expected[:, k]) / np.maximum(error, 1e-9)).max() < 5.5  # of 2,400
