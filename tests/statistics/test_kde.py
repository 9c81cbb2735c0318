"""Errors by kernel density estimation: published values, by hand, and what must hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._segments import Surprises, surprises
from tests.reference.cases import check_refused, failures
from tests.statistics.networks import NETWORKS, network
from tests.statistics.problems import PROFILE, error, event_problems

TOLERANCE = 1e-9

# From goldens.json; columns are NETWORKS.
CONFIDENCE = (0.0267056652281, 0.0264220712694, 0.0285264108767, 0.0384422845545)
SILVERMAN = (0.0860942605876, 0.0522859484145, 0.0153585463775, 0.0709020014037)

SUPPORT = (1 / 10, 1.0)
GRID = (1 / 10 - 3, 4.0, 2**14)
"""Support and grid of the authors' program for the confidence in one of ten classes."""


# Published values.


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_errors_of_networks(shared_data, column):
    y_true, y_prob = network(shared_data, column)
    right, confidence = y_prob.argmax(axis=1) == y_true, y_prob.max(axis=1).astype(float)
    value = error(y_true, y_prob, ct.statistics.KDEError(0.05, support=SUPPORT, grid=GRID), ct.Confidence())
    assert value == pytest.approx(CONFIDENCE[column], abs=TOLERANCE)
    ours = error(right, confidence, ct.statistics.KDEError(0.05, support=SUPPORT))
    assert ours == pytest.approx(value, rel=2e-3)  # midpoints instead of the authors' points
    by_rule = error(right, confidence, ct.statistics.KDEError(support=SUPPORT, grid=GRID))
    assert by_rule == pytest.approx(SILVERMAN[column], abs=TOLERANCE)


def test_the_grid_of_the_authors_does_not_resolve_the_rule_of_silverman(shared_data):
    """Steps of 0.0004 against a bandwidth of 0.00009: the error on it is half too large."""
    y_true, y_prob = network(shared_data, 0)
    right, confidence = y_prob.argmax(axis=1) == y_true, y_prob.max(axis=1).astype(float)
    ours = error(right, confidence, ct.statistics.KDEError(support=SUPPORT))
    finer = error(right, confidence, ct.statistics.KDEError(support=SUPPORT, grid=(*GRID[:2], 2**17)))
    assert ours == pytest.approx(finer, rel=0.03)
    assert SILVERMAN[0] > 1.4 * ours


# A few surprises are added one by one, many by a transform.


@pytest.mark.parametrize("kernel", ["triweight", "gaussian"])
@pytest.mark.parametrize("bandwidth", [0.002, 0.05, 0.5])
def test_lists_and_transforms_agree(kernel, bandwidth):
    rng = np.random.default_rng(1)
    event = np.sort(np.concatenate([[0.0, 0.0, 0.5, 1.0], rng.beta(0.05, 0.05, 60)]))
    statistic = ct.statistics.KDEError(bandwidth, kernel)
    for weight in (None, 1.0 + np.arange(64) % 3):
        sample = make_sample(np.zeros(64, dtype=int), event, sample_weight=weight)
        outcomes = (rng.random((5, 64)) < event).astype(np.uint8)
        smoother, expected, total, _ = statistic._prepare(sample)
        surprise = surprises(sample, outcomes)
        by_transform = np.abs(smoother.sums(surprise) - expected).sum(axis=1) / total
        by_list = statistic.evaluate_surprises(sample, Surprises.of(surprise))
        np.testing.assert_allclose(by_list, by_transform, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(statistic.evaluate(sample, outcomes), by_transform, rtol=1e-12, atol=1e-15)


def test_few_surprises_are_listed():
    sharp, vague = (np.random.default_rng(0).beta(a, a, 2000) for a in (0.01, 1.0))
    for event, bandwidth, few in (
        (sharp, 0.001, True),
        (vague, 0.001, True),
        (vague, 0.02, False),
        (sharp, 0.2, False),
    ):
        sample = make_sample(np.zeros(2000, dtype=int), event)
        assert ct.statistics.KDEError(bandwidth).needs_surprises(sample) is few, bandwidth


# By hand.


def test_one_or_constant_predictions():
    assert error([1], [0.25], ct.statistics.KDEError(0.1, reference="mean")) == pytest.approx(0.75, abs=1e-12)
    # Silverman's bandwidth is 0 here: the smallest, 1 / 2 ** 14, serves.
    assert error([1], [0.25], ct.statistics.KDEError()) == pytest.approx(0.75, abs=1e-4)
    y_true, y_prob = [1] * 5 + [0] * 15, [0.5] * 20
    assert error(y_true, y_prob, ct.statistics.KDEError(reference="mean")) == pytest.approx(0.25, abs=1e-12)
    assert error(y_true, y_prob, ct.statistics.KDEError()) == pytest.approx(0.25, abs=1e-4)
    # What smoothing alone does: E|g - 1/2| of a triweight variable is 3 h * 35 / 128.
    value = error([1] * 10 + [0] * 10, y_prob, ct.statistics.KDEError(0.05))
    assert value == pytest.approx(0.15 * 35 / 128, rel=1e-3)


def test_without_miscalibration_beyond_rounding():
    assert error([1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0], ct.statistics.KDEError(reference="mean")) == 0


def test_the_published_reference_has_no_power_on_a_sharp_model():
    """Why there is another: smoothing moves predictions near 1 by more than this model is wrong."""
    options = {"lens": ct.Confidence(), "n_resamples": 99, "rng": 0}
    for statistic, pvalue in (
        (ct.statistics.KDEError(0.05), 1),
        (ct.statistics.KDEError(0.05, reference="mean"), 1 / 100),
        (ct.SmoothECE(), 1 / 100),
    ):
        result = ct.calibration_test(*ct.datasets.load_cifar10_vgg16(), statistic=statistic, **options)
        assert result.pvalue == pvalue, statistic


# What must hold.


@PROFILE
@given(problem=event_problems(one_sign=True), bandwidth=st.sampled_from(["silverman", 0.02, 0.2, 1.0]))
def test_residuals_of_one_sign_keep_their_mass(problem, bandwidth):
    """The kernel is a density on [0, 1] wherever its prediction lies: the error is the mean residual."""
    y_true, y_prob = problem
    mean = (y_true - y_prob).mean()
    for kernel in ("triweight", "gaussian"):
        statistic = ct.statistics.KDEError(bandwidth, kernel=kernel, reference="mean")
        assert error(y_true, y_prob, statistic) == pytest.approx(mean, abs=1e-12), kernel


@PROFILE
@given(problem=event_problems(), data=st.data())
def test_a_whole_weight_is_a_repeated_observation(problem, data):
    """With a given bandwidth; Silverman's rule ignores weights."""
    y_true, y_prob = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y_true), max_size=len(y_true)).filter(any))
    for statistic in (ct.statistics.KDEError(0.1), ct.statistics.KDEError(0.1, reference="mean")):
        weighted = error(y_true, y_prob, statistic, sample_weight=times)
        repeated = error(np.repeat(y_true, times), np.repeat(y_prob, times), statistic)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-12, err_msg=str(statistic))


