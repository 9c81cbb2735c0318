"""Convex, adaptive, sweeping and debiased estimators: reference values, by hand, and what they are unbiased for."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from tests.reference import naive
from tests.reference.examples import draw_labels

TOLERANCE = 1e-9
STANDARD_ERRORS = 4
CONFIDENCE = caltest.Confidence()
HALFWAY = caltest.EqualMass(15, cut="halfway")

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=50)


def error(y_true, y_prob, statistic, lens=None, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, lens=lens, **options)


def class_errors(y_true, y_prob, statistic):
    return np.array([error(y_true, y_prob, statistic, caltest.ClassWise(k)) for k in range(y_prob.shape[1])])


def make_data(n, n_outcomes, seed=0, concentration=0.5):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_outcomes, concentration), size=n)
    return draw_labels(prob, rng), prob


# Reference values.

# `other_software -> euranova`: the released program of Posocco and Bonnefoy, whose convex shares are swapped. VGG-16:
# a loop over its rules that reproduces the values of all four other networks.
NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]
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
KUMAR = {
    "debiased_L2_top1_equalmass15": (0.0844575379753, 0.076079995789, 0.0202492077068, 0.102204425998),
    "debiased_L2_marginal_equalmass15": (0.0126008903056, 0.0099030900671, 0.00317303621697, 0.0233768220371),
}
KUMAR_BUNDLED = {
    "debiased_L2_top1_equalmass15": 0.0776820356524,
    "debiased_L2_marginal_equalmass15": 0.0106712961344,
}


@cache
def read(path, *names):
    with np.load(path) as data:
        return tuple(data[name] for name in names)


@pytest.fixture(params=range(4), ids=NETWORKS)
def network(request, shared_data):
    """The column of a network, its labels and its predictions."""
    return request.param, *read(shared_data / f"{NETWORKS[request.param]}.npz", "labels", "probs")


def posocco(key, y_true, y_prob, share="swapped"):
    """An estimator of Posocco and Bonnefoy by the name that their program gives it."""
    setting, _, name, _ = key.split("_")
    if name == "a":
        statistic = caltest.ECE(HALFWAY)
    else:
        low = 1 / y_prob.shape[1] if setting == "confidence" else 0.0
        statistic = caltest.ConvexECE({"c": caltest.EqualWidth(15), "ac": HALFWAY}[name], low, share)
    if setting == "confidence":
        return error(y_true, y_prob, statistic, CONFIDENCE)
    return class_errors(y_true, y_prob, statistic).mean()


def kumar(key, y_true, y_prob):
    """The clipped root; over classes each is clipped before the squares are averaged."""
    statistic = caltest.SquaredL2(caltest.EqualMass(15), "kumar")
    if "top1" in key:
        return math.sqrt(max(error(y_true, y_prob, statistic, CONFIDENCE), 0.0))
    return math.sqrt(np.maximum(class_errors(y_true, y_prob, statistic), 0.0).mean())


@pytest.mark.parametrize("key", POSOCCO)
def test_estimators_of_posocco(network, key):
    column, y_true, y_prob = network
    assert posocco(key, y_true, y_prob) == pytest.approx(POSOCCO[key][column], abs=TOLERANCE)


@pytest.mark.parametrize("key", POSOCCO_BUNDLED)
def test_estimators_of_posocco_on_bundled_predictions(key):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    assert posocco(key, y_true, y_prob) == pytest.approx(POSOCCO_BUNDLED[key], abs=TOLERANCE)


@pytest.mark.parametrize("key", LINEAR_BUNDLED)
def test_linear_shares_on_bundled_predictions(key):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    assert posocco(key, y_true, y_prob, "linear") == pytest.approx(LINEAR_BUNDLED[key], abs=TOLERANCE)


@pytest.mark.parametrize("key", KUMAR)
def test_estimator_of_kumar(network, key):
    column, y_true, y_prob = network
    assert kumar(key, y_true, y_prob) == pytest.approx(KUMAR[key][column], abs=TOLERANCE)


@pytest.mark.parametrize("key", KUMAR_BUNDLED)
def test_estimator_of_kumar_on_bundled_predictions(key):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    assert kumar(key, y_true, y_prob) == pytest.approx(KUMAR_BUNDLED[key], abs=TOLERANCE)


@pytest.mark.parametrize("name", ["top1_cifar10_resnet50", "top1_imagenet_resnet152"])
def test_estimator_of_t_cal(shared_data, name):
    """`dpe_own`, 2 to 2**18 cells; a confidence of exactly 1 has a cell of its own there."""
    right, confidence = read(shared_data / f"{name}.npz", "labels", "scores")
    expected = json.loads((shared_data / "goldens.json").read_text())["top1"][name]["dpe_own"]
    for b in range(18):
        statistic = caltest.SquaredL2(lambda p, b=b: np.floor(p[:, 1] * 2 ** (b + 1)).astype(int), "t-cal")
        assert error(right, confidence, statistic) == pytest.approx(expected[b], abs=1e-12)
    if not (confidence == 1).any():
        statistic = caltest.SquaredL2(caltest.EqualWidth(16), "t-cal")
        assert error(right, confidence, statistic) == pytest.approx(expected[3], abs=1e-12)


def test_debiased_estimates_on_bundled_predictions():
    """Sums over 16 cells of the confidence in plain NumPy."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    for estimator, expected in {"t-cal": 0.00405423793815, "unbiased": 0.00405121021344}.items():
        statistic = caltest.SquaredL2(caltest.EqualWidth(16), estimator)
        assert error(y_true, y_prob, statistic, CONFIDENCE) == pytest.approx(expected, abs=TOLERANCE)


