"""Logistic models of the features of a mixture."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._refusals import refuse
from caltest.simulation.models._exact import finite_miscalibration, two_classes
from caltest.simulation.models._gaussian_mixture import (
    MIXTURE,
    FeatureModel,
    GaussianMixture,
    Mixture,
    nested,
    read_numbers,
)
from caltest.simulation.models._level_sets import level_set_miscalibration, line_of


@dataclass(frozen=True, repr=False)
class LogisticModel(FeatureModel):
    r"""Logistic model, binary or multinomial, of the features of a mixture.

    .. math:: g_1(x) = \frac1{1 + \exp(-(\beta_0 + \beta^\top x))} \quad \text{or} \quad
              g_k(x) \propto \exp(\beta_{0k} + \beta_k^\top x)

    One-parameter families come from a function of the parameter: ``lambda s: LogisticModel(mixture, 0.0, s)`` has the
    calibrated model of two equal variances at one slope, and is over-confident above it.

    Parameters
    ----------
    distribution : GaussianMixture or RandomMixture
        Where observations come from.
    intercept : float or sequence of float
        One number for two classes, the logit of class 1 at x = 0; or one for each class.
    slope : float or array of shape (n_features,) or (n_classes, n_features)
        Change of the logit with each feature; one row for each class where ``intercept`` has one number for each. One
        number serves a mixture of one feature, and one for each class with one feature.

    Raises
    ------
    TypeError
        If ``distribution`` is no mixture.
    ValueError
        If shapes disagree, or a number is not finite.

    See Also
    --------
    GaussianMixture1D : The logistic models of Vaicenavicius et al. (2019), whose parameters are the logit of class 0.

    Notes
    -----
    The truth of two classes is exact for any number of features: what a prediction depends on is one linear function of
    the features, whose distribution in each class is a mixture in one dimension.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.1.

    Examples
    --------
    The miscalibrated model of the paper:

    >>> from caltest.simulation import GaussianMixture, LogisticModel
    >>> mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> round(LogisticModel(mixture, -1, -1).expected_miscalibration(), 10)
    0.5637511406
    >>> [round(LogisticModel(mixture, 0, slope).expected_miscalibration(), 4) for slope in (1, 2, 4)]
    [0.1061, 0.0, 0.0754]
    """

    distribution: Mixture = field(metadata=MIXTURE)
    intercept: float | tuple[float, ...]
    slope: float | tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        n_classes, n_features = self.distribution.n_classes, self.distribution.n_features
        intercept, slope = (read_numbers(getattr(self, name), name) for name in ("intercept", "slope"))
        shape = (n_features,) if intercept.ndim == 0 else (n_classes, n_features)
        fits = slope.shape == shape or (n_features == 1 and slope.shape == shape[:-1])
        if not fits or intercept.shape != shape[:-1] or (intercept.ndim == 0 and n_classes > 2):
            binary = "a number and `slope` shape " + f"({n_features},), or " if n_classes == 2 else ""
            refuse(
                f"`intercept` must be {binary}{n_classes} numbers and `slope` shape ({n_classes}, {n_features}), got "
                f"shapes {intercept.shape} and {slope.shape}."
            )
        flat = slope.reshape(shape[:-1]) if n_features == 1 else slope
        self._keep(intercept=nested(intercept), slope=nested(flat))

    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        from scipy.special import softmax

        features = np.asarray(x, dtype=np.float64)
        logits = np.asarray(self.intercept) + features @ self._coefficients.T
        return two_classes(logits[:, 0])[:, ::-1] if logits.shape[1] == 1 else softmax(logits, axis=1)

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        """Return true class probabilities at predictions ``(n_samples, n_classes)``, for two classes.

        Parameters
        ----------
        y_prob : array of shape (n_samples, n_classes)
            Predictions. A prediction of exactly 0 or 1 stands for the smallest logit that doubles round to it.

        Returns
        -------
        array of shape (n_samples, n_classes)
            True class probabilities.

        Raises
        ------
        NotImplementedError
            If there are more than two classes.
        """
        if self.n_classes > 2:
            return super().calibration_function(y_prob)
        prob = self._validated(y_prob)
        start, direction = self._logit
        if not direction.any():
            return np.tile(self._shares, (len(prob), 1))
        with np.errstate(divide="ignore"):
            logit = np.clip(np.log(prob[:, 1]) - np.log(prob[:, 0]), -745.0, 745.0)
        return self._projected.posterior(((logit - start) / np.linalg.norm(direction))[:, None])

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d` through a lens by quadrature, to 1e-8, for two classes or one feature.

        Parameters
        ----------
        lens : lens or callable, optional
            What to look at, also a user's function; the whole prediction by default.
        distance : callable
            A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.

        Returns
        -------
        float
            The expected miscalibration.

        Raises
        ------
        NotImplementedError
            With more than two classes and more than one feature; `estimate_miscalibration` estimates it.
        ValueError
            If lens or distance are too rough for quadrature.
        """
        coefficients = self._coefficients
        if not (coefficients - coefficients[0]).any() and (len(coefficients) > 1 or not coefficients.any()):
            origin = np.zeros((1, self.distribution.n_features))
            return finite_miscalibration(self.predict(origin), self._shares[None], lens, distance)
        if self.n_classes == 2:
            start, direction = self._logit
            length = float(np.linalg.norm(direction))
            line = line_of(self._projected)
            return level_set_miscalibration(lens, distance, lambda t: two_classes(-(start + length * t)), line)
        if self.distribution.n_features > 1:
            return super().expected_miscalibration(lens, distance)
        line = line_of(self.distribution)
        return level_set_miscalibration(lens, distance, lambda t: self.predict(t[:, None]), line)

    @property
    def _coefficients(self) -> Floats:
        """Slopes, ``(1, n_features)`` or ``(n_classes, n_features)``."""
        n_rows = 1 if np.ndim(self.intercept) == 0 else self.n_classes
        return np.asarray(self.slope, dtype=np.float64).reshape(n_rows, self.distribution.n_features)

    @property
    def _logit(self) -> tuple[float, Floats]:
        """Intercept and slopes of the logit of class 1 of two."""
        coefficients, start = self._coefficients, np.atleast_1d(self.intercept)
        if len(coefficients) == 1:
            return float(start[0]), coefficients[0]
        return float(start[1] - start[0]), coefficients[1] - coefficients[0]

    @cached_property
    def _projected(self) -> GaussianMixture:
        """The mixture of the only function of the features that predictions of two classes depend on."""
        direction = self._logit[1]
        unit = direction / np.linalg.norm(direction)
        weights, means, factors, classes = self.distribution.components
        variances = np.square(factors @ unit).sum(axis=1)
        return GaussianMixture(weights.tolist(), means @ unit, variances, classes.tolist())  # type: ignore[arg-type]

    @property
    def _shares(self) -> Floats:
        weights, _, _, classes = self.distribution.components
        return np.bincount(classes, weights=weights).astype(np.float64)
