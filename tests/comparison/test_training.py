"""Calibration during training: each epoch is the test of its predictions, read once and lazily."""

import copy
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from caltest.results import CalibrationWarning
from caltest.results._naming import describe
from caltest.statistics import ACE, GCE, RMSCE, SCE, TACE
from tests.reference.examples import draw_labels
from tests.resampling.draws.test_signs import clustered
from tests.results.printed import printed

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
    found = ct.training_track(None, epochs, n_resamples=99, rng=5)
    rng = np.random.default_rng(5)
    assert found.epoch.tolist() == [1, 2, 3]
    for i, (y_true, y_prob) in enumerate(epochs):
        test = ct.calibration_test(y_true, y_prob, statistic=ct.ECE(), n_resamples=99, rng=rng)
        assert (found.error[0, i], found.pvalue[0, i]) == tuple(test)
        assert found.noise_floor[0, i] == test.noise_floor
        assert found.accuracy[i] == np.mean(y_prob.argmax(axis=1) == y_true)
        assert found.log_score[i] == pytest.approx(-np.log(y_prob[np.arange(150), y_true]).mean())


def test_the_best_epoch_has_the_smallest_log_score_and_sharpening_is_detected():
    found = ct.training_track(None, {"a": make_epochs(0), "b": make_epochs(1)}, n_resamples=99, rng=0)
    assert found.runs == ("a", "b")
    assert found.run == ("a",) * 3 + ("b",) * 3
    assert found.best.tolist() == [False, True, False] * 2
    assert found.pvalue[0, [2, 5]].tolist() == [0.01, 0.01]
    ties = ct.training_track(None, [make_epochs(0)[1]] * 3, n_resamples=9)
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

    found = ct.training_track(None, train(), statistics=Watched(), n_resamples=9, rng=0)
    order = [events[0], *(b for a, b in pairwise(events) if a != b)]
    assert order == [0, "evaluated", 1, "evaluated", 2, "evaluated", "end"]
    assert not [value for value in vars(found).values() if np.size(value) >= 150]


def test_another_statistic_may_test():
    """The tree ECE has little power against the under-confidence of logistic regression; the temperature score has."""
    y_true, models = ct.datasets.load_digits_predictions()
    y_prob = models["logistic_regression"]
    by_error = ct.training_track(None, [(y_true, y_prob)], n_resamples=99, rng=0)
    by_score = ct.training_track(None, [(y_true, y_prob)], test_statistic=ct.TemperatureScore(), n_resamples=99, rng=0)
    assert by_score.error == by_error.error
    assert by_score.noise_floor == pytest.approx(by_error.noise_floor)
    assert by_score.pvalue[0] == 0.01
    assert by_error.pvalue[0] > 0.2
    assert (by_score.statistics, by_score.test_statistics) == ((ct.ECE(),), (ct.TemperatureScore(),))
    assert "p-value: of calibration, by TemperatureScore() with 99 draws" in printed(by_score)
    omnibus = ct.training_track(None, [(y_true, y_prob)], test_statistic=ct.Omnibus(), n_resamples=99, rng=0)
    assert omnibus.pvalue[0] <= 0.05
    assert ct.training_track(None, [(y_true, y_prob)], test_statistic=ct.KS(), n_resamples=9).lens == ct.Confidence()


def holm(pvalue):
    """Holm's adjustment, step by step."""
    adjusted, largest = np.empty(len(pvalue)), 0.0
    for rank, place in enumerate(np.argsort(pvalue, kind="stable")):
        largest = max(largest, min(1.0, (len(pvalue) - rank) * pvalue[place]))
        adjusted[place] = largest
    return adjusted


SEVERAL = [ACE(5), "TACE(5, 0.05)", ct.TemperatureScore(), "brier"]


