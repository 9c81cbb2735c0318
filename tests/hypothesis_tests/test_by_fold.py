"""Tests of cross-validated predictions: fold by fold, combined, and valid where pooling is not."""

import json
import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import caltest
from benchmarks import folds as study
from caltest.hypothesis_tests import CalibrationTable, SubgroupTests, by_fold, hosmer_lemeshow_test
from caltest.hypothesis_tests._by_fold import few_draws_of_folds
from caltest.predictions.inputs._parts import validate_folds
from caltest.resampling import correct_pvalues
from caltest.results import CalibrationWarning, TestResult
from caltest.statistics import KS
from tests.results.examples import FOLD, problem

DRAWS = {"n_resamples": 199, "rng": 3}


def streams(seed, n_folds):
    return np.random.default_rng(seed).spawn(n_folds)


def test_every_fold_is_tested_by_itself_and_p_values_are_combined():
    """The oracle is written out: a test of each fold with a stream of its own, and 3 times the smallest p-value."""
    y_true, y_prob = problem()
    found = caltest.calibration_test(y_true, y_prob, folds=FOLD, **DRAWS)
    alone = [
        caltest.calibration_test(y_true[k == FOLD], y_prob[k == FOLD], n_resamples=199, rng=rng)
        for k, rng in enumerate(streams(3, 3))
    ]
    pvalues = [test.pvalue for test in alone]
    assert type(found) is TestResult
    assert [test.pvalue for test in found.components] == pvalues
    assert found.pvalue == min(1, 3 * min(pvalues))
    assert found.pvalue == pytest.approx(found.null.sf(found.statistic))
    assert found.pvalue_adjusted.tolist() == correct_pvalues(pvalues).tolist()
    assert tuple(found) == (found.statistic, found.pvalue)
    assert found.statistic == pytest.approx(-np.log10(min(pvalues)))
    assert (found.n_samples, found.fold_names) == (300, ("0", "1", "2"))
    assert found.l2_error is None
    assert [test.l2_error.estimate for test in found.components] == [test.l2_error.estimate for test in alone]


def test_the_answer_does_not_depend_on_workers_labels_of_folds_or_their_order_of_occurrence():
    y_true, y_prob = problem()
    first = caltest.calibration_test(y_true, y_prob, folds=FOLD, **DRAWS)
    other = caltest.calibration_test(
        y_true, y_prob, folds=pd.Series(FOLD).map({0: "a", 1: "b", 2: "c"}), workers=2, **DRAWS
    )
    assert [t.pvalue for t in first.folds] == [t.pvalue for t in other.folds]
    order = np.argsort(-FOLD, kind="stable")  # the last fold comes first
    moved = caltest.calibration_test(y_true[order], y_prob[order], folds=FOLD[order], **DRAWS)
    assert [t.pvalue for t in first.folds] == [t.pvalue for t in moved.folds]
    named = caltest.calibration_test(
        np.array(["x", "y", "z"])[y_true], y_prob, folds=FOLD, classes=["x", "y", "z"], **DRAWS
    )
    assert named.pvalue == first.pvalue


def test_options_reach_every_fold():
    y_true, y_prob = problem()
    lens = caltest.ClassWise(1)
    inside = lambda prob: prob[:, 1] > 0.1  # noqa: E731
    options = {"lens": lens, "statistic": caltest.KS(), "region": inside, "alpha": 0.2, "method": "asymptotic"}
    found = caltest.calibration_test(y_true, y_prob, folds=FOLD, **options)
    assert {test.lens for test in found.folds} == {lens}
    assert found.n_samples == sum(test.n_samples for test in found.folds) == np.count_nonzero(y_prob[:, 1] > 0.1)
    assert (found.alpha, found.method, found.n_resamples) == (0.2, "asymptotic", 0)
    assert found.lens_name == "class 1 against the rest"


