"""Clinical validity: the page has the tables of its data, rounds add up, and targets are what they should be."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import clinical, clinical_designs, clinical_page
from benchmarks.clinical_studies import STUDIES, Found, covered
from benchmarks.machine import ROOT
from tests.reference.cases import mostly_slow

DOCS = ROOT / "docs"
DATA = DOCS / "data" / "clinical.csv"


@pytest.mark.slow(few_draws=True)
def test_the_pages_are_made_from_their_data():
    frame = pd.read_csv(DATA, keep_default_na=False)
    texts = [(DOCS / name).read_text() for name in clinical_page.PAGES]
    for text in texts:
        assert text == clinical_page.page(text, frame), "python -m benchmarks.clinical --page"
    for name in clinical_page.TABLES:
        assert sum(clinical_page.mark("clinical", name) in text for text in texts) == 1, name
    assert not frame.duplicated([*clinical.KEY, "measure"]).any()
    assert (frame["above"] + frame["below"] <= frame["sets"]).all()
    assert set(frame["study"]) <= set(STUDIES)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("study", mostly_slow(["widths", "updates", "measures", "decomposition"], 2))
def test_rounds_add_up_and_are_the_same_whenever_they_are_measured(study, tmp_path, monkeypatch):
    some = [(study, 0)]
    monkeypatch.setattr(clinical, "cells", lambda: some)
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    clinical.measure(one, [study], 1, 2)
    clinical.measure(one, [study], 2, 2)
    clinical.measure(two, [study], 2, 2)
    assert one.read_text() == two.read_text()
    before = one.read_text()
    clinical.measure(one, [study], 2, 2)
    assert one.read_text() == before
    rows = clinical.read_data(one)
    assert max(row.sets for row in rows) == 4
    assert {row.rounds for row in rows} == {2}


def test_a_row_counts_misses_and_averages_widths():
    row = clinical.Row("measures", "", 20, 100, "coverage", "x", 0, 0, 0, 0.0, 1, "")
    for interval in ((1.0, 2.0), (-3.0, -1.0), (-1.0, 2.0)):
        (found,) = covered("x", interval, 0.0)
        row = row.with_one(found)
    assert (row.sets, row.above, row.below, row.value) == (3, 1, 1, 2.0)
    assert not list(covered("x", (float("nan"), float("nan")), 0.0))
    assert row.with_one(Found("level", "x", True)).value == 2.0


@pytest.mark.slow(few_draws=True)
def test_targets_are_those_of_many_patients():
    design = clinical_designs.Design(10_000, shift=0.4, slope=0.8)
    event, prob, true, _ = design.patients(np.random.default_rng(0))
    error = 4 / np.sqrt(design.n)
    assert np.square(event - prob).mean() == pytest.approx(design.targets["brier"], abs=error)
    assert event.mean() == pytest.approx(design.frequency, abs=error)
    assert true.mean() == pytest.approx(design.frequency, abs=error)
    pairs = (prob[event == 1][:3000, None] > prob[event == 0][:3000]).mean()
    assert pairs == pytest.approx(design.targets["c_statistic"], abs=4 / np.sqrt(3000))


def test_labels_of_clusters_are_alike_and_have_their_risks():
    design = clinical_designs.Design(20_000, correlation=0.2)
    event, prob, _, groups = design.patients(np.random.default_rng(1))
    residual = (event - prob) / np.sqrt(prob * (1 - prob))
    sums = np.bincount(groups["groups"], weights=residual)
    assert residual.mean() == pytest.approx(0, abs=4 * np.sqrt(2.5 / design.n))
    assert np.square(sums[:-1]).mean() > 1.5 * 10  # independent labels would have 10


def test_what_is_far_from_its_level_is_bold():
    row = {"kind": "coverage", "measure": "x", "sets": 400, "above": 33, "below": 0}
    assert not clinical_page.is_far(pd.Series(row))
    assert clinical_page.is_far(pd.Series(row | {"above": 34}))
    assert not clinical_page.is_far(pd.Series(row | {"measure": "belt, 80 %", "above": 100}))
