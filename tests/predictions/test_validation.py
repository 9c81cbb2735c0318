"""What may be passed, and what is refused: each kind of input and each refusal is one case."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest
from caltest import ECE, Confidence, Consistency, EqualMass, EqualWidth, Partition
from caltest.predictions._validation import SUM_TOLERANCE, validate_level, validate_number

N = 60
RNG = np.random.default_rng(3)
# Multiples of 1 / 64, none of them 0: float16, float32 and float64 hold the same numbers.
PROB = (RNG.multinomial(61, RNG.dirichlet(np.ones(3), size=N)) + 1) / 64
LABEL = (RNG.random(N)[:, None] > np.cumsum(PROB, axis=1)).sum(axis=1)
EVENT = PROB[:, 2]
HAPPENED = LABEL == 2
NAMES = ["bird", "cat", "dog"]
NAMED = np.array(NAMES)[LABEL]


def read_only(array):
    array = array.copy(order="K")
    array.flags.writeable = False
    return array


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


def tensor(array, **options):
    torch = pytest.importorskip("torch")
    return torch.tensor(np.ascontiguousarray(array), **options)


def answer(y_true, y_prob, **options):
    """The two numbers that must not depend on the kind of input."""
    error = caltest.calibration_error(y_true, y_prob, **options)
    return error, caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0, **options).pvalue


MATRICES = {
    "float64": lambda p: p,
    "float32": lambda p: p.astype(np.float32),
    "float16": lambda p: p.astype(np.float16),
    "longdouble": lambda p: p.astype(np.longdouble),
    "big-endian": lambda p: p.astype(">f8"),
    "lists": lambda p: p.tolist(),
    "tuple of lists": lambda p: tuple(p.tolist()),
    "list of arrays": list,
    "objects": lambda p: p.astype(object),
    "Fortran order": np.asfortranarray,
    "Fortran order float32": lambda p: np.asfortranarray(p, dtype=np.float32),
    "read-only": read_only,
    "read-only Fortran order": lambda p: read_only(np.asfortranarray(p)),
    "strided": strided,
    "unmasked masked array": np.ma.masked_array,
    "pandas DataFrame": pd.DataFrame,
    "pandas DataFrame named columns": lambda p: pd.DataFrame(p, columns=NAMES, index=range(N, 0, -1)),
    "pandas DataFrame float32": lambda p: pd.DataFrame(p, dtype="float32"),
    "pandas DataFrame nullable": lambda p: pd.DataFrame(p).astype("Float64"),
    "pandas DataFrame objects": lambda p: pd.DataFrame(p).astype(object),
    "polars DataFrame": lambda p: pl.DataFrame(p, schema=NAMES),
    "polars DataFrame float32": lambda p: pl.DataFrame(p.astype(np.float32)),
    "polars Series of arrays": lambda p: pl.Series(p.tolist(), dtype=pl.Array(pl.Float64, 3)),
    "polars Series of lists": lambda p: pl.Series(p.tolist()),
    "torch float64": tensor,
    "torch float32": lambda p: tensor(p.astype(np.float32)),
    "torch requires_grad": lambda p: tensor(p.astype(np.float32), requires_grad=True),
    "torch transposed": lambda p: tensor(p.T).T,
}
EVENTS = {
    "float64": lambda p: p,
    "float32": lambda p: p.astype(np.float32),
    "float16": lambda p: p.astype(np.float16),
    "two columns": lambda p: np.column_stack([1 - p, p]),
    "list": lambda p: p.tolist(),
    "list of NumPy scalars": list,
    "read-only": read_only,
    "strided": strided,
    "pandas Series": lambda p: pd.Series(p, index=range(N, 0, -1)),
    "pandas Series nullable": lambda p: pd.Series(p, dtype="Float64"),
    "polars Series": pl.Series,
    "polars Series float32": lambda p: pl.Series(p.astype(np.float32)),
    "torch float64": tensor,
    "torch float32": lambda p: tensor(p.astype(np.float32)),
    "torch requires_grad": lambda p: tensor(p, requires_grad=True),
}
INDICES = {
    "int32": lambda y: y.astype(np.int32),
    "uint8": lambda y: y.astype(np.uint8),
    "float64": lambda y: y.astype(np.float64),
    "float32": lambda y: y.astype(np.float32),
    "list": lambda y: y.tolist(),
    "list of floats": lambda y: y.astype(float).tolist(),
    "list of NumPy scalars": list,
    "objects": lambda y: y.astype(object),
    "read-only": read_only,
    "strided": strided,
    "pandas Series": lambda y: pd.Series(y, index=range(N, 0, -1)),
    "pandas Series nullable": lambda y: pd.Series(y, dtype="Int64"),
    "pandas Series float": lambda y: pd.Series(y, dtype=float),
    "pandas categorical": pd.Categorical,
    "polars Series": pl.Series,
    "polars Series uint8": lambda y: pl.Series(y, dtype=pl.UInt8),
    "torch int64": tensor,
    "torch int32": lambda y: tensor(y.astype(np.int32)),
}
BOOLEANS = {
    "bool": lambda y: y,
    "int": lambda y: y.astype(int),
    "float": lambda y: y.astype(float),
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "read-only": read_only,
    "pandas Series": pd.Series,
    "pandas Series nullable": lambda y: pd.Series(y, dtype="boolean"),
    "polars Series": pl.Series,
    "torch bool": tensor,
}
NAMED_LABELS = {
    "list": (NAMED.tolist(), NAMES),
    "array": (NAMED, NAMES),
    "objects": (NAMED.astype(object), NAMES),
    "read-only": (read_only(NAMED), NAMES),
    "classes a tuple": (NAMED, tuple(NAMES)),
    "classes an array": (NAMED, np.array(NAMES)),
    "classes a pandas Index": (NAMED, pd.Index(NAMES)),
    "classes a polars Series": (NAMED, pl.Series(NAMES)),
    "pandas Series": (pd.Series(NAMED), NAMES),
    "pandas Series of objects": (pd.Series(NAMED.astype(object), dtype=object), NAMES),
    "pandas Series string": (pd.Series(NAMED, dtype="string"), NAMES),
    "pandas categorical": (pd.Categorical(NAMED), NAMES),
    "pandas categorical Series, codes in another order": (
        pd.Series(pd.Categorical(NAMED, categories=["dog", "bird", "cat", "eel"])),
        NAMES,
    ),
    "polars Series": (pl.Series(NAMED.tolist()), NAMES),
    "polars categorical": (pl.Series(NAMED.tolist(), dtype=pl.Categorical), NAMES),
    "polars enum": (pl.Series(NAMED.tolist(), dtype=pl.Enum(["dog", "cat", "bird"])), NAMES),
    "integers": (np.array([7, 3, 5])[LABEL], [7, 3, 5]),
    "integer-valued floats": (np.array([7.0, 3.0, 5.0])[LABEL], [7, 3, 5]),
    "pandas categorical of integers": (pd.Categorical(np.array([7, 3, 5])[LABEL]), [7, 3, 5]),
    "enumerated": (LABEL, range(3)),
}


def test_the_reference_problem_can_tell_answers_apart():
    error, pvalue = answer(LABEL, PROB)
    assert error > 0
    assert 0.05 < pvalue < 0.95
    assert answer((LABEL + 1) % 3, PROB)[1] == 1 / 200
    assert answer(HAPPENED, 1 - EVENT)[1] < 0.05


@pytest.mark.parametrize("kind", MATRICES)
def test_probabilities_of_every_class(kind):
    assert answer(LABEL, MATRICES[kind](PROB)) == answer(LABEL, PROB)


@pytest.mark.parametrize("kind", EVENTS)
def test_probabilities_of_the_positive_class(kind):
    assert answer(HAPPENED, EVENTS[kind](EVENT)) == answer(HAPPENED, EVENT)


@pytest.mark.parametrize("kind", INDICES)
def test_labels_as_class_indices(kind):
    assert answer(INDICES[kind](LABEL), PROB) == answer(LABEL, PROB)


@pytest.mark.parametrize("kind", BOOLEANS)
def test_labels_as_booleans(kind):
    assert answer(BOOLEANS[kind](HAPPENED), EVENT) == answer(HAPPENED.astype(int), EVENT)


@pytest.mark.parametrize("classes", [[False, True], np.array([False, True]), [0, 1]])
def test_labels_as_booleans_with_classes(classes):
    assert answer(HAPPENED, EVENT, classes=classes) == answer(HAPPENED, EVENT)
    assert answer(HAPPENED, 1 - EVENT, classes=classes[::-1]) == answer(~HAPPENED, 1 - EVENT)


@pytest.mark.parametrize("kind", NAMED_LABELS)
def test_labels_named_by_classes(kind):
    labels, classes = NAMED_LABELS[kind]
    assert answer(labels, PROB, classes=classes) == answer(LABEL, PROB)


@pytest.mark.parametrize(
    "weight",
    [
        pytest.param(list, id="list"),
        pytest.param(read_only, id="read-only"),
        pytest.param(lambda w: w.astype(int), id="int"),
        pytest.param(lambda w: w.astype(np.float32), id="float32"),
        pytest.param(pd.Series, id="pandas"),
        pytest.param(lambda w: pd.Series(w, dtype="Float64"), id="pandas nullable"),
        pytest.param(pl.Series, id="polars"),
        pytest.param(lambda w: tensor(w, requires_grad=True), id="torch"),
    ],
)
def test_sample_weights(weight):
    w = np.arange(N, dtype=float)
    expected = caltest.calibration_error(LABEL, PROB, sample_weight=w)
    assert caltest.calibration_error(LABEL, PROB, sample_weight=weight(w)) == expected
    assert expected != caltest.calibration_error(LABEL, PROB)


def test_zero_and_one_in_lists_of_floats_are_probabilities():
    assert caltest.calibration_error([0, 1], [[0.5, 0.5], [0, 1]]) == caltest.calibration_error(
        [0, 1], np.array([[0.5, 0.5], [0.0, 1.0]])
    )


def test_float32_softmax_of_a_thousand_classes_passes():
    rng = np.random.default_rng(0)
    score = np.exp(rng.normal(0, 4, size=(500, 1000)).astype(np.float32))
    y_prob = score / score.sum(axis=1, keepdims=True)
    assert y_prob.dtype == np.float32
    assert np.any(y_prob.sum(axis=1, dtype=float) != 1)
    y_true = rng.integers(1000, size=500)
    assert answer(y_true, y_prob, lens=Confidence()) == answer(y_true, y_prob.astype(float), lens=Confidence())


def test_drift_of_a_row_sum_stays_in_the_statistic():
    drifted = PROB * (1 + SUM_TOLERANCE / 2)
    error = caltest.calibration_error(LABEL, drifted, statistic=ECE(partition=EqualWidth(1)))
    frequency = np.bincount(LABEL, minlength=3) / N
    assert error == pytest.approx(np.abs(drifted.mean(axis=0) - frequency).sum() / 2, rel=1e-12)
    assert error != pytest.approx(np.abs(PROB.mean(axis=0) - frequency).sum() / 2, rel=1e-12)


def test_drift_of_a_row_sum_does_not_reach_the_draws():
    def first_frequency(predicted, observed):
        return observed[..., 0]

    statistic = ECE(partition=EqualWidth(1), distance=first_frequency)
    plain, drifted = (
        caltest.calibration_test(LABEL, PROB * scale, statistic=statistic, n_resamples=199, rng=0)
        for scale in (1, 1 + SUM_TOLERANCE / 2)
    )
    assert np.ptp(plain.null_distribution) > 0
    np.testing.assert_array_equal(plain.null_distribution, drifted.null_distribution)


def writing_lens(prob, outcome):
    prob[:] = [0.25, 0.25, 0.5]
    outcome[:] = 0
    return prob, outcome


def writing_region(prob):
    prob[:] = 0.5
    return np.ones(len(prob), dtype=bool)


def writing_function(prob):
    prob[:] = [0.25, 0.25, 0.5]
    return prob


def writing_partition(prob):
    prob[:] = 0.5
    return np.zeros(len(prob), dtype=int)


class WritingPartition(caltest.Partition):
    """A user's partition that writes to what it is given, when fitted and when applied."""

    def fit(self, prob):
        prob[:] = 0.5
        return writing_partition


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lens": Confidence()},
        {"lens": writing_lens},
        {"region": writing_region},
        {"statistic": ECE(partition=writing_partition)},
        {"statistic": ECE(partition=WritingPartition())},
        {"resampling": Consistency(calibration_function=writing_function)},
        {"classes": [0, 1, 2]},
    ],
    ids=[
        "default",
        "lens",
        "writing lens",
        "writing region",
        "writing partition",
        "writing partition class",
        "writing calibration function",
        "classes",
    ],
)
@pytest.mark.parametrize("freeze", [False, True], ids=["writable", "read-only"])
@pytest.mark.parametrize("kind", ["float64", "float32", "Fortran order", "strided", "torch float64"])
def test_arrays_of_the_caller_never_change(kind, freeze, options):
    y_true, y_prob, weight = LABEL.copy(), MATRICES[kind](PROB.copy()), np.ones(N)
    if freeze and kind != "torch float64":
        y_prob = read_only(y_prob)
    y_true.flags.writeable = weight.flags.writeable = not freeze
    caltest.calibration_test(y_true, y_prob, n_resamples=9, rng=0, **options)
    if "resampling" not in options:
        caltest.calibration_error(y_true, y_prob, sample_weight=weight, **options)
    np.testing.assert_array_equal(y_true, LABEL)
    np.testing.assert_array_equal(y_prob, PROB)
    np.testing.assert_array_equal(weight, 1)


