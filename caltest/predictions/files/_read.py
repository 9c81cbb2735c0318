"""Reading predictions and labels from files, with the columns that were taken for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.files._columns import (
    LABEL_NAMES,
    PROB_NAMES,
    Columns,
    guess_label,
    guess_prob,
    guess_time,
    match_classes,
    named_as_labels,
    notice,
)
from caltest.predictions.files._formats import read_arrays, read_table
from caltest.predictions.files._source import Source, find_source
from caltest.predictions.files._table import Table, shortened
from caltest.predictions.files._text import read_text
from caltest.predictions.files._values import labels, normalised, probabilities, refuse_outside, refuse_several_models
from caltest.predictions.inputs._refusals import require
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
    folds, groups, sample_weight, time : array of shape (n_samples,) or None
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
    offered_time : OfferedTime or None
        A column of dates in order that was not named, from which tests make a caution where it matters.

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
    subgroup: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    matched_by: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)
    noticed: tuple[str, ...] = ()
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


def read_predictions(
    path: str | Path | BinaryIO,
    label: str | None = None,
    prob: Sequence[str] | None = None,
    folds: str | None = None,
    *,
    groups: str | None = None,
    sample_weight: str | None = None,
    time: str | None = None,
    subgroup: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    normalise: bool = False,
    file_format: str | None = None,
    sep: str | None = None,
    decimal: str = ".",
    header: int | str | None = "infer",
    encoding: str | None = None,
) -> PredictionFile:
    r"""Read predictions and labels from a file: CSV, TSV, Parquet, Arrow, JSON, Excel, NPZ or NPY.

    Parameters
    ----------
    path : str, Path or binary file object
        The file; its ending decides how it is read. It may be compressed (.gz, .bz2, .xz, .zip, .zst).
    label, prob : str and sequence of str, optional
        Names of the label column and of the probability columns (keys in an NPZ file). By default they are guessed
        from the names and types of the columns. One column may hold a list of probabilities in each row.
    folds, groups, sample_weight, time : str, optional
        Names of the columns with the cross-validation fold of each observation, with its group, such as its patient,
        with its weight, and with the time when its prediction was made. They are not guessed.
    subgroup : sequence of str, optional
        Names of columns whose values are subgroups, such as its site and its age.
    classes : sequence, optional
        The label of each probability column, in their order; of one column, the label of the event alone:
        ``["yes"]``. By default labels are matched to the names of the columns.
    class_names : sequence of str, optional
        Names of the labels 0, 1, ..., where labels are numbers and the columns have names.
    normalise : bool
        Divide each row of probabilities by its sum, where rounding left it up to 0.1 from 1. A warning says the
        largest change.
    file_format : str, optional
        "csv", "tsv", "json", "jsonl", "parquet", "arrow", "excel", "npz" or "npy", where the ending does not say it.
    sep, decimal : str, optional
        Separator of values, by default a comma (a semicolon if ``decimal=","``, tabs in TSV files), and decimal mark,
        "." or ","; for CSV and TSV files.
    header : {"infer", 0, None}
        Whether the first line holds names (0) or data (None). By default it must look like names. For CSV, TSV and
        Excel files.
    encoding : str, optional
        Encoding of a CSV or TSV file, by default UTF-8 or what a byte order mark says.

    Returns
    -------
    PredictionFile
        Labels, probabilities and classes as the public functions take them, the names of the columns, and what was
        guessed.

    Raises
    ------
    TypeError
        If ``path`` is no path, or ``prob``, ``subgroup``, ``classes`` or ``class_names`` is a text instead of a
        sequence of texts.
    ValueError
        If the file does not exist or cannot be read; if a named column is missing; if the columns cannot be guessed; if
        a label is missing or a probability is missing, no number or outside [0, 1], naming its line and column; if
        nothing says which column is the probability of which label.

    Warns
    -----
    CalibrationWarning
        If a column that was not named has the name of an id, such as "patient_id", and values that repeat: observations
        of one patient may depend on each other. If ``normalise`` changes a probability.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("label;cat;dog\ncat;0,75;0,25\ndog;0,5;0,5\n")
    ...     found = read_predictions(path, sep=";", decimal=",")
    >>> found.label, found.columns, found.matched_by
    ('label', {'cat': 'cat', 'dog': 'dog'}, 'the names of the columns')
    """
    for name, value in {"prob": prob, "subgroup": subgroup, "classes": classes, "class_names": class_names}.items():
        require(not isinstance(value, str), f"`{name}` must be a sequence of names", value, right_type=False)
    others = {"folds": folds, "groups": groups, "sample_weight": sample_weight, "time": time}
    asked = Asked(label, prob, classes, class_names, others, tuple(subgroup or ()))
    source = find_source(path, file_format)
    _check_options(source, sep, decimal, header, encoding)
    place: Callable[[int], str] = "in row {}".format
    if source.file_format == "npz":
        found = _from_arrays(source, asked)
    else:
        table = _table_of(source, sep, decimal, header, encoding)
        found, place = from_table(table, asked), table.place
    return replace(found, y_prob=normalised(source.name, found.y_prob, place)) if normalise else found


def _table_of(
    source: Source, sep: str | None, decimal: str, header: Any, encoding: str | None, *, dtype: type | None = None
) -> Table:
    if source.file_format in {"csv", "tsv"}:
        return read_text(source, sep, decimal, header, encoding, dtype=dtype)
    return read_table(source, header)


def read_columns(
    path: str | Path | BinaryIO, n_samples: int, *, as_text: bool, file_format: str | None = None, **reading: Any
) -> dict[str, NDArray[Any]]:
    """Return all columns of a file, by their names and as they stand there.

    Of an NPZ file the arrays are returned that have a row for each observation.

    Parameters
    ----------
    path : str, Path or binary file object
        As in `read_predictions`.
    n_samples : int
        Number of observations.
    as_text : bool
        Whether values of text files stay texts, so that an id keeps its leading zeros.
    file_format : str, optional
        As in `read_predictions`.
    **reading
        Separator, decimal mark, header and encoding, as in `read_predictions`.
    """
    source = find_source(path, file_format)
    if source.file_format == "npz":
        return {name: array for name, array in read_arrays(source).items() if array.shape[:1] == (n_samples,)}
    frame = _table_of(source, **reading, dtype=str if as_text else None).frame
    return {name: frame[name].to_numpy() for name in frame.columns}


def read_probabilities(
    path: str | Path | BinaryIO,
    prob: Sequence[str] | None,
    classes: Sequence[Any],
    advice: str,
    *,
    normalise: bool = False,
    file_format: str | None = None,
    **reading: Any,
) -> tuple[Columns, NDArray[Any]]:
    """Return the probability columns of a file that needs no labels, and their values ``(n_samples, n_columns)``.

    Parameters
    ----------
    path : str, Path or binary file object
        As in `read_predictions`.
    prob : sequence of str or None
        The names of the columns; None where they are guessed.
    classes : sequence
        The labels that columns may be named after.
    advice : str
        What to do if there is no column of such a name.
    normalise : bool
        As in `read_predictions`.
    file_format, **reading
        As in `read_columns`.
    """
    source = find_source(path, file_format)
    _check_options(source, **reading)
    if source.file_format == "npz":
        import pandas as pd

        arrays = read_arrays(source)
        columns = tuple(prob) if prob else (_guess_key(source, arrays, PROB_NAMES, "prob"),)
        table = Table(source.name, pd.DataFrame())
        _refuse_unknown(source, columns, list(arrays), advice)
        source.refuse_if(len(columns) > 1, f"`prob` must name one array of an NPZ file, got {', '.join(columns)}")
        values = arrays[columns[0]]
        if values.ndim not in {1, 2} or values.dtype.kind not in "fiub" or not len(values):
            source.refuse(f"the array {columns[0]!r} of shape {values.shape} and type {values.dtype} is no probability")
        values = values.reshape(len(values), -1)
        refuse_outside(values, table, columns)
    else:
        table = _table_of(source, **reading)
        names = list(table.frame.columns)
        label = next(iter(named_as_labels(names) if len(names) > 1 else []), "")  # it is not looked at
        columns = tuple(prob) if prob else guess_prob(table, label, np.array(classes, dtype=object))
        _refuse_unknown(source, columns, list(table.frame.columns), advice)
        values = probabilities(table, columns)
    named = table.named and len(columns) == values.shape[1]
    if normalise and values.shape[1] > 1:
        values = normalised(source.name, values, table.place)
    return Columns(source.name, columns, values.shape[1], named), values


def _refuse_unknown(source: Source, prob: Sequence[str], known: list[str], advice: str) -> None:
    absent = next((name for name in prob if name not in known), None)
    if absent is not None:
        source.refuse(f"there is no column {absent!r}; the columns are {shortened(known)}; {advice}")


def _check_options(source: Source, sep: str | None, decimal: str, header: Any, encoding: str | None) -> None:
    """Raise ValueError if an option has no meaning for the format."""
    is_text = source.file_format in {"csv", "tsv"}
    given = {
        "sep": sep is not None and not is_text,
        "decimal": decimal != "." and not is_text,
        "encoding": encoding is not None and not is_text,
        "header": header != "infer" and not is_text and source.file_format != "excel",
    }
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        source.refuse(f"`{wrong}` is for CSV and TSV files, and the format is {source.reading['format']}")


_OTHERS = ("folds", "groups", "sample_weight", "time")


@dataclass(frozen=True)
class Asked:
    """What was asked for: names of columns, and the labels of the probability columns; None where it is guessed."""

    label: str | None = None
    prob: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    class_names: Sequence[str] | None = None
    others: dict[str, str | None] = field(default_factory=lambda: dict.fromkeys(_OTHERS))
    subgroup: tuple[str, ...] = ()

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
        table.refuse(f"there is no column {missing[1]!r} for `{missing[0]}`; the columns are {shortened(names)}")
    used = [name for _, name in given if name]
    double = next((name for name in used if used.count(name) > 1), None)
    if double is not None:
        table.refuse(f"the column {double!r} is named for two things; every column has one meaning")
    rest = replace(table, frame=frame.drop(columns=asked.aside))
    chosen = label or guess_label(rest, prob)
    y_true = labels(table, chosen)
    columns = tuple(prob) if prob else guess_prob(rest, chosen, y_true)
    values = probabilities(table, columns)
    if not prob and len(columns) > 1:
        refuse_several_models(table, columns, values)
    if len(columns) == 1 and values.shape[1] == 1:
        values = values[:, 0]
    aside = {name: frame[name].to_numpy() for name in asked.aside}
    return _matched(table, asked, chosen, columns, y_true=y_true, y_prob=values, aside=aside)


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
    match = match_classes(y_true, Columns(table.name, columns, n_columns, named), asked.classes, asked.class_names)
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
        offered_time=None if dates is None else OfferedTime(table.frame[dates].to_numpy(), dates, "`time` and `lead`"),
    )


def _from_arrays(source: Source, asked: Asked) -> PredictionFile:
    import pandas as pd

    arrays, prob = read_arrays(source), asked.prob
    free = {name: array for name, array in arrays.items() if name not in asked.aside}
    if prob is not None and len(prob) != 1:
        source.refuse(f"`prob` must name one array of an NPZ file, got {', '.join(prob)}")
    unnamed = {name: array for name, array in free.items() if name not in (prob or ())}
    key = asked.label or _guess_key(source, unnamed, LABEL_NAMES, "label")
    rest = {name: array for name, array in free.items() if name != key}
    prob_key = prob[0] if prob else _guess_key(source, rest, PROB_NAMES, "prob")
    named = {"label": key, "prob": prob_key, **asked.others}
    for argument, name in [*named.items(), *(("subgroup", name) for name in asked.subgroup)]:
        if name and name not in arrays:
            source.refuse(f"there is no array {name!r} for `{argument}`; the arrays are {shortened(list(arrays))}")
    y_true, y_prob = arrays[key], arrays[prob_key]
    got = f"got {key!r} of shape {y_true.shape} and {prob_key!r} of shape {y_prob.shape}"
    if y_true.ndim != 1 or y_prob.ndim not in {1, 2} or len(y_true) == 0:
        is_one_hot = y_true.ndim == 2 and y_true.shape == y_prob.shape and np.isin(y_true, (0, 1)).all()
        source.refuse(
            "labels must have shape (n_samples,) and probabilities (n_samples,) or (n_samples, n_classes), "
            f"{got}{'; the labels seem to be one-hot: save their argmax(axis=1)' if is_one_hot else ''}"
        )
    if len(y_true) != len(y_prob):
        source.refuse(f"labels and probabilities must have the same length, {got}")
    rows = {name: array for name, array in arrays.items() if array.ndim == 1 and len(array) == len(y_true)}
    table = Table(source.name, pd.DataFrame(rows), reading=source.reading)
    y_true = labels(table, key)
    if y_prob.dtype.kind == "f" and y_prob.size:  # other types are refused with the arguments of the tests
        refuse_outside(y_prob, table, (prob_key,))
    return _matched(table, asked, key, (prob_key,), y_true=y_true, y_prob=y_prob, aside=arrays)


def _guess_key(source: Source, arrays: dict[str, NDArray[Any]], known: Sequence[str], argument: str) -> str:
    by_name = [key for word in known for key in arrays if key.lower() == word]
    by_shape = [key for key, array in arrays.items() if array.ndim == (1 if argument == "label" else 2)]
    if not by_name and len(by_shape) != 1:
        found = shortened(list(arrays)) or "(none)"
        source.refuse(f"cannot choose among the arrays {found}; name one with `{argument}`")
    return (by_name or by_shape)[0]
