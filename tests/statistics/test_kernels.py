"""Kernel errors: reference values, by hand, sums that must not depend on how they are cut, tests and their level."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import binom, norm

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics import _similarity as kernels
from caltest.statistics._similarity import Similarity, median_distance
from tests.reference import naive
from tests.reference.examples import draw_labels, inner_product_kernel

TOLERANCE = 1e-9
STANDARD_ERRORS = 4
FALSE_ALARM = 1e-3
"""Probability that the limits of a simulation are crossed by chance, over all its cases."""

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=50)

CONFIDENCE = caltest.Confidence()
KERNELS = [caltest.total_variation_kernel, caltest.euclidean_kernel, caltest.gaussian_kernel]
ESTIMATORS = {"SKCEb": "biased", "SKCEuq": "unbiased", "SKCEul": "block"}

# The bundled VGG-16, by plain loops of SciPy's cdist over blocks of rows.
BUNDLED = {"SKCEb": 0.000173594485564348, "SKCEuq": 0.000163066203563326, "SKCEul": 0.000446115156942541}
BUNDLED_MEDIAN = 0.9998982663472873
BUNDLED_MMCE = 0.0353145242188551

# Copied from goldens.json: one column for each network.
NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]
ERRORS = {
    "SKCEb": (0.000237775236127, 0.000142002559372, 2.75929393404e-05, 0.000427027095709),
    "SKCEuq": (0.000226660834834, 0.000130142142724, 1.68669384449e-05, 0.000409013041292),
    "SKCEul": (0.000126733373035, -0.000343002146609, -0.000405124990826, 0.000408220685865),
}
BOUNDS = {
    "SKCEb": (0.995926218168, 1.0, 1.0, 0.899103196672),
    "SKCEuq": (0.999967891057, 0.999989414445, 0.999999822192, 0.999895448173),
    "SKCEul": (0.999989961708, 0.999926471158, 0.99989742635, 0.999895852843),
}
BLOCK_Z = (0.353006642667, -0.991313189748, -1.28436234322, 0.638538911866)
BLOCK_PVALUES = (0.362041730301, 0.839233662776, 0.900492398763, 0.261561466269)
MMCES = (0.0445682064862, 0.03567477296, 0.00743360402192, 0.056085002469)
# 1,000 bootstrap values of n / (n - 1) SKCEuq - SKCEb.
BOOTSTRAP = {
    "statistic": (-1.10917329422e-05, -1.18474011321e-05, -1.0724314033e-05, -1.79731490224e-05),
    "null_mean": (-0.000237688597628, -0.000141978873262, -2.7761124858e-05, -0.000427057358192),
    "null_sd": (4.00848119629e-06, 3.92479360001e-06, 3.17747726676e-06, 5.81317866266e-06),
    "null_q95": (-0.000229889415057, -0.000135165261334, -2.17838134083e-05, -0.000416978736475),
}


@pytest.fixture
def bundled():
    return caltest.datasets.load_cifar10_vgg16()


def load(folder, network):
    with np.load(folder / f"{network}.npz") as data:
        return data["labels"], data["probs"]


def dirichlet(n, n_classes, seed=0, concentration=0.5):
    """Predictions and labels that follow them."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), size=n)
    return draw_labels(prob, rng), prob


# Reference values.


@pytest.mark.parametrize("name", ESTIMATORS)
def test_errors_of_the_bundled_network(bundled, name):
    value = caltest.calibration_error(*bundled, statistic=caltest.SKCE(estimator=ESTIMATORS[name]))
    assert value == pytest.approx(BUNDLED[name], rel=TOLERANCE)


def test_maximum_mean_error_of_the_bundled_network(bundled):
    value = caltest.calibration_error(*bundled, lens=CONFIDENCE, statistic=caltest.MMCE())
    assert value == pytest.approx(BUNDLED_MMCE, rel=TOLERANCE)


