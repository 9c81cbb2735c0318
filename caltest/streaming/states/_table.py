"""The table of a state: integer sums that batches are added to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._micro_cells import add_rows, carry
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import Lens
from caltest.streaming.states._answers import TwoOutcomes
from caltest.streaming.states._micro_cells import MicroCells, Sums
from caltest.streaming.states._state_file import Declared, is_counts, is_increasing, is_low, require, require_room
from caltest.streaming.states._values import Streamed

_BLOCK = 2**14  # rows at a time, which stay in the cache
_LOG_UNIT = 2.0**-44
_BITS, _LOG_BITS = 26, 27  # of the lower part of a sum


def _are_possible(high: Integers, count: Integers) -> bool:
    """Return whether the upper parts are those of sums of distances below 2^52 units."""
    return bool((high >= 0).all() and (high >> _BITS <= count[:, None]).all())


class MicroTable:
    """Sums over micro-cells as integers; see `add_rows` for their units.

    Parameters
    ----------
    cells : MicroCells
        The micro-cells.
    """

    def __init__(self, cells: MicroCells) -> None:
        self._cells = cells
        self._narrow = np.zeros((2 * cells.n_cells, 4), dtype=np.int64)
        self._wide = np.zeros((2 * cells.n_cells, 7), dtype=np.int64)
        self._logs = np.zeros((2, 2), dtype=np.int64)
        self.n_samples = 0

    def add(self, event: NDArray[Any], outcome: NDArray[Any], source: str, first_row: int | None) -> None:
        """Add outcomes 0 and 1 and probabilities of the event in [0, 1], ``(n_rows,)``, numbers of any type.

        Which rows they are does not matter, as nothing is drawn.
        """
        require_room(self.n_samples + len(event))
        size = min(_BLOCK, len(event))
        prob, happened = np.empty(size), np.empty(size, dtype=np.uint8)
        for start in range(0, len(event), size):
            n = min(size, len(event) - start)
            p, y = prob[:n], happened[:n]
            p[:] = event[start : start + n]
            y[:] = outcome[start : start + n]
            add_rows(p, y, self._cells.power, self._narrow, self._wide, self._logs)
        self.n_samples += len(event)

    def merge(self, other: MicroTable) -> None:
        """Add the sums of another table of the same micro-cells."""
        require_room(self.n_samples + other.n_samples)
        other._settle()
        self._wide += other._wide
        self._logs += other._logs
        self.n_samples += other.n_samples

    def arrays(self) -> dict[str, Integers]:
        """Return the sums by name, without empty micro-cells."""
        self._settle()
        row = np.flatnonzero(self._wide[:, 0])
        return {"row": row, "sums": self._wide[row], "logs": self._logs}

    def declared(self) -> dict[str, Declared]:
        """Return what the arrays of a table of these micro-cells can be."""
        n = 2 * self._cells.n_cells
        return {"row": Declared((None,), most=n), "sums": Declared((None, 7), most=n), "logs": Declared((2, 2))}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the sums that `arrays` returned; refuse what cannot be sums."""
        row, sums, logs = arrays["row"], arrays["sums"], arrays["logs"]
        count = sums[:, 0]
        require(len(row) == len(sums) and is_increasing(row, 2 * self._cells.n_cells), "row", "numbers of micro-cells")
        require(is_counts(count, least=1), "sums", "numbers of observations")
        require(is_low(sums[:, 2::2], _BITS) and _are_possible(sums[:, 1::2], count), "sums", "sums of distances")
        require(is_low(logs[:, 1], _LOG_BITS) and bool((logs[:, 0] >= 0).all()), "logs", "sums of logarithms")
        self._wide[arrays["row"]] = arrays["sums"]
        self._logs[:] = arrays["logs"]
        self.n_samples = int(arrays["sums"][:, 0].sum())

    def answers(self, lens: Lens) -> TwoOutcomes:
        """Return what the sums answer."""
        self._settle()
        losses = (self._logs[:, 0] * 2.0**_LOG_BITS + self._logs[:, 1]) * _LOG_UNIT
        return TwoOutcomes(Streamed(Sums.of(self._cells, self._wide), *(float(loss) for loss in losses)), lens)

    def _settle(self) -> None:
        """Tell upper and lower bits of every sum apart, which can be done in one way only."""
        carry(self._narrow, self._wide)
        self._wide[:, 1::2] += self._wide[:, 2::2] >> _BITS
        self._wide[:, 2::2] &= 2**_BITS - 1
        self._logs[:, 0] += self._logs[:, 1] >> _LOG_BITS
        self._logs[:, 1] &= 2**_LOG_BITS - 1
