"""Internal validation: how much better a model looks on its own patients than on new ones, by resampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.clinical._discrimination import concordance
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._frames import read_observations, refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse_if, require
from caltest.predictions.inputs._validation import SeedLike, one_of, refuse_missing, validate_count, validate_rng
from caltest.results import Result
from caltest.results._description import Description, Table, counted
from caltest.results._progress import Progress, reporting
from caltest.statistics._curve_distances import E90, ICI, CurveDistance, Emax, fit_curve
from caltest.statistics._recalibration_scores import logits

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 10  # events, and observations without
_BOOTSTRAP, _REPEATS, _N_FOLDS = 200, 20, 10
_WORDS = {
    "intercept": "intercept (slope 1)",
    "calibration_slope": "calibration slope",
    "intercept_of_slope": "intercept with this slope",
    "unreliability_index": "U, unreliability index",
    "brier": "Brier score",
    "r2": "R2 (Nagelkerke)",
    "quality_index": "Q, quality index",
    "discrimination_index": "D, discrimination index",
    "c_statistic": "c-statistic",
}


@dataclass(frozen=True, eq=False, repr=False)
class CorrectedMeasure(Result):
    """One measure of an internal validation.

    Attributes
    ----------
    name, words : str
        The measure, in code and in words.
    apparent : float
        Its value for the model on the patients that it was fitted to.
    optimism : float
        How much better it is on average there than on new patients: apparent minus new.
    corrected : float
        The apparent value minus the optimism, which estimates the value on new patients.
    monte_carlo_error : float
        Standard error of ``corrected`` that is due to the number of resamples; NaN of a single one, and of ICI, E90
        and Emax.
    n_used : int
        Number of resamples in which the measure is finite.
    training, test : float
        Means over resamples of the models of resamples: on their resample, and on the patients that test them. NaN of
        ICI, E90 and Emax, whose curve is corrected at each prediction instead.

    See Also
    --------
    optimism_corrected : The validation that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltest.clinical import optimism_corrected
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> y = rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))
    >>> result = optimism_corrected(LogisticRegression(), x, y, n_resamples=5, rng=0)
    >>> measure = result["calibration_slope"]
    >>> measure.corrected == measure.apparent - measure.optimism
    True
    """

    name: str
    words: str
    apparent: float
    optimism: float
    corrected: float
    monte_carlo_error: float = math.nan
    n_used: int = 0
    training: float = math.nan
    test: float = math.nan

    head: ClassVar[tuple[str, ...]] = ("", "apparent", "optimism", "corrected", "MC error", "resamples")

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        numbers = (self.apparent, self.optimism, self.corrected, self.monte_carlo_error)
        shown = ("" if math.isnan(value) else f"{0.0 if abs(value) < 1e-12 else value:.4g}" for value in numbers)
        return self.words, *shown, f"{self.n_used:,}"

    def _describe(self) -> Description:
        return Description(f"{self.words}, corrected for optimism", (), [Table(self.head, [self.row])])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OptimismCorrection(Result):
    """Result of `optimism_corrected`; iterates over its measures, ``result[name]`` is one.

    Attributes
    ----------
    measures : tuple of CorrectedMeasure
        Apparent and corrected values.
    estimator : str
        The model.
    validation : {"bootstrap", "cross-validation"}
        How it was validated.
    n_resamples : int
        Number of resamples, or of repeats of the cross-validation.
    n_redrawn : int
        Number of resamples that were drawn again because they lacked events or observations without.
    n_samples, n_events : int
        Number of observations and of events.
    event : str
        The label of the event, the larger one of two.

    See Also
    --------
    optimism_corrected : The validation that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltest.clinical import optimism_corrected
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> y = rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))
    >>> result = optimism_corrected(LogisticRegression(), x, y, n_resamples=5, rng=0)
    >>> result["c_statistic"].name, result.n_resamples, result.n_samples
    ('c_statistic', 5, 200)
    """

    measures: tuple[CorrectedMeasure, ...]
    estimator: str
    validation: str
    n_resamples: int
    n_redrawn: int
    n_samples: int
    n_events: int
    event: str

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def __iter__(self) -> Iterator[CorrectedMeasure]:
        return iter(self.measures)

    def __getitem__(self, name: str) -> CorrectedMeasure:
        return {one.name: one for one in self.measures}[name]

    @property
    def conclusion(self) -> str:
        """What is expected on new patients, in words."""
        slope, c = self["calibration_slope"], self["c_statistic"]
        found = f"a c-statistic of {c.corrected:.3g} instead of {c.apparent:.3g}"
        if math.isfinite(slope.corrected):
            found = f"a calibration slope of {slope.corrected:.3g} and {found}"
        return f"On new patients like these, a model that is made in the same way is expected to have {found}."

    def to_frame(self) -> pd.DataFrame:
        """Return the measures as a pandas frame, one in each row.

        Returns
        -------
        pandas.DataFrame
            The attributes of each `CorrectedMeasure`.
        """
        import pandas as pd

        return pd.DataFrame([one.to_dict() for one in self.measures])

    def _describe(self) -> Description:
        of = counted(self.n_resamples, "resample" if self.validation == "bootstrap" else "repeat")
        remarks = [
            "Corrected values estimate those of new patients from the same place, for models that are made in the same "
            "way. They have no intervals, and do not show how such a model does in other places."
        ]
        if self.event not in {"1", "1.0", "True"}:
            remarks.append(f"Events are the labels {self.event!r}, the larger one of two.")
        if self.n_redrawn:
            remarks.append(f"{counted(self.n_redrawn, 'resample')} without events, or with events only: drawn again.")
        fewer = [one.words for one in self.measures if one.n_used < self.n_resamples]
        if fewer:
            remarks.append(
                f"Not finite in all resamples, and averaged over the others: {', '.join(fewer)}. Predictions of 0 or 1 "
                "were wrong, or separated the labels."
            )
        size = f"{counted(self.n_samples)}, {self.n_events:,} events"
        title = f"Internal validation of {self.estimator} ({size}; {self.validation}, {of})"
        return Description(
            title, [self.conclusion], [Table(CorrectedMeasure.head, [one.row for one in self.measures])], remarks
        )


@reads_arguments
def optimism_corrected(
    estimator: Any,
    X: Any,  # noqa: N803
    y: ArrayLike,
    *,
    validation: str = "bootstrap",
    n_resamples: int | None = None,
    smoother: str = "loess",
    rng: SeedLike = None,
    progress: bool | Progress | None = None,
) -> OptimismCorrection:
    r"""Return calibration and discrimination of a model on its own patients, corrected for optimism.

    The model is fitted to all patients, whose measures are the *apparent* ones. By bootstrap (Harrell, Lee and Mark
    1996), as ``rms::validate`` in R, a clone is fitted to each resample of the patients, and the optimism is the mean
    difference of its measures on the resample and on all patients. By cross-validation, clones are fitted without one
    of 10 stratified folds at a time and predict it; the corrected measures are those of the predictions of all folds
    together, averaged over repeats with other folds.

    Parameters
    ----------
    estimator : classifier
        Anything that scikit-learn can clone, with ``fit``, ``predict_proba`` and ``classes_``. It must hold every step
        that looks at the labels, such as a selection of features; otherwise the optimism of that step is missed.
    X : array-like, sparse matrix or data frame
        Features of the patients.
    y : array-like of shape (n_samples,)
        Two labels; the event is the larger one, such as 1 or True.
    validation : {"bootstrap", "cross-validation"}
        How new patients are imitated.
    n_resamples : int, optional
        Number of resamples, 200 by default, or of repeats of cross-validation, 20 by default.
    smoother : {"loess", "lowess", "spline"}
        The smooth curve of ICI, E90 and Emax, as for `caltest.statistics.ICI`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of resamples and folds; that of the estimator is its ``random_state``.
    progress : bool or callable, optional
        True shows a bar with the time left, False nothing; a function is called with ``(done, total)``. By default a
        bar on a terminal, or as in `caltest.config_context`.

    Returns
    -------
    OptimismCorrection
        Prints as a table; ``result["calibration_slope"].corrected`` is one number.

    Raises
    ------
    TypeError
        If ``estimator`` has no ``predict_proba``, or another argument has a wrong type.
    ValueError
        If ``y`` has not two labels, fewer than 10 events or fewer than 10 observations without, or another length than
        ``X``; if ``validation`` or ``smoother`` is unknown, or ``n_resamples`` < 1.

    See Also
    --------
    clinical_calibration : Other patients, with intervals.
    caltest.cross_val_calibration : A test of calibration of every fold.

    Notes
    -----
    Observations are resampled as if they were independent. D and R2 are defined as in `rms`: they belong to the
    predictions after logistic recalibration, so that :math:`D = (2 (\ell_2 - \ell_0) - 1) / n`,
    :math:`U = (2 (\ell_2 - \ell_1) - 2) / n` and Q = D - U with the log-likelihoods of `clinical_calibration`. Dxy is
    2 c - 1. ICI, E90 and Emax are those of the smooth curve from which the mean optimism at each prediction was
    subtracted, as by ``rms::calibrate``; they keep the noise of a curve of so many patients. The Emax of ``validate``
    is that of the corrected logistic curve instead.

    A resample without events is drawn again, which is reported. A measure that is not finite, such as the slope where
    predictions separate the labels, is left out and counted. For a model that fits its labels exactly, such as a random
    forest, the bootstrap has too little optimism, because most patients of a resample are also tested: use
    cross-validation. There the slope of all folds together is that of slightly different models.

    References
    ----------
    F. E. Harrell, K. L. Lee and D. B. Mark (1996), Multivariable prognostic models, Statistics in Medicine 15, 361-387.
    E. W. Steyerberg, F. E. Harrell, G. J. J. M. Borsboom, M. J. C. Eijkemans, Y. Vergouwe and J. D. F. Habbema (2001),
    Internal validation of predictive models, Journal of Clinical Epidemiology 54, 774-781.

    Examples
    --------
    A logistic regression of 10 features, of which 3 matter, for 150 patients:

    >>> import caltest
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(150, 10))
    >>> died = rng.random(150) < 1 / (1 + np.exp(-x[:, :3].sum(axis=1)))
    >>> model = LogisticRegression(C=np.inf, max_iter=1000)
    >>> result = caltest.clinical.optimism_corrected(model, x, died, n_resamples=50, rng=0)
    >>> slope = result["calibration_slope"]
    >>> round(slope.apparent, 2), round(slope.corrected, 2)
    (1.0, 0.72)
    """
    require(hasattr(estimator, "predict_proba"), "`estimator` must have `predict_proba`", estimator, right_type=False)
    from sklearn.model_selection import StratifiedKFold
    from sklearn.utils import _safe_indexing, indexable

    one_of("bootstrap", "cross-validation")(validation, "validation")
    boot = validation == "bootstrap"
    number = (_BOOTSTRAP if boot else _REPEATS) if n_resamples is None else validate_count(n_resamples, "n_resamples")
    distances = ICI(smoother), E90(smoother), Emax(smoother)
    refuse_other_indexes({"X": X, "y": y})
    features, label = indexable(X, np.asarray(read_observations(y, "y")))
    event = _validate_labels(label)
    generator = validate_rng(rng)

    def predicted(train: Integers, test: Integers) -> Floats:
        return _predict(estimator, _safe_indexing(features, train), label[train], _safe_indexing(features, test))

    everyone, redrawn = np.arange(len(event)), 0
    risk = predicted(everyone, everyone)

    def measured(rows: Integers, prob: Floats) -> Floats:
        sample = induce(np.column_stack([1 - prob, prob]), event[rows].astype(np.int64))
        return np.concatenate([_measures(sample), _deviations(sample, smoother, risk)])

    apparent = measured(everyone, risk)
    training, test = np.empty((2, number, len(apparent)))
    with reporting(progress, "fitting models") as report:
        for k in range(number):
            if boot:
                rows, again = _resample(event, generator)
                redrawn += again
                prob = predicted(rows, np.concatenate([rows, everyone]))
                training[k], test[k] = measured(rows, prob[: len(rows)]), measured(everyone, prob[len(rows) :])
            else:
                prob = np.empty(len(event))
                folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=int(generator.integers(2**31)))
                for train, held in folds.split(event, event):
                    prob[held] = predicted(train, held)
                training[k], test[k] = apparent, measured(everyone, prob)
            report(k + 1, number)
    single, curve = np.split(apparent, [len(_WORDS)])
    optimism = (training[:, len(_WORDS) :] - test[:, len(_WORDS) :]).mean(axis=0)
    measures = [_corrected(*one) for one in zip(_WORDS.items(), single, training.T, test.T, strict=False)]
    measures += [_of_curve(one, curve, optimism, number) for one in distances]
    return OptimismCorrection(
        measures=tuple(measures),
        estimator=type(estimator).__name__,
        validation=validation,
        n_resamples=number,
        n_redrawn=redrawn,
        n_samples=len(event),
        n_events=int(event.sum()),
        event=str(label[event][0]),
    )


def _validate_labels(label: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which observations have the event."""
    must = "`y` must hold one label of each observation"
    require(label.ndim == 1, must, f"an array of shape {label.shape}")
    refuse_missing(label, "y")
    known = np.unique(label)
    refuse_if(len(known) != 2, f"`y` must hold two labels, with an event and without, got {len(known)}.")
    event = np.asarray(label == known[1])
    fewest = min(int(event.sum()), int((~event).sum()))
    refuse_if(
        fewest < _FEWEST,
        f"`y` must have {_FEWEST} events and {_FEWEST} observations without at least, got {int(event.sum())} and "
        f"{int((~event).sum())}: resamples of fewer do not show the optimism.",
    )
    return event


