"""Several models side by side: what each one shows, what it would show if it were perfect, and which pairs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._difference import difference_result
from caltest.comparison._model_comparison import ComparedModel, ComparedPair, ModelComparison
from caltest.comparison._paired import METHODS, validate_models
from caltest.comparison._u_statistics import Differences, PairTerms, critical_value, largest_deviations, resample
from caltest.estimation._l2_interval import interval_of
from caltest.estimation._score_decomposition import ScoreDecomposition, score_decomposition
from caltest.estimation._scores import accuracy
from caltest.hypothesis_tests._calibration import run_test, validate_statistic
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Confidence, Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Sample, induce
from caltest.predictions._validation import (
    SeedLike,
    validate_choice,
    validate_count,
    validate_level,
    validate_problem,
    validate_rng,
)
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling._distributions import alpha_of
from caltest.resampling._multiple_testing import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, correct_pvalues
from caltest.resampling._schemes import Consistency
from caltest.statistics import ECE, ClasswiseKS, Omnibus, Statistic, TemperatureScore
from caltest.statistics._squared_l2_distribution import SquaredL2Law

CORRECTIONS = (*UNDER_ANY_DEPENDENCE, *UNDER_INDEPENDENCE, "fdr_bh", "fdr_by")


def compare_models(
    models: Mapping[str, Any] | Sequence[tuple[str, Any]],
    y_true: ArrayLike | None = None,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    statistic: Statistic | None = None,
    partition: Partition | Any = None,
    correction: str = "holm",
    confidence_level: float = 0.95,
    method: str = "hoeffding",
    n_resamples: int = 999,
    workers: int = 1,
    rng: SeedLike = None,
) -> ModelComparison:
    r"""Compare the calibration of several models by evidence instead of by bare estimates.

    "Model A has an ECE of 0.021, model B of 0.027, so A is better calibrated" does not follow: what chance alone makes
    of the estimate differs between models (Vaicenavicius et al. 2019, section 4.3). Each model is therefore set beside
    the noise floor of its own predictions and tested for perfect calibration, the debiased squared l2 miscalibration
    is estimated with an interval, and every pair of models is tested for a difference of it (`paired_test`).

    The verdict on a pair is, in this order, with :math:`\alpha` = 1 - ``confidence_level``:

    * "better calibrated", and which one, if the simultaneous p-value of the difference is at most :math:`\alpha`;
    * "both indistinguishable from perfect" if neither corrected p-value of the two models is at most :math:`\alpha`;
    * "no evidence of a difference" otherwise.

    The simultaneous p-value is that of the largest studentised difference of all pairs on bootstrap samples of the
    rows (max-T; Westfall & Young 1993): any false "better calibrated" has probability :math:`\alpha` at most, as far as
    the asymptotics of `paired_test` hold.

    Parameters
    ----------
    models : mapping of str to array-like, or sequence of pairs (str, array-like)
        Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``, for the rows of
        ``y_true``; or, without ``y_true``, pairs ``(y_true, y_prob)`` of each model: its own data set, independent of
        the others, in which case pairs are compared by `unpaired_test`.
    y_true : array-like of shape (n_samples,), optional
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    classes : sequence, optional
        The label of each column of the predictions.
    lens : lens, optional
        What to look at; the whole prediction by default.
    statistic : Statistic, optional
        Statistic of the test of perfect calibration; by default ``Omnibus()`` on the ``partition``. Its first
        component, `ECE` by default, is the plain estimate.
    partition : Partition or callable, optional
        Cells, fitted to the predictions of each model; ``VarianceTree()`` by default.
    correction : str
        How p-values of perfect calibration are corrected over the models: a method of
        ``statsmodels.stats.multitest``, "holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel",
        "fdr_bh" or "fdr_by". Holm, Bonferroni and "fdr_by" need no independence; the two "fdr" methods bound the share
        of false rejections, not the probability of any.
    confidence_level : float
        Level of the intervals.
    method : {"hoeffding", "bootstrap"}
        Where p-value and interval of a single pair come from: see `paired_test`.
    n_resamples : int
        Number of draws of each test, and of bootstrap samples.
    workers : int
        Threads; -1 for all processors. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ModelComparison
        Prints as a table of models, a table of pairs, and what should be said about them.

    Raises
    ------
    ValueError
        If there are fewer than two models, names are no strings or occur twice, models differ in rows or classes, or
        another argument is not of the form above.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3.
    P. H. Westfall and S. S. Young (1993), Resampling-based multiple testing, Wiley.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> comparison = caltest.compare_models(y_prob, y_true, rng=0)
    >>> for pair in comparison.pairs[:2]:
    ...     print(pair.a, pair.b, pair.verdict, sep=", ")
    logistic_regression, naive_bayes, better calibrated: logistic_regression
    logistic_regression, random_forest, better calibrated: logistic_regression
    """
    validate_choice(correction, "correction", CORRECTIONS)
    validate_choice(method, "method", METHODS)
    level = validate_level(confidence_level, "confidence_level")
    n_resamples = validate_count(n_resamples, "n_resamples")
    cells = VarianceTree() if partition is None else partition
    chosen = validate_statistic(
        Omnibus((ECE(cells), TemperatureScore(), ClasswiseKS())) if statistic is None else statistic
    )
    generator = validate_rng(rng)
    problems = _validated(models, y_true, classes)
    samples = [induce(prob, outcome, lens=lens) for prob, outcome in problems.values()]
    seen = lens_text(lens, classes)
    scheme = Consistency()
    draws = scheme.draws(n_resamples, generator)
    tests = [
        run_test(chosen, sample, resampling=scheme, draws=draws, method="auto", workers=workers, lens=seen)
        for sample in samples
    ]
    corrected = correct_pvalues([test.pvalue for test in tests], correction, CORRECTIONS)
    two_sided: Any = {"confidence_level": level, "alternative": "two-sided"}
    rows = [
        ComparedModel(
            name,
            accuracy(outcome, prob),
            *_decompositions(prob, outcome, sample, lens),
            test,
            float(pvalue),
            interval_of(SquaredL2Law.of(sample, cells), sample, cells, lens=seen, **two_sided),
            _variation(prob),
        )
        for (name, (prob, outcome)), sample, test, pvalue in zip(
            problems.items(), samples, tests, corrected, strict=True
        )
    ]
    pairs = _compare_pairs(
        rows,
        samples,
        cells,
        paired=y_true is not None,
        method=method,
        n_resamples=n_resamples,
        rng=generator,
        workers=workers,
        level=level,
        lens=seen,
    )
    return ModelComparison(tuple(rows), tuple(pairs), seen, correction, level, n_resamples, y_true is not None)


def _compare_pairs(
    rows: Sequence[ComparedModel],
    samples: Sequence[Sample],
    partition: Any,
    *,
    paired: bool,
    method: str,
    n_resamples: int,
    rng: np.random.Generator,
    workers: int,
    level: float,
    lens: str,
) -> list[ComparedPair]:
    terms = [PairTerms.of(sample, partition) for sample in samples]
    differences = Differences.of(terms, same_rows=paired)
    models = list(zip(samples, terms, strict=True))
    drawn = resample(models, differences, same_rows=paired, n_resamples=n_resamples, rng=rng, workers=workers)
    largest = largest_deviations(differences, drawn)
    pairs = []
    for a, b in combinations(range(len(rows)), 2):
        single = difference_result(
            differences,
            (a, b),
            drawn[a, b] if method == "bootstrap" else None,
            confidence_level=level,
            paired=paired,
            lens=lens,
            n_samples=(samples[a].n_samples, samples[b].n_samples),
        )
        pvalue, reach = critical_value(largest, abs(single.statistic), level)
        # Never less than that of the pair alone, which may be infinite.
        half = max(single.high - single.difference, reach * single.standard_error)
        pairs.append(
            ComparedPair(
                rows[a].name,
                rows[b].name,
                single,
                max(pvalue, single.pvalue),
                single.difference - half,
                single.difference + half,
                calibrated=min(rows[a].pvalue_corrected, rows[b].pvalue_corrected) > alpha_of(level),
            )
        )
    return pairs


def _decompositions(
    prob: NDArray[np.float64], outcome: NDArray[np.int64], sample: Sample, lens: Lens | None
) -> tuple[ScoreDecomposition, ScoreDecomposition]:
    """Return the decompositions of Brier and log score, behind the lens if it has two outcomes."""
    look = lens if sample.n_outcomes == 2 else Confidence()
    brier, log = (score_decomposition(outcome, prob, score=score, lens=look) for score in ("brier", "log"))
    return brier, log


def _variation(prob: NDArray[np.float64]) -> float:
    """Return the variance of the predictions as a share of what it could be with the same mean."""
    mean = prob.mean(axis=0)
    possible = float(mean @ (1 - mean))
    return float(np.square(prob - mean).sum(axis=1).mean()) / possible if possible > 0 else 0.0


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
            problems[name] = validate_problem(*value, classes)
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
        raise ValueError(msg)
    names = [name for name, _ in pairs]
    if not all(isinstance(name, str) and name for name in names):
        wrong = next(name for name in names if not isinstance(name, str) or not name)
        msg = f"names of `models` must be strings that are not empty, got {wrong!r}."
        raise ValueError(msg)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        msg = f"names of `models` must differ, got {twice[0]!r} twice."
        raise ValueError(msg)
    if len(names) < 2:
        msg = f"`models` must hold at least two models, got {len(names)}."
        raise ValueError(msg)
    return dict(pairs)
