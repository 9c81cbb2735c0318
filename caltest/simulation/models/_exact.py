"""Expected miscalibration: without sampling error, and by simulation where it is not known exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._distances import Distance
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import apply_distance, apply_lens, outcomes_of_classes
from caltest.predictions._view import push_forward
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if
from caltest.results import Result
from caltest.results._description import Description, counted
from caltest.results._naming import describe

SAME = 1e-12
"""Induced predictions that differ by no more than this count as equal: sums of a lens have rounding errors."""

_TOLERANCE = 1e-13
_LARGEST_LOGIT = np.log(np.finfo(np.float64).max)
_MOST_PANELS = 2**14
TOO_ROUGH = "`distance` is too rough for an exact expectation; see `estimate_miscalibration`."
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(15)

Path = Callable[[Floats], Floats]


def two_classes(logit: Floats) -> Floats:
    """Return both probabilities ``(..., 2)``, each exact to rounding, of the logit of class 0."""
    size = np.abs(logit)
    # One exponential for both, which never overflows; what is not a normal number counts as 0.
    small = np.where(size > _LARGEST_LOGIT, 0.0, np.exp(-size))
    likely = 1.0 / (1.0 + small)
    rare = small * likely
    first = np.greater_equal(logit, 0.0)
    found = np.empty((*likely.shape, 2))
    found[..., 0] = np.where(first, likely, rare)
    found[..., 1] = np.where(first, rare, likely)
    return found


def look(lens: LensLike | None, y_prob: Floats, class_prob: Floats) -> tuple[Floats, Floats]:
    """Return induced predictions and induced true probabilities, both ``(n_samples, n_outcomes)``."""
    if lens is None:
        return y_prob, class_prob
    induced = apply_lens(lens, y_prob, np.zeros(len(y_prob), dtype=np.int64))[0]
    seen = outcomes_of_classes(lens, y_prob)
    _require_a_lens(y_prob, induced, push_forward(seen, y_prob, induced.shape[1]))
    return induced, push_forward(seen, class_prob, induced.shape[1])


def levels(predicted: Floats) -> Integers:
    """Return the number of the level set, 0 to their number - 1, of each induced prediction."""
    rounded = np.rint(predicted / SAME)
    if predicted.shape[1] == 2:  # one number distinguishes them
        return np.unique(rounded[:, 1], return_inverse=True)[1]
    return np.unique(rounded, axis=0, return_inverse=True)[1]


def finite_miscalibration(
    y_prob: Floats, class_prob: Floats, lens: LensLike | None, distance: Distance, weight: Floats | None = None
) -> float:
    """Return the expected miscalibration of a model with finitely many predictions."""
    predicted, true = look(lens, y_prob, class_prob)
    share = np.full(len(predicted), 1 / len(predicted)) if weight is None else weight / weight.sum()
    level = levels(predicted)
    size = np.bincount(level, weights=share)
    means = [
        np.stack([np.bincount(level, weights=share * column) / size for column in values.T], axis=-1)
        for values in (predicted, true)
    ]
    return float(size @ apply_distance(distance, *means))


def path_miscalibration(
    lens: LensLike | None,
    distance: Distance,
    *,
    y_prob: Path,
    class_prob: Path,
    density: Path,
    centre: float,
    limits: tuple[float, float],
) -> float:
    """Return the expected miscalibration of a two-class model whose predictions move along a line.

    The position t has a density on ``limits``; ``y_prob`` and ``class_prob`` map positions to probabilities
    ``(n, 2)``, and the prediction at the mirror image of t, in ``centre``, is that at t with its classes swapped. A
    lens on two classes either distinguishes them, so that it confuses a prediction with its mirror image at most, or
    has one certain outcome, where there is nothing to predict.
    """

    def contribution(t: Floats) -> Floats:
        here, mirrored = y_prob(t), 2 * centre - t
        predicted, true = look(lens, here, class_prob(t))
        predicted_there, true_there = look(lens, np.ascontiguousarray(here[:, ::-1]), class_prob(mirrored))
        mass, mass_there = density(t), density(mirrored)
        same = (np.abs(predicted - predicted_there) <= SAME).all(axis=1) & (mass_there > 0)
        share = np.where(same, mass / np.where(same, mass + mass_there, 1.0), 1.0)[:, None]
        return mass * apply_distance(distance, predicted, share * true + (1 - share) * true_there)

    low, high = limits
    return integrate(contribution, [low, *([centre] if low < centre < high else []), high])


def integrate(function: Path, edges: Sequence[float], tolerance: float = _TOLERANCE, panels: int = 32) -> float:
    """Return the integral of a vectorised function by halving panels until Gauss's rule agrees with its halves."""

    def rule(low: Floats, high: Floats) -> Floats:
        half = (high - low) / 2
        t = (low + half)[:, None] + half[:, None] * _NODES
        return half * (function(t.ravel()).reshape(t.shape) @ _WEIGHTS)

    grid = np.unique(np.concatenate([np.linspace(a, b, panels + 1) for a, b in pairwise(edges)]))
    low, high, total = grid[:-1], grid[1:], 0.0
    whole = rule(low, high)
    while len(low):
        refuse_if(len(low) > _MOST_PANELS, TOO_ROUGH)
        middle = (low + high) / 2
        left, right = rule(low, middle), rule(middle, high)
        settled = (np.abs(left + right - whole) <= tolerance) | (middle <= low) | (middle >= high)
        total += float((left + right)[settled].sum())
        low, high, whole = (
            np.concatenate([one[~settled], other[~settled]])
            for one, other in ((low, middle), (middle, high), (left, right))
        )
    return total


