"""Benchmarks and pages: loops do the same work, tables are made from their data, links lead somewhere."""

import importlib.util
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, t

import caltest
from benchmarks import (
    against,
    alternatives,
    approximation,
    cold_start,
    few_groups,
    findings,
    folds,
    group_copies,
    groups,
    groups_comparisons,
    markdown,
    monitor,
    pages,
    pitfalls,
    problems,
    recalibration,
    recalibration_cost,
    recalibration_page,
    resampled_halves,
    software,
    streaming_cost,
    studies,
    timing,
    training,
    which_estimator,
)
from benchmarks.cases import CASES, disagreement
from benchmarks.loops import bias as loops_of_studies
from benchmarks.loops.drawing import RowsAndClasses, RowsAndEvents, alias_tables, generator
from caltest.simulation import DirichletModel, approximation_study
from caltest.simulation.studies._estimates import Estimates
from caltest.statistics import KDEError

DOCS = against.ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *against.ROOT.glob("*.md"), against.ROOT / "benchmarks" / "README.md"])
N_SAMPLES = 700
MIN_LEAF = 20
N_RESAMPLES = 300


def arrays_like(case):
    """The first observations of the case's problem; their number is a multiple of nothing."""
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


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=[pytest.mark.slow] if key == "tree-10" else [])
        for key in CASES
        if not key.startswith("default-")
    ],
)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_loops_agree_with_the_package(key):
    case = CASES[key]
    arrays = arrays_like(case)
    options, loops = smaller(case)
    result = caltest.calibration_test(*arrays, **options, method="monte-carlo", n_resamples=N_RESAMPLES, rng=1)
    found = {name: disagreement(result, *loop(*arrays, N_RESAMPLES, seed=2)) for name, loop in loops.items()}
    assert found == dict.fromkeys(loops, "")


@pytest.mark.parametrize("key", ["tree-10", "tree-2"])
def test_trees_with_tied_predictions_agree(key):
    """Two digits: many observations share a median."""
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


@pytest.mark.slow(few_draws=True)
def test_drawn_rows_classes_and_events_have_their_distributions():
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
        pytest.skip(f"{name}, which is compared with, is not installed: pip install '.[bench]'")
    y_true, y_prob = problems.images()
    for found in software.PACKAGES[name](y_true[:300], y_prob[:300], 9):
        assert np.isfinite(found.theirs(9))


def test_the_cold_start_programs_run():
    """The code that is timed is text: it must be right Python that calls the public API rightly."""
    for run in cold_start.RUNS.values():
        compile(run.code, "timed", "exec")
    counted = cold_start.in_fresh_process("import caltest" + cold_start.COUNT_CACHE)
    assert json.loads(counted) == [0, 0]


@pytest.mark.slow
def test_calls_of_two_checkouts_are_timed():
    """Here the same checkout: its calls run, with the same answer in every process."""
    for call in against.CALLS.values():
        compile(call, "timed", "eval")
    calls = {"ECE": "caltest.calibration_error(*few)", "absent": "caltest.no_such_name(*few)"}
    rows = against.measure(against.ROOT, 2, calls, 0)
    lines = against.section(rows).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [*against.START, "ECE", "absent"]
    assert "x |" in lines[-2]
    assert "| yes |" in lines[-2]
    assert rows[-1]["ratio"] == rows[-1]["seconds"] == ""


def test_another_checkout_must_hold_the_package(tmp_path):
    with pytest.raises(RuntimeError, match=r"caltest was imported from|No module named"):
        against.Checkout(tmp_path)


@pytest.mark.slow(few_draws=True)
def test_pages_have_the_tables_of_the_data():
    for program in (pitfalls, folds, findings):
        made, name = program.STUDIES, program.STUDIES.program
        frame = pages.read((DOCS / "data" / f"{name}.csv").read_text())
        assert set(frame["study"]) == set(made.studies)
        for study, (_, _, page) in made.studies.items():
            assert pages.mark(name, study) in (DOCS / page).read_text()
        for page in made.pages:
            text = (DOCS / page).read_text()
            assert text == made.with_tables(page, text, frame), f"{page}: python benchmarks/{name}.py --page"
    power = (DOCS / "power.csv").read_text()
    assert (DOCS / "power.md").read_text() == alternatives.page(power), "python benchmarks/power.py --page"


