"""The result of a comparison of models: one entry for each model, one for each pair, and the cautions; also by fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from caltest.comparison._difference import MEANING, NO_ESTIMATE
from caltest.comparison._judged import SCORE_PARTS, ComparedModel
from caltest.comparison._pair import ComparedPair, combine_pairs
from caltest.hypothesis_tests._by_fold import few_draws_of_folds, fold_notes, small_notes
from caltest.hypothesis_tests._diagnostics import few_draws
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._parts import Folds
from caltest.predictions.inputs._validation import refuse_if
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, CombinedPValues
from caltest.results import Note, Result
from caltest.results._decision import Decided, DecisionWord, decide, equate_pvalue, rejects, show_pvalue, too_few
from caltest.results._description import Description, Table, counted
from caltest.results._models_verdict import ModelsVerdict, few_expected
from caltest.results._naming import describe
from caltest.results._note import PAGE
from caltest.results._picture import Picture

if TYPE_CHECKING:
    import pandas as pd

CORRECTIONS = (*UNDER_ANY_DEPENDENCE, *UNDER_INDEPENDENCE, "fdr_bh", "fdr_by")
"""Corrections that `compare_models` knows."""
ALMOST_CONSTANT = 0.01
"""Predictions with a smaller share of the maximal variance do not discriminate."""
_DRAWN = {"monte-carlo", "random-signs", "alike-labels", "timed-labels", "shared-shocks"}
_NAMES = {"fdr_bh": "Benjamini-Hochberg", "fdr_by": "Benjamini-Yekutieli"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(Decided, Result):
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

    See Also
    --------
    caltest.compare_models : The comparison that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> comparison = caltest.compare_models(y_true, models, n_resamples=99, rng=0)
    >>> [model.name for model in comparison], len(comparison.pairs)
    (['as it is', 'flat'], 1)
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
        *("ranking", "conclusion", "verdict", "notes", "target", "scores_of"),
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
    def decision(self) -> DecisionWord:
        """The decision about differences; "undecidable" if that about every pair is."""
        return decide(self.pvalue, self.alpha, self._smallest_possible, self._n_expected)

    @property
    def _smallest_possible(self) -> float:
        """The smallest adjusted p-value of a pair that was possible."""
        return min(pair.smallest_possible_pvalue for pair in self.pairs)

    @property
    def _n_expected(self) -> float:
        """The largest expected number of the rarer outcome of a pair."""
        return max(pair.test.n_expected for pair in self.pairs)

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
        return self.verdict.conclusion

    @cached_property
    def verdict(self) -> ModelsVerdict:
        """Which models are better calibrated and by how much, which are calibrated, and what to do."""
        calibration, unknown = self._calibration()
        single = self.pairs[0].test
        return ModelsVerdict.of_pairs(
            [pair.finding for pair in self.pairs],
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self._smallest_possible,
            subject=single.subject,
            n_samples=self.n_samples,
            n_groups=None if single.n_groups is None else max(single.n_groups),
            n_windows=single.n_windows,
            n_resamples=self.n_resamples,
            n_expected=self._n_expected,
            numbers=() if self.folds else tuple(model.typical_error for model in self.models),
            cautions=self.notes,
            names=self.ranking,
            calibration=calibration,
            p_of_calibration={model.name: model.pvalue_adjusted for model in self.models},
            unknown=unknown,
            n_folds=len(self.folds),
            paired=self.paired,
        )

    def _calibration(self) -> tuple[dict[str, DecisionWord], str]:
        """Return the decision about the calibration of each model, and why some decide nothing."""
        tests = [model.test for model in self.models]
        possible = [test.smallest_possible_pvalue for test in tests]
        smallest = float(correct_pvalues(possible, self.correction, CORRECTIONS).min())
        found = {
            model.name: decide(model.pvalue_adjusted, self.alpha, smallest, model.test.n_expected) for model in self
        }
        if rejects(smallest, self.alpha):
            return found, few_expected(self.pairs[0].test.subject)
        single = [one for test in tests for one in test.folds or (test,)]
        return found, too_few(
            smallest,
            min(test.smallest_possible_pvalue for test in single),
            None if single[0].n_groups is None else max(test.n_groups or 0 for test in single),
            single[0].n_resamples,
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

    def _too_few_draws(self) -> list[Note]:
        """Return a caution if no simulated test could reject, even if all had the smallest p-value."""
        if not any(model.test.method in _DRAWN for model in self.models):
            return []
        return few_draws_of_models(len(self.models), self.n_resamples, self.correction, self.alpha)

    def _single_notes(self) -> list[Note]:
        """Return the notes of tests and intervals, with the models that they are about where these are not all."""
        of_models = [
            (model.name, note) for model in self.models for note in (*model.test.notes, *model.miscalibration.notes)
        ]
        of_pairs = [(f"{pair.a} - {pair.b}", note) for pair in self.pairs for note in pair.test.notes]
        return [*_with_names(of_models, len(self.models)), *_with_names(of_pairs, len(self.pairs))]

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
                p = equate_pvalue(low.pvalue_adjusted, name="adjusted p")
                found.append(
                    f"{plain}calibration is rejected for {low.name} only ({p}, and "
                    f"{show_pvalue(high.pvalue_adjusted)} for {high.name})."
                )
            if pair.better == high.name:
                p = equate_pvalue(pair.pvalue_adjusted, name="adjusted p")
                found.append(f"{plain}{high.name} is better calibrated ({p}).")
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
        size = f"the same {counted(sizes[0])}" if self.paired else f"{sizes[0]:,} to {counted(sizes[-1])} each"
        plain = describe(first.plain.test_statistic)
        correction = _NAMES.get(self.correction, self.correction.title())
        drawn = "bootstrap samples" if self.pairs[0].test.lead is None else "random weights of the cosines"
        return Description(
            f"Calibration of {len(self.models)} models ({self.lens_name}, {size})",
            [self.conclusion],
            [*self.verdict.tables(), self._scores()],
            [
                MEANING,
                f"Tests of calibration: {describe(first.test.test_statistic)}, {first.test.origin}; p-values adjusted "
                f"by {correction}'s correction.",
                f"Differences: of the squared errors, {self.pairs[0].test.origin}; p-values, and intervals in "
                f"`pairs_frame()`, are adjusted for all pairs with {self.n_resamples:,} {drawn}.",
                f"Noise floor: the average of {plain} if the model is calibrated. {plain} minus its noise floor does "
                "not estimate the miscalibration; the typical error does.",
                f"Scores: of the {self.scores_of}. MCB is what isotonic recalibration gains, DSC what that gains on "
                "the base rate.",
                *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in first.test.conditions),
            ],
            self.notes,
        )

    def _scores(self) -> Table:
        """Return the table of accuracy, plain estimate and scores."""
        plain = self.models[0].plain.test_statistic.name
        parts = ["accuracy", "estimate", "noise_floor"]
        parts += [f"{score}_{part}" for score in ("brier", "log") for part in SCORE_PARTS]
        numbers = [model.numbers for model in self.models]
        scores = [(row["model"], *(f"{row[name]:z.4f}" for name in parts)) for row in numbers]
        return Table(("model", "accuracy", plain, "noise floor", "Brier", "MCB", "DSC", "log", "MCB", "DSC"), scores)

    def _describe_by_fold(self) -> Description:
        first, n_folds = self.folds[0], len(self.folds)
        errors = [
            (name, f"{fold.n_samples:,}", *(model.typical_error.shown for model in fold))
            for name, fold in zip(self.fold_names, self.folds, strict=True)
        ]
        single = first.pairs[0].test
        condition = single.condition_in_folds
        size = f"{counted(self.n_samples)} in {n_folds} folds"
        return Description(
            f"Calibration of {len(self.models)} models by fold ({self.lens_name}, {size})",
            [self.conclusion],
            [
                *self.verdict.tables(),
                Table(("typical error in fold", "n", *(model.name for model in self.models)), errors),
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


def _with_names(notes: Sequence[tuple[str, Note]], number: int) -> Iterator[Note]:
    """Yield each note once, with the names of what it is about where these are not all of several."""
    about: dict[tuple[str, str], list[str]] = {}
    for name, note in notes:
        about.setdefault((note.code, note.text), []).append(name)
    for (code, text), names in about.items():
        yield Note(code, text if len(names) == number > 1 else f"{', '.join(names)}: {text}")


def adjusted_models(models: Sequence[ComparedModel], correction: str) -> list[ComparedModel]:
    """Return models with p-values of calibration that are adjusted for their number."""
    adjusted = correct_pvalues([model.test.pvalue for model in models], correction, CORRECTIONS)
    return [replace(model, pvalue_adjusted=float(p)) for model, p in zip(models, adjusted, strict=True)]


def few_draws_of_models(n_models: int, n_resamples: int, correction: str, alpha: float) -> list[Note]:
    """Return a caution if there are too few draws to reject calibration of any model."""
    smallest = float(correct_pvalues([1 / (n_resamples + 1)] * n_models, correction, (correction,)).min())
    number = smallest * (n_resamples + 1)
    return few_draws(n_resamples, number, alpha, f"and {n_models} models", of=" of calibration")
