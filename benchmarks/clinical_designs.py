"""Patients whose true risks are known: predictions, labels, and what the measures of a validation should find."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from caltest.clinical._discrimination import c_statistic
from caltest.clinical._net_benefit import NetBenefit
from caltest.clinical._overall import brier_scores, likelihood_indexes
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample

Floats = NDArray[np.float64]
_POPULATION, _SEED = 400_000, 20261128
_RARE = 0.01
_CLUSTER = 10


@dataclass(frozen=True)
class Design:
    """Predicted logits are normal, true ones are a shift plus a slope times these.

    The number of patients is that with which so many events are expected. With a ``correlation`` they are in clusters
    of 10, whose labels share a part of the normal variable that is compared with the true risk: every label has its
    true risk, but those of a cluster are alike.
    """

    events: int
    mean: float = -1.9
    spread: float = 1.2
    shift: float = 0.0
    slope: float = 1.0
    correlation: float = 0.0

    @property
    def calibrated(self) -> bool:
        """Whether predicted risks are the true ones."""
        return (self.shift, self.slope) == (0, 1)

    @property
    def predictions(self) -> str:
        """The kind of patients, and what is wrong with their predictions."""
        kind = "0.1 % events" if self.frequency < _RARE else "c = 0.94" if self.spread > 2 else "usual risks"
        wrong = [f"shift {self.shift:g}"] * bool(self.shift) + [f"slope {self.slope:g}"] * (self.slope != 1)
        return ", ".join([kind, *(wrong or ["calibrated"]), *(["clusters of 10"] * bool(self.correlation))])

    @property
    def threshold(self) -> float:
        """Risk from which on patients are treated."""
        return 0.003 if self.frequency < _RARE else 0.2

    @cached_property
    def frequency(self) -> float:
        """Share of patients with the event."""
        z, weight = _normal_nodes()
        true = expit(self.shift + self.slope * (self.mean + self.spread * z))
        return float(true @ weight / weight.sum())

    @cached_property
    def n(self) -> int:
        """Number of patients."""
        return round(self.events / self.frequency)

    def patients(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats, Floats, dict[str, NDArray]]:
        """Return labels, predicted and true risks, and the clusters as an argument of the methods."""
        logit = self.mean + self.spread * rng.standard_normal(self.n)
        true = expit(self.shift + self.slope * logit)
        if not self.correlation:
            return (rng.random(self.n) < true).astype(np.int64), expit(logit), true, {}
        cluster = np.arange(self.n) // _CLUSTER
        shared, own = rng.standard_normal(self.n)[cluster], rng.standard_normal(self.n)
        latent = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        return (ndtr(latent) < true).astype(np.int64), expit(logit), true, {"groups": cluster}

    @property
    def targets(self) -> dict[str, float]:
        """What the measures are in a population."""
        return _targets(replace(self, events=1, correlation=0.0))


@cache
def _normal_nodes() -> tuple[Floats, Floats]:
    return np.polynomial.hermite_e.hermegauss(101)


@cache
def _targets(design: Design) -> dict[str, float]:
    """Return the measures of many patients, who have both labels, weighted by their true risks."""
    logit = design.mean + design.spread * np.random.default_rng(_SEED).standard_normal(_POPULATION)
    prob, true = expit(logit), expit(design.shift + design.slope * logit)
    labels, weight = np.repeat([1, 0], _POPULATION), np.concatenate([true, 1 - true])
    sample = make_sample(labels, np.tile(prob, 2), sample_weight=weight)
    cells = EventCells.of_counts(prob, np.ones(_POPULATION), true)
    found = brier_scores(sample, 0.05) | likelihood_indexes(sample, sample.once(EventCells.of), 0.05)
    benefit = NetBenefit.at(sample, design.threshold, 0.05)
    return {name: one.estimate for name, one in found.items()} | {
        "intercept": cells.intercept(),
        "calibration_slope": design.slope,
        "c_statistic": c_statistic(sample, 0.05)[0],
        "net_benefit": benefit.estimate,
        "gain": benefit.gain,
    }


FEW = [Design(8), Design(8, -7.63)]
USUAL = [Design(events) for events in (20, 50, 200)]
SHIFTED = [Design(events, shift=0.4) for events in (20, 50, 200)]
TOO_EXTREME = [Design(events, slope=0.6) for events in (20, 50, 200)]
LARGE = [Design(1_000), Design(1_000, shift=0.4), Design(1_000, slope=0.6)]
STRONG = [Design(events, -4.5, 3.1) for events in (8, 20, 50, 200)]
RARE = [Design(events, -7.63) for events in (20, 50, 200)]
RARE_WRONG = [Design(events, -7.63, shift=-1.15, slope=0.8) for events in (20, 50, 200)]
CLUSTERS = [Design(events, correlation=0.2) for events in (20, 50, 200)]
CLUSTERS_WRONG = [Design(events, shift=0.4, slope=0.8, correlation=0.2) for events in (50, 200)]
