"""The reliability diagram of three or four classes: observed frequencies against predictions on the simplex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._simplex_regions import cell_regions
from caltest.estimation._simplex_result import SimplexDiagram
from caltest.estimation._simplex_tests import PearsonTests, pearson_tests
from caltest.predictions._arguments import reads_arguments
from caltest.predictions._cells import Cells, CellSums, few_cells_notes
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical, Groups, TopK
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions._simplex_grid import SimplexGrid
from caltest.predictions._user_functions import Region
from caltest.predictions._validation import SeedLike, validate_choice, validate_count, validate_level
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling import Consistency, correct_pvalues
from caltest.resampling._multiple_testing import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE
from caltest.results import Note
from caltest.results._decision import rejects
from caltest.results._naming import describe
from caltest.results._test_result import percent

_RANKS = ("most probable class", "second class", "third class")


@reads_arguments
def simplex_diagram(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    correction: str = "holm",
    alpha: float = 0.05,
    n_resamples: int = 9999,
    rng: SeedLike = None,
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

    With ``sample_weight`` counts and means are sums of weights, and p-values come from simulated labels; with
    ``groups`` also from random signs of the residuals of whole groups (see `calibration_test`): the larger one counts.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``; they name the corners.
    lens : lens, optional
        A lens with three or four outcomes, such as `TopK`\ (2) or `Groups`; the whole prediction by default.
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
    n_resamples : int
        Number of draws for the cells whose p-values are simulated.
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
    >>> groups = caltest.Groups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, lens=groups, rng=0)
    >>> diagram.n_cells, int(diagram.rejected.sum())
    (23, 4)
    """
    level = validate_level(alpha, "alpha")
    allowed = UNDER_ANY_DEPENDENCE if groups is not None else UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE
    validate_choice(correction, "correction", allowed)
    validate_count(n_resamples, "n_resamples")
    look = Canonical() if lens is None else lens
    sample = make_sample(
        y_true, y_prob, classes=classes, lens=look, region=region, sample_weight=sample_weight, groups=groups
    )
    _require_simplex(sample.n_outcomes, look)
    cut = partition
    if cut is None:
        cut = SimplexGrid(5) if sample.n_outcomes == 3 else VarianceTree()
    cells = sample.cells(cut)
    sums = CellSums.of(sample, cells, sample.outcome)
    tests = pearson_tests(sample, cells, n_resamples, rng)
    kept = cells.count > 0  # a cell without weight shows nothing
    regions = cell_regions(cells, cut, sample.prob)
    return SimplexDiagram(
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
        outcomes=_outcome_names(look, sample.n_outcomes, classes),
        lens=look,
        lens_name=lens_name(look, classes),
        partition=cut,
        n_groups=sample.n_groups,
        origin=tests.origin,
        notes=(
            *Consistency().for_sample(sample).notes,
            *few_cells_notes(sample, cut),
            *_few_draws_notes(tests, kept, n_resamples, level, correction),
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
            f"choose a `lens`: TopK(2), Groups(...) of three or four groups of classes, or Groups([[0], [1], {rest}]) "
            "for single classes and the rest"
        )
    msg = f"a simplex diagram needs three or four outcomes, got {n_outcomes} behind {describe(lens)}; {advice}."
    raise ValueError(msg)


def _outcome_names(lens: LensLike, n_outcomes: int, classes: Sequence[Any] | None) -> tuple[str, ...]:
    """Return what each outcome is, in words."""
    if isinstance(lens, TopK):
        return (*_RANKS[: n_outcomes - 1], "none of these")
    if isinstance(lens, Groups):
        parts = lens.groups
        number = [f"{k}" for k in range(sum(map(len, parts)))]
        names = number if classes is None else [str(name) for name in classes]
        word = "" if classes is not None else "class "
        return tuple((word if len(g) == 1 else word and "classes ") + ", ".join(names[k] for k in g) for g in parts)
    if isinstance(lens, Canonical):
        return tuple(f"class {k}" if classes is None else str(list(classes)[k]) for k in range(n_outcomes))
    return tuple(f"outcome {k}" for k in range(n_outcomes))


def _covariances(sample: Sample, cells: Cells) -> NDArray[np.float64]:
    """Return the covariances of the frequencies under the null hypothesis, ``(n_cells, n_outcomes, n_outcomes)``."""
    prob, n_outcomes = sample.expected, sample.n_outcomes
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    total = np.where(cells.count > 0, cells.count, 1.0)
    found = np.empty((cells.n_cells, n_outcomes, n_outcomes))
    for j in range(n_outcomes):
        for k in range(n_outcomes):
            term = weight**2 * prob[:, j] * ((j == k) - prob[:, k])
            found[:, j, k] = np.bincount(cells.index, term, cells.n_cells) / total**2
    return found


def _few_draws_notes(
    tests: PearsonTests, kept: NDArray[np.bool_], n_resamples: int, alpha: float, correction: str
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
            f"With {n_resamples} draws and {drawn} cells tested by draws their adjusted p-values cannot be below "
            f"{smallest:.2g}, so none of these cells can be rejected at the {percent(alpha)} level. Take "
            f"{int(np.ceil(kept.sum() / alpha))} draws or more.",
        )
    ]
