"""Nothing on the page of forecasts in time is computed as if their labels were independent."""

import html
import re

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from benchmarks.streams import STREAMS
from caltest.page import write_page
from caltest.page._answer import Model
from caltest.page._places import classes_of, ranges_of, subgroups_of

DAYS = pd.date_range("2026-01-01", periods=365)
FEW = {"n_resamples": 199, "rng": 3}


def model_of(n_classes, time=None, lead=None):
    stream = STREAMS["AR(.8)" if n_classes == 2 else "5 classes"](np.random.default_rng(0), 365, 7)
    design = {"classes": None, "sample_weight": None, "groups": None, "time": time, "lead": lead}
    return Model("", stream.y_true, stream.y_prob, design)


def widths(places):
    return np.array([place.high - place.low for place in places])


@pytest.mark.parametrize("n_classes", [2, 5])
def test_intervals_of_places_know_the_lead(n_classes):
    independent, timed = model_of(n_classes), model_of(n_classes, DAYS, "7D")
    assert (independent.lead, timed.lead) == ("", "7 days")
    halves = {"even": np.arange(365) % 2 == 0, "odd": np.arange(365) % 2 == 1}
    places = [
        [*ranges_of(model.event), *subgroups_of(model.event, halves, [False] * 2)] for model in (independent, timed)
    ]
    if n_classes > 2:
        classes = [{one.name: one for one in classes_of(model.sample, list("abcde"))} for model in (independent, timed)]
        places = [here + [found[name] for name in "abcde"] for here, found in zip(places, classes, strict=True)]
    ratio = widths(places[1]) / widths(places[0])
    assert (ratio > 1.0).all()
    assert np.median(ratio) > 1.2  # residuals within a week are alike


def test_the_diagram_is_that_of_the_function():
    model = model_of(2, DAYS, "7D")
    expected = ct.reliability_curve(model.y_true, model.y_prob, time=DAYS, lead=7, rng=0)
    np.testing.assert_array_equal(model.curve.bar_upper, expected.bar_upper)
    np.testing.assert_array_equal(model.curve.cell_tests().pvalue, expected.cell_tests().pvalue)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_page_in_words(tmp_path, n_classes):
    """An index of dates is the time, and every null distribution that the page mentions has shocks of time."""
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 365, 7)
    event = stream.y_prob**0.5
    prob = pd.DataFrame({"dry": 1 - event, "rain": event}, index=DAYS)
    labels = pd.Series(np.where(stream.y_true, "rain", "dry"), DAYS)
    if n_classes == 3:
        prob = prob.assign(rain=event / 2, storm=event / 2)
        labels[(labels == "rain") & (DAYS.day % 2 == 0)] = "storm"
    path = write_page(labels, prob, tmp_path / "page.html", lead="7D", subgroup={"half": DAYS.day % 2}, **FEW)
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", path.read_text(encoding="utf-8"))).split())
    drawn = re.findall(r"Monte Carlo draws of ([\w ]+)", text)
    assert len(drawn) >= 4
    assert all(words.startswith("labels that share shocks of time as the observed ones do") for words in drawn)
    assert "observations are independent" not in text
    assert "valid at every sample size" not in text
    assert "Bars are what chance explains if labels less than 7 days apart depend on each other." in text
    assert "Outcomes of predictions that were made less than 7 days apart may depend on each other." in text
    assert "Which classes are confused" not in text  # cells of the triangle are tested as independent


def test_what_the_page_refuses(tmp_path):
    model = model_of(2)
    arguments = model.y_true, model.y_prob, tmp_path / "page.html"
    with pytest.raises(ValueError, match="in `groups` or in `time`, not both"):
        write_page(*arguments, time=DAYS, lead=7, groups=np.arange(365) // 5)
    with pytest.raises(ValueError, match="`lead` needs `time`"):
        write_page(*arguments, lead=7)
    report = ct.calibration_report(model.y_true, model.y_prob, n_resamples=199, rng=0)
    with pytest.raises(ValueError, match="`report` must have the same `time` and `lead` as the page"):
        write_page(*arguments, time=DAYS, lead=7, report=report)
    assert not arguments[-1].exists()
