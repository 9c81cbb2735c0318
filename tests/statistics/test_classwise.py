"""Class-wise statistics: what other statistics and the lens of each class say, published values, and what must hold."""

from dataclasses import replace

import numpy as np
import pytest

import caltest
from caltest import ClassWise, EqualMass, EqualWidth
from caltest.predictions._sample import make_sample
from caltest.statistics import ACE, ECE, KS, SCE, UCE, Classwise, ConvexECE, KDEError, SmoothECE
from tests.reference.cases import check_refused, failures
from tests.statistics.networks import NETWORKS, network
from tests.statistics.problems import LEVELS, calibrated, error, most_rejections

HALFWAY = EqualMass(15, cut="halfway")
# `ECE_KDE_classwise_triweight_bw0.05` of goldens.json; columns are NETWORKS. Those of cells are in test_convex.py.
KERNEL_VALUES = (0.0359706943813, 0.0357106645437, 0.0372981733469, 0.0357270796138)
# By loops over the classes, of VGG-16: mean and maximum.
BUNDLED = {
    ECE(HALFWAY): (0.0038583571901, 0.0081275780),
    ConvexECE(HALFWAY): (0.0076721227528, 0.0161787551),
    KDEError(0.05): (0.0368903430016, 0.0391549594),
    KDEError(): (0.01369723689219, 0.0287545761),
}


@pytest.mark.parametrize("column", range(4), ids=NETWORKS)
def test_released_values(shared_data, column):
    statistic = Classwise(KDEError(0.05, grid=(-2.5, 3.5, 2**14)))  # grid of the authors' program
    assert error(*network(shared_data, column), statistic) == pytest.approx(KERNEL_VALUES[column], abs=1e-9)


@pytest.mark.slow(few_draws=True)
def test_values_of_bundled_predictions():
    bundled = caltest.datasets.load_cifar10_vgg16()
    for statistic, (mean, largest) in BUNDLED.items():
        assert error(*bundled, Classwise(statistic)) == pytest.approx(mean, abs=1e-10), statistic
        assert error(*bundled, Classwise(statistic, "max")) == pytest.approx(largest, abs=1e-10), statistic


SAME = {
    "SCE": (Classwise(ECE(EqualWidth(15))), SCE()),
    "ACE": (Classwise(ECE(EqualMass(15))), ACE(cell_weight="observations")),
}


