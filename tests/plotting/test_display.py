"""`ReliabilityDisplay` takes the place of scikit-learn's `CalibrationDisplay`, and adds exact bars."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import caltest as ct
from tests.reference.cases import mostly_slow

ATTRIBUTES = ("prob_true", "prob_pred", "y_prob", "estimator_name", "pos_label", "line_", "ax_", "figure_")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def predictions(kind):
    rng = np.random.default_rng(3)
    event = rng.random(400)
    event = {
        "continuous": event,
        "one decimal": event.round(1),
        "half zero": np.where(rng.random(400) < 0.5, 0.0, event),
        "constant": np.full(400, 0.3),
        "sharp": event**20,
    }[kind]
    return (rng.random(400) < event).astype(int), event


@pytest.mark.parametrize("strategy", mostly_slow(["uniform", "quantile"]))
@pytest.mark.parametrize("kind", ["continuous", "one decimal", "half zero", "constant", "sharp"])
@pytest.mark.parametrize("n_bins", [1, 15])
def test_points_are_those_of_scikit_learn(kind, strategy, n_bins):
    options = {"n_bins": n_bins, "strategy": strategy, "name": "a model", "color": "C3", "lw": 2}
    ours = ct.ReliabilityDisplay.from_predictions(*predictions(kind), **options)
    theirs = CalibrationDisplay.from_predictions(*predictions(kind), **options)
    for name in ("prob_true", "prob_pred", "y_prob"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.line_.get_xydata(), theirs.line_.get_xydata(), rtol=0, atol=1e-12)
    for look in ("get_color", "get_linewidth", "get_marker", "get_linestyle", "get_label"):
        assert getattr(ours.line_, look)() == getattr(theirs.line_, look)()
    for label in ("get_xlabel", "get_ylabel"):
        assert getattr(ours.ax_, label)() == getattr(theirs.ax_, label)()


@pytest.mark.parametrize("positive", [None, "ill"])
def test_swapping_the_import_works(positive):
    """As in scikit-learn's examples: several models in the same axes, histograms of their predictions below."""
    features, labels = make_classification(n_samples=600, random_state=1)
    labels = np.array(["ill", "well"])[labels]
    shown = []
    for display in (ct.ReliabilityDisplay, CalibrationDisplay):
        figure, (above, below) = plt.subplots(2)
        displays = {}
        for i, model in enumerate((LogisticRegression(), GaussianNB())):
            name = type(model).__name__
            model.fit(features[:100], labels[:100])
            displays[name] = display.from_estimator(
                model, features[100:], labels[100:], n_bins=10, name=name, ax=above, color=f"C{i}", pos_label=positive
            )
            below.hist(displays[name].y_prob, range=(0, 1), bins=10, label=name, color=f"C{i}")
        last = displays["GaussianNB"]
        assert all(hasattr(last, name) for name in ATTRIBUTES)
        assert last.ax_ is above
        assert last.figure_ is figure
        shown.append((last.prob_true, last.prob_pred, last.pos_label, last.estimator_name))
    np.testing.assert_allclose(shown[0][0], shown[1][0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(shown[0][1], shown[1][1], rtol=0, atol=1e-12)
    assert shown[0][2:] == shown[1][2:]


def test_bars_are_exact_and_named_once():
    y_true, event = predictions("continuous")
    display = ct.ReliabilityDisplay.from_predictions(y_true, event, n_bins=4, name="one")
    curve = ct.reliability_curve(y_true, event, partition=ct.EqualWidth(4, closed="right"))
    ends = np.array(display.bars_.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, np.stack([curve.bar_lower, curve.bar_upper], axis=1), rtol=0, atol=1e-12)
    ct.ReliabilityDisplay.from_predictions(y_true, event**2, n_bins=4, name="two", ax=display.ax_)
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ["Perfectly calibrated", "one", "90 % consistency bars", "two"]
    confident = ct.ReliabilityDisplay.from_predictions(y_true, event, bars="confidence", confidence_level=0.95)
    assert "95 % confidence bars" in confident.ax_.get_legend_handles_labels()[1]


def test_a_display_of_numbers_alone_has_no_bars():
    display = ct.ReliabilityDisplay(np.array([0.2, 0.7]), np.array([0.3, 0.6]), np.array([0.3, 0.6]))
    assert display.plot(ref_line=False) is display
    assert display.bars_ is None
    assert display.ax_.get_legend_handles_labels()[1] == []


def test_one_and_two_observations():
    assert ct.ReliabilityDisplay.from_predictions([1], [0.7]).prob_true.tolist() == [1.0]
    assert ct.ReliabilityDisplay.from_predictions([-1, 1], [0.2, 0.7], strategy="quantile").prob_true.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0, 1, 2], [0.1, 0.2, 0.3]), {}, "`y_true` must have two values, got 3"),
        ((["no", "yes"], [0.1, 0.2]), {}, "`pos_label` must be given for the labels"),
        ((["no", "yes"], [0.1, 0.2]), {"pos_label": "maybe"}, "`pos_label` must be one of the labels"),
        (([0, 1], [[0.1, 0.9], [0.2, 0.8]]), {}, "for more call caltest.reliability_curve"),
        (([0, 1], [0.1, 1.2]), {}, "`y_prob`"),
        (([0, 1], [0.1, 0.2, 0.3]), {}, "same length"),
        (([0, 1], [0.1, 0.2]), {"n_bins": 0}, "`n_bins` must be"),
        (([0, 1], [0.1, 0.2]), {"strategy": "other"}, "`strategy` must be"),
    ],
)
def test_bad_input_is_named(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        ct.ReliabilityDisplay.from_predictions(*arguments, **options)


def test_estimators_that_cannot_be_drawn():
    features, labels = make_classification(n_samples=60, n_informative=4, n_classes=3, random_state=1)
    with pytest.raises(ValueError, match="`estimator` must have two classes, got 3"):
        ct.ReliabilityDisplay.from_estimator(GaussianNB().fit(features, labels), features, labels)
    with pytest.raises(TypeError, match="`estimator` must have predict_proba, which LinearSVC lacks"):
        ct.ReliabilityDisplay.from_estimator(LinearSVC().fit(features, labels), features, labels)
    two = GaussianNB().fit(features[labels < 2], labels[labels < 2])
    with pytest.raises(ValueError, match="`pos_label` must be one of the classes"):
        ct.ReliabilityDisplay.from_estimator(two, features, labels, pos_label="x")


def test_frames_and_series_are_read_as_everywhere():
    """Series were taken by position, whatever their index and name said."""
    rng = np.random.default_rng(4)
    event = rng.random(80)
    happened = (rng.random(80) < event).astype(int)
    words = np.array(["ill", "well"])[happened]
    draw = ct.ReliabilityDisplay.from_predictions
    expected = draw(happened, event)
    column = event[:, None]
    same = {
        "one column": (happened[:, None], column, None),
        "lazy": (pl.Series(happened), pl.DataFrame({"prob_1": event}).lazy(), None),
        "named": (pd.Series(words), pd.Series(event, name="P(well)"), "well"),
        "dates": (np.array(["2020", "2021"], dtype="datetime64[ns]")[happened], event, datetime.datetime(2021, 1, 1)),
    }
    for name, (y_true, y_prob, positive) in same.items():
        found = draw(y_true, y_prob, pos_label=positive)
        np.testing.assert_array_equal(found.prob_true, expected.prob_true, err_msg=name)
        np.testing.assert_array_equal(found.prob_pred, expected.prob_pred, err_msg=name)
    rows = pd.Series(event).sample(frac=1, random_state=0)
    missing = pd.Series(words).astype("string").where(np.arange(80) != 3)
    refused = {
        "must have the same index": (pd.Series(happened), rows, {}),
        "the positive class, 1, but its name is 'prob_0'": (happened, pd.Series(1 - event, name="prob_0"), {}),
        "or pos_label='ill'": (words, pd.Series(1 - event, name="ill"), {"pos_label": "well"}),
        "a label for every observation, got <NA> in row 3": (missing, event, {"pos_label": "well"}),
        "`y_true` must have shape (n_samples,)": (np.eye(2)[happened], event, {}),
    }
    for message, (y_true, y_prob, options) in refused.items():
        with pytest.raises(ValueError, match=re.escape(message)):
            draw(y_true, y_prob, **options)
