"""Statistics of two outcomes over the classes: their mean or their maximum, each class against the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._lenses import ClassWise
from caltest.predictions._sample import Sample, induce
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._validation import one_of
from caltest.resampling.draws._signs import group_of
from caltest.results._distribution import Distribution
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, validate_estimate
from caltest.statistics._binned import ECE
from caltest.statistics._segments import Surprises, SurpriseStatistic


def _of_two_outcomes(statistic: Any, name: str) -> Statistic:
    chosen = validate_estimate(statistic)
    refuse_if(
        chosen.n_outcomes not in {2, None} or isinstance(chosen, Classwise),
        f"`{name}` must be defined for two outcomes, such as KDEError(), got {chosen}.",
    )
    return chosen


@dataclass(frozen=True, repr=False)
class Classwise(Statistic):
    r"""Class-wise statistic: the mean or the maximum, over the classes, of a statistic of each class against the rest.

    .. math:: \frac1K \sum_{k=1}^K T_k \qquad \text{or} \qquad \max_k T_k

    where :math:`T_k` is the statistic behind the lens ``ClassWise(k)``. One draw of the class serves all of them, so
    that the classes are tested jointly; p-values are valid for every sample size, as those of the statistic are. The
    mean is the class-wise calibration error of Posocco & Bonnefoy (2021, definition 3) for any estimator. Most
    predictions of a sharp model with many classes are near 0, so that the mean is always small. Two outcomes are two
    classes: the event and the rest.

    ``Classwise(ECE(EqualWidth(15)))`` is ``SCE()`` and ``Classwise(ECE(EqualMass(15)))`` is
    ``ACE(cell_weight="observations")``; these are faster. ``Classwise(KS(), "max")`` is the largest error in the unit
    of a probability; `ClasswiseKS` divides that of each class by its standard deviation. ``Classwise(UCE())`` takes the
    entropy of each class against the rest; it is not `ClassConditionalUCE`, which groups observations by the
    predicted class.

    Parameters
    ----------
    statistic : Statistic or str
        Defined for two outcomes, with a value on one data set.
    combine : {"mean", "max"}
        What is computed of the values of the classes.

    Raises
    ------
    TypeError
        If ``statistic`` is not a statistic, or ``combine`` is not a text.
    ValueError
        If ``statistic`` combines tests, is class-wise itself or not defined for two outcomes, or ``combine`` is
        unknown.

    See Also
    --------
    SCE, ACE : Class-wise errors of cells.
    ClasswiseKS : Largest standardised error of a class, without cells.
    caltest.calibration_table : Every class with a p-value.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, definition 3, section 4.5.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.statistics import Classwise, ConvexECE
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=Classwise(ConvexECE(caltest.EqualWidth(15)))), 10)
    0.0086793673
    >>> worst = Classwise(ConvexECE(caltest.EqualWidth(15)), "max")
    >>> result = caltest.calibration_test(y_true, y_prob, statistic=worst, n_resamples=99, rng=0)
    >>> round(result.statistic, 4), result.derived["class_values"].round(4).tolist()
    (0.0186, [0.0082, 0.0044, 0.0109, 0.0186, 0.0071, 0.0163, 0.0046, 0.0044, 0.0065, 0.0059])
    """

    statistic: Statistic = parameter(ECE(EqualMass(15)), _of_two_outcomes)
    combine: str = parameter("mean", one_of("mean", "max"))

    hint_of_sums = "; of each class take a state, CalibrationState(n_classes, lens=ClassWise(k))"

    @property
    def words(self) -> str:
        """What it is called on the axes of pictures."""
        return "average error of the classes" if self.combine == "mean" else "largest error of a class"

    @property
    def measures_scatter(self) -> bool:  # type: ignore[override]
        """Whether an unusually small value means that labels vary less than predicted."""
        return self.statistic.measures_scatter

    @property
    def degree(self) -> int:  # type: ignore[override]
        """The power of the residuals with which it grows."""
        return self.statistic.degree

    @property
    def is_slow(self) -> bool:  # type: ignore[override]
        """Whether its time grows with the square of the number of observations."""
        return self.statistic.is_slow

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return self._combined(self._of_classes(sample, flat)).reshape(outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the statistic of signed residuals; None if that of a class needs labels."""
        group, found = group_of(sample), []
        for k in range(sample.n_outcomes):
            part = self._part(sample, k)
            of_class = self.statistic.evaluate_signs(replace(part, group=group[part.row]), signs)
            if of_class is None:
                return None
            found.append(of_class)
        return self._combined(iter(found))

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return the value of each class."""
        return {"class_values": np.concatenate(list(self._of_classes(sample, sample.outcome[None])))}

    def _of_classes(self, sample: Sample, flat: NDArray[Any]) -> Iterator[Floats]:
        """Yield the values ``(n_replicates,)`` of each class of outcomes ``(n_replicates, n_samples)``."""
        for k in range(sample.n_outcomes):
            part, happened = self._part(sample, k), flat == k
            if isinstance(self.statistic, SurpriseStatistic) and self.statistic.needs_surprises(part):
                yield self.statistic.evaluate_surprises(part, Surprises.of_unsorted(part, happened))
            else:
                yield self.statistic.evaluate(part, np.take(happened.view(np.uint8), part.row, axis=1))

    def _combined(self, values: Iterator[Floats]) -> Floats:
        total, n_classes = next(values), 1
        for of_class in values:
            total = total + of_class if self.combine == "mean" else np.maximum(total, of_class)
            n_classes += 1
        return total / n_classes if self.combine == "mean" else total

    def _part(self, sample: Sample, k: int) -> Sample:
        return against_rest(sample, k) if sample.is_large else sample.once(against_rest, k)


def against_rest(sample: Sample, k: int) -> Sample:
    """Return the sample of class k against the rest; its rows are places in the given sample. For `Sample.once`."""
    lens = ClassWise(k)
    part = induce(sample.given, sample.outcome, lens=lens, weight=sample.weight, group=sample.group)
    if sample.given_null is sample.given:
        return part
    return replace(part, given_null=lens.induced(sample.given_null)[part.row])
