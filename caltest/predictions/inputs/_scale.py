"""What numbers of predictions are: probabilities, or logits, of which probabilities are made here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import MOST_PERCENT, ROUNDING, SUM_TOLERANCE, is_large, numbers_of, one_of
from caltest.results import Note

PROBABILITIES, LOGITS = INPUTS = "probabilities", "logits"
validate_input = one_of(*INPUTS)
_EXACTLY_1 = 37
"""The logistic function of larger logits is 1 in doubles, which no model means to predict."""
_MANY, _NEARLY_1 = 10, 5
"""So many logits, half of them above this and none below 0, are hardly those of a model."""


def as_probabilities(values: Any, name: str, given: str) -> tuple[Any, Note | None]:
    """Return predictions as probabilities, with a note if they look as if they had been given so.

    Probabilities are returned as they are. ``name`` is that of the argument or of the model.

    Raises
    ------
    ValueError
        If logits are missing, infinite so that their softmax is not defined, or probabilities.
    """
    if validate_input(given, "input") == PROBABILITIES or values is None:
        return values, None
    if hasattr(values, "passes"):
        refuse(f'`{name}` is a PredictionStack, which holds probabilities: PredictionStack(..., input="logits").')
    array = numbers_of(values, name)
    kept = array.dtype.itemsize < np.dtype(float).itemsize and is_large(array)
    array = array.astype(np.float32 if kept else np.float64, copy=False)
    if array.ndim not in {1, 2} or not array.size:
        return array, None  # refused later
    wrong = np.isnan(array)
    if array.ndim == 2:
        wrong |= ~np.isfinite(array) & ~np.isfinite(array.max(axis=1, keepdims=True))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        where = f"row {place[0]}" + (f", column {place[1]}" if array.ndim == 2 else "")
        must = "not be missing" if array.ndim == 1 else "not be missing, and the largest of a row must be finite"
        refuse(f'`{name}` with input="logits" must {must}, got {array[place]} in {where}.')
    if array.ndim == 2 and array.min() >= 0:
        sums = array.sum(axis=1, dtype=np.float64)
        by_chance = "(to logits that are so by chance add 1, which does not change their probabilities)."
        if (np.abs(sums - 1) <= SUM_TOLERANCE).all():
            refuse(f'`{name}` holds probabilities, whose rows sum to 1: leave out input="logits" {by_chance}')
        if np.median(np.abs(sums - 100)) < 1 and array.max() <= MOST_PERCENT:
            refuse(
                f"`{name}` holds percentages, whose rows sum to 100: divide them by 100, and leave out "
                f'input="logits" {by_chance}'
            )
    return probabilities_of_logits(array), None if array.ndim == 2 else doubt_about_logits(array, name)


def doubt_about_logits(logits: NDArray[Any], name: str) -> Note | None:
    """Return a note if all logits of events lie where probabilities or percentages lie; those that are NaN may.

    Numbers from 0 to 37 may be either. They are called percentages if they have two decimals at most, or if half of
    them would be probabilities above 0.993.
    """
    known = logits[~np.isnan(logits)]
    low, high = (known.min(), known.max()) if known.size else (-1, -1)
    if low < 0 or high > MOST_PERCENT:
        return None
    if 1 < high <= _EXACTLY_1:
        rounded = np.abs(known - known.round(2)).max() < ROUNDING
        if known.size < _MANY or not (rounded or np.median(known) > _NEARLY_1):
            return None
    what = "[0, 1], as probabilities" if high <= 1 else "[0, 100], as percentages"
    return Note("C904", f'All values of `{name}` lie in {what} do; they were read with `input="logits"`.')


def probabilities_of_logits(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax of each row of logits; of one dimension or one column the logistic function, in its shape."""
    if logits.ndim == 1 or logits.shape[1] == 1:
        from scipy.special import expit

        found: NDArray[Any] = expit(logits)
        return found
    return softmax_in_place(logits.copy())


def softmax_in_place(logits: NDArray[Any]) -> NDArray[Any]:
    """Replace logits ``(n_samples, n_classes)`` by their probabilities, and return them; one array is made."""
    with np.errstate(over="ignore", invalid="ignore"):  # far below the largest: probability 0; what is NaN stays so
        logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
