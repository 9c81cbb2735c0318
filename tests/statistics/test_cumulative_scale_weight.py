"""Weights on the probability scale of the cumulative residual (Nixon et al. 2019, appendix D.2)."""

import numpy as np
import pytest

import caltest
from caltest import KS
from caltest.predictions._sample import make_sample
from caltest.statistics import Kuiper
from tests.reference.cases import check_refused


def problem(n=120, seed=0):
    rng = np.random.default_rng(seed)
    event = np.round(rng.beta(0.6, 1.5, n), 2)  # with ties
    return (rng.random(n) < event).astype(int), event


def path(labels, event, weight):
    """The weighted residuals, added up over the predictions up to each value."""
    total = sum(weight(p) for p in event)
    ends = [sum(weight(p) * (y - p) for y, p in zip(labels, event, strict=True) if p <= s) for s in sorted(set(event))]
    return [0.0, *(end / total for end in ends)]


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("p", lambda p: p),
        ("1-p", lambda p: 1 - p),
        ("p(1-p)", lambda p: p * (1 - p)),
        ("(1-2p)^2", lambda p: (1 - 2 * p) ** 2),
    ],
)
def test_errors_are_those_of_loops(name, weight):
    labels, event = problem()
    values = path(labels, event, weight)
    found = caltest.calibration_error(labels, event, statistic=KS(scale_weight=name))
    assert found == pytest.approx(max(map(abs, values)), rel=1e-12)
    found = caltest.calibration_error(labels, event, statistic=Kuiper(scale_weight=weight))
    assert found == pytest.approx(max(values) - min(values), rel=1e-12)
    by_rows = caltest.calibration_error(labels, event, statistic=KS(), sample_weight=weight(event))
    assert found != by_rows == pytest.approx(max(map(abs, values)), rel=1e-12)


def test_a_constant_changes_nothing():
    labels, event = problem()
    for options in (
        {"n_resamples": 99, "rng": 0},
        {"method": "asymptotic"},
        {"groups": np.arange(120) // 4, "n_resamples": 99, "rng": 0},
    ):
        plain, weighted = (
            caltest.calibration_test(labels, event, statistic=KS(weight), **options)
            for weight in (None, lambda p: np.full_like(p, 0.3))
        )
        assert (plain.statistic, plain.pvalue) == (weighted.statistic, weighted.pvalue)


@pytest.mark.slow(few_draws=True)
def test_the_null_distribution_is_that_of_drawn_labels():
    labels, event = problem()
    rng, statistic = np.random.default_rng(3), KS(scale_weight="p(1-p)")
    result = caltest.calibration_test(labels, event, statistic=statistic, n_resamples=999, rng=0)
    drawn = np.array([max(map(abs, path(rng.random(120) < event, event, lambda p: p * (1 - p)))) for _ in range(100)])
    error = drawn.std() * np.sqrt(1 / 100 + 1 / 999)
    assert abs(drawn.mean() - result.noise_floor) < 4 * error
    share = (drawn >= result.statistic).mean()
    assert abs(share - result.pvalue) < 4 * np.sqrt(0.25 * (1 / 100 + 1 / 999))
    groups = caltest.calibration_test(
        labels, event, statistic=statistic, groups=np.arange(120) // 4, n_resamples=99, rng=0
    )
    assert groups.statistic == pytest.approx(result.statistic)


def test_the_limit_is_that_of_the_weighted_path():
    """In 2,000 data sets of 1,000 observations 5 % exceed its 95 % quantile."""
    rng = np.random.default_rng(5)
    sample = make_sample(np.zeros(1000, dtype=int), rng.beta(0.6, 1.5, 1000))
    drawn = (rng.random((2000, 1000)) < sample.event).astype(np.uint8)
    for statistic in (KS(scale_weight="p(1-p)"), Kuiper(scale_weight="1-p")):
        limit = statistic.asymptotic_distribution(sample).quantile(0.95)
        above = (statistic.evaluate(sample, drawn) >= limit).mean()
        assert abs(above - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)


def test_states_of_streams_refuse_it():
    labels, event = problem()
    state = caltest.streaming.CalibrationState(2).update(labels, event)
    check_refused(state.error, ValueError, "KS", KS(scale_weight="p"))
    check_refused(KS, ValueError, "`scale_weight` must be one of", scale_weight="odds")
