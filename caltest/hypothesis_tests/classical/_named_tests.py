"""Classical tests that are known by the name of their statistic: a calibration test that reports as they do."""

from __future__ import annotations

import math
from typing import Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import calibration_test
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_choice
from caltest.resampling.engine._options import NullTestOptions
from caltest.results import TestResult
from caltest.results._decision import align_pvalue
from caltest.results._description import Table
from caltest.statistics import Bridge, LeCessie, OsiusRojek, Spiegelhalter, Stukel, TCal


@reads_arguments
def spiegelhalter_test(
    y_true: ArrayLike, y_prob: ArrayLike, *, method: str = "monte-carlo", **options: Unpack[NullTestOptions]
) -> ClassicalTestResult:
    r"""Perform Spiegelhalter's two-sided test of the Brier score against its expectation (Spiegelhalter 1986).

    .. math:: Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\bigl(\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)\bigr)^{1/2}},

    or its form for any number of outcomes,

    .. math::
        Z = \frac{\sum_i (m_i - p_{i, y_i})}{\bigl(\sum_{ik} p_{ik} (p_{ik} - m_i)^2\bigr)^{1/2}},
        \qquad m_i = \sum_k p_{ik}^2.

    Z is the Brier score minus its expectation under the predictions, in units of its standard deviation. The test does
    not detect deviations at :math:`p = 1/2`, and deviations on both sides of 1/2 may cancel. `Spiegelhalter` is the
    statistic, which `calibration_test` takes too.

    Parameters
    ----------
    lens : lens, optional
        What to look at; the whole prediction by default. Most software tests the event of two classes, which is the
        same, or the confidence: ``Confidence()``.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels: the p-value is valid at every sample size if
        predictions are fixed. "asymptotic" is :math:`2 \Phi(-|Z|)`, which is inaccurate where few observations have
        predictions away from 0, 1/2 and 1: at the 1 % level it rejected 3 % of calibrated data sets with 20
        observations and 0.4 expected events.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. ``statistic`` is Z with its sign: positive where the Brier
        score is worse than the predictions expect (over-confident), negative where it is better (under-confident).
        ``null`` and ``components`` are those of its absolute value.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if ``method`` is unknown, or "asymptotic" and predictions are not
        fixed; if ``n_resamples`` < 1, or ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    cox_test : Intercept and slope on the logit scale, with estimates.
    calibration_test : With ``TemperatureScore()``, the same for the logarithmic score.

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
    validate_choice(method, "method", ("monte-carlo", "asymptotic"))
    result = calibration_test(y_true, y_prob, statistic=Spiegelhalter(), method=method, **options)
    z = 0.0 if result.score is None else 0.0 - result.score  # never -0
    return result.extend(ClassicalTestResult, title="Spiegelhalter test", statistic=z, sentences=(_in_words(z),))


def _in_words(z: float) -> str:
    than = "better" if z < 0 else "worse"
    if math.isinf(z):
        return f"The Brier score is {than} than expected, although the predictions leave it no variance."
    return f"The Brier score is {f'{abs(z):.4g} standard deviations {than} than' if z else 'as'} expected."


@reads_arguments
def bridge_test(
    y_true: ArrayLike, y_prob: ArrayLike, *, method: str = "monte-carlo", **options: Unpack[NullTestOptions]
) -> ClassicalTestResult:
    r"""Perform the bridge test of the cumulative residual (Sadatsafavi and Petkau 2024).

    .. math:: T = -2 \log P(|N| \ge |S_n|) - 2 \log P(K \ge \max_k |S_k - t_k S_n|)

    In the order of the predictions, :math:`S_k = \sum_{i \le k} (y_i - p_i) / V^{1/2}` is the standardised cumulative
    residual at the time :math:`t_k = \sum_{i \le k} p_i (1 - p_i) / V`, with :math:`V = \sum_i p_i (1 - p_i)`. N is
    standard normal, and K is the supremum of the absolute value of a Brownian bridge. The first part tests calibration
    in the large, the second the rest. The test needs no groups and no smoothing. `Bridge` is the statistic, which
    `calibration_test` takes too.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels: the p-value is valid at every sample size if
        predictions are fixed. "asymptotic" is chi-squared(4), a limit that needs many different predictions and many
        events: at the 5 % level it rejected 1.7 % of calibrated data sets where predictions had five values, whatever
        their number, and 7 % with 100 observations and 2 expected events.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. Its two parts are attributes: ``mean``, the standardised
        end of the cumulative residual, positive where events are too frequent, and ``shape``, the largest distance of
        the bridge from 0; ``mean_pvalue`` and ``shape_pvalue`` are their p-values by the limits of their distributions.

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
    calibration_test : With ``KS()`` or ``Kuiper()``, the cumulative residual as one number; combinations of statistics.
    cox_test : Deviations that are linear in the logit, with estimates.

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
    validate_choice(method, "method", ("monte-carlo", "asymptotic"))
    result = calibration_test(y_true, y_prob, statistic=Bridge(), method=method, **options)
    return result.extend(ClassicalTestResult, title="Bridge test", further_tables=(_parts_table(result),))


