"""The settings of a state, which decide what it holds and which states can be merged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import numpy as np

from caltest.predictions._lens import Lens, lens_name, lens_short_name
from caltest.predictions._lenses import Canonical, ClassGroups, ClassWise, Confidence, TopK, TopRank, WithinTop
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, validate_count
from caltest.streaming.states._micro_cells import LARGEST, SMALLEST, USUAL, MicroCells
from caltest.streaming.states._redrawn_cells import RedrawnCells
from caltest.streaming.states._table import MicroTable, OutcomeTable

Answer = TypeVar("Answer", bound=Any)


def agreed_classes(lens: Lens, known: list[str] | None, given: Sequence[Any] | None) -> list[str] | None:
    """Return the names of the classes ``known`` and ``given``, either of which may be missing; refuse other classes."""
    if given is None or not lens.names_event:
        return known
    names = [str(label) for label in given]
    if known not in (None, names):
        refuse(f"all batches must have the same classes in the same order, got {known} before and {names} now.")
    return names


def read_classes(written: Any, n_classes: int) -> list[str] | None:
    """Return the names of classes that a file holds; refuse what are no names of so many classes."""
    if written is None:
        return None
    numbers = {1, 2} if n_classes == 2 else {n_classes}  # of two classes the name of the event is enough
    listed = isinstance(written, list) and len(written) in numbers and all(isinstance(name, str) for name in written)
    if not listed or len(set(written)) < len(written):
        refuse(f"`data` must hold different names of {n_classes} classes, got `classes` = {written!r:.80}.")
    return list(written)


def with_class_names(answer: Answer, classes: Sequence[str] | None) -> Answer:
    """Return a result of a state whose lens is called by the labels of the classes, where these are known."""
    names: dict[str, Any] = {"lens_name": lens_name(answer.lens, classes)}
    if getattr(answer, "_evidence", None) is not None:
        names["_evidence"] = replace(answer._evidence, classes=classes)
    if hasattr(answer, "lens_short_name"):
        names["lens_short_name"] = lens_short_name(answer.lens, classes)
    return replace(answer, **names)


_LENSES: dict[str, type[Lens]] = {
    kind.__name__: kind for kind in (Canonical, Confidence, ClassWise, TopRank, WithinTop, TopK, ClassGroups)
}


MOST_CLASSES = 2**20
"""Of a state or a monitor."""


@dataclass(frozen=True)
class Settings:
    """The settings of a state.

    Attributes
    ----------
    n_classes : int
        Number of classes of the predictions.
    lens : Lens
        What is looked at.
    micro_cells : int or RedrawnCells
        The number of micro-cells for two outcomes, the cells for more.
    """

    n_classes: int
    lens: Lens
    micro_cells: int | RedrawnCells

    @classmethod
    def of(cls, n_classes: Any, lens: Any, micro_cells: Any) -> Self:
        """Return validated settings."""
        validate_count(n_classes, "n_classes", minimum=2)
        refuse_if(n_classes > MOST_CLASSES, f"`n_classes` must be at most {MOST_CLASSES:,}, got {n_classes:,}.")
        chosen = _validate_lens(lens, n_classes)
        return cls(n_classes, chosen, _validate_micro_cells(micro_cells, _n_outcomes(chosen, n_classes)))

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the settings of plain objects; refuse with a ValueError what is none.

        They are validated as the arguments of `CalibrationState` are.
        """
        try:
            cells = plain["micro_cells"]
            lens = _LENSES[plain["lens"]](**plain["parameters"])
            return cls.of(plain["n_classes"], lens, cells if isinstance(cells, int) else RedrawnCells.of_plain(cells))
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            found = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            refuse(f"`data` must hold the settings of a calibration state: {found}")

    @property
    def plain(self) -> dict[str, Any]:
        """The settings as plain objects, which a file can keep."""
        parameters = {field.name: getattr(self.lens, field.name) for field in fields(self.lens)}  # type: ignore[arg-type]
        return {
            "n_classes": int(self.n_classes),
            "lens": type(self.lens).__name__,
            "parameters": json.loads(json.dumps(parameters, default=int)),  # integers of NumPy
            "micro_cells": self.micro_cells if isinstance(self.micro_cells, int) else self.micro_cells.plain,
        }

    @property
    def fingerprint(self) -> str:
        """A short text that differs where settings differ."""
        return hashlib.sha256(json.dumps(self.plain, sort_keys=True).encode()).hexdigest()[:16]

    def empty_table(self) -> MicroTable | OutcomeTable:
        """Return a table without observations."""
        cells = MicroCells.of(self.micro_cells if isinstance(self.micro_cells, int) else USUAL)
        if isinstance(self.micro_cells, int):  # the confidence stands for the whole prediction: its labels count
            return MicroTable(cells, MicroTable(cells) if type(self.lens) is Confidence else None)
        return OutcomeTable(self.micro_cells, _n_outcomes(self.lens, self.n_classes), MicroTable(cells))


def _n_outcomes(lens: Lens, n_classes: int) -> int:
    return lens.induced(np.full((1, n_classes), 1 / n_classes)).shape[1]


def _validate_lens(lens: Any, n_classes: int) -> Lens:
    """Return the lens, by default the event of two classes and the confidence of more."""
    if lens is None:
        return Canonical() if n_classes == 2 else Confidence()
    if type(lens) not in _LENSES.values():
        refuse(
            f"`lens` must be one of {', '.join(_LENSES)}, such as Confidence() or ClassWise(0), got {lens!r}.",
            TypeError,
        )
    return lens


def _validate_micro_cells(micro_cells: Any, n_outcomes: int) -> int | RedrawnCells:
    """Return the number of micro-cells for two outcomes, and `RedrawnCells` for more."""
    if isinstance(micro_cells, RedrawnCells):
        if n_outcomes == 2:
            numbers = f"a power of 2, such as {USUAL}, for a lens with two outcomes"
            refuse(f"`micro_cells` must be {numbers}, got {micro_cells!r}.")
        return micro_cells
    validate_count(micro_cells, "micro_cells")
    if n_outcomes == 2:
        if not SMALLEST <= micro_cells <= LARGEST or micro_cells & (micro_cells - 1):
            refuse(f"`micro_cells` must be a power of 2 from {SMALLEST} to {LARGEST}, got {micro_cells}.")
        return int(micro_cells)
    if micro_cells != USUAL:
        refuse(
            f"`micro_cells` must be RedrawnCells(...) for a lens with {n_outcomes} outcomes, got {micro_cells}; lenses "
            "with two outcomes, such as Confidence() or ClassWise(0), have micro-cells."
        )
    return RedrawnCells()
