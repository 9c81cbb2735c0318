"""Spiegelhalter's test: published networks, formulas, cases by hand, its direction, and where its limit fails."""

import math

import numpy as np
import pytest
from scipy import special, stats

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.engine._evaluation import null_values
from tests.hypothesis_tests.classical.limits import check_size, rare_events
from tests.hypothesis_tests.problems import STANDARD_ERRORS, calibrated, codes, words

NETWORKS = {
    "cifar10_vgg19_bn": (75.214387405, "over-confident"),
    "cifar10_densenet121": (37.135082337, "over-confident"),
    "cifar10_googlenet": (7.52104541632, "too extreme"),  # 93.4 % confidence, 93.0 % right, calibration slope 0.77
    "cifar10_resnet_orig": (53.2200142507, "over-confident"),
}
CONFIDENCES = {
    "top1_cifar10_resnet50": (12.2202588483, "too high"),
    "top1_imagenet_resnet152": (48.0909345487, "too high"),
}
"""Z, and the direction by the average, or by the slope if no error of the average is found."""

UPPER_TAIL = {"cifar10_googlenet": 2.72004641033e-14}
"""Another program's p-value is the upper tail; here it counts twice."""


def brier_test(y_true, y_prob, **options):
    return caltest.spiegelhalter_test(y_true, y_prob, **{"method": "asymptotic", **options})


# Reference values and formulas.


def test_published_networks(shared_data):
    for name, (z, direction) in {**NETWORKS, **CONFIDENCES}.items():
        with np.load(shared_data / f"{name}.npz") as data:
            if name in NETWORKS:
                result = brier_test(data["labels"], data["probs"], lens=caltest.Confidence())
            else:
                result = brier_test(data["labels"], data["scores"])
        assert result.statistic == pytest.approx(z, rel=0, abs=1e-9), name
        assert result.direction == direction, name
        if name in UPPER_TAIL:
            assert result.pvalue == pytest.approx(2 * UPPER_TAIL[name], rel=1e-3), name


def test_formula_of_two_classes():
    y, y_prob = calibrated(300, 2)
    p = y_prob[:, 1]
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    result = brier_test(y, p)
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)


def test_standardised_brier_score():
    """Of any number of classes: by the moments of the score itself."""
    y_true, y_prob = calibrated(300, 4)
    scores = np.stack([np.square(y_prob - np.eye(4)[k]).sum(axis=1) for k in range(4)], axis=1)
    mean = (y_prob * scores).sum(axis=1)
    variance = (y_prob * np.square(scores)).sum(axis=1) - mean**2
    z = (scores[np.arange(300), y_true] - mean).sum() / np.sqrt(variance.sum())
    assert brier_test(y_true, y_prob).statistic == pytest.approx(z, rel=1e-12)


def test_by_hand():
    """0.9 and right in 6 of 10: residuals sum to -3, times -0.8, over the root of 10 * 0.64 * 0.09."""
    z, _ = brier_test([1] * 6 + [0] * 4, [0.9] * 10)
    assert z == pytest.approx(2.4 / math.sqrt(0.576), rel=1e-12)
    z, _ = brier_test([1] * 10, [0.9] * 10)
    assert z == pytest.approx(-0.8 / math.sqrt(0.576), rel=1e-12)


# The result.


def test_the_statistic_has_a_sign_and_its_null_distribution_none():
    for y_true, word in [([1] * 6 + [0] * 4, "worse"), ([1] * 10, "better")]:
        result = brier_test(y_true, [0.9] * 10)
        assert (result.statistic < 0) == (word == "better")
        assert result.components[0].statistic == abs(result.statistic)
        assert result.pvalue == pytest.approx(result.null.sf(abs(result.statistic)), rel=1e-12)
        size = f"{abs(result.statistic):.4g}"
        assert f"The Brier score is {size} standard deviations {word} than expected." in words(result)


def test_directions():
    """Wrong temperatures, with enough evidence and with too little."""
    rng = np.random.default_rng(0)
    logit = rng.normal(size=2000) * 2
    y_true = rng.random(2000) < special.expit(logit)
    for temperature, word in [(0.5, "too extreme"), (2.0, "not extreme enough")]:
        for n, direction in [(2000, word), (5, None)]:
            result = brier_test(y_true[:n], special.expit(logit[:n] / temperature))
            assert result.direction == direction, (temperature, n)


def test_an_impossible_label_does_not_give_a_direction():
    """It makes the p-value the smallest possible, although Z is small."""
    y_true, y_prob = calibrated(100, 2)
    y_prob[7], y_true[7] = [0, 1], 0
    result = brier_test(y_true, y_prob)
    assert result.pvalue == np.finfo(float).tiny
    assert 2 * stats.norm.sf(abs(result.statistic)) > 0.05
    assert result.direction is None


def test_without_variance_z_is_0_or_infinite():
    for y_true, z, said in [
        ([0, 1], 0.0, "The Brier score is as expected."),
        ([0, 0], np.inf, "The Brier score is worse than expected, although the predictions leave it no variance."),
    ]:
        result = brier_test(y_true, [0.0, 1.0])
        assert result.statistic == z
        assert not np.signbit(result.statistic)
        assert said in words(result)


def test_no_power_at_equal_probabilities():
    for prob in (np.full(200, 0.5), [[1 / 3] * 3] * 200):
        result = brier_test(np.ones(200, dtype=int), prob, method="monte-carlo", n_resamples=199, rng=0)
        assert tuple(result) == (0, 1)
        assert codes(result.notes) == ["C202"]


def test_names_of_the_classes_do_not_matter():
    y_true, y_prob = calibrated(120, 4)
    order = np.array([2, 0, 3, 1])
    renamed = brier_test(np.argsort(order)[y_true], y_prob[:, order])
    assert renamed.statistic == pytest.approx(brier_test(y_true, y_prob).statistic, rel=1e-9)


# Distributions.


def test_mean_square_under_the_null():
    """1, whatever the predictions."""
    for n_classes, concentration in [(2, 0.5), (2, 2.0), (4, 0.5), (4, 2.0)]:
        sample = make_sample(*calibrated(200, n_classes, concentration=concentration))
        values = null_values(caltest.statistics.Spiegelhalter(), sample, caltest.Consistency().draws(4000, rng=0)) ** 2
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - 1) < STANDARD_ERRORS * error, (n_classes, concentration)


def test_where_the_limit_fails():
    """The figure of the docstring."""
    check_size(caltest.statistics.Spiegelhalter(), rare_events, 20, alpha=0.01, documented="0.03")
