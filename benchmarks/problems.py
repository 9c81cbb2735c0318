"""The data that is measured on."""

import numpy as np

import caltest


def images():
    """10,000 x 10 float32 predictions and labels of the bundled VGG-16: a top-heavy confidence."""
    return caltest.datasets.load_cifar10_vgg16()


def simplex(n=10_000, n_classes=10, seed=0):
    """Return labels and float64 predictions spread over the simplex, Dirichlet(1/2), a little over-confident."""
    rng = np.random.default_rng(seed)
    prob = rng.standard_gamma(0.5, (n, n_classes))
    prob /= prob.sum(axis=1, keepdims=True)
    truth = 0.95 * prob + 0.05 / n_classes
    y_true = (rng.random((n, 1)) >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return y_true, prob


def events(n=10_000, seed=0):
    """Return outcomes and probabilities of an event, many of them near 0 and 1."""
    y_true, prob = simplex(n, 2, seed)
    return y_true, np.ascontiguousarray(prob[:, 1])
