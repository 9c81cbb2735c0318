"""`multilabel_table`: each label is tested as an event, all together under any dependence of labels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier

import caltest as ct
from caltest.resampling import correct_pvalues
from caltest.results import CalibrationWarning
from tests.hypothesis_tests.problems import STANDARD_ERRORS
from tests.reference.cases import mostly_nightly

FAST = {"n_resamples": 199, "rng": 0}


def several(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three labels, of which the second is more frequent than predicted."""
    rng = np.random.default_rng(seed)
    prob = rng.beta(2, 4, (n, 3))
    return (rng.random((n, 3)) < prob + np.array([0, 0.15, 0])).astype(float), prob


def of_events(table) -> list[tuple[float, float]]:
    return [(test.statistic, test.pvalue) for test in table]


def test_a_label_is_tested_as_an_event_of_two_outcomes():
    label, prob = several()
    found = ct.multilabel_table(label, prob, **FAST)
    alone = [ct.calibration_table(label[:, k].astype(int), prob[:, k], **FAST)[0] for k in range(3)]
    assert of_events(found) == of_events(alone)
    assert found.pvalue == min(1, 3 * min(test.pvalue for test in alone))
    assert found.pvalue_adjusted.tolist() == correct_pvalues([test.pvalue for test in alone]).tolist()
    one = ct.multilabel_table(label[:, [1]], prob[:, [1]], **FAST)
    assert (one.pvalue, one.decision) == (alone[1].pvalue, alone[1].decision)
    exact = ct.multilabel_table(label, prob, statistic=ct.ECE(ct.EqualWidth(4)))
    assert {test.method for test in exact} == {"exact"}


@pytest.mark.slow(few_draws=True)
def test_labels_that_are_known_later_are_tested_as_events_in_time():
    """In any order of rows, with the times of the index, and where a label is known for some of the times."""
    label, prob = several()
    day, order = pd.date_range("2024-01-01", periods=300), np.random.default_rng(1).permutation(300)
    found = ct.multilabel_table(label[order], prob[order], time=day[order], lead=7, **FAST)
    for k in range(3):
        alone = ct.calibration_table(label[:, k].astype(int), prob[:, k], time=day, lead="7D", **FAST)[0]
        assert found[k].pvalue == alone.pvalue, k
    names = ["cat", "dog", "eel"]
    frames = (pd.DataFrame(values, index=day, columns=names) for values in (label, prob))
    assert ct.multilabel_table(*frames, lead=7, **FAST).pvalue == found.pvalue
    label[::3, 0] = np.nan
    known = np.flatnonzero(np.isfinite(label[:, 0]))
    some = ct.multilabel_table(label, prob, time=day, lead=7, **FAST)[0]
    alone = ct.calibration_table(label[known, 0].astype(int), prob[known, 0], time=day[known], lead="7D", **FAST)[0]
    assert some.pvalue == alone.pvalue
    assert "or more apart have independent errors" in " ".join(str(found).split())
    with pytest.raises(ValueError, match="`lead` needs `time`"):
        ct.multilabel_table(label, prob, lead=7, **FAST)


def test_it_says_which_label_is_wrong_and_how():
    label, prob = several()
    names = ["cat", "dog", "eel"]
    table = ct.multilabel_table(pd.DataFrame(label, columns=names), pd.DataFrame(prob, columns=names), **FAST)
    averages = f"{100 * prob[:, 1].mean():.1f} % predicted, {100 * label[:, 1].mean():.1f} % observed"
    first = f'Predicted probabilities of "dog" are too low: {averages}.'
    assert table.conclusion.startswith(f"{first} Calibration of the labels is rejected at the 5 % level (global p = ")
    assert table.conclusion.endswith("1 of 3 labels is rejected after Holm's correction: dog.")
    assert table.directions == (None, "too low", None)
    assert table.verdict.findings[0].kind == "too low"
    frame = table.to_frame()
    assert frame["label"].tolist() == names
    np.testing.assert_allclose(frame["observed_expected"], label.sum(axis=0) / prob.sum(axis=0))
    assert (frame["ratio_low"][1] > 1, frame["l2_low"][1] > 0) == (True, True)
    content = table.to_dict()
    assert [one["label"] for one in content["tests"]] == names
    assert "however the labels of an observation depend on each other" in " ".join(str(table).split())


