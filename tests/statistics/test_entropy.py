"""The uncertainty calibration error by hand."""

import numpy as np
import pytest

import caltest
from caltest.statistics import ACE, MMCE, UCE, ClassConditionalUCE, ConfidenceECE
from tests.reference.cases import check_refused
from tests.statistics.problems import error


def test_by_hand():
    # Entropy 1 and wrong in one of two, entropy 0 and right.
    assert error([0, 1, 0, 0], [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], UCE()) == 0.25
    # log 2 / log 4 = 1/2 belongs to the cell below: with 2 cells the same one as 0.
    y_prob = [[0.5, 0.5, 0, 0], [1.0, 0, 0, 0]]
    assert error([1, 0], y_prob, UCE(2)) == pytest.approx(abs(1 - 0.5) / 2, rel=1e-14)


def test_a_model_that_is_wrong_may_have_a_smaller_error():
    """What the docstring warns of: entropy is not the error rate of a calibrated model."""
    y_prob = np.tile([0.5, 0.25, 0.25], (400, 1))
    result = caltest.calibration_test(np.ones(400, int), y_prob, statistic=UCE(), n_resamples=99, rng=0)
    assert result.pvalue == 1
    assert result.statistic < result.noise_floor


def test_the_error_of_a_calibrated_model_is_not_zero():
    """The documented example: 60 % of the labels are of the class that was given 0.6, and the entropy is 0.971."""
    y_prob = np.tile([0.6, 0.4], (1000, 1))
    entropy = -(0.6 * np.log(0.6) + 0.4 * np.log(0.4)) / np.log(2)
    assert error(np.repeat([0, 1], [600, 400]), y_prob, UCE()) == pytest.approx(entropy - 0.4, rel=1e-12)
    assert round(entropy - 0.4, 3) == 0.571
    assert error(np.repeat([0, 1], [30, 970]), y_prob, UCE()) == pytest.approx(entropy - 0.03 - 0.94, abs=1e-12)


def test_figure_3_only_uce_is_not_zero():
    """The authors expect ACE to find the second class, whose accuracy is 0: ACE compares frequencies, which are 0.4."""
    y_true, y_prob = np.repeat([0, 1], [600, 400]), np.tile([0.6, 0.4], (1000, 1))
    for statistic in (ConfidenceECE(), ACE(), ACE(cell_weight="observations")):
        assert error(y_true, y_prob, statistic) == pytest.approx(0, abs=1e-12)
    assert error(y_true, y_prob, MMCE(), caltest.Confidence()) == pytest.approx(0, abs=1e-7)
    hit = [((y_prob.argmax(axis=1) == k) & (y_true == k)).mean() for k in (0, 1)]
    assert np.abs(hit - y_prob[0]).mean() == pytest.approx(0.2)
    # Equally full cells through ties hold one class each where rows are sorted by label.
    cut = [[np.mean(part == k) - y_prob[0, k] for part in np.array_split(y_true, 15)] for k in (0, 1)]
    assert round(np.abs(cut).mean(), 2) == 0.48


def test_figure_4_uce_of_two_classes_is_the_mean_entropy_minus_the_error_rate():
    """So it has the same value for every number of cells, and ranks an over-confident model before a calibrated one."""
    rng = np.random.default_rng(0)
    event = rng.random(1000)
    y_true, odds = (rng.random(1000) < event).astype(int), event / (1 - event)
    values = []
    for power in (1.3, 1.0, 0.75):
        prob = odds**power / (1 + odds**power)
        whole = caltest.estimation.normalized_entropy(prob).mean() - ((prob > 0.5) != y_true).mean()
        for n_cells in (1, 5, 15, 25):
            assert error(y_true, prob, UCE(n_cells)) == pytest.approx(whole, rel=1e-9)
        values.append(whole)
    assert values == sorted(values)


def test_the_mean_over_predicted_classes():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    top = y_prob.argmax(axis=1)
    each = np.array([error(y_true[top == k], y_prob[top == k], UCE()) for k in range(10)])
    assert error(y_true, y_prob, ClassConditionalUCE()) == pytest.approx(each.mean(), rel=1e-12)
    weighted = error(y_true, y_prob, ClassConditionalUCE(class_weight="observations"))
    assert weighted == pytest.approx(np.bincount(top) @ each / 10_000, rel=1e-12)
    assert (round(each.mean(), 9), round(weighted, 9)) == (0.037836794, 0.038016172)
    # Nobody is predicted to be in class 2: it adds 0, and the mean is over three classes.
    assert error([0, 1], [[1.0, 0, 0], [1.0, 0, 0]], ClassConditionalUCE()) == pytest.approx(0.5 / 3, rel=1e-12)


def test_bad_cells_are_refused():
    check_refused(UCE, ValueError, "`n_cells` must be an integer >= 1, got -1.", -1)
