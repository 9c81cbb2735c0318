"""Labels and probabilities out of the tables and arrays of a file, with what was guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.files._columns import (
    LABEL_NAMES,
    LABEL_WORDS,
    MISSING,
    PROB_NAMES,
    PROB_WORDS,
    Columns,
    Match,
    guess_label,
    guess_prob,
    guess_time,
    is_predicted,
    match_classes,
    notice,
    words_of,
)
from caltest.predictions.files._formats import read_arrays
from caltest.predictions.files._source import Source
from caltest.predictions.files._table import Table
from caltest.predictions.files._values import (
    labels,
    of_input,
    probabilities,
    refuse_missing,
    refuse_outside,
    refuse_several_models,
    without_missing,
)
from caltest.predictions.inputs._refusals import refuse_if, shortened
from caltest.predictions.inputs._times import OfferedTime
from caltest.results._note import warn_user


@dataclass(frozen=True, eq=False)
class PredictionFile:
    """Labels and probabilities of a file, as the public functions take them; returned by `read_predictions`.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Labels.
    y_prob : array of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : list or None
        The label of each column, where the labels are not class indices.
    label : str
        Name of the label column.
    label_guessed : bool
        Whether that name was guessed.
    prob : tuple of str
        Names of the probability columns.
    folds, groups, sample_weight, time, lead : array of shape (n_samples,) or None
        Cross-validation folds, groups and weights of the observations, and when predictions were made, from the columns
        that were named for them.
    subgroup : dict of str to array of shape (n_samples,)
        The columns that were named for subgroups, by their names.
    matched_by : str
        How labels and columns were matched, such as "names of the columns".
    reading : mapping of str to str
        How the file was read, such as its format, separator and encoding; what was guessed says so.
    noticed : tuple of str
        Sentences about columns that were not used.
    rows : array of int or None
        The rows of the file that were taken, where not all were.
    offered_time : OfferedTime or None
        A column of dates in order that was not named, from which tests make a caution where it matters.

    See Also
    --------
    caltest.predictions.read_predictions : The function that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> y_true, y_prob = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75])
    >>> file = PredictionFile(y_true, y_prob, classes=None, label="y", label_guessed=True, prob=("p",))
    >>> file.label, file.prob, file.columns
    ('y', ('p',), {1: 'p'})
    """

    y_true: NDArray[Any]
    y_prob: NDArray[Any]
    classes: list[Any] | None
    label: str
    label_guessed: bool
    prob: tuple[str, ...]
    folds: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    lead: NDArray[Any] | None = None
    subgroup: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    matched_by: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)
    noticed: tuple[str, ...] = ()
    rows: Integers | None = None
    offered_time: OfferedTime | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes; one column of probabilities is that of the event."""
        return self.y_prob.shape[1] if self.y_prob.ndim == 2 else 2

    @property
    def columns(self) -> dict[Any, str]:
        """The column of each label; of two classes with one column only the event has one."""
        labels = list(range(self.n_classes)) if self.classes is None else self.classes
        if self.y_prob.ndim == 1:
            return {labels[-1]: self.prob[0]}
        if len(self.prob) == len(labels):
            return dict(zip(labels, self.prob, strict=True))
        return {label: f"{self.prob[0]}[{k}]" for k, label in enumerate(labels)}  # vectors, or one array

    @property
    def counts(self) -> dict[Any, int]:
        """How many observations have each label, in the order of the columns; 0 for labels that never occur."""
        found = dict(zip(*(values.tolist() for values in np.unique(self.y_true, return_counts=True)), strict=True))
        labels = list(range(self.n_classes)) if self.classes is None else self.classes
        return {label: found.get(label, 0) for label in labels}


_OTHERS = ("folds", "groups", "sample_weight", "time", "lead")


@dataclass(frozen=True)
class Asked:
    """What was asked for, as the options of `read_predictions`; None where it is guessed."""

    label: str | None = None
    prob: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    class_names: Sequence[str] | None = None
    event: Any = None
    input: str = "probabilities"
    verbal: Mapping[str, float] | None = None
    drop_missing: bool = False
    where: str | None = None
    others: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(_OTHERS))
    subgroup: tuple[str, ...] = ()
    normalise: bool = False

    @property
    def aside(self) -> list[str]:
        """The columns that hold neither labels nor probabilities."""
        return [*(name for name in self.others.values() if name), *self.subgroup]


