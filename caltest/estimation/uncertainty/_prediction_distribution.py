"""Uncertainty of predictions, and their distribution over cells (bins)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import PredictionStack
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._parts import effective_of_sums
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require, validate_choice, validate_count, validate_given_prob
from caltest.results import Result
from caltest.results._description import Description, Table, counted, percent
from caltest.results._picture import Picture
from caltest.statistics._entropy import entropy_of, normalised_entropy

if TYPE_CHECKING:
    import pandas as pd

LINEAR = np.arange(41) / 40
"""Edges of equal width."""

_FAR = 24  # quarters of a power of ten: the outermost bins end at 1e-6
_ODDS = 10.0 ** (np.arange(-_FAR, _FAR + 1) / 4)
LOGIT = np.concatenate([[0.0], _ODDS / (1 + _ODDS), [1.0]])
"""Edges at equal distances of the log odds, a quarter of a power of ten."""

EDGES = np.union1d(LINEAR, LOGIT)
"""All of these edges."""
WORDS = {
    "entropy": "normalised entropy",
    "confidence": "1 - confidence",
    "mutual-information": "mutual information of the passes",
    "variance": "variance of the passes",
}
"""Measures of uncertainty in words."""
MOST = {
    "entropy": "largest entropy",
    "confidence": "smallest confidence",
    "mutual-information": "largest mutual information of the passes",
    "variance": "largest variance of the passes",
}
"""What the most uncertain predictions have."""
_MOST_SHOWN = 40  # rows of the printed table


def prediction_density(event: Floats, times: Floats | Integers | None = None) -> Floats:
    """Return the share of the predictions ``(n_samples,)`` in each bin between `EDGES`, each counted ``times``.

    Examples
    --------
    >>> import numpy as np
    >>> share = prediction_density(np.array([0.0, 0.5, 0.99999, 1.0]))
    >>> share[0], share[-1], share.sum()
    (np.float64(0.25), np.float64(0.25), np.float64(1.0))
    """
    inside = np.clip(np.asarray(event, dtype=np.float64), 0.0, 1.0)
    place = np.searchsorted(EDGES[1:-1], inside, side="right")
    count = np.bincount(place, weights=times, minlength=len(EDGES) - 1)
    return count / count.sum()


def _doubt(prob: NDArray[Any]) -> Floats:
    """Return 1 minus the largest probability, ``(n_samples,)``."""
    return 1.0 - prob.max(axis=1).astype(np.float64)


def _mutual_information(passes: Floats) -> Floats:
    """Return the normalised entropy of the average minus the average one of the passes, ``(n_samples,)``."""
    return normalised_entropy(passes.mean(axis=0)) - normalised_entropy(passes).mean(axis=0)


def _variance(passes: Floats) -> Floats:
    """Return the variance of the probabilities of each class between passes, summed over classes, ``(n_samples,)``."""
    return passes.var(axis=0).sum(axis=1)


UNCERTAINTIES: dict[str, Callable[[NDArray[Any]], Floats]] = {"entropy": normalised_entropy, "confidence": _doubt}
"""From predictions ``(n_samples, n_classes)`` to uncertainties ``(n_samples,)`` from 0 to 1."""
DISAGREEMENTS: dict[str, Callable[[Floats], Floats]] = {
    "mutual-information": _mutual_information,
    "variance": _variance,
}
"""From passes ``(n_passes, n_samples, n_classes)`` to uncertainties ``(n_samples,)`` from 0 to 1."""


def validate_uncertainty(uncertainty: Any) -> tuple[str, ...]:
    """Return the names of one or more measures of uncertainty, each once."""
    several = isinstance(uncertainty, Sequence) and not isinstance(uncertainty, str)
    names = tuple(uncertainty) if several else (uncertainty,)
    for name in names:
        validate_choice(name, "uncertainty", tuple(WORDS))
    once = len(set(names)) == len(names) > 0
    require(once, "`uncertainty` must name measures of uncertainty, each once", uncertainty)
    return names


def uncertainty_of(prob: NDArray[Any], name: str, given: Any = None) -> Floats:
    """Return the uncertainty of predictions; those that differ by rounding only are equal.

    ``given`` is what was passed, whose passes may disagree.
    """
    if name in UNCERTAINTIES:
        found = UNCERTAINTIES[name](prob)
    elif isinstance(given, PredictionStack):
        found = DISAGREEMENTS[name](given.passes)
    else:
        refuse(
            f"`uncertainty` {name!r} is the disagreement of passes: pass predictions as "
            'caltest.predictions.PredictionStack(y_prob, average="passes").'
        )
    return np.round(found, 12) + 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UncertaintyCurve(Result):
    """Curves of several models by several measures of uncertainty; one entry for each point of each curve.

    Attributes
    ----------
    model, uncertainty : arrays of shape (n_points,)
        The model and the measure of uncertainty of each entry; the name of a single model is empty.
    """

    model: NDArray[np.str_]
    uncertainty: NDArray[np.str_]

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def curves(self) -> tuple[tuple[str, str], ...]:
        """Model and measure of uncertainty of each curve."""
        return tuple(dict.fromkeys(zip(self.model.tolist(), self.uncertainty.tolist(), strict=True)))

    def entries(self, model: str, uncertainty: str) -> Integers:
        """Return the positions of the entries of a curve, increasing along it."""
        return np.flatnonzero((self.model == model) & (self.uncertainty == uncertainty))

    @abstractmethod
    def _sentence(self, model: str, uncertainty: str) -> str:
        """Return the conclusion of a curve."""

    @property
    def _sentences(self) -> list[str]:
        return [self._sentence(*curve) for curve in self.curves]

    @property
    def conclusion(self) -> str:
        """What each curve shows, in words."""
        return " ".join(self._sentences)


def join_curves(curves: Mapping[tuple[str, str], Mapping[str, NDArray[Any]]]) -> dict[str, Any]:
    """Return the entries of curves of a model and a measure, one after the other, with both names."""
    parts = list(curves.values())
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    sizes = [len(next(iter(part.values()))) for part in parts]
    model, uncertainty = (np.repeat(names, sizes) for names in zip(*curves, strict=True))
    return {"model": model, "uncertainty": uncertainty, **columns}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PredictionDistribution(Result):
    """Result of `prediction_distribution`; one row for each quantity, one column for each cell (bin).

    Attributes
    ----------
    quantity : tuple of str
        "confidence", "normalised entropy" and "class ...".
    edges : array of shape (n_cells + 1,)
        Ends of the cells, of equal width.
    count : array of shape (n_quantities, n_cells)
        Number of the predictions in each cell.
    n_samples : int
        Number of predictions.

    See Also
    --------
    caltest.prediction_distribution : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> distribution = caltest.prediction_distribution(y_prob)
    >>> distribution.quantity, distribution.count.sum(axis=1)
    (('confidence', 'normalised entropy', 'class 0', 'class 1', 'class 2'), array([300, 300, 300, 300, 300]))
    """

    quantity: tuple[str, ...]
    edges: Floats
    count: Integers
    n_samples: int

    plot = Picture("plot_prediction_distribution")
    _derived: ClassVar[tuple[str, ...]] = ("occupied", "fullest", "effective_cells", "conclusion")

    @property
    def share(self) -> Floats:
        """Share of the predictions in each cell, ``(n_quantities, n_cells)``."""
        return self.count / self.n_samples

    @property
    def occupied(self) -> Integers:
        """Number of cells that are not empty, ``(n_quantities,)``."""
        return np.count_nonzero(self.count, axis=1)

    @property
    def fullest(self) -> Floats:
        """Share of the predictions in the fullest cell, ``(n_quantities,)``."""
        return self.share.max(axis=1)

    @property
    def effective_cells(self) -> Floats:
        """Inverse of the sum of squared shares: as many equally full cells are as uneven, ``(n_quantities,)``."""
        return effective_of_sums(1.0, np.square(self.share).sum(axis=1))

    @property
    def conclusion(self) -> str:
        """How unevenly the confidence fills its cells, in words."""
        share = percent(float(f"{self.fullest[0]:.3g}"))
        return (
            f"The confidence occupies {self.occupied[0]} of {len(self.edges) - 1} cells (bins) of equal width, and "
            f"{share} of the predictions lie in one of them."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each quantity and cell as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Quantity, ends of the cell, number and share of the predictions.
        """
        import pandas as pd

        index = pd.MultiIndex.from_product([self.quantity, self.edges[:-1]], names=["quantity", "lower"])
        frame = pd.DataFrame({"count": self.count.ravel(), "share": self.share.ravel()}, index=index).reset_index()
        frame.insert(2, "upper", np.tile(self.edges[1:], len(self.quantity)))
        return frame

    def _describe(self) -> Description:
        rows = [
            (name, f"{occupied}", percent(float(f"{fullest:.3g}")), f"{effective:.3g}")
            for name, occupied, fullest, effective in zip(
                self.quantity, self.occupied, self.fullest, self.effective_cells, strict=True
            )
        ]
        rest = len(rows) - _MOST_SHOWN
        remarks = [f"{rest} more classes are in to_frame()."] if rest > 0 else []
        head = ("predictions of", "occupied cells", "fullest cell", "effective cells")
        return Description(
            f"Distribution of predictions ({counted(self.n_samples)}, {len(self.edges) - 1} cells of equal width)",
            [self.conclusion],
            [Table(head, rows[:_MOST_SHOWN])],
            remarks,
        )


