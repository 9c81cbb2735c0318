"""Calibration within subgroups: exact p-values on shared draws, one by one and jointly."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.predictions._sample import make_sample
from tests.reference import naive
from tests.reference.examples import draw_labels

PARTS = [ct.ECE(ct.EqualWidth(3)), ct.TemperatureScore()]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([0.7, 1, 1.3], 120)
    return draw_labels(y_prob, rng), y_prob, rng.choice(["a", "b", "c"], 120)


def drawn_labels(y_true, y_prob, n_resamples, seed):
    """The labels of every draw, in the caller's order."""
    base = make_sample(y_true, y_prob)
    drawn = np.concatenate([block for _, block in ct.Consistency().draws(n_resamples, seed).blocks(base)])
    in_order = np.empty_like(drawn)
    in_order[:, base.row] = drawn
    return in_order


@pytest.mark.parametrize("lens", [None, ct.Confidence(), ct.ClassWise(1)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_equals_the_naive_twin(problem, lens, n_classes):
    """Every statistic of every subgroup of every draw, by loops; ranks of ranks for the joint p-value."""
    y_true, y_prob, subgroup = problem
    if n_classes == 2:
        y_true, y_prob = np.minimum(y_true, 1), np.column_stack([y_prob[:, 0], 1 - y_prob[:, 0]])
    statistic = ct.Omnibus(tuple(PARTS))
    tests = ct.subgroup_tests(
        y_true, y_prob, subgroup=subgroup, lens=lens, statistic=statistic, n_resamples=24, rng=3
    )  # fmt: skip
    data_sets = [y_true, *drawn_labels(y_true, y_prob, 24, 3)]
    joint = []
    assert tests.subgroups == ("a", "b", "c")
    for name, row in zip(tests.subgroups, tests, strict=True):
        inside = subgroup == name
        looked = [naive.look(lens or ct.Canonical(), y_prob[inside], y[inside]) for y in data_sets]
        values = [[naive.evaluate(part, prob, outcome) for prob, outcome in looked] for part in PARTS]
        for component, expected in zip(row.components, values, strict=True):
            assert component.statistic == pytest.approx(expected[0], rel=1e-9)
            np.testing.assert_allclose(component.null.values, expected[1:], rtol=1e-9, atol=1e-12)
        ranked = naive.combine_pvalues([naive.tail_pvalues(several) for several in values])
        assert row.pvalue == pytest.approx(ranked[0])
        joint.append(ranked)
    assert tests.pvalue == pytest.approx(naive.combine_pvalues(joint)[0])


def test_a_single_subgroup_is_the_test_itself(problem):
    y_true, y_prob, _ = problem
    tests = ct.subgroup_tests(y_true, y_prob, subgroup=["all"] * 120, n_resamples=199, rng=7)
    alone = ct.calibration_test(y_true, y_prob, n_resamples=199, rng=7)
    assert tests.subgroups == ("all",)
    assert tuple(tests.rows[0]) == tuple(alone)
    assert tests.pvalue == alone.pvalue == tests.pvalue_corrected[0]


def test_correction_over_subgroups(problem):
    y_true, y_prob, subgroup = problem
    for correction in ("holm", "bonferroni", "holm-sidak", "hommel"):
        tests = ct.subgroup_tests(
            y_true, y_prob, subgroup=subgroup, statistic=PARTS[1], correction=correction, n_resamples=49, rng=0
        )
        with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
            expected = multipletests([row.pvalue for row in tests], method=correction)[1]
        np.testing.assert_allclose(tests.pvalue_corrected, expected)
        assert tests.to_dict()["correction"] == correction


def test_labels_of_any_type_give_the_same_tests(problem):
    y_true, y_prob, subgroup = problem
    number = np.unique(subgroup, return_inverse=True)[1]
    options = {"statistic": PARTS[1], "n_resamples": 19, "rng": 0}
    expected = ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, **options)
    shuffled = np.random.default_rng(1).permutation(120)
    kinds = [
        list(subgroup), tuple(subgroup), subgroup.astype(object), number, number - 0.5, pd.Series(subgroup),
        pd.Series(subgroup, index=shuffled), pd.Categorical(subgroup, categories=["a", "b", "c", "never"]),
        pd.Series(subgroup, dtype="category"), pl.Series(subgroup.tolist()), subgroup[:, None], pd.Index(subgroup),
        pd.DataFrame({"site": subgroup}), pl.DataFrame({"site": subgroup.tolist()}), list(subgroup[:, None]),
        pd.to_datetime(pd.Series(number), unit="D"), np.datetime64("2020-01-01") + number,
    ]  # fmt: skip
    for kind in kinds:
        tests = ct.subgroup_tests(y_true, y_prob, subgroup=kind, **options)
        assert [row.pvalue for row in tests] == [row.pvalue for row in expected], type(kind)
        assert tests.pvalue == expected.pvalue
    assert ct.subgroup_tests(y_true, y_prob, subgroup=kinds[12], **options).subgroups == ("site=a", "site=b", "site=c")
    reverse = pd.Categorical(subgroup, categories=["c", "b", "a"])
    assert ct.subgroup_tests(y_true, y_prob, subgroup=reverse, **options).subgroups == ("c", "b", "a")
    flags = ct.subgroup_tests(y_true, y_prob, subgroup=subgroup == "a", **options)
    assert flags.subgroups == ("False", "True")
    assert flags.rows[1].pvalue == expected.rows[0].pvalue


def test_several_columns_are_overlapping_subgroups(problem):
    y_true, y_prob, subgroup = problem
    even = np.arange(120) % 2 == 0
    options = {"statistic": PARTS[1], "n_resamples": 49, "rng": 0}
    frame = pd.DataFrame({"site": subgroup, "even": even})
    both = ct.subgroup_tests(y_true, y_prob, subgroup=frame, **options)
    assert both.subgroups == ("site=a", "site=b", "site=c", "even=False", "even=True")
    apart = [ct.subgroup_tests(y_true, y_prob, subgroup=column, **options) for column in (subgroup, even)]
    assert [row.pvalue for row in both] == [row.pvalue for tests in apart for row in tests]
    ranks = [naive.tail_pvalues([row.statistic, *row.null_distribution]) for row in both]
    assert both.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0])
    array = np.column_stack([subgroup.astype(object), even])
    assert ct.subgroup_tests(y_true, y_prob, subgroup=array, **options).subgroups[0] == "0=a"
    with pytest.raises(ValueError, match="`correction` must be one of 'holm', 'bonferroni', got 'sidak'"):
        ct.subgroup_tests(y_true, y_prob, subgroup=frame, correction="sidak", **options)


