"""Samples: the order of observations, regions, null probabilities, and what is computed once."""

import threading
import time
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import (
    Sample,
    induce,
    make_sample,
    observations_that_count,
    outcome_thresholds,
    with_calibration_function,
)
from caltest.predictions._view import LensView
from tests.reference.examples import VIEWS


def test_observations_keep_their_place_in_the_callers_arrays():
    for view in VIEWS:
        sample, (prob, outcome) = make_sample(view.y_true, view.y_prob, lens=view.lens), view.induced
        np.testing.assert_array_equal(sample.prob, prob[sample.row], err_msg=str(view))
        np.testing.assert_array_equal(sample.outcome, outcome[sample.row], err_msg=str(view))
        if sample.n_outcomes == 2:
            np.testing.assert_array_equal(sample.row, np.argsort(prob[:, 1], kind="stable"), err_msg=str(view))
            np.testing.assert_array_equal(sample.event, np.sort(prob[:, 1]), err_msg=str(view))
        else:
            np.testing.assert_array_equal(sample.row, np.arange(len(prob)), err_msg=str(view))
        assert sample.prob.flags.c_contiguous, view
        assert sample.outcome.dtype.kind == "u", view
        assert sample.null_prob is sample.prob, view


@pytest.mark.parametrize("n_classes", [2, 4])
def test_regions_leave_out_observations(n_classes):
    rng = np.random.default_rng(0)
    prob, label, weight = rng.dirichlet(np.ones(n_classes), size=40), rng.integers(n_classes, size=40), rng.random(40)
    inside = prob[:, 1] > 0.25
    sample = make_sample(label, prob, region=lambda p: p[:, 1] > 0.25, sample_weight=weight)
    alone = make_sample(label[inside], prob[inside], sample_weight=weight[inside])
    for name in ("prob", "outcome", "weight"):
        np.testing.assert_array_equal(getattr(sample, name), getattr(alone, name))
    np.testing.assert_array_equal(sample.row, np.flatnonzero(inside)[alone.row])
    assert sample.n_samples == np.count_nonzero(inside)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_that_differ_by_rounding_are_ties(dtype):
    exact = np.tile(list(permutations([0.1, 0.3, 0.6])), (20, 1))
    odds = np.exp(np.log(exact).astype(dtype))
    softmax = odds / odds.sum(axis=1, keepdims=True)
    assert softmax.dtype == dtype
    outcome = np.random.default_rng(0).integers(3, size=len(exact))
    parted = 0
    for lens in (caltest.Confidence(), caltest.ClassWise(0)):
        raw = lens.induced(softmax)[:, 1]
        parted += len(np.unique(raw)) - len(np.unique(lens.induced(exact)[:, 1]))
        one, two = (make_sample(outcome, prob, lens=lens) for prob in (exact, softmax))
        np.testing.assert_array_equal(np.diff(one.event) > 0, np.diff(two.event) > 0)
        np.testing.assert_allclose(two.event, raw[two.row], rtol=0, atol=np.finfo(dtype).eps)
        of_exact, of_softmax = (
            caltest.calibration_test(outcome, prob, lens=lens, statistic="KS()", rng=0) for prob in (exact, softmax)
        )
        assert of_exact.pvalue == pytest.approx(of_softmax.pvalue, abs=0.02)
    assert parted, "nothing to mend"


def test_close_predictions_of_dense_data_are_kept():
    rng = np.random.default_rng(0)
    dense = np.repeat(0.5 + np.arange(40) * 2.0**-24, 5)  # each frequent, but together too wide for a rounding error
    rare = np.repeat([0.25, 0.25 + 2.0**-24], 4)
    for event in (rng.random(20_000).astype(np.float32).astype(float), dense, rare):
        sample = make_sample(np.zeros(len(event), dtype=int), event)
        np.testing.assert_array_equal(sample.event, np.sort(event))


def test_small_differences_next_to_0_and_1_are_kept():
    event = np.array([0.0, 5e-324, 1e-17, 3e-17, 0.25, 0.25 + 2.0**-49, 1 - 2.0**-52, 1 - 2.0**-53, 1.0])
    np.testing.assert_array_equal(make_sample(np.ones(9, dtype=int), event).event, event)


