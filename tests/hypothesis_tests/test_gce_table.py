"""The 32 general calibration errors on shared draws: their names, p-values, table and options."""

import json
from itertools import product

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import caltest
from caltest.hypothesis_tests._gce_table import NAMES, gce_metrics, gce_name
from caltest.results import CalibrationWarning
from tests.hypothesis_tests.problems import calibrated, codes, count_rejections, most_rejections, words
from tests.reference import naive
from tests.results.printed import printed

FEW = pytest.mark.filterwarnings("ignore:With .* draws and .* tests:caltest.results.CalibrationWarning")


@pytest.fixture(scope="module")
def problem():
    return calibrated(300, 4)


@pytest.fixture(scope="module")
def table(problem):
    return caltest.gce_table(*problem, n_resamples=699, rng=3)


def test_metrics_are_those_of_the_paper(table):
    """Scheme, then all or top entries, one or several classes, threshold, norm: the last changes fastest."""
    options = product(("equal-width", "equal-mass"), (True, False), (True, False), (0.0, 0.01), ("l1", "l2"))
    assert table.metrics == gce_metrics() == tuple(caltest.statistics.GCE(*choice, 15) for choice in options)
    assert len(set(table.metrics)) == len(table) == 32


def test_names_of_the_paper(table):
    """Appendix C: class-conditional ECE is metric 0, ECE 4, SCE 8, RMSCE 21, ACE 24; TACE is ACE above a threshold."""
    named = {name: i for i, name in enumerate(table.names) if name}
    assert named == {"class-conditional ECE": 0, "ECE": 4, "SCE": 8, "RMSCE": 21, "ACE": 24, "TACE": 26}
    assert set(named) == set(NAMES.values())
    assert gce_name(caltest.statistics.GCE(threshold=0.3)) == ""
    assert gce_name(caltest.statistics.GCE("equal-mass", threshold=0.3)) == "TACE"


@pytest.mark.slow(few_draws=True)
def test_tests_are_those_of_single_metrics(problem, table):
    for metric, test in zip(table.metrics, table, strict=True):
        alone = caltest.calibration_test(*problem, statistic=metric, n_resamples=699, rng=3)
        assert tuple(test) == tuple(alone), str(metric)
        np.testing.assert_array_equal(test.null_distribution, alone.null_distribution, err_msg=str(metric))
        assert test.test_statistic == metric


@pytest.mark.slow
@FEW
def test_adjusted_and_global_pvalues(problem):
    table = caltest.gce_table(*problem, n_resamples=99, rng=3)
    expected = multipletests([test.pvalue for test in table], method="holm")[1]
    np.testing.assert_allclose(table.pvalue_adjusted, expected)
    ranks = [naive.tail_pvalues([test.statistic, *test.null_distribution]) for test in table]
    assert table.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0], abs=1e-14)


def test_threads_change_nothing_and_progress_is_reported(problem, table):
    calls = []
    other = caltest.gce_table(
        *problem, n_resamples=699, rng=3, workers=2, progress=lambda done, total: calls.append((done, total))
    )
    assert [tuple(test) for test in other] == [tuple(test) for test in table]
    assert other.pvalue == table.pvalue
    assert calls[-1] == (699, 699)


@FEW
def test_options(problem):
    small = caltest.gce_table(*problem, threshold=0.2, n_cells=4, n_resamples=9, rng=0)
    assert {metric.threshold for metric in small.metrics} == {0.0, 0.2}
    assert {metric.n_cells for metric in small.metrics} == {4}
    classes = np.array(["a", "b", "c", "d"])
    named = caltest.gce_table(classes[problem[0]], problem[1], classes=classes, n_resamples=9, rng=0)
    expected = caltest.calibration_error(*problem, statistic=caltest.statistics.GCE())
    assert named[named.names.index("SCE")].statistic == expected
    assert named.metrics[8] == caltest.statistics.GCE()


