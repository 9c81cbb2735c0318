"""The noise floor is the null distribution of the test, and no label enters it."""

import inspect
import json
import warnings

import numpy as np
import pytest

import caltest as ct
from tests.reference import naive
from tests.reference.examples import draw_labels, plain_statistics
from tests.results.printed import printed

FOUR_SE = 4.0


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([0.5, 1, 1.5], 60)
    return draw_labels(y_prob, rng), y_prob


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("lens", [ct.Canonical(), ct.Confidence()], ids=str)
def test_it_is_the_null_distribution_of_the_test_for_every_statistic(problem, lens):
    y_true, y_prob = problem
    n_refused = 0
    for statistic in plain_statistics():
        options = {"lens": lens, "statistic": statistic, "method": "monte-carlo", "n_resamples": 39, "rng": 3}
        if lens == ct.Canonical() and statistic.n_outcomes == 2:
            with pytest.raises(ValueError, match="two-outcome lens"):
                ct.noise_floor(y_prob, **options)
            n_refused += 1
            continue
        floor, test = ct.noise_floor(y_prob, **options), ct.calibration_test(y_true, y_prob, **options)
        close = {"rtol": 1e-12, "atol": 1e-15, "err_msg": str(statistic)}
        np.testing.assert_allclose(floor.null.values, test.null_distribution, **close)
        found = floor.mean, floor.quantiles[0.05], floor.quantiles[0.95]
        np.testing.assert_allclose(found, (test.noise_floor, *test.noise_interval), **close)
        names = (str(floor.test_statistic), floor.lens, floor.lens_name)
        assert names == (str(test.test_statistic), test.lens, test.lens_name)
    assert (n_refused > 0) == (lens == ct.Canonical())


@pytest.mark.parametrize(
    "statistic", [ct.ECE(ct.EqualWidth(3)), ct.MCE(ct.EqualWidth(3)), ct.HosmerLemeshow()], ids=str
)
def test_exact_distributions_agree_with_enumeration_draws_and_the_test(statistic):
    p = np.random.default_rng(1).uniform(0.1, 0.9, 9)
    exact = ct.noise_floor(p, statistic=statistic)
    values, probability = naive.enumerate_law(statistic, p)
    mean = values @ probability
    std = np.sqrt(np.square(values - mean) @ probability)
    assert (exact.method, exact.n_resamples, exact.numerical_error) == ("exact", 0, 0)
    assert exact.mean == pytest.approx(mean, rel=1e-9)
    assert exact.std == pytest.approx(std, rel=1e-9)
    assert exact.null.sf(mean) == pytest.approx(probability[values >= mean].sum(), rel=1e-9)
    drawn = ct.noise_floor(p, statistic=statistic, method="monte-carlo", rng=0)
    assert abs(drawn.mean - mean) < FOUR_SE * drawn.numerical_error
    kurtosis = (values - mean) ** 4 @ probability / std**4
    error = np.sqrt((kurtosis - 1) / 4 / 9999)  # of a standard deviation, relative to it
    assert drawn.numerical_error == pytest.approx(std / np.sqrt(9999), rel=4 * error)
    test = ct.calibration_test(p < 0.5, p, statistic=statistic, method="exact")
    assert exact.mean == pytest.approx(test.noise_floor, rel=1e-12)


def test_mean_and_quantiles_by_hand():
    """Two predictions of 1/2 in one cell: |k/2 - 1/2| is 0 or 1/2 with probability 1/2 each."""
    floor = ct.noise_floor([0.5, 0.5], statistic=ct.MCE(ct.EqualWidth(1)), quantiles=(0.4, 0.6))
    assert (floor.mean, floor.std) == pytest.approx((0.25, 0.25))
    assert list(floor.quantiles) == [0.4, 0.6]
    assert list(floor.quantiles.values()) == pytest.approx([0, 0.5])


def test_it_needs_no_labels():
    names = set(inspect.signature(ct.noise_floor).parameters)
    assert not names & {"y_true", "classes"}


def test_impossible_placeholders_change_nothing():
    """The first class has probability 0: what stands for the labels must not count as impossible."""
    y_prob = np.column_stack([np.zeros(40), np.full(40, 0.3), np.full(40, 0.7)])
    drawn = ct.noise_floor(y_prob, n_resamples=99, rng=0)
    assert (drawn.mean, drawn.std) == pytest.approx((drawn.null.values.mean(), drawn.null.values.std()))
    half_certain = np.append(np.ones(20), np.linspace(0.2, 0.8, 20))
    exact = ct.noise_floor(half_certain, statistic=ct.HosmerLemeshow())
    assert exact.method == "exact"
    simulated = ct.noise_floor(half_certain, statistic=ct.HosmerLemeshow(), method="monte-carlo", rng=0)
    assert abs(exact.mean - simulated.mean) < FOUR_SE * simulated.numerical_error


