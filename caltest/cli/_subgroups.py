"""``caltest subgroups FILE --by COLUMNS``: is the model calibrated in every subgroup of the data?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import code_of, refuse_if, say_written, show
from caltest.cli._options import (
    FILES,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    add_time_options,
    chosen,
    columns_of,
    computing,
    facts_of,
    lens_for,
    parse_count,
    parse_names,
    problem_of,
    read_file,
    times_of,
)

if TYPE_CHECKING:
    from caltest.hypothesis_tests import SubgroupTests
    from caltest.predictions import PredictionFile

_EXAMPLES = """
examples:
  caltest subgroups predictions.csv --by site
  caltest subgroups predictions.csv --by site,age --plot subgroups.png
  caltest subgroups predictions.csv --by age --ranges 10
  caltest subgroups predictions.csv --by site,age,sex --depth 2
  caltest subgroups predictions.csv --by site --groups patient_id --json

Every value of a column is a subgroup, and so is a missing value. Many numbers
are divided into --ranges with about as many observations each; of more than 20
texts the rarest are one subgroup. With --depth 2 pairs of columns make segments
too, of 20 observations or more. The columns must not depend on the labels.
"""


_N_RANGES = 4
_ADVICE = (
    "What to do: Do not use these predictions for these subgroups as they are. `caltest repair` recalibrates all "
    "observations by one map. Where subgroups err in different directions, repair the file of each by itself."
)


def add_to(commands: Any) -> None:
    """Add ``subgroups`` to the commands of a parser."""
    subgroups = add_command(
        commands,
        "subgroups",
        _run,
        help="test whether predictions are calibrated in every subgroup, such as site and age",
        description="Test whether predicted probabilities are calibrated within each subgroup of the observations, by "
        "one or several columns of the file. P-values are adjusted for the number of subgroups.",
        epilog=_EXAMPLES,
    )
    add = subgroups.add_argument
    add("file", type=Path, metavar="FILE", help=FILES)
    words = "columns whose values are subgroups, separated by commas; may be repeated"
    add("--by", dest="subgroup", type=parse_names, action="extend", required=True, metavar="COLUMNS", help=words)
    words = "into how many ranges the numbers of a column are divided (default: %(default)s)"
    add("--ranges", type=parse_count, default=_N_RANGES, metavar="K", help=words)
    words = "2 tests the segments of every pair of columns too (default: %(default)s)"
    add("--depth", type=int, choices=(1, 2), default=1, help=words)
    words = "largest number of segments with --depth 2; the smallest are left out (default: 300)"
    add("--max-segments", type=parse_count, metavar="K", help=words)
    add_option(subgroups, "--lens")
    add_option(subgroups, "--statistic")
    words = "adjustment for the number of subgroups: holm (default) or bonferroni, for one column also others; with "
    add("--correction", help=f"{words}--depth 2 min-p (default), holm or bonferroni")
    add_option(subgroups, "--resamples", "number of Monte Carlo draws (default: 9,999, fewer for large data)")
    add_option(subgroups, "--alpha")
    add("--details", action="store_true", help="print all numbers of the tests")
    add_option(subgroups, "--exit-code")
    add_option(subgroups, "--json")
    add_option(subgroups, "--plot", "draw predicted and observed frequencies of the subgroups")
    add_file_options(subgroups)
    add_time_options(subgroups)
    add_draws(subgroups, "the Monte Carlo draws")


def _run(options: argparse.Namespace) -> int:
    from caltest.hypothesis_tests import subgroup_tests
    from caltest.hypothesis_tests._subgroups import judge_levels, levels_of_columns
    from caltest.results._plain import to_plain

    twice = next((name for name in options.subgroup if options.subgroup.count(name) > 1), None)
    refuse_if(twice is not None, f"--by names the column {twice!r} twice")
    data = read_file(options.file, options)
    asked: dict[str, Any] = {
        "folds": data.folds,
        "lens": lens_for(options.lens, data),
        **problem_of(data),
        **times_of(data, options),
        **chosen(options, "statistic", "correction", "max_segments"),
        **computing(options),
    }
    if options.depth == 1:
        refuse_if(options.max_segments is not None, "--max-segments is for --depth 2")
        tests = judge_levels(data.y_true, data.y_prob, levels_of_columns(data.subgroup, options.ranges), **asked)
    else:
        refuse_if(options.ranges != _N_RANGES, f"--depth 2 has {_N_RANGES} ranges; leave out --ranges")
        refuse_if(
            data.folds is not None, "--depth 2 is for one model; leave out --folds, and test the file of each fold"
        )
        tests = subgroup_tests(data.y_true, data.y_prob, subgroup=data.subgroup, depth=2, **asked)
    facts = {"source": str(options.file), **facts_of(data), "subgroup": list(data.subgroup)}
    means = tests.means()
    text = str(tests) if options.details else _as_text(tests, data, options)
    show(options, text, facts, means=to_plain(means), verdict=tests.verdict.to_dict(), **tests.to_dict())
    if options.plot is not None:
        from caltest.plotting._parts import save_parts

        save_parts(tests, options.plot)
        say_written("picture of the subgroups", options.plot)
    return code_of(tests.decision) if options.exit_code else 0


def _as_text(tests: SubgroupTests, data: PredictionFile, options: argparse.Namespace) -> str:
    """Return the answer: what is wrong where, and one table."""
    from caltest.results._description import Description, counted, join
    from caltest.results._text import to_text

    title = f"{options.file}: {counted(len(data.y_true))}, subgroups by {join(options.subgroup)}."
    remarks = [*tests.how_to_read(), columns_of(data), "More: --details (how the p-values were found), --plot FILE."]
    if tests.rejected_tests.any():
        remarks.insert(0, _ADVICE)
    return to_text(Description(title, [tests.conclusion], [tests.table()], remarks, tests.all_notes))
