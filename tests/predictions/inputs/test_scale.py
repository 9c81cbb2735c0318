"""`input="logits"`: the same answers as of the probabilities, in every function that is given predictions."""

import importlib
import inspect
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import caltest
from caltest import comparison, estimation, hypothesis_tests
from caltest.predictions import FixedTree, PredictionStack, VarianceTree
from caltest.predictions.inputs._scale import as_probabilities, probabilities_of_logits
from caltest.recalibration import TemperatureScaling
from caltest.results import CalibrationWarning
from caltest.streaming import CalibrationMonitor, CalibrationState
from tests.reference.cases import check_refused

N = 120
LOGITS = np.random.default_rng(41).normal(0, 2, (N, 3))
EVENT_LOGITS = np.random.default_rng(42).normal(0, 2, N)


def naive(logits):
    """The softmax or the logistic function of a list of lists or numbers, by exponentials in loops."""
    if not isinstance(logits[0], list):
        return [1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z)) for z in logits]
    exponentials = [[math.exp(z - max(row)) for z in row] for row in logits]
    return [[e / sum(row) for e in row] for row in exponentials]


PROB, EVENT = np.array(naive(LOGITS.tolist())), np.array(naive(EVENT_LOGITS.tolist()))
LABEL = (np.random.default_rng(43).random(N)[:, None] > PROB.cumsum(axis=1)).sum(axis=1)
HAPPENED = np.random.default_rng(44).random(N) < EVENT
OF_LOGITS = {"input": "logits"}

CALLS = {
    "calibration_test": lambda f, p, e, o: f(LABEL, p, n_resamples=99, rng=0, **o).pvalue,
    "calibration_table": lambda f, p, e, o: f(LABEL, p, n_resamples=99, rng=0, **o).to_frame(),
    "calibration_report": lambda f, p, e, o: f(LABEL, p, n_resamples=99, rng=0, **o).to_frame(),
    "l2_interval": lambda f, p, e, o: f(LABEL, p, lens=caltest.Confidence(), **o).to_dict(),
    "reliability_curve": lambda f, p, e, o: f(HAPPENED, e, **o).to_frame(),
    "calibration_in_the_large": lambda f, p, e, o: f(HAPPENED, e, **o).to_dict(),
    "calibration_slope": lambda f, p, e, o: f(HAPPENED, e, **o).to_dict(),
    "calibration_error": lambda f, p, e, o: f(LABEL, p, **o),
    "noise_floor": lambda f, p, e, o: f(p, n_resamples=99, rng=0, **o).to_dict(),
    "compare_models": lambda f, p, e, o: f(
        LABEL, {"a": p, "b": p[:, [1, 2, 0]]}, n_resamples=99, rng=0, **o
    ).to_frame(),
    "paired_test": lambda f, p, e, o: f(LABEL, p, p[:, [1, 2, 0]], n_resamples=99, rng=0, **o).pvalue,
    "unpaired_test": lambda f, p, e, o: f(LABEL, p, LABEL[:90], p[:90, [1, 2, 0]], n_resamples=99, rng=0, **o).pvalue,
    "training_track": lambda f, p, e, o: f(LABEL, [p, p[:, [1, 2, 0]]], n_resamples=99, rng=0, **o).to_frame(),
    "subgroup_tests": lambda f, p, e, o: f(HAPPENED, e, subgroup=LABEL, n_resamples=99, rng=0, **o).to_frame(),
    "tolerance_test": lambda f, p, e, o: f(HAPPENED, e, margin=0.1, **o).pvalue,
    "multilabel_table": lambda f, p, e, o: f(np.eye(3)[LABEL], logistic(p, o), n_resamples=99, rng=0, **o).to_frame(),
    "by_fold": lambda f, p, e, o: (
        f(caltest.calibration_test, LABEL, p, folds=np.arange(N) % 2, n_resamples=99, rng=0, **o).pvalue
    ),
    "spiegelhalter_test": lambda f, p, e, o: f(HAPPENED, e, rng=0, **o).pvalue,
    "brier_score": lambda f, p, e, o: f(LABEL, p, **o),
    "accuracy": lambda f, p, e, o: f(LABEL, p, **o),
    "entropy": lambda f, p, e, o: f(p, **o),
    "prediction_distribution": lambda f, p, e, o: f(p, **o).to_dict(),
    "rejection_curve": lambda f, p, e, o: f(LABEL, {"a": p}, **o).to_frame(),
    "shift_curve": lambda f, p, e, o: f(p, p[:, [1, 2, 0]], batch_size=20, n_resamples=9, rng=0, **o).to_frame(),
    "recalibration_study": lambda f, p, e, o: f(
        LABEL, {"a": p}, [TemperatureScaling()], n_resamples=99, rng=0, **o
    ).to_frame(),
}
"""Calls of functions with predictions of three classes, of an event, and options."""


