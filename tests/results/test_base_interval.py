"""Confidence intervals: named ends, unpacking, and everywhere the same."""

import math

import pytest

from caltest.results import ConfidenceInterval
from tests.results.examples import EXAMPLES, example


def test_ends():
    interval = ConfidenceInterval(0.1, 0.25)
    low, high = interval
    assert (low, high) == (interval.low, interval.high) == (0.1, 0.25) == interval
    assert str(interval) == "0.1 to 0.25"
    assert repr(interval) == "ConfidenceInterval(low=0.1, high=0.25)"
    assert str(ConfidenceInterval(0, math.inf)) == "0 to inf"
    with pytest.raises(AttributeError):
        interval.low = 0


def test_results_have_intervals_of_this_kind():
    """Whatever is called an interval has named ends in order; what has two ends is not told as two fields."""
    found = set()
    for kind in EXAMPLES:
        result = example(kind)
        assert not hasattr(result, "interval_low"), kind
        if not hasattr(result, "confidence_interval"):
            continue
        interval = result.confidence_interval
        assert isinstance(interval, ConfidenceInterval), kind
        assert interval.low <= interval.high, kind
        assert 0 < result.confidence_level < 1, kind
        content = result.to_dict()["confidence_interval"]
        assert content == {"low": interval.low, "high": interval.high}, kind
        found.add(kind.__name__)
    assert {"L2Interval", "BootstrapInterval", "DifferenceResult", "SampleSize"} <= found
