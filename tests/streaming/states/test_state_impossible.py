"""Labels that had been predicted with probability 0: counted before the lens, the same on every way into a state."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import caltest
from caltest import ECE, Canonical, ClassGroups, ClassWise, Confidence, EqualWidth, TopK
from caltest.predictions import TopRank, WithinTop
from caltest.statistics import Spiegelhalter, TemperatureScore
from caltest.streaming import CalibrationState, RedrawnCells, arrow_states, scan
from tests.reference.cases import mostly_slow

CELLS = ECE(EqualWidth(15))
OTHERS = [
    ClassWise(2),
    TopRank(2),
    WithinTop(2),
    ClassGroups([[0, 1], [2, 3]]),
    TopK(2),
    ClassGroups([[0, 1], [2], [3]]),
]
FEW = RedrawnCells(EqualWidth(2), n_resamples=19)


def problem(n=600):
    """Labels and predictions of four classes: zeros, ties, one-hot rows, a zero that is the only class of its group."""
    rng = np.random.default_rng(7)
    prob = rng.dirichlet(np.full(4, 0.5), n)
    prob[prob < 0.08] = 0
    prob[: n // 10] = np.eye(4)[rng.integers(4, size=n // 10)]
    prob[n // 10 : n // 5] = [0.5, 0.5, 0, 0]
    prob /= prob.sum(axis=1, keepdims=True)
    label = (rng.random((n, 1)) > prob.cumsum(axis=1)[:, :3]).sum(axis=1)
    wrong = rng.random(n) < 0.2
    return np.where(wrong, rng.integers(4, size=n), label), prob


def naive_number(label, prob):
    """Loops over lists."""
    return sum(row[k] == 0 for k, row in zip(label.tolist(), prob.tolist(), strict=True))


def number(state):
    return state.test().verdict.impossible.n_class


@pytest.mark.slow(few_draws=True)
def test_the_number_is_that_of_every_way_into_a_state():
    def empty():
        return CalibrationState(4)

    label, prob = problem()
    expected = naive_number(label, prob)
    assert 40 < expected < 400
    state = empty().update(label, prob)
    assert number(state) == expected
    assert CalibrationState.from_bytes(state.to_bytes()) == state
    for y_true, y_prob in [
        (label.tolist(), prob.tolist()),
        (label.astype(np.uint8), np.asfortranarray(prob)),
        (label, np.repeat(prob, 2, axis=0)[::2]),
    ]:
        assert empty().update(y_true, y_prob) == state
    assert number(empty().update(label, prob.astype(np.float32))) == expected
    parts = [
        empty().update(label[rows], prob[rows], first_row=rows.start)
        for rows in (slice(0, 1), slice(1, 300), slice(300, 550), slice(550, 600))
    ]
    merged = sum((CalibrationState.from_bytes(parts[k].to_bytes()) for k in (2, 0, 3)), parts[1])
    assert merged == state
    assert merged.to_bytes() == state.to_bytes()
    assert parts[1].n_samples == 299
    assert empty().merge(state) == state
    assert empty().merge(empty()) == empty()


@pytest.mark.slow(few_draws=True)
def test_the_order_of_the_classes_does_not_matter():
    label, prob = problem()
    order = np.array([2, 0, 3, 1])
    once = prob + np.linspace(0, 1e-9, 4)  # without ties, which go to the first class
    once = np.where(prob == 0, 0, once) / np.where(prob == 0, 0, once).sum(axis=1, keepdims=True)
    permuted = CalibrationState(4).update(np.argsort(order)[label], once[:, order])
    assert number(permuted) == naive_number(label, once)
    state = CalibrationState(4).update(label, once)
    assert permuted.test().conclusion == state.test().conclusion


@pytest.mark.slow(few_draws=True)
def test_scans_count_the_same_labels(tmp_path, monkeypatch):
    monkeypatch.setattr("caltest.streaming.scans._fragments._FRAGMENT_ROWS", 100)
    label, prob = problem()
    state = CalibrationState(4).update(label, prob)
    table = pa.table({"label": label, **{f"p_{k}": prob[:, k] for k in range(4)}})
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=120)
    for k in range(2):
        pa.csv.write_csv(table.slice(300 * k, 300), tmp_path / f"{k}.csv")
    sources = [
        (tmp_path / "all.parquet", {"workers": 2, "output": tmp_path / "state.npz"}),
        ([tmp_path / "1.csv", tmp_path / "0.csv"], {}),
        (table, {}),
        (table.to_pandas(), {}),
        ([(label[:7], prob[:7]), (label[7:], prob[7:])], {}),
    ]
    for source, options in sources:
        assert scan(source, **options) == state
    assert scan(tmp_path / "all.parquet", output=tmp_path / "state.npz") == state  # what was written
    batches = table.to_batches(max_chunksize=70)
    found = [arrow_states("label", [f"p_{k}" for k in range(4)])(batches[k::3]) for k in range(3)]
    total = sum(
        (CalibrationState.from_bytes(one["state"][0].as_py()) for part in found for one in part), CalibrationState(4)
    )
    assert total == state
    assert scan(
        tmp_path / "all.parquet", lens=Canonical(), micro_cells=FEW
    ).test().verdict.impossible.n_class == number(state)


@pytest.mark.parametrize("lens", mostly_slow(OTHERS), ids=str)
def test_another_lens_counts_what_it_shows_as_arrays_do(lens):
    label, prob = problem()
    prob = np.floor(64 * prob)  # sums of 64ths are exact
    prob[np.arange(len(prob)), prob.argmax(axis=1)] += 64 - prob.sum(axis=1)
    prob /= 64
    several = isinstance(lens, TopK) or len(getattr(lens, "groups", ())) > 2
    of_state = CalibrationState(4, lens, FEW if several else 4096).update(label, prob).test().verdict.impossible
    of_arrays = caltest.calibration_test(label, prob, lens=lens, statistic=CELLS, n_resamples=99).verdict.impossible
    numbers = [(one.n_zero, one.n_one, one.n_class) if one else None for one in (of_state, of_arrays)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("statistic", mostly_slow([CELLS, Spiegelhalter(), TemperatureScore()]), ids=str)
def test_the_others_are_tested_as_if_they_were_alone(statistic):
    lens = Confidence()
    label, prob = problem()
    possible = prob[np.arange(len(prob)), label] > 0
    result = CalibrationState(4, lens).update(label, prob).test(statistic, rng=0)
    alone = CalibrationState(4, lens).update(label[possible], prob[possible]).test(statistic, rng=0)
    without = result.verdict.impossible
    assert without.pvalue == alone.pvalue
    assert (result.pvalue, result.decision) == (result.smallest_possible_pvalue, "rejected")
    if statistic is CELLS:
        in_memory = caltest.calibration_test(label[possible], prob[possible], lens=lens, statistic=CELLS)
        assert without.pvalue == pytest.approx(in_memory.pvalue, rel=1e-9)
        through = caltest.calibration_error(label, prob, lens=lens, statistic=CELLS)
        assert result.statistic == pytest.approx(through, rel=1e-9)


def calibrated(n_impossible, n=2000):
    """Three classes, calibrated but for so many labels."""
    rng = np.random.default_rng(4)
    prob = rng.dirichlet(np.ones(3), n)
    label = (rng.random((n, 1)) > prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    prob[:n_impossible] = [0.0, 0.25, 0.75]
    label[:n_impossible] = 0
    return label, prob


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("n_impossible", [1, 2])
def test_a_state_says_first_what_the_observations_say(n_impossible):
    label, prob = calibrated(n_impossible)
    of_arrays = caltest.calibration_test(label, prob, n_resamples=99, rng=0).verdict
    of_state = CalibrationState(3).update(label, prob).test().verdict
    whole = CalibrationState(3, Canonical()).update(label, prob).test().verdict
    said = f"{'1 observation' if n_impossible == 1 else '2 observations'} had a class that was predicted with 0 %. One"
    for verdict in (of_arrays, of_state, whole):
        assert verdict.conclusion.startswith(f"Impossible: {said} such case alone rejects the predictions (p ")
        assert verdict.decision == "rejected"
        assert verdict.impossible.n_class == n_impossible
        assert verdict.advice == of_arrays.advice
    assert f"Without {'it' if n_impossible == 1 else 'them'} no miscalibration is found (p = 0." in of_state.conclusion
    assert of_state.numbers[0].shown == of_arrays.numbers[0].shown
    none = CalibrationState(3).update(*calibrated(0)).test()
    assert none.verdict.impossible is None
    assert none.decision == "not rejected"


def test_the_whole_prediction_and_two_classes_are_counted_by_their_cells():
    label, prob = problem()
    state = CalibrationState(4, Canonical(), FEW).update(label, prob)
    assert number(state) == naive_number(label, prob)
    two = CalibrationState().update([1, 0, 0], [0.0, 1.0, 0.5]).test().verdict.impossible
    assert (two.n_zero, two.n_one, two.n_class) == (1, 1, 0)
    assert (CalibrationState(2, Confidence()).update([1, 0, 0], [0.0, 1.0, 0.5]).test().verdict.impossible.n_class) == 2


def test_where_nothing_else_is_left_nothing_is_said_of_it():
    for n in (1, 2):
        result = CalibrationState(4).update([3] * n, [[0.5, 0.25, 0.25, 0.0]] * n).test()
        assert result.verdict.impossible.n_class == n
        assert math.isnan(result.verdict.impossible.pvalue)
        assert result.conclusion.startswith(f"Impossible: {n} observation")
        assert "Without" not in result.conclusion


def test_what_rounding_makes_impossible_behind_the_lens_alone_is_told_apart():
    """The other probability is lost beside a confidence of 1: no label had been predicted with 0."""
    verdict = CalibrationState(3).update([1, 0], [[1.0, 1e-9, 0.0], [0.5, 0.25, 0.25]]).test().verdict
    assert (verdict.impossible.n_class, verdict.impossible.n_one) == (0, 1)
    assert "1 observation predicted with 100 % did not have it" in verdict.conclusion


def test_a_label_that_is_refused_counts_nothing():
    label, prob = problem()
    state = CalibrationState(4).update(label, prob)
    before = state.to_bytes()
    for y_true, y_prob in [(np.full(600, 4), prob), (label, prob * 1.5), (label - 4, prob)]:
        with pytest.raises(ValueError, match=r"`y_(true|prob)`"):
            state.update(y_true, y_prob)
        assert state.to_bytes() == before
