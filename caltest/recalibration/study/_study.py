"""Recalibration methods judged on observations that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import combinations, count
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.comparison._difference import DifferenceResult, combine_differences
from caltest.comparison._judged import Judge, Observed
from caltest.comparison._options import StudyOptions
from caltest.comparison._pair import PairDifferences, compare_pairs
from caltest.hypothesis_tests._by_fold import refuse_divided_groups
from caltest.hypothesis_tests._diagnostics import few_draws, warn_before
from caltest.hypothesis_tests._residual_correlation import correlation_notes
from caltest.predictions._arrays import Booleans, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import named_models, validate_models, validate_names
from caltest.predictions.inputs._parts import Folds, validate_folds
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._times import Timing
from caltest.predictions.inputs._validation import (
    refuse_crossed,
    refuse_if,
    require,
    validate_count,
    validate_design,
    validate_rng,
)
from caltest.recalibration.maps._base import Recalibrator, fit_quietly, names_of_methods, validate_methods
from caltest.recalibration.maps._linear_scaling import DirichletCalibration, VectorScaling
from caltest.recalibration.maps._logistic_maps import BetaCalibration, PlattScaling
from caltest.recalibration.maps._spline_calibration import SplineCalibration
from caltest.recalibration.maps._step_functions import HistogramBinning, IsotonicCalibration, ScalingBinning
from caltest.recalibration.maps._temperature import TemperatureScaling
from caltest.recalibration.study._study_entries import BEFORE, RepairedModel, RepairedPair
from caltest.recalibration.study._study_result import RecalibrationStudy
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import Note
from caltest.results._progress import reporting
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic


@reads_arguments
def recalibration_study(
    y_true: ArrayLike,
    models: Mapping[str, Any] | Sequence[tuple[str, Any]],
    recalibrators: Mapping[str, Recalibrator] | Sequence[Recalibrator] | None,
    *,
    folds: int | ArrayLike = 5,
    held_out: ArrayLike | None = None,
    statistics: Sequence[Statistic | str] | None = None,
    n_resamples: int | None = None,
    **options: Unpack[StudyOptions],
) -> RecalibrationStudy:
    r"""Fit recalibration methods to a part of the observations, and judge them by the others.

    In each of K folds every method is fitted to the observations of the other folds, and predicts those of the fold,
    whose labels it has not seen. There the model is judged before and after: accuracy, Brier and log score with their
    parts, every error with its noise floor and p-value, the debiased squared l2 error with its interval, and tests of
    the differences of this error before and after and between methods (`paired_test`).

    Observations of different folds are never pooled in a test, because their maps differ and each was fitted to labels
    of the other folds. The p-values of the folds are combined to :math:`\min(1, K \min_k p_k)`, valid under any
    dependence between the folds; intervals of the folds have the level :math:`1 - \alpha / K`, and the means of their
    ends contain the mean error of the K maps with probability :math:`1 - \alpha` at least. The model before is judged
    by the same rule, so that "no longer rejected" is not a matter of fewer observations. Combined p-values are
    Holm-adjusted in three families, each over all models: calibration before and after each method, changes by each
    method, and pairs of methods.

    With ``time`` and ``lead`` random folds would fit maps to labels that are known only later. The time is divided into
    K + 1 stretches with about as many observations each instead. Each of the K later ones is judged by maps that were
    fitted to the predictions made a lead or more before its first one, all of whose labels were known then; the first
    stretch judges nothing. Tests, intervals and differences allow for labels that depend on each other within a lead.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    models : mapping of str to array-like, or sequence of pairs (str, array-like)
        Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``.
    recalibrators : sequence of Recalibrator, mapping of str to Recalibrator, or None
        The methods; None for nine of them: `TemperatureScaling`, `VectorScaling`, `DirichletCalibration`,
        `PlattScaling`, `BetaCalibration`, `IsotonicCalibration`, `HistogramBinning`, `ScalingBinning` and
        `SplineCalibration`. `AutomaticCalibration` makes its choice within the calibration part of each fold.
    folds : int or array-like of shape (n_samples,)
        Number of folds, which are drawn without looking at labels and keep groups together, or with ``time`` of later
        stretches, which may be 1; or the fold of each observation, integers or strings, without ``time``.
    held_out : array-like of bool of shape (n_samples,), optional
        A single split instead of folds: methods are fitted where it is False and judged where it is True. With
        ``time`` they are fitted to those of the former that are a lead or more before all of the latter.
    lens : lens, optional
        What tests, l2 errors and differences look at. By default the whole prediction, and for statistics that need two
        outcomes the confidence. Methods are fitted to the whole prediction in any case.
    statistics : sequence of Statistic, optional
        Errors and test statistics; ``[Omnibus()]`` by default, which has five, or six for two outcomes. Calibration is
        tested by all of them, with Bonferroni's rule.
    partition : Partition or callable, optional
        Cells (bins) of the l2 error, fitted to the predictions of each model; ``VarianceTree()`` by default.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation, in the fit and in the judgement.
    alpha : float
        Level of the decisions; intervals have the level 1 - ``alpha``.
    n_resamples : int, optional
        Number of draws of each test; by default 9,999, and 999 for more than 5,000,000 predicted probabilities.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds and of the draws.

    Returns
    -------
    RecalibrationStudy
        Prints as a report with a table of all models and methods. A method that refuses the calibration part of a fold,
        for example because a class has no label there, is left out with a note.

    Raises
    ------
    TypeError
        If ``models`` or ``recalibrators`` has a wrong type, a statistic is none, ``held_out`` holds no booleans, or
        another argument has a wrong type.
    ValueError
        If there is no model or no method, all methods refuse the data, or a name is empty, occurs twice or is "before";
        if predictions are outside [0, 1] or do not sum to 1, or a label is unknown; if ``folds`` is less than 2 or more
        than half of the observations or groups, a group lies in several folds, or ``held_out`` is constant; if with
        ``time`` folds are no number, or nothing is a lead before one of them, or ``groups`` are given too; if
        ``alpha`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if a statistic needs two outcomes and the
        lens returns more.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if there are too few draws for any adjusted p-value of calibration to reach the level.

    See Also
    --------
    caltest.recalibration.AutomaticCalibration : Chooses a method.
    caltest.compare_models : Comparison of models as they are.

    Notes
    -----
    The p-values are valid if the predictions were made without the labels of ``y_true``, and observations (groups) are
    independent. Tests of differences are asymptotic, conservative near calibration. Folds are not stratified: then the
    labels that a method was fitted to would determine how often each class occurs in the held-out part.

    References
    ----------
    K. Gupta et al. (2020), Calibration of neural networks using splines, arXiv 2006.12800, tables 1 to 7.
    V. Vovk and R. Wang (2020), Combining p-values via averaging, Biometrika.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import HistogramBinning, TemperatureScaling
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> models, recalibrators = {"VGG-16": y_prob}, [TemperatureScaling(), HistogramBinning()]
    >>> study = caltest.recalibration_study(y_true, models, recalibrators, n_resamples=999, rng=0)
    >>> before, scaled, binned = study
    >>> before.miscalibration.root_text, scaled.miscalibration.root_text
    ('0.0166 (0.0042 to 0.0334)', '0.0098 (0.0000 to 0.0271)')
    >>> scaled.better, binned.better
    (True, None)
    >>> scaled.found
    'T = 1.68 to 1.69'
    """
    alpha, lens, classes = options["alpha"], options["lens"], options["classes"]
    named = named_models(models)
    outcome, probs = validate_models(y_true, named, classes)
    n_resamples = number_of_draws(n_resamples, USUAL_DRAWS, probs[0].size)
    methods = _named_methods(recalibrators)
    design = validate_design(
        options["sample_weight"], options["groups"], len(outcome), options["time"], options["lead"]
    )
    generator = validate_rng(options["rng"])
    parts = validate_parts(folds, held_out, design, len(outcome), generator)
    judge = Judge(
        questions=_questions(statistics, lens, probs[0].shape[1]),
        lens=Canonical() if lens is None else lens,
        score_lens=Canonical(),
        confidence_level=1 - alpha / len(parts),
        n_resamples=n_resamples,
        options=options,
    )
    n_tests, n_rows = len(parts) * len(judge.questions), len(named) * (1 + len(methods))
    tests, but = f"for each of {n_tests} tests of {n_rows} models", ", unless tests are exact"
    few = few_draws(n_resamples, n_tests * n_rows, alpha, tests, but, of=" of calibration")
    warn_before(few)
    streams = generator.spawn(len(parts))
    rows: list[RepairedModel] = []
    pairs: list[RepairedPair] = []
    cautions: dict[tuple[str, str, str], list[str]] = {}
    of_groups: dict[Note, None] = {}
    total = len(named) * len(parts) * (1 + 2 * len(methods))  # each method is fitted and judged
    what = f"judging {len(methods)} recalibration method{'' if len(methods) == 1 else 's'}"
    with reporting(options["progress"], what) as report:
        finished = count(1)

        def step() -> None:
            report(next(finished), total)

        for name, prob in zip(named, probs, strict=True):
            found = []
            for (fold, held), stream in zip(parts, streams, strict=True):
                fitted, weight = _calibration_part(held, design["timing"], len(outcome)), design["weight"]
                given = prob[fitted], outcome[fitted], None if weight is None else weight[fitted]
                maps, said = _fit_all(methods, given, step)
                for (code, method), texts in said.items():
                    for text in texts:
                        caution = f"fold {fold}: {text}" if code == "C703" else text
                        cautions.setdefault((code, name, method), []).append(caution)
                part = {key: None if value is None else value[held] for key, value in design.items()}
                judged = {}
                for method in (BEFORE, *methods):
                    if method == BEFORE or method in maps:
                        values = prob[held] if method == BEFORE else maps[method].predict_proba(prob[held])
                        observed = Observed(values, outcome[held], part)
                        judged[method] = observed, judge.judge(method, observed, stream)
                    step()
                found.append((maps, judged))
            kept = [BEFORE, *(method for method in methods if all(method in maps for maps, _ in found))]
            tested = [
                _differences([judged[method][0] for method in kept], judge, deepcopy(stream))
                for (_, judged), stream in zip(found, streams, strict=True)
            ]
            of_groups |= dict.fromkeys(note for one in tested for note in one.notes)
            own, compared = _entries(name, kept, found, [one.single for one in tested], folds=parts, alpha=alpha)
            rows, pairs = rows + own, pairs + compared
    if len(rows) == len(named):
        reason = next(iter(cautions.values()))[0]
        refuse(f"`recalibrators` must hold a method that accepts the data, but all refused them: {reason}")
    rows = _adjusted(rows, "pvalue_adjusted", [row.pvalue for row in rows])
    rows = _adjusted(rows, "change_adjusted", [None if row.change is None else row.change.pvalue for row in rows])
    pairs = _adjusted(pairs, "pvalue_adjusted", [pair.test.pvalue for pair in pairs])
    return RecalibrationStudy(
        rows=tuple(rows),
        pairs=tuple(pairs),
        fold_names=parts.names,
        held_out=parts.members,
        y_true=outcome,
        y_prob=dict(zip(named, probs, strict=True)),
        classes=None if classes is None else tuple(classes),
        lens=judge.lens,
        lens_name=judge.lens_name,
        alpha=alpha,
        n_resamples=n_resamples,
        notes=(
            *few,
            *_correlated(probs[0], outcome, design, options),
            *of_groups,
            *_study_notes(rows, cautions, len(parts)),
        ),
        design=design,
    )


def _questions(
    statistics: Sequence[Statistic | str] | None, lens: LensLike | None, n_classes: int
) -> list[tuple[Statistic, LensLike]]:
    """Return the statistics, each with its lens."""
    given = [Omnibus()] if statistics is None else statistics
    must = "`statistics` must be a sequence of statistics such as [ECE(), ClasswiseKS()]"
    require(not isinstance(given, Statistic | str) and isinstance(given, Sequence), must, given, right_type=False)
    refuse_if(not given, "`statistics` must hold at least one statistic, got none.")
    chosen = [validate_statistic(statistic) for statistic in given]
    return [(one, default_lens(one, n_classes) if lens is None else lens) for one in chosen]


def _differences(observed: Sequence[Observed], judge: Judge, stream: np.random.Generator) -> PairDifferences:
    """Return the test of each pair of a model before and after all methods, on the observations of a fold."""
    samples = [one.behind(judge.lens) for one in observed]
    return compare_pairs([one.prob for one in observed], samples, **judge.of_differences, paired=True, rng=stream)


def _fit_all(
    methods: Mapping[str, Recalibrator], part: tuple[Any, Any, Any], step: Callable[[], None]
) -> tuple[dict[str, Recalibrator], dict[tuple[str, str], list[str]]]:
    """Return every method that accepts a calibration part, fitted to it, and cautions by their code and method.

    A part is its predictions, outcomes and weights; ``step`` is called after each method.
    """
    maps, said = {}, {}
    for name, method in methods.items():
        try:
            maps[name], said["C704", name] = fit_quietly(method, *part)
        except ValueError as error:
            said["C703", name] = [str(error)]
        step()
    return maps, said


def _entries(
    model: str, kept: Sequence[str], found: Sequence[Any], tests: Sequence[Any], *, folds: Folds, alpha: float
) -> tuple[list[RepairedModel], list[RepairedPair]]:
    """Return the model before and after each method that was fitted in all folds, and all pairs of methods."""

    def between(a: int, b: int) -> DifferenceResult:
        return combine_differences(folds.names, [of_fold[a, b] for of_fold in tests], alpha)

    rows = [
        RepairedModel.of_folds(
            folds,
            [judged[method][1] for _, judged in found],
            model=model,
            maps=tuple(maps[method] for maps, _ in found) if method != BEFORE else (),
            change=between(0, place) if place else None,
            alpha=alpha,
        )
        for place, method in enumerate(kept)
    ]
    pairs = [
        RepairedPair(model=model, a=kept[a], b=kept[b], test=between(a, b), alpha=alpha)
        for a, b in combinations(range(1, len(kept)), 2)
    ]
    return rows, pairs


def _adjusted(entries: Sequence[Any], name: str, pvalues: Sequence[float | None]) -> list[Any]:
    """Return entries with their Holm-adjusted p-values by this name; those without a p-value stay as they are."""
    given = [pvalue for pvalue in pvalues if pvalue is not None]
    adjusted = iter(correct_pvalues(given) if given else ())
    return [
        entry if pvalue is None else replace(entry, **{name: float(next(adjusted))})
        for entry, pvalue in zip(entries, pvalues, strict=True)
    ]


def _study_notes(
    rows: Sequence[RepairedModel], cautions: Mapping[tuple[str, str, str], Sequence[str]], n_folds: int
) -> list[Note]:
    """Return the cautions of all fits, one for each model and method, and those on labels of probability 0."""
    several = len({row.model for row in rows}) > 1
    notes = []
    for (code, model, method), texts in cautions.items():
        where = f"{method} on {model}" if several else method
        if code == "C703":
            notes.append(Note(code, f"{where} is left out, because it refuses the data. {texts[0]}"))
        else:
            often = f" (one of {len(texts)} cautions in {n_folds} folds)" if len(texts) > 1 else ""
            notes.append(Note(code, f"{where}: {texts[0]}{often}"))
    for row in rows:
        if row.n_impossible:
            where = f"{row.recalibrator}{f' on {row.model}' if several else ''}"
            what = "1 held-out label has" if row.n_impossible == 1 else f"{row.n_impossible} held-out labels have"
            notes.append(Note("C705", f"{where}: {what} probability 0, so that the log score is infinite."))
    return notes


def _default_methods() -> list[Recalibrator]:
    """Return the methods of a study unless others are given."""
    return [
        TemperatureScaling(),
        VectorScaling(),
        DirichletCalibration(),
        PlattScaling(),
        BetaCalibration(),
        IsotonicCalibration(),
        HistogramBinning(),
        ScalingBinning(),
        SplineCalibration(),
    ]


def _named_methods(recalibrators: Any) -> dict[str, Recalibrator]:
    """Return the methods by name: their own code unless they are given names."""
    if isinstance(recalibrators, Recalibrator | str) or not isinstance(recalibrators, Mapping | Sequence | None):
        refuse(
            f"`recalibrators` must be a sequence of methods such as [TemperatureScaling()], got {recalibrators!r}.",
            TypeError,
        )
    listed = _default_methods() if recalibrators is None else recalibrators
    methods = list(listed.values()) if isinstance(listed, Mapping) else list(listed)
    validate_methods(methods, "recalibrators")
    names = list(listed) if isinstance(listed, Mapping) else names_of_methods(methods)
    validate_names(names, "recalibrators")
    if not names or BEFORE in names:
        refuse(f'`recalibrators` must hold at least one method, none of them named "{BEFORE}", got {names}.')
    return dict(zip(names, methods, strict=True))


def _correlated(prob: Any, outcome: Any, design: Mapping[str, Any], options: Any) -> tuple[Note, ...]:
    """Return a caution if there are dates without a lead, and residuals are correlated in their order."""
    sample = induce(prob, outcome, lens=options["lens"], **design)
    return correlation_notes(sample, options["time"], options["lead"])


def _calibration_part(held: Integers, timing: Timing | None, n_samples: int) -> Integers:
    """Return the observations to which maps are fitted: all others, or in time those that are a lead or more before."""
    if timing is None:
        return np.delete(np.arange(n_samples), held)
    before = np.flatnonzero(timing.step + timing.lead <= timing.step[held].min())
    if not before.size:
        refuse(
            f"no prediction was made a lead ({timing.text}) or more before those that judge, so that no map can be "
            "fitted to labels that were known: take fewer `folds`, or a later `held_out` part."
        )
    return before


def _stretches(folds: Any, timing: Timing) -> Folds:
    """Return the later stretches of time, of about as many observations each; the first one judges nothing."""
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool):
        refuse(
            "`folds` must be a number with `time`: each fold is a stretch of time, which is judged by maps that were "
            "fitted to earlier ones. Otherwise pass `held_out`, True for the later observations."
        )
    number = validate_count(folds, "folds")
    _, place, count = np.unique(timing.step, return_inverse=True, return_counts=True)
    stretch = ((np.cumsum(count) - count) * (number + 1) // len(timing))[place]
    members = tuple(np.flatnonzero(stretch == k) for k in range(1, number + 1))
    few = [len(rows) for rows in members if len(rows) < 2]
    refuse_if(few, f"`folds` must leave two observations or more in each stretch of time, got {few[:1]} with {number}.")
    return Folds(tuple(map(str, range(number))), members)


def validate_parts(
    folds: Any, held_out: Any, design: Mapping[str, Any], n_samples: int, rng: np.random.Generator
) -> Folds:
    """Return the held-out parts of a study, of which the other observations are the calibration part.

    A group is never divided. Folds are drawn without looking at labels: in stratified folds the labels of the
    calibration part would determine how often each class occurs in the held-out part, which is then not the independent
    judge that tests assume.
    """
    refuse_crossed(design)
    group, timing = design["group"], design["timing"]
    if held_out is not None:
        judging = _validate_held_out(held_out, n_samples)
        parts, number = Folds(("held-out",), (np.flatnonzero(judging),)), (~judging).astype(np.int64)
    elif timing is not None:
        return _stretches(folds, timing)
    elif isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        number = _drawn(validate_count(folds, "folds", minimum=2), n_samples, group, rng)
        names = range(int(folds))
        parts = Folds(tuple(map(str, names)), tuple(np.flatnonzero(number == k) for k in names))
    else:
        parts = validate_folds(folds, n_samples)
        number = parts.number
    if group is not None:
        refuse_divided_groups(group, number)
    return parts


def _validate_held_out(held_out: Any, n_samples: int) -> Booleans:
    array = np.asarray(held_out)
    if array.dtype != bool:
        refuse(f"`held_out` must hold booleans, True for observations that judge, got {array.dtype} values.", TypeError)
    must = f"`held_out` must have shape ({n_samples},), one for each observation"
    require(array.shape == (n_samples,), must, array.shape)
    if array.all() or not array.any():
        refuse(f"`held_out` must be True for some observations and False for others, got {bool(array[0])} for all.")
    return array


def _drawn(n_folds: int, n_samples: int, group: Integers | None, rng: np.random.Generator) -> Integers:
    """Return a random fold of each observation, all of nearly the same number of observations or of groups."""
    n_units = n_samples if group is None else int(group.max()) + 1
    what = "observations" if group is None else "groups"
    refuse_if(n_units < 4, f"`folds` needs 4 {what} or more, two in each of two folds, got {n_units}.")
    if n_folds > n_units // 2:
        refuse(
            f"`folds` must be at most half of the {n_units} {what}, so that every fold holds several, got {n_folds}."
        )
    fold = rng.permutation(n_units) % n_folds
    return fold if group is None else fold[group]
