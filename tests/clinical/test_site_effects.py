"""Effects of sites: no bias with few events, the right spread, and weights and groups of one change nothing."""

import numpy as np
import pytest
from scipy.special import expit

from caltest.clinical._site_effects import c_statistics, known_effects, log_ratios, slopes
from caltest.predictions._sample import make_sample
from tests.reference.cases import mostly_slow

KINDS = {"ratio": log_ratios, "slope": slopes, "c": c_statistics}


def sites(number, size, seed, shift=0.0, slope=1.0, **design):
    """Samples of sites with a common intercept and slope."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(number):
        logit = rng.normal(-1.9, 1.2, size)
        event = (rng.random(size) < expit(shift + slope * logit)).astype(int)
        found.append(make_sample(event, expit(logit), **{name: make(size) for name, make in design.items()}))
    return found


@pytest.fixture(scope="module")
def many():
    return sites(600, 111, 0, 0.2, 0.8)


def truth(kind):
    """The values of many patients of one of these sites."""
    logit = np.random.default_rng(1).normal(-1.9, 1.2, 200_000)
    true, prob = expit(0.2 + 0.8 * logit), expit(logit)
    if kind == "ratio":
        return np.log(true.sum() / prob.sum())
    if kind == "slope":
        return 0.8
    order = np.argsort(logit)
    below = np.cumsum(1 - true[order]) / (1 - true).sum()
    c = below @ true[order] / true.sum()
    return np.log(c / (1 - c))


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("kind", mostly_slow(sorted(KINDS)))
def test_means_over_sites_with_20_events_are_right(kind, many):
    """The mean of all sites, weighted by variances that do not follow their labels."""
    value, variance, deviation = known_effects(KINDS[kind](many)).T
    error = np.sqrt(1 / (1 / variance).sum())
    assert np.average(value, weights=1 / variance) == pytest.approx(truth(kind), abs=4 * error)
    assert np.square(deviation).sum() == pytest.approx(len(value) - 1, abs=4 * np.sqrt(2.5 * len(value)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("design", [{"sample_weight": np.ones}, {"groups": np.arange}])
def test_weights_and_groups_of_one(kind, design):
    alone, other = (known_effects(KINDS[kind](sites(8, 150, 2, **some))) for some in ({}, design))
    groups = "groups" in design
    assert other[:, 0] == pytest.approx(alone[:, 0], rel=1e-9)
    ratio = other[:, 1] / alone[:, 1]
    assert ratio == pytest.approx(1, abs=0.25 if groups else 1e-9)
    assert ratio == pytest.approx(ratio[0]), "one number for all sites"
    assert other[:, 2] * np.sqrt(ratio) == pytest.approx(alone[:, 2], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_patients_with_three_equal_rows_count_once(kind):
    alone = sites(8, 150, 3)
    three = [
        make_sample(np.repeat(one.outcome, 3), np.repeat(one.event, 3), groups=np.repeat(np.arange(150), 3))
        for one in alone
    ]
    found, expected = (known_effects(KINDS[kind](some)) for some in (three, alone))
    assert found[:, 1].mean() == pytest.approx(expected[:, 1].mean(), rel=0.3)


def test_sites_without_a_number():
    empty = make_sample(np.zeros(50, dtype=int), np.full(50, 0.1))
    equal = make_sample(np.arange(50) % 5 == 0, np.full(50, 0.2))
    assert known_effects(log_ratios([empty, empty])).shape == (0, 3), "no events at all"
    assert len(known_effects(log_ratios([empty, equal]))) == 2
    assert len(known_effects(slopes([empty, equal]))) == 0
    assert len(known_effects(c_statistics([empty, equal]))) == 0
