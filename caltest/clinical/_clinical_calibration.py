"""Validation of predicted risks, in the terms of those who validate clinical prediction models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.clinical._clinical_curve import ClinicalCurve
from caltest.clinical._clinical_result import ClinicalCalibration
from caltest.clinical._curve_intervals import CurveSimulation, Distances
from caltest.clinical._discrimination import c_statistic
from caltest.clinical._net_benefit import NetBenefit
from caltest.clinical._overall import brier_scores, likelihood_indexes
from caltest.estimation._measure import Measure
from caltest.estimation._options import event_of
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import is_number, validate_given_problem, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import ClinicalOptions, drawing_of
from caltest.resampling.engine._run import Answer, run
from caltest.resampling.engine._stopping import FEWER_DRAWS, USUAL_DRAWS
from caltest.results import ConfidenceInterval, Note
from caltest.results._decision import level_of, rejects
from caltest.results._description import counted
from caltest.results._progress import reporting
from caltest.statistics import E50, E90, ECI, ICI, CoxScore, Emax, Omnibus, Spiegelhalter
from caltest.statistics._curve_distances import CurveDistance

_FEWEST = 10
"""Events, or other observations, with fewer of which a note says that the numbers are of little use."""
_MOST_LABELS, _FEWEST_DRAWS = 20_000_000, 199  # that are simulated for curves; draws of them


@reads_arguments
def clinical_calibration(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    thresholds: Sequence[float] | None = None,
    smoother: str = "loess",
    **options: Unpack[ClinicalOptions],
) -> ClinicalCalibration:
    r"""Return the measures with which a clinical prediction model is validated: calibration, discrimination, benefit.

    ==========================  =======================================================================================
    observed/expected           :math:`\sum y_i / \sum p_i`, as `caltest.estimation.calibration_in_the_large`
    intercept                   a with :math:`\operatorname{logit} \pi = a + \operatorname{logit} p`: in the large
    calibration slope           b in :math:`\operatorname{logit} \pi = a + b \operatorname{logit} p`, as
                                `caltest.estimation.calibration_slope`; with its intercept
    ICI, E50, E90, Emax, ECI    distances to a smooth curve, as in `caltest.statistics`
    Brier, scaled Brier         :math:`B = \frac1n \sum (y_i - p_i)^2`, and :math:`1 - B / (\bar y (1 - \bar y))`
    D, U, Q, R2                 indexes of Harrell's ``val.prob``, from the likelihood
    c-statistic                 the area under the ROC curve
    net benefit                 at each of ``thresholds``
    ==========================  =======================================================================================

    The decision is that of `caltest.calibration_test`, with the same p-value for the same ``rng`` and number of draws.
    Every number stands with its interval, and every error of calibration with its noise floor and a p-value from
    simulated labels.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        1 (or True) for an event, 0 without.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        The predicted risk of the event.
    thresholds : sequence of float, optional
        Risks, strictly between 0 and 1, from which on patients would be treated.
    smoother : {"loess", "lowess", "spline"}
        The smooth curve, as for `caltest.statistics.ICI`.
    alpha : float
        Level of the decision. Intervals have the confidence level 1 - ``alpha``.

    Returns
    -------
    ClinicalCalibration
        Prints as a report; ``result["ICI"]``, ``to_frame()`` and ``to_latex()``.

    Raises
    ------
    TypeError
        If a threshold or ``smoother`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1], a label is unknown or lengths differ; if there are more than two
        classes; if all labels are equal; if a threshold is not strictly between 0 and 1; if ``smoother`` is unknown, or
        "spline" with predictions of 0 or 1 or with ``groups``; if ``n_resamples`` < 1, or ``alpha`` is not strictly
        between 0 and 1.

    See Also
    --------
    caltest.calibration_test : The test alone.
    caltest.subgroup_tests : Whether predictions are calibrated in every site.
    caltest.hypothesis_tests.giviti_test : A polynomial of the logit instead of a smooth curve.

    Notes
    -----
    **Intervals.** Observed/expected, intercept and slope have those of their own functions. Those of the distances are
    found by simulation: they hold the distances of errors of four shapes (observed curve, logistic recalibration,
    shifts up and down) that the labels do not contradict, and their target is the distance of the curve that the same
    smoother has for infinitely many labels. A distance that is small by luck is taken for the 16 % quantile of those of
    a calibrated model, so that no error of 0 seems certain (Cowan et al. 2011, arXiv:1105.3166). The c-statistic has
    that of DeLong et al. for its logit, net benefit that of two shares (Zou and Donner 2008). That of U holds the gains
    of all intercepts and slopes that the likelihood ratio does not reject; it is unknown with weights or groups. The
    others are means of observations, whose intervals
    remove the skewness (Hall 1992). What compares predictions with the frequency of the event (scaled Brier score, D, Q
    and R2) has Student's quantile for the number of the rarer label minus 1, as the c-statistic.
    Their simulated coverage is in docs/clinical-validity.md. With ``groups`` all of them hold groups together.

    **P-values** are valid at every sample size for independent observations, as those of `caltest.calibration_test`.
    That of U is the p-value of Cox's score test, whose limit is that of the likelihood ratio in U; that of the Brier
    score is Spiegelhalter's. That of the slope approximates. For more than 20,000 observations the test makes 999 draws
    unless ``n_resamples`` says otherwise; the distances have fewer, and without weights and groups they are simulated
    for 4,096 cells (bins) of neighbouring predictions. A spline takes several times as long as the other curves.

    With fewer than 10 events, or 10 observations without, a note says that intervals are wide (C213). Those of R2
    covered 93 to 98 % of 2,000 data sets each with 3, 5 and 8 events; with a single event there are none.

    Times to an event, which may be censored, are not covered: ``y_true`` must say whether the event happened.

    References
    ----------
    B. Van Calster, D. J. McLernon, M. van Smeden, L. Wynants and E. W. Steyerberg (2019), Calibration: the Achilles
    heel of predictive analytics, BMC Medicine 17, 230.
    F. E. Harrell (2015), Regression modeling strategies, 2nd edition, Springer, section 10.9: D, U and Q.
    P. C. Austin and E. W. Steyerberg (2019), Statistics in Medicine 38: ICI, E50 and E90.
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson (1988), Comparing the areas under two or more correlated
    receiver operating characteristic curves, Biometrics 44, 837-845.
    N. A. Obuchowski (1997), Nonparametric analysis of clustered ROC curve data, Biometrics 53, 567-578.
    A. J. Vickers and E. B. Elkin (2006), Decision curve analysis, Medical Decision Making 26, 565-574.

    Examples
    --------
    Risks that are too extreme:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logit = rng.normal(-1, 1, 500)
    >>> died, risk = rng.random(500) < 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-1 - 2 * logit))
    >>> result = caltest.clinical_calibration(died, risk, thresholds=[0.2], rng=0)
    >>> slope = result["calibration_slope"]
    >>> round(slope.estimate, 2), [round(end, 2) for end in slope.confidence_interval]
    (0.66, [0.52, 0.8])
    >>> ici = result["ICI"]
    >>> round(ici.estimate, 3), round(ici.if_calibrated, 3), ici.pvalue
    (0.07, 0.025, 0.001)
    """
    cuts = validate_thresholds(thresholds)
    parts = ICI(smoother), E50(smoother), E90(smoother), Emax(smoother), ECI(smoother)
    level = options["alpha"]
    missed = level / 2
    sample = event_sample(y_true, y_prob, options)
    rng, null = validate_rng(options["rng"]), Consistency()
    with reporting(options["progress"], "simulating labels") as report:
        many = sample.n_samples * FEWER_DRAWS > _MOST_LABELS
        how = drawing_of({**options, "rng": rng}, sample, FEWER_DRAWS if many else USUAL_DRAWS)
        test = run_test(
            Omnibus(), sample, null, lens=Canonical(), classes=options["classes"], alpha=level, method="auto",
            progress=lambda done, total: report(done, 2 * total), **how
        )  # fmt: skip
        asked = how["n_resamples"].n_resamples
        how["n_resamples"] = min(asked, FEWER_DRAWS, max(_FEWEST_DRAWS, _MOST_LABELS // sample.n_samples))
        in_cells = many and sample.group is None and sample.weight is None
        view, asked_parts = LensView(sample), () if in_cells else parts
        errors = run(
            [Question(one, view) for one in (*asked_parts, Spiegelhalter(), CoxScore())], sample, null,
            progress=lambda done, total: report(total + done, 2 * total), **how
        )  # fmt: skip
        *curves, brier, cox = errors.answers
        distances = Distances.of_cells(sample, parts, how["n_resamples"], rng) if in_cells else Distances.of(curves)
        simulation = CurveSimulation.of(sample, parts, rng)
        intervals = simulation.intervals(missed)
        curve = ClinicalCurve.of(sample, simulation, missed)
    cells = sample.once(EventCells.of)
    expected = cells.predicted + cells.certain
    notes = [*test.notes, *_few_events(sample)]
    measures = [
        *_of_logistic_model(cells, level),
        *_of_curve(parts, distances, intervals, missed),
        *_of_others(sample, cells, brier, cox, missed),
    ]
    return ClinicalCalibration(
        test=test,
        measures=tuple(replace(measure, confidence_level=level_of(level)) for measure in measures),
        net_benefits=tuple(NetBenefit.at(sample, cut, missed) for cut in cuts),
        curve=curve,
        smoother=smoother,
        confidence_level=level_of(level),
        n_samples=sample.n_samples,
        n_events=int(np.count_nonzero(sample.outcome)),
        expected_events=expected,
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
        n_curve_resamples=how["n_resamples"],
        notes=tuple(dict.fromkeys(notes)),
    )


def validate_thresholds(thresholds: Any) -> list[float]:
    """Return the thresholds of net benefit; none by default."""
    if thresholds is None:
        return []
    must = "`thresholds` must be risks strictly between 0 and 1, such as [0.1, 0.2]"
    if isinstance(thresholds, str) or not np.iterable(thresholds):
        refuse(f"{must}, got {thresholds!r}.", TypeError)
    found = list(thresholds)
    for value in found:
        number = is_number(value)
        require(number and 0 < value < 1, must, value, right_type=number)
    return [float(value) for value in found]


def event_sample(y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any]) -> Sample:
    """Return the sample of predicted risks; refuse several classes and labels that are all equal."""
    prob, _ = validate_given_problem(y_true, y_prob, options["classes"])
    refuse_if(
        prob.shape[1] != 2,
        f"`y_prob` must be the predicted risk of one event, got {prob.shape[1]} classes. Validate each class by "
        "itself: `y_true == label` with its column of `y_prob`.",
    )
    sample, _ = event_of(y_true, y_prob, {**options, "lens": Canonical(), "region": None})
    _validate_labels(sample)
    return sample


def _validate_labels(sample: Sample) -> None:
    events = int(np.count_nonzero(sample.outcome))
    refuse_if(
        events in (0, sample.n_samples),
        f"`y_true` must hold events and other observations, got {counted(events, 'event')} among {sample.n_samples}: "
        "neither discrimination nor a calibration curve exists. `calibration_test` tests such predictions.",
    )


def _few_events(sample: Sample) -> list[Note]:
    events = int(np.count_nonzero(sample.outcome))
    rarer, what = min((events, "event"), (sample.n_samples - events, "observation"))
    if rarer >= _FEWEST:
        return []
    without = "" if what == "event" else " without the event"
    text = (
        f"There {'is' if rarer == 1 else 'are'} only {counted(rarer, what)}{without}: the measures say little, and "
        "their intervals are wide. About 100 of each are needed to judge calibration (Vergouwe et al. 2005)."
    )
    return [Note("C213", text)]


def _of_logistic_model(cells: EventCells, level: float) -> list[Measure]:
    """Return observed over expected, the intercept and the slope."""
    large, slope = InTheLarge.of(cells, level_of(level)), Slope.of(cells, level_of(level))
    of_large = math.nan if large.reason else large.pvalue
    of_slope = slope.pvalue if math.isfinite(slope.interval.low) or math.isfinite(slope.interval.high) else math.nan
    return [
        Measure(
            "observed_expected", "observed/expected", "calibration", large.ratio, large.ratio_interval, 1, of_large
        ),
        Measure("intercept", "intercept", "calibration", large.intercept, large.intercept_interval, 0, of_large),
        Measure("calibration_slope", "calibration slope", "calibration", slope.slope, slope.interval, 1, of_slope),
        Measure("intercept_of_slope", "intercept with this slope", "calibration", slope.intercept, UNKNOWN, 0),
    ]


def _of_curve(
    parts: Sequence[CurveDistance], found: Distances, intervals: Sequence[ConfidenceInterval], missed: float
) -> list[Measure]:
    """Return the distances to the smooth curve; their intervals begin at 0 unless the test rejects at ``missed``."""
    measures = []
    for part, value, floor, pvalue, interval in zip(
        parts, found.value, found.floor, found.pvalue, intervals, strict=True
    ):
        accepted = not math.isnan(interval.low) and not rejects(pvalue, missed)
        ends = interval._replace(low=0.0) if accepted else interval
        measures.append(Measure(part.name, part.name, "calibration", float(value), ends, float(floor), float(pvalue)))
    return measures


def _of_others(sample: Sample, cells: EventCells, brier: Answer, cox: Answer, missed: float) -> list[Measure]:
    """Return overall measures and discrimination."""
    found = brier_scores(sample, missed) | likelihood_indexes(sample, cells, missed)
    pvalues = {"brier": brier.pvalue, "unreliability_index": cox.pvalue}
    words = {
        "unreliability_index": ("U, unreliability index", "calibration"),
        "brier": ("Brier score", "overall"),
        "scaled_brier": ("scaled Brier score", "overall"),
        "r2": ("R2 (Nagelkerke)", "overall"),
        "quality_index": ("Q, quality index", "overall"),
        "discrimination_index": ("D, discrimination index", "discrimination"),
    }
    measures = []
    for name, (said, about) in words.items():
        one = found[name]
        pvalue = math.nan if math.isnan(one.estimate) else pvalues.get(name, math.nan)
        measures.append(Measure(name, said, about, one.estimate, one.interval, one.if_calibrated, pvalue))
    return [*measures, Measure("c_statistic", "c-statistic", "discrimination", *c_statistic(sample, missed))]
