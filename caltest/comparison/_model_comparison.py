"""The result of a comparison of models: one entry for each model, one for each pair, and the cautions; also by fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from caltest.comparison._difference import (
    MEANING,
    NO_ESTIMATE,
    TYPICAL,
    apart_sentence,
    better_sentence,
    in_points,
)
from caltest.comparison._judged import SCORE_PARTS, ComparedModel
from caltest.comparison._pair import ComparedPair, combine_pairs
from caltest.hypothesis_tests._by_fold import condition_of_folds, few_draws_of_folds, fold_notes, small_notes
from caltest.hypothesis_tests._diagnostics import few_draws
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._parts import Folds
from caltest.predictions.inputs._validation import refuse_if
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, CombinedPValues
from caltest.results import Note, Result
from caltest.results._decision import DecisionWord, cannot_decide, decide, equate_pvalue, rejects, show_pvalue
from caltest.results._description import Description, Table, join, percent
from caltest.results._naming import describe
from caltest.results._note import PAGE
from caltest.results._picture import Picture
from caltest.results._verdict import Judged

if TYPE_CHECKING:
    import pandas as pd

CORRECTIONS = (*UNDER_ANY_DEPENDENCE, *UNDER_INDEPENDENCE, "fdr_bh", "fdr_by")
"""Corrections that `compare_models` knows."""
ALMOST_CONSTANT = 0.01
"""Predictions with a smaller share of the maximal variance do not discriminate."""
_NAMED_PAIRS = 3  # so many undecided pairs are named in the conclusion
_NAMES = {"fdr_bh": "Benjamini-Hochberg", "fdr_by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(Judged, Result):
    """Result of `compare_models`; iterates over its models.

    With folds the models of each fold are compared separately, and ``folds`` holds what was found; ``models`` and
    ``pairs`` combine it.

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
    alpha : float
        Level of the decisions; intervals have the level 1 - ``alpha``.
    n_resamples : int
        Number of draws of each test, and of bootstrap samples.
    paired : bool
        Whether all models were evaluated on the same observations.
    folds : tuple of ModelComparison
        The comparison of the models of each fold; empty without folds.
    fold_names : tuple of str
        The id of each fold.
    """

    models: tuple[ComparedModel, ...]
    pairs: tuple[ComparedPair, ...]
    lens: LensLike
    lens_name: str
    correction: str
    alpha: float
    n_resamples: int
    paired: bool
    folds: tuple[ModelComparison, ...] = ()
    fold_names: tuple[str, ...] = ()

    plot = Picture("plot_comparison", known=lambda comparison: not comparison.folds)
    _of_folds: ClassVar[frozenset[str]] = frozenset({"folds", "fold_names"})
    _derived: ClassVar[tuple[str, ...]] = (
        *("n_samples", "pvalue", "rejected", "decision", "confidence_level"),
        *("ranking", "conclusion", "notes", "target", "scores_of"),
    )

    def __iter__(self) -> Iterator[ComparedModel]:
        return iter(self.models)

    @property
    def confidence_level(self) -> float:
        """Level of the intervals."""
        return 1 - self.alpha

    @property
    def n_samples(self) -> int:
        """Number of observations; of models with a data set each those of all."""
        sizes = [model.n_samples for model in self.models]
        return sizes[0] if self.paired else sum(sizes)

    @property
    def pvalue(self) -> float:
        """P-value of the hypothesis that all models are equally miscalibrated: the smallest adjusted one of a pair."""
        return min(pair.pvalue_adjusted for pair in self.pairs)

    @property
    def rejected(self) -> bool:
        """Whether a difference between any two models is shown at the level ``alpha``."""
        return self.decision == "rejected"

    @property
    def decision(self) -> DecisionWord:
        """The decision about differences; "undecidable" if no p-value as small as ``alpha`` was possible."""
        smallest = min(pair.test.smallest_possible_pvalue for pair in self.pairs)
        return decide(self.pvalue, self.alpha, smallest)

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
        """Which models are better calibrated than which, and for which calibration is rejected, in words."""
        folds = ", of pairs and of folds" if self.folds else " and of pairs"
        decisions = f"Decisions are made at the {percent(self.alpha)} level, adjusted for the numbers of models{folds}."
        return " ".join([*self._differences(), self._rejections(), decisions])

    def _rejections(self) -> str:
        """Return for which models calibration is rejected, or that the data or the draws cannot decide."""
        names = [model.name for model in self.models]
        rejected = [model.name for model in self.models if model.rejected]
        others = [name for name in names if name not in rejected]
        if rejected:
            return f"Calibration is rejected for {join(rejected)}{f', but not for {join(others)}' if others else ''}."
        tests = [model.test for model in self.models]
        possible = [test.smallest_possible_pvalue for test in tests]
        smallest = float(correct_pvalues(possible, self.correction, CORRECTIONS).min())
        if rejects(smallest, self.alpha):
            return f"Calibration is rejected for none of the {len(names)} models, which does not prove calibration."
        single = [one for test in tests for one in test.folds or (test,)]
        least = min(model.pvalue_adjusted for model in self.models)
        of_folds = f" in {len(self.folds)} folds" if self.folds else ""
        return cannot_decide(
            smallest,
            self.alpha,
            numbers=f"{equate_pvalue(least, name='smallest adjusted p')}, calibration of {len(names)} models{of_folds}",
            n_groups=None if single[0].n_groups is None else max(test.n_groups or 0 for test in single),
            n_resamples=single[0].n_resamples,
            unadjusted=min(test.smallest_possible_pvalue for test in single),
            name="adjusted p-value",
            where=" in a fold" if self.folds else "",
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions: plain estimates that mislead, models without discrimination, and those of single tests."""
        if self.folds:
            tests = [model.test for fold in self.folds for model in fold]
            few = few_draws_of_folds(tests, len(tests))
            small = small_notes(self.fold_names, [fold.n_samples for fold in self.folds])
            return (*small, *few, *fold_notes(self.fold_names, self.folds), *self._input_notes)
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

    def _differences(self) -> list[str]:
        """Return which models are better calibrated than which, and for which pairs this is not known."""
        place, errors = {name: k for k, name in enumerate(self.ranking)}, self._errors
        worse: dict[str, list[ComparedPair]] = {}
        for pair in self.pairs:
            worse.setdefault(pair.better or "", []).append(pair)
        open_pairs, found = worse.pop("", []), []
        for name in sorted(worse, key=place.__getitem__):
            losers = sorted((pair.b if name == pair.a else pair.a for pair in worse[name]), key=place.__getitem__)
            largest = max(pair.pvalue_adjusted for pair in worse[name])
            p = equate_pvalue(largest, name="adjusted p" if len(losers) == 1 else "largest adjusted p")
            sizes = None if errors is None else [errors[one] for one in (name, *losers)]
            found.append(better_sentence(name, losers, sizes, p))
        if open_pairs and not any(rejects(pair.test.smallest_possible_pvalue, self.alpha) for pair in self.pairs):
            return ["Whether the models differ in calibration is undecidable."]
        if len(open_pairs) > _NAMED_PAIRS:
            return [*found, f"{len(open_pairs)} of the {len(self.pairs)} pairs cannot be told apart in calibration."]
        for pair in open_pairs:
            p = equate_pvalue(pair.pvalue_adjusted, name="adjusted p")
            found.append(apart_sentence(pair.a, pair.b, pair.test.errors, p))
        return found

    @property
    def _errors(self) -> dict[str, float] | None:
        """The typical error of each model by its name; None with folds."""
        return None if self.folds else {model.name: model.miscalibration.root for model in self.models}

    def _too_few_draws(self) -> list[Note]:
        """Return a caution if no simulated test could reject, even if all had the smallest p-value."""
        if not any(model.test.method in {"monte-carlo", "random-signs"} for model in self.models):
            return []
        return few_draws_of_models(len(self.models), self.n_resamples, self.correction, self.alpha)

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
            One row for each model, the name as index; see `pairs_frame` for the pairs. With folds the combined and the
            adjusted p-value; see `folds_frame` for the folds.
        """
        import pandas as pd

        frame = pd.DataFrame([model.numbers for model in self.models]).set_index("model")
        return frame[["pvalue", "pvalue_adjusted"]] if self.folds else frame

    def folds_frame(self) -> pd.DataFrame:
        """Return the models of every fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each fold and model, both as index, with the numbers of `to_frame`.

        Raises
        ------
        ValueError
            If there are no folds.
        """
        import pandas as pd

        refuse_if(not self.folds, "the models were not compared by fold; to_frame() has one row for each model.")
        return pd.concat([fold.to_frame() for fold in self.folds], keys=self.fold_names, names=["fold"])

    def pairs_frame(self) -> pd.DataFrame:
        """Return the pairs as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each pair, the names as index. With folds the p-value, adjusted for the numbers of pairs and of
            folds, the fold with the smallest one, and the better model.
        """
        import pandas as pd

        if not self.folds:
            return pd.DataFrame([pair.numbers for pair in self.pairs]).set_index(["a", "b"])
        columns = [
            {
                "a": pair.a,
                "b": pair.b,
                "pvalue_adjusted": pair.pvalue_adjusted,
                "smallest_fold": self._deciding_fold(pair),
                "better": pair.better,
            }
            for pair in self.pairs
        ]
        return pd.DataFrame(columns).set_index(["a", "b"])

    def _deciding_fold(self, pair: ComparedPair) -> str:
        """Return the fold with the smallest p-value of a pair."""
        return self.fold_names[int(np.argmin([fold.pvalue_adjusted for fold in pair.folds]))]

    def _describe(self) -> Description:
        if self.folds:
            return self._describe_by_fold()
        first = self.models[0]
        sizes = sorted({model.test.n_samples for model in self.models})
        size = f"the same {sizes[0]} observations" if self.paired else f"{sizes[0]} to {sizes[-1]} observations each"
        plain = describe(first.plain.test_statistic)
        correction = _NAMES.get(self.correction, self.correction.title())
        return Description(
            f"Calibration of {len(self.models)} models ({self.lens_name}, {size})",
            [self.conclusion],
            self._tables(),
            [
                MEANING,
                f"Tests of calibration: {describe(first.test.test_statistic)}, {first.test.origin}; p-values adjusted "
                f"by {correction}'s correction.",
                f"Differences: of the squared errors, {self.pairs[0].test.origin}; p-values, and intervals in "
                f"`pairs_frame()`, are adjusted for all pairs with {self.n_resamples} bootstrap samples.",
                f"Noise floor: the average of {plain} if the model is calibrated. {plain} minus its noise floor does "
                "not estimate the miscalibration; the typical error does.",
                f"Scores: of the {self.scores_of}. MCB is what isotonic recalibration gains, DSC what that gains on "
                "the base rate.",
                *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in first.test.conditions),
            ],
            self.notes,
        )

    def _tables(self) -> list[Table]:
        """Return the tables of the models, of the pairs and of the scores."""
        level = percent(self.confidence_level)
        models = [model.numbers | {"p": show_pvalue(model.pvalue_adjusted)} for model in self.models]
        for model, size in zip(models, (model.miscalibration for model in self.models), strict=True):
            low, high = (f"{100 * end:.1f}" for end in size.root_interval)
            model["typical"] = f"{100 * size.root:.1f} ({low} to {high})"
        evidence = {"model": "{model}", f"{TYPICAL}, {level} interval": "{typical}", "adjusted p of calibration": "{p}"}
        plain = self.models[0].plain.test_statistic.name
        parts = ["accuracy", "estimate", "noise_floor"]
        parts += [f"{score}_{part}" for score in ("brier", "log") for part in SCORE_PARTS]
        scores = [(row["model"], *(f"{row[name]:z.4f}" for name in parts)) for row in models]
        return [
            Table.of(models, evidence),
            self._table_of_pairs(),
            Table(("model", "accuracy", plain, "noise floor", "Brier", "MCB", "DSC", "log", "MCB", "DSC"), scores),
        ]

    def _table_of_pairs(self) -> Table:
        """Return the table of the pairs: their errors, or the fold that decides, and which model is better."""
        rows = [
            (
                f"{pair.a} and {pair.b}",
                self._deciding_fold(pair) if pair.test.errors is None else " and ".join(in_points(pair.test.errors)),
                show_pvalue(pair.pvalue_adjusted),
                pair.better or "",
            )
            for pair in self.pairs
        ]
        what = "in fold" if self.folds else "typical errors"
        return Table(("pair", what, "adjusted p", "better calibrated"), rows, left=("better calibrated",))

    def _describe_by_fold(self) -> Description:
        first, n_folds = self.folds[0], len(self.folds)
        models = [(model.name, f"{model.test.pvalue:.4g}", f"{model.pvalue_adjusted:.4g}") for model in self.models]
        errors = [
            (name, f"{fold.n_samples}", *(f"{100 * model.miscalibration.root:.1f}" for model in fold))
            for name, fold in zip(self.fold_names, self.folds, strict=True)
        ]
        single = first.pairs[0].test
        condition = condition_of_folds(single.condition, is_grouped=single.n_groups is not None)
        size = f"{self.n_samples} observations in {n_folds} folds"
        return Description(
            f"Calibration of {len(self.models)} models by fold ({self.lens_name}, {size})",
            [self.conclusion],
            [
                Table(("model", "combined p", "adjusted p"), models),
                self._table_of_pairs(),
                Table((f"{TYPICAL} in fold", "n", *(model.name for model in self.models)), errors),
            ],
            [
                MEANING,
                f"P-values: {CombinedPValues(n_folds).origin}.",
                f"Tests of calibration in a fold: {first.models[0].test.origin}.",
                f"Differences in a fold: of the squared errors, {single.origin}.",
                NO_ESTIMATE,
                f"Valid if {condition.text} [{condition.code}: {PAGE}]",
            ],
            self.notes,
        )


def combine_comparisons(folds: Folds, found: Sequence[ModelComparison]) -> ModelComparison:
    """Return the comparisons of all folds as one."""
    first = found[0]
    models = adjusted_models(
        [ComparedModel.of_folds(folds, judged) for judged in zip(*found, strict=True)], first.correction
    )
    rejected = {model.name for model in models if model.rejected}
    return replace(
        first,
        models=tuple(models),
        pairs=tuple(
            combine_pairs(folds.names, pairs, calibrated=not rejected & {pairs[0].a, pairs[0].b})
            for pairs in zip(*(one.pairs for one in found), strict=True)
        ),
        folds=tuple(found),
        fold_names=folds.names,
    )


def adjusted_models(models: Sequence[ComparedModel], correction: str) -> list[ComparedModel]:
    """Return models with p-values of calibration that are adjusted for their number."""
    adjusted = correct_pvalues([model.test.pvalue for model in models], correction, CORRECTIONS)
    return [replace(model, pvalue_adjusted=float(p)) for model, p in zip(models, adjusted, strict=True)]


def few_draws_of_models(n_models: int, n_resamples: int, correction: str, alpha: float) -> list[Note]:
    """Return a caution if there are too few draws to reject calibration of any model."""
    smallest = float(correct_pvalues([1 / (n_resamples + 1)] * n_models, correction, (correction,)).min())
    number = smallest * (n_resamples + 1)
    return few_draws(n_resamples, number, alpha, f"and {n_models} models", of=" of calibration")
