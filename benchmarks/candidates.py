"""Candidates for the default test that were measured before it was fixed: ``power.py --candidates --out DIR``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import caltest
from caltest.predictions._view import LensView
from caltest.predictions.cells._cells import cells_of
from caltest.statistics import Statistic

SCALES = (2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, repr=False)
class OfConfidence(Statistic):
    """A statistic of one probability, of the confidence on the whole prediction or of the event of two outcomes."""

    statistic: Any

    def evaluate(self, sample, outcomes):
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        if sample.n_outcomes == 2:
            return self.statistic.evaluate(sample, outcomes)
        view = sample.once(_confidence)
        flat = np.atleast_2d(outcomes)
        return self.statistic.evaluate(view.sample, view.outcomes(flat)).reshape(outcomes.shape[:-1])


@dataclass(frozen=True, repr=False)
class DyadicMaximum(Statistic):
    """T-Cal in one number: the largest debiased squared error over dyadic scales, divided by its standard deviation."""

    n_outcomes = 2

    def evaluate(self, sample, outcomes):
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        return np.max([self._standardised(sample, outcomes, m) for m in SCALES if m <= sample.n_samples], axis=0)

    def _standardised(self, sample, outcomes, n_cells):
        partition = caltest.EqualWidth(n_cells)
        cells = cells_of(sample, partition)
        variance = np.bincount(cells.index, sample.event * (1 - sample.event), cells.n_cells)
        deviation = np.sqrt(2 * np.square(variance / cells.count).sum()) / sample.n_samples
        return caltest.SquaredL2(partition, "t-cal").evaluate(sample, outcomes) / (deviation or 1.0)


def _confidence(sample):
    return LensView.of(caltest.Confidence(), sample.prob, sample.outcome, sample)


def candidates(n_samples: int, n_classes: int) -> dict[str, object]:
    """Return the candidates by name, that of the default first."""
    five = tree, over, under, paths, confidence = caltest.Omnibus().components
    kuiper = OfConfidence(caltest.statistics.Kuiper())
    return {
        "default": caltest.Omnibus(),
        "five parts": caltest.Omnibus(five),
        "three parts, |U|": caltest.Omnibus((tree, caltest.TemperatureScore(), paths)),
        "U and -U": caltest.Omnibus((tree, over, under, paths)),
        "with dyadic cells": caltest.Omnibus((*five, OfConfidence(DyadicMaximum()))),
        "with 63 cells": caltest.Omnibus((*five, caltest.statistics.ConfidenceECE(63))),
        "Kuiper instead of ECE": caltest.Omnibus((tree, over, under, paths, kuiper)),
        "tree ECE": tree,
        "temperature score": caltest.TemperatureScore(),
        "class-wise KS": paths,
        "confidence ECE 15": confidence,
        "confidence Kuiper": kuiper,
        "confidence, dyadic": OfConfidence(DyadicMaximum()),
    }
