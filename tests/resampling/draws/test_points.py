"""Labels by their departures: the right distribution, the naive twin, and the same whatever the blocks."""

import numpy as np
import pytest
from scipy.stats import chi2

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._points import Points
from tests.reference.departures import labels_of_points, probabilities_of_points
from tests.resampling.checks import assert_close, assert_same_distribution


@pytest.fixture(autouse=True)
def however_many_depart(monkeypatch):
    """Also labels that depart more often than is fast."""
    monkeypatch.setattr("caltest.resampling.draws._points.LARGEST_DEPARTURE", 1.0)


def sharp(n, n_classes, seed=0, concentration=0.03):
    """Predictions whose labels depart from the most probable one rarely."""
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, concentration), size=n)


def with_zeros(n, n_classes):
    prob = sharp(n, n_classes)
    prob[prob < 0.05] = 0
    return prob / prob.sum(axis=1, keepdims=True)


def in_tenths(n, n_classes):
    prob = np.full((n, n_classes), 0.0)
    prob[:, 0], prob[:, 1] = np.where(np.arange(n) % 2, 0.9, 0.8), np.where(np.arange(n) % 2, 0.1, 0.2)
    return prob


PREDICTIONS = {
    "two": sharp(63, 2, concentration=0.1),
    "three": sharp(300, 3),
    "ten": sharp(64, 10),
    "seventeen": sharp(65, 17),
    "thirty-two": sharp(100, 32, concentration=0.01),
    "zeros": with_zeros(200, 5),
    "tenths": in_tenths(101, 4),
    "rare": np.column_stack([np.full(500, 0.999), np.full(500, 0.001)]),
    "one observation": np.array([[0.1, 0.9]]),
    "one-hot": np.eye(3)[np.arange(20) % 3],
    "two equal": np.array([[0.5, 0.5, 0.0]] + [[1.0, 0.0, 0.0]] * 9),
    "float32": sharp(200, 6).astype(np.float32),
}
CASES = pytest.mark.parametrize("name", PREDICTIONS)


def sample_of(prob):
    return make_sample(np.zeros(len(prob), dtype=int), prob)


@CASES
def test_tables_hold_the_probabilities(name):
    """The probability of every label follows from rates, thresholds and aliases, within their 32 bits."""
    sample = sample_of(PREDICTIONS[name])
    points = Points.of(sample)
    found = probabilities_of_points(points, sample.n_outcomes)
    np.testing.assert_allclose(found, sample.expected, rtol=0, atol=max(len(points.table), 1) * 2.0**-32)
    assert np.all(found[sample.expected == 0] == 0)


@CASES
def test_equals_the_naive_twin(name):
    points = Points.of(sample_of(PREDICTIONS[name]))
    (drawn,) = points.blocks(np.uint64(7), 3, 5, 5)
    labels = points.labels(drawn)
    for r in range(5):
        expected = labels_of_points(points, np.uint64(7), 3 + r)
        np.testing.assert_array_equal(labels[r], expected)
        entry = drawn.entry[drawn.end[r] : drawn.end[r + 1]].astype(np.int64)
        departed = np.flatnonzero(expected != points.usual)
        np.testing.assert_array_equal(np.sort(entry), (departed << points.shift) | expected[departed])


