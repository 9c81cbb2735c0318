"""``caltest leaderboard FILE FILE ...``: many models on the same observations, one file each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from caltest.cli._compare import read_models
from caltest.cli._messages import refuse_if, say_written, show, wrapped
from caltest.cli._options import (
    FILES,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    chosen,
    computing,
    facts_of,
    parse_level,
    parse_measures,
    problem_of,
)
from caltest.cli._report import check_page

WORSE = 1  # exit code
_EXAMPLES = """
examples:
  caltest leaderboard logistic.csv forest.csv network.csv
  caltest leaderboard models/*.parquet --by log_score,brier --plot board.png
  caltest leaderboard models/*.csv --by log_score,KS -o board.html
  caltest leaderboard models/*.csv --by log_score --model network   # exit code 1 if a model is better than network
"""


def add_to(commands: Any) -> None:
    """Add ``leaderboard`` to the commands of a parser."""
    board = add_command(
        commands,
        "leaderboard",
        _run,
        help="rank many models, with confidence sets of the ranks",
        description="Rank models on the same observations, one file of predictions each: which may be the best, which "
        "pairs are told apart, and which ranks each model may have, by one measure or several.",
        epilog=_EXAMPLES,
    )
    add = board.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"two or more of {FILES}")
    words = "measures, separated by commas: log_score, brier, accuracy, l2 (default: log_score,brier,l2); any error, "
    words += 'such as KS or "ECE(EqualWidth(15))", has values and tests of calibration, but no ranks'
    add("--by", action="extend", type=parse_measures, metavar="MEASURES", help=words)
    words = "exit with status 1 if another model is shown to be better than this one, a file without its suffix, by "
    add("--model", metavar="NAME", help=f"{words}the first measure")
    words = "confidence level of the sets of all ranks together (default: %(default)s)"
    add("--confidence-level", type=parse_level, default=0.95, metavar="LEVEL", help=words)
    add_option(board, "--resamples", "number of draws (default: %(default)s)", default=999)
    words = "where to write an HTML page; its scores are divided into miscalibration and discrimination"
    add("-o", "--output", type=Path, metavar="PAGE.html", help=words)
    add("--title", metavar="TEXT", default="Which model is the best?", help="heading of the page")
    add_option(board, "--json")
    add_option(board, "--plot", "draw the confidence sets of the ranks")
    add_file_options(board)
    add_draws(board, "the draws")


def _run(options: argparse.Namespace) -> int:
    refuse_if(len(options.files) < 2, f"two files or more are ranked, got {options.files[0]} alone")
    refuse_if(options.folds, "models of several folds are compared by 'caltest compare': leave out --folds")
    if options.output is not None:
        check_page(options.output)
    files = read_models(options, paired=True)
    known = ", ".join(files)
    refuse_if(options.model is not None and options.model not in files, f"--model: {options.model} is none of {known}")
    first = next(iter(files.values()))

    from caltest.ranking import leaderboard

    board = leaderboard(
        first.y_true,
        {name: file.y_prob for name, file in files.items()},
        **({} if options.by is None else {"by": options.by}),
        **(_divided() if options.output is not None else {}),
        **problem_of(first),
        **chosen(options, "confidence_level"),
        **computing(options),
    )
    ranks = bool(board.rankings)
    refuse_if(options.model is not None and not ranks, "--model needs a measure that ranks, such as --by log_score")
    worse: tuple[str, ...] = ()
    said = "More: --by MEASURES, -o PAGE.html, --plot FILE, --json."
    if options.model is not None:
        worse = board.rankings[0].better_than(options.model)
        said = board.rankings[0].about(options.model)
    data = [{"source": name, **facts_of(file)} for name, file in files.items()]
    show(options, f"{board}\n\n{wrapped([said])}", data, **board.to_dict())
    if options.plot is not None:
        from caltest.plotting._axes import save_drawn
        from caltest.plotting._ranking import figure_size, number_of_panels

        save_drawn(
            lambda figure: board.plot(figure.subplots(1, number_of_panels(board))), figure_size(board), "", options.plot
        )
        say_written("picture of the ranks", options.plot)
    if options.output is not None:
        from caltest.page import write_leaderboard

        how = {"title": options.title, "model": options.model, "command": options.command}
        write_leaderboard(board, options.output, **how)
        say_written("page", options.output)
    return WORSE if worse else 0


def _divided() -> dict[str, Any]:
    """Return the option by which scores are divided on a page."""
    from caltest.recalibration import TemperatureScaling

    return {"recalibrator": TemperatureScaling()}
