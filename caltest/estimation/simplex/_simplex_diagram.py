"""The reliability diagram of three or four classes: observed frequencies against predictions on the simplex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import DiagramOptions, look_at
from caltest.estimation.curves._bars import groups_in_cells
from caltest.estimation.errors._cell_tests import smallest_adjusted
from caltest.estimation.simplex._simplex_cells import PearsonTests, cell_regions, pearson_tests
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical, ClassGroups, TopK
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cells_of, few_cells_notes
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._simplex_grid import SimplexGrid
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_choice
from caltest.resampling import Consistency, correct_pvalues
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import Note, Result
from caltest.results._decision import NO_PROOF, align_pvalue, rejects
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe
from caltest.results._picture import Picture

_SHOWN = 12  # cells that are printed
_RANKS = ("most probable class", "second class", "third class")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SimplexDiagram(Result):
    r"""Result of `simplex_diagram`; one entry per cell (bin) with observations.

    Attributes
    ----------
    corners : tuple of arrays of shape (n_corners, n_outcomes)
        Corners of each cell; with three outcomes in their order around the polygon.
    count : array of shape (n_cells,)
        Number of observations in each cell.
    share : array of shape (n_cells,)
        Share of the observations (weights) in each cell.
    predicted : array of shape (n_cells, n_outcomes)
        Average prediction: the tail of the arrow.
    observed : array of shape (n_cells, n_outcomes)
        Frequencies of the outcomes, with sample weights the weighted ones: the head of the arrow.
    covariance : array of shape (n_cells, n_outcomes, n_outcomes)
        Covariance of ``observed`` if the model is calibrated and labels are independent.
    statistic : array of shape (n_cells,)
        Pearson's statistic.
    pvalue, pvalue_adjusted : arrays of shape (n_cells,)
        P-value of each cell, and p-values adjusted for the number of cells.
    exact : array of shape (n_cells,)
        Whether the p-value is computed from the exact distribution of the counts.
    correction : str
        How p-values were adjusted.
    alpha : float
        Cells with an adjusted p-value of at most this level are rejected.
    outcomes : tuple of str
        Names of the outcomes: the corners of the simplex.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    partition : Partition or callable
        The cells (bins).
    n_groups : int or None
        Number of groups of observations; None without ``groups``.
    origin : str
        Where the p-values come from, in words.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.simplex_diagram : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, rng=0)
    >>> int(diagram.count.sum()), diagram.predicted.shape == diagram.observed.shape
    (300, True)
    """

    corners: tuple[Floats, ...]
    count: Integers
    share: Floats
    predicted: Floats
    observed: Floats
    covariance: Floats
    statistic: Floats
    pvalue: Floats
    pvalue_adjusted: Floats
    exact: Booleans
    correction: str
    alpha: float
    outcomes: tuple[str, ...]
    lens: LensLike
    lens_name: str
    partition: Any
    n_groups: int | None
    origin: str
    notes: tuple[Note, ...]

    plot = Picture("plot_simplex")
    _derived: ClassVar[tuple[str, ...]] = ("arrow", "rejected", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = (
        *("count", "share", "predicted", "observed", "arrow"),
        *("statistic", "pvalue", "pvalue_adjusted", "exact", "rejected"),
    )

    @property
    def n_cells(self) -> int:
        """Number of cells with observations."""
        return len(self.count)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes, 3 or 4."""
        return len(self.outcomes)

    @property
    def arrow(self) -> Floats:
        """``observed - predicted``, ``(n_cells, n_outcomes)``."""
        return self.observed - self.predicted

    @property
    def rejected(self) -> Booleans:
        """Whether calibration is rejected in each cell, ``(n_cells,)``."""
        return rejects(self.pvalue_adjusted, self.alpha)

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        found = np.flatnonzero(self.rejected)
        cells = f"{found.size or 'none'} of the {self.n_cells} cells (bins)"
        if self.n_cells == 1:
            cells = "the only cell (bin)" if found.size else "none of 1 cell (bin)"
        decision = (
            f"After {self.correction.title()}'s correction calibration is rejected in {cells} at the "
            f"{percent(self.alpha)} level"
        )
        if not found.size:
            return f"{decision}. {NO_PROOF}"
        cell, k = np.unravel_index(np.abs(self.arrow[found]).argmax(), (found.size, self.n_outcomes))
        worst, name = found[cell], self.outcomes[k]
        hold = "holds" if found.size == 1 else "hold"
        return (
            f"{decision}; {'it' if found.size == 1 else 'they'} {hold} {100 * self.share[found].sum():.3g} % of the "
            f"observations. The largest deviation there: {name!r} has the frequency {self.observed[worst, k]:.3f} "
            f"where {self.predicted[worst, k]:.3f} is predicted ({counted(self.count[worst])})."
        )

    def plot_interactive(self, **options: Any) -> Any:
        """Draw the diagram so that it can be rotated, and shows numbers under the pointer; needs plotly.

        Parameters
        ----------
        **options
            Passed to `caltest.plotting.plot_simplex_interactive`.

        Returns
        -------
        plotly.graph_objects.Figure
            What was drawn: ``figure.show()``, ``figure.write_html(path)``.

        Raises
        ------
        ImportError
            If plotly is not installed.
        """
        return Picture.find("plot_simplex_interactive")(self, **options)

    def _describe(self) -> Description:
        order = np.lexsort([-self.count, self.pvalue, ~self.rejected])[:_SHOWN]
        rows = [
            (
                " ".join(f"{value:.2f}" for value in self.predicted[i]),
                " ".join(f"{value:.2f}" for value in self.observed[i]),
                f"{self.count[i]:,}",
                align_pvalue(self.pvalue[i]),
                align_pvalue(self.pvalue_adjusted[i]),
                "*" if self.rejected[i] else "",
            )
            for i in order
        ]
        cells = "cell" if self.n_cells == 1 else "cells"
        head = ("predicted", "observed", "count", "p-value", "adjusted p", "rejected")
        shown = f"Columns of predictions and frequencies: {', '.join(self.outcomes)}."
        if self.n_cells > _SHOWN:
            shown += f" The {_SHOWN} cells with the smallest p-values are shown; to_frame() has all of them."
        return Description(
            f"Simplex diagram ({self.lens_name}, {counted(int(self.count.sum()))}, {describe(self.partition)}, "
            f"{self.n_cells} {cells})",
            [self.conclusion],
            [Table(head, rows)],
            [
                shown,
                f"p-value: Pearson's statistic, from {self.origin}.",
                f"If the model is calibrated, the probability that any cell is rejected is at most "
                f"{percent(self.alpha)}.",
            ],
            self.notes,
        )


