"""What may be passed, and what is refused: every kind of input and every refusal is a case of a table."""

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest
from caltest import ECE, Confidence, Consistency, EqualMass, EqualWidth
from caltest.predictions import Partition
from caltest.predictions._sample import make_sample
from caltest.predictions.inputs._refusals import NO_TIMES
from caltest.predictions.inputs._validation import (
    validate_choice,
    validate_count,
    validate_level,
    validate_number,
    validate_positive,
    validate_prob,
    validate_problem,
    validate_rng,
    validate_weight,
    validate_workers,
)
from caltest.results import CalibrationWarning
from tests.reference.cases import check_refused, failures

N = 60
# Multiples of 1 / 64, none of them 0: float16, float32 and float64 hold the same numbers.
PROB = np.random.default_rng(3).dirichlet(np.ones(3), size=N)
PROB = (np.random.default_rng(4).multinomial(61, PROB) + 1) / 64
LABEL = (np.random.default_rng(5).random(N)[:, None] > np.cumsum(PROB, axis=1)).sum(axis=1)
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


class Tensor:
    """Behaves as a PyTorch tensor: NumPy reads it once it is detached from its gradient."""

    def __init__(self, array, attached=True):
        self.array, self.attached = np.asarray(array), attached

    def detach(self):
        return Tensor(self.array, attached=False)

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            msg = "Can't call numpy() on Tensor that requires grad."
            raise RuntimeError(msg)
        return self.array if dtype is None else self.array.astype(dtype)


NO_TORCH = "PyTorch is not installed: pip install 'caltest[torch]'"


def tensor(array, **options):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    return torch.tensor(np.ascontiguousarray(array), **options)


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
    "tensor with a gradient": Tensor,
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
TENSORS = {
    "float64": lambda: (LABEL, tensor(PROB)),
    "float32": lambda: (LABEL, tensor(PROB.astype(np.float32))),
    "with a gradient": lambda: (LABEL, tensor(PROB.astype(np.float32), requires_grad=True)),
    "transposed": lambda: (LABEL, tensor(PROB.T).T),
    "labels int64": lambda: (tensor(LABEL), PROB),
    "labels int32": lambda: (tensor(LABEL.astype(np.int32)), PROB),
}
WEIGHTS = {
    "list": list,
    "read-only": read_only,
    "int": lambda w: w.astype(int),
    "float32": lambda w: w.astype(np.float32),
    "pandas": pd.Series,
    "pandas nullable": lambda w: pd.Series(w, dtype="Float64"),
    "polars": pl.Series,
    "tensor with a gradient": Tensor,
}


def check_same(found, expected):
    """The arrays are what kernels take, and hold the same numbers."""
    for array, other, dtype in zip(found, expected, (np.float64, np.int64), strict=True):
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        np.testing.assert_array_equal(array, other)


def test_probabilities_of_every_class():
    assert failures(MATRICES, lambda kind: check_same(validate_problem(LABEL, kind(PROB)), (PROB, LABEL))) == {}


def test_probabilities_of_the_positive_class():
    expected = np.column_stack([1 - EVENT, EVENT]), HAPPENED
    assert failures(EVENTS, lambda kind: check_same(validate_problem(HAPPENED, kind(EVENT)), expected)) == {}


def test_labels_as_class_indices():
    assert failures(INDICES, lambda kind: check_same(validate_problem(kind(LABEL), PROB), (PROB, LABEL))) == {}


def test_labels_as_booleans():
    expected = validate_problem(HAPPENED.astype(int), EVENT)
    assert failures(BOOLEANS, lambda kind: check_same(validate_problem(kind(HAPPENED), EVENT), expected)) == {}
    for classes in ([False, True], np.array([False, True]), [0, 1]):
        check_same(validate_problem(HAPPENED, EVENT, classes), expected)
        check_same(validate_problem(~HAPPENED, EVENT, classes[::-1]), expected)


def test_labels_named_by_classes():
    def check(case):
        labels, classes = case
        check_same(validate_problem(labels, PROB, classes), (PROB, LABEL))

    assert failures(NAMED_LABELS, check) == {}


