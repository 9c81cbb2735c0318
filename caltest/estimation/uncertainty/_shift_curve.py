"""Shift curve: mean uncertainty of batches against their share of foreign data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation.uncertainty._prediction_distribution import (
    MOST,
    WORDS,
    UncertaintyCurve,
    join_curves,
    uncertainty_of,
    validate_uncertainty,
)
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, validate_probs
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    SeedLike,
    validate_count,
    validate_distinct,
    validate_level,
    validate_number,
    validate_rng,
)
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results._description import Description, Table, counted, percent
from caltest.results._picture import Picture

_SHARES = tuple((np.arange(11) / 10).tolist())
_OFTEN = 0.9  # of the batches: a share of foreign data that is detected in so many is named
_LIMIT = 0.95  # of the batches without foreign data lie below what counts as detected


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ShiftCurve(UncertaintyCurve):
    """Result of `shift_curve`; one entry for each model, measure of uncertainty and share, increasing.

    Attributes
    ----------
    model, uncertainty : arrays of shape (n_points,)
        The model and the measure of uncertainty of each entry; the name of a single model is empty.
    share : array of shape (n_points,)
        Share of foreign data in a batch.
    mean : array of shape (n_points,)
        Expected mean uncertainty of a batch.
    lower, upper : arrays of shape (n_points,)
        Where the mean uncertainty of a single batch lies with probability ``confidence_level``.
    detection : array of shape (n_points,)
        Share of the batches whose mean uncertainty is above that of 95 % of the batches without foreign data.
    auroc : dict of (str, str) to float
        Probability that a foreign prediction is more uncertain than one at home, ties half, of each curve.
    batch_size, n_resamples : int
        Number of predictions in a batch, and number of batches drawn for each share.
    confidence_level : float
        Level of ``lower`` and ``upper``.
    n_home, n_foreign : int
        Numbers of predictions.

    See Also
    --------
    caltest.shift_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> foreign = DirichletModel(3, 3.0).draw(200, rng=1).y_prob
    >>> curve = caltest.shift_curve(y_prob, foreign, n_resamples=19, rng=0)
    >>> curve.n_home, curve.n_foreign, curve.share[:3]
    (300, 200, array([0. , 0.1, 0.2]))
    """

    share: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    detection: Floats
    auroc: Mapping[tuple[str, str], float]
    batch_size: int
    n_resamples: int
    confidence_level: float
    n_home: int
    n_foreign: int

    plot = Picture("plot_shift_curve")
    _left_out: ClassVar[frozenset[str]] = frozenset({"auroc"})
    _columns: ClassVar[tuple[str, ...]] = ("model", "uncertainty", "share", "mean", "lower", "upper", "detection")

    def _sentence(self, model: str, uncertainty: str) -> str:
        rows = self.entries(model, uncertainty)
        of = f" of {model}" if model else ""
        enough = rows[self.detection[rows] >= _OFTEN]
        begin = f"In batches of {self.batch_size} predictions{of} "
        words = WORDS[uncertainty]
        if not enough.size:
            return f"{begin}no share of foreign data raises the mean {words} detectably in {percent(_OFTEN)} of them."
        return (
            f"{begin}{percent(self.share[enough[0]])} foreign data raise the mean {words} above that of 95 % of clean "
            f"batches in {percent(self.detection[enough[0]])} of them."
        )

    def _describe(self) -> Description:
        rows = []
        for (model, name), area in self.auroc.items():
            ends = self.entries(model, name)[[0, -1]]
            rows.append((model or "the model", WORDS[name], *(f"{self.mean[end]:.4g}" for end in ends), f"{area:.4g}"))
        home, foreign = (f"mean at {percent(self.share[end])}" for end in self.entries(*self.curves[0])[[0, -1]])
        return Description(
            f"Shift curve ({counted(self.n_home)} at home, {self.n_foreign:,} foreign)",
            self._sentences,
            [Table(("model", "uncertainty", home, foreign, "AUROC"), rows, left=("uncertainty",))],
            [
                f"Means are those of the data; the range and the share detected are those of {self.n_resamples:,} "
                "batches drawn with replacement.",
                f"AUROC: probability that a foreign prediction has the {' or the '.join(MOST.values())} of two.",
                "It holds for foreign data like these; other foreign data may be predicted with confidence.",
            ],
        )


@reads_arguments
def shift_curve(
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    y_prob_foreign: ArrayLike | Mapping[str, ArrayLike],
    *,
    uncertainty: str | Sequence[str] = ("entropy", "confidence"),
    shares: Sequence[float] = _SHARES,
    batch_size: int = 100,
    confidence_level: float = 0.9,
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **_: Unpack[InputOption],
) -> ShiftCurve:
    r"""Compute the mean uncertainty of batches against their share of foreign (out-of-distribution) data; no labels.

    A batch of m predictions with the share s of foreign ones has the expected mean uncertainty

    .. math:: E\,\bar u(s) = (1 - s)\, \bar u_\mathrm{home} + s\, \bar u_\mathrm{foreign}

    with the averages :math:`\bar u` over the given predictions, of the normalised entropy or of :math:`1 - \max_k
    p_{ik}` (Laves et al. 2020, figure 2). How far a single batch is from it, and how often it shows that foreign data
    are there, is found by drawing batches. Shares are rounded to whole numbers of predictions.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such
        Predictions for data of the kind that the model was made for; of several models by name.
    y_prob_foreign : array-like of shape (n_foreign, n_classes) or (n_foreign,), or mapping of str to such
        Predictions for foreign data, of the same models.
    uncertainty : {"entropy", "confidence", "mutual-information", "variance"} or sequence of these
        Measures of uncertainty.
    shares : sequence of float
        Shares of foreign data, from 0 to 1; 0, 0.1 to 1 by default.
    batch_size : int
        Number of predictions m in a batch; the paper has 100.
    confidence_level : float
        Level of the range of a batch.
    n_resamples : int, optional
        Number of batches that are drawn for each share; 999 by default.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ShiftCurve
        Data for `caltest.plotting.plot_shift_curve`; prints as a report.

    Raises
    ------
    TypeError
        If ``shares`` is no sequence of numbers, a name is no string, or ``batch_size``, ``n_resamples`` or ``rng`` has
        a wrong type.
    ValueError
        If predictions are outside [0, 1] or do not sum to 1; if the models or their classes differ between home and
        foreign data; if ``uncertainty`` is unknown, a share is not in [0, 1], there is none or two are the same number
        of predictions; if ``batch_size`` or ``n_resamples`` < 1, or ``confidence_level`` is not strictly between 0 and
        1.

    See Also
    --------
    rejection_curve : Error rate of what is kept when uncertain predictions are rejected.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, section 5.1, figure 2.

    Examples
    --------
    In the place of foreign images, predictions that are less sharp:

    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> vague = y_prob**0.3 / (y_prob**0.3).sum(axis=1, keepdims=True)
    >>> curve = caltest.shift_curve(y_prob, vague, uncertainty="entropy", rng=0)
    >>> curve.mean[[0, -1]].round(3).tolist()
    [0.028, 0.48]
    """
    level, generator = validate_level(confidence_level, "confidence_level"), validate_rng(rng)
    size, n_batches = validate_count(batch_size, "batch_size"), number_of_draws(n_resamples)
    measures = validate_uncertainty(uncertainty)
    if shares is _SHARES:  # some may be the same number of a few predictions
        foreign_counts = np.unique(np.rint(np.multiply(shares, size)).astype(np.int64))
    else:
        kinds = "numbers from 0 to 1", f"numbers of {size} predictions"
        foreign_counts = validate_distinct(
            shares, "shares", lambda share, name: round(validate_number(share, name, 0, 1) * size), *kinds
        )
    given = by_name(y_prob), by_name(y_prob_foreign, "y_prob_foreign")
    checked = _validated(*given)
    home, foreign = checked
    curves, auroc = {}, {}
    seed = int(generator.integers(2**62))
    for model in home:
        for measure in measures:
            near, far = (
                uncertainty_of(probs[model], measure, raw[model]) for probs, raw in zip(checked, given, strict=True)
            )
            auroc[model, measure] = _auroc(near, far)
            draw = np.random.default_rng(seed)  # the same rows for every model and measure
            clean = _means(near, far, 0, (n_batches, size), draw)
            limit = np.quantile(clean, _LIMIT, method="higher")
            points = []
            for count in foreign_counts:
                batches = _means(near, far, int(count), (n_batches, size), draw)
                low, high = np.quantile(batches, [(1 - level) / 2, (1 + level) / 2])
                share = count / size
                mean = (1 - share) * near.mean() + share * far.mean()
                found = float((batches > limit * (1 + 1e-12)).mean())
                points.append((share, mean, low, high, found))
            curves[model, measure] = dict(zip(ShiftCurve._columns[2:], np.transpose(points), strict=True))
    return ShiftCurve(
        **join_curves(curves),
        auroc=auroc,
        batch_size=size,
        n_resamples=n_batches,
        confidence_level=level,
        n_home=len(next(iter(home.values()))),
        n_foreign=len(next(iter(foreign.values()))),
    )


def _means(near: Floats, far: Floats, count: int, shape: tuple[int, int], rng: Any) -> Floats:
    """Return the means of batches with a number of foreign predictions, ``(n_batches,)``."""
    n_batches, size = shape
    total = near[rng.integers(len(near), size=(n_batches, size - count))].sum(axis=1)
    return (total + far[rng.integers(len(far), size=(n_batches, count))].sum(axis=1)) / size


def _auroc(near: Floats, far: Floats) -> float:
    """Return the probability that a foreign prediction is more uncertain, ties half."""
    ordered = np.sort(near)
    below = np.searchsorted(ordered, far, side="left") + np.searchsorted(ordered, far, side="right")
    return float(below.mean() / (2 * len(near)))


def _validated(home: dict[str, Any], foreign: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the predictions of every model at home and for foreign data."""
    if list(home) != list(foreign):
        refuse(f"`y_prob` and `y_prob_foreign` must be of the same models, got {list(home)} and {list(foreign)}.")
    checked = [validate_probs(given) for given in (home, foreign)]
    for probs in checked:
        if len({len(prob) for prob in probs.values()}) > 1:
            refuse(f"all models must predict the same observations, got { {n: len(p) for n, p in probs.items()} }.")
    n_classes = {prob.shape[1] for probs in checked for prob in probs.values()}
    if len(n_classes) > 1:
        refuse(f"all models must predict the same classes at home and elsewhere, got {sorted(n_classes)} classes.")
    return checked[0], checked[1]
