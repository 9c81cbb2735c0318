"""Cross-validation of estimators: scikit-learn's folds and predictions, tested fold by fold."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import caltest
from caltest.hypothesis_tests import CrossValidatedTests

DRAWS = {"n_resamples": 199, "rng": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    return rng.normal(size=(240, 4)) + 0.6 * np.eye(3, 4)[y], np.array(["cat", "dog", "eel"])[y]


def test_predictions_are_those_of_scikit_learn(data):
    x, y = data
    found = caltest.cross_val_calibration(GaussianNB(), x, y, **DRAWS)
    prob = cross_val_predict(GaussianNB(), x, y, method="predict_proba")
    assert isinstance(found, CrossValidatedTests)
    assert found.y_prob.tolist() == prob[found.observations].tolist()
    assert found.y_true.tolist() == y[found.observations].tolist()
    assert sorted(found.observations.tolist()) == list(range(240))
    for number, (_, test) in enumerate(StratifiedKFold(5).split(x, y)):
        assert found.observations[found.fold == number].tolist() == test.tolist()
    assert found.classes == ("cat", "dog", "eel")


def test_the_result_is_that_of_the_test_with_folds(data):
    found = caltest.cross_val_calibration(GaussianNB(), *data, **DRAWS)
    same = caltest.calibration_test(found.y_true, found.y_prob, classes=found.classes, folds=found.fold, **DRAWS)
    assert [test.pvalue for test in found.folds] == [test.pvalue for test in same.folds]
    assert (found.pvalue, found.conclusion) == (same.pvalue, same.conclusion)
    assert str(found) == str(same)


def test_frames_lists_and_pipelines(data):
    x, y = data
    first = caltest.cross_val_calibration(LogisticRegression(), x, y, **DRAWS)
    frame = caltest.cross_val_calibration(
        LogisticRegression(), pd.DataFrame(x), pd.Series(y, index=range(7, 247)), workers=2, **DRAWS
    )
    assert first.y_prob.tolist() == frame.y_prob.tolist()
    assert first.pvalue == frame.pvalue
    assert caltest.cross_val_calibration(LogisticRegression(), x.tolist(), y.tolist(), **DRAWS).pvalue == first.pvalue


@pytest.mark.slow(few_draws=True)
def test_every_kind_of_split(data):
    x, y = data
    repeated = caltest.cross_val_calibration(
        GaussianNB(), x, y, cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), **DRAWS
    )
    assert len(repeated.folds) == 6
    assert np.bincount(repeated.observations).tolist() == [2] * 240
    shuffled = caltest.cross_val_calibration(
        GaussianNB(), x, y, cv=ShuffleSplit(4, test_size=0.3, random_state=0), **DRAWS
    )
    assert [test.n_samples for test in shuffled.folds] == [72] * 4
    assert shuffled.pvalue == min(1, 4 * min(test.pvalue for test in shuffled.folds))
    group = np.repeat(np.arange(24), 10)
    grouped = caltest.cross_val_calibration(GaussianNB(), x, y, cv=GroupKFold(4), groups=group, **DRAWS)
    for g in range(24):
        assert len(set(grouped.fold[np.isin(grouped.observations, np.flatnonzero(group == g))])) == 1
    half = [(np.arange(120), np.arange(120, 240)), (np.arange(120, 240), np.arange(120))]
    assert len(caltest.cross_val_calibration(GaussianNB(), x, y, cv=half, **DRAWS).folds) == 2


class Backwards(ClassifierMixin, BaseEstimator):
    """An estimator whose classes are in another order."""

    def fit(self, x, y):
        self.inner_ = GaussianNB().fit(x, y)
        self.classes_ = self.inner_.classes_[::-1]
        return self

    def predict_proba(self, x):
        return self.inner_.predict_proba(x)[:, ::-1]


def test_columns_are_aligned_by_class(data):
    assert (
        caltest.cross_val_calibration(Backwards(), *data, **DRAWS).y_prob.tolist()
        == caltest.cross_val_calibration(GaussianNB(), *data, **DRAWS).y_prob.tolist()
    )


def test_refusals(data):
    x, y = data
    with pytest.raises(TypeError, match="`estimator` must have `predict_proba`, got LinearSVC"):
        caltest.cross_val_calibration(LinearSVC(), x, y)
    by_class = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match="fold 0: the training part holds no observation of class 'cat'"):
        caltest.cross_val_calibration(GaussianNB(), x[by_class], y[by_class], cv=KFold(3))
    with pytest.raises(ValueError, match="`cv` must make several splits, got 1"):
        caltest.cross_val_calibration(GaussianNB(), x, y, cv=ShuffleSplit(1, random_state=0))
    with pytest.raises(ValueError, match="`cv` must make several splits, got 0"):
        caltest.cross_val_calibration(GaussianNB(), x, y, cv=[])
    with pytest.raises(ValueError, match="`cv` must test several observations at once, got one in each fold"):
        caltest.cross_val_calibration(GaussianNB(), x, y, cv=LeaveOneOut())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        caltest.cross_val_calibration(GaussianNB(), x, y[:-1])
    with pytest.raises(ValueError, match="`alpha` must lie"):
        caltest.cross_val_calibration(GaussianNB(), x, y, alpha=2)


@pytest.mark.parametrize("shared", [1, 5])
def test_a_split_that_tests_observations_of_its_training_groups_is_refused(data, shared):
    """Of 40 groups of 6 some are cut, in the last fold alone: a part of the groups is enough to leak labels."""
    x, y = data
    group = np.repeat(np.arange(40), 6)
    parts = [np.flatnonzero(group % 4 == k) for k in range(4)]
    folds = [(np.setdiff1d(np.arange(240), part), part) for part in parts]
    assert len(caltest.cross_val_calibration(GaussianNB(), x, y, cv=folds, groups=group, **DRAWS).folds) == 4
    cut = [part[:1] for part in np.split(parts[3], 10)[:shared]]  # one observation of each moves to the training part
    folds[3] = np.union1d(folds[3][0], np.concatenate(cut)), np.setdiff1d(parts[3], np.concatenate(cut))
    message = "fold 3: the model is fitted to observations of a group that it is tested on"
    with pytest.raises(ValueError, match=message):
        caltest.cross_val_calibration(GaussianNB(), x, y, cv=folds, groups=group, **DRAWS)
    with pytest.warns(UserWarning, match="ignored by KFold"), pytest.raises(ValueError, match="fold 0: the model is"):
        caltest.cross_val_calibration(
            GaussianNB(), x, y, cv=KFold(4, shuffle=True, random_state=0), groups=group, **DRAWS
        )


@pytest.mark.slow(few_draws=True)
def test_a_learner_that_is_too_extreme_is_found():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    copies = np.repeat(y[:, None] + rng.normal(size=(600, 1)), 6, axis=1)  # naive Bayes counts evidence six times
    found = caltest.cross_val_calibration(GaussianNB(), copies, y, n_resamples=999, rng=0)
    assert found.rejected
    assert found.direction == "too extreme"  # found in every fold, whatever else is wrong