@pytest.mark.parametrize("network", NETWORKS)
def test_errors_of_networks(shared_data, network):
    data, column = load(shared_data, network), NETWORKS.index(network)
    for name, estimator in ESTIMATORS.items():
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(*data, statistic=skce, method="distribution-free")
        assert result.statistic == pytest.approx(ERRORS[name][column], rel=TOLERANCE)
        # The published program squares negative estimates too, where there is nothing to bound.
        assert result.pvalue == pytest.approx(BOUNDS[name][column] if result.statistic > 0 else 1.0, rel=TOLERANCE)
    block = caltest.skce_test(*data, statistic=caltest.SKCE(estimator="block"))
    assert block.z == pytest.approx(BLOCK_Z[column], rel=TOLERANCE)
    assert block.pvalue == pytest.approx(BLOCK_PVALUES[column], rel=TOLERANCE)
    mmce = caltest.calibration_error(*data, lens=CONFIDENCE, statistic=caltest.MMCE())
    assert mmce == pytest.approx(MMCES[column], rel=TOLERANCE)


@pytest.mark.parametrize(
    "network", [pytest.param(name, marks=[] if "googlenet" in name else pytest.mark.slow) for name in NETWORKS]
)
def test_bootstrap_of_networks(shared_data, network):
    """Two samples of 1,000 from the same law: mean, standard deviation and 95 % quantile."""
    data, column = load(shared_data, network), NETWORKS.index(network)
    expected = {name: values[column] for name, values in BOOTSTRAP.items()}
    n, n_resamples = len(data[0]), 1000
    result = caltest.skce_test(*data, n_resamples=n_resamples, rng=0)
    biased = ERRORS["SKCEb"][column]
    assert n / (n - 1) * result.statistic - biased == pytest.approx(expected["statistic"], rel=1e-6)  # it cancels
    null = n / (n - 1) * result.null.values - biased
    error = null.std() * np.sqrt(2 / n_resamples)
    assert abs(null.mean() - expected["null_mean"]) < STANDARD_ERRORS * error
    centred = np.square(null - null.mean())
    error = centred.std() / (2 * null.std()) * np.sqrt(2 / n_resamples)
    assert abs(null.std() - expected["null_sd"]) < STANDARD_ERRORS * error
    error = np.sqrt(0.05 * 0.95 * 2 / n_resamples)
    assert abs((null > expected["null_q95"]).mean() - 0.05) < STANDARD_ERRORS * error
    assert result.pvalue == 1 / (n_resamples + 1)


# By hand.


def test_two_rows():
    # Residuals (1/4, -1/4) and (3/4, -3/4): inner products 3/8, 1/8 and 9/8; total variation 1/2.
    y_true, y_prob, similar = [0, 0], [0.25, 0.75], math.exp(-1)
    for estimator, expected in [
        ("unbiased", similar * 3 / 8),
        ("block", similar * 3 / 8),
        ("biased", (2 * similar * 3 / 8 + 1 / 8 + 9 / 8) / 4),
    ]:
        skce = caltest.SKCE(bandwidth=0.5, estimator=estimator)
        assert caltest.calibration_error(y_true, y_prob, statistic=skce) == pytest.approx(expected, rel=1e-14)


def test_bandwidth_is_the_median_with_the_zeros():
    # Distances 0, 0 and twice 1/2: the median is 1/4. A third row at 1/4 leaves three zeros and 1/4, 1/4, 1/2 twice.
    for y_prob, bandwidth in [([0.25, 0.75], 0.25), ([0.25, 0.5, 0.75], 0.25), ([0.25], 0.0), ([0.5, 0.5, 1.0], 0.0)]:
        prob = np.column_stack([1 - np.array(y_prob), y_prob])
        assert median_distance(prob, squared=False) == bandwidth
        assert median_distance(prob, squared=True) == pytest.approx(np.sqrt(2) * bandwidth, rel=1e-15)
        y_true = [0] * len(y_prob)
        one = caltest.calibration_error(y_true, y_prob, statistic=caltest.SKCE())
        other = caltest.calibration_error(y_true, y_prob, statistic=caltest.SKCE(bandwidth=bandwidth or 1e-150))
        assert one == other


def test_block_pairs_rows_as_the_caller_gave_them():
    """Also behind a lens whose sample is sorted, and inside a region."""
    y_prob, y_true = np.array([0.75, 0.5, 0.25, 0.875, 0.5]), np.array([1, 0, 1, 0, 1])
    residual = y_true - y_prob
    similar = np.exp(-np.abs(np.diff(y_prob)))

    def block(**options):
        return caltest.calibration_error(
            y_true, y_prob, statistic=caltest.SKCE(bandwidth=1.0, estimator="block"), **options
        )

    products = 2 * residual[:-1] * residual[1:] * similar
    assert block() == pytest.approx((products[0] + products[2]) / 2, rel=1e-14)
    assert block(region=lambda prob: prob[:, 1] != 0.75) == pytest.approx((products[1] + products[3]) / 2, rel=1e-14)


