"""The squared kernel error: published values, by hand, its null distribution, and what must not matter to it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import caltest
from caltest.predictions._sample import make_sample
from tests.reference import naive
from tests.reference.cases import check_refused, failures, mostly_nightly
from tests.statistics.networks import NETWORKS, SKCE_ERRORS, network
from tests.statistics.problems import (
    LEVELS,
    PROFILE,
    STANDARD_ERRORS,
    calibrated,
    error,
    most_rejections,
    problems,
)

TOLERANCE = 1e-9
KERNELS = [
    caltest.statistics.total_variation_kernel,
    caltest.statistics.euclidean_kernel,
    caltest.statistics.gaussian_kernel,
]
ESTIMATORS = ("biased", "unbiased", "block")

BUNDLED = {"biased": 0.000173594485564348, "unbiased": 0.000163066203563326, "block": 0.000446115156942541}
"""Of VGG-16, by plain loops of SciPy's cdist over blocks of observations."""


# Published values.


def all_estimates(y_true, y_prob):
    """Every estimate on one sample, whose bandwidth is found once."""
    sample = make_sample(y_true, y_prob)
    return {name: float(caltest.SKCE(estimator=name).evaluate(sample, sample.outcome)) for name in ESTIMATORS}


@pytest.mark.slow
def test_errors_of_the_bundled_network():
    bundled = caltest.datasets.load_cifar10_vgg16()
    assert all_estimates(*bundled) == pytest.approx(BUNDLED, rel=TOLERANCE)
    assert error(*bundled, caltest.SKCE(estimator="block")) == pytest.approx(BUNDLED["block"], rel=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_errors_of_networks(shared_data, column):
    expected = {name: values[column] for name, values in SKCE_ERRORS.items()}
    assert all_estimates(*network(shared_data, column)) == pytest.approx(expected, rel=TOLERANCE)


# By hand.


def test_two_observations():
    # Residuals (1/4, -1/4) and (3/4, -3/4): inner products 3/8, 1/8 and 9/8; total variation 1/2.
    similar = math.exp(-1)
    for estimator, expected in [
        ("unbiased", similar * 3 / 8),
        ("block", similar * 3 / 8),
        ("biased", (2 * similar * 3 / 8 + 1 / 8 + 9 / 8) / 4),
    ]:
        skce = caltest.SKCE(bandwidth=0.5, estimator=estimator)
        assert error([0, 0], [0.25, 0.75], skce) == pytest.approx(expected, rel=1e-14), estimator


def test_the_bandwidth_is_the_median_distance():
    for y_prob, bandwidth in [([0.25, 0.75], 0.25), ([0.25, 0.5, 0.75], 0.25), ([0.25], 0.0), ([0.5, 0.5, 1.0], 0.0)]:
        y_true = [0] * len(y_prob)
        given = caltest.SKCE(bandwidth=bandwidth or 1e-150)
        assert error(y_true, y_prob, caltest.SKCE()) == error(y_true, y_prob, given), y_prob


def test_blocks_pair_observations_in_the_order_of_the_caller():
    """Also behind a lens whose sample is sorted, and inside a region."""
    y_prob, y_true = np.array([0.75, 0.5, 0.25, 0.875, 0.5]), np.array([1, 0, 1, 0, 1])
    residual = y_true - y_prob
    similar = np.exp(-np.abs(np.diff(y_prob)))
    block = caltest.SKCE(bandwidth=1.0, estimator="block")
    products = 2 * residual[:-1] * residual[1:] * similar
    assert error(y_true, y_prob, block) == pytest.approx((products[0] + products[2]) / 2, rel=1e-14)
    inside = error(y_true, y_prob, block, region=lambda prob: prob[:, 1] != 0.75)
    assert inside == pytest.approx((products[1] + products[3]) / 2, rel=1e-14)


@PROFILE
@given(labels=st.lists(st.integers(0, 2), min_size=2, max_size=30))
def test_equal_predictions_compare_frequencies(labels):
    """All kernels are 1: the biased error is the squared distance of the frequencies from the prediction."""
    p, n = np.array([0.5, 0.375, 0.125]), len(labels)
    y_prob = np.tile(p, (n, 1))
    squared = np.square(np.bincount(labels, minlength=3) / n - p).sum()
    own = np.square(np.eye(3)[labels] - p).sum()
    for kernel in KERNELS:
        assert error(labels, y_prob, caltest.SKCE(kernel, estimator="biased")) == pytest.approx(squared, abs=1e-14)
        unbiased = (n**2 * squared - own) / (n * (n - 1))
        assert error(labels, y_prob, caltest.SKCE(kernel)) == pytest.approx(unbiased, abs=1e-14)


# Null distributions.


def test_draws_about_a_calibration_function():
    """Residuals and likely outcomes are those of the null hypothesis, similarities those of the predictions."""
    y_true, prob = calibrated(600, 3)
    scheme = caltest.Consistency(calibration_function=lambda p: p[:, [1, 2, 0]])
    sample = scheme.under_null(make_sample(y_true, prob))
    drawn = next(scheme.draws(5, rng=0).blocks(sample))[1]
    skce = caltest.SKCE(estimator="biased")
    alone = [skce.evaluate(sample, outcome) for outcome in drawn]
    np.testing.assert_allclose(skce.evaluate(sample, drawn), alone, rtol=1e-12)
    bandwidth = naive.median_distance(caltest.statistics.total_variation_kernel, tuple(map(tuple, prob[:20])))
    few = caltest.SKCE(bandwidth=bandwidth)
    small = scheme.under_null(make_sample(y_true[:20], prob[:20]))
    expected = naive.evaluate(few, prob[:20], y_true[:20], expected=prob[:20][:, [1, 2, 0]])
    assert few.evaluate(small, small.outcome) == pytest.approx(expected, rel=1e-12)


def test_means_of_null_distributions():
    """Given the predictions that of the unbiased error is 0, that of the biased one E |residual|^2 / n."""
    y_true, prob = calibrated(300, 4)
    for estimator, mean in [("unbiased", 0.0), ("biased", (1 - np.square(prob).sum(axis=1)).mean() / 300)]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.calibration_test(y_true, prob, statistic=skce, n_resamples=999, rng=1)
        slack = STANDARD_ERRORS * result.null_distribution.std() / np.sqrt(999)
        assert abs(result.noise_floor - mean) < slack, estimator


# What must not matter.


@PROFILE
@given(problem=problems(), data=st.data())
def test_order_of_observations_and_names_of_classes_do_not_matter(problem, data):
    y_true, y_prob = problem
    rows = data.draw(st.permutations(range(len(y_true))))
    classes = data.draw(st.permutations(range(y_prob.shape[1])))
    for skce in (caltest.SKCE(), caltest.SKCE(caltest.statistics.gaussian_kernel, 0.5, "biased")):
        other = error(np.argsort(classes)[y_true][rows], y_prob[rows][:, classes], skce)
        np.testing.assert_allclose(error(y_true, y_prob, skce), other, rtol=1e-12, atol=1e-12)


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(problem=problems(), data=st.data())
def test_an_observation_without_weight_is_absent(problem, data):
    y_true, y_prob = problem
    weight = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(y_true), max_size=len(y_true)).filter(any)))
    kept = weight > 0
    for statistic in (caltest.SKCE(), caltest.SKCE(estimator="biased"), caltest.statistics.MMCE()):
        one = error(y_true, y_prob, statistic, sample_weight=weight)
        other = error(y_true[kept], y_prob[kept], statistic, sample_weight=weight[kept])
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=str(statistic))


