"""Which class each named column of predictions belongs to."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

import numpy as np

from caltest.predictions.inputs._refusals import refuse

PREFIXES = ("p_", "prob_", "probs_", "proba_", "probability_", "y_prob_")
"""What may stand before the label in the name of a column of probabilities; none is the beginning of another."""
_BEFORE = re.compile(r"\.pred_(?!class$)(.+)|(?:p|pr|prob|probability)\((.+)\)", re.IGNORECASE)
_BEHIND = re.compile(r"(.+?)[ _](?:prob|proba|probability)", re.IGNORECASE)
"""Other names of a label: `.pred_yes` of R, P(yes), yes_probability."""
_EVENTS: dict[str, tuple[str, ...]] = {
    **{"yes": ("no",), "y": ("n",), "true": ("false",), "t": ("f",), "positive": ("negative",), "pos": ("neg",)},
    **{"event": ("no_event", "nonevent", "non_event", "none"), "case": ("control",), "1": ("0",)},
}
"""Words of an event, and those of its opposite."""

_NEGATIVE = {"no", "false", "negative", "neg", "nonevent", "non_event", "0", "n", "absent", "healthy", "control"}
_POSITIVE = {"yes", "true", "positive", "pos", "event", "1", "y", "present"}
_NUMBERED = re.compile(r"[^0-9]*([0-9]+)")
_TRUTH = {"false": 0, "true": 1}
_WORD_ENDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_SHOWN = 8


@dataclass(frozen=True)
class ClassColumns:
    """The columns of the classes.

    Attributes
    ----------
    order : tuple of int
        Position of the column of each class.
    classes : list or None
        The label of each class; None where the labels are class indices.
    names : dict
        Name of the column of each label.
    positional : bool
        Whether the names say nothing about the labels, so that columns were taken in their order.
    loose : bool
        Whether names and labels are the same but for capitals and blanks.
    """

    order: tuple[int, ...]
    classes: list[Any] | None
    names: dict[Any, Any]
    positional: bool = False
    loose: bool = False


def normal(name: str) -> str:
    """Return a name in small letters, with an underscore where it has blanks, hyphens or points."""
    return re.sub(r"[\s.\-]+", "_", name.strip().lower())


def without_prefix(name: str) -> str:
    """Return a name without a prefix such as "prob_"."""
    bare = next((name[len(prefix) :] for prefix in PREFIXES if normal(name).startswith(prefix)), name)
    found = (_BEFORE.fullmatch(name.strip()) or _BEHIND.fullmatch(name.strip())) if bare == name else None
    return next(part for part in found.groups() if part) if found else bare


def has_prefix(name: str) -> bool:
    """Return whether a name begins as that of a column of probabilities: p_yes, .pred_yes, P(yes)."""
    return normal(name).startswith(PREFIXES) or bool(_BEFORE.fullmatch(name.strip()))


def event_in_words(labels: Sequence[Any]) -> Any:
    """Return which one of two labels is the event, if their words say it: yes of yes and no; otherwise None.

    Examples
    --------
    >>> event_in_words(["No", "Yes"]), event_in_words(["benign", "malignant"])
    ('Yes', None)
    """
    words = {normal(str(label)): label for label in labels}
    if len(labels) != 2 or len(words) != 2:
        return None
    return next((words[e] for e, others in _EVENTS.items() if e in words and any(o in words for o in others)), None)


def names_the_opposite(name: str) -> bool:
    """Return whether the name of a column says that it is the probability of what is not the event."""
    return bool({normal(without_prefix(name)), normal(name)} & _NEGATIVE)


def are_positions(names: Sequence[Any]) -> bool:
    """Return whether names are the numbers from 0, or "column_0" and so on: those of frames without names."""
    return all(type(name) is not str and name == k for k, name in enumerate(names)) or all(
        name == f"column_{k}" for k, name in enumerate(names)
    )


def match_classes(names: Sequence[Any], classes: Sequence[Any]) -> ClassColumns:
    """Return the columns of given classes; names that are not theirs are taken in their order.

    Raises
    ------
    ValueError
        If some names are labels of the classes and others are not, or if they are numbers in another order.
    """
    labels = [_plain(label) for label in classes]
    found = max((_matched(texts, labels) for texts in _readings(names)), key=_count)
    n_found = _count(found)
    if len(names) == len(labels) == n_found:
        order = tuple(found.index(k) for k in range(len(labels)))
        if not are_positions(names) or order == tuple(range(len(labels))):
            return ClassColumns(order, labels, {label: names[k] for label, k in zip(labels, order, strict=True)})
    if len(names) != len(labels):
        missing = [label for k, label in enumerate(labels) if k not in found]
        what = f"no column for {missing[0]!r}" if missing and n_found else f"{_columns(names)}"
        refuse(f"`classes` must name the {len(names)} columns of `y_prob`, got {len(labels)} classes and {what}.")
    numbers = [int(name) for name in names if str(name).isdecimal()]
    out_of_order = numbers != list(range(len(names))) and sorted(numbers) == list(range(len(names)))
    elsewhere = any(k not in {-1, i} for i, k in enumerate(_mentioned(names, labels)))
    if out_of_order or elsewhere or (n_found and (not are_positions(names) or n_found == len(names))):
        refuse(
            f"the columns of `y_prob`, {_shown(names)}, contradict `classes`, {_shown(labels)}. Rename the columns to "
            "the labels, or pass `y_prob.to_numpy()` if the columns are in the order of `classes`."
        )
    return ClassColumns(tuple(range(len(labels))), labels, dict(zip(labels, names, strict=True)))


def match_labels(
    names: Sequence[Any], seen: Sequence[Any], columns: str = "the columns of `y_prob`", holder: str = "`y_true` holds"
) -> ClassColumns:
    """Return the columns of the classes of labels that occur; messages begin with ``columns`` or with ``holder``.

    Raises
    ------
    ValueError
        If a label has no column, a column is no label, or names are words in an order that could mean two things.
    """
    labels = _sorted(seen)
    readings = list(_readings(names))
    texts, found = max(((texts, _matched(texts, labels)) for texts in readings), key=lambda pair: _count(pair[1]))
    n_found = _count(found)
    if n_found == len(labels):
        own = [labels[k] if k >= 0 else text for text, k in zip(texts, found, strict=True)]
        return _by_name(names, own, labels, columns)
    if own := labels_around(names, labels):
        return _by_name(names, own, labels, columns)
    if n_found == 0 and (own := _loosely(readings, labels)):
        return replace(_by_name(names, own, labels, columns), loose=True)
    if n_found or any(map(_are_numbers, readings)) or not _are_indices(labels, len(names)):
        missing = [label for k, label in enumerate(labels) if k not in found]
        refuse(
            f"{holder} the label {missing[0]!r}, which has no column of probabilities; {columns} are "
            f"{_shown(names)}. Name the columns after the labels, or pass `classes`, the label of each column."
        )
    words = [str(text) for text in readings[-1]]
    are_opposite = len(words) == 2 and normal(words[0]) in _NEGATIVE and normal(words[1]) in _POSITIVE
    are_reversed = len(words) == 2 and (normal(words[0]) in _POSITIVE or normal(words[1]) in _NEGATIVE)
    if are_reversed or not (are_opposite or words == sorted(words)):
        refuse(
            f"{columns} are {_shown(names)} and the labels numbers, which may be meant in another order. Pass "
            f"`classes`, the label of each column; it is {_shown(range(len(names)))} if this order is right."
        )
    return ClassColumns(tuple(range(len(names))), None, dict(enumerate(names)), positional=True)


def match_event(name: Any, labels: Sequence[Any], classes: Sequence[Any] | None) -> ClassColumns:
    """Return the classes of one probability, that of the positive class, by its name.

    Raises
    ------
    ValueError
        If it has the name of the other class.
    """
    known = _sorted(labels) if classes is None else [_plain(label) for label in classes]
    readings = list(_readings([name]))
    found = max((_matched(texts, known) for texts in readings), key=_count)[0]
    if found < 0:
        alike = [k for k, label in enumerate(known) if any(_alike(texts[0], label) for texts in readings)]
        found = alike[0] if len(alike) == 1 else -1
    if classes is None and not _are_indices(known, 2):
        if found < 0 or len(known) != 2:
            return ClassColumns((0,), None, {})
        return ClassColumns((0,), [known[1 - found], known[found]], {known[found]: name})
    pair = [0, 1] if classes is None else known
    negative = classes is None and any(normal(str(texts[0])) in _NEGATIVE for texts in readings)
    other = negative or (len(pair) == 2 and 0 in (_matched([name], pair) + _mentioned([name], pair)))
    if other or (found >= 0 and known[found] == pair[0]):
        refuse(
            f"one probability must be that of the positive class, {pair[-1]!r}, but its name is {name!r}. Pass the "
            f"other column{'' if classes is None else f', or classes={pair[::-1]}'}; `y_prob.to_numpy()` has no name."
        )
    return ClassColumns((0,), None if classes is None else known, {pair[-1]: name})


def show_labels(labels: Sequence[Any]) -> str:
    """Return labels as a list, the middle of many left out."""
    return _shown(labels)


def match_nothing(names: Sequence[Any]) -> ClassColumns:
    """Return the columns in the order of what their names mean, where there are no labels."""
    readings = list(_readings(names))
    texts = next((texts for texts in readings if _are_numbers(texts)), readings[-1])
    labels = [int(text) for text in texts] if _are_numbers(texts) else [str(text) for text in texts]
    return _by_name(names, labels, labels, "the columns of `y_prob`")


def _by_name(names: Sequence[Any], found: list[Any], labels: list[Any], shown_as: str) -> ClassColumns:
    """Return the columns in the order of their labels; a column whose label never occurs has its name as label."""
    numeric = all(isinstance(label, int | float) for label in labels)
    columns = list(found)
    if numeric:
        columns = [_number(label, name, names, labels, shown_as) for label, name in zip(found, names, strict=True)]
    if len(set(columns)) < len(columns):
        twice = next(label for label in columns if columns.count(label) > 1)
        refuse(f"{shown_as} are {_shown(names)}: several are named after the label {twice!r}. Each needs one column.")
    ordered = _sorted(columns)
    order = tuple(columns.index(label) for label in ordered)
    classes = None if _are_indices(ordered, len(ordered)) else ordered
    return ClassColumns(order, classes, {label: names[k] for label, k in zip(ordered, order, strict=True)})


def _number(label: Any, name: Any, names: Sequence[Any], labels: list[Any], shown_as: str) -> Any:
    """Return the label of a column where labels are numbers or booleans."""
    text = str(label)
    if isinstance(label, int | float):
        return int(label) if isinstance(label, float) and label == int(label) else label
    if all(each in (0, 1) for each in labels) and text.lower() in _TRUTH:
        return type(labels[0])(_TRUTH[text.lower()])
    if not text.isdecimal():
        refuse(
            f"{shown_as} are {_shown(names)}: {name!r} is not named after a label, others are; the labels are "
            f"{_shown(labels)}. Pass the columns of the classes only."
        )
    return int(text)


def _readings(names: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield what the names may mean: themselves, without their prefixes, and the numbers at their ends."""
    plain = [_plain(name) for name in names]
    yield plain
    texts = [str(name) for name in plain]
    numbered = [_NUMBERED.fullmatch(text) for text in texts]
    if all(numbered):
        yield [match[1] for match in numbered if match]
    bare = [without_prefix(text) for text in texts]
    if all(len(short) < len(text) for short, text in zip(bare, texts, strict=True)):
        yield bare


