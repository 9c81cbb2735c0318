"""Regions of an event's predictions: cells between round numbers, scores, p-values, intervals and bends."""

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_count import without_skewness
from caltest.estimation.event._regions import RegionCells, Regions, _Observations, bend_pvalue
from caltest.predictions._sample import make_sample
from tests.reference import regions as naive
from tests.reference.cases import mostly_nightly, mostly_slow


def table(prob, event):
    """Cells of predictions and labels, without a sample."""
    prob = np.asarray(prob, dtype=float)
    return EventCells.of_counts(prob, np.ones(len(prob)), np.asarray(event, dtype=float))


def regions(prob, event, seed=0, **options):
    return Regions.of(RegionCells.of(table(prob, event)), np.random.default_rng(seed), **options)


def limits(prob):
    cells = RegionCells.of(table(prob, np.zeros(len(prob))))
    return np.stack([cells.low, cells.high], axis=1)


ROUND = np.repeat([0.05, 0.2, 0.5, 0.8, 0.95], 40)
DESIGNS = {
    "round": ROUND,
    "three values": np.repeat([0.1, 0.3, 0.6], [25, 11, 7]),
    "rare": np.repeat([0.001, 0.004, 0.02, 0.2], [1500, 400, 80, 6]),
    "one half among others": np.repeat([0.3, 0.5, 0.62, 0.7], [7, 3, 9, 6]),
    "symmetric": np.repeat([0.25, 0.5, 0.75], [8, 2, 8]),
    "symmetric, no half": np.repeat([0.25, 0.45, 0.55, 0.75], [8, 1, 1, 8]),
    "continuous": expit(np.linspace(-6, 6, 300)),
    "two digits": np.round(expit(np.linspace(-3, 4, 500)), 2),
    "sharp": expit(np.linspace(-30, 30, 200)),
    "few": np.array([0.2, 0.9]),
    "all equal": np.full(30, 0.5),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_cells_are_those_of_loops(name):
    prob = DESIGNS[name]
    prob = prob[(prob > 0) & (prob < 1)]
    expected = naive.cells(prob.tolist())
    cells = RegionCells.of(table(prob, prob > 0.5))
    np.testing.assert_allclose(limits(prob), [part[:2] for part in expected])
    assert [len(part) for *_, part in expected] == cells.sum(cells.table.count).tolist()


@pytest.mark.parametrize("name", DESIGNS)
def test_cells_of_the_complement_are_mirror_images(name):
    prob = DESIGNS[name]
    np.testing.assert_allclose(limits(1 - prob), 1 - limits(prob)[::-1, ::-1], atol=1e-12)


def test_a_round_number_lies_on_the_side_of_one_half():
    """.2 between .2 and .3 and .8 between .7 and .8, as doubles, their complements and floats of 32 bits."""
    for prob in (ROUND, 1 - (1 - ROUND), ROUND.astype(np.float32)):
        assert limits(prob).tolist() == [[0, 0.1], [0.1, 0.3], [0.3, 0.7], [0.7, 0.9], [0.9, 1]]


def test_there_are_no_regions_without_two_cells():
    for prob in ([0.5] * 100, [0.3], [0.2, 0.9], [], [0.0, 1.0]):
        found = regions(prob, np.ones(len(prob)))
        assert len(found.pvalue) == len(found.low) == 0
        assert bend_pvalue(found.cells, np.random.default_rng(0)) == 1.0


def test_predictions_of_zero_and_one_are_left_out():
    prob, event = np.repeat([0.0, 0.1, 0.4, 1.0], 30), np.tile([0, 0, 1], 40)
    inside = (prob > 0) & (prob < 1)
    assert regions(prob, event).score.tolist() == regions(prob[inside], event[inside]).score.tolist()


SMALL = {
    "three cells": (np.repeat([0.15, 0.35, 0.8], [9, 7, 8]), [4, 1, 8]),
    "rare": (np.repeat([0.04, 0.15, 0.3], [30, 9, 6]), [0, 3, 5]),
    "likely": (np.repeat([0.55, 0.97], [6, 40]), [1, 37]),
}


@pytest.mark.parametrize("name", SMALL)
def test_scores_and_pvalues_are_those_of_all_numbers_of_events(name):
    prob, events = SMALL[name]
    expected = naive.regions(prob.tolist(), events)
    event = np.concatenate(
        [np.arange(n) < k for n, k in zip(np.unique(prob, return_counts=True)[1], events, strict=True)]
    )
    draws = 9999
    found = regions(prob, event, n_draws=draws)
    low, high, score, exact = map(np.array, zip(*expected, strict=True))
    order = np.lexsort([high, low])
    np.testing.assert_allclose(found.low, low[order])
    np.testing.assert_allclose(found.high, high[order])
    np.testing.assert_allclose(found.score, score[order], rtol=1e-9)
    error = np.sqrt(exact * (1 - exact) / draws)[order]
    assert (np.abs(found.pvalue - exact[order]) <= 4 * error + 1 / draws).all()


def test_regions_of_the_complement_are_mirror_images():
    rng = np.random.default_rng(1)
    for prob in (expit(rng.normal(-1, 1.5, 400)), np.round(rng.uniform(size=400), 2), rng.choice([0.3, 0.5, 0.6], 400)):
        event = rng.random(len(prob)) < prob
        one, other = regions(prob, event), regions(1 - prob, ~event)
        order = np.lexsort([-other.low, -other.high])
        np.testing.assert_allclose(one.low, 1 - other.high[order], atol=1e-12)
        np.testing.assert_allclose(one.score, -other.score[order], atol=1e-9)
        np.testing.assert_allclose(one.observed, 1 - other.observed[order], atol=1e-12)
        assert one.pvalue.tolist() == other.pvalue[order].tolist()
        for j in (0, 3):
            low, high = one.interval(j, 0.95)
            assert other.interval(int(order[j]), 0.95) == pytest.approx((1 - high, 1 - low), abs=1e-8)
        assert bend_pvalue(one.cells, np.random.default_rng(2)) == bend_pvalue(other.cells, np.random.default_rng(2))


def test_the_order_of_observations_does_not_matter():
    rng = np.random.default_rng(2)
    prob = rng.uniform(size=300)
    event, order = rng.random(300) < prob, rng.permutation(300)
    one, other = regions(prob, event), regions(prob[order], event[order])
    assert one.pvalue.tolist() == other.pvalue.tolist()
    np.testing.assert_array_equal(one.score, other.score)


def designed(prob, event, seed=0, **design):
    sample = make_sample(np.asarray(event, dtype=int), prob, **design)
    return Regions.of(RegionCells.of(EventCells.of(sample)), np.random.default_rng(seed), sample=sample)


def test_weighted_regions_are_those_of_all_labels():
    """Scores and p-values of sixteen observations from the probabilities of all of their labels."""
    prob, weight = np.repeat([0.3, 0.62], 8), np.random.default_rng(0).uniform(0.2, 2, 16)
    event = np.arange(16) % 3 == 0
    found = designed(prob, event, sample_weight=weight)
    low = prob == 0.3
    assert len(found.low) == 2
    labels = np.arange(2**16)[:, None] >> np.arange(16) & 1
    chance = np.prod(np.where(labels, prob, 1 - prob), axis=1)
    weight = weight / weight.mean()
    largest = np.zeros(len(labels))
    for j, part in enumerate((low, ~low)):
        own, p = weight[part], prob[part]
        variance, third = own**2 @ (p * (1 - p)), own**3 @ (p * (1 - p) * (1 - 2 * p))
        scores = without_skewness((labels[:, part] - p) @ own, variance, third)
        assert found.score[j] == pytest.approx(without_skewness((event[part] - p) @ own, variance, third))
        largest = np.maximum(largest, np.abs(scores))
    exact = [chance[largest >= abs(score) - 1e-9].sum() for score in found.score]
    assert np.abs(found.pvalue - exact).max() < 4 * np.sqrt(0.25 / 1999)


def test_signs_of_groups_have_the_variance_of_their_sums():
    rng = np.random.default_rng(1)
    prob, groups = rng.uniform(0.1, 0.9, 600), rng.integers(0, 30, 600)
    event = rng.random(600) < prob
    sample = make_sample(event.astype(int), prob, groups=groups)
    cells = RegionCells.of(EventCells.of(sample))
    each = _Observations.of(cells, sample)
    assert np.diff(each.start).tolist() == cells.sum(cells.table.count).tolist()
    drawn = each.draw_signs(4000, rng)
    cell = np.searchsorted(cells.low, prob, side="right") - 1
    sums = np.zeros((30, cells.n_cells))
    np.add.at(sums, (groups, cell), event - prob)
    np.testing.assert_allclose(drawn.mean(axis=1), 0, atol=4 * np.sqrt((sums**2).sum(axis=0) / 4000).max())
    np.testing.assert_allclose(np.cov(drawn), sums.T @ sums, atol=6 * (sums**2).sum(axis=0).max() / np.sqrt(4000))


def some_wrong(rng):
    prob = rng.uniform(0.02, 0.98, 800)
    return prob, rng.random(800) < np.where(prob > 0.6, prob - 0.13, prob)


def few_wrong(rng):
    """Of a small cell many events are observed: where few are expected, far away, the score is not much larger."""
    prob = np.concatenate([np.full(16, 0.2), rng.uniform(0.3, 0.98, 100)])
    return prob, np.concatenate([np.arange(16) < 10, rng.random(100) < prob[16:]])


@pytest.mark.parametrize("make", mostly_slow([some_wrong, few_wrong, "weights", "groups"]))
def test_an_interval_excludes_the_prediction_where_the_test_rejects(make):
    rng = np.random.default_rng(3)
    prob, event = some_wrong(rng) if isinstance(make, str) else make(rng)
    more = {"weights": {"sample_weight": rng.uniform(0.5, 1.5, 800)}, "groups": {"groups": np.arange(800) // 20}}
    found = designed(prob, event, **more[make]) if make in more else regions(prob, event)
    outcomes = set()
    for level in (0.9, 0.95, 0.975):
        for j, pvalue in enumerate(found.pvalue):
            low, high = found.interval(j, level)
            assert 0 <= low <= found.observed[j] <= high <= 1
            outside = not low <= found.predicted[j] <= high
            assert outside == (pvalue <= 1 - level + 1e-12)
            outcomes.add(outside)
    assert outcomes == {False, True}


def test_an_interval_without_events_begins_at_zero():
    prob = np.repeat([0.1, 0.5, 0.9], 40)
    found = regions(prob, prob > 0.5)
    assert found.interval(0, 0.95).low == 0
    assert found.interval(len(found.low) - 1, 0.95).high == 1


def bent(rng, n):
    """Predictions of which those between .6 and .8 happen in 45 %."""
    prob = rng.uniform(0.02, 0.98, n)
    return prob, rng.random(n) < np.where((prob > 0.6) & (prob < 0.8), 0.45, prob)


def test_a_bend_is_what_a_logistic_recalibration_leaves():
    rng = np.random.default_rng(4)
    assert bend_pvalue(RegionCells.of(table(*bent(rng, 2000))), rng) <= 0.001
    prob = rng.uniform(0.02, 0.98, 2000)
    recalibrated = table(prob, rng.random(2000) < expit(0.6 * logit(prob) - 1))
    assert bend_pvalue(RegionCells.of(recalibrated), rng) > 0.05
    assert Regions.of(RegionCells.of(recalibrated), rng).pvalue.min() <= 0.001


def test_two_different_predictions_leave_no_bend():
    prob, event = np.tile([0.2, 0.7], 200), np.tile([True, False, False, False], 100)
    assert bend_pvalue(RegionCells.of(table(prob, event)), np.random.default_rng(0)) == 1


def test_there_is_no_bend_for_few_events_or_separated_labels():
    prob = np.linspace(0.05, 0.95, 60)
    for event in (prob > 0.5, np.arange(60) < 9, np.arange(60) > 9):
        assert bend_pvalue(RegionCells.of(table(prob, event)), np.random.default_rng(0)) == 1.0
    event = np.arange(60) // 7 % 2 == 0
    assert bend_pvalue(RegionCells.of(table(prob, event)), np.random.default_rng(0)) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("population", "number"),
    mostly_nightly([("risks", 150), ("risks", 600), ("rare", 600), ("sharp", 600), ("rounded", 600)]),
)
def test_levels_of_regions_and_of_a_bend(population, number):
    """One-sided: at most 5 % within 4 standard errors; the bend on logistic errors, with fitted slopes of about .7."""
    rng = np.random.default_rng(5)
    n = 1000
    make = {
        "risks": lambda: expit(rng.normal(-1.6, 1.2, n)),
        "rare": lambda: expit(rng.normal(-4, 1, n)),
        "sharp": lambda: expit(rng.normal(0, 4, n)),
        "rounded": lambda: np.clip(np.round(rng.uniform(size=n), 1), 0.05, 0.95),
    }[population]
    found = np.zeros(2)
    for _ in range(number):
        prob = make()
        found[0] += (
            Regions.of(RegionCells.of(table(prob, rng.random(n) < prob)), rng, 499).pvalue.min(initial=1) <= 0.05
        )
        wrong = table(prob, rng.random(n) < expit(0.3 + 0.7 * logit(prob)))
        found[1] += bend_pvalue(RegionCells.of(wrong), rng, 499) <= 0.05
    assert (found / number <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / number)).all(), found / number


@pytest.mark.nightly
def test_a_bend_is_that_of_fits_to_simulated_labels():
    """The fit of each draw is replaced by one step; against fits to simulated labels, which are cells by cells."""
    rng = np.random.default_rng(6)
    prob = rng.uniform(0.02, 0.98, 3000)
    cells = RegionCells.of(
        table(prob, rng.random(3000) < expit(0.3 + 0.7 * logit(prob) + 0.12 * np.sin(3 * logit(prob))))
    )
    draws, own = [], largest_left(cells.table)
    fitted = cells.table.prob(*cells.table.raw_fit)
    for _ in range(300):
        events = rng.binomial(cells.table.count.astype(int), fitted)
        draws.append(largest_left(EventCells.of_counts(cells.table.prob(0, 1), cells.table.count, events)))
    expected = np.mean(np.array(draws) >= own)
    found = bend_pvalue(cells, rng)
    assert 0.02 < expected < 0.98
    assert abs(found - expected) <= 4 * np.sqrt(expected * (1 - expected) * (1 / 300 + 1 / 1999)) + 1 / 300


def largest_left(cells):
    """The largest score of a region after the fit, by loops."""
    fitted, edges = cells.prob(*cells.raw_fit), RegionCells.of(cells)
    largest = 0.0
    for a in range(edges.n_cells):
        for b in range(a + 1, edges.n_cells + 1):
            if b - a < edges.n_cells:
                part = slice(edges.start[a], edges.start[b])
                prob = np.repeat(fitted[part], cells.count[part].astype(int))
                largest = max(largest, abs(naive.score(cells.events[part].sum(), prob)))
    return largest
