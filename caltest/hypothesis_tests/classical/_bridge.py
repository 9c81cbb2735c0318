"""The bridge test: calibration in the large and the shape of what remains, combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests.classical._hosmer_lemeshow import chi_squared_tail
from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.hypothesis_tests.classical._run import asymptotic, redrawn, two_outcome_problem, validate_draws
from caltest.predictions._lenses import Lens
from caltest.predictions._validation import SeedLike
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.statistics import Bridge
from caltest.statistics._bridge import log_kolmogorov_pvalue, log_normal_pvalue


@dataclass(frozen=True, eq=False, kw_only=True)
class BridgeResult(ClassicalTestResult):
    """Result of `bridge_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic, pvalue : float
        Fisher's combination of the two parts and its p-value.
    degrees_of_freedom : int
        4, of the limit law.
    mean : float
        Standardised end of the cumulative residual: positive where events are too frequent.
    shape : float
        Largest distance of the bridge from 0.
    mean_pvalue, shape_pvalue : float
        Of the parts, by their limit laws.
    method, null_law, accuracy : str
        How the combined p-value was found.
    hypothesis, lens : str
        What was tested, and what was looked at.
    conditions, notes : tuple of str
        When the p-value is valid, and what the reader should know beyond it.
    n_samples, n_outcomes : int
        Size of the induced problem.
    impossible_rows : array of int
        Rows whose label was given probability 0; if there are any, the p-value is the smallest attainable.
    """

    title = "Bridge test"

    mean: float
    mean_pvalue: float
    shape: float
    shape_pvalue: float

    def _findings(self) -> list[str]:
        return [
            f"mean       {self.mean:>10.4g}   p-value {self.mean_pvalue:.4g} (limit law)",
            f"shape      {self.shape:>10.4g}   p-value {self.shape_pvalue:.4g} (limit law)",
            f"combined   {self.statistic:>10.4g}   -2 times the sum of the logarithms of the two p-values",
        ]


def bridge_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    method: str = "monte-carlo",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> BridgeResult:
    r"""Test the mean and the shape of the cumulative residual in the order of the predictions.

    .. math:: T = -2 \log P(|N| \ge |S_n|) - 2 \log P(K \ge \max_k |S_k - t_k S_n|)

    with N standard normal and K the supremum of a Brownian bridge: see `Bridge`, the statistic, which
    `calibration_test` takes too. No groups, no smoothing; the two parts tell calibration in the large from the rest.

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
    method : {"monte-carlo", "asymptotic"}
        "monte-carlo" redraws the outcomes, predictions fixed: the p-value is valid at every sample size. "asymptotic"
        is chi-squared(4).
    n_resamples : int
        Number of draws.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    BridgeResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    M. Sadatsafavi and J. Petkau (2024), Non-parametric inference on calibration of predicted risks, Statistics in
    Medicine, doi 10.1002/sim.10138.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [0, 1, 0, 1, 1, 1, 0, 1], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75]
    >>> result = caltest.bridge_test(y_true, y_prob, method="asymptotic")
    >>> round(result.mean, 4), round(result.shape, 4), round(result.pvalue, 4)
    (0.8165, 0.4082, 0.7779)
    """
    draws = validate_draws(method, ("monte-carlo", "asymptotic"), n_resamples, rng)
    sample, words = two_outcome_problem(y_true, y_prob, classes, lens, "bridge_test")
    mean, shape = Bridge().parts(sample, sample.outcome)
    if method == "asymptotic":
        value = float(Bridge().evaluate(sample, sample.outcome))
        found = asymptotic(
            value, lambda x: chi_squared_tail(x, 4), sample, lens=words, law="chi-squared(4)", method=method
        )
    else:
        found, _ = redrawn(Bridge(), sample, lens=words, method=method, draws=draws, workers=workers)
    return BridgeResult(
        **found,
        degrees_of_freedom=4,
        mean=float(mean),
        mean_pvalue=max(float(np.exp(log_normal_pvalue(np.abs(mean)))), SMALLEST_PVALUE),
        shape=float(shape),
        shape_pvalue=max(float(np.exp(log_kolmogorov_pvalue(shape))), SMALLEST_PVALUE),
    )
