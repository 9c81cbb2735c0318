"""Vector and matrix scaling and Dirichlet calibration against their definitions, and their rules."""

import numpy as np
import pytest
from scipy.optimize import minimize

import caltest
from caltest.predictions.inputs import _validation
from caltest.recalibration import DirichletCalibration, MatrixScaling, VectorScaling
from caltest.recalibration.maps._logits import FLOOR
from caltest.results import CalibrationWarning
from tests.recalibration.maps.test_base import over_confident
from tests.reference.cases import mostly_slow

METHODS = (VectorScaling, MatrixScaling, DirichletCalibration)


def confused(n_samples, n_classes, seed=0):
    """Predictions of a model that confuses its classes and prefers the first one, and labels."""
    prob, y_true = over_confident(n_samples, n_classes, seed)
    rng = np.random.default_rng(seed)
    logits = np.log(prob) @ (np.eye(n_classes) + 0.2 * rng.normal(size=(n_classes, n_classes)))
    logits[:, 0] += 1
    logits -= logits.max(axis=1, keepdims=True)
    prob = np.exp(logits)
    return prob / prob.sum(axis=1, keepdims=True), y_true


def slow_twin(values, y_true, ridge, weight, *, diagonal):
    """Minimise the published objective (Kull et al. 2019) with derivatives by differences; return its predictions."""
    n_classes = values.shape[1]

    def parts(theta):
        if diagonal:
            return np.diag(theta[:n_classes]), theta[n_classes:]
        return theta[: n_classes**2].reshape(n_classes, n_classes), theta[n_classes**2 :]

    def predict(theta):
        matrix, intercept = parts(theta)
        prob = np.exp(values @ matrix.T + intercept)
        return prob / prob.sum(axis=1, keepdims=True)

    def objective(theta):
        matrix, intercept = parts(theta)
        log_loss = -np.average(np.log(predict(theta)[np.arange(len(y_true)), y_true]), weights=weight)
        off_diagonal = matrix - np.diag(np.diag(matrix))
        first = ridge * (off_diagonal**2).sum() / (n_classes * (n_classes - 1))
        return log_loss + first + ridge * (intercept**2).sum() / n_classes

    start = np.concatenate([np.ones(n_classes) if diagonal else np.eye(n_classes).ravel(), np.zeros(n_classes)])
    return predict(minimize(objective, start, method="BFGS", options={"gtol": 1e-7}).x)


@pytest.mark.parametrize("kind", mostly_slow(METHODS))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:Desired error not necessarily achieved")
def test_the_map_is_that_of_the_published_objective(kind, weighted):
    prob, y_true = confused(200, 3)
    logits = np.log(prob) + np.linspace(-1, 1, 200)[:, None]
    weight = np.random.default_rng(0).random(200) if weighted else None
    found = kind(ridge=0.05, input="logits").fit(logits, y_true, weight)
    values = np.log(prob) if kind is DirichletCalibration else logits
    wanted = slow_twin(values, y_true, 0.05, weight, diagonal=kind is VectorScaling)
    assert found.predict_proba(logits) == pytest.approx(wanted, abs=2e-5)


def test_dirichlet_is_matrix_scaling_of_log_probabilities():
    prob, y_true = confused(300, 4)
    prob[:20, 1] = 0  # the floor is the same
    prob /= prob.sum(axis=1, keepdims=True)
    wanted = DirichletCalibration(1.0).fit(prob, y_true)
    log = np.log(np.maximum(prob, FLOOR))
    same = MatrixScaling(1.0, input="logits").fit(log, y_true)
    assert same.predict_proba(log) == pytest.approx(wanted.predict_proba(prob), abs=1e-10)
    shifted = DirichletCalibration(1.0, input="logits").fit(log - np.arange(300)[:, None], y_true)
    assert shifted.weights_ == pytest.approx(wanted.weights_, abs=1e-8)


def test_without_a_ridge_vector_scaling_does_not_depend_on_the_scale_of_logits():
    prob, y_true = confused(300, 4)
    wanted = VectorScaling(input="logits").fit(np.log(prob), y_true)
    found = VectorScaling(input="logits").fit(100 * np.log(prob), y_true)
    assert found.weights_ == pytest.approx(wanted.weights_ / 100, rel=1e-7)
    assert found.intercept_ == pytest.approx(wanted.intercept_, abs=1e-7)


def test_the_ridge_has_the_largest_likelihood_of_held_out_observations():
    prob, y_true = confused(400, 3)
    many = MatrixScaling((0.1, 1e4, 1.0)).fit(prob, y_true)
    assert many.ridge_ == (0.1, 1e4, 1.0)[np.argmin(many.ridge_scores_)] < 1e4
    single = MatrixScaling(many.ridge_).fit(prob, y_true)
    assert single.ridge_scores_ is None
    assert single.predict_proba(prob) == pytest.approx(many.predict_proba(prob), abs=1e-9)


