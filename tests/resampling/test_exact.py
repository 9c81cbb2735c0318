"""Exact null laws against enumeration, atom-by-atom convolution and a million draws."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.resampling import _exact as exact
from caltest.resampling._distributions import CellLaw, PoissonBinomial, ResampledLaw
from caltest.resampling._exact import MaximumLaw, SumLaw
from tests.reference import naive

FOUR_SE = 4.0
DISTANCES = [ct.total_variation, ct.euclidean, ct.squared_euclidean, ct.chebyshev]


def enumerate_law(statistic, p):
    """All outcomes of a two-outcome problem with their probabilities and the naive statistic of each."""
    prob = np.column_stack([1 - p, p])
    values, masses = [], []
    for y in itertools.product([0, 1], repeat=len(p)):
        values.append(naive.evaluate(statistic, prob, np.array(y)))
        masses.append(math.prod(q if happened else 1 - q for q, happened in zip(p, y, strict=True)))
    return np.array(values), np.array(masses)


def tail(values, masses, x):
    return masses[values >= x * (1 - 1e-12)].sum()


def sharp(n, seed=0):
    """Predictions near 0 and 1, as sharp models make them."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-12 * rng.normal(size=n)))
    return p, rng.random(n) < p


@pytest.mark.parametrize("n", [1, 2, 7, 11])
@pytest.mark.parametrize("statistic_type", [ct.ECE, ct.MCE])
@pytest.mark.parametrize("distance", [*DISTANCES, lambda g, r: np.abs(r - g).sum(axis=-1) ** 1.5])
def test_equals_enumeration(n, statistic_type, distance):
    rng = np.random.default_rng(n)
    p = rng.random(n)
    statistic = statistic_type(ct.EqualWidth(4), distance)
    values, masses = enumerate_law(statistic, p)
    for seed in range(3):
        y = np.random.default_rng(seed).random(n) < 0.5
        result = ct.calibration_test(y, p, statistic=statistic, method="exact")
        assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)
    assert result.noise_floor == pytest.approx(values @ masses, rel=1e-9, abs=0)
    assert result.null.std == pytest.approx(math.sqrt(masses @ (values - values @ masses) ** 2), rel=1e-6, abs=1e-12)
    for x in np.quantile(values, [0.1, 0.5, 0.9]):
        assert result.null.sf(x) == pytest.approx(tail(values, masses, x), rel=1e-9, abs=0)


@given(st.lists(st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.9]), min_size=1, max_size=9), st.data())
@settings(max_examples=30, deadline=None)
def test_ties_with_the_observed_value_count(p, data):
    """Rounded predictions: many outcomes give exactly the observed value."""
    y = np.array(data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p))))
    statistic = ct.ECE(ct.EqualWidth(3))
    values, masses = enumerate_law(statistic, np.array(p))
    result = ct.calibration_test(y, p, statistic=statistic, method="exact")
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)


@pytest.mark.parametrize("n", [20, 50, 100, 200, 500, 1000])
@pytest.mark.parametrize("distance", [ct.total_variation, ct.squared_euclidean])
def test_sharp_predictions_whose_observed_value_is_an_atom(n, distance):
    """Against the plain convolution of the atoms of the 15 cells, without any grid; what is left out is below 1e-4."""
    p, y = sharp(n)
    result = ct.calibration_test(y, p, statistic=ct.ECE(ct.EqualWidth(15), distance), method="exact")
    half = [CellLaw(np.zeros(1), np.ones(1)), CellLaw(np.zeros(1), np.ones(1))]
    for i, cell in enumerate(sorted(result.null.cells, key=lambda cell: len(cell.values))):
        half[i % 2] = half[i % 2].plus(cell).heavier_than(1e-11 if n > 200 else 1e-14)
    order = np.argsort(half[1].values)
    above = np.append(np.cumsum(half[1].mass[order][::-1])[::-1], 0.0)
    floor = result.statistic * (1 - 1e-12)
    expected = half[0].mass @ above[np.searchsorted(half[1].values[order], floor - half[0].values)]
    assert result.pvalue == pytest.approx(expected, rel=1e-3 if n > 200 else 1e-6, abs=0)