def test_tables_are_combined_test_by_test():
    y_true, y_prob = problem()
    lenses = [caltest.Canonical(), caltest.Confidence()]
    found = caltest.calibration_table(y_true, y_prob, lenses=lenses, folds=FOLD, **DRAWS)
    alone = [
        caltest.calibration_table(y_true[k == FOLD], y_prob[k == FOLD], lenses=lenses, n_resamples=199, rng=rng)
        for k, rng in enumerate(streams(3, 3))
    ]
    assert type(found) is CalibrationTable
    assert [test.pvalue for test in found] == [min(1, 3 * min(table[i].pvalue for table in alone)) for i in range(2)]
    assert found.pvalue == min(1, 3 * min(table.pvalue for table in alone))
    assert found.pvalue_adjusted.tolist() == correct_pvalues([test.pvalue for test in found]).tolist()
    assert found.labels == ("whole prediction", "confidence")
    frame, folds = found.to_frame(), found.folds_frame()
    assert frame["pvalue"].tolist() == [test.pvalue for test in found]
    assert (3 * frame["smallest_pvalue"]).clip(upper=1).tolist() == frame["pvalue"].tolist()
    assert folds["pvalue"].tolist() == [table[i].pvalue for i in range(2) for table in alone]
    assert folds["fold"].tolist() == ["0", "1", "2"] * 2
    assert [entry["fold"] for entry in json.loads(json.dumps(found.to_dict()))["fold_pvalues"]] == ["0", "1", "2"]


def test_reports_and_subgroups_are_made_fold_by_fold():
    y_true, y_prob = problem()
    report = caltest.calibration_report(y_true, y_prob, folds=FOLD, n_resamples=599, n_kernel_resamples=599, rng=0)
    assert len(report) == 8
    assert report.labels[0] == "ECE()"
    site = np.where(np.arange(300) < 150, "early", np.where(FOLD == 0, "late in fold 0", "late"))
    tests = caltest.subgroup_tests(y_true, y_prob, subgroup=pd.Series(site, index=range(5, 305)), folds=FOLD, **DRAWS)
    assert {label: test.fold_names for label, test in zip(tests.labels, tests, strict=True)} == {
        "early": ("0", "1", "2"),
        "late in fold 0": ("0",),
        "late": ("1", "2"),
    }
    lone = tests.tests[tests.labels.index("late in fold 0")]
    assert lone.pvalue == lone.folds[0].pvalue  # one fold has it: nothing to combine
    assert "300 observations in 3 folds" in str(tests)
    with pytest.raises(ValueError, match="`correction` must be one of 'holm', 'bonferroni'"):
        caltest.subgroup_tests(y_true, y_prob, subgroup=site, folds=FOLD, correction="sidak", **DRAWS)


@pytest.mark.slow(few_draws=True)
def test_any_test_is_made_by_fold():
    """A classical test, a table with its subgroups, and a test without randomness, against a loop over the folds."""
    y_true, y_prob = problem()
    event, risk = y_true == 1, y_prob[:, 1]
    found = by_fold(hosmer_lemeshow_test, event, risk, FOLD, rng=0, n_resamples=199)
    alone = [
        hosmer_lemeshow_test(event[k == FOLD], risk[k == FOLD], rng=rng, n_resamples=199)
        for k, rng in enumerate(streams(0, 3))
    ]
    assert [fold.pvalue for fold in found.folds] == [fold.pvalue for fold in alone]
    assert found.pvalue == min(1, 3 * min(fold.pvalue for fold in alone))
    site = np.where(np.arange(300) < 150, "early", "late")
    options = {"subgroup": site, "sample_weight": 1 + FOLD, "n_resamples": 199, "rng": 0}
    table = by_fold(caltest.subgroup_tests, y_true, y_prob, FOLD, **options)
    assert type(table) is SubgroupTests
    assert table.to_dict() == caltest.subgroup_tests(y_true, y_prob, folds=FOLD, **options).to_dict()
    with pytest.raises(TypeError, match="`test` must return a TestResult or a CalibrationTable, got float"):
        by_fold(lambda y_true, y_prob, **options: 0.5, y_true, y_prob, FOLD)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("function", "more"),
    [
        (caltest.calibration_test, {}),
        (caltest.calibration_table, {}),
        pytest.param(caltest.calibration_report, {"n_kernel_resamples": 699}, marks=pytest.mark.slow),
        pytest.param(caltest.subgroup_tests, {"subgroup": np.arange(300) < 150}, marks=pytest.mark.slow),
    ],
)
def test_one_class_for_each_function_holds_its_folds(function, more):
    """With folds and without them: `folds` is an attribute, and what is printed or written stays of one kind."""
    options = {"n_resamples": 699, "rng": 0, **more}
    plain, found = (function(*problem(), **options, **folds) for folds in ({}, {"folds": FOLD}))
    assert type(plain) is type(found)
    assert (plain.folds, len(found.folds)) == ((), 3)
    assert {type(fold) for fold in found.folds} == {type(plain)}
    assert "fold_names" not in plain.to_dict()
    for result in (plain, found):
        assert result.rejected == (result.decision == "rejected") == (result.pvalue <= result.alpha)
        assert result.n_samples == 300
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)
    assert json.dumps(found.to_dict(), allow_nan=False) == json.dumps(again.to_dict())
    assert found._repr_html_()


