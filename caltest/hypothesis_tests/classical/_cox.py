"""Cox's test of intercept and slope, with their estimates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests.classical._hosmer_lemeshow import chi_squared_tail
from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.hypothesis_tests.classical._run import asymptotic, redrawn, two_outcome_problem, validate_draws
from caltest.predictions._lenses import Lens
from caltest.predictions._sample import Sample
from caltest.predictions._validation import SeedLike
from caltest.statistics import CoxScore
from caltest.statistics._cox import logits

_LEVEL = 0.05
_NAN = float("nan")


@dataclass(frozen=True, eq=False, kw_only=True)
class CoxResult(ClassicalTestResult):
    """Result of `cox_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic, pvalue : float
        Of the joint hypothesis: intercept 0 and slope 1.
    degrees_of_freedom : int
        2; 1 if the predictions are constant, 0 if all of them are 0 or 1.
    intercept, slope : float
        Estimates of a and b; NaN if they do not exist, which a note explains.
    intercept_error, slope_error : float
        Their standard errors.
    in_the_large, in_the_large_error : float
        Estimate of a with b fixed at 1 (calibration in the large), and its standard error.
    in_the_large_statistic, in_the_large_pvalue : float
        Test of a = 0 with b = 1, one degree of freedom, by the same method.
    slope_statistic, slope_pvalue : float
        Test of b = 1 with a free, one degree of freedom, by the same method; the two statistics sum to the joint one.
    method, null_law, accuracy : str
        How the p-values were found.
    hypothesis, lens : str
        What was tested, and what was looked at.
    conditions, notes : tuple of str
        When the p-values are valid, and what the reader should know beyond them.
    n_samples, n_outcomes : int
        Size of the induced problem.
    impossible_rows : array of int
        Rows whose label was given probability 0; if there are any, the p-value is the smallest attainable.
    """

    title = "Cox test of intercept and slope"

    intercept: float
    intercept_error: float
    slope: float
    slope_error: float
    in_the_large: float
    in_the_large_error: float
    in_the_large_statistic: float
    in_the_large_pvalue: float
    slope_statistic: float
    slope_pvalue: float

    @property
    def direction(self) -> str | None:
        """What the slope says, if its own p-value is at most 0.05: below 1 the predictions are too extreme."""
        if not self.slope_pvalue <= _LEVEL or np.isnan(self.slope):
            return None
        return "over-confident" if self.slope < 1 else "under-confident"

    def _findings(self) -> list[str]:
        def row(name: str, estimate: float, error: float, *test: float) -> str:
            tested = f"{test[0]:>12.4g}{test[1]:>10.4g}" if test else ""
            return f"{name:<30}{estimate:>9.4g}{error:>11.4g}{tested}"

        return [
            f"{'':<30}{'estimate':>9}{'std. error':>11}{'statistic':>12}{'p-value':>10}",
            row("intercept a", self.intercept, self.intercept_error),
            row("slope b (a free)", self.slope, self.slope_error, self.slope_statistic, self.slope_pvalue),
            row(
                "in the large: a (b = 1)",
                self.in_the_large,
                self.in_the_large_error,
                self.in_the_large_statistic,
                self.in_the_large_pvalue,
            ),
            f"{'joint: a = 0, b = 1':<50}{self.statistic:>12.4g}{self.pvalue:>10.4g}",
        ]


def cox_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    method: str = "monte-carlo",
    n_resamples: int = 9999,
    workers: int = 1,
    rng: SeedLike = None,
) -> CoxResult:
    r"""Test a = 0 and b = 1 in :math:`\operatorname{logit} P(Y = 1 \mid p) = a + b \operatorname{logit} p`.

    Estimates are those of a logistic regression (``statsmodels``), tests those of the joint hypothesis, of calibration
    in the large (a = 0 given b = 1) and of the slope (b = 1, a free). Its target is miscalibration that is linear in
    the logit; a curve that crosses the diagonal symmetrically may have a = 0 and b = 1.

    Predictions of exactly 0 and 1, whose logit is infinite, stay as they are whatever a and b > 0: these rows are left
    out of estimates and statistics, and a note counts them; one that is contradicted makes the p-value the smallest
    attainable. Nothing is clipped.

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
    method : {"monte-carlo", "score", "likelihood-ratio"}
        "monte-carlo" is the score statistic (`CoxScore`) with the outcomes redrawn, predictions fixed: its p-values
        are valid at every sample size. "score" and "likelihood-ratio" use the chi-squared limit.
    n_resamples : int
        Number of draws.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    CoxResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or for ``method="likelihood-ratio"`` if the predictions separate the
        labels, so that the likelihood has no maximum.

    References
    ----------
    D. R. Cox (1958), Two further applications of a model for binary regression, Biometrika 45, 562-565.
    M. E. Miller, S. L. Hui and W. M. Tierney (1991), Validation techniques for logistic regression models, Statistics
    in Medicine 10, 1213-1226.

    Examples
    --------
    Events in 1/4 of the rows at 0.1 and in 3/4 of those at 0.9: logits of -log 3 and log 3 instead of -log 9, log 9.

    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> result = caltest.cox_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> round(result.slope, 6), result.direction, result.pvalue
    (0.5, 'over-confident', 0.001)
    """
    draws = validate_draws(method, ("monte-carlo", "score", "likelihood-ratio"), n_resamples, rng)
    sample, words = two_outcome_problem(y_true, y_prob, classes, lens, "cox_test")
    fit = _Fit.of(sample)
    if method == "likelihood-ratio" and fit.separated:
        msg = (
            '`y_prob` separates the labels, so that the likelihood has no maximum; method="likelihood-ratio" needs '
            'labels that overlap, method="monte-carlo" does not.'
        )
        raise ValueError(msg)
    freedom = {"joint": fit.rank, "intercept": min(fit.rank, 1), "slope": max(fit.rank - 1, 0)}
    found = {}
    for part, free in freedom.items():
        if method == "monte-carlo":
            found[part], _ = redrawn(CoxScore(part), sample, lens=words, method=method, draws=draws, workers=workers)
            continue
        value = fit.ratio[part] if method == "likelihood-ratio" else float(_score(part, sample))
        found[part] = asymptotic(
            value,
            partial(chi_squared_tail, degrees_of_freedom=free),
            sample,
            lens=words,
            law=f"chi-squared({free})",
            method=method,
        )
    found["joint"]["notes"] += fit.notes
    estimates: dict[str, Any] = {**found["joint"], **fit.estimates}
    return CoxResult(
        **estimates,
        degrees_of_freedom=fit.rank,
        in_the_large_statistic=found["intercept"]["statistic"],
        in_the_large_pvalue=found["intercept"]["pvalue"],
        slope_statistic=found["slope"]["statistic"],
        slope_pvalue=found["slope"]["pvalue"],
    )


def _score(part: str, sample: Sample) -> NDArray[np.float64]:
    return CoxScore(part).evaluate(sample, sample.outcome)


@dataclass(frozen=True, eq=False)
class _Fit:
    """What logistic regression finds: estimates, likelihood ratios, and what is missing."""

    rank: int
    separated: bool
    estimates: dict[str, float]
    ratio: dict[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, sample: Sample) -> _Fit:
        logit = logits(sample)
        inside = np.isfinite(logit)
        x, y = logit[inside], sample.outcome[inside].astype(np.float64)
        notes = []
        if not inside.all():
            notes.append(f"{int((~inside).sum())} prediction(s) of exactly 0 or 1 say nothing of intercept and slope.")
        one_class = not x.size or y.min() == y.max()
        varies = bool(x.size) and bool(CoxScore("slope").informative(sample))
        crossed = varies and not one_class and _overlap(x, y)
        names = ("intercept", "slope", "in_the_large")
        estimates = {name: _NAN for part in names for name in (part, f"{part}_error")}
        null = _log_likelihood(y, x)
        large = full = null
        if not one_class:
            (a,), (a_error,), large = _logistic(y, np.ones((len(x), 1)), x)
            full = large
            estimates |= {"in_the_large": a, "in_the_large_error": a_error}
        if crossed:
            design = np.column_stack([np.ones(len(x)), x])
            (a, b), (a_error, b_error), full = _logistic(y, design, np.zeros(len(x)))
            estimates |= {"intercept": a, "intercept_error": a_error, "slope": b, "slope_error": b_error}
        if x.size and not crossed:
            notes.append(
                "intercept and slope have no finite estimate: the predictions separate the labels."
                if varies or one_class
                else "slope and intercept cannot be told apart: the predictions are constant."
            )
        ratio = {"joint": 2 * (full - null), "intercept": 2 * (large - null), "slope": 2 * (full - large)}
        separated = bool(x.size) and (one_class or (varies and not crossed))
        return cls(int(x.size > 0) + varies, separated, estimates, ratio, tuple(notes))


def _overlap(x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Return whether neither x nor -x separates the labels, so that the likelihood has a maximum."""
    without, with_event = x[y == 0], x[y == 1]
    return bool(without.max() > with_event.min() and with_event.max() > without.min())


def _log_likelihood(y: NDArray[np.float64], logit: NDArray[np.float64]) -> float:
    return -float(np.logaddexp(0, np.where(y == 1, -logit, logit)).sum())


def _logistic(
    y: NDArray[np.float64], design: NDArray[np.float64], offset: NDArray[np.float64]
) -> tuple[list[float], list[float], float]:
    """Return coefficients, standard errors and the log-likelihood of a logistic regression that has a maximum."""
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import ConvergenceWarning

    model = Logit(y, design, offset=offset)
    with warnings.catch_warnings(), np.errstate(over="ignore", divide="ignore"):
        # Newton's steps overshoot from afar, where nearly all fitted probabilities are 0 or 1.
        warnings.simplefilter("ignore", ConvergenceWarning)
        near = model.fit(disp=0, method="bfgs", maxiter=200).params
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            fit = model.fit(start_params=near, disp=0, maxiter=200)
        except (ConvergenceWarning, np.linalg.LinAlgError) as error:
            msg = f"`y_prob` is too near to 0 and 1 for the logistic regression of labels on logits: {error}"
            raise ValueError(msg) from None
    return fit.params.tolist(), fit.bse.tolist(), _log_likelihood(y, design @ fit.params + offset)
