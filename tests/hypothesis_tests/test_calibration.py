"""The test of perfect calibration: its result, its p-value, its warnings, its level and its power."""

import json
import warnings
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest.statistics._omnibus import combine_pvalues, tail_pvalues
from tests.reference import naive
from tests.reference.examples import TWO_OUTCOMES, default_statistics, draw_labels

ALPHA = 0.05
FALSE_ALARM = 1e-3
"""Probability that the limits of a simulation are crossed by chance, over all its cases."""


def calibrated(n, n_classes, seed=0, concentration=0.5):
    """Predictions and labels that follow them."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), size=n)
    return draw_labels(prob, rng), prob


def blunted(true_prob, temperature):
    """What a model states whose logits were divided by the temperature: softmax(log r / T)."""
    powered = true_prob ** (1 / temperature)
    return powered / powered.sum(axis=1, keepdims=True)


def lens_for(statistic):
    return caltest.Confidence() if isinstance(statistic, TWO_OUTCOMES) else None


def run(y_true, y_prob, statistic=None, **options):
    """The test by 199 draws, also where its law could be computed."""
    options = {"n_resamples": 199, "rng": 0, "method": "monte-carlo", **options}
    return caltest.calibration_test(y_true, y_prob, statistic=statistic, **options)


def words(report):
    """A report without its line breaks."""
    return " ".join(str(report).split())


@pytest.fixture(scope="module")
def result():
    return run(*calibrated(200, 3))


# The result.


def test_unpacks(result):
    statistic, pvalue = result
    assert statistic == result.statistic
    assert pvalue == result.pvalue
    assert isinstance(statistic, float)
    assert isinstance(pvalue, float)


@pytest.mark.parametrize("name", ["statistic", "pvalue", "null_distribution", "lens", "components", "new"])
def test_is_frozen(result, name):
    with pytest.raises(FrozenInstanceError):
        setattr(result, name, 0)


def test_holds_what_the_design_names(result):
    assert result.n_resamples == 199
    assert result.null_distribution.shape == (199,)
    assert (result.n_samples, result.n_outcomes) == (200, 3)
    assert result.lens == "Canonical()"
    assert result.name == "Omnibus()"
    assert result.method == "monte-carlo"
    assert [part.name for part in result.components] == ["ECE()", "TemperatureScore()", "ClasswiseKS()"]
    assert result.impossible_rows.tolist() == []
    assert result.monte_carlo_error == pytest.approx(np.sqrt(result.pvalue * (1 - result.pvalue) / 199))


def test_size_is_that_of_the_induced_problem():
    y_true, y_prob = calibrated(100, 5)
    result = run(y_true, y_prob, lens=caltest.TopK(2), region=lambda prob: prob[:, 0] > 0.5)
    assert result.n_outcomes == 3
    assert result.n_samples == (y_prob.max(axis=1) > 0.5).sum()
    assert result.lens == "TopK(k=2)"


def test_noise_floor_and_interval_are_those_of_the_null(result):
    for part in (result, *result.components):
        assert part.noise_floor == part.null_distribution.mean()
        ends = np.quantile(part.null_distribution, [0.05, 0.95], method="inverted_cdf")
        assert part.noise_interval == tuple(ends)


def test_statistic_is_the_error_on_the_same_data(any_simple_statistic):
    y_true, y_prob = calibrated(100, 3)
    lens = lens_for(any_simple_statistic)
    result = run(y_true, y_prob, any_simple_statistic, lens=lens)
    expected = caltest.calibration_error(y_true, y_prob, lens=lens, statistic=any_simple_statistic)
    assert result.statistic == expected
    assert result.components[0].statistic == expected
    assert result.components[0].pvalue == result.pvalue


def test_report_tells_everything(result):
    report = words(result)
    for part in (
        "Test of perfect calibration",
        "hypothesis",
        "P(Y = . | g(X)) = g(X) through the lens",
        "Canonical()",
        "200 rows, 3 outcomes",
        "199 redraws of the outcomes, predictions fixed",
        "noise floor",
        "5 % to 95 %",
        "p-value",
        "Omnibus",
        "ECE()",
        "TemperatureScore()",
        "ClasswiseKS()",
        f"{result.pvalue:.4g} from 199 draws (Monte Carlo standard error",
        result.interpretation,
        "Valid if rows are independent",
        "made without these labels",
        "not pooled cross-validation folds",
    ):
        assert part in report
    assert max(map(len, str(result).splitlines())) <= 120
    for component in result.components:
        assert f"{component.statistic:.4g}" in report
        assert f"{component.noise_floor:.4g}" in report
        assert f"{component.pvalue:.4g}" in report


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        (caltest.Consistency(), "valid at every sample size"),
        (caltest.Consistency(resample_predictions=True), "(asymptotic)"),
        (caltest.Consistency(calibration_function=lambda prob: prob), "= <lambda>(g(X)) through the lens"),
    ],
)
def test_report_names_the_null_law(scheme, said):
    report = words(run(*calibrated(500, 2), caltest.ECE(caltest.EqualWidth(2)), resampling=scheme))
    assert said in report


@pytest.mark.parametrize(
    ("pvalue", "word"),
    [(1e-3, "Very strong evidence"), (0.01, "Strong evidence"), (0.05, "Evidence"), (0.051, "No evi")],
)
def test_interpretation(result, pvalue, word):
    other = replace(result, pvalue=pvalue)
    assert other.interpretation.startswith(word)
    assert word in str(other)


def test_smallest_attainable_is_said():
    result = run([1] * 50, [0.5] * 50)
    assert result.pvalue == 1 / 200
    assert "the smallest attainable" in str(result)
    assert "Very strong evidence" not in str(result)
    assert "Strong evidence" in str(result)


def test_html_escapes():
    def loud(prob):
        return (prob[:, 1] > 0.5).astype(int)

    loud.__name__ = "<b>&loud</b>"
    html = run([0, 1, 1], [0.25, 0.5, 0.75], caltest.ECE(loud))._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;loud&lt;/b&gt;" in html
    assert "<table>" in html
    assert "Valid if" in html
    assert "Monte Carlo standard error" in html


def test_html_tells_what_the_report_tells(result):
    html = result._repr_html_()
    for part in ("Omnibus", "ECE()", "TemperatureScore()", "ClasswiseKS()", "Canonical()", f"{result.pvalue:.4g}"):
        assert part in html


def test_dict_is_json(any_default_statistic, any_problem):
    """No NaN, no infinity, nothing that JSON does not know; not even for impossible labels."""
    result = run(any_problem.y_true, any_problem.y_prob, any_default_statistic, lens=lens_for(any_default_statistic))
    back = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert back == result.to_dict()
    for key in (
        "lens",
        "statistic",
        "pvalue",
        "noise_floor",
        "noise_interval",
        "n_resamples",
        "n_samples",
        "components",
    ):
        assert key in back
    assert back["pvalue"] == result.pvalue
    assert back["impossible_rows"] == result.impossible_rows.tolist()


def test_a_value_of_zero_has_no_sign():
    result = run([1, 0], [1.0, 0.0])
    assert result.pvalue == 1
    assert "-0 " not in str(result)


# The p-value.


@pytest.mark.parametrize(
    "values",
    [
        [3.0, 1.0, 2.0],
        [1.0, 1.0, 1.0],
        [0.1 + 0.2, 0.3, 0.3 - 1e-10],
        [1.0, 1.0 + 1e-13, 1.0 - 1e-13, 1.0 - 1e-9],
        [0.0, 0.0, 1.0],
        [-1.0, -1.0 - 1e-13, -2.0, 0.0],
        [np.inf, 1.0, np.inf, 2.0],
        [5.0],
    ],
)
def test_tail_pvalues_equal_the_loops(values):
    np.testing.assert_array_equal(tail_pvalues(np.array(values)), naive.tail_pvalues(values))
    assert tail_pvalues(np.array(values))[0] == naive.pvalue(values[0], values[1:])


def test_tail_pvalues_of_many_rows_with_ties():
    values = np.random.default_rng(0).integers(8, size=(2, 3, 40)) / 7
    values *= 1 + 1e-14 * np.random.default_rng(1).normal(size=values.shape)
    expected = [[naive.tail_pvalues(row) for row in rows] for rows in values]
    np.testing.assert_array_equal(tail_pvalues(values), expected)


@pytest.mark.parametrize(("n_components", "levels"), [(1, 5), (2, 3), (3, 2), (3, 4), (3, 1000), (4, 10)])
def test_combination_equals_the_loops(n_components, levels):
    rng = np.random.default_rng(levels)
    pvalues = tail_pvalues(rng.integers(levels, size=(n_components, 60)).astype(float))
    np.testing.assert_array_equal(combine_pvalues(pvalues), naive.combine_pvalues(pvalues.tolist()))


def test_combination_of_one_is_itself():
    pvalues = tail_pvalues(np.random.default_rng(2).integers(5, size=(1, 30)).astype(float))
    np.testing.assert_array_equal(combine_pvalues(pvalues), pvalues[0])


def test_ties_of_the_smallest_are_broken_by_the_next():
    pvalues = np.array([[0.25, 1.0, 0.25, 0.75], [0.5, 0.25, 1.0, 0.75]])
    # Sorted: (.25, .5), (.25, 1), (.25, 1), (.75, .75).
    np.testing.assert_array_equal(combine_pvalues(pvalues), [0.25, 0.75, 0.75, 1.0])


def test_pvalue_is_the_rank_of_the_observed(any_simple_statistic, any_problem):
    lens = lens_for(any_simple_statistic)
    result = run(any_problem.y_true, any_problem.y_prob, any_simple_statistic, lens=lens)
    if result.impossible_rows.size:
        assert result.pvalue == 1 / 200
    else:
        assert result.pvalue == naive.pvalue(result.statistic, result.null_distribution)


@pytest.mark.parametrize("parts", [None, (caltest.ECE(), caltest.MCE()), (caltest.TemperatureScore(), caltest.ECE())])
def test_combined_pvalue_equals_the_loops(any_problem, parts):
    statistic = caltest.Omnibus() if parts is None else caltest.Omnibus(parts)
    result = run(any_problem.y_true, any_problem.y_prob, statistic, n_resamples=60)
    observed = [np.inf if result.impossible_rows.size else part.statistic for part in result.components]
    values = [[first, *part.null_distribution] for first, part in zip(observed, result.components, strict=True)]
    pvalues = [naive.tail_pvalues(row) for row in values]
    assert [part.pvalue for part in result.components] == [row[0] for row in pvalues]
    assert result.pvalue == naive.combine_pvalues(pvalues)[0]
    smallest = [-np.log10(min(column)) for column in zip(*pvalues, strict=True)]
    np.testing.assert_allclose([result.statistic, *result.null_distribution], smallest, rtol=1e-12, atol=1e-12)


def test_components_are_the_tests_of_their_own():
    """The draws are the same, so each component is what its own test finds."""
    y_true, y_prob = calibrated(150, 4)
    together = run(y_true, y_prob, rng=5)
    for part, statistic in zip(together.components, caltest.Omnibus().parts, strict=True):
        alone = run(y_true, y_prob, statistic, rng=5)
        assert part.pvalue == alone.pvalue
        assert part.statistic == alone.statistic
        np.testing.assert_allclose(part.null_distribution, alone.null_distribution, rtol=1e-12)


def test_never_zero(any_default_statistic):
    y_prob = np.tile([0.9, 0.05, 0.05], (300, 1))
    y_true = np.resize([1, 2], 300)
    result = run(y_true, y_prob, any_default_statistic, lens=lens_for(any_default_statistic), n_resamples=9)
    assert result.pvalue == 0.1


@pytest.mark.parametrize("n", [4, 20, 100])
def test_a_score_of_zero_is_reached_by_every_draw(n):
    """Three of four events at 0.75: U is 0, but for rounding, which shall not decide among values that are all 0."""
    y_true = np.tile([1, 1, 0, 1], n // 4)
    for seed in range(5):
        labels = np.random.default_rng(seed).permutation(y_true)
        assert run(labels, np.full(n, 0.75), caltest.TemperatureScore()).pvalue == 1


def test_row_order_does_not_matter_to_the_observed(any_default_statistic):
    y_true, y_prob = calibrated(80, 4, seed=3)
    order = np.random.default_rng(0).permutation(80)
    lens = lens_for(any_default_statistic)
    one = run(y_true, y_prob, any_default_statistic, lens=lens)
    other = run(y_true[order], y_prob[order], any_default_statistic, lens=lens)
    for mine, others in zip(one.components, other.components, strict=True):
        assert mine.statistic == pytest.approx(others.statistic, rel=1e-12)


def test_method():
    y_true, y_prob = calibrated(50, 3)
    assert run(y_true, y_prob, method="auto").pvalue == run(y_true, y_prob, method="monte-carlo").pvalue
    assert run(y_true, y_prob, method="auto").method == "monte-carlo"
    with pytest.raises(ValueError, match=r"`method` must be one of .*, 'asymptotic', got 'normal'"):
        run(y_true, y_prob, method="normal")


def test_exact_is_refused_where_no_law_is_known(any_default_statistic):
    y_true, y_prob = calibrated(50, 3)
    lens = lens_for(any_default_statistic)
    with pytest.raises(ValueError, match=r'method="exact"'):
        run(y_true, y_prob, any_default_statistic, lens=lens, method="exact")


# Impossible labels.


def with_impossible(place, n=40):
    """Three classes, calibrated but for row 23, whose label was excluded."""
    y_true, y_prob = calibrated(n, 3, seed=1, concentration=2.0)
    y_prob[23] = np.insert([0.75, 0.25], place, 0.0)
    y_true[23] = place
    return y_true, y_prob


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_impossible_label_gives_the_smallest_pvalue(any_default_statistic, place):
    y_true, y_prob = with_impossible(place)
    # Statistics of one probability look at the class itself.
    lens = caltest.ClassWise(place) if isinstance(any_default_statistic, TWO_OUTCOMES) else None
    result = run(y_true, y_prob, any_default_statistic, lens=lens)
    assert result.pvalue == 1 / 200
    assert all(part.pvalue == 1 / 200 for part in result.components)
    assert result.impossible_rows.tolist() == [23]
    assert "row 23" in words(result)
    assert "row 23" in result._repr_html_()
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_contradicted_certainty_behind_a_lens(any_default_statistic):
    y_true, y_prob = calibrated(40, 3, seed=1, concentration=2.0)
    y_prob[[7, 31]] = [0.0, 1.0, 0.0]
    y_true[[7, 31]] = [2, 1]
    result = run(y_true, y_prob, any_default_statistic, lens=caltest.Confidence())
    assert result.pvalue == 1 / 200
    assert result.impossible_rows.tolist() == [7]


def test_impossible_through_one_lens_only():
    y_true, y_prob = with_impossible(2)
    assert run(y_true, y_prob, lens=caltest.ClassWise(2)).impossible_rows.tolist() == [23]
    assert run(y_true, y_prob, lens=caltest.Confidence()).impossible_rows.size == 0
    assert run(y_true, y_prob, lens=caltest.Groups([[0], [1, 2]])).impossible_rows.size == 0


def test_rows_keep_the_callers_numbers_inside_a_region(any_default_statistic):
    y_true, y_prob = with_impossible(0)
    lens = caltest.ClassWise(0) if isinstance(any_default_statistic, TWO_OUTCOMES) else None
    column = 0 if lens is None else 1  # the probability of class 0, which is 0 in row 23
    result = run(y_true, y_prob, any_default_statistic, lens=lens, region=lambda prob: prob[:, column] < 0.4)
    assert result.n_samples == (y_prob[:, 0] < 0.4).sum() < 40
    assert result.impossible_rows.tolist() == [23]
    assert result.pvalue == 1 / 200
    outside = run(y_true, y_prob, any_default_statistic, lens=lens, region=lambda prob: prob[:, column] > 0.1)
    assert outside.impossible_rows.tolist() == []


def test_many_impossible_rows_are_counted_and_some_named():
    y_prob = np.tile([0.0, 0.5, 0.5], (20, 1))
    y_true = np.ones(20, dtype=int)
    y_true[3:13] = 0
    result = run(y_true, y_prob)
    assert result.impossible_rows.tolist() == list(range(3, 13))
    assert "10 label(s) had been given probability 0" in words(result)
    assert "(row 3, 4, 5, 6, 7, ...)" in words(result)


def test_impossible_with_resampled_rows():
    y_true, y_prob = with_impossible(0, n=400)
    statistic = caltest.ECE(caltest.EqualWidth(1))
    scheme = caltest.Consistency(resample_predictions=True)
    result = run(y_true, y_prob, statistic, resampling=scheme)
    assert result.pvalue == 1 / 200
    assert result.impossible_rows.tolist() == [23]


@pytest.mark.parametrize("lens", [caltest.WithinTop(2), caltest.TopK(2)], ids=repr)
def test_impossible_where_rows_sum_to_a_little_more_than_one(any_default_statistic, lens):
    """A drift of 1e-5 in every row, a class that is excluded everywhere, and one label in it."""
    if isinstance(any_default_statistic, TWO_OUTCOMES):
        lens = caltest.WithinTop(2)
    n = 4000 if isinstance(any_default_statistic, caltest.SKCE) else 60_000  # quadratic time
    y_prob = np.tile([0.6, 0.40001, 0.0], (n, 1))
    y_true = np.resize([0, 0, 0, 1, 1], n)
    y_true[5] = 2
    result = run(y_true, y_prob, any_default_statistic, lens=lens, n_resamples=19)
    assert result.impossible_rows.tolist() == [5]
    assert result.pvalue == 1 / 20
    json.dumps(result.to_dict(), allow_nan=False)


# Warnings and notes.


def test_sparse_cells_with_resampled_rows_warn():
    """Statistics.md, section 2: 10 classes, 10 cells per axis, n = 500: size 1.00."""
    scheme = caltest.Consistency(resample_predictions=True)
    y_true, y_prob = calibrated(500, 10)
    with pytest.warns(caltest.CalibrationWarning) as told:
        result = run(y_true, y_prob, caltest.ECE(caltest.EqualWidth(10)), resampling=scheme)
    said = [str(warning.message) for warning in told]
    assert any(
        "of the rows lie in cells of ECE(partition=EqualWidth(n_cells=10)) with fewer than 10 rows" in s for s in said
    )
    assert any("re-fitted partitions of ECE(partition=EqualWidth(n_cells=10)) have" in text for text in said)
    assert all(text in words(result) for text in said)
    # They point at the line of the user's call.
    assert {warning.filename for warning in told} == {__file__}


def test_a_tree_at_its_limit_warns_when_rows_are_resampled():
    """min_leaf = n / 8 exactly: copies of a row hinder the halving, and re-fitted trees are smaller."""
    scheme = caltest.Consistency(resample_predictions=True)
    y_true, y_prob = calibrated(1000, 10)
    with pytest.warns(
        caltest.CalibrationWarning, match=r"re-fitted partitions of .* cells on average, the observed one 8"
    ):
        run(y_true, y_prob, caltest.ECE(caltest.VarianceTree(min_leaf=125)), resampling=scheme)


@pytest.mark.parametrize(
    ("n", "n_classes", "lens", "statistic"),
    [
        (1000, 10, None, None),
        (500, 3, None, None),
        (1000, 10, caltest.Confidence(), None),
        (1000, 2, None, caltest.ECE(caltest.EqualWidth(15))),
        (1000, 10, caltest.Confidence(), caltest.ECE(caltest.EqualMass(15))),
    ],
)
def test_no_warning_where_cells_hold_many_rows(n, n_classes, lens, statistic):
    scheme = caltest.Consistency(resample_predictions=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(*calibrated(n, n_classes), statistic, lens=lens, resampling=scheme)
    assert result.notes == ()


def test_sparse_cells_with_fixed_predictions_are_no_matter():
    result = run(*calibrated(500, 10), caltest.ECE(caltest.EqualWidth(10)))
    assert result.notes == ()


def test_too_little_scatter_is_said():
    """Outcomes exactly as expected in every cell."""
    y_prob = np.repeat([0.2, 0.4, 0.6, 0.8], 50)
    y_true = np.concatenate([np.arange(50) < 50 * p for p in (0.2, 0.4, 0.6, 0.8)])
    for statistic in (caltest.ECE(caltest.EqualWidth(5)), caltest.MCE(caltest.EqualWidth(5)), caltest.KS()):
        result = run(y_true, y_prob, statistic)
        assert result.statistic == pytest.approx(0, abs=1e-12)
        assert result.pvalue > 0.99
        assert any(
            "below the 1 % quantile of its null: less scatter than the predictions claim" in text
            for text in result.notes
        )
        assert "under-confidence, or rows that are not independent" in words(result)
    assert run(y_true, y_prob, caltest.TemperatureScore()).notes == ()
    assert run(*calibrated(200, 2)).notes == ()


@pytest.mark.parametrize(("temperature", "direction"), [(1 / 1.5, "over-confident"), (1.5, "under-confident")])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_direction(temperature, direction, n_classes):
    y_true, true_prob = calibrated(3000, n_classes, concentration=1.0)
    result = run(y_true, blunted(true_prob, temperature))
    assert result.direction == direction
    assert np.sign(result.score) == (1 if direction == "under-confident" else -1)
    assert f"the model is {direction}" in str(result)
    assert run(y_true, blunted(true_prob, temperature), caltest.TemperatureScore()).direction == direction


def test_no_direction_without_evidence_or_without_the_score():
    y_true, y_prob = calibrated(300, 3)
    result = run(y_true, y_prob)
    assert result.direction is None
    sample_score = caltest.calibration_error(y_true, y_prob, statistic=caltest.TemperatureScore())
    assert abs(result.score) == pytest.approx(sample_score, rel=1e-12)
    without = run(y_true, y_prob, caltest.ECE())
    assert without.score is None
    assert without.direction is None


def test_region_restricts_the_test(any_default_statistic):
    y_true, y_prob = calibrated(200, 3)
    inside = y_prob[:, 0] > 0.3
    lens = lens_for(any_default_statistic)
    options = {"lens": caltest.ClassWise(0)} if lens else {}
    column = 1 if lens else 0
    one = run(y_true, y_prob, any_default_statistic, region=lambda prob: prob[:, column] > 0.3, **options)
    other = run(y_true[inside], y_prob[inside], any_default_statistic, **options)
    assert tuple(one) == tuple(other)
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)
    assert one.n_samples == inside.sum()


def test_an_empty_region_is_refused():
    with pytest.raises(ValueError, match=r"`region` must hold at least one row"):
        run(*calibrated(20, 3), region=lambda prob: prob[:, 0] > 2)


# Edges.


@pytest.mark.parametrize("method", ["auto", "monte-carlo"])
def test_predictions_of_zero_and_one_that_come_true(any_default_statistic, method):
    """Observed and null values are all 0: p is 1, nothing scatters too little, and the result says that it is idle."""
    y_true = np.arange(12) % 3
    lens = lens_for(any_default_statistic)
    result = run(y_true, np.eye(3)[y_true], any_default_statistic, lens=lens, method=method)
    assert result.pvalue == 1
    if not isinstance(any_default_statistic, caltest.KDEError):  # smoothing moves certainties from the end
        assert result.components[0].statistic == 0
    assert [note for note in result.notes if "the same value on every draw" not in note] == []
    assert len(result.notes) == len(result.components)
    assert "p-value 1 " in words(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_constant_predictor(any_default_statistic):
    y_prob = np.tile([0.5, 0.25, 0.25], (400, 1))
    lens = lens_for(any_default_statistic)
    right = run(np.resize([0, 1, 0, 2], 400), y_prob, any_default_statistic, lens=lens)
    wrong = run(np.ones(400, dtype=int), y_prob, any_default_statistic, lens=lens)
    assert right.pvalue > ALPHA
    if isinstance(any_default_statistic, caltest.UCE):  # its centre is not that of a calibrated model, as it says
        assert wrong.statistic < wrong.noise_interval[0]
    else:
        assert wrong.pvalue == 1 / 200


@pytest.mark.parametrize("method", ["auto", "monte-carlo"])
@pytest.mark.parametrize("y_prob", [[0.25], [[0.25, 0.75]], [[0.25, 0.5, 0.25]], [[0.0, 1.0]]])
def test_one_row(any_default_statistic, y_prob, method):
    lens = lens_for(any_default_statistic)
    result = run([1], y_prob, any_default_statistic, lens=lens, method=method)
    assert 1 / 200 <= result.pvalue <= 1
    assert result.n_samples == 1
    str(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_two_hundred_classes(any_default_statistic):
    y_true, y_prob = calibrated(300, 300, concentration=0.05)
    result = run(y_true, y_prob, any_default_statistic, lens=lens_for(any_default_statistic))
    assert result.pvalue > 1e-3


# Level and power.

LEVEL_LENSES = {
    "canonical, 3 classes": (3, None),
    "canonical, 10 classes": (10, None),
    "confidence": (10, caltest.Confidence()),
    "class-wise": (10, caltest.ClassWise(3)),
    "top-2": (10, caltest.TopK(2)),
}
LEVEL_SIZES = (100, 1000)


def level_statistics(n_outcomes):
    """The default test, and all that is not in it, combined so that they share the draws.

    Smooth and kernel errors are slow, and have tests of their level in test_smooth and test_kernel_errors.
    """
    combined = caltest.Omnibus()
    others = [
        statistic
        for statistic in default_statistics()
        if statistic.components == (statistic,)
        and statistic not in combined.parts
        and (n_outcomes == 2 or not isinstance(statistic, TWO_OUTCOMES))
        and not isinstance(statistic, caltest.KDEError | caltest.SmoothECE | caltest.SKCE)
    ]
    return combined, caltest.Omnibus(others) if len(others) > 1 else others[0]


def rejections(n, n_classes, lens, n_data_sets):
    """How often each statistic rejects calibrated predictions at ALPHA, of 199 draws for each data set."""
    n_outcomes = n_classes if lens is None else {caltest.TopK(2): 3}.get(lens, 2)
    counts = {}
    for i in range(n_data_sets):
        y_true, y_prob = calibrated(n, n_classes, seed=i)
        for statistic in level_statistics(n_outcomes):
            result = run(y_true, y_prob, statistic, lens=lens, rng=10**6 + i)
            tests = {part.name: part.pvalue for part in result.components} | {result.name: result.pvalue}
            for name, pvalue in tests.items():
                counts[name] = counts.get(name, 0) + (pvalue <= ALPHA)
    return counts


def assert_level(counts, n_data_sets):
    """At most alpha, within the one-sided exact binomial limit shared by all cases."""
    n_cases = len(LEVEL_LENSES) * len(LEVEL_SIZES) * (len(default_statistics()) + 1)
    limit = binom.ppf(1 - FALSE_ALARM / n_cases, n_data_sets, ALPHA)
    assert {"ECE()", "MCE()", "TemperatureScore()", "ClasswiseKS()", "Omnibus()"} <= set(counts)
    assert {name: count for name, count in counts.items() if count > limit} == {}


@pytest.mark.parametrize("n", LEVEL_SIZES)
@pytest.mark.parametrize("case", LEVEL_LENSES)
def test_level(case, n):
    assert_level(rejections(n, *LEVEL_LENSES[case], 400), 400)


@pytest.mark.slow
@pytest.mark.parametrize("n", LEVEL_SIZES)
@pytest.mark.parametrize("case", LEVEL_LENSES)
def test_level_on_many_data_sets(case, n):
    assert_level(rejections(n, *LEVEL_LENSES[case], 2000), 2000)


def count_detected(concentration, n_data_sets):
    """Of models under-confident by temperature 1.2 (10 classes, n = 2,000), those the default test rejects."""
    detected = 0
    for i in range(n_data_sets):
        y_true, true_prob = calibrated(2000, 10, seed=i, concentration=concentration)
        result = run(y_true, blunted(true_prob, 1.2), rng=10**6 + i)
        detected += result.pvalue <= ALPHA
    return detected


@pytest.mark.parametrize(
    ("concentration", "n_data_sets"),
    [(0.5, 100), pytest.param(0.5, 1000, marks=pytest.mark.slow), pytest.param(1.0, 1000, marks=pytest.mark.slow)],
)
def test_power_against_under_confidence(concentration, n_data_sets):
    """Above 0.9: fewer detections than this happen to a power of 0.9 with probability FALSE_ALARM at most."""
    detected = count_detected(concentration, n_data_sets)
    assert detected >= binom.ppf(FALSE_ALARM, n_data_sets, 0.9)


def test_the_tree_error_alone_is_blind_to_under_confidence():
    """Why the default test is not the default error: at most .09."""
    detected = 0
    for i in range(100):
        y_true, true_prob = calibrated(2000, 10, seed=i)
        detected += run(y_true, blunted(true_prob, 1.2), caltest.ECE(), rng=i).pvalue <= ALPHA
    assert detected <= 50
