"""Which column holds the labels, which the probabilities, and which label each of these belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.files._source import Named
from caltest.predictions.files._table import Table, is_number
from caltest.predictions.files._values import holds_distributions, holds_vectors
from caltest.predictions.inputs._class_columns import (
    event_in_words,
    has_prefix,
    labels_around,
    match_event,
    match_labels,
    names_the_opposite,
    normal,
    without_prefix,
)
from caltest.predictions.inputs._parts import advice_on_groups, names_an_id
from caltest.predictions.inputs._refusals import NO_TIMES, refuse, shortened
from caltest.predictions.inputs._validation import said_if_times

LABEL_NAMES = ("label", "labels", "y_true", "y", "target", "true", "truth", "class", "outcome", "actual")
_LABEL_STEMS: tuple[str, ...] = ("label", "target", "truth", "outcome", "actual", "correct", "died", "death", "dead")
_LABEL_STEMS += ("default", "event", "observ", "readmi", "churn", "respon", "surviv", "relevan", "fraud", "mortal")
_LABEL_STEMS += ("relaps", "convert", "expire", "flag")
LABEL_WORDS = {*LABEL_NAMES, "test", "obs", "gold", "gt", "reference", "expected"}
_TRUE_WORDS = {"true", "truth", "actual", "correct", "observed", "obs", "gold", "gt", "reference", "expected"}
_PREDICTED_WORDS = {"pred", "predict", "predicted", "prediction", "predictions", "yhat", "guess", "answer", "into"}
PROB_NAMES = ("y_prob", "prob", "probs", "proba", "probabilities", "softmax", "predictions", "scores", "p")
PROB_WORDS = {*PROB_NAMES, "probability", "risk", "risks", "score", "pred", "prediction", "predicted", "forecast"}
PROB_WORDS |= {"confidence", "conf", "certainty", "pd", "likelihood", "propensity"}
MISSING = ("NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
"""Words for missing labels, of R, Excel, Python and SQL."""
_PERCENT = 100
_MOST_WORDS = 20  # that stand for probabilities
_FOLD_WORDS = {"fold", "folds", "split"}
_FOLLOWED = {"time", "times", "survival", "futime", "followup"}
_TIME_WORDS = {*_FOLLOWED, "days", "months", "years", "duration"}
_WEIGHT_NAMES = {"weight", "weights", "sample_weight", "w"}


def guess_label(table: Table, prob: Sequence[str] | None) -> str:
    """Return the label column by its name, or as the only one that holds no fractions.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    frame = table.frame
    if len(frame.columns) == 1:
        (only,) = frame.columns
        table.refuse(f"has the single column {only!r}; labels and probabilities are two columns or more")
    free = [name for name in frame.columns if name not in (prob or ()) and not has_prefix(name)]
    candidates = named_as_labels(free)
    if not candidates:
        whole = [name for name in free if frame[name].dtype.kind != "f" and not holds_vectors(table, name)]
        whole = [name for name in whole if not _mostly_numbers(table, name) and not name.startswith("Unnamed: ")]
        named = [name for name in free if _has_label_word(table, name, free) and not PROB_WORDS & words_of(name)]
        whole += [name for name in named if _is_whole(frame[name])]
        candidates = [name for name in whole if _names_columns(table, name, free)]
        candidates = candidates or [n for n in whole if not _is_aside(table, n) or _looks_like_labels(table, n, free)]
        candidates = candidates or whole
        for fits in (_repeats, _is_event, _fits_one_column, _is_no_prediction, _has_label_word, _is_complete):
            candidates = [name for name in candidates if fits(table, name, free)] or candidates
    if not candidates:
        candidates = [name for name in free if _is_whole(frame[name])]
    if not candidates:
        table.refuse(
            "no column looks like labels, which are texts or whole numbers, among "
            f"{shortened(list(frame.columns))}; name it with `label`{_said_of_times(frame.columns)}"
        )
    only = candidates[0]
    is_model = all(name.startswith(only) for name in likely_probabilities(table)) and _is_most_probable(table, only)
    if len(candidates) == 1 and (is_predicted(only) or is_model):
        table.refuse(
            f"the column {only!r} seems to hold predicted classes, and no column labels; name the column of what "
            "happened with `label`",
            label=only,
        )
    if len(candidates) > 1:
        table.refuse(
            f"any of the columns {shortened(candidates)} could hold the labels; name it with `label`",
            label=candidates[0],
        )
    return candidates[0]