def logistic(prob, options):
    """Columns of several events: the logits, or the probabilities that their logistic function gives."""
    return LOGITS if options else np.array([naive(row) for row in LOGITS.tolist()])


def function_of(name):
    rooms = (hypothesis_tests, estimation, comparison, importlib.import_module("caltest.recalibration"))
    return next(getattr(room, name) for room in rooms if name in room.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_logits_give_the_answers_of_probabilities(name):
    def answer(*predictions):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            return CALLS[name](function_of(name), *predictions)

    expected, found = answer(PROB, EVENT, {}), answer(LOGITS, EVENT_LOGITS, OF_LOGITS)
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9)
    elif isinstance(expected, dict):
        pd.testing.assert_frame_equal(pd.json_normalize(found), pd.json_normalize(expected), rtol=1e-9)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_every_function_that_is_given_predictions_takes_it():
    rooms = ("comparison", "estimation", "hypothesis_tests", "page", "recalibration", "streaming")
    for room in map(importlib.import_module, (f"caltest.{room}" for room in rooms)):
        for name in room.__all__:
            function = getattr(room, name)
            taken = inspect.signature(function).parameters if inspect.isfunction(function) else {}
            if {"y_prob", "prob_a", "models", "epochs"} & set(taken):
                assert taken["input"].default == "probabilities", name


def test_states_monitors_trees_and_pictures_take_it():
    prob, logits = (PROB, {}), (LOGITS, OF_LOGITS)
    event = (EVENT, {}), (EVENT_LOGITS, OF_LOGITS)
    means = [CalibrationState().update(HAPPENED, p, **o).error(caltest.ECE(caltest.EqualWidth(15))) for p, o in event]
    assert means[0] == pytest.approx(means[1], rel=1e-12)
    wealth = [CalibrationMonitor().update(HAPPENED, p, **o).result().e_value for p, o in event]
    assert wealth[0] == pytest.approx(wealth[1], rel=1e-9)
    trees = [FixedTree.grow(p, VarianceTree(max_cells=4), **o) for p, o in (prob, logits)]
    np.testing.assert_allclose(trees[0].threshold, trees[1].threshold, rtol=1e-9)
    assert "cls" not in (FixedTree.grow.__doc__ or "")
    pictures = [caltest.ReliabilityDisplay.from_predictions(HAPPENED, EVENT)]
    pictures.append(caltest.ReliabilityDisplay.from_predictions(HAPPENED, EVENT_LOGITS, input="logits"))
    np.testing.assert_allclose(pictures[0].prob_pred, pictures[1].prob_pred, rtol=1e-12)
    stack = PredictionStack([LOGITS, -LOGITS], average="passes", input="logits")  # averages probabilities, not logits
    np.testing.assert_allclose(stack.mean, (PROB + naive((-LOGITS).tolist())) / 2, rtol=1e-12)
    fitted = [caltest.histogram_regression(LABEL, p, lens=caltest.Confidence(), **o) for p, o in (prob, logits)]
    np.testing.assert_array_equal(fitted[0].predict(PROB), fitted[1].predict(LOGITS, input="logits"))


@pytest.mark.slow
def test_pages_of_logits(tmp_path):
    """Of three classes, where a page has all its parts, and of several models; prints of what was passed differ."""
    prob = probabilities_of_logits(LOGITS)
    for number, models in enumerate((lambda p: p, lambda p: {"a": p, "b": p[:, [1, 2, 0]]})):
        texts = []
        for name, p, o in (("prob", prob, {}), ("logits", LOGITS, OF_LOGITS)):
            path = tmp_path / f"{name}{number}.html"
            caltest.page.write_page(LABEL, models(p), path, n_resamples=199, rng=0, **o)
            texts.append(re.sub(r"fingerprint \w{16}", "", path.read_text("utf-8")))
        assert texts[0] == texts[1]


