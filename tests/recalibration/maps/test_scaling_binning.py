"""Scaling-binning: means of a fitted map in cells of equal mass."""

import numpy as np
import pytest

from caltest.recalibration import HistogramBinning, PlattScaling, ScalingBinning, TemperatureScaling
from tests.recalibration.maps.test_one_vs_rest import over_confident


def test_values_are_means_of_the_fitted_map():
    prob, y_true = over_confident(200, 3)
    fitted = ScalingBinning().fit(prob, y_true)
    scaled = PlattScaling().fit(prob, y_true).predict_proba(prob)
    wanted = np.empty(prob.shape)
    for k in range(3):
        order = np.argsort(scaled[:, k])
        for part in np.array_split(order, 10):  # scores differ: ten cells of 20
            wanted[part, k] = scaled[part, k].mean()
    np.testing.assert_allclose(fitted.predict_proba(prob), wanted / wanted.sum(axis=1, keepdims=True), atol=1e-12)


def test_any_method_may_be_binned_and_is_not_changed():
    prob, y_true = over_confident(200, 3)
    method = TemperatureScaling(input="logits")
    fitted = ScalingBinning(method).fit(prob, y_true)
    assert not hasattr(method, "temperature_")
    assert fitted.recalibrator_.temperature_ == pytest.approx(TemperatureScaling().fit(prob, y_true).temperature_)
    same = ScalingBinning(method, input="logits").fit(np.log(prob), y_true)
    np.testing.assert_allclose(same.predict_proba(np.log(prob)), fitted.predict_proba(prob), atol=1e-9)


def test_it_varies_less_than_histogram_binning():
    """The claim of the paper: with as many cells, values vary less between calibration sets."""
    new = np.linspace(0.02, 0.98, 50)
    spread = {}
    for kind in (ScalingBinning, HistogramBinning):
        found = []
        for seed in range(20):
            prob, y_true = over_confident(200, 2, seed)
            found.append(kind().set_params(partition=None).fit(prob[:, 1], y_true).predict_proba(new)[:, 1])
        spread[kind] = np.var(found, axis=0).mean()
    assert spread[ScalingBinning] < spread[HistogramBinning]


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="`recalibrator` must be a recalibration method"):
        ScalingBinning("platt").fit([0.1, 0.9], [0, 1])
    with pytest.raises(TypeError, match="`partition`"):
        ScalingBinning(partition=10).fit([0.1, 0.9], [0, 1])