def _said_of_times(names: Sequence[str]) -> str:
    """Return that times are not covered if the name of a column has a word for them."""
    return f"; {NO_TIMES}" if _TIME_WORDS & set().union(*map(words_of, names)) else ""


def _is_whole(column: Any) -> bool:
    """Return whether all numbers of a column are whole, as labels that were written as 1.0 are."""
    return column.dtype.kind == "f" and bool((column.dropna() == column.dropna().round()).all())


def named_as_labels(names: Sequence[str]) -> list[str]:
    """Return the names that are usual for labels, the most usual ones first."""
    return [name for known in LABEL_NAMES for name in names if normal(name) == known]


def _is_complete(table: Table, name: str, free: list[str]) -> bool:
    """Return whether a column has a value for every observation, as labels must."""
    return not table.frame[name].isna().any()


def _names_columns(table: Table, name: str, free: list[str]) -> bool:
    """Return whether the values of a column of texts are the names of other columns."""
    values = {str(value) for value in table.frame[name].dropna().unique()}
    are_columns = values <= {other for other in free if other != name} or labels_around(
        likely_probabilities(table), [*values]
    )
    return table.frame[name].dtype.kind not in "iub" and bool(are_columns)


def _fits_one_column(table: Table, name: str, free: list[str]) -> bool:
    """Return whether a column has at most two values, as labels must where one column only holds fractions."""
    known = table.frame[name][~table.frame[name].isin(MISSING)]
    return len(likely_probabilities(table)) != 1 or known.nunique() <= 2


def _looks_like_labels(table: Table, name: str, free: list[str]) -> bool:
    """Return whether texts are yes and no or the like, or as many as there are columns of probabilities."""
    if table.frame[name].dtype.kind in "iub":  # in_hospital_death is no hospital
        return table.frame[name].isin((0, 1)).all() and _has_label_word(table, name, free)
    if table.frame[name].dtype.kind != "O":
        return False
    number = table.frame[name].nunique()
    return _is_event(table, name, free) or number == len(likely_probabilities(table)) > 1


def _repeats(table: Table, name: str, free: list[str]) -> bool:
    """Return whether there are two values or more, of which one occurs twice: else it is a constant, or an id."""
    return bool(1 < table.frame[name].nunique() < max(len(table.frame), 3))


def _is_no_prediction(table: Table, name: str, free: list[str]) -> bool:
    """Return whether a column is not the class that the model predicts: the most probable one, or by its name."""
    if is_predicted(name):
        return False
    if not _is_most_probable(table, name):
        return True
    values, aside = set(table.frame[name].astype(str)), (name, *likely_probabilities(table))
    others = [set(table.frame[other].astype(str)) for other in free if other not in aside]
    return not any(len(other & values) > 1 for other in others)  # then labels are in another column


def _is_most_probable(table: Table, name: str) -> bool:
    """Return whether a column has one value for each class whose probability is the largest of the row."""
    columns = likely_probabilities(table)
    if len(columns) < 2:
        return False
    largest = table.frame[columns].to_numpy(float).argmax(axis=1)
    pairs = {*zip(table.frame[name].astype(str), largest.tolist(), strict=True)}
    return 1 < len(pairs) == len({text for text, _ in pairs}) == len({k for _, k in pairs})


