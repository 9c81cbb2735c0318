"""Partitions against their loops."""

import tracemalloc
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.cells._partitions import Intervals, fit_partition
from caltest.results._naming import describe
from tests.reference import naive
from tests.reference.cases import check_refused, failures, mostly_slow
from tests.reference.examples import ALL_PARTITIONS, VIEWS


def event(values):
    """Probabilities of two outcomes."""
    values = np.asarray(values, dtype=float)
    return np.column_stack([1 - values, values])


def labels(partition, prob, new=None):
    """The labels of new rows, or of the fitted ones."""
    assign = fit_partition(partition, prob)
    return assign(prob if new is None else new)


def assert_same_cells(found, expected, case=""):
    """Two labellings are the same up to names."""
    pairs = set(zip(list(found), list(expected), strict=True))
    assert len(pairs) == len(set(found)) == len(set(expected)), case


def fits(partition, prob):
    """Whether a partition can cut so many outcomes."""
    return getattr(partition, "n_outcomes", None) in {None, prob.shape[1]}


def problems(partition):
    """Names and predictions of all views that a partition can cut and of which none shows the same as another."""
    shown = {(prob.shape, prob.tobytes()): (str(view), prob) for view in VIEWS for prob in view.induced[:1]}
    return [(name, prob) for name, prob in shown.values() if fits(partition, prob)]


def test_every_partition_has_an_example_and_a_twin(partition_classes):
    assert partition_classes
    for kind, has_example in partition_classes.items():
        assert has_example, f"{kind.__name__} needs an example in examples.PARTITIONS"
        assert kind in naive.PARTITIONS, f"{kind.__name__} needs a twin in naive.PARTITIONS"
        assert kind.__name__ in caltest.__all__


@pytest.mark.parametrize("share", mostly_slow([4, 1]))
def test_equals_the_loops(any_partition, share):
    """On every fourth of the problems, from another one on for each partition; on all if slow."""
    first = ALL_PARTITIONS.index(any_partition) % share
    for name, prob in problems(any_partition)[first::share]:
        found = labels(any_partition, prob)
        assert found.dtype == np.int64, name
        assert_same_cells(found, naive.cells(any_partition, prob), name)
        # Rows that come later fall to the cells of the fitted ones.
        fitted, new = prob[::2], np.vstack([prob, np.eye(prob.shape[1]), np.full((1, prob.shape[1]), 0.5)])
        assign = naive.fit(any_partition, fitted)
        assert_same_cells(labels(any_partition, fitted, new), [assign(p) for p in naive.plain(new)], name)


@pytest.mark.slow
def test_order_and_repetition_do_not_matter():
    for partition in ALL_PARTITIONS:
        for name, prob in problems(partition):
            order = np.random.default_rng(1).permutation(len(prob))
            assert_same_cells(labels(partition, prob)[order], labels(partition, prob[order]), (partition, name))
            twice = labels(partition, np.vstack([prob, prob]))
            np.testing.assert_array_equal(twice[: len(prob)], twice[len(prob) :], err_msg=f"{partition}, {name}")


def test_edge_cases():
    def check(partition):
        for prob in (event([0.3] * 12), np.tile([0.2, 0.3, 0.5], (12, 1))):
            if fits(partition, prob):
                assert len(set(labels(partition, prob))) == 1
            else:
                needed = "two-outcome lens such as Confidence()" if prob.shape[1] == 3 else "lens with three outcomes"
                message = f"`{type(partition).__name__}` needs a {needed}"
                check_refused(partition.fit, ValueError, message, prob)
        for values in ([0.0], [1.0], [0.0, 1.0], [0.0, 0.0, 1.0, 1.0, 1.0]):
            prob = event(values)
            prob = prob if fits(partition, prob) else np.column_stack([prob, 0 * prob[:, 0]])
            assert_same_cells(labels(partition, prob), naive.cells(partition, prob), values)

    assert failures({describe(partition): partition for partition in ALL_PARTITIONS}, check) == {}


