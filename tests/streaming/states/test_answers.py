"""What a state says: the sentences and the numbers of the same observations in arrays."""

import pickle

import numpy as np
import pytest

import caltest
from caltest import ECE, Canonical, ClassGroups, Confidence, EqualWidth
from caltest.hypothesis_tests import _evidence
from caltest.streaming import CalibrationState, RedrawnCells
from caltest.streaming.states import _answers
from tests.reference.cases import mostly_slow

CELLS = ECE(EqualWidth(15))


def events(kind):
    """Labels and predictions of an event."""
    rng = np.random.default_rng(5)
    p = {
        "rare": lambda: rng.beta(0.5, 499.5, 20_000),
        "one": lambda: np.array([0.7]),
        "two": lambda: np.array([0.7, 0.2]),
        "half zeros": lambda: np.where(rng.random(600) < 0.5, 0.0, rng.random(600)),
        "three decimals": lambda: np.round(rng.beta(2, 6, 600), 3),
        "too low": lambda: rng.beta(2, 6, 2000),
        "all happen": lambda: rng.random(200),
    }[kind]()
    true = {"too low": p**0.7, "all happen": np.ones(len(p))}.get(kind, p)
    return (rng.random(len(p)) < true).astype(int), p


def both(y, p, n_classes=2, lens=None):
    """The results of arrays and of their state."""
    in_memory = caltest.calibration_test(y, p, statistic=CELLS, lens=lens)
    return in_memory, CalibrationState(n_classes, lens).update(y, p).test(CELLS)


@pytest.mark.parametrize(
    "kind", mostly_slow(["rare", "one", "two", "half zeros", "three decimals", "too low", "all happen"])
)
def test_a_state_says_what_arrays_say(kind):
    y, p = events(kind)
    for some in ((y, p), (1 - y, 1 - p)):
        in_memory, of_state = both(*some)
        assert of_state.conclusion == in_memory.conclusion
        assert of_state.n_expected == pytest.approx(in_memory.n_expected)
        if in_memory.rejected:
            assert of_state.verdict.head == in_memory.verdict.head
            shown = [(row.name, row.shown) for row in in_memory.verdict.numbers]
            assert [(row.name, row.shown) for row in of_state.verdict.numbers] == shown


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_labels_without_impossible_ones_are_tested(mirrored):
    y, p = events("half zeros")
    y[np.flatnonzero(p == 0)[:2]] = 1
    in_memory, of_state = both(1 - y, 1 - p) if mirrored else both(y, p)
    assert of_state.conclusion == in_memory.conclusion
    assert "Without them no miscalibration is found (p = 0." in of_state.conclusion
    assert of_state.verdict.impossible.pvalue == pytest.approx(in_memory.verdict.impossible.pvalue, rel=1e-9)
    only = CalibrationState().update([1, 1], [0.0, 0.0]).test().verdict
    assert np.isnan(only.impossible.pvalue)
    assert "Without" not in only.conclusion


def test_a_state_of_the_confidence_has_the_numbers_of_several_classes():
    y, p = caltest.datasets.load_cifar10_vgg16()
    y, p = y[:2000], p[:2000]
    in_memory, of_state = (result.verdict for result in both(y, p, 10, Confidence()))
    whole = caltest.calibration_test(y, p, n_resamples=99, rng=0).verdict
    first = "The model is over-confident: its confidence is 97.6 % on average, 93.5 % of its predictions are right."
    assert of_state.conclusion.startswith(first)
    assert whole.conclusion.startswith(first)
    assert of_state.numbers[0].shown == in_memory.numbers[0].shown == whole.numbers[0].shown
    totals = next(row for row in of_state.numbers if row.name == "class totals")
    assert totals.meaning == "not known: this state holds the confidence alone"
    assert "class totals" not in [row.name for row in in_memory.numbers]
    order = np.roll(np.arange(10), 3)  # of the classes
    permuted = CalibrationState(10).update(np.argsort(order)[y], p[:, order]).test(CELLS).verdict
    assert permuted.conclusion == of_state.conclusion


def test_ranges_that_end_within_a_narrow_cell_are_told_with_a_digit_less():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 499.5, 20_000)
    y = (rng.random(len(p)) < np.minimum(1, 2.5 * p)).astype(int)
    in_memory, of_state = both(y, p)
    exact, about = (next(found for found in result.findings if found.place) for result in (in_memory, of_state))
    assert (exact.approximate, about.approximate) == (False, True)
    assert exact.place == "between 0.1 and 0.2 %: 0.14 % predicted, 0.48 % observed (3,157 observations)"
    assert about.place == "between 0.1 and 0.2 %: about 0.1 % predicted, 0.5 % observed (about 3,200 observations)"


def three_classes(kind):
    """Labels and predictions of three classes."""
    rng = np.random.default_rng(4)
    prob = rng.dirichlet(np.ones(3), 3000)
    true = {"over-confident": prob**0.5, "totals": prob * [1, 1.4, 1], "calibrated": prob}[kind]
    share = (true / true.sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :2]
    return (rng.random((3000, 1)) > share).sum(axis=1), prob


