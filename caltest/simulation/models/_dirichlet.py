"""Models without features: predictions are drawn, and a known map gives the true class probabilities."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, squared_euclidean, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import apply_calibration_function
from caltest.predictions.inputs._validation import divided_by_sums, require, validate_prob
from caltest.results._naming import describe
from caltest.simulation.models._base import CLASSES, MAP, POSITIVES, Model, Unlabelled
from caltest.simulation.models._exact import finite_miscalibration, integrate, path_miscalibration, two_classes
from caltest.simulation.models._maps import Identity, Map

_CALIBRATED = Identity()
_NEGLIGIBLE = 1e-18
_SUMS_OVER_CLASSES: dict[Distance, Callable[[Floats], Floats]] = {
    total_variation: lambda gap: 0.5 * np.abs(gap),
    squared_euclidean: np.square,
}
"""Distances that are sums over classes, and the term of each class."""


class MappedModel(Model):
    """A model whose predictions have a known distribution and whose calibration function is its field ``truth``."""

    truth: Map

    @abstractmethod
    def draw_predictions(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
        """Return features and predictions of independent observations."""

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return features, predictions and true class probabilities."""
        x, y_prob = self.draw_predictions(n_samples, rng)
        return Unlabelled(x, y_prob, apply_calibration_function(self.truth, y_prob, "truth"))

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        """Return true class probabilities at predictions ``(n_samples, n_classes)``, an array of the same shape."""
        return apply_calibration_function(self.truth, self._validated(y_prob), "truth")