def test_partitions_are_frozen_and_comparable():
    for partition in ALL_PARTITIONS[:-1]:  # the last one is a user's function
        same = replace(partition)
        assert same == partition
        assert hash(same) == hash(partition)
        with pytest.raises(FrozenInstanceError):
            partition.n_cells = 3
        known = {
            kind.__name__: kind for kind in (type(partition), caltest.EqualWidth, caltest.EqualMass, caltest.Edges)
        }
        assert eval(repr(partition), known) == partition


# Equal width.


def test_edges_are_the_doubles_k_over_n():
    for n_cells in (1, 2, 3, 7, 10, 15, 100):
        edges = [k / n_cells for k in range(n_cells)]
        assert labels(caltest.EqualWidth(n_cells), event(edges)).tolist() == list(range(n_cells))
        above = [k / n_cells for k in range(1, n_cells + 1)]
        assert labels(caltest.EqualWidth(n_cells, closed="right"), event(above)).tolist() == list(range(n_cells))


def test_ends_of_intervals():
    values = [0.0, 0.1, 0.3, np.nextafter(0.3, 0), 0.7, 0.95, 1.0]
    assert labels(caltest.EqualWidth(10), event(values)).tolist() == [0, 1, 3, 2, 7, 9, 9]
    assert labels(caltest.EqualWidth(10, closed="right"), event(values)).tolist() == [0, 0, 2, 2, 6, 9, 9]
    below, above = np.float32(0.7), np.float32(0.3)  # 0.699999988 and 0.300000012 as doubles
    assert labels(caltest.EqualWidth(10), event([below, above])).tolist() == [6, 3]


def test_free_axes_leave_out_the_last_class():
    prob = np.array([[0.3, 0.4, 0.3], [0.3, 0.49, 0.21]])  # the last class lies in quarter 1 and in quarter 0
    assert_same_cells(labels(caltest.EqualWidth(4), prob), [0, 0])
    assert_same_cells(labels(caltest.EqualWidth(4, axes="all"), prob), [0, 1])


@pytest.mark.parametrize("axes", ["free", "all"])
def test_ten_cells_on_ten_classes_cost_occupied_cells_only(axes):
    partition = caltest.EqualWidth(10, axes=axes)
    prob = np.random.default_rng(2).dirichlet(np.ones(10), size=200)
    tracemalloc.start()
    found = labels(partition, prob)
    cells_of(make_sample(np.zeros(200, dtype=int), prob), partition)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6  # bytes; the full grid has 1e9 cells or more
    assert_same_cells(found, naive.cells(partition, prob))


def test_a_grid_whose_cells_have_no_64_bit_number():
    """30 classes, 15 or 16 cells each: 4e35 cells or more."""
    rng = np.random.default_rng(3)
    prob = rng.dirichlet(np.full(30, 0.3), size=100)
    # Some rows differ on the first two axes only, some on the first and the last, which is free.
    prob = np.vstack([prob, prob[:, [1, 0, *range(2, 30)]], prob[:, [29, *range(1, 29), 0]]])
    new = rng.dirichlet(np.full(30, 0.3), size=50)
    for n_cells, closed in [(15, "left"), (15, "right"), (16, "left")]:
        for axes in ("free", "all"):
            partition = caltest.EqualWidth(n_cells, axes=axes, closed=closed)
            assert_same_cells(labels(partition, prob), naive.cells(partition, prob), partition)
            found = labels(partition, prob, np.vstack([prob, new]))
            assign = naive.fit(partition, prob)
            cells = [assign(p) for p in naive.plain(np.vstack([prob, new]))]
            known = set(cells[:300])
            assert_same_cells(found[:300], cells[:300], partition)
            for label, cell in zip(found[300:].tolist(), cells[300:], strict=True):
                where = cells.index(cell) if cell in known else None
                assert label == found[where] if where is not None else label not in set(found[:300].tolist())


