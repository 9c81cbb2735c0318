"""The line of a measure in a table."""

import math

from caltest.estimation import Measure
from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.results import ConfidenceInterval


def test_what_is_not_known_is_left_empty():
    assert Measure("x", "a number", "overall", math.nan, UNKNOWN).row == ("a number", "", "", "", "")
    found = Measure("x", "slope", "calibration", 0.5, ConfidenceInterval(0.25, math.inf), 1.0, 0.01)
    assert found.row == ("slope", "0.5", "above 0.25", "1", "0.0100")
