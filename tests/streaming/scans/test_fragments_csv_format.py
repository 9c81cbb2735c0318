"""Separators and decimal marks of the CSV files of a scan."""

import pytest

from caltest.streaming import CalibrationState, scan
from caltest.streaming.scans._fragments import CsvFormat
from tests.reference.cases import mostly_slow

LABEL, PROB = [1, 0, 1], [0.5, 0.25, 0.625]


@pytest.mark.parametrize(
    ("text", "options"),
    mostly_slow(
        [
            ("label,p\n1,0.5\n0,0.25\n1,0.625\n", {}),
            ("label;p\n1;0,5\n0;0,25\n1;0,625\n", {"decimal": ","}),
            ("label;p\n1;0.5\n0;0.25\n1;0.625\n", {"sep": ";"}),
            ("label\tp\n1\t0.5\n0\t0.25\n1\t0.625\n", {"sep": "tab"}),
            ("label|p\n1|0,5\n0|0,25\n1|0,625\n", {"sep": "|", "decimal": ","}),
        ]
    ),
)
def test_marks(tmp_path, text, options):
    path = tmp_path / "a.csv"
    path.write_text(text)
    whole = CalibrationState().update(LABEL, PROB)
    assert scan(path, **options) == whole
    assert scan(path, output=tmp_path / "state.npz", **options) == whole


def test_a_decimal_comma_that_is_not_named_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label;p\n1;0,5\n0;0,25\n")
    with pytest.raises(ValueError, match="decimal"):
        scan(path, sep=";")
    with pytest.raises(ValueError, match='try `sep=";"` and `decimal=","`'):
        scan(path)
    path.write_text("label,p\n1,0.5\n0,0.25,3\n")
    with pytest.raises(ValueError, match="give `sep`"):
        scan(path)
    path.write_text("label;p\n1;0,5\n0;0,25\n")
    with pytest.raises(ValueError, match="has the single column 'label;p'"):
        scan(path, sep="tab")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sep": ";;"}, ValueError),
        ({"sep": ""}, ValueError),
        ({"sep": 3}, TypeError),
        ({"decimal": "x"}, ValueError),
        ({"sep": ",", "decimal": ","}, ValueError),
    ],
)
def test_refusals(options, error):
    with pytest.raises(error, match=r"`sep`|`decimal`"):
        CsvFormat(**options)
    with pytest.raises(ValueError, match="for CSV files"):
        scan([([0, 1], [0.25, 0.5])], sep=";")
