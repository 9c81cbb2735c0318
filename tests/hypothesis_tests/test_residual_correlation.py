"""The test of residual correlation: its twin, its level and power, what it says and refuses."""

import json

import numpy as np
import pandas as pd
import pytest

import caltest
from benchmarks.streams import STREAMS, distorted
from caltest.hypothesis_tests import residual_correlation
from tests.hypothesis_tests.problems import ALPHA, calibrated, count_rejections, draws_in_order, most_rejections, words
from tests.reference.cases import mostly_nightly
from tests.reference.lags import lag_correlations, variance_ratios

N_DATA_SETS = 200


def naive(y_true, prob, time, lags):
    """Correlations and variance ratios; without ties the first lag is 1."""
    found = lag_correlations(y_true, prob, time, [0, *lags] if lags[0] else lags)
    ratios = variance_ratios(found, len(y_true))
    return [pair[1] for pair in found][-len(lags) :], ratios[-len(lags) :], [pair[0] for pair in found][-len(lags) :]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("ties", [False, True])
def test_the_twin_agrees(n_classes, ties):
    y_true, prob = calibrated(40, n_classes, seed=n_classes)
    rng = np.random.default_rng(0)
    time = rng.integers(12, size=40) ** 2 if ties else rng.permutation(40) ** 2
    result = residual_correlation(y_true, prob, time=time, max_lag=3, n_resamples=19, rng=0)
    correlation, ratios, pairs = naive(y_true, prob, time, result.lag.tolist())
    assert result.lag.tolist() == list(range(0 if ties else 1, 4))
    assert result.n_pairs.tolist() == pairs
    assert result.correlation == pytest.approx(correlation, abs=1e-9)
    assert result.variance_ratio == pytest.approx(ratios, abs=1e-9)


def test_the_pvalue_ranks_the_data_among_draws():
    y_true, prob = calibrated(30, 2)
    time = np.arange(30)
    result = residual_correlation(y_true, prob, max_lag=2, n_resamples=19, rng=0)
    seed = np.random.default_rng(0)  # as the function makes it
    sets = [y_true, *draws_in_order(y_true, prob, 19, seed)]
    ratios = np.array([naive(labels, prob, time, [1, 2])[1] for labels in sets])
    distance = np.abs((ratios - ratios.mean(axis=0)) / ratios.std(axis=0)).max(axis=1)
    assert result.pvalue == (distance >= distance[0] - 1e-9).mean()
    assert result.statistic == pytest.approx(distance[0])
    correlation = np.array([naive(labels, prob, time, [1, 2])[0] for labels in sets[1:]])
    assert result.upper == pytest.approx(np.quantile(correlation, 0.975, axis=0))


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_band_is_that_of_the_test(alpha):
    """A variance ratio is outside of it exactly if the test rejects; no band without enough draws."""
    decisions = set()
    for seed in range(30):
        y_true, prob = calibrated(40, 2, seed=seed)
        y_true[:10] = 1 if seed % 3 else y_true[:10]
        result = residual_correlation(y_true, prob, max_lag=3, n_resamples=59, alpha=alpha, rng=seed)
        outside = (result.variance_ratio < result.ratio_lower) | (result.variance_ratio > result.ratio_upper)
        assert outside.any() == (result.pvalue <= alpha)
        decisions.add(outside.any())
    assert decisions == {False, True}
    few = residual_correlation(y_true, prob, max_lag=3, n_resamples=3, alpha=alpha, rng=0)
    assert np.isposinf(few.ratio_upper).all()


def test_order_unit_and_name_of_the_event_do_not_matter():
    y_true, prob = calibrated(60, 2)
    time = np.arange(60)
    one = residual_correlation(y_true, prob[:, 1], time=time, n_resamples=99, rng=0)
    order = np.random.default_rng(1).permutation(60)
    days = np.datetime64("2026-01-01") + 7 * time
    shuffled = residual_correlation(y_true[order], prob[order], time=days[order], n_resamples=99, rng=0)
    assert shuffled.correlation == pytest.approx(one.correlation)
    assert shuffled.pvalue == one.pvalue
    mirrored = residual_correlation(1 - y_true, prob[:, ::-1], n_resamples=99, rng=0)
    assert mirrored.variance_ratio == pytest.approx(one.variance_ratio)
    permuted = np.random.default_rng(1).permutation(days)
    frame = pd.DataFrame({"y": y_true, "p": prob[:, 1]}, index=pd.DatetimeIndex(permuted))
    of_index = residual_correlation(frame["y"], frame["p"], n_resamples=99, rng=0)
    given = residual_correlation(y_true, prob[:, 1], time=permuted, n_resamples=99, rng=0)
    assert of_index.to_frame().equals(given.to_frame())
    assert of_index.pvalue == given.pvalue != one.pvalue


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("kind", ["independent", "batches", "rare"])
def test_the_level_is_kept(kind):
    rng = np.random.default_rng(1)
    n = 40
    time = np.repeat(np.arange(8), 5) if kind == "batches" else None
    prob = rng.beta(1, 9, n) if kind == "rare" else rng.random(n)

    def pvalue(number):
        return residual_correlation(rng.random(n) < prob, prob, time=time, n_resamples=19, rng=number).pvalue

    assert count_rejections(pvalue, N_DATA_SETS) <= most_rejections(N_DATA_SETS, ALPHA, n_cases=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_nightly(["AR(.8)", "Markov", "season", "5 classes"]))
