"""The difference in calibration of two models, with its interval and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._grouped_terms import GroupedPairTerms
from caltest.comparison._pivots import Pivots, known_groups
from caltest.comparison._u_statistics import Differences, Terms, critical_value
from caltest.predictions._lens import LensLike
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import Decision, equate_pvalue, level_of
from caltest.results._description import Description, Table, percent
from caltest.results._note import PAGE
from caltest.statistics._segments import FEWEST_GROUPS

TARGET = (
    "the difference of the squared l2 calibration errors, each within the cells (bins) of the model's own partition"
)
_NORMAL = "normal, variance from Hoeffding's decomposition (asymptotic, conservative near calibration)"
_BOOTSTRAP = "bootstrap samples of the observations (asymptotic, conservative near calibration)"
_SHARED = " with a shared effect of each group"
SOME_GROUPS = 20
"""With fewer effective groups the comparison is conservative, and depends on what the groups have in common."""
_NO_VARIANCE = Note("C408", "No two observations of a cell show any variance, so the interval has no ends.")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DifferenceResult(Decision, Result):
    """Result of `paired_test` and `unpaired_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    difference : float
        Debiased squared l2 calibration error of model A minus that of model B; positive where B is better calibrated.
    standard_error : float
        Its standard error.
    statistic : float
        ``difference / standard_error``; 0 for models that do not differ.
    pvalue : float
        Two-sided p-value of the hypothesis that both models are equally miscalibrated.
    confidence_interval : ConfidenceInterval
        Interval for the difference: ``low`` and ``high``.
    confidence_level : float
        Level of the interval.
    estimate_a, estimate_b : float
        Debiased squared l2 calibration error of each model.
    paired : bool
        Whether both models were evaluated on the same observations.
    method : {"asymptotic", "bootstrap", "simulation"}
        How the null distribution was found; "simulation", for groups and weights, is by simulated labels and random
        signs of groups.
    origin : str
        Where the p-value and the interval come from.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples : tuple of int
        Number of observations of each model.
    n_groups : tuple of int or None
        Number of groups of each model's observations, if only groups are independent.
    smallest_possible_pvalue : float
        The smallest p-value that any labels could have; 1 with fewer than 5 effective groups or observations.
    notes : tuple of Note
        Cautions.
    """

    difference: float
    standard_error: float
    statistic: float
    pvalue: float
    confidence_interval: ConfidenceInterval
    confidence_level: float
    estimate_a: float
    estimate_b: float
    paired: bool
    method: str
    origin: str
    lens: LensLike
    lens_name: str
    n_samples: tuple[int, int]
    n_groups: tuple[int, int] | None = None
    smallest_possible_pvalue: float = 0.0
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("target", "alpha", "rejected", "decision", "conclusion")

    @property
    def target(self) -> str:
        """What is estimated, in words."""
        return TARGET

    @property
    def alpha(self) -> float:  # type: ignore[override]
        """Level of the test, 1 minus that of the interval."""
        return level_of(self.confidence_level)

    @property
    def condition(self) -> Note:
        """When the p-value is valid."""
        what = "observations" if self.n_groups is None else "groups of observations"
        return Note("C101", f"{what} are independent and no label was used to make the predictions.")

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        found = f"at the {percent(self.alpha)} level ({equate_pvalue(self.pvalue)})"
        if self.decision == "undecidable":
            least = f"no labels could have a p-value below {self.smallest_possible_pvalue:.2g}"
            return f"Whether the models differ in calibration is undecidable {found}: {least}."
        if not self.rejected:
            proof = "This does not prove that the models are equally calibrated."
            return f"No difference in calibration is shown {found}. {proof}"
        better, worse = ("B", "A") if self.difference > 0 else ("A", "B")
        return f"Model {better} is better calibrated than model {worse} {found}."

    def _describe(self) -> Description:
        names = "model A", "model B"
        return self.describe_as("Calibration of two models", names, self.conclusion, self.confidence_interval)

    def describe_as(
        self, title: str, names: tuple[str, str], conclusion: str, interval: ConfidenceInterval
    ) -> Description:
        """Return a description with other names of the models, another conclusion and another interval."""
        a, b = names
        size = str(self.n_samples[0]) if self.paired else f"{self.n_samples[0]} and {self.n_samples[1]}"
        rows = [
            (a, f"{self.estimate_a:.4g}", ""),
            (b, f"{self.estimate_b:.4g}", ""),
            ("first - second", f"{self.difference:.4g}", str(interval)),
        ]
        return Description(
            f"{title} ({self.lens_name}, {size} observations)",
            [conclusion],
            [Table(("", "squared l2 error", f"{percent(self.confidence_level)} interval"), rows)],
            [
                f"Target: {self.target} ({'the same' if self.paired else 'different'} observations).",
                f"Statistic: z = {self.statistic:.4g}, with standard error {self.standard_error:.3g}.",
                f"Null distribution: {self.origin}.",
                f"Valid if {self.condition.text} [{self.condition.code}: {PAGE}]",
            ],
            self.notes,
        )


def difference_result(
    differences: Differences,
    pair: tuple[int, int],
    deviation: NDArray[np.float64] | None,
    *,
    pivots: Pivots | None = None,
    notes: tuple[Note, ...] = (),
    **context: Any,
) -> DifferenceResult:
    """Return the result for a pair of models.

    Bootstrap deviations ``(n_resamples,)`` replace the normal limit, and so do the pivots of groups or weights; with
    both, the larger p-value and the longer interval are taken.
    """
    from scipy.special import ndtr, ndtri

    a, b = (float(differences.estimate[i]) for i in pair)
    error = math.sqrt(differences.variance[pair])
    difference = a - b if error > 0 else 0.0
    z = difference / error if error > 0 else 0.0
    level = context["confidence_level"]
    origin, pvalue, below = _NORMAL, float(2 * ndtr(-abs(z))), float(ndtri((1 + level) / 2)) * error
    if deviation is not None:
        origin = f"{len(deviation)} {_BOOTSTRAP}"
        drawn = critical_value(np.abs(deviation), abs(difference), level)
        if not math.isfinite(drawn[1]):
            notes = (*notes, _too_few_draws(len(deviation), "bootstrap sample", level))
        # Observations that show no variance show none when they are resampled.
        pvalue, below = np.maximum(drawn, (pvalue, below)).tolist() if differences.unreliable[pair] else drawn
    above, smallest = below, 0.0
    if pivots is not None:
        # Labels that hardly vary show neither their variance nor that of simulated ones: the normal limit is the least.
        normal = deviation is not None or differences.unreliable[pair]
        least = (pvalue, below) if normal else (0.0, 0.0)
        is_grouped = context.get("n_groups") is not None
        origin = _drawn_origin(origin, pivots, is_bootstrap=deviation is not None, is_grouped=is_grouped)
        reach = pivots.reach(level)
        pvalue = max(least[0], pivots.pvalue(z))
        below, above = (max(least[1], far * error) if error > 0 else 0.0 for far in reach)
        if not math.isfinite(sum(reach)):
            notes = (*notes, _too_few_draws(pivots.n_resamples, "draw", level))
            smallest = 1 / (pivots.n_resamples + 1)
        if pivots.degrees + 1 < FEWEST_GROUPS:
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
        notes=notes,
        **context,
    )


def _drawn_origin(bootstrap: str, pivots: Pivots, *, is_bootstrap: bool, is_grouped: bool) -> str:
    """Return where the p-value of groups or weights comes from, in words."""
    has_signs = len(pivots.kinds) > 1
    kind = f"simulated labels{_SHARED if is_grouped else ''}{', and random signs of groups' if has_signs else ''}"
    larger = "; the larger p-value is taken" if has_signs or is_bootstrap else ""
    return f"{f'{bootstrap}, and ' if is_bootstrap else ''}{pivots.n_resamples} draws of {kind}{larger}"


def groups_of(terms: Sequence[Terms]) -> dict[str, Any]:
    """Return the numbers of groups of the observations of two models, and a caution if these or the weights are few."""
    drawn = [part for part in terms if isinstance(part, GroupedPairTerms)]
    if not drawn:
        return {}
    few = min(drawn, key=known_groups)
    worth, is_grouped = known_groups(few), any(part.is_grouped for part in drawn)
    found: dict[str, Any] = {"n_groups": (drawn[0].n_groups, drawn[-1].n_groups)} if is_grouped else {}
    where = "in cells (bins) of several " + ("groups" if is_grouped else "observations")
    if worth < FEWEST_GROUPS:
        what = f"{few.n_groups} groups" if is_grouped else f"The weights of {few.n_groups} observations"
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
        found["notes"] = (Note("C303" if is_grouped else "C304", text),)
    elif is_grouped and worth < SOME_GROUPS:
        text = (
            f"{few.n_groups} groups are worth {worth:.1f} groups of equal size {where}. With fewer than {SOME_GROUPS} "
            "the p-value and the interval suppose that groups which were not observed are like the observed ones."
        )
        found["notes"] = (Note("C303", text),)
    return found


def _too_few_draws(n_resamples: int, draw: str, confidence_level: float) -> Note:
    """Return the caution that no p-value can reach the level, so that the interval is infinite."""
    enough = math.ceil(round(1 / level_of(confidence_level), 9)) - 1
    number = f"{n_resamples} {draw}{'' if n_resamples == 1 else 's'}"
    return Note(
        "C205",
        f"With {number} no p-value can be below {1 / (n_resamples + 1):.2g}, so the "
        f"{percent(confidence_level)} interval has no ends. Take {enough} {draw}s or more.",
    )
