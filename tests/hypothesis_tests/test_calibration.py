"""The test of perfect calibration: its result, its p-value, its edges, its level and its power."""

import itertools
import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from tests.hypothesis_tests.problems import (
    ALPHA,
    FALSE_ALARM,
    blunted,
    calibrated,
    codes,
    lens_for,
    most_rejections,
    sharpened,
    words,
)
from tests.reference import naive
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.reference.examples import PROBLEMS, STATISTICS, TWO_OUTCOMES, default_statistics
from tests.results.printed import printed

EVERYWHERE = ("auto", "monte-carlo")


def run(y_true, y_prob, statistic=None, **options):
    """The test by 199 draws, also where its null distribution could be computed."""
    options = {"n_resamples": 199, "rng": 0, "method": "monte-carlo", **options}
    return caltest.calibration_test(y_true, y_prob, statistic=statistic, **options)


@pytest.fixture(scope="module")
def result():
    return run(*calibrated(200, 3))


# The result.


def test_result(result):
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)
    assert {type(statistic), type(pvalue)} == {float}
    assert (result.n_resamples, result.null_distribution.shape) == (199, (199,))
    assert (result.n_samples, result.n_outcomes) == (200, 3)
    assert (result.lens, result.lens_name) == (caltest.Canonical(), "whole prediction")
    assert result.test_statistic == caltest.Omnibus()
    assert (result.method, result.title, result.alpha) == ("monte-carlo", "Calibration test", ALPHA)
    assert tuple(part.test_statistic for part in result.components) == caltest.Omnibus().components
    assert result.impossible_samples.tolist() == []
    p, least = result.pvalue, min(part.pvalue for part in result.components)
    number = np.log(1 - p) / np.log(1 - least)  # of independent tests whose smallest p-value has this p-value
    errors = np.sqrt(np.array([p * (1 - p), least * (1 - least)]) / 199) * [1, number * (1 - least) ** (number - 1)]
    assert result.numerical_error == pytest.approx(np.hypot(*errors))
    assert codes(result.conditions) == ["C101"]
    assert result.l2_error.estimate == caltest.l2_interval(*calibrated(200, 3)).estimate
    for name in ("statistic", "pvalue", "null_distribution", "lens", "components", "new"):
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, 0)
    for part in (result, *result.components):
        assert part.noise_floor == part.null_distribution.mean()
        ends = np.quantile(part.null_distribution, [0.05, 0.95], method="inverted_cdf")
        assert part.noise_interval == tuple(ends)


def test_size_is_that_behind_the_lens_and_in_the_region():
    y_true, y_prob = calibrated(100, 5)
    result = run(y_true, y_prob, lens=caltest.TopK(2), region=lambda prob: prob[:, 0] > 0.5)
    assert (result.n_outcomes, result.n_samples) == (3, (y_prob.max(axis=1) > 0.5).sum())
    assert result.lens == caltest.TopK(2)


def test_default_lens():
    """The whole prediction where the statistic can judge it, otherwise the confidence."""
    y_true, y_prob = calibrated(60, 3)
    for statistic, lens in (
        (caltest.KS(), caltest.Confidence()),
        (caltest.ECE(caltest.EqualMass(4)), caltest.Confidence()),
    ):
        assert run(y_true, y_prob, statistic).lens == lens
        assert tuple(run(y_true, y_prob, statistic)) == tuple(run(y_true, y_prob, statistic, lens=lens))
    assert run(y_true, y_prob, caltest.ECE()).lens == caltest.Canonical()
    assert run(y_true == 0, y_prob[:, 0], caltest.KS()).lens == caltest.Canonical()


def test_conclusion(result):
    for alpha, pvalue, said in [
        (0.05, 0.05, "Calibration is rejected at the 5 % level (p = 0.05)."),
        (0.01, 0.05, "right, 5 of 100 such data sets would look as bad as this or worse (p = 0.05)."),
        (0.001, 0.05, "This test cannot decide: with 199 draws no p-value below 0.005 is possible"),
        (0.05, 0.051, "right, 5 of 100 such data sets would look as bad as this or worse (p = 0.051)."),
        (0.1, 1 / 200, "rejected at the 10 % level (p = 0.005, the smallest p-value possible with 199 draws)."),
    ]:
        other = replace(result, alpha=alpha, pvalue=pvalue)
        assert said in other.conclusion, (alpha, pvalue)
        assert said in words(other), (alpha, pvalue)
        assert other.rejected == ("rejected at" in said or "is rejected" in said), (alpha, pvalue)
    assert run(*sharpened(300, 3), alpha=0.2).direction == "over-confident"


