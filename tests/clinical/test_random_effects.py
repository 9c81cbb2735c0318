"""Means over sites are those of metafor in R; intervals for a new site contain it."""

import numpy as np
import pytest

from caltest.clinical._random_effects import RandomEffects, deviations


def of(effect, variance, scale="linear"):
    effect, variance = np.array(effect), np.array(variance)
    known = np.column_stack([effect, variance, deviations(effect, variance)])
    return RandomEffects.of("x", "x", known, scale=scale, missed=0.025)


@pytest.mark.parametrize(
    ("effect", "variance", "expected"),
    [
        (
            [0.1, -0.3, 0.5, 0.2, -0.1, 0.9, 0],
            [0.02, 0.05, 0.04, 0.01, 0.03, 0.2, 0.06],
            [0.12180982, -0.15766116, 0.40128079, 0.03168138, 50.1131041, 0.0486771751825],
        ),
        (
            [0.1, 0.12, 0.09, 0.11, 0.1, 0.13],
            [0.04] * 6,
            [0.10833333, 0.09288606, 0.12378061, 0, 0, 0.9999936407612],
        ),
    ],
)
def test_metafor_agrees(effect, variance, expected):
    """metafor 3.8.1: `rma(yi, vi, method="REML", test="knha")` (b, ci.lb, ci.ub, tau2, I2, QEp)."""
    found = of(effect, variance)
    mean, low, high, between, share, pvalue = expected
    assert (found.estimate, *found.confidence_interval) == pytest.approx((mean, low, high), abs=1e-5)
    assert found.between_sites**2 == pytest.approx(between, abs=1e-5)
    assert 100 * found.share_between == pytest.approx(share, abs=1e-2)
    assert found.pvalue == pytest.approx(pvalue, rel=1e-9)


def test_a_new_site_is_drawn_from_the_confidence_distribution():
    """By simulation: a variance between sites whose Q has a given tail, and a site with it."""
    rng, draws = np.random.default_rng(0), 40_000
    effect = np.array([0.1, -0.3, 0.5, 0.2, -0.1, 0.9, 0])
    variance = np.array([0.02, 0.05, 0.04, 0.01, 0.03, 0.2, 0.06])
    grid = np.append(0.0, np.geomspace(1e-6, 50, 4_000))
    weight = 1 / (variance + grid[:, None])
    mean = weight @ effect / weight.sum(axis=1)
    q = (weight * (effect - mean[:, None]) ** 2).sum(axis=1)
    place = np.searchsorted(-q, -rng.chisquare(6, draws)).clip(max=len(grid) - 1)
    error = q / (6 * weight.sum(axis=1))
    site = mean[place] + rng.standard_t(6, draws) * np.sqrt(grid[place] + error[place])
    low, high = of(effect, variance).prediction_interval
    for share in ((site < low).mean(), (site > high).mean()):
        assert share == pytest.approx(0.025, abs=4 * np.sqrt(0.025 * 0.975 / draws) + 0.5 / 200 * 0.025)


def test_equal_sites_leave_no_doubt():
    assert of([0.2, 0.2, 0.2], [0.1, 0.2, 0.1]).prediction_interval == pytest.approx((0.2, 0.2))


def test_ends_are_transformed_back():
    effect, variance = np.log([0.8, 1.0, 1.3, 0.9]), np.full(4, 0.01)
    linear, ratio = of(effect, variance), of(effect, variance, "log")
    assert ratio.estimate == pytest.approx(np.exp(linear.estimate))
    assert ratio.prediction_interval == pytest.approx(np.exp(linear.prediction_interval))
    assert 0 < of(effect, variance, "logit").prediction_interval.low < 1


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("between", [0.0, 0.1, 0.3])
def test_a_new_site_lies_in_its_interval(between):
    """Of 12 sites with unequal variances; Hartung and Knapp's interval for the mean covers too."""
    rng, sets, new, mean = np.random.default_rng(0), 600, 0, 0
    for _ in range(sets):
        variance = rng.uniform(0.01, 0.1, 12)
        value = rng.normal(0, between, 13)
        found = of(value[:-1] + rng.normal(0, np.sqrt(variance)), variance)
        new += not found.prediction_interval.low <= value[-1] <= found.prediction_interval.high
        mean += not found.confidence_interval.low <= 0 <= found.confidence_interval.high
    most = 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)
    assert mean / sets < most
    assert new / sets < most
