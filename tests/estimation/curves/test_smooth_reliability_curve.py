"""The smooth reliability curve: its definition, its band, and what it prints."""

import math

import numpy as np
import pytest

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._smoothing import KERNELS
from tests.results.printed import printed

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def curve():
    return ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), n_resamples=99, rng=0)


def test_the_error_is_the_average_local_error():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    for reference in ("point", "mean"):
        statistic = ct.statistics.KDEError(0.05, reference=reference)
        found = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1)
        error = ct.calibration_error(y_true, y_prob, statistic=statistic, lens=ct.Confidence())
        assert found.error == error, reference
        assert np.average(found.local_error, weights=found.density) == pytest.approx(error, rel=1e-6), reference
        assert found.density.sum() / 256 == pytest.approx(1, rel=1e-6), reference
        np.testing.assert_array_equal(found.observed, np.clip(found.point + found.deviation, 0, 1))


def test_it_equals_its_definition():
    """A direct sum over observations: linear binning on a fine grid hardly changes it."""
    rng = np.random.default_rng(0)
    y_prob = rng.uniform(0.3, 0.7, size=50)
    y_true = rng.random(50) < y_prob
    for reference in ("point", "mean"):
        statistic = ct.statistics.KDEError(0.05, grid=(0.0, 1.0, 5_001), reference=reference)
        found = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1, rng=0)
        kernel = np.clip(1 - np.square((found.point[:, None] - y_prob) / 0.15), 0, None) ** 3
        inner = kernel.sum(axis=1) > 0.01
        expected = (kernel @ y_true / kernel.sum(axis=1))[inner] - found.point[inner]
        if reference == "mean":
            expected = (kernel @ (y_true - y_prob) / kernel.sum(axis=1))[inner]
        np.testing.assert_allclose(found.deviation[inner], expected, atol=1e-4, err_msg=reference)
        assert len(found.point) <= 4096


@pytest.mark.slow(few_draws=True)
def test_the_bands_of_a_constant_prediction_are_those_of_a_mean():
    """The band under calibration is around the prediction, the confidence band around the frequency."""
    y_true = np.arange(400) % 4 == 0
    for simultaneous in (False, True):  # the curve is one number
        found = ct.smooth_reliability_curve(
            y_true, np.full(400, 0.3), n_resamples=2000, rng=1, simultaneous=simultaneous
        )
        np.testing.assert_allclose(found.deviation, -0.05, atol=1e-9)
        for p, low, high, around in (
            (0.3, found.calibrated_lower, found.calibrated_upper, found.point),
            (0.25, found.confidence_lower, found.confidence_upper, found.observed),
        ):
            std = math.sqrt(p * (1 - p) / 400)
            # Standard error of a 5 % quantile of 2,000 normal values, and counts come in steps of 1/400.
            slack = 4 * math.sqrt(0.05 * 0.95 / 2000) / 0.1031 * std + 1 / 400
            drawn = high - low < 1
            assert drawn.any()
            np.testing.assert_allclose(low[drawn], (around - 1.6449 * std)[drawn], atol=slack)
            np.testing.assert_allclose(high[drawn], (around + 1.6449 * std)[drawn], atol=slack)


CASES = [(1.0, 1.0), (1.0, 1.6), (0.5, 1.0)]
"""Parameter of the beta distribution of the predictions, and the power of them that is the frequency."""


def smoothed_truth(curve, y_prob, truth):
    """The calibration function as the curve smooths it: a direct sum."""
    kernel = np.clip(1 - np.square((curve.point[:, None] - y_prob) / 0.15), 0, None) ** 3
    images = [np.clip(1 - np.square((curve.point[:, None] - x) / 0.15), 0, None) ** 3 for x in (-y_prob, 2 - y_prob)]
    kernel = kernel + sum(images)
    return np.clip(curve.point + kernel @ (truth - y_prob) / np.maximum(kernel.sum(axis=1), 1e-300), 0, 1)


def predictions_of(kind, n, rng):
    return {"rare": rng.beta(0.5, 500, n), "uniform": rng.random(n), "sharp": rng.beta(0.3, 0.3, n)}[kind]