@reads_arguments
def simplex_diagram(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    partition: Partition | Any | None = None,
    correction: str = "holm",
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **options: Unpack[DiagramOptions],
) -> SimplexDiagram:
    r"""Compute a reliability diagram of three or four classes, with a test of every cell (bin).

    Predictions of three classes are points of a triangle, those of four classes points of a tetrahedron. In each cell
    an arrow leads from the average prediction to the frequencies of the outcomes (Vaicenavicius et al. 2019, figure 1).

    With predictions fixed, the counts :math:`N_k` of the outcomes in a cell have the means :math:`m_k`, the sums of the
    predictions, if the model is calibrated. The p-value of a cell is the probability that Pearson's statistic

    .. math:: X^2 = \sum_k \frac{(N_k - m_k)^2}{m_k}

    is at least as large as the observed one. Where there are at most 20,000 different counts (198 observations of three
    outcomes, 47 of four) it is computed from the exact Poisson-multinomial distribution, otherwise from simulated
    labels; either p-value is valid at every sample size. If a label had been given probability 0, the p-value of its
    cell is the smallest possible. Cells are independent given the predictions, so that every correction controls the
    probability of any false rejection. A cell may be calibrated on average and miscalibrated within.

    With ``sample_weight`` counts and means are sums of weights, divided by :math:`\sum_i w_i^2 / \sum_i w_i` of the
    cell, so that they have no unit and add up to its effective number of observations. P-values come from simulated
    labels, and with ``groups`` also from random signs of the residuals of whole groups (see `calibration_test`): the
    larger one counts.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``; they name the corners.
    lens : lens, optional
        A lens with three or four outcomes, such as `TopK`\ (2) or `ClassGroups`; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the simplex; ``SimplexGrid(5)`` by default for three outcomes, ``VarianceTree()`` for four.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; others are left out.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts. Labels are not repeated.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        How p-values are adjusted for the number of cells; with ``groups`` one of the first two.
    alpha : float
        Largest probability with which any cell is rejected if the model is calibrated.
    n_resamples : int, optional
        Number of draws for the cells whose p-values are simulated; by default 9,999, and 999 for more than 5,000,000
        predicted probabilities.
    rng : None, int or numpy.random.Generator
        Source of randomness of these draws.

    Returns
    -------
    SimplexDiagram
        Data for `caltest.plotting.plot_simplex`; prints as a table.

    Raises
    ------
    TypeError
        If ``lens``, ``partition``, ``region`` or a number has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if there are
        not three or four outcomes; if ``correction`` is unknown, ``alpha`` is not strictly between 0 and 1, or
        ``n_resamples`` < 1; if no observation lies in the region.

    See Also
    --------
    reliability_curve : The diagram of one probability.
    histogram_regression : Averages and frequencies in cells of any number of classes, without tests.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.4 and figure 1.
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics.

    Examples
    --------
    The groups of the paper, for the bundled predictions:

    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> groups = caltest.ClassGroups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, lens=groups, rng=0)
    >>> diagram.n_cells, int(diagram.rejected.sum())
    (23, 4)
    """
    level = options["alpha"]
    allowed = UNDER_ANY_DEPENDENCE if options["groups"] is not None else UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE
    validate_choice(correction, "correction", allowed)
    sample, about = look_at(y_true, y_prob, options)
    n_resamples = number_of_draws(n_resamples, USUAL_DRAWS, sample.given.size)
    _require_simplex(sample.n_outcomes, about["lens"])
    cut = partition
    if cut is None:
        cut = SimplexGrid(5) if sample.n_outcomes == 3 else VarianceTree()
    cells = cells_of(sample, cut)
    sums = CellSums.of(sample, cells, sample.outcome)
    tests = pearson_tests(sample, cells, n_resamples, rng)
    kept = cells.count > 0  # a cell without weight shows nothing
    regions = cell_regions(cells, cut, sample.prob)
    return SimplexDiagram(
        **about,
        corners=tuple(region for region, keep in zip(regions, kept, strict=True) if keep),
        count=np.bincount(cells.index)[kept],
        share=sums.share[kept],
        predicted=sums.predicted[kept],
        observed=sums.observed[kept],
        covariance=_covariances(sample, cells)[kept],
        statistic=tests.statistic[kept],
        pvalue=tests.pvalue[kept],
        pvalue_adjusted=correct_pvalues(tests.pvalue[kept], correction, allowed),
        exact=tests.exact[kept],
        correction=correction,
        alpha=level,
        outcomes=_outcome_names(about["lens"], sample.n_outcomes, options["classes"]),
        partition=cut,
        n_groups=sample.n_groups,
        origin=tests.origin,
        notes=(
            *Consistency().for_sample(sample).notes,
            *few_cells_notes(sample, cut),
            *_few_draws_notes(tests, kept, n_resamples, level, correction),
            *(
                _few_groups_notes(groups_in_cells(sample, cells)[kept], tests.pvalue[kept], level, correction)
                if sample.group is not None
                else ()
            ),
        ),
    )


