"""Results of a test: frozen, printable in plain words, ready for JSON."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.resampling._distributions import Law, ResampledLaw


@dataclass(frozen=True, eq=False)
class ComponentResult:
    """One statistic of a test with its own null distribution and p-value.

    Attributes
    ----------
    name : str
        The statistic.
    statistic : float
        Its observed value.
    pvalue : float
        ``(1 + #{null >= observed}) / (1 + n_resamples)``, or the exact tail probability; not corrected for the other
        components.
    null : Law
        Its law under perfect calibration: mean, standard deviation, quantiles and tail probabilities.
    derived : dict of str to float
        Numbers that the statistic derives from its value, by name; empty for most.
    """

    name: str
    statistic: float
    pvalue: float
    null: Law = field(repr=False)
    derived: dict[str, float] = field(default_factory=dict)

    @property
    def null_distribution(self) -> NDArray[np.float64] | None:
        """Values of the statistic on every draw, ``(n_resamples,)``; None if nothing was drawn."""
        return self.null.values if isinstance(self.null, ResampledLaw) else None

    @property
    def noise_floor(self) -> float:
        """Mean of the null law: what a perfect model shows on these predictions."""
        return self.null.mean

    @property
    def noise_interval(self) -> tuple[float, float]:
        """5 % and 95 % quantiles of the null law."""
        return self.null.quantile(0.05), self.null.quantile(0.95)

    def to_dict(self) -> dict[str, Any]:
        """Return name, statistic, noise floor, noise interval, p-value and derived numbers; infinity becomes None."""
        return {
            "name": self.name,
            "statistic": finite(self.statistic),
            "noise_floor": finite(self.noise_floor),
            "noise_interval": [finite(end) for end in self.noise_interval],
            "pvalue": self.pvalue,
            "derived": {name: finite(value) for name, value in self.derived.items()},
        }


@dataclass(frozen=True, eq=False)
class CalibrationTestResult(ComponentResult):
    """Result of `calibration_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    name, statistic, pvalue, null, derived
        Of the statistic; for `Omnibus` the statistic is -log10 of the smallest component p-value.
    lens : str
        What was looked at.
    n_samples, n_outcomes : int
        Size of the induced problem.
    components : tuple of ComponentResult
        The combined statistics; for a single statistic the one itself.
    method : str
        "monte-carlo", "exact" or "asymptotic".
    accuracy : str
        How exact the p-value is.
    hypothesis, null_law : str
        What was tested, and how the null distribution was made.
    conditions : tuple of str
        When the p-value is valid.
    score : float or None
        The signed temperature score U if it was computed: negative means over-confident.
    direction : str or None
        "over-confident" or "under-confident" if the temperature score's own p-value is at most 0.05.
    impossible_rows : array of int
        Rows whose label was given probability 0 through the lens; if there are any, the p-value is the smallest
        attainable.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    lens: str = ""
    n_samples: int = 0
    n_outcomes: int = 0
    components: tuple[ComponentResult, ...] = ()
    method: str = "monte-carlo"
    accuracy: str = ""
    hypothesis: str = ""
    null_law: str = ""
    conditions: tuple[str, ...] = ()
    score: float | None = None
    direction: str | None = None
    impossible_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    notes: tuple[str, ...] = ()

    @property
    def n_resamples(self) -> int:
        """Number of draws; 0 if nothing was drawn."""
        return 0 if self.null_distribution is None else len(self.null_distribution)

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the p-value due to the finite number of draws; 0 if nothing was drawn."""
        return math.sqrt(self.pvalue * (1 - self.pvalue) / self.n_resamples) if self.n_resamples else 0.0

    @property
    def interpretation(self) -> str:
        """What the p-value says, in one sentence."""
        return interpretation(self.pvalue, self.direction, self.n_samples)

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the null distribution as plain Python objects, ready for JSON."""
        return {
            "lens": self.lens,
            **super().to_dict(),
            "monte_carlo_error": self.monte_carlo_error,
            "n_resamples": self.n_resamples,
            "n_samples": self.n_samples,
            "n_outcomes": self.n_outcomes,
            "method": self.method,
            "accuracy": self.accuracy,
            "components": [component.to_dict() for component in self.components],
            "score": None if self.score is None else finite(self.score),
            "direction": self.direction,
            "impossible_rows": self.impossible_rows.tolist(),
            "hypothesis": self.hypothesis,
            "null_law": self.null_law,
            "conditions": list(self.conditions),
            "notes": list(self.notes),
            "interpretation": self.interpretation,
        }

    def __str__(self) -> str:
        rows = [("statistic", "value", "noise floor", "5 % to 95 %", "p-value"), *self._rows()]
        width = max(len(row[0]) for row in rows)
        lines = ["Test of perfect calibration", ""]
        lines += [f"  {label:<12} {text}" for label, text in self._facts()]
        lines += ["", *(f"  {row[0]:<{width}} {row[1]:>9} {row[2]:>12} {row[3]:>22} {row[4]:>9}" for row in rows), ""]
        for words in self._words():
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in self._facts())
        head = "".join(f"<th>{label}</th>" for label in ("statistic", "value", "noise floor", "5 % to 95 %", "p-value"))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell.strip())}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        return (
            f"<h4>Test of perfect calibration</h4><table>{facts}</table><table><tr>{head}</tr>{body}</table>"
            + "".join(f"<p>{escape(words)}</p>" for words in self._words())
        )

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("hypothesis", self.hypothesis),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes"),
            ("null law", self.null_law),
        ]

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        if len(self.components) == 1:
            return [_row(self.name, self)]
        combined = self.name.partition("(")[0]  # its parts follow
        return [_row(combined, self), *(_row(f"  {part.name}", part) for part in self.components)]

    def _words(self) -> list[str]:
        derived = [_derived_line(part) for part in self.components if part.derived]
        notes = [f"Note: {note}" for note in self.notes]
        valid = [f"Valid if {text}" for text in self.conditions]
        return [*derived, self._pvalue_line(), self.interpretation, *notes, *valid]

    def _pvalue_line(self) -> str:
        if self.method != "monte-carlo":
            return f"p-value {self.pvalue:.4g} ({self.accuracy})."
        smallest = self.pvalue * (self.n_resamples + 1) < 1.5
        remark = ", the smallest attainable" if smallest else ""
        return (
            f"p-value {self.pvalue:.4g} from {self.n_resamples} draws{remark} "
            f"(Monte Carlo standard error {self.monte_carlo_error:.1g})."
        )


def finite(value: float) -> float | None:
    """Return a number that JSON can hold; None for infinity and NaN."""
    return value if math.isfinite(value) else None


def _row(label: str, part: ComponentResult) -> tuple[str, str, str, str, str]:
    low, high = part.noise_interval
    return label, f"{part.statistic:.4g}", f"{part.noise_floor:.4g}", f"{low:.4g} to {high:.4g}", f"{part.pvalue:.4g}"


def _derived_line(part: ComponentResult) -> str:
    numbers = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in part.derived.items())
    return f"{part.name}: {numbers}."


def interpretation(pvalue: float, direction: str | None, n_samples: int) -> str:
    towards = f"; the model is {direction}" if direction else ""
    if pvalue <= 0.001:
        return (
            f"Very strong evidence against calibration: the probabilities should not be taken at their word{towards}."
        )
    if pvalue <= 0.01:
        return f"Strong evidence against calibration{towards}."
    if pvalue <= 0.05:
        return f"Evidence against calibration{towards}."
    return f"No evidence against calibration in these {n_samples} rows, which is no proof of it."
