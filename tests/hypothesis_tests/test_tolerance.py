"""Calibrated enough: the published example, the level at the margin, and what the results say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from tests.reference import naive

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=40)
PAPER = {"df": 8, "n_samples": 315_828, "margin": 2.74e-3}
"""Nattino, Pennell and Lemeshow (2020)."""


def shifted(n, shift, rng):
    """Labels of a model that is too low by ``shift`` everywhere."""
    prob = rng.uniform(0.1, 0.8, n)
    return rng.random(n) < prob + shift, prob


# --- the p-value


def test_the_published_example():
    assert ct.tolerance_pvalue(25.35, **PAPER) == pytest.approx(0.0102, abs=5e-5)
    assert ct.tolerance_pvalue(16.66, **PAPER) == pytest.approx(0.1129, abs=5e-5)
    assert 1 - ct.tolerance_pvalue(25.35, **PAPER) == pytest.approx(0.9898, abs=5e-5)  # the opposite hypothesis


def test_the_published_margin_is_what_a_million_rows_would_just_find():
    assert np.sqrt((stats.chi2.ppf(0.95, 8) - 8) / 1e6) == pytest.approx(2.74e-3, abs=5e-6)


def poisson_mixture(c, df, noncentrality):
    """P(C >= c): central laws of df + 2 j degrees of freedom, j Poisson."""
    j = np.arange(int(noncentrality + 40 * np.sqrt(noncentrality + 1)) + 200)
    return float(np.sum(np.exp(stats.poisson.logpmf(j, noncentrality / 2) + stats.chi2.logsf(c, df + 2 * j))))


@pytest.mark.parametrize(
    ("c", "noncentrality"), [(25.35, 2.371), (500, 100), (10_500, 10_000), (1000, 100), (80, 1e-9)]
)
def test_far_tails(c, noncentrality):
    found = ct.tolerance_pvalue(c, 10, 1000, np.sqrt(noncentrality / 1000))
    assert found == pytest.approx(poisson_mixture(c, 10, noncentrality), rel=1e-6)
    assert found > 0


def test_the_near_side_keeps_its_digits_too():
    """What lacks to 1 five standard deviations below the mean."""
    c = 10_010 - 5 * np.sqrt(2 * 20_010)
    assert 1 - ct.tolerance_pvalue(c, 10, 10_000, 1.0) == pytest.approx(stats.ncx2.cdf(c, 10, 10_000), rel=1e-6)


def test_far_out_it_stays_finite():
    c = np.append([0.0, 1e-300, 1.0], np.append(np.geomspace(10, 1e12, 200), np.inf))
    for margin in (0.0, 1e-9, 0.1, 100.0):
        found = ct.tolerance_pvalue(c, 10, 10_000, margin)
        assert np.isfinite(found).all()
        assert np.all(np.diff(found) <= 1e-12)
        assert (found[0], found[-1]) == (1, 0)


def test_where_scipy_breaks_off_a_bound_takes_over():
    assert stats.ncx2.sf(2000, 10, 100) == 0
    true = poisson_mixture(2000, 10, 100)
    assert true <= ct.tolerance_pvalue(2000, 10, 1000, np.sqrt(0.1)) <= 1000 * true


def test_at_margin_zero_it_is_chi_squared():
    np.testing.assert_allclose(ct.tolerance_pvalue([3.0, 20.0], 10, 500, 0.0), stats.chi2.sf([3, 20], 10))
    assert ct.tolerance_pvalue(20.0, 10, 500, 1e-8) == pytest.approx(stats.chi2.sf(20, 10))


def test_arguments_are_broadcast():
    found = ct.tolerance_pvalue(np.array([[10.0], [20.0]]), 10, 1000, [0.0, 0.05, 0.1])
    assert found.shape == (2, 3)
    assert found[1, 2] == ct.tolerance_pvalue(20.0, 10, 1000, 0.1)
    assert isinstance(ct.tolerance_pvalue(20.0, 10, 1000, 0.1), float)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 8, 10, 0.1), "`statistic` must be at least 0, got -1.0"),
        ((1, 0, 10, 0.1), "`df` must be positive, got 0.0"),
        ((1, 8, [10, -2], 0.1), "`n_samples` must be at least 0, got -2.0"),
        ((1, 8, 10, np.nan), "`margin` must be at least 0, got nan"),
        (("a", 8, 10, 0.1), "`statistic` must hold numbers"),
        (([1, 2], [1, 2, 3], 10, 0.1), "must have shapes that broadcast"),
    ],
)
def test_bad_arguments_of_the_pvalue(arguments, message):
    with pytest.raises(ValueError, match=message):
        ct.tolerance_pvalue(*arguments)


# --- the tolerance test


@pytest.mark.parametrize("n_classes", [2, 4])
def test_tolerance_test_is_the_pvalue_of_the_groups(n_classes):
    rng = np.random.default_rng(n_classes)
    prob = rng.dirichlet(np.ones(n_classes), 200)
    y = rng.integers(n_classes, size=200)
    statistic = ct.HosmerLemeshow()
    c = naive.evaluate(statistic, prob, y)
    result = ct.tolerance_test(y, prob, 0.2)
    assert result.statistic == pytest.approx(c)
    assert result.degrees_of_freedom == 10 * (n_classes - 1)
    assert result.pvalue == pytest.approx(stats.ncx2.sf(c, 10 * (n_classes - 1), 200 * 0.04))
    assert result.miscalibration == pytest.approx(np.sqrt((c - 10 * (n_classes - 1)) / 200))
    assert tuple(result) == (result.statistic, result.pvalue)


def test_the_margin_is_in_units_of_the_standard_deviation_of_an_outcome():
    """One prediction .5, true .55: epsilon = .05 / .5."""
    rng = np.random.default_rng(0)
    n = 200_000
    result = ct.tolerance_test(rng.random(n) < 0.55, np.full(n, 0.5), 0.1, partition=ct.EqualWidth(1))
    assert result.miscalibration == pytest.approx(0.1, abs=4 / np.sqrt(n))


def rejections(test, repeats, rng):
    return sum(test(rng) <= 0.05 for _ in range(repeats))


def at_most(level, repeats):
    """Rejections that a test of this level exceeds with a probability below 1e-4."""
    return stats.binom.isf(1e-4, repeats, level)


def test_level_of_the_tolerance_test_at_its_margin():
    """Predictions .3 and .7, two groups, true probabilities higher by .05: epsilon = .05 / sqrt(.21)."""
    margin, prob = 0.05 / np.sqrt(0.21), np.repeat([0.3, 0.7], 500)

    def pvalue(rng):
        return ct.tolerance_test(rng.random(1000) < prob + 0.05, prob, margin, partition=ct.EqualWidth(2)).pvalue

    count = rejections(pvalue, 400, np.random.default_rng(1))
    assert count <= at_most(0.06, 400)  # true variances .2275 and .1875, mean .2075
    assert count >= stats.binom.ppf(1e-4, 400, 0.04)


def test_tolerance_report():
    y, models = ct.datasets.load_digits_predictions()
    shown = ct.tolerance_test(y, models["logistic_regression"], 0.05, lens=ct.Confidence())
    assert shown.interpretation.startswith("Miscalibration above 0.05 (standardised) is shown, p = ")
    hidden = ct.tolerance_test(y, models["neural_network"], 0.5, lens=ct.Confidence())
    assert "is not shown" in str(hidden)
    assert "at most 0.5" in hidden.hypothesis
    assert hidden.to_dict()["margin"] == 0.5


def test_an_impossible_label_counts_as_infinitely_far():
    result = ct.tolerance_test([1, 0, 0, 1], [0.0, 0.0, 0.0, 0.5], 0.1, partition=ct.EqualWidth(2))
    assert result.statistic == np.inf
    assert 0 < result.pvalue < 1e-300
    assert result.to_dict()["statistic"] is None


@pytest.mark.parametrize("margin", [0, -0.1, np.inf, "small", True])
@pytest.mark.parametrize("test", [ct.tolerance_test, ct.equivalence_test])
def test_bad_margins(test, margin):
    with pytest.raises(ValueError, match="`margin` must be a positive, finite number, got"):
        test([0, 1], [0.5, 0.5], margin)


# --- the equivalence test


@PROFILE
@given(st.integers(0, 10**6), st.floats(0.001, 0.5), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_pvalue_and_the_smallest_margin_say_the_same(seed, margin, level):
    y, prob = shifted(300, 0.02 * (seed % 5), np.random.default_rng(seed))
    result = ct.equivalence_test(y, prob, margin, confidence_level=level)
    assert result.shown == (result.pvalue <= 1 - level)
    if abs(result.smallest_margin / margin - 1) > 1e-9:
        assert result.shown == (result.smallest_margin < margin)
    bound = ct.l2_interval(y, prob, confidence_level=level, alternative="less")
    assert result.smallest_margin == bound.root_high
    if 0 < bound.root_high < 1:
        assert ct.equivalence_test(y, prob, bound.root_high).pvalue == pytest.approx(1 - level)


def equivalence_rejections(n, shift, repeats, rng):
    """How often miscalibration below its true value is claimed."""
    return rejections(lambda rng: ct.equivalence_test(*shifted(n, shift, rng), shift).pvalue, repeats, rng)


@pytest.mark.parametrize("shift", [0.03, 0.1])
def test_level_of_the_equivalence_test_at_its_margin(shift):
    """At most two points above nominal."""
    assert equivalence_rejections(500, shift, 300, np.random.default_rng(2)) <= at_most(0.07, 300)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "repeats"), [(200, 1500), (1000, 1000), (10_000, 200)])
def test_level_of_the_equivalence_test_over_the_range(n, repeats):
    for shift in (0.01, 0.05, 0.15):
        assert equivalence_rejections(n, shift, repeats, np.random.default_rng(n)) <= at_most(0.07, repeats)


def test_power_of_the_equivalence_test():
    """A calibrated model with 5,000 rows is shown to be within .05."""
    y, prob = shifted(5000, 0.0, np.random.default_rng(0))
    result = ct.equivalence_test(y, prob, 0.05)
    assert result.shown
    assert result.pvalue < 1e-6


def test_equivalence_report():
    y, prob = shifted(1000, 0.05, np.random.default_rng(1))
    hidden, shown = ct.equivalence_test(y, prob, 0.02), ct.equivalence_test(y, prob, 0.2)
    assert "Miscalibration below 0.02 is not shown at level 0.05" in hidden.interpretation
    assert "Miscalibration below 0.2 is shown at level 0.05" in " ".join(str(shown).split())
    assert "upper end only" in str(shown)
    assert shown.to_dict()["shown"] is True
    assert shown.to_dict()["interval"]["alternative"] == "less"
    statistic, pvalue = shown
    assert (statistic, pvalue) == (shown.interval.estimate, shown.pvalue)
    assert shown._repr_html_().startswith("<pre>")
