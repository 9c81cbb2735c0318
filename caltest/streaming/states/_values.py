"""Statistics of sums over micro-cells: their values, and those on simulated labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.results._naming import describe
from caltest.statistics import ECE, MCE, HosmerLemeshow, Spiegelhalter, SquaredL2, TCal, TemperatureScore
from caltest.statistics._base import Statistic
from caltest.statistics._cumulative import Cumulative
from caltest.streaming.states._cells import CoarseCells, hosmer_lemeshow
from caltest.streaming.states._micro_cells import Nodes, Sums

_BLOCK = 64  # replicates at a time


def whole_nodes(nodes: Nodes) -> Nodes:
    """Return nodes whose weights are whole numbers, with the same means and variances in every micro-cell."""
    two = np.flatnonzero(nodes.cell[1:] == nodes.cell[:-1])
    weight, prob = nodes.weight.copy(), nodes.prob.copy()
    a, b = weight[two], weight[two + 1]
    size = np.rint(a + b)
    left = np.clip(np.rint(a), 1, size - 1)
    right = size - left
    mean = (a * prob[two] + b * prob[two + 1]) / size
    std = np.sqrt(a * b) / size * (prob[two + 1] - prob[two])
    weight[two], weight[two + 1] = left, right
    prob[two], prob[two + 1] = mean - std * np.sqrt(right / left), mean + std * np.sqrt(left / right)
    return Nodes(np.clip(prob, 0.0, 1.0), np.rint(weight), nodes.cell)


def simulate(
    nodes: Nodes, evaluate: Sequence[Evaluate], n_resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return statistics of simulated outcomes, ``(n_statistics, n_resamples)``."""
    found = [[one(events) for one in evaluate] for events in _blocks(nodes, n_resamples, rng)]
    return np.concatenate(found, axis=1)


