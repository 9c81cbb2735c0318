"""The ECE of the confidence on the whole prediction: against the lens, for two outcomes, and exchanged classes."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from tests.reference.cases import check_refused

ERROR = caltest.statistics.ConfidenceECE()


def problem(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.full(n_classes, 0.5), size=n)
    return (rng.random((n, 1)) >= y_prob.cumsum(axis=1)[:, :-1]).sum(axis=1), y_prob


def test_it_is_the_error_behind_the_lens():
    for n_classes in (3, 10, 300):
        y_true, y_prob = problem(400, n_classes)
        for weight in (None, np.random.default_rng(1).random(400)):
            expected = caltest.calibration_error(
                y_true, y_prob, lens=caltest.Confidence(), statistic=caltest.ECE(caltest.EqualWidth(15)),
                sample_weight=weight,
            )  # fmt: skip
            found = caltest.calibration_error(y_true, y_prob, statistic=ERROR, sample_weight=weight)
            assert found == pytest.approx(expected, rel=1e-12), n_classes
            behind = caltest.calibration_error(
                y_true, y_prob, lens=caltest.Confidence(), statistic=ERROR, sample_weight=weight
            )
            assert behind == pytest.approx(expected, rel=1e-12), n_classes


def test_for_two_outcomes_it_is_that_of_the_event_and_exact():
    y_true, y_prob = problem(200, 2)
    result, ece = (
        caltest.calibration_test(y_true, y_prob, statistic=statistic)
        for statistic in (ERROR, caltest.ECE(caltest.EqualWidth(15)))
    )
    assert result.statistic == pytest.approx(ece.statistic, rel=1e-12)
    assert result.method == "exact"
    assert result.pvalue == pytest.approx(ece.pvalue, rel=1e-9)
    drawn = caltest.calibration_test(y_true, y_prob, statistic=ERROR, method="monte-carlo", n_resamples=4999, rng=0)
    error = np.sqrt(ece.pvalue * (1 - ece.pvalue) / 4999)
    assert abs(drawn.pvalue - ece.pvalue) <= 4 * error + 2e-4


def test_a_calibration_function_moves_the_expectation():
    y_true, y_prob = problem(300, 4)
    sharper = caltest.Consistency(calibration_function=lambda p: p**2 / (p**2).sum(axis=1, keepdims=True))
    options = {"resampling": sharper, "n_resamples": 99, "rng": 0}
    whole = caltest.calibration_test(y_true, y_prob, statistic=ERROR, **options)
    top = y_prob.argmax(axis=1)
    expected = (y_prob**2 / (y_prob**2).sum(axis=1, keepdims=True)).max(axis=1)
    cell = np.floor(15 * y_prob.max(axis=1)).astype(int)
    gaps = np.bincount(cell, weights=(y_true == top) - expected)
    assert whole.statistic == pytest.approx(np.abs(gaps).sum() / 300, rel=1e-12)


def test_exchanged_classes():
    rng = np.random.default_rng(3)
    for event in (rng.random(500), rng.integers(16, size=500) / 15, rng.random(500).round(2)):
        for weight in (None, rng.random(500)):
            y_true = rng.random(500) < event
            one, other = (
                caltest.calibration_error(y, p, statistic=ERROR, sample_weight=weight)
                for y, p in ((y_true, event), (~y_true, 1 - event))
            )
            assert one == pytest.approx(other, abs=1e-12)


def test_draws_and_counts_agree():
    """Summary of cells and labels have the same distribution: they are the same numbers on the same labels."""
    y_true, y_prob = problem(150, 2)
    sample = make_sample(y_true, y_prob)
    outcomes = np.random.default_rng(0).integers(2, size=(5, 150), dtype=np.uint8)
    ece = caltest.ECE(caltest.EqualWidth(15, closed="outer"))
    np.testing.assert_allclose(ERROR.evaluate(sample, outcomes), ece.evaluate(sample, outcomes), rtol=1e-12)


def test_bad_numbers_of_cells_are_refused():
    check_refused(
        caltest.statistics.ConfidenceECE, ValueError, "`n_cells` must be odd, so that 0.5 is not an edge, got 4.", 4
    )
    check_refused(caltest.statistics.ConfidenceECE, ValueError, "`n_cells` must be an integer >= 1, got 0.", 0)