def changed(array, value, where=3):
    array = np.array(array, dtype=np.result_type(array, type(value)))
    array[where] = value
    return array


REFUSED_PROBABILITIES = {
    "NaN": (changed(PROB, np.nan, (3, 1)), "`y_prob` must be finite, got nan in row 3, column 1."),
    "infinity": (changed(PROB, np.inf, (3, 1)), "`y_prob` must be finite, got inf in row 3, column 1."),
    "minus infinity": (changed(PROB, -np.inf, (3, 1)), "`y_prob` must be finite, got -inf in row 3, column 1."),
    "None": ([*PROB[:3].tolist(), [0.5, 0.5, None]], "`y_prob` must be finite, got nan in row 3, column 2."),
    "polars null": (pl.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}), "`y_prob` must be finite, got nan in row 1, c"),
    "pandas NA": (pd.DataFrame({"a": [0.5, pd.NA], "b": [0.5, 0.5]}), "`y_prob` must hold real numbers: float() argum"),
    "NaN of the positive class": (changed(EVENT, np.nan), "`y_prob` must be finite, got nan in row 3."),
    "negative": (changed(PROB, -0.25, (3, 1)), "`y_prob` must lie in [0, 1], got -0.25 in row 3, column 1"),
    "above 1": (changed(PROB, 1.25, (3, 1)), "`y_prob` must lie in [0, 1], got 1.25 in row 3, column 1"),
    "a little above 1": (
        [[1 + 2**-20, 0.0]],
        "`y_prob` must lie in [0, 1], got 1.00000095367431",
    ),
    "above 1 for the positive class": (changed(EVENT, 1.5), "`y_prob` must lie in [0, 1], got 1.5 in row 3"),
    "logits": (np.log(PROB), "if these are logits, apply softmax first."),
    "logits of the positive class": (np.log(EVENT / (1 - EVENT)), "if these are logits, apply softmax first."),
    "percentages": (PROB * 100, "`y_prob` must lie in [0, 1], got "),
    "row sum too small": (
        changed(PROB, PROB[3] * 0.5),
        "rows of `y_prob` must sum to 1 within 0.0001, got 0.5 in row 3 (1 such rows)",
    ),
    "row sum too large": (
        changed(PROB, [0.5, 0.5, 0.5]),
        "rows of `y_prob` must sum to 1 within 0.0001, got 1.5 in row 3 (1 such rows)",
    ),
    "row sum just outside the tolerance": (
        changed(PROB, PROB[3] * (1 - 1.01 * SUM_TOLERANCE)),
        "rows of `y_prob` must sum to 1 within 0.0001, got 0.999899 in row 3",
    ),
    "a forgotten class": (PROB[:, :2], "rows of `y_prob` must sum to 1 within 0.0001, got "),
    "float16 rounding": (
        np.random.default_rng(0).dirichlet(np.ones(10), size=N).astype(np.float16),
        "if this is rounding, divide each row by its sum.",
    ),
    "empty list": ([], "`y_prob` must not be empty, got shape (0,)."),
    "no rows": (np.empty((0, 3)), "`y_prob` must not be empty, got shape (0, 3)."),
    "no columns": (np.empty((N, 0)), "`y_prob` must not be empty, got shape (60, 0)."),
    "empty pandas DataFrame": (pd.DataFrame(), "`y_prob` must not be empty, got shape (0, 0)."),
    "other length": (PROB[:-1], "`y_true` and `y_prob` must have the same length, got 60 and 59."),
    "single column": (PROB[:, :1], "`y_prob` has a single column, shape (60, 1); pass shape (n_samples,)"),
    "single column of a frame": (pd.DataFrame({"p": EVENT}), "`y_prob` has a single column, shape (60, 1); pass shape"),
    "integers": (np.eye(3, dtype=int)[LABEL], "`y_prob` must hold probabilities as floats, got int64 values"),
    "integers of the positive class": (LABEL, "`y_prob` must hold probabilities as floats, got int64 values"),
    "integer objects": (np.eye(3, dtype=int)[LABEL].astype(object), "must hold probabilities as floats, got int64 val"),
    "booleans": (PROB > 0.5, "`y_prob` must hold probabilities as floats, got bool values"),
    "booleans of the positive class": (HAPPENED, "`y_prob` must hold probabilities as floats, got bool values"),
    "strings": (PROB.astype(str), "`y_prob` must hold real numbers, got <U32 values."),
    "strings among numbers": (PROB.astype(str).astype(object), "`y_prob` must hold real numbers, got <U"),
    "dates": (
        np.full((N, 2), "2020-01-01", dtype="M8[D]"),
        "`y_prob` must hold real numbers, got datetime64[D] values.",
    ),
    "complex": (PROB + 0j, "`y_prob` must hold real numbers, got complex128 values."),
    "0-d": (0.5, "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got ()."),
    "3-d": (PROB[None], "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got (1, 60, 3)."),
    "nothing": (None, "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got ()."),
    "ragged": ([[0.5, 0.5], [0.25, 0.25, 0.5]], "`y_prob` must be convertible to an array of one shape: "),
    "ragged objects": (
        np.array([[0.5, 0.5], [0.25, 0.25, 0.5]], dtype=object),
        "`y_prob` must be convertible to an array of one shape: ",
    ),
    "a dictionary": (
        {"a": [0.5]},
        "`y_prob` must hold real numbers: float() argument must be a string or a real number",
    ),
    "masked": (np.ma.masked_array(PROB, PROB > 0.9), "`y_prob` must not hold masked values; drop those rows first."),
}
INDEX_WANTED = "`y_true` must hold class indices 0 to 2, one for each column of `y_prob`, "
REFUSED_LABELS = {
    "no class": (changed(LABEL, 3), {}, INDEX_WANTED + "got 3 in row 3; for other labels pass `classes`"),
    "one-based": (LABEL + 1, {}, INDEX_WANTED + "got 3 in row "),
    "negative": (changed(LABEL, -1), {}, INDEX_WANTED + "got -1 in row 3; for other labels pass `classes`"),
    "fractional": (changed(LABEL, 0.5), {}, INDEX_WANTED + "got 0.5 in row 3; for other labels pass `classes`"),
    "NaN": (changed(LABEL, np.nan), {}, INDEX_WANTED + "got nan in row 3; for other labels pass `classes`"),
    "infinity": (changed(LABEL, np.inf), {}, INDEX_WANTED + "got inf in row 3; for other labels pass `classes`"),
    "huge float": (changed(LABEL, 1e300), {}, INDEX_WANTED + "got 1e+300 in row 3; for other labels pass `classes`"),
    "huge integer": ([*LABEL[:-1].tolist(), 2**70], {}, INDEX_WANTED + "got 1180591620717411303424 in row 59; "),
    "None": ([0, 1, None], {}, INDEX_WANTED + "got None in row 2; for other labels pass `classes`"),
    "pandas NA": (pd.Series([0, 1, pd.NA], dtype="Int64"), {}, INDEX_WANTED + "got "),
    "polars null": (pl.Series([0, 1, None]), {}, INDEX_WANTED + "got nan in row 2; "),
    "strings": (NAMED, {}, INDEX_WANTED + f"got {NAMES[LABEL[0]]!r} in row 0; for other labels pass `classes`"),
    "pandas categorical": (pd.Categorical(NAMED), {}, INDEX_WANTED + f"got {NAMES[LABEL[0]]!r} in row 0; for other"),
    "complex": (LABEL + 0j, {}, INDEX_WANTED + f"got {complex(LABEL[0])!r} in row 0; "),
    "booleans for three classes": (HAPPENED, {}, "`y_true` may be boolean for two classes only, `y_prob` has 3."),
    "empty": ([], {}, "`y_true` must not be empty, got shape (0,)."),
    "other length": (LABEL[:-1], {}, "`y_true` and `y_prob` must have the same length, got 59 and 60."),
    "one column": (LABEL[:, None], {}, "`y_true` must have shape (n_samples,), got (60, 1)."),
    "one-hot": (np.eye(3)[LABEL], {}, "`y_true` must have shape (n_samples,), got (60, 3)."),
    "0-d": (1, {}, "`y_true` must have shape (n_samples,), got ()."),
    "ragged": ([[0], [0, 1]], {}, "`y_true` must be convertible to an array of one shape: "),
    "masked": (
        np.ma.masked_array(LABEL, LABEL == 0),
        {},
        "`y_true` must not hold masked values; drop those rows first.",
    ),
    "not in classes": (
        changed(NAMED.astype(object), "eel"),
        {"classes": NAMES},
        "`y_true` must hold labels from `classes` ['bird', 'cat', 'dog'], got 'eel' in row 3.",
    ),
    "indices where classes are names": (
        LABEL,
        {"classes": NAMES},
        f"`y_true` must hold labels from `classes` ['bird', 'cat', 'dog'], got {LABEL[0]} in row 0.",
    ),
    "NaN with classes": (
        changed(LABEL, np.nan),
        {"classes": [0, 1, 2]},
        "`y_true` must hold labels from `classes` [0, 1, 2], got nan in row 3.",
    ),
    "missing category": (
        pd.Categorical(["bird", None, "cat"]),
        {"classes": NAMES},
        "`y_true` must hold labels from `classes` ['bird', 'cat', 'dog'], got nan in row 1.",
    ),
    "not hashable": (
        np.array([{}, {}], dtype=object),
        {"classes": NAMES},
        "`y_true` must hold labels from `classes` ['bird', 'cat', 'dog'], got {} in row 0.",
    ),
    "duplicate classes": (
        NAMED,
        {"classes": ["bird", "cat", "cat"]},
        "`classes` must be distinct, got ['bird', 'cat', 'cat'].",
    ),
    "too few classes": (
        NAMED,
        {"classes": ["bird", "cat"]},
        "`classes` must name 3 classes, one per column of `y_prob`, got 2.",
    ),
    "too many classes": (
        NAMED,
        {"classes": [*NAMES, "eel"]},
        "`classes` must name 3 classes, one per column of `y_prob`, got 4.",
    ),
    "classes a string": (
        NAMED,
        {"classes": "bcd"},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got 'bcd'.",
    ),
    "classes without order": (
        NAMED,
        {"classes": {"bird"}},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got {'bird'}.",
    ),
    "classes a number": (
        NAMED,
        {"classes": 3},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got 3.",
    ),
    "classes in two dimensions": (
        NAMED,
        {"classes": [["bird"], ["cat"], ["dog"]]},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got [['bird'], ['cat'], ['dog']].",
    ),
}
STATISTIC_WANTED = "`statistic` must be a Statistic such as ECE() or Omnibus(), got "
LENS_WANTED = "`lens` must be a lens such as Confidence() or a function of (prob, outcome), got "


