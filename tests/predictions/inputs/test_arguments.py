"""What the public functions make of frames, series and other inputs: the same answers as of arrays, or a refusal."""

import inspect
import pickle
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import caltest
from caltest import comparison, estimation, hypothesis_tests, simulation
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._validation import RANGE_TOLERANCE, validate_problem, validate_rng
from caltest.results import CalibrationWarning
from caltest.statistics import Statistic
from tests.reference.cases import check_refused, failures, mostly_slow

N = 240
PROB = np.random.default_rng(8).dirichlet(np.ones(3), size=N)
_CHANCE = np.random.default_rng(9).random((3, N))
LABEL = (_CHANCE[0][:, None] > np.cumsum(PROB, axis=1)).sum(axis=1)
EVENT = 0.05 + 0.55 * _CHANCE[1]
HAPPENED = _CHANCE[2] < EVENT
NAMES = ["bird", "cat", "dog"]
NAMED = np.array(NAMES)[LABEL]
OTHER = ["dog", "bird", "cat"]
FRAME = pd.DataFrame(PROB, columns=NAMES)
DRAWS = {"n_resamples": 99, "rng": 0}


@dataclass
class Stream:
    """Only Arrow's interface, as a relation of DuckDB."""

    held: object

    def __arrow_c_stream__(self, requested_schema=None):
        return self.held.__arrow_c_stream__(requested_schema)


def pvalue(y_true, y_prob, **options):
    return caltest.calibration_test(y_true, y_prob, **DRAWS, **options).pvalue


BINARY = {
    "numbers": lambda p: pd.DataFrame({1: p, 0: 1 - p}),
    "texts": lambda p: pl.DataFrame({"1": p, "0": 1 - p}),
    "booleans": lambda p: pd.DataFrame({True: p, False: 1 - p}),
    "words of booleans": lambda p: pa.table({"True": p, "False": 1 - p}),
    "prefixes": lambda p: pd.DataFrame({"prob_1": p, "prob_0": 1 - p}),
    "plural prefixes": lambda p: pd.DataFrame({"probs_1": p, "probs_0": 1 - p}),
    "short prefixes": lambda p: pl.DataFrame({"p1": p, "p0": 1 - p}).lazy(),
    "stream": lambda p: Stream(pa.table({"class_1": p, "class_0": 1 - p})),
    "words in order": lambda p: pd.DataFrame({"no": 1 - p, "yes": p}),
    "one column": pd.DataFrame,
    "one named column": lambda p: pl.DataFrame({"prob_1": p}),
    "a series": lambda p: pd.Series(p, name="score"),
    "one dimension of two": lambda p: p[:, None],
}


def test_labels_come_first():
    """A mapping in the place of the labels is answered with the right call, in every function of several models."""
    models = {"a": PROB, "b": PROB}
    for name, arguments in (
        ("compare_models", (models, LABEL)),
        ("recalibration_study", (models, None, LABEL)),
        ("training_track", (models, LABEL)),
        ("calibration_test", (models, LABEL)),
    ):
        with pytest.raises(
            TypeError, match=rf"`y_true` must hold labels, got a mapping\. .* {name}\(y_true, \w+(, recalibrators)?\)"
        ):
            getattr(caltest, name)(*arguments)


@pytest.mark.slow(few_draws=True)
def test_columns_named_after_the_labels_of_two_classes():
    """Read by position, a calibrated model had a p-value of .001."""
    for labels in (HAPPENED, HAPPENED.astype(int), pd.Series(HAPPENED, dtype="boolean"), HAPPENED[:, None]):
        expected = pvalue(HAPPENED, EVENT)
        assert failures(BINARY, lambda make, e=expected, y=labels: _equal(pvalue(y, make(EVENT)), e)) == {}
    words = np.where(HAPPENED, "yes", "no")
    for frame in (pd.DataFrame({"prob_yes": EVENT, "prob_no": 1 - EVENT}), pd.Series(EVENT, name="prob_yes")):
        assert pvalue(words, frame) == expected


def _equal(found, expected):
    assert found == expected


OF_AN_EVENT = {"calibration_in_the_large", "calibration_slope"}


