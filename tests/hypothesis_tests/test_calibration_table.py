"""Several lenses on the same draws."""

import json
import warnings
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.predictions._view import LensView
from caltest.resampling.distributions._base import Tail
from caltest.resampling.engine import _stopping
from caltest.resampling.engine._stopping import Stopping
from caltest.results import CalibrationWarning
from tests.hypothesis_tests.problems import (
    STANDARD_ERRORS,
    blunted,
    calibrated,
    codes,
    count_rejections,
    most_rejections,
    sharpened,
    words,
)
from tests.reference import naive
from tests.reference.examples import draw_labels
from tests.results.printed import printed

FEW = pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")


@pytest.fixture(scope="module")
def problem():
    return calibrated(300, 4, concentration=1.0)


# The lenses.


def test_default_lenses(problem):
    y_true, y_prob = problem
    table = ct.calibration_table(y_true, y_prob, n_resamples=119, rng=0)
    assert [test.lens for test in table] == [ct.Canonical(), ct.Confidence(), *map(ct.ClassWise, range(4))]
    assert table.labels[:3] == ("whole prediction", "confidence", "class 0 against the rest")
    two = ct.calibration_table(y_true == 0, y_prob[:, 0], n_resamples=119, rng=0)
    assert [test.lens for test in two] == [ct.Canonical()]
    assert (
        two.pvalue_adjusted.tolist()
        == [two.pvalue]
        == [ct.calibration_test(y_true == 0, y_prob[:, 0], n_resamples=119, rng=0).pvalue]
    )
    # A statistic of one probability cannot judge the whole prediction of four classes.
    ks = ct.calibration_table(y_true, y_prob, statistic=ct.KS(), n_resamples=119, rng=0)
    assert [test.lens for test in ks] == [ct.Confidence(), *map(ct.ClassWise, range(4))]


def test_none_is_the_whole_prediction(problem):
    table = ct.calibration_table(*problem, lenses=[None, ct.Confidence()], n_resamples=119, rng=0)
    assert table[0].lens == ct.Canonical()


def test_classes_are_named(problem):
    y_true, y_prob = problem
    names = np.array(["ant", "bee", "cat", "dog"])
    table = ct.calibration_table(names[y_true], y_prob, classes=names, n_resamples=119, rng=0)
    assert table.labels[2:] == tuple(f"class {name} against the rest" for name in names)


def test_simulated_labels_through_a_lens_are_the_lens_of_the_labels(problem):
    from caltest.predictions._sample import induce

    y_true, y_prob = problem
    base = induce(y_prob, y_true)
    drawn = np.random.default_rng(1).integers(0, 4, (3, len(y_true))).astype(np.uint8)
    for lens in (
        ct.Confidence(), ct.ClassWise(2), ct.TopK(2), ct.WithinTop(2), ct.ClassGroups([[0, 3], [1, 2]]), ct.TopRank(2)
    ):  # fmt: skip
        view = LensView.of(lens, y_prob, y_true, base)
        for seen, classes in zip(view.outcomes(drawn), drawn, strict=True):
            expected = np.asarray(lens(y_prob, classes.astype(int))[1])[view.sample.row]
            np.testing.assert_array_equal(seen, expected, err_msg=str(lens))


# The p-values.


def test_first_test_is_the_test_itself(problem):
    table = ct.calibration_table(*problem, n_resamples=199, rng=7)
    alone = ct.calibration_test(*problem, n_resamples=199, rng=7)
    np.testing.assert_array_equal(table[0].null_distribution, alone.null_distribution)
    assert tuple(table[0]) == tuple(alone)


def test_a_lens_agrees_with_its_own_test(problem):
    """Outcomes that are simulated behind a lens are distributed as simulated classes that are looked at through it."""
    n_resamples, statistic = 4000, ct.ECE(ct.EqualWidth(5))
    options = {"statistic": statistic, "n_resamples": n_resamples}
    table = ct.calibration_table(*problem, lenses=[ct.Confidence(), ct.ClassWise(0)], rng=1, **options)
    alone = ct.calibration_test(*problem, lens=ct.Confidence(), method="monte-carlo", rng=2, **options)
    a, b = table[0].null_distribution, alone.null_distribution
    assert abs(a.mean() - b.mean()) < STANDARD_ERRORS * np.sqrt((a.var() + b.var()) / n_resamples)
    assert table[0].statistic == pytest.approx(alone.statistic, abs=1e-14)


