"""Lists of recalibration methods: their names, what is refused, and their fits without warnings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from caltest.predictions.inputs._models import validate_names
from caltest.predictions.inputs._validation import require
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.study._study_entries import BEFORE
from caltest.results import CalibrationWarning


def default_methods() -> list[Recalibrator]:
    """Return the methods of a study unless others are given."""
    from caltest import recalibration as methods

    return [
        methods.TemperatureScaling(),
        methods.VectorScaling(),
        methods.DirichletCalibration(),
        methods.PlattScaling(),
        methods.BetaCalibration(),
        methods.IsotonicCalibration(),
        methods.HistogramBinning(),
        methods.ScalingBinning(),
        methods.SplineCalibration(),
    ]


def named_methods(recalibrators: Any) -> dict[str, Recalibrator]:
    """Return the methods by name: their own code unless they are given names."""
    if isinstance(recalibrators, Recalibrator | str) or not isinstance(recalibrators, Mapping | Sequence | None):
        msg = f"`recalibrators` must be a sequence of methods such as [TemperatureScaling()], got {recalibrators!r}."
        raise TypeError(msg)
    listed = default_methods() if recalibrators is None else recalibrators
    methods = list(listed.values()) if isinstance(listed, Mapping) else list(listed)
    validate_methods(methods, "recalibrators")
    names = list(listed) if isinstance(listed, Mapping) else names_of_methods(methods)
    validate_names(names, "recalibrators")
    if not names or BEFORE in names:
        msg = f'`recalibrators` must hold at least one method, none of them named "{BEFORE}", got {names}.'
        raise ValueError(msg)
    return dict(zip(names, methods, strict=True))


def validate_methods(methods: Any, argument: str) -> None:
    """Refuse what is no recalibration method on probabilities."""
    for method in methods:
        must = f"`{argument}` must hold methods such as caltest.recalibration.TemperatureScaling()"
        require(isinstance(method, Recalibrator), must, method, right_type=False)
        if method.input != "probabilities":
            msg = f"`{argument}` must hold methods on probabilities, got {method!r}: leave out `input`."
            raise ValueError(msg)


def names_of_methods(methods: Sequence[Recalibrator]) -> list[str]:
    """Return the methods as the code that makes them, in one line; equal ones are numbered."""
    shown = [" ".join(repr(method).split()) for method in methods]
    return [name if shown.count(name) == 1 else f"{name} {shown[: i + 1].count(name)}" for i, name in enumerate(shown)]


def on_indices(method: Recalibrator, n_classes: int) -> Recalibrator:
    """Return a method, not yet fitted, whose labels are class indices."""
    return clone(method).set_params(classes=list(range(n_classes)))


def fit_quietly(
    method: Recalibrator, values: NDArray[Any], outcome: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> tuple[Recalibrator, list[str]]:
    """Return a clone of a method that is fitted to class indices, and its cautions."""
    with warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", CalibrationWarning)
        fitted = on_indices(method, values.shape[1]).fit(values, outcome, weight)
    found = []
    for caution in cautions:
        if issubclass(caution.category, CalibrationWarning):
            found.append(str(caution.message))
        else:
            warnings.warn_explicit(caution.message, caution.category, caution.filename, caution.lineno)
    return fitted, found
