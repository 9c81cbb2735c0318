"""Errors that rank no models: values and tests as alone, and the reason once."""

import pytest

import caltest as ct
from tests.ranking.test_leaderboard import FAST, problem


def test_values_and_tests_are_those_of_single_models_and_there_are_no_ranks():
    y_true, models = problem()
    board = ct.leaderboard(y_true, models, by=("KS", "brier", ct.ECE()), **FAST)
    assert [found.name for found in board.measures] == ["brier", "KS", "ECE()"]
    assert board["brier"].to_dict() == ct.leaderboard(y_true, models, by="brier", **FAST)["brier"].to_dict()
    for name, model in models.items():
        alone = ct.calibration_error(y_true, model, statistic=ct.KS(), lens=ct.Confidence())
        assert board["KS"][name].measure.estimate == pytest.approx(alone, rel=1e-12)
    adjusted = ct.resampling.correct_pvalues([model.measure.pvalue for model in board["KS"]])
    assert [model.pvalue_adjusted for model in board["KS"]] == adjusted.tolist()
    frame = board.to_frame().set_index(["measure", "model"])
    assert frame.loc["KS", "rank"].isna().all()
    assert frame.loc["brier", "rank"].notna().all()
    assert str(board).count("have no ranks") == 1


def test_a_board_without_ranks_says_which_models_are_rejected():
    y_true, models = problem(500)
    board = ct.leaderboard(y_true, models, by="KS", **FAST)
    assert board.rankings == ()
    assert (
        board.conclusion == "KS (confidence): calibration is rejected for 2 of 4 models (Holm, 5 %): sharp and vague."
    )
    assert {model.name for model in board["KS"] if model.rejected} == {"sharp", "vague"}
    assert "rank" not in board.to_frame()
