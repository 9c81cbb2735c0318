"""What all recalibration methods share: reading of predictions and labels, and the rules of scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import caltest
from caltest.recalibration import (
    AutomaticCalibration,
    IsotonicCalibration,
    Recalibrator,
    TemperatureScaling,
    VectorScaling,
    load_recalibrator,
)
from caltest.results import CalibrationWarning
from tests.reference.cases import mostly_slow

LABELS = np.array(["dog", "cat", "ant"])


def over_confident(n_samples, n_classes, seed=0, sharper=2.0, dtype=np.float64):
    """Predictions of a model whose temperature should be ``sharper``, and labels."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n_samples, n_classes))
    prob = np.exp(logits)
    prob /= prob.sum(axis=1, keepdims=True)
    y_true = (prob.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1)
    sharp = prob**sharper
    return (sharp / sharp.sum(axis=1, keepdims=True)).astype(dtype), y_true


@pytest.fixture(scope="module")
def animals():
    """A frame whose columns are in another order than the alphabet, and texts as labels."""
    prob, y_true = over_confident(400, 3)
    return pd.DataFrame(prob, columns=LABELS), LABELS[y_true]


def test_named_columns_may_stand_in_any_order(animals):
    frame, labels = animals
    wanted = TemperatureScaling().fit(frame, labels)
    assert wanted.classes_.tolist() == ["ant", "cat", "dog"] == wanted.feature_names_in_.tolist()
    prob = wanted.predict_proba(frame)
    shuffled = frame[["cat", "dog", "ant"]]
    for given in (shuffled, pl.from_pandas(shuffled), shuffled.add_prefix("prob_")):
        again = TemperatureScaling().fit(given, labels)
        np.testing.assert_array_equal(again.predict_proba(given), prob)
        np.testing.assert_array_equal(wanted.predict_proba(given), prob)
    with pytest.raises(ValueError, match="`X`"):
        wanted.predict_proba(frame.rename(columns={"ant": "bee"}))


@pytest.mark.parametrize(
    "kind", mostly_slow([TemperatureScaling, VectorScaling, IsotonicCalibration, AutomaticCalibration])
)
def test_classes_are_sorted_whatever_their_order_in_the_argument(kind, animals, tmp_path):
    """Scikit-learn's scorers take columns for those of sorted labels: a log loss of .778 was reported as 3.09."""
    frame, labels = animals
    prob = frame.to_numpy()
    fitted = kind(classes=LABELS).fit(prob, labels)
    assert fitted.classes_.tolist() == ["ant", "cat", "dog"]
    assert fitted.columns_.tolist() == [2, 1, 0]
    assert "feature_names_in_" not in vars(fitted)
    found = fitted.predict_proba(prob)
    np.testing.assert_array_equal(found, kind().fit(frame, labels).predict_proba(frame))
    np.testing.assert_array_equal(fitted.predict_proba(frame[["cat", "dog", "ant"]]), found)
    own = caltest.estimation.log_score(labels, found, classes=fitted.classes_)
    assert -get_scorer("neg_log_loss")(fitted, prob, labels) == pytest.approx(own, rel=1e-6)
    assert fitted.predict(prob).tolist() == fitted.classes_[found.argmax(axis=1)].tolist()
    fitted.set_params(classes=LABELS.tolist()).save(tmp_path / "map.json")
    np.testing.assert_array_equal(load_recalibrator(tmp_path / "map.json").predict_proba(prob), found)


def test_the_event_of_one_column_is_the_second_of_classes():
    prob, y_true = over_confident(300, 2)
    names = np.array(["sick", "healthy"])
    wanted = TemperatureScaling().fit(prob[:, 1], y_true).predict_proba(prob[:, 1])
    fitted = TemperatureScaling(classes=names).fit(prob[:, 1], names[y_true])
    assert fitted.classes_.tolist() == ["healthy", "sick"]
    np.testing.assert_array_equal(fitted.predict_proba(prob[:, 1]), wanted[:, ::-1])
    frame = pd.DataFrame({"healthy": prob[:, 1]})
    named = TemperatureScaling(classes=names).fit(frame, names[y_true])
    np.testing.assert_array_equal(named.predict_proba(frame), wanted[:, ::-1])


def test_labels_of_columns_without_names():
    prob, y_true = over_confident(300, 3)
    found = TemperatureScaling().fit(prob, y_true)
    assert found.classes_.tolist() == [0, 1, 2]
    few = y_true != 1
    assert TemperatureScaling().fit(prob[few], y_true[few]).classes_.tolist() == [0, 1, 2]
    assert TemperatureScaling().fit(prob, np.array([5, 7, 9])[y_true]).classes_.tolist() == [5, 7, 9]
    with pytest.raises(ValueError, match="`X` has 3 classes and `y` 2 different labels"):
        TemperatureScaling().fit(prob[few], np.array([5, 7, 9])[y_true[few]])
    assert TemperatureScaling().fit(prob[:, 0].clip(0, 1), y_true == 0).predict(prob[:, 0]).dtype == bool


def test_two_classes_may_be_one_column():
    prob, y_true = over_confident(500, 2)
    event, logit = prob[:, 1], np.log(prob[:, 1] / prob[:, 0])
    wanted = TemperatureScaling().fit(prob, y_true).predict_proba(prob)
    for kind, given in (("probabilities", event), ("probabilities", event[:, None]), ("logits", logit)):
        fitted = TemperatureScaling(input=kind).fit(given, y_true)
        assert fitted.n_features_in_ == 1
        assert fitted.predict_proba(given) == pytest.approx(wanted, abs=1e-9)
    mirrored = TemperatureScaling().fit(1 - event, 1 - y_true).predict_proba(1 - event)
    assert mirrored[:, ::-1] == pytest.approx(wanted, abs=1e-9)
    with pytest.raises(ValueError, match="X has 2 features, but TemperatureScaling"):
        TemperatureScaling().fit(event, y_true).predict_proba(prob)