def authors_sweep(score, event, power):
    """The sweep as Roelofs et al. released it: row i of n in cell floor(i B / n); stops at the first decrease."""
    order = np.argsort(score, kind="stable")
    n = len(score)
    chosen = 1
    for n_cells in range(2, n):
        cell = np.arange(n) * n_cells // n
        frequency = np.bincount(cell, event[order]) / np.bincount(cell)
        if (np.diff(frequency) < 0).any():
            break
        chosen = n_cells
    cell = np.arange(n) * chosen // n
    count = np.bincount(cell)
    gap = np.abs(np.bincount(cell, event[order]) - np.bincount(cell, score[order])) / count
    return chosen, ((count * gap**power).sum() / n) ** (1 / power)


@pytest.mark.parametrize("power", [1, 2])
def test_sweep_of_roelofs(power):
    """On the bundled confidences, 8 cells, and where the numbers of cells divide n = 5,040 and no scores are tied."""
    sweep = caltest.MonotonicSweepECE(f"l{power}")
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    expected = {1: 0.0397260302395, 2: 0.0756956122290}[power]
    assert error(y_true, y_prob, sweep, CONFIDENCE) == pytest.approx(expected, abs=TOLERANCE)
    compared = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.4, 0.6, size=5040)
        event = (rng.random(5040) < score).astype(int)
        chosen, value = authors_sweep(score, event, power)
        if chosen < 10:  # 1 to 10 divide 5,040
            sample = make_sample(event, score)
            assert sweep.n_cells(sample, sample.outcome) == chosen
            assert error(event, score, sweep) == pytest.approx(value, rel=1e-12)
            compared += 1
    assert compared > 10


# Numbers of cells and cuts.


@pytest.mark.parametrize(("n", "n_cells"), [(1, 1), (3, 1), (4, 2), (99, 9), (100, 10), (101, 10)])
def test_square_root_rule(n, n_cells):
    y_true, y_prob = make_data(n, 2, seed=n)
    for kind in (caltest.EqualWidth, caltest.EqualMass):
        for statistic in (caltest.ECE, caltest.SquaredL2, caltest.ConvexECE):
            value = error(y_true, y_prob, statistic(kind("sqrt")))
            assert value == error(y_true, y_prob, statistic(kind(n_cells)))


