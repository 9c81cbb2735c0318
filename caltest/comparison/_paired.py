"""Tests of whether two models are equally miscalibrated, with an interval for the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from numpy.typing import ArrayLike, NDArray

from caltest.comparison._difference import DifferenceResult, combine_differences
from caltest.comparison._options import DesignedPairOptions, PairOptions
from caltest.comparison._pair import compare_pairs, time_of_pairs
from caltest.hypothesis_tests._by_fold import each_fold, labels_of
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample, induce, make_sample
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import naming, validate_models
from caltest.predictions.inputs._parts import validate_folds
from caltest.predictions.inputs._validation import SeedLike, refuse_crossed, refuse_if, validate_design, validate_rng
from caltest.results._progress import Progress, reporting


@reads_arguments
def paired_test(
    y_true: ArrayLike,
    prob_a: ArrayLike,
    prob_b: ArrayLike,
    *,
    folds: Any = None,
    **options: Unpack[DesignedPairOptions],
) -> DifferenceResult:
    r"""Test whether two models are equally miscalibrated, on the same observations.

    With the debiased squared l2 calibration error T of each model (`SquaredL2`), its residuals :math:`e_i` and its own
    cells (bins),

    .. math:: D = T_A - T_B = \frac1n \sum_{i \ne j} H_{ij}, \qquad
              H_{ij} = \frac{1\{a_i = a_j\}\, e^A_i \cdot e^A_j}{n_{a_i} - 1}
                     - \frac{1\{b_i = b_j\}\, e^B_i \cdot e^B_j}{n_{b_i} - 1}

    and, with :math:`g_i = \sum_j H_{ij}` and :math:`Q = \sum_{i \ne j} H_{ij}^2`,

    .. math:: \mathrm{Var}(D) = \frac{2 Q}{n^2} + \max\Bigl(0, \frac{4}{n^2} \Bigl[\sum_i (g_i - \bar g)^2
              - Q\Bigr]\Bigr), \qquad z = D / \sqrt{\mathrm{Var}(D)}.

    The first term dominates if both models are calibrated, the second one far from calibration. The null hypothesis of
    equal miscalibration does not determine the distribution of the labels, so that it cannot be simulated, and signs
    may not be permuted: p-value and interval are asymptotic. Near calibration they are conservative. Elsewhere at most
    7 % of simulated data sets with equally miscalibrated models were rejected at the 5 % level, from 60 observations on
    (docs/comparing-models.md). If fewer than ten observations of a model have a rare outcome, other than the most
    frequent one of their cell and most probable outcome, their sample variance is unreliable, and
    :math:`\mathrm{Var}(D)` is at least :math:`(s_A + s_B)^2`, with the standard deviations of T according to the
    predictions of each model.

    With ``groups`` or unequal weights the normal limit rejects too often. Then the distribution of
    :math:`(D - \delta) / s`, s the estimated standard deviation, is simulated: with labels that are drawn with
    probabilities halfway between the two recalibrated models, and for groups also by random signs of the deviations of
    the groups from the mean residuals of their cells. The labels of a group share a normal shock that makes their sums
    vary as much as the observed ones. The p-value is the larger one of both, the interval has the larger quantiles.
    Beyond the largest hundredth of the draws they follow Student's distribution. If fewer than ten observations of a
    model have a rare outcome, or of groups fewer than five times the inflation (the variance of their centred sums over
    that of independent observations; copies of one outcome are worth one), the variance has the lower limit above, the
    variances of sums of groups as much larger as is observed (all labels of a group equal if labels do not vary within
    cells), and the p-value is at least that of the normal limit. With fewer than five effective groups
    (observations), :math:`(\sum w)^2 / \sum w^2` by their weights, the p-value is 1 and there is no interval.

    With ``time`` the models forecast what is known only after a lead of h steps, so that residuals of predictions less
    than h apart may depend on each other in any way; those further apart are uncorrelated, because no prediction uses
    a later label. Then T is a sum over pairs of observations that are h or more apart, and its variance comes from
    cosines of the time (Lazarus et al. 2018): with the residuals minus the mean of their cell, N steps, and

    .. math:: V_{jb} = \sqrt{\tfrac2K} \sum_{i \in b} \cos\Bigl(\pi j \frac{t_i + 1/2}{N}\Bigr) (e_i - \bar e_b),
              \qquad j = 1, \dots, K,

    the sums :math:`V_j` take the place of observations: :math:`H_{jk} = \sum_b c_b V_{jb} \cdot V_{kb}` and
    :math:`g_j = \sum_b V_{jb} \cdot \bar e_b` of one model minus those of the other, with the factor
    :math:`c_b \approx 1 / n_b` of T, and :math:`Q = \tfrac{K}{K - 1} \sum_{j \ne k} H_{jk}^2`. z has Student's
    distribution with K degrees of freedom. K is a third of the windows of time as long as the lead, and at most
    :math:`.4\, m^{2/3}` for m different times (or 8 where that is less) and 100. With fewer than 9 windows the p-value
    is 1 and there is no interval. The rule for rare outcomes counts observations over the inflation, the variance of
    the sum of the residuals over that of independent ones. Predictions of equal times, such as those of a week, are a
    batch, whose labels may depend on each other too.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    prob_a, prob_b : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities of each model for these observations.
    lens : lens, optional
        What to look at in the predictions of each model; the whole prediction by default.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other. Then T
        is a sum over pairs of observations of different groups, all sums over observations are sums over groups, and
        these are centred within cells and corrected for their share of the cell (CR2; Bell & McCaffrey 2002).
    alpha : float
        Level of the decision; the interval has the level 1 - ``alpha``.
    variance : {"asymptotic", "bootstrap"}
        How the variance of the difference is found. "asymptotic" takes z as normal. "bootstrap" draws observations with
        replacement, the same for both models, with fixed cells; pairs of copies of one observation are left out, and
        the sum over observations is scaled to its variance above. With groups or weights the p-value is at least the
        simulated one. Forecasts in time need "asymptotic".
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined.
    n_resamples : int, optional
        Number of bootstrap samples, and of simulated data sets where there are groups or weights, 999 by default; fewer
        of the latter, but at least 199, with more than 200 million labels.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the bootstrap and of the simulation; with None every call draws anew.

    Returns
    -------
    DifferenceResult
        Prints as a report; unpacks as ``statistic, pvalue``. With ``folds``, its ``folds`` are the tests of the folds.

    Raises
    ------
    TypeError
        If ``lens``, ``partition``, ``n_resamples``, ``workers``, ``rng``, ``progress`` or ``folds`` has a wrong
        type.
    ValueError
        If predictions are outside [0, 1] or do not sum to 1, or a label is unknown; if the models differ in their
        number of observations or classes; if ``variance`` is unknown, ``alpha`` is not strictly between 0 and 1, or
        ``n_resamples`` < 1; if ``partition`` needs two outcomes and the lens returns more; if ``folds`` has another
        length, lacks a value, or holds one fold only or a different one for every observation; if ``lead`` is given
        without ``time``, is not positive or longer than the data; if ``time`` is given with ``groups`` or with
        ``variance="bootstrap"``.

    See Also
    --------
    unpaired_test : The same test for models on independent data sets.
    compare_models : Comparison of several models.

    References
    ----------
    W. Hoeffding (1948), A class of statistics with asymptotically normal distribution, The Annals of Mathematical
    Statistics.
    M. A. Arcones and E. Giné (1992), On the bootstrap of U and V statistics, The Annals of Statistics.
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2008), Bootstrap-based improvements for inference with clustered
    errors, The Review of Economics and Statistics.
    R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage
    samples, Survey Methodology.
    F. X. Diebold and R. S. Mariano (1995), Comparing predictive accuracy, Journal of Business & Economic Statistics.
    E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson (2018), HAR inference: recommendations for practice, Journal
    of Business & Economic Statistics.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> result = caltest.paired_test(y_true, y_prob["naive_bayes"], y_prob["neural_network"])
    >>> round(result.difference, 4), round(result.statistic, 1)
    (0.024, 3.9)
    >>> caltest.paired_test(y_true, y_prob["random_forest"], y_prob["random_forest"]).pvalue
    1.0
    """
    outcome, probs = validate_models(y_true, {"prob_a": prob_a, "prob_b": prob_b}, options["classes"])
    sample_weight, groups = options.pop("sample_weight"), options.pop("groups")
    given = {name: options.pop(name) for name in ("time", "lead")}  # type: ignore[misc]
    timing = time_of_pairs(given["time"], given["lead"], options["variance"], len(outcome))
    if folds is not None:
        parts = validate_folds(folds, len(outcome))
        arguments = labels_of(outcome, options["classes"]), *probs
        each = {"sample_weight": sample_weight, "groups": groups, "time": timing}
        tests = each_fold(paired_test, parts, arguments, each, **options)
        return combine_differences(parts.names, tests, options["alpha"])
    design = validate_design(sample_weight, groups, len(outcome), timing)
    refuse_crossed(design)
    samples = [induce(prob, outcome, lens=options["lens"], **design) for prob in probs]
    found = _compare(probs, samples, paired=True, **options)
    noted = (noting_correlation(found, sample, given) for sample in samples)
    return next((each for each in noted if each is not found), found)  # one model is enough for a caution


@reads_arguments
def unpaired_test(
    y_true_a: ArrayLike,
    prob_a: ArrayLike,
    y_true_b: ArrayLike,
    prob_b: ArrayLike,
    *,
    groups_a: ArrayLike | None = None,
    groups_b: ArrayLike | None = None,
    **options: Unpack[PairOptions],
) -> DifferenceResult:
    r"""Test whether two models are equally miscalibrated, on independent data sets.

    The test is that of `paired_test` without common terms: with
    :math:`L = \frac{4}{n^2} [\sum_i (g_i - \bar g)^2 - Q]` of each model,

    .. math:: \mathrm{Var}(T_A - T_B) = \frac{2 Q_A}{n_A^2} + \frac{2 Q_B}{n_B^2} + \max(0, L_A + L_B).

    With groups, labels and signs are drawn for each data set separately, around its own recalibrated model.

    Data sets that share observations need the paired test, because their estimates are dependent.

    Parameters
    ----------
    y_true_a, prob_a, y_true_b, prob_b : array-like
        Labels and predicted probabilities of each model for its own data set, as in `paired_test`.
    groups_a, groups_b : array-like of shape (n_samples,), optional
        The group of each observation of a data set, as in `paired_test`; both or none.
    alpha : float
        Level of the decision; the interval has the level 1 - ``alpha``.
    n_resamples : int, optional
        Number of bootstrap samples, and of simulated data sets where there are groups; 999 by default.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the bootstrap and of the simulation; with None every call draws anew.

    Returns
    -------
    DifferenceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``lens``, ``partition``, ``n_resamples``, ``workers``, ``rng`` or ``progress`` has a wrong type.
    ValueError
        If predictions are outside [0, 1] or do not sum to 1, a label is unknown, or labels and predictions differ in
        length; if the models differ in their number of classes; if ``variance`` is unknown, ``alpha`` is not
        strictly between 0 and 1, or ``n_resamples`` < 1; if ``partition`` needs two outcomes and the lens returns more.

    See Also
    --------
    paired_test : The same test for models on the same observations.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> half = slice(None, 450), slice(450, None)
    >>> bayes, network = y_prob["naive_bayes"][half[0]], y_prob["neural_network"][half[1]]
    >>> round(caltest.unpaired_test(y_true[half[0]], bayes, y_true[half[1]], network).statistic, 1)
    3.1
    """
    refuse_if((groups_a is None) != (groups_b is None), "`groups_a` and `groups_b` must both be given or both be None.")
    problems = (y_true_a, prob_a, groups_a), (y_true_b, prob_b, groups_b)
    samples = [
        _named_sample(problem, name, classes=options["classes"], lens=options["lens"])
        for problem, name in zip(problems, "ab", strict=True)
    ]
    one, two = (sample.n_outcomes for sample in samples)
    refuse_if(one != two, f"both models must predict the same classes, got {one} and {two}.")
    return _compare((), samples, paired=False, **options)


def _named_sample(problem: tuple[ArrayLike, ArrayLike, ArrayLike | None], name: str, **options: Any) -> Sample:
    """Return the sample of a model on its own observations; errors name the model."""
    y_true, y_prob, groups = problem
    with naming(f"`y_true_{name}`, `prob_{name}`"):
        return make_sample(y_true, y_prob, groups=groups, **options)


def _compare(
    probs: Sequence[NDArray[Any]],
    samples: Sequence[Sample],
    *,
    paired: bool,
    lens: LensLike | None,
    classes: Sequence[Any] | None,
    rng: SeedLike,
    progress: bool | Progress | None,
    **options: Any,
) -> DifferenceResult:
    look, cells = Canonical() if lens is None else lens, options["partition"]
    with reporting(progress, "comparing two models") as report:
        tested = compare_pairs(
            probs,
            samples,
            paired=paired,
            lens=look,
            lens_name=lens_name(look, classes),
            confidence_level=1 - options["alpha"],
            rng=validate_rng(rng),
            notes=tuple(dict.fromkeys(note for sample in samples for note in few_cells_notes(sample, cells))),
            progress=report,
            **options,
        )
    return tested.single[0, 1]
