"""``caltest leaderboard``: what the function says, from files, and an exit code for pipelines."""

import pandas as pd
import pytest

import caltest

Y_TRUE, MODELS = caltest.datasets.load_digits_predictions()
NAMES = list(MODELS)[:3]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        frame = pd.DataFrame(MODELS[name], columns=[f"p_{k}" for k in range(10)]).assign(digit=Y_TRUE)
        frame.to_csv(folder / f"{name}.csv", index=False)
    return [str(folder / f"{name}.csv") for name in NAMES]


@pytest.mark.slow(few_draws=True)
def test_the_command_says_what_the_function_says(files, run, answer):
    models = {name: MODELS[name] for name in NAMES}
    expected = caltest.leaderboard(Y_TRUE, models, by=["brier"], n_resamples=99, rng=0)
    code, out, err = run("leaderboard", *files, "--by", "brier", "--resamples", "99")
    assert (code, err) == (0, "")
    assert out.rsplit("\n\n", 1)[0] == str(expected)
    found = answer("leaderboard", *files, "--by", "brier")
    assert [file["source"] for file in found.pop("data")] == NAMES
    assert found == expected.to_dict()


@pytest.mark.slow(few_draws=True)
def test_the_exit_code_tells_whether_a_better_model_is_shown(files, run, tmp_path):
    models = {name: MODELS[name] for name in NAMES}
    ranking = caltest.leaderboard(Y_TRUE, models, by="brier", n_resamples=99, rng=0)["brier"]
    best, last = ranking.models[0].name, ranking.models[-1].name
    arguments = ["leaderboard", *files, "--by", "brier", "--resamples", "99"]
    picture = tmp_path / "board.png"
    code, out, _ = run(*arguments, "--model", best, "--plot", picture)
    assert code == 0
    assert f"By Brier score no model is shown to be better than {best}." in out
    assert picture.exists()
    page = tmp_path / "board.html"
    code, out, _ = run(*arguments, "--model", last, "-o", page)
    assert code == 1
    assert "miscalibration" in out
    assert "A better model is shown" in page.read_text(encoding="utf-8")
    code, out, _ = run(*arguments, "--model", last)
    assert code == 1
    assert f"models are shown to be better than {last}: {best}" in " ".join(out.split())


def test_errors_are_named_with_their_parts(files, answer):
    found = answer("leaderboard", *files, "--by", 'brier,RMSCE(15, "equal-width"),KS')
    assert [one["name"] for one in found["unranked"]] == ['RMSCE(15, "equal-width")', "KS"]
    again = answer("leaderboard", *files, "--by", "brier", "--by", 'RMSCE(15, "equal-width"),KS')
    assert again == found, "the last one alone was taken"
    assert [one["name"] for one in found["rankings"]] == ["brier"]


def test_what_cannot_be_ranked_is_refused(files, run):
    for arguments, text in (
        (files[:1], "two files or more"),
        ([*files, "--model", "ours"], "--model: ours is none of"),
        ([*files, "-o", "board.pdf"], "-o must name a page such as PAGE.html"),
        ([*files, "--by", "kss"], "--by 'kss': there is no kss"),
        ([*files, "--by", "KS", "--model", NAMES[0]], "--model needs a measure that ranks"),
    ):
        code, _, err = run("leaderboard", *arguments)
        assert code == 2
        assert text in " ".join(err.split())
