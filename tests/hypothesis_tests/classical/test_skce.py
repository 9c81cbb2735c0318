"""The kernel test: published p-values, the bootstrap by loops, the limit and the bounds by hand, and what it prints."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

import caltest
from caltest.hypothesis_tests.classical._skce import Bound
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._rows import BootstrapDraws
from tests.hypothesis_tests.problems import STANDARD_ERRORS, calibrated, codes, words
from tests.reference import naive
from tests.reference.cases import check_refused
from tests.reference.examples import inner_product_kernel
from tests.results.printed import printed
from tests.statistics.networks import NETWORKS, SKCE_ERRORS, network

TOLERANCE = 1e-9
SMALLEST = np.finfo(float).tiny

# Of goldens.json: one column for each network.
BOUNDS = {
    "biased": (0.995926218168, 1.0, 1.0, 0.899103196672),
    "unbiased": (0.999967891057, 0.999989414445, 0.999999822192, 0.999895448173),
    "block": (0.999989961708, 0.999926471158, 0.99989742635, 0.999895852843),
}
BLOCK_Z = (0.353006642667, -0.991313189748, -1.28436234322, 0.638538911866)
BLOCK_PVALUES = (0.362041730301, 0.839233662776, 0.900492398763, 0.261561466269)
# 1,000 bootstrap values of n / (n - 1) SKCEuq - SKCEb.
BOOTSTRAP = {
    "statistic": (-1.10917329422e-05, -1.18474011321e-05, -1.0724314033e-05, -1.79731490224e-05),
    "null_mean": (-0.000237688597628, -0.000141978873262, -2.7761124858e-05, -0.000427057358192),
    "null_sd": (4.00848119629e-06, 3.92479360001e-06, 3.17747726676e-06, 5.81317866266e-06),
    "null_q95": (-0.000229889415057, -0.000135165261334, -2.17838134083e-05, -0.000416978736475),
}


def block(**options):
    return caltest.SKCE(estimator="block", **options)


def asymptotic_test(y_true, y_prob, **options):
    return caltest.skce_test(y_true, y_prob, method="asymptotic", **options)


# Published values.


def test_bounds_of_networks():
    """Of the published estimates of 10,000 observations, which the statistics reproduce."""
    for estimator, values in SKCE_ERRORS.items():
        for column, value in enumerate(values):
            # The published program squares negative estimates too, where there is nothing to bound.
            expected = BOUNDS[estimator][column] if value > 0 else 1.0
            bound = Bound(caltest.SKCE(estimator=estimator), 10_000).tail(value).probability
            assert bound == pytest.approx(expected, rel=TOLERANCE), (estimator, column)


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_block_estimators_of_networks(shared_data, column):
    data = network(shared_data, column)
    result = asymptotic_test(*data, statistic=block())
    assert result.statistic == pytest.approx(SKCE_ERRORS["block"][column], rel=TOLERANCE)
    assert result.z == pytest.approx(BLOCK_Z[column], rel=TOLERANCE)
    assert result.pvalue == pytest.approx(BLOCK_PVALUES[column], rel=TOLERANCE)
    bounded = caltest.skce_test(*data, statistic=block(bandwidth=result.bandwidth), method="distribution-free")
    assert bounded.statistic == result.statistic
    assert bounded.pvalue == pytest.approx(BOUNDS["block"][column] if result.z > 0 else 1.0, rel=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [pytest.param(i, marks=[] if "googlenet" in name else pytest.mark.slow) for i, name in enumerate(NETWORKS)],
)
def test_bootstrap_of_networks(shared_data, column):
    """Two samples of 1,000 from the same distribution: mean, standard deviation and 95 % quantile."""
    data = network(shared_data, column)
    expected = {name: values[column] for name, values in BOOTSTRAP.items()}
    n, n_resamples = len(data[0]), 1000
    result = asymptotic_test(*data, n_resamples=n_resamples, rng=0)
    biased = SKCE_ERRORS["biased"][column]
    assert n / (n - 1) * result.statistic - biased == pytest.approx(expected["statistic"], rel=1e-6)  # it cancels
    null = n / (n - 1) * result.null.values - biased
    slack = null.std() * np.sqrt(2 / n_resamples)
    assert abs(null.mean() - expected["null_mean"]) < STANDARD_ERRORS * slack
    centred = np.square(null - null.mean())
    slack = centred.std() / (2 * null.std()) * np.sqrt(2 / n_resamples)
    assert abs(null.std() - expected["null_sd"]) < STANDARD_ERRORS * slack
    slack = np.sqrt(0.05 * 0.95 * 2 / n_resamples)
    assert abs((null > expected["null_q95"]).mean() - 0.05) < STANDARD_ERRORS * slack
    assert result.pvalue == 1 / (n_resamples + 1)


# By simulated labels.


def test_the_default_is_the_test_of_the_statistic():
    problem = calibrated(60, 4)
    for statistic in (None, caltest.SKCE(estimator="biased"), block()):
        found = caltest.skce_test(*problem, statistic=statistic, n_resamples=49, rng=0)
        other = caltest.calibration_test(*problem, statistic=statistic or caltest.SKCE(), n_resamples=49, rng=0)
        assert tuple(found) == tuple(other), statistic
        np.testing.assert_array_equal(found.null_distribution, other.null_distribution)
        assert (found.method, found.title) == ("monte-carlo", "Kernel test of calibration")
        sample = make_sample(*problem)
        assert found.bandwidth == found.derived["bandwidth"] == caltest.SKCE().similarity(sample).bandwidth


def test_threads_change_nothing_and_progress_is_reported():
    problem, calls = calibrated(60, 4), []
    one, two = (
        caltest.skce_test(
            *problem, n_resamples=199, rng=0, workers=workers, progress=lambda done, total: calls.append((done, total))
        )
        for workers in (1, 2)
    )
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
    assert calls[-1] == (199, 199)


# By the bootstrap.


def bootstrap_by_loops(y_true, y_prob, bandwidth, samples):
    """The bootstrap statistic as its definition reads."""
    n = len(y_true)
    residual = np.eye(y_prob.shape[1])[y_true] - y_prob
    h = [
        [
            math.exp(-naive.total_variation(y_prob[i], y_prob[j]) / bandwidth) * float(residual[i] @ residual[j])
            for j in range(n)
        ]
        for i in range(n)
    ]
    mean = [sum(row) / n for row in h]
    biased = sum(mean) / n
    null = []
    for rows in samples:
        total = 0.0
        for b, j in enumerate(rows):
            for i in rows[:b]:
                total += h[i][j] - mean[i] - mean[j] + biased
        null.append(2 / n**2 * total)
    return sum(h[i][j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1)), null


def test_bootstrap_equals_the_loops():
    y_true, y_prob = calibrated(17, 3)
    result = asymptotic_test(y_true, y_prob, statistic=caltest.SKCE(bandwidth=0.5), n_resamples=25, rng=3)
    samples, _ = BootstrapDraws.of(25, 3).rows(make_sample(y_true, y_prob))
    observed, null = bootstrap_by_loops(y_true, y_prob, 0.5, samples.tolist())
    assert result.statistic == pytest.approx(observed, rel=1e-12)
    np.testing.assert_allclose(result.null.values, null, rtol=1e-12, atol=1e-15)
    assert result.pvalue == naive.pvalue(observed, null)
    assert result.bandwidth == 0.5


def test_bootstrap_in_parts(monkeypatch):
    """More observations than a block holds, and more bootstrap samples than a panel."""
    y_true, y_prob = calibrated(1100, 3)
    expected = asymptotic_test(y_true, y_prob, n_resamples=130, rng=3)
    estimate = caltest.calibration_error(y_true, y_prob, statistic=caltest.SKCE())
    for panel in (1, 2**24):
        monkeypatch.setattr(caltest.hypothesis_tests.classical._skce, "_PANEL_VALUES", panel)
        result = asymptotic_test(y_true, y_prob, n_resamples=130, rng=3)
        assert result.statistic == pytest.approx(estimate, rel=1e-12), panel
        np.testing.assert_allclose(result.null.values, expected.null.values, rtol=1e-10, atol=1e-15)
        assert result.pvalue == expected.pvalue, panel


# By the normal limit.


def test_normal_limit_by_hand():
    # Pairs of equal predictions with residuals +-(1/2, 1/2): terms 1/2, 1/2, -1/2.
    result = asymptotic_test([1, 1, 0, 0, 1, 0], [0.5] * 6, statistic=block())
    mean, error = 1 / 6, math.sqrt(2 / 3) / 3
    assert result.statistic == pytest.approx(mean, rel=1e-14)
    assert result.z == pytest.approx(mean / error, rel=1e-14)
    assert result.pvalue == pytest.approx(norm.sf(mean / error), rel=1e-12)
    assert result.null.std == pytest.approx(error, rel=1e-12)
    assert (result.n_resamples, result.null_distribution) == (0, None)


def test_normal_limit_without_variance():
    """All terms equal: infinitely far from 0, on the side of their sign."""
    for y_true, z, pvalue in (([1, 1, 0, 0], np.inf, SMALLEST), ([1, 0, 0, 1], -np.inf, 1.0)):
        result = asymptotic_test(y_true, [0.5] * 4, statistic=block())
        assert (result.z, result.pvalue) == (z, pvalue)
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["derived"]["z"] is None
        assert codes(result.notes) == ["C504"]
        assert result.null.sf(result.statistic) == (0.0 if z > 0 else 1.0)
        assert math.isnan(result.noise_floor)
        assert "a calibrated model" not in words(result)


def test_normal_limit_without_variance_is_printed():
    skce = block(bandwidth=0.5)
    result = asymptotic_test([1, 1, 0, 0], [0.5] * 4, statistic=skce)
    text = printed(result)
    table = """
 statistic                               value   p-value
 SKCE(bandwidth=0.5, estimator='block')    0.5  < 1e-300