def _require_simplex(n_outcomes: int, lens: LensLike) -> None:
    """Refuse two outcomes, and more than can be drawn, with what to do instead."""
    if n_outcomes in {3, 4}:
        return
    if n_outcomes == 2:
        advice = "draw two outcomes with reliability_curve(...)"
    else:
        rest = f"[2, ..., {n_outcomes - 1}]"
        advice = (
            "choose a `lens`: TopK(2), ClassGroups(...) of three or four groups of classes, or "
            f"ClassGroups([[0], [1], {rest}]) for single classes and the rest"
        )
    refuse(f"a simplex diagram needs three or four outcomes, got {n_outcomes} behind {describe(lens)}; {advice}.")


def _outcome_names(lens: LensLike, n_outcomes: int, classes: Sequence[Any] | None) -> tuple[str, ...]:
    """Return what each outcome is, in words."""
    if isinstance(lens, TopK):
        return (*_RANKS[: n_outcomes - 1], "none of these")
    if isinstance(lens, ClassGroups):
        parts = lens.groups
        number = [f"{k}" for k in range(sum(map(len, parts)))]
        names = number if classes is None else [str(name) for name in classes]
        word = "" if classes is not None else "class "
        return tuple((word if len(g) == 1 else word and "classes ") + ", ".join(names[k] for k in g) for g in parts)
    if isinstance(lens, Canonical):
        return tuple(f"class {k}" if classes is None else str(list(classes)[k]) for k in range(n_outcomes))
    return tuple(f"outcome {k}" for k in range(n_outcomes))


