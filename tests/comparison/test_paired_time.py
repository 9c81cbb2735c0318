"""Two models that forecast what is known only after a lead: the difference equals loops, and intervals cover."""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit
from scipy.stats import binom

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from tests.comparison.models import exceedances, shifted, two_models
from tests.reference import in_time
from tests.reference.cases import mostly_nightly

TREE = ct.VarianceTree(max_cells=4, min_leaf=5)


def problem(n=120, lead=4, seed=3):
    prob, label = exceedances(n, lead, 0.8, np.random.default_rng(seed))
    return label, shifted(prob, 0.8), prob, np.arange(n)


def numbers(result):
    return (result.difference, result.standard_error, result.pvalue, *result.confidence_interval)


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (2, True), (4, False)])
def test_difference_and_error_equal_loops(n_classes, weighted):
    n, lead = 100, 4
    y_true, a, b = two_models(n, n_classes, seed=n_classes, calibrated=False)
    rng = np.random.default_rng(n)
    design = {"time": rng.integers(80, size=n), "lead": lead, "sample_weight": rng.random(n) if weighted else None}
    result = ct.paired_test(y_true, a, b, partition=TREE, **design)
    samples = [make_sample(y_true, prob, **design) for prob in (a, b)]
    value, variance = in_time.variance_in_time(samples, TREE)
    assert result.difference == pytest.approx(value, abs=1e-14)
    assert result.standard_error**2 == pytest.approx(variance, rel=1e-9)
    degrees = in_time.number_of_cosines(samples[0].timing.step.tolist(), lead)
    assert result.pvalue == pytest.approx(2 * stdtr(degrees, -abs(result.statistic)))
    reach = stdtrit(degrees, 0.975) * result.standard_error
    assert result.confidence_interval == pytest.approx((value - reach, value + reach))
    assert result.n_windows == pytest.approx((samples[0].timing.step.max() + 1) / lead)


def test_order_unit_and_origin_of_time_do_not_matter_and_models_mirror():
    y_true, a, b, time = problem()
    expected = ct.paired_test(y_true, a, b, time=time, lead=4)
    order = np.random.default_rng(0).permutation(len(time))
    days = [date(2024, 1, 1) + timedelta(days=int(day)) for day in time]
    for same in (
        ct.paired_test(y_true[order], a[order], b[order], time=time[order], lead=4),
        ct.paired_test(y_true, a, b, time=3 * time - 50, lead=12),
        ct.paired_test(y_true, a, b, time=days, lead="4D"),
        ct.paired_test(y_true, a, b, time=time, lead=4, sample_weight=np.full(len(time), 2.0)),
        ct.paired_test(1 - y_true, 1 - a, 1 - b, time=time, lead=4),
    ):
        assert numbers(same) == pytest.approx(numbers(expected), rel=1e-9)
    mirror = ct.paired_test(y_true, b, a, time=time, lead=4)
    low, high = expected.confidence_interval
    assert (mirror.difference, mirror.pvalue) == pytest.approx((-expected.difference, expected.pvalue))
    assert mirror.confidence_interval == pytest.approx((-high, -low))


def test_labels_that_are_known_in_time_change_nothing():
    y_true, a, b, time = problem()
    expected = numbers(ct.paired_test(y_true, a, b))
    assert numbers(ct.paired_test(y_true, a, b, time=time)) == expected
    assert numbers(ct.paired_test(y_true, a, b, time=4 * time, lead=4)) == expected


def test_what_is_printed_names_the_lead_and_the_distribution():
    y_true, a, b, time = problem()
    result = ct.paired_test(y_true, a, b, time=time, lead=4)
    assert (result.lead, result.n_windows) == ("4", 30.0)
    text = str(result).replace("\n", " ")
    assert "Student's with 9 degrees of freedom" in " ".join(text.split())
    assert "predictions that are 4 or more apart" in result.condition.text


def test_few_windows_decide_nothing_and_the_needed_number_is_printed():
    y_true, a, b, time = problem(n=35)
    result = ct.paired_test(y_true, a, b, time=time, lead=4)
    assert (result.pvalue, result.decision, result.smallest_possible_pvalue) == (1.0, "undecidable", 1.0)
    assert not np.isfinite(result.confidence_interval.low)
    assert "8.75 times the lead (4). Fewer than 9" in result.notes[0].text
    assert "span only 8.75 times the lead" in result.conclusion
    assert ct.paired_test(*problem(n=36)[:3], time=np.arange(36), lead=4).pvalue < 1