@pytest.mark.parametrize("seed", range(8))
def test_grid_counts_the_observed_atom_in_full(monkeypatch, seed):
    """Where atoms can be enumerated, the grid agrees with them to within the error it states, or the target of 1e-3."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, 150)
    y = rng.random(150) < p
    statistic = ct.ECE(ct.EqualWidth(6))
    atoms = ct.calibration_test(y, p, statistic=statistic, method="exact")
    monkeypatch.setattr(exact, "_MOST_ATOMS", 10)
    grid = ct.calibration_test(y, p, statistic=statistic, method="exact")
    assert "atom by atom" in atoms.accuracy
    assert "grid" in grid.accuracy
    stated = float(grid.accuracy.rpartition(" ")[2])
    assert grid.pvalue == pytest.approx(atoms.pvalue, rel=max(stated, 1e-3), abs=0)


@pytest.mark.parametrize("n", [60, 700, 5000])
@pytest.mark.parametrize("make", [sharp, lambda n: (np.full(n, 0.5), np.arange(n) % 2 == 0)])
def test_agrees_with_a_million_draws(n, make):
    """Draws of the cell counts from the exact laws, statistic by the definition; 10^6 of them."""
    p, y = make(n)
    statistic = ct.ECE(ct.EqualWidth(15))
    law = ct.calibration_test(y, p, statistic=statistic, method="exact").null
    n_draws = 10**6
    rng = np.random.default_rng(1)
    drawn = np.zeros(n_draws)
    for cell in np.unique(np.minimum((15 * p).astype(int), 14)):
        q = p[np.minimum((15 * p).astype(int), 14) == cell]
        count = PoissonBinomial.of(q)
        drawn += np.abs(rng.choice(count.counts, n_draws, p=count.pmf) - q.sum()) / n
    assert abs(law.mean - drawn.mean()) < FOUR_SE * drawn.std() / math.sqrt(n_draws)
    for level in (0.5, 0.1, 0.01, 0.001):
        x = np.quantile(drawn, 1 - level)
        share = np.mean(drawn >= x * (1 - 1e-12))
        error = FOUR_SE * math.sqrt(share * (1 - share) / n_draws)
        assert abs(law.sf(x) - share) < error + 2e-3 * share, (level, law.sf(x), share)


def test_redrawn_outcomes_have_the_exact_law():
    """The compiled draws against the exact law: mean, standard deviation and five tail probabilities."""
    p, y = sharp(2000, seed=3)
    statistic = ct.ECE(ct.EqualWidth(15))
    law = ct.calibration_test(y, p, statistic=statistic, method="exact").null
    n_resamples = 20_000
    null = ct.calibration_test(
        y, p, statistic=statistic, method="monte-carlo", n_resamples=n_resamples, rng=0
    ).null_distribution
    assert abs(null.mean() - law.mean) < FOUR_SE * law.std / math.sqrt(n_resamples)
    fourth = np.mean((null - null.mean()) ** 4)
    assert abs(null.var() - law.std**2) < FOUR_SE * math.sqrt((fourth - law.std**4) / n_resamples)
    for q in (0.05, 0.25, 0.5, 0.9, 0.99):
        x = np.quantile(null, q)
        share = np.mean(null >= x * (1 - 1e-12))
        assert abs(share - law.sf(x)) < FOUR_SE * math.sqrt(share * (1 - share) / n_resamples) + 2e-3 * share


def binomial_tail(n, k):
    """P(K >= k) of n fair coins, in rational arithmetic."""
    return Fraction(sum(math.comb(n, j) for j in range(k, n + 1)), 2**n)


@pytest.mark.parametrize("excess", [40, 120, 200, 400, 499])
def test_far_tails_keep_their_digits(excess):
    """One cell of 1,000 fair coins: P(|K - 500| >= d) = 2 P(K >= 500 + d), down to 1e-298."""
    y = np.arange(1000) < 500 + excess
    result = ct.calibration_test(y, np.full(1000, 0.5), statistic=ct.ECE(ct.EqualWidth(1)), method="exact")
    expected = float(2 * binomial_tail(1000, 500 + excess))
    assert result.pvalue == pytest.approx(expected, rel=1e-6, abs=0)
    worst = ct.calibration_test(y, np.full(1000, 0.5), statistic=ct.MCE(ct.EqualWidth(1)), method="exact")
    assert worst.pvalue == pytest.approx(expected, rel=1e-9, abs=0)


def test_far_tail_of_a_sum_off_the_lattice():
    """Two cells, against the convolution of their laws with accurate tails, atom by atom."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.1, 0.4, 300), rng.uniform(0.6, 0.9, 300)])
    y = np.concatenate([np.arange(300) < 180, np.arange(300) < 120])
    result = ct.calibration_test(y, p, statistic=ct.ECE(ct.EqualWidth(2)), method="exact")
    laws = [PoissonBinomial.with_tails(q) for q in (p[:300], p[300:])]
    deviations = [np.abs(law.counts - q.sum()) / 600 for law, q in zip(laws, (p[:300], p[300:]), strict=True)]
    total = np.add.outer(*deviations)
    mass = np.multiply.outer(laws[0].pmf, laws[1].pmf)
    expected = mass[total >= result.statistic * (1 - 1e-12)].sum()
    assert expected < 1e-30
    assert result.pvalue == pytest.approx(expected, rel=1e-9, abs=0)
    assert "tilted" in result.accuracy


