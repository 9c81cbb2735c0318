"""Binned errors by hand."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

import caltest
from caltest.predictions.cells._partitions import resolve_n_cells
from tests.reference.examples import draw_labels


def error(y_true, y_prob, statistic, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, **options)


def test_errors_of_two_cells():
    # Cell 0: predicted 1/4, observed 1/2; cell 1: predicted 15/16, observed 1.
    y_true, y_prob = [0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0]
    halves = caltest.EqualWidth(2)
    assert error(y_true, y_prob, caltest.ECE(halves)) == (1 / 4 + 1 / 16) / 2
    assert error(y_true, y_prob, caltest.MCE(halves)) == 1 / 4
    squared = caltest.ECE(halves, caltest.predictions.squared_euclidean)
    assert error(y_true, y_prob, squared) == (1 / 16 + 1 / 256)
    weighted = error(y_true, y_prob, caltest.ECE(halves), sample_weight=[3.0, 1.0, 2.0, 0.0])
    assert weighted == pytest.approx((4 * 0 + 2 * 0.125) / 6, rel=1e-12)


def test_defaults():
    assert caltest.ECE() == caltest.ECE(caltest.VarianceTree(), caltest.predictions.total_variation)
    assert caltest.MCE() == caltest.MCE(caltest.VarianceTree(), caltest.predictions.total_variation)
    y_true, y_prob = [0, 1, 1], [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]
    assert caltest.calibration_error(y_true, y_prob) == error(y_true, y_prob, caltest.ECE())


def test_the_square_root_rule():
    """The integer part of the root of the number of rows, in every statistic that has cells."""
    for n, n_cells in [(1, 1), (3, 1), (4, 2), (99, 9), (100, 10), (101, 10)]:
        rng = np.random.default_rng(n)
        y_prob = rng.dirichlet(np.ones(2), size=n)
        y_true = draw_labels(y_prob, rng)
        for kind in (caltest.EqualWidth, caltest.EqualMass):
            for statistic in (caltest.ECE, caltest.SquaredL2, caltest.statistics.ConvexECE):
                value = error(y_true, y_prob, statistic(kind("sqrt")))
                assert value == error(y_true, y_prob, statistic(kind(n_cells))), (n, statistic, kind)


def test_the_cube_root_rule_is_that_of_scikit_learn():
    """``ceil(n ** (1 / 3))`` (pull request 33856), as whole numbers: of cubes and of the numbers after them."""
    for root in range(1, 2_000):
        assert [resolve_n_cells("cube-root", n) for n in (root**3, root**3 + 1)] == [root, root + 1]
    for n, n_cells in [(8, 2), (9, 3), (100, 5), (125, 5)]:
        prob = np.random.default_rng(n).random(n)
        y_true = np.arange(n) % 2
        value = caltest.calibration_error(y_true, prob, statistic=caltest.ECE(caltest.EqualMass("cube-root")))
        assert value == caltest.calibration_error(y_true, prob, statistic=caltest.ECE(caltest.EqualMass(n_cells)))
        if n in (8, 125):  # without remainder its quantiles make cells of the same observations
            observed, _ = calibration_curve(y_true, prob, n_bins=n_cells, strategy="quantile")
            curve = caltest.reliability_curve(y_true, prob, partition=caltest.EqualMass("cube-root"))
            np.testing.assert_allclose(observed, curve.observed)


@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_the_square_root_rule_where_rows_are_resampled():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(2), size=100)
    for kind in (caltest.EqualWidth, lambda n: caltest.EqualMass(n, cut="halfway")):
        rule, ten = (
            caltest.calibration_test(
                draw_labels(y_prob, np.random.default_rng(1)),
                y_prob,
                statistic=caltest.ECE(kind(n_cells)),
                resampling=caltest.Consistency(resample_predictions=True),
                n_resamples=49,
                rng=0,
            ).null_distribution
            for n_cells in ("sqrt", 10)
        )
        np.testing.assert_array_equal(rule, ten)


def test_what_a_distance_returns_is_checked():
    y_true, y_prob = [0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0]
    for method in ("exact", "monte-carlo"):
        for distance, message in [
            (lambda p, q: p - q, r"`distance` must reduce the last axis of arrays \(..., n_outcomes\)"),
            (lambda p, q: (p - q).sum(axis=-1) * np.nan, r"`distance` must return numbers, got nan"),
        ]:
            statistic = caltest.ECE(caltest.EqualWidth(2), distance)
            with pytest.raises(ValueError, match=message):
                caltest.calibration_test(y_true, y_prob, statistic=statistic, method=method, n_resamples=9, rng=0)
