"""A test of predictions whose labels are simulated with errors: which errors it finds, and how often.

Labels of times depend on each other as observed ones do: their dependence is that of the draws of the test,
`TimedDraws`, and the correlation of their shocks is the one that makes the inflation of the residuals that of the
observed labels, raised by one standard error. A test of new labels estimates it again; here its draws have the same
correlation as the labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._alike_labels import AlikeLabels, AlikeTest, SignTest
from caltest.hypothesis_tests._detectable_error_result import USUAL_POWER, DetectableError, SmallestError
from caltest.hypothesis_tests._power_curve import search_power
from caltest.hypothesis_tests._typical_errors import TypicalError, mean_change, shifted_class, typical_errors
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.predictions.inputs._validation import SeedLike
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.draws._schemes import Consistency, TimedLabels
from caltest.resampling.draws._timed_draws import SharedShockDraws, TimedDraws, TimedOutcome, inflation_of
from caltest.resampling.engine._evaluation import Evaluation, Question, components, draw_nulls, scale_components
from caltest.resampling.engine._pvalues import RankedDraws
from caltest.resampling.engine._run import settle
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import TestResult
from caltest.statistics import Omnibus, Statistic


@dataclass(frozen=True, eq=False)
class LabelsInTime:
    """The test of a sample with times on labels that depend on each other as those of the sample do.

    Attributes
    ----------
    sample : Sample
        The predictions, with times; of their labels only the dependence is used.
    """

    sample: Sample

    @cached_property
    def scheme(self) -> TimedLabels:
        """The null hypothesis."""
        found = Consistency().for_sample(self.sample)
        assert isinstance(found, TimedLabels)
        return found

    @property
    def inflation(self) -> float:
        """How much more the residuals vary together than independent ones."""
        return inflation_of(self.sample)

    @cached_property
    def _shares(self) -> tuple[float, float]:
        return self.sample.once(TimedOutcome.of).correlations(self.sample.outcome)

    def null(self, statistic: Statistic, number: int, seed: np.uint64) -> Floats:
        """Return the components of draws from the predictions, ``(n_components, number)``."""
        return self._null(statistic, TimedDraws(seed, 0, number, *self._shares))

    def shared(self, statistic: Statistic, number: int, seed: np.uint64) -> RankedDraws | None:
        """Return draws of labels that share more of their shocks, where the test needs them; None where it does not."""
        for shares in self.scheme.further:
            draws = SharedShockDraws.with_shares(shares, self.sample, number, 0)
            return RankedDraws.of(self._null(statistic, replace(draws, seed=seed)))
        return None

    def _null(self, statistic: Statistic, draws: Draws) -> Floats:
        (found,) = draw_nulls([Question(statistic, LensView(self.sample))], self.sample, draws)
        return found

    def values(
        self, statistic: Statistic, true_prob: Floats, seed: np.uint64, first: int, number: int
    ) -> tuple[Floats, Floats]:
        """Return the components of some data sets with true probabilities, studentised and as they are."""
        draws = TimedDraws(seed, first, number, *self._shares)
        moved = replace(self.sample, given_null=true_prob)
        parts = [self._components(statistic, draws, labels) for _, labels in draws.blocks(moved)]
        scaled, plain = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        return scaled, plain

    def _components(
        self, statistic: Statistic, draws: TimedDraws, labels: NDArray[np.unsignedinteger]
    ) -> tuple[Floats, Floats]:
        plain, scale = components(statistic, self.sample, labels), draws.scale(self.sample, labels)
        assert scale is not None
        return scale_components(statistic, plain, scale), plain


ENOUGH_DRAWS = 999
"""Draws of a test that are enough to take its critical value from them; otherwise new ones are made."""
CRITICAL_DRAWS = 1_999
"""Draws where those of the test are not taken."""
UNIT = 3.2
"""Standard errors of an error that the default test finds, about."""
LARGE = 2**18
"""Predicted probabilities from which fewer data sets are simulated."""

_FEWER = 3  # a third as many
_FEWER_WITH_GROUPS = 8, 20  # the more the larger the sample is
_SOME = 2**14
_SAME = 1e-9  # predictions that differ by less from their complement


@dataclass(frozen=True, eq=False)
class Detection:
    """A test of some predictions, of which new labels are drawn from other probabilities.

    Attributes
    ----------
    statistic : Statistic
        What is tested, settled for the sample.
    sample : Sample
        The predictions; their labels are not used.
    null : array of shape (n_components, n_resamples)
        Draws of its components from the predictions: those of the test, if it has been made.
    alpha : float
        Level of the test.
    seed : numpy.uint64
        Seed of the simulated labels.
    workers : int
        Threads; with groups a single one is used.
    n_samples : int or None
        Number of observations, if the sample is a part of them: the amount of an error that is found goes with its
        inverse root.
    alike : AlikeLabels or None
        Labels of groups, if observations have any.
    mirrored : bool
        Whether the sample is that of the complement of the event.
    in_time : LabelsInTime or None
        Labels that depend on each other in time, if they are known only after a lead.
    """

    statistic: Statistic
    sample: Sample
    null: Floats = field(repr=False)
    alpha: float = 0.05
    seed: np.uint64 = field(default_factory=np.uint64)
    workers: int = 1
    n_samples: int | None = None
    alike: AlikeLabels | None = None
    mirrored: bool = False
    in_time: LabelsInTime | None = None

    @classmethod
    def of_either(cls, statistic: Statistic, sample: Sample, **how: Any) -> Detection:
        """Return the test of an event or of its complement, whose draws and answers are the same for both."""
        if sample.n_outcomes != 2 or sample.group is not None or not isinstance(statistic, Omnibus):
            return cls.of(statistic, sample, **how)  # Omnibus looks at both alike
        prob, weight = sample.prob, sample.weight_or_ones
        away = prob[:, 1] - prob[::-1, 0]  # both increase
        mirrored = bool(away[np.argmax(np.abs(away) > _SAME)] > _SAME)
        event = prob[:, 0] if mirrored else prob[:, 1]
        order, no_labels = np.lexsort((weight, event)), np.zeros(sample.n_samples, dtype=np.int64)
        one = induce(np.column_stack([1 - event, event])[order], no_labels, weight=weight[order])
        return replace(cls.of(statistic, one, **how), mirrored=mirrored)

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        sample: Sample,
        *,
        alpha: float = 0.05,
        n_resamples: int | None = None,
        workers: int = 1,
        rng: SeedLike = 0,
        n_samples: int | None = None,
        alike: AlikeLabels | None = None,
    ) -> Detection:
        """Return the test of a sample, with draws that are made here."""
        chosen, number = settle(statistic, sample), number_of_draws(n_resamples, USUAL_DRAWS, sample.given.size)
        draws = OutcomeDraws.of(number, rng)
        (null,) = draw_nulls([Question(chosen, LensView(sample))], sample, draws, workers)
        return cls(chosen, sample, null, alpha, ~draws.seed, workers, n_samples, alike)

    @classmethod
    def of_test(cls, test: TestResult, sample: Sample) -> Detection | None:
        """Return a test that has been made of a sample; None where errors cannot be simulated.

        These are other hypotheses than calibration, folds, and samples of so many classes that tables of doubles are
        not made. The draws of the test are taken if there are enough of them and they could not differ for the
        complement of an event; those of groups are not only of labels.
        """
        if not test.of_calibration or test.fold_names or sample.is_large:
            return None
        if sample.timing is not None:
            return cls._in_time(test, sample)
        if sample.group is not None:
            alike = AlikeLabels.as_observed(sample)
            return cls.of(test.test_statistic, sample, alpha=test.alpha, n_resamples=CRITICAL_DRAWS, alike=alike)
        if sample.n_outcomes == 2 and isinstance(test.test_statistic, Omnibus):
            return cls.of_either(test.test_statistic, sample, alpha=test.alpha, n_resamples=CRITICAL_DRAWS)
        drawn = [part.null_distribution for part in test.components]
        if any(values is None or len(values) < ENOUGH_DRAWS for values in drawn):
            return cls.of(test.test_statistic, sample, alpha=test.alpha)
        statistic = settle(test.test_statistic, sample)
        return cls(statistic, sample, np.stack(drawn), test.alpha)  # type: ignore[arg-type]

    @classmethod
    def _in_time(cls, test: TestResult, sample: Sample) -> Detection:
        """Return a test of a sample with times."""
        in_time, statistic = LabelsInTime(sample), settle(test.test_statistic, sample)
        null = in_time.null(statistic, CRITICAL_DRAWS, ~np.uint64(0))
        return cls(statistic, sample, null, test.alpha, in_time=in_time)

    @cached_property
    def usual(self) -> DetectableError:
        """The smallest errors that are found with the usual power."""
        return self.result(USUAL_POWER)

    @cached_property
    def _evaluation(self) -> Evaluation:
        question = Question(self.statistic, LensView(self.sample))
        return Evaluation([question], self.sample, OutcomeDraws(self.seed, 0, 1))

    @cached_property
    def _ranked(self) -> RankedDraws:
        return RankedDraws.of(self.null)

    def rejections(self, true_prob: Floats, number: int, first: int = 0) -> int:
        """Return how many of some data sets are rejected whose labels have these probabilities."""
        if self.alike is not None:
            return self._rejections_of_groups(self.alike, true_prob, number, first)
        if self.in_time is not None:
            values, plain = self.in_time.values(self.statistic, true_prob, self.seed, first, number)
            found = self._ranked.rejected(values, self.alpha)
            if self._shared is not None:
                found = found & self._shared.rejected(plain, self.alpha)
            return int(found.sum())
        moved = replace(self.sample, given_null=true_prob)

        def evaluate(draws: Draws) -> Floats:
            drawn = (labels for _, labels in draws.blocks(moved))
            return np.concatenate([self._evaluation.of_labels(some)[0] for some in drawn], axis=1)

        values = OutcomeDraws(self.seed, first, number).map(evaluate, self.workers)
        return int(self._ranked.rejected(values, self.alpha).sum())

    @cached_property
    def _ranked_alike(self) -> RankedDraws:
        """Draws of labels that are alike and follow the predictions."""
        assert self.alike is not None
        drawn = self.alike.draw(self.sample.expected, CRITICAL_DRAWS, int(self.seed >> np.uint64(2)))
        return RankedDraws.of(np.concatenate([self._evaluation.of_labels(labels)[0] for labels in drawn], axis=1))

    @cached_property
    def _shared(self) -> RankedDraws | None:
        """Draws of labels that share all of their shocks, where there is little time."""
        assert self.in_time is not None
        return self.in_time.shared(self.statistic, CRITICAL_DRAWS, ~self.seed - np.uint64(1))

    @cached_property
    def _signs(self) -> SignTest:
        return SignTest(self.statistic, self.sample, self.alpha, int(self.seed))

    @cached_property
    def _alike(self) -> AlikeTest:
        return AlikeTest(self.statistic, self.sample, self.alpha, int(self.seed >> np.uint64(3)))

    def _rejections_of_groups(self, alike: AlikeLabels, true_prob: Floats, number: int, first: int) -> int:
        """Return how many data sets are rejected by all draws of the test with groups."""
        rejected = 0
        for labels in alike.draw(true_prob, number, int(self.seed >> np.uint64(1)) + first):
            values = self._evaluation.of_labels(labels)[0]
            found = self._ranked.rejected(values, self.alpha)
            if alike.many is not None:
                rejected += int((found & self._ranked_alike.rejected(values, self.alpha)).sum())
                continue
            for place in np.flatnonzero(found):
                first += 1  # other signs for each data set
                one = labels[place], values[:, place]
                rejected += self._signs.rejects(*one, first) and self._alike.rejects(*one)
        return rejected

    @property
    def _fewer(self) -> int:
        """By what the numbers of data sets are divided, to save time."""
        if self.in_time is not None:
            return _FEWER
        if self.alike is None:
            return _FEWER if self.sample.given.size > LARGE else 1
        if self.alike.many is not None:
            return _FEWER
        least, most = _FEWER_WITH_GROUPS
        return int(np.clip(least * self.sample.given.size // _SOME, least, most))

    def smallest_amount(self, error: TypicalError, power: float) -> tuple[float, float]:
        """Return the smallest amount of a kind of error that is found, and its power.

        If none is found the amount is infinite, and the power that of the largest one; both are NaN if the predictions
        cannot have the error.
        """
        prob = self.sample.expected
        information = error.information(prob, self.sample.weight)
        if information <= 0:
            return math.nan, math.nan
        if self.alike is not None and not self._signs.can_reject:
            return math.inf, 0.0
        wanted = power if self.alike is None or self.alike.many else self._signs.power(power)
        found, reached = search_power(
            lambda amount, *which: self.rejections(error.true_prob(prob, amount, self.sample.weight), *which),
            UNIT / math.sqrt(information),
            error.largest,
            wanted,
            fewer=self._fewer,
        )
        return found * ((self.alike and self.alike.many) or 1.0), reached

    def smallest(self, error: TypicalError, power: float) -> SmallestError | None:
        """Return the smallest error of a kind that is found; None if the predictions cannot have it."""
        (amount, reached), prob = self.smallest_amount(error, power), self.sample.expected
        if math.isnan(amount):
            return None
        whole = self.n_samples or self.sample.n_samples
        if math.isinf(amount) and whole > self.sample.n_samples:  # more observations may find it
            return None
        if math.isinf(amount):
            return SmallestError(
                kind=error.kind, family=error.family, size=math.nan, points=math.nan, factor=math.nan, power=reached
            )
        amount *= math.sqrt(self.sample.n_samples / whole)
        weight = self.sample.weight
        true_prob, column = error.true_prob(prob, amount, weight), shifted_class(prob, weight)
        true, predicted = (float(np.average(each[:, column], weights=weight)) for each in (true_prob, prob))
        return SmallestError(
            kind=error.kind,
            family=error.family,
            size=error.size(amount),
            points=100 * mean_change(prob, true_prob, weight),
            factor=true / predicted,
            power=power,
        )

    def result(self, power: float, progress: Any = None) -> DetectableError:
        """Return the smallest errors of all kinds."""
        errors, kinds = [], typical_errors(self.sample.n_outcomes)
        for done, error in enumerate(kinds):
            if progress is not None:
                progress(done, len(kinds))
            errors.append(self.smallest(error, power))
        if progress is not None:
            progress(len(kinds), len(kinds))
        prob, weight, alike = self.sample.expected, self.sample.weight, self.alike
        found = DetectableError(
            errors=tuple(error for error in errors if error is not None),
            power=power,
            alpha=self.alpha,
            test_statistic=self.statistic,
            n_samples=self.n_samples or self.sample.n_samples,
            n_outcomes=self.sample.n_outcomes,
            predicted=float(np.average(prob[:, shifted_class(prob, weight)], weights=weight)),
            n_resamples=self.null.shape[1],
            n_groups=self.sample.n_groups,
            icc=None if alike is None else alike.icc,
            icc_interval=None if alike is None else alike.interval,
            inflation=None if self.in_time is None else self.in_time.inflation,
        )
        return found.of_complement() if self.mirrored else found


def sample_of(prob: Floats, n_samples: int) -> Sample:
    """Return a sample of some observations with predictions such as these, at equal steps in their order."""
    n = len(prob)
    if n_samples != n:
        order = np.argsort(prob[:, 1], kind="stable") if prob.shape[1] == 2 else _by_confidence(prob)
        prob = prob[order[(np.arange(n_samples) * 2 + 1) * n // (2 * n_samples)]]
    return induce(prob, np.zeros(n_samples, dtype=np.int64))  # labels are not looked at


def _by_confidence(prob: Floats) -> Integers:
    """Return the order of predictions by the most probable class, and by its probability."""
    return np.lexsort([prob.max(axis=1), prob.argmax(axis=1)])
