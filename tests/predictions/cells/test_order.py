"""The order of rows: equal values as they came, whatever the processor makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltest.predictions._sample import make_sample
from caltest.predictions.cells._order import _are_frequent, stable_order


@pytest.mark.slow(few_draws=True)
@given(st.lists(st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-17, 0.25, 0.5, 1.0]), max_size=60))
def test_equal_values_keep_their_order(values):
    values = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("ties", [0, 0.01, 0.5, 1])
def test_large_arrays(ties):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < ties, np.round(rng.random(20_000), 2), rng.random(20_000))
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_kinds_of_values(dtype):
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    kinds = {
        "softmax": np.exp(30 * rng.standard_normal(3000)) / 1e40,
        "nearly 1": 1 - np.exp(-30 * p) * 1e-3,
        "nearly equal": 0.1 + 1e-17 * rng.integers(0, 9, 3000),
        "of both signs": p - 0.5,
        "zeros of both signs": np.where(p < 0.5, 0.0, -0.0),
        "near each other": rng.choice([0.25, 0.5, 0.75], 3000) + 2.0**-52 * rng.integers(0, 3000, 3000),
        "denormal": 5e-324 * rng.integers(0, 9, 3000),
        "infinite": np.where(p < 0.1, np.inf, p),
        "missing": np.where(p < 0.1, np.nan, p),
        "increasing": np.sort(p),
        "constant": np.full(3000, 0.3),
    }
    for name, values in kinds.items():
        for some in (kept.astype(dtype) for kept in (values, values[:1], values[:2], values[::3])):
            np.testing.assert_array_equal(stable_order(some), np.argsort(some, kind="stable"), err_msg=name)


def test_rows_of_equal_predictions_keep_their_order():
    """Seen on two machines: with and without AVX-512, rows of equal predictions were drawn with other outcomes."""
    rng = np.random.default_rng(1)
    prob = np.round(rng.random(300), 1)
    outcome = rng.random(300) < prob
    np.testing.assert_array_equal(make_sample(outcome, prob).row, np.argsort(prob, kind="stable"))


@pytest.mark.parametrize("n", [1, 2, 9, 30, 400])
def test_frequent_neighbours_are_those_of_counting(n):
    rng = np.random.default_rng(n)
    for n_values in (1, 2, 3, 10, 100) * 10:
        event = np.sort(rng.integers(0, n_values, n)) / n_values
        last = np.flatnonzero(np.diff(event) > 0)
        count = (event[:, None] == event).sum(axis=1)
        assert (_are_frequent(event, last) == ((count[last] >= 5) & (count[last + 1] >= 5))).all()
