"""Calibration within subgroups: exact p-values on shared draws, one by one and jointly."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.results import CalibrationWarning
from tests.hypothesis_tests.problems import codes, draws_in_order, words
from tests.reference import naive
from tests.reference.cases import mostly_nightly
from tests.reference.examples import default_statistics, draw_labels
from tests.results.printed import printed

PARTS = (ct.ECE(ct.EqualWidth(3)), ct.TemperatureScore())
FEW = pytest.mark.filterwarnings("ignore:With .* draws and .* tests:caltest.results.CalibrationWarning")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([0.7, 1, 1.3], 120)
    return draw_labels(y_prob, rng), y_prob, rng.choice(["a", "b", "c"], 120)


def opposite(rng, n):
    """Labels of a model that is too low by 0.12 on even observations and too high by as much on odd ones."""
    p, site = rng.uniform(0.2, 0.8, n), np.array(["east", "west"])[np.arange(n) % 2]
    return rng.random(n) < p + np.where(site == "east", 0.12, -0.12), p, site


# The p-values.


@pytest.mark.slow(few_draws=True)
@FEW
def test_equals_the_naive_twin(problem):
    """Every statistic of every subgroup of every draw, by loops; ranks of ranks for the global p-value."""
    labels, prob, subgroup = problem
    two = np.minimum(labels, 1), np.column_stack([prob[:, 0], 1 - prob[:, 0]])
    for y_true, y_prob in (two, (labels, prob)):
        data_sets = [y_true, *draws_in_order(y_true, y_prob, 24, seed=3)]
        for lens in (None, ct.Confidence(), ct.ClassWise(1)):
            case = f"{y_prob.shape[1]} classes, {lens}"
            options = {"lens": lens, "statistic": ct.Omnibus(PARTS), "n_resamples": 24, "rng": 3}
            tests = ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, **options)
            joint = []
            assert tests.subgroups == tests.labels == ("a", "b", "c"), case
            for name, test in zip(tests.subgroups, tests, strict=True):
                inside = subgroup == name
                looked = [naive.look(lens or ct.Canonical(), y_prob[inside], y[inside]) for y in data_sets]
                values = [[naive.evaluate(part, p, outcome) for p, outcome in looked] for part in PARTS]
                for component, expected in zip(test.components, values, strict=True):
                    assert component.statistic == pytest.approx(expected[0], rel=1e-9), (case, name)
                    np.testing.assert_allclose(
                        component.null_distribution, expected[1:], rtol=1e-9, atol=1e-12, err_msg=f"{case}, {name}"
                    )
                ranked = naive.combine_pvalues([naive.tail_pvalues(several) for several in values])
                assert test.pvalue == pytest.approx(ranked[0]), (case, name)
                joint.append(ranked)
            assert tests.pvalue == pytest.approx(naive.combine_pvalues(joint)[0]), case


def test_a_single_subgroup_is_the_test_itself(problem):
    y_true, y_prob, _ = problem
    tests = ct.subgroup_tests(y_true, y_prob, subgroup=["all"] * 120, n_resamples=199, rng=7)
    alone = ct.calibration_test(y_true, y_prob, n_resamples=199, rng=7)
    assert tests.subgroups == ("all",)
    assert tuple(tests[0]) == tuple(alone)
    assert tests.pvalue == alone.pvalue == tests.pvalue_adjusted[0]


@pytest.mark.slow
def test_correction_over_subgroups(problem):
    y_true, y_prob, subgroup = problem
    for correction in ("holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"):
        tests = ct.subgroup_tests(
            y_true, y_prob, subgroup=subgroup, statistic=PARTS[1], correction=correction, n_resamples=99, rng=0
        )
        with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
            expected = multipletests([test.pvalue for test in tests], method=correction)[1]
        np.testing.assert_allclose(tests.pvalue_adjusted, expected, err_msg=correction)
        assert tests.to_dict()["correction"] == correction
        assert f"after {correction.title()}'s correction" in words(tests)


@pytest.mark.slow(few_draws=True)
def test_opposite_errors_cancel_together_and_are_found_separately():
    """Share of rejections at 0.05 over 20 data sets: the marginal test near its level, the joint one almost always."""
    rng = np.random.default_rng(2)
    marginal = joint = 0
    for i in range(20):
        y, p, site = opposite(rng, 600)
        marginal += ct.calibration_test(y, p, n_resamples=99, rng=i).pvalue <= 0.05
        joint += ct.subgroup_tests(y, p, subgroup=site, n_resamples=99, rng=i).pvalue <= 0.05
    assert marginal <= 6
    assert joint >= 18


def rejections(n_sets, rng):
    """How often the joint and the smallest corrected p-value (Holm: times their number) reject calibrated data at 0.05.

    Subgroups overlap, and one has two observations. With fewer draws no p-value, times six, could be as small.
    """
    n = 90
    prob = rng.dirichlet([0.5, 1, 1], n)
    subgroup = np.column_stack([np.arange(n) % 3, prob[:, 0] > 0.3])
    subgroup[:2, 0] = 7
    found = np.zeros(2, dtype=int)
    for i in range(n_sets):
        tests = ct.subgroup_tests(draw_labels(prob, rng), prob, subgroup=subgroup, n_resamples=199, rng=i)
        found += [tests.pvalue <= 0.05, len(tests) * min(test.pvalue for test in tests) <= 0.05]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", mostly_nightly([60, 200]))
def test_level_joint_and_familywise(n_sets):
    assert np.all(rejections(n_sets, np.random.default_rng(3)) <= binom.ppf(1 - 1e-4, n_sets, 0.05))


@pytest.mark.release
def test_level_joint_and_familywise_of_many_data_sets():
    joint, familywise = rejections(2000, np.random.default_rng(4))
    assert joint <= binom.ppf(1 - 1e-4, 2000, 0.05)
    assert joint >= binom.ppf(1e-4, 2000, 0.03)  # exact, not conservative: ties and the grid cost little
    assert 0 < familywise <= binom.ppf(1 - 1e-4, 2000, 0.05)


@pytest.mark.slow(few_draws=True)
@FEW
def test_every_statistic_runs_on_small_subgroups():
    """Subgroups of 1, 2 and 12 observations: p-values are valid numbers, and the table can be printed."""
    rng = np.random.default_rng(5)
    p = rng.random(15)
    y, subgroup = rng.random(15) < p, np.repeat(["one", "two", "many"], [1, 2, 12])
    for statistic in default_statistics():
        tests = ct.subgroup_tests(y, p, subgroup=subgroup, statistic=statistic, n_resamples=19, rng=0)
        assert [test.n_samples for test in tests] == [12, 1, 2], str(statistic)
        assert all(0.05 <= test.pvalue <= 1 for test in tests), str(statistic)
        assert 0.05 <= tests.pvalue <= 1, str(statistic)
        assert all(name in str(tests) for name in tests.subgroups), str(statistic)
        json.dumps(tests.to_dict(), allow_nan=False)


def test_an_impossible_label_belongs_to_its_subgroup_and_observation():
    p = np.append(np.full(40, 0.4), 0.0)
    y = np.append(np.arange(40) % 5 < 2, True)
    tests = ct.subgroup_tests(y, p, subgroup=np.arange(41) % 2, n_resamples=99, rng=0)
    assert tests[0].impossible_samples.tolist() == [40]
    assert tests[0].pvalue == tests.pvalue == 0.01
    assert tests[1].impossible_samples.size == 0
    (note,) = [note for note in tests.all_notes if note.code == "C201"]
    assert note.text.startswith("0: 1 label (observation 40) had been given probability 0")
    assert str(note) in words(tests)


def test_threads_change_nothing_and_progress_is_reported(problem):
    y_true, y_prob, subgroup = problem
    options, calls = {"subgroup": subgroup, "n_resamples": 300, "rng": 1}, []
    one = ct.subgroup_tests(y_true, y_prob, **options)
    two = ct.subgroup_tests(
        y_true, y_prob, workers=2, progress=lambda done, total: calls.append((done, total)), **options
    )
    assert str(one) == str(two)
    assert calls[-1] == (300, 300)


# The subgroups.


@FEW
def test_labels_of_any_type_give_the_same_tests(problem):
    y_true, y_prob, subgroup = problem
    number = np.unique(subgroup, return_inverse=True)[1]
    options = {"statistic": PARTS[1], "n_resamples": 119, "rng": 0}
    expected = ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, **options)
    shuffled = np.random.default_rng(1).permutation(120)
    frame = pd.DataFrame({"site": subgroup})
    kinds = [
        list(subgroup), tuple(subgroup), subgroup.astype(object), number, number - 0.5, pd.Series(subgroup),
        pd.Series(subgroup, index=shuffled), pd.Categorical(subgroup, categories=["a", "b", "c", "never"]),
        pd.Series(subgroup, dtype="category"), pl.Series(subgroup.tolist()), subgroup[:, None], pd.Index(subgroup),
        frame, pl.DataFrame({"site": subgroup.tolist()}), list(subgroup[:, None]),
        pd.to_datetime(pd.Series(number), unit="D"), np.datetime64("2020-01-01") + number,
    ]  # fmt: skip
    for kind in kinds:
        tests = ct.subgroup_tests(y_true, y_prob, subgroup=kind, **options)
        assert [test.pvalue for test in tests] == [test.pvalue for test in expected], type(kind)
        assert tests.pvalue == expected.pvalue, type(kind)
    assert ct.subgroup_tests(y_true, y_prob, subgroup=frame, **options).subgroups == ("site=a", "site=b", "site=c")
    reverse = pd.Categorical(subgroup, categories=["c", "b", "a"])
    assert ct.subgroup_tests(y_true, y_prob, subgroup=reverse, **options).subgroups == ("c", "b", "a")
    booleans = ct.subgroup_tests(y_true, y_prob, subgroup=subgroup == "a", **options)
    assert booleans.subgroups == ("False", "True")
    assert booleans[1].pvalue == expected[0].pvalue


@FEW
def test_several_columns_are_overlapping_subgroups(problem):
    y_true, y_prob, subgroup = problem
    even = np.arange(120) % 2 == 0
    options = {"statistic": PARTS[1], "n_resamples": 49, "rng": 0}
    frame = pd.DataFrame({"site": subgroup, "even": even})
    both = ct.subgroup_tests(y_true, y_prob, subgroup=frame, **options)
    assert both.subgroups == ("site=a", "site=b", "site=c", "even=False", "even=True")
    single = [ct.subgroup_tests(y_true, y_prob, subgroup=column, **options) for column in (subgroup, even)]
    assert [test.pvalue for test in both] == [test.pvalue for tests in single for test in tests]
    ranks = [naive.tail_pvalues([test.statistic, *test.null_distribution]) for test in both]
    assert both.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0])
    array = np.column_stack([subgroup.astype(object), even])
    assert ct.subgroup_tests(y_true, y_prob, subgroup=array, **options).subgroups[0] == "0=a"
    with pytest.raises(ValueError, match="`correction` must be one of 'holm', 'bonferroni', got 'sidak'"):
        ct.subgroup_tests(y_true, y_prob, subgroup=frame, correction="sidak", **options)


def test_region(problem):
    """A region of the predictions behind the lens: the tests of the observations and of the subgroups inside."""
    y_true, y_prob, subgroup = problem
    for lens, inside in ((None, y_prob[:, 0] > 0.3), (ct.Confidence(), y_prob.max(axis=1) < 0.6)):
        options = {"lens": lens, "statistic": PARTS[0], "n_resamples": 999}
        region = (lambda p: p[:, 0] > 0.3) if lens is None else (lambda p: p[:, 1] < 0.6)
        named = np.where(inside, subgroup, "outside")
        found = ct.subgroup_tests(y_true, y_prob, subgroup=named, region=region, rng=0, **options)
        alone = ct.subgroup_tests(y_true[inside], y_prob[inside], subgroup=subgroup[inside], rng=1, **options)
        assert found.subgroups == alone.subgroups == ("a", "b", "c")
        for a, b in zip(found, alone, strict=True):
            assert (a.n_samples, a.statistic) == (b.n_samples, pytest.approx(b.statistic, rel=1e-12)), str(lens)
            assert abs(a.noise_floor - b.noise_floor) < 4 * np.sqrt((a.null.std**2 + b.null.std**2) / 999), str(lens)
        single = ct.subgroup_tests(y_true, y_prob, subgroup=["all"] * 120, region=region, rng=0, **options)
        test = ct.calibration_test(y_true, y_prob, region=region, rng=0, **options)
        assert single[0].statistic == pytest.approx(test.statistic, rel=1e-12), str(lens)
    with pytest.raises(ValueError, match="`region` must hold at least one observation, got none"):
        ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, region=lambda p: p[:, 0] > 2, n_resamples=9)


def test_subgroups_made_of_labels_are_noticed():
    rng = np.random.default_rng(0)
    y_prob = rng.random(60)
    y_true = rng.random(60) < y_prob
    with pytest.warns(CalibrationWarning, match="If `subgroup` was made from labels, no p-value is valid") as told:
        tests = ct.subgroup_tests(y_true, y_prob, subgroup=y_true, n_resamples=39, rng=0)
    assert [warning.filename for warning in told] == [__file__]
    assert codes(tests.notes) == ["C204"]
    assert str(tests.notes[0]) in words(tests)
    same = ct.subgroup_tests(np.ones(60), y_prob, subgroup=np.arange(60) % 2, n_resamples=39, rng=0)
    assert same.notes == (), "labels of one class only"


@FEW
def test_subgroups_of_one_observation_are_no_labels():
    rng = np.random.default_rng(0)
    y_prob = rng.random(60)
    tests = ct.subgroup_tests(rng.random(60) < y_prob, y_prob, subgroup=np.arange(60), n_resamples=19, rng=0)
    assert codes(tests.notes) == ["C205"]


# The result.


def test_printed():
    y, p, site = opposite(np.random.default_rng(6), 400)
    tests = ct.subgroup_tests(y, p, subgroup=site, n_resamples=199, rng=0)
    expected = """\
