"""The one-dimensional mixture of Vaicenavicius et al. (2019), and random mixtures with several modes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._validation import refuse_if
from caltest.simulation.models._base import CLASSES, COUNT, INDEX, NUMBER, POSITIVE, Model, Unlabelled
from caltest.simulation.models._exact import finite_miscalibration, path_miscalibration, two_classes
from caltest.simulation.models._gaussian_mixture import Components, Mixture

_REACH = 11.0  # of the features: less than 1e-22 of the mass lies beyond
_LARGEST_LOGIT = np.log(np.finfo(np.float64).max)  # beyond it one of the predictions is 0 in doubles


@dataclass(frozen=True, repr=False)
class GaussianMixture1D(Model):
    r"""Logistic model for two equally likely normal classes with means -1 and 1 and variance 1.

    .. math:: X \mid Y \sim \mathcal N(\pm 1, 1), \qquad g_0(x) = \frac1{1 + \exp(-(\beta_0 + \beta_1 x))}, \quad
              g_1 = 1 - g_0

    Class 0 is :math:`Y = -1`, whose probability is :math:`P(Y = -1 \mid x) = 1 / (1 + \exp(2x))`: the model
    (0, -2) is perfect, the constant (0, 0) is calibrated too, and no other is. The truth is exact for the model in real
    numbers; beyond :math:`|\beta_1| \approx 60` double precision rounds predictions to 0 and 1.

    Parameters
    ----------
    beta0, beta1 : float
        Intercept and slope of the logit of class 0.

    Raises
    ------
    ValueError
        If a parameter is not a finite number.

    See Also
    --------
    caltest.simulation.LogisticModel : Any logistic model of a mixture.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 5.1.

    Examples
    --------
    The uncalibrated model of the paper, as a whole and through the confidence:

    >>> import caltest
    >>> model = caltest.simulation.GaussianMixture1D(1, 1)
    >>> round(model.expected_miscalibration(), 10)
    0.5637511406
    >>> round(model.expected_miscalibration(lens=caltest.Confidence()), 6)
    0.500346

    An estimate from a sample: it is smaller, because a cell in which the deviation changes its sign averages over it:

    >>> x, y_true, y_prob = model.draw(1000, rng=0)
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.ECE(caltest.EqualWidth(10))), 2)
    0.53
    """

    beta0: float = field(default=0.0, metadata=NUMBER)
    beta1: float = field(default=-2.0, metadata=NUMBER)

    n_classes = 2

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return features, predictions and posteriors."""
        x = rng.standard_normal(n_samples) + (2.0 * rng.integers(2, size=n_samples) - 1.0)
        return Unlabelled(x, self.predict(x), self.posterior(x))

    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, 2)`` at features ``x (n_samples,)``."""
        return two_classes(self.beta0 + self.beta1 * np.asarray(x, dtype=np.float64))

    def posterior(self, x: ArrayLike) -> Floats:
        r"""Return :math:`P(Y = \cdot \mid x)`, shape (n_samples, 2), at features ``x (n_samples,)``."""
        return two_classes(-2.0 * np.asarray(x, dtype=np.float64))

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        r"""Return :math:`r(\mu) = P(Y = \cdot \mid g(X) = \mu)`, shape (n_samples, 2).

        For :math:`\beta_1 \ne 0` this is the posterior at the only feature with this prediction; a prediction of
        exactly 0 or 1 stands for all features whose predictions double precision cannot represent. For
        :math:`\beta_1 = 0` it is one half.

        Parameters
        ----------
        y_prob : array of shape (n_samples, 2)
            Predictions.

        Returns
        -------
        array of shape (n_samples, 2)
            True class probabilities.
        """
        from scipy.special import log_ndtr

        prob = self._validated(y_prob)
        if self.beta1 == 0:
            return np.full(prob.shape, 0.5)
        with np.errstate(divide="ignore"):
            logit = np.log(prob[:, 0]) - np.log(prob[:, 1])
        x = (np.clip(logit, -_LARGEST_LOGIT, _LARGEST_LOGIT) - self.beta0) / self.beta1
        side = np.sign(logit) * np.sign(self.beta1)  # all features beyond x lie above or below it
        beyond = log_ndtr(-side * (x + 1)) - log_ndtr(-side * (x - 1))
        return two_classes(np.where(np.isinf(logit), beyond, -2.0 * x))

    def density(self, prob: ArrayLike) -> Floats:
        r"""Return the density of :math:`g_0(X)` at ``prob (n_samples,)``, strictly between 0 and 1.

        Raises
        ------
        ValueError
            If the model is constant, which has no density.
        """
        refuse_if(self.beta1 == 0, f"the predictions of {self} are constant and have no density.")
        value = np.asarray(prob, dtype=np.float64)
        x = (np.log(value) - np.log1p(-value) - self.beta0) / self.beta1
        return _feature_density(x) / (np.abs(self.beta1) * value * (1 - value))

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d` through a lens by quadrature, to about 1e-12.

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
        """
        if self.beta1 == 0:
            return finite_miscalibration(self.predict([0.0]), np.array([[0.5, 0.5]]), lens, distance)
        return path_miscalibration(
            lens,
            distance,
            y_prob=self.predict,
            class_prob=self.posterior,
            density=_feature_density,
            centre=-self.beta0 / self.beta1,
            limits=(-_REACH, _REACH),
        )


