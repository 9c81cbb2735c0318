"""Exact null distributions against enumeration, atom-by-atom convolution and a million draws."""

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from caltest import ECE, MCE, EqualWidth, calibration_test
from caltest.predictions._sample import make_sample
from caltest.resampling.distributions import _exact
from caltest.resampling.distributions._base import CellDistribution
from caltest.resampling.distributions._exact import MaximumDistribution, SumDistribution, convolve, end_of_grid
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.results._decision import equate_pvalue
from tests.reference import naive
from tests.reference.examples import distances

FOUR_SE = 4.0


def enumerate_all(statistic, p):
    """All labels of a two-outcome problem with their probabilities and the naive statistic of each."""
    prob = np.column_stack([1 - p, p])
    labels = [np.array(y) for y in itertools.product([0, 1], repeat=len(p))]
    masses = [math.prod(np.where(y == 1, p, 1 - p)) for y in labels]
    return np.array([naive.evaluate(statistic, prob, y) for y in labels]), np.array(masses)


def tail(values, masses, x):
    return masses[values >= x * (1 - 1e-12)].sum()


def sharp(n, seed=0):
    """Predictions near 0 and 1, as sharp models make them."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-12 * rng.normal(size=n)))
    return p, rng.random(n) < p


def even(n):
    """Fair coins, half of them heads."""
    return np.full(n, 0.5), np.arange(n) % 2 == 0


def power(predicted, observed):
    return np.abs(observed - predicted).sum(axis=-1) ** 1.5


def one_sided(predicted, observed):
    return np.maximum(predicted - observed, 0)[..., 1]


def chi_squared(predicted, observed):
    return (np.square(observed - predicted) / predicted).sum(axis=-1)


# P-values, means and quantiles against enumeration.


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("kind", [ECE, MCE])
def test_equals_enumeration(kind):
    close = {"rel": 1e-9, "abs": 0}
    for distance, n in itertools.product([*distances(), power], [1, 2, 7, 9]):
        case = f"{distance.__name__}, n = {n}"
        p = np.random.default_rng(n).random(n)
        statistic = kind(EqualWidth(4), distance)
        values, masses = enumerate_all(statistic, p)
        for seed in range(3):
            y = np.random.default_rng(seed).random(n) < 0.5
            result = calibration_test(y, p, statistic=statistic, method="exact")
            assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), **close), (case, seed)
        mean = values @ masses
        assert result.noise_floor == pytest.approx(mean, **close), case
        assert result.null.std == pytest.approx(math.sqrt(masses @ (values - mean) ** 2), rel=1e-6, abs=1e-12), case
        for x in np.quantile(values, [0.1, 0.5, 0.9]):
            assert result.null.sf(x) == pytest.approx(tail(values, masses, x), **close), (case, x)


def test_one_sided_distance():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.6, 11)
    statistic = ECE(EqualWidth(3), one_sided)
    values, masses = enumerate_all(statistic, p)
    result = calibration_test(rng.random(11) < p, p, statistic=statistic, method="exact")
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)


@pytest.mark.slow(few_draws=True)
@given(st.lists(st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.9]), min_size=1, max_size=9), st.data())
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_ties_with_the_observed_value_count(p, data):
    """Rounded predictions: many sets of labels give exactly the observed value."""
    y = np.array(data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p))))
    statistic = ECE(EqualWidth(3))
    values, masses = enumerate_all(statistic, np.array(p))
    result = calibration_test(y, p, statistic=statistic, method="exact")
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)


@pytest.mark.slow(few_draws=True)
def test_level_of_the_exact_test():
    """P(p <= alpha) <= alpha, computed by enumeration, not simulated."""
    p = np.array([0.1, 0.35, 0.4, 0.55, 0.7, 0.8, 0.93])
    labels = np.array(list(itertools.product([0, 1], repeat=len(p))))
    masses = np.where(labels == 1, p, 1 - p).prod(axis=1)
    pvalues = [calibration_test(y, p, statistic=ECE(EqualWidth(3)), method="exact").pvalue for y in labels]
    for alpha in (0.01, 0.05, 0.1, 0.5):
        assert masses[np.array(pvalues) <= alpha].sum() <= alpha + 1e-12, alpha


def test_calibration_function_and_region():
    rng = np.random.default_rng(0)
    p = rng.random(9)
    y = rng.random(9) < p**2

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    statistic = ECE(EqualWidth(2))
    null = caltest.Consistency(calibration_function=squared)
    result = calibration_test(y, p, statistic=statistic, resampling=null, method="exact")
    sample = null.under_null(make_sample(y, p))
    labels = np.array(list(itertools.product([0, 1], repeat=9)), dtype=np.uint8)
    masses = np.where(labels == 1, sample.null_prob[:, 1], sample.null_prob[:, 0]).prod(axis=1)
    values = statistic.evaluate(sample, labels)
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)
    inside = calibration_test(y, p, statistic=statistic, region=lambda q: q[:, 1] > 0.5, method="exact")
    alone = calibration_test(y[p > 0.5], p[p > 0.5], statistic=statistic, method="exact")
    assert inside.pvalue == pytest.approx(alone.pvalue, rel=1e-12)


# Larger problems: atoms, grids and lattices.


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 100, 200, 500, 700])
def test_sharp_predictions_whose_observed_value_is_an_atom(n):
    """Against the plain convolution of the atoms of the 15 cells, without any grid."""
    p, y = sharp(n)
    for distance in (caltest.predictions.total_variation, caltest.predictions.squared_euclidean):
        result = calibration_test(y, p, statistic=ECE(EqualWidth(15), distance), method="exact")
        half = [CellDistribution(np.zeros(1), np.ones(1)), CellDistribution(np.zeros(1), np.ones(1))]
        for i, cell in enumerate(sorted(result.null.cells, key=lambda cell: len(cell.values))):
            half[i % 2] = half[i % 2].plus(cell).heavier_than(1e-11 if n > 200 else 1e-14)
        assert 2 - half[0].mass.sum() - half[1].mass.sum() < 1e-4  # what the oracle leaves out
        order = np.argsort(half[1].values)
        above = np.append(np.cumsum(half[1].mass[order][::-1])[::-1], 0.0)
        floor = result.statistic * (1 - 1e-12)
        expected = half[0].mass @ above[np.searchsorted(half[1].values[order], floor - half[0].values)]
        assert result.pvalue == pytest.approx(expected, rel=1e-3 if n > 200 else 1e-6, abs=0), distance.__name__


@pytest.mark.slow(few_draws=True)
def test_grid_counts_the_observed_atom_in_full(monkeypatch):
    """Where atoms can be enumerated, the grid agrees with them to within the error it states, or the target of 1e-3."""
    statistic = ECE(EqualWidth(6))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 2, 150)
        y = rng.random(150) < p
        atoms = calibration_test(y, p, statistic=statistic, method="exact")
        with monkeypatch.context() as patched:
            patched.setattr(_exact, "_MOST_ATOMS", 10)
            grid = calibration_test(y, p, statistic=statistic, method="exact")
        assert "atom by atom" in atoms.origin, seed
        assert "grid" in grid.origin, seed
        error = max(grid.numerical_error, 1e-3 * atoms.pvalue)
        assert grid.pvalue == pytest.approx(atoms.pvalue, rel=0, abs=error), seed


@pytest.mark.slow(few_draws=True)
def test_the_stated_error_of_a_grid_knows_of_atoms_within_a_step(monkeypatch):
    """Of few observations each atom is heavy: grids that agree with each other may all count one of them by half."""
    wrong = {}
    for n, n_cells, seed in itertools.product((8, 15, 25), (2, 3), range(5)):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 2, n)
        y, statistic = rng.random(n) < p, ECE(EqualWidth(n_cells))
        atoms = calibration_test(y, p, statistic=statistic, method="exact")
        with monkeypatch.context() as patched:
            patched.setattr(_exact, "_MOST_ATOMS", 0)
            grid = calibration_test(y, p, statistic=statistic, method="exact")
        if abs(grid.pvalue - atoms.pvalue) > grid.numerical_error:
            wrong[n, n_cells, seed] = grid.pvalue, atoms.pvalue, grid.numerical_error
    assert wrong == {}


@pytest.mark.slow(few_draws=True)
def test_giving_up_on_atoms_early_changes_no_answer(monkeypatch):
    for n, spread in itertools.product([200, 1000, 3000], [0.1, 1.0]):
        rng = np.random.default_rng(n)
        p = rng.beta(spread, spread, n)
        y = rng.random(n) < p
        early = calibration_test(y, p, statistic=ECE(EqualWidth(15)), method="exact")
        with monkeypatch.context() as patched:
            patched.setattr(_exact, "_HOPELESS", math.inf)
            late = calibration_test(y, p, statistic=ECE(EqualWidth(15)), method="exact")
        assert (early.pvalue, early.origin) == (late.pvalue, late.origin), (n, spread)
        assert early.numerical_error == late.numerical_error, (n, spread)


def test_lattice_of_the_predictions_is_used():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 3000) / 20
    result = calibration_test(rng.random(3000) < p, p, statistic=ECE(EqualWidth(10)))
    assert "lattice" in result.origin


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("make", [pytest.param(sharp, marks=pytest.mark.slow), even])
def test_agrees_with_a_million_draws(make):
    """Draws of the cell counts from their exact distributions, statistic by the definition; 10^6 of them."""
    n_draws = 10**6
    for n in (60, 700, 5000):
        p, y = make(n)
        null = calibration_test(y, p, statistic=ECE(EqualWidth(15)), method="exact").null
        rng = np.random.default_rng(1)
        drawn = np.zeros(n_draws)
        cells = np.minimum((15 * p).astype(int), 14)
        for cell in np.unique(cells):
            q = p[cells == cell]
            count = PoissonBinomial.of(q)
            drawn += np.abs(rng.choice(count.counts, n_draws, p=count.pmf) - q.sum()) / n
        assert abs(null.mean - drawn.mean()) < FOUR_SE * drawn.std() / math.sqrt(n_draws), n
        for level in (0.5, 0.1, 0.01, 0.001):
            x = np.quantile(drawn, 1 - level)
            share = np.mean(drawn >= x * (1 - 1e-12))
            error = FOUR_SE * math.sqrt(share * (1 - share) / n_draws)
            assert abs(null.sf(x) - share) < error + 2e-3 * share, (n, level, null.sf(x), share)


def test_simulated_labels_have_the_exact_distribution():
    """The compiled draws against the exact distribution: mean, standard deviation and five tail probabilities."""
    p, y = sharp(2000, seed=3)
    statistic, n_resamples = ECE(EqualWidth(15)), 20_000
    exact = calibration_test(y, p, statistic=statistic, method="exact").null
    options = {"method": "monte-carlo", "n_resamples": n_resamples, "rng": 0}
    drawn = calibration_test(y, p, statistic=statistic, **options).null_distribution
    assert abs(drawn.mean() - exact.mean) < FOUR_SE * exact.std / math.sqrt(n_resamples)
    fourth = np.mean((drawn - drawn.mean()) ** 4)
    assert abs(drawn.var() - exact.std**2) < FOUR_SE * math.sqrt((fourth - exact.std**4) / n_resamples)
    for q in (0.05, 0.25, 0.5, 0.9, 0.99):
        x = np.quantile(drawn, q)
        share = np.mean(drawn >= x * (1 - 1e-12))
        assert abs(share - exact.sf(x)) < FOUR_SE * math.sqrt(share * (1 - share) / n_resamples) + 2e-3 * share, q


def test_distances_that_are_infinite_in_the_corner():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.6, 400)
    y = rng.random(400) < p
    for n_cells in (10, 30, 60):
        statistic = ECE(EqualWidth(n_cells), chi_squared)
        exact = calibration_test(y, p, statistic=statistic, method="exact").pvalue
        drawn = calibration_test(y, p, statistic=statistic, method="monte-carlo", n_resamples=9999, rng=0).pvalue
        assert abs(exact - drawn) < FOUR_SE * 0.5 / math.sqrt(9999), n_cells


def bounds(null, x):
    """Rigorous bounds on P(T >= x), up to rounding: all atoms moved down, and up, to a grid."""
    size, above = 2**18, []
    step = end_of_grid(null.cells) / size
    for moved in (np.floor, np.ceil):
        pmf = convolve([(moved(cell.values / step).astype(np.int64), cell.mass) for cell in null.cells], size)
        above.append(pmf[min(math.ceil(x * (1 - 1e-12) / step), size) :].sum())
    return above


@pytest.mark.slow
def test_a_cell_that_carries_most_of_the_variance_fits_the_grid():
    """Squared distances: one cell near 1/2, fourteen cells of rare events; the distribution is far from normal."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.47, 0.5, 2000), rng.uniform(0, 0.007, 20_000)])
    partition = caltest.Edges([*np.linspace(0.0005, 0.0065, 13), 0.1])
    statistic = ECE(partition, caltest.predictions.squared_euclidean)
    null = calibration_test(rng.random(len(p)) < p, p, statistic=statistic, method="exact").null
    n_draws = 400_000
    drawn = np.zeros(n_draws)
    cells = partition.fit(np.column_stack([1 - p, p]))(np.column_stack([1 - p, p]))
    for cell in np.unique(cells):
        q = p[cells == cell]
        count = PoissonBinomial.of(q)
        deviation = rng.choice(count.counts, n_draws, p=count.pmf) / len(q) - q.mean()
        drawn += 2 * deviation**2 * len(q) / len(p)
    for level in (0.1, 0.01, 0.001, 0.0001):
        x = np.quantile(drawn, 1 - level)
        share = np.mean(drawn >= x)
        assert abs(null.sf(x) - share) < FOUR_SE * math.sqrt(share / n_draws) + 1e-3 * share, level
        low, high = bounds(null, x)
        assert low <= null.sf(x) <= high, level


