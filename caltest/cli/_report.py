"""``caltest report FILE [FILE ...] -o report.html``: one page on a model, or on several."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from caltest.cli._compare import read_models
from caltest.cli._messages import WORDS
from caltest.cli._options import (
    FILES,
    HelpFormatter,
    add_columns,
    add_design,
    add_draws,
    add_reading,
    design_of,
    parse_count,
    parse_level,
)
from caltest.cli._scan import is_state

_EXAMPLES = """
examples:
  caltest report predictions.csv -o report.html
  caltest report logistic.csv forest.csv -o models.html --title "Risk of sepsis"
  caltest report predictions.parquet --groups patient_id -o report.html
"""


def add_command(commands: Any) -> None:
    """Add ``report`` to the commands of a parser."""
    report = commands.add_parser(
        "report",
        help="write a page that sums a model up",
        description="Write one self-contained HTML page about the predictions of a model, or of several models with "
        "the same observations: the verdict, the worst classes, reliability diagrams, all tests, how to read them, and "
        "how to repeat them. The page needs no network and opens in any browser.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    add = report.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"{FILES}; several for a comparison")
    add("-o", "--output", type=Path, required=True, metavar="PAGE.html", help="where to write the page")
    add("--title", metavar="TEXT", help="heading of the page (default: Is the model calibrated?)")
    add(
        "--resamples",
        type=parse_count,
        default=9999,
        metavar="B",
        help="number of Monte Carlo draws (default: %(default)s)",
    )
    add("--alpha", type=parse_level, default=0.05, metavar="LEVEL", help="level of the tests (default: %(default)s)")
    add_columns(report)
    add_reading(report)
    add_design(report)
    add_draws(report, "the Monte Carlo draws")
    report.set_defaults(run=_run, words=WORDS)


def _run(options: argparse.Namespace) -> int:
    if options.folds:
        msg = "a page is about one model, not about one for each fold: leave out --folds, or write a page for each fold"
        raise ValueError(msg)
    if not options.output.parent.is_dir():
        msg = f"the folder {options.output.parent} of the page does not exist"
        raise ValueError(msg)
    if options.output.suffix.lower() not in {".html", ".htm"}:
        msg = f"-o must name a page such as PAGE.html, got {options.output}; a browser prints the page to PDF"
        raise ValueError(msg)
    state = next((file for file in options.files if is_state(file)), None)
    if state is not None:
        msg = f"{state} is a state that 'caltest scan' wrote, and a page needs observations; 'caltest test' reads it"
        raise ValueError(msg)
    files = read_models(options, paired=True)
    first = next(iter(files.values()))

    from caltest.page import write_page

    write_page(
        first.y_true,
        {name: file.y_prob for name, file in files.items()} if len(files) > 1 else first.y_prob,
        options.output,
        classes=first.classes,
        **design_of(first),
        **({"title": options.title} if options.title else {}),
        n_resamples=options.resamples,
        alpha=options.alpha,
        workers=options.workers,
        rng=options.seed,
        progress=True,
    )
    print(f"page written to {options.output}", file=sys.stderr)
    return 0
