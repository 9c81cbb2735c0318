"""The certificate: its page is made from its data, nothing is missing, and cells on new data agree with it."""

import re
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import caltest
from benchmarks import certificate, certificate_page, coverage, event_intervals, groups_intervals, measured
from caltest.results._naming import describe
from caltest.simulation import DirichletModel, size_study
from tests.reference.examples import LENSES, STATISTICS

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "validity.csv"
CELLS_PER_DAY = 4
TODAY = {50: 300, 100: 300, 500: 150, 2_000: 60, 10_000: 20}
"""Data sets of today's cells, by size."""


@pytest.mark.slow(few_draws=True)
def test_pages_and_the_table_of_the_package_are_made_from_the_data():
    made = measured.pages(DOCS)
    assert len(made) == 3
    assert [file.name for file, text in made.items() if file.read_text(encoding="utf-8") != text] == []


@pytest.mark.release
def test_the_data_hold_every_statistic_lens_and_size():
    """A release needs a run of the certificate with every statistic: `python benchmarks/validity.py --out DIR`."""
    frame, facts = certificate_page.read(DATA.read_text())
    measured = set(frame[["model", "lens", "n_samples", "null", "test"]].itertuples(index=False, name=None))
    planned = {
        (cell.model, describe(cell.lens), cell.n_samples, cell.null, test)
        for cell in certificate.cells()
        for test in cell.tests
    }
    assert measured == planned
    known = {"seed", "commit", "date", "duration", "processes", "resamples", "shares"}
    assert set(facts) - {certificate.AGAIN} == known
    assert {kind.__name__ for kind in STATISTICS} <= set(frame["test"])
    assert {type(lens) for _, lens in certificate.VIEWS} == set(LENSES)


@pytest.mark.release
def test_the_data_hold_every_interval():
    """A release needs a run of the certificate with every interval."""
    frame, _ = certificate_page.read((DOCS / "coverage.csv").read_text())
    assert set(frame["interval"]) == {interval.name for interval in coverage.INTERVALS}


def test_intervals_cover_what_they_should():
    """Two outcomes: within 2 points of nominal from 1,000 observations on, within 3 at 200."""
    frame, _ = certificate_page.read((DOCS / "coverage.csv").read_text())
    promised = frame[frame["interval"].eq("l2_interval") & frame["predictions"].isin(["spread", "sharp"])]
    slack = 4 * np.sqrt(0.95 * 0.05 / promised["n_replicates"])
    assert (promised["coverage"] >= 0.95 - np.where(promised["n_samples"] >= 1000, 0.02, 0.03) - slack).all()
    assert (promised[["above", "below"]].max(axis=1) <= 0.045 + slack).all()
    exact = frame[
        frame["interval"].isin(["calibration_band", "consistency bars, one", "consistency bars, simultaneous"])
    ]
    assert (exact["coverage"] >= exact["level"] - 4 * np.sqrt(0.25 / exact["n_replicates"])).all()


def test_levels_of_the_table_of_statistics_are_those_of_the_data():
    """The first number of the last column of statistics.md: percent rejected at 5 %, Confidence(), 100 observations."""
    frame, _ = certificate_page.read(DATA.read_text())
    chosen = frame[frame["lens"].eq("Confidence()") & frame["n_samples"].eq(100) & frame["null"].eq("Monte Carlo")]
    chosen = chosen[chosen["model"].isin(certificate.MODELS)]
    rate = dict(zip(chosen["test"], 100 * chosen["rejected_5pct"] / chosen["n_replicates"], strict=True))
    page = (DOCS / "statistics.md").read_text()
    tables = re.findall(r"^\| name \|.*\| level \|\n((?:\|.*\n)+)", page, re.MULTILINE)
    levels = re.findall(r"^\| `(\w+)`.*\| ([\d.]+)[^|]*\|$", "".join(tables), re.MULTILINE)
    shown = {name: float(level) for name, level in levels}
    named = {"Omnibus", "TemperatureScore", "OverConfidence", "UnderConfidence", "MatrixScore", "ConfidenceECE"}
    named.add("calibration_band")
    assert set(shown) == set(rate) - named  # in a sentence
    wrong = {name: (level, rate[name]) for name, level in shown.items() if abs(level - rate[name]) > 0.0501}
    assert wrong == {}


def test_every_valid_test_of_the_certificate_is_valid():
    frame, _ = certificate_page.read(DATA.read_text())
    assert frame["n_replicates"].min() >= certificate.FEWEST
    valid = frame[frame["null"].isin(certificate_page.VALID)]
    above = certificate_page.exceeding(valid).any(axis=1)
    assert valid[above].to_dict("records") == []


