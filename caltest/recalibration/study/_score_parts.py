"""A proper score divided into what recalibration gains on held-out observations, and what it cannot change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation.scores._mean_interval import UNKNOWN, Spread, mean_interval
from caltest.estimation.scores._score_decomposition import brier_of, log_of
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import DesignOptions, ReadOptions
from caltest.predictions.inputs._parts import Folds
from caltest.predictions.inputs._refusals import refuse, require
from caltest.predictions.inputs._validation import (
    SeedLike,
    validate_choice,
    validate_design,
    validate_level,
    validate_problem,
    validate_rng,
)
from caltest.recalibration.maps._base import Recalibrator, fit_quietly
from caltest.recalibration.maps._temperature import TemperatureScaling
from caltest.recalibration.study._study import validate_parts
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._description import Description, Table, counted, percent, sized

_SCORES = {"brier": ("Brier score", brier_of), "log": ("log score", log_of)}
_TERMS = {
    "mean_score": "miscalibration + refinement",
    "miscalibration": "what the map gains on held-out observations",
    "refinement": "what remains: uncertainty - discrimination",
    "discrimination": "what recalibrated predictions gain on the base rates; larger is better",
    "uncertainty": "score of the base rates; a property of the labels",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrossFittedDecomposition(Result):
    """Result of `cross_fitted_decomposition`.

    Attributes
    ----------
    score : {"brier", "log"}
        The proper score.
    mean_score, miscalibration, refinement, discrimination, uncertainty : float
        The terms, in the unit of the score.
    intervals : dict of str to ConfidenceInterval
        The interval of each term but the uncertainty, by its name; NaN with fewer than 6 observations or groups, if
        nothing varies, or if scores are infinite.
    confidence_level : float
        Probability with which an interval contains its target.
    recalibrator : Recalibrator
        The method that was fitted to the other folds.
    n_folds, n_samples : int
        Number of folds and of observations.
    n_groups, weighted : int or None, bool
        Number of groups, if only these are independent, and whether observations have weights.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    cross_fitted_decomposition : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> parts = caltest.recalibration.cross_fitted_decomposition(y_true, y_prob, rng=0)
    >>> round(parts.miscalibration + parts.refinement - parts.mean_score, 9) == 0
    True
    """

    score: str
    mean_score: float
    miscalibration: float
    refinement: float
    discrimination: float
    uncertainty: float
    intervals: dict[str, ConfidenceInterval]
    confidence_level: float
    recalibrator: Recalibrator
    n_folds: int
    n_samples: int
    n_groups: int | None = None
    weighted: bool = False
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def conclusion(self) -> str:
        """What recalibration gains, in words."""
        name = f"The mean {_SCORES[self.score][0]}"
        if math.isinf(self.mean_score):
            return f"{name} is infinite, because a label had been given probability 0."
        if math.isinf(self.refinement):
            return f"{name} is {self.mean_score:.4g}, and infinite after recalibration."
        low, high = (f"{end:.3g}" for end in self.intervals["miscalibration"])
        gain = f"{self.miscalibration:.3g} ({percent(self.confidence_level)} confidence interval {low} to {high})"
        if self.intervals["miscalibration"].low > 0:
            return f"{name} is {self.mean_score:.4g}, of which recalibration removes {gain}."
        return f"{name} is {self.mean_score:.4g}. It is not shown that recalibration lowers it: by {gain}."

    def _describe(self) -> Description:
        rows = [
            (name.replace("_", " "), f"{getattr(self, name):.4g}", str(self.intervals.get(name, "")), meaning)
            for name, meaning in _TERMS.items()
        ]
        size = sized(self.n_samples, n_groups=self.n_groups, weighted=self.weighted)
        return Description(
            f"Cross-fitted decomposition of the {_SCORES[self.score][0]} ({self.n_folds} folds, {size})",
            [self.conclusion],
            [
                Table(
                    ("term", "value", f"{percent(self.confidence_level)} interval", "meaning"), rows, left=("meaning",)
                )
            ],
            [
                f"Map: {' '.join(repr(self.recalibrator).split())}, fitted to the other folds. No map is better than "
                "the true frequencies given the prediction: the calibration error is at least the lower limit of "
                "miscalibration, and what no recalibration removes at most the upper limit of refinement."
            ],
            self.notes,
        )


class PartsOptions(ReadOptions, DesignOptions, total=False):
    """What predictions are, how much they count, and which of them may depend on each other."""


@reads_arguments
def cross_fitted_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    recalibrator: Recalibrator | None = None,
    *,
    score: str = "brier",
    folds: int | ArrayLike = 5,
    confidence_level: float = 0.95,
    rng: SeedLike = None,
    **options: Unpack[PartsOptions],
) -> CrossFittedDecomposition:
    r"""Divide the mean of a proper score of K classes into miscalibration and refinement, by held-out recalibration.

    .. math:: \bar S(p) = \underbrace{\bar S(p) - \bar S(\hat m(p))}_\mathrm{miscalibration} +
              \underbrace{\bar S(\hat m(p))}_\mathrm{refinement}, \qquad \mathrm{refinement} = \underbrace{\bar
              S(\bar y)}_\mathrm{uncertainty} - \mathrm{discrimination}

    with :math:`\bar S` the mean score, :math:`\bar y` the frequencies of the classes, and :math:`\hat m` the map of a
    recalibration method that is fitted to the other folds than that of the observation. Unlike in
    `caltest.score_decomposition` no label is predicted by a map that has seen it, so that a calibrated model has no
    miscalibration on average; it may be negative, if the map fits noise.

    **Targets.** That of the mean score is the expected score of the predictions, that of the uncertainty the expected
    score of the true frequencies, which are plugged in. That of the refinement is the mean over the folds of the
    expected score of new predictions changed by the map of the fold, and those of miscalibration and discrimination are
    the differences. The best map is the calibration function r: the calibration error :math:`E S(p, Y) - E S(r(p), Y)`
    is at least the target of miscalibration, and a lower limit of the one is one of the other. How close they are
    depends on the method.

    Intervals are those of means of independent observations or groups, corrected for skewness (Hall 1992), which are
    valid for cross-validated means of maps that single observations hardly change (Bayle et al. 2020). Where the map
    gains about nothing, what is held out in one fold and fitted in another varies together, and the variance of the
    gain is twice that of independent terms. So the interval of miscalibration has this variance, unless it is above 0
    even then.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The method; `TemperatureScaling()` by default.
    score : {"brier", "log"}
        The Brier score, for two classes half the sum of squares, or the log score in nats.
    folds : int or array-like of shape (n_samples,)
        Number of folds, which are drawn without looking at labels and keep groups together; or the fold of each
        observation, integers or strings.
    confidence_level : float
        Probability with which an interval contains its target.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds.

    Returns
    -------
    CrossFittedDecomposition
        Prints as a table.

    Raises
    ------
    TypeError
        If ``recalibrator`` is no recalibration method.
    ValueError
        If ``score`` is unknown; if ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown,
        lengths differ, or weights are negative or all 0; if ``folds`` is less than 2 or more than half of the
        observations or groups, or a group lies in several folds; if the method refuses the observations of the other
        folds, for example because a class has no label there; if ``confidence_level`` is not strictly between 0 and 1.

    See Also
    --------
    caltest.score_decomposition : By isotonic regression on the same labels, for two outcomes.
    recalibration_study : Whether methods improve calibration, tested.

    References
    ----------
    J. Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores, Quarterly Journal of the Royal
    Meteorological Society 135, 1512-1519.
    E. Berta, D. Holzmüller, M. I. Jordan and F. Bach (2025), Rethinking early stopping: refine, then calibrate,
    arXiv 2501.19195.
    P. Bayle, A. Bayle, L. Janson and L. Mackey (2020), Cross-validation confidence intervals for test error, NeurIPS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> parts = caltest.recalibration.cross_fitted_decomposition(y_true, y_prob, score="log", rng=0)
    >>> print(parts.conclusion)
    The mean log score is 0.2571, of which recalibration removes 0.0565 (95 % confidence interval 0.0483 to 0.0654).
    >>> round(parts.refinement, 4), str(parts.intervals["refinement"])
    (0.2006, '0.1874 to 0.2148')
    """
    validate_choice(score, "score", tuple(_SCORES))
    level = validate_level(confidence_level, "confidence_level")
    prob, outcome = validate_problem(y_true, y_prob, options["classes"])
    method = TemperatureScaling() if recalibrator is None else recalibrator
    must = "`recalibrator` must be a method such as caltest.recalibration.TemperatureScaling()"
    require(isinstance(method, Recalibrator), must, method, right_type=False)
    require(method.input == "probabilities", "`recalibrator` must have `input='probabilities'`", method.input)
    design = validate_design(options["sample_weight"], options["groups"], len(outcome), None, None)
    parts = validate_parts(folds, None, design, len(outcome), validate_rng(rng))
    recalibrated, notes = _held_out(method, prob, outcome, design["weight"], parts)
    of_score = _SCORES[score][1]
    rates = np.average(outcome[:, None] == np.arange(prob.shape[1]), axis=0, weights=design["weight"])
    sample = induce(prob, outcome, **design)
    before, after, base = (
        of_score(each, outcome)[sample.row] for each in (prob, recalibrated, np.tile(rates, (len(prob), 1)))
    )
    with np.errstate(invalid="ignore"):  # infinite log scores
        values = dict(zip(_TERMS, (before, before - after, after, base - after, base), strict=True))
        means = {name: float(np.average(value, weights=sample.weight)) for name, value in values.items()}
        deviations = {name: value - means[name] for name, value in values.items()}
    return CrossFittedDecomposition(
        score=score,
        mean_score=means["mean_score"],
        miscalibration=means["miscalibration"],
        refinement=means["refinement"],
        discrimination=means["discrimination"],
        uncertainty=means["uncertainty"],
        intervals={
            name: _interval(means[name], each, sample, 1 - level, doubled=name == "miscalibration")
            for name, each in deviations.items()
            if name != "uncertainty"
        },
        confidence_level=level,
        recalibrator=method,
        n_folds=len(parts),
        n_samples=sample.n_samples,
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
        notes=(*notes, *_impossible(method, after)),
    )


def _held_out(
    method: Recalibrator, prob: Floats, outcome: Integers, weight: Floats | None, parts: Folds
) -> tuple[Floats, tuple[Note, ...]]:
    """Return the predictions of each fold by the map that was fitted to the others, and the cautions of the fits."""
    found = np.empty_like(prob)
    said: dict[Note, None] = {}
    for name, held in parts:
        others = np.delete(np.arange(len(prob)), held)
        try:
            fitted, cautions = fit_quietly(
                method, prob[others], outcome[others], None if weight is None else weight[others]
            )
        except ValueError as error:
            refuse(f"`recalibrator` {method!r} refuses the observations of the other folds than {name}: {error}")
        found[held] = fitted.predict_proba(prob[held])
        said |= dict.fromkeys(Note("C704", f"{method!r}: {caution}") for caution in cautions)
    return found, tuple(said)


def _impossible(method: Recalibrator, after: Floats) -> tuple[Note, ...]:
    """Return a caution if held-out labels have probability 0."""
    number = int(np.isinf(after).sum())
    text = "after it the log score is infinite; take another method, or the Brier score."
    return (
        (Note("C705", f"{method!r}: {counted(number, 'held-out label')} of probability 0: {text}"),) if number else ()
    )


def _interval(mean: float, deviation: Floats, sample: Sample, missed: float, *, doubled: bool) -> ConfidenceInterval:
    """Return the interval of a mean; with twice the variance if it is then not above 0 and the term may be ``doubled``.

    The latter is symmetric: the sum is no longer that of independent terms, whose skewness could be removed.
    """
    spread = Spread.of(deviation, sample, missed / 2) if np.isfinite(deviation).all() else None
    if spread is None:
        return UNKNOWN
    reach = math.sqrt(2) * spread.quantile * spread.error
    if doubled and mean <= reach:
        return ConfidenceInterval(mean - reach, mean + reach)
    return mean_interval(mean, deviation, sample, missed / 2)
