"""Partitions and cell sums against their loops."""

import tracemalloc
from dataclasses import FrozenInstanceError, replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from caltest.predictions._partitions import fit_partition
from caltest.predictions._sample import Cells, CellSums, make_sample
from tests.reference import naive
from tests.reference.examples import PARTITIONS, flat

EXACT = {"rtol": 1e-12, "atol": 1e-12}

TWO_OUTCOMES = (caltest.EqualMass, caltest.Edges)


def event(values):
    """Probabilities of two outcomes."""
    values = np.asarray(values, dtype=float)
    return np.column_stack([1 - values, values])


def labels(partition, prob, new=None):
    """The labels of new rows, or of the fitted ones."""
    assign = fit_partition(partition, prob)
    return assign(prob if new is None else new)


def sizes(partition, prob):
    """Rows in each cell, in the order of the labels."""
    return np.unique(labels(partition, prob), return_counts=True)[1].tolist()


def assert_same_cells(found, expected):
    """Two labellings are the same up to names."""
    pairs = set(zip(list(found), list(expected), strict=True))
    assert len(pairs) == len(set(found)) == len(set(expected))


def fits(partition, prob):
    """Whether a partition can cut so many outcomes."""
    return prob.shape[1] == 2 or not isinstance(partition, TWO_OUTCOMES)


def test_every_partition_has_an_example_and_a_twin(partition_classes):
    assert partition_classes
    for kind, has_example in partition_classes.items():
        assert has_example, f"{kind.__name__} needs an example in conftest.PARTITIONS"
        assert kind in naive.PARTITIONS, f"{kind.__name__} needs a twin in naive.PARTITIONS"
        assert kind.__name__ in caltest.__all__


def test_equals_the_loops(views, any_partition):
    for view in views:
        prob, _ = view.induced
        if fits(any_partition, prob):
            assert_same_cells(labels(any_partition, prob), naive.cells(any_partition, prob))


def test_partitions_of_one_probability_refuse_more_outcomes(any_partition):
    prob = np.full((4, 3), 1 / 3)
    if fits(any_partition, prob):
        assert len(set(labels(any_partition, prob))) == 1
    else:
        name = type(any_partition).__name__
        with pytest.raises(ValueError, match=rf"`{name}` needs a two-outcome lens such as Confidence\(\), got 3"):
            any_partition.fit(prob)


def test_new_rows_fall_to_the_cells_of_the_fitted(views, any_partition):
    for view in views:
        prob, _ = view.induced
        if not fits(any_partition, prob):
            continue
        fitted, new = prob[::2], np.vstack([prob, np.eye(prob.shape[1]), np.full((1, prob.shape[1]), 0.5)])
        assign = naive.fit(any_partition, fitted)
        assert_same_cells(labels(any_partition, fitted, new), [assign(p) for p in naive.plain(new)])


def test_row_order_does_not_matter(views, any_partition):
    for view in views:
        prob, _ = view.induced
        if fits(any_partition, prob):
            order = np.random.default_rng(1).permutation(len(prob))
            assert_same_cells(labels(any_partition, prob)[order], labels(any_partition, prob[order]))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_cell_sums_equal_the_loops(views, any_partition, weighted):
    for view in views:
        if not fits(any_partition, view.induced[0]):
            continue
        weight = view.problem.weight if weighted else None
        sample = make_sample(view.y_true, view.y_prob, lens=view.lens, sample_weight=weight)
        cells = sample.cells(any_partition)
        outcomes = np.stack([sample.outcome, (sample.outcome + 1) % sample.n_outcomes])[:, None].astype(np.uint8)
        sums = CellSums.of(sample, cells, outcomes)
        assert sums.observed_count.shape == (2, 1, cells.n_cells, sample.n_outcomes)
        for r in range(2):
            expected = naive.cell_sums(cells.index.tolist(), sample.prob, outcomes[r, 0].tolist(), sample.weight)
            count, predicted, observed = zip(*(expected[label] for label in range(cells.n_cells)), strict=True)
            np.testing.assert_allclose(sums.count, count, **EXACT)
            np.testing.assert_allclose(sums.predicted_sum, predicted, **EXACT)
            np.testing.assert_allclose(sums.observed_count[r, 0], observed, **EXACT)
        assert sums.share.sum() == pytest.approx(1, rel=1e-12)


