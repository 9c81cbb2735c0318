"""The GiViTI test: that of new labels, and that of labels that a logistic regression was fitted to."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import caltest
from caltest.hypothesis_tests import giviti_test
from caltest.resampling.distributions._forward_selection import ForwardSelection
from caltest.statistics import GiViTI
from tests.reference.cases import check_refused


def problem(n=300, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.9, n)
    return (rng.random(n) < p**power).astype(int), p


def test_it_is_the_test_of_its_statistic():
    y, p = problem()
    options = {"n_resamples": 19, "rng": 0}
    found = giviti_test(y, p, **options)
    statistic, pvalue = found
    same = caltest.calibration_test(y, p, statistic=GiViTI(), **options)
    assert (statistic, pvalue) == (same.statistic, same.pvalue)
    assert (found.kind, found.selected_degree, len(found.coefficients)) == ("external", 1, 2)
    assert str(found).startswith("GiViTI test (whole prediction, 300 observations, 2 outcomes)")


@pytest.mark.slow(few_draws=True)
def test_the_limit_agrees_with_draws():
    y, p = problem(2_000)
    drawn, limit = giviti_test(y, p, n_resamples=999, rng=0), giviti_test(y, p, method="asymptotic")
    assert drawn.statistic == limit.statistic
    error = np.sqrt(limit.pvalue * (1 - limit.pvalue) / 999)
    assert abs(drawn.pvalue - limit.pvalue) < 4 * error + 0.01  # the limit is one of many events
    assert giviti_test(*problem(2_000, 1.5), method="asymptotic").pvalue < 1e-6


@pytest.mark.slow(few_draws=True)
def test_internal_labels_have_fewer_degrees_of_freedom():
    """The p-value of a model that fits is about uniform; that of a model that cannot bend is small."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_000, 1))
    pvalues = {}
    for bend in (0.0, 0.6):
        y = (rng.random(2_000) < 1 / (1 + np.exp(1 - x[:, 0] - bend * x[:, 0] ** 2))).astype(int)
        p = LogisticRegression(C=np.inf).fit(x, y).predict_proba(x)[:, 1]
        found = giviti_test(y, p, kind="internal", method="asymptotic")
        assert found.null == ForwardSelection(1, 2, 0.95)
        assert found.test_statistic == GiViTI(2)
        pvalues[bend] = found.pvalue
    assert pvalues[0.0] > 0.01
    assert pvalues[0.6] < 1e-6


@pytest.mark.nightly(few_draws=True)
def test_the_internal_limit_is_that_of_fitted_models():
    """P-values of logistic regressions of their own labels: the mean of 300 is 1/2, and few are small."""
    rng, pvalues = np.random.default_rng(3), []
    for _ in range(300):
        x = rng.normal(size=(400, 2))
        y = (rng.random(400) < 1 / (1 + np.exp(1 - x @ [1.0, 0.5]))).astype(int)
        p = LogisticRegression(C=np.inf).fit(x, y).predict_proba(x)[:, 1]
        pvalues.append(giviti_test(y, p, kind="internal", method="asymptotic").pvalue)
    assert abs(np.mean(pvalues) - 0.5) < 4 / np.sqrt(12 * 300)
    assert np.mean(np.array(pvalues) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_internal_labels_need_something_to_test():
    """Two values are fitted exactly: their p-value was 0."""
    y = problem()[0]
    options = {"kind": "internal", "method": "asymptotic"}
    for p in (np.full(300, 0.4), np.where(np.arange(300) < 150, 0.3, 0.6), y.astype(float)):
        with pytest.raises(ValueError, match="three different predictions"):
            giviti_test(y, p, **options)
    with pytest.raises(ValueError, match="was fitted to these labels"):
        giviti_test(*problem(power=1.5), **options)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"kind": "inner"}, ValueError, "`kind` must be one of 'external', 'internal', got 'inner'."),
        ({"kind": "internal"}, ValueError, '`method` must be "asymptotic" for kind="internal", got \'monte-carlo\'.'),
        ({"method": "exact"}, ValueError, "`method` must be one of 'monte-carlo', 'asymptotic', got 'exact'."),
        ({"threshold": 0}, ValueError, "`threshold` must lie strictly between 0 and 1"),
    ],
)
def test_refusals(options, kind, message):
    check_refused(lambda: giviti_test(*problem(), **options), kind, message)
