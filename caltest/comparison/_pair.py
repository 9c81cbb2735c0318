"""Pairs of models: the test of each difference, and its adjustment for all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._difference import DifferenceResult, agreed_sign, combine_differences, difference_found
from caltest.comparison._grouped_terms import GroupedPairTerms
from caltest.comparison._judged import ComparedModel, mean_interval
from caltest.comparison._label_margins import label_outcomes
from caltest.comparison._pivots import Pivots, draw_pivots, known_groups
from caltest.comparison._u_statistics import Differences, Terms, critical_value, largest_deviations, resample, terms_of
from caltest.hypothesis_tests._evidence import Evidence
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._times import Timing, validate_timing
from caltest.resampling import correct_pvalues
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import DecisionWord, decide, level_of
from caltest.results._description import Description, counted, percent
from caltest.results._finding import Number
from caltest.results._models_verdict import ModelDifference
from caltest.results._plain import to_plain
from caltest.results._progress import Progress, part_of
from caltest.statistics._segments import FEWEST_GROUPS
from caltest.statistics._sums_in_time import SumsInTime, fewest_windows

_NORMAL = "normal, variance from Hoeffding's decomposition (asymptotic, conservative near calibration)"
_STUDENT = (
    "Student's with {:.0f} degrees of freedom, variance from as many cosines of the time (asymptotic, conservative "
    "near calibration)"
)
_BOOTSTRAP = "bootstrap samples of the observations (asymptotic, conservative near calibration)"
_SHARED = " with a shared effect of each group"
SOME_GROUPS = 20
"""With fewer effective groups the comparison is conservative, and depends on what the groups have in common."""
_NO_VARIANCE = Note("C408", "No two observations of a cell show any variance, so the interval has no ends.")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparedPair(Result):
    """Two models of a `ModelComparison`.

    Attributes
    ----------
    a, b : str
        Their names.
    test : DifferenceResult
        Test of their difference, that of a minus that of b, not adjusted for other pairs.
    pvalue_adjusted : float
        P-value adjusted for the number of pairs.
    simultaneous_interval : ConfidenceInterval
        Interval for the difference; the level is that of the intervals of all pairs together.
    calibrated : bool
        Whether calibration is rejected for neither model, after the adjustment for the number of models.
    errors : tuple of Number
        The typical error of each model with its interval, in percentage points; empty with folds.
    smallest_possible_pvalue : float
        The smallest adjusted p-value that the data and the number of draws allow.
    folds : tuple of ComparedPair
        The pair in each fold; empty without folds. Their adjusted p-values are combined, and the ends of the interval
        are means of those in the folds.

    See Also
    --------
    caltest.compare_models : The comparison that returns pairs.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> comparison = caltest.compare_models(y_true, models, n_resamples=99, rng=0)
    >>> (pair,) = comparison.pairs
    >>> pair.a, pair.b, pair.calibrated, pair.test.rejected
    ('as it is', 'flat', False, False)
    """

    a: str
    b: str
    test: DifferenceResult
    pvalue_adjusted: float
    simultaneous_interval: ConfidenceInterval
    calibrated: bool
    errors: tuple[Number, ...] = ()
    smallest_possible_pvalue: float = 0.0
    folds: tuple[ComparedPair, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("better", "decision", "finding", "conclusion")

    @property
    def better(self) -> str | None:
        """Name of the model that is better calibrated; None if no difference is shown.

        With folds, the one that is better in all folds that reject after Holm's correction.
        """
        each = self.folds or (self,)
        differences, pvalues = [one.test.difference for one in each], [one.pvalue_adjusted for one in each]
        return {1: self.b, -1: self.a}.get(agreed_sign(differences, pvalues, self.test.alpha))

    @property
    def decision(self) -> DecisionWord:
        """The decision about the difference, after the adjustment for the number of pairs."""
        return decide(self.pvalue_adjusted, self.test.alpha, self.smallest_possible_pvalue, self.test.n_expected)

    @property
    def finding(self) -> ModelDifference:
        """What is found about the pair: which model is better calibrated and by how much, if that is shown."""
        return difference_found(
            self.test,
            (self.a, self.b),
            self.errors,
            self.simultaneous_interval,
            decision=self.decision,
            better=self.better,
            pvalue=self.pvalue_adjusted,
            p_name="adjusted p",
            of_folds=correct_pvalues([fold.pvalue_adjusted for fold in self.folds]) if self.folds else (),
        )

    @property
    def conclusion(self) -> str:
        """The decision about the pair in words."""
        return self.finding.sentence

    @property
    def numbers(self) -> dict[str, Any]:
        """Difference with its intervals and p-values, the conclusion and the better model, by name."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.test.difference,
            "standard_error": self.test.standard_error,
            "statistic": self.test.statistic,
            "low": self.test.confidence_interval.low,
            "high": self.test.confidence_interval.high,
            "pvalue": self.test.pvalue,
            "low_simultaneous": self.simultaneous_interval.low,
            "high_simultaneous": self.simultaneous_interval.high,
            "pvalue_adjusted": self.pvalue_adjusted,
            "better": self.better,
            "conclusion": self.conclusion,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the pair as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`, with None for infinite ends of intervals.
        """
        return to_plain(self.numbers)

    def _describe(self) -> Description:
        return self.test.describe_as(f"{self.a} and {self.b}", self.errors, self.conclusion, self.simultaneous_interval)


@dataclass(frozen=True)
class PairDifferences:
    """The differences of several models.

    Attributes
    ----------
    single : dict of (int, int) to DifferenceResult
        The test of each pair of models, not adjusted for other pairs.
    largest : list of arrays of shape (n_resamples,)
        The largest studentised difference of all pairs on every draw, one array for each kind of draws.
    is_symmetric : bool
        Whether both ends of an interval are equally far from the difference.
    notes : tuple of Note
        Cautions about the groups or weights of all observations.
    """

    single: Mapping[tuple[int, int], DifferenceResult]
    largest: Sequence[Floats]
    is_symmetric: bool
    notes: tuple[Note, ...]


def time_of_pairs(time: Any, lead: Any, variance: str, n_samples: int) -> Timing | None:
    """Return the times of observations that models share; refuse the bootstrap of independent observations."""
    timing = validate_timing(time, lead, n_samples)
    refuse_if(
        timing is not None and variance == "bootstrap",
        'variance="bootstrap" draws independent observations, which forecasts in time are not; with `time` take '
        'variance="asymptotic".',
    )
    return timing


def compare_pairs(
    probs: Sequence[NDArray[Any]],
    samples: Sequence[Sample],
    *,
    partition: Any,
    lens: LensLike,
    paired: bool,
    rng: np.random.Generator,
    n_resamples: int,
    workers: int,
    variance: str = "asymptotic",
    joint: bool = False,
    notes: tuple[Note, ...] = (),
    progress: Progress | None = None,
    **context: Any,
) -> PairDifferences:
    """Test the difference of every pair of models; ``joint`` draws what adjusts p-values for their number.

    Bootstrap samples serve a single pair with ``variance="bootstrap"``, and all pairs together where there are neither
    groups nor weights, for which labels and signs are simulated. ``notes`` and ``context`` belong to each result.
    """
    terms = terms_of(samples, partition)
    differences, pairs = Differences.of(terms, paired=paired), list(combinations(range(len(samples)), 2))
    is_drawn, is_single = isinstance(terms[0], GroupedPairTerms), variance == "bootstrap"
    is_bootstrap = is_single or (joint and not is_drawn)
    options: Any = {"paired": paired, "n_resamples": n_resamples, "rng": rng, "workers": workers}
    drawn, pivots, largest = None, {}, []
    if is_bootstrap:
        drawn = resample(terms, differences, progress=part_of(progress, 0, 1 + is_drawn), **options)
        largest.append(largest_deviations(differences, drawn))
    if is_drawn:
        outcomes = label_outcomes(lens, probs, samples) if paired else None
        part = part_of(progress, int(is_bootstrap), 1 + is_bootstrap)
        pivots = draw_pivots(terms, pairs, outcomes=outcomes, progress=part, **options)
        largest.extend(np.abs([found.kinds for found in pivots.values()]).max(axis=0))
    single, evidence = {}, [Evidence.of(sample, lens, None) for sample in samples]
    for a, b in pairs:
        dependent = _dependence_of([terms[a], terms[b]])
        single[a, b] = _difference_result(
            differences,
            (a, b),
            drawn[a, b] if drawn is not None and is_single else None,
            pivots=pivots.get((a, b)),
            notes=(*dependent.pop("notes", ()), *notes),
            n_samples=(samples[a].n_samples, samples[b].n_samples),
            paired=paired,
            lens=lens,
            n_expected=min(evidence[a].n_expected, evidence[b].n_expected),
            subject=evidence[a].subject,
            **dependent,
            **context,
        )
    return PairDifferences(single, largest, not is_drawn, _dependence_of(terms).get("notes", ()))


def adjust_pairs(models: Sequence[ComparedModel], tested: PairDifferences, level: float) -> list[ComparedPair]:
    """Return the pairs with p-values and intervals that hold for all of them together (max-T)."""
    pairs = []
    for (a, b), single in tested.single.items():
        joint = [critical_value(kind, abs(single.statistic), level) for kind in tested.largest]
        pvalue, reach = (max(values) for values in zip(*joint, strict=True))
        # Never less than that of the pair alone, which may be infinite.
        above = single.confidence_interval.high - single.difference
        below = above if tested.is_symmetric else single.difference - single.confidence_interval.low
        below, above = (max(far, reach * single.standard_error) for far in (below, above))
        pairs.append(
            ComparedPair(
                a=models[a].name,
                b=models[b].name,
                test=single,
                pvalue_adjusted=max(pvalue, single.pvalue),
                simultaneous_interval=ConfidenceInterval(single.difference - below, single.difference + above),
                calibrated=not (models[a].rejected or models[b].rejected),
                errors=(models[a].typical_error, models[b].typical_error),
                smallest_possible_pvalue=max(
                    single.smallest_possible_pvalue, *(1 / (len(kind) + 1) for kind in tested.largest)
                ),
            )
        )
    return pairs


def combine_pairs(names: Sequence[str], pairs: Sequence[ComparedPair], *, calibrated: bool) -> ComparedPair:
    """Return a pair as all folds show it."""
    first, sizes = pairs[0], [pair.test.n_samples[0] for pair in pairs]
    return ComparedPair(
        a=first.a,
        b=first.b,
        test=combine_differences(names, [pair.test for pair in pairs], first.test.alpha),
        pvalue_adjusted=CombinedPValues(len(pairs)).pvalue([pair.pvalue_adjusted for pair in pairs]),
        simultaneous_interval=mean_interval(sizes, [pair.simultaneous_interval for pair in pairs]),
        calibrated=calibrated,
        smallest_possible_pvalue=CombinedPValues(len(pairs)).pvalue([pair.smallest_possible_pvalue for pair in pairs]),
        folds=tuple(pairs),
    )


def _difference_result(
    differences: Differences,
    pair: tuple[int, int],
    deviation: Floats | None,
    *,
    pivots: Pivots | None = None,
    too_few: bool = False,
    notes: tuple[Note, ...] = (),
    **context: Any,
) -> DifferenceResult:
    """Return the result for a pair of models; ``too_few`` groups or windows of time decide nothing.

    Bootstrap deviations ``(n_resamples,)`` replace the normal limit, and so do the pivots of groups or weights; with
    both, the larger p-value and the longer interval are taken.
    """
    a, b = (float(differences.estimate[i]) for i in pair)
    error = math.sqrt(differences.variance[pair])
    difference = a - b if error > 0 else 0.0
    z = difference / error if error > 0 else 0.0
    level = context["confidence_level"]
    is_normal = math.isinf(differences.degrees)
    origin = _NORMAL if is_normal else _STUDENT.format(differences.degrees)
    pvalue, reach = _limit(z, level, differences.degrees)
    below, smallest, n_resamples = reach * error, 0.0, 0 if deviation is None else len(deviation)
    if deviation is not None:
        origin = f"{len(deviation)} {_BOOTSTRAP}"
        drawn = critical_value(np.abs(deviation), abs(difference), level)
        if not math.isfinite(drawn[1]):
            notes = (*notes, _too_few_draws(len(deviation), "bootstrap sample", level))
            smallest = 1 / (len(deviation) + 1)
        # Observations that show no variance show none when they are resampled.
        pvalue, below = np.maximum(drawn, (pvalue, below)).tolist() if differences.unreliable[pair] else drawn
    above = below
    if pivots is not None:
        n_resamples = pivots.n_resamples
        # Labels that hardly vary show neither their variance nor that of simulated ones: the normal limit is the least.
        normal = deviation is not None or differences.unreliable[pair]
        least = (pvalue, below) if normal else (0.0, 0.0)
        is_grouped = context.get("n_groups") is not None
        origin = _drawn_origin(origin, pivots, is_bootstrap=deviation is not None, is_grouped=is_grouped)
        both = pivots.reach(level)
        pvalue = max(least[0], pivots.pvalue(z))
        below, above = (max(least[1], far * error) if error > 0 else 0.0 for far in both)
        if not math.isfinite(sum(both)):
            notes = (*notes, _too_few_draws(pivots.n_resamples, "draw", level))
            smallest = max(smallest, 1 / (pivots.n_resamples + 1))
    if too_few:
        pvalue, below, above, smallest = 1.0, math.inf, math.inf, 1.0
    if not differences.informative[pair]:
        below, above, notes = math.inf, math.inf, (*notes, _NO_VARIANCE)
    return DifferenceResult(
        difference=difference,
        standard_error=error,
        statistic=z,
        pvalue=max(pvalue, SMALLEST_PVALUE),
        confidence_interval=ConfidenceInterval(difference - below, difference + above),
        estimate_a=a,
        estimate_b=b,
        method="bootstrap" if deviation is not None else "asymptotic" if pivots is None else "simulation",
        origin=origin,
        smallest_possible_pvalue=smallest,
        n_resamples=n_resamples,
        notes=notes,
        **context,
    )


def _limit(z: float, level: float, degrees: float) -> tuple[float, float]:
    """Return the two-sided p-value and the critical value of the normal distribution, or of Student's."""
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    if math.isinf(degrees):
        return float(2 * ndtr(-abs(z))), float(ndtri((1 + level) / 2))
    return float(2 * stdtr(degrees, -abs(z))), float(stdtrit(degrees, (1 + level) / 2))


def _drawn_origin(bootstrap: str, pivots: Pivots, *, is_bootstrap: bool, is_grouped: bool) -> str:
    """Return where the p-value of groups or weights comes from, in words."""
    has_signs = len(pivots.kinds) > 1
    kind = f"simulated labels{_SHARED if is_grouped else ''}{', and random signs of groups' if has_signs else ''}"
    larger = "; the larger p-value is taken" if has_signs or is_bootstrap else ""
    return f"{f'{bootstrap}, and ' if is_bootstrap else ''}{pivots.n_resamples:,} draws of {kind}{larger}"


def _dependence_of(terms: Sequence[Terms]) -> dict[str, Any]:
    """Return what depends on each other in the observations of two models, and a caution if that is too much.

    This is the number of groups, or the lead of forecasts with the number of windows as long as it.
    """
    if isinstance(terms[0], SumsInTime):
        return _windows_of(terms[0])
    drawn = [part for part in terms if isinstance(part, GroupedPairTerms)]
    if not drawn:
        return {}
    few = min(drawn, key=known_groups)
    worth, is_grouped = known_groups(few), any(part.is_grouped for part in drawn)
    found: dict[str, Any] = {"n_groups": (drawn[0].n_groups, drawn[-1].n_groups)} if is_grouped else {}
    where = "in cells (bins) of several " + ("groups" if is_grouped else "observations")
    if worth < FEWEST_GROUPS:
        what = counted(few.n_groups, "group") if is_grouped else f"The weights of {few.n_groups:,} observations"
        unit = "groups of equal size" if is_grouped else "observations of equal weight"
        known = f"{what} are worth {worth:.1f} {unit} {where}."
        advice = (
            "Collect more groups, or take fewer cells if predictions hardly vary within groups."
            if is_grouped
            else "Check whether the weights are meant."
        )
        text = (
            f"{known} Fewer than {FEWEST_GROUPS} do not show how uncertain the difference is: the p-value is 1, the "
            f"smallest possible one, and there is no interval. {advice}"
        )
        found |= {"too_few": True, "notes": (Note("C303" if is_grouped else "C304", text),)}
    elif is_grouped and worth < SOME_GROUPS:
        text = (
            f"{few.n_groups:,} groups are worth {worth:.1f} groups of equal size {where}. With fewer than "
            f"{SOME_GROUPS} the p-value and the interval suppose that groups which were not observed are "
            "like the observed ones."
        )
        found["notes"] = (Note("C303", text),)
    return found


def _windows_of(terms: SumsInTime) -> dict[str, Any]:
    """Return the lead of forecasts and the number of windows as long as it, and a caution if these are too few."""
    timing, needed = terms.timing, fewest_windows()
    found: dict[str, Any] = {"lead": timing.text, "n_windows": timing.n_windows}
    if terms.is_known:
        return found
    text = (
        f"The predictions span {timing.n_windows:.3g} times the lead ({timing.text}). Fewer than {needed} do not show "
        "how uncertain the difference is: the p-value is 1, the smallest possible one, and there is no interval. "
        "Collect predictions of a longer time."
    )
    return {**found, "too_few": True, "notes": (Note("C305", text),)}


def _too_few_draws(n_resamples: int, draw: str, confidence_level: float) -> Note:
    """Return the caution that no p-value can reach the level, so that the interval is infinite."""
    enough = math.ceil(round(1 / level_of(confidence_level), 9)) - 1
    number = counted(n_resamples, draw)
    return Note(
        "C205",
        f"With {number} no p-value can be below {1 / (n_resamples + 1):.2g}, so the "
        f"{percent(confidence_level)} interval has no ends. Take {enough} {draw}s or more.",
    )
