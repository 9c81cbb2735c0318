"""T-Cal over all dyadic scales, with an exact p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.hypothesis_tests.classical._run import redrawn, two_outcome_problem
from caltest.predictions._lenses import Lens
from caltest.predictions._validation import SeedLike
from caltest.resampling._schemes import Consistency
from caltest.statistics import TCal


@dataclass(frozen=True, eq=False, kw_only=True)
class TCalResult(ClassicalTestResult):
    """Result of `tcal_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic, pvalue : float
        -log10 of the smallest p-value over scales, and the exact p-value of all scales together.
    degrees_of_freedom : None
        The law is that of the draws.
    n_cells : array of shape (n_scales,)
        Equal cells of each scale.
    errors : array of shape (n_scales,)
        Debiased squared error at each scale; may be negative.
    error_pvalues : array of shape (n_scales,)
        P-value of each scale, not corrected for the others.
    smallest_pvalue : float
        The smallest p-value that this number of draws can give, 1 / (n_resamples + 1).
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

    title = "Adaptive T-Cal test"

    n_cells: NDArray[np.int64]
    errors: NDArray[np.float64]
    error_pvalues: NDArray[np.float64]
    smallest_pvalue: float

    def _findings(self) -> list[str]:
        rows = zip(self.n_cells, self.errors, self.error_pvalues, strict=True)
        return [
            f"{'cells':>9}{'error':>14}{'p-value':>10}",
            *(f"{m:>9}{error:>14.4g}{p:>10.4g}" for m, error, p in rows),
            "",
            f"-log10 of the smallest: {self.statistic:.4g} (smallest attainable p-value {self.smallest_pvalue:.4g})",
        ]


def tcal_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> TCalResult:
    r"""Test calibration by debiased squared errors over 2, 4, 8, ... equal cells, without choosing their number.

    .. math:: T_m = \frac1n \sum_{b=1}^m \frac{S_b^2 - \sum_{i \in b} e_i^2}{n_b}, \qquad m = 2, 4, \dots, 2^{\lfloor
              \log_2 n \rfloor}

    at all scales on the same draws, combined by an exact min-p: see `TCal`, which `calibration_test` takes too, and
    `SquaredL2`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A two-outcome lens; by default the event of two classes, and `Confidence` for more.
    n_resamples : int
        Number of draws; the smallest attainable p-value is 1 / (n_resamples + 1).
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    TCalResult
        Prints as a report with a row for each scale; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    D. Lee, X. Huang, H. Hassani and E. Dobriban (2023), T-Cal: an optimal test for the calibration of predictive
    models, Journal of Machine Learning Research 24.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.tcal_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue, result.smallest_pvalue, result.n_cells.tolist()[-1]
    (0.001, 0.001, 8192)
    """
    draws = Consistency().draws(n_resamples, rng)
    sample, words = two_outcome_problem(y_true, y_prob, classes, lens, "tcal_test")
    scales = TCal().settle(sample)
    found, parts = redrawn(scales, sample, lens=words, method="monte-carlo", draws=draws, workers=workers)
    return TCalResult(
        **found,
        degrees_of_freedom=None,
        n_cells=2 ** np.arange(1, scales.n_scales + 1),
        errors=np.array([part.statistic for part in parts]),
        error_pvalues=np.array([part.pvalue for part in parts]),
        smallest_pvalue=1 / (1 + draws.n_resamples),
    )