@PROFILE
@given(labels=st.lists(st.integers(0, 2), min_size=2, max_size=30))
def test_equal_predictions_compare_frequencies(labels):
    """All kernels are 1: the biased error is the squared distance of the frequencies from the prediction."""
    p, n = np.array([0.5, 0.375, 0.125]), len(labels)
    y_prob = np.tile(p, (n, 1))
    squared = np.square(np.bincount(labels, minlength=3) / n - p).sum()
    own = np.square(np.eye(3)[labels] - p).sum()
    for kernel in KERNELS:
        biased, unbiased = (
            caltest.calibration_error(labels, y_prob, statistic=caltest.SKCE(kernel, estimator=estimator))
            for estimator in ("biased", "unbiased")
        )
        assert biased == pytest.approx(squared, abs=1e-14)
        assert unbiased == pytest.approx((n**2 * squared - own) / (n * (n - 1)), abs=1e-14)
    event = np.array(labels) > 0
    mmce = caltest.calibration_error(event, np.full(n, 0.5), statistic=caltest.MMCE())
    assert mmce == pytest.approx(abs(event.mean() - 0.5), abs=1e-14)


def test_maximum_mean_error_of_two_rows():
    # Residuals -1/4 and 1/2 at scores 1/4 and 1/2.
    expected = math.sqrt(1 / 16 + 1 / 4 - 2 / 8 * math.exp(-2.5 / 4)) / 2
    assert caltest.calibration_error([0, 1], [0.25, 0.5], statistic=caltest.MMCE()) == pytest.approx(
        expected, rel=1e-14
    )


def test_scores_that_all_but_tie_do_not_cancel():
    """Residuals 1/2 and -1/2 a hair apart: the root of a difference would keep half the digits."""
    gap = 2.0**-40
    value = caltest.calibration_error([1, 0], [0.5, 0.5 + gap], statistic=caltest.MMCE())
    form = 0.25 * 2 * -math.expm1(-2.5 * gap)  # but for gap^2
    assert value == pytest.approx(math.sqrt(form) / 2, rel=1e-10)


# Kernels and their sums.


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [1e-150, 1e-4, 0.01, 0.3, 7.0])
def test_compiled_kernels_are_those_of_the_functions(kernel, bandwidth):
    for n_classes in (2, 3, 4, 7, 10):
        _, prob = dirichlet(300, n_classes, seed=n_classes)
        prob[7] = prob[8]
        block = Similarity(kernel, bandwidth).block(prob[:150], prob)
        expected = kernel(prob[:150, None], prob[None], bandwidth)
        # exp(-x) passes a rounding of x on to the relative error of the value; below 1e-300 it ends.
        error = np.abs(block - expected) - 1e-300
        assert (error <= 2e-15 * (1 - np.log(np.maximum(expected, 1e-300))) * expected).all()
        assert (block <= 1).all()
        assert block[7, 8] == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_symmetric_and_one_at_equal_rows(kernel):
    _, prob = dirichlet(40, 4)
    matrix = kernel(prob[:, None], prob[None], 0.5)
    assert matrix.shape == (40, 40)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1)
    assert np.linalg.eigvalsh(matrix).min() > 0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [2, 127, 129, 513, 1100])
def test_tiles_do_not_matter(kernel, n):
    y_true, prob = dirichlet(n, 5, seed=n)
    residual = np.eye(5)[y_true] - prob
    expected = np.triu(kernel(prob[:, None], prob[None], 0.3) * (residual @ residual.T), 1).sum()
    one = Similarity(kernel, 0.3).sum_products(prob, residual)
    assert one == pytest.approx(expected, rel=1e-12, abs=1e-12)
    users = partial(kernel)  # not recognised, hence called as a user's
    other = Similarity(users, 0.3).sum_products(prob, residual)
    assert other == pytest.approx(expected, rel=1e-12, abs=1e-12)