def test_permuted_columns_change_nothing_but_their_order():
    label, prob = several()
    found, other = ct.multilabel_table(label, prob, **FAST), ct.multilabel_table(label[:, ::-1], prob[:, ::-1], **FAST)
    assert of_events(found) == of_events(other)[::-1]
    assert found.pvalue == other.pvalue


def test_the_complement_of_a_label_has_the_contrary_error():
    label, prob = several()
    found, other = ct.multilabel_table(label, prob, **FAST), ct.multilabel_table(1 - label, 1 - prob, **FAST)
    assert found.directions[1] == "too low"
    assert other.directions[1] == "too high"
    for one, mirrored in zip(found, other, strict=True):  # components stay the same; labels are drawn by other numbers
        values = [[part.statistic for part in test.components] for test in (one, mirrored)]
        np.testing.assert_allclose(*values, rtol=1e-9)


def test_columns_of_frames_are_matched_by_name():
    label, prob = several()
    expected = ct.multilabel_table(label, prob, **FAST)
    own = pd.DataFrame(label, columns=["y_cat", "y_dog", "y_eel"])
    given = pd.DataFrame(prob, columns=["p_cat", "p_dog", "p_eel"])[["p_eel", "p_cat", "p_dog"]]
    found = ct.multilabel_table(own, given, **FAST)
    assert of_events(found) == of_events(expected)
    assert found.names == ("y_cat", "y_dog", "y_eel")
    with pytest.raises(ValueError, match=r"must have the same names, got y_cat.* and other"):
        ct.multilabel_table(own, given.rename(columns={"p_cat": "other"})[["other", "p_eel", "p_dog"]])
    with pytest.raises(ValueError, match="must have the same index"):
        ct.multilabel_table(own, given[::-1])


@pytest.mark.slow(few_draws=True)
def test_a_label_is_tested_where_it_is_known():
    label, prob = several()
    known = np.ones(label.shape, dtype=bool)
    known[:100, 1] = known[50, 2] = False
    some = np.where(known, label, np.nan)
    group = np.arange(300) % 60
    weight = np.random.default_rng(1).exponential(size=300)
    found = ct.multilabel_table(some, np.where(known, prob, np.nan), groups=group, sample_weight=weight, **FAST)
    for k, test in enumerate(found):
        rows = known[:, k]
        alone = ct.calibration_table(
            label[rows, k].astype(int), prob[rows, k], groups=group[rows], sample_weight=weight[rows], **FAST
        )
        assert (test.statistic, test.pvalue, test.n_samples) == (alone[0].statistic, alone[0].pvalue, rows.sum())
    (note,) = (note for note in found.notes if note.code == "C210")
    assert "2 of 3 labels are not known for all 300 observations (fewest: '1', 200)." in note.text
    with pytest.raises(ValueError, match=r"`y_prob` must lie in \[0, 1\], got nan in row 250 of the label '0'\."):
        ct.multilabel_table(some, np.where(np.arange(300)[:, None] == 250, np.nan, prob))
    masked = np.ma.masked_array(label, ~known)
    assert ct.multilabel_table(masked, prob, **FAST).pvalue == ct.multilabel_table(some, prob, **FAST).pvalue


def test_observations_of_weight_0_do_not_count():
    label, prob = several()
    weight = np.append(np.ones(200), np.zeros(100))
    assert ct.multilabel_table(label, prob, sample_weight=weight, **FAST).n_samples == 200
    label[:200, 1] = np.nan
    with pytest.raises(ValueError, match=r"`sample_weight` must be positive .*, got 0 for all of the label '1'"):
        ct.multilabel_table(label, prob, sample_weight=weight)