@dataclass(frozen=True, repr=False)
class DirichletModel(MappedModel):
    r"""Model whose predictions have a Dirichlet distribution and whose calibration function is a known map.

    .. math:: g(X) \sim \mathrm{Dir}(\alpha_1, \dots, \alpha_m), \qquad Y \mid g(X) = \mu \sim r(\mu)

    The smaller the concentration, the sharper the predictions; with 1 they are uniform on the simplex. The models M1,
    M2 and M3 of Widmann et al. (2019) are ``DirichletModel(10, 0.1)``, ``DirichletModel(10, 0.1, Favour(0, 0.5))`` and
    ``DirichletModel(10, 0.1, LabelNoise(1))``; the alternatives of T-Cal are ``DirichletModel(2, 1.0, Bumps(m))``.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    concentration : float or sequence of float
        Positive; one number for all classes, or one for each.
    truth : callable
        The calibration function r, from predictions ``(n_samples, n_classes)`` to true class probabilities; see
        `caltest.simulation` for those with a name. A calibrated model by default.

    Raises
    ------
    TypeError
        If ``truth`` is not a function.
    ValueError
        If there are fewer than two classes, or a concentration is not positive.

    See Also
    --------
    caltest.simulation.ResampledPredictions : The same for predictions of a real model.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS, section 7.

    Examples
    --------
    Half of all observations belong to the first of ten classes: the total variation distance is 0.5 * 9 / 10.

    >>> from caltest.simulation import DirichletModel, Favour, Temperature
    >>> model = DirichletModel(10, 0.1, Favour(0, 0.5))
    >>> round(model.expected_miscalibration(), 9)
    0.45
    >>> x, y_true, y_prob = model.draw(500, rng=0)
    >>> y_prob.shape, round(float((y_true == 0).mean()), 1)
    ((500, 10), 0.6)

    A family of over-confident models, for a power curve:

    >>> [round(DirichletModel(2, truth=Temperature(t)).expected_miscalibration(), 4) for t in (1.0, 1.1, 1.5)]
    [0.0, 0.0141, 0.0587]
    """

    n_classes: int = field(metadata=CLASSES)
    concentration: float | tuple[float, ...] = field(default=1.0, metadata=POSITIVES)
    truth: Map = field(default=_CALIBRATED, metadata=MAP)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.concentration, tuple):
            must = f"`concentration` must be one number or {self.n_classes}, one for each class"
            require(len(self.concentration) == self.n_classes, must, len(self.concentration))

    @property
    def alpha(self) -> Floats:
        """Concentration of every class, ``(n_classes,)``."""
        return np.broadcast_to(np.asarray(self.concentration, dtype=np.float64), self.n_classes)

    def draw_predictions(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
        """Return predictions twice: they are the features too."""
        y_prob = rng.dirichlet(self.alpha, n_samples)
        return y_prob, y_prob

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d` through a lens by quadrature, to about 1e-11 for concentrations up to 1,000.

        It is known for two classes. For more classes it is known for the whole prediction only, in total variation or
        squared Euclidean distance, if the true probability of each class depends on its own predicted probability
        alone (`Identity`, `LabelNoise`, `Favour`). Otherwise see `estimate_miscalibration`.

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
            If it is not known exactly.
        """
        if isinstance(self.truth, Identity):
            return 0.0
        if self.n_classes == 2:
            return path_miscalibration(
                lens,
                distance,
                y_prob=two_classes,
                class_prob=lambda logit: self.calibration_function(two_classes(logit)),
                density=_logit_density(*self.alpha),
                centre=0.0,
                limits=_logit_limits(*self.alpha),
            )
        whole = lens is None or isinstance(lens, Canonical)
        if whole and distance in _SUMS_OVER_CLASSES and getattr(self.truth, "class_by_class", False):
            return sum(self._of_class(k, distance) for k in range(self.n_classes))
        return super().expected_miscalibration(lens, distance)

    def _of_class(self, k: int, distance: Distance) -> float:
        """Return what one class adds to a distance: its probability is beta distributed, its truth a function of it."""
        own, others = self.alpha[k], self.alpha.sum() - self.alpha[k]
        density = _logit_density(own, others)

        def contribution(logit: Floats) -> Floats:
            predicted, rest = two_classes(logit).T
            prob = np.repeat(rest[:, None] / (self.n_classes - 1), self.n_classes, axis=1)
            prob[:, k] = predicted
            return density(logit) * _SUMS_OVER_CLASSES[distance](self.truth(prob)[:, k] - predicted)

        return integrate(contribution, _logit_limits(own, others))


@dataclass(frozen=True, repr=False)
class ResampledPredictions(MappedModel):
    r"""Model that draws from given predictions, such as those of a network, with a known calibration function.

    There are finitely many predictions, so that the expected miscalibration is a sum, which is exact through every
    lens. Predictions that differ by no more than rounding through a lens count as equal.

    Parameters
    ----------
    y_prob : array of shape (n_predictions, n_classes)
        The predictions, drawn with replacement; each is divided by its sum, unless it is 1 up to rounding.
    truth : callable
        The calibration function, from predictions to true class probabilities; a calibrated model by default.
    name : str
        What the predictions are called in print.

    Attributes
    ----------
    digest : str
        Fingerprint of the predictions: models of equal predictions, truth and name are equal.
    n_classes : int
        Number of classes.

    Raises
    ------
    TypeError
        If ``truth`` is not a function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1.

    See Also
    --------
    caltest.simulation.DirichletModel : The same for predictions from a distribution.

    Examples
    --------
    Example 1 of Vaicenavicius et al. (2019): calibrated in the confidence, not as a whole.

    >>> import caltest
    >>> from itertools import permutations
    >>> from caltest.simulation import Permutation, ResampledPredictions
    >>> model = ResampledPredictions(list(permutations([0.1, 0.3, 0.6])), Permutation(), name="example 1")
    >>> round(model.expected_miscalibration(), 9)
    0.1
    >>> round(model.expected_miscalibration(lens=caltest.Confidence()), 9)
    0.0

    An over-confident network with ten classes:

    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> model = ResampledPredictions(y_prob, caltest.simulation.Temperature(1.2), name="vgg16")
    >>> round(model.expected_miscalibration(), 4)
    0.0062
    """

    y_prob: Floats = field(repr=False, compare=False)
    truth: Map = field(default=_CALIBRATED, metadata=MAP)
    name: str = ""
    digest: str = field(init=False, default="")
    n_classes: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        prob = divided_by_sums(validate_prob(self.y_prob))
        prob.flags.writeable = False
        digest = hashlib.sha256(prob.tobytes()).hexdigest()[:8]
        self._keep(y_prob=prob, n_classes=prob.shape[1], digest=digest)

    def __repr__(self) -> str:
        rows, columns = self.y_prob.shape
        options = [f"truth={describe(self.truth)}"] if self.truth != _CALIBRATED else []
        options += [f"name={self.name!r}"] if self.name else []
        return f"ResampledPredictions({', '.join([f'<{rows} x {columns} array {self.digest}>', *options])})"

    def draw_predictions(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray[Any], Floats]:
        """Return the numbers of the drawn predictions and the predictions."""
        row = rng.integers(len(self.y_prob), size=n_samples)
        return row, self.y_prob[row]

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d` through a lens: a mean over the predictions, exact through every lens.

        The truth is averaged over predictions that are equal through the lens.

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
        return finite_miscalibration(self.y_prob, self.calibration_function(self.y_prob), lens, distance)


def _logit_density(a: float, b: float) -> Any:
    """Return the density of the logit of a Beta(a, b) variable: smooth and light-tailed where its own is singular."""
    from scipy.special import betaln

    def density(logit: Floats) -> Floats:
        return np.exp(-a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit) - betaln(a, b))

    return density


def _logit_limits(a: float, b: float) -> tuple[float, float]:
    """Return the ends beyond which the logit of a Beta(a, b) variable has negligible mass."""
    return _lower_limit(a, b), -_lower_limit(b, a)


def _lower_limit(a: float, b: float) -> float:
    from scipy.special import betaincinv

    quantile = float(betaincinv(a, b, _NEGLIGIBLE))
    if quantile > 1e-290:
        return float(np.log(quantile) - np.log1p(-quantile))
    return float(np.log(_NEGLIGIBLE) / a)  # where doubles end, a is small and P(p < q) about q^a
