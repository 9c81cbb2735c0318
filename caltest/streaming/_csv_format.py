"""How the CSV files of a scan are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MARKS = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class CsvFormat:
    """Separator of values and decimal mark.

    Parameters
    ----------
    sep : str, optional
        One character, or "tab"; a comma by default, or a semicolon if ``decimal`` is a comma.
    decimal : {".", ","}
        Decimal mark.

    Raises
    ------
    TypeError, ValueError
        If ``sep`` is no text of one character, ``decimal`` is another mark, or both are the same.
    """

    sep: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.decimal not in {".", ","}:
            msg = f'`decimal` must be "." or ",", got {self.decimal!r}.'
            raise ValueError(msg)
        if self.sep is not None and not isinstance(self.sep, str):
            msg = f"`sep` must be a text, got {self.sep!r}."
            raise TypeError(msg)
        if len(self.mark) != 1 or self.mark == self.decimal:
            msg = f'`sep` must be one character that is not the decimal mark, such as ";", or "tab", got {self.sep!r}.'
            raise ValueError(msg)

    @property
    def mark(self) -> str:
        """The character between values."""
        if self.sep is None:
            return ";" if self.decimal == "," else ","
        return _MARKS.get(self.sep, self.sep)

    def arrow(self) -> Any:
        """Return the format of Arrow."""
        import pyarrow.csv as pc
        import pyarrow.dataset as ds

        return ds.CsvFileFormat(
            parse_options=pc.ParseOptions(delimiter=self.mark),
            convert_options=pc.ConvertOptions(decimal_point=self.decimal),
        )
