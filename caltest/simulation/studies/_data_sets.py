"""The data sets of a study, some at a time: those of some models from a compiled generator, others drawn one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._draws import random_words
from caltest._compiled._normals import gaussian_events, layers
from caltest.predictions._arrays import Floats, Integers
from caltest.simulation.models._base import draw_classes
from caltest.simulation.models._mixtures import GaussianMixture1D
from caltest.simulation.studies._estimates import validated
from caltest.simulation.studies._run import Block, replicate_rng

if TYPE_CHECKING:
    from collections.abc import Callable

_OBSERVATIONS = 2**15  # of the data sets that are drawn at a time: their arrays stay in the second-level cache
_LANES = 32  # random words are drawn in multiples of it


@dataclass(frozen=True)
class DataSets:
    """Consecutive replicates of a study.

    Attributes
    ----------
    replicates : range
        Their numbers.
    y_true : array of shape (n_replicates, n_samples)
        Labels.
    y_prob : array of shape (n_replicates, n_samples, n_classes)
        Predictions.
    class_prob : callable
        Returns the true probabilities ``(n_samples, n_classes)`` of a replicate, from its place among these.
    rng : callable
        Returns the random generator of what else is drawn for a replicate, from its number.
    """

    replicates: range
    y_true: Integers
    y_prob: Floats
    class_prob: Callable[[int], Floats]
    rng: Callable[[int], np.random.Generator]

    def one_by_one(self) -> Iterator[DataSet]:
        """Yield each data set; its arrays may be kept."""
        for place, replicate in enumerate(self.replicates):
            labels, prob = self.y_true[place].copy(), self.y_prob[place].copy()
            yield DataSet(replicate, labels, prob, partial(self.class_prob, place), self.rng(replicate))


class DataSet(NamedTuple):
    """Number, labels, predictions, function that returns the true probabilities, and random generator."""

    replicate: int
    y_true: Integers
    y_prob: Floats
    class_prob: Callable[[], Floats]
    rng: np.random.Generator


def draw_data_sets(block: Block) -> Iterator[DataSets]:
    """Yield the data sets of a block, each of which depends on model, seed, stream and its number only."""
    if type(block.model) is GaussianMixture1D:
        yield from _compiled(block.model, block)
        return
    drawn: list[tuple[Any, ...]] = []
    for replicate in block.replicates:
        rng = replicate_rng(block.seed, block.stream, replicate)
        _, y_prob, class_prob = block.model.draw_unlabelled(block.n_samples, rng)
        prob, y_true = validated(draw_classes(class_prob, rng), y_prob)
        drawn.append((y_true, prob, class_prob, rng))
        if len(drawn) * prob.size >= 2 * _OBSERVATIONS or replicate == block.replicates[-1]:
            labels, probs, given, rngs = zip(*drawn, strict=True)
            some = range(replicate + 1 - len(drawn), replicate + 1)
            arrays = np.stack(labels), np.stack(probs).astype(np.float64, copy=False)
            yield DataSets(some, *arrays, given.__getitem__, dict(zip(some, rngs, strict=True)).__getitem__)
            drawn.clear()


def _compiled(model: GaussianMixture1D, block: Block) -> Iterator[DataSets]:
    n_samples, replicates = block.n_samples, block.replicates
    key = np.uint64(int.from_bytes(sha256(f"{block.seed}/{block.stream}".encode()).digest()[:8], "little") >> 1)
    size = max(1, _OBSERVATIONS // n_samples)
    shape = min(size, len(replicates)), n_samples
    words = np.empty((shape[0], -(-n_samples // _LANES) * _LANES), dtype=np.uint64)
    x, y_true, y_prob = np.empty(shape), np.empty(shape, dtype=np.int64), np.empty((*shape, 2))
    for start in range(replicates.start, replicates.stop, size):
        some = range(start, min(start + size, replicates.stop))
        drawn = slice(len(some))
        random_words(key, some.start, words[drawn])
        arrays = x[drawn], y_true[drawn], y_prob[drawn]
        gaussian_events(words[drawn], model.beta0, model.beta1, *_layers(), *arrays)
        class_prob = partial(_posterior, model, x[drawn].copy())
        yield DataSets(some, *arrays[1:], class_prob, partial(replicate_rng, block.seed, block.stream))


def _posterior(model: GaussianMixture1D, x: Floats, place: int) -> Floats:
    return model.posterior(x[place])


@lru_cache(maxsize=1)
def _layers() -> tuple[NDArray[Any], NDArray[Any]]:
    return layers()