def from_table(table: Table, asked: Asked) -> PredictionFile:
    """Return predictions and labels out of a table."""
    frame, label, prob = table.frame, asked.label, asked.prob
    names = list(frame.columns)
    given = [("label", label), *(("prob", name) for name in prob or []), *asked.others.items()]
    given += [("subgroup", name) for name in asked.subgroup]
    missing = next(((argument, name) for argument, name in given if name and name not in names), None)
    if missing:
        more = ", and a lead is also a whole number, or a duration such as 7D or 12h" * (missing[0] == "lead")
        table.refuse(f"there is no column {missing[1]!r} for `{missing[0]}`; the columns are {shortened(names)}{more}")
    used = [name for _, name in given if name]
    double = next((name for name in used if used.count(name) > 1), None)
    if double is not None:
        table.refuse(f"the column {double!r} is named for two things; every column has one meaning")
    rest = replace(table, frame=frame.drop(columns=asked.aside))
    chosen = label or guess_label(rest, prob)
    table, rest = (_without_words(one, chosen) for one in (table, rest))
    frame = table.frame
    seen = labels(rest.rows(np.flatnonzero(frame[chosen].notna().to_numpy())), chosen)
    columns = tuple(prob) if prob else guess_prob(rest, chosen, seen, asked.verbal)
    needed = [chosen, *columns, *asked.aside]
    if asked.drop_missing:
        table = without_missing(table, needed, columns)
        frame = table.frame
    refuse_missing(table, [chosen, *columns])
    y_true = labels(table, chosen)
    if asked.where is None and len(columns) == 1 and set(y_true.tolist()) == {-1, 0, 1}:
        cure = {"where": f"{chosen} != -1"} if chosen.isidentifier() else {}
        table.refuse(f"labels in the column {chosen!r} are -1, 0 and 1; leave out -1 with `where` if unknown", **cure)
    values = probabilities(table, columns, asked.input, asked.verbal)
    if not prob and len(columns) > 1:
        refuse_several_models(table, columns, values)
    if len(columns) == 1 and values.shape[1] == 1:
        values = values[:, 0]
    aside = {name: frame[name].to_numpy() for name in asked.aside}
    return _matched(table, asked, chosen, columns, y_true=y_true, y_prob=values, aside=aside)


def _without_words(table: Table, label: str) -> Table:
    """Return a table whose labels are missing where they are words such as NA, unless a column is named after these."""
    column = table.frame[label]
    words = {word for word in MISSING if not any(name.endswith(word) for name in table.frame.columns)}
    gaps = column.isin(words) if column.dtype.kind == "O" else column.isna()
    if column.dtype.kind != "O" or not gaps.any() or column[~gaps].nunique() < 2:
        return table
    return replace(table, frame=table.frame.assign(**{label: column.where(~gaps)}))


def _matched(
    table: Table,
    asked: Asked,
    label: str,
    columns: tuple[str, ...],
    *,
    y_true: NDArray[Any],
    y_prob: NDArray[Any],
    aside: dict[str, NDArray[Any]],
) -> PredictionFile:
    """Return labels and probabilities with the class of each column; warn of columns that matter and are not used."""
    n_columns = y_prob.shape[1] if y_prob.ndim == 2 else 1
    named = table.named and len(columns) == n_columns  # not numbers by their positions
    place = Columns(table.name, columns, n_columns, named)
    classes, event = asked.classes, asked.event
    refuse = classes is not None and event is not None
    refuse_if(refuse, "`event` and `classes` say the same thing in two ways; leave out one of them.")
    classes = [event] if event is not None and n_columns == 1 else classes
    match = match_classes(y_true, y_prob, place, classes, asked.class_names)
    if event is not None and n_columns > 1:
        match, k = _against_the_rest(match, place, event)
        columns, y_prob = (columns[k] if len(columns) == n_columns else f"{columns[0]}[{k}]",), y_prob[:, k]
    warned, noticed = notice(table, [label, *columns, *asked.subgroup], asked.others)
    for text in warned:
        warn_user(text)
    dates = None if asked.others["time"] else guess_time(table, [label, *columns, *asked.aside])
    taken: dict[str, Any] = {argument: aside[name] if name else None for argument, name in asked.others.items()}
    return PredictionFile(
        match.y_true,
        y_prob,
        match.classes,
        label,
        asked.label is None,
        columns,
        **taken,
        subgroup={name: aside[name] for name in asked.subgroup},
        matched_by=match.by,
        reading={**table.reading, "probability columns": "given" if asked.prob else "guessed"},
        noticed=tuple(noticed),
        rows=table.taken,
        offered_time=None if dates is None else OfferedTime(table.frame[dates].to_numpy(), dates, "`time` and `lead`"),
    )


def _against_the_rest(match: Match, columns: Columns, event: Any) -> tuple[Match, int]:
    """Return labels of two values, the event and all other classes, and which column is that of the event."""
    labels = list(range(columns.n_columns)) if match.classes is None else list(match.classes)
    found = [k for k, label in enumerate(labels) if str(label) == str(event)]
    if len(found) != 1:
        columns.refuse(f"`event` must be one of the classes {shortened(labels)}, got {event!r}")
    label = labels[found[0]]
    happened = match.y_true == label
    if match.classes is None and set(labels) == {0, 1}:
        return match._replace(y_true=happened.astype(np.int64), classes=[1 - label, label]), found[0]
    other = f"not {label}"
    y_true = np.where(happened, str(label), other)
    return match._replace(y_true=y_true, classes=[other, str(label)], by=f"{match.by}, one against the rest"), found[0]