def test_adjusted_and_global_pvalues(problem):
    lenses = [ct.Confidence(), ct.ClassWise(0), ct.ClassWise(1)]
    table = ct.calibration_table(*problem, lenses=lenses, statistic=ct.KS(), n_resamples=99, rng=3)
    expected = multipletests([test.pvalue for test in table], method="holm")[1]
    np.testing.assert_allclose(table.pvalue_adjusted, expected)
    ranks = [naive.tail_pvalues([test.statistic, *test.null_distribution]) for test in table]
    assert table.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0], abs=1e-14)


def test_a_single_lens_is_the_test_itself(problem):
    """Exactly where that is possible, otherwise with labels that are simulated behind the lens."""
    for statistic, method in ((ct.ECE(ct.EqualWidth(5)), "exact"), (ct.Omnibus(), "monte-carlo")):
        options = {"statistic": statistic, "n_resamples": 99, "rng": 5}
        table = ct.calibration_table(*problem, lenses=[ct.Confidence()], **options)
        alone = ct.calibration_test(*problem, lens=ct.Confidence(), **options)
        assert table[0].method == alone.method == method
        assert table.pvalue == table.pvalue_adjusted[0] == alone.pvalue
        assert table.conclusion == alone.conclusion
        assert "1 lens," in str(table)


def test_a_single_lens_takes_an_exact_distribution_only_where_it_is_accurate(problem, monkeypatch):
    """As `calibration_test` does: a distribution that is off by a third is replaced by draws."""
    from caltest.resampling.distributions._exact import SumDistribution

    monkeypatch.setattr(SumDistribution, "tail", lambda self, x: Tail(0.2, 0.3, "coarse"))
    options = {"statistic": ct.ECE(ct.EqualWidth(5)), "n_resamples": 99, "rng": 0}
    table = ct.calibration_table(*problem, lenses=[ct.Confidence()], **options)
    test = ct.calibration_test(*problem, lens=ct.Confidence(), **options)
    assert table[0].method == test.method == "monte-carlo"


def test_threads_change_nothing_and_progress_is_reported(problem):
    calls = []
    one = ct.calibration_table(*problem, n_resamples=600, rng=4)
    two = ct.calibration_table(
        *problem, n_resamples=600, rng=4, workers=2, progress=lambda done, total: calls.append((done, total))
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.null_distribution, b.null_distribution)
    assert one.pvalue == two.pvalue
    assert calls[-1] == (600, 600)


@FEW
def test_impossible_label_makes_every_pvalue_of_its_lenses_the_smallest():
    y_prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    table = ct.calibration_table([0, 1] + [1, 2] * 19, y_prob, n_resamples=99, rng=0)
    whole, confidence, first = table[0], table[1], table[2]
    assert whole.pvalue == first.pvalue == table.pvalue == 0.01
    assert whole.impossible_samples.tolist() == first.impossible_samples.tolist() == [0]
    assert confidence.impossible_samples.size == 0
    (note,) = [note for note in table.all_notes if note.code == "C201"]
    assert note.text.startswith("whole prediction, class 0 against the rest: 1 label (observation 0) had been given")
    assert str(note) in words(table)


