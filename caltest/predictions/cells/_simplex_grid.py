"""Triangular cells (bins) of equal size for three outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.cells._partitions import Assignment, Partition
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count

_MOST = 1000
_ROUNDING = 2.0**-22  # float32: each probability by 2**-25, and their sum by 3 * 2**-24


@dataclass(frozen=True, repr=False)
class SimplexGrid(Partition):
    r"""Cells of equal size for three outcomes: the simplex is cut into ``n * n`` congruent triangles.

    The cells of the two-dimensional reliability diagrams of Vaicenavicius et al. (2019, figure 1: 25 and 100 cells).
    Lines :math:`p_k = j / n` cut the triangle of all predictions into n (n + 1) / 2 upward triangles, which have the
    shape of the whole, and n (n - 1) / 2 downward ones.

    Every prediction belongs to exactly one cell. A prediction on an edge belongs to the upward triangle, which lies
    where the probability is at least that of the edge; so do the faces of the simplex. A prediction at a point where
    six triangles meet belongs to the upward triangle whose corner of highest probability it is, for its most probable
    outcome; if two outcomes are tied, to the downward triangle between these. So the cells of predictions whose
    classes are permuted are the mirror images of the cells, but for the prediction of three equal probabilities where
    n is a multiple of 3: it belongs to the upward triangle of outcome 0.

    A probability that misses an edge by no more than 2**-22, the rounding of float32, lies on it, so that 0.3 and
    ``0.1 * 3`` have the same cell. Cells are numbered by the probability of outcome 0, then of outcome 1.

    Parameters
    ----------
    n : int
        Number of cells along an edge of the simplex, 1 to 1000; there are ``n * n`` cells.

    Raises
    ------
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` < 1 or > 1000, or if the fitted predictions do not have three outcomes.

    See Also
    --------
    EqualWidth : Intervals of equal width; for more than two outcomes a product grid.
    VarianceTree : Cells for any number of outcomes that adapt to the predictions.
    simplex_diagram : Reliability diagram of three or four classes.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.1, 0.1, 0.8], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.3, 0.3, 0.4]])
    >>> SimplexGrid(2).fit(prob)(prob)
    array([0, 2, 3, 1])
    >>> SimplexGrid(2).corners[3].tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]
    """

    n: int

    depends_on_sample = False
    n_outcomes = 3

    def __post_init__(self) -> None:
        if validate_count(self.n, "n") > _MOST:
            refuse(f"`n` must be at most {_MOST}, which makes {_MOST**2} cells, got {self.n}.")

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment of probabilities to triangles, 0 to ``n * n - 1``; ``prob`` needs three columns."""
        if prob.shape[1] != 3:
            refuse(
                "`SimplexGrid` needs a lens with three outcomes, such as TopK(2) or ClassGroups(...) of three groups, "
                f"got {prob.shape[1]} outcomes; VarianceTree() cuts any number."
            )
        return self._label

    @property
    def corners(self) -> Floats:
        """The corners of every cell, ``(n * n, 3, 3)``: cells, corners, probabilities of the outcomes."""
        i, j = np.divmod(np.arange(self.n * self.n), self.n)
        inside = i + j < self.n
        up = np.column_stack([i, j, self.n - 1 - i - j])[inside]
        down = np.column_stack([i, j, self.n - 2 - i - j])[i + j < self.n - 1]
        corners = np.empty((self.n * self.n, 3, 3))
        corners[self._number(up, downward=0)] = up[:, None, :] + np.eye(3)
        corners[self._number(down, downward=1)] = down[:, None, :] + (1 - np.eye(3))
        return corners / self.n

    def _label(self, prob: Floats) -> Integers:
        position = self.n * (prob / prob.sum(axis=1, keepdims=True))
        nearest = np.rint(position)
        on_line = np.abs(position - nearest) <= self.n * _ROUNDING
        floor = np.where(on_line, nearest, np.floor(position)).astype(np.int64)
        rest = self.n - floor.sum(axis=1)  # 1 upwards, 2 downwards, 0 where triangles meet
        meet = rest == 0
        highest = floor[meet] == floor[meet].max(axis=1, keepdims=True)
        highest &= (highest.sum(axis=1, keepdims=True) < 3) | (np.arange(3) == 0)
        floor[meet] -= highest
        rest[meet] = highest.sum(axis=1)
        return self._number(floor, rest - 1)

    def _number(self, floor: Integers, downward: Integers | int) -> Integers:
        """Return the number of the cell with some lower ends ``(n_cells, 3)``: strips of outcome 0, each by outcome 1.

        Strip i has 2 (n - i) - 1 cells.
        """
        strip = floor[:, 0]
        return strip * (2 * self.n - strip) + 2 * floor[:, 1] + downward
