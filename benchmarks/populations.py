"""Populations of predictions as they occur in practice: ties, zeros, rare events, lattices, mixtures, clusters.

Each is a model with known truth for the certificate. To add one: a function of ``(n_samples, rng)`` that returns
predictions, and its entry in `KINDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.simulation.models._base import Model, Unlabelled
from caltest.simulation.models._dirichlet import MappedModel
from caltest.simulation.models._maps import Identity

CALIBRATED = Identity()
Draw = Callable[[int, np.random.Generator], NDArray[np.float64]]


def event(prob: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the predictions of two classes, given those of the second one."""
    return np.column_stack([1 - prob, prob])


def on_grid(prob: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Return predictions with so many decimals that sum to 1: the largest one of a row takes the rest."""
    steps = 10**decimals
    count = np.rint(prob * steps).astype(np.int64)
    rows = np.arange(len(prob))
    count[rows, prob.argmax(axis=1)] += steps - count.sum(axis=1)
    return count / steps


def rounded_event(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two classes, 2 decimals."""
    return event(np.round(rng.beta(0.5, 0.5, n), 2))


def rounded(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """10 classes, 4 decimals: most of a sharp network's probabilities become 0."""
    return on_grid(rng.dirichlet(np.full(10, 0.1), n), 4)


def event_with_zeros(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two classes; 55 % of the events have probability 0."""
    return event(np.where(rng.random(n) < 0.55, 0.0, rng.beta(1, 3, n)))


def zeros(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """10 classes, a random half of which has probability 0."""
    weight = rng.standard_gamma(0.5, (n, 10)) + 1e-12
    weight[rng.random((n, 10)).argsort(axis=1) < 5] = 0
    return weight / weight.sum(axis=1, keepdims=True)


def rare_one_percent(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two classes; events have probability 1 % on average, mostly much less."""
    return event(rng.beta(0.5, 49.5, n))


def rare_one_permille(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Two classes; events have probability 0.1 % on average."""
    return event(rng.beta(0.5, 499.5, n))


def one_hot(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """3 classes; half of the predictions are certain."""
    prob = rng.dirichlet(np.full(3, 0.5), n)
    return np.where(rng.random((n, 1)) < 0.5, np.eye(3)[prob.argmax(axis=1)], prob)


def lattice(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """3 classes, multiples of 1/10: 36 different predictions."""
    return (1 + rng.multinomial(7, np.full(3, 1 / 3), n)) / 10


def heterogeneous(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """10 classes; half of the predictions are sharp and half almost flat."""
    sharp = rng.random((n, 1)) < 0.5
    return np.where(sharp, rng.dirichlet(np.full(10, 0.02), n), rng.dirichlet(np.full(10, 5.0), n))


KINDS: dict[str, Draw] = {
    "ties, 2 classes": rounded_event,
    "ties, 10 classes": rounded,
    "zeros, 2 classes": event_with_zeros,
    "zeros, 10 classes": zeros,
    "events of 1 %": rare_one_percent,
    "events of 0.1 %": rare_one_permille,
    "one-hot mixture": one_hot,
    "lattice": lattice,
    "sharp and flat": heterogeneous,
}
"""How the predictions of each population are drawn."""
N_CLASSES = {name: draw(1, np.random.default_rng(0)).shape[1] for name, draw in KINDS.items()}


@dataclass(frozen=True, repr=False)
class Population(MappedModel):
    """A population of `KINDS`, by name; the true probabilities are a map of the predictions."""

    kind: str
    truth: Callable = CALIBRATED

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return N_CLASSES[self.kind]

    def draw_predictions(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray, NDArray[np.float64]]:
        """Return predictions twice: they are the features too."""
        y_prob = KINDS[self.kind](n_samples, rng)
        return y_prob, y_prob


@dataclass(frozen=True, repr=False)
class Clustered(Model):
    r"""Calibrated predictions of an event for clusters of observations whose labels depend on each other.

    The event happens where :math:`\sqrt{1 - \rho}\, z_i + \sqrt\rho\, b_g < \Phi^{-1}(p_i)` with independent normal
    :math:`z_i` and :math:`b_g`, so that its probability is :math:`p_i`. Clusters are blocks of ``size`` observations:
    `groups` needs only their number, and a test with ``groups`` is a function of the certificate such as
    ``lambda y_true, y_prob, *, rng: calibration_test(y_true, y_prob, groups=model.groups(len(y_true)), rng=rng)``.
    """

    size: int
    correlation: float

    n_classes = 2

    def groups(self, n_samples: int) -> NDArray[np.int64]:
        """Return the cluster of every observation."""
        return np.arange(n_samples) // self.size

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return predictions, and the probabilities of the event given the effect of the cluster."""
        from scipy.special import ndtr, ndtri

        prob = rng.uniform(0.05, 0.95, n_samples)
        effect = rng.standard_normal(-(-n_samples // self.size))[self.groups(n_samples)]
        rho = self.correlation
        given = ndtr((ndtri(prob) - np.sqrt(rho) * effect) / np.sqrt(1 - rho))
        return Unlabelled(prob, event(prob), event(given))
