"""P-values of statistics on a sample: the numbers of a test, before any words are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.resampling._distributions import SMALLEST_PVALUE, Law, Tail
from caltest.resampling._draws import Draws
from caltest.resampling._schemes import Consistency
from caltest.statistics import Statistic
from caltest.statistics._omnibus import combine_pvalues, tail_pvalues

LARGEST_ERROR, FAR_TAIL = 0.05, 1e-8  # a less exact tail is left to draws, unless no draw would reach it


def find_pvalues(
    statistics: Sequence[Statistic], sample: Sample, *, resampling: Consistency, draws: Draws, method: str
) -> list[float]:
    """Return the p-value of every statistic, that of `run_test`, without its words; what is drawn serves all."""
    settled = [statistic.settle(sample) for statistic in statistics]
    laws = [exact_law(statistic, sample, resampling, method) for statistic in settled]
    drawn = [statistic for statistic, found in zip(settled, laws, strict=True) if found is None]
    observed = [evaluate_components(statistic, sample) for statistic in drawn]
    nulls = draw_nulls(drawn, sample, draws) if drawn else []
    ranked = (float(rank_pvalues(sample, *values)[1][0]) for values in zip(observed, nulls, strict=True))
    return [next(ranked) if found is None else law_pvalue(sample, found[1]) for found in laws]


def exact_law(statistic: Statistic, sample: Sample, resampling: Consistency, method: str) -> tuple[Law, Tail] | None:
    """Return the exact law and the observed tail where the method wants them, else None."""
    found = None if method == "monte-carlo" or resampling.resample_predictions else statistic.exact(sample)
    if found is None and method == "exact":
        refuse_exact(statistic, sample, resampling)
    return found if found is not None and (method == "exact" or _is_accurate(found[1])) else None


def refuse_exact(statistic: Statistic, sample: Sample, resampling: Consistency) -> NoReturn:
    """Raise ValueError: no exact law is known."""
    msg = (
        'method="exact" needs ECE, MCE or HosmerLemeshow behind a two-outcome lens such as Confidence(), '
        f"predictions fixed; got {statistic} with {sample.n_outcomes} outcomes, {resampling}."
    )
    raise ValueError(msg)


def _is_accurate(tail: Tail) -> bool:
    return tail.relative_error <= LARGEST_ERROR or tail.probability < FAR_TAIL


def law_pvalue(sample: Sample, tail: Tail) -> float:
    """Return the p-value of a computed tail: what was excluded has probability 0, and 0 is never reported."""
    return max(0.0 if sample.impossible.size else min(tail.probability, 1.0), SMALLEST_PVALUE)


def evaluate_components(statistic: Statistic, sample: Sample) -> NDArray[np.float64]:
    """Return the observed value of each component, ``(n_components,)``; also prepares what all draws share."""
    return statistic.evaluate_components(sample, sample.outcome)


def draw_nulls(statistics: Sequence[Statistic], sample: Sample, draws: Draws) -> list[NDArray[np.float64]]:
    """Return of each statistic the components on every draw, ``(n_components, n_resamples)``.

    Statistics that have no faster way to their null law read the same outcomes, drawn once.
    """
    nulls: dict[int, NDArray[np.float64]] = {}
    for number, statistic in enumerate(statistics):
        first = statistic.components[0]
        if len(statistic.components) == 1 and type(first).null is not Statistic.null:
            nulls[number] = first.null(sample, draws)[None]
    sharing = [number for number in range(len(statistics)) if number not in nulls]
    if sharing:
        parts = [
            [statistics[number].evaluate_components(drawn, outcomes) for number in sharing]
            for drawn, outcomes in draws.blocks(sample)
        ]
        nulls |= zip(sharing, (np.concatenate(values, axis=1) for values in zip(*parts, strict=True)), strict=True)
    return [nulls[number] for number in range(len(statistics))]


def rank_pvalues(
    sample: Sample, observed: NDArray[np.float64], null: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p-values of the components ``(n_components, B + 1)`` and combined ``(B + 1,)``, the observed data first.

    An outcome that was excluded makes every p-value of the observed data the smallest attainable.
    """
    values = np.column_stack([observed, null])
    if sample.impossible.size:
        values[:, 0] = np.inf
    part_pvalues = tail_pvalues(values)
    return part_pvalues, part_pvalues[0] if len(values) == 1 else combine_pvalues(part_pvalues)
