"""The Hosmer-Lemeshow test and its multinomial form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.hypothesis_tests.classical._run import asymptotic, redrawn, validate_draws
from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import AgainstRest, Partition
from caltest.predictions._sample import CellSums, make_sample
from caltest.predictions._validation import SeedLike
from caltest.statistics import HosmerLemeshow


@dataclass(frozen=True, eq=False, kw_only=True)
class HosmerLemeshowResult(ClassicalTestResult):
    """Result of `hosmer_lemeshow_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic, pvalue : float
        C and its p-value.
    degrees_of_freedom : int
        Sum of the ranks of the groups' covariances; with ``covariance="rows"`` the mean of C under the hypothesis.
    covariance : str
        "rows" or "mean".
    count : array of shape (n_groups,)
        Rows in each group.
    expected, observed : arrays of shape (n_groups, n_outcomes)
        Expected and observed rows of each outcome.
    method, null_law, accuracy : str
        How the p-value was found.
    hypothesis, lens : str
        What was tested, and what was looked at.
    conditions, notes : tuple of str
        When the p-value is valid, and what the reader should know beyond it.
    n_samples, n_outcomes : int
        Size of the induced problem.
    impossible_rows : array of int
        Rows whose label was given probability 0; if there are any, the p-value is the smallest attainable.
    """

    title = "Hosmer-Lemeshow test"

    covariance: str
    count: NDArray[np.float64]
    expected: NDArray[np.float64]
    observed: NDArray[np.float64]

    def _findings(self) -> list[str]:
        first = 1 if self.n_outcomes == 2 else 0
        outcomes = range(first, self.n_outcomes)
        head = "".join(f"{f'observed {k}':>13}{f'expected {k}':>13}" for k in outcomes) if len(outcomes) <= 3 else ""
        mean = "" if self.covariance == "mean" else f", {self.degrees_of_freedom} on average if calibrated"
        lines = [f"C = {self.statistic:.4g} over {len(self.count)} groups{mean}"]
        if not head:
            return lines
        lines += ["", f"{'group':>5}{'rows':>9}{head}"]
        for g, n in enumerate(self.count):
            cells = "".join(f"{self.observed[g, k]:>13.6g}{self.expected[g, k]:>13.4f}" for k in outcomes)
            lines.append(f"{g + 1:>5}{n:>9.6g}{cells}")
        return lines


def hosmer_lemeshow_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any = AgainstRest(),
    covariance: str = "rows",
    method: str = "auto",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> HosmerLemeshowResult:
    r"""Test calibration by standardised residuals of groups: Hosmer-Lemeshow, and its multinomial form.

    .. math:: C = \sum_g S_g^\top \Sigma_g^{+} S_g,

    for two outcomes :math:`\sum_g (O_g - E_g)^2 / \sum_{i \in g} p_i (1 - p_i)`: see `HosmerLemeshow`, the statistic,
    which `calibration_test` takes too. Predictions are those of a model that has not seen these labels: g groups give
    g degrees of freedom. The familiar g - 2 belongs to a logistic regression fitted to the same labels, and rejects
    calibrated predictions too often elsewhere.

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
    partition : Partition or callable
        The groups: tenths of the rows in the order of the event's probability, for more than two outcomes in the order
        of 1 minus the probability of outcome 0.
    covariance : {"rows", "mean"}
        Of a group's residual: the sum of its rows' own, or the textbook's, of its mean prediction.
    method : {"auto", "exact", "monte-carlo", "asymptotic"}
        "exact" computes the law of C for two outcomes; "auto" does so where it is accurate, and else draws.
        "monte-carlo" redraws the outcomes, predictions fixed. All are valid at every sample size. "asymptotic" is
        chi-squared, which rejects too often where groups hold few expected events or non-events.
    n_resamples : int
        Number of draws. Not used by an exact law.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    HosmerLemeshowResult
        Prints as a report with the table of groups; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or ``method="exact"`` has no law to compute.

    References
    ----------
    D. W. Hosmer and S. Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model,
    Communications in Statistics 9, 1043-1069.
    M. W. Fagerland, D. W. Hosmer and A. M. Bofin (2008), Multinomial goodness-of-fit tests for logistic regression
    models, Statistics in Medicine 27, 4238-4253.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [1, 1, 1, 0, 1, 1, 0, 0], [0.25] * 4 + [0.75] * 4
    >>> result = caltest.hosmer_lemeshow_test(y_true, y_prob, partition=caltest.EqualMass(2))
    >>> round(result.statistic, 4), round(result.pvalue, 6), result.degrees_of_freedom
    (6.6667, 0.059433, 2)
    """
    draws = validate_draws(method, ("auto", "exact", "monte-carlo", "asymptotic"), n_resamples, rng)
    statistic = HosmerLemeshow(partition, covariance)
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens)
    freedom, words = statistic.degrees_of_freedom(sample), lens_text(lens, classes)
    if method == "asymptotic":
        found = asymptotic(
            float(statistic.evaluate(sample, sample.outcome)),
            lambda x: chi_squared_tail(x, freedom),
            sample,
            lens=words,
            law=f"chi-squared({freedom})",
            method=method,
        )
    else:
        found, _ = redrawn(statistic, sample, lens=words, method=method, draws=draws, workers=workers)
    sums = CellSums.of(sample, sample.cells(partition), sample.outcome)
    return HosmerLemeshowResult(
        **found,
        degrees_of_freedom=freedom,
        covariance=covariance,
        count=sums.count,
        expected=sample.once(statistic.groups).expected,
        observed=sums.observed_count,
    )


def chi_squared_tail(x: float, degrees_of_freedom: int) -> float:
    """Return P(chi-squared >= x); 1 at no degree of freedom, where the statistic is 0."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees_of_freedom, x)) if degrees_of_freedom else float(x <= 0)
