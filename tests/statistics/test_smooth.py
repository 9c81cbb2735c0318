"""Errors by kernel smoothing: reference values, by hand, what must not matter, and the curve with its picture."""

import math
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.stats import binom

import caltest as ct
from caltest.statistics._smoothing import silverman_bandwidth
from tests.reference import naive

TOLERANCE = 1e-9
EXACT = {"rtol": 1e-12, "atol": 1e-12}
PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=50)

NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]

# From goldens.json; columns are NETWORKS.
SMOOTH_ECE = {
    0.01: (0.0492535846824, 0.0410344418499, 0.0144106669228, 0.065929189149),
    0.05: (0.048670877183, 0.040454701242, 0.0131925305535, 0.065929189149),
    0.1: (0.048603630354, 0.040454701242, 0.0125344610572, 0.065929189149),
}
SMOOTH_ECE_FIXED_POINT = (0.04868, 0.04045, 0.01394, 0.06593)  # five decimals are given
PUBLIC_IMPLEMENTATION = (0.0623416640836, 0.0403919615155, 0.0153080442425, 0.0894228518961)  # relplot, wrong at 1
KDE_CONFIDENCE = (0.0267056652281, 0.0264220712694, 0.0285264108767, 0.0384422845545)
KDE_CLASS_WISE = (0.0359706943813, 0.0357106645437, 0.0372981733469, 0.0357270796138)
SILVERMAN_BANDWIDTH = (9.32881453808e-05, 0.000430183263296, 0.00402312772631, 0.00149423404072)
KDE_CONFIDENCE_SILVERMAN = (0.0860942605876, 0.0522859484145, 0.0153585463775, 0.0709020014037)

SUPPORT = (1 / 10, 1.0)
GRID = (1 / 10 - 3, 4.0, 2**14)
"""Support and grid of the authors' program for the confidence in one of ten classes."""


def error(y_true, y_prob, statistic, **options):
    return ct.calibration_error(y_true, y_prob, statistic=statistic, **options)


@pytest.fixture(params=range(4), ids=NETWORKS)
def network(request, shared_data):
    """Number, labels and predictions."""
    with np.load(shared_data / f"{NETWORKS[request.param]}.npz") as data:
        return request.param, data["labels"], data["probs"]


@pytest.mark.parametrize("bandwidth", SMOOTH_ECE)
def test_smooth_ece_at_a_bandwidth(network, bandwidth):
    column, y_true, y_prob = network
    value = error(y_true, y_prob, ct.SmoothECE(bandwidth), lens=ct.Confidence())
    assert value == pytest.approx(SMOOTH_ECE[bandwidth][column], abs=TOLERANCE)


def test_smooth_ece_at_its_fixed_point(network):
    column, y_true, y_prob = network
    value = error(y_true, y_prob, ct.SmoothECE(), lens=ct.Confidence())
    assert value == pytest.approx(SMOOTH_ECE_FIXED_POINT[column], abs=5.1e-6)
    assert error(y_true, y_prob, ct.SmoothECE(value), lens=ct.Confidence()) == pytest.approx(value, rel=1e-12)
    # Unlike the public implementation, which lets a prediction of exactly 1 count half.
    assert abs(value / PUBLIC_IMPLEMENTATION[column] - 1) > 1e-3


def test_kde_error(network):
    column, y_true, y_prob = network
    value = error(y_true, y_prob, ct.KDEError(0.05, support=SUPPORT, grid=GRID), lens=ct.Confidence())
    assert value == pytest.approx(KDE_CONFIDENCE[column], abs=TOLERANCE)
    ours = error(y_true, y_prob, ct.KDEError(0.05, support=SUPPORT), lens=ct.Confidence())
    assert ours == pytest.approx(value, rel=2e-3)  # midpoints instead of the authors' points


def test_kde_error_of_the_classes(network):
    column, y_true, y_prob = network
    statistic = ct.KDEError(0.05, grid=(-2.5, 3.5, 2**14))
    value = np.mean([error(y_true, y_prob, statistic, lens=ct.ClassWise(k)) for k in range(10)])
    assert value == pytest.approx(KDE_CLASS_WISE[column], abs=TOLERANCE)


