"""One replicate of labels is evaluated without compiling anything: the same bits as the kernels of many."""

import numpy as np
import pytest

from caltest._compiled._cells import count_events, count_outcomes, sum_over_events
from caltest._compiled._cumulative import path_extremes
from caltest._compiled._lookup import map_events, map_outcomes, sum_selected
from caltest._compiled._path_blocks import count_block_events
from caltest.predictions._sample import induce
from caltest.resampling.draws._path_blocks import Path, PathBlocks
from caltest.statistics._cumulative import _event_sums, _step_bounds
from tests.house.processes import in_fresh_process

NO_PLACES = np.empty((1, 0), dtype=np.uint16)

SIZES = [1, 2, 3, 63, 64, 255, 256, 257, 1001]


def numbers_with_zeros(rng, shape):
    """Numbers of many magnitudes, whose sum depends on the order, and some zeros of either sign."""
    numbers = rng.normal(size=shape) * np.exp(8 * rng.normal(size=shape))
    numbers[rng.random(shape) < 0.3] *= -0.0
    return numbers


def assert_same(kernel, *arguments):
    one, many = kernel.one(*arguments), kernel.many(*arguments)
    assert one.dtype == many.dtype
    assert one.shape == many.shape
    assert one.tobytes() == many.tobytes()


def assert_fills_the_same(kernel, shape, dtype, *arguments):
    one, many = np.empty(shape, dtype), np.empty(shape, dtype)
    kernel.one(*arguments, one)
    kernel.many(*arguments, many)
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("n", SIZES)
def test_counts_and_sums_of_one_replicate(n):
    rng = np.random.default_rng(n)
    start = np.sort(np.concatenate([[0, n], rng.integers(n + 1, size=5)]))  # some cells are empty
    for n_outcomes in (2, 3, 7):
        label = rng.integers(n_outcomes, size=(1, n)).astype(np.uint8)
        event = (label > 0).astype(np.uint8)
        assert_same(count_outcomes, label, rng.integers(4, size=(n, 1)).astype(np.uint16), n_outcomes, 4 * n_outcomes)
        assert_same(count_events, event, start)
        assert_same(count_outcomes, label, rng.integers(5, size=(n, n_outcomes)).astype(np.uint16), n_outcomes, 5)
        for cells in (start, np.array([0, n])):
            assert_same(sum_over_events, event, numbers_with_zeros(rng, n), cells)
        for table in (numbers_with_zeros(rng, (n, n_outcomes)), np.full((n, n_outcomes), -0.0)):
            assert_same(sum_selected, label, table)
        infinite = np.where(rng.random((n, n_outcomes)) < 0.1, -np.inf, 1.0)
        assert_same(sum_selected, label, infinite)


@pytest.mark.parametrize("n", SIZES)
def test_outcomes_of_one_replicate_behind_a_lens(n):
    rng = np.random.default_rng(n)
    label, row = rng.integers(7, size=(1, n)).astype(np.uint8), rng.permutation(n)
    seen = rng.integers(2, size=(n, 7)).astype(np.uint8)
    for table in (seen, seen[:1]):
        assert_fills_the_same(map_outcomes, (1, n), np.uint8, label, table, row)
    assert_fills_the_same(map_events, (1, n), np.uint8, label, np.packbits(seen, axis=1), row)


@pytest.mark.parametrize("n", SIZES)
def test_paths_of_one_replicate(n):
    rng = np.random.default_rng(n)
    for prob in (rng.random(n), rng.integers(5, size=n) / 4, np.full(n, 0.3)):  # ties, and exact 0 and 1
        event = rng.integers(2, size=n)
        sample = induce(np.column_stack([1 - prob, prob]), event)
        assert_same(path_extremes, sample.outcome[None], *_event_sums(sample), *_step_bounds(sample))
    usual = rng.integers(-1, 4, size=n)  # some rows have none
    paths = [Path(rng.random(n), rng.random(n), k) for k in range(4)]
    blocks = PathBlocks.of(paths, 4, n, np.dtype(np.uint8), usual=usual)
    for label in (rng.integers(4, size=n), np.where(usual < 0, 2, usual)):
        labels = label.astype(np.uint8)[None]
        assert_fills_the_same(count_block_events, (1, blocks.n_counters), np.int32, labels, blocks.rows, NO_PLACES)


@pytest.mark.slow(few_draws=True)
def test_errors_of_observed_labels_compile_nothing():
    code = """
from numba.core import event
compiled = []
class Compilations(event.Listener):
    def on_start(self, started):
        compiled.append(started.data["dispatcher"].py_func.__name__)
    def on_end(self, ended):
        pass
event.register("numba:compile", Compilations())
from numba.core import caching
caching.CompileResultCacheImpl._locator_classes = []
import caltest
from caltest.statistics import ECE, SCE, ClasswiseKS, ConfidenceECE, TemperatureScore
y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
for statistic in (ECE(), ConfidenceECE(), TemperatureScore(), SCE()):
    caltest.calibration_error(y_true, y_prob, statistic=statistic)
for statistic in (ECE(caltest.EqualWidth(15)), caltest.KS(), TemperatureScore(), ClasswiseKS()):
    caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=statistic)
print(compiled)
"""
    assert in_fresh_process(code) == "[]\n"
