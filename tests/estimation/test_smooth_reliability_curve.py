"""The smooth reliability curve: its definition, its band, and what it prints."""

import math

import numpy as np
import pytest

import caltest as ct
from tests.results.printed import printed

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def curve():
    return ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), rng=0)


def test_the_error_is_the_average_local_error():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    for reference in ("point", "mean"):
        statistic = ct.KDEError(0.05, reference=reference)
        found = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1)
        error = ct.calibration_error(y_true, y_prob, statistic=statistic, lens=ct.Confidence())
        assert found.error == error, reference
        assert np.average(found.local_error, weights=found.density) == pytest.approx(error, rel=1e-6), reference
        assert found.density.sum() / 256 == pytest.approx(1, rel=1e-6), reference
        np.testing.assert_array_equal(found.deviation, found.observed - found.expected)


def test_it_equals_its_definition():
    """A direct sum over observations: linear binning on a fine grid hardly changes it."""
    rng = np.random.default_rng(0)
    y_prob = rng.uniform(0.3, 0.7, size=50)
    y_true = rng.random(50) < y_prob
    statistic = ct.KDEError(0.05, grid=(0.0, 1.0, 10_001))
    found = ct.smooth_reliability_curve(y_true, y_prob, statistic=statistic, n_resamples=1, rng=0)
    kernel = np.clip(1 - np.square((found.point[:, None] - y_prob) / 0.15), 0, None) ** 3
    inner = kernel.sum(axis=1) > 0.01
    np.testing.assert_allclose(found.observed[inner], (kernel @ y_true / kernel.sum(axis=1))[inner], atol=1e-4)
    assert len(found.point) <= 4096


def test_the_band_of_a_constant_prediction_is_that_of_a_mean():
    y_true = np.arange(400) % 4 == 0
    found = ct.smooth_reliability_curve(y_true, np.full(400, 0.25), n_resamples=2000, rng=1)
    half = 1.6449 * math.sqrt(0.25 * 0.75 / 400)
    # Standard error of a 5 % quantile of 2,000 normal values, and counts come in steps of 1/400.
    slack = 4 * math.sqrt(0.05 * 0.95 / 2000) / 0.1031 * math.sqrt(0.25 * 0.75 / 400) + 1 / 400
    np.testing.assert_allclose(found.observed, 0.25, **EXACT)
    np.testing.assert_allclose(found.band_low, 0.25 - half, atol=slack)
    np.testing.assert_allclose(found.band_high, 0.25 + half, atol=slack)


def test_it_is_repeatable_and_makes_a_frame(curve):
    again = ct.smooth_reliability_curve(*ct.datasets.load_cifar10_vgg16(), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(curve.band_low, again.band_low)
    assert np.all((curve.band_low >= 0) & (curve.band_low <= curve.band_high) & (curve.band_high <= 1))
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["point", "observed", "expected", "deviation", "density", "band_low", "band_high"]
    assert len(frame) == len(curve.point)
    assert (curve.lens, curve.test_statistic) == (ct.Confidence(), ct.KDEError(bandwidth=0.05))


def test_few_or_equal_predictions():
    for y_true, y_prob in (([1], [0.25]), ([0, 1], [0.0, 1.0]), ([1] * 300, [1.0] * 300)):
        found = ct.smooth_reliability_curve(y_true, y_prob, n_resamples=20, rng=0)
        assert np.isfinite([found.observed, found.band_low, found.band_high, found.density]).all(), len(y_true)
        assert printed(found)


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
The calibration error is 0.0981. Its largest part is near the prediction 0.9277,
where the event has the frequency 0.9977 (90 % bootstrap band 0.9949 to 1.0000).

  Curve: 233 points from 0.0918 to 0.9980, KDEError(bandwidth=0.05), bandwidth
    0.05.
  Band: 50 bootstrap samples, pointwise. It shows how much the curve varies,
    including the bias of smoothing, not where the calibration function is.
"""


def print_it():
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.smooth_reliability_curve(y_true, models["logistic_regression"], n_resamples=50, rng=0)


def test_what_is_printed():
    assert printed(print_it()) == PRINTED.strip("\n")
