"""The noise floor is the null law of the test, and no label enters it."""

import inspect
import json
import warnings

import numpy as np
import pytest

import caltest as ct
from tests.reference import naive
from tests.reference.examples import TWO_OUTCOMES, draw_labels

FOUR_SE = 4.0


def needs_two_outcomes(statistic):
    one_axis = ct.EqualMass | ct.Edges
    return isinstance(statistic, TWO_OUTCOMES) or isinstance(getattr(statistic, "partition", None), one_axis)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([0.5, 1, 1.5], 60)
    return draw_labels(y_prob, rng), y_prob


@pytest.mark.parametrize("lens", [None, ct.Confidence()], ids=str)
def test_is_the_null_law_of_the_test_for_every_statistic(problem, any_statistic, lens):
    y_true, y_prob = problem
    options = {"lens": lens, "statistic": any_statistic, "method": "monte-carlo", "n_resamples": 39, "rng": 3}
    if lens is None and needs_two_outcomes(any_statistic):
        with pytest.raises(ValueError, match="two-outcome lens"):
            ct.noise_floor(y_prob, **options)
        return
    floor, test = ct.noise_floor(y_prob, **options), ct.calibration_test(y_true, y_prob, **options)
    np.testing.assert_allclose(floor.null.values, test.null_distribution, rtol=1e-12, atol=1e-15)
    assert floor.mean == pytest.approx(test.noise_floor, rel=1e-12, abs=1e-15)
    assert (floor.quantiles[0.05], floor.quantiles[0.95]) == pytest.approx(test.noise_interval, rel=1e-12, abs=1e-15)
    assert (floor.name, floor.lens) == (test.name, test.lens)


@pytest.mark.parametrize("statistic", [ct.ECE(ct.EqualWidth(3)), ct.MCE(ct.EqualWidth(3)), ct.HosmerLemeshow()])
def test_exact_laws_agree_with_enumeration_draws_and_the_test(statistic):
    p = np.random.default_rng(1).uniform(0.1, 0.9, 9)
    exact = ct.noise_floor(p, statistic=statistic)
    values, probability = naive.enumerate_law(statistic, p)
    mean = values @ probability
    std = np.sqrt(np.square(values - mean) @ probability)
    assert (exact.method, exact.n_resamples, exact.monte_carlo_error) == ("exact", 0, 0)
    assert exact.mean == pytest.approx(mean, rel=1e-9)
    assert exact.std == pytest.approx(std, rel=1e-9)
    assert exact.null.sf(mean) == pytest.approx(probability[values >= mean].sum(), rel=1e-9)
    drawn = ct.noise_floor(p, statistic=statistic, method="monte-carlo", rng=0)
    assert abs(drawn.mean - mean) < FOUR_SE * drawn.monte_carlo_error
    assert drawn.monte_carlo_error == pytest.approx(std / np.sqrt(9999), rel=0.05)
    test = ct.calibration_test(p < 0.5, p, statistic=statistic, method="exact")
    assert exact.mean == pytest.approx(test.noise_floor, rel=1e-12)


def test_mean_and_quantiles_by_hand():
    """Two rows of 1/2 in one cell: |k/2 - 1/2| is 0 or 1/2 with probability 1/2 each."""
    floor = ct.noise_floor([0.5, 0.5], statistic=ct.MCE(ct.EqualWidth(1)), quantiles=(0.4, 0.6))
    assert (floor.mean, floor.std) == pytest.approx((0.25, 0.25))
    assert list(floor.quantiles) == [0.4, 0.6]
    assert list(floor.quantiles.values()) == pytest.approx([0, 0.5])


def test_needs_no_labels():
    names = set(inspect.signature(ct.noise_floor).parameters)
    assert not names & {"y_true", "classes"}


def test_impossible_placeholders_change_nothing():
    """The first class has probability 0: what stands for the labels must not count as impossible."""
    y_prob = np.column_stack([np.zeros(40), np.full(40, 0.3), np.full(40, 0.7)])
    drawn = ct.noise_floor(y_prob, n_resamples=99, rng=0)
    assert (drawn.mean, drawn.std) == pytest.approx((drawn.null.values.mean(), drawn.null.values.std()))
    exact = ct.noise_floor(np.append(np.ones(20), np.linspace(0.2, 0.8, 20)), statistic=ct.HosmerLemeshow())
    assert exact.mean == pytest.approx(np.count_nonzero(exact.null.group_means))


