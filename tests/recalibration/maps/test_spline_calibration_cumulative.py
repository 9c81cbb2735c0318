"""Least-squares natural splines: three other constructions, and the optimality conditions of the constrained ones."""

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicSpline
from scipy.optimize import nnls

from caltest.recalibration.maps._spline_calibration import CumulativeSpline


def steps(n, seed=0):
    """Fractiles, scores and cumulative residuals of an over-confident model."""
    rng = np.random.default_rng(seed)
    score = np.sort(rng.beta(0.3, 0.3, n))
    label = rng.random(n) < score**2
    return np.arange(1, n + 1) / n, score, np.cumsum(label - score) / n


def published(fractile, height, n_knots, run_out="linear"):
    """Values and slopes at the fractiles by the matrices of appendix C of Gupta et al. (2020).

    For other ends than straight ones the paper changes the first and last rows of A; those of M that are 0 change too.
    """
    h = 1 / (n_knots - 1)
    inner = n_knots - 2
    a = 4 * np.eye(inner) + np.eye(inner, k=1) + np.eye(inner, k=-1)
    if run_out == "quadratic":
        a[0, 0] = a[-1, -1] = 5 if inner > 1 else 6
    elif run_out == "cubic":
        a[0, :2] = a[-1, :-3:-1] = 6, 0
    b = np.zeros((inner, n_knots))
    for row in range(inner):
        b[row, row : row + 3] = 1, -2, 1
    second = np.linalg.solve(a, 6 / h**2 * b)
    first, last = np.zeros((2, n_knots))
    if run_out == "quadratic":
        first, last = second[0], second[-1]
    elif run_out == "cubic":
        first, last = 2 * second[0] - second[1], 2 * second[-1] - second[-2]
    m = np.vstack([first, second, last, np.eye(n_knots)])
    value, slope = np.zeros((2, len(fractile), 2 * n_knots))
    for i, x in enumerate(fractile):
        j = min(int(np.floor(x / h)), n_knots - 2)
        u = x - j * h
        at = [j, j + 1, j + n_knots, j + 1 + n_knots]
        value[i, at] = -(u**3) / (6 * h) + u**2 / 2 - h * u / 3, u**3 / (6 * h) - h * u / 6, 1 - u / h, u / h
        slope[i, at] = -(u**2) / (2 * h) + u - h / 3, u**2 / (2 * h) - h / 6, -1 / h, 1 / h
    knots = np.linalg.lstsq(value @ m, height, rcond=None)[0]
    return value @ m @ knots, slope @ m @ knots, knots


def b_spline(fractile, height, n_knots):
    """The same by B-splines whose second derivative is constrained to 0 at both ends."""
    knots = np.concatenate([[0] * 3, np.linspace(0, 1, n_knots), [1] * 3])
    basis = BSpline(knots, np.eye(n_knots + 2), 3)
    ends = basis.derivative(2)(np.array([0.0, 1.0]))
    null = np.linalg.svd(ends)[2][2:].T  # coefficients that satisfy both constraints
    coef = null @ np.linalg.lstsq(basis(fractile) @ null, height, rcond=None)[0]
    return basis(fractile) @ coef, basis.derivative()(fractile) @ coef


@pytest.mark.parametrize("n_knots", [3, 6, 13, 14])
def test_it_is_the_published_construction_and_that_of_b_splines(n_knots):
    fractile, _, height = steps(700)
    spline = CumulativeSpline.of(fractile, n_knots)
    knots = spline.fit(height)
    curve = CubicSpline(np.linspace(0, 1, n_knots), knots, bc_type="natural")
    value, slope, wanted = published(fractile, height, n_knots)
    np.testing.assert_allclose(knots, wanted, atol=1e-10)
    np.testing.assert_allclose(spline.slope @ knots, slope, atol=1e-9)
    by_b_splines = b_spline(fractile, height, n_knots)
    np.testing.assert_allclose(curve(fractile), by_b_splines[0], atol=1e-10)
    np.testing.assert_allclose(curve(fractile), value, atol=1e-10)
    np.testing.assert_allclose(spline.slope @ knots, by_b_splines[1], atol=1e-9)


def test_weights_count_as_in_weighted_least_squares():
    fractile, _, height = steps(200)
    weight = np.random.default_rng(1).integers(1, 4, 200).astype(float)
    found = CumulativeSpline.of(fractile, 6, weight).fit(height)
    repeat = weight.astype(int)
    wanted = CumulativeSpline.of(np.repeat(fractile, repeat), 6).fit(np.repeat(height, repeat))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize(("n", "n_knots"), [(30, 5), (300, 6), (5000, 14)])
def test_the_constrained_spline_meets_the_optimality_conditions(n, n_knots):
    """A convex quadratic programme: feasible, and the gradient is a cone combination of the active constraints."""
    fractile, score, height = steps(n)
    spline = CumulativeSpline.of(fractile, n_knots)
    free = score + spline.slope @ spline.fit(height)
    assert free.min() < 0 or free.max() > 1, "the constraints must matter"
    knots = spline.fit_constrained(height, spline.slope, -score, 1 - score)
    value = score + spline.slope @ knots
    assert value.min() > -1e-10
    assert value.max() < 1 + 1e-10
    matrix = spline.orthogonal @ spline.triangular
    gradient = matrix.T @ (matrix @ knots - height)
    active = np.vstack([spline.slope[value < 1e-9], -spline.slope[value > 1 - 1e-9]])
    assert nnls(active.T, gradient)[1] < 1e-10 * np.linalg.norm(height)


def test_constraints_that_hold_change_nothing():
    rng = np.random.default_rng(0)
    score = np.sort(rng.uniform(0.3, 0.7, 400))
    height = np.cumsum((rng.random(400) < score) - score) / 400
    spline = CumulativeSpline.of(np.arange(1, 401) / 400, 6)
    np.testing.assert_array_equal(
        spline.fit_constrained(height, spline.slope, -score, 1 - score),
        np.linalg.solve(spline.triangular, spline.projection(height)),
    )


@pytest.mark.parametrize(("run_out", "n_knots"), [("quadratic", 3), ("quadratic", 6), ("cubic", 4), ("cubic", 6)])
def test_other_ends_are_those_of_mckinley_and_levine(run_out, n_knots):
    fractile, _, height = steps(700)
    spline = CumulativeSpline.of(fractile, n_knots, run_out=run_out)
    knots = spline.fit(height)
    _, slope, wanted = published(fractile, height, n_knots, run_out)
    np.testing.assert_allclose(knots, wanted, atol=1e-10)
    np.testing.assert_allclose(spline.slope @ knots, slope, atol=1e-9)
