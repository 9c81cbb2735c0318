"""Histogram regression and the reliability curve."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import beta, binom

import caltest as ct
from caltest.resampling._distributions import PoissonBinomial
from tests.reference import naive

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def problem():
    """A calibrated three-class problem."""
    prob = RNG.dirichlet([1, 1, 2], 400)
    y = (RNG.random(400)[:, None] > prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    return y, prob


def test_regression_by_hand():
    fit = ct.histogram_regression([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], partition=ct.EqualWidth(2))
    np.testing.assert_allclose(fit.count, [2, 2])
    np.testing.assert_allclose(fit.share, [0.5, 0.5])
    np.testing.assert_allclose(fit.predicted[:, 1], [0.2, 0.85])
    np.testing.assert_allclose(fit.observed[:, 1], [0.5, 1.0])
    np.testing.assert_allclose(fit.deviation[:, 1], [0.3, 0.15])
    assert fit.expected_miscalibration() == pytest.approx(0.225)
    assert fit.worst_case_miscalibration() == pytest.approx(0.3)
    assert fit.worst_case_miscalibration(ct.squared_euclidean) == pytest.approx(0.18)


def test_regression_agrees_with_the_error(problem):
    y, prob = problem
    for partition in (ct.EqualWidth(4), ct.VarianceTree(min_leaf=30), ct.VarianceTree()):
        fit = ct.histogram_regression(y, prob, partition=partition)
        for distance in (ct.total_variation, ct.euclidean):
            error = ct.calibration_error(y, prob, statistic=ct.ECE(partition, distance))
            assert fit.expected_miscalibration(distance) == pytest.approx(error, abs=1e-14)
            worst = ct.calibration_error(y, prob, statistic=ct.MCE(partition, distance))
            assert fit.worst_case_miscalibration(distance) == pytest.approx(worst, abs=1e-14)


def test_predict_returns_the_frequencies_of_the_cell(problem):
    y, prob = problem
    fit = ct.histogram_regression(y, prob, partition=ct.EqualWidth(3))
    cells = np.minimum((prob[:, :2] * 3).astype(int), 2) @ [3, 1]
    for cell in np.unique(cells):
        rows = cells == cell
        frequency = np.bincount(y[rows], minlength=3) / rows.sum()
        np.testing.assert_allclose(fit.predict(prob[rows]), np.tile(frequency, (rows.sum(), 1)))


def test_predict_is_zero_in_empty_cells_and_undefined_outside_the_region():
    fit = ct.histogram_regression([0, 1], [0.1, 0.2], partition=ct.EqualWidth(10), region=lambda p: p[:, 1] < 0.5)
    np.testing.assert_array_equal(fit.predict([0.1, 0.3, 0.7]), [[1, 0], [0, 0], [np.nan, np.nan]])


def test_predict_looks_through_the_lens(problem):
    y, prob = problem
    fit = ct.histogram_regression(y, prob, lens=ct.Confidence(), partition=ct.EqualWidth(2))
    top = prob.max(axis=1)
    right = y == prob.argmax(axis=1)
    assert fit.predict(prob)[top >= 0.5][0, 1] == pytest.approx(right[top >= 0.5].mean())


def test_predictions_of_other_models_are_refused(problem):
    fit = ct.histogram_regression(*problem)
    with pytest.raises(ValueError, match="`y_prob` must have the 3 classes of the fitted predictions, got 4"):
        fit.predict(np.full((2, 4), 0.25))


def test_region_restricts_the_shares(problem):
    y, prob = problem
    fit = ct.histogram_regression(y, prob, region=lambda p: p[:, 0] > 0.5)
    assert fit.count.sum() == (prob[:, 0] > 0.5).sum()
    assert fit.share.sum() == pytest.approx(1)


def test_regression_prints(problem):
    assert "Histogram regression through Canonical()" in str(ct.histogram_regression(*problem))


# --- the curve


def test_curve_by_hand():
    y = [0, 1, 0, 1, 1]
    p = [0.1, 0.2, 0.3, 0.8, 0.9]
    curve = ct.reliability_curve(y, p, partition=ct.EqualWidth(2))
    np.testing.assert_allclose(curve.lower, [0, 0.5])
    np.testing.assert_allclose(curve.upper, [0.5, 1])
    np.testing.assert_array_equal(curve.count, [3, 2])
    np.testing.assert_allclose(curve.predicted, [0.2, 0.85])
    np.testing.assert_allclose(curve.observed, [1 / 3, 1])
    np.testing.assert_allclose(curve.deviation, [1 / 3 - 0.2, 0.15])
    # First cell: P(K = 0) = .504, P(K <= 1) = .902, P(K <= 2) = .994; second: P(K = 0) = .02, P(K <= 1) = .28.
    np.testing.assert_allclose(curve.bar_low, [0, 0.5])
    np.testing.assert_allclose(curve.bar_high, [2 / 3, 1])


def test_default_lens_is_the_event_for_two_classes_and_the_confidence_for_more(problem):
    y, prob = problem
    assert ct.reliability_curve(y, prob).lens == "Confidence()"
    assert ct.reliability_curve(y == 2, prob[:, 2]).lens == "Canonical()"


def test_curve_cells_equal_the_naive_ones(problem):
    y, prob = problem
    curve = ct.reliability_curve(y, prob, partition=ct.EqualMass(7))
    top, right = prob.max(axis=1), y == prob.argmax(axis=1)
    cells = np.array(naive.cells(ct.EqualMass(7), np.column_stack([1 - top, top])))
    order = sorted(set(cells), key=lambda c: top[cells == c].mean())
    np.testing.assert_allclose(curve.predicted, [top[cells == c].mean() for c in order])
    np.testing.assert_allclose(curve.observed, [right[cells == c].mean() for c in order])
    assert np.all(curve.lower[1:] == curve.upper[:-1])


def test_consistency_bars_hold_at_least_their_level_in_every_cell():
    """Exact probability of the bar under the Poisson-binomial law, not a simulation."""
    p = RNG.random(300)
    for level in (0.5, 0.9, 0.99):
        curve = ct.reliability_curve(p < 0.5, p, confidence_level=level)
        for b in range(curve.n_cells):
            rows = (p >= curve.lower[b]) & (p < curve.upper[b])
            law = PoissonBinomial.of(p[rows])
            frequency = law.counts / rows.sum()
            tail = (1 - level) / 2 + 1e-12
            assert law.pmf[frequency < curve.bar_low[b] - 1e-12].sum() <= tail
            assert law.pmf[frequency > curve.bar_high[b] + 1e-12].sum() <= tail


def test_simultaneous_bars_hold_all_points_at_least_at_their_level():
    n_sets, level = 400, 0.9
    rng = np.random.default_rng(0)
    p = rng.random(500)
    misses = 0
    for _ in range(n_sets):
        curve = ct.reliability_curve(rng.random(500) < p, p, confidence_level=level, simultaneous=True)
        misses += curve.outside.any()
    assert misses <= binom.ppf(1 - 1e-4, n_sets, 1 - level)


def test_share_of_points_outside_is_at_most_nominal():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    outside = [ct.reliability_curve(rng.random(500) < p, p).outside for _ in range(300)]
    assert np.sum(outside) <= binom.ppf(1 - 1e-4, np.size(outside), 0.1)


def test_resampled_bars_agree_with_the_exact_ones_in_full_cells():
    """Rows resampled: quantiles of deviations agree with the Poisson-binomial ones but for one count and noise."""
    rng = np.random.default_rng(2)
    p = rng.random(4000)
    y = rng.random(4000) < p
    exact = ct.reliability_curve(y, p, partition=ct.EqualWidth(4))
    n_resamples = 2000
    resampled = ct.reliability_curve(
        y, p, partition=ct.EqualWidth(4), resampling=ct.Consistency(resample_predictions=True),
        n_resamples=n_resamples, rng=0,
    )  # fmt: skip
    assert exact.exact
    assert not resampled.exact
    assert "approximate" in resampled.reading
    # standard error of a normal 5 % quantile: sqrt(.05 .95 / B) / density(1.645) = 2.11 sd / sqrt(B)
    sd = np.sqrt([np.mean(p[c] * (1 - p[c])) / c.sum() for c in (np.floor(4 * p) == b for b in range(4))])
    tolerance = 4 * 2.11 * sd / np.sqrt(n_resamples) + 1 / exact.count
    assert np.all(np.abs(resampled.bar_low - exact.bar_low) < tolerance)
    assert np.all(np.abs(resampled.bar_high - exact.bar_high) < tolerance)


def test_confidence_bars_are_clopper_pearson(problem):
    y, prob = problem
    curve = ct.reliability_curve(y, prob, bars="confidence", partition=ct.EqualMass(5))
    k, n = curve.observed * curve.count, curve.count
    np.testing.assert_allclose(curve.bar_low, np.nan_to_num(beta.ppf(0.05, k, n - k + 1)), atol=1e-10)
    np.testing.assert_allclose(curve.bar_high, beta.ppf(0.95, k + 1, n - k), atol=1e-10)
    assert "average calibration function" in curve.reading


def test_calibration_function_moves_the_expectation():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = rng.random(2000) < p**2

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    curve = ct.reliability_curve(
        y, p, partition=ct.EqualWidth(5), resampling=ct.Consistency(calibration_function=squared)
    )
    cell = np.floor(5 * p)
    np.testing.assert_allclose(curve.predicted, [p[cell == b].mean() for b in range(5)])
    np.testing.assert_allclose(curve.expected, [(p[cell == b] ** 2).mean() for b in range(5)])
    assert curve.reading.startswith("If the given calibration function were the true one")
    assert np.all(np.abs(curve.deviation) < 4 * 0.5 / np.sqrt(curve.count))


def test_user_partition_and_density(problem):
    y, prob = problem
    curve = ct.reliability_curve(y, prob, partition=lambda p: (p[:, 1] > 0.6).astype(int))
    assert curve.n_cells == 2
    assert curve.upper[0] <= 0.6 < curve.lower[1]
    assert curve.density.sum() == pytest.approx(1)
    assert len(curve.density_edges) == len(curve.density) + 1


def test_impossible_and_certain_predictions():
    curve = ct.reliability_curve([0, 1, 1, 0], [0.0, 0.0, 1.0, 1.0], partition=ct.EqualWidth(2))
    np.testing.assert_array_equal(curve.bar_low, [0, 1])
    np.testing.assert_array_equal(curve.bar_high, [0, 1])
    assert curve.outside.all()


def test_curve_is_frozen_and_prints(problem):
    curve = ct.reliability_curve(*problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.bars = "none"
    text = str(curve)
    assert "Reliability curve through Confidence()" in text
    assert "about 10% of the cells fall outside by chance" in text
    frame = curve.to_frame()
    assert len(frame) == curve.n_cells
    assert {"lower", "upper", "observed", "bar_low", "outside"} <= set(frame.columns)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"bars": "error"}, "`bars` must be one of 'consistency', 'confidence', got 'error'"),
        ({"confidence_level": 1.0}, "`confidence_level` must lie strictly between 0 and 1, got 1.0"),
        ({"confidence_level": "90%"}, "`confidence_level` must lie strictly between 0 and 1, got '90%'"),
        ({"lens": ct.Canonical()}, r"`lens` must have two outcomes, such as Confidence\(\), got Canonical\(\) with 3"),
        ({"partition": "quantile"}, "`partition` must be a partition such as"),
    ],
)
def test_bad_arguments(problem, keywords, message):
    with pytest.raises(ValueError, match=message):
        ct.reliability_curve(*problem, **keywords)