@pytest.mark.slow(few_draws=True)
def test_too_many_parameters_for_the_data_are_reported():
    """A class that nearly every prediction of exactly 0 and 1 separates has a factor without a limit."""
    y_true, y_prob = caltest.datasets.load_digits_predictions()
    with pytest.warns(CalibrationWarning, match=r"class 0 by 23.9, .* nearly separated, .* or use TemperatureScaling"):
        found = VectorScaling((10.0, 100.0)).fit(y_prob["naive_bayes"], y_true)
    assert np.isfinite(found.weights_).all()


def test_a_large_ridge_leaves_one_factor_for_each_class():
    prob, y_true = confused(300, 4)
    found = MatrixScaling(1e9).fit(prob, y_true)
    assert np.abs(found.weights_ - np.diag(np.diag(found.weights_))).max() < 1e-6
    assert np.abs(found.intercept_).max() < 1e-6
    wanted = VectorScaling(1e9).fit(prob, y_true)
    assert np.diag(found.weights_) == pytest.approx(wanted.weights_, abs=1e-4)


@pytest.mark.slow(few_draws=True)
def test_they_repair_what_they_represent():
    """On new data, matrix scaling is the best for confused classes, vector scaling for shifted ones."""
    prob, y_true = confused(3_000, 4)
    half = slice(None, 1_500), slice(1_500, None)
    scores = {}
    for kind in METHODS[:2]:
        fitted = kind().fit(prob[half[0]], y_true[half[0]])
        scores[kind] = caltest.estimation.log_score(y_true[half[1]], fitted.predict_proba(prob[half[1]]))
    before = caltest.estimation.log_score(y_true[half[1]], prob[half[1]])
    assert scores[MatrixScaling] < scores[VectorScaling] < before


@pytest.mark.parametrize("kind", METHODS)
def test_what_cannot_be_fitted_is_refused(kind):
    prob, y_true = over_confident(40, 8)
    y_true[:8] = np.arange(8)
    with pytest.raises(ValueError, match="more than the 10 observations: pass a positive `ridge`"):
        kind(ridge=0.0).fit(prob[:10], y_true[:10])
    assert np.isfinite(kind(ridge=0.1).fit(prob[:10], y_true[:10]).weights_).all()
    with pytest.raises(ValueError, match=r"`y` has no label 3: .* use TemperatureScaling"):
        kind().fit(prob[y_true != 3], y_true[y_true != 3])
    with pytest.raises(ValueError, match="`y` has no label 3"):
        kind().fit(prob, y_true, (y_true != 3).astype(float))


def separable(seed, sharp=5.0):
    """Logits of a sharp model of three classes, whose label has nearly always the largest one."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(3, size=200)
    logits = rng.normal(size=(200, 3))
    logits[np.arange(200), y_true] += sharp
    prob = np.exp(logits - logits.max(axis=1, keepdims=True))
    return prob / prob.sum(axis=1, keepdims=True), y_true


@pytest.mark.parametrize("kind", mostly_slow(METHODS))
def test_separable_labels_end_no_worse_than_they_began(kind):
    """Steps where the likelihood is flat were accepted without looking: accuracy 0, log score 690, LinAlgError."""
    for seed in range(12):
        prob, y_true = separable(seed)
        with pytest.warns(CalibrationWarning, match="separates all labels, .* mean log score is below 1e-06 nats"):
            fitted = kind(ridge=0.0).fit(prob, y_true)
        found = fitted.predict_proba(prob)
        assert not fitted.unchanged_
        assert caltest.estimation.accuracy(y_true, found) == 1
        assert caltest.estimation.log_score(y_true, found) < 1e-6 < caltest.estimation.log_score(y_true, prob)


@pytest.mark.parametrize("kind", mostly_slow(METHODS))
def test_odd_data_have_a_rule(kind):
    prob, _ = over_confident(200, 3)
    with pytest.warns(CalibrationWarning, match="separates all labels"):
        sharp = kind(ridge=1e-9).fit(prob, prob.argmax(axis=1))
    assert np.isfinite(sharp.weights_).all()
    constant = kind(ridge=1e-12).fit(np.tile([0.7, 0.2, 0.1], (90, 1)), np.arange(90) % 3)
    assert constant.predict_proba([[0.7, 0.2, 0.1]]) == pytest.approx(np.full((1, 3), 1 / 3), abs=1e-6)
    guess = np.eye(3)[(np.arange(300) % 3 + (np.arange(300) < 60)) % 3]
    one_hot = kind(ridge=1e-9).fit(guess, np.arange(300) % 3)
    assert one_hot.predict_proba(guess).max(axis=1) == pytest.approx(0.8, abs=1e-3)


@pytest.mark.slow(few_draws=True)
def test_large_float32_stays(monkeypatch):
    monkeypatch.setattr(_validation, "MANY", 20)
    monkeypatch.setattr(_validation, "LARGE", 1_000)
    prob, y_true = confused(1_000, 25)
    found = VectorScaling(0.1).fit(prob.astype(np.float32), y_true)
    again = found.predict_proba(prob.astype(np.float32))
    assert again.dtype == np.float32
    assert again == pytest.approx(VectorScaling(0.1).fit(prob, y_true).predict_proba(prob), abs=1e-4)
