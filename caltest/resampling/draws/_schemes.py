r"""The null hypothesis, and how data are simulated under it.

Data with the calibration function :math:`\rho` are simulated as in section 4.2 of Vaicenavicius et al. (2019). Whether
predictions are held fixed decides when the p-value is valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from caltest.predictions._sample import Sample, with_calibration_function
from caltest.predictions._user_functions import CalibrationFunction
from caltest.predictions.inputs._arguments import answers_other_names, refuse_too_many
from caltest.predictions.inputs._validation import SeedLike, refuse_if, require, validate_bool
from caltest.resampling.draws._alike_draws import AlikeDraws, RareOutcome
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.draws._signs import MANY_GROUPS, NO_GROUPS, AllSigns, GroupsWithSurprise, SignDraws
from caltest.resampling.draws._timed_draws import FEW_SURPRISES, FEWEST_WINDOWS, MANY_WINDOWS, TimedOutcome
from caltest.results import Note
from caltest.results._naming import Specification, describe

_MANY_IN_TIME = 20  # groups of equal size with a surprise, which show how alike the labels of groups in time are


@dataclass(frozen=True, repr=False)
class Consistency(Specification):
    r"""The null hypothesis that the model is calibrated, with labels simulated under it (Bröcker & Smith 2007).

    By default the predictions are held fixed and only labels are simulated, :math:`y_i \sim \rho(g_i)` with the
    identity as :math:`\rho`. The null distribution is then fully known, and the p-value is valid at every sample size
    and for every statistic if the observations are independent.

    Parameters
    ----------
    resample_predictions : bool
        Also draw the observations with replacement, as the paper does, and fit data-dependent partitions again on every
        resample. This p-value is valid asymptotically only. It is wrong where cells hold few observations, because
        copies of an observation share a cell; the result of the test warns then.
    calibration_function : callable, optional
        A known calibration function :math:`\rho` instead of the identity, from induced probabilities
        ``(n_samples, n_outcomes)`` to the same shape. Cells are made from the predictions; labels are simulated from
        :math:`\rho` and residuals are centred on it. It must not have been fitted on these labels.

    Raises
    ------
    TypeError
        If ``resample_predictions`` is no boolean, or ``calibration_function`` is not callable.

    See Also
    --------
    caltest.calibration_test : A test whose labels are simulated in this way.

    References
    ----------
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.2.

    Examples
    --------
    >>> import caltest
    >>> caltest.Consistency(resample_predictions=True)
    Consistency(resample_predictions=True)
    >>> y_true, y_prob = [0, 1, 1, 1], [0.25, 0.5, 0.5, 0.75]
    >>> half = caltest.Consistency(calibration_function=lambda prob: 0.5 + 0 * prob)
    >>> caltest.calibration_test(y_true, y_prob, statistic=caltest.KS(), resampling=half, n_resamples=99, rng=0).pvalue
    0.69
    """

    resample_predictions: bool = False
    calibration_function: CalibrationFunction | None = None

    def __post_init__(self) -> None:
        validate_bool(self.resample_predictions, "resample_predictions")
        function = self.calibration_function
        must = "`calibration_function` must be a function of probabilities"
        require(function is None or callable(function), must, function, right_type=False)

    @property
    def hypothesis(self) -> str:
        """The null hypothesis in words."""
        if self.calibration_function is None:
            return "labels follow the predicted probabilities, P(Y = . | g(X)) = g(X), behind the lens"
        function = describe(self.calibration_function)
        return f"labels follow {function} of the predicted probabilities, P(Y = . | g(X)) = {function}(g(X))"

    @property
    def conditions(self) -> tuple[Note, ...]:
        """When the p-value is valid."""
        function = " and the calibration function" if self.calibration_function is not None else ""
        sound = Note("C101", f"observations are independent and no label was used to make the predictions{function}.")
        if not self.resample_predictions:
            return (sound,)
        return sound, Note(
            "C102", "cells hold many observations: this p-value is asymptotic; prefer fixed predictions."
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions that concern the null distribution."""
        return ()

    def origin(self, n_resamples: int | str) -> str:
        """Return the source of a simulated null distribution in words; the number may be in words too."""
        number = _in_words(n_resamples)
        if self.resample_predictions:
            return f"{number} resamples of the observations with simulated labels, cells fitted again (asymptotic)"
        return f"{number} Monte Carlo draws of the labels, predictions fixed (valid at every sample size)"

    def under_null(self, sample: Sample) -> Sample:
        """Return the sample with the probabilities of its outcomes under this null hypothesis."""
        if self.calibration_function is None:
            return sample
        return with_calibration_function(sample, self.calibration_function)

    def for_sample(self, sample: Sample) -> Consistency:
        """Return the null hypothesis for a sample: if its observations come in groups, or labels are known later."""
        if sample.timing is not None:
            refuse_if(self.resample_predictions, f"`time` needs fixed predictions, Consistency(); got {self}.")
            known = sample.once(TimedOutcome.of)
            return TimedLabels(
                calibration_function=self.calibration_function,
                lead=sample.timing.text,
                n_windows=known.n_windows,
                n_surprises=known.n_surprises,
                in_batches=known.in_batches,
                shared=known.shared,
                n_alike=known.n_groups,
                surprises=NO_GROUPS if sample.group is None else sample.once(GroupsWithSurprise.of),
            )
        if sample.group is None:
            return self
        refuse_if(self.resample_predictions, f"`groups` needs fixed predictions, Consistency(); got {self}.")
        return SignedGroups(
            calibration_function=self.calibration_function, surprises=sample.once(GroupsWithSurprise.of)
        )

    def alike_draws(self, sample: Sample, n_resamples: int, rng: SeedLike) -> AlikeDraws | None:
        """Return draws of labels that are alike within groups; None if the labels of the sample need none."""
        return None

    def largest_icc(self, sample: Sample) -> float:
        """Return the largest intraclass correlation that the labels of a sample allow; 0 if no draws are needed."""
        return 0.0

    @answers_other_names
    def draws(self, n_resamples: int, rng: SeedLike = None) -> Draws:
        """Return ``n_resamples`` draws under this null hypothesis."""
        refuse_too_many(n_resamples, "n_resamples")
        kind = RowDraws if self.resample_predictions else OutcomeDraws
        return kind.of(n_resamples, rng)


