"""Reading predictions and labels from files, with the columns that were taken for labels and probabilities."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._ids import names_an_id
from caltest.results._warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

_BROKEN = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
_LABEL_NAMES = ("label", "labels", "y_true", "y", "target", "true", "truth", "class", "outcome", "actual")
_PROB_NAMES = ("y_prob", "prob", "probs", "proba", "probabilities", "softmax", "predictions", "scores", "p")
_FOLD_WORDS = {"fold", "folds", "split"}
_PREFIXES = ("probability_", "proba_", "prob_", "p_", "y_prob_")


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
    folds, groups, sample_weight : array of shape (n_samples,) or None
        Cross-validation folds, groups and weights of the observations, from the columns that were named for them.

    Examples
    --------
    >>> import numpy as np
    >>> y_true, y_prob = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75])
    >>> file = PredictionFile(y_true, y_prob, classes=None, label="y", label_guessed=True, prob=("p",))
    >>> file.label, file.prob
    ('y', ('p',))
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


def read_predictions(
    path: str | Path,
    label: str | None = None,
    prob: Sequence[str] | None = None,
    folds: str | None = None,
    *,
    groups: str | None = None,
    sample_weight: str | None = None,
) -> PredictionFile:
    r"""Read predictions and labels from a CSV, TSV, Parquet, NPZ or NPY file.

    Parameters
    ----------
    path : str or Path
        The file; its suffix decides how it is read.
    label, prob : str and sequence of str, optional
        Names of the label column and of the probability columns (keys in an NPZ file). By default they are guessed
        from the names and types of the columns.
    folds, groups, sample_weight : str, optional
        Names of the columns with the cross-validation fold of each observation, with its group, such as its patient,
        and with its weight. They are not guessed.

    Returns
    -------
    PredictionFile
        Labels, probabilities and classes as the public functions take them, and the names of the columns.

    Raises
    ------
    TypeError
        If ``path`` is no path, or ``prob`` is a text instead of a sequence of texts.
    ValueError
        If the file does not exist or cannot be read; if a named column is missing; if the columns cannot be guessed.

    Warns
    -----
    CalibrationWarning
        If a column that was not named has the name of an id, such as "patient_id", and values that repeat: observations
        of one patient may depend on each other.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     _ = path.write_text("label,cat,dog\ncat,0.75,0.25\ndog,0.5,0.5\n")
    ...     found = read_predictions(path)
    >>> found.label, found.prob, found.classes
    ('label', ('cat', 'dog'), ['cat', 'dog'])
    """
    if isinstance(prob, str):
        msg = f"`prob` must be a sequence of names, got {prob!r}."
        raise TypeError(msg)
    path, others = Path(path), {"folds": folds, "groups": groups, "sample_weight": sample_weight}
    if not path.is_file():
        msg = f"no such file: {path}"
        raise ValueError(msg)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _from_arrays(path, label, prob, others)
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet, ".pq": _read_parquet, ".npy": _read_npy}
    if suffix not in readers:
        msg = f"{path}: expected a file ending in .csv, .tsv, .parquet, .npz or .npy, got {suffix or 'no ending'!r}"
        raise ValueError(msg)
    try:
        frame = readers[suffix](path)
    except ImportError:
        msg = f"{path}: reading Parquet needs pyarrow: pip install pyarrow"
        raise ValueError(msg) from None
    except _BROKEN as error:
        msg = f"{path}: cannot be read: {error}"
        raise ValueError(msg) from None
    return _from_frame(path, frame, label, prob, others)


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


def _read_npy(path: Path) -> pd.DataFrame:
    import pandas as pd

    array = np.load(path)
    if array.dtype.names:
        return pd.DataFrame({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        msg = f"expected a table of two dimensions, got shape {array.shape}"
        raise ValueError(msg)
    columns = {str(k): array[:, k] for k in range(array.shape[1])}
    whole = {name: np.all(values == np.rint(values)) for name, values in columns.items()}
    return pd.DataFrame({name: v.astype(np.int64) if whole[name] else v for name, v in columns.items()})


def _from_frame(
    path: Path, frame: pd.DataFrame, label: str | None, prob: Sequence[str] | None, others: dict[str, str | None]
) -> PredictionFile:
    frame = frame.rename(columns=str)
    names, named = list(frame.columns), [name for name in others.values() if name]
    missing = [name for name in (*([label] if label else []), *(prob or []), *named) if name not in names]
    if missing:
        msg = f"{path}: no column {missing[0]!r}; the columns are {', '.join(names)}"
        raise ValueError(msg)
    rest = frame.drop(columns=named)
    chosen = label or _guess_label(path, rest, prob)
    columns = tuple(prob) if prob else _guess_prob(path, rest, chosen)
    _warn_of_parts(path, rest.drop(columns=[chosen, *columns], errors="ignore"), others)
    y_true = frame[chosen].to_numpy()
    values = frame[list(columns)].to_numpy()
    return PredictionFile(
        y_true,
        values[:, 0] if len(columns) == 1 else values,
        _classes(y_true, columns),
        chosen,
        label is None,
        columns,
        **{argument: frame[name].to_numpy() for argument, name in others.items() if name},
    )


def _warn_of_parts(path: Path, frame: pd.DataFrame, others: dict[str, str | None]) -> None:
    """Warn if a column that is not used has the name of an id or of a fold, and values that repeat."""
    for name in frame.columns:
        words, n_different = set(re.split(r"[^a-z]+", name.lower())), frame[name].nunique()
        if not 1 < n_different < len(frame):
            continue
        found = f"{path}: the column {name!r} has {n_different} different values in {len(frame)} rows."
        if words & _FOLD_WORDS and not others["folds"]:
            warn_user(f"{found} If it is the fold of a cross-validation, name it with `folds`: pooled folds mislead.")
        elif names_an_id(name) and not others["groups"]:
            warn_user(
                f"{found} If observations with the same value may depend on each other, name it with `groups`, "
                "otherwise p-values are too small."
            )


def _guess_label(path: Path, frame: pd.DataFrame, prob: Sequence[str] | None) -> str:
    free = [name for name in frame.columns if name not in (prob or ())]
    by_name = [name for known in _LABEL_NAMES for name in free if name.lower() == known]
    by_type = [name for name in free if frame[name].dtype.kind != "f"]
    if by_name:
        return by_name[0]
    if len(by_type) == 1:
        return by_type[0]
    msg = f"{path}: cannot tell the label column among {', '.join(frame.columns)}; name it with `label`"
    raise ValueError(msg)


def _guess_prob(path: Path, frame: pd.DataFrame, label: str) -> tuple[str, ...]:
    floats = [name for name in frame.columns if name != label and frame[name].dtype.kind == "f"]
    prefixed = [name for name in floats if name.lower().startswith(_PREFIXES)]
    if not floats:
        msg = f"{path}: no column of probabilities (floats) beside the label {label!r}; name them with `prob`"
        raise ValueError(msg)
    return tuple(prefixed or floats)


def _classes(y_true: NDArray[Any], columns: Sequence[str]) -> list[Any] | None:
    """Return the labels of the columns by their names, where the labels are not class indices."""
    bare = [_without_prefix(name) for name in columns]
    numbered = [re.fullmatch(r"[^0-9]*([0-9]+)", name) for name in columns]
    if all(numbered):  # p0, class_0, y0
        bare = [match[1] for match in numbered if match]
    if y_true.dtype.kind in "iu":
        numbers = [int(name) for name in bare if name.isdecimal()]
        return numbers if len(numbers) == len(bare) > 1 and set(y_true.tolist()) <= set(numbers) else None
    if y_true.dtype.kind in "bf":
        return None
    seen = sorted({str(value) for value in y_true.tolist()})
    for names in (list(columns), bare):
        if len(names) > 1 and set(seen) & set(names):
            return list(names)
        if len(names) == 1 and names[0] in seen and len(seen) == 2:
            return [value for value in seen if value != names[0]] + names
    return None


def _without_prefix(name: str) -> str:
    return next((name[len(prefix) :] for prefix in _PREFIXES if name.lower().startswith(prefix)), name)


def _from_arrays(
    path: Path, label: str | None, prob: Sequence[str] | None, others: dict[str, str | None]
) -> PredictionFile:
    try:
        with path.open("rb") as stream, np.load(stream) as data:
            arrays = {name: data[name] for name in data.files}
    except _BROKEN as error:
        msg = f"{path}: cannot be read: {error}"
        raise ValueError(msg) from None
    named = {argument: name for argument, name in others.items() if name}
    free = {name: array for name, array in arrays.items() if name not in named.values()}
    key = label or _guess_key(path, free, _LABEL_NAMES, 1, "label")
    if prob is not None and len(prob) != 1:
        msg = f"{path}: `prob` must name one array of an NPZ file, got {', '.join(prob)}"
        raise ValueError(msg)
    rest = {name: array for name, array in free.items() if name != key}
    prob_key = prob[0] if prob else _guess_key(path, rest, _PROB_NAMES, 2, "prob")
    for name in (key, prob_key, *named.values()):
        if name not in arrays:
            msg = f"{path}: no array {name!r}; the arrays are {', '.join(arrays)}"
            raise ValueError(msg)
    given = {argument: arrays[name] for argument, name in named.items()}
    return PredictionFile(arrays[key], arrays[prob_key], None, key, label is None, (prob_key,), **given)


def _guess_key(
    path: Path, arrays: dict[str, NDArray[Any]], known: Sequence[str], n_dimensions: int, argument: str
) -> str:
    by_name = [name for word in known for name in arrays if name.lower() == word]
    by_shape = [name for name, array in arrays.items() if array.ndim == n_dimensions]
    if by_name:
        return by_name[0]
    if len(by_shape) == 1:
        return by_shape[0]
    msg = f"{path}: cannot choose among the arrays {', '.join(arrays)}; name one with `{argument}`"
    raise ValueError(msg)
