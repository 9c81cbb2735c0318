"""The adaptive T-Cal test: published errors, a case by hand, its scales, their combination and its power."""

import math

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from tests.hypothesis_tests.problems import STANDARD_ERRORS, calibrated
from tests.reference import naive
from tests.results.printed import printed

# The authors' program: 2, 4, 8, ... cells.
PUBLISHED = {
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


def scale(n_cells):
    """One of the components of T-Cal."""
    return caltest.SquaredL2(caltest.EqualWidth(n_cells), estimator="t-cal")


def values_of(result):
    """The errors of all scales."""
    return [part.statistic for part in result.components]


def pvalues_of(result):
    """The p-values of all scales."""
    return [part.pvalue for part in result.components]


# Values.


def with_a_cell_for_one(y_true, prob, statistic):
    """The authors' program has a separate cell for a confidence of exactly 1 (328 observations of ImageNet).

    The error is a sum over cells, and so over the two regions.
    """
    total = 0.0
    for inside in (prob < 1, prob == 1):
        if inside.any():
            total += inside.sum() * caltest.calibration_error(y_true[inside], prob[inside], statistic=statistic)
    return total / len(prob)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_errors(name, shared_data):
    with np.load(shared_data / f"{name}.npz") as data:
        right, confidence = data["labels"], data["scores"]
    found = [with_a_cell_for_one(right, confidence, scale(2 ** (b + 1))) for b in range(len(PUBLISHED[name]))]
    np.testing.assert_allclose(found, PUBLISHED[name], rtol=0, atol=1e-9)
    result = caltest.hypothesis_tests.tcal_test(right, confidence, n_resamples=39, rng=0)
    n_scales = math.floor(math.log2(len(right)))
    assert len(result.components) == n_scales
    if not (confidence == 1).any():
        np.testing.assert_allclose(values_of(result), PUBLISHED[name][:n_scales], rtol=0, atol=1e-9)
    # The authors' test rejects at 0.05, already at the coarsest scale.
    assert result.pvalue == pvalues_of(result)[0] == 1 / 40


def test_by_hand():
    y_true, y_prob = [0, 1, 1, 0, 1, 1], [0.25] * 3 + [0.75] * 3
    expected = ((25 - 19) / 16 / 3 + (1 - 11) / 16 / 3) / 6
    assert caltest.calibration_error(y_true, y_prob, statistic=scale(2)) == pytest.approx(expected, rel=1e-12)
    result = caltest.hypothesis_tests.tcal_test(y_true, y_prob, n_resamples=19, rng=0)
    assert values_of(result)[0] == pytest.approx(expected, rel=1e-12)
    # One observation in each cell: S^2 is its own square.
    assert caltest.calibration_error([1, 0], [0.25, 0.75], statistic=scale(2)) == 0


def test_all_scales_in_one_pass():
    for n in (2, 3, 7, 8, 100, 1000):
        y_true, y_prob = calibrated(n, 2, seed=n)
        sample = make_sample(y_true, y_prob)
        scales = caltest.statistics.TCal().for_sample(sample)
        assert scales.n_scales == math.floor(math.log2(n)), n
        assert caltest.statistics.TCal(2).for_sample(sample).n_scales == min(2, scales.n_scales), n
        outcomes = np.random.default_rng(0).integers(2, size=(2, 5, n), dtype=sample.outcome.dtype)
        together = scales.evaluate_components(sample, outcomes)
        assert together.shape == (scales.n_scales, 2, 5), n
        apart = [part.evaluate(sample, outcomes) for part in scales.components]
        np.testing.assert_allclose(together, apart, rtol=1e-12, atol=1e-12, err_msg=str(n))


def test_all_scales_of_edges_ties_and_weights():
    event = np.repeat(np.arange(17) / 16, 3)
    y_true = np.random.default_rng(0).integers(2, size=51)
    for weight in (None, np.random.default_rng(1).random(51)):
        sample = make_sample(y_true, event, sample_weight=weight)
        scales = caltest.statistics.TCal().for_sample(sample)
        together = scales.evaluate_components(sample, sample.outcome)
        for part, value in zip(scales.components, together, strict=True):
            expected = naive.evaluate(part, np.column_stack([1 - event, event]), y_true, weight)
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12), (str(part), weight is None)


