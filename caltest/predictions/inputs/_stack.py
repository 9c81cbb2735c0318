"""Stacks of predictions: several passes of a Bayesian network, or the members of an ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._frames import from_tensor
from caltest.predictions.inputs._models import naming
from caltest.predictions.inputs._refusals import require
from caltest.predictions.inputs._scale import PROBABILITIES, as_probabilities, validate_input
from caltest.predictions.inputs._validation import validate_choice, validate_prob
from caltest.results._description import counted


class PredictionStack:
    r"""Predictions of several passes of the same observations, which count as their average.

    .. math:: p_i = \frac1T \sum_{t=1}^T p_{ti}

    Bayesian networks predict by averaging T random passes, such as those of Monte Carlo dropout, and ensembles by
    averaging their members (Laves et al. 2020, equation 28). Pass the stack wherever predictions are asked for,
    ``calibration_test(y_true, stack)``: it is an array-like of shape ``(n_samples, n_classes)``, the average. A plain
    array of three dimensions is refused, because its first axis could be anything. `rejection_curve` and `shift_curve`
    also take the disagreement of its passes as an uncertainty.

    Parameters
    ----------
    y_prob : array-like of shape (n_passes, n_samples, n_classes)
        Predicted probabilities of every pass.
    average : {"passes"}
        What the first axis holds, over which is averaged.
    input : {"probabilities", "logits"}
        What predictions are. Of logits the softmax is taken in every pass, before the average.

    Attributes
    ----------
    passes : array of shape (n_passes, n_samples, n_classes)
        The predictions of every pass.
    mean : array of shape (n_samples, n_classes)
        Their average.

    Raises
    ------
    TypeError
        If ``average`` is no text.
    ValueError
        If ``y_prob`` does not have three dimensions, or a pass has values outside [0, 1] or does not sum to 1; if
        ``average`` is unknown.

    See Also
    --------
    caltest.rejection_curve : Errors of what is kept if the predictions with the largest disagreement are rejected.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, appendix A.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.predictions import PredictionStack
    >>> passes = [[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]]
    >>> stack = PredictionStack(passes, average="passes")
    >>> stack
    PredictionStack(2 passes, 2 observations, 2 classes)
    >>> stack.mean
    array([[0.8, 0.2],
           [0.4, 0.6]])
    >>> round(caltest.estimation.brier_score([0, 1], stack), 3)
    0.1
    """

    def __init__(self, y_prob: ArrayLike, *, average: str, input: str = PROBABILITIES) -> None:  # noqa: A002
        validate_choice(average, "average", ("passes",))
        kind = validate_input(input, "input")
        array = np.asarray(from_tensor(y_prob))
        require(array.ndim == 3, "`y_prob` must have shape (n_passes, n_samples, n_classes)", array.shape)
        require(len(array), "`y_prob` must hold at least one pass", array.shape)
        passes = []
        for number, prob in enumerate(array):
            with naming(f"pass {number}"):
                passes.append(validate_prob(as_probabilities(prob, "y_prob", kind)[0]))
        self.passes: Floats = np.stack(passes)
        self.mean: Floats = self.passes.mean(axis=0)
        for values in (self.passes, self.mean):
            values.flags.writeable = False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the average, ``(n_samples, n_classes)``."""
        return self.mean.copy() if dtype is None else self.mean.astype(dtype)

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.mean)

    def __repr__(self) -> str:
        return f"PredictionStack({len(self.passes)} passes, {counted(len(self))}, {self.mean.shape[1]} classes)"