@dataclass
class UnhashablePartition(Partition):
    """A dataclass that is not frozen."""

    def fit(self, prob):
        return lambda new: np.zeros(len(new), dtype=int)


PARTITION_WANTED = "`partition` must be a partition such as EqualWidth(15) or a function, got "
REFUSED_OPTIONS = {
    "statistic a string": ({"statistic": "ece"}, STATISTIC_WANTED + "'ece'."),
    "statistic a class": ({"statistic": ECE}, STATISTIC_WANTED + "<class 'caltest.statistics._binned.ECE'>."),
    "statistic a function": ({"statistic": len}, STATISTIC_WANTED + "<built-in function len>."),
    "lens a string": ({"lens": "confidence"}, LENS_WANTED + "'confidence'."),
    "lens a class": ({"lens": Confidence}, LENS_WANTED + "<class 'caltest.predictions._lenses.Confidence'>."),
    "lens of one column": (
        {"lens": lambda prob, outcome: (prob[:, :1], outcome * 0)},
        "`lens` must return probabilities (60, n_outcomes >= 2) and outcomes (60,), got (60, 1) and (60,).",
    ),
    "lens that drops rows": (
        {"lens": lambda prob, outcome: (prob[1:], outcome[1:])},
        "`lens` must return probabilities (60, n_outcomes >= 2) and outcomes (60,), got (59, 3) and (59,).",
    ),
    "lens that returns nothing": (
        {"lens": lambda prob, outcome: None},
        "`lens` must return a pair (prob, outcome), got NoneType.",
    ),
    "lens whose rows do not sum to 1": (
        {"lens": lambda prob, outcome: (prob * 2, outcome)},
        "`lens` must return probabilities that sum to 1, got 2",
    ),
    "lens that returns NaN": (
        {"lens": lambda prob, outcome: (prob * np.nan, outcome)},
        "`lens` must return finite probabilities, got nan.",
    ),
    "region no function": ({"region": 5}, "`region` must be a function of probabilities, got 5."),
    "partition a list": ({"statistic": ECE(partition=[0.5])}, PARTITION_WANTED + "[0.5]."),
    "partition unhashable": (
        {"statistic": ECE(partition=UnhashablePartition())},
        "`partition` must be hashable, such as a frozen dataclass, got",
    ),
    "distance that returns NaN": (
        {"statistic": ECE(distance=lambda predicted, observed: (observed * np.nan).sum(axis=-1))},
        "`distance` must return numbers, got nan.",
    ),
    "distance no function": (
        {"statistic": ECE(distance="l1")},
        "`distance` must be a function of (predicted, observed), got 'l1'.",
    ),
    "lens with outcomes out of range": (
        {"lens": lambda prob, outcome: (prob, outcome + 1)},
        "`lens` must return outcomes 0 to 2, got int64 from 1 to 3.",
    ),
    "region of wrong shape": (
        {"region": lambda prob: np.ones(3, dtype=bool)},
        "`region` must return booleans of shape (60,), got bool of shape (3,).",
    ),
    "region with an axis too many": (
        {"region": lambda prob: prob > 0},
        "`region` must return booleans of shape (60,), got bool of shape (60, 3).",
    ),
    "region of wrong dtype": (
        {"region": lambda prob: np.arange(len(prob))},
        "`region` must return booleans of shape (60,), got int64 of shape (60,).",
    ),
    "empty region": (
        {"region": lambda prob: np.zeros(len(prob), dtype=bool)},
        "`region` must hold at least one row (of positive weight), got none.",
    ),
    "partition a string": ({"statistic": ECE(partition="width")}, PARTITION_WANTED + "'width'."),
    "partition a number": ({"statistic": ECE(partition=15)}, PARTITION_WANTED + "15."),
    "partition a class": (
        {"statistic": ECE(partition=EqualWidth)},
        PARTITION_WANTED + "<class 'caltest.predictions._partitions.EqualWidth'>.",
    ),
    "partition into fractions": (
        {"statistic": ECE(partition=lambda prob: prob[:, 0])},
        "`partition` must return an integer cell number per row, shape (60,), got float64 of shape (60,).",
    ),
    "partition of wrong shape": (
        {"statistic": ECE(partition=lambda prob: np.zeros(3, dtype=int))},
        "`partition` must return an integer cell number per row, shape (60,), got int64 of shape (3,).",
    ),
    "partition for two outcomes": (
        {"statistic": ECE(partition=EqualMass(3))},
        "`EqualMass` needs a two-outcome lens such as Confidence(), got 3 outcomes.",
    ),
    "distance that does not reduce": (
        {"statistic": ECE(distance=lambda predicted, observed: predicted - observed)},
        "`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape ",
    ),
}
SEED_WANTED = "`rng` must be None, an integer >= 0 or a numpy.random.Generator, got "
METHOD_WANTED = "`method` must be one of 'auto', 'exact', 'monte-carlo', 'asymptotic', got "
REFUSED_TEST_OPTIONS = {
    "rng negative": ({"rng": -1}, SEED_WANTED + "-1."),
    "rng a float": ({"rng": 1.5}, SEED_WANTED + "1.5."),
    "rng a boolean": ({"rng": True}, SEED_WANTED + "True."),
    "rng a string": ({"rng": "seed"}, SEED_WANTED + "'seed'."),
    "rng a RandomState": ({"rng": np.random.RandomState(0)}, SEED_WANTED + "RandomState(MT19937)"),
    "n_resamples 0": ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0."),
    "n_resamples 1.5": ({"n_resamples": 1.5}, "`n_resamples` must be an integer >= 1, got 1.5."),
    "n_resamples True": ({"n_resamples": True}, "`n_resamples` must be an integer >= 1, got True."),
    "n_resamples None": ({"n_resamples": None}, "`n_resamples` must be an integer >= 1, got None."),
    "workers 0": ({"workers": 0}, "`workers` must be "),
    "workers -2": ({"workers": -2}, "`workers` must be "),
    "workers 1.5": ({"workers": 1.5}, "`workers` must be "),
    "workers True": ({"workers": True}, "`workers` must be "),
    "method unknown": ({"method": "normal"}, METHOD_WANTED + "'normal'."),
    "method asymptotic": ({"method": "asymptotic"}, 'method="asymptotic" needs KS or Kuiper, predictions fixed; got'),
    "method None": ({"method": None}, METHOD_WANTED + "None."),
    "method exact": (
        {"method": "exact", "statistic": ECE()},
        'method="exact" needs ECE, MCE or HosmerLemeshow behind a two-outcome lens such as Confidence(), '
        "predictions fixed; got ECE() with 3 outcomes",
    ),
    "resampling a string": ({"resampling": "consistency"}, "`resampling` must be a Consistency(...), the law under"),
    "resampling a class": ({"resampling": Consistency}, "`resampling` must be a Consistency(...), the law under"),
    "calibration function of wrong shape": (
        {"resampling": Consistency(calibration_function=lambda prob: prob[:, :2])},
        "`calibration_function` must return shape (60, 3), got (60, 2).",
    ),
    "calibration function that does not sum to 1": (
        {"resampling": Consistency(calibration_function=lambda prob: prob / 2)},
        "`calibration_function` must return probabilities that sum to 1, got [",
    ),
}
REFUSED_WEIGHTS = {
    "negative": (changed(np.ones(N), -1.0), "`sample_weight` must be finite and not negative, got -1.0 in row 3."),
    "NaN": (changed(np.ones(N), np.nan), "`sample_weight` must be finite and not negative, got nan in row 3."),
    "infinite": (changed(np.ones(N), np.inf), "`sample_weight` must be finite and not negative, got inf in row 3."),
    "None": ([1.0] * (N - 1) + [None], "`sample_weight` must be finite and not negative, got nan in row 59."),
    "other length": (np.ones(N - 1), "`sample_weight` must have shape (60,), got (59,)."),
    "a number": (1.0, "`sample_weight` must have shape (60,), got ()."),
    "one column": (np.ones((N, 1)), "`sample_weight` must have shape (60,), got (60, 1)."),
    "zero sum": (np.zeros(N), "`sample_weight` must have a positive, finite sum, got 0.0."),
    "infinite sum": (np.full(N, 1e308), "`sample_weight` must have a positive, finite sum, got inf."),
    "strings": (["1"] * N, "`sample_weight` must hold real numbers, got <U1 values."),
    "complex": (np.ones(N) + 0j, "`sample_weight` must hold real numbers, got complex128 values."),
    "masked": (
        np.ma.masked_array(np.ones(N), np.arange(N) == 0),
        "`sample_weight` must not hold masked values; drop those rows first.",
    ),
    "zero inside the region": ((EVENT < 0.5).astype(float), "`region` must hold at least one row (of positive weight)"),
}


