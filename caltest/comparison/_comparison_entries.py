"""One model of a comparison, and one pair of models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._difference import DifferenceResult
from caltest.estimation.errors._l2_interval import L2Interval
from caltest.estimation.scores._score_decomposition import ScoreDecomposition
from caltest.results import ComponentResult, ConfidenceInterval, Result, TestResult
from caltest.results._decision import equate_pvalue, rejects
from caltest.results._description import Description, counted
from caltest.results._plain import to_plain


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComparedModel(Result):
    """One model of a `ModelComparison`.

    Attributes
    ----------
    name : str
        Its name.
    accuracy : float
        Share of the observations whose most probable class is the right one; of m tied classes each counts 1 / m.
    brier, log : ScoreDecomposition
        Mean scores with their parts, behind the lens or, if that has more than two outcomes, of the confidence.
    test : TestResult
        Test of calibration.
    pvalue_adjusted : float
        P-value of this test, adjusted for the number of models.
    miscalibration : L2Interval
        Debiased squared l2 calibration error and its root, with intervals.
    variation : float
        Variance of the predictions, summed over classes, as a share of the maximal variance with the same mean
        prediction. For a calibrated model it is the discrimination part of the Brier score of the whole prediction as
        a share of its uncertainty.
    """

    name: str
    accuracy: float
    brier: ScoreDecomposition
    log: ScoreDecomposition
    test: TestResult
    pvalue_adjusted: float
    miscalibration: L2Interval
    variation: float

    @property
    def rejected(self) -> bool:
        """Whether calibration is rejected, after the adjustment for the number of models."""
        return bool(rejects(self.pvalue_adjusted, self.test.alpha))

    @property
    def plain(self) -> ComponentResult:
        """The plain estimate: the first component of the test, with its null distribution."""
        return self.test.components[0]

    @property
    def numbers(self) -> dict[str, Any]:
        """Scores with their parts, plain estimate, noise floor, l2 error with its interval, and p-values, by name."""
        size = self.miscalibration
        parts = ("mean_score", "miscalibration", "discrimination")
        return {
            "model": self.name,
            "n_samples": self.test.n_samples,
            "accuracy": self.accuracy,
            **{f"brier_{part}": getattr(self.brier, part) for part in parts},
            **{f"log_{part}": getattr(self.log, part) for part in parts},
            "estimate": self.plain.statistic,
            "noise_floor": self.plain.noise_floor,
            "squared_l2": size.estimate,
            "squared_l2_low": size.confidence_interval.low,
            "squared_l2_high": size.confidence_interval.high,
            "l2": size.root,
            "l2_low": size.root_interval.low,
            "l2_high": size.root_interval.high,
            "pvalue": self.test.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            "direction": self.test.direction,
            "variation": self.variation,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the model, and its test, as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`, and the test of calibration as ``test``.
        """
        return to_plain({**self.numbers, "test": self.test})

    def _describe(self) -> Description:
        title = f"{self.name} ({self.test.lens_name}, {counted(self.test.n_samples)})"
        return replace(self.test._describe(), title=title)


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
    """

    a: str
    b: str
    test: DifferenceResult
    pvalue_adjusted: float
    simultaneous_interval: ConfidenceInterval
    calibrated: bool

    _derived: ClassVar[tuple[str, ...]] = ("better", "conclusion")

    @property
    def better(self) -> str | None:
        """Name of the model that is better calibrated; None if no difference is shown."""
        if not rejects(self.pvalue_adjusted, self.test.alpha):
            return None
        return self.b if self.test.difference > 0 else self.a

    @property
    def conclusion(self) -> str:
        """The decision about the pair in words."""
        p = equate_pvalue(self.pvalue_adjusted, name="adjusted p")
        if not rejects(self.test.smallest_possible_pvalue, self.test.alpha):
            return f"Whether {self.a} and {self.b} differ in calibration is undecidable ({p}): see its note."
        if self.better is not None:
            return f"{self.better} is better calibrated than {self.b if self.better == self.a else self.a} ({p})."
        rest = ", and calibration is rejected for neither" if self.calibrated else ""
        return f"No difference in calibration is shown between {self.a} and {self.b} ({p}){rest}."

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
        title = f"{self.a} and {self.b}"
        return self.test.describe_as(title, (self.a, self.b), self.conclusion, self.simultaneous_interval)


_BLOCK_VALUES = 2**18


def variation(prob: NDArray[Any], weight: NDArray[np.float64] | None) -> float:
    """Return the variance of the predictions as a share of the maximal variance with the same mean."""
    share = np.full(len(prob), 1 / len(prob)) if weight is None else weight / weight.sum()
    size = max(1, _BLOCK_VALUES // prob.shape[1])
    blocks = [(share[i : i + size], prob[i : i + size]) for i in range(0, len(prob), size)]
    mean = np.sum([some @ part.astype(np.float64) for some, part in blocks], axis=0)
    possible = float(mean @ (1 - mean))
    total = sum(float(some @ np.square(part - mean).sum(axis=1)) for some, part in blocks)
    return total / possible if possible > 0 else 0.0
