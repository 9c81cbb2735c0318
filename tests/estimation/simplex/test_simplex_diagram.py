"""Reliability diagrams of three and four classes: cells, arrows, exact tests, and what they print."""

import json
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest.estimation.simplex import _simplex_cells as _simplex_tests
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from tests.reference import naive
from tests.reference.cases import check_refused, mostly_nightly
from tests.reference.examples import draw_labels, thirds
from tests.results.printed import printed

PLANE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def problem(n=600, n_classes=3, seed=0, temperature=1.0):
    """Predictions, and labels that follow a power of them."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    truth = prob**temperature
    return draw_labels(truth / truth.sum(axis=1, keepdims=True), rng), prob


def area(corners):
    """Area of a polygon, as a share of the triangle."""
    x, y = (corners @ PLANE).T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2 / (3**0.5 / 4)


def test_cells_are_those_of_the_loops():
    y, prob = problem()
    for partition in (ct.SimplexGrid(4), ct.VarianceTree(), ct.EqualWidth(3), ct.AgainstRest(0), thirds):
        label = naive.cells(partition, prob)
        members = [np.array([other == cell for other in label]) for cell in dict.fromkeys(label)]
        expected = {
            (int(rows.sum()), *np.round(prob[rows].mean(axis=0), 9), *np.round(np.bincount(y[rows], minlength=3), 9))
            for rows in members
        }
        diagram = ct.simplex_diagram(y, prob, partition=partition, n_resamples=19, rng=0)
        counts = diagram.observed * diagram.count[:, None]
        found = {
            (int(n), *np.round(p, 9), *np.round(c, 9))
            for n, p, c in zip(diagram.count, diagram.predicted, counts, strict=True)
        }
        assert found == expected, partition
        assert diagram.share.sum() == pytest.approx(1)
        np.testing.assert_allclose(diagram.arrow, diagram.observed - diagram.predicted)


def test_pvalues_are_those_of_simulated_labels(monkeypatch):
    """Exact p-values agree with simulated ones within 4 standard errors, in small and in large cells."""
    y, prob = problem(400, temperature=1.4)
    draws = 9999
    exact = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(3))
    assert exact.exact.all()
    monkeypatch.setattr(_simplex_tests, "MOST_COUNTS", 0)
    drawn = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(3), n_resamples=draws, rng=0)
    assert not drawn.exact.any()
    np.testing.assert_allclose(drawn.statistic, exact.statistic)
    error = np.sqrt(exact.pvalue * (1 - exact.pvalue) / draws)
    assert (np.abs(drawn.pvalue - exact.pvalue) <= 4 * error + 1 / draws).all()
    monkeypatch.setattr(_simplex_tests, "MOST_COUNTS", 500)  # one cell is small enough
    mixed = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(3), n_resamples=draws, rng=0)
    assert mixed.exact.sum() == 1
    np.testing.assert_array_equal(mixed.pvalue[mixed.exact], exact.pvalue[mixed.exact])
    assert (np.abs(mixed.pvalue - exact.pvalue) <= 4 * error + 1 / draws).all()
    assert "in 1 cell with few observations; 9,999 Monte Carlo draws" in mixed.origin


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", mostly_nightly([3, 4]))
def test_the_probability_of_any_false_rejection_is_at_most_nominal(n_classes, monkeypatch):
    """The share of calibrated data sets with any rejection, and with small p-values, within binomial limits."""
    rng = np.random.default_rng(1)
    prob = np.vstack([rng.dirichlet(np.full(n_classes, 0.5), 60), np.eye(n_classes)])
    sets = [draw_labels(prob, rng) for _ in range(300)]
    for most, options in ((20_000, {}), (0, {"n_resamples": 299})):
        monkeypatch.setattr(_simplex_tests, "MOST_COUNTS", most)
        diagrams = [
            ct.simplex_diagram(y, prob, partition=ct.EqualWidth(2), alpha=0.1, rng=i, **options)
            for i, y in enumerate(sets)
        ]
        limit = binom.ppf(1 - 1e-4, len(sets), 0.1)
        assert sum(diagram.rejected.any() for diagram in diagrams) <= limit
        single = np.array([diagram.pvalue for diagram in diagrams])
        assert ((single <= 0.1).sum(axis=0) <= limit).all()
        assert (single.min(axis=1) <= 0.1).sum() > limit, "the simulation can fail: unadjusted p-values do"


def test_miscalibration_is_found():
    y, prob = problem(5000, temperature=0.5)
    diagram = ct.simplex_diagram(y, prob, rng=0)
    assert diagram.rejected.sum() > 8
    assert diagram.conclusion.startswith(
        f"After Holm's correction calibration is rejected in {diagram.rejected.sum()} "
    )


def test_permuted_classes_mirror_the_result():
    rng = np.random.default_rng(3)
    prob = np.vstack([rng.dirichlet(np.ones(3), 300), np.eye(3), rng.multinomial(8, [0.5, 0.3, 0.2], 200) / 8])
    y = draw_labels(np.roll(prob, 1, axis=1), rng)
    for partition in (ct.SimplexGrid(4), ct.SimplexGrid(5)):
        diagram = ct.simplex_diagram(y, prob, partition=partition)
        one = np.column_stack([diagram.count, diagram.pvalue, diagram.predicted, diagram.observed])
        for order in map(list, permutations(range(3))):
            other = ct.simplex_diagram(np.argsort(order)[y], prob[:, order], partition=partition)
            back = np.argsort(order)
            two = np.column_stack([other.count, other.pvalue, other.predicted[:, back], other.observed[:, back]])
            for found, expected in ((two, one), (one, two)):
                gap = np.abs(found[:, None] - expected).max(axis=2).min(axis=1)
                assert gap.max() < 1e-9, (partition, order)


def test_regions_are_the_cells():
    y, prob = problem(800)
    for partition in (ct.SimplexGrid(3), ct.VarianceTree(min_leaf=20), ct.EqualWidth(4), ct.EqualWidth(4, axes="all")):
        diagram = ct.simplex_diagram(y, prob, partition=partition, n_resamples=19, rng=0)
        total = sum(area(corners) for corners in diagram.corners)
        full = isinstance(partition, ct.SimplexGrid | ct.VarianceTree)
        assert total == pytest.approx(1) if full else 0.9 < total <= 1 + 1e-9, partition
        cells = diagram_cells(prob, partition)
        for corners, rows in zip(diagram.corners, cells, strict=True):
            assert (prob[rows] >= corners.min(axis=0) - 1e-9).all(), partition
            assert (prob[rows] <= corners.max(axis=0) + 1e-9).all(), partition
    hull = ct.simplex_diagram(y, prob, partition=thirds, n_resamples=19, rng=0)
    assert sum(area(corners) for corners in hull.corners) < 1
    assert all(len(corners) >= 3 for corners in hull.corners)


def diagram_cells(prob, partition):
    """Rows of each cell, in the order of the labels."""
    label = partition.fit(prob)(prob)
    return [np.flatnonzero(label == cell) for cell in np.unique(label)]


def test_regions_of_four_classes_are_boxes_cut_with_the_simplex():
    y, prob = problem(400, 4)
    diagram = ct.simplex_diagram(y, prob, n_resamples=19, rng=0)
    assert diagram.partition == ct.VarianceTree()
    for corners, rows in zip(diagram.corners, diagram_cells(prob, ct.VarianceTree()), strict=True):
        np.testing.assert_allclose(corners.sum(axis=1), 1)
        assert (prob[rows] >= corners.min(axis=0) - 1e-9).all()
        assert (prob[rows] <= corners.max(axis=0) + 1e-9).all()


def test_hulls_of_predictions_on_a_line_and_in_a_point():
    prob = np.vstack([np.tile([0.2, 0.3, 0.5], (4, 1)), [[0.6, 0.2, 0.2], [0.7, 0.2, 0.1], [0.65, 0.2, 0.15]]])
    diagram = ct.simplex_diagram([0] * 7, prob, partition=lambda p: (p[:, 0] > 0.5).astype(int))
    assert [len(corners) for corners in diagram.corners] == [1, 2]
    np.testing.assert_allclose(np.sort(diagram.corners[1][:, 0]), [0.6, 0.7])


@pytest.mark.slow(few_draws=True)
def test_covariance_is_that_of_simulated_frequencies():
    _, prob = problem(30)
    rng = np.random.default_rng(4)
    weight = rng.random(30)
    for own in (None, weight):
        diagram = ct.simplex_diagram([0] * 30, prob, partition=ct.SimplexGrid(1), sample_weight=own, n_resamples=19)
        mass = np.ones(30) if own is None else own
        drawn = np.array([np.bincount(draw_labels(prob, rng), mass, 3) / mass.sum() for _ in range(4000)])
        found = diagram.covariance[0]
        error = np.sqrt((np.outer(np.diag(found), np.diag(found)) + found**2) / 4000)  # of nearly normal values
        assert np.all(np.abs(np.cov(drawn.T) - found) < 4 * error)


def test_odd_data():
    one_hot = ct.simplex_diagram([0, 1, 2, 2], np.eye(3)[[0, 1, 2, 1]])
    assert one_hot.count.tolist() == [1, 2, 1]
    assert one_hot.pvalue.tolist() == [1, SMALLEST_PVALUE, 1]
    constant = ct.simplex_diagram([0, 1] * 1000, np.tile([0.5, 0.25, 0.25], (2000, 1)), n_resamples=99, rng=0)
    assert (constant.n_cells, constant.pvalue.tolist()) == (1, [0.01])
    assert constant.conclusion.startswith("After Holm's correction calibration is rejected in the only cell (bin) at")
    for n in (1, 2):
        few = ct.simplex_diagram([2, 0][:n], [[0.1, 0.1, 0.8], [0.2, 0.2, 0.6]][:n])
        assert few.n_cells == n
        np.testing.assert_allclose(few.pvalue, [1.0, 0.4][:n])
        assert "does not prove that the model is calibrated" in few.conclusion
    impossible = ct.simplex_diagram([0] * 500 + [1], np.tile([0.5, 0, 0.5], (501, 1)), n_resamples=99, rng=0)
    assert impossible.pvalue.tolist() == [0.01]


def test_weights_and_groups():
    y, prob = problem(300, temperature=1.5)
    options = {"n_resamples": 499, "rng": 0, "partition": ct.SimplexGrid(2)}
    plain = ct.simplex_diagram(y, prob, **options)
    same = ct.simplex_diagram(y, prob, sample_weight=np.full(300, 2.0), **options)
    np.testing.assert_allclose(same.observed, plain.observed)
    np.testing.assert_allclose(same.pvalue, plain.pvalue)
    without = ct.simplex_diagram(y, prob, sample_weight=(prob[:, 0] < 0.5).astype(float), **options)
    assert without.n_cells == 3, "a cell without weight shows nothing"
    copies = ct.simplex_diagram(
        np.repeat(y, 4), np.repeat(prob, 4, axis=0), groups=np.repeat(np.arange(300), 4), **options
    )
    naively = ct.simplex_diagram(np.repeat(y, 4), np.repeat(prob, 4, axis=0), **options)
    assert copies.n_groups == 300
    assert (copies.pvalue >= naively.pvalue).all()
    assert np.all(np.abs(copies.pvalue - plain.pvalue) < 4 * np.sqrt(plain.pvalue * (1 - plain.pvalue) / 499))
    assert "random signs of 300 groups" in copies.origin
    check_refused(
        ct.simplex_diagram, ValueError, "`correction` must be one of 'holm', 'bonferroni', got 'sidak'",
        y, prob, groups=np.arange(300) // 2, correction="sidak",
    )  # fmt: skip


def test_the_same_seed_gives_the_same_result_and_nothing_is_changed():
    y, prob = problem(3000)
    before = prob.copy()
    one, two = (ct.simplex_diagram(y, prob, n_resamples=199, partition=ct.SimplexGrid(2), rng=5) for _ in range(2))
    np.testing.assert_array_equal(one.pvalue, two.pvalue)
    np.testing.assert_array_equal(prob, before)


def test_outcomes_are_named():
    y, prob = problem(60, 5)
    letters = list("abcde")
    cases = {
        ct.TopK(2): ("most probable class", "second class", "none of these"),
        ct.ClassGroups([[0], [1], [2, 3, 4]]): ("class 0", "class 1", "classes 2, 3, 4"),
    }
    for lens, expected in cases.items():
        assert ct.simplex_diagram(y, prob, lens=lens).outcomes == expected
    named = ct.simplex_diagram(np.array(letters)[y], prob, classes=letters, lens=ct.ClassGroups([[0], [1], [2, 3, 4]]))
    assert named.outcomes == ("a", "b", "c, d, e")
    assert ct.simplex_diagram(*problem(9)).outcomes == ("class 0", "class 1", "class 2")
    reverse = ct.simplex_diagram(*problem(9), lens=lambda p, y: (p[:, ::-1], 2 - y))
    assert reverse.outcomes == ("outcome 0", "outcome 1", "outcome 2")


def test_refusals():
    y, prob = problem(20, 10)
    with pytest.raises(
        ValueError, match=r"three or four outcomes, got 10 behind Canonical\(\); choose a `lens`: TopK"
    ) as e:
        ct.simplex_diagram(y, prob)
    assert "ClassGroups([[0], [1], [2, ..., 9]]) for single classes and the rest." in str(e.value)
    with pytest.raises(
        ValueError, match=r"got 2 behind Canonical\(\); draw two outcomes with reliability_curve\(...\)."
    ):
        ct.simplex_diagram([0, 1], [0.2, 0.8])
    with pytest.raises(ValueError, match="`SimplexGrid` needs a lens with three outcomes"):
        ct.simplex_diagram(*problem(20, 4), partition=ct.SimplexGrid(3))
    for wrong in ({"alpha": 5}, {"correction": "fdr_bh"}, {"n_resamples": 0}, {"region": lambda p: p[:, 0] > 2}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must"):
            ct.simplex_diagram(*problem(20), **wrong)


def test_too_few_draws_are_noted():
    y, prob = problem(3000)
    (note,) = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(2), n_resamples=19, rng=0).notes
    assert note.code == "C205"
    assert "With 19 draws and 4 cells tested by draws their adjusted p-values cannot be below 0.2" in note.text
    assert ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(2), n_resamples=79, rng=0).notes == ()
    assert ct.simplex_diagram(*problem(50), n_resamples=1).notes == (), "no cell is tested by draws"


PRINTED = """
Simplex diagram (groups 0, 1, 2 | 3, 4, 5 | 6, 7, 8, 9, 899 observations,
SimplexGrid(2), 4 cells)
After Holm's correction calibration is rejected in 3 of the 4 cells (bins) at
the 5 % level; they hold 99.9 % of the observations. The largest deviation
there: 'classes 6, 7, 8, 9' has the frequency 0.825 where 0.989 is predicted
(378 observations).

 predicted             observed  count  p-value  adjusted p  rejected
 0.00 0.01 0.99  0.10 0.07 0.83    378   0.0001      0.0004         *
 0.00 0.98 0.01  0.02 0.87 0.11    278   0.0001      0.0004         *
 1.00 0.00 0.00  0.94 0.02 0.04    242   0.0001      0.0004         *
 0.35 0.24 0.41  0.00 1.00 0.00      1   0.2390      0.2390

  Columns of predictions and frequencies: classes 0, 1, 2, classes 3, 4, 5,
    classes 6, 7, 8, 9.
  p-value: Pearson's statistic, from the exact distribution of the counts of
    outcomes, predictions fixed (valid at every sample size) in 1 cell with few
    observations; 9,999 Monte Carlo draws of the labels, predictions fixed
    (valid at every sample size) in the other 3.
  If the model is calibrated, the probability that any cell is rejected is at
    most 5 %.