@pytest.mark.slow(few_draws=True)
def test_what_is_left_without_impossible_labels_is_what_the_table_without_them_says():
    """The confidence may reject where the whole prediction does not; that was called no miscalibration."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet([1, 1, 1], 800)
    drawn = rng.random(800)[:, None]
    for share, wrong in ((0.85, True), (1.0, False)):
        truth = share * y_prob + (1 - share) / 3
        y_true = (truth.cumsum(axis=1) < drawn).sum(axis=1).clip(max=2)
        y_true[:2] = 0
        given = np.vstack([np.tile([0.0, 0.5, 0.5], (2, 1)), y_prob[2:]])
        table = ct.calibration_table(y_true, given, n_resamples=999, rng=0)
        assert ct.calibration_table(y_true[2:], y_prob[2:], n_resamples=999, rng=0).rejected == wrong
        assert ("Without them calibration is rejected, too" in table.conclusion) == wrong, share


def test_region(problem):
    """A region of the predictions, through every lens: the tests of the observations inside."""
    y_true, y_prob = problem
    inside = y_prob[:, 0] > 0.2
    options = {"lenses": [ct.Canonical(), ct.Confidence(), ct.ClassWise(1)], "statistic": ct.ECE(ct.EqualWidth(4))}
    found = ct.calibration_table(y_true, y_prob, region=lambda p: p[:, 0] > 0.2, n_resamples=999, rng=0, **options)
    alone = ct.calibration_table(y_true[inside], y_prob[inside], n_resamples=999, rng=1, **options)
    for a, b in zip(found, alone, strict=True):
        assert (a.n_samples, a.statistic) == (inside.sum(), pytest.approx(b.statistic, rel=1e-12)), str(a.lens)
        error = np.sqrt((a.null.std**2 + b.null.std**2) / 999)
        assert abs(a.noise_floor - b.noise_floor) < STANDARD_ERRORS * error, str(a.lens)
    single = ct.calibration_table(y_true, y_prob, lenses=[None], region=lambda p: p[:, 0] > 0.2, n_resamples=99, rng=0)
    expected = ct.calibration_test(y_true, y_prob, region=lambda p: p[:, 0] > 0.2, n_resamples=99, rng=0)
    assert tuple(single[0]) == tuple(expected)
    y_prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    y_true = np.array([1, 1] + [1, 2] * 18 + [0, 2])  # an impossible label in observation 38
    table = ct.calibration_table(y_true, y_prob, region=lambda p: p[:, 0] < 0.1, n_resamples=119, rng=0)
    assert table[0].impossible_samples.tolist() == [38]


# The result.


def test_frame_and_json(problem):
    table = ct.calibration_table(*problem, n_resamples=119, rng=0)
    frame = table.to_frame()
    assert frame["pvalue"].tolist() == [test.pvalue for test in table]
    assert frame["pvalue_adjusted"].tolist() == table.pvalue_adjusted.tolist()
    assert frame["l2_error"].tolist() == [test.l2_error.root for test in table]
    assert {"lens", "test_statistic", "n_samples", "n_resamples", "statistic", "noise_floor", "direction"} <= set(frame)
    assert len(table) == 6
    content = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert {"label", "statistic", "noise_floor", "pvalue", "pvalue_adjusted", "lens"} <= set(content["tests"][0])
    assert [content[name] for name in ("pvalue", "correction", "alpha")] == [table.pvalue, "holm", 0.05]
    assert content["conclusion"] == table.conclusion
    y_prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    noted = ct.calibration_table([0, 1] + [1, 2] * 19, y_prob, n_resamples=119, rng=0)
    assert noted.to_dict()["notes"] == [note.to_dict() for note in noted.all_notes] != []
    assert "<table>" in table._repr_html_()


def test_conclusion(problem):
    table = ct.calibration_table(*problem, lenses=[None, *map(ct.ClassWise, range(4))], n_resamples=99, rng=0)
    for pvalues, overall, said in [
        ([0.5] * 5, 0.5, "50 of 100 such data sets would look as bad as this or worse (global p = 0.5)."),
        ([0.02] * 5, 0.02, "Calibration is rejected at the 5 % level (global p = 0.02). None of the 5 single tests "),
        ([0.001] * 5, 0.001, "All 5 single tests reject after Holm's correction."),
        ([0.5, 0.001, 0.5, 0.5, 0.5], 0.001, "1 of the 5 single tests rejects after Holm's correction: class 0 against "
         "the rest."),
        ([0.001, 0.5, 0.5, 0.5, 0.001], 0.001, "2 of the 5 single tests reject after Holm's correction: whole "
         "prediction and class 3 against the rest."),
        ([0.001] * 4 + [0.5], 0.001, "4 of the 5 single tests reject after Holm's correction."),
    ]:  # fmt: skip
        tests = tuple(replace(test, pvalue=p) for test, p in zip(table, pvalues, strict=True))
        other = replace(table, tests=tests, pvalue=overall)
        assert said in other.conclusion, pvalues
        assert other.verdict.conclusion in words(other)
    over = ct.calibration_table(*sharpened(300, 3), n_resamples=99, rng=0)
    assert over.conclusion.startswith("The model is over-confident: its confidence is 73.5 % on average, 58.0 % of ")
    assert over.rejected_tests.all()
    assert not replace(over, alpha=0.001).rejected_tests.any()


def test_printed():
    y_true, y_prob = calibrated(400, 3, seed=2, concentration=1.0)
    table = ct.calibration_table(y_true, blunted(y_prob, 0.7), n_resamples=999, rng=0)
    expected = """\
