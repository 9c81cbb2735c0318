"""What all methods that map the probability of each class hold to, and odd data."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

from caltest import Confidence, EqualMass, EqualWidth
from caltest.recalibration import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    SplineCalibration,
    load_recalibrator,
)
from caltest.recalibration.maps._one_vs_rest import normalise
from tests.recalibration.maps.test_recalibrated_classifier import EXPECTED

METHODS = [
    SplineCalibration(),
    SplineCalibration(13, constrained=True),
    SplineCalibration(4, Confidence(), curve="labels"),
    HistogramBinning(),
    HistogramBinning(EqualMass(7), "shared"),
    HistogramBinning(EqualMass(5), "bootstrap", n_resamples=10, rng=0),
    ScalingBinning(),
    ScalingBinning(BetaCalibration("ab"), EqualWidth(10)),
    IsotonicCalibration(),
    PlattScaling(),
    BetaCalibration(),
    BetaCalibration("am"),
    BetaCalibration("ab"),
]
EACH = pytest.mark.parametrize("method", METHODS, ids=str)


def over_confident(n_samples, n_classes, seed=0, sharper=2.0):
    """Predictions of a model whose temperature should be ``sharper``, and labels."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.7), n_samples)
    y_true = (prob.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1).clip(0, n_classes - 1)
    sharp = np.maximum(prob, 1e-12) ** sharper
    return sharp / sharp.sum(axis=1, keepdims=True), y_true


def assert_probabilities(prob):
    assert np.isfinite(prob).all()
    assert prob.min() >= 0
    np.testing.assert_allclose(prob.sum(axis=1), 1, atol=1e-12)


@EACH
def test_order_of_rows_and_classes(method):
    prob, y_true = over_confident(300, 4)
    wanted = method.fit(prob, y_true).predict_proba(prob)
    assert_probabilities(wanted)
    rows = np.random.default_rng(1).permutation(len(prob))
    np.testing.assert_allclose(method.fit(prob[rows], y_true[rows]).predict_proba(prob), wanted, atol=1e-8)
    order = np.array([2, 0, 3, 1])  # new column j is old class order[j]
    permuted = method.fit(prob[:, order], np.argsort(order)[y_true]).predict_proba(prob[:, order])
    np.testing.assert_allclose(permuted, wanted[:, order], atol=1e-8)


@EACH
def test_two_classes_and_their_mirror_image(method):
    prob, y_true = over_confident(200, 2)
    wanted = method.fit(prob, y_true).predict_proba(prob)
    assert_probabilities(wanted)
    mirrored = method.fit(prob[:, ::-1], 1 - y_true).predict_proba(prob[:, ::-1])
    np.testing.assert_allclose(mirrored[:, ::-1], wanted, atol=1e-7)
    event = method.fit(prob[:, 1], y_true).predict_proba(prob[:, 1])
    np.testing.assert_allclose(event, wanted, atol=1e-7)


@EACH
def test_saved_maps_are_the_same(method, tmp_path):
    prob, y_true = over_confident(200, 3)
    method.fit(prob, y_true).save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json")
    assert repr(again) == repr(method)
    np.testing.assert_array_equal(again.predict_proba(prob), method.predict_proba(prob))


@EACH
def test_it_repairs(method):
    """The quadratic score of new predictions gets better; the model is far from calibrated."""
    prob, y_true = over_confident(2000, 3, sharper=5.0)
    new, labels = over_confident(2000, 3, seed=1, sharper=5.0)
    score = [np.mean((one - np.eye(3)[labels]) ** 2) for one in (new, method.fit(prob, y_true).predict_proba(new))]
    assert score[1] < score[0]