def test_the_confidence_band_does_not_collapse_without_events():
    """Resampled observations without an event have none either: their band had nearly no width."""
    y_prob = np.random.default_rng(0).beta(0.5, 500, 500)
    for y_true in (np.zeros(500), np.arange(500) == 250):
        for statistic in (None, ct.statistics.KDEError(0.05)):
            curve = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=19, rng=0)
            at = int(curve.density.argmax())
            assert curve.confidence_upper[at] - curve.confidence_lower[at] > (1 - 0.05 ** (1 / 500)) / 2
            assert curve.confidence_lower[at] <= smoothed_truth(curve, y_prob, y_prob)[at] <= curve.confidence_upper[at]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n_sets", "kinds", "n_resamples"),
    [(50, ("rare",), 19), pytest.param(1000, ("rare", "uniform", "sharp"), 99, marks=pytest.mark.nightly)],
)
def test_coverage_of_rare_and_sharp_predictions(n_sets, kinds, n_resamples):
    """Under calibration the whole curve is inside in 90 % of sets; the confidence band holds 90 % of the truth."""
    slack, n = 4 * math.sqrt(0.09 / n_sets), 200
    for kind in kinds:
        rng, left, held, densest = np.random.default_rng(6), [], [], []
        for _ in range(n_sets):
            y_prob = predictions_of(kind, n, rng)
            curve = ct.smooth_reliability_curve(
                rng.random(n) < y_prob, y_prob, n_resamples=n_resamples, rng=rng, simultaneous=True
            )
            left.append(curve.outside.any())
            true = smoothed_truth(curve, y_prob, y_prob)
            drawn = curve.confidence_upper - curve.confidence_lower < 1
            inside = (curve.confidence_lower <= true + 1e-4) & (true <= curve.confidence_upper + 1e-4)
            held.append(inside[drawn].mean())
            densest.append(inside[curve.density.argmax()])
        assert np.mean(left) <= 0.1 + slack, kind
        assert np.mean(held) >= 0.9 - slack, kind
        assert np.mean(densest) >= 0.9 - slack, kind


@pytest.mark.parametrize("kernel", ["triweight", "gaussian"])
def test_squared_kernels_equal_sums_over_observations(kernel):
    """Each observation with its mirror images; it is moved by at most a 64th of the bandwidth."""
    rng = np.random.default_rng(1)
    position = np.sort(np.append(rng.beta(0.4, 0.6, 60), [0.0, 1.0]))
    statistic = ct.statistics.KDEError(0.1, kernel=kernel)
    sample = make_sample(rng.random(62) < position, position)
    smoother = statistic.smoother(sample)
    squared = smoother.squared_kernels(sample.event, np.arange(len(smoother.point)))
    density = KERNELS[kernel][1]
    weight = sum(
        density((smoother.point[:, None] - sign * position - shift) / 0.1) for sign in (1, -1) for shift in (-2, 0, 2)
    )
    np.testing.assert_allclose(
        squared.effective_number(), weight.sum(axis=1) ** 2 / (weight**2).sum(axis=1), rtol=0.1, atol=0.2
    )
    variance = (weight**2 @ (position * (1 - position))) / weight.sum(axis=1) ** 2
    np.testing.assert_allclose(squared.variance(position * (1 - position)), variance, rtol=0.1, atol=1e-3)


