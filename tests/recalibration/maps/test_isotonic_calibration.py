"""Isotonic calibration is that of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from caltest.recalibration import IsotonicCalibration
from tests.recalibration.maps.test_one_vs_rest import over_confident
from tests.reference.cases import mostly_slow


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its predictions."""

    def fit(self, X, y):  # noqa: N803
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X):  # noqa: N803
        return X

    def predict(self, X):  # noqa: N803
        return self.classes_[X.argmax(axis=1)]


@pytest.mark.parametrize("n_classes", mostly_slow([2, 4]))
@pytest.mark.parametrize("decimals", [1, 15])
def test_it_is_that_of_scikit_learn(n_classes, decimals):
    prob, y_true = over_confident(400, n_classes)
    prob = np.round(prob, decimals)  # ties
    prob = prob[ok := prob.sum(axis=1) > 0] / prob[ok].sum(axis=1, keepdims=True)
    y_true = y_true[ok]
    new, _ = over_confident(300, n_classes, seed=1)
    wanted = CalibratedClassifierCV(FrozenEstimator(Given().fit(prob, y_true)), method="isotonic").fit(prob, y_true)
    found = IsotonicCalibration().fit(prob, y_true)
    np.testing.assert_allclose(found.predict_proba(new), wanted.predict_proba(new), atol=1e-12)
    weight = np.random.default_rng(0).integers(1, 4, len(y_true))
    weighted = IsotonicCalibration().fit(prob, y_true, weight).predict_proba(new)
    repeated = IsotonicCalibration().fit(np.repeat(prob, weight, axis=0), np.repeat(y_true, weight))
    np.testing.assert_allclose(weighted, repeated.predict_proba(new), atol=1e-12)


def test_each_function_increases_and_is_constant_beyond_the_fitted_scores():
    prob, y_true = over_confident(300, 3)
    for score, value in IsotonicCalibration().fit(prob, y_true).maps_:
        assert (np.diff(value) >= 0).all()
        assert np.interp([0, 1], score, value).tolist() == [value[0], value[-1]]
