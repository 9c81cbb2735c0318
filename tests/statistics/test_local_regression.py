"""Local regression: equal to R's loess and lowess, linear, and defined for every set of predictions."""

import numpy as np
import pytest

from caltest.statistics._local_regression import loess, lowess
from tests.reference.smooth_curves import loess_curve, lowess_curve

X = np.array([0, 0, 0, 1, 1, 2, 2.4, 2.4, 4, 6.6, 8, 8, 8, 11, 12.2, 14, 14, 18.6, 20, 20]) / 20
Y = np.array([[0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1]], dtype=float)
ONES, WEIGHT = np.ones(20), np.tile([0.5, 1, 1.5, 1], 5)
ALONE = [0, 3, 5, 6, 8, 9, 10, 13, 14, 15, 17, 18]
"""The first of equal predictions."""

# In R 4.2.2: fitted(loess(y ~ x, weights = w)), fitted(loess(y ~ x, span = 0.5)) and lowess(x, y, f = 0.5, iter = 0).
LOESS = [0.420219607574, 0.319725909517, 0.261649005093, 0.247267203326, 0.258593026022, 0.416440396953, 0.560168927375]
LOESS += [0.65951818233, 0.688810431626, 0.744929483485, 0.923775613402, 0.996282890353]
NARROW = [0.277242426048, 0.267141344794, 0.235215516296, 0.209576055725, 0.220060857965, 0.445381886875]
NARROW += [0.514476380894, 0.708873804991, 0.734471395749, 0.547082641204, 0.804623995982, 1.05840995849]
LOWESS = [0.290992334472, 0.24696130172, 0.194878044385, 0.175460344589, 0.340932978604, 0.411396976955, 0.546157640292]
LOWESS += [0.639589081592, 0.667989554375, 0.675629669061, 0.924296026862, 0.988227496084]


@pytest.mark.parametrize(
    ("curve", "published"),
    [
        (loess(X, WEIGHT, 0.75), LOESS),
        (loess(X, ONES, 0.5), NARROW),
        (lowess(X, ONES, 0.5), LOWESS),
    ],
)
def test_equals_r(curve, published):
    """With ties, whose values are equal."""
    fitted = curve.fitted(Y)[0]
    assert fitted[ALONE] == pytest.approx(published, abs=1e-11)
    first = np.searchsorted(X, X)
    assert fitted == pytest.approx(fitted[first], abs=1e-12)


def kinds(n, rng):
    """Predictions: spread, in one and three decimals, half of them 0 or 1, rare, one-hot, few values, all equal."""
    u = rng.random(n)
    yield from (u, np.round(u, 1), np.where(u < 0.5, 0.0, rng.random(n)), np.where(u < 0.9, 1.0, rng.random(n)))
    yield from (np.round(u**20, 3), u / 1e6, np.round(u), np.floor(3 * u) / 4 + 0.1, np.full(n, 0.3))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 60])
def test_equals_the_loops(n):
    rng = np.random.default_rng(n)
    for number, unsorted in enumerate(kinds(n, rng)):
        x = np.sort(unsorted)
        y, weight = (rng.random((1, n)) < 0.4).astype(float), rng.uniform(0.5, 2, n)
        for span in (0.75, 0.3):
            for curve, twin in ((loess, loess_curve), (lowess, lowess_curve)):
                expected = twin(x.tolist(), y[0].tolist(), weight.tolist(), span)
                found = curve(x, weight, span).fitted(y)[0]
                assert found == pytest.approx(expected, abs=1e-9), (number, span, curve.__name__)


@pytest.mark.parametrize("make", [loess, lowess])
def test_a_line_is_reproduced(make):
    """Polynomials of degree 1 are fitted exactly, and so is what lies between the points."""
    x = np.sort(np.random.default_rng(3).beta(0.5, 2, 300))
    assert make(x, np.ones(300), 0.6).fitted((2 - 3 * x)[None])[0] == pytest.approx(2 - 3 * x, abs=1e-10)


@pytest.mark.parametrize("make", [loess, lowess])
def test_the_scale_of_weights_does_not_count(make):
    assert make(X, 3 * WEIGHT, 0.7).fitted(Y)[0] == pytest.approx(make(X, WEIGHT, 0.7).fitted(Y)[0], abs=1e-12)
