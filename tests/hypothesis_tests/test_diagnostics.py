"""Notes of a test, its direction, and warnings before the work starts."""

import warnings

import numpy as np
import pytest

import caltest
from caltest.hypothesis_tests._diagnostics import enough_draws, few_draws_notes, impossible_note
from caltest.predictions._sample import make_sample
from caltest.resampling import correct_pvalues
from caltest.results import CalibrationWarning
from caltest.results._finding import Subject
from tests.hypothesis_tests.problems import blunted, calibrated, codes, sharpened, words

ROWS = caltest.Consistency(resample_predictions=True)


def run(y_true, y_prob, statistic=None, **options):
    options = {"n_resamples": 199, "rng": 0, "method": "monte-carlo", **options}
    return caltest.calibration_test(y_true, y_prob, statistic=statistic, **options)


# Another hypothesis than calibration.


def test_the_size_is_that_of_the_miscalibration_whatever_the_hypothesis_is():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), size=1000)
    swapped = caltest.Consistency(calibration_function=lambda prob: np.roll(prob, 1, axis=1))
    y_true = np.minimum((np.cumsum(np.roll(y_prob, 1, axis=1), axis=1) < rng.random((1000, 1))).sum(axis=1), 2)
    result = run(y_true, y_prob, resampling=swapped)
    assert result.l2_error.root_interval == caltest.l2_interval(y_true, y_prob).root_interval
    assert result.l2_error.root > 0.5
    assert result.conclusion.startswith("The hypothesis is not rejected")
    assert result.conclusion.endswith("This does not prove it.")
    assert "a model as in the hypothesis with these predictions has" in words(result)
    assert "Calibration is rejected" in run(y_true, y_prob).conclusion


# Direction.


def test_a_shift_is_one_of_the_frequency():
    """The joint score test of Cox detects it, and the slope is right."""
    rng = np.random.default_rng(1)
    logit = rng.normal(0, 1.5, 1000)
    y_true = rng.random(1000) < 1 / (1 + np.exp(0.6 - logit))
    result = run(y_true, 1 / (1 + np.exp(-logit)), caltest.statistics.CoxScore())
    assert result.rejected
    assert result.direction == "too high"  # and not too extreme
    assert "slope" not in result.conclusion
    assert result.conclusion.startswith("Predicted risks are too high: 48.6 % predicted, 39.6 % observed (")


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("temperature", "direction", "of_event"),
    [(1 / 1.5, "over-confident", "too extreme"), (1.5, "under-confident", "not extreme enough")],
)
def test_direction(temperature, direction, of_event):
    """Differences between the risks of an event are overstated; the confidence in several classes is too high."""
    for n_classes in (2, 3, 10):
        y_true, true_prob = calibrated(3000, n_classes, concentration=1.0)
        predicted = blunted(true_prob, temperature)
        result = run(y_true, predicted)
        expected = of_event if n_classes == 2 else direction
        assert result.direction == expected, n_classes
        assert np.sign(result.score) == (1 if direction == "under-confident" else -1), n_classes
        top = predicted.max(axis=1).mean(), (predicted.argmax(axis=1) == y_true).mean()
        said = f"confidence is {100 * top[0]:.1f} % on average, {100 * top[1]:.1f} % of its predictions are right."
        if n_classes == 2:
            said = f"are {of_event}: differences between low and high risks are"
            assert f"On average no error is found ({100 * predicted[:, 1].mean():.1f} % predicted, " in words(result)
        assert said in words(result), n_classes
        for statistic in (caltest.TemperatureScore(), caltest.statistics.Spiegelhalter()):
            assert run(y_true, predicted, statistic).direction == expected, (str(statistic), n_classes)


def test_a_direction_needs_evidence_of_its_own():
    """Its adjusted p-value is at most the level, and never below that of the test."""
    found = set()
    for seed in range(20):
        y_true, true_prob = calibrated(150, 3, seed, concentration=1.0)
        predicted = blunted(true_prob, 1.25)
        result = run(y_true, predicted)
        assert (result.direction is None) == (not result.findings)
        assert all(result.pvalue <= finding.pvalue <= 0.05 for finding in result.findings)
        found.add(result.direction)
    assert found >= {"under-confident", None}