def test_folds_that_stop_early_had_draws_enough():
    stopped = SimpleNamespace(pvalue=0.6, n_resamples=192, alpha=0.05)
    assert few_draws_of_folds([stopped], 10) == []
    went_on = SimpleNamespace(pvalue=0.02, n_resamples=192, alpha=0.05)
    assert [note.code for note in few_draws_of_folds([stopped, went_on], 10)] == ["C205"]
    assert few_draws_of_folds([SimpleNamespace(pvalue=0.6, n_resamples=0, alpha=0.05)], 10) == []  # exact


def test_observations_are_named_by_their_number_in_all_data():
    y_true, y_prob = problem()
    y_prob = y_prob.copy()
    row = 100
    y_prob[row] = np.eye(3)[(y_true[row] + 1) % 3]
    found = caltest.calibration_test(y_true, y_prob, folds=FOLD, **DRAWS)
    assert found.impossible_samples.tolist() == [row]
    assert found.components[row % 3].impossible_samples.tolist() == [row]
    assert next(note.text for note in found.notes if note.code == "C201").startswith("1 label (observation 100)")


def test_notes_about_small_folds_draws_and_single_folds():
    y_true, y_prob = problem()
    uneven = np.minimum(np.arange(300), 15) // 15 + (np.arange(300) > 200)
    with pytest.warns(CalibrationWarning, match="With 19 draws for each of 3 tests"):
        found = caltest.calibration_test(y_true, y_prob, folds=uneven, n_resamples=19, rng=0)
    notes = {note.code: note.text for note in found.notes}
    assert notes["C207"].startswith("Fold 0 has fewer than 20 observations")
    assert "Take 60 draws or more" in notes["C205"]
    table = caltest.calibration_table(y_true, y_prob, folds=uneven, n_resamples=999, rng=0)
    assert [note.code for note in table.all_notes].count("C207") == 1
    assert not any(note.code == "C207" for note in caltest.calibration_test(y_true, y_prob, folds=FOLD, **DRAWS).notes)


def test_errors_of_a_fold_name_it():
    y_true, y_prob = problem()
    with pytest.raises(ValueError, match="fold 1: `region` must hold at least one observation"):
        caltest.calibration_test(
            y_true, y_prob, folds=np.repeat([0, 1], 150), region=lambda p: np.isin(p[:, 0], y_prob[:150, 0]), **DRAWS
        )
    for function in (caltest.calibration_test, caltest.calibration_table, caltest.calibration_report):
        with pytest.raises(ValueError, match="`folds` must have the fold of each of the 300"):
            function(y_true, y_prob, folds=FOLD[:-1])


def test_progress_goes_from_0_to_the_number_of_folds():
    y_true, y_prob = problem()
    seen = []
    caltest.calibration_test(y_true, y_prob, folds=FOLD, progress=lambda *at: seen.append(at), **DRAWS)
    assert {total for _, total in seen} == {3}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (3, 3)


