"""Draw docs/images/spline-*.png: figures 1 to 10 of Gupta et al. (2020) for the bundled network.

A spline is fitted to one half of the observations and judged on both halves. Run
``python docs/figures/splines.py [FOLDER]``; it takes a few seconds and prints the numbers of the page.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed

import numpy as np  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from PIL import Image  # noqa: E402

import caltest  # noqa: E402
from benchmarks.papers import halves  # noqa: E402
from caltest.plotting import plot_cumulative_graphs  # noqa: E402
from caltest.predictions import Lens, TopRank, WithinTop  # noqa: E402

IMAGES = ROOT / "docs" / "images"
HALVES = ("calibration half", "test half")
LENSES: dict[str, Lens] = {
    "top-1": caltest.Confidence(),
    "top-2": TopRank(2),
    "top-3": TopRank(3),
    "within-2": WithinTop(2),
    "within-3": WithinTop(3),
}
"""Figures 1 and 2, 3 and 4, and so on: before and after recalibration."""
SHOWN = (("test half", "before"), ("calibration half", "after"), ("test half", "after"))
COLORS = 64
"""Of a picture, so that its file is small."""


def graphs(lens: Lens) -> dict[str, caltest.estimation.CumulativeGraphs]:
    """Return the graphs before and after recalibration, by half, of the spline of the paper: through the labels."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    event, _ = lens(y_prob.astype(float), y_true)
    found = {}
    for number, (name, (outcome, after)) in enumerate(zip(HALVES, halves(lens), strict=True)):
        models = {"before": np.split(event[:, 1], 2)[number], "after": after}
        found[name] = caltest.cumulative_graphs(outcome, models, curve="labels", rng=0)
    return found


def drawn(found: dict[str, caltest.estimation.CumulativeGraphs]) -> Figure:
    """Return the four graphs of each half after recalibration, and before it of the test half."""
    rows = [(f"{moment}, {half}", found[half][moment]) for half, moment in SHOWN]
    figure = Figure(figsize=(13, 9.6), layout="constrained")
    grid = figure.subplots(len(rows), 4)
    for number, (axes, (name, graph)) in enumerate(zip(grid, rows, strict=True), 1):
        plot_cumulative_graphs(graph, axes, legend=number == len(rows))
        said = f"p = {graph.pvalue:.4f}" if "test" in name else "no valid p-value"
        axes[0].set_title(f"{name}: KS {graph.statistic:.4f}, {said}", loc="left", fontsize="small")
    return figure


def main(folder: str | Path = IMAGES) -> None:
    """Write the pictures, and print KS, its limit and p-value."""
    for name, lens in LENSES.items():
        found = graphs(lens)
        for half, of_half in found.items():
            for graph in of_half:
                numbers = f"KS {graph.statistic:.5f}, limit {graph.critical_value:.5f}, p = {graph.pvalue:.4f}"
                print(f"{name}, {half}, {graph.name}: {numbers}")
        picture = io.BytesIO()
        test = caltest.calibration_test(*halves(lens, n_knots=12)[1], statistic=caltest.KS(), n_resamples=9999, rng=0)
        print(f"{name}, test half, 12 knots: KS {test.statistic:.5f}, p = {test.pvalue:.4f}")
        drawn(found).savefig(picture, dpi=80)
        Image.open(picture).convert("RGB").quantize(COLORS).save(Path(folder) / f"spline-{name}.png", optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