def test_what_underflows_is_reported_as_a_bound():
    n = 20_000
    result = ct.calibration_test(np.ones(n, dtype=bool), np.full(n, 0.5), statistic=ct.ECE(ct.EqualWidth(1)))
    assert result.method == "exact"
    assert 0 < result.pvalue < 1e-290
    assert "bound" in result.accuracy


def test_bounds_hold_the_tail():
    p, y = sharp(80)
    law = ct.calibration_test(y, p, statistic=ct.ECE(ct.EqualWidth(15)), method="exact").null
    for x in (0.01, 0.03, law.mean, law.mean + 2 * law.std):
        low, high = law.bounds(x)
        assert low - 1e-12 <= law.sf(x) <= high + 1e-12
        assert high - low < 0.05


@pytest.mark.parametrize("statistic_type", [ct.ECE, ct.MCE])
def test_quantiles_invert_the_tail(statistic_type):
    p, y = sharp(3000)
    law = ct.calibration_test(y, p, statistic=statistic_type(ct.EqualWidth(15))).null
    for q in (0.05, 0.5, 0.95):
        x = law.quantile(q)
        assert law.sf(x * (1 + 1e-3)) <= 1 - q + 0.01
        assert law.sf(x * (1 - 1e-3)) >= 1 - q - 0.01


def test_impossible_labels_and_values():
    result = ct.calibration_test([1, 0, 1], [0.0, 0.5, 0.5], statistic=ct.ECE(ct.EqualWidth(2)))
    assert 0 < result.pvalue < 1e-300
    assert result.impossible_rows.tolist() == [0]
    certain = ct.calibration_test([0, 1], [0.0, 1.0], statistic=ct.ECE(ct.EqualWidth(2)))
    assert certain.pvalue == 1.0


def test_result_says_how_exact_it_is():
    p, y = sharp(40)
    result = ct.calibration_test(y, p, statistic=ct.ECE(ct.EqualWidth(15)))
    assert result.method == "exact"
    assert result.n_resamples == 0
    assert result.null_distribution is None
    assert result.monte_carlo_error == 0
    assert "no Monte Carlo error" in str(result)
    assert "relative error about" in str(result)
    assert result.to_dict()["accuracy"].startswith("exact")
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)


def test_lattice_of_the_predictions_is_used():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 3000) / 20
    result = ct.calibration_test(rng.random(3000) < p, p, statistic=ct.ECE(ct.EqualWidth(10)))
    assert "lattice" in result.accuracy


