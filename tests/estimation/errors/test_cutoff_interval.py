"""The cutoff calibration error is that of all intervals of predictions, and its interval contains the true one."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

import caltest
from caltest.estimation import cutoff_interval
from tests.reference.cases import mostly_slow
from tests.results.printed import printed

TRUTHS = {
    "calibrated": lambda p: p,
    "shift 0.4": lambda p: expit(logit(p) + 0.4),
    "slope 0.6": lambda p: expit(0.6 * logit(p)),
    "bend": lambda p: expit(logit(p) + 0.4 * np.sin(2 * logit(p))),
    "shift 2": lambda p: expit(logit(p) + 2),
}


def size(residual, p):
    """Cutoff calibration error by its definition: the largest absolute sum over intervals of predictions."""
    ends = np.concatenate([[0.0], [residual[p <= end].sum() for end in np.unique(p)]]) / len(p)
    return float(np.abs(ends[:, None] - ends).max())


def problem(truth, n, rng):
    p = expit(rng.normal(-1.9, 1.2, n))
    true = TRUTHS[truth](p)
    return (rng.random(n) < true).astype(int), p, true


def test_the_estimate_is_the_cutoff_calibration_error():
    """Of all intervals, ties in one piece; the error of one threshold is KS."""
    rng = np.random.default_rng(0)
    y, p, _ = problem("slope 0.6", 80, rng)
    for predictions in (p, p.round(1)):
        assert cutoff_interval(y, predictions, rng=0).estimate == pytest.approx(size(y - predictions, predictions))
    below = max(abs((y - p)[p <= end].sum()) for end in p) / 80
    assert cutoff_interval(y, p, statistic="KS", rng=0).estimate == pytest.approx(below)


@pytest.mark.parametrize("n", mostly_slow([200, 1_000, 5_000]))
@pytest.mark.parametrize("truth", mostly_slow(TRUTHS))
def test_it_contains_the_true_error(truth, n):
    """Of the same predictions, in at least 95 % of data sets: of 100, 4 standard errors are 8.7 points."""
    rng, missed = np.random.default_rng(n), {"Kuiper": 0, "KS": 0}
    for _ in range(100):
        y, p, true = problem(truth, n, rng)
        ends = np.concatenate([[0.0], np.cumsum((true - p)[np.argsort(p)])]) / n
        target = {"Kuiper": np.ptp(ends), "KS": np.abs(ends).max()}
        for name in missed:
            low, high = cutoff_interval(y, p, statistic=name, n_resamples=199, rng=rng)
            missed[name] += not low <= target[name] <= high
    assert max(missed.values()) / 100 <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100), missed


def test_labels_that_are_alike_within_groups():
    """Copies of an observation in one group say no more than the observation; weights that are equal are none."""
    y, p, _ = problem("shift 0.4", 300, np.random.default_rng(1))
    alone = cutoff_interval(y, p, n_resamples=999, rng=0)
    copies = cutoff_interval(
        np.repeat(y, 9), np.repeat(p, 9), groups=np.repeat(np.arange(300), 9), n_resamples=999, rng=0
    )
    as_independent = cutoff_interval(np.repeat(y, 9), np.repeat(p, 9), n_resamples=999, rng=0)
    assert copies.estimate == pytest.approx(alone.estimate)
    assert copies.confidence_interval.high == pytest.approx(alone.confidence_interval.high, rel=0.05)
    assert as_independent.confidence_interval.low > 1.5 * alone.confidence_interval.low
    weighted = cutoff_interval(y, p, sample_weight=np.full(300, 2.0), rng=0)
    assert tuple(weighted) == tuple(cutoff_interval(y, p, rng=0))


def test_it_contains_0_where_the_test_does_not_reject():
    for seed in range(20):
        y, p, _ = problem("calibrated", 200, np.random.default_rng(seed))
        found = caltest.calibration_test(y, p, statistic=caltest.statistics.Kuiper(), n_resamples=999, rng=seed)
        if found.pvalue > 0.1:  # other draws: 0.05 has a standard error of 0.007
            assert cutoff_interval(y, p, rng=seed).confidence_interval.low == 0


def test_predictions_of_0_that_were_right_leave_room():
    """No event of 500 is compatible with a probability of 3 / 500, and with nothing above it at 95 %."""
    low, high = cutoff_interval(np.zeros(500, int), np.full(500, 1e-9), rng=0)
    assert low == 0
    assert (1 - high) ** 500 == pytest.approx(0.05, rel=0.01)
    grouped = cutoff_interval(np.zeros(500, int), np.zeros(500), groups=np.arange(500) // 5, rng=0)
    assert grouped.confidence_interval.high == pytest.approx(-math.log(0.05) / 100)
    assert cutoff_interval([1], [0.3], rng=0).confidence_interval.high == 1


def test_few_groups_have_no_interval():
    y, p, _ = problem("shift 0.4", 90, np.random.default_rng(2))
    found = cutoff_interval(y, p, groups=np.arange(90) % 9, rng=0)
    assert math.isnan(found.confidence_interval.low)
    assert "fewer than 10 groups" in printed(found)
    assert not math.isnan(cutoff_interval(y, p, groups=np.arange(90) % 10, rng=0).confidence_interval.low)


def test_what_it_prints_and_refuses():
    y, p, _ = problem("shift 0.4", 300, np.random.default_rng(3))
    found = cutoff_interval(y, p, rng=0)
    low, high = found
    assert f"is {found.estimate:.4f} (95 % confidence interval {low:.4f} to {high:.4f})" in printed(found)
    with pytest.raises(ValueError, match=r"`statistic` must be Kuiper\(\) or KS\(\), got ECE\(\)"):
        cutoff_interval(y, p, statistic="ECE")
    with pytest.raises(ValueError, match="`n_resamples` must be at least 19 for this level, got 18"):
        cutoff_interval(y, p, n_resamples=18)
    for name in ("CutoffError", "cutoff calibration error"):
        with pytest.raises(ValueError, match=r"use Kuiper.*cutoff_interval"):
            caltest.calibration_error(y, p, statistic=name)
