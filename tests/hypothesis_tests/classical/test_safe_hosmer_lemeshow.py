"""The safe Hosmer-Lemeshow test: its e-value by loops, its expected value, its level, and odd data."""

from itertools import product
from math import inf, log

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from caltest.hypothesis_tests import safe_hosmer_lemeshow_test
from caltest.hypothesis_tests.classical._safe_hosmer_lemeshow import _log_evalue
from tests.reference.cases import check_refused


def problem(n=200, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.95, n).round(2)
    return (rng.random(n) < p**power).astype(int), p


def by_loops(p, y, first, second):
    fit = IsotonicRegression(out_of_bounds="clip").fit(p[first], y[first])
    total = 0.0
    for i in second:
        q = (len(first) * fit.predict(p[i : i + 1])[0] + p[i]) / (len(first) + 1)
        total += log(q / p[i]) if y[i] else log((1 - q) / (1 - p[i]))
    return total


def test_equals_loops():
    y, p = problem()
    halves = np.random.default_rng(1).permutation(200)
    first, second = np.sort(halves[:100]), np.sort(halves[100:])
    assert _log_evalue(p, y * 1.0, first, second) == pytest.approx(by_loops(p, y, first, second), rel=1e-9)


def test_the_mean_over_splits():
    y, p = problem()
    order = np.lexsort((y, p))
    rng, found = np.random.default_rng(3), []
    for _ in range(5):
        drawn = rng.permutation(200)
        found.append(np.exp(_log_evalue(p[order], y[order] * 1.0, np.sort(drawn[:100]), np.sort(drawn[100:]))))
    result = safe_hosmer_lemeshow_test(y, p, n_splits=5, rng=3)
    assert result.evalue == pytest.approx(np.mean(found), rel=1e-9)
    assert result.pvalue == pytest.approx(min(1, 1 / np.mean(found)), rel=1e-9)
    assert tuple(result) == (result.statistic, result.pvalue)


def test_the_expected_value_is_1():
    """Over all labels of six observations, with their probabilities."""
    p = np.array([0.1, 0.3, 0.3, 0.6, 0.8, 0.9])
    first, second = np.array([0, 2, 4]), np.array([1, 3, 5])
    total = 0.0
    for labels in product((0.0, 1.0), repeat=6):
        y = np.array(labels)
        total += np.prod(np.where(y > 0, p, 1 - p)) * np.exp(_log_evalue(p, y, first, second))
    assert total == pytest.approx(1, rel=1e-12)


def test_miscalibration_is_detected():
    assert safe_hosmer_lemeshow_test(*problem(3_000, 1.6), rng=0).pvalue < 1e-6
    calibrated = safe_hosmer_lemeshow_test(*problem(3_000), rng=0)
    assert not calibrated.rejected
    assert "is not rejected (e-value" in calibrated.conclusion


@pytest.mark.slow
def test_level():
    pvalues = [safe_hosmer_lemeshow_test(*problem(80, seed=s), n_splits=5, rng=s).pvalue for s in range(400)]
    for alpha in (0.05, 0.2):
        assert np.mean(np.array(pvalues) <= alpha) <= alpha + 4 * np.sqrt(alpha * (1 - alpha) / 400)


def test_odd_data():
    y, p = problem()
    assert safe_hosmer_lemeshow_test(np.append(y, 1), np.append(p, 0.0), n_splits=20, rng=0).evalue == inf
    sure = safe_hosmer_lemeshow_test(np.repeat([0, 1], 20), np.repeat([0.0, 1.0], 20), rng=0)
    assert (sure.statistic, sure.pvalue) == (0, 1)
    for labels, prob in ((np.zeros(40, int), np.full(40, 0.01)), (np.arange(40) >= 20, np.linspace(0.01, 0.99, 40))):
        result = safe_hosmer_lemeshow_test(labels, prob, rng=0)
        assert 0 < result.pvalue <= 1
        assert np.isfinite(result.statistic)
        mirrored = safe_hosmer_lemeshow_test(1 - labels, 1 - prob, rng=0)
        assert np.isfinite(mirrored.statistic)


def test_refusals():
    y, p = problem()
    check_refused(lambda: safe_hosmer_lemeshow_test(y, p, n_splits=0), ValueError, "`n_splits` must be")
    check_refused(lambda: safe_hosmer_lemeshow_test(y[:3], p[:3]), ValueError, "`y_true` must hold at least 4")


def test_the_order_of_the_rows_does_not_matter():
    y, p = problem(300)
    p = p.round(1).clip(0.1, 0.9)  # ties, of both labels
    order = np.random.default_rng(1).permutation(len(y))
    found = [safe_hosmer_lemeshow_test(a, b, rng=0).statistic for a, b in ((y, p), (y[order], p[order]))]
    assert found[0] == found[1]