def labels_around(names: Sequence[Any], labels: Sequence[Any]) -> list[Any]:
    """Return the label of each name if all names are texts of labels with the same text before and behind them.

    Examples
    --------
    >>> labels_around(["forest (dog)", "forest (cat)"], ["cat", "dog"]), labels_around(["pH", "pD"], ["D", "H"])
    (['dog', 'cat'], ['H', 'D'])
    >>> labels_around(["forest (dog)", "forest cat"], ["cat", "dog"]), labels_around(["forest (dog)"], ["f"])
    ([], [])
    """
    # Any text is around a single label.
    if len(labels) < 2 or len(names) != len(labels) or not all(isinstance(one, str) and one for one in labels):
        return []
    for label in labels:
        before, found, behind = str(names[0]).rpartition(label)
        whole = {f"{before}{own}{behind}": own for own in labels}
        if found and set(whole) == set(map(str, names)):
            return [whole[str(name)] for name in names]
    return []


def _loosely(readings: Sequence[Sequence[Any]], labels: Sequence[Any]) -> list[Any]:
    """Return the label of each name, or the name, where all labels are names but for capitals and blanks; else none."""
    for texts in readings:
        like = {normal(str(text)): k for k, text in enumerate(texts)}
        own = {like[normal(label)]: label for label in labels if isinstance(label, str) and normal(label) in like}
        if len(own) == len(labels) and len(like) == len(texts):
            return [own.get(k, text) for k, text in enumerate(texts)]
    return []


