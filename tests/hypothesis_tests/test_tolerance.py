"""The tolerance test: the published example, far tails, the level at the margin, and what is printed."""

import numpy as np
import pytest
from scipy import stats

import caltest as ct
from caltest.hypothesis_tests import tolerance_pvalue
from tests.hypothesis_tests.problems import codes, count_rejections, words
from tests.reference import naive
from tests.results.printed import printed

PAPER = {"df": 8, "n_samples": 315_828, "margin": 2.74e-3}
"""Nattino, Pennell and Lemeshow (2020)."""


# The p-value.


def test_the_published_example():
    assert tolerance_pvalue(25.35, **PAPER) == pytest.approx(0.0102, abs=5e-5)
    assert tolerance_pvalue(16.66, **PAPER) == pytest.approx(0.1129, abs=5e-5)
    assert 1 - tolerance_pvalue(25.35, **PAPER) == pytest.approx(0.9898, abs=5e-5)  # the opposite hypothesis


def test_the_published_margin_is_what_a_million_observations_would_just_find():
    assert np.sqrt((stats.chi2.ppf(0.95, 8) - 8) / 1e6) == pytest.approx(2.74e-3, abs=5e-6)


def poisson_mixture(c, df, noncentrality):
    """P(C >= c): central distributions with df + 2 j degrees of freedom, j Poisson."""
    j = np.arange(int(noncentrality + 40 * np.sqrt(noncentrality + 1)) + 200)
    return float(np.sum(np.exp(stats.poisson.logpmf(j, noncentrality / 2) + stats.chi2.logsf(c, df + 2 * j))))


def test_far_tails():
    for c, noncentrality in [(25.35, 2.371), (500, 100), (10_500, 10_000), (1000, 100), (80, 1e-9)]:
        found = tolerance_pvalue(c, 10, 1000, np.sqrt(noncentrality / 1000))
        assert found == pytest.approx(poisson_mixture(c, 10, noncentrality), rel=1e-6), (c, noncentrality)
        assert found > 0, (c, noncentrality)


def test_the_near_side_keeps_its_digits_too():
    """What lacks to 1 five standard deviations below the mean."""
    c = 10_010 - 5 * np.sqrt(2 * 20_010)
    expected = stats.ncx2.cdf(c, 10, 10_000)
    assert 1 - tolerance_pvalue(c, 10, 10_000, 1.0) == pytest.approx(expected, rel=1e-6)


def test_far_out_it_stays_finite():
    c = np.append([0.0, 1e-300, 1.0], np.append(np.geomspace(10, 1e12, 200), np.inf))
    for margin in (0.0, 1e-9, 0.1, 100.0):
        found = tolerance_pvalue(c, 10, 10_000, margin)
        assert np.isfinite(found).all(), margin
        assert np.all(np.diff(found) <= 1e-12), margin
        assert (found[0], found[-1]) == (1, 0), margin


def test_where_scipy_breaks_off_a_bound_takes_over():
    assert stats.ncx2.sf(2000, 10, 100) == 0
    true = poisson_mixture(2000, 10, 100)
    assert true <= tolerance_pvalue(2000, 10, 1000, np.sqrt(0.1)) <= 1000 * true


def test_at_margin_zero_it_is_chi_squared():
    np.testing.assert_allclose(tolerance_pvalue([3.0, 20.0], 10, 500, 0.0), stats.chi2.sf([3, 20], 10))
    assert tolerance_pvalue(20.0, 10, 500, 1e-8) == pytest.approx(stats.chi2.sf(20, 10))


def test_arguments_are_broadcast():
    found = tolerance_pvalue(np.array([[10.0], [20.0]]), 10, 1000, [0.0, 0.05, 0.1])
    assert found.shape == (2, 3)
    assert found[1, 2] == tolerance_pvalue(20.0, 10, 1000, 0.1)
    assert isinstance(tolerance_pvalue(20.0, 10, 1000, 0.1), float)


