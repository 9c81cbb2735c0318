"""The tables of states: integer sums that batches are added to, over cells, of labels and of draws."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._micro_cells import add_redrawn, add_rows, carry, fill_losses
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import Lens
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if
from caltest.results._plain import read_json
from caltest.streaming.states._answers import ManyOutcomes, TwoOutcomes
from caltest.streaming.states._micro_cells import MicroCells, Sums
from caltest.streaming.states._redrawn_cells import MOST_COUNTS, RedrawnCells
from caltest.streaming.states._state_file import Declared, is_counts, is_increasing, is_low, require, require_room
from caltest.streaming.states._values import OutcomeSums, Streamed

Part = TypeVar("Part")

_MOST = 2**62
MOST_RANGES = 2**22
"""Of rows in the file of a state, where each file that was read has one or a few."""
_BLOCK = 2**14  # rows at a time, which stay in the cache
_BLOCK_VALUES = 2**17  # probabilities at a time
_MOST_LABEL = 2**62
_SEVERAL = 16  # cells that there is room for at first
_BITS, _LOG_BITS = 26, 27  # of the lower part of a sum
_UNIT, _LOG_UNIT = 2.0**-52, 2.0**-44
_PARTS = ("sums", "counts", "own")


class Rows:
    """Ranges of rows of sources, which are distinguished by their names."""

    def __init__(self) -> None:
        self._ranges: dict[str, list[tuple[int, int]]] = {}

    def after(self, source: str) -> int:
        """Return the number of the row after the last one of a source."""
        return self._ranges[source][-1][1] if source in self._ranges else 0

    def add(self, source: str, start: int, stop: int) -> None:
        """Add the rows from ``start`` to ``stop - 1``; refuse rows that are known."""
        self.require_new(source, start, stop)
        if start == stop:
            return
        ranges = self._ranges.setdefault(source, [])
        place = bisect(ranges, (start, stop))
        if place < len(ranges) and ranges[place][0] == stop:
            stop = ranges.pop(place)[1]
        if place and ranges[place - 1][1] == start:
            place -= 1
            start = ranges.pop(place)[0]
        ranges.insert(place, (start, stop))

    def require_new(self, source: str, start: int, stop: int) -> None:
        """Raise ValueError if one of these rows is known, or has no number of 62 bits."""
        refuse_if(stop > _MOST, f"`first_row` must be such that rows have numbers below 2**62, got {start}.")
        ranges = self._ranges.get(source, [])
        place = bisect(ranges, (start, stop))
        for known in ranges[max(place - 1, 0) : place + 1]:
            first, last = max(start, known[0]), min(stop, known[1]) - 1
            if first <= last:
                refuse(
                    f"rows {first} to {last} of the source {source!r} are counted already. The same row has the same "
                    "draws, so every row must be unique: by `source` and `first_row` where a state is updated, by "
                    "`name` where a table is scanned, and by the name or the content of a file."
                )

    def merge(self, other: Rows) -> None:
        """Add the rows of both; nothing is added if one is known."""
        for one in other:
            self.require_new(*one)
        for one in other:
            self.add(*one)

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        return ((source, *one) for source in sorted(self._ranges) for one in self._ranges[source])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the names of the sources and the ends of their ranges, in their order."""
        found = list(self)
        names = json.dumps([source for source, _, _ in found]).encode()
        ends = np.array([(start, stop) for _, start, stop in found], dtype=np.int64).reshape(-1, 2)
        return {"sources": np.frombuffer(names, dtype=np.uint8), "rows": ends}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Rows:
        """Return what `arrays` returned."""
        found = cls()
        names, ranges = read_json(arrays["sources"].tobytes()), arrays["rows"].tolist()
        listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(listed and len(names) == len(ranges), "sources", "the name of the source of each range of rows")
        require(all(0 <= start < stop for start, stop in ranges), "rows", "ranges of rows")
        for source, (start, stop) in zip(names, ranges, strict=True):
            found.add(source, start, stop)
        return found


