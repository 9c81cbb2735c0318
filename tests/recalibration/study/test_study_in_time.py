"""Studies of forecasts in time: maps are fitted to labels that were known, and judged as labels that are alike."""

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from benchmarks.streams import STREAMS
from caltest.recalibration import PlattScaling, TemperatureScaling

N, LEAD = 600, 5
DAYS = pd.date_range("2026-01-01", periods=N)
FEW = {"n_resamples": 299, "rng": 0}


def stream_of(seed=0, slope=1.0):
    stream = STREAMS["AR(.8)"](np.random.default_rng(seed), N, LEAD)
    odds = (stream.y_prob / (1 - stream.y_prob)) ** slope
    return stream.y_true, odds / (1 + odds)


def study_of(y_true, prob, methods=None, **options):
    methods = [TemperatureScaling()] if methods is None else methods
    return ct.recalibration_study(y_true, {"model": prob}, methods, **FEW | options)


def test_maps_are_fitted_to_labels_that_were_known():
    """Labels that are known too late, and later predictions, change no map."""
    y_true, prob = stream_of(slope=2.5)
    order = np.random.default_rng(1).permutation(N)
    study = study_of(y_true[order], prob[order], time=DAYS[order], lead=LEAD, folds=3)
    (row,) = [row for row in study.rows if row.maps]
    place = np.argsort(order)
    held = [np.sort(order[rows]) for rows in study.held_out]
    assert [rows[[0, -1]].tolist() for rows in held] == [[150, 299], [300, 449], [450, 599]]
    for rows, fitted in zip(held, row.maps, strict=True):
        known = np.arange(rows[0] - LEAD + 1)
        again = TemperatureScaling().fit(prob[known], y_true[known])
        assert fitted.temperature_ == pytest.approx(again.temperature_, rel=1e-6)
    predicted = study.predict(row.recalibrator)[place]
    assert np.isnan(predicted[:150]).all()
    assert np.isfinite(predicted[150:]).all()


def test_everything_is_judged_with_the_lead():
    y_true, prob = stream_of(slope=2.5)
    study = study_of(y_true, prob, time=DAYS, lead="5D", folds=1)
    before, after = study.rows
    later = np.arange(300, N)
    options = {"time": DAYS[later], "lead": LEAD}
    test = ct.calibration_test(y_true[later], prob[later], **options, n_resamples=299, rng=0)
    assert before.test.method == test.method == "timed-labels"
    interval = ct.l2_interval(y_true[later], prob[later], **options)
    assert before.miscalibration.confidence_interval == pytest.approx(interval.confidence_interval)
    assert after.change.folds[0].lead == "5 days"
    assert "stretch of time" in str(study)
    assert "5 days or more apart have independent errors" in " ".join(str(study).split())
    drawn = ct.plotting.plot_before_after(study, after.recalibrator)
    bars = next(part for part in drawn[0].collections if part.get_label() == "_bars")
    ends = {round(float(path.vertices[:, 1].max()), 9) for path in bars.get_paths()}
    curves = [ct.reliability_curve(y_true[later], prob[later], **given, rng=0) for given in (options, {})]
    upper, independent = ({round(float(end), 9) for end in curve.bar_upper} for curve in curves)
    assert len(ends) > 3
    assert ends <= upper
    assert not ends <= independent


def test_the_score_changes_by_more_than_chance_of_labels_that_are_alike():
    """The same scores are no evidence where whole months share their labels."""
    month = np.arange(N) // 30
    prob = np.full(N, 0.5)
    prob[::2] = 0.55
    labels = np.repeat([1, 1, 0, 1, 1, 0, 1, 1, 1, 0] * 2, 30)
    methods = [PlattScaling()]
    independent = study_of(labels, prob, methods, held_out=month >= 10)
    timed = study_of(labels, prob, methods, held_out=month >= 10, time=month)
    assert [abs(study._clear_change(study.rows[1])) for study in (independent, timed)] == [1, 0]


@pytest.mark.slow(few_draws=True)
def test_what_is_refused_and_cautioned():
    y_true, prob = stream_of()
    folds = np.arange(N) % 5
    with pytest.raises(ValueError, match="`folds` must be a number with `time`"):
        study_of(y_true, prob, time=DAYS, lead=LEAD, folds=folds)
    with pytest.raises(ValueError, match="`groups` and `time` cannot be taken together here"):
        study_of(y_true, prob, time=DAYS, lead=LEAD, groups=folds)
    with pytest.raises(ValueError, match="no prediction was made a lead"):
        study_of(y_true, prob, time=DAYS, lead=LEAD, held_out=np.arange(N) % 2 == 0)
    with pytest.raises(ValueError, match="`folds` must leave two observations or more in each stretch"):
        study_of(y_true, prob, time=np.arange(N) // 200, lead=1, folds=5)
    frame = pd.DataFrame({"rain": y_true, "risk": prob}, index=DAYS)
    found = study_of(frame["rain"], frame["risk"])
    assert [note.code for note in found.notes].count("C209") == 1
    assert "C209" not in [note.code for note in study_of(frame["rain"], frame["risk"], lead=LEAD, folds=2).notes]


@pytest.mark.nightly
def test_the_level_of_repaired_forecasts():
    """Calibrated later stretches are rejected, and a map is shown to gain, no more often than the level says."""
    number, rejected, gained = 150, 0, 0
    for seed in range(number):
        study = study_of(*stream_of(seed), time=DAYS, lead=LEAD, folds=1, statistics=[ct.ECE()])
        rejected += study.rows[0].pvalue <= 0.05
        gained += study._clear_change(study.rows[1]) < 0
    assert max(rejected, gained) <= 0.05 * number + 4 * np.sqrt(0.05 * 0.95 * number)