@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
def test_square_root_rule_when_rows_are_resampled():
    y_true, y_prob = make_data(100, 2)
    nulls = [
        caltest.calibration_test(
            y_true,
            y_prob,
            statistic=caltest.ECE(kind(n_cells)),
            resampling=caltest.Consistency(resample_predictions=True),
            n_resamples=49,
            rng=0,
        ).null_distribution
        for kind in (caltest.EqualWidth, lambda n: caltest.EqualMass(n, cut="halfway"))
        for n_cells in ("sqrt", 10)
    ]
    np.testing.assert_array_equal(nulls[0], nulls[1])
    np.testing.assert_array_equal(nulls[2], nulls[3])


@pytest.mark.parametrize(
    ("values", "n_cells", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], 2, [0, 0, 1, 1, 1]),  # the last cell takes the remainder
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 3, [0, 0, 1, 1, 2, 2, 2, 2]),
        ([0.1, 0.5, 0.5, 0.5, 0.5, 0.9], 3, [0, 2, 2, 2, 2, 2]),  # both edges are 0.5 or below it
        ([0.2, 0.2, 0.2], 2, [1, 1, 1]),
        ([0.4, 0.1], 5, [1, 0]),  # no more cells than rows
    ],
)
def test_halfway_cuts(values, n_cells, expected):
    prob = np.column_stack([1 - np.array(values), values])
    partition = caltest.EqualMass(n_cells, cut="halfway")
    labels = partition.fit(prob)(prob)
    np.testing.assert_array_equal(
        np.unique(labels, return_inverse=True)[1], np.unique(expected, return_inverse=True)[1]
    )
    between = partition.fit(np.array([[0.9, 0.1], [0.5, 0.5]]))
    assert n_cells < 2 or between(np.array([[0.71, 0.29], [0.7, 0.3], [0.69, 0.31]])).tolist() == [0, 1, 1]


# The convex estimator by hand.


def test_a_row_halfway_between_two_centres():
    # Centres 1/4 and 3/4. Residuals -1/4, 1/2, 1/4; the middle row counts half in either cell.
    y_true, y_prob = [0, 1, 1], [0.25, 0.5, 0.75]
    assert error(y_true, y_prob, caltest.ConvexECE(caltest.EqualWidth(2))) == pytest.approx((0 + 0.5) / 3, rel=1e-12)
    weighted = error(y_true, y_prob, caltest.ConvexECE(caltest.EqualWidth(2)), sample_weight=[2, 1, 0])
    assert weighted == pytest.approx((0.25 + 0.25) / 3, rel=1e-12)


def test_the_nearer_centre_counts_more():
    # Residuals 3/5 at 0.4, which belongs to the upper cell by 3/10, and -1/4 at the lower centre itself.
    y_true, y_prob = [1, 0], [0.4, 0.25]
    convex = caltest.ConvexECE(caltest.EqualWidth(2))
    assert error(y_true, y_prob, convex) == pytest.approx((0.7 * 0.6 - 0.25 + 0.3 * 0.6) / 2, rel=1e-12)
    swapped = replace(convex, share="swapped")
    assert error(y_true, y_prob, swapped) == pytest.approx((0.25 - 0.3 * 0.6 + 0.7 * 0.6) / 2, rel=1e-12)


def test_cells_above_the_smallest_score():
    # Cells [0.5, 0.75), [0.75, 1]: centres 0.625 and 0.875; 0.55 lies before the first, 0.75 halfway between.
    y_true, y_prob = [1, 0], [0.55, 0.75]
    convex = caltest.ConvexECE(caltest.EqualWidth(2), low=0.5)
    assert error(y_true, y_prob, convex) == pytest.approx((0.45 - 0.375 + 0.375) / 2, rel=1e-12)


