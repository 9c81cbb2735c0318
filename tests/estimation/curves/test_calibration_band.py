"""The calibration band: against every block one after the other, its coverage, its p-value, and what it prints."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.estimation.curves._calibration_band import ScoreGroups
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._labels import OutcomeDraws
from tests.reference import naive
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.results.printed import printed

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=30)
BEYOND = stats.norm.sf(4)
"""The probability of a binomial limit as far out as 4 standard errors."""
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def data(seed, n, places, power=1.0):
    """Scores with ties, events that follow a power of them."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), places)
    return (rng.random(n) < score**power).astype(int), score


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from([0.5, 0.95, 0.999]),
)  # fmt: skip
def test_it_equals_its_loops(seed, n, places, power, level):
    y, score = data(seed, n, places, power)
    band = ct.calibration_band(y, score, confidence_level=level, alpha=1 - level, n_resamples=19, rng=0)
    lower, upper = naive.calibration_band(score.tolist(), y.tolist(), level)
    np.testing.assert_array_equal(band.score, np.unique(score))
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.contains_diagonal == (band.pvalue > (1 - level) * (1 + 1e-12))
    assert np.all(band.lower <= band.recalibrated + 1e-12)
    assert np.all(band.recalibrated <= band.upper + 1e-12)


@pytest.mark.slow
@PROFILE
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 2))
def test_rounded_scores_equal_their_loops(seed, n, digits):
    y, score = data(seed, n, 4, 2.0)
    band = ct.calibration_band(y, score, digits=digits)
    _, groups = np.unique(np.round(np.unique(score), digits), return_inverse=True)
    lower, upper = naive.calibration_band(score.tolist(), y.tolist(), 0.95, groups.tolist())
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.n_groups == groups.max() + 1


@pytest.mark.slow(few_draws=True)
def test_many_scores_form_groups_by_default():
    rng = np.random.default_rng(0)
    score = rng.random(12_000)
    y = rng.random(12_000) < score
    band = ct.calibration_band(y, score, n_resamples=19, rng=0)
    same = ct.calibration_band(y, score, digits=4, n_resamples=19, rng=0)
    assert band.to_dict() == same.to_dict()
    assert "(equal to 4 decimals)" in " ".join(str(band).split())
    assert band.n_groups < 10_000 < len(band.score)


def test_one_score_is_clopper_pearson():
    band = ct.calibration_band([1] * 30 + [0] * 70, np.full(100, 0.2))
    bounds = stats.binomtest(30, 100).proportion_ci(0.95)
    np.testing.assert_allclose([band.lower[0], band.upper[0]], bounds, rtol=1e-9)
    assert band.tube == pytest.approx(bounds.high - 0.2)


@pytest.mark.slow
def test_many_observations_at_few_scores():
    """Tail probabilities of 10^5 observations keep their digits."""
    rng = np.random.default_rng(0)
    score = np.repeat([0.1, 0.5, 0.9], 100_000)
    y = rng.random(300_000) < score
    band = ct.calibration_band(y, score)
    events = np.add.reduceat(y, [0, 100_000, 200_000])
    one = stats.beta.ppf(0.05 / 12, events, 100_000 - events + 1)
    np.testing.assert_allclose(band.lower, one, rtol=1e-9)


@pytest.mark.parametrize("digits", mostly_slow([1, None]))
def test_the_pvalue_is_the_rank_of_the_smallest_tail(digits):
    """Against every block of the lengths of the test, one after the other, on every draw."""
    for n in (1, 7, 30):
        y, score = data(n, n, 2, 1.5)
        sample = make_sample(y, score)
        groups = ScoreGroups.of(sample, digits)
        draws = OutcomeDraws.of(9, 3)
        labels = np.concatenate([sample.outcome[None], *(some for _, some in draws.blocks(sample))])
        lengths = set(groups.lengths.tolist())
        assert set(range(1, min(groups.n_groups, 8) + 1)) <= lengths
        tails = [
            naive.smallest_block_tail(sample.event.tolist(), some.tolist(), lengths, groups.index.tolist())
            for some in labels
        ]
        found = ct.calibration_band(y, score, digits=digits, n_resamples=9, rng=3)
        assert found.pvalue == np.mean(np.array(tails) <= tails[0] * (1 + 1e-9)), n


def test_the_smallest_level_that_excludes_the_diagonal_is_the_pvalue():
    for seed in range(6):
        y, score = data(seed, 300, 2, 1.3)
        found = ct.calibration_band(y, score, n_resamples=199, rng=0).pvalue
        for alpha, contains in ((found, False), (found - 1 / 400, True)):
            if 0 < alpha < 1:
                band = ct.calibration_band(y, score, alpha=alpha, n_resamples=199, rng=0)
                assert band.contains_diagonal == contains, (seed, found)


