"""Labels that share more shocks with similar predictions: pairs by loops, the moment equations, levels of panels."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._similar_draws import PARTS, STUDENTISED, SimilarDraws, SimilarOutcome, _increasing
from caltest.resampling.draws._timed_draws import TimedDraws
from tests.reference.cases import mostly_nightly

LEAD = 7


def made_once_a_lead(seed, n, lead=LEAD):
    """Calibrated forecasts that stay the same for a lead, and all labels of which are one outcome."""
    rng = np.random.default_rng(seed)
    number = -(-n // lead)
    prob, uniform = rng.beta(1, 2, number), rng.random(number)
    return np.repeat(uniform < prob, lead)[:n].astype(int), np.repeat(prob, lead)[:n], np.arange(n)


def panel(seed, n_series, n_times, phi=0.8, lead=LEAD):
    """Calibrated forecasts of the same days, of series that have nothing to do with each other and differ in level."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n_series, n_times + lead))
    noise[:, 1:] *= np.sqrt(1 - phi * phi)
    state = lfilter([1.0], [1.0, -phi], noise)
    limit = ndtri(1 - np.linspace(0.05, 0.8, n_series))[:, None]
    prob = ndtr((phi**lead * state[:, :n_times] - limit) / np.sqrt(1 - phi ** (2 * lead)))
    time = np.tile(np.arange(n_times), n_series)
    return (state[:, lead:] > limit).astype(int).ravel(), prob.ravel(), time


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_are_told_apart_by_how_similar_their_predictions_are(n_classes):
    rng = np.random.default_rng(n_classes)
    n, lead = 70, 3
    prob = np.round(rng.dirichlet(np.ones(n_classes), n), 1) + 0.1
    prob /= prob.sum(axis=1, keepdims=True)
    label, weight = rng.integers(n_classes, size=n), rng.uniform(0.5, 2, n)
    sample = make_sample(label, prob, time=rng.integers(30, size=n), lead=lead, sample_weight=weight)
    outcome, label, prob = sample.once(SimilarOutcome.of), sample.outcome, sample.prob  # in their order of the sample
    step = sample.timing.step
    place = np.argsort(outcome.near[0].time.order)
    if n_classes == 2:
        value = prob[:, 1]
    else:
        common = sorted(range(n_classes), key=lambda k: -prob[:, k].sum())
        value = np.array([max(range(n_classes), key=lambda m: one[common[m]]) + max(one) / 2 for one in prob])
    rank = [((value < own).sum() + (value == own).sum() / 2) / n for own in value]
    for number, near, group in zip((1, *PARTS), outcome.near, (None, *outcome.group), strict=True):
        part = [int(one * number) for one in rank]
        expected = squares = 0.0
        for one in outcome.near[0].scored:
            e = one.residual[place][np.arange(n), label]
            variance = one.variance[place]
            e = e - variance * (e.sum() / variance.sum())
            squares += sum(e * e)
            expected += sum(
                e[i] * e[j] for i in range(n) for j in range(n) if abs(step[i] - step[j]) < lead and part[i] == part[j]
            )
        assert near.products(label[None])[0] == pytest.approx([expected, squares])
        if group is not None:
            assert all(part[i] == part[j] for i in range(n) for j in range(n) if group[i] == group[j])
            assert all(abs(step[i] - step[j]) < lead for i in range(n) for j in range(n) if group[i] == group[j])


def test_drawn_labels_keep_their_margins_and_depend_on_each_other_as_observed_ones_do():
    label, prob, time = panel(1, 12, 150)
    sample = make_sample(label, prob, time=time, lead=LEAD)
    outcome, draws = sample.once(SimilarOutcome.of), SimilarDraws.of_similar(sample, 256, 3)
    label, prob = sample.outcome, sample.prob[:, 1]  # in the order of the sample
    assert draws is not None
    assert sum(draws.shares) > 10 * draws.correlation  # the series are unrelated
    labels, scale = zip(*((drawn, factor) for _, drawn, factor in draws.scaled_blocks(sample)), strict=True)
    labels, scale = np.concatenate(labels), np.concatenate(scale)
    np.testing.assert_array_equal(draws.scale(sample, labels), scale)
    z = (labels.mean(axis=0) - prob) / np.sqrt(prob * (1 - prob) / 256)
    assert np.abs(z).max() < 5  # of 1,800 observations
    common = TimedDraws.as_observed(sample, 256, 3)
    of_common = np.concatenate([drawn for _, drawn in common.blocks(sample)])
    eighths = outcome.near[3]
    observed, similar, others = (
        (found := eighths.products(some))[:, 0] - found[:, 1] for some in (label[None], labels, of_common)
    )
    error = similar.std(ddof=1)  # of one data set, which the observed one is
    assert abs(similar.mean() - observed[0]) < error
    assert others.mean() < similar.mean() / 4


