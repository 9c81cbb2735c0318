"""Stacks of passes: averaged where predictions are asked for, and refused where nobody asked for an average."""

import numpy as np
import pytest

import caltest as ct
from caltest import recalibration, streaming
from caltest.predictions import PredictionStack
from tests.reference.cases import check_refused


@pytest.fixture(scope="module")
def problem():
    """Labels, and passes around the predictions that they follow."""
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 120)
    logits = np.log(prob) + rng.normal(scale=0.8, size=(7, 120, 3))
    passes = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return (prob.cumsum(axis=1) < rng.random((120, 1))).sum(axis=1), passes


def test_the_average_is_that_of_a_loop(problem):
    """Equation 28 of Laves et al. (2020)."""
    _, passes = problem
    stack = PredictionStack(passes, average="passes")
    loop = [[sum(prob[i][k] for prob in passes) / 7 for k in range(3)] for i in range(120)]
    np.testing.assert_allclose(stack.mean, loop, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(np.asarray(stack), stack.mean)
    assert len(stack) == 120
    assert repr(stack) == "PredictionStack(7 passes, 120 observations, 3 classes)"
    one = PredictionStack(passes[:1].astype(np.float32), average="passes")
    np.testing.assert_allclose(one.mean, passes[0], atol=1e-6)


@pytest.mark.slow(few_draws=True)
def test_it_is_the_average_wherever_predictions_are_asked_for(problem):
    y_true, passes = problem
    stack, quick = PredictionStack(passes, average="passes"), {"n_resamples": 99, "rng": 0}
    before = passes.copy()
    calls = {
        "test": lambda prob: ct.calibration_test(y_true, prob, **quick).pvalue,
        "error": lambda prob: ct.calibration_error(y_true, prob),
        "score": lambda prob: ct.estimation.brier_score(y_true, prob),
        "curve": lambda prob: ct.reliability_curve(y_true, prob).error,
        "diagram": lambda prob: ct.estimation.uncertainty_diagram(y_true, prob).pvalue,
        "floor": lambda prob: ct.noise_floor(prob, **quick).mean,
        "entropy": lambda prob: ct.estimation.normalized_entropy(prob).sum(),
        "models": lambda prob: (
            ct.compare_models(y_true, {"a": prob, "b": passes[0]}, **quick).models[0].errors[0].statistic
        ),
        "map": lambda prob: recalibration.TemperatureScaling().fit(prob, y_true).predict_proba(prob).sum(),
        "state": lambda prob: float(streaming.CalibrationState(3).update(y_true, prob).error()),
    }
    for name, call in calls.items():
        assert np.all(call(stack) == call(stack.mean)), name
    np.testing.assert_array_equal(passes, before)


def test_plain_stacks_are_refused(problem):
    y_true, passes = problem
    told = (
        "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got (7, 120, 3); "
        "passes of a network (n_passes, n_samples, n_classes) are averaged on request: "
        'caltest.predictions.PredictionStack(y_prob, average="passes").'
    )
    check_refused(ct.calibration_test, ValueError, told, y_true, passes)
    check_refused(ct.rejection_curve, ValueError, told, y_true, passes)


def test_what_is_no_stack_is_refused(problem):
    _, passes = problem
    wrong = passes.copy()
    wrong[3, 0] = 1.5, -0.5, 0.0
    for given, average, kind, message in (
        (passes[0], "passes", ValueError, "`y_prob` must have shape (n_passes, n_samples, n_classes), got (120, 3)"),
        (passes[:0], "passes", ValueError, "`y_prob` must hold at least one pass"),
        (wrong, "passes", ValueError, "pass 3: `y_prob` must lie in [0, 1], got 1.5 in row 0, column 0"),
        (passes, "samples", ValueError, "`average` must be one of 'passes', got 'samples'"),
        (passes, 0, TypeError, "`average` must be one of 'passes'"),
    ):
        check_refused(PredictionStack, kind, message, given, average=average)
    with pytest.raises(TypeError, match="average"):
        PredictionStack(passes)
