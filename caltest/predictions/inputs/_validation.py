"""Validation of arguments: a refusal names the argument, what is allowed and the value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._frames import from_tensor
from caltest.predictions.inputs._parts import validate_ids
from caltest.predictions.inputs._refusals import NO_TIMES, refuse, refuse_if, require
from caltest.predictions.inputs._times import validate_timing
from caltest.results import Note
from caltest.results._config import workers_in_use
from caltest.results._note import warn_user

SUM_TOLERANCE = 1e-4
"""Probabilities that a function returns may miss the sum 1 by this."""

ROUNDING, MOST_ROUNDING = 0.5e-4, 0.01
"""Sums may miss 1 by this for each class, so that files with 4 decimals pass, and by this in all."""

FLOAT32_ROUNDING = 2.0**-24
"""Sums that miss 1 by no more than this for each class are left as they are: softmax in float32."""

PAIR_ROUNDING = 2.0**-46
"""Sums that miss 1 by no more are 1 up to rounding of doubles; of two columns those that miss it by more are divided
out: functions that use one column and both then agree."""

MOST_PERCENT = 100 * (1 + 1e-9)
"""Percentages are no larger, but for rounding."""

RANGE_TOLERANCE = 2.0**-23
"""Probabilities may lie outside [0, 1] by this, one rounding error of float32 above 1; they are set to 0 or 1."""

_MOST = {"n_cells": 2**24, "n_points": 10**7, "n_knots": 10**5}
"""The greatest values of arguments that arrays are as long as, wherever an argument of this name is."""

SeedLike = int | np.random.Generator | np.random.RandomState | None


MANY, LARGE = 256, 2**22
"""Of more classes and more probabilities than these, tables of one double for each probability are not made."""
_ROUNDING = 4 * 2.0**-11
"""Sums of probabilities in half precision may miss 1 by this: four rounding errors of the number 1."""
_SMALLEST = 2.0**-25
"""And by this for each class: probabilities below it become 0."""


def validate_prob(y_prob: ArrayLike) -> Floats:
    """Return probabilities of shape ``(n_samples, n_classes)``; ``(n_samples,)`` is read as the positive class.

    Where a sum misses 1 by more than float32 does, its row is divided by it, with a warning. The array may be the
    caller's, so that nothing may write to it: functions of users get read-only views.
    """
    return np.require(validate_given_prob(y_prob), np.float64, ["C", "W"])


def validate_given_prob(y_prob: ArrayLike) -> NDArray[Any]:
    """Return the same probabilities as `validate_prob`, large arrays of float32 as they are."""
    prob = _typed_array(y_prob, "y_prob")
    if prob.dtype == object:
        prob = _as_float(prob, "y_prob")
    if prob.dtype.kind in "iub":
        refuse(
            f"`y_prob` must hold probabilities as floats, got {prob.dtype} values; "
            f"integers look like class labels or counts; {_SWAPPED}{_advice_on_scale(prob, of_integers=True)}."
        )
    refuse_if(
        prob.dtype.kind != "f", f"`y_prob` must hold real numbers, got {prob.dtype} values{_advice_on_texts(prob)}."
    )
    must = "`y_prob` must have shape (n_samples,) or (n_samples, n_classes)"
    if prob.ndim == 3:
        refuse(
            f"{must}, got {prob.shape}; passes of a network (n_passes, n_samples, n_classes) are averaged on request: "
            'caltest.predictions.PredictionStack(y_prob, average="passes").'
        )
    require(prob.ndim in {1, 2}, must, prob.shape)
    if prob.ndim == 2 and prob.shape[1] == 1:
        refuse(
            f"`y_prob` has a single column, shape {prob.shape}; pass shape (n_samples,) for the probability of the "
            "positive class, or one column per class."
        )
    refuse_if(prob.size == 0, f"`y_prob` must not be empty, got shape {prob.shape}.")
    prob = _within_range(prob)
    kept = prob.dtype == np.float32 and is_large(prob)
    prob = np.require(prob, np.float32 if kept else np.float64, ["C", "W"])  # copied if need be: nothing writes to it
    return np.column_stack([1.0 - prob, prob]) if prob.ndim == 1 else _normalised(prob)


def rounding_of_sums(n_classes: int) -> float:
    """Return by how much the sum of the probabilities of so many classes may miss 1: four decimals explain it."""
    return min(ROUNDING * n_classes, MOST_ROUNDING)


def _normalised(prob: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities whose rows sum to 1 up to rounding of float32; refuse rows that files do not explain.

    Rows of two columns sum to 1 up to rounding of doubles, so that either of them says what the other one does.
    """
    n_classes = prob.shape[1]
    total = np.einsum("ik->i", prob, dtype=np.float64)
    missing = np.abs(total - 1.0)
    allowed = rounding_of_sums(n_classes)
    wrong = np.flatnonzero(missing > allowed * (1 + 1e-9))  # 0.9999 is not a double
    if wrong.size:
        row = wrong[0]
        refuse(
            f"rows of `y_prob` must sum to 1 within {allowed:g}, got {total[row]:.9g} in row {row} "
            f"({wrong.size} such rows); if this is rounding, divide each row by its sum."
        )
    off = np.flatnonzero(missing > FLOAT32_ROUNDING * n_classes)
    if off.size:
        row = int(np.argmax(missing))
        rows = "1 row of `y_prob` does" if off.size == 1 else f"{off.size} rows of `y_prob` do"
        warn_user(f"{rows} not sum to 1, as after rounding (row {row}: {total[row]:.9g}); each was divided by its sum.")
    if n_classes == 2 and missing.max() > PAIR_ROUNDING:
        return divided_by_sums(prob)
    if off.size:
        prob = prob.copy()
        prob[off] /= total[off, None]
    return prob