def _alike(text: Any, label: Any) -> bool:
    return isinstance(label, str) and normal(str(text)) == normal(label)


def _matched(texts: Sequence[Any], labels: Sequence[Any]) -> list[int]:
    """Return for each text the position of the label that it is, -1 where it is none."""
    position: dict[str, int] = {}
    are_truth = all(isinstance(label, bool | int | float) and label in (0, 1) for label in labels)
    for k, label in enumerate(labels):
        for form in _forms(label, are_truth=are_truth):
            position.setdefault(form, k)
    found = [
        next((position[form] for form in _forms(text, are_truth=are_truth) if form in position), -1) for text in texts
    ]
    return [k if k < 0 or found.index(k) == i else -1 for i, k in enumerate(found)]


def _mentioned(names: Sequence[Any], labels: Sequence[Any]) -> list[int]:
    """Return for each name the position of the only label whose words it holds, such as "Prob Cat"; -1 where unclear.

    Numbers are no words: they count models and folds as well.
    """
    words = [_words(label) if isinstance(label, str | date) else "" for label in labels]
    found = []
    for name in names:
        text = _words(name)
        held = sorted((len(one), k) for k, one in enumerate(words) if one.strip() and one in text)
        clear = held and (len(held) == 1 or held[-1][0] > held[-2][0])
        found.append(held[-1][1] if clear else -1)
    return [k if found.count(k) == 1 else -1 for k in found]


