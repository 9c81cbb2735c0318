"""The cumulative residual: KS and Kuiper against plain NumPy, by hand and against published values; class-wise KS."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling.distributions import _brownian as brownian
from caltest.resampling.distributions._brownian import EITHER_END, EXCURSION, RANGE, BrownianDistribution
from caltest.resampling.engine._evaluation import null_values
from tests.reference.cases import mostly_nightly, mostly_slow
from tests.statistics.networks import NETWORKS, network, read

BOTH = {"KS": caltest.KS(), "Kuiper": caltest.statistics.Kuiper()}
PVALUE = {"KS": brownian.ks_pvalue, "Kuiper": brownian.kuiper_pvalue}
LOG_PVALUE = {"KS": brownian.ks_log_pvalue, "Kuiper": brownian.kuiper_log_pvalue}
LIMIT = {"KS": EXCURSION, "Kuiper": RANGE}


def error(y_true, y_prob, statistic, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, **options)


def plain_path(outcomes, event, tied=True):
    """The cumulative residual of sorted rows from its start at 0, ``(..., n + 1)``; only block ends if tied."""
    path = np.cumsum(outcomes - event, axis=-1)
    if tied:
        path = path[..., np.append(np.diff(event) > 0, True)]
    return np.concatenate([np.zeros((*path.shape[:-1], 1)), path], axis=-1)


def read_plainly(name, path):
    """KS or Kuiper of a path, not divided by n."""
    return np.abs(path).max(axis=-1) if name == "KS" else path.max(axis=-1) - path.min(axis=-1)


# Against plain NumPy: sizes around those of chunks, ties longer than a chunk, certainties.

EVENTS = {
    "even": lambda n, rng: rng.random(n),
    "sharp": lambda n, rng: rng.beta(0.1, 0.02, n),
    "rare": lambda n, rng: rng.random(n) * 1e-3,
    "nearly certain": lambda n, rng: 1 - rng.random(n) * 1e-6,
    "three values": lambda n, rng: rng.choice([0.2, 0.5, 0.7], n),
    "long and short blocks": lambda n, rng: np.where(rng.random(n) < 0.8, 0.75, rng.random(n)),
    "certain": lambda n, rng: rng.integers(2, size=n) * 1.0,
    "constant": lambda n, rng: np.full(n, 0.9),
    "with zeros and ones": lambda n, rng: np.clip(rng.normal(0.5, 0.5, n), 0, 1),
}


@pytest.mark.parametrize("kind", mostly_slow(EVENTS))
def test_equals_plain_numpy(kind):
    for n in (1, 2, 63, 64, 65, 128, 200, 1023, 1024, 1025, 3000):
        rng = np.random.default_rng(n)
        event = EVENTS[kind](n, rng)
        sample = make_sample(np.zeros(n, dtype=int), event)
        drawn = rng.random((8, n)) < sample.event
        runs = np.arange(n) < rng.integers(n + 1, size=(4, 1))  # events first, or last: the largest excursions
        outcomes = np.concatenate([drawn, rng.random((4, n)) < 0.5, runs, ~runs, np.zeros((1, n)), np.ones((1, n))])
        for name, statistic in BOTH.items():
            value = statistic.evaluate(sample, outcomes.astype(np.uint8))
            expected = read_plainly(name, plain_path(outcomes, sample.event)) / n
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12, err_msg=f"{name} of {n}")


# By hand.


def test_the_path_is_read_at_the_end_of_tied_blocks():
    # Residuals -1/2, +1/2 within a block: the path never leaves 0 at its end.
    assert error([0, 1, 0, 1], [0.5] * 4, caltest.KS()) == 0
    # Blocks 1/4 and 3/4: -1/4 - 1/4, then + 1/4 + 1/4.
    assert error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], caltest.KS()) == 0.125
    # The extreme lies inside: + 3/4, then - 3/4.
    assert error([1, 0], [0.25, 0.75], caltest.KS()) == 0.375


def test_kuiper_by_hand():
    # The path +1/4 +1/4 | -3/4 -3/4, read at 1/2 and -1.
    assert (
        caltest.calibration_error([1, 0, 0, 0], [0.25, 0.25, 0.75, 0.75], statistic=caltest.statistics.Kuiper())
        == 1.5 / 4
    )
    # It only falls: the start at 0 counts.
    assert caltest.calibration_error([0, 0], [0.25, 0.75], statistic=caltest.statistics.Kuiper()) == 0.5
    # It only rises.
    assert caltest.calibration_error([1, 1], [0.25, 0.75], statistic=caltest.statistics.Kuiper()) == 0.5
    # Within a tied block it would reach 1/2.
    assert caltest.calibration_error([1, 0], [0.5, 0.5], statistic=caltest.statistics.Kuiper()) == 0
    # Weights 3 and 1: +9/4, -3/4, over 4.
    options = {"statistic": caltest.statistics.Kuiper(), "sample_weight": [3.0, 1.0]}
    assert caltest.calibration_error([1, 0], [0.25, 0.75], **options) == 2.25 / 4


rows = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 3)), min_size=1, max_size=20).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


@pytest.mark.slow(few_draws=True)
@settings(deadline=None, derandomize=True, database=None, max_examples=100)
@given(rows)
def test_kuiper_is_the_largest_residual_of_an_interval(rows):
    event, happened, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    event = event / 8
    residual = weight * (happened - event)
    intervals = [
        abs(residual[(event > low) & (event <= high)].sum()) / weight.sum()
        for low in [-1.0, *event]
        for high in [-1.0, *event]
    ]
    value, ks = (
        caltest.calibration_error(happened == 1, event, statistic=statistic, sample_weight=weight)
        for statistic in (caltest.statistics.Kuiper(), caltest.KS())
    )
    assert value == pytest.approx(max(intervals), abs=1e-12)
    assert ks - 1e-12 <= value <= 2 * ks + 1e-12


# Class-wise KS.


def test_standardised_path_by_hand():
    # Class 0: residual 1/2 in a single row of variance 1/4; the other classes -1/4 of variance 3/16.
    assert error([0], [[0.5, 0.25, 0.25]], caltest.statistics.ClasswiseKS()) == pytest.approx(
        0.5 / 0.25**0.5, rel=1e-12
    )
    assert error([2], [[0.5, 0.25, 0.25]], caltest.statistics.ClasswiseKS()) == pytest.approx(
        0.75 / (3 / 16) ** 0.5, rel=1e-12
    )


def test_classwise_paths_are_ks_of_every_class():
    rng = np.random.default_rng(1)
    y_prob, y_true = rng.dirichlet(np.ones(4), size=200), rng.integers(4, size=200)
    expected = max(
        200
        * error(y_true, y_prob, caltest.KS(), lens=caltest.ClassWise(k))
        / np.sqrt((y_prob[:, k] * (1 - y_prob[:, k])).sum())
        for k in range(4)
    )
    assert error(y_true, y_prob, caltest.statistics.ClasswiseKS()) == pytest.approx(expected, rel=1e-12)


def test_a_path_without_variance_is_flat_or_infinite():
    assert error([0, 1], [0.0, 1.0], caltest.statistics.ClasswiseKS()) == 0
    assert error([1, 1], [0.0, 1.0], caltest.statistics.ClasswiseKS()) == np.inf
    # A contradiction is infinite whatever its weight.
    assert error([1, 1], [0.0, 1.0], caltest.statistics.ClasswiseKS(), sample_weight=[0.25, 0.25]) == np.inf


# Published values: `metrics` and `top1` of ../shared/data/goldens.json, 12 significant digits. They were read after
# every row, where the package reads at the ends of tied blocks.

STANDARDISED = {
    "KS": (49.0699549239, 27.740751907, 2.5000988327, 37.0877867085),
    "Kuiper": (49.266427148, 27.7870501837, 4.49554383216, 37.0877867085),
}
TOP1_STANDARDISED = {
    "top1_cifar10_resnet50": {"KS": 14.6038314838, "Kuiper": 14.6457986256},
    "top1_imagenet_resnet152": {"KS": 37.7011773584, "Kuiper": 37.760600701},
}


def check_standardised(name, right, confidence, golden):
    order = np.argsort(confidence, kind="stable")
    event, happened = np.asarray(confidence, dtype=float)[order], right[order]
    deviation = np.sqrt((event * (1 - event)).sum())
    assert read_plainly(name, plain_path(happened, event, tied=False)) / deviation == pytest.approx(golden, rel=1e-9)
    result = caltest.calibration_test(right, confidence, statistic=BOTH[name], method="asymptotic")
    at_block_ends = read_plainly(name, plain_path(happened, event)) / deviation
    standardised = result.statistic / result.null.scale
    assert standardised == pytest.approx(at_block_ends, rel=1e-9)
    assert standardised == pytest.approx(golden, rel=3e-6)  # as much as cutting ties changes here
    tied = len(np.unique(event)) < len(event)
    if not tied:
        assert standardised == pytest.approx(golden, rel=1e-9)


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_standardised_statistics_of_networks(shared_data, column):
    y_true, y_prob = network(shared_data, column)
    for name in BOTH:
        check_standardised(name, y_prob.argmax(axis=1) == y_true, y_prob.max(axis=1), STANDARDISED[name][column])


@pytest.mark.parametrize("data_set", TOP1_STANDARDISED)
def test_standardised_statistics_of_top1(shared_data, data_set):
    label, score = read(shared_data / f"{data_set}.npz", "labels", "scores")
    for name in BOTH:
        check_standardised(name, label == 1, score, TOP1_STANDARDISED[data_set][name])


def test_every_lens_of_gupta_on_bundled_predictions():
    """Class, r-th top and within-top-r: the probability and the event of each, straight from the definitions."""
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    y_prob = y_prob.astype(float)
    ranked = np.argsort(-y_prob, axis=1, kind="stable")
    top = np.take_along_axis(y_prob, ranked, axis=1)
    looks = {
        caltest.ClassWise(3): (y_prob[:, 3], y_true == 3),
        caltest.TopRank(2): (top[:, 1], y_true == ranked[:, 1]),
        caltest.WithinTop(3): (top[:, :3].sum(axis=1), (y_true[:, None] == ranked[:, :3]).any(axis=1)),
    }
    for lens, (event, happened) in looks.items():
        order = np.argsort(event, kind="stable")
        path = plain_path(happened[order], event[order])
        for name, statistic in BOTH.items():
            value = error(y_true, y_prob, statistic, lens=lens)
            assert value == pytest.approx(read_plainly(name, path) / len(y_true), abs=1e-9), (lens, name)


# The asymptotic test.


def calibrated(n, seed=0, digits=None):
    """A two-outcome problem; rounded predictions are tied."""
    rng = np.random.default_rng(seed)
    event = rng.beta(0.8, 0.8, n)
    event = event if digits is None else event.round(digits)
    return rng.random(n) < event, event


@pytest.mark.parametrize("name", BOTH)
def test_asymptotic_result(name):
    y_true, event = calibrated(500)
    result = caltest.calibration_test(y_true, event, statistic=BOTH[name], method="asymptotic")
    scale = np.sqrt((event * (1 - event)).sum()) / 500
    assert result.null.scale == pytest.approx(scale, rel=1e-12)
    assert result.null.limit is LIMIT[name]
    assert result.statistic == error(y_true, event, BOTH[name])
    assert result.pvalue == pytest.approx(PVALUE[name](result.statistic / scale), rel=1e-12)
    assert (result.method, result.n_resamples, result.null_distribution) == ("asymptotic", 0, None)
    report = " ".join(str(result).split())
    assert "predictions fixed" in report
    assert f"Brownian limit, standardised statistic {result.statistic / scale:.6g}" in report
    # A known calibration function centres the path and sets its variance.
    squared = caltest.Consistency(
        calibration_function=lambda prob: np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])
    )
    other = caltest.calibration_test(y_true, event, statistic=BOTH[name], method="asymptotic", resampling=squared)
    assert other.null.scale == pytest.approx(np.sqrt((event**2 * (1 - event**2)).sum()) / 500, rel=1e-12)


def test_classwise_ks_of_two_outcomes_is_that_of_the_event_and_its_complement():
    for y_true, event in (calibrated(500), calibrated(500, digits=2)):
        both = [error(y, p, caltest.KS()) * 500 for y, p in ((y_true, event), (~y_true, 1 - event))]
        expected = max(both) / np.sqrt((event * (1 - event)).sum())
        assert error(y_true, event, caltest.statistics.ClasswiseKS()) == pytest.approx(expected, rel=1e-12)
        assert error(~y_true, 1 - event, caltest.statistics.ClasswiseKS()) == pytest.approx(expected, rel=1e-12)


def test_classwise_ks_of_two_outcomes_has_a_limit():
    for problem, scale in ((calibrated(500), 1), (calibrated(500, digits=2), 1), (([0, 1, 1], [0.0, 1.0, 1.0]), 0)):
        result = caltest.calibration_test(*problem, statistic=caltest.statistics.ClasswiseKS(), method="asymptotic")
        assert result.null.limit is EITHER_END
        assert result.null.scale == scale
        assert result.pvalue == pytest.approx(BrownianDistribution(EITHER_END, 1.0).sf(result.statistic), rel=1e-12)
    y_true, event = calibrated(10_000)
    drawn = caltest.calibration_test(
        y_true, event, n_resamples=2999, rng=1, statistic=caltest.statistics.ClasswiseKS()
    ).null
    step = 1 / np.sqrt((event * (1 - event)).sum())
    for quantile in (0.5, 0.9, 0.95):
        x = drawn.quantile(quantile)
        slack = 4 * np.sqrt(quantile * (1 - quantile) / 2999)
        limit = BrownianDistribution(EITHER_END, 1.0)
        assert limit.sf(x + step) - slack <= drawn.sf(x) <= limit.sf(x) + slack, quantile


def test_classwise_ks_of_many_classes_has_no_limit():
    with pytest.raises(ValueError, match='method="asymptotic" needs a statistic whose limit is known'):
        caltest.calibration_test(
            [0, 1], np.full((2, 3), 1 / 3), statistic=caltest.statistics.ClasswiseKS(), method="asymptotic"
        )


@pytest.mark.parametrize("name", BOTH)
def test_asymptotic_pvalues_are_never_zero(name):
    rng = np.random.default_rng(0)
    event = rng.uniform(0.4, 0.6, 10_000)
    result = caltest.calibration_test(np.ones(10_000, bool), event, statistic=BOTH[name], method="asymptotic")
    assert 0 < result.pvalue < 1e-300
    expected = LOG_PVALUE[name](result.statistic / result.null.scale) / math.log(10)
    assert f"log10 p {expected:.4g}" in " ".join(str(result).split())


@pytest.mark.parametrize("name", BOTH)
def test_asymptotic_certainties(name):
    options = {"statistic": BOTH[name], "method": "asymptotic"}
    fulfilled = caltest.calibration_test([0, 1, 1], [0.0, 1.0, 1.0], **options)
    assert (fulfilled.statistic, fulfilled.pvalue) == (0, 1)
    contradicted = caltest.calibration_test([0, 1, 0], [0.0, 1.0, 1.0], **options)
    assert 0 < contradicted.pvalue < 1e-300
    assert contradicted.impossible_samples.tolist() == [2]


@pytest.mark.parametrize("name", BOTH)
def test_asymptotic_is_near_the_resampled(name):
    """At n = 10,000 the exact tail lies between those of x and of x + 1 / V^(1/2).

    The path moves in steps, and falls short by 0.2 / V^(1/2) (KS) or 0.4 / V^(1/2) (Kuiper) on average.
    """
    y_true, event = calibrated(10_000)
    result = caltest.calibration_test(y_true, event, n_resamples=9999, rng=1, statistic=BOTH[name])
    step = 1 / np.sqrt((event * (1 - event)).sum())
    for quantile in (0.5, 0.9, 0.99):
        x = result.null.quantile(quantile)
        exact = result.null.sf(x)
        standardised = 10_000 * x * step
        slack = 4 * np.sqrt(exact * (1 - exact) / 9999)
        assert PVALUE[name](standardised + step) - slack <= exact <= PVALUE[name](standardised) + slack, quantile


def test_asymptotic_is_conservative_where_few_predictions_are_distinct():
    """Read at three places only, the path strays less than a Brownian motion."""
    rng = np.random.default_rng(3)
    event = rng.choice([0.2, 0.5, 0.7], 10_000)
    sample = make_sample(np.zeros(10_000, int), event)
    for name, statistic in BOTH.items():
        null = null_values(statistic, sample, caltest.Consistency().draws(2000, 0))
        scale = np.sqrt((event * (1 - event)).sum()) / 10_000
        rejected = (PVALUE[name](null / scale) <= 0.05).sum()
        assert rejected <= binom.ppf(1e-3, 2000, 0.05)  # fewer than a level of 0.05 would show


# Level: predictions with ties, n = 200.


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([500, 2000]))
@pytest.mark.parametrize(
    "statistic",
    mostly_nightly(
        [
            caltest.KS(),
            caltest.statistics.Kuiper(),
            caltest.statistics.IsotonicError(),
            caltest.statistics.IsotonicError("log"),
        ]
    ),
    ids=str,
)
def test_level(statistic, n_sets):
    pvalues = np.array(
        [
            caltest.calibration_test(
                *calibrated(200, seed, digits=2), statistic=statistic, n_resamples=199, rng=seed
            ).pvalue
            for seed in range(n_sets)
        ]
    )
    assert pvalues.min() >= 1 / 200
    for alpha in (0.01, 0.05, 0.1):
        assert (pvalues <= alpha).sum() <= binom.ppf(1 - 1e-4, n_sets, alpha)