def check_refused(call, message, *arguments, **options):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        call(*arguments, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("call", [caltest.calibration_error, caltest.calibration_test])
@pytest.mark.parametrize("case", REFUSED_PROBABILITIES)
def test_probabilities_that_are_refused(case, call):
    y_prob, message = REFUSED_PROBABILITIES[case]
    check_refused(call, message, HAPPENED.astype(int), y_prob)


@pytest.mark.parametrize("call", [caltest.calibration_error, caltest.calibration_test])
@pytest.mark.parametrize("case", REFUSED_LABELS)
def test_labels_that_are_refused(case, call):
    y_true, options, message = REFUSED_LABELS[case]
    check_refused(call, message, y_true, PROB, **options)


@pytest.mark.parametrize("call", [caltest.calibration_error, caltest.calibration_test])
@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_options_that_are_refused(case, call):
    options, message = REFUSED_OPTIONS[case]
    check_refused(call, message, LABEL, PROB, **options)


@pytest.mark.parametrize("case", REFUSED_TEST_OPTIONS)
def test_options_of_the_test_that_are_refused(case):
    options, message = REFUSED_TEST_OPTIONS[case]
    check_refused(caltest.calibration_test, message, LABEL, PROB, **{"n_resamples": 9, **options})


@pytest.mark.parametrize("case", REFUSED_WEIGHTS)
def test_weights_that_are_refused(case):
    weight, message = REFUSED_WEIGHTS[case]
    region = (lambda prob: prob[:, 2] >= 0.5) if case == "zero inside the region" else None
    check_refused(caltest.calibration_error, message, LABEL, PROB, sample_weight=weight, region=region)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EqualWidth(0), '`n_cells` must be an integer >= 1 or "sqrt", got 0.'),
        (lambda: EqualWidth(2.0), '`n_cells` must be an integer >= 1 or "sqrt", got 2.0.'),
        (lambda: EqualMass(True), '`n_cells` must be an integer >= 1 or "sqrt", got True.'),
        (lambda: EqualWidth(10, closed="both"), "`closed` must be one of 'left', 'right', got 'both'."),
        (lambda: Consistency(resample_predictions=1), "`resample_predictions` must be True or False, got 1."),
        (
            lambda: Consistency(calibration_function=0.5),
            "`calibration_function` must be a function of probabilities, g",
        ),
        (lambda: validate_level(1, "confidence_level"), "`confidence_level` must lie strictly between 0 and 1, got 1."),
        (lambda: validate_number(np.inf, "beta0"), "`beta0` must be a finite number, got inf."),
        (lambda: validate_number(True, "beta0"), "`beta0` must be a finite number, got True."),
        (lambda: validate_number(2, "share", 0, 1), "`share` must be a finite number from 0 to 1, got 2."),
        (lambda: validate_level("0.9", "confidence_level"), "must lie strictly between 0 and 1, got '0.9'."),
    ],
)
def test_objects_refuse_bad_parameters_when_they_are_made(make, message):
    check_refused(make, message)


def test_torch_tensors_that_numpy_cannot_read_say_why():
    torch = pytest.importorskip("torch")
    message = "`y_prob` must be convertible to an array of one shape: Got unsupported ScalarType BFloat16"
    check_refused(caltest.calibration_error, message, LABEL, tensor(PROB).to(torch.bfloat16))