def test_origin_names_hypothesis_and_draws():
    def squared(prob):
        return prob**2 / (prob**2).sum(axis=1, keepdims=True)

    for scheme, hypothesis, origin, conditions in [
        (caltest.Consistency(), "= g(X)", "199 Monte Carlo draws of the labels, predictions fixed (valid at", ["C101"]),
        (
            caltest.Consistency(resample_predictions=True),
            "= g(X)",
            "199 resamples of the observations",
            ["C101", "C102"],
        ),
        (caltest.Consistency(calibration_function=squared), "= squared(g(X))", "199 Monte Carlo draws", ["C101"]),
    ]:
        found = run(*calibrated(500, 2), caltest.ECE(caltest.EqualWidth(2)), resampling=scheme)
        assert hypothesis in found.hypothesis, str(scheme)
        assert found.origin.startswith(origin), str(scheme)
        assert codes(found.conditions) == conditions, str(scheme)
        assert found.origin in words(found), str(scheme)


def test_html_escapes():
    def loud(prob):
        return (prob[:, 1] > 0.5).astype(int)

    loud.__name__ = "<b>&loud</b>"
    html = run([0, 1, 1], [0.25, 0.5, 0.75], caltest.ECE(loud))._repr_html_()
    assert "<b>" not in html
    for part in ("&lt;b&gt;&amp;loud&lt;/b&gt;", "<table>", "Valid if", "Null distribution: 199 Monte Carlo draws"):
        assert part in html


def test_a_value_of_zero_has_no_sign():
    result = run([1, 0], [1.0, 0.0])
    assert result.pvalue == 1
    assert "-0 " not in str(result)


# What is printed.


def test_printed_where_rejected():
    result = run(*sharpened(300, 3), n_resamples=999)
    expected = """\
Calibration test (Omnibus, whole prediction, 300 observations, 3 outcomes)

The model is over-confident: its confidence is 73.5 % on average, 58.0 % of its
predictions are right. Calibration is rejected at the 5 % level (p = 0.001, the
smallest p-value possible with 999 draws).
ECE 0.1672; a calibrated model with these predictions has 0.0462 on average and
at most 0.06802 in 95 % of data sets.

 accuracy minus confidence  -15.5 points (-21.9 to     0 if calibrated
                            -9.2)
 typical error              21.5 points (14.8 to       0 if calibrated; chance
                            28.6)                      alone shows up to 8.2

In brackets: what is compatible with these data, with 95 % confidence.
What to do: Do not use these predictions as they are.
`caltest.recalibration_study(y_true, y_prob)` recalibrates them and shows on
held-out folds what is left.

 statistic           value  under calibration (5 % to 95 %)  p-value
 ECE()              0.1672      0.0462 (0.02687 to 0.06802)   0.0010
 OverConfidence()    123.4        -0.5876 (-17.19 to 17.45)   0.0010
 UnderConfidence()  -123.4         0.5876 (-17.45 to 17.19)   1.0000
 ClasswiseKS()       3.407          1.597 (0.8943 to 2.586)   0.0030
 ConfidenceECE()    0.1595       0.05685 (0.0348 to 0.0831)   0.0010

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: 999 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size); numerical error of p 0.001.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(result) == expected


def test_printed_where_not_rejected():
    result = run(*calibrated(300, 3, seed=4), n_resamples=999)
    expected = """\
Calibration test (Omnibus, whole prediction, 300 observations, 3 outcomes)

No miscalibration is found: 69.8 % confidence, 69.7 % right. If the predictions
were exactly right, 58 of 100 such data sets would look as bad as this or worse
(p = 0.581). This does not prove that the model is calibrated. Had the
predictions been wrong by 7.7 percentage points on average, this would have been
found in 4 of 5 such data sets; smaller errors may be missed.
The l2 calibration error is 0.0000 (95 % confidence interval 0.0000 to 0.0683).
ECE 0.0329; a calibrated model with these predictions has 0.05004 on average and
at most 0.07379 in 95 % of data sets.

 accuracy minus confidence  -0.1 points (-6.0 to +5.4)  0 if calibrated

In brackets: what is compatible with these data, with 95 % confidence.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 720 observations.

 statistic            value  under calibration (5 % to 95 %)  p-value
 ECE()               0.0329     0.05004 (0.03004 to 0.07379)   0.9090
 OverConfidence()    -9.517          0.1206 (-15.44 to 17.8)   0.8210
 UnderConfidence()    9.517         -0.1206 (-17.8 to 15.44)   0.1800
 ClasswiseKS()        1.249          1.605 (0.8965 to 2.587)   0.7280
 ConfidenceECE()    0.05648      0.05914 (0.0365 to 0.08463)   0.5350

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: 999 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size); numerical error of p 0.03.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(result) == expected


