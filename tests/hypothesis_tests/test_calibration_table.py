"""Several lenses on one set of draws."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

import caltest as ct
from caltest.hypothesis_tests._calibration_table import View
from tests.reference import naive

FOUR_SE = 4.0


def draw(rng, prob):
    return (rng.random(len(prob))[:, None] > prob.cumsum(axis=1)[:, :-1]).sum(axis=1)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(4), 300)
    return draw(rng, prob), prob


def test_default_rows(problem):
    table = ct.calibration_table(*problem, n_resamples=99, rng=0)
    assert [row.lens for row in table] == ["Canonical()", "Confidence()"] + [f"ClassWise(k={k})" for k in range(4)]
    two = ct.calibration_table(problem[0] == 0, problem[1][:, 0], n_resamples=99, rng=0)
    assert [row.lens for row in two] == ["Canonical()", "Confidence()"]


def test_canonical_row_is_the_test_itself(problem):
    table = ct.calibration_table(*problem, n_resamples=199, rng=7)
    alone = ct.calibration_test(*problem, n_resamples=199, rng=7)
    np.testing.assert_array_equal(table.rows[0].null_distribution, alone.null_distribution)
    assert tuple(table.rows[0]) == tuple(alone)


@pytest.mark.parametrize(
    "lens", [ct.Confidence(), ct.ClassWise(2), ct.TopK(2), ct.WithinTop(2), ct.Groups([[0, 3], [1, 2]]), ct.TopRank(2)]
)
def test_shared_draws_seen_through_a_lens_are_the_lens_of_the_draws(problem, lens):
    """The mapped outcomes equal the lens applied to the drawn classes themselves."""
    from caltest.predictions._sample import induce

    y, prob = problem
    base = induce(prob, y)
    view = View.of(lens, prob, y, base)
    drawn = np.random.default_rng(1).integers(0, 4, (3, len(y))).astype(np.uint8)
    for seen, classes in zip(view.outcomes(drawn), drawn, strict=True):
        expected = np.asarray(lens(prob, classes.astype(int))[1])[view.sample.row]
        np.testing.assert_array_equal(seen, expected)


def test_a_row_agrees_with_its_own_test(problem):
    """Class draws behind a lens and draws of the induced outcome have the same law."""
    n_resamples = 4000
    statistic = ct.ECE(ct.EqualWidth(5))
    table = ct.calibration_table(
        *problem, lenses=[ct.Confidence(), ct.ClassWise(0)], statistic=statistic, n_resamples=n_resamples, rng=1
    )
    alone = ct.calibration_test(
        *problem, lens=ct.Confidence(), statistic=statistic, n_resamples=n_resamples, method="monte-carlo", rng=2
    )
    a, b = table.rows[0].null_distribution, alone.null_distribution
    assert abs(a.mean() - b.mean()) < FOUR_SE * np.sqrt((a.var() + b.var()) / n_resamples)
    assert table.rows[0].statistic == pytest.approx(alone.statistic, abs=1e-14)


def test_corrected_and_global_pvalues(problem):
    statistic = ct.KS()
    lenses = [ct.Confidence(), ct.ClassWise(0), ct.ClassWise(1)]
    table = ct.calibration_table(*problem, lenses=lenses, statistic=statistic, n_resamples=199, rng=3)
    expected = multipletests([row.pvalue for row in table], method="holm")[1]
    np.testing.assert_allclose(table.pvalue_corrected, expected)
    rows = [[row.statistic, *row.null_distribution] for row in table]
    ranks = [naive.tail_pvalues(row) for row in rows]
    assert table.pvalue == pytest.approx(naive.combine_pvalues(ranks)[0], abs=1e-14)


def test_workers_change_nothing(problem):
    one = ct.calibration_table(*problem, n_resamples=600, rng=4)
    two = ct.calibration_table(*problem, n_resamples=600, rng=4, workers=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.null_distribution, b.null_distribution)
    assert one.pvalue == two.pvalue


def test_global_pvalue_holds_its_level():
    rng = np.random.default_rng(5)
    prob = rng.dirichlet(np.ones(3), 100)
    n_sets, lenses = 200, [ct.Canonical(), ct.Confidence()]
    rejected = sum(
        ct.calibration_table(draw(rng, prob), prob, lenses=lenses, n_resamples=99, rng=i).pvalue <= 0.05
        for i in range(n_sets)
    )
    assert rejected <= binom.ppf(1 - 1e-4, n_sets, 0.05)


def test_report_and_json(problem):
    table = ct.calibration_table(*problem, n_resamples=99, rng=0)
    text = str(table)
    for part in ("noise floor", "p (Holm)", "ClassWise(k=3)", "global p-value", "TemperatureScore()"):
        assert part in text
    content = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert {"statistic", "noise_floor", "pvalue", "pvalue_corrected", "lens"} <= set(content["rows"][0])
    assert content["pvalue"] == table.pvalue
    single = str(ct.calibration_table(*problem, statistic=ct.ECE(), n_resamples=99, rng=0))
    assert "score" not in single


def test_impossible_label_makes_every_affected_row_smallest():
    prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    y = np.array([0, 1] + [1, 2] * 19)
    table = ct.calibration_table(y, prob, n_resamples=99, rng=0)
    canonical, confidence, first = table.rows[0], table.rows[1], table.rows[2]
    assert canonical.pvalue == first.pvalue == table.pvalue == 0.01
    assert canonical.impossible_rows.tolist() == first.impossible_rows.tolist() == [0]
    assert confidence.impossible_rows.size == 0


def test_a_single_row_has_its_exact_law(problem):
    statistic = ct.ECE(ct.EqualWidth(5))
    table = ct.calibration_table(*problem, lenses=[ct.Confidence()], statistic=statistic)
    alone = ct.calibration_test(*problem, lens=ct.Confidence(), statistic=statistic)
    assert table.rows[0].method == alone.method == "exact"
    assert table.pvalue == table.pvalue_corrected[0] == alone.pvalue


def test_notes_of_the_rows_stand_under_the_table():
    prob = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 20)
    table = ct.calibration_table(np.array([0, 1] + [1, 2] * 19), prob, n_resamples=99, rng=0)
    assert any("Canonical(): 1 label(s) had been given probability 0" in note for note in table.notes)
    assert "had been given probability 0" in str(table)
    assert table.to_dict()["notes"] == list(table.notes)


def test_classes_are_named(problem):
    y, prob = problem
    names = np.array(["ant", "bee", "cat", "dog"])
    table = ct.calibration_table(names[y], prob, classes=names, n_resamples=119, rng=0)
    assert [row.lens for row in table][2:] == [f"ClassWise(k={k}) {name}" for k, name in enumerate(names)]


def test_too_few_draws_are_said(problem):
    table = ct.calibration_table(*problem, n_resamples=99, rng=0)
    assert "99 draws are too few: no corrected p-value can be below 0.06; take 120 draws or more." in table.notes
    assert not ct.calibration_table(*problem, n_resamples=119, rng=0).notes


def test_frame_and_html(problem):
    table = ct.calibration_table(*problem, n_resamples=119, rng=0)
    frame = table.to_frame()
    assert frame["pvalue"].tolist() == [row.pvalue for row in table]
    assert frame["pvalue_corrected"].tolist() == table.pvalue_corrected.tolist()
    assert "<pre>" in table._repr_html_()


def test_lenses_must_be_a_list(problem):
    with pytest.raises(ValueError, match=r"`lenses` must be a list of lenses, got Confidence\(\)"):
        ct.calibration_table(*problem, lenses=ct.Confidence())


def test_a_statistic_is_required_and_none_means_canonical(problem):
    with pytest.raises(ValueError, match=r"`statistic` must be a Statistic such as ECE\(\) or Omnibus\(\), got 'ece'"):
        ct.calibration_table(*problem, statistic="ece")
    table = ct.calibration_table(*problem, lenses=[None, ct.Confidence()], n_resamples=119, rng=0)
    assert table.rows[0].lens == "Canonical()"


def test_no_lens_is_refused(problem):
    with pytest.raises(ValueError, match="`lenses` must hold at least one lens"):
        ct.calibration_table(*problem, lenses=[])


def test_a_single_row_takes_an_exact_law_only_where_it_is_accurate(problem, monkeypatch):
    """As `calibration_test` does: a law that is off by a third is left to draws."""
    exact = ct.ECE.exact
    monkeypatch.setattr(
        ct.ECE,
        "exact",
        lambda self, sample: (
            (law := exact(self, sample)) and (law[0], replace(law[1], probability=0.2, relative_error=0.3))
        ),
    )
    y, prob = problem
    lens = ct.Confidence()
    table = ct.calibration_table(y, prob, lenses=[lens], statistic=ct.ECE(ct.EqualWidth(5)), n_resamples=99, rng=0)
    test = ct.calibration_test(y, prob, lens=lens, statistic=ct.ECE(ct.EqualWidth(5)), n_resamples=99, rng=0)
    assert table.rows[0].method == test.method == "monte-carlo"