def problems_of_many_rows():
    """Vague, sharp and mixed predictions, more rows than a block holds."""
    rng = np.random.default_rng(3)
    sharp = 0.97 * np.eye(4)[rng.integers(4, size=700)] + 0.03 * rng.dirichlet(np.ones(4), size=700)
    vague = rng.dirichlet(np.full(4, 5.0), size=700)
    certain = np.eye(4)[rng.integers(4, size=700)]
    return {"vague": vague, "sharp": sharp, "mixed": np.concatenate([sharp, vague, certain])}


@pytest.mark.parametrize("kind", ["vague", "sharp", "mixed"])
@pytest.mark.parametrize("kernel", [caltest.total_variation_kernel, inner_product_kernel])
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_changes_from_likely_outcomes_add_up(kind, kernel, estimator):
    """Many draws at once take another way than one."""
    prob = problems_of_many_rows()[kind]
    rng = np.random.default_rng(4)
    sample = make_sample(draw_labels(prob, rng), prob)
    skce = caltest.SKCE(kernel, estimator=estimator)
    drawn = np.stack([draw_labels(prob, rng) for _ in range(3)] + [rng.integers(4, size=len(prob))])
    drawn = drawn.astype(sample.outcome.dtype)
    alone = [skce.evaluate(sample, outcome) for outcome in drawn]
    scale = np.abs(alone).max()
    np.testing.assert_allclose(skce.evaluate(sample, drawn), alone, rtol=1e-12, atol=1e-12 * scale)


def test_draws_about_a_calibration_function():
    """Residuals and likely outcomes are those of the null hypothesis, similarities those of the predictions."""
    y_true, prob = dirichlet(600, 3)
    scheme = caltest.Consistency(calibration_function=lambda p: p[:, [1, 2, 0]])
    sample = scheme.under_null(make_sample(y_true, prob))
    drawn = next(scheme.draws(5, rng=0).blocks(sample))[1]
    skce = caltest.SKCE(estimator="biased")
    alone = [skce.evaluate(sample, outcome) for outcome in drawn]
    np.testing.assert_allclose(skce.evaluate(sample, drawn), alone, rtol=1e-12)
    bandwidth = naive.median_distance(caltest.total_variation_kernel, tuple(map(tuple, prob[:20])))
    few = caltest.SKCE(bandwidth=bandwidth)
    small = scheme.under_null(make_sample(y_true[:20], prob[:20]))
    expected = naive.evaluate(few, prob[:20], y_true[:20], expected=prob[:20][:, [1, 2, 0]])
    assert few.evaluate(small, small.outcome) == pytest.approx(expected, rel=1e-12)


def test_the_unbiased_null_has_mean_zero():
    """Given the predictions, and the biased one the expected squared residual over n."""
    y_true, prob = dirichlet(300, 4)
    for estimator, mean in [("unbiased", 0.0), ("biased", (1 - np.square(prob).sum(axis=1)).mean() / 300)]:
        result = caltest.calibration_test(
            y_true, prob, statistic=caltest.SKCE(estimator=estimator), n_resamples=999, rng=1
        )
        error = result.null_distribution.std() / np.sqrt(999)
        assert abs(result.noise_floor - mean) < STANDARD_ERRORS * error


