"""Segments of calibrated predictions: the page has the table of its data, and the joint test has its level in it."""

import numpy as np
import pytest

from benchmarks import segments
from benchmarks.machine import ROOT
from benchmarks.pages import read

DATA, PAGE = ROOT / "docs" / "data" / "segments.csv", ROOT / "docs" / "where-miscalibrated.md"


def test_the_page_is_made_from_its_data():
    frame, text = read(DATA.read_text()), PAGE.read_text()
    assert text == segments.STUDIES.with_tables(PAGE.name, text, frame), "python -m benchmarks.segments --page"
    found = frame[[*segments.Setting._fields]].itertuples(index=False)
    assert [segments.Setting(*row) for row in found] == segments.SETTINGS


def test_the_joint_pvalue_has_its_level_and_the_smallest_one_has_not():
    frame = read(DATA.read_text())
    limit = 0.05 + 4 * np.sqrt(0.05 * 0.95 / frame["sets"])
    assert (frame["joint"] <= limit).all()
    assert (frame["smallest"] > 0.5).all()
    assert (frame["sets"] >= 200).all()


def test_predictions_are_calibrated():
    rng = np.random.default_rng(0)
    y_true, y_prob, columns = segments.simulated(segments.Setting(20_000, 2, 1, 0.03), rng)
    error = (y_true - y_prob).sum() / np.sqrt((y_prob * (1 - y_prob)).sum())
    assert abs(error) < 4
    assert columns.shape == (20_000, 3)


@pytest.mark.slow(few_draws=True)
def test_a_setting_is_the_same_whenever_it_is_measured(monkeypatch):
    few = [segments.Setting(100, 1, 1, 0.3), segments.Setting(120, 1, 1, 0.3)]
    monkeypatch.setattr(segments, "SETTINGS", few)
    both = [*segments.measure("calibrated", 2)]
    monkeypatch.setattr(segments, "SETTINGS", few[1:])
    assert [*segments.measure("calibrated", 2)] == both[1:]
