"""Cells with equal numbers of observations: where they are cut, and ties; see also the loops in test_partitions."""

import numpy as np

import caltest
from tests.predictions.cells.test_partitions import assert_same_cells, event, labels


def test_equal_mass_cuts_as_array_split_does():
    for n, n_cells in [(10, 3), (12, 4), (11, 4), (7, 7), (100, 15)]:
        values = np.random.default_rng(n).permutation(n) / n
        found = labels(caltest.EqualMass(n_cells), event(values))
        for cell, block in enumerate(np.array_split(np.sort(values), n_cells)):
            assert sorted(values[found == cell]) == block.tolist(), (n, n_cells)


def test_equal_mass_keeps_ties_together():
    for values, n_cells, expected in [
        ([0.5, 0.5, 0.5, 0.5], 3, [0, 0, 0, 0]),
        ([0.1, 0.2, 0.2, 0.2, 0.7, 0.9], 3, [0, 0, 0, 0, 1, 1]),
        ([0.1, 0.1, 0.1, 0.2, 0.3, 0.4], 2, [0, 0, 0, 1, 1, 1]),
        ([0.1, 0.1, 0.1, 0.1, 0.3, 0.4], 2, [0, 0, 0, 0, 1, 1]),
        ([0.1, 0.2, 0.3], 50, [0, 1, 2]),
        ([0.1, 0.2, 0.2], 50, [0, 1, 1]),
        ([0.0, 1.0], 2, [0, 1]),
        ([0.25], 1, [0]),
    ]:
        assert_same_cells(labels(caltest.EqualMass(n_cells), event(values)), expected, f"{n_cells} cells of {values}")


def test_new_observations_in_equal_mass_cells():
    assign = caltest.EqualMass(2).fit(event([0.2, 0.4, 0.6, 0.8]))
    assert assign(event([0.0, 0.2, 0.5, np.nextafter(0.6, 0), 0.6, 1.0])).tolist() == [0, 0, 0, 0, 1, 1]


def test_cuts_at_multiples_of_the_rounded_size():
    """Nixon et al., section 4.2: range r ends at rank r floor(N / R), and the last one takes the rest."""
    for n, n_cells in [(10, 3), (12, 4), (11, 4), (7, 7), (100, 15), (29, 15), (3, 50)]:
        values = np.random.default_rng(n).permutation(n) / n
        found, size, cells = labels(caltest.EqualMass(n_cells, cut="floor"), event(values)), max(n // n_cells, 1), []
        for r in range(min(n_cells, n)):
            last = r == min(n_cells, n) - 1
            cells.append(sorted(values)[r * size : n if last else (r + 1) * size])
        for r, block in enumerate(cells):
            assert sorted(values[found == r]) == block, (n, n_cells)
        between = labels(caltest.EqualMass(n_cells, cut="halfway"), event(values))
        assert between.tolist() == found.tolist(), "without ties as in the code of Posocco and Bonnefoy"
    assert_same_cells(labels(caltest.EqualMass(2, cut="floor"), event([0.1, 0.2, 0.2, 0.3, 0.9])), [0, 0, 0, 1, 1], "")


def test_resampled_cells_are_those_of_the_copied_observations():
    rng = np.random.default_rng(0)
    values = np.sort(rng.integers(0, 9, 23)) / 10
    drawn = rng.multinomial(23, np.full(23, 1 / 23), size=5).astype(np.uint16)
    partition = caltest.EqualMass(4, cut="floor")
    for count, starts in zip(drawn, partition.refit(values, drawn), strict=True):
        copied = np.repeat(values, count)
        cell = np.repeat(np.searchsorted(starts, np.arange(23), side="right"), count)
        assert_same_cells(cell, labels(partition, event(copied)).tolist(), "")


def test_halfway_cuts():
    """Edges lie between the last value of a cell and the first of the next; the last cell takes the remainder."""
    for values, n_cells, expected in [
        ([0.1, 0.2, 0.3, 0.4, 0.5], 2, [0, 0, 1, 1, 1]),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 3, [0, 0, 1, 1, 2, 2, 2, 2]),
        ([0.1, 0.5, 0.5, 0.5, 0.5, 0.9], 3, [0, 2, 2, 2, 2, 2]),  # both edges are 0.5 or below it
        ([0.2, 0.2, 0.2], 2, [1, 1, 1]),
        ([0.4, 0.1], 5, [1, 0]),  # no more cells than observations
    ]:
        partition = caltest.EqualMass(n_cells, cut="halfway")
        assert_same_cells(labels(partition, event(values)), expected, f"{n_cells} cells of {values}")
        between = partition.fit(event([0.1, 0.5]))
        assert between(event([0.29, 0.3, 0.31])).tolist() == [0, 1, 1], n_cells