def test_expected_probabilities_are_clipped_and_sum_to_1():
    drift = np.tile([0.6, 0.40001, -1e-5], (5, 1))
    sample = make_sample(np.zeros(5, dtype=int), np.full((5, 3), 1 / 3), lens=lambda prob, outcome: (drift, outcome))
    np.testing.assert_allclose(sample.expected, [[0.6 / 1.00001, 0.40001 / 1.00001, 0]] * 5, rtol=1e-15)
    np.testing.assert_array_equal(sample.thresholds[1], 2**32 - 1)


def test_thresholds_are_cumulative_probabilities_in_every_block(monkeypatch):
    prob = np.random.default_rng(0).dirichlet(np.ones(4), size=100)
    expected = np.rint(np.cumsum(prob, axis=1)[:, :3].T * 2.0**32)
    whole = outcome_thresholds(prob)
    assert whole.dtype == np.uint32
    assert np.all(np.abs(whole - expected) <= 1)
    monkeypatch.setattr("caltest.predictions._sample._BLOCK_ROWS", 7)
    np.testing.assert_array_equal(outcome_thresholds(prob), whole)
    certain = outcome_thresholds(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert certain.tolist() == [[2**32 - 1, 0]]


def test_labels_of_probability_zero_are_named():
    prob = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]
    assert make_sample([2, 0, 0], prob).impossible.tolist() == [0, 2]
    assert make_sample([1, 0, 0], [0.0, 0.5, 0.75]).impossible.tolist() == [0]
    allowed = with_calibration_function(make_sample([2, 0, 0], prob), lambda p: np.full_like(p, 1 / 3))
    assert allowed.impossible.size == 0


def test_a_calibration_function_changes_null_probabilities_alone():
    sample = make_sample([0, 1, 1], [0.75, 0.25, 0.5], sample_weight=[1.0, 2.0, 3.0])
    changed = with_calibration_function(sample, lambda prob: prob[:, ::-1])
    np.testing.assert_array_equal(changed.null_prob, sample.prob[:, ::-1])
    for name in ("prob", "outcome", "row", "weight"):
        assert getattr(changed, name) is getattr(sample, name)


