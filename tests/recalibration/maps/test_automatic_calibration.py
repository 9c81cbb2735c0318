"""The choice of a method by cross-validated log score among methods that keep the accuracy."""

import numpy as np
import pytest

import caltest
from caltest.recalibration import (
    AutomaticCalibration,
    BetaCalibration,
    IsotonicCalibration,
    TemperatureScaling,
    VectorScaling,
    load_recalibrator,
)
from caltest.recalibration.maps._linear_scaling import stratified_folds
from tests.recalibration.maps.test_base import over_confident

METHODS = [TemperatureScaling(), VectorScaling(), BetaCalibration()]


def test_scores_are_those_of_a_slow_twin():
    prob, y_true = over_confident(400, 3, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, 400).astype(float)
    found = AutomaticCalibration(METHODS).fit(prob, y_true, weight)
    fold = stratified_folds(np.log(prob), y_true, weight, 0)
    for method in METHODS:
        lost = right = 0.0
        for number in range(5):
            inside, rows = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            fitted = type(method)().fit(prob[inside], y_true[inside], weight[inside])
            for row, p in zip(rows, fitted.predict_proba(prob[rows]), strict=True):
                lost -= weight[row] * np.log(p[y_true[row]])
                right += weight[row] * (p.argmax() == y_true[row])
        name = f"{type(method).__name__}()"
        assert found.scores_[name] == pytest.approx(lost / weight.sum(), rel=1e-10)
        assert found.accuracies_[name] == pytest.approx(right / weight.sum(), rel=1e-12)
    allowed = [n for n in found.scores_ if n[0] == "T" or found.accuracies_[n] >= found.accuracy_before_]
    assert type(found.recalibrator_).__name__ + "()" == min(allowed, key=found.scores_.get)


@pytest.mark.slow
def test_what_loses_accuracy_or_has_an_infinite_score_is_not_chosen():
    y_true, models = caltest.datasets.load_digits_predictions()
    found = AutomaticCalibration().fit(models["naive_bayes"], y_true)
    assert np.isinf(found.scores_["VectorScaling()"]), "classes that are separated have factors without a limit"
    chosen = type(found.chosen).__name__
    assert np.isfinite(found.scores_[next(name for name in found.scores_ if name.startswith(chosen))])
    forest = AutomaticCalibration([IsotonicCalibration(), BetaCalibration(), TemperatureScaling()])
    forest.fit(models["random_forest"], y_true)
    assert forest.accuracies_["BetaCalibration()"] < forest.accuracy_before_
    assert isinstance(forest.recalibrator_, TemperatureScaling)
    isotonic = AutomaticCalibration([IsotonicCalibration()])
    assert isotonic.fit(models["random_forest"], y_true).unchanged_, "no candidate qualifies"
    refuted = models["random_forest"].copy()
    refuted[0] = np.eye(10)[(y_true[0] + 1) % 10]
    with pytest.raises(ValueError, match="add TemperatureScaling"):
        isotonic.fit(refuted, y_true)


def calibrated(seed, n_samples=300):
    """Predictions from the whole range, and labels that they predict."""
    rng = np.random.default_rng(seed)
    event = rng.uniform(0.02, 0.98, n_samples)
    return np.column_stack([1 - event, event]), (rng.random(n_samples) < event).astype(int)


@pytest.mark.slow(few_draws=True)
def test_calibrated_predictions_stay_as_they_are_if_no_candidate_predicts_better():
    chosen = [AutomaticCalibration().fit(*calibrated(seed)) for seed in range(6)]
    unchanged = [one for one in chosen if one.unchanged_]
    assert unchanged
    prob, _ = calibrated(7)
    for one in unchanged:
        assert one.score_before_ <= min(one.scores_.values())
        np.testing.assert_array_equal(one.predict_proba(prob), prob)
        assert one.recalibrator_.temperature_ == 1
    for one in set(chosen) - set(unchanged):
        assert min(one.scores_.values()) < one.score_before_


@pytest.mark.slow
def test_a_flexible_method_is_rarely_chosen_for_calibrated_predictions():
    """Held-out folds that copied the others chose the spline in 49 % of calibrated data sets."""
    n_sets = 60
    chosen = [type(AutomaticCalibration().fit(*calibrated(seed)).recalibrator_).__name__ for seed in range(n_sets)]
    assert chosen.count("SplineCalibration") / n_sets < 0.15 + 4 * np.sqrt(0.15 * 0.85 / n_sets)


def test_the_folds_can_be_drawn_again():
    prob, y_true = over_confident(300, 3, seed=2)
    first, again, other = (AutomaticCalibration(METHODS, rng=rng).fit(prob, y_true).scores_ for rng in (0, 0, 1))
    assert first == again != other


def test_refusals_and_odd_data(tmp_path):
    prob, y_true = over_confident(60, 3)
    for wrong, error in ((TemperatureScaling(), TypeError), ([1], TypeError), ([], ValueError)):
        with pytest.raises(error, match="candidates"):
            AutomaticCalibration(wrong).fit(prob, y_true)
    with pytest.raises(ValueError, match="on probabilities"):
        AutomaticCalibration([TemperatureScaling(input="logits")]).fit(prob, y_true)
    with pytest.raises(ValueError, match="several labels of some class"):
        AutomaticCalibration().fit(prob[:1], [0])
    absent = AutomaticCalibration([VectorScaling(), TemperatureScaling()]).fit(prob[y_true < 2], y_true[y_true < 2])
    assert np.isinf(absent.scores_["VectorScaling()"])
    event = AutomaticCalibration(classes=["no", "yes"]).fit(prob[:, 0], np.where(y_true == 0, "yes", "no"))
    event.save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json")
    np.testing.assert_array_equal(again.predict_proba(prob[:, 0]), event.predict_proba(prob[:, 0]))
    assert again.scores_ == event.scores_
