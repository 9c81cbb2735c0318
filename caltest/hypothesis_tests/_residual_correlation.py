"""The test of residual correlation: do outcomes depend on each other if their predictions are close in time?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._times import OfferedTime, Timing, validate_timing
from caltest.predictions.inputs._validation import refuse_if, validate_count, validate_given_problem
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.engine._options import TestOptions, drawing_of
from caltest.resampling.engine._pvalues import tail_pvalues
from caltest.results import Note, Result, Verdict
from caltest.results._decision import FEWEST_EXPECTED, Decision, cannot_decide, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, join
from caltest.results._note import PAGE
from caltest.results._picture import Picture
from caltest.results._progress import reporting

Noted = TypeVar("Noted", bound=Any)  # a result with notes

_USUAL_DRAWS = 999
_USUAL_LAGS, _TIMES_FOR_A_LAG = 10, 5
_SHAPES = 3  # what is removed: a shift, a slope and a bend of the predictions
_SHOWN = 3  # correlations in a sentence
_SMALLEST_PROB = 1e-12
_ROUNDING = 1e-15  # of squares
_MOST_NUMBERS = 20_000  # observations times outcomes of which a caution is made, in some milliseconds
_FIRST_DRAWS = 39  # after which no caution is made unless the data are more extreme than all of them


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResidualCorrelation(Decision, Result):
    """Result of `residual_correlation`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic : float
        The largest standardised distance of a variance ratio from its mean under independence.
    pvalue, smallest_possible_pvalue, alpha : float
        P-value of independence, the smallest possible one, and the level.
    lag : array of shape (n_lags,)
        How many times later the second prediction of a pair was made; 0 for pairs of one time.
    n_pairs : array of shape (n_lags,)
        Number of pairs.
    correlation : array of shape (n_lags,)
        Correlation of their residuals.
    lower, upper : array of shape (n_lags,)
        Where the correlation lies in 95 % of data sets whose labels are independent.
    window : array of shape (n_windows,)
        Numbers of consecutive times, over which residuals are added.
    variance_ratio : array of shape (n_windows,)
        How many times as much these sums vary as with independent labels.
    ratio_lower, ratio_upper : array of shape (n_windows,)
        Limits of the variance ratios that are all exceeded together with probability ``alpha`` at most if labels are
        independent: the test rejects if one of them is outside. Infinite where there are too few draws to reject.
    largest : int
        The place of the window whose variance ratio is least compatible with independence.
    lens : lens
        What was looked at.
    lens_name : str
        The lens in words.
    n_samples, n_times, n_outcomes, n_resamples : int
        Numbers of observations, of different times, of outcomes and of draws.
    n_expected : float
        Expected number of labels other than the most probable one. With fewer than 5, a test that does not reject
        decides nothing.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    residual_correlation : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.hypothesis_tests.residual_correlation(y_true, y_prob, n_resamples=99, rng=0)
    >>> result.lag[:3], result.correlation[:3].round(2), result.rejected
    (array([1, 2, 3]), array([-0.02, -0.  , -0.06]), False)
    """

    statistic: float
    pvalue: float
    smallest_possible_pvalue: float
    alpha: float
    lag: Integers
    n_pairs: Integers
    correlation: Floats
    lower: Floats
    upper: Floats
    window: Integers
    variance_ratio: Floats
    ratio_lower: Floats
    ratio_upper: Floats
    largest: int
    lens: LensLike
    lens_name: str
    n_samples: int
    n_times: int
    n_outcomes: int
    n_resamples: int
    n_expected: float
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("rejected", "decision", "conclusion", "verdict", "hypothesis")
    _columns: ClassVar[tuple[str, ...]] = (
        *("lag", "n_pairs", "correlation", "lower", "upper"),
        *("window", "variance_ratio", "ratio_lower", "ratio_upper"),
    )

    plot = Picture("plot_residual_correlation")
    hypothesis: ClassVar[str] = "Independence"
    """The null hypothesis in words."""

    @property
    def conclusion(self) -> str:
        """The decision in words, with the variance ratio and the correlations at the smallest lags."""
        p, size = equate_pvalue(self.pvalue), counted(self.n_samples)
        if self.decision == "undecidable":
            if self.n_times == 1:  # what all labels of one time share is removed as a shift
                whether = "It cannot be told whether residuals that are close in time are correlated"
                return f"{whether}: all predictions were made at the same time ({p})."
            if rejects(self.smallest_possible_pvalue, self.alpha):
                few = f"only {self.n_expected:.2g} labels other than the most probable one were to be expected"
                return f"It cannot be told whether residuals that are close in time are correlated: {few} ({p})."
            return cannot_decide(self.smallest_possible_pvalue, self.alpha, numbers=p, n_resamples=self.n_resamples)
        if not self.rejected:
            found = f"No correlation of residuals that are close in time is found ({p}, {size})."
            return f"{found} This does not prove that the labels are independent."
        window, ratio = int(self.window[self.largest]), self.variance_ratio[self.largest]
        times = "the same time" if window == 1 else f"{window} consecutive times"
        kind = "correlated" if ratio > 1 else "negatively correlated"
        shown = [f"{value:.2f} at lag {lag}" for lag, value in zip(self.lag, self.correlation, strict=True)][:_SHOWN]
        return (
            f"Residuals that are close in time are {kind} ({p}): {join(shown)}. "
            f"Their sums over {times} vary {ratio:.2g} times as much as with independent labels."
        )

    @cached_property
    def verdict(self) -> Verdict:
        """The decision, and what to do."""
        advice = (
            "A test of calibration may take these labels as independent, unless they depend on each other otherwise."
        )
        if self.decision == "undecidable":
            advice = "Whether a test of calibration may take these labels as independent is not known from these data."
        elif self.rejected and self.variance_ratio[self.largest] > 1:
            advice = (
                "Do not take these labels as independent: pass `time` and `lead`, how long after its prediction a "
                "label is known, to the test of calibration, or `groups` if observations of a group depend on each "
                "other."
            )
        elif self.rejected:
            advice = "A test of calibration that takes these labels as independent rejects too rarely, not too often."
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=self.hypothesis,
            proof="that the labels are independent",
            n_samples=self.n_samples,
            n_outcomes=self.n_outcomes,
            n_resamples=self.n_resamples,
            n_expected=self.n_expected,
            cautions=self.notes,
            said=self.conclusion,
            advised=(advice,),
        )

    def _describe(self) -> Description:
        columns = {
            "lag": "{lag}",
            "pairs": "{n_pairs:,}",
            "correlation": "{correlation:.3f}",
            "independent labels (95 %)": "{lower:.3f} to {upper:.3f}",
            "variance ratio": "{variance_ratio:.3g}",
            "not rejected": "{ratio_lower:.3g} to {ratio_upper:.3g}",
        }
        values = {name: getattr(self, name).tolist() for name in self._columns}
        records = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        return Description(
            f"Residual correlation ({self.lens_name}, {counted(self.n_samples)} of {counted(self.n_times, 'time')})",
            [self.conclusion],
            tables=[Table.of(records, columns)],
            remarks=[
                "Variance ratio at lag k: how many times as much sums over k + 1 consecutive times vary as with "
                "independent labels. A shift, a slope and a bend of the predictions were removed from the residuals.",
                f"Null distribution: {counted(self.n_resamples, 'Monte Carlo draw')} of independent labels, "
                "predictions fixed (valid at every sample size).",
                f"Valid if no label was used to make the predictions [C101: {PAGE}].",
            ],
            notes=self.notes,
        )


@reads_arguments
def residual_correlation(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    time: Any = None,
    max_lag: int | None = None,
    **options: Unpack[TestOptions],
) -> ResidualCorrelation:
    r"""Test whether residuals of predictions that are close in time are correlated.

    The residual :math:`e_i` of an observation is the indicator of its label minus the predictions. Its correlation at
    lag k is

    .. math:: r_k = \frac{\sum_{(i, j) : t_j - t_i = k} e_i \cdot e_j}{\sum_i |e_i|^2} \cdot \frac{n}{n_k}

    with :math:`n_k` pairs, where times are numbered. The variance ratio of q consecutive times is how many times as
    much sums of their residuals vary as with independent labels (Lo and MacKinlay 1988),

    .. math:: V_q = 1 + 2 \sum_{k < q} \Bigl(1 - \frac kq\Bigr)
        \frac{\sum_{(i, j) : t_j - t_i = k} e_i \cdot e_j}{\sum_i |e_i|^2}.

    The statistic is the largest distance of :math:`V_q`, for q up to ``max_lag`` + 1, from its mean among simulated
    labels, in standard deviations (Chow and Denning 1993). If outcomes are known h steps after their predictions,
    residuals are correlated at lags up to h - 1 with coefficients of about :math:`1 - k / h`, which :math:`V_h` adds
    with these weights.

    Labels are simulated as independent, predictions fixed. The p-value is therefore valid at every sample size for the
    hypothesis that labels are independent and the predictions are calibrated. To learn about the first of both, the
    residuals that a shift, a slope and a bend of the predictions explain are removed, in the data and in every draw.

    Parameters
    ----------
    time : array-like of shape (n_samples,), optional
        When each prediction was made: numbers, dates, datetimes or texts of dates, in any order. A lag counts different
        times, without regard to gaps. Pairs of the same time have lag 0. By default an index of pandas that holds dates
        is taken, and otherwise the order of the observations.
    max_lag : int, optional
        The largest lag; by default 10, or a fifth of the number of times if that is smaller.
    lens : lens, optional
        What to look at; the whole prediction by default.
    n_resamples : int, optional
        Number of draws B; 999 by default.

    Returns
    -------
    ResidualCorrelation
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``region`` no function, ``max_lag`` no integer, or ``time`` holds neither numbers nor
        dates.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``time`` has another length or a missing value; if there are fewer than two observations, or
        ``max_lag`` is not smaller than the number of times; if ``n_resamples`` < 1, or ``alpha`` is not strictly
        between 0 and 1.

    See Also
    --------
    calibration_test : With ``time`` and ``lead``, a test of calibration that allows for such correlations.

    Notes
    -----
    Calibrated forecasts of the next step have uncorrelated residuals, though labels are not independent given all
    predictions: a prediction tells what happened before it was made. At the 5 % level 0 to 9 % of such data sets were
    rejected (docs/forecasts.md), most where events were rare. A model that is wrong during some periods has correlated
    residuals, whatever the lead.

    References
    ----------
    A. W. Lo and A. C. MacKinlay (1988), Stock market prices do not follow random walks, Review of Financial Studies 1.
    K. V. Chow and K. C. Denning (1993), A simple multiple variance ratio test, Journal of Econometrics 58.

    Examples
    --------
    Forecasts of whether a temperature will be above its mean in three days:

    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from caltest.hypothesis_tests import residual_correlation
    >>> rng = np.random.default_rng(0)
    >>> temperature = np.zeros(403)
    >>> for day in range(1, 403):
    ...     temperature[day] = 0.8 * temperature[day - 1] + 0.6 * rng.normal()
    >>> y_prob = norm.cdf(0.8**3 * temperature[:400], scale=(1 - 0.8**6) ** 0.5)
    >>> result = residual_correlation(temperature[3:] > 0, y_prob, rng=0)
    >>> result.pvalue, result.correlation[:4].round(2).tolist()
    (0.001, [0.46, 0.26, 0.02, 0.07])
    """
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    step = _steps(time, len(prob))
    look = Canonical() if options["lens"] is None else options["lens"]
    sample = induce(prob, outcome, lens=look, region=options["region"])
    refuse_if(sample.n_samples < 2, f"a correlation needs two observations or more, got {sample.n_samples}.")
    pairs = Pairs.of(step[sample.row], max_lag)
    drawing = drawing_of(options, sample, usual=_USUAL_DRAWS)
    n_resamples = drawing["n_resamples"].n_resamples
    with reporting(options["progress"], "simulating labels") as report:
        draws = OutcomeDraws.of(n_resamples, drawing["rng"])
        null = draws.map(lambda part: _drawn(sample, pairs, part), drawing["workers"], report)
    products = np.column_stack([lag_products(sample, pairs, sample.outcome[None]), null])
    ratios, distance = pairs.compared(products)
    statistics = distance.max(axis=0)
    allowed = int(options["alpha"] * (n_resamples + 1) + _ROUNDING)  # draws as extreme as data that are just rejected
    limit = np.sort(statistics[1:])[-allowed] if allowed else np.inf
    middle, spread = ratios.mean(axis=1), ratios.std(axis=1)
    reach = np.where(spread > 0, limit * np.maximum(spread, 1e-300), np.inf)
    scale = pairs.scale
    lower, upper = np.quantile(products[:, 1:], [0.025, 0.975], axis=1) * scale
    return ResidualCorrelation(
        statistic=float(statistics[0]),
        pvalue=float(tail_pvalues(statistics)[0]),
        smallest_possible_pvalue=1.0 if len(pairs.first) == 1 else 1 / (n_resamples + 1),
        alpha=options["alpha"],
        lag=pairs.lag,
        n_pairs=pairs.number,
        correlation=products[:, 0] * scale,
        lower=lower,
        upper=upper,
        window=pairs.window,
        variance_ratio=ratios[:, 0],
        ratio_lower=middle - reach,
        ratio_upper=middle + reach,
        largest=int(distance[:, 0].argmax()),
        lens=look,
        lens_name=lens_name(look, options["classes"]),
        n_samples=sample.n_samples,
        n_times=len(pairs.first),
        n_outcomes=sample.n_outcomes,
        n_resamples=n_resamples,
        n_expected=float((1 - sample.expected.max(axis=1)).sum()),
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of observations that are close in time.

    Attributes
    ----------
    order : array of shape (n_samples,)
        Observations in the order of time.
    first : array of shape (n_times,)
        The place of the first one of each time.
    lag, number : array of shape (n_lags,)
        Lags, and numbers of their pairs.
    """

    order: Integers
    first: Integers
    lag: Integers
    number: Integers

    @classmethod
    def of(cls, step: Integers, max_lag: int | None) -> Pairs:
        """Return the pairs of observations with these times."""
        order = np.argsort(step, kind="stable")
        _, first, count = np.unique(step[order], return_index=True, return_counts=True)
        largest = min(_USUAL_LAGS, max(len(first) // _TIMES_FOR_A_LAG, 1)) if max_lag is None else max_lag
        if max_lag is not None and validate_count(max_lag, "max_lag") >= len(first):
            refuse(f"`max_lag` must be smaller than the number of times, {len(first):,}, got {max_lag}.")
        lag = np.arange(int(count.max() == 1), min(largest, len(first) - 1) + 1)
        number = [
            int((count[: len(count) - k] * count[k:]).sum()) if k else int((count * (count - 1)).sum()) // 2
            for k in lag
        ]
        return cls(order, first, lag, np.array(number, dtype=np.int64))

    @property
    def window(self) -> Integers:
        """Numbers of consecutive times, ``(n_windows,)``."""
        return self.lag + 1

    @property
    def scale(self) -> Floats:
        """By what the products of each lag are multiplied to be correlations."""
        return len(self.order) / np.maximum(self.number, 1)

    def compared(self, products: Floats) -> tuple[Floats, Floats]:
        """Return variance ratios and their standardised distances from their means, ``(n_windows, n_data_sets)``."""
        ratios = 1 + 2 * np.maximum(1 - self.lag / self.window[:, None], 0.0) @ products
        return ratios, np.abs(standardised(ratios))


def _steps(time: Any, n_samples: int) -> Integers:
    """Return the numbers of the times of observations, which are in order if no times are known."""
    values = time.values if isinstance(time, OfferedTime) else time
    timing = validate_timing(np.arange(n_samples) if values is None else values, None, n_samples)
    assert timing is not None
    return timing.step


def noting_correlation(found: Noted, sample: Sample, options: Mapping[str, Any]) -> Noted:
    """Return a result with the caution that residuals are correlated, if times are known and they are."""
    notes = correlation_notes(sample, options.get("time"), options.get("lead"))
    return replace(found, notes=(*found.notes, *notes)) if notes else found


def correlation_notes(sample: Sample, time: Any, lead: Any) -> tuple[Note, ...]:
    """Return a caution if times are known, no lead was given, and residuals are correlated beyond chance.

    The test is that of `residual_correlation` at the level of 1 / 1,000, of the first observations of many. It has its
    own draws, which are the same whenever it is repeated, and stops early where nothing is unusual.
    """
    if time is None or isinstance(time, Timing) or lead is not None or sample.group is not None:
        return ()
    step = _steps(time, len(time))[sample.row]
    if len(step) > (most := _MOST_NUMBERS // sample.n_outcomes):
        first = np.sort(np.argsort(step, kind="stable")[:most])
        sample, step = sample.take(first), step[first]
    if (1 - sample.expected.max(axis=1)).sum() < FEWEST_EXPECTED:
        return ()
    pairs, draws = Pairs.of(step, None), OutcomeDraws.of(_USUAL_DRAWS, 0)
    products = lag_products(sample, pairs, sample.outcome[None])
    rest = replace(draws, first=_FIRST_DRAWS, n_resamples=_USUAL_DRAWS - _FIRST_DRAWS)
    for part in draws.slices(_FIRST_DRAWS)[0], rest:
        products = np.column_stack([products, _drawn(sample, pairs, part)])
        ratios, distance = pairs.compared(products)
        statistics, largest = distance.max(axis=0), int(distance[:, 0].argmax())
        if (statistics[1:] >= statistics[0]).any() or ratios[largest, 0] < 1:
            return ()
    of, option = (time.name, time.option) if isinstance(time, OfferedTime) else ("`time`", "`lead`")
    where = "from one time to the next" if pairs.lag[0] else "at the same time"
    text = (
        f"Residuals are correlated in the order of {of} ({products[0, 0] * pairs.scale[0]:.2f} {where}): if "
        f"labels are known only some time after their predictions, {option} takes that into account."
    )
    return (Note("C209", text),)


def lag_products(sample: Sample, pairs: Pairs, outcomes: NDArray[Any]) -> Floats:
    """Return sums of products of residuals beside that of their squares, ``(n_lags, n_replicates)``.

    ``outcomes`` are ``(n_replicates, n_samples)``. A shift, a slope and a bend of the predictions are removed.
    """
    products, (squares, whole) = np.zeros((len(pairs.lag), len(outcomes))), np.zeros((2, len(outcomes)))
    for k in range(1 if sample.n_outcomes == 2 else 0, sample.n_outcomes):  # the other one of two has the same products
        curves, dual = sample.once(_curves, k)
        residual = (outcomes == k) - sample.null_prob[:, k]
        whole += np.einsum("ri,ri->r", residual, residual)
        residual -= (residual @ dual) @ curves
        residual = residual[:, pairs.order]
        square = np.einsum("ri,ri->r", residual, residual)
        total = residual if len(pairs.first) == sample.n_samples else np.add.reduceat(residual, pairs.first, axis=1)
        for place, lag in enumerate(pairs.lag):
            later = np.einsum("ri,ri->r", total[:, : total.shape[1] - lag], total[:, lag:])
            products[place] += later if lag else (later - square) / 2
        squares += square
    left = squares > _ROUNDING * whole  # of few observations the three changes explain all, but for rounding
    return np.where(left, products / np.where(left, squares, 1.0), 0.0)


def _curves(sample: Sample, k: int) -> tuple[Floats, Floats]:
    """Return how a shift, a slope and a bend change the probability of outcome k, and by what each is estimated.

    On the logit scale they are powers of the logit. Residuals times the second array, ``(n_samples, 3)``, are the
    coefficients of the first one, ``(3, n_samples)``.
    """
    prob = np.clip(sample.null_prob[:, k], _SMALLEST_PROB, 1 - _SMALLEST_PROB)
    shape = np.log(prob / (1 - prob)) ** np.arange(_SHAPES)[:, None]
    curves = shape * (prob * (1 - prob))
    return curves, shape.T @ np.linalg.pinv(curves @ shape.T, hermitian=True)


def _drawn(sample: Sample, pairs: Pairs, draws: Draws) -> Floats:
    """Return the products of simulated labels, ``(n_lags, n_resamples)``."""
    blocks = draws.blocks_of(8 * sample.n_samples)
    return np.concatenate(
        [lag_products(sample, pairs, outcomes) for part in blocks for _, outcomes in part.blocks(sample)], axis=1
    )


def standardised(values: Floats) -> Floats:
    """Return values ``(n, n_data_sets)`` minus their means, in standard deviations; 0 where all are equal."""
    centred = values - values.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    return np.where(
        spread > 1e-9 * np.abs(values).max(axis=1, keepdims=True), centred / np.maximum(spread, 1e-300), 0.0
    )
