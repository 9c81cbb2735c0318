"""The result of a comparison of models: one entry for each model, one for each pair, and the cautions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from caltest.comparison._comparison_entries import ComparedModel, ComparedPair
from caltest.comparison._rejections import rejections
from caltest.predictions._lens import LensLike
from caltest.resampling import correct_pvalues
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import level_of, rejects, show_pvalue
from caltest.results._description import Description, Table, join, percent
from caltest.results._naming import describe
from caltest.results._note import PAGE
from caltest.results._picture import Picture

if TYPE_CHECKING:
    import pandas as pd

ALMOST_CONSTANT = 0.01
"""Predictions with a smaller share of the maximal variance do not discriminate."""
_NAMED_PAIRS = 3  # so many undecided pairs are named in the conclusion
_NAMES = {"fdr_bh": "Benjamini-Hochberg", "fdr_by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(Result):
    """Result of `compare_models`; iterates over its models.

    Attributes
    ----------
    models : tuple of ComparedModel
        One entry for each model, in the order given.
    pairs : tuple of ComparedPair
        One entry for each pair of models.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    correction : str
        How the p-values of calibration were adjusted for the number of models.
    confidence_level : float
        Level of the intervals; decisions are made at 1 minus this level.
    n_resamples : int
        Number of draws of each test, and of bootstrap samples.
    paired : bool
        Whether all models were evaluated on the same observations.
    """

    models: tuple[ComparedModel, ...]
    pairs: tuple[ComparedPair, ...]
    lens: LensLike
    lens_name: str
    correction: str
    confidence_level: float
    n_resamples: int
    paired: bool

    plot = Picture("plot_comparison")
    _derived: ClassVar[tuple[str, ...]] = ("ranking", "conclusion", "notes", "target", "scores_of")

    def __iter__(self) -> Iterator[ComparedModel]:
        return iter(self.models)

    @property
    def ranking(self) -> tuple[str, ...]:
        """Names of the models by increasing debiased l2 error: a point estimate, to be read with the pairs."""
        ordered = sorted(self.models, key=lambda model: model.miscalibration.estimate)
        return tuple(model.name for model in ordered)

    @property
    def target(self) -> str:
        """What is estimated for each pair, in words."""
        return self.pairs[0].test.target

    @property
    def scores_of(self) -> str:
        """The lens of the scores in words: the lens, or the confidence if that has more than two outcomes."""
        return self.models[0].brier.lens_name

    @property
    def conclusion(self) -> str:
        """For which models calibration is rejected, and which are better calibrated, in words."""
        models, alpha = self.models, self._alpha
        first = rejections(
            [model.name for model in models],
            np.array([model.pvalue_adjusted for model in models]),
            [[model.test] for model in models],
            alpha=alpha,
            correction=self.correction,
        )
        decisions = (
            f"Decisions are made at the {percent(alpha)} level, adjusted for the numbers of models and of pairs."
        )
        return " ".join([first, *self._differences(), decisions])

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions: plain estimates that mislead, models without discrimination, and those of single tests."""
        constant = [
            Note(
                "C702",
                f'Predictions of "{model.name}" are almost constant ({model.variation:.2%} of the maximal variance). '
                "The model may be calibrated, but it does not discriminate.",
            )
            for model in self.models
            if model.variation < ALMOST_CONSTANT
        ]
        single = (*self._contradictions(), *constant, *self._single_notes(), *self._too_few_draws())
        return (*single, *self._input_notes)

    @property
    def _alpha(self) -> float:
        return level_of(self.confidence_level)

    def _differences(self) -> list[str]:
        """Return which models are better calibrated than which, and for which pairs this is not known."""
        worse: dict[str, list[str]] = {}
        for pair in self.pairs:
            if pair.better is not None:
                worse.setdefault(pair.better, []).append(pair.a if pair.better == pair.b else pair.b)
        found = [f"{name} is better calibrated than {join(worse[name])}." for name in self.ranking if name in worse]
        open_pairs = [pair for pair in self.pairs if pair.better is None]
        if open_pairs and not any(rejects(pair.test.smallest_possible_pvalue, self._alpha) for pair in self.pairs):
            return ["Whether the models differ in calibration is undecidable."]
        undecided = [f"{pair.a} and {pair.b}" for pair in open_pairs]
        if 0 < len(undecided) <= _NAMED_PAIRS:
            found.append(f"No difference is shown between {'; '.join(undecided)}.")
        elif undecided:
            found.append(f"No difference is shown for {len(undecided)} of the {len(self.pairs)} pairs.")
        return found

    def _too_few_draws(self) -> list[Note]:
        """Return a caution if no simulated test could reject, even if all had the smallest p-value."""
        drawn = [model for model in self.models if model.test.method in {"monte-carlo", "random-signs"}]
        smallest = smallest_adjusted(len(self.models), self.n_resamples, self.correction)
        if not drawn or rejects(smallest, self._alpha):
            return []
        return [few_draws_note(len(self.models), self.n_resamples, smallest, self._alpha)]

    def _single_notes(self) -> list[Note]:
        """Return the notes of tests and intervals, with the models that they are about where these are not all."""
        about: dict[tuple[str, str], list[str]] = {}
        for model in self.models:
            for note in (*model.test.notes, *model.miscalibration.notes):
                about.setdefault((note.code, note.text), []).append(model.name)
        found = [
            Note(code, text if len(names) == len(self.models) else f"{', '.join(names)}: {text}")
            for (code, text), names in about.items()
        ]
        of_pairs = [
            Note(note.code, f"{pair.a} - {pair.b}: {note.text}") for pair in self.pairs for note in pair.test.notes
        ]
        return [*found, *of_pairs]

    def _contradictions(self) -> list[Note]:
        by_name = {model.name: model for model in self.models}
        found = []
        for pair in self.pairs:
            low, high = sorted((by_name[pair.a], by_name[pair.b]), key=lambda model: model.plain.statistic)
            if low.plain.statistic == high.plain.statistic:
                continue
            plain = (
                f"The plain estimate misleads: {describe(high.plain.test_statistic)} is larger for {high.name} "
                f"({high.plain.statistic:.4g}) than for {low.name} ({low.plain.statistic:.4g}), but "
            )
            if low.rejected and not high.rejected:
                found.append(
                    f"{plain}calibration is rejected for {low.name} only (adjusted p = {low.pvalue_adjusted:.2g}, and "
                    f"{high.pvalue_adjusted:.2g} for {high.name})."
                )
            if pair.better == high.name:
                found.append(f"{plain}{high.name} is better calibrated (adjusted p = {pair.pvalue_adjusted:.2g}).")
        return [Note("C701", text) for text in found]

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each model, the name as index; see `pairs_frame` for the pairs.
        """
        import pandas as pd

        return pd.DataFrame([model.numbers for model in self.models]).set_index("model")

    def pairs_frame(self) -> pd.DataFrame:
        """Return the pairs as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each pair, the names as index.
        """
        import pandas as pd

        return pd.DataFrame([pair.numbers for pair in self.pairs]).set_index(["a", "b"])

    def _describe(self) -> Description:
        first = self.models[0]
        sizes = sorted({model.test.n_samples for model in self.models})
        size = f"the same {sizes[0]} observations" if self.paired else f"{sizes[0]} to {sizes[-1]} observations each"
        plain = describe(first.plain.test_statistic)
        correction = _NAMES.get(self.correction, self.correction.title())
        return Description(
            f"Calibration of {len(self.models)} models ({self.lens_name}, {size})",
            [self.conclusion],
            [self._evidence(), self._pairs(), self._scores()],
            [
                f"Tests of calibration: {describe(first.test.test_statistic)}, {first.test.origin}; p-values adjusted "
                f"by {correction}'s correction.",
                f"Noise floor: the average of {plain} if the model is calibrated. {plain} minus its noise floor does "
                "not estimate the miscalibration; the l2 error does.",
                f"Differences: of the squared l2 errors, {self.pairs[0].test.origin}. Intervals and p-values are "
                f"adjusted for all pairs with {self.n_resamples} bootstrap samples.",
                f"Scores: of the {self.scores_of}. MCB is what isotonic recalibration gains, DSC what that gains on "
                "the base rate.",
                *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in first.test.conditions),
            ],
            self.notes,
        )

    def _evidence(self) -> Table:
        name = describe(self.models[0].plain.test_statistic).partition("(")[0]
        head = ("model", f"l2 error ({percent(self.confidence_level)} interval)", name, "noise floor", "adjusted p")
        rows = [
            (
                model.name,
                model.miscalibration.root_text,
                f"{model.plain.statistic:.4f}",
                f"{model.plain.noise_floor:.4f}",
                show_pvalue(model.pvalue_adjusted),
            )
            for model in self.models
        ]
        return Table(head, rows)

    def _pairs(self) -> Table:
        head = ("first - second", f"difference ({percent(self.confidence_level)} interval)", "adjusted p", "better")
        rows = [
            (
                f"{pair.a} - {pair.b}",
                _difference_text(pair.test.difference, pair.simultaneous_interval),
                show_pvalue(pair.pvalue_adjusted),
                "" if pair.better is None else "first" if pair.better == pair.a else "second",
            )
            for pair in self.pairs
        ]
        return Table(head, rows, left=("better",))

    def _scores(self) -> Table:
        rows = []
        for model in self.models:
            parts = [
                number
                for score in (model.brier, model.log)
                for number in (score.mean_score, score.miscalibration, score.discrimination)
            ]
            rows.append((model.name, *(f"{number:z.4f}" for number in (model.accuracy, *parts))))
        return Table(("model", "accuracy", "Brier", "MCB", "DSC", "log", "MCB", "DSC"), rows)


def _difference_text(difference: float, interval: ConfidenceInterval) -> str:
    return f"{difference:.2g} ({interval.low:.2g} to {interval.high:.2g})"


@cache
def smallest_adjusted(n_models: int, n_resamples: int, correction: str) -> float:
    """Return the smallest adjusted p-value that simulated tests of so many models can have."""
    return float(correct_pvalues([1 / (n_resamples + 1)] * n_models, correction, (correction,)).min())


def few_draws_note(n_models: int, n_resamples: int, smallest: float, alpha: float) -> Note:
    """Return the caution that there are too few draws to reject calibration of any model."""
    enough = math.ceil(round(smallest * (n_resamples + 1) / alpha, 9))
    return Note(
        "C205",
        f"With {n_resamples} draws and {n_models} models no adjusted p-value of calibration can be below "
        f"{min(smallest, 1):.2g}. Take {enough} draws or more.",
    )