def test_silverman(network):
    column, y_true, y_prob = network
    bandwidth = silverman_bandwidth(y_prob.max(axis=1).astype(float))
    assert bandwidth == pytest.approx(SILVERMAN_BANDWIDTH[column], rel=TOLERANCE)
    theirs = ct.KDEError(support=SUPPORT, grid=GRID)
    value = error(y_true, y_prob, theirs, lens=ct.Confidence())
    assert value == pytest.approx(KDE_CONFIDENCE_SILVERMAN[column], abs=TOLERANCE)


def direct_smooth_ece(y_true, y_prob, bandwidth, n_points=2000):
    """Kernel sums as they stand in the definition, for `n_points` midpoints."""
    p, residual = y_prob, (y_true - y_prob) / len(y_prob)
    total = 0.0
    for t in np.array_split((np.arange(n_points) + 0.5) / n_points, 20):
        images = [p, -p, 2 - p]
        z = [(t[:, None] - image) / bandwidth for image in images]
        kernel = sum(np.exp(-np.square(distance) / 2) for distance in z) / (bandwidth * math.sqrt(2 * math.pi))
        total += np.abs(kernel @ residual).sum() / n_points
    return total


@pytest.mark.parametrize("bandwidth", [0.0015, 0.01, 0.1])
def test_sums_are_exact(bandwidth):
    """On the bundled network, down to the smallest bandwidth."""
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    confidence, right = y_prob.max(axis=1).astype(float), y_prob.argmax(axis=1) == y_true
    value = error(right, confidence, ct.SmoothECE(bandwidth))
    assert value == pytest.approx(direct_smooth_ece(right, confidence, bandwidth), rel=1e-12)


# By hand.


def test_certain_predictions_count_in_full():
    """Two of ten are wrong at an end, where a kernel that is cut off instead of reflected loses half of its mass."""
    for p, wrong in ((1.0, 0), (0.0, 1)):
        y_true = [1 - wrong] * 8 + [wrong] * 2
        for bandwidth in (None, 0.01, 0.3, 1.0):
            assert error(y_true, [p] * 10, ct.SmoothECE(bandwidth)) == pytest.approx(0.2, abs=1e-14)


@pytest.mark.parametrize("bandwidth", [None, 0.05, 0.5])
def test_rows_at_one_have_their_whole_share(bandwidth):
    """Half of the rows have gap 1/2, the other half lie at exactly 1 and have none.

    The public implementation counts the latter half, in its sum and in the density that it divides by, and returns
    0.329 at bandwidth 0.05: that is how a sharp model gets up to 36 % too much.
    """
    y_true, y_prob = [1] * 20, [0.5] * 10 + [1.0] * 10
    assert error(y_true, y_prob, ct.SmoothECE(bandwidth)) == pytest.approx(0.25, abs=1e-14)
    mirrored = error([0] * 20, [0.5] * 10 + [0.0] * 10, ct.SmoothECE(bandwidth))
    assert mirrored == pytest.approx(0.25, abs=1e-14)


def test_mass_at_one_cancels_what_it_should():
    """Residuals +0.2 near 0.8 and -0.2 at 1, ten rows each: smoothed widely they cancel; lost mass would leave half."""
    y_prob, y_true = [0.8] * 10 + [1.0] * 10, [1] * 10 + [0] * 2 + [1] * 8
    assert error(y_true, y_prob, ct.SmoothECE(1.0)) < 1e-3
    assert error(y_true, y_prob, ct.SmoothECE(0.01)) == pytest.approx(0.2, abs=1e-12)


def test_opposite_certainties():
    """Residuals 1/2 at 0 and -1/2 at 1: integrate the cosine series over half the axis."""
    for sigma in (0.1, 0.3, 0.6):
        odd = np.arange(1, 60, 2)
        signs = (-1.0) ** np.arange(len(odd))
        expected = 4 / math.pi * (signs * np.exp(-np.square(math.pi * odd * sigma) / 2) / odd).sum()
        # The midpoint rule errs by a quarter of a squared step, times the slope where the sign changes.
        assert error([1, 0], [0.0, 1.0], ct.SmoothECE(sigma)) == pytest.approx(expected, abs=2e-6)


def test_one_row():
    assert error([1], [0.25], ct.SmoothECE()) == pytest.approx(0.75, abs=1e-14)
    assert error([1], [1.0], ct.SmoothECE()) == error([0], [0.0], ct.SmoothECE()) == 0
    assert error([1], [0.25], ct.KDEError(0.1, reference="mean")) == pytest.approx(0.75, abs=1e-12)
    # Silverman's bandwidth is 0 here: the smallest, 1 / 2 ** 14, serves.
    assert error([1], [0.25], ct.KDEError()) == pytest.approx(0.75, abs=1e-4)