def test_the_conclusion_names_the_folds_that_reject():
    """One model of three is over-confident."""
    y_true, y_prob = problem(900)
    fold = np.arange(900) % 3
    sharp = y_prob**3 / (y_prob**3).sum(axis=1, keepdims=True)
    mixed = np.where((fold == 1)[:, None], sharp, y_prob)
    found = caltest.calibration_test(y_true, mixed, folds=fold, n_resamples=999, rng=0)
    assert found.conclusion == (
        "The model is over-confident: its confidence is 71.2 % on average, 62.9 % of its predictions are right. "
        "Calibration of the models of 3 folds is rejected at the 5 % level (combined p = 0.003, the smallest possible "
        "with 999 draws in each of 3 folds). 1 of the 3 single folds rejects after Holm's correction: 1."
    )
    calibrated = caltest.calibration_test(y_true, y_prob, folds=fold, n_resamples=999, rng=0)
    assert calibrated.conclusion.endswith("(combined p = 1). This does not prove that the models are calibrated.")
    assert found.to_frame()["fold"].tolist() == ["0", "1", "2"]
    assert [entry["fold"] for entry in found.to_dict()["components"]] == ["0", "1", "2"]


def size(n_sets, seed):
    """Rejections of exactly calibrated models, fitted by scikit-learn to 19 of 20 folds: pooled, and by fold."""
    fit = study.calibrated_learners()["decisions of a logistic regression"]
    count = np.zeros(2, dtype=int)
    for number in range(n_sets):
        rng = np.random.default_rng([seed, number])
        x = rng.random(200)
        y_true = (rng.random(200) < study.true_probability(x)).astype(int)
        fold = study.assign(200, 20)
        y_prob = study.out_of_fold(fit, x, y_true, fold)
        test = partial(caltest.calibration_test, y_true, y_prob, statistic=caltest.ECE(), method="monte-carlo", rng=rng)
        count += [test(n_resamples=99).pvalue <= 0.05, test(n_resamples=999, folds=fold).pvalue <= 0.05 + 1e-12]
    return count


def check_size(n_sets, seed):
    """The pooled test rejects about 60 %; tests by fold at most 5 %, up to 4 standard errors."""
    pooled, by_fold = size(n_sets, seed)
    assert pooled > n_sets * 0.3
    assert by_fold <= n_sets * 0.05 + 4 * np.sqrt(n_sets * 0.05 * 0.95)


@pytest.mark.slow
def test_pooled_folds_reject_calibrated_models_and_tests_by_fold_do_not():
    check_size(10, 0)


@pytest.mark.release
def test_pooled_folds_reject_calibrated_models_and_tests_by_fold_do_not_in_many_data_sets():
    check_size(150, 1)


def test_the_oracle_of_the_study_is_calibrated():
    """Models of the study are calibrated on fresh data, whatever they were fitted to."""
    for name, fit in study.calibrated_learners().items():
        rng = np.random.default_rng(5)
        x = rng.random(100)
        y = (rng.random(100) < study.true_probability(x)).astype(int)
        fresh = rng.random(200_000)
        y_prob = fit(x, y, fresh)
        for value in np.unique(y_prob):
            inside = y_prob == value
            mean = study.true_probability(fresh[inside]).mean()
            assert mean == pytest.approx(value, abs=4 * 0.18 / np.sqrt(inside.sum())), name


@pytest.mark.slow(few_draws=True)
def test_rules_of_the_study_keep_the_level_where_p_values_depend():
    """Equal, independent, and opposite p-values."""
    rng = np.random.default_rng(0)
    u = rng.random((400, 5))
    opposite = u.copy()
    opposite[:, 1] = 1 - opposite[:, 0]
    for name, rule in study.RULES.items():
        if "independent only" in name:
            continue
        for p in (u, opposite, np.repeat(u[:, :1], 5, axis=1)):
            rate = np.mean([rule(row) <= study.LEVEL for row in p])
            assert rate <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400), name


def test_a_single_user_function_still_works_as_statistic_by_fold():
    y_true, y_prob = problem(n_classes=2)
    found = caltest.calibration_test(y_true, y_prob[:, 1], statistic=KS(), folds=FOLD, **DRAWS)
    parts = validate_folds(FOLD, 300)
    assert [test.n_samples for test in found.folds] == [len(rows) for rows in parts.members]


