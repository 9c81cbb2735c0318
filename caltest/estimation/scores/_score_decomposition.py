"""Scores of single observations, and their decomposition into miscalibration, discrimination and uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._options import ScoreOptions, event_of
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_choice
from caltest.results import Note, Result
from caltest.results._description import Description, Table, percent, sized
from caltest.statistics._isotonic import SCORES, climatological_score, recalibrated_score, stated_score

_TIED = 1e-9  # relative; probabilities that differ by rounding


def accuracy_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> Floats:
    """Return whether the outcome of each observation is the most probable one, ``(n_samples,)``; 1 / m if m are tied.

    Scores of predictions, comparisons, studies and tests all count right labels by this function.
    """
    two = prob.shape[1] == 2  # along an axis of two numbers a maximum is several times slower
    largest = np.maximum(prob[:, 0], prob[:, 1]) if two else prob.max(axis=1)
    least = largest * (1 - _TIED)
    own = prob[np.arange(len(prob)), outcome] >= least
    tied = prob >= least[:, None]
    n_tied = tied[:, 0].astype(np.int64) + tied[:, 1] if two else np.count_nonzero(tied, axis=1)
    return np.asarray(own / n_tied, dtype=np.float64)


def brier_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> Floats:
    """Return the Brier score of each observation, ``(n_samples,)``; of two outcomes half the sum of squares."""
    return brier_terms(prob, _own(prob, outcome))[:, 0]


def log_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> Floats:
    """Return the logarithmic score of each observation in nats, ``(n_samples,)``, infinite for probability 0."""
    return log_terms(prob, _own(prob, outcome))[:, 0]


def spherical_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> Floats:
    """Return the spherical score of each observation, ``(n_samples,)``; larger is better."""
    return spherical_terms(prob, _own(prob, outcome))[:, 0]


def brier_terms(prob: NDArray[Any], own: NDArray[Any]) -> Floats:
    """Return the Brier scores of outcomes whose probabilities are ``own``, ``(n_samples, n)``."""
    missed = np.square(1 - own)
    return np.asarray(missed if prob.shape[1] == 2 else missed + (_squares(prob) - np.square(own)))


def log_terms(prob: NDArray[Any], own: NDArray[Any]) -> Floats:
    """Return the logarithmic scores of outcomes whose probabilities are ``own``, ``(n_samples, n)``."""
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(np.maximum(own, 0.0))


def spherical_terms(prob: NDArray[Any], own: NDArray[Any]) -> Floats:
    """Return the spherical scores of outcomes whose probabilities are ``own``, ``(n_samples, n)``."""
    return np.asarray(own / np.sqrt(_squares(prob)))


def _own(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> Floats:
    return np.asarray(prob[np.arange(len(prob)), outcome], dtype=np.float64)[:, None]


def _squares(prob: NDArray[Any]) -> Floats:
    return np.einsum("ik,ik->i", prob, prob, dtype=np.float64)[:, None]


def mean_of(values: Floats, weight: Floats | None) -> float:
    """Return the weighted mean of values of observations; those of weight 0 do not count, infinite ones neither."""
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    return float(np.average(values, weights=weight))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoreDecomposition(Result):
    """Result of `score_decomposition`.

    Attributes
    ----------
    score : {"brier", "log"}
        The proper score.
    mean_score : float
        Mean score of the predictions; ``miscalibration - discrimination + uncertainty``.
    miscalibration : float
        MCB, what isotonic recalibration gains: `IsotonicError`. Smaller is better; infinite if a label had been given
        probability 0 and the score is "log".
    discrimination : float
        DSC, what recalibrated predictions gain on the base rate. Larger is better.
    uncertainty : float
        UNC, the score of the base rate: a property of the labels, not of the model.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples : int
        Number of observations.
    weighted : bool
        Whether the observations have weights.

    See Also
    --------
    caltest.score_decomposition : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> parts = caltest.score_decomposition(y_true, y_prob)
    >>> score = parts.miscalibration - parts.discrimination + parts.uncertainty
    >>> round(score - parts.mean_score, 9) == 0
    True
    """

    score: str
    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    lens: LensLike
    lens_name: str
    n_samples: int
    weighted: bool = False

    _derived: ClassVar[tuple[str, ...]] = ("conclusion", "notes")

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions about what was passed."""
        return self._input_notes

    @property
    def conclusion(self) -> str:
        """The decomposition in words."""
        name = f"The mean {_NAMES[self.score]}"
        if math.isinf(self.mean_score):
            return f"{name} is infinite, because a label had been given probability 0."
        share = self.miscalibration / self.mean_score if self.mean_score > 0 else 0.0
        gain = percent(float(f"{share:.2g}"))
        return f"{name} is {self.mean_score:.4g}. Isotonic recalibration would lower it by {gain}."

    def _describe(self) -> Description:
        rows = [
            ("mean score", f"{self.mean_score:.4g}", "miscalibration - discrimination + uncertainty"),
            ("miscalibration", f"{self.miscalibration:.4g}", "what isotonic recalibration gains; smaller is better"),
            ("discrimination", f"{self.discrimination:.4g}", "what that gains on the base rate; larger is better"),
            ("uncertainty", f"{self.uncertainty:.4g}", "score of the base rate; a property of the labels"),
        ]
        size = sized(self.n_samples, weighted=self.weighted)
        return Description(
            f"Decomposition of the {_NAMES[self.score]} ({self.lens_name}, {size})",
            [self.conclusion],
            [Table(("term", "value", "meaning"), rows, left=("meaning",))],
            [
                "Both gains are too large in small samples, because recalibration is fitted to the same labels. To "
                "test the miscalibration, use calibration_test with IsotonicError."
            ],
        )