def test_scores_at_the_centres_make_the_ordinary_error():
    y_true, y_prob = [0, 1, 1, 1, 0, 0], [0.125, 0.125, 0.375, 0.625, 0.875, 0.875]
    partition = caltest.EqualWidth(4)
    for distance in (caltest.total_variation, caltest.squared_euclidean):
        value = error(y_true, y_prob, caltest.ConvexECE(partition, distance=distance))
        assert value == pytest.approx(error(y_true, y_prob, caltest.ECE(partition, distance)), rel=1e-12)


def test_a_cell_full_of_events_has_no_other_outcomes():
    """A distance that takes roots: rounding must not leave less than none."""
    y_prob = np.random.default_rng(0).random(1000)
    convex = caltest.ConvexECE(caltest.EqualWidth(7), distance=lambda p, q: np.sqrt(q).sum(axis=-1))
    assert error(np.ones(1000, dtype=int), y_prob, convex) == pytest.approx(1, rel=1e-6)


@PROFILE
@given(seed=st.integers(0, 10**6), share=st.sampled_from(["linear", "swapped"]))
def test_convex_error_is_at_least_the_overall_gap(seed, share):
    y_true, y_prob = make_data(30, 2, seed)
    gap = abs(np.mean(y_true - y_prob[:, 1]))
    assert error(y_true, y_prob, caltest.ConvexECE(caltest.EqualWidth(5), share=share)) >= gap - 1e-12
    assert error(y_true, y_prob, caltest.ConvexECE(caltest.EqualWidth(1), share=share)) == pytest.approx(gap, abs=1e-12)


@PROFILE
@given(seed=st.integers(0, 10**6), row=st.integers(0, 29), edge=st.integers(1, 9))
def test_convex_error_does_not_jump_at_an_edge_or_a_centre(seed, row, edge):
    y_true, y_prob = make_data(30, 2, seed)
    convex = caltest.ConvexECE(caltest.EqualWidth(5))
    values = []
    for step in (-1e-9, 1e-9):
        y_prob[row, 1] = edge / 10 + step
        values.append(error(y_true, y_prob[:, 1], convex))
    assert abs(values[1] - values[0]) < 1e-8


def test_convex_error_under_a_known_calibration_function():
    """Cells and shares from the predictions, residuals centred on the function."""
    y_true, y_prob = make_data(100, 2)
    rho = caltest.Consistency(calibration_function=lambda p: 0.25 + p / 2)
    statistics = (caltest.ConvexECE(caltest.EqualWidth(5)), caltest.MonotonicSweepECE(), caltest.SquaredL2())
    for statistic in statistics:
        value = caltest.calibration_test(y_true, y_prob, statistic=statistic, resampling=rho, n_resamples=9).statistic
        expected = naive.evaluate(statistic, y_prob, y_true, expected=(0.25 + y_prob / 2).tolist())
        assert value == pytest.approx(expected, rel=1e-11)


# The sweep by hand.


def swept(y_true, y_prob, norm="l1"):
    """The number of cells and the error."""
    statistic = caltest.MonotonicSweepECE(norm)
    sample = make_sample(y_true, y_prob)
    return int(statistic.n_cells(sample, sample.outcome)), float(statistic.evaluate(sample, sample.outcome))


def test_sweep_by_hand():
    # Two cells: 0/2 and 2/3 (array_split: three rows, then two): 1/3, 1/2. Three cells: 0/2, 1/2, 1/1. Four: decreases.
    y_prob = [0.1, 0.3, 0.5, 0.7, 0.9]
    assert swept([0, 0, 1, 0, 1], y_prob) == (3, pytest.approx((0.4 + 0.2 + 0.1) / 5, rel=1e-12))
    l2 = math.sqrt((0.4**2 / 2 + 0.2**2 / 2 + 0.1**2) / 5)
    assert swept([0, 0, 1, 0, 1], y_prob, "l2") == (3, pytest.approx(l2, rel=1e-12))


def test_scores_that_rank_badly_share_one_cell():
    assert swept([1, 1, 0, 0], [0.1, 0.2, 0.6, 0.7]) == (1, pytest.approx(0.1, rel=1e-12))


