"""Isotonic curves agree with scikit-learn, score_decomposition, calibration_band and simulated labels."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import caltest as ct


def problem(n=400, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    event = rng.beta(0.7, 0.7, n)
    event = event if digits is None else np.round(event, digits)
    return (rng.random(n) < event).astype(int), event


@pytest.mark.parametrize("digits", [None, 2, 1])
def test_the_curve_is_that_of_scikit_learn(digits):
    y_true, event = problem(digits=digits)
    curve = ct.isotonic_curve(y_true, event, n_resamples=9, rng=0)
    np.testing.assert_array_equal(curve.score, np.unique(event))
    fit = IsotonicRegression().fit(event, y_true)
    np.testing.assert_allclose(curve.recalibrated, fit.predict(curve.score), atol=1e-12)


@pytest.mark.slow(few_draws=True)
def test_the_consistency_band_is_that_of_scikit_learn():
    """Quantiles of fits to other simulated labels: the share of them inside, within 4 standard errors."""
    y_true, event = problem(n=150)
    curve = ct.isotonic_curve(y_true, event, confidence_level=0.8, n_resamples=1999, rng=0)
    rng = np.random.default_rng(5)
    fits = [IsotonicRegression().fit_transform(event, rng.random(150) < event)[np.argsort(event)] for _ in range(300)]
    below, above = (np.array(fits) < curve.lower).mean(axis=0), (np.array(fits) > curve.upper).mean(axis=0)
    error = 4 * np.sqrt(0.1 * 0.9 * (1 / 300 + 1 / 1999))
    assert below.max() < 0.1 + error
    assert above.max() < 0.1 + error


@pytest.mark.slow
def test_the_p_value_has_its_level():
    """Of 400 calibrated models 20 % have a p-value of at most 0.2, within 4 standard errors."""
    found = [ct.isotonic_curve(*problem(60, seed), n_resamples=99, rng=seed).pvalue <= 0.2 for seed in range(400)]
    assert abs(np.mean(found) - 0.2) < 4 * np.sqrt(0.16 / 400)


def test_the_confidence_band_is_that_of_calibration_band():
    y_true, event = problem(n=200, digits=3)
    curve = ct.isotonic_curve(y_true, event, band="confidence", confidence_level=0.95, n_resamples=9, rng=0)
    band = ct.calibration_band(y_true, event, confidence_level=0.95, n_resamples=9, rng=0)
    np.testing.assert_allclose(curve.lower, band.lower)
    np.testing.assert_allclose(curve.upper, band.upper)
    np.testing.assert_array_equal(curve.outside, (band.lower > band.score) | (band.upper < band.score))
    assert curve.digits is None
    assert "if that does not decrease (valid at every sample size)" in " ".join(str(curve).split())


def test_the_decomposition_and_the_noise_floor_are_those_of_the_package():
    y_true, event = problem()
    curve = ct.isotonic_curve(y_true, event, n_resamples=499, rng=0)
    for score in ("brier", "log"):
        whole = ct.score_decomposition(y_true, event, score=score)
        assert getattr(curve, score).to_dict() == whole.to_dict()
    floor = ct.noise_floor(event, statistic=ct.statistics.IsotonicError(), n_resamples=1999, rng=1)
    assert abs(curve.noise_floor - floor.mean) < 4 * floor.std * np.sqrt(1 / 499 + 1 / 1999)
    assert curve.density.sum() == pytest.approx(1.0)


@pytest.mark.slow(few_draws=True)
def test_many_predictions_are_thinned_and_steps_stay():
    y_true, event = problem(n=30_000)
    for band in ("consistency", "confidence"):
        curve = ct.isotonic_curve(y_true, event, band=band, n_resamples=19, rng=0)
        assert len(curve.score) < 2000
        fit = IsotonicRegression().fit(event, y_true)
        np.testing.assert_allclose(curve.recalibrated, fit.predict(curve.score), atol=1e-12)
        steps = np.unique(fit.predict(event).round(9))
        np.testing.assert_array_equal(np.unique(curve.recalibrated.round(9)), steps)
        assert np.all(curve.lower <= curve.upper)
    assert curve.digits == 4


@pytest.mark.parametrize(
    ("y_true", "y_prob"),
    [
        ([1], [0.3]),
        ([0, 1], [0.3, 0.3]),
        ([0, 1], [0.0, 1.0]),
        ([1, 0], [0.0, 1.0]),
        (np.arange(5), np.eye(5)),
        ([3] * 4, np.full((4, 1000), 1e-3)),
    ],
)
def test_odd_data(y_true, y_prob):
    for band in ("consistency", "confidence"):
        curve = ct.isotonic_curve(y_true, y_prob, band=band, n_resamples=19, rng=0)
        assert np.isfinite([curve.lower, curve.upper, curve.recalibrated]).all()
        assert curve.conclusion.startswith("Calibration is ")
        assert str(curve)


def test_refusals():
    y_true, event = problem(20)
    with pytest.raises(ValueError, match="`band` must be one of 'consistency', 'confidence', got 'none'"):
        ct.isotonic_curve(y_true, event, band="none")
    with pytest.raises(ValueError, match="`confidence_level` must lie strictly between 0 and 1"):
        ct.isotonic_curve(y_true, event, confidence_level=1)
    with pytest.raises(ValueError, match="`lens` must have two outcomes"):
        ct.isotonic_curve([0, 1], np.full((2, 3), 1 / 3), lens=ct.Canonical())