def test_lens_region_and_calibration_function(problem):
    _, y_prob = problem
    top = y_prob.max(axis=1)
    statistic = ct.ECE(ct.EqualWidth(5))
    behind = ct.noise_floor(y_prob, lens=ct.Confidence(), statistic=statistic)
    assert behind.mean == pytest.approx(ct.noise_floor(top, statistic=statistic).mean)
    assert (behind.lens, behind.lens_name, behind.n_outcomes) == (ct.Confidence(), "confidence", 2)
    assert ct.noise_floor(y_prob, statistic=ct.KS(), n_resamples=9).lens == ct.Confidence()
    inside = ct.noise_floor(top, statistic=statistic, region=lambda p: p[:, 1] > 0.6)
    assert inside.n_samples == (top > 0.6).sum()
    assert inside.mean == pytest.approx(ct.noise_floor(top[top > 0.6], statistic=statistic).mean)
    sure = ct.Consistency(calibration_function=lambda p: np.eye(2)[np.ones(len(p), dtype=int)])
    assert ct.noise_floor(top, statistic=statistic, resampling=sure).mean == pytest.approx(0, abs=1e-12)


def test_workers_the_generator_and_progress(problem):
    _, y_prob = problem
    seen = []
    one = ct.noise_floor(y_prob, n_resamples=500, rng=4, progress=lambda *parts: seen.append(parts))
    two = ct.noise_floor(y_prob, n_resamples=500, workers=2, rng=4)
    np.testing.assert_array_equal(one.null.values, two.null.values)
    assert ct.noise_floor(y_prob, n_resamples=500, rng=np.random.default_rng(4)).mean == one.mean
    assert seen[-1] == (500, 500)


def test_resampled_predictions_warn_at_the_caller(problem):
    _, y_prob = problem
    scheme = ct.Consistency(resample_predictions=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        floor = ct.noise_floor(y_prob, statistic=ct.ECE(ct.EqualWidth(10)), resampling=scheme, n_resamples=19, rng=0)
    assert {w.filename for w in caught} == {__file__}
    assert [str(w.message) for w in caught] == [str(note) for note in floor.notes]
    assert {note.code for note in floor.notes} <= {"C301", "C302"}
    assert "asymptotic" in floor.origin


PRINTED = """
Noise floor (ECE, whole prediction, 899 observations)
For a calibrated model with these predictions ECE() is 0.02101 on average and at
most 0.0253 in 95 % of data sets.
A value of this size is no sign of miscalibration. A larger value is a reason to
test; the excess over the noise floor does not estimate the miscalibration.

 if the model is calibrated     value
 mean                         0.02101
 standard deviation          0.002676
 5 % quantile                 0.01628
 50 % quantile                0.02109
 95 % quantile                 0.0253

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Distribution: 199 Monte Carlo draws of the labels, predictions fixed (valid at
    every sample size); standard error of the mean 0.0002.
"""
PRINTED_EXACT = """
Noise floor (ECE, class 3 against the rest, 899 observations)
For a calibrated model with these predictions ECE(partition=EqualWidth(10)) is
0.007235 on average.
A value of this size is no sign of miscalibration. A larger value is a reason to
test; the excess over the noise floor does not estimate the miscalibration.

 if the model is calibrated     value
 mean                        0.007235
 standard deviation          0.001598

  Hypothesis: labels follow the predicted probabilities, P(Y = . | g(X)) = g(X),
    behind the lens.
  Distribution: computed, predictions fixed (no Monte Carlo error).
"""


def print_drawn():
    return ct.noise_floor(ct.datasets.load_digits_predictions()[1]["neural_network"], n_resamples=199, rng=0)


def print_exact():
    y_prob = ct.datasets.load_digits_predictions()[1]["neural_network"]
    return ct.noise_floor(y_prob, lens=ct.ClassWise(3), statistic=ct.ECE(ct.EqualWidth(10)), quantiles=())


def test_what_is_printed():
    assert printed(print_drawn()) == PRINTED.strip("\n")
    assert printed(print_exact()) == PRINTED_EXACT.strip("\n")


def test_as_plain_objects(problem):
    floor = ct.noise_floor(problem[1], n_resamples=99, rng=0)
    content = json.loads(json.dumps(floor.to_dict(), allow_nan=False))
    assert content["quantiles"] == {str(q): value for q, value in floor.quantiles.items()}
    assert (content["mean"], content["n_resamples"]) == (floor.mean, 99)
    assert "null" not in content


def test_refusals(problem):
    for error, options, message in (
        (ValueError, {"statistic": ct.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        (
            ValueError,
            {"statistic": ct.statistics.TCal(), "lens": ct.Confidence()},
            "`TCal` combines tests and estimates no error",
        ),
        (
            TypeError,
            {"statistic": ct.ECE},
            r"`statistic` must be a statistic such as ECE\(\) or Omnibus\(\), or its name, got <class",
        ),
        (ValueError, {"statistic": ct.KS(), "lens": ct.Canonical()}, "`KS` needs a two-outcome lens such as"),
        (ValueError, {"method": "exact"}, r'method="exact" needs .* got ECE\(\) with 3 outcomes'),
        (
            ValueError,
            {"method": "asymptotic"},
            "`method` must be one of 'auto', 'exact', 'monte-carlo', got 'asymptotic'",
        ),
        (
            TypeError,
            {"quantiles": 0.5},
            "`quantiles` must be a sequence of probabilities strictly between 0 and 1, got",
        ),
        (ValueError, {"quantiles": (0.5, 95)}, "`quantiles` must lie strictly between 0 and 1, got 95"),
        (TypeError, {"resampling": "bootstrap"}, r"`resampling` must be a Consistency\(...\)"),
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
    ):
        with pytest.raises(error, match=message):
            ct.noise_floor(problem[1], **options)
    with pytest.raises(ValueError, match="`y_prob` must lie in"):
        ct.noise_floor([0.5, 1.5])
