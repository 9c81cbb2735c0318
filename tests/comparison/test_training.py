"""Calibration during training: each epoch is the test of its predictions, read once and lazily."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import caltest as ct
from tests.reference.examples import draw_labels

ROOT = Path(__file__).parents[2]


def make_epochs(seed, temperatures=(3.0, 1.0, 0.3), n=150):
    """Logits that are sharpened epoch by epoch; labels follow temperature 1."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(n, 3)) * 2
    probs = [np.exp(logit / t) / np.exp(logit / t).sum(axis=1, keepdims=True) for t in temperatures]
    y_true = draw_labels(np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True), rng)
    return [(y_true, prob) for prob in probs]


def test_every_epoch_is_the_test_of_its_predictions():
    epochs = make_epochs(0)
    found = ct.track(epochs, n_resamples=99, rng=5)
    rng = np.random.default_rng(5)
    assert found.epoch.tolist() == [1, 2, 3]
    for i, (y_true, y_prob) in enumerate(epochs):
        test = ct.calibration_test(y_true, y_prob, statistic=ct.ECE(), n_resamples=99, rng=rng)
        assert (found.error[i], found.pvalue[i]) == tuple(test)
        assert found.noise_floor[i] == test.noise_floor
        assert found.accuracy[i] == np.mean(y_prob.argmax(axis=1) == y_true)
        assert found.log_score[i] == pytest.approx(-np.log(y_prob[np.arange(150), y_true]).mean())


def test_the_best_epoch_has_the_smallest_log_score_and_sharpening_is_detected():
    found = ct.track({"a": make_epochs(0), "b": make_epochs(1)}, n_resamples=99, rng=0)
    assert found.runs == ("a", "b")
    assert found.run == ("a",) * 3 + ("b",) * 3
    assert found.best.tolist() == [False, True, False] * 2
    assert found.pvalue[[2, 5]].tolist() == [0.01, 0.01]
    ties = ct.track([make_epochs(0)[1]] * 3, n_resamples=9)
    assert ties.best.tolist() == [True, False, False]
    assert [found.entries(run).tolist() for run in "ab"] == [[0, 1, 2], [3, 4, 5]]


def test_a_generator_is_read_one_epoch_at_a_time_and_nothing_is_kept():
    events = []

    class Watched(ct.ECE):
        def evaluate(self, sample, outcomes):
            events.append("evaluated")
            return super().evaluate(sample, outcomes)

    def train():
        for epoch, pair in enumerate(make_epochs(1)):
            events.append(epoch)
            yield pair
        events.append("end")

    found = ct.track(train(), statistic=Watched(), n_resamples=9, rng=0)
    order = [events[0], *(b for a, b in pairwise(events) if a != b)]
    assert order == [0, "evaluated", 1, "evaluated", 2, "evaluated", "end"]
    assert not [value for value in vars(found).values() if np.size(value) >= 150]


def test_another_statistic_may_test():
    """The tree ECE is blind to the under-confidence of logistic regression; the temperature score is not."""
    y_true, models = ct.datasets.load_digits_predictions()
    y_prob = models["logistic_regression"]
    by_error = ct.track([(y_true, y_prob)], n_resamples=99, rng=0)
    by_score = ct.track([(y_true, y_prob)], test_statistic=ct.TemperatureScore(), n_resamples=99, rng=0)
    assert by_score.error == by_error.error
    assert by_score.noise_floor == pytest.approx(by_error.noise_floor)
    assert by_score.pvalue[0] == 0.01
    assert by_error.pvalue[0] > 0.2
    assert (by_score.statistic, by_score.test_statistic) == ("ECE()", "TemperatureScore()")
    assert "tested by TemperatureScore()" in str(by_score)
    omnibus = ct.track([(y_true, y_prob)], test_statistic=ct.Omnibus(), n_resamples=99, rng=0)
    assert omnibus.pvalue[0] <= 0.05


def test_lens_classes_workers_and_the_generator():
    (y_true, y_prob), *_ = make_epochs(3)
    names = np.array(["x", "y", "z"])
    options = {"lens": ct.Confidence(), "n_resamples": 60, "rng": 1, "statistic": ct.KS()}
    plain = ct.track([(y_true, y_prob)], **options)
    named = ct.track([(names[y_true], y_prob)], classes=names, workers=2, **options)
    assert (named.pvalue, named.error, named.accuracy) == (plain.pvalue, plain.error, plain.accuracy)
    assert plain.lens == "Confidence()"
    again = ct.track([(y_true, y_prob)], **{**options, "rng": np.random.default_rng(1)})
    assert again.pvalue == plain.pvalue


def test_an_excluded_label_is_infinite_but_tracked():
    y_prob = np.array([[0.0, 0.5, 0.5]] * 20)
    found = ct.track([(np.zeros(20), y_prob), (np.ones(20), y_prob)], n_resamples=19, rng=0)
    assert found.log_score[0] == np.inf
    assert found.best.tolist() == [False, True]
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["epochs"][0]["log_score"] is None
    axes = ct.plot_training(found)
    assert np.isnan(axes[0, 0].get_lines()[0].get_ydata()[0])


