"""The main job: an error of calibration, and the test of perfect calibration with its report."""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._naming import describe
from caltest._sample import Region, Sample, make_sample
from caltest._validation import SeedLike, validate_choice
from caltest.lenses import Canonical, Lens
from caltest.resampling import Consistency, Draws
from caltest.statistics import ECE, Omnibus, Statistic, TemperatureScore
from caltest.statistics._base import joint_null
from caltest.statistics.omnibus import combine_pvalues, tail_pvalues

_SPARSE_ROWS = 10  # statistics.md, section 2: cells of fewer rows make resampled predictions misleading
_TOLERATED = 0.05
_REFITS = 100


class CalibrationWarning(UserWarning):
    """A result that must be read with care."""


@dataclass(frozen=True, eq=False)
class ComponentResult:
    """One statistic of a test with its own null distribution and p-value.

    Attributes
    ----------
    name : str
        The statistic.
    statistic : float
        Its observed value.
    pvalue : float
        ``(1 + #{null >= observed}) / (1 + n_resamples)``, not corrected for the other components.
    null_distribution : array of shape (n_resamples,)
        Its values under perfect calibration.
    """

    name: str
    statistic: float
    pvalue: float
    null_distribution: NDArray[np.float64] = field(repr=False)

    @property
    def noise_floor(self) -> float:
        """Mean of the (finite part of the) null distribution: what a perfect model shows on these predictions."""
        return float(self.null_distribution[np.isfinite(self.null_distribution)].mean())

    @property
    def noise_interval(self) -> tuple[float, float]:
        """5 % and 95 % quantiles of the null distribution."""
        low, high = np.quantile(self.null_distribution, [0.05, 0.95])
        return float(low), float(high)

    def to_dict(self) -> dict[str, Any]:
        """Return name, statistic, noise floor, noise interval and p-value; an infinite statistic becomes None."""
        return {
            "name": self.name,
            "statistic": self.statistic if math.isfinite(self.statistic) else None,
            "noise_floor": self.noise_floor,
            "noise_interval": list(self.noise_interval),
            "pvalue": self.pvalue,
        }