def test_rows_that_are_measured_again_are_listed():
    text = DATA.read_text()
    again = certificate_page.read(text)[0].iloc[[0, 3]].assign(rejected_5pct=7)
    found = certificate.updated(text, again, "rows at f08f8f2")
    _, facts = certificate_page.read(found)
    lines = [(old, new) for old, new in zip(text.splitlines(), found.splitlines(), strict=True) if old != new]
    assert f"{again['test'].iloc[0]} in 1" in facts[certificate.AGAIN]
    assert [new.split(",")[-2] for _, new in lines[1:]] == ["7", "7"]
    first = again.assign(test="a test that is new")
    more = certificate.updated(text, first, "rows at f08f8f2").splitlines()
    assert more[1 : len(text.splitlines())] == text.splitlines()[1:]
    assert [line.split(",")[3] for line in more[len(text.splitlines()) :]] == ["a test that is new"] * 2


def test_limits_are_shared_by_the_valid_tests():
    frame = pd.DataFrame(
        {"null": ["Monte Carlo"] * 10 + ["asymptotic"], "n_replicates": [1000] * 11}
        | {column: np.arange(11) + 70 for column in certificate_page.COLUMNS.values()}
    )
    limit = certificate_page.limits(frame)[0.05][0]
    assert binom.sf(limit, 1000, 0.05) <= 0.001 / 30 < binom.sf(limit - 1, 1000, 0.05)
    found = certificate_page.exceeding(frame)
    assert found[0.05].tolist() == (np.arange(11) + 70 > limit).tolist()
    assert found[0.01].all()


def test_intervals_with_groups_are_wrong_no_more_often_than_chance_explains():
    frame = pd.read_csv(DOCS / "data" / "groups-intervals.csv", dtype={"base": str})
    for name, most in groups_intervals.NOMINAL.items():
        assert frame[frame[name] > groups_intervals.limit(most, 400)].to_dict("records") == []
    designs = {tuple(map(str, astuple(design))) for design in groups_intervals.designs()}
    columns = [field.name for field in fields(groups_intervals.Design)]
    assert {tuple(str(row[name]) for name in columns) for row in frame.to_dict("records")} == designs
    assert frame["sets"].min() >= 400
    assert len(groups_intervals.wrong(groups_intervals.designs()[0], 0)) == len(groups_intervals.NOMINAL)


def test_intervals_of_events_hold_the_truth_or_say_why_there_is_none():
    """Coverage is at least 93 %, up to chance, in every design; where there is no interval there is a reason."""
    frame = pd.read_csv(DOCS / "data" / "event-intervals.csv")
    columns = [field.name for field in fields(event_intervals.Design)]
    assert list(frame[columns].itertuples(index=False, name=None)) == [*map(astuple, event_intervals.designs())]
    assert frame["sets"].min() >= 1_000
    for what in ("ratio", "slope"):
        covered, known = event_intervals.coverages(frame, what), frame["sets"] * (1 - frame[f"{what}_none"])
        low = covered < event_intervals.least_coverage(known.to_numpy())
        assert frame[low].to_dict("records") == [], what
    few = frame["groups"].between(1, 5)
    assert (frame[["ratio_none", "slope_none"]].min(axis=1) == 1).tolist() == few.tolist()
    assert (frame.loc[~few & (frame["groups"] == 0), "ratio_none"] == 0).all()


@pytest.mark.nightly
def test_intervals_of_events_hold_the_truth_on_new_data():
    first, sets = datetime.now(UTC).toordinal() * 1_000, 200
    small = [design for design in event_intervals.designs() if design.n <= 600 and design.groups != 5]
    for design in small:
        found = np.array([event_intervals.measure(design, first + number) for number in range(sets)], dtype=float)
        for none, above, below in (found[:, 1:4].sum(axis=0), found[:, 4:7].sum(axis=0)):
            known = sets - none
            assert known - above - below >= binom.ppf(1e-5, known, event_intervals.LEAST), design


def test_slow_tests_have_fewer_data_sets():
    entry = certificate.Entry("a", caltest.ECE(), "Monte Carlo", 100, 500)
    assert [entry.n_replicates(n, 1000) for n in certificate.SIZES] == [1000, 1000, 100, 0, 0]
    assert certificate.Entry("a", caltest.ECE(), "Monte Carlo").n_replicates(10_000, 1000) == 100


