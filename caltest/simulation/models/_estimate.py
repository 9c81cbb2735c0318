r"""Expected miscalibration by simulation, where it is not known exactly, with a standard error and its target.

There are three kinds of truth, from the most to the least reliable:

* the calibration function of the whole prediction is known: the mean of :math:`d(\mu, r(\mu))`, without bias;
* the true class probabilities of every observation are known: their averages in cells (bins) of equal, or nearly equal,
  induced predictions. No labels are drawn. What remains is the variation of true probabilities within a cell;
* only labels are used, as on real data: frequencies in cells, the large-sample estimate of Posocco and Bonnefoy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._distances import Distance
from caltest.predictions._equal_mass import EqualMass
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import apply_distance
from caltest.results import Result
from caltest.results._description import Description
from caltest.results._naming import describe
from caltest.simulation.models._exact import levels

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
    """

    value: float
    standard_error: float
    noise_floor: float
    target: str
    n_samples: int
    n_cells: int = 0
    _replicates: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

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
            f"Expected miscalibration by simulation ({self.n_samples} observations)",
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
    predicted: NDArray[np.float64], true: NDArray[np.float64], lens: LensLike | None, distance: Distance
) -> MiscalibrationEstimate:
    """Return the estimate from true probabilities averaged where predictions are equal, or nearly equal."""
    target = f"{in_words(distance)} through {describe(Canonical() if lens is None else lens)}, "
    level = levels(predicted)
    n_levels = int(level.max()) + 1
    if n_levels * _SAMPLES_OF_A_LEVEL <= len(predicted):
        target += "true probabilities averaged over observations of equal predictions"
        return cell_estimate(predicted, true, level, distance, target)
    if predicted.shape[1] != 2:
        msg = (
            "the truth behind a lens of more than two outcomes is averaged over equal predictions only, and these "
            f"take {n_levels} values in {len(predicted)} observations; use a lens of two outcomes."
        )
        raise NotImplementedError(msg)
    # Noise falls with the size of a cell; what cancels where the deviation changes its sign, with its squared width.
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

    def value(keep: NDArray[np.bool_]) -> float:
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


def one_hot(outcome: NDArray[Any], n_outcomes: int) -> NDArray[np.float64]:
    """Return outcomes ``(n_samples,)`` as probabilities 0 and 1, ``(n_samples, n_outcomes)``."""
    return np.eye(n_outcomes)[outcome]


def mean_distance_estimate(
    predicted: NDArray[np.float64], true: NDArray[np.float64], distance: Distance
) -> MiscalibrationEstimate:
    """Return the mean distance between predictions and their known true probabilities."""
    distances = apply_distance(distance, predicted, true)
    return MiscalibrationEstimate(
        value=float(distances.mean()),
        standard_error=float(distances.std(ddof=1) / np.sqrt(len(distances))),
        noise_floor=0.0,
        target=f"{in_words(distance)}, the calibration function being known",
        n_samples=len(distances),
    )


def _jackknife_error(replicates: NDArray[np.float64]) -> float:
    return float(np.sqrt((len(replicates) - 1) * replicates.var()))
