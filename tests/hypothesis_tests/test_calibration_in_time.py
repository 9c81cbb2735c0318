"""Tests of forecasts whose labels are known only after a lead: what they agree with, refuse, say, and their level."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from scipy.special import ndtr

import caltest
from caltest import ECE, KS, EqualWidth
from caltest.hypothesis_tests import by_fold
from caltest.results._decision import rejects
from tests.reference.cases import check_refused, failures, mostly_nightly

DRAWS = {"n_resamples": 199, "rng": 0}


def exceedances(rng, n, lead, phi=0.8, limit=0.5):
    """Calibrated forecasts of whether an autoregression will exceed a limit: probabilities and labels."""
    noise = rng.standard_normal(n + lead) * np.sqrt(1 - phi**2)
    noise[0] = rng.standard_normal()
    x = lfilter([1.0], [1.0, -phi], noise)
    ahead = phi**lead
    return ndtr((ahead * x[:n] - limit) / np.sqrt(1 - ahead**2)), x[lead:] > limit


PROB, LABEL = exceedances(np.random.default_rng(2), 240, 7)
TIME = np.arange(240)


def pvalue(label=LABEL, prob=PROB, **options):
    return caltest.calibration_test(label, prob, **{**DRAWS, "time": TIME, "lead": 7, **options}).pvalue


def test_one_prediction_a_time_that_is_known_before_the_next_is_independent():
    plain = caltest.calibration_test(LABEL, PROB, **DRAWS)
    for given in ({"time": TIME}, {"time": TIME, "lead": 1}, {"time": TIME[::-1] * 7, "lead": 7}):
        timed = caltest.calibration_test(LABEL, PROB, **DRAWS, **given)
        assert timed.origin == plain.origin
        assert [part.pvalue for part in timed.components] == [part.pvalue for part in plain.components]
        np.testing.assert_array_equal(timed.components[0].null_distribution, plain.components[0].null_distribution)


@pytest.mark.slow(few_draws=True)
def test_what_the_p_value_does_not_depend_on():
    known = pvalue()
    assert known != pvalue(time=None, lead=None)
    order = np.random.default_rng(0).permutation(240)
    days = pd.date_range("2026-01-01", periods=240)
    assert pvalue(LABEL[order], PROB[order], time=TIME[order]) == known
    assert pvalue(time=TIME + 1000) == pvalue(time=TIME * 10, lead=70) == known
    assert pvalue(time=days) == pvalue(time=days, lead="7D") == pvalue(time=days.strftime("%Y-%m-%d").tolist()) == known
    assert pvalue(sample_weight=np.full(240, 2.0)) == known
    assert pvalue(workers=2) == known
    series = pd.Series(PROB, index=days)
    assert caltest.calibration_test(LABEL, series, lead=7, **DRAWS).pvalue == known
    weight = np.where(TIME < 200, 1.0, 0.0)
    assert pvalue(sample_weight=weight) == pvalue(LABEL[:200], PROB[:200], time=TIME[:200])


@pytest.mark.slow(few_draws=True)
def test_every_function_takes_times():
    given = {"time": TIME, "lead": 7, **DRAWS}
    three = np.column_stack([PROB / 2, PROB / 2, 1 - PROB])
    label = np.where(LABEL, TIME % 2, 2)
    tables = (
        caltest.calibration_table(LABEL, PROB, **given),
        caltest.calibration_table(label, three, **given),
        caltest.calibration_report(label, three, **given),
        caltest.subgroup_tests(LABEL, PROB, subgroup=TIME // 120, **given),
        by_fold(caltest.calibration_test, LABEL, PROB, TIME // 120, **given),
        caltest.calibration_report(LABEL, PROB, folds=TIME // 120, **{**given, "n_resamples": 399}),
    )
    for table in tables:
        assert 0 < table.pvalue <= 1
        assert "share shocks of time" in str(table.folds[0] if table.folds else table.tests[0])
        assert table.to_dict()
    assert "errors of predictions that are the lead or more apart are independent" in tables[4].conditions[0].text


def test_what_is_said():
    result = caltest.calibration_test(LABEL, PROB, time=TIME, lead=5, **DRAWS)
    assert "(inflation " in result.origin
    assert "lead 5, 48 independent windows of time" in result.origin
    assert result.method == "timed-labels"
    assert "predictions that are 5 or more apart have independent errors" in result.conditions[0].text
    found = result.verdict.detectable
    assert found.inflation > 1.5
    assert f"depend on each other in time as these do (inflation {found.inflation:.3g})" in found.conclusion
    assert "collect predictions over about" in found.advice
    plain = caltest.calibration_test(LABEL, PROB, **DRAWS)
    known = caltest.l2_interval(LABEL, PROB, time=TIME, lead=5)
    assert result.l2_error.root_interval == known.root_interval != plain.l2_error.root_interval
    plain = plain.verdict.numbers
    for wide, narrow in zip(result.verdict.numbers, plain, strict=False):
        assert wide.estimate == pytest.approx(narrow.estimate, rel=0.1)
        assert wide.interval.low < narrow.interval.low
        assert wide.interval.high > narrow.interval.high


@pytest.mark.slow(few_draws=True)
def test_little_time_is_said_and_batches_of_few_weeks_decide_nothing():
    short = caltest.calibration_test(LABEL[:70], PROB[:70], time=TIME[:70], lead=7, **DRAWS)
    (caution,) = (note for note in short.notes if note.code == "C305")
    assert "the predictions are worth only 10 stretches of time as long as the lead" in caution.text
    assert "share more of their shocks" in caution.text
    weeks = caltest.calibration_test(LABEL, PROB, time=TIME // 60, **DRAWS)
    assert (weeks.pvalue, weeks.decision) == (1.0, "undecidable")
    assert "within a time that is only 4 times as long as the lead, and 5 are needed" in weeks.conclusion
    for number, lead, text in ((149, 30, "is only 4.9 times as long as the lead"), (60, 60, "no longer than one lead")):
        data = LABEL[:number], PROB[:number]
        assert (
            f"{text}, and 5 are needed"
            in caltest.calibration_test(*data, time=TIME[:number], lead=lead, **DRAWS).conclusion
        )
    tables = (
        caltest.calibration_report(LABEL, PROB, time=TIME // 60, **DRAWS),
        caltest.subgroup_tests(LABEL, PROB, subgroup=TIME % 2, time=TIME // 60, **DRAWS),
    )
    for table in tables:
        assert (table.pvalue, table.decision) == (1.0, "undecidable")
        assert "within a time that is only 4 times as long as the lead, and 5 are needed" in table.conclusion
    assert weeks.verdict.advice[0].startswith("Collect predictions over a longer time.")


def test_a_repeated_time_makes_no_batches():
    """One further prediction of the last time switched the caution off: 11 % of calibrated models were rejected."""
    label, prob, time = (np.append(values[:70], one) for values, one in ((LABEL, True), (PROB, 0.5), (TIME, 69)))
    twice = {"time": np.tile(TIME[:70], 2), "lead": 7, **DRAWS}
    for found in (
        caltest.calibration_test(label, prob, time=time, lead=7, **DRAWS),
        caltest.calibration_test(np.tile(LABEL[:70], 2), np.tile(PROB[:70], 2), **twice),
    ):
        assert "share more of their shocks" in next(note.text for note in found.notes if note.code == "C305")


def test_stretches_of_time_count_by_their_information():
    """Weights that halve within 30 days leave few stretches of 600 days: 10 % of calibrated models were rejected."""
    prob, label = exceedances(np.random.default_rng(3), 600, 10)
    given = {"time": np.arange(600), "lead": 10, **DRAWS}
    assert "C305" not in [note.code for note in caltest.calibration_test(label, prob, **given).notes]
    heavy = caltest.calibration_test(label, prob, sample_weight=2.0 ** (np.arange(-600, 0) / 30), **given)
    assert "C305" in [note.code for note in heavy.notes]
    assert heavy.method == "shared-shocks"


def test_data_that_decide_nothing_have_no_small_p_value():
    weeks = caltest.calibration_test(~LABEL, PROB, time=TIME // 60, **DRAWS)
    assert [part.pvalue for part in weeks.components] == [1.0] * len(weeks.components)
    impossible = caltest.calibration_test(LABEL, np.where(LABEL.argmax() == TIME, 0.0, PROB), time=TIME // 60, **DRAWS)
    assert (impossible.pvalue, impossible.decision) == (1 / 200, "rejected")


REFUSED = {
    "rows": ({"resampling": caltest.Consistency(resample_predictions=True)}, "`time` needs fixed predictions"),
    "exact": (
        {"method": "exact", "statistic": ECE(EqualWidth(5))},
        'method="exact" is for independent observations; with',
    ),
    "statistic": ({"statistic": caltest.statistics.IsotonicError()}, "`time` needs a statistic of the residuals"),
    "lead": ({"lead": 500}, "`lead` (500) must not be longer than the time"),
}


def test_what_is_refused():
    def check(case):
        options, message = case
        given = {"time": TIME, "lead": 7, **options}
        check_refused(caltest.calibration_test, ValueError, message, LABEL, PROB, **given)

    assert failures(REFUSED, check) == {}
    message = "calibration_error() takes no `lead`; calibration_test, calibration_table"
    check_refused(caltest.calibration_error, TypeError, message, LABEL, PROB, lead=7)


@pytest.mark.slow
@pytest.mark.parametrize("n", mostly_nightly([100, 365]))
def test_the_level_of_a_forecast_for_a_week(n):
    """P(p <= 0.05) is 0.05 at most with 199 draws; without the lead the test rejects far more often."""
    rng, sets = np.random.default_rng(n), 100
    given = {"time": np.arange(n), "lead": 7}
    rejected = np.zeros((sets, 2))
    for number in range(sets):
        prob, label = exceedances(rng, n, 7)
        for column, times in enumerate([given, {}]):
            found = caltest.calibration_test(label, prob, statistic=KS(), n_resamples=199, rng=rng, **times)
            rejected[number, column] = rejects(found.pvalue, 0.05)
    timed, plain = rejected.mean(axis=0)
    assert timed <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)
    assert plain > 0.2