@pytest.mark.parametrize("groups", [None, np.arange(120) // 4], ids=["independent", "groups"])
def test_members_that_have_a_name(groups):
    y_true, y_prob = calibrated(120, 4)

    def check(pair):
        one, two = (
            caltest.calibration_test(y_true, y_prob, statistic=statistic, groups=groups, n_resamples=99, rng=1)
            for statistic in pair
        )
        assert one.statistic == pytest.approx(two.statistic, rel=1e-12)
        assert one.noise_floor == pytest.approx(two.noise_floor, rel=1e-12)
        assert one.pvalue == two.pvalue

    assert failures(SAME, check) == {}


INNER = {
    str(one): one for one in (ECE(), ConvexECE(), KDEError(), KDEError(0.1, reference="mean"), KS(), SmoothECE(), UCE())
}


def test_the_lens_of_each_class_says_the_same():
    y_true, y_prob = calibrated(100, 4, concentration=0.05)
    weight = 1.0 + np.arange(100) % 3

    def check(inner):
        each = [error(y_true, y_prob, inner, ClassWise(k), sample_weight=weight) for k in range(4)]
        mean, largest = Classwise(inner), Classwise(inner, "max")
        assert error(y_true, y_prob, mean, sample_weight=weight) == pytest.approx(np.mean(each), rel=1e-12)
        assert error(y_true, y_prob, largest, sample_weight=weight) == pytest.approx(max(each), rel=1e-12)
        found = largest.derived(make_sample(y_true, y_prob, sample_weight=weight), max(each), None)
        np.testing.assert_allclose(found["class_values"], each, rtol=1e-12)

    assert failures(INNER, check) == {}


def test_weights_of_one_change_nothing():
    y_true, y_prob = calibrated(200, 3, concentration=0.1)
    for statistic in (Classwise(KDEError()), Classwise(KS(), "max")):
        plain, weighted = (
            caltest.calibration_test(y_true, y_prob, statistic=statistic, sample_weight=w, n_resamples=9, rng=0)
            for w in (None, np.full(200, 1.0))
        )
        assert (plain.statistic, plain.noise_floor) == (weighted.statistic, weighted.noise_floor)


def test_the_complement_mirrors_and_two_outcomes_are_two_classes():
    y_true, y_prob = calibrated(150, 2, concentration=0.1)
    event = y_prob[:, 1].round(3)
    for inner in INNER.values():
        for combine in ("mean", "max"):
            value = error(y_true, event, Classwise(inner, combine))
            assert error(1 - y_true, 1 - event, Classwise(inner, combine)) == pytest.approx(value, rel=1e-9), inner


def test_what_the_classes_keep_does_not_change_the_values(monkeypatch):
    y_true, y_prob = calibrated(90, 5, concentration=0.1)
    statistic = Classwise(KDEError())
    sample = make_sample(y_true, y_prob)
    kept = statistic.evaluate(sample, np.stack([y_true, y_true[::-1]]))
    monkeypatch.setattr(type(sample), "is_large", True)
    np.testing.assert_array_equal(
        statistic.evaluate(make_sample(y_true, y_prob), np.stack([y_true, y_true[::-1]])), kept
    )


def test_a_known_calibration_function_acts_before_the_class():
    y_true, y_prob = calibrated(80, 3)
    sample = replace(make_sample(y_true, y_prob), given_null=y_prob[:, ::-1])
    for inner in (KDEError(0.1, reference="mean"), KDEError(0.002), ECE(EqualWidth(5))):
        found = Classwise(inner).evaluate(sample, sample.outcome[None])
        each = []
        for k in range(3):
            part = make_sample(y_true, y_prob, lens=ClassWise(k))
            part = replace(part, given_null=ClassWise(k).induced(y_prob[:, ::-1])[part.row])
            each.append(inner.evaluate(part, part.outcome[None]))
        np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-12)


TWO = "`statistic` must be defined for two outcomes, such as KDEError(), got"
REFUSED = {
    "three outcomes": ((ECE(caltest.SimplexGrid(3)),), ValueError, f"{TWO} ECE(partition=SimplexGrid(3))."),
    "class-wise already": ((Classwise(),), ValueError, f"{TWO} Classwise()."),
    "no value": ((caltest.Omnibus(),), ValueError, "`Omnibus` combines tests and estimates no error"),
    "a number": ((3,), TypeError, "`statistic` must be a statistic such as ECE() or Omnibus(), or its name, got 3."),
    "another word": ((ECE(), "sum"), ValueError, "`combine` must be one of 'mean', 'max', got 'sum'."),
}


def test_bad_parameters_are_refused():
    def check(case):
        arguments, kind, message = case
        check_refused(Classwise, kind, message, *arguments)

    assert failures(REFUSED, check) == {}


def test_what_needs_labels_or_observations_is_refused():
    y_true, y_prob = calibrated(40, 3)
    with pytest.raises(ValueError, match=r"`groups` needs a statistic of the residuals.*got Classwise\(statistic=KDE"):
        caltest.calibration_test(y_true, y_prob, statistic=Classwise(KDEError()), groups=np.arange(40) // 2)
    state = caltest.streaming.CalibrationState(3, caltest.Canonical()).update(y_true, y_prob)
    with pytest.raises(ValueError, match=r"CalibrationState\(n_classes, lens=ClassWise\(k\)\)"):
        state.error(statistic=Classwise())


def test_it_is_named_in_a_text():
    y_true, y_prob = calibrated(40, 3)
    assert error(y_true, y_prob, "Classwise(KDEError(), 'max')") == error(y_true, y_prob, Classwise(KDEError(), "max"))
    assert str(Classwise("KS()", "max")) == "Classwise(statistic=KS(), combine='max')"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("statistic", "n_sets"),
    [(Classwise(KDEError()), 1000), (Classwise(KS(), "max"), 1000), (Classwise(SmoothECE()), 250)],
    ids=str,
)
def test_the_level_is_kept(statistic, n_sets):
    pvalues = []
    for seed in range(n_sets):
        y_true, y_prob = calibrated(150, 4, seed, concentration=0.3)
        pvalues.append(caltest.calibration_test(y_true, y_prob, statistic=statistic, n_resamples=99, rng=seed).pvalue)
    rejections = [sum(p <= level for p in pvalues) for level in LEVELS]
    assert (rejections <= most_rejections(n_sets, 9)).all(), rejections
