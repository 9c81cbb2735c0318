"""Several labels for each observation: a column of 0 and 1 and a column of probabilities for each label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions.inputs._frames import from_arrow, is_frame, names_of, read_columns
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._scale import PROBABILITIES, doubt_about_logits, probabilities_of_logits
from caltest.predictions.inputs._validation import RANGE_TOLERANCE, SUM_TOLERANCE, said_if_swapped
from caltest.results import Note

_PROB = "(?:y[_ .-]?)?(?:probability|proba|prob|predicted|prediction|pred|score|p)"
_LABEL = "(?:y[_ .-]?)?(?:true|label|target|truth|actual|observed)|y"
_ROLES = {"prob": _PROB, "label": _LABEL}


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """Labels and probabilities of several events, a column for each.

    Attributes
    ----------
    names : tuple of str
        What each label is called.
    label : array of shape (n_samples, n_labels)
        1 if an observation has the label, 0 if not.
    prob : array of shape (n_samples, n_labels)
        The probability of each label.
    known : array of shape (n_samples, n_labels)
        Whether it is known if the observation has the label.
    doubt : Note or None
        That logits look like probabilities or percentages.
    """

    names: tuple[str, ...]
    label: Floats
    prob: Floats
    known: Booleans
    doubt: Note | None = None

    @property
    def are_classes(self) -> bool:
        """Whether each observation has one label, and its probabilities sum to 1, as those of classes."""
        sums = self.prob.sum(axis=1), self.label.sum(axis=1)
        return bool(self.known.all() and all(np.all(np.abs(total - 1) <= SUM_TOLERANCE) for total in sums))


def read_label_columns(y_true: Any, y_prob: Any, kind: str = PROBABILITIES) -> LabelColumns:
    """Return labels and probabilities whose columns are matched by name, or by position where they have none.

    ``kind`` is what predictions are; of logits the logistic function is taken.

    Raises
    ------
    ValueError
        If shapes differ, names contradict each other, a label is neither 0 nor 1, a label is known for no observation,
        or a probability of a known label is missing or lies outside [0, 1].
    """
    y_true, y_prob = from_arrow(y_true), from_arrow(y_prob)
    y_prob = _second_columns(y_prob) if kind == PROBABILITIES else y_prob
    own, given = ([str(name) for name in names_of(table)] if is_frame(table) else [] for table in (y_true, y_prob))
    label, prob = _numbers(read_columns(y_true), "y_true"), _numbers(read_columns(y_prob), "y_prob")
    doubt = None if kind == PROBABILITIES else doubt_about_logits(prob, "y_prob")
    if kind != PROBABILITIES:
        prob = probabilities_of_logits(prob.ravel()).reshape(prob.shape)
    if label.ndim != 2 or not label.size:
        refuse(
            f"`y_true` must have shape (n_samples, n_labels), a column of 0 and 1 for each label, got {label.shape}; "
            "one class for each observation is tested by `calibration_table`."
        )
    require(prob.shape == label.shape, f"`y_prob` must have the shape of `y_true`, {label.shape}", prob.shape)
    for argument, columns in {"y_true": own, "y_prob": given}.items():
        twice = next((name for name in columns if columns.count(name) > 1), None)
        refuse_if(
            twice is not None, f"`{argument}` has several columns of the name {twice!r}; name each after its label."
        )
    if own and given:
        prob = prob[:, _order(own, given)]
    names = tuple(own or given or map(str, range(label.shape[1])))
    known = ~np.isnan(label)
    wrong = np.argwhere(known & (label != 0) & (label != 1))
    if wrong.size:
        row, column = wrong[0]
        refuse(
            f"`y_true` must hold 0, 1, and NaN where a label is not known, got {label[row, column]:g} in row {row} of "
            f"the label {names[column]!r}{said_if_swapped(label[known])}."
        )
    for name, has in zip(names, known.T, strict=True):
        refuse_if(not has.any(), f"`y_true` must have the label {name!r} of some observation, got NaN for all.")
    _refuse_outside(prob, known, names)
    return LabelColumns(names, np.where(known, label, 0.0), np.clip(prob, 0.0, 1.0), known, doubt)


def _refuse_outside(prob: Floats, known: Booleans, names: Sequence[str]) -> None:
    """Refuse probabilities of known labels that are missing or outside [0, 1]."""
    wrong = np.argwhere(known & ~((prob >= -RANGE_TOLERANCE) & (prob <= 1 + RANGE_TOLERANCE)))
    if not wrong.size:
        return
    (row, column), values, hint = wrong[0], prob[known], ""
    if values.min() < 0:
        hint = '; if these are logits, pass input="logits"'
    elif 2 < values.max() <= 100:
        hint = "; if these are percentages, pass y_prob / 100"
    where = f"in row {row} of the label {names[column]!r}"
    refuse(f"`y_prob` must lie in [0, 1], got {prob[row, column]:g} {where}{hint}.")


def _second_columns(prob: Any) -> Any:
    """Return the probabilities of labels out of a list of two columns for each, as scikit-learn's forests return."""
    if isinstance(prob, list | tuple) and all(np.ndim(one) == 2 and np.shape(one)[1] == 2 for one in prob):
        shapes = {np.shape(one) for one in prob}
        if len(shapes) == 1 and shapes.pop()[0] != 2:
            return np.column_stack([np.asarray(one)[:, 1] for one in prob])
    return prob