Calibration table (Omnibus, 5 lenses, 400 observations)

The model is over-confident: its confidence is 67.7 % on average, 59.2 % of its
predictions are right. Calibration is rejected at the 5 % level (global p =
0.001). All 5 single tests reject after Holm's correction.
Through the lens "whole prediction" the l2 calibration error is 0.0896 (95 %
confidence interval 0.0000 to 0.1604).
Through the same lens: ECE 0.1031; a calibrated model with these predictions has
0.0621 on average and at most 0.08452 in 95 % of data sets.

 accuracy minus confidence  -8.4 points (-13.9 to      0 if calibrated
                            -3.1)
 typical error              up to 16.0 points          0 if calibrated; chance
                                                       alone shows up to 8.2

In brackets: what is compatible with these data, with 95 % confidence.
What to do: Do not use these predictions as they are.
`caltest.recalibration_study(y_true, y_prob)` recalibrates them and shows on
held-out folds what is left.

 lens               l2 error (95 % interval)  p-value  p (Holm)  direction
 whole prediction  0.0896 (0.0000 to 0.1604)   0.0010    0.0050  over
 confidence        0.0755 (0.0087 to 0.1308)   0.0010    0.0050  over
 class 0           0.0728 (0.0155 to 0.1249)   0.0010    0.0050  too extreme
 class 1           0.0259 (0.0000 to 0.0883)   0.0010    0.0050  too extreme
 class 2           0.0575 (0.0000 to 0.1120)   0.0020    0.0050  too extreme

 statistic            value  under calibration (5 % to 95 %)  p-value
 ECE()               0.1031      0.0621 (0.04192 to 0.08452)   0.0040
 OverConfidence()     75.09        -0.5724 (-20.02 to 19.99)   0.0010
 UnderConfidence()   -75.09         0.5724 (-19.99 to 20.02)   1.0000
 ClasswiseKS()        3.278          1.591 (0.9025 to 2.496)   0.0060
 ConfidenceECE()    0.08426      0.0528 (0.03352 to 0.07522)   0.0150

  Each p-value combines ECE, OverConfidence, UnderConfidence, ClasswiseKS and
    ConfidenceECE, that of two outcomes also CoxScore; the second table shows
    them for the lens "whole prediction".
  global p: the share of draws in which the smallest p-value of all tests is as
    small as here. It decides.
  Null distribution: 999 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(table) == expected


