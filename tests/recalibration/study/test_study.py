"""`recalibration_study`: fitted to one part, judged by the other, folds never pooled."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import caltest
from caltest.recalibration import (
    AutomaticCalibration,
    DirichletCalibration,
    HistogramBinning,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from caltest.recalibration.study import _study
from caltest.resampling import correct_pvalues
from tests.recalibration.maps.test_base import over_confident

METHODS = {"temperature": TemperatureScaling(), "vector": VectorScaling()}
FAST = {"n_resamples": 99, "rng": 0}
pytestmark = pytest.mark.filterwarnings("ignore:.*C205")


@pytest.fixture(scope="module")
def problem():
    prob, y_true = over_confident(900, 3, seed=2)
    return y_true, prob


@pytest.fixture(scope="module")
def folds():
    return np.random.default_rng(0).permutation(900) % 3


@pytest.fixture(scope="module")
def study(problem, folds):
    y_true, prob = problem
    return caltest.recalibration_study(y_true, {"net": prob}, METHODS, folds=folds, n_resamples=999, rng=0)


@pytest.mark.slow(few_draws=True)
def test_each_fold_is_judged_by_the_functions_of_the_package(problem, folds, study):
    """The slow twin: fit, predict and test by hand, in every fold."""
    y_true, prob = problem
    for row in study:
        for number, fold in enumerate(row.folds):
            rows = folds == number
            before = after = prob[rows]
            if row.recalibrator != "before":
                after = type(METHODS[row.recalibrator])().fit(prob[~rows], y_true[~rows]).predict_proba(before)
            level = 1 - 0.05 / 3
            interval = caltest.l2_interval(y_true[rows], after, confidence_level=level)
            assert fold.miscalibration.estimate == pytest.approx(interval.estimate, rel=1e-9)
            assert fold.miscalibration.confidence_interval == pytest.approx(interval.confidence_interval, rel=1e-9)
            assert fold.brier_score == pytest.approx(caltest.estimation.brier_score(y_true[rows], after))
            assert fold.log_score == pytest.approx(caltest.estimation.log_score(y_true[rows], after))
            assert fold.accuracy == pytest.approx(caltest.estimation.accuracy(y_true[rows], after))
            parts = caltest.estimation.score_decomposition(y_true[rows], after, lens=caltest.Confidence())
            assert fold.brier.miscalibration == pytest.approx(parts.miscalibration)
            assert fold.tests[0].statistic is not None
            error = caltest.calibration_error(y_true[rows], after)
            assert fold.errors[0].statistic == pytest.approx(error)
            if row.change is not None:
                paired = caltest.paired_test(y_true[rows], before, after, alpha=1 - level)
                assert row.change.folds[number].difference == pytest.approx(paired.difference)
                assert row.change.folds[number].pvalue == pytest.approx(paired.pvalue)


def test_folds_are_combined_by_the_rule(study):
    pvalues = [min(1.0, 3 * min(fold.tests[0].pvalue for fold in row.folds)) for row in study]
    assert [row.pvalue for row in study] == pvalues
    assert [row.pvalue_adjusted for row in study] == pytest.approx(correct_pvalues(pvalues))
    changes = [min(1.0, 3 * min(test.pvalue for test in row.change.folds)) for row in study.rows[1:]]
    assert [row.change_adjusted for row in study.rows[1:]] == pytest.approx(correct_pvalues(changes))
    low = [fold.miscalibration.confidence_interval.low for fold in study.rows[0].folds]
    assert study.rows[0].miscalibration.confidence_interval.low == pytest.approx(np.mean(low))
    assert len(study.pairs) == 1
    assert study.pairs[0].pvalue_adjusted == study.pairs[0].test.pvalue


def test_an_over_confident_model_is_repaired(study, problem):
    assert study.rows[0].rejected
    assert study.row("temperature").better
    assert not study.row("temperature").rejected
    assert study.row("temperature").accuracy == study.rows[0].accuracy
    found = study.before_after("temperature")
    assert found.fitted.startswith("temperature scaling (T = ")
    assert (found.before.decision, found.decision, found.is_recommended) == ("rejected", "not rejected", True)
    assert found.advice == "Use the recalibrated predictions."
    assert "Better calibrated than before: temperature" in study.conclusion
    best = min(study.rows[1:], key=lambda row: row.log_score).recalibrator
    assert study.verdict.advice == (f"net, {best}: {study.before_after(best).advice}",)
    assert [finding.kind for finding in study.verdict.findings] == [f.kind for f in found.before.findings] != []
    assert study.predict("before") == pytest.approx(problem[1])
    assert study.predict("vector").sum(axis=1) == pytest.approx(1)
    with pytest.raises(KeyError, match="no recalibrator 'x'"):
        study.row("x")


def test_it_prints_and_serialises(study):
    text = str(study)
    assert text.index("Calibration of net is rejected before") < text.index("l2 error")
    assert "noise floor" in text
    frame = study.to_frame()
    assert frame.shape[0] == 3
    assert {"ECE()", "ECE()_noise_floor", "ECE()_pvalue", "l2_high", "brier_miscalibration"} <= set(frame.columns)
    assert list(study.pairs_frame().index) == [("net", "temperature", "vector")]
    assert len(study.folds_frame()) == 3 * 3 * len(study.rows[0].folds[0].errors)
    found = study.to_dict()
    assert found["conclusion"] == study.conclusion
    assert len(found["rows"][1]["folds"]) == 3
    assert "y_prob" not in found


def test_a_single_split(problem):
    y_true, prob = problem
    held = np.arange(900) >= 500
    found = caltest.recalibration_study(y_true, {"net": prob}, [TemperatureScaling()], held_out=held, **FAST)
    row = found.rows[1]
    assert row.maps[0].temperature_ == TemperatureScaling().fit(prob[:500], y_true[:500]).temperature_
    assert row.pvalue == row.folds[0].tests[0].pvalue
    assert row.folds[0].miscalibration.confidence_level == 0.95
    after = found.predict("TemperatureScaling()")
    assert np.isnan(after[:500]).all()
    assert np.isfinite(after[500:]).all()
    assert "400 observations held out" in str(found)


@pytest.mark.slow(few_draws=True)
def test_answers_do_not_depend_on_names_workers_or_frames(problem):
    y_true, prob = problem
    letters = np.array(["a", "b", "c"])
    frame = pd.DataFrame(prob, columns=letters)[["c", "a", "b"]]
    plain = caltest.recalibration_study(y_true, {"net": prob}, METHODS, folds=3, **FAST)
    named = caltest.recalibration_study(letters[y_true], {"net": frame}, METHODS, folds=3, workers=2, **FAST)
    assert named.to_frame().equals(plain.to_frame())
    assert named.class_columns == {"a": "a", "b": "b", "c": "c"}


@pytest.mark.slow
def test_groups_and_weights(problem):
    y_true, prob = (part[:300] for part in problem)
    patient = np.arange(300) // 3
    weight = np.where(np.arange(300) % 2, 1.0, 2.0)
    found = caltest.recalibration_study(
        y_true, {"net": prob}, [TemperatureScaling()], folds=3, groups=patient, sample_weight=weight, **FAST
    )
    for rows in found.held_out:
        assert len(set(patient[rows])) * 3 == len(rows)
    assert found.rows[0].folds[0].tests[0].n_groups in {33, 34}
    wanted = TemperatureScaling().fit(np.delete(prob, found.held_out[0], 0), np.delete(y_true, found.held_out[0]),
                                      np.delete(weight, found.held_out[0]))  # fmt: skip
    assert found.rows[1].maps[0].temperature_ == wanted.temperature_
    with pytest.raises(ValueError, match="`groups` must each lie in one fold"):
        caltest.recalibration_study(y_true, {"net": prob}, METHODS, folds=np.arange(300) % 3, groups=patient, **FAST)


def test_methods_that_refuse_are_left_out_with_a_note():
    prob, y_true = over_confident(60, 3)
    y_true[:] = y_true % 2
    y_true[7] = 2  # one label of this class
    found = caltest.recalibration_study(y_true, {"net": prob}, list(METHODS.values()), folds=3, **FAST)
    assert [row.recalibrator for row in found] == ["before", "TemperatureScaling()"]
    assert next(note.text for note in found.notes if note.code == "C703").startswith("VectorScaling() is left out")
    with pytest.raises(ValueError, match="all refused"):
        caltest.recalibration_study(y_true, {"net": prob}, [VectorScaling()], folds=3, **FAST)


@pytest.mark.slow(few_draws=True)
def test_labels_of_probability_0_and_two_classes_and_several_statistics():
    prob, y_true = over_confident(300, 2)
    found = caltest.recalibration_study(
        y_true,
        {"a": prob[:, 1], "b": prob[:, 1] ** 2},
        [HistogramBinning(), AutomaticCalibration()],
        folds=2,
        statistics=[caltest.ECE(), caltest.KS()],
        **FAST,
    )
    assert found.models == ("a", "b")
    assert len(found.rows) == 6
    row = found.rows[0]
    assert row.pvalue == min(1.0, 4 * min(test.pvalue for fold in row.folds for test in fold.tests))
    brier = [caltest.estimation.brier_score(y_true[rows], prob[rows, 1]) for rows in found.held_out]
    assert [fold.brier_score for fold in row.folds] == pytest.approx(brier)
    chosen = found.row("AutomaticCalibration()", "b").chosen
    assert sum(chosen.values()) == 2
    impossible = sum(fold.n_impossible for row in found for fold in row.folds)
    assert math.isinf(max(row.log_score for row in found)) == (impossible > 0)
    assert any(note.code == "C705" for note in found.notes) == (impossible > 0)


@pytest.mark.slow(few_draws=True)
def test_the_verdict_begins_with_what_is_worse_or_stays():
    """On held-out folds the log score rose, and the verdict began with "no longer rejected"."""
    rng = np.random.default_rng(0)
    event = rng.uniform(0.02, 0.98, 120)
    label = (rng.random(120) < event).astype(int)
    methods = {"bins": HistogramBinning(caltest.EqualWidth(30)), "auto": AutomaticCalibration([TemperatureScaling()])}
    study = caltest.recalibration_study(label, {"a": event}, methods, folds=2, **FAST)
    before, worse = study.row("before").log_score, study.row("bins").log_score
    assert worse > before
    bins = study.before_after("bins")
    assert str(bins).split("\n")[2] == bins.headline == "Recalibration makes these predictions worse."
    calm = replace(bins, before=replace(bins.before, pvalue=0.5))
    assert calm.advice.startswith("Keep the original predictions: nothing is gained, the average log score, which")
    row = study.row("auto")
    for one in row.maps:  # on these data the choice is left to chance
        one.unchanged_ = True
    assert row.chosen == {"no change": 2}
    auto = study.before_after("auto")
    assert auto.headline.startswith("The predictions stay as they are, because no method predicts held-out")
    assert replace(auto, before=calm.before).advice == "Keep the original predictions."
    assert [one.is_recommended for one in (bins, calm, auto)] == 3 * [False]
    row.maps[0].unchanged_ = False
    assert study.before_after("auto").fitted == "temperature scaling in 1 and no change in 1 of 2 folds"


def test_progress_counts_every_fit_and_every_judgement(problem, monkeypatch):
    y_true, prob = problem
    calls, described = [], []
    shown = _study.reporting

    def reporting(progress, description):
        described.append(description)
        return shown(progress, description)

    monkeypatch.setattr(_study, "reporting", reporting)
    for methods in ([TemperatureScaling()], [TemperatureScaling(), PlattScaling()]):
        caltest.recalibration_study(
            y_true, {"a": prob}, methods, folds=2, progress=lambda *call: calls.append(call), **FAST
        )
    assert calls[:6] == [(done, 6) for done in range(1, 7)], "2 folds: before, a fit, after"
    assert described == ["judging 1 recalibration method", "judging 2 recalibration methods"]


def test_refusals(problem):
    y_true, prob = problem
    models = {"net": prob}
    for arguments, error, words in (
        ((y_true, [prob], METHODS), TypeError, "`models` must map"),
        ((y_true, {}, METHODS), ValueError, "at least one model"),
        ((y_true, models, TemperatureScaling()), TypeError, "`recalibrators` must be a sequence"),
        ((y_true, models, [1]), TypeError, "`recalibrators` must hold methods"),
        ((y_true, models, []), ValueError, "at least one method"),
        ((y_true, models, {"before": TemperatureScaling()}), ValueError, 'named "before"'),
        ((y_true, models, [TemperatureScaling(input="logits")]), ValueError, "leave out `input`"),
    ):
        with pytest.raises(error, match=words):
            caltest.recalibration_study(*arguments)
    for options, error, words in (
        ({"folds": 1}, ValueError, "`folds`"),
        ({"folds": 600}, ValueError, "at most half"),
        ({"folds": True}, TypeError, "`folds`"),
        ({"held_out": [1] * 900}, TypeError, "booleans"),
        ({"held_out": [True] * 900}, ValueError, "True for some"),
        ({"held_out": [True, False]}, ValueError, "shape"),
        ({"statistics": caltest.ECE()}, TypeError, "sequence of statistics"),
        ({"statistics": []}, ValueError, "at least one statistic"),
        ({"alpha": 1.0}, ValueError, "alpha"),
    ):
        with pytest.raises(error, match=words):
            caltest.recalibration_study(y_true, models, METHODS, **options)


def test_too_few_draws_are_said_before():
    prob, y_true = over_confident(60, 3)
    with pytest.warns(caltest.results.CalibrationWarning, match="Take 160 draws or more"):
        caltest.recalibration_study(y_true, {"net": prob}, METHODS | {"again": TemperatureScaling()},
                                    folds=2, n_resamples=99, rng=0)  # fmt: skip


@pytest.mark.parametrize(
    "n_repeats",
    [
        pytest.param(8, marks=pytest.mark.slow(few_draws=True)),
        pytest.param(30, marks=pytest.mark.nightly),
        pytest.param(100, marks=pytest.mark.release),
    ],
)
def test_a_calibrated_model_is_left_alone(n_repeats):
    """Level of "better" and of "worse" for calibrated predictions, and of rejection after one-parameter repair."""
    said, rejected = 0, 0
    for seed in range(n_repeats):
        prob, y_true = over_confident(1000, 3, seed=seed, sharper=1.0)
        methods = [TemperatureScaling(), AutomaticCalibration([TemperatureScaling(), VectorScaling()])]
        found = caltest.recalibration_study(y_true, {"net": prob}, methods, n_resamples=999, rng=seed)
        said += any(row.better is not None for row in found.rows)
        rejected += found.rows[0].rejected
    limit = binom.ppf(0.9999, n_repeats, 0.05)
    assert said <= limit, f"a change was reported in {said} of {n_repeats} data sets"
    assert rejected <= limit, f"{rejected} of {n_repeats}"


@pytest.mark.slow
def test_the_nine_methods_in_five_folds():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    found = caltest.recalibration_study(y_true, {"VGG-16": y_prob}, None, n_resamples=999, rng=0)
    assert len(found.rows) == 10
    assert found.row(f"{DirichletCalibration()!r}").log_score < found.rows[0].log_score


@pytest.mark.slow(few_draws=True)
def test_folds_of_few_groups_cannot_decide():
    """Six patients in two folds: three groups of each fold have no p-value below 0.25, and two folds double it."""
    rng = np.random.default_rng(0)
    y_true, prob, patient = (rng.random(240) < 0.24).astype(int), rng.uniform(0.85, 0.95, 240), np.arange(240) % 6
    study = caltest.recalibration_study(
        y_true, {"net": prob}, {"temperature": TemperatureScaling()}, folds=patient % 2, groups=patient, **FAST
    )
    for row in study:
        assert (row.decision, row.rejected, row.smallest_possible_pvalue) == ("undecidable", False, 0.5)
    found = study.before_after("temperature")
    assert found.conclusion.startswith(
        "These data cannot decide: with 3 groups or fewer in each fold no combined p-value"
    )
    assert "not rejected" not in str(found)
    assert "not rejected" not in study.conclusion
    assert study.conclusion.startswith("net: These data cannot decide")


@pytest.mark.slow
def test_the_conditions_with_groups_are_those_of_its_tests():
    """The text said "Valid if observations are independent" where patients with several observations were named."""
    prob, y_true = over_confident(400, 2, seed=3)
    patient = np.arange(400) % 100
    study = caltest.recalibration_study(
        y_true, {"net": prob}, {"temperature": TemperatureScaling()}, folds=2, groups=patient, **FAST
    )
    said = " ".join(str(study).split())
    assert "Valid if groups of observations are independent and no label was used to make the predictions." in said
    assert "[C104" in said
    assert "Valid if observations are independent" not in said


@pytest.mark.slow(few_draws=True)
def test_before_and_after_are_the_numbers_of_all_held_out_observations():
    """Those before are the numbers of `calibration_test`; of a single split they are about its held-out part."""
    prob, y_true = over_confident(600, 2, seed=1)
    prob, weight, patient = prob[:, 1], np.r_[np.ones(300), np.full(300, 2.0)], np.arange(600) // 2
    judging = np.arange(600) % 4 > 1
    for split in ({"folds": patient % 3}, {"held_out": judging}):
        rows = judging if "held_out" in split else np.ones(600, dtype=bool)
        design = {"sample_weight": weight, "groups": patient}
        study = caltest.recalibration_study(
            y_true, {"net": prob}, {"t": TemperatureScaling()}, **split, **design, **FAST
        )
        found, held = study.before_after("t"), {name: values[rows] for name, values in design.items()}
        after = study.predict("t")[rows, 1]
        for verdict, given in ((found.before, prob[rows]), (found.after, after)):
            wanted = caltest.calibration_test(y_true[rows], given, **held, **FAST)
            large, slope, typical, *_ = verdict.numbers
            assert str(large) == str(wanted.verdict.numbers[0])
            if verdict is found.before or "held_out" in split:  # otherwise within folds
                assert slope.estimate == pytest.approx(wanted.verdict.numbers[1].estimate, abs=0.02)
            assert typical.estimate == pytest.approx(100 * wanted.l2_error.root)
        assert verdict.pvalue == study.row("t").pvalue


@pytest.mark.slow(few_draws=True)
def test_equal_predictions_have_no_slope_between_folds():
    """A fold with more events has a lower prediction, that of the others: the slope was -3.92 (-6.96 to -0.87)."""
    event, prob = np.random.default_rng(0).random(500) < 0.3, np.full(500, 0.1)
    study = caltest.recalibration_study(event, {"net": prob}, {"platt": PlattScaling()}, **FAST)
    slope = study.before_after("platt").after.numbers[1]
    assert slope.name == "calibration slope"
    assert slope.estimate == pytest.approx(1, abs=1e-4)
    assert slope.interval.low < 1 < slope.interval.high


@pytest.mark.slow(few_draws=True)
def test_a_test_of_all_observations_sees_more_than_the_folds():
    """Five small folds do not reject a model that one test of all observations rejects clearly."""
    prob, y_true = over_confident(200, 3, seed=0)
    milder = prob**0.7 / (prob**0.7).sum(axis=1, keepdims=True)
    models = {"net": milder}
    study = caltest.recalibration_study(y_true, models, {"temperature": TemperatureScaling()}, n_resamples=199, rng=0)
    found = study.before_after("temperature")
    whole = found.tested(caltest.calibration_test(y_true, milder, n_resamples=999, rng=0).verdict)
    assert (found.before.decision, whole.before.decision) == ("not rejected", "rejected")
    assert whole.before.numbers == found.before.numbers
    assert "not rejected in any fold before recalibration" in study.conclusion


def test_what_few_events_and_rejections_advise(study):
    """No events at all, and an isotonic map that predicted 0 %, once were "Use the recalibrated predictions"."""
    found = study.before_after("temperature")
    few, kept = replace(found.before, n_observed=3), replace(found.before, pvalue=0.5, n_observed=3)
    assert not replace(found, before=few).is_recommended
    assert "too few wrong predictions (3) to recalibrate" in replace(found, before=few).advice
    assert "Keep the original predictions: there are too few wrong" in replace(found, before=kept).advice
    left = replace(found.after, pvalue=0.01)
    assert "but they are not right either" in replace(found, after=left).advice
    assert replace(found, log_score=(0.5, 0.6)).advice.startswith("Do not use these predictions, neither as they are")
    chance = replace(found, before=replace(found.before, pvalue=0.5), is_smaller=False, clear_change=0)
    assert "so little is gained that it may be chance" in chance.advice
    wrong = replace(found, is_smaller=False, clear_change=0)  # rejected before: once this alone was "better"
    assert (wrong.before.decision, wrong.is_recommended) == ("rejected", False)
    assert wrong.headline.startswith("It is not shown that recalibration makes")
    assert wrong.advice.startswith("Do not use these predictions as they are. Recalibrated they may be no better: so ")
