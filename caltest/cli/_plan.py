"""``caltest plan FILE``: how many observations are needed, from predictions that need no labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import show, wrapped
from caltest.cli._options import (
    FILES,
    add_command,
    add_draws,
    add_option,
    add_reading,
    chosen,
    parse_level,
    parse_number,
    reading_of,
    reread,
    shortened,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from caltest.hypothesis_tests import DetectableError, SampleSizePlan

_SIZES = ("points", "slope", "factor", "temperature")

_EXAMPLES = """
examples:
  caltest plan predictions.csv                which error these observations find
  caltest plan predictions.csv --points 2     and how many find 2 percentage points
  caltest plan predictions.csv --slope 0.8 --power 0.9
  caltest plan rare.csv --factor 1.5          true risks of 1.5 times the predicted
  caltest plan predictions.csv --groups patient_id

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
    add_option(plan, "--alpha", "level of the test (default: %(default)s)")
    add_option(plan, "--json", "print JSON instead of text")
    add_option(plan, "--prob", "probability columns, separated by commas (guessed by default)")
    words = "group of each observation, such as its patient, if labels of a group may be alike"
    plan.add_argument("--groups", metavar="COLUMN", help=words)
    add_reading(plan)
    add_draws(plan, "the simulated labels")


def _run(options: argparse.Namespace) -> int:
    from caltest import detectable_error
    from caltest.hypothesis_tests import plan_sample_size
    from caltest.hypothesis_tests._detectable_error import TOLERATED_FACTOR, TOLERATED_POINTS

    names, prob, n_groups = _read(options)
    how = chosen(options, "power", "alpha", "workers", "rng", "progress")
    asked = {name: value for name in _SIZES if (value := getattr(options, name)) is not None}
    numbers = [len(prob)] if n_groups is None else [len(prob), n_groups]
    found = [] if asked else [detectable_error(prob, n_samples=number, **how) for number in numbers]
    if not asked:
        asked = {"factor": TOLERATED_FACTOR} if found[0].is_rare else {"points": TOLERATED_POINTS}
    plan = plan_sample_size(prob, **asked, **how)
    source = "standard input" if str(options.file) == "-" else str(options.file)
    facts = {"source": source, "n_samples": len(prob), "prob": names, "n_groups": n_groups}
    text = _as_text(_head(source, names, prob), n_groups, found, plan)
    show(options, text, facts, detectable=[one.to_dict() for one in found], plan=plan.to_dict())
    return 0


def _read(options: argparse.Namespace) -> tuple[list[str], NDArray[Any], int | None]:
    """Return names and values of the probability columns, and the number of groups."""
    import numpy as np

    from caltest.predictions.files._read import read_columns, read_probabilities

    given, how = reread(options.file), reading_of(options)
    advice = "name the probability columns with --prob"
    columns, prob = read_probabilities(given, options.prob, (), advice, normalise=options.normalise, **how)
    n_groups = None
    if options.groups is not None:
        others = read_columns(given, len(prob), as_text=True, **how)
        if options.groups not in others:
            msg = f"{columns.name}: there is no column {options.groups!r}; the columns are {shortened(list(others))}"
            raise ValueError(msg)
        n_groups = len(np.unique(others[options.groups]))
    return list(columns.names), prob if prob.shape[1] > 1 else prob[:, 0], n_groups


def _head(source: str, names: list[str], prob: NDArray[Any]) -> str:
    """Return what was read, as a sentence."""
    from caltest.results._description import counted

    of = f'predicted by "{names[0]}" ({100 * prob.mean():.3g} % on average)'
    if prob.ndim == 2:
        of = f"{prob.shape[1]} classes ({shortened(names)})"
    return f"{source}: {counted(len(prob), ',')}, {of}. No labels are needed."


def _as_text(head: str, n_groups: int | None, found: list[DetectableError], plan: SampleSizePlan) -> str:
    if n_groups is None:
        return wrapped([head, *(one.conclusion for one in found), plan.conclusion], "\n\n")
    apart, alike = "If labels of a group are independent of each other:", "If all labels of a group are the same:"
    lines = [f"{head} There are {n_groups:,} groups."]
    lines += [f"{when} {one.conclusion}" for when, one in zip((apart, alike), found, strict=False)]
    lines.append(f"{apart} {plan.conclusion}")
    if plan.n_samples is not None:
        lines.append(f"{alike} so many groups are needed. The truth lies between the two.")
    return wrapped(lines, "\n\n")