@dataclass(frozen=True, repr=False)
class SignedGroups(Consistency):
    """The null hypothesis for groups of observations that may depend on each other, by random signs of whole groups.

    Parameters
    ----------
    surprises : GroupsWithSurprise
        The groups of the sample.
    """

    surprises: GroupsWithSurprise = NO_GROUPS

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.surprises.n_groups

    @property
    def notes(self) -> tuple[Note, ...]:
        """A caution if there are too few groups."""
        return self.surprises.notes

    @property
    def conditions(self) -> tuple[Note, ...]:
        """When the p-value is valid."""
        (sound,) = super().conditions
        text = sound.text.replace("observations are independent", "groups of observations are independent")
        many = Note("C104", "there are many groups, and many of them have a label other than the most probable one.")
        return Note(sound.code, text), many

    def origin(self, n_resamples: int | str) -> str:
        """Return the source of the null distribution in words."""
        signs = (
            f"{_in_words(n_resamples)} random signs of the residuals of whole groups, predictions fixed (asymptotic)"
        )
        return f"{signs}; independent labels have a smaller p-value"

    def origin_of_independent(self, origin: str) -> str:
        """Return the source of the null distribution of independent labels, whose p-value is the larger one."""
        return f"{origin}; random signs of whole groups have a smaller p-value"

    def origin_of_all(self, number: int) -> str:
        """Return the source of the null distribution of all arrangements of signs in words."""
        signs = f"all {number:,} arrangements of the signs of the residuals of whole groups, predictions fixed"
        return f"{signs} (asymptotic); independent labels have a smaller p-value"

    def alike_draws(self, sample: Sample, n_resamples: int, rng: SeedLike) -> AlikeDraws | None:
        """Return draws of labels that are alike within groups; None if the labels of the sample need none."""
        icc = self.largest_icc(sample)
        return AlikeDraws.as_alike(sample, icc, n_resamples, rng) if icc > 0 else None

    def largest_icc(self, sample: Sample) -> float:
        """Return the largest intraclass correlation that the labels of a sample allow; 0 if no draws are needed."""
        return 0.0 if sample.is_large else sample.of_predictions(RareOutcome.of).largest_icc(sample)

    def origin_of_alike(self, n_resamples: int | str, icc: float) -> str:
        """Return the source of the null distribution of labels that are alike in words."""
        alike = f"{_in_words(n_resamples)} Monte Carlo draws of labels that are alike within groups"
        how = f"(correlation {icc:.2g}), studentised, predictions fixed (asymptotic)"
        return f"{alike} {how}; other draws have smaller p-values"

    def signs_in_words(self, n_resamples: int) -> str:
        """Return how many signs there are if ``n_resamples`` are asked for."""
        found = self.draws(n_resamples, 0)
        if isinstance(found, AllSigns):
            return f"all {found.n_resamples + 1:,} arrangements of the signs of {self.n_groups:,} groups"
        return f"{n_resamples:,} random signs of {self.n_groups:,} groups"

    def draws(self, n_resamples: int, rng: SeedLike = None) -> Draws:
        """Return ``n_resamples`` draws of signs, or all arrangements of the signs of few groups."""
        return AllSigns.of_groups(self.n_groups) if 0 < self.n_groups < MANY_GROUPS else SignDraws.of(n_resamples, rng)


