"""The test of perfect calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._by_fold import run_by_fold
from caltest.hypothesis_tests._diagnostics import describe_answer, describe_answers
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, design_of, validate_choice, validate_given_problem
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import DesignedTestOptions, drawing_of
from caltest.resampling.engine._run import METHODS, run
from caltest.resampling.engine._stopping import Stopping
from caltest.results import TestResult
from caltest.results._progress import Progress, reporting
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic


@reads_arguments
def calibration_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    folds: Any = None,
    method: str = "auto",
    **options: Unpack[DesignedTestOptions],
) -> TestResult:
    r"""Test whether a classifier is calibrated, by Monte Carlo or with an exact null distribution.

    The null hypothesis is :math:`P(Y = \cdot \mid g(X)) = g(X)` through the lens (equation 1), or a known calibration
    function of the prediction :math:`g(X)`. Predictions are held fixed, and labels are simulated from them B =
    ``n_resamples`` times. With the statistic :math:`T_b` of draw b the p-value is

    .. math:: p = \frac{1 + \#\{b : T_b \ge T_\text{observed}\}}{1 + B}.

    It satisfies :math:`P(p \le \alpha) \le \alpha` at every sample size if the observations are independent and the
    predictions, any recalibration and the region were made without these labels. Predictions that are pooled over
    cross-validation folds violate this condition; ``folds`` tests every fold separately.

    With ``groups``, only groups of observations need to be independent of each other. The p-value is then the largest
    of two or three: the one above, and that of the residuals :math:`s_{g(i)} (1\{y_i = k\} - p_{ik})` with random signs
    :math:`s_g` of whole groups, in the place of simulated labels (the wild cluster bootstrap, Cameron, Gelbach and
    Miller 2008). Signs keep the dependence within a group, whatever it is; their p-value is valid as the number of
    groups grows, and exact if the sums over a group have symmetric distributions. Of fewer than 10 groups all
    arrangements of signs are evaluated; with G groups the p-value of a two-sided statistic is at least :math:`2^{1-G}`,
    and if that is above ``alpha``, ``decision`` is "undecidable". If fewer than 40 groups have a label other than the
    most probable one, labels are also simulated that are alike within groups, as much as these data allow (up to an
    intraclass correlation of 0.3, if no more is observed), because so few groups do not show how skewed their sums are.
    Where all labels of each group may be one outcome, this is done with fewer than 200.
    If fewer than five have one, a test that does not reject is "undecidable". Groups need a statistic that is a
    function of the residuals: `ECE` and `MCE`, `KS`, `Kuiper`, `ClasswiseKS`, `ConfidenceECE`, `SquaredL2`, `TCal`,
    `TemperatureScore` and its sides, `MatrixScore`, `Spiegelhalter`, `CoxScore`, `SKCE`, `MMCE`, `GCE` and its members,
    `ICI`, `E50`, `E90` and `Emax` with local regressions, and `Omnibus` of these.

    With ``time`` and ``lead``, for forecasts whose labels are known later, labels are simulated that depend on each
    other in time as much as the observed ones do, and every statistic is compared after division by the root of its
    inflation (studentised). The p-value is valid as the time becomes long compared with the lead, for the statistics
    that groups allow. With little time or rare labels the larger p-value is taken of this and of labels that share
    more of their shocks; if the time is less than five leads, a test that does not reject is "undecidable". Together
    with ``groups``, labels depend on each other if they are less than a lead apart or of the same group however far
    apart.

    With ``sample_weight`` the statistic is weighted and labels are simulated as before: the p-value is exact given
    weights that depend on predictions and covariates, not on labels.

    Parameters
    ----------
    y_prob : array-like or frame of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class. Columns that are named after
        the labels may stand in any order. A row may miss the sum 1 by 5e-5 for each class, as in files with 4 decimals;
        it is then divided by its sum, with a warning.
    classes : sequence, optional
        The label of each column of ``y_prob``; not needed where columns are named after the labels.
    lens : lens, optional
        What to look at. By default the whole prediction if the statistic can judge it, and the confidence otherwise.
    statistic : Statistic or str, optional
        ``Omnibus()`` by default: an exact min-p over five statistics: the tree ECE, the temperature score
        on either side, the class-wise KS, and the ECE of the confidence (for two outcomes, of the event). Two outcomes
        have a sixth, the score of Cox's slope.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined, as by `by_fold`.
    method : {"auto", "exact", "monte-carlo", "asymptotic"}
        How the null distribution is found. "exact" computes it, for `ECE`, `MCE` and `HosmerLemeshow` behind
        two-outcome lenses with predictions fixed; "auto" does so where it can, and "monte-carlo" simulates labels.
        "asymptotic" takes the limit for large samples, for `KS`, `Kuiper`, `Bridge`, `Spiegelhalter`,
        `HosmerLemeshow` and `CoxScore`. It is not exact in small samples.

    Returns
    -------
    TestResult
        Prints as a report; unpacks as ``statistic, pvalue``. With ``folds``, its ``folds`` are the tests of the folds.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``statistic`` no statistic, ``region`` no function, ``resampling`` no `Consistency`
        or ``folds`` no array of integers or strings.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns, names of columns contradict ``classes``, or indexes differ; if ``region`` holds no observation; if the
        statistic needs two outcomes and ``lens`` returns more; if ``folds`` has another length, lacks a value, or holds
        one fold only or a different one for every observation; if ``method`` is unknown, or "exact" or "asymptotic"
        where no such distribution is known; if ``n_resamples`` or ``n_exceedances`` < 1, or ``alpha`` is not strictly
        between 0 and 1.

    Warns
    -----
    CalibrationWarning
        If observations are resampled and more than 5 % of them lie in cells (bins) of fewer than 10, or partitions
        that are fitted again differ by more than 5 % in their number of cells. The p-value is then not valid.

    See Also
    --------
    calibration_table : Several lenses at once.
    calibration_report : Several statistics at once.
    equivalence_test : Is the miscalibration smaller than a margin?
    l2_interval : How large is it?

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, sections 4.2 and 4.3.
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
    J. Besag and P. Clifford (1991), Sequential Monte Carlo p-values, Biometrika 78, 301-304.
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2008), Bootstrap-based improvements for inference with clustered
    errors, Review of Economics and Statistics 90.
    I. A. Canay, A. Santos and A. M. Shaikh (2021), The wild bootstrap with a "small" number of "large" clusters, Review
    of Economics and Statistics 103.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> result.pvalue
    0.001
    >>> result.direction
    'over-confident'

    Twenty centres with fifty observations each, in each of which the event is more or less frequent than predicted:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centre, y_prob = np.repeat(np.arange(20), 50), rng.uniform(0.2, 0.8, 1000)
    >>> y_true = rng.random(1000) < y_prob + rng.normal(0, 0.15, 20)[centre]
    >>> options = {"statistic": caltest.KS(), "n_resamples": 999, "rng": 0}
    >>> [caltest.calibration_test(y_true, y_prob, groups=ids, **options).pvalue for ids in (None, centre)]
    [0.032, 0.477]

    Daily forecasts of an event in the week that follows, so that labels are known after 7 days. Without the lead the
    p-value is too small:

    >>> shock = np.convolve(np.random.default_rng(2).normal(size=506), np.ones(7), "valid") / np.sqrt(7)
    >>> y_true, y_prob = shock > 0.5, np.full(500, 0.3085)
    >>> lead = {"time": np.arange(500), "lead": 7}
    >>> [caltest.calibration_test(y_true, y_prob, **times, **options).pvalue for times in ({}, lead)]
    [0.003, 0.145]
    """
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    validate_choice(method, "method", METHODS)
    if folds is not None:
        return run_by_fold(calibration_test, y_true, y_prob, folds, statistic=chosen, method=method, **options)
    sample, look = look_at(chosen, y_true, y_prob, options)
    with reporting(options["progress"], "simulating labels") as report:
        found = run_test(
            chosen,
            sample,
            options["resampling"],
            lens=look,
            classes=options["classes"],
            alpha=options["alpha"],
            method=method,
            progress=report,
            **drawing_of(options, sample),
        )
    return noting_correlation(found, sample, options)


def look_at(
    statistic: Statistic, y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any]
) -> tuple[Sample, LensLike]:
    """Validate a problem and return what a statistic looks at, with the lens, which may be the default one."""
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    look = default_lens(statistic, prob.shape[1]) if options["lens"] is None else options["lens"]
    design = design_of(options, len(prob))
    return induce(prob, outcome, lens=look, region=options["region"], **design), look


def run_test(
    statistic: Statistic,
    sample: Sample,
    null: Consistency,
    *,
    lens: LensLike,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
    title: str = "Calibration test",
    n_resamples: int | Stopping = 9999,
    method: str = "monte-carlo",
    workers: int = 1,
    rng: SeedLike = None,
    progress: Progress | None = None,
) -> TestResult:
    """Test a sample."""
    sample = null.under_null(sample)
    question = Question(statistic, LensView(sample))
    found = run(
        [question], sample, null, n_resamples=n_resamples, method=method, workers=workers, rng=rng, progress=progress
    )
    return describe_answer(found.answers[0], null, lens=lens, classes=classes, alpha=alpha, title=title)


def run_tests(
    statistics: Sequence[Statistic], sample: Sample, *, lens: LensLike, **drawn: Any
) -> tuple[TestResult, ...]:
    """Test a sample for calibration by several statistics, which share their draws."""
    view = LensView(sample)
    found = run([Question(one, view) for one in statistics], sample, Consistency(), **drawn)
    return describe_answers(found.answers, Consistency(), [lens] * len(statistics))