def _parts_table(result: TestResult) -> Table:
    found = result.derived
    rows = [(part, f"{found[part]:.4g}", align_pvalue(found[f"{part}_pvalue"])) for part in ("mean", "shape")]
    return Table(("part", "value", "p-value (limit)"), rows)


_METHODS = ("monte-carlo", "asymptotic")


@reads_arguments
def stukel_test(
    y_true: ArrayLike, y_prob: ArrayLike, *, method: str = "monte-carlo", **options: Unpack[NullTestOptions]
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
    y_true: ArrayLike, y_prob: ArrayLike, *, method: str = "monte-carlo", **options: Unpack[NullTestOptions]
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
        or "asymptotic" and predictions are not fixed, or so few decide that the limit is far away; if ``n_resamples`` <
        1, or ``alpha`` is not strictly between 0 and 1.

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
    y_true: ArrayLike, y_prob: ArrayLike, *, method: str = "monte-carlo", **options: Unpack[NullTestOptions]
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
        or "asymptotic" and predictions are not fixed, or so few decide that the limit is far away; if ``n_resamples`` <
        1, or ``alpha`` is not strictly between 0 and 1.

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


@reads_arguments
def tcal_test(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[NullTestOptions]) -> ClassicalTestResult:
    r"""Perform the adaptive T-Cal test: debiased squared errors over 2, 4, 8, ... cells (Lee et al. 2023).

    .. math:: T_m = \frac1n \sum_{b=1}^m \frac{S_b^2 - \sum_{i \in b} e_i^2}{n_b}, \qquad m = 2, 4, \dots, 2^{\lfloor
              \log_2 n \rfloor}

    with cells (bins) of equal width, :math:`e_i` the residuals, :math:`S_b` their sum and :math:`n_b` their number in
    cell b. Every :math:`T_m` has expectation 0 if the model is calibrated. All scales are evaluated on the same draws
    and combined by an exact min-p, so that the number of cells need not be chosen. The p-value is valid at every sample
    size if predictions are fixed; there is no asymptotic one. `TCal` is the statistic, which `calibration_test` takes
    too.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.

    Returns
    -------
    ClassicalTestResult
        Prints as a report with a row for each number of cells; unpacks as ``statistic, pvalue``. ``statistic`` is
        -log10 of the smallest p-value of the ``components``, one for each number of cells. ``to_frame()`` has a row for
        each: number of cells, debiased squared error, its mean under calibration, and its p-value, which is not
        adjusted for the other numbers of cells.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function or ``resampling`` no `Consistency`.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``n_resamples`` < 1, or
        ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    calibration_test : With ``SquaredL2(estimator="t-cal")``, the test of one number of cells.
    l2_interval : An interval for the squared error.

    References
    ----------
    D. Lee, X. Huang, H. Hassani and E. Dobriban (2023), T-Cal: an optimal test for the calibration of predictive
    models, Journal of Machine Learning Research 24.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.hypothesis_tests.tcal_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue, result.components[-1].test_statistic.partition
    (0.001, EqualWidth(8192))
    >>> len(result.to_frame())
    13
    """
    result = calibration_test(y_true, y_prob, statistic=TCal(), method="monte-carlo", **options)
    parts = result.components
    n_cells = [part.test_statistic.partition.n_cells for part in parts]
    rows = [(f"{m}", *part._row()[1:]) for m, part in zip(n_cells, parts, strict=True)]
    return result.extend(
        ClassicalTestResult,
        title="Adaptive T-Cal test",
        sentences=(),
        table=Table(("cells (bins)", "squared error", "under calibration (5 % to 95 %)", "p-value"), rows),
        columns={
            "n_cells": n_cells,
            "statistic": [part.statistic for part in parts],
            "noise_floor": [part.noise_floor for part in parts],
            "pvalue": [part.pvalue for part in parts],
        },
    )
