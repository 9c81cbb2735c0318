"""Classifiers of scikit-learn, trained on a sample of a distribution whose posteriors are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lenses import ClassWise, Confidence, Lens
from caltest.predictions._partitions import EqualWidth
from caltest.predictions._sample import apply_lens
from caltest.predictions._validation import SeedLike, validate_choice, validate_count, validate_rng
from caltest.results._naming import describe
from caltest.simulation.models._base import Model, Rows, draw_classes
from caltest.simulation.models._estimate import (
    MiscalibrationEstimate,
    blocks,
    cell_estimate,
    level_set_estimate,
    mean_estimate,
    one_hot,
)
from caltest.simulation.models._exact import look
from caltest.simulation.models._mixtures import RandomMixture

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("logistic regression", "naive Bayes", "support vector", "random forest")
"""The classifiers of Posocco and Bonnefoy (2021)."""

_ROWS_OF_A_CLASS = 5  # what the folds of the support vector classifier's own calibration need
_PAPER_CELLS = 2000


@dataclass(frozen=True)
class TrainedClassifier(Model):
    r"""A classifier trained on a sample of a Gaussian mixture; needs scikit-learn, the extra ``study``.

    Training happens once in a process, and again, with the same result, wherever the model is sent. Its calibration
    function is not known, the exact posterior of every row is: `estimate_miscalibration` averages posteriors over
    rows of equal, or nearly equal, predictions, and `truth` sets the large-sample estimate of the paper beside it.

    Parameters
    ----------
    distribution : RandomMixture
        Where training and test rows come from.
    kind : {"logistic regression", "naive Bayes", "support vector", "random forest"}
        The classifier, with scikit-learn's defaults. The support vector classifier is given probabilities by
        ``CalibratedClassifierCV(SVC(), ensemble=False)``, Platt's method fitted to five folds for each class.
    n_train : int
        Training rows; 300 in the paper. They must give every class at least five rows.
    seed : int
        Seed of the training sample and of the random forest.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed; when trained, if a class has too few training rows.
    ImportError
        When trained, if scikit-learn is not installed.

    References
    ----------
    N. Posocco, A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 5.1.

    Examples
    --------
    >>> from caltest.simulation import RandomMixture, TrainedClassifier
    >>> model = TrainedClassifier(RandomMixture(2, 2, seed=0), "naive Bayes")
    >>> x, y_true, y_prob = model.draw(500, rng=0)
    >>> y_prob.shape
    (500, 2)
    """

    distribution: RandomMixture
    kind: str
    n_train: int = 300
    seed: int = 0
    n_classes: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, RandomMixture):
            msg = f"`distribution` must be a RandomMixture, got {self.distribution!r}."
            raise ValueError(msg)
        validate_choice(self.kind, "kind", KINDS)
        validate_count(self.n_train, "n_train")
        validate_count(self.seed, "seed", minimum=0)
        object.__setattr__(self, "n_classes", self.distribution.n_classes)

    def draw_rows(self, n_samples: int, rng: np.random.Generator) -> Rows:
        """Return features, predictions and posteriors."""
        x = self.distribution.draw_features(n_samples, rng)
        return Rows(x, self.predict(x), self.distribution.posterior(x))

    def predict(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        return np.asarray(trained(self).predict_proba(x), dtype=np.float64)

    def truth(
        self,
        lenses: Sequence[Lens] | None = None,
        distance: Distance = total_variation,
        *,
        n_samples: int = 1_000_000,
        rng: SeedLike = None,
    ) -> ClassifierTruth:
        """Return the expected miscalibration by two means, from the same rows.

        The large-sample estimate of the paper is the error of 2,000 equal-width cells on drawn outcomes; its noise
        floor says how much of it is noise. The level-set estimate averages exact posteriors instead.

        Parameters
        ----------
        lenses : sequence of lenses of two outcomes, optional
            `Confidence` and every class by default; then the mean over the classes is reported, too.
        distance : callable
            A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.
        n_samples : int
            Rows drawn; the paper has 2,000,000.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ClassifierTruth
            Prints as a table; ``to_frame()`` for pandas.

        Notes
        -----
        The noise matters: for the logistic regression on ``RandomMixture(5, 5, seed=0)`` through the confidence,
        100,000 rows give 0.0455 by the means of the paper and 0.0213 by level sets, 2,000,000 rows 0.0230 and 0.0214,
        with standard errors of at most 0.002 and 0.0004.
        """
        classes = [ClassWise(k) for k in range(self.n_classes)]
        views: list[Lens] = [Confidence(), *classes] if lenses is None else list(lenses)
        generator = validate_rng(rng)
        drawn = [
            (rows.y_prob, rows.class_prob, draw_classes(rows.class_prob, generator))
            for rows in blocks(self, n_samples, generator)
        ]
        y_prob, class_prob, y_true = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        pairs = [both_truths(y_prob, class_prob, y_true, lens, distance) for lens in views]
        names = [describe(lens) for lens in views]
        if lenses is None:
            target = "mean over the classes"
            large, level = zip(*pairs[1:], strict=True)
            pairs.append((mean_estimate(large, target), mean_estimate(level, target)))
            names.append("mean over classes")
        return ClassifierTruth(str(self), tuple(names), *map(tuple, zip(*pairs, strict=True)))


@dataclass(frozen=True, eq=False)
class ClassifierTruth:
    """Expected miscalibration of a trained classifier, by two means; prints as a table.

    Attributes
    ----------
    model : str
        The classifier.
    lenses : tuple of str
        What was looked at.
    large_sample : tuple of MiscalibrationEstimate
        The error of 2,000 equal-width cells on drawn outcomes, the "ground truth" of Posocco and Bonnefoy (2021).
    level_set : tuple of MiscalibrationEstimate
        Exact posteriors averaged over rows of equal, or nearly equal, predictions.
    """

    model: str
    lenses: tuple[str, ...]
    large_sample: tuple[MiscalibrationEstimate, ...]
    level_set: tuple[MiscalibrationEstimate, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each lens and means: value, standard error, noise floor, rows and cells."""
        import pandas as pd

        return pd.DataFrame(
            {
                "model": self.model,
                "lens": lens,
                "means": means,
                "value": found.value,
                "standard_error": found.standard_error,
                "noise_floor": found.noise_floor,
                "n_samples": found.n_samples,
                "n_cells": found.n_cells,
            }
            for lens, *both in zip(self.lenses, self.large_sample, self.level_set, strict=True)
            for means, found in zip(("large sample", "level set"), both, strict=True)
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = [
            f"Expected miscalibration of {self.model}, {self.large_sample[0].n_samples} rows",
            "",
            f"{'':<18}{'large sample':>14}{'s.e.':>9}{'floor':>9}{'level sets':>14}{'s.e.':>9}{'floor':>9}",
        ]
        for lens, large, level in zip(self.lenses, self.large_sample, self.level_set, strict=True):
            cells = "".join(
                f"{found.value:>14.5f}{found.standard_error:>9.5f}{found.noise_floor:>9.5f}" for found in (large, level)
            )
            lines.append(f"{lens:<18}{cells}")
        return "\n".join(lines)


def both_truths(
    y_prob: NDArray[np.float64],
    class_prob: NDArray[np.float64],
    y_true: NDArray[np.int64],
    lens: Lens,
    distance: Distance,
) -> tuple[MiscalibrationEstimate, MiscalibrationEstimate]:
    """Return the large-sample estimate and the one from level sets."""
    predicted, true = look(lens, y_prob, class_prob)
    if predicted.shape[1] != 2:
        msg = f"`lenses` must have two outcomes each, {describe(lens)} has {predicted.shape[1]}."
        raise ValueError(msg)
    outcome = apply_lens(lens, y_prob, y_true)[1]
    label = EqualWidth(_PAPER_CELLS).fit(predicted)(predicted)
    target = f"E d(induced prediction, truth) through {describe(lens)}, frequencies in {_PAPER_CELLS} equal-width cells"
    return (
        cell_estimate(predicted, one_hot(outcome, 2), label, distance, target),
        level_set_estimate(predicted, true, lens, distance),
    )


@lru_cache(maxsize=64)
def trained(model: TrainedClassifier) -> Any:
    """Return the fitted classifier; fitted once in a process."""
    rng = np.random.default_rng([model.seed, model.distribution.seed])
    x = model.distribution.draw_features(model.n_train, rng)
    y = draw_classes(model.distribution.posterior(x), rng)
    count = np.bincount(y, minlength=model.n_classes)
    if count.min() < _ROWS_OF_A_CLASS:
        msg = (
            f"`n_train` must give every class at least {_ROWS_OF_A_CLASS} rows, class {count.argmin()} has "
            f"{count.min()} of {model.n_train}."
        )
        raise ValueError(msg)
    return _untrained(model.kind, model.seed).fit(x, y)


def _untrained(kind: str, seed: int) -> Any:
    try:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import GaussianNB
        from sklearn.svm import SVC
    except ImportError as error:
        msg = "training a classifier needs scikit-learn: pip install 'caltest[study]'."
        raise ImportError(msg) from error
    return {
        "logistic regression": LogisticRegression(max_iter=1000),
        "naive Bayes": GaussianNB(),
        "support vector": CalibratedClassifierCV(SVC(), ensemble=False),
        "random forest": RandomForestClassifier(random_state=seed),
    }[kind]
