"""The unweighted sum of squares test: equal to R's rms, its level, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression

from caltest.hypothesis_tests import spiegelhalter_test, sum_of_squares_test
from tests.reference.cases import check_refused

RMS = {  # residuals(lrm(y ~ ., x=TRUE, y=TRUE, tol=1e-14, eps=1e-12), "gof") of rms 6.5.0, R 4.2.2
    "breast cancer": (88.99347337, 87.69543938, 0.78174942, 1.66042206, 0.09682958),
    "iris": (24.42243584, 23.93510229, 0.39650541, 1.22907164, 0.21904495),
    "diabetes": (81.31363468, 80.97058457, 0.52907315, 0.64839826, 0.51672739),
}


def data(name):
    if name == "breast cancer":
        found = load_breast_cancer()
        return found.target == 0, found.data[:, [1, 4, 8]]
    if name == "iris":
        found = load_iris()
        return found.target == 1, found.data
    found = load_diabetes()
    return found.target > 140, found.data[:, :4]


def fitted(y, x):
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-11).fit(scaled, y)
    return model.predict_proba(scaled)[:, 1]


def problem(n=300, bend=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(0.5 - x @ [1.0, -0.5] - bend * x[:, 0] ** 2))
    return y.astype(int), fitted(y, x), x


@pytest.mark.parametrize("name", RMS)
def test_equals_rms(name):
    y, x = data(name)
    result = sum_of_squares_test(y, fitted(y, x), x, method="asymptotic")
    found = result.sum_of_squares, result.expected, result.std_error, result.statistic, result.pvalue
    assert found == pytest.approx(RMS[name], abs=2e-8)


def test_equals_a_weighted_regression():
    y, p, x = problem()
    design, v = np.column_stack([np.ones(300), x]), p * (1 - p)
    left = np.linalg.lstsq(design * np.sqrt(v)[:, None], (1 - 2 * p) * np.sqrt(v), rcond=None)[1]
    z = ((y - p) ** 2 - v).sum() / np.sqrt(left[0])
    result = sum_of_squares_test(y, p, x, method="asymptotic")
    assert result.statistic == pytest.approx(z, rel=1e-9)
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9)


def test_without_a_fit_it_is_the_test_of_spiegelhalter():
    y, p, x = problem()
    result = sum_of_squares_test(y, p, x, method="asymptotic")
    spread = np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    z = spiegelhalter_test(y, p, n_resamples=19, rng=0).statistic
    assert (result.sum_of_squares - result.expected) / spread == pytest.approx(z, rel=1e-9)
    assert result.std_error < spread


def test_draws_are_fits_of_simulated_labels():
    """By hand, from the same random numbers."""
    y, p, x = problem(120)
    result = sum_of_squares_test(y, p, x, n_resamples=19, rng=5)
    drawn = np.random.default_rng(5).random((19, 120)) < p
    refitted = [sum_of_squares_test(labels, fitted(labels, x), x, method="asymptotic") for labels in drawn]
    sizes = [abs(one.statistic) for one in refitted]
    assert result.pvalue == (1 + sum(size >= abs(result.statistic) for size in sizes)) / 20
    assert result.smallest_possible_pvalue == 1 / 20


def test_a_wrong_form_is_detected():
    """A truth that is steep in the middle: residuals there are smaller than the flat fit expects."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 2, size=(1_500, 1))
    y = (rng.random(1_500) < 1 / (1 + np.exp(-3 * np.sin(x[:, 0])))).astype(int)
    found = sum_of_squares_test(y, fitted(y, x), x, n_resamples=199, rng=0)
    assert found.pvalue <= 0.01, found
    assert "does not fit" in found.conclusion
    assert sum_of_squares_test(*problem(1_500), n_resamples=199, rng=0).pvalue > 0.05


