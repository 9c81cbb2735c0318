"""Draw docs/images/cells.png: the rejected cells of a reliability curve, in orange.

Run ``python docs/figures/cell_tests.py [FILE]``; it needs no random numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill

from matplotlib.figure import Figure

import caltest
from caltest.plotting import plot_reliability

IMAGE = Path(__file__).parents[1] / "images" / "cells.png"


def main(file: str | Path = IMAGE) -> None:
    """Write the picture of logistic regression on the bundled digits."""
    y_true, models = caltest.datasets.load_digits_predictions()
    curve = caltest.reliability_curve(y_true, models["logistic_regression"], partition=caltest.EqualWidth(10))
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes, tests = figure.subplots(1, 2, width_ratios=[1, 1.25]), curve.cell_tests()
    for ax, style in zip(axes, ("classical", "deviation"), strict=True):
        plot_reliability(curve, ax, style, tests=tests)
    figure.supxlabel(fill(curve.conclusion, 150), fontsize="small")
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:2])