Calibration within 2 subgroups (Omnibus, whole prediction)
In the subgroup "east" predicted risks are too low: 49.9 % predicted, 61.0 %
observed. In the subgroup "west" predicted risks are too high: 51.3 % predicted,
38.5 % observed. Calibration within the subgroups is rejected at the 5 % level
(global p = 0.005). Both subgroups are rejected after Holm's correction: east
and west.

 subgroup    n  predicted  observed   observed / expected  p (Holm)
 west      200     51.3 %    38.5 %  0.75  (0.61 to 0.90)    0.0100  too high
 east      200     49.9 %    61.0 %  1.22  (1.07 to 1.37)    0.0100  too low

  Each p-value combines ECE, OverConfidence, UnderConfidence, ClasswiseKS,
    ConfidenceECE and CoxScore.
  The tests look at all predictions of a subgroup, not at averages alone. In
    brackets: what is compatible with the data, with 95 % confidence for each
    subgroup by itself (observed / expected).
  global p: the share of draws in which the smallest p-value of all tests is as
    small as here. It decides.
  Null distribution: 199 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(tests) == expected


def test_columns_in_a_mapping_are_those_of_a_frame():
    rng = np.random.default_rng(0)
    prob = rng.uniform(0.2, 0.8, 200)
    columns = {"site": np.arange(200) % 2, "age": np.repeat(["old", "young"], 100)}
    label, fast = (rng.random(200) < prob).astype(int), {"n_resamples": 199, "rng": 0}
    found = ct.subgroup_tests(label, prob, subgroup=columns, **fast)
    expected = ct.subgroup_tests(label, prob, subgroup=pd.DataFrame(columns), **fast)
    assert (found.subgroups, found.pvalue) == (expected.subgroups, expected.pvalue)
    by_fold = ct.subgroup_tests(label, prob, subgroup=columns, folds=np.arange(200) // 50 % 2, **fast)
    assert by_fold.subgroups == expected.subgroups
    with pytest.raises(ValueError, match="a label for each of the 200 observations, got 3"):
        ct.subgroup_tests(label, prob, subgroup={"site": [1, 2, 3]}, **fast)


@pytest.mark.slow(few_draws=True)
def test_only_rejected_subgroups_have_a_direction():
    """Half of a calibrated model's tables once named the direction of a subgroup that was not rejected."""
    rng = np.random.default_rng(1)
    named = 0
    for seed in range(9):
        p = rng.uniform(0.1, 0.9, 400)
        y = rng.random(400) < p
        site = np.repeat([f"site {k}" for k in range(8)], 50)
        site[:50], y[:50] = "wrong", p[:50] < 0.6
        tests = ct.subgroup_tests(y, p, subgroup=site, n_resamples=299, rng=seed)
        single = [test.direction is not None for test in tests]
        named += sum(single) - sum(np.array(single) & tests.rejected_tests)
        records = tests.to_dict()["tests"]
        lines = str(tests).splitlines()
        rows = [next(line for line in lines if line.startswith(f" {name} ")) for name in tests.subgroups]
        for rejected, row, record, frame, printed_row in zip(
            tests.rejected_tests, tests.directions, records, tests.to_frame()["direction"], rows, strict=True
        ):
            assert rejected or not any(isinstance(x, str) for x in (row, record["direction"], frame))
            assert rejected or record["findings"] == []
            assert rejected or printed_row.split()[-1] not in {"low", "high", "extreme", "enough", "part", "parts"}
            assert record["direction"] == row
        assert tests.rejected_tests[tests.subgroups.index("wrong")]
        assert tests.directions[tests.subgroups.index("wrong")]
    assert named > 0  # there was something to hide


def test_frame_and_json():
    y, p, site = opposite(np.random.default_rng(6), 400)
    tests = ct.subgroup_tests(y, p, subgroup=site, n_resamples=199, rng=0)
    content = json.loads(json.dumps(tests.to_dict(), allow_nan=False))
    assert content["subgroups"] == [test["label"] for test in content["tests"]] == ["east", "west"]
    assert [content[name] for name in ("pvalue", "conclusion")] == [tests.pvalue, tests.conclusion]
    frame = tests.to_frame()
    assert frame["subgroup"].tolist() == ["east", "west"]
    assert frame["n_samples"].tolist() == [200, 200]
    assert frame["pvalue_adjusted"].tolist() == tests.pvalue_adjusted.tolist()
    assert {"statistic", "noise_floor", "pvalue", "pvalue_adjusted", "direction", "l2_error"} <= set(frame)
    assert "<td" in tests._repr_html_()


def test_conclusion():
    y, p, site = opposite(np.random.default_rng(6), 400)
    with pytest.warns(CalibrationWarning, match="With 9 draws and 2 tests no adjusted p-value can be below 0.2"):
        few = ct.subgroup_tests(y, p, subgroup=site, n_resamples=9, rng=0)
    assert codes(few.notes) == ["C205"]
    assert "No single subgroup is rejected after Holm's correction for 2 subgroups." in few.conclusion
    fine = ct.subgroup_tests(p < 0.5, np.full(400, 0.5), subgroup=np.zeros(400), statistic=PARTS[0], n_resamples=19)
    assert "Calibration within the subgroups is not rejected (global p = " in fine.conclusion
    assert "This does not prove that the model is calibrated in each of them." in fine.conclusion
    rejected = ct.subgroup_tests(y, p, subgroup=site, n_resamples=199, alpha=0.1, rng=0)
    assert (
        "rejected at the 10 % level (global p = 0.005). Both subgroups are rejected after Holm's" in rejected.conclusion
    )
    assert "Both subgroups are rejected after Holm's correction: east and west." in rejected.conclusion


# Refusals.


def test_bad_subgroups(problem):
    for subgroup, kind, message in [
        (["a"] * 119, ValueError, "`subgroup` must have a label for each of the 120 observations, got 119"),
        ("a", ValueError, r"`subgroup` must have shape \(n_samples,\) or \(n_samples, n_columns\), .* got \(\)"),
        (np.zeros((120, 1, 1)), ValueError, r"`subgroup` must have shape .* got \(120, 1, 1\)"),
        (np.ma.masked_equal(np.arange(120), 3), ValueError, "`subgroup` must have shape .* without masked values"),
        (["a", None] * 60, ValueError, "must have a label for every observation, got None for observation 1"),
        ([np.nan, "a"] * 60, ValueError, "must have a label for every observation, got nan for observation 0"),
        (np.append(np.ones(119), np.nan), ValueError, "`subgroup` must .*, got .*nan.* for observation 119"),
        (pd.Series(["a", pd.NA] * 60, index=range(120, 0, -1)), ValueError, r"`subgroup` must .* for observation 1\."),
        (pd.DataFrame({"u": ["a"] * 120, "v": [None, "b"] * 60}), ValueError, r"`subgroup` must .* observation 0\."),
        (pd.DataFrame(np.ones((120, 2)), columns=["u", "u"]), ValueError, "must have columns of different names, got "),
        (pd.DataFrame(index=range(120)), ValueError, "`subgroup` must have at least one column, got none"),
        ([{"a": 1}] * 120, TypeError, "`subgroup` must hold labels such as strings or numbers: "),
    ]:
        with pytest.raises(kind, match=message):
            ct.subgroup_tests(*problem[:2], subgroup=subgroup, n_resamples=9)


def test_bad_arguments(problem):
    y_true, y_prob, subgroup = problem
    for options, kind, message in [
        ({"correction": "fdr_bh"}, ValueError, r"`correction` must be one of .* got 'fdr_bh'"),
        (
            {"statistic": 3},
            TypeError,
            r"`statistic` must be a statistic such as ECE\(\) or Omnibus\(\), or its name, got 3",
        ),
        ({"lens": "top"}, TypeError, "`lens` must be a lens"),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly between 0 and 1, got 0"),
    ]:
        with pytest.raises(kind, match=message):
            ct.subgroup_tests(y_true, y_prob, subgroup=subgroup, **options)


# Subgroups that cannot be decided about.


@pytest.mark.slow(few_draws=True)
def test_a_subgroup_of_few_groups_cannot_be_decided_about():
    """The north has 40 hospitals and the south 3, in which the same model is as wrong."""
    rng = np.random.default_rng(0)
    hospital = np.repeat(np.arange(43), 20)
    region = np.where(hospital < 40, "north", "south")
    y_true = (rng.random(len(hospital)) < 0.3).astype(int)
    tests = ct.subgroup_tests(
        y_true, np.full(len(hospital), 0.9), subgroup=region, groups=hospital, statistic=ct.KS(), rng=0
    )
    assert tests.decision == "rejected"
    assert tests.decisions == ("rejected", "undecidable")
    assert tests[1].decision == "undecidable"
    # Signs are drawn for all hospitals: 4 standard errors of 9,999 draws.
    assert tests[1].smallest_possible_pvalue == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 9999))
    assert tests[1].pvalue == tests[1].smallest_possible_pvalue
    assert "1 of 2 subgroups is rejected after Holm's correction: north." in tests.conclusion
    assert "Nothing can be decided about south, because no p-value can be small enough." in tests.conclusion


