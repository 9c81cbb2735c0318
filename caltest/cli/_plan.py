"""``caltest plan FILE``: how many observations are needed, from predictions that need no labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import show, wrapped
from caltest.cli._options import (
    FILES,
    OF_VALUES,
    add_command,
    add_draws,
    add_option,
    add_reading,
    add_values,
    chosen,
    parse_level,
    parse_number,
    parse_thresholds,
    reading_of,
    reread,
)
from caltest.predictions.inputs._refusals import refuse, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SIZES = ("points", "slope", "factor", "temperature")

_EXAMPLES = """
examples:
  caltest plan predictions.csv                which error these observations find
  caltest plan predictions.csv --points 2     and how many find 2 percentage points
  caltest plan predictions.csv --slope 0.8 --power 0.9
  caltest plan rare.csv --factor 1.5          true risks of 1.5 times the predicted
  caltest plan predictions.csv --groups patient_id --icc 0.05
  caltest plan risks.csv --widths usual --thresholds 0.1

The file needs no labels: the number follows from the predictions. An error is
wrong predictions of one kind: all too low or too high, too extreme, or not
extreme enough.
"""


def add_to(commands: Any) -> None:
    """Add ``plan`` to the commands of a parser."""
    plan = add_command(
        commands,
        "plan",
        _run,
        help="how many observations are needed to find an error of the predictions",
        description="Tell which error of the predictions a test of so many observations finds, and how many "
        "observations find an error of a size that matters. The file needs no labels.",
        epilog=_EXAMPLES,
    )
    plan.add_argument("file", type=Path, metavar="FILE", help=FILES)
    sizes = plan.add_argument_group("the error that must be found").add_mutually_exclusive_group()
    positive = parse_number(float, lambda value: 0 < value < float("inf"), "a positive number")
    default = "(default: 5; for an event below 5 %%, --factor 1.5)"
    texts = {
        "points": f"mean error of the predictions in percentage points {default}",
        "slope": "calibration slope of two outcomes, below 1 where predictions are too extreme",
        "factor": "true risks divided by the predicted ones, of the rarer of two outcomes",
        "temperature": "temperature of several classes, above 1 where predictions are over-confident",
    }
    for name in _SIZES:
        sizes.add_argument(f"--{name}", type=positive, metavar="X", help=texts[name])
    words = "probability with which the error is found (default: %(default)s)"
    plan.add_argument("--power", type=parse_level, default=0.8, metavar="P", help=words)
    precise = plan.add_argument_group(
        "a validation whose intervals have wanted widths (Riley et al. 2021)"
    ).add_argument
    words = "widths by measure, such as calibration_slope=0.3,c_statistic=0.1; or: usual"
    precise("--widths", type=_parse_widths, metavar="WIDTHS", help=words)
    words = "share of patients with the event (default: the mean of the predictions)"
    precise("--prevalence", type=parse_level, metavar="P", help=words)
    words = "risks from which on patients would be treated, for the net benefit"
    precise("--thresholds", type=parse_thresholds, metavar="RISKS", help=words)
    add_option(plan, "--alpha", "level of the test (default: %(default)s)")
    add_option(plan, "--json", "print JSON instead of text")
    add_option(plan, "--prob", "probability columns, separated by commas (guessed by default)")
    words = "group of each observation, such as its patient, if labels of a group may be alike"
    plan.add_argument("--groups", metavar="COLUMN", help=words)
    share = parse_number(float, lambda value: 0 <= value <= 1, "a number from 0 to 1")
    words = "intraclass correlation of the labels of a group (default: %(default)g, the best case)"
    plan.add_argument("--icc", type=share, default=0.0, metavar="X", help=words)
    add_values(plan)
    add_reading(plan)
    add_draws(plan, "the simulated labels")


def _parse_widths(text: str) -> dict[str, float]:
    """Return the widths of measures; none are the usual ones."""
    pairs = {} if text == "usual" else dict(part.partition("=")[::2] for part in text.split(","))
    try:
        return {name.strip(): float(width) for name, width in pairs.items()}
    except ValueError:
        refuse(
            f"must be usual, or widths such as calibration_slope=0.3,c_statistic=0.1, got {text!r}",
            argparse.ArgumentTypeError,
        )


def _run(options: argparse.Namespace) -> int:
    from caltest import detectable_error
    from caltest.clinical import clinical_sample_size
    from caltest.hypothesis_tests import plan_sample_size
    from caltest.hypothesis_tests._detectable_error_result import TOLERATED_FACTOR, TOLERATED_POINTS

    names, prob, groups = _read(options)
    how = chosen(options, "power", "alpha", "workers", "rng", "progress")
    asked = {name: value for name in _SIZES if (value := getattr(options, name)) is not None}
    found = [] if asked else [detectable_error(prob, groups=groups, icc=options.icc, **how)]
    if not asked:
        asked = {"factor": TOLERATED_FACTOR} if found[0].is_rare else {"points": TOLERATED_POINTS}
    plan = plan_sample_size(prob, **asked, **how)
    source = "standard input" if str(options.file) == "-" else str(options.file)
    n_groups = None if groups is None else len(set(groups))
    facts = {"source": source, "n_samples": len(prob), "prob": names, "n_groups": n_groups}
    lines = [_head(source, names, prob), *(one.conclusion for one in found), plan.conclusion]
    if groups is not None:
        lines[0] += f" There are {n_groups:,} groups."
        lines[-1] = f"If labels of a group are independent of each other: {lines[-1]}"
        lines += [] if plan.n_samples is None else [_with_groups(groups, options.icc, plan.n_samples)]
    text, precise = wrapped(lines, "\n\n"), {}
    if (options.widths, options.prevalence, options.thresholds) != (None, None, None):
        asked = {"prevalence": options.prevalence, "thresholds": options.thresholds, "alpha": options.alpha}
        slope = 1.0 if options.slope is None else options.slope
        widths = clinical_sample_size(prob, slope=slope, widths=options.widths or None, **asked)
        supposed = "" if groups is None else "If labels of a group are independent of each other:\n\n"
        text, precise = f"{text}\n\n{supposed}{widths}", {"precision": widths.to_dict()}
    show(options, text, facts, detectable=[one.to_dict() for one in found], plan=plan.to_dict(), **precise)
    return 0


def _read(options: argparse.Namespace) -> tuple[list[str], NDArray[Any], NDArray[Any] | None]:
    """Return names and values of the probability columns, and the groups."""
    import numpy as np

    from caltest.predictions.files._read import read_columns, read_probabilities

    given, how = reread(options.file), reading_of(options)
    advice = "name the probability columns with --prob"
    values = chosen(options, *OF_VALUES, "normalise")
    columns, prob = read_probabilities(given, options.prob, (), advice, **values, **how)
    groups = None
    if options.groups is not None:
        others = read_columns(given, len(prob), as_text=True, **how)
        if options.groups not in others:
            refuse(f"{columns.name}: there is no column {options.groups!r}; the columns are {shortened(list(others))}")
        groups = np.asarray(others[options.groups])
    return list(columns.names), prob if prob.shape[1] > 1 else prob[:, 0], groups


def _head(source: str, names: list[str], prob: NDArray[Any]) -> str:
    """Return what was read, as a sentence."""
    from caltest.results._description import counted

    of = f'predicted by "{names[0]}" ({100 * prob.mean():.3g} % on average)'
    if prob.ndim == 2:
        of = f"{prob.shape[1]} classes ({shortened(names)})"
    return f"{source}: {counted(len(prob))}, {of}. No labels are needed."


def _with_groups(groups: NDArray[Any], icc: float, n_samples: int) -> str:
    """Return how many observations are needed if labels of a group are alike, from the number without groups."""
    import numpy as np

    from caltest.results._verdict import round_up

    if not icc:
        return "If all labels of a group are the same: so many groups are needed. The truth lies between the two."
    size = np.unique(groups, return_counts=True)[1]
    effect = 1 + (np.square(size).sum() / size.sum() - 1) * icc
    return (
        f"With the intraclass correlation {icc:g} up to {effect:.3g} times as many are needed, about "
        f"{round_up(n_samples * effect):,} in groups such as these."
    )