def test_bad_arguments_of_the_pvalue():
    for arguments, kind, message in [
        ((-1, 8, 10, 0.1), ValueError, "`statistic` must be at least 0, got -1.0"),
        ((1, 0, 10, 0.1), ValueError, "`df` must be positive, got 0.0"),
        ((1, 8, [10, -2], 0.1), ValueError, "`n_samples` must be at least 0, got -2.0"),
        ((1, 8, 10, np.nan), ValueError, "`margin` must be at least 0, got nan"),
        ((1, 8, 10, np.inf), ValueError, "`n_samples` and `margin` must be finite, got infinity"),
        (("a", 8, 10, 0.1), TypeError, "`statistic` must hold numbers, got 'a'"),
        (([1, 2], [1, 2, 3], 10, 0.1), ValueError, "must have shapes that broadcast"),
    ]:
        with pytest.raises(kind, match=message):
            tolerance_pvalue(*arguments)


# The test.


def test_it_is_the_pvalue_of_the_groups():
    for n_classes in (2, 4):
        rng = np.random.default_rng(n_classes)
        prob = rng.dirichlet(np.ones(n_classes), 200)
        y, freedom = rng.integers(n_classes, size=200), 10 * (n_classes - 1)
        c = naive.evaluate(ct.HosmerLemeshow(), prob, y)
        result = ct.tolerance_test(y, prob, 0.2)
        assert result.statistic == pytest.approx(c), n_classes
        assert result.degrees_of_freedom == freedom, n_classes
        assert result.pvalue == pytest.approx(stats.ncx2.sf(c, freedom, 200 * 0.04)), n_classes
        assert result.miscalibration == pytest.approx(np.sqrt((c - freedom) / 200)), n_classes
        assert tuple(result) == (result.statistic, result.pvalue)
        assert result.noise_floor == pytest.approx(freedom + 200 * 0.04), "the mean at the margin"


def test_the_margin_is_in_units_of_the_standard_deviation_of_an_outcome():
    """One prediction .5, true .55: epsilon = .05 / .5."""
    rng = np.random.default_rng(0)
    n = 200_000
    result = ct.tolerance_test(rng.random(n) < 0.55, np.full(n, 0.5), 0.1, partition=ct.EqualWidth(1))
    assert result.miscalibration == pytest.approx(0.1, abs=4 / np.sqrt(n))


@pytest.mark.slow
def test_level_at_the_margin():
    """Predictions .3 and .7, two groups, true probabilities higher by .05: epsilon = .05 / sqrt(.21)."""
    margin, prob, rng = 0.05 / np.sqrt(0.21), np.repeat([0.3, 0.7], 500), np.random.default_rng(1)

    def pvalue(_):
        return ct.tolerance_test(rng.random(1000) < prob + 0.05, prob, margin, partition=ct.EqualWidth(2)).pvalue

    count = count_rejections(pvalue, 400)
    assert count <= stats.binom.isf(1e-4, 400, 0.06)  # true variances .2275 and .1875, mean .2075
    assert count >= stats.binom.ppf(1e-4, 400, 0.04)


def test_region_and_lens():
    y, models = ct.datasets.load_digits_predictions()
    prob = models["logistic_regression"]
    options = {"lens": ct.Confidence(), "region": lambda p: p[:, 1] > 0.5}
    result = ct.tolerance_test(y, prob, 0.05, **options)
    expected = ct.hosmer_lemeshow_test(y, prob, method="asymptotic", **options)
    assert result.statistic == expected.statistic
    assert result.n_samples == (prob.max(axis=1) > 0.5).sum()


def test_an_impossible_label_counts_as_infinitely_far():
    result = ct.tolerance_test([1, 0, 0, 1], [0.0, 0.0, 0.0, 0.5], 0.1, partition=ct.EqualWidth(2))
    assert result.statistic == np.inf
    assert 0 < result.pvalue < 1e-300
    assert result.to_dict()["statistic"] is None
    assert "it is infinite, because a label had been given probability 0" in result.conclusion
    assert result.impossible_samples.tolist() == [0]
    assert codes(result.notes) == ["C201"]