def test_scores_that_rank_perfectly_have_a_cell_each():
    assert swept([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.7]) == (4, pytest.approx((0.1 + 0.2 + 0.4 + 0.3) / 4, rel=1e-12))


def test_constant_scores_are_never_cut():
    assert swept([0, 1, 0, 1, 1], [0.5] * 5) == (5, pytest.approx(0.1, rel=1e-12))


def test_equal_frequencies_are_no_decrease():
    assert swept([0, 1, 0, 1], [0.1, 0.1, 0.8, 0.8])[0] == 4


@PROFILE
@given(
    n=st.integers(1, 40),
    n_values=st.integers(1, 40),
    slope=st.sampled_from([0.0, 0.5, 1.0, 4.0]),
    seed=st.integers(0, 10**6),
)
def test_sweep_is_the_error_on_its_cells_and_one_more_cell_decreases(n, n_values, slope, seed):
    rng = np.random.default_rng(seed)
    y_prob = rng.integers(n_values + 1, size=n) / n_values
    y_true = (rng.random(n) < np.clip(0.5 + slope * (y_prob - 0.5), 0, 1)).astype(int)
    n_cells, value = swept(y_true, y_prob)
    assert value == pytest.approx(error(y_true, y_prob, caltest.ECE(caltest.EqualMass(n_cells))), abs=1e-12)

    def increases(n_cells):
        seen = caltest.histogram_regression(y_true, y_prob, partition=caltest.EqualMass(n_cells))
        return bool(np.all(np.diff(seen.observed[np.argsort(seen.predicted[:, 1]), 1]) >= -1e-12))

    assert all(increases(fewer) for fewer in range(1, n_cells + 1))
    assert n_cells == n or not increases(n_cells + 1)


# The squared error by hand.


def test_products_of_residuals_of_one_cell():
    # Residuals -1/4, 3/4, 1/8, 0 in cells of two: products of the pairs, -3/16 and 0.
    y_true, y_prob = [0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0]
    halves = caltest.EqualWidth(2)
    assert error(y_true, y_prob, caltest.SquaredL2(halves)) == pytest.approx(-3 / 32, rel=1e-12)
    assert error(y_true, y_prob, caltest.SquaredL2(halves, "t-cal")) == pytest.approx(-3 / 64, rel=1e-12)
    # Frequencies 1/2 and 1, gaps 1/4 and 1/16.
    kumar = ((1 / 16 - 1 / 4) + 1 / 256) / 2
    assert error(y_true, y_prob, caltest.SquaredL2(halves, "kumar")) == pytest.approx(kumar, rel=1e-12)


def test_whole_residuals_of_three_classes():
    # e = (1/2, -1/4, -1/4) and (-1/2, 3/4, -1/4).
    value = error([0, 1], [[0.5, 0.25, 0.25]] * 2, caltest.SquaredL2(caltest.EqualWidth(1)))
    assert value == pytest.approx(-1 / 4 - 3 / 16 + 1 / 16, rel=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "t-cal", "kumar"])
def test_cells_of_one_row_count_nothing(estimator):
    y_true, y_prob = make_data(20, 2)
    assert error(y_true, y_prob, caltest.SquaredL2(caltest.EqualMass(20), estimator)) == pytest.approx(0, abs=1e-15)
    weight = [1.0, *[0.0] * 19]
    squared = caltest.SquaredL2(caltest.EqualMass(2), estimator)
    assert error(y_true, y_prob, squared, sample_weight=weight) == 0


@PROFILE
@given(seed=st.integers(0, 10**6), n_outcomes=st.integers(2, 4))
def test_estimators_agree_where_they_should(seed, n_outcomes):
    """Predictions that are equal in a cell: Kumar's is the U-statistic. One cell: T-Cal's is it times (n - 1) / n."""
    y_true, y_prob = make_data(40, n_outcomes, seed)
    few = np.tile(y_prob[:4], (10, 1))

    def value_cells(prob):
        return np.unique(prob, axis=0, return_inverse=True)[1].ravel()

    unbiased, t_cal, kumar = (
        error(y_true, few, caltest.SquaredL2(value_cells, estimator)) for estimator in ("unbiased", "t-cal", "kumar")
    )
    assert kumar == pytest.approx(unbiased, abs=1e-12)
    assert t_cal == pytest.approx(unbiased * 9 / 10, abs=1e-12)


