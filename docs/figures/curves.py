"""Draw the pictures of docs/curves.md: docs/images/curve-*.png.

Run ``python docs/figures/curves.py [FOLDER]``; it takes a few seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

import caltest

IMAGES = Path(__file__).parents[1] / "images"


def tempered(y_prob: np.ndarray, temperature: float) -> np.ndarray:
    """Return the predictions at a softmax temperature."""
    weights = y_prob.astype(float) ** (1 / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def main(folder: str | Path = IMAGES) -> None:
    """Write all pictures."""
    plt.switch_backend("Agg")
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    models = {"VGG-16": y_prob, "temperature 1.8": tempered(y_prob, 1.8)}
    results: dict[str, Any] = {
        "cumulative": caltest.cumulative_graphs(y_true, models, rng=0),
        "uncertainty": caltest.estimation.uncertainty_diagram(y_true, y_prob),
        "rejection": caltest.rejection_curve(y_true, models, uncertainty="entropy"),
        "temperature": caltest.temperature_curve(y_true, y_prob, rng=0),
        "cells": caltest.cells_curve(y_true, models, rng=0),
        "isotonic": caltest.isotonic_curve(y_true, y_prob, rng=0),
        "distribution": caltest.prediction_distribution(y_prob),
        "shift": caltest.shift_curve(y_prob, tempered(y_prob, 3), rng=0),
    }
    curves = {name: caltest.reliability_curve(y_true, prob) for name, prob in models.items()}
    figure = caltest.plotting.plot_reliability(curves).figure
    figure.savefig(Path(folder) / "curve-reliability.png", dpi=110)
    plt.close(figure)
    for name, result in results.items():
        figure = np.ravel(result.plot())[0].figure
        figure.savefig(Path(folder) / f"curve-{name}.png", dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
