"""Isotonic (CORP) reliability curve with a band and the decomposition of proper scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest._compiled._cumulative import pool_adjacent_violators
from caltest.estimation._options import EventOptions, event_of
from caltest.estimation.curves._bars import drawn_ends
from caltest.estimation.curves._calibration_band import ScoreGroups
from caltest.estimation.scores._score_decomposition import ScoreDecomposition, decomposition_of_sample
from caltest.estimation.uncertainty._prediction_distribution import EDGES, prediction_density
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, validate_choice, validate_level, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import run
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results import Result
from caltest.results._decision import NO_PROOF, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, percent
from caltest.results._picture import Picture
from caltest.statistics import IsotonicError
from caltest.statistics._isotonic import tie_masks

_MOST_SHOWN = 2**10
BANDS = ("consistency", "confidence")
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IsotonicCurve(Result):
    """Result of `isotonic_curve`; one entry per distinct prediction, in increasing order.

    Of more than about 1,024 distinct predictions some are left out, never the ends of the steps of the curve.

    Attributes
    ----------
    score : array of shape (n_scores,)
        Distinct predicted probabilities of the event.
    recalibrated : array of shape (n_scores,)
        The non-decreasing function that fits the labels best (isotonic regression).
    lower, upper : arrays of shape (n_scores,)
        Ends of the band.
    band : {"consistency", "confidence"}
        What the band is: where ``recalibrated`` lies at each prediction if the model is calibrated, or where a
        non-decreasing calibration function lies, everywhere at once.
    confidence_level : float
        Level of the band, of each prediction alone ("consistency") or of all together ("confidence").
    brier, log : ScoreDecomposition
        Miscalibration, discrimination and uncertainty of both scores.
    pvalue : float
        P-value of calibration by the miscalibration of the Brier score (`caltest.statistics.IsotonicError`), simulated
        labels.
    noise_floor : float
        Average of this miscalibration if the model is calibrated.
    density_edges, density : arrays of shape (n_bins + 1,) and (n_bins,)
        Distribution of the predictions: share of the observations in bins that are finer
        near 0 and 1.
    n_resamples, n_samples : int
        Number of draws of the labels, and of observations.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    digits : int or None
        Decimals to which predictions were rounded to form groups for a confidence band; None if they were not.

    See Also
    --------
    caltest.isotonic_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> curve = caltest.isotonic_curve(y_true, y_prob[:, 1], n_resamples=19, rng=0)
    >>> bool((curve.recalibrated[1:] >= curve.recalibrated[:-1]).all()), curve.n_samples
    (True, 300)
    """

    score: Floats
    recalibrated: Floats
    lower: Floats
    upper: Floats
    band: str
    confidence_level: float
    brier: ScoreDecomposition
    log: ScoreDecomposition
    pvalue: float
    noise_floor: float
    density_edges: Floats = field(default_factory=lambda: EDGES)
    density: Floats
    n_resamples: int
    n_samples: int
    lens: LensLike
    lens_name: str
    digits: int | None

    plot = Picture("plot_isotonic_curve")
    _derived: ClassVar[tuple[str, ...]] = ("outside", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = ("score", "recalibrated", "lower", "upper", "outside")

    @property
    def outside(self) -> Booleans:
        """Whether the band is evidence against calibration at each prediction, ``(n_scores,)``.

        The curve is outside a consistency band, or the diagonal outside a confidence band.
        """
        point = self.recalibrated if self.band == "consistency" else self.score
        return (point < self.lower - _ROUNDING) | (point > self.upper + _ROUNDING)

    @property
    def conclusion(self) -> str:
        """The decision at 5 %, and the share of the score that is miscalibration, in words."""
        p, mcb = equate_pvalue(self.pvalue), self.brier.miscalibration
        size = f"the miscalibration of the Brier score is {mcb:.4g}"
        size += f", of a calibrated model {self.noise_floor:.4g} on average"
        if rejects(self.pvalue, 0.05):
            return f"Calibration is rejected at the 5 % level ({p}): {size}."
        return f"Calibration is not rejected at the 5 % level ({p}): {size}. {NO_PROOF}"

    def _describe(self) -> Description:
        level = percent(self.confidence_level)
        terms = ("mean_score", "miscalibration", "discrimination", "uncertainty")
        rows = [
            (name, *(f"{getattr(score, term):.4g}" for term in terms))
            for name, score in (("Brier", self.brier), ("log", self.log))
        ]
        rounded = "" if self.digits is None else f", predictions grouped to {self.digits} decimals"
        kinds = {
            "consistency": f"Consistency band, {level} at each prediction: {self.n_resamples:,} Monte Carlo draws of "
            "the labels, predictions fixed. If the model is calibrated, the curve lies in it.",
            "confidence": f"Confidence band, {level} for all predictions at once{rounded}: it contains the calibration "
            "function, if that does not decrease (valid at every sample size).",
        }
        return Description(
            f"Isotonic reliability curve ({self.lens_name}, {counted(self.n_samples)})",
            [self.conclusion],
            [Table(("score", "mean", "miscalibration", "discrimination", "uncertainty"), rows)],
            [
                kinds[self.band],
                "Mean score = miscalibration - discrimination + uncertainty. Isotonic regression is fitted to the same "
                "labels, so that miscalibration and discrimination are too large in small samples.",
            ],
        )


@reads_arguments
def isotonic_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    band: str = "consistency",
    confidence_level: float = 0.9,
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **options: Unpack[EventOptions],
) -> IsotonicCurve:
    r"""Compute the isotonic (CORP) reliability curve, with a band and a score decomposition (Dimitriadis et al. 2021).

    .. math:: \hat r = \arg\min_{r \text{ non-decreasing}} \sum_i (y_i - r(p_i))^2

    estimates the calibration function :math:`r(p) = P(Y = 1 \mid p)`, if it does not decrease, without cells (bins) or
    a bandwidth; equal predictions are pooled first. It has the form of steps. It also decomposes the mean Brier and
    logarithmic score: see `score_decomposition`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    band : {"consistency", "confidence"}
        "consistency" is around the diagonal: quantiles of the curves of simulated labels, at each prediction alone.
        "confidence" is the simultaneous band of `calibration_band` around the curve. Of more than 10,000 distinct
        predictions those that are equal to 4 decimals form its groups.
    confidence_level : float
        Level of the band.
    n_resamples : int, optional
        Number of draws of the labels, for the consistency band and the p-value; 999 by default.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    IsotonicCurve
        Data for `caltest.plotting.plot_isotonic_curve`; prints as a report.

    Raises
    ------
    TypeError
        If ``lens``, ``region``, ``n_resamples`` or ``rng`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the lens
        has more than two outcomes; if ``band`` is unknown, ``confidence_level`` is not strictly between 0 and 1, or
        ``n_resamples`` < 1; if no observation lies in the region.

    See Also
    --------
    calibration_band : The confidence band alone, with the test that belongs to it.
    smooth_reliability_curve : A curve by kernels, which need not increase.
    reliability_curve : Frequencies in cells (bins), with exact bars.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan (2021), Stable reliability diagrams for probabilistic classifiers,
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.isotonic_curve(y_true, y_prob, n_resamples=99, rng=0)
    >>> curve.pvalue, round(curve.brier.miscalibration, 4), round(curve.brier.discrimination, 4)
    (0.01, 0.0072, 0.0174)
    """
    level = validate_level(confidence_level, "confidence_level")
    validate_choice(band, "band", BANDS)
    n_resamples, seed = number_of_draws(n_resamples), int(validate_rng(rng).integers(2**62))
    sample, about = event_of(y_true, y_prob, options)
    tested = run(
        [Question(IsotonicError(), LensView(sample))], sample, Consistency(), n_resamples=n_resamples, rng=seed
    ).answers[0]
    size, events, _ = pool_adjacent_violators(np.ascontiguousarray(sample.outcome[None]), sample.once(tie_masks))
    shown = _shown_rows(sample, size)
    digits = None
    if band == "consistency":
        low, high = _consistency_band(sample, shown, OutcomeDraws.of(n_resamples, seed), level)
    else:
        groups = ScoreGroups.of(sample)
        digits = groups.digits
        place = np.searchsorted(groups.score, np.clip(sample.event[shown], 0.0, 1.0))
        low, high = (end[place] for end in groups.confidence_band(level))
    brier, log = (decomposition_of_sample(sample, score, **about) for score in ("brier", "log"))
    return IsotonicCurve(
        **about,
        score=np.clip(sample.event[shown], 0.0, 1.0),
        recalibrated=(events / size)[np.searchsorted(np.cumsum(size), shown, side="right")],
        lower=low,
        upper=high,
        band=band,
        confidence_level=level,
        brier=brier,
        log=log,
        pvalue=tested.pvalue,
        noise_floor=tested.null.mean,
        density=prediction_density(sample.event),
        n_resamples=n_resamples,
        n_samples=sample.n_samples,
        digits=digits,
    )


def _shown_rows(sample: Sample, size: Integers) -> Integers:
    """Return the first rows of the distinct predictions that are shown: ends of steps, and some between."""
    first = np.flatnonzero(np.append(True, np.diff(sample.event) > 0))
    ends = np.cumsum(size)
    steps = np.searchsorted(first, np.concatenate([ends - size, ends - 1]), side="right") - 1
    evenly = np.linspace(0, len(first) - 1, min(len(first), _MOST_SHOWN)).astype(np.int64)
    return first[np.unique(np.concatenate([steps, evenly]))]


def _consistency_band(sample: Sample, shown: Integers, draws: OutcomeDraws, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the isotonic fits to simulated labels at some rows, ``(n_shown,)`` each."""
    curves = []
    for _, outcomes in draws.blocks(sample):
        size, events, first = pool_adjacent_violators(outcomes, sample.once(tie_masks))
        frequency = events / size
        for start, end in pairwise(first):
            place = np.searchsorted(np.cumsum(size[start:end]), shown, side="right")
            curves.append(frequency[start:end][place])
    low, high = drawn_ends(np.array(curves), level)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
