"""What is named after a rejection: at which level, in which order, and what is left out."""

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest import calibration_test
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.hypothesis_tests._class_totals import ClassTotals
from caltest.hypothesis_tests._findings import adjust, findings_of_classes, findings_of_event
from caltest.predictions._lenses import Confidence
from caltest.predictions._sample import make_sample
from tests.reference.cases import mostly_slow


def test_adjusted_pvalues_are_twice_their_own_and_never_below_the_gate():
    assert adjust(0.001, [0.02, 0.004, 0.7]).tolist() == [0.04, 0.008, 1.0]
    assert adjust(0.2, 0.01) == 0.2


def findings(prob, event, *, gate=1e-4, alpha=0.05, seed=0, **design):
    """What is named, and the same of the complement, which must agree."""
    found = []
    for one, label in ((prob, event), (1 - prob, ~event)):
        sample = make_sample(label.astype(int), one, **design)
        cells, how = EventCells.of(sample), {"rng": np.random.default_rng(seed), "sample": sample}
        numbers = InTheLarge.of(cells, 1 - alpha / 2), Slope.of(cells, 1 - alpha / 2)
        found.append(findings_of_event(cells, *numbers, gate_pvalue=gate, alpha=alpha, **how))
    one, other = found
    mirrored = {"too low": "too high", "too high": "too low"}
    assert [e.kind for e in one] == [mirrored.get(e.kind, e.kind) for e in other]
    for a, b in zip(one, other, strict=True):
        assert (a.predicted, a.observed, a.n) == pytest.approx((1 - b.predicted, 1 - b.observed, b.n))
        assert (a.low, a.high) == pytest.approx((1 - b.high, 1 - b.low))
        assert a.pvalue == pytest.approx(b.pvalue, rel=0.05)
    return one


def kinds(found):
    return [error.kind for error in found]


def data(true, n=3000, seed=1, low=0.02, high=0.98):
    rng = np.random.default_rng(seed)
    prob = rng.uniform(low, high, n)
    return prob, rng.random(n) < true(prob)


def test_nothing_is_named_without_a_rejection():
    prob, event = data(lambda p: expit(logit(p) - 1))
    assert findings(prob, event, gate=0.06) == ()
    assert kinds(findings(prob, event))[0] == "too high"
    calibrated = data(lambda p: p)
    assert findings(*calibrated) == ()


@pytest.mark.parametrize(
    ("true", "expected"),
    mostly_slow(
        [
            (lambda p: expit(logit(p) + 0.5), ["too low", "wrong in one part"]),
            (lambda p: expit(logit(p) - 0.5), ["too high", "wrong in one part"]),
            (lambda p: expit(0.7 * logit(p)), ["too extreme", "wrong in one part"]),
            (lambda p: expit(1.4 * logit(p)), ["not extreme enough", "wrong in one part"]),
            (lambda p: expit(0.7 * logit(p) + 0.4), ["too low", "too extreme", "wrong in one part"]),
            (lambda p: np.where((p > 0.6) & (p < 0.8), 0.5, p), ["wrong in parts", "too high", "too extreme"]),
            (lambda p: np.where(np.abs(p - 0.5) < 0.1, 1 - p, p), ["wrong in parts"]),
        ]
    ),
)
def test_what_the_first_sentence_is_about_comes_first(true, expected):
    found = findings(*data(true))
    assert kinds(found) == expected
    for error in found:
        low, high = error.interval
        assert low <= error.estimate <= high
        assert error.pvalue <= 0.05
    if "wrong in parts" in expected:
        assert 0.3 < found[0].low < found[0].high < 0.9
    assert all(error.n == 3000 for error in found if not error.kind.startswith("wrong"))


def test_a_region_is_named_with_its_numbers():
    prob, event = data(lambda p: np.where((p > 0.6) & (p < 0.8), 0.5, p), n=10_000)
    region = findings(prob, event)[0]
    inside = (prob > 0.6) & (prob < 0.8)
    assert (region.low, region.high, region.n) == (0.6, 0.8, inside.sum())
    assert (region.predicted, region.observed) == pytest.approx((prob[inside].mean(), event[inside].mean()), abs=1e-4)
    low, high = region.interval
    assert low < region.observed < high < region.predicted