def divided_by_sums(prob: NDArray[Any]) -> NDArray[Any]:
    """Return rows divided by their sums, but for those whose sum is 1 up to rounding of doubles.

    If they were divided, a probability of .6 would become .6000000000000001 in some rows: ties would break.
    """
    total = prob.sum(axis=1, keepdims=True, dtype=np.float64)
    total[np.abs(total - 1.0) <= PAIR_ROUNDING] = 1.0
    return prob / total


def is_large(prob: NDArray[Any]) -> bool:
    """Return whether probabilities should not be converted to doubles, nor anything be kept for each of them."""
    return prob.ndim == 2 and prob.shape[1] > MANY and prob.size > LARGE


def validate_outcome(y_true: ArrayLike, n_classes: int, classes: Sequence[Any] | None = None) -> Integers:
    """Return class indices ``(n_samples,)``; ``classes`` names the label of each column."""
    label = _plain_array(y_true, "y_true") if classes is not None else _typed_array(y_true, "y_true")
    swapped = said_if_swapped(label)
    advice = "; of one-hot labels pass y_true.argmax(axis=1)" if label.shape[1:] == (n_classes,) else ""
    advice = swapped or advice
    refuse_if(label.ndim != 1, f"`y_true` must have shape (n_samples,), got {label.shape}{advice}.")
    refuse_if(label.size == 0, "`y_true` must not be empty, got shape (0,).")
    if classes is not None:
        return _index_of(label, classes, n_classes)
    if label.dtype.kind == "b" and n_classes != 2:
        refuse(f"`y_true` may be boolean for two classes only, `y_prob` has {n_classes}.")
    if label.dtype.kind in "biuf":  # NaN and infinity fail a comparison
        wrong = np.flatnonzero(~((label >= 0) & (label < n_classes) & (label == np.floor(label))))
    else:
        right = [isinstance(value, int | float) and 0 <= value < n_classes for value in label.tolist()]
        wrong = np.array([right.index(False) if False in right else 0])
    if wrong.size:
        refuse_missing(label)
        refuse(
            f"`y_true` must hold class indices 0 to {n_classes - 1}, one for each column of `y_prob`, "
            f"got {_shown(label, wrong[0])}{swapped or (n_classes == 2 and said_if_times(label)) or _OTHER_LABELS}."
        )
    return np.require(label, np.int64, ["C", "W"])


_SWAPPED = "labels come first, and `y_true` and `y_prob` may be swapped"
_OTHER_LABELS = (
    "; for other labels pass `classes`, the label of each column (of two classes the event last), such as `classes_` "
    "of a scikit-learn classifier"
)


_MOST_CODES = 20  # of classes; more numbers for one probability may be times


def said_if_swapped(label: NDArray[Any]) -> str:
    """Return that labels may be predictions if they are probabilities and not all 0 or 1; otherwise nothing."""
    if label.dtype.kind != "f" or not ((label >= 0) & (label <= 1)).all() or not ((label > 0) & (label < 1)).any():
        return ""
    return f"; fractions look like probabilities; {_SWAPPED}"


def said_if_times(label: NDArray[Any]) -> str:
    """Return that times are not covered if labels are many different numbers, or fractions above 1; or nothing."""
    if label.dtype.kind not in "iuf" or label.max() <= 1:
        return ""
    return f"; {NO_TIMES}" if (label != np.floor(label)).any() or len(np.unique(label)) > _MOST_CODES else ""