def functions_of_columns():
    """Public functions of labels and predictions of several classes, by name."""
    rooms = (caltest, estimation, hypothesis_tests)
    functions = {name: getattr(room, name) for room in rooms for name in room.__all__}
    # of one event
    others = {"by_fold", "clinical_calibration", "multilabel_table", "revision_test", "sum_of_squares_test"}
    return {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function)
        and {"y_true", "y_prob"} <= set(inspect.signature(function).parameters)
        and name not in others
    }


QUICK = {"calibration_error", "calibration_test", "l2_interval", "reliability_curve", "score_decomposition"}
OF_COLUMNS = sorted(functions_of_columns(), key=lambda name: (name not in QUICK, name))


def test_functions_of_columns_are_many():
    assert len(OF_COLUMNS) > 25
    assert set(OF_COLUMNS[: len(QUICK)]) == QUICK


@pytest.mark.parametrize("name", mostly_slow(OF_COLUMNS, len(QUICK)))
def test_functions_read_columns_by_their_names(name):
    """Every public function of labels and predictions gives the same answer in any order of the columns."""
    function = functions_of_columns()[name]
    parameters = inspect.signature(function).parameters
    n_resamples = 699 if name == "gce_table" else 199  # enough for its 32 tests
    options = {key: value for key, value in {"n_resamples": n_resamples, "rng": 0}.items() if key in parameters}
    options |= {"margin": 0.3} if "margin" in parameters else {}
    options |= {"subgroup": PROB[:, 0] > 0.4} if "subgroup" in parameters else {}
    if name in {"spiegelhalter_test", "cox_test", "bridge_test", "tcal_test"} or name in OF_AN_EVENT:
        options["lens"] = caltest.ClassWise(1)
    expected = function(LABEL, PROB, **options)
    found = function(NAMED, FRAME[OTHER], **options)
    np.testing.assert_equal(getattr(found, "pvalue", None), getattr(expected, "pvalue", None))
    if isinstance(expected, float):
        assert found == expected
    else:
        assert found.class_columns == {label: label for label in NAMES}
        assert "Label -> column: bird -> bird, cat -> cat, dog -> dog." in str(found).replace("\n    ", " ")
        assert found.to_dict()["class_columns"] == {label: label for label in NAMES}
        assert "class_columns" not in expected.to_dict()
        assert pickle.loads(pickle.dumps(found)).class_columns == found.class_columns


def test_a_test_by_fold_reads_columns_by_their_names():
    arguments = {"folds": np.arange(N) % 2, **DRAWS}
    found = hypothesis_tests.by_fold(caltest.calibration_test, NAMED, FRAME[OTHER], **arguments)
    assert found.pvalue == hypothesis_tests.by_fold(caltest.calibration_test, LABEL, PROB, **arguments).pvalue
    assert found.class_columns == {label: label for label in NAMES}


def test_comparisons_read_columns_by_their_names():
    sharp = PROB**2 / (PROB**2).sum(axis=1, keepdims=True)
    frames = {"a": FRAME[OTHER], "b": pl.DataFrame(sharp, schema=NAMES)}
    expected = caltest.compare_models(LABEL, {"a": PROB, "b": sharp}, **DRAWS)
    found = caltest.compare_models(NAMED, frames, **DRAWS)
    assert [model.test.pvalue for model in found] == [model.test.pvalue for model in expected]
    assert found.class_columns == {label: label for label in NAMES}
    own = caltest.compare_models(None, {name: (NAMED, frame) for name, frame in frames.items()}, **DRAWS)
    assert own.pairs[0].test.pvalue == caltest.unpaired_test(NAMED, frames["a"], NAMED, frames["b"]).pvalue
    assert caltest.paired_test(NAMED, *frames.values()).pvalue == caltest.paired_test(LABEL, PROB, sharp).pvalue
    by_fold = caltest.compare_models(NAMED, frames, folds=np.arange(N) % 2, **DRAWS)
    assert by_fold.class_columns == found.class_columns
    track = comparison.training_track(None, [(NAMED, FRAME[OTHER])], **DRAWS)
    assert track.pvalue == comparison.training_track(None, [(LABEL, PROB)], **DRAWS).pvalue
    assert track.class_columns == found.class_columns
    agree = simulation.metric_agreement(
        NAMED, {**frames, "c": FRAME}, metrics=[caltest.statistics.GCE()], n_cells=(5, 9)
    )
    np.testing.assert_array_equal(agree.values[:, 0], agree.values[:, 2])
    message = "b has columns without names, unlike others: pass `classes`"
    check_refused(caltest.compare_models, ValueError, message, NAMED, {"a": FRAME, "b": PROB})
    message = "all models must predict the same classes, got 'bird', 'cat', 'dog' of a and 'bird', 'dog', 'eel' of b"
    other = FRAME.rename(columns={"cat": "eel"})
    labels = np.where(NAMED == "cat", "dog", NAMED)
    check_refused(caltest.compare_models, ValueError, message, labels, {"a": FRAME, "b": other})


