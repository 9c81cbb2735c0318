"""``caltest test [FILE]``: is the model calibrated whose predictions a file holds, and by how much not?"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import code_of, refuse_if, say, say_written, show, wrapped
from caltest.cli._multilabel import run_multilabel
from caltest.cli._options import (
    FILES,
    OF_COLUMNS,
    OF_FORMAT,
    OF_TEST,
    about_file,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    add_time_options,
    columns_of,
    computing,
    facts_of,
    given_option,
    guessed_or_named,
    lens_for,
    named_columns,
    parse_count,
    problem_of,
    read_file,
    times_of,
    typed_test,
)
from caltest.cli._scan import is_state, refuse_options_of_files, run_test_of_state
from caltest.predictions.inputs._refusals import shortened
from caltest.results._description import counted

if TYPE_CHECKING:
    from caltest.hypothesis_tests import CalibrationTable
    from caltest.predictions import Lens, PredictionFile
    from caltest.results import Verdict
    from caltest.statistics import Statistic

BUNDLED = "bundled CIFAR-10 predictions of a VGG-16 network"
_DEFAULT, _DEFAULT_ALL = 9999, 999  # draws, unless there are many probabilities
_LARGE_FILE = 20 * 2**20  # bytes: reading takes seconds

_EXAMPLES = """
examples:
  caltest test                                  the bundled predictions
  caltest test predictions.csv                  the answer on one screen
  caltest test predictions.csv --details        every lens and statistic
  caltest test semicolons.csv --sep ";" --decimal ","
  caltest test binary.csv --classes yes         one column, labels yes and no
  zcat predictions.csv.gz | caltest test -      standard input
  caltest test predictions.csv --all            several statistics
  caltest test predictions.csv --lens "ClassWise(dog)" --plot dog.png
  caltest test predictions.csv --statistic "ECE(EqualWidth(15))"
  caltest test predictions.csv --groups patient_id
  caltest test forecasts.csv --time date --lead 7D
  caltest test out_of_fold.csv --folds fold
  caltest test labels.csv --multilabel          several labels for each row
  caltest test predictions.csv --json --exit-code > result.json
  caltest test state.npz                        what 'caltest scan' wrote

statistics:
{statistics}

