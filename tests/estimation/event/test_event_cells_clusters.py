"""The jackknife over groups, against loops."""

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample
from tests.reference.events import best_intercept, information, jackknife, logistic


@pytest.fixture
def grouped():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 8)
    prob = expit(rng.normal(-0.5, 1, 96))
    y = (rng.random(96) < expit(logit(prob) + rng.normal(0, 0.5, 12)[group])).astype(int)
    return y, prob, group


def test_the_slope_moves_as_one_step_without_each_group(grouped):
    y, prob, group = grouped
    clusters, x = EventCells.of(make_sample(y, prob, groups=group)).clusters, logit(prob)
    a, b = logistic(y, x)
    steps = [b]
    for g in range(12):
        rest = group != g
        residual = y[rest] - expit(a + b * x[rest])
        score = np.array([residual.sum(), residual @ x[rest]])
        steps.append(b + np.linalg.solve(information(x[rest], a, b), score)[1])
    assert clusters.slope_error(a, b) == pytest.approx(jackknife(steps), rel=1e-4)
    refitted = [b, *(logistic(y[group != g], x[group != g])[1] for g in range(12))]
    assert clusters.slope_error(a, b) == pytest.approx(jackknife(refitted), rel=0.05)


def test_the_intercept_moves_at_least_as_it_does_without_each_group(grouped):
    y, prob, group = grouped
    clusters, x = EventCells.of(make_sample(y, prob, groups=group)).clusters, logit(prob)
    a = best_intercept(y, x, 1.0)
    left = [best_intercept(y[group != g], x[group != g], 1.0) for g in range(12)]
    assert jackknife([a, *left]) <= clusters.intercept_error(a) < 1.1 * jackknife([a, *left])
    mirrored = EventCells.of(make_sample(1 - y, 1 - prob, groups=group)).clusters
    assert mirrored.intercept_error(-a) == pytest.approx(clusters.intercept_error(a), rel=1e-9)
