"""Cox's test: another program's fits and scores, a case by hand, edges where no estimate exists, and its limit."""

import json
import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import special, stats
from statsmodels.discrete.discrete_model import Logit

import caltest
from caltest.hypothesis_tests import CoxLikelihoodRatio
from caltest.predictions._sample import make_sample
from caltest.resampling.engine._evaluation import null_values
from caltest.statistics._recalibration_scores import logits
from tests.hypothesis_tests.classical.limits import check_size, rare_events
from tests.hypothesis_tests.problems import STANDARD_ERRORS, calibrated, codes, words
from tests.results.printed import printed


def score_test(y_true, y_prob, **options):
    return caltest.cox_test(y_true, y_prob, method="asymptotic", **options)


def likelihood_ratio_test(y_true, y_prob, **options):
    return caltest.cox_test(y_true, y_prob, kind="likelihood-ratio", method="asymptotic", **options)


# Another program.


@pytest.mark.parametrize(
    ("n", "intercept", "slope", "scale"), [(12, 0, 1, 1), (300, 0.4, 0.7, 1.5), (2000, -2, 1, 2), (900, 0, -0.5, 4)]
)
def test_likelihood_ratio_of_statsmodels(n, intercept, slope, scale):
    """For few and many observations (more than cells of the slope), rare events and decreasing curves."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n) * scale
    y_true, y_prob = rng.random(n) < special.expit(intercept + slope * x), special.expit(x)
    x = np.log(y_prob) - np.log1p(-y_prob)
    near = Logit(y_true, np.ones(n), offset=x).fit(disp=0)
    large = Logit(y_true, np.ones(n), offset=x).fit(near.params, disp=0)
    free = Logit(y_true, sm.add_constant(x)).fit(disp=0, method="bfgs")
    free = Logit(y_true, sm.add_constant(x)).fit(free.params, disp=0, maxiter=100)
    null = stats.bernoulli.logpmf(y_true, y_prob).sum()
    result, case = likelihood_ratio_test(y_true, y_prob), f"{n} observations"
    estimates = [result.intercept, result.slope, result.in_the_large]
    np.testing.assert_allclose(estimates, [*free.params, *large.params], rtol=1e-9, err_msg=case)
    errors = [result.intercept_error, result.slope_error, result.in_the_large_error]
    np.testing.assert_allclose(errors, [*free.bse, *large.bse], rtol=1e-9, err_msg=case)
    assert result.statistic == pytest.approx(2 * (free.llf - null), rel=1e-9), case
    assert result.in_the_large_statistic == pytest.approx(2 * (large.llf - null), rel=1e-9), case
    check_parts(result, case)


def test_score_of_statsmodels():
    """U' I^-1 U at (0, 1), from the gradient and the Hessian of another program."""
    y_true, y_prob = calibrated(300, 2, concentration=1.0)
    x = np.log(y_prob[:, 1] / y_prob[:, 0])
    model = Logit(y_true, np.column_stack([np.ones(300), x]))
    gradient, information = model.score(np.array([0.0, 1.0])), -model.hessian(np.array([0.0, 1.0]))
    result = score_test(y_true, y_prob)
    assert result.statistic == pytest.approx(gradient @ np.linalg.solve(information, gradient), rel=1e-9)
    assert result.in_the_large_statistic == pytest.approx(gradient[0] ** 2 / information[0, 0], rel=1e-9)
    check_parts(result, "score")


def check_parts(result, case):
    """The statistics of the parts sum to the joint one, and each has its chi-squared p-value."""
    total = result.in_the_large_statistic + result.slope_statistic
    assert total == pytest.approx(result.statistic, rel=1e-9), case
    assert result.degrees_of_freedom == 2, case
    assert result.pvalue == pytest.approx(stats.chi2.sf(result.statistic, 2), rel=1e-9), case
    assert result.slope_pvalue == pytest.approx(stats.chi2.sf(result.slope_statistic, 1), rel=1e-9), case
    large = stats.chi2.sf(result.in_the_large_statistic, 1)
    assert result.in_the_large_pvalue == pytest.approx(large, rel=1e-7), case
    assert result.origin.endswith("chi-squared(2)"), case


def test_parts_are_score_tests_on_the_same_draws():
    y_true, y_prob = calibrated(150, 2)
    options = {"n_resamples": 99, "rng": 3}
    result = caltest.cox_test(y_true, y_prob, **options)
    for part, found in {
        "joint": (result.statistic, result.pvalue),
        "intercept": (result.in_the_large_statistic, result.in_the_large_pvalue),
        "slope": (result.slope_statistic, result.slope_pvalue),
    }.items():
        alone = caltest.calibration_test(y_true, y_prob, statistic=caltest.statistics.CoxScore(part), **options)
        assert found == tuple(alone), part


# By hand.


