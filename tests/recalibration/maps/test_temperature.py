"""Temperature scaling: the temperature of the largest likelihood and of the smallest error, and its limits."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import caltest
from caltest.hypothesis_tests._gce_table import gce_metrics
from caltest.predictions.inputs import _validation
from caltest.recalibration import TemperatureScaling
from caltest.recalibration.maps._logits import FLOOR
from caltest.recalibration.maps._temperature import likelihood_derivatives
from caltest.results import CalibrationWarning
from tests.recalibration.maps.test_base import over_confident
from tests.reference.cases import mostly_slow


def mean_log_score(log_temperature, prob, y_true, weight=None):
    tempered = prob ** np.exp(-log_temperature)
    tempered /= tempered.sum(axis=1, keepdims=True)
    return -np.average(np.log(tempered[np.arange(len(prob)), y_true]), weights=weight)


@pytest.mark.parametrize(("n_classes", "sharper"), mostly_slow([(2, 0.4), (3, 2.0), (10, 1.0), (50, 3.0)], 3))
def test_the_temperature_is_that_of_a_grid_search(n_classes, sharper):
    prob, y_true = over_confident(500, n_classes, sharper=sharper)
    weight = np.random.default_rng(0).random(500)
    for given in (None, weight):
        found = np.log(TemperatureScaling().fit(prob, y_true, given).temperature_)
        grid = np.linspace(-2, 4, 301)
        values = [mean_log_score(t, prob, y_true, given) for t in grid]
        assert abs(found - grid[np.argmin(values)]) <= 0.02
        exact = minimize_scalar(mean_log_score, (found - 0.1, found + 0.1), args=(prob, y_true, given), tol=1e-12)
        assert found == pytest.approx(exact.x, abs=1e-6)
        assert mean_log_score(found, prob, y_true, given) <= min(values)


def test_derivatives_are_those_of_finite_differences():
    prob, y_true = over_confident(40, 5)
    logits, weight = np.log(prob), np.random.default_rng(0).random(40)
    for inverse in (0.2, 1.0, 3.0):
        _, slope, curvature = likelihood_derivatives(logits, y_true, weight, inverse)
        low, high = (mean_log_score(-np.log(inverse + h), prob, y_true, weight) for h in (-1e-5, 1e-5))
        assert slope == pytest.approx((high - low) * weight.sum() / 2e-5, rel=1e-5)
        low, high = (likelihood_derivatives(logits, y_true, weight, inverse + h)[1] for h in (-1e-5, 1e-5))
        assert curvature == pytest.approx((high - low) / 2e-5, rel=1e-5)


def test_scaled_and_shifted_logits_have_the_same_predictions():
    prob, y_true = over_confident(300, 4)
    logits = np.log(prob)
    wanted = TemperatureScaling(input="logits").fit(logits, y_true)
    for factor in (1e-3, 7.0, 1e4):
        given = factor * (logits + np.arange(300)[:, None] / 300)
        found = TemperatureScaling(input="logits").fit(given, y_true)
        assert found.temperature_ == pytest.approx(factor * wanted.temperature_, rel=1e-9)
        assert found.predict_proba(given) == pytest.approx(wanted.predict_proba(logits), abs=1e-9)


@pytest.mark.slow(few_draws=True)
def test_an_error_is_smallest_at_its_temperature():
    """No temperature of a fine grid around the one of the likelihood has a smaller error, but for narrow dips."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    y_true, prob = y_true[:400], y_prob[:400].astype(float)
    likely = TemperatureScaling().fit(prob, y_true).temperature_
    fifteen = caltest.ECE(caltest.EqualWidth(15))
    objectives = (caltest.KS(), caltest.SquaredL2(), gce_metrics()[7])
    for statistic, lens in [*((one, None) for one in objectives), (fifteen, caltest.Confidence())]:
        method = TemperatureScaling(statistic, lens=lens).fit(prob, y_true)

        def error(temperature, statistic=statistic, lens=lens):
            tempered = np.maximum(prob, FLOOR) ** (1 / temperature)
            tempered /= tempered.sum(axis=1, keepdims=True)
            return caltest.calibration_error(y_true, tempered, statistic=statistic, lens=lens)

        at = error(method.temperature_)
        assert at <= error(likely)
        assert at <= min(map(error, likely * np.geomspace(0.1, 10, 16))), statistic