@pytest.mark.slow(few_draws=True)
def test_subgroups_of_few_groups_cannot_decide():
    rng = np.random.default_rng(0)
    y_true, group = (rng.random(240) < 0.24).astype(int), np.arange(240) % 3
    tests = ct.subgroup_tests(
        y_true, np.full(240, 0.9), subgroup=np.repeat(["a", "b"], 120), groups=group, statistic=ct.KS(), rng=0
    )
    assert (tests.decision, tests.pvalue) == ("undecidable", 0.25)
    assert tests.conclusion.startswith(
        "These data cannot decide: with 3 groups or fewer in each subgroup no global p-value below 0.25 is possible"
    )


@pytest.mark.slow(few_draws=True)
@FEW
def test_a_long_table_shows_as_many_subgroups_as_it_says(problem):
    y_true, y_prob, _ = problem
    found = ct.subgroup_tests(y_true, y_prob, subgroup=np.arange(120) % 30, statistic=ct.ECE(), n_resamples=19, rng=0)
    (table,) = found._describe().tables
    assert len(table.rows) == 25
    assert "The table shows 25 of 30 subgroups" in words(found)
    assert len(found.to_frame()) == 30


@FEW
def test_folds_have_the_observations_of_their_subgroups(problem):
    y_true, y_prob, subgroup = problem
    inside, fold = y_prob[:, 0] < 0.5, np.arange(120) % 2
    options = {"subgroup": subgroup, "region": lambda prob: prob[:, 0] < 0.5, "n_resamples": 119, "rng": 0}
    found = ct.subgroup_tests(y_true, y_prob, folds=fold, **options)
    assert found.fold_sizes == tuple(int(inside[fold == k].sum()) for k in range(2))
    assert found.n_samples == inside.sum() == ct.subgroup_tests(y_true, y_prob, **options).n_samples
