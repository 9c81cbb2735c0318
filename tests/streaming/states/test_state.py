"""The mergeable state: the answers of the functions in memory, whatever the batches and their order are."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import caltest
from caltest import ECE, KS, MCE, EqualWidth, HosmerLemeshow, SquaredL2
from caltest.predictions import ClassWise, Confidence
from caltest.statistics import Kuiper, Spiegelhalter, TCal, TemperatureScore
from caltest.streaming import CalibrationState, RedrawnCells
from tests.reference.cases import mostly_slow

STATISTICS = [
    ECE(EqualWidth(15)),
    MCE(EqualWidth(10)),
    SquaredL2(EqualWidth(16)),
    SquaredL2(EqualWidth(15), "kumar"),
    SquaredL2(EqualWidth(20), "t-cal"),
    HosmerLemeshow(EqualWidth(10)),
    HosmerLemeshow(EqualWidth(10), "mean"),
    Spiegelhalter(),
    TemperatureScore(),
]


def problem(kind: str, n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p = {
        "uniform": lambda: rng.random(n),
        "vague": lambda: rng.beta(20, 20, n),
        "sharp": lambda: rng.beta(0.1, 0.1, n),
        "rare": lambda: rng.beta(0.3, 300, n),
        "ties": lambda: np.round(rng.random(n), 2),
        "float32": lambda: rng.random(n).astype(np.float32).astype(float),
        "half zeros": lambda: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
        "one-hot": lambda: rng.integers(2, size=n).astype(float),
        "constant": lambda: np.full(n, 0.3),
        "tiny": lambda: 10.0 ** -rng.uniform(3, 30, n),
        "one": lambda: np.array([0.4]),
        "two": lambda: np.array([0.3, 0.9]),
    }[kind]()
    return (rng.random(len(p)) < p).astype(int), p


KINDS = ["uniform", "sharp", "rare", "ties", "float32", "half zeros", "one-hot", "constant", "tiny", "one", "two"]


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_agree_with_those_in_memory(kind):
    y, p = problem(kind)
    state = CalibrationState().update(y, p)
    for statistic in STATISTICS:
        expected = caltest.calibration_error(y, p, statistic=statistic)
        # sums in memory are rounded observation by observation
        np.testing.assert_allclose(state.error(statistic), expected, rtol=2e-9, atol=1e-12, err_msg=str(statistic))
    for score in ("brier_score", "log_score"):
        expected = getattr(caltest.estimation, score)(y, p)
        np.testing.assert_allclose(getattr(state, score)(), expected, rtol=1e-12, atol=1e-13, err_msg=score)


@pytest.mark.parametrize("kind", ["uniform", "sharp", "rare", "tiny"])
def test_statistics_agree_with_rational_numbers(kind):
    y, p = problem(kind, 300)
    state = CalibrationState().update(y, p)
    exact = [Fraction(value) for value in p.tolist()]
    cell = np.searchsorted(np.arange(1, 15) / 15, p, side="right")
    gaps = [sum(y[i] - exact[i] for i in np.flatnonzero(cell == b)) for b in range(15)]
    assert state.error() == pytest.approx(float(sum(map(abs, gaps)) / len(p)), abs=1e-14)
    variances = [sum(exact[i] * (1 - exact[i]) for i in np.flatnonzero(cell == b)) for b in range(15)]
    terms = [float(gap**2 / variance) for gap, variance in zip(gaps, variances, strict=True) if variance]
    assert state.error(HosmerLemeshow(EqualWidth(15))) == pytest.approx(sum(terms), rel=1e-12)
    z = sum((value - q) * (1 - 2 * q) for value, q in zip(y.tolist(), exact, strict=True))
    variance = sum((1 - 2 * q) ** 2 * q * (1 - q) for q in exact)
    assert state.error(Spiegelhalter()) == pytest.approx(abs(float(z)) / math.sqrt(variance), rel=1e-12, abs=1e-13)
    brier = sum((value - q) ** 2 for value, q in zip(y.tolist(), exact, strict=True))
    assert state.brier_score() == pytest.approx(float(brier / len(p)), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_pvalues_agree_with_those_in_memory(kind):
    y, p = problem(kind)
    if kind == "uniform":
        y = (np.random.default_rng(2).random(len(p)) < p**1.1).astype(int)
    state = CalibrationState().update(y, p)
    for statistic in (ECE(EqualWidth(3)), MCE(EqualWidth(15))):
        expected = caltest.calibration_test(y, p, statistic=statistic, method="exact")
        found = state.test(statistic)
        assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-14), (kind, statistic)
        assert found.noise_floor == pytest.approx(expected.noise_floor, rel=1e-9, abs=1e-12)
    for statistic in (ECE(EqualWidth(15)), HosmerLemeshow(EqualWidth(10))):
        expected = caltest.calibration_test(y, p, statistic=statistic, method="exact")
        if kind != "constant":  # the value in memory misses a tie by rounding
            assert state.test(statistic).pvalue == pytest.approx(expected.pvalue, rel=1e-9), (kind, statistic)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n", "kind"),
    [
        pytest.param(n, kind, marks=[pytest.mark.slow] if n > 3000 or kind != "uniform" else [])
        for n in (3000, 300_000)
        for kind in ("uniform", "vague", "sharp", "rare", "float32")
    ],
)
def test_exact_pvalues_of_many_cells_agree_with_those_in_memory(kind, n):
    """The tail of many cells is computed on a grid, to about 1e-4; the grid must be the same on both ways."""
    y, p = problem(kind, n)
    state = CalibrationState().update(y, p)
    for n_cells in (15, 30, 100):
        for statistic in (ECE(EqualWidth(n_cells)), HosmerLemeshow(EqualWidth(n_cells))):
            expected = caltest.calibration_test(y, p, statistic=statistic, method="exact").pvalue
            assert state.test(statistic).pvalue == pytest.approx(expected, rel=1e-9), (kind, statistic)


@pytest.mark.parametrize("kind", ["uniform", "sharp", "rare", "two"])
def test_bounds_of_excursions_contain_the_value(kind):
    y, p = problem(kind)
    state = CalibrationState().update(y, p)
    finer = CalibrationState(micro_cells=32768).update(y, p)
    for statistic in (KS(), Kuiper()):
        value = caltest.calibration_error(y, p, statistic=statistic)
        low, high = state.error_bounds(statistic)
        assert low - 1e-12 <= value <= high + 1e-12
        assert low == state.error(statistic)
        fine_low, fine_high = finer.error_bounds(statistic)
        assert low - 1e-15 <= fine_low <= value + 1e-12
        assert value - 1e-12 <= fine_high


def test_the_curve_is_the_one_in_memory():
    y, p = problem("sharp")
    state = CalibrationState().update(y, p)
    for simultaneous in (False, True):
        expected = caltest.reliability_curve(y, p, partition=EqualWidth(15), simultaneous=simultaneous)
        found = state.curve(simultaneous=simultaneous)
        for name in ("lower", "upper", "count", "predicted", "observed", "bar_lower", "bar_upper"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, err_msg=name)
        assert math.isclose(found.error, expected.error, rel_tol=1e-12)
        assert math.isclose(found.noise_floor, expected.noise_floor, rel_tol=1e-9)
        # Bins of the picture are filled by micro-cells, which their edges may cut.
        np.testing.assert_allclose(np.cumsum(found.density), np.cumsum(expected.density), atol=0.015)
        np.testing.assert_allclose(found.pvalue, expected.pvalue, rtol=1e-9)
    found.plot()


@pytest.mark.parametrize(
    "statistic", mostly_slow([SquaredL2(EqualWidth(16)), KS(), Spiegelhalter(), TemperatureScore(), TCal(6)], 2)
)
def test_simulated_pvalues_agree_with_those_in_memory(statistic):
    y, p = problem("uniform")
    options = {"statistic": statistic, "n_resamples": 1999}
    expected = caltest.calibration_test(y, p, rng=0, **options).pvalue
    found = CalibrationState().update(y, p).test(rng=1, **options).pvalue
    error = math.sqrt(expected * (1 - expected) * 2 / 2000)
    assert abs(found - expected) < 4 * error + 1e-3


@pytest.mark.parametrize("kind", ["sharp", "ties", "tiny"])
def test_batches_and_their_order_change_no_bit(kind):
    y, p = problem(kind)
    whole = CalibrationState().update(y, p)
    rng = np.random.default_rng(0)
    for size in (1, 100, 1000):
        cuts = [*range(0, min(20 * size, len(p)), size), len(p)]
        parts = [CalibrationState().update(y[a:b], p[a:b]) for a, b in pairwise(cuts)]
        merged = CalibrationState()
        for i in rng.permutation(len(parts)):
            merged.merge(parts[i])
        assert merged == whole, size
    order = rng.permutation(len(p))
    shuffled = CalibrationState().update(y[order], p[order])
    assert shuffled.to_bytes() == whole.to_bytes()
    assert CalibrationState.from_bytes(whole.to_bytes()) == whole
    half, other = CalibrationState().update(y[:900], p[:900]), CalibrationState().update(y[900:], p[900:])
    assert half + other == whole
    assert half.n_samples == 900


def test_many_observations_of_one_prediction_do_not_overflow():
    n = 300_000
    p = np.full(n, np.nextafter(0.25 + 1 / 4096, 0))
    state = CalibrationState().update(np.ones(n, dtype=int), p)
    assert state.error() == pytest.approx(1 - p[0], rel=1e-15)


def test_classes_and_lenses():
    y, prob = caltest.datasets.load_cifar10_vgg16()
    statistic = ECE(EqualWidth(15))
    for lens in (Confidence(), ClassWise(3)):
        state = CalibrationState(10, lens).update(y, prob)
        expected = caltest.calibration_error(y, prob, lens=lens, statistic=statistic)
        assert state.error(statistic) == pytest.approx(expected, rel=1e-9)
        assert lens.name() in str(state.test())
    order = np.random.default_rng(0).permutation(10)
    assert CalibrationState(10).update(np.argsort(order)[y], prob[:, order]) == CalibrationState(10).update(y, prob)


def test_an_event_and_its_complement_mirror():
    y, p = problem("uniform")
    p = np.round(p * 2**20) / 2**20 + 2.0**-22  # no prediction on an edge
    one, other = CalibrationState().update(y, p), CalibrationState().update(1 - y, 1 - p)
    assert one.error() == pytest.approx(other.error(), rel=1e-12)
    assert one.test().pvalue == pytest.approx(other.test().pvalue, rel=1e-6)


def test_results_name_the_confidence_and_the_classes():
    prob = np.random.default_rng(0).dirichlet(np.ones(3), 2000)
    y = prob.argmax(axis=1)
    state = CalibrationState(3).update(y, prob)
    said = f"The model is under-confident: its confidence is {100 * prob.max(axis=1).mean():.1f} % on average, 100 % of"
    assert state.test().conclusion.startswith(said)
    state = CalibrationState(3, caltest.ClassWise(1)).update(np.array(["a", "b", "c"])[y], prob, classes=list("abc"))
    for answer in (state.test(), state.curve()):
        assert answer.lens_name == "class b against the rest"


def test_frames_with_permuted_columns():
    import pandas as pd

    y = np.array(["cat", "dog", "dog", "cat"])
    frame = pd.DataFrame({"dog": [0.25, 0.5, 0.75, 0.125], "cat": [0.75, 0.5, 0.25, 0.875]})
    one = CalibrationState().update(y, frame, classes=["cat", "dog"])
    assert one == CalibrationState().update(y, frame[["cat", "dog"]])
    assert one == CalibrationState().update((y == "dog").astype(int), frame["dog"].to_numpy())


def test_an_impossible_outcome():
    state = CalibrationState().update([0, 1, 1], [0.0, 0.5, 0.0])
    found = state.test()
    assert found.pvalue < 1e-300
    assert found.notes[0].code == "C201"
    assert state.log_score() == math.inf
    assert state.error(TemperatureScore()) == math.inf
    assert state.test(KS(), n_resamples=99, rng=0).pvalue == 0.01


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: CalibrationState(1), ValueError, "n_classes"),
        (lambda: CalibrationState(micro_cells=1000), ValueError, "power of 2"),
        (lambda: CalibrationState(micro_cells=4096.0), TypeError, "micro_cells"),
        (lambda: CalibrationState(5, lambda p, y: (p, y)), TypeError, "lens"),
        (lambda: CalibrationState(5, caltest.Canonical(), 8192), ValueError, "RedrawnCells"),
        (lambda: CalibrationState(5, Confidence(), RedrawnCells()), ValueError, "power of 2"),
        (lambda: CalibrationState().test(), ValueError, "empty"),
        (lambda: CalibrationState().update([0], [math.nan]), ValueError, "finite"),
        (lambda: CalibrationState().update([0, 2], [0.5, 0.5]), ValueError, "y_true"),
        (lambda: CalibrationState().update([0], [1.5]), ValueError, "0, 1"),
        (lambda: CalibrationState().update([0], [[0.25, 0.25, 0.5]]), ValueError, "2 classes"),
        (lambda: CalibrationState().merge(CalibrationState(3)), ValueError, "same settings"),
        (lambda: CalibrationState().merge(3), TypeError, "CalibrationState"),
        (lambda: CalibrationState.from_bytes(b"abc"), ValueError, "truncated"),
        (lambda: CalibrationState.from_bytes("abc"), TypeError, "bytes"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_refused_batch_changes_nothing():
    state = CalibrationState().update([0, 1], [0.25, 0.5])
    before = state.to_bytes()
    with pytest.raises(ValueError, match="finite"):
        state.update([0, 1, 1], [0.5, 0.5, math.nan])
    assert state.to_bytes() == before


def test_statistics_that_need_the_observations_are_refused():
    state = CalibrationState().update([0, 1] * 50, [0.25, 0.5] * 50)
    refused = [ECE(), ECE(EqualWidth(11)), ECE(EqualWidth(15, closed="right")), caltest.Omnibus(), caltest.SmoothECE()]
    for statistic in (*refused, HosmerLemeshow(), ECE(caltest.EqualMass(3))):
        with pytest.raises(ValueError, match=r"EqualWidth|statistic"):
            state.test(statistic)
    with pytest.raises(ValueError, match="edge"):
        state.curve(EqualWidth(7))


def test_damaged_files_are_refused():
    data = CalibrationState().update([0, 1], [0.25, 0.5]).to_bytes()
    for damaged in (data[:-10], data[: len(data) // 2], b"", data[:300] + b"\0" + data[301:]):
        with pytest.raises(ValueError, match="calibration state"):
            CalibrationState.from_bytes(damaged)


@pytest.mark.release
@pytest.mark.parametrize("kind", ["uniform", "sharp"])
def test_ten_million_observations(kind):
    y, p = problem(kind, 10**7)
    states = []
    for size in (1000, 10**6):
        state = CalibrationState()
        for i in range(0, len(p), size):
            state.update(y[i : i + size], p[i : i + size])
        states.append(state)
    single = CalibrationState()
    for i in range(100_000):
        single.update(y[i : i + 1], p[i : i + 1])
    states.append(single.update(y[100_000:], p[100_000:]))
    assert states[0] == states[1] == states[2]
    state = states[0]
    for statistic in STATISTICS[:2]:
        expected = caltest.calibration_error(y, p, statistic=statistic)
        assert state.error(statistic) == pytest.approx(expected, rel=1e-10)
    for statistic in (ECE(EqualWidth(2)), MCE(EqualWidth(15)), ECE(EqualWidth(100)), HosmerLemeshow(EqualWidth(30))):
        expected = caltest.calibration_test(y, p, statistic=statistic, method="exact").pvalue
        assert state.test(statistic).pvalue == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_batches_of_other_classes_are_refused():
    import pandas as pd

    first = ["a", "b"], pd.DataFrame({"a": [0.3, 0.4], "b": [0.7, 0.6]})
    other = ["b", "c"], pd.DataFrame({"b": [0.3, 0.4], "c": [0.7, 0.6]})
    state = CalibrationState().update(*first).update(["b", "b"], first[1][["b", "a"]])
    assert state.n_samples == 4
    for lens in (None, ClassWise(0)):
        state = CalibrationState(2, lens).update(*first)
        with pytest.raises(ValueError, match="all batches must have the same classes"):
            state.update(*other)
        with pytest.raises(ValueError, match="all batches must have the same classes"):
            state.merge(CalibrationState.from_bytes(CalibrationState(2, lens).update(*other).to_bytes()))
        assert state.n_samples == 2
    assert CalibrationState(2, Confidence()).update(*first).update(*other).n_samples == 4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("lens", [None, Confidence(), ClassWise(1)], ids=str)
def test_probabilities_of_float32_are_those_in_memory(n_classes, lens):
    """Rows of float32 miss the sum 1 by 1e-7: one column and all columns must predict the same."""
    rng = np.random.default_rng(0)
    if n_classes == 3 and lens is None:
        lens = ClassWise(0)
    weight = np.exp(rng.normal(size=(5000, n_classes))).astype(np.float32)
    prob = weight / weight.sum(axis=1, keepdims=True)
    y = (rng.random(5000)[:, None] > prob.astype(float).cumsum(axis=1)[:, :-1]).sum(axis=1)
    state = CalibrationState(n_classes, lens).update(y, prob)
    slow = CalibrationState(n_classes, lens).update(y.tolist(), prob)  # by the validation of every test
    assert state == slow
    for statistic in (ECE(EqualWidth(15)), MCE(EqualWidth(10)), HosmerLemeshow(EqualWidth(10))):
        known = caltest.calibration_test(y, prob, lens=state.lens, statistic=statistic)
        assert state.test(statistic).pvalue == pytest.approx(known.pvalue, rel=1e-9)
        assert state.error(statistic) == pytest.approx(known.statistic, rel=1e-12)


def test_an_impossible_label_comes_first():
    """A verdict of a stream once said that these data do not show what is wrong."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 400)
    y = (rng.random(400) < p).astype(int)
    verdict = CalibrationState().update(np.r_[y, 1], np.r_[p, 0.0]).test().verdict
    assert verdict.conclusion.startswith("Impossible: 1 observation predicted with 0 % had the event.")
    assert "If 0 % was rounded" in verdict.advice[0]
    assert "collect about 1,400 observations" in CalibrationState().update(y, p).test().verdict.advice[0]
