"""Which rows of which sources have been counted, so that none is counted twice."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.results._strict_json import read_json
from caltest.streaming._state_content import require

_MOST = 2**62
MOST_RANGES = 2**22
"""Of rows in the file of a state, where each file that was read has one or a few."""


class Rows:
    """Ranges of rows of sources, which are told apart by their names."""

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
        if stop > _MOST:
            msg = f"`first_row` must be such that rows have numbers below 2**62, got {start}."
            raise ValueError(msg)
        ranges = self._ranges.get(source, [])
        place = bisect(ranges, (start, stop))
        for known in ranges[max(place - 1, 0) : place + 1]:
            first, last = max(start, known[0]), min(stop, known[1]) - 1
            if first <= last:
                msg = (
                    f"rows {first} to {last} of the source {source!r} are counted already. The same row has the same "
                    "draws, so every row must be told apart: by `source` and `first_row` where a state is updated, by "
                    "`name` where a table is scanned, and by the name or the content of a file."
                )
                raise ValueError(msg)

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
