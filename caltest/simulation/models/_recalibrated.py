"""Models whose predictions are recalibrated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._user_functions import apply_calibration_function
from caltest.predictions.inputs._validation import validate_count
from caltest.simulation.models._base import draw_classes
from caltest.simulation.models._gaussian_mixture import FeatureModel, Mixture


@dataclass(frozen=True, repr=False)
class RecalibratedModel(FeatureModel):
    r"""Model whose predictions pass through a recalibrator that was trained on other observations.

    .. math:: g(x) = h(g_{\text{base}}(x)), \qquad h \text{ fitted to } n \text{ pairs } (g_{\text{base}}(x_i), y_i)

    It is trained once in each process, always with the same result. `estimate_miscalibration` shows what
    miscalibration remains.

    Parameters
    ----------
    base : TrainedClassifier, LogisticModel or BentPosterior
        The model to recalibrate.
    recalibrator : object with fit and predict_proba, or callable
        Anything whose ``fit(y_prob, y_true)`` learns from predictions ``(n, n_classes)`` and whose
        ``predict_proba(y_prob)`` returns recalibrated ones; it is copied before it is trained, by
        ``sklearn.base.clone`` where it can. A function of predictions is used as it is.
    n_train : int
        Number of observations that the recalibrator is trained on.
    seed : int
        Seed of these observations.

    Raises
    ------
    TypeError
        If ``base`` is no such model, or ``recalibrator`` neither a function nor such an object.
    ValueError
        If ``n_train`` < 1 or ``seed`` < 0; when predictions are made, if the recalibrator does not return
        probabilities.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltest.simulation import BentPosterior, GaussianMixture, RecalibratedModel, Temperature
    >>> mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> base = BentPosterior(mixture, Temperature(0.25))
    >>> model = RecalibratedModel(base, LogisticRegression(), n_train=5000)
    >>> [round(one.estimate_miscalibration(n_samples=20_000, rng=0).value, 2) for one in (base, model)]
    [0.12, 0.09]
    """

    base: FeatureModel
    recalibrator: Any
    n_train: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.base, FeatureModel):
            exact = (
                "; the exact posterior is BentPosterior(mixture, Identity())" if isinstance(self.base, Mixture) else ""
            )
            msg = f"`base` must be a TrainedClassifier, LogisticModel or BentPosterior, got {self.base!r}{exact}."
            raise TypeError(msg)
        if isinstance(self.recalibrator, type) or not (_learns(self.recalibrator) or callable(self.recalibrator)):
            msg = (
                "`recalibrator` must be an object with `fit` and `predict_proba`, or a function of predictions, got "
                f"{self.recalibrator!r}."
            )
            raise TypeError(msg)
        validate_count(self.n_train, "n_train")
        validate_count(self.seed, "seed", minimum=0)

    @property
    def distribution(self) -> Mixture:  # type: ignore[override]
        """Where observations come from: the distribution of the base."""
        return self.base.distribution

    def predict(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        recalibrator = _fitted(self)
        apply = recalibrator.predict_proba if _learns(recalibrator) else recalibrator
        return apply_calibration_function(apply, self.base.predict(x), "recalibrator")


def _learns(thing: Any) -> bool:
    return hasattr(thing, "fit") and hasattr(thing, "predict_proba")


@lru_cache(maxsize=64)
def _fitted(model: RecalibratedModel) -> Any:
    """Return the trained recalibrator; trained once in a process."""
    if not _learns(model.recalibrator):
        return model.recalibrator
    from copy import deepcopy

    from sklearn.base import clone

    rng = np.random.default_rng([model.seed, 1, *model.distribution.seed_words])
    rows = model.base.draw_unlabelled(model.n_train, rng)
    y_true = draw_classes(rows.class_prob, rng)
    can = hasattr(model.recalibrator, "get_params")
    fresh = clone(model.recalibrator) if can else deepcopy(model.recalibrator)
    return fresh.fit(rows.y_prob, y_true)
