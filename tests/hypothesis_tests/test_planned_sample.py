"""The number of observations that finds an error: it fits `detectable_error`, and the power at it is as promised."""

import json
import math
import re

import numpy as np
import pytest
from scipy.special import expit

import caltest
from benchmarks import detectable
from caltest.hypothesis_tests import plan_sample_size

RISKS = expit(np.random.default_rng(0).normal(-1.5, 1, 400))
CLASSES = np.random.default_rng(1).dirichlet([1, 2, 3], 300)


def test_what_is_said():
    often = "in 4 of 5 data sets."
    cases = [
        (
            {"factor": 2},
            r"About \d\d observations such as these are needed to find true risks of 2 times the predicted ",
        ),
        (
            {"points": 99},
            "Such predictions cannot have this error: predictions that are wrong by 99 percentage points ",
        ),
    ]
    for options, expected in cases:
        plan = plan_sample_size(RISKS, rng=0, **options)
        assert re.match(expected, plan.conclusion), plan.conclusion
        assert (often in plan.conclusion) == (plan.n_samples is not None)
        assert plan.conclusion in " ".join(str(plan).split())
        assert json.loads(json.dumps(plan.to_dict(), allow_nan=False))["n_samples"] == plan.n_samples


@pytest.mark.slow
def test_the_number_fits_the_smallest_error():
    """Both have standard errors of about 1 % of the power, which are 4 % of the number."""
    found = {error.kind: error for error in caltest.detectable_error(RISKS, rng=0).errors}
    expected = len(RISKS)
    for options, kind in (
        ({"slope": found["too extreme"].size}, "too extreme"),
        ({"slope": found["not extreme enough"].size}, "not extreme enough"),
        ({"factor": found["too low"].factor}, "too low"),
        ({"factor": found["too high"].factor}, "too high"),
    ):
        plan = plan_sample_size(RISKS, rng=1, **options)
        assert plan.kind == kind
        assert plan.n_samples == pytest.approx(expected, rel=0.2), options
    mirrored = plan_sample_size(1 - RISKS, factor=found["too low"].factor, rng=2)
    assert (mirrored.kind, mirrored.n_samples) == ("too high", pytest.approx(expected, rel=0.2))
    points = plan_sample_size(RISKS, points=max(error.points for error in found.values()), rng=3)
    assert points.n_samples == pytest.approx(expected, rel=0.2)


@pytest.mark.nightly
def test_the_power_at_the_number():
    """4 standard errors of 600 data sets, and 0.03 of the number that was found."""
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    plan = plan_sample_size(CLASSES, temperature=1.5, rng=rng)
    prob = np.resize(CLASSES, (plan.n_samples, 3))
    true_prob = detectable.true_probability(prob, "temperature", 1.5)
    labels = [detectable.simulate(true_prob, rng) for _ in range(600)]
    rejected = [caltest.calibration_test(y, prob, n_resamples=999, rng=rng).rejected for y in labels]
    assert np.mean(rejected) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 600) + 0.03), seed


@pytest.mark.slow
def test_large_numbers_are_extrapolated():
    plan, tenth = (plan_sample_size(RISKS, points=points, rng=0) for points in (0.5, 0.05))
    assert (plan.extrapolated, tenth.extrapolated) == (False, True)
    assert tenth.n_samples == pytest.approx(100 * plan.n_samples, rel=0.25)


def test_bad_input_of_a_plan():
    for prob, options, message in (
        (RISKS, {}, "give the size of the error as one of `points`, `slope`, `factor` and `temperature`, got none."),
        (RISKS, {"points": 5, "slope": 2}, "`factor` and `temperature`, got `points` and `slope`."),
        (RISKS, {"slope": 1}, "`slope` must not be 1, which is no error."),
        (RISKS, {"points": -5}, "`points` must be a positive, finite number, got -5."),
        (RISKS, {"temperature": 2}, "`temperature` is for several classes, got 2 classes."),
        (CLASSES, {"slope": 2}, "`slope` is for two outcomes, got 3 classes."),
        (RISKS, {"slope": 2, "power": 0.01}, "`power` must be larger than `alpha` 0.05, got 0.01."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            plan_sample_size(prob, **options)
    with pytest.raises(TypeError, match="takes no `groups`: predictions do not tell how alike"):
        plan_sample_size(RISKS, slope=2, groups=np.arange(400) // 2)