def test_predictions_without_labels_have_the_same_order():
    assert caltest.noise_floor(FRAME[OTHER], **DRAWS).mean == caltest.noise_floor(PROB, **DRAWS).mean
    fit = caltest.histogram_regression(NAMED, FRAME)
    np.testing.assert_array_equal(fit.predict(FRAME[OTHER]), fit.predict(PROB))
    numbered = caltest.histogram_regression(LABEL, PROB)
    np.testing.assert_array_equal(numbered.predict(pd.DataFrame(PROB)[[2, 0, 1]]), fit.predict(PROB))
    truth = PROB[::-1]
    found = estimation.squared_l2_target(FRAME[OTHER], pd.DataFrame(truth, columns=NAMES))
    assert found == estimation.squared_l2_target(PROB, truth)
    positions = estimation.squared_l2_target(FRAME[OTHER], truth[:, [2, 0, 1]])
    assert positions == pytest.approx(found)


def test_classes_and_names():
    assert pvalue(NAMED, FRAME[OTHER], classes=NAMES) == pvalue(LABEL, PROB)
    assert pvalue(NAMED, FRAME, classes=OTHER) == pvalue(NAMED, PROB[:, [2, 0, 1]], classes=OTHER)
    assert pvalue(LABEL + 1, pd.DataFrame(PROB), classes=[1, 2, 3]) == pvalue(LABEL, PROB)
    assert pvalue(LABEL, FRAME[OTHER], classes=[2, 0, 1]) == pvalue(LABEL, FRAME[OTHER].to_numpy(), classes=[2, 0, 1])


