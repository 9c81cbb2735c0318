"""What every result has in common: it prints, shows in notebooks, turns into a dictionary and is documented."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from caltest.results._description import Description, show_columns
from caltest.results._naming import describe
from caltest.results._note import Note
from caltest.results._other_names import AnswersOtherNames
from caltest.results._plain import to_plain
from caltest.results._text import to_html, to_text

if TYPE_CHECKING:
    import pandas as pd


class ConfidenceInterval(NamedTuple):
    """Ends of an interval: ``low`` and ``high``.

    See Also
    --------
    caltest.l2_interval : A function that returns an interval.

    Examples
    --------
    >>> interval = ConfidenceInterval(0.1, 0.3)
    >>> interval.low, interval.high, interval[0]
    (0.1, 0.3, 0.1)
    """

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"


def flat_columns(arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and columns of arrays; one with several columns, "array", has the names "array_0", "array_1", ..."""
    for name, values in arrays.items():
        if np.ndim(values) == 2:
            yield from ((f"{name}_{k}", column) for k, column in enumerate(values.T))
        else:
            yield name, values


_LONGEST = 100  # characters of a line in `repr`, which has about two


@dataclass(frozen=True, eq=False, repr=False)
class Result(AnswersOtherNames, ABC):
    """A frozen result.

    A subclass is a frozen dataclass that says what it prints in `_describe`; everything else follows from its fields.
    One of which there is a picture has ``plot = Picture(...)``.

    Attributes
    ----------
    class_columns : dict or None
        Name of the column of each label, in the order of the classes, if the predictions had named columns.

    See Also
    --------
    TestResult : The result of a test.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> isinstance(result, Result), sorted(result.to_dict())[:3]
    (True, ['alpha', 'components', 'conclusion'])
    """

    class_columns: Mapping[Any, Any] | None = field(default=None, kw_only=True)
    _input_notes: tuple[Note, ...] = field(default=(), kw_only=True)

    _derived: ClassVar[tuple[str, ...]] = ()
    """Properties that `to_dict` holds besides the fields."""
    _left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that `to_dict` leaves out because they are large."""
    _of_folds: ClassVar[frozenset[str]] = frozenset()
    """What `to_dict` holds only of results that have ``folds``."""
    _columns: ClassVar[tuple[str, ...]] = ()
    """Arrays of one length that are the columns of the frame; without them the frame has the single numbers."""

    def of_inputs(self, columns: Mapping[Any, Any], notes: tuple[Note, ...]) -> Self:
        """Return the result with the columns of the classes, and notes on what was passed."""
        if not columns and not notes:
            return self
        own = "notes" if any(each.name == "notes" for each in fields(self)) else "_input_notes"
        more: dict[str, Any] = {"class_columns": dict(columns) or None, own: (*getattr(self, own), *notes)}
        return replace(self, **more)

    @abstractmethod
    def _describe(self) -> Description:
        """Return title, conclusion, tables, remarks and notes."""

    def __str__(self) -> str:
        return to_text(self._description())

    def _repr_html_(self) -> str:
        return to_html(self._description())

    def _description(self) -> Description:
        """Return what is shown, with the columns of the classes."""
        found = self._describe()
        columns = [show_columns(self.class_columns)] if self.class_columns else []
        further = [note for note in self._input_notes if note not in found.notes]
        return replace(found, remarks=[*columns, *found.remarks], notes=[*found.notes, *further])

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
            Fields and derived numbers by name; large arrays such as null distributions are left out, and so is
            ``class_columns`` where columns had no names.
        """
        named = {str(label): str(name) for label, name in (self.class_columns or {}).items()}
        lacking = frozenset() if getattr(self, "folds", ()) else self._of_folds
        names = (name for name in (*self._names(), *self._derived) if name not in lacking)
        found = {name: to_plain(getattr(self, name)) for name in names}
        return found | {"class_columns": named} if named else found

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a tidy pandas frame: one row here, one per cell, model or test where there are several.

        Returns
        -------
        pandas.DataFrame
            The frame.
        """
        import pandas as pd

        if self._columns:
            return pd.DataFrame(dict(flat_columns({name: getattr(self, name) for name in self._columns})))
        single = {name: value for name, value in self.to_dict().items() if not isinstance(value, dict | list)}
        return pd.DataFrame([single])

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of the fields that are printed and written."""
        hidden = cls._left_out | {"class_columns"}
        return [f.name for f in fields(cls) if not f.name.startswith("_") and f.name not in hidden]
