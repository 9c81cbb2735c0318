"""The order of rows: equal values as they came, whatever the processor makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caltest
from caltest.predictions import _order
from caltest.predictions._order import stable_order
from caltest.predictions._sample import make_sample


@given(st.lists(st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-17, 0.25, 0.5, 1.0]), max_size=60))
def test_equal_values_keep_their_order(values):
    values = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("ties", [0, 0.01, 0.5, 1])
def test_large_arrays(ties):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < ties, np.round(rng.random(20_000), 2), rng.random(20_000))
    np.testing.assert_array_equal(stable_order(values), np.argsort(values, kind="stable"))


def last_first(values):
    """Another processor: sorted, with equal values in the opposite order."""
    return len(values) - 1 - np.argsort(np.asarray(values)[::-1], kind="stable")


class OtherProcessor:
    """NumPy, but for the order in which it leaves equal values."""

    argsort = staticmethod(last_first)

    def __getattr__(self, name):
        return getattr(np, name)


def test_resampled_rows_are_the_same_on_another_processor(monkeypatch):
    """Seen on two machines: with and without AVX-512, rows of equal predictions were drawn with other outcomes."""
    rng = np.random.default_rng(1)
    prob = np.round(rng.random(300), 1)
    outcome = rng.random(300) < prob
    options = {"statistic": caltest.ECE(caltest.EqualMass(5)), "kind": "percentile", "n_resamples": 99, "rng": 0}
    here = tuple(caltest.bootstrap_interval(outcome, prob, **options))
    monkeypatch.setattr(_order, "np", OtherProcessor())
    values = np.array([0.3, 0.1, 0.3])
    assert _order.np.argsort(values).tolist() == [1, 2, 0]  # the last of the equal ones first
    assert tuple(caltest.bootstrap_interval(outcome, prob, **options)) == here
    np.testing.assert_array_equal(make_sample(outcome, prob).row, np.argsort(prob, kind="stable"))
