"""Pictures of a recalibration study."""

import numpy as np
import pytest

import caltest
from caltest.recalibration import TemperatureScaling, VectorScaling
from tests.recalibration.maps.test_base import over_confident


@pytest.fixture(scope="module")
def study():
    prob, y_true = over_confident(300, 3)
    methods = {"temperature": TemperatureScaling(), "vector": VectorScaling()}
    return caltest.recalibration_study(y_true, {"net": prob}, methods, folds=2, n_resamples=199, rng=0)


def test_forest(study):
    error, score = study.plot()
    assert [label.get_text() for label in error.get_yticklabels()] == ["before", "temperature", "vector"]
    ends = np.array([path.vertices[:, 0] for path in error.collections[0].get_paths()])
    np.testing.assert_allclose(ends, [[100 * end for end in row.miscalibration.root_interval] for row in study])
    places = np.concatenate([line.get_xdata() for line in score.lines])
    assert sorted(places) == sorted(row.log_score for row in study)
    with pytest.raises(ValueError, match="2 axes"):
        caltest.plotting.plot_recalibration(study, [error])
    with pytest.raises(TypeError, match="RecalibrationStudy"):
        caltest.plotting.plot_recalibration(1)


def test_before_and_after(study):
    before, after = caltest.plotting.plot_before_after(study, "vector", model="net")
    assert (before.get_title(), after.get_title()) == ("before", "after vector scaling")
    with pytest.raises(KeyError):
        caltest.plotting.plot_before_after(study, "x")