def test_an_impossible_label_has_its_row():
    label, prob = several()
    label[7, 0], prob[7, 0], label[3, 0] = 1, 0.0, np.nan
    assert ct.multilabel_table(label, prob, **FAST)[0].impossible_samples.tolist() == [7]


def test_classes_are_recognised():
    label, prob = several()
    prob = prob / prob.sum(axis=1, keepdims=True)
    with pytest.warns(CalibrationWarning, match=r"they are classes\. `calibration_table` tests classes together"):
        table = ct.multilabel_table(np.eye(3)[label.argmax(axis=1)], prob, **FAST)
    assert [note.code for note in table.notes] == ["C211"]


def test_predictions_of_a_forest_and_what_is_refused():
    x, y = make_multilabel_classification(200, n_classes=3, random_state=0)
    given = RandomForestClassifier(20, random_state=0).fit(x[:100], y[:100]).predict_proba(x[100:])
    expected = ct.multilabel_table(y[100:], np.column_stack([one[:, 1] for one in given]), **FAST)
    assert of_events(ct.multilabel_table(y[100:], given, **FAST)) == of_events(expected)
    label, prob = several()
    for wrong, match in (
        ((label[:, 0], prob), r"must have shape \(n_samples, n_labels\).*`calibration_table`"),
        ((label, prob[:, :2]), r"`y_prob` must have the shape of `y_true`, \(300, 3\), got \(300, 2\)"),
        ((2 * label, prob), r"`y_true` must hold 0, 1, and NaN .*, got 2 in row \d+ of the label '\d'"),
        ((label, 100 * prob), r"`y_prob` must lie in \[0, 1\], got .* in row 0 of the label '0'; .* y_prob / 100"),
        ((label, np.log(prob)), r"`y_prob` must lie in \[0, 1\], .*; if these are logits, pass input=\"logits\""),
        ((label, prob > 0.5), "`y_prob` must hold probabilities as floats, got bool values"),
        ((np.where([True, False, False], np.nan, label), prob), "must have the label '0' of some observation"),
        ((label.astype(str).astype(object) + "x", prob), "`y_true` must hold numbers"),
    ):
        with pytest.raises(ValueError, match=match):
            ct.multilabel_table(*wrong)
    with pytest.raises(ValueError, match="`correction` must be one of"):
        ct.multilabel_table(label, prob, correction="fdr_bh")


def test_corrections_for_independent_labels_have_independent_draws():
    label, prob = several()
    twice = np.column_stack([label[:, 0]] * 2), np.column_stack([prob[:, 0]] * 2)
    one, other = ct.multilabel_table(*twice, correction="holm-sidak", **FAST)
    assert one.pvalue != other.pvalue
    found = ct.multilabel_table(*twice, correction="hommel", **FAST)
    assert found.pvalue == found.pvalue_adjusted.min()


def shocks(rng: np.random.Generator, prob: np.ndarray, share: float) -> np.ndarray:
    """Labels of an observation that share this part of a shock: none are independent, 1 are copies."""
    shock = share**0.5 * rng.normal(size=(len(prob), 1)) + (1 - share) ** 0.5 * rng.normal(size=prob.shape)
    return (norm.cdf(shock) < prob).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("share", mostly_nightly([0.0, 0.6]))
def test_level_under_dependence_of_labels(share):
    """Calibrated labels, 3 and rare, are rejected in at most 5 % of data sets however they depend on each other."""
    rng, n_sets = np.random.default_rng(5), 100
    rejected = 0
    for _ in range(n_sets):
        prob = np.repeat(rng.beta(0.4, 6, (100, 1)), 3, axis=1)
        rejected += ct.multilabel_table(shocks(rng, prob, share), prob, n_resamples=79, rng=rng).rejected
    assert rejected <= binom.ppf(norm.cdf(STANDARD_ERRORS), n_sets, 0.05)
