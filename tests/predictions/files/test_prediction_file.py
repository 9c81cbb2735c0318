"""What numbers and words of columns mean, which rows are taken, and which label is the event."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from caltest.predictions import read_predictions
from caltest.results import CalibrationWarning
from tests import writers

N = 200


@pytest.fixture
def rng():
    return np.random.default_rng(20261127)


def stream(frame, **how):
    return io.BytesIO(frame.to_csv(index=False, **how).encode())


def read(frame, **options):
    return read_predictions(stream(frame), file_format="csv", **options)


@pytest.fixture
def binary(rng):
    p = rng.random(N)
    return p, (rng.random(N) < p).astype(int)


def test_logits_become_probabilities(rng, binary):
    p, y = binary
    logit = np.log(p / (1 - p))
    np.testing.assert_array_equal(read(pd.DataFrame({"y": y, "score": logit}), input="logits").y_prob, expit(logit))
    many = rng.normal(size=(N, 3)) * 20
    frame = pd.DataFrame(many, columns=["p_0", "p_1", "p_2"]).assign(y=np.arange(N) % 3)
    np.testing.assert_array_equal(read(frame, input="logits").y_prob, softmax(many, axis=1))
    content = io.BytesIO(writers.npz(labels=np.arange(N) % 3, logits=many))
    np.testing.assert_array_equal(read_predictions(content, input="logits").y_prob, softmax(many, axis=1))
    with pytest.raises(ValueError, match='if these are logits: `input="logits"`'):
        read(frame)
    with pytest.raises(ValueError, match="`input` must be one of 'probabilities', 'logits', 'percent', got 'odds'"):
        read(frame, input="odds")


def test_percentages_are_divided(binary):
    p, y = binary
    p = p.round(4)
    signed = pd.DataFrame({"y": y, "risk": [f"{100 * one:.2f} %" for one in p]})
    for found in (read(signed), read(signed, input="percent")):
        np.testing.assert_allclose(found.y_prob, p, rtol=1e-12)
    assert read(signed).reading["values"] == "percentages (guessed)"
    numbers = pd.DataFrame({"y": y, "risk": 100 * p})
    np.testing.assert_allclose(read(numbers, input="percent").y_prob, p, rtol=1e-12)
    with pytest.raises(ValueError, match='if these are percentages: `input="percent"`'):
        read(numbers)


def test_words_stand_for_the_numbers_that_are_given(binary):
    _, y = binary
    words = np.array(["likely", "unlikely"])[np.arange(N) % 2]
    frame = pd.DataFrame({"correct": y, "confidence": words})
    found = read(frame, verbal={"likely": 0.8, "unlikely": 0.1})
    np.testing.assert_array_equal(found.y_prob, np.where(np.arange(N) % 2, 0.1, 0.8))
    with pytest.raises(ValueError, match=r"column 'confidence' holds words .likely, unlikely.; say which probability"):
        read(frame)
    with pytest.raises(ValueError, match="'unlikely' in line 3, column 'confidence', is not a number"):
        read(frame, verbal={"likely": 0.8})


def test_missing_values_are_counted_and_left_out(binary):
    p, y = binary
    label = pd.Series(y.astype(object)).mask(np.arange(N) % 10 == 0)
    frame = pd.DataFrame(
        {"y": label, "p": pd.Series(p).mask(np.arange(N) == 3), "age": pd.Series(50 * p).mask(p > 0.5)}
    )
    message = (
        r"values are missing: 20 of the column 'y' \(line 2, line 12, line 22, ...\), 1 of the column 'p' \(line 5\)"
    )
    with pytest.raises(ValueError, match=message):
        read(frame)
    with pytest.warns(CalibrationWarning, match="21 of 200 rows are left out: 20 without 'y', 1 without 'p'.") as said:
        found = read(frame, drop_missing=True)
    assert "differ" not in str(said[0].message)
    kept = (np.arange(N) % 10 > 0) & (np.arange(N) != 3)
    np.testing.assert_array_equal(found.rows, np.flatnonzero(kept))
    np.testing.assert_array_equal(found.y_true, y[kept])
    np.testing.assert_allclose(found.y_prob, p[kept], rtol=1e-12)


def test_labels_that_are_missing_where_predictions_are_large_are_said(binary):
    p, y = binary
    frame = pd.DataFrame({"y": pd.Series(y.astype(object)).mask(p > 0.8), "p": p})
    with pytest.warns(CalibrationWarning, match="Their predictions differ from the others .mean 0.9"):
        read(frame, drop_missing=True)


@pytest.mark.slow
def test_missing_labels_that_depend_on_nothing_are_seldom_said_to(rng):
    """The two-sided test has the level of 1 %."""
    said, sets = 0, 400
    for _ in range(sets):
        p = rng.random(60)
        frame = pd.DataFrame({"y": pd.Series((rng.random(60) < p).astype(object)).mask(rng.random(60) < 0.3), "p": p})
        with pytest.warns(CalibrationWarning) as caught:
            read(frame, drop_missing=True)
        said += "differ" in str(caught[0].message)
    assert said / sets <= 0.01 + 4 * np.sqrt(0.01 * 0.99 / sets)


def test_numbers_that_are_missing_in_words(binary):
    """NA of R, None of Python and a point of SAS are no numbers; but NA may be a class."""
    p, y = binary
    for word in ("NA", "NaN", "None", "NULL", "."):
        frame = pd.DataFrame({"y": y, "p": [word if i == 4 else one for i, one in enumerate(p)]})
        with pytest.raises(ValueError, match=r"values are missing: 1 of the column 'p' \(line 6\)"):
            read(frame)
    frame = pd.DataFrame({"label": ["NA", "b"] * 3, "p_NA": [0.5] * 6, "p_b": [0.5] * 6})
    assert read(frame).classes == ["NA", "b"]


def test_rows_are_chosen_by_a_condition(binary):
    p, y = binary
    frame = pd.DataFrame({"y": y, "p": p, "split": np.array(["train", "test"])[np.arange(N) % 2]})
    found = read(frame, where="split == 'test'")
    np.testing.assert_array_equal(found.y_true, y[1::2])
    assert found.reading["rows"] == "100 of 200, where split == 'test'"
    frame.loc[5, "p"] = 7.0
    with pytest.raises(ValueError, match="7 in line 7, column 'p', is no probability"):
        read(frame, where="split == 'test'")
    for wrong, message in (
        ("split == 'valid'", "no row has split == 'valid'"),
        ("spilt == 'test'", "`where` must be a condition on columns, such as .*; the columns are y, p, split"),
        ("p + 1", "`where` must be true or false for every row"),
        ("@np.sum(p) > 0", "`where` must not hold '@' or '__'"),
    ):
        with pytest.raises(ValueError, match=message):
            read(frame, where=wrong)


@pytest.mark.slow(few_draws=True)
def test_the_event_is_named_or_in_the_words(binary):
    p, y = binary
    for event, other in (
        ("yes", "no"),
        ("TRUE_", "FALSE_"),
        ("Case", "Control"),
        ("event", "no event"),
        ("ill", "well"),
    ):
        frame = pd.DataFrame({"state": np.where(y, event, other), "p": p})
        if event in {"TRUE_", "ill"}:
            with pytest.raises(ValueError, match="name the event with `event`") as caught:
                read(frame)
            assert caught.value.options == {"event": event}  # its predictions are larger
            found = read(frame, event=event)
        else:
            found = read(frame)
            assert found.matched_by == f"words: the event is {event} (guessed)"
        assert found.classes == [other, event]
    frame = frame.rename(columns={"p": "p_no"}).assign(state=np.where(y, "yes", "no"))
    assert read(frame).classes == ["yes", "no"]
    with pytest.raises(ValueError, match="`event` and `classes` say the same thing"):
        read(frame, event="yes", classes=["yes"])
    both = frame.assign(p_yes=1 - frame["p_no"])
    assert read(both, event="no").columns == {"no": "p_no"}
    with pytest.raises(ValueError, match="`event` must be one of the classes"):
        read(both, event="maybe")


def test_one_refusal_holds_all_that_is_undecided(binary):
    p, y = binary
    frame = pd.DataFrame({"cause": np.where(y, "ja", "nein"), "seen": np.where(y, "x", "z"), "risk": 100 * p})
    with pytest.raises(ValueError, match="any of the columns cause, seen could hold the labels") as caught:
        read(frame)
    assert "if these are percentages" in str(caught.value)
    assert "name the event with `event`: ja or nein" in str(caught.value)
    assert caught.value.options == {"label": "cause", "input": "percent", "event": "ja"}
    assert read(frame, **caught.value.options).classes == ["nein", "ja"]


def test_arrays_have_no_rows_to_choose(binary):
    p, y = binary
    for name, value in {"where": "p > 0.5", "drop_missing": True, "verbal": {"likely": 0.5}}.items():
        with pytest.raises(ValueError, match=f"`{name}` is for tables, and an NPZ file holds arrays"):
            read_predictions(io.BytesIO(writers.npz(y=y, p=p)), **{name: value})
