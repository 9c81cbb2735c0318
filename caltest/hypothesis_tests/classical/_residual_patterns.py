"""The goodness-of-fit tests of Stukel, of Osius and Rojek, and of le Cessie and van Houwelingen."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import calibration_test
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_choice
from caltest.resampling.engine._options import NullTestOptions
from caltest.statistics import LeCessie, OsiusRojek, Stukel

_METHODS = ("monte-carlo", "asymptotic")


@reads_arguments
def stukel_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: str = "monte-carlo",
    **options: Unpack[NullTestOptions],
) -> ClassicalTestResult:
    r"""Perform Stukel's test of the tails of the calibration curve, in its score form (Stukel 1988).

    The squared logits of the predictions above and below 1/2 are two features, whose coefficients are tested in a
    logistic regression with the logit of the predictions as its offset; `Stukel` has the formula. The predictions must
    not have been fitted to these labels. R's ``LogisticDx::gof`` and the textbook test are for a model that was: they
    estimate its coefficients together with the two features, and have other numbers.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels: the p-value is valid at every sample size if
        predictions are fixed. "asymptotic" is chi-squared with one degree of freedom for each side of 1/2; squared
        logits are heavy-tailed features, so that it fails where few predictions near 0 and 1 decide.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. ``below_half`` and ``above_half``, the standardised scores
        of the two sides, are attributes: above 0 where predictions are too low.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``method`` is unknown,
        or "asymptotic" and predictions are not fixed; if ``n_resamples`` < 1, or ``alpha`` is not strictly between 0
        and 1.

    See Also
    --------
    giviti_test : Powers of the logit, as many as the labels call for.
    cox_test : Intercept and slope.

    References
    ----------
    T. A. Stukel (1988), Generalized logistic models, Journal of the American Statistical Association 83, 426-431.

    Examples
    --------
    >>> from caltest.hypothesis_tests import stukel_test
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> result = stukel_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> round(result.below_half, 4), round(result.above_half, 4), result.pvalue
    (3.1623, -3.1623, 0.001)
    """
    validate_choice(method, "method", _METHODS)
    result = calibration_test(y_true, y_prob, statistic=Stukel(), method=method, **options)
    said = f"Standardised scores: {result.below_half:.3g} below 1/2, {result.above_half:.3g} above."
    return result.extend(ClassicalTestResult, title="Stukel test", sentences=(said,))


@reads_arguments
def osius_rojek_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: str = "monte-carlo",
    **options: Unpack[NullTestOptions],
) -> ClassicalTestResult:
    r"""Perform the test of Osius and Rojek: Pearson's chi-square, standardised by its exact mean and variance.

    Equal predictions are one pattern; `OsiusRojek` has the formula. The test is two-sided: Pearson's chi-square is too
    small where predictions are not extreme enough. The predictions must not have been fitted to these labels. The
    textbook of Hosmer and Lemeshow and ``LogisticDx::gof`` are for a model that was: patterns are those of the
    covariates, J is less by the number of coefficients, and the variance by what the fit explains.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels: the p-value is valid at every sample size if
        predictions are fixed. "asymptotic" is standard normal, which is refused where the exact skewness of the
        chi-square is above 1: of few predictions that are those of many observations each, or of some so near to 0 and
        1 that few labels decide.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``, where the statistic is Z with its sign. ``chi_square`` and
        ``n_patterns``, Pearson's chi-square and its expected value, are attributes.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``method`` is unknown,
        or "asymptotic" and predictions are not fixed; if ``n_resamples`` < 1, or ``alpha`` is not strictly between 0
        and 1.

    See Also
    --------
    hosmer_lemeshow_test : Groups of neighbouring predictions.
    spiegelhalter_test : The sum of squared residuals, without division by the variance.

    References
    ----------
    G. Osius and D. Rojek (1992), Normal goodness-of-fit tests for multinomial models with large degrees of freedom,
    Journal of the American Statistical Association 87, 1145-1152.

    Examples
    --------
    >>> from caltest.hypothesis_tests import osius_rojek_test
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> result = osius_rojek_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> round(result.chi_square, 4), result.n_patterns, round(result.statistic, 4), result.pvalue
    (20.0, 2, 8.7256, 0.001)
    """
    validate_choice(method, "method", _METHODS)
    result = calibration_test(y_true, y_prob, statistic=OsiusRojek(), method=method, **options)
    z = 0.0 if result.score is None else 0.0 - result.score
    said = f"Pearson's chi-square is {result.chi_square:.4g}, {result.n_patterns:,} are expected (Z = {z:.3g})."
    return result.extend(ClassicalTestResult, title="Osius-Rojek test", statistic=z, sentences=(said,))


@reads_arguments
def le_cessie_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    method: str = "monte-carlo",
    **options: Unpack[NullTestOptions],
) -> ClassicalTestResult:
    r"""Perform the test of le Cessie and van Houwelingen (1991): residuals, smoothed over predictions.

    The mean of the squared, standardised sums of the residuals in windows of the logit, which overlap and hold
    :math:`\sqrt n` observations on average; `LeCessie` has the formula. The predictions must not have been fitted to
    these labels. What R's rms calls the test of le Cessie, van Houwelingen, Copas and Hosmer,
    ``residuals(fit, "gof")``, is another one, of the unweighted sum of squared residuals: it is
    `sum_of_squares_test`, and with predictions that were not fitted to the labels `spiegelhalter_test`, because
    :math:`(y - p)^2 - p (1 - p) = (y - p)(1 - 2 p)`.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels: the p-value is valid at every sample size if
        predictions are fixed. "asymptotic" is the authors' scaled chi-squared with the exact mean and variance of the
        statistic. It is refused with fewer than 6 observations, and where windows hold few expected events or
        non-events: there a level of 5 % was 2.5 to 3.5 % (4,000 simulated data sets each).

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. The statistic is 1 on average if the model is calibrated.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``method`` is unknown,
        or "asymptotic" and predictions are not fixed; if ``n_resamples`` < 1, or ``alpha`` is not strictly between 0
        and 1.

    See Also
    --------
    hosmer_lemeshow_test : Groups that do not overlap.
    skce_test : Residuals smoothed by kernels, for any number of outcomes.

    References
    ----------
    S. le Cessie and J. C. van Houwelingen (1991), A goodness-of-fit test for binary regression models, based on
    smoothing methods, Biometrics 47, 1267-1282.

    Examples
    --------
    >>> from caltest.hypothesis_tests import le_cessie_test
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> result = le_cessie_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> round(result.statistic, 4), result.pvalue
    (10.0, 0.001)
    """
    validate_choice(method, "method", _METHODS)
    result = calibration_test(y_true, y_prob, statistic=LeCessie(), method=method, **options)
    return result.extend(ClassicalTestResult, title="le Cessie-van Houwelingen test")
