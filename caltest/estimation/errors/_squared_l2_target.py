"""The target of `l2_interval`, where the true probabilities are known."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, induce
from caltest.predictions._user_functions import Region, outcomes_of_classes
from caltest.predictions._view import push_forward
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._validation import require, validate_prob


@reads_arguments
def squared_l2_target(
    y_prob: ArrayLike,
    class_prob: ArrayLike,
    *,
    lens: LensLike | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    **_: Unpack[InputOption],
) -> float:
    r"""Compute the squared l2 calibration error within cells (bins) from the true class probabilities.

    .. math:: \theta = \sum_{b : n_b > 1} \frac{n_b}{n} |\mu_b|^2, \qquad
              \mu_b = \frac{1}{n_b} \sum_{i \in b} (q_i - p_i)

    with predictions :math:`p_i` and true outcome probabilities :math:`q_i` behind the lens; behind a two-outcome lens
    only the probability of the event counts. This is the target of `l2_interval`. `SquaredL2` estimates it, up to the
    variation of :math:`q_i - p_i` within cells. Cells of one observation are left out.

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
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; others are left out.

    Returns
    -------
    float
        The value :math:`\theta`; 0 if the model is calibrated.

    Raises
    ------
    TypeError
        If ``lens``, ``partition`` or ``region`` has a wrong type.
    ValueError
        If ``y_prob`` or ``class_prob`` has values outside [0, 1] or does not sum to 1, or they differ in shape; if
        ``partition`` needs two outcomes and the lens returns more; if no observation lies in the region.

    See Also
    --------
    caltest.l2_interval : The interval for it.

    Examples
    --------
    All predictions of this model are too low by 0.1:

    >>> import caltest
    >>> round(caltest.estimation.squared_l2_target([0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5]), 6)
    0.01
    """
    prob, truth = validate_prob(y_prob), _validate_truth(class_prob)
    require(truth.shape == prob.shape, f"`class_prob` must have the shape of `y_prob`, {prob.shape}", truth.shape)
    sample = induce(prob, np.zeros(len(prob), dtype=np.int64), lens=lens, region=region)
    deviation = _induced_truth(prob, truth, lens, sample) - sample.prob
    free = deviation[:, 1:] if sample.n_outcomes == 2 else deviation
    cells = cells_of(sample, VarianceTree() if partition is None else partition)
    means = [(len(part), part.mean(axis=0)) for part in cells.split(free) if len(part) > 1]
    return float(sum(n * mean @ mean for n, mean in means) / sample.n_samples)


def _validate_truth(class_prob: ArrayLike) -> Floats:
    try:
        return validate_prob(class_prob)
    except ValueError as error:
        raise ValueError(str(error).replace("`y_prob`", "`class_prob`")) from None


def _induced_truth(prob: Floats, truth: Floats, lens: LensLike | None, sample: Sample) -> Floats:
    """Return the true probabilities of the outcomes behind the lens."""
    if lens is None:
        return truth[sample.row]
    return push_forward(outcomes_of_classes(lens, prob), truth, sample.n_outcomes)[sample.row]
