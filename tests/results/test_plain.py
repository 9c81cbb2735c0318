"""One rule for plain objects: what strict JSON holds, and code for the rest."""

import json
import math

import numpy as np
import pandas as pd

import caltest as ct
from caltest.results import ConfidenceInterval, Note
from caltest.results._plain import to_plain


def test_values():
    for value, plain in [
        (1, 1),
        (True, True),
        (None, None),
        ("a", "a"),
        (0.5, 0.5),
        (math.nan, None),
        (-math.inf, None),
        (np.float32(0.5), 0.5),
        (np.float64("inf"), None),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        (np.array(2.0), 2.0),
        (np.array(["a", "b"]), ["a", "b"]),
        ((1, (2, math.inf)), [1, [2, None]]),
        ({"a": np.arange(2), 0.95: 1.0}, {"a": [0, 1], "0.95": 1.0}),
        ({1 / 3: 0}, {"0.333333333333": 0}),
        (ConfidenceInterval(0.1, math.inf), {"low": 0.1, "high": None}),
        (Note("C201", "x"), {"code": "C201", "text": "x", "link": "docs/notes.md#c201"}),
        (pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]}), [{"a": 1.0, "b": "x"}, {"a": None, "b": None}]),
        (ct.ECE(ct.EqualWidth(5)), "ECE(partition=EqualWidth(5))"),
        (ct.ECE, "ECE"),
        ([ct.Confidence()], ["Confidence()"]),
        (np.sqrt, "sqrt"),
    ]:
        found = to_plain(value)
        assert found == plain, repr(value)
        assert type(found) is type(plain), repr(value)
        assert json.loads(json.dumps(found, allow_nan=False)) == plain, repr(value)


def test_arrays_of_booleans_and_integers_keep_their_type():
    assert [type(part) for part in to_plain(np.array([True, False]))] == [bool, bool]
    assert [type(part) for part in to_plain(np.arange(2, dtype=np.uint8))] == [int, int]
