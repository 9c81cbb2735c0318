"""Plain arrays are validated in one pass: the states and refusals are those of the validation of every test."""

import warnings

import numpy as np
import pytest

from caltest.predictions import Canonical, ClassWise, Confidence, TopRank
from caltest.predictions.inputs._validation import PAIR_ROUNDING
from caltest.streaming import CalibrationState
from caltest.streaming.states._state import plain_events
from tests.reference.cases import mostly_slow


def problem(kind: str, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    prob = rng.dirichlet(np.full(4, 0.3), n)
    prob = {
        "dirichlet": prob,
        "ties": np.full((n, 4), 0.25),
        "one-hot": np.eye(4)[rng.integers(4, size=n)],
        "float32": prob.astype(np.float32),
        "rounded": np.round(prob, 5),
        "one": prob[:1],
    }[kind]
    return rng.integers(4, size=len(prob)), prob


@pytest.mark.parametrize("kind", mostly_slow(["dirichlet", "ties", "one-hot", "float32", "rounded", "one"]))
def test_arrays_give_the_state_of_lists(kind):
    label, prob = problem(kind)
    frozen = np.asfortranarray(prob)
    frozen.flags.writeable = False
    for lens in (Confidence(), ClassWise(0), ClassWise(3), TopRank(2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if kind == "rounded" else "error")
            expected = CalibrationState(4, lens).update(label.tolist(), prob)
            for y_true in (label, label.astype(np.uint8), label.astype(np.float64)):
                for y_prob in (prob, frozen):
                    assert CalibrationState(4, lens).update(y_true, y_prob) == expected, lens
    event, happened = prob[:, 1], label == 1
    expected = CalibrationState().update(happened.tolist(), event.tolist())
    two = np.column_stack([1.0 - event, event])
    total = two.astype(float).sum(axis=1)  # of float32 it misses 1, and is divided out
    second = np.where(np.abs(total - 1) > PAIR_ROUNDING, event / total, event)
    of_two = CalibrationState().update(happened.tolist(), second.tolist())
    for y_true in (happened, happened.astype(np.int8), happened.astype(np.float32)):
        assert CalibrationState().update(y_true, event) == expected
        assert CalibrationState().update(y_true, two) == of_two


def test_the_usual_arrays_take_the_short_way():
    label, prob = problem("dirichlet")
    assert plain_events(label, prob, 4, Confidence()) is not None
    assert plain_events(label == 0, prob[:, 0], 2, Canonical()) is not None
    assert plain_events(label.tolist(), prob, 4, Confidence()) is None
    assert plain_events(label, prob, 4, TopRank(2)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.1])
@pytest.mark.parametrize("row", [0, 499])
def test_every_row_is_validated_before_any_is_added(value, row):
    label, prob = problem("dirichlet")
    prob[row, 2] = value
    for lens in (Confidence(), ClassWise(0)):
        state = CalibrationState(4, lens)
        with pytest.raises(ValueError, match=f"row {row}, column 2"):
            state.update(label, prob)
        assert state.n_samples == 0
    with pytest.raises(ValueError, match=f"in row {row}"):
        CalibrationState().update(label == 2, prob[:, 2])


@pytest.mark.parametrize("wrong", [-1, 4])
def test_labels_out_of_range_are_refused(wrong):
    label, prob = problem("dirichlet")
    label[321] = wrong
    with pytest.raises(ValueError, match=f"got {wrong} in row 321"):
        CalibrationState(4).update(label, prob)
    with pytest.raises(ValueError, match="y_true"):
        CalibrationState().update(label, prob[:, 0])


def test_sums_that_rounding_does_not_explain_are_refused():
    label, prob = problem("dirichlet")
    prob[10] *= 0.9
    with pytest.raises(ValueError, match="sum to 1"):
        CalibrationState(4).update(label, prob)
