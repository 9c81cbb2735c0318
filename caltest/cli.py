"""The command line: ``caltest test [FILE]``, ``caltest study ...``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import caltest
from caltest import _study_command, distances, lenses, partitions, statistics, trees
from caltest._files import PredictionFile, read_predictions
from caltest._progress import ProgressBar
from caltest.datasets import load_cifar10_vgg16
from caltest.plotting.reliability import picture_formats, save_reliability
from caltest.reliability import reliability_curve
from caltest.report import calibration_report
from caltest.table import CalibrationTable, calibration_table

BUNDLED = "bundled CIFAR-10 predictions of a VGG-16 network"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 2 bad input.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line arguments; those of the process by default.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"caltest: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _run_test(options: argparse.Namespace) -> None:
    if options.plot is not None:
        _check_plot_path(options.plot)
    if options.all and (options.lens or options.partition or options.statistic != "omnibus"):
        msg = "--all has its own lenses and statistics: leave out --lens, --statistic and --partition"
        raise ValueError(msg)
    data = _load(options)
    ece = statistics.ECE(options.partition or trees.VarianceTree(), options.distance)
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
        return data if options.classes is None else replace(data, classes=_labels(options.classes))
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
    two = (lenses.Confidence, lenses.TopRank, lenses.WithinTop, lenses.ClassWise)
    has_two = isinstance(lens, two) or (isinstance(lens, lenses.Groups) and len(lens.groups) == 2)
    return lens if has_two else None


def _check_plot_path(path: Path) -> None:
    if path.suffix.lstrip(".").lower() not in picture_formats():
        msg = f"--plot must name a picture such as FILE.png, got {path}"
        raise ValueError(msg)
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        msg = f"--plot: cannot write to {path}"
        raise ValueError(msg)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="caltest", description="May predicted probabilities be taken at their word?")
    parser.add_argument("--version", action="version", version=f"caltest {caltest.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    test = commands.add_parser(
        "test",
        help="test a file of predictions for calibration",
        description="Test predicted probabilities for calibration: through the whole prediction, the confidence and "
        "every class, or through one lens. Without FILE, the bundled predictions are tested.",
    )
    test.set_defaults(run=_run_test)
    _study_command.add_command(commands)
    add = test.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help="CSV or TSV with a header, Parquet, NPZ or NPY")
    add("--label", metavar="NAME", help="label column (guessed otherwise)")
    add("--prob", metavar="NAMES", type=_names, help="probability columns, separated by commas")
    add("--classes", metavar="NAMES", type=_names, help="labels of these columns, in their order (0, 1, ... otherwise)")
    add("--lens", type=_lens, metavar="LENS", help=f"test through one lens: {', '.join(_LENSES)}")
    add("--statistic", choices=_STATISTICS, default="omnibus", help="test statistic (default: %(default)s)")
    add("--partition", type=_partition, metavar="CELLS", help=f"cells: {', '.join(_PARTITIONS)} (default: tree)")
    add("--distance", type=_distance, default="total_variation", help=f"one of {', '.join(_DISTANCES)}")
    add("--resamples", type=int, metavar="B", help="number of draws (default: 9999, 999 with --all)")
    add("--all", action="store_true", help="one table of many errors and tests (calibration_report)")
    add("--seed", type=int, default=0, help="seed of the draws (default: %(default)s)")
    add("--workers", type=int, default=-1, help="threads; the answer does not depend on it (default: all processors)")
    add("--plot", type=Path, metavar="FILE.png", help="write a reliability diagram")
    add("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _groups(text: str) -> lenses.Groups:
    return lenses.Groups([[int(k) for k in part.split(",")] for part in text.split("/")])


_Words = dict[str, Callable[..., Any]]
_LENSES: _Words = {
    "canonical": lenses.Canonical,
    "confidence": lenses.Confidence,
    "top-k:2": lambda k: lenses.TopK(int(k)),
    "top-rank:2": lambda r: lenses.TopRank(int(r)),
    "within-top:2": lambda r: lenses.WithinTop(int(r)),
    "class:3": lambda k: lenses.ClassWise(int(k)),
    "groups:0,1/2,3": _groups,
}
_PARTITIONS: _Words = {
    "tree": trees.VarianceTree,
    "tree-min-leaf:100": lambda n: trees.VarianceTree(min_leaf=int(n)),
    "tree-min-split:100": lambda n: trees.VarianceTree(min_split=int(n)),
    "equal-width:15": lambda n: partitions.EqualWidth(_n_cells(n)),
    "equal-mass:15": lambda n: partitions.EqualMass(_n_cells(n)),
    "edges:0.5,0.9": lambda text: partitions.Edges(float(edge) for edge in text.split(",")),
}
_DISTANCES: _Words = {
    "total_variation": distances.total_variation,
    "euclidean": distances.euclidean,
    "squared_euclidean": distances.squared_euclidean,
    "chebyshev": distances.chebyshev,
}
_STATISTICS: _Words = {
    "omnibus": lambda ece: statistics.Omnibus((ece, statistics.TemperatureScore(), statistics.ClasswiseKS())),
    "ece": lambda ece: ece,
    "mce": lambda ece: statistics.MCE(ece.partition, ece.distance),
    "ks": lambda _: statistics.KS(),
    "classwise-ks": lambda _: statistics.ClasswiseKS(),
    "temperature-score": lambda _: statistics.TemperatureScore(),
}


def _lens(text: str) -> Any:
    """Return the lens that a word of the command line means, such as ``class:3``."""
    return _parse(text, _LENSES)


def _partition(text: str) -> Any:
    """Return the partition that a word of the command line means, such as ``equal-width:15``."""
    return _parse(text, _PARTITIONS)


def _n_cells(text: str) -> int | str:
    return text if text == "sqrt" else int(text)


def _parse(text: str, known: _Words) -> Any:
    """Look up ``name`` or ``name:argument``; the keys of ``known`` show the argument by example."""
    name, colon, argument = text.partition(":")
    for example, make in known.items():
        if name == example.partition(":")[0] and bool(colon) == (":" in example):
            try:
                return make(argument) if colon else make()
            except ValueError as error:
                msg = f"{text!r}: {error}"
                raise argparse.ArgumentTypeError(msg) from None
    msg = f"{text!r} is none of {', '.join(known)}"
    raise argparse.ArgumentTypeError(msg)


def _distance(text: str) -> Any:
    if text in _DISTANCES:
        return _DISTANCES[text]
    msg = f"{text!r} is none of {', '.join(_DISTANCES)}"
    raise argparse.ArgumentTypeError(msg)


def _labels(names: list[str]) -> list[Any]:
    """Return labels as they stand in a file: numbers where all are."""
    return [int(name) for name in names] if all(name.lstrip("-").isdecimal() for name in names) else names


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
