"""Measures: estimates, what units add, intervals and what calibrated predictions have."""

import numpy as np
import pytest

import caltest as ct
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._times import Timing
from caltest.ranking._measures import KINDS, Judged
from caltest.statistics._segments import cells_of_groups
from caltest.statistics._sums_in_time import SumsInTime
from tests.reference.examples import draw_labels
from tests.reference.in_time import number_of_cosines


def judged(n=80, n_classes=3, weight=None, group=None, timing=None, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.6), n)
    outcome = draw_labels(prob, rng)
    sample = induce(prob, outcome, lens=Canonical(), weight=weight, group=group, timing=timing)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    return Judged(0.95, 0.5, sample, prob, outcome, share)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("design", ["plain", "weights", "groups", "both"])
def test_units_add_up_to_the_estimates(n_classes, design):
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, 80) if design in {"weights", "both"} else None
    group = np.arange(80) // 4 if design in {"groups", "both"} else None
    one = judged(n_classes=n_classes, weight=weight, group=group)
    for name, function in {
        "log_score": ct.estimation.log_score,
        "brier": ct.estimation.brier_score,
        "accuracy": ct.estimation.accuracy,
    }.items():
        found = KINDS[name].of(one)
        expected = function(one.outcome, one.prob, sample_weight=weight)
        sign = -1 if KINDS[name].larger_is_better else 1
        assert found.measure.estimate == pytest.approx(expected)
        assert found.adds.sum() == pytest.approx(sign * expected)
        assert len(found.adds) == (80 if group is None else 20)
        assert found.measure.confidence_interval.low < expected < found.measure.confidence_interval.high
    found = KINDS["l2"].of(one)
    expected = ct.l2_interval(one.outcome, one.prob, sample_weight=weight, groups=group)
    assert found.measure.estimate == pytest.approx(expected.root)
    assert found.adds.sum() == pytest.approx(expected.estimate)
    assert tuple(found.measure.confidence_interval) == pytest.approx(tuple(expected.root_interval))


@pytest.mark.parametrize("name", list(KINDS))
def test_units_in_time_have_the_sum_and_the_cosines_of_the_observations(name):
    step = np.random.default_rng(3).permutation(80)
    one, plain = judged(timing=Timing(step, 4, "4")), judged()
    found, number = KINDS[name].of(one), number_of_cosines(step, 4)
    share = one.in_units(one.share)
    assert share == pytest.approx(np.full(number + 1, 1 / (number + 1)))
    if name == "l2":
        terms = SumsInTime.of(one.sample, cells_of_groups(one.sample))
        expected, deviation = terms.estimate, 2 * terms.scores / terms.total_weight
    else:
        adds = KINDS[name].of(plain).adds
        expected = adds.sum()
        angle = np.pi * np.outer(np.arange(1, number + 1), step + 0.5) / 80
        deviation = np.sqrt(2 / number) * np.cos(angle) @ (adds - adds.mean())
    assert found.adds.sum() == pytest.approx(expected)
    angle = np.pi * np.outer(np.arange(1, number + 1), np.arange(number + 1) + 0.5) / (number + 1)
    assert np.sqrt(2 / number) * np.cos(angle) @ found.adds == pytest.approx(deviation)
    assert ((found.adds - expected * share) ** 2).sum() == pytest.approx(number / (number + 1) * (deviation**2).sum())


def test_what_calibrated_predictions_have_is_the_mean_over_drawn_labels():
    one, rng = judged(), np.random.default_rng(2)
    for name in ("log_score", "brier", "accuracy"):
        drawn = []
        for _ in range(100):
            outcome = draw_labels(one.prob, rng)
            sample = induce(one.prob, outcome, lens=Canonical())
            drawn.append(KINDS[name].of(Judged(0.95, 0.5, sample, one.prob, outcome, one.share)).measure.estimate)
        tolerance = 4 * np.std(drawn) / np.sqrt(len(drawn))
        assert abs(np.mean(drawn) - KINDS[name].of(one).measure.if_calibrated) < tolerance, name
    roots = np.sqrt(np.maximum(rng.standard_normal(10_000), 0))  # of the l2 error in many cells
    deviation = ct.l2_interval(one.outcome, one.prob).null_std
    tolerance = 4 * roots.std() / np.sqrt(len(roots)) * np.sqrt(deviation)
    assert abs(roots.mean() * np.sqrt(deviation) - KINDS["l2"].of(one).measure.if_calibrated) < tolerance


def test_a_label_of_probability_0_has_an_infinite_score():
    prob = np.array([[0.0, 1.0], *[[0.3, 0.7]] * 9])
    outcome = np.array([0, *[1, 0, 1] * 3])
    found = KINDS["log_score"].of(
        Judged(0.95, 0.0, induce(prob, outcome, lens=Canonical()), prob, outcome, np.full(10, 0.1))
    )
    assert found.measure.estimate == np.inf
    assert not found.is_known
    assert np.isfinite(found.measure.if_calibrated)
    assert np.isnan(found.measure.confidence_interval.low)
