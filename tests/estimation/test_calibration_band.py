"""The calibration band: against every block one after the other, its coverage, its p-value, and what it prints."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.resampling._distributions import SMALLEST_PVALUE
from tests.reference import naive
from tests.results.printed import printed

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=60)
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def data(seed, n, places, power=1.0):
    """Scores with ties, events that follow a power of them."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), places)
    return (rng.random(n) < score**power).astype(int), score


@PROFILE
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from([0.5, 0.95, 0.999]),
)  # fmt: skip
def test_it_equals_its_loops(seed, n, places, power, level):
    y, score = data(seed, n, places, power)
    band = ct.calibration_band(y, score, confidence_level=level)
    lower, upper, pvalue = naive.calibration_band(score.tolist(), y.tolist(), level)
    np.testing.assert_array_equal(band.score, np.unique(score))
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.pvalue == pytest.approx(max(pvalue, SMALLEST_PVALUE), rel=1e-9)
    assert band.contains_diagonal == (band.pvalue >= 1 - level)
    assert np.all(band.lower <= band.recalibrated + 1e-12)
    assert np.all(band.recalibrated <= band.upper + 1e-12)


@pytest.mark.slow
@PROFILE
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 2))
def test_rounded_scores_equal_their_loops(seed, n, digits):
    y, score = data(seed, n, 4, 2.0)
    band = ct.calibration_band(y, score, digits=digits)
    _, groups = np.unique(np.round(np.unique(score), digits), return_inverse=True)
    lower, upper, pvalue = naive.calibration_band(score.tolist(), y.tolist(), 0.95, groups.tolist())
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.pvalue == pytest.approx(max(pvalue, SMALLEST_PVALUE), rel=1e-9)
    assert band.n_groups == groups.max() + 1


def test_one_score_is_clopper_pearson():
    band = ct.calibration_band([1] * 30 + [0] * 70, np.full(100, 0.2))
    bounds = stats.binomtest(30, 100).proportion_ci(0.95)
    np.testing.assert_allclose([band.lower[0], band.upper[0]], bounds, rtol=1e-9)
    assert band.pvalue == pytest.approx(2 * stats.binom.sf(29, 100, 0.2))
    assert band.tube == pytest.approx(bounds.high - 0.2)


def test_many_observations_at_few_scores():
    """Tail probabilities of 10^5 observations keep their digits."""
    rng = np.random.default_rng(0)
    score = np.repeat([0.1, 0.5, 0.9], 100_000)
    y = rng.random(300_000) < score
    band = ct.calibration_band(y, score)
    events = np.add.reduceat(y, [0, 100_000, 200_000])
    one = stats.beta.ppf(0.05 / 12, events, 100_000 - events + 1)
    np.testing.assert_allclose(band.lower, one, rtol=1e-9)


def test_the_smallest_level_that_excludes_the_diagonal_is_the_pvalue():
    y, score = data(1, 300, 1, 2.2)
    found = ct.calibration_band(y, score).pvalue
    assert 1e-6 < found < 0.2
    assert not ct.calibration_band(y, score, confidence_level=1 - found * 1.001).contains_diagonal
    assert ct.calibration_band(y, score, confidence_level=1 - found * 0.999).contains_diagonal


def test_order_and_reversed_events_do_not_matter():
    y, score = data(2, 200, 3)
    band = ct.calibration_band(y, score)
    order = np.random.default_rng(0).permutation(200)
    again = ct.calibration_band(y[order], score[order])
    np.testing.assert_array_equal(band.lower, again.lower)
    turned = ct.calibration_band(1 - y, 1 - score)
    np.testing.assert_allclose(1 - turned.upper[::-1], band.lower, atol=1e-13)
    assert turned.pvalue == pytest.approx(band.pvalue, rel=1e-9)


def test_an_impossible_label_excludes_calibration():
    band = ct.calibration_band([1, 0, 1], [0.0, 0.0, 1.0])
    assert band.pvalue < 1e-300
    assert ct.calibration_band([0, 0, 1], [0.0, 0.0, 1.0]).pvalue == 1


# --- coverage

FUNCTIONS = {
    "calibrated": lambda p: p,
    "constant": lambda p: np.full_like(p, 0.3),
    "steps": lambda p: 0.2 + 0.6 * (p > 0.5),
    "over-confident": lambda p: 0.3 + 0.4 * p,
}


