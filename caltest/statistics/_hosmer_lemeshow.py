"""The Hosmer-Lemeshow statistic, for any number of outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._partitions import AgainstRest, Partition
from caltest.predictions._sample import Cells, CellSums, Sample
from caltest.predictions._validation import validate_choice
from caltest.resampling._distributions import CellLaw, Law, PoissonBinomial, Tail
from caltest.resampling._exact import SumLaw
from caltest.statistics._base import Statistic, counts_events

_WIDE = 1e3
_WHOLE = 1e-9  # residuals of outcomes that exclude each other sum to 0 but for rounding


@dataclass(frozen=True)
class HosmerLemeshow(Statistic):
    r"""Hosmer-Lemeshow statistic: squared residuals of groups, standardised.

    .. math:: C = \sum_g S_g^\top \Sigma_g^{+} S_g, \qquad S_g = \sum_{i \in g} (y_i - p_i), \qquad
              \Sigma_g = \sum_{i \in g} (\operatorname{diag} p_i - p_i p_i^\top)

    with one-hot outcomes :math:`y_i` and the pseudo-inverse; for two outcomes
    :math:`\sum_g (O_g - E_g)^2 / \sum_{i \in g} p_i (1 - p_i)`. Given the predictions :math:`S_g` has covariance
    :math:`\Sigma_g` exactly, so that C has the ranks' sum as its mean (`degrees_of_freedom`: one for each group and
    outcome but one, less where outcomes are excluded): g groups give g degrees of freedom, not g - 2, because the
    predictions were not fitted to these labels. Its target is the miscalibration averaged within groups, each group
    in units of its own noise. An outcome that was excluded in a group makes it infinite. Sample weights multiply
    residuals, their squares the covariances.

    Parameters
    ----------
    partition : Partition or callable
        The groups; tenths of the rows in the order of the event's probability by default, for more than two outcomes
        in the order of 1 minus the probability of outcome 0 (Fagerland, Hosmer and Bofin 2008: the reference outcome).
        Tied probabilities stay together, so that row order never matters.
    covariance : {"rows", "mean"}
        "rows" is :math:`\Sigma_g` above. "mean" takes the covariance of :math:`n_g` rows that all have the group's
        mean prediction, which is larger: the textbook's
        :math:`\sum_g (O_g - E_g)^2 / (n_g \bar p_g (1 - \bar p_g)) = \sum_{gk} (O_{gk} - E_{gk})^2 / E_{gk}`.

    Raises
    ------
    ValueError
        If ``covariance`` is unknown.

    References
    ----------
    D. W. Hosmer and S. Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model,
    Communications in Statistics 9, 1043-1069.
    M. W. Fagerland, D. W. Hosmer and A. M. Bofin (2008), Multinomial goodness-of-fit tests for logistic regression
    models, Statistics in Medicine 27, 4238-4253.

    Examples
    --------
    Two groups, of 3 events where 1 is expected (variance 3/4), and of 2 where 3 are:

    >>> import caltest
    >>> y_true, y_prob = [1, 1, 1, 0, 1, 1, 0, 0], [0.25] * 4 + [0.75] * 4
    >>> two_groups = caltest.HosmerLemeshow(caltest.EqualMass(2))
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=two_groups), 6)
    6.666667
    """

    partition: Partition | Any = AgainstRest()
    covariance: str = "rows"

    measures_scatter = True

    def __post_init__(self) -> None:
        validate_choice(self.covariance, "covariance", ("rows", "mean"))

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return C, ``(...)``, of outcomes ``(..., n_samples)``."""
        groups = sample.once(self.groups)
        residual = CellSums.of(sample, sample.cells(self.partition), outcomes).observed_count - groups.expected
        # Not a matrix product: its rounding would depend on how many draws are evaluated at once.
        whitened = np.zeros_like(residual)
        for k in range(sample.n_outcomes):
            whitened += groups.whitening[:, :, k] * residual[..., k, None]
        with np.errstate(over="ignore"):  # an outcome that was all but excluded
            value = np.square(whitened).sum(axis=(-2, -1))
        if not len(groups.closed_group):
            return value
        leak = np.abs((residual[..., groups.closed_group, :] * groups.closed).sum(axis=-1))
        return np.where((leak > _WHOLE * groups.count[groups.closed_group]).any(axis=-1), np.inf, value)

    def groups(self, sample: Sample) -> Groups:
        """Return what the predictions alone determine; use ``sample.once(statistic.groups)``."""
        return Groups.of(sample, sample.cells(self.partition), self.covariance)

    def degrees_of_freedom(self, sample: Sample) -> int:
        """Return the sum of the ranks of the covariances."""
        return int(np.count_nonzero(sample.once(self.groups).whitening.any(axis=-1)))

    def exact_law(self, sample: Sample) -> Law | None:
        """Return the exact null law, for two outcomes without weights."""
        return self._law(sample, _WIDE * sample.cells(self.partition).n_cells) if counts_events(sample) else None

    def exact(self, sample: Sample) -> tuple[Law, Tail] | None:
        """Return the exact null law and the observed tail, for two outcomes without weights."""
        if not counts_events(sample):
            return None
        observed = float(self.evaluate(sample, sample.outcome))
        scale = _WIDE * (sample.cells(self.partition).n_cells + (observed if np.isfinite(observed) else 0.0))
        law = self._law(sample, scale)
        return law, law.tail(min(observed, scale))

    def _law(self, sample: Sample, scale: float) -> GroupsLaw:
        """Return the null law of two outcomes, values cut off at a scale."""
        cells, groups = sample.cells(self.partition), sample.once(self.groups)
        mean = np.empty(cells.n_cells)

        def laws(make: Any) -> list[CellLaw]:
            found = []
            for b in range(cells.n_cells):
                event = sample.expected[cells.rows(b), 1]
                law = make(event)
                residual = np.stack([-1.0, 1.0]) * (law.counts - groups.expected[b, 1])[:, None]
                with np.errstate(over="ignore"):
                    values = np.square(residual[law.pmf > 0] @ groups.whitening[b].T).sum(axis=1)
                mean[b] = (
                    sample.expected[cells.rows(b)].prod(axis=1).sum()
                    * np.square(groups.whitening[b] @ [-1.0, 1.0]).sum()
                )
                found.append(CellLaw.of(np.minimum(values, scale), law.pmf[law.pmf > 0]))
            return found

        return GroupsLaw(laws(PoissonBinomial.of), lambda: laws(PoissonBinomial.with_tails), np.nan, group_means=mean)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupsLaw(SumLaw):
    """Law of C whose values are cut off far above the observed one.

    Tail probabilities need no more; and an outcome that was all but excluded would be worth so much that everything
    else is rounding beside it. The mean is that of the whole law.

    Attributes
    ----------
    cells, with_tails, spacing, unit
        As in `SumLaw`.
    group_means : array of shape (n_groups,)
        Expected value of each group's term.
    """

    group_means: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.group_means.sum())


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Groups of rows with the covariances of their residuals.

    Off its diagonal a covariance holds :math:`-\sum_i p_{ij} p_{ik}`, and its rows sum to 0: it is the Laplacian of a
    graph whose nodes are the outcomes. Eliminating nodes one by one never subtracts, so that digits are not lost
    however sharp the predictions are, and its rank is the number of outcomes less the number of connected parts.

    Attributes
    ----------
    count : array of shape (n_groups,)
        Rows (weights).
    expected : array of shape (n_groups, n_outcomes)
        Expected rows (weights) of each outcome.
    whitening : array of shape (n_groups, n_outcomes, n_outcomes)
        Matrices A with :math:`A^\top A` a generalised inverse of the covariance; a row of zeros for each rank missing.
    closed : array of shape (n_closed, n_outcomes)
        Indicators of the connected parts, in groups where there are several: their residuals must sum to 0.
    closed_group : array of shape (n_closed,)
        The group of each.
    """

    count: NDArray[np.float64]
    expected: NDArray[np.float64]
    whitening: NDArray[np.float64]
    closed: NDArray[np.float64]
    closed_group: NDArray[np.int64]

    @classmethod
    def of(cls, sample: Sample, cells: Cells, covariance: str) -> Groups:
        """Sum over cells; "mean" gives all rows of a cell its mean prediction."""
        weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        shape = cells.n_cells, sample.n_outcomes
        expected, whitening = np.empty(shape), np.empty((*shape, sample.n_outcomes))
        closed, group = [], []
        for b in range(cells.n_cells):
            prob, w = sample.expected[cells.rows(b)], weight[cells.rows(b)]
            expected[b] = (prob * w[:, None]).sum(axis=0)
            mean = expected[b] / w.sum() if w.any() else expected[b]
            joint = (prob * np.square(w)[:, None]).T @ prob
            if covariance == "mean":
                joint = np.square(w).sum() * np.outer(mean, mean)
            whitening[b], parts = whiten(joint, expected[b])
            closed += parts if len(parts) > 1 else []
            group += [b] * len(parts) if len(parts) > 1 else []
        return cls(
            cells.count, expected, whitening, np.reshape(closed, (-1, shape[1])), np.array(group, dtype=np.int64)
        )


def whiten(joint: NDArray[np.float64], expected: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the whitening matrix of the Laplacian of a graph, and the indicators of its connected parts.

    Parameters
    ----------
    joint : array of shape (n_outcomes, n_outcomes)
        Weights of the edges; the diagonal is not read.
    expected : array of shape (n_outcomes,)
        Outcomes are eliminated in this order, so that the residual of the most frequent one, a small difference of
        large numbers, is not needed.
    """
    edge = joint - np.diag(np.diag(joint))
    carried = np.eye(len(edge))  # the residuals that each node holds
    whitening, parts = np.zeros_like(edge), []
    for j in np.argsort(expected, kind="stable"):
        degree = edge[j].sum()
        if degree <= 0:  # the last of its part, which holds all of the part's residuals
            parts.append(np.rint(carried[j]))
            continue
        whitening[j] = carried[j] / np.sqrt(degree)
        share = edge[j] / degree
        carried += np.outer(share, carried[j])
        edge += np.outer(share, edge[j])
        edge[j], edge[:, j] = 0.0, 0.0
        np.fill_diagonal(edge, 0.0)
    return whitening, parts
