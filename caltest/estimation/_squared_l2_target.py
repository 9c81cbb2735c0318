"""What estimates aim at, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Region, Sample, apply_lens, induce
from caltest.predictions._validation import validate_prob
from caltest.predictions._variance_tree import VarianceTree


def squared_l2_target(
    y_prob: ArrayLike,
    class_prob: ArrayLike,
    *,
    lens: Lens | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
) -> float:
    r"""Return the squared binned l2 miscalibration of a sample whose true class probabilities are known.

    .. math:: \theta = \sum_{b : n_b > 1} \frac{n_b}{n} |\mu_b|^2, \qquad
              \mu_b = \frac{1}{n_b} \sum_{i \in b} (q_i - p_i)

    with predictions :math:`p_i` and true outcome probabilities :math:`q_i` behind the lens; behind a two-outcome lens
    those of the event alone. This is what `SquaredL2` estimates, but for the variation of :math:`q_i - p_i` within
    cells, and what `l2_interval` is to hold; cells of one row enter neither.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    class_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        True probabilities of the classes.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the induced simplex; `VarianceTree()` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.

    Returns
    -------
    float
        :math:`\theta`, 0 if the model is calibrated.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    A model that is .1 too low everywhere:

    >>> import caltest
    >>> round(caltest.squared_l2_target([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5]), 6)
    0.01
    """
    prob, truth = validate_prob(y_prob), _validate_truth(class_prob)
    if truth.shape != prob.shape:
        msg = f"`class_prob` must have the shape of `y_prob`, {prob.shape}, got {truth.shape}."
        raise ValueError(msg)
    sample = induce(prob, np.zeros(len(prob), dtype=np.int64), lens=lens, region=region)
    deviation = _induced_truth(prob, truth, lens, sample) - sample.prob
    free = deviation[:, 1:] if sample.n_outcomes == 2 else deviation
    cells = sample.cells(VarianceTree() if partition is None else partition)
    means = [(len(part), part.mean(axis=0)) for part in cells.split(free) if len(part) > 1]
    return float(sum(n * mean @ mean for n, mean in means) / sample.n_samples)


def _validate_truth(class_prob: ArrayLike) -> NDArray[np.float64]:
    try:
        return validate_prob(class_prob)
    except ValueError as error:
        raise ValueError(str(error).replace("`y_prob`", "`class_prob`")) from None


def _induced_truth(
    prob: NDArray[np.float64], truth: NDArray[np.float64], lens: Lens | None, sample: Sample
) -> NDArray[np.float64]:
    """Return true probabilities of the induced outcomes: a lens tells which outcome each class makes."""
    if lens is None:
        return truth[sample.row]
    induced = np.zeros(sample.prob.shape)
    for k in range(prob.shape[1]):
        outcome = apply_lens(lens, prob, np.full(len(prob), k))[1][sample.row]
        induced[np.arange(sample.n_samples), outcome] += truth[sample.row, k]
    return induced
