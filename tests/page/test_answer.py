"""What the page says above the fold."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from caltest.page._answer import Answer, Model
from caltest.results import Note, Subject, Verdict

DESIGN = dict.fromkeys(("classes", "sample_weight", "groups", "time", "lead"))


def answer_of(**fields):
    known = {"pvalue": 0.5, "alpha": 0.05, "n_samples": 2400, "subject": Subject(), "predicted": 0.2, "observed": 0.21}
    return Answer("", Verdict(**known | fields), {}, None, (), (), None)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "No error found"),
        ({"pvalue": 0.001}, "Wrong"),
        ({"n_expected": 2.0}, "Cannot tell"),
        ({"smallest_possible_pvalue": 0.25}, "Cannot tell"),
    ],
)
def test_the_decision_in_a_word(fields, word):
    assert answer_of(**fields).word.text == word


def test_the_data_are_not_named_twice():
    answer = answer_of(subject=Subject(source="a.csv", path="folder/a.csv", event="died = 1"))
    line = '2,400 observations, event "died = 1" (504, 21.0 %)'
    assert answer.about("a.csv") == line
    assert answer.about("Risk of death") == f"a.csv: {line}"
    unnamed = replace(answer, verdict=replace(answer.verdict, subject=Subject(source="these data")))
    assert unnamed.about("Risk of death") == "2,400 observations, events (504, 21.0 %)"


def test_conditions_name_the_groups_and_no_functions():
    assert dict(answer_of(n_groups=30).conditions)["Independence"].startswith("The 30 groups are independent")
    assert "must be named as groups" in dict(answer_of().conditions)["Independence"]


def test_a_lead_is_a_condition_and_correlated_residuals_are_a_caution():
    answer = replace(answer_of(), lead="7 days")
    assert "less than 7 days apart may depend on each other" in dict(answer.conditions)["Independence"]
    named = answer_of(cautions=(Note("C209", "Residuals are correlated: `lead` takes that into account."),))
    assert dict(named.conditions)["Caution"] == "Residuals are correlated: lead takes that into account."


def test_a_model_knows_its_event_its_classes_and_its_subgroups():
    prob = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    frame = pd.DataFrame(prob, columns=["cat", "dog", "eel"])
    levels = {"site": {"site=a": np.array([True, False])}, "age": {"age 1 to 2": np.array([True, True])}}
    model = Model("", ["dog", "cat"], frame, DESIGN, levels=levels)
    assert model.class_names == ["cat", "dog", "eel"]
    assert sorted(model.event.event) == [0.5, 0.8]  # the confidence
    assert list(model.members) == ["site=a", "age 1 to 2"]
    two = Model("", [0, 1], [0.3, 0.6], DESIGN)
    assert not two.has_classes
    assert two.event.event.tolist() == [0.3, 0.6]