def _numbers(values: Any, name: str) -> Floats:
    """Return numbers as an array; what is missing becomes NaN."""
    import pandas as pd

    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # scikit-learn's labels may be sparse
        values = values.toarray()
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if name == "y_prob" and array.dtype.kind in "iub":
            what = f"got {array.dtype} values, which look like predicted labels or counts"
            refuse(f"`y_prob` must hold probabilities as floats, {what}.")
        missing = pd.isna(array) if array.dtype == object else False
        return np.array(np.where(missing, np.nan, array), dtype=np.float64)
    except (ValueError, TypeError, RuntimeError) as error:
        refuse(f"`{name}` must hold numbers in columns of one length: {str(error).removesuffix('.')}.")


def _order(own: Sequence[str], given: Sequence[str]) -> list[int]:
    """Return the place of the probabilities of each label; refuse names that do not belong together."""
    if set(own) != set(given):
        labels, probs = ([_stem(name, role)[0] for name in names] for names, role in ((own, "label"), (given, "prob")))
        if sorted(labels) != sorted(probs) or len(set(labels)) < len(labels):
            refuse(
                f"the columns of `y_true` and `y_prob` must have the same names, got {', '.join(own)} and "
                f"{', '.join(given)}. If they are in the same order, pass `y_prob.to_numpy()`."
            )
        return [probs.index(label) for label in labels]
    return [list(given).index(name) for name in own]


def _stem(name: str, role: str) -> tuple[str, bool]:
    """Return a name in small letters without what says that it is a label or a probability, and whether that was there.

    Examples
    --------
    >>> _stem("y_prob_Cat", "prob"), _stem("cat proba", "prob"), _stem("y_cat", "label"), _stem("cat", "label")
    (('cat', True), ('cat', True), ('cat', True), ('cat', False))
    """
    word = _ROLES[role]
    found = re.fullmatch(rf"(?:{word})[_ .-]+(.+)|(.+?)[_ .-]+(?:{word})", name.strip(), re.IGNORECASE)
    return (name.strip().lower(), False) if found is None else ((found[1] or found[2]).lower(), True)


def pair_columns(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the columns of each label of a file, that of the label and that of its probability.

    Columns belong together by their names: ``y_cat`` and ``p_cat``, or ``cat`` and ``cat_prob``. Others are left out.

    Raises
    ------
    ValueError
        If no columns belong together, if a probability has no label, or if it is not clear which one it has.

    Examples
    --------
    >>> pair_columns(["id", "cat", "dog", "cat_prob", "dog_prob"])
    {'cat': ('cat', 'cat_prob'), 'dog': ('dog', 'dog_prob')}
    >>> pair_columns(["p_cat", "y_cat"])
    {'cat': ('y_cat', 'p_cat')}
    """
    advice = f"name them: --label a,b --prob p_a,p_b; the columns are {', '.join(names)}"
    probs = {name: stem for name in names for stem, said in [_stem(name, "prob")] if said}
    labels = {name: _stem(name, "label")[0] for name in names if name not in probs}
    found = {}
    for prob, stem in probs.items():
        own = [name for name, of in labels.items() if of == stem]
        refuse_if(not own, f"the column {prob!r} looks like a probability whose label is in no column; {advice}")
        several = len(own) > 1 or list(probs.values()).count(stem) > 1
        refuse_if(several, f"several columns could be the label or the probability of {stem!r}; {advice}")
        name = own[0] if own[0].lower() == stem else stem
        found[name] = own[0], prob
    refuse_if(not found, f"no columns are those of a label and its probability; {advice}")
    return found
