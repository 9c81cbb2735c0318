"""Label shift: how right predictions change if classes are more or less frequent than where the model was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import SUM_TOLERANCE
from caltest.results._naming import Specification


@dataclass(frozen=True, repr=False)
class LabelShift(Specification):
    r"""Calibration function of a calibrated model whose classes have other frequencies than where it was trained.

    .. math:: \rho_k(p) = \frac{p_k \, q_k / \pi_k}{\sum_j p_j \, q_j / \pi_j}

    with the frequencies q of the classes now and :math:`\pi` at training. If a model was calibrated there, and the
    inputs of each class are distributed as before, these are the probabilities of the labels now (Saerens, Latinne and
    Decaestecker 2002). ``Consistency(calibration_function=LabelShift(...))`` tests whether nothing else is wrong.

    Frequencies must be known otherwise. If those of the tested labels are taken, the hypothesis is fitted to them, and
    the test rejects too rarely.

    Parameters
    ----------
    now : float or sequence of float
        Frequency of each class where labels are tested, in the order of the columns; of two classes that of the event.
    trained : float or sequence of float
        The same where the model was trained. All of them must be positive.

    Raises
    ------
    TypeError
        If frequencies are not numbers.
    ValueError
        If frequencies are negative or do not sum to 1, if one of ``trained`` is 0, or if there are not as many of both;
        when it is applied, if there are not as many outcomes, or all classes of a prediction have frequency 0 now.

    See Also
    --------
    caltest.Consistency : Takes a calibration function as null hypothesis.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 14, 21-41.

    Examples
    --------
    A model was trained where half of the patients were ill. Among 10 % a prediction of 0.5 means 0.1:

    >>> import numpy as np
    >>> from caltest.resampling import LabelShift
    >>> LabelShift(0.1, 0.5)(np.array([[0.5, 0.5], [0.1, 0.9]])).round(3)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    now: float | Sequence[float]
    trained: float | Sequence[float]

    def __post_init__(self) -> None:
        now, trained = _frequencies(self.now, "now"), _frequencies(self.trained, "trained")
        if len(now) != len(trained):
            refuse(f"`now` and `trained` must have as many classes, got {len(now)} and {len(trained)}.")
        require(min(trained) > 0, "`trained` must be positive for every class", list(trained))
        self._keep(now=now, trained=trained)

    def __call__(self, prob: Floats) -> Floats:
        """Return the probabilities ``(n_samples, n_outcomes)`` of the labels now."""
        ratio = np.divide(self.now, self.trained)
        if prob.shape[1] != len(ratio):
            refuse(f"`LabelShift` has {len(ratio)} classes, and the predictions {prob.shape[1]}.")
        changed = prob * ratio
        total = changed.sum(axis=1, keepdims=True)
        row = np.flatnonzero(total[:, 0] <= 0)
        refuse_if(row.size, f"`LabelShift` leaves no class possible for the prediction {prob[row[:1]].tolist()}.")
        return np.asarray(changed / total)


def _frequencies(value: Any, name: str) -> tuple[float, ...]:
    """Return the frequencies of all classes."""
    must = f"`{name}` must be frequencies of classes that sum to 1, or that of the event"
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.asarray(np.nan)
        require(False, must, value, right_type=False)
    right = found.ndim <= 1 and bool(np.isfinite(found).all() and (found >= 0).all())
    require(right and (found.ndim == 0 or len(found) > 1), must, value)
    if found.ndim == 0:
        require(float(found) <= 1, must, value)
        return 1 - float(found), float(found)
    require(abs(found.sum() - 1) <= SUM_TOLERANCE, must, value)
    return tuple(found.tolist())
