r"""The base class of models with known truth: data sets of any size, and what an estimate should find.

A model draws features, predictions :math:`g(X)` and classes Y; its calibration function
:math:`r(\mu) = P(Y = \cdot \mid g(X) = \mu)` and its expected miscalibration
:math:`\eta_d = \mathbb E\, d(r(g(X)), g(X))` (Vaicenavicius et al. 2019, equation 5), also through a lens, are known
exactly or, where that is impossible, estimated with a standard error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import (
    SeedLike,
    require,
    validate_count,
    validate_number,
    validate_positive,
    validate_prob,
    validate_rng,
)
from caltest.results._naming import Specification
from caltest.simulation.models._exact import (
    FOLDS,
    MiscalibrationEstimate,
    level_set_estimate,
    look,
    mean_distance_estimate,
)

_BLOCK_SIZE = 2**16


def _one_or_several(value: Any, name: str) -> float | tuple[float, ...]:
    """Return a positive number, or a tuple of them."""
    return tuple(validate_positive(one, name) for one in value) if np.ndim(value) else validate_positive(value, name)


def _map(value: Any, name: str, of: str = "predictions") -> Any:
    must = f"`{name}` must be a map such as Temperature(1.2) or a function of {of}"
    require(callable(value) and not isinstance(value, type), must, value, right_type=False)
    return value


Rule = dict[str, Callable[[Any, str], Any]]
"""What a parameter is allowed to be, as the metadata of its field; see `caltest.results._naming.parameter`."""

COUNT: Rule = {"check": validate_count}
CLASSES: Rule = {"check": partial(validate_count, minimum=2)}
INDEX: Rule = {"check": partial(validate_count, minimum=0)}
NUMBER: Rule = {"check": validate_number}
SHARE: Rule = {"check": partial(validate_number, low=0, high=1)}
POSITIVE: Rule = {"check": validate_positive}
POSITIVES: Rule = {"check": _one_or_several}
MAP: Rule = {"check": _map}
BEND: Rule = {"check": partial(_map, of="probabilities")}


class Draw(NamedTuple):
    """Data of a model: features ``x (n_samples, ...)``, classes ``y_true (n_samples,)``, ``y_prob (n_samples, k)``.

    See Also
    --------
    Model : Its method ``draw`` returns it.

    Examples
    --------
    >>> from caltest.simulation import DirichletModel
    >>> data = DirichletModel(3).draw(5, rng=0)
    >>> data.y_true.shape, data.y_prob.shape
    ((5,), (5, 3))
    """

    x: NDArray[Any]
    y_true: Integers
    y_prob: Floats


class Unlabelled(NamedTuple):
    r"""Observations before their labels are drawn: features ``x``, predictions ``y_prob`` and true probabilities.

    ``class_prob (n_samples, n_classes)`` are the probabilities :math:`P(Y = \cdot \mid X = x)`; the calibration
    function is their mean over observations with equal predictions.

    See Also
    --------
    Model : Its method ``draw_unlabelled`` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.simulation import DirichletModel
    >>> data = DirichletModel(3).draw_unlabelled(5, np.random.default_rng(0))
    >>> bool((data.y_prob == data.class_prob).all())
    True
    """

    x: NDArray[Any]
    y_prob: Floats
    class_prob: Floats


class Model(Specification, ABC):
    """A model whose calibration is known.

    A subclass is a frozen dataclass, hashable and picklable, whose fields name it; it defines `n_classes` and
    `draw_unlabelled`, and overrides `calibration_function` and `expected_miscalibration` where they are known.

    Attributes
    ----------
    n_classes : int
        Number of classes.

    See Also
    --------
    DirichletModel : A model whose calibration function is a map.

    Examples
    --------
    >>> from caltest.simulation import DirichletModel
    >>> isinstance(DirichletModel(3), Model), DirichletModel(3).n_classes, DirichletModel(3).expected_miscalibration()
    (True, 3, 0.0)
    """

    n_classes: int

    @abstractmethod
    def draw_unlabelled(self, n_samples: int, rng: np.random.Generator) -> Unlabelled:
        """Return ``n_samples`` independent observations without labels: features, predictions, true probabilities."""

    @reads_arguments
    def draw(self, n_samples: int, rng: SeedLike = None) -> Draw:
        """Draw a data set of independent observations.

        Parameters
        ----------
        n_samples : int
            Number of observations.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness.

        Returns
        -------
        Draw
            Unpacks as ``x, y_true, y_prob``.
        """
        generator = validate_rng(rng)
        x, y_prob, class_prob = self.draw_unlabelled(validate_count(n_samples, "n_samples"), generator)
        return Draw(x, draw_classes(class_prob, generator), y_prob)

    def calibration_function(self, y_prob: ArrayLike) -> Floats:
        r"""Return :math:`r(\mu) = P(Y = \cdot \mid g(X) = \mu)` of whole predictions.

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
            If the model does not know it.
        """
        msg = f"the calibration function of this {type(self).__name__} is not known; see `estimate_miscalibration`."
        raise NotImplementedError(msg)

    def deviation(self, y_prob: ArrayLike) -> Floats:
        r"""Return :math:`r(\mu) - \mu`, shape (n_samples, n_classes); see `calibration_function`."""
        prob = self._validated(y_prob)
        return self.calibration_function(prob) - prob

    def expected_miscalibration(self, lens: LensLike | None = None, distance: Distance = total_variation) -> float:
        r"""Return :math:`\eta_d`, the expected distance between prediction and truth through a lens, exactly.

        Parameters
        ----------
        lens : lens or callable, optional
            What to look at; the whole prediction by default.
        distance : callable
            A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.

        Returns
        -------
        float
            The expected miscalibration.

        Raises
        ------
        NotImplementedError
            If the model does not know it exactly.
        """
        kind = type(self).__name__
        msg = (
            f"the miscalibration of this {kind} is not known exactly through this lens; see `estimate_miscalibration`."
        )
        raise NotImplementedError(msg)

    @reads_arguments
    def estimate_miscalibration(
        self,
        lens: LensLike | None = None,
        distance: Distance = total_variation,
        *,
        n_samples: int = 1_000_000,
        rng: SeedLike = None,
    ) -> MiscalibrationEstimate:
        r"""Estimate :math:`\eta_d` through a lens by simulation, for models that do not know it exactly.

        Where the calibration function is known and the lens shows the whole prediction, the estimate is the mean
        distance of simulated predictions. Otherwise true class probabilities are averaged over observations of equal
        induced predictions, or, where these hardly repeat, over n_samples ** (1 / 3) cells (bins) of equal mass; no
        labels are drawn.

        Parameters
        ----------
        lens : lens or callable, optional
            What to look at; the whole prediction by default.
        distance : callable
            A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.
        n_samples : int
            Number of simulated observations, at least 20.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of randomness.

        Returns
        -------
        MiscalibrationEstimate
            Unpacks as ``value, standard_error``; names its target and the bias that remains.

        Raises
        ------
        NotImplementedError
            If the lens has more than two outcomes, the calibration function is not known and predictions hardly
            repeat.
        ValueError
            If ``n_samples`` < 20.
        """
        whole = lens is None or isinstance(lens, Canonical)
        predicted, true = [], []
        for rows in self.draw_blocks(n_samples, validate_rng(rng)):
            class_prob = rows.class_prob
            if whole:
                try:
                    class_prob = self.calibration_function(rows.y_prob)
                except NotImplementedError:
                    whole = False
            induced = look(lens, rows.y_prob, class_prob)
            predicted.append(induced[0])
            true.append(induced[1])
        if whole:
            return mean_distance_estimate(np.concatenate(predicted), np.concatenate(true), distance)
        return level_set_estimate(np.concatenate(predicted), np.concatenate(true), lens, distance)

    def draw_blocks(self, n_samples: int, rng: np.random.Generator) -> Iterator[Unlabelled]:
        """Yield ``n_samples`` observations, at least 20, in blocks, so that temporary arrays take little memory."""
        left = validate_count(n_samples, "n_samples", minimum=FOLDS)
        while left:
            yield self.draw_unlabelled(min(left, _BLOCK_SIZE), rng)
            left -= min(left, _BLOCK_SIZE)

    def draw_many(self, n_samples: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
        """Return predictions, true probabilities and labels of many observations, which are drawn in blocks."""
        blocks = self.draw_blocks(n_samples, rng)
        parts = [(rows.y_prob, rows.class_prob, draw_classes(rows.class_prob, rng)) for rows in blocks]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _validated(self, y_prob: ArrayLike) -> Floats:
        prob = validate_prob(y_prob)
        must = f"`y_prob` must have {self.n_classes} columns, one per class of the model"
        require(prob.shape[1] == self.n_classes, must, prob.shape[1])
        return prob


def draw_classes(class_prob: Floats, rng: np.random.Generator) -> Integers:
    """Return classes ``(n_samples,)`` by the inverse distribution function, one uniform number per observation."""
    if class_prob.shape[1] == 2:  # the same numbers without a sum along a short axis, which is slow
        first = class_prob[:, 0]
        return (rng.random(len(class_prob)) * (first + class_prob[:, 1]) >= first).astype(np.int64)
    cumulative = np.cumsum(class_prob, axis=1)
    uniform = rng.random(len(class_prob)) * cumulative[:, -1]
    return (uniform[:, None] >= cumulative[:, :-1]).sum(axis=1)
