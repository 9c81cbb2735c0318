"""One model judged on one set of observations: tests of calibration, its l2 error with an interval, and its scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.errors._l2_interval import L2Interval, interval_of_sample
from caltest.estimation.scores._score_decomposition import (
    ScoreDecomposition,
    accuracy_of,
    brier_of,
    decomposition_of_sample,
    log_of,
    mean_of,
)
from caltest.hypothesis_tests._by_fold import combine_tests
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._arrays import Floats, Integers, blocks
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Confidence
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._parts import Folds
from caltest.resampling import Consistency
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import ComponentResult, ConfidenceInterval, Result, TestResult
from caltest.results._decision import level_of, rejects
from caltest.results._description import Description, counted
from caltest.results._finding import Number
from caltest.results._models_verdict import typical_error
from caltest.results._plain import to_plain
from caltest.results._progress import Progress, part_of
from caltest.statistics import Statistic

SCORE_PARTS = ("mean_score", "miscalibration", "discrimination")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparedModel(Result):
    """One model of a `ModelComparison`.

    With folds, each was judged separately: ``folds`` holds what it shows, p-values are combined, and other numbers are
    means of the folds by their number of observations.

    Attributes
    ----------
    name : str
        Its name.
    tests : tuple of TestResult
        A test of calibration by each statistic; `compare_models` has one, ``test``.
    pvalue_adjusted : float
        P-value of calibration, adjusted for the number of models.
    miscalibration : L2Interval
        Debiased squared l2 calibration error and its root, with intervals. With folds the ends are the means of those
        of the folds, and the interval contains the mean error of the models with the given level at least.
    accuracy : float
        Share of the observations whose most probable class is the right one; of m tied classes each counts 1 / m.
    brier, log : ScoreDecomposition
        Mean scores with their parts, behind the lens or, if that has more than two outcomes, of the confidence.
    brier_score, log_score : float
        Mean scores of the whole prediction.
    n_impossible : int
        Number of labels that had been given probability 0.
    variation : float
        Variance of the predictions, summed over classes, as a share of the maximal variance with the same mean
        prediction. For a calibrated model it is the discrimination part of the Brier score of the whole prediction as
        a share of its uncertainty.
    folds : tuple of ComparedModel
        What each fold shows; empty without folds.

    See Also
    --------
    caltest.compare_models : The comparison that returns models.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> comparison = caltest.compare_models(y_true, models, n_resamples=99, rng=0)
    >>> model = comparison.models[1]
    >>> model.name, model.test.pvalue, round(model.brier_score, 3)
    ('flat', 0.01, 0.558)
    """

    name: str
    tests: tuple[TestResult, ...]
    pvalue_adjusted: float = math.nan
    miscalibration: L2Interval
    accuracy: float
    brier: ScoreDecomposition
    log: ScoreDecomposition
    brier_score: float
    log_score: float
    n_impossible: int
    variation: float
    folds: tuple[ComparedModel, ...] = ()

    @property
    def test(self) -> TestResult:
        """The test of calibration, by the first statistic."""
        return self.tests[0]

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return self.miscalibration.n_samples

    @property
    def pvalue(self) -> float:
        """P-value of calibration, not adjusted for other models: number of tests times the smallest, at most 1."""
        pvalues = [test.pvalue for judged in self.folds or (self,) for test in judged.tests]
        return CombinedPValues(len(pvalues)).pvalue(pvalues)

    @property
    def smallest_possible_pvalue(self) -> float:
        """The p-value of the most extreme data; with few groups in each fold it may be above every level."""
        smallest = [test.smallest_possible_pvalue for judged in self.folds or (self,) for test in judged.tests]
        return CombinedPValues(len(smallest)).pvalue(smallest)

    @property
    def rejected(self) -> bool:
        """Whether calibration is rejected, after the adjustment for the number of models."""
        return bool(rejects(self.pvalue_adjusted, self.test.alpha))

    @property
    def typical_error(self) -> Number:
        """The root of the debiased squared l2 error with its interval, in percentage points."""
        return typical_error(self.name, self.miscalibration.root, self.miscalibration.root_interval)

    @property
    def errors(self) -> list[ComponentResult]:
        """Every error with its null distribution; with folds see those of each."""
        return [part for test in self.tests for part in test.components]

    @property
    def plain(self) -> ComponentResult:
        """The plain estimate: the first component of the test, with its null distribution; with folds see each."""
        return self.test.components[0]

    @property
    def numbers(self) -> dict[str, Any]:
        """Scores with their parts, plain estimate, noise floor, l2 error with its interval, and p-values, by name.

        With folds, whose predictions are those of different models, accuracy and p-values.
        """
        if self.folds:
            names = ("n_samples", "accuracy", "pvalue", "pvalue_adjusted")
            return {"model": self.name, **{name: getattr(self, name) for name in names}}
        size = self.miscalibration
        return {
            "model": self.name,
            "n_samples": self.n_samples,
            "accuracy": self.accuracy,
            **{f"brier_{part}": getattr(self.brier, part) for part in SCORE_PARTS},
            **{f"log_{part}": getattr(self.log, part) for part in SCORE_PARTS},
            "estimate": self.plain.statistic,
            "noise_floor": self.plain.noise_floor,
            "squared_l2": size.estimate,
            "squared_l2_low": size.confidence_interval.low,
            "squared_l2_high": size.confidence_interval.high,
            "l2": size.root,
            "l2_low": size.root_interval.low,
            "l2_high": size.root_interval.high,
            "pvalue": self.test.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            "direction": self.test.direction,
            "variation": self.variation,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the model, and its test, as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`, and the test of calibration as ``test``.
        """
        return to_plain({**self.numbers, "test": self.test})

    def _describe(self) -> Description:
        title = f"{self.name} ({self.test.lens_name}, {counted(self.n_samples)})"
        return replace(self.test._describe(), title=title)

    @classmethod
    def of_folds(cls, folds: Folds, judged: Sequence[ComparedModel], **more: Any) -> Self:
        """Return a model as all its folds show it, whose observations are not pooled."""
        first, sizes = judged[0], [one.n_samples for one in judged]
        return cls(
            name=first.name,
            tests=tuple(
                combine_tests(folds, [one.tests[place] for one in judged]) for place in range(len(first.tests))
            ),
            miscalibration=_mean_interval_of(sizes, [one.miscalibration for one in judged]),
            **means_of_folds(sizes, judged, "accuracy", "brier_score", "log_score", "variation"),
            brier=_mean_decomposition(sizes, [one.brier for one in judged]),
            log=_mean_decomposition(sizes, [one.log for one in judged]),
            n_impossible=sum(one.n_impossible for one in judged),
            folds=tuple(judged),
            **more,
        )


