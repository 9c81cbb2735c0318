"""The monitor: its wealth is that of its twin, cannot be expected to grow, and does not depend on batches."""

import json
import math
from copy import deepcopy
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, norm

import caltest
from caltest import CalibrationMonitor, ClassGroups, Confidence, TopK
from caltest.streaming.monitors import _saved_monitor
from tests.reference import bets
from tests.reference.bets import log_wealth
from tests.reference.cases import mostly_slow

KINDS = {
    "vague": lambda rng, n: rng.beta(5, 5, n),
    "sharp": lambda rng, n: np.clip(rng.beta(0.1, 0.1, n), 1e-12, 1 - 1e-12),
    "rare": lambda rng, n: rng.beta(0.5, 499.5, n),  # 0.1 % on average
    "ties": lambda rng, n: rng.choice([0.0, 0.25, 0.5, 1.0], n),
}


def calibrated(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    prob = KINDS[kind](rng, n)
    return (rng.random(n) < prob).astype(int), prob


def many_classes(n, n_classes, seed=0, concentration=1.0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, concentration), n)
    return np.minimum((prob.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1), prob


def recalibrated(prob, odds, slope):
    """The probability whose odds are ``odds`` times those of ``prob`` to the power ``slope``."""
    up, down = odds * prob**slope, (1 - prob) ** slope
    return up / (up + down)


def state(monitor):
    return monitor._bets.to_dict()


def path_of(monitor):
    return monitor.result().path[1:, 1]


@pytest.mark.parametrize("kind", mostly_slow(KINDS))
def test_the_wealth_is_that_of_the_twin(kind):
    y_true, y_prob = calibrated(kind, 40)
    expected = log_wealth(y_true, np.column_stack([1 - y_prob, y_prob]))
    np.testing.assert_allclose(path_of(CalibrationMonitor().update(y_true, y_prob)), expected, atol=1e-11)
    wrong = 1 - y_true if kind == "vague" else y_true
    expected = log_wealth(wrong, np.column_stack([1 - y_prob, y_prob]))
    np.testing.assert_allclose(path_of(CalibrationMonitor().update(wrong, y_prob)), expected, atol=1e-11)


@pytest.mark.slow(few_draws=True)
def test_the_wealth_of_several_classes_is_that_of_the_twin():
    y_true, y_prob = many_classes(20, 4)
    np.testing.assert_allclose(path_of(CalibrationMonitor().update(y_true, y_prob)), log_wealth(y_true, y_prob))
    for lens in (Confidence(), TopK(2), ClassGroups([[0, 1], [2, 3]])):
        prob, outcome = lens(y_prob, y_true)
        found = path_of(CalibrationMonitor(lens=lens).update(y_true, y_prob))
        np.testing.assert_allclose(found, log_wealth(outcome, prob), atol=1e-12, err_msg=str(lens))


def test_the_wealth_cannot_be_expected_to_grow():
    """After any past, its mean over the outcomes is the wealth before: with probabilities p, whatever p is."""
    y_true, y_prob = many_classes(300, 3, seed=1)
    outcome = np.where(np.arange(300) % 3 == 0, 0, y_true)  # a past that is not calibrated
    monitor = CalibrationMonitor(alpha=1e-300).update(outcome, y_prob)
    for prob in ([0.2, 0.3, 0.5], [1e-9, 0.5, 0.5 - 1e-9], [0.0, 0.25, 0.75], [1 / 3, 1 / 3, 1 / 3]):
        after = [deepcopy(monitor).update([k], [prob]).e_value if prob[k] else 0.0 for k in range(3)]
        assert np.dot(prob, after) == pytest.approx(monitor.e_value, rel=1e-9), prob
    binary = CalibrationMonitor(alpha=1e-300).update(outcome == 0, y_prob[:, 0])
    for p in (1e-6, 0.1, 0.5, 0.99):
        after = [deepcopy(binary).update([k], [p]).e_value for k in (0, 1)]
        assert (1 - p) * after[0] + p * after[1] == pytest.approx(binary.e_value, rel=1e-12), p


@pytest.mark.parametrize("n_classes", [2, 5])
def test_batches_of_any_size_give_the_same_bits(n_classes):
    y_true, y_prob = many_classes(3000, n_classes, seed=2)
    y_true[1500:] = y_prob[1500:].argmax(axis=1)  # the alarm is in the middle
    whole = CalibrationMonitor().update(y_true, y_prob)
    assert 1500 < whole.alarm < 1700
    rng = np.random.default_rng(0)
    for cuts in ([0, *range(1500, 1701), 3000], [0, 3000], sorted({0, 3000, *rng.integers(3000, size=20).tolist()})):
        monitor = CalibrationMonitor()
        for start, stop in pairwise(cuts):
            monitor.update(y_true[start:stop], y_prob[start:stop])
        assert state(monitor) == state(whole)
        assert str(monitor) == str(whole)


def test_a_saved_monitor_goes_on(tmp_path):
    y_true, y_prob = many_classes(500, 3, seed=3)
    y_true[200:] = 0
    labels = ["cat", "dog", "eel"]
    for lens in (None, Confidence(), TopK(2), ClassGroups([[0, 1], [2]])):
        whole = CalibrationMonitor(0.01, lens, classes=labels)
        part = CalibrationMonitor(0.01, lens, classes=labels)
        part.save(tmp_path / "new.json")
        assert CalibrationMonitor.load(tmp_path / "new.json").n_samples == 0
        texts = np.array(labels)[y_true]
        part.update(texts[:123], y_prob[:123]).save(tmp_path / "a.json")
        resumed = CalibrationMonitor.load(tmp_path / "a.json").update(texts[123:], y_prob[123:])
        whole.update(texts, y_prob)
        assert state(resumed) == state(whole)
        assert (repr(resumed), str(resumed)) == (repr(whole), str(whole))
        resumed.save(tmp_path / "a.json")
        assert str(CalibrationMonitor.load(tmp_path / "a.json")) == str(whole)
    infinite = CalibrationMonitor().update([1, 0], [0.0, 0.5])
    infinite.save(tmp_path / "b.json")
    assert state(CalibrationMonitor.load(tmp_path / "b.json")) == state(infinite)
    assert CalibrationMonitor.load(tmp_path / "b.json").e_value == math.inf
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "new.json"]


