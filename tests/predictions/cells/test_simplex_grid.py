"""Triangular cells: every prediction has one, decimals are exact, and permuted classes have mirrored cells."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import caltest
from tests.reference import naive
from tests.reference.cases import check_refused
from tests.reference.examples import draw_labels


def labels(n, prob):
    prob = np.asarray(prob, dtype=float)
    return caltest.SimplexGrid(n).fit(prob)(prob)


def lattice(n):
    """All points where lines of the grid meet, as whole numbers."""
    return np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])


def test_cells_are_congruent_triangles_that_fill_the_simplex():
    for n in (1, 2, 3, 5, 10):
        corners = caltest.SimplexGrid(n).corners
        assert corners.shape == (n * n, 3, 3)
        assert corners.min() == 0
        np.testing.assert_allclose(corners.sum(axis=2), 1, rtol=1e-15)
        for a, b in ((0, 1), (0, 2), (1, 2)):
            np.testing.assert_allclose(np.abs(corners[:, a] - corners[:, b]).sum(axis=1), 2 / n, rtol=1e-12)
        assert labels(n, corners.mean(axis=1)).tolist() == list(range(n * n))


def test_every_prediction_lies_in_its_cell():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 100):
        prob = np.vstack([rng.dirichlet([0.3, 1, 2], 2000), np.eye(3), lattice(n) / n, lattice(2 * n) / (2 * n)])
        corners = caltest.SimplexGrid(n).corners[labels(n, prob)]
        assert (prob >= corners.min(axis=1) - 2**-22).all(), n
        assert (prob <= corners.max(axis=1) + 2**-22).all(), n


@pytest.mark.slow(few_draws=True)
def test_decimals_are_exact():
    """Products, sums and differences of decimals, and float32, have the cells of the fractions they stand for."""
    for n in (3, 5, 10, 20):
        exact = naive.simplex_grid(caltest.SimplexGrid(n), None)
        fractions = [[Fraction(int(i), 20) for i in row] for row in lattice(20)]
        expected = [exact(row) for row in fractions]
        names = {cell: label for label, cell in enumerate(dict.fromkeys(expected))}
        tenths = lattice(20) * 0.05
        kinds = {
            "quotients": lattice(20) / 20,
            "products": tenths,
            "differences": np.column_stack([tenths[:, :2], 1 - tenths[:, 0] - tenths[:, 1]]).clip(0, 1),
            "float32": (lattice(20) / 20).astype(np.float32).astype(float),
            "not quite normalised": tenths * (1 + 1e-7),
        }
        for kind, prob in kinds.items():
            found = labels(n, prob)
            pairs = set(zip(found.tolist(), [names[cell] for cell in expected], strict=True))
            assert len(pairs) == len(names), (n, kind)
    assert labels(10, [[0.1 * 3, 0.3, 0.4], [0.3, 0.3, 0.4], [0.3, 1 - 0.7, 0.4]]).tolist() == [57, 57, 57]


def test_an_edge_belongs_to_the_upward_triangle():
    middle = lattice(4)[(lattice(4) % 2 == 0).sum(axis=1) == 1] / 4  # of the nine edges of the four triangles
    cells = caltest.SimplexGrid(2).corners[labels(2, middle)]
    assert (cells.min(axis=1).sum(axis=1) == 0.5).all(), "lower ends of an upward triangle have the sum (n - 1) / n"
    assert np.unique(labels(2, middle), return_counts=True)[1].tolist() == [3, 3, 3]


def test_permuted_classes_have_mirrored_cells():
    rng = np.random.default_rng(1)
    for n in (1, 2, 4, 5, 6):
        prob = np.vstack([rng.dirichlet(np.ones(3), 300), lattice(n) / n, lattice(3 * n) / (3 * n)])
        prob = prob[np.abs(prob - 1 / 3).max(axis=1) > 1e-9] if n % 3 == 0 else prob
        centre = caltest.SimplexGrid(n).corners.mean(axis=1)
        found = centre[labels(n, prob)]
        for order in permutations(range(3)):
            np.testing.assert_allclose(centre[labels(n, prob[:, order])], found[:, order], atol=1e-12)
    assert labels(3, [[1 / 3] * 3]).tolist() == labels(3, [[1 / 3, 1 / 3, 1 - 2 / 3]]).tolist() == [2]


def test_serves_wherever_cells_do():
    rng = np.random.default_rng(2)
    prob = rng.dirichlet(np.ones(3), 400)
    y = draw_labels(np.roll(prob, 1, axis=1), rng)
    grid = caltest.SimplexGrid(4)
    label = naive.cells(grid, prob)
    members = [[i for i, other in enumerate(label) if other == cell] for cell in set(label)]
    ece = sum(0.5 * np.abs(prob[rows].sum(axis=0) - np.bincount(y[rows], minlength=3)).sum() / 400 for rows in members)
    statistic = caltest.ECE(grid)
    assert caltest.calibration_error(y, prob, statistic=statistic) == pytest.approx(ece)
    fit = caltest.histogram_regression(y, prob, partition=grid)
    assert fit.n_cells == len(members)
    assert fit.expected_miscalibration() == pytest.approx(ece)
    assert caltest.calibration_test(y, prob, statistic=statistic, n_resamples=99, rng=0).pvalue == 0.01
    resampled = caltest.Consistency(resample_predictions=True)
    options = {"resampling": resampled, "n_resamples": 19, "rng": 0}
    assert caltest.calibration_test(y, prob, statistic=statistic, **options).pvalue == 0.05
    many = rng.dirichlet(np.ones(6), 50)
    through = caltest.calibration_error(y[:50], many, lens=caltest.TopK(2), statistic=statistic)
    assert 0 < through < 1


def test_refusals():
    check_refused(caltest.SimplexGrid, TypeError, "`n` must be an integer >= 1, got 2.0.", 2.0)
    check_refused(caltest.SimplexGrid, ValueError, "`n` must be an integer >= 1, got 0.", 0)
    check_refused(
        caltest.SimplexGrid, ValueError, "`n` must be at most 1000, which makes 1000000 cells, got 1001.", 1001
    )
    y, prob = [0, 1, 3], np.full((3, 4), 0.25)
    with pytest.raises(ValueError, match=r"`SimplexGrid` needs a lens with three outcomes, such as TopK\(2\).*got 4"):
        caltest.histogram_regression(y, prob, partition=caltest.SimplexGrid(2))
    options = {"lens": caltest.Canonical(), "statistic": caltest.ECE(caltest.SimplexGrid(2)), "n_resamples": 9}
    with pytest.raises(ValueError, match=r"`SimplexGrid` needs a lens with 3 outcomes such as TopK\(2\), got 4"):
        caltest.calibration_test(y, prob, **options)
