"""Histogram regression: by hand, against the errors, at new predictions, and what it prints."""

import numpy as np
import pytest

import caltest as ct
from tests.reference.examples import draw_labels
from tests.results.printed import printed


@pytest.fixture(scope="module")
def problem():
    """A calibrated three-class problem."""
    rng = np.random.default_rng(5)
    prob = rng.dirichlet([1, 1, 2], 400)
    return draw_labels(prob, rng), prob


def test_by_hand():
    fit = ct.histogram_regression([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], partition=ct.EqualWidth(2))
    np.testing.assert_allclose(fit.count, [2, 2])
    np.testing.assert_allclose(fit.share, [0.5, 0.5])
    np.testing.assert_allclose(fit.predicted[:, 1], [0.2, 0.85])
    np.testing.assert_allclose(fit.observed[:, 1], [0.5, 1.0])
    np.testing.assert_allclose(fit.deviation[:, 1], [0.3, 0.15])
    assert fit.expected_miscalibration() == pytest.approx(0.225)
    assert fit.worst_case_miscalibration() == pytest.approx(0.3)
    assert fit.worst_case_miscalibration(ct.predictions.squared_euclidean) == pytest.approx(0.18)


def test_it_agrees_with_the_errors(problem):
    for partition in (ct.EqualWidth(4), ct.VarianceTree(min_leaf=30), ct.VarianceTree()):
        fit = ct.histogram_regression(*problem, partition=partition)
        for distance in (ct.predictions.total_variation, ct.predictions.euclidean):
            error = ct.calibration_error(*problem, statistic=ct.ECE(partition, distance))
            assert fit.expected_miscalibration(distance) == pytest.approx(error, abs=1e-14), partition
            worst = ct.calibration_error(*problem, statistic=ct.MCE(partition, distance))
            assert fit.worst_case_miscalibration(distance) == pytest.approx(worst, abs=1e-14), partition


def test_predict_returns_the_frequencies_of_the_cell(problem):
    y, prob = problem
    fit = ct.histogram_regression(y, prob, partition=ct.EqualWidth(3))
    cells = np.minimum((prob[:, :2] * 3).astype(int), 2) @ [3, 1]
    for cell in np.unique(cells):
        rows = cells == cell
        frequency = np.bincount(y[rows], minlength=3) / rows.sum()
        np.testing.assert_allclose(fit.predict(prob[rows]), np.tile(frequency, (rows.sum(), 1)))


def test_predict_is_zero_in_empty_cells_and_undefined_outside_the_region():
    fit = ct.histogram_regression([0, 1], [0.1, 0.2], partition=ct.EqualWidth(10), region=lambda p: p[:, 1] < 0.5)
    np.testing.assert_array_equal(fit.predict([0.1, 0.3, 0.7]), [[1, 0], [0, 0], [np.nan, np.nan]])


def test_predict_looks_through_the_lens(problem):
    y, prob = problem
    fit = ct.histogram_regression(y, prob, lens=ct.Confidence(), partition=ct.EqualWidth(2))
    top = prob.max(axis=1)
    right = y == prob.argmax(axis=1)
    assert fit.predict(prob)[top >= 0.5][0, 1] == pytest.approx(right[top >= 0.5].mean())


def test_lens_names_and_the_region(problem):
    y, prob = problem
    named = ct.histogram_regression(np.array(list("abc"))[y], prob, classes=list("abc"), lens=ct.ClassWise(1))
    assert (named.lens, named.lens_name) == (ct.ClassWise(1), "class b against the rest")
    fit = ct.histogram_regression(y, prob, region=lambda p: p[:, 0] > 0.5)
    assert fit.count.sum() == (prob[:, 0] > 0.5).sum()
    assert fit.share.sum() == pytest.approx(1)
    outside = np.isnan(fit.predict(prob)).all(axis=1)
    np.testing.assert_array_equal(outside, prob[:, 0] <= 0.5)


def test_refusals(problem):
    fit = ct.histogram_regression(*problem, region=lambda p: p[:, 0] > 0.5)
    with pytest.raises(ValueError, match="`y_prob` must have the 3 classes of the fitted predictions, got 4"):
        fit.predict(np.full((2, 4), 0.25))
    with pytest.raises(ValueError, match="`distance` must reduce the last axis"):
        fit.expected_miscalibration(lambda p, q: np.abs(p - q))
    with pytest.raises(ValueError, match="`region` must hold at least one"):
        ct.histogram_regression(*problem, region=lambda p: p[:, 0] > 2)
    with pytest.raises((TypeError, ValueError), match="`partition` must be a partition such as"):
        ct.histogram_regression(*problem, partition="quantile")


def test_frame(problem):
    fit = ct.histogram_regression(*problem, lens=ct.Confidence())
    frame = fit.to_frame()
    assert list(frame) == ["count", "share", "predicted_0", "predicted_1", "observed_0", "observed_1"]
    np.testing.assert_array_equal(frame["observed_1"], fit.observed[:, 1])
    assert fit.to_dict()["n_cells"] == fit.n_cells == len(frame)


PRINTED = """
Histogram regression (confidence, 899 observations, EqualWidth(3))
The expected miscalibration is 0.08548 (total variation, average over 3 cells)
and at most 0.2104 in a cell. These estimates are biased upwards near
calibration: use calibration_test to compare them with chance.

 observations  average prediction  frequencies
 791                  0.076 0.924  0.006 0.994
 98                   0.465 0.535  0.255 0.745
 10                   0.710 0.290  0.600 0.400
"""
PRINTED_IN_PART = """
Histogram regression (whole prediction, 899 observations, VarianceTree())
The expected miscalibration is 0.04799 (total variation, average over 8 cells)
and at most 0.0997 in a cell. These estimates are biased upwards near
calibration: use calibration_test to compare them with chance.

 observations             average prediction                    frequencies
 113           0.009 0.013 0.005 0.019 0.012  0.000 0.009 0.000 0.000 0.000
 113           0.320 0.028 0.043 0.034 0.056  0.319 0.027 0.035 0.035 0.062
 113           0.003 0.217 0.007 0.007 0.569  0.000 0.212 0.018 0.000 0.584
 112           0.112 0.074 0.065 0.145 0.027  0.107 0.080 0.054 0.152 0.018
 112           0.001 0.097 0.144 0.256 0.023  0.000 0.089 0.152 0.277 0.009

  At most 5 cells (the largest) and 5 outcomes are shown; to_frame() has all of
    them.
"""


def print_all():
    y_true, models = ct.datasets.load_digits_predictions()
    y_prob = models["logistic_regression"]
    return ct.histogram_regression(y_true, y_prob, lens=ct.Confidence(), partition=ct.EqualWidth(3))


def print_part():
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.histogram_regression(y_true, models["logistic_regression"])


def test_what_is_printed():
    assert printed(print_all()) == PRINTED.strip("\n")
    assert printed(print_part()) == PRINTED_IN_PART.strip("\n")
