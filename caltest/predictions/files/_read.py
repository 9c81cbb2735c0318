"""Reading predictions and labels from files, with the columns that were taken for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.files._columns import PROB_NAMES, Columns, guess_prob, named_as_labels
from caltest.predictions.files._formats import read_arrays, read_table
from caltest.predictions.files._layouts import arranged
from caltest.predictions.files._prediction_file import Asked, PredictionFile, from_arrays, from_table, guess_key
from caltest.predictions.files._source import Source, UndecidedError, find_source, said_by
from caltest.predictions.files._table import Table
from caltest.predictions.files._text import encoding_of, marks_of, read_text
from caltest.predictions.files._values import INPUTS, normalised, of_input, probabilities, refuse_outside, summed
from caltest.predictions.inputs._refusals import refuse, refuse_if, require, shortened
from caltest.predictions.inputs._validation import validate_choice


def read_predictions(
    path: str | Path | BinaryIO,
    label: str | None = None,
    prob: Sequence[str] | None = None,
    folds: str | None = None,
    *,
    groups: str | None = None,
    sample_weight: str | None = None,
    time: str | None = None,
    lead: str | None = None,
    subgroup: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    event: Any = None,
    input: str = "probabilities",  # noqa: A002
    verbal: Mapping[str, float] | None = None,
    drop_missing: bool = False,
    where: str | None = None,
    normalise: bool = False,
    file_format: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
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
    folds, groups, sample_weight, time, lead : str, optional
        Names of the columns with the cross-validation fold of each observation, with its group, such as its patient,
        with its weight, with the time when its prediction was made, and with how long after that its label is known.
        They are not guessed.
    subgroup : sequence of str, optional
        Names of columns whose values are subgroups, such as its site and its age.
    classes : sequence, optional
        The label of each probability column, in their order; of one column, the label of the event alone:
        ``["yes"]``. By default labels are matched to the names of the columns.
    class_names : sequence of str, optional
        Names of the labels 0, 1, ..., where labels are numbers and the columns have names.
    event : label, optional
        Of two labels the one whose probability the only probability column is. With several columns the class that is
        judged against all others.
    input : {"probabilities", "logits", "percent"}
        What the numbers of the probability columns are. Logits become probabilities by the softmax function, those of
        one column by the logistic function; percentages, also texts such as "3.2 %", are divided by 100.
    verbal : mapping of str to float, optional
        The probabilities that texts stand for, such as ``{"very likely": 0.9}``.
    drop_missing : bool
        Leave out rows in which a value that is needed is missing. A warning says how many and of which column, and
        whether their predictions differ from the others.
    where : str, optional
        Which rows to take, as an expression of pandas such as ``"split == 'test'"``.
    normalise : bool
        Divide each row of probabilities by its sum, where rounding left it up to 0.1 from 1. A warning says the
        largest change.
    file_format : str, optional
        "csv", "tsv", "json", "jsonl", "parquet", "arrow", "excel", "npz" or "npy", where the ending does not say it.
    sep, decimal : str, optional
        Separator of values and decimal mark, "." or ",", for CSV and TSV files. By default the separator is the only
        mark that divides all of the first lines alike, and the decimal mark a comma where numbers are written so.
    header : {"infer", 0, None}
        Whether the first line holds names (0) or data (None). By default it must look like names, unless it holds
        nothing but numbers with fractions. For CSV, TSV and Excel files.
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

    See Also
    --------
    caltest.calibration_test : What its labels and predictions are for.

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
    validate_choice(input, "input", INPUTS)
    others = {"folds": folds, "groups": groups, "sample_weight": sample_weight, "time": time, "lead": lead}
    parts = tuple(subgroup or ())
    asked = Asked(
        label, prob, classes, class_names, event, input, verbal, drop_missing, where, others, parts, normalise
    )
    marks: dict[str, Any] = {"sep": sep, "decimal": decimal, "header": header, "encoding": encoding}
    source = find_source(path, file_format)
    _check_options(source, **marks)
    return _decided(source, asked, marks)


def _decided(source: Source, asked: Asked, marks: dict[str, Any]) -> PredictionFile:
    """Return what a file holds; refuse it with all that is undecided, and the options with which it would be read."""
    try:
        return _read(source, asked, marks)
    except UndecidedError as error:
        said, options = [str(error)], dict(error.options)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _read(source, *_with_options(asked, marks, options))
            except UndecidedError as error:
                if set(error.options) <= set(options):
                    refuse("; and ".join([*said, _without_name(source, error)]))
                said.append(_without_name(source, error))
                options |= error.options
            except ValueError as error:
                refuse("; and ".join([*said, _without_name(source, error)]))
            else:
                raise UndecidedError("; and ".join(said), options) from None


def _without_name(source: Source, error: ValueError) -> str:
    return str(error).removeprefix(f"{source.name}: ")


def _with_options(asked: Asked, marks: dict[str, Any], options: dict[str, Any]) -> tuple[Asked, dict[str, Any]]:
    of_marks = {name: value for name, value in options.items() if name in marks}
    return replace(asked, **{name: value for name, value in options.items() if name not in marks}), marks | of_marks


def _read(source: Source, asked: Asked, marks: dict[str, Any]) -> PredictionFile:
    place: Callable[[int], str] = "in row {}".format
    if source.file_format == "npz":
        found = from_arrays(source, asked)
    else:
        table = _chosen_rows(_table_of(source, **marks), asked.where)
        if asked.label is None and asked.prob is None:
            table = arranged(table)
        found, place = from_table(table, asked), table.place
    sums = normalised if asked.normalise else summed
    return replace(found, y_prob=sums(source, found.y_prob, place))


def _chosen_rows(table: Table, where: str | None) -> Table:
    """Return the rows for which an expression holds."""
    if where is None:
        return table
    refuse_if("@" in where or "__" in where, f"`where` must not hold '@' or '__', got {where!r}.")
    try:
        holds = table.frame.eval(where, engine="python", local_dict={}, global_dict={})
    except Exception as error:  # what a wrong expression raises is up to pandas
        table.refuse(
            f"`where` must be a condition on columns, such as \"split == 'test'\", got {where!r}: {said_by(error)}; "
            f"the columns are {shortened(list(table.frame.columns))}"
        )
    is_condition = getattr(getattr(holds, "dtype", None), "kind", "") == "b" and len(holds) == len(table.frame)
    table.refuse_if(not is_condition, f"`where` must be true or false for every row, got {where!r}")
    table.refuse_if(not holds.any(), f"no row has {where}")
    said = f"{int(holds.sum()):,} of {len(holds):,}, where {where}"
    return table.rows(np.flatnonzero(holds.to_numpy())).said("rows", said)


def _table_of(
    source: Source,
    sep: str | None,
    decimal: str | None,
    header: Any,
    encoding: str | None,
    *,
    dtype: type | None = None,
) -> Table:
    if source.file_format in {"csv", "tsv"}:
        return read_text(source, sep, decimal, header, encoding, dtype=dtype)
    return read_table(source, header)


def read_columns(
    path: str | Path | BinaryIO,
    n_samples: int | None,
    *,
    as_text: bool,
    rows: Integers | None = None,
    file_format: str | None = None,
    **reading: Any,
) -> dict[str, NDArray[Any]]:
    """Return all columns of a file, by their names and as they stand there.

    Of an NPZ file the arrays are returned that have a row for each observation.

    Parameters
    ----------
    path : str, Path or binary file object
        As in `read_predictions`.
    n_samples : int or None
        Number of observations; None where any array of an NPZ file is wanted.
    as_text : bool
        Whether values of text files stay texts, so that an id keeps its leading zeros.
    rows : array of int, optional
        The rows that were taken, as `PredictionFile.rows`.
    file_format : str, optional
        As in `read_predictions`.
    **reading
        Separator, decimal mark, header and encoding, as in `read_predictions`.
    """
    source = find_source(path, file_format)
    if source.file_format == "npz":
        arrays = read_arrays(source)
        return {name: array for name, array in arrays.items() if n_samples is None or array.shape[:1] == (n_samples,)}
    frame = _table_of(source, **reading, dtype=str if as_text else None).frame
    return {name: frame[name].to_numpy()[slice(None) if rows is None else rows] for name in frame.columns}


def decimal_mark(path: str | Path | BinaryIO, *, file_format: str | None = None, **reading: Any) -> tuple[str, str]:
    """Return separator and decimal mark of a file, a comma and a point where it is no text; as in `read_columns`."""
    source = find_source(path, file_format)
    if source.file_format not in {"csv", "tsv"}:
        return ",", "."
    return marks_of(source, reading["sep"], reading["decimal"], encoding_of(source, reading["encoding"])[0])


def read_probabilities(
    path: str | Path | BinaryIO,
    prob: Sequence[str] | None,
    classes: Sequence[Any],
    advice: str,
    *,
    input: str = "probabilities",  # noqa: A002
    verbal: Mapping[str, float] | None = None,
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
    input, verbal, normalise
        As in `read_predictions`.
    file_format, **reading
        As in `read_columns`.
    """
    source = find_source(path, file_format)
    _check_options(source, **reading)
    if source.file_format == "npz":
        import pandas as pd

        arrays = read_arrays(source)
        columns = tuple(prob) if prob else (guess_key(source, arrays, PROB_NAMES, "prob"),)
        table = Table(source.name, pd.DataFrame())
        _refuse_unknown(source, columns, list(arrays), advice)
        source.refuse_if(len(columns) > 1, f"`prob` must name one array of an NPZ file, got {', '.join(columns)}")
        values = arrays[columns[0]]
        if values.ndim not in {1, 2} or values.dtype.kind not in "fiub" or not len(values):
            source.refuse(f"the array {columns[0]!r} of shape {values.shape} and type {values.dtype} is no probability")
        values = of_input(values.reshape(len(values), -1), input, columns[0])
        refuse_outside(values, table, columns)
    else:
        table = _table_of(source, **reading)
        names = list(table.frame.columns)
        label = next(iter(named_as_labels(names) if len(names) > 1 else []), "")  # it is not looked at
        columns = tuple(prob) if prob else guess_prob(table, label, np.array(classes, dtype=object), verbal)
        _refuse_unknown(source, columns, list(table.frame.columns), advice)
        values = probabilities(table, columns, input, verbal)
    values = normalised(source, values, table.place) if normalise else values  # else checked beside what they are for
    named = table.named and len(columns) == values.shape[1]
    return Columns(source.name, columns, values.shape[1], named), values


def _refuse_unknown(source: Source, prob: Sequence[str], known: list[str], advice: str) -> None:
    absent = next((name for name in prob if name not in known), None)
    if absent is not None:
        source.refuse(f"there is no column {absent!r}; the columns are {shortened(known)}; {advice}")


def _check_options(source: Source, sep: str | None, decimal: str | None, header: Any, encoding: str | None) -> None:
    """Raise ValueError if an option has no meaning for the format."""
    is_text = source.file_format in {"csv", "tsv"}
    given = {
        "sep": sep is not None and not is_text,
        "decimal": decimal not in {None, "."} and not is_text,
        "encoding": encoding is not None and not is_text,
        "header": header != "infer" and not is_text and source.file_format != "excel",
    }
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        source.refuse(f"`{wrong}` is for CSV and TSV files, and the format is {source.reading['format']}")