def test_constant_predictions_have_an_average_only():
    prob = np.full(200, 0.3)
    assert kinds(findings(prob, np.arange(200) < 100)) == ["too low"]
    assert findings(prob, np.arange(200) < 62) == ()


def test_one_and_two_observations_and_certain_predictions():
    for prob, event in (([0.3], [1]), ([0.2, 0.9], [1, 0]), ([0.0, 1.0], [0, 1]), ([0.0, 1.0, 0.5], [0, 1, 1])):
        assert findings(np.array(prob), np.array(event, dtype=bool)) == ()
    assert kinds(findings(np.array([1e-6, 0.9]), np.array([True, True]), alpha=0.05)) == ["too low"]


def test_regions_with_groups_need_ten_of_them():
    prob, event = data(lambda p: np.where(p < 0.7, p, p - 0.2), n=2000)
    named = findings(prob, event, groups=np.arange(2000) // 20)
    assert kinds(named)[-1] == "wrong in one part"
    assert named[-1].low >= 0.6
    assert named[-1].n == ((prob > named[-1].low) & (prob < named[-1].high)).sum()
    assert "wrong in one part" not in kinds(findings(prob, event, groups=np.arange(2000) // 250))
    assert findings(prob, event, groups=np.arange(2000) // 500) == ()


def test_labels_that_are_alike_name_no_region():
    """Of predictions of 70 % half of the groups have nearly all events, and the others few."""
    prob, groups = np.tile([0.2, 0.7], 1000), np.arange(2000) // 50
    rng = np.random.default_rng(0)
    event = rng.random(2000) < np.where(prob == 0.7, np.where(groups % 2, 0.95, 0.35), 0.2)
    assert kinds(findings(prob, event))[-1:] == ["wrong in one part"]
    assert findings(prob, event, groups=groups) == ()


@pytest.mark.slow(few_draws=True)
def test_equal_weights_change_nothing_and_others_weight_regions():
    prob, event = data(lambda p: expit(0.7 * logit(p) + 0.5))
    assert findings(prob, event, sample_weight=np.full(3000, 2.0)) == findings(prob, event)
    assert findings(prob, event, groups=np.arange(3000)) == findings(prob, event)
    weight = np.where(np.arange(3000) % 2, 0.5, 1.5)
    weighted = findings(prob, event, sample_weight=weight)
    assert kinds(weighted) == ["too low", "too extreme", "wrong in one part"]
    inside = (prob > weighted[-1].low) & (prob < weighted[-1].high)
    assert weighted[-1].n == inside.sum()
    assert weighted[-1].observed == pytest.approx(np.average(event[inside], weights=weight[inside]))


def of_classes(prob, outcome, *, gate=1e-4, alpha=0.05):
    sample = make_sample(outcome, prob)
    cells = EventCells.of(make_sample(outcome, prob, lens=Confidence()))
    totals = ClassTotals.of(sample.given, sample.outcome)
    return findings_of_classes(cells, InTheLarge.of(cells, 1 - alpha / 2), totals, gate_pvalue=gate, alpha=alpha)


def several(true, n=2000, n_classes=4, seed=2):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.7), n)
    cumulative = np.cumsum(true(prob), axis=1)
    return prob, (rng.random(n)[:, None] * cumulative[:, -1:] > cumulative).sum(axis=1)


def moved(q, k, factor):
    q = q.copy()
    q[:, k] *= factor
    return q


@pytest.mark.parametrize(
    ("true", "expected"),
    [
        (lambda q: q, []),
        (lambda q: q**0.7, ["over-confident"]),
        (lambda q: q**1.5, ["under-confident"]),
        (lambda q: moved(q, 2, 0.5), ["totals"]),
    ],
)
def test_classes_are_about_confidence_first(true, expected):
    prob, outcome = several(true)
    found = of_classes(prob, outcome)
    assert kinds(found)[:1] == expected
    assert of_classes(prob, outcome, gate=0.06) == ()
    permuted = of_classes(prob[:, [3, 1, 0, 2]], np.array([2, 1, 3, 0])[outcome])
    assert kinds(permuted) == kinds(found)
    if expected == ["totals"]:
        assert found[0].classes[0] == 2
        assert permuted[0].classes[0] == 3
        low, high = found[0].interval
        assert low < found[0].observed < high < found[0].predicted


def test_confidence_and_totals_have_half_of_the_level_each():
    prob, outcome = several(lambda q: q)
    sample = make_sample(outcome, prob)
    cells = EventCells.of(make_sample(outcome, prob, lens=Confidence()))
    large = InTheLarge.of(cells, 0.975)
    for confidence, classes, expected in (
        (0.03, [0.01, 0.02], ["totals"]),
        (0.02, [0.03, 0.04], ["over"]),
        (0.02, [0.02, 0.5], ["over", "totals"]),
        (0.03, [0.04, 0.5], []),
    ):
        totals = ClassTotals.of(sample.given, sample.outcome)
        totals.__dict__["pvalue"] = np.array([*classes, *[classes[1]] * 2])
        numbers = InTheLarge(0.9, large.ratio_interval, 0.0, large.intercept_interval, confidence)
        found = findings_of_classes(cells, numbers, totals, gate_pvalue=1e-4, alpha=0.05)
        assert [kind.split("-")[0] for kind in kinds(found)] == expected


POPULATIONS = {
    "calibrated": lambda p: p,
    "too low": lambda p: expit(logit(p) + 0.12),
    "too extreme": lambda p: expit(0.85 * logit(p) - 0.1),
    "both, and a region": lambda p: np.where((p > 0.6) & (p < 0.8), 0.62, expit(0.9 * logit(p) + 0.1)),
}


def verdicts(true, number, alpha):
    """Data sets of 1,000 observations: verdict, and true values of the ratio and the slope."""
    rng = np.random.default_rng(5)
    for seed in range(number):
        prob = expit(rng.normal(0, 1.2, 1000))
        event = rng.random(1000) < true(prob)
        found = calibration_test(event, prob, n_resamples=199, alpha=alpha, rng=seed).verdict
        target = EventCells.of_counts(prob, np.ones(1000), true(prob))
        yield found, (true(prob).mean() / prob.mean(), target.raw_fit[1])


def check_sentences_and_intervals(number, alpha):
    """The interval excludes 1 if and only if the sentence names the error, and both hold together."""
    for name, true in POPULATIONS.items():
        missed = wrong = 0
        for verdict, targets in verdicts(true, number, alpha):
            named = kinds(verdict.findings)
            sides = ("too low", "too high"), ("not extreme enough", "too extreme")
            inside = []
            for row, (above, below), target in zip(verdict.numbers, sides, targets, strict=False):
                low, high = row.interval
                assert (low > 1) == (above in named), (name, row.shown, named)
                assert (high < 1) == (below in named), (name, row.shown, named)
                inside.append(low <= target <= high)
                wrong += (above in named and target <= 1 + 1e-9) or (below in named and target >= 1 - 1e-9)
            missed += not all(inside)
        most = number * alpha + 4 * np.sqrt(number * alpha * (1 - alpha))
        assert missed <= most, (name, missed)
        assert wrong <= most, (name, wrong)


@pytest.mark.slow(few_draws=True)
def test_no_interval_contradicts_the_sentence():
    check_sentences_and_intervals(2, 0.2)


@pytest.mark.parametrize(
    ("number", "alpha"),
    [
        pytest.param(40, 0.05, marks=pytest.mark.slow),
        pytest.param(150, 0.05, marks=pytest.mark.release),
        pytest.param(150, 0.2, marks=pytest.mark.release),
    ],
)
def test_no_interval_contradicts_the_sentence_in_many_data_sets(number, alpha):
    check_sentences_and_intervals(number, alpha)


def test_of_equal_predictions_the_average_is_named():
    """ "These data do not show what" was said where nothing but the average can be wrong."""
    y_true, y_prob = [1] * 19 + [0] * 21, [0.3] * 40
    found = calibration_test(y_true, y_prob, n_resamples=999, rng=0)
    assert 0.02 < found.pvalue < 0.05
    (finding,) = found.findings
    assert (finding.kind, finding.confidence_level) == ("too low", 0.95)
    assert 0.025 < finding.pvalue < 0.05  # twice that is above the level
    assert finding.interval.low > 1
    assert "too low: 30.0 % predicted, 47.5 % observed (observed/expected 1.58, 95 % interval" in found.conclusion
    assert calibration_test([1] * 12 + [0] * 28, y_prob, n_resamples=99, rng=0).findings == ()