def from_arrays(source: Source, asked: Asked) -> PredictionFile:
    import pandas as pd

    arrays, prob = read_arrays(source), asked.prob
    arrays |= {name: array[:, 0] for name, array in arrays.items() if array.shape[1:] == (1,)}
    given = {"where": asked.where, "drop_missing": asked.drop_missing, "verbal": asked.verbal}
    of_tables = next((name for name, value in given.items() if value), None)
    source.refuse_if(of_tables, f"`{of_tables}` is for tables, and an NPZ file holds arrays: choose rows in Python")
    free = {name: array for name, array in arrays.items() if name not in asked.aside}
    if prob is not None and len(prob) != 1:
        source.refuse(f"`prob` must name one array of an NPZ file, got {', '.join(prob)}")
    unnamed = {name: array for name, array in free.items() if name not in (prob or ())}
    key = asked.label or guess_key(source, unnamed, LABEL_NAMES, "label")
    rest = {name: array for name, array in free.items() if name != key}
    prob_key = prob[0] if prob else guess_key(source, rest, PROB_NAMES, "prob")
    named = {"label": key, "prob": prob_key, **asked.others}
    for argument, name in [*named.items(), *(("subgroup", name) for name in asked.subgroup)]:
        if name and name not in arrays:
            source.refuse(f"there is no array {name!r} for `{argument}`; the arrays are {shortened(list(arrays))}")
    y_true, y_prob = arrays[key], arrays[prob_key]
    if asked.input != "probabilities" and y_prob.ndim in {1, 2} and y_prob.dtype.kind in "fiu":
        wide = y_prob.reshape(len(y_prob), -1).astype(np.float64)
        y_prob = of_input(wide, asked.input, prob_key).reshape(y_prob.shape)
    if y_true.shape == y_prob.shape and _marks_one(y_true):
        y_true = y_true.argmax(axis=1)
        source.reading["layout"] = f"one-hot labels in the array {key} (guessed)"
    got = f"got {key!r} of shape {y_true.shape} and {prob_key!r} of shape {y_prob.shape}"
    if y_true.ndim != 1 or y_prob.ndim not in {1, 2} or len(y_true) == 0:
        source.refuse(
            f"labels must have shape (n_samples,) and probabilities (n_samples,) or (n_samples, n_classes), {got}"
        )
    if len(y_true) != len(y_prob):
        source.refuse(f"labels and probabilities must have the same length, {got}")
    arrays |= {key: y_true}
    rows = {name: array for name, array in arrays.items() if array.ndim == 1 and len(array) == len(y_true)}
    table = Table(source.name, pd.DataFrame(rows), reading=source.reading)
    y_true = labels(table, key)
    if y_prob.dtype.kind == "f" and y_prob.size:  # other types are refused with the arguments of the tests
        refuse_outside(y_prob, table, (prob_key,))
    return _matched(table, asked, key, (prob_key,), y_true=y_true, y_prob=y_prob, aside=arrays)


def _marks_one(array: NDArray[Any]) -> bool:
    """Return whether an array is a table of 0 and 1 with one 1 in each row."""
    is_table = array.ndim == 2 and array.dtype.kind in "biuf" and array.shape[1] > 1
    return is_table and bool(np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all())


def guess_key(source: Source, arrays: dict[str, NDArray[Any]], known: Sequence[str], argument: str) -> str:
    """Return the array of labels or of probabilities: by its name, or as the only one that may hold them.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    is_label = argument == "label"
    by_name = [key for word in known for key in arrays if key.lower() == word]
    fits = [key for key, array in arrays.items() if (_may_be_labels if is_label else _may_be_probabilities)(key, array)]
    tables = [key for key in fits if arrays[key].ndim == 2]
    fits = fits if is_label else tables or fits
    candidates = (
        by_name[:1] or [key for key in fits if words_of(key) & (LABEL_WORDS if is_label else PROB_WORDS)] or fits
    )
    if len(candidates) != 1:
        found = shortened(list(arrays)) or "(none)"
        cure = {argument: candidates[0] if is_label else candidates[:1]} if candidates else {}
        source.refuse(f"cannot choose among the arrays {found}; name one with `{argument}`", **cure)
    return candidates[0]


def _may_be_labels(key: str, array: NDArray[Any]) -> bool:
    """Return whether an array holds labels or one-hot labels, and is neither predicted by its name nor an id."""
    if is_predicted(key) or array.ndim != 1:
        return not is_predicted(key) and _marks_one(array)
    is_whole = array.dtype.kind != "f" or bool((array == np.rint(array)).all())
    return is_whole and len(np.unique(array)) < max(len(array), 3)


def _may_be_probabilities(key: str, array: NDArray[Any]) -> bool:
    """Return whether an array is a table of numbers, or a row of numbers between 0 and 1 that are not all whole."""
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        return array.ndim == 2
    return array.dtype.kind == "f" and bool(((array >= 0) & (array <= 1)).all() and (array != np.rint(array)).any())
