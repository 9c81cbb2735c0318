"""Predictions and labels of a recalibration method: arrays whose columns are in the order of the sorted classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._frames import from_arrow, from_tensor, is_frame, names_of, read_columns
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import is_large, refuse_if, validate_given_prob, validate_outcome
from caltest.results._note import warn_user

_SAID = {"C902", "C903"}  # what was assumed of names and changed in half precision


@dataclass(frozen=True)
class TrainingData:
    """Predictions and labels to fit a method to.

    Attributes
    ----------
    values : array of shape (n_samples, n_classes)
        Probabilities or logits.
    outcome : array of shape (n_samples,)
        Class indices.
    classes : array of shape (n_classes,)
        The label of each column, sorted, as those of scikit-learn's classifiers.
    columns : array of shape (n_classes,)
        The position of each class among the labels as they were passed.
    names : list of str or None
        The name of the column of each class; None where columns have no names of text.
    n_columns : int
        Number of columns that were passed: 1 for the probability of the positive class.
    """

    values: NDArray[Any]
    outcome: Integers
    classes: NDArray[Any]
    columns: Integers
    names: list[str] | None
    n_columns: int


@contextmanager
def as_in_fit(method: str) -> Iterator[None]:
    """Name the arguments in messages as `fit` of a method names them, and `input` as an option of the method."""
    own_words = {
        **{"`y_prob`": "`X`", "`y_true`": "`y`", "y_prob.to_numpy": "X.to_numpy", "y_prob / 100": "X / 100"},
        **{'pass input="logits"': f'{method}(input="logits")', "labels come first": "fit(X, y) takes labels last"},
    }
    try:
        yield
    except (TypeError, ValueError) as error:
        msg = str(error)
        for words, own in own_words.items():
            msg = msg.replace(words, own)
        raise type(error)(msg) from None


def read_training(
    X: Any,  # noqa: N803
    y: Any,
    classes: Sequence[Any] | None,
    kind: str,
    *,
    method: str,
) -> TrainingData:
    """Return predictions and labels as arrays; messages name the ``method``.

    Raises
    ------
    ValueError
        If predictions or labels are refused, or the columns of the classes are not known.
    """
    from sklearn.utils.multiclass import check_classification_targets

    if y is None:
        refuse("`y` must hold the labels: a recalibration method requires y to be passed, but the target y is None.")
    with as_in_fit(method):
        problem = read_problem({"y_true": y}, {"y_prob": _wide(X, kind)}, classes)
        for note in problem.notes:
            if note.code in _SAID:
                warn_user(note.text.replace("`y_prob`", "`X`"))
        given = problem.probs["y_prob"]
        values = validate_predictions(given, kind)
        label = np.asarray(problem.labels["y_true"])
        labels = problem.classes
        if labels is None:
            if label.dtype.kind == "f":
                check_classification_targets(label)
            labels = _classes_of(label, values.shape[1])
        outcome = validate_outcome(label, values.shape[1], list(labels))
    if len(values) != len(outcome):
        refuse(f"`X` and `y` must have the same length, got {len(values)} and {len(outcome)}.")
    names = list(problem.names.values()) if is_frame(from_arrow(X)) else []
    texts = bool(names) and all(isinstance(name, str) for name in names)
    columns = _sorted_positions(list(labels))
    if len(names) == len(columns):
        names = [names[place] for place in columns]
    return TrainingData(
        values=_in_order(values, columns),
        outcome=np.argsort(columns)[outcome],
        classes=_as_array([list(labels)[place] for place in columns]),
        columns=columns,
        names=names if texts else None,
        n_columns=_n_columns(given),
    )


def read_new(
    X: Any,  # noqa: N803
    classes: NDArray[Any],
    columns: Integers,
    names: NDArray[Any] | None,
    kind: str,
    *,
    method: str,
) -> tuple[NDArray[Any], int]:
    """Return predictions ``(n_samples, n_classes)``, by name where columns have names, and the number of columns.

    Columns of the result are in the order of ``classes``; those without names are taken in the order of the labels as
    they were passed to `read_training`.
    """
    table, passed = from_arrow(X), np.argsort(columns)  # the place of each passed label among the sorted ones
    if names is not None and len(names) == len(passed):
        names = names[passed]
    with as_in_fit(method):
        own = names_of(table) if is_frame(table) else []
        if names is not None and set(own) == set(names.tolist()) and len(own) == len(names):
            given = read_columns(table, [own.index(name) for name in names.tolist()])
            given = read_problem({}, {"y_prob": _wide(given, kind)}).probs["y_prob"]
        elif len(own) > 1:
            given = read_problem({}, {"y_prob": table}, classes[passed].tolist()).probs["y_prob"]
        else:
            given = read_problem({}, {"y_prob": _wide(X, kind)}).probs["y_prob"]
        values = validate_predictions(given, kind)
    return _in_order(values, columns) if values.shape[1] == len(columns) else values, _n_columns(given)


def _sorted_positions(labels: list[Any]) -> Integers:
    """Return the positions of the labels in sorted order; labels that cannot be compared stay where they are."""
    try:
        return np.array(sorted(range(len(labels)), key=labels.__getitem__), dtype=np.int64)
    except TypeError:
        return np.arange(len(labels), dtype=np.int64)


def _in_order(values: NDArray[Any], columns: Integers) -> NDArray[Any]:
    """Return the columns in an order; the values themselves if they are in this order."""
    return values if (np.diff(columns) > 0).all() else np.ascontiguousarray(values[:, columns])


def _n_columns(given: Any) -> int:
    """Return the number of columns: 1 for the probability of the positive class."""
    shape = given.shape if hasattr(given, "shape") else np.asarray(given).shape
    return int(shape[1]) if len(shape) == 2 else 1


def validate_predictions(given: ArrayLike, kind: str) -> NDArray[Any]:
    """Return probabilities or logits ``(n_samples, n_classes)``, large arrays of float32 as they are.

    One dimension is the probability, or the log odds, of the positive class.
    """
    return validate_given_prob(given) if kind == "probabilities" else _validate_logits(given)


def _validate_logits(given: Any) -> NDArray[Any]:
    if hasattr(given, "toarray") and hasattr(given, "nnz"):
        refuse(f"`X` must be a dense array, got a sparse {type(given).__name__}: pass `X.toarray()`.")
    array = np.asarray(from_tensor(given))
    refuse_if(array.dtype.kind not in "biufO", f"`X` must hold real numbers, got {array.dtype} values.")
    kept = array.dtype == np.float32 and is_large(array)
    try:
        values = np.require(array, np.float32 if kept else np.float64, ["C", "W"])
    except (TypeError, ValueError) as error:
        refuse(f"`X` must hold real numbers: {error}.")
    if values.ndim not in {1, 2} or values.shape[1:] == (1,):
        refuse(f"`X` must have shape (n_samples,) or (n_samples, n_classes), got {values.shape}. Reshape your data.")
    if 0 in values.shape:
        lacks = "0 sample(s)" if len(values) == 0 else f"0 feature(s) (shape={values.shape})"
        refuse(f"`X` must not be empty: it has {lacks} while a minimum of 1 is required.")
    if not (np.isfinite(values.min()) and np.isfinite(values.max())):  # NaN is its own minimum
        row = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0]
        refuse(
            f"`X` must hold finite logits, got NaN or inf (infinity) in row {row}. Where "
            'probabilities are exactly 0 or 1, pass these (input="probabilities"), which have a floor.'
        )
    return np.column_stack([np.zeros_like(values), values]) if values.ndim == 1 else values


def _wide(given: Any, kind: str) -> Any:
    """Return logits in half precision as float32, before anyone takes them for rounded probabilities."""
    given = from_tensor(given)
    return given.astype(np.float32) if kind == "logits" and getattr(given, "dtype", None) == np.float16 else given


def _classes_of(label: NDArray[Any], n_classes: int) -> list[Any]:
    """Return the labels of columns without names: the sorted labels if there are as many, else class indices."""
    occurring = np.unique(label).tolist()
    if label.dtype.kind == "b" and n_classes == 2:
        return [False, True]
    if len(occurring) == n_classes:
        return list(occurring)
    if all(isinstance(one, int | float) and one in range(n_classes) for one in occurring):
        return list(range(n_classes))
    msg = (
        f"`X` has {n_classes} classes and `y` {len(occurring)} different labels, which are no class indices 0 to "
        f"{n_classes - 1}: pass `classes`, the label of each column, or name the columns after the labels."
    )
    raise ValueError(msg)


def _as_array(labels: Any) -> NDArray[Any]:
    """Return labels as an array; labels of several types stay what they are."""
    listed = list(labels)
    if len({type(one) for one in listed}) > 1:
        array = np.empty(len(listed), dtype=object)
        array[:] = listed
        return array
    return np.asarray(listed)