def _blocks(nodes: Nodes, n_resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    number = nodes.weight.astype(np.int64)
    for start in range(0, n_resamples, _BLOCK):
        size = min(_BLOCK, n_resamples - start), len(number)
        yield rng.binomial(number, nodes.prob, size=size).astype(np.float64)


POSSIBLE = (
    "ECE, MCE, SquaredL2 and HosmerLemeshow with EqualWidth or Edges cells, KS, Kuiper, Spiegelhalter, "
    "TemperatureScore and its sides, and in tests TCal(n)"
)
_EQUAL = 2.0**-24


@dataclass(frozen=True, eq=False)
class Streamed:
    """What a state knows: sums over micro-cells, and sums of logarithms.

    Attributes
    ----------
    sums : Sums
        Sums over micro-cells.
    log_loss, expected_log_loss : float
        Sum of -log of the probability of the outcome, where it is possible, and of its expectation.
    """

    sums: Sums
    log_loss: float
    expected_log_loss: float


def value_of(statistic: Statistic, state: Streamed) -> float:
    """Return the value of a statistic; refuse what needs the observations."""
    kind = type(statistic)
    if kind in (ECE, MCE):
        return float(statistic.reduce(CoarseCells(state.sums, statistic.partition).sums))  # type: ignore[attr-defined]
    if kind is SquaredL2:
        return squared_l2(statistic, CoarseCells(state.sums, statistic.partition))  # type: ignore[arg-type]
    if isinstance(statistic, HosmerLemeshow):
        return hosmer_lemeshow(statistic, CoarseCells(state.sums, statistic.partition))[0]
    if kind is Spiegelhalter:
        return abs(_spiegelhalter(state.sums))
    if isinstance(statistic, TemperatureScore):
        impossible = state.sums.n_impossible > 0
        return float(statistic.read(np.array(-math.inf if impossible else state.expected_log_loss - state.log_loss)))
    if isinstance(statistic, Cumulative):
        return excursion_bounds(statistic, state.sums)[0]
    raise refusal(statistic)


def refusal(statistic: Any) -> ValueError:
    """Return the error of a statistic that needs the observations."""
    hint = "; of TCal a state needs the number of scales, such as TCal(10)" if isinstance(statistic, TCal) else ""
    text = f"a state has no observations, so that `statistic` may be {POSSIBLE}; got {describe(statistic)}{hint}."
    return ValueError(text)


def squared_l2(statistic: SquaredL2, cells: CoarseCells) -> float:
    """Return the debiased squared error."""
    evaluate = _squared_l2(statistic, cells)
    return float(evaluate(cells.events[None], cells.own[None])[0])


def _squared_l2(
    statistic: SquaredL2, cells: CoarseCells
) -> Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
    """Return the function from events and sums of squared residuals ``(n_replicates, n_cells)`` to the estimate."""
    n = cells.count.astype(np.float64)
    pairs = n**2 if statistic.estimator == "t-cal" else n**2 - n
    scale = np.divide(n / n.sum(), pairs, where=n > 1, out=np.zeros(len(n)))

    def evaluate(events: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        gap = np.square(events - cells.expected)
        if statistic.estimator == "kumar":
            frequency = events / n
            gap = np.where(n > 1, gap / n / n.sum() / np.where(scale > 0, scale, 1.0), 0.0)
            own = frequency * (1 - frequency) * n
        return ((gap - own) * scale).sum(axis=1)

    return evaluate


def _spiegelhalter(sums: Sums) -> float:
    """Return Z: positive if over-confident."""
    prob, squares = sums.prob.sum(axis=0), sums.squares.sum(axis=0)
    total = (sums.count[:, 1].sum() - 3 * prob[1] + 2 * squares[1]) - (prob[0] - 2 * squares[0])
    if sums.brier_variance > 0:
        return float(total / math.sqrt(sums.brier_variance))
    return math.inf if sums.n_impossible else 0.0


def excursion_bounds(statistic: Cumulative, sums: Sums) -> tuple[float, float]:
    """Return bounds of KS or Kuiper: the value at the ends of the micro-cells, and with what may happen within them.

    Within a micro-cell the cumulative residual rises by at most the sum of 1 - p over the events, and falls by at most
    the sum of p over the others. Predictions that differ by less than about 1e-7 count as equal.
    """
    residual = sums.count[:, 1] - sums.prob.sum(axis=1)
    path = np.append(0.0, np.cumsum(residual))
    n = sums.count.sum(axis=1)
    mean, second = (part.sum(axis=1) / np.maximum(n, 1) for part in (sums.first, sums.second))
    several = (n > 1) & (second - mean**2 > _EQUAL)
    rise = np.where(several, sums.count[:, 1] - sums.prob[:, 1], 0.0)
    fall = np.where(several, sums.prob[:, 0], 0.0)
    ends = statistic.read(np.array(path.max()), np.array(path.min()))
    high, low = max(path.max(), (path[:-1] + rise).max()), min(path.min(), (path[:-1] - fall).min())
    return float(ends) / sums.n_samples, float(statistic.read(np.array(high), np.array(low))) / sums.n_samples


Evaluate = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From events of nodes ``(n_replicates, n_nodes)`` to the statistic ``(n_replicates,)``."""


def evaluator(statistic: Statistic, state: Streamed, nodes: Nodes) -> Evaluate:
    """Return the function from simulated events of nodes to the statistic."""
    residual = partial(_residual, nodes)
    if type(statistic) is SquaredL2:
        cells = CoarseCells(state.sums, statistic.partition)
        first = np.searchsorted(nodes.cell, cells.starts)
        evaluate = _squared_l2(statistic, cells)

        def squared(events: NDArray[np.float64]) -> NDArray[np.float64]:
            added = np.add.reduceat(events * (1 - 2 * nodes.prob), first, axis=1)
            return evaluate(np.add.reduceat(events, first, axis=1), cells.squares + added)

        return squared
    if type(statistic) is Spiegelhalter:
        slope = 1 - 2 * nodes.prob
        std = math.sqrt(float(nodes.weight @ (slope**2 * nodes.prob * (1 - nodes.prob))))
        return lambda events: np.abs(residual(events) @ slope) / std if std > 0 else np.zeros(len(events))
    if isinstance(statistic, TemperatureScore):
        with np.errstate(divide="ignore"):
            logit = np.where((nodes.prob > 0) & (nodes.prob < 1), np.log(nodes.prob) - np.log1p(-nodes.prob), 0.0)
        return lambda events: statistic.read(residual(events) @ logit)
    if isinstance(statistic, Cumulative):
        last = np.append(np.flatnonzero(np.diff(nodes.cell)), len(nodes.cell) - 1)

        def excursion(events: NDArray[np.float64]) -> NDArray[np.float64]:
            path = np.cumsum(residual(events), axis=1)[:, last]
            high, low = (getattr(np, name)(path, axis=1, initial=0.0) for name in ("max", "min"))
            return statistic.read(high, low) / state.sums.n_samples

        return excursion
    raise refusal(statistic)


def _residual(nodes: Nodes, events: NDArray[np.float64]) -> NDArray[np.float64]:
    return events - nodes.weight * nodes.prob