@reads_arguments
def prediction_distribution(
    y_prob: ArrayLike, *, classes: Sequence[Any] | None = None, n_cells: int = 15, **_: Unpack[InputOption]
) -> PredictionDistribution:
    r"""Count the predictions in cells (bins) of equal width: of the confidence, the entropy and every class.

    An estimate in cells is as good as its cells are full. Modern networks put most confidences into the last cell, so
    that the other ones hold few observations (Laves et al. 2020, figure 10), and most predictions of a class near 0 or
    1 (Nixon et al. 2019, figure 5, left). The counts of the confidence are those of the cells of `caltest.ECE` with
    ``EqualWidth(n_cells)``, those of the normalised entropy :math:`-\sum_k p_k \log p_k / \log K` those of
    `caltest.statistics.UCE`, and those of the classes those of the class-wise errors (`caltest.statistics.SCE`). No
    labels are needed.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    n_cells : int
        Number of cells.

    Returns
    -------
    PredictionDistribution
        Data for `caltest.plotting.plot_prediction_distribution`; prints as a table.

    Raises
    ------
    TypeError
        If ``n_cells`` is no integer.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, or ``n_cells`` < 1.

    See Also
    --------
    cells_curve : Errors against the number of cells.
    caltest.EqualMass : Cells that are equally full.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, figure 10.
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, figure 5, left.

    Examples
    --------
    >>> import caltest
    >>> _, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> found = caltest.prediction_distribution(y_prob)
    >>> print(found.conclusion)
    The confidence occupies 11 of 15 cells (bins) of equal width, and 91.7 % of the predictions lie in one of them.
    """
    number = validate_count(n_cells, "n_cells")
    prob = validate_given_prob(y_prob)
    edges = np.arange(number + 1) / number
    named = range(prob.shape[1]) if classes is None else classes
    columns = [prob.max(axis=1), uncertainty_of(prob, "entropy"), *prob.T]
    count = [
        np.bincount(np.searchsorted(edges[1:-1], column.astype(np.float64), side="right"), minlength=number)
        for column in columns
    ]
    return PredictionDistribution(
        quantity=("confidence", "normalised entropy", *(f"class {label}" for label in named)),
        edges=edges,
        count=np.array(count),
        n_samples=len(prob),
    )


