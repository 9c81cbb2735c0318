"""The c-statistic and its interval equal those of pROC in R, of loops over pairs, and of the exact bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit, ndtr, stdtrit

from caltest.clinical._discrimination import c_statistic
from caltest.predictions._sample import induce, make_sample
from tests.reference.val_prob import breast_cancer, cat, digit_8

MISSED = 0.025


def naive(y, p, group=None):
    """The share of pairs, and the ends of DeLong's interval for the logit with Student's quantile, by loops."""
    events, others = [i for i in range(len(y)) if y[i]], [i for i in range(len(y)) if not y[i]]
    wins = {(i, j): (p[i] > p[j]) + (p[i] == p[j]) / 2 for i in events for j in others}
    value = sum(wins.values()) / len(wins)
    of_event = [sum(wins[i, j] for j in others) / len(others) - value for i in events]
    of_other = [sum(wins[i, j] for i in events) / len(events) - value for j in others]
    variance = sum(x**2 for x in of_event) / (len(events) - 1) / len(events)
    variance += sum(x**2 for x in of_other) / (len(others) - 1) / len(others)
    rarer = min(len(events), len(others))
    reach = stdtrit(rarer - 1, 1 - MISSED) * np.sqrt(variance) / (value * (1 - value))
    return value, (expit(logit(value) - reach), expit(logit(value) + reach))


@pytest.mark.parametrize(
    ("data", "value", "variance"),
    [
        (breast_cancer, 0.93095611285266, 0.0002467192433694),
        (digit_8, 0.99412747158019, 6.1463237037258e-06),
        (cat, 0.99122211111111, 1.0795317644652e-06),
    ],
)
def test_proc_of_r_agrees(data, value, variance):
    """pROC 1.18 in R 4.2.2: `auc(r)` and `var(r)` of `roc(y, p, direction="<")`; auc is printed with 4 digits."""
    y, p = data()
    found, interval = c_statistic(make_sample(y.astype(int), p), MISSED)
    assert found == pytest.approx(value, abs=1e-12)
    quantile = stdtrit(min(y.sum(), (1 - y).sum()) - 1, 1 - MISSED)
    reach = quantile * np.sqrt(variance) / (value * (1 - value))
    assert interval == pytest.approx((expit(logit(value) - reach), expit(logit(value) + reach)), rel=1e-7)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_loops_agree(seed, decimals):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(25), decimals)
    y = (rng.random(25) < p).astype(int)
    y[:2], y[2:4], p[0], p[2] = 1, 0, 0.0, 1.0  # not separated
    expected, ends = naive(y, p)
    found, interval = c_statistic(make_sample(y, p), MISSED)
    assert found == pytest.approx(expected, abs=1e-12)
    assert interval == pytest.approx(ends, rel=1e-9)


def test_separated_predictions_have_one_limit():
    y, p = np.array([0, 0, 0, 1, 1, 0]), np.array([0.1, 0.2, 0.3, 0.8, 0.9, 0.2])
    assert c_statistic(make_sample(y, p), MISSED) == (1.0, (pytest.approx(0.025**0.5), 1.0))
    assert c_statistic(make_sample(y, 1 - p), MISSED) == (0.0, (0.0, pytest.approx(1 - 0.025**0.5)))


def test_constant_predictions_tell_nothing_apart():
    value, interval = c_statistic(make_sample(np.arange(20) % 2, np.full(20, 0.5)), MISSED)
    assert value == 0.5
    assert np.isnan(interval.low)


@pytest.mark.parametrize("group", [None, np.r_[0, 0, np.arange(1, 40) // 2]])
def test_a_single_event_has_no_interval(group):
    """Its placement does not show how much placements vary; with groups a single one with events does not."""
    n = 41
    p = np.r_[0.7, 0.7, np.linspace(0.02, 0.95, n - 2)]
    y = (np.arange(n) < (1 if group is None else 2)).astype(int)
    for labels, prob in ((y, p), (1 - y, 1 - p)):
        value, interval = c_statistic(induce(np.column_stack([1 - prob, prob]), labels, group=group), MISSED)
        assert 0.6 < value < 0.8
        assert np.isnan(interval).all()


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_events", [4, 8])
def test_intervals_of_few_events_cover(n_events):
    """As often as they say, up to 4 standard errors; with a normal quantile it would be 87 % of 4 events."""
    rng, sets, covered = np.random.default_rng(3), 1_000, 0
    y = (np.arange(n_events + 100) < n_events).astype(int)
    truth = ndtr(0.5 / np.sqrt(2))
    for _ in range(sets):
        low, high = c_statistic(make_sample(y, expit(rng.normal(0.5 * y))), MISSED)[1]
        covered += low <= truth <= high
    assert covered / sets >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / sets)