@pytest.mark.slow
def test_words_of_folds_whose_events_are_less_frequent_than_predicted():
    rng = np.random.default_rng(0)
    risk, fold = rng.uniform(0.3, 0.7, 900), np.arange(900) % 3
    event = (rng.random(900) < risk - 0.2).astype(int)
    options = {"folds": fold, "n_resamples": 199, "rng": 0}
    found = caltest.calibration_test(event, risk, **options)
    assert found.direction == "too high"
    assert found.conclusion.startswith("Predicted risks are too high: ")
    groups = np.arange(900) // 9 * 3 + fold
    weight = 1 + np.arange(900) % 2
    table = caltest.calibration_table(event, risk, groups=groups, sample_weight=weight, **options)
    assert "Calibration of the models of 3 folds is rejected" in table.conclusion
    assert "900 weighted observations in 300 groups and 3 folds" in " ".join(str(table).split())
    grouped = caltest.calibration_test(event, risk, groups=groups, sample_weight=weight, **options)
    assert "900 weighted observations in 300 groups and 3 folds" in " ".join(str(grouped).split())


def test_too_few_draws_are_said_once_and_before_the_other_folds():
    """Work that cannot reject can be stopped: nobody waits for the last fold to learn it."""
    y_true, y_prob = problem()
    done = []

    def stop_at_the_second_fold(share, total):
        done.append(share)
        if share > 1:
            raise KeyboardInterrupt

    for function in (caltest.calibration_test, caltest.calibration_table, caltest.calibration_report):
        options = {"folds": FOLD, "n_resamples": 19, "rng": 0}
        with pytest.warns(CalibrationWarning) as said, pytest.raises(KeyboardInterrupt):
            function(y_true, y_prob, **options, progress=stop_at_the_second_fold)
        early = [str(warning.message) for warning in said if "With 19 draws for each of" in str(warning.message)]
        assert len(early) == 1, function
        with pytest.warns(CalibrationWarning) as said:
            function(y_true, y_prob, **options)
        assert [str(w.message) for w in said if "With 19 draws for each of" in str(w.message)] == early
    assert done


@pytest.mark.slow(few_draws=True)
def test_folds_of_few_groups_cannot_decide():
    rng = np.random.default_rng(0)
    y_true, fold, group = (rng.random(240) < 0.24).astype(int), np.arange(240) % 2, np.arange(240) % 6
    data = y_true, np.full(240, 0.9)
    found = caltest.calibration_test(*data, folds=fold, groups=group, statistic=KS(), rng=0)
    assert (found.pvalue, found.smallest_possible_pvalue, found.decision) == (0.5, 0.5, "undecidable")
    assert found.conclusion == (
        "These data cannot decide: with 3 groups or fewer in each fold no combined p-value below 0.5 is possible, and "
        "the level is 5 % (combined p = 0.5, 240 observations in 6 groups)."
    )
    assert "draws" not in " ".join(note.text for note in found.notes)
    table = caltest.calibration_table(*data, folds=fold, groups=group, rng=0)
    assert (table.pvalue, table.decision) == (0.5, "undecidable")
    assert table.conclusion.startswith(
        "These data cannot decide: with 3 groups or fewer in each fold no combined p-value"
    )


def test_the_direction_in_a_table_of_folds_names_its_row():
    """Class 0 is calibrated; of two outcomes the confidence is wrong."""
    rng = np.random.default_rng(3)
    y_prob = rng.dirichlet([2, 1, 1], 3000)
    true = y_prob.copy()
    true[:, 1:] = y_prob[:, 1:].sum(axis=1, keepdims=True) / 2
    y_true = (np.cumsum(true, axis=1)[:, :-1] < rng.random((3000, 1))).sum(axis=1)
    lenses = [caltest.ClassWise(0), caltest.ClassWise(1), caltest.Confidence()]
    table = caltest.calibration_table(y_true, y_prob, folds=np.arange(3000) % 2, lenses=lenses, n_resamples=199, rng=0)
    assert table.rejected_tests.tolist() == [False, True, True]
    assert [test.direction for test in table.tests] == [None, "too extreme", "over-confident"]
    assert table.conclusion.startswith("In fold 0 predicted probabilities of class 1 are too extreme: ")
