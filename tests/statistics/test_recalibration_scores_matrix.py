"""The score of matrix scaling: the derivative of a likelihood, exchanged classes, zeros, and what it detects."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample

SCORE = caltest.statistics.MatrixScore()


def draw(y_prob, rng):
    return (rng.random((len(y_prob), 1)) >= y_prob.cumsum(axis=1)[:, :-1]).sum(axis=1)


def test_it_is_the_derivative_of_the_likelihood():
    """By finite differences in every entry of W and b, and with the intercept of the same class profiled out."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), size=60)
    y_true = rng.integers(3, size=60)
    x = np.log(y_prob)

    def likelihood(matrix, shift):
        logits = x @ matrix.T + shift
        return (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))[np.arange(60), y_true].sum()

    def slope(change_matrix, change_shift):
        up, down = (likelihood(np.eye(3) + s * change_matrix, s * change_shift) for s in (1e-5, -1e-5))
        return (up - down) / 2e-5

    largest = 0.0
    for j in range(3):
        v = y_prob[:, j] * (1 - y_prob[:, j])
        shift = slope(np.zeros((3, 3)), np.eye(3)[j])
        largest = max(largest, abs(shift) / np.sqrt(v.sum()))
        for k in range(3):
            entry = np.zeros((3, 3))
            entry[j, k] = 1
            mean = (v * x[:, k]).sum() / v.sum()
            score = slope(entry, np.zeros(3)) - mean * shift
            largest = max(largest, abs(score) / np.sqrt((v * (x[:, k] - mean) ** 2).sum()))
    assert caltest.calibration_error(y_true, y_prob, statistic=SCORE) == pytest.approx(largest, rel=1e-6)


def test_exchanged_classes():
    rng = np.random.default_rng(1)
    event = rng.random(200).round(2)
    y_true = rng.random(200) < event
    one, other = (caltest.calibration_error(y, p, statistic=SCORE) for y, p in ((y_true, event), (~y_true, 1 - event)))
    assert one == pytest.approx(other, rel=1e-10)
    y_prob = rng.dirichlet(np.ones(4), size=200)
    labels, order = draw(y_prob, rng), np.array([2, 0, 3, 1])
    whole = caltest.calibration_error(labels, y_prob, statistic=SCORE)
    assert caltest.calibration_error(np.argsort(order)[labels], y_prob[:, order], statistic=SCORE) == pytest.approx(
        whole, rel=1e-10
    )


def test_zeros():
    """A zero counts as 2 ** -52 in the logarithm; a label of probability 0 is infinite evidence, unless unweighted."""
    y_prob = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    raised = np.maximum(y_prob, 2.0**-52)
    assert caltest.calibration_error([0, 1, 2, 1], y_prob, statistic=SCORE) == pytest.approx(
        caltest.calibration_error([0, 1, 2, 1], raised, statistic=SCORE), rel=1e-9
    )
    assert caltest.calibration_error([2, 1, 2, 1], y_prob, statistic=SCORE) == np.inf
    weight = [0.0, 1.0, 1.0, 1.0]
    assert caltest.calibration_error([2, 1, 2, 1], y_prob, statistic=SCORE, sample_weight=weight) < np.inf
    certain = np.eye(3)
    assert caltest.calibration_error([0, 1, 2], certain, statistic=SCORE) == 0
    assert caltest.calibration_error([0, 1, 1], certain, statistic=SCORE) == np.inf


def test_outcomes_in_parts():
    rng = np.random.default_rng(2)
    y_prob = rng.dirichlet(np.ones(5), size=70)
    sample = make_sample(draw(y_prob, rng), y_prob)
    outcomes = rng.integers(5, size=(3, 4, 70)).astype(np.uint8)
    whole = SCORE.evaluate(sample, outcomes)
    assert whole.shape == (3, 4)
    assert np.array_equal(whole[1, 2], SCORE.evaluate(sample, outcomes[1, 2]))


def test_it_detects_two_classes_that_are_confused():
    """Fifteen per cent of two of ten classes exchanged: always; the paths of single classes stay nearly the same."""
    found = {SCORE: 0, caltest.statistics.ClasswiseKS(): 0}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y_prob = rng.dirichlet(np.full(10, 0.5), size=2000)
        truth = y_prob.copy()
        truth[:, :2] = 0.85 * y_prob[:, :2] + 0.15 * y_prob[:, 1::-1]
        y_true = draw(truth, rng)
        for statistic in found:
            found[statistic] += caltest.calibration_test(
                y_true, y_prob, statistic=statistic, n_resamples=39, rng=seed
            ).rejected
    assert found[SCORE] >= 9
    assert found[caltest.statistics.ClasswiseKS()] <= 8
