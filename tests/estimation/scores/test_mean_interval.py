"""Intervals of means, with their skewness."""

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from caltest.estimation.scores._mean_interval import logit_interval, mean_interval, share_interval
from caltest.predictions._sample import make_sample
from tests.reference.in_time import number_of_cosines


def sample_of(n, **design):
    return make_sample(np.arange(n) % 2, np.full(n, 0.5), **design)


def transformed(t, skewness):
    """Hall's (1992) cubic of a studentised difference, which is about standard normal."""
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def test_the_ends_are_where_halls_cubic_has_the_quantile():
    values = np.random.default_rng(0).exponential(size=50)
    mean, n = values.mean(), len(values)
    low, high = mean_interval(mean, values - mean, sample_of(n), 0.05)
    error = values.std(ddof=1) / np.sqrt(n)
    skewness = ((values - mean) ** 3).sum() / n**3 * (n / (n - 1)) ** 1.5 / error**3
    assert transformed((mean - low) / error, skewness) == pytest.approx(ndtri(0.95))
    assert transformed((mean - high) / error, skewness) == pytest.approx(ndtri(0.05))
    assert high - mean > mean - low  # the long tail is on this side


def test_symmetric_values_have_the_usual_interval():
    values = np.tile([-1.0, 1.0], 20)
    reach = ndtri(0.975) * values.std(ddof=1) / np.sqrt(40)
    assert mean_interval(3.0, values, sample_of(40), 0.025) == pytest.approx((3 - reach, 3 + reach))


def test_groups_are_added_up():
    rng = np.random.default_rng(1)
    values, group = rng.normal(size=60), np.arange(60) // 6
    values -= values.mean()
    sample = sample_of(60, groups=group)
    sums = np.bincount(group, values[sample.row]) / 60
    low, high = mean_interval(0.0, values[sample.row], sample, 0.025)
    error = np.sqrt(10 / 9 * (sums**2).sum())
    skewness = (10 / 9) ** 1.5 * (sums**3).sum() / error**3
    assert transformed(-low / error, skewness) == pytest.approx(stdtrit(9, 0.975))
    assert transformed(-high / error, skewness) == pytest.approx(stdtrit(9, 0.025))


def test_few_units_that_vary_have_students_quantile():
    """If there are fewer groups than these units, that of the groups is the larger one."""
    values = np.tile([-1.0, 1.0], 20)
    reach = values.std(ddof=1) / np.sqrt(40)
    low, high = mean_interval(3.0, values, sample_of(40), 0.025, 5)
    assert (low, high) == pytest.approx((3 - stdtrit(4, 0.975) * reach, 3 + stdtrit(4, 0.975) * reach))
    assert np.isnan(mean_interval(3.0, values, sample_of(40), 0.025, 1)).all()
    grouped = sample_of(40, groups=np.arange(40) // 4)
    values = np.random.default_rng(1).normal(size=40)
    assert mean_interval(3.0, values, grouped, 0.025, 20) == mean_interval(3.0, values, grouped, 0.025)


def test_nothing_is_said_where_nothing_varies_or_with_few_units():
    assert np.isnan(mean_interval(1.0, np.zeros(40), sample_of(40), 0.025).low)
    assert np.isnan(mean_interval(1.0, np.arange(5.0) - 2, sample_of(5), 0.025).low)
    assert np.isnan(mean_interval(1.0, np.arange(40.0), sample_of(40, groups=np.arange(40) % 5), 0.025).low)
    assert np.isnan(logit_interval(1.0, np.arange(40.0), sample_of(40), 0.025, 20).low)


def test_in_time_the_variance_comes_from_cosines():
    rng, n, lead = np.random.default_rng(4), 90, 6
    values = np.convolve(rng.normal(size=n + lead - 1), np.ones(lead), "valid")
    sample = sample_of(n, time=np.arange(n), lead=lead)
    number = number_of_cosines(np.arange(n), lead)
    angle = np.pi * np.outer(np.arange(1, number + 1), np.arange(n) + 0.5) / n
    error = np.sqrt(np.mean((np.sqrt(2) * np.cos(angle) @ (values - values.mean())) ** 2)) / n
    low, high = mean_interval(values.mean(), (values - values.mean())[sample.row], sample, 0.025)
    reach = stdtrit(number, 0.975) * error
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach))
    assert np.isnan(mean_interval(0.0, values[sample.row], sample_of(n, time=np.arange(n), lead=20), 0.025).low)


def test_a_share_of_none_in_time_is_worth_as_many_as_there_are_windows():
    sample, alone = sample_of(90, time=np.arange(90), lead=6), sample_of(15)
    found, expected = (share_interval(np.zeros(one.n_samples), one, 0.025)[1].high for one in (sample, alone))
    square, normal = stdtrit(number_of_cosines(np.arange(90), 6), 0.975) ** 2, ndtri(0.975) ** 2
    assert (found, expected) == pytest.approx((square / (15 + square), normal / (15 + normal)))


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("shape", [0.3, 1.0])
def test_means_are_covered(shape):
    """Of skewed values more often than by the usual interval; the rest is of the order of 1 / n."""
    rng, n, sets = np.random.default_rng(2), 40, 2_000
    sample, missed, usual = sample_of(n), 0, 0
    for _ in range(sets):
        values = rng.gamma(shape, size=n)
        mean = values.mean()
        low, high = mean_interval(mean, values - mean, sample, 0.025)
        missed += not low <= shape <= high
        usual += abs(mean - shape) > ndtri(0.975) * values.std(ddof=1) / np.sqrt(n)
    assert missed < usual
    assert missed / sets < {0.3: 0.12, 1.0: 0.08}[shape]
