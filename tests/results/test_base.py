"""What every result keeps: strict JSON, tidy frames, `repr` as code, pickles, pictures; none can be changed."""

import ast
import copy
import json
import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import caltest as ct
from caltest import (
    comparison,
    estimation,
    hypothesis_tests,
    plotting,
    predictions,
    ranking,
    recalibration,
    resampling,
    simulation,
    statistics,
    streaming,
)
from caltest.results import Result
from caltest.results._description import Description
from caltest.simulation.studies._study import Study
from tests.reference.cases import mostly_slow
from tests.reference.examples import subclasses
from tests.results.examples import EXAMPLES, content, described, example

ROOMS = (
    ct.clinical,
    ct.results,
    predictions,
    resampling,
    statistics,
    estimation,
    hypothesis_tests,
    comparison,
    ranking,
    recalibration,
    streaming,
    simulation,
)
NAMES = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
CODE = {**NAMES, "nan": np.nan, "inf": np.inf}


def test_every_kind_has_an_example_and_a_public_name():
    kinds = set(subclasses(Result))
    assert kinds == set(EXAMPLES)
    assert {kind for kind in kinds if NAMES.get(kind.__name__) is not kind} == set()
    assert {kind for kind in EXAMPLES if type(example(kind)) is not kind} == set()


# JSON and frames.


def test_to_dict_is_strict_json():
    for kind in EXAMPLES:
        told = content(kind)
        written = json.dumps(told, allow_nan=False)
        assert json.loads(written) == told, kind
        assert all(isinstance(name, str) for name in told), kind
        assert not any(name.startswith("_") for name in told), kind
        assert len(written) < 200_000, f"{kind}: large arrays are left out"


def test_to_dict_holds_the_conclusion_and_the_notes():
    for kind in EXAMPLES:
        result = example(kind)
        told = content(kind)
        if hasattr(result, "conclusion"):
            assert told["conclusion"] == result.conclusion, kind
        for note in told.get("notes", []):
            assert set(note) == {"code", "text", "link"}, kind


def test_to_frame_is_tidy():
    for kind in EXAMPLES:
        frame = example(kind).to_frame()
        assert isinstance(frame, pd.DataFrame), kind
        assert len(frame) >= 1, kind
        assert frame.columns.is_unique, kind
        assert all(isinstance(name, str) for name in frame.columns), kind
        nested = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, dict | list | tuple)).any()]
        assert nested == [], kind
        arrays = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, np.ndarray)).any()]
        assert arrays == [], kind


def test_ends_of_arrays_are_lower_and_upper():
    """Ends of a single interval are ``confidence_interval.low`` and ``.high``."""
    for kind in EXAMPLES:
        arrays = [f.name for f in fields(kind) if isinstance(getattr(example(kind), f.name), np.ndarray)]
        assert not [name for name in arrays if name.rpartition("_")[2] in {"low", "high"}], kind
        ends = [name for name in arrays if name.rpartition("_")[2] == "lower"]
        assert all(name.replace("lower", "upper") in arrays for name in ends), kind


def test_tables_have_a_row_for_each_test():
    for kind in [hypothesis_tests.CalibrationTable, *subclasses(hypothesis_tests.CalibrationTable)]:
        table = example(kind)
        assert len(table.to_frame()) == len(table) == len(list(table)) == len(table.to_dict()["tests"]), kind


# What is shown.


def test_conclusions_are_sentences():
    for kind in EXAMPLES:
        shown = described(kind)
        assert isinstance(shown, Description), kind
        assert shown.title, kind
        assert not shown.title.endswith("."), kind
        for sentence in (*shown.conclusion, *shown.remarks):
            assert sentence == sentence.strip(), kind
            assert sentence.endswith((".", "]")), (kind, sentence)


def test_repr_is_code_of_a_line_or_two():
    for kind in EXAMPLES:
        result = example(kind)
        shown = repr(result)
        assert "\n" not in shown, kind
        assert len(shown) <= 320, kind
        assert " at 0x" not in shown, kind
        if issubclass(kind, Study):  # what it holds are frames: a line with their sizes
            sizes = [value.shape for value in vars(result).values() if isinstance(value, pd.DataFrame)]
            assert shown.startswith(f"<{kind.__name__}: "), kind
            assert [f"{n} x {k}" for n, k in sizes] == re.findall(r"\d+ x \d+", shown), kind
            continue
        call = ast.parse(shown, mode="eval").body
        assert call.func.id == kind.__name__
        assert {part.arg for part in call.keywords} <= {field.name for field in fields(kind)}, kind
        for part in call.keywords:
            read, value = eval(ast.unparse(part.value), dict(CODE)), getattr(result, part.arg)
            if isinstance(value, tuple) and isinstance(read, list):
                value = list(value)
            assert read == value or np.isnan(read) == np.isnan(value), (kind, part.arg)


def test_str_begins_with_title_and_conclusion():
    for kind in EXAMPLES:
        result = example(kind)
        shown = described(kind)
        text = " ".join(str(result).split())
        assert text.startswith(" ".join([shown.title, *shown.conclusion])), kind


# Frozen, comparable, picklable.


def test_results_are_frozen():
    for kind in EXAMPLES:
        result = example(kind)
        for name in (fields(result)[0].name, "new"):
            with pytest.raises(FrozenInstanceError):
                setattr(result, name, 0)
        with pytest.raises(FrozenInstanceError):
            delattr(result, fields(result)[0].name)


def test_comparison_by_identity_does_not_crash():
    for kind in EXAMPLES:
        result = example(kind)
        other = replace(result)
        assert result == result, kind  # noqa: PLR0124
        assert (result == other) is False, kind
        assert (result != other) is True, kind
        assert result is not None, kind
        assert result in [other, result], kind
        assert len({result, other}) == 2, kind


@pytest.mark.parametrize("share", mostly_slow([6, 1]))
def test_pickles_round_trip(share):
    """Every sixth kind of result; each if slow."""
    for kind in [*EXAMPLES][::share]:
        result = example(kind)
        back, copied = pickle.loads(pickle.dumps(result)), copy.deepcopy(result)
        assert type(back) is type(copied) is kind
        assert back._describe() == described(kind), kind
        assert back.to_dict() == copied.to_dict() == content(kind), kind
        assert repr(back) == repr(result), kind
        pd.testing.assert_frame_equal(back.to_frame(), result.to_frame())


# Pictures.


@pytest.mark.slow(few_draws=True)
def test_pictures_exist_where_they_are_promised():
    from matplotlib import pyplot as plt

    drawn = set()
    for kind in EXAMPLES:
        result = example(kind)
        if not hasattr(result, "plot"):  # not an attribute that raises something else
            continue
        assert kind.plot.name in plotting.__all__, kind
        axes = np.atleast_1d(result.plot())
        assert axes.size
        assert all(isinstance(ax, Axes) and ax.has_data() for ax in axes.flat), kind
        drawn.add(kind.plot.name)
        plt.close("all")
    elsewhere = {"plot_simplex_interactive", "plot_before_after"}  # another library's; of one method of a study
    elsewhere |= {"plot_cell_edges"}  # of some statistics of a training
    assert drawn == {name for name in plotting.__all__ if name.startswith("plot_")} - elsewhere


def test_pictures_are_drawn_into_given_axes():
    from matplotlib import pyplot as plt

    for kind in (estimation.SmoothReliabilityCurve, estimation.CalibrationBand):
        ax = plt.figure().add_subplot()
        assert example(kind).plot(ax) is ax, kind
        assert example(kind).plot(ax=ax) is ax, kind
    plt.close("all")
