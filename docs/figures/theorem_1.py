"""Draw docs/images/theorem-1.png: estimates with cells that grow with the number of observations.

Theorem 1 of Vaicenavicius et al. (2019) for its miscalibrated model. Run ``python docs/figures/theorem_1.py [FILE]``;
it takes less than a minute and prints the numbers of the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

import caltest  # noqa: E402
from benchmarks.papers import cells_limit  # noqa: E402
from caltest.simulation import GaussianMixture1D, bias_study  # noqa: E402

IMAGE = ROOT / "docs" / "images" / "theorem-1.png"
MODEL = GaussianMixture1D(1, 1)
REPLICATES = {100: 2000, 1000: 1000, 10_000: 400, 100_000: 100, 1_000_000: 20}
"""Data sets for each number of observations."""
FIXED = 5
CELLS = {
    f"{FIXED} cells": lambda n: FIXED,
    "cube root of n cells": lambda n: int(np.ceil(round(n ** (1 / 3), 9))),
    "n cells": lambda n: n,
}
"""Numbers of cells of equal width for n observations."""
LOOKS = (("o", "#0072b2"), ("s", "#101418"), ("^", "#d55e00"))


def study() -> pd.DataFrame:
    """Return mean and quantiles of the estimates, one row for each number of observations and rule."""
    frames = []
    for n, replicates in REPLICATES.items():
        statistics = {rule: caltest.ECE(caltest.EqualWidth(cells(n))) for rule, cells in CELLS.items()}
        frames.append(bias_study(MODEL, statistics, n, replicates, rng=0).to_frame())
    return pd.concat(frames, ignore_index=True)


def drawn(frame: pd.DataFrame) -> Figure:
    """Return the picture: mean estimates with the middle 90 % against the number of observations."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    ax = figure.subplots()
    for number, (rule, (marker, color)) in enumerate(zip(CELLS, LOOKS, strict=True)):
        rows = frame[frame["test_statistic"] == rule]
        n = rows["n_samples"].to_numpy() * 10 ** (0.06 * (number - 1))  # side by side
        ends = np.abs(rows[["q05", "q95"]].to_numpy().T - rows["mean"].to_numpy())
        ax.errorbar(n, rows["mean"], ends, marker=marker, color=color, linewidth=1, markersize=5, label=rule)
    truth, limit = MODEL.expected_miscalibration(), cells_limit(FIXED)
    ax.axhline(truth, color="#5a6470", linewidth=1, label=f"expected miscalibration ({truth:.4f})")
    ax.axhline(limit, color="#0072b2", linewidth=1, linestyle=":", label=f"limit of {FIXED} cells ({limit:.4f})")
    ax.set(xscale="log", xlabel="number of observations n", ylabel="estimate (ECE)", ylim=(0.46, 0.68))
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def main(file: str | Path = IMAGE) -> None:
    """Write the picture, and print the numbers."""
    frame = study()
    columns = ["n_samples", "test_statistic", "truth", "mean", "mean_se", "q05", "q95", "bias"]
    print(frame[columns].round(5).to_string())
    _, _, y_prob = MODEL.draw(10_000, rng=0)
    for rule, cells in CELLS.items():
        floor = caltest.noise_floor(y_prob, statistic=caltest.ECE(caltest.EqualWidth(cells(10_000))), rng=0)
        print(f"noise floor of 10,000 predictions, {rule}: {floor.mean:.4f}")
    drawn(frame).savefig(file, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:2])