def test_forecasts_of_the_next_step_are_not_correlated(name):
    """Labels are not independent given all predictions here, only residuals are uncorrelated."""
    rng = np.random.default_rng(2)

    def pvalue(number):
        stream = STREAMS[name](rng, 365, 1)
        return residual_correlation(stream.y_true, stream.y_prob, n_resamples=199, rng=number).pvalue

    assert count_rejections(pvalue, 300) <= most_rejections(300, ALPHA, n_cases=4)


@pytest.mark.parametrize("name", ["AR(.8)", "shocks", "5 classes"])
def test_overlapping_forecasts_are_found(name):
    rng = np.random.default_rng(3)
    for number in range(5):
        stream = STREAMS[name](rng, 700, 7)
        assert residual_correlation(stream.y_true, stream.y_prob, n_resamples=199, rng=number).pvalue <= ALPHA


@pytest.mark.slow(few_draws=True)
def test_a_wrong_slope_is_not_taken_for_a_correlation():
    rng = np.random.default_rng(4)

    def pvalue(number):
        stream = distorted(STREAMS["AR(.95)"](rng, 300, 1), "slope")
        return residual_correlation(stream.y_true, stream.y_prob, n_resamples=99, rng=number).pvalue

    assert count_rejections(pvalue, 60) <= most_rejections(60, 0.15)  # without what is removed: more than half


def test_what_is_said():
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 365, 7)
    result = residual_correlation(stream.y_true, stream.y_prob, rng=0)
    assert result.decision == result.verdict.decision == "rejected"
    assert result.conclusion.startswith("Residuals that are close in time are correlated (p = 0.001): 0.51 at lag 1,")
    assert "vary 2.8 times as much as with independent labels" in result.conclusion
    assert "pass `time` and `lead`" in words(result.verdict)
    assert json.loads(json.dumps(result.to_dict()))["conclusion"] == result.conclusion
    assert result.to_frame().columns.tolist()[:3] == ["lag", "n_pairs", "correlation"]
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)
    turns = np.arange(100) % 2
    negative = residual_correlation(turns, np.full(100, 0.5), rng=0)
    assert "negatively correlated" in negative.conclusion
    assert "rejects too rarely" in words(negative.verdict)
    none = residual_correlation(*calibrated(200, 3), rng=0)
    assert none.conclusion.startswith("No correlation of residuals that are close in time is found (p = ")


def test_little_is_undecidable():
    few = residual_correlation([0, 1, 0, 0], [0.1, 0.3, 0.2, 0.1], rng=0)
    assert few.decision == few.verdict.decision == "undecidable"
    assert "only 0.7 labels other than the most probable one" in few.conclusion
    draws = residual_correlation(*calibrated(200, 2), n_resamples=9, rng=0)
    assert "with 9 draws no p-value below 0.1 is possible" in draws.conclusion
    certain = residual_correlation([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], rng=0)
    assert (certain.pvalue, certain.decision) == (1.0, "undecidable")
    constant = residual_correlation(np.arange(50) % 2, np.full(50, 0.5), time=np.zeros(50), rng=0)
    assert constant.lag.tolist() == [0]
    assert constant.decision == constant.verdict.decision == "undecidable"
    assert "all predictions were made at the same time" in constant.conclusion
    assert "may take these labels as independent is not known" in words(constant.verdict)
    assert "may take these labels as independent is not known" in words(few.verdict)
    assert constant.variance_ratio[0] == pytest.approx(0.0, abs=1e-9)  # the shift removes the sum


def test_bad_input_is_refused():
    y_true, prob = calibrated(20, 2)
    with pytest.raises(ValueError, match=r"`max_lag` must be smaller than the number of times, 20, got 20"):
        residual_correlation(y_true, prob, max_lag=20)
    with pytest.raises(ValueError, match="`max_lag` must be"):
        residual_correlation(y_true, prob, max_lag=0)
    with pytest.raises(ValueError, match="two observations or more, got 1"):
        residual_correlation([1], [0.5])
    with pytest.raises(ValueError, match="`time` must have the time of each of the 20 observations, got 3"):
        residual_correlation(y_true, prob, time=[1, 2, 3])
    with pytest.raises(ValueError, match="`time` must have a time for every observation"):
        residual_correlation(y_true, prob, time=[*range(19), None])


def test_through_a_lens_and_in_a_region():
    y_true, prob = calibrated(80, 4)
    right = (y_true == prob.argmax(axis=1)).astype(int)
    looked = residual_correlation(y_true, prob, lens=caltest.Confidence(), n_resamples=19, rng=0)
    assert looked.correlation == pytest.approx(residual_correlation(right, prob.max(axis=1), rng=0).correlation)
    inside = prob.max(axis=1) > 0.5
    some = residual_correlation(y_true, prob, region=lambda p: p.max(axis=1) > 0.5, n_resamples=19, rng=0)
    alone = residual_correlation(y_true[inside], prob[inside], n_resamples=19, rng=0)
    assert some.variance_ratio == pytest.approx(alone.variance_ratio)


def test_residuals_that_a_curve_explains_are_no_correlation():
    """Four predictions with three values: what was left after the removal was rounding, and p was 0.002."""
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        prob, label = np.array([0.1, 0.3, 0.2, 0.1])[order], np.array([0, 1, 0, 0])[order]
        assert residual_correlation(label, prob, rng=0).pvalue == 1