@PROFILE
@given(problem=problems())
def test_biased_errors_are_not_negative_and_at_most_two(problem):
    for kernel in KERNELS:
        assert -1e-15 <= error(*problem, caltest.SKCE(kernel, estimator="biased")) <= 2


# Kernels of users.


@pytest.mark.slow(few_draws=True)
def test_a_user_writes_the_kernel_of_the_package():
    y_true, y_prob = calibrated(700, 4)

    def mine(p, q, bandwidth):
        return np.exp(-np.abs(p - q).sum(axis=-1) / (2 * bandwidth))

    for estimator in ESTIMATORS:
        one, other = (
            caltest.calibration_test(
                y_true, y_prob, statistic=caltest.SKCE(kernel, estimator=estimator), n_resamples=49, rng=0
            )
            for kernel in (mine, caltest.statistics.total_variation_kernel)
        )
        assert one.statistic == pytest.approx(other.statistic, rel=1e-12)
        assert one.pvalue == other.pvalue
        np.testing.assert_allclose(one.null_distribution, other.null_distribution, rtol=1e-10, atol=1e-14)


def test_bad_kernels_are_refused():
    y_true, y_prob = calibrated(20, 3)
    for estimator in ESTIMATORS:
        for kernel, message in (
            (lambda p, q, _: p - q, r"`kernel` must reduce the last axis .*: expected shape \(.*\), got \(.*3\)"),
            (lambda p, q, _: (p - q).sum(axis=-1) * np.nan, r"`kernel` must return finite numbers, got nan"),
        ):
            with pytest.raises(ValueError, match=message):
                error(y_true, y_prob, caltest.SKCE(kernel, estimator=estimator))


