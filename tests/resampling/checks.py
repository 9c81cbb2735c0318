"""What tests of draws share: calibrated problems, null distributions, and comparisons within 4 standard errors."""

import numpy as np

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions._view import LensView
from caltest.resampling.engine._evaluation import Question, draw_nulls
from caltest.resampling.engine._run import settle
from tests.reference.examples import draw_labels

STANDARD_ERRORS = 4
LABELS, ROWS = caltest.Consistency(), caltest.Consistency(resample_predictions=True)


def problem(n, n_classes, seed=0):
    """Calibrated predictions with their labels."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    return draw_labels(prob, rng), prob


def sample_for(statistic, y_true, y_prob):
    """The sample behind a lens that the statistic is defined for."""
    parts = (statistic, *statistic.components)
    two = any(part.n_outcomes == 2 for part in parts)
    return make_sample(y_true, y_prob, lens=caltest.Confidence() if two else None)


def nulls_of(statistic, sample, draws, workers=1, progress=None):
    """The components on every draw as the engine makes them, ``(n_components, n_resamples)``."""
    question = Question(settle(statistic, sample), LensView(sample))
    return draw_nulls([question], sample, draws, workers, progress)[0]


def general_null(statistic, sample, draws):
    """A statistic on every draw from all simulated labels: the oracle of every summary."""
    return np.concatenate([statistic.evaluate(drawn, outcomes) for drawn, outcomes in draws.blocks(sample)])


def assert_close(value, expected, standard_error, case=""):
    assert abs(value - expected) <= STANDARD_ERRORS * standard_error, case


def assert_same_distribution(one, other, case=""):
    """Two samples agree in mean, standard deviation and five quantiles within 4 standard errors."""
    both = np.sqrt(1 / len(one) + 1 / len(other))
    joined = np.concatenate([one, other])
    sd = joined.std()
    kurtosis = np.mean((joined - joined.mean()) ** 4) / sd**4
    assert_close(one.mean(), other.mean(), sd * both, (case, "mean"))
    assert_close(one.std(), other.std(), sd * np.sqrt((kurtosis - 1) / 4) * both, (case, "standard deviation"))
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        quantile = np.quantile(joined, level)
        share = np.mean(joined <= quantile)
        shares = np.mean(one <= quantile), np.mean(other <= quantile)
        assert_close(*shares, np.sqrt(share * (1 - share)) * both, (case, level))
