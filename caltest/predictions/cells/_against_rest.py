"""Cells (bins) of one outcome against the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.cells._partitions import Assignment, Partition, fit_partition, validate_partition
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count


@dataclass(frozen=True, repr=False)
class AgainstRest(Partition):
    """Cells of one outcome against the rest: a partition of the probability that outcome k does not happen.

    A partition made for two outcomes serves any number of them. With two outcomes it is that partition itself.

    Parameters
    ----------
    k : int
        The outcome, from 0.
    partition : Partition or callable
        Cells of the pair ``(prob[:, k], 1 - prob[:, k])``.

    Raises
    ------
    TypeError
        If ``k`` is not an integer, or ``partition`` neither a partition nor a function.
    ValueError
        If ``k`` < 0, or if the fitted predictions have no outcome k.

    See Also
    --------
    caltest.predictions.ClassWise : The lens that makes a two-outcome problem of one class.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.25, 0.375, 0.375]])
    >>> AgainstRest(0, EqualMass(3)).fit(prob)(prob)
    array([0, 2, 1])
    """

    k: int = 0
    partition: Partition | Any = EqualMass(10)

    def __post_init__(self) -> None:
        validate_count(self.k, "k", minimum=0)
        validate_partition(self.partition)

    @property
    def depends_on_sample(self) -> bool:
        """Whether the cells of the pair depend on the predictions."""
        return getattr(self.partition, "depends_on_sample", False)

    def fit(self, prob: Floats) -> Assignment:
        """Return the function from probabilities to cell labels."""
        return _OfPair(self._pair, fit_partition(self.partition, self._pair(prob)))

    def _pair(self, prob: Floats) -> Floats:
        if self.k >= prob.shape[1]:
            refuse(f"`k` must be less than the number of outcomes, {prob.shape[1]}, got {self.k}.")
        return prob if prob.shape[1] == 2 else np.column_stack([prob[:, self.k], 1 - prob[:, self.k]])


@dataclass(frozen=True)
class _OfPair:
    """Assignment of a pair of outcomes, which a function makes of all of them."""

    pair: Callable[[Floats], Floats]
    assign: Assignment

    def __call__(self, prob: Floats) -> Integers:
        return self.assign(self.pair(prob))