"""
    assert table in text
    assert words(result).count("< 1e-300") == 2  # in the conclusion and in the table
    assert "constant" not in text


def test_certain_and_right():
    """All terms are 0: nothing contradicts calibration."""
    for estimator in ("unbiased", "block"):
        result = asymptotic_test([0, 1, 0, 1], np.eye(2)[[0, 1, 0, 1]], statistic=caltest.SKCE(estimator=estimator))
        assert result.statistic == 0, estimator
        assert result.pvalue >= 0.5, estimator
        assert "e-300" not in str(result), estimator


# By the bounds.


def test_bounds_by_hand():
    for y_true, estimator, expected in [
        ([1] * 8, "biased", math.exp(-((math.sqrt(8 * 0.5 / 2) - 1) ** 2) / 2)),
        ([1] * 8, "unbiased", math.exp(-4 * 0.5**2 / 8)),
        ([1] * 8, "block", math.exp(-4 * 0.5**2 / 8)),
        ([1, 0] * 4, "biased", 1.0),
        ([1, 0] * 4, "unbiased", 1.0),
        ([1, 0] * 4, "block", 1.0),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(y_true, [0.5] * 8, statistic=skce, method="distribution-free")
        assert result.pvalue == pytest.approx(expected, rel=1e-14), (y_true, estimator)
        assert result.method == "distribution-free"
        assert "(p is at most " in result.conclusion
        assert math.isnan(result.noise_floor)


# Impossible labels, lenses and regions.


def test_an_impossible_label_is_evidence_enough():
    y_true, y_prob = calibrated(40, 3, seed=1, concentration=2.0)
    y_prob[23], y_true[23] = [0.75, 0.25, 0.0], 2
    for estimator, method, smallest in [
        ("unbiased", "monte-carlo", 1 / 20),
        ("unbiased", "asymptotic", 1 / 20),
        ("block", "asymptotic", SMALLEST),
        ("biased", "distribution-free", SMALLEST),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(y_true, y_prob, statistic=skce, method=method, n_resamples=19, rng=0)
        assert result.pvalue == smallest, (estimator, method)
        assert result.impossible_samples.tolist() == [23]
        assert "C201" in codes(result.notes)


def test_behind_a_lens_and_in_a_region():
    y_true, y_prob = calibrated(80, 4)
    sure = y_prob.max(axis=1) > 0.5
    options = {"lens": caltest.Confidence(), "n_resamples": 19, "rng": 0}
    for method in ("monte-carlo", "asymptotic"):
        one = caltest.skce_test(y_true, y_prob, region=lambda p: p[:, 1] > 0.5, method=method, **options)
        other = caltest.skce_test(y_true[sure], y_prob[sure], method=method, **options)
        assert tuple(one) == tuple(other), method
        assert one.n_outcomes == 2
        assert one.lens == caltest.Confidence()


# The result.


def test_results_unpack_and_say_what_they_are():
    problem = calibrated(60, 4)
    for estimator, method, origin, conditions in [
        ("unbiased", "asymptotic", "49 bootstrap samples of the degenerate U-statistic (not exact", ["C101", "C103"]),
        ("block", "asymptotic", "normal limit of the block estimator (not exact in small", ["C101", "C103"]),
        ("biased", "distribution-free", "the upper bound of p is valid at every sample size", ["C101"]),
    ]:
        skce = caltest.SKCE(estimator=estimator)
        result = caltest.skce_test(*problem, statistic=skce, method=method, n_resamples=49, rng=0)
        value, pvalue = result
        assert (value, pvalue) == (result.statistic, result.pvalue)
        assert value == pytest.approx(caltest.calibration_error(*problem, statistic=skce), rel=1e-12)
        assert origin in result.origin, estimator
        assert codes(result.conditions) == conditions
        assert "identically distributed" in result.conditions[0].text
        for part in (result.origin, "whole prediction, 60 observations, 4 outcomes", str(skce)):
            assert part in words(result), estimator
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["pvalue"] == pvalue


def test_printed():
    skce = caltest.SKCE(estimator="biased")
    expected = """\
