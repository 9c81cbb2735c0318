"""Cells of fitted partitions and sums over them, against their loops."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import caltest
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import Cells, CellSums, cell_dtype, cells_of
from tests.predictions.cells.test_partitions import fits
from tests.reference import naive
from tests.reference.examples import VIEWS

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@cache
def sample_of(view, weighted):
    """The sample behind a view serves all partitions."""
    weight = view.problem.weight if weighted else None
    return make_sample(view.y_true, view.y_prob, lens=view.lens, sample_weight=weight)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_cell_sums_equal_the_loops(any_partition, every):
    """Views in turn with and without weights; every view with both if slow."""
    for number, view in enumerate(view for view in VIEWS if fits(any_partition, view.induced[0])):
        weights = (None, view.problem.weight)
        for weight in weights if every else weights[number % 2 :][:1]:
            case = f"{view}, {'weighted' if weight is not None else 'not weighted'}"
            sample = sample_of(view, weight is not None)
            cells = cells_of(sample, any_partition)
            assert cells is cells_of(sample, any_partition), case  # fitted once
            outcomes = np.stack([sample.outcome, (sample.outcome + 1) % sample.n_outcomes])[:, None].astype(np.uint8)
            sums = CellSums.of(sample, cells, outcomes)
            assert sums.observed_count.shape == (2, 1, cells.n_cells, sample.n_outcomes), case
            prob = sample.prob.tolist()
            for r in range(2):
                expected = naive.cell_sums(cells.index.tolist(), prob, outcomes[r, 0].tolist(), sample.weight)
                count, predicted, observed = zip(*(expected[label] for label in range(cells.n_cells)), strict=True)
                np.testing.assert_allclose(sums.count, count, **EXACT, err_msg=case)
                np.testing.assert_allclose(sums.predicted_sum, predicted, **EXACT, err_msg=case)
                np.testing.assert_allclose(sums.observed_count[r, 0], observed, **EXACT, err_msg=case)
            assert sums.share.sum() == pytest.approx(1, rel=1e-12), case


def test_observations_of_a_cell():
    """Whether or not observations are sorted by cell."""
    rng = np.random.default_rng(0)
    for prob in (rng.random(40), rng.dirichlet(np.ones(3), size=40)):
        sample = make_sample(np.zeros(40, dtype=int), prob)
        cells = cells_of(sample, caltest.EqualWidth(4))
        assert (cells.start is None) == (sample.n_outcomes > 2)
        parts = cells.split(sample.row)
        assert [len(part) for part in parts] == cells.count.tolist()
        for cell, part in enumerate(parts):
            np.testing.assert_array_equal(part, sample.row[cells.index == cell])
        np.testing.assert_array_equal(cells.label[cells.index], cells.assign(sample.prob))
        assert np.all(np.diff(cells.label) > 0)


def test_cells_without_weight_do_not_exist():
    sample = make_sample([0, 1, 1], [0.25, 0.25, 0.75], sample_weight=[1.0, 2.0, 0.0])
    sums = CellSums.of(sample, cells_of(sample, caltest.EqualWidth(2)), sample.outcome)
    np.testing.assert_array_equal(sums.predicted, [[0.75, 0.25]])
    np.testing.assert_allclose(sums.observed, [[1 / 3, 2 / 3]], **EXACT)


def test_cell_sums_are_of_the_null_probabilities():
    scheme = caltest.Consistency(calibration_function=lambda prob: prob[:, ::-1])
    sample = scheme.under_null(make_sample([0, 1, 1], [0.125, 0.25, 0.75]))
    cells = cells_of(sample, caltest.EqualWidth(2))
    np.testing.assert_array_equal(cells.predicted_sum, [[1.625, 0.375], [0.25, 0.75]])
    np.testing.assert_array_equal(cells.null_sum, [[0.375, 1.625], [0.75, 0.25]])
    assert CellSums.of(sample, cells, sample.outcome).predicted_sum is cells.null_sum


@st.composite
def halves(draw):
    """Two samples of 3-class observations that both occupy the cells around the corners of the simplex."""
    corners = [[0.75, 0.125, 0.125], [0.125, 0.75, 0.125], [0.125, 0.125, 0.75]]
    return [
        [(corners[k], draw(st.integers(0, 2))) for k in [0, 1, 2, *draw(st.lists(st.integers(0, 2), max_size=8))]]
        for _ in range(2)
    ]


@pytest.mark.slow(few_draws=True)
@given(halves=halves(), weighted=st.booleans())
@settings(deadline=None, derandomize=True, database=None, max_examples=40)
def test_cell_sums_of_parts_add_up(halves, weighted):
    prob, outcome = zip(*(row for part in halves for row in part), strict=True)
    whole = make_sample(outcome, prob, sample_weight=np.arange(1.0, len(prob) + 1) if weighted else None)

    def sums(sample):
        return CellSums.of(sample, Cells.of(sample, caltest.EqualWidth(2)), sample.outcome)

    parts = np.split(np.arange(len(prob)), [len(halves[0])])
    together, whole = sum((sums(whole.take(part)) for part in parts[1:]), sums(whole.take(parts[0]))), sums(whole)
    for name in ("count", "predicted_sum", "observed_count", "share", "predicted", "observed"):
        np.testing.assert_allclose(getattr(together, name), getattr(whole, name), **EXACT)


def test_sums_over_other_cells_do_not_add_up():
    sample = make_sample([0, 1, 1], [0.25, 0.25, 0.75])
    one, other = (CellSums.of(sample, cells_of(sample, caltest.EqualWidth(n)), sample.outcome) for n in (1, 2))
    with pytest.raises(ValueError, match=r"cell sums must have the same cells, got shapes \(1,\) and \(2,\)"):
        one + other


def test_the_smaller_type_holds_the_cells():
    assert [cell_dtype(n) for n in (1, 65_535, 65_536)] == [np.uint16, np.uint16, np.uint32]


@pytest.mark.slow(few_draws=True)
def test_sums_of_many_predictions_are_rounded_block_by_block():
    """One after the other they would be off by some 1e-9."""
    rng = np.random.default_rng(0)
    p = rng.random(2**20)
    sample = make_sample(rng.random(2**20) < p, p, lens=caltest.Canonical())
    cells = cells_of(sample, caltest.EqualWidth(2))
    for b in range(2):
        for k in range(2):
            exact = math.fsum(sample.given[cells.members(b), k])
            assert abs(cells.predicted_sum[b, k] - exact) < 32 * np.spacing(exact)