def test_a_constant_prediction():
    y_true, y_prob = [1] * 5 + [0] * 15, [0.5] * 20
    assert error(y_true, y_prob, ct.SmoothECE()) == pytest.approx(0.25, abs=1e-14)
    assert error(y_true, y_prob, ct.KDEError(reference="mean")) == pytest.approx(0.25, abs=1e-12)
    assert error(y_true, y_prob, ct.KDEError()) == pytest.approx(0.25, abs=1e-4)
    calibrated = [1] * 10 + [0] * 10
    assert error(calibrated, y_prob, ct.SmoothECE()) == pytest.approx(0, abs=1e-15)
    # What smoothing alone does: E|g - 1/2| of a triweight variable is 3 h * 35 / 128.
    value = error(calibrated, y_prob, ct.KDEError(0.05))
    assert value == pytest.approx(0.15 * 35 / 128, rel=1e-3)


def test_without_miscalibration_beyond_rounding():
    y_true, y_prob = [1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0]
    assert error(y_true, y_prob, ct.SmoothECE()) == 0
    assert error(y_true, y_prob, ct.KDEError(reference="mean")) == 0


def test_an_error_below_the_smallest_bandwidth_is_read_there():
    y_true, y_prob = [1, 0] * 10, [0.9999, 0.0001] * 10
    value = error(y_true, y_prob, ct.SmoothECE())
    assert value == error(y_true, y_prob, ct.SmoothECE(3 / 2000)) == pytest.approx(0.0001, rel=1e-9)
    fine = error(y_true, y_prob, ct.SmoothECE(n_points=60_000))
    assert fine == pytest.approx(0.0001, rel=1e-9)


@pytest.mark.parametrize("values", [[0.0, 0.25, 0.5, 0.75, 1.0], [0.1] * 30 + [0.9], [0.3] * 40, [0.2], [0.2, 0.7]])
def test_silverman_by_hand(values):
    assert silverman_bandwidth(np.array(values)) == pytest.approx(naive.silverman(values), rel=1e-12)
    if values[1:2] == [0.25]:
        assert naive.silverman(values) == pytest.approx(0.5 / 1.349 * (4 / 15) ** 0.2, rel=1e-4)


def test_the_published_reference_is_blind_on_a_sharp_model():
    """Why there is another: smoothing moves predictions near 1 by more than this model is wrong."""
    options = {"lens": ct.Confidence(), "n_resamples": 99, "rng": 0}
    for statistic, pvalue in (
        (ct.KDEError(0.05), 1),
        (ct.KDEError(0.05, reference="mean"), 1 / 100),
        (ct.SmoothECE(), 1 / 100),
    ):
        assert ct.calibration_test(*ct.datasets.load_cifar10_vgg16(), statistic=statistic, **options).pvalue == pvalue


# What must not matter, and what must hold.


@st.composite
def problems(draw, one_sign=False):
    """Multiples of 1/8 with ties, zeros and ones; with one sign, no outcome lies below its prediction."""
    eighths = draw(st.lists(st.integers(0, 8), min_size=1, max_size=12))
    size = {"min_size": len(eighths), "max_size": len(eighths)}
    happened = [y or (one_sign and x > 0) for x, y in zip(eighths, draw(st.lists(st.booleans(), **size)), strict=True)]
    return np.array(happened, dtype=int), np.array(eighths) / 8


@PROFILE
@given(problem=problems(one_sign=True), bandwidth=st.sampled_from([None, 0.02, 0.2, 1.0]))
def test_residuals_of_one_sign_keep_their_mass(problem, bandwidth):
    """The kernel is a density on [0, 1] wherever its row lies: the error is the mean residual."""
    y_true, y_prob = problem
    mean = (y_true - y_prob).mean()
    assert error(y_true, y_prob, ct.SmoothECE(bandwidth)) == pytest.approx(mean, abs=1e-13)
    for kernel in ("triweight", "gaussian"):
        statistic = ct.KDEError(bandwidth or "silverman", kernel=kernel, reference="mean")
        assert error(y_true, y_prob, statistic) == pytest.approx(mean, abs=1e-12)