def test_rows_of_the_table_say_what_is_worse():
    rejected = pd.DataFrame(
        {"model": "3 classes", "lens": "Confidence()", "n_samples": 50, "test": ["good", "bad"]}
        | {"null": ["Monte Carlo", "asymptotic"], "n_replicates": [1000, 100], "rejected_1pct": [10, 30]}
        | {"rejected_5pct": [50, 30], "rejected_10pct": [99, 30]}
    )
    covered = pd.DataFrame(
        {"interval": ["l2_interval"] * 2, "predictions": "sharp", "truth": ["calibrated", "shifted"]}
        | {"n_samples": 200, "n_replicates": 1000, "level": 0.95, "coverage": [0.94, 0.9], "above": [0.0, 0.08]}
        | {"below": [0.06, 0.02], "width": 0.1}
    )
    groups = "predictions,groups,correlation,data sets,ECE,SKCE\nrare,20 groups of 100,0.3,400,0.18,\n"
    folds = "# a\nstudy,learner,n_samples,n_folds,method,rate,data_sets\n"
    folds += 'level,tree,200,5,"ECE, pooled",0.1,100\npower,tree,200,5,x,0.9,50\n'
    others = [(DOCS / name).read_text() for name in measured.DATA[4:]]
    facts = "# seed: 1; commit: abc\n"
    texts = facts + rejected.to_csv(index=False), facts + covered.to_csv(index=False), groups, folds
    good, bad, held, low, few, pooled, *_ = measured.rows([*texts, *others])
    assert (good.is_worse, bad.is_worse, held.is_worse, low.is_worse, few.is_worse) == (False, True, False, True, True)
    assert (few.name, few.how, few.n, few.rates) == ("ECE", "groups", 2000, (None, 0.18, None))
    assert (pooled.name, pooled.how, pooled.data) == ("ECE", "folds, pooled", "tree, 5 folds")
    assert "| bad (asymptotic) | 1 | 1 | 30.0 % | 100 | 3 classes, Confidence(), n = 50 |" in measured.worst_of_tests(
        [bad]
    )
    assert "| `l2_interval`, two-sided | 95 % | 2 | 1 | 90.0 % | 1,000 | sharp, shifted, n = 200 |" in (
        measured.worst_of_intervals([held, low])
    )
    assert '"worse": [1]' in measured.stored([good, low])
    assert '"third": [99, null]' in measured.stored([good, low])


@pytest.mark.slow(few_draws=True)
def test_rows_of_clinical_validations():
    """Names are those that are printed; an interval above its target leaves the truth below it."""
    text = "study,predictions,events,n,kind,measure,sets,above,below,value,rounds,commit\n"
    text += 'measures,"usual risks, clusters of 10",20,111,coverage,c_statistic,400,44,4,0.1,4,a\n'
    text += 'tests,usual risks,1000,5530,level,"ECE(EqualMass(""cube-root""))",100,5,0,,2,a\n'
    text += "cutoffs,usual risks,20,111,coverage,bootstrap_interval of Kuiper,40,40,0,0.1,1,a\n"
    texts = [(DOCS / name).read_text() for name in measured.DATA[:-1]]
    c, ece = measured.rows([*texts, text])[-2:]
    assert (c.kind, c.name, c.how, c.n, c.sets) == ("interval", "c-statistic", "clusters", 111, 400)
    assert c.rates == pytest.approx((0.88, 0.01, 0.11))
    assert c.is_worse
    assert (ece.kind, ece.name, ece.how, ece.rates) == ("test", "ECE", "clinical", (None, 0.05, None))
    assert ece.data == 'usual risks, 1,000 events (EqualMass("cube-root"))'


def test_the_check_finds_a_test_that_fails():
    """Observations resampled in sparse cells: rejected almost always."""
    sparse = caltest.ECE(caltest.EqualWidth(10, axes="all"))
    rows = caltest.Consistency(resample_predictions=True)
    frame = size_study(DirichletModel(10, 0.5), sparse, 200, 20, resampling=rows, n_resamples=99, rng=0).to_frame()
    assert frame["exceeds"].all()


@pytest.mark.nightly
def test_cells_of_the_day():
    """New data every day; one-sided limits, exceeded by chance with probability 0.001 on any day at most."""
    day = datetime.now(UTC).toordinal()
    valid = [cell for cell in certificate.cells() if cell.null in certificate_page.VALID]
    chosen = np.random.default_rng(day).choice(len(valid), CELLS_PER_DAY, replace=False)
    found = []
    for number in chosen:
        cell = replace(valid[number], n_replicates=TODAY[valid[number].n_samples])
        found.append(certificate.rows_of(cell, cell.run(day, workers=2)))
    frame = pd.concat(found, ignore_index=True)
    above = certificate_page.exceeding(frame, 0.001).any(axis=1)
    assert frame[above].to_dict("records") == []
