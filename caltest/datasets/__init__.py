"""Real predictions that ship with the package."""

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Predictions(NamedTuple):
    """Labels ``y_true (n_samples,)`` and predicted probabilities ``y_prob (n_samples, n_classes)`` of held-out rows."""

    y_true: NDArray[np.int64]
    y_prob: NDArray[np.float32]


def load_cifar10_vgg16() -> Predictions:
    """Return predictions of a VGG-16 network on the 10,000 test images of CIFAR-10, ten classes, float32.

    From the verified_calibration project of Kumar, Liang and Ma (2019), MIT licence; see
    ``cifar10_vgg16.LICENSE.txt`` beside the data.

    Examples
    --------
    >>> y_true, y_prob = load_cifar10_vgg16()
    >>> y_prob.shape, round(float((y_prob.argmax(axis=1) == y_true).mean()), 4)
    ((10000, 10), 0.9314)
    """
    with np.load(str(files(__package__) / "cifar10_vgg16.npz")) as data:
        return Predictions(data["labels"], data["probs"])
