"""The table of a state: the same bits on every processor."""

import math
import platform

import numpy as np
import pytest

from caltest.streaming import CalibrationState
from tests.house.processes import in_fresh_process

ADD_ROWS = """
import hashlib
import numpy as np
from caltest import Canonical, EqualWidth
from caltest.streaming import CalibrationState, RedrawnCells
k = np.arange(1, 20_001)
p = np.concatenate([k / 20_011, 2.0 ** (-(k % 1074)), 1 - 2.0 ** -(k % 53 + 1), (k % 2).astype(float)])
state = CalibrationState().update(np.resize([0, 1, 1], len(p)), p)
print(hashlib.sha256(state.to_bytes()).hexdigest())
table = np.random.default_rng(0).dirichlet(np.full(40, 0.1), 2000)
for n in (3, 40):
    prob = table[:, :n] / table[:, :n].sum(axis=1, keepdims=True)
    state = CalibrationState(n, Canonical(), RedrawnCells(EqualWidth(2), 29)).update(k[:2000] % n, prob)
    print(hashlib.sha256(state.to_bytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="older processors of the kind x86 are tried")
@pytest.mark.parametrize("processor", ["nehalem", "haswell"])
def test_an_older_processor_has_the_same_bits(processor, tmp_path):
    older = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert in_fresh_process(ADD_ROWS, **older) == in_fresh_process(ADD_ROWS)


PREDICTIONS = [5e-324, 1e-310, 2.0**-1022, 1e-9, 0.3, math.sqrt(0.5), 0.71, 0.9999999, 1 - 2.0**-53, 1.0]


@pytest.mark.parametrize("p", PREDICTIONS)
def test_logarithms_are_those_of_the_standard_library(p):
    for event, own in ((1, p), (0, 1 - p)):
        if own > 0:
            score = CalibrationState().update([event], [p]).log_score()
            assert score == pytest.approx(-math.log(own), rel=1e-15, abs=2.0**-45)  # sums are in units of 2^-44


def test_logarithms_of_many_predictions():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(1000), 10.0 ** -rng.uniform(0, 323, 1000)])
    assert CalibrationState().update(np.ones(2000), p).log_score() == pytest.approx(-np.log(p).mean(), rel=1e-14)
