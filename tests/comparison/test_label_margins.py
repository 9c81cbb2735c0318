"""Probabilities of labels halfway between two recalibrated models."""

import numpy as np
import pytest

import caltest as ct
from caltest.comparison._label_margins import LabelOutcomes, label_outcomes, margins_of
from caltest.comparison._u_statistics import terms_of
from caltest.predictions._sample import induce
from tests.comparison.models import two_models

TREE = ct.VarianceTree(max_cells=4)


def problem(lens, n_classes=3):
    y_true, a, b = two_models(120, n_classes, seed=4, calibrated=False)
    samples = [induce(prob, y_true, lens=lens, group=np.arange(120) // 3) for prob in (a, b)]
    return (a, b), samples, terms_of(samples, TREE)


def recalibrated(part):
    """Predictions plus the mean residual of the cell, in the caller's order."""
    mean = part.mean[part.place[part.entry]]
    return part.prob + (np.column_stack([-mean, mean]) if part.n_columns == 1 else mean)


def test_labels_lie_halfway_between_the_recalibrated_models():
    for n_classes in (2, 3):
        _, samples, terms = problem(ct.Canonical(), n_classes)
        assert label_outcomes(ct.Canonical(), [], samples) is None
        margin, outcome = margins_of(terms, None)
        assert outcome.tolist() == [list(range(n_classes))] * 2
        inside = np.all([recalibrated(part).min(axis=1) > 0.01 for part in terms], axis=0)
        assert inside.sum() > 30
        halfway = np.mean([recalibrated(part) for part in terms], axis=0)
        assert margin[inside] == pytest.approx(halfway[inside], abs=1e-12)
        assert margin.sum(axis=1) == pytest.approx(1)
        assert margin.min() > 0


@pytest.mark.parametrize("lens", [ct.Confidence(), ct.TopK(2), ct.ClassWise(1)])
def test_behind_a_lens_all_combinations_of_outcomes_are_drawn(lens):
    probs, samples, terms = problem(lens)
    outcomes = label_outcomes(lens, probs, samples)
    margin, outcome = margins_of(terms, outcomes)
    number = samples[0].n_outcomes
    assert margin.sum(axis=1) == pytest.approx(1)
    assert outcome.shape == (2, number**2)
    alike = np.all(outcomes[0].outcome == outcomes[1].outcome, axis=1)  # the same labels make the same outcomes
    assert alike.sum() > 20
    different = margin[np.ix_(alike, outcome[0] != outcome[1])]
    assert not different.any()
    inside = alike & np.all([recalibrated(part).min(axis=1) > 0.01 for part in terms], axis=0)
    chance = margin @ (outcome[0][:, None] == np.arange(number))
    halfway = np.mean([recalibrated(part) for part in terms], axis=0)
    assert chance[inside] == pytest.approx(halfway[inside], abs=1e-12)


def test_outcomes_are_those_of_every_label():
    probs, _, _ = problem(ct.Confidence())
    found = LabelOutcomes.of(ct.Confidence(), probs[0])
    assert np.array_equal(found.outcome, np.arange(3) == probs[0].argmax(axis=1)[:, None])
    few = [
        induce(prob, np.zeros(120, int), weight=(np.arange(120) > 5).astype(float) + (np.arange(120) > 50))
        for prob in probs
    ]
    assert len(label_outcomes(ct.Confidence(), probs, few)[0].prob) == 114  # rows of weight 0 are left out
