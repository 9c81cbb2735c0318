"""Zeros are those of scipy's brentq, found in as few steps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from caltest.resampling.distributions._root import root_between

FUNCTIONS = {
    "line": lambda x: x - 0.3,
    "cubic": lambda x: x**3 - 2 * x - 5,
    "steep": lambda x: math.exp(50 * (x - 1)) - 1,
    "flat": lambda x: (x - 1.2) ** 3,
    "step": lambda x: math.copysign(1.0, x - 0.7),
    "turned": lambda x: 1 - math.exp(x - 1),
    "infinite": lambda x: -math.inf if x < 0 else math.log(x + 1e-300) + 1,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_brentq_agrees(name):
    function = FUNCTIONS[name]
    found = root_between(function, -3.0, 4.0, 1e-10)
    near = 1e-3 if name == "flat" else 1e-9
    expected = {"step": 0.7, "flat": 1.2, "infinite": math.exp(-1)}.get(name) or brentq(function, -3.0, 4.0, xtol=1e-12)
    assert found == pytest.approx(expected, abs=near)
    assert root_between(function, 4.0, -3.0, 1e-10) == pytest.approx(expected, abs=near)


@pytest.mark.slow(few_draws=True)
@given(st.floats(0.01, 0.99), st.floats(0.2, 20))
def test_it_takes_no_more_steps_than_brentq(zero, slope):
    calls = []

    def logistic(x):
        calls.append(x)
        return 1 / (1 + math.exp(-slope * (x - zero))) - 0.5

    found = root_between(logistic, -5.0, 6.0, 1e-9)
    ours, calls[:] = len(calls), []
    brentq(logistic, -5.0, 6.0, xtol=1e-9)
    assert found == pytest.approx(zero, abs=1e-8)
    assert ours <= len(calls) + 6


def test_an_end_that_is_the_zero():
    assert root_between(lambda x: x, 0.0, 1.0, 1e-12) == pytest.approx(0.0, abs=1e-12)
    assert root_between(lambda x: x - 1, 0.0, 1.0, 1e-12) == pytest.approx(1.0, abs=1e-12)