def test_error_over_a_grid_of_many_classes():
    ece = caltest.ECE(caltest.EqualWidth(15, axes="all"))
    right, wrong = np.arange(30), np.roll(np.arange(30), 1)
    assert caltest.calibration_error(right, np.eye(30), statistic=ece) == 0
    assert caltest.calibration_error(wrong, np.eye(30), statistic=ece) == pytest.approx(1, rel=1e-12)


# Edges.


def test_edges_at_their_ends():
    values = event([0.0, 0.25, 0.5, 0.75, 1.0])
    assert labels(caltest.Edges([0.25, 0.75]), values).tolist() == [0, 1, 1, 2, 2]
    assert labels(caltest.Edges([0.25, 0.75], closed="right"), values).tolist() == [0, 0, 1, 1, 2]
    assert caltest.Edges(np.array([0.25, 0.75])) == caltest.Edges([0.25, 0.75])
    assert isinstance(fit_partition(caltest.Edges([0.5]), values), Intervals)


# What a partition may be.


def test_a_users_function_is_a_partition():
    def halves(prob):
        return np.where(prob[:, 1] < 0.5, -3, 10**12)

    options = {"y_true": [0, 1, 1], "y_prob": [0.25, 0.5, 0.75]}
    expected = caltest.calibration_error(**options, statistic=caltest.ECE(caltest.EqualWidth(2)))
    assert caltest.calibration_error(**options, statistic=caltest.ECE(halves)) == expected
    booleans = caltest.ECE(lambda prob: prob[:, 1] < 0.5)
    assert caltest.calibration_error([0, 1], [0.25, 0.75], statistic=booleans) == 0.25


def test_what_the_contract_defaults_to():
    class Halves(caltest.predictions.Partition):
        def fit(self, prob):
            return lambda new: (new[:, 1] >= 0.5).astype(np.int32)

    halves = Halves()
    assert halves.n_outcomes is None
    assert (halves.depends_on_sample, halves.refits, halves.refits_classes) == (True, False, False)
    for refit in (halves.refit, halves.refit_classes):
        with pytest.raises(NotImplementedError):
            refit(*[None] * (2 if refit == halves.refit else 3))
    assert labels(halves, event([0.2, 0.7])).tolist() == [0, 1]
    with pytest.raises(TypeError, match="abstract"):
        caltest.predictions.Partition()


COUNTS = '`n_cells` must be an integer >= 1, "sqrt" or "cube-root", got '
EDGES = "`edges` must be strictly increasing and strictly between 0 and 1, got "
PARTITION = "`partition` must be a partition such as EqualWidth(15) or a function, got "
REFUSED = {
    "n_cells 0": (ValueError, lambda: caltest.EqualWidth(0), COUNTS + "0."),
    "n_cells 10.0": (TypeError, lambda: caltest.EqualWidth(10.0), COUNTS + "10.0."),
    "n_cells True": (TypeError, lambda: caltest.EqualWidth(True), COUNTS + "True."),
    "n_cells another text": (ValueError, lambda: caltest.EqualMass("5"), COUNTS + "'5'."),
    "axes": (
        ValueError,
        lambda: caltest.EqualWidth(10, axes="some"),
        "`axes` must be one of 'free', 'all', got 'some'",
    ),
    "closed": (
        ValueError,
        lambda: caltest.EqualWidth(9, closed="both"),
        "`closed` must be one of 'left', 'right', 'outer', got",
    ),
    "closed no text": (
        TypeError,
        lambda: caltest.EqualWidth(9, closed=None),
        "`closed` must be one of 'left', 'right'",
    ),
    "equal mass 0": (ValueError, lambda: caltest.EqualMass(0), COUNTS + "0."),
    "cut": (
        ValueError,
        lambda: caltest.EqualMass(5, cut="some"),
        "`cut` must be one of 'value', 'floor', 'halfway', got 'some'.",
    ),
    "no edges": (ValueError, lambda: caltest.Edges([]), EDGES + "()."),
    "equal edges": (ValueError, lambda: caltest.Edges([0.5, 0.5]), EDGES + "(0.5, 0.5)."),
    "decreasing edges": (ValueError, lambda: caltest.Edges([0.5, 0.2]), EDGES + "(0.5, 0.2)."),
    "an edge at 0": (ValueError, lambda: caltest.Edges([0.0, 0.5]), EDGES),
    "an edge at 1": (ValueError, lambda: caltest.Edges([0.5, 1.0]), EDGES),
    "an edge NaN": (ValueError, lambda: caltest.Edges([0.5, np.nan]), EDGES),
    "edges a number": (TypeError, lambda: caltest.Edges(0.5), "`edges` must be a sequence of numbers, got 0.5."),
    "edges a text": (TypeError, lambda: caltest.Edges("half"), "`edges` must be a sequence of numbers, got 'half'."),
    "closed edges": (ValueError, lambda: caltest.Edges([0.5], closed="no"), "`closed` must be one of 'left', 'right'"),
    "against rest k": (ValueError, lambda: caltest.AgainstRest(-1), "`k` must be an integer >= 0, got -1."),
    "against rest partition": (TypeError, lambda: caltest.AgainstRest(0, 3), PARTITION + "3."),
    "against rest class": (
        TypeError,
        lambda: caltest.AgainstRest(0, caltest.EqualWidth),
        PARTITION + "<class 'caltest.predictions.cells._partitions.EqualWidth'>.",
    ),
    "against rest unhashable": (
        TypeError,
        lambda: caltest.AgainstRest(0, Unhashable()),
        "`partition` must be hashable, such as a frozen dataclass, got",
    ),
    "against rest of no outcome": (
        ValueError,
        lambda: caltest.AgainstRest(3).fit(np.full((4, 3), 1 / 3)),
        "`k` must be less than the number of outcomes, 3, got 3.",
    ),
}


