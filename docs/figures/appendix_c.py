"""Make the figures of docs/papers/estimator-bias.md: figures 6 to 14 of Vaicenavicius et al. (2019), appendix C.

    python docs/figures/appendix_c.py --out FOLDER

Finished parts are kept in the folder; after an interruption the same command goes on.
Estimates by number of samples and of cells for three models, and reliability diagrams with the true deviation.
"""

import argparse
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import caltest
from caltest.simulation import GaussianMixture1D, bias_study

MODELS = {
    "calibrated model (0, -2)": GaussianMixture1D(0, -2),
    "constant model (0, 0)": GaussianMixture1D(0, 0),
    "miscalibrated model (1, 1)": GaussianMixture1D(1, 1),
}
CELLS = (5, 10, 20, 50, 100)
SAMPLES = (100, 300, 1000, 3000, 10_000)
LENS = {"the whole prediction": caltest.Canonical()}
TRUE = "#1b7f5c"


def reliability_diagram(model: GaussianMixture1D, name: str) -> Figure:
    """Return the diagram of 10,000 observations with the true deviation."""
    from matplotlib import pyplot as plt

    _, y_true, y_prob = model.draw(10_000, rng=0)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    for ax, partition in zip(axes, (caltest.EqualWidth(25), caltest.VarianceTree()), strict=True):
        curve = caltest.reliability_curve(y_true, y_prob, partition=partition)
        caltest.plotting.plot_reliability(curve, ax, legend=False)
        low, high = ax.get_ylim()
        event = np.linspace(0.001, 0.999, 999) if model.beta1 else np.array([0.5])
        deviation = model.deviation(np.stack([1 - event, event], axis=1))[:, 1]
        ax.plot(event, deviation, color=TRUE, linewidth=1.5, marker="" if model.beta1 else "D", label="true deviation")
        reach = max(abs(low), abs(high), 1.1 * np.abs(deviation[y_range(y_prob, event)]).max())
        ax.set_ylim(-reach, reach)
        ax.set_title(f"{curve.partition}, {curve.n_cells} cells", fontsize="small")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(f"{name}: 10,000 observations", fontsize="medium")
    return figure


def y_range(y_prob: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Return which points are where there are predictions."""
    return (event >= y_prob[:, 1].min() - 1e-9) & (event <= y_prob[:, 1].max() + 1e-9)


def main() -> None:
    """Run the study and write the figures."""
    mpl.use("Agg")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="folder of finished parts")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--to", type=Path, default=Path(__file__).parents[1] / "images")
    options = parser.parse_args()
    start = time.perf_counter()
    statistics = {f"{cells} cells": caltest.ECE(caltest.EqualWidth(cells)) for cells in CELLS}
    study = bias_study(
        MODELS,
        statistics,
        SAMPLES,
        options.replicates,
        lenses=LENS,
        out=options.out,
        workers=options.workers,
        progress=True,
        rng=20261121,
    )
    print(
        f"{len(study.replicates):,} estimates in {time.perf_counter() - start:.1f} s, "
        f"{time.process_time():.1f} s of processor time"
    )
    for number, name in zip((6, 9, 12), MODELS, strict=True):
        figures = [
            study.plot(by="n_samples", model=name).flat[0].figure,
            study.plot(by="n_cells", model=name).flat[0].figure,
            reliability_diagram(MODELS[name], name),
        ]
        for offset, figure in enumerate(figures):
            figure.savefig(options.to / f"appendix-c-{number + offset:02d}.png", dpi=90)
    print(study)


if __name__ == "__main__":
    main()
