"""What is said of several models: the winners first, of many models no more than fits, and nothing that contradicts."""

from itertools import combinations

import pytest

from caltest.results import ConfidenceInterval, ModelDifference, ModelsVerdict
from caltest.results._models_verdict import in_points, points_apart, typical_error


def verdict(errors, shown, *, pvalue=0.01, **further):
    """The verdict of models with these errors, of which pairs with these names are shown to differ."""
    numbers = {
        name: typical_error(name, size, ConfidenceInterval(low, high)) for name, (size, low, high) in errors.items()
    }
    pairs = [
        ModelDifference(
            kind="better calibrated" if pair in shown else "not told apart",
            models=pair,
            errors=tuple(numbers[name] for name in pair),
            difference=points_apart(1.0, ConfidenceInterval(0.5 if pair in shown else -1.0, 1.5)),
            pvalue=0.01 if pair in shown else 0.4,
            n=100,
        )
        for pair in combinations(errors, 2)
    ]
    common = {"alpha": 0.05, "n_samples": 100, "calibration": {}, "p_of_calibration": {}, **further}
    return ModelsVerdict.of_pairs(pairs, pvalue=pvalue, numbers=tuple(numbers.values()), names=tuple(errors), **common)


THREE = {"a": (0.0, 0.0, 0.02), "b": (0.03, 0.01, 0.05), "c": (0.08, 0.06, 0.1)}
MANY = {f"m{k}": (0.01 * k, 0.01 * k - 0.005, 0.01 * k + 0.005) for k in range(1, 8)}


def test_models_that_are_better_than_the_same_ones_stand_together():
    found = verdict(THREE, {("a", "c"), ("b", "c")})
    assert found.sentences(brief=True) == [
        "a and b are better calibrated than c: their typical errors are at most 2.0 and 3.0 points, and that of c is "
        "8.0 points (largest adjusted p = 0.01).",
        "a and b cannot be told apart in calibration (adjusted p = 0.4).",
    ]
    assert found.size.estimate == 1.0


def test_the_best_of_many_models_is_named_and_the_others_are_counted():
    every = set(combinations(MANY, 2))
    first, second = verdict(MANY, every).sentences(brief=True)
    assert first.startswith("m1 is better calibrated than all 6 others: its typical error is 1.0 points, and those ")
    assert first.endswith("of the others are between 2.0 and 7.0 points (largest adjusted p = 0.01).")
    assert second == "21 of the 21 pairs differ in calibration."
    none = verdict(MANY, every - {("m1", "m2")}).sentences(brief=True)[0]
    assert none == "No model is shown to be better calibrated than m1 and m2: 20 of the 21 pairs differ in calibration."


def test_no_model_is_better():
    found = verdict(THREE, set(), pvalue=0.4)
    assert found.sentences(brief=True)[0] == (
        "No model is shown to be better calibrated than another: the typical errors are at most 2.0 (a), 3.0 (b) and "
        "8.0 (c) points (smallest adjusted p = 0.4)."
    )
    assert "between 1.0 and 7.0 points" in verdict(MANY, set(), pvalue=0.4).conclusion


def test_errors_that_would_contradict_the_sentence_are_left_out():
    near = {"a": (0.0211, 0.01, 0.03), "b": (0.0214, 0.01, 0.03)}
    assert "typical error is 2.11 points, and that of b is 2.14 points" in verdict(near, {("a", "b")}).conclusion
    unknown = {"a": (0.0, 0.0, 0.05), "b": (0.04, 0.02, 0.06)}
    assert verdict(unknown, {("a", "b")}).sentences()[0] == "a is better calibrated than b (adjusted p = 0.01)."


@pytest.mark.parametrize(
    ("decisions", "words"),
    [
        (("rejected", "not rejected", "undecidable"), "rejected for a, but not for b. Whether c is calibrated cannot"),
        (("not rejected", "not rejected", "undecidable"), "No miscalibration is found in a and b. This does not prove"),
        (("undecidable",) * 3, "Whether a, b and c are calibrated cannot be told: too few."),
    ],
)
def test_what_cannot_be_told_is_not_called_not_rejected(decisions, words):
    known = {"calibration": dict(zip(THREE, decisions, strict=True)), "p_of_calibration": dict.fromkeys(THREE, 0.5)}
    found = verdict(THREE, set(), pvalue=0.4, unknown="too few", **known)
    assert words in found.conclusion
    assert "not rejected" not in found.conclusion


def test_an_error_that_may_be_0_has_an_upper_end_only():
    assert in_points(typical_error("a", 0.0, ConfidenceInterval(0.0, 0.07))) == "at most 7.0"
    assert in_points(typical_error("a", 0.0)) == "about 0"
    assert typical_error("a", 0.0, ConfidenceInterval(0.0, 1.0)).shown == "not known"
