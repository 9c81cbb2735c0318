"""The picture of a leaderboard shows ranks, their sets and the tiers."""

import numpy as np
from matplotlib.figure import Figure

import caltest as ct
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
