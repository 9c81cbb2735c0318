"""P-values of every squared l2 error, of groups and of weighted observations: level, ends, invariances, refusals."""

import numpy as np
import pytest
from scipy import special, stats

import caltest as ct
from caltest.estimation.errors._l2_interval import l2_distribution
from caltest.predictions._sample import make_sample
from caltest.statistics._squared_l2_inversion import SquaredL2Inversion
from tests.reference import signed
from tests.reference.cases import mostly_slow


def shocked(rng, truth, group, correlation):
    """Labels with these probabilities, whose latent normal numbers are correlated within groups."""
    latent = np.sqrt(correlation) * rng.standard_normal(group.max() + 1)[group]
    latent += np.sqrt(1 - correlation) * rng.standard_normal(len(group))
    return (latent < special.ndtri(truth)).astype(int)


def problem(seed, n_groups=30, size=8, shift=0.1):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    prob = rng.uniform(0.1, 0.7, len(group))
    return shocked(rng, prob + shift, group, 0.2), prob, group


def most(n, rate):
    """The largest number of n that chance explains, at 4 standard errors."""
    return stats.binom.ppf(stats.norm.cdf(4), n, rate)


def inversion(y_true, prob, **design):
    return l2_distribution(make_sample(y_true, prob, **design), None, any_shock=False, rng=0)[0]


LEVEL = [pytest.param(60), pytest.param(400, marks=pytest.mark.nightly)]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n_groups", "size", "n_sets"),
    [(20, 20, 60), *(pytest.param(*given, 400, marks=pytest.mark.nightly) for given in ((10, 40), (20, 20), (50, 10)))],
)
def test_an_error_of_dependent_rare_events_is_excluded_as_often_as_stated(n_groups, size, n_sets):
    """Predictions of .02 where .07 happen: .22, .17 and .11 were certified to be better than they are."""
    group, wrong = np.repeat(np.arange(n_groups), size), 0
    prob = np.full(len(group), 0.02)
    for seed in range(n_sets):
        y_true = shocked(np.random.default_rng([1, n_groups, seed]), prob + 0.05, group, 0.3)
        wrong += inversion(y_true, prob, groups=group).below(0.05**2) <= 0.05
    assert wrong <= most(n_sets, 0.05)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_sets", LEVEL)
@pytest.mark.parametrize(("n_groups", "size"), [(10, 20), pytest.param(20, 20, marks=pytest.mark.slow)])
def test_groups_of_equal_predictions_show_no_error_of_a_calibrated_model(n_groups, size, n_sets):
    """The lower end was above 0 in .18 and .13 of the data sets."""
    group, wrong = np.repeat(np.arange(n_groups), size), 0
    for seed in range(n_sets):
        rng = np.random.default_rng([2, n_groups, seed])
        prob = rng.uniform(0.05, 0.95, n_groups)[group]
        wrong += inversion(shocked(rng, prob, group, 0.3), prob, groups=group).above(0.0) <= 0.025
    assert wrong <= most(n_sets, 0.025)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_sets", LEVEL)
@pytest.mark.parametrize("kind", ["20:1", pytest.param("Pareto", marks=pytest.mark.slow)])
def test_unequal_weights_certify_as_often_as_stated(kind, n_sets):
    """Of 300 predictions of .02 where .07 happen: .10 to .21 were certified to be better than they are."""
    prob, wrong = np.full(300, 0.02), 0
    for seed in range(n_sets):
        rng = np.random.default_rng([3, seed])
        weight = np.where(rng.random(300) < 0.1, 20.0, 1.0) if kind == "20:1" else rng.pareto(1.5, 300) + 1
        y_true = (rng.random(300) < 0.07).astype(int)
        wrong += inversion(y_true, prob, sample_weight=weight).below(0.05**2) <= 0.05
    assert wrong <= most(n_sets, 0.05)


