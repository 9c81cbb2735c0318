"""Gaussian components of fitted estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Parameters = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Sequence[int]]
_FITTED = {
    "GaussianNB": "theta_",
    "QuadraticDiscriminantAnalysis": "rotations_",
    "GaussianMixture": "means_",
}
"""Estimators that are read, and an attribute that they have once they are fitted."""


def read_components(estimator: Any, classes: Sequence[int] | None) -> Parameters:
    """Return weights, means, covariances and classes of the components of a fitted estimator.

    Raises
    ------
    TypeError
        If it is no estimator of scikit-learn with Gaussian components.
    ValueError
        If it is not fitted, or ``classes`` is given for a classifier.
    """
    name = next((kind.__name__ for kind in type(estimator).__mro__ if _is_known(kind)), None)
    if name is None:
        *others, last = _FITTED
        found = f"the class {estimator.__name__}" if isinstance(estimator, type) else type(estimator).__name__
        msg = f"`estimator` must be a fitted {', '.join(others)} or {last} of scikit-learn, got {found}."
        raise TypeError(msg)
    if not hasattr(estimator, _FITTED[name]):
        msg = f"`estimator` must be fitted, got {estimator!r}; call its `fit` first."
        raise ValueError(msg)
    if name == "GaussianMixture":
        n_components = len(estimator.weights_)
        return (
            estimator.weights_ / estimator.weights_.sum(),
            estimator.means_,
            _mixture_covariances(estimator),
            range(n_components) if classes is None else classes,
        )
    if classes is not None:
        msg = f"`classes` must be None for {name}, whose components are its classes."
        raise ValueError(msg)
    if name == "GaussianNB":
        weights, means = estimator.class_prior_, estimator.theta_
        covariances = np.stack([np.diag(variance) for variance in estimator.var_])
    else:
        weights, means = estimator.priors_, estimator.means_
        # Rotations and scalings, because the covariances are stored on request only.
        parts = zip(estimator.rotations_, estimator.scalings_, strict=True)
        covariances = np.stack([_symmetric((rotation * scaling) @ rotation.T) for rotation, scaling in parts])
    return weights / np.sum(weights), means, covariances, range(len(weights))


def _is_known(kind: type) -> bool:
    return kind.__name__ in _FITTED and kind.__module__.startswith("sklearn.")


def _mixture_covariances(estimator: Any) -> NDArray[np.float64]:
    n_components, n_features = estimator.means_.shape
    found = estimator.covariances_
    if estimator.covariance_type == "full":
        return np.stack([_symmetric(matrix) for matrix in found])
    if estimator.covariance_type == "tied":
        return np.stack([_symmetric(found)] * n_components)
    if estimator.covariance_type == "diag":
        return np.stack([np.diag(variance) for variance in found])
    return np.asarray(found)[:, None, None] * np.eye(n_features)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