def test_cell_sums_of_nothing_are_zero():
    sample = make_sample([0, 1, 1], [0.25, 0.25, 0.75], sample_weight=[1.0, 2.0, 0.0])
    sums = CellSums.of(sample, sample.cells(caltest.EqualWidth(2)), sample.outcome)
    np.testing.assert_array_equal(sums.predicted, [[0.75, 0.25], [0, 0]])
    np.testing.assert_allclose(sums.observed, [[1 / 3, 2 / 3], [0, 0]], **EXACT)


@st.composite
def halves(draw):
    """Two samples of 3-class rows that both occupy the cells around the corners of the simplex."""
    corners = [[0.75, 0.125, 0.125], [0.125, 0.75, 0.125], [0.125, 0.125, 0.75]]
    return [
        [(corners[k], draw(st.integers(0, 2))) for k in [0, 1, 2, *draw(st.lists(st.integers(0, 2), max_size=8))]]
        for _ in range(2)
    ]


@given(halves=halves(), weighted=st.booleans())
@settings(deadline=None, derandomize=True, database=None)
def test_cell_sums_of_parts_add_up(halves, weighted):
    def sums(rows):
        prob, outcome = zip(*rows, strict=True)
        weight = np.arange(1.0, len(rows) + 1) if weighted else None
        sample = make_sample(outcome, prob, sample_weight=weight)
        return CellSums.of(sample, Cells.of(sample, caltest.EqualWidth(2)), sample.outcome)

    def joined(rows):
        prob, outcome = zip(*rows, strict=True)
        weight = np.concatenate([np.arange(1.0, len(half) + 1) for half in halves]) if weighted else None
        sample = make_sample(outcome, prob, sample_weight=weight)
        return CellSums.of(sample, Cells.of(sample, caltest.EqualWidth(2)), sample.outcome)

    together, whole = sums(halves[0]) + sums(halves[1]), joined(halves[0] + halves[1])
    for name in ("count", "predicted_sum", "observed_count", "share", "predicted", "observed"):
        np.testing.assert_allclose(getattr(together, name), getattr(whole, name), **EXACT)


# Equal width.


@pytest.mark.parametrize(
    ("value", "left", "right"),
    [(0.0, 0, 0), (0.1, 1, 0), (0.3, 3, 2), (np.nextafter(0.3, 0), 2, 2), (0.7, 7, 6), (0.95, 9, 9), (1.0, 9, 9)],
)
def test_ends_of_intervals(value, left, right):
    assert labels(caltest.EqualWidth(10), event([value])).tolist() == [left]
    assert labels(caltest.EqualWidth(10, closed="right"), event([value])).tolist() == [right]


@pytest.mark.parametrize("n_cells", [1, 2, 3, 7, 10, 15, 100])
def test_edges_are_the_doubles_k_over_n(n_cells):
    edges = [k / n_cells for k in range(n_cells)]
    assert labels(caltest.EqualWidth(n_cells), event(edges)).tolist() == list(range(n_cells))
    above = [k / n_cells for k in range(1, n_cells + 1)]
    assert labels(caltest.EqualWidth(n_cells, closed="right"), event(above)).tolist() == list(range(n_cells))


def test_float32_edges_are_compared_exactly():
    below, above = np.float32(0.7), np.float32(0.3)  # 0.699999988 and 0.300000012 as doubles
    assert labels(caltest.EqualWidth(10), event([below, above])).tolist() == [6, 3]


def test_free_axes_leave_out_the_last_class():
    prob = np.array([[0.3, 0.4, 0.3], [0.3, 0.49, 0.21]])  # the last class lies in quarter 1 and in quarter 0
    assert_same_cells(labels(caltest.EqualWidth(4), prob), [0, 0])
    assert_same_cells(labels(caltest.EqualWidth(4, axes="all"), prob), [0, 1])


@pytest.mark.parametrize("axes", ["free", "all"])
def test_ten_cells_on_ten_classes_cost_occupied_cells_only(axes):
    prob = np.random.default_rng(2).dirichlet(np.ones(10), size=200)
    tracemalloc.start()
    found = labels(caltest.EqualWidth(10, axes=axes), prob)
    sample = make_sample(np.zeros(200, dtype=int), prob)
    sample.cells(caltest.EqualWidth(10, axes=axes))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6  # bytes; the full grid has 1e9 cells or more
    assert_same_cells(found, naive.cells(caltest.EqualWidth(10, axes=axes), prob))


