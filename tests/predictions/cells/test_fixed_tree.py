"""Trees that were grown beforehand: the cells of the variance tree, for any predictions."""

import numpy as np
import pytest

import caltest
from caltest import VarianceTree
from caltest.predictions import FixedTree


def test_a_grown_tree_has_the_cells_of_the_variance_tree():
    prob = np.random.default_rng(0).dirichlet([0.5, 1, 2, 0.3], size=500)
    for tree in (
        VarianceTree(),
        VarianceTree(min_leaf=20),
        VarianceTree("mean", min_split=50),
        VarianceTree(max_cells=1),
    ):
        fixed, assign = FixedTree.grow(prob, tree), tree.fit(prob)
        np.testing.assert_array_equal(fixed.fit(prob[:3])(prob), assign(prob))
        assert fixed.n_cells == len(np.unique(assign(prob)))
        assert FixedTree(fixed.axis, fixed.threshold, fixed.left) == fixed
        label = np.random.default_rng(1).integers(4, size=500)
        expected = caltest.calibration_error(label, prob, statistic=caltest.ECE(tree))
        assert caltest.calibration_error(label, prob, statistic=caltest.ECE(fixed)) == expected


def test_it_does_not_depend_on_the_predictions():
    prob = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    fixed = FixedTree.grow(prob[:100], VarianceTree(max_cells=8))
    labels = fixed.fit(prob)(prob)
    for i in range(0, 300, 50):
        np.testing.assert_array_equal(fixed.fit(prob[i : i + 1])(prob[i : i + 50]), labels[i : i + 50])


def test_a_lens_is_applied():
    prob = np.random.default_rng(0).dirichlet([1, 1, 1, 1], size=300)
    groups = caltest.predictions.ClassGroups([[0, 1], [2], [3]])
    assert FixedTree.grow(prob, lens=groups) == FixedTree.grow(groups.induced(prob))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: FixedTree([0], [0.0], [1]), ValueError, "one tree"),
        (lambda: FixedTree([0, 0, 0], [0.5, 0, 0], [1, -1]), ValueError, "equal lengths"),
        (lambda: FixedTree([0, 0, 0], [0.5, 0, 0], [-1, 1, -1]), ValueError, "one tree"),
        (lambda: FixedTree([-1, 0, 0], [0.5, 0, 0], [1, -1, -1]), ValueError, "from 0"),
        (lambda: FixedTree([], [], []), ValueError, "one tree"),
        (lambda: FixedTree(0, 0.5, 1), TypeError, "sequences"),
        (lambda: FixedTree([0, 0, 0], [np.nan, 0, 0], [1, -1, -1]), ValueError, "threshold"),
        (lambda: FixedTree([1.7, 0, 0], [0.5, 0, 0], [1, -1, -1]), TypeError, "integers"),
        (lambda: FixedTree("100", [0.5, 0, 0], [1, -1, -1]), TypeError, "integers"),
        (lambda: FixedTree([1, 0, 0], [0.5, 0, 0], [1, -2, -3]), ValueError, "-1 for no child"),
        (lambda: FixedTree.grow([[0.5, 0.25, 0.25]], lens=3), TypeError, "`lens`"),
        (lambda: FixedTree.grow([[0.5, 0.5]]), ValueError, "three outcomes"),
        (lambda: FixedTree.grow([[0.5, 0.25, 0.25]], caltest.EqualWidth(2)), TypeError, "VarianceTree"),
        (lambda: FixedTree([3, 0, 0], [0.5, 0, 0], [1, -1, -1]).fit(np.ones((1, 3)) / 3), ValueError, "outcome 3"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()
