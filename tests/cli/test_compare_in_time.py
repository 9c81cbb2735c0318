"""``caltest compare`` of forecasts whose labels are known only after a lead."""

import json

import pandas as pd
import pytest

import caltest

LEAD = ("--time", "day of issue", "--lead", "7D")
FAST = ("--resamples", "99")


@pytest.fixture
def both(forecasts, tmp_path):
    """Two files, the forecasts and worse ones, and their predictions."""
    path, frame = forecasts
    worse = frame.assign(risk=frame["risk"] ** 0.6)
    worse.to_csv(tmp_path / "worse.csv", index=False)
    return path, tmp_path / "worse.csv", {"forecasts": frame["risk"], "worse": worse["risk"]}


@pytest.mark.slow(few_draws=True)
def test_models_are_compared_as_in_python(both, forecasts, run):
    path, worse, models = both
    _, frame = forecasts
    code, out, err = run("compare", path, worse, *LEAD, "--json", *FAST)
    assert code == 0, err
    found = json.loads(out)
    time = {"time": frame["day of issue"], "lead": "7D"}
    expected = caltest.compare_models(frame["rain"], models, **time, n_resamples=99, rng=0)
    assert found["pairs"][0]["pvalue_adjusted"] == expected.pairs[0].pvalue_adjusted
    assert [each["l2_high"] for each in found["models"]] == [
        each.miscalibration.root_interval.high for each in expected
    ]
    assert "C209" not in out
    text = " ".join(run("compare", path, worse, *LEAD, *FAST)[1].split())
    assert "Times: column day of issue." in text


@pytest.mark.slow(few_draws=True)
def test_dates_that_were_not_named_make_one_caution(both, forecasts, run):
    path, worse, models = both
    text = " ".join(run("compare", path, worse, *FAST)[1].split())
    assert text.count("[C209]") == 1
    assert "--time 'day of issue' --lead LEAD takes that into account" in text
    frame = forecasts[1].set_index(pd.DatetimeIndex(forecasts[1]["day of issue"]))
    named = {name: prob.set_axis(frame.index) for name, prob in models.items()}
    found = caltest.compare_models(frame["rain"], named, n_resamples=39, rng=0)
    assert [note.code for note in found.verdict.cautions].count("C209") == 1
    own = {name: (frame["rain"], prob) for name, prob in named.items()}
    assert not caltest.compare_models(None, own, n_resamples=39, rng=0).paired, "the index was refused as time"


def test_files_have_the_same_times(both, forecasts, tmp_path, run):
    path, _, _ = both
    turned = forecasts[1]["day of issue"].to_numpy()[::-1]
    forecasts[1].assign(**{"day of issue": turned}).to_csv(tmp_path / "turned.csv", index=False)
    code, _, err = run("compare", path, tmp_path / "turned.csv", *LEAD, *FAST)
    assert (code, "turned: the times are not those of other files" in err) == (2, True)


def test_files_have_the_same_leads(forecasts, tmp_path, run):
    """The labels are the same, so that leads of the first file alone would decide for all."""
    names = []
    for name, lead in {"week": 7, "fortnight": 14}.items():
        names.append(tmp_path / f"{name}.csv")
        forecasts[1].assign(ahead=lead).to_csv(names[-1], index=False)
    code, _, err = run("compare", *names, "--time", "day of issue", "--lead", "ahead", *FAST)
    assert (code, "fortnight: the leads are not those of other files" in err) == (2, True)


def test_independent_data_sets_have_no_common_times(both, run):
    path, worse, _ = both
    code, _, err = run("compare", path, worse, "--unpaired", *LEAD)
    assert code == 2
    assert "--time and --lead are those of observations that all models share" in err
