"""The maximum mean calibration error: published values and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caltest
from tests.reference.cases import check_refused
from tests.statistics.networks import network
from tests.statistics.problems import PROFILE, error

TOLERANCE = 1e-9
BUNDLED = 0.0353145242188551
"""Of VGG-16, by plain loops of SciPy's cdist over blocks of observations."""
NETWORKS = (0.0445682064862, 0.03567477296, 0.00743360402192, 0.056085002469)
"""Of goldens.json, in the order of the networks."""


def test_errors_of_the_bundled_network():
    value = error(*caltest.datasets.load_cifar10_vgg16(), caltest.statistics.MMCE(), caltest.Confidence())
    assert value == pytest.approx(BUNDLED, rel=TOLERANCE)


def test_errors_of_networks(shared_data):
    found = [
        error(*network(shared_data, column), caltest.statistics.MMCE(), caltest.Confidence()) for column in range(4)
    ]
    np.testing.assert_allclose(found, NETWORKS, rtol=TOLERANCE)


def test_two_observations():
    # Residuals -1/4 and 1/2 at scores 1/4 and 1/2.
    expected = math.sqrt(1 / 16 + 1 / 4 - 2 / 8 * math.exp(-2.5 / 4)) / 2
    assert error([0, 1], [0.25, 0.5], caltest.statistics.MMCE()) == pytest.approx(expected, rel=1e-14)


@PROFILE
@given(event=st.lists(st.booleans(), min_size=2, max_size=30))
def test_equal_predictions_compare_frequencies(event):
    value = error(event, np.full(len(event), 0.5), caltest.statistics.MMCE())
    assert value == pytest.approx(abs(np.mean(event) - 0.5), abs=1e-14)


def test_scores_that_all_but_tie_do_not_cancel():
    """Residuals 1/2 and -1/2 a hair apart: the root of a difference would keep half the digits."""
    gap = 2.0**-40
    value = error([1, 0], [0.5, 0.5 + gap], caltest.statistics.MMCE())
    form = 0.25 * 2 * -math.expm1(-2.5 * gap)  # but for gap^2
    assert value == pytest.approx(math.sqrt(form) / 2, rel=1e-10)


def test_bad_bandwidths_are_refused():
    message = "`bandwidth` must be a positive, finite number, got"
    check_refused(caltest.statistics.MMCE, ValueError, f"{message} -1.0.", -1.0)
    check_refused(caltest.statistics.MMCE, TypeError, f"{message} 'median'.", "median")