@pytest.mark.slow  # the loops compile for some seconds, and the studies have tests of their own
@pytest.mark.parametrize("n_samples", [100, 777, 3000])
def test_studies_and_loops_have_the_same_estimates(n_samples):
    y, p = loops_of_studies.draw((1, 1), n_samples, np.random.default_rng(0))
    kinds, cells = loops_of_studies.KINDS, (5, 10, 20)
    common = {repr(statistic): statistic for statistic in studies.statistics_of(kinds, cells)}
    own = Estimates(caltest.Canonical(), common).of_many(y[None], np.column_stack([1 - p, p])[None])[0]
    for loop in (loops_of_studies.plain_estimates, loops_of_studies.tuned_estimates):
        np.testing.assert_allclose(own, loop(y, p, cells, kinds), rtol=1e-12, atol=1e-15)


def test_tables_are_in_the_order_of_the_data():
    rows = [("resampled", "b", 200), ("resampled", "b", 1000), ("resampled", "a", 100)]
    frame = pitfalls.pd.DataFrame(
        [
            pitfalls.Row(*row, method, value, 4)
            for row in rows
            for method, value in ((pitfalls.FIXED, 0.05), (pitfalls.RESAMPLED, 0.5), (pitfalls.RATIO, 0.9))
        ]
    )
    lines = pitfalls.resampled_table(frame).splitlines()[2:]
    assert lines == [f"| {name} | 0.05 | 0.50 | 0.90 |" for name in ("b, n = 200", "b, n = 1,000", "a, n = 100")]


def test_pairs_of_models_are_as_miscalibrated_as_they_should_be():
    """Mean label minus mean prediction of class 0, within 4 standard errors of its expectation."""
    n, rng = 20_000, np.random.default_rng(0)
    slack = 4 * np.sqrt(0.25 / n)
    for case in pitfalls.PAIRS:
        y_true, one, other = pitfalls.draw_pair(case, n, 3, rng)
        bias = [(y_true == k).mean() - prob[:, k].mean() for k, prob in ((0, one), (2, other))]
        shifted = case == "equally shifted"
        assert all(value < -0.05 if shifted else abs(value) < slack for value in bias), (case, bias)


@pytest.mark.slow
def test_every_study_of_pitfalls_runs():
    frame = pitfalls.STUDIES.measure(pitfalls.STUDIES.studies, 4)
    assert set(frame["study"]) == set(pitfalls.STUDIES.studies)
    assert frame["value"].between(0, 2).all()


def anchors(text):
    """What a heading of a page is called in a link."""
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_of_pages_lead_somewhere():
    wrong = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            place, _, anchor = link.partition("#")
            if place.startswith("http"):
                continue
            file = (page.parent / place) if place else page
            if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
                wrong.append(f"{page.name}: {link}")
    assert wrong == []


def test_every_code_of_a_note_is_explained():
    """A paragraph for each code of the package, and none besides."""
    package = against.ROOT / "caltest"
    used = {code for file in package.rglob("*.py") for code in re.findall(r'"(C\d{3})"', file.read_text())}
    explained = re.findall(r"^## (C\d{3})$", (DOCS / "notes.md").read_text(), flags=re.MULTILINE)
    assert explained == sorted(used)


def test_comparisons_with_groups_miss_no_more_than_chance_explains():
    frame = pd.read_csv(DOCS / "data" / "groups-comparisons.csv")
    assert frame[[groups_comparisons.too_often(row) for _, row in frame.iterrows()]].empty
    known = {design.name for part in groups_comparisons.DESIGNS.values() for design in part}
    assert set(frame["design"]) == known
    for part, number in (("groups", -1), ("classes", -2), ("unpaired", -2), ("weights", 2)):
        design = groups_comparisons.DESIGNS[part][number]
        found = groups_comparisons.measure(part, design, 1, 0)
        assert found["design"] in known
        assert 0 <= found["missed"] <= 1


def test_the_page_on_groups_is_made_from_its_data():
    page, data = DOCS / "grouped-evidence.md", DOCS / "data" / "groups.csv"
    text, made = page.read_text(), groups.rates_table(pd.read_csv(data))
    assert text == pages.with_table(text, pages.mark("groups"), made), "python benchmarks/groups.py --page"
    design = groups.Design("rare", (3, 4, 5), 0.3)
    found = groups.measure(design, 2, 0)
    assert found["groups"] == "3 groups of 3 to 5"
    assert set(groups.SHOWN) <= set(found)
    assert set(found) <= set(pd.read_csv(data).columns)


