"""Draw the triangles of Vaicenavicius et al. (2019): docs/images/simplex.png, -example.png and -networks.png.

Figure 1 for the bundled network, with 25 and 100 cells; figure 2, the predictions of example 1; figures 15 to 18 for
two networks whose predictions are not bundled. Run ``python docs/figures/simplex.py [FOLDER]``; it takes a few seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed

import numpy as np  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import caltest  # noqa: E402
from benchmarks.binning import STORED, network  # noqa: E402
from benchmarks.papers import example  # noqa: E402
from caltest.plotting import plot_reliability, plot_simplex  # noqa: E402

IMAGES = ROOT / "docs" / "images"
GROUPS = caltest.ClassGroups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
COPIES = 60
"""Of the ten observations of each prediction of example 1: arrows of cells with few observations are pale."""


def one_cell_per_prediction(prob: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the number of each distinct prediction."""
    return np.unique(prob, axis=0, return_inverse=True)[1].ravel()


def bundled() -> Figure:
    """Return figure 1: three groups of classes of VGG-16."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    figure = Figure(figsize=(12, 7), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2), (5, 10), strict=True):
        diagram = caltest.simplex_diagram(y_true, y_prob, lens=GROUPS, partition=caltest.SimplexGrid(n), rng=0)
        plot_simplex(diagram, ax)
        ax.set_title(f"{n * n} cells", y=1, pad=0, va="top", fontsize="small")
        if n == 5:
            figure.supxlabel(fill(f"25 cells: {diagram.conclusion}", 150), fontsize="small")
    return figure


def example_1() -> Figure:
    """Return figure 2: the six predictions of table 1, and their frequencies."""
    y_true, y_prob = example()
    y_true, y_prob = np.tile(y_true, COPIES), np.tile(y_prob, (COPIES, 1))
    diagram = caltest.simplex_diagram(y_true, y_prob, partition=one_cell_per_prediction, rng=0)
    print(diagram)
    for lens in (caltest.Confidence(), *map(caltest.ClassWise, range(3))):
        test = caltest.calibration_test(y_true, y_prob, lens=lens, n_resamples=999, rng=0)
        print(test.lens_name, test.pvalue)
    figure = Figure(figsize=(6.5, 6), layout="constrained")
    plot_simplex(diagram, figure.subplots())
    return figure


def networks() -> Figure:
    """Return figures 15 to 18: groups of classes and confidence of DenseNet and ResNet, with error, floor, p-value."""
    figure = Figure(figsize=(11, 10), layout="constrained")
    grid = figure.subplots(2, 2, height_ratios=(1.3, 1))
    for column, name in zip(grid.T, ("DenseNet-121", "ResNet"), strict=True):
        y_true, y_prob = network(name)
        for ax, lens, partition in zip(
            column, (GROUPS, caltest.Confidence()), (caltest.SimplexGrid(5), caltest.EqualWidth(15)), strict=True
        ):
            test = caltest.calibration_test(y_true, y_prob, lens=lens, statistic=caltest.ECE(partition), rng=0)
            if lens is GROUPS:
                plot_simplex(caltest.simplex_diagram(y_true, y_prob, lens=lens, partition=partition, rng=0), ax)
            else:
                curve = caltest.reliability_curve(y_true, y_prob, lens=lens, partition=partition, confidence_level=0.9)
                plot_reliability(curve, ax, style="deviation")
            said = f"error {test.statistic:.4f}, if calibrated {test.noise_floor:.4f}, p = {test.pvalue:.1g}"
            print(name, test.lens_name, said)
            ax.set_title(f"{name}: {said}", fontsize="small")
    return figure


def main(folder: str | Path = IMAGES) -> None:
    """Write the pictures."""
    bundled().savefig(Path(folder) / "simplex.png", dpi=150)
    example_1().savefig(Path(folder) / "simplex-example.png", dpi=110)
    if STORED.is_dir():
        networks().savefig(Path(folder) / "simplex-networks.png", dpi=80)


if __name__ == "__main__":
    main(*sys.argv[1:2])