def test_lens_region_and_calibration_function(problem):
    _, y_prob = problem
    top = y_prob.max(axis=1)
    statistic = ct.ECE(ct.EqualWidth(5))
    behind = ct.noise_floor(y_prob, lens=ct.Confidence(), statistic=statistic)
    assert behind.mean == pytest.approx(ct.noise_floor(top, statistic=statistic).mean)
    assert (behind.lens, behind.n_outcomes) == ("Confidence()", 2)
    inside = ct.noise_floor(top, statistic=statistic, region=lambda p: p[:, 1] > 0.6)
    assert inside.n_samples == (top > 0.6).sum()
    assert inside.mean == pytest.approx(ct.noise_floor(top[top > 0.6], statistic=statistic).mean)
    sure = ct.Consistency(calibration_function=lambda p: np.eye(2)[np.ones(len(p), dtype=int)])
    assert ct.noise_floor(top, statistic=statistic, resampling=sure).mean == pytest.approx(0, abs=1e-12)


def test_workers_and_the_generator(problem):
    _, y_prob = problem
    one, two = (ct.noise_floor(y_prob, n_resamples=500, workers=k, rng=4) for k in (1, 2))
    np.testing.assert_array_equal(one.null.values, two.null.values)
    assert ct.noise_floor(y_prob, n_resamples=500, rng=np.random.default_rng(4)).mean == one.mean


def test_resampled_predictions_warn_at_the_caller(problem):
    _, y_prob = problem
    rows = ct.Consistency(resample_predictions=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        floor = ct.noise_floor(y_prob, statistic=ct.ECE(ct.EqualWidth(10)), resampling=rows, n_resamples=19, rng=0)
    assert {w.filename for w in caught} == {__file__}
    assert [str(w.message) for w in caught] == list(floor.notes)
    assert "asymptotic" in floor.null_law


def test_says_it_in_words_and_in_json(problem):
    floor = ct.noise_floor(problem[1], n_resamples=99, rng=0)
    text = str(floor)
    for part in ("ECE()", "Canonical()", "60 rows, 3 outcomes", "95 % below", "Monte Carlo standard error"):
        assert part in text
    assert f"is {floor.mean:.4g} on average" in floor.reading
    assert "<table>" in floor._repr_html_()
    assert "ECE()" in floor._repr_html_()
    content = json.loads(json.dumps(floor.to_dict(), allow_nan=False))
    assert content["quantiles"] == {str(q): value for q, value in floor.quantiles.items()}
    assert (content["mean"], content["n_resamples"]) == (floor.mean, 99)
    assert "all data sets" not in ct.noise_floor(problem[1], quantiles=(), n_resamples=9, rng=0).reading


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"statistic": ct.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        ({"statistic": ct.TCal(), "lens": ct.Confidence()}, "`TCal` combines tests and estimates no error"),
        ({"statistic": ct.ECE}, r"`statistic` must be a Statistic such as ECE\(\) or Omnibus\(\), got <class"),
        ({"statistic": ct.KS()}, r"`KS` needs a two-outcome lens such as Confidence\(\), got 3 outcomes"),
        ({"method": "exact"}, r'method="exact" needs .* got ECE\(\) with 3 outcomes'),
        ({"method": "asymptotic"}, "`method` must be one of 'auto', 'exact', 'monte-carlo', got 'asymptotic'"),
        ({"quantiles": 0.5}, "`quantiles` must be a sequence of probabilities strictly between 0 and 1, got 0.5"),
        ({"quantiles": (0.5, 95)}, "`quantiles` must lie strictly between 0 and 1, got 95"),
        ({"resampling": ct.Bootstrap()}, r"`resampling` must be a Consistency\(...\)"),
        ({"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
    ],
)
def test_bad_arguments(problem, keywords, message):
    with pytest.raises(ValueError, match=message):
        ct.noise_floor(problem[1], **keywords)


def test_bad_predictions():
    with pytest.raises(ValueError, match="`y_prob` must lie in"):
        ct.noise_floor([0.5, 1.5])
