"""The variance tree: where it splits, ties, and its default number of cells; see also the loops in test_partitions."""

import tracemalloc
from functools import partial
from itertools import permutations

import numpy as np
import pytest

import caltest
from caltest import VarianceTree
from tests.predictions.cells.test_partitions import assert_same_cells, event, labels
from tests.reference import naive
from tests.reference.cases import check_refused, failures


def sizes(partition, prob):
    """Observations in each cell, in the order of the labels."""
    return np.unique(labels(partition, prob), return_counts=True)[1].tolist()


def test_leaf_rule_cuts_at_the_median():
    tree = VarianceTree(min_leaf=2)
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.4])) == [2, 2]
    assert sizes(tree, event([0.5, 0.6, 0.7, 0.8, 0.9])) == [2, 3]
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.4, 0.5])) == [3, 2]  # the complement of the case above
    assert sizes(tree, event([0.1, 0.2, 0.3])) == [3]
    assert sizes(tree, event([0.1, 0.3, 0.3, 0.3])) == [4]
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.3])) == [2, 2]


def test_ties_of_the_median_stay_together_on_the_side_that_is_more_balanced():
    tree = VarianceTree(min_leaf=1, max_cells=2)
    assert sizes(tree, event([0.0, 0.0, 0.0, 0.6, 0.7])) == [3, 2]  # nothing lies below the median
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.9])) == [2, 5]
    assert sizes(tree, event([0.1, 0.3, 0.3, 0.3, 0.3, 0.8, 0.9])) == [5, 2]
    assert sizes(tree, event([0.1, 0.7, 0.7, 0.9])) == [1, 3]  # as balanced; 0.7 lies above one half
    assert sizes(tree, event([0.1, 0.3, 0.3, 0.9])) == [3, 1]


