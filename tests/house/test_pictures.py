"""Every picture can be read at two sizes: no text is cut off, overlaps another one, or lies upon the data."""

import warnings
from functools import partial

import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import caltest as ct
from tests.house import pictures as gallery

OF_OTHER_SHAPES = {"rare-1000", "sharp-1000", "tied-1000"}
"""The same pictures of other predictions, 15 s each, between those of even and of one-hot predictions."""


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def faults(drawings):
    """What is wrong with pictures, by name, size and fault; a layout that gives up is a fault too."""
    found = []
    for name, draw in drawings:
        for size, figure in gallery.at_two_sizes(name, draw):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found += [f"{name} ({size}): {fault}" for fault in gallery.faults_of(figure)]
        plt.close("all")
    return found


@pytest.mark.slow(few_draws=True)
def test_main_pictures_can_be_read():
    curve = ct.reliability_curve(*gallery.shapes(200)["even"])
    assert faults([("classical", curve.plot), ("deviation", partial(curve.plot, style="deviation"))]) == []


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
@pytest.mark.parametrize(
    "drawings",
    [
        pytest.param(one, id=one[0], marks=[pytest.mark.nightly] if one[0] in OF_OTHER_SHAPES else [])
        for one in gallery.GALLERY
    ],
)
def test_every_picture_can_be_read(drawings):
    found = list(drawings[1]())
    assert found
    assert faults(found) == []


def test_a_text_that_is_cut_off_or_overlaps_is_found():
    figure = Figure(figsize=(4, 3))
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], label="data")
    assert gallery.faults_of(figure) == []
    ax.set_ylabel("a label that is longer than the figure is high, by far")
    ax.text(0.3, 0.5, "one")
    ax.text(0.3, 0.52, "other")
    ax.legend(loc="center")
    hidden = ax.text(9, 9, "hidden", clip_on=True)
    hidden.set_visible(False)
    said = gallery.faults_of(figure)
    assert sum(one.startswith("cut off: 'a label") for one in said) == 1
    assert "overlap: 'one' and 'other'" in said
    assert "a legend lies upon the data: legend ['data']" in said
    assert not any("hidden" in one for one in said)


def test_titles_that_run_into_each_other_are_found():
    figure = Figure(figsize=(3, 2))
    for ax in figure.subplots(1, 2):
        ax.set_title("a title that is wide")
    assert any(one.startswith("overlap: 'a title") for one in gallery.faults_of(figure))