def shifted(rng, site, n):
    p = rng.uniform(0.2, 0.8, n)
    return rng.random(n) < p + np.where(site == 0, 0.12, -0.12), p


def test_opposite_errors_are_invisible_together_and_found_apart():
    """Share of rejections at 0.05 over 40 data sets: the marginal test near its level, the joint one almost always."""
    rng = np.random.default_rng(2)
    site = np.arange(600) % 2
    marginal = joint = 0
    for i in range(40):
        y, p = shifted(rng, site, 600)
        marginal += ct.calibration_test(y, p, n_resamples=99, rng=i).pvalue <= 0.05
        joint += ct.subgroup_tests(y, p, subgroup=site, n_resamples=99, rng=i).pvalue <= 0.05
    assert marginal <= 12
    assert joint >= 36


def rejections(n_sets, rng):
    """How often the joint and the smallest corrected p-value (Holm: times their number) reject calibrated data at 0.05.

    Subgroups overlap, and one has two rows. With fewer draws no p-value, times six, could be as small.
    """
    n = 90
    prob = rng.dirichlet([0.5, 1, 1], n)
    subgroup = np.column_stack([np.arange(n) % 3, prob[:, 0] > 0.3])
    subgroup[:2, 0] = 7
    found = np.zeros(2, dtype=int)
    for i in range(n_sets):
        tests = ct.subgroup_tests(draw_labels(prob, rng), prob, subgroup=subgroup, n_resamples=199, rng=i)
        found += [tests.pvalue <= 0.05, len(tests.rows) * min(row.pvalue for row in tests) <= 0.05]
    return found


def test_level_joint_and_familywise():
    assert np.all(rejections(200, np.random.default_rng(3)) <= binom.ppf(1 - 1e-4, 200, 0.05))


@pytest.mark.slow
def test_level_joint_and_familywise_of_many_data_sets():
    joint, familywise = rejections(2000, np.random.default_rng(4))
    assert joint <= binom.ppf(1 - 1e-4, 2000, 0.05)
    assert joint >= binom.ppf(1e-4, 2000, 0.03)  # exact, not conservative: ties and the grid cost little
    assert 0 < familywise <= binom.ppf(1 - 1e-4, 2000, 0.05)


def test_every_statistic_runs_on_small_subgroups(any_default_statistic):
    """Subgroups of 1, 2 and 12 rows: p-values are valid numbers, whatever the statistic."""
    rng = np.random.default_rng(5)
    p = rng.random(15)
    subgroup = np.repeat(["one", "two", "many"], [1, 2, 12])
    tests = ct.subgroup_tests(
        rng.random(15) < p, p, subgroup=subgroup, statistic=any_default_statistic, n_resamples=19, rng=0
    )
    assert [row.n_samples for row in tests] == [12, 1, 2]
    assert all(0.05 <= row.pvalue <= 1 for row in tests)
    assert 0.05 <= tests.pvalue <= 1


