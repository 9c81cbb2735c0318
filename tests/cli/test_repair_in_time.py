"""``caltest repair`` of forecasts whose labels are known only after a lead."""

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest.recalibration import TemperatureScaling

FAST = ("--method", "TemperatureScaling", "--resamples", "299", "--n-folds", "1")


@pytest.mark.slow(few_draws=True)
def test_later_predictions_are_repaired_by_earlier_ones(forecasts, tmp_path, run):
    path, frame = forecasts
    odds = (frame["risk"] / (1 - frame["risk"])) ** 2.5
    frame = frame.assign(risk=odds / (1 + odds))
    frame.to_csv(path, index=False)
    out = tmp_path / "repaired.csv"
    code, text, err = run("repair", path, "-o", out, "--time", "day of issue", "--lead", "7D", *FAST)
    assert code == 0, err
    said = " ".join(text.split())
    assert "repaired by a map that was fitted to the predictions made a lead or more before" in said
    assert "C209" not in said
    options = {"time": frame["day of issue"], "lead": "7D", "folds": 1, "n_resamples": 299, "rng": 0}
    methods = {"T": TemperatureScaling()}
    study = caltest.recalibration_study(frame["rain"], {"risk": frame["risk"]}, methods, **options)
    written = pd.read_csv(out)
    np.testing.assert_allclose(written["risk"], study.predict("T")[:, 1], rtol=1e-9)
    assert written["risk"].isna().sum() == written["fold"].isna().sum() == 183
    assert (tmp_path / "repaired.png").exists()


@pytest.mark.slow(few_draws=True)
def test_dates_that_were_not_named_make_a_caution(forecasts, tmp_path, run):
    path, _ = forecasts
    text = run("repair", path, "-o", tmp_path / "out.csv", "--details", *FAST[:4], "--n-folds", "2")[1]
    assert text.count("[C209]") == 1
