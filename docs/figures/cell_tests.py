"""Draw docs/images/cells.png: the rejected cells of a reliability curve, as stars.

Run ``python docs/figures/cell_tests.py [FILE]``; it needs no random numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import caltest
from caltest.plotting._reliability import save_reliability

IMAGE = Path(__file__).parents[1] / "images" / "cells.png"


def main(file: str | Path = IMAGE) -> None:
    """Write the picture of logistic regression on the bundled digits."""
    y_true, models = caltest.datasets.load_digits_predictions()
    curve = caltest.reliability_curve(y_true, models["logistic_regression"], partition=caltest.EqualWidth(10))
    save_reliability(curve, Path(file))


if __name__ == "__main__":
    main(*sys.argv[1:2])