def test_no_direction_without_evidence():
    y_true, y_prob = calibrated(300, 3)
    result = run(y_true, y_prob)
    assert result.direction is None
    score = caltest.calibration_error(y_true, y_prob, statistic=caltest.TemperatureScore())
    assert abs(result.score) == pytest.approx(score, rel=1e-12)
    without = run(y_true, y_prob, caltest.ECE())
    assert (without.score, without.direction) == (None, None)
    without = run(*sharpened(300, 3), caltest.ECE())
    assert (without.score, without.direction) == (None, "over-confident")  # no score is needed


def test_direction_of_an_infinite_score():
    """The p-value that a contradicted certainty forces is no evidence for a direction: that is left out."""
    y_true, y_prob = calibrated(40, 3, seed=2, concentration=2.0)
    y_prob[23], y_true[23] = [0.0, 0.75, 0.25], 0
    assert (y_prob.argmax(axis=1) == y_true).mean() < y_prob.max(axis=1).mean()
    result = run(y_true, y_prob)
    assert (result.score, result.direction) == (-np.inf, "totals")
    without = result.verdict.impossible
    assert (without.n_class, result.pvalue) == (1, 1 / 200)
    assert 1 / 200 <= without.pvalue <= result.findings[0].pvalue <= 0.05
    assert result.to_dict()["score"] is None
    assert run(y_true, y_prob, caltest.statistics.Spiegelhalter()).pvalue == 1 / 200
    assert run(y_true, y_prob, caltest.statistics.Spiegelhalter()).direction is None


# Notes.


def test_impossible_labels_are_counted_and_some_named():
    y_prob = np.tile([0.0, 0.5, 0.5], (20, 1))
    y_true = np.ones(20, dtype=int)
    assert impossible_note(make_sample(y_true, y_prob).impossible) == []
    for many, said in [
        (1, "1 label (observation 3) had been"),
        (5, "5 labels (observations 3, 4, 5, 6, 7) had been"),
        (10, "10 labels (observations 3, 4, 5, 6, 7, ...) had been"),
    ]:
        y_true[3 : 3 + many] = 0
        (note,) = impossible_note(make_sample(y_true, y_prob).impossible)
        assert note.code == "C201"
        assert note.text.startswith(said)
        assert run(y_true, y_prob).notes[-1] == note
        assert f"Note: {note}" in words(run(y_true, y_prob))


def test_too_little_scatter():
    """Outcomes exactly as expected in every cell."""
    y_prob = np.repeat([0.2, 0.4, 0.6, 0.8], 50)
    y_true = np.concatenate([np.arange(50) < 50 * p for p in (0.2, 0.4, 0.6, 0.8)])
    for statistic in (caltest.ECE(caltest.EqualWidth(5)), caltest.MCE(caltest.EqualWidth(5)), caltest.KS()):
        result = run(y_true, y_prob, statistic)
        assert result.statistic == pytest.approx(0, abs=1e-12), str(statistic)
        assert result.pvalue > 0.99, str(statistic)
        (note,) = result.notes
        assert note.code == "C203", str(statistic)
        assert f"{statistic} is below the 1 % quantile of its null distribution." in note.text
        assert (
            "the model is under-confident, the observations are not independent, or it is chance (1 in 100)."
            in words(result)
        )
    assert run(y_true, y_prob, caltest.TemperatureScore()).notes == ()
    assert run(*calibrated(200, 2)).notes == ()


def test_a_constant_statistic():
    result = run([1] * 20, [0.5] * 20, caltest.statistics.Spiegelhalter())
    assert codes(result.notes) == ["C202"]
    assert "Spiegelhalter() is constant under the null hypothesis for these predictions" in words(result)


def test_sparse_cells_with_resampled_observations_warn():
    """statistics.md, section 2: 10 classes, 10 cells per axis, n = 500: size 1.00."""
    ece = caltest.ECE(caltest.EqualWidth(10))
    with pytest.warns(CalibrationWarning) as told:
        result = run(*calibrated(500, 10), ece, resampling=ROWS)
    said = [str(warning.message) for warning in told]
    assert codes(result.notes) == ["C301", "C302"]
    assert said == [str(note) for note in result.notes]
    assert all(str(ece) in text for text in said)
    assert all(text in words(result) for text in said)
    assert {warning.filename for warning in told} == {__file__}, "they point at the line of the user's call"
    assert run(*calibrated(500, 10), ece).notes == (), "fixed predictions may be in sparse cells"