def validate_problem(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None = None
) -> tuple[Floats, Integers]:
    """Return ``prob (n_samples, n_classes)`` and ``outcome (n_samples,)`` of equal length."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    return np.require(prob, np.float64, ["C", "W"]), outcome


def validate_given_problem(
    y_true: ArrayLike, y_prob: ArrayLike, classes: Sequence[Any] | None = None
) -> tuple[NDArray[Any], Integers]:
    """Return the same as `validate_problem`, large arrays of float32 probabilities as they are."""
    prob = validate_given_prob(y_prob)
    outcome = validate_outcome(y_true, prob.shape[1], classes)
    if len(prob) != len(outcome):
        refuse(f"`y_true` and `y_prob` must have the same length, got {len(outcome)} and {len(prob)}.")
    return prob, outcome


def validate_weight(sample_weight: ArrayLike | None, n_samples: int) -> Floats | None:
    """Return weights ``(n_samples,)``, finite and not negative, with a positive sum; None stays None."""
    if sample_weight is None:
        return None
    weight = _as_float(_typed_array(sample_weight, "sample_weight"), "sample_weight")
    require(weight.shape == (n_samples,), f"`sample_weight` must have shape ({n_samples},)", weight.shape)
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if wrong.size:
        refuse(f"`sample_weight` must be finite and not negative, got {weight[wrong[0]]} in row {wrong[0]}.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    refuse_if(not 0 < total < np.inf, f"`sample_weight` must have a positive, finite sum, got {total}.")
    return weight


def validate_groups(groups: Any, n_samples: int) -> Integers | None:
    """Return the number of the group of each observation, from 0 in the order of the ids; None stays None."""
    if groups is None:
        return None
    ids, number = validate_ids(groups, n_samples, "groups", "group")
    refuse_if(len(ids) < 2, f"`groups` must hold at least 2 groups, got the id {ids[0]!r} for every observation.")
    return number


def validate_rng(rng: SeedLike) -> np.random.Generator:
    """Return a Generator; all randomness of the package enters here.

    A RandomState of NumPy, scikit-learn's habit, gives the seed of a Generator and advances by four numbers.
    """
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(0, 2**32, size=4, dtype=np.uint32))
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    is_integer = _is_integer(rng)
    allowed = "`rng` must be None, an integer >= 0, a numpy.random.Generator or RandomState"
    require(is_integer and rng >= 0, allowed, rng, right_type=is_integer)
    return np.random.default_rng(int(rng))


validate_workers = workers_in_use
"""Return a number of threads: -1 stands for all processors, None for that of `caltest.config_context`."""


def validate_count(value: Any, name: str, minimum: int = 1) -> int:
    """Return ``value`` as int if it is an integer of at least ``minimum``, and not more than memory has room for."""
    is_integer = _is_integer(value)
    if is_integer and value > _MOST.get(name, value):
        refuse(f"`{name}` must be at most {_MOST[name]:,}, so that there is enough memory, got {value:,}.")
    right = is_integer and value >= minimum
    require(right, f"`{name}` must be an integer >= {minimum}", value, right_type=is_integer)
    return int(value)


def validate_level(value: Any, name: str) -> float:
    """Return ``value`` as float if it lies strictly between 0 and 1."""
    return _real(value, f"`{name}` must lie strictly between 0 and 1", lambda number: 0 < number < 1)


def validate_positive(value: Any, name: str) -> float:
    """Return ``value`` as float if it is a positive, finite number."""
    return _real(value, f"`{name}` must be a positive, finite number", lambda number: 0 < number < np.inf)


def validate_number(value: Any, name: str, low: float = -np.inf, high: float = np.inf) -> float:
    """Return ``value`` as float if it is a finite number from ``low`` to ``high``."""
    allowed = "" if low == -np.inf and high == np.inf else f" from {low:g} to {high:g}"
    must = f"`{name}` must be a finite number{allowed}"
    return _real(value, must, lambda number: np.isfinite(number) and low <= number <= high)


def validate_share(value: Any, name: str) -> float:
    """Return ``value`` as float if it is a number from 0 to 1, 1 excluded."""
    return _real(value, f"`{name}` must be a number of at least 0 and below 1", lambda number: 0 <= number < 1)


def _real(value: Any, must: str, holds: Callable[[Any], Any]) -> float:
    right_type = is_number(value)
    require(right_type and holds(value), must, value, right_type=right_type)
    return float(value)


def validate_bool(value: Any, name: str) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    require(isinstance(value, bool), f"`{name}` must be True or False", value, right_type=False)


def validate_choice(value: Any, name: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of the allowed words."""
    right_type = isinstance(value, str)
    must = f"`{name}` must be one of {', '.join(map(repr, allowed))}"
    require(right_type and value in allowed, must, value, right_type=right_type)
    return str(value)


