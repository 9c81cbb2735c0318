"""The Hosmer-Lemeshow statistic, for any number of outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cells_of
from caltest.predictions.cells._partitions import Partition, validate_partition
from caltest.predictions.cells._quantiles import AgainstRest
from caltest.predictions.inputs._validation import one_of
from caltest.resampling.distributions._base import Distribution, Tail, chi_squared
from caltest.resampling.distributions._exact import SumDistribution
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial, distributions_of
from caltest.resampling.draws._summaries import KeptCells, KeptSums
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, counts_events

_WIDE = 1e3  # values are cut off this far above their mean, in degrees of freedom
_WHOLE = 1e-9  # residuals of mutually exclusive outcomes sum to 0 up to rounding


@dataclass(frozen=True, repr=False)
class HosmerLemeshow(Statistic):
    r"""Hosmer-Lemeshow statistic: the sum of the squared, standardised residuals of groups.

    .. math:: C = \sum_g S_g^\top \Sigma_g^{+} S_g, \qquad S_g = \sum_{i \in g} (y_i - p_i), \qquad
              \Sigma_g = \sum_{i \in g} (\operatorname{diag} p_i - p_i p_i^\top)

    with one-hot outcomes :math:`y_i` and the pseudo-inverse. For two outcomes it is
    :math:`\sum_g (O_g - E_g)^2 / \sum_{i \in g} p_i (1 - p_i)`. If the model is calibrated, :math:`S_g` has exactly the
    covariance :math:`\Sigma_g`. So the mean of C is the sum of the ranks, its degrees of freedom: K - 1 for each group,
    fewer where outcomes have probability 0. For two outcomes g groups give g degrees of freedom, not g - 2, because the
    predictions were not fitted to these labels. The limit is chi-squared:
    ``calibration_test(..., method="asymptotic")``. The target is the miscalibration averaged within groups, each group
    in units of its standard deviation. An outcome that has probability 0 in a group and happens makes C infinite.
    Sample weights multiply residuals, their squares the covariances.

    Parameters
    ----------
    partition : Partition or callable
        The groups. By default tenths of the observations in the order of the event's probability, for more than two
        outcomes in the order of 1 minus the probability of outcome 0 (Fagerland, Hosmer and Bofin 2008: the reference
        outcome). Tied probabilities stay together, so that the order of the observations never matters.
    covariance : {"observations", "mean"}
        "observations" is :math:`\Sigma_g` above. "mean" is the covariance of :math:`n_g` observations that all have
        the mean prediction of the group, which is larger, as in textbooks:
        :math:`\sum_g (O_g - E_g)^2 / (n_g \bar p_g (1 - \bar p_g)) = \sum_{gk} (O_{gk} - E_{gk})^2 / E_{gk}`.

    Raises
    ------
    TypeError
        If ``partition`` is neither a partition nor a function, or ``covariance`` is not a text.
    ValueError
        If ``covariance`` is unknown.

    See Also
    --------
    ECE : Average distance in cells, in the unit of a probability.
    SquaredL2 : Squared error averaged over cells, debiased.

    References
    ----------
    D. W. Hosmer and S. Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model,
    Communications in Statistics 9, 1043-1069.
    M. W. Fagerland, D. W. Hosmer and A. M. Bofin (2008), Multinomial goodness-of-fit tests for logistic regression
    models, Statistics in Medicine 27, 4238-4253.

    Examples
    --------
    Two groups: 3 events where 1 is expected, and 2 events where 3 are expected, each with variance 3/4:

    >>> import caltest
    >>> y_true, y_prob = [1, 1, 1, 0, 1, 1, 0, 0], [0.25] * 4 + [0.75] * 4
    >>> two_groups = caltest.HosmerLemeshow(caltest.EqualMass(2))
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=two_groups), 6)
    6.666667
    """

    words = "Hosmer-Lemeshow statistic"

    partition: Partition | Any = parameter(AgainstRest(), validate_partition)
    covariance: str = parameter("observations", one_of("observations", "mean"))

    measures_scatter = True
    degree = 2

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return C, ``(...)``, of outcomes ``(..., n_samples)``."""
        groups = sample.once(self.groups)
        residual = CellSums.of(sample, cells_of(sample, self.partition), outcomes).observed_count - groups.expected
        # Not a matrix product: its rounding would depend on how many draws are evaluated at once.
        whitened = np.zeros_like(residual)
        for k in range(sample.n_outcomes):
            whitened += groups.whitening[:, :, k] * residual[..., k, None]
        with np.errstate(over="ignore"):  # an outcome of a tiny probability
            value = np.square(whitened).sum(axis=(-2, -1))
        if not len(groups.closed_group):
            return value
        leak = np.abs((residual[..., groups.closed_group, :] * groups.closed).sum(axis=-1))
        return np.where((leak > _WHOLE * groups.count[groups.closed_group]).any(axis=-1), np.inf, value)

    def groups(self, sample: Sample) -> Groups:
        """Return the groups and their covariances; for ``sample.once(statistic.groups)``."""
        return Groups.of(sample, cells_of(sample, self.partition), self.covariance)

    def degrees_of_freedom(self, sample: Sample) -> int:
        """Return the sum of the ranks of the covariances."""
        return int(np.count_nonzero(sample.once(self.groups).whitening.any(axis=-1)))

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return the degrees of freedom, and count, observed and expected outcomes of the groups."""
        groups = sample.once(self.groups)
        sums = CellSums.of(sample, cells_of(sample, self.partition), sample.outcome)
        return {
            "degrees_of_freedom": self.degrees_of_freedom(sample),
            "count": groups.count,
            "observed": sums.observed_count,
            "expected": groups.expected,
        }

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared with `degrees_of_freedom`."""
        return chi_squared(self.degrees_of_freedom(sample))

    def evaluate_sums(self, sums: KeptSums) -> Floats | None:
        """Return C of kept cell sums, for two outcomes."""
        if sums.n_outcomes != 2:
            return None
        cells = sums.cells(self.partition)
        residual = cells.observed_count[..., 1] - cells.predicted_sum[:, 1]
        factor = np.square(self._event_whitening(cells) @ [-1.0, 1.0]).sum(axis=-1)
        with np.errstate(over="ignore"):
            value = (np.square(residual) * factor).sum(axis=-1)
        contradicted = (factor == 0) & (np.abs(residual) > _WHOLE * cells.count)
        return np.where(contradicted.any(axis=-1), np.inf, value)

    def exact_distribution_of_sums(self, sums: KeptSums) -> Distribution | None:
        """Return the exact null distribution, for two outcomes."""
        events = sums.events(self.partition)
        if events is None:
            return None
        cells = sums.cells(self.partition)
        whitening = self._event_whitening(cells)
        return GroupsDistribution([part.count for part in events], cells.predicted_sum[:, 1], whitening, cells.spread)

    def _event_whitening(self, cells: KeptCells) -> Floats:
        """Return the whitening matrices of groups of two outcomes, ``(n_groups, 2, 2)``."""
        mean = cells.predicted_sum[:, 1] / cells.count
        covariance = cells.spread if self.covariance == "observations" else cells.count * mean * (1 - mean)
        edges = np.array([[0.0, 1.0], [1.0, 0.0]])
        return np.stack([whiten(v * edges, row)[0] for v, row in zip(covariance, cells.predicted_sum, strict=True)])

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution, for two outcomes without weights."""
        if not counts_events(sample):
            return None
        cells, groups = cells_of(sample, self.partition), sample.once(self.groups)
        spread = np.array([variance.sum() for variance in cells.split(sample.event_variance)])
        counts = PoissonBinomial.of_each(cells.split(sample.expected[:, 1]))
        return GroupsDistribution(counts, groups.expected[:, 1], groups.whitening, spread)


@dataclass(frozen=True, eq=False)
class GroupsDistribution(Distribution):
    """Exact null distribution of C for two outcomes.

    Values are cut off far above the one whose tail is computed, which does not change the tail: an outcome of a tiny
    probability adds so much that all other values would be lost in rounding.

    Attributes
    ----------
    counts : sequence of PoissonBinomial
        Distribution of the number of events of each group.
    expected, spread : arrays of shape (n_groups,)
        Its mean and variance.
    whitening : array of shape (n_groups, 2, 2)
        As in `Groups`.
    """

    counts: Sequence[PoissonBinomial]
    expected: Floats
    whitening: Floats
    spread: Floats

    @property
    def mean(self) -> float:
        """Expected value, not cut off."""
        return float((self.spread * np.square(self.whitening @ [-1.0, 1.0]).sum(axis=-1)).sum())

    @cached_property
    def _usual(self) -> SumDistribution:
        return self._cut_off(_WIDE * len(self.counts))

    def _cut_off(self, scale: float) -> SumDistribution:
        """Return the distribution with the value of each group cut off at ``scale``."""

        def value(group: Integers, events: Integers) -> Floats:
            residual = (events - self.expected[group])[:, None] * (self.whitening @ [-1.0, 1.0])[group]
            with np.errstate(over="ignore"):
                return np.minimum(np.square(residual).sum(axis=1), scale)

        return SumDistribution(distributions_of(self.counts, value), np.nan)

    @property
    def std(self) -> float:
        """Standard deviation."""
        return self._usual.std

    def sf(self, x: float) -> float:
        """Return P(T >= x), ties counted."""
        return self.tail(x).probability

    def cdf(self, x: float) -> float:
        """Return P(T <= x), ties counted."""
        return self._cut_off(2 * max(x, 0.0) or self.mean).cdf(x)

    def tail(self, x: float) -> Tail:
        """Return P(T >= x), ties counted, with its method and error."""
        scale = _WIDE * (len(self.counts) + (x if np.isfinite(x) else 0.0))
        return self._cut_off(scale).tail(min(x, scale))

    def quantile(self, q: float) -> float:
        """Return the q-quantile, to within 1/256 of it or the step of a grid of 2**14 points."""
        return self._usual.quantile(q)


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Groups of observations with the covariances of their residuals.

    A covariance has the entries :math:`-\sum_i p_{ij} p_{ik}` off its diagonal, and its rows sum to 0: it is the
    Laplacian of a graph whose nodes are the outcomes. Eliminating nodes one by one needs no subtraction, so that no
    digits are lost for sharp predictions. Its rank is the number of outcomes minus the number of connected parts.

    Attributes
    ----------
    count : array of shape (n_groups,)
        Number (weight) of the observations.
    expected : array of shape (n_groups, n_outcomes)
        Expected number (weight) of observations of each outcome.
    whitening : array of shape (n_groups, n_outcomes, n_outcomes)
        Matrices A such that :math:`A^\top A` is a generalised inverse of the covariance; a row of zeros for each
        missing rank.
    closed : array of shape (n_closed, n_outcomes)
        Indicators of the connected parts, in groups with several parts: the residuals of a part must sum to 0.
    closed_group : array of shape (n_closed,)
        The group of each part.
    """

    count: Floats
    expected: Floats
    whitening: Floats
    closed: Floats
    closed_group: Integers

    @classmethod
    def of(cls, sample: Sample, cells: Cells, covariance: str) -> Groups:
        """Return the sums over cells; "mean" replaces all predictions of a cell by their mean."""
        weight = sample.weight_or_ones
        shape = cells.n_cells, sample.n_outcomes
        expected, whitening = np.empty(shape), np.empty((*shape, sample.n_outcomes))
        closed, group = [], []
        for b in range(cells.n_cells):
            prob, w = sample.expected[cells.members(b)], weight[cells.members(b)]
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


def whiten(joint: Floats, expected: Floats) -> tuple[Floats, list[Any]]:
    """Return the whitening matrix of the Laplacian of a graph and the indicators of its connected parts.

    Parameters
    ----------
    joint : array of shape (n_outcomes, n_outcomes)
        Weights of the edges; the diagonal is not used.
    expected : array of shape (n_outcomes,)
        Outcomes are eliminated in the order of these numbers, so that the residual of the most frequent outcome, a
        small difference of large numbers, is not needed.
    """
    edge = joint - np.diag(np.diag(joint))
    carried = np.eye(len(edge))  # the residuals that are summed in each node
    whitening, parts = np.zeros_like(edge), []
    for j in np.argsort(expected, kind="stable"):
        degree = edge[j].sum()
        if degree <= 0:  # the last node of its part: all residuals of the part are summed here
            parts.append(np.rint(carried[j]))
            continue
        whitening[j] = carried[j] / np.sqrt(degree)
        share = edge[j] / degree
        carried += np.outer(share, carried[j])
        edge += np.outer(share, edge[j])
        edge[j], edge[:, j] = 0.0, 0.0
        np.fill_diagonal(edge, 0.0)
    return whitening, parts