REFUSED = {
    "contradicted": (NAMED, FRAME, {"classes": ["bird", "cat", "eel"]}, "'bird', 'cat', 'dog', contradict `classes`"),
    "numbers contradicted": (LABEL, pd.DataFrame(PROB), {"classes": [1, 0, 2]}, "0, 1, 2, contradict `classes`, 1, 0"),
    "numbers out of order": (
        NAMED,
        pd.DataFrame(PROB)[[2, 0, 1]],
        {"classes": NAMES},
        "2, 0, 1, contradict `classes`, 'bird', 'cat', 'dog'. Rename the columns to the labels, or pass",
    ),
    "a class without column": (NAMED, FRAME, {"classes": [*NAMES, "eel"]}, "got 4 classes and no column for 'eel'."),
    "a label without column": (
        ["eel", *NAMED[1:]],
        FRAME,
        {},
        "`y_true` holds the label 'eel', which has no column of probabilities; the columns of `y_prob` are ",
    ),
    "other numbers": (
        LABEL,
        pd.DataFrame(PROB, columns=list("231")),
        {},
        "holds the label 0, which has no column",
    ),
    "other words": (
        NAMED,
        pd.DataFrame(PROB, columns=list("abc")),
        {},
        "which has no column of probabilities; the columns",
    ),
    "words that could mean two things": (
        HAPPENED.astype(int),
        pd.DataFrame({"prob_yes": EVENT, "prob_no": 1 - EVENT}),
        {},
        "Pass `classes`, the label of each column; it is 0, 1 if this order is right.",
    ),
    "one more column": (
        HAPPENED,
        pd.DataFrame({"0": 1 - EVENT, "1": EVENT, "id": EVENT}),
        {},
        "'id' is not named after a label, others are",
    ),
    "the same name twice": (LABEL, pd.DataFrame(PROB, columns=["a", "b", "a"]), {}, "several columns of the name 'a'"),
    "the same label twice": (
        LABEL % 2,
        pd.DataFrame(PROB, columns=[1, "1", 0]),
        {},
        "several are named after the label 1",
    ),
    "the other class": (
        HAPPENED,
        pd.Series(1 - EVENT, name="p_0"),
        {},
        "one probability must be that of the positive class, 1, but its name is 'p_0'.",
    ),
    "the other word": (
        np.where(HAPPENED, "yes", "no"),
        pd.Series(1 - EVENT, name="no"),
        {"classes": ["no", "yes"]},
        "Pass the other column, or classes=['yes', 'no']",
    ),
    "other capitals": (
        NAMED,
        pd.DataFrame(PROB, columns=["Prob Bird", "Prob Cat", "Prob Dog"])[["Prob Dog", "Prob Bird", "Prob Cat"]],
        {"classes": NAMES},
        "'Prob Dog', 'Prob Bird', 'Prob Cat', contradict `classes`, 'bird', 'cat', 'dog'.",
    ),
    "joined capitals": (
        NAMED,
        FRAME[OTHER].rename(columns=lambda c: f"p{c.title()}"),
        {"classes": NAMES},
        "contradict",
    ),
    "columns of two levels": (
        NAMED,
        pd.concat({"prob": FRAME[OTHER]}, axis=1),
        {"classes": NAMES},
        "('prob', 'cat'), contradict `classes`",
    ),
    "words of two words": (
        np.where(HAPPENED, "not ill", "ill"),
        pd.DataFrame({"chance not ill": EVENT, "chance ill": 1 - EVENT}),
        {"classes": ["ill", "not ill"]},
        "contradict `classes`",
    ),
    "the other class in other letters": (
        np.where(HAPPENED, "well", "ill"),
        pd.Series(1 - EVENT, name="P(Ill)"),
        {"classes": ["ill", "well"]},
        "Pass the other column, or classes=['well', 'ill']",
    ),
    "a negative word": (HAPPENED, pd.Series(1 - EVENT, name="prob_no"), {}, "positive class, 1, but its name is 'prob"),
    "a sparse matrix": (HAPPENED, csr_array(np.column_stack([1 - EVENT, EVENT])), {}, "pass `y_prob.toarray()`"),
    "no column": (LABEL, pd.DataFrame(index=range(N)), {}, "`y_prob` must not be empty"),
    "labels of two columns": (FRAME[["cat", "dog"]], FRAME, {}, "`y_true` must be one column, got a frame of 2"),
}


def test_names_that_contradict_are_refused():
    def check(case):
        y_true, y_prob, options, message = case
        check_refused(caltest.calibration_error, ValueError, message, y_true, y_prob, **options)

    assert failures(REFUSED, check) == {}


def test_indexes_that_differ_are_refused():
    """Observations of series and frames were matched by position, whatever their indexes said."""
    y_true, shuffled = pd.Series(LABEL), pd.DataFrame(PROB).sample(frac=1, random_state=1)
    cases = {
        "another order": ((y_true, shuffled), {}, "got the same labels in another order (row 0: 0, "),
        "other labels": ((y_true, FRAME.set_index(np.arange(N) + 5)), {}, "got other labels (row 0: 0, 5)"),
    }
    for name in ("sample_weight", "groups", "folds"):
        beside = pd.Series(np.arange(N) % 7 + 1, index=y_true.index[::-1])
        cases[name] = (y_true, PROB), {name: beside}, f"`y_true` and `{name}` must have the same index"

    def check(case):
        check_refused(caltest.calibration_test, ValueError, case[2], *case[0], **case[1])

    assert failures(cases, check) == {}
    check_refused(caltest.compare_models, ValueError, "models['b'].loc[", y_true, {"a": PROB, "b": shuffled})
    pairs = {"a": (LABEL, PROB), "b": (y_true, shuffled)}
    check_refused(caltest.compare_models, ValueError, "must have the same index", None, pairs)
    check_refused(caltest.training_track, ValueError, "epoch 1: `y_true` and `y_prob`", y_true, [shuffled])
    check_refused(caltest.subgroup_tests, ValueError, "`subgroup` must have", y_true, PROB, subgroup=shuffled[0] > 0.5)
    expected = pvalue(LABEL, PROB)
    assert pvalue(y_true, shuffled.loc[y_true.index]) == expected, "the remedy"
    assert pvalue(y_true, shuffled.sort_index().to_numpy()) == expected
    assert pvalue(y_true.rename("y").set_axis([f"r{i}" for i in range(N)]), PROB) == expected, "beside an array"


