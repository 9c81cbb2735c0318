"""The caution that residuals are correlated in time: where it is made, and how often by chance."""

import numpy as np
import pandas as pd
import pytest

import caltest
from benchmarks.streams import STREAMS
from caltest.hypothesis_tests._residual_correlation import correlation_notes
from caltest.predictions._sample import make_sample
from caltest.predictions.inputs._times import OfferedTime
from tests.hypothesis_tests.problems import calibrated, codes
from tests.reference.cases import mostly_nightly

DAYS = pd.date_range("2026-01-01", periods=365)


def notes(stream, time, lead=None, **design):
    return correlation_notes(make_sample(stream.y_true, stream.y_prob, **design), time, lead)


def test_where_the_caution_is_made():
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 365, 7)
    (note,) = notes(stream, OfferedTime(DAYS, "date", "--time date --lead LEAD"))
    assert note.code == "C209"
    assert note.text == (
        "Residuals are correlated in the order of the column 'date' (0.51 from one time to the next): if labels are "
        "known only some time after their predictions, --time date --lead LEAD takes that into account."
    )
    (of_index,) = notes(stream, OfferedTime(DAYS))
    assert "of the index (0.51 from one time to the next)" in of_index.text
    assert "`lead` takes" in of_index.text
    (named,) = notes(stream, stream.time)
    assert "in the order of `time`" in named.text
    assert notes(stream, None) == ()
    assert notes(stream, stream.time, lead=7) == ()
    assert notes(stream, stream.time, groups=stream.time // 7) == ()
    shuffled = np.random.default_rng(1).permutation(365)
    assert notes(stream, shuffled) == ()
    batch = STREAMS["batches of 50"](np.random.default_rng(0), 5000, 4, correlation=0.3)
    assert "at the same time" in notes(batch, batch.time)[0].text


@pytest.mark.slow(few_draws=True)
def test_it_stands_once_in_the_answer_of_each_function():
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 200, 7)
    frame = pd.DataFrame({"rain": stream.y_true, "risk": stream.y_prob}, index=DAYS[:200])
    for function, options in (
        (caltest.calibration_test, {}),
        (caltest.calibration_table, {}),
        (caltest.calibration_table, {"lenses": [caltest.Canonical(), caltest.Confidence()]}),
        (caltest.calibration_report, {}),
    ):
        found = function(frame["rain"], frame["risk"], n_resamples=199, rng=0, **options)
        assert codes(found.verdict.cautions).count("C209") == str(found).count("[C209]") == 1, function
    halves = np.arange(200) % 2
    parts = caltest.subgroup_tests(frame["rain"], frame["risk"], subgroup=halves, n_resamples=199, rng=0)
    other = frame["risk"] ** 1.1
    pair = caltest.paired_test(frame["rain"], frame["risk"], other)
    assert codes(parts.verdict.cautions).count("C209") == codes(pair.verdict.cautions).count("C209") == 1
    assert "C209" not in codes(caltest.paired_test(frame["rain"], frame["risk"], other, lead=7).verdict.cautions)
    shared = {"n_resamples": 39, "rng": 0}
    assert "C209" not in codes(caltest.calibration_test(frame["rain"], frame["risk"], lead="7D", **shared).notes)
    assert "C209" not in codes(caltest.calibration_test(stream.y_true, stream.y_prob, **shared).notes)
    of_time = caltest.calibration_test(stream.y_true, stream.y_prob, time=stream.time, **shared)
    assert "in the order of `time`" in of_time.notes[-1].text


def test_little_and_negative_dependence_need_none():
    certain = make_sample([0, 1] * 50, [0.0, 1.0] * 50)
    assert correlation_notes(certain, np.arange(100), None) == ()
    turns = make_sample(np.arange(100) % 2, np.full(100, 0.5))
    assert correlation_notes(turns, np.arange(100), None) == ()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_only_the_first_ones_of_many_are_looked_at(n_classes, monkeypatch):
    y_true, prob = calibrated(60, n_classes)
    runs = np.arange(200) // 10 % n_classes  # of equal labels, after those that are independent
    late = np.concatenate([y_true, runs]), np.concatenate([prob, np.full((200, n_classes), 1 / n_classes)])
    time = np.arange(260)
    assert correlation_notes(make_sample(*late), time, None)
    monkeypatch.setattr("caltest.hypothesis_tests._residual_correlation._MOST_NUMBERS", 60 * n_classes)
    assert correlation_notes(make_sample(*late), time, None) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_nightly(["AR(.8)", "AR(.95)", "Markov", "rare, 1 %"]))
def test_the_caution_is_rare_for_forecasts_of_the_next_step(name):
    rng, number = np.random.default_rng(0), 1000
    streams = (STREAMS[name](rng, 200, 1) for _ in range(number))
    found = sum(bool(notes(stream, stream.time)) for stream in streams)
    assert found <= 0.001 * number + 4 * np.sqrt(0.001 * number)