def test_an_excluded_label_belongs_to_its_subgroup_and_row():
    p = np.append(np.full(40, 0.4), 0.0)
    y = np.append(np.arange(40) % 5 < 2, True)
    tests = ct.subgroup_tests(y, p, subgroup=np.arange(41) % 2, n_resamples=99, rng=0)
    assert tests.rows[0].impossible_rows.tolist() == [40]
    assert tests.rows[0].pvalue == tests.pvalue == 0.01
    assert tests.rows[1].impossible_rows.size == 0
    assert any(note.startswith("0: 1 label(s)") and "(row 40)" in note for note in tests.notes)


def test_workers_change_nothing(problem):
    y_true, y_prob, subgroup = problem
    one, two = (ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, n_resamples=300, workers=k, rng=1) for k in (1, 2))
    assert str(one) == str(two)


def test_prints_and_turns_into_plain_objects():
    y, p = shifted(np.random.default_rng(6), np.arange(400) % 2, 400)
    tests = ct.subgroup_tests(y, p, subgroup=np.array(["east", "west"])[np.arange(400) % 2], n_resamples=199, rng=0)
    text = str(tests)
    for part in ("east", "west", "noise floor", "corrected", "joint p-value", "Omnibus()", "rejected at 5%"):
        assert part in text
    content = json.loads(json.dumps(tests.to_dict(), allow_nan=False))
    assert [row["subgroup"] for row in content["rows"]] == ["east", "west"]
    assert content["pvalue"] == tests.pvalue
    frame = tests.to_frame()
    assert frame["subgroup"].tolist() == ["east", "west"]
    assert frame["n_samples"].tolist() == [200, 200]
    assert {"statistic", "noise_floor", "pvalue", "pvalue_corrected", "direction"} <= set(frame)
    assert "<pre>" in tests._repr_html_()
    few = ct.subgroup_tests(y, p, subgroup=np.arange(400) % 2, n_resamples=9, rng=0)
    assert any("9 draws are too few" in note for note in few.notes)
    fine = ct.subgroup_tests(p < 0.5, np.full(400, 0.5), subgroup=np.zeros(400), statistic=PARTS[0], n_resamples=19)
    assert "No evidence against calibration within subgroups" in fine.conclusion


@pytest.mark.parametrize(
    ("subgroup", "message"),
    [
        (["a"] * 119, "`subgroup` must have a label for each of the 120 rows, got 119"),
        ("a", r"`subgroup` must have shape \(n_samples,\) or \(n_samples, n_columns\), .* got \(\)"),
        (np.zeros((120, 1, 1)), r"`subgroup` must have shape .* got \(120, 1, 1\)"),
        (np.ma.masked_equal(np.arange(120), 3), "`subgroup` must have shape .* without masked values"),
        (["a", None] * 60, "`subgroup` must have a label in every row, got None in row 1"),
        ([np.nan, "a"] * 60, "`subgroup` must have a label in every row, got nan in row 0"),
        (np.append(np.ones(119), np.nan), r"`subgroup` must have a label in every row, got .*nan.* in row 119"),
        (
            pd.Series(["a", pd.NA] * 60, index=range(120, 0, -1)),
            r"`subgroup` must have a label .* in row 1\.",
        ),
        (
            pd.DataFrame({"u": ["a"] * 120, "v": [None, "b"] * 60}),
            r"`subgroup` must have a label .* in row 0\.",
        ),
        (
            pd.DataFrame(np.ones((120, 2)), columns=["u", "u"]),
            "`subgroup` must have columns of different names, got ",
        ),
        (pd.DataFrame(index=range(120)), "`subgroup` must have at least one column, got none"),
        ([{"a": 1}] * 120, "`subgroup` must hold labels such as strings or numbers: "),
    ],
)
def test_bad_subgroups(problem, subgroup, message):
    with pytest.raises(ValueError, match=message):
        ct.subgroup_tests(*problem[:2], subgroup=subgroup, n_resamples=9)


def test_bad_arguments(problem):
    y_true, y_prob, subgroup = problem
    with pytest.raises(ValueError, match=r"`correction` must be one of .* got 'fdr_bh'"):
        ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, correction="fdr_bh")
    with pytest.raises(ValueError, match="`statistic` must be a Statistic"):
        ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, statistic="ece")


def test_subgroups_made_of_labels_are_seen():
    rng = np.random.default_rng(0)
    y_prob = rng.random(60)
    y_true = rng.random(60) < y_prob
    with pytest.warns(ct.CalibrationWarning, match="if `subgroup` was made of labels, no p-value is valid"):
        ct.subgroup_tests(y_true, y_prob, subgroup=y_true, n_resamples=19, rng=0)
    ct.subgroup_tests(y_true, y_prob, subgroup=np.arange(60), n_resamples=19, rng=0)  # rows of their own
