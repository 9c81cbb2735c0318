"""The closed test names an update that is needed, and rarely one that is not."""

import re

import numpy as np
import pytest
from scipy.special import expit, logit

import caltest
from caltest.clinical import calibration_by_site, clinical_calibration, update_test
from caltest.predictions.inputs._refusals import NO_TIMES

QUICK = {"n_resamples": 199, "rng": 0}


def drawn(n, intercept, slope, seed):
    rng = np.random.default_rng(seed)
    l = rng.normal(-1, 1.2, n)  # noqa: E741
    return (rng.random(n) < expit(intercept + slope * l)).astype(int), expit(l)


@pytest.mark.parametrize(
    ("intercept", "slope", "update"),
    [(0.0, 1.0, "none"), (0.8, 1.0, "intercept"), (0.0, 0.4, "intercept and slope")],
)
def test_the_update_is_that_of_the_truth(intercept, slope, update):
    y, p = drawn(800, intercept, slope, 1)
    found = update_test(y, p, **QUICK)
    assert found.update == update
    estimate = caltest.estimation.calibration_slope(y, p)
    assert (found.slope, found.pvalue_of_slope) == (estimate.estimate, estimate.pvalue)
    score = caltest.calibration_test(y, p, statistic=caltest.statistics.CoxScore(), method="monte-carlo", **QUICK)
    assert found.pvalue == score.pvalue
    risk = np.array([0.0, 0.1, 0.5, 1.0])
    moved = {
        "none": risk[1:3],
        "intercept": expit(found.intercept + logit(risk[1:3])),
        "intercept and slope": expit(found.intercept_of_slope + found.slope * logit(risk[1:3])),
    }
    np.testing.assert_allclose(found.updated(risk), [0.0, *moved[update], 1.0])
    word = {"none": "No update", "intercept": "Update the intercept by", "intercept and slope": "Update intercept and"}
    assert found.conclusion.startswith(word[update])


@pytest.mark.slow
def test_updates_that_are_not_needed_are_rare():
    """At the level 5 %: any update of a calibrated model, and the slope where the intercept is enough."""
    sets, most = 400, 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)
    any_update = sum(update_test(*drawn(120, 0, 1, seed), **QUICK).update != "none" for seed in range(sets))
    of_slope = sum(update_test(*drawn(120, 0.8, 1, seed), **QUICK).update.endswith("slope") for seed in range(sets))
    assert any_update / sets < most
    assert of_slope / sets < most


def test_without_a_slope_the_intercept_is_updated():
    y, p = np.repeat([1, 0], [40, 20]), np.full(60, 0.3)
    found = update_test(y, p, **QUICK)
    assert (found.update, found.pvalue_of_slope) == ("intercept", 1.0)
    assert found.updated([0.3])[0] == pytest.approx(2 / 3)
    assert "nan" not in str(found)


def test_separated_labels_have_no_finite_update():
    p = np.linspace(0.05, 0.95, 60)
    found = update_test((p > 0.3).astype(int), p, **QUICK)
    assert found.update == "intercept and slope"
    assert "no finite slope is the best one" in found.conclusion
    with pytest.raises(ValueError, match="there is no finite update"):
        found.updated([0.2])


def test_an_impossible_label_calls_for_no_update():
    y, p = drawn(300, 0, 1, 3)
    found, alone = update_test(np.append(y, 1), np.append(p, 0.0), **QUICK), update_test(y, p, **QUICK)
    assert (found.update, found.intercept, found.n_impossible) == (alone.update, alone.intercept, 1)
    assert found.conclusion.startswith(
        "1 label had been given probability 0, which no update mends. What follows is about the others. "
    )
    assert found.conclusion.endswith(alone.conclusion)


def test_too_few_data_decide_nothing():
    y, p = drawn(300, 0.8, 1, 4)
    cases = [update_test([0, 1], [0.2, 0.7], **QUICK), update_test(y, p, groups=np.arange(300) % 4, **QUICK)]
    for found in cases:
        assert found.conclusion.startswith("It cannot be told whether an update is needed.")


def test_a_slope_below_0_is_said():
    y, p = drawn(400, 0, 1, 5)
    assert "less frequent where its risk is larger" in update_test(1 - y, p, **QUICK).conclusion


def test_bad_input():
    y, p = drawn(60, 0, 1, 0)
    found = update_test(y, p, **QUICK)
    for risk in ([1.2], [[0.1]], [-0.1, 0.5]):
        with pytest.raises(ValueError, match="`y_prob` must hold risks from 0 to 1 in one dimension"):
            found.updated(risk)
    with pytest.raises(ValueError, match="must hold events and other observations"):
        update_test(np.ones(60, dtype=int), p, **QUICK)


def test_without_a_slope_nothing_is_said_of_it():
    """Two events are too few for a slope, which is not said to be right."""
    risk = np.random.default_rng(0).uniform(0.1, 0.6, 200)
    result = update_test(np.arange(200) < 2, risk, n_resamples=99, rng=0)
    assert result.update == "intercept"
    assert "there is no slope, of too few events" in result.conclusion


def test_times_to_an_event_are_not_covered():
    time, risk = np.random.default_rng(0).exponential(3, 50), np.full(50, 0.3)
    for judge in (update_test, clinical_calibration):
        with pytest.raises(ValueError, match=re.escape(NO_TIMES)):
            judge(time, risk)
    with pytest.raises(ValueError, match=re.escape(NO_TIMES)):
        calibration_by_site(time, risk, site=np.arange(50) % 2)


def test_labels_that_are_all_impossible_or_leave_one_label():
    half = np.repeat([0.0, 1.0], 10)
    with pytest.raises(ValueError, match="`y_prob` must be above 0 for a label, got 0 for every one"):
        update_test(1 - half.astype(int), half, **QUICK)
    found = update_test(half.astype(int), half / 5, **QUICK)
    assert (found.update, found.intercept) == ("intercept", np.inf)
    assert found.conclusion.startswith("Predicted risks are too low (p = 0.005), and these labels are all equal")
    with pytest.raises(ValueError, match="there is no finite update"):
        found.updated([0.2])
