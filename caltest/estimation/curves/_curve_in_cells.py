"""Frequencies of an event in cells (bins), with bars: what curves in cells hold, and how it is computed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from caltest.estimation.curves._bars import (
    Ends,
    confidence_bars,
    consistency_bars,
    contradicted_cells,
    drawn_deviations,
    drawn_pvalues,
    effective_counts,
    exact_deviations,
    exact_pvalues,
    origin_of_cells,
    quantile_bars,
    resampled_bars,
    smallest_drawn_pvalues,
    smallest_pvalues,
)
from caltest.estimation.errors._cell_tests import EXACT, CellTests, smallest_adjusted
from caltest.estimation.uncertainty._prediction_distribution import EDGES, prediction_density
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cells_of
from caltest.predictions.cells._partitions import Intervals
from caltest.predictions.inputs._validation import SeedLike, validate_level
from caltest.resampling import Consistency, correct_pvalues
from caltest.resampling.distributions._base import Distribution, MonteCarloDistribution
from caltest.resampling.distributions._exact import SumDistribution
from caltest.resampling.distributions._poisson_binomial import (
    SMALLEST_EXACT,
    PoissonBinomial,
    deviations_bound,
    distributions_of,
)
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.engine._pvalues import tail_pvalue, tail_pvalues
from caltest.resampling.engine._run import FAR_TAIL, LARGEST_ERROR
from caltest.results import Note, Result
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe

_ROUNDING = 1e-9  # of values that are equal: one just above all ties of another
_OF_CELLS = ("lower", "upper", "count", "expected", "observed", "smallest_pvalue", "lens_name", "partition", "origin")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CurveInCells(Result):
    """Frequencies of an event in cells of what is predicted, one entry per occupied cell (bin), in increasing order.

    Attributes are described by the curves.
    """

    lower: Floats
    upper: Floats
    count: Integers
    predicted: Floats
    expected: Floats
    observed: Floats
    bar_lower: Floats
    bar_upper: Floats
    bars: str
    confidence_level: float
    simultaneous: bool
    exact: bool
    lens: LensLike
    lens_name: str
    partition: Any
    notes: tuple[Note, ...]
    density_edges: Floats = field(default_factory=lambda: EDGES)
    density: Floats
    error: float
    noise_floor: float
    smallest_pvalue: Floats
    origin: str

    error_name: ClassVar[str]
    """What ``error`` is called."""
    _title: ClassVar[str]
    _shown: ClassVar[dict[str, str]]
    """Columns of the table between the numbers of observations and the bars, by their heads."""
    _of_bars: ClassVar[str]
    """What a confidence bar contains the mean of."""

    @property
    @abstractmethod
    def pvalue_of_cells(self) -> Floats:
        """P-value of each cell, not adjusted, ``(n_cells,)``."""

    @property
    @abstractmethod
    def _if(self) -> str:
        """The hypothesis in words: "the model is calibrated"."""

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    @property
    def deviation(self) -> Floats:
        """``observed - expected``, ``(n_cells,)``."""
        return self.observed - self.expected

    @property
    def outside(self) -> Booleans:
        """Cells with the observed frequency (consistency bars) or the expected one outside the bar, ``(n_cells,)``."""
        point = self.observed if self.bars == "consistency" else self.expected
        return (point < self.bar_lower - 1e-12) | (point > self.bar_upper + 1e-12)

    def cell_tests(self, correction: str = "holm", *, alpha: float = 0.05) -> CellTests:
        r"""Test every cell (bin), with p-values adjusted for the number of cells.

        With predictions fixed, the number of events :math:`K_b` of a cell has a Poisson-binomial distribution under the
        null hypothesis. With k events observed,

        .. math:: p_b = \min(1, 2 \min(P(K_b \le k), P(K_b \ge k)))

        is a p-value that is valid at every sample size; if a label of the cell had been given probability 0, it is the
        smallest possible. Cells are independent given the predictions, so every correction below controls the
        probability of any false rejection. The tests do not depend on the bars of the curve. A cell may be calibrated
        on average and miscalibrated within.

        With ``groups`` the p-value is the largest one of those of simulated labels, of random signs of whole groups,
        and of the confidence interval for the effective number of observations. In a cell of G groups it is at least
        :math:`2^{1-G}`: one with three groups cannot be rejected. Cells that cannot be rejected, whatever is observed
        in them, are undecidable, and the result says so.

        Parameters
        ----------
        correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
            How p-values are adjusted for the number of cells.
        alpha : float
            Largest probability with which any cell is rejected if the model is calibrated.

        Returns
        -------
        CellTests
            Prints as a table; the pictures of curves mark the rejected cells with it.

        Raises
        ------
        ValueError
            If ``correction`` is unknown, or ``alpha`` is not strictly between 0 and 1.

        References
        ----------
        J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
        S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics.

        Examples
        --------
        >>> import caltest
        >>> y_true, models = caltest.datasets.load_digits_predictions()
        >>> curve = caltest.reliability_curve(y_true, models["logistic_regression"], partition=caltest.EqualWidth(5))
        >>> tests = curve.cell_tests()
        >>> [f"{q:.2g}" for q in tests.pvalue_adjusted]
        ['0.13', '0.0062', '8.3e-10', '8.5e-13']
        >>> tests.rejected.tolist()
        [False, True, True, True]
        """
        return CellTests(
            **{name: getattr(self, name) for name in _OF_CELLS},
            pvalue=self.pvalue_of_cells,
            pvalue_adjusted=correct_pvalues(self.pvalue_of_cells, correction),
            smallest_adjusted=smallest_adjusted(self.pvalue_of_cells, self.smallest_pvalue, correction),
            correction=correction,
            alpha=validate_level(alpha, "alpha"),
        )

    @property
    def _meaning(self) -> str:
        level = percent(self.confidence_level)
        if self.bars == "confidence":
            if self.simultaneous:
                return f"With {level} confidence all bars contain the means of the {self._of_bars} in their cells."
            return f"With {level} confidence a bar contains the mean of the {self._of_bars} in its cell."
        made = "" if self.exact else " The bars come from resampled observations and are approximate."
        if self.origin != EXACT:
            wider = "; the widest bar counts" if "random signs" in self.origin else ""
            made = f" The bars come from {self.origin}{wider}."
        if self.simultaneous:
            return f"If {self._if}, all frequencies are inside their bars in at least {level} of data sets.{made}"
        chance = percent(round(1 - self.confidence_level, 12))
        return f"If {self._if}, at most about {chance} of the cells are outside by chance.{made}"

    def _describe(self) -> Description:
        digits = _digits(self.lower, self.upper)
        rows = [
            (
                f"{cell.lower:.{digits}f} to {cell.upper:.{digits}f}",
                f"{cell.count:,}",
                *(f"{getattr(cell, name):.{4 if name == 'observed' else digits}f}" for name in self._shown.values()),
                f"{cell.bar_lower:.4f} to {cell.bar_upper:.4f}",
                "*" if cell.outside else "",
            )
            for cell in self.to_frame().itertuples()
        ]
        head = ("cell (bin)", "observations", *self._shown, f"{self.bars} bar", "outside")
        return Description(
            f"{self._title} ({self.lens_name}, {counted(int(self.count.sum()))}, {describe(self.partition)})",
            [self.conclusion],
            [Table(head, rows)],
            notes=self.notes,
        )

    @property
    @abstractmethod
    def conclusion(self) -> str:
        """What was found, in words."""


def _digits(lower: Floats, upper: Floats) -> int:
    """Return the decimals that tell the two ends of every cell apart, from 4 to 6."""
    wide = upper - lower
    narrow = wide[wide > 0].min(initial=1.0)
    return int(np.clip(np.ceil(-np.log10(narrow)), 4, 6))


class ErrorOfCells(NamedTuple):
    """An average distance over cells, its null distribution, two-sided p-value, and the smallest possible one."""

    value: float
    null: Distribution
    pvalue: float
    smallest_possible_pvalue: float


@dataclass(frozen=True, eq=False)
class EventFrequencies:
    """Frequencies of the event of a two-outcome sample in cells (bins), and what they would be by chance.

    Without weights, groups and times the number of events of each cell is Poisson-binomial; otherwise labels are
    simulated.

    Attributes
    ----------
    sample : Sample
        Predictions, which are cut into cells, outcomes, and their probabilities under the null hypothesis.
    partition : Partition or callable
        The cells.
    scheme : Consistency
        The null hypothesis.
    n_resamples : int
        Number of draws, where something is drawn.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    """

    sample: Sample
    partition: Any
    scheme: Consistency
    n_resamples: int
    rng: SeedLike

    @property
    def drawn(self) -> bool:
        """Whether labels are simulated."""
        sample = self.sample
        return not (sample.weight is None and sample.group is None and sample.timing is None)

    @cached_property
    def cells(self) -> Cells:
        """The cells."""
        return cells_of(self.sample, self.partition)

    @cached_property
    def sums(self) -> CellSums:
        """Sums over the cells."""
        return CellSums.of(self.sample, self.cells, self.sample.outcome)

    @cached_property
    def counts(self) -> list[PoissonBinomial]:
        """Distribution of the number of events of each cell, of independent observations without weights."""
        return PoissonBinomial.of_each(self.cells.split(self.sample.expected[:, 1]))

    @cached_property
    def deviations(self) -> list[Floats]:
        """Observed minus expected frequencies of simulated data, ``(B + 1, n_cells)``, the observed ones first."""
        return drawn_deviations(self.sample, self.cells, self.scheme, self.n_resamples, self.rng)

    @property
    def observed(self) -> Floats:
        """Frequency of the event, ``(n_cells,)``."""
        return self.sums.observed[:, 1]

    @property
    def expected(self) -> Floats:
        """Its expected value under the null hypothesis, ``(n_cells,)``."""
        return self.sums.predicted[:, 1]

    @property
    def share(self) -> Floats:
        """Share of the observations (weights) in each cell, ``(n_cells,)``."""
        return self.cells.count / self.cells.count.sum()

    def bars(self, kind: str, level: float, *, simultaneous: bool) -> Ends:
        """Return consistency or confidence bars, as frequencies."""
        n_cells = self.cells.n_cells
        if not self.drawn:
            each = level ** (1 / n_cells) if simultaneous else level
            if kind == "confidence":
                return confidence_bars(self.sums, each)
            if self.scheme.resample_predictions:
                draws = RowDraws.of(self.n_resamples, self.rng)
                return resampled_bars(self.sample, self.partition, self.sums, draws, each)
            return consistency_bars(self.counts, self.cells, each)
        each = 1 - (1 - level) / n_cells if simultaneous else level  # cells share groups
        worth = effective_counts(self.sample, self.cells)
        if kind == "confidence":
            return worth.intervals(each)
        low, high = quantile_bars(self.expected, self.deviations, each)
        if self.sample.group is None:
            return low, high
        wide = worth.bars(self.expected, each)
        return np.minimum(low, wide[0]), np.maximum(high, wide[1])

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-value of each cell, ``(n_cells,)``."""
        if not self.drawn:
            return exact_pvalues(self.sample, self.cells, self.counts)
        found = drawn_pvalues(self.sample, self.cells, self.deviations)
        if self.sample.group is None:
            return found
        # Signs of few groups with an event would reject too often.
        worth = effective_counts(self.sample, self.cells).pvalues(self.expected)
        return np.where(contradicted_cells(self.sample, self.cells), found, np.maximum(found, worth))

    @property
    def smallest_pvalues(self) -> Floats:
        """Smallest possible p-value of each cell, ``(n_cells,)``."""
        if self.drawn:
            return smallest_drawn_pvalues(self.sample, self.cells, self.n_resamples)
        return smallest_pvalues(self.counts, self.cells.count)

    @property
    def noise_floor(self) -> float:
        """Average distance of the frequencies from their expected values under the null hypothesis."""
        if self.drawn:
            return float(np.abs(self.deviations[0][1:]).mean(axis=0) @ self.share)
        return float(exact_deviations(self.counts, self.cells.count) @ self.share)

    def error_about(self, centre: Floats) -> ErrorOfCells:
        r"""Return the average distance of the frequencies from a centre of each cell ``(n_cells,)``, with its p-value.

        The centre need not be the expected frequency, so that the p-value is two-sided: twice the smaller tail.
        """
        value = float(np.abs(self.observed - centre) @ self.share)
        if not self.drawn:
            null = self._exact_error(centre)
            probability, error = _smaller_tail(null, value)
            if error <= LARGEST_ERROR or probability < FAR_TAIL:
                return ErrorOfCells(value, null, tail_pvalue(self.sample, 2 * probability), 0.0)
        drawn = [np.abs(found + self.expected - centre) @ self.share for found in self.deviations]
        tails = [[tail_pvalues(sign * values)[0] for sign in (1, -1)] for values in drawn]
        pvalue = max(min(2 * min(both), 1.0) for both in tails)
        least = max(2 / len(values) for values in drawn)
        if self.sample.impossible.size:
            pvalue = least = 1 / len(drawn[0])
        widest = int(np.argmax([min(both) for both in tails]))
        return ErrorOfCells(value, MonteCarloDistribution(drawn[widest][1:]), pvalue, least)

    def _exact_error(self, centre: Floats) -> SumDistribution:
        n, n_samples = self.cells.count, self.sample.n_samples
        parts = distributions_of(self.counts, lambda b, k: np.abs(k - n[b] * centre[b]) / n_samples)
        prob = self.cells.split(np.clip(self.sample.expected[:, 1], 0.0, 1.0))
        bound = partial(_bound, prob, n * centre, self.counts, n_samples)
        observed = np.abs(self.observed - centre) * n / n_samples
        return SumDistribution(parts, 1 / n_samples, bound, observed=observed)

    def fields(self, bars: str, level: float, *, simultaneous: bool) -> dict[str, Any]:
        """Return what a curve holds of its cells, but for their p-values, and those in the same order."""
        order, count = self.order, self.cells.count
        low, high = self.bars(bars, level, simultaneous=simultaneous)
        lower, upper = _cell_ends(self.sample, self.cells)
        return {
            "lower": lower[order],
            "upper": upper[order],
            "count": np.bincount(self.cells.index)[order],
            "predicted": self.cells.predicted_sum[order, 1] / count[order],
            "expected": self.expected[order],
            "observed": self.observed[order],
            "bar_lower": low[order],
            "bar_upper": high[order],
            "bars": bars,
            "confidence_level": level,
            "simultaneous": simultaneous,
            "exact": bars == "consistency" and not self.scheme.resample_predictions and not self.drawn,
            "partition": self.partition,
            "density": prediction_density(self.sample.event),
            "smallest_pvalue": self.smallest_pvalues[order],
            "origin": origin_of_cells(self.sample, self.scheme, self.n_resamples) if self.drawn else EXACT,
        }

    @cached_property
    def order(self) -> Integers:
        """The cells in the order of their average predictions; one without weight shows nothing."""
        count = self.cells.count
        order = np.argsort(self.cells.predicted_sum[:, 1] / np.where(count > 0, count, 1.0))
        return order[count[order] > 0]


def _bound(prob: list[Floats], centre: Floats, counts: list[PoissonBinomial], n_samples: int, x: float) -> float:
    """Return a bound of P(average distance >= x)."""
    return deviations_bound(prob, centre, counts, x * n_samples)


def _smaller_tail(null: Distribution, value: float) -> tuple[float, float]:
    """Return an upper limit of the smaller of P(T >= value) and P(T <= value), and its relative error."""
    above, beyond = null.tail(value), null.tail(value * (1 + _ROUNDING) + 1e-300)
    slack = beyond.probability * beyond.relative_error if np.isfinite(beyond.relative_error) else 0.0
    below = max(1 - beyond.probability + slack, SMALLEST_EXACT)
    return min((above.probability, above.relative_error), (below, slack / below))


def _cell_ends(sample: Sample, cells: Cells) -> Floats:
    """Return both ends of each cell, ``(2, n_cells)``; for a user's own partition the range of its predictions."""
    if not isinstance(cells.assign, Intervals):
        return np.array([(m.min(), m.max()) for m in cells.split(sample.event)]).T
    ends = np.concatenate([[0.0], cells.assign.edges, [1.0]])
    return ends[np.stack([cells.label, cells.label + 1])]
