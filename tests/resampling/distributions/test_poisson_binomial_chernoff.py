"""Chernoff's bounds against rational arithmetic and a fine search for the best slope."""

import math
from fractions import Fraction

import numpy as np
import pytest

from caltest.resampling.distributions._poisson_binomial import (
    PoissonBinomial,
    chernoff_bound,
    count_bound,
    deviations_bound,
)
from tests.reference.cases import mostly_slow


def exact_pmf(p):
    pmf = [Fraction(1)]
    for x in map(Fraction, p):
        pmf = [stay * (1 - x) + come * x for stay, come in zip([*pmf, 0], [0, *pmf], strict=True)]
    return pmf


def best_of_many_slopes(values, pmf, x):
    """Smallest exp(-t x) E exp(t V) over a fine grid of t, in floating point from exact probabilities."""
    mass = np.array([float(m) for m in pmf])
    top, slopes = values.max(), np.geomspace(1e-3, 60, 4000)
    moments = np.log(np.exp(np.multiply.outer(slopes, values - top)) @ mass) + slopes * (top - x)
    return math.exp(min(0.0, moments.min()))


@pytest.mark.parametrize("power", mostly_slow([0.3, 1, 6]))
def test_bounds_of_counts(power):
    p = (np.random.default_rng(0).random(40) ** power).tolist()
    pmf = exact_pmf(p)
    counts = np.arange(41)
    for count in range(0, 41, 4):
        for upper, tail, sign in ((True, pmf[count:], 1), (False, pmf[: count + 1], -1)):
            bound = count_bound(np.array(p), count, upper=upper)
            assert float(sum(tail)) <= bound * (1 + 1e-9), (count, upper)
            expected = best_of_many_slopes(sign * counts, pmf, sign * count)
            if expected > 1e-30:  # else the best slope lies outside of the grid
                assert bound == pytest.approx(expected, rel=1e-2), (count, upper)


@pytest.mark.slow(few_draws=True)
def test_bound_of_absolute_deviations():
    rng = np.random.default_rng(1)
    cells = [rng.random(8) ** 5, rng.random(6), 1 - rng.random(10) ** 5]
    centre = np.array([cells[0].sum(), cells[1].sum() + 0.3, cells[2].sum()])
    counts = [PoissonBinomial.of(cell) for cell in cells]
    values, mass = np.zeros(1), np.ones(1)
    for cell, m in zip(cells, centre, strict=True):
        pmf = np.array([float(x) for x in exact_pmf(cell.tolist())])
        values = np.add.outer(values, np.abs(np.arange(len(pmf)) - m)).ravel()
        mass = np.multiply.outer(mass, pmf).ravel()
    for x in np.linspace(values @ mass, values.max(), 12):
        bound = deviations_bound(cells, centre, counts, x)
        assert mass[values >= x - 1e-9].sum() <= bound * (1 + 1e-9), x
        assert bound == pytest.approx(best_of_many_slopes(values, mass, x), rel=1e-2), x


def test_ends():
    assert chernoff_bound(lambda t: 0.0, -1.0) == 1.0
    assert chernoff_bound(lambda t: 0.0, 1e6) == 0.0  # underflows
    assert count_bound(np.zeros(5), 3, upper=True) < 1e-200  # impossible
    assert count_bound(np.full(50_000, 0.5), 50_000, upper=True) == 0.0
    assert count_bound(np.array([1.0, 1.0]), 2, upper=True) == pytest.approx(1.0)
