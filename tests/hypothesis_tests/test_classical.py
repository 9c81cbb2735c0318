"""The classical tests: reference values, other programs, hand-computed cases, edges, and their level."""

import itertools
import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import special, stats

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics._bridge import log_kolmogorov_pvalue, log_normal_pvalue
from caltest.statistics._cox import logits
from tests.reference import naive
from tests.reference.examples import draw_labels

TESTS = {
    caltest.spiegelhalter_test: ("monte-carlo", "asymptotic"),
    caltest.hosmer_lemeshow_test: ("auto", "monte-carlo", "asymptotic"),
    caltest.cox_test: ("monte-carlo", "score", "likelihood-ratio"),
    caltest.bridge_test: ("monte-carlo", "asymptotic"),
    caltest.tcal_test: (None,),
}
CASES = [pytest.param(test, method, id=f"{test.__name__}-{method}") for test in TESTS for method in TESTS[test]]
STANDARD_ERRORS = 4


def calibrated(n, n_classes, seed=0, concentration=0.5):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), size=n)
    return draw_labels(prob, rng), prob


def scale(n_cells):
    """One of the components of T-Cal."""
    return caltest.SquaredL2(caltest.EqualWidth(n_cells), estimator="t-cal")


def run(test, y_true, y_prob, method=None, **options):
    if method is not None:
        options["method"] = method
    return test(y_true, y_prob, **{"n_resamples": 199, "rng": 0, **options})


def smallest(result):
    """The smallest p-value of the method of a result by 199 draws."""
    return 1 / 200 if result.method == "monte-carlo" else np.finfo(float).tiny


# Reference values.

SPIEGELHALTER = {
    "cifar10_vgg19_bn": 75.214387405,
    "cifar10_densenet121": 37.135082337,
    "cifar10_googlenet": 7.52104541632,
    "cifar10_resnet_orig": 53.2200142507,
}
TOP1_SPIEGELHALTER = {"top1_cifar10_resnet50": 12.2202588483, "top1_imagenet_resnet152": 48.0909345487}

# dpe_own: 2, 4, 8, ... cells.
TCAL = {
    "top1_cifar10_resnet50": [
        0.000467815329504, 0.000569821622355, 0.00182202548831, 0.00218788041322, 0.00322184625548, 0.00309173782614,
        0.00324786338148, 0.00341781050086, 0.0033191121219, 0.00275972346746, 0.00219006475747, 0.0016652243131,
        0.00102923055435, 0.000821547733756, 0.000192328722647, 9.46541787652e-05, 0.000127468747981,
        6.23878602552e-05, 0.000151466017808, 8.30713763876e-05, 8.92865972104e-05, -1.55313025229e-06,
    ],
    "top1_imagenet_resnet152": [
        0.00253299223606, 0.00265007476018, 0.00300501829214, 0.00323142988378, 0.00334939295419, 0.0034319706057,
        0.00347897394354, 0.00347999254778, 0.00346067708123, 0.00348851525771, 0.00353003256413, 0.00329013380834,
        0.0032247485217, 0.00257901497787, 0.00156000379606, 0.000708837240993, 0.000607808669697, 0.000163548113143,
        5.73030705428e-05, 4.28726093733e-05, -2.60903999555e-05, 4.1593021446e-05,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SPIEGELHALTER)
def test_spiegelhalter_of_networks(name, shared_data):
    with np.load(shared_data / f"{name}.npz") as data:
        y_true, y_prob = data["labels"], data["probs"]
    result = caltest.spiegelhalter_test(y_true, y_prob, lens=caltest.Confidence(), method="asymptotic")
    assert result.statistic == pytest.approx(SPIEGELHALTER[name], rel=0, abs=1e-9)
    assert result.direction == "over-confident"
    if name == "cifar10_googlenet":  # another program's upper tail, twice
        assert result.pvalue == pytest.approx(2 * 2.72004641033e-14, rel=1e-3)


def with_a_cell_for_one(y_true, prob, scale):
    """The authors' program gives a confidence of exactly 1 (328 rows of ImageNet) a cell of its own.

    The error is a sum over cells, hence over the two regions.
    """
    total = 0.0
    for inside in (prob < 1, prob == 1):
        if inside.any():
            total += inside.sum() * caltest.calibration_error(y_true[inside], prob[inside], statistic=scale)
    return total / len(prob)


@pytest.mark.parametrize("name", TOP1_SPIEGELHALTER)
def test_top1_data(name, shared_data):
    with np.load(shared_data / f"{name}.npz") as data:
        right, confidence = data["labels"], data["scores"]
    z = caltest.spiegelhalter_test(right, confidence, method="asymptotic").statistic
    assert z == pytest.approx(TOP1_SPIEGELHALTER[name], rel=0, abs=1e-9)
    for b, expected in enumerate(TCAL[name]):
        value = with_a_cell_for_one(right, confidence, scale(2 ** (b + 1)))
        assert value == pytest.approx(expected, rel=0, abs=1e-9)
    result = caltest.tcal_test(right, confidence, n_resamples=199, rng=0)
    n_scales = math.floor(math.log2(len(right)))
    assert len(result.errors) == n_scales
    if not (confidence == 1).any():
        np.testing.assert_allclose(result.errors, TCAL[name][:n_scales], rtol=0, atol=1e-9)
    # The authors' test rejects at 0.05, already at the coarsest scale.
    assert result.pvalue == result.smallest_pvalue == result.error_pvalues[0] == 1 / 200


def test_example_of_cumulcalib():
    """README of the R package of Sadatsafavi and Petkau (2024): from its S_n and B* to its three p-values."""
    mean, shape = log_normal_pvalue(np.array(0.489295496431201)), log_kolmogorov_pvalue(np.array(0.904915434767163))
    assert np.exp(mean) == pytest.approx(0.624632509005787, rel=1e-9)
    assert np.exp(shape) == pytest.approx(0.385979705481866, rel=1e-9)
    assert stats.chi2.sf(-2 * (mean + shape), 4) == pytest.approx(0.584068794836004, rel=1e-9)


@pytest.mark.parametrize("d", [0.0, 0.02, 0.3, 0.999999, 1.0, 1.000001, 1.5, 3.0, 10.0, 18.0])
def test_kolmogorov_tail(d):
    assert np.exp(log_kolmogorov_pvalue(np.array(d))) == pytest.approx(special.kolmogorov(d), rel=1e-12)


def test_tails_keep_their_digits():
    assert log_kolmogorov_pvalue(np.array(40.0)) == pytest.approx(math.log(2) - 3200, rel=1e-14)
    assert log_normal_pvalue(np.array(40.0)) == pytest.approx(math.log(2) + stats.norm.logsf(40), rel=1e-12)
    assert log_kolmogorov_pvalue(np.array(np.inf)) == log_normal_pvalue(np.array(np.inf)) == -np.inf


# Other programs and formulas.


def test_spiegelhalter_as_it_is_written():
    y_true, y_prob = calibrated(300, 2)
    p, y = y_prob[:, 1], y_true
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    result = caltest.spiegelhalter_test(y, p, method="asymptotic")
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.pvalue == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)