@dataclass(frozen=True, eq=False)
class CalibrationTestResult(ComponentResult):
    """Result of `calibration_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    name, statistic, pvalue, null_distribution
        Of the statistic; for `Omnibus` the statistic is -log10 of the smallest component p-value.
    lens : str
        What was looked at.
    n_samples, n_outcomes : int
        Size of the induced problem.
    components : tuple of ComponentResult
        The combined statistics; for a single statistic the one itself.
    method : str
        "monte-carlo".
    hypothesis, null_law : str
        What was tested, and how the null distribution was made.
    conditions : tuple of str
        When the p-value is valid.
    score : float or None
        The signed temperature score U if it was computed: negative means over-confident.
    direction : str or None
        "over-confident" or "under-confident" if the temperature score's own p-value is at most 0.05.
    impossible_rows : array of int
        Rows whose label was given probability 0 through the lens; if there are any, the p-value is the smallest
        attainable.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    lens: str = ""
    n_samples: int = 0
    n_outcomes: int = 0
    components: tuple[ComponentResult, ...] = ()
    method: str = "monte-carlo"
    hypothesis: str = ""
    null_law: str = ""
    conditions: tuple[str, ...] = ()
    score: float | None = None
    direction: str | None = None
    impossible_rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    notes: tuple[str, ...] = ()

    @property
    def n_resamples(self) -> int:
        """Number of draws."""
        return len(self.null_distribution)

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the p-value due to the finite number of draws."""
        return math.sqrt(self.pvalue * (1 - self.pvalue) / self.n_resamples)

    @property
    def interpretation(self) -> str:
        """What the p-value says, in one sentence."""
        return _interpretation(self.pvalue, self.direction)

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the null distribution as plain Python objects, ready for JSON."""
        return {
            "lens": self.lens,
            **super().to_dict(),
            "monte_carlo_error": self.monte_carlo_error,
            "n_resamples": self.n_resamples,
            "n_samples": self.n_samples,
            "n_outcomes": self.n_outcomes,
            "method": self.method,
            "components": [component.to_dict() for component in self.components],
            "score": self.score if self.score is None or math.isfinite(self.score) else None,
            "direction": self.direction,
            "impossible_rows": self.impossible_rows.tolist(),
            "hypothesis": self.hypothesis,
            "null_law": self.null_law,
            "conditions": list(self.conditions),
            "notes": list(self.notes),
            "interpretation": self.interpretation,
        }

    def __str__(self) -> str:
        lines = ["Test of perfect calibration", ""]
        lines += [f"  {label:<12} {text}" for label, text in self._facts()]
        lines += [
            "",
            f"  {'statistic':<34} {'value':>9} {'noise floor':>12} {'5 % to 95 %':>20} {'p-value':>9}",
        ]
        lines += [
            f"  {name:<34} {value:>9} {floor:>12} {interval:>20} {p:>9}"
            for name, value, floor, interval, p in self._rows()
        ]
        lines += ["", f"  {self._pvalue_line()}", f"  {self.interpretation}"]
        lines += [f"  Note: {note}" for note in self.notes]
        lines += [f"  Valid if {condition}" for condition in self.conditions]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(label)}</th><td>{escape(text)}</td></tr>" for label, text in self._facts())
        head = "".join(f"<th>{label}</th>" for label in ("statistic", "value", "noise floor", "5 % to 95 %", "p-value"))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell.strip())}</td>" for cell in row) + "</tr>" for row in self._rows()
        )
        words = [self._pvalue_line(), self.interpretation, *(f"Note: {note}" for note in self.notes)]
        words += [f"Valid if {condition}" for condition in self.conditions]
        return (
            f"<h4>Test of perfect calibration</h4><table>{facts}</table><table><tr>{head}</tr>{body}</table>"
            + "".join(f"<p>{escape(word)}</p>" for word in words)
        )

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("hypothesis", self.hypothesis),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes"),
            ("null law", self.null_law),
        ]

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        parts = list(self.components) if len(self.components) > 1 else []
        rows = []
        for indent, part in [("", self), *(("  ", part) for part in parts)]:
            low, high = part.noise_interval
            interval = f"{low:.4g} to {high:.4g}"
            rows.append(
                (
                    indent + part.name,
                    f"{part.statistic:.4g}",
                    f"{part.noise_floor:.4g}",
                    interval,
                    f"{part.pvalue:.4g}",
                )
            )
        return rows

    def _pvalue_line(self) -> str:
        smallest = self.pvalue * (self.n_resamples + 1) < 1.5
        remark = ", the smallest attainable" if smallest else ""
        return (
            f"p-value {self.pvalue:.4g} from {self.n_resamples} draws{remark} "
            f"(Monte Carlo standard error {self.monte_carlo_error:.1g})."
        )


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return an estimate of miscalibration; `ECE()`, equation 6 of the paper, unless told otherwise.

    .. math:: \hat\eta_d = \sum_i \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    A bare estimate is biased, upwards near calibration, and says little without the noise floor: see
    `calibration_test`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        The estimator; ``ECE()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``: the set A of the paper to
        which the estimate is restricted.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        The estimate, in the unit of the statistic.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the statistic has no value of its own (`Omnibus`).

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, equation 6.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ece = caltest.ECE(partition=caltest.EqualWidth(15))
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=ece), 10)
    0.0397800669
    """
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region, sample_weight=sample_weight)
    chosen = _validate_statistic(ECE() if statistic is None else statistic)
    return float(chosen.evaluate(sample, sample.outcome))


