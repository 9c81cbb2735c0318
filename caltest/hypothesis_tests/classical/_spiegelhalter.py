"""Spiegelhalter's test of the Brier score against its expectation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.hypothesis_tests.classical._run import asymptotic, redrawn, validate_draws
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import make_sample
from caltest.predictions._validation import SeedLike
from caltest.statistics import Spiegelhalter

_LEVEL = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class SpiegelhalterResult(ClassicalTestResult):
    """Result of `spiegelhalter_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic : float
        Z, with its sign: positive where the Brier score is worse than expected (over-confident).
    pvalue : float
        Two-sided.
    degrees_of_freedom : None
        The limit law is normal.
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

    title = "Spiegelhalter test"

    @property
    def direction(self) -> str | None:
        """What the sign of Z says, if the p-value is at most 0.05."""
        if not (math.isfinite(self.statistic) and self.statistic and self.pvalue <= _LEVEL):
            return None
        return "over-confident" if self.statistic > 0 else "under-confident"

    def _findings(self) -> list[str]:
        return [f"Z = {self.statistic:.4g}, standardised Brier score minus its expectation (two-sided)"]


def spiegelhalter_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    method: str = "monte-carlo",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> SpiegelhalterResult:
    r"""Test whether the Brier score is what the predictions themselves expect (Spiegelhalter 1986), two-sided.

    .. math:: Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\bigl(\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)\bigr)^{1/2}},

    and its form for any number of outcomes: see `Spiegelhalter`, the statistic, which `calibration_test` takes too.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default. Most software tests the event of two classes, which is the
        same, or the confidence: ``Confidence()``.
    method : {"monte-carlo", "asymptotic"}
        "monte-carlo" redraws the outcomes, predictions fixed: the p-value is valid at every sample size. "asymptotic"
        is :math:`2 \Phi(-|Z|)`.
    n_resamples : int
        Number of draws.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    SpiegelhalterResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    D. J. Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 5, 421-433.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> z, pvalue = caltest.spiegelhalter_test(y_true, y_prob, lens=caltest.Confidence(), n_resamples=999, rng=0)
    >>> round(z, 4), pvalue
    (46.053, 0.001)
    """
    draws = validate_draws(method, ("monte-carlo", "asymptotic"), n_resamples, rng)
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens)
    words = lens_text(lens, classes)
    z = float(Spiegelhalter().signed(sample, sample.outcome))
    if method == "asymptotic":
        found = asymptotic(
            z, lambda x: math.erfc(abs(x) / math.sqrt(2)), sample, lens=words, law="standard normal", method=method
        )
    else:
        found, _ = redrawn(Spiegelhalter(), sample, lens=words, method=method, draws=draws, workers=workers)
    return SpiegelhalterResult(**{**found, "statistic": z, "degrees_of_freedom": None})