# Refusals.

SCALE = "`bandwidth` must be 'silverman' or a number from 6.1e-05 to 1 for this `support`, got"
ENDS = "`support` must be a pair (low, high) with 0 <= low < high <= 1, got"
STEPS = "`grid` must be (start, stop, n_points) with start <= 0.0, stop >= 1.0 and at least two steps in `support`, got"
REFUSED = {
    "word": ({"bandwidth": "scott"}, ValueError, f"{SCALE} 'scott'."),
    "zero": ({"bandwidth": 0.0}, ValueError, f"{SCALE} 0.0."),
    "tiny": ({"bandwidth": 1e-6}, ValueError, f"{SCALE} 1e-06."),
    "nan": ({"bandwidth": math.nan}, ValueError, f"{SCALE} nan."),
    "array": ({"bandwidth": np.array([0.1, 0.2])}, TypeError, f"{SCALE} array"),
    "wider than the support": (
        {"bandwidth": 0.7, "support": (0.5, 1)},
        ValueError,
        "to 0.5 for this `support`, got 0.7.",
    ),
    "kernel": (
        {"kernel": "cosine"},
        ValueError,
        "`kernel` must be one of 'triweight', 'gaussian', 'beta', got 'cosine'.",
    ),
    "reference": ({"reference": "grid"}, ValueError, "`reference` must be one of 'point', 'mean', got 'grid'."),
    "ends exchanged": ({"support": (1, 0)}, ValueError, f"{ENDS} (1, 0)."),
    "one end": ({"support": 0.5}, TypeError, f"{ENDS} 0.5."),
    "short grid": ({"grid": (0.1, 1.0, 50)}, ValueError, f"{STEPS} (0.1, 1.0, 50)."),
    "one step": ({"grid": (0.0, 1.0, 2)}, ValueError, f"{STEPS} (0.0, 1.0, 2)."),
    "broken count": ({"grid": (0.0, 1.0, 9.5)}, ValueError, f"{STEPS} (0.0, 1.0, 9.5)."),
    "grid of one number": ({"grid": 100}, TypeError, f"{STEPS} 100."),
}


def test_bad_parameters_are_refused():
    def check(case):
        options, kind, message = case
        check_refused(ct.statistics.KDEError, kind, message, **options)

    assert failures(REFUSED, check) == {}


def test_the_support_must_contain_the_predictions():
    message = "`support` must contain all probabilities of the event, got (0.5, 1.0) and 0.3."
    check_refused(error, ValueError, message, [0, 1], [0.3, 0.7], ct.statistics.KDEError(support=(0.5, 1)))
