"""Scorers work in scikit-learn's model selection, and are minus the errors of the package."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import caltest as ct
from caltest.recalibration import RecalibratedClassifier
from caltest.scorers import NegativeError, neg_ece, neg_ks, neg_squared_l2

pytestmark = pytest.mark.filterwarnings("ignore::caltest.results._note.CalibrationWarning")
SCORERS = {"ece": (neg_ece, ct.ECE()), "ks": (neg_ks, ct.KS()), "squared l2": (neg_squared_l2, ct.SquaredL2())}


@pytest.fixture(scope="module")
def iris():
    features, labels = load_iris(return_X_y=True)
    return features, np.array(["setosa", "versicolor", "virginica"])[labels]


def test_cross_validation_has_the_errors_of_every_fold(iris):
    features, labels = iris
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    scoring = {name: scorer for name, (scorer, _) in SCORERS.items()}
    found = cross_validate(GaussianNB(), features, labels, cv=cv, scoring=scoring, error_score="raise")
    for number, (train, test) in enumerate(cv.split(features, labels)):
        model = GaussianNB().fit(features[train], labels[train])
        for name, (_, statistic) in SCORERS.items():
            prob, classes = model.predict_proba(features[test]), list(model.classes_)
            wanted = ct.calibration_error(labels[test], prob, classes=classes, statistic=statistic)
            assert found[f"test_{name}"][number] == -wanted


def test_a_fold_without_a_class_is_scored(iris):
    """The columns are those of the estimator, not the labels that occur."""
    features, labels = iris
    model = GaussianNB().fit(features, labels)
    few = labels != "setosa"
    wanted = ct.calibration_error(labels[few], model.predict_proba(features[few]), classes=list(model.classes_))
    assert neg_ece(model, features[few], labels[few]) == -wanted


def test_grid_search_prefers_the_smaller_error(iris):
    features, labels = iris
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2, 1.0]}, scoring=neg_ks).fit(features, labels)
    scores = search.cv_results_["mean_test_score"]
    assert (scores <= 0).all()
    assert search.best_index_ == np.argmax(scores)


def test_lens_and_weights_are_passed(iris):
    features, labels = iris
    model = GaussianNB().fit(features, labels)
    weight = np.random.default_rng(0).random(len(labels))
    scorer = NegativeError(ct.ECE(ct.EqualWidth(5)), lens=ct.ClassWise(1))
    wanted = ct.calibration_error(
        labels,
        model.predict_proba(features),
        classes=list(model.classes_),
        statistic=ct.ECE(ct.EqualWidth(5)),
        lens=ct.ClassWise(1),
        sample_weight=weight,
    )
    assert scorer(model, features, labels, sample_weight=weight) == -wanted


def test_scorers_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(neg_ece)) == neg_ece


def test_bad_input_is_named(iris):
    features, labels = iris
    with pytest.raises(TypeError, match="`estimator` must have predict_proba, which LinearSVC lacks"):
        neg_ece(LinearSVC().fit(features, labels), features, labels)
    with pytest.raises(ValueError, match="Omnibus"):
        NegativeError(ct.Omnibus())
    with pytest.raises(TypeError, match="`statistic` must be a statistic"):
        NegativeError(3)
    assert NegativeError("ECE(EqualWidth(5))") == NegativeError(ct.ECE(ct.EqualWidth(5)))


def test_classes_may_be_dates(iris):
    features, labels = iris
    days = np.array(["2020", "2021", "2022"], dtype="datetime64[ns]")[np.unique(labels, return_inverse=True)[1]]
    assert neg_ece(GaussianNB().fit(features, days), features, days) == neg_ece(
        GaussianNB().fit(features, labels), features, labels
    )
    assert neg_ece(GaussianNB().fit(features, days), features, days.astype("datetime64[s]")) < 0


def test_weights_have_the_index_of_the_labels(iris):
    import pandas as pd

    features, labels = iris
    weight = pd.Series(np.ones(len(labels)), index=range(1, len(labels) + 1))
    with pytest.raises(ValueError, match="`y` and `sample_weight` must have the same index"):
        neg_ece(GaussianNB().fit(features, labels), features, pd.Series(labels), weight)
    with pytest.raises(ValueError, match="`y` and `sample_weight` must have the same index"):
        RecalibratedClassifier(GaussianNB()).fit(features, pd.Series(labels), weight)