def _is_event(table: Table, name: str, free: list[str]) -> bool:
    """Return whether texts are yes and no or the like."""
    seen = table.frame[name].dropna().unique()
    return table.frame[name].dtype.kind == "O" and event_in_words(list(seen)) is not None


def _has_label_word(table: Table, name: str, free: list[str]) -> bool:
    words = words_of(name)
    return bool(LABEL_WORDS & words) or any(word.startswith(_LABEL_STEMS) for word in words)


def is_true(name: str) -> bool:
    """Return whether the name of a column says that it holds what happened."""
    return bool(words_of(name) & (_TRUE_WORDS | {*LABEL_NAMES})) and not is_predicted(name)


def is_predicted(name: str) -> bool:
    """Return whether the name of a column says that it holds predicted classes."""
    words = words_of(name)
    return bool(words & _PREDICTED_WORDS or name.startswith("I_")) and not words & _TRUE_WORDS  # I_ of SAS: into


def words_of(name: str) -> set[str]:
    """Return the words of a name in small letters, also those that begin with capitals."""
    return set(re.split(r"[^a-z]+", f"{name} {re.sub('(?<=[a-z])(?=[A-Z])', ' ', name)}".lower()))


def fractions(table: Table, names: Sequence[str]) -> list[str]:
    """Return the columns of numbers that are no whole ones by their type, without ids, folds and weights."""
    numeric = [name for name in names if _is_numeric(table.frame[name])]
    return [name for name in numeric if table.frame[name].dtype.kind not in "iub" and not _is_aside(table, name)]


def holds_probabilities(table: Table, name: str) -> bool:
    """Return whether half of the numbers of a column or more are probabilities; an age is not."""
    values = table.frame[name].dropna().astype(float)
    return bool(((values >= 0) & (values <= 1)).mean() >= 0.5)


def likely_probabilities(table: Table) -> list[str]:
    """Return the columns of fractions that may be probabilities, or percentages by their names."""
    floats = fractions(table, list(table.frame.columns))
    named = [name for name in floats if PROB_WORDS & words_of(name) and table.frame[name].max() <= _PERCENT]
    return [name for name in floats if name in named or holds_probabilities(table, name)]