def _require_a_lens(y_prob: Floats, induced: Floats, pushed: Floats) -> None:
    """Refuse a user's function whose prediction is not the distribution of its outcome."""
    wrong = np.flatnonzero((np.abs(pushed - induced) > 1e-6).any(axis=1))
    if wrong.size:
        row = wrong[0]
        refuse(
            f"`lens` must return the probabilities of its outcomes: a class drawn from {y_prob[row]} has outcomes with "
            f"probabilities {pushed[row]}, the lens returned {induced[row]}."
        )


FOLDS = 20
"""Standard errors are those of a jackknife over so many folds of the observations."""

_SAMPLES_OF_A_LEVEL = 100
_ROUNDING = 1e-12  # of sums: a calibrated model has no error


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MiscalibrationEstimate(Result):
    r"""Expected miscalibration found by simulation; unpacks as ``value, standard_error``.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its Monte Carlo standard error, without the bias of cells.
    noise_floor : float
        What averages over cells of this size would show for a calibrated model, :math:`\mathbb E\, d(\hat r, r)`. For a
        metric the noise of the averages biases the value upwards, by at most this, and by almost nothing where the
        deviation is larger; 0 where nothing is averaged.
    target : str
        What is estimated, and how.
    n_samples, n_cells : int
        Number of observations, and of occupied cells (bins); n_cells is 0 where nothing is averaged. Cells bias the
        value downwards where the deviation changes its sign within one of them.

    See Also
    --------
    Model : Its method ``estimate_miscalibration`` returns it.

    Examples
    --------
    >>> from caltest.simulation import GaussianMixture1D
    >>> value, standard_error = GaussianMixture1D(0, -2).estimate_miscalibration(n_samples=2000, rng=0)
    >>> round(value, 2), round(standard_error, 3)
    (0.0, 0.0)
    """

    value: float
    standard_error: float
    noise_floor: float
    target: str
    n_samples: int
    n_cells: int = 0
    _replicates: Floats = field(default_factory=lambda: np.empty(0))

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.standard_error))

    @property
    def conclusion(self) -> str:
        """The estimate with its standard error, in words."""
        error = self.standard_error
        digits = max(2, 1 - int(np.floor(np.log10(error)))) if error > _ROUNDING else 6  # those that mean something
        return f"The expected miscalibration is {round(self.value, digits):g} (standard error {round(error, 12):.2g})."

    def _describe(self) -> Description:
        said = [self.conclusion]
        if self.n_cells:
            said.append(
                f"For a calibrated model the noise of averages over {self.n_cells} cells (bins) would give "
                f"{self.noise_floor:.2g} (noise floor). Where the deviation changes its sign within a cell, the value "
                "is too small; the standard error does not include this."
            )
        return Description(
            f"Expected miscalibration by simulation ({counted(self.n_samples)})",
            said,
            remarks=[f"Target: {self.target}."],
        )


def mean_estimate(parts: Sequence[MiscalibrationEstimate], target: str) -> MiscalibrationEstimate:
    """Return the mean of estimates made from the same observations, such as those of all classes."""
    replicates = np.mean([part._replicates for part in parts], axis=0)
    return MiscalibrationEstimate(
        value=float(np.mean([part.value for part in parts])),
        standard_error=_jackknife_error(replicates),
        noise_floor=float(np.mean([part.noise_floor for part in parts])),
        target=target,
        n_samples=parts[0].n_samples,
        n_cells=max(part.n_cells for part in parts),
        _replicates=replicates,
    )