def test_printed_where_exact():
    result = caltest.calibration_test(*calibrated(300, 2, seed=1), statistic=caltest.ECE(caltest.EqualWidth(5)))
    expected = """\
Calibration test (ECE, whole prediction, 300 observations, 2 outcomes)

No miscalibration is found: 51.3 % predicted, 50.0 % observed. If the
predictions were exactly right, 94 of 100 such data sets would look as bad as
this or worse (p = 0.9364). This does not prove that the model is calibrated.
Had the predictions been wrong by 7.2 percentage points on average, this would
have been found in 4 of 5 such data sets; smaller errors may be missed.
The l2 calibration error is 0.0000 (95 % confidence interval 0.0000 to 0.0639).
ECE 0.01916; a calibrated model with these predictions has 0.03594 on average
and at most 0.05726 in 95 % of data sets.

 observed / expected  0.97  (0.88 to 1.07)  1 if calibrated
 calibration slope    1.05  (0.79 to 1.33)  1 if calibrated

In brackets: what is compatible with these data, with 95 % confidence for the
first two together.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 620 observations.

 statistic                       value  under calibration (5 % to 95 %)  p-value
 ECE(partition=EqualWidth(5))  0.01916     0.03594 (0.01734 to 0.05726)   0.9364

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: computed exactly, predictions fixed (valid at every sample
    size): cells convolved atom by atom; numerical error of p 9e-13.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(result) == expected


@pytest.mark.usefixtures("usual_draws")
def test_printed_where_asymptotic():
    result = caltest.calibration_test(*calibrated(300, 2, seed=1), statistic=caltest.KS(), method="asymptotic")
    expected = """\
Calibration test (KS, whole prediction, 300 observations, 2 outcomes)

No miscalibration is found: 51.3 % predicted, 50.0 % observed. If the
predictions were exactly right, 62 of 100 such data sets would look as bad as
this or worse (p = 0.6246). This does not prove that the model is calibrated.
Had the predictions been wrong by 9.6 percentage points on average, this would
have been found in 4 of 5 such data sets; smaller errors may be missed.
The l2 calibration error is 0.0000 (95 % confidence interval 0.0000 to 0.0639).
KS 0.0204; a calibrated model with these predictions has 0.02544 on average and
at most 0.0455 in 95 % of data sets.

 observed / expected  0.97  (0.88 to 1.07)  1 if calibrated
 calibration slope    1.05  (0.79 to 1.33)  1 if calibrated

