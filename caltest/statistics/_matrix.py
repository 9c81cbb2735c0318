"""The score of matrix scaling, which detects errors of single classes and of pairs of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import sum_selected
from caltest._compiled._score import largest_scores
from caltest.predictions._sample import Sample
from caltest.resampling._signs import group_of, sum_signed
from caltest.statistics._base import Statistic

FLOOR = 2.0**-52
"""Smaller predictions count as this one in the logarithm."""

_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class MatrixScore(Statistic):
    r"""Largest standardised score of matrix scaling at the identity, for errors of pairs of classes.

    .. math:: \max_{j, k} \frac{|G_{jk}|}{V_{jk}^{1/2}}, \qquad
              G_{jk} = \sum_i (e_{ij} - p_{ij}) (x_{ik} - \bar x_{jk}), \qquad
              V_{jk} = \sum_i p_{ij} (1 - p_{ij}) (x_{ik} - \bar x_{jk})^2

    over all classes j and k = 0, ..., K, where :math:`e_{ij}` says whether observation i has class j. The values are
    :math:`x_{ik} = \log p_{ik}`, with mean :math:`\bar x_{jk}` weighted by :math:`p_{ij} (1 - p_{ij})`; the column k =
    0 is constant, :math:`x_{i0} = 1` and :math:`\bar x_{j0} = 0`. :math:`G_{j0}` and :math:`G_{jk}` are the derivatives
    of the log-likelihood of :math:`\mathrm{softmax}(W \log p + b)` (Dirichlet calibration, Kull et al. 2019) with
    respect to :math:`b_j` and :math:`W_{jk}` at W = I, b = 0, the latter with :math:`b_j` free. So a large
    :math:`G_{jk}` means that the frequency of class j depends on the probability of class k in another way than
    predicted: the model confuses the two, or the class is too frequent, or too steep (j = k).

    The largest of the standardised derivatives was chosen, and not their quadratic form (Rao's statistic): it needs no
    inverse of an information matrix of order K (K + 1), so that it is defined for many classes and few observations,
    and it is not diluted where one pair of many is wrong. Against one temperature for all classes, which changes many
    entries a little, `TemperatureScore` has more power.

    Probabilities below :math:`2^{-52}`, zeros among them, have its logarithm. An outcome of probability 0 makes the
    statistic infinite. A column without variation adds nothing. Under another null hypothesis than calibration,
    :math:`p_{ij}` is the expected probability, and the logarithm that of the prediction. Sample weights multiply the
    terms of G, their squares those of V. For two outcomes it is a score of beta calibration, and the same for the event
    and its complement. It makes a table of a double for each prediction, and a draw costs as much as a pass over it.

    See Also
    --------
    TemperatureScore : One temperature for all classes.
    ClasswiseKS : Errors of single classes of any shape.
    CoxScore : Intercept and slope, for two outcomes.

    References
    ----------
    M. Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with
    Dirichlet calibration, NeurIPS.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML: matrix scaling.

    Examples
    --------
    Four of eight labels are class 0 where two are expected, of variance 3/2:

    >>> import caltest
    >>> y_prob = [[0.25, 0.25, 0.5]] * 8
    >>> y_true = [0, 0, 0, 0, 1, 1, 2, 2]
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.MatrixScore()), 6)
    1.632993
    """

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        scores = largest_scores(flat, *sample.once(_standardisation))
        impossible = sample.once(_impossible)
        if impossible is not None:
            scores = np.where(sum_selected(flat, impossible) > 0, np.inf, scores)
        return scores.reshape(outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64]:
        """Return the statistic of signed residuals."""
        values, centre, _, scale = sample.once(_standardisation)
        group, weight = group_of(sample), np.ones(sample.n_samples) if sample.weight is None else sample.weight
        order = np.argsort(group, kind="stable")
        present, start = np.unique(group[order], return_index=True)
        largest = np.zeros(len(signs))
        for j in range(sample.n_outcomes):
            unit = (sample.outcome == j) - sample.expected[:, j]
            terms = unit[:, None] * (values - weight[:, None] * centre[j])
            scores = sum_signed(signs[:, present], np.add.reduceat(terms[order], start, axis=0))
            largest = np.maximum(largest, (np.abs(scores) * scale[j]).max(axis=1))
        return largest


def _standardisation(sample: Sample) -> tuple[NDArray[np.float64], ...]:
    """Return what `largest_scores` takes: the table, the centres, the expected scores and the factors."""
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    values = np.column_stack([np.ones(sample.n_samples), np.log(np.maximum(sample.prob, FLOOR))])
    variance = np.square(weight)[:, None] * sample.expected * (1 - sample.expected)
    total = variance.sum(axis=0)[:, None]
    centre = (variance.T @ values) / np.where(total > 0, total, 1.0)
    centre[:, 0] = 0.0
    square = variance.T @ np.square(values)
    spread = np.stack([v @ np.square(values - c) for v, c in zip(variance.T, centre, strict=True)])
    varies = spread > _ROUNDING * square
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, spread, 1.0)), 0.0)
    weighted = weight[:, None] * sample.expected
    expected = weighted.T @ values - centre * weighted.sum(axis=0)[:, None]
    return weight[:, None] * values, centre, expected, scale


def _impossible(sample: Sample) -> NDArray[np.float64] | None:
    """Return a table of the outcomes of probability 0, ``(n_samples, n_outcomes)``; None if there are none."""
    impossible = sample.given_null <= 0
    return impossible.astype(np.float64) if impossible.any() else None
