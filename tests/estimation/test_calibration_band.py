"""The honest band: against every block one after the other, its coverage, its p-value and its picture."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy import stats

import caltest as ct
from tests.reference import naive

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=60)
CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def data(seed, n, places, power=1.0):
    """Scores with ties, events that follow a power of them."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), places)
    return (rng.random(n) < score**power).astype(int), score


@PROFILE
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 4), st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from([0.5, 0.95, 0.999]),
)  # fmt: skip
def test_band_equals_its_loops(seed, n, places, power, level):
    y, score = data(seed, n, places, power)
    band = ct.calibration_band(y, score, confidence_level=level)
    lower, upper, pvalue = naive.calibration_band(score.tolist(), y.tolist(), level)
    np.testing.assert_array_equal(band.score, np.unique(score))
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.pvalue == pytest.approx(max(pvalue, np.finfo(float).tiny), rel=1e-9)
    assert band.contains_diagonal == (band.pvalue >= 1 - level)
    assert np.all(band.lower <= band.recalibrated + 1e-12)
    assert np.all(band.recalibrated <= band.upper + 1e-12)


@PROFILE
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 2))
def test_rounded_scores_equal_their_loops(seed, n, digits):
    y, score = data(seed, n, 4, 2.0)
    band = ct.calibration_band(y, score, digits=digits)
    _, groups = np.unique(np.round(np.unique(score), digits), return_inverse=True)
    lower, upper, pvalue = naive.calibration_band(score.tolist(), y.tolist(), 0.95, groups.tolist())
    np.testing.assert_allclose(band.lower, lower, **CLOSE)
    np.testing.assert_allclose(band.upper, upper, **CLOSE)
    assert band.pvalue == pytest.approx(max(pvalue, np.finfo(float).tiny), rel=1e-9)
    assert band.n_groups == groups.max() + 1


def test_one_score_is_clopper_pearson():
    band = ct.calibration_band([1] * 30 + [0] * 70, np.full(100, 0.2))
    bounds = stats.binomtest(30, 100).proportion_ci(0.95)
    np.testing.assert_allclose([band.lower[0], band.upper[0]], bounds, rtol=1e-9)
    assert band.pvalue == pytest.approx(2 * stats.binom.sf(29, 100, 0.2))
    assert band.tube == pytest.approx(bounds.high - 0.2)


def test_many_rows_at_few_scores():
    """Tail probabilities of 10^5 rows keep their digits."""
    rng = np.random.default_rng(0)
    score = np.repeat([0.1, 0.5, 0.9], 100_000)
    y = rng.random(300_000) < score
    band = ct.calibration_band(y, score)
    events = np.add.reduceat(y, [0, 100_000, 200_000])
    one = stats.beta.ppf(0.05 / 12, events, 100_000 - events + 1)
    np.testing.assert_allclose(band.lower, one, rtol=1e-9)


def test_the_smallest_level_that_excludes_the_diagonal_is_the_pvalue():
    y, score = data(1, 300, 1, 2.2)
    found = ct.calibration_band(y, score).pvalue
    assert 1e-6 < found < 0.2
    assert not ct.calibration_band(y, score, confidence_level=1 - found * 1.001).contains_diagonal
    assert ct.calibration_band(y, score, confidence_level=1 - found * 0.999).contains_diagonal


def test_row_order_and_turned_events_do_not_matter():
    y, score = data(2, 200, 3)
    band = ct.calibration_band(y, score)
    order = np.random.default_rng(0).permutation(200)
    again = ct.calibration_band(y[order], score[order])
    np.testing.assert_array_equal(band.lower, again.lower)
    turned = ct.calibration_band(1 - y, 1 - score)
    np.testing.assert_allclose(1 - turned.upper[::-1], band.lower, atol=1e-13)
    assert turned.pvalue == pytest.approx(band.pvalue, rel=1e-9)


def test_an_impossible_label_excludes_calibration():
    band = ct.calibration_band([1, 0, 1], [0.0, 0.0, 1.0])
    assert band.pvalue < 1e-300
    assert ct.calibration_band([0, 0, 1], [0.0, 0.0, 1.0]).pvalue == 1


# --- coverage

FUNCTIONS = {
    "calibrated": lambda p: p,
    "constant": lambda p: np.full_like(p, 0.3),
    "steps": lambda p: 0.2 + 0.6 * (p > 0.5),
    "over-confident": lambda p: 0.3 + 0.4 * p,
}