def test_several_statistics_are_single_tests_with_the_same_draws():
    epochs = make_epochs(2)[1:]
    found = ct.training_track(None, epochs, statistics=SEVERAL, n_resamples=49, rng=5)
    assert found.error.shape == found.noise_floor.shape == found.pvalue.shape == (4, 2)
    rng = np.random.default_rng(5)
    for i, (y_true, y_prob) in enumerate(epochs):
        before = copy.deepcopy(rng)
        for s, statistic in enumerate(found.statistics[:3]):
            rng = copy.deepcopy(before)
            single = {"statistic": statistic, "method": "monte-carlo", "n_resamples": 49, "rng": rng}
            test = ct.calibration_test(y_true, y_prob, **single)
            assert found.error[s, i] == ct.calibration_error(y_true, y_prob, statistic=statistic)
            assert (found.error[s, i], found.pvalue[s, i]) == tuple(test)
            assert found.noise_floor[s, i] == test.noise_floor
        brier = np.square(y_prob - np.eye(3)[y_true]).sum(axis=1).mean()
        assert found.error[3, i] == pytest.approx(brier)
        assert found.pvalue_adjusted[:, i] == pytest.approx(holm(found.pvalue[:, i]))
    assert found.pvalue[:, 1].tolist() == [0.02] * 4  # sharpened
    assert str(found.statistics) == "(ACE(n_cells=5), TACE(n_cells=5, threshold=0.05), TemperatureScore(), Brier score)"
    frame = found.to_frame()
    assert frame["statistic"].tolist()[::2] == [describe(one) for one in found.statistics]
    assert frame["pvalue_adjusted"].tolist() == found.pvalue_adjusted.ravel().tolist()
    assert json.loads(json.dumps(found.to_dict()))["error"] == found.error.tolist()


def test_one_test_of_several_errors_is_not_adjusted():
    options = {"n_resamples": 49, "rng": 5, "statistics": [ACE(5), SCE(5)]}
    found = ct.training_track(None, make_epochs(2), test_statistic=ct.KS(), lens=ct.Confidence(), **options)
    assert found.test_statistics == (ct.KS(),)
    assert found.pvalue.shape == found.pvalue_adjusted.shape == (1, 3)
    assert found.to_frame()["pvalue"].tolist() == found.pvalue[0].tolist() * 2
    text = printed(found)
    assert "by KS() with 49 draws" in text
    assert "adjusted p" not in text


def test_conclusions_of_several_statistics():
    options = {"statistics": SEVERAL, "n_resamples": 99, "rng": 0}
    by_some = ct.training_track(None, make_epochs(4)[2:], **options)
    assert by_some.conclusion == (
        "At the best epoch (epoch 1, smallest negative log-likelihood) calibration is rejected at the 5 % level by 4 "
        "of 4 statistics (smallest adjusted p = 0.04)."
    )
    by_none = ct.training_track(None, make_epochs(4)[:2], **options)
    smallest = by_none.pvalue_adjusted[:, 1].min()
    assert by_none.conclusion.endswith(f"by any of 4 statistics (smallest adjusted p = {smallest:.4g}).")
    runs = ct.training_track(None, {"a": make_epochs(4)[:2], "b": make_epochs(4)[2:]}, **options)
    assert runs.conclusion.endswith("in 1 of 2 runs, after adjustment for 4 statistics.")
    text = printed(by_none)
    assert text.startswith("Calibration during training (4 statistics, whole prediction, 2 epochs)")
    assert text.count("best last") == 1
    assert text.count(" 2      ACE(n_cells=5)") == 1
    assert "Adjusted p: by Holm's method for the 4 statistics of an epoch." in text


def starts(n, n_cells):
    """First positions of cells as `numpy.array_split` cuts them."""
    return np.cumsum([0, *map(len, np.array_split(np.arange(n), n_cells))])[:-1]


