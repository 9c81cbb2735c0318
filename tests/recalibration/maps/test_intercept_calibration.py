"""Recalibration in the large: totals of labels, the update of a clinical model, and proof on held-out patients."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

import caltest
from caltest.recalibration import InterceptCalibration
from tests.recalibration.maps.test_base import over_confident


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_intercepts_have_the_greatest_likelihood(n_classes):
    prob, y_true = over_confident(400, n_classes)
    y_true[:n_classes] = np.arange(n_classes)
    weight = np.random.default_rng(0).random(400)
    for given in (None, weight):
        fitted = InterceptCalibration().fit(prob, y_true, given)

        def loss(b, given=given):
            return -np.average(log_softmax(np.log(prob) + b, axis=1)[np.arange(400), y_true], weights=given)

        wanted = minimize(loss, np.zeros(n_classes), tol=1e-10).x
        np.testing.assert_allclose(fitted.intercept_, wanted - wanted.mean(), atol=1e-5)
        each = np.ones(400) if given is None else given
        counted = np.bincount(y_true, each, n_classes)
        np.testing.assert_allclose(each @ fitted.predict_proba(prob), counted, rtol=1e-9)


def test_it_is_the_update_of_the_intercept():
    rng = np.random.default_rng(1)
    log_odds = rng.normal(-1, 1.2, 800)
    died, risk = (rng.random(800) < expit(0.8 + log_odds)).astype(int), expit(log_odds)
    update = caltest.clinical.update_test(died, risk, n_resamples=199, rng=0)
    assert update.update == "intercept"
    assert update.recalibrator == InterceptCalibration.__name__
    assert update.recalibrator in str(update)
    fitted = InterceptCalibration().fit(risk, died)
    new = np.array([0.0, 1e-6, 0.2, 0.9, 1.0])
    assert np.diff(fitted.intercept_)[0] == pytest.approx(update.intercept, abs=1e-8)
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], update.updated(new), atol=1e-12)
    np.testing.assert_allclose(
        InterceptCalibration(input="logits").fit(logit(risk), died).predict_proba(logit(new[1:4])),
        fitted.predict_proba(new[1:4]),
        atol=1e-12,
    )


@pytest.mark.slow(few_draws=True)
def test_held_out_patients_prove_the_update():
    """An event that is more frequent: the study rejects the predictions, not those with new intercepts."""
    rng = np.random.default_rng(2)
    log_odds = rng.normal(-1, 1.2, 1500)
    died, risk = (rng.random(1500) < expit(0.8 + log_odds)).astype(int), expit(log_odds)
    how = {"n_resamples": 199, "rng": 0}
    study = caltest.recalibration_study(died, {"model": risk}, [InterceptCalibration()], **how)
    before, after = study.rows
    assert before.rejected
    assert not after.rejected
    assert after.log_score < before.log_score


def test_extreme_predictions_and_absent_classes():
    prob = np.array([0.0, 0.0, 1e-9, 0.5, 1.0, 1.0])
    fitted = InterceptCalibration().fit(prob, [0, 1, 0, 1, 1, 1])
    found = fitted.predict_proba(prob)
    assert np.isfinite(fitted.intercept_).all()
    assert found[:, 1].sum() == pytest.approx(4)
    assert (np.diff(found[:, 1]) >= 0).all()
    with pytest.raises(ValueError, match="class"):
        InterceptCalibration().fit(prob, np.zeros(6, dtype=int))