@PROFILE
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_names_of_the_classes_do_not_matter(seed, order):
    y_true, y_prob = make_data(40, 4, seed)
    for estimator in ("unbiased", "t-cal", "kumar"):
        squared = caltest.SquaredL2(caltest.EqualWidth(3, axes="all"), estimator)
        renamed = error(np.argsort(order)[y_true], y_prob[:, order], squared)
        assert renamed == pytest.approx(error(y_true, y_prob, squared), abs=1e-12)


# What it is unbiased for.


def assert_mean(values, expected):
    assert abs(values.mean() - expected) < STANDARD_ERRORS * values.std() / math.sqrt(len(values))


@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_unbiased_over_rows_given_their_cells(n_outcomes):
    """Rows are drawn anew within 4 cells of 2, 3, 5 and 30 rows; the truth deviates, differently within each cell."""
    rng = np.random.default_rng(1)
    count = np.array([2, 3, 5, 30])
    pool = np.stack([np.sort(rng.dirichlet(np.ones(n_outcomes), size=6), axis=1) for _ in count])  # (cell, kind, k)
    truth = 0.6 * pool + 0.4 * np.roll(pool, 1, axis=-1)
    deviation = (truth - pool).mean(axis=1)[:, 1 if n_outcomes == 2 else 0 :]
    target = (count / count.sum()) @ np.square(deviation).sum(axis=1)
    cell = np.repeat(np.arange(4), count)
    values = {"unbiased": [], "t-cal": []}
    for _ in range(4000):
        kind = rng.integers(6, size=len(cell))
        prob, y_true = pool[cell, kind], draw_labels(truth[cell, kind], rng)
        order = np.argsort(prob[:, 1], kind="stable") if n_outcomes == 2 else np.arange(len(cell))
        found = cell[order]
        sample = make_sample(y_true, prob)
        for name, several in values.items():
            several.append(caltest.SquaredL2(lambda p, found=found: found, name).evaluate(sample, sample.outcome))
    assert_mean(np.array(values["unbiased"]), target)
    shrunk = (count / count.sum() * (count - 1) / count) @ np.square(deviation).sum(axis=1)
    assert_mean(np.array(values["t-cal"]), shrunk)
    assert shrunk < 0.97 * target


@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_mean_given_the_predictions(n_outcomes):
    """sum of w (|mu|^2 - v / (n - 1)), v the variance within the cell of the true deviations."""
    rng = np.random.default_rng(2)
    prob = rng.dirichlet(np.ones(n_outcomes), size=30)
    truth = 0.5 * prob + 0.5 * np.roll(prob, 1, axis=1)
    partition = caltest.EqualWidth(2)
    sample = make_sample(np.zeros(30, dtype=int), prob)
    cells = sample.cells(partition)
    deviation = (truth - prob)[sample.row][:, 1 if n_outcomes == 2 else 0 :]
    expected = 0.0
    for b in range(cells.n_cells):
        delta = deviation[cells.index == b]
        if len(delta) > 1:
            expected += (
                len(delta) / 30 * (np.square(delta.mean(axis=0)).sum() - delta.var(axis=0).sum() / (len(delta) - 1))
            )
    labels = draw_labels(np.repeat(truth[sample.row], 20_000, axis=0), rng).reshape(30, -1).T.astype(np.uint8)
    assert_mean(caltest.SquaredL2(partition).evaluate(sample, np.ascontiguousarray(labels)), expected)


