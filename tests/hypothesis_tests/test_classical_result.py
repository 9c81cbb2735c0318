"""What the classical tests have in common: results, edges, refusals, and their level."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import special

import caltest
from caltest.hypothesis_tests import ClassicalTestResult
from caltest.predictions._sample import make_sample
from tests.hypothesis_tests.problems import calibrated, codes, most_rejections, words
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.results.printed import printed

LIMIT = {"method": "asymptotic"}
TESTS = {
    caltest.spiegelhalter_test: ({}, LIMIT),
    caltest.hosmer_lemeshow_test: ({}, {"method": "monte-carlo"}, LIMIT),
    caltest.cox_test: ({}, LIMIT, {"kind": "likelihood-ratio", **LIMIT}),
    caltest.bridge_test: ({}, LIMIT),
    caltest.hypothesis_tests.tcal_test: ({},),
}
"""Every test with the ways in which its null distribution is found."""
STATISTICS = {
    caltest.spiegelhalter_test: caltest.statistics.Spiegelhalter(),
    caltest.hosmer_lemeshow_test: caltest.HosmerLemeshow(),
    caltest.cox_test: caltest.statistics.CoxScore(),
    caltest.bridge_test: caltest.statistics.Bridge(),
    caltest.hypothesis_tests.tcal_test: caltest.statistics.TCal(),
}
TITLES = {
    caltest.spiegelhalter_test: "Spiegelhalter test",
    caltest.hosmer_lemeshow_test: "Hosmer-Lemeshow test",
    caltest.cox_test: "Cox test",
    caltest.bridge_test: "Bridge test",
    caltest.hypothesis_tests.tcal_test: "Adaptive T-Cal test",
}
WHOLE = {caltest.spiegelhalter_test, caltest.hosmer_lemeshow_test}
"""They test the whole prediction of more than two classes."""

EVERY = pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)


def run(test, y_true, y_prob, **options):
    return test(y_true, y_prob, **{"n_resamples": 199, "rng": 0, **options})


# The result.


@pytest.mark.slow(few_draws=True)
@EVERY
def test_result(test):
    y_true, y_prob = calibrated(200, 3)
    for options in TESTS[test]:
        case = str(options)
        result = run(test, y_true, y_prob, lens=caltest.Confidence(), **options)
        assert type(result) is ClassicalTestResult, case
        statistic, pvalue = result
        assert (statistic, pvalue) == (result.statistic, result.pvalue), case
        with pytest.raises(FrozenInstanceError):
            result.pvalue = 0
        heading = f"{TITLES[test]} (confidence, 200 observations, 2 outcomes)"
        assert printed(result).splitlines()[0] == heading, case
        for part in (f"p = {pvalue:.4g}", result.verdict.conclusion, result.origin, "P(Y = . | g(X)) = g(X), behind"):
            assert part in words(result), case
        assert set(result._verdict().sentences()) <= set(result.verdict.sentences()), case
        limit = options.get("method") == "asymptotic"
        assert ("not exact in small samples" in result.origin) == limit, case
        assert ("valid at every sample size" in result.origin) == (not limit), case
        assert codes(result.conditions) == (["C101", "C103"] if limit else ["C101"]), case
        back = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert back == result.to_dict(), case
        assert back["pvalue"] == pvalue, case
        html = result._repr_html_()
        assert TITLES[test] in html, case
        assert "<table>" in html, case
        for name, value in result.derived.items():
            np.testing.assert_equal(getattr(result, name), value, err_msg=f"{case}, {name}")
            assert name in dir(result), (case, name)


def test_texts_and_columns_are_not_in_the_dictionary():
    """They show numbers that are there already."""
    y_true, y_prob = calibrated(60, 2)
    for test in TESTS:
        found = set(run(test, y_true, y_prob).to_dict())
        assert found.isdisjoint({"sentences", "table", "further_tables", "remarks", "columns"}), test.__name__


def test_frames_have_a_row_for_each_group_or_scale():
    y_true, y_prob = calibrated(60, 2)
    rows = {test: len(run(test, y_true, y_prob).to_frame()) for test in TESTS}
    several = {caltest.hosmer_lemeshow_test: 10, caltest.hypothesis_tests.tcal_test: 5}
    assert rows == {test: several.get(test, 1) for test in TESTS}


@EVERY
def test_default_lens(test):
    """The event of two classes; of more the confidence where one probability is needed, else the whole prediction."""
    y_true, y_prob = calibrated(60, 4)
    result = run(test, y_true, y_prob)
    assert result.lens == (caltest.Canonical() if test in WHOLE else caltest.Confidence())
    assert result.n_outcomes == (4 if test in WHOLE else 2)
    event = run(test, y_true == 0, y_prob[:, 0])
    assert event.lens == caltest.Canonical()
    assert tuple(event) == tuple(run(test, y_true, y_prob, lens=caltest.ClassWise(0)))
    names = ["low", "middle", "high", "top"]
    labels = [names[k] for k in y_true]
    named = run(test, labels, y_prob, classes=names, lens=caltest.ClassWise(0))
    assert "low" in named.lens_name
    assert named.lens_name in str(named)
    assert tuple(named) == tuple(event)


@EVERY
def test_equals_calibration_test(test):
    y_true, y_prob = calibrated(150, 2)
    options = {"n_resamples": 99, "rng": 3, "method": "monte-carlo"}
    other = caltest.calibration_test(y_true, y_prob, statistic=STATISTICS[test], **options)
    if test is caltest.hypothesis_tests.tcal_test:
        del options["method"]
    mine = test(y_true, y_prob, **options)
    assert mine.pvalue == other.pvalue
    assert abs(mine.statistic) == pytest.approx(other.statistic, rel=1e-12)
    assert mine.test_statistic == other.test_statistic
    np.testing.assert_array_equal(mine.null_distribution, other.null_distribution)


@pytest.mark.slow(few_draws=True)
def test_limits_are_near_for_many_observations():
    """Between 0.01 and 0.99 all methods find nearly the same p-value."""
    y_true, y_prob = calibrated(5000, 2, seed=3, concentration=2.0)
    for test, methods in TESTS.items():
        found = [run(test, y_true, y_prob, **{"n_resamples": 2000, **options}).pvalue for options in methods]
        assert max(found) - min(found) < 0.06, test.__name__


@pytest.mark.slow(few_draws=True)
def test_directions():
    rng = np.random.default_rng(0)
    logit = rng.normal(size=2000) * 2
    y_true = rng.random(2000) < special.expit(logit)
    for temperature, word in [(0.5, "too extreme"), (2.0, "not extreme enough")]:
        for test in (caltest.spiegelhalter_test, caltest.cox_test):
            result = run(test, y_true, special.expit(logit / temperature))
            assert result.direction == word, test.__name__
            assert result.conclusion.startswith(f"Predicted risks are {word}: differences between low and high risks")


# Options.


@pytest.mark.slow(few_draws=True)
@EVERY
def test_workers_and_order_of_the_observations_do_not_matter(test):
    y_true, y_prob = calibrated(150, 2)
    order = np.random.default_rng(1).permutation(150)
    for options in TESTS[test]:
        one = run(test, y_true, y_prob, **options)
        assert tuple(run(test, y_true, y_prob, workers=2, **options)) == tuple(one), str(options)
        other = run(test, y_true[order], y_prob[order], **options)
        assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9), str(options)
        assert other.pvalue == pytest.approx(one.pvalue, rel=1e-9), str(options)


@EVERY
def test_region_restricts_the_test(test):
    y_true, y_prob = calibrated(150, 2)
    inside = y_prob[:, 1] > 0.3
    for options in TESTS[test]:
        one = run(test, y_true, y_prob, region=lambda prob: prob[:, 1] > 0.3, **options)
        other = run(test, y_true[inside], y_prob[inside], **options)
        assert (tuple(one), one.n_samples) == (tuple(other), inside.sum()), str(options)


@EVERY
def test_progress_and_alpha(test):
    problem = calibrated(50, 2)
    options = {} if test is caltest.hypothesis_tests.tcal_test else {"method": "monte-carlo"}
    calls = []
    result = run(test, *problem, alpha=0.999, progress=lambda done, total: calls.append((done, total)), **options)
    assert calls[-1] == (199, 199)
    assert result.alpha == 0.999
    assert run(test, *problem, alpha=0.01, **options).conclusion.startswith("No miscalibration is found: 52.2 % ")
    assert run(test, *problem, alpha=1e-9, **options).conclusion.startswith("This test cannot decide: with 199 draws")


def squared(prob):
    return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])


@pytest.mark.slow(few_draws=True)
def test_known_calibration_function():
    """Labels that follow the squared probabilities fit that hypothesis, and not the identity."""
    rng = np.random.default_rng(5)
    prob = rng.uniform(0.1, 0.9, size=1000)
    y_true = rng.random(1000) < prob**2
    plain = np.column_stack([1 - prob, prob])
    scheme = caltest.Consistency(calibration_function=squared)
    sample = scheme.under_null(make_sample(y_true, prob))
    of_eight = caltest.SquaredL2(caltest.EqualWidth(8), estimator="t-cal")
    for statistic in (*list(STATISTICS.values())[:-1], of_eight):
        value = statistic.evaluate(sample, sample.outcome)
        expected = naive.evaluate(statistic, plain, y_true, expected=squared(plain).tolist())
        assert value == pytest.approx(expected, rel=1e-10), str(statistic)
        options = {"statistic": statistic, "n_resamples": 199, "rng": 0}
        assert caltest.calibration_test(y_true, prob, resampling=scheme, **options).pvalue > 0.01, str(statistic)
        known = caltest.calibration_test(y_true, prob, **options).pvalue
        assert known < 0.02 or statistic == caltest.statistics.Spiegelhalter(), str(statistic)
    for test, statistic in STATISTICS.items():
        if test is caltest.cox_test:  # its estimates are of intercept 0 and slope 1
            continue
        mine = run(test, y_true, prob, resampling=scheme)
        other = caltest.calibration_test(
            y_true, prob, resampling=scheme, statistic=statistic, n_resamples=199, rng=0, method=mine.method
        )
        assert (abs(mine.statistic), mine.pvalue) == tuple(other), test.__name__
        assert "squared(g(X))" in mine.hypothesis, test.__name__


# Edges.


@EVERY
def test_a_constant_predictor(test):
    constant = 0.25 if test is caltest.spiegelhalter_test else 0.5
    for options in TESTS[test]:
        fair = run(test, np.arange(200) % 4 < 4 * constant, np.full(200, constant), **options)
        unfair = run(test, np.arange(200) % 4 < 3, np.full(200, constant), **options)
        assert fair.pvalue > 0.5, str(options)
        assert unfair.pvalue <= 0.005, str(options)


@EVERY
def test_predictions_of_zero_and_one_that_come_true(test):
    y_true = np.arange(20) % 2
    for options in TESTS[test]:
        result = run(test, y_true, y_true.astype(float), **options)
        assert tuple(result) == (0, 1), str(options)
        assert not any(part.startswith("-0") for part in words(result).split()), str(options)
        json.dumps(result.to_dict(), allow_nan=False)


@EVERY
def test_a_contradicted_certainty(test):
    y_true, y_prob = calibrated(100, 2)
    y_prob[[7, 31]] = [[0, 1], [1, 0]]
    y_true[[7, 31]] = [0, 0]
    for options in TESTS[test]:
        result = run(test, y_true, y_prob, **options)
        smallest = 1 / 200 if result.method == "monte-carlo" else np.finfo(float).tiny
        assert result.pvalue == pytest.approx(smallest, rel=1e-9), str(options)
        assert result.impossible_samples.tolist() == [7], str(options)
        assert "C201" in codes(result.notes), str(options)
        said = "Impossible: 1 observation ", "1 label (observation 7) had been given probability 0"
        assert any(text in words(result) for text in said), str(options)
        json.dumps(result.to_dict(), allow_nan=False)


@EVERY
def test_some_predictions_of_zero_and_one(test):
    """They come true and change nothing but groups and counts."""
    y_true, y_prob = calibrated(100, 2)
    more = np.append(y_prob[:, 1], [0.0, 0.0, 1.0])
    for options in TESTS[test]:
        result = run(test, np.append(y_true, [0, 0, 1]), more, **options)
        assert 0 < result.pvalue <= 1, str(options)
        if test not in {caltest.hosmer_lemeshow_test, caltest.hypothesis_tests.tcal_test}:
            plain = run(test, y_true, y_prob, **options)
            assert result.statistic == pytest.approx(plain.statistic, rel=1e-9), str(options)


@EVERY
def test_one_observation(test):
    for y_prob in ([0.25], [[0.25, 0.75]], [[0.25, 0.5, 0.25]], [[0.0, 1.0]]):
        for options in TESTS[test]:
            if "kind" in options and y_prob != [[0.0, 1.0]]:
                with pytest.raises(ValueError, match="so that the likelihood has no maximum"):
                    run(test, [1], y_prob, **options)
                continue
            result = run(test, [1], y_prob, **options)
            assert 0 < result.pvalue <= 1, (y_prob, options)
            str(result)
            json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.slow(few_draws=True)
def test_event_and_its_complement():
    """Multiples of 1/64: the complement is exact, and no boundary falls on a block of ties elsewhere."""
    rng = np.random.default_rng(0)
    prob = rng.permutation(np.arange(1, 61)) / 64
    y_true = rng.integers(2, size=60)
    for test, methods in TESTS.items():
        if test is caltest.hypothesis_tests.tcal_test:  # its cells are closed on one side
            continue
        for options in methods:
            one, other = (run(test, y, p, **options) for y, p in [(y_true, prob), (1 - y_true, 1 - prob)])
            assert other.statistic == pytest.approx(one.statistic, rel=1e-9), (test.__name__, options)
            if one.method != "monte-carlo":
                assert other.pvalue == pytest.approx(one.pvalue, rel=1e-9), (test.__name__, options)


# Refusals.


@EVERY
def test_bad_arguments_are_refused(test):
    y_true, y_prob = calibrated(20, 2)
    cases = [
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
        ({"rng": -1}, ValueError, "`rng` must be None, an integer >= 0"),
        ({"workers": 0}, ValueError, "`workers` must be an integer >= 1, or -1"),
        ({"alpha": 1}, ValueError, "`alpha` must lie strictly between 0 and 1, got 1"),
        ({"region": lambda prob: prob[:, 0] > 2}, ValueError, "`region` must hold at least one"),
        ({"lens": "top"}, TypeError, "`lens` must be a lens"),
        ({"region": "all"}, TypeError, "`region` must be a function"),
        ({"progress": "bar"}, TypeError, "`progress` must be True, False or a function"),
    ]
    if test is not caltest.cox_test:
        cases.append(({"resampling": "rows"}, TypeError, r"`resampling` must be a Consistency\(...\)"))
    if test is not caltest.hypothesis_tests.tcal_test:
        cases.append(({"method": "guess"}, ValueError, "`method` must be one of .*, got 'guess'"))
    for options, kind, message in cases:
        for method in TESTS[test]:
            with pytest.raises(kind, match=message):
                run(test, y_true, y_prob, **{**method, **options})
    with pytest.raises(ValueError, match="`y_prob` must lie in"):
        test(y_true, y_prob * 2)
    with pytest.raises(ValueError, match="`y_true`"):
        test(y_true + 1, y_prob)
    if test not in WHOLE:
        with pytest.raises(ValueError, match=r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes"):
            test(*calibrated(20, 4), lens=caltest.TopK(2))


def test_limits_need_fixed_predictions():
    rows = caltest.Consistency(resample_predictions=True)
    for test in (caltest.spiegelhalter_test, caltest.hosmer_lemeshow_test, caltest.bridge_test):
        with pytest.raises(ValueError, match=r'method="asymptotic" needs .*predictions fixed; got'):
            test(*calibrated(50, 2), resampling=rows, method="asymptotic")


# Level.

LEVELS = (0.01, 0.05, 0.1)
POPULATIONS = {
    "two classes": (2, 1.0),
    "two classes, sharp": (2, 0.05),
    "three classes": (3, 0.5),
    "three classes, sharp": (3, 0.05),
}


def level_pvalues(n_classes, concentration, n_data_sets):
    """P-values by 199 draws of calibrated predictions, n = 200, by name of the statistic."""
    statistics = [
        caltest.statistics.Spiegelhalter(),
        caltest.HosmerLemeshow(),
        caltest.HosmerLemeshow(covariance="mean"),
    ]
    if n_classes == 2:
        statistics += [
            caltest.statistics.CoxScore(),
            caltest.statistics.CoxScore("intercept"),
            caltest.statistics.CoxScore("slope"),
        ]
        statistics += [caltest.statistics.Bridge(), caltest.SquaredL2(caltest.EqualWidth(16), estimator="t-cal")]
    found = {}
    for i in range(n_data_sets):
        y_true, y_prob = calibrated(200, n_classes, seed=i, concentration=concentration)
        options = {"n_resamples": 199, "rng": 10**6 + i}
        combined = caltest.calibration_test(y_true, y_prob, statistic=caltest.Omnibus(statistics), **options)
        tests = {str(part.test_statistic): part for part in combined.components}
        if n_classes == 2:
            tests["T-Cal"] = caltest.hypothesis_tests.tcal_test(y_true, y_prob, **options)
        if n_classes == 2 and (concentration < 0.5 or i % 10 == 0):  # vague predictions cost 0.1 s each
            tests["exact"] = caltest.hosmer_lemeshow_test(y_true, y_prob)
        for name, result in tests.items():
            found.setdefault(name, []).append(result.pvalue)
    return found


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_data_sets", mostly_nightly([60, 400]))
@pytest.mark.parametrize(
    "population",
    [
        "two classes, sharp",
        "three classes",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("two classes", "three classes, sharp")),
    ],
)
def test_level(population, n_data_sets):
    """At most alpha, within the one-sided exact binomial limit shared by all cases."""
    found = level_pvalues(*POPULATIONS[population], n_data_sets)
    assert len(found) == (10 if population.startswith("two") else 3)
    n_cases = len(POPULATIONS) * len(found) * len(LEVELS)
    for name, pvalues in found.items():
        for alpha in LEVELS:
            count = np.sum(np.array(pvalues) <= alpha + 1e-12)
            assert count <= most_rejections(len(pvalues), alpha, n_cases), (name, alpha, count)
