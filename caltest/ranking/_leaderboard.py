"""The leaderboard: many models on the same observations, and how well their ranks are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.comparison._model_comparison import few_draws_of_models
from caltest.hypothesis_tests._calibration import run_test
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import named_models, validate_models
from caltest.predictions.inputs._parts import effective_number
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._times import Timing, validate_timing
from caltest.predictions.inputs._validation import refuse_crossed, validate_design, validate_rng
from caltest.ranking._measures import KINDS, Found, Judged, Kind, contributions_of
from caltest.ranking._options import LeaderboardOptions
from caltest.ranking._ranking import Leaderboard, RankedModel, Ranking
from caltest.ranking._separation import Contributions, tiers
from caltest.ranking._summed_losses import SummedLosses
from caltest.ranking._unranked import CalibrationError, Unranked, some_of
from caltest.recalibration import Recalibrator, cross_fitted_decomposition
from caltest.resampling import Consistency, correct_pvalues
from caltest.results import ConfidenceInterval, Note, TestResult
from caltest.results._decision import level_of, rejects
from caltest.results._description import counted, join
from caltest.results._naming import describe
from caltest.results._progress import reporting
from caltest.statistics import SquaredL2, Statistic
from caltest.statistics._base import default_lens
from caltest.statistics._segments import FEWEST_GROUPS
from caltest.statistics._sums_in_time import FEWEST_COSINES, fewest_windows, number_of_cosines

_MOST_MISSING = 0.5  # of the observations; a comparison on less than the rest is not what was asked for
_FEWEST_DIVIDED = 10  # observations or groups: two in each of five folds
_EQUAL = 1e-12  # relative; estimates that differ by rounding have equal ranks


@reads_arguments
def leaderboard(
    y_true: ArrayLike,
    models: Mapping[str, Any] | Sequence[tuple[str, Any]],
    *,
    by: str | Statistic | Sequence[str | Statistic] = ("log_score", "brier", "l2"),
    recalibrator: Recalibrator | None = None,
    **options: Unpack[LeaderboardOptions],
) -> Leaderboard:
    r"""Rank many models on the same observations, with simultaneous confidence sets of their ranks.

    For each measure every model has an estimate with its interval, the value that calibrated predictions like these
    have on average, a p-value of calibration, its rank with a confidence set, and a tier. The rank of a model is 1 plus
    the number of models whose true value is better (Mogstad et al. 2024). The confidence sets contain the ranks of all
    models together with probability ``confidence_level``, at least, for large data.

    Model j is shown to be better than model k if the p-value of "j is not better than k", adjusted for all ordered
    pairs of models, is at most 1 - ``confidence_level``. The adjustment is the step-down max-T method (Romano & Wolf
    2005): with the units g (observations, or groups of them) that add :math:`d_g` to the difference of two estimates,
    their shares :math:`a_g` of the weight and random signs :math:`\xi_g`, the same for all pairs,

    .. math:: t^* = m / \Bigl(\sum_g (\xi_g d_g - a_g m)^2\Bigr)^{1/2}, \qquad m = \sum_g \xi_g d_g,

    and the observed t is that of :math:`\xi_g = 1`. The largest of t is compared with the largest of t*. So two models
    whose differences are symmetric around 0 are compared exactly at every sample size, by a test of random signs; for
    others the normal limit holds. Where the differences are skewed against the better model, t is replaced by
    :math:`t + g t^2 / 3 + g^2 t^3 / 27 + g / 6` (Hall 1992), with g their third moment over the cube of their
    standard error, times 1 + 20 / sqrt(n), at most 3, for n effective units: of the skewness of a long tail, few
    questions show less than half.
    The confidence set of the rank of a model begins after all models that are shown to be better, and ends before all
    that are shown to be worse. Models whose predictions add the same are tied and never separated.

    With ``time``, what observations less than ``lead`` apart add to a difference may depend on each other in any way;
    those further apart are taken as uncorrelated. The variance of a difference comes from K cosines of the time, as in
    `paired_test`, which with the difference itself are nearly K + 1 independent normal numbers of equal variance. So t
    is compared with that of random directions in K + 1 dimensions, the same for all pairs, instead of random signs: a
    single pair has Student's distribution with K degrees of freedom, and the largest t of all pairs its own
    distribution, both for a time that is long compared with the lead (K is at most a third of the windows as long as
    the lead). Valid if the mean difference does not change in time; if models are better or worse by the season, give
    the length of a season as ``lead``. With fewer than 9 windows nothing is separated.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    models : mapping of str to array-like, or sequence of pairs (str, array-like)
        Predicted probabilities of each model, ``(n_samples, n_classes)`` or ``(n_samples,)``. A row of NaN is a
        prediction that a model did not make: the models are compared on the observations that all of them predict, at
        least half, and a note has the numbers.
    by : str, Statistic or sequence of these
        The measures: "log_score", "brier", "accuracy" (larger is better) and "l2" (the typical calibration error, the
        root of the debiased squared l2 error). Any other calibration error, such as "KS" or ``ECE(EqualWidth(15))``,
        has its value, its noise floor and a test for each model, but no ranks: what chance alone shows differs between
        models, so that a smaller value does not show a better one.
    recalibrator : Recalibrator, optional
        The method, such as `caltest.recalibration.TemperatureScaling()`, by which the log score and the Brier score of
        each model are divided into miscalibration and discrimination, on five held-out folds that are the same for all
        models (`caltest.recalibration.cross_fitted_decomposition`). By default they are not divided, and neither with
        fewer than 10 observations or groups.

    Returns
    -------
    Leaderboard
        Prints as a report; ``to_frame()`` has a row for each measure and model.

    Raises
    ------
    TypeError
        If ``models`` is neither a mapping nor a list of pairs, a name is no string, a measure is neither a string nor a
        statistic, ``recalibrator`` is no recalibration method, or ``n_resamples``, ``workers``,
        ``rng`` or ``progress`` has a wrong type.
    ValueError
        If there are fewer than two models, a name is empty or occurs twice, or models differ in observations or
        classes; if predictions are outside [0, 1] or do not sum to 1, are NaN in a part of a row, or more than half of
        the observations lack the prediction of a model; if a label is unknown, ``by`` is no measure or names one twice,
        ``confidence_level`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if there is a ``recalibrator``
        together with ``time``, or the method refuses the observations of the other folds; if ``lead`` is given without
        ``time``, is not positive or longer than the data; if ``time`` is given with ``groups``.

    See Also
    --------
    compare_models : The calibration of a few models, with a difference and its interval for each pair.
    recalibration.cross_fitted_decomposition : What the parts of a score are.

    Notes
    -----
    A log score is infinite if a label had probability 0. Such a model is behind all models with finite scores, because
    its expected score is infinite too; that theirs are finite is supposed. With fewer than five effective groups (or
    observations), :math:`1 / \sum_g a_g^2`, nothing is separated.

    The sets contain all ranks a little too rarely where the losses of some models have a long tail and questions are
    very few, because the tail is then not seen: docs/leaderboard.md has the simulated coverage.

    References
    ----------
    M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm (2024), Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries, The Review of Economic Studies 91, 476-518.
    J. P. Romano and M. Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis testing, Journal of
    the American Statistical Association 100, 94-108.
    P. Hall (1992), On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54,
    221-228.
    E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson (2018), HAR inference: recommendations for practice, Journal
    of Business & Economic Statistics 36, 541-559.
    P. R. Hansen, A. Lunde and J. M. Nason (2011), The model confidence set, Econometrica 79, 453-497.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> board = caltest.leaderboard(y_true, y_prob, by="log_score", rng=0)
    >>> print(board.conclusion)
    By log score neural_network is shown to be the best of 4 models (95 % confidence).
    """
    (measures, errors), level, n_resamples = measures_of(by), options["confidence_level"], options["n_resamples"]
    named, missing = _without_missing(named_models(models, fewest=2))
    outcome, probs = validate_models(y_true, named, options["classes"])
    timing = validate_timing(options["time"], options["lead"], len(outcome))
    design = validate_design(options["sample_weight"], options["groups"], len(outcome), timing)
    refuse_crossed(design)
    notes = _notes_on_missing(missing, len(outcome))
    weight, group = design["weight"], design["group"]
    counts = ~np.any([*missing.values()], axis=0) if missing else np.ones(len(outcome), dtype=bool)
    rows = np.flatnonzero(counts if weight is None else counts & (weight > 0))
    refuse_if(not rows.size, "no observation has a positive weight and the predictions of all models.")
    outcome = outcome[rows]
    design["weight"] = None if weight is None else weight[rows]
    design["group"] = None if group is None else np.unique(group[rows], return_inverse=True)[1]
    design["timing"] = None if timing is None else timing[rows].settled()
    share = np.ones(len(rows)) if weight is None else weight[rows]
    share = share / share.sum()
    n_units = len(rows) if design["group"] is None else int(design["group"].max()) + 1
    refuse_if(
        recalibrator is not None and timing is not None,
        "`recalibrator` and `time` cannot be taken together: observations of different folds may depend on each other.",
    )
    if recalibrator is not None and n_units < _FEWEST_DIVIDED:
        many = counted(n_units, "observation" if design["group"] is None else "group")
        text = f"Scores are not divided: {many} cannot fill five folds with two each."
        notes, recalibrator = [*notes, Note("C219", text)], None
    seeds = validate_rng(options["rng"]).integers(2**63, size=2)
    found: dict[str, list[Found]] = {kind.name: [] for kind in measures}
    tests: dict[str, dict[str, TestResult]] = {error.name: {} for error in errors}
    threads = options["workers"]
    drawn = {"n_resamples": n_resamples, "workers": max(threads // len(probs), 1), "seed": seeds[0]}

    def judge(prob: NDArray[Any]) -> tuple[list[Found], list[TestResult]]:
        sample = induce(prob := prob[rows], outcome, lens=Canonical(), **design)
        pvalue = _test(SquaredL2(), sample, Canonical(), **drawn).pvalue
        judged, errors_tested = Judged(level, pvalue, sample, prob, outcome, share), []
        for error in errors:
            look = default_lens(error.statistic, prob.shape[1])
            seen = sample if isinstance(look, Canonical) else induce(prob, outcome, lens=look, **design)
            errors_tested.append(_test(error.statistic, seen, look, **drawn))
        return [kind.of(judged) for kind in measures], errors_tested

    divided, divide = (
        [kind for kind in measures if recalibrator is not None and kind.score],
        {"confidence_level": level, "rng": int(seeds[0]), "sample_weight": design["weight"], "groups": design["group"]},
    )
    with reporting(options["progress"], "ranking models") as report:
        with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
            run, n_steps = map if pool is None else pool.map, len(probs) * (2 if divided else 1)
            for number, (name, (ones, tested)) in enumerate(zip(named, run(judge, probs), strict=True)):
                for kind, one in zip(measures, ones, strict=True):
                    found[kind.name].append(one)
                for error, test in zip(errors, tested, strict=True):
                    tests[error.name][name] = test
                report(number + 1, n_steps)
        for number, given in enumerate(probs if divided else []):
            for kind in divided:
                parts = cross_fitted_decomposition(outcome, given[rows], recalibrator, score=kind.score, **divide)
                found[kind.name][number] = replace(found[kind.name][number], parts=parts)
            report(len(probs) + number + 1, n_steps)
        sample = induce(probs[0][rows], outcome, lens=Canonical(), **design)
        units, in_time = (
            Judged(level, 1.0, sample, probs[0][rows], outcome, share).in_units(share),
            sample.timing is not None,
        )
        about: dict[str, Any] = {"confidence_level": level, "n_samples": len(rows), "n_groups": sample.n_groups}
        rankings = [
            ranked(list(named), ones, contributions_of(ones, units, in_time=in_time), n_resamples, seeds[1], **about)
            for ones in found.values()
        ]
    return Leaderboard(
        rankings=tuple(rankings),
        unranked=tuple(Unranked.of(error, tests[error.name], **about) for error in errors),
        **about,
        lead=None if sample.timing is None else sample.timing.text,
        n_resamples=n_resamples,
        notes=(
            *notes,
            *notes_on(rankings, effective_number(units), sample.n_groups, sample.timing),
            *few_draws_of_models(len(probs), n_resamples, "holm", level_of(level)),
        ),
    )


def measures_of(by: Any) -> tuple[list[Kind], list[CalibrationError]]:
    """Return what models are ranked by, and the errors that do not rank them."""
    given = [by] if isinstance(by, str | Statistic) else by
    is_sequence = isinstance(given, list | tuple)
    require(is_sequence, "`by` must be a measure or a sequence of measures", by, right_type=False)
    require(given, "`by` must hold one measure at least", by)
    kinds = [KINDS[name] for name in given if isinstance(name, str) and name in KINDS]
    errors = [CalibrationError.named(name) for name in given if not (isinstance(name, str) and name in KINDS)]
    different = {*kinds, *(describe(error.statistic) for error in errors)}
    require(len(different) == len(given), "`by` must hold different measures", list(given))
    return kinds, errors


def _test(statistic: Statistic, sample: Sample, lens: Lens, *, seed: int, **drawn: Any) -> TestResult:
    """Test the calibration of a model, with the same draws as of all others."""
    rng = np.random.default_rng(seed)
    return run_test(statistic, sample, Consistency(), lens=lens, method="auto", rng=rng, **drawn)


def _without_missing(models: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[np.bool_]]]:
    """Return predictions, and the rows of the models that did not predict all of them; these become uniform there."""
    whole, missing = dict(models), {}
    for name, given in models.items():
        prob = np.asarray(given)
        if prob.dtype.kind != "f" or prob.ndim not in {1, 2}:
            continue
        absent = np.isnan(prob) if prob.ndim == 1 else np.isnan(prob).all(axis=1)
        if absent.any():
            missing[name] = absent
            filled = np.array(prob)
            filled[absent] = 0.5 if prob.ndim == 1 else 1 / prob.shape[1]  # looked at by no one
            whole[name] = filled
    return whole, missing


def _notes_on_missing(missing: dict[str, NDArray[np.bool_]], n_samples: int) -> list[Note]:
    """Return what is said of observations that some model did not predict; refuse a comparison on less than half."""
    if not missing:
        return []
    by_number = sorted(missing, key=lambda name: int(missing[name].sum()))  # the last lacks most
    lacking = np.logical_or.accumulate([missing[name] for name in by_number]).sum(axis=1).tolist()
    number, rows = lacking[-1], np.flatnonzero(missing[by_number[-1]])
    which = f"{by_number[-1]!r} lacks {len(rows):,} (the first is row {rows[0]})"
    if number > _MOST_MISSING * n_samples:
        kept = sum(each <= _MOST_MISSING * n_samples for each in lacking)
        left = n_samples - lacking[kept - 1] if kept else n_samples
        without = f"the {len(missing) - kept} models that lack" if len(missing) - kept > 1 else "the model that lacks"
        refuse(
            f"`models`: {number:,} of {n_samples:,} observations lack the prediction of some model, and models are "
            f"compared on what all of them predict: {which}. Without {without} most, {left:,} observations "
            f"are left: {some_of(by_number[kept:][::-1])}."
        )
    lack = "lacks" if number == 1 else "lack"
    text = (
        f"{counted(number)} of {n_samples:,} {lack} the prediction of some model, and were left out for all: {which}. "
        f"{counted(len(missing), 'model')} did not predict everything. The ranks are those on the others; if models "
        "leave out what is hard for them, this favours them."
    )
    return [Note("C215", text)]


def ranked(
    names: list[str],
    found: list[Found],
    contributions: Contributions | SummedLosses,
    n_resamples: int,
    seed: int,
    **about: Any,
) -> Ranking:
    """Return the models in the order of their estimates, with confidence sets and tiers."""
    order = np.argsort(contributions.estimate, kind="stable")
    level = level_of(about["confidence_level"])
    separation = contributions.separate(n_resamples, np.random.default_rng(seed))
    value, pvalue = contributions.estimate[order], separation.pvalue[np.ix_(order, order)]
    is_better = np.asarray(rejects(pvalue, level), dtype=bool)
    adjusted = correct_pvalues([one.measure.pvalue for one in found])
    size = np.abs(value[np.isfinite(value)]).max(initial=0.0)
    models = [
        RankedModel(
            name=names[place],
            measure=found[place].measure,
            rank=1 + int(np.count_nonzero(value < value[i] - _EQUAL * size)),
            rank_interval=ConfidenceInterval(1 + int(is_better[:, i].sum()), len(names) - int(is_better[i].sum())),
            tier=tier,
            pvalue_adjusted=float(adjusted[place]),
            parts=found[place].parts,
        )
        for i, (place, tier) in enumerate(zip(order, tiers(is_better), strict=True))
    ]
    return Ranking(
        models=tuple(models),
        pvalue_better=pvalue,
        value=value,
        standard_error=separation.error[np.ix_(order, order)],
        critical_value=separation.critical_value(level),
        larger_is_better=KINDS[found[0].measure.name].larger_is_better,
        **about,
    )


def _notes_on_parts(rankings: list[Ranking]) -> list[Note]:
    """Return cautions of recalibration: of each kind one, with the models that have it."""
    found: dict[str, tuple[Note, dict[str, None]]] = {}
    for ranking in rankings:
        for model in ranking:
            for note in model.parts.notes if model.parts else ():
                found.setdefault(note.code, (note, {}))[1][model.name] = None
    return [Note(code, f"{some_of([*names])}, for example: {note.text}") for code, (note, names) in found.items()]


def notes_on(
    rankings: list[Ranking], number: float, n_groups: int | None = None, timing: Timing | None = None
) -> list[Note]:
    """Return cautions about infinite scores, few units, ``number`` of equal weight, and little time."""
    notes, what = _notes_on_parts(rankings), "observations" if n_groups is None else "groups"
    infinite = [model.name for ranking in rankings for model in ranking if math.isinf(model.measure.estimate)]
    if infinite:
        which = join(map(repr, infinite[:3])) + (f" and {len(infinite) - 3} more" if len(infinite) > 3 else "")
        text = (
            f"The log score of {which} is infinite, because a label had probability 0. Such a model is ranked behind "
            "all others, supposing that they give probability 0 to no label that can occur. Rank by the Brier score, "
            "or let no model predict 0."
        )
        notes.append(Note("C216", text))
    if timing is not None and number_of_cosines(timing) < FEWEST_COSINES:
        text = (
            f"The predictions span {timing.n_windows:.3g} times the lead ({timing.text}). Fewer than "
            f"{fewest_windows()} do not show how much models differ by chance, so that no models are told apart. "
            "Collect predictions of a longer time."
        )
        notes.append(Note("C305", text))
    elif rankings and timing is None and number < FEWEST_GROUPS:
        text = (
            f"The {what} are worth {number:.2g} of equal weight. Fewer than {FEWEST_GROUPS} show nothing of how much "
            "models differ by chance, so that no models are told apart."
        )
        notes.append(Note("C303" if what == "groups" else "C304", text))
    return notes