A lens and a statistic are written as in Python. A class name alone stands for
its defaults: KS is KS(). A statistic that needs two outcomes, such as KS, is
tested on the confidence if there are more classes and no --lens.
"""


def add_to(commands: Any) -> None:
    """Add ``test`` to the commands of a parser."""
    from caltest import statistics

    known = [name for name in dir(statistics) if name[0].isupper() and name != "Statistic"]
    test = add_command(
        commands,
        "test",
        _run,
        help="test whether the predictions in a file are calibrated",
        description="Test whether predicted probabilities are calibrated, and by how much they are not: the whole "
        "prediction, the confidence and every class, or one lens. Without FILE, the bundled predictions are tested.",
        epilog=_EXAMPLES.format(
            statistics=textwrap.fill(", ".join(known), 78, initial_indent="  ", subsequent_indent="  ")
        ),
    )
    add = test.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help=FILES)
    add_option(test, "--lens")
    add_option(test, "--statistic")
    words = "each row has several labels: columns such as y_cat and p_cat, or --label cat,dog --prob p_cat,p_dog"
    add("--multilabel", action="store_true", help=words)
    add("--all", action="store_true", help="a report with one test for each of several statistics")
    add_option(
        test,
        "--resamples",
        f"number of Monte Carlo draws (default: {_DEFAULT}, {_DEFAULT_ALL} with --all or with more than 5 million "
        "probabilities, where draws stop after 100 exceedances)",
    )
    add(
        "--exceedances",
        dest="n_exceedances",
        type=parse_count,
        metavar="H",
        help="stop the draws of a test after H of them that are at least as extreme as the data (default: never, "
        "except for many probabilities)",
    )
    add("--details", action="store_true", help="every lens and statistic, and how the p-values were found")
    add_option(test, "--alpha", "level of the test (default: %(default)s)")
    add_option(test, "--exit-code")
    add_option(test, "--json")
    add_option(test, "--plot", "write a reliability diagram")
    add_file_options(test)
    add_time_options(test)
    add_draws(test, "the Monte Carlo draws")


def _run(options: argparse.Namespace) -> int:
    if options.multilabel:
        return run_multilabel(options)
    refuse_if(
        options.plot is not None and options.folds,
        "--plot draws the predictions of one model: leave out --folds, or test each fold in a file",
    )
    refuse_if(
        options.plot is not None and options.groups and (options.time or options.lead),
        "--plot knows how observations depend on each other in groups or in time, not both: leave out --plot",
    )
    refuse_if(
        options.all and (options.lens or options.statistic),
        "--all has its own lenses and statistics: leave out --lens and --statistic",
    )
    if is_state(options.file):
        refuse_options_of_files(options, (*OF_COLUMNS, "lead", *OF_FORMAT, "all", "n_exceedances", "lens"))
        return run_test_of_state(options)
    data = _load(options)
    lens = lens_for(options.lens, data)
    _announce(data, options, lens)
    with _note_of_compilation():
        table = _test(options, data, lens)
    source = BUNDLED if options.file is None else str(options.file)
    facts = {"source": source, **facts_of(data)}
    verdict = about_file(table.verdict, data, source, options.file, typed_test(options))
    detailed = options.details or options.all
    text = _as_text(table, verdict, data, source, options) if detailed else _first_screen(verdict, data, options)
    show(options, text, facts, verdict=verdict.to_dict(), **table.to_dict())
    if options.plot is not None:
        _plot(options, data, lens, verdict)
    return code_of(table.decision) if options.exit_code else 0


@contextmanager
def _note_of_compilation() -> Iterator[None]:
    """Tell a user at a terminal why the first test takes some seconds."""
    if not sys.stderr.isatty():
        yield
        return
    from caltest._compiled._jit import announced_compilation

    with announced_compilation(lambda: say("note", "compiling for the first use, about 10 s, once")):
        yield


def _load(options: argparse.Namespace) -> PredictionFile:
    if options.file is not None:
        if options.file.is_file() and (size := options.file.stat().st_size) > _LARGE_FILE:
            say("note", f"reading {options.file} ({size / 2**20:.0f} MB)")
        return read_file(options.file, options)
    given = given_option(options, (*OF_COLUMNS, "lead", *OF_FORMAT))
    refuse_if(given, "--label, --prob, --classes, --folds, --groups, --weights, --time, --sep and the like need a FILE")
    from caltest.datasets import load_cifar10_vgg16
    from caltest.predictions import PredictionFile

    y_true, y_prob = load_cifar10_vgg16()
    return PredictionFile(y_true, y_prob, None, "labels", False, ("probs",))


def _announce(data: PredictionFile, options: argparse.Namespace, lens: Lens | None) -> None:
    """Say before the work starts how many draws many probabilities have."""
    import numpy as np

    from caltest.hypothesis_tests._calibration_table import plan_of_table
    from caltest.resampling.engine._stopping import MANY_PROBABILITIES, Stopping
    from caltest.statistics import Omnibus

    number = len(data.y_true) * data.n_classes
    if number <= MANY_PROBABILITIES or data.folds is not None:
        return
    if options.all:
        rule = Stopping.of(options.n_resamples, options.n_exceedances, number, usual=_DEFAULT_ALL)
    else:
        lenses, statistic = _lenses(options, data, lens), options.statistic or Omnibus()
        prob = data.y_prob if data.y_prob.ndim == 2 else np.broadcast_to(data.y_prob[:, None], (len(data.y_prob), 2))
        _, rule, _ = plan_of_table(lenses, statistic, prob, vars(options))
    stop = "all are made"
    if rule.n_exceedances is not None:
        stop = f"those of a test stop after {rule.n_exceedances} that are at least as extreme as the data"
    size = f"{counted(len(data.y_true))} of {data.n_classes} classes"
    say("note", f"{size}: {rule.n_resamples:,} draws at most; {stop} (--resamples, --exceedances)")


def _test(options: argparse.Namespace, data: PredictionFile, lens: Lens | None) -> CalibrationTable:
    from caltest.hypothesis_tests import calibration_report, calibration_table

    common: dict[str, Any] = {**problem_of(data), **times_of(data, options), "folds": data.folds, **computing(options)}
    if options.all:
        return calibration_report(data.y_true, data.y_prob, **common)
    common |= {"lenses": _lenses(options, data, lens), "statistic": options.statistic}
    return calibration_table(data.y_true, data.y_prob, **common)


def _lenses(options: argparse.Namespace, data: PredictionFile, lens: Lens | None) -> list[Lens] | None:
    """Return the lenses of a table; None for all."""
    from caltest.predictions import Confidence

    if lens is None and data.n_classes > 2 and _needs_two_outcomes(options.statistic):
        lens = Confidence()
    return None if lens is None else [lens]


def _needs_two_outcomes(statistic: Statistic | None) -> bool:
    return statistic is not None and any(part.n_outcomes == 2 for part in (statistic, *statistic.components))


def _first_screen(verdict: Verdict, data: PredictionFile, options: argparse.Namespace) -> str:
    """Return the answer on one screen, and what was guessed or named."""
    from caltest.results._description import join

    more = ["--details (every lens and statistic)"]
    if data.folds is None:
        more += [] if options.plot else ["--plot FILE"]
        about = verdict.subject
        if about and about.path and not (options.groups and (options.time or options.lead)):  # which no page knows
            more.append(about.command("report", "-o report.html", without=OF_TEST))
    return f"{verdict}\n\n{wrapped([guessed_or_named(data, options), f'More: {join(more)}.'])}"


def _as_text(
    table: CalibrationTable, verdict: Verdict, data: PredictionFile, source: str, options: argparse.Namespace
) -> str:
    from caltest.results._description import counted
    from caltest.results._text import to_text

    guessed = " (guessed)" if data.label_guessed else ""
    lines = [
        f"Data: {source}, {counted(len(data.y_true))}.",
        f"Label column: {data.label}{guessed}. Probability columns: {shortened(data.prob)}.",
    ]
    named = named_columns(data, options)
    lines += [f"{what}: column {column}." for what, column in named.items() if column]
    lines.append(columns_of(data))
    result = table[0] if len(table) == 1 else table
    return f"{wrapped(lines)}\n\n{to_text(result.described(verdict))}"


def _plot(options: argparse.Namespace, data: PredictionFile, lens: Lens | None, verdict: Verdict) -> None:
    """Draw the reliability diagram of a lens with two outcomes, in the cells (bins) of the statistic if it has any."""
    import numpy as np

    from caltest.estimation import reliability_curve
    from caltest.plotting._reliability import save_reliability

    cells = getattr(options.statistic, "partition", None)
    if lens is not None and lens.induced(np.full((1, data.n_classes), 1 / data.n_classes)).shape[1] > 2:
        say("note", f"the diagram shows the confidence, because {lens} has more than two outcomes")
        lens, cells = None, None
    how: dict[str, Any] = {"lens": lens, "partition": cells, "rng": options.rng}
    if options.time is not None or options.lead is not None:
        how |= times_of(data, options)
    save_reliability(reliability_curve(data.y_true, data.y_prob, **how, **problem_of(data)), options.plot, verdict)
    say_written("reliability diagram", options.plot)
