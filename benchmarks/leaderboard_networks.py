"""Five networks for CIFAR-10 at several temperatures on one leaderboard: a picture of `docs/leaderboard.md`.

The predictions of four networks have no licence that lets them be bundled; they are read from a folder of files
``cifar10_NAME.npz`` with ``probs (10000, 10)`` and ``labels``, which have the same images in the same order.

    python -m benchmarks.leaderboard_networks FOLDER --plot docs/images/leaderboard-networks.png --page board.html
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import caltest
from caltest.recalibration import TemperatureScaling

TEMPERATURES = (0.75, 1.0, 1.5, 2.0)


def models_in(folder: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the labels, and the predictions of all networks at all temperatures by their names."""
    labels, found = None, {}
    for file in sorted(folder.glob("cifar10_*.npz")):
        with np.load(file) as arrays:
            prob, own = arrays["probs"].astype(float), arrays["labels"]
        if labels is not None and not np.array_equal(labels, own):
            msg = f"{file.name} has other labels than the files before it"
            raise ValueError(msg)
        labels, logits = own, np.log(np.maximum(prob, 1e-30))
        for temperature in TEMPERATURES:
            powered = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
            name = f"{file.stem.removeprefix('cifar10_')} {temperature:g}"
            found[name] = powered / powered.sum(axis=1, keepdims=True)
    if labels is None:
        msg = f"{folder} holds no file cifar10_NAME.npz"
        raise ValueError(msg)
    return labels, found


def main() -> None:
    """Rank the networks, and write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    parser.add_argument("--page", type=Path, metavar="FILE.html")
    chosen = parser.parse_args()
    y_true, models = models_in(chosen.folder)
    by = ("log_score", "accuracy", "KS")
    board = caltest.leaderboard(y_true, models, by=by, recalibrator=TemperatureScaling(), rng=0)
    print(board)
    if chosen.plot is not None:
        figure = board.plot()[0].figure
        figure.savefig(chosen.plot, dpi=75)
    if chosen.page is not None:
        caltest.page.write_leaderboard(board, chosen.page)


if __name__ == "__main__":
    main()