# The median.


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 11, 100, 600, 1201])
def test_median_is_exact(n, squared):
    rng = np.random.default_rng(n)
    for prob in (
        rng.dirichlet(np.full(5, 0.5), size=n),
        rng.multinomial(4, [1 / 3] * 3, size=n) / 4,
        np.eye(3)[rng.integers(3, size=n)],
        np.tile([0.5, 0.5], (n, 1)),
    ):
        distances = pdist(prob, "euclidean" if squared else "cityblock") / (1 if squared else 2)
        expected = np.median(np.concatenate([np.zeros(n), distances, distances]))
        assert median_distance(prob, squared) == pytest.approx(expected, rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("bracket", [(-1.0, 0.1), (0.95, np.inf), (0.3, 0.3), (0.0, 1.0)])
def test_median_is_exact_even_if_the_sample_misled(monkeypatch, bracket):
    _, prob = dirichlet(600, 5)
    expected = median_distance(prob, squared=False)
    monkeypatch.setattr(kernels, "_bracket", lambda *_: bracket)
    assert median_distance(prob, squared=False) == expected


def test_median_of_the_bundled_predictions(bundled):
    assert median_distance(bundled[1].astype(float), squared=False) == pytest.approx(BUNDLED_MEDIAN, rel=1e-14)


def test_median_of_many_rows_is_that_of_some(monkeypatch):
    _, prob = dirichlet(400, 3)
    everything = median_distance(prob, squared=False)
    monkeypatch.setattr(kernels, "LARGEST_MEDIAN", 100)
    some = median_distance(prob, squared=False)
    assert some != everything
    assert some == pytest.approx(everything, rel=0.2)
    assert median_distance(prob[::-1], squared=False) == some
    assert kernels.LARGEST_MEDIAN == 100


# What must not matter.


@st.composite
def problems(draw):
    n_classes = draw(st.integers(2, 4))
    odds = st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any)
    rows = draw(st.lists(odds, min_size=1, max_size=12))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=len(rows), max_size=len(rows)))
    prob = np.array(rows, dtype=float)
    return np.array(labels), prob / prob.sum(axis=1, keepdims=True)


@PROFILE
@given(problem=problems(), data=st.data())
def test_order_of_rows_and_names_of_classes_do_not_matter(problem, data):
    y_true, y_prob = problem
    rows = data.draw(st.permutations(range(len(y_true))))
    classes = data.draw(st.permutations(range(y_prob.shape[1])))
    for skce in (caltest.SKCE(), caltest.SKCE(caltest.gaussian_kernel, 0.5, "biased")):
        one = caltest.calibration_error(y_true, y_prob, statistic=skce)
        other = caltest.calibration_error(np.argsort(classes)[y_true][rows], y_prob[rows][:, classes], statistic=skce)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@PROFILE
@given(problem=problems(), data=st.data())
def test_a_row_without_weight_is_absent(problem, data):
    y_true, y_prob = problem
    weight = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(y_true), max_size=len(y_true)).filter(any)))
    for statistic, lens in [
        (caltest.SKCE(), None),
        (caltest.SKCE(estimator="biased"), None),
        (caltest.MMCE(), CONFIDENCE),
    ]:
        options = {"statistic": statistic, "lens": lens}
        one = caltest.calibration_error(y_true, y_prob, sample_weight=weight, **options)
        kept = weight > 0
        other = caltest.calibration_error(y_true[kept], y_prob[kept], sample_weight=weight[kept], **options)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@PROFILE
@given(problem=problems())
def test_biased_errors_are_not_negative_and_at_most_two(problem):
    for kernel in KERNELS:
        value = caltest.calibration_error(*problem, statistic=caltest.SKCE(kernel, estimator="biased"))
        assert -1e-15 <= value <= 2


def test_a_user_writes_the_kernel_of_the_package():
    y_true, y_prob = dirichlet(700, 4)

    def mine(p, q, bandwidth):
        return np.exp(-np.abs(p - q).sum(axis=-1) / (2 * bandwidth))

    for estimator in ("unbiased", "biased", "block"):
        one, other = (
            caltest.calibration_test(
                y_true, y_prob, statistic=caltest.SKCE(kernel, estimator=estimator), n_resamples=49, rng=0
            )
            for kernel in (mine, caltest.total_variation_kernel)
        )
        assert one.statistic == pytest.approx(other.statistic, rel=1e-12)
        assert one.pvalue == other.pvalue
        np.testing.assert_allclose(one.null_distribution, other.null_distribution, rtol=1e-10, atol=1e-14)


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.SKCE("gaussian"), r"`kernel` must be a function of \(p, q, bandwidth\).*got 'gaussian'"),
        (lambda: caltest.SKCE(dict), r"`kernel` must be a function"),
        (lambda: caltest.SKCE(bandwidth="mean"), r"`bandwidth` must be a positive, .* or \"median\", got 'mean'"),
        (lambda: caltest.SKCE(bandwidth=0), r"`bandwidth` must be a positive, finite number .*got 0"),
        (lambda: caltest.SKCE(bandwidth=np.inf), r"`bandwidth` must be a positive, finite number"),
        (lambda: caltest.SKCE(bandwidth=True), r"`bandwidth` must be a positive, finite number"),
        (lambda: caltest.SKCE(estimator="linear"), r"`estimator` must be one of 'unbiased', 'biased', 'block', got"),
        (lambda: caltest.MMCE(-1.0), r"`bandwidth` must be a positive, finite number, got -1.0"),
        (lambda: caltest.MMCE("median"), r"`bandwidth` must be a positive, finite number, got 'median'"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "block"])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda p, q, _: p - q, r"`kernel` must reduce the last axis .*: expected shape \(.*\), got \(.*3\)"),
        (lambda p, q, _: (p - q).sum(axis=-1) * np.nan, r"`kernel` must return finite numbers, got nan"),
    ],
)
def test_bad_kernels_are_refused(estimator, kernel, message):
    y_true, y_prob = dirichlet(20, 3)
    with pytest.raises(ValueError, match=message):
        caltest.calibration_error(y_true, y_prob, statistic=caltest.SKCE(kernel, estimator=estimator))


