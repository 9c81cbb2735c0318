"""How held-out predictions are judged: tests, errors, scores, and differences between methods."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._difference import DifferenceResult, difference_result, groups_of
from caltest.comparison._grouped_terms import GroupedPairTerms
from caltest.comparison._label_margins import label_outcomes
from caltest.comparison._pivots import draw_pivots
from caltest.comparison._u_statistics import Differences, terms_of
from caltest.estimation.errors._l2_interval import interval_of_sample
from caltest.estimation.scores._score_decomposition import (
    accuracy_of,
    brier_of,
    decomposition_of_sample,
    log_of,
    mean_of,
)
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Confidence
from caltest.predictions._sample import Sample, induce
from caltest.recalibration.study._study_entries import JudgedFold
from caltest.resampling import Consistency
from caltest.results import Note
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic

Design = dict[str, Any]
Judged = tuple[NDArray[Any], Sample]
"""Predictions of a fold, and their sample of the l2 error."""


@dataclass
class Judge:
    """How the predictions of a fold are judged."""

    questions: list[tuple[Statistic, LensLike]]
    lens: LensLike
    partition: Any
    classes: Sequence[Any] | None
    alpha: float
    n_folds: int
    n_resamples: int
    workers: int
    notes: tuple[Note, ...] = ()

    @property
    def level(self) -> float:
        """Level of the intervals of a fold."""
        return 1 - self.alpha / self.n_folds

    def judge(
        self, name: str, prob: NDArray[Any], outcome: NDArray[np.int64], design: Design, stream: np.random.Generator
    ) -> tuple[JudgedFold, Judged]:
        """Return what held-out observations show, and the predictions with the sample of the l2 error."""
        sample = induce(prob, outcome, lens=self.lens, **design)
        tests = []
        for statistic, look in self.questions:
            tests.append(
                run_test(
                    statistic,
                    induce(prob, outcome, lens=look, **design),
                    Consistency(),
                    lens=look,
                    classes=self.classes,
                    alpha=self.alpha,
                    n_resamples=self.n_resamples,
                    method="auto",
                    workers=self.workers,
                    rng=deepcopy(stream),  # the same draws for all methods
                )
            )
        confidence = Confidence()
        scored = induce(prob, outcome, lens=confidence if prob.shape[1] > 2 else None, **design)
        brier, log = (
            decomposition_of_sample(scored, score, lens=confidence, lens_name=lens_name(confidence, self.classes))
            for score in ("brier", "log")
        )
        counted, weight = np.sort(scored.row), design["weight"]
        probs, seen, weight = prob[counted], outcome[counted], None if weight is None else weight[counted]
        lost = log_of(probs, seen)
        interval = interval_of_sample(
            sample,
            self.partition,
            lens=self.lens,
            lens_name=lens_name(self.lens, self.classes),
            confidence_level=self.level,
        )
        fold = JudgedFold(
            name=name,
            n_samples=len(seen),
            tests=tuple(tests),
            miscalibration=interval,
            accuracy=mean_of(accuracy_of(probs, seen), weight),
            brier=mean_of(brier_of(probs, seen), weight),
            log=mean_of(lost, weight),
            brier_parts=brier,
            log_parts=log,
            n_impossible=int(np.isinf(lost).sum()),
        )
        return fold, (prob, sample)

    def differences(
        self, judged: Sequence[Judged], stream: np.random.Generator
    ) -> dict[tuple[int, int], DifferenceResult]:
        """Return the test of each pair of models on the same observations of a fold."""
        probs, samples = zip(*judged, strict=True)
        terms = terms_of(samples, self.partition)
        differences, pairs = Differences.of(terms, paired=True), list(combinations(range(len(samples)), 2))
        grouped, pivots = groups_of(terms), {}
        if isinstance(terms[0], GroupedPairTerms):
            pivots = draw_pivots(
                terms,
                pairs,
                paired=True,
                outcomes=label_outcomes(self.lens, probs, samples),
                n_resamples=self.n_resamples,
                rng=stream,
                workers=self.workers,
            )
        self.notes = tuple(dict.fromkeys((*self.notes, *grouped.pop("notes", ()))))
        return {
            pair: difference_result(
                differences,
                pair,
                None,
                pivots=pivots.get(pair),
                confidence_level=self.level,
                paired=True,
                lens=self.lens,
                lens_name=lens_name(self.lens, self.classes),
                n_samples=(samples[0].n_samples, samples[0].n_samples),
                **grouped,
            )
            for pair in pairs
        }


def questions_of(
    statistics: Sequence[Statistic] | None, lens: LensLike | None, n_classes: int
) -> list[tuple[Statistic, LensLike]]:
    """Return the statistics, each with its lens."""
    given = [Omnibus()] if statistics is None else statistics
    if isinstance(given, Statistic) or not isinstance(given, Sequence):
        msg = f"`statistics` must be a sequence of statistics such as [ECE(), ClasswiseKS()], got {given!r}."
        raise TypeError(msg)
    if not given:
        msg = "`statistics` must hold at least one statistic, got none."
        raise ValueError(msg)
    chosen = [validate_statistic(statistic) for statistic in given]
    return [(one, default_lens(one, n_classes) if lens is None else lens) for one in chosen]
