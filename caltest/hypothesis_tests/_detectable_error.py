"""The smallest errors of predictions that a test finds, from the predictions and their number alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._alike_labels import AlikeLabels, SignTest
from caltest.hypothesis_tests._detectable_error_result import USUAL_POWER, DetectableError, SmallestError
from caltest.hypothesis_tests._power_curve import search_power, validate_power
from caltest.hypothesis_tests._typical_errors import (
    TypicalError,
    mean_change,
    shifted_class,
    typical_errors,
)
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import (
    SeedLike,
    refuse_if,
    validate_count,
    validate_design,
    validate_number,
    validate_prob,
)
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.engine._evaluation import Evaluation, Question, draw_nulls
from caltest.resampling.engine._options import DetectionOptions
from caltest.resampling.engine._pvalues import RankedDraws
from caltest.resampling.engine._run import settle
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import TestResult
from caltest.results._progress import reporting
from caltest.statistics import Omnibus, Statistic

if TYPE_CHECKING:
    pass

ENOUGH_DRAWS = 999
"""Draws of a test that are enough to take its critical value from them; otherwise new ones are made."""
UNIT = 3.2
"""Standard errors of an error that the default test finds, about."""
LARGE = 2**18
"""Predicted probabilities from which fewer data sets are simulated."""

_FEWER = 3  # a third as many
_FEWER_WITH_GROUPS = 8, 20  # the more the larger the sample is
_SOME = 2**14
_CRITICAL_DRAWS = 1_999  # where those of the test are not taken
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
        if sample.group is not None:
            alike = AlikeLabels.as_observed(sample)
            return cls.of(test.test_statistic, sample, alpha=test.alpha, n_resamples=_CRITICAL_DRAWS, alike=alike)
        if sample.n_outcomes == 2 and isinstance(test.test_statistic, Omnibus):
            return cls.of_either(test.test_statistic, sample, alpha=test.alpha, n_resamples=_CRITICAL_DRAWS)
        drawn = [part.null_distribution for part in test.components]
        if any(values is None or len(values) < ENOUGH_DRAWS for values in drawn):
            return cls.of(test.test_statistic, sample, alpha=test.alpha)
        statistic = settle(test.test_statistic, sample)
        return cls(statistic, sample, np.stack(drawn), test.alpha)  # type: ignore[arg-type]

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
        drawn = self.alike.draw(self.sample.expected, _CRITICAL_DRAWS, int(self.seed >> np.uint64(2)))
        return RankedDraws.of(np.concatenate([self._evaluation.of_labels(labels)[0] for labels in drawn], axis=1))

    @cached_property
    def _signs(self) -> SignTest:
        return SignTest(self.statistic, self.sample, self.alpha, int(self.seed))

    def _rejections_of_groups(self, alike: AlikeLabels, true_prob: Floats, number: int, first: int) -> int:
        """Return how many data sets are rejected by simulated labels and by random signs, as the test with groups."""
        rejected = 0
        for labels in alike.draw(true_prob, number, int(self.seed >> np.uint64(1)) + first):
            values = self._evaluation.of_labels(labels)[0]
            found = self._ranked.rejected(values, self.alpha)
            if alike.many is not None:
                rejected += int((found & self._ranked_alike.rejected(values, self.alpha)).sum())
                continue
            for place in np.flatnonzero(found):
                first += 1  # signs of its own
                rejected += self._signs.rejects(labels[place], values[:, place], first)
        return rejected

    @property
    def _fewer(self) -> int:
        """By what the numbers of data sets are divided, to save time."""
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
        )
        return found.of_complement() if self.mirrored else found


@reads_arguments
def detectable_error(
    y_prob: ArrayLike,
    *,
    power: float = USUAL_POWER,
    n_samples: int | None = None,
    icc: float = 0.0,
    **options: Unpack[DetectionOptions],
) -> DetectableError:
    r"""Compute the smallest errors that `calibration_test` finds with some probability (no labels needed).

    Errors that people make are looked at, each in both directions. With predictions p and an amount t the true
    probabilities are

    .. math:: \operatorname{logit} \pi = \operatorname{logit} p + t, \qquad
              \operatorname{logit} \pi = a + e^t \operatorname{logit} p, \qquad
              \pi_k \propto p_k^{1 / e^t}:

    a shift (of several classes, of the odds of the most frequent one); for two outcomes a slope, with the a that keeps
    the mean; for several classes a temperature. The default test is made on labels that are simulated from
    :math:`\pi`, with the critical value that its draws from p have. The power is fitted as :math:`\Phi(a + b t)` to
    data sets at about ten amounts, 3,600 of them near the answer, which is the t where the fit reaches ``power``. Data
    that do not reject calibration show no more than that the error is smaller than about this.

    With ``groups`` the test is the one with groups: each data set must be rejected by its own random signs too. Labels
    of a group are drawn with the intraclass correlation ``icc``, by latent normal variables that share a shock within
    the group. It cannot be known without labels. The default, 0, is the best case; an answer of `calibration_test`
    estimates it from its labels. With weights the test is the weighted one, and so are all averages.

    Parameters
    ----------
    power : float
        Probability with which the error is found, larger than ``alpha``.
    n_samples : int, optional
        Number of observations; by default as many as there are predictions. For another number, as many are taken at
        equal steps from the predictions in their order; those of more observations repeat. Not with groups or weights.
    icc : float
        Intraclass correlation of the labels of a group, from 0 to 1: the mean correlation of the residuals of two of
        its observations. Groups of m observations are then worth :math:`1 + (m - 1)\,\mathrm{icc}` times fewer (the
        design effect), if all predictions are equally wrong. Published ones of patients in centres are mostly .01 to
        .1. Labels with unequal probabilities cannot have any; then they have the largest that they can.
    alpha : float
        Level of the test.

    Returns
    -------
    DetectableError
        The smallest error of each kind: its size, and the mean absolute change of the probability in percentage points.

    Raises
    ------
    TypeError
        If ``n_samples``, ``icc``, ``power`` or ``alpha`` is no number.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``power`` or ``alpha`` is not strictly
        between 0 and 1, or ``power`` not larger than ``alpha``; if ``n_samples`` or ``n_resamples`` < 1,
        or ``n_samples`` is given with groups or weights; if ``icc`` is not between 0 and 1, or given without groups.

    See Also
    --------
    caltest.simulation.sample_size : The number of observations that any test needs against a model of known truth,
        whose predictions are drawn too.
    caltest.simulation.power_study : Power against models, by the amount of their miscalibration.
    equivalence_test : Is the error shown to be smaller than a margin? It needs labels.
    noise_floor : What chance alone shows on these predictions.

    References
    ----------
    J. M. Hoenig and D. M. Heisey (2001), The abuse of power: the pervasive fallacy of power calculations for data
    analysis, The American Statistician 55, 19-24: power is computed for errors of a size that matters, never for the
    error that was observed.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> y_prob = np.random.default_rng(0).beta(2, 6, 2000)
    >>> found = caltest.detectable_error(y_prob, n_resamples=999, rng=0)
    >>> [(error.kind, round(error.points)) for error in found.errors]
    [('too low', 3), ('too high', 3), ('too extreme', 2), ('not extreme enough', 2)]
    """
    power = validate_power(power, options["alpha"])
    prob = validate_prob(y_prob)
    design = validate_design(options["sample_weight"], options["groups"], len(prob))
    number = len(prob) if n_samples is None else validate_count(n_samples, "n_samples")
    designed = any(part is not None for part in design.values())
    refuse_if(designed and number != len(prob), "`n_samples` is for observations without `groups` and `sample_weight`.")
    icc = validate_number(icc, "icc", 0.0, 1.0)
    refuse_if(icc and options["groups"] is None, f"`icc` is that of the labels of a group: give `groups`, got {icc:g}.")
    own: dict[str, Any] = {name: options[name] for name in ("alpha", "n_resamples", "workers", "rng")}
    sample = induce(prob, np.zeros(len(prob), dtype=np.int64), **design) if designed else sample_of(prob, number)
    alike = None if sample.group is None else AlikeLabels(sample, icc)
    with reporting(options["progress"], "simulating labels") as report:
        return Detection.of_either(Omnibus(), sample, alike=alike, **own).result(power, report)


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