def _feature_density(x: Floats) -> Floats:
    return np.exp(-np.square(x - 1) / 2) / np.sqrt(8 * np.pi) + np.exp(-np.square(x + 1) / 2) / np.sqrt(8 * np.pi)


@dataclass(frozen=True, repr=False)
class RandomMixture(Mixture):
    r"""Mixture of Gaussian modes whose means and covariances are drawn at random from a seed.

    As a model it predicts its exact posterior.

    .. math:: P(Y = k) = \frac1m, \qquad X \mid Y = k \sim \frac1J \sum_{j=1}^J \mathcal N(\nu_{kj}, A_{kj}^\top A_{kj})

    with every entry of a mean :math:`\nu` uniform on [-mean_radius, mean_radius] and every entry of a square matrix A
    uniform on [-matrix_radius, matrix_radius].

    Parameters
    ----------
    n_classes, n_features : int
        Numbers of classes (at least 2) and of features.
    seed : int
        Seed of means and covariances.
    n_modes : int
        Number J of modes of each class.
    mean_radius, matrix_radius : float
        Half the width of the uniform distributions.

    Raises
    ------
    ValueError
        If ``n_classes`` < 2, ``n_features`` < 1, ``seed`` < 0 or ``n_modes`` < 1; if a radius is not positive.

    See Also
    --------
    caltest.simulation.GaussianMixture : A mixture whose parameters are given.
    caltest.simulation.TrainedClassifier : A model that is trained on such data.

    Notes
    -----
    The numbers are those of the authors' code, github.com/euranova/estimating_eces: radii 1 and 0.3, 4 equally likely
    modes, 2, 5 or 7 classes and as many features. The available copy of the paper does not show them.

    References
    ----------
    N. Posocco, A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 5.1.

    Examples
    --------
    >>> from caltest.simulation import RandomMixture
    >>> mixture = RandomMixture(n_classes=2, n_features=5, seed=0)
    >>> x = mixture.draw_features(1000, rng=1)
    >>> x.shape, mixture.posterior(x).shape
    ((1000, 5), (1000, 2))
    """

    n_classes: int = field(metadata=CLASSES)
    n_features: int = field(metadata=COUNT)
    seed: int = field(metadata=INDEX)
    n_modes: int = field(default=4, metadata=COUNT)
    mean_radius: float = field(default=1.0, metadata=POSITIVE)
    matrix_radius: float = field(default=0.3, metadata=POSITIVE)

    @cached_property
    def means(self) -> Floats:
        """Mean of every mode, ``(n_classes, n_modes, n_features)``."""
        return self._parameters[0]

    @cached_property
    def matrices(self) -> Floats:
        """The matrices A of the covariances A'A, ``(n_classes, n_modes, n_features, n_features)``."""
        return self._parameters[1]

    @cached_property
    def components(self) -> Components:
        """Weights, means, factors of the covariances and classes of the components, as arrays."""
        n, d = self.n_classes * self.n_modes, self.n_features
        classes = np.repeat(np.arange(self.n_classes), self.n_modes)
        return Components(np.full(n, 1 / n), self.means.reshape(n, d), self.matrices.reshape(n, d, d), classes)

    @property
    def seed_words(self) -> tuple[int, ...]:
        """Numbers that distinguish the random numbers of this mixture from those of others."""
        return (self.seed,)

    def _draw_components(self, n_samples: int, rng: np.random.Generator) -> Integers:
        return rng.integers(self.n_classes * self.n_modes, size=n_samples)

    @cached_property
    def _parameters(self) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(self.seed)
        shape = (self.n_classes, self.n_modes, self.n_features)
        means = rng.uniform(-self.mean_radius, self.mean_radius, size=shape)
        matrices = rng.uniform(-self.matrix_radius, self.matrix_radius, size=(*shape, self.n_features))
        return means, matrices


def posocco_mixtures() -> tuple[RandomMixture, ...]:
    """Return the 45 distributions of Posocco and Bonnefoy (2021): 2, 5 or 7 classes, as many features, 5 seeds each.

    They are drawn in the same way as those of the authors, from another random generator.

    Returns
    -------
    tuple of RandomMixture
        The distributions.

    See Also
    --------
    caltest.simulation.RandomMixture : What it returns.

    Examples
    --------
    >>> from caltest.simulation import posocco_mixtures
    >>> mixtures = posocco_mixtures()
    >>> len(mixtures), str(mixtures[-1])
    (45, 'RandomMixture(7, 7, 4)')
    """
    return tuple(RandomMixture(*numbers) for numbers in product((2, 5, 7), (2, 5, 7), range(5)))
