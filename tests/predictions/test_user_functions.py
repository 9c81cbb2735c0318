"""What users' functions are given, what they must return, and that nothing of the caller's changes."""

import numpy as np
import pytest

import caltest
from caltest import ECE, Confidence, Consistency, EqualWidth
from caltest.predictions._user_functions import apply_calibration_function, apply_lens, apply_region
from tests.reference.cases import check_refused, failures, mostly_slow
from tests.reference.examples import PROBLEMS, reverse

N = 60
PROB = np.random.default_rng(3).dirichlet(np.ones(3), size=N)
PROB = (np.random.default_rng(4).multinomial(61, PROB) + 1) / 64
LABEL = (np.random.default_rng(5).random(N)[:, None] > np.cumsum(PROB, axis=1)).sum(axis=1)


# Read-only views.


def writing_lens(prob, outcome):
    prob[:] = [0.25, 0.25, 0.5]
    return prob, outcome


def label_writing_lens(prob, outcome):
    outcome[:] = 0
    return prob, outcome


def writing_region(prob):
    prob.sort()
    return np.ones(len(prob), dtype=bool)


def writing_function(prob):
    prob += 1
    return prob


def writing_partition(prob):
    prob[:] = 0.5
    return np.zeros(len(prob), dtype=int)


def writing_distance(predicted, observed):
    predicted[:] = 0
    return np.abs(observed).sum(axis=-1)


class WritingPartition(caltest.predictions.Partition):
    """A user's partition that writes to what it is given, when fitted and when applied."""

    def __init__(self, when):
        self.when = when

    def fit(self, prob):
        if self.when == "fitted":
            prob[:] = 0.5
        return writing_partition


OPTIONS = {
    "default": {},
    "lens of the package": {"lens": Confidence()},
    "a user's lens": {"lens": reverse},
    "classes": {"classes": [0, 1, 2]},
    "resampled": {"resampling": Consistency(resample_predictions=True)},
}
WRITING = {
    "lens": {"lens": writing_lens},
    "lens that writes to labels": {"lens": label_writing_lens},
    "region": {"region": writing_region},
    "partition": {"statistic": ECE(partition=writing_partition)},
    "partition, fitted": {"statistic": ECE(partition=WritingPartition("fitted"))},
    "partition, applied": {"statistic": ECE(partition=WritingPartition("applied"))},
    "distance": {"statistic": ECE(partition=EqualWidth(3), distance=writing_distance)},
    "calibration_function": {"resampling": Consistency(calibration_function=writing_function)},
}


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


KINDS = {"float64": np.array, "float32": np.float32, "Fortran order": np.asfortranarray, "strided": strided}


@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
@pytest.mark.parametrize("writeable", mostly_slow([False, True]), ids=["read-only", "writeable"])
def test_arrays_of_the_caller_never_change(writeable):
    def check(options, kind=np.array, y_true=LABEL, prob=PROB):
        label, y_prob, weight = y_true.copy(), kind(prob), np.ones(len(prob))
        expected = y_prob.copy()
        for array in (label, y_prob, weight):
            array.flags.writeable = writeable
        name = next((argument for argument in WRITING if options is WRITING[argument]), None)
        refused = f"`{name.split(',')[0].split(' that')[0]}` must not write to its arguments" if name else None
        for call in (caltest.calibration_test, caltest.calibration_error):
            more = {"n_resamples": 9, "rng": 0} if call is caltest.calibration_test else {"sample_weight": weight}
            if call is caltest.calibration_error and "resampling" in options:
                continue
            if refused is None:
                call(label, y_prob, **more, **options)
            else:
                with pytest.raises(ValueError, match=refused):
                    call(label, y_prob, **more, **options)
        np.testing.assert_array_equal(label, y_true)
        np.testing.assert_array_equal(y_prob, expected)
        np.testing.assert_array_equal(weight, 1)
        assert y_prob.flags.writeable == writeable

    for name, kind in KINDS.items():
        assert (name, failures(OPTIONS | WRITING, lambda options, kind=kind: check(options, kind))) == (name, {})
    for problem in PROBLEMS:
        found = failures(
            ["default", "resampled"], lambda name, p=problem: check(OPTIONS[name], np.array, p.y_true, p.y_prob)
        )
        assert (problem.name, found) == (problem.name, {})