@PROFILE
@given(problem=problems())
def test_smooth_ece_decreases_in_the_bandwidth_to_the_mean_residual(problem):
    y_true, y_prob = problem
    values = [error(y_true, y_prob, ct.SmoothECE(sigma)) for sigma in (0.01, 0.03, 0.1, 0.3, 1.0)]
    assert all(left >= right - 1e-5 for left, right in pairwise(values))
    by_value = [abs((y_true - y_prob)[y_prob == p].sum()) for p in set(y_prob)]
    assert abs((y_true - y_prob).mean()) - 1e-12 <= values[-1]
    assert values[0] <= sum(by_value) / len(y_true) + 1e-12
    fixed = error(y_true, y_prob, ct.SmoothECE())
    assert error(y_true, y_prob, ct.SmoothECE(min(max(fixed, 0.0015), 1.0))) == pytest.approx(fixed, abs=1e-12)


@PROFILE
@given(problem=problems())
def test_the_other_event_is_the_same_problem(problem):
    y_true, y_prob = problem
    for statistic in (ct.SmoothECE(), ct.SmoothECE(0.1), ct.KDEError(0.1, reference="mean")):
        one, other = error(y_true, y_prob, statistic), error(1 - y_true, 1 - y_prob, statistic)
        np.testing.assert_allclose(one, other, **EXACT)


@PROFILE
@given(problem=problems(), data=st.data())
def test_a_whole_weight_is_a_repeated_row(problem, data):
    y_true, y_prob = problem
    size = {"min_size": len(y_true), "max_size": len(y_true)}
    times = data.draw(st.lists(st.integers(0, 3), **size).filter(any))
    for statistic in (ct.SmoothECE(), ct.SmoothECE(0.2), ct.KDEError(0.1), ct.KDEError(0.1, reference="mean")):
        weighted = error(y_true, y_prob, statistic, sample_weight=times)
        np.testing.assert_allclose(
            weighted, error(np.repeat(y_true, times), np.repeat(y_prob, times), statistic), **EXACT
        )


def test_more_rows_than_a_tile():
    """Rows are spread in tiles, whose tables are kept for some rows and made anew for many."""
    rng = np.random.default_rng(3)
    y_prob = rng.random(100)
    y_true = rng.random(100) < y_prob
    for times in (100, 700):
        value = error(np.tile(y_true, times), np.tile(y_prob, times), ct.SmoothECE(0.05))
        assert value == pytest.approx(error(y_true, y_prob, ct.SmoothECE(0.05)), rel=1e-11)


def test_a_rest_below_zero_counts_as_zero():
    """Float32 rows of a lens may leave the unit interval by rounding."""
    y_prob = np.array([[0.6000001, 0.4, 0.0], [0.3, 0.7000001, 0.0], [0.2, 0.5, 0.3]])
    for statistic in (ct.SmoothECE(), ct.KDEError()):
        assert np.isfinite(error([0, 1, 2], y_prob, statistic, lens=ct.WithinTop(2)))


# Level.

FALSE_ALARM = 1e-3


def level_cases():
    return [ct.KDEError(), ct.KDEError(0.05, kernel="gaussian", reference="mean"), ct.SmoothECE(n_points=500)]


