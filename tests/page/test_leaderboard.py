"""The page of a leaderboard holds the answer, is whole, and lets no name break it."""

import re
from html import escape

import pytest

import caltest as ct
from caltest.recalibration import TemperatureScaling
from tests.ranking.test_leaderboard import FAST, problem


def written(path, **how):
    y_true, models = problem()
    models["<b>bold & long</b>"] = models.pop("vague")
    models["lacking"] = models["sharp"].copy()
    models["lacking"][:5] = float("nan")
    options = {"by": ("log_score", "KS"), "recalibrator": TemperatureScaling(), **FAST}
    board = ct.leaderboard(y_true, models, **options)
    return board, ct.page.write_leaderboard(board, path / "board.html", **how).read_text(encoding="utf-8")


def test_the_page_has_the_answer_and_needs_nothing_else(tmp_path):
    board, html = written(tmp_path, command="caltest leaderboard a.csv b.csv")
    best = board["log_score"].best
    assert f"{len(best)} of 5 may be the best" in html
    assert escape(board["log_score"].conclusion) in html
    for model in board["log_score"]:
        assert model.rank_set in html
    assert "Calibration or discrimination" in html
    assert "By KS (confidence)" in html
    assert 'href="#c215"' in html
    assert 'id="c215"' in html
    assert "caltest leaderboard a.csv b.csv" in html
    assert re.findall(r'(?:src|href)="(?!data:|#)', html) == []


@pytest.mark.slow(few_draws=True)
def test_names_are_escaped(tmp_path):
    _, html = written(tmp_path)
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold &amp; long&lt;/b&gt;" in html


@pytest.mark.slow(few_draws=True)
def test_the_word_is_about_the_model_that_is_judged(tmp_path):
    board, html = written(tmp_path, model="sharp")
    word = "A better model is shown" if board["log_score"].better_than("sharp") else "No better model is shown"
    assert word in html
    with pytest.raises(KeyError, match="no model 'ours'"):
        written(tmp_path, model="ours")


def test_what_is_no_board_is_refused(tmp_path):
    with pytest.raises(TypeError, match="`board` must be a Leaderboard"):
        ct.page.write_leaderboard({}, tmp_path / "board.html")