def test_folds_keep_their_times():
    y_true, a, b, time = problem(n=240)
    folds = np.repeat(["one", "two"], 120)
    result = ct.paired_test(y_true, a, b, time=time, lead=4, folds=folds)
    alone = ct.paired_test(y_true[:120], a[:120], b[:120], time=time[:120], lead=4)
    assert numbers(result.folds[0]) == pytest.approx(numbers(alone))
    assert "4 or more apart have independent errors and no model was made" in " ".join(str(result).split())


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": np.arange(120) // 4}, "`groups` and `time` cannot be taken together"),
        ({"variance": "bootstrap"}, "with `time` take variance="),
        ({"time": None}, "`lead` needs `time`"),
        ({"time": np.arange(119)}, "got 119"),
        ({"lead": 0}, "`lead` must be"),
        ({"lead": 500}, "longer"),
    ],
)
def test_what_cannot_be_taken_is_refused(more, words):
    y_true, a, b, time = problem()
    with pytest.raises(ValueError, match=words):
        ct.paired_test(y_true, a, b, **{"time": time, "lead": 4, **more})


def target(sample, true):
    """The squared error of a model in its cells, where the probabilities of the events are known."""
    index = cells_of(sample, ct.VarianceTree()).index
    count = np.bincount(index)
    mean = np.bincount(index, true[sample.row] - sample.event) / count
    return float(count @ np.square(mean)) / len(index)


def misses(draw, models, n_sets, **design):
    """Return the numbers of sets whose interval misses the difference of the errors, and whose p-value is small."""
    missed = rejected = 0
    for seed in range(n_sets):
        true, label = draw(np.random.default_rng(seed))
        a, b = (model(true) for model in models)
        result = ct.paired_test(label, a, b, **design)
        errors = [target(make_sample(label, prob, **design), true) for prob in (a, b)]
        missed += not result.confidence_interval.low <= errors[0] - errors[1] <= result.confidence_interval.high
        rejected += result.rejected
    return missed, rejected


def batches(weeks, size, lead, rng):
    """Predictions of a week, whose labels share the shocks of the weeks until they are known."""
    from scipy.special import ndtr

    total = np.append(0.0, np.cumsum(rng.standard_normal(weeks + lead)))
    shock = np.repeat((total[lead:] - total[:-lead])[:weeks] / np.sqrt(lead), size)
    score = 0.9 * rng.standard_normal(weeks * size) - 0.5
    latent = np.sqrt(0.05) * shock + np.sqrt(0.95) * rng.standard_normal(weeks * size)
    return ndtr(score), (latent < score).astype(int)


MODELS = {
    "calibrated": (lambda p: p, lambda p: np.clip(np.round(p, 1), 0.02, 0.98)),
    "equally wrong": (lambda p: shifted(p, 0.5), lambda p: shifted(p, -0.5)),
    "one wrong": (lambda p: p, lambda p: shifted(p, 0.5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(("n", "n_sets"), mostly_nightly([(365, 80), (365, 300), (2000, 100)]))
def test_intervals_of_forecasts_contain_the_difference(n, n_sets, models):
    def draw(rng):
        return exceedances(n, 7, 0.8, rng)

    missed, rejected = misses(draw, MODELS[models], n_sets, time=np.arange(n), lead=7)
    most = binom.isf(3e-5, n_sets, 0.05)  # the probability of 4 standard errors
    assert missed <= most
    if models != "one wrong":
        assert rejected <= most


@pytest.mark.slow
@pytest.mark.parametrize(("lead", "n_sets"), mostly_nightly([(1, 60), (1, 200), (4, 200)]))
def test_intervals_of_batches_contain_the_difference(lead, n_sets):
    def draw(rng):
        return batches(52, 40, lead, rng)

    missed, _ = misses(draw, MODELS["equally wrong"], n_sets, time=np.repeat(np.arange(52), 40), lead=lead)
    assert missed <= binom.isf(3e-5, n_sets, 0.05)


@pytest.mark.slow
def test_independence_would_have_missed_it():
    """Without times the intervals of the same forecasts are too short."""

    def draw(rng):
        return exceedances(365, 7, 0.8, rng)

    missed, _ = misses(draw, MODELS["equally wrong"], 200)
    assert missed > binom.isf(3e-5, 200, 0.05)
