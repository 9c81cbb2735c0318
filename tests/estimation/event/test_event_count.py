"""Tails of the number of events: against enumeration, and against a distribution that is computed in another way."""

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_count import EventCount, without_skewness
from caltest.predictions._sample import make_sample
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from tests.reference.cases import mostly_slow
from tests.reference.events import tails_of_sum


def cells_of(prob, y):
    return EventCells.of_counts(np.asarray(prob, float), np.ones(len(y)), np.asarray(y, float))


@pytest.mark.parametrize("events", mostly_slow([0, 1, 4, 9, 10]))
@pytest.mark.parametrize("slope", [1.0, 0.4, 3.0])
def test_few_observations_are_enumerated(events, slope):
    prob = np.array([0.02, 0.1, 0.1, 0.25, 0.4, 0.55, 0.7, 0.9, 0.97, 0.99])
    count = EventCount(cells_of(prob, np.arange(10) >= 10 - events), slope)
    for intercept in (-2.0, 0.0, 0.7):
        expected = min(1.0, 2 * min(tails_of_sum(prob, intercept, slope, events)))
        assert count.pvalue(intercept) == pytest.approx(expected, rel=1e-9)
    low, high = count.interval(0.025)
    if events > 0:
        assert tails_of_sum(prob, low, slope, events)[1] == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == -np.inf
    if events < 10:
        assert tails_of_sum(prob, high, slope, events)[0] == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == np.inf


@pytest.mark.parametrize("difference", [-30, -12, -1, 0, 5, 25])
def test_many_events_have_the_tails_of_a_fourier_transform(difference):
    """The variance is 46, above which nothing is convolved."""
    prob = np.random.default_rng(0).uniform(0.02, 0.5, 280)
    events = round(prob.sum()) + difference
    count = EventCount(cells_of(prob, np.arange(280) >= 280 - events))
    expected = PoissonBinomial.of(prob).two_sided(events)
    assert count.pvalue(0.0) == pytest.approx(expected, rel=0.004)
    for end, side in zip(count.interval(0.025), (slice(0, events), slice(events + 1, None)), strict=True):
        there = PoissonBinomial.of(expit(logit(prob) + end))
        counts = np.zeros(281)
        counts[there.counts] = there.pmf
        assert 1 - counts[side].sum() == pytest.approx(0.025, rel=0.004)


def test_the_complement_is_the_mirror_image():
    prob = np.array([0.001, 0.01, 0.2, 0.3, 0.6, 0.97])
    y = np.array([1, 0, 0, 1, 1, 1])
    count, mirrored = EventCount(cells_of(prob, y)), EventCount(cells_of((1 - prob)[::-1], (1 - y)[::-1]))
    assert mirrored.pvalue(0.0) == pytest.approx(count.pvalue(0.0), rel=1e-12)
    assert mirrored.interval(0.05)[::-1] == pytest.approx([-end for end in count.interval(0.05)], rel=1e-6)


def test_tails_far_from_the_observed_number_are_right():
    """65 events are expected, none happens: the probability of that is a product."""
    prob = np.linspace(0.1, 0.333, 300)
    assert EventCount(cells_of(prob, np.zeros(300))).pvalue(0.0) == pytest.approx(2 * np.prod(1 - prob), rel=0.05)
    few = np.full(50, 0.3)  # convolved
    assert EventCount(cells_of(few, np.zeros(50))).pvalue(0.0) == pytest.approx(2 * 0.7**50, rel=1e-9)


def test_small_weighted_sums_are_not_beyond_what_can_be_rejected():
    """With one event of three the third moment is large; tails decrease from the estimate on all the same."""
    count = EventCount(EventCells.of(make_sample([0, 0, 1], np.full(3, 0.5), sample_weight=[1.0, 2.0, 1.5])))
    tails = [count._below(a) for a in np.linspace(-1, 6, 60)]
    assert (np.diff(tails) < 0).all()
    assert count.pvalue(count.interval(0.025)[1]) == pytest.approx(0.05, rel=1e-6)


def test_weights_compare_the_standardised_sum():
    prob, y, weight = np.full(400, 0.5), np.arange(400) % 2, np.linspace(0.5, 1.5, 400)
    count = EventCount(EventCells.of(make_sample(y, prob, sample_weight=weight)))
    low, high = count.interval(0.025)
    error = 1.959964 * np.sqrt(np.square(weight).sum() / 4) / (weight.sum() / 4)  # of the shift, which is symmetric
    assert high - low == pytest.approx(2 * error, rel=0.02)


def test_variances_whose_powers_are_0_divide_by_nothing():
    """Weighted observations whose predictions are nearly 0 or 1 raised ZeroDivisionError."""
    for variance in (0.0, 1e-320, 1e-200, 1e-12):
        assert without_skewness(0.0, variance, variance) == pytest.approx(0, abs=0.3)
        assert without_skewness(1.0, variance, variance) > 1e3
        assert without_skewness(-1.0, variance, variance) < -1e3
    cells = EventCells.of(make_sample(np.arange(20) < 1, np.full(20, 1e-200), sample_weight=np.arange(1.0, 21.0)))
    assert EventCount(cells).pvalue(0.0) < 1e-6
    assert EventCount(cells).interval(0.025)[0] > 0
