"""Real predictions beside the repository, whose published values the package reproduces."""

from functools import cache
from pathlib import Path

import numpy as np

NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]
"""Order of the columns of golden values."""

SKCE_ERRORS = {
    "biased": (0.000237775236127, 0.000142002559372, 2.75929393404e-05, 0.000427027095709),
    "unbiased": (0.000226660834834, 0.000130142142724, 1.68669384449e-05, 0.000409013041292),
    "block": (0.000126733373035, -0.000343002146609, -0.000405124990826, 0.000408220685865),
}
"""Squared kernel errors (SKCEb, SKCEuq and SKCEul of goldens.json), one column for each network."""


@cache
def read(path: Path, *names: str) -> tuple[np.ndarray, ...]:
    """Arrays of a file, read once."""
    with np.load(path) as data:
        return tuple(data[name] for name in names)


def network(folder: Path, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions of a network."""
    return read(folder / f"{NETWORKS[column]}.npz", "labels", "probs")
