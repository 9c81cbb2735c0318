"""How a validation prints, and what becomes of it elsewhere."""

import json

import numpy as np
import pytest

from caltest.clinical import clinical_calibration


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 250)
    return clinical_calibration((rng.random(250) < p).astype(int), p, thresholds=[0.1, 0.2], n_resamples=99, rng=0)


def test_it_prints_the_verdict_first(result):
    lines = str(result).splitlines()
    assert lines[0] == f"Validation of predicted risks (250 observations, {result.n_events} events)"
    assert lines[1].startswith("No miscalibration") or "Calibration" in " ".join(lines[1:4])
    for word in ("observed/expected", "ICI", "c-statistic", "Brier score", "net benefit"):
        assert word in str(result)


def test_measures_have_names(result):
    assert [one.name for one in result] == result.to_frame().index.tolist()
    assert result["ICI"].words == "ICI"
    with pytest.raises(KeyError, match="there is no measure 'AUC'; the names are observed_expected, intercept"):
        result["AUC"]


def test_frames(result):
    frame = result.to_frame()
    assert frame.columns.tolist() == ["measure", "about", "estimate", "lower", "upper", "if_calibrated", "pvalue"]
    assert result.net_benefit_frame().threshold.tolist() == [0.1, 0.2]
    assert json.loads(json.dumps(result.to_dict()))["n_events"] == result.n_events


def test_latex_has_a_line_for_each_measure(result):
    lines = result.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrr}"
    assert lines[-1] == r"\end{tabular}"
    assert sum(line.endswith(r"\\") for line in lines) == 1 + len(result.measures) + 2
    assert all(line.count("&") == 4 for line in lines if line.endswith(r"\\"))
    assert r"95 \% interval" in lines[2]
