"""Bootstrap intervals against SciPy's, their cautions, and what they print."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import caltest as ct
from caltest.predictions._sample import make_sample
from tests.reference.cases import mostly_slow
from tests.reference.examples import components_of, default_statistics, draw_labels, thirds
from tests.results.printed import printed

CUT = ct.ECE(ct.EqualWidth(5))


def problem(n_classes, n=60, seed=0):
    """Labels that follow other probabilities than the predicted ones."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return draw_labels(0.7 * prob + 0.3 * np.roll(prob, 1, axis=1), rng), prob


@pytest.mark.parametrize("kind", mostly_slow(["percentile", "basic", "BCa"]))
def test_ends_are_those_of_scipy_for_the_same_distribution(kind):
    y, prob = problem(2, 60)
    for statistic in (CUT, ct.ECE(), ct.SquaredL2()):
        ours = ct.bootstrap_interval(y, prob, statistic=statistic, kind=kind, n_resamples=199, rng=0)
        theirs = stats.bootstrap(
            (prob[:, 1], y),
            lambda p, y, statistic=statistic: ct.calibration_error(y, p, statistic=statistic),
            paired=True,
            vectorized=False,
            method=kind,
            n_resamples=0,
            bootstrap_result=SimpleNamespace(bootstrap_distribution=ours.bootstrap_distribution),
        )
        np.testing.assert_allclose(tuple(ours), theirs.confidence_interval, rtol=1e-10, err_msg=str(statistic))
        assert ours.standard_error == pytest.approx(theirs.standard_error)
        assert ours.estimate == ct.calibration_error(y, prob, statistic=statistic)
        assert (ours.bias_correction is None) == (ours.acceleration is None) == (kind != "BCa")


@pytest.mark.slow(few_draws=True)
def test_the_distribution_is_that_of_scipy():
    y, prob = problem(2, 100)
    ours = ct.bootstrap_interval(y, prob, statistic=CUT, kind="percentile", n_resamples=1999, rng=0)
    theirs = stats.bootstrap(
        (prob[:, 1], y),
        lambda p, y: ct.calibration_error(y, p, statistic=CUT),
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=399,
        rng=np.random.default_rng(0),
    )
    assert stats.ks_2samp(ours.bootstrap_distribution, theirs.bootstrap_distribution).pvalue > 6e-5  # 4 sd


@pytest.mark.slow(few_draws=True)
def test_groups_of_observations_give_nearly_the_acceleration_of_single_ones():
    """With 200 groups the acceleration has a standard error of sqrt(15) / 1200."""
    y, prob = problem(2, 1000)
    statistic = ct.ECE(ct.EqualWidth(3))
    sample = make_sample(y, prob)
    single = [
        statistic.evaluate(kept, kept.outcome)
        for kept in (sample.take(np.delete(np.arange(1000), i)) for i in range(1000))
    ]
    u = np.mean(single) - single
    grouped = ct.bootstrap_interval(y, prob, statistic=statistic, n_resamples=9, rng=0).acceleration
    assert abs(grouped - (u**3).sum() / (6 * (u**2).sum() ** 1.5)) < 4 * np.sqrt(15) / 1200


def test_the_acceleration_with_groups_is_that_of_copied_observations():
    """All observations but those of one group, for groups of different sizes, cells fitted again and weights."""
    y, prob = problem(3, 90)
    groups, weight = np.arange(90) ** 2 % 17, 1.0 + np.arange(90) % 4
    for options in ({}, {"groups": groups}, {"groups": groups, "sample_weight": weight}):
        found = ct.bootstrap_interval(y, prob, n_resamples=9, rng=0, **options)
        unit, weights = options.get("groups", np.arange(90)), options.get("sample_weight", np.ones(90))
        kept = [unit != one for one in np.unique(unit)]
        left = [ct.calibration_error(y[k], prob[k], sample_weight=weights[k]) for k in kept]
        u = np.mean(left) - left
        assert found.acceleration == pytest.approx((u**3).sum() / (6 * (u**2).sum() ** 1.5), rel=1e-9)


def test_a_seed_and_any_number_of_workers_give_the_same_answer():
    y, prob = problem(3, 80)
    one = ct.bootstrap_interval(y, prob, n_resamples=99, rng=5)
    two = ct.bootstrap_interval(y, prob, n_resamples=99, rng=np.random.default_rng(5), workers=2)
    np.testing.assert_array_equal(one.bootstrap_distribution, two.bootstrap_distribution)
    assert tuple(one) == tuple(two) == tuple(one.confidence_interval)
    assert one.acceleration == two.acceleration != 0
    assert one.n_resamples == 99


