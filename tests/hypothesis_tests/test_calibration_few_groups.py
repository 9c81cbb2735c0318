"""Tests with groups of which few have an event: what is rejected, and what cannot be told."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

import caltest
from benchmarks.few_groups import LEVEL, Design
from tests.reference.cases import mostly_nightly

TEN = np.arange(1000) // 100
OPTIONS = {"groups": TEN, "n_resamples": 199, "rng": 0}


def test_events_in_few_groups_decide_nothing():
    """20 events are expected, and there are none, or 6 in two of ten groups: these may be calibrated predictions."""
    prob, labels = np.full(1000, 0.02), np.zeros(1000, dtype=int)
    for events in (0, 6):
        labels[: 50 * events : 50] = 1  # three groups
        result = caltest.calibration_test(labels, prob, **OPTIONS)
        assert result.decision == "undecidable"
        assert result.method == "alike-labels"
        assert result.pvalue > LEVEL >= caltest.calibration_test(labels, prob, n_resamples=199, rng=0).pvalue
        number = "only 3" if events else "none"
        assert f"{number} of 10 groups ha{'ve' if events else 's'} a label other" in result.conclusion
        assert "5 are needed" in result.conclusion
        assert "more groups" in result.verdict.advice[0]
        other = caltest.calibration_test(1 - labels, 1 - prob, **OPTIONS)
        assert (other.decision, other.conclusion.split("(")[0]) == ("undecidable", result.conclusion.split("(")[0])


def test_several_classes_count_wrong_predictions():
    prob = np.tile([0.98, 0.01, 0.01], (1000, 1))
    result = caltest.calibration_test(np.zeros(1000, dtype=int), prob, **OPTIONS)
    assert (result.decision, result.n_expected) == ("undecidable", 0)
    assert result.pvalue > LEVEL


def test_events_in_all_groups_still_reject():
    prob, labels = np.full(1000, 0.02), np.zeros(1000, dtype=int)
    labels[::15] = 1  # 67 events, 7 in each group
    result = caltest.calibration_test(labels, prob, **OPTIONS)
    assert result.rejected
    assert result.findings[0].kind == "too low"
    weighted = caltest.calibration_test(labels, prob, **OPTIONS, sample_weight=np.ones(1000))
    assert (weighted.pvalue, weighted.method) == (result.pvalue, result.method)
    assert caltest.calibration_test(labels, prob, **OPTIONS, workers=2).pvalue == result.pvalue


def copies(rng):
    """Return labels, predictions and groups of 200 outcomes that are predicted five times."""
    prob, group = rng.beta(0.6, 2.4, 200), np.arange(1000) // 5
    return (rng.random(200) < prob)[group].astype(int), prob[group], group


def dependent(rng):
    """Return labels, predictions and groups of 40 groups with an intraclass correlation of 0.3."""
    prob, group = rng.random(40), np.arange(1000) // 25
    chance = rng.beta(7 / 3 * prob, 7 / 3 * (1 - prob))
    return (rng.random(1000) < chance[group]).astype(int), prob[group], group


@pytest.mark.parametrize(("kind", "seed"), [(copies, 42), (dependent, 1)])
def test_more_than_20_groups_with_an_event_are_not_enough(kind, seed, monkeypatch):
    """Signs rejected these calibrated models, because the sums of their groups are skewed."""
    labels, prob, groups = kind(np.random.default_rng(seed))
    options = {"groups": groups, "n_resamples": 199, "rng": 0}
    result = caltest.calibration_test(labels, prob, **options)
    assert (result.decision, result.method) == ("not rejected", "alike-labels")
    for name in ("ENOUGH_GROUPS", "ENOUGH_COPIES"):
        monkeypatch.setattr(f"caltest.resampling.draws._alike_draws.{name}", 20)
    before = caltest.calibration_test(labels, prob, **options)
    assert (before.decision, before.method) == ("rejected", "random-signs")


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([80, 300]))
def test_one_outcome_that_is_predicted_many_times_is_rejected_at_the_level(n_sets):
    """The predictions of a patient are updated. Signs rejected 7 to 10 %, with 75 groups that have a surprise."""
    rng, found, limit = np.random.default_rng(np.random.SeedSequence().entropy), [], ndtri(0.7) * np.sqrt(5)
    for _ in range(n_sets):
        known = rng.standard_normal((200, 5)).cumsum(axis=1)
        prob = ndtr((known[:, :3] - limit) / np.sqrt([4, 3, 2]))
        label = np.repeat(known[:, -1] > limit, 3).astype(int)
        result = caltest.calibration_test(label, prob.ravel(), groups=np.arange(600) // 3, n_resamples=99, rng=rng)
        found.append(result.rejected)
    assert sum(found) <= binom.ppf(1 - 1e-4, len(found), LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "design",
    [
        Design(10, 1000, 0.02, 0.15, predictions="between", dependence="beta"),
        Design(30, 1000, 0.02, 0.15, predictions="between", dependence="beta", n_classes=5),
    ],
    ids=["event", "classes"],
)
@pytest.mark.parametrize("n_draws", mostly_nightly([15, 60]))
def test_calibrated_models_are_rejected_at_the_level(design, n_draws):
    """Labels and signs alone rejected 29 to 40 % of these."""
    rng, found = np.random.default_rng(np.random.SeedSequence().entropy), []
    for _ in range(5):
        sample = design.sample(rng)
        for labels in design.labels(sample, n_draws, rng):
            result = caltest.calibration_test(labels, sample.prob, groups=sample.group, n_resamples=99, rng=rng)
            found.append(result.rejected)
    assert sum(found) <= binom.ppf(1 - 1e-4, len(found), LEVEL)