def _words(value: Any) -> str:
    """Return the words of a name in small letters, with a space on each side."""
    return f" {' '.join(word.lower() for word in _WORD_ENDS.split(_forms(value, are_truth=False)[-1]) if word)} "


def plain_dates(labels: Any) -> Any:
    """Return dates of NumPy as those of Python, which names of columns are; other labels as they are."""
    if isinstance(labels, list | tuple) and any(isinstance(label, np.datetime64) for label in labels):
        labels = np.asarray(labels)
    if getattr(getattr(labels, "dtype", None), "kind", "") != "M":
        return labels
    array: Any = np.asarray(labels)
    if array.dtype == object:  # with a time zone
        return array
    fine = np.datetime_data(array.dtype)[0] in {"ns", "ps", "fs", "as"}  # these become integers
    return (array.astype("datetime64[us]") if fine else array).astype(object)


def _forms(value: Any, *, are_truth: bool) -> list[str]:
    """Return the texts of a label; dates have several, and so have booleans, and 0 and 1 where these are all labels."""
    value = _plain(value)
    if isinstance(value, datetime) and value.time() == time.min:
        return [str(value), str(value.date())]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or (are_truth and isinstance(value, int) and value in (0, 1)):
        return [str(int(value)), str(bool(value)), str(bool(value)).lower()]
    return [str(value)]


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as that of Python."""
    return str(value) if isinstance(value, str) else value.item() if hasattr(value, "item") else value


def _count(found: Sequence[int]) -> int:
    return sum(k >= 0 for k in found)


def _are_indices(labels: Sequence[Any], n_classes: int) -> bool:
    return all(isinstance(label, int | float) and label in range(n_classes) for label in labels)


def _are_numbers(texts: Sequence[Any]) -> bool:
    return all(str(text).lstrip("-").isdecimal() for text in texts)


def _sorted(labels: Sequence[Any]) -> list[Any]:
    """Return labels in their order; numbers come before texts."""
    plain = [_plain(label) for label in labels]
    if not all(isinstance(label, Hashable) for label in plain):
        return plain
    return sorted(plain, key=lambda v: (0, v, "") if isinstance(v, int | float) else (1, 0, str(v)))


def _columns(names: Sequence[Any]) -> str:
    return f"the column{'' if len(names) == 1 else 's'} {_shown(names)}"


def _shown(values: Sequence[Any]) -> str:
    shown = [repr(_plain(value)) for value in values]
    return ", ".join(shown if len(shown) <= _SHOWN else [*shown[: _SHOWN - 2], "...", shown[-1]])
