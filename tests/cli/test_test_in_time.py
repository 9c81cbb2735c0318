"""``caltest test`` and ``caltest subgroups`` of forecasts whose labels are known only after a lead."""

import numpy as np
import pytest

import caltest
from tests.reference.cases import mostly_slow

FAST = ("--resamples", "199")


@pytest.mark.slow(few_draws=True)
def test_dates_in_order_name_the_option_once(forecasts, run, answer):
    path, _ = forecasts
    text = " ".join(run("test", path, *FAST)[1].split())
    assert text.count("[C209]") == 1
    assert "in the order of the column 'day of issue' (0.51 from one time to the next)" in text
    assert "--time 'day of issue' --lead LEAD takes that into account" in text
    assert "C209" in [note["code"] for note in answer("test", path)["verdict"]["cautions"]]


@pytest.mark.slow(few_draws=True)
def test_the_lead_is_a_duration_or_a_number_of_steps(forecasts, run, answer):
    path, frame = forecasts
    expected = caltest.calibration_test(
        frame["rain"], frame["risk"], time=frame["day of issue"], lead=7, n_resamples=99, rng=0
    )
    for lead in (["--lead", "7D", "--time", "day of issue"], ["--lead", "7", "--time", "day of issue"], ["--lead=7D"]):
        found = answer("test", path, *lead)
        assert found["pvalue"] == expected.pvalue
        assert "C209" not in [note["code"] for note in found["verdict"]["cautions"]]
    text = run("test", path, "--lead", "7D", *FAST)[1]
    assert "Times: column day of issue (guessed)." in " ".join(text.split())
    assert "--lead 7D -o report.html" in " ".join(text.split())


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("leads", mostly_slow([((3, 7),), (("72h", "7D"),)]))
def test_a_column_holds_the_lead_of_each_prediction(forecasts, tmp_path, run, answer, leads):
    path, frame = forecasts
    frame = frame.assign(ahead=[leads[k % 2] for k in range(365)])
    frame.to_csv(tmp_path / "leads.csv", index=False)
    options = ("--label", "rain", "--prob", "risk", "--time", "day of issue", "--lead")
    of_column = answer("test", tmp_path / "leads.csv", *options, "ahead")
    assert of_column["pvalue"] == answer("test", path, *options, "7")["pvalue"]
    text = " ".join(run("test", tmp_path / "leads.csv", *options, "ahead", *FAST)[1].split())
    assert "Leads: column ahead." in text
    assert "--lead ahead -o report.html" in text
    frame.loc[5, "ahead"] = None
    frame.to_csv(tmp_path / "missing.csv", index=False)
    code, _, err = run("test", tmp_path / "missing.csv", *options, "ahead", *FAST)
    assert (code, "--lead" in err, "row 5" in err) == (2, True, True), err
    code, _, err = run(
        "subgroups", tmp_path / "missing.csv", *options, "ahead", "--drop-missing", "--by", "site", *FAST
    )
    assert code == 0, err


@pytest.mark.slow(few_draws=True)
def test_commands_that_are_advised_carry_the_lead(forecasts, tmp_path, run):
    path, frame = forecasts
    wrong = tmp_path / "wrong.csv"
    frame.assign(risk=frame["risk"] ** 0.2).to_csv(wrong, index=False)
    text = " ".join(run("test", wrong, "--time", "day of issue", "--lead", "7", *FAST)[1].split())
    assert "Calibration is rejected" in text
    assert "--lead 7 -o repaired.csv` recalibrates each by those made a lead or more earlier, and shows" in text
    assert "held-out folds" not in text
    both = run("test", wrong, "--time", "day of issue", "--lead", "7", "--groups", "site", *FAST)
    assert "caltest repair" not in both[1], "which takes groups or times"
    code, text, err = run(
        "subgroups", path, "--by", "site", "--time", "day of issue", "--lead", "7D", "--details", *FAST
    )
    assert (code, err) == (0, "")
    assert "share shocks of time" in " ".join(text.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lead", "0"], "argument --lead: must be an integer >= 1, got '0'"),
        (
            ["--lead", "soon"],
            "there is no column 'soon' for --lead; the columns are day of issue, rain, risk, site, and a lead is also "
            "a whole number, or a duration such as 7D or 12h",
        ),
        (["--lead", "1.5"], "must be a whole number >= 1, or a duration such as 7D or 12h, got '1.5'"),
        (["--time", "day"], "there is no column 'day' for --time; the columns are day of issue, rain, risk, site"),
        (["--time", "day of issue", "--lead", "400"], "`lead` (400 steps of 1 day) must not be longer than"),
        (
            ["--time", "site", "--lead", "7D"],
            "must hold numbers, dates or texts such as '2026-12-31' (ISO 8601), got 'south'",
        ),
    ],
)
def test_errors_are_one_line(forecasts, run, options, words):
    code, _, err = run("test", forecasts[0], *options, *FAST)
    assert code == 2
    assert words.replace("`lead`", "--lead") in err
    assert err.count("error: ") == err.splitlines()[-1].count("error: ") == 1


def test_a_lead_needs_times(named, run):
    code, _, err = run("test", named, "--lead", "7", *FAST)
    assert code == 2
    assert err == "caltest: error: --lead needs --time, the column with the time of each prediction\n"


@pytest.mark.slow(few_draws=True)
def test_bars_of_the_picture_know_the_lead(forecasts, tmp_path, run, monkeypatch):
    """They were those of independent labels."""
    path, frame = forecasts
    drawn = []
    monkeypatch.setattr("caltest.plotting._reliability.save_reliability", lambda curve, *_: drawn.append(curve))
    for lead in (["--time", "day of issue", "--lead", "7D"], ["--lead", "7"], []):
        code, _, err = run("test", path, *lead, "--plot", tmp_path / "a.png", *FAST)
        assert code == 0, err
    expected = caltest.reliability_curve(frame["rain"], frame["risk"], time=frame["day of issue"], lead=7, rng=0)
    for curve in drawn[:2]:
        np.testing.assert_array_equal(curve.bar_upper, expected.bar_upper)
    width, plain = ((curve.bar_upper - curve.bar_lower)[1:6] for curve in drawn[::2])  # cells of many predictions
    assert (width > 1.1 * plain).all()
    both = run("test", path, "--time", "day of issue", "--lead", "7", "--groups", "site", "--plot", tmp_path / "a.png")
    assert both[0] == 2
    assert "--plot knows how observations depend on each other in groups or in time, not both" in both[2]
