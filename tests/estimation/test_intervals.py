"""Intervals: the law behind them against loops, their coverage, and the bootstrap against SciPy's."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._squared_l2_distribution import SquaredL2Law, noncentral_chi2_cdf
from tests.reference import naive

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=40)
ENDS = {"rtol": 1e-9, "atol": 1e-15}


def draw(prob, rng):
    """One class for each row of probabilities."""
    return (rng.random(len(prob))[:, None] >= prob.cumsum(axis=1)[:, :-1]).sum(axis=1)


def problem(n_classes, n=60, seed=0):
    """Labels that follow other probabilities than the predicted ones."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return draw(0.7 * prob + 0.3 * np.roll(prob, 1, axis=1), rng), prob


# --- the law


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("partition", [ct.VarianceTree(min_leaf=5), ct.VarianceTree(min_leaf=2), ct.VarianceTree()])
def test_the_law_equals_its_loops(n_classes, partition):
    y, prob = problem(n_classes)
    law = SquaredL2Law.of(make_sample(y, prob), partition)
    estimate, noise, unit, spread = naive.l2_law(naive.plain(prob), y.tolist(), naive.cells(partition, prob))
    np.testing.assert_allclose([law.estimate, law.noise, law.unit], [estimate, noise, unit], rtol=1e-11)
    assert law.spread == (pytest.approx(spread, rel=1e-11) if n_classes > 2 else None)
    unbiased = ct.calibration_error(y, prob, statistic=ct.SquaredL2(partition))
    assert law.estimate == unbiased


def test_sankaran_is_close_to_the_exact_law():
    """At few degrees of freedom, those of few cells, its low tail is too heavy: upper ends err to the safe side."""
    levels = np.array([0.005, 0.025, 0.05, 0.16, 0.5, 0.84, 0.95, 0.975, 0.995])
    for nu, heavier in ((1, 0.065), (2, 0.016), (4, 0.004), (8, 0.0012), (100, 0.0002), (1e4, 1e-6)):
        for noncentrality in (0.1, 1, 5, 20, 100, 1e4):
            x = stats.ncx2.ppf(levels, nu, noncentrality)
            error = [noncentral_chi2_cdf(value, nu, noncentrality) for value in x] - levels
            assert -min(heavier, 0.02) < error.min()
            assert error.max() < heavier
            assert np.abs(error[levels >= 0.95]).max() < min(heavier, 0.004)


def test_the_law_has_the_moments_that_were_asked_for():
    y, prob = problem(2, 400)
    law = SquaredL2Law.of(make_sample(y, prob), ct.VarianceTree())
    nu, target = law.degrees_of_freedom, 0.03
    chi2 = stats.ncx2(nu, target / law.unit)
    assert law.unit * (chi2.mean() - nu) == pytest.approx(target)
    assert law.unit**2 * chi2.var() == pytest.approx(law.noise**2 + 4 * law.unit * target)


# --- the interval


def test_ends_are_where_the_law_says():
    y, prob = problem(2, 300)
    interval = ct.l2_interval(y, prob, confidence_level=0.9)
    law = SquaredL2Law.of(make_sample(y, prob), ct.VarianceTree())
    assert 0 < interval.low < interval.estimate < interval.high < 1
    assert law.above(interval.low) == pytest.approx(0.05)
    assert law.below(interval.high) == pytest.approx(0.05)
    assert (interval.root_low, interval.root_high) == (interval.low**0.5, interval.high**0.5)
    assert tuple(interval) == (interval.low, interval.high)


def test_one_sided_bounds_are_the_ends_of_a_wider_interval():
    y, prob = problem(2, 300)
    both = ct.l2_interval(y, prob, confidence_level=0.9)
    less = ct.l2_interval(y, prob, alternative="less")
    greater = ct.l2_interval(y, prob, alternative="greater")
    np.testing.assert_allclose([less.low, less.high], [0, both.high], **ENDS)
    np.testing.assert_allclose([greater.low, greater.high], [both.low, 1], **ENDS)


@PROFILE
@given(st.integers(0, 10**6), st.integers(1, 80), st.integers(2, 4), st.booleans())
def test_any_data_make_an_interval(seed, n, n_classes, certain):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.2), n)
    if certain:
        prob = np.eye(n_classes)[prob.argmax(axis=1)]
    y = rng.integers(n_classes, size=n) if seed % 2 else prob.argmax(axis=1)
    largest = 1.0 if n_classes == 2 else 2.0
    wide, narrow = ct.l2_interval(y, prob, confidence_level=0.99), ct.l2_interval(y, prob, confidence_level=0.7)
    assert 0 <= wide.low <= narrow.low <= narrow.high <= wide.high <= largest
    assert np.isfinite([wide.estimate, wide.root, wide.root_high]).all()
    order = rng.permutation(n)
    again = ct.l2_interval(y[order], prob[order], confidence_level=0.7)
    np.testing.assert_allclose(tuple(again), tuple(narrow), rtol=1e-6, atol=1e-12)
    assert "Target" in str(wide)