def test_sample_weights():
    w = np.arange(N, dtype=float)

    def check(kind):
        found = validate_weight(kind(w), N)
        np.testing.assert_array_equal(found, w)
        assert found.dtype == np.float64
        assert found.flags.writeable

    assert failures(WEIGHTS, check) == {}
    assert validate_weight(None, N) is None
    assert caltest.calibration_error(LABEL, PROB, sample_weight=w) != caltest.calibration_error(LABEL, PROB)


def test_torch_tensors():
    pytest.importorskip("torch", reason=NO_TORCH)
    assert failures(TENSORS, lambda make: check_same(validate_problem(*make()), (PROB, LABEL))) == {}
    import torch

    half = tensor(np.log(PROB)).to(torch.bfloat16)  # NumPy has no such type
    found = caltest.calibration_error(LABEL, half, input="logits")
    assert found == caltest.calibration_error(LABEL, half.double().numpy(), input="logits")


def test_the_public_functions_take_every_kind():
    """The numbers do not depend on the kind, from the public functions on."""

    def answer(y_true, y_prob, **options):
        error = caltest.calibration_error(y_true, y_prob, **options)
        return error, caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0, **options).pvalue

    error, pvalue = answer(LABEL, PROB)
    assert error > 0
    assert 0.05 < pvalue < 0.95
    assert answer((LABEL + 1) % 3, PROB)[1] == 1 / 200  # the problem can tell answers apart
    assert answer(HAPPENED, 1 - EVENT)[1] < 0.05
    assert answer(NAMED.tolist(), pl.DataFrame(PROB.astype(np.float32)), classes=pd.Index(NAMES)) == (error, pvalue)
    assert answer(pd.Series(LABEL, dtype="Int64"), PROB.tolist()) == (error, pvalue)
    assert answer(pl.Series(HAPPENED), pd.Series(EVENT)) == answer(HAPPENED.astype(int), read_only(EVENT))


def test_zero_and_one_in_lists_of_floats_are_probabilities():
    check_same(validate_problem([0, 1], [[0.5, 0.5], [0, 1]]), (np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 1])))


def test_float32_softmax_of_a_thousand_classes_passes():
    rng = np.random.default_rng(0)
    score = np.exp(rng.normal(0, 4, size=(500, 1000)).astype(np.float32))
    y_prob = score / score.sum(axis=1, keepdims=True)
    assert y_prob.dtype == np.float32
    assert np.any(y_prob.sum(axis=1, dtype=float) != 1)
    y_true = rng.integers(1000, size=500)
    check_same(validate_problem(y_true, y_prob), (y_prob.astype(float), y_true))


def test_files_with_four_decimals_pass_and_their_rows_are_divided_by_their_sums():
    """With d decimals a sum misses 1 by half a unit for each class at most; 0.9999 passes for two classes."""
    rng = np.random.default_rng(0)
    for n_classes in (3, 10, 1000):
        rounded = np.round(rng.dirichlet(np.full(n_classes, 0.1), size=300), 4)
        with pytest.warns(
            CalibrationWarning, match="do not sum to 1, as after rounding .* each was divided by its sum"
        ):
            found = validate_prob(rounded)
        np.testing.assert_allclose(found, rounded / rounded.sum(axis=1, keepdims=True), rtol=1e-6)
        assert np.abs(found.sum(axis=1) - 1).max() <= 2.0**-24 * n_classes
    for pair in ([0.5, 0.4999], [0.5, 0.5001]):
        with pytest.warns(CalibrationWarning, match="1 row of `y_prob` does not"):
            validate_prob([pair])


def test_no_number_of_classes_excuses_a_sum_far_from_1():
    for n_classes, total in ((1_000, 0.98), (20_000, 0.5), (20_000, 0.0)):
        prob = np.zeros((2, n_classes))
        prob[:, 0] = total
        with pytest.raises(ValueError, match=f"must sum to 1 within 0.01, got {total:g} in row 0"):
            validate_prob(prob)