def test_copies_are_rejected_at_the_level():
    page, frame = (DOCS / "grouped-evidence.md").read_text(), pd.read_csv(DOCS / "data" / "group-copies.csv")
    made = group_copies.levels_table(frame)
    assert page == pages.with_table(page, pages.mark("group_copies"), made), "group_copies.py --page"
    above = frame[frame["rate"] > 0.05 + 4 * np.sqrt(0.05 * 0.95 / frame["data sets"])]
    assert set(above["method"]) <= set(group_copies.ABOVE), "the page says what fails"
    design = group_copies.Design(6, 2, 0.3, "unequal", "within")
    for method in ("paired_test", "l2_interval", "event"):
        rates, _ = group_copies.measure(method, design, 2)
        assert set(rates) <= set(frame["method"])


def test_few_groups_reject_calibrated_models_at_the_level():
    page, frame = (DOCS / "grouped-evidence.md").read_text(), pd.read_csv(DOCS / "data" / "few-groups.csv")
    for name, make in (("levels", few_groups.levels_table), ("others", few_groups.others_table)):
        assert page == pages.with_table(page, pages.mark("few_groups", name), make(frame)), "few_groups.py --page"
    calibrated = frame[frame["odds"] == 1]
    limit = 0.065 + 4 * np.sqrt(0.065 * 0.935 / calibrated["data sets"])
    assert (calibrated["with alike labels"] <= limit).all()
    known = [vars(design) for design in few_groups.designs()]
    assert frame[list(known[0])].to_dict("records") == known
    found = few_groups.measure(few_groups.Design(4, 40, 0.1, 0.3, n_classes=3), 0, 8)
    assert list(found) == list(frame.columns)


@pytest.mark.slow(few_draws=True)
def test_the_page_on_monitoring_is_made_from_its_data():
    page, frame = DOCS / "monitoring-evidence.md", pd.read_csv(DOCS / "data" / "monitor.csv")
    assert page.read_text() == monitor.with_tables(page.read_text(), frame), "python -m benchmarks.monitor --page"
    assert set(frame["study"]) == set(monitor.TABLES)
    level = frame[frame["study"] == "level"]
    assert (level["false alarms"] * level["runs"] <= binom.ppf(0.999, level["runs"], monitor.ALPHA)).all()
    ahead = frame[frame["study"] == "level ahead"]
    assert (ahead["false alarms"] * ahead["runs"] <= binom.ppf(0.999, ahead["runs"], monitor.ALPHA)).all()
    rng = np.random.default_rng(0)
    for found in (
        monitor.delay("vague", "odds x 0.5", 0, 2, rng),
        *(monitor.level_ahead(name, 7, 1, rng) for name in monitor.CALIBRATED),
        monitor.delay_ahead("AR(.5)", "shift", 3, 1, rng),
    ):
        assert set(found) <= set(frame.columns)
    for name, change in monitor.WRONG:
        wrong = monitor.streams.distorted(monitor.STREAMS[name](rng, 3000, 3), change)
        alarm = caltest.CalibrationMonitor(lead=3).update(wrong.y_true, wrong.y_prob, time=wrong.time).alarm
        assert alarm == getattr(monitor.alarm_of(wrong, 3), "observation", None)


@pytest.mark.slow
def test_the_page_that_compares_recalibration_methods_is_made_from_its_data():
    page = DOCS / "papers" / "recalibration-compared.md"
    values, pairs = (
        recalibration_page.read(DOCS / "data" / f"recalibration-{kind}.csv") for kind in ("values", "pairs")
    )
    made = recalibration_page.with_tables(page.read_text(), values, pairs, DOCS / "data")
    assert page.read_text() == made, "python benchmarks/recalibration.py --page"
    for name in [*values["table"].unique(), "summary", "nixon-3", "nixon-4", "nixon-5"]:
        assert pages.mark("recalibration", name.split(" ")[0] if "nixon-5" in name else name) in made
    assert set(values["network"]) == set(recalibration.NETWORKS)


@pytest.mark.slow(few_draws=True)
def test_the_page_that_compares_estimators_has_the_winners_of_its_data():
    page = (DOCS / "papers" / "estimators-compared.md").read_text()
    for row in pd.read_csv(DOCS / "data" / "approximation-winners.csv").to_dict("records"):
        median = f"{row['median']:.2f} ({row['median_se']:.2f})"
        assert f"| {row['setting']}, {row['n_samples']} | {row['best']} | {median} | {row['alike']} |" in page
    studied = approximation_study(
        [DirichletModel(2, 0.5), DirichletModel(3, 0.5)], {"a": caltest.ECE(), "b": KDEError()}, [30], 5,
        n_holdout=1000, rng=0,
    )  # fmt: skip
    found = approximation.winners(studied)
    assert len(found) == 2
    assert set(found["best"]) <= {"a", "b"}


