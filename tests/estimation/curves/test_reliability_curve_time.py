"""Consistency bars of forecasts whose labels are known after a lead."""

import numpy as np
import pytest

import caltest as ct
from caltest.estimation.curves._bars import drawn_deviations
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling import Consistency
from caltest.resampling.draws._timed_draws import TimedDraws, TimedOutcome
from tests.comparison.models import exceedances
from tests.reference.cases import mostly_nightly

LEAD, CELLS = 5, ct.EqualWidth(4)


def forecasts(n, seed=0, phi=0.8):
    prob, label = exceedances(n, LEAD, phi, np.random.default_rng(seed))
    return label, prob, {"time": np.arange(n), "lead": LEAD}


def test_deviations_are_those_of_labels_that_share_shocks_divided_by_their_inflation():
    label, prob, time = forecasts(200)
    sample = make_sample(label, prob, **time)
    cells = cells_of(sample, CELLS)
    (found,) = drawn_deviations(sample, cells, Consistency(), 20, np.random.default_rng(1))
    draws = TimedDraws.as_observed(sample, 20, np.random.default_rng(1))
    ((_, drawn),) = draws.blocks(sample)
    outcome = sample.once(TimedOutcome.of)
    scale = np.sqrt(outcome.inflation(sample.outcome[None]) / outcome.inflation(drawn))
    for row, (labels, size) in enumerate(zip((sample.outcome, *drawn), (1.0, *scale), strict=True)):
        for b in range(cells.n_cells):
            own = cells.index == b
            expected = size * (labels[own] - sample.event[own]).mean()
            assert found[row, b] == pytest.approx(expected, abs=1e-12)


def test_bars_are_wider_than_those_of_independent_labels_and_order_does_not_matter():
    label, prob, time = forecasts(300)
    options = {"partition": CELLS, "n_resamples": 199, "rng": 0}
    curve = ct.reliability_curve(label, prob, **time, **options)
    plain = ct.reliability_curve(label, prob, **options)
    wide = (curve.bar_upper - curve.bar_lower) / (plain.bar_upper - plain.bar_lower)
    assert (wide > 1.1).all()
    assert curve.observed.tolist() == plain.observed.tolist()
    assert "share shocks of time" in curve.origin
    order = np.random.default_rng(0).permutation(300)
    other = ct.reliability_curve(label[order], prob[order], time=order, lead=LEAD, **options)
    assert other.bar_lower == pytest.approx(curve.bar_lower)


def test_little_time_takes_the_wider_bar_of_two():
    label, prob, time = forecasts(60)
    sample = make_sample(label, prob, **time)
    both = drawn_deviations(sample, cells_of(sample, CELLS), Consistency(), 99, 0)
    assert [found.shape for found in both] == [(100, 4)] * 2
    curve = ct.reliability_curve(label, prob, partition=CELLS, n_resamples=99, rng=0, **time)
    assert "share more of them" in curve.origin
    assert any(note.code == "C305" for note in curve.notes)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": np.arange(200) // 5}, "`groups` and `time` cannot be taken together"),
        ({"bars": "confidence"}, 'With `time` take bars="consistency"'),
        ({"resampling": Consistency(resample_predictions=True)}, "fixed predictions"),
    ],
)
def test_what_cannot_be_taken_is_refused(more, words):
    label, prob, time = forecasts(200)
    with pytest.raises(ValueError, match=words):
        ct.reliability_curve(label, prob, **time, **more)


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([50, 150]))
def test_frequencies_of_calibrated_forecasts_are_inside_their_bars(n_sets):
    outside = []
    for seed in range(n_sets):
        label, prob, time = forecasts(400, seed)
        curve = ct.reliability_curve(label, prob, partition=CELLS, n_resamples=199, rng=seed, **time)
        outside.append(curve.outside.mean())
    error = np.std(outside, ddof=1) / np.sqrt(len(outside))  # cells of a set depend on each other
    assert np.mean(outside) < 0.1 + 4 * error