def test_weights_are_repetitions():
    prob, y_true = over_confident(300, 4)
    weight = np.random.default_rng(0).integers(0, 4, len(prob))
    weighted = TemperatureScaling().fit(prob, y_true, weight)
    repeated = TemperatureScaling().fit(np.repeat(prob, weight, axis=0), np.repeat(y_true, weight))
    assert weighted.temperature_ == pytest.approx(repeated.temperature_, rel=1e-10)


def test_nothing_of_the_callers_is_changed():
    prob, y_true = over_confident(50, 3)
    for kind in ("probabilities", "logits"):
        kept = prob.copy()
        prob.flags.writeable = False
        TemperatureScaling(input=kind).fit(prob, y_true).predict_proba(prob)
        np.testing.assert_array_equal(prob, kept)


def test_it_is_cloned_and_stands_in_pipelines(animals):
    frame, labels = animals
    method = TemperatureScaling(caltest.KS(), lens=caltest.Confidence())
    assert clone(method).get_params() == method.get_params()
    logits = make_pipeline(FunctionTransformer(np.log), TemperatureScaling(input="logits")).fit(frame, labels)
    plain = TemperatureScaling().fit(frame, labels)
    assert logits.predict_proba(frame) == pytest.approx(plain.predict_proba(frame), abs=1e-9)
    assert logits.predict(frame).tolist() == plain.predict(frame).tolist()


def test_bad_arguments_are_refused(animals):
    frame, labels = animals
    prob = frame.to_numpy()
    with pytest.raises(NotFittedError):
        TemperatureScaling().predict_proba(prob)
    for change, message in (
        ({"input": "scores"}, "`input` must be one of"),
        ({"objective": "brier"}, '`objective` must be "log" or a statistic'),
        ({"objective": caltest.Omnibus()}, "combines tests"),
        ({"classes": ["ant", "cat"]}, "`classes` must name"),
    ):
        with pytest.raises(ValueError, match=message):
            TemperatureScaling(**change).fit(prob, labels)
    with pytest.raises(TypeError, match="statistic"):
        TemperatureScaling(3).fit(prob, labels)
    for bad, y, message in (
        (prob * 2, labels, r"`X` must lie in \[0, 1\]"),
        (prob[:-1], labels, "same length"),
        (prob / 2, labels, "rows of `X` must sum to 1"),
        (prob, None, "requires y to be passed"),
        (frame, pd.Series(labels, index=range(1, 401)), "same index"),
    ):
        with pytest.raises(ValueError, match=message):
            TemperatureScaling().fit(bad, y)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="finite logits"):
            TemperatureScaling(input="logits").fit(np.where(np.eye(400, 3), bad, prob), labels)
    with pytest.raises(ValueError, match="`sample_weight`"):
        TemperatureScaling().fit(prob, labels, np.zeros(400))
    with pytest.raises(ValueError, match="`X` and `sample_weight` must have the same index"):
        TemperatureScaling().fit(frame, labels, pd.Series(np.ones(400), index=range(1, 401)))


def test_half_precision_logits_are_not_taken_for_rounded_probabilities():
    logits = np.float16([[0.5, 0.5004], [0.2, 0.8], [0.6, 0.4]])
    with pytest.warns(CalibrationWarning, match="temperature"):
        found = TemperatureScaling(input="logits").fit(logits, [1, 1, 0])
    half = np.float16([[0.2, 0.8], [0.6, 0.4], [0.3, 0.7], [0.4, 0.6]])
    with pytest.warns(CalibrationWarning, match=r"float16\) of `X`"):
        TemperatureScaling().fit(half, [1, 1, 1, 0])
    with pytest.warns(CalibrationWarning, match="temperature"):
        same = TemperatureScaling(input="logits").fit(logits.astype(float), [1, 1, 0])
    assert found.temperature_ == pytest.approx(same.temperature_, rel=1e-6)


def test_the_base_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Recalibrator()


def test_many_classes_for_few_labels_are_no_regression():
    prob, y_true = over_confident(40, 100)
    assert len(TemperatureScaling().fit(prob, y_true).classes_) == 100
    with pytest.raises(ValueError, match="continuous"):
        TemperatureScaling().fit(prob, y_true + 0.5)


def test_what_is_no_probability_is_refused_with_the_constructor_that_takes_it():
    prob, label = over_confident(200, 3)
    for method in (TemperatureScaling, VectorScaling):
        fitted = method(input="logits").fit(np.log(prob), label)
        assert fitted.predict_proba(np.log(prob)).shape == prob.shape
        with pytest.raises(ValueError, match=rf'if these are logits, {method.__name__}\(input="logits"\)\.$'):
            method().fit(np.log(prob), label)
        with pytest.raises(ValueError, match=rf'{method.__name__}\(input="logits"\)'):
            method().fit(prob, label).predict_proba(np.log(prob))
    with pytest.raises(ValueError, match="if these are percentages, pass X / 100"):
        TemperatureScaling().fit(100 * prob, label)
    with pytest.raises(ValueError, match=r"fit\(X, y\) takes labels last, and `y` and `X` may be swapped"):
        TemperatureScaling().fit(label, prob[:, 0])
