"""Forecasts in time: the page has the tables of its data, and what is measured does not depend on the order."""

import numpy as np
import pandas as pd
import pytest

import caltest
from benchmarks import forecasts
from benchmarks.machine import ROOT
from benchmarks.streams import STREAMS
from tests.reference.cases import mostly_slow

DATA, PAGE = ROOT / "docs" / "data" / "forecasts.csv", ROOT / "docs" / "forecasts-evidence.md"


@pytest.mark.slow(few_draws=True)
def test_the_page_is_made_from_its_data():
    frame, text = forecasts.read_data(DATA), PAGE.read_text()
    assert text == forecasts.with_tables(text, frame), "python -m benchmarks.forecasts --page"
    for name, (_, studies) in forecasts.TABLES.items():
        assert (forecasts.mark("forecasts", name) in text) == frame["study"].isin(studies).any()
    assert not frame.duplicated([*forecasts.Cell._fields, "method"]).any()
    assert frame[["rejected", "undecided"]].stack().between(0, 1).all()


def test_levels_are_measured_on_enough_data_sets_and_those_that_are_too_large_are_listed():
    frame, text = forecasts.read_data(DATA), PAGE.read_text()
    level = frame[frame["study"] == "level"]
    assert (level["data_sets"] >= 1000).all()
    for row in forecasts.above(level).itertuples():
        assert f"{row.stream} n = {row.n_samples:,} lead {row.lead} (" in text
    found = {forecasts.Cell(*row) for row in level[[*forecasts.Cell._fields]].to_numpy()}
    wanted = {cell for cell in forecasts.STUDIES["level"].cells() if cell.is_possible}
    assert found == wanted


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("study", mostly_slow(forecasts.STUDIES))
def test_a_cell_is_the_same_whenever_it_is_measured(study):
    cell = min(forecasts.STUDIES[study].cells(), key=lambda cell: (cell.n_samples, cell.stream != "AR(.8)"))
    first = forecasts.measure(cell, 2)
    assert [row[:-1] for row in forecasts.measure(cell, 2)] == [row[:-1] for row in first]
    assert {row.data_sets for row in first} == {2}


def test_cells_that_are_there_are_not_measured_again(tmp_path, monkeypatch):
    data = tmp_path / "forecasts.csv"
    some = [forecasts.Cell("correlation", name, 30, 1) for name in ("AR(.5)", "shocks")]
    monkeypatch.setattr(forecasts, "cells", lambda: some)
    forecasts.add_missing(data, some[:1], 1)
    before = data.read_text()
    forecasts.add_missing(data, some, 1)
    assert data.read_text().startswith(before)
    assert forecasts.read_data(data)["stream"].tolist() == ["AR(.5)"] * 2 + ["shocks"] * 2


def test_the_default_is_that_of_the_public_function():
    """Whose draws the ECE shares."""
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 60, 3)
    found = forecasts.levels(stream, stream, 3, np.random.default_rng(1))
    options = {"time": stream.time, "lead": 3, "n_resamples": forecasts.N_RESAMPLES, "rng": np.random.default_rng(1)}
    assert found["default"] == caltest.calibration_test(stream.y_true, stream.y_prob, **options).decision


def test_rates_that_are_too_large_are_listed():
    rows = [
        forecasts.Row("level", "AR(.9)", 365, 7, "", method, rate, 0.01, 1000, "0")
        for method, rate in (("default", 0.0776), ("ECE", 0.0775))
    ]
    frame = pd.DataFrame(rows)
    assert forecasts.largest_rate(1000) == pytest.approx(0.05 + 4 * np.sqrt(0.05 * 0.95 / 1000))
    assert forecasts.above(frame)["method"].tolist() == ["default"]
    made = forecasts.levels_table(frame)
    assert "| **7.8** (1) |" in made
    assert "AR(.9) n = 365 lead 7 (7.8)" in made
