"""``caltest report FILE [FILE ...] -o report.html``: one page on a model, or on several."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._compare import read_models
from caltest.cli._messages import refuse_if, say_written
from caltest.cli._options import (
    FILES,
    about_file,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    add_time_options,
    computing,
    lead_column,
    parse_names,
    problem_of,
    reading_of,
    times_of,
    typed_test,
)
from caltest.cli._scan import is_state
from caltest.results import CalibrationWarning

if TYPE_CHECKING:
    from caltest.predictions import PredictionFile
    from caltest.results import BeforeAfter, Verdict

_MOST_COLUMNS = 4  # whose levels are subgroups, unless they are named
_EXAMPLES = """
examples:
  caltest report predictions.csv -o report.html
  caltest report logistic.csv forest.csv -o models.html --title "Risk of sepsis"
  caltest report predictions.parquet --groups patient_id -o report.html
  caltest report forecasts.csv --time date --lead 7D -o report.html
  caltest report hospital.csv --by site,age --repair -o report.html
"""


def add_to(commands: Any) -> None:
    """Add ``report`` to the commands of a parser."""
    report = add_command(
        commands,
        "report",
        _run,
        help="write a page that sums a model up",
        description="Write one self-contained HTML page about the predictions of a model, or of several models with "
        "the same observations, for the person who decides: the decision in a word, what is wrong, where and for whom, "
        "what to do, and what could be missed. All tests, how to read them and how to repeat them are folded below. "
        "The page needs no network and opens in any browser.",
        epilog=_EXAMPLES,
    )
    add = report.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"{FILES}; several for a comparison")
    add("-o", "--output", type=Path, required=True, metavar="PAGE.html", help="where to write the page")
    add("--title", metavar="TEXT", help="heading of the page (default: the name of the file)")
    words = (
        "columns whose values are subgroups, separated by commas; they must not depend on the labels (default: up to "
    )
    words += f"{_MOST_COLUMNS} other columns that make subgroups, if there is one file)"
    add("--by", dest="subgroup", type=parse_names, action="extend", metavar="COLUMNS", help=words)
    add("--repair", action="store_true", help="show what recalibration achieves on held-out folds")
    add_option(report, "--resamples", "number of Monte Carlo draws (default: 9,999, fewer for large data)")
    add_option(report, "--alpha")
    add_file_options(report)
    add_time_options(report)
    add_draws(report, "the Monte Carlo draws")


def _run(options: argparse.Namespace) -> int:
    page = options.output
    state = next((file for file in options.files if is_state(file)), None)
    refuse_if(
        options.folds,
        "a page is about one model, not about one for each fold: leave out --folds, or write a page for each fold",
    )
    check_page(page)
    refuse_if(
        options.groups and (options.time or options.lead),
        "a page knows how observations depend on each other in groups or in time: leave out --groups, or --time and "
        "--lead; 'caltest test' takes both",
    )
    refuse_if(
        state is not None,
        f"{state} is a state that 'caltest scan' wrote, and a page needs observations; 'caltest test' reads it",
    )
    files = read_models(options, paired=True)

    from caltest.page._page import write_page_of

    several = len(files) > 1
    models = [
        _model(name, file, path, options, several=several)
        for (name, file), path in zip(files.items(), options.files, strict=True)
    ]
    how = {"title": options.title, "command": options.command}
    write_page_of(models, page, **how, **computing(options))
    say_written("page", page)
    return 0


def check_page(page: Path) -> None:
    """Refuse a path that cannot be that of a page."""
    refuse_if(not page.parent.is_dir(), f"the folder {page.parent} of the page does not exist")
    refuse_if(
        page.suffix.lower() not in {".html", ".htm"},
        f"-o must name a page such as PAGE.html, got {page}; a browser prints the page to PDF",
    )


def _model(name: str, data: PredictionFile, path: Path, options: argparse.Namespace, *, several: bool) -> Any:
    """Return what a file holds, with the names that it has there."""
    from caltest.hypothesis_tests._subgroups import levels_of_columns
    from caltest.page._answer import Model

    found = levels_of_columns(data.subgroup)
    if options.subgroup is None and not several and str(path) != "-":
        found = _other_levels(data, path, options)
    source = "standard input" if str(path) == "-" else path.name
    in_words = partial(about_file, data=data, source=source, path=path, typed=typed_test(options))
    design = {**problem_of(data), **times_of(data, options)}
    repaired = _repaired(data, design, in_words, options) if options.repair else None
    return Model(name if several else "", data.y_true, data.y_prob, design, in_words, found, repaired)


def _repaired(
    data: PredictionFile, design: dict[str, Any], in_words: Callable[[Verdict], Verdict], options: argparse.Namespace
) -> BeforeAfter:
    """Return what recalibration by the method that is chosen within each fold achieves."""
    from caltest.recalibration import AutomaticCalibration, recalibration_study

    method = AutomaticCalibration()
    study = recalibration_study(
        data.y_true, {"the model": data.y_prob}, {"auto": method}, **design, **computing(options)
    )
    found = study.before_after("auto")
    after = in_words(found.after)
    about = after.subject
    how = about.command("repair", "-o repaired.csv") if about and about.path else ""
    return replace(found, after=after, further=f"{how} writes them." if how else "")


def _other_levels(data: PredictionFile, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the levels of the first columns that make subgroups: no ids, no constants, no copies of labels."""
    from caltest.hypothesis_tests._subgroups import levels_of_columns
    from caltest.predictions.files._read import read_columns

    offered = None if data.offered_time is None else data.offered_time.column
    used = {data.label, *data.prob, options.groups, options.sample_weight, options.time, lead_column(options), offered}
    found: dict[str, Any] = {}
    if "layout" in data.reading:  # its rows are no observations, or its columns no values of them
        return found
    columns = read_columns(path, len(data.y_true), as_text=False, rows=data.rows, **reading_of(options))
    for name, column in columns.items():
        if name in used or len(found) == _MOST_COLUMNS:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CalibrationWarning)
                (levels,) = levels_of_columns({name: column}).values()
        except (ValueError, TypeError):
            continue
        if any(len(set(data.y_true[inside].tolist())) > 1 for inside in levels.values()):
            found[name] = levels
    return found
