"""The leaderboard: what is refused, what is noted, and that the answer does not depend on how it is found."""

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from tests.comparison.models import temper
from tests.reference.examples import draw_labels

FAST = {"n_resamples": 99, "rng": 0, "progress": False}


def problem(n=200, n_classes=3, seed=0):
    """Labels and models, from the right one to vague ones."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.5), n)
    models = {"calibrated": truth, "sharp": temper(truth, 0.5), "vague": temper(truth, 3.0), "same": truth.copy()}
    return draw_labels(truth, rng), models


def test_the_best_models_are_in_the_first_tier():
    y_true, models = problem(500)
    board = ct.leaderboard(y_true, models, by=("log_score", "accuracy"), **FAST)
    ranking = board["log_score"]
    assert set(ranking.best) == {"calibrated", "same"}
    assert ranking["calibrated"].rank == ranking["same"].rank == 1
    assert ranking["calibrated"].rank_interval == ranking["same"].rank_interval == (1, 2)
    assert ranking["vague"].tier == 2
    assert set(ranking.better_than("vague")) >= {"calibrated", "same"}
    assert "2 of 4 models may be the best" in board.conclusion
    assert board["accuracy"].larger_is_better
    assert board["accuracy"].n_separated == 0  # a temperature changes no order


def test_a_frame_has_a_row_for_each_measure_and_model():
    y_true, models = problem()
    frame = ct.leaderboard(y_true, models, **FAST).to_frame()
    assert list(frame.columns) == [
        *("measure", "model", "rank", "rank_lower", "rank_upper", "tier", "estimate", "lower", "upper"),
        *("if_calibrated", "pvalue", "pvalue_adjusted"),
    ]
    assert frame.groupby("measure").size().to_dict() == {"log_score": 4, "brier": 4, "l2": 4}
    assert (frame["rank_lower"] <= frame["rank"]).all()
    assert (frame["rank"] <= frame["rank_upper"]).all()


def test_the_number_of_workers_changes_nothing():
    y_true, models = problem()
    one, two = (ct.leaderboard(y_true, models, workers=workers, **FAST).to_dict() for workers in (1, 2))
    assert one == two


def test_two_classes_may_be_one_column():
    rng = np.random.default_rng(0)
    risk = rng.uniform(0, 1, 150)
    y_true = (rng.random(150) < risk).astype(int)
    models = {"a": risk, "b": np.sqrt(risk)}
    wide = {name: np.column_stack([1 - p, p]) for name, p in models.items()}
    assert ct.leaderboard(y_true, models, **FAST).to_dict() == ct.leaderboard(y_true, wide, **FAST).to_dict()


def test_groups_of_copies_are_worth_one_observation_each():
    y_true, models = problem(60)
    once = ct.leaderboard(y_true, models, by="brier", **FAST)
    copies = {name: np.repeat(prob, 3, axis=0) for name, prob in models.items()}
    groups = np.repeat(np.arange(60), 3)
    thrice = ct.leaderboard(np.repeat(y_true, 3), copies, by="brier", groups=groups, **FAST)
    assert thrice.n_groups == 60
    assert (thrice["brier"].pvalue_better == once["brier"].pvalue_better).all()


def test_observations_of_weight_0_do_not_count():
    y_true, models = problem(100)
    kept = {name: prob[:80] for name, prob in models.items()}
    weight = np.repeat([1.0, 0.0], [80, 20])
    expected = ct.leaderboard(y_true[:80], kept, **FAST).to_dict()
    assert ct.leaderboard(y_true, models, sample_weight=weight, **FAST).to_dict() == expected


def test_weights_of_one_change_nothing():
    y_true, models = problem(100)
    plain = ct.leaderboard(y_true, models, **FAST).to_dict()
    assert ct.leaderboard(y_true, models, sample_weight=np.ones(100), **FAST).to_dict() == plain


def test_named_columns_may_stand_in_any_order():
    y_true, models = problem(100)
    label = np.array(["x", "y", "z"])[y_true]
    frames = {name: pd.DataFrame(prob, columns=["x", "y", "z"]) for name, prob in models.items()}
    frames |= {"sharp": frames["sharp"][["z", "x", "y"]], "vague": frames["vague"][["y", "z", "x"]]}
    expected = ct.leaderboard(y_true, models, **FAST).to_dict()["rankings"]
    assert ct.leaderboard(label, frames, **FAST).to_dict()["rankings"] == expected


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_few_observations_separate_nothing(n):
    y_true, models = problem(n)
    board = ct.leaderboard(y_true, models, **FAST)
    assert not any(ranking.n_separated for ranking in board)
    assert "C304" in {note.code for note in board.notes}
    with pytest.raises(ValueError, match="inf of these tell two models apart"):
        board.sample_size(("calibrated", "vague"))


def test_missing_predictions_are_left_out_for_all_and_noted():
    y_true, models = problem(100)
    kept = {name: prob[10:] for name, prob in models.items()}
    models["vague"][:10] = np.nan
    board = ct.leaderboard(y_true, models, **FAST)
    assert board.n_samples == 90
    assert board["brier"].to_dict() == ct.leaderboard(y_true[10:], kept, **FAST)["brier"].to_dict()
    (note,) = [note for note in board.notes if note.code == "C215"]
    assert "10 observations of 100 lack" in note.text
    assert "'vague' lacks 10 (the first is row 0)" in note.text


def test_too_many_missing_predictions_are_refused():
    y_true, models = problem(100)
    models["vague"][20:80] = np.nan
    with pytest.raises(ValueError, match=r"60 of 100 observations lack .* 'vague' lacks 60 \(the first is row 20\)"):
        ct.leaderboard(y_true, models, **FAST)
    models["sharp"][:5] = np.nan
    with pytest.raises(ValueError, match=r"Without the model that lacks most, 95 observations are left: vague\."):
        ct.leaderboard(y_true, models, **FAST)
    many = {f"m{i}": np.where((np.arange(100) // 10 == i)[:, None], np.nan, models["same"]) for i in range(10)}
    with pytest.raises(ValueError, match=r"100 of 100 .* Without the 5 models .* 50 observations are left: m"):
        ct.leaderboard(y_true, many, **FAST)


def test_a_row_that_is_nan_in_part_is_refused_with_its_model():
    y_true, models = problem(100)
    models["sharp"][7, 1] = np.nan
    with pytest.raises(ValueError, match=r"sharp: .*row 7"):
        ct.leaderboard(y_true, models, **FAST)


def test_an_infinite_score_is_last_and_noted():
    y_true, models = problem(100)
    models["hard"] = np.eye(3)[(y_true + (np.arange(100) < 5)) % 3]
    board = ct.leaderboard(y_true, models, by=("log_score", "brier"), **FAST)
    assert board["log_score"]["hard"].rank_interval == (5, 5)
    assert board["log_score"]["hard"].tier > 1
    assert board["brier"]["hard"].rank == 1
    assert [note.code for note in board.notes if note.code == "C216"] == ["C216"]


def test_few_groups_separate_nothing_and_a_note_has_their_number():
    y_true, models = problem(100)
    board = ct.leaderboard(y_true, models, by="brier", groups=np.arange(100) % 4, **FAST)
    assert board["brier"].n_separated == 0
    assert "Fewer than 5" in next(note.text for note in board.notes if note.code == "C303")


def test_a_lead_of_one_step_changes_nothing_and_a_longer_one_is_named():
    y_true, models = problem(300)
    plain = ct.leaderboard(y_true, models, **FAST).to_dict()
    assert ct.leaderboard(y_true, models, time=np.arange(300), **FAST).to_dict() == plain
    board = ct.leaderboard(y_true, models, time=np.arange(300), lead=7, **FAST)
    assert board.lead == "7"
    assert "which may depend on each other within 7," in str(board)
    assert board["brier"].to_frame()["estimate"].tolist() == pytest.approx(
        [one["measure"]["estimate"] for one in plain["rankings"][1]["models"]]
    )
    assert board["brier"].pvalue_better.min() < 0.05


def test_the_order_of_observations_in_time_changes_nothing():
    y_true, models = problem(200)
    order = np.random.default_rng(1).permutation(200)
    options = {"by": "brier", "lead": 5, **FAST}
    board = ct.leaderboard(y_true, models, time=np.arange(200), **options)["brier"]
    moved = {name: prob[order] for name, prob in models.items()}
    again = ct.leaderboard(y_true[order], moved, time=np.arange(200)[order], **options)["brier"]
    assert np.abs(board.pvalue_better - again.pvalue_better).max() <= 0.02  # of 99 draws, sums that rounding reorders


def test_little_time_separates_nothing_and_a_note_has_its_length():
    y_true, models = problem(100)
    board = ct.leaderboard(y_true, models, by="brier", time=np.arange(100), lead=20, **FAST)
    assert board["brier"].n_separated == 0
    assert "span 5 times the lead (20). Fewer than 9" in next(note.text for note in board.notes if note.code == "C305")


@pytest.mark.nightly
def test_models_that_are_equally_good_in_time_are_seldom_separated():
    """Predictions of a label that is known after ten steps: their errors are shared by ten days in a row."""
    rng, n, lead, n_sets, missed = np.random.default_rng(11), 400, 10, 150, {"with": 0, "without": 0}
    for _ in range(n_sets):
        shock = np.convolve(rng.normal(size=n + lead - 1), np.ones(lead) / np.sqrt(lead), "valid")
        y_true = (shock > 0).astype(int)
        models = {}
        for name in "abcd":
            own = np.convolve(rng.normal(size=n + lead - 1), np.ones(lead) / np.sqrt(lead), "valid")
            models[name] = 1 / (1 + np.exp(-own))
        for name, options in {"with": {"time": np.arange(n), "lead": lead}, "without": {}}.items():
            board = ct.leaderboard(y_true, models, by="brier", n_resamples=99, rng=rng, progress=False, **options)
            missed[name] += board["brier"].n_separated > 0
    assert missed["with"] <= n_sets * 0.05 + 4 * np.sqrt(n_sets * 0.05 * 0.95)
    assert missed["without"] > n_sets * 0.2


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"models": {"one": [[0.5, 0.5]] * 4}}, ValueError, "at least two models, got 1"),
        ({"models": {"a": [[0.5, 0.5]] * 4, "b": [[0.5, 0.5]] * 3}}, ValueError, r"b \(3, 2\)"),
        ({"models": {"a": [[0.5, 0.5]] * 4, "b": [[0.5, 0.3, 0.2]] * 4}}, ValueError, r"b \(4, 3\)"),
        ({"y_true": [0, 1, 1]}, ValueError, "y_true"),
        (
            {"by": "kss"},
            ValueError,
            "`by` 'kss': there is no kss.* ranked by 'log_score', 'brier'",
        ),
        ({"by": "Omnibus"}, ValueError, "combines tests and estimates no error"),
        ({"by": "SquaredL2"}, ValueError, 'name it "l2"'),
        ({"by": ("KS", ct.KS())}, ValueError, "different measures"),
        ({"by": [3]}, TypeError, "`by` must be a statistic"),
        ({"time": [0, 1, 2, 3], "groups": [0, 0, 1, 1]}, ValueError, "`groups` and `time` cannot be taken together"),
        ({"time": range(4), "recalibrator": "temperature"}, ValueError, "`recalibrator` and `time` cannot be taken"),
        ({"lead": 2}, ValueError, "`lead` needs `time`"),
        ({"by": ("l2", "l2")}, ValueError, "different measures"),
        ({"by": ()}, ValueError, "one measure at least"),
        ({"by": 3}, TypeError, "`by` must be a measure"),
        ({"confidence_level": 95}, ValueError, "`confidence_level`"),
        ({"sample_weight": [0, 0, 0, 0]}, ValueError, "sample_weight"),
    ],
)
def test_wrong_arguments_are_refused(change, error, text):
    models = {"a": [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1], [0.4, 0.6]], "b": [[0.3, 0.7]] * 4}
    given = {"y_true": [0, 1, 1, 0], "models": models, **FAST} | change
    with pytest.raises(error, match=text):
        ct.leaderboard(given.pop("y_true"), given.pop("models"), **given)
