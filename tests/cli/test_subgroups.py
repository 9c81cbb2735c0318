"""``caltest subgroups``: the tests of the function, for the columns of a file."""

import numpy as np
import pandas as pd
import pytest

import caltest

FAST = ("--resamples", "199")


@pytest.fixture
def hospital(tmp_path):
    rng = np.random.default_rng(0)
    risk, site = rng.uniform(0.2, 0.8, 1200), np.repeat(["north", "south", ""], 400)
    died = rng.random(1200) < risk + 0.15 * (site == "north")
    frame = pd.DataFrame({"site": site, "age": np.arange(1200) % 60, "risk": risk, "died": died.astype(int)})
    frame.to_csv(tmp_path / "hospital.csv", index=False)
    return tmp_path / "hospital.csv", frame


def test_it_says_which_subgroups_are_wrong(hospital, tmp_path, run, answer):
    path, frame = hospital
    code, text, err = run(
        "subgroups", path, "--by", "site,age", "--ranges", "2", "--plot", tmp_path / "s.png", "--exit-code", *FAST
    )
    assert code == 1
    assert "picture of the subgroups written" in err
    assert "site" not in err, "a column that is used needs no note"
    lines = " ".join(text.split())
    assert "2 of 5 subgroups are rejected after Holm's correction: site=north and age 0 to 29." in lines
    north = frame[frame["site"] == "north"]
    assert f"site=north 400 {100 * north['risk'].mean():.1f} % {100 * north['died'].mean():.1f} %" in lines
    assert "site missing 400" in lines
    assert "age 0 to 29 600" in lines
    found = answer("subgroups", path, "--by", "site", "--by", "age", "--ranges", "2")
    words = frame.assign(site=frame["site"].replace("", "z"), age=frame["age"] // 30)
    expected = caltest.subgroup_tests(
        frame["died"], frame["risk"], subgroup=words[["site", "age"]], n_resamples=99, rng=0
    )
    assert found["pvalue"] == expected.pvalue
    assert [one["pvalue_adjusted"] for one in found["tests"]] == expected.pvalue_adjusted.tolist()
    assert [one["label"] for one in found["tests"]] == [one["subgroup"] for one in found["means"]]
    assert found["means"][1]["observed"] == pytest.approx(frame["died"][frame["site"] == "south"].mean())


@pytest.mark.slow(few_draws=True)
def test_segments_of_two_columns(hospital, tmp_path, run, answer):
    path, frame = hospital
    options = ("--by", "site,age", "--depth", "2", "--max-segments", "12")
    code, text, err = run("subgroups", path, *options, "--plot", tmp_path / "s.png", *FAST)
    assert code == 0
    assert "The 7 smallest of 19 segments are left out by --max-segments 12" in err
    assert "p (min-p)" in text
    assert "Segments are made by one column, and by two together" in " ".join(text.split())
    found = answer("subgroups", path, *options)
    with pytest.warns(caltest.results.CalibrationWarning):
        expected = caltest.subgroup_tests(
            frame["died"],
            frame["risk"],
            subgroup=frame[["site", "age"]],
            depth=2,
            max_segments=12,
            n_resamples=99,
            rng=0,
        )
    assert found["pvalue"] == expected.pvalue
    assert [one["segment"] for one in found["means"]] == list(expected.subgroups)
    for more, message in [
        (("--max-segments", "9"), "--max-segments is for --depth 2"),
        (("--depth", "2", "--ranges", "9"), "--depth 2 has 4 ranges; leave out --ranges"),
        (("--depth", "2", "--folds", "site"), "--depth 2 is for one model; leave out --folds"),
    ]:
        code, _, err = run("subgroups", path, "--by", "age", *more)
        assert code == 2
        assert message in err


def test_several_classes_have_a_confidence_and_folds_are_tested_by_fold(named, tmp_path, run):
    frame = pd.read_csv(named).assign(shop=["A", "B", "B"] * 20, fold=[0, 1] * 30)
    frame.to_csv(named, index=False)
    code, text, err = run("subgroups", named, "--by", "shop", "--folds", "fold", *FAST)
    assert (code, err) == (0, "")
    confidence = frame[["p_cat", "p_dog", "p_eel"]].max(axis=1)[frame["shop"] == "A"].mean()
    assert f"shop=A 20 {100 * confidence:.1f} %" in " ".join(text.split())
    assert "confidence" in text
    details = run("subgroups", named, "--by", "shop", "--details", *FAST)[1]
    assert "Null distribution" in details
    assert "shop=B" in details


def test_refusals(named, run):
    for by, words in (
        ("label", "is named for two things"),
        ("plant", "there is no column 'plant' for --by; the columns are"),
        ("shop,shop", "--by names the column 'shop' twice"),
    ):
        code, out, err = run("subgroups", named, "--label", "label", "--by", by, *FAST)
        assert (code, out, words in err) == (2, "", True), err
    assert "--by" in run("subgroups", named)[2]
