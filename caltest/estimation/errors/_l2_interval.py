"""The l2 calibration error with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from numpy.typing import ArrayLike

from caltest.estimation._options import TimedOptions, look_at
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of, few_cells_notes
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._parts import effective_numbers
from caltest.predictions.inputs._validation import SeedLike, validate_choice, validate_level, validate_rng
from caltest.resampling.draws._summaries import KeptCells
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._description import Description, Table, percent, sized
from caltest.results._naming import describe
from caltest.statistics._segments import FEWEST_GROUPS, cells_of_groups
from caltest.statistics._squared_l2_distribution import CellMoments, SquaredL2Distribution
from caltest.statistics._squared_l2_in_time import SquaredL2InTime
from caltest.statistics._squared_l2_inversion import CERTIFYING_GROUPS, SquaredL2Inversion
from caltest.statistics._sums_in_time import fewest_windows

_SPARSE, _SPARSE_SHARE = 10, 0.05  # cells of fewer observations are sparse; a larger share in them is noted
_USUAL = 0.95  # confidence
_ROUNDING = 1e-9  # of an effective number of observations
_FEWEST_SAMPLES = 200  # of the simulations of coverage
_UNUSUALLY_LOW = 0.01
_CHANCE = 1.645  # standard deviations of the estimate that chance exceeds in 5 % of data sets
_CERTIFY = (
    f" To show that the error is small with fewer than {CERTIFYING_GROUPS} groups, take equivalence_test, which allows "
    "that all labels of a group are equal."
)
_MANY_GROUPS = 50  # of a simulation with rare groups that are very different (docs/validity.md)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class L2Interval(Result):
    """Result of `l2_interval`; unpacks as ``low, high``, the ends for the squared error.

    Attributes
    ----------
    estimate : float
        T, the debiased estimate of the squared l2 error (`SquaredL2`). It is below 0 by chance, or where labels vary
        less than predicted.
    confidence_interval : ConfidenceInterval
        Interval for the squared l2 error: ``low`` and ``high``.
    confidence_level : float
        Probability with which the interval contains its target.
    alternative : {"two-sided", "less", "greater"}
        Both ends, the upper end alone (``low`` is 0), or the lower end alone (``high`` is the greatest possible value).
    null_std : float
        Approximate standard deviation of T if the model is calibrated.
    target : str
        The target of the interval in words.
    origin : str
        How the interval was computed.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    partition : Partition or callable
        The cells (bins).
    n_samples, n_outcomes, n_cells : int
        Number of observations, of outcomes behind the lens, and of occupied cells (bins).
    sparse_share : float
        Share of the observations (weights) in cells of fewer than 10 observations (of equal weight).
    n_groups : int or None
        Number of groups of observations, if only groups are independent.
    weighted : bool
        Whether the observations have weights.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    caltest.l2_interval : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> interval = caltest.l2_interval(y_true, y_prob)
    >>> [round(float(end), 3) for end in interval]
    [0.005, 0.035]
    >>> round(interval.root, 3)
    0.128
    """

    estimate: float
    confidence_interval: ConfidenceInterval
    confidence_level: float
    alternative: str
    null_std: float
    target: str
    origin: str
    lens: LensLike
    lens_name: str
    partition: Any
    n_samples: int
    n_outcomes: int
    n_cells: int
    sparse_share: float
    n_groups: int | None = None
    weighted: bool = False
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("root", "root_interval", "conclusion")

    @property
    def root(self) -> float:
        """The estimate as an l2 error: the root of T, 0 where T is negative."""
        return math.sqrt(max(self.estimate, 0.0))

    @property
    def root_interval(self) -> ConfidenceInterval:
        """Interval for the l2 error, the root of the squared one."""
        return ConfidenceInterval(*map(math.sqrt, self.confidence_interval))

    @property
    def chance(self) -> float:
        """Estimates of the root up to here occur in 95 % of data sets if the model is calibrated."""
        return math.sqrt(_CHANCE * self.null_std)

    @property
    def root_text(self) -> str:
        """The l2 error with its interval: "0.0238 (0.0163 to 0.0312)"."""
        return f"{self.root:.4f} ({self.root_interval.low:.4f} to {self.root_interval.high:.4f})"

    @property
    def size(self) -> str:
        """The number of observations in words."""
        return sized(self.n_samples, self.n_groups, weighted=self.weighted)

    @property
    def conclusion(self) -> str:
        """Size of the miscalibration in words."""
        return f"T{self.clause[1:]}"

    @property
    def clause(self) -> str:
        """Size of the miscalibration in words, as the rest of a sentence."""
        low, high = (f"{end:.4f}" for end in self.root_interval)
        level, size = percent(self.confidence_level), f"the l2 calibration error is {self.root:.4f}"
        if self.alternative == "less":
            return f"{size}, and at most {high} with {level} confidence."
        if self.alternative == "greater":
            return f"{size}, and at least {low} with {level} confidence."
        return f"{size} ({level} confidence interval {low} to {high})."

    def __iter__(self) -> Iterator[float]:
        return iter(self.confidence_interval)

    def _describe(self) -> Description:
        rows = [
            (label, *(f"{number:.4g}" for number in (value, *interval)))
            for label, value, interval in (
                ("squared", self.estimate, self.confidence_interval),
                ("root", self.root, self.root_interval),
            )
        ]
        return Description(
            f"l2 calibration error ({self.lens_name}, {self.size}, {self.n_cells} cells)",
            [self.conclusion],
            [Table(("", "estimate", "low", "high"), rows)],
            [f"Target: {self.target}.", f"Interval: {self.origin}."],
            self.notes,
        )


@reads_arguments
def l2_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    partition: Partition | Any | None = None,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    rng: SeedLike = 0,
    **options: Unpack[TimedOptions],
) -> L2Interval:
    r"""Compute a confidence interval for the l2 calibration error within cells (bins), squared and as a root.

    The target belongs to these observations: :math:`\theta = \sum_b w_b |\mu_b|^2`, with shares
    :math:`w_b = n_b / n` and :math:`\mu_b` the mean over cell b of true minus predicted probabilities
    (`squared_l2_target`), behind two-outcome lenses only of the event. Deviations of opposite sign within a cell cancel
    and are not detected. Cells of one observation are left out. With T the debiased estimate `SquaredL2`, an end of the
    two-sided interval is the :math:`\theta` for which T or a more extreme value has probability :math:`\alpha / 2`,
    where

    .. math:: P_\theta(T \le t) = F(t / a + \nu; \nu, \theta / a), \qquad a = \kappa / n, \quad
              \nu = s_0^2 / (2 a^2),

    and negative ends are set to 0. F is the non-central chi-squared distribution function.
    With residuals :math:`e_i`, the sums :math:`C_b = \sum e_i e_i^\top` and predicted covariances :math:`V_i`,

    .. math::
        s_0^2 &= \frac{2}{n^2} \max\Bigl\{\sum_b \frac{\|\sum V_i\|_F^2 - \sum \|V_i\|_F^2}{(n_b - 1)^2}, \;
                 \sum_b \frac{\|C_b\|_F^2 - \sum |e_i|^4}{(n_b - 1)^2}\Bigr\}, \\
        \kappa &= \max\Bigl\{\frac{\sum w_b \, m_b^\top \Sigma_b m_b}{\sum w_b |m_b|^2}, \;
                 \sum w_b \Sigma_b \text{ (two outcomes), or }
                 \frac{\sum \operatorname{tr} \Sigma_b^3}{\sum \operatorname{tr} \Sigma_b^2}\Bigr\}.

    :math:`m_b` and :math:`\Sigma_b` are the mean and the covariance of the residuals of a cell, the covariance with
    four pseudo-observations spread evenly over the outcomes. The variance is :math:`s_0^2 + 4 \kappa \theta / n`: that
    of a calibrated model near 0, and that of the normal limit far from it. With more than two outcomes the upper end is
    the larger one of this distribution and of the normal one. Two rules protect upper ends from being too small: a T
    below the 16 % quantile of its null distribution counts as that quantile, and cells with almost no wrong label
    exclude only error rates at which that many observations would have had more of them.

    With ``groups`` or ``sample_weight``, cells are counted by weight, and with the weighted residual sums
    :math:`U_{gb}` and the weights :math:`W_{gb}` of group g in cell b

    .. math:: T = \frac1W \sum_b \frac{W_b}{W_b^2 - \sum_g W_{gb}^2} \Bigl(|U_b|^2 - \sum_g |U_{gb}|^2\Bigr).

    The interval then holds the values :math:`\theta` that Monte Carlo tests do not reject. Each test shifts the
    predictions of all cells until their squared error is :math:`\theta`: all alike (of two outcomes up and down, of
    more towards equal probabilities and away from them), and in proportion to the observed residuals and to their
    opposite. T is compared with that of labels which are simulated with these probabilities, and the p-value is the
    largest one. With groups the labels of a group share a normal shock. Its size is chosen such that sums of groups
    vary as much as is observed, once exactly and once by one standard error more, T is divided by a standard deviation
    that follows the simulated variation of groups, and random signs of the centred sums of the groups (CR3) give a
    third p-value. Where labels do not vary within any cell, the data show nothing of how they depend on each other; all
    labels of a group may then be equal, which gives a fourth one. Lower ends of groups that may have one outcome each
    also hold for labels that are drawn as such, with the mean of the predictions of the group.

    Large data need no simulated labels: with more than
    16,384 labels (observations times outcomes, of two outcomes one), 400 groups (or observations) of equal size and
    sums that are nearly symmetric (a standardised third moment of at most 0.2), the p-value of random signs counts
    alone. Cells that are worth fewer than two groups (weighted observations) of equal size are unknown: the upper end
    takes their error as the largest possible. Fewer than five such groups give no interval.

    With ``time`` and ``lead``, of forecasts whose labels are known after a lead, T is a sum over pairs of observations
    of a cell that are a lead or more apart (`paired_test`), and its distribution is the one above. :math:`s_0` and
    :math:`\kappa` come from K cosines of the time (Lazarus et al. 2018), whose sums over the residuals vary as those of
    the cells do, however residuals within a lead depend on each other. Both are multiplied by the ratio of the
    quantiles of Student's distribution with K degrees of freedom and of the normal one. K is a third of the windows of
    time as long as the lead (at most 100), and fewer than 9 windows give no interval.

    Parameters
    ----------
    partition : Partition or callable, optional
        Cells of the induced simplex; `VarianceTree()` by default, with groups, weights or times of so few cells that
        each is worth five groups of equal size, or five windows of time.
    confidence_level : float
        Probability with which the interval contains its target.
    alternative : {"two-sided", "less", "greater"}
        Both ends, or a one-sided bound: "less" gives the upper end alone, "greater" the lower end.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the simulated labels, which only ``groups`` and ``sample_weight`` need. The default is a
        number, so that the interval is the same wherever it is printed.

    Returns
    -------
    L2Interval
        Prints as a report; unpacks as ``low, high``.

    Raises
    ------
    TypeError
        If ``lens``, ``partition`` or ``region`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if
        ``confidence_level`` is not strictly between 0 and 1, or ``alternative`` is unknown; if ``partition`` needs two
        outcomes and the lens returns more; if no observation lies in the region; if ``lead`` is given without ``time``,
        is not positive or longer than the data; if ``time`` is given with ``groups``.

    See Also
    --------
    bootstrap_interval : Sampling variability of any estimate; not a confidence interval for the miscalibration.
    equivalence_test : Test whether the error is smaller than a margin.

    Notes
    -----
    The coverage is approximate. For 95 % confidence, two outcomes, at least 200 observations, at least 10 in each cell,
    and predictions that vary within cells, simulated coverage was at most 2 percentage points below nominal from 1,000
    observations on, at most 3 points at 200, and the error on each side at most 2 points above its nominal 2.5 %. A
    cell of equal predictions is a binomial count, whose steps cost more coverage: with a constant prediction of 0.5 it
    was 0.91 at worst, where hardly any event happened (200 and 1,000 observations). Near calibration the coverage is
    above nominal, because no interval can miss 0 from above. docs/how-much.md reports all simulations, also with more
    outcomes, few observations in a cell and rare events.

    References
    ----------
    E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson (2018), HAR inference: recommendations for practice, Journal
    of Business & Economic Statistics.
    Y. Sun, P. Chaudhari, I. J. Barnett and E. Dobriban (2024), A confidence interval for the l2 expected calibration
    error, arXiv:2408.08998: another interval for such a target.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> interval = caltest.l2_interval(y_true, y_prob, lens=caltest.Confidence())
    >>> low, high = interval
    >>> round(low, 4), round(high, 4)
    (0.0049, 0.0076)
    >>> round(interval.root, 3), [round(end, 3) for end in interval.root_interval]
    (0.078, [0.07, 0.087])
    """
    level = validate_level(confidence_level, "confidence_level")
    validate_choice(alternative, "alternative", ("two-sided", "less", "greater"))
    sample, about = look_at(y_true, y_prob, options)
    return interval_of_sample(sample, partition, **about, confidence_level=level, alternative=alternative, rng=rng)


def interval_of_sample(sample: Sample, partition: Any = None, *, rng: SeedLike = 0, **about: Any) -> L2Interval:
    """Return the interval of a sample, in default cells if the partition is None; see `interval_of_distribution`."""
    distribution, cut = l2_distribution(sample, partition, rng=rng)
    return interval_of_distribution(distribution, sample, cut, **about)


def interval_of_distribution(
    distribution: SquaredL2Distribution | SquaredL2Inversion,
    sample: Sample,
    partition: Any,
    *,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    **look: Any,
) -> L2Interval:
    """Return the interval of a sample, whose `l2_distribution` is known; ``look`` is its ``lens`` and ``lens_name``."""
    count = cells_of(sample, partition).count
    sparse = sample.once(_sparse_share, partition)
    return L2Interval(
        **look,
        **_ends(distribution, confidence_level, alternative),
        target=_target_text(sample.n_samples, sample.n_outcomes, partition, weighted=sample.weight is not None),
        partition=partition,
        n_samples=sample.n_samples,
        n_outcomes=sample.n_outcomes,
        n_cells=len(count),
        sparse_share=sparse,
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
        notes=_notes(sample, distribution, count, partition),
    )


def interval_of_cells(
    estimate: float, cells: KeptCells, partition: Any, surprise_pvalue: Callable[[], float], **look: Any
) -> L2Interval:
    """Return the 95 % interval of independent observations, of which a state holds sums over cells.

    Parameters
    ----------
    estimate : float
        T.
    cells : KeptCells
        Sums over the cells; the first data set is that of the observations.
    partition : Partition
        The cells.
    surprise_pvalue : callable
        Returns the exact p-value of the number of labels that were not the most probable one.
    **look
        ``lens`` and ``lens_name``.
    """
    count, n_outcomes = cells.count, cells.predicted_sum.shape[1]
    n, squares = int(count.sum()), count - cells.spread
    sums = zip(
        count, cells.observed_count[0], cells.predicted_sum, (count + squares - cells.own[0]) / 2, squares, strict=True
    )
    moments = [CellMoments.of_sums(int(number), *some) for number, *some in sums if number > 1]
    distribution = SquaredL2Distribution.of_moments(moments, estimate, n, n_outcomes, surprise_pvalue)
    sparse = float(count[count < _SPARSE].sum() / n)
    coverage = _notes_of_coverage(distribution, n, n_outcomes, sparse, weighted=False)
    return L2Interval(
        **look,
        **_ends(distribution, _USUAL, "two-sided"),
        target=_target_text(n, n_outcomes, partition, weighted=False),
        partition=partition,
        n_samples=n,
        n_outcomes=n_outcomes,
        n_cells=len(count),
        sparse_share=sparse,
        notes=(*_notes_of_observations(distribution, count), *coverage),
    )


def _ends(
    distribution: SquaredL2Distribution | SquaredL2Inversion, confidence_level: float, alternative: str
) -> dict[str, Any]:
    """Return the fields of an interval that its distribution tells."""
    missed = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    ends = (
        0.0 if alternative == "less" else distribution.lower_end(missed),
        distribution.largest if alternative == "greater" else distribution.upper_end(missed),
    )
    return {
        "estimate": distribution.estimate,
        "confidence_interval": ConfidenceInterval(*ends),
        "confidence_level": confidence_level,
        "alternative": alternative,
        "null_std": distribution.noise,
        "origin": distribution.origin,
    }


def l2_distribution(
    sample: Sample, partition: Any, *, any_shock: bool = False, rng: SeedLike = 0
) -> tuple[SquaredL2Distribution | SquaredL2Inversion, Any]:
    """Return what gives the p-value of every squared error, and the cells, which are default ones if they are None.

    ``any_shock``: few groups prove no upper end, unless it holds if all labels of a group may be equal.
    """
    if sample.timing is not None:
        cut = cells_of_groups(sample) if partition is None else partition
        return SquaredL2InTime.of(sample, cut), cut
    if sample.group is None and sample.weight is None:
        cut = VarianceTree() if partition is None else partition
        return SquaredL2Distribution.of(sample, cut), cut
    cut = cells_of_groups(sample) if partition is None else partition
    return SquaredL2Inversion.of(sample, cut, any_shock=any_shock, rng=validate_rng(rng)), cut


def _target_text(n_samples: int, n_outcomes: int, partition: Any, *, weighted: bool) -> str:
    """Return what T estimates and the interval contains."""
    mean = "mean true minus predicted probability" + (" of the event" if n_outcomes == 2 else "")
    share = "weight" if weighted else "observations"
    return (
        f"the sum over the cells (bins) of {describe(partition)} of (share of the {share}) x |{mean}|^2, for these "
        f"{n_samples:,} observations, and its root. Deviations of opposite sign within a cell cancel and are not "
        "detected"
    )


def _notes(
    sample: Sample, distribution: SquaredL2Distribution | SquaredL2Inversion, count: Floats, partition: Any
) -> tuple[Note, ...]:
    """Return where the coverage is uncertain, and what else limits the interval."""
    if isinstance(distribution, SquaredL2Inversion):
        own = _notes_of_groups(sample, distribution)
    elif isinstance(distribution, SquaredL2InTime):
        own = _notes_of_time(sample, distribution)
    else:
        own = _notes_of_observations(distribution, count)
    sparse, weighted = sample.once(_sparse_share, partition), sample.weight is not None
    further = _notes_of_coverage(distribution, sample.n_samples, sample.n_outcomes, sparse, weighted=weighted)
    return (*few_cells_notes(sample, partition), *own, *further)


def _notes_of_coverage(
    distribution: SquaredL2Distribution | SquaredL2Inversion,
    n_samples: int,
    n_outcomes: int,
    sparse: float,
    *,
    weighted: bool,
) -> tuple[Note, ...]:
    """Return where the coverage is uncertain, whatever the observations are."""
    measured = "docs/how-much.md reports its simulated coverage."
    found = [
        (
            distribution.null_tail < _UNUSUALLY_LOW,
            "C401",
            "The estimate is below the 1 % quantile of its null distribution. The labels vary less than predicted: "
            "the model is under-confident within the cells, or the observations are not independent. The upper limit "
            "reads the estimate as its 16 % quantile.",
        ),
        (
            sparse > _SPARSE_SHARE,
            "C405",
            f"{100 * sparse:.0f} % of the observations{' (weights)' if weighted else ''} lie in cells "
            f"{'that are worth' if weighted else 'of'} fewer than {_SPARSE}. The coverage of the l2 "
            f"interval is not proven there; {measured}",
        ),
        (
            n_outcomes > 2,
            "C406",
            f"With more than two outcomes the coverage of the l2 interval is not proven; {measured}",
        ),
        (
            n_samples < _FEWEST_SAMPLES,
            "C407",
            f"With fewer than {_FEWEST_SAMPLES} observations the coverage of the l2 interval was not studied.",
        ),
    ]
    return tuple(Note(code, text) for holds, code, text in found if holds)


def _notes_of_observations(distribution: SquaredL2Distribution, count: Floats) -> tuple[Note, ...]:
    """Return what limits the interval of independent observations without weights."""
    single = int((count == 1).sum())
    found = [
        (
            distribution.evidence > 0,
            "C403",
            "Fewer than 5 errors (labels other than the most probable one) were expected, so the chi-squared "
            "approximation is unreliable. The lower limit is 0 unless the number of errors is itself significant.",
        ),
        (
            single > 0,
            "C404",
            f"Cells of a single observation (here {single}) are left out: one observation cannot show a squared error.",
        ),
        (
            not distribution.noise,
            "C408",
            "No two observations of a cell show any variance. The upper limit is the error that so few observations "
            "could have left undetected.",
        ),
    ]
    return tuple(Note(code, text) for holds, code, text in found if holds)


def _notes_of_groups(sample: Sample, distribution: SquaredL2Inversion) -> tuple[Note, ...]:
    """Return what limits the interval of groups, or of weighted observations."""
    worth, what = distribution.n_effective, "observations" if sample.group is None else "groups"
    known = f"The observations of the known cells are worth {worth:.3g} {what} of equal size."
    found = [
        (
            distribution.unknown > 0,
            "C404",
            f"{100 * distribution.unknown:.3g} % of the observations (weights) lie in cells that are worth fewer than "
            f"two {what} of equal size. Nothing is known of their error: the upper limit takes it as the largest "
            "possible.",
        ),
        (
            worth < FEWEST_GROUPS,
            "C303",
            f"{known} Fewer than {FEWEST_GROUPS} do not show how much they differ, so there is no interval.",
        ),
        (
            sample.group is not None and FEWEST_GROUPS <= worth < _MANY_GROUPS,
            "C303",
            f"{known} The interval assumes that groups differ smoothly: with fewer than {_MANY_GROUPS} it cannot "
            "detect rare groups that are very different and were not observed."
            f"{_CERTIFY if worth < CERTIFYING_GROUPS else ''}",
        ),
    ]
    return tuple(Note(code, text) for holds, code, text in found if holds)


def _notes_of_time(sample: Sample, distribution: SquaredL2InTime) -> tuple[Note, ...]:
    """Return what limits the interval of forecasts in time."""
    assert sample.timing is not None
    windows, text, needed = sample.timing.n_windows, sample.timing.text, fewest_windows()
    found = [
        (
            distribution.unknown > 0,
            "C404",
            f"{100 * distribution.unknown / distribution.largest:.3g} % of the observations lie in cells that are "
            "worth fewer than two windows of time as long as the lead. Nothing is known of their error: the upper "
            "limit takes it as the largest possible.",
        ),
        (
            not distribution.is_known,
            "C305",
            f"The predictions span {windows:.3g} times the lead ({text}). Fewer than {needed} do not show how "
            "uncertain the estimate is, so there is no interval. Collect predictions of a longer time.",
        ),
        (
            distribution.evidence > 0,
            "C403",
            "Hardly any errors (labels other than the most probable one) were expected in stretches of time that are "
            "independent of each other. The lower limit is 0.",
        ),
    ]
    return tuple(Note(code, text) for holds, code, text in found if holds)


def _sparse_share(sample: Sample, partition: Any) -> float:
    """Return the share of the observations (weights) in cells that are worth few observations of equal weight."""
    cells = cells_of(sample, partition)
    number = cells.count if sample.weight is None else effective_numbers(sample.weight, cells.index, cells.n_cells)
    return float(cells.count[number < _SPARSE * (1 - _ROUNDING)].sum() / cells.count.sum())
