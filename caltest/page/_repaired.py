"""What recalibration achieves on held-out folds, in the numbers of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caltest.hypothesis_tests import CalibrationTable, calibration_table
from caltest.hypothesis_tests._evidence import typical_error
from caltest.recalibration import AutomaticCalibration, recalibration_study
from caltest.results._description import Table

_METHOD = "auto"


@dataclass(frozen=True, eq=False)
class Repaired:
    """The numbers of the answer before and after recalibration.

    Attributes
    ----------
    sentences : sequence of str
        What held-out folds show.
    table : Table
        The numbers before and after.
    details : str
        What was achieved, with accuracy and scores.
    """

    sentences: Sequence[str]
    table: Table
    details: str

    @classmethod
    def of(cls, before: CalibrationTable, options: Mapping[str, Any]) -> Repaired:
        """Return what recalibration achieves where every fold is predicted by a map fitted to the others.

        ``options`` are the data, their design and how tests are computed.
        """
        given = {key: value for key, value in options.items() if key != "y_prob"}
        methods = {_METHOD: AutomaticCalibration()}
        study = recalibration_study(models={"the model": options["y_prob"]}, recalibrators=methods, **given)
        after = calibration_table(y_prob=study.predict(_METHOD), **given)
        said = [f"After recalibration on held-out folds: {study.row(_METHOD).conclusion}"]
        if not study.is_recommended(_METHOD):
            said.append("It is not shown that recalibration makes these predictions better.")
        return cls(said, _side_by_side(numbers_in_words(before), numbers_in_words(after)), study.achieved(_METHOD))


def numbers_in_words(table: CalibrationTable) -> dict[str, str]:
    """Return the numbers of a verdict by name, with the typical error also where calibration is not rejected."""
    size = table[0].l2_error
    typical = [] if size is None else [typical_error(size)]
    return {number.name: number.shown for number in (*table.verdict.numbers, *typical) if number.meaning}


def _side_by_side(before: Mapping[str, str], after: Mapping[str, str]) -> Table:
    names = dict.fromkeys([*before, *after])
    return Table(("", "before", "after"), [(name, before.get(name, "-"), after.get(name, "-")) for name in names])