@pytest.mark.usefixtures("usual_draws")
def test_printed_of_a_single_lens():
    table = ct.calibration_table(
        *calibrated(300, 3, seed=2), lenses=[ct.Confidence()], statistic=ct.ECE(ct.EqualMass(5))
    )
    expected = """\
Calibration table (ECE(partition=EqualMass(5)), 1 lens, 300 observations)

No miscalibration is found: 69.6 % confidence, 68.0 % right. If the predictions
were exactly right, 62 of 100 such data sets would look as bad as this or worse
(p = 0.6247). This does not prove that the model is calibrated. Had the
predictions been wrong by 8.5 percentage points on average, this would have been
found in 4 of 5 such data sets; smaller errors may be missed.
The l2 calibration error is 0.0000 (95 % confidence interval 0.0000 to 0.0653).
ECE 0.03679; a calibrated model with these predictions has 0.0426 on average and
at most 0.06865 in 95 % of data sets.

 accuracy minus confidence  -1.6 points (-7.5 to +3.9)  0 if calibrated
 calibration slope          0.99  (0.62 to 1.39)        1 if calibrated

In brackets: what is compatible with these data, with 95 % confidence for the
first two together.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 870 observations.

 lens         l2 error (95 % interval)  p-value  p (Holm)  direction
 confidence  0.0000 (0.0000 to 0.0653)   0.6247    0.6247

  Null distribution: computed exactly, predictions fixed (valid at every sample
    size): cells convolved atom by atom.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(table) == expected


@pytest.mark.slow(few_draws=True)
def test_a_rejection_without_l2_error_is_explained():
    y_true, y_prob = ct.datasets.load_cifar10_vgg16()
    sentence = "its estimate can be 0 where a test rejects"
    for k, explained in ((6, True), (2, False)):
        table = ct.calibration_table(y_true, y_prob, lenses=[ct.ClassWise(k), ct.Confidence()], n_resamples=99, rng=0)
        assert table.rejected_tests.all(), k
        assert (table.tests[0].l2_error.root == 0) == explained, k
        assert (sentence in " ".join(str(table).split())) == explained, k


# Many classes, few draws.


def test_too_few_draws_are_said_before_the_work_starts(problem):
    """Both for the default lenses and for those of the user (C205)."""
    for lenses in (None, [ct.Confidence(), *map(ct.ClassWise, range(4)), ct.TopK(2)]):
        order = []
        with pytest.warns(CalibrationWarning, match="Take 120 draws or more") as told:
            table = ct.calibration_table(
                *problem,
                lenses=lenses,
                n_resamples=99,
                rng=0,
                progress=lambda done, total, order=order, told=told: order.append(len(told.list)),
            )
        assert order[0] == 1, "the warning comes before the first draw"
        assert [warning.filename for warning in told] == [__file__]
        assert codes(table.notes) == ["C205"]
        assert str(table.notes[0]) == str(told[0].message)
        assert str(table.notes[0]) in words(table)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ct.calibration_table(*problem, lenses=lenses, n_resamples=119, rng=0).notes == ()


@dataclass(frozen=True, repr=False)
class Counted(ct.ClassWise):
    """A lens of the package that counts how often it is used."""

    def induced(self, prob):
        CALLS["induced", self.k] += 1
        return super().induced(prob)

    def outcomes(self, prob):
        CALLS["outcomes", self.k] += 1
        return super().outcomes(prob)


CALLS = Counter()


@pytest.fixture(scope="module")
def thousand_classes():
    y_prob = np.random.default_rng(0).dirichlet(np.full(1000, 0.01), 2000)
    return draw_labels(y_prob, np.random.default_rng(1)), y_prob


@pytest.mark.slow(few_draws=True)
def test_a_thousand_classes_are_left_out_where_draws_are_too_few(thousand_classes):
    """2,000 x 1,000 predictions: said before the work starts (C206)."""
    order = []
    with pytest.warns(CalibrationWarning) as told:
        table = ct.calibration_table(
            *thousand_classes,
            statistic=ct.ECE(),
            n_resamples=39,
            rng=0,
            progress=lambda done, total: order.append(len(told.list)),
        )
    assert order[0] == 1
    assert [test.lens for test in table] == [ct.Canonical(), ct.Confidence()]
    assert codes(table.notes) == ["C206"]
    assert str(table.notes[0]) == str(told[0].message)
    for part in ("The 1,000 classes are not tested one by one: with 39 draws none of 1,002 tests", "take 20,040 draws"):
        assert part in table.notes[0].text
    assert "whole prediction covers all classes jointly" in table.notes[0].text
    with pytest.warns(CalibrationWarning) as told:
        two = ct.calibration_table(*thousand_classes, statistic=ct.KS(), n_resamples=39, rng=0)
    assert [test.lens for test in two] == [ct.Confidence()]
    assert "jointly" not in two.notes[0].text


def test_the_classes_of_the_most_expected_events_are_tested_of_many():
    """As many as the draws allow, at most 20, chosen by predictions and never by labels; permuted with the columns."""
    rng = np.random.default_rng(2)
    y_prob = rng.dirichlet(np.r_[np.full(25, 0.5), np.full(95, 0.01)], 300)
    y_true = draw_labels(y_prob, rng)

    def classes_of(labels, prob, n_resamples):
        with pytest.warns(CalibrationWarning, match="most expected events"):
            table = ct.calibration_table(labels, prob, statistic=ct.ECE(), n_resamples=n_resamples, rng=0)
        assert codes(table.notes) == ["C206"]
        return [test.lens.k for test in table if isinstance(test.lens, ct.ClassWise)]

    by_events = np.argsort(-y_prob.sum(axis=0))
    for n_resamples, number in ((99, 3), (999, 20)):
        expected = sorted(by_events[:number].tolist())
        assert classes_of(y_true, y_prob, n_resamples) == expected
    order = rng.permutation(120)
    assert classes_of(np.argsort(order)[y_true], y_prob[:, order], 99) == sorted(
        np.argsort(order)[by_events[:3]].tolist()
    )
    assert classes_of(rng.integers(0, 120, 300), y_prob, 99) == sorted(by_events[:3].tolist())


@pytest.mark.slow(few_draws=True)
def test_draws_are_enough_for_the_lenses_of_large_data(problem, monkeypatch):
    """The default of large data is 999 draws, or what Holm's correction of the lenses needs; they stop separately."""
    monkeypatch.setattr(_stopping, "MANY_PROBABILITIES", 1000)
    lenses = [ct.ClassWise(k) for k in (0, 1, 2)]
    table = ct.calibration_table(*problem, statistic=ct.KS(), lenses=lenses, rng=0)
    assert [test.n_resamples for test in table] != [999] * 3
    assert all(test.n_resamples in Stopping(999, 100).checkpoints for test in table)
    assert "draws or more for each test" in str(table) or "of at most 999" in str(table)
    many = ct.calibration_table(*problem, statistic=ct.KS(), lenses=lenses * 20, rng=0)
    assert not codes(many.notes)
    assert "of at most 1,200" in str(many)


