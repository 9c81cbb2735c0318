"""Validation by site: the measures of every site, and what a new site would have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.clinical._curve_intervals import CurveSimulation
from caltest.clinical._discrimination import c_statistic
from caltest.clinical._random_effects import FEWEST_SITES, RandomEffects
from caltest.clinical._site_effects import c_statistics, known_effects, log_ratios, slopes
from caltest.estimation._measure import Measure
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_estimate import show_interval
from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.hypothesis_tests._subgroup_members import subgroup_members
from caltest.hypothesis_tests._subgroups import SubgroupTests, subgroup_tests
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._parts import part_of
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._validation import design_of, validate_given_problem, validate_rng
from caltest.resampling.engine._options import ClinicalOptions
from caltest.results import Note, Result, Verdict
from caltest.results._decision import DecisionWord, align_pvalue, level_of
from caltest.results._description import Description, Table, counted, join, percent
from caltest.results._picture import Picture
from caltest.statistics import ICI

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 5  # events, or other observations, of a curve
_N_CELLS = 256  # of neighbouring predictions: a mean distance needs no more


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Site(Result):
    """The measures of one site.

    Attributes
    ----------
    name : str
        What the site is called.
    n_samples, n_events : int
        Number of observations and of events.
    expected_events : float
        Sum of the predictions (times weights, whose mean is 1).
    observed_expected, calibration_slope, c_statistic, ici : Measure
        The measures with their intervals; NaN where there are too few events.
    pvalue, pvalue_adjusted : float
        P-value of the test of calibration within the site, and after Holm's correction for the number of sites.

    See Also
    --------
    calibration_by_site : The validation that returns sites.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.clinical import calibration_by_site
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = calibration_by_site(y_true, y_prob[:, 1], site=np.arange(300) % 4, n_resamples=99, rng=0)
    >>> site = result.sites[0]
    >>> site.name, site.n_samples, site.n_events, round(site.observed_expected.estimate, 2)
    ('0', 75, 39, 1.05)
    """

    name: str
    n_samples: int
    n_events: int
    expected_events: float
    observed_expected: Measure
    calibration_slope: Measure
    c_statistic: Measure
    ici: Measure
    pvalue: float
    pvalue_adjusted: float

    head: ClassVar[tuple[str, ...]] = (
        *("site", "patients", "events (expected)"),
        *("O/E (interval)", "slope (interval)", "ICI (interval)", "c", "adj. p"),
    )

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        shown = []
        for measure in (self.observed_expected, self.calibration_slope, self.ici):
            interval = show_interval(measure.confidence_interval)
            within = "" if interval == "none" else f" ({interval})"
            shown.append("" if math.isnan(measure.estimate) else f"{measure.estimate:.3g}{within}")
        c, events = self.c_statistic.estimate, f"{self.n_events:,} ({self.expected_events:.3g})"
        known = "" if math.isnan(c) else f"{c:.3g}"
        return self.name, f"{self.n_samples:,}", events, *shown, known, align_pvalue(self.pvalue_adjusted)

    def _describe(self) -> Description:
        return Description(f"Site {self.name}", (), [Table(self.head, [self.row])])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SiteCalibration(Result):
    """Result of `calibration_by_site`; iterates over its sites.

    Attributes
    ----------
    tests : SubgroupTests
        The tests of calibration within the sites, whose global p-value decides.
    sites : tuple of Site
        The measures of each site.
    summaries : tuple of RandomEffects
        Mean over sites and interval for a new site, of O/E, slope and c-statistic; empty with fewer than 3 sites.
    confidence_level : float
        Probability with which an interval contains its target.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    calibration_by_site : The validation that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.clinical import calibration_by_site
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = calibration_by_site(y_true, y_prob[:, 1], site=np.arange(300) % 4, n_resamples=99, rng=0)
    >>> [site.name for site in result], result.tests.rejected
    (['0', '1', '2', '3'], False)
    """

    tests: SubgroupTests
    sites: tuple[Site, ...]
    summaries: tuple[RandomEffects, ...]
    confidence_level: float
    notes: tuple[Note, ...] = ()

    plot = Picture("plot_sites")
    _derived: ClassVar[tuple[str, ...]] = ("pvalue", "decision", "conclusion")

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sites)

    @property
    def pvalue(self) -> float:
        """Global p-value of "calibrated within every site"."""
        return self.tests.pvalue

    @property
    def alpha(self) -> float:
        """Level of the decision."""
        return self.tests.alpha

    @property
    def rejected(self) -> bool:
        """Whether calibration within the sites is rejected."""
        return self.tests.rejected

    @property
    def decision(self) -> DecisionWord:
        """The decision of the global test."""
        return self.tests.decision

    @property
    def verdict(self) -> Verdict:
        """What the tests found."""
        return self.tests.verdict

    @property
    def conclusion(self) -> str:
        """What the tests found, in words."""
        return self.tests.conclusion

    def to_frame(self) -> pd.DataFrame:
        """Return the sites as a pandas frame, one in each row.

        Returns
        -------
        pandas.DataFrame
            Numbers of patients and events, and for each measure its estimate, ``lower`` and ``upper``;
            ``ici_if_calibrated`` is the average ICI of a calibrated model there.
        """
        import pandas as pd

        rows = []
        for site in self.sites:
            row: dict[str, Any] = {
                name: getattr(site, name)
                for name in ("name", "n_samples", "n_events", "expected_events", "pvalue", "pvalue_adjusted")
            }
            for name in ("observed_expected", "calibration_slope", "c_statistic", "ici"):
                measure = getattr(site, name)
                low, high = measure.confidence_interval
                row |= {name: measure.estimate, f"{name}_lower": low, f"{name}_upper": high}
            row["ici_if_calibrated"] = site.ici.if_calibrated
            rows.append(row)
        return pd.DataFrame(rows)

    def _describe(self) -> Description:
        tables = [Table(Site.head, [site.row for site in self.sites])]
        remarks = [
            f"Intervals hold their targets with {percent(self.confidence_level)} at each site. Column adj. p: the test "
            "of calibration within the site, after Holm's correction for the number of sites. ICI is the mean distance "
            "to a smooth curve (loess), which is above 0 by chance too: to_frame() has what a calibrated model has."
        ]
        if self.summaries:
            tables.append(Table(RandomEffects.head, [one.row for one in self.summaries]))
            remarks.append(
                "Column a new site: where the measure of another site like these would lie (random effects, normal "
                "sites). p (one value): Cochran's Q, a limit for large sites. With 20 events in each it is at most 5 % "
                "in 8 % (slope) and 9 % (c-statistic) of simulated data sets whose sites have one value."
            )
            number = len(self.sites)
            fewer = [f"{one.words} of {one.n_sites}" for one in self.summaries if one.n_sites < number]
            if fewer:
                remarks.append(
                    f"Not all {number} sites are in every mean: {join(fewer)}. The others have no such number, or none "
                    "whose variance is known, as with few events or a c-statistic of 1."
                )
        total = sum(site.n_samples for site in self.sites)
        title = f"Calibration by site ({counted(total)}, {counted(len(self.sites), 'site')})"
        return Description(title, [self.conclusion], tables, remarks, self.notes)


@reads_arguments
def calibration_by_site(
    y_true: ArrayLike, y_prob: ArrayLike, *, site: Any, **options: Unpack[ClinicalOptions]
) -> SiteCalibration:
    r"""Return calibration and discrimination of predicted risks in every site, and what a new site would have.

    Every site has its observed over expected events, calibration slope, c-statistic and ICI (loess), each with its
    interval as in `clinical_calibration`, and a test of calibration as in `caltest.subgroup_tests`. The summaries take
    the sites as a sample of sites (Snell et al. 2018): O/E on the logarithmic scale, the slope as it is, and the
    c-statistic on the logit scale, as of `RandomEffects`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        1 (or True) for an event, 0 without.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        The predicted risk of the event.
    site : array-like of shape (n_samples,)
        The site of each observation: labels of any type.
    alpha : float
        Level of the decision. Intervals have the confidence level 1 - ``alpha``.

    Returns
    -------
    SiteCalibration
        Prints as a report; ``to_frame()`` has a row for each site.

    Raises
    ------
    ValueError
        If ``site`` has another length than ``y_prob``, lacks a label, has several columns or one site only; if
        ``y_prob`` has values outside [0, 1], a label is unknown or lengths differ; if there are more than two classes;
        if ``n_resamples`` < 1, or ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    clinical_calibration : All sites together; ``groups=site`` if only sites are independent.
    caltest.subgroup_tests : The tests alone.

    Notes
    -----
    In the mean of O/E, :math:`v/(2\lambda)` events are added to each site, about half an event, where :math:`\lambda`
    and v are mean and variance of its number of events if all sites had the same intercept: so the logarithm has no
    bias of the first order, and a site without events has one too, which a note says. Its variance is
    :math:`v/\lambda^2`. Slope and logit of c are corrected for their first-order biases as well, and their variances
    are those of parameters that all sites share. Variances of single sites would follow their estimates: with 20 events
    in each of 30 sites, intervals of 95 % for the mean of O/E then contained it in 86 to 91 % of simulated data sets. A
    site with fewer than 5 events or other observations has no slope and no ICI, and one without any has no c-statistic,
    whose interval needs two of both: these are left out of the summaries, which then describe larger sites. The ICI,
    which grows with the noise of small sites, has no summary; its interval is found in up to 256 cells (bins) of
    neighbouring predictions. Intervals for a new site need many sites: with 10 of them they are known roughly, and they
    suppose that sites are normal on their scale.

    References
    ----------
    K. I. E. Snell, J. Ensor, T. P. A. Debray, K. G. M. Moons and R. D. Riley (2018), Meta-analysis of prediction model
    performance across multiple studies, Statistical Methods in Medical Research 27, 3505-3522.
    J. Hartung and G. Knapp (2001), Statistics in Medicine 20, 3875-3889.
    K. Nagashima, H. Noma and T. A. Furukawa (2019), Prediction intervals for random-effects meta-analysis: a confidence
    distribution approach, Statistical Methods in Medical Research 28, 1689-1702.
    G. M. Cordeiro and P. McCullagh (1991), Bias correction in generalized linear models, Journal of the Royal
    Statistical Society B 53, 629-643.

    Examples
    --------
    Sites whose events are more or less frequent than predicted:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hospital, logit = np.repeat(np.arange(8), 150), rng.normal(-1, 1, 1200)
    >>> died = rng.random(1200) < 1 / (1 + np.exp(-logit - rng.normal(0, 0.4, 8)[hospital]))
    >>> result = caltest.clinical.calibration_by_site(died, 1 / (1 + np.exp(-logit)), site=hospital, rng=0)
    >>> ratio = result.summaries[0]
    >>> round(ratio.estimate, 2), [round(end, 2) for end in ratio.prediction_interval]
    (1.06, [0.4, 2.81])
    """
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    refuse_if(prob.shape[1] != 2, f"`y_prob` must be the predicted risk of one event, got {prob.shape[1]} classes.")
    names, members, several = subgroup_members(site, len(prob), "site")
    refuse_if(several, "`site` must be one column; test several columns by `subgroup_tests`.")
    refuse_if(len(names) < 2, f"`site` must have two sites or more, got {names[0]!r} only.")
    level, design = options["alpha"], design_of(options, len(prob))
    options["rng"] = rng = validate_rng(options["rng"])
    for name, rows in zip(names, members, strict=True):
        nothing = design["weight"] is not None and not design["weight"][rows].any()
        refuse_if(nothing, f"every site must hold an observation of positive weight, got none in {name!r}.")
    tests = subgroup_tests(y_true, y_prob, subgroup=site, **options)
    tests = replace(tests, _what=("site", "sites"))
    samples = [
        induce(
            prob[rows],
            outcome[rows],
            **{name: None if values is None else part_of(values, rows) for name, values in design.items()},
        )
        for rows in map(np.flatnonzero, members)
    ]
    found = [_measures(sample, level, rng) for sample in samples]
    sites = tuple(
        Site(
            name=name,
            n_samples=sample.n_samples,
            n_events=int(np.count_nonzero(sample.outcome)),
            expected_events=sample.once(EventCells.of).predicted + sample.once(EventCells.of).certain,
            observed_expected=ratio,
            calibration_slope=slope,
            c_statistic=c,
            ici=ici,
            pvalue=test.pvalue,
            pvalue_adjusted=float(adjusted),
        )
        for name, sample, (ratio, slope, c, ici), test, adjusted in zip(
            names, samples, found, tests.tests, tests.pvalue_adjusted, strict=True
        )
    )
    return SiteCalibration(
        tests=tests,
        sites=sites,
        summaries=tuple(_summaries(samples, level / 2)),
        confidence_level=level_of(level),
        notes=(*tests.notes, *_notes(sites)),
    )


def _measures(sample: Sample, level: float, rng: np.random.Generator) -> tuple[Measure, ...]:
    """Return O/E, slope, c-statistic and ICI of a site."""
    cells, confidence = sample.once(EventCells.of), level_of(level)
    large, slope = InTheLarge.of(cells, confidence), Slope.of(cells, confidence)
    c, interval = c_statistic(sample, level / 2)
    made = (
        Measure("observed_expected", "O/E", "calibration", large.ratio, large.ratio_interval, 1, large.pvalue),
        Measure("calibration_slope", "slope", "calibration", slope.slope, slope.interval, 1, slope.pvalue),
        Measure("c_statistic", "c-statistic", "discrimination", c, UNKNOWN if math.isnan(c) else interval),
        _ici(sample, level / 2, rng),
    )
    return tuple(replace(one, confidence_level=confidence) for one in made)


def _ici(sample: Sample, missed: float, rng: np.random.Generator) -> Measure:
    """Return the ICI of a site, with the mean of calibrated labels; NaN with too few events."""
    events = int(np.count_nonzero(sample.outcome))
    if min(events, sample.n_samples - events) < _FEWEST:
        return Measure("ici", "ICI", "calibration", math.nan, UNKNOWN)
    simulation = CurveSimulation.of(sample, (ICI(),), rng, _N_CELLS)
    (interval,) = simulation.intervals(missed)
    floor = math.nan if simulation.floor is None else float(simulation.floor[0])
    value = float(ICI().evaluate(sample, sample.outcome))
    return Measure("ici", "ICI", "calibration", value, interval, floor)


def _summaries(samples: list[Sample], missed: float) -> Iterator[RandomEffects]:
    """Yield the random-effects summaries of what enough sites have."""
    for name, words, scale, effects in (
        ("observed_expected", "O/E", "log", log_ratios(samples)),
        ("calibration_slope", "slope", "linear", slopes(samples)),
        ("c_statistic", "c-statistic", "logit", c_statistics(samples)),
    ):
        known = known_effects(effects)
        if len(known) >= FEWEST_SITES:
            yield RandomEffects.of(name, words, known, scale=scale, missed=missed)


def _notes(sites: tuple[Site, ...]) -> list[Note]:
    """Return what is said of sites without events."""
    none = [site.name for site in sites if not site.n_events]
    if not none:
        return []
    which = f"The site {none[0]!r} has" if len(none) == 1 else f"{len(none)} sites ({none[0]!r} is the first) have"
    text = (
        f"{which} no events. In the mean of O/E a site without events counts as about half an event; it has neither a "
        "slope nor a c-statistic."
    )
    return [Note("C214", text)]
