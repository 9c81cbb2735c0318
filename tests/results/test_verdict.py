"""A verdict: its sentences are made from numbers, and mirror the other side of an error."""

from dataclasses import replace

import numpy as np
import pytest

import caltest
from caltest.results import Finding, Verdict
from tests.results.examples import EXAMPLES, example

HIGH = Finding(kind="over-confident", predicted=0.95, observed=0.9312, pvalue=0.004, source="temperature score")
RISK = Finding(
    kind="too low",
    predicted=0.1,
    observed=0.2,
    pvalue=1e-300,
    bound=True,
    source="number of events",
    quantities=("average prediction", "frequency"),
)


def test_sentences_of_findings():
    assert HIGH.sentence == (
        "The model is over-confident: average confidence 0.95, accuracy 0.9312 (temperature score, p = 0.004)."
    )
    assert RISK.clause == (
        "the event is more frequent than predicted: average prediction 0.1, frequency 0.2 (number of events, p < "
        "1e-300)."
    )
    assert "less frequent" in replace(RISK, kind="too high").sentence


@pytest.mark.parametrize(
    ("pvalue", "smallest", "said"),
    [
        (0.01, 0.0, "Calibration is rejected at the 5 % level (p = 0.01). The model is over-confident: average"),
        (0.3, 0.0, "Calibration is not rejected (p = 0.3, 40 observations). This does not prove that the model is"),
        (0.3, 0.25, "These data cannot decide: with 3 groups no p-value below 0.25 is possible, and the level is 5 %"),
    ],
)
def test_conclusions(pvalue, smallest, said):
    found = Verdict(
        pvalue=pvalue, alpha=0.05, smallest_possible_pvalue=smallest, n_samples=40, n_groups=3, findings=(HIGH,)
    )
    assert found.conclusion.startswith(said)
    assert found.to_dict()["decision"] == found.decision
    assert str(found).startswith("Verdict\n")


def test_a_test_and_its_verdict_agree():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.5, 1, 2_000)
    label = (rng.random(2_000) < prob - 0.1).astype(int)
    found = caltest.calibration_test(label, prob, lens=caltest.Confidence(), n_resamples=99, rng=0)
    verdict = found.verdict
    assert (verdict.decision, verdict.conclusion) == (found.decision, found.conclusion)
    assert (verdict.pvalue, verdict.alpha, verdict.findings) == (found.pvalue, found.alpha, found.findings)
    assert found.direction == verdict.findings[0].kind == "over-confident"
    assert verdict.findings[0].sentence == found.direction_words
    assert verdict.size.estimate == caltest.l2_interval(label, prob, lens=caltest.Confidence()).estimate


DECIDING = [kind for kind in EXAMPLES if hasattr(kind, "verdict")]


@pytest.mark.parametrize("kind", DECIDING, ids=lambda kind: kind.__name__)
def test_results_that_decide_have_a_verdict(kind):
    result = example(kind)
    verdict = result.verdict
    assert isinstance(verdict, Verdict)
    assert (verdict.pvalue, verdict.alpha) == (result.pvalue, result.alpha)
    assert verdict.conclusion == result.conclusion
    assert verdict.decision == getattr(result, "decision", verdict.decision)
    assert verdict.cautions == getattr(result, "notes", ())
    assert verdict.to_dict()["conclusion"] == result.conclusion


def test_which_results_have_a_verdict():
    """Tests, tables, reports, comparisons, studies of repairs, monitors, and curves that decide by one p-value."""
    names = {kind.__name__ for kind in DECIDING}
    assert {"TestResult", "CalibrationTable", "CalibrationReport", "SubgroupTests", "EquivalenceResult"} <= names
    assert {"DifferenceResult", "ModelComparison", "RecalibrationStudy", "MonitorResult"} <= names
    assert {"CalibrationBand", "CumulativeGraph"} <= names
