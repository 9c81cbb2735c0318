"""Extremes of cumulative residuals of several lenses from the labels that are not the usual ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._path_blocks import LANES, read_counted_paths
from caltest.predictions._view import LensView
from caltest.resampling._path_blocks import Path, PathBlocks
from caltest.resampling._points import Points
from caltest.resampling._summaries import EitherEndExcursion, LargestExcursion, PathExtremes, Summary

Wanted = tuple[LensView, Summary]
"""A summary of the outcomes behind a lens."""
Listed = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]
"""Entries, the counter or sum of each, and what it adds; None if that is 1."""


@dataclass(frozen=True, eq=False)
class CountedPaths:
    """Paths behind several lenses in one table of blocks, whose base paths are those of the usual labels.

    Attributes
    ----------
    largest : pair of a LensView and a summary, or None
        Whose paths come first and are read together.
    either, extremes : tuples of such pairs
        Each has one path. Those of ``either`` come first.
    blocks : PathBlocks or None
        The paths; None if there are none.
    labels : tuple of arrays of shape (n_samples,)
        The label that is the event of each path.
    """

    largest: Wanted | None
    either: tuple[Wanted, ...]
    extremes: tuple[Wanted, ...]
    blocks: PathBlocks | None
    labels: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, points: Points, wanted: Iterable[Wanted]) -> CountedPaths:
        """Return the paths among the wanted summaries that can be counted."""
        asked = list(wanted)
        largest = next((pair for pair in asked if isinstance(pair[1], LargestExcursion) and pair[0].is_base), None)
        paths = [*largest[1].paths] if largest is not None and isinstance(largest[1], LargestExcursion) else []
        either, extremes = [], []
        for kind, found in ((EitherEndExcursion, either), (PathExtremes, extremes)):
            for view, summary in asked:
                path = _drawn_path(view, summary.path, points.n_samples) if isinstance(summary, kind) else None
                if path is not None:
                    found.append((view, summary))
                    paths.append(path)
        if not paths:
            return cls(None, (), (), None, ())
        blocks = PathBlocks.of(paths, len(paths), points.n_samples, points.usual.dtype, usual=points.usual)
        labels = tuple(np.broadcast_to(np.asarray(path.label), points.n_samples) for path in paths)
        return cls(largest, tuple(either), tuple(extremes), blocks, labels)

    @property
    def n_counters(self) -> int:
        """Number of counters of all blocks."""
        return 0 if self.blocks is None else len(self.blocks.table) * self.blocks.n_blocks * LANES

    def counters(self, points: Points, first: int) -> Iterator[Listed]:
        """Yield the entries that are events of each path, and the counter of each, from ``first`` on."""
        if self.blocks is None:
            return
        row = np.arange(points.n_samples)
        for p, (block, label) in enumerate(zip(self.blocks.block.T, self.labels, strict=True)):
            counter = (p // LANES * self.blocks.n_blocks + block.astype(np.int64)) * LANES + p % LANES
            yield row * points.n_outcomes + label, counter + first, None

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The summaries."""
        return (*(() if self.largest is None else (self.largest,)), *self.either, *self.extremes)

    def empty(self, n_replicates: int) -> tuple[NDArray[np.float64], ...]:
        """Return arrays for largest excursions, excursions from either end, and extremes of some replicates."""
        shapes = (), (len(self.either),), (len(self.extremes), 3)
        return tuple(np.empty((n_replicates, *shape)) for shape in shapes)

    def read(self, counts: NDArray[np.int32], labels: NDArray[Any], values: Iterable[NDArray[np.float64]]) -> None:
        """Fill the values of replicates whose counters and labels are known."""
        if self.blocks is not None:
            summary = None if self.largest is None else self.largest[1]
            scale = summary.scale if isinstance(summary, LargestExcursion) else np.empty(0)
            table, paths, shift = self.blocks.table.copy(), self.blocks.paths, self.blocks.shift
            read_counted_paths(paths, table, shift, counts, labels, scale, *values)

    def by_summary(self, values: Sequence[NDArray[np.float64]]) -> dict[Wanted, NDArray[np.float64]]:
        """Return what the statistics receive."""
        largest, either, extremes = values
        found = {} if self.largest is None else {self.largest: largest}
        found |= dict(zip(self.either, either.T, strict=True))
        return found | {pair: extremes[:, j] for j, pair in enumerate(self.extremes)}


def _drawn_path(view: LensView, path: Path, n_samples: int) -> Path | None:
    """Return the path of the event behind a lens in terms of the labels that are drawn.

    None, unless all observations are seen through the lens, and each has exactly one label that is the event.
    """
    if view.seen is None or view.base_row is None:
        return path
    events = view.seen == 1
    if len(view.base_row) != n_samples or np.any(events.sum(axis=1) != 1):
        return None
    label = events.argmax(axis=1)
    score, expected = np.empty(n_samples), np.empty(n_samples)
    score[view.base_row], expected[view.base_row] = path.score, path.expected
    return Path(score, expected, int(label[0]) if len(label) == 1 else label)