def test_maximum_mean_error_needs_two_outcomes():
    with pytest.raises(ValueError, match=r"`MMCE` needs a two-outcome lens such as Confidence\(\), got 3 outcomes"):
        caltest.calibration_error(*dirichlet(20, 3), statistic=caltest.MMCE())


# Tests that draw no outcomes.


def bootstrap_by_loops(y_true, y_prob, bandwidth, samples):
    """The bootstrap statistic as its definition reads."""
    n = len(y_true)
    residual = np.eye(y_prob.shape[1])[y_true] - y_prob
    h = [
        [
            math.exp(-naive.total_variation(y_prob[i], y_prob[j]) / bandwidth) * float(residual[i] @ residual[j])
            for j in range(n)
        ]
        for i in range(n)
    ]
    mean = [sum(row) / n for row in h]
    biased = sum(mean) / n
    null = []
    for rows in samples:
        total = 0.0
        for b, j in enumerate(rows):
            for i in rows[:b]:
                total += h[i][j] - mean[i] - mean[j] + biased
        null.append(2 / n**2 * total)
    return sum(h[i][j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1)), null


def test_bootstrap_equals_the_loops():
    y_true, y_prob = dirichlet(17, 3)
    result = caltest.skce_test(y_true, y_prob, statistic=caltest.SKCE(bandwidth=0.5), n_resamples=25, rng=3)
    samples, _ = caltest.Bootstrap().draws(25, 3).rows(make_sample(y_true, y_prob))
    observed, null = bootstrap_by_loops(y_true, y_prob, 0.5, samples.tolist())
    assert result.statistic == pytest.approx(observed, rel=1e-12)
    np.testing.assert_allclose(result.null.values, null, rtol=1e-12, atol=1e-15)
    assert result.pvalue == naive.pvalue(observed, null)
    assert result.bandwidth == 0.5


@pytest.mark.parametrize("panel", [1, 2**24])
def test_bootstrap_in_parts(monkeypatch, panel):
    """More rows than a block holds, and more samples than a panel."""
    y_true, y_prob = dirichlet(1100, 3)
    expected = caltest.skce_test(y_true, y_prob, n_resamples=130, rng=3)
    monkeypatch.setattr(caltest.hypothesis_tests.classical._skce, "_PANEL_VALUES", panel)
    result = caltest.skce_test(y_true, y_prob, n_resamples=130, rng=3)
    assert result.statistic == pytest.approx(
        caltest.calibration_error(y_true, y_prob, statistic=caltest.SKCE()), rel=1e-12
    )
    np.testing.assert_allclose(result.null.values, expected.null.values, rtol=1e-10, atol=1e-15)
    assert result.pvalue == expected.pvalue


def test_normal_limit_by_hand():
    # Pairs of equal rows with residuals +-(1/2, 1/2): terms 1/2, 1/2, -1/2.
    result = caltest.skce_test([1, 1, 0, 0, 1, 0], [0.5] * 6, statistic=caltest.SKCE(estimator="block"))
    mean, error = 1 / 6, math.sqrt(2 / 3) / 3
    assert result.statistic == pytest.approx(mean, rel=1e-14)
    assert result.z == pytest.approx(mean / error, rel=1e-14)
    assert result.pvalue == pytest.approx(norm.sf(mean / error), rel=1e-12)
    assert result.null is None