def test_prints_and_turns_into_plain_objects():
    found = ct.track({"one": make_epochs(4), "two": make_epochs(5)}, n_resamples=19, rng=0)
    lines = str(found).splitlines()
    assert [line.split()[-1] for line in lines[2:6]] == ["best", "last", "best", "last"]
    assert "in 0 of 2 run(s)" in found.conclusion
    assert "to be tested on other rows" in found.conclusion
    frame = found.to_frame()
    assert list(frame) == ["run", "epoch", "accuracy", "log_score", "error", "noise_floor", "pvalue", "best"]
    assert frame["run"].tolist() == list(found.run)
    assert len(json.loads(json.dumps(found.to_dict(), allow_nan=False))["epochs"]) == 6
    assert "<pre>" in found._repr_html_()
    assert str(ct.track(make_epochs(4)[:1], n_resamples=9)).count("best last") == 1


@pytest.mark.parametrize(
    ("epochs", "message"),
    [
        ([], r"`epochs` must hold at least one pair \(y_true, y_prob\), got none"),
        ({}, "`epochs` must hold at least one pair"),
        (3, r"`epochs` must be an iterable of pairs \(y_true, y_prob\), or a mapping of such, got 3"),
        ("digits", "`epochs` must be an iterable of pairs"),
        ({"a": 1.5}, "`epochs` must be an iterable of pairs .* got 1.5"),
        ([np.zeros(3)], r"`epochs` must hold pairs \(y_true, y_prob\), got ndarray in epoch 1"),
        ([([0, 1], [0.5, 0.5]), ([0, 1],)], "`epochs` must hold pairs .* got tuple in epoch 2"),
        ([([0, 1], [0.5, 0.5]), ([0, 1], [0.5, 1.5])], "`epochs`, epoch 2: `y_prob` must lie in"),
        ({"a": [([0, 2], [0.5, 0.5])]}, "`epochs`, run a, epoch 1: `y_true` must hold class indices"),
    ],
)
def test_bad_epochs(epochs, message):
    with pytest.raises(ValueError, match=message):
        ct.track(epochs, n_resamples=9)


def test_bad_arguments():
    pairs = make_epochs(0)[:1]
    with pytest.raises(ValueError, match="`Omnibus` combines tests and estimates no error"):
        ct.track(pairs, statistic=ct.Omnibus())
    with pytest.raises(ValueError, match="`statistic` must be a Statistic"):
        ct.track(pairs, test_statistic="ece")
    with pytest.raises(ValueError, match="`rng` must be None"):
        ct.track(pairs, rng="0")
    with pytest.raises(ValueError, match=r"`track` must be a TrainingTrack from track\(...\), got list"):
        ct.plot_training(pairs)
    with pytest.raises(ValueError, match="`axes` must be four axes, got 3"):
        ct.plot_training(ct.track(pairs, n_resamples=9), axes=[None] * 3)


def test_the_picture_shows_the_track():
    from matplotlib import pyplot as plt

    found = ct.track({"one": make_epochs(6), "two": make_epochs(7)}, n_resamples=19, rng=0)
    axes = ct.plot_training(found)
    values = found.log_score, found.accuracy, found.error, found.pvalue
    for ax, value in zip(axes.flat, values, strict=True):
        for run in found.runs:
            (line,) = [line for line in ax.get_lines() if line.get_label() == run]
            np.testing.assert_array_equal(line.get_ydata(), value[found.entries(run)])
        stars = [line for line in ax.get_lines() if line.get_marker() == "*" and len(line.get_xdata())]
        np.testing.assert_array_equal(np.concatenate([star.get_ydata() for star in stars]), value[found.best])
    dashed = [line.get_ydata() for line in axes[1, 0].get_lines() if line.get_linestyle() == "--"]
    np.testing.assert_array_equal(np.concatenate(dashed), found.noise_floor)
    assert axes[1, 1].get_yscale() == "log"
    words = [text.get_text() for ax in axes[1] for text in ax.get_legend().get_texts()]
    assert words == ["one", "two", "noise floors", "level 0.05", "least negative log-likelihood"]
    plt.close(axes[0, 0].figure)
    own = plt.figure(layout="constrained").subplots(1, 4)
    assert ct.plot_training(ct.track(make_epochs(6), n_resamples=9), own) is own
    assert [text.get_text() for text in own[2].get_legend().get_texts()] == ["noise floors"]
    plt.close("all")


def test_the_script_of_the_picture_trains_a_network(monkeypatch):
    """Two epochs of a small network: pairs of labels and predictions of the held-out images."""
    namespace = {"__file__": str(ROOT / "docs" / "figures" / "training_digits.py"), "__name__": "figure"}
    exec(Path(namespace["__file__"]).read_text(), namespace)
    namespace["N_EPOCHS"] = 2
    pairs = list(namespace["train"](0, (4,)))
    assert [np.shape(y_prob) for _, y_prob in pairs] == [(1497, 10)] * 2
    found = ct.track(pairs, n_resamples=9, rng=0)
    assert found.log_score[1] < found.log_score[0]