def test_the_test_has_its_own_level():
    y, score = data(1, 300, 2, 1.3)
    one = ct.calibration_band(y, score, n_resamples=99, rng=0)
    two = ct.calibration_band(y, score, confidence_level=0.8, n_resamples=99, rng=0)
    three = ct.calibration_band(y, score, alpha=0.3, n_resamples=99, rng=0)
    np.testing.assert_array_equal([one.test_lower, one.test_upper], [two.test_lower, two.test_upper])
    np.testing.assert_array_equal([one.lower, one.upper], [three.lower, three.upper])
    assert two.tube < one.tube
    assert np.all(one.test_lower <= three.test_lower)
    assert np.any(one.test_lower < three.test_lower)


@pytest.mark.parametrize("event", [0, 1])
def test_a_rare_event_that_did_not_happen_is_no_rejection(event):
    """As few events as in every draw: the ends of the band are the scores, up to rounding."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 5) * 20:
        score = np.abs(event - rng.beta(0.5, 5000, n))
        band = ct.calibration_band([event] * n, score, n_resamples=19, rng=0)
        assert band.contains_diagonal == (band.pvalue > 0.05), score


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_sets", [100, pytest.param(1500, marks=pytest.mark.nightly)])
def test_level(n_sets):
    """The p-values of calibrated sets are uniform on their grid, or a step of it larger where there is a tie."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(n_sets):
        score = rng.random(60) ** 2
        found.append(ct.calibration_band(rng.random(60) < score, score, n_resamples=19, rng=rng).pvalue)
    for level in (0.05, 0.1, 0.5):
        rejected = np.count_nonzero(np.array(found) < level + 1e-9)
        assert rejected <= stats.binom.isf(BEYOND, n_sets, level), level
        assert rejected >= stats.binom.ppf(BEYOND, n_sets, level - 1 / 20), level


def test_order_and_reversed_events_do_not_matter():
    y, score = data(2, 200, 3)
    band = ct.calibration_band(y, score)
    order = np.random.default_rng(0).permutation(200)
    again = ct.calibration_band(y[order], score[order])
    np.testing.assert_array_equal(band.lower, again.lower)
    turned = ct.calibration_band(1 - y, 1 - score)
    np.testing.assert_allclose(1 - turned.upper[::-1], band.lower, atol=1e-13)
    np.testing.assert_allclose(1 - turned.upper[::-1], band.lower, atol=1e-13)


def test_an_impossible_label_excludes_calibration():
    band = ct.calibration_band([1, 0, 1], [0.0, 0.0, 1.0])
    assert band.pvalue == 1 / 1000
    assert not band.contains_diagonal
    assert ct.calibration_band([0, 0, 1], [0.0, 0.0, 1.0]).pvalue == 1


# --- coverage

FUNCTIONS = {
    "calibrated": lambda p: p,
    "constant": lambda p: np.full_like(p, 0.3),
    "steps": lambda p: 0.2 + 0.6 * (p > 0.5),
    "over-confident": lambda p: 0.3 + 0.4 * p,
}


@pytest.mark.slow
@pytest.mark.parametrize("truth", mostly_nightly(FUNCTIONS))
def test_it_contains_increasing_functions(truth):
    """At level .5 a band of this kind still contains them nearly always: it has many bounds."""
    for digits in (None, 1):
        rng = np.random.default_rng(4)
        held = 0
        for _ in range(200):
            score = rng.random(50)
            events = rng.random(50) < FUNCTIONS[truth](score)
            band = ct.calibration_band(events, score, confidence_level=0.5, digits=digits, n_resamples=1)
            r = FUNCTIONS[truth](band.score)
            held += np.all((band.lower <= r) & (r <= band.upper))
        assert held >= stats.binom.ppf(1e-4, 200, 0.5), digits
        assert held > 180, digits  # so that a band too narrow by the number of blocks is found


@pytest.mark.nightly
def test_coverage_is_nominal_for_one_block():
    """A single score: two bounds, and nothing is lost except by the grid of counts."""
    rng = np.random.default_rng(5)
    held = [
        ct.calibration_band(rng.random(400) < 0.3, np.full(400, 0.3), confidence_level=0.8, n_resamples=1)
        for _ in range(400)
    ]
    contained = sum(bool(band.lower[0] <= 0.3 <= band.upper[0]) for band in held)
    assert stats.binom.ppf(1e-4, 400, 0.8) <= contained <= stats.binom.isf(1e-4, 400, 0.86)


# --- what it reports


