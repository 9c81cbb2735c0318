"""Equivalence test: is the calibration error smaller than a margin?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

from numpy.typing import ArrayLike

from caltest.estimation._options import DiagramOptions, look_at
from caltest.estimation.errors._l2_interval import L2Interval, interval_of_distribution, l2_distribution
from caltest.predictions._lens import LensLike
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_positive
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import ConfidenceInterval, Note, Number, Result
from caltest.results._decision import Decision, rejects
from caltest.results._description import Description, percent
from caltest.results._margin_verdict import MarginFinding, MarginVerdict
from caltest.results._naming import describe
from caltest.results._note import PAGE
from caltest.statistics._squared_l2_distribution import greatest_l2


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EquivalenceResult(Decision, Result):
    """Result of `equivalence_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    margin : float
        What the l2 calibration error is to be smaller than.
    statistic : float
        T, the debiased estimate of the squared l2 calibration error.
    pvalue : float
        Of the hypothesis that the l2 calibration error is at least the margin.
    smallest_margin : float
        The smallest margin that these observations certify at the level: the upper end of the interval, as a root.
    alpha : float
        Level of the test.
    interval : L2Interval
        The one-sided interval behind it, with target, lens and notes.

    See Also
    --------
    caltest.equivalence_test : The test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.equivalence_test(y_true, y_prob, 0.3)
    >>> result.margin, result.rejected, result.smallest_margin < 0.3
    (0.3, True, True)
    """

    margin: float
    statistic: float
    pvalue: float
    smallest_margin: float
    alpha: float
    interval: L2Interval

    _derived: ClassVar[tuple[str, ...]] = (
        *("rejected", "decision", "conclusion", "verdict", "hypothesis", "method", "n_samples", "lens_name"),
    )

    @property
    def method(self) -> str:
        """How the p-value was found: from the approximate distribution of `l2_interval`, or by simulated labels."""
        return "monte-carlo" if self.interval.weighted or self.interval.n_groups is not None else "asymptotic"

    @property
    def hypothesis(self) -> str:
        """The null hypothesis in words; its rejection shows that the error is below the margin."""
        cells = describe(self.interval.partition)
        return f"the l2 calibration error within the cells of {cells} is at least {self.margin:.4g}"

    @property
    def conditions(self) -> tuple[Note, ...]:
        """When the p-value is valid."""
        (sound,) = Consistency().conditions
        if self.interval.n_groups is None:
            return (sound,)
        return (Note(sound.code, f"groups of {sound.text}"),)

    @property
    def lens(self) -> LensLike:
        """The lens."""
        return self.interval.lens

    @property
    def lens_name(self) -> str:
        """The lens in words."""
        return self.interval.lens_name

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return self.interval.n_samples

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions."""
        return self.interval.notes

    @property
    def smallest_possible_pvalue(self) -> float:  # type: ignore[override]
        """1 if these observations show no margin at all, as few groups or observations do; otherwise 0."""
        return float(self.interval.confidence_interval.high >= greatest_l2(self.interval.n_outcomes))

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        return self.verdict.conclusion

    @cached_property
    def verdict(self) -> MarginVerdict:
        """Whether the typical error is shown to be below the margin, and what to do."""
        high, level = 100 * self.smallest_margin, percent(1 - self.alpha)
        cells = "1 cell" if self.interval.n_cells == 1 else f"{self.interval.n_cells} cells"
        question = MarginFinding(
            kind="below",
            size=Number(
                name=f"typical error within {cells}",  # what cancels within a cell is not seen
                estimate=100 * self.interval.root,
                interval=ConfidenceInterval(0.0, high),
                shown=f"at most {high:.4g} points ({level} confidence)",
            ),
            margin=100 * self.margin,
            unit="points",
            pvalue=self.pvalue,
            n=self.n_samples,
        )
        return MarginVerdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            n_samples=self.n_samples,
            n_groups=self.interval.n_groups,
            weighted=self.interval.weighted,
            n_outcomes=self.interval.n_outcomes,
            findings=(question,) if self.rejected else (),
            question=question,
            numbers=(question.size,),
            size=self.interval,
            cautions=self.notes,
        )

    def _describe(self) -> Description:
        about = self.interval
        return Description(
            f"Equivalence test ({about.lens_name}, {about.size}, {about.n_cells} cells (bins))",
            [self.conclusion],
            remarks=[
                f"Typical error: the root of the squared l2 calibration error, {100 * about.root:.1f} points by the "
                "debiased estimate; 0 if calibrated.",
                f"Hypothesis: {self.hypothesis}. Deviations of opposite sign within a cell (bin) cancel and are not "
                "detected.",
                f"P-value: {about.origin}{', computed without Monte Carlo draws' * (self.method == 'asymptotic')}.",
                *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in self.conditions),
            ],
            notes=self.notes,
        )


@reads_arguments
def equivalence_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    margin: float,
    *,
    partition: Partition | Any | None = None,
    rng: SeedLike = 0,
    **options: Unpack[DiagramOptions],
) -> EquivalenceResult:
    r"""Test whether the l2 calibration error is smaller than a margin (equivalence test).

    The hypothesis is :math:`\sqrt\theta \ge \text{margin}` for the root l2 calibration error within cells (bins),
    :math:`\theta = \sum_b \frac{n_b}{n} |\mu_b|^2`, as in `l2_interval`. A small p-value shows that the model is better
    than that. Deviations of opposite sign within a cell cancel and are not detected.

    Parameters
    ----------
    margin : float
        What the error is to be smaller than. It is a difference of probabilities: 0.02 is two percentage points, root
        mean square.
    partition : Partition or callable, optional
        Cells (bins) of the predictions; by default those of `l2_interval`.
    alpha : float
        Level of the test; the smallest margin is an upper limit with confidence 1 - ``alpha``.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the simulated labels, which only ``groups`` and ``sample_weight`` need. The default is a
        number, so that the result is the same whenever the test is repeated.

    Returns
    -------
    EquivalenceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``margin`` is no number, ``lens`` no lens or ``region`` no function.
    ValueError
        If ``margin`` is not positive, or not below the greatest possible error; if ``y_prob`` has values outside [0, 1]
        or rows that do not sum to 1; if ``y_true`` holds other labels than the columns; if ``region`` holds no
        observation; if ``partition`` needs two outcomes and the lens returns more; if ``alpha`` is not strictly between
        0 and 1.

    See Also
    --------
    l2_interval : The interval behind the test.
    tolerance_test : Is the miscalibration larger than is tolerated?

    Notes
    -----
    The p-value is the smallest level at which the upper end of the one-sided interval of `l2_interval` lies below the
    margin, :math:`P_\theta(T \le t)` at the margin, computed analytically.
    ``smallest_margin`` is that upper end at confidence 1 - ``alpha``. The level of the test is that of the interval: in
    simulations at most 2 percentage points above nominal in the range that `l2_interval` names.

    With ``groups`` or ``sample_weight`` labels are simulated, as in `l2_interval`. Few groups cannot show that no rare
    group is very different: if they are worth fewer than 20 groups of equal size, the p-value must also hold for groups
    whose labels are all equal. No margin below about :math:`1 - \alpha^{1/G}` is then shown by G groups.

    References
    ----------
    S. Wellek (2010), Testing statistical hypotheses of equivalence and noninferiority, 2nd edition, Chapman & Hall.

    Examples
    --------
    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> result = caltest.equivalence_test(y_true, models["neural_network"], 0.1)
    >>> result.rejected, round(result.smallest_margin, 3)
    (True, 0.027)
    """
    bound = validate_positive(margin, "margin")
    level = options["alpha"]
    sample, about = look_at(y_true, y_prob, options)
    greatest = greatest_l2(sample.n_outcomes) ** 0.5
    if bound >= greatest:
        refuse(f"`margin` must be below the greatest possible error, {greatest:.4g}, got {margin!r}; is it in percent?")
    distribution, cut = l2_distribution(sample, partition, any_shock=True, rng=rng)
    interval = interval_of_distribution(
        distribution, sample, cut, **about, confidence_level=1 - level, alternative="less"
    )
    pvalue = max(distribution.below(bound**2), SMALLEST_PVALUE)
    shown = interval.root_interval.high
    return EquivalenceResult(
        margin=bound,
        statistic=interval.estimate,
        pvalue=pvalue,
        smallest_margin=min(shown, bound) if rejects(pvalue, level) else max(shown, bound),
        alpha=level,
        interval=interval,
    )
