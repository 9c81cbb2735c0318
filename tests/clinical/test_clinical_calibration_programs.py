"""Numbers of R on three public data sets: rms, pROC, loess, glm, Hosmer and Lemeshow's groups, and givitiR."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import caltest
from benchmarks import clinical_programs
from caltest.clinical import clinical_calibration
from caltest.hypothesis_tests import giviti_belt, hosmer_lemeshow_test, spiegelhalter_test
from caltest.resampling.distributions._forward_selection import ForwardSelection
from tests.reference.cases import mostly_slow

FOLDER = Path(__file__).parents[1] / "reference"
NAMES = ("pima", "melanoma", "birthwt")
QUICK = {"n_resamples": 19, "rng": 0}


def rows(name, file):
    with (FOLDER / file).open() as lines:
        return [row for row in csv.DictReader(lines) if row["data"] == name]


def problem(name):
    """Labels and predicted risks: of other patients in MASS's Pima.te and boot's melanoma, own ones in birthwt."""
    y, p = zip(*((int(row["y"]), float(row["p"])) for row in rows(name, "validation_data.csv")), strict=True)
    return np.array(y), np.array(p)


def printed(name, program, file="validation.csv"):
    """What ``tests/reference/validation.R`` found, or ``programs.R``, R 4.2.2."""
    values = {row["quantity"]: row["value"] for row in rows(name, file) if row["program"] == program}
    return {quantity: float(value) for quantity, value in values.items() if value != "NA"}


@pytest.mark.parametrize("name", mostly_slow(NAMES))
def test_val_prob_of_rms(name):
    """rms 6.5.0 prints three digits. Its C puts logits into cells; lrm stops at a tolerance of about 1e-7."""
    (y, p), wanted = problem(name), printed(name, "val.prob")
    found = clinical_calibration(y, p, smoother="lowess", **QUICK)
    names = {
        "R2": "r2",
        "D": "discrimination_index",
        "U": "unreliability_index",
        "Q": "quality_index",
        "Brier": "brier",
        "Intercept": "intercept_of_slope",
        "Slope": "calibration_slope",
        "Emax": "Emax",
        "E90": "E90",
        "Eavg": "ICI",
    }
    for theirs, ours in names.items():
        assert found[ours].estimate == pytest.approx(wanted[theirs], abs=1e-7), theirs
    assert found["c_statistic"].estimate == pytest.approx(wanted["C (ROC)"], abs=5e-4)
    ratio = len(y) * found["unreliability_index"].estimate + 2
    assert stats.chi2(2).sf(ratio) == pytest.approx(wanted["U:p"], abs=1e-6)
    z = spiegelhalter_test(y, p, method="asymptotic")
    assert (z.statistic, z.pvalue) == pytest.approx((wanted["S:z"], wanted["S:p"]), abs=1e-9)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", mostly_slow(NAMES))
def test_what_calibration_curves_reports(name):
    """Intercept, slope, ICI, ECI and c-statistic of ``val.prob.ci.2`` are those of R's glm and loess, and of pROC."""
    y, p = problem(name)
    found = clinical_calibration(y, p, **QUICK)
    fitted, smooth, roc = (printed(name, program) for program in ("glm", "loess", "pROC"))
    for ours, value in {"intercept": "intercept", "calibration_slope": "slope"}.items():
        assert found[ours].estimate == pytest.approx(fitted[value], abs=1e-9)
    for index, value in smooth.items():
        assert found[index].estimate == pytest.approx(value, rel=1e-9)
    assert found["c_statistic"].estimate == pytest.approx(roc["auc"], rel=1e-11)
    y_bar = y.mean()
    scaled = 1 - printed(name, "val.prob")["Brier"] / (y_bar * (1 - y_bar))
    assert found["scaled_brier"].estimate == pytest.approx(scaled, abs=1e-9)


@pytest.mark.parametrize("name", mostly_slow(NAMES))
def test_val_prob_ci_2(name):
    """Its own function (``tests/reference/programs.R``), by the calls of docs/clinical-programs.md."""
    wanted, known = printed(name, "val.prob.ci.2", "programs.csv"), clinical_programs.names(*problem(name))
    for row in clinical_programs.rows():
        if row["program"] == "CalibrationCurves" and row["data"] == "`testdata`":
            near = {"abs": 5e-4} if row["quantity"] == "C (ROC)" else {"abs": 1e-7, "rel": 1e-7}
            assert eval(row["here"], dict(known)) == pytest.approx(wanted[row["quantity"]], **near), row["quantity"]


@pytest.mark.parametrize("name", NAMES)
def test_hosmer_and_lemeshows_groups(name):
    """Groups end at R's quantiles, as in hoslem.test of ResourceSelection, whose p-value has two degrees less."""
    (y, p), wanted = problem(name), printed(name, "hosmer_lemeshow")
    own = printed(name, "hoslem.test", "programs.csv")
    assert (own["df"], own["statistic"]) == (8, pytest.approx(wanted["statistic"], rel=1e-11))
    assert own["pvalue"] == pytest.approx(wanted["pvalue"], rel=1e-8)
    groups = caltest.Edges(np.quantile(p, np.arange(1, 10) / 10), closed="right")
    found = hosmer_lemeshow_test(y, p, partition=groups, covariance="mean", method="asymptotic")
    assert (found.statistic, found.pvalue) == pytest.approx((wanted["statistic"], wanted["external"]), rel=1e-9)
    assert stats.chi2(found.degrees_of_freedom - 2).sf(found.statistic) == pytest.approx(wanted["pvalue"], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "kind", "threshold", "expected"),
    [
        ("pima", "external", 0.95, (2, 10.885057647330, 0.111897529776)),
        ("pima", "external", 0.8, (2, 10.885057647330, 0.0396894182307)),
        ("pima", "internal", 0.95, (2, 10.8850576473, 9.69431629878e-04)),
        ("melanoma", "external", 0.95, (1, 19.0764867506, 7.20432895926e-05)),
        ("birthwt", "external", 0.95, (1, 0.0, 1.0)),
        ("birthwt", "internal", 0.95, (2, 0.545439583666, 0.460187088278)),
    ],
)
def test_giviti_r(name, kind, threshold, expected):
    """Degree, statistic and p-value of ``givitiCalibrationTest``, by the formulas of givitiR 1.3 in R 4.2.2."""
    found = giviti_belt(*problem(name), kind=kind, threshold=threshold)
    assert found.selected_degree == expected[0]
    assert (found.statistic, found.pvalue) == pytest.approx(expected[1:], rel=1e-9, abs=1e-8)


@pytest.mark.parametrize(
    ("first", "threshold", "added", "ratio", "expected"),
    [
        (1, 0.95, 1, 14, 0.0295825791351),
        (1, 0.95, 2, 25, 0.00492204370501),
        (1, 0.95, 3, 25, 0.063579029446),
        (1, 0.8, 3, 12, 0.401274000137),
        (2, 0.95, 1, 14, 0.0122555846488),
        (2, 0.95, 2, 14, 0.217982837238),
        (2, 0.8, 2, 12, 0.0723659329776),
    ],
)
def test_the_distribution_of_giviti_r(first, threshold, added, ratio, expected):
    """``1 - givitiStatCdf(...)`` of givitiR 1.3, whose integrals have errors up to 1e-6."""
    null = ForwardSelection(3 - first, 4 - first, threshold)
    assert null.sf_given(added, ratio) == pytest.approx(expected, abs=1e-6)
