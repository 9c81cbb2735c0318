"""Draws that stop early: the slow sequential twin, the level, and what callers asked for."""

from functools import partial

import numpy as np
import pytest
from scipy.special import ndtri

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.resampling import Consistency
from caltest.resampling.engine import _stopping
from caltest.resampling.engine._evaluation import Question, draw_nulls
from caltest.resampling.engine._run import run, settle
from caltest.resampling.engine._stopping import MANY_PROBABILITIES, USUAL_DRAWS, Stopping, number_of_draws
from tests.hypothesis_tests.problems import calibrated
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.results.printed import printed

STANDARD_ERRORS = 4
LEVELS = np.r_[np.linspace(0.001, 0.999, 400), 0.05, 0.01]


def test_checkpoints():
    """Fixed beforehand: whole blocks that grow by a tenth, from the first at which a stop is possible."""
    assert Stopping(999).checkpoints == (999,)
    found = Stopping(999, 100).checkpoints
    assert found == (128, 192, 256, 320, 384, 448, 512, 576, 640, 704, 832, 960, 999)
    assert Stopping(999, 300).checkpoints[0] == 320
    assert Stopping(128, 100).checkpoints == (128,)
    assert Stopping(99, 100).checkpoints == (99,)
    assert len(Stopping(9999, 100).checkpoints) < 50
    assert Stopping(300, 100).rounds == ((0, 128), (128, 192), (192, 256), (256, 300))


def test_the_number_of_draws_where_none_is_asked_for():
    assert [number_of_draws(None), number_of_draws(None, USUAL_DRAWS), number_of_draws(7, USUAL_DRAWS)] == [
        999,
        9999,
        7,
    ]
    assert number_of_draws(None, USUAL_DRAWS, MANY_PROBABILITIES + 1) == 999
    assert number_of_draws(9999, n_probabilities=MANY_PROBABILITIES + 1) == 9999
    with pytest.raises(ValueError, match="`n_resamples` must be an integer >= 1, got 0"):
        number_of_draws(0)


def test_without_a_stop_the_pvalue_is_the_usual_one():
    rule = Stopping(999, 100)
    for rank in (1 / 1000, 0.05, 0.101, 0.5, 1.0):
        assert rule.pvalue(rank, 999, 960) == rank
        assert Stopping(999).pvalue(rank, 999, 0) == rank
    assert rule.pvalue(100 / 193, 192, 128) is None  # 99 exceedances, and the data
    assert rule.pvalue(101 / 193, 192, 128) == 101 / 193
    assert rule.pvalue(190 / 193, 192, 128) == 100 / 129
    assert rule.pvalue(1.0, 128, 0) == 1


def test_what_draws_that_go_on_can_still_become():
    """No later stop before the last draw has a larger p-value; numbers of exceedances that only grow, at random."""
    rng = np.random.default_rng(0)
    for growth in (1.1, 1.5):
        rule = Stopping(9999, 100, growth)
        for rate in rng.uniform(0.005, 0.3, 50):
            seen, largest = 0, 1.0
            for before, number in rule.rounds[:-1]:
                seen += rng.binomial(number - before, rate)
                pvalue = rule.pvalue((seen + 1) / (number + 1), number, before)
                if pvalue is not None:
                    assert pvalue <= largest
                    break
                largest = rule.largest(number)
    assert Stopping(99).largest(50) == 1


@pytest.mark.slow(few_draws=True)
def test_labels_that_share_all_shocks_stop_early_and_decide_as_all_draws_do():
    """100 of 999 draws that are larger make a p-value of more than 0.1, whatever comes: smaller ones have all draws."""
    rng = np.random.default_rng(6)
    stopped = small = 0
    for seed in range(8):
        prob, shock = rng.beta(2, 2, 100), np.repeat(rng.normal(size=15), 7)[:100]
        label = (shock + rng.normal(size=100)) / np.sqrt(2) + (0.0, 0.8)[seed % 2] < ndtri(prob)
        ask = partial(caltest.calibration_test, label.astype(int), prob, time=np.arange(100), lead=7)
        early, all_ = (
            ask(statistic=caltest.ECE(), n_resamples=999, n_exceedances=some, rng=seed) for some in (None, 1000)
        )
        assert all_.n_resamples == 999
        stopped += early.method == "shared-shocks" and early.n_resamples < 999
        small += all_.pvalue < 0.1
        if all_.pvalue < 0.1:
            assert early.pvalue == all_.pvalue
        else:
            assert early.pvalue >= 0.1
    assert min(stopped, small) > 1


