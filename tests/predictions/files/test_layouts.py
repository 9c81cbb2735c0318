"""Tables that look like another layout stay as they are."""

import io

import numpy as np
import pandas as pd
import pytest

from caltest.predictions import read_predictions


@pytest.fixture
def rng():
    return np.random.default_rng(20261127)


def read(frame, **options):
    return read_predictions(io.BytesIO(frame.to_csv(index=False).encode()), file_format="csv", **options)


def test_two_rows_of_each_patient_are_no_classes():
    """60 rows of 30 patients with two outcomes and risks that sum to 1 are not a row for each patient and outcome."""
    rows = [("yes" if i % 2 else "no", 0.1 if i % 2 else 0.9, i // 2) for i in range(60)]
    with pytest.warns(match="the column 'patient' has 30 different values"):
        found = read(pd.DataFrame(rows, columns=["outcome", "risk", "patient"]))
    assert len(found.y_true) == 60
    assert "layout" not in found.reading


def test_of_two_classes_a_score_may_be_that_of_the_event(rng):
    """Labels, predictions and scores of two classes: the score is not taken for that of the predicted class."""
    p = rng.random(40)
    label, predicted = (np.array(["no", "yes"])[(q < p).astype(int)] for q in (rng.random(40), 0.5))
    found = read(pd.DataFrame({"label": label, "prediction": predicted, "score": p}))
    assert found.classes == ["no", "yes"]
    np.testing.assert_allclose(found.y_prob, p, rtol=1e-12)


def test_one_hot_labels_have_the_names_of_the_probabilities(rng):
    prob = rng.dirichlet(np.ones(3), 30)
    marks = np.eye(3, dtype=int)[rng.integers(0, 3, 30)]
    frame = pd.DataFrame(prob, columns=["p_a", "p_b", "p_c"])
    named = frame.join(pd.DataFrame(marks, columns=["is_a", "is_b", "is_c"]))
    found = read(named)
    assert list(found.y_true) == [list("abc")[k] for k in marks.argmax(axis=1)]
    assert found.reading["layout"] == "one-hot labels in the columns is_a to is_c (guessed)"
    other = frame.join(pd.DataFrame(marks, columns=["u", "v", "w"]))
    with pytest.raises(ValueError, match="not named as the probability columns are"):
        read(other)


def test_a_long_file_with_marks_of_the_true_class(rng):
    prob, true = rng.dirichlet(np.ones(3), 20), rng.integers(0, 3, 20)
    rows = [(f"q{i}", f"c{k}", prob[i, k], int(true[i] == k)) for i in range(20) for k in rng.permutation(3)]
    found = read(pd.DataFrame(rows, columns=["question", "option", "probability", "correct"]))
    assert list(found.y_true) == [f"c{k}" for k in true]
    np.testing.assert_allclose(found.y_prob, prob[:, [int(name[-1]) for name in found.prob]], rtol=1e-12)
