"""Labels and pairs of models for the tests of comparisons."""

import numpy as np

from caltest.predictions.cells._cells import cells_of
from tests.reference.examples import draw_labels


def temper(prob, temperature):
    """Make predictions more extreme, or less."""
    powered = prob ** (1 / temperature)
    return powered / powered.sum(axis=1, keepdims=True)


def two_models(n, n_classes, seed, calibrated=True):
    """Labels and two models, sharp and vague; the first one may be calibrated, the second one never is."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.6), n)
    other = rng.dirichlet(np.ones(n_classes), n)
    return draw_labels(truth, rng), truth if calibrated else temper(truth, 0.7), (truth + other) / 2


def as_naive(sample, partition):
    """Residuals and cells in the caller's order, as the slow twin takes them."""
    position = np.argsort(sample.row)
    residual = (np.eye(sample.n_outcomes)[sample.outcome] - sample.prob)[position]
    return residual[:, 1:] if sample.n_outcomes == 2 else residual, cells_of(sample, partition).index[position]


def exceedances(n, lead, phi, rng):
    """Probabilities that an autoregression is above 0 after a lead, and whether it was, in the order of time.

    What happens up to a time determines the probability, and the labels of times closer than a lead share shocks.
    """
    from scipy.signal import lfilter
    from scipy.special import ndtr

    noise = rng.standard_normal(n + lead) * np.sqrt(1 - phi * phi)
    noise[0] /= np.sqrt(1 - phi * phi)
    state = lfilter([1.0], [1.0, -phi], noise)
    return ndtr(phi**lead * state[:n] / np.sqrt(1 - phi ** (2 * lead))), (state[lead:] > 0).astype(int)


def shifted(prob, shift):
    """Probabilities whose logits are moved."""
    odds = np.exp(shift) * prob / (1 - prob)
    return odds / (1 + odds)
