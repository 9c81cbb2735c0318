"""A tree of cells that was grown on other predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arguments import reads_arguments
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical
from caltest.predictions._partitions import Assignment, Partition
from caltest.predictions._validation import validate_prob
from caltest.predictions._variance_tree import Tree, VarianceTree

_SHOWN = 4  # cells of a tree that is printed as code


@dataclass(frozen=True, repr=False)
class FixedTree(Partition):
    """Cells (bins) of a tree that does not change, however many predictions there are.

    `FixedTree.grow` makes it of a sample of predictions. Node 0 is the root; a prediction goes to node ``left`` if its
    probability of outcome ``axis`` is less than ``threshold``, and otherwise to node ``left + 1``.

    Parameters
    ----------
    axis : sequence of int
        The outcome at which each node is cut.
    threshold : sequence of float
        Where each node is cut.
    left : sequence of int
        The first child of each node; -1 for a leaf, which is a cell.

    Raises
    ------
    TypeError
        If an argument is no sequence of numbers.
    ValueError
        If lengths differ, these are not the nodes of one tree, or a threshold is not finite; if the fitted predictions
        have fewer outcomes.

    See Also
    --------
    VarianceTree : Grows the tree on the predictions that are tested.
    caltest.streaming.RedrawnCells : Cells of predictions that do not fit into memory, which must be fixed beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.1, 0.2, 0.7], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1]])
    >>> tree = FixedTree(axis=[1, 0, 0], threshold=[0.5, 0.0, 0.0], left=[1, -1, -1])
    >>> tree.fit(prob)(prob)
    array([1, 2, 1])
    """

    axis: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]

    depends_on_sample = False

    def __init__(self, axis: Sequence[int], threshold: Sequence[float], left: Sequence[int]) -> None:
        try:
            object.__setattr__(self, "axis", tuple(index(k) for k in axis))
            object.__setattr__(self, "threshold", tuple(float(cut) for cut in threshold))
            object.__setattr__(self, "left", tuple(index(child) for child in left))
        except (TypeError, ValueError):
            msg = "`axis` and `left` must be sequences of integers, and `threshold` one of numbers."
            raise TypeError(msg) from None
        n_nodes = len(self.left)
        children = sorted(child for child in self.left if child >= 0)
        whole = children == list(range(1, n_nodes, 2)) and n_nodes % 2 == 1
        later = all(child < 0 or child > node for node, child in enumerate(self.left))
        numbered = later and all(child >= -1 for child in self.left) and all(k >= 0 for k in self.axis)
        if not (len(self.axis) == len(self.threshold) == n_nodes and whole and numbered):
            msg = (
                "`axis`, `threshold` and `left` must be the nodes of one tree: of equal lengths, each node but the "
                "root being a child of an earlier one, -1 for no child, and outcomes numbered from 0."
            )
            raise ValueError(msg)
        if not np.isfinite(self.threshold).all():
            msg = f"`threshold` must be finite, got {self.threshold}."
            raise ValueError(msg)

    @classmethod
    @reads_arguments
    def grow(cls, y_prob: ArrayLike, tree: VarianceTree | None = None, *, lens: Lens | None = None) -> FixedTree:
        """Return the cells of a `VarianceTree` that is grown on predictions of three outcomes or more.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples, n_classes)
            Predictions of a sample; labels play no part.
        tree : VarianceTree, optional
            The tree, ``VarianceTree()`` by default.
        lens : lens, optional
            What will be looked at; the whole prediction by default.

        Returns
        -------
        FixedTree
            The same cells, for any predictions.

        Raises
        ------
        TypeError
            If ``tree`` is no `VarianceTree`.
        ValueError
            If a probability is missing or outside [0, 1], rows do not sum to 1, or there are only two outcomes.

        Examples
        --------
        >>> import caltest
        >>> _, y_prob = caltest.datasets.load_cifar10_vgg16()
        >>> FixedTree.grow(y_prob, caltest.VarianceTree(max_cells=8)).n_cells
        8
        """
        chosen = VarianceTree() if tree is None else tree
        if not isinstance(chosen, VarianceTree):
            msg = f"`tree` must be a VarianceTree, got {tree!r}."
            raise TypeError(msg)
        if not isinstance(lens, Lens | None):
            msg = f"`lens` must be a lens such as Canonical() or TopK(2), got {lens!r}."
            raise TypeError(msg)
        prob = (Canonical() if lens is None else lens).induced(validate_prob(y_prob))
        if prob.shape[1] == 2:
            msg = "`y_prob` must have three outcomes or more; for two, take EqualWidth, Edges or equal_mass_cells."
            raise ValueError(msg)
        grown = chosen.fit(prob)
        return cls(grown.axis, grown.threshold, grown.left)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        """Code of a small tree; of a larger one its size, and a hash by which different trees are told apart."""
        code = super().__repr__()
        if self.n_cells <= _SHOWN:
            return code
        return f"<FixedTree of {self.n_cells} cells, {sha256(code.encode()).hexdigest()[:8]}>"

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.left.count(-1)

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment of probabilities to leaves."""
        if max(self.axis) >= prob.shape[1]:
            msg = f"this `FixedTree` cuts at outcome {max(self.axis)}, got predictions of {prob.shape[1]} outcomes."
            raise ValueError(msg)
        return Tree(np.array(self.axis), np.array(self.threshold), np.array(self.left))
