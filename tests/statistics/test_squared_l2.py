"""Debiased squared errors: published values, by hand, what they are unbiased for, and their level."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from tests.reference.cases import mostly_nightly
from tests.reference.examples import draw_labels
from tests.statistics.networks import NETWORKS, network, read

TOLERANCE = 1e-9
STANDARD_ERRORS = 4
ESTIMATORS = ("unbiased", "t-cal", "kumar")
PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=50)

KUMAR = {
    "debiased_L2_top1_equalmass15": (0.0844575379753, 0.076079995789, 0.0202492077068, 0.102204425998),
    "debiased_L2_marginal_equalmass15": (0.0126008903056, 0.0099030900671, 0.00317303621697, 0.0233768220371),
}
"""Of goldens.json, one column for each network."""
KUMAR_BUNDLED = {
    "debiased_L2_top1_equalmass15": 0.0776820356524,
    "debiased_L2_marginal_equalmass15": 0.0106712961344,
}


def error(y_true, y_prob, statistic, lens=None, **options):
    return caltest.calibration_error(y_true, y_prob, statistic=statistic, lens=lens, **options)


def make_data(n, n_outcomes, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_outcomes, 0.5), size=n)
    return draw_labels(prob, rng), prob


# Published values.


def kumar(key, y_true, y_prob):
    """The clipped root; over classes each is clipped before the squares are averaged."""
    statistic = caltest.SquaredL2(caltest.EqualMass(15), "kumar")
    if "top1" in key:
        return math.sqrt(max(error(y_true, y_prob, statistic, caltest.Confidence()), 0.0))
    by_class = [error(y_true, y_prob, statistic, caltest.ClassWise(k)) for k in range(y_prob.shape[1])]
    return math.sqrt(np.maximum(by_class, 0.0).mean())


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_estimator_of_kumar(shared_data, column):
    found = {key: kumar(key, *network(shared_data, column)) for key in KUMAR}
    assert found == pytest.approx({key: values[column] for key, values in KUMAR.items()}, abs=TOLERANCE)


def test_estimators_on_bundled_predictions():
    """Kumar's, and sums over 16 cells of the confidence in plain NumPy."""
    bundled = caltest.datasets.load_cifar10_vgg16()
    assert {key: kumar(key, *bundled) for key in KUMAR_BUNDLED} == pytest.approx(KUMAR_BUNDLED, abs=TOLERANCE)
    for estimator, expected in {"t-cal": 0.00405423793815, "unbiased": 0.00405121021344}.items():
        statistic = caltest.SquaredL2(caltest.EqualWidth(16), estimator)
        assert error(*bundled, statistic, caltest.Confidence()) == pytest.approx(expected, abs=TOLERANCE)


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


# By hand.


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


def test_cells_of_one_row_count_nothing():
    y_true, y_prob = make_data(20, 2)
    for estimator in ESTIMATORS:
        alone = caltest.SquaredL2(caltest.EqualMass(20), estimator)
        assert error(y_true, y_prob, alone) == pytest.approx(0, abs=1e-15), estimator
        squared = caltest.SquaredL2(caltest.EqualMass(2), estimator)
        assert error(y_true, y_prob, squared, sample_weight=[1.0, *[0.0] * 19]) == 0, estimator


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(seed=st.integers(0, 10**6), n_outcomes=st.integers(2, 4))
def test_estimators_agree_where_they_should(seed, n_outcomes):
    """Predictions that are equal in a cell: Kumar's is the U-statistic. One cell: T-Cal's is it times (n - 1) / n."""
    y_true, y_prob = make_data(40, n_outcomes, seed)
    few = np.tile(y_prob[:4], (10, 1))

    def value_cells(prob):
        return np.unique(prob, axis=0, return_inverse=True)[1].ravel()

    unbiased, t_cal, kumar = (error(y_true, few, caltest.SquaredL2(value_cells, estimator)) for estimator in ESTIMATORS)
    assert kumar == pytest.approx(unbiased, abs=1e-12)
    assert t_cal == pytest.approx(unbiased * 9 / 10, abs=1e-12)


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)))
def test_names_of_the_classes_do_not_matter(seed, order):
    y_true, y_prob = make_data(40, 4, seed)
    for estimator in ESTIMATORS:
        squared = caltest.SquaredL2(caltest.EqualWidth(3, axes="all"), estimator)
        renamed = error(np.argsort(order)[y_true], y_prob[:, order], squared)
        assert renamed == pytest.approx(error(y_true, y_prob, squared), abs=1e-12)


# What it is unbiased for.


