"""Results of tests: unpacking, derived numbers, decisions, the size of the miscalibration."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import caltest as ct
from caltest.hypothesis_tests import ClassicalTestResult
from caltest.hypothesis_tests._evidence import Evidence
from caltest.predictions._sample import make_sample
from caltest.results import ComponentResult, Note, TestResult
from caltest.results._description import percent
from tests.hypothesis_tests.problems import words
from tests.results.examples import example, problem


@pytest.fixture(scope="module")
def result():
    return example(TestResult)


def test_unpacks(result):
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)


def test_derived_numbers_are_attributes():
    result = example(ClassicalTestResult)
    for name, value in result.derived.items():
        assert getattr(result, name) is value
        assert name in dir(result)
    assert result.to_dict()["derived"]["slope"] == result.slope
    for thing in (result, example(TestResult)):
        with pytest.raises(AttributeError, match=f"'{type(thing).__name__}' object has no attribute 'slop'"):
            thing.slop  # noqa: B018


def test_noise_is_that_of_the_null_distribution(result):
    for part in (result, *result.components):
        values = np.sort(part.null_distribution)
        assert part.noise_floor == part.null_distribution.mean()
        assert part.noise_interval == tuple(np.quantile(values, [0.05, 0.95], method="inverted_cdf"))
    computed = ct.calibration_test(*problem(n_classes=2), statistic=ct.KS(), method="asymptotic")
    assert (computed.null_distribution, computed.n_resamples) == (None, 0)
    low, high = computed.noise_interval
    assert 0 < low < computed.noise_floor < high


def test_null_distributions_are_left_out_of_plain_objects(result):
    content = result.to_dict()
    assert "null" not in content
    assert all("null" not in part for part in content["components"])
    assert content["noise_interval"] == list(result.noise_interval)
    assert content["l2_error"]["estimate"] == result.l2_error.estimate


def test_decisions(result):
    for pvalue, alpha, rejected in [(0.05, 0.05, True), (0.051, 0.05, False), (0.1, 0.2, True), (3 * 0.1, 0.3, True)]:
        assert replace(result, pvalue=pvalue, alpha=alpha).rejected is rejected, (pvalue, alpha)
    not_rejected = replace(result, pvalue=0.2).conclusion
    assert not_rejected.startswith("No miscalibration is found: ")
    assert not_rejected.endswith("This does not prove that the model is calibrated.")
    unknown = replace(result, pvalue=0.01).conclusion
    assert unknown.startswith("Something is wrong with these predictions, but these data do not show what (")
    assert unknown.endswith("Calibration is rejected at the 5 % level (p = 0.01).")


def test_the_smallest_pvalue_is_called_so(result):
    smallest = 1 / (result.n_resamples + 1)
    said = f", the smallest p-value possible with {result.n_resamples} draws)"
    assert said in replace(result, pvalue=smallest).conclusion
    assert said not in replace(result, pvalue=2 * smallest).conclusion


def test_l2_error_is_computed_once_and_kept(result):
    sample = make_sample(*problem(), lens=ct.Canonical())
    asked = Evidence.of(sample, ct.Canonical(), None)
    measured = replace(result, _evidence=asked)
    assert "interval" not in vars(asked)
    assert measured.l2_error.conclusion in words(measured)
    assert measured.l2_error is measured.l2_error is vars(asked)["interval"]
    assert measured.l2_error.estimate == ct.l2_interval(*problem()).estimate
    without = replace(result, _evidence=None)
    assert without.l2_error is None
    assert "l2 calibration error" not in str(without)
    assert without.to_dict()["l2_error"] is None


@pytest.mark.slow(few_draws=True)
def test_a_pickle_holds_the_l2_error_but_not_the_predictions():
    y_true, y_prob = problem(5000)
    result = ct.calibration_test(y_true, y_prob, n_resamples=19, rng=0)
    content = pickle.dumps(result)
    assert len(content) < y_prob.nbytes / 4
    back = pickle.loads(content)
    assert back.l2_error.estimate == result.l2_error.estimate
    assert replace(back, alpha=0.1).l2_error.estimate == result.l2_error.estimate
    assert copy.copy(result).l2_error.estimate == result.l2_error.estimate


def test_conditions_and_notes_are_printed(result):
    noted = replace(result, notes=(Note("C201", "A caution."),), conditions=(Note("C101", "all is well."),))
    assert "Note: A caution. [C201]" in words(noted)
    assert "Valid if all is well. [C101: docs/notes.md]" in words(noted)


def test_components_print_themselves():
    part = example(ComponentResult)
    text = words(part)
    assert text.startswith("ECE() ")
    for number in (part.statistic, part.noise_floor, part.pvalue):
        assert f"{number:.4g}" in text


def test_extend_keeps_everything(result):
    extended = result.extend(TestResult)
    assert extended is not result
    assert extended.to_dict() == result.to_dict()


def test_pytest_does_not_collect_results():
    assert TestResult.__test__ is False


def test_percent():
    assert [percent(share) for share in (0.05, 0.001, 1 / 3)] == ["5 %", "0.1 %", "33.33 %"]


def test_one_observation_is_singular():
    result = ct.calibration_test([1], [0.5], n_resamples=19, rng=0)
    assert "1 observation," in str(result)
    assert "1 observations" not in str(result)
