"""``caltest compare FILE FILE ...``: the predictions of several models, one file each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import refuse_if, say_written, show, wrapped
from caltest.cli._options import (
    FILES,
    PARTITIONS,
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
    named_columns,
    parse_level,
    parse_partition,
    problem_of,
    read_file,
    times_of,
)
from caltest.predictions.inputs._refusals import refuse, shortened
from caltest.results._description import counted

if TYPE_CHECKING:
    from caltest.predictions import PredictionFile

_EXAMPLES = """
examples:
  caltest compare logistic.csv forest.csv
  caltest compare logistic.csv forest.csv network.csv --lens "Confidence()"
  caltest compare a.csv b.csv --lens "ClassWise(dog)" --partition "EqualMass(9)"
  caltest compare a.csv b.csv --folds fold
  caltest compare a.csv b.csv --time date --lead 7D
  caltest compare hospital_a.csv hospital_b.csv --unpaired --plot forest.png
"""


def add_to(commands: Any) -> None:
    """Add ``compare`` to the commands of a parser."""
    compare = add_command(
        commands,
        "compare",
        _run,
        help="compare the calibration of several models",
        description="Compare the calibration of several models, one file of predictions each: every model is tested "
        "and its error is estimated, and every pair of models is compared with a test and an interval. All files hold "
        "the same observations in the same order, unless --unpaired is given.",
        epilog=_EXAMPLES,
    )
    add = compare.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=f"two or more of {FILES}")
    add_option(compare, "--lens")
    words = f"cells (bins) of the error, one of {PARTITIONS} (default: VarianceTree())"
    add("--partition", type=parse_partition, metavar="CELLS", help=words)
    add_option(compare, "--statistic", "statistic of each test (default: Omnibus)")
    add("--correction", default="holm", help="adjustment of the p-values of the models (default: %(default)s)")
    words = "confidence level of the intervals (default: %(default)s)"
    add("--confidence-level", type=parse_level, default=0.95, metavar="LEVEL", help=words)
    add("--unpaired", action="store_true", help="the files hold independent data sets, not the same observations")
    words = "number of Monte Carlo draws and of bootstrap samples (default: %(default)s)"
    add_option(compare, "--resamples", words, default=999)
    add("--details", action="store_true", help="print every test, and the scores of the models")
    add_option(compare, "--json")
    add_option(compare, "--plot", "write a forest plot")
    add_file_options(compare)
    add_time_options(compare)
    add_draws(compare, "the Monte Carlo draws and bootstrap samples")


def _run(options: argparse.Namespace) -> int:
    refuse_if(
        options.folds and (options.unpaired or options.plot is not None),
        "--folds compares models fold by fold on the same observations: leave out --unpaired and --plot",
    )
    refuse_if(
        options.unpaired and (options.time is not None or options.lead is not None),
        "--time and --lead are those of observations that all models share: leave them out, or --unpaired",
    )
    refuse_if(len(_names(options.files)) < 2, f"two files or more are compared, got {options.files[0]} alone")
    files = read_models(options, paired=not options.unpaired)
    first = next(iter(files.values()))

    from caltest.comparison import compare_models
    from caltest.results._decision import level_of

    comparison = compare_models(
        None if options.unpaired else first.y_true,
        {name: (file.y_true, file.y_prob) if options.unpaired else file.y_prob for name, file in files.items()},
        **problem_of(first),
        **({} if options.unpaired else times_of(first, options)),
        lens=lens_for(options.lens, first),
        alpha=level_of(options.confidence_level),
        folds=first.folds,
        **chosen(options, "statistic", "partition", "correction"),
        **computing(options),
    )
    data = [{"source": name, **facts_of(file)} for name, file in files.items()]
    answer = comparison if options.details else comparison.verdict
    more = [] if options.details else ["More: --details (every test, and the scores), --plot FILE."]
    text = f"{answer}\n\n{wrapped([*_columns_of_all(files, options), *more])}"
    show(options, text, data, **comparison.to_dict())
    if options.plot is not None:
        from caltest.plotting._comparison import save_comparison

        save_comparison(comparison, options.plot)
        say_written("forest plot", options.plot)
    return 0


def read_models(options: argparse.Namespace, *, paired: bool) -> dict[str, PredictionFile]:
    """Return what the files of several models hold, by name; they have the same classes and folds.

    Paired files hold the same observations.
    """
    paths = _names(options.files)
    files = {name: read_file(path, options) for name, path in paths.items()}
    first = next(iter(files.values()))
    for name, file in files.items():
        refuse_if(
            file.classes != first.classes,
            f"{name}: the classes are {shortened(list(file.counts))}, in other files {shortened(list(first.counts))}; "
            "choose the same columns in the same order with `prob`, or name the labels with `classes`",
        )
        refuse_if(
            not same_folds(file, first),
            f"{name}: the folds are not those of other files; all models have to be those of the same folds",
        )
        if paired:
            _check_same_labels(name, file, first)
            for what, own, others in (("times", file.time, first.time), ("leads", file.lead, first.lead)):
                same = own is others if own is None or others is None else own.tolist() == others.tolist()
                refuse_if(not same, f"{name}: the {what} are not those of other files")
    return files


def _columns_of_all(files: Mapping[str, PredictionFile], options: argparse.Namespace) -> list[str]:
    """Return which column is what, once for all files where it is the same."""
    said = {}
    for name, file in files.items():
        others = "".join(
            f" {what}: column {column}." for what, column in named_columns(file, options).items() if column
        )
        said[name] = f"Label column: {file.label}.{others} {columns_of(file)}"
    different = [*dict.fromkeys(said.values())]
    return different if len(different) == 1 else [f"{name}: {text}" for name, text in said.items()]


def same_folds(file: PredictionFile, first: PredictionFile) -> bool:
    """Return whether two files divide the observations into the same folds."""
    if file.folds is None or first.folds is None:
        return file.folds is first.folds
    return file.folds.tolist() == first.folds.tolist()


def _names(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files by name: without folder and suffix, where that tells them apart."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    twice = next((name for name in names if names.count(name) > 1), None)
    refuse_if(twice is not None, f"files must differ, got {twice} twice")
    return dict(zip(names, paths, strict=True))


def _check_same_labels(name: str, file: PredictionFile, first: PredictionFile) -> None:
    import numpy as np

    refuse_if(
        len(file.y_true) != len(first.y_true),
        f"{name}: {counted(len(file.y_true))} where others have {len(first.y_true):,}; files of different data sets "
        "need --unpaired",
    )
    wrong = np.flatnonzero(file.y_true != first.y_true)
    if wrong.size:
        row = int(wrong[0])
        refuse(
            f"{name}: label {file.y_true[row]} in row {row} where others have {first.y_true[row]}; all files must hold "
            "the same observations in the same order, or be independent data sets (--unpaired)"
        )
