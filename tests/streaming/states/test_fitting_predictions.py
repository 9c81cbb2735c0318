"""Predictions that fit a state: they agree with what it holds, and errors that are found in them with the true ones."""

import numpy as np
import pytest

from caltest import ECE, Canonical, EqualWidth, VarianceTree
from caltest.hypothesis_tests._detection import Detection
from caltest.predictions import FixedTree, SimplexGrid
from caltest.predictions._sample import induce
from caltest.streaming import CalibrationState, RedrawnCells
from caltest.streaming.states._fitting_predictions import FittingPredictions


def logits(n, k, seed=0):
    odds = np.exp(np.random.default_rng(seed).normal(0, 2, (n, k)) + np.linspace(1, -1, k))
    return odds / odds.sum(axis=1, keepdims=True)


GRID = EqualWidth(4)


def fitted(prob, partition=GRID):
    """What fits a state of predictions; labels do not matter."""
    state = CalibrationState(prob.shape[1], Canonical(), RedrawnCells(partition, n_resamples=1))
    return FittingPredictions(state.update(prob.argmax(axis=1), prob)._answers().sums)


@pytest.mark.parametrize(
    "partition", [EqualWidth(4), SimplexGrid(4), FixedTree.grow(logits(500, 3, 1), VarianceTree(max_cells=8))]
)
def test_they_have_what_the_state_holds(partition):
    prob = logits(3000, 3)
    found = fitted(prob, partition)
    cell, sums = found._places(found.number), found.sums
    np.testing.assert_array_equal(sums.redrawn.label(found.prob), sums.label[cell])  # also which cell they lie in
    np.testing.assert_allclose(found.prob.sum(axis=1), 1)
    assert found.prob.min() >= 0
    mean = np.stack([np.bincount(cell, column) for column in found.prob.T], axis=1) / sums.count[:, None]
    assert (np.abs(mean - sums.predicted / sums.count[:, None]).max(axis=1) < 5 * 0.25 / np.sqrt(sums.count)).all()
    squares = np.bincount(cell, np.square(found.prob).sum(axis=1))
    assert squares.sum() == pytest.approx(sums.squares.sum(), rel=0.02)
    entropy = -np.sum(found.prob * np.log(np.maximum(found.prob, 1e-300)))
    assert entropy == pytest.approx(sums.expected_loss, rel=0.03)


@pytest.mark.parametrize("kind", ["single ones", "equal", "one-hot"])
def test_cells_of_equal_predictions_are_exact(kind):
    prob = {
        "single ones": np.array([[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]]),
        "equal": np.tile([0.2, 0.3, 0.5], (50, 1)),
        "one-hot": np.eye(3)[[0, 1, 2, 2]],
    }[kind]
    found = fitted(prob)
    order = np.lexsort(prob.T[::-1])
    np.testing.assert_allclose(found.prob[np.lexsort(found.prob.round(9).T[::-1])], prob[order], atol=1e-12)
    assert found.within == 0
    assert not found.why_not


def test_it_says_why_nothing_fits():
    rng = np.random.default_rng(0)
    wide = fitted(rng.dirichlet(np.ones(4), 500), EqualWidth(1))
    assert wide.why_not.startswith("100 % of the variance of the predictions lies within the cells (bins)")
    many = logits(40_000, 10) ** 1.5
    many = fitted(many / many.sum(axis=1, keepdims=True))
    assert many.number == 2**14
    assert many.why_not == "it would take too long to simulate so many labels in so many cells (bins)"
    uneven = fitted(rng.dirichlet(np.full(10, 0.1), 3000))
    assert uneven.why_not == "no predictions are found that fit what this state holds of them"


@pytest.mark.slow
def test_errors_that_are_found_are_those_of_the_predictions():
    """In points, to 10 %: 4 standard errors of two fits to about 2,000 data sets each, and 5 % of the fit."""
    for prob in (logits(2000, 3), logits(3000, 5)):
        found = fitted(prob)
        samples = (induce(some, np.zeros(len(some), dtype=int)) for some in (prob, found.prob))
        exact, about = (Detection.of(ECE(EqualWidth(4)), sample, n_resamples=1999).usual for sample in samples)
        for one, other in zip(exact.errors, about.errors, strict=True):
            assert other.points == pytest.approx(one.points, rel=0.1)