def test_too_few_draws_have_no_band_under_calibration():
    rng = np.random.default_rng(2)
    y_prob = rng.random(200)
    y_true = rng.random(200) < y_prob
    for simultaneous, few in ((True, 8), (False, 18)):  # 1 / 9 > 0.1, and 1 / 19 > 0.05
        for n_resamples, width in ((few, 1.0), (few + 1, 0.0)):
            curve = ct.smooth_reliability_curve(
                y_true, y_prob, n_resamples=n_resamples, simultaneous=simultaneous, rng=0
            )
            middle = len(curve.point) // 2
            assert (curve.calibrated_upper - curve.calibrated_lower == 1)[middle] == bool(width)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n_sets", "cases"),
    [
        (4, CASES),
        pytest.param(60, CASES, marks=pytest.mark.nightly),
    ],
)
def test_coverage_of_both_bands(n_sets, cases):
    """The band under calibration holds calibrated curves, the confidence band the smoothed truth, at 90 %."""
    error = 4 * math.sqrt(0.9 * 0.1 / n_sets)  # of one point; that of the average over points is smaller
    for spread, power in cases:
        rng = np.random.default_rng(5)
        inside = {"calibrated": [], "calibrated, all": [], "truth": []}
        for _ in range(n_sets):
            y_prob = rng.beta(spread, spread, 800)
            truth = y_prob**power
            y_true = rng.random(800) < truth
            for name, simultaneous in (("", False), (", all", True)):
                curve = ct.smooth_reliability_curve(y_true, y_prob, n_resamples=99, rng=rng, simultaneous=simultaneous)
                true = smoothed_truth(curve, y_prob, truth)
                held = (curve.confidence_lower <= true + 1e-4) & (true <= curve.confidence_upper + 1e-4)
                inside["truth"].append(held.mean())
                inside["calibrated" + name].append(
                    not curve.outside.any() if simultaneous else 1 - curve.outside.mean()
                )
        for name, values in inside.items():
            if name.startswith("truth") or power == 1:
                assert np.mean(values) >= 0.9 - error, (spread, power, name, np.mean(values))
            else:
                assert np.mean(values) < 0.6, (spread, power, name)


@pytest.mark.slow(few_draws=True)
def test_calibrated_models_are_not_shown_as_miscalibrated():
    """The published curve smooths frequencies: with sharp predictions it is far from the diagonal."""
    rng = np.random.default_rng(0)
    y_prob = rng.beta(0.3, 0.3, 20_000)
    y_true = rng.random(20_000) < y_prob
    centred = ct.smooth_reliability_curve(y_true, y_prob, rng=0, n_resamples=99)
    published = ct.smooth_reliability_curve(
        y_true, y_prob, statistic=ct.statistics.KDEError(0.05), rng=0, n_resamples=99
    )
    away = (published.confidence_lower > published.point) | (published.confidence_upper < published.point)
    assert away.mean() > 0.3
    assert centred.outside.mean() < 0.3
    assert published.outside.mean() < 0.3  # its band under calibration has the same bias


@pytest.mark.slow(few_draws=True)
def test_it_is_repeatable_and_makes_a_frame(curve):
    again = ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), n_resamples=99, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(curve.confidence_lower, again.confidence_lower)
    np.testing.assert_array_equal(curve.calibrated_upper, again.calibrated_upper)
    for low, high in (
        (curve.calibrated_lower, curve.calibrated_upper),
        (curve.confidence_lower, curve.confidence_upper),
    ):
        assert np.all((low >= 0) & (low <= high) & (high <= 1))
    frame = curve.to_frame()
    assert frame.columns.tolist() == [
        *("point", "observed", "deviation", "density", "calibrated_lower", "calibrated_upper"),
        *("confidence_lower", "confidence_upper", "bootstrap_median", "outside"),
    ]
    assert len(frame) == len(curve.point)
    assert (curve.lens, curve.test_statistic) == (
        ct.Confidence(),
        ct.statistics.KDEError(bandwidth=0.05, reference="mean"),
    )


def test_few_or_equal_predictions():
    for y_true, y_prob in (([1], [0.25]), ([0, 1], [0.0, 1.0]), ([1] * 300, [1.0] * 300)):
        found = ct.smooth_reliability_curve(y_true, y_prob, n_resamples=20, rng=0)
        assert np.isfinite([found.observed, found.calibrated_lower, found.confidence_upper, found.density]).all(), len(
            y_true
        )
        assert printed(found)


