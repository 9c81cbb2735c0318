"""The bytes of a state: what is declared is compared before memory is taken, and what cannot be is refused."""

import io
import json
import tracemalloc
import zipfile
from functools import cache

import numpy as np
import pytest

import caltest
from caltest.streaming import CalibrationState, RedrawnCells
from caltest.streaming.states import _state_file
from tests.reference.cases import mostly_slow


@cache
def two():
    return CalibrationState().update(["no", "yes", "yes"], [0.25, 0.5, 0.75], classes=["no", "yes"])


@cache
def many():
    cells = RedrawnCells(caltest.EqualWidth(2), n_resamples=9)
    return CalibrationState(3, caltest.Canonical(), cells).update([0, 1, 2], np.eye(3) * 0.7 + 0.1, source="a")


@cache
def behind():
    return CalibrationState(3).update([0, 1, 2], [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75], [0.75, 0.25, 0.0]])


def parts(state):
    """Header and arrays of a state."""
    with np.load(io.BytesIO(state.to_bytes())) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("header").tobytes()), arrays


def forged(state, change):
    """The bytes of a changed state with the checksum of what it holds now."""
    header, arrays = parts(state)
    change(header, arrays)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    return _state_file.pack(header["settings"], arrays, header["more"])


def put(name, place, value):
    return lambda _, arrays: arrays[name].__setitem__(place, value)


def cast(name, change):
    return lambda _, arrays: arrays.update({name: change(arrays[name])})


def settings(**values):
    return lambda header, _: header["settings"].update(values)


