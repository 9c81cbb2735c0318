"""Brier scores and likelihood indexes equal loops and statsmodels; their influences sum to 0."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit, stdtrit

from caltest.clinical._overall import brier_scores, likelihood_indexes
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample

MISSED = 0.025


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    l = rng.normal(-1, 1.2, 200)  # noqa: E741
    return (rng.random(200) < expit(0.3 + 0.7 * l)).astype(int), expit(l)


def jackknife(value, y, p):
    """Standard error of a function of labels and predictions."""
    n = len(y)
    keep = [np.arange(n) != i for i in range(n)]
    values = np.array([value(y[k], p[k]) for k in keep])
    return np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())


def students(y):
    """The quantile for as many units as the rarer label has."""
    return stdtrit(min(y.sum(), len(y) - y.sum()) - 1, 1 - MISSED)


def test_brier_scores(problem):
    y, p = problem
    found = brier_scores(make_sample(y, p), MISSED)
    assert found["brier"].estimate == pytest.approx(np.mean((y - p) ** 2))
    assert found["brier"].if_calibrated == pytest.approx(np.mean(p * (1 - p)))

    def scaled(y, p):
        return 1 - np.mean((y - p) ** 2) / (y.mean() * (1 - y.mean()))

    assert found["scaled_brier"].estimate == pytest.approx(scaled(y, p))
    for name, value in (("brier", lambda y, p: np.mean((y - p) ** 2)), ("scaled_brier", scaled)):
        quantile = 1.96 if name == "brier" else students(y)
        width = np.diff(found[name].interval)[0] / (2 * quantile)
        assert width == pytest.approx(jackknife(value, y, p), rel=0.05), name


@pytest.mark.slow(few_draws=True)
def test_rounding_is_no_interval():
    """Predictions that all equal the frequency: the scaled Brier score is 0, and nothing is known of its interval."""
    low, high = brier_scores(make_sample(np.arange(300) < 81, np.full(300, 0.27)), MISSED)["scaled_brier"].interval
    assert np.isnan([low, high]).all()


def test_likelihood_indexes_are_those_of_statsmodels(problem):
    y, p = problem
    n, x = len(y), logit(p)
    fit = sm.Logit(y, sm.add_constant(x)).fit(disp=0)
    model = float(np.sum(y * np.log(p) + (1 - y) * np.log(1 - p)))
    none = fit.llnull
    sample = make_sample(y, p)
    found = likelihood_indexes(sample, sample.once(EventCells.of), MISSED)
    d, u = (2 * (model - none) - 1) / n, (2 * (fit.llf - model) - 2) / n
    assert found["discrimination_index"].estimate == pytest.approx(d)
    assert found["unreliability_index"].estimate == pytest.approx(u, abs=1e-9)
    assert found["quality_index"].estimate == pytest.approx(d - u)
    r2 = (1 - np.exp(2 * (none - model) / n)) / (1 - np.exp(2 * none / n))
    assert found["r2"].estimate == pytest.approx(r2)

    def of_name(name):
        def value(y, p):
            sample = make_sample(y, p)
            return likelihood_indexes(sample, sample.once(EventCells.of), MISSED)[name].estimate

        return value

    for name in ("discrimination_index", "quality_index", "r2"):
        width = np.diff(found[name].interval)[0] / (2 * students(y))
        assert width == pytest.approx(jackknife(of_name(name), y, p), rel=0.08), name


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_events", [4, 8])
def test_intervals_of_few_events_cover(n_events):
    """Among 30 others, as often as they say up to 4 standard errors; with a normal quantile R2 would in 85 or 90 %."""
    rng, sets, names = np.random.default_rng(6), 1_000, ("r2", "discrimination_index", "scaled_brier")
    y = (np.arange(n_events + 30) < n_events).astype(int)
    prior = logit(n_events / len(y))

    def patients(y):
        return expit(prior - 1.5**2 / 2 + rng.normal(1.5 * 1.5 * y, 1.5))

    many = np.repeat([1, 0], [n_events * 20_000, 30 * 20_000])
    sample = make_sample(many, patients(many))
    truth = brier_scores(sample, MISSED) | likelihood_indexes(sample, sample.once(EventCells.of), MISSED)
    missed = np.zeros(len(names))
    for _ in range(sets):
        sample = make_sample(y, patients(y))
        found = brier_scores(sample, MISSED) | likelihood_indexes(sample, sample.once(EventCells.of), MISSED)
        ends = [found[name].interval for name in names]
        missed += [not low <= truth[name].estimate <= high for name, (low, high) in zip(names, ends, strict=True)]
    assert (missed / sets <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)).all(), missed


def test_a_single_event_has_no_interval():
    """It does not show how much a comparison with the frequency of the event varies."""
    p = np.linspace(0.02, 0.95, 41)
    sample = make_sample((np.arange(41) == 30).astype(int), p)
    found = brier_scores(sample, MISSED) | likelihood_indexes(sample, sample.once(EventCells.of), MISSED)
    for name in ("scaled_brier", "r2", "discrimination_index", "quality_index"):
        assert np.isfinite(found[name].estimate), name
        assert np.isnan(found[name].interval).all(), name
    assert np.isfinite(found["brier"].interval).all()


def test_predictions_of_0_and_1_are_left_out_of_the_likelihood(problem):
    y, p = problem
    more = np.append(y, [0, 1]), np.append(p, [0.0, 1.0])
    found = [
        likelihood_indexes(sample, sample.once(EventCells.of), MISSED)
        for sample in (make_sample(y, p), make_sample(*more))
    ]
    for name, one in found[0].items():
        assert found[1][name].estimate == pytest.approx(one.estimate), name
