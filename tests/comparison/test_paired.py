"""Differences of miscalibration: the definition, both extremes of its law, and what happens between them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import caltest
from caltest.comparison._u_statistics import Differences, PairTerms, critical_value, resample
from caltest.predictions._sample import induce
from caltest.resampling._schemes import Bootstrap
from tests.reference import naive
from tests.reference.examples import PROBLEMS, draw_labels, thirds

LENSES = [None, caltest.Confidence(), caltest.TopK(2), caltest.ClassWise(0)]
PARTITIONS = [caltest.VarianceTree(min_leaf=5), caltest.EqualWidth(3), caltest.VarianceTree(max_cells=1), thirds]


def two_models(n, n_classes, seed, calibrated=True):
    """Labels and two models, sharp and vague; the first one may be calibrated, the second one never is."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.6), n)
    other = rng.dirichlet(np.ones(n_classes), n)
    return draw_labels(truth, rng), truth if calibrated else temper(truth, 0.7), (truth + other) / 2


def temper(prob, temperature):
    powered = prob ** (1 / temperature)
    return powered / powered.sum(axis=1, keepdims=True)


def as_naive(sample, partition):
    """Residuals and cells in the caller's order, as the twin takes them."""
    position = np.argsort(sample.row)
    residual = (np.eye(sample.n_outcomes)[sample.outcome] - sample.prob)[position]
    return residual[:, 1:] if sample.n_outcomes == 2 else residual, sample.cells(partition).index[position]


def joint(samples, partition, same_rows=True):
    terms = [PairTerms.of(sample, partition) for sample in samples]
    return terms, Differences.of(terms, same_rows=same_rows)


# The definition.


@pytest.mark.parametrize("lens", LENSES, ids=str)
@pytest.mark.parametrize("partition", PARTITIONS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_difference_and_variance_are_those_of_all_pairs_of_rows(problem, partition, lens):
    if lens == caltest.TopK(2) and problem.n_classes < 3:
        lens = caltest.TopK(1)
    outcome, prob = problem.y_true, problem.y_prob.astype(float)
    other = prob[np.random.default_rng(0).permutation(len(prob))]
    result = caltest.paired_test(outcome, prob, other, lens=lens, partition=partition)
    samples = [induce(p, outcome, lens=lens) for p in (prob, other)]
    twins = [as_naive(sample, partition) for sample in samples]
    difference, variance = naive.difference(*twins)[0], naive.paired_variance(samples, twins, partition)
    assert result.difference == pytest.approx(difference, abs=1e-13)
    assert result.standard_error**2 == pytest.approx(variance, rel=1e-9, abs=1e-18)
    for found, p in ((result.estimate_a, prob), (result.estimate_b, other)):
        statistic = caltest.SquaredL2(partition)
        expected = caltest.calibration_error(outcome, p, lens=lens, statistic=statistic)
        assert found == pytest.approx(expected, abs=1e-13)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), n_classes=st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_any_two_models(seed, n, n_classes):
    y_true, a, b = two_models(n, n_classes, seed)
    partition = PARTITIONS[seed % len(PARTITIONS)]
    result = caltest.paired_test(y_true, a, b, partition=partition)
    samples = [induce(p, y_true) for p in (a, b)]
    twins = [as_naive(sample, partition) for sample in samples]
    difference, variance = naive.difference(*twins)[0], naive.paired_variance(samples, twins, partition)
    assert result.difference == pytest.approx(difference, abs=1e-12)
    assert result.standard_error == pytest.approx(np.sqrt(variance), rel=1e-7, abs=1e-12)
    mirrored = caltest.paired_test(y_true, b, a, partition=partition)
    assert (mirrored.low, mirrored.high) == pytest.approx((-result.high, -result.low), abs=1e-12)
    assert mirrored.pvalue == pytest.approx(result.pvalue, rel=1e-9)
    order = np.random.default_rng(seed).permutation(n)
    shuffled = caltest.paired_test(y_true[order], a[order], b[order], partition=partition)
    assert shuffled.pvalue == pytest.approx(result.pvalue, rel=1e-7)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_bootstrap_sample_is_what_all_pairs_say(n_classes):
    y_true, a, b = two_models(50, n_classes, seed=1, calibrated=False)
    partition = caltest.VarianceTree(min_leaf=10)
    samples = [induce(p, y_true) for p in (a, b)]
    terms, differences = joint(samples, partition)
    models = list(zip(samples, terms, strict=True))
    found = resample(models, differences, same_rows=True, n_resamples=20, rng=7)
    change = Bootstrap().draws(20, np.random.default_rng(7)).row_counts(samples[0]) - 1
    twins = [as_naive(sample, partition) for sample in samples]
    assert found[0, 1] == pytest.approx([naive.resampled(*twins, row) for row in change], abs=1e-12)
    assert np.array_equal(found[0, 1], -found[1, 0])


