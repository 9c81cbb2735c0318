"""Which update of a prediction model new patients call for: none, the intercept, or intercept and slope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.clinical._clinical_calibration import event_sample
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_estimate import show_interval
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._arrays import Floats
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import are_impossible
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse_if, require
from caltest.resampling import Consistency
from caltest.resampling.engine._options import ClinicalOptions, drawing_of
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import equate_pvalue, level_of, rejects
from caltest.results._description import Description, Table, counted, percent, sized
from caltest.results._progress import reporting
from caltest.statistics import CoxScore
from caltest.statistics._logistic_curves import expit
from caltest.statistics._recalibration_scores import logits_of

Update = Literal["none", "intercept", "intercept and slope"]
_RECALIBRATORS: dict[str, str] = {
    "none": "",
    "intercept": "InterceptCalibration",
    "intercept and slope": "PlattScaling",
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UpdateTest(Result):
    """Result of `update_test`.

    Attributes
    ----------
    update : {"none", "intercept", "intercept and slope"}
        The smallest update that the patients do not speak against.
    pvalue : float
        P-value of "no update is needed", from simulated labels.
    pvalue_of_slope : float
        P-value of "an update of the intercept is enough"; 1 where there is no slope.
    intercept : float
        The intercept with the slope fixed at 1.
    slope, intercept_of_slope : float
        Slope and intercept that are fitted together; NaN where there is no slope.
    intercept_interval, slope_interval : ConfidenceInterval
        The intervals of intercept (slope 1) and slope.
    alpha : float
        Level of both tests.
    n_samples, n_events : int
        Number of observations and of events.
    n_groups, weighted : int or None, bool
        Number of groups, if only these are independent, and whether observations have weights.
    n_impossible : int
        Number of labels that had been given probability 0; all other numbers are those of the other observations.
    unknown : str
        Why it cannot be told whether an update is needed; empty if it can.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    update_test : The test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> result = caltest.clinical.update_test(y_true, y_prob[:, 1], n_resamples=99, rng=0)
    >>> result.update, round(result.slope, 2)
    ('intercept and slope', 0.42)
    """

    update: Update
    pvalue: float
    pvalue_of_slope: float
    intercept: float
    slope: float
    intercept_of_slope: float
    intercept_interval: ConfidenceInterval
    slope_interval: ConfidenceInterval
    alpha: float
    n_samples: int
    n_events: int
    n_groups: int | None = None
    weighted: bool = False
    n_impossible: int = 0
    unknown: str = ""
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("conclusion", "recalibrator")

    @property
    def conclusion(self) -> str:
        """The update in words."""
        if not self.n_impossible:
            return self._called_for
        labels = counted(self.n_impossible, "label")
        others = f"What follows is about the others. {self._called_for}"
        return f"{labels} had been given probability 0, which no update mends. {others}"

    @property
    def _called_for(self) -> str:
        """What the labels that are possible call for."""
        if self.unknown:
            return f"It cannot be told whether an update is needed. {self.unknown}"
        p, of_slope = equate_pvalue(self.pvalue), equate_pvalue(self.pvalue_of_slope)
        if self.update == "none":
            return f"No update is called for ({p}). This does not prove that the model is calibrated."
        if self.update == "intercept":
            side = "too low" if self.intercept > 0 else "too high"
            if math.isinf(self.intercept):
                return (
                    f"Predicted risks are {side} ({p}), and these labels are all equal, so that no finite intercept is "
                    "the best one: collect more observations before the model is updated."
                )
            wrong = f"no wrong slope is found ({of_slope})"
            if math.isnan(self.slope):
                wrong = "there is no slope, of too few events or of predictions that are all equal"
            return f"Update the intercept by {self.intercept:.3g}: predicted risks are {side} ({p}), and {wrong}."
        if not math.isfinite(self.slope):
            return (
                f"Calibration is rejected ({p}), and the predictions separate the labels ({of_slope}), so that no "
                "finite slope is the best one: collect more observations before the model is updated."
            )
        turned = " The slope is below 0: the event is less frequent where its risk is larger." * (self.slope < 0)
        return (
            f"Update intercept and slope, to {self.intercept_of_slope:.3g} and {self.slope:.3g}: calibration is "
            f"rejected ({p}), and an update of the intercept is not enough ({of_slope}).{turned}"
        )

    @property
    def recalibrator(self) -> str:
        """Name of the method in `caltest.recalibration` that fits this update; empty where none is called for."""
        return _RECALIBRATORS[self.update]

    def updated(self, y_prob: ArrayLike) -> Floats:
        """Return the risks after the update.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples,)
            Predicted risks of the same model; 0 and 1 stay as they are.

        Returns
        -------
        numpy.ndarray
            Updated risks, ``(n_samples,)``.

        Raises
        ------
        ValueError
            If ``y_prob`` does not hold risks from 0 to 1 in one dimension, or the update has no finite number, as of
            predictions that separate the labels.
        """
        risk = np.asarray(y_prob, dtype=np.float64)
        must = "`y_prob` must hold risks from 0 to 1 in one dimension"
        require(risk.ndim == 1 and bool(((risk >= 0) & (risk <= 1)).all()), must, y_prob)
        if self.update == "none":
            return risk.copy()
        intercept, slope = self.intercept, 1.0
        if self.update == "intercept and slope":
            intercept, slope = self.intercept_of_slope, self.slope
        refuse_if(
            not (math.isfinite(intercept) and math.isfinite(slope)), f"there is no finite update. {self.conclusion}"
        )
        inner = (risk > 0) & (risk < 1)
        found = risk.copy()
        found[inner] = expit(intercept + slope * logits_of(np.column_stack([1 - risk[inner], risk[inner]])))
        return found

    def _describe(self) -> Description:
        rows = [
            ("intercept (slope 1)", f"{self.intercept:.4g}", show_interval(self.intercept_interval), "0"),
            ("slope", "" if math.isnan(self.slope) else f"{self.slope:.4g}", show_interval(self.slope_interval), "1"),
        ]
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        judge = "recalibration_study" + f" with {self.recalibrator}()" * bool(self.recalibrator)
        return Description(
            f"Update of a prediction model ({size}, {self.n_events:,} events)",
            [self.conclusion],
            [Table(("", "estimate", f"{percent(level_of(self.alpha))} interval", "if calibrated"), rows)],
            [
                "Closed test: an update that is not needed is named with a probability of at most the level. How good "
                f"the updated risks are is to be judged on other patients, as by {judge}."
            ],
            self.notes,
        )


@reads_arguments
def update_test(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ClinicalOptions]) -> UpdateTest:
    r"""Test which update of a prediction model new patients call for, by a closed test (Vergouwe et al. 2017).

    In :math:`\operatorname{logit} \pi = a + b \operatorname{logit} p` no update is a = 0, b = 1, an update of the
    intercept b = 1, and logistic recalibration leaves both free. First a = 0 and b = 1 are tested together, by Cox's
    score with simulated labels. If they are not rejected, no update is named. Otherwise b = 1 is tested with a free
    intercept, as by `caltest.estimation.calibration_slope`; if it is not rejected, the intercept is updated, otherwise
    both are. Both tests have the level ``alpha``: if no update is needed, one is named with at most this probability;
    and if the intercept is enough, so is an update of both.

    A revision of the coefficients of single predictors, the last step of Vergouwe et al., needs the predictors and is
    not among the answers.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        1 (or True) for an event, 0 without.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        The predicted risk of the event.
    alpha : float
        Level of both tests. Intervals have the confidence level 1 - ``alpha``.

    Returns
    -------
    UpdateTest
        Prints as a report; ``updated(y_prob)`` returns updated risks.

    Raises
    ------
    ValueError
        If ``y_prob`` has values outside [0, 1], a label is unknown or lengths differ; if there are more than two
        classes; if all labels are equal, or had been given probability 0; if ``n_resamples`` < 1, or ``alpha`` is not
        strictly between 0 and 1.

    See Also
    --------
    clinical_calibration : All measures of a validation.
    caltest.recalibration.InterceptCalibration : The update of the intercept, as a method.
    caltest.recalibration.PlattScaling : Intercept and slope, for targets that are a little away from 0 and 1.
    caltest.recalibration.recalibration_study : Whether repaired predictions are better, on held-out observations.

    Notes
    -----
    With fewer than 5 events or other observations, or predictions that are all equal, there is no slope, and at most
    the intercept is updated. Labels that had been given probability 0 are left out, as no update of the logit mends
    them.

    References
    ----------
    Y. Vergouwe, D. Nieboer, R. Oostenbrink, T. P. A. Debray, G. D. Murray, M. W. Kattan, H. Koffijberg, K. G. M. Moons
    and E. W. Steyerberg (2017), A closed testing procedure to select an appropriate method for updating prediction
    models, Statistics in Medicine 36, 4529-4539.

    Examples
    --------
    In a new hospital the event is more frequent, at every risk:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logit = rng.normal(-1, 1, 600)
    >>> died, risk = rng.random(600) < 1 / (1 + np.exp(-logit - 0.5)), 1 / (1 + np.exp(-logit))
    >>> result = caltest.clinical.update_test(died, risk, rng=0)
    >>> result.update, round(result.intercept, 2)
    ('intercept', 0.51)
    >>> result.updated([0.1, 0.5]).round(3).tolist()
    [0.156, 0.624]
    """
    level = options["alpha"]
    sample = event_sample(y_true, y_prob, options)
    impossible = are_impossible(sample.given, sample.outcome)
    refuse_if(impossible.all(), "`y_prob` must be above 0 for a label, got 0 for every one, which no update mends.")
    if impossible.any():
        sample = sample.take(np.flatnonzero(~impossible))
    how: dict[str, Any] = drawing_of(options, sample)
    with reporting(options["progress"], "simulating labels") as report:
        test = run_test(CoxScore(), sample, Consistency(), lens=Canonical(), alpha=level, progress=report, **how)
    cells = sample.once(EventCells.of)
    large, slope = InTheLarge.of(cells, level_of(level)), Slope.of(cells, level_of(level))
    update: Update = "none"
    if test.rejected:
        both = not math.isnan(slope.slope) and rejects(slope.pvalue, level)
        update = "intercept and slope" if both else "intercept"
    return UpdateTest(
        update=update,
        pvalue=test.pvalue,
        pvalue_of_slope=slope.pvalue,
        intercept=large.intercept,
        slope=slope.slope,
        intercept_of_slope=slope.intercept,
        intercept_interval=large.intercept_interval,
        slope_interval=slope.interval,
        alpha=level,
        n_samples=sample.n_samples,
        n_events=int(np.count_nonzero(sample.outcome)),
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
        n_impossible=int(np.count_nonzero(impossible)),
        unknown=test.conclusion if test.decision == "undecidable" else "",
        notes=test.notes,
    )