def test_halved_logits():
    """Events in 1/4 of the observations at 0.1 and in 3/4 of those at 0.9: logits log 3 rather than log 9."""
    y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    result = likelihood_ratio_test(y_true, y_prob)
    assert result.slope == pytest.approx(0.5, rel=1e-9)
    assert result.intercept == pytest.approx(0, abs=1e-9)
    assert result.in_the_large == pytest.approx(0, abs=1e-9)
    likelihood = 20 * math.log(0.25) + 60 * math.log(0.75) - 20 * math.log(0.1) - 60 * math.log(0.9)
    assert result.statistic == pytest.approx(2 * likelihood, rel=1e-9)
    assert result.slope_statistic == pytest.approx(2 * likelihood, rel=1e-9)
    assert result.findings[0].kind == result.direction == "too extreme"
    assert result.findings[0].estimate == pytest.approx(0.5, abs=0.02)


def test_estimates_are_printed():
    y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    result = caltest.cox_test(np.append(y_true, [1, 1, 1]), y_prob + [0.9] * 3, n_resamples=999, rng=0)
    table = """
 score test               estimate  std. error  statistic  p-value
 a = 0 and b = 1                                     18.4   0.0010
 slope b (a free)           0.5217      0.1168      18.38   0.0010
 intercept a (b free)      0.04766      0.2567
 in the large: a (b = 1)   0.04018       0.366    0.01205   1.0000
"""
    assert table in printed(result)
    said = "Estimated slope 0.522 (standard error 0.12) and intercept 0.0477 (standard error 0.26)"
    assert said in words(result)
    fitted = likelihood_ratio_test(y_true, y_prob)
    assert (result.kind, fitted.kind) == ("score", "likelihood-ratio")
    assert "likelihood-ratio test" in str(fitted)
    assert fitted.to_dict()["kind"] == "likelihood-ratio"


def test_the_likelihood_ratio_is_named():
    """In the statistic, its component and the dictionary; the score is not mentioned, in notes neither."""
    for y_true, y_prob in [(*calibrated(100, 2),), ([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0])]:
        result = likelihood_ratio_test(y_true, y_prob)
        assert result.test_statistic == result.components[0].test_statistic == CoxLikelihoodRatio()
        assert result.to_dict()["test_statistic"] == "CoxLikelihoodRatio()"
        for text in (str(result), str(result.components[0]), json.dumps(result.to_dict()), repr(result)):
            assert "CoxScore" not in text
        assert "CoxLikelihoodRatio()" in str(result.components[0])
    assert "CoxLikelihoodRatio() is constant under the null hypothesis" in words(result)
    assert score_test(y_true, y_prob).test_statistic == caltest.statistics.CoxScore()
    with pytest.raises(ValueError, match="`part` must be one of 'joint', 'intercept', 'slope', got 'both'"):
        CoxLikelihoodRatio("both")


# Estimates.


def test_any_slope_is_found():
    """Logits of the truth times 1 / power: estimates near power, however sharp or vague the predictions are."""
    for power in (0.02, 0.2, 1.0, 5.0, 20.0):
        rng = np.random.default_rng(0)
        truth = rng.normal(size=4000) * 1.5
        y_true = rng.random(4000) < special.expit(truth)
        result = likelihood_ratio_test(y_true, special.expit(truth / power))
        assert abs(result.slope - power) < STANDARD_ERRORS * result.slope_error, power
        assert abs(result.intercept) < STANDARD_ERRORS * result.intercept_error, power


