"""Comparison of the calibration of several models: a test of each, and of the difference of each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from inspect import unwrap
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._comparison_entries import ComparedModel, ComparedPair, variation
from caltest.comparison._difference import difference_result, groups_of
from caltest.comparison._folds import FoldComparison, combine_comparisons, tests_in
from caltest.comparison._grouped_terms import GroupedPairTerms
from caltest.comparison._label_margins import LabelOutcomes, label_outcomes
from caltest.comparison._model_comparison import ModelComparison, few_draws_note, smallest_adjusted
from caltest.comparison._paired import METHODS
from caltest.comparison._pivots import draw_pivots
from caltest.comparison._rejections import CORRECTIONS
from caltest.comparison._u_statistics import (
    Differences,
    critical_value,
    largest_deviations,
    resample,
    terms_of,
)
from caltest.estimation.errors._l2_interval import interval_of_sample
from caltest.estimation.scores._score_decomposition import accuracy_of, decomposition_of_sample, mean_of
from caltest.hypothesis_tests._by_fold import each_fold, labels_of
from caltest.hypothesis_tests._calibration import run_test
from caltest.hypothesis_tests._diagnostics import warn_before
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Confidence
from caltest.predictions._sample import Sample, induce
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import validate_models, validate_names
from caltest.predictions.inputs._parts import validate_folds
from caltest.predictions.inputs._validation import (
    SeedLike,
    validate_choice,
    validate_count,
    validate_design,
    validate_given_problem,
    validate_level,
    validate_rng,
)
from caltest.resampling import Consistency, correct_pvalues
from caltest.resampling.engine._run import exact_distribution, settle
from caltest.results import ConfidenceInterval
from caltest.results._decision import level_of, rejects
from caltest.results._progress import Progress, part_of, reporting
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic
from caltest.statistics._omnibus import default_parts


@reads_arguments
def compare_models(
    models: Mapping[str, Any] | Sequence[tuple[str, Any]],
    y_true: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    statistic: Statistic | None = None,
    partition: Partition | Any = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    correction: str = "holm",
    confidence_level: float = 0.95,
    method: str = "asymptotic",
    folds: Any = None,
    n_resamples: int = 999,
    workers: int = 1,
    rng: SeedLike = None,
    progress: bool | Progress = False,
) -> ModelComparison | FoldComparison:
    r"""Compare the calibration of several models, with a test and an interval for each pair.

    Plain estimates such as the ECE cannot be compared, because their noise floor differs between models (Vaicenavicius
    et al. 2019, section 4.3). So each model is tested for calibration and its estimate is reported with the noise floor
    on its predictions; the debiased squared l2 calibration error is estimated with an interval; and every pair of
    models is tested for a difference of this error (`paired_test`).

    A model is better calibrated than another if the adjusted p-value of their difference is at most
    :math:`\alpha` = 1 - ``confidence_level``. This p-value comes from the largest studentised difference of all pairs
    on bootstrap samples of the observations (max-T; Westfall & Young 1993). So the probability of any wrong decision
    that a model is better calibrated is at most :math:`\alpha`, as far as the asymptotics of `paired_test` hold. With
    groups or unequal weights, the largest difference is that of simulated labels and signs instead (see `paired_test`),
    drawn from the same random numbers for all pairs.

    Parameters
    ----------
    models : mapping of str to array-like, or sequence of pairs (str, array-like)
        Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``, for the observations of
        ``y_true``. Without ``y_true``, a pair ``(y_true, y_prob)`` for each model: its own data set, independent of the
        others. Pairs of models are then compared by `unpaired_test`.
    y_true : array-like of shape (n_samples,), optional
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    classes : sequence, optional
        The label of each column of the predictions.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.
    statistic : Statistic, optional
        Statistic of the test of calibration; by default ``Omnibus()`` with the cells of ``partition``. Its first
        component, `ECE` by default, is the plain estimate.
    partition : Partition or callable, optional
        Cells (bins), fitted to the predictions of each model; ``VarianceTree()`` by default.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation of ``y_true``: how much it counts.
    groups : array-like of shape (n_samples,), optional
        The group of each observation of ``y_true``, such as its patient, if observations of a group may depend on each
        other.
    correction : str
        How the p-values of calibration are adjusted for the number of models: "holm", "bonferroni", "holm-sidak",
        "sidak", "simes-hochberg", "hommel", "fdr_bh" or "fdr_by", by ``statsmodels.stats.multitest``. "holm",
        "bonferroni" and "fdr_by" hold under any dependence. The two "fdr" methods bound the expected share of false
        rejections, the others the probability of any.
    confidence_level : float
        Level of the intervals; decisions are made at 1 minus this level.
    method : {"asymptotic", "bootstrap"}
        How the null distribution of a single pair is found: see `paired_test`.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined (`FoldComparison`).
        It needs ``y_true``.
    n_resamples : int
        Number of draws of each test, and number of bootstrap samples.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.

    Returns
    -------
    ModelComparison or FoldComparison
        Prints as a report with tables of the models and of the pairs. With ``folds`` it is a `FoldComparison`.

    Raises
    ------
    TypeError
        If ``models`` is neither a mapping nor a list of pairs, a name is no string, ``statistic`` is no statistic, or
        ``lens``, ``partition``, ``n_resamples``, ``workers``, ``rng``, ``progress`` or ``folds`` has another wrong
        type.
    ValueError
        If there are fewer than two models, a name is empty or occurs twice, or models differ in observations or
        classes; if predictions are outside [0, 1] or do not sum to 1, or a label is unknown; if ``correction`` or
        ``method`` is unknown, ``confidence_level`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if
        ``statistic`` or ``partition`` needs two outcomes and the lens returns more; if ``folds`` is given without
        ``y_true``, has another length, lacks a value, or holds one fold only or a different one for every observation.

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
    >>> comparison = caltest.compare_models(y_prob, y_true, rng=0)
    >>> comparison.ranking
    ('neural_network', 'logistic_regression', 'random_forest', 'naive_bayes')
    >>> print(comparison.pairs[1].conclusion)
    logistic_regression is better calibrated than random_forest (adjusted p = 0.043).
    """
    validate_choice(correction, "correction", CORRECTIONS)
    validate_choice(method, "method", METHODS)
    level = validate_level(confidence_level, "confidence_level")
    n_resamples = validate_count(n_resamples, "n_resamples")
    cells = VarianceTree() if partition is None else partition
    chosen = validate_statistic(Omnibus(default_parts(cells)) if statistic is None else statistic)
    problems = _validated(models, y_true, classes)
    n_classes = next(iter(problems.values()))[0].shape[1]
    look = default_lens(chosen, n_classes) if lens is None else lens
    if y_true is None and any(given is not None for given in (folds, sample_weight, groups)):
        msg = "`folds`, `sample_weight` and `groups` need `y_true`, the labels that all models share, got y_true=None."
        raise ValueError(msg)
    if folds is not None:
        chosen_options: dict[str, Any] = {"classes": classes, "lens": lens, "statistic": statistic, "method": method}
        chosen_options |= {"partition": partition, "correction": correction, "confidence_level": level}
        chosen_options |= {"n_resamples": n_resamples, "workers": workers}
        each = {"sample_weight": sample_weight, "groups": groups}
        return _by_fold(problems, folds, each, rng=rng, progress=progress, **chosen_options)
    design = validate_design(sample_weight, groups, len(next(iter(problems.values()))[1]))
    samples = [induce(prob, outcome, lens=look, **design) for prob, outcome in problems.values()]
    smallest = smallest_adjusted(len(problems), n_resamples, correction)
    alpha = level_of(level)
    if not rejects(smallest, alpha) and any(_is_drawn(chosen, sample) for sample in samples):
        warn_before([few_draws_note(len(problems), n_resamples, smallest, alpha)])
    generator = validate_rng(rng)
    same_draws = [deepcopy(generator) for _ in samples]
    Consistency().draws(n_resamples, generator)  # what follows is drawn after those of the tests
    with reporting(progress, "comparing models") as report:
        tests = [
            run_test(
                chosen,
                sample,
                Consistency(),
                lens=look,
                classes=classes,
                alpha=alpha,
                n_resamples=n_resamples,
                method="auto",
                workers=workers,
                rng=draws,
                progress=part_of(report, number, len(samples) + 1),
            )
            for number, (sample, draws) in enumerate(zip(samples, same_draws, strict=True))
        ]
        adjusted = correct_pvalues([test.pvalue for test in tests], correction, CORRECTIONS)
        named = lens_name(look, classes)
        rows = []
        for (name, (prob, outcome)), sample, test, pvalue in zip(
            problems.items(), samples, tests, adjusted, strict=True
        ):
            scored, score_lens = _scored(prob, outcome, sample, look, design)
            brier, log = (
                decomposition_of_sample(scored, score, lens=score_lens, lens_name=lens_name(score_lens, classes))
                for score in ("brier", "log")
            )
            rows.append(
                ComparedModel(
                    name=name,
                    accuracy=mean_of(accuracy_of(prob, outcome), design["weight"]),
                    brier=brier,
                    log=log,
                    test=test,
                    pvalue_adjusted=float(pvalue),
                    miscalibration=interval_of_sample(
                        sample, cells, lens=look, lens_name=named, confidence_level=level
                    ),
                    variation=variation(prob, design["weight"]),
                )
            )
        pairs = _compare_pairs(
            rows,
            samples,
            cells,
            outcomes=label_outcomes(look, [prob for prob, _ in problems.values()], samples),
            method=method,
            n_resamples=n_resamples,
            rng=generator,
            workers=workers,
            progress=part_of(report, len(samples), len(samples) + 1),
            context={"confidence_level": level, "paired": y_true is not None, "lens": look, "lens_name": named},
        )
    return ModelComparison(
        models=tuple(rows),
        pairs=tuple(pairs),
        lens=look,
        lens_name=named,
        correction=correction,
        confidence_level=level,
        n_resamples=n_resamples,
        paired=y_true is not None,
    )


def _by_fold(
    problems: Mapping[str, Any],
    folds: Any,
    each: Mapping[str, Any],
    *,
    rng: SeedLike,
    progress: bool | Progress,
    **options: Any,
) -> FoldComparison:
    """Return the comparison of the models of every fold."""
    outcome = next(iter(problems.values()))[1]
    parts = validate_folds(folds, len(outcome))

    def compare(labels: Any, *probs: Any, **chosen: Any) -> Any:
        return unwrap(compare_models)(dict(zip(problems, probs, strict=True)), labels, **chosen)

    arguments = labels_of(outcome, options["classes"]), *(prob for prob, _ in problems.values())
    options |= {"rng": rng, "progress": progress, "tests_in": tests_in}
    return combine_comparisons(parts, each_fold(compare, parts, arguments, each, **options))


def _is_drawn(statistic: Statistic, sample: Sample) -> bool:
    """Return whether the null distribution of a statistic has to be simulated."""
    return sample.group is not None or (
        exact_distribution(settle(statistic, sample), sample, Consistency(), "auto") is None
    )


def _compare_pairs(
    rows: Sequence[ComparedModel],
    samples: Sequence[Sample],
    partition: Any,
    *,
    outcomes: Sequence[LabelOutcomes] | None,
    method: str,
    n_resamples: int,
    rng: np.random.Generator,
    workers: int,
    progress: Progress | None,
    context: dict[str, Any],
) -> list[ComparedPair]:
    level, paired = context["confidence_level"], context["paired"]
    terms = terms_of(samples, partition)
    differences = Differences.of(terms, paired=paired)
    every = list(combinations(range(len(rows)), 2))
    is_drawn = isinstance(terms[0], GroupedPairTerms)
    is_bootstrap = method == "bootstrap" or not is_drawn
    options: Any = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    drawn, pivots, largest = None, {}, []
    if is_bootstrap:
        part = part_of(progress, 0, 1 + is_drawn)
        drawn = resample(terms, differences, paired=paired, progress=part, **options)
        largest.append(largest_deviations(differences, drawn))
    if is_drawn:
        part = part_of(progress, int(is_bootstrap), 1 + is_bootstrap)
        pivots = draw_pivots(terms, every, paired=paired, outcomes=outcomes, progress=part, **options)
        largest.extend(np.abs([found.kinds for found in pivots.values()]).max(axis=0))
    pairs = []
    for a, b in every:
        single = difference_result(
            differences,
            (a, b),
            None if drawn is None or method != "bootstrap" else drawn[a, b],
            pivots=pivots.get((a, b)),
            n_samples=(samples[a].n_samples, samples[b].n_samples),
            **groups_of([terms[a], terms[b]]),
            **context,
        )
        joint = [critical_value(kind, abs(single.statistic), level) for kind in largest]
        pvalue, reach = (max(values) for values in zip(*joint, strict=True))
        # Never less than that of the pair alone, which may be infinite.
        above = single.confidence_interval.high - single.difference
        below = single.difference - single.confidence_interval.low if is_drawn else above
        below, above = (max(far, reach * single.standard_error) for far in (below, above))
        pairs.append(
            ComparedPair(
                a=rows[a].name,
                b=rows[b].name,
                test=single,
                pvalue_adjusted=max(pvalue, single.pvalue),
                simultaneous_interval=ConfidenceInterval(single.difference - below, single.difference + above),
                calibrated=not (rows[a].rejected or rows[b].rejected),
            )
        )
    return pairs


def _scored(
    prob: NDArray[Any], outcome: NDArray[np.int64], sample: Sample, lens: LensLike, design: dict[str, Any]
) -> tuple[Sample, LensLike]:
    """Return the sample of the scores: the same, or that of the confidence if it has more than two outcomes."""
    if sample.n_outcomes == 2:
        return sample, lens
    return induce(prob, outcome, lens=Confidence(), **design), Confidence()


def _validated(models: Any, y_true: ArrayLike | None, classes: Sequence[Any] | None) -> dict[str, Any]:
    """Return predictions and outcomes of every model, by name."""
    named = _named(models)
    if y_true is not None:
        outcome, probs = validate_models(y_true, named, classes)
        return {name: (prob, outcome) for name, prob in zip(named, probs, strict=True)}
    problems = {}
    for name, value in named.items():
        if not isinstance(value, tuple) or len(value) != 2:
            got = type(value).__name__
            msg = f"without `y_true` every model must be a pair (y_true, y_prob), got {got} for {name!r}."
            raise ValueError(msg)
        try:
            problems[name] = validate_given_problem(*value, classes)
        except ValueError as error:
            msg = f"model {name!r}: {error}"
            raise ValueError(msg) from None
    n_classes = {name: prob.shape[1] for name, (prob, _) in problems.items()}
    if len(set(n_classes.values())) > 1:
        msg = f"all models must predict the same classes, got {n_classes} classes."
        raise ValueError(msg)
    return problems


def _named(models: Any) -> dict[str, Any]:
    """Return the models by name."""
    pairs = list(models.items()) if isinstance(models, Mapping) else models
    if not isinstance(pairs, list | tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        msg = f"`models` must map names to predictions, or list pairs (name, predictions), got {type(models).__name__}."
        raise TypeError(msg)
    names = [name for name, _ in pairs]
    validate_names(names, "models")
    if len(names) < 2:
        msg = f"`models` must hold at least two models, got {len(names)}."
        raise ValueError(msg)
    return dict(pairs)