@pytest.mark.parametrize("n_outcomes", [2, 4])
def test_mean_and_deviation_of_the_null(n_outcomes):
    """Mean 0 and the closed standard deviation (prior-art.md, 4.1); Kumar's is low by var(p) / (n - 1)."""
    n = 60
    y_true, y_prob = make_data(n, n_outcomes, seed=3)
    partition = caltest.EqualWidth(2)
    sample = make_sample(y_true, y_prob)
    cells = sample.cells(partition)
    p = sample.prob[:, 1:] if n_outcomes == 2 else sample.prob
    sigma = np.einsum("ik,kl->ikl", p, np.eye(p.shape[1])) - np.einsum("ik,il->ikl", p, p)
    variance = bias = 0.0
    for b in range(cells.n_cells):
        inside = cells.index == b
        n_b = inside.sum()
        if n_b > 1:
            whole, own = np.square(sigma[inside].sum(axis=0)).sum(), np.square(sigma[inside]).sum()
            variance += 2 / n**2 * (whole - own) / (n_b - 1) ** 2
            bias -= n_b / n * p[inside].var(axis=0).sum() / (n_b - 1)
    values = [
        caltest.calibration_test(
            y_true, y_prob, statistic=caltest.SquaredL2(partition, name), n_resamples=20_000, rng=4
        ).null
        for name in ("unbiased", "kumar")
    ]
    assert_mean(values[0].values, 0.0)
    assert_mean(values[1].values, bias)
    draws = values[0].values
    kurtosis = np.mean((draws - draws.mean()) ** 4) / draws.var() ** 2
    slack = STANDARD_ERRORS * math.sqrt((kurtosis - 1) / (4 * len(draws)))
    assert draws.std() == pytest.approx(math.sqrt(variance), rel=slack)


# What results carry.


def test_result_carries_the_value_its_root_and_the_deviation_of_the_null():
    _, y_prob = make_data(200, 2)
    for seed in range(4):
        result = caltest.calibration_test(
            draw_labels(y_prob, np.random.default_rng(seed)), y_prob, statistic=caltest.SquaredL2(), rng=seed
        )
        assert result.derived == {"root": math.sqrt(max(result.statistic, 0)), "null_std": result.null.std}
        assert result.components[0].derived == result.derived
        assert result.to_dict()["derived"] == result.derived
        assert json.loads(json.dumps(result.to_dict()))["components"][0]["derived"] == result.derived
        line = f"SquaredL2(): root {result.derived['root']:.4g}, null std {result.null.std:.4g}."
        assert line in " ".join(str(result).split())
        assert line in result._repr_html_()


def test_components_carry_their_derived_numbers():
    y_true, y_prob = make_data(100, 3)
    both = caltest.Omnibus((caltest.ECE(), caltest.SquaredL2()))
    result = caltest.calibration_test(y_true, y_prob, statistic=both, n_resamples=99, rng=0)
    assert result.derived == {}
    assert [sorted(part.derived) for part in result.components] == [[], ["null_std", "root"]]
    assert "SquaredL2(): root" in str(result)


def test_most_statistics_derive_nothing(any_default_statistic):
    if not isinstance(any_default_statistic, caltest.SquaredL2):
        y_true, y_prob = make_data(30, 2)
        result = caltest.calibration_test(y_true, y_prob, statistic=any_default_statistic, n_resamples=9, rng=0)
        assert result.derived == {}
        assert result.to_dict()["derived"] == {}