def assert_mean(values, expected):
    assert abs(values.mean() - expected) < STANDARD_ERRORS * values.std() / math.sqrt(len(values))


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_unbiased_over_rows_given_their_cells(n_outcomes):
    """Rows are drawn anew within 4 cells of 2, 3, 5 and 30 rows; the truth deviates, differently within each cell.

    50 data sets side by side, each with cells of its own, make one whose estimate is the mean of theirs.
    """
    rng = np.random.default_rng(1)
    count, side_by_side = np.array([2, 3, 5, 30]), 50
    pool = np.stack([np.sort(rng.dirichlet(np.ones(n_outcomes), size=6), axis=1) for _ in count])  # (cell, kind, k)
    truth = 0.6 * pool + 0.4 * np.roll(pool, 1, axis=-1)
    deviation = (truth - pool).mean(axis=1)[:, 1 if n_outcomes == 2 else 0 :]
    target = (count / count.sum()) @ np.square(deviation).sum(axis=1)
    cell = np.tile(np.repeat(np.arange(4), count), side_by_side)
    own_cell = 4 * np.repeat(np.arange(side_by_side), count.sum()) + cell
    values = {"unbiased": [], "t-cal": []}
    for _ in range(80):
        kind = rng.integers(6, size=len(cell))
        prob, y_true = pool[cell, kind], draw_labels(truth[cell, kind], rng)
        found = own_cell[np.argsort(prob[:, 1], kind="stable")] if n_outcomes == 2 else own_cell
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
    cells = cells_of(sample, partition)
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
    cells = cells_of(sample, partition)
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


@pytest.mark.slow(few_draws=True)
def test_a_result_carries_the_root_and_the_deviation_of_the_null():
    _, y_prob = make_data(200, 2)
    for seed in range(4):
        label = draw_labels(y_prob, np.random.default_rng(seed))
        result = caltest.calibration_test(label, y_prob, statistic=caltest.SquaredL2(), rng=seed)
        assert result.derived == {"root": math.sqrt(max(result.statistic, 0)), "null_std": result.null.std}
        line = f"SquaredL2(): root {result.derived['root']:.4g}, null std {result.derived['null_std']:.4g}."
        assert line in " ".join(str(result).split())
        assert line in result._repr_html_()


def test_components_carry_their_derived_numbers():
    y_true, y_prob = make_data(100, 3)
    both = caltest.Omnibus((caltest.ECE(), caltest.SquaredL2()))
    result = caltest.calibration_test(y_true, y_prob, statistic=both, n_resamples=99, rng=0)
    assert result.derived == {}
    assert [sorted(part.derived) for part in result.components] == [[], ["null_std", "root"]]
    assert "SquaredL2(): root" in str(result)


def test_bad_estimators_are_refused():
    with pytest.raises(ValueError, match=r"`estimator` must be one of 'unbiased', 't-cal', 'kumar', got 'biased'"):
        caltest.SquaredL2(estimator="biased")


# Level.

FALSE_ALARM = 1e-3
LEVELS = (0.01, 0.05, 0.1)
TWO_OUTCOMES = (
    caltest.statistics.ConvexECE(caltest.EqualWidth(15)),
    caltest.statistics.ConvexECE(caltest.EqualMass(15, cut="halfway")),
    caltest.ECE(caltest.EqualMass("sqrt")),
    caltest.statistics.MonotonicSweepECE(),
    caltest.statistics.MonotonicSweepECE("l2"),
    *(caltest.SquaredL2(caltest.EqualMass(15), estimator) for estimator in ESTIMATORS),
)
TEN_OUTCOMES = tuple(caltest.SquaredL2(estimator=estimator) for estimator in ESTIMATORS)


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


LEVEL_SETS = [60, pytest.param(300, marks=pytest.mark.nightly), pytest.param(2000, marks=pytest.mark.release)]


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_data_sets", LEVEL_SETS)
@pytest.mark.parametrize(
    ("statistics", "n_outcomes"), mostly_nightly([(TWO_OUTCOMES, 2), (TEN_OUTCOMES, 10)]), ids=["2", "10"]
)
def test_level(statistics, n_outcomes, n_data_sets):
    counts = rejections(statistics, n_outcomes, n_data_sets)
    n_cases = len(LEVELS) * (len(TWO_OUTCOMES) + len(TEN_OUTCOMES))
    limit = binom.ppf(1 - FALSE_ALARM / n_cases, n_data_sets, LEVELS)
    exceeded = {str(s): row.tolist() for s, row in zip(statistics, counts, strict=True) if np.any(row > limit)}
    assert exceeded == {}