@pytest.mark.slow
def test_level_of_exchangeable_values():
    """10^5 sequences: given the rank of the observed value, exceedances in each round are binomial."""
    rng = np.random.default_rng(20)
    for rule in (Stopping(999, 100), Stopping(700, 10), Stopping(999, 3)):
        beyond = rng.random(100_000)  # the share of draws at least as extreme
        pvalue, extreme = np.full(len(beyond), np.nan), np.zeros(len(beyond), dtype=np.int64)
        for before, number in rule.rounds:
            extreme += rng.binomial(number - before, beyond)
            found = {r: rule.pvalue((r + 1) / (number + 1), number, before) for r in np.unique(extreme)}
            now = np.array([np.nan if found[r] is None else found[r] for r in extreme])
            pvalue = np.where(np.isnan(pvalue), now, pvalue)
        level = (pvalue <= LEVELS[:, None]).mean(axis=1)
        error = np.sqrt(LEVELS * (1 - LEVELS) / len(beyond))
        assert np.all(level <= LEVELS + STANDARD_ERRORS * error), rule
        assert level[-2] > 0.04  # nor is it far below


@pytest.mark.slow
@pytest.mark.parametrize("exceedances", mostly_nightly([2, 5]))
def test_level_of_a_pool_that_changes_ranks(exceedances, monkeypatch):
    """Min-p over ranks within the pool: more draws may make an earlier one less extreme; the twin stops likewise."""
    monkeypatch.setattr(_stopping, "_FIRST", 4)
    monkeypatch.setattr(_stopping, "_BLOCK", 2)
    rule, rng, n = Stopping(16, exceedances), np.random.default_rng(exceedances), 4000
    found = []
    for _ in range(n):
        values = rng.normal(size=(17, 3)) @ [[1, 0, 0], [0.5, 1, 0], [-1, 0, 1]]
        found.append(naive.stopped_pvalue(values[0].tolist(), values[1:].tolist(), exceedances, rule.checkpoints)[1])
    levels = np.arange(1, 20) / 20
    level = (np.array(found) <= levels[:, None]).mean(axis=1)
    assert np.all(level <= levels + STANDARD_ERRORS * np.sqrt(levels * (1 - levels) / n))


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("statistic", [caltest.KS(), caltest.Omnibus()])
def test_the_engine_stops_as_the_sequential_twin(statistic, monkeypatch):
    """Every question and the global one at its own checkpoint, on the same draws for any number of threads."""
    monkeypatch.setattr(_stopping, "_FIRST", 16)
    monkeypatch.setattr(_stopping, "_BLOCK", 8)
    rule, numbers, orders = Stopping(120, 10), set(), set()
    for seed in range(10):
        y_true, y_prob = calibrated(60, 2, seed=seed, concentration=1.0)
        sample = make_sample(y_true, y_prob)
        view = LensView(sample)
        questions = [Question(settle(statistic, sample), view), Question(caltest.ECE(), view)]
        alone, several, threads = (
            run(some, sample, Consistency(), n_resamples=rule, rng=seed, workers=workers)
            for some, workers in ((questions[:1], 1), (questions, 1), (questions, 2))
        )
        nulls = [values.T.tolist() for values in draw_nulls(questions, sample, Consistency().draws(120, seed))]
        parts = [one.component_values.tolist() for one in several.answers]
        stops = []
        for observed, values, one, two in zip(parts, nulls, several.answers, threads.answers, strict=True):
            number, pvalue = naive.stopped_pvalue(observed, values, 10, rule.checkpoints)
            assert (one.draws.n_resamples, one.pvalue) == (number, pytest.approx(pvalue, abs=1e-15))
            assert (two.draws.n_resamples, two.pvalue) == (number, one.pvalue)
            assert len(one.null.values) == len(one.ranked) - 1 == number
            stops.append(number)
        number, pvalue = naive.stopped_global_pvalue(parts, nulls, 10, rule.checkpoints)
        assert several.pvalue == threads.pvalue == pytest.approx(pvalue, abs=1e-15)
        assert alone.pvalue == alone.answers[0].pvalue == several.answers[0].pvalue
        numbers |= {*stops, number}
        orders |= {(stop > number) - (stop < number) for stop in stops}
    assert len(numbers) > 2
    assert orders == {-1, 0, 1}  # questions stop before the global p-value, with it and after it


