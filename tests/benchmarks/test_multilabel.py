"""Several labels: the page has the table of its data, and a setting has draws that no other setting changes."""

import numpy as np
import pytest

from benchmarks import multilabel
from benchmarks.machine import ROOT
from benchmarks.pages import read

DATA, PAGE = ROOT / "docs" / "data" / "multilabel.csv", ROOT / "docs" / "several-labels.md"


def test_the_page_is_made_from_its_data():
    frame, text = read(DATA.read_text()), PAGE.read_text()
    assert text == multilabel.STUDIES.with_tables(PAGE.name, text, frame), "python -m benchmarks.multilabel --page"
    wanted = multilabel.LEVELS + multilabel.POWER
    found = frame[[*multilabel.Setting._fields]].itertuples(index=False)
    assert [multilabel.Setting(*row) for row in found] == wanted


@pytest.mark.parametrize("dependence", ["independent", "shared", "copies"])
def test_labels_have_the_chances_that_are_predicted(dependence):
    setting = multilabel.Setting(dependence, 3, 0.2, 20_000)
    label, prob = multilabel.simulated(setting, np.random.default_rng(1))
    error = (label - prob).sum(axis=0) / np.sqrt((prob * (1 - prob)).sum(axis=0))
    assert np.abs(error).max() < 4
    alike = (label[:, 0] == label[:, 1]).mean()
    assert (alike == 1) == (dependence == "copies")
    residual = ((label - prob) / np.sqrt(prob * (1 - prob)))[:, :2]
    correlation = float(np.mean(residual[:, 0] * residual[:, 1]))
    assert (correlation < 4 / np.sqrt(len(label))) == (dependence == "independent")


@pytest.mark.slow(few_draws=True)
def test_a_setting_is_the_same_whenever_it_is_measured(monkeypatch):
    monkeypatch.setattr(multilabel, "POWER", [])
    monkeypatch.setattr(multilabel, "LEVELS", multilabel.LEVELS[:2])
    both = [*multilabel.measure("rejections", 2)]
    monkeypatch.setattr(multilabel, "LEVELS", multilabel.LEVELS[1:])
    assert [*multilabel.measure("rejections", 2)] == both[1:]
    assert {row.sets for row in both} == {2}