@pytest.mark.parametrize("narrow", [1e-3, 1e-6, 1e-9])
def test_nearly_equal_predictions_have_a_slope(narrow):
    """The fit depends on differences of logits alone; other optimisers fail where these are a millionth."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y_true = rng.random(500) < special.expit(x)
    wide, found = (likelihood_ratio_test(y_true, special.expit(scale * x)) for scale in (1.0, narrow))
    rounding = 1e-15 / narrow  # of a logit near 0, as a share of its spread
    assert narrow * found.slope == pytest.approx(wide.slope, rel=1e-9 + 10 * rounding)
    assert narrow * found.slope_error == pytest.approx(wide.slope_error, rel=1e-9 + 10 * rounding)
    assert found.intercept == pytest.approx(wide.intercept, abs=1e-9 + 10 * rounding)


def test_labels_that_hardly_overlap_count_as_separated():
    """One pair of the wrong order, and nearly equal: the largest likelihood has a slope of 20,000 or more."""
    x = np.linspace(-1, 1, 20_000)
    y_true = x > 0
    x[9_999], x[10_000] = 1e-9, -1e-9
    result = score_test(y_true, special.expit(x))
    assert np.isnan([result.intercept, result.slope, result.slope_error]).all()
    assert result.in_the_large == pytest.approx(0, abs=1e-9)
    assert codes(result.notes) == ["C502"]
    with pytest.raises(ValueError, match="`y_prob` separates the labels, so that the likelihood has no maximum"):
        likelihood_ratio_test(y_true, special.expit(x))


# Edges.


def test_a_constant_predictor():
    y_true, y_prob = np.arange(200) % 4 < 3, np.full(200, 0.5)
    for result in (
        caltest.cox_test(y_true, y_prob, n_resamples=199, rng=0),
        score_test(y_true, y_prob),
        likelihood_ratio_test(y_true, y_prob),
    ):
        case = f"{result.kind} {result.method}"
        assert result.degrees_of_freedom == 1, case
        assert result.slope_statistic == pytest.approx(0, abs=1e-12), case
        assert result.slope_pvalue == 1, case
        assert np.isnan(result.slope), case
        assert result.in_the_large == pytest.approx(math.log(3), rel=1e-6), case
        assert codes(result.notes) == ["C503"], case
        assert "Estimated slope" not in words(result), case
        assert [finding.kind for finding in result.findings] == ["too low"], case


def test_separated_labels():
    """No estimate, and no likelihood ratio; the score test needs none."""
    y_prob = np.arange(1, 11) / 11
    touching = y_prob.copy()
    touching[[4, 5]] = 0.5  # one prediction with both labels, between the others
    upper = np.arange(10) >= 5
    for case, labels, prob, reason in [
        ("one class", np.ones(10, dtype=int), y_prob, "`y_true` holds equal labels only"),
        ("one class, constant", np.ones(10, dtype=int), np.full(10, 0.5), "`y_true` holds equal labels only"),
        ("separated", upper, y_prob, "`y_prob` separates the labels"),
        ("separated downwards", ~upper, y_prob, "`y_prob` separates the labels"),
        ("touching", upper, touching, "`y_prob` separates the labels"),
    ]:
        with pytest.raises(ValueError, match=f'{reason}, so that .* kind="score" does not'):
            likelihood_ratio_test(labels, prob)
        result = caltest.cox_test(labels, prob, n_resamples=199, rng=0)
        assert 0 < result.pvalue <= 1, case
        assert result.degrees_of_freedom == (1 if "constant" in case else 2), case
        assert np.isnan(result.slope), case
        assert np.isnan(result.in_the_large) == case.startswith("one class"), case
        assert codes(result.notes) == ["C502"], case
        why = "because all labels are equal" if "one class" in case else "because the predictions separate the labels"
        assert f"Intercept and slope have no finite estimate, {why}." in words(result), case
        json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.slow(few_draws=True)
def test_predictions_of_0_and_1_are_left_out():
    assert logits(make_sample([0, 1, 1], [0.0, 0.5, 1.0])).tolist() == [-np.inf, 0.0, np.inf]
    y_true, y_prob = calibrated(100, 2)
    for ends, text in [
        ([0.0, 0.0, 1.0], "3 predictions of exactly 0 or 1, whose logit is infinite, are left out of the estimates."),
        ([1.0], "1 prediction of exactly 0 or 1, whose logit is infinite, is left out of the estimates."),
    ]:
        for test in (score_test, likelihood_ratio_test):
            plain = test(y_true, y_prob)
            result = test(np.append(y_true, np.array(ends, dtype=int)), np.append(y_prob[:, 1], ends))
            assert result.statistic == pytest.approx(plain.statistic, rel=1e-9)
            assert dict(result.derived) == pytest.approx(dict(plain.derived), rel=1e-9)
            assert codes(result.notes) == ["C501"]
            assert text in words(result)


def test_an_impossible_label_does_not_give_a_direction():
    """It makes every p-value the smallest possible, although the slope is near 1."""
    y_true, y_prob = calibrated(100, 2, seed=1)
    y_prob[7], y_true[7] = [0, 1], 0
    for test in (score_test, likelihood_ratio_test):
        result = test(y_true, y_prob)
        assert result.pvalue == result.slope_pvalue == result.in_the_large_pvalue == np.finfo(float).tiny
        assert stats.chi2.sf(result.slope_statistic, 1) > 0.05
        assert result.direction is None
        assert codes(result.notes) == ["C201", "C501"]


def test_likelihood_ratios_need_their_limit():
    problem = calibrated(50, 2)
    with pytest.raises(ValueError, match=r'`method` must be "asymptotic" for kind="likelihood-ratio", got'):
        caltest.cox_test(*problem, kind="likelihood-ratio")
    for kind, wrong in [(ValueError, "wald"), (TypeError, 2)]:
        with pytest.raises(kind, match="`kind` must be one of 'score', 'likelihood-ratio', got"):
            caltest.cox_test(*problem, kind=wrong)
    for kind, wrong in [(ValueError, "both"), (TypeError, None)]:
        with pytest.raises(kind, match="`part` must be one of 'joint', 'intercept', 'slope', got"):
            caltest.statistics.CoxScore(wrong)


# Distributions.


def test_mean_under_the_null():
    """2 for the sum and 1 for each square, whatever the predictions."""
    for concentration in (0.5, 2.0):
        sample = make_sample(*calibrated(200, 2, concentration=concentration))
        draws = caltest.Consistency().draws(4000, rng=0)
        for part, mean in {"joint": 2, "intercept": 1, "slope": 1}.items():
            values = null_values(caltest.statistics.CoxScore(part), sample, draws)
            error = values.std() / math.sqrt(len(values))
            assert abs(values.mean() - mean) < STANDARD_ERRORS * error, (part, concentration)


def test_where_the_limit_fails():
    """The figure of the docstring."""
    check_size(caltest.statistics.CoxScore(), rare_events, 100, alpha=0.01, documented="0.026")


def test_the_likelihood_ratio_has_no_partition():
    assert CoxLikelihoodRatio.partition is None
