"""Probabilities of labels halfway between two recalibrated models, behind any lens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._grouped_terms import GroupedPairTerms
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import apply_lens

_LEAST = 0.004  # of all outcomes together: a probability of 0 would never be drawn


@dataclass(frozen=True, eq=False)
class LabelOutcomes:
    """What the labels are behind the lens of one model.

    Attributes
    ----------
    prob : array of shape (n_samples, n_classes)
        Predictions.
    outcome : array of shape (n_samples, n_classes)
        The outcome behind the lens for each label.
    """

    prob: Floats
    outcome: Integers

    @classmethod
    def of(cls, lens: LensLike, prob: NDArray[Any]) -> LabelOutcomes:
        """Return the outcomes behind a lens."""
        labels = range(prob.shape[1])
        columns = [apply_lens(lens, prob, np.full(len(prob), label))[1] for label in labels]
        return cls(prob.astype(np.float64, copy=False), np.column_stack(columns).astype(np.int64))


def label_outcomes(
    lens: LensLike, probs: Sequence[NDArray[Any]], samples: Sequence[Sample]
) -> list[LabelOutcomes] | None:
    """Return the outcomes of labels behind the lens for each model; None if they are the labels or are not needed."""
    is_plain = samples[0].group is None and samples[0].weight is None
    if is_plain or isinstance(lens, Canonical):
        return None
    return [LabelOutcomes.of(lens, prob[np.sort(sample.row)]) for prob, sample in zip(probs, samples, strict=True)]


def margins_of(terms: Sequence[GroupedPairTerms], outcomes: Sequence[LabelOutcomes] | None) -> tuple[Floats, Integers]:
    """Return probabilities of labels ``(n_samples, n_labels)`` and the outcome of each, ``(n_models, n_labels)``.

    Labels are the outcomes of the models if these are the same for all of them, else all combinations of outcomes.
    """
    number = terms[0].prob.shape[1]
    chances = [_recalibrated(part) for part in terms]
    if outcomes is None:
        return np.mean(chances, axis=0), np.tile(np.arange(number), (len(terms), 1))
    whole = np.mean([_of_labels(of, chance) for of, chance in zip(outcomes, chances, strict=True)], axis=0)
    one, two = (of.outcome for of in outcomes)
    joint = np.zeros((len(whole), number * number))
    rows = np.arange(len(whole))
    for label, column in enumerate(whole.T):
        joint[rows, one[:, label] * number + two[:, label]] += column
    return joint, np.stack(np.divmod(np.arange(number * number), number))


def _recalibrated(terms: GroupedPairTerms) -> Floats:
    """Return predictions plus the mean residuals of their cells, ``(n_samples, n_outcomes)``."""
    mean = np.where((terms.factor > 0)[:, None], terms.mean, 0.0)[terms.place[terms.entry]]
    if terms.n_columns == 1:
        mean = np.column_stack([-mean, mean])
    least = _LEAST / terms.prob.shape[1]
    found = np.clip(terms.prob + mean, least, 1 - least)
    return found / found.sum(axis=1, keepdims=True)


def _of_labels(of: LabelOutcomes, chance: Floats) -> Floats:
    """Return probabilities of the labels such that outcomes have the given ones, in proportion to the predictions."""
    found = np.zeros_like(of.prob)
    for k in range(chance.shape[1]):
        belongs = of.outcome == k
        prob = np.where(belongs, of.prob, 0.0)
        total, number = prob.sum(axis=1, keepdims=True), belongs.sum(axis=1, keepdims=True)
        even = belongs / np.maximum(number, 1)
        found += chance[:, [k]] * np.where(total > 0, prob / np.where(total > 0, total, 1.0), even)
    return found / found.sum(axis=1, keepdims=True)