def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    region: Region | None = None,
    resampling: Consistency | None = None,
    n_resamples: int = 9999,
    method: str = "auto",
    workers: int = 1,
    rng: SeedLike = None,
) -> CalibrationTestResult:
    r"""Test the hypothesis that predicted probabilities may be taken at their word.

    The null hypothesis is :math:`P(Y = \cdot \mid g(X)) = g(X)` through the lens (equation 1), or a known calibration
    function. Predictions are held fixed and outcomes redrawn from them B = ``n_resamples`` times; with T the
    statistic,

    .. math:: p = \frac{1 + \#\{b : T_b \ge T_\text{observed}\}}{1 + B}

    which satisfies :math:`P(p \le \alpha) \le \alpha` at every sample size if rows are independent and everything but
    the labels was made without these labels. Predictions pooled over cross-validation folds violate this.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        ``Omnibus()`` by default: an exact min-p over the tree ECE, the temperature score and the class-wise KS.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    resampling : Consistency, optional
        ``Consistency()`` by default: predictions fixed, outcomes redrawn.
    n_resamples : int
        Number of draws B; the smallest attainable p-value is 1 / (B + 1).
    method : {"auto", "exact", "monte-carlo"}
        How the null law is found. No exact law is available yet, "auto" is "monte-carlo".
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CalibrationTestResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Warns
    -----
    CalibrationWarning
        If predictions are resampled and more than 5 % of the rows lie in cells of fewer than 10 rows, or re-fitted
        partitions differ by more than 5 % in their number of cells: the p-value is then not valid.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, sections 4.2 and 4.3.
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue
    0.001
    >>> result.direction
    'over-confident'
    """
    chosen = _validate_statistic(Omnibus() if statistic is None else statistic)
    scheme = _validate_resampling(Consistency() if resampling is None else resampling)
    if validate_choice(method, "method", ("auto", "exact", "monte-carlo")) == "exact":
        msg = f'method="exact" is not available yet for {chosen}; use method="monte-carlo".'
        raise ValueError(msg)
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    sample = scheme.under_null(sample)
    draws = scheme.draws(n_resamples, rng)
    observed = evaluate_components(chosen, sample)
    null = draws.map(lambda part: _null(chosen, sample, part), workers)
    return conclude(chosen, sample, observed, null, resampling=scheme, lens=lens, draws=draws)


def evaluate_components(statistic: Statistic, sample: Sample) -> NDArray[np.float64]:
    """Return the observed value of each component, ``(n_components,)``; also prepares what all draws share."""
    return np.array([float(part.evaluate(sample, sample.outcome)) for part in statistic.components])


def conclude(
    statistic: Statistic,
    sample: Sample,
    observed: NDArray[np.float64],
    null: NDArray[np.float64],
    *,
    resampling: Consistency,
    lens: Lens | None,
    draws: Draws,
) -> CalibrationTestResult:
    """Turn observed values ``(n_components,)`` and null values ``(n_components, n_resamples)`` into a result."""
    parts = statistic.components
    part_pvalues, pvalues = rank_pvalues(sample, observed, null)
    components = tuple(
        ComponentResult(str(part), float(value), float(p), draw)
        for part, value, p, draw in zip(parts, observed, part_pvalues[:, 0], null, strict=True)
    )
    if len(parts) == 1:
        value, distribution = float(observed[0]), null[0]
    else:
        smallest = -np.log10(part_pvalues.min(axis=0))
        value, distribution = float(smallest[0]), smallest[1:]
    score, direction = _direction(parts, components, sample)
    notes = (
        *_sparsity_notes(parts, sample, draws),
        *_scatter_notes(parts, components),
        *_impossible_notes(sample),
    )
    return CalibrationTestResult(
        str(statistic),
        value,
        float(pvalues[0]),
        distribution,
        lens=describe(Canonical() if lens is None else lens),
        n_samples=sample.n_samples,
        n_outcomes=sample.n_outcomes,
        components=components,
        hypothesis=_hypothesis(resampling),
        null_law=_null_law(resampling, draws),
        conditions=_conditions(resampling),
        score=score,
        direction=direction,
        impossible_rows=sample.impossible,
        notes=notes,
    )


