"""The bridge test: its two tails, its authors' example, cases by hand, and where its limit fails."""

import math

import numpy as np
import pytest
from scipy import special, stats

import caltest
from caltest.statistics._cumulative import log_kolmogorov_pvalue, log_normal_pvalue
from tests.hypothesis_tests.classical.limits import check_size, five_values, rare_events
from tests.hypothesis_tests.problems import calibrated, words
from tests.results.printed import printed


def bridge(y_true, y_prob, **options):
    return caltest.bridge_test(y_true, y_prob, **{"method": "asymptotic", **options})


# The tails of the two parts.


def test_example_of_cumulcalib():
    """README of the R package of Sadatsafavi and Petkau (2024): from its S_n and B* to its three p-values."""
    mean, shape = log_normal_pvalue(np.array(0.489295496431201)), log_kolmogorov_pvalue(np.array(0.904915434767163))
    assert np.exp(mean) == pytest.approx(0.624632509005787, rel=1e-9)
    assert np.exp(shape) == pytest.approx(0.385979705481866, rel=1e-9)
    assert stats.chi2.sf(-2 * (mean + shape), 4) == pytest.approx(0.584068794836004, rel=1e-9)


def test_kolmogorov_tail():
    for d in (0.0, 0.02, 0.3, 0.999999, 1.0, 1.000001, 1.5, 3.0, 10.0, 18.0):
        assert np.exp(log_kolmogorov_pvalue(np.array(d))) == pytest.approx(special.kolmogorov(d), rel=1e-12), d


def test_tails_keep_their_digits():
    assert log_kolmogorov_pvalue(np.array(40.0)) == pytest.approx(math.log(2) - 3200, rel=1e-14)
    assert log_normal_pvalue(np.array(40.0)) == pytest.approx(math.log(2) + stats.norm.logsf(40), rel=1e-12)
    assert log_kolmogorov_pvalue(np.array(np.inf)) == log_normal_pvalue(np.array(np.inf)) == -np.inf


# By hand.


def test_two_blocks():
    """Residuals 1 and 0, variance 3/2: S = sqrt(2/3) throughout, half of it at half time."""
    y_true, y_prob = [0, 1, 0, 1, 1, 1, 0, 1], [0.25] * 4 + [0.75] * 4
    result = bridge(y_true, y_prob)
    assert result.mean == pytest.approx(math.sqrt(2 / 3), rel=1e-12)
    assert result.shape == pytest.approx(math.sqrt(2 / 3) / 2, rel=1e-12)
    assert result.mean_pvalue == pytest.approx(2 * stats.norm.sf(result.mean), rel=1e-12)
    assert result.shape_pvalue == pytest.approx(stats.kstwobign.sf(result.shape), rel=1e-12)
    combined = stats.combine_pvalues([result.mean_pvalue, result.shape_pvalue], method="fisher")
    assert tuple(result) == pytest.approx(tuple(combined), rel=1e-9)
    assert result.derived == {name: getattr(result, name) for name in ("mean", "mean_pvalue", "shape", "shape_pvalue")}


def test_the_mean_has_a_sign():
    """Positive where events are too frequent."""
    assert bridge([1, 1, 1, 0], [0.25, 0.5, 0.5, 0.75]).mean > 0
    assert bridge([0, 0, 0, 1], [0.25, 0.5, 0.5, 0.75]).mean < 0


def test_tied_blocks_count_at_their_end():
    """The order of observations inside a block does not matter, and a constant predictor has no shape."""
    result = bridge([1, 1, 1, 0], [0.5] * 4)
    assert result.shape == 0
    assert result.shape_pvalue == 1
    assert result.mean == pytest.approx(1)
    assert result.statistic == pytest.approx(-2 * math.log(2 * stats.norm.sf(1)), rel=1e-12)


def test_parts_do_not_depend_on_the_method():
    """They are tested by their limits, and their p-values are never 0."""
    y_true, y_prob = calibrated(100, 2)
    drawn = bridge(y_true, y_prob, method="monte-carlo", n_resamples=19, rng=0)
    assert drawn.derived == bridge(y_true, y_prob).derived
    wrong = bridge([1] * 2000, [0.01] * 1000 + [0.02] * 1000)
    assert (wrong.pvalue, wrong.mean_pvalue) == (np.finfo(float).tiny,) * 2
    assert 0 < wrong.shape_pvalue < 1e-3


def test_parts_are_printed():
    result = bridge([0, 1, 0, 1, 1, 1, 0, 1], [0.25] * 4 + [0.75] * 4)
    table = """
 part    value  p-value (limit)
 mean   0.8165           0.4142
 shape  0.4082           0.9963
"""
    assert table in printed(result)
    assert "limit for large samples, predictions fixed (not exact in small samples): chi-squared(4)." in words(result)


@pytest.mark.slow(few_draws=True)
def test_where_the_limit_fails():
    """The figures of the docstring."""
    for n in (100, 1000):
        check_size(caltest.statistics.Bridge(), five_values, n, alpha=0.05, documented="0.017")
    check_size(caltest.statistics.Bridge(), rare_events, 100, alpha=0.05, documented="0.07")
