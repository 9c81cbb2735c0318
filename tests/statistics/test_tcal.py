"""T-Cal: its scales, against the errors of single scales."""

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from tests.reference.cases import check_refused


def test_scales_are_debiased_errors():
    """One pass for all scales; with and without weights, whose errors are computed one by one."""
    rng = np.random.default_rng(0)
    event = np.concatenate([rng.random(60), [0.0, 0.5, 0.5, 1.0, 1.0]])
    label = rng.random(65) < event
    outcomes = rng.integers(2, size=(2, 3, 65), dtype=np.uint8)
    for weight in (None, rng.random(65)):
        sample = make_sample(label, event, sample_weight=weight)
        tcal = caltest.statistics.TCal().for_sample(sample)
        assert tcal == caltest.statistics.TCal(6)  # 2^6 <= 65
        expected = [part.evaluate(sample, outcomes) for part in tcal.components]
        np.testing.assert_allclose(tcal.evaluate_components(sample, outcomes), expected, rtol=1e-12, atol=1e-12)


def test_scales_that_a_sample_has_use_for():
    for n, n_scales in [(1, 1), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10)]:
        sample = make_sample(np.zeros(n, dtype=int), np.full(n, 0.5))
        assert caltest.statistics.TCal().for_sample(sample).n_scales == n_scales
        assert caltest.statistics.TCal(1).for_sample(sample).n_scales == 1
    with pytest.raises(ValueError, match=r"`n_scales` is too large for 4 observations, got 3; call `for_sample` first"):
        caltest.statistics.TCal(3).evaluate_components(
            make_sample([0, 1, 0, 1], [0.25] * 4), np.zeros((1, 4), dtype=np.uint8)
        )


def test_bad_scales_are_refused():
    check_refused(caltest.statistics.TCal, ValueError, "`n_scales` must be an integer from 1 to 30, got 31.", 31)
    check_refused(caltest.statistics.TCal, ValueError, "`n_scales` must be an integer >= 1, got 0.", 0)