def level_set_estimate(
    predicted: Floats, true: Floats, lens: LensLike | None, distance: Distance
) -> MiscalibrationEstimate:
    """Return the estimate from true probabilities averaged where predictions are equal, or nearly equal."""
    target = f"{in_words(distance)} through {describe(Canonical() if lens is None else lens)}, "
    level = levels(predicted)
    n_levels = int(level.max()) + 1
    if n_levels * _SAMPLES_OF_A_LEVEL <= len(predicted):
        target += "true probabilities averaged over observations of equal predictions"
        return cell_estimate(predicted, true, level, distance, target)
    if predicted.shape[1] != 2:
        refuse(
            "the truth behind a lens of more than two outcomes is averaged over equal predictions only, and these "
            f"take {n_levels} values in {len(predicted):,} observations; use a lens of two outcomes.",
            NotImplementedError,
        )
    # Noise falls with the size of a cell; what cancels where the deviation changes its sign, with its squared width.
    partition = EqualMass(round(len(predicted) ** (1 / 3)))
    target += f"true probabilities averaged over {describe(partition)}"
    return cell_estimate(predicted, true, partition.fit(predicted)(predicted), distance, target)


def cell_estimate(
    predicted: Floats, seen: Floats, label: Integers, distance: Distance, target: str
) -> MiscalibrationEstimate:
    """Return the distance between mean predictions and means of ``seen``, averaged over the cells of observations."""
    _, cell = np.unique(label, return_inverse=True)
    n_cells = int(cell.max()) + 1
    key = cell * FOLDS + np.arange(len(cell)) % FOLDS  # observations are independent: any split makes folds
    size = n_cells * FOLDS
    count = np.bincount(key, minlength=size).reshape(n_cells, FOLDS)
    sums = [
        np.stack([np.bincount(key, weights=column, minlength=size) for column in values.T], axis=-1)
        for values in (predicted, seen)
    ]
    predicted_sum, seen_sum = (part.reshape(n_cells, FOLDS, -1) for part in sums)

    def value(keep: Booleans) -> float:
        rows = count[:, keep].sum(axis=1)
        held = rows > 0
        means = [part[held][:, keep].sum(axis=1) / rows[held, None] for part in (predicted_sum, seen_sum)]
        return float(rows[held] @ apply_distance(distance, *means) / rows.sum())

    everything = np.ones(FOLDS, dtype=bool)
    replicates = np.array([value(np.arange(FOLDS) != fold) for fold in range(FOLDS)])
    half = np.arange(FOLDS) < FOLDS // 2  # a half misses the whole by as much as the whole misses the truth
    rows = count[:, half].sum(axis=1)
    held = rows > 0
    means = [
        seen_sum[held].sum(axis=1) / count[held].sum(axis=1)[:, None],
        seen_sum[held][:, half].sum(axis=1) / rows[held, None],
    ]
    return MiscalibrationEstimate(
        value=value(everything),
        standard_error=_jackknife_error(replicates),
        noise_floor=float(count[held].sum(axis=1) @ apply_distance(distance, *means)) / len(cell),
        target=target,
        n_samples=len(cell),
        n_cells=n_cells,
        _replicates=replicates,
    )


def in_words(distance: Distance) -> str:
    """Return what the expectation of a distance is, for people.

    Examples
    --------
    >>> from caltest.predictions import total_variation
    >>> in_words(total_variation)
    'mean total variation between predicted and true probabilities'
    """
    return f"mean {describe(distance).strip('_').replace('_', ' ')} between predicted and true probabilities"


def mean_distance_estimate(predicted: Floats, true: Floats, distance: Distance) -> MiscalibrationEstimate:
    """Return the mean distance between predictions and their known true probabilities."""
    distances = apply_distance(distance, predicted, true)
    return MiscalibrationEstimate(
        value=float(distances.mean()),
        standard_error=float(distances.std(ddof=1) / np.sqrt(len(distances))),
        noise_floor=0.0,
        target=f"{in_words(distance)}, the calibration function being known",
        n_samples=len(distances),
    )


def _jackknife_error(replicates: Floats) -> float:
    return float(np.sqrt((len(replicates) - 1) * replicates.var()))
