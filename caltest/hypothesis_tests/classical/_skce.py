r"""Tests of Widmann et al. (2019) that draw no outcomes: limits and bounds of the squared kernel calibration error.

The exact test of the same statistic is ``calibration_test(..., statistic=SKCE())``, which redraws the outcomes.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import hypothesis_text, impossible_notes, lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Region, Sample, make_sample
from caltest.predictions._validation import SeedLike, validate_choice, validate_count
from caltest.resampling._distributions import SMALLEST_PVALUE, ResampledLaw
from caltest.resampling._schemes import Bootstrap, Consistency
from caltest.results._test_result import finite
from caltest.statistics._omnibus import tail_pvalues
from caltest.statistics._similarity import Similarity, is_bounded_by_one
from caltest.statistics._skce import SKCE, residuals

_PANEL_VALUES = 2**24  # multiplicities of a block of bootstrap samples: 128 MB
_LARGEST_TERM = 2.0  # of |h| for kernels of at most 1


@dataclass(frozen=True, eq=False)
class KernelTestResult:
    """Result of `skce_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    name : str
        The statistic.
    statistic : float
        Its observed value.
    pvalue : float
        Asymptotic, or an upper bound: see ``method``.
    method : str
        "asymptotic" or "distribution-free".
    null_law : str
        Where the p-value comes from, and when it holds.
    bandwidth : float
        Of the kernel.
    z : float or None
        Estimate over its standard error, for the block estimator's normal limit.
    null : ResampledLaw or None
        The bootstrap's null distribution.
    lens, hypothesis : str
        What was looked at, and what was tested.
    n_samples, n_outcomes : int
        Size of the induced problem.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    name: str
    statistic: float
    pvalue: float
    method: str
    null_law: str
    bandwidth: float
    z: float | None = None
    null: ResampledLaw | None = field(default=None, repr=False)
    lens: str = ""
    hypothesis: str = ""
    n_samples: int = 0
    n_outcomes: int = 0
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def to_dict(self) -> dict[str, Any]:
        """Return all but the null distribution as plain Python objects, ready for JSON; infinity becomes None."""
        kept = {name: value for name, value in vars(self).items() if name not in {"null", "notes"}}
        numbers = {name: finite(value) for name, value in kept.items() if isinstance(value, float)}
        return {**kept, **numbers, "notes": list(self.notes)}

    def __str__(self) -> str:
        sign = "<=" if self.method == "distribution-free" else "="
        facts = [
            ("hypothesis", self.hypothesis),
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes"),
            ("statistic", f"{self.name} = {self.statistic:.4g}, bandwidth {self.bandwidth:.4g}"),
            ("p-value", f"{sign} {self.pvalue:.4g}"),
        ]
        lines = ["Kernel test of calibration", "", *(f"  {label:<12} {text}" for label, text in facts), ""]
        for words in (self.null_law, *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)


def skce_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: SKCE | None = None,
    region: Region | None = None,
    method: str = "asymptotic",
    n_resamples: int = 999,
    rng: SeedLike = None,
) -> KernelTestResult:
    r"""Test calibration by the squared kernel calibration error without redrawing outcomes.

    Rows are taken as independent draws of prediction and outcome together. For an exact p-value use `calibration_test`
    with ``statistic=SKCE()``; these are its classical companions.

    * "asymptotic", unbiased estimator: bootstrap of the degenerate U-statistic (Arcones & Giné 1992). With rows
      :math:`i^*` drawn with replacement and :math:`\bar h(i) = \frac1n \sum_r h_{ir}`,

      .. math:: T = \frac{2}{n^2} \sum_{i < j} \bigl(h_{i^* j^*} - \bar h(i^*) - \bar h(j^*) + \mathrm{SKCE}_b\bigr),
                \qquad p = \frac{1 + \#\{T \ge \mathrm{SKCE}_{uq}\}}{1 + B}.

    * "asymptotic", block estimator: upper tail of the normal law at :math:`z = \bar t / s`, with :math:`\bar t` the
      mean of the :math:`m = \lfloor n/2 \rfloor` terms and :math:`s = (\sum (t - \bar t)^2)^{1/2} / m`.
    * "distribution-free": :math:`p \le \exp(-\lfloor n/2 \rfloor \, \mathrm{SKCE}^2 / (2 B^2))` for a positive unbiased
      or block estimate and 1 otherwise; :math:`p \le \exp(-\max(\sqrt{n \, \mathrm{SKCE}_b / B} - 1, 0)^2 / 2)` for the
      biased one. :math:`|h| \le B = 2` for kernels of at most 1. Valid at every n, and far from sharp.

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
    statistic : SKCE, optional
        ``SKCE()`` by default: the unbiased estimator.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    method : {"asymptotic", "distribution-free"}
        A limit law, or a bound that holds at every n.
    n_resamples : int
        Number of bootstrap samples B; used by the asymptotic test of the unbiased estimator.
    rng : None, int or numpy.random.Generator
        Source of randomness of the bootstrap.

    Returns
    -------
    KernelTestResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above, there are fewer than 4 rows, the biased estimator meets
        ``method="asymptotic"``, or a user's kernel, whose bound is unknown, ``method="distribution-free"``.

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
    >>> result = caltest.skce_test(y_true, y_prob, statistic=block)
    >>> round(result.pvalue, 3), result.method
    (0.16, 'asymptotic')
    """
    chosen = _validate_statistic(SKCE() if statistic is None else statistic)
    validate_choice(method, "method", ("asymptotic", "distribution-free"))
    n_resamples = validate_count(n_resamples, "n_resamples")
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    if sample.n_samples < _FEWEST_ROWS:
        msg = f"`y_true` must hold at least {_FEWEST_ROWS} rows for `skce_test`, got {sample.n_samples}."
        raise ValueError(msg)
    z, null = None, None
    if method == "distribution-free":
        value = float(chosen.evaluate(sample, sample.outcome))
        pvalue, law = _bound(chosen, value, sample.n_samples), _BOUND
    elif chosen.estimator == "block":
        value, z, pvalue = _normal_tail(chosen.pair_terms(sample, sample.outcome)[0])
        law = _NORMAL
    elif chosen.estimator == "unbiased":
        value, values = _bootstrap(chosen.similarity(sample), sample, n_resamples, rng)
        null = ResampledLaw(values)
        pvalue = float(tail_pvalues(np.append(value, values))[0])
        law = f"{n_resamples} {_BOOTSTRAP}"
    else:
        msg = '`method` must be "distribution-free" for the biased estimator, got "asymptotic".'
        raise ValueError(msg)
    if sample.impossible.size:  # the hypothesis cannot be true
        pvalue = 0.0 if null is None else 1 / (n_resamples + 1)
    return KernelTestResult(
        str(chosen),
        value,
        max(pvalue, SMALLEST_PVALUE),
        method,
        law,
        chosen.similarity(sample).bandwidth,
        z,
        null,
        lens_text(lens, classes),
        hypothesis_text(Consistency()),
        sample.n_samples,
        sample.n_outcomes,
        tuple(impossible_notes(sample)),
    )


_FEWEST_ROWS = 4
_BOUND = "Upper bound of the p-value, valid at every sample size, far from sharp (distribution-free)."
_NORMAL = "Normal limit of the block estimator: asymptotic, not exact in small samples."
_BOOTSTRAP = "bootstrap samples of the degenerate U-statistic: asymptotic, not exact in small samples."


def _validate_statistic(statistic: Any) -> SKCE:
    if isinstance(statistic, SKCE):
        return statistic
    msg = f"`statistic` must be an SKCE(...), got {statistic!r}."
    raise ValueError(msg)


def _bound(statistic: SKCE, value: float, n: int) -> float:
    """Return the distribution-free bound of the p-value."""
    if not is_bounded_by_one(statistic.kernel):
        msg = f'`method` must be "asymptotic" for {statistic}, whose bound is unknown, got "distribution-free".'
        raise ValueError(msg)
    if statistic.estimator == "biased":
        return math.exp(-(max(math.sqrt(n * max(value, 0.0) / _LARGEST_TERM) - 1, 0.0) ** 2) / 2)
    return math.exp(-(n // 2) * max(value, 0.0) ** 2 / (2 * _LARGEST_TERM**2))


def _normal_tail(terms: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return mean, z and upper tail probability of the terms ``(n_pairs,)``."""
    from scipy.stats import norm

    mean = float(terms.mean())
    error = math.sqrt(float(np.square(terms - mean).sum())) / len(terms)
    z = mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0
    return mean, z, float(norm.sf(z))


def _bootstrap(
    similarity: Similarity, sample: Sample, n_resamples: int, rng: SeedLike
) -> tuple[float, NDArray[np.float64]]:
    """Return the unbiased estimate and its bootstrap values under the hypothesis, ``(n_resamples,)``."""
    n = sample.n_samples
    parts = []
    for part in Bootstrap().draws(n_resamples, rng).slices(max(_PANEL_VALUES // n, 64)):
        times = part.row_counts(sample)
        forms, row_sums, diagonal = _weighted_sums(similarity, sample, times)
        centre = (n - 1) / n * row_sums.sum() / n**2
        parts.append((forms - times @ diagonal) / n**2 - 2 * (n - 1) / n**3 * (times @ row_sums) + centre)
    return float((row_sums.sum() - diagonal.sum()) / (n * (n - 1))), np.concatenate(parts)


def _weighted_sums(
    similarity: Similarity, sample: Sample, times: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return w'Hw for every row w of ``times``, the row sums of H and its diagonal; H is never stored."""
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
