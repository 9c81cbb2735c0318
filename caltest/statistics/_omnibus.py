"""The default test: an exact min-p over statistics that detect different kinds of miscalibration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require
from caltest.statistics._base import Combination, Statistic
from caltest.statistics._binned import ECE
from caltest.statistics._confidence import ConfidenceECE
from caltest.statistics._cumulative import ClasswiseKS
from caltest.statistics._recalibration_scores import OverConfidence, TemperatureScore, UnderConfidence

DEFAULT_CELLS = VarianceTree()


def default_parts(partition: Any = DEFAULT_CELLS) -> tuple[Statistic, ...]:
    """Return the parts of the default test, with the cells of a partition in its first part."""
    return (
        ECE(partition),
        OverConfidence(),
        UnderConfidence(),
        ClasswiseKS(),
        ConfidenceECE(),
    )


@dataclass(frozen=True, repr=False)
class Omnibus(Combination):
    r"""Exact min-p over several statistics on the same draws; the default of `calibration_test`.

    Every component c has a p-value :math:`p_c`, its rank among all B + 1 data sets, including the observed one; every
    draw has p-values in the same way. The statistic is :math:`-\log_{10} \min_c p_c`. Its p-value is the rank of the
    sorted p-values of the observed components in lexicographic order: ties of the smallest p-value are broken by the
    next one. All B + 1 data sets are treated alike, so that the p-value is valid at every n (Besag & Clifford 1989;
    Westfall & Young 1993). An omnibus combines tests and is not itself an error: it has no value on one data set.

    Parameters
    ----------
    parts : sequence of Statistic
        By default five: ``ECE()`` on the cells of a tree, which detects what differs between regions of the simplex;
        ``OverConfidence()`` and ``UnderConfidence()``, because the ECE has almost no power against under-confidence and
        the score is skewed; ``ClasswiseKS()``, for shifts of single classes; and ``ConfidenceECE()``, for errors of the
        confidence that change their sign. All of them stay the same if the two classes of a binary problem are
        exchanged.

    Raises
    ------
    TypeError
        If ``parts`` is not a sequence of statistics.
    ValueError
        If there are fewer than two parts, or a part is a combination such as Omnibus itself.

    See Also
    --------
    TCal : Min-p over errors at several scales.
    caltest.calibration_table : Single tests of several statistics and lenses on the same draws.

    References
    ----------
    J. Besag and P. Clifford (1989), Generalized Monte Carlo significance tests, Biometrika 76, 633-642.
    P. H. Westfall and S. S. Young (1993), Resampling-based multiple testing, Wiley.

    Examples
    --------
    >>> import caltest
    >>> caltest.Omnibus().components
    (ECE(), OverConfidence(), UnderConfidence(), ClasswiseKS(), ConfidenceECE())
    """

    parts: tuple[Statistic, ...] = field(default_factory=default_parts)

    def __post_init__(self) -> None:
        parts: Any = tuple(self.parts) if isinstance(self.parts, Iterable) else (self.parts, None)
        must = "`parts` must be statistics such as (ECE(), ClasswiseKS())"
        require(all(isinstance(part, Statistic) for part in parts), must, self.parts, right_type=False)
        if len(parts) < 2 or any(part.components != (part,) for part in parts):
            refuse(f"`parts` must be at least two statistics other than combinations such as Omnibus, got {parts!r}.")
        object.__setattr__(self, "parts", parts)

    @property
    def components(self) -> tuple[Statistic, ...]:
        """The statistics that are combined."""
        return self.parts

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return every component ``(n_components, ...)``; the temperature score is evaluated once for all its sides."""
        signed: Floats | None = None
        values = []
        for part in self.parts:
            if isinstance(part, TemperatureScore):
                signed = part.signed(sample, outcomes) if signed is None else signed
                values.append(part.read(signed))
            else:
                values.append(part.evaluate(sample, outcomes))
        return np.stack(values)