def test_sums_of_float32_and_double_are_left_as_they_are():
    score = np.exp(np.random.default_rng(0).normal(0, 4, size=(500, 10)))
    for kind in (np.float32, np.float64):
        y_prob = score.astype(kind) / score.astype(kind).sum(axis=1, keepdims=True)
        np.testing.assert_array_equal(validate_prob(y_prob), y_prob)


@pytest.mark.slow(few_draws=True)
def test_drift_makes_no_label_impossible():
    """Sums of 1.00009 left less than nothing for the rest, and a label there forced the smallest p-value."""
    impossible = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        prob = rng.dirichlet(np.full(10, 0.05), size=20_000)
        label = (rng.random((20_000, 1)) > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
        with pytest.warns(CalibrationWarning):
            drifted = validate_prob(np.minimum(prob * 1.00009, 1.0))
        for lens in (caltest.TopK(2), caltest.WithinTop(2)):
            impossible += make_sample(label, drifted, lens=lens).impossible.tolist()
    assert impossible == []


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
    "logits": (np.log(PROB), 'if these are logits, pass input="logits".'),
    "logits of the positive class": (np.log(EVENT / (1 - EVENT)), 'if these are logits, pass input="logits".'),
    "percentages": (PROB * 100, "`y_prob` must lie in [0, 1], got "),
    "labels": (LABEL, "labels come first, and `y_true` and `y_prob` may be swapped; if these are percentages, pass"),
    "labels as floats": (LABEL * 1.0, "look like class labels; labels come first, and `y_true` and `y_prob` may be sw"),
    "row sum too small": (
        changed(PROB, PROB[3] * 0.5),
        "rows of `y_prob` must sum to 1 within 0.00015, got 0.5 in row 3 (1 such rows)",
    ),
    "row sum too large": (
        changed(PROB, [0.5, 0.5, 0.5]),
        "rows of `y_prob` must sum to 1 within 0.00015, got 1.5 in row 3 (1 such rows)",
    ),
    "row sum just outside the tolerance": (
        changed(PROB, PROB[3] * (1 - 1.01 * 1.5e-4)),
        "rows of `y_prob` must sum to 1 within 0.00015, got 0.9998485 in row 3",
    ),
    "a forgotten class": (PROB[:, :2], "rows of `y_prob` must sum to 1 within 0.0001, got "),
    "two decimals": (
        np.round(np.random.default_rng(0).dirichlet(np.ones(10), size=N), 2),
        "if this is rounding, divide each row by its sum.",
    ),
    "empty list": ([], "`y_prob` must not be empty, got shape (0,)."),
    "no rows": (np.empty((0, 3)), "`y_prob` must not be empty, got shape (0, 3)."),
    "no columns": (np.empty((N, 0)), "`y_prob` must not be empty, got shape (60, 0)."),
    "empty pandas DataFrame": (pd.DataFrame(), "`y_prob` must not be empty, got shape (0, 0)."),
    "other length": (PROB[:-1], "`y_true` and `y_prob` must have the same length, got 60 and 59."),
    "integers": (np.eye(3, dtype=int)[LABEL], "`y_prob` must hold probabilities as floats, got int64 values"),
    "integers of the positive class": (LABEL, "`y_prob` must hold probabilities as floats, got int64 values"),
    "integer objects": (np.eye(3, dtype=int)[LABEL].astype(object), "must hold probabilities as floats, got int64 val"),
    "booleans": (PROB > 0.5, "`y_prob` must hold probabilities as floats, got bool values"),
    "booleans of the positive class": (HAPPENED, "`y_prob` must hold probabilities as floats, got bool values"),
    "strings": (PROB.astype(str), "`y_prob` must hold real numbers, got <U32 values such as '0.125': pass numbers"),
    "strings among numbers": (PROB.astype(str).astype(object), "`y_prob` must hold real numbers, got <U"),
    "dates": (
        np.full((N, 2), "2020-01-01", dtype="M8[D]"),
        "`y_prob` must hold real numbers, got datetime64[D] values.",
    ),
    "complex": (PROB + 0j, "`y_prob` must hold real numbers, got complex128 values."),
    "0-d": (0.5, "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got ()."),
    "3-d": (
        PROB[None],
        "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got (1, 60, 3); passes of a network",
    ),
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
    "masked": (
        np.ma.masked_array(PROB, PROB.max() == PROB),
        "`y_prob` must not hold masked values, which are missing (row",
    ),
}
INDEX_WANTED = "`y_true` must hold class indices 0 to 2, one for each column of `y_prob`, "
REFUSED_LABELS = {
    "no class": (changed(LABEL, 3), {}, INDEX_WANTED + "got 3 in row 3; for other labels pass `classes`"),
    "one-based": (LABEL + 1, {}, INDEX_WANTED + "got 3 in row "),
    "negative": (changed(LABEL, -1), {}, INDEX_WANTED + "got -1 in row 3; for other labels pass `classes`"),
    "fractional": (changed(LABEL, 0.5), {}, INDEX_WANTED + "got 0.5 in row 3; for other labels pass `classes`"),
    "probabilities": (
        EVENT,
        {},
        "; fractions look like probabilities; labels come first, and `y_true` and",
    ),
    "probabilities of all classes": (
        PROB,
        {},
        f"got {PROB.shape}; fractions look like probabilities; labels come",
    ),
    "NaN": (changed(LABEL, np.nan), {}, f"`y_true`: 1 label is missing, of {N} (row 3)."),
    "infinity": (changed(LABEL, np.inf), {}, INDEX_WANTED + "got inf in row 3; for other labels pass `classes`"),
    "huge float": (changed(LABEL, 1e300), {}, INDEX_WANTED + "got 1e+300 in row 3; for other labels pass `classes`"),
    "huge integer": ([*LABEL[:-1].tolist(), 2**70], {}, INDEX_WANTED + "got 1180591620717411303424 in row 59; "),
    "None": ([0, 1, None], {}, "`y_true`: 1 label is missing, of 3 (row 2)."),
    "pandas NA": (pd.Series([0, 1, pd.NA], dtype="Int64"), {}, "`y_true`: 1 label is missing, of 3 (row 2)."),
    "polars null": (pl.Series([0, 1, None]), {}, "`y_true`: 1 label is missing, of 3 (row 2)."),
    "strings": (NAMED, {}, INDEX_WANTED + f"got {NAMES[LABEL[0]]!r} in row 0; for other labels pass `classes`"),
    "pandas categorical": (pd.Categorical(NAMED), {}, INDEX_WANTED + f"got {NAMES[LABEL[0]]!r} in row 0; for other"),
    "complex": (LABEL + 0j, {}, INDEX_WANTED + f"got {complex(LABEL[0])!r} in row 0; "),
    "booleans for three classes": (HAPPENED, {}, "`y_true` may be boolean for two classes only, `y_prob` has 3."),
    "empty": ([], {}, "`y_true` must not be empty, got shape (0,)."),
    "other length": (LABEL[:-1], {}, "`y_true` and `y_prob` must have the same length, got 59 and 60."),
    "one-hot": (np.eye(3)[LABEL], {}, "got (60, 3); of one-hot labels pass y_true.argmax(axis=1)."),
    "other columns": (np.ones((60, 2)), {}, "`y_true` must have shape (n_samples,), got (60, 2)."),
    "0-d": (1, {}, "`y_true` must have shape (n_samples,), got ()."),
    "ragged": ([[0], [0, 1]], {}, "`y_true` must be convertible to an array of one shape: "),
    "masked": (
        np.ma.masked_array(LABEL, LABEL == 0),
        {},
        "`y_true` must not hold masked values, which are missing (row",
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
        f"`y_true`: 1 label is missing, of {N} (row 3).",
    ),
    "missing category": (
        pd.Categorical(["bird", None, "cat"]),
        {"classes": NAMES},
        "`y_true`: 1 label is missing, of 3 (row 1).",
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
        TypeError,
    ),
    "classes without order": (
        NAMED,
        {"classes": {"bird"}},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got {'bird'}.",
        TypeError,
    ),
    "classes a number": (
        NAMED,
        {"classes": 3},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got 3.",
        TypeError,
    ),
    "classes in two dimensions": (
        NAMED,
        {"classes": [["bird"], ["cat"], ["dog"]]},
        "`classes` must be a sequence of 3 labels, one per column of `y_prob`, got [['bird'], ['cat'], ['dog']].",
    ),
}