def test_correlations_of_similar_predictions_are_no_smaller_than_those_of_others():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, weights = rng.normal(size=5).round(1), rng.uniform(0.1, 2, 5)
        np.testing.assert_allclose(_increasing(values, weights), isotonic_regression(values, weights=weights).x)
    np.testing.assert_array_equal(_increasing(np.array([0.5, 0.2]), np.zeros(2)), [0.5, 0.5])


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_inflation_of_forecasts_that_stay_the_same_for_a_lead_is_not_cut_off(repeats):
    label, prob, time = (np.repeat(one, repeats) for one in made_once_a_lead(5, 50 * LEAD))
    sample = make_sample(label, prob, time=time, lead=LEAD)
    near = sample.once(SimilarOutcome.of).near[STUDENTISED]
    assert near.largest == pytest.approx(LEAD * repeats)
    # labels that share windows from a random step on vary together only (k^2 + (7 - k)^2) / 7 times as much on average
    assert near.inflation(sample.outcome[None])[0] > 0.9 * LEAD * repeats


def test_they_are_drawn_only_of_labels_in_time_without_groups():
    label, prob, time = panel(2, 6, 60)
    assert SimilarDraws.of_similar(make_sample(label, prob), 9, 0) is None
    groups = np.arange(len(label)) // 60
    assert SimilarDraws.of_similar(make_sample(label, prob, time=time, lead=LEAD, groups=groups), 9, 0) is None
    assert SimilarDraws.of_similar(make_sample(label, prob, time=time, lead=LEAD), 9, 0) is not None
    constant = np.full(len(label), label.mean())
    assert SimilarDraws.of_similar(make_sample(label, constant, time=time, lead=LEAD), 9, 0) is None


@pytest.mark.slow(few_draws=True)
def test_the_p_value_is_the_larger_one_and_its_origin_says_of_what():
    label, prob, time = panel(3, 12, 150)
    options = {"time": time, "lead": LEAD, "statistic": caltest.ECE(), "n_resamples": 499, "rng": 0}
    found = caltest.calibration_test(label, prob, **options)
    assert "more of them with those of similar predictions, as the observed ones do" in " ".join(str(found).split())
    sample = make_sample(label, prob, time=time, lead=LEAD)
    ece = caltest.ECE().for_sample(sample)
    common = [
        ece.evaluate(sample, drawn) * scale
        for _, drawn, scale in TimedDraws.as_observed(sample, 499, 0).scaled_blocks(sample)
    ]
    assert found.pvalue > 2 * (np.concatenate(common) >= found.statistic).mean()


def test_bars_of_unrelated_series_are_wider_than_those_of_labels_that_depend_on_all_others():
    label, prob, time = panel(4, 12, 150)
    curve = caltest.reliability_curve(label, prob, time=time, lead=LEAD, n_resamples=199, rng=0)
    independent = caltest.reliability_curve(label, prob, n_resamples=199, rng=0)
    wider = (curve.bar_upper - curve.bar_lower) / (independent.bar_upper - independent.bar_lower)
    assert np.median(wider) > 1.3  # the root of an inflation of 3 is 1.7


@pytest.mark.nightly
def test_forecasts_that_stay_the_same_for_a_lead_are_not_rejected_too_often():
    """13.5 % of 1,000 predictions were, while their inflation was cut off."""
    n_sets, level = 150, 0.05
    rejected = 0
    for seed in range(n_sets):
        label, prob, time = made_once_a_lead([7, seed], 1000)
        options = {"statistic": caltest.ECE(), "n_resamples": 99, "rng": seed}
        rejected += caltest.calibration_test(label, prob, time=time, lead=LEAD, **options).pvalue <= level
    assert rejected / n_sets <= level + 4 * np.sqrt(level * (1 - level) / n_sets)


@pytest.mark.slow
@pytest.mark.parametrize(("n_series", "n_times"), mostly_nightly([(20, 120), (6, 300)]))
def test_calibrated_panels_are_not_rejected_too_often(n_series, n_times):
    """Without shocks of similar predictions 35 and 25 % of these were rejected."""
    n_sets, level = 60, 0.05
    rejected = 0
    for seed in range(n_sets):
        label, prob, time = panel([n_series, seed], n_series, n_times)
        found = caltest.calibration_test(label, prob, time=time, lead=LEAD, n_resamples=99, rng=seed)
        rejected += found.pvalue <= level
    assert rejected / n_sets <= level + 4 * np.sqrt(level * (1 - level) / n_sets)
