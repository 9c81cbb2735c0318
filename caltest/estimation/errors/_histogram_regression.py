"""Histogram regression: the calibration function estimated in cells (bins)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import LookOptions, looked_at
from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import Region, apply_distance, apply_lens, apply_region
from caltest.predictions.cells._cells import Cells, CellSums, cells_of, few_cells_notes
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import read_problem, reads_arguments
from caltest.predictions.inputs._validation import require, validate_prob, validate_problem
from caltest.results import Note, Result
from caltest.results._description import Description, Table, counted
from caltest.results._naming import describe

_SHOWN = 5  # cells and outcomes that are printed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HistogramRegression(Result):
    r"""Result of `histogram_regression`: an estimate :math:`\hat r` of the calibration function.

    Attributes
    ----------
    count : array of shape (n_cells,)
        Number of observations in each occupied cell.
    share : array of shape (n_cells,)
        :math:`\hat p^{(i)}`, the share of the observations.
    predicted : array of shape (n_cells, n_outcomes)
        :math:`\hat g^{(i)}`, the average prediction.
    observed : array of shape (n_cells, n_outcomes)
        :math:`\hat r^{(i)}`, the frequencies of the outcomes.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    partition : Partition or callable
        The cells (bins).
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.histogram_regression : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> fit = caltest.histogram_regression(y_true, y_prob)
    >>> round(fit.expected_miscalibration(), 3), fit.predict(y_prob[:2]).shape
    (0.032, (2, 2))
    """

    count: Floats
    share: Floats
    predicted: Floats
    observed: Floats
    lens: LensLike
    lens_name: str
    partition: Any
    notes: tuple[Note, ...]
    _cells: Cells = field(repr=False)
    _region: Region | None = field(repr=False)
    _n_classes: int = field(repr=False)

    _derived: ClassVar[tuple[str, ...]] = ("n_cells", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = ("count", "share", "predicted", "observed")

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    @property
    def deviation(self) -> Floats:
        r""":math:`\hat r^{(i)} - \hat g^{(i)}`, ``(n_cells, n_outcomes)``."""
        return self.observed - self.predicted

    def expected_miscalibration(self, distance: Distance = total_variation) -> float:
        r"""Return :math:`\hat\eta_d = \sum_i \hat p^{(i)} d(\hat g^{(i)}, \hat r^{(i)})` (equation 6)."""
        return float(apply_distance(distance, self.predicted, self.observed) @ self.share)

    def worst_case_miscalibration(self, distance: Distance = total_variation) -> float:
        r"""Return :math:`\max_i d(\hat g^{(i)}, \hat r^{(i)})` over the occupied cells."""
        return float(apply_distance(distance, self.predicted, self.observed).max())

    def predict(self, y_prob: ArrayLike, *, input: str = "probabilities") -> Floats:  # noqa: A002
        r"""Return :math:`\hat r` at new predictions.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
            Predictions of the model, before the lens. Columns with names are taken in the order of the classes.
        input : {"probabilities", "logits"}
            What predictions are, as in `caltest.calibration_test`.

        Returns
        -------
        array of shape (n_samples, n_outcomes)
            Estimated probabilities of the outcomes; 0 in a cell without observations, as in Vaicenavicius et al.
            (2019), and NaN outside the region.

        Raises
        ------
        ValueError
            If ``y_prob`` has values outside [0, 1] or does not sum to 1, or has another number of classes than the
            fitted predictions.
        """
        known = None if self.class_columns is None else list(self.class_columns)
        read = read_problem({}, {"y_prob": y_prob}, range(self._n_classes) if known is None else known, input)
        prob = validate_prob(read.probs["y_prob"])
        must = f"`y_prob` must have the {self._n_classes} classes of the fitted predictions"
        require(prob.shape[1] == self._n_classes, must, prob.shape[1])
        prob, _ = apply_lens(self.lens, prob, np.zeros(len(prob), dtype=np.int64))
        label = self._cells.assign(prob)
        cell = np.minimum(np.searchsorted(self._cells.label, label), self.n_cells - 1)
        estimate = np.where((self._cells.label[cell] == label)[:, None], self.observed[cell], 0.0)
        if self._region is not None:
            estimate[~apply_region(self._region, prob)] = np.nan
        return estimate

    @property
    def conclusion(self) -> str:
        """The estimated miscalibration in words."""
        return (
            f"The expected miscalibration is {self.expected_miscalibration():.4g} (total variation, average over "
            f"{self.n_cells} cells) and at most {self.worst_case_miscalibration():.4g} in a cell. These estimates are "
            "biased upwards near calibration: use calibration_test to compare them with chance."
        )

    def _describe(self) -> Description:
        largest = np.argsort(-self.count, kind="stable")[:_SHOWN]
        shown = []
        if max(self.predicted.shape) > _SHOWN:
            shown = [
                f"At most {_SHOWN} cells (the largest) and {_SHOWN} outcomes are shown; to_frame() has all of them."
            ]
        rows = [
            (
                f"{self.count[i]:g}",
                " ".join(f"{value:.3f}" for value in self.predicted[i][:_SHOWN]),
                " ".join(f"{value:.3f}" for value in self.observed[i][:_SHOWN]),
            )
            for i in largest
        ]
        return Description(
            f"Histogram regression ({self.lens_name}, {counted(self.count.sum())}, {describe(self.partition)})",
            [self.conclusion],
            [Table(("observations", "average prediction", "frequencies"), rows)],
            shown,
            self.notes,
        )


@reads_arguments
def histogram_regression(
    y_true: ArrayLike, y_prob: ArrayLike, *, partition: Partition | Any | None = None, **options: Unpack[LookOptions]
) -> HistogramRegression:
    r"""Estimate the calibration function by the frequencies of the outcomes in the cells (bins) of a partition.

    .. math:: \hat r(w)(\{y\}) = \frac{|\{i : g(X_i) \in \Phi[w] \wedge Y_i = y\}|}{|\{i : g(X_i) \in \Phi[w]\}|}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the induced simplex; ``VarianceTree()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; others are left out.

    Returns
    -------
    HistogramRegression
        Counts, predictions, frequencies and deviations of the cells; its method ``predict`` takes new predictions.

    Raises
    ------
    TypeError
        If ``lens``, ``partition`` or ``region`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if
        ``partition`` needs two outcomes and the lens returns more; if no observation lies in the region.

    See Also
    --------
    caltest.reliability_curve : The same frequencies with bars, as a picture.

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
    prob, outcome = validate_problem(y_true, y_prob, options["classes"])
    sample, about = looked_at(prob, outcome, Canonical() if options["lens"] is None else options["lens"], options)
    cut = VarianceTree() if partition is None else partition
    cells = cells_of(sample, cut)
    sums = CellSums.of(sample, cells, sample.outcome)
    return HistogramRegression(
        **about,
        count=sums.count,
        share=sums.share,
        predicted=sums.predicted,
        observed=sums.observed,
        partition=cut,
        notes=few_cells_notes(sample, cut),
        _cells=cells,
        _region=options["region"],
        _n_classes=prob.shape[1],
    )
