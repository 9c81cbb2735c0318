"""Whole draws in time by loops: random words, shocks, labels, inflation and studentised statistic."""

import numpy as np
import pytest

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._timed_draws import TimedDraws, TimedOutcome
from caltest.resampling.engine._evaluation import components, null_values
from tests.reference.timed_labels import inflation, labels_of

CASES = [(2, 1, None), (2, 3, 5), (5, 1, None), (6, 3, 70), (12, 1, None)]
"""Numbers of classes, predictions of a time on average, and numbers of groups."""


@pytest.mark.parametrize(
    ("n_classes", "each", "n_groups"), [*CASES, pytest.param(300, 2, None, marks=pytest.mark.slow)]
)
def test_draws_are_those_of_loops(n_classes, each, n_groups):
    """Normal numbers are looked up to within a hundred-thousandth, and residuals are rounded to whole numbers."""
    rng, n, lead, n_draws = np.random.default_rng(n_classes), 150, 4, 35
    prob = rng.dirichlet(np.ones(n_classes), n)
    time = rng.permutation(n + 10)[:n] if each == 1 else rng.integers(n // each, size=n)
    groups = None if n_groups is None else rng.integers(n_groups, size=n)
    weight = rng.uniform(0.2, 3, n) if each == 1 else None
    sample = make_sample(
        rng.integers(n_classes, size=n), prob, time=time, lead=lead, groups=groups, sample_weight=weight
    )
    outcome = sample.once(TimedOutcome.of)
    start = outcome.time.order[0]
    scores = [one.residual[0] / sample.weight_or_ones[start] for one in outcome.scored]
    alike = 0.0 if groups is None else 0.3
    draws = TimedDraws(np.uint64(2**64 - 5), 40, n_draws, 0.4, alike)
    drawn, scale = (np.concatenate(some) for some in list(zip(*draws.scaled_blocks(sample), strict=True))[1:])
    for r in (0, 1, 31, 32, 34):
        label, sure = labels_of(sample, scores, draws, 40 + r)
        assert sure.mean() > 0.98
        np.testing.assert_array_equal(drawn[r][sure], label[sure])
        ratio = inflation(sample, scores, sample.outcome) / inflation(sample, scores, drawn[r])
        assert scale[r] == pytest.approx(np.sqrt(ratio), rel=1e-7)
    statistic = ct.ECE(ct.EqualWidth(3))
    plain = components(statistic, sample, drawn)[0]
    np.testing.assert_allclose(null_values(statistic, sample, draws), plain * scale)
