"""``caltest plan``: numbers of observations for files without labels."""

import json

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest.hypothesis_tests import plan_sample_size


@pytest.fixture
def risks(tmp_path):
    """A file with one column."""
    risk = np.random.default_rng(0).beta(2, 5, 60).round(4)
    pd.DataFrame({"risk": risk}).to_csv(tmp_path / "risks.csv", index=False)
    return tmp_path / "risks.csv", risk


@pytest.mark.slow
def test_it_answers_both_questions(risks, run):
    path, risk = risks
    code, text, err = run("plan", path)
    assert (code, err) == (0, "")
    found, plan = caltest.detectable_error(risk, rng=0), plan_sample_size(risk, points=5, rng=0)
    head = f'{path}: 60 observations, predicted by "risk" ({100 * risk.mean():.3g} % on average). No labels are needed.'
    assert "".join(text.split()) == "".join(f"{head} {found.conclusion} {plan.conclusion}".split())  # long paths break


def test_an_error_that_is_asked_for(risks, run):
    path, risk = risks
    _, text, _ = run("plan", path, "--factor", "3", "--power", "0.9", "--json")
    found = json.loads(text)
    expected = plan_sample_size(risk, factor=3, power=0.9, rng=0).to_dict()
    assert found["plan"] == expected
    assert found["detectable"] == []
    assert found["data"]["prob"] == ["risk"]
    assert found["data"]["n_samples"] == 60


@pytest.mark.slow
def test_groups(risks, run):
    path, risk = risks
    patient = np.arange(60) // 3
    pd.DataFrame({"risk": risk, "patient": patient, "died": 0}).to_csv(path, index=False)
    for icc, last in (
        ("0", "If all labels of a group are the same: so many groups are needed. The truth lies between the two."),
        ("0.1", "With the intraclass correlation 0.1 up to 1.2 times as many are needed, about"),
    ):
        code, text, _ = run("plan", path, "--groups", "patient", "--icc", icc)
        lines = " ".join(text.split())
        assert code == 0
        assert "There are 20 groups." in lines
        found = caltest.detectable_error(risk, groups=patient.astype(str), icc=float(icc), rng=0)  # as in the file
        assert found.conclusion in lines
        assert "If labels of a group are independent of each other: About" in lines
        assert last in lines


@pytest.mark.slow
def test_rare_events_and_several_classes(named, tmp_path, run):
    pd.DataFrame({"score": np.full(3000, 0.01)}).to_csv(tmp_path / "rare.csv", index=False)
    _, text, _ = run("plan", tmp_path / "rare.csv")
    assert "needed to find true risks of 1.5 times the predicted ones" in " ".join(text.split())
    code, text, _ = run("plan", named, "--temperature", "2")
    assert code == 0
    assert "60 observations, 3 classes (p_cat, p_dog, p_eel). No labels are needed." in " ".join(text.split())
    assert "needed to find a temperature of 2 in 4 of 5 data sets." in " ".join(text.split())


def test_a_column_with_the_name_of_labels_is_not_looked_at(risks, run):
    path, risk = risks
    pd.DataFrame({"label": np.arange(60) % 2 + 0.0, "risk": risk}).to_csv(path, index=False)
    code, text, _ = run("plan", path, "--factor", "3")
    assert code == 0
    assert 'predicted by "risk"' in " ".join(text.split())


def test_certain_predictions_are_answered_in_words(tmp_path, run):
    pd.DataFrame({"p": [0.0, 1.0, 1.0]}).to_csv(tmp_path / "certain.csv", index=False)
    code, text, err = run("plan", tmp_path / "certain.csv")
    assert (code, err) == (0, "")
    assert "All predictions are 0 or 1: one observation that contradicts its prediction" in " ".join(text.split())
    assert "Such predictions cannot have this error" in text


def test_bad_input_is_one_line(risks, run):
    path, _ = risks
    for options, message in (
        (("--groups", "nope"), f"caltest: error: {path}: there is no column 'nope'; the columns are risk\n"),
        (("--power", "0.01"), "caltest: error: --power must be larger than --alpha 0.05, got 0.01.\n"),
        (("--temperature", "2"), "caltest: error: --temperature is for several classes, got 2 classes.\n"),
        (("--icc", "2"), "caltest plan: error: argument --icc: must be a number from 0 to 1, got '2'\n"),
        (("--points", "0"), "caltest plan: error: argument --points: must be a positive number, got '0'\n"),
        (
            ("--points", "1", "--slope", "2"),
            "caltest plan: error: argument --slope: not allowed with argument --points\n",
        ),
        (("--prob", "x"), "caltest: error: risks.csv: there is no column 'x'; the columns are risk; name the "),
    ):
        code, text, err = run("plan", path, *options)
        assert (code, text) == (2, ""), options
        assert err.startswith(message) or err.removeprefix(f"caltest: error: {path.parent}/").startswith(
            message.removeprefix("caltest: error: ")
        ), err


def test_an_error_that_no_probability_can_have_is_refused(tmp_path, run):
    path = tmp_path / "p.csv"
    path.write_text("p\n" + "\n".join(["0.2", "0.3", "0.6"] * 10))
    code, out, err = run("plan", path, "--points", "500")
    assert (code, out) == (2, "")
    assert "--points must be below 100, the largest error of a probability, got 500." in err


@pytest.mark.slow(few_draws=True)
def test_widths_of_a_validation(risks, run):
    path, risk = risks
    asked = "calibration_slope=0.4,net_benefit=0.3"
    code, text, err = run("plan", path, "--points", "20", "--widths", asked, "--thresholds", "0.2,0.4")
    widths = {"calibration_slope": 0.4, "net_benefit": 0.3}
    expected = caltest.clinical.clinical_sample_size(risk, widths=widths, thresholds=[0.2, 0.4])
    assert (code, err) == (0, "")
    assert " ".join(text.split()).endswith(" ".join(str(expected).split()))
    _, text, _ = run("plan", path, "--points", "20", "--widths", "usual", "--prevalence", "0.1", "--json")
    found = json.loads(text)["precision"]
    assert found == caltest.clinical.clinical_sample_size(risk, prevalence=0.1).to_dict()
    code, _, err = run("plan", path, "--widths", "slope")
    assert (code, "must be usual, or widths such as" in " ".join(err.split())) == (2, True)
    code, _, err = run("plan", path, "--points", "20", "--widths", "slope=1")
    assert (code, "must name at least one of observed_expected" in " ".join(err.split())) == (2, True)


@pytest.mark.slow(few_draws=True)
def test_widths_with_groups_say_what_they_suppose(run, tmp_path):
    path = tmp_path / "risks.csv"
    path.write_text("risk,patient\n" + "".join(f"0.{10 + k},{k // 4}\n" for k in range(80)))
    code, text, err = run("plan", path, "--points", "20", "--groups", "patient", "--widths", "usual")
    assert (code, err) == (0, "")
    supposed, _, _ = text.partition("Sample size of a validation")
    assert supposed.endswith("If labels of a group are independent of each other:\n\n")
