"""Draw docs/images/training.png: calibration while five networks are trained on scikit-learn's digits.

It draws docs/images/cell_edges.png too: the adaptive cells of two statistics while the first network is trained.
Run ``python docs/figures/training_digits.py [FILE [FILE]]``; it needs scikit-learn and some minutes. Every seed is
fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import caltest

IMAGE = Path(__file__).parents[1] / "images" / "training.png"
EDGES = IMAGE.with_name("cell_edges.png")
N_EPOCHS, N_RUNS, N_TRAIN = 40, 5, 300


def train(
    seed: int, hidden: tuple[int, ...] = (256, 256), rate: float = 0.003
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Yield labels ``(1497,)`` and predictions ``(1497, 10)`` of the held-out images after each epoch."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    image, label = load_digits(return_X_y=True)
    # Not stratified: that would fix the class counts, and observations would not be independent.
    seen, held_out, seen_label, y_true = train_test_split(image / 16, label, train_size=N_TRAIN, random_state=0)
    network = MLPClassifier(hidden, learning_rate_init=rate, alpha=0.0, random_state=seed)
    for _ in range(N_EPOCHS):
        network.partial_fit(seen, seen_label, classes=np.arange(10))
        yield y_true, network.predict_proba(held_out)


def follow(
    hidden: tuple[int, ...], rate: float, test_statistic: caltest.statistics.Statistic | None = None
) -> caltest.comparison.TrainingTrack:
    """Return the track of five initialisations."""
    runs = {f"seed {seed}": train(seed, hidden, rate) for seed in range(N_RUNS)}
    return caltest.training_track(None, runs, test_statistic=test_statistic, n_resamples=9999, rng=0)


def draw_edges(file: str | Path = EDGES) -> None:
    """Write the picture of the cells of ACE, as in figures 2 and 5 of Nixon et al. (2019), and print the errors."""
    statistics = [caltest.statistics.ACE(100), caltest.statistics.TACE(50, 0.01)]
    found = caltest.training_track(None, train(0), statistics=statistics, n_resamples=999, rng=0)
    caltest.plotting.plot_cell_edges(found)[0].figure.savefig(file, dpi=150)
    print(found)
    for one, edges in zip(found.statistics, found.edges, strict=True):
        shares = [(round(float((cells < 0.01).mean()), 3), round(float((cells > 0.99).mean()), 3)) for cells in edges]
        print(one, "cells that begin below 0.01 and above 0.99 at epochs 1, 10, 40:", *(shares[i] for i in (0, 9, -1)))


def main(file: str | Path = IMAGE, edges: str | Path = EDGES) -> None:
    """Write both pictures, and print the numbers of the page for it and for a small one."""
    import matplotlib as mpl

    mpl.use("Agg")
    draw_edges(edges)
    found = follow((256, 256), 0.003)
    found.plot().flat[0].figure.savefig(file, dpi=150)
    print("256 + 256 units", found, sep="\n")
    print("256 + 256 units", follow((256, 256), 0.003, caltest.Omnibus()), sep="\n")
    print("64 units", follow((64,), 0.01), sep="\n")
    for epoch, pair in enumerate(train(0), 1):
        print(epoch, caltest.calibration_test(*pair, n_resamples=999, rng=0).direction)


if __name__ == "__main__":
    main(*sys.argv[1:3])