def test_files_are_those_of_before_to_the_bit(tmp_path):
    """A monitor without times writes the file that it wrote before there were leads, and reads it."""
    k, file = np.arange(500), tmp_path / "monitor.json"
    for monitor in (CalibrationMonitor(), CalibrationMonitor(lead=1)):
        monitor.update((k * 61 % 97 < 40).astype(int), (k * 37 % 100 + 0.5) / 100).save(file)
        assert (
            sha256(file.read_bytes()).hexdigest() == "6a1f18150b55e7da569911ee5f6c25c27de6d1bd55ecc96e255bbce436ce0245"
        )
        assert state(CalibrationMonitor.load(file)) == state(monitor)


def test_foreign_files_are_refused(tmp_path):
    file = tmp_path / "monitor.json"
    CalibrationMonitor().update([0, 1], [0.5, 0.25]).save(file)
    text = file.read_text()
    assert json.loads(text)["format"] == "caltest.CalibrationMonitor"
    for changed, words in (
        (text[:-40], "not a monitor"),
        ("\x93NUMPY", "not a monitor"),
        ("[1, 2]", "not a monitor"),
        ('{"format": "other"}', "not a monitor"),
        (text.replace('"version": 2', '"version": 1'), "version 1 of the bets"),
        (text.replace('"alpha": 0.05', '"alpha": 0.5'), "its checksum is wrong"),
    ):
        file.write_text(changed)
        with pytest.raises(ValueError, match=words):
            CalibrationMonitor.load(file)
    with pytest.raises(FileNotFoundError):
        CalibrationMonitor.load(tmp_path / "absent.json")
    with pytest.raises(TypeError, match="only the lenses of caltest can"):
        CalibrationMonitor(lens=lambda prob, outcome: (prob, outcome)).save(file)
    with pytest.raises(TypeError, match="only texts and numbers can"):
        CalibrationMonitor(classes=[(0,), (1,)]).save(file)


