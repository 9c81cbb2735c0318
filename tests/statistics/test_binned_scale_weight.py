"""Weights on the probability scale: where errors of cells matter (Nixon et al. 2019, appendix D.2)."""

import pickle
from itertools import product

import numpy as np
import pytest

import caltest
from caltest import ECE, EqualMass, EqualWidth
from caltest.predictions import euclidean
from caltest.simulation.studies._estimates import is_common
from tests.reference.cases import check_refused

BY_HAND = {
    "p": lambda p: p,
    "1-p": lambda p: 1 - p,
    "p(1-p)": lambda p: p * (1 - p),
    "(1-2p)^2": lambda p: (1 - 2 * p) ** 2,
}


def ones(p):
    return np.ones_like(p)


def above_tenth(p):
    return p >= 0.1


def problem(n=300, seed=0):
    rng = np.random.default_rng(seed)
    event = rng.beta(0.6, 1.5, n)
    return (rng.random(n) < event).astype(int), event


def weighted_error(labels, event, n_cells, weight):
    """The sum of n_b w(p_b) |y_b - p_b| over that of n_b w(p_b), cell by cell."""
    total = counted = 0.0
    for b in range(n_cells):
        own = [(y, p) for y, p in zip(labels, event, strict=True) if min(int(p * n_cells), n_cells - 1) == b]
        if own:
            mean = sum(p for _, p in own) / len(own)
            scale = len(own) * weight(mean)
            total += scale * abs(sum(y for y, _ in own) / len(own) - mean)
            counted += scale
    return total / counted


@pytest.mark.parametrize("name", BY_HAND)
def test_errors_are_those_of_loops(name):
    labels, event = problem()
    expected = weighted_error(labels, event, 8, BY_HAND[name])
    for weight in (name, BY_HAND[name]):
        found = caltest.calibration_error(labels, event, statistic=ECE(EqualWidth(8), scale_weight=weight))
        assert found == pytest.approx(expected, rel=1e-12)
    by_euclid = caltest.calibration_error(labels, event, statistic=ECE(EqualWidth(8), euclidean, name))
    assert by_euclid == pytest.approx(expected * np.sqrt(2), rel=1e-12), "of two outcomes"
    state = caltest.streaming.CalibrationState(2).update(labels[:100], event[:100]).update(labels[100:], event[100:])
    statistic = ECE(EqualWidth(16), scale_weight=name)
    assert state.error(statistic) == pytest.approx(weighted_error(labels, event, 16, BY_HAND[name]), rel=1e-9)


def test_a_threshold_is_a_weight_of_0_and_1():
    """As the paper says; the cells below the threshold do not count, as if their observations were left out."""
    labels, event = problem()
    thresholded = caltest.calibration_error(labels, event, statistic=ECE(EqualWidth(10), scale_weight=above_tenth))
    kept = event >= 0.1
    assert thresholded == pytest.approx(
        caltest.calibration_error(labels[kept], event[kept], statistic=ECE(EqualWidth(10)))
    )


def test_the_same_error_matters_more_where_events_are_rare():
    """The paper's .001 and .01, which an ECE treats as .3 and .309."""
    event = np.repeat([0.001, 0.3], 1000)
    rare, middle = np.zeros(2000, dtype=int), np.zeros(2000, dtype=int)
    rare[:10] = middle[:1] = 1
    rare[1000:1300] = middle[1000:1309] = 1
    plain = [caltest.calibration_error(y, event, statistic=ECE(EqualWidth(10))) for y in (rare, middle)]
    assert plain == pytest.approx([0.0045, 0.0045])
    ends = ECE(EqualWidth(10), scale_weight="(1-2p)^2")
    found = [caltest.calibration_error(y, event, statistic=ends) for y in (rare, middle)]
    scale = np.square(1 - 2 * np.array([0.001, 0.3]))
    assert found == pytest.approx((0.009 * scale / scale.sum()).tolist())


@pytest.mark.parametrize("partition", [EqualWidth(10), EqualMass(5), caltest.VarianceTree()])
@pytest.mark.parametrize("distance", [caltest.predictions.total_variation, euclidean])
def test_a_constant_changes_nothing(partition, distance):
    labels, event = problem(80)
    for options in ({"method": "exact"}, {"method": "monte-carlo", "n_resamples": 99, "rng": 0}):
        plain, weighted = (
            caltest.calibration_test(labels, event, statistic=ECE(partition, distance, weight), **options)
            for weight in (None, ones)
        )
        assert (plain.statistic, plain.pvalue, plain.noise_floor) == (
            weighted.statistic, weighted.pvalue, weighted.noise_floor,
        )  # fmt: skip


