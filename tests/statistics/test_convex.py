"""The convex estimator: published values, by hand, and what must hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from tests.reference import naive
from tests.reference.examples import draw_labels
from tests.statistics.networks import NETWORKS, network

TOLERANCE = 1e-9
HALFWAY = caltest.EqualMass(15, cut="halfway")
PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=50)

# `other_software -> euranova` of goldens.json: the released program of Posocco and Bonnefoy, whose convex shares are
# swapped; one column for each network. VGG-16: a loop over its rules that reproduces the values of the four others.
POSOCCO = {
    "confidence_ece_a_15": (0.048603630354, 0.040454701242, 0.01277597567, 0.065929189149),
    "confidence_ece_c_15": (0.0488545595425, 0.0406333414206, 0.0134603351922, 0.065929189149),
    "confidence_ece_ac_15": (0.048603630354, 0.040454701242, 0.0101138301235, 0.0659291931046),
    "classwise_ece_a_15": (0.0059285180729, 0.00446543131783, 0.00210512477093, 0.00924223058277),
    "classwise_ece_c_15": (0.0100098384068, 0.00859315076669, 0.00358543350595, 0.0136765531778),
    "classwise_ece_ac_15": (0.00559198453213, 0.00398393903814, 0.00230554681346, 0.00802313909977),
}
POSOCCO_BUNDLED = {
    "confidence_ece_a_15": 0.0397169523329,
    "confidence_ece_c_15": 0.0397587515459,
    "confidence_ece_ac_15": 0.0397177897134,
    "classwise_ece_a_15": 0.00385835719015,
    "classwise_ece_c_15": 0.00858403874888,
    "classwise_ece_ac_15": 0.00375779515119,
}
LINEAR_BUNDLED = {
    "confidence_ece_c_15": 0.0398942177122,
    "confidence_ece_ac_15": 0.0397175748608,
    "classwise_ece_c_15": 0.00867936730426,
    "classwise_ece_ac_15": 0.0076721227528,
}


def error(y_true, y_prob, statistic, lens=None, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, lens=lens, **options)


def make_data(n, n_outcomes, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_outcomes, 0.5), size=n)
    return draw_labels(prob, rng), prob


def posocco(key, y_true, y_prob, share="swapped"):
    """An estimator of Posocco and Bonnefoy by the name that their program gives it."""
    setting, _, name, _ = key.split("_")
    if name == "a":
        statistic = caltest.ECE(HALFWAY)
    else:
        low = 1 / y_prob.shape[1] if setting == "confidence" else 0.0
        statistic = caltest.statistics.ConvexECE({"c": caltest.EqualWidth(15), "ac": HALFWAY}[name], low, share)
    if setting == "confidence":
        return error(y_true, y_prob, statistic, caltest.Confidence())
    return error(y_true, y_prob, caltest.statistics.Classwise(statistic))


# Published values.


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_estimators_of_posocco(shared_data, column):
    found = {key: posocco(key, *network(shared_data, column)) for key in POSOCCO}
    assert found == pytest.approx({key: values[column] for key, values in POSOCCO.items()}, abs=TOLERANCE)


def test_estimators_of_posocco_on_bundled_predictions():
    bundled = caltest.datasets.load_cifar10_vgg16()
    assert {key: posocco(key, *bundled) for key in POSOCCO} == pytest.approx(POSOCCO_BUNDLED, abs=TOLERANCE)
    linear = {key: posocco(key, *bundled, share="linear") for key in LINEAR_BUNDLED}
    assert linear == pytest.approx(LINEAR_BUNDLED, abs=TOLERANCE)


# By hand.


def test_a_row_halfway_between_two_centres():
    # Centres 1/4 and 3/4. Residuals -1/4, 1/2, 1/4; the middle row counts half in either cell.
    y_true, y_prob = [0, 1, 1], [0.25, 0.5, 0.75]
    assert error(y_true, y_prob, caltest.statistics.ConvexECE(caltest.EqualWidth(2))) == pytest.approx(
        (0 + 0.5) / 3, rel=1e-12
    )
    weighted = error(y_true, y_prob, caltest.statistics.ConvexECE(caltest.EqualWidth(2)), sample_weight=[2, 1, 0])
    assert weighted == pytest.approx((0.25 + 0.25) / 3, rel=1e-12)


def test_the_nearer_centre_counts_more():
    # Residuals 3/5 at 0.4, which belongs to the upper cell by 3/10, and -1/4 at the lower centre itself.
    y_true, y_prob = [1, 0], [0.4, 0.25]
    convex = caltest.statistics.ConvexECE(caltest.EqualWidth(2))
    assert error(y_true, y_prob, convex) == pytest.approx((0.7 * 0.6 - 0.25 + 0.3 * 0.6) / 2, rel=1e-12)
    swapped = replace(convex, share="swapped")
    assert error(y_true, y_prob, swapped) == pytest.approx((0.25 - 0.3 * 0.6 + 0.7 * 0.6) / 2, rel=1e-12)


def test_cells_above_the_smallest_score():
    # Cells [0.5, 0.75), [0.75, 1]: centres 0.625 and 0.875; 0.55 lies before the first, 0.75 halfway between.
    y_true, y_prob = [1, 0], [0.55, 0.75]
    convex = caltest.statistics.ConvexECE(caltest.EqualWidth(2), low=0.5)
    assert error(y_true, y_prob, convex) == pytest.approx((0.45 - 0.375 + 0.375) / 2, rel=1e-12)


def test_scores_at_the_centres_make_the_ordinary_error():
    y_true, y_prob = [0, 1, 1, 1, 0, 0], [0.125, 0.125, 0.375, 0.625, 0.875, 0.875]
    partition = caltest.EqualWidth(4)
    for distance in (caltest.predictions.total_variation, caltest.predictions.squared_euclidean):
        value = error(y_true, y_prob, caltest.statistics.ConvexECE(partition, distance=distance))
        assert value == pytest.approx(error(y_true, y_prob, caltest.ECE(partition, distance)), rel=1e-12)


def test_a_cell_full_of_events_has_no_other_outcomes():
    """A distance that takes roots: rounding must not leave less than none."""
    y_prob = np.random.default_rng(0).random(1000)
    convex = caltest.statistics.ConvexECE(caltest.EqualWidth(7), distance=lambda p, q: np.sqrt(q).sum(axis=-1))
    assert error(np.ones(1000, dtype=int), y_prob, convex) == pytest.approx(1, rel=1e-6)


# What must hold.


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(seed=st.integers(0, 10**6), share=st.sampled_from(["linear", "swapped"]))
def test_it_is_at_least_the_overall_gap(seed, share):
    y_true, y_prob = make_data(30, 2, seed)
    gap = abs(np.mean(y_true - y_prob[:, 1]))
    assert error(y_true, y_prob, caltest.statistics.ConvexECE(caltest.EqualWidth(5), share=share)) >= gap - 1e-12
    assert error(y_true, y_prob, caltest.statistics.ConvexECE(caltest.EqualWidth(1), share=share)) == pytest.approx(
        gap, abs=1e-12
    )


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(seed=st.integers(0, 10**6), row=st.integers(0, 29), edge=st.integers(1, 9))
def test_it_does_not_jump_at_an_edge_or_a_centre(seed, row, edge):
    y_true, y_prob = make_data(30, 2, seed)
    convex = caltest.statistics.ConvexECE(caltest.EqualWidth(5))
    values = []
    for step in (-1e-9, 1e-9):
        y_prob[row, 1] = edge / 10 + step
        values.append(error(y_true, y_prob[:, 1], convex))
    assert abs(values[1] - values[0]) < 1e-8


def test_errors_under_a_known_calibration_function():
    """Cells and shares from the predictions, residuals centred on the function."""
    y_true, y_prob = make_data(100, 2)
    rho = caltest.Consistency(calibration_function=lambda p: 0.25 + p / 2)
    statistics = (
        caltest.statistics.ConvexECE(caltest.EqualWidth(5)),
        caltest.statistics.MonotonicSweepECE(),
        caltest.SquaredL2(),
    )
    for statistic in statistics:
        value = caltest.calibration_test(y_true, y_prob, statistic=statistic, resampling=rho, n_resamples=9).statistic
        expected = naive.evaluate(statistic, y_prob, y_true, expected=(0.25 + y_prob / 2).tolist())
        assert value == pytest.approx(expected, rel=1e-11), statistic


# Refusals.


def test_bad_parameters_are_refused():
    for low in (1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match=f"`low` must be a number of at least 0 and below 1, got {low}"):
            caltest.statistics.ConvexECE(low=low)
    with pytest.raises(ValueError, match=r"`share` must be one of 'linear', 'swapped', got 'nearest'"):
        caltest.statistics.ConvexECE(share="nearest")
    with pytest.raises(ValueError, match=r"`partition` of `ConvexECE` must make intervals, as EqualWidth\(15\) does"):
        error([0, 1], [0.25, 0.75], caltest.statistics.ConvexECE(lambda p: np.zeros(len(p), dtype=int)))
