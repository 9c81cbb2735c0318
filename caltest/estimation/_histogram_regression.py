"""Histogram regression: the calibration function, estimated cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lenses import Canonical, Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Cells, CellSums, Region, apply_lens, make_sample
from caltest.predictions._validation import validate_prob
from caltest.predictions._variance_tree import VarianceTree
from caltest.results._naming import describe


@dataclass(frozen=True, eq=False)
class HistogramRegression:
    r"""Histogram regression estimate :math:`\hat r` of the calibration function (section 4.1 of the paper).

    Attributes
    ----------
    count : array of shape (n_cells,)
        Rows in each occupied cell.
    share : array of shape (n_cells,)
        :math:`\hat p^{(i)}`, the share of the rows.
    predicted : array of shape (n_cells, n_outcomes)
        :math:`\hat g^{(i)}`, the average prediction.
    observed : array of shape (n_cells, n_outcomes)
        :math:`\hat r^{(i)}`, the outcome frequencies.
    lens : str
        What was looked at.
    """

    count: NDArray[np.float64]
    share: NDArray[np.float64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    lens: str
    _cells: Cells = field(repr=False)
    _lens: Lens = field(repr=False)
    _region: Region | None = field(repr=False)
    _n_classes: int = field(repr=False)

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    @property
    def deviation(self) -> NDArray[np.float64]:
        r""":math:`\hat r^{(i)} - \hat g^{(i)}`, ``(n_cells, n_outcomes)``."""
        return self.observed - self.predicted

    def expected_miscalibration(self, distance: Distance = total_variation) -> float:
        r"""Return :math:`\hat\eta_d = \sum_i \hat p^{(i)} d(\hat g^{(i)}, \hat r^{(i)})` (equation 6)."""
        return float(distance(self.predicted, self.observed) @ self.share)

    def worst_case_miscalibration(self, distance: Distance = total_variation) -> float:
        r"""Return :math:`\max_i d(\hat g^{(i)}, \hat r^{(i)})` over the occupied cells."""
        return float(distance(self.predicted, self.observed).max())

    def predict(self, y_prob: ArrayLike) -> NDArray[np.float64]:
        r"""Return :math:`\hat r` at new predictions.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Predictions of the model, before the lens.

        Returns
        -------
        array of shape (n_samples, n_outcomes)
            Estimated outcome probabilities; 0 in a cell without fitted rows, as in the paper, and NaN outside the
            region, where nothing is estimated.
        """
        prob = validate_prob(y_prob)
        if prob.shape[1] != self._n_classes:
            msg = f"`y_prob` must have the {self._n_classes} classes of the fitted predictions, got {prob.shape[1]}."
            raise ValueError(msg)
        prob, _ = apply_lens(self._lens, prob, np.zeros(len(prob), dtype=np.int64))
        label = self._cells.assign(prob)
        cell = np.minimum(np.searchsorted(self._cells.label, label), self.n_cells - 1)
        estimate = np.where((self._cells.label[cell] == label)[:, None], self.observed[cell], 0.0)
        if self._region is not None:
            estimate[~np.asarray(self._region(prob))] = np.nan
        return estimate

    def __str__(self) -> str:
        return (
            f"Histogram regression through {self.lens}: {self.n_cells} occupied cells, "
            f"expected miscalibration {self.expected_miscalibration():.4g} (total variation), "
            f"worst cell {self.worst_case_miscalibration():.4g}"
        )


def histogram_regression(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
) -> HistogramRegression:
    r"""Estimate the calibration function by the outcome frequencies in the cells of a partition.

    .. math:: \hat r(w)(\{y\}) = \frac{|\{i : g(X_i) \in \Phi[w] \wedge Y_i = y\}|}{|\{i : g(X_i) \in \Phi[w]\}|}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the induced simplex; ``VarianceTree()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans: the set A to which all is restricted.

    Returns
    -------
    HistogramRegression
        Cell counts, predictions, frequencies and deviations; `~HistogramRegression.predict` for new rows.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.1.
    A. Nobel (1996), Histogram regression estimation using data-dependent partitions, Annals of Statistics.

    Examples
    --------
    >>> import caltest
    >>> fit = caltest.histogram_regression([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], partition=caltest.EqualWidth(2))
    >>> fit.observed[:, 1].tolist(), fit.predict([0.2, 0.7])[:, 1].tolist()
    ([0.5, 1.0], [0.5, 1.0])
    """
    prob = validate_prob(y_prob)
    sample = make_sample(y_true, prob, classes=classes, lens=lens, region=region)
    cells = sample.cells(VarianceTree() if partition is None else partition)
    sums = CellSums.of(sample, cells, sample.outcome)
    chosen = Canonical() if lens is None else lens
    return HistogramRegression(
        sums.count, sums.share, sums.predicted, sums.observed, describe(chosen), cells, chosen, region, prob.shape[1]
    )