def guess_prob(
    table: Table, label: str, y_true: NDArray[Any], in_words: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Return the probability columns: by their names, as those of the classes, or as all that hold fractions.

    Raises
    ------
    ValueError
        If there is none; if a column seems to be one of them, but holds something that is no number.
    """
    frame = table.frame
    rest = [name for name in frame.columns if name != label]
    numeric = [name for name in rest if _is_numeric(frame[name])]
    floats = fractions(table, rest)
    prefixed = [name for name in rest if has_prefix(name)]
    vectors = [name for name in rest if holds_vectors(table, name)]
    if prefixed:
        chosen = prefixed
    elif vectors and (not floats or any(holds_distributions(table, name) for name in vectors)):
        chosen = [name for name in vectors if normal(name) in PROB_NAMES]
        chosen = chosen or [name for name in vectors if holds_distributions(table, name)] or vectors
        if len(chosen) > 1:
            table.refuse(f"several columns hold vectors: {shortened(chosen)}; name one with `prob`")
        return tuple(chosen)
    else:
        classes = set(map(str, _seen(y_true)))
        meant = [name for name in floats if name in classes or PROB_WORDS & words_of(name)]
        if any(holds_probabilities(table, name) for name in meant):  # then an age or a weight is none of them
            floats = [name for name in floats if name in meant or holds_probabilities(table, name)]
        named = set(floats) | {name for name in numeric if _belongs(table, name, floats, classes)}
        broken = [name for name in rest if name not in numeric and _mostly_numbers(table, name)]
        named |= {name for name in broken if not _is_aside(table, name)}  # refused, with the value that is no number
        chosen = [name for name in rest if name in named]
        inside = [name for name in chosen if name in numeric and frame[name].dropna().astype(float).between(0, 1).all()]
        others = [name for name in chosen if name in numeric and name not in inside]
        if inside and others and not any(PROB_WORDS & words_of(name) for name in others):
            table.refuse(
                f"the columns {shortened(others)} do not hold probabilities, and {shortened(inside)} may; name the "
                "probability columns with `prob`",
                prob=inside,
            )
    named_so = [name for name in rest if PROB_WORDS & words_of(name)]
    if in_words is not None:
        chosen = [name for name in rest if set(map(str, frame[name].dropna().unique())) & set(in_words)] or chosen
    elif not set(chosen) & set(named_so):
        texts = [name for name in named_so if frame[name].dtype.kind == "O" and not holds_vectors(table, name)]
        if len(texts) == 1 and 1 < frame[texts[0]].nunique() <= _MOST_WORDS and not is_predicted(texts[0]):
            seen = sorted(map(str, frame[texts[0]].dropna().unique()))
            table.refuse(
                f"the column {texts[0]!r} holds words ({shortened(seen)}); say which probability each stands for with "
                f"`verbal`, such as {seen[-1]!r}: 0.9"
            )
    if not chosen:
        whole = [name for name in numeric if not _is_aside(table, name)]
        hint = f"; {shortened(whole)} holds whole numbers" if len(whole) == 1 else ""
        cure = {"prob": whole} if len(whole) == 1 and _are_percent(frame[whole[0]], whole[0]) else {}
        said = f"no column of probabilities (floats) beside the label {label!r}{hint}"
        table.refuse(f"{said}; name them with `prob`", **cure)
    if len(chosen) == 1 and is_predicted(chosen[0]) and _is_whole(frame[chosen[0]]):
        table.refuse(f"the column {chosen[0]!r} holds predicted classes, 0 and 1; name probabilities with `prob`")
    percent = [name for name in numeric if frame[name].dtype.kind in "iu" and _are_percent(frame[name], name)]
    if not vectors and len(chosen) == 1 and not PROB_WORDS & words_of(chosen[0]) and percent and not prefixed:
        table.refuse(f"any of the columns {shortened([*chosen, *percent])} could be probabilities", prob=chosen)
    return tuple(chosen)


def _are_percent(column: Any, name: str) -> bool:
    """Return whether whole numbers are percentages by their name, or in steps of five; an age is none."""
    inside = bool(column.between(0, _PERCENT).all()) and column.max() > 1
    named = PROB_WORDS & words_of(name) or "%" in name or {"percent", "percentage", "pct"} & words_of(name)
    return inside and bool(named or (column % 5 == 0).all())


def _is_numeric(column: Any) -> bool:
    if column.dtype.kind in "fiub":
        return True
    if column.dtype.kind != "O" or str(column.dtype) in {"str", "string"}:
        return False
    import decimal

    return any(isinstance(cell, decimal.Decimal) for cell in column.head(20))


def _belongs(table: Table, name: str, floats: list[str], classes: set[str]) -> bool:
    """Return whether a column of whole numbers is a probability that happens to be always 0 or 1.

    It is if its name is a class, or a number as those of the other columns are.
    """
    values: NDArray[Any] = table.frame[name].to_numpy()
    if _is_aside(table, name) or not np.isin(values, (0, 1)).all() or not floats:
        return False
    stem = re.fullmatch(r"(.*?)([0-9]+)", name)
    return name in classes or bool(stem and any(re.fullmatch(re.escape(stem[1]) + "[0-9]+", f) for f in floats))


def _mostly_numbers(table: Table, name: str) -> bool:
    """Return whether a column of texts looks like numbers, but for some values."""
    column = table.frame[name]
    if column.dtype.kind != "O" or holds_vectors(table, name):
        return False
    cells = [str(cell).strip() for cell in column.dropna().head(1000)]
    looks = [is_number(cell.removesuffix("%").strip()) for cell in cells]
    broken = [not cell.lstrip("+-").isdecimal() for cell, good in zip(cells, looks, strict=True) if good]
    return sum(looks) >= max(1, len(cells) / 2) and (any(broken) or sum(looks) < len(cells))


def _is_aside(table: Table, name: str) -> bool:
    """Return whether a column has the name of an id, a fold or a weight, or is the number of the row."""
    return bool(
        words_of(name) & _FOLD_WORDS
        or normal(name) in _WEIGHT_NAMES
        or names_an_id(name)
        or normal(name) in {"index", "row"}
        or name.startswith("Unnamed: ")
    )


def notice(table: Table, used: Sequence[str], others: dict[str, str | None]) -> tuple[list[str], list[str]]:
    """Return sentences about columns that are not used: those that matter for the p-value, and the others."""
    warned, said, n_rows = [], [], len(table.frame)
    for name in table.frame.columns:
        if name in used or name in others.values() or holds_vectors(table, name):
            continue
        column = table.frame[name]
        n_different = len(set(map(str, column.tolist()))) if column.dtype.kind == "O" else column.nunique()
        found = f"{table.name}: the column {name!r} has {n_different:,} different values among {n_rows:,} observations."
        varies, repeats = n_different > 1, 1 < n_different < n_rows  # weights of one value change nothing
        if repeats and words_of(name) & _FOLD_WORDS and not others["folds"]:
            warned.append(
                f"{found} If it is the fold of a cross-validation, name it with `folds`: pooled folds mislead."
            )
        elif repeats and names_an_id(name) and not others["groups"]:
            warned.append(f"{found} {advice_on_groups(n_different)}")
        elif varies and normal(name) in _WEIGHT_NAMES and not others["sample_weight"] and column.dtype.kind in "iuf":
            warned.append(f"{found} If these are weights of the observations, name it with `sample_weight`.")
        elif column.dtype.kind in "iuf" and words_of(name) & _FOLLOWED and not column.is_monotonic_increasing:
            warned.append(f"{found} If they say how long each was followed: {NO_TIMES}.")
        else:
            said.append(f"the column {name!r} is not used")
    return warned, said


def guess_time(table: Table, used: Sequence[str]) -> str | None:
    """Return the first column that is not used and holds dates in order; None if there is none."""
    return next((name for name in table.frame.columns if name not in used and _are_dates_in_order(table, name)), None)


def _are_dates_in_order(table: Table, name: str) -> bool:
    import pandas as pd

    column = table.frame[name]
    if holds_vectors(table, name) or column.dtype.kind not in "MO" or column.isna().any():
        return False
    if column.dtype.kind == "O":
        if not re.match(r"\d{4}-\d{2}-\d{2}", str(column.iloc[0])):
            return False
        column = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    return bool(column.is_monotonic_increasing or column.is_monotonic_decreasing) and column.nunique() > 1


class Match(NamedTuple):
    """Labels, the label of each column (None: class indices), and how they were matched."""

    y_true: NDArray[Any]
    classes: list[Any] | None
    by: str


@dataclass(frozen=True)
class Columns(Named):
    """Probability columns: the name of their file, where they stand, and their names if these are known."""

    name: str
    names: tuple[str, ...]
    n_columns: int
    named: bool

    @property
    def bare(self) -> list[str]:
        """Names without prefixes, or the numbers in them if all have one: p0, class_0, y0."""
        numbered = [re.fullmatch(r"[^0-9]*([0-9]+)", name) for name in self.names]
        if all(numbered):
            return [match[1] for match in numbered if match]
        return [without_prefix(name) for name in self.names]

    @property
    def shown(self) -> str:
        """The names, as messages show them."""
        return shortened(list(self.names))


def match_classes(
    y_true: NDArray[Any],
    y_prob: NDArray[Any],
    columns: Columns,
    classes: Sequence[Any] | None,
    class_names: Sequence[str] | None,
) -> Match:
    """Return which label has which column. A refusal names the label with the larger predictions as likely the event.

    Raises
    ------
    ValueError
        If labels and columns contradict each other, or nothing says which column is whose.
    """
    if class_names is not None:
        if classes is not None:
            refuse("`classes` and `class_names` say the same thing in two ways; leave out one of them.")
        return _by_class_names(y_true, columns, list(map(str, class_names)))
    seen = _seen(y_true)
    if classes is not None:
        return _given(y_true, columns, list(classes), seen)
    if columns.n_columns == 1:
        return _event(y_true, columns, seen, max(seen, key=lambda label: float(y_prob[y_true == label].mean())))
    return _several(y_true, columns, seen)


def _seen(y_true: NDArray[Any]) -> list[Any]:
    """Return the different labels in their order."""
    import pandas as pd

    found = pd.unique(pd.Series(y_true)).tolist()
    return sorted(found, key=lambda value: (isinstance(value, str), value))


def _by_class_names(y_true: NDArray[Any], columns: Columns, names: list[str]) -> Match:
    n_classes = max(columns.n_columns, 2)
    if len(set(names)) < len(names) or len(names) != n_classes:
        refuse(
            f"`class_names` must be the {n_classes} different names of the labels 0 to {n_classes - 1}, got {names!r}."
        )
    if y_true.dtype.kind not in "iub" or y_true.min() < 0 or y_true.max() >= n_classes:
        wrong = next(value for value in y_true.tolist() if not isinstance(value, int) or not 0 <= value < n_classes)
        columns.refuse(
            f"`class_names` are the names of the labels 0 to {n_classes - 1}, got the label {wrong!r}; "
            "other labels are named by `classes`, the label of each column"
        )
    renamed = np.array(names, dtype=object)[y_true.astype(np.int64)]
    known = [name for name in (columns.bare, list(columns.names)) if columns.named and set(name) & set(names)]
    if not known:
        return Match(renamed, names, "`class_names`, in the order of the columns")
    if columns.n_columns == 1:
        event = known[0][0]
        return Match(
            renamed, [name for name in names if name != event] + [event], "`class_names` and the column's name"
        )
    if set(known[0]) != set(names):
        columns.refuse(f"`class_names` are {shortened(names)}, and the columns are {columns.shown}; correct one")
    return Match(renamed, known[0], "`class_names` and the names of the columns")


def _given(y_true: NDArray[Any], columns: Columns, classes: list[Any], seen: list[Any]) -> Match:
    """Match by ``classes``, the label of each column; of one column the label of the event."""
    of_text = {"False": False, "True": True} if y_true.dtype.kind == "b" else {str(value): value for value in seen}
    wanted = [of_text.get(str(value), _like(value, y_true)) for value in classes]
    if columns.n_columns == 1:
        if len(wanted) > 1:  # whose probability it is would be a guess
            columns.refuse(
                f"`classes` names {len(wanted)} labels, and the only probability column is "
                f"{columns.names[0]!r}; name the label whose probability it is alone, such as {classes[-1]}"
            )
        return Match(y_true, _with_event(columns, wanted[0], seen), "`classes`")
    texts = list(map(str, classes))
    if columns.named and (_are_reordered(texts, columns.names) or _are_reordered(texts, columns.bare)):
        own = list(columns.names) if sorted(texts) == sorted(columns.names) else columns.bare
        order = ",".join(columns.names[own.index(text)] for text in texts)
        columns.refuse(
            f"the probability columns are {columns.shown}, and `classes` names them in another order; "
            f"`prob` {order} takes them in that order"
        )
    return Match(y_true, wanted, "`classes`")


def _are_reordered(names: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether names are the expected ones in another order."""
    return list(names) != list(expected) and sorted(names) == sorted(expected)


def _like(value: Any, y_true: NDArray[Any]) -> Any:
    """Return a label that does not occur as a number where all others are numbers."""
    is_number = isinstance(value, str) and y_true.dtype.kind in "iu" and value.removeprefix("-").isdecimal()
    return int(value) if is_number else value


def _with_event(columns: Columns, event: Any, seen: list[Any]) -> list[Any]:
    others = [value for value in seen if str(value) != str(event)]
    if len(others) == len(seen) >= 2:
        columns.refuse(f"`classes` names the event {event!r}, and the labels are {shortened(seen)}")
    if len(others) > 1:
        columns.refuse(
            f"one probability column needs labels of two values, the event and its opposite; got {shortened(seen)}"
        )
    return [others[0] if others else _opposite(event), event]


def _opposite(event: Any) -> Any:
    """Return a label for what is not the event, where the file has none."""
    if isinstance(event, bool):
        return not event
    return f"not {event}" if isinstance(event, str) else 1 - event if event in {0, 1} else event - 1


def _event(y_true: NDArray[Any], columns: Columns, seen: list[Any], likely: Any) -> Match:
    """Match the labels to one column, which is the probability of the event."""
    name = columns.names[0]
    if len(seen) > 2:
        columns.refuse(
            f"the labels are {shortened(seen)}, and there is one probability column, {name!r}; labels "
            "of more than two classes need one for each class: name the column of the labels with `label`, correct the "
            f"labels, or name the columns with `prob`{said_if_times(y_true)}"
        )
    is_binary = y_true.dtype.kind in "iub" and set(seen) <= {0, 1}
    if not columns.named and is_binary:
        return Match(y_true, None, "convention: the event is 1 or True")
    try:
        found = match_event(name, seen, None)
    except ValueError:
        columns.refuse(
            f"the labels are {shortened(seen)}, and the only probability column is {name!r}: is it "
            f"the probability of {seen[-1]}? Name the label whose probability it is with `event`, such as {seen[0]}",
            event=seen[0],
        )
    if is_binary:
        return Match(y_true, None, "convention: the event is 1 or True")
    if not columns.named or not found.names:
        event = event_in_words(seen)
        if event is not None and not (columns.named and names_the_opposite(name)):
            return Match(y_true, _with_event(columns, event, seen), f"words: the event is {event} (guessed)")
        columns.refuse(
            f"the labels are {shortened(seen)}, and nothing says whose probability the column {name!r} "
            f"is; name the event with `event`: {' or '.join(map(str, seen))}",
            event=likely,
        )
    return Match(y_true, _with_event(columns, next(iter(found.names)), seen), "the name of the column")


def _several(y_true: NDArray[Any], columns: Columns, seen: list[Any]) -> Match:
    """Match labels to several columns as those of a frame are matched."""
    are_texts = y_true.dtype.kind not in "iub"
    if not columns.named:
        if are_texts:
            columns.refuse(
                f"the labels are {shortened(seen)}, and the columns have no names: name the label of "
                "each column with `classes`, in their order"
            )
        return Match(y_true, None, "the order of the columns")
    if y_true.dtype.kind == "b" and columns.n_columns > 2:
        columns.refuse(
            f"the labels are True and False, and there are {columns.n_columns} probability columns, "
            f"{columns.shown}; name the two of these labels with `prob`"
        )
    try:
        found = match_labels(columns.names, seen, "the probability columns", "the label column holds")
    except ValueError as error:
        own = [[label for label in seen if name.lower().endswith(str(label).lower())] for name in columns.names]
        clear = len(own) == len(seen) == len({str(label) for one in own for label in one}) == sum(map(len, own))
        columns.refuse(str(error), **({"classes": [label for (label,) in own]} if clear else {}))
    if found.positional:
        return Match(y_true, None, "the order of the columns (guessed)")
    label_of = {name: label for label, name in found.names.items()}
    numbers = "the numbers in the names of the columns"
    by = "the names of the columns" if are_texts or y_true.dtype.kind == "b" else numbers
    return Match(
        y_true,
        [label_of[name] for name in columns.names],
        f"{by} but for capitals and blanks (guessed)" if found.loose else by,
    )