@pytest.mark.slow(few_draws=True)
@FEW
def test_resampled_observations_and_regions(problem):
    y_true, y_prob = problem
    inside = y_prob[:, 0] > 0.2
    found = caltest.gce_table(y_true, y_prob, region=lambda prob: prob[:, 0] > 0.2, n_resamples=19, rng=0)
    expected = caltest.gce_table(y_true[inside], y_prob[inside], n_resamples=19, rng=0)
    assert [tuple(test) for test in found] == [tuple(test) for test in expected]
    rows = caltest.Consistency(resample_predictions=True)
    resampled = caltest.gce_table(y_true, y_prob, n_cells=1, resampling=rows, n_resamples=19, rng=0)
    assert codes(resampled[0].conditions) == ["C101", "C102"]
    assert "19 resamples of the observations" in words(resampled)


@FEW
def test_a_constant_model_makes_a_table():
    y_prob = np.tile([0.5, 0.25, 0.25], (40, 1))
    table = caltest.gce_table(np.resize([0, 1, 0, 2], 40), y_prob, n_resamples=99, rng=0)
    assert table.pvalue > 0.05
    assert "No miscalibration is found: 50.0 % confidence, 50.0 % right." in words(table)


@FEW
def test_an_impossible_label_makes_every_pvalue_smallest_and_is_noted_once():
    y_prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    table = caltest.gce_table(np.array([0, 1] + [1, 2] * 19), y_prob, n_resamples=99, rng=0)
    assert {test.pvalue for test in table} == {table.pvalue} == {0.01}
    assert codes(table.all_notes).count("C201") == 1


def test_too_few_draws_are_said_before_the_work_starts(problem):
    order = []
    with pytest.warns(CalibrationWarning, match="With 99 draws and 32 tests .* Take 640 draws or more") as told:
        table = caltest.gce_table(
            *problem, n_resamples=99, rng=0, progress=lambda done, total: order.append(len(told.list))
        )
    assert order[0] == 1
    assert [warning.filename for warning in told] == [__file__]
    assert codes(table.notes) == ["C205"]


# The result.