def test_rows_drawn_are_rows():
    """Every bootstrap sample has as many rows as the data."""
    y_true, a, _ = two_models(70, 3, seed=0)
    counts = Bootstrap().draws(9, 0).row_counts(induce(a, y_true))
    assert counts.shape == (9, 70)
    assert set(counts.sum(axis=1)) == {70.0}


def test_the_shrunk_bootstrap_has_the_variance_of_the_difference():
    """Near calibration, where the plain one has three times the variance: (2 + 4) Q / n^2 instead of 2 Q / n^2."""
    y_true, a, _ = two_models(1500, 3, seed=3)
    samples = [induce(p, y_true) for p in (a, a[:, [0, 2, 1]])]
    terms, differences = joint(samples, caltest.VarianceTree(max_cells=64, min_leaf=5))
    n_resamples = 800
    change = Bootstrap().draws(n_resamples, 0).row_counts(samples[0]) - 1
    by_row, by_pair = terms[0].deviations(change)
    alone = Differences.of([terms[0], terms[1]], same_rows=False)
    plain, pairs = alone.by_row[0, 0] + 2 * alone.by_pair[0, 0], alone.by_pair[0, 0]
    for values, variance in ((by_row, plain), (by_pair, pairs)):
        squares = np.square(values)
        error = 4 * squares.std() / np.sqrt(n_resamples)
        assert abs(squares.mean() - variance) < error + 4 / 1500 * variance  # moments of multinomial counts: O(1 / n)
    assert plain > 1.9 * pairs
    assert differences.shrinkage[0, 1] < 1


# What does not differ.


@pytest.mark.parametrize("method", ["hoeffding", "bootstrap"])
@pytest.mark.parametrize("lens", LENSES, ids=str)
def test_a_model_does_not_differ_from_itself(lens, method):
    for n in (1, 2, 200):
        y_true, a, _ = two_models(n, 4, seed=n)
        result = caltest.paired_test(y_true, a, a.copy(), lens=lens, method=method, n_resamples=99, rng=0)
        assert (result.difference, result.statistic, result.pvalue) == (0, 0, 1)
        known = any(
            len(rows) > 1 for rows in PairTerms.of(induce(a, y_true, lens=lens), caltest.VarianceTree()).members
        )
        assert (result.low, result.high) == ((0, 0) if known else (-np.inf, np.inf))


def test_where_no_two_rows_vary_nothing_is_known():
    """All certain and right, or every row in a cell of its own: no interval of width 0."""
    certain = caltest.unpaired_test(np.ones(5, int), np.ones(5), np.ones(8, int), np.ones(8))
    single = caltest.paired_test([0, 1, 0], [0.1, 0.5, 0.9], [0.3, 0.6, 0.7], partition=caltest.EqualWidth(10))
    for result in (certain, single):
        assert (result.pvalue, result.low, result.high) == (1, -np.inf, np.inf)
        assert result.to_dict()["low"] is None


def test_pvalues_are_never_zero():
    assert caltest.paired_test([1, 0] * 500, [0.99, 0.01] * 500, [0.01, 0.99] * 500).pvalue > 0


