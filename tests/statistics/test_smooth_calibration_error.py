"""Smooth calibration error: by hand, the linear program on odd data, the distance to calibration, and its level."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics import SmoothCalibrationError
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.statistics.problems import LEVELS, PROFILE, error, event_problems, most_rejections

SMCE = SmoothCalibrationError()


def program(y, p, weight=None):
    """The linear program of the twin."""
    rows = [[1 - x, x] for x in map(float, p)]
    return naive.evaluate(SMCE, rows, y, weight)


def test_by_hand():
    assert error([1] * 8 + [0] * 2, [1.0] * 10, SMCE) == pytest.approx(0.2, abs=1e-15)
    assert error([0], [0.3], SMCE) == pytest.approx(0.3, abs=1e-15)
    assert error([1, 0], [1.0, 0.0], SMCE) == 0
    assert error([1, 0], [0.0, 1.0], SMCE) == pytest.approx(0.5, abs=1e-15)  # weights 1 and 0, or 1/2 and -1/2
    assert error([1, 1, 0, 0], [0.2, 0.4, 0.6, 0.8], SMCE) == pytest.approx(0.15, abs=1e-15)  # weights 1/2 - p


def odd_data(rng):
    """Problems that a sorted continuous sample is not, by name."""
    n = 60
    even = rng.random(n)
    found = {
        "even": even,
        "rounded": even.round(1),
        "ties up to rounding": even.round(1) + rng.choice([0.0, 1e-16, 1e-15], n),
        "zeros and ones": np.where(rng.random(n) < 0.5, even, even.round()),
        "constant": np.full(n, 0.3),
        "two values": rng.choice([0.02, 0.97], n),
        "rare": even / 1000,
        "sure": 1 - even / 1000,
    }
    return {name: np.clip(p, 0.0, 1.0) for name, p in found.items()}


@pytest.mark.slow(few_draws=True)
def test_the_linear_program_agrees_on_odd_data():
    rng = np.random.default_rng(0)
    for bias in (0.0, 0.4, -1.0):
        for name, p in odd_data(rng).items():
            y = (rng.random(len(p)) < np.clip(p + bias * (p - 0.4), 0, 1)).astype(int)
            weight = rng.exponential(size=len(p)).round(1) + 0.1
            assert error(y, p, SMCE) == pytest.approx(program(y, p), abs=1e-10), name
            found = error(y, p, SMCE, sample_weight=weight)
            assert found == pytest.approx(program(y, p, weight), abs=1e-10), name


@PROFILE
@given(problem=event_problems())
def test_what_must_hold(problem):
    """It mirrors under the complement and lies between the mean residual and the mean error of the predictions."""
    y, p = problem
    found = error(y, p, SMCE)
    assert found == pytest.approx(error(1 - y, 1 - p, SMCE), abs=1e-14)
    assert found >= abs((y - p).mean()) - 1e-14
    assert found <= sum(abs((y - p)[p == x].sum()) for x in set(p)) / len(p) + 1e-14
    weighted = error(y, p, SMCE, sample_weight=np.arange(1, len(y) + 1))
    assert weighted == pytest.approx(
        error(np.repeat(y, range(1, len(y) + 1)), np.repeat(p, range(1, len(y) + 1)), SMCE)
    )


def lower_distance(y, p, grid):
    """The lower distance to calibration by moves to points of a grid: masses of all (observation, point), E|p - u|."""
    n, m = len(y), len(grid)
    cost = np.abs(p[:, None] - grid).ravel() / n
    of_observation = np.kron(np.eye(n), np.ones(m))
    calibrated = ((y[:, None] - grid)[:, :, None] * np.eye(m)).reshape(n * m, m).T
    equations = np.vstack([of_observation, calibrated])
    found = linprog(cost, A_eq=equations, b_eq=np.r_[np.ones(n), np.zeros(m)], method="highs-ds")
    return float(found.fun)


def test_half_and_twice_it_bound_the_lower_distance():
    """On a grid the distance is at most half a step too large: moves to the next points calibrate on average."""
    rng, ratios = np.random.default_rng(1), []
    for truth in (lambda p: p, lambda p: p**2, lambda p: 1 - p, lambda p: np.where(p > 0.5, 1, p)):
        p = rng.integers(0, 21, 12) / 20
        y = (rng.random(12) < truth(p)).astype(int)
        test = caltest.calibration_test(y, p, statistic=SMCE, n_resamples=19, rng=0)
        coarse, fine = (lower_distance(y, p, np.linspace(0, 1, n)) for n in (21, 41))
        assert fine <= coarse + 1e-9
        assert test.lower_distance_least <= fine + 1e-9
        assert fine <= test.lower_distance_most + 1e-9
        ratios.append(fine / test.statistic)
    assert max(ratios) > 1.01 * min(ratios)  # no multiple of it is the distance


def test_signs_of_groups_have_the_observed_value():
    rng = np.random.default_rng(2)
    p = rng.random(80).round(1)
    y, group = (rng.random(80) < p).astype(int), np.arange(80) // 4
    sample = make_sample(y, p, groups=group)
    signs = np.ones((1, 20), dtype=np.int8)
    assert SMCE.evaluate_signs(sample, signs)[0] == pytest.approx(error(y, p, SMCE), abs=1e-14)
    assert SMCE.evaluate_signs(sample, -signs)[0] == pytest.approx(error(y, p, SMCE), abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("grouped", "n_data_sets"), mostly_nightly([(False, 200), (False, 1000), (True, 200)]))
def test_levels(grouped, n_data_sets):
    """Ten groups in which labels are equal, or independent labels, at few different predictions."""
    rng = np.random.default_rng(3)
    group = np.arange(40) // 4 if grouped else None
    rejected = np.zeros(len(LEVELS))
    for _ in range(n_data_sets):
        p = rng.random(40).round(1) if not grouped else np.repeat(rng.random(10).round(1), 4)
        u = rng.random(40) if not grouped else np.repeat(rng.random(10), 4)
        test = caltest.calibration_test(u < p, p, statistic=SMCE, groups=group, n_resamples=199, rng=rng)
        rejected += test.pvalue <= np.array(LEVELS)
    assert (rejected <= most_rejections(n_data_sets, 6)).all()


def test_it_is_for_two_outcomes():
    with pytest.raises(ValueError, match="SmoothCalibrationError"):
        error([0, 1, 2], np.eye(3), SMCE, caltest.Canonical())


def test_the_name_of_the_papers_is_known():
    with pytest.raises(ValueError, match="SmoothCalibrationError"):
        caltest.calibration_test([0, 1], [0.2, 0.7], statistic="smCE")