@reads_arguments
def entropy(y_prob: ArrayLike, **_: Unpack[InputOption]) -> Floats:
    r"""Compute the entropy of each prediction, in nats (Laves et al. 2020, equation 7).

    .. math:: H(p_i) = -\sum_k p_{ik} \log p_{ik}

    from 0, if one class has all of the probability, to log K, if all K classes are equally probable; a class of
    probability 0 adds 0. `normalized_entropy` does not grow with the number of classes.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.

    Returns
    -------
    array of shape (n_samples,)
        The entropies.

    Raises
    ------
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1.

    See Also
    --------
    normalized_entropy : The same divided by log K.
    caltest.statistics.EntropyDifference : Compares it with the entropy of labels.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equation 7.

    Examples
    --------
    >>> from caltest.estimation import entropy
    >>> entropy([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]).round(3)
    array([0.   , 1.386])
    """
    return entropy_of(validate_given_prob(y_prob))


@reads_arguments
def normalized_entropy(y_prob: ArrayLike, **_: Unpack[InputOption]) -> Floats:
    r"""Compute the entropy of each prediction divided by its largest possible value (Laves et al. 2020, equation 11).

    .. math:: h_i = -\frac{1}{\log K} \sum_k p_{ik} \log p_{ik}

    from 0, if one class has all of the probability, to 1, if all K classes are equally probable. It is the uncertainty
    of `caltest.statistics.UCE`, `rejection_curve` and `shift_curve`.

    **It is not the probability of an error**, :math:`1 - \max_k p_{ik}`, unless K is very large. If the rest of the
    probability is spread evenly, it exceeds it by

    .. math:: \frac{-\hat p \log \hat p - (1 - \hat p) \log(1 - \hat p)
              - (1 - \hat p) \log\frac{K}{K - 1}}{\log K}, \qquad \hat p = \max_k p_{ik},

    which falls as 1 / log K (the authors' proposition 1 is the limit 0): with :math:`\hat p = 0.6` it is 0.57 for 2
    classes, 0.27 for 10, 0.15 for 100 and 0.10 for 1,000, and below 0.01 from about 10\ :sup:`29` classes on. If the
    rest is concentrated on a few classes, the normalised entropy tends to 0 instead, whatever the error is.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.

    Returns
    -------
    array of shape (n_samples,)
        The normalised entropies, from 0 to 1.

    Raises
    ------
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1.

    See Also
    --------
    entropy : The same in nats.
    caltest.torch.normalized_entropy : The same of the logits of a network, with gradients.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equation 11 and proposition 1.

    Examples
    --------
    >>> from caltest.estimation import normalized_entropy
    >>> normalized_entropy([[0.6, 0.4], [1.0, 0.0], [0.5, 0.5]]).round(3)
    array([0.971, 0.   , 1.   ])
    """
    return normalised_entropy(validate_given_prob(y_prob))
