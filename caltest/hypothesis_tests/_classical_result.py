"""Results of classical tests, which are known by a name such as Cox's test: one class for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from caltest.results import TestResult
from caltest.results._description import Description, Table, counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassicalTestResult(TestResult):
    """Result of a test that is known by its name: a `TestResult` that reports as the test does.

    The further numbers of a test are entries of ``derived`` and attributes: ``result.slope``. Each function documents
    those that its result has. The sentences, tables and columns below show them; `to_dict` leaves these out.

    Attributes
    ----------
    kind : str or None
        Form of the test, where its function has several.
    sentences : tuple of str or None
        What the report says after the l2 error; None for the value of the statistic and what is usual under
        calibration.
    table : Table or None
        What is printed in the place of the table of the statistic; None for that table.
    further_tables : tuple of Table
        What is printed after it.
    remarks : tuple of str
        How to read the tables.
    columns : dict of str to array-like
        Columns of `to_frame` where the test has several rows, such as groups; empty where it has one.

    See Also
    --------
    caltest.cox_test : One of the tests that return it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.cox_test(y_true, y_prob[:, 1], rng=0)
    >>> result.kind, round(result.pvalue, 2)
    ('score', 0.39)
    """

    kind: str | None = None
    sentences: tuple[str, ...] | None = None
    table: Table | None = None
    further_tables: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)

    _left_out: ClassVar[frozenset[str]] = TestResult._left_out | {
        "sentences",
        "table",
        "further_tables",
        "remarks",
        "columns",
    }

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each group or scale of the test as a pandas frame; a single row where it has none.

        Returns
        -------
        pandas.DataFrame
            The frame.
        """
        import pandas as pd

        return pd.DataFrame(dict(self.columns)) if self.columns else super().to_frame()

    def _describe(self) -> Description:
        about = f"{self.lens_name}, {counted(self.n_samples)}, {self.n_outcomes} outcomes"
        return replace(super()._describe(), title=f"{self.title} ({about})")

    def _usual_size(self, name: str = "") -> list[str]:
        return super()._usual_size(name) if self.sentences is None else [*self.sentences]

    def _tables(self) -> list[Table]:
        first = super()._tables() if self.table is None else [self.table]
        return [*first, *self.further_tables]

    def _numbers(self) -> list[str]:
        """Return the remarks of the test: its derived numbers are in its sentences and tables."""
        return [*self.remarks]
