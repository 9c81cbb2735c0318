"""What a comparison says: one row for each model, one for each pair, and in words what a hasty reader gets wrong."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from caltest.comparison._difference import DifferenceResult
from caltest.estimation._l2_interval import L2Interval
from caltest.estimation._score_decomposition import ScoreDecomposition
from caltest.resampling._distributions import alpha_of
from caltest.resampling._multiple_testing import correct_pvalues
from caltest.results._test_result import CalibrationTestResult, ComponentResult

if TYPE_CHECKING:
    import pandas as pd

SAYS_NOTHING = 0.01
"""Predictions that vary by a smaller share of what they could say almost nothing."""
EXCESS = (
    "excess = plain estimate - noise floor, what a perfect model would show on the same predictions on average; it is "
    "not an estimate of miscalibration, l2 is"
)


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One model of a comparison.

    Attributes
    ----------
    name : str
        Its name.
    accuracy : float
        Share of rows whose largest prediction is right.
    brier, log : ScoreDecomposition
        Mean scores with their parts, through the lens or, if that has more than two outcomes, of the confidence.
    test : CalibrationTestResult
        Test of perfect calibration.
    pvalue_corrected : float
        Its p-value, corrected over the models.
    miscalibration : L2Interval
        Debiased squared l2 miscalibration and its root, with intervals.
    variation : float
        Variance of the predictions, summed over classes, as a share of what it could be at most with the same mean
        prediction. A calibrated model discriminates by just this much: it is then the discrimination part of the Brier
        score of the whole prediction as a share of its uncertainty.
    """

    name: str
    accuracy: float
    brier: ScoreDecomposition
    log: ScoreDecomposition
    test: CalibrationTestResult
    pvalue_corrected: float
    miscalibration: L2Interval
    variation: float

    @property
    def plain(self) -> ComponentResult:
        """The plain estimate, first component of the test's statistic, with its law under perfect calibration."""
        return self.test.components[0]

    @property
    def excess(self) -> float:
        """Plain estimate minus noise floor; not an estimate of miscalibration."""
        return self.plain.statistic - self.plain.noise_floor

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the row."""
        return {
            "model": self.name,
            "n_samples": self.test.n_samples,
            "accuracy": self.accuracy,
            **{
                f"{score}_{part}": getattr(decomposition, part)
                for score, decomposition in (("brier", self.brier), ("log", self.log))
                for part in ("mean_score", "miscalibration", "discrimination")
            },
            "estimate": self.plain.statistic,
            "noise_floor": self.plain.noise_floor,
            "excess": self.excess,
            "squared_l2": self.miscalibration.estimate,
            "squared_l2_low": self.miscalibration.low,
            "squared_l2_high": self.miscalibration.high,
            "l2": self.miscalibration.root,
            "l2_low": self.miscalibration.root_low,
            "l2_high": self.miscalibration.root_high,
            "pvalue": self.test.pvalue,
            "pvalue_corrected": self.pvalue_corrected,
            "direction": self.test.direction,
            "variation": self.variation,
        }


@dataclass(frozen=True, eq=False)
class ComparedPair:
    """Two models of a comparison.

    Attributes
    ----------
    a, b : str
        Their names.
    test : DifferenceResult
        Difference of their miscalibration, that of a minus that of b, by itself.
    pvalue_simultaneous : float
        P-value corrected over all pairs.
    low_simultaneous, high_simultaneous : float
        Interval for the difference; all pairs' intervals hold at once.
    calibrated : bool
        Whether neither model's corrected p-value speaks against perfect calibration.
    """

    a: str
    b: str
    test: DifferenceResult
    pvalue_simultaneous: float
    low_simultaneous: float
    high_simultaneous: float
    calibrated: bool

    @property
    def better(self) -> str | None:
        """Name of the model that is better calibrated, if the simultaneous p-value says so."""
        if self.pvalue_simultaneous > alpha_of(self.test.confidence_level):
            return None
        return self.b if self.test.difference > 0 else self.a

    @property
    def verdict(self) -> str:
        """What the data say of the two, in words."""
        if self.better is not None:
            return f"better calibrated: {self.better}"
        return "both indistinguishable from perfect" if self.calibrated else "no evidence of a difference"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the row and its verdict."""
        names = ("difference", "standard_error", "statistic", "low", "high", "pvalue")
        return {
            "a": self.a,
            "b": self.b,
            **{name: getattr(self.test, name) for name in names},
            "low_simultaneous": self.low_simultaneous,
            "high_simultaneous": self.high_simultaneous,
            "pvalue_simultaneous": self.pvalue_simultaneous,
            "verdict": self.verdict,
            "better": self.better,
        }


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Result of `compare_models`; prints as tables and sentences.

    Attributes
    ----------
    models : tuple of ComparedModel
        One row for each model, in the order given.
    pairs : tuple of ComparedPair
        One row for each pair of models.
    lens : str
        What was looked at.
    correction : str
        How p-values of perfect calibration were corrected over the models.
    confidence_level : float
        Level of the intervals; verdicts are made at 1 minus it.
    n_resamples : int
        Number of draws of each test and of bootstrap samples.
    paired : bool
        Whether all models were seen on the same rows.
    """

    models: tuple[ComparedModel, ...]
    pairs: tuple[ComparedPair, ...]
    lens: str
    correction: str
    confidence_level: float
    n_resamples: int
    paired: bool

    @property
    def ranking(self) -> tuple[str, ...]:
        """Names of the models, the smallest debiased miscalibration first: a point estimate, read with the pairs."""
        ordered = sorted(self.models, key=lambda model: model.miscalibration.estimate)
        return tuple(model.name for model in ordered)

    @property
    def flags(self) -> tuple[str, ...]:
        """Where the plain estimates contradict the evidence, where a model says nothing, and other cautions."""
        silent = [
            f"{model.name} says almost nothing: its predictions vary by {model.variation:.2%} of what they could. Such "
            "a model is easily calibrated and of little use."
            for model in self.models
            if model.variation < SAYS_NOTHING
        ]
        return (*self._contradictions(), *silent, *self._notes(), *self._too_few_draws())

    @property
    def _alpha(self) -> float:
        return alpha_of(self.confidence_level)

    def _too_few_draws(self) -> list[str]:
        """Say so if no model whose test is made of draws could be rejected, even if all had the smallest p-value."""
        drawn = [model for model in self.models if model.test.method == "monte-carlo"]
        attainable = [1 / (self.n_resamples + 1)] * len(self.models)
        smallest = float(correct_pvalues(attainable, self.correction, (self.correction,)).min())
        if not drawn or smallest <= self._alpha:
            return []
        enough = math.ceil(smallest * (self.n_resamples + 1) / self._alpha)
        least = f"no corrected p-value of a drawn test can be below {smallest:.2g}"
        return [f"{self.n_resamples} draws are too few: take {enough} or more, for {least}."]

    def _notes(self) -> list[str]:
        """Return the notes of tests and intervals, with the models that they are about where these are not all."""
        about: dict[str, list[str]] = {}
        for model in self.models:
            for note in (*model.test.notes, *(f"interval: {note}" for note in model.miscalibration.notes)):
                about.setdefault(note, []).append(model.name)
        everyone = len(self.models)
        return [note if len(names) == everyone else f"{', '.join(names)}: {note}" for note, names in about.items()]

    def _contradictions(self) -> list[str]:
        by_name = {model.name: model for model in self.models}
        found = []
        for pair in self.pairs:
            low, high = sorted((by_name[pair.a], by_name[pair.b]), key=lambda model: model.plain.statistic)
            if low.plain.statistic == high.plain.statistic:
                continue
            plain = (
                f"The plain estimate misleads: {high.plain.name} is larger for {high.name} "
                f"({high.plain.statistic:.4g}) than for {low.name} ({low.plain.statistic:.4g}), yet "
            )
            if low.pvalue_corrected <= self._alpha < high.pvalue_corrected:
                found.append(
                    f"{plain}only {low.name} is rejected as miscalibrated (corrected p-values "
                    f"{high.pvalue_corrected:.2g} and {low.pvalue_corrected:.2g})."
                )
            if pair.better == high.name:
                found.append(
                    f"{plain}{high.name} is better calibrated by the test of their difference (p-value "
                    f"{pair.pvalue_simultaneous:.2g})."
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all but the null distributions as plain Python objects, ready for JSON; infinity becomes None."""
        return {
            "models": [{**_finite(model.to_dict()), "test": model.test.to_dict()} for model in self.models],
            "pairs": [_finite(pair.to_dict()) for pair in self.pairs],
            "ranking": list(self.ranking),
            "flags": list(self.flags),
            "lens": self.lens,
            "decomposition": self.models[0].brier.lens,
            "correction": self.correction,
            "confidence_level": self.confidence_level,
            "n_resamples": self.n_resamples,
            "paired": self.paired,
            "target": self.pairs[0].test.target,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame, one row each, the name as index."""
        import pandas as pd

        return pd.DataFrame([model.to_dict() for model in self.models]).set_index("model")

    def pairs_frame(self) -> pd.DataFrame:
        """Return the pairs as a pandas frame, one row each, the names as index."""
        import pandas as pd

        return pd.DataFrame([pair.to_dict() for pair in self.pairs]).set_index(["a", "b"])

    def __str__(self) -> str:
        lines = [self._title, ""]
        for table in self._tables():
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines += ["  ".join(_aligned(row, widths)).rstrip() for row in table]
            lines.append("")
        for words in self._words():
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [f"<h4>{escape(self._title)}</h4>"]
        for head, *body in self._tables():
            rows = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
            rows += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in body]
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
        return "".join([*parts, *(f"<p>{escape(words)}</p>" for words in self._words())])

    @property
    def _title(self) -> str:
        sizes = sorted({model.test.n_samples for model in self.models})
        rows = f"the same {sizes[0]} rows" if self.paired else f"each on its own rows ({sizes[0]} to {sizes[-1]})"
        return f"Calibration of {len(self.models)} models, {rows}, {self.lens}"

    def _tables(self) -> list[list[list[str]]]:
        """Return tables of cells: scores, evidence, pairs; the first row of each is its head."""
        level = f"{self.confidence_level:.0%} interval"
        scores = [["model", "accuracy", "Brier", "MCB", "DSC", "log", "MCB", "DSC"]]
        evidence = [["model", "estimate", "floor", "excess", "l2", level, "p-value", f"p ({self.correction})"]]
        pairs = [["pair", "difference", level, "p-value", "p (all pairs)", "verdict"]]
        for model in self.models:
            parts = [
                number
                for score in (model.brier, model.log)
                for number in (score.mean_score, score.miscalibration, score.discrimination)
            ]
            scores.append([model.name, *(f"{number:z.4f}" for number in (model.accuracy, *parts))])
            size = model.miscalibration
            numbers = (model.plain.statistic, model.plain.noise_floor, model.excess, size.root)
            evidence.append(
                [
                    model.name,
                    *(f"{number:z.4f}" for number in numbers),
                    f"{size.root_low:.4f} to {size.root_high:z.4f}",
                    f"{model.test.pvalue:.4g}",
                    f"{model.pvalue_corrected:.4g}",
                ]
            )
        for pair in self.pairs:
            test = pair.test
            pairs.append(
                [
                    f"{pair.a} - {pair.b}",
                    f"{test.difference:.2e}",
                    f"{test.low:.2e} to {test.high:.2e}",
                    f"{test.pvalue:.2g}",
                    f"{pair.pvalue_simultaneous:.2g}",
                    pair.verdict,
                ]
            )
        return [scores, evidence, pairs]

    def _words(self) -> list[str]:
        first = self.models[0]
        return [
            *(f"Note: {flag}" for flag in self.flags),
            f"scores: of {first.brier.lens}; MCB: what isotonic recalibration gains, DSC: what that gains on the base "
            "rate",
            f"estimate: {first.plain.name}; {EXCESS}",
            f"p-value: of perfect calibration, {first.test.name.partition('(')[0]}, {first.test.null_law}",
            "l2: root of the debiased squared l2 miscalibration over cells; difference: of the squares, a - b, "
            f"{self.pairs[0].test.null_law}",
        ]


def _aligned(row: list[str], widths: list[int]) -> list[str]:
    """Return names and verdicts aligned to the left, numbers to the right."""
    left = {0, len(row) - 1} if len(row) == _PAIR_COLUMNS else {0}
    return [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in numbers.items()
    }


_PAIR_COLUMNS = 6
