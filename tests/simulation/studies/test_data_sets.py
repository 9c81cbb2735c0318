"""Data sets of studies: their distribution, and that each depends on seed, name and number only."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from caltest.simulation import GaussianMixture1D
from caltest.simulation.studies._data_sets import draw_data_sets
from caltest.simulation.studies._run import Block, replicate_rng


def drawn(model, n_samples, replicates, seed=0, name="a"):
    """Return labels and predictions of all replicates."""
    block = Block(name, model, n_samples, replicates, seed)
    sets = [each for one in draw_data_sets(block) for each in one.one_by_one()]
    return np.stack([one.y_true for one in sets]), np.stack([one.y_prob for one in sets])


def features(n_samples, replicates, seed=0):
    """Return labels and features, which are the logits of class 0 of the model (0, 1)."""
    y_true, y_prob = drawn(GaussianMixture1D(0, 1), n_samples, replicates, seed)
    return y_true, np.log(y_prob[..., 0]) - np.log(y_prob[..., 1])


@pytest.mark.slow(few_draws=True)
def test_the_compiled_draw_has_the_distribution_of_the_model():
    """Classes are equally likely and features normal around -1 and 1, also in the tail beyond 3.65."""
    y, x = (each.ravel() for each in features(4000, range(250)))
    count, normal = len(x), x - (2 * y - 1)
    assert abs(y.mean() - 0.5) < 4 * np.sqrt(0.25 / count)
    for label in (0, 1):
        mine = normal[y == label]
        for at in (-4.2, -3.7, -3.6, -2, -1, -0.3, -0.05, 0, 0.05, 0.3, 1, 2, 3.6, 3.7, 4.2):
            share = stats.norm.cdf(at)
            assert abs((mine <= at).mean() - share) < 4 * np.sqrt(share * (1 - share) / len(mine)), (label, at)
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        spread = np.sqrt(stats.norm.moment(2 * power) - moment**2)
        assert abs((normal**power).mean() - moment) < 4 * spread / np.sqrt(count), power
    assert stats.kstest(normal, "norm").pvalue > 6e-5  # as rare as 4 standard errors


def test_observations_and_data_sets_are_independent():
    _, x = features(1000, range(200), seed=1)
    for one, other in (
        (x[:, :-1], x[:, 1:]),
        (x[:, :-32], x[:, 32:]),
        (x[:-1], x[1:]),
        (np.abs(x[:-1]), np.abs(x[1:])),
    ):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(one.size)


def test_labels_have_the_true_probabilities():
    y, prob = drawn(GaussianMixture1D(0, -2), 2000, range(100), seed=2)
    event = prob[..., 1]
    assert abs((y - event).sum()) < 4 * np.sqrt((event * (1 - event)).sum())
    for low in np.arange(10) / 10:
        inside = (low <= event) & (event < low + 0.1)
        assert abs((y - event)[inside].sum()) < 4 * np.sqrt((event * (1 - event))[inside].sum()), low


def test_predictions_are_those_of_the_model():
    for model in (GaussianMixture1D(1, 1), GaussianMixture1D(0, 0), GaussianMixture1D(-3, 7), GaussianMixture1D(0, -2)):
        y, prob = drawn(model, 2000, range(2))
        label, x = features(2000, range(2))
        np.testing.assert_array_equal(y, label)
        np.testing.assert_allclose(prob, model.predict(x), rtol=1e-13)
        for one, feature in zip(
            next(draw_data_sets(Block("a", model, 2000, range(2), 0))).one_by_one(), x, strict=True
        ):
            np.testing.assert_allclose(one.class_prob(), model.posterior(feature), rtol=1e-12)
    extreme = drawn(GaussianMixture1D(0, 1e12), 2000, range(2))[1]
    np.testing.assert_array_equal(np.sort(extreme.reshape(-1, 2), axis=1), np.tile([0.0, 1.0], (4000, 1)))


@pytest.mark.parametrize("n_samples", [1, 31, 5000, 40_000])
def test_a_data_set_does_not_depend_on_those_drawn_with_it(n_samples):
    y, prob = drawn(GaussianMixture1D(1, 1), n_samples, range(3, 12))
    for number in (3, 7, 11):
        alone = drawn(GaussianMixture1D(1, 1), n_samples, range(number, number + 1))
        np.testing.assert_array_equal(alone[0][0], y[number - 3])
        np.testing.assert_array_equal(alone[1][0], prob[number - 3])
    assert not np.array_equal(prob, drawn(GaussianMixture1D(1, 1), n_samples, range(3, 12), seed=1)[1])
    assert not np.array_equal(prob, drawn(GaussianMixture1D(1, 1), n_samples, range(3, 12), name="b")[1])


@dataclass(frozen=True, repr=False)
class Own(GaussianMixture1D):
    """A model of a user, whose own draw must be asked."""


def test_other_models_draw_themselves():
    y, prob = drawn(Own(1, 1), 50, range(4, 6), seed=3)
    for number in (4, 5):
        _, label, predicted = Own(1, 1).draw(50, replicate_rng(3, "a/50", number))
        np.testing.assert_array_equal(y[number - 4], label)
        np.testing.assert_array_equal(prob[number - 4], predicted)
