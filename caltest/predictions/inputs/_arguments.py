"""The door of the public functions: frames, series and other inputs become arrays that fit into memory."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.inputs._class_columns import (
    ClassColumns,
    are_positions,
    match_classes,
    match_event,
    match_labels,
    match_nothing,
    plain_dates,
    show_labels,
)
from caltest.predictions.inputs._frames import (
    from_arrow,
    index_of,
    is_frame,
    names_of,
    read_columns,
    read_observations,
    refuse_other_indexes,
)
from caltest.predictions.inputs._options import as_declared, whole_signature, with_options
from caltest.predictions.inputs._parts import advice_on_groups, repeated_index
from caltest.predictions.inputs._refusals import refuse, refuse_other_names
from caltest.predictions.inputs._scale import PROBABILITIES, as_probabilities, validate_input
from caltest.predictions.inputs._times import OfferedTime, is_time_index
from caltest.predictions.inputs._validation import refuse_missing, widen
from caltest.results import Note, Result
from caltest.results._note import warn_user

_BYTES = 8  # of a value
_UNKNOWN = 2**36  # bytes, where the system does not tell
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_LABELS = ("y_true", "y_true_a", "y_true_b")
_PROBS = ("y_prob", "logits", "prob_a", "prob_b", "class_prob")
_OBSERVATIONS = ("sample_weight", "groups", "groups_a", "groups_b", "folds", "held_out", "time", "forecast_of")
_AS_THEY_ARE = {"class_prob", "logits"}  # what `input` does not tell
_WARNED = {"C902", "C903", "C904"}  # what was assumed and changed is said beside a bare number too
_COUNTS = ("n_resamples", "n_kernel_resamples")
_BESIDE = {"y_true", *_PROBS, "sample_weight", "groups", "folds", "held_out", "subgroup", "site", "features"}
_BESIDE |= {"time", "lead", "forecast_of"}
_BESIDE_OF_TWO = {"y_true_a", "prob_a", "groups_a"}, {"y_true_b", "prob_b", "groups_b"}
"""Arguments that belong to the same observations, of one data set and of two."""


def refuse_too_many(number: Any, name: str) -> None:
    """Raise ValueError if so many draws of one number each do not fit into memory; other values are refused later."""
    if not isinstance(number, int | np.integer) or isinstance(number, bool):
        return
    needed, there = _BYTES * int(number), _memory()
    if needed > there:
        refuse(
            f"`{name}` = {number:,} draws need at least {_shown(needed)} of memory; this machine has {_shown(there)}. "
            "Take fewer: with B draws the smallest p-value is 1 / (B + 1), and 9,999 are enough for most uses."
        )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN


def _shown(n_bytes: int) -> str:
    return f"{n_bytes / 1e12:,.3g} TB" if n_bytes >= 1e12 else f"{n_bytes / 1e9:,.3g} GB"


@dataclass(frozen=True)
class Problem:
    """What was passed, as arrays.

    Attributes
    ----------
    labels, probs : dict
        Labels and predictions by the name of their argument; columns are in the order of the classes.
    classes : list or None
        The label of each column; None where labels are class indices.
    names : dict
        Name of the column of each label; empty where columns have no names.
    notes : tuple of Note
        What was assumed or changed.
    """

    labels: dict[str, Any]
    probs: dict[str, Any]
    classes: Any
    names: dict[Any, Any]
    notes: tuple[Note, ...]

    def describe(self, found: Returned) -> Returned:
        """Return a result with the columns and notes of what was passed; other values are returned as they are."""
        if not isinstance(found, Result):
            for note in self.notes:
                if note.code in _WARNED:
                    warn_user(note.text)
            return found
        return found.of_inputs(self.names, self.notes)


def reads_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Decorate a public function: its arguments are read once, and its result reports what was read.

    Options that it shares with others are declared in `_options`.
    """
    return _reading(function, _read)


