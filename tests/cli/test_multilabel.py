"""``caltest test --multilabel``: the table of `multilabel_table`, for the columns of a file."""

import numpy as np
import pandas as pd
import pytest

import caltest
from tests.reference.cases import mostly_slow

FAST = ("--resamples", "199")


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    prob = rng.beta(2, 4, (400, 3))
    label = (rng.random((400, 3)) < prob + np.array([0, 0.15, 0])).astype(float)
    label[:50, 2] = np.nan
    names = ["cat", "dog", "eel"]
    frame = pd.DataFrame(label, columns=names).assign(**{f"{name}_prob": prob[:, k] for k, name in enumerate(names)})
    frame.insert(0, "site", np.arange(400) % 80)
    frame.to_csv(tmp_path / "pictures.csv", index=False)
    return tmp_path / "pictures.csv", frame


def test_it_says_which_labels_are_wrong(pictures, run, answer):
    path, frame = pictures
    code, text, err = run("test", path, "--multilabel", "--exit-code", *FAST)
    assert (code, err) == (1, "")
    lines = " ".join(text.split())
    assert "400 observations, 3 labels." in lines
    predicted, observed = 100 * frame["dog_prob"].mean(), 100 * frame["dog"].mean()
    assert f'probabilities of "dog" are too low: {predicted:.1f} % predicted, {observed:.1f} % observed.' in lines
    assert "cat -> cat, cat_prob" in lines
    assert "`caltest repair" in lines
    assert "--label dog --prob dog_prob -o repaired.csv`" in lines
    assert "1 of 3 labels is not known for all 400 observations" in lines
    found = answer("test", path, "--multilabel")
    names = ["cat", "dog", "eel"]
    given = frame[[f"{name}_prob" for name in names]].set_axis(names, axis=1)
    expected = caltest.multilabel_table(frame[names], given, n_resamples=99, rng=0)
    assert found["pvalue"] == expected.pvalue
    assert [one["label"] for one in found["means"]] == names
    assert found["data"]["columns"][0] == {"name": "cat", "label": "cat", "prob": "cat_prob"}
    assert found["verdict"]["decision"] == "rejected"
    _, details, _ = run("test", path, "--multilabel", "--details", *FAST)
    assert "Null distribution" in details


@pytest.mark.slow(few_draws=True)
def test_the_command_that_it_advises_is_accepted(pictures, tmp_path, run):
    path, _ = pictures
    out = tmp_path / "repaired.csv"
    code, *_ = run("repair", path, "--label", "dog", "--prob", "dog_prob", "-o", out, *FAST)
    assert (code, out.exists()) == (0, True)


@pytest.mark.slow(few_draws=True)
def test_percentages_and_logits(pictures, tmp_path, answer, run):
    path, frame = pictures
    names = ["cat_prob", "dog_prob", "eel_prob"]
    expected = answer("test", path, "--multilabel")["tests"]
    frame.assign(**{name: 100 * frame[name] for name in names}).to_csv(tmp_path / "percent.csv", index=False)
    frame.assign(**{name: np.log(frame[name] / (1 - frame[name])) for name in names}).to_csv(tmp_path / "logits.csv")
    for kind in ("percent", "logits"):
        found = answer("test", tmp_path / f"{kind}.csv", "--multilabel", f"--{kind}")["tests"]
        for one, other in zip(found, expected, strict=True):
            assert one["pvalue"] == other["pvalue"], kind
            assert one["statistic"] == pytest.approx(other["statistic"])
        code, _, err = run("test", tmp_path / f"{kind}.csv", "--multilabel")
        assert (code, f"--{kind}" in err) == (2, True), err


@pytest.mark.slow(few_draws=True)
def test_labels_that_are_known_later(pictures, run, answer):
    path, frame = pictures
    dated = frame.assign(day=pd.date_range("2024-01-01", periods=400).astype(str), later="7D")
    dated.to_csv(path, index=False)
    names = ["cat", "dog", "eel"]
    given = frame[[f"{name}_prob" for name in names]].set_axis(names, axis=1)
    expected = caltest.multilabel_table(frame[names], given, time=dated["day"], lead=7, n_resamples=99, rng=0)
    for lead in ("7D", "later"):
        found = answer("test", path, "--multilabel", "--time", "day", "--lead", lead)
        assert found["pvalue"] == expected.pvalue, lead
    code, _, err = run("test", path, "--multilabel", "--lead", "7")
    assert (code, "--lead needs --time" in err) == (2, True)


