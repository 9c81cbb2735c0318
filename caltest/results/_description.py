"""What a result shows, once: a title, a conclusion, tables, remarks and notes; print and notebooks render it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from caltest.results._decision import align_pvalue
from caltest.results._note import Note


class _WithPValues(Formatter):
    """Texts with numbers, among them p-values: "{pvalue:p}"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return align_pvalue(value) if format_spec == "p" else str(super().format_field(value, format_spec))


_WITH_PVALUES = _WithPValues()


@dataclass(frozen=True)
class Table:
    """A table of texts in a result.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        Cells. The first column is aligned to the left, others to the right.
    left : collection of str
        Names of other columns that are aligned to the left.

    See Also
    --------
    caltest.results.Description : What a table is part of.

    Examples
    --------
    >>> Table(("site", "bias"), [("north", "0.123"), ("south", "-0.067")]).is_left(0)
    True
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: tuple[str, ...] = ()

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]], columns: Mapping[str, str], left: tuple[str, ...] = ()) -> Table:
        """Return the table of some records: for each column its name, and how it shows numbers: "{value:.4g}".

        "{pvalue:p}" is a p-value as all columns have it.
        """
        rows = [[_WITH_PVALUES.vformat(shown, (), record) for shown in columns.values()] for record in records]
        return cls(tuple(columns), rows, left)

    def is_left(self, column: int) -> bool:
        """Return whether a column is aligned to the left."""
        return column == 0 or self.head[column] in self.left


@dataclass(frozen=True)
class Description:
    """What a result shows, in print and in notebooks.

    Parameters
    ----------
    title : str
        What the result is, of what.
    conclusion : sequence of str
        The verdict first, in whole sentences.
    tables : sequence of Table
        The numbers.
    remarks : sequence of str
        How the numbers were made and when they are valid, in whole sentences.
    notes : sequence of Note
        Cautions.
    numbers : Table or None
        The few numbers of the answer, which come before the tables.
    advice : sequence of str
        What these numbers are, and what to do.

    See Also
    --------
    caltest.results.Result : What is described.

    Examples
    --------
    >>> Description("Bias of sites", ["The largest bias is 0.123."]).title
    'Bias of sites'
    """

    title: str
    conclusion: Sequence[str]
    tables: Sequence[Table] = ()
    remarks: Sequence[str] = ()
    notes: Sequence[Note] = ()
    numbers: Table | None = None
    advice: Sequence[str] = ()


def join(words: Iterable[str]) -> str:
    """Return words as a list in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def percent(share: float) -> str:
    """Return a share as per cent: "5 %"."""
    return f"{100 * share:.4g} %"


def decimals_of(share: float) -> int:
    """Return how many decimals show at least two digits of the smaller of a percentage and its complement."""
    value = round(100 * share, 9)  # as below: sums in another order must not have another decimal
    rest = min(value, 100 - value)
    if not rest > 1e-9:
        return 0
    return 1 if rest >= 0.95 else min(1 - math.floor(math.log10(rest)), 6)


def as_percent(share: float, digits: int | None = None) -> str:
    """Return a share in per cent with at least two digits of the smaller of it and its complement, or some decimals.

    Examples
    --------
    >>> as_percent(0.2431), as_percent(0.00074), as_percent(0.99974), as_percent(0.0)
    ('24.3 %', '0.074 %', '99.974 %', '0 %')
    """
    value = round(100 * share, 9)  # in the middle of two decimals it is rounded the same way, however it was summed
    decimals = decimals_of(share)
    return f"{value:.{decimals if digits is None or not decimals else digits}f} %"


def counted(number: float, noun: str = "observation") -> str:
    """Return a number of observations, or of other things, in words, thousands separated.

    Examples
    --------
    >>> counted(1), counted(10_000), counted(9_999, "draw")
    ('1 observation', '10,000 observations', '9,999 draws')
    """
    return f"{number:,.12g} {noun}{'' if number == 1 else 's'}"


def sized(number: float, n_groups: int | None = None, *, weighted: bool = False) -> str:
    """Return a number of observations in words, with their groups and whether they are weighted.

    Examples
    --------
    >>> sized(500, 20, weighted=True)
    '500 weighted observations in 20 groups'
    """
    shown = counted(number, "weighted observation" if weighted else "observation")
    return shown if n_groups is None else f"{shown} in {counted(n_groups, 'group')}"


_COLUMNS = 8  # that are printed


def show_columns(columns: Mapping[Any, Any]) -> str:
    """Return the columns of labels as a line; the middle of many is left out.

    Examples
    --------
    >>> show_columns({"cat": "p_cat", "dog": "p_dog"})
    'Label -> column: cat -> p_cat, dog -> p_dog.'
    """
    pairs = [f"{label} -> {name}" for label, name in columns.items()]
    if len(pairs) > _COLUMNS:
        pairs = [*pairs[: _COLUMNS - 2], "...", f"{pairs[-1]} ({len(pairs)} classes)"]
    return f"Label -> column: {', '.join(pairs)}."
