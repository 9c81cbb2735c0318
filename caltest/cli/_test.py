"""``caltest test [FILE]``: one model's predictions in a file."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from caltest import predictions, statistics
from caltest.cli._options import (
    DISTANCES,
    LENSES,
    PARTITIONS,
    Words,
    add_columns,
    add_draws,
    as_labels,
    check_plot_path,
    parse_distance,
    parse_lens,
    parse_partition,
)
from caltest.datasets import load_cifar10_vgg16
from caltest.estimation._reliability_curve import reliability_curve
from caltest.hypothesis_tests._calibration_report import calibration_report
from caltest.hypothesis_tests._calibration_table import CalibrationTable, calibration_table
from caltest.plotting._reliability import save_reliability
from caltest.predictions._files import PredictionFile, read_predictions
from caltest.results._progress import ProgressBar

BUNDLED = "bundled CIFAR-10 predictions of a VGG-16 network"


def add_command(commands: Any) -> None:
    """Add ``test`` to the commands of a parser."""
    test = commands.add_parser(
        "test",
        help="test a file of predictions for calibration",
        description="Test predicted probabilities for calibration: through the whole prediction, the confidence and "
        "every class, or through one lens. Without FILE, the bundled predictions are tested.",
    )
    add = test.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help="CSV or TSV with a header, Parquet, NPZ or NPY")
    add_columns(test)
    add("--lens", type=parse_lens, metavar="LENS", help=f"test through one lens: {', '.join(LENSES)}")
    add("--statistic", choices=_STATISTICS, default="omnibus", help="test statistic (default: %(default)s)")
    add("--partition", type=parse_partition, metavar="CELLS", help=f"cells: {', '.join(PARTITIONS)} (default: tree)")
    add("--distance", type=parse_distance, default="total_variation", help=f"one of {', '.join(DISTANCES)}")
    add("--resamples", type=int, metavar="B", help="number of draws (default: 9999, 999 with --all)")
    add("--all", action="store_true", help="one table of many errors and tests (calibration_report)")
    add_draws(test)
    add("--plot", type=Path, metavar="FILE.png", help="write a reliability diagram")
    add("--json", action="store_true", help="print JSON instead of a table")
    test.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.plot is not None:
        check_plot_path(options.plot)
    if options.all and (options.lens or options.partition or options.statistic != "omnibus"):
        msg = "--all has its own lenses and statistics: leave out --lens, --statistic and --partition"
        raise ValueError(msg)
    data = _load(options)
    ece = statistics.ECE(options.partition or predictions.VarianceTree(), options.distance)
    chosen = _STATISTICS[options.statistic](ece)
    common = {"classes": data.classes, "workers": options.workers, "rng": options.seed}
    with ProgressBar("drawing outcomes") as bar:
        progress = bar if sys.stderr.isatty() else None
        if options.all:
            table: CalibrationTable = calibration_report(
                data.y_true,
                data.y_prob,
                n_resamples=999 if options.resamples is None else options.resamples,
                progress=progress,
                **common,
            )
        else:
            table = calibration_table(
                data.y_true,
                data.y_prob,
                lenses=None if options.lens is None else [options.lens],
                statistic=chosen,
                n_resamples=9999 if options.resamples is None else options.resamples,
                progress=progress,
                **common,
            )
    source = BUNDLED if options.file is None else str(options.file)
    print(_as_json(table, data, source) if options.json else _as_text(table, data, source), flush=True)
    if options.plot is not None:
        _plot(options, data)


def _as_text(table: CalibrationTable, data: PredictionFile, source: str) -> str:
    guessed = " (guessed)" if data.label_guessed else ""
    shown = ", ".join(data.prob) if len(data.prob) <= 3 else f"{data.prob[0]} to {data.prob[-1]} ({len(data.prob)})"
    lines = [f"data: {source}, {len(data.y_true)} rows", f"label column: {data.label}{guessed}; probabilities: {shown}"]
    if data.classes is not None:
        lines.append("labels of the columns, in their order: " + ", ".join(map(str, data.classes)))
    lines.append("")
    return "\n".join([*lines, str(table.rows[0] if len(table.rows) == 1 else table)])


def _as_json(table: CalibrationTable, data: PredictionFile, source: str) -> str:
    about = {
        "source": source,
        "n_samples": len(data.y_true),
        "label": data.label,
        "label_guessed": data.label_guessed,
        "prob": list(data.prob),
    }
    return json.dumps({"data": about, **table.to_dict()}, indent=2, allow_nan=False)


def _load(options: argparse.Namespace) -> PredictionFile:
    if options.file is not None:
        data = read_predictions(options.file, options.label, options.prob)
        return data if options.classes is None else replace(data, classes=as_labels(options.classes))
    if options.label or options.prob or options.classes:
        msg = "--label, --prob and --classes need a FILE"
        raise ValueError(msg)
    y_true, y_prob = load_cifar10_vgg16()
    return PredictionFile(y_true, y_prob, None, "labels", False, ("probs",))


def _plot(options: argparse.Namespace, data: PredictionFile) -> None:
    lens = _plot_lens(options.lens)
    if options.lens is not None and lens is None:
        print("the diagram shows the confidence (or the event): this lens may have more outcomes", file=sys.stderr)
    curve = reliability_curve(data.y_true, data.y_prob, classes=data.classes, lens=lens, partition=options.partition)
    save_reliability(curve, options.plot)
    print(f"reliability diagram written to {options.plot}", file=sys.stderr)


def _plot_lens(lens: Any) -> Any:
    """Return the lens if it surely has two outcomes, else None, the curve's own default."""
    two = (predictions.Confidence, predictions.TopRank, predictions.WithinTop, predictions.ClassWise)
    has_two = isinstance(lens, two) or (isinstance(lens, predictions.Groups) and len(lens.groups) == 2)
    return lens if has_two else None


_STATISTICS: Words = {
    "omnibus": lambda ece: statistics.Omnibus((ece, statistics.TemperatureScore(), statistics.ClasswiseKS())),
    "ece": lambda ece: ece,
    "mce": lambda ece: statistics.MCE(ece.partition, ece.distance),
    "ks": lambda _: statistics.KS(),
    "classwise-ks": lambda _: statistics.ClasswiseKS(),
    "temperature-score": lambda _: statistics.TemperatureScore(),
}