@PROFILE
@given(st.integers(0, 10**6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_probabilities_are_monotone_in_the_target(seed, a, b):
    y, prob = problem(2 + seed % 2, 40, seed)
    law = SquaredL2Law.of(make_sample(y, prob), ct.VarianceTree(min_leaf=8))
    low, high = sorted((a, b))
    assert law.below(low) >= law.below(high) - 1e-12
    assert law.above(low) <= law.above(high) + 1e-12


def test_certain_predictions_that_proved_right_leave_what_they_could_hide():
    """m rows without a surprise: the largest mu with (1 - mu)^m = alpha / 2, squared."""
    for n in (3, 300):
        interval = ct.l2_interval(np.ones(n, int), np.ones(n), partition=ct.EqualWidth(1))
        assert interval.low == 0
        assert interval.high == pytest.approx((1 - 0.025 ** (1 / n)) ** 2)
        assert any("no two rows" in note for note in interval.notes)
    surprised = ct.l2_interval(np.arange(300) > 0, np.ones(300), partition=ct.EqualWidth(1))
    assert stats.binom.cdf(1, 300, surprised.root_high) == pytest.approx(0.025)


def test_certain_predictions_that_were_all_wrong():
    interval = ct.l2_interval(np.zeros(200, int), np.ones(200))
    assert interval.estimate == pytest.approx(1)
    assert 0.9 < interval.low < 1
    assert interval.high == 1


def test_a_single_row_says_nothing():
    interval = ct.l2_interval([1], [0.5])
    assert tuple(interval) == (0, 1)
    assert any("single row" in note for note in interval.notes)


def test_an_estimate_far_below_zero_certifies_no_more_than_a_low_one():
    """Outcomes that alternate scatter less than coins."""
    interval = ct.l2_interval([0, 1] * 100, np.full(200, 0.5))
    assert interval.estimate < 0
    assert interval.high > 0.001
    assert any("scatter less" in note for note in interval.notes)


def test_notes_say_where_nothing_is_promised():
    def said(n_classes, n, **options):
        return " ".join(ct.l2_interval(*problem(n_classes, n), **options).notes)

    assert not said(2, 300)
    assert "more than two outcomes" in said(3, 300)
    assert "fewer than 200 rows" in said(2, 100)
    sparse = ct.l2_interval(*problem(2, 300), partition=ct.VarianceTree(min_leaf=3))
    assert sparse.sparse_share == 1
    assert "100% of the rows lie in cells of fewer than 10 rows" in sparse.notes[0]


def test_lens_region_and_classes():
    y, prob = problem(3, 500)
    named = ct.l2_interval(np.array(["a", "b", "c"])[y], prob, classes=["a", "b", "c"], lens=ct.ClassWise(1))
    np.testing.assert_allclose(tuple(named), tuple(ct.l2_interval(y == 1, prob[:, 1])), **ENDS)
    assert named.lens == "ClassWise(k=1) b"
    inside = prob[:, 1] > 0.3
    part = ct.l2_interval(y == 1, prob[:, 1], region=lambda p: p[:, 1] > 0.3)
    np.testing.assert_allclose(tuple(part), tuple(ct.l2_interval((y == 1)[inside], prob[inside, 1])), **ENDS)
    assert part.n_samples == inside.sum()


def test_the_report():
    interval = ct.l2_interval(*ct.datasets.load_cifar10_vgg16(), lens=ct.Confidence())
    text = str(interval)
    for words in (".95 confidence", "Confidence()", "10000 rows, 2 outcomes, 16 cells of VarianceTree()", "Target"):
        assert words in text
    assert "upper end only" in str(ct.l2_interval(*problem(2), alternative="less"))
    assert interval._repr_html_().startswith("<pre>")
    found = interval.to_dict()
    assert (found["low"], found["root_high"], found["n_cells"]) == (interval.low, interval.root_high, 16)


def test_bad_arguments():
    y, prob = problem(2)
    with pytest.raises(ValueError, match="`confidence_level` must lie strictly between 0 and 1, got 95"):
        ct.l2_interval(y, prob, confidence_level=95)
    with pytest.raises(ValueError, match="`alternative` must be one of 'two-sided', 'less', 'greater', got 'both'"):
        ct.l2_interval(y, prob, alternative="both")
    with pytest.raises(ValueError, match="`partition` must be"):
        ct.l2_interval(y, prob, partition=3)


# --- the target


def test_target_by_hand():
    prob, truth = [0.1, 0.2, 0.8, 0.9, 0.95], [0.2, 0.4, 0.7, 0.7, 1.0]
    target = ct.squared_l2_target(prob, truth, partition=ct.EqualWidth(2))
    assert target == pytest.approx(2 / 5 * 0.15**2 + 3 / 5 * (0.25 / 3) ** 2)
    assert ct.squared_l2_target(prob, truth, partition=lambda p: np.arange(5)) == 0  # cells of one row


def test_target_through_a_lens():
    """The truth of an induced outcome is that of the classes that make it."""
    rng = np.random.default_rng(0)
    prob, truth = rng.dirichlet(np.ones(4), 100), rng.dirichlet(np.ones(4), 100)
    top = prob.argmax(axis=1)
    pair = prob.max(axis=1), truth[np.arange(100), top]
    for options in ({}, {"partition": ct.EqualWidth(7)}, {"region": lambda p: p[:, 1] > 0.5}):
        through = ct.squared_l2_target(prob, truth, lens=ct.Confidence(), **options)
        assert through == pytest.approx(ct.squared_l2_target(*pair, **options), rel=1e-12)
    groups = ct.Groups([[0, 2], [1], [3]])
    merged = [np.column_stack([p[:, 0] + p[:, 2], p[:, 1], p[:, 3]]) for p in (prob, truth)]
    assert ct.squared_l2_target(prob, truth, lens=groups) == pytest.approx(ct.squared_l2_target(*merged), rel=1e-12)


def test_the_estimate_is_unbiased_for_the_target_where_deviations_are_constant():
    rng = np.random.default_rng(1)
    prob = rng.uniform(0.1, 0.8, 50)
    cut = ct.EqualWidth(4)
    values = [ct.l2_interval(rng.random(50) < prob + 0.1, prob, partition=cut).estimate for _ in range(400)]
    target = ct.squared_l2_target(prob, prob + 0.1, partition=cut)
    assert abs(np.mean(values) - target) < 4 * np.std(values) / np.sqrt(400)


def test_targets_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"`class_prob` must have the shape of `y_prob`, \(2, 2\), got \(3, 2\)"):
        ct.squared_l2_target([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="`class_prob` must lie in"):
        ct.squared_l2_target([0.1, 0.2], [0.1, 1.2])


# --- coverage

SHAPES = {
    "uniform shift": lambda p, s: p + s,
    "temperature": lambda p, s: 1 / (1 + ((1 - p) / p) ** (1 / (1 + 5 * s))),
    "one cell": lambda p, s: p + s * ((p > np.quantile(p, 0.5)) & (p < np.quantile(p, 0.7))),
    "alternating signs": lambda p, s: p + s * np.where(np.argsort(np.argsort(p)) * 8 // len(p) % 2, 1, -1),
}
PREDICTIONS = {"uniform": (1.0, 1.0), "sharp": (0.2, 0.2)}


def misses(shape, prediction, n, strength, repeats, rng):
    """How many of 95 % intervals lie below and above their target."""
    below = above = 0
    for _ in range(repeats):
        prob = np.clip(rng.beta(*PREDICTIONS[prediction], n), 1e-9, 1 - 1e-9)
        truth = np.clip(SHAPES[shape](prob, strength), 0, 1)
        low, high = ct.l2_interval(rng.random(n) < truth, prob)
        target = ct.squared_l2_target(prob, truth)
        below += high < target
        above += low > target
    return below, above


def assert_promise(below, above, repeats, n):
    """Two points below nominal, three at 200 rows; each side at most two above 2.5 %; and four standard errors."""
    worst, side = 0.07 if n >= 1000 else 0.08, 0.045
    assert below + above <= repeats * worst + 4 * np.sqrt(repeats * worst * (1 - worst))
    assert max(below, above) <= repeats * side + 4 * np.sqrt(repeats * side * (1 - side))


@pytest.mark.parametrize("strength", [0.0, 0.05, 0.2])
def test_coverage(strength):
    rng = np.random.default_rng(7)
    found = [misses(shape, "uniform", 300, strength, 100, rng) for shape in SHAPES]
    assert_promise(*np.sum(found, axis=0), 400, 300)


@pytest.mark.slow
@pytest.mark.parametrize("prediction", PREDICTIONS)
@pytest.mark.parametrize(("n", "repeats"), [(200, 300), (1000, 200), (10_000, 60)])
def test_coverage_over_the_range(prediction, n, repeats):
    rng = np.random.default_rng(n)
    for shape in SHAPES:
        for strength in (0.0, 0.05, 0.2):
            assert_promise(*misses(shape, prediction, n, strength, repeats, rng), repeats, n)


def test_a_plug_in_bootstrap_misses_a_calibrated_model_and_this_does_not():
    rng = np.random.default_rng(3)
    prob = rng.random(300)
    y = rng.random(300) < prob
    plug_in = ct.bootstrap_interval(y, prob, n_resamples=99, method="percentile", rng=0)
    assert plug_in.low > 0
    assert ct.l2_interval(y, prob).low == 0


# --- the bootstrap

CUT = ct.ECE(ct.EqualWidth(5))


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
@pytest.mark.parametrize("statistic", [CUT, ct.ECE(), ct.SquaredL2()])
def test_ends_are_those_of_scipy_for_the_same_distribution(method, statistic):
    y, prob = problem(2, 100)
    ours = ct.bootstrap_interval(y, prob, statistic=statistic, method=method, n_resamples=199, rng=0)
    theirs = stats.bootstrap(
        (prob[:, 1], y),
        lambda p, y: ct.calibration_error(y, p, statistic=statistic),
        paired=True, vectorized=False, method=method, n_resamples=0, bootstrap_result=SimpleNamespace(
            bootstrap_distribution=ours.bootstrap_distribution
        ),
    )  # fmt: skip
    np.testing.assert_allclose(tuple(ours), theirs.confidence_interval, rtol=1e-10)
    assert ours.standard_error == pytest.approx(theirs.standard_error)
    assert ours.estimate == ct.calibration_error(y, prob, statistic=statistic)


def test_the_distribution_is_that_of_scipy():
    y, prob = problem(2, 100)
    ours = ct.bootstrap_interval(y, prob, statistic=CUT, method="percentile", n_resamples=1999, rng=0)
    theirs = stats.bootstrap(
        (prob[:, 1], y),
        lambda p, y: ct.calibration_error(y, p, statistic=CUT),
        paired=True, vectorized=False, method="percentile", n_resamples=1999, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert stats.ks_2samp(ours.bootstrap_distribution, theirs.bootstrap_distribution).pvalue > 6e-5  # 4 sd


def test_groups_of_rows_give_nearly_the_acceleration_of_single_rows():
    """With 200 groups the acceleration has a standard error of sqrt(15) / 1200."""
    y, prob = problem(2, 1000)
    statistic = ct.ECE(ct.EqualWidth(3))
    sample = make_sample(y, prob)
    single = [
        statistic.evaluate(kept, kept.outcome)
        for kept in (sample.take(np.delete(np.arange(1000), i)) for i in range(1000))
    ]
    u = np.mean(single) - single
    grouped = ct.bootstrap_interval(y, prob, statistic=statistic, n_resamples=9, rng=0).acceleration
    assert abs(grouped - (u**3).sum() / (6 * (u**2).sum() ** 1.5)) < 4 * np.sqrt(15) / 1200


def test_a_seed_and_any_number_of_workers_give_the_same_answer():
    y, prob = problem(3, 80)
    one = ct.bootstrap_interval(y, prob, n_resamples=99, rng=5)
    two = ct.bootstrap_interval(y, prob, n_resamples=99, rng=np.random.default_rng(5), workers=2)
    np.testing.assert_array_equal(one.bootstrap_distribution, two.bootstrap_distribution)
    assert tuple(one) == tuple(two)
    assert one.n_resamples == 99


def test_every_statistic_has_a_bootstrap_interval(any_simple_statistic):
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, 60)
    y = rng.random(60) < prob
    found = ct.bootstrap_interval(y, prob, statistic=any_simple_statistic, n_resamples=19, method="percentile", rng=0)
    assert found.low <= found.high


def test_nothing_varies_or_the_estimate_lies_outside():
    constant = ct.bootstrap_interval([1], [0.5], n_resamples=9, rng=0)
    assert (constant.low, constant.high, constant.acceleration) == (0.5, 0.5, 0)
    assert "same value" in constant.notes[0]
    rng = np.random.default_rng(2)
    prob = rng.random(2000)
    many = ct.ECE(ct.EqualWidth(200))
    far = ct.bootstrap_interval(rng.random(2000) < prob, prob, statistic=many, n_resamples=99, rng=0)
    assert far.estimate < far.bootstrap_distribution.min()
    assert "lies below 100% of its bootstrap distribution" in far.notes[0]
    assert np.isfinite([far.low, far.high]).all()


def test_it_says_that_it_is_no_interval_for_the_miscalibration():
    found = ct.bootstrap_interval(*problem(2), n_resamples=19, rng=0)
    text = str(found)
    assert "no confidence interval for the true miscalibration" in " ".join(text.split())
    assert "BCa, 19 bootstrap samples" in text
    assert found.to_dict()["n_resamples"] == 19
    assert found._repr_html_().startswith("<pre>")


def test_bad_arguments_of_the_bootstrap():
    y, prob = problem(2)
    with pytest.raises(ValueError, match="`method` must be one of 'BCa', 'percentile', 'basic', got 'bca'"):
        ct.bootstrap_interval(y, prob, method="bca")
    with pytest.raises(ValueError, match="`n_resamples` must be an integer >= 1, got 0"):
        ct.bootstrap_interval(y, prob, n_resamples=0)
    with pytest.raises(ValueError, match="`Omnibus` combines tests and estimates no error"):
        ct.bootstrap_interval(y, prob, statistic=ct.Omnibus())
    with pytest.raises(ValueError, match="`statistic` must be a Statistic"):
        ct.bootstrap_interval(y, prob, statistic="ece")


# --- few surprises


@pytest.mark.parametrize(("n", "p", "events"), [(200, 0.02, 5), (1000, 0.004, 5), (5000, 0.0008, 5), (300, 0.01, 3)])
def test_the_upper_end_is_never_zero(n, p, events):
    """Events exactly as many as stated, in one cell: the law of less than one degree of freedom."""
    outcome = np.arange(n) < events
    interval = ct.l2_interval(outcome, np.full(n, p))
    assert 0 == interval.low < interval.high
    assert not ct.equivalence_test(outcome, np.full(n, p), interval.root_high / 2).shown


@pytest.mark.parametrize(("n", "p"), [(1000, 0.9999), (200, 0.999), (500, 0.99), (200, 0.97)])
def test_the_lower_end_of_a_calibrated_constant(n, p):
    """By enumeration of all counts: the probability that the interval begins above the truth, 0."""
    count = np.arange(n + 1)
    weight = stats.binom.pmf(count, n, p)
    likely = count[weight > 1e-6]
    low = {k: ct.l2_interval(np.arange(n) < k, np.full(n, p)).low for k in likely}
    assert sum(weight[k] for k in likely if low[k] > 0) < 0.05
    estimate = {k: ct.l2_interval(np.arange(n) < k, np.full(n, p)).estimate for k in likely}
    assert all(low[k] <= max(estimate[k], 0) for k in likely)


def test_impossible_margins_are_refused():
    with pytest.raises(ValueError, match="`margin` must be below the greatest miscalibration, 1, got 5; is it in"):
        ct.equivalence_test([0, 1], [0.2, 0.7], 5)


def test_a_tree_that_equal_predictions_stop_is_said():
    """More than half of the rows share the smallest prediction: nothing lies below the median, and errors cancel."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(2000) < 0.6, 0.02, np.round(rng.uniform(0.1, 0.9, 2000), 3))
    outcome = rng.random(2000) < p
    said = [note for note in ct.l2_interval(outcome, p).notes if "only 1 cell(s)" in note]
    assert len(said) == 1
    for other in (ct.EqualWidth(10), ct.VarianceTree(min_split=100)):
        assert not [note for note in ct.l2_interval(outcome, p, partition=other).notes if "cell(s)" in note]
    assert not [note for note in ct.l2_interval(outcome, rng.random(2000)).notes if "cell(s)" in note]


def test_few_expected_surprises_are_said():
    note = "few surprises were to be expected"
    assert any(note in words for words in ct.l2_interval(np.ones(300, int), np.full(300, 0.999)).notes)
    assert not any(note in words for words in ct.l2_interval(np.arange(300) % 2, np.full(300, 0.5)).notes)


def test_an_infinite_estimate_has_no_bootstrap_interval():
    """A label had probability 0: NaN instead of warnings, and JSON without infinities."""
    found = ct.bootstrap_interval(
        [1, 1, 1, 0], [0.0, 0.5, 0.5, 0.5], statistic=ct.TemperatureScore(), n_resamples=19, rng=0
    )
    assert found.estimate == np.inf
    assert np.isnan([*found, found.standard_error]).all()
    assert "no bootstrap interval" in found.notes[0]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["estimate"] is plain["low"] is plain["standard_error"] is None
