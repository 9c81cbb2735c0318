"""The benchmark is honest: what it compares with does the same work, and its report can be written."""

import importlib.util
import json

import numpy as np
import pytest

import caltest
from benchmarks import cold_start, markdown, problems, software, timing
from benchmarks.cases import CASES, disagreement
from benchmarks.loops.drawing import RowsAndClasses, RowsAndEvents, alias_tables, generator

N_SAMPLES = 700
MIN_LEAF = 20
N_RESAMPLES = 300


def arrays_like(case):
    """The first rows of the case's problem: of another size than the benchmark's, a multiple of nothing."""
    return tuple(array[:N_SAMPLES] for array in case.problem())


def smaller(case):
    """The case with trees that suit fewer rows: options, loops."""
    if not isinstance(case.options["statistic"].partition, caltest.VarianceTree):
        return case.options, case.loops
    options = case.options | {"statistic": caltest.ECE(caltest.VarianceTree(min_leaf=MIN_LEAF))}
    loops = {name: getattr(loop, "func", loop) for name, loop in case.loops.items()}
    return options, {
        name: lambda *args, loop=loop, **seed: loop(*args, **seed, min_leaf=MIN_LEAF) for name, loop in loops.items()
    }


@pytest.mark.parametrize("key", [key for key in CASES if not key.startswith("default-")])
@pytest.mark.filterwarnings("ignore::caltest.CalibrationWarning")
def test_loops_agree_with_the_package(key):
    case = CASES[key]
    arrays = arrays_like(case)
    options, loops = smaller(case)
    result = caltest.calibration_test(*arrays, **options, method="monte-carlo", n_resamples=N_RESAMPLES, rng=1)
    found = {name: disagreement(result, *loop(*arrays, N_RESAMPLES, seed=2)) for name, loop in loops.items()}
    assert found == dict.fromkeys(loops, "")


@pytest.mark.parametrize("key", ["tree-10", "tree-2"])
def test_trees_with_tied_predictions_agree(key):
    """Two digits: many rows share a median."""
    case = CASES[key]
    y_true, y_prob = arrays_like(case)
    y_prob = np.round(y_prob, 2)
    if y_prob.ndim == 2:
        y_prob[:, -1] = 1 - y_prob[:, :-1].sum(axis=1)
        keep = y_prob[:, -1] >= 0
        y_true, y_prob = y_true[keep], y_prob[keep]
    options, loops = smaller(case)
    observed = caltest.calibration_error(y_true, y_prob, statistic=options["statistic"])
    for loop in loops.values():
        assert loop(y_true, y_prob, 8, seed=0)[0] == pytest.approx(observed, rel=1e-6)


def test_the_default_trees_of_the_cases_are_the_default_tree():
    """`VarianceTree()` at n = 10,000 has the smallest leaf and the number of cells that the loops assume."""
    for key in ("default-tree-10", "default-tree-2"):
        case = CASES[key]
        arrays = case.problem()
        observed = caltest.calibration_error(*arrays, statistic=caltest.ECE())
        assert case.tuned(*arrays, 8, seed=0)[0] == pytest.approx(observed, rel=1e-6)


def test_alias_tables_hold_the_probabilities():
    prob = np.vstack([problems.simplex(50, 6)[1], np.eye(6), np.full((1, 6), 1 / 6)])
    accept, alias = alias_tables(prob)
    held = accept.copy()
    row = np.repeat(np.arange(len(prob)), 6)
    np.add.at(held, (row, alias.ravel()), 1 - accept.ravel())
    assert held / 6 == pytest.approx(prob, abs=1e-12)


def test_drawn_rows_classes_and_events_have_their_laws():
    y_true, prob = problems.simplex(50, 3)
    rng, times, n = generator(0), 4000, len(y_true)
    classes, events = np.zeros((n, 3)), np.zeros((2, n))
    source = RowsAndClasses(prob, np.tile(np.arange(3), (n, 1)))
    pairs, counted = RowsAndEvents(prob[:, 0]), np.empty((2, n), dtype=np.intp)
    for _ in range(times):
        row, label = source.draw(rng)
        np.add.at(classes, (row, label), 1)
        pairs.draw(rng, *counted)
        events += counted
    for found, expected in ((classes, prob), (events, [np.ones(n), prob[:, 0]])):
        assert np.abs(found / times - expected).max() < 5 / np.sqrt(times)  # the largest of 150 normals is below 4


def test_fixed_costs_are_not_multiplied():
    """A clock that counts: 100 per call, and 2 per resample."""
    now = [0.0]

    def run(n_resamples):
        now[0] += 100 + 2 * n_resamples

    measured = timing.costs({"a": run}, 9_999, 3, {"a": 1e5}, clock=lambda: now[0])["a"]
    assert (measured.fixed, measured.per_resample) == pytest.approx((100, 2))
    assert measured.at(9_999) == pytest.approx(100 + 2 * 9_999)


def test_numbers_are_written_to_be_read():
    written = [markdown.duration(x) for x in (12.345, 0.0123, 4.2e-5)]
    assert written == ["12.3 s", "12.3 ms", "42 us"]
    assert [markdown.ratio(x) for x in (123.4, 8.17, 0.5)] == ["123x", "8.2x", "0.50x"]
    table = markdown.table(("a", "b"), [("1", "2")])
    assert table.splitlines() == ["| a | b |", "|---|---:|", "| 1 | 2 |"]


def test_absent_software_is_skipped_with_its_reason(monkeypatch):
    monkeypatch.setattr(software, "PACKAGES", {"no-such-package": software.mapie})
    assert "* no-such-package is left out: " in software.section(99, 1)


@pytest.mark.parametrize("name", software.PACKAGES)
def test_released_software_can_be_called(name):
    module = {"uncertainty-calibration": "calibration"}.get(name, name)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{name} is not installed")
    y_true, y_prob = problems.images()
    for found in software.PACKAGES[name](y_true[:300], y_prob[:300], 9):
        assert np.isfinite(found.theirs(9))


def test_the_cold_start_programs_run():
    """The code that is timed is text: it must be right Python that calls the public API rightly."""
    for run in cold_start.RUNS.values():
        compile(run.code, "timed", "exec")
    counted = cold_start.in_fresh_process("import caltest" + cold_start.COUNT_CACHE)
    assert json.loads(counted) == [0, 0]