def test_printed():
    table = caltest.gce_table(*calibrated(200, 3, seed=1), n_resamples=699, rng=1)
    expected = """\
General calibration errors (32 metrics, 200 observations)

No miscalibration is found: 68.0 % confidence, 67.0 % right. If the predictions
were exactly right, 87 of 100 such data sets would look as bad as this or worse
(global p = 0.8729). This does not prove that the model is calibrated. None of
the 32 single tests rejects after Holm's correction. Had the predictions been
wrong by 15.3 percentage points on average, this would have been found in 4 of 5
such data sets; smaller errors may be missed.
Through the lens "whole prediction" the l2 calibration error is 0.0000 (95 %
confidence interval 0.0000 to 0.0971).

 accuracy minus confidence  -1.0 points (-8.4 to +6.0)  0 if calibrated

In brackets: what is compatible with these data, with 95 % confidence.
What to do: These data are too few to approve the predictions. To find errors of
5 percentage points, collect about 1,900 observations.

 entries  classes   above  norm   value  calibrated       p  p (Holm)  name
 top      each          0    l1   0.098       0.125  0.9186    1.0000  CC-ECE
 top      each          0    l2   0.135       0.164  0.9029    1.0000
 top      each       0.01    l1   0.098       0.125  0.9186    1.0000
 top      each       0.01    l2   0.135       0.164  0.9029    1.0000
 top      together      0    l1  0.0553      0.0741  0.8743    1.0000  ECE
 top      together      0    l2  0.0792      0.0954  0.7571    1.0000
 top      together   0.01    l1  0.0553      0.0741  0.8743    1.0000
 top      together   0.01    l2  0.0792      0.0954  0.7571    1.0000
 all      each          0    l1  0.0668      0.0777  0.8629    1.0000  SCE
 all      each          0    l2  0.0996       0.111  0.8157    1.0000
 all      each       0.01    l1  0.0723      0.0856  0.8943    1.0000
 all      each       0.01    l2   0.105       0.117  0.8214    1.0000
 all      together      0    l1  0.0423      0.0441  0.5700    1.0000
 all      together      0    l2  0.0677       0.061  0.3114    1.0000
 all      together   0.01    l1  0.0451      0.0486  0.6086    1.0000
 all      together   0.01    l2   0.071      0.0643  0.3186    1.0000

 entries  classes   above  norm   value  calibrated       p  p (Holm)  name
 top      each          0    l1   0.145       0.166  0.9014    1.0000
 top      each          0    l2   0.182       0.208  0.9043    1.0000
 top      each       0.01    l1   0.145       0.166  0.9014    1.0000
 top      each       0.01    l2   0.182       0.208  0.9043    1.0000
 top      together      0    l1  0.0605      0.0947  0.9757    1.0000
 top      together      0    l2   0.073       0.118  0.9829    1.0000  RMSCE
 top      together   0.01    l1  0.0605      0.0947  0.9757    1.0000
 top      together   0.01    l2   0.073       0.118  0.9829    1.0000
 all      each          0    l1  0.0669      0.0751  0.8143    1.0000  ACE
 all      each          0    l2  0.0928       0.102  0.7471    1.0000
 all      each       0.01    l1  0.0712      0.0862  0.9357    1.0000  TACE
 all      each       0.01    l2  0.0944       0.112  0.9057    1.0000
 all      together      0    l1  0.0358      0.0421  0.7329    1.0000
 all      together      0    l2  0.0487      0.0552  0.6857    1.0000
 all      together   0.01    l1  0.0465      0.0491  0.5729    1.0000
 all      together   0.01    l2  0.0609      0.0624  0.5286    1.0000

  The first table has cells (bins) of equal width, the second of equal mass.
    Column calibrated: average value if the model is calibrated. CC-ECE is the
    class-conditional ECE.
  global p: the share of draws in which the smallest p-value of all tests is as
    small as here. It decides.
  Null distribution: 699 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size).
  Valid if observations are independent and no label was used to make the
    predictions. [C101: docs/notes.md]"""
    assert printed(table) == expected


def test_frame_and_json(table):
    frame = table.to_frame()
    assert frame.shape == (32, 10)
    assert frame["pvalue"].tolist() == [test.pvalue for test in table]
    assert frame["pvalue_adjusted"].tolist() == table.pvalue_adjusted.tolist()
    assert frame.set_index("name").loc["SCE", "statistic"] == table[8].statistic
    content = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert content["pvalue"] == table.pvalue
    assert content["tests"][24]["label"] == content["metrics"][24] == "GCE(scheme='equal-mass')"
    assert table._repr_html_().count("<table>") == 3  # the numbers of the answer, and one for each kind of cells


# Refusals and level.


def test_bad_arguments():
    for options, kind, message in [
        ({"threshold": 2}, ValueError, "`threshold` must be a number .* got 2"),
        ({"n_cells": 0}, ValueError, "`n_cells` must be an integer >= 1, got 0"),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be an integer >= 1, got 0"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly between 0 and 1, got 0"),
        ({"resampling": "rows"}, TypeError, r"`resampling` must be a Consistency\(...\)"),
        ({"region": lambda prob: prob[:, 0] > 2}, ValueError, "`region` must hold at least one"),
    ]:
        with pytest.raises(kind, match=message):
            caltest.gce_table([0, 1], [0.2, 0.7], **options)


@pytest.mark.slow
@FEW
def test_global_pvalue_holds_its_level():
    n_sets = 100
    count = count_rejections(
        lambda i: caltest.gce_table(*calibrated(100, 3, seed=i), n_resamples=99, rng=10**6 + i).pvalue, n_sets
    )
    assert count <= most_rejections(n_sets, 0.05)
