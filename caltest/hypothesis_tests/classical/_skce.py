"""The kernel test of calibration: by simulated labels, by a limit distribution, or by a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import look_at, run_test
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.hypothesis_tests._diagnostics import describe_answer
from caltest.predictions._arrays import Floats
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, require, validate_choice
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import Distribution, LimitDistribution, MonteCarloDistribution, Tail
from caltest.resampling.draws._rows import BootstrapDraws
from caltest.resampling.engine._options import TestOptions, drawing_of
from caltest.resampling.engine._pvalues import tail_pvalue, tail_pvalues
from caltest.resampling.engine._run import Answer
from caltest.results import Note, TestResult
from caltest.results._component_result import numbers_line
from caltest.results._decision import align_pvalue
from caltest.results._description import Table
from caltest.results._progress import reporting
from caltest.statistics._similarity import Similarity, is_bounded_by_one
from caltest.statistics._skce import SKCE, residuals

_PANEL_VALUES = 2**24  # multiplicities of a block of bootstrap samples: 128 MB
_LARGEST_TERM = 2.0  # of |h| for kernels of at most 1
_FEWEST = 4
_USUAL_DRAWS = 999  # a draw takes a number of operations that grows with the square of that of observations


@reads_arguments
def skce_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: SKCE | None = None,
    method: str = "monte-carlo",
    **options: Unpack[TestOptions],
) -> ClassicalTestResult:
    r"""Test calibration by the squared kernel calibration error (Widmann et al. 2019).

    * "monte-carlo", the default, simulates labels, predictions fixed, as `calibration_test` with ``statistic=SKCE()``.
      Its p-value is valid at every sample size. The other methods assume that the pairs of prediction and label are
      independent and identically distributed.
    * "asymptotic", unbiased estimator: bootstrap of the degenerate U-statistic (Arcones & Giné 1992). With observations
      :math:`i^*` drawn with replacement and :math:`\bar h(i) = \frac1n \sum_r h_{ir}`,

      .. math:: T = \frac{2}{n^2} \sum_{i < j} \bigl(h_{i^* j^*} - \bar h(i^*) - \bar h(j^*) + \mathrm{SKCE}_b\bigr),
                \qquad p = \frac{1 + \#\{T \ge \mathrm{SKCE}_{uq}\}}{1 + B}.

    * "asymptotic", block estimator: upper tail of the normal distribution at :math:`z = \bar t / s`, with the mean
      :math:`\bar t` of the :math:`m = \lfloor n/2 \rfloor` terms and :math:`s = (\sum (t - \bar t)^2)^{1/2} / m`.
    * "distribution-free": :math:`p \le \exp(-\lfloor n/2 \rfloor \, \mathrm{SKCE}^2 / (2 B^2))` for a positive unbiased
      or block estimate and 1 otherwise; :math:`p \le \exp(-\max(\sqrt{n \, \mathrm{SKCE}_b / B} - 1, 0)^2 / 2)` for the
      biased one. :math:`|h| \le B = 2` for kernels of at most 1. This bound is valid at every n, and far from sharp.

    Parameters
    ----------
    statistic : SKCE, optional
        ``SKCE()`` by default: the unbiased estimator.
    method : {"monte-carlo", "asymptotic", "distribution-free"}
        How the null distribution is found: by simulated labels, by its limit, or not at all, with a bound of the
        p-value.
    n_resamples : int, optional
        Number of draws, or of bootstrap samples B of the asymptotic test of the unbiased estimator; 999 by default.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. The ``bandwidth`` of the kernel is an attribute. The block
        estimator with ``method="asymptotic"`` has ``z`` too, the estimate over its standard error. With
        ``method="distribution-free"`` the p-value is an upper bound and the null distribution is not known.

    Raises
    ------
    TypeError
        If ``statistic`` is no `SKCE`, ``lens`` no lens or ``region`` no function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if there are fewer than 4 observations; if ``method`` is unknown, "asymptotic" with the biased
        estimator, or "distribution-free" with a user's kernel, whose bound is unknown; if ``n_resamples`` < 1, or
        ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    caltest.calibration_test : Tests with any statistic.

    References
    ----------
    D. Widmann, F. Lindsten and D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS; the bootstrap as documented by its authors' CalibrationTests.jl, `AsymptoticSKCETest`.
    M. A. Arcones and E. Giné (1992), On the bootstrap of U and V statistics, The Annals of Statistics.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> block = caltest.SKCE(estimator="block")
    >>> result = caltest.skce_test(y_true, y_prob, statistic=block, method="asymptotic")
    >>> round(result.pvalue, 3), result.method
    (0.16, 'asymptotic')
    """
    chosen = SKCE() if statistic is None else statistic
    require(isinstance(chosen, SKCE), "`statistic` must be an SKCE(...)", chosen, right_type=False)
    validate_choice(method, "method", ("monte-carlo", "asymptotic", "distribution-free"))
    null = Consistency()
    look = Canonical() if options["lens"] is None else options["lens"]
    sample, _ = look_at(chosen, y_true, y_prob, {**options, "lens": look})
    drawing = drawing_of(options, sample, _USUAL_DRAWS)
    if sample.n_samples < _FEWEST:
        refuse(f"`y_true` must hold at least {_FEWEST} observations for `skce_test`, got {sample.n_samples}.")
    words: dict[str, Any] = {"lens": look, "classes": options["classes"], "alpha": options["alpha"]}
    words["title"] = "Kernel test of calibration"
    more: dict[str, float] = {}
    if method == "monte-carlo":
        with reporting(options["progress"], "simulating labels") as report:
            result = run_test(chosen, sample, null, **words, **drawing, progress=report)
    else:
        n_resamples = drawing["n_resamples"].n_resamples
        value, distribution, tail, more = _without_simulated_labels(chosen, sample, method, n_resamples, options["rng"])
        smallest = 1 / (n_resamples + 1) if isinstance(distribution, MonteCarloDistribution) else 0.0
        pvalue = max(tail_pvalue(sample, tail.probability), smallest)
        one = np.array([value]), np.array([pvalue])
        answer = Answer(chosen, sample, value, distribution, pvalue, *one, (distribution,), method, tail=tail)
        conditions = (_IDENTICAL,) if method == "distribution-free" else (_IDENTICAL, _MANY)
        found = describe_answer(answer, null, **words)
        notes = (*found.notes, _EQUAL_TERMS) if isinstance(distribution, WithoutSpread) else found.notes
        result = replace(found, origin=tail.method, numerical_error=math.nan, conditions=conditions, notes=notes)
    derived = {"bandwidth": chosen.similarity(sample).bandwidth, **more}
    return result.extend(
        ClassicalTestResult,
        derived=derived,
        table=_without_range(result) if math.isnan(result.noise_floor) else None,
        remarks=(numbers_line(chosen, derived),),
    )


def _without_range(result: TestResult) -> Table:
    """Return the table of a statistic whose null distribution is not known."""
    p = "upper bound of p" if result.method == "distribution-free" else "p-value"
    row = (str(result.test_statistic), f"{result.statistic:.4g}", align_pvalue(result.pvalue))
    return Table(("statistic", "value", p), [row])


_IDENTICAL = Note(
    "C101", "observations are independent and identically distributed, and no label was used to make the predictions."
)
_MANY = Note("C103", "there are many observations.")
_EQUAL_TERMS = Note(
    "C504",
    "All terms of the block estimator are equal, so that its standard error cannot be estimated and the p-value is not "
    'valid. Simulate labels: method="monte-carlo".',
)


def _without_simulated_labels(
    statistic: SKCE, sample: Sample, method: str, n_resamples: int, rng: SeedLike
) -> tuple[float, Distribution, Tail, dict[str, float]]:
    """Return the estimate, its null distribution, the observed tail, and other numbers by name."""
    from scipy.stats import norm

    if method == "distribution-free":
        bound = Bound(statistic, sample.n_samples)
        value = float(statistic.evaluate(sample, sample.outcome))
        return value, bound, bound.tail(value), {}
    if statistic.estimator == "block":
        terms = statistic.pair_terms(sample, sample.outcome)[0]
        value = float(terms.mean())
        error = math.sqrt(float(np.square(terms - value).sum())) / len(terms)
        z = value / error if error > 0 else math.copysign(math.inf, value) if value else 0.0
        said = "normal limit of the block estimator (not exact in small samples)"
        limit = LimitDistribution(norm(0, error), said) if error > 0 else WithoutSpread()
        return value, limit, Tail(float(norm.sf(z)), math.nan, said), {"z": z}
    if statistic.estimator == "unbiased":
        value, values = _bootstrap(statistic.similarity(sample), sample, n_resamples, rng)
        said = f"{n_resamples:,} bootstrap samples of the degenerate U-statistic (not exact in small samples)"
        pvalue = float(tail_pvalues(np.append(value, values))[0])
        return value, MonteCarloDistribution(values), Tail(pvalue, math.nan, said), {}
    msg = '`method` must be "monte-carlo" or "distribution-free" for the biased estimator, got "asymptotic".'
    raise ValueError(msg)


class UnknownDistribution(Distribution):
    """A null distribution of which only tail probabilities are known."""

    mean = std = math.nan

    def quantile(self, q: float) -> float:
        """Return NaN: the distribution is not known."""
        return math.nan


@dataclass(frozen=True)
class WithoutSpread(UnknownDistribution):
    """Limit of a block estimator whose terms are equal: all that it gives is the side of 0 on which the estimate lies.

    The estimated standard error is 0. The distribution under the null hypothesis is not, and is not known.
    """

    def sf(self, x: float) -> float:
        """Return P(T >= x) as the standard error tends to 0."""
        return 0.5 if x == 0 else float(x < 0)


@dataclass(frozen=True)
class Bound(UnknownDistribution):
    """Upper bound of tail probabilities that is valid at every sample size; the distribution itself is not known.

    Attributes
    ----------
    statistic : SKCE
        What is bounded.
    n_samples : int
        Number of observations.
    """

    statistic: SKCE
    n_samples: int

    def __post_init__(self) -> None:
        if not is_bounded_by_one(self.statistic.kernel):
            refuse(
                f'`method` must be "monte-carlo" or "asymptotic" for {self.statistic}, whose bound is unknown, got '
                '"distribution-free".'
            )

    def sf(self, x: float) -> float:
        """Return the bound of P(T >= x)."""
        if self.statistic.estimator == "biased":
            root = math.sqrt(self.n_samples * max(x, 0.0) / _LARGEST_TERM)
            return math.exp(-(max(root - 1, 0.0) ** 2) / 2)
        return math.exp(-(self.n_samples // 2) * max(x, 0.0) ** 2 / (2 * _LARGEST_TERM**2))

    def tail(self, x: float) -> Tail:
        """Return the bound of P(T >= x)."""
        said = "not known; the upper bound of p is valid at every sample size and far from sharp (distribution-free)"
        return Tail(self.sf(x), math.inf, said)


def _bootstrap(similarity: Similarity, sample: Sample, n_resamples: int, rng: SeedLike) -> tuple[float, Floats]:
    """Return the unbiased estimate and its bootstrap values under the hypothesis, ``(n_resamples,)``."""
    n = sample.n_samples
    parts = []
    for part in BootstrapDraws.of(n_resamples, rng).slices(max(_PANEL_VALUES // n, 64)):
        times = part.row_counts(sample.n_samples).astype(np.float64)
        forms, row_sums, diagonal = _weighted_sums(similarity, sample, times)
        centre = (n - 1) / n * row_sums.sum() / n**2
        parts.append((forms - times @ diagonal) / n**2 - 2 * (n - 1) / n**3 * (times @ row_sums) + centre)
    return float((row_sums.sum() - diagonal.sum()) / (n * (n - 1))), np.concatenate(parts)


def _weighted_sums(similarity: Similarity, sample: Sample, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Return w'Hw for every row w of ``times``, the row sums of H, and its diagonal, without storing H."""
    residual = residuals(sample, sample.outcome)
    forms = np.zeros(len(times))
    row_sums, diagonal = np.zeros(sample.n_samples), np.empty(sample.n_samples)
    for rows, others, similar in similarity.blocks(sample.prob):
        terms = similar * (residual[rows] @ residual[others].T)
        row_sums[rows] += terms.sum(axis=1)
        factor = 1.0
        if rows == others:
            diagonal[rows] = terms.diagonal()
        else:
            row_sums[others] += terms.sum(axis=0)
            factor = 2.0
        forms += factor * np.einsum("ri,ri->r", times[:, rows] @ terms, times[:, others])
    return forms, row_sums, diagonal