def test_progress_is_reported():
    seen = []
    ct.bootstrap_interval(*problem(3, 80), n_resamples=200, rng=5, progress=lambda *parts: seen.append(parts))
    assert seen[-1] == (200, 200)
    assert seen == sorted(seen)


@pytest.mark.slow(few_draws=True)
def test_every_statistic_has_a_bootstrap_interval():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, 60)
    y = rng.random(60) < prob
    for statistic in [*components_of(default_statistics()), ct.MCE(thirds)]:
        found = ct.bootstrap_interval(y, prob, statistic=statistic, n_resamples=19, kind="percentile", rng=0)
        low, high = found
        assert low <= high, statistic
        assert not found.notes or {note.code for note in found.notes} <= {"C603"}, statistic


def test_default_lens_region_and_classes():
    y, prob = problem(3, 200)
    options = {"n_resamples": 19, "rng": 0}
    assert ct.bootstrap_interval(y, prob, **options).lens == ct.Canonical()
    assert ct.bootstrap_interval(y, prob, statistic=ct.KS(), **options).lens == ct.Confidence()
    named = ct.bootstrap_interval(np.array(list("abc"))[y], prob, classes=list("abc"), lens=ct.ClassWise(2), **options)
    assert named.lens_name == "class c against the rest"
    inside = prob[:, 0] > 0.3
    part = ct.bootstrap_interval(y, prob, region=lambda p: p[:, 0] > 0.3, **options)
    assert tuple(part) == tuple(ct.bootstrap_interval(y[inside], prob[inside], **options))


def test_nothing_varies_or_the_estimate_lies_outside():
    constant = ct.bootstrap_interval([1], [0.5], n_resamples=9, rng=0)
    assert (*constant, constant.acceleration, constant.standard_error) == (0.5, 0.5, 0, 0)
    assert [note.code for note in constant.notes] == ["C602"]
    rng = np.random.default_rng(2)
    prob = rng.random(2000)
    many = ct.ECE(ct.EqualWidth(200))
    far = ct.bootstrap_interval(rng.random(2000) < prob, prob, statistic=many, n_resamples=99, rng=0)
    assert far.estimate < far.bootstrap_distribution.min()
    (note,) = far.notes
    assert (note.code, note.text[:56]) == ("C603", "100 % of the bootstrap values lie above the estimate, so")
    assert np.isfinite(tuple(far)).all()


def test_an_infinite_estimate_has_no_bootstrap_interval():
    """A label had probability 0: NaN instead of warnings, and JSON without infinities."""
    found = ct.bootstrap_interval(
        [1, 1, 1, 0], [0.0, 0.5, 0.5, 0.5], statistic=ct.TemperatureScore(), n_resamples=19, rng=0
    )
    assert found.estimate == np.inf
    assert np.isnan([*found, found.standard_error]).all()
    assert found.conclusion == "TemperatureScore() is inf, so it has no bootstrap interval."
    assert [note.code for note in found.notes] == ["C601"]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["estimate"] is plain["confidence_interval"]["low"] is plain["standard_error"] is None


def test_refusals():
    y, prob = problem(2)
    for error, options, message in (
        (ValueError, {"kind": "bca"}, "`kind` must be one of 'BCa', 'percentile', 'basic', got 'bca'"),
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        (ValueError, {"confidence_level": 95}, "`confidence_level` must lie strictly between 0 and 1, got 95"),
        (ValueError, {"statistic": ct.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        (TypeError, {"statistic": 3}, "`statistic` must be a statistic"),
        (TypeError, {"progress": 3, "n_resamples": 9}, "`progress` must be True, False or a function"),
    ):
        with pytest.raises(error, match=message):
            ct.bootstrap_interval(y, prob, **options)


PRINTED = """
Bootstrap interval (ECE, whole prediction, 899 observations)
ECE() is 0.04799. Between data sets of 899 observations it varies from 0.03948
to 0.05583 (95 % BCa bootstrap interval, standard error 0.0057).

  This interval describes how much the estimate varies. It is not a confidence
    interval for the true miscalibration: most estimates are biased, upwards
    near calibration, and resampling adds the bias once more. For the
    miscalibration itself use l2_interval.
  The BCa interval is shifted by the bias that resampling shows, so it need not
    contain the estimate.
  Bootstrap distribution: 99 samples of the observations with replacement.
"""


def print_it(kind="BCa"):
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.bootstrap_interval(y_true, models["logistic_regression"], n_resamples=99, kind=kind, rng=0)


def test_what_is_printed():
    assert printed(print_it()) == PRINTED.strip("\n")
    found = print_it("percentile")
    assert "need not contain the estimate" not in printed(found)
    assert found.to_dict()["n_resamples"] == 99
