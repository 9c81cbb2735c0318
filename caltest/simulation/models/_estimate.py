r"""Expected miscalibration by simulation, where it is not known exactly: always with a standard error and its target.

Three kinds of truth, from the surest to the least sure:

* the calibration function of the whole prediction is known: the mean of :math:`d(\mu, r(\mu))`, without bias;
* the true class probabilities of every row are known: their averages in cells of equal, or nearly equal, induced
  predictions. Outcomes are never drawn. What remains is the scatter of true probabilities within a cell;
* only outcomes are used, as on real data: frequencies in cells, the large-sample estimate of Posocco and Bonnefoy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._distances import Distance
from caltest.predictions._lenses import Canonical, Lens
from caltest.predictions._partitions import EqualMass
from caltest.predictions._sample import apply_distance
from caltest.predictions._validation import validate_count
from caltest.results._naming import describe
from caltest.simulation.models._exact import levels, look

if TYPE_CHECKING:
    from caltest.simulation.models._base import Model, Rows

_BLOCK_ROWS = 2**16
_ROWS_OF_A_LEVEL = 100
_FOLDS = 20  # standard errors are those of a jackknife over folds of the rows


@dataclass(frozen=True, eq=False)
class MiscalibrationEstimate:
    r"""Expected miscalibration found by simulation; unpacks as ``value, standard_error``.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its Monte Carlo standard error; the bias of cells is apart.
    noise_floor : float
        What averages over cells of this size would show of a calibrated model, :math:`\mathbb E\, d(\hat r, r)`. For a
        metric the noise of the averages biases the value upwards, by at most this, and by next to nothing where the
        deviation is larger; 0 where nothing is averaged.
    target : str
        What is estimated, and by which means.
    n_samples, n_cells : int
        Rows drawn, and occupied cells; n_cells is 0 where nothing is averaged. Cells bias the value downwards where
        the deviation changes its sign within one of them.
    """

    value: float
    standard_error: float
    noise_floor: float
    target: str
    n_samples: int
    n_cells: int = 0
    _replicates: NDArray[np.float64] = field(repr=False, default_factory=lambda: np.empty(0))

    def __iter__(self) -> Iterator[float]:
        yield self.value
        yield self.standard_error

    def __str__(self) -> str:
        cells = f", {self.n_cells} cells (noise floor {self.noise_floor:.2g})" if self.n_cells else ""
        return f"{self.value:.6g} +- {self.standard_error:.2g}: {self.target}; {self.n_samples} rows{cells}"


def mean_estimate(parts: Sequence[MiscalibrationEstimate], target: str) -> MiscalibrationEstimate:
    """Return the mean of estimates made from the same rows, such as those of all classes."""
    replicates = np.mean([part._replicates for part in parts], axis=0)
    return MiscalibrationEstimate(
        float(np.mean([part.value for part in parts])),
        _jackknife_error(replicates),
        float(np.mean([part.noise_floor for part in parts])),
        target,
        parts[0].n_samples,
        max(part.n_cells for part in parts),
        replicates,
    )


def estimate(
    model: Model, lens: Lens | None, distance: Distance, n_samples: int, rng: np.random.Generator
) -> MiscalibrationEstimate:
    """Return the expected miscalibration of a model through a lens, by the surest means that the model allows."""
    whole = lens is None or isinstance(lens, Canonical)
    predicted, true = [], []
    for rows in blocks(model, n_samples, rng):
        class_prob = rows.class_prob
        if whole:
            try:
                class_prob = model.calibration_function(rows.y_prob)
            except NotImplementedError:
                whole = False
        induced = look(lens, rows.y_prob, class_prob)
        predicted.append(induced[0])
        true.append(induced[1])
    if whole:
        return _mean_distance(np.concatenate(predicted), np.concatenate(true), distance)
    return level_set_estimate(np.concatenate(predicted), np.concatenate(true), lens, distance)


def blocks(model: Model, n_samples: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Draw rows in blocks: what is made of them for a moment takes little memory."""
    left = validate_count(n_samples, "n_samples", minimum=_FOLDS)
    while left:
        yield model.draw_rows(min(left, _BLOCK_ROWS), rng)
        left -= min(left, _BLOCK_ROWS)


