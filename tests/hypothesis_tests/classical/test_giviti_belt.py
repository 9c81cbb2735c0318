"""The GiViTI belt: equal to a general optimiser, its levels given the degree, coverage, and what it refuses."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from caltest.hypothesis_tests import giviti_belt, giviti_test
from caltest.resampling.distributions._forward_selection import ForwardSelection
from tests.clinical.test_clinical_calibration_programs import problem as pima
from tests.reference.cases import check_refused, mostly_slow


def problem(n=400, bend=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(-0.5, 1.2, n)
    return (rng.random(n) < expit(x + bend * (x**2 - 1))).astype(int), expit(x)


def end_by_optimiser(y, p, degree, at, reach, sign):
    """The furthest logit at a prediction of polynomials whose likelihood is large enough, by a general optimiser."""
    design = np.power(logit(p)[:, None], np.arange(degree + 1))

    def lack(beta):
        return np.logaddexp(0, design @ beta).sum() - y @ design @ beta

    def slope(beta):
        return design.T @ (expit(design @ beta) - y)

    start = optimize.minimize(lack, np.eye(degree + 1)[1], jac=slope, method="BFGS", options={"gtol": 1e-8}).x
    limit = {
        "type": "ineq",
        "fun": lambda beta: reach / 2 - lack(beta) + lack(start),
        "jac": lambda beta: -slope(beta),
    }
    row = np.power(logit(at), np.arange(degree + 1))
    found = optimize.minimize(
        lambda beta: -sign * row @ beta,
        start,
        jac=lambda _: -sign * row,
        constraints=limit,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return expit(row @ found.x)


@pytest.mark.parametrize(("n", "bend", "degree"), mostly_slow([(400, 0.0, 1), (400, 0.35, 2), (3_000, 0.2, 2)]))
def test_equals_a_general_optimiser(n, bend, degree):
    y, p = problem(n, bend)
    belt = giviti_belt(y, p)
    assert belt.selected_degree == degree
    null = ForwardSelection(2, 3, 0.95)
    for level, lower, upper in ((0.95, belt.lower, belt.upper), (0.8, belt.inner_lower, belt.inner_upper)):
        reach = null.quantile_given(degree - 1, level)
        for k in (0, 60, 130, -1):
            ends = [end_by_optimiser(y, p, degree, belt.prediction[k], reach, sign) for sign in (-1, 1)]
            assert [lower[k], upper[k]] == pytest.approx(ends, abs=2e-5)


@pytest.mark.slow(few_draws=True)
def test_of_degree_1_it_is_the_ellipse_of_chi_squared():
    """In a large sample the region is an ellipse, whose ends have a formula."""
    y, p = problem(200_000)
    belt = giviti_belt(y, p)
    assert belt.selected_degree == 1
    design = np.column_stack([np.ones_like(p), logit(p)])
    fitted = expit(design @ belt.coefficients)
    covariance = np.linalg.inv((design.T * (fitted * (1 - fitted))) @ design)
    row = np.column_stack([np.ones_like(belt.curve), logit(belt.prediction)])
    half = np.sqrt(stats.chi2(2).ppf(0.95) * np.einsum("ij,jk,ik->i", row, covariance, row))
    assert logit(belt.upper) - row @ belt.coefficients == pytest.approx(half, rel=0.05)
    assert row @ belt.coefficients - logit(belt.lower) == pytest.approx(half, rel=0.05)


@pytest.mark.slow(few_draws=True)
def test_the_limit_given_the_degree():
    """Of independent chi-squared numbers, of which those are kept that are all significant."""
    rng = np.random.default_rng(0)
    null, q = ForwardSelection(2, 3, 0.8), stats.chi2(1).ppf(0.8)
    steps = rng.chisquare(1, (400_000, 3))
    first = rng.chisquare(2, 400_000)
    for added in (0, 1, 2):
        kept = (steps[:, :added] >= q).all(axis=1)
        total = (first + steps[:, :added].sum(axis=1))[kept]
        for x in (1.0, 4.0, 9.0):
            share = null.sf_given(added, x)
            assert abs((total >= x).mean() - share) <= 4 * np.sqrt(share * (1 - share) / kept.sum()) + 1e-12
        assert null.sf_given(added, null.quantile_given(added, 0.95)) == pytest.approx(0.05, rel=1e-9)
    mixed = sum(null._added[k] * null.sf_given(k, 6.0) for k in range(4))
    assert mixed == pytest.approx(null.sf(6.0), rel=1e-9)


def test_the_pvalue_of_the_first_degree_is_chi_squared():
    """The statistic is that of the test, whose limit is one over all degrees."""
    y, p = problem()
    belt, test = giviti_belt(y, p), giviti_test(y, p, method="asymptotic")
    assert (belt.statistic, belt.selected_degree) == (pytest.approx(test.statistic, rel=1e-12), 1)
    assert belt.coefficients == pytest.approx(test.coefficients, rel=1e-12)
    assert belt.pvalue == pytest.approx(stats.chi2(2).sf(belt.statistic), rel=1e-9)
    assert belt.pvalue < test.pvalue
    assert belt.unconditional_pvalue == pytest.approx(test.pvalue, rel=1e-12)
    assert f"Over all degrees, as in giviti_test, the p-value is {test.pvalue:.4g}" in " ".join(str(belt).split())


def test_a_note_where_the_two_pvalues_decide_differently():
    """Given degree 2 the statistic of Pima.te is usual (givitiR: p = 0.1119); over all degrees it is not."""
    belt = giviti_belt(*pima("pima"))
    assert (belt.pvalue, belt.unconditional_pvalue) == pytest.approx((0.111897529776, 0.0113045169), rel=1e-7)
    assert [note.code for note in belt.notes] == ["C220"]
    assert "0.1119; over all degrees, as in giviti_test, it is 0.0113" in belt.notes[0].text
    assert not giviti_belt(*problem()).notes


def test_the_belts_are_nested_and_contain_the_curve():
    for bend in (0.0, 0.4):
        belt = giviti_belt(*problem(bend=bend))
        ends = belt.lower, belt.inner_lower, belt.curve, belt.inner_upper, belt.upper
        assert all((a < b).all() for a, b in pairwise(ends))
        assert belt.prediction[[0, -1]] == pytest.approx(problem()[1][[problem()[1].argmin(), problem()[1].argmax()]])


def test_the_complement_mirrors():
    y, p = problem(bend=0.3)
    belt, other = giviti_belt(y, p), giviti_belt(1 - y, 1 - p)
    assert other.pvalue == pytest.approx(belt.pvalue, rel=1e-6)
    assert 1 - other.lower[::-1] == pytest.approx(
        np.interp(1 - other.prediction[::-1], belt.prediction, belt.upper), abs=1e-6
    )


def test_where_predictions_are_too_low_and_too_high():
    y, p = problem(4_000, 0.3)
    belt = giviti_belt(y, p)
    assert len(belt.too_low) == 2
    assert len(belt.too_high) == 1
    assert belt.too_low[0][1] < belt.too_high[0][0] < belt.too_high[0][1] < belt.too_low[1][0]
    assert belt.rejected
    assert "too low from" in belt.conclusion
    assert "and too high from" in belt.conclusion
    (start, end), x = belt.too_high[0], belt.prediction
    assert np.interp([start, end], x, belt.upper) == pytest.approx([start, end], abs=1e-9)


@pytest.mark.slow(few_draws=True)
def test_internal():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_000, 1))
    for bend, rejected in ((0.0, False), (0.6, True)):
        y = (rng.random(2_000) < expit(-1 + x[:, 0] + bend * x[:, 0] ** 2)).astype(int)
        p = LogisticRegression(C=np.inf).fit(x, y).predict_proba(x)[:, 1]
        belt = giviti_belt(y, p, kind="internal")
        assert belt.rejected == rejected
        added = belt.selected_degree - 2
        assert belt.pvalue == ForwardSelection(1, 2, 0.95).sf_given(added, belt.statistic)


@pytest.mark.slow(few_draws=True)
def test_odd_data():
    y, p = problem()
    same, sure = giviti_belt(y, p), giviti_belt(np.append(y, [0, 1]), np.append(p, [0.0, 1.0]))
    assert sure.upper == pytest.approx(same.upper, abs=1e-9)
    assert sure.n_left_out == 2
    assert "C501" in [note.code for note in sure.notes]
    impossible = giviti_belt(np.append(y, 1), np.append(p, 0.0))
    assert (impossible.pvalue, impossible.unconditional_pvalue) == (0, 0)
    assert impossible.conclusion.endswith("a label had been given probability 0. The belts leave it out.")
    for label, events in ((0, "0 events"), (1, "400 events")):
        check_refused(giviti_belt, ValueError, f"got {events} among 400; giviti_test", np.full(400, label), p)
    constant = giviti_belt(np.arange(60) % 3 == 0, np.full(60, 0.3))
    assert constant.prediction == pytest.approx([0.3])
    assert constant.lower[0] < 1 / 3 < constant.upper[0]
    rare = giviti_belt((np.arange(900) % 300 == 0).astype(int), np.linspace(0.001, 0.006, 900))
    assert "C213" in [note.code for note in rare.notes]
    assert np.isfinite([rare.lower, rare.upper]).all()
    assert "C213" not in [note.code for note in same.notes]


@pytest.mark.nightly
def test_coverage():
    """A region of 95 % contains a calibrated model in 95 % of data sets, given each degree: p-values are uniform."""
    rng = np.random.default_rng(1)
    pvalues, inside = [], []
    for _ in range(400):
        x = rng.normal(-1, 1.2, 600)
        y = (rng.random(600) < expit(x)).astype(int)
        belt = giviti_belt(y, expit(x))
        pvalues.append(belt.pvalue)
        inside.append(not (belt.too_low or belt.too_high))
    for alpha in (0.05, 0.2):
        error = 4 * np.sqrt(alpha * (1 - alpha) / 400)
        assert abs(np.mean(np.array(pvalues) <= alpha) - alpha) < error
    assert np.mean(inside) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "inner"}, "`kind` must be one of 'external', 'internal', got 'inner'."),
        ({"threshold": 0}, "`threshold` must lie strictly between 0 and 1"),
        ({"confidence_level": 1}, "`confidence_level` must lie strictly between 0 and 1"),
        ({"inner_level": 0.95}, "`inner_level` must be below `confidence_level`, 0.95, got 0.95."),
    ],
)
def test_refusals(options, message):
    check_refused(lambda: giviti_belt(*problem(), **options), ValueError, message)


def test_labels_without_an_estimate_are_refused():
    p = np.linspace(0.05, 0.95, 60)
    separated = "`y_true` is separated by the polynomial of degree"
    check_refused(lambda: giviti_belt(np.arange(60) >= 30, p), ValueError, separated)
    check_refused(lambda: giviti_belt([0, 1], [0.0, 1.0]), ValueError, "`y_prob` must hold predictions other than")
    check_refused(lambda: giviti_belt(*problem(bend=2.0), kind="internal"), ValueError, "fitted to these labels")