@pytest.mark.parametrize("method", ["hoeffding", "bootstrap"])
def test_outcomes_that_all_came_as_expected_prove_little(method):
    """100 of 100 right: of a model that says .97 this has probability .05."""
    y_true, options = np.ones(100, int), {"method": method, "n_resamples": 199, "rng": 0}
    assert caltest.paired_test(y_true, np.full(100, 0.97), np.full(100, 0.999), **options).pvalue > 0.05
    right = np.append(np.ones(199, int), 0)
    assert caltest.paired_test(right, np.full(200, 0.5), np.full(200, 0.99), **options).pvalue < 0.01


def sharp_pair(kind, n, rng):
    """Two models that are equally far off, with hardly any wrong outcome."""
    if kind == "constant":
        return rng.random(n) < 1 - 2 / n, np.full(n, 1 - 4 / n), np.ones(n)
    truth = rng.beta(20, 0.2, n)
    off = 0.6 * np.minimum(truth, 1 - truth)
    return rng.random(n) < truth, truth - off, truth + off


@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize("kind", ["constant", "varying"])
def test_level_of_sharp_models(kind, n):
    """Without a bound on the variance .14 to .17 were rejected."""
    rng = np.random.default_rng(11)
    pvalues = np.array([caltest.paired_test(*sharp_pair(kind, n, rng)).pvalue for _ in range(150)])
    assert (pvalues <= 0.05).sum() <= binom.isf(0.0005, 150, 0.05)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_rounding_is_no_difference(n_classes):
    for seed in range(10):
        y_true, a, _ = two_models(300, n_classes, seed)
        almost = a * (1 + 1e-15 * np.random.default_rng(seed).normal(size=a.shape))
        result = caltest.paired_test(y_true, a, almost.clip(0, 1), partition=caltest.VarianceTree(max_cells=1))
        assert (result.pvalue, result.standard_error) == (1, 0)


def test_small_differences_are_differences():
    """Models that differ by a millionth everywhere: the variance is what cancels least."""
    y_true, a, _ = two_models(400, 2, seed=6)
    b = np.column_stack([a[:, 0] + 1e-4 * a[:, 0] * a[:, 1], a[:, 1] - 1e-4 * a[:, 0] * a[:, 1]])
    partition = caltest.VarianceTree(max_cells=4)
    result = caltest.paired_test(y_true, a, b, partition=partition)
    twins = [as_naive(induce(p, y_true), partition) for p in (a, b)]
    difference, variance = naive.difference(*twins)
    assert result.difference == pytest.approx(difference, rel=1e-6)
    assert result.standard_error == pytest.approx(np.sqrt(variance), rel=1e-6)


# P-values and intervals.


@given(
    values=st.lists(st.floats(0, 10), min_size=1, max_size=60),
    observed=st.floats(0, 12),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
)
def test_the_critical_value_is_where_the_pvalue_turns(values, observed, level):
    null = np.array(values)
    pvalue, critical = critical_value(null, observed, level)
    assert pvalue == pytest.approx(naive.pvalue(observed, values))
    if abs(observed - critical) > 1e-9:
        assert (observed > critical) == (pvalue <= (1 - level) * (1 + 1e-9))


@pytest.mark.parametrize("method", ["hoeffding", "bootstrap"])
@pytest.mark.parametrize("seed", range(6))
def test_an_interval_holds_0_where_the_pvalue_does_not_reject(method, seed):
    y_true, a, b = two_models(300, 3, seed, calibrated=seed % 2 == 0)
    b = b if seed > 2 else temper(a, 0.9)
    for level in (0.5, 0.9, 0.99):
        result = caltest.paired_test(y_true, a, b, confidence_level=level, method=method, n_resamples=199, rng=seed)
        assert (result.low > 0 or result.high < 0) == (result.pvalue <= 1 - level)
        assert result.low < result.difference < result.high
        assert tuple(result) == (result.statistic, result.pvalue)


