"""The parts of scores on a leaderboard are those of each model alone."""

import numpy as np
import pytest

import caltest as ct
from caltest.recalibration import IsotonicCalibration, TemperatureScaling, cross_fitted_decomposition
from tests.ranking.test_leaderboard import FAST, problem


def test_scores_are_divided_as_those_of_single_models_and_add_up():
    y_true, models = problem()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y_true))
    how = {"sample_weight": weight, "groups": np.arange(len(y_true)) // 2}
    board = ct.leaderboard(
        y_true, models, by=("log_score", "accuracy"), recalibrator=TemperatureScaling(), **how, **FAST
    )
    seed = int(np.random.default_rng(0).integers(2**63, size=2)[0])
    frame = board.to_frame().set_index(["measure", "model"])
    for name, prob in models.items():
        alone = cross_fitted_decomposition(y_true, prob, score="log", rng=seed, **how)
        row = frame.loc["log_score", name]
        assert (row["miscalibration"], row["discrimination"]) == (alone.miscalibration, alone.discrimination)
        assert (row["miscalibration_lower"], row["miscalibration_upper"]) == alone.intervals["miscalibration"]
        assert row["estimate"] == pytest.approx(row["miscalibration"] - row["discrimination"] + alone.uncertainty)
    assert frame.loc["accuracy", "miscalibration"].isna().all()
    assert "TemperatureScaling(), fitted to the other 4 of 5 folds" in str(board["log_score"])


def test_scores_are_not_divided_unless_a_method_is_named():
    y_true, models = problem()
    assert "miscalibration" not in ct.leaderboard(y_true, models, **FAST).to_frame()


def test_what_cannot_be_divided_is_said():
    y_true, models = problem(9)
    board = ct.leaderboard(y_true, models, recalibrator=TemperatureScaling(), **FAST)
    assert [note.code for note in board.notes if note.code == "C219"] == ["C219"]
    assert "miscalibration" not in board.to_frame()
    with pytest.raises(TypeError, match="`recalibrator` must be a method"):
        ct.leaderboard(*problem(), recalibrator="temperature", **FAST)


def test_cautions_of_the_method_name_the_models():
    y_true, models = problem()
    board = ct.leaderboard(y_true, models, by="log_score", recalibrator=IsotonicCalibration(), **FAST)
    impossible = [note.text for note in board.notes if note.code == "C705"]
    assert impossible
    assert all(any(name in text.split(":")[0] for name in models) for text in impossible)