@pytest.mark.slow(few_draws=True)
def test_answers_mirror():
    """The complement, permuted classes, named columns in another order: the same wealth, the opposite direction."""
    y_true, y_prob = calibrated("sharp", 800, seed=4)
    y_true = y_true * (np.random.default_rng(0).random(800) < 0.5)
    one, other = CalibrationMonitor().update(y_true, y_prob), CalibrationMonitor().update(1 - y_true, 1 - y_prob)
    np.testing.assert_allclose(path_of(one), path_of(other), rtol=1e-9, atol=1e-9)
    assert (one.alarm, one.direction, other.direction) == (other.alarm, "too high", "too low")
    label, prob = many_classes(400, 4, seed=5)
    order = np.array([2, 0, 3, 1])
    permuted = CalibrationMonitor().update(np.argsort(order)[label], prob[:, order])
    plain = CalibrationMonitor().update(label, prob)
    np.testing.assert_allclose(path_of(plain), path_of(permuted), atol=1e-10)
    names = np.array(["ant", "bee", "cat", "dog"])
    frame = pd.DataFrame(prob, columns=names)
    by_name = CalibrationMonitor()
    for start in range(0, 400, 4):  # few of the labels occur in a batch, and columns stand in any order
        rows = slice(start, start + 4)
        by_name.update(names[label[rows]], frame.iloc[rows][np.roll(names, start // 4)])
    np.testing.assert_allclose(path_of(plain), path_of(by_name), atol=1e-10)


def test_certain_predictions():
    """Right ones change nothing but what is bet; a wrong one is an alarm at once that stays."""
    right = CalibrationMonitor().update([0, 1] * 50, [0.0, 1.0] * 50)
    assert right.e_value == pytest.approx(1, abs=1e-12)
    assert right.alarm is None
    for label, p, direction in (
        (1, 0.0, "too low"),
        (0, 1.0, "too high"),
        (1, 5e-324, "too low"),
        (1, 1e-301, "too low"),
    ):
        wrong = CalibrationMonitor().update([0, 1], [0.5, 0.5]).update([label], [p])
        assert (wrong.alarm, wrong.direction, wrong.e_value, wrong.pvalue) == (3, direction, math.inf, 0.0)
        wrong.update([0, 1] * 500, [0.5] * 1000)
        assert (wrong.alarm, wrong.e_value) == (3, math.inf)
        assert "Once an event happened that had been predicted with probability 0" in str(wrong).replace("\n", " ")
    assert 1e140 < CalibrationMonitor().update([1], [1e-290]).e_value < math.inf
    one_hot = np.eye(5)[np.arange(100) % 5]
    assert CalibrationMonitor().update(np.arange(100) % 5, one_hot).e_value == pytest.approx(1, abs=1e-12)
    wrong = CalibrationMonitor().update(np.arange(100) % 5 // 2, one_hot)
    assert (wrong.alarm, wrong.direction) == (2, "too high")
    assert wrong.result().cause == "confidence"
    assert wrong.result().to_dict()["e_value"] is None


def test_odd_data():
    for n_classes in (2, 3, 1000):
        label, prob = many_classes(5, n_classes, concentration=0.05)
        for n in (1, 2, 5):
            assert 0 < CalibrationMonitor().update(label[:n], prob[:n].astype(np.float32)).e_value < 20
    rng = np.random.default_rng(6)
    half_zeros = np.where(rng.random(2000) < 0.5, 0.0, rng.random(2000))
    assert CalibrationMonitor().update(rng.random(2000) < half_zeros, half_zeros).alarm is None
    constant = CalibrationMonitor().update(rng.random(2000) < 0.3, np.full(2000, 0.2))
    assert (constant.direction, constant.alarm < 500) == ("too low", True)
    assert CalibrationMonitor().update([True, False], [0.4, 0.6]).n_samples == 2


@pytest.mark.parametrize("kind", mostly_slow(["vague", "sharp"]))
@pytest.mark.parametrize(
    ("odds", "slope", "direction"),
    [(3, 1, "too low"), (1 / 3, 1, "too high"), (1, 0.3, "too extreme"), (1, 2.5, "not extreme enough")],
)
def test_the_direction_of_the_alarm(kind, odds, slope, direction):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        prob = KINDS[kind](rng, 3000)
        monitor = CalibrationMonitor().update(rng.random(3000) < recalibrated(prob, odds, slope), prob)
        found.append(monitor.direction)
        assert f" {monitor.direction}" in monitor.result().conclusion
    assert found.count(direction) >= 17


def check_direction(y_true, prob, alpha):
    """The alarm names what the memory with more wealth knows; return that memory if the other one knows better."""
    monitor = CalibrationMonitor(alpha=alpha).update(y_true, prob)
    memory, found = bets.direction(y_true[: monitor.alarm], prob[: monitor.alarm])
    assert monitor.direction == found[memory]
    return {memory} if found[0] != found[1] else set()


@pytest.mark.slow(few_draws=True)
def test_the_direction_is_that_of_the_memory_with_more_wealth():
    """Streams that change midway, and streams that are wrong in two ways: memories may know different directions."""
    changed, steady, bends = set(), set(), [(3, 1), (1 / 3, 1), (1, 0.3), (1, 2.5)]
    for seed in range(20, 27):
        rng = np.random.default_rng(seed)
        before, after = rng.permutation(4)[:2]
        prob = rng.beta(2, 2, 1600)
        chance = np.append(recalibrated(prob[:500], *bends[before]), recalibrated(prob[500:], *bends[after]))
        changed |= check_direction((rng.random(1600) < chance).astype(int), prob, 1e-15)
    for seed in range(14, 22):
        rng = np.random.default_rng(seed)
        prob = rng.beta(2, 6, 1200)  # not symmetric: shift and slope are correlated
        y_true = (rng.random(1200) < recalibrated(prob, 1.5, 1.8)).astype(int)
        steady |= check_direction(y_true, prob, 10.0 ** -rng.integers(1, 6))
    assert (changed, steady) == ({1}, {0})


@pytest.mark.slow(few_draws=True)
def test_the_cause_of_the_alarm_is_that_of_the_twin():
    """Of three classes one becomes too probable, after predictions had been too vague or too sharp."""
    streams = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        prob = rng.dirichlet(np.ones(3), 600)
        chance = prob ** (0.6 if seed % 2 else 1.6)
        if seed % 4 > 1:
            chance[200:, seed % 3] *= 3
        chance /= chance.sum(axis=1, keepdims=True)
        y_true = (rng.random((600, 1)) >= chance.cumsum(axis=1)[:, :2]).sum(axis=1)
        monitor = CalibrationMonitor(alpha=10.0 ** -(1 + seed // 2)).update(y_true, prob)
        if monitor.alarm is not None:
            stream, direction = bets.cause(y_true[: monitor.alarm], prob[: monitor.alarm])
            assert (monitor._bets.alarm.stream, monitor.direction) == (stream, direction), seed
            streams.add((stream, direction))
    assert len(streams) > 2


@pytest.mark.slow(few_draws=True)
def test_the_percentages_are_those_of_the_memory_that_names_the_direction():
    """Both mirror for the complement, have the direction that is named, and are those of a slow twin."""
    rng = np.random.default_rng(0)
    prob = rng.beta(2, 2, 2000)
    y_true = (rng.random(2000) < recalibrated(prob, np.where(np.arange(2000) < 1200, 1, 2), 1)).astype(int)
    monitor = CalibrationMonitor(1e-4).update(y_true, prob)
    memory, _ = bets.direction(y_true[: monitor.alarm], prob[: monitor.alarm])
    keep = np.ones(monitor.alarm) if memory == 0 else 1 - (prob * (1 - prob))[: monitor.alarm] / 400
    weight = np.append(np.cumprod(keep[:0:-1])[::-1], 1.0)
    (found,) = monitor.result().verdict.findings
    averages = [np.average(part[: monitor.alarm], weights=weight) for part in (prob, y_true)]
    np.testing.assert_allclose([found.predicted, found.observed, found.n], [*averages, round(weight.sum())])
    assert (memory, found.kind, found.predicted < found.observed) == (1, "too low", True)
    (mirrored,) = CalibrationMonitor(1e-4).update(1 - y_true, 1 - prob).result().verdict.findings
    assert mirrored.kind == "too high"
    np.testing.assert_allclose([mirrored.predicted, mirrored.observed], [1 - found.predicted, 1 - found.observed])


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (([1], [0.0]), "Impossible: 1 observation predicted with 0 % had the event."),
        (([0], [1.0]), "Impossible: 1 observation predicted with 100 % did not have it."),
        (([0] * 9, [0.01] * 9), "It cannot be told whether these predictions are right: only 0.09 events were to be"),
        (([0, 1] * 40, [0.5] * 80), "No miscalibration is found: 50.0 % predicted, 50.0 % observed."),
    ],
)
def test_a_monitor_says_what_a_test_says(batch, words):
    result = CalibrationMonitor().update(*batch).result()
    assert result.conclusion.startswith(words)
    assert result.to_dict()["verdict"]["decision"] == result.verdict.decision


def test_over_confidence_of_many_classes():
    label, prob = many_classes(3000, 6, seed=7)
    sharpened = prob**2 / (prob**2).sum(axis=1, keepdims=True)
    monitor = CalibrationMonitor(lens=Confidence()).update(label, sharpened)
    assert (monitor.direction, monitor.result().cause) == ("too high", "confidence")
    assert CalibrationMonitor().update(label, sharpened).alarm < 1000


def test_wealth_beyond_doubles():
    """It is counted in units, and comes down again: the same as the twin in logarithms."""
    p = np.concatenate([np.full(40, 1e-20), np.full(30, 0.9)])
    y = np.concatenate([np.ones(40, dtype=int), np.zeros(10, dtype=int), np.ones(20, dtype=int)])
    monitor = CalibrationMonitor().update(y, p)
    expected = log_wealth(y, np.column_stack([1 - p, p]))
    np.testing.assert_allclose(path_of(monitor), expected, rtol=1e-9)
    assert monitor.e_value == math.inf
    assert monitor.result().log_e_value == pytest.approx(expected[-1])
    assert "10^" in str(monitor)
    assert "Predicted risks are too low: 0 % predicted, 100 % observed." in str(monitor).replace("\n", " ")
    falling = CalibrationMonitor().update(np.ones(3, dtype=int), np.full(3, 1e-200))
    y, p = calibrated("vague", 30_000)
    falling.update(y, p)
    assert falling.result().path[:, 1].max() > 355 > falling.result().log_e_value  # a unit is exp(355)
    assert falling.alarm == 1
    assert 0 < falling.pvalue < 1e-150


def test_memory_is_constant():
    monitor = CalibrationMonitor().update(*calibrated("vague", 20_000))
    path = monitor.result().path
    assert len(path) == 20_000 // 32 + 1
    assert path[:, 0].tolist() == list(range(0, 20_001, 32))


def test_a_refused_batch_changes_nothing():
    monitor = CalibrationMonitor().update([0, 1], [0.2, 0.3])
    before = state(monitor)
    refused = [([0, 2], [0.2, 0.3]), ([0, 1], [0.2, 1.3]), ([0, 1], [[0.2, 0.3, 0.5]] * 2), ([0], [0.2, 0.3])]
    for batch in refused:
        with pytest.raises(ValueError, match=r"y_true|y_prob"):
            monitor.update(*batch)
        assert state(monitor) == before
    for alpha in (0, 1, 1.5, math.nan):
        with pytest.raises(ValueError, match="alpha"):
            CalibrationMonitor(alpha=alpha)
    for lens in ("Confidence", Confidence, 3):
        with pytest.raises(TypeError, match="lens"):
            CalibrationMonitor(lens=lens)


def crossings(kind, n_paths, n_steps, alpha, seed, delay=0):
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(n_paths):
        prob = KINDS[kind](rng, n_steps)
        y_true = rng.random(n_steps) < prob
        order = np.argsort(np.arange(n_steps) + rng.integers(delay + 1, size=n_steps))  # of the arrival of labels
        found += CalibrationMonitor(alpha).update(y_true[order], prob[order]).alarm is not None
    return found


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(("kind", "delay"), [("vague", 0), ("sharp", 200), ("rare", 0)])
def test_false_alarms_are_few(kind, delay):
    """At most alpha over all time, also where labels arrive late; exceeded by chance with probability 0.001."""
    assert crossings(kind, 400, 1000, 0.2, 8, delay) <= binom.ppf(0.999, 400, 0.2)


@pytest.mark.release
@pytest.mark.parametrize("kind", ["vague", "sharp", "rare"])
def test_false_alarms_on_long_paths(kind):
    assert crossings(kind, 10_000, 10_000, 0.05, 9) <= binom.ppf(0.999, 10_000, 0.05)


def test_a_change_is_found_after_a_long_calm():
    """In time of the order of the optimum log(1 / alpha) / KL of a bet that knows the change and its moment."""
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        prob = rng.beta(5, 5, 25_000)
        true = np.where(np.arange(25_000) < 20_000, prob, recalibrated(prob, 1.6, 1))
        monitor = CalibrationMonitor(0.01).update(rng.random(25_000) < true, prob)
        divergence = np.mean((true * np.log(true / prob) + (1 - true) * np.log((1 - true) / (1 - prob)))[20_000:])
        assert monitor.alarm > 20_000
        ratios.append((monitor.alarm - 20_000) / (math.log(100) / divergence))
    assert 1 < np.median(ratios) < 6


def forged(path, change):
    """Change a saved monitor and give it the checksum of what it holds now."""
    whole = json.loads(path.read_text())
    change(whole["settings"], whole["bets"])
    body = {name: whole[name] for name in ("settings", "bets")}
    path.write_text(json.dumps(whole | {"checksum": _saved_monitor._checksum(body)}))
    return path


def nested():
    value = []
    for _ in range(900):
        value = [value]
    return value


IMPOSSIBLE = {
    "alpha 0": (lambda s, _: s.update(alpha=0), "`alpha` must lie"),
    "alpha of a text": (lambda s, _: s.update(alpha="small"), "`alpha` must lie"),
    "many outcomes": (lambda s, _: s.update(n_outcomes=10**8), "n_outcomes"),
    "many classes": (lambda s, _: s.update(n_classes=10**12, n_outcomes=10**12), "`n_classes` and `n_outcomes`"),
    "other outcomes": (lambda s, _: s.update(n_outcomes=3), "`n_outcomes` must be 2"),
    "no lens": (lambda s, _: s["lens"].update(name="Spectacles"), "there is no 'Spectacles'"),
    "arguments of the lens": (lambda s, _: s["lens"].update(arguments={"k": 1}), "k"),
    "equal classes": (lambda s, _: s.update(classes=["a", "a"]), "`classes` must be different"),
    "nested classes": (lambda s, _: s.update(classes=[[1], [2]]), "`classes` must be different"),
    "no tally": (lambda _, b: b.pop("tally"), "there is no 'tally'"),
    "half an observation": (lambda _, b: b["tally"].__setitem__(0, 0.5), "`tally` holds"),
    "wealth below 0": (lambda _, b: b["tally"].__setitem__(7, -1.0), "`tally` holds"),
    "wealth of nothing": (lambda _, b: b["tally"].__setitem__(7, None), "`tally` holds"),
    "fixed bets below 0": (lambda _, b: b["fixed"][0].__setitem__(3, -1.0), "`fixed` holds"),
    "infinite bets": (lambda _, b: b["fixed"][0].__setitem__(3, 1e308 * 10), "is not a monitor"),
    "wealth below 0 of adaptive bets": (lambda _, b: b["adaptive"][0][0].__setitem__(0, -1.0), "`adaptive` holds"),
    "a step of 0": (lambda _, b: b.update(every=0), "every"),
    "a step of 3": (lambda _, b: b.update(every=3), "`every` holds"),
    "a long path": (lambda _, b: b.update(path=[[1.0] * 999, [0.0] * 999]), "`path` holds"),
    "a path of 0": (lambda _, b: b["path"][0].__setitem__(0, 0.0), "`path` holds"),
    "an alarm that did not happen": (lambda _, b: b.update(alarm=[1, 0, "too high", 1, 0.5, 0.5]), "`alarm` holds"),
    "an alarm elsewhere": (lambda _, b: b.update(alarm=[1, 7, "too high", 1, 0.5, 0.5]), "`alarm` must have a stream"),
    "an alarm of more than all": (
        lambda _, b: b.update(alarm=[1, 0, "too high", 1, 0.5, 1.5]),
        "`alarm` must have a number of observations and two shares",
    ),
    "an alarm of a number": (lambda _, b: b.update(alarm=1), "`alarm` must be"),
}


@pytest.mark.parametrize("name", mostly_slow(IMPOSSIBLE))
def test_impossible_monitors_with_the_right_checksum_are_refused(tmp_path, name):
    path, (change, words) = tmp_path / "monitor.json", IMPOSSIBLE[name]
    CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9]).save(path)
    assert CalibrationMonitor.load(forged(path, lambda *_: None)).n_samples == 3
    forged(path, change)
    with pytest.raises(ValueError, match=r"monitor\.json") as raised:
        CalibrationMonitor.load(path)
    assert words in str(raised.value)


def test_deep_json_is_refused(tmp_path):
    path = tmp_path / "monitor.json"
    for text in (json.dumps({"format": nested()}), "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not a monitor"):
            CalibrationMonitor.load(path)


def test_monitors_of_every_kind_are_read_again(tmp_path):
    """What is refused as impossible is never written."""
    draw = np.random.default_rng(3)
    prob = draw.dirichlet(np.ones(4), 3000)
    label = draw.integers(4, size=3000)
    path = tmp_path / "monitor.json"
    lenses = [None, Confidence(), caltest.TopK(2), caltest.ClassWise(1), caltest.ClassGroups([[0, 1], [2, 3]])]
    for n in (0, 1, 3000):
        for lens in lenses:
            monitor = CalibrationMonitor(lens=lens)
            if n:
                monitor.update(label[:n], prob[:n])
            monitor.save(path)
            assert CalibrationMonitor.load(path).e_value == monitor.e_value
    impossible = CalibrationMonitor(classes=["a", "b"]).update(["a", "b", "a"], [[1, 0], [1, 0], [0.5, 0.5]])
    impossible.save(path)
    assert CalibrationMonitor.load(path).e_value == np.inf


@pytest.mark.parametrize(("lead", "low", "high"), [(1, 0.0, 0.05), (7, 0.92, 0.92)])
def test_the_level_holds_only_if_each_prediction_is_made_after_all_earlier_labels_are_known(lead, low, high):
    """Calibrated daily forecasts of the sign of an autoregressive process: one year, 92 % of 400 in the docs."""
    n_runs, n, false = 100, 365, 0
    rng = np.random.default_rng(5)
    for _ in range(n_runs):
        x = lfilter([math.sqrt(1 - 0.9**2)], [1, -0.9], rng.normal(size=n + lead + 100))[100:]
        known = 0.9**lead
        prob = norm.cdf(known * x[:n] / math.sqrt(1 - known**2))
        false += CalibrationMonitor().update((x[lead:] > 0).astype(int), prob).alarm is not None
    error = 4 * math.sqrt(high * (1 - high) * (1 / n_runs + (low > 0) / 400))  # the share in the docs has an error too
    assert low - error * (low > 0) <= false / n_runs <= high + error