def test_the_class_of_next_largest_variance_is_tried():
    # Class 0 varies most and cannot be cut into two and two; class 2 is next and can.
    prob = np.array([[1.0, 0, 0], [0, 0.4, 0.6], [0, 0.5, 0.5], [0, 0.45, 0.55]])
    assert sizes(VarianceTree(min_leaf=1), prob) == [1, 1, 1, 1]
    assert_same_cells(labels(VarianceTree(min_leaf=2), prob), [0, 1, 0, 1], "class 2")
    blocked = np.array([[1.0, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert sizes(VarianceTree(min_leaf=2), blocked) == [4]


@pytest.mark.slow(few_draws=True)
def test_an_event_and_its_complement_have_the_same_cells():
    """Of 2,001 observations more than half are 0; odd nodes; ties of two decimals; 1 - p is exact on this grid."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        fine = rng.integers(0, 2**20, 2_001) / 2**20
        for name, values in {
            "untied": fine,
            "half zeros": np.where(rng.random(2_001) < 0.55, 0.0, fine),
            "lattice": np.round(fine * 64) / 64,
            "few values": np.round(fine * 4) / 4,
            "half in the middle": np.array(
                [*rng.choice([0, 0.125, 0.25], 50), *[0.5] * 20, *rng.choice([0.75, 1], 50)]
            ),
        }.items():
            for tree in (VarianceTree(), VarianceTree(min_leaf=7), VarianceTree(min_leaf=1, max_cells=30)):
                found = labels(tree, event(values))
                assert_same_cells(labels(tree, event(1 - values)), found, f"{name}, {tree}, {seed}")


def test_predictions_rounded_as_in_files_keep_their_cells():
    """The bundled network has 16 cells; with 4 decimals more than half of the predictions of a class are 0."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    rounded = np.round(y_prob, 4)
    rounded /= rounded.sum(axis=1, keepdims=True)
    assert len(sizes(VarianceTree(), y_prob)) == 16
    assert len(sizes(VarianceTree(), rounded)) == 15
    low, high = caltest.l2_interval(y_true, rounded).root_interval
    assert (round(low, 4), round(high, 4)) == (0.0195, 0.0331)
    assert caltest.equivalence_test(y_true, rounded, margin=0.012).pvalue > 0.99


@pytest.mark.parametrize(
    ("values", "split", "expected"),
    [
        ([0.0, 0.0, 0.0, 1.0], "median", [3, 1]),  # the median is 0, and nothing lies below
        ([0.0, 0.0, 0.0, 1.0], "mean", [3, 1]),
        ([0.0, 0.0, 0.5, 1.0], "median", [2, 2]),  # the average 0.25 of the middle values
        ([0.0, 1.0, 1.0, 1.0], "mean", [1, 3]),
        ([0.5, 0.5, 0.5, 0.5], "mean", [4]),
        ([0.0, 0.125, 0.25, 1.0], "mean", [3, 1]),
    ],
)
def test_split_rule(values, split, expected):
    assert sizes(VarianceTree(split=split, min_split=4), event(values)) == expected


def test_smallest_node_that_is_split():
    prob = event(np.arange(9) / 16)
    assert sizes(VarianceTree(min_split=9), prob) == [4, 5]
    assert sizes(VarianceTree(min_split=10), prob) == [9]
    assert sizes(VarianceTree(min_split=5), prob) == [4, 2, 3]


def test_max_cells_splits_the_largest_variance_first():
    prob = event([0.0, 0.01, 0.02, 0.03, 0.6, 0.7, 0.9, 1.0])
    assert sizes(VarianceTree(min_leaf=2, max_cells=3), prob) == [4, 2, 2]
    assert sizes(VarianceTree(min_leaf=2), prob) == [2, 2, 2, 2]
    assert sizes(VarianceTree(min_leaf=2, max_cells=1), prob) == [8]


@pytest.mark.slow(few_draws=True)
def test_default_number_of_cells():
    """Two to the power 0.3 log2 n, rounded; a cell keeps at least 0.7 n / n_cells observations."""
    expected = {1: 1, 100: 4, 500: 8, 2000: 8, 5000: 16, 10_000: 16, 100_000: 32}
    for n, n_cells in expected.items():
        for n_classes in (2, 10):
            prob = np.random.default_rng(n).dirichlet(np.ones(n_classes), size=n)
            found = sizes(VarianceTree(), prob)
            assert len(found) == n_cells, (n, n_classes)
            assert min(found) >= max(1, int(0.7 * n / n_cells)), (n, n_classes)
        assert VarianceTree().wanted_cells(n) == n_cells
    assert VarianceTree(max_cells=5).wanted_cells(100) == 5
    assert VarianceTree(min_leaf=2).wanted_cells(100) == VarianceTree(min_split=2).wanted_cells(100) == 1


@pytest.mark.parametrize(
    "tree",
    [
        VarianceTree(),
        VarianceTree(min_leaf=1, max_cells=2),
        VarianceTree(min_leaf=2, max_cells=3),
        VarianceTree(min_split=6, max_cells=2),
        VarianceTree(split="mean", min_split=6, max_cells=2),
    ],
    ids=repr,
)
def test_ties_of_the_variance_go_to_the_first_class_in_any_order(tree):
    """Every order of the same three numbers: all classes have the same variance, and the first is split."""
    for n in (6, 60):
        prob = np.repeat(list(permutations([0.1, 0.2, 0.7])), n // 6, axis=0)
        expected = naive.cells(tree, prob)
        for seed in range(20):
            order = np.random.default_rng(seed).permutation(n)
            assert_same_cells(labels(tree, prob[order]), [expected[i] for i in order], (n, seed))


def test_a_value_at_the_mean_lies_above_it_in_any_order():
    """The mean of 0.1, 0.2 and 0.3 is 0.2; summed one after the other it is a little more or a little less."""
    tree = VarianceTree(split="mean", min_split=3)
    for order in permutations(range(3)):
        prob = np.array([[0.1, 0.45, 0.45], [0.2, 0.4, 0.4], [0.3, 0.35, 0.35]])[list(order)]
        assert_same_cells(labels(tree, prob), naive.cells(tree, prob), order)
        assert_same_cells(labels(tree, prob), prob[:, 0] >= 0.2, order)


REFUSED = {
    "unknown split": (ValueError, {"split": "mode"}, "`split` must be one of 'median', 'mean', got 'mode'."),
    "split no text": (TypeError, {"split": 1}, "`split` must be one of 'median', 'mean', got 1."),
    "min_leaf 0": (ValueError, {"min_leaf": 0}, "`min_leaf` must be an integer >= 1, got 0."),
    "min_split 2.5": (TypeError, {"min_split": 2.5}, "`min_split` must be an integer >= 1, got 2.5."),
    "max_cells 0": (ValueError, {"max_cells": 0}, "`max_cells` must be an integer >= 1, got 0."),
    "both": (
        ValueError,
        {"min_leaf": 5, "min_split": 9},
        "`min_leaf` and `min_split` exclude each other, got 5 and 9.",
    ),
    "mean alone": (ValueError, {"split": "mean"}, 'split="mean" needs `min_split`, got None.'),
    "mean with min_leaf": (ValueError, {"split": "mean", "min_leaf": 5}, 'split="mean" needs `min_split`, got None.'),
}


def test_bad_parameters_are_refused():
    found = failures(REFUSED, lambda case: check_refused(partial(VarianceTree, **case[1]), case[0], case[2]))
    assert found == {}


def test_event_of_any_order_in_little_memory():
    """Nodes are ranges of the increasing predictions: no list of observations, and no copy, is made for each."""
    values = np.random.default_rng(3).beta(0.5, 3, 2**18)
    prob = np.column_stack([1 - values, values])
    in_order = prob[np.argsort(values)]
    expected = VarianceTree().fit(in_order)
    np.testing.assert_array_equal(VarianceTree().fit(prob)(prob), expected(prob))
    tracemalloc.start()
    VarianceTree().fit(in_order)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * values.nbytes  # the increasing values, and what a cut at a median takes