def test_groups_without_variance():
    """Certainties that come true leave no degree of freedom."""
    result = ct.tolerance_test([0, 1, 1], [0.0, 1.0, 1.0], 0.1)
    assert (result.degrees_of_freedom, result.statistic, result.pvalue) == (0, 0, 1)


# What is printed.


def test_printed():
    y, models = ct.datasets.load_digits_predictions()
    result = ct.tolerance_test(y, models["logistic_regression"], 0.05, lens=ct.Confidence())
    expected = """\
Tolerance test of calibration (confidence, 899 observations, 2 outcomes)
The standardised miscalibration is shown to be above 0.05 (p = 9.746e-11): it is
at least 0.2236 (95 % confidence). The decision is made at the 5 % level.
Of the predictions as they are, the l2 calibration error is 0.1148 (95 %
confidence interval 0.0949 to 0.1355).
In brackets: what is compatible with these data, with 95 % confidence.
Standardised miscalibration: at least 0.2236 (95 % confidence).
What to do: Do not use these predictions as they are: recalibrate them and test
new data.

 statistic         value  at the margin (5 % to 95 %)  p-value
 HosmerLemeshow()  79.75        12.25 (4.89 to 22.22)  9.7e-11

  Hypothesis: the standardised miscalibration within groups is at most 0.05.
  Null distribution: limit for large samples, predictions fixed (not exact in
    small samples): non-central chi-squared(10, 2.248).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]
  Valid if many observations have predictions far from 0 and 1. [C103:
    docs/notes.md]"""
    assert printed(result) == expected


def test_conclusion():
    y, models = ct.datasets.load_digits_predictions()
    hidden = ct.tolerance_test(y, models["neural_network"], 0.5, lens=ct.Confidence())
    said = "The standardised miscalibration is not shown to be above 0.5 (p = 1): it is compatible with 0."
    assert hidden.conclusion.startswith(said)
    assert hidden.verdict.findings == ()
    assert hidden.conclusion in words(hidden)
    assert "at most 0.5" in hidden.hypothesis
    assert hidden.to_dict()["margin"] == 0.5
    assert codes(hidden.conditions) == ["C101", "C103"]
    strict = ct.tolerance_test(y, models["logistic_regression"], 0.05, lens=ct.Confidence(), alpha=1e-11)
    assert not strict.rejected
    assert strict.conclusion.endswith("The decision is made at the 1e-09 % level.")


def test_the_largest_margin_that_is_exceeded():
    """It is where the p-value is the level; few events decide nothing."""
    y, models = ct.datasets.load_digits_predictions()
    result = ct.tolerance_test(y, models["logistic_regression"], 0.05, lens=ct.Confidence())
    at = ct.hypothesis_tests.tolerance_pvalue(result.statistic, 10, 899, result.largest_margin)
    assert at == pytest.approx(0.05, rel=1e-4)
    (finding,) = result.verdict.findings
    assert (finding.kind, finding.n, finding.size.interval.low) == ("above", 899, result.largest_margin)
    assert 0.05 < result.largest_margin < result.miscalibration
    few = ct.tolerance_test([0] * 30, np.full(30, 0.1), 0.5)
    assert (few.decision, few.n_expected) == ("undecidable", pytest.approx(3))
    assert few.conclusion.startswith("Whether the standardised miscalibration is above 0.5 cannot be told")


# Refusals.


def test_bad_arguments():
    for options, kind, message in [
        ({"alpha": 1}, ValueError, "`alpha` must lie strictly between 0 and 1, got 1"),
        ({"lens": "top"}, TypeError, "`lens` must be a lens"),
        ({"region": lambda p: p[:, 0] > 2}, ValueError, "`region` must hold at least one"),
    ]:
        with pytest.raises(kind, match=message):
            ct.tolerance_test([0, 1], [0.5, 0.5], 0.1, **options)
