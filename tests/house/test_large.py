"""Large float32 predictions of many classes: the same answers, in little memory."""

import tracemalloc

import numpy as np
import pytest

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.inputs import _validation
from caltest.resampling.draws import _alias_tables as _many_labels
from caltest.resampling.draws._rows import RowDraws


@pytest.fixture
def everything_is_large(monkeypatch):
    """Let three classes and ten predictions be many."""
    monkeypatch.setattr(_validation, "LARGE", 10)
    monkeypatch.setattr(_validation, "MANY", 2)
    monkeypatch.setattr(_many_labels, "_KEPT_RECORDS", 10)


def problem(n_samples, n_classes, *, decimals=None, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.1), size=n_samples)
    if decimals is not None:
        prob = np.round(prob, decimals) + 1e-3 * (np.round(prob, decimals).sum(axis=1, keepdims=True) == 0)
    prob = (prob / prob.sum(axis=1, keepdims=True)).astype(np.float32)
    outcome = (np.cumsum(prob, axis=1, dtype=np.float64) < rng.random((n_samples, 1))).sum(axis=1)
    return np.minimum(outcome, n_classes - 1), prob


PROBLEMS = {
    "many classes": problem(1100, 260),
    "several classes": problem(777, 12),
    "one decimal": problem(500, 5, decimals=1),
    "two words": problem(128, 3, decimals=2),
    "fewer observations than classes": problem(7, 40),
}


def answers(y_true, y_prob):
    table = caltest.calibration_table(
        y_true, y_prob, lenses=[caltest.Canonical(), caltest.Confidence(), caltest.TopK(2)], n_resamples=99, rng=3
    )
    error = caltest.calibration_test(y_true, y_prob, statistic=caltest.SquaredL2(), n_resamples=99, rng=4)
    models = {"a": y_prob, "b": y_prob[:, ::-1]}
    compared = caltest.compare_models(y_true, models, n_resamples=99, rng=5)
    paired = compared.pairs[0]
    first = table.tests[0]
    return [
        table.pvalue,
        *(number for test in table.tests for number in (test.pvalue, test.statistic, test.noise_floor)),
        *(part.statistic for part in first.components),
        *first.l2_error.root_interval,
        error.statistic,
        error.pvalue,
        error.noise_floor,
        *(number for model in compared.models for number in (model.test.pvalue, model.variation, model.accuracy)),
        paired.test.difference,
        paired.test.standard_error,
        paired.pvalue_adjusted,
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_the_same_answers(request):
    expected = {name: answers(*data) for name, data in PROBLEMS.items()}
    request.getfixturevalue("everything_is_large")
    for name, data in PROBLEMS.items():
        assert make_sample(*data).given.dtype == np.float32
        np.testing.assert_allclose(answers(*data), expected[name], rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize(
    "statistic", [caltest.ECE(caltest.EqualWidth(2)), pytest.param(caltest.Omnibus(), marks=pytest.mark.slow)], ids=repr
)
def test_certain_predictions_and_calibration_functions(statistic):
    """One-hot predictions of which one is wrong, and a null hypothesis of double precision."""
    options = {"statistic": statistic, "n_resamples": 99, "rng": 0}
    y_prob = np.eye(4, dtype=np.float32)[np.arange(40) % 4]
    right = caltest.calibration_test(np.arange(40) % 4, y_prob, **options)
    assert right.pvalue == 1
    wrong = caltest.calibration_test(np.arange(40) % 4 * (np.arange(40) > 1), y_prob, **options)
    assert (wrong.pvalue, wrong.impossible_samples) == (0.01, 1)
    y_true, y_prob = PROBLEMS["several classes"]
    null = caltest.Consistency(calibration_function=lambda prob: 0.9 * prob + 0.1 / prob.shape[1])
    one = caltest.calibration_test(y_true, y_prob, resampling=null, **options)
    other = caltest.calibration_test(y_true, y_prob.astype(np.float64), resampling=null, **options)
    assert one.pvalue == other.pvalue
    assert one.statistic == pytest.approx(other.statistic, rel=1e-11)


def test_a_region_and_users_functions_get_doubles(everything_is_large):
    y_true, y_prob = PROBLEMS["several classes"]
    types = set()

    def region(prob):
        types.add(prob.dtype)
        return prob[:, 0] > 0.05

    def lens(prob, outcome):
        types.add(prob.dtype)
        return np.column_stack([1 - prob[:, 0], prob[:, 0]]), (outcome == 0).astype(int)

    looks = [caltest.Canonical(), lens]
    error = caltest.ECE(caltest.EqualWidth(2))  # whatever is computed, the types are the same
    caltest.calibration_table(y_true, y_prob, statistic=error, lenses=looks, region=region, n_resamples=39, rng=0)
    assert types == {np.dtype(np.float64)}


@pytest.mark.slow
def test_memory(monkeypatch):
    """The default test of a table makes at most three times the memory of the data beside them."""
    monkeypatch.setattr(_validation, "LARGE", 2**20)
    y_true, y_prob = problem(16_000, 400)
    caltest.calibration_test(*problem(2700, 400), n_resamples=9, rng=0)  # what is imported and compiled
    tracemalloc.start()
    with pytest.warns(caltest.results.CalibrationWarning, match="the most expected events are tested one by one"):
        table = caltest.calibration_table(y_true, y_prob, n_resamples=99, rng=0)
    str(table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * y_prob.nbytes


ONCE = {
    "TemperatureScore()": (caltest.TemperatureScore(), 36.0),
    "Spiegelhalter()": (caltest.statistics.Spiegelhalter(), 6.0),
    "SCE()": (caltest.statistics.SCE(), 1.0),
}
"""Statistics, and how many times as large they are on predictions and labels that occur 36 times each."""


@pytest.mark.parametrize("name", ONCE)
def test_tables_of_many_rows_are_made_in_parts(name):
    """A statistic of 108,000 x 10 needs less than 2.5 times their memory, and is that of the 3,000 rows in one part."""
    statistic, factor = ONCE[name]
    y_true, y_prob = problem(3000, 10)
    some = y_true, y_prob.astype(np.float64)
    y_true, y_prob = (np.concatenate([each] * 36) for each in some)
    expected = factor * caltest.calibration_error(*some, statistic=statistic)
    tracemalloc.start()
    found = caltest.calibration_error(y_true, y_prob, statistic=statistic)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert peak < 2.5 * y_prob.nbytes


def test_resampled_observations_of_many_rows_take_little_memory():
    """Beside 42,000 x 10 doubles the sums of fixed cells need their probabilities and alias tables, sorted by cell."""
    y_true, y_prob = problem(42_000, 10)
    y_prob = np.asarray(y_prob, dtype=np.float64)
    sample, partition = make_sample(y_true, y_prob), caltest.EqualWidth(3)
    cells_of(sample, partition)
    list(RowDraws.of(1, 0).sums_of_fixed_cells(make_sample(*problem(100, 10)), partition))
    tracemalloc.start()
    list(RowDraws.of(1, 0).sums_of_fixed_cells(sample, partition))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.7 * y_prob.nbytes
