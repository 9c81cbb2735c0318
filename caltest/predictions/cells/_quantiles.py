"""Cells (bins) with equal numbers of observations or equal sums of standard deviations, and those of one outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._refit_intervals import cut_equal_mass
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.cells._partitions import (
    Assignment,
    Intervals,
    Partition,
    block_starts,
    fit_partition,
    number_drawn,
    require_two_outcomes,
    resolve_n_cells,
    validate_n_cells,
    validate_partition,
)
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice, validate_count


@dataclass(frozen=True, repr=False)
class EqualMass(Partition):
    """Cells that hold the same number of observations, as far as ties allow; for two outcomes.

    The order of the observations does not matter: a block of tied values belongs to one cell as a whole, and cells that
    are empty because of that are dropped.

    Parameters
    ----------
    n_cells : int, "sqrt" or "cube-root"
        Number of cells aimed at; "sqrt" makes the integer part of the square root of the number of observations
        (Posocco and Bonnefoy 2021, section 4.5.1; they find that it grows somewhat too fast), "cube-root" its cube
        root, rounded up: the number of bins that scikit-learn makes with ``n_bins="cube_root"`` (pull request 33856).
        Its edges are interpolated quantiles, so that single observations may be in another cell.
    cut : {"value", "floor", "halfway"}
        "value" cuts the sorted observations where ``numpy.array_split`` cuts them, so that edges are predicted values;
        a block of tied values belongs to the cell of its first one. "floor" (Nixon et al. 2019, section 4.2) does the
        same at the multiples of ``n_samples // n_cells``: the last cell takes the remainder, and there are at most as
        many cells as observations. "halfway" (the adaptive binning of Posocco and Bonnefoy 2021, as released) cuts
        there too, but halfway to the next value; a value equal to an edge belongs above it.

    Raises
    ------
    TypeError
        If ``n_cells`` is neither an integer nor a text, or ``cut`` is no text.
    ValueError
        If ``n_cells`` < 1 or another text, if ``cut`` is unknown, or if the fitted predictions have more
        than two outcomes.

    See Also
    --------
    EqualWidth : Cells of equal width.
    VarianceTree : Cells for any number of outcomes that adapt to the predictions.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 4.2.
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.2, 0.2, 0.2, 0.7, 0.9])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualMass(3).fit(prob)(prob)
    array([0, 0, 0, 0, 1, 1])
    >>> EqualMass(3, cut="halfway").fit(prob)(prob)
    array([0, 1, 1, 1, 2, 2])

    Eight observations in three cells, of 3, 3 and 2, or of 2, 2 and 4:

    >>> event = np.arange(1, 9) / 10
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualMass(3).fit(prob)(prob), EqualMass(3, cut="floor").fit(prob)(prob)
    (array([0, 0, 0, 1, 1, 1, 2, 2]), array([0, 0, 1, 1, 2, 2, 2, 2]))
    """

    n_cells: int | str
    cut: str = "value"

    n_outcomes = 2

    def __post_init__(self) -> None:
        validate_n_cells(self.n_cells)
        validate_choice(self.cut, "cut", ("value", "floor", "halfway"))

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment to intervals between the cuts of the fitted observations."""
        require_two_outcomes(prob, "EqualMass")
        event = np.sort(prob[:, 1])
        if self.cut == "halfway":
            after = self._multiples(len(event))
            return Intervals((event[after - 1] + event[after]) / 2)
        starts = self.refit(event, np.ones((1, len(event)), dtype=np.uint16))[0, 1:-1]
        return Intervals(np.unique(event[starts[starts < len(event)]]))

    @property
    def refits(self) -> bool:
        """Whether `refit` is defined: for cuts at predicted values."""
        return self.cut != "halfway"

    def refit(self, event: Floats, drawn: NDArray[np.uint16]) -> Integers:
        """Cut every resample; a cell starts at the first block of ties that begins at or after its cut."""
        n_drawn = number_drawn(drawn)
        n_cells = resolve_n_cells(self.n_cells, n_drawn)
        size, larger = divmod(n_drawn, n_cells)
        even = np.cumsum(np.where(np.arange(n_cells) < larger, size + 1, size))[:-1]
        cut = self._multiples(n_drawn) if self.cut == "floor" else even
        return cut_equal_mass(block_starts(event), drawn, cut)

    def _multiples(self, n_samples: int) -> Integers:
        """Return the ranks of the cuts if the last cell takes the remainder."""
        n_cells = min(resolve_n_cells(self.n_cells, n_samples), n_samples)
        return np.arange(1, n_cells) * (n_samples // n_cells)


_ROUNDING = 1e-9  # of a cell: sums from either end differ by less


@dataclass(frozen=True, repr=False)
class EqualSpread(Partition):
    r"""Cells with equal sums of the standard deviations of the labels, as far as ties allow; for two outcomes.

    A label that has probability p has the standard deviation :math:`\sqrt{p (1 - p)}`. With the sum S of them over all
    observations, and :math:`S_p` over those with predictions below p and half of those equal to p, the cell is

    .. math:: \lfloor L S_p / S \rfloor, \qquad 0 \le S_p \le S.

    This is the rule of stratified sampling under which every stratum deserves the same number of observations. It lies
    between equal numbers of observations, which leave the positive tenth of the predictions of a class one or two of 15
    cells, and equal variances, which leave one cell to all sharp predictions.

    Edges are halfway between neighbouring predictions. Equal predictions are in one cell, and cells that are empty
    because of that are dropped. An event and its complement have mirrored cells: a prediction on a boundary belongs to
    the cell that is nearer to 0 or 1 (to the cell above if the boundary is in the middle, which needs an even number
    of cells). If all predictions are 0 or 1, the edge is 1/2.

    Parameters
    ----------
    n_cells : int
        Number of cells L aimed at.

    Raises
    ------
    TypeError
        If ``n_cells`` is no integer.
    ValueError
        If ``n_cells`` < 1, or if the fitted predictions have more than two outcomes.

    See Also
    --------
    EqualMass : Cells with equal numbers of observations.
    EqualWidth : Cells of equal width.

    References
    ----------
    T. Dalenius and J. L. Hodges (1959), Minimum variance stratification, Journal of the American Statistical
    Association 54.
    W. G. Cochran (1977), Sampling techniques, section 5A.7.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.0, 0.001, 0.001, 0.01, 0.02, 0.5, 0.9, 0.99])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualSpread(3).fit(prob)(prob)
    array([0, 0, 0, 0, 0, 1, 2, 2])
    """

    n_cells: int

    n_outcomes = 2

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment to intervals between the fitted predictions."""
        require_two_outcomes(prob, "EqualSpread")
        value, times = np.unique(prob[:, 1], return_counts=True)
        mass = times * label_spread(value)
        total = mass.sum()
        if total > 0:
            label = self._labels((np.cumsum(mass) - mass / 2) * (self.n_cells / total))
        else:
            label = (value > 1 / 2).astype(np.int64)
        change = np.flatnonzero(np.diff(label))
        below, above = value[change], value[change + 1]
        halfway = (below + above) / 2
        return Intervals(np.where(halfway > below, halfway, above))

    def _labels(self, place: Floats) -> Integers:
        """Return the cells of places from 0 to L; those on a boundary belong to the outer cell."""
        nearest = np.rint(place)
        outer = np.where(2 * nearest < self.n_cells, nearest - 1, nearest)
        label = np.where(np.abs(place - nearest) < _ROUNDING, outer, np.floor(place))
        return np.clip(label, 0, self.n_cells - 1).astype(np.int64)


def label_spread(event: Floats) -> Floats:
    """Return the standard deviation of a label with each of these probabilities."""
    return np.sqrt(np.maximum(event * (1 - event), 0.0))


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