def _in_words(n_resamples: int | str) -> str:
    return n_resamples if isinstance(n_resamples, str) else f"{n_resamples:,}"


@dataclass(frozen=True, repr=False)
class TimedLabels(Consistency):
    """The null hypothesis for labels that are known only after a lead, by labels that share shocks of time.

    Parameters
    ----------
    lead : str
        The lead in words.
    n_windows, n_surprises : float
        Number of stretches of time as long as the lead that count alike, and expected number of labels other than the
        most probable one.
    in_batches : bool
        Whether predictions of the same time differ more from each other than those of different times.
    shared : tuple of float or None
        Correlations of further labels that are needed, as in `TimedOutcome`.
    n_alike : float
        Number of groups that count alike; infinite if there are none.
    surprises : GroupsWithSurprise
        The groups.
    """

    lead: str = ""
    n_windows: float = math.inf
    n_surprises: float = math.inf
    in_batches: bool = False
    shared: tuple[float | None, ...] = ()
    n_alike: float = math.inf
    surprises: GroupsWithSurprise = NO_GROUPS

    @property
    def few_groups(self) -> str:
        """Why groups do not show how much labels depend on each other, in words; empty if they do or there are none."""
        found = self.surprises
        if not found.n_groups or min(self.n_alike, found.effective_number) >= _MANY_IN_TIME:
            return ""
        if self.n_alike < _MANY_IN_TIME:
            return f"the groups are worth only {self.n_alike:.3g} of equal size"
        return found.too_few(_MANY_IN_TIME)

    @property
    def further(self) -> tuple[tuple[float | None, float], ...]:
        """Correlations of time and of groups of further labels that are needed.

        With groups of which little is known these have all of the shocks of time, all of groups, and half of each.
        """
        found: list[tuple[float | None, float]] = [(one, 0.0) for one in self.shared]
        if self.few_groups or (self.surprises.n_groups and 1.0 in self.shared):
            found = [*dict.fromkeys([(1.0, 0.0), *found]), (0.0, 1.0), (0.5, 0.5)]
        return tuple(found)

    @property
    def decides_nothing(self) -> bool:
        """Whether there is too little time for any decision."""
        return self.in_batches and self.n_windows < FEWEST_WINDOWS

    @property
    def notes(self) -> tuple[Note, ...]:
        """A caution if there is little time, or if few surprises are expected."""
        windows = f"worth only {self.n_windows:.3g} stretches of time as long as the lead"
        if self.decides_nothing:
            text = f"The predictions are {windows}, fewer than {FEWEST_WINDOWS}: nothing can be decided."
        elif self.n_windows < MANY_WINDOWS or self.n_surprises < FEW_SURPRISES or self.few_groups:
            few = f"only {self.n_surprises:.3g} labels other than the most probable one are to be expected"
            found = [f"the predictions are {windows}"] * (self.n_windows < MANY_WINDOWS)
            found += [few] * (self.n_surprises < FEW_SURPRISES) + [self.few_groups] * bool(self.few_groups)
            worst = "The larger p-value is taken of this and of labels that share more of their shocks. "
            more = " of more groups" * bool(self.few_groups)
            text = f"How much labels depend on each other is not known well, because {' and '.join(found)}. "
            text += f"{worst * bool(self.further)}Collect predictions over a longer time{more}."
        else:
            return ()
        return (Note("C305", text),)

    @property
    def conditions(self) -> tuple[Note, ...]:
        """When the p-value is valid."""
        (sound,) = super().conditions
        of_others = "of different groups " if self.surprises.n_groups else ""
        independent = f"predictions {of_others}that are {self.lead} or more apart have independent errors"
        text = sound.text.replace("observations are independent", independent)
        many = "many groups, and " if self.surprises.n_groups else ""
        return Note(sound.code, text), Note("C105", f"there are {many}many stretches of time as long as the lead.")

    def origin_of_timed(self, n_resamples: int | str, inflation: float, *, shared: float, similar: bool = False) -> str:
        """Return the source of a null distribution of labels that share shocks of time in words."""
        own = f"as the observed ones do (inflation {inflation:.2f}), studentised"
        how = f"with a correlation of {shared:.2g}" if shared else own
        groups = " and of groups" * bool(self.surprises.n_groups)
        more = ", more of them with those of similar predictions," * similar
        drawn = f"{_in_words(n_resamples)} Monte Carlo draws of labels that share shocks of time{groups}{more} {how}"
        windows = f"{self.n_windows:,.3g} independent windows of time"
        return f"{drawn}, predictions fixed, lead {self.lead}, {windows} (asymptotic)"


def validate_resampling(resampling: Any) -> Consistency:
    """Return ``resampling`` if it is a `Consistency`."""
    must = "`resampling` must be a Consistency(...), the null hypothesis"
    require(isinstance(resampling, Consistency), must, resampling, right_type=False)
    return resampling
