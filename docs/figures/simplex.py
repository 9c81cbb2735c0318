"""Draw docs/images/simplex.png: figure 1 of Vaicenavicius et al. (2019) for the bundled network, with 25 and 100 cells.

Run ``python docs/figures/simplex.py [FILE]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import fill

from matplotlib.figure import Figure

import caltest
from caltest.plotting import plot_simplex

IMAGE = Path(__file__).parents[1] / "images" / "simplex.png"
GROUPS = caltest.ClassGroups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])


def main(file: str | Path = IMAGE) -> None:
    """Write the pictures of three groups of classes."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    figure = Figure(figsize=(12, 7), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2), (5, 10), strict=True):
        diagram = caltest.simplex_diagram(y_true, y_prob, lens=GROUPS, partition=caltest.SimplexGrid(n), rng=0)
        plot_simplex(diagram, ax)
        ax.set_title(f"{n * n} cells", y=1, pad=0, va="top", fontsize="small")
        if n == 5:
            figure.supxlabel(fill(f"25 cells: {diagram.conclusion}", 150), fontsize="small")
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:2])
