"""The l2 interval of forecasts whose labels are known after a lead: what it prints, and its coverage."""

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.statistics._segments import cells_of_groups
from caltest.statistics._squared_l2_in_time import SquaredL2InTime
from tests.comparison.models import exceedances, shifted
from tests.reference.cases import mostly_nightly


def forecasts(n=120, lead=4, shift=0.8, seed=3):
    prob, label = exceedances(n, lead, 0.8, np.random.default_rng(seed))
    return label, shifted(prob, shift), np.arange(n)


def test_ends_are_those_of_the_distribution_in_cells_of_five_windows():
    label, prob, time = forecasts()
    interval = ct.l2_interval(label, prob, time=time, lead=4, confidence_level=0.9)
    sample = make_sample(label, prob, time=time, lead=4)
    found = SquaredL2InTime.of(sample, cells_of_groups(sample))
    assert tuple(interval) == pytest.approx((found.lower_end(0.05), found.upper_end(0.05)), rel=1e-12)
    assert interval.estimate == found.estimate
    assert "variances from 9 cosines of the time" in interval.origin
    assert interval.partition == cells_of_groups(sample)
    plain = ct.l2_interval(label, prob)
    assert tuple(ct.l2_interval(label, prob, time=time)) == tuple(plain)  # known before the next prediction


def test_order_and_unit_of_time_do_not_matter():
    label, prob, time = forecasts()
    expected = tuple(ct.l2_interval(label, prob, time=time, lead=4))
    order = np.random.default_rng(0).permutation(len(time))
    days = np.datetime64("2024-01-01") + time.astype("timedelta64[D]")
    for same in (
        ct.l2_interval(label[order], prob[order], time=time[order], lead=4),
        ct.l2_interval(label, prob, time=5 * time + 7, lead=20),
        ct.l2_interval(label, prob, time=days, lead="4D"),
        ct.l2_interval(1 - label, 1 - prob, time=time, lead=4),
        ct.l2_interval(label, prob, time=time, lead=4, sample_weight=np.full(len(time), 3.0)),
    ):
        assert tuple(same) == pytest.approx(expected, rel=1e-9)


def test_too_little_time_gives_no_interval_and_a_note():
    label, prob, time = forecasts(n=35)
    interval = ct.l2_interval(label, prob, time=time, lead=4)
    assert tuple(interval) == (0.0, 1.0)
    text = next(note.text for note in interval.notes if note.code == "C305")
    assert "8.75 times the lead (4). Fewer than 9" in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": np.arange(120) // 4}, "`groups` and `time` cannot be taken together"),
        ({"time": None}, "`lead` needs `time`"),
        ({"time": np.arange(7)}, "got 7"),
    ],
)
def test_what_cannot_be_taken_is_refused(more, words):
    label, prob, time = forecasts()
    with pytest.raises(ValueError, match=words):
        ct.l2_interval(label, prob, **{"time": time, "lead": 4, **more})


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_sets"), mostly_nightly([(365, 100), (365, 400), (2000, 120)]))
@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_intervals_contain_the_error(n, n_sets, shift):
    missed = 0
    for seed in range(n_sets):
        true, label = exceedances(n, 7, 0.8, np.random.default_rng(seed))
        sample = make_sample(label, shifted(true, shift), time=np.arange(n), lead=7)
        partition = cells_of_groups(sample)
        index = cells_of(sample, partition).index
        gap = np.bincount(index, true[sample.row] - sample.event)
        target = float((np.square(gap) / np.bincount(index)).sum()) / n
        found = SquaredL2InTime.of(sample, partition)
        missed += not found.lower_end(0.025) <= target + 1e-15 <= found.upper_end(0.025) + 1e-15
    assert missed <= binom.isf(3e-5, n_sets, 0.05)  # the probability of 4 standard errors
