"""Recalibration by the slope of a spline through cumulative labels (Gupta et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import Lens
from caltest.predictions.inputs._parts import effective_of_sums
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require, validate_bool, validate_choice, validate_count
from caltest.recalibration.maps._logits import Objective, blocks
from caltest.recalibration.maps._one_vs_rest import Map, OneVsRest, normalise


@dataclass(frozen=True, eq=False)
class TiedScores:
    """Blocks of equal scores, and what is the mean of a block.

    Attributes
    ----------
    distinct : array of shape (n_blocks,)
        The scores, increasing.
    start, total : arrays of shape (n_blocks,)
        Position of the first observation of each block, and the sum of the shares of all of them.
    share : array of shape (n_samples,)
        Weight of each observation; the sum is 1.
    """

    distinct: Floats
    start: Integers
    total: Floats
    share: Floats

    @classmethod
    def of(cls, score: Floats, weight: Floats | None) -> TiedScores:
        """Return the blocks of increasing scores ``(n_samples,)``; without weights all observations count the same."""
        start = np.flatnonzero(np.append(True, np.diff(score) > 0))
        share = np.full(len(score), 1.0 / len(score)) if weight is None else weight / weight.sum()
        return cls(score[start], start, np.add.reduceat(share, start), share)

    @property
    def n_effective(self) -> float:
        r"""Effective number of observations, :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish 1965)."""
        return float(effective_of_sums(1.0, float(self.share @ self.share)))

    def mean(self, values: Floats) -> Floats:
        """Return the weighted means of the rows of blocks, ``(n_blocks, ...)`` of ``(n_samples, ...)``."""
        if len(self.start) == len(self.share):
            return values
        weight = self.share if values.ndim == 1 else self.share[:, None]
        total = self.total if values.ndim == 1 else self.total[:, None]
        return np.add.reduceat(weight * values, self.start, axis=0) / total

    def spread(self, values: Floats) -> Floats:
        """Return values of blocks ``(n_blocks,)`` for each of their observations, ``(n_samples,)``."""
        return (
            values
            if len(self.start) == len(self.share)
            else np.repeat(values, np.diff(self.start, append=len(self.share)))
        )


RUN_OUTS = {"linear": 2, "quadratic": 3, "cubic": 4}
"""Ends of a spline (McKinley and Levine 1998), and the fewest knots that determine it."""
_ROUNDS = 200
_TOLERANCE = 1e-12


def cardinal_splines(n_knots: int, run_out: str) -> Callable[..., Floats]:
    r"""Return the cubic splines that are 1 at one of evenly spaced knots from 0 to 1 and 0 at the others.

    With second derivatives M at the knots, the first interval, and in the same way the last one, ends straight
    ("linear", the natural spline: :math:`M_1 = 0`), is a parabola ("quadratic": :math:`M_1 = M_2`), or continues the
    cubic of the next one ("cubic": :math:`M_1 = 2 M_2 - M_3`).
    """
    from scipy.interpolate import CubicSpline

    knots, unit = np.linspace(0.0, 1.0, n_knots), np.eye(n_knots)
    ends: Any = {"linear": "natural", "cubic": "not-a-knot"}.get(run_out)
    if ends is None:
        inner = 4 * np.eye(n_knots - 2) + np.eye(n_knots - 2, k=1) + np.eye(n_knots - 2, k=-1)
        inner[0, 0] += 1
        inner[-1, -1] += 1
        second = np.linalg.solve(inner, 6 * (n_knots - 1) ** 2 * np.diff(unit, 2, axis=0))
        ends = (2, second[0]), (2, second[-1])
    found: Callable[..., Floats] = CubicSpline(knots, unit, bc_type=ends)
    return found


@dataclass(frozen=True, eq=False)
class CumulativeSpline:
    r"""Cubic splines with the same knots and fractiles, as linear functions of the values that they fit.

    With :math:`A_{ij} = a_j(t_i)`, the j-th cardinal spline at fractile :math:`t_i`, the knots have the values
    :math:`\hat v = \arg\min \sum_i w_i ((A \hat v)_i - h_i)^2` and the slope at :math:`t_i` is
    :math:`(A' \hat v)_i`.

    Attributes
    ----------
    orthogonal, triangular : arrays of shape (n, n_knots) and (n_knots, n_knots)
        QR factors of A, whose rows are multiplied by the roots of the weights.
    slope : array of shape (n, n_knots)
        Derivatives :math:`A'` of the cardinal splines at the fractiles.
    root_weight : array of shape (n,) or None
        Roots of the weights; None if all are 1.
    """

    orthogonal: Floats
    triangular: Floats
    slope: Floats
    root_weight: Floats | None

    @classmethod
    def of(
        cls, fractile: Floats, n_knots: int, weight: Floats | None = None, run_out: str = "linear"
    ) -> CumulativeSpline:
        """Return the splines with ``n_knots`` knots, evenly spaced from 0 to 1, for points at the fractiles."""
        cardinal = cardinal_splines(n_knots, run_out)
        value, root = cardinal(fractile), None
        if weight is not None:
            root = np.sqrt(weight)
            value *= root[:, None]
        orthogonal, triangular = np.linalg.qr(value)
        return cls(orthogonal, triangular, cardinal(fractile, 1), root)

    def fit(self, height: Floats) -> Floats:
        """Return the values at the knots, ``(n_knots,)``, of the spline that fits ``height (n,)`` best."""
        return np.asarray(np.linalg.solve(self.triangular, self.projection(height)), dtype=np.float64)

    def distance(self, height: Floats, knots: Floats) -> float:
        """Return the sum of squares between ``height (n,)`` and the spline with the values ``knots (n_knots,)``.

        A part that is the same for all splines is left out.
        """
        target = self.projection(height)
        return float(np.square(self.triangular @ knots - target).sum() - target @ target)

    def projection(self, height: Floats) -> Floats:
        """Return the coordinates of ``height`` in the column space of A, ``(n_knots,)``."""
        return (height if self.root_weight is None else height * self.root_weight) @ self.orthogonal

    def fit_constrained(self, height: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
        """Return the values at the knots of the best spline with ``low <= slope @ values <= high``.

        The quadratic programme is solved with the constraints that the solution violates, which are added until none
        is left, while those that are not needed any more are left out: the distance grows with every round, so that no
        set comes back. Each round is a least distance problem (Lawson and Hanson 1974, chapter 23), solved by
        `scipy.optimize.nnls`.
        """
        target = self.projection(height)
        direction = np.linalg.solve(self.triangular.T, slope.T).T  # slopes as functions of the coordinates
        found, active = target, np.zeros((2, len(slope)), dtype=bool)
        for _ in range(_ROUNDS):
            value = direction @ found
            short = np.stack([low - value, value - high])
            worst = _worst_of_runs(short) & ~active
            if not worst.any():
                break
            side, place = np.nonzero(active | worst)
            rows = np.where(side == 0, 1.0, -1.0)[:, None] * direction[place]
            limit = np.where(side == 0, low[place], -high[place])
            change, needed = _least_distance(rows, limit - rows @ target)
            found = target + change
            active[:] = False
            active[side[needed], place[needed]] = True
        return np.asarray(np.linalg.solve(self.triangular, found), dtype=np.float64)


def _worst_of_runs(short: Floats) -> Booleans:
    """Return which constraints are violated more than their neighbours, ``(2, n)``."""
    padded = np.pad(short, ((0, 0), (1, 1)), constant_values=-np.inf)
    return (short > _TOLERANCE) & (short >= padded[:, :-2]) & (short >= padded[:, 2:])


def _least_distance(rows: Floats, limit: Floats) -> tuple[Floats, Booleans]:
    """Return the shortest vector x with ``rows @ x >= limit``, and which rows determine it; there is one."""
    from scipy.optimize import nnls

    matrix = np.vstack([rows.T, limit])
    aim = np.append(np.zeros(rows.shape[1]), 1.0)
    multiplier = nnls(matrix, aim)[0]
    residual = matrix @ multiplier - aim
    return -residual[:-1] / residual[-1], multiplier > 0


_ON_LINE = 1e-4
_ENOUGH = 20  # observations of a score, on average, of which its frequency is used


@dataclass(eq=False, repr=False)
class SplineCalibration(OneVsRest):
    r"""Recalibration by the slope of a least-squares spline through cumulative labels (Gupta et al. 2020).

    The scores (predicted probabilities) of an event are sorted, :math:`s_1 \le \dots \le s_n`, and their labels
    :math:`y_i` are added up,

    .. math::

        h_i = \frac{1}{n} \sum_{j \le i} y_j, \qquad
        \hat h = \arg\min_h \sum_{i=1}^n \bigl( h(i / n) - h_i \bigr)^2, \qquad
        \gamma(s_i) = \hat h'(i / n),

    where h is a cubic spline, by default a natural one, with evenly spaced knots from 0 to 1. As :math:`h'(t)` is the
    frequency of the event at the t-th fractile of the scores (proposition 4.1), :math:`\gamma` maps scores to
    probabilities. Between scores it is linear, and beyond the smallest and the largest one constant. As n observations
    cannot show that an event is impossible or certain, values are cut off at

    .. math::

        \min \Bigl( s, \frac{1}{n + 2} \Bigr) \le \gamma(s) \le \max \Bigl( s, \frac{n + 1}{n + 2} \Bigr),

    so that a map never makes a probability of 0 or 1 out of another one.

    Parameters
    ----------
    n_knots : int
        Number of knots, at least 2, 3 for ``run_out="quadratic"`` and 4 for "cubic"; the tables of the paper have 6, 13
        and 14.
    target : Lens or "ranks", optional
        The event. By default each class is one, and rows are divided by their sums. A lens with two outcomes maps one
        probability only: ``Confidence()`` and ``TopRank(r)`` that of the r-th most probable class ("top-r"),
        ``WithinTop(r)`` that of the r most probable ones together, ``ClassWise(k)`` that of a class. `predict_event`
        returns it; in `predict_proba` classes inside and outside the event share what is left in their old proportions.
        With "ranks" every rank is an event (appendix D, table 5): the r-th largest probability of a row is replaced by
        the value of the map of rank r, and rows are divided by their sums. Among equal probabilities the smaller class
        comes first, as in `TopRank`. A lower rank may overtake a higher one, so that predicted classes can change.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    curve : {"residuals", "labels"}
        What the spline fits: cumulative residuals :math:`y_j - s_j`, whose slope is added to the score, or cumulative
        labels, as in the formula above.
    constrained : bool
        Whether the slope is constrained so that :math:`0 \le \gamma(s_i) \le 1` at all scores, by a quadratic
        programme (end of section 4.1), before values are cut off.
    run_out : {"linear", "quadratic", "cubic"}
        How the spline ends (end of appendix C): straight, as a natural spline; as a parabola between the last two
        knots; or as the same cubic between the last three knots, which scipy calls "not-a-knot".

    Attributes
    ----------
    maps_ : list of tuples of arrays
        Distinct scores and their recalibrated values, before they are cut off, for each class or rank, or the target.
        For large predictions in float32 every second score is left out where this changes its value by less than one
        part in ten thousand.
    least_ : float
        The probability 1 / (n + 2) below which values are cut off.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    Raises
    ------
    TypeError
        If ``n_knots`` is no integer, ``target`` neither a lens of caltest nor a text, or ``constrained`` not True or
        False.
    ValueError
        If ``n_knots`` is too small, ``curve`` or ``run_out`` is unknown, ``target`` is another text than "ranks", or
        has more than two outcomes.

    See Also
    --------
    IsotonicCalibration : An increasing function without a choice of knots.
    caltest.smooth_reliability_curve : The same spline as a picture.

    Notes
    -----
    The authors' program (github.com/kartikgupta-at-anu/spline-calibration, commit 83c85a4) differs from their paper:

    * It fits cumulative residuals, and adds the slope to the score. The paper fits cumulative labels. For one class of
      many, whose frequency jumps from 0 to 1 within few fractiles, six knots cannot follow the labels, so that
      "residuals" is the default here.
    * Its fractiles are (i - 1) / (n - 1) instead of i / n.
    * Its interpolation gives the weight of each neighbour to the other one; here it is linear, as in the paper.
    * It cuts values off at 0 and 1, of which the paper says nothing. About a fifth of the predictions of the bundled
      network then become certain, and in two of five random halves 4 of these were wrong; a single one refutes
      calibration.
    * Few distinct scores: a spline through fractiles cannot follow frequencies that jump from one score to the next.
      With at most ``n_knots`` distinct scores each one gets the frequency of its event, which has no more parameters
      than the spline. With more it does so too if there are 20 observations for each score on average and Akaike's
      criterion prefers the frequencies: twice the gain in log-likelihood, each frequency and knot costing 2.
    * Tied scores are left in whatever order the sorting has. Here all labels of tied scores count as their mean, and a
      tied score gets the mean of its slopes, so that the order of observations does not matter.

    Weights count at fractiles :math:`\sum_{j \le i} w_j / \sum_j w_j` and in the sum of squares; a weight of 2 is close
    to, but not the same as, two observations. The map need not increase, and may change the ranking of classes.

    References
    ----------
    K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu and R. Hartley (2020), Calibration of neural networks
    using splines, arXiv 2006.12800, section 4 and appendix C.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import SplineCalibration
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> spline = SplineCalibration(n_knots=13).fit(y_prob[:5000], y_true[:5000])
    >>> labels, before = y_true[5000:], y_prob[5000:]
    >>> after = spline.predict_proba(before)
    >>> [round(caltest.calibration_error(labels, prob, statistic=caltest.KS()), 4) for prob in (before, after)]
    [0.0356, 0.0142]
    """

    _fitted: ClassVar[tuple[str, ...]] = ("least_",)

    n_knots: int = 6
    target: Lens | str | None = None
    _: KW_ONLY
    curve: str = "residuals"
    constrained: bool = False
    run_out: str = "linear"

    def predict_event(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Return recalibrated probabilities of the event of ``target``.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes), (n_samples,) or (n_samples, 1)
            Predictions like those of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            Probability of the event, such as "the most probable class is right" for ``target=Confidence()``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` was not called before.
        ValueError
            If there is no ``target``, or predictions are refused.
        """
        check_is_fitted(self)
        if not isinstance(self.target, Lens):
            needs = f"`predict_event` needs a `target` such as Confidence(), got target={self.target!r}"
            refuse(f"{needs}; use `predict_proba`.")
        return self._evaluate(self.maps_[0], self.target.induced(self._read(X))[:, 1])

    def _validate(self) -> None:
        validate_choice(self.run_out, "run_out", tuple(RUN_OUTS))
        validate_count(self.n_knots, "n_knots", minimum=RUN_OUTS[self.run_out])
        validate_choice(self.curve, "curve", ("residuals", "labels"))
        validate_bool(self.constrained, "constrained")
        right = self.target is None or self.target == "ranks" or isinstance(self.target, Lens)
        require(
            right,
            "`target` must be a lens such as Confidence(), 'ranks' or None",
            self.target,
            right_type=isinstance(self.target, str),
        )

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective | None:
        self.least_ = 1.0 / (len(values) + 2)
        self._shared: CumulativeSpline | None = None  # all classes have the same fractiles without weights
        try:
            if self.target is None:
                return super()._fit(values, outcome, weight)
            if not isinstance(self.target, Lens):
                order = _ranked(values)
                rank = np.argmax(order == outcome[:, None], axis=1)
                return super()._fit(np.take_along_axis(values, order, axis=1), rank, weight)
            fitted, objective = self._fit_target(self.target, values, outcome, weight)
            self.maps_ = [fitted]
            return objective
        finally:
            del self._shared

    def _fit_target(
        self, target: Lens, values: NDArray[Any], outcome: Integers, weight: Floats | None
    ) -> tuple[Map, Objective | None]:
        induced, event = target(values, outcome)
        if induced.shape[1] != 2:
            refuse(f"`target` must have two outcomes, such as Confidence(), got {induced.shape[1]} of {target!r}.")
        return self._fit_map(induced[:, 1], event == 1, weight)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.target is None:
            return super()._map(values)
        if not isinstance(self.target, Lens):
            order, found = _ranked(values), np.empty_like(values)
            np.put_along_axis(found, order, super()._map(np.take_along_axis(values, order, axis=1)), axis=1)
            return found
        induced = self.target.induced(values)
        inside = np.broadcast_to(self.target.outcomes(values) == 1, values.shape)
        return _share(values, inside, induced, self._evaluate(self.maps_[0], induced[:, 1]))

    def _fit_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None) -> tuple[Map, Objective | None]:
        order = np.argsort(score) if weight is None else np.lexsort((weight, score))
        ties = TiedScores.of(score[order].astype(np.float64), None if weight is None else weight[order])
        frequency = ties.mean(event[order].astype(np.float64))
        frequencies: Map = ties.distinct.astype(score.dtype), frequency.astype(score.dtype)
        gained = Objective(0.0, float(ties.total @ np.square(frequency - ties.distinct)))
        if len(frequency) <= self.n_knots:
            return frequencies, gained
        added = ties.distinct if self.curve == "residuals" else np.zeros(len(frequency))
        height = np.cumsum(ties.share * ties.spread(frequency - added))
        spline = self._spline(ties, weight is not None)
        if self.constrained:
            slope = ties.mean(spline.slope)
            knots = spline.fit_constrained(height, slope, -added, 1.0 - added)
            value = added + slope @ knots
        else:
            knots = spline.fit(height)
            value = added + ties.mean(spline.slope @ knots)
        if self._misfits(value, frequency, ties):
            return frequencies, gained
        objective = None
        if self.curve == "residuals":  # where the curve of height 0 changes nothing
            objective = Objective(spline.distance(height, knots), spline.distance(height, np.zeros(len(knots))))
        return (_thinned(ties.distinct, value) if score.dtype == np.float32 else (ties.distinct, value)), objective

    def _misfits(self, value: NDArray[Any], frequency: NDArray[Any], ties: TiedScores) -> bool:
        """Return whether the frequency of the event at each score describes the labels better than the spline.

        Both are compared by Akaike's criterion where scores have enough observations for a frequency.
        """
        n_scores, size = len(frequency), ties.n_effective * ties.total
        if n_scores > ties.n_effective / _ENOUGH:
            return False
        value = self._cut(value, ties.distinct)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [
                np.where(share > 0, share * np.log(share / fitted), 0.0)
                for share, fitted in ((frequency, value), (1 - frequency, 1 - value))
            ]
        return float(2 * size @ (parts[0] + parts[1])) > 2 * (n_scores - self.n_knots)

    def _spline(self, ties: TiedScores, weighted: bool) -> CumulativeSpline:
        if self._shared is None or weighted:
            n = len(ties.share)
            fractile = np.cumsum(ties.share) if weighted else np.arange(1, n + 1) / n
            self._shared = CumulativeSpline.of(fractile, self.n_knots, ties.share if weighted else None, self.run_out)
        return self._shared

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return self._cut(np.interp(score, *fitted), score)

    def _cut(self, value: NDArray[Any], score: NDArray[Any]) -> Floats:
        """Return values that are no nearer to 0 and 1 than n observations can show, or than the score itself."""
        return np.clip(value, np.minimum(score, self.least_), np.maximum(score, 1.0 - self.least_))