@pytest.mark.parametrize("truth", FUNCTIONS)
def test_it_contains_increasing_functions(truth):
    """At level .5 a band of this kind still contains them nearly always: it has many bounds."""
    for digits in (None, 1):
        rng = np.random.default_rng(4)
        held = 0
        for _ in range(200):
            score = rng.random(50)
            events = rng.random(50) < FUNCTIONS[truth](score)
            band = ct.calibration_band(events, score, confidence_level=0.5, digits=digits)
            r = FUNCTIONS[truth](band.score)
            held += np.all((band.lower <= r) & (r <= band.upper))
        assert held >= stats.binom.ppf(1e-4, 200, 0.5), digits
        assert held > 180, digits  # so that a band too narrow by the number of blocks is found


def test_coverage_is_nominal_for_one_block():
    """A single score: two bounds, and nothing is lost except by the grid of counts."""
    rng = np.random.default_rng(5)
    held = [
        ct.calibration_band(rng.random(400) < 0.3, np.full(400, 0.3), confidence_level=0.8).contains_diagonal
        for _ in range(400)
    ]
    assert stats.binom.ppf(1e-4, 400, 0.8) <= sum(held) <= stats.binom.isf(1e-4, 400, 0.86)


# --- what it reports


def test_regions():
    band = ct.calibration_band(*data(0, 2000, 2, 2.0))
    assert not band.contains_diagonal
    regions = band.rejected_regions
    assert all(0 <= a < b <= 1 for a, b in regions)
    assert all(b < c for (_, b), (c, _) in pairwise(regions))
    inside = [any(a <= x <= b for a, b in regions) for x in band.score]
    assert np.all(np.array(inside)[band.rejected])
    assert band.to_frame().shape == (len(band.score), 6)
    assert band.to_dict()["rejected_regions"] == [list(region) for region in regions]
    assert ct.calibration_band(*data(0, 200, 2)).rejected_regions == []


def test_at_most_five_regions_are_named():
    """Every second of 14 scores has the wrong frequency."""
    score = np.repeat(np.linspace(0.1, 0.9, 14), 5000)
    truth = score + 0.05 * (np.arange(14).repeat(5000) % 2)
    y = np.random.default_rng(0).random(len(score)) < truth
    band = ct.calibration_band(y, score)
    assert len(band.rejected_regions) > 5
    assert band.conclusion.count(" to ") == 5
    assert band.conclusion.endswith(" and others.")


def test_lenses_and_regions_of_predictions():
    y, prob = (part[:500] for part in ct.datasets.load_cifar10_vgg16())
    band = ct.calibration_band(y, prob)
    assert (band.lens, band.lens_name) == (ct.Confidence(), "confidence")
    top = prob.max(axis=1)
    np.testing.assert_allclose(band.score, np.unique(top), rtol=1e-12)
    assert ct.calibration_band([0, 1], [0.2, 0.7]).lens == ct.Canonical()
    inside = ct.calibration_band(y, prob, region=lambda p: p[:, 1] < 0.9)
    assert inside.n_samples == (top < 0.9).sum()


def test_refusals():
    y, prob = [0, 1], [[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]
    for error, options, message in (
        (ValueError, {"digits": 0}, "`digits` must be an integer >= 1, got 0"),
        ((TypeError, ValueError), {"digits": 0.5}, "`digits` must be an integer >= 1, got 0.5"),
        (ValueError, {"confidence_level": 1.0}, "`confidence_level` must lie strictly"),
        (ValueError, {"lens": ct.TopK(2)}, "`lens` must have two outcomes, such as"),
    ):
        with pytest.raises(error, match=message):
            ct.calibration_band(y, prob, **options)


PRINTED = """
Calibration band (confidence, 899 observations)
Calibration is rejected (p = 0.006138). The diagonal is outside the band for
predictions from 0.829 to 0.8793.
With 95 % confidence the calibration function differs from every prediction by
at most 0.6459.

  Band: 95 % confidence for all 899 distinct predictions at once (valid at every
    sample size).
  Valid if the calibration function does not decrease with the prediction,
    observations are independent and no label was used to make the predictions.
    [C101: docs/notes.md]
"""
PRINTED_GROUPS = """
Calibration band (confidence, 899 observations)
Calibration is not rejected (p = 1). This does not prove that the model is
calibrated.
With 95 % confidence the calibration function differs from every prediction by
at most 0.5405.

  Band: 95 % confidence for all 899 distinct predictions in 53 groups (equal to
    2 decimals) at once (valid at every sample size).
  Valid if the calibration function does not decrease with the prediction,
    observations are independent and no label was used to make the predictions.
    [C101: docs/notes.md]
"""


def print_it(model, **options):
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.calibration_band(y_true, models[model], **options)


def test_what_is_printed():
    assert printed(print_it("logistic_regression")) == PRINTED.strip("\n")
    assert printed(print_it("neural_network", digits=2)) == PRINTED_GROUPS.strip("\n")