Kernel test of calibration (whole prediction, 60 observations, 4 outcomes)

No miscalibration is found: 59.7 % confidence, 58.3 % right. If the predictions
were exactly right, such data sets would be nothing unusual (p is at most 1).
This does not prove that the model is calibrated.
The l2 calibration error is 0.1434 (95 % confidence interval 0.0000 to 0.3117).

 accuracy minus confidence  -1.3 points (-15.8 to +12.3)  0 if calibrated

In brackets: what is compatible with these data, with 95 % confidence.
What to do: No error is found, but it is not known how large an error would have
been found: this answer approves nothing by itself. Test the predictions again
on new data.

 statistic                   value  upper bound of p
 SKCE(estimator='biased')  0.00897            1.0000

  SKCE(estimator='biased'): bandwidth 0.5147.
  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: not known; the upper bound of p is valid at every sample
    size and far from sharp (distribution-free).
  Valid if observations are independent and identically distributed, and no
    label was used to make the predictions. [C101: docs/notes.md]"""
    assert printed(caltest.skce_test(*calibrated(60, 4), statistic=skce, method="distribution-free")) == expected


# Refusals.


def test_bad_requests_are_refused():
    problem = calibrated(20, 3)
    for options, kind, message in [
        ({"statistic": caltest.ECE()}, TypeError, "`statistic` must be an SKCE(...), got ECE()."),
        (
            {"method": "exact"},
            ValueError,
            "`method` must be one of 'monte-carlo', 'asymptotic', 'distribution-free', got 'exact'.",
        ),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0."),
        ({"alpha": 1.0}, ValueError, "`alpha` must lie strictly between 0 and 1, got 1.0."),
        ({"rng": "seed"}, TypeError, "`rng` must be None, an integer"),
        ({"method": "asymptotic", "rng": "seed"}, TypeError, "`rng` must be None, an integer"),
        (
            {"statistic": caltest.SKCE(estimator="biased"), "method": "asymptotic"},
            ValueError,
            '`method` must be "monte-carlo" or "distribution-free" for the biased estimator, got "asymptotic".',
        ),
        (
            {"statistic": caltest.SKCE(inner_product_kernel), "method": "distribution-free"},
            ValueError,
            '`method` must be "monte-carlo" or "asymptotic" for SKCE(kernel=inner_product_kernel), whose bound is '
            'unknown, got "distribution-free".',
        ),
    ]:
        check_refused(caltest.skce_test, kind, message, *problem, **options)
    few = "`y_true` must hold at least 4 observations for `skce_test`, got 3."
    check_refused(caltest.skce_test, ValueError, few, [0, 1, 1], [0.25, 0.5, 0.75])