def one_of(*allowed: str) -> Callable[[Any, str], str]:
    """Return the function that validates a parameter whose values are some words."""
    return partial(validate_choice, allowed=allowed)


def validate_distinct(
    values: Any, name: str, validate: Callable[[Any, str], float], kind: str, distinct: str
) -> NDArray[Any]:
    """Return different values, increasing, of a sequence whose entries are validated one by one.

    ``kind`` and ``distinct`` are what the sequence must hold, in words.
    """
    is_sequence = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    require(is_sequence, f"`{name}` must be a sequence of {kind}", values, right_type=False)
    found = np.unique([validate(value, name) for value in values])
    require(len(values) == found.size > 0, f"`{name}` must be one or more different {distinct}", list(values))
    return found


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a real number, of Python or NumPy."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _plain_array(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        missing = np.flatnonzero(mask.any(axis=tuple(range(1, mask.ndim))))
        refuse(f"`{name}` must not hold masked values, which are missing ({_first(missing)}). {_LEAVE_OUT}.")
    values = from_tensor(values)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        refuse(f"`{name}` must be a dense array, got a sparse {type(values).__name__}: pass `{name}.toarray()`.")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        refuse(f"`{name}` must be convertible to an array of one shape: {error}")


def _typed_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers where a frame hands over objects that are numbers."""
    array = _plain_array(values, name)
    return _plain_array(array.tolist(), name) if array.dtype == object and array.ndim else array


def _as_float(values: NDArray[Any], name: str) -> Floats:
    refuse_if(values.dtype.kind not in "biufO", f"`{name}` must hold real numbers, got {values.dtype} values.")
    try:
        return np.require(values, np.float64, ["C", "W"])
    except (ValueError, TypeError) as error:
        refuse(f"`{name}` must hold real numbers: {error}.")


def _within_range(prob: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities in [0, 1]: what lies outside by no more than `RANGE_TOLERANCE` is set to 0 or 1."""
    low, high = prob.min(), prob.max()
    if low >= 0 and high <= 1:  # NaN fails every comparison
        return prob
    if low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE:
        return np.clip(prob, 0, 1)
    wrong = np.argwhere(~((prob >= -RANGE_TOLERANCE) & (prob <= 1 + RANGE_TOLERANCE)))
    where = tuple(wrong[0])
    value = prob[where]
    place = f"row {where[0]}" + (f", column {where[1]}" if len(where) == 2 else "")
    if not np.isfinite(value):
        missing = np.flatnonzero(np.isnan(prob).reshape(len(prob), -1).any(axis=1))
        some = f" {len(missing):,} of {len(prob):,} predictions are missing ({_first(missing)}). {_LEAVE_OUT}."
        msg = f"`y_prob` must be finite, got {value} in {place}.{some * (len(missing) > 0)}"
    else:
        msg = f"`y_prob` must lie in [0, 1], got {value} in {place}{_advice_on_scale(prob)}."
    raise ValueError(msg)


def _advice_on_scale(prob: NDArray[Any], *, of_integers: bool = False) -> str:
    """Return what to do about predictions that look like percentages or logits; nothing where a value is just wrong."""
    low, high = (prob.min(), prob.max()) if prob.size else (0, 1)
    if low >= -SUM_TOLERANCE and high <= 1 + SUM_TOLERANCE:
        return ""
    percent, logits = "if these are percentages, pass y_prob / 100", 'if these are logits, pass input="logits"'
    if not of_integers and prob.ndim == 1 and (prob == np.rint(prob)).all():
        percent = f"whole numbers look like class labels; {_SWAPPED}; {percent}"
    if low < 0 or high > MOST_PERCENT:
        return f"; {logits}"
    if of_integers or (prob.ndim == 2 and np.median(np.abs(prob.sum(axis=1, dtype=np.float64) - 100)) < 1):
        return f"; {percent}"
    return f"; {logits}" if prob.ndim == 2 else f"; {percent}; {logits}"


def _advice_on_texts(values: NDArray[Any]) -> str:
    """Return what to do about predictions that are texts; nothing of other values."""
    if values.dtype.kind not in "UST" or not values.size:
        return ""
    sign = "without their sign and divided by 100" if "%" in str(values.flat[0]) else "such as y_prob.astype(float)"
    return f" such as {str(values.flat[0])!r}: pass numbers, {sign}"


