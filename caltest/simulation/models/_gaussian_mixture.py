"""Mixtures of Gaussian components, each of which belongs to a class, and the base of models of their features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, refuse_if, require, validate_count, validate_rng
from caltest.simulation.models._base import Model, Rule, Unlabelled

Parameters = tuple[Floats, Floats, Floats, Sequence[int]]
_FITTED = {"GaussianNB": "theta_", "QuadraticDiscriminantAnalysis": "rotations_", "GaussianMixture": "means_"}
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
        refuse(f"`estimator` must be a fitted {', '.join(others)} or {last} of scikit-learn, got {found}.", TypeError)
    unfitted = f"`estimator` must be fitted, got {estimator!r}; call its `fit` first."
    refuse_if(not hasattr(estimator, _FITTED[name]), unfitted)
    if name == "GaussianMixture":
        n_components = len(estimator.weights_)
        return (
            estimator.weights_ / estimator.weights_.sum(),
            estimator.means_,
            _covariances(estimator.covariances_, estimator.covariance_type, *estimator.means_.shape),
            range(n_components) if classes is None else classes,
        )
    refuse_if(classes is not None, f"`classes` must be None for {name}, whose components are its classes.")
    if name == "GaussianNB":
        weights, means = estimator.class_prior_, estimator.theta_
        covariances = _covariances(estimator.var_, "diag", *means.shape)
    else:
        weights, means = estimator.priors_, estimator.means_
        # Rotations and scalings, because the covariances are stored on request only.
        parts = zip(estimator.rotations_, estimator.scalings_, strict=True)
        covariances = _symmetric(np.stack([(rotation * scaling) @ rotation.T for rotation, scaling in parts]))
    return weights / np.sum(weights), means, covariances, range(len(weights))


def _is_known(kind: type) -> bool:
    return kind.__name__ in _FITTED and kind.__module__.startswith("sklearn.")


def _covariances(found: Any, kind: str, n_components: int, n_features: int) -> Floats:
    """Return matrices for what scikit-learn keeps: a matrix for each component or all, a row or a number for each."""
    if kind in {"full", "tied"}:
        return _symmetric(np.broadcast_to(found, (n_components, n_features, n_features)))
    return np.reshape(found, (n_components, -1, 1)) * np.eye(n_features)


def _symmetric(matrix: Floats) -> Floats:
    return (matrix + matrix.swapaxes(-1, -2)) / 2


_SUM_TOLERANCE = 1e-9
_SYMMETRY_TOLERANCE = 1e-9  # relative to the largest entry


class Components(NamedTuple):
    """Components of a mixture as arrays.

    ``weights (n,)`` sum to 1, ``means (n, d)``, ``factors (n, d, d)`` with covariances F'F, and ``classes (n,)``.
    """

    weights: Floats
    means: Floats
    factors: Floats
    classes: Integers


class Mixture(Model):
    r"""Base of the mixtures of Gaussian components; as a model, a mixture predicts its exact posterior.

    .. math:: p(x, k) = \sum_{j : c_j = k} w_j \, \mathcal N(x; \nu_j, \Sigma_j)

    Attributes
    ----------
    n_classes, n_features : int
        Numbers of classes and of features.
    """

    n_features: int

    @property
    @abstractmethod
    def components(self) -> Components:
        """Weights, means, factors of the covariances and classes of the components, as arrays."""

    @reads_arguments
    def draw_features(self, n_samples: int, rng: SeedLike = None) -> Floats:
        """Return features ``(n_samples, n_features)`` of all classes together.

        Parameters
        ----------
        n_samples : int
            Number of observations.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness.

        Returns
        -------
        array of shape (n_samples, n_features)
            The features.
        """
        generator = validate_rng(rng)
        size = validate_count(n_samples, "n_samples")
        component = self._draw_components(size, generator)
        normal = generator.standard_normal((size, self.n_features))
        x = np.empty_like(normal)
        _, means, factors, _ = self.components
        for i, (mean, factor) in enumerate(zip(means, factors, strict=True)):
            rows = component == i  # a matrix for each observation would take much memory
            x[rows] = mean + normal[rows] @ factor
        return x

    def posterior(self, x: ArrayLike) -> Floats:
        r"""Return :math:`P(Y = \cdot \mid x)`, shape (n_samples, n_classes), at ``x (n_samples, n_features)``.

        Parameters
        ----------
        x : array of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples, n_classes)
            The probabilities of the classes, exact to rounding however small the densities are.

        Raises
        ------
        ValueError
            If ``x`` has another shape, or values that are not finite numbers.
        """
        from scipy.special import softmax

        return softmax(self._log_joint(x), axis=1)

    def density(self, x: ArrayLike) -> Floats:
        """Return the density of the features of all classes together, ``(n_samples,)``; see `posterior`."""
        from scipy.special import logsumexp

        constant = np.log(self.components.weights.max()) - self.n_features / 2 * np.log(2 * np.pi)
        return np.exp(logsumexp(self._log_joint(x), axis=1) + constant)

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return features, and the posteriors as predictions and as true probabilities."""
        x = self.draw_features(n_samples, rng)
        posterior = self.posterior(x)
        return Unlabelled(x, posterior, posterior)

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` themselves: the exact posterior is calibrated."""
        return self._validated(y_prob)

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        """Return 0: the exact posterior is calibrated through every lens."""
        return 0.0

    @property
    def seed_words(self) -> tuple[int, ...]:
        """Numbers that distinguish the random numbers of this mixture from those of others."""
        return tuple(np.frombuffer(sha256(repr(self).encode()).digest()[:16], dtype=np.uint32).tolist())

    def _draw_components(self, n_samples: int, rng: np.random.Generator) -> Integers:
        cumulative = np.cumsum(self.components.weights)
        return np.searchsorted(cumulative[:-1], rng.random(n_samples) * cumulative[-1], side="right")

    def _log_joint(self, x: ArrayLike) -> Floats:
        """Return log p(x, k) up to one constant, ``(n_samples, n_classes)``."""
        from scipy.special import logsumexp

        features = np.asarray(x, dtype=np.float64)
        must = f"`x` must have shape (n_samples, {self.n_features})"
        require(features.ndim == 2 and features.shape[1] == self.n_features, must, features.shape)
        _refuse_infinite(features, "x")
        weights, means, factors, classes = self.components
        # Relative to the largest weight, so that equal weights add nothing, not even a rounding error.
        share = np.log(weights / weights.max())
        log_joint = np.empty((len(features), self.n_classes))
        for k in range(self.n_classes):
            own = np.flatnonzero(classes == k)
            log_density = np.empty((len(features), len(own)))
            for column, i in enumerate(own):
                standard = np.linalg.solve(factors[i].T, (features - means[i]).T)
                log_density[:, column] = (
                    -np.square(standard).sum(axis=0) / 2 - np.linalg.slogdet(factors[i]).logabsdet + share[i]
                )
            log_joint[:, k] = logsumexp(log_density, axis=1) if len(own) > 1 else log_density[:, 0]
        return log_joint


class FeatureModel(Model):
    """A model whose field ``distribution`` is a mixture, and whose predictions are a function of its features."""

    distribution: Mixture

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """Number of classes: that of the distribution."""
        return self.distribution.n_classes

    @abstractmethod
    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return features, predictions and posteriors."""
        x = self.distribution.draw_features(n_samples, rng)
        return Unlabelled(x, self.predict(x), self.distribution.posterior(x))


def _mixture(distribution: Any, _: str) -> Mixture:
    """Refuse what is no mixture."""
    must = "`distribution` must be a GaussianMixture or a RandomMixture"
    require(isinstance(distribution, Mixture), must, distribution, right_type=False)
    return distribution


MIXTURE: Rule = {"check": _mixture}


@dataclass(frozen=True, repr=False)
class GaussianMixture(Mixture):
    r"""Gaussian mixture with any number of classes, components and features; predicts its exact posterior.

    .. math:: p(x, k) = \sum_{j : c_j = k} w_j \, \mathcal N(x; \nu_j, \Sigma_j), \qquad
              P(Y = k \mid x) = \frac{p(x, k)}{\sum_l p(x, l)}

    As a model it is calibrated. `BentPosterior`, `LogisticModel` and `TrainedClassifier` are miscalibrated models of
    its observations.

    Parameters
    ----------
    weights : sequence of float
        Probability :math:`w_j` of each component; positive, with sum 1.
    means : array of shape (n_components, n_features), or (n_components,) for one feature
        Mean :math:`\nu_j` of each component.
    covariances : array of shape (n_components, n_features, n_features), or (n_components,)
        Covariance matrix :math:`\Sigma_j` of each component; one number stands for so many times the identity matrix.
    classes : sequence of int
        Class :math:`c_j` of each component, from 0; every class has at least one component.

    Attributes
    ----------
    n_classes, n_features : int
        Numbers of classes and of features.

    Raises
    ------
    TypeError
        If a class is not an integer.
    ValueError
        If shapes disagree; if weights are not positive or do not sum to 1; if a covariance is not symmetric and
        positive definite; if a class between 0 and the largest has no component, or there is one class only.

    See Also
    --------
    RandomMixture : A mixture whose means and covariances are drawn at random.
    GaussianMixture1D : Logistic models of the one-dimensional mixture of Vaicenavicius et al. (2019).

    Notes
    -----
    Densities are computed on the scale of the logarithm from Cholesky factors, so that posteriors are exact to rounding
    with 50 features too. Models are equal if their numbers are, however they were written.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.1, has the
    mixture of the example.

    Examples
    --------
    >>> from caltest.simulation import GaussianMixture
    >>> mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> mixture
    GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> mixture.posterior([[0.0], [2.0]]).round(4)
    array([[0.5  , 0.5  ],
           [0.018, 0.982]])
    >>> x, y_true, y_prob = mixture.draw(100, rng=0)
    >>> x.shape, y_prob.shape
    ((100, 1), (100, 2))
    """

    weights: tuple[float, ...]
    means: tuple[Any, ...]
    covariances: tuple[Any, ...]
    classes: tuple[int, ...]
    n_classes: int = field(init=False, repr=False, compare=False, default=0)
    n_features: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        weights, means = read_numbers(self.weights, "weights"), read_numbers(self.means, "means")
        classes = _read_classes(self.classes)
        _refuse_weights(weights)
        means = means[:, None] if means.ndim == 1 else means
        if means.ndim != 2 or 0 in means.shape or not len(weights) == len(means) == len(classes):
            refuse(
                "`weights`, `means` and `classes` must have one entry for each component, and `means` shape "
                f"(n_components, n_features), got shapes {weights.shape}, {means.shape} and ({len(classes)},)."
            )
        covariances = _read_covariances(self.covariances, *means.shape)
        spherical = (covariances == covariances[:, :1, :1] * np.eye(means.shape[1])).all()
        self._keep(
            weights=nested(weights),
            means=nested(means[:, 0] if means.shape[1] == 1 else means),
            covariances=nested(covariances[:, 0, 0] if spherical else covariances),
            classes=classes,
            n_classes=max(classes) + 1,
            n_features=means.shape[1],
        )

    @classmethod
    def from_sklearn(cls, estimator: Any, classes: Sequence[int] | None = None) -> GaussianMixture:
        """Return the mixture that a fitted estimator of scikit-learn describes.

        Parameters
        ----------
        estimator : GaussianNB, QuadraticDiscriminantAnalysis or GaussianMixture of scikit-learn
            A fitted estimator. The posterior of the mixture is the ``predict_proba`` of the estimator, whose columns
            are in the order of its ``classes_``.
        classes : sequence of int, optional
            Class of each component of a `sklearn.mixture.GaussianMixture`; by default every component is a class.
            The other estimators have one component for each class.

        Returns
        -------
        GaussianMixture
            The mixture.

        Raises
        ------
        TypeError
            If ``estimator`` is none of these.
        ValueError
            If it is not fitted; if ``classes`` is given for a classifier; see also `GaussianMixture`.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> x, y = [[0.0], [2.0], [3.0], [5.0]], [0, 0, 1, 1]
        >>> GaussianMixture.from_sklearn(GaussianNB(var_smoothing=0).fit(x, y))
        GaussianMixture([0.5, 0.5], [1.0, 4.0], [1.0, 1.0], [0, 1])
        """
        parts: Any = read_components(estimator, classes)
        return cls(*parts)

    @cached_property
    def components(self) -> Components:
        """Weights, means, factors of the covariances and classes of the components, as arrays."""
        weights = np.asarray(self.weights)
        shape = len(weights), self.n_features
        covariances = _read_covariances(self.covariances, *shape)
        return Components(
            weights / weights.sum(),
            np.asarray(self.means).reshape(shape),
            np.asarray(np.linalg.cholesky(covariances).swapaxes(1, 2), dtype=np.float64),
            np.asarray(self.classes),
        )


def read_numbers(given: Any, name: str) -> Floats:
    """Return finite numbers as an array."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(f"`{name}` must hold numbers in rows of one length, got {given!r}.")
    _refuse_infinite(values, name)
    return values


def _refuse_infinite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        refuse(f"`{name}` must hold finite numbers, got {values[~np.isfinite(values)][0]}.")


def _refuse_weights(weights: Floats) -> None:
    if weights.ndim != 1 or not len(weights) or (weights <= 0).any():
        got = f"shape {weights.shape}" if weights.ndim != 1 or not len(weights) else f"{weights.min():g}"
        refuse(f"`weights` must be a sequence of positive numbers, one for each component, got {got}.")
    not_one = f"`weights` must sum to 1, got the sum {weights.sum():.9g}; divide them by it."
    refuse_if(abs(weights.sum() - 1) > _SUM_TOLERANCE, not_one)


def _read_classes(given: Any) -> tuple[int, ...]:
    try:
        classes = tuple(given)
    except TypeError:
        refuse(f"`classes` must be a sequence of class indices, one for each component, got {given!r}.", TypeError)
    found = tuple(int(validate_count(k, "classes", minimum=0)) for k in classes)
    empty = sorted(set(range(max(found, default=0) + 1)) - set(found))
    fault = f"none for class {empty[0]}" if empty else f"{len(set(found))} class"
    msg = f"`classes` must name at least two classes, 0, 1 and so on without a gap, got {fault}."
    refuse_if(empty or len(set(found)) < 2, msg)
    return found


def _read_covariances(given: Any, n_components: int, n_features: int) -> Floats:
    values = read_numbers(given, "covariances")
    matrices = values[:, None, None] * np.eye(n_features) if values.ndim == 1 else values
    shape = n_components, n_features, n_features
    must = f"`covariances` must have shape {shape}, or ({n_components},) for multiples of the identity matrix"
    require(matrices.shape == shape, must, values.shape)
    for i, matrix in enumerate(matrices):
        if np.abs(matrix - matrix.T).max() > _SYMMETRY_TOLERANCE * np.abs(matrix).max():
            refuse(f"`covariances` must be symmetric, that of component {i} differs from its transpose.")
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(matrix)[0]
            refuse(
                f"`covariances` must be positive definite, the smallest eigenvalue of component {i} is {smallest:.3g}; "
                "add a small multiple of the identity matrix."
            )
    return matrices


def nested(values: Floats) -> Any:
    """Return an array as nested tuples of numbers, which are hashable."""
    return tuple(map(nested, values)) if values.ndim else values.item()