@pytest.mark.slow
def test_level():
    """At most nominal, within the one-sided binomial limit, for 2,000 calibrated data sets of 200 rows."""
    levels, n_data_sets = (0.01, 0.05, 0.1), 2000
    rejected = np.zeros((len(level_cases()), len(levels)))
    for i in range(n_data_sets):
        rng = np.random.default_rng(i)
        y_prob = rng.beta(2, 0.7, size=200)
        y_true = rng.random(200) < y_prob
        for case, statistic in enumerate(level_cases()):
            pvalue = ct.calibration_test(y_true, y_prob, statistic=statistic, n_resamples=99, rng=10**6 + i).pvalue
            rejected[case] += pvalue <= np.array(levels)
    assert np.all(rejected <= binom.ppf(1 - FALSE_ALARM / rejected.size, n_data_sets, levels)), rejected


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ct.KDEError("scott"),
            r"`bandwidth` must be 'silverman' or a number from 6.1e-05 to 1, .* got 'scott'",
        ),
        (lambda: ct.KDEError(0.0), r"`bandwidth` must be 'silverman' or a number .* got 0.0"),
        (lambda: ct.KDEError(1e-6), r"`bandwidth` must be 'silverman' or a number from 6.1e-05 to 1"),
        (lambda: ct.KDEError(0.7, support=(0.5, 1)), r"`bandwidth` .* to 0.5, the width of `support`, got 0.7"),
        (lambda: ct.KDEError(math.nan), r"`bandwidth` must be .* got nan"),
        (lambda: ct.KDEError(np.array([0.1, 0.2])), r"`bandwidth` must be .* got array"),
        (lambda: ct.KDEError(kernel="cosine"), r"`kernel` must be one of 'triweight', 'gaussian', got 'cosine'"),
        (lambda: ct.KDEError(reference="grid"), r"`reference` must be one of 'point', 'mean', got 'grid'"),
        (lambda: ct.KDEError(support=(1, 0)), r"`support` must be a pair \(low, high\) .* got \(1, 0\)"),
        (lambda: ct.KDEError(support=0.5), r"`support` must be a pair \(low, high\) .* got 0.5"),
        (lambda: ct.KDEError(grid=(0.1, 1.0, 50)), r"`grid` must be \(start, stop, n_points\) with start <= 0.0"),
        (lambda: ct.KDEError(grid=(0.0, 1.0, 2)), r"`grid` must be .* at least two steps in `support`"),
        (lambda: ct.KDEError(grid=(0.0, 1.0, 9.5)), r"`grid` must be \(start, stop, n_points\)"),
        (lambda: ct.KDEError(grid=100), r"`grid` must be .* got 100"),
        (lambda: ct.SmoothECE(0.001), r"`bandwidth` must be None or a number from 3 / n_points to 1, got 0.001"),
        (lambda: ct.SmoothECE(1.5), r"`bandwidth` must be None or a number from 3 / n_points to 1, got 1.5"),
        (lambda: ct.SmoothECE("silverman"), r"`bandwidth` must be None or a number"),
        (lambda: ct.SmoothECE(n_points=20), r"`n_points` must be an integer >= 28, got 20"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_support_must_hold_the_predictions():
    with pytest.raises(
        ValueError, match=r"`support` must hold all probabilities of the event, got \(0.5, 1.0\) and 0.3"
    ):
        error([0, 1], [0.3, 0.7], ct.KDEError(support=(0.5, 1)))


# The curve.


@pytest.fixture(scope="module")
def curve():
    return ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), rng=0)


@pytest.mark.parametrize("reference", ["point", "mean"])
def test_the_error_is_the_average_local_error(reference):
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    statistic = ct.KDEError(0.05, reference=reference)
    curve = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1)
    assert curve.error == error(y_true, y_prob, statistic, lens=ct.Confidence())
    assert np.average(curve.local_error, weights=curve.density) == pytest.approx(curve.error, rel=1e-6)
    assert curve.density.sum() / 256 == pytest.approx(1, rel=1e-6)
    np.testing.assert_array_equal(curve.deviation, curve.observed - curve.expected)


def test_the_curve_equals_its_definition():
    """A direct sum over rows: linear binning on a fine grid hardly changes it."""
    rng = np.random.default_rng(0)
    y_prob = rng.uniform(0.3, 0.7, size=50)
    y_true = rng.random(50) < y_prob
    statistic = ct.KDEError(0.05, grid=(0.0, 1.0, 10_001))
    curve = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1, rng=0)
    kernel = np.clip(1 - np.square((curve.point[:, None] - y_prob) / 0.15), 0, None) ** 3
    inner = kernel.sum(axis=1) > 0.01
    np.testing.assert_allclose(curve.observed[inner], (kernel @ y_true / kernel.sum(axis=1))[inner], atol=1e-4)
    assert len(curve.point) <= 4096


def test_the_band_of_a_constant_prediction_is_that_of_a_mean():
    y_true = np.arange(400) % 4 == 0
    curve = ct.smooth_reliability_curve(y_true, np.full(400, 0.25), n_resamples=2000, rng=1)
    half = 1.6449 * math.sqrt(0.25 * 0.75 / 400)
    # Standard error of a 5 % quantile of 2,000 normal values, and counts come in steps of 1/400.
    slack = 4 * math.sqrt(0.05 * 0.95 / 2000) / 0.1031 * math.sqrt(0.25 * 0.75 / 400) + 1 / 400
    np.testing.assert_allclose(curve.observed, 0.25, **EXACT)
    np.testing.assert_allclose(curve.band_low, 0.25 - half, atol=slack)
    np.testing.assert_allclose(curve.band_high, 0.25 + half, atol=slack)