def reads_label_arguments(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Decorate a public function as `reads_arguments`, which reads the columns of several labels itself."""
    return _reading(function, _read_beside_labels)


def answers_other_names(method: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Decorate a method that reads its arguments itself: names of other packages are answered as by functions."""
    parameters = set(inspect.signature(method).parameters)
    function = method.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(method)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        refuse_other_names(function, kwargs, parameters)
        return method(*args, **kwargs)

    return answer


def _reading(
    function: Callable[Parameters, Returned], read_given: Callable[[dict[str, Any], set[str], str], Problem | None]
) -> Callable[Parameters, Returned]:
    signature, complete = whole_signature(function), with_options(function)
    parameters, own = set(signature.parameters), inspect.signature(function).parameters
    limited = one_blas_thread if "workers" in parameters else nullcontext  # others are too short to be worth it

    def read(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        refuse_other_names(function.__name__, kwargs, parameters)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return complete(*args, **kwargs)  # refuses them in Python's words
        given = bound.arguments
        kind = validate_input(given.get("input", PROBABILITIES), "input")
        if "input" not in own:
            given.pop("input", None)
        labels = given.get("y_true")
        if isinstance(labels, Mapping) or ({"models", "epochs"} & parameters and _models(labels)):
            first = (name for name, each in signature.parameters.items() if each.default is each.empty)
            call = f"{function.__name__}({', '.join(first)})"
            what = "a mapping" if isinstance(labels, Mapping) else "pairs of names and predictions"
            refuse(f"`y_true` must hold labels, got {what}. Labels come first: {call}.", TypeError)
        for name in _COUNTS:
            refuse_too_many(given.get(name), name)
        problem = read_given(given, parameters, kind)
        with limited():
            found: Returned = complete(*bound.args, **bound.kwargs)
        return found if problem is None else problem.describe(found)

    as_declared(function, read)
    read.__wrapped__ = complete  # type: ignore[attr-defined]
    return read


def _read(given: dict[str, Any], parameters: set[str], kind: str) -> Problem | None:
    """Read the arguments in place; return what was read, None where there are no predictions.

    ``kind`` is what predictions are.
    """
    if "y_prob_foreign" in parameters:
        return _read_unlabelled(given, ("y_prob", "y_prob_foreign"), kind)
    argument = "models" if "models" in parameters else "y_prob" if given.get("logits") is None else "logits"
    models = given.get(argument)
    parts = _models(models) if "models" in parameters or isinstance(models, Mapping) else None
    labels = {name: given[name] for name in _LABELS if given.get(name) is not None}
    probs = {name: given[name] for name in _PROBS if name in given and not isinstance(given[name], Mapping)}
    if parts is not None:
        probs, labels = _of_models(parts, labels)
    if argument == "logits" and kind != PROBABILITIES:
        refuse(f"`input` says what `y_prob` is; `logits` are logits without it, got {kind!r}.")
    if argument == "logits":  # of half precision: no probabilities, whose sums would be mended
        half = {name for name, value in probs.items() if getattr(value, "dtype", None) == np.float16}
        probs |= {name: probs[name].astype(np.float64) for name in half}
    _refuse_other_indexes(given, labels, argument, probs if parts else {})
    _read_observations(given)
    if "time" in parameters and given.get("time") is None:
        given["time"] = time_of_index(*labels.values(), *probs.values())
    if not probs:
        return None
    if not any(given.get(name) is not None for name in ("groups", "groups_a")):
        warn_of_repeated_index(*labels.values(), *probs.values())
    if "class_prob" in probs and not all(map(is_frame, probs.values())):
        given["y_prob"] = as_probabilities(read_columns(from_arrow(given["y_prob"])), "y_prob", kind)[0]
        return None  # a plain array is in the order of the columns of the frame
    problem = read_problem(labels, probs, given.get("classes"), kind)
    if "classes" in parameters:
        given["classes"] = problem.classes
    if parts is None:
        given.update(problem.labels | problem.probs)
        return problem
    read = {name: problem.probs[name] for name in parts}
    if "y_true" in problem.labels:
        given["y_true"] = problem.labels["y_true"]
    else:
        read = {name: (problem.labels[name], prob) for name, prob in read.items()}
    given[argument] = read
    return problem


def _read_observations(given: dict[str, Any]) -> None:
    given.update({name: read_observations(given[name], name) for name in _OBSERVATIONS if given.get(name) is not None})


def _read_beside_labels(given: dict[str, Any], *_: Any) -> None:
    """Read what is given beside labels and predictions."""
    refuse_other_indexes({name: value for name, value in given.items() if name in _BESIDE})
    if given.get("time") is None:
        given["time"] = time_of_index(given.get("y_true"), given.get("y_prob"))
    _read_observations(given)
    if given.get("groups") is None:
        warn_of_repeated_index(given.get("y_true"), given.get("y_prob"))


def time_of_index(*tables: Any) -> OfferedTime | None:
    """Return the index of a frame or series that holds dates; None if there is none."""
    found = next(filter(is_time_index, map(index_of, tables)), None)
    return None if found is None else OfferedTime(found)


def _read_unlabelled(given: dict[str, Any], arguments: tuple[str, ...], kind: str) -> Problem:
    """Read predictions, perhaps of several models, whose classes need not be distinguished."""
    read: list[Problem] = []
    for argument in arguments:
        value = given[argument]
        if isinstance(value, Mapping):
            tables = {model: {f"{argument}[{model!r}]": prob} for model, prob in value.items()}
            each = {model: read_problem({}, table, None, kind) for model, table in tables.items()}
            given[argument] = {model: next(iter(one.probs.values())) for model, one in each.items()}
            read += each.values()
        else:
            read.append(read_problem({}, {argument: value}, None, kind))
            given[argument] = read[-1].probs[argument]
    return Problem({}, {}, None, read[0].names if read else {}, tuple(note for one in read for note in one.notes))


def read_problem(
    labels: dict[str, Any], probs: dict[str, Any], classes: Any = None, kind: str = PROBABILITIES
) -> Problem:
    """Return labels and predictions as arrays, with the classes of their columns.

    Parameters
    ----------
    labels : dict
        Labels of all observations, by the name of the argument; may be empty.
    probs : dict
        Predictions, by the name of the argument or of the model.
    classes : sequence or None
        The label of each class.
    kind : {"probabilities", "logits"}
        What predictions are; they are returned as probabilities.

    Raises
    ------
    ValueError
        If the names of columns contradict the labels or ``classes``, or cannot be understood.
    """
    read = {name: plain_dates(read_observations(value, name)) for name, value in labels.items()}
    classes = plain_dates(classes)
    tables = {name: from_arrow(value) for name, value in probs.items()}
    known = _as_list(classes)
    seen = _seen(read.values()) if known is not None or any(map(names_of, tables.values())) else []
    kinds = {name: PROBABILITIES if name in _AS_THEY_ARE else kind for name in tables}
    if (classes is not None and known is None) or (labels and seen is None):
        plain = {name: as_probabilities(read_columns(table), name, kinds[name])[0] for name, table in tables.items()}
        return Problem(read, plain, classes, {}, ())
    matched: dict[str, ClassColumns | None] = {}
    for name, table in tables.items():
        try:
            matched[name] = _match(table, known, seen)
        except ValueError as error:
            for given in read.values():
                refuse_missing(given)
            if len(tables) == 1:
                raise
            refuse(f"{name}: {error}")
    found = _agreed(matched, known)
    notes = _notes(found, known, seen, matched)
    arrays = {}
    for name, table in tables.items():
        one = matched[name]
        array = read_columns(table, None if one is None else one.order)
        shape: Any = getattr(array, "shape", ())
        array, doubt = as_probabilities(array[:, 0] if shape[1:] == (1,) else array, name, kinds[name])
        arrays[name], changed = widen(array, name)
        notes += [note for note in (doubt, changed) if note is not None]
    classes = classes if known is not None or found is None else found.classes
    return Problem(read, arrays, classes, {} if found is None else found.names, tuple(notes))


def _match(table: Any, classes: list[Any] | None, seen: list[Any] | None) -> ClassColumns | None:
    """Return the columns of the classes of a frame; None where columns have no names."""
    names = names_of(table)
    if not names:
        return None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse(f"`y_prob` has several columns of the name {twice!r}; name each after its class.")
    if len(names) == 1:
        unnamed = are_positions(names) if is_frame(table) else np.asarray(table).dtype == object or np.ndim(table) > 1
        return None if unnamed or not seen else match_event(names[0], seen, classes)
    if classes is not None:
        found = match_classes(names, classes)
        return replace(found, names={}) if are_positions(names) else found
    if are_positions(names):
        return None
    return match_nothing(names) if seen is None else match_labels(names, seen)


def _agreed(matched: Mapping[str, ClassColumns | None], classes: list[Any] | None) -> ClassColumns | None:
    """Return the columns of all models, which must have the same classes; None where none has names."""
    named = {name: found for name, found in matched.items() if found is not None and found.names}
    if not named:
        return None
    first = next(iter(named))
    for name, found in named.items():
        if found.classes != named[first].classes or (
            len(found.names) > 1 < len(named[first].names) and list(found.names) != list(named[first].names)
        ):
            refuse(
                f"all models must predict the same classes, got {show_labels(list(named[first].names))} of {first} and "
                f"{show_labels(list(found.names))} of {name}."
            )
    plain = [name for name in matched if name not in named]
    if plain and classes is None and named[first].classes is not None:
        refuse(f"{plain[0]} has columns without names, unlike others: pass `classes`, the labels in their order.")
    return max(named.values(), key=lambda found: len(found.names))


def _notes(
    found: ClassColumns | None,
    classes: list[Any] | None,
    seen: list[Any] | None,
    matched: Mapping[str, ClassColumns | None],
) -> list[Note]:
    notes = []
    known = classes if classes is not None else None if found is None else found.classes or list(found.names)
    if known is not None and len(known) > 1 and seen is not None:
        occurring = set(seen)
        absent = [label for label in known if label not in occurring]
        if absent:
            labels = "the label" if len(absent) == 1 else f"one of the {len(absent)} labels"
            notes.append(Note("C901", f"No observation has {labels} {show_labels(absent)}."))
    if any(one is not None and one.positional for one in matched.values()):
        text = (
            "The names of the columns are not the labels: columns were taken in their order, which is that of the "
            "alphabet too. Pass `classes`, the label of each column, if that is wrong."
        )
        notes.append(Note("C902", text))
    return notes


def warn_of_repeated_index(*frames: Any) -> None:
    """Warn if the index of one of the frames is an id whose values repeat."""
    found = next(filter(None, map(repeated_index, frames)), None)
    if found is not None:
        name, number = found
        warn_user(f"The index {name!r} repeats. {advice_on_groups(number)}")


def _refuse_other_indexes(given: dict[str, Any], labels: dict[str, Any], argument: str, models: dict[str, Any]) -> None:
    """Refuse frames and series of the same observations with different indexes."""
    for together in _BESIDE_OF_TWO if "y_true_a" in given else (_BESIDE,):
        refuse_other_indexes({name: value for name, value in given.items() if name in together})
    for name, value in models.items():
        own = "y_true" if "y_true" in labels else name
        if own in labels:
            refuse_other_indexes({"y_true": labels[own], f"{argument}[{name!r}]": value})


def _models(models: Any) -> dict[str, Any] | None:
    """Return models by name; None where they are refused later."""
    pairs = list(models.items()) if isinstance(models, Mapping) else models
    if not isinstance(pairs, list | tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        return None
    named = {name: value for name, value in pairs if isinstance(name, str)}
    return named if len(named) == len(pairs) else None


def _of_models(parts: dict[str, Any], labels: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return predictions and labels of models, which may have a data set each."""
    if labels:
        return dict(parts), labels
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in parts.values()):
        return {}, {}
    return {name: pair[1] for name, pair in parts.items()}, {name: pair[0] for name, pair in parts.items()}


def _as_list(classes: Any) -> list[Any] | None:
    """Return distinct classes as a list; None for what is refused later."""
    if classes is None or isinstance(classes, str):
        return None
    array = np.asarray(classes) if hasattr(classes, "__len__") else np.empty(())
    listed: Any = list(classes) if isinstance(classes, list | tuple) else array.tolist()
    if array.ndim != 1 or not all(isinstance(label, Hashable) for label in listed):
        return None
    return listed if len(set(listed)) == len(listed) else None


def _seen(labels: Any) -> list[Any] | None:
    """Return the labels that occur; None where there are none or they are refused later."""
    import pandas as pd

    found: set[Any] = set()
    for given in labels:
        try:
            array: NDArray[Any] = np.asarray(given)
            if array.ndim != 1 or not array.size:
                return None
            found |= set(given) if isinstance(given, list) else set(pd.unique(array).tolist())
        except (TypeError, ValueError, RuntimeError):
            return None
    return list(found) or None


_unlimited = Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, unless a call around this one, or one on another thread, has done so.

    Where other programs use the processors, a product of 8,000 x 110 numbers takes some ten times as long on several
    threads. The limit holds for the whole process: the call that has set it restores what was before.
    """
    if not _unlimited.acquire(blocking=False):
        yield
        return
    limited: list[tuple[Any, int]] = []
    try:
        for library in _blas("scipy.linalg" in sys.modules):
            limited.append((library, library.num_threads))
            library.set_num_threads(1)
        yield
    finally:
        for library, number in limited:
            library.set_num_threads(number)
        _unlimited.release()


@cache
def _blas(with_scipy: bool) -> list[Any]:
    """Return what limits the threads of each library that is loaded; looking for them takes milliseconds.

    SciPy brings a library of its own, which may be loaded later than NumPy's.
    """
    from threadpoolctl import ThreadpoolController  # which scikit-learn needs

    return ThreadpoolController().select(user_api="blas").lib_controllers
