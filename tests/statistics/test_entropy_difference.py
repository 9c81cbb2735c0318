"""The expected difference of entropies by hand: equations 7 to 10 of Laves et al. (2020)."""

import numpy as np
import pytest

import caltest
from caltest.statistics import EntropyDifference
from tests.reference import naive
from tests.reference.cases import check_refused
from tests.statistics.problems import calibrated, error


def test_the_example_of_the_paper():
    """Three inputs with labels 1, 1, 2, all predicted to be of class 1: q(1) = (2/3, 1/3)."""
    labels = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    assert error([0, 0, 1], [[2 / 3, 1 / 3]] * 3, EntropyDifference()) == pytest.approx(0, abs=1e-15)
    sure = [[1.0, 0.0], [2 / 3, 1 / 3], [0.5, 0.5]]  # entropies 0, that of the labels, and log 2
    expected = (labels + 0 + np.log(2) - labels) / 3
    assert error([0, 0, 1], sure, EntropyDifference()) == pytest.approx(expected, rel=1e-14)
    # The predicted class counts, not the label: a class that is always predicted and never happens.
    assert error([1, 1], [[0.6, 0.4]] * 2, EntropyDifference()) == pytest.approx(
        -(0.6 * np.log(0.6) + 0.4 * np.log(0.4)), rel=1e-14
    )


def test_a_calibrated_model_is_not_at_zero():
    """The documented example: half (0.9, 0.1), half (0.6, 0.4), as often right as predicted."""
    y_prob = np.repeat([[0.9, 0.1], [0.6, 0.4]], [500, 500], axis=0)
    y_true = np.repeat([0, 1, 0, 1], [450, 50, 300, 200])
    nine, six, mean = (-(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in (0.9, 0.6, 0.75))
    value = error(y_true, y_prob, EntropyDifference())
    assert value == pytest.approx((abs(mean - nine) + abs(mean - six)) / 2, rel=1e-12)
    assert round(value, 3) == 0.174
    result = caltest.calibration_test(y_true, y_prob, statistic=EntropyDifference(), n_resamples=199, rng=0)
    assert not result.rejected
    assert result.noise_floor == pytest.approx(value, abs=0.02)


def test_permuted_labels_are_not_detected():
    """What the docstring warns of: frequencies have the same entropy in any order."""
    y_true, y_prob = calibrated(300, 3)
    turned = (y_true + 1) % 3
    assert error(turned, y_prob, EntropyDifference()) == pytest.approx(error(y_true, y_prob, EntropyDifference()))


@pytest.mark.parametrize("weighted", [False, True])
def test_many_classes_equal_the_loop(weighted):
    """Counts of labels are not tabulated where most labels of a predicted class do not occur."""
    y_true, y_prob = calibrated(60, 12)
    assert len(set(y_prob.argmax(axis=1).tolist())) * 12 > 60
    weight = np.arange(60) % 4 + 0.5 if weighted else None
    drawn = np.random.default_rng(0).permuted(np.tile(y_true, (5, 1)), axis=1)
    sample = caltest.predictions.Sample(y_prob, y_true, y_prob, row=np.arange(60), weight=weight)
    found = EntropyDifference().evaluate(sample, drawn)
    expected = [naive.entropy_difference(None, y_prob.tolist(), one.tolist(), weight) for one in drawn]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_groups_are_refused():
    y_true, y_prob = calibrated(30, 3)
    options = {"statistic": EntropyDifference(), "groups": np.arange(30) // 2, "n_resamples": 19}
    told = "`groups` needs a statistic of the residuals"
    check_refused(caltest.calibration_test, ValueError, told, y_true, y_prob, **options)
