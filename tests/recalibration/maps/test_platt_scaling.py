"""Platt scaling: targets, and scikit-learn's sigmoid."""

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration

from caltest.recalibration import BetaCalibration, PlattScaling
from tests.recalibration.maps.test_one_vs_rest import over_confident


def log_odds(prob):
    return np.log(prob) - np.log1p(-prob)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_each_class_has_the_sigmoid_of_scikit_learn(n_classes):
    prob, y_true = over_confident(500, n_classes)
    new, _ = over_confident(200, n_classes, seed=1)
    weight = np.random.default_rng(0).random(500) + 0.1
    weight /= weight.mean()  # scikit-learn's targets depend on the sum of the weights
    for each in (None, weight):
        wanted = np.column_stack(
            [
                _SigmoidCalibration().fit(log_odds(prob[:, k]), y_true == k, each).predict(log_odds(new[:, k]))
                for k in range(n_classes)
            ]
        )
        found = PlattScaling().fit(prob, y_true, each).predict_proba(new)
        np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), atol=2e-5)  # L-BFGS stops earlier


def test_it_maximises_the_likelihood_of_the_targets_of_platt():
    """Two observations of each outcome: targets 3/4 and 1/4 (section 2.2), which a logistic function meets exactly."""
    event, label = np.array([0.2, 0.2, 0.9, 0.9]), np.array([0, 0, 1, 1])
    fitted = PlattScaling().fit(event, label)
    assert fitted.predict_proba(event)[:, 1] == pytest.approx([0.25, 0.25, 0.75, 0.75], abs=1e-9)
    slope = 2 * np.log(3) / (log_odds(0.9) - log_odds(0.2))
    assert fitted.slope_ == pytest.approx([slope])
    assert fitted.intercept_ == pytest.approx([np.log(3) - slope * log_odds(0.9)])


def test_logits_near_certainty_keep_their_digits():
    """The complement of the largest probability is the sum of the others, not 1 - p."""
    rng = np.random.default_rng(0)
    logits = np.column_stack([np.zeros(300), rng.uniform(-30, 30, 300)])
    y_true = (rng.random(300) < 1 / (1 + np.exp(-logits[:, 1] / 10))).astype(int)
    fitted = PlattScaling(input="logits").fit(logits, y_true)
    mirrored = PlattScaling(input="logits").fit(logits[:, ::-1], 1 - y_true)
    assert fitted.slope_ == pytest.approx(mirrored.slope_, rel=1e-9)
    assert fitted.intercept_ == pytest.approx(-mirrored.intercept_, rel=1e-9)
    three = np.column_stack([logits, np.full(300, -40.0)])
    assert PlattScaling(input="logits").fit(three, y_true).slope_[:2] == pytest.approx(
        fitted.slope_.repeat(2), rel=1e-6
    )


@pytest.mark.parametrize("method", [PlattScaling(), BetaCalibration()])
def test_whole_weights_are_repetitions_and_of_others_the_proportions_matter(method):
    score, label = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    plain = method.fit(score, label).predict_proba(score)
    for each in (1e-3, 0.25, 1.5, 1000.5):
        weighted = method.fit(score, label, np.full(4, each)).predict_proba(score)
        np.testing.assert_allclose(weighted, plain, rtol=1e-9)
    weighted = method.fit(score, label, np.array([3, 0, 1, 2])).predict_proba(score)
    repeated = method.fit(score[[0, 0, 0, 2, 3, 3]], label[[0, 0, 0, 2, 3, 3]]).predict_proba(score)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)
