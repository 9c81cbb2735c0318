"""A random problem that is written in a random format, with random options, is read back as the same problem."""

import io

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from caltest.predictions import read_predictions
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._validation import validate_problem
from tests import writers

WORDS = ["cat", "dog", "eel", "Fünf", "big cat", "g-7"]
PREFIXES = ["p_", "prob_", "proba_", "probability_", ""]


@st.composite
def problems(draw):
    """Labels, probabilities and the label of each column; and how they stand in the columns of a frame."""
    n_classes = draw(st.integers(2, 6))
    kind = draw(st.sampled_from(["int", "str", "bool", "event"]))
    n = draw(st.integers(n_classes, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if kind in {"bool", "event"}:
        n_classes = 2
    names = {"int": list(range(n_classes)), "str": WORDS[:n_classes]}.get(kind, ["no", "yes"])
    prob = rng.dirichlet(np.ones(n_classes), n)
    index = np.concatenate([rng.permutation(n_classes), rng.integers(n_classes, size=n - n_classes)])
    order = rng.permutation(n_classes) if kind in {"int", "str"} else np.arange(n_classes)
    prefix = draw(st.sampled_from(PREFIXES))
    columns = {f"{prefix}{names[k]}": prob[:, k] for k in ([1] if kind == "event" else order)}
    labels = index == 1 if kind == "bool" else [names[k] for k in index]
    frame = pd.DataFrame({**columns, draw(st.sampled_from(["label", "Y_True", "target"])): labels})
    extra = {
        "groups": ("patient_id", [f"p{k}" for k in rng.integers(3, size=n)]),
        "folds": ("fold", rng.integers(3, size=n)),
        "sample_weight": ("weight", rng.integers(1, 9, size=n) / 4),
    }
    chosen = {name: extra[name] for name in draw(st.sets(st.sampled_from(list(extra))))}
    frame = frame.assign(**dict(chosen.values()))
    frame = frame[list(rng.permutation(frame.columns))] if kind in {"int", "str", "event"} else frame
    return frame, index, prob, [names[k] for k in order], kind, chosen


@st.composite
def written(draw, frame):
    """Bytes of a file, its ending, and the options that say how it is read."""
    ending = draw(st.sampled_from(list(writers.TABLES)))
    options = {}
    if ending == ".csv":
        mark = draw(st.sampled_from([",", "."]))
        sep = draw(st.sampled_from([";", "\t", "|"] if mark == "," else [",", ";", "\t", "|"]))
        encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
        line = draw(st.sampled_from(["\n", "\r\n"]))
        content = writers.csv(frame, sep, mark, encoding=encoding, line=line)
        options = {"sep": sep, "decimal": mark} | ({"encoding": encoding} if encoding == "latin-1" else {})
    else:
        content = writers.TABLES[ending](frame)
    packed = draw(st.sampled_from(["", *writers.COMPRESS]))
    return writers.COMPRESS[packed](content) if packed else content, ending, packed, options


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_back(tmp_path_factory, data):
    frame, index, prob, names, kind, chosen = data.draw(problems())
    content, ending, packed, options = data.draw(written(frame))
    named = {argument: column for argument, (column, _) in chosen.items()}
    if data.draw(st.booleans()):
        source = io.BytesIO(content)
        options["file_format"] = {".feather": "arrow"}.get(ending, ending.removeprefix("."))
    else:
        source = tmp_path_factory.getbasetemp() / f"property{ending}{packed}"
        source.write_bytes(content)
    found = read_predictions(source, **named, **options)
    if kind == "event":
        np.testing.assert_allclose(found.y_prob, prob[:, 1], rtol=1e-14)
        assert found.classes == ["no", "yes"]
        assert found.y_true.tolist() == [found.classes[k] for k in index]
    elif kind == "bool":
        np.testing.assert_allclose(found.y_prob, prob, rtol=1e-14)
        assert found.classes is None
        assert found.y_true.tolist() == (index == 1).tolist()
    else:
        label_of = dict(enumerate(WORDS)) if kind == "str" else {k: k for k in range(6)}
        assert found.y_true.tolist() == [label_of[k] for k in index]
        columns = [found.classes.index(label_of[k]) for k in range(len(names))]
        np.testing.assert_allclose(found.y_prob[:, columns], prob, rtol=1e-14)
    for argument, (_, values) in chosen.items():
        assert getattr(found, argument).tolist() == list(values)


CLASSES = [
    "cat",
    "dog",
    "Cat",
    "big cat",
    "no",
    "yes",
    "true",
    "false",
    "True",
    "False",
    "event",
    "nonevent",
    "healthy",
]
CLASSES += [
    "ill",
    "0",
    "1",
    "2",
    "-1",
    "class_0",
    "class_1",
    "class_2",
    "column_0",
    "column_1",
    "c1",
    "risk",
    "CAT",
    "p",
]
LABELS = [["cat", "dog"], ["no", "yes"], [0, 1], [1, 2], [0, 1, 2], [-1, 1], [False, True], ["Cat", "dog"], ["0", "x"]]
LABELS += [["cat", "dog", "big cat"], [0.0, 1.0], ["ill", "healthy"], ["CAT", "DOG"]]


def understood(read):
    """Return the probability that each observation gave to its label; None if the columns are refused."""
    try:
        prob, outcome = read()
    except ValueError:
        return None
    return prob[np.arange(len(outcome)), outcome].tolist()


@settings(max_examples=30, deadline=None)
@given(
    labels=st.sampled_from(LABELS),
    names=st.lists(st.sampled_from(CLASSES), min_size=1, max_size=3, unique=True),
    prefix=st.sampled_from(["", "p_", "prob_", "probs_", "P "]),
)
def test_a_file_and_a_frame_are_understood_in_the_same_way(labels, names, prefix):
    """Names of columns belong to the same labels, or are refused, whether a file or a frame has them."""
    n = 12
    prob = np.random.default_rng(0).dirichlet(np.ones(max(len(names), 2)), size=n)[:, : len(names)]
    frame = pd.DataFrame(prob, columns=[prefix + name for name in names])
    y_true = pd.Series([labels[k % len(labels)] for k in range(n)], name="label_")

    def of_frame():
        read = read_problem({"y_true": y_true}, {"y_prob": frame if len(names) > 1 else frame.iloc[:, 0]})
        return validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)

    def of_file():
        text = frame.assign(label_=y_true).to_csv(index=False).encode()
        file = read_predictions(io.BytesIO(text), "label_", list(frame.columns), file_format="csv", header=0)
        return validate_problem(file.y_true, file.y_prob, file.classes)

    expected = understood(of_frame)
    if labels == ["no", "yes"] and len(names) == 1 and expected is None:
        assert understood(of_file) in (None, [p if k % 2 else 1 - p for k, p in enumerate(prob[:, 0])])  # yes happened
    else:
        assert understood(of_file) == expected
