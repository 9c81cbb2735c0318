"""``caltest clinical``: the table of `clinical_calibration` for a file, below the verdict of ``caltest test``."""

import numpy as np
import pandas as pd
import pytest

from caltest.clinical import calibration_by_site, clinical_calibration


@pytest.fixture
def hospital(tmp_path):
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 3, 300).round(3)
    frame = pd.DataFrame(
        {"ward": np.arange(300) % 12, "risk": risk, "died": np.where(rng.random(300) < risk, "yes", "no")}
    )
    frame.to_csv(tmp_path / "hospital.csv", index=False)
    return tmp_path / "hospital.csv", frame


def test_it_is_the_table_of_the_function(hospital, tmp_path, run, answer):
    path, frame = hospital
    files = ("--plot", tmp_path / "c.png", "--latex", tmp_path / "t.tex")
    code, text, err = run("clinical", path, "--thresholds", "0.1,0.3", "--resamples", "99", *files)
    assert code == 0
    assert "picture of the curve written" in err
    assert (tmp_path / "c.png").stat().st_size > 10_000
    assert (tmp_path / "t.tex").read_text().startswith(r"\begin{tabular}")
    expected = clinical_calibration(frame["died"] == "yes", frame["risk"], thresholds=[0.1, 0.3], n_resamples=99, rng=0)
    lines = " ".join(text.split())
    for measure in expected:
        assert " ".join(measure.row[:2]) in lines
    test = run("test", path, "--resamples", "99")[1]
    first = " ".join(" ".join(test.split("\n\n")[1].split()).split(". ")[:1])
    assert first in lines, "the first sentence is that of caltest test"
    found = answer("clinical", path, "--thresholds", "0.1,0.3")
    assert [one["estimate"] for one in found["measures"]] == [one["estimate"] for one in expected.to_dict()["measures"]]
    assert [one["threshold"] for one in found["net_benefits"]] == [0.1, 0.3]


@pytest.mark.slow(few_draws=True)
def test_groups(hospital, run):
    path, _ = hospital
    code, text, _ = run("clinical", path, "--groups", "ward", "--resamples", "99")
    assert code == 0
    assert "300 observations in 12 groups" in " ".join(text.split())


@pytest.mark.slow(few_draws=True)
def test_sites(hospital, run, answer):
    path, frame = hospital
    frame["hospital"] = frame["ward"] % 3
    frame.to_csv(path, index=False)
    text = run("clinical", path, "--by", "hospital", "--resamples", "99")[1]
    assert "Calibration by site (300 observations, 3 sites)" in text
    expected = calibration_by_site(frame["died"] == "yes", frame["risk"], site=frame["hospital"], n_resamples=99, rng=0)
    found = answer("clinical", path, "--by", "hospital")["by_site"]
    assert [one["name"] for one in found["sites"]] == [one.name for one in expected]
    assert [one["estimate"] for one in found["summaries"]] == [one.estimate for one in expected.summaries]


def test_refusals(hospital, named, run):
    path, _ = hospital
    for more, said in (
        (("--thresholds", "0.1,2"), "must be risks strictly between 0 and 1, such as 0.1,0.2, got '2'"),
        (("--smoother", "kernel"), "invalid choice: 'kernel'"),
        (("--folds", "ward"), "leave out --folds"),
        (("--by", "ward,risk"), "--by names one column"),
    ):
        code, _, err = run("clinical", path, *more)
        assert code == 2
        assert said in err
    code, _, err = run("clinical", named)
    assert code == 2
    assert "the table is about one event" in err
    assert "has 3 classes: name one of them, such as --event" in err
    code, _, err = run("clinical", named, "--event", "fish")
    assert code == 2
    assert "--event must be one of the classes" in err


@pytest.mark.slow(few_draws=True)
def test_one_class_of_several(tmp_path, run, answer):
    """It is judged against all others, whatever labels are; the test of the file says the same."""
    rng = np.random.default_rng(1)
    prob = rng.dirichlet([1, 1, 2], 200)
    label = (prob.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    for names in (np.array(["cat", "dog", "owl"]), np.arange(3)):
        frame = pd.DataFrame(prob, columns=[f"p_{name}" for name in names]).assign(label=names[label])
        frame.to_csv(tmp_path / "animals.csv", index=False)
        found = answer("clinical", tmp_path / "animals.csv", "--event", names[1])
        own = clinical_calibration(label == 1, frame[f"p_{names[1]}"], rng=0)
        values = [one["estimate"] for one in found["measures"]]
        assert values == pytest.approx([one.estimate for one in own], rel=1e-9)
        text = run("test", tmp_path / "animals.csv", "--event", names[1])[1]
        assert f'"label = {names[1]}"' in " ".join(text.split())
