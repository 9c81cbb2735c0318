"""A verdict: its sentences are made from numbers, and mirror the other side of an error."""

from dataclasses import replace

import numpy as np
import pytest

import caltest
from caltest.results import ConfidenceInterval, Number, Subject, Verdict
from caltest.results._finding import OF_CONFIDENCE, Finding
from caltest.results._verdict import Impossible
from tests.results.examples import EXAMPLES, example

RISK = Subject(event="death_30d = 1", source="hospital.csv", path="hospital.csv", column="risk")
LOW = Finding(
    kind="too low",
    subject=RISK,
    predicted=0.159,
    observed=0.243,
    estimate=1.53,
    interval=ConfidenceInterval(1.42, 1.64),
    pvalue=0.001,
    n=2400,
)
STEEP = replace(LOW, kind="too extreme", estimate=0.78, interval=ConfidenceInterval(0.66, 0.91))
PLACE = replace(LOW, kind="wrong in parts", predicted=0.71, observed=0.52, n=214, low=0.6, high=0.8)
HIGH = replace(LOW, kind="over-confident", subject=OF_CONFIDENCE, predicted=0.976, observed=0.936)
TOTALS = replace(LOW, kind="totals", predicted=0.121, observed=0.098, classes=("cat", "dog"), n_classes=10)
FIELDS = {
    "alpha": 0.05,
    "subject": RISK,
    "n_samples": 2400,
    "n_expected": 380.0,
    "n_observed": 583.0,
    "predicted": 0.159,
    "observed": 0.243,
    "frequency": 0.243,
}
RATIO = Number(
    name="observed / expected", estimate=1.53, interval=ConfidenceInterval(1.42, 1.64), shown="1.53", meaning="1"
)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            LOW,
            "Predicted risks are too low: 15.9 % predicted, 24.3 % observed (observed/expected 1.53, joint 95 % "
            "interval 1.42 to 1.64).",
        ),
        (
            STEEP,
            "Predicted risks are too extreme: differences between low and high risks are overstated (calibration slope "
            "0.78, joint 95 % interval 0.66 to 0.91).",
        ),
        (
            PLACE,
            "Predicted risks are wrong in parts, most clearly between 60 and 80 %: 71.0 % predicted, 52.0 % observed "
            "(214 observations).",
        ),
        (
            HIGH,
            "The model is over-confident: its confidence is 97.6 % on average, 93.6 % of its predictions are right.",
        ),
        (TOTALS, "The totals of 2 of 10 classes are wrong, most class cat: 12.1 % predicted, 9.8 % observed."),
        (replace(TOTALS, classes=("cat",)), "The total of class cat is wrong: 12.1 % predicted, 9.8 % observed."),
    ],
)
def test_sentences_of_findings(finding, said):
    assert finding.sentence == said
    assert finding.brief.endswith(".")
    assert "interval" not in finding.brief


def test_a_second_finding_follows_the_first():
    assert STEEP.also == "They are also too extreme: differences between low and high risks are overstated."
    assert LOW.also == "On average they are too low: 15.9 % predicted, 24.3 % observed."
    found = Verdict(pvalue=0.001, findings=(STEEP,), **FIELDS)
    assert "On average no error is found (15.9 % predicted, 24.3 % observed)." in found.conclusion
    assert "On average no error" not in Verdict(pvalue=0.001, findings=(LOW, STEEP), **FIELDS).conclusion
    assert "On average no error" not in Verdict(pvalue=0.001, findings=(PLACE, LOW), **FIELDS).conclusion


def test_the_first_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    found = Verdict(pvalue=0.0001, findings=(LOW, STEEP), numbers=(RATIO,), **FIELDS)
    assert str(found).splitlines() == [
        'hospital.csv: 2,400 observations, event "death_30d = 1" (583, 24.3 %), predicted by "risk"',
        "",
        "Predicted risks are too low: 15.9 % predicted, 24.3 % observed. They are also too extreme:",
        "differences between low and high risks are overstated. Calibration is rejected (p = 0.0001).",
        "",
        " observed / expected  1.53  1",
        "",
        "In brackets: what is compatible with these data, with 95 % confidence.",
        "What to do: Do not use these predictions as they are. `caltest repair hospital.csv -o repaired.csv`",
        "recalibrates them and shows on held-out folds what is left.",
    ]


def test_nothing_is_found():
    found = Verdict(pvalue=0.43, **FIELDS)
    assert found.conclusion == (
        "No miscalibration is found: 15.9 % predicted, 24.3 % observed. If the predictions were exactly right, 43 of "
        "100 such data sets would look as bad as this or worse (p = 0.43). This does not prove that the model is "
        "calibrated."
    )
    assert "fewer than 1 of 100" in Verdict(pvalue=0.004, **FIELDS | {"alpha": 0.001}).conclusion
    assert "nearly all of 100" in Verdict(pvalue=1.0, **FIELDS).conclusion


@pytest.mark.parametrize("n_expected", [0.3, 4.9])
def test_few_expected_events_cannot_tell(n_expected):
    few = FIELDS | {"n_expected": n_expected}
    found = Verdict(pvalue=0.43, **few)
    assert found.decision == "undecidable"
    assert found.conclusion == (
        f"It cannot be told whether these predictions are right: only {n_expected} events were to be expected (p = "
        "0.43)."
    )
    assert found.advice[0].startswith("Collect about ")
    assert Verdict(pvalue=0.01, findings=(LOW,), **few).decision == "rejected"  # no event of 65 expected is one


