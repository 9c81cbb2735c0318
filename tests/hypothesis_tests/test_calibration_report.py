"""The report: the statistics that it names, on one set of draws."""

import json
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest.predictions._sample import make_sample
from caltest.results import CalibrationWarning
from tests.hypothesis_tests.problems import calibrated, codes, draws_in_order, words
from tests.reference.cases import mostly_nightly
from tests.results.printed import printed

TESTS = [
    (caltest.ECE(), None),
    (caltest.ECE(caltest.EqualWidth(15)), "top"),
    (caltest.statistics.SCE(), None),
    (caltest.KS(), "top"),
    (caltest.statistics.Kuiper(), "top"),
    (caltest.SKCE(), None),
    (caltest.statistics.Spiegelhalter(), None),
    (caltest.statistics.TCal(), "top"),
]
FEW = pytest.mark.filterwarnings("ignore:With .* draws and .* tests:caltest.results.CalibrationWarning")


def problem(n, n_classes, seed=0):
    return calibrated(n, n_classes, seed, concentration=0.7)


@FEW
def test_tests_are_the_named_statistics_on_shared_draws():
    for n_classes in (2, 3):
        y_true, y_prob = problem(150, n_classes)
        report = caltest.calibration_report(y_true, y_prob, n_resamples=20, n_kernel_resamples=10, rng=3)
        drawn = draws_in_order(y_true, y_prob, 20, seed=3)
        assert len(report) == len(report.tests) == len(TESTS)
        for (statistic, where), test in zip(TESTS, report, strict=True):
            case = f"{statistic}, {n_classes} classes"
            lens = caltest.Confidence() if where == "top" and n_classes > 2 else caltest.Canonical()
            chosen = [statistic]
            if len(statistic.components) > 1:
                chosen = statistic.for_sample(make_sample(y_true, y_prob, lens=lens)).components
            assert test.n_resamples == (10 if isinstance(statistic, caltest.SKCE) else 20), case
            assert test.lens == lens, case
            for part, component in zip(chosen, test.components, strict=True):
                options = {"statistic": part, "lens": lens}
                expected = caltest.calibration_error(y_true, y_prob, **options)
                np.testing.assert_allclose(component.statistic, expected, rtol=1e-9, atol=1e-12, err_msg=case)
                null = [caltest.calibration_error(y, y_prob, **options) for y in drawn[: test.n_resamples]]
                np.testing.assert_allclose(component.null_distribution, null, rtol=1e-9, atol=1e-12, err_msg=case)


@FEW
def test_threads_change_nothing_and_progress_is_reported():
    y_true, y_prob = problem(100, 3)
    options, calls = {"n_resamples": 99, "n_kernel_resamples": 49, "rng": 1}, []
    one = caltest.calibration_report(y_true, y_prob, **options)
    two = caltest.calibration_report(
        y_true, y_prob, workers=2, progress=lambda done, total: calls.append((done, total)), **options
    )
    assert str(one) == str(two)
    assert one.pvalue == two.pvalue
    assert calls[-1] == (99 + 49, 99 + 49)
    assert {total for _, total in calls} == {99 + 49}
    assert calls == sorted(calls), "it never goes back"


@FEW
def test_an_impossible_label_makes_every_pvalue_of_its_lens_the_smallest():
    y_true, y_prob = problem(60, 3)
    y_prob[5] = [0.0, 0.5, 0.5]
    y_true[5] = 0
    report = caltest.calibration_report(y_true, y_prob, n_resamples=99, n_kernel_resamples=19, rng=1)
    whole = [test for test in report if test.lens == caltest.Canonical()]
    assert {test.pvalue for test in whole if test.n_resamples == 99} == {report.pvalue} == {0.01}
    assert [test.pvalue for test in whole if test.n_resamples == 19] == [0.05]
    (note,) = [note for note in report.all_notes if note.code == "C201"]
    assert note.text.startswith("ECE(), SCE(), SKCE(), Spiegelhalter(): 1 label (observation 5)")
    assert str(note) in words(report)


@FEW
def test_region():
    y_true, y_prob = problem(200, 3)
    inside = y_prob[:, 0] > 0.3
    options = {"n_resamples": 19, "rng": 0}
    found = caltest.calibration_report(y_true, y_prob, region=lambda prob: prob[:, 0] > 0.3, **options)
    expected = caltest.calibration_report(y_true[inside], y_prob[inside], **options)
    for one, other in zip(found, expected, strict=True):
        assert one.n_samples == inside.sum()
        for part, same in zip(one.components, other.components, strict=True):
            assert part.statistic == pytest.approx(same.statistic, rel=1e-9), str(part.test_statistic)


