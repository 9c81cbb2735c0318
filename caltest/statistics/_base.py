"""Combinations of statistics, and what a function that takes a statistic asks of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest import predictions
from caltest._compiled._lookup import sum_selected
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse, require
from caltest.resampling.draws._signs import sums_of_groups
from caltest.resampling.engine._statistic import Statistic
from caltest.results._expressions import PublicNames, read_object

__all__ = ["Combination", "Statistic"]


_SMALL = 2**12  # observations of which many replicates stay in cache


class Combination(Statistic):
    """Base class of combinations of several statistics by min-p, which have no value on one data set."""

    @property
    @abstractmethod
    def components(self) -> tuple[Statistic, ...]:
        """The statistics that are combined."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Raise ValueError: the engine evaluates the components."""
        raise _no_estimate(self)


def quantities(statistics: Iterable[Statistic]) -> tuple[str, ...]:
    """Return what axes call statistics: their words, with the code behind them where words are the same."""
    given = list(statistics)
    words = [one.words for one in given]
    return tuple(
        word if words.count(word) == 1 or word == str(one) else f"{word}: {one.brief}"
        for word, one in zip(words, given, strict=True)
    )


def in_batches(evaluate: Callable[[NDArray[Any]], Floats], replicates: NDArray[Any], size: int) -> Floats:
    """Return what a function returns of replicates, ``(n_replicates,)``, from some of them at a time."""
    return np.concatenate([evaluate(replicates[i : i + size]) for i in range(0, len(replicates), size)])


def in_equal_batches(evaluate: Callable[[Floats], Floats], replicates: NDArray[Any], *, few: bool = False) -> Floats:
    """Return what a function returns of replicates, ``(..., n_replicates)``, from as many of them at a time, as floats.

    They are 8 if there are many observations or if there are ``few`` replicates, and 64 otherwise. The last digit of a
    product of matrices depends on their shapes. So the last batch is filled up with zeros, and a value does not depend
    on the replicates beside it.
    """
    n_replicates, n_samples = replicates.shape
    size = 8 if few or n_samples > _SMALL else 64
    batch = np.zeros((size, n_samples))
    found = []
    for start in range(0, n_replicates, size):
        some = replicates[start : start + size]
        batch[: len(some)] = some
        batch[len(some) :] = 0.0
        found.append(evaluate(batch)[..., : len(some)])
    return np.concatenate(found, axis=-1)


def sum_of_terms(sample: Sample, outcomes: NDArray[Any], terms: Floats) -> Floats:
    """Return the sum ``(...)`` of the entries of a table ``(n_samples, n_outcomes)`` that outcomes select."""
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return sum_selected(flat, terms).reshape(outcomes.shape[:-1])


def terms_of_groups(sample: Sample, terms: Callable[[Sample], Floats]) -> Floats:
    """Return what the labels of each group add to the sum of a table of terms, ``(n_groups, 1)``; for `Sample.once`."""
    return sums_of_groups(sample, sample.of_predictions(terms)[np.arange(sample.n_samples), sample.outcome])[:, None]


def counts_events(sample: Sample) -> bool:
    """Return whether cells count the events of a two-outcome problem without weights, whose distribution is known."""
    return sample.n_outcomes == 2 and sample.weight is None


_ELSEWHERE = {
    name: ours
    for names, ours in {
        "brier|brier_score": "brier_score for its value, and Spiegelhalter() for a test of it",
        "log_loss|logloss|nll|cross_entropy": "log_score for its value, and TemperatureScore() for a test of it",
        "l1|ece_score|calibration_error": "ECE(EqualWidth(15))",
        "l2|rmse": 'RMSCE(15, "equal-width") of the confidence, or SquaredL2(), which is debiased',
        "max|linf|l_inf": "MCE(EqualWidth(15))",
        "adaptive_ece|adaece|ada_ece": "ECE(EqualMass(15))",
        "hl|hosmer-lemeshow|hosmer lemeshow": "HosmerLemeshow()",
        "smce|smooth calibration error": "statistics.SmoothCalibrationError()",
        "smece|smooth ece|smooth-ece": "SmoothECE()",
        "cox|slope|intercept": "CoxScore(), and calibration_slope for the slope itself",
        "auc|auroc|roc_auc": "roc_auc_score of scikit-learn, which is not about calibration",
        "eavg|e_avg": 'ICI("lowess")',
        "cutoff|cutofferror|cutoff_error|cutoff calibration error|cutoffcalibrationerror": "Kuiper(), and "
        "estimation.cutoff_interval for its interval",
        "ks_error": "KS()",
    }.items()
    for name in names.split("|")
}
"""Names of other packages, and what has this purpose here."""


def validate_statistic(statistic: Any, name: str = "statistic") -> Statistic:
    """Return an argument if it is a statistic, or the one that a text names, such as "ECE(EqualWidth(15))"."""
    found = statistic
    if isinstance(statistic, str):
        other = _ELSEWHERE.get(statistic.strip().lower())
        if other is not None:
            refuse(f"`{name}` {statistic!r} is a name of other packages; use {other}.")
        try:
            found = read_object(statistic, PublicNames(import_module("caltest.statistics"), predictions))
        except ValueError as error:
            refuse(f"`{name}` {error}")
    must = f"`{name}` must be a statistic such as ECE() or Omnibus(), or its name"
    require(isinstance(found, Statistic), must, statistic, right_type=False)
    return found


def validate_estimate(statistic: Any, name: str = "statistic") -> Statistic:
    """Return an argument if it is a statistic that has a value on one data set."""
    chosen = validate_statistic(statistic, name)
    if chosen.components != (chosen,):
        raise _no_estimate(chosen)
    return chosen


def default_lens(statistic: Statistic, n_classes: int) -> Lens:
    """Return the default lens of a statistic: the whole prediction if it can judge it, otherwise the confidence."""
    parts = (statistic, *statistic.components)
    return Canonical() if all(part.n_outcomes in {None, n_classes} for part in parts) else Confidence()


def _no_estimate(statistic: Statistic) -> ValueError:
    return ValueError(
        f"`{statistic.name}` combines tests and estimates no error; use calibration_test, or ECE() to estimate."
    )
