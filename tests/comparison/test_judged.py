"""One model judged on one set of observations, and over folds: the same numbers as by the functions of the package."""

import numpy as np
import pytest

import caltest as ct
from caltest.comparison._judged import Judge, Observed, level_of_folds
from caltest.estimation import accuracy, brier_score, log_score
from caltest.predictions._sample import induce
from caltest.predictions.inputs._parts import Folds
from caltest.results import ConfidenceInterval
from tests.results.examples import FOLD, problem, three_models

PLAIN = {"weight": None, "group": None}


def judge(**changes):
    whole = ct.Canonical()
    questions = [(ct.Omnibus(), whole), (ct.KS(), ct.Confidence())]
    options = {"partition": ct.VarianceTree(), "classes": None, "alpha": 0.05, "workers": 1}
    looks = {"questions": questions, "lens": whole, "score_lens": whole}
    return Judge(**{**looks, "confidence_level": 0.95, "n_resamples": 99, "options": options, **changes})


def test_a_model_is_judged_by_the_functions_of_the_package():
    """The slow twin: each number by its own public function."""
    y_true, y_prob = problem()
    found = judge().judge("a", Observed(y_prob, y_true, PLAIN), np.random.default_rng(4))
    options = {"n_resamples": 99, "rng": 4}
    tests = [
        ct.calibration_test(y_true, y_prob, **options),
        ct.calibration_test(y_true, y_prob, statistic=ct.KS(), lens=ct.Confidence(), **options),
    ]
    assert [test.pvalue for test in found.tests] == [test.pvalue for test in tests]
    assert found.pvalue == min(1, 2 * min(test.pvalue for test in tests))
    assert found.miscalibration.estimate == ct.l2_interval(y_true, y_prob).estimate
    scores = found.accuracy, found.brier_score, found.log_score
    assert scores == (accuracy(y_true, y_prob), brier_score(y_true, y_prob), log_score(y_true, y_prob))
    parts = ct.score_decomposition(y_true, y_prob, lens=ct.Confidence())
    assert found.brier.to_dict() == parts.to_dict()
    assert (found.n_samples, found.n_impossible, found.folds) == (300, 0, ())


def test_each_lens_is_looked_through_once():
    calls = []

    def event(prob, outcome):
        calls.append(len(prob))
        return prob[:, [0, 1]] / prob[:, [0, 1]].sum(axis=1, keepdims=True), outcome == 1

    y_true, y_prob = problem()
    induce(y_prob, y_true, lens=event)
    once = len(calls)
    chosen = judge(questions=[(ct.ECE(), event), (ct.KS(), event)], lens=event, score_lens=event)
    chosen.judge("a", Observed(y_prob, y_true, PLAIN), np.random.default_rng(0))
    assert len(calls) == 2 * once


def test_numbers_of_folds_are_means_and_p_values_are_combined():
    y_true, y_prob = problem()
    sizes = np.array([150, 100, 50])
    rows = np.split(np.arange(300), [150, 250])
    chosen = judge(confidence_level=0.98)
    alone = [chosen.judge("a", Observed(y_prob[part], y_true[part], PLAIN), np.random.default_rng(0)) for part in rows]
    found = type(alone[0]).of_folds(Folds(("x", "y", "z"), tuple(rows)), alone)
    assert found.accuracy == pytest.approx(accuracy(y_true, y_prob))  # the mean of all observations
    assert found.log_score == pytest.approx(log_score(y_true, y_prob))
    for name in ("mean_score", "miscalibration", "discrimination", "uncertainty"):
        wanted = np.average([getattr(one.brier, name) for one in alone], weights=sizes)
        assert getattr(found.brier, name) == pytest.approx(wanted), name
    size = found.miscalibration
    intervals = [one.miscalibration.confidence_interval for one in alone]
    ends = [np.average(one, weights=sizes) for one in np.transpose(intervals)]
    assert size.confidence_interval == pytest.approx(ConfidenceInterval(*ends))
    assert size.confidence_level == pytest.approx(0.94)
    assert (size.n_samples, found.n_samples) == (300, 300)
    assert found.pvalue == min(1, 6 * min(test.pvalue for one in alone for test in one.tests))
    assert [fold.pvalue for fold in found.tests[1].folds] == [one.tests[1].pvalue for one in alone]


def test_the_level_of_several_intervals_together():
    assert level_of_folds([0.95, 0.95]) == 0.9
    assert level_of_folds([1 - 0.05 / 3] * 3) == pytest.approx(0.95)
    assert level_of_folds([0.5] * 5) == 0


def test_a_comparison_by_fold_holds_models_pairs_and_folds_of_one_kind():
    y_true, models = problem()[0], three_models()
    found = ct.compare_models(y_true, models, folds=FOLD, n_resamples=299, rng=0)
    assert [type(fold) for fold in found.folds] == [type(found)] * 3
    for number, model in enumerate(found.models):
        assert [fold.pvalue for fold in model.folds] == [fold.models[number].pvalue for fold in found.folds]
        assert model.accuracy == pytest.approx(accuracy(y_true, models[model.name]))
    for number, pair in enumerate(found.pairs):
        each = [fold.pairs[number] for fold in found.folds]
        assert pair.test.difference == pytest.approx(np.mean([one.test.difference for one in each]))
        assert pair.pvalue_adjusted == min(1, 3 * min(one.pvalue_adjusted for one in each))
    assert (found.n_samples, found.pvalue) == (300, min(pair.pvalue_adjusted for pair in found.pairs))
    assert not hasattr(found, "plot")
    assert hasattr(found.folds[0], "plot")
    with pytest.raises(ValueError, match="`comparison` has no picture of all folds; plot one of its `folds`"):
        ct.plotting.plot_comparison(found)
    assert found.folds[0].folds == ()
    with pytest.raises(ValueError, match="the models were not compared by fold"):
        found.folds[0].folds_frame()