def test_regions():
    band = ct.calibration_band(*data(0, 2000, 2, 2.0))
    assert not band.contains_diagonal
    regions = band.rejected_regions
    assert all(0 <= a < b <= 1 for a, b in regions)
    assert all(b < c for (_, b), (c, _) in pairwise(regions))
    inside = [any(a <= x <= b for a, b in regions) for x in band.score]
    assert np.all(np.array(inside)[band.rejected])
    assert band.to_frame().shape == (len(band.score), 8)
    assert band.to_dict()["rejected_regions"] == [list(region) for region in regions]
    assert ct.calibration_band(*data(0, 200, 2), rng=0).rejected_regions == []


def test_groups_do_not_split_a_region():
    y, score = data(0, 5000, 4, 2.0)
    split = [
        len(ct.calibration_band(y, score, digits=digits, n_resamples=99, rng=0).rejected_regions) for digits in (1, 2)
    ]
    assert split == [1, 1]


@pytest.mark.slow(few_draws=True)
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
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        (ValueError, {"confidence_level": 1.0}, "`confidence_level` must lie strictly"),
        (ValueError, {"alpha": 0.0}, "`alpha` must lie strictly"),
        (ValueError, {"lens": ct.TopK(2)}, "`lens` must have two outcomes, such as"),
    ):
        with pytest.raises(error, match=message):
            ct.calibration_band(y, prob, **options)


PRINTED = """
Calibration band (confidence, 899 observations)
Calibration is rejected (p = 0.001) for predictions from 0.7551 to 0.9346,
0.9363 to 0.9384, 0.9408 to 0.944, 0.948 to 0.9498, 0.9506 to 0.956.
With 95 % confidence the calibration function differs from every prediction by
at most 0.6459.

  Confidence band: 95 % for all 899 distinct predictions at once (valid at every
    sample size).
  Test: the smallest tail probability of blocks of neighbouring predictions, 999
    Monte Carlo draws of the labels, predictions fixed (valid at every sample
    size).
  Valid if the calibration function does not decrease with the prediction,
    observations are independent and no label was used to make the predictions.
    [C101: docs/notes.md]
"""
PRINTED_GROUPS = """
Calibration band (confidence, 899 observations)
Calibration is not rejected (p = 0.756). This does not prove that the model is
calibrated.
With 95 % confidence the calibration function differs from every prediction by
at most 0.5405.

  Confidence band: 95 % for all 899 distinct predictions in 53 groups (equal to
    2 decimals) at once (valid at every sample size).
  Test: the smallest tail probability of blocks of neighbouring predictions, 999
    Monte Carlo draws of the labels, predictions fixed (valid at every sample
    size).
  Valid if the calibration function does not decrease with the prediction,
    observations are independent and no label was used to make the predictions.
    [C101: docs/notes.md]
"""


def print_it(model, **options):
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.calibration_band(y_true, models[model], rng=0, **options)


def test_what_is_printed():
    assert printed(print_it("logistic_regression")) == PRINTED.strip("\n")
    assert printed(print_it("neural_network", digits=2)) == PRINTED_GROUPS.strip("\n")


@pytest.mark.nightly
def test_the_band_of_the_test_is_no_confidence_band():
    """It contains the diagonal of calibrated sets at its level, other functions less often; the other band does."""
    n_sets, held = 300, {}
    for truth in ("calibrated", "constant"):
        rng = np.random.default_rng(7)
        bands = []
        for _ in range(n_sets):
            score = rng.random(200)
            events = rng.random(200) < FUNCTIONS[truth](score)
            bands.append(ct.calibration_band(events, score, confidence_level=0.9, alpha=0.1, n_resamples=99, rng=rng))
        for name in ("lower", "test_lower"):
            low, high = name, name.replace("lower", "upper")
            inside = [
                np.all((getattr(b, low) <= FUNCTIONS[truth](b.score)) & (FUNCTIONS[truth](b.score) <= getattr(b, high)))
                for b in bands
            ]
            held[truth, name] = np.mean(inside)
    few, many = stats.binom.ppf([BEYOND, 1 - BEYOND], n_sets, [0.9, 0.9 + 1 / 100])  # a tie is a step of the grid
    assert few <= n_sets * held["calibrated", "test_lower"] <= many
    assert n_sets * held["constant", "test_lower"] < few
    assert min(held["calibrated", "lower"], held["constant", "lower"]) > 0.97


def test_the_band_of_the_test_decides_as_the_pvalue_where_nearly_all_tails_are_1():
    for first in (1e-16, 0.0):
        prob = np.append(np.full(50, first), np.ones(50))
        band = ct.calibration_band(
            np.append([1], np.append(np.zeros(49, int), np.ones(50, int))), prob, n_resamples=199, rng=0
        )
        assert band.pvalue == 0.005
        assert not band.contains_diagonal
        assert np.all(band.test_lower <= band.test_upper)