@pytest.mark.slow(few_draws=True)
@settings(max_examples=60, deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 8), st.integers(2, 6)), elements=st.floats(-1000, 1000)))
def test_the_softmax_is_that_of_loops(logits):
    found = probabilities_of_logits(logits)
    np.testing.assert_allclose(found, naive(logits.tolist()), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(
        probabilities_of_logits(logits[:, 0]), naive(logits[:, 0].tolist()), rtol=1e-12, atol=1e-300
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_far_logits(dtype):
    most = np.finfo(dtype).max
    far = np.array([[1000, -1000, 0], [most, -most, 0], [-np.inf, 3, 3], [-np.inf, -np.inf, -5]], dtype=dtype)
    found, note = as_probabilities(far, "y_prob", "logits")
    assert note is None
    assert found.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert far[0, 0] == 1000  # what is the caller's stays
    event = np.array([-np.inf, -1000, 0, 1000, np.inf], dtype=dtype)
    assert as_probabilities(event, "y_prob", "logits")[0].tolist() == [0, 0, 0.5, 1, 1]


def test_one_and_two_observations_and_many_classes():
    for n, k in ((1, 2), (2, 2), (1, 1000), (2, 1000)):
        logits = np.random.default_rng(n).normal(size=(n, k))
        prob = np.array(naive(logits.tolist()))
        expected = estimation.log_score(np.zeros(n, dtype=int), prob)
        assert estimation.log_score(np.zeros(n, dtype=int), logits, input="logits") == pytest.approx(
            expected, rel=1e-12
        )


@pytest.mark.slow(few_draws=True)
def test_large_arrays_of_single_precision_stay_single():
    logits = np.random.default_rng(0).normal(size=(4200, 1000)).astype(np.float32)
    found, _ = as_probabilities(logits, "y_prob", "logits")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:5], naive(logits[:5].tolist()), rtol=1e-5)


def test_columns_with_names_and_classes_in_another_order():
    names = np.array(["bird", "cat", "dog"])
    frame = pd.DataFrame(LOGITS, columns=names)[["dog", "bird", "cat"]]
    options = {"n_resamples": 99, "rng": 0}
    expected = caltest.calibration_test(LABEL, PROB, **options).pvalue
    found = caltest.calibration_test(names[LABEL], frame, **options, **OF_LOGITS)
    assert found.pvalue == expected
    assert found.class_columns == dict(zip(names, names, strict=True))
    other = caltest.calibration_test(
        names[LABEL], LOGITS[:, [2, 0, 1]], classes=["dog", "bird", "cat"], **OF_LOGITS, **options
    )
    assert (
        other.pvalue
        == caltest.calibration_test(names[LABEL], PROB[:, [2, 0, 1]], classes=["dog", "bird", "cat"], **options).pvalue
    )
    column = pd.DataFrame({"p_1": EVENT_LOGITS})
    assert estimation.brier_score(HAPPENED, column, **OF_LOGITS) == pytest.approx(
        estimation.brier_score(HAPPENED, EVENT)
    )
    assert estimation.brier_score(HAPPENED, EVENT_LOGITS[:, None], **OF_LOGITS) == pytest.approx(
        estimation.brier_score(HAPPENED, EVENT)
    )


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([[0.0, np.nan], [1.0, 2.0]], "got nan in row 0, column 1."),
        ([[0.0, 1.0], [np.inf, 2.0]], "the largest of a row must be finite, got inf in row 1, column 0."),
        ([[0.0, 1.0], [-np.inf, -np.inf]], "the largest of a row must be finite, got -inf in row 1, column 0."),
        ([0.5, np.nan], '`y_prob` with input="logits" must not be missing, got nan in row 1.'),
        (["0.5", "-1"], "`y_prob` must hold real numbers, got <U3 values such as '0.5': pass numbers, such as"),
        ([[0.25, 0.75], [0.5, 0.5]], '`y_prob` holds probabilities, whose rows sum to 1: leave out input="logits"'),
        (np.zeros((2, 2, 2)), "`y_prob` must have shape (n_samples,) or (n_samples, n_classes), got (2, 2, 2)"),
    ],
)
def test_logits_that_are_none_are_refused(logits, message):
    check_refused(estimation.brier_score, ValueError, message, [0, 1], logits, input="logits")