def test_debiased_errors_have_mean_zero():
    test = caltest.hypothesis_tests.tcal_test(*calibrated(500, 2), n_resamples=4000, rng=1)
    for part in test.components:
        error = part.null.std / math.sqrt(4000)
        assert abs(part.noise_floor) < STANDARD_ERRORS * error, str(part.test_statistic)


# Their combination.


def test_scales_are_combined_as_the_loops_do():
    y_true, y_prob = calibrated(100, 2, seed=4)
    result = caltest.hypothesis_tests.tcal_test(y_true, y_prob, n_resamples=60, rng=0)
    assert result.test_statistic == caltest.statistics.TCal(6)
    assert [part.test_statistic for part in result.components] == [scale(m) for m in (2, 4, 8, 16, 32, 64)]
    values = [[part.statistic, *part.null_distribution] for part in result.components]
    pvalues = [naive.tail_pvalues(row) for row in values]
    np.testing.assert_array_equal(pvalues_of(result), [row[0] for row in pvalues])
    assert result.pvalue == naive.combine_pvalues(pvalues)[0]
    assert result.statistic == pytest.approx(-math.log10(min(pvalues_of(result))), rel=1e-12)


def test_power_against_a_wiggle():
    """Deviations of alternating sign, which coarse cells average away; 8 cells detect them."""
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, size=2000)
    y_true = rng.random(2000) < prob + 0.15 * np.sin(2 * np.pi * 4 * prob)
    result = caltest.hypothesis_tests.tcal_test(y_true, prob, n_resamples=999, rng=0)
    assert result.pvalue <= 0.01
    assert pvalues_of(result)[0] > 0.01


def test_in_a_table():
    y_true, y_prob = calibrated(100, 3)
    lenses = [caltest.Confidence(), caltest.ClassWise(0)]
    table = caltest.calibration_table(
        y_true, y_prob, lenses=lenses, statistic=caltest.statistics.TCal(), n_resamples=39, rng=0
    )
    assert [len(test.components) for test in table.tests] == [6, 6]


# The result.


def test_one_scale_is_one_line():
    result = caltest.hypothesis_tests.tcal_test(*calibrated(5, 2, seed=3), n_resamples=99, rng=0)
    table = """
 cells (bins)  squared error      under calibration (5 % to 95 %)  p-value
 2                  0.001279    -0.001126 (-0.001519 to 0.001279)   0.5100
 4                 2.074e-05  -2.173e-05 (1.994e-05 to 2.074e-05)   0.9000
"""
    assert table in printed(result)
    frame = result.to_frame()
    assert frame.columns.tolist() == ["n_cells", "statistic", "noise_floor", "pvalue"]
    assert frame["n_cells"].tolist() == [2, 4]
    assert frame["statistic"].tolist() == values_of(result)
    assert frame["pvalue"].tolist() == pvalues_of(result)
    assert frame["noise_floor"].tolist() == [part.noise_floor for part in result.components]


# Refusals.


def test_bad_scales_are_refused():
    for kind, wrong, message in [
        (ValueError, 0, "`n_scales` must be an integer >= 1, got 0"),
        (ValueError, 31, "`n_scales` must be an integer from 1 to 30, got 31"),
        (TypeError, 2.5, "`n_scales` must be an integer >= 1, got 2.5"),
    ]:
        with pytest.raises(kind, match=message):
            caltest.statistics.TCal(wrong)
    sample = make_sample([0, 1, 1], [0.25, 0.5, 0.75])
    with pytest.raises(ValueError, match="`n_scales` is too large for 3 observations, got 30; call `for_sample` first"):
        caltest.statistics.TCal().evaluate_components(sample, sample.outcome)
    with pytest.raises(ValueError, match="`TCal` combines tests and estimates no error"):
        caltest.calibration_error([0, 1], [0.25, 0.75], statistic=caltest.statistics.TCal())
