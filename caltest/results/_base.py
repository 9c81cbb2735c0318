"""What every result has in common: it prints, shows in notebooks, turns into JSON and frames, and is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from caltest.results._description import Description
from caltest.results._html import to_html
from caltest.results._naming import describe
from caltest.results._plain import to_plain
from caltest.results._text import to_text

if TYPE_CHECKING:
    import pandas as pd

_LONGEST = 100  # characters of a line in `repr`, which has about two


@dataclass(frozen=True, eq=False, repr=False)
class Result(ABC):
    """A frozen result.

    A subclass is a frozen dataclass that says what it prints in `_describe`; everything else follows from its fields.
    """

    _picture: ClassVar[str | None] = None
    """Name of the function of `caltest.plotting` that draws it."""
    _derived: ClassVar[tuple[str, ...]] = ()
    """Properties that `to_dict` holds besides the fields."""
    _left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that `to_dict` leaves out because they are large."""

    @abstractmethod
    def _describe(self) -> Description:
        """Return title, conclusion, tables, remarks and notes."""

    def __str__(self) -> str:
        return to_text(self._describe())

    def _repr_html_(self) -> str:
        return to_html(self._describe())

    def __repr__(self) -> str:
        """Return the fields that fit into two lines, as code."""
        shown: list[str] = []
        for name in self._names():
            value = getattr(self, name)
            text = f"{name}={describe(value)}"
            if isinstance(value, np.ndarray) or len(text) > _LONGEST or "\n" in text:
                continue
            if sum(map(len, shown)) + len(text) > 2 * _LONGEST:
                break
            shown.append(text)
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects, ready for strict JSON; infinities and NaN become None.

        Returns
        -------
        dict
            Fields and derived numbers by name; large arrays such as null distributions are left out.
        """
        return {name: to_plain(getattr(self, name)) for name in (*self._names(), *self._derived)}

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a tidy pandas frame: one row here, one per cell, model or test where there are several.

        Returns
        -------
        pandas.DataFrame
            The frame.
        """
        import pandas as pd

        single = {name: value for name, value in self.to_dict().items() if not isinstance(value, dict | list)}
        return pd.DataFrame([single])

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result, where a picture exists.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            What to draw into; new axes by default.
        **options
            Passed to the function of `caltest.plotting`.

        Returns
        -------
        matplotlib.axes.Axes
            What was drawn into.

        Raises
        ------
        NotImplementedError
            If there is no picture of this result.
        """
        if self._picture is None:
            msg = f"there is no picture of {type(self).__name__}."
            raise NotImplementedError(msg)
        # By name: pictures stand above results, and are loaded when one is drawn.
        draw = getattr(import_module("caltest.plotting"), self._picture)
        return draw(self, ax, **options)

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the fields that are printed and written."""
        return [f.name for f in fields(cls) if not f.name.startswith("_") and f.name not in cls._left_out]
