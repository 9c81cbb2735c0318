"""``caltest report FILE [FILE ...] -o report.html``: one page on a model, or on several."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from caltest.cli._compare import read_models
from caltest.cli._messages import refuse_if, say_written
from caltest.cli._options import (
    FILES,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    computing,
    problem_of,
)
from caltest.cli._scan import is_state

_EXAMPLES = """
examples:
  caltest report predictions.csv -o report.html
  caltest report logistic.csv forest.csv -o models.html --title "Risk of sepsis"
  caltest report predictions.parquet --groups patient_id -o report.html
"""


def add_to(commands: Any) -> None:
    """Add ``report`` to the commands of a parser."""
    report = add_command(
        commands,
        "report",
        _run,
        help="write a page that sums a model up",
        description="Write one self-contained HTML page about the predictions of a model, or of several models with "
        "the same observations: the verdict, the worst classes, reliability diagrams, all tests, how to read them, and "
        "how to repeat them. The page needs no network and opens in any browser.",
        epilog=_EXAMPLES,
    )
    add = report.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"{FILES}; several for a comparison")
    add("-o", "--output", type=Path, required=True, metavar="PAGE.html", help="where to write the page")
    add("--title", metavar="TEXT", help="heading of the page (default: Is the model calibrated?)")
    add_option(report, "--resamples", "number of Monte Carlo draws (default: 9,999, fewer for large data)")
    add_option(report, "--alpha")
    add_file_options(report)
    add_draws(report, "the Monte Carlo draws")


def _run(options: argparse.Namespace) -> int:
    page = options.output
    state = next((file for file in options.files if is_state(file)), None)
    refuse_if(
        options.folds,
        "a page is about one model, not about one for each fold: leave out --folds, or write a page for each fold",
    )
    refuse_if(not page.parent.is_dir(), f"the folder {page.parent} of the page does not exist")
    refuse_if(
        page.suffix.lower() not in {".html", ".htm"},
        f"-o must name a page such as PAGE.html, got {page}; a browser prints the page to PDF",
    )
    refuse_if(
        state is not None,
        f"{state} is a state that 'caltest scan' wrote, and a page needs observations; 'caltest test' reads it",
    )
    files = read_models(options, paired=True)
    first = next(iter(files.values()))

    from caltest.page import write_page

    write_page(
        first.y_true,
        {name: file.y_prob for name, file in files.items()} if len(files) > 1 else first.y_prob,
        page,
        **problem_of(first),
        **({"title": options.title} if options.title else {}),
        **computing(options),
    )
    say_written("page", page)
    return 0