In brackets: what is compatible with these data, with 95 % confidence for the
first two together.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 1,200 observations.

 statistic   value  under calibration (5 % to 95 %)  p-value
 KS()       0.0204      0.02544 (0.01253 to 0.0455)   0.6246

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Null distribution: limit for large samples, predictions fixed (not exact in
    small samples): Brownian limit, standardised statistic 1.00504, log10 p
    -0.2044; not reliable where few predictions are distinct or few lie far from
    0 and 1.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]
  Valid if many observations have predictions far from 0 and 1. [C103:
    docs/notes.md]"""
    assert printed(result) == expected


# The p-value.

PRINTED = ["dirichlet_3", "impossible_4", "certain_3", "constant_3"]
"""Problems whose results are printed for every statistic; one observation has a test for itself."""


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", STATISTICS, ids=lambda kind: kind.__name__)
def test_every_statistic_on_every_problem(kind, every):
    """The value is the estimate on the same data; the p-value its rank, and the smallest if a label was excluded.

    By default each statistic is tested on two of the problems in turn, and each of its options on one.
    """
    n_resamples = 59
    place = list(STATISTICS).index(kind)
    for number, statistic in enumerate(STATISTICS[kind]()):
        lens = lens_for(statistic)
        if every:
            problems = PROBLEMS if statistic == kind() else PROBLEMS[number % 6 :: 6]
        else:
            problems = PROBLEMS[(place + number) % 5 :: 5][: 2 if statistic == kind() else 1]
        for problem in problems:
            case = f"{statistic} on {problem.name}"
            result = run(problem.y_true, problem.y_prob, statistic, lens=lens, n_resamples=n_resamples)
            expected = caltest.calibration_error(problem.y_true, problem.y_prob, lens=lens, statistic=statistic)
            assert result.statistic == result.components[0].statistic == expected, case
            assert result.components[0].pvalue == result.pvalue, case
            rank = naive.pvalue(result.statistic, result.null_distribution)
            assert result.pvalue == (1 / (n_resamples + 1) if result.impossible_samples.size else rank), case
            if statistic == kind():
                assert_json(result, problem.name)
                if problem.name in PRINTED:
                    str(result)


def assert_json(result, case):
    """No NaN, no infinity, nothing that JSON does not hold; not even for impossible labels."""
    content = result.to_dict()
    back = json.loads(json.dumps(content, allow_nan=False))
    assert back == content, case
    keys = {"lens", "lens_name", "statistic", "noise_floor", "noise_interval", "n_resamples", "components"}
    assert keys <= set(back), case
    assert (back["pvalue"], back["conclusion"]) == (result.pvalue, result.conclusion), case
    assert back["impossible_samples"] == result.impossible_samples.tolist(), case


def test_combined_pvalue_equals_the_loops():
    combinations = [(caltest.ECE(), caltest.MCE()), (caltest.TemperatureScore(), caltest.ECE())]
    statistics = [caltest.Omnibus(), *map(caltest.Omnibus, combinations)]
    for problem, statistic in itertools.product(PROBLEMS, statistics):
        case = f"{statistic} on {problem.name}"
        result = run(problem.y_true, problem.y_prob, statistic, n_resamples=60)
        observed = [np.inf if result.impossible_samples.size else part.statistic for part in result.components]
        values = [[first, *part.null_distribution] for first, part in zip(observed, result.components, strict=True)]
        pvalues = [naive.tail_pvalues(row) for row in values]
        assert [part.pvalue for part in result.components] == [row[0] for row in pvalues], case
        assert result.pvalue == naive.combine_pvalues(pvalues)[0], case
        smallest = [-np.log10(min(column)) for column in zip(*pvalues, strict=True)]
        found = [result.statistic, *result.null_distribution]
        np.testing.assert_allclose(found, smallest, rtol=1e-12, atol=1e-12, err_msg=case)


def test_components_are_the_tests_of_their_own():
    """The draws are the same, so that each component is what its own test finds."""
    y_true, y_prob = calibrated(150, 4)
    together = run(y_true, y_prob, rng=5)
    for part, statistic in zip(together.components, caltest.Omnibus().components, strict=True):
        alone = run(y_true, y_prob, statistic, rng=5)
        assert (part.pvalue, part.statistic) == (alone.pvalue, alone.statistic), str(statistic)
        np.testing.assert_allclose(part.null_distribution, alone.null_distribution, rtol=1e-12, err_msg=str(statistic))


def test_a_score_of_zero_is_reached_by_every_draw():
    """Three of four events at 0.75: U is 0 but for rounding, which must not decide among values that are all 0."""
    for n in (4, 20, 100):
        y_true = np.tile([1, 1, 0, 1], n // 4)
        for seed in range(5):
            labels = np.random.default_rng(seed).permutation(y_true)
            assert run(labels, np.full(n, 0.75), caltest.TemperatureScore()).pvalue == 1, (n, seed)


def test_order_of_observations_and_number_of_threads_do_not_matter():
    y_true, y_prob = calibrated(80, 4, seed=3)
    order = np.random.default_rng(0).permutation(80)
    for statistic in default_statistics():
        lens = lens_for(statistic)
        one = run(y_true, y_prob, statistic, lens=lens, n_resamples=99)
        other = run(y_true[order], y_prob[order], statistic, lens=lens, n_resamples=9)
        for mine, others in zip(one.components, other.components, strict=True):
            assert mine.statistic == pytest.approx(others.statistic, rel=1e-12), str(statistic)
        threads = run(y_true, y_prob, statistic, lens=lens, workers=2, n_resamples=99)
        assert tuple(threads) == tuple(one), str(statistic)
        np.testing.assert_array_equal(threads.null_distribution, one.null_distribution, err_msg=str(statistic))


def test_progress_is_reported():
    calls = []
    run(*calibrated(50, 3), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (199, 199)
    with pytest.raises(TypeError, match="`progress` must be True, False or a function"):
        run(*calibrated(50, 3), progress="bar")


# How the null distribution is found.


def test_auto_simulates_where_nothing_is_known():
    y_true, y_prob = calibrated(50, 3)
    auto = run(y_true, y_prob, method="auto")
    assert (auto.method, auto.pvalue) == ("monte-carlo", run(y_true, y_prob).pvalue)


def test_exact_is_refused_where_no_distribution_is_known():
    y_true, y_prob = calibrated(50, 3)
    for statistic in default_statistics():
        with pytest.raises(ValueError, match=r'method="exact" needs') as refusal:
            run(y_true, y_prob, statistic, lens=lens_for(statistic), method="exact")
        assert str(statistic).partition("(")[0] in str(refusal.value)


# Statistic and p-value by the classical tests, before `calibration_test` had limits: n = 200, seed 5, for two classes
# and for three, whose confidence is tested where one probability is needed.
LIMITS = {
    caltest.statistics.Spiegelhalter(): (
        (1.164003479545428, 0.24442260167259333),
        (0.2692729178295721, 0.7877196711884014),
    ),
    caltest.HosmerLemeshow(): ((3.9581138128257307, 0.9492167564368345), (21.863628510267677, 0.3479561632410613)),
    caltest.HosmerLemeshow(covariance="mean"): (
        (3.9224990999039564, 0.9507754535513063),
        (19.595734460743852, 0.4834599806806654),
    ),
    caltest.statistics.CoxScore(): (
        (1.6367680418323718, 0.44114395822647867),
        (0.07879280899898615, 0.9613695423909702),
    ),
    caltest.statistics.CoxScore("intercept"): (
        (0.2856044871388979, 0.5930511461023903),
        (0.07752255208840275, 0.7806832754514638),
    ),
    caltest.statistics.CoxScore("slope"): (
        (1.351163554693474, 0.24507480558793543),
        (0.0012702569105833956, 0.9715688839433456),
    ),
    caltest.statistics.Bridge(): ((3.009594869630175, 0.5562210076752849), (1.7619197390190484, 0.7794414901266191)),
    caltest.KS(): ((0.03203467114392762, 0.3739490715625783), (0.02962757359145023, 0.6369521038820202)),
    caltest.statistics.Kuiper(): (
        (0.035541673083990775, 0.5458089113861065),
        (0.044340467339089855, 0.5273797900989856),
    ),
}


def test_limits_equal_the_classical_tests():
    for statistic, expected in LIMITS.items():
        for n_classes, values in zip((2, 3), expected, strict=True):
            result = caltest.calibration_test(
                *calibrated(200, n_classes, seed=5), statistic=statistic, method="asymptotic"
            )
            assert tuple(result) == pytest.approx(values, rel=1e-9), (str(statistic), n_classes)
            assert (result.method, result.n_resamples) == ("asymptotic", 0), (str(statistic), n_classes)
            assert np.isnan(result.numerical_error), (str(statistic), n_classes)
            assert codes(result.conditions) == ["C101", "C103"], (str(statistic), n_classes)
            assert "not exact in small samples" in result.origin, (str(statistic), n_classes)


def test_every_statistic_has_a_limit_or_is_refused():
    y_true, y_prob = calibrated(50, 2)
    sample, known, rows = make_sample(y_true, y_prob), set(), caltest.Consistency(resample_predictions=True)
    for statistic in default_statistics():
        if statistic.asymptotic_distribution(sample) is None:
            with pytest.raises(ValueError, match='method="asymptotic" needs'):
                run(y_true, y_prob, statistic, method="asymptotic")
            continue
        known.add(type(statistic))
        assert 0 < run(y_true, y_prob, statistic, method="asymptotic").pvalue <= 1, str(statistic)
        with pytest.raises(ValueError, match=r"predictions fixed( .*)?; got"):
            run(y_true, y_prob, statistic, method="asymptotic", resampling=rows)
    assert known >= {type(statistic) for statistic in LIMITS}


def test_an_impossible_label_makes_a_limit_the_smallest_pvalue():
    for statistic in LIMITS:
        result = run([0, 1, 1, 0, 1], [0.25, 0.5, 0.75, 0.5, 0.0], statistic, method="asymptotic")
        assert result.pvalue == np.finfo(float).tiny, str(statistic)
        assert "C201" in codes(result.notes), str(statistic)


# Impossible labels.


def with_impossible(place, n=40):
    """Three classes, calibrated but for observation 23, whose label was excluded."""
    y_true, y_prob = calibrated(n, 3, seed=1, concentration=2.0)
    y_prob[23] = np.insert([0.75, 0.25], place, 0.0)
    y_true[23] = place
    return y_true, y_prob


@pytest.mark.parametrize("place", mostly_slow([1, 0, 2]))
def test_an_impossible_label_gives_the_smallest_pvalue(place):
    for statistic in default_statistics():
        case = f"{statistic}, class {place}"
        # Statistics of one probability look at the class itself.
        lens = caltest.ClassWise(place) if isinstance(statistic, TWO_OUTCOMES) else None
        result = run(*with_impossible(place), statistic, lens=lens, n_resamples=59)
        assert result.pvalue == 1 / 60, case
        assert all(part.pvalue == 1 / 60 for part in result.components), case
        assert result.impossible_samples.tolist() == [23], case
        if place == 1:
            assert "Impossible: 1 observation " in words(result), case
            assert "observation 23" in result._repr_html_(), case
            assert_json(result, case)


def test_a_contradicted_certainty_behind_a_lens():
    y_true, y_prob = calibrated(40, 3, seed=1, concentration=2.0)
    y_prob[[7, 31]] = [0.0, 1.0, 0.0]
    y_true[[7, 31]] = [2, 1]
    for statistic in default_statistics():
        result = run(y_true, y_prob, statistic, lens=caltest.Confidence(), n_resamples=59)
        assert (result.pvalue, result.impossible_samples.tolist()) == (1 / 60, [7]), str(statistic)


def test_observations_keep_the_callers_numbers_inside_a_region():
    y_true, y_prob = with_impossible(0)
    for statistic in default_statistics():
        # The probability of class 0, which is 0 in observation 23.
        lens, column = (caltest.ClassWise(0), 1) if isinstance(statistic, TWO_OUTCOMES) else (None, 0)
        options = {"lens": lens, "n_resamples": 59}
        result = run(y_true, y_prob, statistic, region=lambda prob, k=column: prob[:, k] < 0.4, **options)
        assert result.n_samples == (y_prob[:, 0] < 0.4).sum() < 40, str(statistic)
        assert (result.pvalue, result.impossible_samples.tolist()) == (1 / 60, [23]), str(statistic)
        outside = run(y_true, y_prob, statistic, region=lambda prob, k=column: prob[:, k] > 0.1, **options)
        assert outside.impossible_samples.tolist() == [], str(statistic)


def test_impossible_through_one_lens_only():
    y_true, y_prob = with_impossible(2)
    assert run(y_true, y_prob, lens=caltest.ClassWise(2)).impossible_samples.tolist() == [23]
    assert run(y_true, y_prob, lens=caltest.Confidence()).impossible_samples.size == 0
    assert run(y_true, y_prob, lens=caltest.ClassGroups([[0], [1, 2]])).impossible_samples.size == 0


def test_impossible_with_resampled_observations():
    scheme = caltest.Consistency(resample_predictions=True)
    result = run(*with_impossible(0, n=400), caltest.ECE(caltest.EqualWidth(1)), resampling=scheme)
    assert (result.pvalue, result.impossible_samples.tolist()) == (1 / 200, [23])


@pytest.mark.slow
def test_impossible_where_predictions_sum_to_a_little_more_than_one():
    """A sum of 1 + 1e-7 everywhere, a class that is excluded everywhere, and one label in it."""
    for statistic in default_statistics():
        lenses = [caltest.WithinTop(2), *([] if isinstance(statistic, TWO_OUTCOMES) else [caltest.TopK(2)])]
        n = 4000 if isinstance(statistic, caltest.SKCE) else 30_000  # quadratic time
        y_prob = np.tile([0.6, 0.4000001, 0.0], (n, 1))
        y_true = np.resize([0, 0, 0, 1, 1], n)
        y_true[5] = 2
        for lens in lenses:
            result = run(y_true, y_prob, statistic, lens=lens, n_resamples=19)
            assert result.impossible_samples.tolist() == [5], (str(statistic), str(lens))
            assert result.pvalue == 1 / 20, (str(statistic), str(lens))
            json.dumps([part.to_dict() for part in result.components], allow_nan=False)


# Regions and edges.


def test_region_restricts_the_test():
    y_true, y_prob = calibrated(200, 3)
    inside = y_prob[:, 0] > 0.3
    for statistic in default_statistics():
        lens, column = (caltest.ClassWise(0), 1) if isinstance(statistic, TWO_OUTCOMES) else (None, 0)
        options = {"lens": lens, "n_resamples": 59}
        one = run(y_true, y_prob, statistic, region=lambda prob, k=column: prob[:, k] > 0.3, **options)
        other = run(y_true[inside], y_prob[inside], statistic, **options)
        assert (tuple(one), one.n_samples) == (tuple(other), inside.sum()), str(statistic)
        np.testing.assert_array_equal(one.null_distribution, other.null_distribution, err_msg=str(statistic))


@pytest.mark.parametrize("method", mostly_slow(EVERYWHERE))
def test_certainties_that_come_true(method):
    """Observed and simulated values are all 0: p is 1, and a note says that the statistic is constant."""
    y_true = np.arange(12) % 3
    for statistic in default_statistics():
        result = run(y_true, np.eye(3)[y_true], statistic, lens=lens_for(statistic), method=method, n_resamples=19)
        assert result.pvalue == 1, str(statistic)
        if not isinstance(statistic, caltest.statistics.KDEError):  # smoothing moves certainties from the end
            assert result.components[0].statistic == 0, str(statistic)
        assert codes(result.notes) == ["C202"] * len(result.components), str(statistic)
        assert_json(result, str(statistic))


def test_constant_predictions():
    y_prob = np.tile([0.5, 0.25, 0.25], (400, 1))
    for statistic in default_statistics():
        lens = lens_for(statistic)
        right = run(np.resize([0, 1, 0, 2], 400), y_prob, statistic, lens=lens)
        wrong = run(np.ones(400, dtype=int), y_prob, statistic, lens=lens)
        assert right.pvalue > ALPHA, str(statistic)
        if isinstance(statistic, caltest.statistics.UnderConfidence | caltest.statistics.Stukel):  # no tail at 1/2
            assert wrong.pvalue == 1
        elif isinstance(statistic, caltest.statistics.UCE):  # its centre is not that of a calibrated model, as it says
            assert wrong.statistic < wrong.noise_interval[0]
        else:
            assert wrong.pvalue == 1 / 200, str(statistic)


@pytest.mark.parametrize("method", ["auto", pytest.param("monte-carlo", marks=pytest.mark.slow)])
def test_one_observation(method):
    predictions = ([0.25], [[0.25, 0.75]], [[0.25, 0.5, 0.25]], [[0.0, 1.0]])
    for number, (statistic, y_prob) in enumerate(itertools.product(default_statistics(), predictions)):
        result = run([1], y_prob, statistic, lens=lens_for(statistic), method=method, n_resamples=19)
        assert 1 / 20 <= result.pvalue <= 1, (str(statistic), y_prob)
        assert result.n_samples == 1
        assert_json(result, (str(statistic), y_prob))
        if number % 4 == 3:  # a certainty
            str(result)


def test_the_pvalue_is_never_zero():
    y_prob = np.tile([0.9, 0.05, 0.05], (300, 1))
    for statistic in default_statistics():
        result = run(np.resize([1, 2], 300), y_prob, statistic, lens=lens_for(statistic), n_resamples=9)
        assert result.pvalue == (1 if isinstance(statistic, caltest.statistics.UnderConfidence) else 0.1), str(
            statistic
        )


@pytest.mark.slow
def test_as_many_classes_as_observations():
    """Calibrated: no statistic finds the smallest p-value possible."""
    y_true, y_prob = calibrated(300, 300, concentration=0.05)
    for statistic in default_statistics():
        result = run(y_true, y_prob, statistic, lens=lens_for(statistic))
        assert result.pvalue > 1 / 200, str(statistic)


# Refusals.


def test_bad_arguments_are_refused():
    y_true, y_prob = calibrated(20, 3)
    for options, kind, message in [
        ({"method": "normal"}, ValueError, "`method` must be one of .*, 'asymptotic', got 'normal'"),
        (
            {"statistic": 3},
            TypeError,
            r"`statistic` must be a statistic such as ECE\(\) or Omnibus\(\), or its name, got 3",
        ),
        ({"resampling": "rows"}, TypeError, r"`resampling` must be a Consistency\(...\)"),
        ({"region": lambda prob: prob[:, 0] > 2}, ValueError, "`region` must hold at least one"),
        ({"region": "all"}, (TypeError, ValueError), "`region` must be a function"),
        ({"lens": "top"}, (TypeError, ValueError), "`lens` must be a lens"),
        ({"lens": caltest.TopK(2), "statistic": caltest.KS()}, ValueError, r"`KS` needs a two-outcome lens such as"),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
        ({"alpha": 5}, ValueError, "`alpha` must lie strictly between 0 and 1, got 5"),
        ({"rng": -1}, ValueError, "`rng` must be None, an integer >= 0"),
        ({"workers": 0}, ValueError, "`workers` must be an integer >= 1, or -1"),
    ]:
        with pytest.raises(kind, match=message):
            run(y_true, y_prob, **options)


# Level and power.

LEVEL_LENSES = {
    "canonical, 3 classes": (3, None),
    "canonical, 10 classes": (10, None),
    "confidence": (10, caltest.Confidence()),
    "class-wise": (10, caltest.ClassWise(3)),
    "top-2": (10, caltest.TopK(2)),
}
LEVEL_SIZES = {100: 30, 1000: 25}
"""Observations, and data sets of the default run."""


def level_statistics(n_outcomes):
    """The default test, and all that is not in it, combined so that they share the draws.

    Smooth and kernel errors are slow, and have tests of their level elsewhere.
    """
    combined = caltest.Omnibus()
    others = [
        statistic
        for statistic in default_statistics()
        if statistic.components == (statistic,)
        and statistic not in combined.components
        and (n_outcomes == 2 or not isinstance(statistic, TWO_OUTCOMES))
        and not isinstance(statistic, caltest.statistics.KDEError | caltest.SmoothECE | caltest.SKCE)
    ]
    return combined, caltest.Omnibus(others) if len(others) > 1 else others[0]


def rejections(n, n_classes, lens, n_data_sets):
    """How often each statistic rejects calibrated predictions at ALPHA, of 199 draws for each data set."""
    n_outcomes = n_classes if lens is None else {caltest.TopK(2): 3}.get(lens, 2)
    counts = {}
    for i in range(n_data_sets):
        y_true, y_prob = calibrated(n, n_classes, seed=i)
        for statistic in level_statistics(n_outcomes):
            result = run(y_true, y_prob, statistic, lens=lens, rng=10**6 + i)
            for test in (*result.components, result):
                counts[str(test.test_statistic)] = counts.get(str(test.test_statistic), 0) + (test.pvalue <= ALPHA)
    return counts


@pytest.mark.parametrize("n_data_sets", [None, pytest.param(400, marks=pytest.mark.release)])
@pytest.mark.slow
@pytest.mark.parametrize("n", mostly_nightly([100, 1000]))
@pytest.mark.parametrize("case", mostly_nightly(LEVEL_LENSES))
def test_level(case, n, n_data_sets):
    """At most alpha, within the one-sided exact binomial limit shared by all cases."""
    repeats = n_data_sets or LEVEL_SIZES[n]
    counts = rejections(n, *LEVEL_LENSES[case], repeats)
    n_cases = len(LEVEL_LENSES) * len(LEVEL_SIZES) * (len(default_statistics()) + 1)
    limit = most_rejections(repeats, ALPHA, n_cases)
    assert {"ECE()", "MCE()", "TemperatureScore()", "ClasswiseKS()", "Omnibus()"} <= set(counts)
    assert {name: count for name, count in counts.items() if count > limit} == {}


@pytest.mark.parametrize(
    ("concentration", "n_data_sets"),
    [
        pytest.param(0.5, 20, marks=pytest.mark.slow),
        pytest.param(0.5, 1000, marks=pytest.mark.nightly),
        pytest.param(1.0, 1000, marks=pytest.mark.release),
    ],
)
def test_power_against_under_confidence(concentration, n_data_sets):
    """Temperature 1.2, 10 classes, n = 2,000: the default test has a power above 0.9, the tree error alone little.

    Fewer detections than asserted happen to a power of 0.9 with probability FALSE_ALARM at most.
    """
    detected = np.zeros(2, dtype=int)
    for i in range(n_data_sets):
        y_true, true_prob = calibrated(2000, 10, seed=i, concentration=concentration)
        result = run(y_true, blunted(true_prob, 1.2), rng=10**6 + i)
        detected += [result.pvalue <= ALPHA, result.components[0].pvalue <= ALPHA]
    assert result.components[0].test_statistic == caltest.ECE()
    assert detected[0] >= binom.ppf(FALSE_ALARM, n_data_sets, 0.9)
    assert detected[1] <= n_data_sets / 2


# Data that cannot decide.


def wrong_for_everybody(n_groups, n=240):
    """A model that predicts .9 for everybody, where the event happens to 24 %."""
    rng = np.random.default_rng(0)
    return (rng.random(n) < 0.24).astype(int), np.full(n, 0.9), np.arange(n) % n_groups


@pytest.mark.parametrize(
    ("statistic", "n_groups", "smallest"),
    mostly_slow(
        [
            (caltest.KS(), 3, 0.25),
            (None, 2, 0.5),
            (None, 5, 0.0625),
            (caltest.ECE(), 3, 0.25),
            (caltest.statistics.Spiegelhalter(), 5, 0.0625),
        ]
    ),
)
def test_too_few_groups_for_any_small_pvalue_cannot_decide(statistic, n_groups, smallest):
    """Signs of G groups and their opposites give the same value: no p-value is below 2 ** (1 - G)."""
    y_true, y_prob, group = wrong_for_everybody(n_groups)
    found = caltest.calibration_test(y_true, y_prob, groups=group, statistic=statistic, rng=0)
    assert (found.pvalue, found.smallest_possible_pvalue) == (smallest, smallest)
    assert (found.decision, found.rejected, found.method, found.n_resamples) == ("undecidable", False, "all-signs", 0)
    assert found.conclusion.startswith(f"These data cannot decide: with {n_groups} groups no p-value below {smallest}")
    assert "not rejected" not in str(found)
    assert found.to_dict()["decision"] == "undecidable"


def test_enough_groups_decide():
    y_true, y_prob, group = wrong_for_everybody(6)
    found = caltest.calibration_test(y_true, y_prob, groups=group, rng=0)
    assert (found.pvalue, found.decision) == (2**-5, "rejected")
    assert "the smallest p-value possible with 6 groups" in found.conclusion
    assert caltest.calibration_test(y_true, y_prob, groups=group, rng=0, alpha=0.01).decision == "undecidable"


def test_one_sided_statistics_have_smaller_pvalues():
    y_true, y_prob, group = wrong_for_everybody(5)
    found = caltest.calibration_test(y_true, y_prob, groups=group, statistic=caltest.statistics.OverConfidence(), rng=0)
    assert (found.pvalue, found.smallest_possible_pvalue, found.decision) == (2**-5, 2**-5, "rejected")


def test_groups_without_a_residual_do_not_count():
    """The model is certain and right about three of six groups, whose signs make no difference."""
    y_true, y_prob, group = wrong_for_everybody(6)
    certain = group < 3
    found = caltest.calibration_test(
        np.where(certain, 1, y_true), np.where(certain, 1.0, y_prob), groups=group, statistic=caltest.KS(), rng=0
    )
    assert (found.smallest_possible_pvalue, found.decision) == (0.25, "undecidable")


def test_an_impossible_label_rejects_with_few_groups():
    y_true, y_prob, group = wrong_for_everybody(3)
    y_prob = np.where(np.arange(len(y_prob)) == np.flatnonzero(y_true)[0], 0.0, y_prob)
    for statistic in (None, caltest.KS(), caltest.ECE()):
        found = caltest.calibration_test(y_true, y_prob, groups=group, statistic=statistic, n_resamples=99, rng=0)
        assert found.decision == "rejected", statistic
        assert found.pvalue <= 0.01, statistic
    table = caltest.calibration_table(y_true, y_prob, groups=group, n_resamples=99, rng=0)
    assert (table.decision, table.pvalue) == ("rejected", 0.01)


def test_too_few_draws_cannot_decide():
    y_true, y_prob, _ = wrong_for_everybody(3)
    found = caltest.calibration_test(y_true, y_prob, statistic=caltest.KS(), n_resamples=9, rng=0)
    assert (found.pvalue, found.decision) == (0.1, "undecidable")
    assert found.conclusion.startswith("This test cannot decide: with 9 draws no p-value below 0.1 is possible")


def test_enough_draws_and_groups_have_the_usual_smallest_pvalue():
    y_true, y_prob, group = wrong_for_everybody(40)
    for groups in (None, group):
        found = caltest.calibration_test(
            y_true, y_prob, groups=groups, n_resamples=99, method="monte-carlo" if groups is None else "auto", rng=0
        )
        assert found.smallest_possible_pvalue == pytest.approx(0.01)
        assert found.decision == "rejected"
