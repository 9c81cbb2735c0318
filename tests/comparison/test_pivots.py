"""Pivots of groups and weights: tails, their inverse, and draws that depend on nothing but the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

import caltest as ct
from caltest.comparison._pivots import Pivots, PivotTail, draw_pivots, known_groups
from caltest.comparison._u_statistics import terms_of
from caltest.predictions._sample import induce
from tests.comparison.models import two_models
from tests.reference import naive


@pytest.mark.slow(few_draws=True)
@given(values=st.lists(st.floats(-8, 8), min_size=3, max_size=400), degrees=st.floats(4, 500))
def test_a_tail_falls_and_its_critical_value_is_where_it_turns(values, degrees):
    tail = PivotTail.of(np.array(values), degrees)
    places = np.linspace(0, 30, 200)
    found = np.array([tail.probability(z) for z in places])
    assert np.all(np.diff(found) <= 1e-15)
    assert found.min() > 0
    assert found.max() <= 1
    for level in (0.4, 0.025, 0.001, 1e-6):
        critical = tail.critical(level)
        if np.isfinite(critical):
            assert tail.probability(critical * (1 + 1e-6) + 1e-6) <= level * (1 + 1e-9)
        if 1e-3 < critical < np.inf:
            assert tail.probability(critical * (1 - 1e-6)) >= level * (1 - 1e-3)


@pytest.mark.slow(few_draws=True)
@given(values=st.lists(st.floats(-3, 3), min_size=20, max_size=99), z=st.floats(0.1, 3))
def test_within_the_draws_the_tail_counts_them(values, z):
    tail = PivotTail.of(np.array(values), 30.0)
    if np.sum(np.array(values) >= z) >= 2:
        assert tail.probability(z) == pytest.approx(naive.pvalue(z, values))


def test_beyond_the_draws_the_tail_is_that_of_students_distribution():
    """Of normal draws and many groups it is nearly the normal one, far beyond the largest of 999 draws."""
    draws = norm.ppf((np.arange(999) + 0.5) / 999)
    tail = PivotTail.of(draws, 1e6)
    for z in (3.5, 5.0, 7.0):
        assert 1 < tail.probability(z) / norm.sf(z) < 6
    assert PivotTail.of(draws, 9.0).probability(7.0) > 1e4 * norm.sf(7.0)
    wide = PivotTail.of(2 * draws, 1e6)
    assert 1 < wide.probability(7.0) / norm.sf(3.5) < 6


def test_the_larger_pvalue_and_the_longer_interval_count():
    pivots = Pivots(np.random.default_rng(0).normal(size=(2, 1999)) * [[1.0], [1.5]], 100.0)
    alone = [Pivots(kind[None], 100.0) for kind in pivots.kinds]
    for z in (-2.5, -0.3, 0.4, 2.0, 6.0):
        assert pivots.pvalue(z) == max(one.pvalue(z) for one in alone)
    assert pivots.reach(0.9) == tuple(np.max([one.reach(0.9) for one in alone], axis=0))
    assert pivots.pvalue(0.0) == 1


def drawn(n_groups=12, **options):
    y_true, a, b = two_models(90, 3, seed=5)
    group = np.arange(90) % n_groups
    terms = terms_of([induce(prob, y_true, group=group) for prob in (a, b, (a + b) / 2)], ct.VarianceTree(max_cells=4))
    return terms, draw_pivots(terms, [(0, 1), (1, 2)], paired=True, n_resamples=70, rng=3, **options)


def test_draws_depend_on_the_seed_alone():
    seen = []
    _, one = drawn()
    _, two = drawn(workers=3, progress=lambda *parts: seen.append(parts))
    for pair, found in one.items():
        assert np.array_equal(found.kinds, two[pair].kinds)
        assert found.kinds.shape == (2, 70)
    assert seen[-1] == (70, 70)
    terms, _ = drawn()
    alone = draw_pivots(terms[:2], [(0, 1)], paired=True, n_resamples=70, rng=3)
    assert np.array_equal(alone[0, 1].kinds, one[0, 1].kinds)  # the same random numbers for all pairs


def test_many_observations_get_fewer_draws(monkeypatch):
    monkeypatch.setattr("caltest.comparison._pivots._MOST_LABELS", 90 * 30)
    monkeypatch.setattr("caltest.comparison._pivots._FEWEST_DRAWS", 20)
    assert drawn()[1][0, 1].n_resamples == 30


@pytest.mark.slow(few_draws=True)
def test_pivots_of_calibrated_labels_are_nearly_standard_normal():
    """200 groups of two, and the same of weights between one and two."""
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.3, 0.7, 400)
    y_true = (rng.random(400) < prob).astype(int)
    both = [np.column_stack([1 - p, p]) for p in (prob + 0.1, prob - 0.1)]
    for design in ({"group": np.arange(400) // 2}, {"weight": rng.uniform(1, 2, 400)}):
        terms = terms_of([induce(p, y_true, **design) for p in both], ct.VarianceTree())
        (pivots,) = draw_pivots(terms, [(0, 1)], paired=True, n_resamples=1999, rng=1).values()
        assert len(pivots.kinds) == (2 if "group" in design else 1)
        for kind in pivots.kinds:
            assert abs(kind.mean()) < 4 / np.sqrt(1999)
            freedom = known_groups(terms[0])
            assert abs(kind.std() - np.sqrt(freedom / (freedom - 2))) < 4 / np.sqrt(2 * 1999)  # that of Student's t
        assert known_groups(terms[0]) > 150


def test_groups_of_unknown_cells_do_not_count():
    prob = np.repeat([0.2, 0.8], [30, 10])
    group = np.append(np.arange(30) // 3, np.full(10, 10))  # the last group is alone in its cell
    sample = induce(np.column_stack([1 - prob, prob]), np.arange(40) % 2, group=group)
    (terms,) = terms_of([sample], ct.EqualWidth(2))
    assert known_groups(terms) == pytest.approx(10)
    assert terms.unknown == pytest.approx(0.25)


@pytest.mark.slow(few_draws=True)
def test_the_level_of_comparisons_with_groups():
    """Two models that are equally miscalibrated, in opposite directions."""
    rng, rejected = np.random.default_rng(5), 0
    for seed in range(30):
        group = np.repeat(np.arange(40), 10)
        prob = rng.uniform(0.2, 0.8, 400)
        noise = 0.1 * rng.choice([-1, 1], size=40)[group]
        y_true = (rng.random(400) < prob + noise).astype(int)
        options = {"groups": group, "variance": "bootstrap", "n_resamples": 99, "rng": seed}
        rejected += ct.paired_test(y_true, prob + 0.1, prob - 0.1, **options).pvalue <= 0.05
    assert rejected <= binom.ppf(1 - 1e-4, 30, 0.07)
