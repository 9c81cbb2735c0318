"""Predictions are rejected by the disagreement of their passes."""

import math

import numpy as np
import pytest

import caltest as ct
from caltest.predictions import PredictionStack


def entropy(row):
    return -sum(p * math.log(p) for p in row if p > 0) / math.log(len(row))


def disagreements(passes):
    """Mutual information and variance of each observation, in loops."""
    found = []
    for of_one in np.swapaxes(passes, 0, 1).tolist():
        mean = [sum(column) / len(of_one) for column in zip(*of_one, strict=True)]
        information = entropy(mean) - sum(map(entropy, of_one)) / len(of_one)
        squares = [sum((p - m) ** 2 for p, m in zip(row, mean, strict=True)) for row in of_one]
        found.append((information, sum(squares) / len(of_one)))
    return np.array(found).T


@pytest.fixture(scope="module")
def problem():
    """Passes that disagree most where the label is random: the average cannot tell it from a vague prediction."""
    rng = np.random.default_rng(4)
    sure = rng.dirichlet([6, 1, 1], 300)
    unknown = np.arange(300) % 3 == 0
    passes = np.stack([np.where(unknown[:, None], rng.permuted(sure, axis=1), sure) for _ in range(9)])
    y_true = np.where(unknown, rng.integers(3, size=300), sure.argmax(axis=1))
    return y_true, passes, unknown


def test_equals_the_loops(problem):
    y_true, passes, _ = problem
    stack = PredictionStack(passes, average="passes")
    names = ("mutual-information", "variance")
    curve = ct.rejection_curve(y_true, stack, uncertainty=names, n_points=1000)
    wrong = stack.mean.argmax(axis=1) != y_true
    for name, values in zip(names, disagreements(passes), strict=True):
        rows = curve.entries("", name)
        for threshold, kept, error in zip(curve.threshold[rows], curve.n_kept[rows], curve.error[rows], strict=True):
            inside = values <= threshold + 1e-9
            assert inside.sum() == kept
            assert wrong[inside].mean() == pytest.approx(error, abs=1e-12)
        assert values.max() <= 1


def test_by_hand():
    """Passes that contradict each other, and passes that are uncertain together: the entropy is 1 in both."""
    passes = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    curve = ct.rejection_curve(
        [0, 1], PredictionStack(passes, average="passes"), uncertainty=["entropy", "mutual-information", "variance"]
    )
    thresholds = {name: curve.threshold[curve.entries("", name)].tolist() for _, name in curve.curves}
    assert thresholds == {"entropy": [1.0], "mutual-information": [0.0, 1.0], "variance": [0.0, 0.5]}


def test_disagreement_finds_what_the_network_does_not_know(problem):
    y_true, passes, unknown = problem
    stack = PredictionStack(passes, average="passes")
    curve = ct.rejection_curve(y_true, {"net": stack}, uncertainty=["entropy", "mutual-information"])
    assert curve.area["net", "mutual-information"] < curve.area["net", "entropy"]
    assert "with the largest mutual information of the passes" in curve.conclusion
    weight = 1.0 + unknown
    assert ct.rejection_curve(y_true, stack, uncertainty="variance", sample_weight=weight).n_samples == 300
    kept = np.arange(300) < 200
    some = ct.rejection_curve(y_true, stack, uncertainty="variance", sample_weight=kept)
    few = PredictionStack(passes[:, :200], average="passes")
    np.testing.assert_array_equal(some.error, ct.rejection_curve(y_true[:200], few, uncertainty="variance").error)


def test_shift_of_passes(problem):
    """Foreign observations are those whose passes disagree."""
    _, passes, unknown = problem
    home, foreign = (PredictionStack(passes[:, which], average="passes") for which in (~unknown, unknown))
    curve = ct.shift_curve(home, foreign, uncertainty="mutual-information", batch_size=20, n_resamples=50, rng=0)
    assert curve.auroc["", "mutual-information"] == 1.0
    np.testing.assert_allclose(curve.mean[[0, -1]], [0.0, disagreements(passes[:, unknown])[0].mean()], atol=1e-9)


def test_pictures_tell_the_measures_apart(problem):
    y_true, passes, _ = problem
    stack = PredictionStack(passes, average="passes")
    measures = ["entropy", "confidence", "mutual-information", "variance"]
    ax = ct.rejection_curve(y_true, stack, uncertainty=measures).plot()
    looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.get_lines()[:8:2]}
    assert len(looks) == 4