def test_the_curve_is_repeatable_and_says_what_it_is(curve):
    again = ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(curve.band_low, again.band_low)
    assert np.all((curve.band_low >= 0) & (curve.band_low <= curve.band_high) & (curve.band_high <= 1))
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["point", "observed", "expected", "deviation", "density", "band_low", "band_high"]
    assert len(frame) == len(curve.point)
    assert str(curve) in curve._repr_html_()
    assert (curve.lens, curve.statistic) == ("Confidence()", "KDEError(bandwidth=0.05)")


@pytest.mark.parametrize(("y_true", "y_prob"), [([1], [0.25]), ([0, 1], [0.0, 1.0]), ([1] * 300, [1.0] * 300)])
def test_a_curve_of_few_or_equal_rows(y_true, y_prob):
    curve = ct.smooth_reliability_curve(y_true, y_prob, n_resamples=20, rng=0)
    assert np.isfinite([curve.observed, curve.band_low, curve.band_high, curve.density]).all()
    str(curve)


def test_the_default_lens_is_the_event_of_two_classes():
    y_true, event = [0, 1, 1, 0], np.array([0.2, 0.7, 0.6, 0.4])
    one = ct.smooth_reliability_curve(y_true, event, rng=0)
    two = ct.smooth_reliability_curve(y_true, np.column_stack([1 - event, event]), rng=0)
    np.testing.assert_allclose(one.observed, two.observed, **EXACT)
    inside = ct.smooth_reliability_curve(y_true, event, rng=0, region=lambda p: p[:, 1] > 0.3)
    assert inside.n_samples == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": ct.ECE()}, r"`statistic` must be a KDEError such as KDEError\(bandwidth=0.05\), got ECE"),
        ({"lens": ct.TopK(2)}, r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes"),
        ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        ({"confidence_level": 1.0}, "`confidence_level` must lie strictly between 0 and 1, got 1.0"),
        ({"rng": "seed"}, "`rng` must be None"),
    ],
)
def test_bad_arguments_of_the_curve_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ct.smooth_reliability_curve([0, 1], [[0.5, 0.25, 0.25]] * 2, **options)


# The picture.


@pytest.mark.parametrize("style", ["deviation", "classical"])
def test_plotted_data_equal_the_curve(curve, style):
    ax = Figure(layout="constrained").subplots()
    assert ct.plot_smooth_reliability(curve, ax, style=style) is ax
    base = curve.expected if style == "deviation" else np.zeros(len(curve.point))
    (line,) = [line for line in ax.get_lines() if line.get_label() == "observed, bandwidth 0.05"]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.point, curve.observed - base]))
    (band,) = [found for found in ax.collections if found.get_label() == "90% bootstrap band, point by point"]
    corners = band.get_paths()[0].vertices
    for end in (curve.band_low, curve.band_high):
        assert {tuple(x) for x in np.column_stack([curve.point, end - base])} <= {tuple(x) for x in corners}


def test_labels_of_the_picture(curve):
    ax = ct.plot_smooth_reliability(curve, Figure(layout="constrained").subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted probability", "observed - predicted")
    assert ax.get_title() == "Confidence(), 10,000 rows"
    square = ct.plot_smooth_reliability(curve, Figure(layout="constrained").subplots(), style="classical")
    assert square.get_ylabel() == "observed frequency"
    assert square.get_box_aspect() == 1
    bare = ct.plot_smooth_reliability(curve, Figure(layout="constrained").subplots(), legend=False)
    assert bare.get_legend() is None


def test_a_line_breaks_where_no_prediction_is_near():
    curve = ct.smooth_reliability_curve([0, 1], [0.1, 0.9], statistic=ct.KDEError(0.02), rng=0)
    ax = ct.plot_smooth_reliability(curve, Figure(layout="constrained").subplots(), style="classical")
    line = next(line for line in ax.get_lines() if line.get_label().startswith("observed"))
    assert np.isnan(line.get_ydata()).sum() == 1


def test_no_global_style_is_touched_and_a_figure_is_made(curve):
    before = mpl.rcParams.copy()
    ax = ct.plot_smooth_reliability(curve)
    assert mpl.rcParams == before
    mpl.pyplot.close(ax.figure)


def test_bad_arguments_of_the_picture_are_refused(curve):
    with pytest.raises(ValueError, match="`style` must be one of 'deviation', 'classical', got 'round'"):
        ct.plot_smooth_reliability(curve, style="round")
    with pytest.raises(ValueError, match=r"`curve` must be a SmoothReliabilityCurve .*, got int"):
        ct.plot_smooth_reliability(3)
