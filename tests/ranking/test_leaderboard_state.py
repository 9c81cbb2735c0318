"""A leaderboard of batches: what it shares with that of arrays, merging, files, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from caltest.ranking import LeaderboardState
from caltest.streaming import CalibrationState
from tests.ranking.test_leaderboard import problem

MEASURES = ("log_score", "brier", "accuracy")


def state_of(y_true, models, n_batches=1, by=MEASURES):
    """The state of some batches."""
    found = LeaderboardState(next(iter(models.values())).shape[1], by)
    for rows in np.array_split(np.arange(len(y_true)), n_batches):
        found.update(y_true[rows], {name: prob[rows] for name, prob in models.items()})
    return found


def frame_of(board):
    """What a board says, without what is drawn."""
    return board.to_frame().drop(columns=["rank_lower", "rank_upper", "tier", "pvalue", "pvalue_adjusted"])


def test_estimates_intervals_and_standard_errors_are_those_of_arrays():
    y_true, models = problem(900)
    board = state_of(y_true, models, 7).leaderboard(n_resamples=99, rng=0)
    arrays = ct.leaderboard(y_true, models, by=MEASURES, n_resamples=99, rng=0)
    pd.testing.assert_frame_equal(frame_of(board), frame_of(arrays), rtol=1e-9)
    for one, other in zip(board, arrays, strict=True):
        np.testing.assert_allclose(one.standard_error, other.standard_error, rtol=1e-9, atol=1e-12)
    needed, expected = (one.sample_size(("calibrated", "vague")) for one in (board, arrays))
    assert needed.difference == pytest.approx(expected.difference)
    assert board["log_score"].best == arrays["log_score"].best == ("calibrated", "same")
    assert board["accuracy"].n_separated == 0  # temperatures change no order
    assert board.n_samples == 900


def test_errors_and_pvalues_are_those_of_the_states_of_the_models():
    y_true, models = problem(400)
    board = state_of(y_true, models).leaderboard(by=("brier", "KS"), n_resamples=99, rng=0)
    for name, prob in models.items():
        alone = CalibrationState(3).update(y_true, prob)
        assert board["brier"][name].measure.pvalue == alone.test().pvalue
        assert board["KS"][name].measure.estimate == alone.error(ct.KS())


def test_batches_and_shards_change_nothing_but_rounding():
    y_true, models = problem(600)
    whole = state_of(y_true, models).leaderboard(n_resamples=99, rng=0)
    halves = [
        state_of(y_true[rows], {name: p[rows] for name, p in models.items()}, 3)
        for rows in (slice(200), slice(200, None))
    ]
    for state in (state_of(y_true, models, 11), halves[0] + halves[1], halves[1] + halves[0]):
        found = state.leaderboard(n_resamples=99, rng=0)
        pd.testing.assert_frame_equal(found.to_frame(), whole.to_frame(), rtol=1e-9)
        for one, other in zip(found, whole, strict=True):
            assert (one.pvalue_better == other.pvalue_better).all()


def test_a_file_has_the_same_state():
    y_true, models = problem(100)
    state = state_of(y_true, models, 2)
    again = LeaderboardState.from_bytes(state.to_bytes())
    assert repr(again) == repr(state)
    assert again.to_bytes() == state.to_bytes()
    assert again.leaderboard(rng=0).to_dict() == state.leaderboard(rng=0).to_dict()
    assert again.update(y_true, dict(reversed(models.items()))).n_samples == 200  # in any order of the models
    empty = LeaderboardState.from_bytes(LeaderboardState(3).to_bytes())
    assert (empty + state_of(y_true, models, by=("log_score", "brier"))).n_samples == 100


@pytest.mark.slow(few_draws=True)
def test_an_infinite_loss_of_one_batch_stays():
    y_true, models = problem(300)
    models["hard"] = models["calibrated"].copy()
    models["hard"][7] = np.eye(3)[(y_true[7] + 1) % 3]
    board = state_of(y_true, models, 3).leaderboard(rng=0)
    arrays = ct.leaderboard(y_true, models, by=MEASURES, rng=0, n_resamples=99)
    assert board["log_score"]["hard"].rank_interval == (5, 5)
    assert [note.code for note in board.notes] == ["C216"]
    pd.testing.assert_frame_equal(frame_of(board), frame_of(arrays), rtol=1e-9)


def test_few_observations_separate_nothing():
    y_true, models = problem(4)
    board = state_of(y_true, models).leaderboard(rng=0)
    assert not any(ranking.n_separated for ranking in board)
    assert [note.code for note in board.notes] == ["C304"]


@pytest.mark.parametrize(
    ("refused", "error", "text"),
    [
        (lambda y, m: LeaderboardState(1), ValueError, "`n_classes`"),
        (
            lambda y, m: LeaderboardState(by="l2"),
            ValueError,
            "`by` of a state must be of log_score, brier and accuracy",
        ),
        (lambda y, m: LeaderboardState(by="KS"), ValueError, "`leaderboard` of a state takes errors, got 'KS'"),
        (lambda y, m: LeaderboardState(2).leaderboard(), ValueError, "the state is empty"),
        (lambda y, m: LeaderboardState(2).update(y, m), ValueError, "must predict 2 classes .*, got 3"),
        (lambda y, m: state_of(y, m).update(y, {"a": m["vague"], "b": m["sharp"]}), ValueError, "same in every batch"),
        (lambda y, m: state_of(y, m).update(y, {"a": m["vague"]}), ValueError, "at least two models, got 1"),
        (lambda y, m: state_of(y, m).merge(state_of(y, m, by="brier")), ValueError, "the same models, measures"),
        (lambda y, m: state_of(y, m).merge(CalibrationState(3)), TypeError, "must be a LeaderboardState"),
        (lambda y, m: state_of(y, m, by="brier").leaderboard(by="accuracy"), ValueError, "`by` must be of brier, or"),
        (lambda y, m: state_of(y, m).leaderboard(by="Omnibus"), ValueError, "combines tests"),
        (lambda y, m: state_of(y, m).leaderboard(confidence_level=95), ValueError, "`confidence_level`"),
        (lambda y, m: LeaderboardState.from_bytes(CalibrationState(3).to_bytes()), ValueError, "a state of one model"),
        (lambda y, m: LeaderboardState.from_bytes(state_of(y, m).to_bytes()[:-9]), ValueError, "truncated"),
        (lambda y, m: CalibrationState.from_bytes(state_of(y, m).to_bytes()), ValueError, "settings of a calibration"),
        (
            lambda y, m: ct.leaderboard(y, {"a": CalibrationState(3), "b": CalibrationState(3)}),
            TypeError,
            "a CalibrationState holds no predictions: .* LeaderboardState",
        ),
    ],
)
def test_what_is_refused(refused, error, text):
    with pytest.raises(error, match=text):
        refused(*problem(20))


def test_nothing_of_a_refused_batch_is_added():
    y_true, models = problem(50)
    state = state_of(y_true, models)
    before = state.to_bytes()
    models["vague"][3, 0] = np.nan
    with pytest.raises(ValueError, match="vague"):
        state.update(y_true, models)
    assert state.to_bytes() == before


def test_models_that_all_gave_probability_0_to_a_label_are_not_told_apart():
    y_true, wrong = np.arange(30) % 2, np.tile([1.0, 0.0], (30, 1))
    state = LeaderboardState(by="log_score").update(y_true, {"one": wrong, "other": wrong[:, ::-1]})
    found = state.leaderboard(n_resamples=99, rng=0).to_frame()
    assert np.isinf(found["estimate"]).all()
    assert (found["rank_lower"] == 1).all()
