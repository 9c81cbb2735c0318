"""What a proper score is made of: miscalibration, discrimination and uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Confidence, Lens
from caltest.predictions._sample import make_sample
from caltest.predictions._validation import validate_choice
from caltest.statistics._isotonic import (
    SCORES,
    climatological_score,
    recalibrated_score,
    require_two_outcomes,
    stated_score,
)


@dataclass(frozen=True)
class ScoreDecomposition:
    """Result of `score_decomposition`; prints as a table.

    Attributes
    ----------
    score : str
        "brier" or "log".
    mean_score : float
        Mean score of the stated probabilities; ``miscalibration - discrimination + uncertainty``.
    miscalibration : float
        MCB, what isotonic recalibration gains: `IsotonicError`. Smaller is better; infinite if an excluded outcome
        happened and the score is "log".
    discrimination : float
        DSC, what recalibrated probabilities gain on the base rate. Larger is better.
    uncertainty : float
        UNC, the score of the base rate: a fact about the labels, not about the model.
    lens : str
        What was looked at.
    n_samples : int
        Number of rows.
    """

    score: str
    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    lens: str
    n_samples: int

    def __str__(self) -> str:
        rows = [
            ("mean score", self.mean_score, f"{self.score}, {self.lens}, {self.n_samples} rows"),
            ("miscalibration", self.miscalibration, "what isotonic recalibration gains; smaller is better"),
            ("discrimination", self.discrimination, "what it gains on the base rate; larger is better"),
            ("uncertainty", self.uncertainty, "score of the base rate"),
        ]
        lines = [f"  {label:<15} {value:>10.4g}   {words}" for label, value, words in rows]
        return "\n".join(["mean score = miscalibration - discrimination + uncertainty", "", *lines])


def score_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: str = "brier",
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> ScoreDecomposition:
    r"""Decompose a mean score into miscalibration, discrimination and uncertainty (CORP; Dimitriadis et al. 2021).

    .. math:: \bar S(p) = \underbrace{\bar S(p) - \bar S(\hat p)}_\mathrm{MCB} - \underbrace{\bigl(\bar S(\bar y) -
              \bar S(\hat p)\bigr)}_\mathrm{DSC} + \underbrace{\bar S(\bar y)}_\mathrm{UNC}

    with :math:`\bar S` the mean score, :math:`\hat p` the isotonic regression of the labels on the event's probability
    p, tied probabilities pooled first, and :math:`\bar y` the base rate. No cells are chosen; no term is negative. In
    finite samples MCB and DSC are both too large, for :math:`\hat p` was fitted to the same labels; test MCB by
    ``calibration_test(..., statistic=IsotonicError(score))``. MCB says nothing about whether the model is useful, and a
    constant forecast at the base rate has none: read it together with DSC.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    score : {"brier", "log"}
        :math:`(p - y)^2`, or :math:`-\log p` of what happened, in nats, with 0 log 0 = 0.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A two-outcome lens; by default the event of two classes, and `Confidence` for more.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row; rows of weight 0 count nothing.

    Returns
    -------
    ScoreDecomposition
        The terms, in the unit of the score.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the lens has more than two outcomes.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan (2021), Stable reliability diagrams for probabilistic classifiers,
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> print(caltest.score_decomposition(y_true, y_prob))
    mean score = miscalibration - discrimination + uncertainty
    <BLANKLINE>
      mean score         0.04982   brier, Confidence(), 10000 rows
      miscalibration    0.007183   what isotonic recalibration gains; smaller is better
      discrimination     0.01735   what it gains on the base rate; larger is better
      uncertainty        0.05999   score of the base rate
    """
    validate_choice(score, "score", tuple(SCORES))
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, sample_weight=sample_weight)
    if lens is None and sample.n_outcomes > 2:
        lens = Confidence()
        sample = make_sample(y_true, y_prob, classes=classes, lens=lens, sample_weight=sample_weight)
    require_two_outcomes(sample, "score_decomposition")
    stated, recalibrated, uncertainty = (
        float(mean(sample, sample.outcome, score)) for mean in (stated_score, recalibrated_score, climatological_score)
    )
    return ScoreDecomposition(
        score,
        stated,
        stated - recalibrated,
        uncertainty - recalibrated,
        uncertainty,
        lens_text(lens, classes),
        sample.n_samples,
    )