def refuse_missing(label: Any, name: str = "y_true") -> None:
    """Raise ValueError if labels are missing, which are therefore no classes: how many of how many, the first rows."""
    import pandas as pd

    missing = np.flatnonzero(pd.isna(np.asarray(label)))
    if missing.size:
        what = "1 label is" if missing.size == 1 else f"{missing.size:,} labels are"
        refuse(f"`{name}`: {what} missing, of {len(label):,} ({_first(missing)}). {_LEAVE_OUT}: ~pandas.isna({name}).")


_LEAVE_OUT = "Leave these observations out of all arguments"


def _first(rows: NDArray[Any]) -> str:
    """Return the first three rows in words."""
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:3].tolist()))}{', ...' * (len(rows) > 3)}"


def validate_design(
    sample_weight: ArrayLike | None, groups: ArrayLike | None, n_samples: int, time: Any = None, lead: Any = None
) -> dict[str, Any]:
    """Return weights, numbers of groups and timing of observations by the names that `induce` gives them."""
    return {
        "weight": validate_weight(sample_weight, n_samples),
        "group": validate_groups(groups, n_samples),
        "timing": validate_timing(time, lead, n_samples),
    }


def design_of(options: Mapping[str, Any], n_samples: int) -> dict[str, Any]:
    """Return weights, groups and timing of the options that are there, by the names that `induce` gives them."""
    weight, *others = (options.get(name) for name in ("sample_weight", "groups", "time", "lead"))
    return validate_design(weight, others[0], n_samples, *others[1:])


def refuse_crossed(design: Mapping[str, Any]) -> None:
    """Raise ValueError if there are groups and times, for what does not know pairs of both kinds."""
    refuse_if(
        design["group"] is not None and design["timing"] is not None,
        "`groups` and `time` cannot be taken together here, but in calibration_test, calibration_table, "
        "calibration_report and subgroup_tests. Pass the longer stretches of time as groups, or one observation of "
        "each group at a time.",
    )


def _index_of(label: NDArray[Any], classes: Any, n_classes: int) -> Integers:
    n_dimensions = _plain_array(classes, "classes").ndim  # 0 for texts, sets and numbers
    must = f"`classes` must be a sequence of {n_classes} labels, one per column of `y_prob`"
    require(n_dimensions == 1, must, classes, right_type=n_dimensions > 0)
    names = list(classes) if isinstance(classes, list | tuple) else np.asarray(classes).tolist()
    must = f"`classes` must name {n_classes} classes, one per column of `y_prob`"
    require(len(names) == n_classes, must, len(names))
    position = {name: k for k, name in enumerate(names)}
    require(len(position) == len(names), "`classes` must be distinct", names)
    known = [position.get(value, -1) if isinstance(value, Hashable) else -1 for value in label.tolist()]
    outcome = np.array(known, dtype=np.int64)
    wrong = np.flatnonzero(outcome < 0)
    if wrong.size:
        refuse_missing(label)
        refuse(f"`y_true` must hold labels from `classes` {names!r}, got {_shown(label, wrong[0])}.")
    return outcome


def _shown(label: NDArray[Any], row: int) -> str:
    return f"{label.tolist()[row]!r} in row {row}"


def numbers_of(values: Any, name: str) -> NDArray[Any]:
    """Return an array of real numbers in its own precision; integers become doubles."""
    array = _typed_array(values, name)
    if array.dtype.kind == "f":
        return array
    advice = _advice_on_texts(array)
    refuse_if(array.dtype.kind not in "iuO", f"`{name}` must hold real numbers, got {array.dtype} values{advice}.")
    return _as_float(array, name)


def widen(prob: Any, name: str) -> tuple[Any, Note | None]:
    """Return predictions in half precision as wider floats whose rows sum to 1, with a note where that changed them.

    Other arrays, and sums that are refused later, are returned as they are. ``name`` is that of the argument.
    """
    if getattr(prob, "dtype", None) != np.float16 or not isinstance(prob, np.ndarray):
        return prob, None
    wide: NDArray[Any] = prob.astype(np.float32 if is_large(prob) else np.float64)
    if wide.ndim != 2 or not wide.size:
        return wide, None
    total = wide.sum(axis=1, keepdims=True, dtype=np.float64)
    missing = np.abs(total - 1)
    if not FLOAT32_ROUNDING * wide.shape[1] < missing.max() <= _ROUNDING + _SMALLEST * wide.shape[1]:
        return wide, None
    change = float((wide * (np.abs(1 / total - 1))).max())
    wide /= total
    text = (
        f"Half precision (float16) of `{name}`: rows do not sum to 1. Each was divided by its sum, which changed "
        f"probabilities by at most {change:.2g}."
    )
    return wide, Note("C903", text)