# Far tails: Chernoff's upper bound below 1e-12. The factors are 100 where it is claimed to be close.


def binomial_tail(n, k):
    """P(K >= k) of n fair coins, in rational arithmetic."""
    return Fraction(sum(math.comb(n, j) for j in range(k, n + 1)), 2**n)


def test_bounds_of_far_tails_are_close():
    """One cell of 1,000 fair coins: P(|K - 500| >= d) = 2 P(K >= 500 + d), down to 1e-298."""
    for kind in (ECE, MCE):
        for excess in (40, 90, 105):  # 1.1e-2 to 3e-11, computed
            result = calibration_test(np.arange(1000) < 500 + excess, np.full(1000, 0.5), statistic=kind(EqualWidth(1)))
            expected = float(2 * binomial_tail(1000, 500 + excess))
            assert result.pvalue == pytest.approx(expected, rel=1e-3), (excess, kind)
            assert result.method == "exact"
        for excess in (130, 200, 400, 499):
            result = calibration_test(np.arange(1000) < 500 + excess, np.full(1000, 0.5), statistic=kind(EqualWidth(1)))
            expected = float(2 * binomial_tail(1000, 500 + excess))
            assert expected < result.pvalue < 100 * expected, (excess, kind)
            assert (result.method, result.numerical_error) == ("upper-bound", result.pvalue)
            assert f"({equate_pvalue(result.pvalue, bound=True)})." in result.conclusion
            assert result.origin.startswith("upper bound")


