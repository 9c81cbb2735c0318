"""Cells of equal spread: equal sums of standard deviations, mirrored cells, and ties that stay together."""

import numpy as np
import pytest

import caltest as ct


def event(p):
    p = np.asarray(p, dtype=float)
    return np.column_stack([1 - p, p])


def labels(n_cells, p):
    return ct.EqualSpread(n_cells).fit(event(p))(event(p))


def test_every_cell_has_the_same_sum_of_standard_deviations():
    """Up to half of an observation at either end of a cell, whose standard deviation is at most 1/2."""
    p = np.random.default_rng(0).beta(0.1, 0.4, 3000)
    spread = np.bincount(labels(15, p), np.sqrt(p * (1 - p)))
    assert len(spread) == 15
    np.testing.assert_allclose(spread, spread.mean(), atol=0.5)


@pytest.mark.parametrize("n_cells", [1, 3, 5, 15])
def test_the_complement_has_mirrored_cells(n_cells):
    rng = np.random.default_rng(n_cells)
    for case, p in (
        ("even", rng.random(500)),
        ("sharp", rng.beta(0.05, 0.05, 500)),
        ("certain", np.repeat([0.0, 1.0], [400, 100])),
        ("half zeros", np.append(np.zeros(300), rng.random(300))),
        ("boundaries between ties", np.tile([0.1, 0.2, 0.5, 0.8, 0.9], 60)),
        ("decimals", np.round(rng.random(500), 1)),
        ("next to 0", 10.0 ** -rng.uniform(0, 20, 500)),
        ("constant", np.full(10, 0.3)),
        ("two", np.array([0.2, 0.9])),
        ("one", np.array([0.7])),
    ):
        there, back = labels(n_cells, p), labels(n_cells, 1 - p)
        assert np.array_equal(there, there.max() - back), case
        assert np.array_equal(np.argsort(p, kind="stable"), np.lexsort((p, there))), case


def test_ties_and_neighbouring_numbers():
    assert labels(3, np.full(9, 0.3)).tolist() == [0] * 9
    assert labels(5, [0.0, 1.0, 0.0]).tolist() == [0, 1, 0]
    close = np.nextafter(0.5, [0, 1])
    assert labels(2, np.append(close, 0.5)).tolist() == [0, 1, 1]
    fitted = ct.EqualSpread(2).fit(event([0.2, 0.8]))
    assert fitted(event([0.0, 0.49, 0.5, 1.0])).tolist() == [0, 0, 1, 1]