@pytest.mark.parametrize("design", mostly_slow(["groups", "sample_weight", "both"]))
def test_ends_are_where_the_pvalues_cross_the_level(design):
    y_true, prob, group = problem(0)
    weight = np.random.default_rng(1).exponential(size=len(group))
    chosen = {"groups": group, "sample_weight": weight}
    found = inversion(y_true, prob, **(chosen if design == "both" else {design: chosen[design]}))
    low, high = found.lower_end(0.025), found.upper_end(0.025)
    assert 0 <= low < found.estimate < high < 1
    assert found.below(high) <= 0.025 < found.below(0.97 * high)
    if low > 0:
        assert found.above(low) <= 0.025 < found.above(1.03 * low)
    assert found.below(0.0) > 0.5


@pytest.mark.parametrize("design", ["groups", "sample_weight"])
def test_the_answer_depends_neither_on_the_order_nor_on_the_event(design):
    y_true, prob, group = problem(2)
    rng = np.random.default_rng(3)
    each = {"groups": group} if design == "groups" else {"sample_weight": rng.exponential(size=len(group))}
    (name, values), order = *each.items(), rng.permutation(len(group))
    expected = ct.l2_interval(y_true, prob, **each)
    permuted = ct.l2_interval(y_true[order], prob[order], **{name: values[order]})
    mirrored = ct.l2_interval(1 - y_true, 1 - prob, **each)
    for other in (permuted, mirrored):
        np.testing.assert_allclose([*other, other.estimate], [*expected, expected.estimate], rtol=1e-9)


@pytest.mark.slow(few_draws=True)
def test_classes_may_be_permuted():
    rng = np.random.default_rng(4)
    prob, group = rng.dirichlet(np.ones(3), 240), np.arange(240) // 8
    y_true = (prob.cumsum(axis=1) > rng.random((240, 1))).argmax(axis=1)
    order = np.array([2, 0, 1])
    one = ct.l2_interval(y_true, prob, groups=group, partition=ct.VarianceTree())
    two = ct.l2_interval(np.argsort(order)[y_true], prob[:, order], groups=group, partition=ct.VarianceTree())
    np.testing.assert_allclose([*two], [*one], rtol=1e-9)


@pytest.mark.slow(few_draws=True)
def test_every_observation_twice_with_half_the_weight_changes_nothing():
    """If groups say which observations are copies; the weights differ, so that labels are simulated in both cases."""
    y_true, prob, _ = problem(5)
    weight, ids = np.random.default_rng(6).exponential(size=len(prob)), np.arange(len(prob))
    once = ct.l2_interval(y_true, prob, sample_weight=weight, partition=ct.EqualWidth(4))
    y_two, p_two, w_two, twice = (np.repeat(part, 2) for part in (y_true, prob, weight / 2, ids))
    found = ct.l2_interval(y_two, p_two, sample_weight=w_two, groups=twice, partition=ct.EqualWidth(4))
    assert found.estimate == pytest.approx(once.estimate, rel=1e-12)
    assert found.root_interval.high == pytest.approx(once.root_interval.high, rel=0.2)  # other tests are inverted


def test_few_groups_give_no_interval():
    y_true, prob, _ = problem(7)
    group = np.arange(len(prob)) % 4
    interval = ct.l2_interval(y_true, prob, groups=group)
    assert [*interval] == [0, 1]
    assert "there is no interval" in next(note.text for note in interval.notes if note.code == "C303")
    assert ct.equivalence_test(y_true, prob, 0.9, groups=group).pvalue == 1
    weight = np.where(np.arange(len(prob)) < 4, 1e9, 1.0)
    assert [*ct.l2_interval(y_true, prob, sample_weight=weight)] == [0, 1]


@pytest.mark.slow
def test_below_20_groups_a_certificate_holds_for_groups_of_equal_labels():
    """Groups count as one observation each; 50 groups need no such caution."""
    rng = np.random.default_rng(8)
    pvalues = []
    for n_groups in (10, 50):
        group = np.repeat(np.arange(n_groups), 40)
        prob = rng.uniform(0.1, 0.9, len(group))
        y_true = (rng.random(len(group)) < prob).astype(int)
        pvalues.append(ct.equivalence_test(y_true, prob, 0.15, groups=group).pvalue)
        assert ct.l2_interval(y_true, prob, groups=group).root_interval.high < 0.15
    assert pvalues[0] > 0.2
    assert pvalues[1] < 0.05