class OutcomeTable:
    """Sums over the occupied cells as integers, see `add_redrawn` for their units, and the confidence in micro-cells.

    Parameters
    ----------
    cells : RedrawnCells
        Cells and draws.
    n_outcomes : int
        Number of outcomes, three or more.
    confidence : MicroTable
        The table of the confidence.
    """

    def __init__(self, cells: RedrawnCells, n_outcomes: int, confidence: MicroTable) -> None:
        cells.validate_outcomes(n_outcomes)
        self._cells, self._n_outcomes = cells, n_outcomes
        self._place: dict[int, int] = {}
        n = 1 + cells.n_resamples
        shapes = {"sums": (3 + 2 * n_outcomes,), "counts": (n_outcomes, n), "own": (2, n)}
        self._sums = {name: np.zeros((0, *shape), dtype=np.int64) for name, shape in shapes.items()}
        self._logs = np.zeros((2, n + 1), dtype=np.int64)
        self._n_impossible = 0
        self._confidence = confidence
        self.rows = Rows()
        self.n_samples = 0

    def add(
        self, prob: NDArray[Any], outcome: NDArray[Any], _: Booleans | None, source: str, first_row: int | None
    ) -> None:
        """Add outcomes ``(n_rows,)`` and their probabilities ``(n_rows, n_outcomes)``; nothing if they are refused."""
        n_rows = len(outcome)
        first = self.rows.after(source) if first_row is None else first_row
        require_room(self.n_samples + n_rows)
        self.rows.require_new(source, first, first + n_rows)
        size = max(_BLOCK_VALUES // self._n_outcomes, 1)
        blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
        labels = [self._cells.label(np.asarray(prob[rows], dtype=np.float64)) for rows in blocks]
        self._make_room({label for some in labels for label in np.unique(some).tolist()})
        key = _key(self._cells.rng, source)
        loss, expected = np.empty((min(size, n_rows), self._n_outcomes), dtype=np.int64), np.empty(size, dtype=np.int64)
        for rows, some in zip(blocks, labels, strict=True):
            p = np.ascontiguousarray(prob[rows], dtype=np.float64)
            known, index = np.unique(some, return_inverse=True)
            cell = np.array([self._place[label] for label in known.tolist()], dtype=np.int64)[index]
            order = np.argsort(cell, kind="stable")
            fill_losses(p, loss[: len(p)], expected[: len(p)])
            drawn = loss[: len(p)], expected[: len(p)], key, first + rows.start
            parts = (self._sums[name] for name in _PARTS)
            y = np.ascontiguousarray(outcome[rows], dtype=np.int64)
            self._n_impossible += add_redrawn(p, y, cell, order, *drawn, *parts, self._logs)
            top = p.argmax(axis=1)
            self._confidence.add(p[np.arange(len(p)), top], top == y)
        self.rows.add(source, first, first + n_rows)
        self.n_samples += n_rows

    def merge(self, other: OutcomeTable) -> None:
        """Add the sums of another table of the same cells; nothing if it holds rows that are counted already."""
        require_room(self.n_samples + other.n_samples)
        for one in other.rows:
            self.rows.require_new(*one)
        self._make_room(set(other._place))
        to = [self._place[label] for label in other._place]
        for name in _PARTS:
            self._sums[name][to] += other._sums[name][: len(to)]
        self._logs += other._logs
        self._n_impossible += other._n_impossible
        self._confidence.merge(other._confidence)
        self.n_samples += other.n_samples
        self._settle()
        self.rows.merge(other.rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sums by name, cells in the order of their labels."""
        return self._arrays() | _titled("confidence", self._confidence.arrays()) | self.rows.arrays()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sums over the cells by name."""
        self._settle()
        label = np.array(sorted(self._place), dtype=np.int64)
        order = [self._place[one] for one in label.tolist()]
        parts = {name: self._sums[name][order] for name in _PARTS}
        return parts | {"label": label, "logs": self._logs, "impossible": np.array([self._n_impossible])}

    def declared(self) -> dict[str, Declared]:
        """Return what the arrays of a table of these cells, draws and outcomes can be."""
        found = {name: Declared((None, *part.shape[1:]), most=self._most_cells) for name, part in self._sums.items()}
        found |= {"label": Declared((None,), most=self._most_cells), "logs": Declared(self._logs.shape)}
        rows = {"sources": Declared((None,), np.uint8), "rows": Declared((None, 2), most=MOST_RANGES)}
        return found | rows | _titled("confidence", self._confidence.declared()) | {"impossible": Declared((1,))}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the sums that `arrays` returned; refuse what cannot be sums."""
        label, (sums, counts, own), logs = arrays["label"], (arrays[name] for name in _PARTS), arrays["logs"]
        n, k = sums[:, 0], self._n_outcomes
        require(len({len(label), len(sums), len(counts), len(own)}) == 1, "label", "one cell for each row of sums")
        require(is_increasing(label, _MOST_LABEL), "label", "numbers of cells")
        require(is_counts(n, least=1), "sums", "numbers of observations")
        require(bool((counts >= 0).all() and (counts.sum(axis=1) == n[:, None]).all()), "counts", "outcomes of them")
        high, low = (np.column_stack([sums[:, 1 + j], sums[:, 3 + j * k : 3 + (j + 1) * k]]) for j in (0, 1))
        require(is_low(low, _BITS) and bool((high >= 0).all()), "sums", "sums of predictions")
        require(is_low(own[:, 1], _BITS) and bool((own[:, 0] >= 0).all()), "own", "sums of probabilities")
        require(is_low(logs[1], _LOG_BITS) and bool((logs[0] >= 0).all()), "logs", "sums of logarithms")
        require(0 <= arrays["impossible"][0] <= n.sum(), "impossible", "a number of observations")
        self._place = {label: place for place, label in enumerate(arrays["label"].tolist())}
        self._sums = {name: arrays[name].copy() for name in _PARTS}
        self._logs[:] = arrays["logs"]
        self._n_impossible = int(arrays["impossible"][0])
        self.rows = Rows.of(arrays)
        self.n_samples = int(arrays["sums"][:, 0].sum())
        self._confidence.restore(_part(arrays, "confidence", self._confidence))
        same = self._confidence.n_samples == self.n_samples
        require(same, "confidence_sums", "as many observations as the array `sums`")

    def answers(self, lens: Lens) -> ManyOutcomes:
        """Return what the sums answer."""
        found, k = self._arrays(), self._n_outcomes
        sums = found["sums"]
        logs = (found["logs"][0] * 2.0**_LOG_BITS + found["logs"][1]) * _LOG_UNIT
        return ManyOutcomes(
            OutcomeSums(
                redrawn=self._cells,
                label=found["label"],
                count=sums[:, 0].astype(np.float64),
                predicted=_number(sums[:, 3 : 3 + k], sums[:, 3 + k :]),
                squares=_number(sums[:, 1], sums[:, 2]),
                outcomes=np.moveaxis(found["counts"], 2, 0).astype(np.float64),
                own=_number(found["own"][:, 0], found["own"][:, 1]).T,
                loss=logs[:-1],
                expected_loss=float(logs[-1]),
                n_impossible=self._n_impossible,
                confidence=self._confidence.streamed(),
            ),
            lens,
        )

    @property
    def _most_cells(self) -> int:
        """The most cells that there is memory for."""
        return MOST_COUNTS // ((1 + self._cells.n_resamples) * self._n_outcomes)

    def _make_room(self, labels: set[int]) -> None:
        """Give a place to labels without one; refuse more than there is memory for."""
        new = sorted(labels.difference(self._place))
        needed, there = len(self._place) + len(new), len(self._sums["sums"])
        most = self._most_cells
        if needed > most:
            refuse(
                f"the predictions lie in more than {most} cells, the most that a state of {self._n_outcomes} outcomes "
                f"and {self._cells.n_resamples:,} draws holds: choose fewer, such as EqualWidth(2) or a FixedTree, or "
                "fewer draws."
            )
        if needed > there:
            room = min(max(needed, 2 * there, _SEVERAL), most)
            for name, part in self._sums.items():
                self._sums[name] = np.concatenate([part, np.zeros((room - there, *part.shape[1:]), dtype=np.int64)])
        self._place |= {label: len(self._place) + k for k, label in enumerate(new)}

    def _settle(self) -> None:
        """Tell upper and lower bits of every sum apart, which can be done in one way only."""
        k = self._n_outcomes
        sums, own = self._sums["sums"], self._sums["own"]
        pairs = [(sums[:, 1], sums[:, 2]), (sums[:, 3 : 3 + k], sums[:, 3 + k :]), (own[:, 0], own[:, 1])]
        for high, low in pairs:
            _carry(high, low, _BITS)
        _carry(self._logs[0], self._logs[1], _LOG_BITS)


def _titled(title: str, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Return the parts of a table within another one, by names of it."""
    return {f"{title}_{name}": part for name, part in parts.items()}


def _part(arrays: Mapping[str, NDArray[Any]], title: str, table: MicroTable) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table within another one."""
    return {name: arrays[f"{title}_{name}"] for name in table.declared()}


def _carry(high: Integers, low: Integers, bits: int) -> None:
    """Move what is above the lower bits of sums to their upper part, in place."""
    high += low >> bits
    low &= 2**bits - 1


def _number(high: Integers, low: Integers) -> Floats:
    return np.asarray((high * 2.0**_BITS + low) * _UNIT)


def _key(rng: int, source: str) -> np.uint64:
    digest = hashlib.sha256(f"{rng} {source}".encode(errors="surrogatepass")).digest()
    return np.frombuffer(digest[:8], dtype="<u8")[0]


def _are_possible(high: Integers, count: Integers) -> bool:
    """Return whether the upper parts are those of sums of distances below 2^52 units."""
    return bool((high >= 0).all() and (high >> _BITS <= count[:, None]).all())


class MicroTable:
    """Sums over micro-cells as integers; see `add_rows` for their units.

    Parameters
    ----------
    cells : MicroCells
        The micro-cells.
    impossible : MicroTable or None
        An empty table to which observations are added too whose label had been predicted with probability 0, of a state
        of the confidence; None for other lenses, of which the cells of 0 and 1 tell what they show.
    """

    def __init__(self, cells: MicroCells, impossible: MicroTable | None = None) -> None:
        self._cells, self._impossible = cells, impossible
        self._narrow = np.zeros((2 * cells.n_cells, 4), dtype=np.int64)
        self._wide = np.zeros((2 * cells.n_cells, 7), dtype=np.int64)
        self._logs = np.zeros((2, 2), dtype=np.int64)
        self.n_samples = 0

    @property
    def n_impossible(self) -> int:
        """Number of labels that had been predicted with probability 0, of a state of the confidence."""
        return 0 if self._impossible is None else self._impossible.n_samples

    def add(self, event: NDArray[Any], outcome: NDArray[Any], impossible: Booleans | None = None, *_: Any) -> None:
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
        if self._impossible is not None and impossible is not None and impossible.any():
            self._impossible.add(event[impossible], outcome[impossible])

    def merge(self, other: MicroTable) -> None:
        """Add the sums of another table of the same micro-cells."""
        require_room(self.n_samples + other.n_samples)
        if not other.n_samples:
            return
        other._settle()
        self._wide += other._wide
        self._logs += other._logs
        self.n_samples += other.n_samples
        if self._impossible is not None and other._impossible is not None:
            self._impossible.merge(other._impossible)

    def arrays(self) -> dict[str, Integers]:
        """Return the sums by name, without empty micro-cells."""
        self._settle()
        row = np.flatnonzero(self._wide[:, 0])
        found = {"row": row, "sums": self._wide[row], "logs": self._logs}
        return found if self._impossible is None else found | _titled("impossible", self._impossible.arrays())

    def declared(self) -> dict[str, Declared]:
        """Return what the arrays of a table of these micro-cells can be."""
        n = 2 * self._cells.n_cells
        found = {"row": Declared((None,), most=n), "sums": Declared((None, 7), most=n), "logs": Declared((2, 2))}
        return found if self._impossible is None else found | _titled("impossible", self._impossible.declared())

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
        if self._impossible is not None:
            self._impossible.restore(_part(arrays, "impossible", self._impossible))
            others = self._others()
            sums, logs = others._wide, others._logs
            some = is_counts(sums[:, 0], least=0) and _are_possible(sums[:, 1::2], sums[:, 0])
            some = bool(some and (logs >= 0).all() and not sums[sums[:, 0] == 0].any())
            require(some, "impossible_sums", "some of the observations of the array `sums`")

    def answers(self, lens: Lens) -> TwoOutcomes:
        """Return what the sums answer."""
        n = self.n_impossible
        return TwoOutcomes(self.streamed(), lens, n, self._others().streamed() if n else None)

    def streamed(self) -> Streamed:
        """Return the sums as statistics read them."""
        self._settle()
        losses = (self._logs[:, 0] * 2.0**_LOG_BITS + self._logs[:, 1]) * _LOG_UNIT
        return Streamed(Sums.of(self._cells, self._wide), *(float(loss) for loss in losses))

    def _others(self) -> MicroTable:
        """Return the table of the observations whose label had not been predicted with probability 0."""
        assert self._impossible is not None
        self._settle()
        self._impossible._settle()
        others = MicroTable(self._cells)
        others._wide[:] = self._wide - self._impossible._wide
        others._logs[:] = self._logs - self._impossible._logs
        others.n_samples = self.n_samples - self.n_impossible
        others._settle()
        return others

    def _settle(self) -> None:
        """Tell upper and lower bits of every sum apart, which can be done in one way only."""
        carry(self._narrow, self._wide)
        _carry(self._wide[:, 1::2], self._wide[:, 2::2], _BITS)
        _carry(self._logs[:, 0], self._logs[:, 1], _LOG_BITS)
