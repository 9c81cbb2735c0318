"""Arrays and names of columns out of frames and series of pandas, polars, Arrow and what else speaks its interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.inputs._refusals import refuse


def is_frame(values: Any) -> bool:
    """Return whether values are a frame: columns with names."""
    return _names(values) is not None


def names_of(values: Any) -> list[Any]:
    """Return the names of the columns of a frame, or of a series that has one; none for anything else."""
    names = _names(values)
    if names is not None:
        return names
    name = getattr(values, "name", None) if hasattr(values, "to_numpy") else None
    return [] if name is None or name == "" else [name]


def from_arrow(values: Any) -> Any:
    """Return a table of pyarrow for an object that only has Arrow's interface, such as a relation of DuckDB.

    Frames that are computed later are computed; anything else is returned as it is.
    """
    if hasattr(values, "collect") and hasattr(values, "lazy"):  # a LazyFrame of polars
        values = values.collect()
    if hasattr(values, "compute") and hasattr(values, "npartitions"):  # a frame of Dask
        values = values.compute()
    if hasattr(values, "to_numpy") or hasattr(values, "column_names") or not hasattr(values, "__arrow_c_stream__"):
        return values
    try:
        import pyarrow as pa
    except ImportError:
        refuse(f"reading {type(values).__name__} by Arrow's interface needs pyarrow: pip install pyarrow")
    try:
        return pa.table(values)
    except (pa.ArrowInvalid, TypeError, ValueError):  # a single column
        return pa.chunked_array(values)


def from_tensor(values: Any) -> Any:
    """Return a tensor of PyTorch, perhaps on a GPU or with a gradient, as an array; other values as they are."""
    if not hasattr(values, "detach"):
        return values
    found = values.detach()
    found = found.cpu() if hasattr(found, "cpu") else found
    try:
        return np.asarray(found.float() if str(getattr(found, "dtype", "")) == "torch.bfloat16" else found)
    except (TypeError, ValueError, RuntimeError):  # such as a sparse one: refused later
        return found


def read_columns(values: Any, order: Sequence[int] | None = None) -> Any:
    """Return predictions as an array, columns in the given order; what is no frame is returned as it is."""
    names = _names(values)
    if names is None:
        return _plain(values)
    whole = order is None or list(order) == list(range(len(names)))
    if hasattr(values, "iloc"):
        return (values if whole else values.iloc[:, list(order or ())]).to_numpy()
    chosen = range(len(names)) if order is None else order
    if hasattr(values, "column_names"):
        columns = [_arrow_column(values.column(k)) for k in chosen]
        return np.column_stack(columns) if columns else np.empty((0, 0))
    if values_of_record := getattr(getattr(values, "dtype", None), "names", None):
        return np.column_stack([values[values_of_record[k]] for k in chosen])
    return (values if whole else values.select([names[k] for k in chosen])).to_numpy()


def read_observations(values: Any, name: str) -> Any:
    """Return a value for each observation as an array where it is a frame, a series or an array of one column.

    Lists and arrays of one dimension are returned as they are.

    Raises
    ------
    ValueError
        If a frame has several columns, or a value is missing in a frame or series.
    """
    values = from_arrow(values)
    names = _names(values)
    if names is not None and len(names) != 1:
        msg = f"`{name}` must be one column, got a frame of {len(names)}: pass one of them, such as frame[{names[:1]}]."
        raise ValueError(msg) if names else ValueError(f"`{name}` must be one column, got a frame without columns.")
    if names is not None:
        values = values.iloc[:, 0] if hasattr(values, "iloc") else _first_column(values, names)
    array = _plain(values)
    if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    return array


def index_of(values: Any) -> Any:
    """Return the index of a frame or series of pandas; None for anything else."""
    index = getattr(values, "index", None)
    return index if hasattr(values, "iloc") and hasattr(index, "equals") else None


def refuse_other_indexes(given: Mapping[str, Any]) -> None:
    """Raise ValueError if frames and series of pandas, by the names of their arguments, have different indexes."""
    indexed = {name: index for name, values in given.items() if (index := index_of(values)) is not None}
    first: Any = next(iter(indexed), None)
    for name, index in indexed.items():
        one = indexed[first]
        if len(index) != len(one) or index.equals(one) or index.tolist() == one.tolist():
            continue  # lengths are compared later, with arrays
        what = "the same labels in another order" if len(index.intersection(one)) == len(index) else "other labels"
        pairs = zip(one.tolist(), index.tolist(), strict=True)
        row, a, b = next((row, a, b) for row, (a, b) in enumerate(pairs) if a is not b and a != b)
        refuse(
            f"`{first}` and `{name}` must have the same index, got {what} (row {row}: {a!r}, {b!r}). "
            f"Observations are matched by position: take `{name}.loc[{first}.index]` if the indexes name the "
            f"observations, or `{name}.to_numpy()` if the rows are in the same order."
        )


def _names(values: Any) -> list[Any] | None:
    """Return the names of the columns of a frame; None for anything else."""
    if isinstance(values, np.ndarray):
        return None if values.dtype.names is None else list(values.dtype.names)
    if hasattr(values, "column_names"):  # pyarrow
        return list(values.column_names)
    return list(values.columns) if hasattr(values, "columns") and hasattr(values, "to_numpy") else None


def _first_column(values: Any, names: list[Any]) -> Any:
    return values.column(0) if hasattr(values, "column_names") else values[names[0]]


def _arrow_column(column: Any) -> NDArray[Any]:
    """Return a column of an Arrow table as an array; what is missing becomes NaN."""
    return np.asarray(column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False))


def _plain(values: Any) -> Any:
    """Return a series or a column as an array; other objects as they are."""
    if hasattr(values, "chunks") and hasattr(values, "to_pylist"):  # a column of pyarrow, perhaps of a dictionary
        return _arrow_column(values) if values.null_count == 0 and _is_number(values) else np.array(values.to_pylist())
    return np.array(values.to_pylist()) if hasattr(values, "to_pylist") else from_tensor(values)


def _is_number(values: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(values.type) or kinds.is_floating(values.type) or kinds.is_boolean(values.type))