def rank_pvalues(
    sample: Sample, observed: NDArray[np.float64], null: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p-values of the components ``(n_components, B + 1)`` and combined ``(B + 1,)``, the observed data first.

    An outcome that was excluded makes every p-value of the observed data the smallest attainable.
    """
    values = np.column_stack([observed, null])
    if sample.impossible.size:
        values[:, 0] = np.inf
    part_pvalues = tail_pvalues(values)
    return part_pvalues, part_pvalues[0] if len(values) == 1 else combine_pvalues(part_pvalues)


def _null(statistic: Statistic, sample: Sample, draws: Draws) -> NDArray[np.float64]:
    parts = statistic.components
    return parts[0].null(sample, draws)[None] if len(parts) == 1 else joint_null(parts, sample, draws)


def _validate_statistic(statistic: Any) -> Statistic:
    if isinstance(statistic, Statistic):
        return statistic
    msg = f"`statistic` must be a Statistic such as ECE() or Omnibus(), got {statistic!r}."
    raise ValueError(msg)


def _validate_resampling(resampling: Any) -> Consistency:
    if isinstance(resampling, Consistency):
        return resampling
    msg = f"`resampling` must be a Consistency(...), the law under the null hypothesis, got {resampling!r}."
    raise ValueError(msg)


def _direction(
    parts: Sequence[Statistic], components: Sequence[ComponentResult], sample: Sample
) -> tuple[float | None, str | None]:
    for part, component in zip(parts, components, strict=True):
        if isinstance(part, TemperatureScore):
            score = float(part.signed(sample, sample.outcome))
            word = "over-confident" if score < 0 else "under-confident"
            return score, word if component.pvalue <= _TOLERATED and score != 0 else None
    return None, None


def _sparsity_notes(parts: Sequence[Statistic], sample: Sample, draws: Draws) -> list[str]:
    """Warn where copies of a row that share a cell make resampled predictions misleading."""
    if draws.row_seed is None:
        return []
    notes = []
    for part in parts:
        partition = getattr(part, "partition", None)
        if partition is None:
            continue
        cells = sample.cells(partition)
        rows = np.bincount(cells.index)
        sparse = rows[rows < _SPARSE_ROWS].sum() / sample.n_samples
        refitted = [drawn.cells(partition).n_cells for drawn, _ in draws.slices(_REFITS)[0].blocks(sample)]
        change = np.mean(refitted) / cells.n_cells - 1
        if sparse > _TOLERATED:
            notes.append(
                f"{sparse:.0%} of the rows lie in cells of {part} with fewer than {_SPARSE_ROWS} rows; the p-value "
                "from resampled predictions is not valid there."
            )
        if abs(change) > _TOLERATED:
            notes.append(
                f"re-fitted partitions of {part} have {np.mean(refitted):.1f} cells on average, the observed one "
                f"{cells.n_cells}; the p-value from resampled predictions is not valid."
            )
    for note in notes:
        warnings.warn(note, CalibrationWarning, stacklevel=4)
    return notes


def _scatter_notes(parts: Sequence[Statistic], components: Sequence[ComponentResult]) -> list[str]:
    return [
        f"{component.name} lies below the 1 % quantile of its null: less scatter than the predictions claim, that is "
        "under-confidence, or rows that are not independent."
        for part, component in zip(parts, components, strict=True)
        if part.measures_scatter and component.statistic < np.quantile(component.null_distribution, 0.01)
    ]


def _impossible_notes(sample: Sample) -> list[str]:
    rows = sample.impossible
    if not rows.size:
        return []
    shown = ", ".join(map(str, rows[:5])) + (", ..." if rows.size > 5 else "")
    return [
        f"{rows.size} label(s) had been given probability 0 through this lens (row {shown}): impossible under the "
        "hypothesis, so the p-value is the smallest attainable."
    ]


def _hypothesis(resampling: Consistency) -> str:
    if resampling.calibration_function is None:
        return "P(Y = . | g(X)) = g(X) through the lens: outcomes follow the predictions"
    return f"P(Y = . | g(X)) = {describe(resampling.calibration_function)}(g(X)) through the lens"


def _null_law(resampling: Consistency, draws: Draws) -> str:
    if resampling.resample_predictions:
        return f"{draws.n_resamples} resamples of rows and outcomes, partitions re-fitted (asymptotic)"
    return f"{draws.n_resamples} redraws of the outcomes, predictions fixed (valid at every sample size)"


def _conditions(resampling: Consistency) -> tuple[str, ...]:
    made = "the predictions, any recalibration and the region were made without these labels"
    if resampling.calibration_function is not None:
        made = made.replace("the region", "the calibration function")
    sound = f"rows are independent, and {made} (not pooled cross-validation folds)."
    if resampling.resample_predictions:
        return (sound, "cells hold many rows: this p-value is asymptotic; prefer fixed predictions.")
    return (sound,)


def _interpretation(pvalue: float, direction: str | None) -> str:
    towards = f"; the model is {direction}" if direction else ""
    if pvalue <= 0.001:
        return f"Very strong evidence against calibration: the probabilities may not be taken at their word{towards}."
    if pvalue <= 0.01:
        return f"Strong evidence against calibration{towards}."
    if pvalue <= 0.05:
        return f"Evidence against calibration{towards}."
    return "No evidence against calibration, which is no proof of it: small samples hide much."
