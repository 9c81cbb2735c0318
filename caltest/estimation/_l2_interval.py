"""How much miscalibration there is, with how much certainty: intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import lens_text
from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import Region, Sample, make_sample
from caltest.predictions._validation import validate_choice, validate_level
from caltest.predictions._variance_tree import VarianceTree
from caltest.results._naming import describe
from caltest.statistics._squared_l2_distribution import SquaredL2Law


@dataclass(frozen=True, eq=False)
class L2Interval:
    """Result of `l2_interval`; unpacks as ``low, high``, the ends for the squared error.

    Attributes
    ----------
    low, high : float
        Ends of the interval for the squared l2 miscalibration.
    estimate : float
        T, the debiased estimate of it (`SquaredL2`); below 0 by chance, or where outcomes scatter less than predicted.
    confidence_level : float
        Probability with which the interval holds its target.
    alternative : {"two-sided", "less", "greater"}
        Both ends, the upper end alone (``low`` is 0), or the lower end alone (``high`` is the greatest possible value).
    noise : float
        About the standard deviation of T if the model is calibrated.
    target : str
        What the interval is to hold, in words.
    method : str
        How it was made.
    lens, partition : str
        What was looked at and how it was cut.
    n_samples, n_outcomes, n_cells : int
        Size of the induced problem.
    sparse_share : float
        Share of the rows in cells of fewer than 10 rows.
    notes : tuple of str
        What the reader should know beyond the numbers.
    """

    low: float
    high: float
    estimate: float
    confidence_level: float
    alternative: str
    noise: float
    target: str
    method: str
    lens: str
    partition: str
    n_samples: int
    n_outcomes: int
    n_cells: int
    sparse_share: float
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> float:
        """The estimate as an l2 error: the root of T, 0 where T is negative."""
        return math.sqrt(max(self.estimate, 0.0))

    @property
    def root_low(self) -> float:
        """Lower end for the root of the squared miscalibration."""
        return math.sqrt(self.low)

    @property
    def root_high(self) -> float:
        """Upper end for the root of the squared miscalibration."""
        return math.sqrt(self.high)

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        roots = {name: getattr(self, name) for name in ("root", "root_low", "root_high")}
        return {**vars(self), **roots, "notes": list(self.notes)}

    def __str__(self) -> str:
        level = f"{self.confidence_level:.4g}".removeprefix("0")
        side = {"two-sided": "", "less": ", upper end only", "greater": ", lower end only"}[self.alternative]
        lines = [f"l2 miscalibration, {level} confidence{side}", ""]
        lines += [f"  {label:<12} {text}" for label, text in self._facts()]
        lines += ["", f"  {'':<12} {'estimate':>12} {'low':>12} {'high':>12}"]
        for label, *numbers in (
            ("squared", self.estimate, self.low, self.high),
            ("root", self.root, self.root_low, self.root_high),
        ):
            lines.append(f"  {label:<12}" + "".join(f" {number:>12.4g}" for number in numbers))
        lines.append("")
        for words in (f"Target: {self.target}.", *(f"Note: {note}" for note in self.notes)):
            lines += textwrap.wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("lens", self.lens),
            ("data", f"{self.n_samples} rows, {self.n_outcomes} outcomes, {self.n_cells} cells of {self.partition}"),
            ("method", self.method),
        ]


def l2_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> L2Interval:
    r"""Confidence interval for the l2 miscalibration within cells, squared and as a root; nothing is drawn.

    The target is that of these rows, :math:`\theta = \sum_b w_b |\mu_b|^2`, with shares :math:`w_b = n_b / n` and
    :math:`\mu_b` the mean over cell b of true minus predicted probabilities (`squared_l2_target`); behind two-outcome
    lenses of the event alone. What cancels within a cell is not seen, and cells of one row do not enter. With
    T the debiased estimate `SquaredL2`, an end of the two-sided interval is the :math:`\theta` at which T, or what is
    more extreme, has probability :math:`\alpha / 2`, under

    .. math:: P_\theta(T \le t) = F(t / a + \nu; \nu, \theta / a), \qquad a = \kappa / n, \quad
              \nu = s_0^2 / (2 a^2),

    cut off at 0. F is the non-central chi-squared distribution function, by Sankaran's approximation, and, with
    residuals :math:`e_i`, their sums :math:`C_b = \sum e_i e_i^\top` and stated covariances :math:`V_i`,

    .. math::
        s_0^2 &= \frac{2}{n^2} \max\Bigl\{\sum_b \frac{\|\sum V_i\|_F^2 - \sum \|V_i\|_F^2}{(n_b - 1)^2}, \;
                 \sum_b \frac{\|C_b\|_F^2 - \sum |e_i|^4}{(n_b - 1)^2}\Bigr\}, \\
        \kappa &= \max\Bigl\{\frac{\sum w_b \, m_b^\top \Sigma_b m_b}{\sum w_b |m_b|^2}, \;
                 \sum w_b \Sigma_b \text{ (two outcomes), or }
                 \frac{\sum \operatorname{tr} \Sigma_b^3}{\sum \operatorname{tr} \Sigma_b^2}\Bigr\}.

    :math:`m_b` and :math:`\Sigma_b` are mean and covariance of the residuals of a cell, the covariance with four
    pseudo-rows spread evenly over the outcomes. So the law has the variance :math:`s_0^2 + 4 \kappa \theta / n`: that
    of a calibrated model near 0, and the normal one far from it. For more than two outcomes the upper end is the larger
    one of this law's and the normal law's. Two things keep upper ends honest: a T below the 16 % quantile of its null
    law counts as that quantile, and rows of certain predictions exclude only what they had occasion to show.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable, optional
        Cells of the induced simplex; `VarianceTree()` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.
    confidence_level : float
        Probability with which the interval is to hold its target.
    alternative : {"two-sided", "less", "greater"}
        Both ends, or a one-sided bound: "less" gives the upper end alone, "greater" the lower end.

    Returns
    -------
    L2Interval
        Prints as a report; unpacks as ``low, high``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Notes
    -----
    Promise, for 95 %, two outcomes, at least 200 rows and at least 10 rows a cell, predictions that vary within cells:
    coverage at most 2 points below nominal from 1,000 rows on, 3 below at 200, and the error on each side at most 2
    points above its nominal 2.5 %. A single cell of equal predictions is a binomial count, whose jumps cost more: of a
    constant prediction of 0.5, coverage was .91 at worst, where hardly any event happened (200 and 1,000 rows).
    Coverage near calibration is above nominal, for no interval can miss 0 from above. docs/how-much.md has what was
    measured, also where nothing is promised: more outcomes, few rows in a cell, rare events.

    References
    ----------
    Y. Sun, P. Chaudhari, I. J. Barnett and E. Dobriban (2024), A confidence interval for the l2 expected calibration
    error, arXiv:2408.08998: another interval for such a target.
    M. Sankaran (1963), Approximations to the non-central chi-square distribution, Biometrika 50, 199-204.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> interval = caltest.l2_interval(y_true, y_prob, lens=caltest.Confidence())
    >>> low, high = interval
    >>> round(low, 4), round(high, 4)
    (0.0049, 0.0076)
    >>> round(interval.root_low, 3), round(interval.root, 3), round(interval.root_high, 3)
    (0.07, 0.078, 0.087)
    """
    level = validate_level(confidence_level, "confidence_level")
    validate_choice(alternative, "alternative", ("two-sided", "less", "greater"))
    cut = VarianceTree() if partition is None else partition
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    law, seen = SquaredL2Law.of(sample, cut), lens_text(lens, classes)
    return interval_of(law, sample, cut, lens=seen, confidence_level=level, alternative=alternative)


def interval_of(
    law: SquaredL2Law, sample: Sample, partition: Any, *, lens: str, confidence_level: float, alternative: str
) -> L2Interval:
    """Invert a law."""
    missed = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    count = sample.cells(partition).count
    return L2Interval(
        0.0 if alternative == "less" else law.lower_end(missed),
        law.largest if alternative == "greater" else law.upper_end(missed),
        law.estimate,
        confidence_level,
        alternative,
        law.noise,
        _target_text(sample, partition),
        "inversion of a non-central chi-squared law" + ("" if law.spread is None else " and a normal law"),
        lens,
        describe(partition),
        sample.n_samples,
        sample.n_outcomes,
        len(count),
        _sparse_share(count),
        _notes(sample, law, count, partition),
    )


_SPARSE_ROWS, _SPARSE_SHARE = 10, 0.05  # cells of fewer rows are sparse; more of the rows in them, and no promise
_FEWEST_ROWS = 200  # of the studies of coverage
_UNUSUALLY_LOW = 0.01


def _target_text(sample: Sample, partition: Any) -> str:
    """Say what T estimates and the interval is to hold."""
    each = "event's" if sample.n_outcomes == 2 else "vector of"
    return (
        f"the squared l2 miscalibration of these {sample.n_samples} rows, averaged within the cells of "
        f"{describe(partition)}: the sum over cells of (share of the rows) x |mean of the {each} true minus predicted "
        "probabilities|^2; and its root. What cancels within a cell is not seen"
    )


def _notes(sample: Sample, law: SquaredL2Law, count: NDArray[np.float64], partition: Any) -> tuple[str, ...]:
    """Say where no coverage is promised."""
    sparse, single = _sparse_share(count), int((count == 1).sum())
    found = [
        (
            law.null_tail < _UNUSUALLY_LOW,
            "T lies below the 1 % quantile of its null: outcomes scatter less than predicted, that is under-confidence "
            "within the cells, or rows that are not independent. The upper end takes T for its 16 % quantile.",
        ),
        (
            isinstance(partition, VarianceTree) and 2 * len(count) < partition.wanted_cells(sample.n_samples),
            f"only {len(count)} cell(s): half of the predictions in a cell are equal, and the tree does not split it. "
            "What cancels within a cell is not seen: give `partition`.",
        ),
        (law.evidence > 0, "few surprises were to be expected: the lower end is 0 unless their number is significant."),
        (single > 0, f"{single} cells of a single row are left out: they tell nothing about squared miscalibration."),
        (
            sparse > _SPARSE_SHARE,
            f"{sparse:.0%} of the rows lie in cells of fewer than {_SPARSE_ROWS} rows: no coverage is promised.",
        ),
        (sample.n_outcomes > 2, "more than two outcomes: coverage was measured (docs/how-much.md), not promised."),
        (sample.n_samples < _FEWEST_ROWS, f"fewer than {_FEWEST_ROWS} rows: no coverage is promised."),
        (
            not law.noise,
            "no two rows of a cell show any variance: the upper end is what so many rows could have hidden.",
        ),
    ]
    return tuple(words for said, words in found if said)


def _sparse_share(count: NDArray[np.float64]) -> float:
    """Return the share of the rows that lie in cells of few rows."""
    return float(count[count < _SPARSE_ROWS].sum() / count.sum())
