"""Beta calibration: its published definition by a general optimiser, and the limits of its parameters."""

import numpy as np
import pytest
from scipy.optimize import minimize

from caltest.recalibration import BetaCalibration, PlattScaling
from tests.recalibration.maps.test_one_vs_rest import over_confident
from tests.reference.cases import mostly_slow


def curve(s, a, b, c):
    """Equation of the abstract of Kull et al. (2017), 1 / (1 + 1 / (e^c s^a / (1 - s)^b))."""
    return 1 / (1 + 1 / (np.exp(c) * s**a / (1 - s) ** b))


def slow(s, label, weight, parameters):
    """The parameters of greatest likelihood with a, b >= 0."""

    def loss(free):
        a, b = (free[0], free[0]) if parameters == "am" else free[:2]
        c = (a - b) * np.log(2) if parameters == "ab" else free[-1]
        prob = curve(s, a, b, c)
        return -np.average(np.log(np.where(label, prob, 1 - prob)), weights=weight)

    bounds = {"abm": [(0, None), (0, None), (None, None)], "am": [(0, None), (None, None)], "ab": [(0, None)] * 2}
    found = minimize(loss, np.ones(len(bounds[parameters])) * 0.5, bounds=bounds[parameters], tol=1e-14)
    return loss(found.x), loss


@pytest.mark.parametrize("parameters", mostly_slow(["abm", "am", "ab"]))
@pytest.mark.parametrize("power", [1.0, 0.2, -1.0, -0.3])
def test_it_has_the_greatest_likelihood(parameters, power):
    """Labels that follow s^power / (...) ask for slopes of either sign, of which the negative ones are not allowed."""
    rng = np.random.default_rng(0)
    s = rng.uniform(0.01, 0.99, 400)
    label = rng.random(400) < curve(s, 2 * power, 0.5, -0.5)
    weight = rng.random(400)
    fitted = BetaCalibration(parameters).fit(s, label, weight)
    a, b, c = fitted.a_[0], fitted.b_[0], fitted.c_[0]
    assert min(a, b) >= 0
    wanted, loss = slow(s, label, weight, parameters)
    found = loss({"abm": [a, b, c], "am": [a, c], "ab": [a, b]}[parameters])
    assert found == pytest.approx(wanted, abs=1e-8)
    np.testing.assert_allclose(fitted.predict_proba(s)[:, 1], curve(s, a, b, c), atol=1e-12)
    if parameters == "am":
        assert a == b
    if parameters == "ab":
        assert curve(0.5, a, b, c) == pytest.approx(0.5)


@pytest.mark.slow(few_draws=True)
def test_calibrated_predictions_are_in_the_family():
    rng = np.random.default_rng(0)
    s = rng.uniform(0.01, 0.99, 200_000)
    fitted = BetaCalibration().fit(s, rng.random(200_000) < s)
    features = np.column_stack([np.log(s), -np.log1p(-s), np.ones_like(s)])
    error = np.sqrt(np.diag(np.linalg.inv((features.T * s * (1 - s)) @ features)))  # by the information at a = b = 1
    assert np.all(np.abs([fitted.a_[0] - 1, fitted.b_[0] - 1, fitted.c_[0]]) < 4 * error)


def test_separated_labels_get_the_targets_of_platt():
    event = np.linspace(0.1, 0.9, 20)
    beta = BetaCalibration("am").fit(event, event > 0.5)
    platt = PlattScaling().fit(event, event > 0.5)
    np.testing.assert_allclose(beta.predict_proba(event), platt.predict_proba(event), atol=1e-9)


def test_it_keeps_the_ranking_of_observations():
    prob, y_true = over_confident(300, 2)
    order = np.argsort(prob[:, 1])
    assert (np.diff(BetaCalibration().fit(prob, y_true).predict_proba(prob)[order, 1]) >= 0).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="`parameters`"):
        BetaCalibration("bm").fit([0.1, 0.9], [0, 1])