@dataclass
class UnhashablePartition(Partition):
    """A dataclass that is not frozen."""

    def fit(self, prob):
        return lambda new: np.zeros(len(new), dtype=int)


PARTITION_WANTED = "`partition` must be a partition such as EqualWidth(15) or a function, got "
SEED_WANTED = "`rng` must be None, an integer >= 0, a numpy.random.Generator or RandomState, got "
METHOD_WANTED = "`method` must be one of 'auto', 'exact', 'monte-carlo', 'asymptotic', got "
WORKERS_WANTED = "`workers` must be an integer >= 1, or -1 for all processors, got "
REFUSED_OPTIONS = {
    "statistic a string": (ValueError, {"statistic": "ece"}, "there is no ece; did you mean ECE?"),
    "statistic a class": (TypeError, {"statistic": ECE}, "got <class 'caltest.statistics._binned.ECE'>."),
    "statistic a function": (TypeError, {"statistic": len}, "got <built-in function len>."),
    "partition for two outcomes": (
        ValueError,
        {"statistic": ECE(partition=EqualMass(3)), "lens": caltest.Canonical()},
        "`EqualMass` needs a two-outcome lens such as Confidence(), got 3 outcomes.",
    ),
    "rng negative": (ValueError, {"rng": -1}, SEED_WANTED + "-1."),
    "rng a float": (TypeError, {"rng": 1.5}, SEED_WANTED + "1.5."),
    "rng a boolean": (TypeError, {"rng": True}, SEED_WANTED + "True."),
    "rng a string": (TypeError, {"rng": "seed"}, SEED_WANTED + "'seed'."),
    "rng a list": (TypeError, {"rng": [1, 2]}, SEED_WANTED + "[1, 2]."),
    "random_state": (TypeError, {"random_state": 3}, "calibration_test() has no `random_state`; use rng=3."),
    "n_resamples 0": (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0."),
    "n_resamples negative": (ValueError, {"n_resamples": -5}, "`n_resamples` must be an integer >= 1, got -5."),
    "n_resamples 1.5": (TypeError, {"n_resamples": 1.5}, "`n_resamples` must be an integer >= 1, got 1.5."),
    "n_resamples 99.0": (TypeError, {"n_resamples": 99.0}, "`n_resamples` must be an integer >= 1, got 99.0."),
    "n_resamples a text": (TypeError, {"n_resamples": "99"}, "`n_resamples` must be an integer >= 1, got '99'."),
    "n_resamples True": (TypeError, {"n_resamples": True}, "`n_resamples` must be an integer >= 1, got True."),
    "workers 0": (ValueError, {"workers": 0}, WORKERS_WANTED + "0."),
    "workers -2": (ValueError, {"workers": -2}, WORKERS_WANTED + "-2."),
    "workers 1.5": (TypeError, {"workers": 1.5}, WORKERS_WANTED + "1.5."),
    "workers True": (TypeError, {"workers": True}, WORKERS_WANTED + "True."),
    "workers a text, nothing drawn": (
        TypeError,
        {"workers": "2", "statistic": ECE(EqualWidth(5)), "lens": Confidence()},
        WORKERS_WANTED + "'2'.",
    ),
    "method unknown": (ValueError, {"method": "normal"}, METHOD_WANTED + "'normal'."),
    "method None": (TypeError, {"method": None}, METHOD_WANTED + "None."),
    "resampling a string": (TypeError, {"resampling": "consistency"}, "`resampling` must be a Consistency(...), the"),
    "resampling a class": (TypeError, {"resampling": Consistency}, "`resampling` must be a Consistency(...), the null"),
}
REFUSED_WEIGHTS = {
    "negative": (changed(np.ones(N), -1.0), "`sample_weight` must be finite and not negative, got -1.0 in row 3."),
    "NaN": (changed(np.ones(N), np.nan), "`sample_weight` must be finite and not negative, got nan in row 3."),
    "infinite": (changed(np.ones(N), np.inf), "`sample_weight` must be finite and not negative, got inf in row 3."),
    "None": ([1.0] * (N - 1) + [None], "`sample_weight` must be finite and not negative, got nan in row 59."),
    "other length": (np.ones(N - 1), "`sample_weight` must have shape (60,), got (59,)."),
    "a number": (1.0, "`sample_weight` must have shape (60,), got ()."),
    "zero sum": (np.zeros(N), "`sample_weight` must have a positive, finite sum, got 0.0."),
    "infinite sum": (np.full(N, 1e308), "`sample_weight` must have a positive, finite sum, got inf."),
    "strings": (["1"] * N, "`sample_weight` must hold real numbers, got <U1 values."),
    "complex": (np.ones(N) + 0j, "`sample_weight` must hold real numbers, got complex128 values."),
    "masked": (
        np.ma.masked_array(np.ones(N), np.arange(N) == 0),
        "`sample_weight` must not hold masked values, which are missing (row",
    ),
}
COUNT, LEVEL = "`n` must be an integer >= 1, got ", "`level` must lie strictly between 0 and 1, got "
POSITIVE, NUMBER = "`width` must be a positive, finite number, got ", "`beta0` must be a finite number, got "
REFUSED_VALUES = {
    "count 0": (ValueError, partial(validate_count, 0, "n"), COUNT + "0."),
    "count below the minimum": (
        ValueError,
        partial(validate_count, -1, "k", minimum=0),
        "`k` must be an integer >= 0, got -1.",
    ),
    "count 1.5": (TypeError, partial(validate_count, 1.5, "n"), COUNT + "1.5."),
    "count 1.0": (TypeError, partial(validate_count, np.float64(1), "n"), COUNT),
    "count True": (TypeError, partial(validate_count, True, "n"), COUNT + "True."),
    "count a text": (TypeError, partial(validate_count, "1", "n"), COUNT + "'1'."),
    "level 0": (ValueError, partial(validate_level, 0, "level"), LEVEL + "0."),
    "level 1": (ValueError, partial(validate_level, 1.0, "level"), LEVEL + "1.0."),
    "level NaN": (ValueError, partial(validate_level, np.nan, "level"), LEVEL + "nan."),
    "level True": (TypeError, partial(validate_level, True, "level"), LEVEL + "True."),
    "level a text": (TypeError, partial(validate_level, "0.9", "level"), LEVEL + "'0.9'."),
    "level complex": (TypeError, partial(validate_level, np.complex128(0.5), "level"), LEVEL),
    "positive 0": (ValueError, partial(validate_positive, 0, "width"), POSITIVE + "0."),
    "positive infinite": (ValueError, partial(validate_positive, np.inf, "width"), POSITIVE + "inf."),
    "positive NaN": (ValueError, partial(validate_positive, np.nan, "width"), POSITIVE + "nan."),
    "positive None": (TypeError, partial(validate_positive, None, "width"), POSITIVE + "None."),
    "number infinite": (ValueError, partial(validate_number, np.inf, "beta0"), NUMBER + "inf."),
    "number True": (TypeError, partial(validate_number, True, "beta0"), NUMBER + "True."),
    "number a list": (TypeError, partial(validate_number, [1.0], "beta0"), NUMBER + "[1.0]."),
    "number out of range": (
        ValueError,
        partial(validate_number, 2, "share", 0, 1),
        "`share` must be a finite number from 0 to 1, got 2.",
    ),
    "choice unknown": (
        ValueError,
        partial(validate_choice, "both", "closed", ("left", "right")),
        "`closed` must be one of 'left', 'right', got 'both'.",
    ),
    "choice no text": (
        TypeError,
        partial(validate_choice, 3, "closed", ("left", "right")),
        "`closed` must be one of 'left', 'right', got 3.",
    ),
    "workers 0": (ValueError, partial(validate_workers, 0), WORKERS_WANTED + "0."),
    "workers a float": (TypeError, partial(validate_workers, -1.0), WORKERS_WANTED + "-1.0."),
}


def test_probabilities_that_are_refused():
    def check(case):
        y_prob, message = case
        for call in (caltest.calibration_error, caltest.calibration_test):
            check_refused(call, ValueError, message, HAPPENED.astype(int), y_prob)

    assert failures(REFUSED_PROBABILITIES, check) == {}


def test_labels_that_are_refused():
    def check(case):
        y_true, options, message, *kind = case
        for call in (caltest.calibration_error, caltest.calibration_test):
            check_refused(call, *(kind or [ValueError]), message, y_true, PROB, **options)

    assert failures(REFUSED_LABELS, check) == {}


def test_weights_that_are_refused():
    def check(case):
        check_refused(caltest.calibration_error, ValueError, case[1], LABEL, PROB, sample_weight=case[0])

    assert failures(REFUSED_WEIGHTS, check) == {}
    options = {"sample_weight": (EVENT < 0.5).astype(float), "region": lambda prob: prob[:, 2] >= 0.5}
    message = "`region` must hold at least one observation (of positive weight), got none."
    check_refused(caltest.calibration_error, ValueError, message, LABEL, PROB, **options)


def test_options_that_are_refused():
    def check(case):
        kind, options, message = case
        check_refused(caltest.calibration_test, kind, message, LABEL, PROB, **{"n_resamples": 9, **options})

    assert failures(REFUSED_OPTIONS, check) == {}


def test_wrong_types_are_type_errors_and_wrong_values_value_errors():
    assert failures(REFUSED_VALUES, lambda case: check_refused(case[1], case[0], case[2])) == {}
    message = "`partition` must be hashable, such as a frozen dataclass, got"
    check_refused(lambda: ECE(partition=UnhashablePartition()), TypeError, message)
    check_refused(lambda: ECE(partition=3), TypeError, PARTITION_WANTED + "3.")
    check_refused(lambda: ECE(partition="width"), TypeError, PARTITION_WANTED + "'width'.")


@pytest.mark.parametrize("test", [caltest.calibration_test, caltest.hosmer_lemeshow_test, caltest.cox_test])
def test_times_to_an_event_are_named_as_not_covered(test):
    """Fractions, or more numbers than classes have, beside one probability; a few other numbers are other labels."""
    times = np.arange(1, N + 1)
    for label in (times, times.astype(float), times / 7):
        with pytest.raises(ValueError, match=re.escape(NO_TIMES)):
            test(label, EVENT)
    with pytest.raises(ValueError, match="for other labels pass `classes`"):
        test(times % 3, EVENT)
    with pytest.raises(ValueError, match="for other labels pass `classes`"):
        caltest.calibration_test(times, PROB)


def test_what_validators_return():
    assert [validate_count(value, "n") for value in (1, np.int32(7), np.uint8(200))] == [1, 7, 200]
    assert type(validate_count(np.int32(7), "n")) is int
    assert [validate_level(value, "level") for value in (0.5, np.float32(0.25))] == [0.5, 0.25]
    assert [validate_positive(value, "width") for value in (3, 1e-300, np.int64(2))] == [3.0, 1e-300, 2.0]
    assert [validate_number(value, "x", -1, 1) for value in (-1, 0.5, np.float32(1))] == [-1.0, 0.5, 1.0]
    assert validate_choice("left", "closed", ("left", "right")) == "left"
    assert validate_workers(3) == 3
    assert validate_workers(-1) >= 1


def test_sources_of_randomness():
    first = np.random.default_rng(7).random()
    assert validate_rng(7).random() == validate_rng(np.int64(7)).random() == first
    generator = np.random.default_rng(7)
    assert validate_rng(generator) is generator
    assert validate_rng(None).random() != validate_rng(None).random()
