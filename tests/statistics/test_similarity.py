"""Kernels: compiled ones are those of the functions, sums do not depend on tiles, medians are exact."""

from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import caltest
from caltest.statistics import _similarity as kernels
from caltest.statistics._similarity import Similarity, median_distance
from tests.statistics.problems import calibrated

BUNDLED_MEDIAN = 0.9998982663472873
"""Of VGG-16, by SciPy."""
KERNELS = [
    caltest.statistics.total_variation_kernel,
    caltest.statistics.euclidean_kernel,
    caltest.statistics.gaussian_kernel,
]
EVERY = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)


@EVERY
def test_compiled_kernels_are_those_of_the_functions(kernel):
    for bandwidth in (1e-150, 1e-4, 0.01, 0.3, 7.0):
        for n_classes in (2, 3, 4, 7, 10):
            _, prob = calibrated(300, n_classes, seed=n_classes)
            prob[7] = prob[8]
            block = Similarity(kernel, bandwidth).block(prob[:150], prob)
            expected = kernel(prob[:150, None], prob[None], bandwidth)
            # exp(-x) passes a rounding of x on to the relative error of the value; below 1e-300 it ends.
            error = np.abs(block - expected) - 1e-300
            case = (bandwidth, n_classes)
            assert (error <= 2e-15 * (1 - np.log(np.maximum(expected, 1e-300))) * expected).all(), case
            assert (block <= 1).all(), case
            assert block[7, 8] == 1, case


@EVERY
def test_kernels_are_symmetric_and_one_at_equal_predictions(kernel):
    _, prob = calibrated(40, 4)
    matrix = kernel(prob[:, None], prob[None], 0.5)
    assert matrix.shape == (40, 40)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1)
    assert np.linalg.eigvalsh(matrix).min() > 0


@EVERY
def test_tiles_do_not_matter(kernel):
    users = partial(kernel)  # not recognised, so called as a user's function
    for n in (2, 127, 129, 513):
        y_true, prob = calibrated(n, 5, seed=n)
        residual = np.eye(5)[y_true] - prob
        expected = np.triu(kernel(prob[:, None], prob[None], 0.3) * (residual @ residual.T), 1).sum()
        for function in (kernel, users):
            found = Similarity(function, 0.3).sum_products(prob, residual)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), (n, function)


# The median.


def test_the_median_includes_the_zeros():
    # Distances 0, 0 and twice 1/2: the median is 1/4. A third one at 1/4 leaves three zeros and 1/4, 1/4, 1/2 twice.
    for y_prob, bandwidth in [([0.25, 0.75], 0.25), ([0.25, 0.5, 0.75], 0.25), ([0.25], 0.0), ([0.5, 0.5, 1.0], 0.0)]:
        prob = np.column_stack([1 - np.array(y_prob), y_prob])
        assert median_distance(prob, squared=False) == bandwidth, y_prob
        assert median_distance(prob, squared=True) == pytest.approx(np.sqrt(2) * bandwidth, rel=1e-15), y_prob


@pytest.mark.parametrize("squared", [False, True])
def test_the_median_is_exact(squared):
    for n in (1, 2, 3, 4, 5, 11, 100, 600, 1201):
        rng = np.random.default_rng(n)
        for prob in (
            rng.dirichlet(np.full(5, 0.5), size=n),
            rng.multinomial(4, [1 / 3] * 3, size=n) / 4,
            np.eye(3)[rng.integers(3, size=n)],
            np.tile([0.5, 0.5], (n, 1)),
        ):
            distances = pdist(prob, "euclidean" if squared else "cityblock") / (1 if squared else 2)
            expected = np.median(np.concatenate([np.zeros(n), distances, distances]))
            assert median_distance(prob, squared) == pytest.approx(expected, rel=1e-14, abs=1e-16), n


def test_the_median_is_exact_even_if_the_sample_misled(monkeypatch):
    _, prob = calibrated(600, 5)
    expected = median_distance(prob, squared=False)
    for bracket in ((-1.0, 0.1), (0.95, np.inf), (0.3, 0.3), (0.0, 1.0)):
        monkeypatch.setattr(kernels, "_bracket", lambda *_, bracket=bracket: bracket)
        assert median_distance(prob, squared=False) == expected, bracket


def test_the_median_of_the_bundled_predictions():
    _, y_prob = caltest.datasets.load_cifar10_vgg16()
    assert median_distance(y_prob.astype(float), squared=False) == pytest.approx(BUNDLED_MEDIAN, rel=1e-14)


def test_the_median_of_many_is_that_of_some(monkeypatch):
    _, prob = calibrated(400, 3)
    everything = median_distance(prob, squared=False)
    monkeypatch.setattr(kernels, "LARGEST_MEDIAN", 100)
    some = median_distance(prob, squared=False)
    assert some != everything
    nearer = squareform(pdist(prob, "cityblock")) / 2 <= everything
    error = 2 * np.std(nearer.mean(axis=1)) / np.sqrt(100)  # of a share of pairs of 100 observations
    assert abs(np.mean(squareform(pdist(prob, "cityblock")) / 2 <= some) - 0.5) < 4 * error
    assert median_distance(prob[::-1], squared=False) == some
