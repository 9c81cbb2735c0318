"""Calls of what a user passed (a lens, a region, a distance, a calibration function), and checks of what it returns.

Functions are given read-only views: one that writes to its arguments fails instead of changing the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._distances import OF_DIFFERENCES, SCALE_WEIGHTS, Distance, ScaleWeight, validate_distance
from caltest.predictions._lens import Lens, LensLike, outcome_dtype
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import SUM_TOLERANCE

CalibrationFunction = Callable[[Floats], Floats]
Region = Callable[[Floats], Booleans]
"""A function from induced probabilities ``(n_samples, n_outcomes)`` to whether each observation is looked at."""


def call(name: str, function: Callable[..., Any], *arrays: NDArray[Any]) -> Any:
    """Return what a user's function makes of read-only views; ``name`` is that of the argument it was passed as."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    try:
        return function(*views)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        msg = f"`{name}` must not write to its arguments, which belong to the caller; let it copy them first."
        raise ValueError(msg) from error


def apply_calibration_function(calibration_function: CalibrationFunction, prob: Floats, name: str) -> Floats:
    """Call a calibration function and check what it returns; ``name`` is that of the argument."""
    true = _floats(call(name, calibration_function, prob), name)
    require(true.shape == prob.shape, f"`{name}` must return shape {prob.shape}", true.shape)
    valid = (true >= -SUM_TOLERANCE) & (true <= 1 + SUM_TOLERANCE)
    wrong = np.flatnonzero(~valid.all(axis=1) | ~(np.abs(true.sum(axis=1) - 1) <= SUM_TOLERANCE))
    if wrong.size:
        refuse(f"`{name}` must return probabilities that sum to 1, got {true[wrong[0]]}.")
    return true