def _predict(estimator: Any, features: Any, label: NDArray[Any], new: Any) -> Floats:
    """Return the risks that a clone predicts for new observations after it was fitted."""
    from sklearn.base import clone

    model = clone(estimator).fit(features, label)
    return np.asarray(model.predict_proba(new), dtype=np.float64)[:, 1]  # classes are sorted


def _resample(event: NDArray[np.bool_], generator: np.random.Generator) -> tuple[Integers, int]:
    """Return observations that are drawn with replacement, and how many draws had one label only."""
    again = 0
    while True:
        rows = generator.integers(len(event), size=len(event))
        if 0 < event[rows].sum() < len(event):
            return rows, again
        again += 1


def _measures(sample: Sample) -> Floats:
    """Return the measures of `_WORDS`; NaN or infinite where there is none."""
    cells, number = sample.once(EventCells.of), sample.n_samples
    intercept, slope = cells.raw_fit
    happened, risk, odds = sample.outcome > 0, sample.event, logits(sample)
    share = float(happened.mean())
    of_none = number * (share * math.log(share) + (1 - share) * math.log1p(-share))

    def likelihood(values: Floats) -> float:
        return -float(np.logaddexp(0.0, np.where(happened, -values, values)).sum())

    refitted = likelihood(intercept + slope * odds) if math.isfinite(slope) and slope else math.nan
    gain, miss = 2 * (refitted - of_none), 2 * (refitted - likelihood(odds))
    discrimination, unreliability = (gain - 1) / number, (miss - 2) / number
    return np.array(
        [
            cells.intercept(),
            slope,
            intercept,
            unreliability,
            np.square(happened - risk).mean(),
            math.expm1(-gain / number) / math.expm1(2 * of_none / number),
            discrimination - unreliability,
            discrimination,
            concordance(risk, happened.astype(np.float64), (~happened).astype(np.float64)),
        ]
    )


