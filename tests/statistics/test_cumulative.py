"""The cumulative residual: KS and Kuiper against plain NumPy, against published values, and their Brownian limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

import caltest
from caltest.predictions._sample import make_sample
from caltest.resampling import _brownian as brownian
from caltest.resampling._brownian import ExcursionLaw, RangeLaw

CONFIDENCE = caltest.Confidence()
NETWORKS = ["cifar10_vgg19_bn", "cifar10_densenet121", "cifar10_googlenet", "cifar10_resnet_orig"]
BOTH = {"KS": caltest.KS(), "Kuiper": caltest.Kuiper()}
PVALUE = {"KS": brownian.ks_pvalue, "Kuiper": brownian.kuiper_pvalue}
LOG_PVALUE = {"KS": brownian.ks_log_pvalue, "Kuiper": brownian.kuiper_log_pvalue}
LAW = {"KS": ExcursionLaw, "Kuiper": RangeLaw}


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


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 128, 200, 1023, 1024, 1025, 3000])
def test_equals_plain_numpy(kind, n, name):
    rng = np.random.default_rng(n)
    event = EVENTS[kind](n, rng)
    sample = make_sample(np.zeros(n, dtype=int), event)
    drawn = rng.random((8, n)) < sample.event
    runs = np.arange(n) < rng.integers(n + 1, size=(4, 1))  # events first, or last: the largest excursions
    outcomes = np.concatenate([drawn, rng.random((4, n)) < 0.5, runs, ~runs, np.zeros((1, n)), np.ones((1, n))])
    value = BOTH[name].evaluate(sample, outcomes.astype(np.uint8))
    expected = read_plainly(name, plain_path(outcomes, sample.event)) / n
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_kuiper_by_hand():
    # The path +1/4 +1/4 | -3/4 -3/4, read at 1/2 and -1.
    assert caltest.calibration_error([1, 0, 0, 0], [0.25, 0.25, 0.75, 0.75], statistic=caltest.Kuiper()) == 1.5 / 4
    # It only falls: the start at 0 counts.
    assert caltest.calibration_error([0, 0], [0.25, 0.75], statistic=caltest.Kuiper()) == 0.5
    # It only rises.
    assert caltest.calibration_error([1, 1], [0.25, 0.75], statistic=caltest.Kuiper()) == 0.5
    # Within a tied block it would reach 1/2.
    assert caltest.calibration_error([1, 0], [0.5, 0.5], statistic=caltest.Kuiper()) == 0
    # Weights 3 and 1: +9/4, -3/4, over 4.
    options = {"statistic": caltest.Kuiper(), "sample_weight": [3.0, 1.0]}
    assert caltest.calibration_error([1, 0], [0.25, 0.75], **options) == 2.25 / 4


rows = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 3)), min_size=1, max_size=20).filter(
    lambda rows: any(weight for _, _, weight in rows)
)


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
        for statistic in (caltest.Kuiper(), caltest.KS())
    )
    assert value == pytest.approx(max(intervals), abs=1e-12)
    assert ks - 1e-12 <= value <= 2 * ks + 1e-12


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


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_standardised_statistics_of_networks(shared_data, column, name):
    with np.load(shared_data / f"{NETWORKS[column]}.npz") as data:
        y_true, y_prob = data["labels"], data["probs"]
    check_standardised(name, y_prob.argmax(axis=1) == y_true, y_prob.max(axis=1), STANDARDISED[name][column])


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("data_set", TOP1_STANDARDISED)
def test_standardised_statistics_of_top1(shared_data, data_set, name):
    with np.load(shared_data / f"{data_set}.npz") as data:
        check_standardised(name, data["labels"] == 1, data["scores"], TOP1_STANDARDISED[data_set][name])


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
            value = caltest.calibration_error(y_true, y_prob, lens=lens, statistic=statistic)
            assert value == pytest.approx(read_plainly(name, path) / len(y_true), abs=1e-9)


# The Brownian laws: fixtures of ../shared/prior-art.md, section 3.7.


@pytest.mark.parametrize(
    ("name", "x", "pvalue", "digits"),
    [
        ("KS", 1, 0.6292225702, 1e-9),
        ("KS", 2, 0.0910005238, 1e-8),
        ("KS", 3, 0.0053995921, 1e-7),
        ("KS", 8, 2.488e-15, 2e-4),
        ("KS", 10, 3.0e-23, 2e-2),
        ("Kuiper", 1, 0.9366354121, 1e-9),
        ("Kuiper", 2, 0.18149433939, 1e-10),  # printed there as 0.1814943339, without one of its digits
        ("Kuiper", 3, 0.0107991685, 1e-8),
        ("Kuiper", 8, 4.977e-15, 2e-4),
    ],
)
def test_fixtures(name, x, pvalue, digits):
    assert PVALUE[name](x) == pytest.approx(pvalue, rel=digits)
    assert LOG_PVALUE[name](x) == pytest.approx(math.log(pvalue), abs=2 * digits)


def by_tail_series(name, x):
    """Many terms, as plain sums of normal tails."""
    if name == "KS":
        return 4 * sum((-1) ** k * norm.sf((2 * k + 1) * x) for k in range(100))
    return 8 * sum((-1) ** (k - 1) * k * norm.sf(k * x) for k in range(1, 200))


@pytest.mark.parametrize("name", BOTH)
def test_both_series_are_one_law(name):
    x = np.linspace(0.3, 6, 200)
    pvalues = PVALUE[name](x)
    np.testing.assert_allclose(pvalues, [by_tail_series(name, value) for value in x], rtol=1e-11)
    np.testing.assert_allclose(np.log(pvalues), LOG_PVALUE[name](x), rtol=1e-11, atol=1e-15)
    assert np.all(np.diff(pvalues) <= 0)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("x", [9.0, 35.0, 40.0, 1e3, 1e8])
def test_far_tails_keep_their_digits(name, x):
    """The first term is all there is."""
    first = math.log(4 if name == "KS" else 8) + norm.logsf(x)
    assert LOG_PVALUE[name](x) == pytest.approx(first, rel=1e-14)


@pytest.mark.parametrize("name", BOTH)
def test_ends(name):
    assert PVALUE[name](0) == 1
    assert PVALUE[name](1e-200) == 1
    assert LOG_PVALUE[name](np.inf) == -np.inf
    assert isinstance(PVALUE[name](2), float)
    assert PVALUE[name]([[1, 2, 3]]).shape == (1, 3)


@pytest.mark.parametrize("function", [*PVALUE.values(), *LOG_PVALUE.values()])
@pytest.mark.parametrize("wrong", [-0.5, np.nan])
def test_what_is_no_statistic(function, wrong):
    for statistic in (wrong, [1.0, wrong]):
        with pytest.raises(ValueError, match=f"`statistic` must not be negative or nan, got {wrong}"):
            function(statistic)


@pytest.mark.parametrize("law", [ExcursionLaw, RangeLaw])
def test_moments_and_quantiles(law):
    standard, scaled = law(1.0), law(0.25)
    mean = quad(standard.sf, 0, 12, points=[1.5])[0]
    square = quad(lambda x: 2 * x * standard.sf(x), 0, 12, points=[1.5])[0]
    assert standard.mean == pytest.approx(mean, rel=1e-10)
    assert standard.std == pytest.approx(math.sqrt(square - mean**2), rel=1e-10)
    assert (scaled.mean, scaled.std) == (standard.mean / 4, standard.std / 4)
    for q in (0.001, 0.05, 0.5, 0.95, 0.9999):
        assert scaled.cdf(scaled.quantile(q)) == pytest.approx(q, abs=1e-8)
        assert scaled.sf(scaled.quantile(q)) == pytest.approx(1 - q, rel=1e-8)


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
    assert isinstance(result.null, LAW[name])
    assert result.statistic == caltest.calibration_error(y_true, event, statistic=BOTH[name])
    assert result.pvalue == pytest.approx(PVALUE[name](result.statistic / scale), rel=1e-12)
    assert (result.method, result.n_resamples, result.null_distribution) == ("asymptotic", 0, None)
    report = " ".join(str(result).split())
    assert "limit of the law as n grows, predictions fixed" in report
    assert "asymptotic: Brownian limit, standardised statistic" in report
    assert f"{result.statistic / scale:.6g}" in report
    # A known calibration function centres the path and sets its variance.
    squared = caltest.Consistency(
        calibration_function=lambda prob: np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])
    )
    other = caltest.calibration_test(y_true, event, statistic=BOTH[name], method="asymptotic", resampling=squared)
    assert other.null.scale == pytest.approx(np.sqrt((event**2 * (1 - event**2)).sum()) / 500, rel=1e-12)


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
    assert contradicted.impossible_rows.tolist() == [2]


@pytest.mark.parametrize(
    ("statistic", "scheme"),
    [(caltest.ECE(), None), (None, None), (caltest.KS(), caltest.Consistency(resample_predictions=True))],
)
def test_asymptotic_is_refused_where_no_limit_is_known(statistic, scheme):
    y_true, event = calibrated(50)
    with pytest.raises(ValueError, match=r'method="asymptotic" needs KS or Kuiper, predictions fixed; got'):
        caltest.calibration_test(y_true, event, statistic=statistic, resampling=scheme, method="asymptotic")


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.99])
def test_asymptotic_is_near_the_resampled(name, quantile):
    """At n = 10,000 the exact tail lies between those of x and of x + 1 / V^(1/2).

    The path moves in steps, and falls short by 0.2 / V^(1/2) (KS) or 0.4 / V^(1/2) (Kuiper) on average.
    """
    y_true, event = calibrated(10_000)
    draws = {"n_resamples": 9999, "rng": 1, "statistic": BOTH[name]}
    result = caltest.calibration_test(y_true, event, **draws)
    x = result.null.quantile(quantile)
    exact, step = result.null.sf(x), 1 / np.sqrt((event * (1 - event)).sum())
    standardised = 10_000 * x * step
    error = 4 * np.sqrt(exact * (1 - exact) / 9999)
    assert PVALUE[name](standardised + step) - error <= exact <= PVALUE[name](standardised) + error


def test_asymptotic_is_conservative_where_few_predictions_are_distinct():
    """Read at three places only, the path strays less than a Brownian motion."""
    rng = np.random.default_rng(3)
    event = rng.choice([0.2, 0.5, 0.7], 10_000)
    sample = make_sample(np.zeros(10_000, int), event)
    for name, statistic in BOTH.items():
        null = statistic.null(sample, caltest.Consistency().draws(2000, 0))
        scale = np.sqrt((event * (1 - event)).sum()) / 10_000
        rejected = (PVALUE[name](null / scale) <= 0.05).sum()
        assert rejected <= binom.ppf(1e-3, 2000, 0.05)  # fewer than a level of 0.05 would show


# Level: predictions with ties, n = 200.


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic", [caltest.KS(), caltest.Kuiper(), caltest.IsotonicError(), caltest.IsotonicError("log")], ids=str
)
def test_level(statistic):
    pvalues = np.array(
        [
            caltest.calibration_test(
                *calibrated(200, seed, digits=2), statistic=statistic, n_resamples=199, rng=seed
            ).pvalue
            for seed in range(2000)
        ]
    )
    assert pvalues.min() >= 1 / 200
    for alpha in (0.01, 0.05, 0.1):
        assert (pvalues <= alpha).sum() <= binom.ppf(1 - 1e-4, 2000, alpha)