@pytest.mark.parametrize(("y_true", "pvalue"), [([1, 1, 0, 0], np.finfo(float).tiny), ([1, 0, 0, 1], 1.0)])
def test_normal_limit_without_variance(y_true, pvalue):
    """All terms equal: infinitely far from 0, on the side of their sign."""
    result = caltest.skce_test(y_true, [0.5] * 4, statistic=caltest.SKCE(estimator="block"))
    assert result.pvalue == pvalue


def test_certain_and_right():
    """All terms are 0: nothing speaks against calibration."""
    for estimator in ("unbiased", "block"):
        result = caltest.skce_test([0, 1, 0, 1], np.eye(2)[[0, 1, 0, 1]], statistic=caltest.SKCE(estimator=estimator))
        assert result.statistic == 0
        assert result.pvalue >= 0.5


def test_bounds_by_hand():
    y_prob = [0.5] * 8
    for y_true, estimator, expected in [
        ([1] * 8, "biased", math.exp(-((math.sqrt(8 * 0.5 / 2) - 1) ** 2) / 2)),
        ([1] * 8, "unbiased", math.exp(-4 * 0.5**2 / 8)),
        ([1] * 8, "block", math.exp(-4 * 0.5**2 / 8)),
        ([1, 0] * 4, "biased", 1.0),
        ([1, 0] * 4, "unbiased", 1.0),
        ([1, 0] * 4, "block", 1.0),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(y_true, y_prob, statistic=skce, method="distribution-free")
        assert result.pvalue == pytest.approx(expected, rel=1e-14)
        assert result.method == "distribution-free"


def test_an_impossible_label_is_evidence_enough():
    y_true, y_prob = dirichlet(40, 3, seed=1, concentration=2.0)
    y_prob[23], y_true[23] = [0.75, 0.25, 0.0], 2
    for estimator, method, smallest in [
        ("unbiased", "asymptotic", 1 / 20),
        ("block", "asymptotic", np.finfo(float).tiny),
        ("biased", "distribution-free", np.finfo(float).tiny),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(y_true, y_prob, statistic=skce, method=method, n_resamples=19, rng=0)
        assert result.pvalue == smallest
        assert "row 23" in str(result)


def test_result_says_what_it_is():
    y_true, y_prob = dirichlet(60, 4)
    for estimator, method, said in [
        ("unbiased", "asymptotic", "49 bootstrap samples of the degenerate U-statistic: asymptotic"),
        ("block", "asymptotic", "Normal limit of the block estimator: asymptotic"),
        ("biased", "distribution-free", "Upper bound of the p-value, valid at every sample size"),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(y_true, y_prob, statistic=skce, method=method, n_resamples=49, rng=0)
        value, pvalue = result
        assert (value, pvalue) == (result.statistic, result.pvalue)
        assert value == pytest.approx(caltest.calibration_error(y_true, y_prob, statistic=skce), rel=1e-12)
        report = " ".join(str(result).split())
        for part in (said, "60 rows, 4 outcomes", str(skce), "Canonical()", f"{'<=' if 'bound' in said else '='} "):
            assert part in report
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["pvalue"] == pvalue
        assert max(map(len, str(result).splitlines())) <= 120


def test_behind_a_lens_and_in_a_region():
    y_true, y_prob = dirichlet(80, 4)
    sure = y_prob.max(axis=1) > 0.5
    one = caltest.skce_test(y_true, y_prob, lens=CONFIDENCE, region=lambda p: p[:, 1] > 0.5, n_resamples=19, rng=0)
    other = caltest.skce_test(y_true[sure], y_prob[sure], lens=CONFIDENCE, n_resamples=19, rng=0)
    assert tuple(one) == tuple(other)
    assert one.n_outcomes == 2
    assert one.lens == "Confidence()"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": caltest.ECE()}, r"`statistic` must be an SKCE\(...\), got ECE"),
        ({"method": "exact"}, r"`method` must be one of 'asymptotic', 'distribution-free', got 'exact'"),
        ({"n_resamples": 0}, r"`n_resamples` must be an integer >= 1, got 0"),
        ({"rng": "seed"}, r"`rng` must be None, an integer"),
        (
            {"statistic": caltest.SKCE(estimator="biased")},
            '`method` must be "distribution-free" for the biased estimator, got "asymptotic"',
        ),
        (
            {"statistic": caltest.SKCE(inner_product_kernel), "method": "distribution-free"},
            r'`method` must be "asymptotic" for SKCE\(kernel=inner_product_kernel\), whose bound is unknown',
        ),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        caltest.skce_test(*dirichlet(20, 3), **options)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"`y_true` must hold at least 4 rows for `skce_test`, got 3"):
        caltest.skce_test([0, 1, 1], [0.25, 0.5, 0.75])


# Level and power of the exact test.

LEVELS = (0.01, 0.05, 0.1)


def rejections(statistics, n_data_sets, n_classes, lens=None, n=200):
    """How often each statistic rejects calibrated predictions at each level; all see the same draws."""
    together = caltest.Omnibus(statistics)
    counts = np.zeros((len(statistics), len(LEVELS)), dtype=int)
    for i in range(n_data_sets):
        y_true, y_prob = dirichlet(n, n_classes, seed=i)
        result = caltest.calibration_test(
            y_true, y_prob, lens=lens, statistic=together, n_resamples=199, method="monte-carlo", rng=10**6 + i
        )
        counts += np.array([[part.pvalue <= level for level in LEVELS] for part in result.components])
    return counts


LEVEL_CASES = {
    "canonical": ((caltest.SKCE(), caltest.SKCE(estimator="biased"), caltest.SKCE(estimator="block")), 10, None),
    "confidence": ((caltest.SKCE(), caltest.MMCE()), 10, CONFIDENCE),
}


@pytest.mark.parametrize("n_data_sets", [100, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", LEVEL_CASES)
def test_level_of_redrawn_outcomes(case, n_data_sets):
    """At most nominal, within the one-sided binomial limit shared by all cases."""
    counts = rejections(*LEVEL_CASES[case][:1], n_data_sets, *LEVEL_CASES[case][1:])
    n_limits = len(LEVELS) * sum(len(statistics) for statistics, _, _ in LEVEL_CASES.values())
    limits = [binom.ppf(1 - FALSE_ALARM / n_limits, n_data_sets, level) for level in LEVELS]
    assert (counts <= limits).all(), counts


def test_labels_that_ignore_the_predictions_are_seen():
    """By the block estimator in many rows only: terms of mean 0.007 and deviation 0.19, of which it sees n / 2."""
    rng = np.random.default_rng(0)
    y_prob, y_true = rng.dirichlet(np.ones(5), size=100_000), rng.integers(5, size=100_000)
    block = caltest.SKCE(bandwidth=0.5, estimator="block")
    assert caltest.skce_test(y_true, y_prob, statistic=block).pvalue < norm.sf(STANDARD_ERRORS)
    assert caltest.calibration_test(y_true, y_prob, statistic=block, n_resamples=19, rng=0).pvalue == 1 / 20
    y_true, y_prob = y_true[:500], y_prob[:500]
    for statistic, lens in [
        (caltest.SKCE(), None),
        (caltest.SKCE(estimator="biased"), None),
        (caltest.MMCE(), CONFIDENCE),
    ]:
        result = caltest.calibration_test(y_true, y_prob, lens=lens, statistic=statistic, n_resamples=199, rng=0)
        assert result.pvalue == 1 / 200
    assert caltest.skce_test(y_true, y_prob, n_resamples=199, rng=0).pvalue == 1 / 200


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "block"])
def test_a_kernel_that_writes_changes_nothing_of_the_callers(estimator):
    def writing(p, q, bandwidth):
        p[:] = q[:] = 0.5
        return np.zeros(np.broadcast_shapes(p.shape, q.shape)[:-1])

    y_true, y_prob = dirichlet(30, 3)
    kept = y_prob.copy()
    statistic = caltest.SKCE(kernel=writing, bandwidth=1.0, estimator=estimator)
    caltest.calibration_test(y_true, y_prob, statistic=statistic, n_resamples=9, rng=0)
    np.testing.assert_array_equal(y_prob, kept)


def test_an_infinite_z_becomes_none():
    """Pairs of rows that all show the same leave nothing to divide by."""
    found = caltest.skce_test([1] * 8, [0.5] * 8, statistic=caltest.SKCE(estimator="block", bandwidth=1.0))
    assert found.z == np.inf
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["z"] is None