@CASES
def test_frequencies(name):
    """Chi-square over all rows; labels that are expected fewer than 5 times count as the most probable one."""
    sample = sample_of(PREDICTIONS[name])
    n_draws = 4_000
    labels = np.concatenate([block for _, block in OutcomeDraws.of(n_draws, 1).blocks(sample)])
    happened = np.stack([(labels == k).sum(axis=0) for k in range(sample.n_outcomes)], axis=1).astype(float)
    assert not happened[sample.expected == 0].any()
    expected = n_draws * sample.expected
    row, largest = np.arange(sample.n_samples), sample.expected.argmax(axis=1)
    rare = expected < 5
    for counts in (happened, expected):
        counts[row, largest] += np.where(rare, counts, 0).sum(axis=1)
        counts[rare] = 0
    degrees = (expected > 0).sum() - sample.n_samples
    statistic = ((happened - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    if degrees:
        assert 1e-4 < chi2.cdf(statistic, degrees) < 1 - 1e-4
    else:
        assert statistic == 0


def test_rows_are_independent():
    """The covariance of the departures of two rows is 0, and the number of departures has the sum of the variances."""
    sample, n_draws = sample_of(PREDICTIONS["ten"]), 20_000
    points = Points.of(sample)
    labels = np.concatenate([block for _, block in OutcomeDraws.of(n_draws, 2).blocks(sample)])
    departed = (labels != points.usual).astype(float)
    chance = 1 - sample.expected.max(axis=1)
    variance = chance * (1 - chance)
    number = departed.sum(axis=1)
    assert_close(number.mean(), chance.sum(), np.sqrt(variance.sum() / n_draws))
    fourth = np.mean((number - number.mean()) ** 4)
    assert_close(number.var(), variance.sum(), np.sqrt((fourth - number.var() ** 2) / n_draws))
    covariance = np.cov(departed.T)
    error = np.sqrt(np.outer(variance, variance) / n_draws)
    off = ~np.eye(len(chance), dtype=bool) & (error * n_draws > 1)  # of pairs that both depart now and then
    assert np.abs(covariance[off] / error[off]).max() < 6  # 4,000 pairs


def test_exact_distribution_of_the_confidence():
    """Six quantiles of the exact distribution of the confidence's ECE, with labels of all classes."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    sample = make_sample(y_true[:2_000], y_prob[:2_000])
    assert Points.of(sample) is not None
    n_draws = 4_000
    statistic = caltest.statistics.ConfidenceECE()
    drawn = np.concatenate(
        [statistic.evaluate(sample, block) for _, block in OutcomeDraws.of(n_draws, 5).blocks(sample)]
    )
    event = make_sample(y_true[:2_000], y_prob[:2_000], lens=caltest.Confidence())
    exact = caltest.ECE(caltest.EqualWidth(15)).exact_distribution(event)
    for level in (0.02, 0.1, 0.3, 0.5, 0.9, 0.98):
        quantile = exact.quantile(level)
        tail = exact.tail(quantile).probability
        assert_close(np.mean(drawn >= quantile * (1 - 1e-9)), tail, np.sqrt(tail * (1 - tail) / n_draws), level)


def test_same_distribution_as_drawing_every_label(monkeypatch):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    statistics = (
        caltest.ECE(),
        caltest.TemperatureScore(),
        caltest.statistics.ClasswiseKS(),
        caltest.statistics.ConfidenceECE(),
    )

    def nulls(seed):
        sample = make_sample(y_true[:500], y_prob[:500])
        blocks = [block for _, block in OutcomeDraws.of(3_000, seed).blocks(sample)]
        return [np.concatenate([each.evaluate(sample, block) for block in blocks]) for each in statistics]

    few = nulls(1)
    monkeypatch.setattr("caltest.resampling.draws._points.LARGEST_DEPARTURE", -1.0)
    for one, other, statistic in zip(few, nulls(2), statistics, strict=True):
        assert_same_distribution(one, other, str(statistic))


def test_flat_predictions_are_drawn_one_by_one(monkeypatch):
    monkeypatch.setattr("caltest.resampling.draws._points.LARGEST_DEPARTURE", 0.13)
    assert Points.of(sample_of(np.full((10, 4), 0.25))) is None
    assert Points.of(sample_of(sharp(50, 33))) is None


def test_a_prefix_of_the_draws_is_the_same():
    sample = sample_of(PREDICTIONS["three"])
    many, few = (np.concatenate([block for _, block in OutcomeDraws.of(n, 4).blocks(sample)]) for n in (2_500, 7))
    np.testing.assert_array_equal(many[:7], few)
