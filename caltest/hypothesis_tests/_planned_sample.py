"""What so many predictions can show without labels: the smallest errors that are found, and how many find an error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._alike_labels import AlikeLabels
from caltest.hypothesis_tests._detectable_error_result import USUAL_POWER, DetectableError, in_words
from caltest.hypothesis_tests._detection import LARGE, UNIT, Detection, sample_of
from caltest.hypothesis_tests._power_curve import search_power, validate_power
from caltest.hypothesis_tests._typical_errors import ErrorKind, TypicalError, mean_change, typical_errors
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import (
    refuse_if,
    validate_count,
    validate_design,
    validate_number,
    validate_positive,
    validate_prob,
    validate_rng,
)
from caltest.resampling.engine._options import DetectionOptions, PlanOptions
from caltest.results import Result
from caltest.results._description import Description, percent
from caltest.results._finding import OF_AVERAGE
from caltest.results._progress import reporting
from caltest.results._verdict import round_up
from caltest.statistics import Omnibus


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


_NULL_DRAWS = 1999  # at each number of observations; the fit over several numbers averages their error
_SOME = 5000  # predictions that sizes are computed from
_NEARLY = 0.6  # of the observations that another kind of error needs: which one needs more is simulated
_HALVINGS = 50

Quantity = Literal["points", "slope", "factor", "temperature"]
_UNITS: dict[str, str] = {
    "points": "predictions that are wrong by {:g} percentage points on average",
    "slope": "a calibration slope of {:g}",
    "factor": "true risks of {:g} times the predicted ones",
    "temperature": "a temperature of {:g}",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SampleSizePlan(Result):
    """Result of `plan_sample_size`.

    Attributes
    ----------
    n_samples : int or None
        Number of observations that finds the error; None if there is none.
    quantity : {"points", "slope", "factor", "temperature"}
        What the size of the error was given as.
    value : float
        That size.
    kind : str or None
        What predictions with this error are; of an error in points the kind that needs the most observations. None if
        such predictions cannot have the error.
    power, alpha : float
        Probability with which the error is found, and level of the test.
    n_outcomes : int
        Number of outcomes.
    extrapolated : bool
        Whether the number is so large that it was extrapolated from a smaller one by the root law.

    See Also
    --------
    plan_sample_size : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> plan = caltest.hypothesis_tests.plan_sample_size(y_prob, temperature=3, rng=0)
    >>> plan.quantity, plan.value, plan.power, plan.extrapolated
    ('temperature', 3.0, 0.8, False)
    """

    n_samples: int | None
    quantity: Quantity
    value: float
    kind: ErrorKind | None
    power: float
    alpha: float
    n_outcomes: int
    extrapolated: bool

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def conclusion(self) -> str:
        """How many observations are needed, in words."""
        error = _UNITS[self.quantity].format(self.value)
        if self.kind is None:
            return f"Such predictions cannot have this error: {error}. They are too near 0 or 1, or to each other."
        if self.n_samples is None:
            return f"Even {LARGE // self.n_outcomes:,} observations such as these would not find {error}."
        number = round_up(self.n_samples)
        need = "observation such as these is" if number == 1 else "observations such as these are"
        most = ""
        if self.quantity == "points":
            which = " for the most frequent class" if self.n_outcomes > 2 and self.kind in OF_AVERAGE else ""
            most = f" Those that are {self.kind}{which} by as much need the most."
        return f"About {number:,} {need} needed to find {error} in {in_words(self.power)} data sets.{most}"

    def _describe(self) -> Description:
        how = "extrapolated by the root of the number" if self.extrapolated else "labels simulated"
        return Description(
            f"Sample size for an error of predictions ({Omnibus().name}, {self.n_outcomes} outcomes)",
            [self.conclusion],
            remarks=[f"Power {percent(self.power)}, level {percent(self.alpha)}; {how}. No label was used."],
        )


@reads_arguments
def plan_sample_size(
    y_prob: ArrayLike,
    *,
    points: float | None = None,
    slope: float | None = None,
    factor: float | None = None,
    temperature: float | None = None,
    power: float = USUAL_POWER,
    **options: Unpack[PlanOptions],
) -> SampleSizePlan:
    r"""Estimate how many observations `calibration_test` needs to find an error of some size (no labels needed).

    The predictions that are given stand for those of more or fewer observations, which are taken at equal steps from
    their order. At numbers n of observations labels are simulated from predictions with the error, as by
    `detectable_error`, and the power is fitted as :math:`\Phi(a + b \sqrt n)`; the answer is where the fit reaches
    ``power``. Beyond 2**18 predicted probabilities the smallest error is assumed to shrink as :math:`1 / \sqrt n`.

    Parameters
    ----------
    points : float, optional
        The error as the mean absolute change of the probability, in percentage points. All kinds of errors of this size
        are found: the number is that of the kind that needs the most.
    slope : float, optional
        The error as the calibration slope of two outcomes, below 1 if predictions are too extreme.
    factor : float, optional
        The error as the mean of the true probabilities of the rarer of two outcomes, divided by the predicted one.
    temperature : float, optional
        The error as the temperature of several classes, above 1 if predictions are over-confident.
    power : float
        Probability with which the error is found, larger than ``alpha``.
    alpha : float
        Level of the test.

    Returns
    -------
    SampleSizePlan
        The number of observations.

    Raises
    ------
    TypeError
        If a size, ``power`` or ``alpha`` is no number.
    ValueError
        If not exactly one of ``points``, ``slope``, ``factor`` and ``temperature`` is given, or it is not positive, or
        is 1 where that is no error; if ``slope`` or ``factor`` is given for several classes, or ``temperature`` for
        two; if ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``power`` or ``alpha`` is not
        strictly between 0 and 1, or ``power`` not larger than ``alpha``.

    See Also
    --------
    detectable_error : Which error does a number of observations find?
    caltest.simulation.sample_size : The number of observations for any test and a model of known truth.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.hypothesis_tests import plan_sample_size
    >>> y_prob = np.random.default_rng(0).beta(2, 6, 2000)
    >>> plan = plan_sample_size(y_prob, slope=0.5, rng=0)
    >>> 300 < plan.n_samples < 420
    True
    """
    power = validate_power(power, options["alpha"])
    sizes = {"points": points, "slope": slope, "factor": factor, "temperature": temperature}
    given = {name: validate_positive(value, name) for name, value in sizes.items() if value is not None}
    refuse_if(
        len(given) != 1,
        "give the size of the error as one of `points`, `slope`, `factor` and `temperature`, got "
        f"{' and '.join(f'`{name}`' for name in given) or 'none'}.",
    )
    ((quantity, value),) = given.items()
    prob = validate_prob(y_prob)
    of_two = prob.shape[1] == 2
    wrong = quantity in ({"temperature"} if of_two else {"slope", "factor"})
    refuse_if(
        wrong, f"`{quantity}` is for {'several classes' if of_two else 'two outcomes'}, got {prob.shape[1]} classes."
    )
    wrong = quantity == "points" and value >= 100
    refuse_if(wrong, f"`points` must be below 100, the largest error of a probability, got {value:g}.")
    refuse_if(quantity != "points" and value == 1, f"`{quantity}` must not be 1, which is no error.")
    seed = int(validate_rng(options["rng"]).integers(2**63))
    planned = _Plan(prob, power, options["alpha"], options["workers"], seed)
    with reporting(options["progress"], "simulating labels") as report:
        number, kind = planned.largest(
            list(_targets(sample_of(prob, min(len(prob), _SOME)).expected, quantity, value)), report
        )
    return SampleSizePlan(
        n_samples=max(math.ceil(number), 1) if math.isfinite(number) else None,
        quantity=quantity,  # type: ignore[arg-type]
        value=value,
        kind=kind,
        power=power,
        alpha=options["alpha"],
        n_outcomes=prob.shape[1],
        extrapolated=kind is not None and number * prob.shape[1] > LARGE,
    )


Target = tuple[TypicalError, float]
"""A kind of error and its amount."""


def _targets(prob: Floats, quantity: str, value: float) -> Iterator[Target]:
    """Yield the errors of a size that the predictions can have."""
    rarer = 1 if prob[:, 1].mean() <= 0.5 else 0
    raises = 1 if (value > 1) == (rarer == 1) else -1  # or lowers the probability of the event
    # A shift moves all probabilities in the same direction, so that it changes their mean by its points.
    points = 100 * abs(value - 1) * prob[:, rarer].mean() if quantity == "factor" else value
    for error in typical_errors(prob.shape[1]):
        if error.information(prob) <= 0:
            continue
        if error.family == quantity:
            amount = error.amount(value)
        elif quantity == "points" or (quantity == "factor" and error.family == "shift" and error.sign == raises):
            amount = _amount_of(error, prob, points)
        else:
            continue
        if amount > 0:
            yield error, amount


def _amount_of(error: TypicalError, prob: Floats, points: float) -> float:
    """Return the amount of an error of some points; NaN if there is none."""

    def is_less(amount: float) -> bool:
        return 100 * mean_change(prob, error.true_prob(prob, amount)) < points

    low, high = 0.0, error.largest
    if is_less(high):
        return math.nan
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_less(middle) else (low, middle)
    return high


@dataclass(frozen=True, eq=False)
class _Plan:
    """Predictions, and how numbers of observations with such predictions are tried."""

    prob: Floats
    power: float
    alpha: float
    workers: int
    seed: int

    def largest(self, targets: list[Target], report: Any) -> tuple[float, ErrorKind | None]:
        """Return the largest number of observations that an error needs, and its kind; None without errors."""
        guesses = [self._guess(*target) for target in targets]
        near = [pair for pair in zip(targets, guesses, strict=True) if pair[1] >= _NEARLY * max(guesses)]
        found: list[tuple[float, ErrorKind | None]] = []
        for done, (target, guess) in enumerate(near):
            report(done, len(near))
            found.append((self._number(*target, guess), target[0].kind))
        report(len(near), len(near))
        return max(found, key=lambda pair: pair[0], default=(math.nan, None))

    def _guess(self, error: TypicalError, amount: float) -> float:
        """Return the number of observations that an efficient test needs for a small error, about."""
        return (UNIT / amount) ** 2 * len(self.prob) / error.information(self.prob)

    def _number(self, error: TypicalError, amount: float, guess: float) -> float:
        largest = max(LARGE // self.prob.shape[1], 1)

        def rejections(root: float, number: int, first: int) -> int:
            detection = self._detection(max(round(root**2), 1))
            return detection.rejections(error.true_prob(detection.sample.expected, amount), number, first)

        if guess <= 4 * largest:
            root, _ = search_power(rejections, math.sqrt(guess), math.sqrt(largest), self.power)
            if math.isfinite(root):
                return root**2
        smallest, _ = self._detection(largest).smallest_amount(error, self.power)
        return largest * (smallest / amount) ** 2

    def _detection(self, number: int) -> Detection:
        how: dict[str, Any] = {
            "alpha": self.alpha,
            "n_resamples": _NULL_DRAWS,
            "workers": self.workers,
            "rng": self.seed,
        }
        return Detection.of(Omnibus(), sample_of(self.prob, number), **how)
