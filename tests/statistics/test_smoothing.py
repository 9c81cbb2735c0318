"""Silverman's rule, and the grid of the kernel sums."""

import numpy as np
import pytest

from caltest.statistics._smoothing import lattice, silverman_bandwidth
from tests.reference import naive
from tests.statistics.networks import network

SILVERMAN = (9.32881453808e-05, 0.000430183263296, 0.00402312772631, 0.00149423404072)
"""Of goldens.json, in the order of the networks."""


def test_silverman_of_networks(shared_data):
    for column, expected in enumerate(SILVERMAN):
        _, y_prob = network(shared_data, column)
        assert silverman_bandwidth(y_prob.max(axis=1).astype(float)) == pytest.approx(expected, rel=1e-9), column


def test_silverman_by_hand():
    quarters = [0.0, 0.25, 0.5, 0.75, 1.0]
    for values in (quarters, [0.1] * 30 + [0.9], [0.3] * 40, [0.2], [0.2, 0.7]):
        assert silverman_bandwidth(np.array(values)) == pytest.approx(naive.silverman(values), rel=1e-12), values
    assert silverman_bandwidth(np.array(quarters)) == pytest.approx(0.5 / 1.349 * (4 / 15) ** 0.2, rel=1e-4)


def test_points_of_the_grid():
    """Midpoints of 2 ** b >= 256 parts, 8 or more to a bandwidth, at most 2 ** 17; or those that are given."""
    for bandwidth, n_points in [(1.0, 256), (8 / 256, 256), (0.03, 512), (1e-9, 2**17)]:
        points, step = lattice((0.0, 1.0), bandwidth, None)
        assert len(points) == n_points, bandwidth
        assert step == 1 / n_points
        np.testing.assert_allclose(points, (np.arange(n_points) + 0.5) / n_points)
    points, step = lattice((0.5, 1.0), 0.1, None)
    assert (len(points), step, points[0]) == (256, 0.5 / 256, 0.5 + 0.25 / 256)
    points, step = lattice((0.0, 1.0), 0.1, (-1.0, 2.0, 7))
    assert (points.tolist(), step) == ([-1, -0.5, 0, 0.5, 1, 1.5, 2], 0.5)
