"""Comparison of the calibration of several models: a test of each, and of the difference of each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Unpack

from numpy.typing import ArrayLike

from caltest.comparison._judged import Judge, Observed
from caltest.comparison._model_comparison import (
    CORRECTIONS,
    ModelComparison,
    adjusted_models,
    combine_comparisons,
    few_draws_of_models,
)
from caltest.comparison._options import DesignedPairOptions
from caltest.comparison._pair import adjust_pairs, compare_pairs, time_of_pairs
from caltest.hypothesis_tests._by_fold import each_fold, labels_of
from caltest.hypothesis_tests._diagnostics import warn_before
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._sample import Sample
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import named_models, naming, validate_models
from caltest.predictions.inputs._parts import validate_folds
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._times import OfferedTime
from caltest.predictions.inputs._validation import (
    refuse_crossed,
    refuse_if,
    validate_choice,
    validate_design,
    validate_given_problem,
    validate_rng,
)
from caltest.resampling import Consistency
from caltest.resampling.engine._run import computed_distribution, settle
from caltest.results import TestResult
from caltest.results._progress import part_of, reporting
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic


@reads_arguments
def compare_models(
    y_true: ArrayLike | None,
    models: Mapping[str, Any] | Sequence[tuple[str, Any]],
    *,
    statistic: Statistic | str | None = None,
    correction: str = "holm",
    folds: Any = None,
    **options: Unpack[DesignedPairOptions],
) -> ModelComparison:
    r"""Compare the calibration of several models, with a test and an interval for each pair.

    Plain estimates such as the ECE cannot be compared, because their noise floor differs between models (Vaicenavicius
    et al. 2019, section 4.3). So each model is tested for calibration and its estimate is reported with the noise floor
    on its predictions; the debiased squared l2 calibration error is estimated with an interval; and every pair of
    models is tested for a difference of this error (`paired_test`).

    A model is better calibrated than another if the adjusted p-value of their difference is at most
    :math:`\alpha`. This p-value comes from the largest studentised difference of all pairs
    on bootstrap samples of the observations (max-T; Westfall & Young 1993). So the probability of any wrong decision
    that a model is better calibrated is at most :math:`\alpha`, as far as the asymptotics of `paired_test` hold. With
    groups or unequal weights, the largest difference is that of simulated labels and signs instead (see `paired_test`),
    drawn from the same random numbers for all pairs. Of forecasts whose labels are known after a lead (``time``), it is
    that of cosines of the time that are weighted by random numbers: normal ones over one that makes each of them
    Student's.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
        None if each model has its own labels.
    models : mapping of str to array-like, or sequence of pairs (str, array-like)
        Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``, for the observations of
        ``y_true``. If ``y_true`` is None, a pair ``(y_true, y_prob)`` for each model: its own data set, independent of
        the others. Pairs of models are then compared by `unpaired_test`.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.
    statistic : Statistic, optional
        Statistic of the test of calibration; by default ``Omnibus()`` with the cells of ``partition``. Its first
        component, `ECE` by default, is the plain estimate.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation of ``y_true``: how much it counts.
    groups : array-like of shape (n_samples,), optional
        The group of each observation of ``y_true``, such as its patient, if observations of a group may depend on each
        other.
    correction : str
        How the p-values of calibration are adjusted for the number of models: "holm", "bonferroni", "holm-sidak",
        "sidak", "simes-hochberg", "hommel", "fdr_bh" or "fdr_by". "holm", "bonferroni" and "fdr_by" hold under any
        dependence. The two "fdr" methods bound the expected share of false rejections, the others the probability of
        any.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined. It needs ``y_true``.

    Returns
    -------
    ModelComparison
        Prints as a report with tables of the models and of the pairs. With ``folds``, its ``folds`` are the comparisons
        of the folds.

    Raises
    ------
    TypeError
        If ``models`` is neither a mapping nor a list of pairs, a name is no string, ``statistic`` is no statistic, or
        ``lens``, ``partition``, ``n_resamples``, ``workers``, ``rng``, ``progress`` or ``folds`` has another wrong
        type.
    ValueError
        If there are fewer than two models, a name is empty or occurs twice, or models differ in observations or
        classes; if predictions are outside [0, 1] or do not sum to 1, or a label is unknown; if ``correction`` or
        ``variance`` is unknown, ``alpha`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if
        ``statistic`` or ``partition`` needs two outcomes and the lens returns more; if ``folds`` is given without
        ``y_true``, has another length, lacks a value, or holds one fold only or a different one for every observation;
        if ``lead`` is given without ``time``, is not positive or longer than the data; if ``time`` is given with
        ``groups`` or with ``variance="bootstrap"``.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if there are too few draws for any adjusted p-value of calibration to reach the level.

    See Also
    --------
    paired_test : The comparison of two models on the same observations.
    unpaired_test : The comparison of two models on independent data sets.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.
    P. H. Westfall and S. S. Young (1993), Resampling-based multiple testing, Wiley.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> comparison = caltest.compare_models(y_true, y_prob, rng=0)
    >>> comparison.ranking
    ('neural_network', 'logistic_regression', 'random_forest', 'naive_bayes')
    >>> print(comparison.pairs[1].conclusion)  # doctest: +NORMALIZE_WHITESPACE
    logistic_regression is better calibrated than random_forest: its typical error is 4.4 points, and that of
    random_forest is 6.6 points (adjusted p = 0.043).
    """
    validate_choice(correction, "correction", CORRECTIONS)
    cells, classes, n_resamples = options["partition"], options["classes"], options["n_resamples"]
    usual = Omnibus(partition=None if cells == VarianceTree() else cells)
    chosen = validate_statistic(usual if statistic is None else statistic)
    problems = _validated(models, y_true, classes)
    names = ("sample_weight", "groups", "time", "lead")
    design = {name: options.pop(name) for name in names}  # type: ignore[misc]
    if y_true is None and isinstance(design["time"], OfferedTime):
        design["time"] = None  # of one of several data sets
    given = {name: design[name] for name in ("time", "lead")}
    if y_true is None and any(given is not None for given in (folds, *design.values())):
        refuse(
            "`folds`, `sample_weight`, `groups` and `time` need `y_true`, the labels that all models share, got "
            "y_true=None."
        )
    probs, outcomes = zip(*problems.values(), strict=True)
    timing = time_of_pairs(design["time"], design.pop("lead"), options["variance"], len(outcomes[0]))
    design["time"] = timing
    if folds is not None:
        parts = validate_folds(folds, len(outcomes[0]))
        shared: Any = {"statistic": statistic, "correction": correction, "tests_in": _tests_in, **options}
        arguments = labels_of(outcomes[0], classes), dict(zip(problems, probs, strict=True))
        return combine_comparisons(parts, each_fold(compare_models, parts, arguments, design, **shared))
    look = default_lens(chosen, probs[0].shape[1]) if options["lens"] is None else options["lens"]
    judge = Judge(
        questions=[(chosen, look)],
        lens=look,
        score_lens=look,
        confidence_level=1 - options["alpha"],
        n_resamples=n_resamples,
        options=options,
    )
    beside = validate_design(design["sample_weight"], design["groups"], len(outcomes[0]), timing)
    refuse_crossed(beside)
    observed = [Observed(prob, outcome, beside) for prob, outcome in problems.values()]
    samples = [one.behind(look) for one in observed]
    few = few_draws_of_models(len(problems), n_resamples, correction, options["alpha"])
    if few and any(_is_drawn(chosen, sample) for sample in samples):
        warn_before(few)
    generator = validate_rng(options["rng"])
    same_draws = deepcopy(generator)
    Consistency().draws(n_resamples, generator)  # what follows is drawn after those of the tests
    with reporting(options["progress"], "comparing models") as report:
        judged = [
            judge.judge(name, one, same_draws, part_of(report, number, len(observed) + 1))
            for number, (name, one) in enumerate(zip(problems, observed, strict=True))
        ]
        for place, (model, sample) in enumerate(zip(judged, samples, strict=True)):
            if (noted := noting_correlation(model.test, sample, given)) is not model.test:
                judged[place] = replace(model, tests=(noted,))
                break  # one model is enough for a caution
        rows = adjusted_models(judged, correction)
        tested = compare_pairs(
            probs,
            samples,
            **judge.of_differences,
            paired=y_true is not None,
            variance=options["variance"],
            joint=True,
            rng=generator,
            progress=part_of(report, len(samples), len(samples) + 1),
        )
    return ModelComparison(
        models=tuple(rows),
        pairs=tuple(adjust_pairs(rows, tested, judge.confidence_level)),
        lens=look,
        lens_name=judge.lens_name,
        correction=correction,
        alpha=options["alpha"],
        n_resamples=n_resamples,
        paired=y_true is not None,
    )


def _tests_in(comparison: ModelComparison) -> list[TestResult]:
    """Return the test of calibration of each model of a comparison."""
    return [model.test for model in comparison]


def _is_drawn(statistic: Statistic, sample: Sample) -> bool:
    """Return whether the null distribution of a statistic has to be simulated."""
    depends = sample.group is not None or sample.timing is not None
    return depends or computed_distribution(settle(statistic, sample), sample, Consistency(), "auto") is None


def _validated(models: Any, y_true: ArrayLike | None, classes: Sequence[Any] | None) -> dict[str, Any]:
    """Return predictions and outcomes of every model, by name."""
    named = named_models(models, fewest=2)
    if y_true is not None:
        outcome, probs = validate_models(y_true, named, classes)
        return {name: (prob, outcome) for name, prob in zip(named, probs, strict=True)}
    problems = {}
    for name, value in named.items():
        if not isinstance(value, tuple) or len(value) != 2:
            got = type(value).__name__
            refuse(f"without `y_true` every model must be a pair (y_true, y_prob), got {got} for {name!r}.")
        with naming(f"model {name!r}"):
            problems[name] = validate_given_problem(*value, classes)
    n_classes = {name: prob.shape[1] for name, (prob, _) in problems.items()}
    refuse_if(len(set(n_classes.values())) > 1, f"all models must predict the same classes, got {n_classes} classes.")
    return problems
