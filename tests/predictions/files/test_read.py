"""Reading predictions from files: every kind of file, which columns are taken for what, and refusals."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from caltest.predictions import read_predictions
from caltest.predictions.files._source import UndecidedError
from caltest.results import CalibrationWarning
from tests.reference.cases import check_refused, failures

PROB = np.random.default_rng(0).dirichlet(np.ones(3), size=8)
LABEL = np.random.default_rng(1).integers(3, size=8)
NAMES = np.array(["cat", "dog", "eel"])


def table(label="label", prefix="p_", labels=LABEL):
    return pd.DataFrame(PROB, columns=[f"{prefix}{name}" for name in NAMES]).assign(**{label: labels})


def write(folder, name, thing):
    """A file of the kind that its ending says."""
    path = folder / name
    kind = path.suffix
    if kind == ".npz":
        np.savez(path, **thing)
    elif kind == ".npy":
        np.save(path, thing)
    elif kind in {".parquet", ".pq"}:
        thing.to_parquet(path)
    elif isinstance(thing, str | bytes):
        path.write_bytes(thing.encode() if isinstance(thing, str) else thing)
    else:
        thing.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")
    return path


RECORDS = np.array(list(zip(LABEL, *PROB.T, strict=True)), dtype=[("y", "i8"), ("a", "f8"), ("b", "f8"), ("c", "f8")])
KINDS = {
    "a.csv": table(),
    "a.tsv": table(),
    "a.CSV": table(),
    "a.parquet": table(),
    "a.pq": table(),
    "a.npz": {"probs": PROB, "labels": LABEL},
    "other names.npz": {"one": PROB, "two": LABEL},
    "a.npy": np.column_stack([PROB, LABEL]),
    "records.npy": RECORDS,
}


def test_every_kind_of_file_holds_the_same(tmp_path):
    def check(name):
        found = read_predictions(write(tmp_path, name, KINDS[name]))
        np.testing.assert_array_equal(found.y_true, LABEL)
        np.testing.assert_allclose(found.y_prob, PROB, rtol=1e-15)
        assert found.label_guessed
        assert found.classes in (None, [0, 1, 2])
        assert read_predictions(str(tmp_path / name)).label == found.label

    assert failures(list(KINDS), check) == {}


GUESSES = {
    "by name": (table(), "label", ("p_cat", "p_dog", "p_eel"), None),
    "by another name": (table("Y_True", "prob_"), "Y_True", ("prob_cat", "prob_dog", "prob_eel"), None),
    "by type": (table("animal", ""), "animal", ("cat", "dog", "eel"), None),
    "labels that columns name": (table("animal", labels=NAMES[LABEL]), "animal", ("p_cat", "p_dog", "p_eel"), NAMES),
    "labels that are columns": (table("animal", "", NAMES[LABEL]), "animal", ("cat", "dog", "eel"), NAMES),
    "prefixed columns beside others": (table().assign(age=0.5), "label", ("p_cat", "p_dog", "p_eel"), None),
    "numbered from one": (
        pd.DataFrame(PROB, columns=["class_1", "class_2", "class_3"]).assign(y=LABEL + 1),
        "y",
        ("class_1", "class_2", "class_3"),
        [1, 2, 3],
    ),
    "numbered from zero": (pd.DataFrame(PROB).assign(y=LABEL), "y", ("0", "1", "2"), [0, 1, 2]),
    "one probability": (pd.DataFrame({"y": [0, 1], "score": [0.5, 0.25]}), "y", ("score",), None),
    "one probability, named label": (
        pd.DataFrame({"y": ["no", "yes"], "p_yes": [0.5, 0.25]}),
        "y",
        ("p_yes",),
        ["no", "yes"],
    ),
    "booleans": (pd.DataFrame({"y": [True, False], "p": [0.5, 0.25]}), "y", ("p",), None),
}


def test_which_columns_are_taken_for_what(tmp_path):
    def check(case):
        frame, label, prob, classes = case
        found = read_predictions(write(tmp_path, "guess.csv", frame))
        assert (found.label, found.prob, found.label_guessed) == (label, prob, True)
        assert found.y_prob.ndim == min(len(prob), 2)
        assert found.classes == (None if classes is None else list(classes))

    assert failures(GUESSES, check) == {}


def test_weights_that_differ_are_noticed(tmp_path):
    path = tmp_path / "weighted.csv"
    path.write_text("y,p,w\n1,0.5,1\n0,0.25,1\n1,0.75,1\n")
    assert read_predictions(path).noticed == ("the column 'w' is not used",)
    path.write_text("y,p,w\n1,0.5,1\n0,0.25,2\n1,0.75,1\n")
    with pytest.warns(CalibrationWarning, match="If these are weights of the observations"):
        assert read_predictions(path).noticed == ()


def test_times_of_follow_up_are_noticed(tmp_path):
    path = tmp_path / "followed.csv"
    path.write_text("time,event,risk\n300,0,0.5\n120,1,0.25\n410,1,0.75\n")
    with pytest.warns(CalibrationWarning, match="how long each was followed: times to an event .* are not covered"):
        assert read_predictions(path).prob == ("risk",)
    path.write_text("time,event,risk\n1,0,0.5\n2,1,0.25\n3,1,0.75\n")  # an order, as of forecasts
    assert read_predictions(path).noticed == ("the column 'time' is not used",)


def test_percentages_that_look_like_probabilities_are_noticed(tmp_path):
    path = tmp_path / "percent.csv"
    path.write_text("y,p\n1,0.5\n0,0.25\n")
    with pytest.warns(CalibrationWarning, match="predictions of at most 1 %. If they are probabilities, leave out"):
        np.testing.assert_allclose(read_predictions(path, input="percent").y_prob, [0.005, 0.0025])


def test_columns_of_an_ordinary_file_are_told_apart(tmp_path):
    """A site, an age with gaps and a remark beside the risk and the outcome had to be named by hand."""
    path = tmp_path / "hospital.csv"
    path.write_text("case,ward,age,risk,died,remark\n1,A,61,0.5,0,\n2,B,,0.25,1,late\n3,C,40.5,0.75,1,late\n")
    found = read_predictions(path)
    assert (found.label, found.prob, found.label_guessed) == ("died", ("risk",), True)
    assert found.noticed == tuple(f"the column {name!r} is not used" for name in ("case", "ward", "age", "remark"))
    path.write_text("true animal,shop,big dog,cat\nbig dog,A,0.5,0.5\ncat,B,0.25,0.75\n")
    assert read_predictions(path).label == "true animal"
    path.write_text("smoker,died,risk\n0,1,0.5\n1,0,0.25\n1,1,0.5\n")
    assert read_predictions(path).label == "died"
    path.write_text("smoker,ill,risk\n0,1,0.5\n1,0,0.25\n1,1,0.5\n")
    with pytest.raises(ValueError, match="any of the columns smoker, ill could hold the labels"):
        read_predictions(path)
    path.write_text("died,risk,share\n1,85.5,0.5\n0,22.5,0.25\n")
    with pytest.raises(ValueError, match=r"'risk', is no probability between 0 and 1 .2 such values: "):
        read_predictions(path)


def test_columns_that_are_named(tmp_path):
    frame = table().assign(other=LABEL[::-1], noise=0.5)
    names = ("p_eel", "p_cat", "p_dog")
    found = read_predictions(write(tmp_path, "a.csv", frame), label="other", prob=names, classes=[2, 0, 1])
    assert (found.label, found.prob, found.label_guessed) == ("other", names, False)
    np.testing.assert_allclose(found.y_prob, PROB[:, [2, 0, 1]], rtol=1e-15)
    with pytest.raises(ValueError, match=r"in line 2 sum to .* are all probability columns named, and no others"):
        read_predictions(tmp_path / "a.csv", label="other", prob=["p_eel", "p_cat"], classes=[2, 0])
    arrays = {"a": PROB, "b": PROB[::-1], "c": LABEL, "d": LABEL[::-1]}
    found = read_predictions(write(tmp_path, "a.npz", arrays), label="d", prob=["b"])
    np.testing.assert_array_equal(found.y_prob, PROB[::-1])
    np.testing.assert_array_equal(found.y_true, LABEL[::-1])


REFUSED = {
    "absent.csv": (None, {}, "no such file: "),
    "a.xyz": ("a", {}, "expected a file ending in .csv, .txt, .dat, .tsv, .tab, .json, .jsonl, .ndjson, .parquet, .pq"),
    "noending": ("a", {}, "got 'no ending'; other names need `file_format`"),
    "empty.csv": ("", {}, "cannot be read: "),
    "ragged.csv": ("a,b\n1,2,3\n1,2,3,4\n", {}, "the header has 2 names, the lines below have 3 values"),
    "broken.npz": (b"no archive", {}, "cannot be read as NPZ: "),
    "broken.npy": (b"no array", {}, "cannot be read as NPY: "),
    "broken.parquet": (b"no table", {}, "cannot be read as Parquet: "),
    "flat.npy": (PROB[:, 0], {}, "expected a table of numbers in two dimensions, got shape (8,)"),
    "missing.csv": (
        table(),
        {"label": "animal"},
        "no column 'animal' for `label`; the columns are p_cat, p_dog, p_eel, label",
    ),
    "missing prob.csv": (table(), {"prob": ["p_ant"]}, "no column 'p_ant' for `prob`; the columns are "),
    "no label.csv": (
        table("weight").assign(weight=0.5),
        {},
        "no column looks like labels, which are texts or whole numbers, among p_cat, p_dog",
    ),
    "two labels.csv": (table("one").assign(two=[0, 1] * (len(LABEL) // 2)), {}, "name it with `label`"),
    "no probabilities.csv": (pd.DataFrame({"y": [0, 1], "a": [1, 2]}), {}, "no column of probabilities (floats)"),
    "two arrays.npz": ({"a": PROB, "b": PROB, "y": LABEL}, {}, "cannot choose among the arrays a, b; name one with"),
    "absent array.npz": ({"p": PROB, "y": LABEL}, {"label": "z"}, "no array 'z' for `label`; the arrays are p, y"),
    "lengths.npz": (
        {"p": PROB, "y": LABEL[:-1]},
        {},
        "lengths.npz: labels and probabilities must have the same length",
    ),
    "one-hot.npz": (
        {"p": PROB, "y": 2 * np.eye(3)[LABEL]},
        {"label": "y"},
        "got 'y' of shape (8, 3) and 'p' of shape (8, 3)",
    ),
    "gap.npz": (
        {"p": np.where(PROB[5, 1] == PROB, np.nan, PROB), "y": LABEL},
        {},
        "in row 5, column 'p[1]', is missing",
    ),
    "logits.npz": (
        {"p": 9 * PROB - 4, "y": LABEL},
        {},
        "column 'p[0]', is no probability between 0 and 1 (",
    ),
    "three labels.csv": (
        "y,p\n0,0.5\n1,0.25\n2,0.5\n",
        {},
        "the labels are 0, 1, 2, and there is one probability column",
    ),
    "two labels or.csv": (
        "age,ward,p\n7,A,0.5\n8,B,0.25\n",
        {},
        "any of the columns age, ward could hold the labels",
    ),
    "two names.npz": (
        {"p": PROB, "y": LABEL},
        {"prob": ["p", "q"]},
        "`prob` must name one array of an NPZ file, got p, q",
    ),
}


UNDECIDED = {"logits.npz", "two arrays.npz", "two labels.csv", "two labels or.csv"}
"""What could be read once something is decided, so that the command line knows a command."""


def test_what_cannot_be_read(tmp_path):
    def check(name):
        thing, options, message = REFUSED[name]
        path = tmp_path / name
        if isinstance(thing, bytes):
            path.write_bytes(thing)
        elif thing is not None:
            write(tmp_path, name, thing)
        kind = UndecidedError if name in UNDECIDED else ValueError
        check_refused(read_predictions, kind, message, path, **options)

    assert failures(list(REFUSED), check) == {}
    refused = partial(check_refused, read_predictions, TypeError)
    refused("`prob` must be a sequence of names, got 'p'.", tmp_path / "missing.csv", prob="p")
    with pytest.raises(TypeError):
        read_predictions(3)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", table())

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    check_refused(read_predictions, ValueError, "reading Parquet needs pyarrow: pip install pyarrow", path)


def test_groups_and_weights_are_columns_that_were_named(tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text("patient_id,y,p,w\n7,0,0.25,1.0\n7,1,0.5,2.0\n9,1,0.75,0.5\n")
    with pytest.warns(CalibrationWarning) as said:
        assert read_predictions(path).prob == ("p",)
    for text in (
        "the column 'patient_id' has 2 different values among 3 observations",
        "weights of the observations, name it with",
    ):
        assert any(text in str(warning.message) for warning in said)
    found = read_predictions(path, groups="patient_id", sample_weight="w")
    assert found.prob == ("p",)
    assert found.groups.tolist() == [7, 7, 9]
    assert found.sample_weight.tolist() == [1.0, 2.0, 0.5]
    with pytest.raises(ValueError, match="no column 'centre' for `groups`"):
        read_predictions(path, groups="centre")
    np.savez(tmp_path / "a.npz", label=[0, 1], prob=[0.5, 0.5], site=[1, 2])
    assert read_predictions(tmp_path / "a.npz", prob=["prob"], groups="site").groups.tolist() == [1, 2]


def test_arrays_that_are_not_used_are_noticed(tmp_path):
    """Repeated patients of an NPZ file passed without a word, where a CSV file warned."""
    arrays = {"label": LABEL, "prob": PROB, "patient_id": np.arange(len(LABEL)) // 2, "fold": np.arange(len(LABEL)) % 2}
    np.savez(tmp_path / "a.npz", **arrays, note=np.array([1.0]))
    with pytest.warns(CalibrationWarning) as said:
        found = read_predictions(tmp_path / "a.npz")
    texts = [str(warning.message) for warning in said]
    assert any("the column 'patient_id' has" in text for text in texts)
    assert any("If it is the fold of a cross-validation" in text for text in texts)
    assert found.noticed == ()
    read_predictions(tmp_path / "a.npz", groups="patient_id", folds="fold")


def test_an_id_that_does_not_repeat_is_no_group(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id,y,p\n1,0,0.25\n2,1,0.5\n")
    assert read_predictions(path).label == "y"


def test_columns_of_two_models_are_refused_with_the_way_out(tmp_path):
    """The advice was to divide rows by their sums."""
    path = tmp_path / "two.csv"
    path.write_text("y,model_a,model_b\n" + "1,0.7,0.8\n0,0.1,0.3\n0,0.25,0.4\n" * 5)
    with pytest.raises(ValueError, match=r"columns model_a, model_b do not hold .*with `prob`, one of them if each is"):
        read_predictions(path)
    assert read_predictions(path, prob=["model_b"]).y_prob[:2].tolist() == [0.8, 0.3]


def test_times_are_named_and_dates_in_order_are_offered(tmp_path):
    days = pd.date_range("2026-01-01", periods=8).strftime("%Y-%m-%d")
    path = write(tmp_path, "a.csv", table().assign(date=days, year=2026))
    found = read_predictions(path)
    assert found.time is None
    assert found.offered_time.name == "the column 'date'"
    assert found.offered_time.values.tolist() == days.tolist()
    named = read_predictions(path, time="date")
    assert named.time.tolist() == days.tolist()
    assert named.offered_time is None
    with pytest.raises(ValueError, match="no column 'day' for `time`"):
        read_predictions(path, time="day")
    with pytest.raises(ValueError, match=r"no column 'day' for `lead`; .* and a lead is also a whole number"):
        read_predictions(path, lead="day")
    for other in (days[[1, 0, 2, 3, 4, 5, 6, 7]], ["2026-01-01"] * 8, [*days[:-1], "2026-13-01"], [*days[:-1], None]):
        assert read_predictions(write(tmp_path, "b.csv", table().assign(date=other))).offered_time is None
    times = pd.to_datetime(days[::-1])
    for name in ("a.parquet", "a.npz"):
        arrays = {"label": LABEL, "prob": PROB, "date": times.to_numpy()}
        given = write(tmp_path, name, table().assign(date=times) if name == "a.parquet" else arrays)
        assert read_predictions(given).offered_time.column == "date"
        assert read_predictions(given, time="date").time[0] == times[0]
