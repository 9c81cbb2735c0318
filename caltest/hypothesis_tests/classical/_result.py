"""What the results of the classical tests have in common: they unpack, print and turn into plain objects."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.results._test_result import interpretation


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassicalTestResult:
    """A statistic with its p-value, and in words where the p-value comes from and when it is valid."""

    title: ClassVar[str]

    statistic: float
    pvalue: float
    degrees_of_freedom: int | None
    method: str
    null_law: str
    accuracy: str
    hypothesis: str
    conditions: tuple[str, ...]
    notes: tuple[str, ...]
    lens: str
    n_samples: int
    n_outcomes: int
    impossible_rows: NDArray[np.int64]

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    @property
    def interpretation(self) -> str:
        """What the p-value says, in one sentence."""
        return interpretation(self.pvalue, self.direction, self.n_samples)

    @property
    def direction(self) -> str | None:
        """What is wrong, in one word, where the test tells."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON; what is infinite or NaN becomes None."""
        found = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {**found, "direction": self.direction, "interpretation": self.interpretation}

    def __str__(self) -> str:
        lines = [self.title, ""]
        lines += [f"  {label:<12} {text}" for label, text in self._facts()]
        lines += ["", *(f"  {line}" for line in self._findings()), ""]
        for words in self._words():
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in self._facts())
        findings = "\n".join(map(escape, self._findings()))
        words = "".join(f"<p>{escape(words)}</p>" for words in self._words())
        return f"<h4>{escape(self.title)}</h4><table>{facts}</table><pre>{findings}</pre>{words}"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("hypothesis", self.hypothesis),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes"),
            ("null law", self.null_law),
        ]

    def _findings(self) -> list[str]:
        """Return the numbers of the test, line by line."""
        raise NotImplementedError

    def _words(self) -> list[str]:
        return [
            f"p-value {self.pvalue:.4g} ({self.accuracy}).",
            self.interpretation,
            *(f"Note: {note}" for note in self.notes),
            *(f"Valid if {text}" for text in self.conditions),
        ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
