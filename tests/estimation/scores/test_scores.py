"""Scores against scikit-learn, reference values, hand-computed cases and loops."""

import math

import numpy as np
import pytest
from sklearn import metrics

import caltest as ct
from caltest.estimation import (
    accuracy,
    brier_score,
    log_score,
    mean_confidence,
    overconfidence_score,
    spherical_score,
    underconfidence_score,
)
from caltest.recalibration import TemperatureScaling
from tests.reference.cases import mostly_slow
from tests.reference.examples import PROBLEMS

SCORES = [
    accuracy,
    brier_score,
    log_score,
    mean_confidence,
    overconfidence_score,
    spherical_score,
    underconfidence_score,
]
EXACT = {"rtol": 1e-12, "atol": 1e-12}

# From goldens.json: accuracy, sum of squares over classes, mean negative log-likelihood.
NETWORKS = {
    "cifar10_vgg19_bn": (0.9368, 0.111370673761, 0.366565499292),
    "cifar10_densenet121": (0.9272, 0.118734308622, 0.29110555801),
    "cifar10_googlenet": (0.9295, 0.107276875893, 0.232595855377),
    "cifar10_resnet_orig": (0.8849, 0.180549557212, 0.466678304992),
}


def naive_score(score, prob, label, weight):
    """One observation after the other."""
    total = value = 0.0
    for p, y, w in zip(prob.tolist(), label.tolist(), weight, strict=True):
        if w == 0:
            continue
        right = (p[y] == max(p)) / p.count(max(p))
        if score is brier_score:
            term = sum((x - (k == y)) ** 2 for k, x in enumerate(p)) if len(p) > 2 else (p[1] - y) ** 2
        elif score is log_score:
            term = -math.log(p[y]) if p[y] > 0 else math.inf
        elif score is spherical_score:
            term = p[y] / math.sqrt(sum(x * x for x in p))
        else:
            term = {
                accuracy: right,
                mean_confidence: max(p),
                overconfidence_score: max(p) * (1 - right),
                underconfidence_score: (1 - max(p)) * right,
            }[score]
        total, value = total + w, value + w * term
    return value / total


@pytest.mark.parametrize("score", mostly_slow(SCORES))
def test_equals_the_loops(score):
    for problem in PROBLEMS:
        prob = problem.y_prob.astype(float)
        for weight in (None, problem.weight):
            expected = naive_score(score, prob, problem.y_true, np.ones(len(prob)) if weight is None else weight)
            value = score(problem.y_true, problem.y_prob, sample_weight=weight)
            assert isinstance(value, float)
            np.testing.assert_allclose(value, expected, **EXACT, err_msg=f"{problem.name}, weight {weight is not None}")


def test_definitions_of_scikit_learn():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(4), size=200)
    label = rng.integers(4, size=200)
    for weight in (None, rng.random(200)):
        options = {"sample_weight": weight}
        assert log_score(label, prob, **options) == pytest.approx(metrics.log_loss(label, prob, **options))
        right = metrics.accuracy_score(label, prob.argmax(axis=1), **options)
        assert accuracy(label, prob, **options) == pytest.approx(right, rel=1e-12)
        event, p = label == 0, prob[:, 0]
        assert brier_score(event, p, **options) == pytest.approx(metrics.brier_score_loss(event, p, **options))
        # Several classes: the sum over one-vs-rest problems; scikit-learn itself sums since 1.7.
        summed = sum(metrics.brier_score_loss(label == k, prob[:, k], **options) for k in range(4))
        assert brier_score(label, prob, **options) == pytest.approx(summed, rel=1e-12)


