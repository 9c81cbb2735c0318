"""The cells of a state of more than two outcomes, and the draws that are made in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.cells._simplex_grid import SimplexGrid
from caltest.predictions.cells._trees import FixedTree
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count
from caltest.results._naming import Specification, describe

_KINDS: dict[str, type[Partition]] = {kind.__name__: kind for kind in (EqualWidth, SimplexGrid, FixedTree)}
_MOST_LABELS = 2**62
MOST_COUNTS = 2**27
"""The most numbers of outcomes that a state holds, of all cells together: 1 GiB."""
_ONE_CELL = EqualWidth(1)


@dataclass(frozen=True, repr=False)
class RedrawnCells(Specification):
    r"""Cells (bins) of a state of more than two outcomes, and how many data sets are drawn while rows are added.

    The null distribution of several outcomes does not follow from sums of predictions. So a state draws the outcomes of
    every row that is added, :math:`Y^{(b)}_i \sim p_i` for :math:`b = 1, \dots, B`, and counts them in the cells, next
    to the outcomes that happened. The draw is a hash of ``rng``, the name of the source, the number of the row and b:
    any batches, order and workers draw the same.

    Parameters
    ----------
    partition : EqualWidth, SimplexGrid or FixedTree
        The cells, which must not depend on the predictions that are added. Only occupied cells take memory.
    n_resamples : int
        Number B of data sets. No p-value is smaller than ``1 / (B + 1)``.
    rng : int
        Seed of the draws. States that are merged need the same one.

    Raises
    ------
    TypeError
        If ``partition`` is none of these, or ``n_resamples`` or ``rng`` is no integer.
    ValueError
        If the cells depend on the number of observations (``EqualWidth("sqrt")``), ``n_resamples`` < 1 or ``rng`` < 0.

    See Also
    --------
    CalibrationState : Takes it as ``micro_cells``.
    caltest.FixedTree : Cells for many classes, from a sample of predictions.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.2 (consistency
    resampling).

    Examples
    --------
    >>> import caltest
    >>> from caltest.streaming import CalibrationState
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> state = CalibrationState(10, caltest.Canonical(), RedrawnCells(caltest.EqualWidth(2)))
    >>> state.update(y_true, y_prob).test().pvalue
    0.005
    """

    partition: Partition = EqualWidth(4)
    n_resamples: int = 199
    rng: int = 0

    def __post_init__(self) -> None:
        if type(self.partition) not in _KINDS.values():
            refuse(
                "`partition` must be EqualWidth(n), SimplexGrid(n), or a FixedTree that was grown on a sample of "
                f"predictions, got {describe(self.partition)}.",
                TypeError,
            )
        if isinstance(self.partition, EqualWidth) and isinstance(self.partition.n_cells, str):
            refuse(f"`partition` must not depend on the number of observations, got {self.partition!r}.")
        validate_count(self.n_resamples, "n_resamples")
        validate_count(self.rng, "rng", minimum=0)

    @property
    def plain(self) -> dict[str, Any]:
        """The parameters as plain objects, which a file can keep."""
        parameters = {field.name: getattr(self.partition, field.name) for field in fields(self.partition)}  # type: ignore[arg-type]
        return {
            "partition": type(self.partition).__name__,
            "parameters": json.loads(json.dumps(parameters, default=int)),  # integers of NumPy
            "n_resamples": int(self.n_resamples),
            "rng": int(self.rng),
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> RedrawnCells:
        """Return what has these parameters."""
        partition = _KINDS[plain["partition"]](**plain["parameters"])
        return cls(partition, plain["n_resamples"], plain["rng"])

    def validate_outcomes(self, n_outcomes: int) -> None:
        """Refuse a number of outcomes for which the cells cannot be numbered."""
        if (1 + self.n_resamples) * n_outcomes > MOST_COUNTS:
            refuse(
                f"`n_resamples` of RedrawnCells must be below {MOST_COUNTS // n_outcomes:,} for {n_outcomes:,} "
                f"outcomes, so that the numbers of outcomes of a cell fit into memory, got {self.n_resamples:,}."
            )
        axes = n_axes(self.partition, n_outcomes)
        if isinstance(self.partition, EqualWidth) and int(self.partition.n_cells) ** axes > _MOST_LABELS:
            refuse(
                f"`micro_cells` has too many cells to be numbered: {self.partition!r} of {n_outcomes} outcomes; take "
                "RedrawnCells(FixedTree.grow(y_prob)), where y_prob is a sample of predictions."
            )
        self.partition.fit(np.full((1, n_outcomes), 1 / n_outcomes))

    def label(self, prob: Floats) -> Integers:
        """Return the cell of each prediction, which does not depend on the others."""
        return self.partition.fit(prob)(prob).astype(np.int64)

    def coarser(self, label: Integers, n_outcomes: int, partition: Any) -> Integers:
        """Return the labels that cells have in a partition made of them; refuse other partitions."""
        own = self.partition
        if partition == own:
            return label
        if partition == _ONE_CELL:
            return np.zeros_like(label)
        if isinstance(own, EqualWidth) and isinstance(partition, EqualWidth) and isinstance(partition.n_cells, int):
            n, m = int(own.n_cells), partition.n_cells
            if n % m == 0 and (own.axes, own.closed) == (partition.axes, partition.closed):
                place = np.unravel_index(label, (n,) * n_axes(own, n_outcomes))
                return np.ravel_multi_index([one // (n // m) for one in place], (m,) * len(place)).astype(np.int64)
        possible = f"{own!r} or EqualWidth(1)"
        if isinstance(own, EqualWidth):
            possible = f"{own!r} and EqualWidth(n) for every n that divides {own.n_cells}"
        msg = f"the cells of {describe(partition)} cannot be made of those of the state; possible are {possible}."
        raise ValueError(msg)


def n_axes(partition: Partition, n_outcomes: int) -> int:
    """Return the number of axes of a product grid, 1 for other cells."""
    if not isinstance(partition, EqualWidth):
        return 1
    return n_outcomes if partition.axes == "all" else n_outcomes - 1