@pytest.mark.parametrize("truth", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("digits", [None, 1])
def test_the_band_holds_increasing_functions(truth, digits):
    """At level .5 a band of this kind still holds nearly always: its bounds are many."""
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        score = rng.random(50)
        band = ct.calibration_band(rng.random(50) < truth(score), score, confidence_level=0.5, digits=digits)
        r = truth(band.score)
        held += np.all((band.lower <= r) & (r <= band.upper))
    assert held >= stats.binom.ppf(1e-4, 200, 0.5)
    assert held > 180  # so that a band too narrow by the number of blocks is found


def test_coverage_is_nominal_for_one_block():
    """A single score: two bounds, and nothing is given away but by the grid of counts."""
    rng = np.random.default_rng(5)
    held = [
        ct.calibration_band(rng.random(400) < 0.3, np.full(400, 0.3), confidence_level=0.8).contains_diagonal
        for _ in range(400)
    ]
    assert stats.binom.ppf(1e-4, 400, 0.8) <= sum(held) <= stats.binom.isf(1e-4, 400, 0.86)


# --- what it says


def test_report_and_regions():
    y, score = data(0, 2000, 2, 2.0)
    band = ct.calibration_band(y, score)
    assert not band.contains_diagonal
    regions = band.rejected_regions
    assert all(0 <= a < b <= 1 for a, b in regions)
    assert all(b < c for (_, b), (c, _) in pairwise(regions))
    inside = [any(a <= x <= b for a, b in regions) for x in band.score]
    assert np.all(np.array(inside)[band.rejected])
    text = " ".join(str(band).split())
    assert "Perfect calibration is rejected: the diagonal lies outside the band on [" in text
    assert f"within {band.tube:.4g} of every prediction made" in text
    assert band.to_frame().shape == (len(band.score), 6)
    assert band._repr_html_().startswith("<pre>")
    calm = ct.calibration_band(*data(0, 200, 2))
    assert calm.rejected_regions == []
    assert "which is no proof of it" in str(calm)
    assert "in 11 groups of 1 decimals" in str(ct.calibration_band(*data(0, 500, 2), digits=1))


def test_lenses():
    y, prob = ct.datasets.load_cifar10_vgg16()
    band = ct.calibration_band(y[:500], prob[:500])
    assert band.lens == "Confidence()"
    top = prob[:500].max(axis=1)
    np.testing.assert_allclose(band.score, np.unique(top), rtol=1e-12)
    assert ct.calibration_band([0, 1], [0.2, 0.7]).lens == "Canonical()"
    with pytest.raises(ValueError, match="`calibration_band` needs a two-outcome lens"):
        ct.calibration_band(y[:500], prob[:500], lens=ct.TopK(2))


def test_bad_arguments():
    with pytest.raises(ValueError, match="`digits` must be an integer >= 1, got 0"):
        ct.calibration_band([0, 1], [0.2, 0.7], digits=0)
    with pytest.raises(ValueError, match="`confidence_level` must lie strictly"):
        ct.calibration_band([0, 1], [0.2, 0.7], confidence_level=1.0)


# --- the picture


@pytest.mark.parametrize("style", ["classical", "deviation"])
def test_the_picture_shows_the_band(style):
    band = ct.calibration_band(*data(0, 400, 2, 2.0))
    ax = Figure(layout="constrained").subplots()
    assert ct.plot_calibration_band(band, ax, style=style) is ax
    base = 0 if style == "classical" else band.score
    (fit,) = [line for line in ax.get_lines() if line.get_label() == "isotonic fit"]
    np.testing.assert_allclose(fit.get_xydata(), np.column_stack([band.score, band.recalibrated - base]))
    (area,) = ax.collections
    corners = {(round(float(x), 9), round(float(y), 9)) for x, y in area.get_paths()[0].vertices}
    for end in (band.lower, band.upper):
        assert {
            (round(float(x), 9), round(float(y), 9)) for x, y in zip(band.score, end - base, strict=True)
        } <= corners
    thick = [line for line in ax.get_lines() if line.get_linewidth() == 3.5]
    assert [tuple(line.get_xdata()) for line in thick] == band.rejected_regions
    assert ax.get_xlabel() == "predicted probability"


def test_bad_arguments_of_the_picture():
    band = ct.calibration_band([0, 1], [0.2, 0.7])
    assert ct.plot_calibration_band(band, Figure().subplots(), legend=False).get_legend() is None
    with pytest.raises(ValueError, match="`style` must be one of"):
        ct.plot_calibration_band(band, style="pie")
    with pytest.raises(ValueError, match="`band` must be a CalibrationBand"):
        ct.plot_calibration_band("band")