@pytest.mark.slow
def test_lenses_are_used_a_few_times_whatever_the_number_of_classes(thousand_classes):
    """Explicit lenses are kept, with a warning (C205); none is called once for each class, or for each draw."""
    lenses = [ct.Canonical(), *map(Counted, range(20))]
    CALLS.clear()
    with pytest.warns(CalibrationWarning, match="Take 420 draws or more"):
        table = ct.calibration_table(*thousand_classes, lenses=lenses, statistic=ct.ECE(), n_resamples=99, rng=0)
    assert [test.lens for test in table] == lenses
    assert set(CALLS) == {(name, k) for name in ("induced", "outcomes") for k in range(20)}
    assert max(CALLS.values()) <= 2
    json.dumps(table.to_dict(), allow_nan=False)


# Refusals and level.


def test_bad_arguments_are_refused(problem):
    for options, kind, message in [
        ({"lenses": ct.Confidence()}, TypeError, r"`lenses` must be a list of lenses, got Confidence\(\)"),
        ({"lenses": []}, ValueError, "`lenses` must hold at least one lens"),
        (
            {"statistic": 3},
            TypeError,
            r"`statistic` must be a statistic such as ECE\(\) or Omnibus\(\), or its name, got 3",
        ),
        ({"lenses": [None], "statistic": ct.KS()}, ValueError, "`KS` needs a two-outcome lens"),
        ({"region": lambda p: p[:, 0] > 2}, ValueError, "`region` must hold at least one observation, got none"),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly between 0 and 1, got 0"),
    ]:
        with pytest.raises(kind, match=message):
            ct.calibration_table(*problem, **options)


@pytest.mark.slow
def test_global_pvalue_holds_its_level():
    rng = np.random.default_rng(5)
    prob, n_sets = rng.dirichlet(np.ones(3), 100), 200
    count = count_rejections(
        lambda i: (
            ct.calibration_table(
                draw_labels(prob, rng), prob, lenses=[ct.Canonical(), ct.Confidence()], n_resamples=99, rng=i
            ).pvalue
        ),
        n_sets,
    )
    assert count <= most_rejections(n_sets, 0.05)