def test_an_error_of_the_users_own_is_left_as_it_is():
    def region(prob):
        msg = "my own trouble"
        raise ValueError(msg)

    with pytest.raises(ValueError, match=r"^my own trouble$"):
        apply_region(region, PROB)


def test_what_is_returned_may_be_written_to():
    """A function may return the view that it was given, and kernels take arrays that may be written to."""
    induced, _ = apply_lens(lambda prob, outcome: (prob, outcome), PROB, LABEL)
    true = apply_calibration_function(lambda prob: prob, PROB, "calibration_function")
    for array in (induced, true):
        assert array.flags.writeable
        assert not np.shares_memory(array, PROB)


# What functions must return.

LENS_WANTED = "`lens` must be a lens such as Confidence() or a function of (prob, outcome), got "
LENS_SHAPES = "`lens` must return probabilities (60, n_outcomes >= 2) and outcomes (60,), got "
REGION_WANTED = "`region` must return booleans of shape (60,), got "
PARTITION_WANTED = "`partition` must return an integer cell label per observation, shape (60,), got "
SUMS = "`calibration_function` must return probabilities that sum to 1, got ["


def true(function):
    return {"resampling": Consistency(calibration_function=function)}


def cut(partition):
    return {"statistic": ECE(partition=partition)}


class BadLabels(caltest.predictions.Partition):
    """A user's partition class whose labels are no integers."""

    def fit(self, prob):
        return lambda new: new[:, 0]


