"""The levels of a column: what becomes a subgroup, and how it is called."""

import numpy as np
import pandas as pd
import pytest

from caltest.predictions.files._levels import levels_of
from caltest.results import CalibrationWarning

HUNDRED = np.arange(100)


def test_quantities_become_ranges_and_names_stay():
    names, level = levels_of("age", np.where(HUNDRED < 4, np.nan, HUNDRED), 3)
    assert names == ["age 4 to 35", "age 36 to 67", "age 68 to 99", "age missing"]
    assert np.bincount(level).tolist() == [32, 32, 32, 4]
    assert set(level[:4]) == {3}
    assert levels_of("site", HUNDRED % 12)[0] == [f"site={k}" for k in range(12)], "an id is no quantity"
    assert levels_of("stage", np.where(HUNDRED == 7, np.nan, HUNDRED % 4))[0][-2:] == ["stage=3", "stage missing"]
    dates = pd.date_range("2020-01-01", periods=100).to_numpy()
    assert levels_of("day", dates, 2)[0] == ["day 2020-01-01 to 2020-02-19", "day 2020-02-20 to 2020-04-09"]
    assert levels_of("flag", HUNDRED > 3)[0] == ["flag=False", "flag=True"]
    assert levels_of("word", np.array(["b", " ", "a"] * 5, dtype=object))[0] == ["word=a", "word=b", "word missing"]


def test_ties_stay_together():
    names, level = levels_of("dose", np.r_[np.zeros(60), np.arange(1, 41)])
    assert names[0] == "dose=0"
    assert np.bincount(level)[0] == 60


def test_rare_names_are_one_level():
    with pytest.warns(CalibrationWarning, match="'city' has 30 different values, of which 11 rarer values are one"):
        names, level = levels_of("city", np.array([f"c{k % 30:02}" for k in range(100)], dtype=object))
    assert len(names) == 20
    assert names[-1] == "city: 11 rarer values"
    assert np.count_nonzero(level == 19) == 33


@pytest.mark.parametrize("column", [np.ones(5), np.full(5, np.nan), np.array(["a"] * 5, dtype=object)])
def test_one_value_makes_no_subgroups(column):
    with pytest.raises(ValueError, match="has the same value for all observations"):
        levels_of("x", column)


def test_what_names_observations_is_refused():
    with pytest.raises(ValueError, match="'patient_id' has 100 different values in 100 observations"):
        levels_of("patient_id", HUNDRED)
    with pytest.raises(ValueError, match="must hold one value for each observation"):
        levels_of("x", np.ones((3, 2)))