@pytest.mark.slow
def test_every_metric_of_nixon_can_be_minimised():
    prob, y_true = over_confident(1_000, 5)
    before = TemperatureScaling().fit(prob, y_true)
    for metric in gce_metrics():
        found = TemperatureScaling(metric).fit(prob, y_true)
        errors = [caltest.calibration_error(y_true, m.predict_proba(prob), statistic=metric) for m in (found, before)]
        assert errors[0] <= errors[1] + 1e-12


def test_separable_labels_and_reversed_ones_stop_at_a_limit():
    prob, _ = over_confident(200, 3)
    spread = np.sqrt(np.log(prob).var(axis=1).mean())
    with pytest.warns(CalibrationWarning, match="temperature goes to 0: it was set to"):
        sharp = TemperatureScaling().fit(prob, prob.argmax(axis=1))
    assert sharp.temperature_ == pytest.approx(spread / 100)
    with pytest.warns(CalibrationWarning, match="columns and labels belong together"):
        flat = TemperatureScaling().fit(prob, prob.argmin(axis=1))
    assert flat.temperature_ == pytest.approx(100 * spread)
    assert np.abs(flat.predict_proba(prob) - 1 / 3).max() < 0.05
    with pytest.warns(CalibrationWarning, match="no temperature changes them: it is 1"):
        assert TemperatureScaling().fit(np.full((9, 3), 1 / 3), np.arange(9) % 3).temperature_ == 1


def test_one_and_two_observations_have_a_temperature():
    with pytest.warns(CalibrationWarning, match="temperature goes to 0"):
        assert TemperatureScaling().fit([[0.2, 0.8]], [1]).temperature_ > 0
    found = TemperatureScaling().fit([[0.2, 0.8], [0.2, 0.8], [0.2, 0.8]], [1, 1, 0])
    assert found.predict_proba([[0.2, 0.8]]) == pytest.approx(np.array([[1, 2]]) / 3, abs=1e-9)


def test_predictions_of_exactly_0_and_1_have_the_floor():
    """One-hot predictions that are right in 80 of 100 cases get the confidence 0.8; other zeros are shared."""
    y_true = np.arange(100) % 4
    guess = np.where(np.arange(100) < 80, y_true, (y_true + 1) % 4)
    one_hot = np.eye(4)[guess]
    for given in (one_hot, one_hot.astype(np.float32)):
        found = TemperatureScaling().fit(given, y_true)
        prob = found.predict_proba(given)
        assert prob.max(axis=1) == pytest.approx(0.8, abs=1e-6)
        assert found.temperature_ == pytest.approx(-np.log(FLOOR) / np.log(0.8 / (0.2 / 3)), rel=1e-6)
    tiny = TemperatureScaling().fit(np.maximum(one_hot, 1e-300), y_true)
    assert tiny.temperature_ == pytest.approx(found.temperature_, rel=1e-6)


def test_rare_events_and_constant_predictions():
    event = np.full(5_000, 0.004)
    y_true = (np.arange(5_000) < 5).astype(int)
    assert TemperatureScaling().fit(event, y_true).predict_proba(event)[:, 1] == pytest.approx(0.001, rel=1e-6)


def test_large_float32_stays_and_has_the_temperature_of_doubles(monkeypatch):
    monkeypatch.setattr(_validation, "MANY", 20)
    monkeypatch.setattr(_validation, "LARGE", 1_000)
    prob, y_true = over_confident(500, 30, dtype=np.float32)
    single = TemperatureScaling().fit(prob, y_true)
    assert single.predict_proba(prob).dtype == np.float32
    double = TemperatureScaling().fit(prob.astype(np.float64), y_true)
    assert single.temperature_ == pytest.approx(double.temperature_, rel=1e-6)