def odd(name):
    rng = np.random.default_rng(0)
    prob, y_true = over_confident(60, 3)
    hot = np.eye(3)[rng.integers(0, 3, 60)]
    return {
        "one-hot": (hot, y_true),
        "one-hot and right": (hot, hot.argmax(axis=1)),
        "half zeros": (np.column_stack([prob[:, 0], 1 - prob[:, 0], np.zeros(60)]), y_true),
        "constant": (np.tile([0.2, 0.3, 0.5], (60, 1)), y_true),
        "a class without a label": (prob, y_true % 2),
        "one label": (prob, np.ones(60, dtype=int)),
        "one observation": (prob[:1], y_true[:1]),
        "two observations": (prob[:2], np.array([0, 1])),
        "ties": (np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])[rng.integers(0, 2, 60)], y_true),
        "rare": (np.tile([0.001, 0.009, 0.99], (60, 1)), np.full(60, 2)),
        "tiny": (np.column_stack([np.full(60, 1e-300), np.linspace(0.1, 0.9, 60), np.linspace(0.9, 0.1, 60)]), y_true),
    }[name]


NAMES = ["one-hot", "one-hot and right", "half zeros", "constant", "a class without a label", "one label"]
NAMES += ["one observation", "two observations", "ties", "rare", "tiny"]


@EACH
def test_odd_data(method):
    for name in NAMES:
        prob, y_true = odd(name)
        fitted = method.fit(prob, y_true)
        for new in (prob, np.eye(3), np.full((1, 3), 1 / 3)):
            assert_probabilities(fitted.predict_proba(new))


def test_rows_of_zeros_become_equal_probabilities():
    prob = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    fitted = HistogramBinning(EqualWidth(2)).fit(prob, np.array([2, 2, 0, 1]))
    assert fitted.predict_proba(np.array([[0.4, 0.3, 0.3], [0.3, 0.1, 0.6]])).tolist() == [[1 / 3] * 3, [0, 0, 1]]


def test_a_class_without_a_label_has_the_documented_value():
    prob, y_true = over_confident(100, 3)
    few = y_true % 2  # no label is 2
    assert IsotonicCalibration().fit(prob, few).predict_proba(prob)[:, 2].max() == 0
    platt = PlattScaling().fit(prob, few)
    assert 1 / (1 + np.exp(-platt.intercept_[2])) == pytest.approx(1 / 102)
    beta = BetaCalibration().fit(prob, few)
    assert (beta.a_[2], beta.b_[2]) == pytest.approx((0, 0), abs=1e-8)
    assert 1 / (1 + np.exp(-beta.c_[2])) == pytest.approx(1 / 102)


FAST = (SplineCalibration(), HistogramBinning())


def test_probabilities_that_sum_to_1_up_to_rounding_are_not_divided():
    prob = np.array([*permutations([0.1, 0.3, 0.6]), (0.2, 0.2, 0.4), (0.0, 0.0, 0.0)])
    expected = np.array([*permutations([0.1, 0.3, 0.6]), np.array((0.2, 0.2, 0.4)) / 0.8, (1 / 3, 1 / 3, 1 / 3)])
    np.testing.assert_array_equal(normalise(prob), expected)


@pytest.mark.parametrize(
    "method",
    [*FAST, *(pytest.param(one, marks=pytest.mark.slow) for one in METHODS if repr(one) not in map(repr, FAST))],
    ids=str,
)
def test_many_classes(method):
    prob, y_true = over_confident(60, 1000)
    assert_probabilities(method.fit(prob, y_true % 25).predict_proba(prob[:5]))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 30), st.sampled_from(METHODS))
def test_outputs_are_probabilities(seed, n_classes, n_samples, method):
    prob, y_true = over_confident(n_samples, n_classes, seed, sharper=4.0)
    new, _ = over_confident(20, n_classes, seed + 1, sharper=8.0)
    assert_probabilities(method.fit(prob, y_true).predict_proba(new))


WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "a weight is close to, but not, a number of observations"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", [SplineCalibration, HistogramBinning, ScalingBinning, IsotonicCalibration, PlattScaling, BetaCalibration]
)
def test_it_passes_the_checks_of_scikit_learn(kind):
    expected = {name: why for name, why in EXPECTED.items() if name != "check_classifiers_one_label"}  # it passes
    expected |= WEIGHTS if kind in {SplineCalibration, ScalingBinning} else {}
    found = check_estimator(kind(input="logits"), expected_failed_checks=expected, on_skip=None)
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(expected)
