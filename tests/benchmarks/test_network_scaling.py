"""Network scaling: the network of scikit-learn, on the same logits."""

import numpy as np
import pytest

from benchmarks.network_scaling import NetworkScaling
from caltest.recalibration.maps._logits import Objective
from caltest.results import CalibrationWarning
from tests.recalibration.maps.test_linear_scaling import confused

FEW = {"n_hidden": 6, "max_iter": 30, "rng": 0}


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_learns_what_is_confused(n_classes):
    prob, y_true = confused(500, n_classes)
    found = NetworkScaling(**FEW).fit(prob, y_true)
    after = found.predict_proba(prob)
    own = np.arange(500), y_true
    assert np.log(after[own]).mean() > np.log(prob[own]).mean()
    assert after.sum(axis=1) == pytest.approx(1)


def test_its_map_does_not_depend_on_the_order_of_the_observations():
    prob, y_true = confused(200, 3)
    rows = np.random.default_rng(0).permutation(200)
    wanted = NetworkScaling(**FEW).fit(prob, y_true).predict_proba(prob)
    np.testing.assert_array_equal(NetworkScaling(**FEW).fit(prob[rows], y_true[rows]).predict_proba(prob), wanted)
    weight = np.ones(200)
    np.testing.assert_allclose(NetworkScaling(**FEW).fit(prob, y_true, weight).predict_proba(prob), wanted, atol=1e-6)


def test_a_network_that_is_worse_than_none_is_not_returned():
    """A network does not start from the predictions: one iteration from chance forgets a sharp model."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(5, size=300)
    prob = np.full((300, 5), 0.01)
    prob[np.arange(300), y_true] = 0.96
    with pytest.warns(CalibrationWarning, match="NetworkScaling found no map"):
        fitted = NetworkScaling(4, max_iter=1, rng=0).fit(prob, y_true)
    np.testing.assert_allclose(fitted.predict_proba(prob), prob, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_network_without_change_is_the_identity(n_classes, monkeypatch):
    prob, y_true = confused(200, n_classes)
    monkeypatch.setattr(Objective, "is_worse", property(lambda _: True))
    with pytest.warns(CalibrationWarning, match="leaves them unchanged"):
        fitted = NetworkScaling(4, max_iter=10, rng=0).fit(prob, y_true)
    assert fitted.unchanged_
    np.testing.assert_allclose(fitted.predict_proba(prob), prob, atol=1e-12)


def test_bad_arguments_are_refused():
    prob, y_true = confused(50, 3)
    for change in ({"n_hidden": 0}, {"max_iter": 0}, {"ridge": -1.0}):
        with pytest.raises(ValueError, match=f"`{next(iter(change))}`"):
            NetworkScaling(**change).fit(prob, y_true)
    with pytest.raises(TypeError, match="`rng`"):
        NetworkScaling(rng="seed").fit(prob, y_true)
    with pytest.raises(ValueError, match="has no label 2"):
        NetworkScaling(**FEW).fit(prob[y_true < 2], y_true[y_true < 2])
