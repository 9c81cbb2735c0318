"""Confidence intervals by the effective number of observations: the definition by loops, invariances and coverage."""

import math

import numpy as np
import pytest
from scipy.stats import beta, norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from caltest.estimation.curves._bars import EffectiveCounts, clopper_pearson
from tests.reference.cases import mostly_slow


def slow_interval(event, weight, group, level):
    """The definition, by loops over the groups, of observations with positive weight."""
    ids = sorted(set(group))
    pairs = [(sum(weight[group == g]), sum((weight * event)[group == g])) for g in ids]
    total, rate = sum(weight), sum(weight * event) / sum(weight)
    w2, w4 = sum(w**2 for w, _ in pairs), sum(w**4 for w, _ in pairs)
    deviations = [k - rate * w for w, k in pairs]
    size = total**2 / w2
    mixed = [len(set(event[group == g])) == 2 for g in ids]
    second = sum(d**2 for d in deviations)
    if any(mixed) and second > 1e-10 * w2:
        with_event = sum(w**2 for g, (w, _) in zip(ids, pairs, strict=True) if event[group == g].any()) * w2 / w4
        with_other = sum(w**2 for g, (w, _) in zip(ids, pairs, strict=True) if not event[group == g].all()) * w2 / w4
        freedom = max(min(second**2 / sum(d**4 for d in deviations), with_event, with_other) - 1, 0.05)
        variance = second / total**2 * len(ids) / (len(ids) - 1)
        student_ratio = norm.ppf((1 + level) / 2) / student.ppf((1 + level) / 2, freedom)
        estimated = rate * (1 - rate) / variance * student_ratio**2
        size = min(max(estimated, size), total**2 / sum(weight**2))
    tail = (1 - level) / 2
    low = beta.ppf(tail, size * rate, size * (1 - rate) + 1) if event.any() else 0.0
    high = beta.ppf(1 - tail, size * rate + 1, size * (1 - rate)) if not event.all() else 1.0
    return low, high


def one_cell(event, weight, group, level=0.9):
    """The interval of all observations."""
    low, high = EffectiveCounts.of_cells(event, weight, group, np.zeros(len(event), dtype=np.int64), 1).intervals(level)
    return float(low[0]), float(high[0])


SIZES = {
    "equal": np.full(20, 5),
    "unequal": np.append(np.full(5, 60), np.ones(100, dtype=int)),
    "one": np.ones(60, dtype=int),
    "few": np.array([7, 9, 30]),
}