def test_no_draw_is_made_after_all_questions_have_stopped(monkeypatch):
    """The draws end with the last question and the global p-value; progress then jumps to its end."""
    monkeypatch.setattr(_stopping, "_FIRST", 16)
    monkeypatch.setattr(_stopping, "_BLOCK", 8)
    rule, lasts = Stopping(120, 10), set()
    for seed in range(10):
        y_true, y_prob = calibrated(60, 2, seed=seed, concentration=1.0)
        sample, seen = make_sample(y_true, y_prob), []
        questions = [Question(one, LensView(sample)) for one in (caltest.KS(), caltest.ECE())]
        found = run(
            questions,
            sample,
            Consistency(),
            n_resamples=rule,
            rng=seed,
            progress=lambda *parts, to=seen: to.append(parts),
        )
        nulls = [values.T.tolist() for values in draw_nulls(questions, sample, Consistency().draws(120, seed))]
        parts = [one.component_values.tolist() for one in found.answers]
        last = naive.stopped_global_pvalue(parts, nulls, 10, rule.checkpoints)[0]
        last = max(last, *(one.draws.n_resamples for one in found.answers))
        done = [number for number, _ in seen]
        assert (done[0], done[-1]) == (0, 120)
        assert done == sorted(done)
        assert max(number for number in done if number < 120 or last == 120) == last
        lasts.add(last)
    assert len(lasts) > 2


@pytest.mark.slow(few_draws=True)
def test_what_callers_ask_for(monkeypatch):
    """The default depends on the size of the data; what is asked for is made."""
    many = _stopping.MANY_PROBABILITIES
    assert Stopping.of(None, None, many) == Stopping(9999)
    assert Stopping.of(None, None, many + 1) == Stopping(999, 100)
    assert Stopping.of(9999, None, many + 1) == Stopping(9999)
    assert Stopping.of(None, 20, 10) == Stopping(9999, 20)
    assert Stopping.of(500, 20, many + 1) == Stopping(500, 20)
    assert Stopping(999, 100).at_least(2000) == Stopping(2000, 100)
    assert Stopping(999, 100).at_least(10**6) == Stopping(9999, 100)
    y_true, y_prob = calibrated(300, 2, seed=3)
    usual = caltest.calibration_test(y_true, y_prob, rng=0, n_resamples=999)
    stopped = caltest.calibration_test(y_true, y_prob, rng=0, n_resamples=999, n_exceedances=20)
    assert usual.n_resamples == 999
    assert stopped.n_resamples < 999
    assert "; stopped because at least 20 of them were at least as extreme" in stopped.origin
    assert stopped.origin.startswith(f"{stopped.n_resamples} of at most 999 Monte Carlo draws")
    np.testing.assert_array_equal(
        stopped.components[0].null_distribution, usual.components[0].null_distribution[: stopped.n_resamples]
    )
    monkeypatch.setattr(_stopping, "MANY_PROBABILITIES", 100)
    assert caltest.calibration_test(y_true, y_prob, rng=0).n_resamples < 999
    report = caltest.calibration_report(y_true, y_prob, rng=0, n_kernel_resamples=19)
    assert min(test.n_resamples for test in report if not isinstance(test.test_statistic, caltest.SKCE)) < 999
    site = np.arange(300) % 3
    for tests in (
        caltest.gce_table(y_true, y_prob, rng=0),
        caltest.subgroup_tests(y_true, y_prob, subgroup=site, rng=0),
        caltest.subgroup_tests(y_true, y_prob, subgroup=site, rng=0, n_exceedances=30, n_resamples=999),
    ):
        assert min(test.n_resamples for test in tests) < 999
        assert "draws or more for each test" in " ".join(printed(tests).split())


def test_refusals():
    data = calibrated(50, 2, seed=0)
    subgroups = partial(caltest.subgroup_tests, subgroup=[0, 1] * 25)
    whole = caltest.calibration_test, caltest.calibration_table, caltest.calibration_report, caltest.gce_table
    for test in (*whole, subgroups):
        for value, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
            with pytest.raises(error, match="`n_exceedances` must be an integer >= 1"):
                test(*data, n_exceedances=value)