def convolved(p):
    """Positive sums, which keep their digits in the far tails."""
    return reduce(np.convolve, [np.array([1 - x, x]) for x in p], np.ones(1))


def test_bound_of_a_sum_over_cells():
    """Two cells, against the convolution of their distributions, atom by atom."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.1, 0.4, 300), rng.uniform(0.6, 0.9, 300)])
    total = np.add.outer(*(np.abs(np.arange(301) - q.sum()) / 600 for q in (p[:300], p[300:])))
    mass = np.multiply.outer(convolved(p[:300]), convolved(p[300:]))
    for shift in (45, 60, 105):
        events = round(p[:300].sum()) + shift, round(p[300:].sum()) - shift
        y = np.concatenate([np.arange(300) < k for k in events])
        result = calibration_test(y, p, statistic=ECE(EqualWidth(2)), method="exact")
        expected = mass[total >= result.statistic * (1 - 1e-12)].sum()
        assert expected < 1e-12
        assert expected < result.pvalue < 100 * expected, shift
        squared = ECE(EqualWidth(2), caltest.predictions.squared_euclidean)  # whose bound is not close
        assert expected < calibration_test(y, p, statistic=squared, method="exact").pvalue <= 1e-12, shift


def test_reported_tails_bound_the_true_ones_and_never_increase():
    """All labels of small problems with rare events, on both sides of 1e-12; rational arithmetic."""
    for p in ([1e-3] * 4 + [1 / 16] * 3 + [0.75, 0.999], [1e-5, 1e-5, 1e-4, 0.2, 0.3, 0.9999, 0.99999]):
        labels = list(itertools.product([0, 1], repeat=len(p)))
        true = [
            math.prod(Fraction(q) if y else 1 - Fraction(q) for q, y in zip(p, some, strict=True)) for some in labels
        ]
        for statistic in (ECE(EqualWidth(3)), MCE(EqualWidth(3)), ECE(EqualWidth(3), one_sided)):
            sample = make_sample(labels[0], p)
            values = statistic.evaluate(sample, np.array(labels, dtype=np.uint8)[:, sample.row])
            null = statistic.exact_distribution(sample)
            distinct = np.unique(values.round(13))
            tails = [null.tail(x) for x in distinct]
            for x, tail_ in zip(distinct, tails, strict=True):
                exact = float(sum(mass for mass, value in zip(true, values, strict=True) if value >= x - 1e-12))
                error = max(1e-9, 1e-15 / exact)
                if tail_.probability > 1e-12:
                    assert tail_.probability == pytest.approx(exact, rel=error), (statistic, x)
                else:
                    assert exact * (1 - error) <= tail_.probability <= 1e-12, (statistic, x)
                    assert math.isinf(tail_.relative_error)
            assert min(tail_.probability for tail_ in tails) < 1e-12 or statistic != ECE(EqualWidth(3))
            reported = np.array([tail_.probability for tail_ in tails])
            assert (np.diff(reported) <= 1e-14).all(), statistic


def test_what_underflows_is_reported_as_a_bound():
    n = 20_000
    result = calibration_test(np.ones(n, dtype=bool), np.full(n, 0.5), statistic=ECE(EqualWidth(1)))
    assert result.method == "upper-bound"
    assert 0 < result.pvalue < 1e-290
    assert result.numerical_error == result.pvalue
    assert result.origin.startswith("upper bound")
    assert "p < 1e-300" in result.conclusion
    assert "e-308" not in str(result)
    assert result.to_dict()["pvalue"] == result.pvalue


def test_overwhelming_evidence_from_few_observations():
    """Three events of 100 at 1e-5: P(K >= 3)."""
    result = calibration_test([1] * 3 + [0] * 97, [1e-5] * 100, statistic=ECE(EqualWidth(15)))
    expected = sum(math.comb(100, k) * 1e-5**k * (1 - 1e-5) ** (100 - k) for k in range(3, 10))
    assert result.pvalue == pytest.approx(expected, rel=1e-4, abs=0)


# Bounds, quantiles, ties and ends.


@pytest.mark.slow(few_draws=True)
def test_bounds_hold_the_tail():
    p, y = sharp(80)
    null = calibration_test(y, p, statistic=ECE(EqualWidth(15)), method="exact").null
    for x in (0.01, 0.03, null.mean, null.mean + 2 * null.std):
        low, high = bounds(null, x)
        assert low - 1e-12 <= null.sf(x) <= high + 1e-12, x
        assert high - low < 0.05, x


def test_quantiles_invert_the_tail():
    p, y = sharp(3000)
    for kind in (ECE, MCE):
        null = calibration_test(y, p, statistic=kind(EqualWidth(15)), method="exact").null
        for q in (0.05, 0.5, 0.95):
            x = null.quantile(q)
            assert null.sf(x * (1 + 1e-3)) <= 1 - q + 0.01, (kind, q)
            assert null.sf(x * (1 - 1e-3)) >= 1 - q - 0.01, (kind, q)


def test_quantiles_stay_inside_the_possible_values():
    result = calibration_test([0, 1, 0, 1], [0.25, 0.25, 0.5, 1.0], statistic=ECE(EqualWidth(4)))
    assert result.method == "exact"
    low, high = result.noise_interval
    assert 0.249 < low <= high < 0.501


@pytest.mark.parametrize("kind", [ECE, MCE])
def test_deviations_of_opposite_sign_tie(kind):
    """P(|K - n / 3| >= observed) of a binomial count: both sides, though 1/3 is rounded."""
    for events, n in ((2, 6), (10_001, 30_000)):
        result = calibration_test(np.arange(n) < events, np.full(n, 1 / 3), statistic=kind(EqualWidth(5)))
        count = PoissonBinomial.of(np.full(n, 1 / 3))
        reach = abs(events - n / 3) - 1e-6
        expected = count.pmf[np.abs(count.counts - n / 3) >= reach].sum()
        assert result.pvalue == pytest.approx(expected, rel=1e-9), n


@pytest.mark.parametrize("kind", [ECE, MCE])
def test_the_smallest_possible_value_is_not_unusually_small(kind):
    """P(T <= 0) is a half and more: a lattice has mass at its end."""
    for y, p in (([0, 1], [0.5, 0.5]), ([1] + [0] * 9, [0.1] * 10)):
        result = calibration_test(y, p, statistic=kind(EqualWidth(1)))
        assert result.method == "exact", p
        assert result.notes == (), p
        assert result.null.cdf(result.statistic) >= 0.3, p


def test_by_hand():
    coin = CellDistribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert SumDistribution([coin, coin], 1.0, unit=1.0).sf(1.0) == pytest.approx(0.75)
    assert MaximumDistribution([coin, coin]).sf(1.0) == pytest.approx(0.75)
    assert MaximumDistribution([coin, coin]).mean == pytest.approx(0.75)


# Results.


def test_impossible_labels_and_values():
    result = calibration_test([1, 0, 1], [0.0, 0.5, 0.5], statistic=ECE(EqualWidth(2)))
    assert 0 < result.pvalue < 1e-300
    assert result.impossible_samples.tolist() == [0]
    certain = calibration_test([0, 1], [0.0, 1.0], statistic=ECE(EqualWidth(2)))
    assert certain.pvalue == 1.0


def test_the_result_states_how_exact_it_is():
    p, y = sharp(40)
    result = calibration_test(y, p, statistic=ECE(EqualWidth(15)))
    assert (result.method, result.n_resamples, result.null_distribution) == ("exact", 0, None)
    assert 0 < result.numerical_error <= 1e-9 * result.pvalue
    assert "computed exactly, predictions fixed" in str(result)
    assert "numerical error of p" in str(result)
    assert result.to_dict()["origin"].startswith("computed exactly")
    assert tuple(result) == (result.statistic, result.pvalue)


@pytest.mark.slow
def test_exact_is_refused_where_no_distribution_is_known():
    """More than two outcomes or resampled predictions; every other statistic is tried in test_calibration.py."""
    prob = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    resampled = caltest.Consistency(resample_predictions=True)
    for options in (
        {"statistic": caltest.KS(), "lens": caltest.Confidence()},
        {"statistic": caltest.Omnibus()},
        {"statistic": ECE()},
        {"statistic": ECE(), "lens": caltest.Confidence(), "resampling": resampled},
    ):
        with pytest.raises(ValueError, match='method="exact" needs ECE, MCE, ConfidenceECE or HosmerLemeshow behind'):
            calibration_test(np.zeros(50, dtype=int), prob, method="exact", **options)
        automatic = calibration_test(np.arange(50) % 3, prob, n_resamples=99, rng=0, **options)
        assert automatic.method == "monte-carlo", options
