"""Random effects are those of metafor in R; intervals for a new site contain it."""

import numpy as np
import pytest

from caltest.clinical._random_effects import RandomEffects


def of(effect, variance, scale="linear"):
    return RandomEffects.of("x", "x", np.column_stack([effect, variance]), scale=scale, missed=0.025)


@pytest.mark.parametrize(
    ("effect", "variance", "expected"),
    [
        (
            [0.1, -0.3, 0.5, 0.2, -0.1, 0.9, 0],
            [0.02, 0.05, 0.04, 0.01, 0.03, 0.2, 0.06],
            [0.12180982, -0.15766116, 0.40128079, 0.03168138, 50.1131041, 0.0486771751825, -0.39567681, 0.63929645],
        ),
        (
            [0.1, 0.12, 0.09, 0.11, 0.1, 0.13],
            [0.04] * 6,
            [0.10833333, 0.09288606, 0.12378061, 0, 0, 0.9999936407612, 0.09288606, 0.12378061],
        ),
    ],
)
def test_metafor_agrees(effect, variance, expected):
    """metafor 3.8.1: `rma(yi, vi, method="REML", test="knha")` (b, ci.lb, ci.ub, tau2, I2, QEp) and `predict` (pi.lb,
    pi.ub), which print 4 digits."""
    found = of(effect, variance)
    mean, low, high, between, share, pvalue, new_low, new_high = expected
    assert (found.estimate, *found.confidence_interval) == pytest.approx((mean, low, high), abs=1e-5)
    assert found.between_sites**2 == pytest.approx(between, abs=1e-5)
    assert 100 * found.share_between == pytest.approx(share, abs=1e-2)
    assert found.pvalue == pytest.approx(pvalue, rel=1e-9)
    assert found.prediction_interval == pytest.approx((new_low, new_high), abs=1e-4)


def test_ends_are_transformed_back():
    effect, variance = np.log([0.8, 1.0, 1.3, 0.9]), np.full(4, 0.01)
    linear, ratio = of(effect, variance), of(effect, variance, "log")
    assert ratio.estimate == pytest.approx(np.exp(linear.estimate))
    assert ratio.prediction_interval == pytest.approx(np.exp(linear.prediction_interval))
    assert 0 < of(effect, variance, "logit").prediction_interval.low < 1


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("between", [0.0, 0.3])
def test_a_new_site_lies_in_its_interval(between):
    """Of 12 sites with unequal variances; Hartung and Knapp's interval for the mean covers too."""
    rng, sets, new, mean = np.random.default_rng(0), 1_000, 0, 0
    for _ in range(sets):
        variance = rng.uniform(0.01, 0.1, 12)
        value = rng.normal(0, between, 13)
        found = of(value[:-1] + rng.normal(0, np.sqrt(variance)), variance)
        new += not found.prediction_interval.low <= value[-1] <= found.prediction_interval.high
        mean += not found.confidence_interval.low <= 0 <= found.confidence_interval.high
    most = 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)
    assert mean / sets < most
    assert new / sets < most + 0.01  # the interval takes the variances as known