def test_few_groups_cannot_tell():
    found = Verdict(pvalue=0.25, smallest_possible_pvalue=0.25, n_groups=3, **FIELDS)
    assert found.decision == "undecidable"
    assert found.conclusion.startswith("These data cannot decide: with 3 groups no p-value below 0.25 is possible")
    assert "`caltest subgroups hospital.csv --by COLUMN`" in found.advice[0]


def test_impossible_labels_come_first():
    found = Verdict(pvalue=0.0001, impossible=Impossible(2, 0, 0.43, 0.1), **FIELDS)
    assert found.conclusion == (
        "Impossible: 2 observations predicted with 0 % had the event. One such case alone rejects the predictions (p = "
        "0.0001). Without them no miscalibration is found (p = 0.43)."
    )
    assert "replace it by what it stands for (the smallest other prediction is 10.0 %), in all" in found.advice[0]
    both = replace(found, impossible=Impossible(1, 2, 0.01, 0.1), findings=(LOW,)).conclusion
    assert both.startswith(
        "Impossible: 1 observation predicted with 0 % had the event and 2 observations predicted with 100 % did not"
    )
    assert "Without them calibration is rejected, too (p = 0.01). Predicted risks are too low" in both


def test_too_few_events_are_not_repaired():
    few = Verdict(pvalue=0.001, findings=(LOW,), **FIELDS | {"n_observed": 3.0})
    assert few.advice[0].startswith("Do not use these predictions as they are. There are too few events (3) to")


def test_certain_predictions_need_no_more_observations():
    """More of them would be no evidence: 4,000,000,000,000 observations were advised."""
    classes = np.eye(3)[np.arange(60) % 3]
    found = caltest.calibration_test(classes.argmax(axis=1), classes, n_resamples=99, rng=0).verdict
    assert found.decision == "undecidable"
    assert found.conclusion.startswith("All predictions are 0 % or 100 %, and all of them came true.")
    assert not [words for words in ("Collect", "nan", "In brackets") if words in str(found)]


def test_data_without_other_observations_are_not_repaired():
    prob = np.linspace(0.1, 0.4, 60)
    few, none = (caltest.calibration_test(np.arange(60) >= n, prob, n_resamples=99, rng=0).verdict for n in (30, 0))
    assert "recalibration_study" in few.advice[0]
    assert "There are too few observations without the event (0)" in none.advice[0]
    assert none.numbers[1].meaning == "too few observations without the event"


def test_events_that_are_not_predicted_have_no_ratio():
    (ratio, *_) = caltest.calibration_test([1], [0.0], n_resamples=99, rng=0).verdict.numbers
    assert (ratio.shown, ratio.meaning) == ("-", "no events are predicted")


def test_a_test_and_its_verdict_agree():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.5, 1, 2_000)
    label = (rng.random(2_000) < prob - 0.1).astype(int)
    found = caltest.calibration_test(label, prob, lens=caltest.Confidence(), n_resamples=99, rng=0)
    verdict = found.verdict
    assert (verdict.decision, verdict.conclusion) == (found.decision, found.conclusion)
    assert (verdict.pvalue, verdict.alpha, verdict.findings) == (found.pvalue, found.alpha, found.findings)
    assert found.direction == verdict.findings[0].kind == "over-confident"
    assert verdict.size.estimate == caltest.l2_interval(label, prob, lens=caltest.Confidence()).estimate


DECIDING = [kind for kind in EXAMPLES if "verdict" in {*dir(kind), *kind._names()}]


@pytest.mark.parametrize("kind", DECIDING, ids=lambda kind: kind.__name__)
def test_results_that_decide_have_a_verdict(kind):
    result = example(kind)
    verdict = result.verdict
    assert isinstance(verdict, Verdict)
    assert (verdict.pvalue, verdict.alpha) == (result.pvalue, result.alpha)
    assert verdict.decision == getattr(result, "decision", verdict.decision)
    assert verdict.to_dict()["conclusion"] == verdict.conclusion
    if verdict.detectable is None:
        assert verdict.conclusion == result.conclusion
    else:  # which takes time, and is found for a verdict only
        without = verdict.conclusion.replace(f" {verdict.detectable.conclusion}", "")
        assert result.conclusion in (without, verdict.conclusion)  # a monitor finds it while it is asked


def test_which_results_have_a_verdict():
    """Tests, tables, reports, comparisons, studies of repairs, monitors, and curves that decide by one p-value."""
    names = {kind.__name__ for kind in DECIDING}
    assert {"TestResult", "CalibrationTable", "CalibrationReport", "SubgroupTests", "EquivalenceResult"} <= names
    assert {"DifferenceResult", "ModelComparison", "RecalibrationStudy", "MonitorResult"} <= names
    assert {"CalibrationBand", "CumulativeGraph"} <= names


def test_an_interval_that_excludes_1_shows_it():
    """Of an event that nearly always happens, "1.00 (1.00 to 1.00)" once stood beside "too high"."""
    found = replace(LOW, kind="too high", estimate=0.9981, interval=ConfidenceInterval(0.9973, 0.9989))
    assert "observed/expected 0.998, joint 95 % interval 0.997 to 0.999" in found.sentence


def test_predictions_that_point_the_wrong_way_are_not_called_too_extreme():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 500)
    verdict = caltest.calibration_table((rng.random(500) < 1 - p).astype(int), p, n_resamples=199, rng=0).verdict
    said = " ".join(verdict.sentences())
    assert "point the wrong way: the event is less frequent where it is predicted to be more frequent" in said
    assert "extreme" not in said
    assert "Check first that the right event is named" in verdict.advice[0]
