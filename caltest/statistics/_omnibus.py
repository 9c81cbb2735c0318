"""The default test: an exact min-p over statistics that detect different kinds of miscalibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require
from caltest.resampling.draws._summaries import KeptSums
from caltest.statistics._base import Combination, Statistic
from caltest.statistics._binned import ECE
from caltest.statistics._confidence import ConfidenceECE
from caltest.statistics._cumulative import ClasswiseKS
from caltest.statistics._recalibration_scores import CoxScore, OverConfidence, TemperatureScore, UnderConfidence

_USUAL = ECE(), OverConfidence(), UnderConfidence(), ClasswiseKS(), ConfidenceECE()


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
    parts : sequence of Statistic, optional
        By default ``ECE()`` on the cells of a tree, which detects what differs between regions of the simplex;
        ``OverConfidence()`` and ``UnderConfidence()``, because the ECE has almost no power against under-confidence and
        the score is skewed; ``ClasswiseKS()``, for shifts of single classes; ``ConfidenceECE()``, for errors of the
        confidence that change their sign; and behind a lens with two outcomes ``CoxScore("slope")``, for predictions
        that are too extreme or not extreme enough but right on average. All of them stay the same if the two classes
        of a binary problem are exchanged.
    partition : partition or callable, optional
        The cells (bins) of the ``ECE`` of the default parts.

    Raises
    ------
    TypeError
        If ``parts`` is not a sequence of statistics, or ``partition`` no partition.
    ValueError
        If there are fewer than two parts, or a part is a combination such as Omnibus itself; if both arguments are
        given.

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

    A test of two outcomes has one more:

    >>> result = caltest.calibration_test([0, 1, 1, 0], [0.1, 0.6, 0.9, 0.3], n_resamples=99, rng=0)
    >>> result.components[-1].test_statistic
    CoxScore(part='slope')
    """

    parts: Sequence[Statistic] | None = None
    partition: Any = None
    _parts: tuple[Statistic, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.parts is None:
            first = _USUAL[0] if self.partition is None else ECE(self.partition)
            self._keep(_parts=(first, *_USUAL[1:]))
            return
        parts: Any = tuple(self.parts) if isinstance(self.parts, Iterable) else (self.parts, None)
        must = "`parts` must be statistics such as (ECE(), ClasswiseKS())"
        require(all(isinstance(part, Statistic) for part in parts), must, self.parts, right_type=False)
        if len(parts) < 2 or any(part.components != (part,) for part in parts):
            refuse(f"`parts` must be at least two statistics other than combinations such as Omnibus, got {parts!r}.")
        if self.partition is not None:
            refuse(f"`partition` is that of the default parts; with `parts` leave it out, got {self.partition!r}.")
        self._keep(parts=parts, _parts=parts)

    @property
    def components(self) -> tuple[Statistic, ...]:
        """The statistics that are combined; the default ones for any number of outcomes."""
        return self._parts

    def for_sample(self, sample: Sample | KeptSums) -> Omnibus:
        """Return the test with the part that the default one has for two outcomes only."""
        if self.parts is not None or sample.n_outcomes != 2:
            return self
        settled = replace(self)
        settled._keep(_parts=(*settled._parts, CoxScore("slope")))
        return settled

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return every component ``(n_components, ...)``; the temperature score is evaluated once for all its sides."""
        signed: Floats | None = None
        values = []
        for part in self._parts:
            if isinstance(part, TemperatureScore):
                signed = part.signed(sample, outcomes) if signed is None else signed
                values.append(part.read(signed))
            else:
                values.append(part.evaluate(sample, outcomes))
        return np.stack(values)