REFUSED = {
    "lens a text": (TypeError, {"lens": "confidence"}, LENS_WANTED + "'confidence'."),
    "lens a class": (TypeError, {"lens": Confidence}, LENS_WANTED + "<class 'caltest.predictions._lenses.Confidence'>"),
    "lens of one column": (
        ValueError,
        {"lens": lambda p, y: (p[:, :1], y * 0)},
        LENS_SHAPES + "(60, 1) and (60,).",
    ),
    "lens of one dimension": (ValueError, {"lens": lambda p, y: (p[:, 0], y)}, LENS_SHAPES + "(60,) and (60,)."),
    "lens that drops observations": (
        ValueError,
        {"lens": lambda p, y: (p[1:], y[1:])},
        LENS_SHAPES + "(59, 3) and (59,).",
    ),
    "lens that drops outcomes": (ValueError, {"lens": lambda p, y: (p, y[:1])}, LENS_SHAPES + "(60, 3) and (1,)."),
    "lens that returns nothing": (
        ValueError,
        {"lens": lambda p, y: None},
        "`lens` must return a pair (prob, outcome), got NoneType.",
    ),
    "lens that returns texts": (
        ValueError,
        {"lens": lambda p, y: (p.astype(str)[:, :1] + "x", y)},
        "`lens` must return real numbers: could not convert string to float",
    ),
    "lens whose probabilities do not sum to 1": (
        ValueError,
        {"lens": lambda p, y: (p * 2, y)},
        "`lens` must return probabilities that sum to 1, got 2 in row ",
    ),
    "lens that returns NaN": (
        ValueError,
        {"lens": lambda p, y: (p * np.nan, y)},
        "`lens` must return finite probabilities, got nan.",
    ),
    "lens with outcomes too large": (
        ValueError,
        {"lens": lambda p, y: (p, y + 1)},
        "`lens` must return outcomes 0 to 2, got int64 from 1 to 3.",
    ),
    "lens with negative outcomes": (
        ValueError,
        {"lens": lambda p, y: (p, y - 1)},
        "`lens` must return outcomes 0 to 2, got int64 from -1 to 1.",
    ),
    "lens with fractions as outcomes": (
        ValueError,
        {"lens": lambda p, y: (p, y / 1)},
        "`lens` must return outcomes 0 to 2, got float64",
    ),
    "region no function": (TypeError, {"region": 5}, "`region` must be a function of probabilities, got 5."),
    "region of wrong shape": (
        ValueError,
        {"region": lambda p: np.ones(3, dtype=bool)},
        REGION_WANTED + "bool of shape (3,).",
    ),
    "region with an axis too many": (ValueError, {"region": lambda p: p > 0}, REGION_WANTED + "bool of shape (60, 3)."),
    "region of integers": (
        ValueError,
        {"region": lambda p: np.arange(len(p))},
        REGION_WANTED + "int64 of shape (60,).",
    ),
    "empty region": (
        ValueError,
        {"region": lambda p: np.zeros(len(p), dtype=bool)},
        "`region` must hold at least one observation (of positive weight), got none.",
    ),
    "partition into fractions": (ValueError, cut(lambda p: p[:, 0]), PARTITION_WANTED + "float64 of shape (60,)."),
    "partition class into fractions": (ValueError, cut(BadLabels()), PARTITION_WANTED + "float64 of shape (60,)."),
    "partition of wrong shape": (
        ValueError,
        cut(lambda p: np.zeros(3, dtype=int)),
        PARTITION_WANTED + "int64 of shape (3,).",
    ),
    "partition with an axis too many": (
        ValueError,
        cut(lambda p: np.zeros((len(p), 1), dtype=int)),
        PARTITION_WANTED + "int64 of shape (60, 1).",
    ),
    "distance that does not reduce": (
        ValueError,
        {"statistic": ECE(distance=lambda p, q: p - q)},
        "`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape ",
    ),
    "distance that reduces everything": (
        ValueError,
        {"statistic": caltest.MCE(EqualWidth(3), lambda p, q: abs(p - q).sum())},
        "`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape ",
    ),
    "distance that reduces the first axis": (
        ValueError,
        {"statistic": ECE(EqualWidth(3), lambda p, q: abs(p - q).sum(axis=0))},
        "`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape ",
    ),
    "distance that returns NaN": (
        ValueError,
        {"statistic": ECE(distance=lambda p, q: (q * np.nan).sum(axis=-1))},
        "`distance` must return numbers, got nan.",
    ),
}
REFUSED_BY_THE_TEST = {
    "calibration function of one dimension": (
        true(lambda p: p[:, 0]),
        "`calibration_function` must return shape (60, 3), got (60,).",
    ),
    "calibration function that drops a class": (
        true(lambda p: p[:, :2]),
        "`calibration_function` must return shape (60, 3), got (60, 2).",
    ),
    "calibration function that drops observations": (
        true(lambda p: p[:1]),
        "`calibration_function` must return shape (60, 3), got (1, 3).",
    ),
    "calibration function that does not sum to 1": (true(lambda p: p / 2), SUMS),
    "calibration function with negative values": (true(lambda p: p - [0.9, 0, 0] + [0, 0, 0.9]), SUMS),
    "calibration function that returns NaN": (true(lambda p: np.full_like(p, np.nan)), SUMS),
    "calibration function that returns texts": (
        true(lambda p: [["a"] * 3] * len(p)),
        "`calibration_function` must return real numbers: could not convert string to float",
    ),
}


def test_what_functions_must_be_and_return():
    def check(case):
        kind, options, message = case
        for call in (caltest.calibration_error, caltest.calibration_test):
            check_refused(call, kind, message, LABEL, PROB, **options)

    assert failures(REFUSED, check) == {}
    test = caltest.calibration_test
    found = failures(REFUSED_BY_THE_TEST, lambda case: check_refused(test, ValueError, case[1], LABEL, PROB, **case[0]))
    assert found == {}


def test_distances_are_functions():
    for wrong in ("l1", 3, dict):
        with pytest.raises(TypeError, match=r"`distance` must be a function of \(predicted, observed\)"):
            caltest.calibration_error(LABEL, PROB, statistic=ECE(distance=wrong))
