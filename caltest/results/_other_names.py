"""Names that things had in an earlier form of caltest: asking for them is answered with the names that they have now.

Names of arguments are answered by `caltest.predictions.inputs._refusals`.
"""

from __future__ import annotations

import lazy_loader

TYPE_CHECKING = False  # as in typing, which takes longer to import than caltest itself
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAMES = {
    ("", "Groups"): "ClassGroups",
    ("", "track"): "training_track",
    ("comparison", "FoldComparison"): "comparison.ModelComparison",
    ("comparison", "FoldDifferences"): "comparison.DifferenceResult",
    ("clinical", "Measure"): "estimation.Measure",
    ("comparison", "track"): "training_track",
    ("estimation", "overconfidence"): "estimation.overconfidence_score",
    ("estimation", "underconfidence"): "estimation.underconfidence_score",
    ("hypothesis_tests", "FoldTable"): "hypothesis_tests.CalibrationTable",
    ("hypothesis_tests", "FoldTests"): "results.TestResult",
    ("predictions", "Groups"): "ClassGroups",
    ("recalibration", "load"): "recalibration.load_recalibrator",
}
"""By the room that had a name, the top being "", and the name: what has its place."""

_ENDS = {"high": "upper", "low": "lower"}
_BOUNDED = ("bar", "calibrated", "confidence", "error", "frequency")

ATTRIBUTES = {
    **_ENDS,
    **{f"{name}_{end}": f"{name}_{now}" for name in _BOUNDED for end, now in _ENDS.items()},
    "comparisons": "folds",
    "flags": "notes",
    "floor_high": "floor_upper",
    "half_width": "critical_value",
    "impossible_rows": "impossible_samples",
    "interpretation": "conclusion",
    "monte_carlo_error": "numerical_error",
    "null_law": "origin",
    "pvalue_corrected": "pvalue_adjusted",
    "reading": "conclusion",
    "rows": "tests",
    "tables": "folds",
    "tests": "folds",
}
"""The name that an attribute of results has now, for those results that have it."""

OF_CLASSES = {
    ("AutomaticCalibration", "method_"): "recalibrator_",
    ("CalibrationReport", "to_html"): "write_page(y_true, y_prob, path, report=report)",
    ("CumulativeGraph", "confidence_level"): "alpha (1 - confidence_level)",
    ("CumulativeGraphs", "confidence_level"): "alpha (1 - confidence_level)",
    ("RepairedModel", "l2"): "miscalibration.root",
    ("RepairedModel", "l2_interval"): "miscalibration.root_interval",
    ("RepairedModel", "l2_text"): "miscalibration.root_text",
    ("RepairedModel", "method"): "recalibrator",
    ("RepairedModel", "squared_l2"): "miscalibration.estimate",
    ("RepairedModel", "squared_l2_interval"): "miscalibration.confidence_interval",
    ("Sample", "cells"): "cells_of(sample, partition)",
    ("TrainingTrack", "error_statistic"): "statistics",
    ("TrainingTrack", "test_statistic"): "test_statistics",
}
"""By class and attribute what has its place, where this depends on the class."""

ROOMS = (
    *("clinical", "ranking"),
    *("predictions", "statistics", "hypothesis_tests", "estimation", "comparison", "resampling", "results"),
    *("recalibration", "simulation", "streaming", "plotting", "scorers", "page", "datasets", "torch"),
)


def attach(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a room, which finds its names by the stub beside its file.

    A name that it had before, and at the top one of the rooms, is answered with what has its place. Each line of a stub
    imports one name, so that it is read without `ast`, which takes longer to import than all that is loaded here.
    """
    found: dict[str, list[str]] = {".": []}
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        for _, module, _, name, *_ in (line.split() for line in stub if line.startswith("from ")):
            found.setdefault(module, []).append(name)
    rooms = found.pop(".")
    find, listed, names = lazy_loader.attach(room, rooms, {module[1:]: each for module, each in found.items()})
    own = room.partition(".")[2]

    def __getattr__(name: str) -> Any:  # noqa: N807
        try:
            return find(name)
        except AttributeError:
            now = NAMES.get((own, name))
            if now is not None:
                msg = f"{room}.{name} is called caltest.{now} now."
            else:
                rooms = () if own or name.startswith("_") else ROOMS
                there = next((each for each in rooms if name in find(each).__all__), None)
                if there is None:
                    raise
                msg = f"{room}.{name} is in {room}.{there}: {room}.{there}.{name}."
            raise AttributeError(msg, name=name) from None

    return __getattr__, listed, names


class AnswersOtherNames:
    """What has attributes that were called otherwise."""

    if not TYPE_CHECKING:  # it would hide every misspelt attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that says what has the place of the attribute, if it had one before."""
            kind = type(self)
            if hasattr(kind, name):
                return object.__getattribute__(self, name)  # a property raised AttributeError: raise it again
            raise AttributeError(answer_attribute(kind, name), name=name, obj=self)


def answer_attribute(kind: type, name: str) -> str:
    """Return what is said of an attribute that objects of a class lack."""
    now = OF_CLASSES.get((kind.__name__, name), ATTRIBUTES.get(name, ""))
    if (kind.__name__, name) in OF_CLASSES or hasattr(kind, now) or now in getattr(kind, "__dataclass_fields__", ()):
        return f"{kind.__name__}.{name} is called {now} now."
    return f"{kind.__name__!r} object has no attribute {name!r}"
