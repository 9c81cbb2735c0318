"""Kernel sums of many draws at once are those of one draw at a time."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from tests.reference.examples import draw_labels, inner_product_kernel


def predictions_of_many_observations():
    """Vague, sharp and mixed predictions, more observations than a block holds."""
    rng = np.random.default_rng(3)
    sharp = 0.97 * np.eye(4)[rng.integers(4, size=550)] + 0.03 * rng.dirichlet(np.ones(4), size=550)
    vague = rng.dirichlet(np.full(4, 5.0), size=550)
    certain = np.eye(4)[rng.integers(4, size=550)]
    return {"vague": vague, "sharp": sharp, "mixed": np.concatenate([sharp[:200], vague[:200], certain[:200]])}


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", ["vague", "sharp", "mixed"])
def test_changes_from_likely_outcomes_add_up(name):
    """Many draws at once are computed in another way than one."""
    prob = predictions_of_many_observations()[name]
    rng = np.random.default_rng(4)
    sample = make_sample(draw_labels(prob, rng), prob)
    drawn = np.stack([draw_labels(prob, rng) for _ in range(3)] + [rng.integers(4, size=len(prob))])
    drawn = drawn.astype(sample.outcome.dtype)
    for kernel in (caltest.statistics.total_variation_kernel, inner_product_kernel):
        for estimator in ("unbiased", "biased"):
            skce = caltest.SKCE(kernel, estimator=estimator)
            alone = [skce.evaluate(sample, outcome) for outcome in drawn]
            together, slack = skce.evaluate(sample, drawn), 1e-12 * np.abs(alone).max()
            np.testing.assert_allclose(together, alone, rtol=1e-12, atol=slack, err_msg=str(skce))