@pytest.mark.slow(few_draws=True)
def test_arrays_of_numpy_are_labels_and_probabilities(pictures, tmp_path, run, answer):
    _, frame = pictures
    names = ["cat", "dog", "eel"]
    label, prob = frame[names].to_numpy(), frame[[f"{name}_prob" for name in names]].to_numpy()
    np.savez(tmp_path / "a.npz", targets=label, probs=prob, site=frame["site"])
    named = ("--label", "targets", "--plot", tmp_path / "a.png")
    found = answer("test", tmp_path / "a.npz", "--multilabel", *named, "--groups", "site")
    expected = caltest.multilabel_table(label, prob, groups=frame["site"], n_resamples=99, rng=0)
    assert found["pvalue"] == expected.pvalue
    assert found["data"]["columns"][1] == {"name": "1", "label": "targets[1]", "prob": "probs[1]"}
    assert (tmp_path / "a.png").stat().st_size > 0
    text = run("test", tmp_path / "a.npz", "--multilabel", *named, *FAST)[1]
    assert "do not use the probabilities of these labels" in text
    assert "caltest repair" not in text, "it reads one label, not a column of an array"
    code, _, err = run("test", tmp_path / "a.npz", "--multilabel", "--label", "probs", "--prob", "targets")
    assert (code, ".." in err) == (2, False)
    code, _, err = run("test", tmp_path / "a.npz", "--multilabel")
    assert (code, "--label must name one array of this file: targets, probs, site" in err) == (2, True)
    code, _, err = run("test", tmp_path / "a.npz", "--multilabel", "--label", "site")
    assert "two arrays of the same shape (n_samples, n_labels), got 'site' of shape (400,) and 'probs'" in err


@pytest.mark.slow(few_draws=True)
def test_columns_may_be_named(pictures, run, answer):
    path, frame = pictures
    two = ("--multilabel", "--label", "dog,cat", "--prob", "dog_prob,cat_prob", "--groups", "site")
    found = answer("test", path, *two)
    names = ["dog", "cat"]
    given = frame[[f"{name}_prob" for name in names]].set_axis(names, axis=1)
    assert (
        found["pvalue"]
        == caltest.multilabel_table(frame[names], given, groups=frame["site"], n_resamples=99, rng=0).pvalue
    )
    assert found["names"] == names
    text = " ".join(run("test", path, *two, *FAST)[1].split())
    assert "--label dog --prob dog_prob --groups site -o repaired.csv`" in text, "folds do not divide groups"


@pytest.mark.slow(few_draws=True)
def test_labels_may_be_yes_and_no(pictures, tmp_path, run, answer):
    path, frame = pictures
    names = ["cat", "dog", "eel"]
    words = frame.copy()
    words[names] = words[names].replace({1.0: "Yes", 0.0: "No"})
    words.to_csv(tmp_path / "words.csv", index=False)
    found = answer("test", tmp_path / "words.csv", "--multilabel")
    expected = answer("test", path, "--multilabel")
    assert found["tests"] == expected["tests"]
    assert (found["data"]["event"], expected["data"]["event"]) == ("Yes", None)
    _, text, _ = run("test", tmp_path / "words.csv", "--multilabel", *FAST)
    assert "'Yes' means that a row has the label" in " ".join(text.split())
    words.replace({"Yes": "furry"}).to_csv(tmp_path / "words.csv", index=False)
    _, _, err = run("test", tmp_path / "words.csv", "--multilabel")
    assert "must hold 0 and 1, or words such as yes and no, got No, furry" in err


@pytest.mark.parametrize(
    ("more", "match"),
    mostly_slow(
        [
            (("--label", "dog"), "as many columns in --label as in --prob, got 1 and 0"),
            (("--label", "dog,dog", "--prob", "cat_prob,eel_prob"), "the column 'dog' is named twice"),
            (("--label", "fox", "--prob", "cat_prob"), "there is no column 'fox'; the columns are site, cat"),
            (("--groups", "nothing"), "there is no column 'nothing'"),
            (("--lens", "Confidence()"), "--lens is for a single label"),
            (("--classes", "1"), "--classes is for a single label"),
            (
                ("--label", "site", "--prob", "cat_prob"),
                "must hold 0, 1, and NaN .*, got 2 in row 2 .* of the label 'site'",
            ),
        ]
    ),
)
def test_bad_input_is_one_line(pictures, run, more, match):
    import re

    code, text, err = run("test", pictures[0], "--multilabel", *more, *FAST)
    assert (code, text, err.count("\n")) == (2, "", 1)
    assert re.search(match, err), err


def test_it_needs_a_file(run):
    assert "needs a FILE" in run("test", "--multilabel")[2]