def test_other_words_are_refused_everywhere():
    message = "`input` must be one of 'probabilities', 'logits', got 'logit'."
    for call in (
        lambda: caltest.calibration_test(LABEL, LOGITS, input="logit"),
        lambda: CalibrationState().update(LABEL, LOGITS, input="logit"),
        lambda: caltest.multilabel_table(np.eye(3)[LABEL], LOGITS, input="logit"),
        lambda: caltest.ReliabilityDisplay.from_predictions(HAPPENED, EVENT, input="logit"),
        lambda: PredictionStack([LOGITS], average="passes", input="logit"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
    stack = PredictionStack([PROB], average="passes")
    check_refused(estimation.accuracy, ValueError, 'PredictionStack(..., input="logits")', LABEL, stack, input="logits")
    message = "`input` says what `y_prob` is; `logits` are logits without it"
    check_refused(caltest.temperature_curve, ValueError, message, LABEL, logits=LOGITS, input="logits")


def test_probabilities_of_an_event_read_as_logits_are_noticed():
    found = caltest.reliability_curve(HAPPENED, EVENT, input="logits")
    assert [note.code for note in found.notes if note.code == "C904"] == ["C904"]
    with pytest.warns(CalibrationWarning, match=r"All values of `y_prob` lie in \[0, 1\], as probabilities do"):
        estimation.brier_score(HAPPENED, EVENT, input="logits")


def test_percentages_read_as_logits_are_noticed():
    with pytest.warns(CalibrationWarning, match=r"All values of `y_prob` lie in \[0, 100\], as percentages do"):
        estimation.brier_score(HAPPENED, 100 * EVENT, input="logits")
    message = "`y_prob` holds percentages, whose rows sum to 100: divide them by 100, and leave out input"
    for percent in (100 * PROB, (100 * PROB).round()):
        check_refused(estimation.brier_score, ValueError, message, LABEL, percent, input="logits")
    assert estimation.brier_score(HAPPENED, np.abs(EVENT_LOGITS) + 1, input="logits") > 0, "logits above 0 are logits"
    for percent in ((20 * EVENT).round(1), 30 + 5 * EVENT):
        with pytest.warns(CalibrationWarning, match=r"All values of `y_prob` lie in \[0, 100\], as percentages do"):
            estimation.brier_score(HAPPENED, percent, input="logits")


def test_probabilities_of_several_labels_read_as_logits_are_noticed():
    label, prob = np.column_stack([HAPPENED] * 2).astype(float), np.column_stack([EVENT] * 2)
    label[0, 0] = prob[0, 0] = np.nan
    with pytest.warns(CalibrationWarning, match=r"All values of `y_prob` lie in \[0, 1\], as probabilities do"):
        found = caltest.multilabel_table(label, prob, input="logits", n_resamples=99, rng=0)
    assert "C904" in [note.code for note in found.notes]


CURES = {
    "logits": (LOGITS, 'if these are logits, pass input="logits".'),
    "logits of an event": (EVENT_LOGITS, 'if these are logits, pass input="logits".'),
    "percentages": (PROB * 100, "if these are percentages, pass y_prob / 100."),
    "percentages of an event": (EVENT * 100, "if these are percentages, pass y_prob / 100; if these are logits, pass"),
    "whole percentages": (np.tile([20, 30, 50], (N, 1)), "if these are percentages, pass y_prob / 100."),
    "texts with a sign": ([f"{100 * p:.1f} %" for p in EVENT], "pass numbers, without their sign and divided by 100."),
}


@pytest.mark.parametrize("case", CURES)
def test_what_is_no_probability_is_refused_with_the_cure(case):
    prob, cure = CURES[case]
    check_refused(caltest.calibration_test, ValueError, cure, LABEL if np.ndim(prob) == 2 else HAPPENED, prob)