def test_edges_are_the_sorted_predictions_where_cells_begin():
    epochs = make_epochs(3)
    n, n_cells = len(epochs[0][0]), 7
    statistics = [ACE(n_cells), TACE(n_cells, 0.2), ACE(n_cells, scheme="equal-mass-floor")]
    statistics += [GCE("equal-mass", n_cells=n_cells), RMSCE(n_cells), SCE(n_cells), ct.ECE()]
    found = ct.training_track(None, epochs, statistics=statistics, n_resamples=9, rng=0)
    assert [None if edges is None else edges.shape for edges in found.edges] == [(3, 3, 7)] * 4 + [
        (3, 1, 7),
        None,
        None,
    ]
    whole, above, floor, rounded, top, *_ = found.edges
    for i, (_, y_prob) in enumerate(epochs):
        assert top[i, 0].tolist() == np.sort(y_prob.max(axis=1))[starts(n, n_cells)].tolist()
        for k, value in enumerate(np.sort(y_prob, axis=0).T):
            assert whole[i, k].tolist() == value[starts(n, n_cells)].tolist()
            kept = value[value > 0.2]
            assert above[i, k].tolist() == kept[starts(len(kept), n_cells)].tolist()
            assert floor[i, k].tolist() == value[np.arange(n_cells) * (n // n_cells)].tolist()
            assert (
                rounded[i, k].tolist()
                == value[np.rint(np.linspace(0, n, n_cells, endpoint=False)).astype(int)].tolist()
            )


def test_edges_of_ties_constants_and_weights():
    (y_true, y_prob), *_ = make_epochs(3, n=60)
    tied = np.round(y_prob[:, 0], 1)
    weight = np.arange(60) % 2
    options = {"statistics": ACE(20), "n_resamples": 9, "rng": 0}
    found = ct.training_track(y_true == 0, [np.full(60, 0.5), tied], **options)
    assert found.edges[0].shape[:2] == (2, 2)  # epochs with fewer cells are filled up
    assert found.edges[0][0, :, 0].tolist() == [0.5, 0.5]
    assert np.isnan(found.edges[0][0, :, 1:]).all()
    label = ct.EqualMass(20).fit(np.column_stack([1 - tied, tied]))(np.column_stack([1 - tied, tied]))
    expected = [tied[label == b].min() for b in np.unique(label)]
    assert found.edges[0][1, 1, : len(expected)].tolist() == expected
    half = ct.training_track(y_true, [y_prob], sample_weight=weight, **options)
    rest = ct.training_track(y_true[weight > 0], [y_prob[weight > 0]], **options)
    np.testing.assert_array_equal(half.edges[0], rest.edges[0])


def test_lens_classes_workers_and_the_generator():
    (y_true, y_prob), *_ = make_epochs(3)
    names = np.array(["x", "y", "z"])
    options = {"lens": ct.Confidence(), "n_resamples": 60, "rng": 1, "statistics": ct.KS()}
    plain = ct.training_track(None, [(y_true, y_prob)], **options)
    named = ct.training_track(None, [(names[y_true], y_prob)], classes=names, workers=2, **options)
    assert (named.pvalue, named.error, named.accuracy) == (plain.pvalue, plain.error, plain.accuracy)
    assert (plain.lens, plain.lens_name) == (ct.Confidence(), "confidence")
    again = ct.training_track(None, [(y_true, y_prob)], **{**options, "rng": np.random.default_rng(1)})
    assert again.pvalue == plain.pvalue


@pytest.mark.parametrize("which", ["y_true", "y_prob"])
def test_an_index_of_repeated_ids_is_warned_of_unless_groups_are_given(which):
    """Frames whose index is an id: each epoch is read like the arguments of a test."""
    (y_true, y_prob), *_ = make_epochs(0)
    patient = pd.Index(np.arange(150) // 2, name="patient")
    labels, prob = pd.Series(y_true, index=patient), pd.DataFrame(y_prob, index=patient)
    labels, prob = (labels, y_prob) if which == "y_true" else (y_true, prob)
    with pytest.warns(CalibrationWarning, match="The index 'patient' repeats"):
        ct.training_track(None, [(labels, prob)], n_resamples=9, rng=0)
    ct.training_track(None, [(labels, prob)], groups=patient.to_numpy(), n_resamples=9, rng=0)  # warnings are errors
    ct.training_track(None, [(labels, prob)], groups=patient, n_resamples=9, rng=0)


def test_progress_is_that_of_all_epochs_or_of_each():
    seen = []
    options = {"n_resamples": 50, "rng": 0, "progress": lambda *parts: seen.append(parts)}
    ct.training_track(
        None, {"a": make_epochs(0), "b": make_epochs(1)[:1]}, test_statistic=ct.TemperatureScore(), **options
    )
    assert seen == sorted(seen)
    assert seen[-1] == (4 * 2 * 50, 4 * 2 * 50)  # four epochs, two statistics
    seen.clear()
    ct.training_track(None, iter(make_epochs(0)), **options)
    assert seen.count((50, 50)) == 3


def test_an_impossible_label_is_infinite_but_tracked():
    y_prob = np.array([[0.0, 0.5, 0.5]] * 20)
    impossible, possible = (np.zeros(20), y_prob), (np.ones(20), y_prob)
    found = ct.training_track(None, [impossible, possible], n_resamples=19, rng=0)
    assert found.log_score[0] == np.inf
    assert found.best.tolist() == [False, True]
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["log_score"][0] is None
    none = ct.training_track(None, [impossible], n_resamples=19, rng=0)
    assert not none.best.any()
    assert none.conclusion.startswith("There is no best epoch, because the negative log-likelihood is infinite")
    assert " last" in printed(none)


def test_conclusions():
    epochs = make_epochs(4)
    one = ct.training_track(None, epochs, n_resamples=19, rng=0)
    assert one.conclusion == (
        "At the best epoch (epoch 2, smallest negative log-likelihood) calibration is not rejected at the 5 % level "
        f"(p = {one.pvalue[0, 1]:.4g})."
    )
    rejected = ct.training_track(None, epochs[2:], n_resamples=19, rng=0, alpha=0.1)
    assert (
        "(epoch 1, smallest negative log-likelihood) calibration is rejected at the 10 % level" in rejected.conclusion
    )
    assert [note.code for note in one.notes] == ["C801"]


def test_few_expected_events_or_draws_decide_nothing():
    """Expected numbers are sums of the predictions; with fewer than 5 calibration may be rejected, and nothing else."""
    y_prob = np.array([0.02] * 100)
    quiet, wrong = np.arange(100) < 2, np.arange(100) < 40
    options = {"n_resamples": 39, "rng": 0}
    one = ct.training_track([1], [[0.5]], **options)
    few = ct.training_track(quiet, [y_prob], **options)
    assert (one.n_expected.tolist(), few.n_expected) == ([0.5], pytest.approx([2.0]))
    assert (one.decision, few.decision) == (("undecidable",),) * 2
    assert few.conclusion == (
        "At the best epoch (epoch 1, smallest negative log-likelihood) these data do not decide about calibration: "
        f"fewer than 5 events or observations without the event were to be expected (p = {few.pvalue[0, 0]:.4g})."
    )
    assert ct.training_track(wrong, [y_prob], **options).decision == ("rejected",)
    classes = ct.training_track([0] * 40, [[[0.9, 0.05, 0.05]] * 40], statistics=["ECE", "brier"], **options)
    assert classes.n_expected == pytest.approx([4.0])
    assert "fewer than 5 right predictions or wrong predictions were to be expected" in classes.conclusion
    runs = {"a": [(quiet, y_prob)], "b": [(wrong, y_prob)], "c": make_epochs(4)[1:2]}
    assert ct.training_track(None, {name: runs[name] for name in "ab"}, **options).conclusion.endswith(
        "in 1 of 2 runs. These data decide nothing in 1 of them: fewer than 5 events or observations without the event "
        "were to be expected."
    )
    draws = ct.training_track(None, runs["c"], n_resamples=9, rng=0)
    assert (draws.decision, draws.smallest_possible_pvalue.tolist()) == (("undecidable",), [0.1])
    assert f"decide about calibration: no p-value below 0.1 is possible (p = {draws.pvalue[0, 0]:.4g})." in (
        draws.conclusion
    )
    several = ct.training_track(None, runs["c"], statistics=["ECE", "KS"], lens=ct.Confidence(), n_resamples=19, rng=0)
    assert "no adjusted p-value below 0.1 is possible (smallest adjusted p = " in several.conclusion
    assert several.to_dict()["decision"] == ["undecidable"]


def test_as_frame_and_plain_objects():
    found = ct.training_track(None, {"one": make_epochs(4), "two": make_epochs(5)}, n_resamples=19, rng=0)
    frame = found.to_frame()
    columns = ["statistic", "run", "epoch", "accuracy", "log_score", "error", "noise_floor", "pvalue"]
    assert list(frame) == [*columns, "pvalue_adjusted", "best"]
    assert frame["run"].tolist() == list(found.run)
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["best"] == found.best.tolist()
    assert len(content["notes"]) == 1


def test_epochs_share_their_labels_or_have_their_own():
    epochs = make_epochs(0)
    y_true = epochs[0][0]
    own = ct.training_track(None, [(y_true, y_prob) for _, y_prob in epochs], n_resamples=19, rng=0)
    shared = ct.training_track(y_true, (y_prob for _, y_prob in epochs), n_resamples=19, rng=0)
    runs = ct.training_track(y_true, {"a": [y_prob for _, y_prob in epochs]}, n_resamples=19, rng=0)
    assert shared.to_dict() == own.to_dict()
    assert runs.pvalue.tolist() == own.pvalue.tolist()
    with pytest.raises(TypeError, match="`epochs` must be an iterable of predictions, or a mapping of such, got 3"):
        ct.training_track(y_true, 3)


def test_bad_epochs_are_refused():
    good = [0, 1], [0.5, 0.5]
    iterable = r"`epochs` must be an iterable of pairs \(y_true, y_prob\), or a mapping of such, got"
    for error, epochs, message in (
        (ValueError, [], r"`epochs` must hold at least one epoch, got none"),
        (ValueError, {}, "`epochs` must hold at least one epoch"),
        (ValueError, {"a": []}, "`epochs` must hold at least one epoch in every run, got none in 'a'"),
        (TypeError, 3, f"{iterable} 3"),
        (TypeError, "digits", f"{iterable} 'digits'"),
        (TypeError, {"a": 1.5}, f"{iterable} 1.5"),
        (ValueError, [np.zeros(3)], r"`epochs` must hold pairs \(y_true, y_prob\), got ndarray in epoch 1"),
        (ValueError, [good, ([0, 1],)], "`epochs` must hold pairs .* got tuple in epoch 2"),
        (ValueError, [good, ([0, 1], [0.5, 1.5])], "`epochs`, epoch 2: `y_prob` must lie in"),
        (ValueError, {"a": [([0, 2], [0.5, 0.5])]}, "`epochs`, run a, epoch 1: `y_true` must hold class indices"),
    ):
        with pytest.raises(error, match=message):
            ct.training_track(None, epochs, n_resamples=9)


def test_bad_options_are_refused():
    pairs = make_epochs(0)[:1]
    both = (TypeError, ValueError)
    for error, options, message in (
        (ValueError, {"statistics": ct.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        (TypeError, {"statistic": ct.ECE()}, r"training_track\(\) has no `statistic`; use statistics\."),
        (TypeError, {"statistics": 3}, "`statistics` must be statistics or their names, got 3"),
        (ValueError, {"statistics": []}, r"`statistics` must be different statistics, got \[\]"),
        (ValueError, {"statistics": ["brier", "brier"]}, r"must be different statistics, got \[Brier score, Brier"),
        (TypeError, {"test_statistic": 3}, "`statistic` must be a statistic"),
        (both, {"rng": "0"}, "`rng` must be None"),
        (ValueError, {"n_resamples": 0}, "`n_resamples` must be an integer >= 1, got 0"),
        (ValueError, {"alpha": 5}, "`alpha` must lie strictly between 0 and 1, got 5"),
        (TypeError, {"progress": 1}, "`progress` must be True, False or a function"),
    ):
        with pytest.raises(error, match=message):
            ct.training_track(None, pairs, **options)


PRINTED = """
Calibration during training (ECE(), whole prediction, 6 epochs of 2 runs)
At the best epoch of each run (smallest negative log-likelihood) calibration is
rejected at the 5 % level in 0 of 2 runs.

 run  epoch  accuracy  log score    error  noise floor  p-value
 one      2    0.6800      0.687  0.08486      0.06566   0.1600  best
 one      3    0.6800      1.274    0.161      0.03348   0.0100  last
 two      2    0.7733      0.608  0.06357       0.0661   0.5200  best
 two      3    0.7733      1.053   0.1261      0.03347   0.0100  last

  Log score: the negative log-likelihood per observation.
  Noise floor: the average of ECE() if the model is calibrated.
  p-value: of calibration, by ECE() with 99 draws at most.

  Note: Each p-value is valid for an epoch that was chosen beforehand. An epoch
    that was chosen by these labels, such as the best one, must be tested on
    other observations. [C801]
"""
PRINTED_ONE_RUN = """
Calibration during training (ECE(), confidence, 3 epochs)
At the best epoch (epoch 2, smallest negative log-likelihood) calibration is not
rejected at the 5 % level (p = 0.29).

 epoch  accuracy  log score    error  noise floor  p-value
 2        0.7867     0.5609  0.05051      0.05145   0.2900  best
 3        0.7867     0.8535   0.1337       0.0228   0.0100  last

  Log score: the negative log-likelihood per observation.
  Noise floor: the average of ECE() if the model is calibrated.
  p-value: of calibration, by TemperatureScore() with 99 draws at most.

  Note: Each p-value is valid for an epoch that was chosen beforehand. An epoch
    that was chosen by these labels, such as the best one, must be tested on
    other observations. [C801]
"""


def print_runs():
    return ct.training_track(None, {"one": make_epochs(4), "two": make_epochs(5)}, n_resamples=99, rng=0)


def print_one():
    return ct.training_track(
        None, make_epochs(6), lens=ct.Confidence(), test_statistic=ct.TemperatureScore(), n_resamples=99, rng=0
    )


def test_what_is_printed():
    assert printed(print_runs()) == PRINTED.strip("\n")
    assert printed(print_one()) == PRINTED_ONE_RUN.strip("\n")


def test_the_script_of_the_picture_trains_a_network():
    """Two epochs of a small network: pairs of labels and predictions of the held-out images."""
    namespace = {"__file__": str(ROOT / "docs" / "figures" / "training_digits.py"), "__name__": "figure"}
    exec(Path(namespace["__file__"]).read_text(), namespace)
    namespace["N_EPOCHS"] = 2
    pairs = list(namespace["train"](0, (4,)))
    assert [np.shape(y_prob) for _, y_prob in pairs] == [(1497, 10)] * 2
    found = ct.training_track(None, pairs, n_resamples=9, rng=0)
    assert found.log_score[1] < found.log_score[0]


def test_training_with_groups_and_weights():
    y_true, prob, group = clustered((10,) * 20, 0.2, np.random.default_rng(8))
    weight = np.arange(200) % 3
    found = ct.training_track(None, [(y_true, prob)], groups=group, sample_weight=weight, n_resamples=99, rng=0)
    hits = (prob > 0.5) == y_true
    assert found.accuracy[0] == pytest.approx(np.average(hits, weights=weight))
    log = np.where(y_true == 1, np.log(prob), np.log(1 - prob))
    assert found.log_score[0] == pytest.approx(-np.average(log, weights=weight))
    expected = ct.calibration_test(
        y_true,
        prob,
        groups=group,
        sample_weight=weight,
        statistic=ct.ECE(),
        n_resamples=99,
        rng=np.random.default_rng(0),
    )
    assert found.pvalue[0] == expected.pvalue
    design = {"groups": group, "sample_weight": weight, "lens": ct.Confidence(), "n_resamples": 99}
    several = ct.training_track(None, [(y_true, prob)], statistics=["KS", "ECE"], rng=0, **design)
    for s, name in enumerate(("KS", "ECE")):
        single = ct.calibration_test(y_true, prob, statistic=name, method="monte-carlo", rng=0, **design)
        assert several.pvalue[s, 0] == single.pvalue
