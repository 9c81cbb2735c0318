"""Sums over cells and times: estimates and variances equal loops, and follow from what is known."""

import numpy as np
import pytest

import caltest as ct
from caltest.predictions._sample import induce
from caltest.predictions.inputs._times import Timing
from caltest.statistics._sums_in_time import SumsInTime, fewest_windows, number_of_cosines
from tests.reference import in_time
from tests.reference.examples import draw_labels

TREE = ct.VarianceTree(max_cells=4, min_leaf=5)


def forecasts(n_classes, weighted, n=60, lead=3, seed=0):
    """A sample with gaps and batches, in no order of time."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    step = np.sort(rng.integers(2 * n // 3, size=n)) + np.where(np.arange(n) > n // 2, 5, 0)
    weight = rng.exponential(size=n) if weighted else None
    timing = Timing((step - step[0])[rng.permutation(n)], lead, f"{lead}")
    return induce(prob, draw_labels(prob, rng), weight=weight, timing=timing)


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (2, True), (4, True)])
def test_estimate_and_terms_equal_loops(n_classes, weighted):
    sample = forecasts(n_classes, weighted)
    found, (estimate, terms, score) = SumsInTime.of(sample, TREE), in_time.terms_in_time(sample, TREE)
    assert found.estimate == pytest.approx(estimate, abs=1e-14)
    assert found.inner(found) == pytest.approx(np.square(terms).sum(), rel=1e-9)
    assert 2 / found.total_weight * found.scores == pytest.approx(score, abs=1e-14)
    assert found.degrees == len(score)


def test_the_number_of_cosines_is_a_third_of_the_windows_or_follows_from_the_times():
    def number(n, lead):
        return number_of_cosines(Timing(np.arange(n), lead, f"{lead}"))

    assert [number(n, 7) for n in (62, 63, 365, 2000)] == [2, 3, 17, 63]
    assert number(2000, 1) == 63  # .4 n^(2/3)
    assert (number(24, 1), number(100_000, 1)) == (8, 100)
    assert fewest_windows() == 9


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("shared", [1, 6])
def test_cosines_have_the_variance_of_independent_and_of_shared_labels(shared):
    """Labels that are equal within a lead have nearly the variance of the sum of all labels: cosines are slow."""
    rng, n, lead = np.random.default_rng(2), 1200, 6
    prob, one, number = np.full(n, 0.5), ct.EqualWidth(1), number_of_cosines(Timing(np.arange(n), lead, "6"))
    cosine = [np.sqrt(2) * np.cos(np.pi * j * (np.arange(n) + 0.5) / n) for j in range(1, number + 1)]
    expected = np.mean([np.square(c.reshape(-1, shared).sum(axis=1)).sum() for c in cosine]) / n
    assert 0.9 * shared < expected <= shared + 1e-9
    found = []
    for _ in range(60):
        label = np.repeat(rng.random(n // shared), shared) < prob
        both = np.column_stack([1 - prob, prob])
        sums = SumsInTime.of(induce(both, label.astype(int), timing=Timing(np.arange(n), lead, "6")), one)
        found.append(float(np.square(sums.cosine).sum()) / float(sums.variance.sum()))
    assert abs(np.mean(found) - expected) < 4 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_cells_of_one_window_are_unknown():
    step, prob = np.arange(40), np.repeat([0.2, 0.8], [36, 4])
    both = np.column_stack([1 - prob, prob])
    sums = SumsInTime.of(induce(both, np.tile([0, 1], 20), timing=Timing(step, 4, "4")), ct.EqualWidth(2))
    assert (sums.factor > 0).tolist() == [True, False]
    assert sums.unknown == pytest.approx(0.1)
    assert np.isfinite(sums.predicted_deviation)


def test_labels_that_never_vary_may_all_be_shared():
    n, lead = 200, 5
    prob = np.full(n, 0.01)
    both = np.column_stack([1 - prob, prob])
    timing = Timing(np.arange(n), lead, "5")
    sums = SumsInTime.of(induce(both, np.zeros(n, int), timing=timing), ct.EqualWidth(1))
    assert sums.minority == 0
    near = sums.largest_inflation
    assert near == pytest.approx((n * (2 * lead - 1) - lead * (lead - 1)) / n)
    variance = near * n * 0.01 * 0.99
    expected = np.sqrt(2 * (sums.factor[0] * variance) ** 2 + 4 * 0.01**2 * variance) / n
    assert sums.predicted_deviation == pytest.approx(expected)
