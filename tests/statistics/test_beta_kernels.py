"""Beta kernels: Chen's shapes, a direct sum over a fine grid, and what must hold at the ends."""

import math

import numpy as np
import pytest
from scipy import stats

import caltest as ct
from caltest.statistics import KDEError
from caltest.statistics._beta_kernels import NARROWEST, WIDEST, BetaSmoother, _shapes, usual_bandwidth
from caltest.statistics._smoothing import silverman_bandwidth
from tests.reference.cases import check_refused
from tests.statistics.problems import error

ENDS_AND_MIDDLE = np.array([0.0, 1.0, 0.5, 0.0])


def beta_error(y, p, h, reference, n_points=2000):
    """Return the error by sums of scipy's densities over many points; ``p`` strictly between 0 and 1."""
    b = 4 * h**2 / (1 - 4 * h**2)

    def shape(x):
        return x / b if x >= 2 * b else 2 * b**2 + 2.5 - math.sqrt(4 * b**4 + 6 * b**2 + 2.25 - x**2 - x / b)

    angle = math.pi * np.arange(0.5, n_points) / n_points
    points, width = np.sin(angle / 2) ** 2, np.sin(angle)
    kernels = np.array([stats.beta.pdf(p, shape(g), shape(1 - g)) for g in points])
    kernels /= width @ kernels
    density = kernels.sum(axis=1)
    base = points * density if reference == "point" else kernels @ p
    return width @ np.abs(kernels @ y - base) / (width @ density)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("bandwidth", [0.03, *(pytest.param(h, marks=pytest.mark.slow) for h in (0.1, 0.2))])
def test_a_direct_sum(bandwidth):
    rng = np.random.default_rng(0)
    p = rng.beta(1.5, 2.5, 40)
    y = rng.integers(0, 2, 40)
    for reference in ("point", "mean"):
        statistic = KDEError(bandwidth, kernel="beta", reference=reference)
        expected = beta_error(y, p, bandwidth, reference)
        assert error(y, p, statistic) == pytest.approx(expected, rel=2e-3), reference
        assert error(1 - y, 1 - p, statistic) == pytest.approx(error(y, p, statistic), rel=1e-9), reference


def test_shapes_of_chen():
    """Inside, the mean of a kernel is its point; at the ends one shape is 1, so that the density there is not 0."""
    b = 0.04
    first, second = _shapes(np.array([0.0, 2 * b, 0.3, 0.5, 1 - 2 * b, 1.0]), b)
    np.testing.assert_allclose(first, [1, 2, 0.3 / b, 0.5 / b, (1 - 2 * b) / b, 1 / b], rtol=1e-12)
    np.testing.assert_allclose(second, [1 / b, (1 - 2 * b) / b, 0.7 / b, 0.5 / b, 2, 1], rtol=1e-12)


def test_the_bandwidth_is_the_standard_deviation_in_the_middle():
    for h in (0.02, 0.1, WIDEST):
        b = 4 * h**2 / (1 - 4 * h**2)
        first, second = _shapes(np.array([0.5]), b)
        assert stats.beta.std(first[0], second[0]) == pytest.approx(h, rel=1e-12)


def test_silverman_is_for_the_average_over_predictions():
    p = np.linspace(0.2, 0.4, 50)
    h = usual_bandwidth(p, (0.0, 1.0))
    b = 4 * h**2 / (1 - 4 * h**2)
    plain = silverman_bandwidth(p)
    assert math.sqrt(np.mean(b * p * (1 - p))) == pytest.approx(plain, rel=0.01)
    assert usual_bandwidth(np.zeros(3), (0.0, 1.0)) == NARROWEST
    assert usual_bandwidth(np.array([0.0, 0.5, 1.0]), (0.0, 1.0)) <= WIDEST


@pytest.mark.parametrize("support", [(0.0, 1.0), (0.1, 1.0)])
def test_every_observation_counts_once(support):
    """Also at the ends of the support, where the kernels of all points are 0."""
    position = np.sort(np.concatenate([support, np.random.default_rng(1).uniform(*support, 30)]))
    smoother = BetaSmoother.fit(position, 0.05, support)
    for values in (np.eye(32)[0], np.eye(32)[-1], np.eye(32)[10], np.ones(32)):
        total = smoother.total(smoother.sum_of(values)) * smoother.step
        assert total == pytest.approx(values.sum(), rel=1e-12)
        np.testing.assert_allclose(smoother.sums(values[None].astype(np.uint8))[0], smoother.sum_of(values), rtol=1e-12)
    assert smoother.point[0] > support[0]
    assert smoother.point[-1] < support[1]


def test_residuals_at_the_ends_are_seen():
    """Of four observations two are predicted with 0 and happen: the mean residual is 2 / 4 less 1 / 8."""
    y = [1, 1, 0, 1]
    assert error(y, ENDS_AND_MIDDLE, KDEError(0.02, kernel="beta", reference="mean")) == pytest.approx(0.625, rel=1e-3)


def test_weights_and_tests():
    rng = np.random.default_rng(2)
    p = rng.beta(0.4, 0.4, 60)
    y = (rng.random(60) < p).astype(int)
    times = rng.integers(1, 4, 60)
    statistic = KDEError(0.1, kernel="beta")
    weighted = error(y, p, statistic, sample_weight=times)
    assert weighted == pytest.approx(error(np.repeat(y, times), np.repeat(p, times), statistic), rel=1e-12)
    assert error(y, p, statistic, sample_weight=np.ones(60)) == error(y, p, statistic)
    same = {ct.calibration_test(y, p, statistic=statistic, n_resamples=99, rng=3, workers=w).pvalue for w in (1, 2)}
    assert len(same) == 1


def test_the_smooth_curve_with_beta_kernels():
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.5, 400)
    y = (rng.random(400) < p).astype(int)
    statistic = KDEError(0.1, kernel="beta", reference="mean")
    curve = ct.smooth_reliability_curve(y, p, statistic=statistic, n_resamples=99, rng=0)
    assert curve.error == pytest.approx(error(y, p, statistic), rel=1e-12)
    assert curve.bandwidth == 0.1
    widths = np.gradient(curve.point)
    assert (curve.density * widths).sum() == pytest.approx(1.0, rel=0.02)
    assert (curve.calibrated_lower <= curve.calibrated_upper).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.3}, "`bandwidth` must be 'silverman' or a number from 0.00307 to 0.223607 for this `support`"),
        ({"grid": (-1.0, 2.0, 500)}, "`grid` must be None for kernel='beta', which has its own points, got"),
    ],
)
def test_refusals(options, message):
    check_refused(lambda: KDEError(kernel="beta", **options), ValueError, message)