def test_the_accuracy_of_tied_classes_is_the_same_everywhere_and_in_every_order():
    """Labels 0, 0, 0, 1 with predictions (.5, .5) had the accuracy .75 in one place and .5 in another."""
    label, prob = np.array([0, 0, 0, 1]), np.full((4, 2), 0.5)
    assert (
        accuracy(label, prob) == accuracy(1 - label, prob) == accuracy([3, 0, 1, 2], np.full((4, 4), 0.25)) * 2 == 0.5
    )
    rng = np.random.default_rng(0)
    prob = rng.integers(1, 4, size=(120, 3)).astype(float)
    prob /= prob.sum(axis=1, keepdims=True)
    label, order = rng.integers(3, size=120), np.array([2, 0, 1])
    wanted = accuracy(label, prob)
    assert wanted != (prob.argmax(axis=1) == label).mean(), "there are ties"
    for given, own in ((prob, label), (prob[:, order], np.argsort(order)[label])):
        compared = ct.compare_models(own, {"a": given, "b": np.full((120, 3), 1 / 3)}, n_resamples=99, rng=0)
        assert next(iter(compared)).accuracy == pytest.approx(wanted, rel=1e-12)
        half = np.arange(120) % 2 == 0
        study = ct.recalibration_study(own, {"a": given}, [TemperatureScaling()], held_out=half, n_resamples=99, rng=0)
        assert study.rows[0].accuracy == pytest.approx(accuracy(own[half], given[half]), rel=1e-12)
        assert ct.training_track(None, [(own, given)], n_resamples=99, rng=0).accuracy[0] == pytest.approx(
            wanted, rel=1e-12
        )


def test_reference_values(shared_data):
    for name, expected in NETWORKS.items():
        with np.load(shared_data / f"{name}.npz") as data:
            y_true, y_prob = data["labels"], data["probs"]
        found = [score(y_true, y_prob) for score in (accuracy, brier_score, log_score)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=name)


def test_the_two_halves_are_the_gap():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    for lens in (None, ct.TopK(2), ct.ClassWise(1)):
        over, under, sure, right = (
            score(y_true, y_prob, lens=lens)
            for score in (overconfidence_score, underconfidence_score, mean_confidence, accuracy)
        )
        assert over - under == pytest.approx(sure - right, abs=1e-12), lens


def test_halves_of_a_calibrated_model_are_equal_on_average():
    """Both have the mean of c (1 - c); the gap has its variance, here within 4 standard errors."""
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), size=20_000)
    label = (rng.random((20_000, 1)) > np.cumsum(prob, axis=1)).sum(axis=1)
    sure = prob.max(axis=1)
    error = np.sqrt((sure * (1 - sure)).sum()) / 20_000
    for half in (overconfidence_score, underconfidence_score):
        assert abs(half(label, prob) - (sure * (1 - sure)).mean()) < 4 * error


def test_a_label_of_probability_zero():
    assert log_score([2, 0], [[0.5, 0.5, 0.0]] * 2) == math.inf
    assert log_score([2, 0], [[0.5, 0.5, 0.0]] * 2, sample_weight=[0.0, 1.0]) == pytest.approx(math.log(2))
    assert log_score([0], [[1.0, 0.0]]) == 0
    assert str(log_score([0], [[1.0, 0.0]])) == "0.0"
    assert brier_score([2], [[1.0, 0.0, 0.0]]) == 2
    assert brier_score([0], [1.0]) == 1
    assert spherical_score([2], [[1.0, 0.0, 0.0]]) == 0


def test_lens_and_names():
    rng = np.random.default_rng(2)
    prob, label = rng.dirichlet(np.ones(3), size=50), rng.integers(3, size=50)
    order = rng.permutation(50)
    names = np.array(["a", "b", "c"])
    for score in SCORES:
        looked = score(label, prob, lens=ct.ClassWise(1))
        assert looked == pytest.approx(score(label == 1, prob[:, 1]), rel=1e-12), score
        assert score(names[label], prob, classes=list(names)) == score(label, prob), score
        assert score(label[order], prob[order]) == pytest.approx(score(label, prob), rel=1e-12), score


def test_bad_input_is_refused():
    cases = [
        (([0, 2], [0.5, 0.5]), "`y_true` must hold class indices 0 to 1"),
        (([0, 1], [0.5, 1.5]), r"`y_prob` must lie in \[0, 1\], got 1.5"),
        (([0], [0.5, 0.5]), "`y_true` and `y_prob` must have the same length, got 1 and 2"),
    ]
    for score in SCORES:
        for arguments, message in cases:
            with pytest.raises(ValueError, match=message):
                score(*arguments)
        with pytest.raises(ValueError, match=r"`sample_weight` must have shape \(2,\), got \(1,\)"):
            score([0, 1], [0.5, 0.5], sample_weight=[1.0])
