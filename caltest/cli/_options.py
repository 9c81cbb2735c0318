"""Options that commands have in common, and what words of the command line mean."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from caltest import predictions
from caltest.plotting._reliability import picture_formats


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which columns of a file are what."""
    add = parser.add_argument
    add("--label", metavar="NAME", help="label column (guessed otherwise)")
    add("--prob", metavar="NAMES", type=parse_names, help="probability columns, separated by commas")
    add(
        "--classes",
        metavar="NAMES",
        type=parse_names,
        help="labels of these columns, in their order (0, 1, ... otherwise)",
    )


def add_draws(parser: argparse.ArgumentParser) -> None:
    """Add the options of everything that draws."""
    add = parser.add_argument
    add("--seed", type=int, default=0, help="seed of the draws (default: %(default)s)")
    add("--workers", type=int, default=-1, help="threads; the answer does not depend on it (default: all processors)")


def check_plot_path(path: Path) -> None:
    """Refuse a picture that cannot be written, before anything is computed."""
    if path.suffix.lstrip(".").lower() not in picture_formats():
        msg = f"--plot must name a picture such as FILE.png, got {path}"
        raise ValueError(msg)
    if not os.access(path if path.exists() else path.parent, os.W_OK) or path.is_dir():
        msg = f"--plot: cannot write to {path}"
        raise ValueError(msg)


def _groups(text: str) -> predictions.Groups:
    return predictions.Groups([[int(k) for k in part.split(",")] for part in text.split("/")])


Words = dict[str, Callable[..., Any]]
LENSES: Words = {
    "canonical": predictions.Canonical,
    "confidence": predictions.Confidence,
    "top-k:2": lambda k: predictions.TopK(int(k)),
    "top-rank:2": lambda r: predictions.TopRank(int(r)),
    "within-top:2": lambda r: predictions.WithinTop(int(r)),
    "class:3": lambda k: predictions.ClassWise(int(k)),
    "groups:0,1/2,3": _groups,
}
PARTITIONS: Words = {
    "tree": predictions.VarianceTree,
    "tree-min-leaf:100": lambda n: predictions.VarianceTree(min_leaf=int(n)),
    "tree-min-split:100": lambda n: predictions.VarianceTree(min_split=int(n)),
    "equal-width:15": lambda n: predictions.EqualWidth(_n_cells(n)),
    "equal-mass:15": lambda n: predictions.EqualMass(_n_cells(n)),
    "edges:0.5,0.9": lambda text: predictions.Edges(float(edge) for edge in text.split(",")),
}
DISTANCES: Words = {
    "total_variation": predictions.total_variation,
    "euclidean": predictions.euclidean,
    "squared_euclidean": predictions.squared_euclidean,
    "chebyshev": predictions.chebyshev,
}


def parse_lens(text: str) -> Any:
    """Return the lens that a word of the command line means, such as ``class:3``."""
    return _parse(text, LENSES)


def parse_partition(text: str) -> Any:
    """Return the partition that a word of the command line means, such as ``equal-width:15``."""
    return _parse(text, PARTITIONS)


def _n_cells(text: str) -> int | str:
    return text if text == "sqrt" else int(text)


def _parse(text: str, known: Words) -> Any:
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


def parse_distance(text: str) -> Any:
    """Return the distance of that name."""
    if text in DISTANCES:
        return DISTANCES[text]
    msg = f"{text!r} is none of {', '.join(DISTANCES)}"
    raise argparse.ArgumentTypeError(msg)


def as_labels(names: list[str]) -> list[Any]:
    """Return labels as they stand in a file: numbers where all are."""
    return [int(name) for name in names] if all(name.lstrip("-").isdecimal() for name in names) else names


def parse_names(text: str) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in text.split(",")]