@pytest.mark.slow
def test_equal_methods_are_rarely_told_apart():
    n_sets, rng = 200, np.random.default_rng(0)
    limit = 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_sets)
    for name in ("none", "histogram binning"):
        assert (resampled_halves.level(name, 400, n_sets, rng) < limit).all()
    mean, error, pvalue = resampled_halves.resampled_test(np.array([0.3, 0.5, 0.2, 0.6]))
    assert (mean, error) == pytest.approx((0.4, np.sqrt(1.25 / 30)))  # the variance is 1 / 30
    assert pvalue == pytest.approx(2 * t.sf(mean / error, 3))
    assert resampled_halves.resampled_test(np.zeros(4)) == (0.0, 0.0, 1.0)


@pytest.mark.slow
def test_the_comparison_of_recalibration_methods_runs(tmp_path, monkeypatch):
    asked = ["recalibration.py", "--quick", "--docs", str(tmp_path), "--parts", str(tmp_path / "parts")]
    monkeypatch.setattr("sys.argv", asked)
    recalibration.main()
    first = [(tmp_path / "data" / f"recalibration-{kind}.csv").read_text() for kind in ("values", "pairs")]
    monkeypatch.setattr(recalibration, "measure", None)  # finished parts are read
    recalibration.main()
    assert first == [(tmp_path / "data" / f"recalibration-{kind}.csv").read_text() for kind in ("values", "pairs")]


@pytest.mark.slow
def test_the_cost_of_recalibration_is_measured(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["recalibration_cost.py", "--quick"])
    recalibration_cost.main()
    printed, page = capsys.readouterr().out, (DOCS / "recalibration-details.md").read_text()
    for name in (*recalibration_cost.SMALL, *recalibration_cost.LARGE):
        assert f"| `{name}` |" in printed
        assert f"| `{name}` |" in page
    assert pages.mark("recalibration_cost") in page


@pytest.mark.slow
def test_the_study_of_estimators_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["which_estimator.py", "--replicates", "3", "--docs", str(tmp_path)])
    monkeypatch.setattr(which_estimator, "CLASSES", (2,))
    monkeypatch.setattr(which_estimator, "SIZES", (60, 90))
    which_estimator.main()
    found = pd.read_csv(tmp_path / "data" / "which-estimator.csv")
    stored = pd.read_csv(DOCS / "data" / "which-estimator.csv")
    assert list(found.columns) == list(stored.columns)
    assert len(found) == 9 * 2 * len(which_estimator.ESTIMATORS)
    assert set(found["truth"].round(6)) == set(stored["truth"][stored["n_classes"] == 2].round(6)), "by quadrature"
    assert (tmp_path / "images" / "which-estimator.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_page_on_training_is_made_from_its_data():
    """PyTorch is not needed for it."""
    page, frame = DOCS / "papers" / "training.md", pages.read((DOCS / "data" / "training.csv").read_text())
    assert page.read_text() == training.with_tables(page.read_text(), frame), "python benchmarks/training.py --page"
    assert set(frame["penalty"]) == set(training.PENALTIES)
    assert set(frame["seed"]) == set(training.SEEDS)
    parts = [set(part) for part in training.split(0)]
    assert set.union(*parts) == set(range(1797))
    assert sum(map(len, parts)) == 1797


@pytest.mark.slow
def test_a_network_is_trained_and_judged():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: pip install 'caltest[torch]'")
    unscaled, scaled = training.measure("UCE, 10", 0, epochs=3)
    assert unscaled["accuracy"] == scaled["accuracy"] > 0.3
    assert unscaled["temperature"] == 1 != scaled["temperature"]


@pytest.mark.slow
def test_the_cost_of_a_state_is_drawn(tmp_path):
    found = streaming_cost.measure(streaming_cost.Sizes((800,), (64, 4096), (2, 3), (1,)))
    assert (found["ns_per_row"] > 0).all()
    assert set(found["axis"]) == set(streaming_cost.LABELS)
    streaming_cost.draw(found, tmp_path / "cost.png")
    assert (tmp_path / "cost.png").stat().st_size > 10_000
