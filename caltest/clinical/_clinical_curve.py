"""The smooth calibration curve of a validation, with what is drawn beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.clinical._curve_intervals import CurveSimulation
from caltest.estimation.uncertainty._prediction_distribution import prediction_density
from caltest.predictions._sample import Sample
from caltest.results import Result
from caltest.results._description import Description, Table, counted

_N_POINTS = 10  # groups of patients with similar risks


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClinicalCurve(Result):
    """A smooth calibration curve, where it would be if the predictions were calibrated, and groups of similar risks.

    Attributes
    ----------
    prediction, frequency : arrays of shape (n_points,)
        The curve: predicted risk, increasing, and smoothed frequency of the event.
    lower, upper : arrays of shape (n_points,)
        Ends of the pointwise band in which the curve of a calibrated model lies.
    mean_risk, observed : arrays of shape (n_groups,)
        Mean predicted risk and frequency of the event in ten groups of patients with similar risks.
    densities : mapping of str to array
        Distribution of the predictions of events and of other observations.

    See Also
    --------
    clinical_calibration : The validation whose curve it is.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.clinical.clinical_calibration(y_true, y_prob[:, 1], thresholds=[0.3], n_resamples=99, rng=0)
    >>> curve = result.curve
    >>> curve.mean_risk[:4].round(2), curve.observed[:4].round(2)
    (array([0.05, 0.16, 0.26, 0.35]), array([0.07, 0.17, 0.37, 0.37]))
    """

    prediction: NDArray[np.float64]
    frequency: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    mean_risk: NDArray[np.float64]
    observed: NDArray[np.float64]
    densities: Mapping[str, NDArray[np.float64]]

    _columns: ClassVar[tuple[str, ...]] = ("prediction", "frequency", "lower", "upper")
    _left_out: ClassVar[frozenset[str]] = frozenset({"densities"})

    @classmethod
    def of(cls, sample: Sample, simulation: CurveSimulation, missed: float) -> ClinicalCurve:
        """Return the curve of a sample, and its band from simulated labels."""
        lower, upper = simulation.band(missed)
        first = np.unique(np.linspace(0, sample.n_samples, _N_POINTS + 1).astype(np.int64)[:-1])
        weight = sample.weight_or_ones
        total = np.add.reduceat(weight, first)
        risk, observed = (np.add.reduceat(weight * each, first) / total for each in (sample.event, sample.outcome))
        event = sample.outcome > 0
        densities = {
            name: prediction_density(sample.event[some], weight[some])
            for name, some in {"with the event": event, "without it": ~event}.items()
        }
        return cls(
            prediction=simulation.sample.event,
            frequency=simulation.curve,
            lower=np.clip(lower, 0.0, 1.0),
            upper=np.clip(upper, 0.0, 1.0),
            mean_risk=risk,
            observed=observed,
            densities=densities,
        )

    def _describe(self) -> Description:
        rows = [
            (f"{risk:.4g}", f"{observed:.4g}") for risk, observed in zip(self.mean_risk, self.observed, strict=True)
        ]
        title = f"Smooth calibration curve at {counted(len(self.prediction), 'predicted risk')}"
        return Description(title, (), [Table(("mean risk", "observed"), rows)])