class Unhashable:
    """A user's function object that cannot be hashed."""

    __hash__ = None

    def __call__(self, prob):
        return np.zeros(len(prob), dtype=int)


def test_bad_parameters_are_refused_when_a_partition_is_made():
    assert failures(REFUSED, lambda case: check_refused(case[1], case[0], case[2])) == {}


@pytest.mark.parametrize("n_cells", [1, 3, 5, 15, 99, 999])
def test_outer_cells_of_the_complement_are_mirror_images(n_cells):
    """Whatever rounding does to 1 - p, next to the edges and anywhere; away from the edges they are equal cells."""
    rng = np.random.default_rng(n_cells)
    edges = np.arange(n_cells + 1) / n_cells
    near = [np.nextafter(edges, 2), np.nextafter(edges, -1), edges * (1 + 3e-16), 1 - edges, np.arange(101) / 100]
    values = np.clip(np.concatenate([edges, *near, rng.random(500)]), 0, 1)
    cells = caltest.EqualWidth(n_cells, closed="outer")
    assert np.array_equal(labels(cells, event(values)), n_cells - 1 - labels(cells, event(1 - values)))
    inside = (edges[:-1] + edges[1:]) / 2
    assert labels(cells, event(inside)).tolist() == list(range(n_cells))
    if n_cells == 15:
        assert labels(cells, event(np.array([0.2, 0.8]))).tolist() == [2, 12]


@pytest.mark.parametrize(
    "make",
    [
        lambda n: caltest.calibration_error([0, 1], [0.5, 0.75], statistic=caltest.ECE(caltest.EqualMass(n))),
        lambda n: caltest.calibration_test([0, 1], [0.5, 0.75], statistic=caltest.ECE(caltest.EqualWidth(n))),
        lambda n: caltest.reliability_curve([0, 1], [0.5, 0.75], partition=caltest.EqualWidth(n)),
        caltest.EqualSpread,
        lambda n: caltest.statistics.GCE(n_cells=n),
        lambda n: caltest.estimation.prediction_distribution([0.5, 0.75], n_cells=n),
        caltest.SimplexGrid,
    ],
)
def test_more_than_memory_has_room_for_is_refused(make):
    """With the argument and the greatest value, before anything is allocated."""
    with pytest.raises(ValueError, match=r"^`\w+` must be at most [\d,]+, .*got [\d,]+\.$"):
        make(10**9)