@pytest.mark.parametrize(
    ("keywords", "lens"),
    [
        ({"statistic": ct.KS()}, ct.Confidence()),
        ({"statistic": ct.Omnibus()}, None),
        ({"statistic": ct.ECE()}, None),
        ({"statistic": ct.ECE(), "resampling": ct.Consistency(resample_predictions=True)}, ct.Confidence()),
    ],
)
def test_method_exact_names_what_is_exact(keywords, lens):
    prob = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    with pytest.raises(ValueError, match='method="exact" needs ECE, MCE or HosmerLemeshow behind'):
        ct.calibration_test(np.zeros(50, dtype=int), prob, lens=lens, method="exact", **keywords)
    automatic = ct.calibration_test(np.arange(50) % 3, prob, lens=lens, n_resamples=99, rng=0, **keywords)
    assert automatic.method == "monte-carlo"


def test_resampled_law_has_the_same_interface():
    law = ResampledLaw(np.array([0.1, 0.2, 0.3, np.inf]))
    assert law.mean == pytest.approx(0.2)
    assert law.std == pytest.approx(np.std([0.1, 0.2, 0.3]))
    assert law.sf(0.2) == pytest.approx(4 / 5)
    assert law.quantile(0.0) == pytest.approx(0.1)
    assert "4 draws" in law.accuracy


def test_level_of_the_exact_test():
    """P(p <= alpha) <= alpha, computed by enumeration, not simulated."""
    p = np.array([0.1, 0.35, 0.4, 0.55, 0.62, 0.7, 0.8, 0.93])
    statistic = ct.ECE(ct.EqualWidth(3))
    reject = dict.fromkeys((0.01, 0.05, 0.1, 0.5), 0.0)
    for y in itertools.product([0, 1], repeat=len(p)):
        mass = math.prod(q if happened else 1 - q for q, happened in zip(p, y, strict=True))
        pvalue = ct.calibration_test(list(y), p, statistic=statistic, method="exact").pvalue
        for alpha in reject:
            reject[alpha] += mass * (pvalue <= alpha)
    for alpha, rate in reject.items():
        assert rate <= alpha + 1e-12


def test_calibration_function_and_region():
    rng = np.random.default_rng(0)
    p = rng.random(9)
    y = rng.random(9) < p**2

    def squared(prob):
        return np.column_stack([1 - prob[:, 1] ** 2, prob[:, 1] ** 2])

    statistic = ct.ECE(ct.EqualWidth(2))
    scheme = ct.Consistency(calibration_function=squared)
    result = ct.calibration_test(y, p, statistic=statistic, resampling=scheme, method="exact")
    sample = scheme.under_null(make_sample(y, p))
    outcomes = np.array(list(itertools.product([0, 1], repeat=9)), dtype=np.uint8)
    masses = np.prod(np.where(outcomes == 1, sample.null_prob[:, 1], sample.null_prob[:, 0]), axis=1)
    values = statistic.evaluate(sample, outcomes)
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)
    inside = ct.calibration_test(y, p, statistic=statistic, region=lambda q: q[:, 1] > 0.5, method="exact")
    alone = ct.calibration_test(y[p > 0.5], p[p > 0.5], statistic=statistic, method="exact")
    assert inside.pvalue == pytest.approx(alone.pvalue, rel=1e-12)


def chi_squared(predicted, observed):
    return (np.square(observed - predicted) / predicted).sum(axis=-1)


@pytest.mark.parametrize("n_cells", [10, 30, 60])
def test_distances_that_are_infinite_in_the_corner(n_cells):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.6, 400)
    y = rng.random(400) < p
    statistic = ct.ECE(ct.EqualWidth(n_cells), chi_squared)
    law = ct.calibration_test(y, p, statistic=statistic, method="exact")
    drawn = ct.calibration_test(y, p, statistic=statistic, method="monte-carlo", rng=0)
    assert abs(law.pvalue - drawn.pvalue) < FOUR_SE * 0.5 / math.sqrt(9999)


def test_one_sided_distance():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.6, 11)
    statistic = ct.ECE(ct.EqualWidth(3), lambda g, r: np.maximum(g - r, 0)[..., 1])
    values, masses = enumerate_law(statistic, p)
    result = ct.calibration_test(rng.random(11) < p, p, statistic=statistic, method="exact")
    assert result.pvalue == pytest.approx(tail(values, masses, result.statistic), rel=1e-9, abs=0)


