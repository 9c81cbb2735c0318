"""``caltest compare FILE FILE ...``: the predictions of several models, one file each."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from caltest.cli._options import (
    LENSES,
    PARTITIONS,
    add_columns,
    add_draws,
    as_labels,
    check_plot_path,
    parse_lens,
    parse_partition,
)
from caltest.comparison import compare_models
from caltest.plotting._comparison import save_comparison
from caltest.predictions._files import PredictionFile, read_predictions


def add_command(commands: Any) -> None:
    """Add ``compare`` to the commands of a parser."""
    compare = commands.add_parser(
        "compare",
        help="compare the calibration of several models",
        description="Compare models, one file of predictions each: each beside what it would show if it were "
        "perfect, and every pair by a test of the difference. All files hold the same rows in the same order, unless "
        "--unpaired.",
    )
    add = compare.add_argument
    add(
        "files", nargs="+", type=Path, metavar="FILE", help="CSV or TSV with a header, Parquet, NPZ or NPY; two or more"
    )
    add_columns(compare)
    add("--lens", type=parse_lens, metavar="LENS", help=f"compare through a lens: {', '.join(LENSES)}")
    add("--partition", type=parse_partition, metavar="CELLS", help=f"cells: {', '.join(PARTITIONS)} (default: tree)")
    add("--correction", default="holm", help="correction of p-values over the models (default: %(default)s)")
    add("--level", type=float, default=0.95, help="level of the intervals (default: %(default)s)")
    add("--unpaired", action="store_true", help="every file is a data set of its own, independent of the others")
    add("--resamples", type=int, default=999, metavar="B", help="number of draws (default: %(default)s)")
    add_draws(compare)
    add("--plot", type=Path, metavar="FILE.png", help="write a forest plot")
    add("--json", action="store_true", help="print JSON instead of tables")
    compare.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.plot is not None:
        check_plot_path(options.plot)
    files = {name: _read(path, options) for name, path in _names(options.files).items()}
    first = next(iter(files.values()))
    for name, file in files.items():
        if file.classes != first.classes:
            msg = f"{name}: the classes are {file.classes}, in other files {first.classes}; name them by --classes"
            raise ValueError(msg)
        if not options.unpaired:
            _check_same_labels(name, file, first)
    comparison = compare_models(
        {name: (file.y_true, file.y_prob) if options.unpaired else file.y_prob for name, file in files.items()},
        None if options.unpaired else first.y_true,
        classes=first.classes,
        lens=options.lens,
        partition=options.partition,
        correction=options.correction,
        confidence_level=options.level,
        n_resamples=options.resamples,
        workers=options.workers,
        rng=options.seed,
    )
    print(json.dumps(comparison.to_dict(), indent=2, allow_nan=False) if options.json else comparison, flush=True)
    if options.plot is not None:
        save_comparison(comparison, options.plot)
        print(f"forest plot written to {options.plot}", file=sys.stderr)


def _names(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files by name: without folder and suffix, where that tells them apart."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    if len(set(names)) < len(names):
        msg = f"files must differ, got {next(name for name in names if names.count(name) > 1)} twice"
        raise ValueError(msg)
    return dict(zip(names, paths, strict=True))


def _read(path: Path, options: argparse.Namespace) -> PredictionFile:
    data = read_predictions(path, options.label, options.prob)
    return data if options.classes is None else replace(data, classes=as_labels(options.classes))


def _check_same_labels(name: str, file: PredictionFile, first: PredictionFile) -> None:
    if len(file.y_true) != len(first.y_true):
        msg = f"{name}: {len(file.y_true)} rows where others have {len(first.y_true)}; for other data sets --unpaired"
        raise ValueError(msg)
    wrong = np.flatnonzero(file.y_true != first.y_true)
    if wrong.size:
        row = int(wrong[0])
        msg = (
            f"{name}: label {file.y_true[row]} in row {row} where others have {first.y_true[row]}; all files must hold "
            "the same rows in the same order, or be data sets of their own (--unpaired)"
        )
        raise ValueError(msg)
