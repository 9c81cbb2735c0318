"""The smallest detectable error: exact power, odd predictions, words, and the draws of a test that was made."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import binom

import caltest
from benchmarks import detectable, pages
from caltest.hypothesis_tests._alike_labels import AlikeLabels
from caltest.hypothesis_tests._detection import Detection, sample_of
from caltest.hypothesis_tests._typical_errors import OF_EVENTS
from caltest.predictions._sample import make_sample
from caltest.statistics import CoxScore, Omnibus
from tests.reference.cases import failures

RISKS = expit(np.random.default_rng(0).normal(-1.5, 1, 400))


def draw(prob, seed=0):
    return (np.random.default_rng(seed).random(len(prob)) < prob).astype(int)


def test_the_power_of_a_binomial_test_is_reached():
    """The score of the intercept of equal predictions rejects by the number of events, whose power is known."""
    n, p = 200, 0.3
    detection = Detection.of(CoxScore("intercept"), sample_of(np.tile([1 - p, p], (n, 1)), n), rng=1)
    size = binom.pmf(np.arange(n + 1), n, p)
    distance = np.abs(np.arange(n + 1) - n * p)
    level = np.array([size[distance >= d - 1e-9].sum() for d in distance])
    for error in OF_EVENTS[:2]:
        found = detection.smallest(error, 0.8)
        true = expit(np.log(p / (1 - p)) + found.size)
        power = binom.pmf(np.arange(n + 1), n, true)[level <= 0.05].sum()
        # A standard error of 0.01 from 2,400 data sets; the critical value lies on one of two numbers of events.
        assert power == pytest.approx(0.8, abs=0.05), error.kind
        assert found.points == pytest.approx(100 * abs(true - p))
        assert found.factor == pytest.approx(true / p)


def odd_predictions():
    """Predictions by name, with a pattern of what is said of them."""
    none = "These are so few observations that no error, however large, would have been found reliably."
    certain = "All predictions are 0 or 1: one observation that contradicts its prediction would have been found."
    often = "this would have been found in 4 of 5 such data sets; smaller errors may be missed."
    some = f"Had the predictions been wrong by {{}} percentage points on average, {often}"
    factor = f"Had the true {{}} been {{}} times the predicted ones, {often}"
    missed = (
        f"Had the predictions been {{}}, and wrong by {{}} percentage points on average, {often} That they are {{}} "
        "would not have been found reliably, however large the error."
    )
    many = np.random.default_rng(1).dirichlet(np.full(200, 0.05), 30)
    number = r"[\d.]+"
    return {
        "one": ([0.3], none),
        "two": ([0.3, 0.6], none),
        "eight": (
            np.linspace(0.1, 0.4, 8),
            missed.format("too low", number, "too high, too extreme or not extreme enough"),
        ),
        "constant": (np.full(100, 0.3), some.format(number)),
        "no slope is found": (
            np.append(np.full(50, 0.3), 0.31),
            missed.format("too low or too high", number, "too extreme or not extreme enough"),
        ),
        "zeros": (np.zeros(5), certain),
        "one-hot": (np.eye(3), certain),
        "half zeros": (np.append(np.zeros(50), np.full(50, 0.3)), some.format(number)),
        "rare": (np.full(3_000, 0.004), factor.format("risks", number)),
        "common": (np.full(3_000, 0.996), factor.format("risks that the event does not happen", number)),
        "too rare": (np.full(10, 1e-6), missed.format("too low", number, "too high") + "|" + none),
        "denormal": (np.full(10, 1e-320), none),
        "nearly certain": (np.full(10, 1 - 1e-16), none),
        "many classes": (
            many,
            missed.format(
                "over-confident or under-confident", number, "too low or too high for the most frequent class"
            ),
        ),
    }


ODD = odd_predictions()
QUICK = ("one", "eight", "constant", "zeros", "rare")


def check_sentences(case):
    prob, expected = case
    found = caltest.detectable_error(prob, n_resamples=199, rng=0)
    assert re.fullmatch(expected, found.conclusion), found.conclusion
    assert found.conclusion in " ".join(str(found).split())
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.to_frame()) == len(found.errors)


@pytest.mark.slow(few_draws=True)
def test_what_is_said_of_odd_predictions():
    assert failures({name: ODD[name] for name in QUICK}, check_sentences) == {}


@pytest.mark.slow
def test_what_is_said_of_very_odd_predictions():
    assert failures({name: case for name, case in ODD.items() if name not in QUICK}, check_sentences) == {}


@pytest.mark.slow(few_draws=True)
def test_the_numbers_fit_each_other():
    found = caltest.detectable_error(RISKS, n_resamples=499, rng=0)
    assert [error.kind for error in found.errors] == ["too low", "too high", "too extreme", "not extreme enough"]
    assert found.points == max(error.points for error in found.errors)
    assert found.factor == found.errors[0].factor > 1
    assert found.test_statistic == Omnibus()
    assert found.n_samples_for(found.points / 2) == pytest.approx(4 * len(RISKS))
    for error, kind in zip(found.errors, OF_EVENTS, strict=True):
        moved = kind.true_prob(np.column_stack([1 - RISKS, RISKS]), kind.amount(error.size))[:, 1]
        assert error.points == pytest.approx(100 * np.abs(moved - RISKS).mean())
        assert error.factor == pytest.approx(moved.mean() / RISKS.mean())
    again = caltest.detectable_error(RISKS, n_resamples=499, rng=0, workers=2)
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
    mirrored = caltest.detectable_error(1 - RISKS, n_resamples=499, rng=0)
    assert mirrored.factor == pytest.approx(found.factor, rel=0.1)
    assert mirrored.points == pytest.approx(found.points, rel=0.15)


@pytest.mark.slow
def test_more_observations_find_smaller_errors():
    options = {"n_resamples": 999, "rng": 0}
    few, many = (caltest.detectable_error(RISKS, n_samples=n, **options) for n in (100, 1600))
    assert (few.n_samples, many.n_samples) == (100, 1600)
    assert 3 < few.points / many.points < 5
    assert few.predicted == pytest.approx(RISKS.mean(), rel=0.02)
    assert many.predicted == pytest.approx(RISKS.mean(), rel=1e-12)


@pytest.mark.slow
def test_the_power_is_said_as_it_is_asked_for():
    options = {"n_resamples": 499, "rng": 0}
    larger, odd = (caltest.detectable_error(RISKS, power=power, **options) for power in (0.9, 0.83))
    assert "found in 9 of 10 such data sets" in larger.conclusion
    assert "found in 83 % of such data sets" in odd.conclusion
    assert larger.points > odd.points


@pytest.mark.slow(few_draws=True)
def test_the_draws_of_a_test_are_taken():
    """But for the default test of two outcomes, where they would differ for the complement."""
    default = caltest.calibration_test(draw(RISKS), RISKS, n_resamples=1000, rng=0)
    sample = make_sample(draw(RISKS), RISKS)
    assert Detection.of_test(default, sample).null.shape[1] == 1999
    asked = {"statistic": CoxScore("intercept"), "rng": 0}
    test = caltest.calibration_test(draw(RISKS), RISKS, n_resamples=1000, **asked)
    detection = Detection.of_test(test, sample)
    assert detection.usual.n_resamples == 1000
    np.testing.assert_array_equal(detection.null[0], test.components[0].null_distribution)
    assert detection.usual is detection.usual
    few = caltest.calibration_test(draw(RISKS), RISKS, n_resamples=19, **asked)
    assert Detection.of_test(few, sample).usual.n_resamples == 9999
    assert detection.usual.points == pytest.approx(Detection.of_test(few, sample).usual.points, rel=0.1)


def test_large_samples_of_many_classes_have_no_detectable_error(monkeypatch):
    """Memory: the test itself makes no table of doubles."""
    test = caltest.calibration_test(draw(RISKS), RISKS, n_resamples=99, rng=0)
    sample = make_sample(draw(RISKS), RISKS)
    monkeypatch.setattr("caltest.predictions._sample.is_large", lambda prob: True)
    assert Detection.of_test(test, sample) is None


@pytest.mark.slow(few_draws=True)
def test_groups_of_one_and_equal_weights_change_nothing():
    each = {"groups": np.arange(len(RISKS)), "icc": 0.3, "sample_weight": np.full(len(RISKS), 2.0)}
    found, plain = (caltest.detectable_error(RISKS, n_resamples=99, rng=0, **more).to_dict() for more in (each, {}))
    assert found == plain


def test_few_groups_find_nothing():
    groups = np.arange(len(RISKS)) % 3
    found = caltest.detectable_error(RISKS, groups=groups, n_resamples=99, rng=0)
    assert found.conclusion == "With 3 groups no p-value below 0.25 is possible: no error would be found."
    assert found.advice.endswith("Collect data from more groups.")
    test = caltest.calibration_test(draw(RISKS), RISKS, groups=groups, n_resamples=99, rng=0)
    assert test.verdict.detectable is None
    assert test.decision == "undecidable"


def test_a_detection_with_groups_needs_both_tests():
    """Labels that are right are hardly rejected, and those of a large error are, unless all of a group are the same."""
    sample = make_sample(draw(RISKS), RISKS, groups=np.arange(len(RISKS)) // 20)
    error, how = OF_EVENTS[0], {"n_resamples": 199, "rng": 0}
    apart, alike = (Detection.of(Omnibus(), sample, alike=AlikeLabels(sample, icc), **how) for icc in (0, 0.7))
    prob = sample.expected
    assert apart.rejections(prob, 30) <= 7
    assert apart.rejections(error.true_prob(prob, 2.0), 30) == 30
    assert alike.rejections(error.true_prob(prob, 0.5), 30) < apart.rejections(error.true_prob(prob, 0.5), 30) - 8


@pytest.mark.slow
def test_groups_have_larger_errors_the_more_their_labels_are_alike():
    """Many groups: the shift grows by the root of the design effect, the slope within groups hardly."""
    groups = np.arange(len(RISKS)) // 2
    apart, alike = (caltest.detectable_error(RISKS, groups=groups, icc=icc, n_resamples=999, rng=0) for icc in (0, 0.6))
    assert (alike.n_groups, alike.icc, alike.icc_interval) == (200, 0.6, None)
    growth = [large.points / small.points for large, small in zip(alike.errors, apart.errors, strict=True)]
    assert growth[0] == pytest.approx(math.sqrt(1.6), rel=0.12)
    assert growth[3] < 1.15
    assert apart.conclusion.endswith("were taken to have an intraclass correlation of 0. This is the best case.")
    assert alike.conclusion.endswith("Labels of a group were taken to have an intraclass correlation of 0.6.")
    assert "data from about" in alike.advice


@pytest.mark.slow
def test_one_group_of_most_observations_finds_less():
    groups = np.maximum(np.arange(len(RISKS)) - 300, 0)
    options = {"icc": 0.1, "n_resamples": 999, "rng": 0}
    huge, equal = (caltest.detectable_error(RISKS, groups=g, **options) for g in (groups, np.arange(len(RISKS)) % 101))
    assert huge.errors[0].points > 1.6 * equal.errors[0].points
    again = caltest.detectable_error(RISKS, groups=groups, workers=2, **options)
    pd.testing.assert_frame_equal(again.to_frame(), huge.to_frame())


def test_advice_says_how_many_observations_to_collect():
    """By the root law: errors of 5 points, risks of 1.5 times the predicted ones, or 20 expected events."""
    few = "These data are too few to approve the predictions. "
    cases = {
        "enough": (np.full(1000, 0.3), ""),
        "certain": (np.ones(9), ""),
        "nothing is found": (np.full(2, 0.25), few + "Collect about 80 observations at least."),
        "points": (np.full(60, 0.4), few + "To find errors of 5 percentage points, collect about {} observations."),
        "rare": (
            np.full(200, 0.02),
            few + "To find true risks of 1.5 times the predicted ones, collect about {} observations.",
        ),
    }

    def check(case):
        prob, expected = case
        found = caltest.detectable_error(prob, n_resamples=199, rng=0)
        assert re.fullmatch(expected.format(r"[\d,]+"), found.advice), found.advice
        assert found.too_few == bool(expected)
        assert found.advice in " ".join(str(found).split())

    assert failures(cases, check) == {}


def test_bad_input():
    for options, message in (
        ({"power": 0.04}, "`power` must be larger than `alpha` 0.05, got 0.04."),
        ({"power": 1}, "`power` must lie strictly between 0 and 1, got 1."),
        ({"n_samples": 0}, "`n_samples` must be an integer >= 1, got 0."),
        ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0."),
        ({"icc": 0.1}, "`icc` is that of the labels of a group: give `groups`, got 0.1."),
        ({"icc": 1.5, "groups": np.arange(len(RISKS)) % 2}, "`icc` must be a finite number from 0 to 1, got 1.5."),
        ({"n_samples": 9, "groups": np.arange(len(RISKS)) % 2}, "`n_samples` is for observations without `groups`"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            caltest.detectable_error(RISKS, **options)
    with pytest.raises(ValueError, match=r"`y_prob` must lie in \[0, 1\]"):
        caltest.detectable_error([0.5, 1.5])


def test_no_level_is_reached_by_few_draws():
    """19 draws reject at 5 % only what is more extreme than all of them, and 9 nothing."""
    assert math.isnan(caltest.detectable_error(RISKS, n_resamples=9, rng=0).points)


def test_the_stored_rates_are_as_promised():
    text = (detectable.ROOT / "docs" / "how-many-observations.md").read_text()
    stored = pages.read((detectable.ROOT / "docs" / "data" / "detectable.csv").read_text())
    designs = {**detectable.DESIGNS, **detectable.WITH_GROUPS, **detectable.OF_STATES}
    assert set(zip(stored["predictions"], stored["n_samples"], strict=True)) == set(designs)
    assert len(stored) == 4 * len(designs)
    error = 2 * np.sqrt(
        0.16 / stored["data_sets"]
    )  # of 400 data sets with groups or of states, and of as many to find the size
    far = (stored["rate"] - 0.8).abs() > 0.037 + error
    assert not far.any(), stored[far]
    made = detectable.rates_table(stored)
    assert text == pages.with_table(text, pages.mark("detectable"), made), "python benchmarks/detectable.py --page"


@pytest.mark.nightly
def test_the_power_at_the_smallest_error():
    """New data sets, each tested with its own draws: 4 standard errors of 600, and 0.02 of the size that was found."""
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    for prob in (detectable.risks(-1.6, 1.2, 500, rng), rng.dirichlet(np.full(4, 0.5), 500)):
        found = caltest.detectable_error(prob, rng=rng)
        two = np.column_stack([1 - prob, prob]) if prob.ndim == 1 else prob
        for error in found.errors:
            true_prob = detectable.true_probability(two, error.family, error.size)
            labels = [detectable.simulate(true_prob, rng) for _ in range(600)]
            rejected = [caltest.calibration_test(y, two, n_resamples=999, rng=rng).rejected for y in labels]
            assert np.mean(rejected) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 600) + 0.02), (seed, error.kind)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [2, 12])
def test_an_event_and_its_complement_have_the_same_answer(digits):
    """Also where the draws of the test differ, and right at a threshold."""
    rng = np.random.default_rng(0)
    y_prob = rng.beta(2, 6, 600).round(digits)
    weight = rng.integers(1, 4, 600)
    label = (rng.random(600) < y_prob).astype(int)
    for design in ({}, {"sample_weight": weight}):
        one, other = (
            caltest.calibration_test(y, p, **design, n_resamples=999, rng=0).verdict
            for y, p in ((label, y_prob), (1 - label, 1 - y_prob))
        )
        assert one.advice == other.advice
        assert one.detectable.conclusion == other.detectable.conclusion
    low, high = (caltest.detectable_error(p, n_resamples=999, rng=0) for p in (y_prob, 1 - y_prob))
    assert [error.points for error in low.errors[2:]] == pytest.approx([error.points for error in high.errors[2:]])
    assert [error.kind for error in low.errors] == [error.kind for error in high.errors]
    assert (low.errors[0].points, low.errors[0].size) == pytest.approx((high.errors[1].points, -high.errors[1].size))
    assert low.factor == pytest.approx(high.factor)
    assert low.predicted == pytest.approx(1 - high.predicted)


def in_time(rng, prob, lead=7, correlation=0.5):
    """Labels whose shocks are those of a market between a forecast and its outcome."""
    n = len(prob)
    shock = np.convolve(rng.normal(size=n + lead - 1), np.ones(lead), "valid") / np.sqrt(lead)
    latent = np.sqrt(correlation) * shock + np.sqrt(1 - correlation) * rng.normal(size=n)
    return (ndtr(latent) < prob).astype(int)


@pytest.mark.slow
def test_tests_with_times_find_the_error_that_is_stated():
    rng, time = np.random.default_rng(5), {"time": np.arange(300), "lead": 7, "rng": 0}
    prob = ndtr(0.9 * rng.normal(size=300) - 0.5)
    result = caltest.calibration_test(in_time(rng, prob), prob, **time, n_resamples=999)
    assert result.decision == "not rejected"
    (error,) = (one for one in result.verdict.detectable.errors if one.kind == "too low")
    plain = caltest.detectable_error(prob, n_resamples=999, rng=0).errors[0]
    assert error.size > 1.3 * plain.size
    true = expit(logit(prob) + error.size)
    found = [
        caltest.calibration_test(in_time(rng, true), prob, **time, n_resamples=199).pvalue <= 0.05 for _ in range(100)
    ]
    assert np.mean(found) >= 0.8 - 4 * np.sqrt(0.8 * 0.2 / 100)
