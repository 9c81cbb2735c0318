"""The engine of curves in cells: an error about any centre, of which that about the expected frequencies is the ECE."""

import numpy as np
import pytest

import caltest as ct
from caltest.estimation.curves._curve_in_cells import EventFrequencies
from caltest.predictions._sample import make_sample


@pytest.mark.parametrize("n", [30, 600])
def test_the_error_about_the_expected_frequencies_is_the_ece(n):
    rng = np.random.default_rng(n)
    event = rng.random(n)
    happened = (rng.random(n) < event**1.2).astype(int)
    found = EventFrequencies(make_sample(happened, event), ct.EqualWidth(5), ct.Consistency(), 99, 0)
    error = found.error_about(found.expected)
    exact = ct.calibration_test(happened, event, statistic=ct.ECE(ct.EqualWidth(5)), method="exact")
    assert error.value == pytest.approx(exact.statistic, rel=1e-12)
    assert found.noise_floor == pytest.approx(exact.noise_floor, rel=1e-9)
    assert error.null.mean == pytest.approx(exact.noise_floor, rel=1e-9)
    assert error.null.sf(error.value) == pytest.approx(exact.pvalue, rel=1e-3)
    assert error.pvalue == pytest.approx(2 * min(exact.pvalue, error.null.cdf(error.value)), rel=1e-3)
