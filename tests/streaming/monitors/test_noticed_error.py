"""The smallest error that a monitor would have noticed: the share of alarms at it, and what is said of it."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest import CalibrationMonitor
from caltest.streaming.monitors import _noticed_error
from tests.reference.cases import mostly_nightly


def calm(prob, seed=0):
    """A monitor that has found nothing."""
    rng = np.random.default_rng(seed)
    while True:
        monitor = CalibrationMonitor().update((rng.random(len(prob)) < prob).astype(int), prob)
        if monitor.result().pvalue > 0.05:
            return monitor.result().verdict


def test_two_probabilities_have_the_sums_of_the_predictions():
    for prob in (np.array([0.2, 0.2, 0.7]), np.random.default_rng(0).beta(0.3, 5, 500), np.full(4, 0.1)):
        some, weight = _noticed_error._nodes(*(float(np.mean(prob**k)) for k in (1, 2, 3)))
        for k in range(4):
            assert np.dot(weight, np.power(some, k)) == pytest.approx(np.mean(prob**k), rel=1e-9)
    assert _noticed_error._nodes(0.1, 0.01, 0.001) == ((0.1,), (1.0,))


def test_a_calm_monitor_says_what_it_would_have_noticed():
    prob = np.random.default_rng(1).beta(2, 6, 1500)
    verdict = calm(prob)
    found = verdict.detectable
    assert [(error.kind, error.family) for error in found.errors] == [("too low", "shift"), ("too high", "shift")]
    assert 3 < found.points < 6
    assert (found.n_samples, found.n_passed) == (1500, 1500)
    assert (
        f"Had the predictions been too low or too high by {found.points:.1f} percentage points from the beginning, "
        "there would have been an alarm in 4 of 5 such sequences"
    ) in verdict.conclusion
    assert "approves nothing" not in " ".join(verdict.advice)
    mirrored = calm(1 - prob).detectable
    assert mirrored.points == pytest.approx(found.points, rel=0.2)


def test_a_long_monitor_is_simulated_in_part(monkeypatch):
    monkeypatch.setattr(_noticed_error, "MOST", 500)
    verdict = calm(np.random.default_rng(1).random(600))
    assert "there would have been an alarm within the first 500 observations" in verdict.conclusion


def test_of_several_classes_the_confidence_is_meant():
    rng = np.random.default_rng(2)
    prob = rng.dirichlet(np.ones(3), 800)
    label = (rng.random((800, 1)) >= prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    found = CalibrationMonitor().update(label, prob).result().verdict.detectable
    assert [error.kind for error in found.errors] == ["under-confident", "over-confident"]
    assert found.conclusion.startswith("Had the model been under-confident or over-confident by ")


def test_rare_events_and_few_observations():
    rare = calm(np.full(3000, 0.004)).detectable
    assert rare.conclusion.startswith(f"Had the true risks been {rare.factor:.3g} times the predicted ones from the")
    few = calm(np.full(12, 0.5)).detectable
    assert math.isnan(few.points)
    assert few.conclusion.startswith("These are so few observations that no error, however large, would have raised an")
    assert few.too_few


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([100, 400]))
def test_the_share_of_alarms_at_the_smallest_error(n_sets):
    """Of new sequences: 4 standard errors of their number, and those of the 240 that the size is found by."""
    rng = np.random.default_rng(4)
    for prob in (expit(rng.normal(-1.6, 1.2, 1000)), expit(rng.normal(0, 4, 1000))):
        for error in calm(prob).detectable.errors:
            true = expit(logit(prob) + error.size)
            alarms = [
                CalibrationMonitor().update((rng.random(1000) < true).astype(int), prob).alarm is not None
                for _ in range(n_sets)
            ]
            bound = 4 * math.sqrt(0.16 / n_sets + 0.16 / 240)
            assert np.mean(alarms) == pytest.approx(0.8, abs=bound), error.kind


def test_the_complement_of_an_event_has_the_same_numbers():
    rng = np.random.default_rng(2)
    prob = rng.beta(2, 6, 400)
    happened = (rng.random(400) < prob).astype(int)
    one, other = (
        CalibrationMonitor().update(y, p).result().verdict.detectable
        for y, p in ((happened, prob), (1 - happened, 1 - prob))
    )
    opposite = {"too low": "too high", "too high": "too low"}
    expected = {opposite[error.kind]: error.points for error in one.errors}
    assert {error.kind: error.points for error in other.errors} == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([100, 400]))
@pytest.mark.parametrize("options", mostly_nightly([{"lead": 7}, {"lead": 2, "batch": 5}]))
def test_the_share_of_alarms_with_pending_outcomes(options, n_sets):
    """The same where outcomes count later: sequences that are as long as the simulated ones."""
    rng = np.random.default_rng(5)
    lead, size = options["lead"], options.get("batch", 1)
    prob, time = rng.beta(2, 3, 1500), np.arange(1500) // size
    monitor = CalibrationMonitor(lead=lead).update(rng.random(1500) < prob, prob, time=time)
    for error in monitor.result().verdict.detectable.errors:
        true = expit(logit(prob) + error.size)
        alarms = [
            CalibrationMonitor(lead=lead).update(rng.random(1500) < true, prob, time=time).alarm is not None
            for _ in range(n_sets)
        ]
        assert abs(np.mean(alarms) - error.power) < 4 * math.sqrt(0.8 * 0.2 * (1 / n_sets + 1 / 240))


def test_outcomes_of_a_sequence_are_independent_where_several_are_pending(monkeypatch):
    monkeypatch.setattr(_noticed_error, "MOST_TIMES", 100)
    rng = np.random.default_rng(6)
    prob = rng.random(400)
    monitor = CalibrationMonitor(lead=2).update(rng.random(400) < prob, prob, time=np.arange(400) // 4)
    found = monitor.result().verdict.detectable
    assert (found.n_samples, found.n_passed) == (396, 396)
    assert "in 4 of 5 such sequences of independent outcomes;" in found.conclusion
    assert monitor.result().verdict.detectable is found
