"""Known calibration functions: maps from predictions to true class probabilities, and their inverses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import divided_by_sums, refuse_if
from caltest.results._naming import Specification
from caltest.simulation.models._base import COUNT, INDEX, NUMBER, POSITIVE, POSITIVES, SHARE

Probabilities = Floats
Map = Callable[[Probabilities], Probabilities]


class _KnownMap(Specification, ABC):
    """A map of the package."""

    class_by_class: ClassVar[bool] = False
    """Whether the true probability of a class depends on its predicted one only."""

    @abstractmethod
    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""

    def _inverse(self) -> Map | None:
        """Return the inverse, None where there is none or it is not known."""
        return None


@dataclass(frozen=True, repr=False)
class Identity(_KnownMap):
    r"""The map of a calibrated model, :math:`r(\mu) = \mu`.

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    Examples
    --------
    >>> import numpy as np
    >>> Identity()(np.array([[0.25, 0.75]]))
    array([[0.25, 0.75]])
    """

    class_by_class: ClassVar[bool] = True

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        return prob

    def _inverse(self) -> Map:
        """Return the map itself."""
        return self


@dataclass(frozen=True, repr=False)
class Temperature(_KnownMap):
    r"""The map of an over- or under-confident model, which temperature scaling with t would recalibrate.

    .. math:: r_k(\mu) \propto \mu_k^{1 / t_k}, \qquad \text{for one } t \text{ the softmax of } (\log \mu) / t

    For t > 1 the true probabilities are flatter than predicted and the model is over-confident; for t < 1 it is
    under-confident. With one temperature for each class, some classes may be predicted over-confidently and others
    under-confidently.

    Parameters
    ----------
    t : float or sequence of float
        Positive; one number, or one for each class.

    Raises
    ------
    ValueError
        If a temperature is not a positive, finite number; when applied, if their number is not that of the classes.

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> Temperature(2.0)(np.array([[0.1, 0.9]])).round(6)
    array([[0.25, 0.75]])
    >>> half_sharp = Temperature((1.25, 1.25, 0.8, 0.8))
    """

    t: float | tuple[float, ...] = field(metadata=POSITIVES)

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        if isinstance(self.t, tuple) and len(self.t) != prob.shape[1]:
            refuse(f"`t` must hold one temperature or {prob.shape[1]}, one for each class, got {len(self.t)}.")
        return divided_by_sums(prob ** (1 / np.asarray(self.t)))

    def _inverse(self) -> Map | None:
        """Return the map with the inverse temperature; of different temperatures it is not known.

        Weights mu ** t are known up to one factor, which the classes raise to different powers.
        """
        if not isinstance(self.t, tuple):
            return Temperature(1 / self.t)
        return Temperature(tuple(1 / one for one in self.t)) if len(set(self.t)) == 1 else None


@dataclass(frozen=True, repr=False)
class Shift(_KnownMap):
    r"""The map of a model whose log odds of one class are wrong by a constant.

    .. math:: r_k(\mu) \propto \mu_k e^{\text{logits}}, \qquad r_j(\mu) \propto \mu_j \text{ for } j \ne k

    Parameters
    ----------
    k : int
        Class index, from 0.
    logits : float
        Added to the predicted log odds of class k; if negative, the class is rarer than predicted.

    Raises
    ------
    ValueError
        If ``k`` is not a class index, or ``logits`` not a finite number.

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    Examples
    --------
    >>> import numpy as np
    >>> Shift(0, np.log(3.0))(np.array([[0.5, 0.5]])).round(6)
    array([[0.75, 0.25]])
    """

    k: int = field(metadata=INDEX)
    logits: float = field(metadata=NUMBER)

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        _require_class(self.k, "k", prob.shape[1])
        # Weights of at most 1: large logits would overflow.
        weight = np.full(prob.shape[1], np.exp(min(-self.logits, 0.0)))
        weight[self.k] = np.exp(min(self.logits, 0.0))
        return divided_by_sums(prob * weight)

    def _inverse(self) -> Map:
        """Return the opposite shift."""
        return Shift(self.k, -self.logits)


@dataclass(frozen=True, repr=False)
class Move(_KnownMap):
    r"""The map that moves a share of one class to another: :math:`r_s = (1 - a) \mu_s, \; r_t = \mu_t + a \mu_s`.

    Parameters
    ----------
    source, target : int
        Two class indices, from 0.
    share : float
        The share a, from 0 to 1.

    Raises
    ------
    ValueError
        If the classes are not two different class indices, or the share is not in [0, 1].

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    Examples
    --------
    >>> import numpy as np
    >>> Move(0, 2, 0.5)(np.array([[0.5, 0.25, 0.25]]))
    array([[0.25, 0.25, 0.5 ]])
    """

    source: int = field(metadata=INDEX)
    target: int = field(metadata=INDEX)
    share: float = field(metadata=SHARE)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_if(self.source == self.target, f"`source` and `target` must be two classes, got {self.source} twice.")

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        _require_class(self.source, "source", prob.shape[1])
        _require_class(self.target, "target", prob.shape[1])
        return self._moved(prob, self.share * prob[:, self.source])

    def _inverse(self) -> Map | None:
        """Return the map that moves the share back."""
        return self._back if self.share < 1 else None

    def _back(self, prob: Probabilities) -> Probabilities:
        return _clipped(self._moved(prob, -(prob[:, self.source] * self.share / (1 - self.share))))

    def _moved(self, prob: Probabilities, amount: Probabilities) -> Probabilities:
        moved = prob.copy()
        moved[:, self.source] -= amount
        moved[:, self.target] += amount
        return moved


class _Mixed(_KnownMap):
    """A share of all labels is drawn with probabilities that do not depend on the prediction."""

    share: float
    class_by_class: ClassVar[bool] = True

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        return (1 - self.share) * prob + self._drawn(prob.shape[1])

    def _inverse(self) -> Map | None:
        """Return the map that takes these labels away."""
        return self._back if self.share < 1 else None

    def _back(self, prob: Probabilities) -> Probabilities:
        return _clipped((prob - self._drawn(prob.shape[1])) / (1 - self.share))

    @abstractmethod
    def _drawn(self, n_classes: int) -> Any:
        """Return the share that each class gets."""


@dataclass(frozen=True, repr=False)
class LabelNoise(_Mixed):
    r"""The map of random label noise: :math:`r(\mu) = (1 - a) \mu + a / m`, with m classes.

    This is "all classes miscalibrated" of Widmann et al. (2019); with share 1 it is their model M3.

    Parameters
    ----------
    share : float
        The share a of labels that are drawn uniformly from all classes, from 0 to 1.

    Raises
    ------
    ValueError
        If the share is not in [0, 1].

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS, section 7 and their code, github.com/devmotion/CalibrationPaper.

    Examples
    --------
    >>> import numpy as np
    >>> LabelNoise(0.5)(np.array([[0.0, 1.0]]))
    array([[0.25, 0.75]])
    """

    share: float = field(metadata=SHARE)

    def _drawn(self, n_classes: int) -> float:
        return self.share / n_classes


@dataclass(frozen=True, repr=False)
class Favour(_Mixed):
    r"""The map that assigns a share of all observations to one class: :math:`r(\mu) = (1 - a) \mu + a \, e_k`.

    This is "only the first class" of Widmann et al. (2019); with k = 0 and share 0.5 it is their model M2.

    Parameters
    ----------
    k : int
        Class index, from 0.
    share : float
        The share a, from 0 to 1.

    Raises
    ------
    ValueError
        If ``k`` is not a class index, or the share is not in [0, 1].

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> Favour(0, 0.5)(np.array([[0.25, 0.75]]))
    array([[0.625, 0.375]])
    """

    k: int = field(metadata=INDEX)
    share: float = field(metadata=SHARE)

    def _drawn(self, n_classes: int) -> Probabilities:
        _require_class(self.k, "k", n_classes)
        return self.share * np.eye(n_classes)[self.k]


@dataclass(frozen=True, repr=False)
class Permutation(_KnownMap):
    r"""Miscalibration that cancels in every class and in the confidence (Vaicenavicius et al. 2019, Example 1).

    .. math:: r(\mu) = \mu + a \, \min(\mu_0, \mu_1, \mu_2) \, s(\mu) \, (e_0 - e_1)

    with s = 1 where the order of the first three classes is an even permutation of increasing, -1 where it is odd, and
    0 at ties. Where these classes are exchangeable, as in a symmetric Dirichlet model, every single class and the
    confidence are calibrated, but the whole prediction is not. With share 1 the predictions of Table 1 have the true
    probabilities of that table.

    Parameters
    ----------
    share : float
        The share a, from 0 to 1.

    Raises
    ------
    ValueError
        If the share is not in [0, 1]; when applied, if there are fewer than three classes.

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> Permutation()(np.array([[0.1, 0.3, 0.6], [0.1, 0.6, 0.3]])).round(6)
    array([[0.2, 0.2, 0.6], [0. , 0.7, 0.3]])
    """

    share: float = field(default=1.0, metadata=SHARE)

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        refuse_if(prob.shape[1] < 3, f"Permutation() needs at least three classes, got {prob.shape[1]}.")
        a, b, c = prob[:, :3].T
        moved = self.share * np.minimum(np.minimum(a, b), c) * np.sign(b - a) * np.sign(c - a) * np.sign(c - b)
        true = prob.copy()
        true[:, 0] += moved
        true[:, 1] -= moved
        return true


@dataclass(frozen=True, repr=False)
class Bumps(_KnownMap):
    r"""Rough miscalibration of two classes, the alternatives in the paper of T-Cal (Lee et al. 2022).

    .. math:: r_1(\mu) = \mu_1 + (-1)^j \rho \, m^{-s} \, \zeta(u), \qquad \zeta(u) = e^{-1 / (u (1 - u))}, \qquad
              j + u = 2 m (\mu_1 - 1/4)

    for :math:`1/4 \le \mu_1 < 3/4`, where there are m bumps of alternating sign; elsewhere the model is calibrated. As
    m grows the curve keeps its Hölder constant of order s while the error vanishes: with predictions
    uniform on [0, 1], ``DirichletModel(2, 1.0, Bumps(m))``, the root mean square deviation is
    :math:`\rho m^{-s} \|\zeta\|_2 / \sqrt2` with :math:`\|\zeta\|_2 = 0.0098`, half of the predictions being
    calibrated.

    Parameters
    ----------
    n_bumps : int
        The number m.
    smoothness : float
        The Hölder exponent s > 0.
    scale : float
        The factor :math:`\rho > 0`; the bumps are :math:`\rho m^{-s} e^{-4}` high, at most 1/4.

    Raises
    ------
    ValueError
        If a parameter is not positive, or the bumps are higher than 1/4; when applied, if there are not two classes.

    See Also
    --------
    caltest.simulation.DirichletModel : A model whose calibration function is such a map.

    References
    ----------
    D. Lee, X. Huang, H. Hassani, E. Dobriban (2022), T-Cal: an optimal test for the calibration of predictive models,
    arXiv:2203.01850, and their code, github.com/dh7401/T-Cal, whose comparison of tests has s = 0.6, rho = 100 and m
    from 40 to 190.

    Examples
    --------
    >>> import numpy as np
    >>> Bumps(40)(np.array([[0.74375, 0.25625], [0.9, 0.1]])).round(4)
    array([[0.5435, 0.4565], [0.9   , 0.1   ]])
    """

    n_bumps: int = field(metadata=COUNT)
    smoothness: float = field(default=0.6, metadata=POSITIVE)
    scale: float = field(default=100.0, metadata=POSITIVE)

    def __post_init__(self) -> None:
        super().__post_init__()
        found = f"scale * n_bumps ** -smoothness * exp(-4) = {self.height:.4g}"
        refuse_if(self.height > 1 / 4, f"the bumps must be at most 1/4 high, got {found}.")

    @property
    def height(self) -> float:
        """Largest deviation."""
        return self.scale * self.n_bumps**-self.smoothness * float(np.exp(-4.0))

    def __call__(self, prob: Probabilities) -> Probabilities:
        """Return the true class probabilities."""
        refuse_if(prob.shape[1] != 2, f"Bumps() needs two classes, got {prob.shape[1]}.")
        position = 2 * self.n_bumps * (prob[:, 1] - 0.25)
        number = np.floor(position)
        u = position - number
        inside = (number >= 0) & (number < self.n_bumps) & (u > 0)
        u = np.where(inside, u, 0.5)
        bump = np.where(inside, self.height * np.exp(4 - 1 / (u * (1 - u))), 0.0) * (1 - 2 * (number % 2))
        return prob + np.stack([-bump, bump], axis=-1)


def _clipped(prob: Probabilities) -> Probabilities:
    """Return probabilities: a prediction that no true probability leads to stands for the nearest that one does."""
    return divided_by_sums(np.clip(prob, 0.0, None))


def _require_class(k: int, name: str, n_classes: int) -> None:
    refuse_if(k >= n_classes, f"`{name}` must be a class index 0 to {n_classes - 1}, got {k}.")


_OF_THE_PACKAGE = (Identity, Temperature, Shift, Move, LabelNoise, Favour)


def inverse(bend: Any) -> Map | None:
    """Return the inverse of a map of the package, None where there is none or it is not known."""
    return bend._inverse() if type(bend) in _OF_THE_PACKAGE else None
