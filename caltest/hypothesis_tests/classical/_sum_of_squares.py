"""The unweighted sum of squares test of a logistic regression on the labels that it was fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._validation import validate_choice, validate_given_problem, validate_rng
from caltest.resampling.engine._options import FittedOptions
from caltest.resampling.engine._pvalues import tail_pvalues
from caltest.results import Result, Verdict
from caltest.results._decision import Decision, equate_pvalue
from caltest.results._description import Description, counted
from caltest.results._progress import reporting
from caltest.statistics._base import in_equal_batches
from caltest.statistics._logistic_curves import LogisticCurves, expit

_DRAWS = 999
_SPANNED = 1e-6  # of the logits, what features may leave unexplained
_FITTED = 0.01  # of a standard error, what a fit may lack
_NO_SPREAD = 1e-12
_EXPLAINED = 1e-9  # of the variance, which rounding leaves where the features explain all of it


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SumOfSquaresTest(Decision, Result):
    """Result of `sum_of_squares_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic : float
        Z, the standardised sum of squared residuals.
    pvalue, smallest_possible_pvalue, alpha : float
        Two-sided p-value, the smallest possible one, and the level.
    sum_of_squares, expected, std_error : float
        Sum of the squared residuals, its expected value, and the standard deviation of their difference.
    method : str
        How the null distribution was found.
    n_resamples : int
        Number of draws of the labels; 0 where nothing is drawn.
    n_samples, n_features : int
        Numbers of observations, and of coefficients with the intercept.

    See Also
    --------
    sum_of_squares_test : The test that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.hypothesis_tests import sum_of_squares_test
    >>> y_true, feature = np.repeat([0, 1, 0, 1], [30, 10, 15, 25]), np.repeat([0.0, 1.0], 40)
    >>> result = sum_of_squares_test(y_true, np.repeat([0.25, 0.625], 40), feature, n_resamples=19, rng=0)
    >>> round(result.sum_of_squares, 2), round(result.expected, 2)
    (16.88, 16.88)
    """

    statistic: float
    pvalue: float
    smallest_possible_pvalue: float
    alpha: float
    sum_of_squares: float
    expected: float
    std_error: float
    method: str
    n_resamples: int
    n_samples: int
    n_features: int

    _derived: ClassVar[tuple[str, ...]] = ("rejected", "decision", "conclusion", "verdict", "hypothesis")

    hypothesis: ClassVar[str] = "The logistic regression of these features is right"
    """The null hypothesis in words."""

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        p, size = equate_pvalue(self.pvalue), f"{self.sum_of_squares:.4g}, {self.expected:.4g} expected"
        if self.rejected:
            than = "larger" if self.statistic > 0 else "smaller"
            return f"The model does not fit: the sum of squared residuals is {than} than it should be ({size}; {p})."
        return f"No lack of fit is found: the sum of squared residuals is {size} ({p}). This does not prove a good fit."

    @property
    def verdict(self) -> Verdict:
        """The decision, and what to do."""
        advice = "Add bends or interactions of the features, and validate the model with new labels."
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=self.hypothesis,
            proof="that the model fits",
            n_samples=self.n_samples,
            n_outcomes=2,
            said=self.conclusion,
            advised=(advice if self.rejected else "Validate the model with new labels.",),
        )

    def _describe(self) -> Description:
        null = "standard normal, the limit for many observations"
        if self.method == "monte-carlo":
            null = f"{self.n_resamples:,} simulations of the labels, to each of which the model is fitted again"
        return Description(
            f"Unweighted sum of squares test ({counted(self.n_samples)}, {self.n_features} coefficients)",
            [self.conclusion],
            remarks=[
                f"Z = {self.statistic:.4g}, the difference divided by its standard deviation, {self.std_error:.4g}.",
                f"Null distribution: {null}.",
            ],
        )


@reads_arguments
def sum_of_squares_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    features: ArrayLike,
    *,
    method: str = "monte-carlo",
    **options: Unpack[FittedOptions],
) -> SumOfSquaresTest:
    r"""Test the fit of a logistic regression on its own labels, by the unweighted sum of squared residuals.

    It is the test of le Cessie, van Houwelingen, Copas and Hosmer of R's rms, ``residuals(fit, "gof")``, which
    ``LogisticDx::gof`` reports too:

    .. math:: Z = \frac{\sum_i (y_i - \hat p_i)^2 - \sum_i \hat p_i (1 - \hat p_i)}{\sigma}, \qquad
              \sigma^2 = \min_\beta \sum_i \hat p_i (1 - \hat p_i) (1 - 2 \hat p_i - x_i^\top \beta)^2

    with the features :math:`x_i`, among them the intercept. The minimum, a weighted regression, is what the fit to the
    same labels leaves of the variance. For new labels, to which nothing was fitted, the same test is
    `spiegelhalter_test`, without features.

    Parameters
    ----------
    features : array-like of shape (n_samples,) or (n_samples, n_features)
        What the logistic regression was fitted to, without the intercept.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels from the predictions and fits the model to
        each of them again (parametric bootstrap), 999 times by default. "asymptotic" is standard normal, as in rms; it
        fails with few events for each coefficient, and where few predictions are far from 1/2.

    Returns
    -------
    SumOfSquaresTest
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``features`` are not numbers.
    ValueError
        If ``y_prob`` has values outside [0, 1] or is not the probability of one event; if ``features`` have other rows
        or values that are not finite; if ``method`` is unknown; if the predictions are 0 or 1, or those of no logistic
        regression of these features, or of one that was not fitted to these labels by maximum likelihood; if
        ``n_resamples`` < 1, or ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    spiegelhalter_test : For labels that the model was not fitted to.
    giviti_test : With ``kind="internal"``, bends of the calibration curve.

    References
    ----------
    J. B. Copas (1989), Unweighted sum of squares test for proportions, Applied Statistics 38, 71-80.
    D. W. Hosmer, T. Hosmer, S. le Cessie and S. Lemeshow (1997), A comparison of goodness-of-fit tests for the logistic
    regression model, Statistics in Medicine 16, 965-980.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltest.hypothesis_tests import sum_of_squares_test
    >>> features, species = load_iris(return_X_y=True)
    >>> model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10).fit(features, species == 1)
    >>> y_prob = model.predict_proba(features)[:, 1]
    >>> result = sum_of_squares_test(species == 1, y_prob, features, method="asymptotic")
    >>> round(result.statistic, 4), round(result.pvalue, 4)
    (1.2291, 0.219)
    """
    validate_choice(method, "method", ("monte-carlo", "asymptotic"))
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    refuse_if(prob.shape[1] != 2, f"`y_prob` must be the probability of one event, got {prob.shape[1]} classes.")
    event = prob[:, 1].astype(np.float64)
    sure = (event <= 0) | (event >= 1)
    refuse_if(
        sure.any(), f"`y_prob` must be above 0 and below 1, as fitted probabilities are, got {sure.sum()} others."
    )
    fit = _Fit.of(event, _read(features, len(event)))
    lack = fit.lack(outcome.astype(np.float64))
    refuse_if(
        lack > _FITTED,
        "`y_prob` must be the predictions of a logistic regression that was fitted to `y_true` and `features` by "
        f"maximum likelihood, without a penalty; the fit of these lacks {lack:.2g} standard errors. For new labels use "
        "spiegelhalter_test.",
    )
    squares, expected, spread = (float(part[0]) for part in fit.refitted(outcome[None].astype(np.float64)))
    z = float(_standardised(squares - expected, spread))
    n_resamples, smallest = 0, 0.0
    if method == "asymptotic":
        from scipy.special import ndtr

        pvalue = float(2 * ndtr(-abs(z)))
    else:
        n_resamples = _DRAWS if options["n_resamples"] is None else options["n_resamples"]
        with reporting(options["progress"], "simulating labels") as report:
            drawn = fit.simulate(n_resamples, validate_rng(options["rng"]), report)
        pvalue, smallest = float(tail_pvalues(np.append(abs(z), drawn))[0]), 1 / (n_resamples + 1)
    return SumOfSquaresTest(
        statistic=z,
        pvalue=pvalue,
        smallest_possible_pvalue=smallest,
        alpha=options["alpha"],
        sum_of_squares=squares,
        expected=expected,
        std_error=spread,
        method=method,
        n_resamples=n_resamples,
        n_samples=len(event),
        n_features=fit.curves.design.shape[1],
    )


def _read(features: ArrayLike, n_samples: int) -> Floats:
    """Return features ``(n_samples, n_features)`` as numbers."""
    try:
        found = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        refuse("`features` must be an array of numbers; encode categories as 0 and 1.", TypeError)
    found = found[:, None] if found.ndim == 1 else found
    right = found.ndim == 2 and len(found) == n_samples
    refuse_if(not right, f"`features` must have {n_samples} rows, as `y_prob`, got the shape {found.shape}.")
    refuse_if(not np.isfinite(found).all(), "`features` must be finite, got NaN or infinity.")
    return found


def _standardised(difference: Any, spread: Any) -> Any:
    """Return differences in standard deviations, 0 where a fit leaves none."""
    return np.where(spread > _NO_SPREAD, difference / np.where(spread > _NO_SPREAD, spread, 1.0), 0.0)[()]


@dataclass(frozen=True, eq=False)
class _Fit:
    """A logistic regression that can be fitted to other labels of the same observations."""

    curves: LogisticCurves
    event: Floats

    @classmethod
    def of(cls, event: Floats, features: Floats) -> _Fit:
        logit = np.log(event) - np.log1p(-event)
        centred = features - features.mean(axis=0)
        raw = np.column_stack([np.ones_like(logit), centred])
        curves = LogisticCurves.of(logit, raw, np.ones_like(logit))
        left = np.abs(curves.design @ curves.start - logit).max()
        refuse_if(
            left > _SPANNED * max(1.0, np.abs(logit).max()),
            "`features` must be those of the logistic regression that made `y_prob`; their logit is no linear function "
            f"of these, and differs by up to {left:.2g}.",
        )
        return cls(curves, event)

    def lack(self, outcome: Floats) -> float:
        """Return how many standard errors a coefficient is from the largest likelihood."""
        return float(np.abs((outcome - self.event) @ self.curves.design).max())

    def parts(self, prob: Floats, outcome: Floats) -> tuple[Floats, Floats, Floats]:
        """Return sums of squares, expected values and standard deviations ``(n,)`` of fits ``(n, n_samples)``."""
        variance, slope, design = prob * (1 - prob), 1 - 2 * prob, self.curves.design
        n_features = design.shape[1]
        product = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
        information = (variance @ product).reshape(-1, n_features, n_features) + _NO_SPREAD * np.eye(n_features)
        along = (variance * slope) @ design
        explained = (along * np.linalg.solve(information, along[:, :, None])[:, :, 0]).sum(axis=1)
        total = (variance * slope**2).sum(axis=1)
        left = np.where(total - explained > _EXPLAINED * total, total - explained, 0.0)
        return np.square(outcome - prob).sum(axis=1), variance.sum(axis=1), np.sqrt(left)

    def refitted(self, outcome: Floats) -> tuple[Floats, Floats, Floats]:
        """Return `parts` of the fits to labels; of the observed ones too, as a fit that lacks little may move Z."""
        return self.parts(expit(self.curves.logits(outcome)), outcome)

    def simulate(self, n_resamples: int, rng: np.random.Generator, report: Callable[[float, float], None]) -> Floats:
        """Return :math:`|Z|` of simulated labels, ``(n_resamples,)``."""

        def sizes(outcome: Floats) -> Floats:
            squares, expected, spread = self.refitted(outcome)
            return np.abs(_standardised(squares - expected, spread))

        found = []
        for start in range(0, n_resamples, 64):
            labels = rng.random((min(64, n_resamples - start), len(self.event))) < self.event
            found.append(in_equal_batches(sizes, labels))
            report(min(start + 64, n_resamples), n_resamples)
        return np.concatenate(found)
