"""Calibrated enough: is miscalibration shown to stay below a margin?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from numpy.typing import ArrayLike

from caltest.estimation._l2_interval import L2Interval, interval_of
from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Region, make_sample
from caltest.predictions._validation import validate_level, validate_positive
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling._distributions import SMALLEST_PVALUE, alpha_of
from caltest.statistics._squared_l2_distribution import SquaredL2Law, greatest_l2


@dataclass(frozen=True, eq=False)
class EquivalenceResult:
    """Result of `equivalence_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    margin : float
        What the miscalibration is to be shown to stay below: a root l2 error.
    pvalue : float
        Of the hypothesis that the miscalibration is at least the margin.
    smallest_margin : float
        The smallest margin that these rows certify at the confidence level: the upper end of the interval, as a root.
    interval : L2Interval
        The one-sided interval behind it, with target, lens and notes.
    """

    margin: float
    pvalue: float
    smallest_margin: float
    interval: L2Interval

    @property
    def statistic(self) -> float:
        """T, the debiased estimate of the squared l2 miscalibration."""
        return self.interval.estimate

    @property
    def confidence_level(self) -> float:
        """1 minus the level of the test."""
        return self.interval.confidence_level

    @property
    def shown(self) -> bool:
        """Whether miscalibration below the margin is shown at the level."""
        return self.pvalue <= alpha_of(self.confidence_level)

    @property
    def interpretation(self) -> str:
        """What the p-value says, in words."""
        level = f"{1 - self.confidence_level:.4g}"
        verdict = "is shown" if self.shown else "is not shown"
        said = f"Miscalibration below {self.margin:.4g} {verdict} at level {level} (p = {self.pvalue:.4g}); "
        if self.interval.high >= greatest_l2(self.interval.n_outcomes):
            return said + "these rows certify no margin."
        return said + f"the smallest margin that these rows certify is {self.smallest_margin:.4g}."

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        own = {name: getattr(self, name) for name in ("margin", "pvalue", "smallest_margin", "shown", "interpretation")}
        return {**own, "interval": self.interval.to_dict()}

    def __str__(self) -> str:
        said = textwrap.wrap(self.interpretation, width=100, initial_indent="  ", subsequent_indent="    ")
        hypothesis = f"  hypothesis   root l2 miscalibration within cells is at least {self.margin:.4g}"
        return "\n".join(["Equivalence test of calibration", "", hypothesis, *said, "", str(self.interval)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def equivalence_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    margin: float,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    confidence_level: float = 0.95,
) -> EquivalenceResult:
    r"""Test whether miscalibration is shown to stay below a margin: is the model calibrated enough? Nothing is drawn.

    The hypothesis is :math:`\sqrt\theta \ge \text{margin}` for the root l2 miscalibration within cells,
    :math:`\theta = \sum_b \frac{n_b}{n} |\mu_b|^2`, as in `l2_interval`; a small p-value shows that the model is better
    than that. The p-value is the smallest level :math:`\alpha` at which the upper end of the one-sided interval lies
    below the margin, :math:`P_\theta(T \le t)` at the margin; ``smallest_margin`` is that upper end at
    ``confidence_level``.

    Its level is that of the interval: at most 2 points above nominal where `l2_interval` makes a promise. Deviations
    that cancel within a cell are not seen.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    margin : float
        Positive; a probability: .02 is two percentage points, root mean square.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the induced simplex; `VarianceTree()` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    confidence_level : float
        Of the smallest margin; 1 minus the level of the verdict.

    Returns
    -------
    EquivalenceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    S. Wellek (2010), Testing statistical hypotheses of equivalence and noninferiority, 2nd edition, Chapman & Hall.

    Examples
    --------
    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> result = caltest.equivalence_test(y_true, models["neural_network"], 0.1)
    >>> result.shown, round(result.smallest_margin, 3)
    (True, 0.027)
    """
    bound = validate_positive(margin, "margin")
    level = validate_level(confidence_level, "confidence_level")
    cut = VarianceTree() if partition is None else partition
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    greatest = greatest_l2(sample.n_outcomes) ** 0.5
    if bound >= greatest:
        msg = f"`margin` must be below the greatest miscalibration, {greatest:.4g}, got {margin!r}; is it in percent?"
        raise ValueError(msg)
    law = SquaredL2Law.of(sample, cut)
    seen = lens_text(lens, classes)
    interval = interval_of(law, sample, cut, lens=seen, confidence_level=level, alternative="less")
    return EquivalenceResult(bound, max(law.below(bound**2), SMALLEST_PVALUE), interval.root_high, interval)