def level_set_estimate(
    predicted: NDArray[np.float64], true: NDArray[np.float64], lens: Lens | None, distance: Distance
) -> MiscalibrationEstimate:
    """Return the estimate from true probabilities averaged where predictions are equal, or nearly equal."""
    target = f"E d(induced prediction, truth) through {describe(Canonical() if lens is None else lens)}, "
    level = levels(predicted)
    n_levels = int(level.max()) + 1
    if n_levels * _ROWS_OF_A_LEVEL <= len(predicted):
        target += "true probabilities averaged over rows of equal predictions"
        return cell_estimate(predicted, true, level, distance, target)
    if predicted.shape[1] != 2:
        msg = (
            "the truth behind a lens of more than two outcomes is averaged over equal predictions only, and these "
            f"take {n_levels} values in {len(predicted)} rows; look through a lens of two outcomes."
        )
        raise NotImplementedError(msg)
    # Noise falls with the rows of a cell, and what is lost where the deviation changes its sign with its width squared.
    partition = EqualMass(round(len(predicted) ** (1 / 3)))
    target += f"true probabilities averaged over {describe(partition)}"
    return cell_estimate(predicted, true, partition.fit(predicted)(predicted), distance, target)


def cell_estimate(
    predicted: NDArray[np.float64],
    seen: NDArray[np.float64],
    label: NDArray[np.int64],
    distance: Distance,
    target: str,
) -> MiscalibrationEstimate:
    """Return the distance between mean predictions and means of what is seen, averaged over cells of the rows."""
    _, cell = np.unique(label, return_inverse=True)
    n_cells = int(cell.max()) + 1
    key = cell * _FOLDS + np.arange(len(cell)) % _FOLDS  # rows are independent: any split makes folds
    size = n_cells * _FOLDS
    count = np.bincount(key, minlength=size).reshape(n_cells, _FOLDS)
    sums = [
        np.stack([np.bincount(key, weights=column, minlength=size) for column in values.T], axis=-1)
        for values in (predicted, seen)
    ]
    predicted_sum, seen_sum = (part.reshape(n_cells, _FOLDS, -1) for part in sums)

    def value(keep: NDArray[np.bool_]) -> float:
        rows = count[:, keep].sum(axis=1)
        held = rows > 0
        means = [part[held][:, keep].sum(axis=1) / rows[held, None] for part in (predicted_sum, seen_sum)]
        return float(rows[held] @ apply_distance(distance, *means)) / rows.sum()

    everything = np.ones(_FOLDS, dtype=bool)
    replicates = np.array([value(np.arange(_FOLDS) != fold) for fold in range(_FOLDS)])
    half = np.arange(_FOLDS) < _FOLDS // 2  # a half misses the whole by as much as the whole misses the truth
    rows = count[:, half].sum(axis=1)
    held = rows > 0
    means = [
        seen_sum[held].sum(axis=1) / count[held].sum(axis=1)[:, None],
        seen_sum[held][:, half].sum(axis=1) / rows[held, None],
    ]
    return MiscalibrationEstimate(
        value(everything),
        _jackknife_error(replicates),
        float(count[held].sum(axis=1) @ apply_distance(distance, *means)) / len(cell),
        target,
        len(cell),
        n_cells,
        replicates,
    )


def one_hot(outcome: NDArray[Any], n_outcomes: int) -> NDArray[np.float64]:
    """Return outcomes ``(n_samples,)`` as certain probabilities ``(n_samples, n_outcomes)``."""
    return np.eye(n_outcomes)[outcome]


def _mean_distance(
    predicted: NDArray[np.float64], true: NDArray[np.float64], distance: Distance
) -> MiscalibrationEstimate:
    distances = apply_distance(distance, predicted, true)
    error = float(distances.std(ddof=1) / np.sqrt(len(distances)))
    target = "E d(prediction, calibration function), the calibration function being known"
    return MiscalibrationEstimate(float(distances.mean()), error, 0.0, target, len(distances))


def _jackknife_error(replicates: NDArray[np.float64]) -> float:
    return float(np.sqrt((len(replicates) - 1) * replicates.var()))