def test_a_kernel_that_writes_is_refused_and_changes_nothing_of_the_callers():
    def writing(p, q, bandwidth):
        p[:] = q[:] = 0.5
        return np.zeros(np.broadcast_shapes(p.shape, q.shape)[:-1])

    y_true, y_prob = calibrated(30, 3)
    kept = y_prob.copy()
    for estimator in ESTIMATORS:
        statistic = caltest.SKCE(kernel=writing, bandwidth=1.0, estimator=estimator)
        with pytest.raises(ValueError, match="`kernel` must not write to its arguments"):
            caltest.calibration_test(y_true, y_prob, statistic=statistic, n_resamples=9, rng=0)
        np.testing.assert_array_equal(y_prob, kept)


# Refusals.

SCALE = '`bandwidth` must be a positive, finite number or "median", got'
REFUSED = {
    "kernel text": (lambda: caltest.SKCE("gaussian"), TypeError, "`kernel` must be a function of (p, q, bandwidth)"),
    "kernel class": (lambda: caltest.SKCE(dict), TypeError, "`kernel` must be a function of (p, q, bandwidth)"),
    "mean": (lambda: caltest.SKCE(bandwidth="mean"), ValueError, f"{SCALE} 'mean'."),
    "zero": (lambda: caltest.SKCE(bandwidth=0), ValueError, f"{SCALE} 0."),
    "infinite": (lambda: caltest.SKCE(bandwidth=np.inf), ValueError, f"{SCALE} inf."),
    "bool": (lambda: caltest.SKCE(bandwidth=True), TypeError, f"{SCALE} True."),
    "estimator": (
        lambda: caltest.SKCE(estimator="linear"),
        ValueError,
        "`estimator` must be one of 'unbiased', 'biased', 'block', got 'linear'.",
    ),
}


def test_bad_parameters_are_refused():
    def check(case):
        make, kind, message = case
        check_refused(make, kind, message)

    assert failures(REFUSED, check) == {}


# Level and power with simulated labels.

LEVEL_CASES = {
    "canonical": ((caltest.SKCE(), caltest.SKCE(estimator="biased"), caltest.SKCE(estimator="block")), 10, None),
    "confidence": ((caltest.SKCE(), caltest.statistics.MMCE()), 10, caltest.Confidence()),
}


def rejections(statistics, n_data_sets, n_classes, lens=None, n=200):
    """How often each statistic rejects calibrated predictions at each level; all use the same draws."""
    together = caltest.Omnibus(statistics)
    counts = np.zeros((len(statistics), len(LEVELS)), dtype=int)
    for i in range(n_data_sets):
        y_true, y_prob = calibrated(n, n_classes, seed=i)
        result = caltest.calibration_test(
            y_true, y_prob, lens=lens, statistic=together, n_resamples=199, method="monte-carlo", rng=10**6 + i
        )
        counts += np.array([[part.pvalue <= level for level in LEVELS] for part in result.components])
    return counts


LEVEL_SETS = [60, pytest.param(300, marks=pytest.mark.nightly), pytest.param(2000, marks=pytest.mark.release)]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_data_sets", LEVEL_SETS)
@pytest.mark.parametrize("case", mostly_nightly(LEVEL_CASES))
def test_level(case, n_data_sets):
    """At most nominal, within the one-sided binomial limit shared by all cases."""
    statistics, n_classes, lens = LEVEL_CASES[case]
    counts = rejections(statistics, n_data_sets, n_classes, lens)
    n_limits = len(LEVELS) * sum(len(statistics) for statistics, _, _ in LEVEL_CASES.values())
    assert (counts <= most_rejections(n_data_sets, n_limits)).all(), counts


@pytest.mark.slow(few_draws=True)
def test_labels_that_ignore_the_predictions_are_detected():
    """By the block estimator in many observations only: it has n / 2 terms of mean 0.007 and deviation 0.19."""
    rng = np.random.default_rng(0)
    y_prob, y_true = rng.dirichlet(np.ones(5), size=100_000), rng.integers(5, size=100_000)
    block = caltest.SKCE(bandwidth=0.5, estimator="block")
    asymptotic = caltest.skce_test(y_true, y_prob, statistic=block, method="asymptotic")
    assert asymptotic.pvalue < norm.sf(STANDARD_ERRORS)
    assert caltest.calibration_test(y_true, y_prob, statistic=block, n_resamples=19, rng=0).pvalue == 1 / 20
    y_true, y_prob = y_true[:500], y_prob[:500]
    for statistic in (caltest.SKCE(), caltest.SKCE(estimator="biased"), caltest.statistics.MMCE()):
        result = caltest.calibration_test(y_true, y_prob, statistic=statistic, n_resamples=199, rng=0)
        assert result.pvalue == 1 / 200, statistic
    for method in ("monte-carlo", "asymptotic"):
        assert caltest.skce_test(y_true, y_prob, method=method, n_resamples=199, rng=0).pvalue == 1 / 200, method