def test_an_exact_law_carries_derived_numbers_too():
    class Rooted(caltest.ECE):
        """A user's statistic."""

        def derived(self, value, null):
            return {"root": math.sqrt(value), "floor": null.mean}

    y_true, y_prob = make_data(50, 2)
    result = caltest.calibration_test(y_true, y_prob, statistic=Rooted(caltest.EqualWidth(5)), method="exact")
    assert result.derived == {"root": math.sqrt(result.statistic), "floor": result.noise_floor}


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.ConvexECE(low=1.0), r"`low` must be a number, at least 0 and below 1, got 1.0"),
        (lambda: caltest.ConvexECE(low=-0.1), r"`low` must be .* got -0.1"),
        (lambda: caltest.ConvexECE(low=math.nan), r"`low` must be .* got nan"),
        (lambda: caltest.ConvexECE(low="0"), r"`low` must be .* got '0'"),
        (lambda: caltest.ConvexECE(share="nearest"), r"`share` must be one of 'linear', 'swapped', got 'nearest'"),
        (lambda: caltest.MonotonicSweepECE("l3"), r"`norm` must be one of 'l1', 'l2', got 'l3'"),
        (
            lambda: caltest.SquaredL2(estimator="biased"),
            r"`estimator` must be one of 'unbiased', 't-cal', 'kumar', got 'biased'",
        ),
        (lambda: caltest.EqualMass(5, cut="middle"), r"`cut` must be one of 'row', 'halfway', got 'middle'"),
        (lambda: caltest.EqualWidth("cbrt"), r'`n_cells` must be an integer >= 1 or "sqrt", got .cbrt.'),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_cells_that_are_no_intervals():
    with pytest.raises(ValueError, match=r"`partition` of `ConvexECE` must make intervals, as EqualWidth\(15\) does"):
        error([0, 1], [0.25, 0.75], caltest.ConvexECE(lambda p: np.zeros(len(p), dtype=int)))
    with pytest.raises(ValueError, match=r"must make intervals, as EqualWidth\(15\) does, got 'equal-width'"):
        error([0, 1], [0.25, 0.75], caltest.ConvexECE("equal-width"))


@pytest.mark.parametrize("statistic", [caltest.ConvexECE(), caltest.MonotonicSweepECE()], ids=str)
def test_needs_two_outcomes(statistic):
    with pytest.raises(ValueError, match=r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes"):
        error([0, 1], [[0.25, 0.25, 0.5]] * 2, statistic)


# Level.

FALSE_ALARM = 1e-3
LEVELS = (0.01, 0.05, 0.1)
TWO_OUTCOMES = (
    caltest.ConvexECE(caltest.EqualWidth(15)),
    caltest.ConvexECE(HALFWAY),
    caltest.ECE(caltest.EqualMass("sqrt")),
    caltest.MonotonicSweepECE(),
    caltest.MonotonicSweepECE("l2"),
    *(caltest.SquaredL2(caltest.EqualMass(15), estimator) for estimator in ("unbiased", "t-cal", "kumar")),
)
TEN_OUTCOMES = tuple(caltest.SquaredL2(estimator=estimator) for estimator in ("unbiased", "t-cal", "kumar"))


def rejections(statistics, n_outcomes, n_data_sets):
    """How often each statistic rejects calibrated predictions of 200 rows at each of LEVELS, of 199 draws."""
    combined = caltest.Omnibus(statistics)
    counts = np.zeros((len(statistics), len(LEVELS)), dtype=int)
    for i in range(n_data_sets):
        y_true, y_prob = make_data(200, n_outcomes, seed=i)
        result = caltest.calibration_test(y_true, y_prob, statistic=combined, n_resamples=199, rng=10**6 + i)
        pvalue = np.array([part.pvalue for part in result.components])
        counts += pvalue[:, None] <= np.array(LEVELS) + 1e-12
    return counts


@pytest.mark.parametrize("n_data_sets", [200, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("statistics", "n_outcomes"), [(TWO_OUTCOMES, 2), (TEN_OUTCOMES, 10)], ids=["2", "10"])
def test_level(statistics, n_outcomes, n_data_sets):
    counts = rejections(statistics, n_outcomes, n_data_sets)
    n_cases = len(LEVELS) * (len(TWO_OUTCOMES) + len(TEN_OUTCOMES))
    limit = binom.ppf(1 - FALSE_ALARM / n_cases, n_data_sets, LEVELS)
    exceeded = {str(s): row.tolist() for s, row in zip(statistics, counts, strict=True) if np.any(row > limit)}
    assert exceeded == {}