def test_the_null_distribution_is_that_of_all_labels():
    rng = np.random.default_rng(1)
    event = rng.uniform(0.05, 0.95, 10)
    statistic = ECE(EqualWidth(3), scale_weight="p(1-p)")
    observed = (event > 0.6).astype(int)
    value = caltest.calibration_error(observed, event, statistic=statistic)
    chance, mean = 0.0, 0.0
    for labels in product((0, 1), repeat=10):
        mass = np.prod([p if y else 1 - p for y, p in zip(labels, event, strict=True)])
        error = weighted_error(labels, event, 3, BY_HAND["p(1-p)"])
        chance += mass * (error >= value - 1e-12)
        mean += mass * error
    exact = caltest.calibration_test(observed, event, statistic=statistic, method="exact")
    assert exact.pvalue == pytest.approx(chance, rel=1e-9)
    assert exact.noise_floor == pytest.approx(mean, rel=1e-9)
    drawn = caltest.calibration_test(observed, event, statistic=statistic, method="monte-carlo", n_resamples=999, rng=0)
    assert 0.05 < chance < 0.6
    assert abs(drawn.pvalue - chance) < 4 * np.sqrt(chance * (1 - chance) / 999) + 1 / 1000
    assert pickle.loads(pickle.dumps(exact)).pvalue == exact.pvalue


def test_bounds_of_far_tails_hold_with_weights():
    """The bound of the unweighted sum, scaled, exceeds the probability everywhere; far away it is what is reported."""
    event = np.repeat([0.1, 0.5], 200)
    for weight in ("p", "1-p", None):
        statistic, labels = ECE(EqualWidth(2), scale_weight=weight), np.tile(np.arange(200) < 130, 2).astype(int)
        null = caltest.calibration_test(labels, event, statistic=statistic, method="exact").null
        for x in null.mean + null.std * np.array([-1, 0, 1, 2, 3]):
            assert null.sf(x) <= null.bound(x) + 1e-12
        assert caltest.calibration_test(labels, event, statistic=statistic, method="exact").pvalue <= 1e-12


def test_it_is_defined_for_two_outcomes_and_typed():
    assert ECE().n_outcomes is None
    assert ECE(scale_weight="p").n_outcomes == 2
    assert ECE(scale_weight="p").target is None
    assert str(ECE(EqualWidth(15), scale_weight="p(1-p)")) == "ECE(partition=EqualWidth(15), scale_weight='p(1-p)')"
    labels, event = problem(50)
    typed = caltest.calibration_error(labels, event, statistic="ECE(EqualWidth(15), scale_weight='p(1-p)')")
    assert typed == caltest.calibration_error(labels, event, statistic=ECE(EqualWidth(15), scale_weight="p(1-p)"))
    y_prob = np.full((6, 3), 1 / 3)
    confidence = caltest.calibration_test(
        np.arange(6) % 3, y_prob, statistic=ECE(scale_weight="p"), n_resamples=9, lens=caltest.Confidence()
    )
    assert confidence.n_samples == 6


def test_studies_evaluate_it_by_itself():
    """Studies know how to share the work of plain errors; those with a weight are left to the statistic."""
    assert is_common(ECE(EqualWidth(5)), 2)
    assert not is_common(ECE(EqualWidth(5), scale_weight="p"), 2)
    assert not is_common(caltest.KS(scale_weight="p"), 2)


def test_refusals():
    labels, event = problem(20)
    allowed = "'p', '1-p', 'p(1-p)', '(1-2p)^2'"
    check_refused(ECE, ValueError, f"`scale_weight` must be one of {allowed}, got 'q'", scale_weight="q")
    check_refused(ECE, TypeError, "`scale_weight` must be a function of probabilities", scale_weight=3)
    for function, message in (
        (lambda p: p - 1, "`scale_weight` must return finite numbers >= 0, got"),
        (
            lambda p: p[:1, None],
            "`scale_weight` must return one number or an array of the shape (5,) of its argument, got (1, 1)",
        ),
        (lambda p: 0 * p, "`scale_weight` must be positive for some prediction, got 0 for all of them"),
    ):
        check_refused(
            caltest.calibration_error,
            ValueError,
            message,
            labels,
            event,
            statistic=ECE(EqualWidth(5), scale_weight=function),
        )
    check_refused(
        caltest.calibration_error, ValueError, "two", np.arange(6) % 3, np.full((6, 3), 1 / 3),
        lens=caltest.Canonical(), statistic=ECE(scale_weight="p"),
    )  # fmt: skip