def test_overwhelming_evidence_from_few_rows():
    """Three events of 100 at 1e-5: P(K >= 3), where the tilted law all but degenerates."""
    result = ct.calibration_test([1] * 3 + [0] * 97, [1e-5] * 100, statistic=ct.ECE(ct.EqualWidth(15)))
    expected = sum(math.comb(100, k) * 1e-5**k * (1 - 1e-5) ** (100 - k) for k in range(3, 10))
    assert result.pvalue == pytest.approx(expected, rel=1e-9, abs=0)


def test_a_cell_that_carries_most_of_the_variance_fits_the_grid():
    """Squared distances: one cell near 1/2, fourteen cells of rare events; the law is far from normal."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.47, 0.5, 2000), rng.uniform(0, 0.007, 20_000)])
    partition = ct.Edges([*np.linspace(0.0005, 0.0065, 13), 0.1])
    result = ct.calibration_test(rng.random(len(p)) < p, p, statistic=ct.ECE(partition, ct.squared_euclidean))
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
        assert abs(result.null.sf(x) - share) < FOUR_SE * math.sqrt(share / n_draws) + 1e-3 * share
        low, high = result.null.bounds(x)
        assert low <= result.null.sf(x) <= high


@pytest.mark.parametrize("statistic_type", [ct.ECE, ct.MCE])
@pytest.mark.parametrize(("events", "n"), [(2, 6), (10_001, 30_000)])
def test_deviations_of_opposite_sign_tie(statistic_type, events, n):
    """P(|K - n / 3| >= observed) of a binomial count: both sides, though 1/3 is rounded."""
    result = ct.calibration_test(np.arange(n) < events, np.full(n, 1 / 3), statistic=statistic_type(ct.EqualWidth(5)))
    count = PoissonBinomial.of(np.full(n, 1 / 3))
    reach = abs(events - n / 3) - 1e-6
    expected = count.pmf[np.abs(count.counts - n / 3) >= reach].sum()
    assert result.pvalue == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("y", "p"), [([0, 1], [0.5, 0.5]), ([1] + [0] * 9, [0.1] * 10)])
@pytest.mark.parametrize("statistic_type", [ct.ECE, ct.MCE])
def test_the_smallest_possible_value_is_not_unusually_small(y, p, statistic_type):
    """P(T <= 0) is a half and more: a lattice has mass at its end."""
    result = ct.calibration_test(y, p, statistic=statistic_type(ct.EqualWidth(1)))
    assert result.notes == ()
    assert result.null.cdf(result.statistic) >= 0.3


def test_quantiles_stay_inside_the_possible_values():
    low, high = ct.calibration_test(
        [0, 1, 0, 1], [0.25, 0.25, 0.5, 1.0], statistic=ct.ECE(ct.EqualWidth(4))
    ).noise_interval
    assert 0.249 < low <= high < 0.501


def test_laws_by_hand():
    coin = CellLaw(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    assert SumLaw([coin, coin], lambda: [coin, coin], 1.0, 1.0).sf(1.0) == pytest.approx(0.75)
    assert MaximumLaw([coin, coin], lambda: [coin, coin]).sf(1.0) == pytest.approx(0.75)
    assert MaximumLaw([coin, coin], lambda: [coin, coin]).mean == pytest.approx(0.75)


@pytest.mark.parametrize("n", [200, 1000, 3000])
@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_giving_up_on_atoms_early_changes_no_answer(monkeypatch, n, spread):
    rng = np.random.default_rng(n)
    p = rng.beta(spread, spread, n)
    y_true = rng.random(n) < p
    options = {"statistic": ct.ECE(ct.EqualWidth(15)), "method": "exact"}
    early = ct.calibration_test(y_true, p, **options)
    monkeypatch.setattr(exact, "_HOPELESS", math.inf)
    late = ct.calibration_test(y_true, p, **options)
    assert (early.pvalue, early.accuracy) == (late.pvalue, late.accuracy)