"""


def test_what_is_printed():
    y, models = ct.datasets.load_digits_predictions()
    lens = ct.ClassGroups([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
    diagram = ct.simplex_diagram(y, models["naive_bayes"], lens=lens, partition=ct.SimplexGrid(2), rng=0)
    assert printed(diagram) == PRINTED.strip("\n")
    large = ct.simplex_diagram(*problem(2000), rng=0, n_resamples=99)
    assert "The 12 cells with the smallest p-values are shown; to_frame() has all" in " ".join(printed(large).split())


def test_as_frame_and_plain_objects():
    diagram = ct.simplex_diagram(*problem(200), rng=0)
    frame = diagram.to_frame()
    assert len(frame) == diagram.n_cells
    np.testing.assert_array_equal(frame[["arrow_0", "arrow_1", "arrow_2"]], diagram.arrow)
    assert frame["rejected"].tolist() == diagram.rejected.tolist()
    content = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
    assert content["corners"][0] == diagram.corners[0].tolist()
    assert (content["correction"], content["conclusion"]) == ("holm", diagram.conclusion)


def test_the_statistic_has_no_unit_of_weights():
    y, prob = problem(300)
    weight = np.random.default_rng(1).pareto(1.5, 300) + 0.2
    options = {"partition": ct.SimplexGrid(2), "n_resamples": 49, "rng": 0}
    for design in ({}, {"groups": np.arange(300) // 3}):
        one, other = (
            ct.simplex_diagram(y, prob, sample_weight=factor * weight, **options, **design)
            for factor in (1.0, 1 / weight.sum())
        )
        for name in ("statistic", "pvalue", "share", "observed", "covariance"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, err_msg=name)
    plain = ct.simplex_diagram(y, prob, **options)
    equal = ct.simplex_diagram(y, prob, sample_weight=np.full(300, 0.01), **options)
    np.testing.assert_allclose(equal.statistic, plain.statistic, rtol=1e-9)
    whole = ct.simplex_diagram(y, prob, sample_weight=weight, **(options | {"partition": ct.SimplexGrid(1)}))
    frequency, expected = (np.average(x, axis=0, weights=weight) for x in (np.eye(3)[y], prob))
    worth = weight.sum() ** 2 / (weight**2).sum()
    assert whole.statistic == pytest.approx([worth * ((frequency - expected) ** 2 / expected).sum()])


def test_cells_of_few_groups_are_undecidable():
    y, prob = problem(300)
    few = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(1), groups=np.arange(300) % 4, rng=0)
    assert "1 of the 1 cells (bins) are undecidable" in " ".join(note.text for note in few.notes)
    assert "no adjusted p-value below 0.12 is possible" in " ".join(note.text for note in few.notes)
    many = ct.simplex_diagram(y, prob, partition=ct.SimplexGrid(1), groups=np.arange(300) % 40, rng=0)
    assert "undecidable" not in " ".join(note.text for note in many.notes)