@pytest.mark.slow(few_draws=True)
def test_of_many_lenses_those_with_the_smallest_pvalues_are_printed():
    """The first and the worst ones; `to_frame` has all."""
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(40), 150)
    y_true = np.where(rng.random(150) < 0.2, 33, (y_prob.cumsum(axis=1)[:, :-1] < rng.random((150, 1))).sum(axis=1))
    table = ct.calibration_table(y_true, y_prob, n_resamples=849, rng=0)
    text = str(table)
    words = " ".join(text.split())
    assert len(table) == len(table.to_frame()) == 42
    assert "The table shows 25 of 42 lenses, those with the smallest p-values." in words
    printed = [k for k in range(40) if f"class {k}  " in text]
    assert 23 <= len(printed) <= 24  # and the whole prediction, and perhaps the confidence
    assert "whole prediction" in text
    left = [test.pvalue for k, test in enumerate(table.tests[2:]) if k not in printed]
    assert 33 in printed
    assert min(left) >= max(table.tests[2 + k].pvalue for k in printed)


# Data that cannot decide, and rows that are named.


@pytest.mark.slow(few_draws=True)
def test_a_table_of_few_groups_cannot_decide():
    rng = np.random.default_rng(0)
    y_true, y_prob, group = (rng.random(240) < 0.24).astype(int), np.full(240, 0.9), np.arange(240) % 3
    lenses = [ct.Canonical(), ct.Confidence()]
    table = ct.calibration_table(y_true, y_prob, lenses=lenses, groups=group, rng=0)
    assert (table.pvalue, table.smallest_possible_pvalue, table.decision) == (0.25, 0.25, "undecidable")
    assert table.decisions == ("undecidable", "undecidable")
    assert table.conclusion == (
        "These data cannot decide: with 3 groups no global p-value below 0.25 is possible, and the level is 5 % "
        "(global p = 0.25, 240 observations in 3 groups)."
    )
    content = table.to_dict()
    assert (content["decision"], content["tests"][0]["decision"]) == ("undecidable", "undecidable")


def test_six_groups_decide_together_and_no_single_row_can():
    """The smallest p-value of 6 groups is 1/32, which Holm's correction doubles."""
    rng = np.random.default_rng(0)
    y_true, y_prob, group = (rng.random(240) < 0.24).astype(int), np.full(240, 0.9), np.arange(240) % 6
    lenses = [ct.Canonical(), ct.Confidence()]
    table = ct.calibration_table(y_true, y_prob, lenses=lenses, groups=group, rng=0)
    assert (table.pvalue, table.decision) == (2**-5, "rejected")
    assert table.decisions == ("undecidable", "undecidable")
    assert "None of the 2 single tests can reject" in table.conclusion
    assert "confident" not in table.conclusion  # no single test is significant


def test_sentences_of_a_table_name_the_row_that_they_are_about():
    """Class 0 is calibrated, and the confidence in classes 1 and 2 is wrong: no sentence is about the first row."""
    rng = np.random.default_rng(3)
    y_prob = rng.dirichlet([2, 1, 1], 3000)
    true = y_prob.copy()
    true[:, 1:] = y_prob[:, 1:].sum(axis=1, keepdims=True) / 2
    y_true = draw_labels(true, rng)
    lenses = [ct.ClassWise(0), ct.ClassWise(1), ct.Confidence()]
    table = ct.calibration_table(y_true, y_prob, lenses=lenses, n_resamples=999, rng=0)
    assert table.rejected_tests.tolist() == [False, True, True]
    first, second, *_ = table._sizes()
    assert first.startswith('Through the lens "class 1 against the rest" the l2 calibration error is ')
    assert table[1].l2_error.root_text[:6] in first
    assert second.startswith(f"Through the same lens: ECE {table[1].components[0].statistic:.4g}; ")
    assert 'the second table shows them for the lens "class 1 against the rest"' in words(table)
    assert "The l2 calibration error" not in words(table)
    assert table.conclusion.startswith("Predicted probabilities of class 1 are too extreme: ")
    assert "()" not in table.conclusion