@pytest.mark.parametrize("axes", ["free", "all"])
@pytest.mark.parametrize(("n_cells", "closed"), [(15, "left"), (15, "right"), (16, "left")])
def test_a_grid_whose_cells_have_no_64_bit_number(axes, n_cells, closed):
    """30 classes, 15 or 16 cells each: 4e35 cells or more."""
    partition = caltest.EqualWidth(n_cells, axes=axes, closed=closed)
    rng = np.random.default_rng(3)
    prob = rng.dirichlet(np.full(30, 0.3), size=100)
    # Some rows differ on the first two axes only, some on the first and the last, which is free.
    prob = np.vstack([prob, prob[:, [1, 0, *range(2, 30)]], prob[:, [29, *range(1, 29), 0]]])
    assert_same_cells(labels(partition, prob), naive.cells(partition, prob))
    new = rng.dirichlet(np.full(30, 0.3), size=50)
    found = labels(partition, prob, np.vstack([prob, new]))
    assign = naive.fit(partition, prob)
    cells = [assign(p) for p in naive.plain(np.vstack([prob, new]))]
    known = set(cells[:300])
    assert_same_cells(found[:300], cells[:300])
    for label, cell in zip(found[300:].tolist(), cells[300:], strict=True):
        where = cells.index(cell) if cell in known else None
        assert label == found[where] if where is not None else label not in set(found[:300].tolist())


def test_error_over_a_grid_of_many_classes():
    ece = caltest.ECE(caltest.EqualWidth(15, axes="all"))
    right, wrong = np.arange(30), np.roll(np.arange(30), 1)
    assert caltest.calibration_error(right, np.eye(30), statistic=ece) == 0
    assert caltest.calibration_error(wrong, np.eye(30), statistic=ece) == pytest.approx(1, rel=1e-12)


# Equal mass, edges.


@pytest.mark.parametrize(("n", "n_cells"), [(10, 3), (12, 4), (11, 4), (7, 7), (100, 15)])
def test_equal_mass_cuts_as_array_split_does(n, n_cells):
    values = np.random.default_rng(n).permutation(n) / n
    found = labels(caltest.EqualMass(n_cells), event(values))
    for cell, block in enumerate(np.array_split(np.sort(values), n_cells)):
        assert sorted(values[found == cell]) == block.tolist()


@pytest.mark.parametrize(
    ("values", "n_cells", "expected"),
    [
        ([0.5, 0.5, 0.5, 0.5], 3, [0, 0, 0, 0]),
        ([0.1, 0.2, 0.2, 0.2, 0.7, 0.9], 3, [0, 0, 0, 0, 1, 1]),
        ([0.1, 0.1, 0.1, 0.2, 0.3, 0.4], 2, [0, 0, 0, 1, 1, 1]),
        ([0.1, 0.1, 0.1, 0.1, 0.3, 0.4], 2, [0, 0, 0, 0, 1, 1]),
        ([0.1, 0.2, 0.3], 50, [0, 1, 2]),
        ([0.1, 0.2, 0.2], 50, [0, 1, 1]),
        ([0.0, 1.0], 2, [0, 1]),
        ([0.25], 1, [0]),
    ],
)
def test_equal_mass_keeps_ties_together(values, n_cells, expected):
    assert_same_cells(labels(caltest.EqualMass(n_cells), event(values)), expected)


def test_new_rows_in_equal_mass_cells():
    assign = caltest.EqualMass(2).fit(event([0.2, 0.4, 0.6, 0.8]))
    assert assign(event([0.0, 0.2, 0.5, np.nextafter(0.6, 0), 0.6, 1.0])).tolist() == [0, 0, 0, 0, 1, 1]


def test_edges_at_their_ends():
    values = event([0.0, 0.25, 0.5, 0.75, 1.0])
    assert labels(caltest.Edges([0.25, 0.75]), values).tolist() == [0, 1, 1, 2, 2]
    assert labels(caltest.Edges([0.25, 0.75], closed="right"), values).tolist() == [0, 0, 1, 1, 2]
    assert caltest.Edges(np.array([0.25, 0.75])) == caltest.Edges([0.25, 0.75])


# The tree.


def test_leaf_rule_cuts_at_the_upper_middle_value():
    tree = caltest.VarianceTree(min_leaf=2)
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.4])) == [2, 2]
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.4, 0.5])) == [2, 3]
    assert sizes(tree, event([0.1, 0.2, 0.3])) == [3]
    assert sizes(tree, event([0.1, 0.3, 0.3, 0.3])) == [4]
    assert sizes(tree, event([0.1, 0.2, 0.3, 0.3])) == [2, 2]


def test_leaf_rule_tries_no_other_class():
    # Class 0 varies most and cannot be cut, class 1 could.
    prob = np.array([[1.0, 0, 0], [0, 0.4, 0.6], [0, 0.5, 0.5], [0, 0.45, 0.55]])
    assert sizes(caltest.VarianceTree(min_leaf=1), prob)[0] == 4
    assert sizes(caltest.VarianceTree(min_leaf=2), prob) == [4]