def test_indexes_of_two_data_sets_may_differ():
    """Halves of a frame have different indexes and as many rows."""
    y_true, half, rest = pd.Series(NAMED), slice(N // 2), slice(N // 2, N)
    found = caltest.unpaired_test(y_true[half], FRAME[half], y_true[rest], FRAME[OTHER][rest], **DRAWS)
    assert found.pvalue == caltest.unpaired_test(LABEL[half], PROB[half], LABEL[rest], PROB[rest], **DRAWS).pvalue
    arguments = y_true[half], FRAME[half], y_true[rest], FRAME[rest][::-1]
    check_refused(caltest.unpaired_test, ValueError, "`y_true_b` and `prob_b` must have the same index", *arguments)


def test_an_index_of_repeated_ids_is_noticed():
    patients = pd.Index(np.arange(N) // 2, name="PatientID")
    visits = pd.MultiIndex.from_arrays([np.arange(N) // 2, np.arange(N) % 2], names=["patient", "visit"])
    for index, name in ((patients, "PatientID"), (visits, "patient")):
        with pytest.warns(CalibrationWarning, match=f"The index '{name}' repeats"):
            caltest.calibration_error(pd.Series(LABEL, index=index), PROB)
    caltest.calibration_error(pd.Series(LABEL, index=patients.unique().repeat(2).rename("score")), PROB)


def test_dates_are_labels():
    """Dates of NumPy became integers, and columns named after them were taken in their order."""
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[ns]")
    expected = pvalue(LABEL, PROB)
    for names in (days, pd.to_datetime(days), [f"{year}-01-01" for year in (2020, 2021, 2022)]):
        frame = pd.DataFrame(PROB, columns=names).iloc[:, [2, 0, 1]]
        for kept in ("ns", "s", "D"):
            labels = days[LABEL].astype(f"datetime64[{kept}]")
            assert pvalue(labels, frame) == expected, (names, kept)
        if isinstance(names, pd.Index):
            assert pvalue(pd.Series(days[LABEL]), frame, classes=days) == expected
            assert pvalue(days[LABEL], frame, classes=list(days)) == expected
    assert pvalue(pd.Series(days[LABEL]), PROB, classes=list(pd.to_datetime(days))) == expected
    found = caltest.calibration_test(days[LABEL], pd.DataFrame(PROB, columns=days)[days[[2, 0, 1]]], **DRAWS)
    assert list(found.to_dict()["class_columns"]) == [f"{year}-01-01 00:00:00" for year in (2020, 2021, 2022)]


def test_lists_of_integers_of_numpy_are_ids():
    parts = np.arange(N) % 5
    for name in ("groups", "folds"):
        assert pvalue(LABEL, PROB, **{name: list(parts)}) == pvalue(LABEL, PROB, **{name: parts})


@pytest.mark.slow(few_draws=True)
def test_labels_that_never_occur_are_said():
    labels = np.where(NAMED == "cat", "dog", NAMED)
    for y_prob, options in ((FRAME, {}), (PROB, {"classes": NAMES})):
        for function in (caltest.calibration_test, caltest.score_decomposition, caltest.calibration_report):
            drawn = {} if function is caltest.score_decomposition else {"n_resamples": 399, "rng": 0}
            found = function(labels, y_prob, **options, **drawn)
            assert [note.text for note in found.notes if note.code == "C901"] == ["No observation has the label 'cat'."]
            assert "No observation has the label 'cat'. [C901]" in str(found).replace("\n    ", " ")
            assert "C901" in str(found.to_dict()["notes"])
    assert "C901" not in str(caltest.calibration_test(NAMED, FRAME, **DRAWS).notes)
    folded = caltest.calibration_test(labels, FRAME, folds=np.arange(N) % 3, **DRAWS)
    assert "C901" not in str(folded.components[0].notes)
    assert str(folded.notes).count("C901") == 1


def test_words_that_are_no_labels_are_taken_in_their_order_with_a_note():
    found = caltest.calibration_test(LABEL, FRAME, **DRAWS)
    assert [note.code for note in found.notes if note.code == "C902"] == ["C902"]
    assert found.class_columns == {0: "bird", 1: "cat", 2: "dog"}
    with pytest.warns(CalibrationWarning, match="columns were taken in their order"):
        caltest.calibration_error(LABEL, FRAME)


def test_half_precision():
    """Rows of float16 were refused."""
    y_prob = PROB.astype(np.float16)
    found = caltest.calibration_test(LABEL, y_prob, **DRAWS)
    (note,) = [note for note in found.notes if note.code == "C903"]
    wide = y_prob.astype(float)
    change = np.abs(wide / wide.sum(axis=1, keepdims=True) - wide).max()
    assert f"changed probabilities by at most {change:.2g}." in note.text
    assert found.statistic == pvalue_of_sums(wide).statistic
    with pytest.warns(CalibrationWarning, match="Half precision"):
        assert caltest.calibration_error(LABEL, y_prob) > 0
    check_refused(caltest.calibration_test, ValueError, "must sum to 1", LABEL, y_prob * np.float16(0.9))


def pvalue_of_sums(wide):
    return caltest.calibration_test(LABEL, wide / wide.sum(axis=1, keepdims=True), **DRAWS)


def test_rounding_errors_outside_the_unit_interval_are_clipped():
    y_prob = np.array([[1 + 1e-9, -1e-12], [0.5, 0.5]])
    before = y_prob.copy()
    np.testing.assert_array_equal(validate_problem([0, 1], y_prob)[0], [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(y_prob, before)
    np.testing.assert_array_equal(validate_problem([0, 1], [1 + 1e-9, -1e-12])[0], [[0, 1], [1, 0]])
    assert np.float32(1) + np.finfo(np.float32).eps <= 1 + RANGE_TOLERANCE
    check_refused(validate_problem, ValueError, "must lie in [0, 1], got -1e-06 in row 1", [0, 1], [0.5, -1e-6])


def test_random_states():
    state, twin = np.random.RandomState(5), np.random.RandomState(5)
    first, second = (caltest.calibration_test(LABEL, PROB, n_resamples=99, rng=state) for _ in range(2))
    again = caltest.calibration_test(LABEL, PROB, n_resamples=99, rng=twin)
    np.testing.assert_array_equal(first.null_distribution, again.null_distribution)
    assert not np.array_equal(first.null_distribution, second.null_distribution), "its state advances"
    assert validate_rng(np.random.RandomState(1)).random() == validate_rng(np.random.RandomState(1)).random()


def test_random_state_is_answered_with_rng():
    rooms = (caltest, comparison, estimation, hypothesis_tests, simulation)
    functions = {getattr(room, name) for room in rooms for name in room.__all__ if name[0].islower()}
    found = [f for f in functions if inspect.isfunction(f) and "rng" in inspect.signature(f).parameters]
    assert len(found) > 25
    for function in [*found, simulation.DirichletModel(2).draw, caltest.Consistency().draws]:
        with pytest.raises(TypeError, match=r"has no `random_state`; use rng=3\."):
            function(random_state=3)
    with pytest.raises(TypeError, match=r"has no `seed`; use rng=3\."):
        caltest.calibration_test(LABEL, PROB, seed=3)
    for function in (caltest.calibration_test, caltest.noise_floor):  # with shared options, and without
        with pytest.raises(TypeError, match=f"{function.__name__}.. got an unexpected keyword argument 'colour'"):
            function(LABEL, PROB, colour=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y_prob'"):
        caltest.calibration_test(LABEL)


def test_n_bins_is_answered_with_cells():
    with pytest.raises(TypeError, match=r"has no `n_bins`; use partition=EqualWidth\(10\)\."):
        caltest.reliability_curve(LABEL, PROB, n_bins=10)
    with pytest.raises(TypeError, match=r"use statistic=ECE\(EqualWidth\(10\)\)\."):
        caltest.calibration_test(LABEL, PROB, n_bins=10)


def test_draws_that_no_memory_holds_are_refused():
    for function in (caltest.calibration_test, caltest.bootstrap_interval, caltest.gce_table):
        message = "`n_resamples` = 1,000,000,000,000 draws need at least 8 TB of memory; this machine has "
        check_refused(function, ValueError, message, LABEL, PROB, n_resamples=10**12)


@dataclass(frozen=True)
class OfRows(Statistic):
    """Fails on labels of one dimension."""

    def evaluate(self, sample, outcomes):
        return outcomes.sum(axis=1)


def test_statistics_of_a_wrong_shape_are_refused():
    message = "`OfRows.evaluate` must reduce the last axis of outcomes (..., n_samples): expected shape () of outcomes"
    for function in (caltest.calibration_test, caltest.calibration_error, caltest.bootstrap_interval):
        with pytest.raises(ValueError, match=re.escape(message)):
            function(LABEL, PROB, statistic=OfRows())


def test_lenses_that_read_outcomes_or_chance_are_refused():
    def peeking(prob, outcome):
        event = np.where(outcome == 0, 0.5, prob[:, 0])
        return np.column_stack([1 - event, event]), (outcome == 0).astype(int)

    source = np.random.default_rng(0)

    def drawn(prob, outcome):
        event = source.random(len(prob))
        return np.column_stack([1 - event, event]), (outcome == 0).astype(int)

    def others(prob, outcome):
        return prob, np.sort(outcome)

    wanted = "`lens` must make its probabilities from predictions alone"
    own = "`lens` must make the outcome of an observation from its prediction and its own label alone"
    for lens, message in ((peeking, wanted), (drawn, wanted), (others, own)):
        for function in (caltest.calibration_test, caltest.calibration_error, caltest.l2_interval, estimation.accuracy):
            check_refused(function, ValueError, message, LABEL, PROB, lens=lens)


@pytest.mark.slow(few_draws=True)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_frames_give_the_same_problem_as_arrays(data):
    """Whatever the kind of frame, the order of its columns, its dtype and the kind of labels."""
    n_classes, n = data.draw(st.integers(2, 6)), data.draw(st.integers(6, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    prob = rng.dirichlet(np.ones(n_classes), size=n)
    outcome = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    kinds = ["text", "integer", "numbered"] + (["boolean"] if n_classes == 2 else [])
    kind = data.draw(st.sampled_from(kinds))
    if kind == "text":
        classes = sorted(data.draw(st.sets(st.text("abcxyz", min_size=2), min_size=n_classes, max_size=n_classes)))
    elif kind == "integer":
        classes = sorted(data.draw(st.sets(st.integers(-9, 99), min_size=n_classes, max_size=n_classes)))
    else:
        classes = [False, True] if kind == "boolean" else list(range(n_classes))
    prefixes = ["", "prob_", "p_", "proba_"] if kind != "integer" else ["", "prob_", "probability_"]
    prefix = data.draw(st.sampled_from(prefixes))
    order = data.draw(st.permutations(range(n_classes)))
    dtype = data.draw(st.sampled_from([np.float64, np.float32]))
    columns = {f"{prefix}{classes[k]}": prob[:, k].astype(dtype) for k in order}
    labels = np.array(classes)[outcome]
    frame = data.draw(st.sampled_from([pd.DataFrame, pl.DataFrame, pa.table, lambda c: Stream(pa.table(c))]))(columns)
    make_labels = data.draw(
        st.sampled_from([list, np.asarray, pd.Series, pl.Series, pa.array, pd.Categorical, pd.DataFrame])
    )
    read = read_problem({"y_true": make_labels(labels.tolist())}, {"y_prob": frame})
    found = validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
    expected = validate_problem(outcome, prob.astype(dtype))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(read.names) == classes
    given = read_problem({"y_true": labels}, {"y_prob": frame}, classes)
    np.testing.assert_array_equal(given.probs["y_prob"], read.probs["y_prob"])


@pytest.mark.slow(few_draws=True)
def test_other_tables():
    """Tables that are read once, computed later or stored as records."""
    import dask.dataframe as dd

    frame = FRAME[OTHER]
    tables = {
        "a batch of Arrow": pa.record_batch(frame),
        "a reader of Arrow": pa.table(frame).to_reader(),
        "Dask": dd.from_pandas(frame, npartitions=2),
        "records": frame.to_records(index=False),
        "lazy": pl.from_pandas(frame).lazy(),
    }
    expected = pvalue(LABEL, PROB)
    assert failures(tables, lambda table: _equal(pvalue(NAMED, table), expected)) == {}
    for values in (pl.Series("p", PROB.tolist()), pl.Series("p", PROB.tolist(), dtype=pl.Array(pl.Float64, 3))):
        assert pvalue(LABEL, values) == expected, "rows of a series are no single probability"
