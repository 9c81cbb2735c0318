"""Ranges of predictions, classes and subgroups."""

import numpy as np
import pytest
from scipy.stats import beta

from caltest.page._places import MOST_PLACES, Place, classes_of, ranges_of, round_ranges, subgroups_of, table_of
from caltest.predictions._sample import make_sample
from tests.reference.cases import mostly_slow


def sample_of(prob, seed=0, **design):
    y_true = (np.random.default_rng(seed).random(len(prob)) < prob).astype(int)
    return make_sample(y_true, prob, **design)


@pytest.mark.parametrize("n", mostly_slow([1, 9, 20, 100, 5000]))
@pytest.mark.parametrize("power", [0.2, 1, 8])
def test_ranges_are_few_and_hold_ten_observations(n, power):
    event = np.random.default_rng(n).random(n) ** power
    ends = round_ranges(event)
    assert ends[0] == 0
    assert ends[-1] == 1
    assert len(ends) <= MOST_PLACES + 1
    sizes = [one.n for one in ranges_of(sample_of(event))]
    assert sum(sizes) == n
    assert len(sizes) == 1 or min(sizes) >= 10


def test_ranges_of_the_complement_are_mirrored():
    event = np.round(np.random.default_rng(0).random(401) ** 2, 2)
    mirrored = round_ranges(1 - event[event != 0.5])
    assert (1 - mirrored[::-1]) == pytest.approx(round_ranges(event[event != 0.5]))


def test_a_range_has_its_averages_and_an_interval_around_the_frequency():
    prob = np.repeat([0.1, 0.9], 100)
    y_true = np.tile([1, 0, 0, 0], 50)
    low, high = ranges_of(make_sample(y_true, prob))
    assert (low.n, high.n) == (100, 100)
    assert (low.predicted, low.observed) == pytest.approx((0.1, 0.25))
    missed = 0.05 / 2 / 2  # on either side of each of two intervals: Clopper and Pearson
    assert low.low == pytest.approx(beta.ppf(missed, 25, 76), abs=1e-6)
    assert low.high == pytest.approx(beta.ppf(1 - missed, 26, 75), abs=1e-6)
    assert low.interval == "15.9 to 36.0 %"


def test_few_groups_have_no_intervals_and_the_table_no_empty_columns():
    prob = np.repeat([0.1, 0.9], 30)
    places = ranges_of(sample_of(prob, groups=np.arange(60) % 3))
    assert [one.interval for one in places] == ["-", "-"]
    assert table_of(places, "predictions", ("predicted", "observed")).head == ("predictions", "predicted", "observed")
    marked = [Place("a", 5, 0.1, 0.2, 0.1, 0.3, is_wrong=True), Place("b", 6, 0.1, 0.2, 0.1, 0.3)]
    table = table_of(marked, "subgroup", ("predicted", "observed"))
    assert table.head[-2:] == ("observations", "decision")
    assert [row[-1] for row in table.rows] == ["wrong", ""]


def test_classes_that_differ_most_clearly_come_first():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(12), 2000)
    truth = prob.copy()
    truth[:, 3] += 0.5 * truth[:, 7]
    truth[:, 7] *= 0.5
    y_true = (np.cumsum(truth, axis=1) < rng.random((2000, 1))).sum(axis=1)
    found = classes_of(make_sample(y_true, prob), [f"class {k}" for k in range(12)])
    assert len(found) == MOST_PLACES
    assert {one.name for one in found[:2]} == {"class 3", "class 7"}
    assert not found[0].low <= found[0].predicted <= found[0].high


def test_subgroups_are_taken_by_the_observations_of_the_caller():
    prob = np.linspace(0.9, 0.1, 200)  # a sample is sorted by the event
    inside = np.arange(200) < 50
    (place,) = subgroups_of(sample_of(prob), {"first": inside}, [True])
    assert place.n == 50
    assert place.predicted == pytest.approx(prob[:50].mean())
    assert place.is_wrong
