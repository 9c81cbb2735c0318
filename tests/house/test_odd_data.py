"""Data that users have: whatever is reported of them is right, or a note says why not."""

import warnings

import numpy as np
import pytest

import caltest
from caltest.results import CalibrationWarning


@pytest.fixture(scope="module")
def stuck():
    """97 % of the predictions are equal, the others differ: the default tree has one cell, in which errors cancel."""
    rng = np.random.default_rng(0)
    event = np.where(rng.random(2_000) < 0.97, 0.02, np.round(rng.uniform(0.1, 0.9, 2_000), 3))
    return (rng.random(2_000) < event).astype(int), event


def test_every_result_reports_that_ties_leave_too_few_cells(stuck):
    outcome, event = stuck
    options = {"n_resamples": 19, "rng": 0}
    tree = {"partition": caltest.VarianceTree()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        results = {
            "calibration_test": caltest.calibration_test(outcome, event, **options),
            "calibration_table": caltest.calibration_table(outcome, event, **options).tests[0],
            "calibration_report": caltest.calibration_report(outcome, event, **options).tests[0],
            "l2_interval": caltest.l2_interval(outcome, event),
            "equivalence_test": caltest.equivalence_test(outcome, event, margin=0.1),
            "noise_floor": caltest.noise_floor(event, **options),
            "bootstrap_interval": caltest.bootstrap_interval(outcome, event, **options),
            "histogram_regression": caltest.histogram_regression(outcome, event),
            "reliability_curve": caltest.reliability_curve(outcome, event, **tree),
            "paired_test": caltest.paired_test(outcome, event, event / 2),
            "compare_models": caltest.compare_models(outcome, {"a": event, "b": event / 2}, **options),
        }
        silent = [name for name, result in results.items() if "C402" not in [note.code for note in result.notes]]
    assert silent == []
    with pytest.warns(CalibrationWarning, match="has only 1 cell"):
        caltest.calibration_error(outcome, event)
    assert "within 1 cell is shown to be below 10 points" in results["equivalence_test"].conclusion
    for result in (results["histogram_regression"], results["reliability_curve"]):
        assert "has only 1 cell (bin) instead of 8" in " ".join(str(result).split())


def test_an_event_and_its_complement_have_the_same_errors_and_tests():
    """Half of the predictions are 0, so that the cells depend on which side of the median the ties fall."""
    rng = np.random.default_rng(1)
    event = np.where(rng.random(2_001) < 0.55, 0.0, rng.integers(0, 2**10, 2_001) / 2**10)
    outcome = (rng.random(2_001) < np.clip(event * 1.1, 0, 1)).astype(int)
    mirrored = (outcome, event), (1 - outcome, 1 - event)
    for statistic in (caltest.ECE(), caltest.SquaredL2(), caltest.HosmerLemeshow(caltest.VarianceTree())):
        both = [caltest.calibration_error(*pair, statistic=statistic) for pair in mirrored]
        assert both[0] == pytest.approx(both[1], rel=1e-12), statistic
    tests = [caltest.calibration_test(*pair, statistic=caltest.ECE()) for pair in mirrored]
    assert tests[0].pvalue == pytest.approx(tests[1].pvalue, rel=1e-6)
    intervals = [caltest.l2_interval(*pair).confidence_interval for pair in mirrored]
    assert intervals[0].high == pytest.approx(intervals[1].high, rel=1e-9)