def test_spiegelhalter_is_the_standardised_brier_score():
    """Of any number of classes: by the moments of the score itself."""
    y_true, y_prob = calibrated(300, 4)
    scores = np.stack([np.square(y_prob - np.eye(4)[k]).sum(axis=1) for k in range(4)], axis=1)
    mean = (y_prob * scores).sum(axis=1)
    variance = (y_prob * np.square(scores)).sum(axis=1) - mean**2
    z = (scores[np.arange(300), y_true] - mean).sum() / np.sqrt(variance.sum())
    assert caltest.spiegelhalter_test(y_true, y_prob, method="asymptotic").statistic == pytest.approx(z, rel=1e-12)


@pytest.mark.parametrize(("n_classes", "reference"), [(2, 0), (3, 0), (4, 2)])
def test_textbook_hosmer_lemeshow_of_statsmodels(n_classes, reference):
    from statsmodels.stats.diagnostic_gen import test_chisquare_binning as chisquare_binning

    y_true, y_prob = calibrated(200, n_classes, concentration=1.0)
    partition = caltest.AgainstRest(reference, caltest.EqualMass(10))
    result = run(caltest.hosmer_lemeshow_test, y_true, y_prob, "asymptotic", partition=partition, covariance="mean")
    freedom = 10 * (n_classes - 1)
    other = chisquare_binning(np.eye(n_classes)[y_true], y_prob, sort_var=1 - y_prob[:, reference], bins=10, df=freedom)
    assert result.degrees_of_freedom == freedom
    assert result.statistic == pytest.approx(other.statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(other.pvalue, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_hosmer_lemeshow_by_the_pseudo_inverse(n_classes):
    y_true, y_prob = calibrated(300, n_classes)
    statistic = caltest.HosmerLemeshow()
    sample = make_sample(y_true, y_prob)
    cells = sample.cells(statistic.partition)
    value, rank = 0.0, 0
    for b in range(cells.n_cells):
        p, y = sample.prob[cells.index == b], sample.outcome[cells.index == b]
        sigma = np.diag(p.sum(axis=0)) - p.T @ p
        residual = (np.eye(n_classes)[y] - p).sum(axis=0)
        value += residual @ np.linalg.pinv(sigma, rcond=1e-10, hermitian=True) @ residual
        rank += np.linalg.matrix_rank(sigma, tol=1e-10, hermitian=True)
    assert caltest.calibration_error(y_true, y_prob, statistic=statistic) == pytest.approx(value, rel=1e-8)
    assert statistic.degrees_of_freedom(sample) == rank


@pytest.mark.parametrize("seed", range(3))
def test_cox_of_statsmodels(seed):
    import statsmodels.api as sm

    y_true, y_prob = calibrated(300, 2, seed=seed, concentration=1.0)
    x = np.log(y_prob[:, 1] / y_prob[:, 0])
    design = sm.add_constant(x)
    free = sm.GLM(y_true, design, family=sm.families.Binomial()).fit(tol=1e-12)
    large = sm.GLM(y_true, np.ones(300), offset=x, family=sm.families.Binomial()).fit(tol=1e-12)
    null = stats.bernoulli.logpmf(y_true, y_prob[:, 1]).sum()
    result = caltest.cox_test(y_true, y_prob, method="likelihood-ratio")
    np.testing.assert_allclose(
        [result.intercept, result.slope, result.in_the_large],
        [*free.params, *large.params],
        rtol=1e-7,
    )
    np.testing.assert_allclose(
        [result.intercept_error, result.slope_error, result.in_the_large_error], [*free.bse, *large.bse], rtol=1e-6
    )
    assert result.statistic == pytest.approx(2 * (free.llf - null), rel=1e-8)
    assert result.in_the_large_statistic == pytest.approx(2 * (large.llf - null), rel=1e-7, abs=1e-9)
    assert result.in_the_large_statistic + result.slope_statistic == pytest.approx(result.statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(stats.chi2.sf(result.statistic, 2), rel=1e-9)
    assert result.slope_pvalue == pytest.approx(stats.chi2.sf(result.slope_statistic, 1), rel=1e-9)


def test_cox_score_of_statsmodels():
    """U' I^-1 U at (0, 1), from the gradient and the Hessian of another program."""
    from statsmodels.discrete.discrete_model import Logit

    y_true, y_prob = calibrated(300, 2, concentration=1.0)
    x = np.log(y_prob[:, 1] / y_prob[:, 0])
    model = Logit(y_true, np.column_stack([np.ones(300), x]))
    gradient, information = model.score(np.array([0.0, 1.0])), -model.hessian(np.array([0.0, 1.0]))
    result = caltest.cox_test(y_true, y_prob, method="score")
    assert result.statistic == pytest.approx(gradient @ np.linalg.solve(information, gradient), rel=1e-9)
    assert result.in_the_large_statistic == pytest.approx(gradient[0] ** 2 / information[0, 0], rel=1e-9)
    assert result.in_the_large_statistic + result.slope_statistic == pytest.approx(result.statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(stats.chi2.sf(result.statistic, 2), rel=1e-9)


# By hand.


def test_hosmer_lemeshow_of_two_groups():
    """Two binomial variables with 4 trials at 1/4 and 3/4: (k - 1)^2 / (3/4) is 4/3, 0, 4/3, 16/3, 12."""
    y_true, y_prob = [1, 1, 1, 0, 1, 1, 0, 0], [0.25] * 4 + [0.75] * 4
    result = caltest.hosmer_lemeshow_test(y_true, y_prob, partition=caltest.EqualMass(2))
    assert result.statistic == pytest.approx(16 / 3 + 4 / 3, rel=1e-12)
    pmf = stats.binom.pmf(np.arange(5), 4, 0.25)
    values = (np.arange(5) - 1) ** 2 * 4 / 3
    pairs = itertools.product(zip(values, pmf, strict=True), repeat=2)
    assert result.pvalue == pytest.approx(sum(p * q for (a, p), (b, q) in pairs if a + b > 6.6), rel=1e-10)
    assert result.method == "exact"
    assert result.degrees_of_freedom == 2
    np.testing.assert_array_equal(result.count, [4, 4])
    np.testing.assert_array_equal(result.expected, [[3, 1], [1, 3]])
    np.testing.assert_array_equal(result.observed, [[1, 3], [2, 2]])


@pytest.mark.parametrize("covariance", ["rows", "mean"])
@pytest.mark.parametrize("seed", range(4))
def test_exact_law_by_enumeration(seed, covariance):
    """All outcomes of 10 rows in 3 groups."""
    rng = np.random.default_rng(seed)
    prob, y_true = rng.random(10), rng.integers(2, size=10)
    partition = caltest.EqualMass(3)
    statistic = caltest.HosmerLemeshow(partition, covariance)
    sample = make_sample(y_true, prob)
    outcomes = np.array(list(itertools.product([0, 1], repeat=10)), dtype=sample.outcome.dtype)
    values = statistic.evaluate(sample, outcomes)
    mass = np.where(outcomes == 1, sample.event, 1 - sample.event).prod(axis=1)
    result = run(caltest.hosmer_lemeshow_test, y_true, prob, "exact", partition=partition, covariance=covariance)
    assert result.pvalue == pytest.approx(mass[values >= result.statistic * (1 - 1e-9)].sum(), rel=1e-9)
    if covariance == "rows":
        assert (mass * values).sum() == pytest.approx(result.degrees_of_freedom, rel=1e-9)


def test_bridge_of_two_blocks():
    """Residuals 1 and 0, variance 3/2: S = sqrt(2/3) throughout, half of it at half time."""
    y_true, y_prob = [0, 1, 0, 1, 1, 1, 0, 1], [0.25] * 4 + [0.75] * 4
    result = caltest.bridge_test(y_true, y_prob, method="asymptotic")
    assert result.mean == pytest.approx(math.sqrt(2 / 3), rel=1e-12)
    assert result.shape == pytest.approx(math.sqrt(2 / 3) / 2, rel=1e-12)
    assert result.mean_pvalue == pytest.approx(2 * stats.norm.sf(result.mean), rel=1e-12)
    assert result.shape_pvalue == pytest.approx(stats.kstwobign.sf(result.shape), rel=1e-12)
    combined = stats.combine_pvalues([result.mean_pvalue, result.shape_pvalue], method="fisher")
    assert tuple(result) == pytest.approx(tuple(combined), rel=1e-9)


def test_bridge_reads_tied_blocks_at_their_end():
    """Row order inside a block does not matter, and a constant predictor has no shape."""
    result = caltest.bridge_test([1, 1, 1, 0], [0.5] * 4, method="asymptotic")
    assert result.shape == 0
    assert result.shape_pvalue == 1
    assert result.mean == pytest.approx(1)
    assert result.statistic == pytest.approx(-2 * math.log(2 * stats.norm.sf(1)), rel=1e-12)


def test_recalibration_by_hand():
    """1/4 of the rows at 0.1 and 3/4 of those at 0.9: logits log 3 rather than log 9."""
    y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    result = caltest.cox_test(y_true, y_prob, method="likelihood-ratio")
    assert result.slope == pytest.approx(0.5, rel=1e-9)
    assert result.intercept == pytest.approx(0, abs=1e-9)
    assert result.in_the_large == pytest.approx(0, abs=1e-9)
    likelihood = 20 * math.log(0.25) + 60 * math.log(0.75) - 20 * math.log(0.1) - 60 * math.log(0.9)
    assert result.statistic == pytest.approx(2 * likelihood, rel=1e-9)
    assert result.slope_statistic == pytest.approx(2 * likelihood, rel=1e-9)
    assert result.direction == "over-confident"


def test_spiegelhalter_by_hand():
    """0.9 and right in 6 of 10: (3 - ... ) residuals sum to -3, times -0.8, over root of 10 * 0.64 * 0.09."""
    z, _ = caltest.spiegelhalter_test([1] * 6 + [0] * 4, [0.9] * 10, method="asymptotic")
    assert z == pytest.approx(2.4 / math.sqrt(0.576), rel=1e-12)
    z, _ = caltest.spiegelhalter_test([1] * 10, [0.9] * 10, method="asymptotic")
    assert z == pytest.approx(-0.8 / math.sqrt(0.576), rel=1e-12)


def test_debiased_error_by_hand():
    y_true, y_prob = [0, 1, 1, 0, 1, 1], [0.25] * 3 + [0.75] * 3
    value = caltest.calibration_error(y_true, y_prob, statistic=scale(2))
    assert value == pytest.approx(((25 - 19) / 16 / 3 + (1 - 11) / 16 / 3) / 6, rel=1e-12)
    # One row in each cell: S^2 is the row's own square.
    assert caltest.calibration_error([1, 0], [0.25, 0.75], statistic=scale(2)) == 0


# T-Cal.


@pytest.mark.parametrize("n", [2, 3, 7, 8, 100, 1000])
def test_all_scales_in_one_pass(n):
    y_true, y_prob = calibrated(n, 2, seed=n)
    sample = make_sample(y_true, y_prob)
    scales = caltest.TCal().settle(sample)
    assert scales.n_scales == math.floor(math.log2(n))
    assert caltest.TCal(2).settle(sample).n_scales == min(2, scales.n_scales)
    outcomes = np.random.default_rng(0).integers(2, size=(2, 5, n), dtype=sample.outcome.dtype)
    together = scales.evaluate_components(sample, outcomes)
    assert together.shape == (scales.n_scales, 2, 5)
    apart = [part.evaluate(sample, outcomes) for part in scales.components]
    np.testing.assert_allclose(together, apart, rtol=1e-12, atol=1e-12)


def test_scales_that_are_too_fine_are_refused():
    sample = make_sample([0, 1, 1], [0.25, 0.5, 0.75])
    with pytest.raises(ValueError, match="`n_scales` is too large for 3 rows, got 30; call `settle` first"):
        caltest.TCal().evaluate_components(sample, sample.outcome)


def test_all_scales_of_edges_ties_and_weights():
    event = np.repeat(np.arange(17) / 16, 3)
    y_true = np.random.default_rng(0).integers(2, size=51)
    for weight in (None, np.random.default_rng(1).random(51)):
        sample = make_sample(y_true, event, sample_weight=weight)
        scales = caltest.TCal().settle(sample)
        together = scales.evaluate_components(sample, sample.outcome)
        for part, value in zip(scales.components, together, strict=True):
            expected = naive.evaluate(part, np.column_stack([1 - event, event]), y_true, weight)
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_scales_are_combined_as_the_loops_do():
    y_true, y_prob = calibrated(100, 2, seed=4)
    test = caltest.calibration_test(y_true, y_prob, statistic=caltest.TCal(), n_resamples=60, rng=0)
    values = [[part.statistic, *part.null_distribution] for part in test.components]
    pvalues = [naive.tail_pvalues(row) for row in values]
    assert test.pvalue == naive.combine_pvalues(pvalues)[0]
    assert test.name == "TCal(n_scales=6)"
    result = caltest.tcal_test(y_true, y_prob, n_resamples=60, rng=0)
    assert tuple(result) == tuple(test)
    np.testing.assert_array_equal(result.error_pvalues, [row[0] for row in pvalues])
    np.testing.assert_array_equal(result.n_cells, [2, 4, 8, 16, 32, 64])


def test_debiased_errors_have_mean_zero():
    y_true, y_prob = calibrated(500, 2)
    test = caltest.calibration_test(y_true, y_prob, statistic=caltest.TCal(), n_resamples=4000, rng=1)
    for part in test.components:
        assert abs(part.null.mean) < STANDARD_ERRORS * part.null.std / math.sqrt(4000)


def test_tcal_in_a_table():
    y_true, y_prob = calibrated(100, 3)
    lenses = [caltest.Confidence(), caltest.ClassWise(0)]
    table = caltest.calibration_table(y_true, y_prob, lenses=lenses, statistic=caltest.TCal(), n_resamples=19, rng=0)
    assert [len(row.components) for row in table.rows] == [6, 6]


def test_power_against_a_wiggle():
    """Deviations of alternating sign, which coarse cells average away; 8 cells see them."""
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, size=2000)
    y_true = rng.random(2000) < prob + 0.15 * np.sin(2 * np.pi * 4 * prob)
    result = caltest.tcal_test(y_true, prob, n_resamples=999, rng=0)
    assert result.pvalue <= 0.01
    assert result.error_pvalues[0] > 0.01


def test_debiased_scales_estimate_nothing_together():
    with pytest.raises(ValueError, match="`TCal` combines tests and estimates no error"):
        caltest.calibration_error([0, 1], [0.25, 0.75], statistic=caltest.TCal())


# Moments of the null laws.


@pytest.mark.parametrize("concentration", [0.05, 1.0])
@pytest.mark.parametrize("covariance", ["rows", "mean"])
def test_mean_of_the_exact_law(concentration, covariance):
    """The number of groups, also where a few draws hold most of it; less for the textbook's larger variances."""
    y_true, y_prob = calibrated(200, 2, concentration=concentration)
    law, _ = caltest.HosmerLemeshow(covariance=covariance).exact(make_sample(y_true, y_prob))
    if covariance == "rows":
        assert law.mean == pytest.approx(10, rel=1e-12)
    else:
        assert 0 < law.mean < 10


@pytest.mark.parametrize("concentration", [0.5, 2.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_moments_under_the_null(n_classes, concentration):
    """E C is the sum of the ranks, E Z^2 is 1, whatever the predictions."""
    y_true, y_prob = calibrated(200, n_classes, concentration=concentration)
    sample = make_sample(y_true, y_prob)
    draws = caltest.Consistency().draws(4000, rng=0)
    hosmer = caltest.HosmerLemeshow()
    expected = {hosmer: hosmer.degrees_of_freedom(sample)}
    null = {
        hosmer: hosmer.null(sample, draws),
        caltest.Spiegelhalter(): caltest.Spiegelhalter().null(sample, draws) ** 2,
    }
    expected[caltest.Spiegelhalter()] = 1
    if n_classes == 2:
        for part, mean in {"joint": 2, "intercept": 1, "slope": 1}.items():
            null[caltest.CoxScore(part)] = caltest.CoxScore(part).null(sample, draws)
            expected[caltest.CoxScore(part)] = mean
    for statistic, values in null.items():
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - expected[statistic]) < STANDARD_ERRORS * error, str(statistic)


@pytest.mark.parametrize("concentration", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_exact_and_redrawn_agree(seed, concentration):
    """Sharp predictions too, where some groups have next to no variance."""
    y_true, y_prob = calibrated(100, 2, seed=seed, concentration=concentration)
    exact = caltest.hosmer_lemeshow_test(y_true, y_prob, method="exact")
    drawn = caltest.hosmer_lemeshow_test(y_true, y_prob, method="monte-carlo", rng=seed)
    assert exact.statistic == pytest.approx(drawn.statistic, rel=1e-12)
    error = math.sqrt(exact.pvalue * (1 - exact.pvalue) / 9999)
    assert abs(exact.pvalue - drawn.pvalue) < STANDARD_ERRORS * error + 1 / 10_000


def test_limit_laws_are_near_for_many_rows():
    """Between 0.01 and 0.99 all methods find nearly the same p-value."""
    y_true, y_prob = calibrated(5000, 2, seed=3, concentration=2.0)
    for test, methods in TESTS.items():
        found = [run(test, y_true, y_prob, method, n_resamples=2000).pvalue for method in methods]
        assert max(found) - min(found) < 0.06, test.__name__


# What must not matter.


def test_order_and_names_of_classes():
    y_true, y_prob = calibrated(120, 4)
    order = np.array([2, 0, 3, 1])
    renamed, columns = np.argsort(order)[y_true], y_prob[:, order]
    for statistic in (caltest.Spiegelhalter(), caltest.HosmerLemeshow(caltest.VarianceTree())):
        one = caltest.calibration_error(y_true, y_prob, statistic=statistic)
        assert caltest.calibration_error(renamed, columns, statistic=statistic) == pytest.approx(one, rel=1e-9)
    groups = caltest.AgainstRest(1, caltest.EqualMass(10))
    one = caltest.calibration_error(y_true, y_prob, statistic=caltest.HosmerLemeshow(groups))
    other = caltest.calibration_error(renamed, columns, statistic=caltest.HosmerLemeshow(caltest.AgainstRest(3)))
    assert one == pytest.approx(other, rel=1e-9)


def test_event_and_its_complement():
    """Multiples of 1/64: the complement is exact, and no boundary falls on a block of ties elsewhere."""
    rng = np.random.default_rng(0)
    prob = rng.permutation(np.arange(1, 61)) / 64
    y_true = rng.integers(2, size=60)
    for statistic in (caltest.Spiegelhalter(), caltest.HosmerLemeshow(), caltest.CoxScore(), caltest.Bridge()):
        one = caltest.calibration_error(y_true, prob, statistic=statistic)
        assert caltest.calibration_error(1 - y_true, 1 - prob, statistic=statistic) == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize(("test", "method"), CASES)
def test_workers_and_row_order(test, method):
    y_true, y_prob = calibrated(150, 2)
    order = np.random.default_rng(1).permutation(150)
    one = run(test, y_true, y_prob, method)
    assert tuple(run(test, y_true, y_prob, method, workers=2)) == tuple(one)
    other = run(test, y_true[order], y_prob[order], method)
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9)
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-9)


@pytest.mark.parametrize("test", TESTS)
def test_wrapper_and_calibration_test_agree(test):
    statistic = {
        caltest.spiegelhalter_test: caltest.Spiegelhalter(),
        caltest.hosmer_lemeshow_test: caltest.HosmerLemeshow(),
        caltest.cox_test: caltest.CoxScore(),
        caltest.bridge_test: caltest.Bridge(),
        caltest.tcal_test: caltest.TCal(),
    }[test]
    y_true, y_prob = calibrated(150, 2)
    options = {"n_resamples": 99, "rng": 3}
    mine, other = (
        test(y_true, y_prob, **options),
        caltest.calibration_test(y_true, y_prob, statistic=statistic, **options),
    )
    assert mine.pvalue == other.pvalue
    assert abs(mine.statistic) == pytest.approx(other.statistic, rel=1e-12)


def test_known_calibration_function():
    """Outcomes that follow the squared probabilities fit that null, and not the identity."""
    rng = np.random.default_rng(5)
    prob = rng.uniform(0.1, 0.9, size=1000)
    y_true = rng.random(1000) < prob**2

    def squared(p):
        return np.column_stack([1 - p[:, 1] ** 2, p[:, 1] ** 2])

    scheme = caltest.Consistency(calibration_function=squared)
    sample = scheme.under_null(make_sample(y_true, prob))
    for statistic in (
        caltest.Spiegelhalter(), caltest.HosmerLemeshow(), caltest.CoxScore(), caltest.Bridge(), scale(8)
    ):  # fmt: skip
        value = statistic.evaluate(sample, sample.outcome)
        plain = np.column_stack([1 - prob, prob])
        expected = naive.evaluate(statistic, plain, y_true, expected=squared(plain).tolist())
        assert value == pytest.approx(expected, rel=1e-10), str(statistic)
        options = {"statistic": statistic, "n_resamples": 199, "rng": 0}
        assert caltest.calibration_test(y_true, prob, resampling=scheme, **options).pvalue > 0.01
        assert caltest.calibration_test(y_true, prob, **options).pvalue < 0.02 or statistic == caltest.Spiegelhalter()


# Edges.


@pytest.mark.parametrize(("test", "method"), CASES)
def test_a_constant_predictor(test, method):
    constant = 0.25 if test is caltest.spiegelhalter_test else 0.5
    fair = run(test, np.arange(200) % 4 < 4 * constant, np.full(200, constant), method)
    unfair = run(test, np.arange(200) % 4 < 3, np.full(200, constant), method)
    assert fair.pvalue > 0.5
    assert unfair.pvalue <= 0.005
    if test is caltest.cox_test:
        assert unfair.degrees_of_freedom == 1
        assert unfair.slope_statistic == pytest.approx(0, abs=1e-12)
        assert unfair.slope_pvalue == 1
        assert np.isnan(unfair.slope)
        assert unfair.in_the_large == pytest.approx(math.log(3), rel=1e-6)
        assert any("cannot be told apart: the predictions are constant" in note for note in unfair.notes)


def test_spiegelhalter_is_blind_at_one_half():
    for prob in (0.5, [[1 / 3] * 3] * 200):
        y_prob = np.full(200, prob) if prob == 0.5 else prob
        result = run(caltest.spiegelhalter_test, np.ones(200, dtype=int), y_prob)
        assert tuple(result) == (0, 1)
        assert any("same value on every draw" in note for note in result.notes)


@pytest.mark.parametrize(("test", "method"), CASES)
def test_predictions_of_zero_and_one_that_come_true(test, method):
    y_true = np.arange(20) % 2
    result = run(test, y_true, y_true.astype(float), method)
    assert tuple(result) == (0, 1)
    assert "-0" not in str(result).replace("-log10", "").split("hypothesis")[0]
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("test", "method"), CASES)
def test_a_contradicted_certainty(test, method):
    y_true, y_prob = calibrated(100, 2)
    y_prob[[7, 31]] = [[0, 1], [1, 0]]
    y_true[[7, 31]] = [0, 0]
    result = run(test, y_true, y_prob, method)
    assert result.pvalue <= 1 / 200
    assert result.pvalue > 0
    assert result.pvalue == pytest.approx(smallest(result), rel=1e-9)
    assert result.impossible_rows.tolist() == [7]
    assert "row 7" in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(("test", "method"), CASES)
def test_some_predictions_of_zero_and_one(test, method):
    """They come true and change nothing but groups and counts."""
    y_true, y_prob = calibrated(100, 2)
    more = np.append(y_prob[:, 1], [0.0, 0.0, 1.0])
    result = run(test, np.append(y_true, [0, 0, 1]), more, method)
    assert 0 < result.pvalue <= 1
    if test in {caltest.spiegelhalter_test, caltest.cox_test, caltest.bridge_test}:
        assert result.statistic == pytest.approx(run(test, y_true, y_prob, method).statistic, rel=1e-9)
    if test is caltest.cox_test:
        assert any("3 prediction(s) of exactly 0 or 1 say nothing" in note for note in result.notes)


@pytest.mark.parametrize(("test", "method"), CASES)
@pytest.mark.parametrize("y_prob", [[0.25], [[0.25, 0.75]], [[0.25, 0.5, 0.25]], [[0.0, 1.0]]])
def test_one_row(test, method, y_prob):
    if test is caltest.cox_test and method == "likelihood-ratio" and y_prob != [[0.0, 1.0]]:
        with pytest.raises(ValueError, match="separates the labels"):
            run(test, [1], y_prob, method)
        return
    result = run(test, [1], y_prob, method)
    assert 0 < result.pvalue <= 1
    str(result)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("sharp", [1e-3, 1e-9, 1e-100, 1e-300])
def test_hosmer_lemeshow_of_almost_certain_classes(sharp):
    """Three classes, one of them at `sharp`: digits are kept, and the rank counts it."""
    y_prob = np.array([[0.5, 0.5 - sharp, sharp]] * 8)
    y_true = np.array([0, 1] * 4)
    statistic = caltest.HosmerLemeshow(caltest.AgainstRest(0, caltest.EqualMass(1)))
    sample = make_sample(y_true, y_prob)
    assert statistic.degrees_of_freedom(sample) == 2
    # S = (0, 8 sharp, -8 sharp); multinomial with the same row throughout: sum of S_k^2 / E_k.
    expected = 8 * sharp**2 / (0.5 - sharp) + 8 * sharp
    value = statistic.evaluate(sample, sample.outcome)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-300)


def test_ranks_of_classes_that_exclude_each_other():
    """Half of the rows know {0, 1}, half {2, 3}: rank 2, and a swap between the halves is impossible."""
    y_prob = np.array([[0.5, 0.5, 0, 0]] * 4 + [[0, 0, 0.25, 0.75]] * 4)
    statistic = caltest.HosmerLemeshow(caltest.AgainstRest(0, caltest.EqualWidth(1)))
    possible, swapped = np.array([0, 1, 1, 1, 2, 3, 3, 3]), np.array([0, 1, 1, 2, 2, 3, 3, 3])
    sample = make_sample(possible, y_prob)
    assert statistic.degrees_of_freedom(sample) == 2
    assert statistic.evaluate(sample, sample.outcome) == pytest.approx(1, rel=1e-12)  # 1^2 / (4 / 4), and 0
    assert statistic.evaluate(sample, swapped.astype(sample.outcome.dtype)) == np.inf


@pytest.mark.parametrize("labels", ["one class", "separated", "separated downwards", "touching"])
def test_cox_where_labels_are_separated(labels):
    y_prob = np.arange(1, 11) / 11
    y_true = {
        "one class": np.ones(10, dtype=int),
        "separated": np.arange(10) >= 5,
        "separated downwards": np.arange(10) < 5,
        "touching": np.arange(10) >= 5,
    }[labels]
    if labels == "touching":  # one score with both labels, between the others
        y_prob[[4, 5]] = 0.5
    with pytest.raises(ValueError, match=r'`y_prob` separates the labels.*method="monte-carlo" does not'):
        caltest.cox_test(y_true, y_prob, method="likelihood-ratio")
    result = run(caltest.cox_test, y_true, y_prob, "monte-carlo")
    assert 0 < result.pvalue <= 1
    assert result.degrees_of_freedom == 2
    assert np.isnan(result.slope)
    assert np.isnan(result.in_the_large) == (labels == "one class")
    assert any("have no finite estimate: the predictions separate the labels" in note for note in result.notes)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("power", [0.02, 0.2, 1.0, 5.0, 20.0])
def test_cox_finds_any_slope(power):
    """Logits of the truth times 1 / power: estimates near power, however sharp or vague the predictions are."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4000) * 1.5
    y_true = rng.random(4000) < special.expit(truth)
    result = caltest.cox_test(y_true, special.expit(truth / power), method="likelihood-ratio")
    assert abs(result.slope - power) < STANDARD_ERRORS * result.slope_error
    assert abs(result.intercept) < STANDARD_ERRORS * result.intercept_error


def test_logits_of_the_ends_are_infinite():
    sample = make_sample([0, 1, 1], [0.0, 0.5, 1.0])
    assert logits(sample).tolist() == [-np.inf, 0.0, np.inf]


# Results.


@pytest.mark.parametrize(("test", "method"), CASES)
def test_result(test, method):
    y_true, y_prob = calibrated(200, 3)
    result = run(test, y_true, y_prob, method, lens=caltest.Confidence())
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)
    with pytest.raises(FrozenInstanceError):
        result.pvalue = 0
    report = " ".join(str(result).split())
    for part in (
        result.title, "P(Y = . | g(X)) = g(X) through the lens", "Confidence()", "200 rows, 2 outcomes", "null law",
        f"p-value {pvalue:.4g}", result.interpretation, "Valid if rows are independent",
    ):  # fmt: skip
        assert part in report
    assert max(map(len, str(result).splitlines())) <= 120
    limit = method in {"asymptotic", "score", "likelihood-ratio"}
    assert ("asymptotic: not exact in small samples" in report) == limit
    assert ("valid at every" in report) == (not limit)
    back = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert back == result.to_dict()
    assert back["pvalue"] == pvalue
    html = result._repr_html_()
    assert result.title in html
    assert "<table>" in html


@pytest.mark.parametrize("test", TESTS)
def test_default_lens(test):
    """The event of two classes; of more the confidence where one probability is needed, else the whole prediction."""
    y_true, y_prob = calibrated(60, 4)
    whole = test in {caltest.spiegelhalter_test, caltest.hosmer_lemeshow_test}
    result = run(test, y_true, y_prob)
    assert result.lens == ("Canonical()" if whole else "Confidence()")
    assert result.n_outcomes == (4 if whole else 2)
    event = run(test, y_true == 0, y_prob[:, 0])
    assert event.lens == "Canonical()"
    assert tuple(event) == tuple(run(test, y_true, y_prob, lens=caltest.ClassWise(0)))
    names = ["a", "b", "c", "d"]
    named = run(test, [names[k] for k in y_true], y_prob, classes=names, lens=caltest.ClassWise(0))
    assert named.lens == "ClassWise(k=0) a"
    assert tuple(named) == tuple(event)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_directions(temperature):
    rng = np.random.default_rng(0)
    logit = rng.normal(size=2000) * 2
    y_true = rng.random(2000) < special.expit(logit)
    stated = special.expit(logit / temperature)
    word = "over-confident" if temperature < 1 else "under-confident"
    for test in (caltest.spiegelhalter_test, caltest.cox_test):
        result = run(test, y_true, stated)
        assert result.direction == word
        assert f"the model is {word}" in " ".join(str(result).split())


def test_groups_are_shown():
    y_true, y_prob = calibrated(100, 3)
    text = str(run(caltest.hosmer_lemeshow_test, y_true, y_prob))
    assert "observed 2" in text
    assert "20 on average if calibrated" in text
    many = str(run(caltest.hosmer_lemeshow_test, *calibrated(100, 12)))
    assert "observed" not in many
    mean = str(run(caltest.hosmer_lemeshow_test, y_true, y_prob, covariance="mean"))
    assert "on average if calibrated" not in mean


@pytest.mark.parametrize("test", TESTS)
def test_bad_input_is_refused(test):
    y_true, y_prob = calibrated(20, 2)
    for options, message in [
        ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        ({"rng": -1}, "`rng` must be None, an integer >= 0"),
        ({"lens": "top"}, "`lens` must be a lens"),
        ({"workers": 0}, "`workers` must be an integer >= 1, or -1"),
        *([({"method": "guess"}, "`method` must be one of .*, got 'guess'")] if test is not caltest.tcal_test else []),
    ]:
        if "workers" in options and test is caltest.hosmer_lemeshow_test:
            options["method"] = "monte-carlo"
        with pytest.raises(ValueError, match=message):
            test(y_true, y_prob, **options)
    with pytest.raises(ValueError, match="`y_prob` must lie in"):
        test(y_true, y_prob * 2)
    if test not in {caltest.spiegelhalter_test, caltest.hosmer_lemeshow_test}:
        with pytest.raises(ValueError, match=r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes"):
            test(*calibrated(20, 4), lens=caltest.TopK(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: caltest.HosmerLemeshow(covariance="pooled"),
            "`covariance` must be one of 'rows', 'mean', got 'pooled'",
        ),
        (lambda: caltest.CoxScore("both"), "`part` must be one of 'joint', 'intercept', 'slope', got 'both'"),
        (lambda: caltest.TCal(0), "`n_scales` must be an integer >= 1, got 0"),
        (lambda: caltest.TCal(31), "`n_scales` must be an integer from 1 to 30, got 31"),
        (lambda: caltest.AgainstRest(-1), "`k` must be an integer >= 0, got -1"),
        (lambda: caltest.AgainstRest(0, "ten"), "`partition` must be a partition such as .*, got 'ten'"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_reference_that_is_no_outcome():
    with pytest.raises(ValueError, match="`k` must be less than the number of outcomes, 3, got 3"):
        run(caltest.hosmer_lemeshow_test, *calibrated(20, 3), partition=caltest.AgainstRest(3))


# Level.

LEVELS = (0.01, 0.05, 0.1)
FALSE_ALARM = 1e-3
"""Probability that the limits of a simulation are crossed by chance, over all its cases."""

POPULATIONS = {
    "two classes": (2, 1.0),
    "two classes, sharp": (2, 0.05),
    "three classes": (3, 0.5),
    "three classes, sharp": (3, 0.05),
}


def level_pvalues(n_classes, concentration, n_data_sets):
    """P-values by 199 draws of calibrated predictions, n = 200, by name of the statistic."""
    statistics = [caltest.Spiegelhalter(), caltest.HosmerLemeshow(), caltest.HosmerLemeshow(covariance="mean")]
    if n_classes == 2:
        statistics += [caltest.CoxScore(), caltest.CoxScore("intercept"), caltest.CoxScore("slope")]
        statistics += [caltest.Bridge(), scale(16)]
    found = {}
    for i in range(n_data_sets):
        y_true, y_prob = calibrated(200, n_classes, seed=i, concentration=concentration)
        combined = caltest.Omnibus(statistics)
        options = {"n_resamples": 199, "rng": 10**6 + i, "method": "monte-carlo"}
        tests = list(caltest.calibration_test(y_true, y_prob, statistic=combined, **options).components)
        if n_classes == 2:
            tests.append(caltest.calibration_test(y_true, y_prob, statistic=caltest.TCal(), **options))
        if n_classes == 2 and (concentration < 0.5 or i % 10 == 0):  # vague predictions cost 0.1 s each
            tests.append(caltest.hosmer_lemeshow_test(y_true, y_prob))
        for test in tests:
            found.setdefault(getattr(test, "name", "exact law"), []).append(test.pvalue)
    return found


@pytest.mark.parametrize("n_data_sets", [50, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("population", POPULATIONS)
def test_level(population, n_data_sets):
    """At most alpha, within the one-sided exact binomial limit shared by all cases."""
    found = level_pvalues(*POPULATIONS[population], n_data_sets)
    assert len(found) == (10 if population.startswith("two") else 3)
    n_cases = len(POPULATIONS) * len(found) * len(LEVELS)
    for name, pvalues in found.items():
        for alpha in LEVELS:
            limit = stats.binom.ppf(1 - FALSE_ALARM / n_cases, len(pvalues), alpha)
            count = np.sum(np.array(pvalues) <= alpha + 1e-12)
            assert count <= limit, (name, alpha, count)
