"""Compare ten estimators of the calibration error of the confidence: data and figure of docs/which-estimator.md.

``python benchmarks/which_estimator.py`` takes some minutes. ``--out FOLDER`` keeps finished parts there and continues.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import caltest
from caltest.plotting._axes import COLORS
from caltest.simulation import BentPosterior, GaussianMixture, Identity, Shift, Temperature, bias_study
from caltest.statistics import MonotonicSweepECE

DOCS = Path(__file__).parents[1] / "docs"
ESTIMATORS = {
    "ECE, 10 equal-width cells": caltest.ECE(caltest.EqualWidth(10)),
    "ECE, 15 equal-width cells": caltest.ECE(caltest.EqualWidth(15)),
    "ECE, 30 equal-width cells": caltest.ECE(caltest.EqualWidth(30)),
    "ECE, 15 equal-mass cells": caltest.ECE(caltest.EqualMass(15)),
    "ECE, tree": caltest.ECE(),
    "convex ECE, 15 equal-width cells": caltest.statistics.ConvexECE(caltest.EqualWidth(15)),
    "convex ECE, 15 equal-mass cells": caltest.statistics.ConvexECE(caltest.EqualMass(15)),
    "monotonic sweep": MonotonicSweepECE(),
    "kernel density": caltest.statistics.KDEError(),
    "squared error, debiased": caltest.SquaredL2(caltest.EqualMass(15)),
}
STYLES = {
    "ECE, 10 equal-width cells": (0, "-"),
    "ECE, 15 equal-width cells": (0, "--"),
    "ECE, 30 equal-width cells": (0, ":"),
    "ECE, 15 equal-mass cells": (1, "-"),
    "ECE, tree": (2, "-"),
    "convex ECE, 15 equal-width cells": (3, "-"),
    "convex ECE, 15 equal-mass cells": (3, "--"),
    "monotonic sweep": (4, "-"),
    "kernel density": (1, ":"),
}
"""Colours, which are kinds of estimators, and lines."""
GAPS = {"vague": 1.0, "middle": 2.5, "sharp": 4.0}
"""Distances between the means of neighbouring classes, in standard deviations of the feature."""
BENDS = {"calibrated": Identity(), "over-confident": Temperature(0.6), "shifted": Shift(0, 1.0)}
CLASSES = (2, 3, 10)
SIZES = (100, 300, 1000, 3000, 10_000)


def models():
    """Return the models by name: one feature, normally distributed in each of K classes, and its posterior, bent."""
    return {
        f"{n_classes}/{sharpness}/{bend}": BentPosterior(
            GaussianMixture(
                [1 / n_classes] * n_classes,
                [[gap * k] for k in range(n_classes)],
                [1.0] * n_classes,
                list(range(n_classes)),
            ),
            BENDS[bend],
        )
        for n_classes, (sharpness, gap), bend in product(CLASSES, GAPS.items(), BENDS)
    }


def table(study):
    """Return a row for each model, size and estimator."""
    frame = study.to_frame().rename(columns={"test_statistic": "estimator"})
    frame[["n_classes", "sharpness", "predictions"]] = frame["model"].str.split("/", expand=True).to_numpy()
    kept = ["n_classes", "sharpness", "predictions", "n_samples", "estimator", "n_replicates"]
    return frame[[*kept, "truth", "bias", "bias_se", "std", "rmse", "rmse_se"]]


def draw(frame, path):
    """Draw the root mean squared error against the number of observations, a panel for each kind of predictions."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    of_one_target = frame[~frame["estimator"].str.startswith("squared")]
    figure, panels = plt.subplots(3, 3, figsize=(10, 9.5), sharex=True, layout="constrained")
    for row, predictions in zip(panels, BENDS, strict=True):
        for panel, sharpness in zip(row, GAPS, strict=True):
            some = of_one_target.query("predictions == @predictions and sharpness == @sharpness")
            for name, errors in some.groupby("estimator", sort=False):
                mean = np.sqrt((errors["rmse"] ** 2).groupby(errors["n_samples"]).mean())
                colour, dashes = STYLES[name]
                panel.loglog(mean.index, mean, linestyle=dashes, color=COLORS[colour], linewidth=1.4, label=name)
            panel.set_title(f"{predictions}, {sharpness}", fontsize=10)
            panel.grid(alpha=0.3)
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(FormatStrFormatter("%g"))
            panel.yaxis.set_minor_formatter(NullFormatter())
    for panel in panels[-1]:
        panel.set_xlabel("observations")
    for panel in panels[:, 0]:
        panel.set_ylabel("root mean squared error")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200, help="data sets of each model and size")
    parser.add_argument("--out", type=Path, help="folder of finished parts")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where data and figure go")
    chosen = parser.parse_args()
    begin = time.process_time()
    study = bias_study(
        models(),
        ESTIMATORS,
        SIZES,
        chosen.replicates,
        lenses=caltest.Confidence(),
        out=chosen.out,
        workers=chosen.workers,
        progress=True,
        rng=0,
    )
    for folder in ("data", "images"):
        (chosen.docs / folder).mkdir(parents=True, exist_ok=True)
    path = chosen.docs / "data" / "which-estimator.csv"
    table(study).to_csv(path, index=False, float_format="%.4g")
    draw(pd.read_csv(path), chosen.docs / "images" / "which-estimator.png")
    print(f"{time.process_time() - begin:.0f} s of processor time")


if __name__ == "__main__":
    main()