@pytest.mark.slow(few_draws=True)
def test_the_classical_tests_warn_at_the_line_of_the_user():
    for test, options in [
        (caltest.hosmer_lemeshow_test, {"partition": caltest.EqualMass(50), "method": "monte-carlo"}),
        (caltest.hypothesis_tests.tcal_test, {}),
    ]:
        with pytest.warns(CalibrationWarning) as told:
            test(*calibrated(200, 2), resampling=ROWS, n_resamples=19, rng=0, **options)
        assert {warning.filename for warning in told} == {__file__}, test.__name__


def test_a_tree_at_its_limit_warns_when_observations_are_resampled():
    """min_leaf = n / 8 exactly: copies hinder the halving, and trees that are fitted again are smaller."""
    with pytest.warns(CalibrationWarning, match="on average instead of 8"):
        run(*calibrated(1000, 10), caltest.ECE(caltest.VarianceTree(min_leaf=125)), resampling=ROWS)


@pytest.mark.slow
def test_no_warning_where_cells_hold_many_observations():
    for n, n_classes, lens, statistic in [
        (1000, 10, None, None),
        (500, 3, None, None),
        (1000, 10, caltest.Confidence(), None),
        (1000, 2, None, caltest.ECE(caltest.EqualWidth(15))),
        (1000, 10, caltest.Confidence(), caltest.ECE(caltest.EqualMass(15))),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = run(*calibrated(n, n_classes), statistic, lens=lens, resampling=ROWS)
        assert result.notes == (), (n, n_classes, str(lens), str(statistic))


# Too few draws.


def test_few_draws():
    """A note exactly where the smallest adjusted p-value of all tests together exceeds the level."""
    for correction in ("holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"):
        for n_tests, n_resamples, alpha in [(2, 38, 0.05), (2, 39, 0.05), (6, 119, 0.05), (6, 99, 0.05), (3, 9, 0.2)]:
            smallest = correct_pvalues([1 / (n_resamples + 1)] * n_tests, correction).min()
            notes = few_draws_notes(n_tests, n_resamples, alpha, correction)
            assert bool(notes) == (smallest > alpha * (1 + 1e-9)), (correction, n_tests, n_resamples)
    (note,) = few_draws_notes(6, 99, 0.05)
    assert note.code == "C205"
    assert note.text == (
        "With 99 draws and 6 tests no adjusted p-value can be below 0.06, so no single test can reject at the 5 % "
        "level. Take 120 draws or more."
    )
    assert few_draws_notes(6, enough_draws(6, 0.05), 0.05) == []
    assert few_draws_notes(1, 9, 0.05) == [], "a single test is not adjusted"


def test_the_direction_is_that_of_confidence_and_accuracy_whatever_the_score_is():
    """The temperature score is far below 0, as of an over-confident model, but accuracy exceeds confidence."""
    rng = np.random.default_rng(0)
    order = rng.permuted(np.tile(np.arange(3), (5_000, 1)), axis=1)
    y_prob = np.array([0.6, 0.39, 0.01])[order]
    truth = np.array([0.65, 0.30, 0.05])[order]
    y_true = (rng.random((5_000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    assert (y_prob.argmax(axis=1) == y_true).mean() > 0.63
    result = caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0)
    assert (result.pvalue, result.direction) == (0.005, "under-confident")
    assert result.score < 0
    assert "its confidence is 60.0 % on average, 65.2 % of its predictions are right" in result.conclusion


@pytest.mark.slow
def test_functions_do_not_contradict_each_other_about_the_direction():
    """Rare events whose logits are a shifted multiple of the predicted ones."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        logit = rng.normal(-4, 1, size=20_000)
        y_prob = 1 / (1 + np.exp(-logit))
        y_true = (rng.random(20_000) < 1 / (1 + np.exp(-(1.27 * logit + 1.5)))).astype(int)
        options = {"n_resamples": 199, "rng": 0}
        found = {
            caltest.calibration_test(y_true, y_prob, **options).direction,
            caltest.cox_test(y_true, y_prob, **options).direction,
            caltest.spiegelhalter_test(y_true, y_prob, **options).direction,
        }
        assert len(found - {None}) <= 1, (seed, found)


@pytest.mark.slow(few_draws=True)
def test_direction_of_a_rare_event_is_about_its_frequency():
    """A risk that is 1.8 times too low is not called over-confident, but the confidence in it is."""
    rng = np.random.default_rng(0)
    risk = np.clip(rng.lognormal(np.log(0.01), 0.6, 8_000), 0, 0.4)
    options = {"n_resamples": 199, "rng": 0}
    for factor, direction, mirrored in ((1.8, "too low", "too high"), (0.5, "too high", "too low")):
        event = (rng.random(8_000) < factor * risk).astype(int)
        result = caltest.calibration_test(event, risk, **options)
        assert result.direction == direction
        numbers = "1.2 % predicted, 2.1 % observed" if factor > 1 else "1.20 % predicted, 0.50 % observed"
        first = f"Predicted risks are {direction}: {numbers} (observed/expected "
        assert result.conclusion.startswith(first)
        turned = caltest.calibration_test(1 - event, 1 - risk, **options)
        assert turned.direction == mirrored
        assert [f.kind for f in turned.findings[1:]] == [f.kind for f in result.findings[1:]]
        (here,), (there,) = ([f for f in test.findings if f.place] for test in (result, turned))
        assert (there.low, there.high, there.n) == (pytest.approx(1 - here.high), pytest.approx(1 - here.low), here.n)
        assert there.predicted == pytest.approx(1 - here.predicted)
        assert there.pvalue == pytest.approx(here.pvalue)
        one_class = caltest.calibration_test(
            event, np.column_stack([1 - risk, risk]), lens=caltest.ClassWise(1), **options
        )
        assert one_class.direction == direction
        top = caltest.calibration_test(event, np.column_stack([1 - risk, risk]), lens=caltest.Confidence(), **options)
        assert top.direction == ("over-confident" if factor > 1 else "under-confident")
        for test in (caltest.cox_test, caltest.spiegelhalter_test, caltest.hosmer_lemeshow_test):
            found = test(event, risk, **options).direction
            assert found == direction, test.__name__
        table = caltest.calibration_table(event, risk, **options)
        assert table.conclusion.startswith(result.findings[0].sentence)


def test_no_error_of_the_average_from_rounding():
    """Average and frequency are both 0.75: their difference is rounding. The slope is wrong, and infinite."""
    event = np.tile([0.55, 0.95], 500)
    outcome = np.tile([0, 1], 500)
    outcome[np.arange(0, 1000, 2)[:250]] = 1
    for y_true, y_prob in ((outcome, event), (1 - outcome, 1 - event)):
        result = caltest.calibration_test(y_true, y_prob, n_resamples=199, rng=0)
        assert result.direction == "not extreme enough"
        assert "On average no error is found" in result.conclusion


def test_a_lens_of_the_user_may_name_its_subject():
    """Sentences are about the lens by its name, or about what it calls its predictions."""
    rng = np.random.default_rng(3)
    p = rng.random(2000) / 10
    y_true, y_prob = (rng.random(2000) < 2 * p).astype(int), np.column_stack([1 - p, p])

    class Second(caltest.predictions.Lens):
        def induced(self, prob):
            return prob

        def outcomes(self, prob):
            return np.arange(2, dtype=np.uint8)[None]

        def name(self, classes=None):
            return "second"

    class Rain(Second):
        def subject(self, classes=None):
            return Subject(predictions="Forecasts of rain")

    for lens, said in ((Second(), 'Predicted probabilities through the lens "second"'), (Rain(), "Forecasts of rain")):
        result = run(y_true, y_prob, lens=lens)
        assert result.direction == "too low"
        assert result.conclusion.startswith(f"{said} are too low: 4.9 % predicted, 10.2 % observed (")