IMPOSSIBLE = {
    "as it is": (two, lambda *_: None, None),
    "many, as it is": (many, lambda *_: None, None),
    "no such number of classes": (two, settings(n_classes=1), "`n_classes`"),
    "10^8 classes": (two, settings(n_classes=10**8), "`n_classes` must be at most"),
    "a text of classes": (two, settings(n_classes="2"), "`n_classes`"),
    "no such lens": (two, settings(lens="Spectacles"), "there is no 'Spectacles'"),
    "a list as a lens": (two, settings(lens=["Canonical"]), "settings"),
    "micro-cells": (two, settings(micro_cells=3), "`micro_cells`"),
    "cells without a partition": (many, settings(micro_cells={"n_resamples": 9}), "there is no 'partition'"),
    "no draws": (many, lambda h, _: h["settings"]["micro_cells"].update(n_resamples=0), "`n_resamples`"),
    "10^12 draws": (many, lambda h, _: h["settings"]["micro_cells"].update(n_resamples=10**12), "`n_resamples`"),
    "equal classes": (two, lambda h, _: h["more"].update(classes=["a", "a"]), "`classes`"),
    "numbers as classes": (two, lambda h, _: h["more"].update(classes=[1, 2]), "`classes`"),
    "a further array": (two, lambda _, a: a.update(more=np.zeros(3)), "the arrays are header, logs, more, row, sums"),
    "a missing array": (two, lambda _, a: a.pop("logs"), "the arrays are header, row, sums"),
    "another type": (two, cast("sums", lambda sums: sums.astype(float)), "the array sums has shape"),
    "another shape": (two, cast("sums", lambda sums: sums[:, :-1]), "the array sums has shape"),
    "a negative cell": (two, put("row", 0, -1), "array `row`"),
    "a cell twice": (two, put("row", 1, 10**6), "array `row`"),
    "fewer cells than sums": (two, cast("row", lambda row: row[:-1]), "array `row`"),
    "a negative count": (two, put("sums", (0, 0), -5), "array `sums`"),
    "an enormous count": (two, put("sums", (0, 0), 2**62), "array `sums`"),
    "a negative distance": (two, put("sums", (0, 1), -1), "array `sums`"),
    "a distance above the cell": (two, put("sums", (0, 1), 2**50), "array `sums`"),
    "an upper part below": (two, put("sums", (0, 2), 2**40), "array `sums`"),
    "a negative logarithm": (two, put("logs", (0, 0), -1), "array `logs`"),
    "many counts": (many, put("counts", (0, 0, 0), 5), "array `counts`"),
    "negative counts": (many, put("counts", (0, slice(0, 2), 0), [-1, 1]), "array `counts`"),
    "many negative predictions": (many, put("sums", (0, 3), -1), "array `sums`"),
    "many negative probabilities": (many, put("own", (0, 0, 0), -1), "array `own`"),
    "another number of confidences": (many, put("confidence_sums", (0, 0), 9), "array `confidence_sums`"),
    "many impossible outcomes": (many, put("impossible", 0, 10), "array `impossible`"),
    "sources that are no names": (many, cast("sources", lambda _: np.frombuffer(b"[1]", np.uint8)), "array `sources`"),
    "too few sources": (many, cast("sources", lambda _: np.frombuffer(b"[]", np.uint8)), "array `sources`"),
    "rows that end before they begin": (many, put("rows", 0, [3, 1]), "array `rows`"),
    "of a lens, as it is": (behind, lambda *_: None, None),
    "more impossible labels than observations": (behind, put("impossible_sums", (0, 0), 3), "array `impossible_sums`"),
    "an impossible label elsewhere": (behind, put("impossible_row", 0, 0), "array `impossible_sums`"),
    "farther impossible labels": (behind, put("impossible_sums", (0, 2), 2**20), "array `impossible_sums`"),
    "surer impossible labels": (behind, put("impossible_logs", (0, 0), 2**30), "array `impossible_sums`"),
    "no word on impossible labels": (behind, lambda _, a: a.pop("impossible_row"), "the arrays are header, imp"),
    "rows twice": (
        many,
        lambda _, a: a.update(rows=[[0, 3], [1, 4]], sources=np.frombuffer(b'["a", "a"]', np.uint8)),
        "counted already",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_states_with_the_right_checksum_are_refused(name):
    state, change, words = IMPOSSIBLE[name]
    data = forged(state(), change)
    if words is None:
        assert CalibrationState.from_bytes(data) == state()
        return
    with pytest.raises(ValueError, match=r"`data`|rows 1 to|RedrawnCells") as raised:
        CalibrationState.from_bytes(data)
    assert words in str(raised.value)


def archive(header, **arrays):
    """An archive of a header and of arrays of zeros, which are declared by their shape and compressed to little."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        for name, shape, content in [("header", (len(text),), text), *((k, *v) for k, v in arrays.items())]:
            head = io.BytesIO()
            descr = "|u1" if name == "header" else "<i8"
            np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                entry.write(head.getvalue())
                entry.write(content)
    return buffer.getvalue()


ZEROS = bytes(2**26)
LOGS, ROW = ((2, 2), bytes(32)), ((1,), bytes(8))
BOMBS = {
    "zeros": {"row": ROW, "sums": ((2**26 // 56, 7), ZEROS[: 2**26 // 56 * 56]), "logs": LOGS},
    "declared only": {"row": ROW, "sums": ((2**40, 7), bytes(56)), "logs": LOGS},
    "negative": {"row": ROW, "sums": ((-8, 7), bytes(56)), "logs": LOGS},
    "other axes": {"row": ROW, "sums": ((1, 7), bytes(56)), "logs": ((2, 2**23), ZEROS[: 2**23 * 8 // 4])},
    "a large header": {"header": b" " * 2**26, "row": ROW, "sums": ((1, 7), bytes(56)), "logs": LOGS},
    "a deep header": {"header": b"[" * 2**19, "row": ROW, "sums": ((1, 7), bytes(56)), "logs": LOGS},
}


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", mostly_slow(BOMBS))
def test_memory_is_not_taken_for_what_is_declared(name):
    """64 MB of zeros are 64 kB in a file, and are refused in less than 8 MB."""
    data = archive(**{"header": parts(two())[0]} | BOMBS[name])
    assert len(data) < 2**18
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="calibration state"):
            CalibrationState.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_the_checksum_of_large_arrays_comes_before_them(monkeypatch):
    monkeypatch.setattr(_state_file, "_LARGE", 0)
    for state in (two(), many()):
        assert CalibrationState.from_bytes(state.to_bytes()) == state
    header, arrays = parts(two())
    arrays["sums"][0, 0] += 1
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    monkeypatch.setattr(_state_file, "_array", allowed := _only_the_header(_state_file._array))
    with pytest.raises(ValueError, match="these were changed"):
        CalibrationState.from_bytes(buffer.getvalue())
    assert allowed.names == ["header"]


class _only_the_header:  # noqa: N801
    """Notes which arrays are read."""

    def __init__(self, read):
        self.read, self.names = read, []

    def __call__(self, archive, name, declared):
        self.names.append(name)
        return self.read(archive, name, declared)


def test_a_state_has_a_greatest_number_of_classes_and_draws():
    with pytest.raises(ValueError, match="`n_classes` must be at most 1,048,576, got 100,000,000"):
        CalibrationState(10**8)
    with pytest.raises(ValueError, match="`n_resamples` of RedrawnCells must be below"):
        CalibrationState(3, caltest.Canonical(), RedrawnCells(n_resamples=10**12))
