"""The picture of a leaderboard shows ranks, their sets and the tiers."""

import numpy as np
from matplotlib.figure import Figure

import caltest as ct
from caltest.recalibration import TemperatureScaling
from tests.ranking.test_leaderboard import FAST, problem


def test_bars_are_the_sets_and_dots_the_ranks():
    y_true, models = problem()
    board = ct.leaderboard(y_true, models, by=("brier", "accuracy"), **FAST)
    axes = Figure(layout="constrained").subplots(1, 2)
    assert list(board.plot(axes)) == list(axes)
    for ax, ranking in zip(axes, board, strict=True):
        bars = sorted((bar for bars in ax.containers for bar in bars), key=lambda bar: bar.get_y())
        sets = [(bar.get_x() + 0.3, bar.get_x() + bar.get_width() - 0.3) for bar in bars]
        np.testing.assert_allclose(sets, [model.rank_interval for model in ranking])
        dots = sorted((line.get_ydata()[0], line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o")
        assert [rank for _, rank in dots] == [model.rank for model in ranking]
        assert [label.get_text() for label in ax.get_yticklabels()] == [model.name for model in ranking]
        tiers = {text.get_text() for text in ax.texts}
        assert tiers == {f"tier {model.tier}" for model in ranking}
        assert ax.get_title() == ranking.words


def test_errors_without_ranks_have_a_panel_in_the_order_of_the_first_ranking():
    y_true, models = problem(500)
    board = ct.leaderboard(y_true, models, by=("brier", "KS"), **FAST)
    axes = Figure(layout="constrained").subplots(1, 2)
    board.plot(axes)
    order = [model.name for model in board["brier"]]
    assert [label.get_text() for label in axes[1].get_yticklabels()] == order
    found, other = axes[1].lines
    values = dict(zip([*found.get_ydata(), *other.get_ydata()], [*found.get_xdata(), *other.get_xdata()], strict=True))
    assert [values[place] for place in range(4)] == [board["KS"][name].measure.estimate for name in order]
    assert {order[place] for place in found.get_ydata()} == {"sharp", "vague"}


def test_parts_of_the_first_score_are_the_last_panel():
    y_true, models = problem()
    options = {"recalibrator": TemperatureScaling(), **FAST}
    board = ct.leaderboard(y_true, models, by=("accuracy", "brier"), **options)
    axes = Figure(layout="constrained").subplots(1, 3)
    board.plot(axes)
    dots = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes[2].lines if line.get_marker() == "o"]
    assert dots == [(model.parts.miscalibration, model.parts.discrimination) for model in board["brier"]]
    assert [text.get_text() for text in axes[2].texts] == [str(model.rank) for model in board["brier"]]


def test_long_names_differ_where_they_are_cut():
    y_true, models = problem(30)
    start = "organisation/" * 4
    board = ct.leaderboard(y_true, {f"{start}{name}-instruct": prob for name, prob in models.items()}, **FAST)
    axes = Figure(layout="constrained").subplots(1, 3)
    board.plot(axes)
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert sorted(names) == sorted(f"…{name}…" for name in models)