@pytest.mark.parametrize(
    ("values", "split", "expected"),
    [
        ([0.0, 0.0, 0.0, 1.0], "median", [4]),  # the median is 0: nothing lies below
        ([0.0, 0.0, 0.0, 1.0], "mean", [3, 1]),
        ([0.0, 0.0, 0.5, 1.0], "median", [2, 2]),  # the average 0.25 of the middle values
        ([0.0, 1.0, 1.0, 1.0], "mean", [1, 3]),
        ([0.5, 0.5, 0.5, 0.5], "mean", [4]),
        ([0.0, 0.125, 0.25, 1.0], "mean", [3, 1]),
    ],
)
def test_split_rule(values, split, expected):
    assert sizes(caltest.VarianceTree(split=split, min_split=4), event(values)) == expected


def test_smallest_node_that_is_split():
    prob = event(np.arange(9) / 16)
    assert sizes(caltest.VarianceTree(min_split=9), prob) == [4, 5]
    assert sizes(caltest.VarianceTree(min_split=10), prob) == [9]
    assert sizes(caltest.VarianceTree(min_split=5), prob) == [4, 2, 3]


def test_max_cells_splits_the_largest_variance_first():
    prob = event([0.0, 0.01, 0.02, 0.03, 0.6, 0.7, 0.9, 1.0])
    assert sizes(caltest.VarianceTree(min_leaf=2, max_cells=3), prob) == [4, 2, 2]
    assert sizes(caltest.VarianceTree(min_leaf=2), prob) == [2, 2, 2, 2]
    assert sizes(caltest.VarianceTree(min_leaf=2, max_cells=1), prob) == [8]


@pytest.mark.parametrize(
    ("n", "n_cells"), [(1, 1), (100, 4), (500, 8), (2000, 8), (5000, 16), (10_000, 16), (100_000, 32)]
)
@pytest.mark.parametrize("n_classes", [2, 10])
def test_default_number_of_cells(n, n_cells, n_classes):
    """Two to the power 0.3 log2 n, rounded; a cell keeps at least 0.7 n / n_cells rows."""
    prob = np.random.default_rng(n).dirichlet(np.ones(n_classes), size=n)
    found = sizes(caltest.VarianceTree(), prob)
    assert len(found) == n_cells
    assert min(found) >= max(1, int(0.7 * n / n_cells))


