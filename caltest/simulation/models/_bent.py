"""Models that predict a bent posterior, and integrals over two features of a Gaussian mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._user_functions import apply_calibration_function, apply_distance, outcomes_of_classes
from caltest.predictions.inputs._validation import refuse_if
from caltest.simulation.models._base import BEND, Unlabelled
from caltest.simulation.models._exact import TOO_ROUGH, integrate, look
from caltest.simulation.models._gaussian_mixture import MIXTURE, Components, FeatureModel, Mixture
from caltest.simulation.models._level_sets import level_set_miscalibration, line_of
from caltest.simulation.models._maps import Identity, Map, inverse

_REACH = 8.0  # standard deviations of a component: 2e-15 of its mass lies beyond
_PANELS = 8  # of an axis before any is halved
_NARROW = 0.5  # other components below so many standard deviations get separate panels
_TOLERANCE = 1e-12  # of a square
_MOST_SQUARES = 2**17
_BLOCK = 2**11  # squares at a time
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_SQUARE = np.stack([np.repeat(_NODES, len(_NODES)), np.tile(_NODES, len(_NODES))], axis=-1)
_SQUARE_WEIGHTS = np.outer(_WEIGHTS, _WEIGHTS).ravel()

Plane = Callable[[Floats], Floats]


def plane_mean(function: Plane, components: Components) -> float:
    """Return the expectation of a function of two features under a mixture, to about 1e-9.

    Each component is integrated in coordinates in which it is standard normal, by halving squares until Gauss's rule
    agrees with its quarters; the function may have kinks.

    Parameters
    ----------
    function : callable
        Maps features ``(n, 2)`` to values ``(n,)``.
    components : Components
        The mixture.

    Raises
    ------
    ValueError
        If the function is too rough.
    """
    parts = zip(components.weights, components.means, components.factors, strict=True)
    return sum(float(weight) * _standard_mean(function, mean, factor, components) for weight, mean, factor in parts)


def _standard_mean(function: Plane, mean: Floats, factor: Floats, components: Components) -> float:
    def values(z: Floats) -> Floats:
        return np.exp(-np.square(z).sum(axis=1) / 2) / (2 * np.pi) * function(mean + z @ factor)

    def rule(corner: Floats, half: Floats) -> Floats:
        found = np.empty(len(corner))
        for start in range(0, len(corner), _BLOCK):
            part = slice(start, start + _BLOCK)
            z = (corner[part] + half[part])[:, None] + half[part][:, None] * _SQUARE
            inside = values(z.reshape(-1, 2)).reshape(z.shape[:2])
            found[part] = half[part].prod(axis=1) * (inside @ _SQUARE_WEIGHTS)
        return found

    axes = [_edges(axis, mean, factor, components) for axis in (0, 1)]
    low = np.stack([part.ravel() for part in np.meshgrid(axes[0][:-1], axes[1][:-1], indexing="ij")], axis=-1)
    half = np.stack([part.ravel() for part in np.meshgrid(*map(np.diff, axes), indexing="ij")], axis=-1) / 2
    total, whole = 0.0, rule(low, half)
    while len(low):
        refuse_if(len(low) > _MOST_SQUARES, TOO_ROUGH)
        corner = low[:, None] + half[:, None] * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        quarter = np.repeat(half / 2, 4, axis=0)
        fine = rule(corner.reshape(-1, 2), quarter).reshape(-1, 4)
        settled = np.abs(fine.sum(axis=1) - whole) <= _TOLERANCE
        total += float(fine[settled].sum())
        low, half = corner[~settled].reshape(-1, 2), quarter[np.repeat(~settled, 4)]
        whole = fine[~settled].ravel()
    return total


def _edges(axis: int, mean: Floats, factor: Floats, components: Components) -> Floats:
    """Return the edges of the first panels of an axis; they are denser where a narrow component might be missed."""
    edges = [np.linspace(-_REACH, _REACH, _PANELS + 1)]
    inverse = np.linalg.inv(factor)
    for other, its_factor in zip(components.means, components.factors, strict=True):
        place = ((other - mean) @ inverse)[axis]
        spread = np.linalg.norm((its_factor @ inverse)[:, axis])
        if spread < _NARROW:
            edges.append(place + spread * np.array([-6.0, -2.0, 0.0, 2.0, 6.0]))
    found = np.unique(np.concatenate(edges))
    return found[(found >= -_REACH) & (found <= _REACH)]


@dataclass(frozen=True, repr=False)
class BentPosterior(FeatureModel):
    r"""Model that predicts the exact posterior of a mixture, bent by a map.

    .. math:: g(x) = h(P(Y = \cdot \mid x))

    Here the map h leads from true class probabilities to predictions; as ``truth`` of a `DirichletModel` it leads from
    predictions to true probabilities. So ``BentPosterior(mixture, Temperature(2))`` predicts flatter probabilities than
    the true ones and is under-confident.

    Parameters
    ----------
    distribution : GaussianMixture or RandomMixture
        Where observations come from.
    bend : callable
        The map h, from true class probabilities ``(n_samples, n_classes)`` to predictions of the same shape: one of
        `caltest.simulation` or a function.

    Raises
    ------
    TypeError
        If ``distribution`` is no mixture or ``bend`` no function.
    ValueError
        When predictions are made, if ``bend`` does not return probabilities.

    See Also
    --------
    DirichletModel : A model whose calibration function is a map.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import BentPosterior, GaussianMixture, Temperature
    >>> mixture = GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1])
    >>> model = BentPosterior(mixture, Temperature(2.0))
    >>> round(model.expected_miscalibration(), 6)
    0.106056
    >>> x, y_true, y_prob = model.draw(5000, rng=0)
    >>> caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0).direction
    'not extreme enough'
    """

    distribution: Mixture = field(metadata=MIXTURE)
    bend: Map = field(metadata=BEND)

    def predict(self, x: ArrayLike) -> Floats:
        """Return the predictions ``(n_samples, n_classes)`` at features ``(n_samples, n_features)``."""
        return self._bent(self.distribution.posterior(x))

    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return features, bent posteriors and posteriors."""
        x, posterior, _ = self.distribution.draw_unlabelled(n_samples, rng)
        return Unlabelled(x, self._bent(posterior), posterior)

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        """Return true class probabilities: the inverse of the map, where it is known.

        It is known for `Identity`, `Shift`, `Temperature` with one temperature, and for `Move`, `LabelNoise` and
        `Favour` with a share below 1.

        Parameters
        ----------
        y_prob : array of shape (n_samples, n_classes)
            Predictions.

        Returns
        -------
        array of shape (n_samples, n_classes)
            True class probabilities.

        Raises
        ------
        NotImplementedError
            If the inverse is not known.
        """
        back = inverse(self.bend)
        return super().calibration_function(y_prob) if back is None else back(self._validated(y_prob))

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d` by quadrature, to 1e-8.

        With one feature it is known through every lens. With two features it is known where the lens shows the whole
        prediction and the inverse of the map is known; see `calibration_function`.

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
            If it is not known exactly; `estimate_miscalibration` estimates it.
        ValueError
            If map, lens or distance are too rough for quadrature.
        """
        n_features = self.distribution.n_features
        if isinstance(self.bend, Identity):
            return 0.0
        one_to_one = inverse(self.bend) is not None and self._shows_all(lens)
        if n_features == 1 and not one_to_one:
            line = line_of(self.distribution)
            return level_set_miscalibration(lens, distance, lambda t: self._bent(line.class_prob(t)), line)
        if n_features > 2 or not one_to_one:
            return super().expected_miscalibration(lens, distance)

        def distances(x: Floats) -> Floats:
            true = self.distribution.posterior(x)
            return apply_distance(distance, *look(lens, self._bent(true), true))

        if n_features == 2:
            return plane_mean(distances, self.distribution.components)
        line = line_of(self.distribution)
        return integrate(lambda t: line.density(t) * distances(t[:, None]), line.edges)

    def _bent(self, prob: Floats) -> Floats:
        return apply_calibration_function(self.bend, prob, "bend")

    def _shows_all(self, lens: LensLike | None) -> bool:
        """Return whether predictions that differ also differ through a lens."""
        if lens is None or isinstance(lens, Canonical):
            return True
        if self.n_classes > 2:
            return False
        table = outcomes_of_classes(lens, np.array([[0.25, 0.75], [0.75, 0.25]]))
        return bool((table[0] == table[-1]).all() and table[0, 0] != table[0, 1])