def apply_lens(lens: LensLike, prob: Floats, outcome: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    """Call a lens and check the form of what it returns; a user's function is called once more with other labels.

    Its probabilities must not change with the labels, and the outcome of an observation not with those of others.
    """
    right_type = callable(lens) and not isinstance(lens, type)
    must = "`lens` must be a lens such as Confidence() or a function of (prob, outcome)"
    require(right_type, must, lens, right_type=False)
    if isinstance(lens, Lens):
        return lens(prob, outcome)
    prob = prob.astype(np.float64, copy=False)
    induced, found = _apply_function(lens, prob, outcome)
    changed = np.arange(len(prob)) % 2 == 0
    again, other = _apply_function(lens, prob, np.where(changed, (outcome + 1) % prob.shape[1], outcome))
    _refuse_other_answer(induced, again)
    if not np.array_equal(found[~changed], other[~changed]):
        refuse(
            "`lens` must make the outcome of an observation from its prediction and its own label alone, but it "
            "changes with the labels of others, or from call to call."
        )
    return induced, found


def _refuse_other_answer(induced: Floats, again: Floats) -> None:
    """Raise ValueError if the probabilities of two calls of a lens with different labels differ."""
    if not np.array_equal(induced, again):
        refuse(
            "`lens` must make its probabilities from predictions alone, but they change with the labels, or from call "
            "to call."
        )


def _apply_function(lens: Callable[..., Any], prob: Floats, outcome: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    """Call a user's lens and check the form of what it returns."""
    returned = call("lens", lens, prob, outcome)
    if not isinstance(returned, tuple) or len(returned) != 2:
        refuse(f"`lens` must return a pair (prob, outcome), got {type(returned).__name__}.")
    induced, found = _floats(returned[0], "lens"), np.asarray(returned[1])
    if induced.ndim != 2 or induced.shape[1] < 2 or found.shape != (len(prob),) or len(induced) != len(prob):
        refuse(
            f"`lens` must return probabilities ({len(prob)}, n_outcomes >= 2) and outcomes ({len(prob)},), "
            f"got {induced.shape} and {found.shape}."
        )
    if found.dtype.kind not in "iub" or found.min() < 0 or found.max() >= induced.shape[1]:
        refuse(
            f"`lens` must return outcomes 0 to {induced.shape[1] - 1}, "
            f"got {found.dtype} from {found.min()} to {found.max()}."
        )
    if not np.isfinite(induced).all():
        refuse(f"`lens` must return finite probabilities, got {induced[~np.isfinite(induced)][0]}.")
    total = induced.sum(axis=1)
    if np.any(np.abs(total - 1) > 2 * SUM_TOLERANCE):
        row = int(np.argmax(np.abs(total - 1)))
        refuse(f"`lens` must return probabilities that sum to 1, got {total[row]:.9g} in row {row}.")
    return induced, found


def apply_distance(distance: Distance, predicted: Floats, observed: Floats) -> Floats:
    """Call a distance of arrays ``(..., n_outcomes)``, whose leading axes broadcast, and check what it returns."""
    validate_distance(distance)
    if distance in OF_DIFFERENCES:  # those of the package return what they should
        return distance(predicted, observed)
    shape = np.broadcast_shapes(predicted.shape, observed.shape)[:-1]
    distances = np.asarray(call("distance", distance, predicted, observed), dtype=np.float64)
    must = f"`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape {shape}"
    require(distances.shape == shape, must, distances.shape)
    refuse_if(np.isnan(distances).any(), "`distance` must return numbers, got nan.")
    return distances


def apply_scale_weight(weight: ScaleWeight, prob: Floats) -> Floats:
    """Call a weight on the probability scale of probabilities of any shape, and check what it returns."""
    function = SCALE_WEIGHTS[weight] if isinstance(weight, str) else weight
    values = np.asarray(call("scale_weight", function, prob), dtype=np.float64)
    must = f"`scale_weight` must return one number or an array of the shape {prob.shape} of its argument"
    require(values.shape in {prob.shape, ()}, must, values.shape)
    wrong = values[~((values >= 0) & (values < np.inf))]
    refuse_if(wrong.size > 0, f"`scale_weight` must return finite numbers >= 0, got {wrong[:1]}.")
    refuse_if(not values.any(), "`scale_weight` must be positive for some prediction, got 0 for all of them.")
    return np.broadcast_to(values, prob.shape)


def apply_region(region: Region, prob: Floats) -> Booleans:
    """Call a region and check that it returns a boolean for every observation."""
    require(callable(region), "`region` must be a function of probabilities", region, right_type=False)
    inside = np.asarray(call("region", region, prob.astype(np.float64, copy=False)))
    if inside.shape != (len(prob),) or inside.dtype.kind != "b":
        refuse(f"`region` must return booleans of shape ({len(prob)},), got {inside.dtype} of shape {inside.shape}.")
    return inside


def outcomes_of_classes(lens: LensLike, prob: Floats) -> NDArray[Any]:
    """Return the outcome of each class through a lens, ``(n_samples, n_classes)``, unsigned integers.

    The shape is ``(1, n_classes)`` where it is the same for every observation. A user's function is called once for
    each class, and refused if its probabilities change with the labels.
    """
    if isinstance(lens, Lens):
        return lens.outcomes(prob)
    n_samples, n_classes = prob.shape
    prob = prob.astype(np.float64, copy=False)
    induced, found = _apply_function(lens, prob, np.zeros(n_samples, dtype=np.int64))
    table = np.empty((n_samples, n_classes), dtype=outcome_dtype(induced.shape[1]))
    table[:, 0] = found
    for k in range(1, n_classes):
        again, table[:, k] = _apply_function(lens, prob, np.full(n_samples, k))
        _refuse_other_answer(induced, again)
    return table


def _floats(values: Any, name: str) -> Floats:
    """Return an array of floats that may be written to: a function may return the view that it was given."""
    try:
        return np.require(values, np.float64, ["W"])
    except (ValueError, TypeError) as error:
        refuse(f"`{name}` must return real numbers: {error}.")
