"""No map is returned whose objective is above that of predictions as they are: the guard of `Recalibrator.fit`."""

import numpy as np
import pytest

from caltest.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    SplineCalibration,
    TemperatureScaling,
    VectorScaling,
    load_recalibrator,
)
from caltest.recalibration.maps._logits import Objective
from caltest.results import CalibrationWarning
from tests.recalibration.maps.test_base import over_confident
from tests.reference.cases import mostly_slow

METHODS = [
    TemperatureScaling(),
    VectorScaling(),
    MatrixScaling(1.0),
    DirichletCalibration(1.0),
    PlattScaling(),
    BetaCalibration(),
    BetaCalibration("ab"),
    IsotonicCalibration(),
    SplineCalibration(),
    SplineCalibration(constrained=True),
]


@pytest.mark.parametrize("method", mostly_slow(METHODS), ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_search_that_fails_leaves_predictions_as_they_are(method, n_classes, monkeypatch, tmp_path):
    """The objective of each method is computed, and its map without change is the identity."""
    prob, y_true = over_confident(400, n_classes)
    seen = []

    def is_worse(self):
        seen.append((self.found, self.unchanged))
        return True

    monkeypatch.setattr(Objective, "is_worse", property(is_worse))
    with pytest.warns(CalibrationWarning, match="no map with a smaller objective .* leaves them unchanged"):
        fitted = method.fit(prob, y_true)
    assert fitted.unchanged_
    assert len(seen) == 1
    assert seen[0][0] < seen[0][1], "predictions are over-confident, so that every method improves its objective"
    np.testing.assert_allclose(fitted.predict_proba(prob), prob, atol=1e-12)
    fitted.save(tmp_path / "map.json")
    assert load_recalibrator(tmp_path / "map.json").unchanged_


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_search_that_ends_is_not_touched(method):
    prob, y_true = over_confident(400, 3)
    assert not method.fit(prob, y_true).unchanged_


def test_values_that_differ_by_rounding_are_equal_and_no_number_is_worse():
    assert not Objective(1.0 + 1e-12, 1.0).is_worse
    assert Objective(1.0 + 1e-6, 1.0).is_worse
    assert Objective(np.nan, 1.0).is_worse
    assert Objective.sum([Objective(1.0, 2.0), Objective(3.0, 4.0)]) == Objective(4.0, 6.0)
    assert Objective.sum([Objective(1.0, 2.0), None]) is None
