"""Comparisons of cross-validated models: fold by fold, with combined p-values."""

import json

import numpy as np
import pytest

import caltest
from caltest.comparison import DifferenceResult, ModelComparison
from caltest.resampling import correct_pvalues
from caltest.results._decision import equate_pvalue
from tests.results.examples import FOLD, problem, three_models


def test_pairs_are_tested_fold_by_fold():
    y_true, models = problem()[0], three_models()
    a, b = models["sharp"], models["vague"]
    found = caltest.paired_test(y_true, a, b, folds=FOLD)
    alone = [caltest.paired_test(*(part[k == FOLD] for part in (y_true, a, b))) for k in range(3)]
    assert type(found) is DifferenceResult
    assert [test.difference for test in found.folds] == [test.difference for test in alone]
    assert found.pvalue == min(1, 3 * min(test.pvalue for test in alone))
    assert tuple(found) == (found.statistic, found.pvalue)
    assert found.pvalue_adjusted.tolist() == correct_pvalues([test.pvalue for test in alone]).tolist()
    assert found.to_frame()["pvalue"].tolist() == [test.pvalue for test in alone]


def test_a_difference_in_all_folds_has_a_direction():
    y_true, y_prob = problem(3_000)
    fold = np.arange(3_000) % 3
    sharp = y_prob**3 / (y_prob**3).sum(axis=1, keepdims=True)
    found = caltest.paired_test(y_true, sharp, y_prob, folds=fold)
    assert found.better == "B"
    words = "Model B is better calibrated than model A in folds 0, 1 and 2 (combined p = "
    assert found.conclusion.startswith(words)
    assert found.verdict.findings[0].folds == ("0", "1", "2")
    mixed = [np.where((fold == 0)[:, None], first, other) for first, other in ((sharp, y_prob), (y_prob, sharp))]
    found = caltest.paired_test(y_true, *mixed, folds=fold)
    assert (found.rejected, found.better) == (True, None)
    words = "Model A and model B differ in calibration in folds 0, 1 and 2, in different directions (combined p = "
    assert found.conclusion.startswith(words)
    assert found.verdict.findings[0].kind == "opposite in folds"


@pytest.mark.slow(few_draws=True)
def test_models_are_compared_fold_by_fold():
    y_true, models = problem()[0], three_models()
    found = caltest.compare_models(y_true, models, folds=FOLD, n_resamples=299, rng=5)
    alone = [
        caltest.compare_models(
            y_true[k == FOLD], {name: prob[k == FOLD] for name, prob in models.items()}, n_resamples=299, rng=stream
        )
        for k, stream in enumerate(np.random.default_rng(5).spawn(3))
    ]
    assert type(found) is ModelComparison
    for i in range(3):
        assert found.models[i].pvalue == min(1, 3 * min(one.models[i].test.pvalue for one in alone))
        pair = found.pairs_frame().iloc[i]
        assert pair["pvalue_adjusted"] == min(1, 3 * min(one.pairs[i].pvalue_adjusted for one in alone))
    assert [model.pvalue_adjusted for model in found] == correct_pvalues([model.pvalue for model in found]).tolist()
    assert found.to_frame().index.tolist() == list(models)
    assert len(found.folds_frame()) == 9
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_conclusion_of_models_by_fold():
    y_true, y_prob = problem(3_000)
    sharp = y_prob**3 / (y_prob**3).sum(axis=1, keepdims=True)
    fold = np.arange(3_000) % 2
    found = caltest.compare_models(y_true, {"good": y_prob, "sharp": sharp}, folds=fold, n_resamples=299, rng=0)
    p = equate_pvalue(found.pairs[0].pvalue_adjusted, name="adjusted p")
    assert found.conclusion == (
        f"good is better calibrated than sharp in folds 0 and 1 ({p}). Calibration is rejected for sharp, but not for "
        "good. Decisions are made at the 5 % level, adjusted for the numbers of models, of pairs and of folds."
    )


def test_refusals():
    y_true, models = problem()[0], three_models()
    with pytest.raises(ValueError, match="`folds`, `sample_weight`, `groups` and `time` need `y_true`"):
        caltest.compare_models(None, {name: (y_true, prob) for name, prob in models.items()}, folds=FOLD)
    with pytest.raises(ValueError, match="`folds` must have the fold of each of the 300"):
        caltest.compare_models(y_true, models, folds=FOLD[:5])
    with pytest.raises(ValueError, match="`folds` must hold several folds"):
        caltest.paired_test(y_true, *list(models.values())[:2], folds=np.zeros(300, int))


def test_too_few_draws_are_said():
    with pytest.warns(caltest.results.CalibrationWarning, match="With 99 draws for each of 9 tests"):
        found = caltest.compare_models(problem()[0], three_models(), folds=FOLD, n_resamples=99, rng=0)
    assert "C205" in [note.code for note in found.notes]


def test_folds_of_too_few_groups_decide_nothing():
    rng = np.random.default_rng(0)
    truth, fold, row = rng.uniform(0.2, 0.8, 480), np.arange(480) // 120 % 2, np.arange(480)
    y_true = (rng.random(480) < truth).astype(int)
    models, options = (truth, truth / 3), {"folds": fold, "rng": 0, "n_resamples": 99}
    few = caltest.paired_test(y_true, *models, groups=row // 60, **options)
    assert few.pvalue == 1
    assert "cannot be told: with 8 groups in 2 folds no combined p-value below 1 is possible" in few.conclusion
    assert caltest.paired_test(y_true, *models, groups=row // 2, **options).better == "A"


def test_folds_of_three_groups_cannot_decide():
    """The conclusion said "rejected for none" and "No difference is shown", where no p-value could have rejected."""
    rng = np.random.default_rng(0)
    p = rng.random(360)
    y_true = (rng.random(360) < p).astype(int)
    fold = np.arange(360) % 2
    groups = 10 * fold + (np.arange(360) // 2) % 3
    found = caltest.compare_models(y_true, {"a": p, "b": p**1.5}, folds=fold, groups=groups, n_resamples=99, rng=0)
    words = "Whether a and b are calibrated cannot be told: with 3 groups in a fold no adjusted p-value below 1 is"
    assert words in found.conclusion
    assert "Whether a and b differ in calibration cannot be told: with 6 groups" in found.conclusion
    assert "No difference" not in found.conclusion
    assert "rejected for none" not in found.conclusion


@pytest.mark.slow(few_draws=True)
def test_too_few_draws_are_not_too_few_groups():
    """The conclusions blamed the number of groups, where 9 draws were too few for any p-value to reject."""
    rng = np.random.default_rng(0)
    p = rng.random(800)
    y_true = (rng.random(800) < p).astype(int)
    models, groups = {"a": p, "b": p**1.5}, np.arange(800) // 4
    with pytest.warns(caltest.results.CalibrationWarning):
        found = caltest.compare_models(y_true, models, groups=groups, n_resamples=9, rng=0)
    assert "Whether a and b are calibrated cannot be told: with 9 draws no adjusted p-value below 0.2 is" in (
        found.conclusion
    )
    assert "Whether a and b differ in calibration cannot be told: with 9 draws no adjusted p-value below 0.1" in (
        found.conclusion
    )
    fold = np.arange(800) // 4 % 2
    folds = caltest.paired_test(y_true, p, p**1.5, groups=groups, folds=fold, n_resamples=3, rng=0)
    assert folds.decision == "undecidable"
    assert "cannot be told: with 3 draws in 2 folds no combined p-value below 0.5 is possible (combined p = 1)." in (
        folds.conclusion
    )
