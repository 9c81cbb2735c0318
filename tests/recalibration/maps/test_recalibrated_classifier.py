"""A classifier with its recalibration method, and scikit-learn's own checks of estimators."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from caltest.recalibration import RecalibratedClassifier, TemperatureScaling, VectorScaling

COLUMNS = "the features are not one column per class"
EXPECTED = {
    "check_estimators_overwrite_params": COLUMNS,
    "check_estimators_fit_returns_self": COLUMNS,
    "check_readonly_memmap_input": COLUMNS,
    "check_classifiers_classes": COLUMNS,
    "check_classifiers_train": COLUMNS,
    "check_classifiers_one_label": "columns are classes, so that a class without a label is predicted too",
    "check_supervised_y_2d": "labels may be one column, as everywhere in caltest",
    "check_all_zero_sample_weights_error": "the message is that of caltest, as everywhere",
    "check_complex_data": "the message is that of caltest, as everywhere",
    "check_dtype_object": "the message is that of caltest, as everywhere",
    "check_fit2d_predict1d": "one dimension is the log odds of the positive class",
}


@pytest.fixture(scope="module")
def iris():
    features, labels = load_iris(return_X_y=True)
    return features, np.array(["setosa", "versicolor", "virginica"])[labels]


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (TemperatureScaling(input="logits"), EXPECTED),
        pytest.param(RecalibratedClassifier(LogisticRegression(), cv=3), {}, marks=pytest.mark.slow),
    ],
    ids=["method", "classifier"],
)
def test_it_passes_the_checks_of_scikit_learn(estimator, expected):
    found = check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
    failed = {check["check_name"] for check in found if check["status"] == "xfail"}
    assert failed == set(expected), "a check that passes is not expected to fail"
    assert len(found) > 50


def test_the_map_is_fitted_to_cross_validated_predictions(iris):
    features, labels = iris
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    found = RecalibratedClassifier(GaussianNB(), VectorScaling(0.1), cv=folds).fit(features, labels)
    held_out = cross_val_predict(GaussianNB(), features, labels, cv=folds, method="predict_proba")
    wanted = VectorScaling(0.1).fit(held_out, labels)
    model = GaussianNB().fit(features, labels)
    np.testing.assert_array_equal(found.predict_proba(features), wanted.predict_proba(model.predict_proba(features)))
    assert set(found.predict(features)) <= set(labels)
    assert found.score(features, labels) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_decision_function_gives_logits(iris, n_classes):
    features, labels = (part[: 50 * n_classes] for part in iris)
    noisy = features + np.random.default_rng(0).normal(size=features.shape)
    model = RecalibratedClassifier(LinearSVC(), TemperatureScaling(input="logits")).fit(noisy, labels)
    assert model.predict_proba(noisy).shape == (50 * n_classes, n_classes)
    with pytest.raises(TypeError, match="`estimator` must have predict_proba; LinearSVC lacks it"):
        RecalibratedClassifier(LinearSVC()).fit(noisy, labels)
    with pytest.raises(TypeError, match="must have decision_function"):
        RecalibratedClassifier(GaussianNB(), TemperatureScaling(input="logits")).fit(noisy, labels)
    with pytest.raises(TypeError, match="`recalibrator` must be a method"):
        RecalibratedClassifier(GaussianNB(), LinearSVC()).fit(noisy, labels)
    with pytest.raises(ValueError, match="one class"):
        RecalibratedClassifier(GaussianNB()).fit(noisy[:50], labels[:50])
