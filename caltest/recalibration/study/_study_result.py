"""The result of a recalibration study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.scores._score_decomposition import log_of, mean_of
from caltest.hypothesis_tests._numbers import typical_error
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import induce
from caltest.recalibration.study._study_entries import BEFORE, UNCHANGED, RepairedModel, RepairedPair
from caltest.results import Note, Result
from caltest.results._before_after import BeforeAfter
from caltest.results._decision import DecisionWord, align_pvalue, decide, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, join, percent
from caltest.results._naming import describe
from caltest.results._note import PAGE
from caltest.results._picture import Picture
from caltest.results._verdict import Judged, Verdict
from caltest.statistics._sums_in_time import cosines, fewest_windows, number_of_cosines

if TYPE_CHECKING:
    import pandas as pd


_IN_TIME = " A fold is a stretch of time; what was predicted a lead or more before it is its calibration part."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RecalibrationStudy(Judged, Result):
    """Result of `recalibration_study`; iterates over the models before and after each method.

    Attributes
    ----------
    rows : tuple of RepairedModel
        Each model before recalibration, and after each method.
    pairs : tuple of RepairedPair
        All pairs of methods on each model.
    fold_names : tuple of str
        The id of each fold; ``("held-out",)`` for a single split.
    held_out : tuple of arrays of int
        The observations that judge in each fold.
    y_true : array of shape (n_samples,)
        Class indices.
    y_prob : dict of str to array of shape (n_samples, n_classes)
        Predictions of each model before recalibration.
    classes : tuple or None
        The label of each class.
    lens : lens
        What l2 errors and differences look at.
    lens_name : str
        The lens in words.
    alpha : float
        Level of the decisions; 1 minus that of the intervals.
    n_resamples : int
        Number of draws of each test.
    design : dict
        Weight, group and timing of each observation, or None.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.recalibration_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> repairs = [caltest.recalibration.TemperatureScaling(), caltest.recalibration.PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, {"model": y_prob}, repairs, folds=2, n_resamples=199, rng=0)
    >>> [row.name for row in study]
    ['before', 'TemperatureScaling()', 'PlattScaling()']
    """

    rows: tuple[RepairedModel, ...]
    pairs: tuple[RepairedPair, ...]
    fold_names: tuple[str, ...]
    held_out: tuple[Integers, ...]
    y_true: Integers
    y_prob: Mapping[str, NDArray[Any]]
    classes: tuple[Any, ...] | None
    lens: LensLike
    lens_name: str
    alpha: float
    n_resamples: int
    design: Mapping[str, Any]
    notes: tuple[Note, ...] = ()

    plot = Picture("plot_recalibration")
    _derived: ClassVar[tuple[str, ...]] = ("n_samples", "pvalue", "rejected", "decision", "conclusion")
    _left_out: ClassVar[frozenset[str]] = frozenset({"held_out", "y_true", "y_prob", "design"})

    def __iter__(self) -> Iterator[RepairedModel]:
        return iter(self.rows)

    @property
    def n_samples(self) -> int:
        """Number of held-out observations."""
        return self.rows[0].n_samples

    @property
    def pvalue(self) -> float:
        """P-value of the hypothesis that no recalibrator changes the l2 error: the smallest adjusted one."""
        return min(row.change_adjusted for row in self.rows if row.change is not None)

    @property
    def verdict(self) -> Verdict:
        """The decision about changes, what is wrong before, and what to do with the best score of each model."""
        advised = []
        for model in self.models:
            tried = (row for row in self.rows if row.model == model and row.maps)
            name = min(tried, key=lambda row: row.log_score).recalibrator
            advised.append(f"{model}, {name}: {self.before_after(name, model).advice}")
        before = (row for row in self.rows if row.recalibrator == BEFORE)
        findings = tuple(finding for row in before for finding in self._verdict_of(row).findings)
        return replace(super().verdict, findings=findings, advised=tuple(advised))

    @property
    def decision(self) -> DecisionWord:
        """The decision about changes; "undecidable" if no p-value as small as ``alpha`` was possible."""
        smallest = min(row.change.smallest_possible_pvalue for row in self.rows if row.change is not None)
        return decide(self.pvalue, self.alpha, smallest)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.y_prob)

    def row(self, recalibrator: str, model: str | None = None) -> RepairedModel:
        """Return a model after a method.

        Parameters
        ----------
        recalibrator : str
            The name of a recalibrator, or "before".
        model : str, optional
            The name of the model; the first one by default.

        Returns
        -------
        RepairedModel
            What held-out observations show about it.

        Raises
        ------
        KeyError
            If there is no such model or method.
        """
        name = self.models[0] if model is None else model
        for row in self.rows:
            if (row.model, row.recalibrator) == (name, recalibrator):
                return row
        known = list(dict.fromkeys(row.recalibrator for row in self.rows))
        msg = (
            f"there is no recalibrator {recalibrator!r} on model {name!r}; recalibrators are {known}, models "
            f"{list(self.models)}."
        )
        raise KeyError(msg)

    def predict(self, recalibrator: str, model: str | None = None) -> NDArray[Any]:
        """Return the held-out predictions of a model after a method.

        Parameters
        ----------
        recalibrator : str
            The name of a recalibrator, or "before".
        model : str, optional
            The name of the model; the first one by default.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Each observation is predicted by the map that was not fitted to it; NaN where an observation judges in no
            fold, because it belongs to the calibration part of a single split, or to the first stretch of time.

        Raises
        ------
        KeyError
            If there is no such model or method.
        """
        row = self.row(recalibrator, model)
        prob = self.y_prob[row.model]
        found = np.full_like(prob, np.nan)
        for number, rows in enumerate(self.held_out):
            found[rows] = row.maps[number].predict_proba(prob[rows]) if row.maps else prob[rows]
        return found

    def before_after(self, recalibrator: str, model: str | None = None) -> BeforeAfter:
        """Return what a method achieves on held-out observations, in the numbers of a verdict.

        Numbers are those of the held-out observations of all folds together, so that those after recalibration are
        about the maps of all folds on average. Their intervals are asymptotic in this respect. P-values are those of
        the rows: combined over the folds, not adjusted for other methods.

        Parameters
        ----------
        recalibrator : str
            The name of a recalibrator.
        model : str, optional
            The name of the model; the first one by default.

        Returns
        -------
        BeforeAfter
            Verdicts before and after, and whether to use the recalibrated predictions or to keep the original ones.

        Raises
        ------
        KeyError
            If there is no such model or method.
        """
        row, before = self.row(recalibrator, model), self.row(BEFORE, model)
        return BeforeAfter(
            model=row.model,
            recalibrator=row.recalibrator,
            fitted=row.fitted,
            n_folds=len(self.held_out),
            before=self._verdict_of(before),
            after=self._verdict_of(row),
            accuracy=(before.accuracy, row.accuracy),
            log_score=(before.log_score, row.log_score),
            unchanged=set(row.chosen) == {UNCHANGED},
            is_smaller=row.better is True,
            is_larger=row.better is False,
            clear_change=self._clear_change(row),
        )

    def _verdict_of(self, row: RepairedModel) -> Verdict:
        """Return what is wrong with the held-out predictions of all folds together, decided by the p-value of a row."""
        rows = np.sort(np.concatenate(self.held_out))
        design = {name: None if values is None else values[rows] for name, values in self.design.items()}
        prob = self.predict(row.recalibrator, row.model)[rows]
        sample = induce(prob, self.y_true[rows], lens=self.lens, **design)
        folds = [np.searchsorted(rows, np.sort(held)) for held in self.held_out]
        return row.verdict_of(sample, self.lens, self.classes, folds)

    def _clear_change(self, row: RepairedModel) -> int:
        """Return the sign of the change of the log score; 0 if it may be chance."""
        after = self.predict(row.recalibrator, row.model)
        weight, group, timing = (self.design[name] for name in ("weight", "group", "timing"))
        held = np.isfinite(after[:, 0]) & (True if weight is None else weight > 0)
        label = self.y_true[held]
        with np.errstate(invalid="ignore"):  # twice impossible
            change = log_of(after[held], label) - log_of(self.y_prob[row.model][held], label)
            mean = mean_of(change, None if weight is None else weight[held])
        if not np.isfinite(change).all():
            return 0 if np.isnan(mean) else int(np.sign(mean))
        from scipy.special import stdtr

        sums = (change - mean) * (1.0 if weight is None else weight[held])
        if group is not None:
            sums = np.bincount(np.unique(group[held], return_inverse=True)[1], sums)
        total = len(change) if weight is None else weight[held].sum()
        freedom, squares = len(sums) - 1, float(sums @ sums)
        if timing is not None:  # as many observations as cosines of the time (Diebold and Mariano 1995)
            timing = timing[held].settled()
            if timing.n_windows < fewest_windows():
                return 0
            freedom = number_of_cosines(timing)
            squares = max(squares, sum(float(sums @ cosine) ** 2 for cosine in cosines(timing)) / freedom)
        if freedom < 1 or mean == 0:
            return 0
        error = np.sqrt(squares * (1 if timing is not None else len(sums) / freedom)) / total
        pvalue = 0.0 if error == 0 else 2 * float(stdtr(freedom, -abs(mean) / error))
        return int(np.sign(mean)) if rejects(pvalue, self.alpha) else 0

    @property
    def conclusion(self) -> str:
        """For which models and methods calibration is rejected, which are better than before, and pairs, in words."""
        sentences = [self._about(model) for model in self.models]
        if self.pairs:
            shown = [pair for pair in self.pairs if pair.better is not None]
            what = f"A difference between methods is shown for {len(shown) or 'none'} of the {len(self.pairs)} pairs"
            sentences.append(f"{what}.")
        level = percent(self.alpha)
        sentences.append(f"Decisions are made at the {level} level, Holm-adjusted within each family of tests.")
        return " ".join(sentences)

    def _about(self, model: str) -> str:
        before, *after = [row for row in self.rows if row.model == model]
        calm = [row.recalibrator for row in after if not rejects(row.pvalue_adjusted, self.alpha)]
        still = [row.recalibrator for row in after if rejects(row.pvalue_adjusted, self.alpha)]
        p = equate_pvalue(before.pvalue_adjusted, name="adjusted p")
        if rejects(before.pvalue_adjusted, self.alpha):
            found = [f"Calibration of {model} is rejected before recalibration ({p})"]
            found += [f"no longer after {join(calm)}"] if calm else []
            found += [f"still after {join(still)}"] if still else []
            text = ", ".join(found) + "."
        elif before.decision == "undecidable":
            text = f"{model}: {before.undecidable}"
            text += f" Calibration is rejected after {join(still)}." if still else ""
        else:
            where = " in any fold" if len(self.held_out) > 1 else ""
            text = f"Calibration of {model} is not rejected{where} before recalibration ({p}), which does not prove it."
            text += f" It is rejected after {join(still)}." if still else ""
        better = [row.recalibrator for row in after if row.better is True]
        worse = [row.recalibrator for row in after if row.better is False]
        text += f" Better calibrated than before: {join(better)}." if better else ""
        text += f" Worse than before: {join(worse)}." if worse else ""
        return text if better or worse else f"{text} No method is shown to make it better or worse."

    def to_frame(self) -> pd.DataFrame:
        """Return models and methods as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each model and method, both as index: scores with their parts, errors with noise floors and
            p-values, l2 error with its interval, and the change; see `pairs_frame` and `folds_frame`.
        """
        import pandas as pd

        return pd.DataFrame([row.numbers for row in self.rows]).set_index(["model", "recalibrator"])

    def pairs_frame(self) -> pd.DataFrame:
        """Return the pairs of methods as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each model and pair, as index, with difference, interval, p-values and the better one.
        """
        import pandas as pd

        columns = ["model", "a", "b", "difference", "low", "high", "pvalue", "pvalue_adjusted", "better"]
        return pd.DataFrame([pair.numbers for pair in self.pairs], columns=columns).set_index(["model", "a", "b"])

    def folds_frame(self) -> pd.DataFrame:
        """Return every error of every fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each model, method, fold and statistic: value, noise floor and p-value.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {"model": row.model, "recalibrator": row.recalibrator, "fold": fold["fold"], **error}
                for row in self.rows
                for fold in row.fold_numbers
                for error in fold["errors"]
            ]
        )

    def _describe(self) -> Description:
        n_folds, first = len(self.held_out), self.rows[0]
        size = counted(first.n_samples)
        where = f"{size} in {n_folds} folds" if n_folds > 1 else f"{size} held out"
        level = percent(1 - self.alpha)
        tests = sum(len(fold.tests) for fold in first.folds)
        rule = (
            f"{tests} times the smallest p-value of {tests} tests (Bonferroni's rule)" if tests > 1 else "of one test"
        )
        tables = []
        for model in self.models:
            tables += self._tables(model, level)
        return Description(
            f"Recalibration of {join(self.models)} ({self.lens_name}, {where})",
            [self.conclusion],
            tables,
            [
                "Every method is fitted to the calibration part of each fold and judged by the held-out part; numbers "
                f"are means of the folds.{_IN_TIME * (self.design['timing'] is not None)}",
                f"P-values: {rule}, Holm-adjusted over all models and methods; no test pools observations of different "
                f"folds. Tests of calibration in a fold: {describe(first.folds[0].tests[0].test_statistic)}, "
                f"{first.folds[0].tests[0].origin}.",
                f"Intervals: means of intervals of the folds, each at the level {percent(1 - self.alpha / n_folds)}, "
                "about the mean of the folds; p-values are about the fold that differs most. A change is one of the "
                "squared l2 error (asymptotic, conservative near calibration); `to_frame()` has its size.",
                "Scores: of the whole prediction. MCB is what isotonic recalibration of the confidence gains in the "
                "Brier score, DSC what that gains on the base rate.",
                "Noise floor: the average of an error if the model is calibrated. An error minus its noise floor does "
                "not estimate the miscalibration; the typical error does.",
                *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in first.folds[0].tests[0].conditions),
            ],
            self.notes,
        )

    def _tables(self, model: str, level: str) -> list[Table]:
        rows = [row for row in self.rows if row.model == model]
        name = rows[0].folds[0].errors[0].test_statistic.name
        evidence = [
            (
                row.recalibrator,
                typical_error(row.miscalibration).shown,
                *(f"{value:.4f}" for value in row.mean_error(0)),
                align_pvalue(row.pvalue_adjusted),
                "" if row.change is None else align_pvalue(row.change_adjusted),
                {True: "better", False: "worse", None: ""}[row.better],
            )
            for row in rows
        ]
        parts = "accuracy", "log", "brier", "brier_miscalibration", "brier_discrimination"
        scores = [(row.recalibrator, *(f"{row.scores[part]:z.4f}" for part in parts), row.found) for row in rows]
        head = (model, f"typical error ({level} interval)", name, "noise floor", "adjusted p", "change: adjusted p", "")
        return [
            Table(head, evidence, left=("",)),
            Table((model, "accuracy", "log", "Brier", "MCB", "DSC", "fitted"), scores, left=("fitted",)),
        ]
