"""States of the partitions of Spark, Ray or any other engine that maps Arrow batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from caltest.predictions._lens import Lens
from caltest.streaming.scans._fragments import Reading
from caltest.streaming.states._redrawn_cells import RedrawnCells


def arrow_states(
    label: str,
    prob: Sequence[str],
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    micro_cells: int | RedrawnCells = 4096,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function from record batches to one record batch with their state, for an engine that maps partitions.

    In Spark it is passed to ``DataFrame.mapInArrow`` with the schema ``"state binary"``. The states are added by the
    caller, in any order, with `CalibrationState.from_bytes`. Every partition must be mapped once: an engine that
    repeats a lost partition does so, and one that runs copies of slow ones keeps one of their results.

    Parameters
    ----------
    label : str
        Name of the label column.
    prob : sequence of str
        Names of the probability columns, one for each class or that of the event alone. Nothing is guessed, because
        the partitions must agree.
    classes : sequence, optional
        The label of each class; of a single column the label of the other outcome first. Needed unless labels are
        class indices.
    lens : lens, optional
        What to look at, as in `CalibrationState`.
    micro_cells : int or RedrawnCells
        Number of micro-cells, or the cells for a lens with more than two outcomes, as in `CalibrationState`. Outcomes
        are drawn by a hash of the first batch of the partition, which has no name. Partitions that begin with the same
        batch can then not be added: the second one might be a copy.

    Returns
    -------
    callable
        A function from an iterable of ``pyarrow.RecordBatch`` to an iterator over one of them, with the single value
        of a binary column ``state``; over none if the partition is empty. It can be pickled.

    Raises
    ------
    TypeError, ValueError
        If the settings are refused by `CalibrationState`, or there is no probability column. The function raises
        ValueError for values that `CalibrationState.update` refuses, with the number of the row in the partition.

    See Also
    --------
    scan : A state of files or batches, also on a Dask cluster.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from caltest.streaming import CalibrationState
    >>> batch = pa.record_batch({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]})
    >>> [found] = arrow_states("y", ["p"])([batch, batch])
    >>> CalibrationState.from_bytes(found["state"][0].as_py())
    CalibrationState(n_classes=2, lens=Canonical(), micro_cells=4096), 6 observations
    """
    if isinstance(prob, str) or not prob:
        msg = f"`prob` must be a sequence of column names such as ['p'], got {prob!r}."
        raise TypeError(msg) if isinstance(prob, str) else ValueError(msg)
    reading = Reading(label, tuple(prob), classes, max(len(prob), 2), lens, micro_cells)
    reading.empty()
    return _Mapper(reading)


class _Mapper:
    """A function that can be pickled."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        state, source = self._reading.empty(), ""
        for batch in batches:
            if batch.num_rows:
                try:
                    source = source or self._hash(batch)
                    self._reading.add(state, batch, source)
                except (ValueError, KeyError) as error:
                    msg = f"batch that begins at row {state.n_samples} of the partition: {error}"
                    raise ValueError(msg) from error
        if state.n_samples:
            yield pa.record_batch({"state": pa.array([state.to_bytes()], type=pa.binary())})

    def _hash(self, batch: Any) -> str:
        """Return a name for the partition that begins with a batch."""
        digest = hashlib.sha256()
        for name in (self._reading.label, *self._reading.prob):
            digest.update(repr(batch.column(name).to_pylist()).encode())
        return digest.hexdigest()
