"""Sums over groups and cells: estimates, variances and simulated replicates equal loops."""

import numpy as np
import pytest
from scipy.special import ndtri

import caltest as ct
from caltest.comparison._grouped_terms import FEW_SURPRISES, Contrast, GroupedPairTerms
from caltest.comparison._u_statistics import Differences, terms_of
from caltest.predictions._sample import induce
from caltest.predictions.cells._cells import cells_of
from tests.comparison.models import two_models
from tests.reference import signed

TREE = ct.VarianceTree(max_cells=4, min_leaf=5)
KINDS = [(2, False), (2, True), (4, True)]


def pair(n_classes, weighted, n_groups=8, n=60):
    """Samples of two models on the same groups, of which one is alone in a cell at times."""
    y_true, a, b = two_models(n, n_classes, seed=n_classes, calibrated=False)
    rng = np.random.default_rng(n_groups)
    group = np.append(np.arange(n_groups), rng.integers(n_groups, size=n - n_groups))
    weight = rng.exponential(size=n) if weighted else None
    return [induce(prob, y_true, group=group, weight=weight) for prob in (a, b)]


@pytest.mark.parametrize(("n_classes", "weighted"), KINDS)
@pytest.mark.parametrize("by_groups", [False, True])
def test_differences_and_variances_equal_loops(n_classes, weighted, by_groups, monkeypatch):
    monkeypatch.setattr("caltest.comparison._grouped_terms._FEW_GROUPS", 1000 if by_groups else 0)
    samples = pair(n_classes, weighted, n_groups=4 if by_groups else 20)
    terms = terms_of(samples, TREE)
    assert (Contrast.of(terms)._work[1][0] == 1) == by_groups
    value, variance = signed.variance_of_groups(samples, TREE)
    differences = Differences.of(terms, paired=True)
    assert differences.estimate[0] - differences.estimate[1] == pytest.approx(value, abs=1e-14)
    assert differences.variance[0, 1] == pytest.approx(variance + differences.unknown.sum() ** 2, rel=1e-9)
    for part, sample in zip(terms, samples, strict=True):
        estimate, between, score = signed.terms_of_groups(sample, TREE)
        assert part.estimate == pytest.approx(estimate, abs=1e-14)
        assert part.inner(part) == pytest.approx(np.square(between).sum(), rel=1e-9)
        assert 2 / part.total_weight * part.scores == pytest.approx(score, abs=1e-14)


def test_an_inflation_of_one_belongs_to_independent_labels():
    """Of simulated labels; groups whose labels are equal have the inflation of the size of the group."""
    rng, n = np.random.default_rng(0), 400
    group, prob = np.repeat(np.arange(n // 4), 4), np.full(n, 0.4)
    apart = []
    for _ in range(60):
        for found, label in ((apart, rng.random(n)), (None, rng.random(n // 4)[group])):
            sample = induce(np.column_stack([1 - prob, prob]), (label < prob).astype(int), group=group)
            inflation = GroupedPairTerms.of(sample, TREE).inflation
            if found is None:  # corrected for one degree of freedom of 100 groups, and of 400 observations
                assert inflation == pytest.approx(4 * (1 - 1 / 400) / (1 - 1 / 100))
            else:
                found.append(inflation)
    assert abs(np.mean(apart) - 1) < 4 * np.std(apart) / np.sqrt(60)


def test_copies_of_rare_events_count_as_groups():
    """Three groups of ten copies with an event show as little as six observations: fewer than five, or ten."""
    for copies, with_event, few in ((10, 3, True), (10, 4, True), (10, 6, False), (1, 9, True), (1, 10, False)):
        group, n = np.repeat(np.arange(60), copies), 60 * copies
        sample = induce(np.tile([0.9, 0.1], (n, 1)), (group < with_event).astype(int), group=group)
        terms = GroupedPairTerms.of(sample, TREE)
        rest = sample.residual(1) - sample.residual(1).mean()
        sums = [rest[sample.group == g].sum() for g in range(60)]
        inflation = (np.square(sums).sum() / (1 - 1 / 60)) / (np.square(rest).sum() / (1 - 1 / n))
        rare = with_event * copies
        assert terms.minority == pytest.approx(min(rare, 10 / 5 * rare / max(inflation, 1)))
        assert (terms.minority < FEW_SURPRISES) == few


def test_simulated_labels_and_signs_equal_loops():
    samples = pair(4, True, n_groups=12)
    terms = terms_of(samples, TREE)
    contrast, rng = Contrast.of(terms), np.random.default_rng(3)
    shock, noise = (rng.standard_normal((5, size), dtype=np.float32) for size in (12, 60))
    cumulative = np.cumsum(rng.dirichlet(np.ones(4), 60), axis=1)[:, :-1]
    bound = ndtri(cumulative).astype(np.float32)
    found = contrast.of_labels(shock, noise, 0.3, bound, np.tile(np.arange(4), (2, 1)))
    for r in range(5):
        latent = np.sqrt(0.3) * shock[r, terms[0].row_group] + np.sqrt(0.7) * noise[r]
        label = (bound <= latent[:, None]).sum(axis=1)
        drawn = [
            induce(s.prob, label[s.row], group=s.group, weight=s.weight) for s in samples
        ]  # rows are in order: more than two classes
        value, variance = signed.variance_of_groups(drawn, TREE)
        assert found[r, 0] == pytest.approx(value, abs=1e-13)
        assert max(found[r, 1], found[r, 2] - found[r, 1]) == pytest.approx(variance, rel=1e-9)
    observed = contrast.of_signs(np.ones((1, 12), np.float32))
    share = contrast.mass / contrast.count[contrast.place]
    residual = contrast.sums - contrast.mass[:, None] * contrast.mean[contrast.place]
    sums = contrast.sums + residual * (np.square(contrast.lever) - 1)[:, None] * (share < 1)[:, None]
    whole = np.stack([sums[contrast.place == c].sum(axis=0) for c in range(len(contrast.count))])
    squares = np.square(whole).sum(axis=1) - np.bincount(contrast.place, np.square(sums).sum(axis=1))
    expected = (contrast.sign * contrast.factor) @ squares
    assert observed[0, 0] == pytest.approx(expected / contrast.total_weight, abs=1e-13)


def test_the_error_of_true_means_is_the_squared_l2_error():
    samples = pair(2, False, n_groups=30)
    terms = terms_of(samples, TREE)
    contrast, truth = Contrast.of(terms), np.full(60, 0.35)
    chance = np.column_stack([1 - truth, truth])
    expected = 0.0
    for sign, sample in ((1, samples[0]), (-1, samples[1])):
        index = cells_of(sample, TREE).index
        for b in set(index.tolist()):
            expected += sign * np.sum(index == b) / 60 * np.mean(0.35 - sample.prob[index == b, 1]) ** 2
    assert contrast.error_of(contrast.means_of([chance, chance])) == pytest.approx(expected, abs=1e-14)


def test_bootstrap_deviations_are_those_of_all_pairs():
    samples = pair(4, True, n_groups=9)
    part = terms_of(samples, TREE)[0]
    _, between, score = signed.terms_of_groups(samples[0], TREE)
    change = np.random.default_rng(2).integers(0, 3, size=(5, 9)) - 1.0
    linear, by_pair = part.deviations(change)
    assert linear == pytest.approx(change @ (score - score.mean()), abs=1e-13)
    assert by_pair == pytest.approx([x @ between @ x / part.total_weight for x in change], abs=1e-13)