def test_odd_data():
    """Two values leave no variance; collinear features count once; separated draws have a value."""
    y, p = np.repeat([0, 1, 0, 1], [30, 10, 15, 25]), np.repeat([0.25, 0.625], 40)
    result = sum_of_squares_test(y, p, np.arange(80) // 40, n_resamples=19, rng=0)
    assert (result.statistic, result.pvalue) == (0, 1)
    y, p, x = problem()
    same = sum_of_squares_test(y, p, x, n_resamples=19, rng=0)
    more = sum_of_squares_test(y, p, np.column_stack([x, x[:, 0] + x[:, 1], np.ones(300)]), n_resamples=19, rng=0)
    assert more.statistic == pytest.approx(same.statistic, rel=1e-8)
    assert (more.pvalue, more.n_features) == (same.pvalue, 3)
    mirrored = sum_of_squares_test(1 - y, 1 - p, x, method="asymptotic")
    assert mirrored.statistic == pytest.approx(same.statistic, rel=1e-9)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    y = (rng.random(60) < 1 / (1 + np.exp(3 - x[:, 0]))).astype(int)
    rare = sum_of_squares_test(y, fitted(y, x), x, n_resamples=99, rng=0)
    assert 0 < rare.pvalue <= 1


@pytest.mark.slow
def test_level():
    """P-values of models that fit, with 15 events for each coefficient: about uniform."""
    pvalues = [sum_of_squares_test(*problem(120, seed=seed), n_resamples=99, rng=seed).pvalue for seed in range(120)]
    for alpha in (0.05, 0.2):
        assert np.mean(np.array(pvalues) <= alpha) < alpha + 4 * np.sqrt(alpha * (1 - alpha) / 120)


def test_refusals():
    y, p, x = problem()
    check_refused(lambda: sum_of_squares_test(y, p, x, method="exact"), ValueError, "`method` must be one of")
    check_refused(lambda: sum_of_squares_test(y, p**2, x), ValueError, "`features` must be those of the logistic")
    check_refused(lambda: sum_of_squares_test(1 - y, p, x), ValueError, "was fitted to `y_true` and `features`")
    check_refused(lambda: sum_of_squares_test(y, p, x[:9]), ValueError, "`features` must have 300 rows")
    check_refused(lambda: sum_of_squares_test(y, p, x * np.nan), ValueError, "`features` must be finite")
    check_refused(lambda: sum_of_squares_test(y, p, ["a"] * 300), TypeError, "`features` must be an array of numbers")
    check_refused(lambda: sum_of_squares_test(y, y * 1.0, x), ValueError, "`y_prob` must be above 0 and below 1")
    three = np.full((300, 3), 1 / 3)
    check_refused(lambda: sum_of_squares_test(np.arange(300) % 3, three, x), ValueError, "`y_prob` must be the prob")


@pytest.mark.parametrize("method", ["asymptotic", "monte-carlo"])
def test_features_that_explain_all_of_the_variance_reject_nothing(method):
    """A saturated model has Z = 0 / 0; what its solver and rounding leave of both is no evidence."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 1)).astype(float)
    y = (rng.random(300) < 0.2 + 0.3 * x[:, 0]).astype(int)
    p = LogisticRegression(C=np.inf).fit(x, y).predict_proba(x)[:, 1]
    draws = {"n_resamples": 99, "rng": 0} if method == "monte-carlo" else {}
    result = sum_of_squares_test(y, p, x, method=method, **draws)
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


def test_how_far_the_solver_went_moves_nothing():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (300, 2)).astype(float)
    y = (rng.random(300) < 0.2 + 0.3 * x[:, 0]).astype(int)
    first, last = (LogisticRegression(C=np.inf, tol=tol).fit(x, y).predict_proba(x)[:, 1] for tol in (1e-4, 1e-10))
    assert np.abs(first - last).max() > 1e-6
    found = [sum_of_squares_test(y, p, x, method="asymptotic").statistic for p in (first, last)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_frames_whose_rows_are_in_another_order_are_refused():
    y, p, x = problem(50)
    with pytest.raises(ValueError, match="`y_prob` and `features` must have the same index"):
        sum_of_squares_test(y, pd.Series(p), pd.DataFrame(x, index=np.arange(50)[::-1]), n_resamples=9)