def test_what_is_computed_once():
    calls = []

    def derive(sample, factor=1):
        calls.append(factor)
        time.sleep(0.01)  # time for another thread to ask for the same
        return factor * sample.n_samples

    sample = make_sample([0, 1], [0.25, 0.75])
    threads = [threading.Thread(target=sample.once, args=(derive,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sample.once(derive), sample.once(derive, 3)) == (2, 6)
    assert calls == [1, 3]
    assert replace(sample).once(derive) == 2
    assert calls == [1, 3, 1]
    # What is computed may itself need something that is computed once.
    assert sample.once(lambda inner: inner.once(derive, 3) + 1) == 7


def test_parts_of_a_sample():
    sample = make_sample([0, 1, 1, 0], [0.125, 0.25, 0.5, 0.75], sample_weight=[1.0, 2.0, 3.0, 4.0])
    part = sample.take(np.array([0, 2, 2]))
    assert (part.event.tolist(), part.outcome.tolist()) == ([0.125, 0.5, 0.5], [0, 1, 1])
    assert (part.row.tolist(), part.weight.tolist()) == ([0, 2, 2], [0.4, 1.2, 1.2])
    assert replace(sample).take(np.array([1])).weight.tolist() == [0.8]
    assert make_sample([0, 1], [0.5, 0.5]).take(np.array([0])).weight is None
    assert isinstance(part, Sample)


def test_the_whole_prediction_is_not_copied():
    prob = np.random.default_rng(0).dirichlet(np.ones(3), size=5)
    sample = induce(prob, np.zeros(5, dtype=np.int64), lens=caltest.Canonical())
    assert np.shares_memory(sample.prob, prob)


def test_equal_weights_and_groups_of_one_are_none():
    """They say nothing, so that no function can make anything of them."""
    y_true, y_prob = np.array([0, 1, 1, 0]), np.array([0.2, 0.9, 0.4, 0.6])
    for weight in (1.0, 7.0, 0.1):
        assert make_sample(y_true, y_prob, sample_weight=np.full(4, weight)).weight is None
    assert make_sample(y_true, y_prob, groups=["d", "a", "c", "b"]).group is None
    assert make_sample(y_true, y_prob, groups=[0, 0, 1, 2]).group is not None
    once = make_sample(y_true, y_prob, groups=[0, 0, 1, 2], region=lambda p: p[:, 1] > 0.3)
    assert once.group is None  # inside the region each group has one observation


def test_observations_of_weight_zero_are_left_out():
    y_true, y_prob = np.array([0, 1, 1, 0]), np.array([0.9, 0.2, 0.4, 0.6])
    sample = make_sample(y_true, y_prob, sample_weight=[2, 0, 2, 1], groups=[0, 1, 1, 0])
    few = make_sample(y_true[[0, 2, 3]], y_prob[[0, 2, 3]], sample_weight=[2, 2, 1], groups=[0, 1, 0])
    assert sample.row.tolist() == [2, 3, 0]
    np.testing.assert_allclose(sample.weight, [1.2, 0.6, 1.2], rtol=1e-15)
    for name in ("given", "outcome", "weight", "group"):
        np.testing.assert_array_equal(getattr(sample, name), getattr(few, name))
    assert make_sample(y_true, y_prob, sample_weight=[2, 0, 2, 2]).weight is None
    with pytest.raises(ValueError, match="`region` must hold at least one observation"):
        make_sample(y_true, y_prob, sample_weight=[1, 0, 0, 0], region=lambda p: p[:, 1] < 0.5)


def test_groups_are_numbered_without_those_that_are_left_out():
    """Random signs are drawn by number, so that a group of weight 0 must not move those of others."""
    group, weight = np.array([0, 1, 1, 2, 4, 4]), np.array([0.0, 1, 1, 2, 3, 3])
    prob = np.column_stack([1 - np.linspace(0.1, 0.6, 6), np.linspace(0.1, 0.6, 6)])
    sample = induce(prob, np.zeros(6, dtype=int), weight=weight, group=group)
    assert sample.row.tolist() == [1, 2, 3, 4, 5]
    assert sample.group.tolist() == [0, 0, 1, 2, 2]
    row, *design = observations_that_count(weight, group)
    assert row.tolist() == [1, 2, 3, 4, 5]
    assert [part.tolist() for part in design] == [[0.5, 0.5, 1, 1.5, 1.5], [0, 0, 1, 2, 2]]
    assert observations_that_count(None, np.arange(6)) == (slice(None), None, None)
    assert observations_that_count(np.full(6, 0.1), None) == (slice(None), None, None)


def test_times_follow_the_observations():
    rng = np.random.default_rng(3)
    prob, label, time = rng.random(40), rng.integers(2, size=40), rng.permutation(40)
    given = {"time": time, "lead": 5}
    sample = make_sample(label, prob, **given)
    np.testing.assert_array_equal(sample.timing.step, time[sample.row])
    assert sample.timing.lead == 5
    assert sample.relabelled(1 - sample.outcome).timing is sample.timing
    taken = sample.take(np.array([1, 1, 7]))
    assert taken.timing.step.tolist() == sample.timing[[1, 1, 7]].settled().step.tolist()
    early = time < 20
    part = make_sample(label, prob, sample_weight=early.astype(float), **given)
    np.testing.assert_array_equal(part.timing.step, time[part.row])
    assert make_sample(label, prob, time=time).timing is None  # one prediction a time, known before the next one
    three = rng.dirichlet(np.ones(3), size=40)
    base = make_sample(np.arange(40) % 3, three, **given)
    view = LensView.of(caltest.Confidence(), three, np.arange(40) % 3, base)
    np.testing.assert_array_equal(view.sample.timing.step, time[view.sample.row])
