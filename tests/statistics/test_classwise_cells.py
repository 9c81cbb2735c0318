"""Cells of entries: centred on the null hypothesis, cut anew, counted while drawing, and many."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.engine._evaluation import null_values
from caltest.statistics import ACE, GCE, RMSCE, SCE, UCE
from tests.reference import naive
from tests.reference.cases import mostly_slow
from tests.reference.examples import draw_labels
from tests.statistics.problems import error


def reversed_probabilities(prob):
    """A known calibration function."""
    return prob[:, ::-1]


def test_residuals_are_centred_on_a_known_calibration_function():
    rng = np.random.default_rng(3)
    y_prob = rng.dirichlet(np.ones(3), size=40)
    y_true = draw_labels(y_prob[:, ::-1], rng)
    scheme = caltest.Consistency(calibration_function=reversed_probabilities)
    for statistic in (GCE("equal-mass", norm="l2"), SCE(4), RMSCE(3), UCE(3)):
        result = caltest.calibration_test(y_true, y_prob, statistic=statistic, resampling=scheme, n_resamples=19, rng=0)
        expected = naive.evaluate(statistic, y_prob, y_true, expected=reversed_probabilities(y_prob))
        assert result.statistic == pytest.approx(expected, rel=1e-12), statistic
        assert result.pvalue > 0.05, statistic


def test_resampled_predictions_are_cut_anew():
    rng = np.random.default_rng(4)
    y_prob = rng.dirichlet(np.ones(3), size=30)
    sample = make_sample(draw_labels(y_prob, rng), y_prob)
    draws = caltest.Consistency(resample_predictions=True).draws(5, rng=1)
    for statistic in (GCE(), ACE(3), UCE(3)):
        expected = [naive.evaluate(statistic, drawn.prob, outcomes[0]) for drawn, outcomes in draws.blocks(sample)]
        values = null_values(statistic, sample, draws)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, err_msg=str(statistic))


def test_resampled_predictions_in_sparse_cells_cause_a_warning():
    rng = np.random.default_rng(8)
    y_prob = rng.dirichlet(np.ones(3), size=30)
    rows = caltest.Consistency(resample_predictions=True)
    with pytest.warns(caltest.results.CalibrationWarning) as warned:
        caltest.calibration_test(draw_labels(y_prob, rng), y_prob, statistic=SCE(), resampling=rows, n_resamples=19)
    assert any("100% of the observations lie in cells (bins) of SCE() with" in str(w.message) for w in warned)


PREDICTIONS = {
    "sharp": lambda rng: rng.dirichlet(np.full(10, 0.005), size=2500),
    "vague": lambda rng: rng.dirichlet(np.ones(10), size=2500),
    "sharp, then vague": lambda rng: np.concatenate([PREDICTIONS["sharp"](rng), PREDICTIONS["vague"](rng)]),
    "certain": lambda rng: np.eye(4)[rng.integers(4, size=1100)],
    "nearly certain": lambda rng: np.abs(np.eye(6)[rng.integers(6, size=1100)] - 1e-9 / np.array([1, 5, 5, 5, 5, 5])),
    "two classes": lambda rng: rng.dirichlet([0.05, 0.05], size=1500),
    "300 classes": lambda rng: rng.dirichlet(np.full(300, 0.0005), size=1500),
}


@pytest.mark.parametrize("name", mostly_slow(PREDICTIONS))
def test_counting_while_drawing_is_counting_what_was_drawn(name):
    """Over several tiles of observations, sharp and vague ones; the same draws, to the bit."""
    y_prob = PREDICTIONS[name](np.random.default_rng(5))
    y_prob /= y_prob.sum(axis=1, keepdims=True)
    sample = make_sample(np.argmax(y_prob, axis=1), y_prob)
    draws = caltest.Consistency().draws(300, rng=6)
    statistics = GCE("equal-mass", norm="l2"), SCE(), RMSCE(), UCE()
    drawn = np.concatenate([outcomes for _, outcomes in draws.blocks(sample)])
    assert drawn.shape == (300, len(y_prob))
    for statistic in statistics:
        assert draws.summarise(sample, statistic.summary(sample)) is not None, "there is a fast path"
        values, expected = null_values(statistic, sample, draws), statistic.evaluate(sample, drawn)
        np.testing.assert_array_equal(values, expected, err_msg=str(statistic))


@pytest.mark.slow
def test_more_cells_than_a_short_integer_counts():
    rng = np.random.default_rng(7)
    y_prob = rng.dirichlet(np.ones(3), size=10)
    y_true = draw_labels(y_prob, rng)
    fine = error(y_true, y_prob, SCE(30_000))
    assert fine == pytest.approx(naive.evaluate(SCE(30_000), y_prob, y_true), abs=1e-12)
    null = caltest.calibration_test(y_true, y_prob, statistic=SCE(30_000), n_resamples=9, rng=0).null_distribution
    assert null.shape == (9,)


def test_threads_change_nothing():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    options = {"statistic": SCE(), "n_resamples": 600, "rng": 1}
    one, two = (caltest.calibration_test(y_true, y_prob, **options, workers=workers) for workers in (1, 2))
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