def test_observations_of_weight_0_count_nowhere():
    """Cells of two observations with weight showed an error, because 40 others had weight 0."""
    y_true, prob, group = problem(9)
    rng = np.random.default_rng(10)
    weight = np.where(rng.random(len(prob)) < 0.5, 0.0, rng.exponential(size=len(prob)))
    kept = weight > 0
    for each in ({}, {"groups": group}):
        few = {name: values[kept] for name, values in each.items()}
        found = ct.l2_interval(y_true, prob, sample_weight=weight, **each)
        expected = ct.l2_interval(y_true[kept], prob[kept], sample_weight=weight[kept], **few)
        assert [*found] == [*expected]
        assert (found.n_samples, found.n_cells) == (expected.n_samples, expected.n_cells)


def test_labels_that_vary_less_than_predicted_certify_no_small_error():
    """Every second label of predictions of .5 is 1: T is far below 0, and the error is not known to be 0."""
    y_true, prob = np.arange(400) % 2, np.full(400, 0.5)
    spread = np.sqrt(0.25 / 400)
    for each in ({"groups": np.arange(400) // 4}, {"sample_weight": np.random.default_rng(12).exponential(size=400)}):
        interval = ct.l2_interval(y_true, prob, **each)
        assert interval.root_interval.high > 1.5 * spread
        assert ct.equivalence_test(y_true, prob, spread, **each).pvalue > 0.1


@pytest.mark.slow(few_draws=True)
def test_the_search_ends_in_extreme_data():
    """Certain predictions, all of them right or all of them wrong, and an error that no shift reaches."""
    group = np.arange(120) // 6
    for prob in (np.zeros(120), np.ones(120), np.full(120, 1e-4)):
        for label in (0, 1):
            interval = ct.l2_interval(np.full(120, label), prob, groups=group)
            target = abs(label - prob[0])
            assert interval.root_interval.low <= target <= interval.root_interval.high + 1e-9
    found = inversion(np.arange(120) % 2, np.full(120, 0.5), groups=group)
    assert found.below(0.9) == 0  # no probabilities are so far from .5
    assert isinstance(found, SquaredL2Inversion)


def test_the_certificate_and_its_margin_agree():
    y_true, prob, group = problem(11, n_groups=60)
    for margin in (0.15, 0.19, 0.2, 0.21, 0.3):
        result = ct.equivalence_test(y_true, prob, margin, groups=group)
        assert result.rejected == (result.smallest_margin <= margin)
        assert result.method == "monte-carlo"


def ends(y_true, prob, **design):
    low, high = ct.l2_interval(y_true, prob, **design)
    return low, high, ct.equivalence_test(y_true, prob, 0.1, **design).pvalue


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(("predicted", "label"), mostly_slow([(0.001, 0), (0.001, 1), (0.3, 1)]))
def test_rounding_does_not_decide_how_much_equal_residuals_vary(predicted, label):
    """Lower ends were 0, .58 or .93, and upper ends .003 or .012, for weights in other units."""
    rng = np.random.default_rng(11)
    n = 200
    y_true, prob = np.full(n, label), np.full(n, predicted)
    group, weight = np.arange(n) // 5, rng.uniform(0.5, 2, n)
    first = ends(y_true, prob, groups=group, sample_weight=weight)
    for unit in (3.0, 1e-200):
        np.testing.assert_allclose(ends(y_true, prob, groups=group, sample_weight=unit * weight), first, rtol=0.02)


def test_labels_that_do_not_vary_show_nothing_of_their_dependence():
    """All labels of a group may be equal: 60 groups without an event show a rate below .05, not below .01."""
    y_true, group = np.zeros(300, dtype=int), np.arange(300) // 5
    none = 1 - 0.05 ** (1 / 60)  # events that 60 independent groups miss with probability .05
    upper = ct.equivalence_test(y_true, np.full(300, 0.001), 0.1, groups=group).smallest_margin
    assert none < upper < 2 * none
    assert ct.l2_interval(y_true[:50], np.full(50, 0.0625), groups=group[:50]).confidence_interval.low == 0


def certain(seed, n_classes, miss=0.0):
    """60 labels in 12 groups, predicted with certainty, all right."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(n_classes, size=60)
    prob = np.eye(n_classes)[y_true] * (1 - miss) + miss / n_classes
    return y_true, prob, {"groups": rng.integers(0, 12, 60)}, rng.exponential(size=60)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("seed", [1, 13])
def test_several_classes_predicted_with_certainty_show_nothing_of_their_dependence(seed):
    """Whether or not cells hold one class each: the upper limit is that of 12 groups of equal labels."""
    y_true, prob, design, weight = certain(seed, 4)
    sample = make_sample(y_true, prob, **design)
    for n_cells in (1, 2, 8):
        found = l2_distribution(sample, ct.VarianceTree(max_cells=n_cells))[0]
        assert found.any_shock
        assert found.upper_end(0.05) > 0.04
    assert ct.l2_interval(y_true, prob, sample_weight=weight, **design).confidence_interval.high > 0.04


@pytest.mark.parametrize("n_classes", mostly_slow([2, 3]))
@pytest.mark.parametrize("miss", [0.0, 1e-9])
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 8), marks=pytest.mark.slow)], ids=repr)
def test_certain_predictions_with_weights_and_groups_have_an_interval(n_classes, miss, seeds):
    """Residuals of simulated labels are 0, their sums of squares only by rounding, above or below 0."""
    for seed in seeds:
        y_true, prob, design, weight = certain(seed, n_classes, miss)
        ends = ct.l2_interval(y_true, prob, sample_weight=weight, **design).confidence_interval
        assert ends.low == 0
        assert 0.03 < ends.high < 0.3


def test_labels_all_wrong_are_seen_with_groups():
    """The lower end was 0 or .38 for events that always happen and are predicted with .01 or .001."""
    group = np.arange(300) // 5
    assert ct.l2_interval(np.ones(300, dtype=int), np.full(300, 0.01), groups=group).confidence_interval.low > 0.8


@pytest.mark.slow(few_draws=True)
def test_groups_that_may_have_one_outcome_are_drawn_with_the_mean_of_their_predictions():
    """The lower end was above 0 in 31 % of calibrated data sets of 20 patients with 20 scores and one outcome each."""
    rng, group = np.random.default_rng(0), np.repeat(np.arange(20), 20)
    prob = special.expit(-3.5 + 1.5 * (group == 0) + rng.normal(size=400))
    both, tree = np.column_stack([1 - prob, prob]), ct.VarianceTree(max_cells=3, min_leaf=60)
    found = SquaredL2Inversion.of(
        make_sample((group == 0).astype(int), both, groups=group), tree, any_shock=False, rng=np.random.default_rng(1)
    )
    assert found.may_be_copies
    drawn = found._simulate_copies(found.segments.prob)
    mean = np.bincount(group, prob) / 20
    loops = []
    for _ in range(40):
        label = (rng.random(20) < mean)[group].astype(int)
        loops.append(signed.terms_of_groups(make_sample(label, both, groups=group), tree)[0])
    for value in np.quantile(drawn, [0.3, 0.6, 0.9]):
        one, two = np.mean(drawn >= value), np.mean(np.array(loops) >= value - 1e-12)
        assert abs(one - two) < 4 * np.sqrt(one * (1 - one) * (1 / len(drawn) + 1 / len(loops)))
    assert found.above(0.0) >= np.mean(drawn >= found.seen.value - 1e-12)
    mixed = make_sample(np.arange(400) % 2, both, groups=group)
    assert not SquaredL2Inversion.of(mixed, tree, any_shock=False, rng=np.random.default_rng(1)).may_be_copies
