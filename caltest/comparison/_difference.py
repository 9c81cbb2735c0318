"""The difference in calibration of two models, with its interval and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._u_statistics import Differences, critical_value
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.resampling._distributions import SMALLEST_PVALUE, alpha_of
from caltest.resampling._signs import MANY_GROUPS
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import Decision, equate_pvalue
from caltest.results._description import Description, Table
from caltest.results._note import PAGE
from caltest.results._test_result import percent

TARGET = (
    "the difference of the squared l2 calibration errors, each within the cells (bins) of the model's own partition"
)
_NORMAL = "normal, variance from Hoeffding's decomposition (asymptotic, conservative near calibration)"
_BOOTSTRAP = "bootstrap samples of the observations (asymptotic, conservative near calibration)"
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
    method : {"asymptotic", "bootstrap"}
        How the null distribution was found.
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
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("target", "alpha", "rejected", "conclusion")

    @property
    def target(self) -> str:
        """What is estimated, in words."""
        return TARGET

    @property
    def alpha(self) -> float:  # type: ignore[override]
        """Level of the test, 1 minus that of the interval."""
        return round(1 - self.confidence_level, 12)

    @property
    def condition(self) -> Note:
        """When the p-value is valid."""
        what = "observations" if self.n_groups is None else "groups of observations"
        return Note("C101", f"{what} are independent and no label was used to make the predictions.")

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        found = f"at the {percent(self.alpha)} level ({equate_pvalue(self.pvalue)})"
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
    notes: tuple[Note, ...] = (),
    **context: Any,
) -> DifferenceResult:
    """Return the result for a pair of models; bootstrap deviations ``(n_resamples,)`` replace the normal limit."""
    from scipy.special import ndtr, ndtri

    a, b = (float(differences.estimate[i]) for i in pair)
    error = math.sqrt(differences.variance[pair])
    difference = a - b if error > 0 else 0.0
    z = difference / error if error > 0 else 0.0
    level = context["confidence_level"]
    origin, pvalue, reach = _NORMAL, float(2 * ndtr(-abs(z))), float(ndtri((1 + level) / 2)) * error
    if deviation is not None:
        origin = f"{len(deviation)} {_BOOTSTRAP}"
        drawn = critical_value(np.abs(deviation), abs(difference), level)
        notes = notes if math.isfinite(drawn[1]) else (*notes, _too_few_draws(len(deviation), level))
        # Observations that show no variance show none when they are resampled.
        pvalue, reach = np.maximum(drawn, (pvalue, reach)).tolist() if differences.unreliable[pair] else drawn
    if not differences.informative[pair]:
        reach, notes = math.inf, (*notes, _NO_VARIANCE)
    return DifferenceResult(
        difference=difference,
        standard_error=error,
        statistic=z,
        pvalue=max(pvalue, SMALLEST_PVALUE),
        confidence_interval=ConfidenceInterval(difference - reach, difference + reach),
        estimate_a=a,
        estimate_b=b,
        method="asymptotic" if deviation is None else "bootstrap",
        origin=origin,
        notes=notes,
        **context,
    )


def groups_of(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the numbers of groups of the observations of two models, and a caution if they are few."""
    if any(sample.group is None for sample in samples):
        return {}
    number = [len(np.unique(sample.group)) for sample in samples if sample.group is not None]
    few = f"There are only {min(number)} groups. With fewer than {MANY_GROUPS} the variance between them is uncertain."
    notes = (Note("C303", few),) if min(number) < MANY_GROUPS else ()
    return {"n_groups": (number[0], number[-1]), "notes": notes}


def _too_few_draws(n_resamples: int, confidence_level: float) -> Note:
    """Return the caution that no p-value can reach the level, so that the interval is infinite."""
    enough = math.ceil(1 / alpha_of(confidence_level)) - 1
    return Note(
        "C205",
        f"With {n_resamples} bootstrap samples no p-value can be below {1 / (n_resamples + 1):.2g}, so the "
        f"{percent(confidence_level)} interval has no ends. Take {enough} bootstrap samples or more.",
    )
