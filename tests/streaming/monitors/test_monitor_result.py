"""What a monitor has found: the text, the numbers, the picture, and what is pending."""

import json

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest import CalibrationMonitor


def calm(n):
    rng = np.random.default_rng(0)
    prob = rng.beta(5, 5, n)
    return (rng.random(n) < prob).astype(int), prob


def test_what_it_prints():
    y_true, y_prob = calm(500)
    monitor = CalibrationMonitor(alpha=0.01)
    assert "There are no observations yet." in str(monitor)
    monitor.update(y_true, y_prob).update(np.ones(100, dtype=int), y_prob[:100])
    printed = str(monitor).splitlines()
    assert printed[0] == "Calibration monitor (whole prediction, 600 observations)"
    alarm, result = monitor._bets.alarm, monitor.result()
    assert 0 < alarm.n_recent < monitor.alarm
    recent = f"about the last {alarm.n_recent:.0f} observations before it"
    assert result.conclusion == (
        f"Predicted risks are too low: {100 * alarm.predicted:.1f} % predicted, {100 * alarm.observed:.1f} % observed. "
        f"Calibration is rejected at the 1 % level (p = {monitor.pvalue:.4g}). The alarm was at observation "
        f"{monitor.alarm}; these percentages are averages of {recent}."
    )
    assert "About the last 5" in str(monitor)
    assert "at most 1 %" in str(monitor)
    assert json.loads(json.dumps(monitor.result().to_dict(), allow_nan=False))["alarm"] == monitor.alarm
    assert monitor.result().to_frame()["direction"].tolist() == ["too low"]
    ax = monitor.plot()
    assert ax.get_yscale() == "log"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["e-value", "alarm at 100", f"alarm, observation {monitor.alarm}: too low"]
    CalibrationMonitor().plot()
    CalibrationMonitor().update([1, 1], [0.0, 0.5]).plot()
    with pytest.raises(TypeError, match="monitor"):
        caltest.plotting.plot_monitor(monitor)


def test_pending_outcomes_are_reported():
    y_true, prob = calm(60)
    days = pd.date_range("2026-01-01", periods=60)
    result = CalibrationMonitor(lead="7D").update(y_true, prob, time=days).result()
    words = " ".join(str(result).split())
    assert "given all earlier predictions and the outcomes of those made at least 7 days before" in words
    assert "6 further observations are pending: their outcomes do not count yet" in words
    assert (result.lead, result.n_pending, result.to_dict()["n_pending"]) == ("7 days", 6, 6)
    one = " ".join(str(CalibrationMonitor(lead="7D").update([1], [0.5], time=days[:1]).result()).split())
    assert "1 further observation is pending: its outcome does not count yet, and what is bet on it counts" in one
    for lead, options, text in (
        (2, {"batch": np.arange(60)}, "2 batches"),
        (None, {"batch": np.arange(60)}, "1 batch"),
        (2, {"time": np.arange(60)}, "2 units of time"),
        (None, {"time": np.arange(60)}, "1 step"),
        (2, {}, "2 observations"),
        ("36h", {"time": days}, "36 hours"),
    ):
        assert CalibrationMonitor(lead=lead).update(y_true, prob, **options).result().lead == text
    plain = CalibrationMonitor().update(y_true, prob).result()
    assert (plain.lead, plain.n_pending) == (None, 0)
    assert "pending" not in str(plain)


def test_outcomes_that_do_not_count_yet_are_observations():
    assert CalibrationMonitor().result().conclusion == "There are no observations yet."
    waiting = CalibrationMonitor(lead=7).update([0, 1], [0.2, 0.6], time=[1, 2]).result()
    assert (waiting.conclusion, waiting.n_samples, waiting.n_pending) == ("No outcome counts yet.", 0, 2)