def test_too_few_draws_make_no_interval():
    y_true, a, b = two_models(100, 3, seed=1)
    result = caltest.paired_test(y_true, a, b, method="bootstrap", n_resamples=9, rng=0)
    assert result.high == np.inf
    assert result.to_dict()["high"] is None
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_bootstrap_does_not_depend_on_workers(monkeypatch):
    y_true, a, b = two_models(300, 3, seed=2)
    common = {"method": "bootstrap", "n_resamples": 99, "rng": 3}
    results = [caltest.paired_test(y_true, a, b, workers=workers, **common) for workers in (1, 2, 5)]
    monkeypatch.setattr("caltest.comparison._u_statistics._BLOCK_VALUES", 1000)
    results.append(caltest.paired_test(y_true, a, b, **common))
    assert len({(result.pvalue, round(result.high, 15)) for result in results}) == 1


def test_unpaired_variance_is_the_sum_over_data_sets():
    y_a, a, _ = two_models(250, 3, seed=1, calibrated=False)
    a = temper(a, 0.5)
    y_b, _, b = two_models(400, 3, seed=2)
    b = temper(b, 0.3)
    partition = caltest.VarianceTree(min_leaf=20)
    result = caltest.unpaired_test(y_a, a, y_b, b, partition=partition)
    nothing = np.zeros((250, 3)), np.zeros(250, dtype=int)
    first = naive.difference(as_naive(induce(a, y_a), partition), nothing)
    nothing = np.zeros((400, 3)), np.zeros(400, dtype=int)
    second = naive.difference(as_naive(induce(b, y_b), partition), nothing)
    assert result.difference == pytest.approx(first[0] - second[0], abs=1e-13)
    assert result.standard_error**2 == pytest.approx(first[1] + second[1], rel=1e-9)  # no maximum is 0 here
    assert result.n_samples == (250, 400)
    drawn = caltest.unpaired_test(y_a, a, y_b, b, partition=partition, method="bootstrap", n_resamples=199, rng=0)
    assert drawn.standard_error == result.standard_error
    assert drawn.pvalue > 1 / 200 or result.pvalue < 0.05


def test_reports():
    y_true, a, _ = two_models(300, 3, seed=1)
    result = caltest.paired_test(y_true, a, temper(a, 0.3), lens=caltest.ClassWise(1), classes=[0, 1, 2])
    text = str(result)
    for part in ("model A minus model B", "ClassWise(k=1) 1", "300 rows, the same", "Target: sum_b", "z", "Hoeffding"):
        assert part in text
    assert "Model A is better calibrated" in text
    assert "&" not in result._repr_html_().replace("&#x27;", "")
    unpaired = str(caltest.unpaired_test(y_true, a, y_true[:200], a[:200], method="bootstrap", n_resamples=99, rng=0))
    assert "300 rows of model A, 200 others of model B" in unpaired
    assert "99 bootstrap samples" in unpaired
    assert "No evidence that one model is better calibrated" in unpaired


# Bad input.