def _ranked(prob: NDArray[Any]) -> Integers:
    """Return the classes of each row by falling probability, the smaller class first among equal ones."""
    return np.argsort(-prob, axis=1, kind="stable")


def _thinned(score: NDArray[Any], value: NDArray[Any]) -> Map:
    """Return points in single precision, every second one left out where it lies on the line between its neighbours.

    Values change by less than one part in ten thousand, and the memory is halved.
    """
    kept = np.ones(len(score), dtype=bool)
    between = slice(1, len(score) - 1, 2)
    line = np.interp(score[between], score[::2], value[::2])
    kept[between] = np.abs(value[between] - line) > _ON_LINE * np.abs(value[between])
    return score[kept].astype(np.float32), value[kept].astype(np.float32)


def _share(prob: NDArray[Any], inside: Booleans, induced: Floats, event: Floats) -> NDArray[Any]:
    """Return probabilities whose classes inside the event sum to ``event``, in their old proportions.

    Where all classes on one side had probability 0, they get equal parts.
    """
    found = np.empty(prob.shape, dtype=prob.dtype)
    for rows in blocks(*prob.shape):
        now = np.column_stack([1.0 - event[rows], event[rows]])
        for side, within in enumerate((~inside[rows], inside[rows])):
            old = induced[rows, side, None]
            equal = 1.0 / np.maximum(within.sum(axis=1, keepdims=True), 1)
            part = np.where(old > 0, prob[rows] / np.where(old > 0, old, 1.0), equal)
            np.copyto(found[rows], part * now[:, side, None], where=within, casting="same_kind")
    return normalise(found)