def _deviations(sample: Sample, smoother: str, grid: Floats) -> Floats:
    """Return smooth curve minus prediction, where predictions have values; beyond the ends as at the ends."""
    curve = sample.of_predictions(fit_curve, smoother, None).fitted(sample.outcome[None] * 1.0)[0]
    place, first = np.unique(sample.event, return_index=True)
    return np.interp(grid, place, curve[first] - place)


def _corrected(named: tuple[str, str], apparent: float, before: Floats, after: Floats) -> CorrectedMeasure:
    """Return a measure minus the mean of its optimism, from training and test values ``(n_resamples,)``."""
    used = np.isfinite(before) & np.isfinite(after) & np.isfinite(apparent)
    n_used = int(used.sum())
    trained, tested = (float(one[used].mean()) if n_used else math.nan for one in (before, after))
    error = float(np.std(before[used] - after[used], ddof=1)) / math.sqrt(n_used) if n_used > 1 else math.nan
    return CorrectedMeasure(
        *named,
        apparent=float(apparent) if np.isfinite(apparent) else math.nan,
        optimism=trained - tested,
        corrected=float(apparent) - (trained - tested) if n_used else math.nan,
        monte_carlo_error=error,
        n_used=n_used,
        training=trained,
        test=tested,
    )


def _of_curve(distance: CurveDistance, deviation: Floats, optimism: Floats, number: int) -> CorrectedMeasure:
    """Return a distance of the curve minus the mean of its optimism at each prediction."""
    apparent, corrected = (
        float(distance.read(np.abs(each[None]), None)[0]) for each in (deviation, deviation - optimism)
    )
    return CorrectedMeasure(distance.name, distance.name, apparent, apparent - corrected, corrected, n_used=number)