@pytest.mark.slow(few_draws=True)
def test_the_default_lens_is_the_event_of_two_classes():
    y_true, event = [0, 1, 1, 0], np.array([0.2, 0.7, 0.6, 0.4])
    one = ct.smooth_reliability_curve(y_true, event, rng=0)
    two = ct.smooth_reliability_curve(y_true, np.column_stack([1 - event, event]), rng=0)
    np.testing.assert_allclose(one.observed, two.observed, **EXACT)
    inside = ct.smooth_reliability_curve(y_true, event, rng=0, region=lambda p: p[:, 1] > 0.3)
    assert inside.n_samples == 3


def test_refusals():
    both = (TypeError, ValueError)
    for error, options, message in (
        (
            TypeError,
            {"statistic": ct.ECE()},
            r"`statistic` must be a KDEError such as KDEError\(bandwidth=0.05\), got E",
        ),
        (
            ValueError,
            {"lens": ct.TopK(2)},
            r"`lens` must have two outcomes, such as Confidence\(\), got TopK\(2\) with 3",
        ),
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        (ValueError, {"confidence_level": 1.0}, "`confidence_level` must lie strictly between 0 and 1, got 1.0"),
        (both, {"rng": "seed"}, "`rng` must be None"),
    ):
        with pytest.raises(error, match=message):
            ct.smooth_reliability_curve([0, 1], [[0.5, 0.25, 0.25]] * 2, **options)


PRINTED = """
Smooth reliability curve (confidence, 899 observations)
The curve is outside the 90 % band of a calibrated model at 90 % of the
predictions (10 % are expected if the model is calibrated). The calibration
error is 0.08555. Its largest part is near the prediction 0.9980, where the
event has the frequency 1.0000 (90 % confidence band 1.0000 to 1.0000; 0.9850 to
1.0000 if the model is calibrated).

  Curve: 233 points from 0.0918 to 0.9980, KDEError(bandwidth=0.05,
    reference='mean'), bandwidth 0.05; smoothed are differences from the
    predictions.
  Band under calibration, point by point: 50 Monte Carlo draws of the labels,
    predictions fixed.
  Confidence band, point by point: Clopper-Pearson intervals for the effective
    number of observations near each point. It contains the equally smoothed
    calibration function.
"""


def print_it():
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.smooth_reliability_curve(y_true, models["logistic_regression"], n_resamples=50, rng=0)


def test_what_is_printed():
    assert printed(print_it()) == PRINTED.strip("\n")


def test_the_median_of_the_bootstrap_curves_lies_inside_their_band():
    """It is the middle of the same draws, and nan only where too few observations are near for a band."""
    y_true, y_prob = (part[:400] for part in ct.datasets.load_cifar10_vgg16())
    curve = ct.smooth_reliability_curve(y_true, y_prob, n_resamples=99, rng=0)
    known = np.isfinite(curve.bootstrap_median)
    assert known.any()
    assert (curve.bootstrap_median >= curve.confidence_lower)[known].all()
    assert (curve.bootstrap_median <= curve.confidence_upper)[known].all()
    assert (curve.confidence_upper - curve.confidence_lower == 1)[~known].all()
    # At the point with most observations the median of 99 curves is the estimate up to 4 standard errors of a median.
    at = int(curve.density.argmax())
    spread = (curve.confidence_upper - curve.confidence_lower)[at] / (2 * 1.645)
    assert abs(curve.bootstrap_median - curve.observed)[at] < 4 * 1.253 * spread / np.sqrt(99)


def test_the_median_is_that_of_curves_of_resampled_observations():
    """A naive twin: Nadaraya-Watson estimates of observations drawn with replacement, at one point."""
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    curve = ct.smooth_reliability_curve(
        y, p, statistic=ct.statistics.KDEError(0.1, reference="point"), n_resamples=999, rng=0
    )
    at = int(np.abs(curve.point - 0.5).argmin())
    weight = np.exp(-0.5 * ((p - curve.point[at]) / 0.1) ** 2)
    drawn = rng.integers(300, size=(2000, 300))
    found = (weight[drawn] * y[drawn]).sum(axis=1) / weight[drawn].sum(axis=1)
    error = 1.253 * found.std() * np.sqrt(1 / 2000 + 1 / 999)
    assert abs(curve.bootstrap_median[at] - np.median(found)) < 4 * error + 0.1 / 64  # a score is moved by that