PROB = np.array([[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"prob_b": PROB[:2]},
            r"same rows and classes, got .*: prob_a \(3, 2\), prob_b \(2, 2\)",
        ),
        ({"prob_b": np.full((3, 4), 0.25)}, "same rows and classes"),
        ({"prob_b": PROB * 2}, r"prob_b: `y_prob` must lie in \[0, 1\], got 1.6"),
        ({"y_true": [0, 1]}, "`y_true` and the predictions must have the same length, got 2 and 3"),
        ({"y_true": [0, 1, 2]}, "`y_true` must hold class indices 0 to 1"),
        ({"method": "wald"}, "`method` must be one of 'hoeffding', 'bootstrap', got 'wald'"),
        ({"confidence_level": 95}, "`confidence_level` must lie strictly between 0 and 1, got 95"),
        ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        ({"partition": 15}, "partition"),
        ({"method": "bootstrap", "rng": "a"}, "`rng` must be"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"y_true": [0, 1, 1], "prob_a": PROB, "prob_b": PROB, **change}
    with pytest.raises(ValueError, match=message):
        caltest.paired_test(arguments.pop("y_true"), arguments.pop("prob_a"), arguments.pop("prob_b"), **arguments)


def test_unpaired_models_share_their_classes():
    with pytest.raises(ValueError, match="both models must predict the same classes, got 2 and 3"):
        caltest.unpaired_test([0, 1, 1], PROB, [0, 1], np.full((2, 3), 1 / 3))


# Level and power.

FALSE_ALARM = 1e-3
KINDS = ("both calibrated", "equally over-confident", "equally shifted")
SIZES = {200: (100, 600), 1000: (40, 200), 10_000: (5, 40)}


def refine(prob, rng):
    """Predictions of a model that knows more: Dirichlet variables whose means are the given ones."""
    drawn = rng.standard_gamma(10 * prob)
    return drawn / drawn.sum(axis=1, keepdims=True)


def simulate(kind, n, n_classes, rng):
    """Labels and two models that are equally miscalibrated, or a tempered model and the truth."""
    truth = rng.dirichlet(np.full(n_classes, 1.0 if n_classes == 2 else 0.5), n)
    if kind == "both calibrated":  # what happens knows more than the first model, which knows more than the second
        finer = refine(truth, rng)
        return draw_labels(refine(finer, rng), rng), finer, truth
    y_true = draw_labels(truth, rng)
    if kind == "equally over-confident":  # each on its own half of the rows
        half = rng.random((n, 1)) < 0.5
        sharp = temper(truth, 0.5)
        return y_true, np.where(half, sharp, truth), np.where(half, truth, sharp)
    if kind == "equally shifted":  # in opposite directions
        odds = np.exp(0.5 * (np.arange(n_classes) == 0)), np.exp(0.5 * (np.arange(n_classes) == n_classes - 1))
        a, b = truth * odds[0], truth * odds[1]
        return y_true, a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
    return y_true, temper(truth, 1 / 1.3), truth


def rejections(kind, n, n_classes, n_data_sets, *, paired=True, method="hoeffding"):
    rng = np.random.default_rng([n, n_classes, len(kind), paired])
    rejected = 0
    for i in range(n_data_sets):
        y_true, a, b = simulate(kind, n, n_classes, rng)
        if paired:
            result = caltest.paired_test(y_true, a, b, method=method, n_resamples=199, rng=i)
        else:
            y_other, _, b = simulate(kind, n, n_classes, rng)
            result = caltest.unpaired_test(y_true, a, y_other, b, method=method, n_resamples=199, rng=i)
        rejected += result.pvalue <= 0.05
    return rejected


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("n", SIZES)
def test_level(n, n_classes, many):
    n_data_sets = SIZES[n][many]
    found = {kind: rejections(kind, n, n_classes, n_data_sets) for kind in KINDS}
    limit = binom.ppf(1 - FALSE_ALARM / len(KINDS) / len(SIZES) / 2, n_data_sets, 0.05)
    assert {kind: k for kind, k in found.items() if k > limit} == {}


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [200, 1000])
def test_level_of_the_bootstrap_and_of_unpaired_models(n, many):
    n_data_sets = SIZES[n][many] // 4
    ways = [{"method": "bootstrap"}, {"paired": False}, {"paired": False, "method": "bootstrap"}]
    found = {(kind, str(way)): rejections(kind, n, 2, n_data_sets, **way) for kind in KINDS for way in ways}
    limit = binom.ppf(1 - FALSE_ALARM / len(found) / 2, n_data_sets, 0.05)
    assert {case: k for case, k in found.items() if k > limit} == {}


@pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "power"), [(200, 0.10), (1000, 0.37), (10_000, 1.0)])
def test_power_against_a_perfect_model(n, power, many):
    """Over-confidence by temperature 1.3, two outcomes; the powers were stated with a standard error of 0.01."""
    n_data_sets = SIZES[n][many]
    share = rejections("one over-confident", n, 2, n_data_sets) / n_data_sets
    assert abs(share - power) <= 4 * np.hypot(0.01, np.sqrt(power * (1 - power) / n_data_sets))
