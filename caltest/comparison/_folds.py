"""Comparison of models by cross-validated predictions: fold by fold, with combined p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._difference import DifferenceResult
from caltest.comparison._model_comparison import ModelComparison
from caltest.comparison._rejections import CORRECTIONS, rejections
from caltest.hypothesis_tests._by_fold import condition_of_folds, few_draws_of_folds, fold_notes, small_notes
from caltest.predictions.inputs._parts import Folds
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import Note, Result, TestResult
from caltest.results._decision import Decision, level_of, rejects
from caltest.results._description import Description, Table, join
from caltest.results._note import PAGE
from caltest.results._test_result import percent

if TYPE_CHECKING:
    import pandas as pd

_NO_ESTIMATE = (
    "No difference or interval of all observations is given, because the predictions of different folds are those of "
    "different models."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoldDifferences(Decision, Result):
    """Result of `paired_test` with ``folds``; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    tests : tuple of DifferenceResult
        The test of each fold.
    fold_names : tuple of str
        The id of each fold.
    statistic : float
        -log10 of the smallest p-value of the folds.
    pvalue : float
        Number of folds times the smallest of their p-values, at most 1: of the hypothesis that both models are equally
        miscalibrated in every fold.
    alpha : float
        Level of the conclusion, 1 minus that of the intervals.
    notes : tuple of Note
        Cautions.
    """

    tests: tuple[DifferenceResult, ...]
    fold_names: tuple[str, ...]
    statistic: float
    pvalue: float
    alpha: float
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("pvalue_adjusted", "better", "rejected", "decision", "conclusion")

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """P-values of the folds, Holm-adjusted for their number, ``(n_folds,)``."""
        return correct_pvalues([test.pvalue for test in self.tests])

    @property
    def smallest_possible_pvalue(self) -> float:  # type: ignore[override]
        """The smallest combined p-value that any labels could have."""
        return min(1.0, len(self.tests) * min(test.smallest_possible_pvalue for test in self.tests))

    @property
    def better(self) -> str | None:
        """The model that is better calibrated in all folds that reject after Holm's correction: "A", "B" or None."""
        found = [
            "B" if test.difference > 0 else "A"
            for test, p in zip(self.tests, self.pvalue_adjusted, strict=True)
            if rejects(p, self.alpha)
        ]
        return found[0] if len(set(found)) == 1 else None

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        found = f"at the {percent(self.alpha)} level (combined p = {self.pvalue:.4g}, {len(self.tests)} folds)"
        if self.decision == "undecidable":
            least = f"no labels could have a combined p-value below {self.smallest_possible_pvalue:.2g}"
            return f"Whether the models differ in calibration is undecidable {found}: {least}."
        if not self.rejected:
            proof = "This does not prove that the models are equally calibrated."
            return f"No difference in calibration is shown {found}. {proof}"
        where = [name for name, p in zip(self.fold_names, self.pvalue_adjusted, strict=True) if rejects(p, self.alpha)]
        folds = f"fold{'s' if len(where) > 1 else ''} {join(where)}"
        if self.better is None:
            return f"The models differ in calibration {found}, in different directions in {folds}."
        worse = "B" if self.better == "A" else "A"
        return f"Model {self.better} is better calibrated than model {worse} {found}, in {folds}."

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Fold, number of observations, difference with its interval, z, p-value and Holm-adjusted p-value.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "fold": name,
                    "n_samples": test.n_samples[0],
                    "difference": test.difference,
                    "low": test.confidence_interval.low,
                    "high": test.confidence_interval.high,
                    "statistic": test.statistic,
                    "pvalue": test.pvalue,
                    "pvalue_adjusted": adjusted,
                }
                for name, test, adjusted in zip(self.fold_names, self.tests, self.pvalue_adjusted, strict=True)
            ]
        )

    def _describe(self) -> Description:
        first = self.tests[0]
        size = sum(test.n_samples[0] for test in self.tests)
        head = ("fold", "n", f"A - B ({percent(first.confidence_level)} interval)", "z", "p-value", "p (Holm)")
        rows = [
            (
                name,
                f"{test.n_samples[0]}",
                f"{test.difference:.3g} {test.confidence_interval}",
                f"{test.statistic:.3g}",
                f"{test.pvalue:.4g}",
                f"{adjusted:.4g}",
            )
            for name, test, adjusted in zip(self.fold_names, self.tests, self.pvalue_adjusted, strict=True)
        ]
        condition = condition_of_folds(first.condition, is_grouped=first.n_groups is not None)
        return Description(
            f"Calibration of two models by fold ({first.lens_name}, {size} observations in {len(rows)} folds)",
            [self.conclusion],
            [Table(head, rows)],
            [
                f"Target in a fold: {first.target} (the same observations).",
                f"P-value: {CombinedPValues(len(rows)).origin}.",
                f"Null distribution in a fold: {first.origin}.",
                _NO_ESTIMATE,
                f"Valid if {condition.text} [{condition.code}: {PAGE}]",
            ],
            self.notes,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoldComparison(Result):
    """Result of `compare_models` with ``folds``; iterates over the comparisons of the folds.

    Attributes
    ----------
    comparisons : tuple of ModelComparison
        The comparison of the models of each fold.
    fold_names : tuple of str
        The id of each fold.
    names : tuple of str
        The models, in the order given.
    confidence_level : float
        Level of the intervals; decisions are made at 1 minus this level.
    correction : str
        How the p-values of calibration are adjusted for the number of models.
    notes : tuple of Note
        Cautions.
    """

    comparisons: tuple[ModelComparison, ...]
    fold_names: tuple[str, ...]
    names: tuple[str, ...]
    confidence_level: float
    correction: str
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("pvalues", "pvalue_adjusted", "conclusion")

    def __iter__(self) -> Iterator[ModelComparison]:
        return iter(self.comparisons)

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """P-value of "calibrated in every fold" of each model, combined over the folds, ``(n_models,)``."""
        rule = CombinedPValues(len(self.comparisons))
        return np.array([rule.pvalue([c.models[i].test.pvalue for c in self]) for i in range(len(self.names))])

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """The same p-values, adjusted for the number of models, ``(n_models,)``."""
        return correct_pvalues(self.pvalues, self.correction, CORRECTIONS)

    @property
    def conclusion(self) -> str:
        """For which models calibration is rejected, and which are better calibrated, in words."""
        differ = [
            f"{pair['better']} is better calibrated than {pair['b' if pair['better'] == pair['a'] else 'a']}."
            for pair in self._pairs()
            if pair["better"] is not None
        ]
        if not differ:
            possible = any(
                rejects(pair.test.smallest_possible_pvalue, self._alpha) for one in self for pair in one.pairs
            )
            unknown = "Whether the models differ in calibration is undecidable."
            differ = ["No difference is shown between any two models." if possible else unknown]
        level = percent(self._alpha)
        decisions = (
            f"Decisions are made at the {level} level, adjusted for the numbers of models, of pairs and of folds."
        )
        tests = [[comparison.models[i].test for comparison in self] for i in range(len(self.names))]
        first = rejections(self.names, self.pvalue_adjusted, tests, alpha=self._alpha, correction=self.correction)
        return " ".join([first, *differ, decisions])

    @property
    def _alpha(self) -> float:
        return level_of(self.confidence_level)

    def _pairs(self) -> list[dict[str, Any]]:
        """Return the pairs with their combined p-value, and the model that is better in all folds that show it."""
        rule, found = CombinedPValues(len(self.comparisons)), []
        for number, pair in enumerate(self.comparisons[0].pairs):
            each = [comparison.pairs[number] for comparison in self.comparisons]
            shown = {
                one.a if one.test.difference < 0 else one.b
                for one in each
                if rejects(rule.pvalue([one.pvalue_adjusted]), self._alpha)
            }
            least = min(range(len(each)), key=lambda i: each[i].pvalue_adjusted)
            found.append(
                {
                    "a": pair.a,
                    "b": pair.b,
                    "pvalue_adjusted": rule.pvalue([one.pvalue_adjusted for one in each]),
                    "smallest_fold": self.fold_names[least],
                    "better": shown.pop() if len(shown) == 1 else None,
                }
            )
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return the models as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each model, the name as index, with the combined and the adjusted p-value; see `pairs_frame` for
            the pairs and `folds_frame` for the folds.
        """
        import pandas as pd

        columns = {"model": self.names, "pvalue": self.pvalues, "pvalue_adjusted": self.pvalue_adjusted}
        return pd.DataFrame(columns).set_index("model")

    def pairs_frame(self) -> pd.DataFrame:
        """Return the pairs as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each pair, the names as index: p-value, adjusted for the numbers of pairs and of folds, the fold
            with the smallest one, and the better model.
        """
        import pandas as pd

        return pd.DataFrame(self._pairs()).set_index(["a", "b"])

    def folds_frame(self) -> pd.DataFrame:
        """Return the models of every fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each fold and model, both as index, with the numbers of `ModelComparison.to_frame`.
        """
        import pandas as pd

        return pd.concat([c.to_frame() for c in self], keys=self.fold_names, names=["fold"])

    def _describe(self) -> Description:
        first = self.comparisons[0]
        sizes = [comparison.models[0].test.n_samples for comparison in self]
        models = [
            (name, f"{p:.4g}", f"{adjusted:.4g}")
            for name, p, adjusted in zip(self.names, self.pvalues, self.pvalue_adjusted, strict=True)
        ]
        pairs = [
            (
                f"{pair['a']} - {pair['b']}",
                f"{pair['pvalue_adjusted']:.4g}",
                pair["smallest_fold"],
                "" if pair["better"] is None else "first" if pair["better"] == pair["a"] else "second",
            )
            for pair in self._pairs()
        ]
        errors = [
            (name, f"{size}", *(f"{model.miscalibration.root:.4f}" for model in comparison))
            for name, size, comparison in zip(self.fold_names, sizes, self, strict=True)
        ]
        of = f"{first.lens_name}, {sum(sizes)} observations in {len(sizes)} folds"
        condition = condition_of_folds(
            first.pairs[0].test.condition, is_grouped=first.pairs[0].test.n_groups is not None
        )
        return Description(
            f"Calibration of {len(self.names)} models by fold ({of})",
            [self.conclusion],
            [
                Table(("model", "combined p", "adjusted p"), models),
                Table(("first - second", "adjusted p", "in fold", "better"), pairs, left=("better",)),
                Table(("l2 error in fold", "n", *self.names), errors),
            ],
            [
                f"P-values: {CombinedPValues(len(sizes)).origin}.",
                f"Tests of calibration in a fold: {first.models[0].test.origin}.",
                f"Differences in a fold: of the squared l2 errors, {first.pairs[0].test.origin}.",
                _NO_ESTIMATE,
                f"Valid if {condition.text} [{condition.code}: {PAGE}]",
            ],
            self.notes,
        )


def combine_differences(folds: Folds, tests: Sequence[DifferenceResult]) -> FoldDifferences:
    """Return the tests of all folds as one result."""
    pvalues = [test.pvalue for test in tests]
    return FoldDifferences(
        tests=tuple(tests),
        fold_names=folds.names,
        statistic=-math.log10(min(pvalues)),
        pvalue=CombinedPValues(len(tests)).pvalue(pvalues),
        alpha=tests[0].alpha,
        notes=(
            *small_notes(folds.names, [test.n_samples[0] for test in tests]),
            *fold_notes(folds.names, tests),
        ),
    )


def tests_in(comparison: ModelComparison) -> list[TestResult]:
    """Return the test of calibration of each model of a comparison."""
    return [model.test for model in comparison]


def combine_comparisons(folds: Folds, comparisons: Sequence[ModelComparison]) -> FoldComparison:
    """Return the comparisons of all folds as one result."""
    first, tests = comparisons[0], [test for comparison in comparisons for test in tests_in(comparison)]
    return FoldComparison(
        comparisons=tuple(comparisons),
        fold_names=folds.names,
        names=tuple(model.name for model in first),
        confidence_level=first.confidence_level,
        correction=first.correction,
        notes=(
            *small_notes(folds.names, [comparison.models[0].test.n_samples for comparison in comparisons]),
            *few_draws_of_folds(tests, len(tests)),
            *fold_notes(folds.names, comparisons),
        ),
    )