def test_too_few_draws_are_said_before_the_work_starts():
    order = []
    with pytest.warns(CalibrationWarning, match="With 99 draws and 8 tests .* Take 160 draws") as told:
        report = caltest.calibration_report(
            *problem(30, 3), n_resamples=99, rng=0, progress=lambda done, total: order.append(len(told.list))
        )
    assert order[0] == 1
    assert [warning.filename for warning in told] == [__file__]
    assert codes(report.notes) == ["C205"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert caltest.calibration_report(*problem(30, 3), n_resamples=159, rng=0).notes == ()


@FEW
def test_no_more_kernel_draws_than_draws():
    report = caltest.calibration_report(*problem(30, 3), n_resamples=19, n_kernel_resamples=99, rng=0)
    assert {test.n_resamples for test in report} == {19}


# The result.


def test_printed():
    report = caltest.calibration_report(*problem(200, 3), n_resamples=199, n_kernel_resamples=49, rng=1)
    expected = """\
Calibration report (8 statistics, 200 observations)

No miscalibration is found: 62.3 % confidence, 62.5 % right. If the predictions
were exactly right, 38 of 100 such data sets would look as bad as this or worse
(global p = 0.38). This does not prove that the model is calibrated. None of the
8 single tests rejects after Holm's correction. Had the predictions been wrong
by 13.7 percentage points on average, this would have been found in 4 of 5 such
data sets; smaller errors may be missed.
Through the lens "whole prediction" the l2 calibration error is 0.0769 (95 %
confidence interval 0.0000 to 0.1790).
Through the same lens: ECE() 0.09598; a calibrated model with these predictions
has 0.06763 on average and at most 0.1102 in 95 % of data sets.

 accuracy minus confidence  +0.2 points (-7.7 to +7.7)  0 if calibrated

In brackets: what is compatible with these data, with 95 % confidence.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 1,600 observations.

 whole prediction      value  calibrated  p-value  p (Holm)
 ECE()               0.09598     0.06763   0.1100    0.8800
 SCE()                0.0882     0.08088   0.2150    1.0000
 SKCE()            -0.001208  -0.0002027   0.9000    1.0000
 Spiegelhalter()      0.9697      0.7303   0.2650    1.0000

 confidence                       value  calibrated  p-value  p (Holm)
 ECE(partition=EqualWidth(15))  0.06781     0.07533   0.6000    1.0000
 KS()                           0.03542     0.04049   0.5700    1.0000
 Kuiper()                       0.03716     0.05023   0.7900    1.0000
 TCal(n_scales=7)                 1.187      0.8262   0.2300    1.0000

  Column calibrated: average value if the model is calibrated.
  Null distribution: 199 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size), 49 for SKCE; the global p-value is an exact
    min-p without SKCE.
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(report) == expected


def test_frame_and_json():
    report = caltest.calibration_report(*problem(100, 3), n_resamples=199, n_kernel_resamples=49, rng=1)
    frame = report.to_frame()
    assert frame["test_statistic"].tolist() == list(report.labels)
    assert frame["pvalue"].tolist() == [test.pvalue for test in report]
    assert frame["pvalue_adjusted"].tolist() == report.pvalue_adjusted.tolist()
    assert frame["pvalue_adjusted"].ge(frame["pvalue"]).all()
    assert frame["n_resamples"].tolist() == [199] * 5 + [49] + [199] * 2
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [test["label"] for test in content["tests"]] == list(report.labels)
    assert content["pvalue"] == report.pvalue
    numbers, whole, top = report._repr_html_().split("<table>")[1:]
    assert "accuracy minus confidence" in numbers
    assert "whole prediction" in whole
    assert "confidence" in top


# Refusals and level.


def test_bad_counts_are_refused():
    for name in ("n_resamples", "n_kernel_resamples"):
        for count, kind in [(0, ValueError), (1.5, TypeError), ("many", TypeError)]:
            with pytest.raises(kind, match=f"`{name}` must be an integer >= 1, got {count!r}"):
                caltest.calibration_report(*problem(20, 3), **{name: count})
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1, got 0"):
        caltest.calibration_report(*problem(20, 3), alpha=0)
    with pytest.raises(ValueError, match="`region` must hold at least one observation, got none"):
        caltest.calibration_report(*problem(20, 3), region=lambda prob: prob[:, 0] > 2)


@pytest.mark.slow
@FEW
@pytest.mark.parametrize("n_data_sets", mostly_nightly([200, 1000]))
def test_level(n_data_sets):
    """Every test and the global p-value reject calibrated predictions at most as often as they say."""
    alpha = 0.05
    rejections = np.zeros(len(TESTS) + 1)
    for seed in range(n_data_sets):
        report = caltest.calibration_report(*problem(100, 3, seed), n_resamples=99, n_kernel_resamples=99, rng=seed)
        rejections += [*(test.pvalue <= alpha for test in report), report.pvalue <= alpha]
    limit = binom.ppf(1 - 0.001 / len(rejections), n_data_sets, alpha)
    assert np.all(rejections <= limit), rejections / n_data_sets


def test_skce_is_left_out_of_many_observations_unless_it_is_asked_for(monkeypatch):
    """Its time grows with the square of their number; a note says so before the work starts."""
    y_true, y_prob = problem(120, 2)
    options = {"n_resamples": 199, "rng": 0}
    whole = caltest.calibration_report(y_true, y_prob, **options)
    assert "C208" not in codes(whole.notes)
    monkeypatch.setattr("caltest.hypothesis_tests._calibration_report._MOST_FOR_KERNEL", 100)
    with pytest.warns(CalibrationWarning, match="SKCE is left out, because its time grows"):
        short = caltest.calibration_report(y_true, y_prob, **options)
    assert "C208" in codes(short.notes)
    kept = {
        str(test.test_statistic): test.pvalue for test in whole if not isinstance(test.test_statistic, caltest.SKCE)
    }
    assert {str(test.test_statistic): test.pvalue for test in short} == kept
    assert short.pvalue == whole.pvalue
    assert len(caltest.calibration_report(y_true, y_prob, n_kernel_resamples=199, **options)) == 8
    half = caltest.calibration_report(y_true, y_prob, region=lambda prob: prob[:, 1] > 0.5, **options)
    assert len(half) == 8