_NAMES = {"brier": "Brier score", "log": "log score"}


@reads_arguments
def score_decomposition(
    y_true: ArrayLike, y_prob: ArrayLike, *, score: str = "brier", **options: Unpack[ScoreOptions]
) -> ScoreDecomposition:
    r"""Decompose a mean score into miscalibration, discrimination and uncertainty (CORP; Dimitriadis et al. 2021).

    .. math:: \bar S(p) = \underbrace{\bar S(p) - \bar S(\hat p)}_\mathrm{MCB} - \underbrace{\bigl(\bar S(\bar y) -
              \bar S(\hat p)\bigr)}_\mathrm{DSC} + \underbrace{\bar S(\bar y)}_\mathrm{UNC}

    with :math:`\bar S` the mean score, :math:`\hat p` the isotonic regression of the labels on the predicted
    probability p of the event, equal predictions pooled first, and :math:`\bar y` the base rate. No cells (bins) are
    chosen, and no term is negative. In finite samples MCB and DSC are both too large, because :math:`\hat p` was
    fitted to the same labels; test MCB by ``calibration_test(..., statistic=IsotonicError(score))``. A constant
    prediction at the base rate has no miscalibration and no use: read MCB together with DSC.

    Parameters
    ----------
    score : {"brier", "log"}
        :math:`(p - y)^2`, or :math:`-\log p` of the observed outcome, in nats, with 0 log 0 = 0.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation; those of weight 0 are left out.

    Returns
    -------
    ScoreDecomposition
        The terms, in the unit of the score.

    Raises
    ------
    TypeError
        If ``lens`` is no function.
    ValueError
        If ``score`` is unknown; if ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown,
        lengths differ, or weights are negative or all 0; if the lens has more than two outcomes.

    See Also
    --------
    caltest.recalibration.cross_fitted_decomposition : Parts that are not estimated on the labels that they describe.
    caltest.estimation.brier_score : The score alone.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan (2021), Stable reliability diagrams for probabilistic classifiers,
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> print(caltest.score_decomposition(y_true, y_prob))
    Decomposition of the Brier score (confidence, 10,000 observations)
    The mean Brier score is 0.04982. Isotonic recalibration would lower it by 14 %.
    <BLANKLINE>
     term               value  meaning
     mean score       0.04982  miscalibration - discrimination + uncertainty
     miscalibration  0.007183  what isotonic recalibration gains; smaller is better
     discrimination   0.01735  what that gains on the base rate; larger is better
     uncertainty      0.05999  score of the base rate; a property of the labels
    <BLANKLINE>
      Both gains are too large in small samples, because recalibration is fitted to the same labels.
        To test the miscalibration, use calibration_test with IsotonicError.
    """
    validate_choice(score, "score", tuple(SCORES))
    sample, about = event_of(y_true, y_prob, options)
    return decomposition_of_sample(sample, score, **about)


def decomposition_of_sample(sample: Sample, score: str, *, lens: LensLike, lens_name: str) -> ScoreDecomposition:
    """Return the decomposition of the score of a sample with two outcomes."""
    predicted, recalibrated, uncertainty = (
        float(mean(sample, sample.outcome, score)) for mean in (stated_score, recalibrated_score, climatological_score)
    )
    return ScoreDecomposition(
        score=score,
        mean_score=predicted,
        miscalibration=predicted - recalibrated,
        discrimination=uncertainty - recalibrated,
        uncertainty=uncertainty,
        lens=lens,
        lens_name=lens_name,
        n_samples=sample.n_samples,
        weighted=sample.weight is not None,
    )
