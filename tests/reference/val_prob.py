"""Three public data sets on which R's val.prob was run: a label and a predicted probability of it."""

from pathlib import Path

import numpy as np

from caltest.datasets import load_cifar10_vgg16, load_digits_predictions


def breast_cancer():
    """Risks of a logistic regression of 4 features, for every second tumour; malignant is the event."""
    y, p = np.loadtxt(Path(__file__).with_suffix(".csv"), delimiter=",", skiprows=1, unpack=True)
    return y.astype(int), p


def digit_8():
    y, models = load_digits_predictions()
    return y == 8, models["logistic_regression"][:, 8]


def cat():
    y, p = load_cifar10_vgg16()
    return y == 3, p[:, 3]
