"""What is said first, in every situation and by every function and command: true, and nowhere contradicted."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest.cli import main
from caltest.streaming import CalibrationState
from tests.reference.situations import Situation, situations

SITUATIONS = {situation.name: situation for situation in situations()}
FEW = ["impossible labels"]
"""Those that are tried in every run; every fourth one of the others is slow, the rest nightly."""

OPTIONS = {"rng": 0, "n_resamples": 999}


def test_the_table():
    assert len(SITUATIONS) >= 40
    assert set(FEW) <= set(SITUATIONS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FEW else pytest.mark.nightly if number % 4 else pytest.mark.slow)
        for number, name in enumerate(SITUATIONS)
    ],
)
def test_every_answer(name, tmp_path, capsys):
    situation = SITUATIONS[name]
    other = situation.permuted() if situation.kind == "classes" else situation.complement
    one, mirrored = (check(told, tmp_path, capsys) for told in (situation, other))
    assert one == mirrored, "which model is better calibrated does not depend on the order of the outcomes"


def check(told: Situation, tmp_path, capsys) -> list[tuple[str, str]]:
    """Ask every function and command, and look for what must and must not be said; return what is better than what."""
    problem = told.y_true, told.y_prob
    test = caltest.calibration_test(*problem, **OPTIONS, **told.design)
    first = test.conclusion
    assert re.search(told.says, first), first
    screen = shown(test.verdict, str(test.verdict))
    answers = {"calibration_test": first, "screen": screen, "report": shown(test.verdict, str(test))}
    table = caltest.calibration_table(*problem, **OPTIONS, **told.design)
    answers["calibration_table"] = table.conclusion
    for name, answer in answers.items():
        assert not re.search(told.never, answer), (name, answer)
        assert "not rejected" not in answer if test.decision == "undecidable" else answer, (name, answer)
    assert test.decision == table.decision == test.verdict.decision
    told_elsewhere = list(other_tests(told))
    directions = {"too low", "too high", "too extreme", "not extreme enough", "over-confident", "under-confident"}
    for found in told_elsewhere:  # other tests have other power, but never say the contrary
        assert not re.search("|".join(set(told.never.split("|")) & directions) or "$^", found.conclusion), found
        assert set(kinds(found)).isdisjoint(contrary(kinds(test))), (found.conclusion, first)
    assert_the_command_agrees(told, test, tmp_path, capsys)
    return better_models(told)


def better_models(told: Situation) -> list[tuple[str, str]]:
    """Compare with a model that is more extreme: nothing contradicts the model's own test; return the findings."""
    near = np.clip(told.y_prob, 1e-6, 1 - 1e-6)
    if told.kind == "classes":
        far = near**3 / (near**3).sum(axis=1, keepdims=True)
    else:
        far = near**3 / (near**3 + (1 - near) ** 3)
    models = {"given": told.y_prob, "far": far}
    found = caltest.compare_models(told.y_true, models, rng=0, n_resamples=199, **told.design).verdict
    text = shown(found, str(found))
    assert not re.search(r"\b0\.0 (\(|to )|\(0\.0 |squared l2", text), text
    if found.decision == "undecidable":
        assert "cannot be told" in found.sentences()[0], text
    else:
        assert found.sentences()[0].startswith(("given is better", "far is better", "No model is shown")), text
    single = caltest.calibration_test(told.y_true, told.y_prob, rng=0, n_resamples=199, **told.design)
    if single.decision == "undecidable":
        assert found.calibration["given"] != "not rejected", text
    if found.calibration["given"] == "rejected":
        assert single.decision == "rejected", text
    if single.decision == "not rejected":
        assert "rejected for given" not in text, text
    for finding in found.findings:
        assert finding.difference.interval.low > 0, text
        assert finding.errors[0].estimate < finding.errors[1].estimate, text
    return [finding.models for finding in found.findings]


def shown(verdict, text: str) -> str:
    """A text without the sentence about errors that would have been found, which names their kinds."""
    flat = " ".join(text.split())
    return flat if verdict.detectable is None else flat.replace(verdict.detectable.conclusion, "")


def other_tests(told: Situation):
    """Yield the answers of tests by other statistics, and of a stream."""
    problem = told.y_true, told.y_prob
    yield from caltest.calibration_report(*problem, rng=0, n_resamples=199, **told.design)
    if told.kind == "event" and not told.design:
        state = CalibrationState().update(*problem)
        yield state.test(rng=0)
        yield caltest.spiegelhalter_test(*problem, rng=0, n_resamples=199)
        if 0 < told.y_true.sum() < len(told.y_true) and len(np.unique(told.y_prob)) > 2:
            yield caltest.hosmer_lemeshow_test(*problem)
            yield caltest.cox_test(*problem, rng=0, n_resamples=199)


def kinds(test) -> list[str]:
    """The kinds of errors that a test of the same outcomes names."""
    return [
        finding.kind for finding in test.findings if "confident" in finding.kind or not finding.subject.of_confidence
    ]


def contrary(named: list[str]) -> set[str]:
    """The contrary of kinds of errors."""
    sides = ("too low", "too high"), ("too extreme", "not extreme enough"), ("over-confident", "under-confident")
    return {pair[1 - pair.index(kind)] for kind in named for pair in sides if kind in pair}


def assert_the_command_agrees(told: Situation, test, tmp_path, capsys) -> None:
    """The first screen of the command line decides alike, of the same numbers."""
    columns = (
        {f"p{k}": column for k, column in enumerate(told.y_prob.T)} if told.kind == "classes" else {"risk": told.y_prob}
    )
    frame = pd.DataFrame({"y": told.y_true, **columns, **told.design})
    frame.to_csv(tmp_path / "data.csv", index=False)
    named = {"groups": "--groups", "sample_weight": "--weights"}
    options = [part for name in told.design for part in (named[name], name)]
    prob = ["--prob", ",".join(columns)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        common = [*options, *prob, "--label", "y", "--seed", "0", "--resamples", "999"]
        assert main(["test", str(tmp_path / "data.csv"), *common]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert main(["test", str(tmp_path / "data.csv"), *common, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"] == found["verdict"]["decision"] == test.decision
    if found["verdict"]["detectable"]:
        text = text.replace(found["verdict"]["detectable"]["conclusion"], "")
    assert re.search(told.says, text), text
    assert not re.search(told.never, text), text