def mean_of_folds(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the mean of a number of the folds by their number of observations."""
    return float(np.average(values, weights=sizes))


def means_of_folds(sizes: Sequence[int], folds: Sequence[Any], *names: str) -> dict[str, Any]:
    """Return the means of several numbers of the folds, by name."""
    return {name: mean_of_folds(sizes, [getattr(fold, name) for fold in folds]) for name in names}


def mean_interval(sizes: Sequence[int], ends: Sequence[ConfidenceInterval]) -> ConfidenceInterval:
    """Return the mean of intervals: it contains the mean of the targets wherever each contains its own."""
    return ConfidenceInterval(*(mean_of_folds(sizes, one) for one in zip(*ends, strict=True)))


def level_of_folds(levels: Sequence[float]) -> float:
    """Return the probability with which intervals of these levels contain their targets all together, at least."""
    return max(0.0, 1 - round(sum(1 - level for level in levels), 12))


def _mean_interval_of(sizes: Sequence[int], found: Sequence[L2Interval]) -> L2Interval:
    return replace(
        found[0],
        **means_of_folds(sizes, found, "estimate", "sparse_share"),
        confidence_interval=mean_interval(sizes, [one.confidence_interval for one in found]),
        confidence_level=level_of_folds([one.confidence_level for one in found]),
        null_std=math.hypot(*(size * one.null_std for size, one in zip(sizes, found, strict=True))) / sum(sizes),
        target=f"{found[0].target}, mean of the folds",
        origin=f"means of the ends in {len(found)} folds",
        n_samples=sum(sizes),
        n_cells=sum(one.n_cells for one in found),
        n_groups=None if found[0].n_groups is None else sum(one.n_groups or 0 for one in found),
        notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
    )


def _mean_decomposition(sizes: Sequence[int], found: Sequence[ScoreDecomposition]) -> ScoreDecomposition:
    means = means_of_folds(sizes, found, *SCORE_PARTS, "uncertainty")
    return replace(found[0], **means, n_samples=sum(sizes))


@dataclass(frozen=True, eq=False)
class Observed:
    """The predictions of a model for some observations; each lens is looked through once.

    Attributes
    ----------
    prob : array of shape (n_samples, n_classes)
        Predictions.
    outcome : array of shape (n_samples,)
        Class indices.
    design : mapping
        Weight and group of each observation, or None.
    """

    prob: NDArray[Any]
    outcome: Integers
    design: Mapping[str, Any]
    _samples: list[tuple[LensLike, Sample]] = field(default_factory=list)

    def behind(self, lens: LensLike) -> Sample:
        """Return the sample behind a lens."""
        for known, sample in self._samples:
            if known == lens:
                return sample
        self._samples.append((lens, induce(self.prob, self.outcome, lens=lens, **self.design)))
        return self._samples[-1][1]


@dataclass(frozen=True)
class Judge:
    """How models are judged, the same for all of them.

    Attributes
    ----------
    questions : sequence of pairs (Statistic, lens)
        The tests of calibration, each with its lens.
    lens : lens
        What l2 errors and differences look at.
    score_lens : lens
        What decomposed scores look at; the confidence if it has more than two outcomes.
    confidence_level : float
        Level of intervals.
    n_resamples : int
        Number of draws.
    options : mapping
        What the caller chose by name: ``partition``, the cells (bins) of l2 errors and differences, fitted to the
        predictions of each model; ``classes``, the level ``alpha`` of the tests, and the number of ``workers``.
    """

    questions: Sequence[tuple[Statistic, LensLike]]
    lens: LensLike
    score_lens: LensLike
    confidence_level: float
    n_resamples: int
    options: Mapping[str, Any]

    @property
    def lens_name(self) -> str:
        """The lens in words."""
        return lens_name(self.lens, self.options["classes"])

    @property
    def of_differences(self) -> dict[str, Any]:
        """How differences of pairs are tested, at the level of the intervals."""
        return {
            "partition": self.options["partition"],
            "lens": self.lens,
            "lens_name": self.lens_name,
            "confidence_level": self.confidence_level,
            "alpha": level_of(self.confidence_level),
            "n_resamples": self.n_resamples,
            "workers": self.options["workers"],
        }

    def judge(
        self, name: str, observed: Observed, rng: np.random.Generator, progress: Progress | None = None
    ) -> ComparedModel:
        """Return what observations show about a model; all tests and all models have the same draws."""
        sample, weight = observed.behind(self.lens), observed.design["weight"]
        shared = {name: self.options[name] for name in ("classes", "alpha", "workers")}
        tests = tuple(
            run_test(
                statistic,
                observed.behind(look),
                Consistency(),
                lens=look,
                n_resamples=self.n_resamples,
                method="auto",
                **shared,
                rng=deepcopy(rng),
                progress=part_of(progress, number, len(self.questions)),
            )
            for number, (statistic, look) in enumerate(self.questions)
        )
        look = self.score_lens if observed.behind(self.score_lens).n_outcomes == 2 else Confidence()
        look_name = lens_name(look, self.options["classes"])
        brier, log = (
            decomposition_of_sample(observed.behind(look), score, lens=look, lens_name=look_name)
            for score in ("brier", "log")
        )
        whole = observed.prob, observed.outcome
        lost = log_of(*whole)
        return ComparedModel(
            name=name,
            tests=tests,
            miscalibration=interval_of_sample(
                sample,
                self.options["partition"],
                lens=self.lens,
                lens_name=self.lens_name,
                confidence_level=self.confidence_level,
            ),
            accuracy=mean_of(accuracy_of(*whole), weight),
            brier=brier,
            log=log,
            brier_score=mean_of(brier_of(*whole), weight),
            log_score=mean_of(lost, weight),
            n_impossible=int(np.isinf(lost[sample.row]).sum()),
            variation=variation(observed.prob, weight),
        )


def variation(prob: NDArray[Any], weight: Floats | None) -> float:
    """Return the variance of the predictions as a share of the maximal variance with the same mean."""
    share = np.full(len(prob), 1 / len(prob)) if weight is None else weight / weight.sum()
    parts = [(share[rows], prob[rows]) for rows in blocks(len(prob), prob.shape[1], 2**18)]
    mean = np.sum([some @ part.astype(np.float64) for some, part in parts], axis=0)
    possible = float(mean @ (1 - mean))
    total = sum(float(some @ np.square(part - mean).sum(axis=1)) for some, part in parts)
    return total / possible if possible > 0 else 0.0
