"""The debiased squared l2 error of groups of observations: estimate, interval, comparisons."""

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest.predictions._sample import make_sample
from tests.reference.examples import draw_labels
from tests.resampling.test_signs import clustered, problem

TREE = ct.VarianceTree(max_cells=4, min_leaf=5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_observation_as_a_group_is_the_usual_estimate(n_classes):
    y_true, prob, _ = problem(300, n_classes, 3)
    plain = ct.l2_interval(y_true, prob)
    for options in ({"groups": np.arange(300)}, {"sample_weight": np.full(300, 2.0)}):
        found = ct.l2_interval(y_true, prob, **options)
        assert found.estimate == pytest.approx(plain.estimate, abs=1e-15)
        assert found.confidence_interval.high == pytest.approx(plain.confidence_interval.high, rel=0.2)


def target(prob, true, sample, partition):
    """The squared l2 error of the event in the cells of a sample."""
    cells = sample.cells(partition)
    gap = (true - prob)[sample.row]
    weight = np.ones(len(gap)) if sample.weight is None else sample.weight
    return float((np.bincount(cells.index, gap * weight) ** 2 / cells.count).sum() / cells.count.sum())


def misses(n_data_sets, sizes, *, correlation, weighted, shift, seed):
    """How often the target is below and above the interval."""
    rng, below, above = np.random.default_rng(seed), 0, 0
    for _ in range(n_data_sets):
        y_true, true, group = clustered(sizes, correlation, rng)
        prob = true ** np.exp(shift)
        options = {"sample_weight": rng.exponential(size=len(true))} if weighted else {"groups": group}
        interval = ct.l2_interval(y_true, prob, **options)
        wanted = target(prob, true, make_sample(y_true, prob, **options), interval.partition)
        below += wanted < interval.confidence_interval.low - 1e-12
        above += wanted > interval.confidence_interval.high + 1e-12
    return below, above


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_coverage_of_the_interval(shift):
    """On each side at most 5 % (nominal 2.5 %), beyond chance."""
    for sizes, weighted in (((10,) * 40, False), ((1,) * 400, True)):
        found = misses(60, sizes, correlation=0.1 * (not weighted), weighted=weighted, shift=shift, seed=0)
        assert max(found) <= binom.ppf(1 - 1e-4, 60, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("sizes", [(50,) * 20, tuple(range(5, 100, 5)), (5,) * 200])
def test_coverage_with_groups(sizes, shift):
    found = misses(150, sizes, correlation=0.1, weighted=False, shift=shift, seed=1)
    assert max(found) <= binom.ppf(1 - 1e-4, 150, 0.065)  # 20 groups of unequal size: .065 (docs/how-much.md)


def test_dependence_widens_intervals_and_comparisons():
    y_true, prob, group = clustered((40,) * 25, 0.3, np.random.default_rng(3))
    plain, grouped = (ct.l2_interval(y_true, prob**1.3, groups=ids) for ids in (None, group))
    assert grouped.confidence_interval.high > plain.confidence_interval.high
    margin = plain.root_interval.high * 1.05
    tests = [ct.equivalence_test(y_true, prob**1.3, margin, groups=ids) for ids in (None, group)]
    assert tests[0].pvalue < 0.05 < tests[1].pvalue
    one, other = prob**1.3, prob**0.8
    plain, grouped = (ct.paired_test(y_true, one, other, groups=ids) for ids in (None, group))
    assert grouped.standard_error > 1.5 * plain.standard_error
    found = ct.compare_models({"a": one, "b": other}, y_true, groups=group, n_resamples=99, rng=0)
    assert found.pairs[0].test.standard_error == pytest.approx(grouped.standard_error)
    assert "random signs" in str(found)
    apart = ct.unpaired_test(y_true, one, y_true, other, groups_a=group, groups_b=group)
    assert apart.difference == pytest.approx(grouped.difference)


def test_the_level_of_comparisons_with_groups():
    """Two models that are equally miscalibrated, in opposite directions."""
    rng, rejected = np.random.default_rng(5), 0
    for seed in range(30):
        group = np.repeat(np.arange(40), 10)
        prob = rng.uniform(0.2, 0.8, 400)
        noise = 0.1 * rng.choice([-1, 1], size=40)[group]
        y_true = (rng.random(400) < prob + noise).astype(int)
        options = {"groups": group, "method": "bootstrap", "n_resamples": 99, "rng": seed}
        rejected += ct.paired_test(y_true, prob + 0.1, prob - 0.1, **options).pvalue <= 0.05
    assert rejected <= binom.ppf(1 - 1e-4, 30, 0.07)


def test_refused_designs_of_comparisons():
    y_true, prob, group = problem(40, 2, 4)
    with pytest.raises(ValueError, match="`sample_weight` and `groups` need `y_true`"):
        ct.compare_models({"a": (y_true, prob), "b": (y_true, prob)}, groups=group)
    with pytest.raises(ValueError, match="`groups_a` and `groups_b` must both be given or both be None"):
        ct.unpaired_test(y_true, prob, y_true, prob, groups_a=group)


def test_the_bootstrap_draws_whole_groups():
    y_true, prob, group = problem(90, 3, 9)
    from caltest.resampling._row_draws import BootstrapDraws

    sample = make_sample(y_true, prob, groups=group)
    for drawn, outcomes in BootstrapDraws.of(5, 0).blocks(sample):
        assert np.array_equal(outcomes[0], drawn.outcome)
        times = np.bincount(drawn.group, minlength=9) / 10
        assert times.sum() == 9
        assert np.array_equal(times, np.rint(times))
    grouped = ct.bootstrap_interval(y_true, prob, groups=group, n_resamples=99, rng=0)
    assert grouped.estimate == ct.calibration_error(y_true, prob)
    weighted = ct.bootstrap_interval(y_true, prob, sample_weight=np.arange(90), n_resamples=49, rng=0)
    assert weighted.estimate == ct.calibration_error(y_true, prob, sample_weight=np.arange(90))


def test_training_with_groups_and_weights():
    y_true, prob, group = clustered((10,) * 20, 0.2, np.random.default_rng(8))
    weight = np.arange(200) % 3
    found = ct.track([(y_true, prob)], groups=group, sample_weight=weight, n_resamples=99, rng=0)
    hits = (prob > 0.5) == y_true
    assert found.accuracy[0] == pytest.approx(np.average(hits, weights=weight))
    log = np.where(y_true == 1, np.log(prob), np.log(1 - prob))
    assert found.log_score[0] == pytest.approx(-np.average(log, weights=weight))
    expected = ct.calibration_test(
        y_true,
        prob,
        groups=group,
        sample_weight=weight,
        statistic=ct.ECE(),
        n_resamples=99,
        rng=np.random.default_rng(0),
    )
    assert found.pvalue[0] == expected.pvalue


def test_labels_that_follow_the_predictions_have_an_error_of_0_within_the_interval():
    prob = np.random.default_rng(1).dirichlet((1, 1, 1), size=200)
    interval = ct.l2_interval(draw_labels(prob, np.random.default_rng(2)), prob, groups=np.arange(200) // 4)
    assert interval.confidence_interval.low == 0


def test_a_cell_of_a_single_group_may_have_any_error():
    """500 predictions of 0.2 in one group, of which 70 % happen: no pair of groups shows it."""
    rng = np.random.default_rng(0)
    prob = np.repeat([0.2, 0.8], 500)
    group = np.append(np.zeros(500, int), 1 + np.arange(500) % 50)
    y_true = (rng.random(1000) < np.repeat([0.7, 0.8], 500)).astype(int)
    options = {"groups": group, "partition": ct.EqualWidth(2)}
    interval = ct.l2_interval(y_true, prob, **options)
    assert interval.root_interval.high > np.sqrt(0.5)
    assert "C404" in {note.code for note in interval.notes}
    assert ct.equivalence_test(y_true, prob, 0.1, **options).pvalue == 1
    better = ct.paired_test(y_true, prob, np.repeat([0.7, 0.8], 500), **options)
    assert better.confidence_interval.high > 0.25
    weight = np.concatenate([[1000.0], np.zeros(20), np.ones(500)])
    labels = np.append(np.ones(21, int), rng.random(500) < 0.8)
    alone = ct.l2_interval(labels, np.repeat([0.2, 0.8], [21, 500]), sample_weight=weight, partition=ct.EqualWidth(2))
    assert alone.confidence_interval.high > 1000 / 1500
