"""Refusals name the argument, what is allowed and the value; names of other packages are answered with ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

_PREDICTIONS = (("y_prob", "y_prob"), ("prob_a", "prob_a and prob_b"), ("models", "models"), ("epochs", "epochs"))
_LABELS = (("y_true", "y_true"), ("y_true_a", "y_true_a and y_true_b"))
_CELLS = (
    ("partition", "partition=EqualWidth({value!r})"),
    ("statistic", "statistic=ECE(EqualWidth({value!r}))"),
    ("statistics", "statistics=[ECE(EqualWidth({value!r}))]"),
)
_STRATEGY = "EqualWidth(15) where others have 'uniform', EqualMass(15) for 'quantile'"
_L2 = "RMSCE(15, 'equal-width') for 'l2' of the confidence"
_NORM = f"ECE(EqualWidth(15)) for 'l1', {_L2}, MCE(EqualWidth(15)) for 'max'"
_ANSWERS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("y_score", "preds", "probs", "predictions"), _PREDICTIONS),
    "y_pred": (("y_prob", "y_prob, with predicted probabilities"), *_PREDICTIONS[1:]),
    **dict.fromkeys(("target", "labels", "y"), _LABELS),
    **dict.fromkeys(("n_bins", "bins", "num_bins"), _CELLS),
    **dict.fromkeys(("from_logits", "logits"), (("input", 'input="logits" for predictions that are logits'),)),
    "strategy": (("partition", f"partition={_STRATEGY}"), ("statistic", f"statistic=ECE(...) with {_STRATEGY}")),
    "norm": (("statistic", f"statistic={_NORM}"), ("statistics", f"statistics=[...] with {_NORM}")),
    "num_classes": (
        ("y_prob", "y_prob with a column for each class"),
        ("classes", "classes, the labels of the columns"),
    ),
    "metric": (("statistic", "statistic={value!r}"), ("statistics", "statistics={value!r}")),
    "random_state": (("rng", "rng={value!r}"),),
    "seed": (("rng", "rng={value!r}"),),
    "groups": (("groups_a", "groups_a and groups_b"),),
    "y_prob": _PREDICTIONS[1:],
    "weights": (("sample_weight", "sample_weight"),),
    "statistic": (("statistics", "statistics"),),
    "confidence_level": (("alpha", "alpha=1 - {value!r}"),),
    "method": (("variance", "variance={value!r}"),),
    "methods": (("recalibrators", "recalibrators"),),
    "n_jobs": (("workers", "workers={value!r}"),),
    "pos_label": (
        ("classes", "classes=[other_label, {value!r}], the label of the event last, with the probability of the event"),
    ),
}
"""For each name the arguments that may answer it, the first one that a function has first, and how it is written."""

_TIMED = "calibration_test, calibration_table, calibration_report, subgroup_tests, reliability_curve and compare_models"
_DESIGN = {
    "sample_weight": "calibration_test, calibration_error and reliability_curve",
    "groups": "calibration_test, reliability_curve and rejection_curve",
    "time": _TIMED,
    "lead": _TIMED,
}
_OF_FUNCTION = {
    ("plan_sample_size", "groups"): "predictions do not tell how alike the labels of a group are. Without it all "
    "labels are independent; if those of a group are all the same, so many groups are needed. The answer lies between "
    "the two",
    ("update", "input"): 'CalibrationMetric(input="logits") is told once what all predictions are',
}
"""Why a function does not take weights, groups or times, where there is something to do about it."""

NO_TIMES = (
    "times to an event (survival outcomes, which may be censored) are not covered: say of each observation whether the "
    "event happened up to a time"
)
"""What is said of numbers that are no labels and may be times."""


def refuse(msg: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise an error with a message; another one that is being handled is not shown."""
    raise error(msg) from None


def refuse_if(wrong: Any, msg: str, *, right_type: Any = True) -> None:
    """Refuse an argument with a message that costs nothing to write, of a wrong type as TypeError."""
    if wrong:
        refuse(msg, ValueError if right_type else TypeError)


def require(holds: Any, must: str, got: Any, *, right_type: Any = True) -> None:
    """Refuse an argument unless a condition holds: "`name` must ..., got ...", of a wrong type as TypeError."""
    if not holds:
        refuse(f"{must}, got {got!r}.", ValueError if right_type else TypeError)


def refuse_other_names(function: str, given: Mapping[str, Any], parameters: Collection[str]) -> None:
    """Raise TypeError if an argument has the name of another package, or weights, groups or times are not taken."""
    for name, value in given.items():
        if name in parameters:
            continue
        answer = next((text for ours, text in _ANSWERS.get(name, ()) if ours in parameters), None)
        if answer is not None:
            refuse(f"{function}() has no `{name}`; use {answer.format(value=value)}.", TypeError)
        if (function, name) in _OF_FUNCTION:
            refuse(f"{function}() takes no `{name}`: {_OF_FUNCTION[function, name]}.", TypeError)
        if name in _DESIGN:
            refuse(f"{function}() takes no `{name}`; {_DESIGN[name]} do.", TypeError)


def shortened(texts: Sequence[Any], most: int = 12) -> str:
    """Return texts separated by commas; the first and the last of many."""
    shown = [text if len(text) <= 60 else f"{text[:60]}..." for text in map(str, texts)]
    if len(shown) <= most:
        return ", ".join(shown)
    return f"{', '.join(shown[:3])}, ..., {shown[-1]} ({len(shown)})"
