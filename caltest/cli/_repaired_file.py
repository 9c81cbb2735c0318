"""The file that ``caltest repair`` writes: repaired probabilities, and all other columns of the file that was read."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from caltest.results._atomic_file import atomic_file, require_writable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.predictions import PredictionFile
    from caltest.recalibration import RecalibrationStudy

ENDINGS = (".csv", ".tsv", ".parquet", ".npz")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def require_places(paths: Collection[Path]) -> None:
    """Refuse, before the work begins, what could not be written after it.

    Raises
    ------
    OSError
        If nothing can be written in one of the places.
    ValueError
        If the library of a format is not installed.
    """
    for path in paths:
        require_writable(path)
        if path.suffix == ".parquet" and find_spec("pyarrow") is None:
            msg = f"writing {path} needs pyarrow: pip install pyarrow"
            raise ValueError(msg)


def repaired_columns(
    data: PredictionFile, rest: Mapping[str, NDArray[Any]], study: RecalibrationStudy, method: str
) -> dict[str, NDArray[Any]]:
    """Return labels, folds, probabilities that were held out, and all other columns, by their names.

    Probabilities that stood in one array, or as a list in each row, are one array ``(n_samples, n_classes)`` here.
    """
    import numpy as np

    prob = study.predict(method)
    fold = np.empty(len(prob), dtype=object)
    for name, rows in zip(study.fold_names, study.held_out, strict=True):
        fold[rows] = name
    taken = {data.label, *data.prob, *rest}
    of_folds = "fold"
    for name in ("repair_fold", *(f"repair_fold_{k}" for k in range(2, 3 + len(taken)))):
        of_folds = name if of_folds in taken else of_folds
    if data.y_prob.ndim == 1:
        columns = {data.prob[0]: prob[:, 1]}
    elif len(data.prob) == 1:
        columns = {data.prob[0]: prob}
    else:
        columns = {name: prob[:, k] for k, name in enumerate(data.columns.values())}
    return {data.label: data.y_true, of_folds: fold, **columns, **rest}


def write_columns(path: Path, columns: Mapping[str, NDArray[Any]], labels: Collection[Any]) -> Path:
    """Write columns to a file, and return it; one in the folder for temporary files if it cannot be written.

    Finished work is not lost because a disk is full or a folder is gone: then the exception has a note that says where
    the columns are.
    """
    try:
        with atomic_file(path) as stream:
            _write(stream, path.suffix, columns, labels)
    except Exception as error:  # what a failed write raises is up to libraries
        saved = Path(tempfile.mkdtemp(prefix="caltest-repair-")) / f"{path.stem}.csv"
        with atomic_file(saved) as stream:
            _write(stream, ".csv", columns, labels)
        reason = getattr(error, "strerror", None) or error
        msg = f"{path} could not be written ({reason}); the repaired predictions are in {saved}"
        raise ValueError(msg) from error
    return path


def _write(stream: BinaryIO, ending: str, columns: Mapping[str, NDArray[Any]], labels: Collection[Any]) -> None:
    import numpy as np
    import pandas as pd

    if ending == ".npz":
        arrays: dict[str, Any] = {name: _without_objects(values) for name, values in columns.items()}
        np.savez(stream, allow_pickle=False, **arrays)
        return
    table: dict[str, Any] = {}
    for name, values in columns.items():
        table |= dict(_as_columns(name, values, labels, columns))
    frame = pd.DataFrame(table)
    if ending == ".parquet":
        frame.to_parquet(stream, index=False)
    else:
        frame.to_csv(stream, index=False, sep=_SEPARATORS[ending])


def _as_columns(
    name: str, values: NDArray[Any], labels: Collection[Any], taken: Collection[str]
) -> list[tuple[str, NDArray[Any]]]:
    """Return the columns of an array: a table of probabilities has a column ``p_LABEL`` for each label."""
    if values.ndim == 1:
        return [(name, values)]
    flat = values.reshape(len(values), -1)
    ends = list(map(str, labels)) if flat.shape[1] == len(labels) else [str(k) for k in range(flat.shape[1])]
    stem = "p" if flat.shape[1] == len(labels) else name
    while any(f"{stem}_{end}" in taken for end in ends):
        stem = f"{stem}_{name}"
    return [(f"{stem}_{end}", flat[:, k]) for k, end in enumerate(ends)]


def _without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is read without running code: objects as texts, missing ones as empty texts."""
    if values.dtype != object:
        return values
    import numpy as np
    import pandas as pd

    texts = pd.Series(values.ravel()).map(str, na_action="ignore").fillna("")
    return texts.to_numpy().astype(np.str_).reshape(values.shape)