@pytest.mark.parametrize("n", [6, 60])
@pytest.mark.parametrize(
    "tree",
    [
        caltest.VarianceTree(),
        caltest.VarianceTree(min_leaf=1, max_cells=2),
        caltest.VarianceTree(min_leaf=2, max_cells=3),
        caltest.VarianceTree(min_split=6, max_cells=2),
        caltest.VarianceTree(split="mean", min_split=6, max_cells=2),
    ],
    ids=repr,
)
def test_ties_of_the_variance_go_to_the_first_class_in_any_row_order(n, tree):
    """Every order of the same three numbers: all classes have the same variance, and the first is split."""
    prob = np.repeat(list(permutations([0.1, 0.2, 0.7])), n // 6, axis=0)
    expected = naive.cells(tree, prob)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(n)
        assert_same_cells(labels(tree, prob[order]), [expected[i] for i in order])


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_value_at_the_mean_lies_above_it_in_any_row_order(order):
    """The mean of 0.1, 0.2 and 0.3 is 0.2; summed one after the other it is a little more or a little less."""
    # FAILS while VarianceTree(split="mean") takes numpy.mean of the rows in their order; math.fsum has none.
    prob = np.array([[0.1, 0.45, 0.45], [0.2, 0.4, 0.4], [0.3, 0.35, 0.35]])[list(order)]
    tree = caltest.VarianceTree(split="mean", min_split=3)
    assert_same_cells(labels(tree, prob), naive.cells(tree, prob))
    assert_same_cells(labels(tree, prob), prob[:, 0] >= 0.2)


# Edge cases of all.


def test_constant_predictions_share_a_cell(any_partition):
    for prob in (event([0.3] * 12), np.tile([0.2, 0.3, 0.5], (12, 1))):
        if fits(any_partition, prob):
            assert sizes(any_partition, prob) == [12]


@pytest.mark.parametrize("values", [[0.0], [1.0], [0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0]])
def test_predictions_of_zero_and_one(any_partition, values):
    prob = event(values)
    assert_same_cells(labels(any_partition, prob), naive.cells(any_partition, prob))


def test_equal_rows_share_a_cell(views, any_partition):
    for view in views:
        prob, _ = view.induced
        if fits(any_partition, prob):
            twice = labels(any_partition, np.vstack([prob, prob]))
            np.testing.assert_array_equal(twice[: len(prob)], twice[len(prob) :])


def test_a_users_function_is_a_partition():
    def halves(prob):
        return np.where(prob[:, 1] < 0.5, -3, 10**12)

    ece = caltest.ECE(halves)
    expected = caltest.calibration_error([0, 1, 1], [0.25, 0.5, 0.75], statistic=caltest.ECE(caltest.EqualWidth(2)))
    assert caltest.calibration_error([0, 1, 1], [0.25, 0.5, 0.75], statistic=ece) == expected


def test_boolean_cells_of_a_users_function():
    ece = caltest.ECE(lambda prob: prob[:, 1] < 0.5)
    assert caltest.calibration_error([0, 1], [0.25, 0.75], statistic=ece) == 0.25


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (caltest.EqualWidth, r"`partition` must be a partition such as EqualWidth\(15\) or a function"),
        (15, r"`partition` must be a partition .* got 15"),
        (lambda p: p[:, 1], r"`partition` must return an integer cell number per row, shape \(3,\), got float64"),
        (lambda p: np.zeros(1, dtype=int), r"`partition` must return an integer .* of shape \(1,\)"),
        (lambda p: np.zeros((len(p), 1), dtype=int), r"`partition` must return an integer .* of shape \(3, 1\)"),
    ],
)
def test_what_is_no_partition(partition, message):
    with pytest.raises(ValueError, match=message):
        caltest.calibration_error([0, 1, 1], [0.25, 0.5, 0.75], statistic=caltest.ECE(partition))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.EqualWidth(0), r'`n_cells` must be an integer >= 1 or "sqrt", got 0'),
        (lambda: caltest.EqualWidth(10.0), r'`n_cells` must be an integer >= 1 or "sqrt", got 10.0'),
        (lambda: caltest.EqualWidth(True), r'`n_cells` must be an integer >= 1 or "sqrt", got True'),
        (lambda: caltest.EqualWidth(10, axes="some"), r"`axes` must be one of 'free', 'all', got 'some'"),
        (lambda: caltest.EqualWidth(10, closed="both"), r"`closed` must be one of 'left', 'right', got 'both'"),
        (lambda: caltest.EqualMass(0), r'`n_cells` must be an integer >= 1 or "sqrt", got 0'),
        (lambda: caltest.EqualMass("5"), r'`n_cells` must be an integer >= 1 or "sqrt", got .5.'),
        (lambda: caltest.Edges([]), r"`edges` must be strictly increasing and strictly between 0 and 1, got \(\)"),
        (lambda: caltest.Edges([0.5, 0.5]), r"`edges` must be strictly increasing"),
        (lambda: caltest.Edges([0.5, 0.2]), r"`edges` must be strictly increasing"),
        (lambda: caltest.Edges([0.0, 0.5]), r"strictly between 0 and 1"),
        (lambda: caltest.Edges([0.5, 1.0]), r"strictly between 0 and 1"),
        (lambda: caltest.Edges([0.5, np.nan]), r"`edges` must be strictly increasing"),
        (lambda: caltest.Edges([0.5], closed="none"), r"`closed` must be one of 'left', 'right', got 'none'"),
        (lambda: caltest.VarianceTree(split="mode"), r"`split` must be one of 'median', 'mean', got 'mode'"),
        (lambda: caltest.VarianceTree(min_leaf=0), r"`min_leaf` must be an integer >= 1, got 0"),
        (lambda: caltest.VarianceTree(min_split=2.5), r"`min_split` must be an integer >= 1, got 2.5"),
        (lambda: caltest.VarianceTree(max_cells=0), r"`max_cells` must be an integer >= 1, got 0"),
        (lambda: caltest.VarianceTree(min_leaf=5, min_split=10), r"`min_leaf` and `min_split` exclude each other"),
        (lambda: caltest.VarianceTree(split="mean"), r'split="mean" needs `min_split`, got None'),
        (lambda: caltest.VarianceTree(split="mean", min_leaf=5), r'split="mean" needs `min_split`, got None'),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("partition", flat(PARTITIONS), ids=repr)
def test_partitions_are_frozen_and_comparable(partition):
    same = replace(partition)
    assert same == partition
    assert hash(same) == hash(partition)
    with pytest.raises(FrozenInstanceError):
        partition.n_cells = 3