def _covariances(sample: Sample, cells: Cells) -> Floats:
    """Return the covariances of the frequencies under the null hypothesis, ``(n_cells, n_outcomes, n_outcomes)``."""
    prob, n_outcomes = sample.expected, sample.n_outcomes
    weight = sample.weight_or_ones
    total = np.where(cells.count > 0, cells.count, 1.0)
    found = np.empty((cells.n_cells, n_outcomes, n_outcomes))
    for j in range(n_outcomes):
        for k in range(n_outcomes):
            term = weight**2 * prob[:, j] * ((j == k) - prob[:, k])
            found[:, j, k] = np.bincount(cells.index, term, cells.n_cells) / total**2
    return found


def _few_draws_notes(
    tests: PearsonTests, kept: Booleans, n_resamples: int, alpha: float, correction: str
) -> list[Note]:
    """Return a note if no p-value from draws can reach the level after the correction."""
    drawn = int((kept & ~tests.exact).sum())
    if not drawn:
        return []
    smallest = float(correct_pvalues([1 / (n_resamples + 1)] * drawn, correction)[0])
    if rejects(smallest, alpha):
        return []
    return [
        Note(
            "C205",
            f"With {n_resamples:,} draws and {drawn} cells tested by draws their adjusted p-values cannot be below "
            f"{smallest:.2g}, so none of these cells can be rejected at the {percent(alpha)} level. Take "
            f"{int(np.ceil(kept.sum() / alpha)):,} draws or more.",
        )
    ]


def _few_groups_notes(number: Integers, pvalue: Floats, alpha: float, correction: str) -> list[Note]:
    r"""Return a note if cells cannot be rejected, because the signs of G groups have :math:`2^{G-1}` patterns or less.

    ``number (n_cells,)`` is that of the groups in each cell. Pearson's statistic is the same for a pattern and its
    opposite.
    """
    possible = smallest_adjusted(pvalue, np.exp2(1.0 - number), correction)
    undecidable = ~rejects(possible, alpha)
    if not undecidable.any():
        return []
    return [
        Note(
            "C303",
            f"{int(undecidable.sum())} of the {len(number)} cells (bins) are undecidable: they have so few groups that "
            f"no adjusted p-value below {possible[undecidable].min():.2g} is possible in them. Wider cells hold more.",
        )
    ]