@pytest.mark.parametrize("sizes", mostly_slow(SIZES))
@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_loops_over_groups(sizes, weighted):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(SIZES[sizes])), SIZES[sizes])
    for rate in (0.02, 0.4, 1.0):
        event = rng.random(len(group)) < rate
        weight = rng.pareto(1.5, len(group)) + 0.1 if weighted else np.ones(len(group))
        assert one_cell(event, weight, group) == pytest.approx(slow_interval(event, weight, group, 0.9), abs=1e-9)
        order = rng.permutation(len(group))
        last = np.array([0, len(group) // 3, len(group) - 1])
        low, high = EffectiveCounts.of_first(event[order], weight[order], group[order], last).intervals(0.9)
        for i, n in enumerate(last + 1):
            part = order[:n]
            found = slow_interval(event[part], weight[part], group[part], 0.9)
            assert (low[i], high[i]) == pytest.approx(found, abs=1e-7)


def test_limits_are_those_of_statsmodels():
    """For few and many observations and levels, and where all labels are equal."""
    for n in (1, 2, 7, 100, 100_000):
        events = np.unique([0, 1, n // 3, n // 2, n - 1, n])
        for missed in (1e-9, 1e-4, 0.005, 0.05, 0.4):
            expected = proportion_confint(events, n, alpha=2 * missed, method="beta")
            found = clopper_pearson(events, n - events, missed)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{n} {missed}")


def test_equal_weights_and_groups_of_one_have_the_exact_interval():
    rng = np.random.default_rng(1)
    for n, rate in ((1, 1.0), (5, 0.0), (50, 0.3), (300, 0.01)):
        event = rng.random(n) < rate
        exact = proportion_confint(event.sum(), n, alpha=0.1, method="beta")
        for group in (None, np.arange(n)):
            for unit in (1.0, 1 / n, 100.0, 1e-90, 1e90):
                assert one_cell(event, np.full(n, unit), group) == pytest.approx(exact, abs=1e-12)


def test_repetitions_in_a_group_are_weights():
    """An observation of weight 2 is two equal ones in a group; nothing depends on the unit of weights."""
    rng = np.random.default_rng(2)
    group, event = np.arange(40) // 4, rng.random(40) < 0.4
    weight = rng.integers(1, 4, 40).astype(float)
    rows = np.repeat(np.arange(40), weight.astype(int))
    found = one_cell(event, weight, group)
    assert one_cell(event[rows], np.ones(len(rows)), group[rows]) == pytest.approx(found, abs=1e-12)
    assert one_cell(event, 0.01 * weight, group) == pytest.approx(found, abs=1e-12)
    alone = one_cell(event, weight, None)
    assert one_cell(event[rows], np.ones(len(rows)), rows) == pytest.approx(alone, abs=1e-12)


def test_an_interval_never_has_width_0():
    """Labels of a cell may all be equal: a rounded variance of 0 once made a bar of width 0 of that."""
    rng = np.random.default_rng(3)
    for n in range(2, 40):
        weight = rng.pareto(1.0, n) + 0.1
        for event in (np.zeros(n, dtype=bool), np.ones(n, dtype=bool)):
            for group in (None, np.arange(n) // 2):
                low, high = one_cell(event, weight, group)
                assert (low == 0) != event[0]
                assert (high == 1) == event[0]
                assert high - low > 1 - 0.05 ** (1 / n) - 1e-12


def simulated(sizes, rate, correlation, rng):
    """Events of groups that share a latent normal variable."""
    shared = rng.standard_normal(len(sizes)) * math.sqrt(correlation)
    group = np.repeat(np.arange(len(sizes)), sizes)
    latent = shared[group] + math.sqrt(1 - correlation) * rng.standard_normal(len(group))
    return latent < norm.ppf(rate), group


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n_sets", "rates", "correlations"),
    [(400, (0.05,), (0.5,)), pytest.param(2000, (0.001, 0.01, 0.05, 0.5), (0.0, 0.3, 0.5), marks=pytest.mark.nightly)],
)
def test_coverage_with_groups(n_sets, rates, correlations):
    """At least 90 %, less 4 standard errors, for equal and very unequal groups and rare events."""
    rng = np.random.default_rng(4)
    for sizes in (np.full(20, 20), SIZES["unequal"]):
        for rate in rates:
            for correlation in correlations:
                held = []
                for _ in range(n_sets):
                    event, group = simulated(sizes, rate, correlation, rng)
                    low, high = one_cell(event, np.ones(len(event)), group)
                    held.append(low <= rate <= high)
                assert np.mean(held) >= 0.9 - 4 * math.sqrt(0.09 / n_sets), (len(sizes), rate, correlation)


@pytest.mark.parametrize(
    ("n_sets", "sizes", "rates"),
    [
        (1000, (100,), (0.05,)),
        pytest.param(4000, (5, 20, 100, 500), (0.001, 0.01, 0.05, 0.2, 0.5), marks=pytest.mark.nightly),
    ],
)
def test_coverage_with_weights(n_sets, sizes, rates):
    """At least 90 %, less 4 standard errors, for weights of 20 to 1 and Pareto weights."""
    rng = np.random.default_rng(5)
    for n in sizes:
        few = np.where(np.arange(n) < max(1, n // 20), 20.0, 1.0)
        for make in (lambda n=n: rng.choice([1.0, 20.0], n), lambda few=few: few, lambda n=n: rng.pareto(1.0, n) + 1):
            for rate in rates:
                event, weight = rng.random((n_sets, n)) < rate, np.array([make() for _ in range(n_sets)])
                cell = np.repeat(np.arange(n_sets), n)
                low, high = EffectiveCounts.of_cells(event.ravel(), weight.ravel(), None, cell, n_sets).intervals(0.9)
                assert np.mean((low <= rate) & (rate <= high)) >= 0.9 - 4 * math.sqrt(0.09 / n_sets), (n, rate)


def test_bars_and_pvalues_are_those_of_the_intervals():
    """A frequency is in the bar, and its p-value is large, if its interval contains the expected frequency."""
    rng = np.random.default_rng(6)
    group, cell = np.arange(1200) // 4, np.arange(1200) // 60
    event = rng.random(1200) < np.linspace(0, 0.6, 1200)
    counts = EffectiveCounts.of_cells(event, np.ones(1200), group, cell, 20)
    n_outside = 0
    for expected in (0.02, 0.1, 0.5, 0.9, 1.0):
        wanted = np.full(20, expected)
        for level in (0.5, 0.9, 0.99):
            low, high = counts.intervals(level)
            inside = (low <= expected) & (expected <= high)
            bar = counts.bars(wanted, level)
            np.testing.assert_array_equal(inside, (bar[0] <= counts.rate) & (counts.rate <= bar[1]))
            np.testing.assert_array_equal(inside, counts.pvalues(wanted) >= 1 - level)
            n_outside += np.count_nonzero(~inside)
    assert n_outside > 100
    whole = counts.bars(np.zeros(20), 0.9)
    assert not whole[0].any()
    assert np.abs(whole[1]).max() < 1e-9