@pytest.mark.parametrize("kind", mostly_slow(["over-confident", "totals", "calibrated"]))
def test_a_state_of_the_whole_prediction_says_what_arrays_say(kind):
    y, p = three_classes(kind)
    names = ["cat", "dog", "owl"]
    in_memory = caltest.calibration_test(np.array(names)[y], p, classes=names, n_resamples=199, rng=0)
    state = CalibrationState(3, Canonical()).update(np.array(names)[y], p, classes=names)
    of_state = CalibrationState.from_bytes(state.to_bytes()).test()
    assert of_state.decision == in_memory.decision
    said = of_state.conclusion.split(". ")[0]
    assert said == in_memory.conclusion.split(". ")[0]
    if in_memory.rejected:
        assert of_state.verdict.numbers[0].shown == in_memory.verdict.numbers[0].shown
    assert of_state.n_expected == pytest.approx(in_memory.n_expected)
    assert of_state.direction == in_memory.direction
    assert pickle.loads(pickle.dumps(of_state)).verdict.to_dict() == of_state.verdict.to_dict()
    order = np.array([2, 0, 1])  # permuted classes
    permuted = CalibrationState(3, Canonical()).update(
        np.array(names)[y], p[:, order], classes=[names[k] for k in order], source="b"
    )
    assert permuted.test().conclusion.split(". ")[0] == said
    groups = CalibrationState(3, ClassGroups([[1], [0], [2]])).update(y, p).test().findings
    assert {name for found in groups for name in found.classes} <= {"0", "1", "2"}  # no names of classes


@pytest.mark.slow(few_draws=True)
def test_a_state_of_the_whole_prediction_knows_sizes():
    """The typical error and the smallest error that would have been found are those of the same cells in arrays."""
    y, p = three_classes("over-confident")
    state = CalibrationState(3, Canonical()).update(y, p)
    result = state.test()
    in_memory = caltest.l2_interval(y, p, partition=EqualWidth(4))
    assert result.verdict.size.estimate == pytest.approx(in_memory.estimate, rel=1e-9)
    np.testing.assert_allclose(result.verdict.size.root_interval, in_memory.root_interval, rtol=0.02)
    assert [row.name for row in result.verdict.numbers] == ["accuracy minus confidence", "typical error"]
    assert result.verdict.size.chance == pytest.approx(in_memory.chance, rel=0.02)
    y, p = three_classes("calibrated")
    verdict = CalibrationState(3, Canonical()).update(y, p).test().verdict
    assert 3 < verdict.detectable.points < 4
    assert "Had the predictions been wrong by 3." in verdict.conclusion
    wide = CalibrationState(3, Canonical(), RedrawnCells(EqualWidth(1))).update(y, p).test().verdict
    assert wide.detectable is None
    assert wide.advice[0].startswith(
        "No error is found, but it is not known how large an error would have been found, because 100 % of the "
        "variance of the predictions lies within the cells (bins) of this state, of which it holds sums alone: this "
        "answer approves nothing by itself. `caltest.detectable_error` computes it from a sample of the predictions."
    )


def test_impossible_labels_of_the_whole_prediction_leave_no_further_test():
    y, p = three_classes("calibrated")
    p[:2] = [[0.0, 0.5, 0.5], [0.25, 0.75, 0.0]]
    y[:2] = [0, 2]
    result = CalibrationState(3, Canonical()).update(y, p).test()
    assert result.conclusion == (
        "Impossible: 2 observations had a class that was predicted with 0 %. One such case alone rejects the "
        "predictions (p = 0.005). Without them the p-value is not known: the observations were not kept."
    )


def test_odd_states_of_the_whole_prediction_have_a_verdict():
    many = np.random.default_rng(0).dirichlet(np.full(1000, 0.1), 50)
    for y, p in (([0], [[0.2, 0.3, 0.5]]), ([0, 1], [[0.2, 0.3, 0.5]] * 2), ([0, 1], np.eye(3)[:2])):
        verdict = CalibrationState(3, Canonical()).update(y, p).test().verdict
        in_memory = caltest.calibration_test(y, p, n_resamples=99, rng=0).verdict
        assert verdict.decision == in_memory.decision == "undecidable"
        assert verdict.conclusion.partition("(")[0] == in_memory.conclusion.partition("(")[0]
    cells, statistic = RedrawnCells(EqualWidth(1), n_resamples=39), "TemperatureScore"
    verdict = CalibrationState(1000, Canonical(), cells).update(many.argmax(axis=1), many).test(statistic).verdict
    assert verdict.findings[0].kind == "under-confident"


@pytest.mark.slow
def test_more_observations_than_are_kept_have_the_same_sentences(monkeypatch):
    y, p = events("too low")
    calm = (np.random.default_rng(0).random(2000) < p).astype(int)
    states = [CalibrationState().update(labels, p) for labels in (y, calm)]
    wrong, right = (state.test(CELLS).verdict for state in states)
    monkeypatch.setattr(_answers, "_MOST_SAMPLES", 0)
    monkeypatch.setattr(_evidence, "_MOST", 1000)
    many, unknown = (state.test(CELLS).verdict for state in states)
    assert many.conclusion == wrong.conclusion
    assert [row.shown for row in many.numbers if row.name == "typical error"] == ["-"]
    assert many.n_expected == pytest.approx(wrong.n_expected)
    assert unknown.detectable.n_samples == 2000
    for error, other in zip(unknown.detectable.errors, right.detectable.errors, strict=True):
        assert error.points == pytest.approx(other.points, rel=0.2)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("state", [False, True])
def test_a_loaded_result_says_the_same(state):
    y, p = (values[:300] for values in events("three decimals"))
    result = CalibrationState().update(y, p).test() if state else caltest.calibration_test(y, p, statistic=CELLS)
    back = pickle.loads(pickle.dumps(result))
    assert back.verdict.detectable is not None
    assert str(back) == str(result)
    assert back.verdict.to_dict() == result.verdict.to_dict()
