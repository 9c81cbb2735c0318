"""States of more than two outcomes: the answers in memory, and draws that batches and their order do not change."""

import math

import numpy as np
import pytest
from scipy import stats

import caltest
from caltest import ECE, MCE, Canonical, EqualWidth, SquaredL2
from caltest.predictions import ClassGroups, FixedTree, SimplexGrid, TopK, euclidean
from caltest.statistics import OverConfidence, TemperatureScore
from caltest.streaming import CalibrationState, RedrawnCells, arrow_states, equal_mass_cells, scan
from tests.reference.cases import mostly_slow
from tests.reference.redrawn import redrawn


def problem(kind: str, n: int = 1500, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p = {
        "vague": lambda: rng.dirichlet(np.full(k, 5.0), n),
        "sharp": lambda: rng.dirichlet(np.full(k, 0.05), n),
        "rare": lambda: rng.dirichlet([1e-3, 1e-3, 1.0, *np.full(k - 3, 2.0)], n),
        "ties": lambda: rng.multinomial(8, np.full(k, 1 / k), n) / 8,
        "decimals": lambda: (rng.multinomial(994, np.full(k, 1 / k), n) + 1.5) / 1000,
        "float32": lambda: rng.dirichlet(np.ones(k), n).astype(np.float32),
        "one-hot": lambda: np.eye(k)[rng.integers(k, size=n)],
        "constant": lambda: np.tile(np.arange(1, k + 1) / (k * (k + 1) / 2), (n, 1)),
        "one": lambda: rng.dirichlet(np.ones(k), 1),
        "two": lambda: rng.dirichlet(np.ones(k), 2),
    }[kind]()
    exact = p.astype(float) / p.astype(float).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(k, p=row) for row in exact])
    return y, p


KINDS = ["vague", "sharp", "rare", "ties", "decimals", "float32", "one-hot", "constant", "one", "two"]
CELLS = RedrawnCells(EqualWidth(4), n_resamples=99)
STATISTICS = [
    ECE(EqualWidth(4)),
    ECE(EqualWidth(2), distance=euclidean),
    MCE(EqualWidth(4)),
    MCE(EqualWidth(1)),
    SquaredL2(EqualWidth(4)),
    SquaredL2(EqualWidth(2), "t-cal"),
    SquaredL2(EqualWidth(4), "kumar"),
    TemperatureScore(),
    OverConfidence(),
]


@pytest.mark.parametrize("kind", mostly_slow(KINDS))
def test_statistics_agree_with_those_in_memory(kind):
    y, p = problem(kind)
    state = CalibrationState(4, Canonical(), CELLS).update(y, p)
    for statistic in STATISTICS:
        expected = caltest.calibration_error(y, p, lens=Canonical(), statistic=statistic)
        # Logarithms are summed up in units of 2^-44.
        atol = len(y) * 2.0**-43 if isinstance(statistic, TemperatureScore) else 1e-13
        np.testing.assert_allclose(state.error(statistic), expected, rtol=1e-12, atol=atol, err_msg=str(statistic))
    for score in ("brier_score", "log_score"):
        expected = getattr(caltest.estimation, score)(y, p)
        np.testing.assert_allclose(getattr(state, score)(), expected, rtol=1e-12, atol=1e-13, err_msg=score)


@pytest.mark.parametrize(
    ("lens", "partition"),
    mostly_slow(
        [
            (ClassGroups([[0, 1], [2], [3]]), SimplexGrid(5)),
            (TopK(2), SimplexGrid(3)),
            (TopK(3), EqualWidth(3, axes="all", closed="right")),
            (Canonical(), FixedTree.grow(problem("vague")[1], caltest.VarianceTree(max_cells=16))),
        ]
    ),
)
def test_lenses_and_cells(lens, partition):
    y, p = problem("vague")
    state = CalibrationState(4, lens, RedrawnCells(partition, 19)).update(y, p)
    for statistic in (ECE(partition), SquaredL2(partition), ECE(EqualWidth(1))):
        expected = caltest.calibration_error(y, p, lens=lens, statistic=statistic)
        assert state.error(statistic) == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert state.error() == state.error(ECE(partition))
    assert CalibrationState.from_bytes(state.to_bytes()) == state


@pytest.mark.parametrize("n_outcomes", [3, 40])
def test_draws_are_those_of_the_slow_twin(n_outcomes):
    """Few outcomes are compared one after the other, many are found by bisection."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(n_outcomes, 0.3), 50)
    p[:3, :] = np.eye(n_outcomes)[[0, 1, n_outcomes - 1]]
    state = CalibrationState(n_outcomes, Canonical(), RedrawnCells(EqualWidth(1), 29, rng=5))
    state.update(np.argmax(p, axis=1), p, source="a", first_row=7)
    drawn = [redrawn(row.tolist(), 5, "a", 7 + i, 29) for i, row in enumerate(p)]
    counts = state._answers().sums.outcomes[1:, 0]
    expected = [np.bincount(some, minlength=n_outcomes) for some in zip(*drawn, strict=True)]
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("kind", mostly_slow(["vague", "sharp", "ties"]))
def test_any_batches_any_order_and_any_merging_are_the_same(kind):
    y, p = problem(kind, 600)
    whole = CalibrationState(4, Canonical(), CELLS).update(y, p)
    one_by_one = CalibrationState(4, Canonical(), CELLS)
    for i in range(600):
        one_by_one.update(y[i : i + 1], p[i : i + 1])
    assert one_by_one == whole
    starts = np.random.default_rng(0).permutation(range(0, 600, 50))
    parts = [
        CalibrationState(4, Canonical(), CELLS).update(y[i : i + 50], p[i : i + 50], first_row=i)
        for i in starts.tolist()
    ]
    left, right = sum(parts[:5], CalibrationState(4, Canonical(), CELLS)), parts[5]
    for part in parts[6:]:
        right = part + right
    merged = CalibrationState.from_bytes((left + right).to_bytes())
    assert merged == whole
    assert merged.to_bytes() == whole.to_bytes()
    result = whole.test()
    assert result.pvalue == merged.test().pvalue
    assert (result.n_samples, result.n_outcomes, result.null.values.size) == (600, 4, 99)
    assert CalibrationState(4, Canonical(), RedrawnCells(EqualWidth(4), 99, rng=1)).update(y, p) != whole


@pytest.mark.slow(few_draws=True)
def test_draws_have_the_predicted_probabilities():
    """Counts of each outcome, of pairs of replicates and of pairs of rows."""
    p = np.array([0.5, 0.3, 0.0, 0.2 - 1e-3, 1e-3])
    n, n_resamples = 2000, 500
    state = CalibrationState(5, Canonical(), RedrawnCells(EqualWidth(1), n_resamples))
    state.update(np.zeros(n, dtype=int), np.tile(p, (n, 1)))
    counts = state._answers().sums.outcomes[1:, 0]
    assert (counts[:, 2] == 0).all()
    std = np.sqrt(p * (1 - p) / (n * n_resamples))
    np.testing.assert_array_less(np.abs(counts.mean(axis=0) / n - p), 4 * std + 1e-15)
    # The variance over replicates is binomial, so that rows are independent of each other.
    ratio = counts.var(axis=0)[[0, 1, 3, 4]] / (n * p * (1 - p))[[0, 1, 3, 4]]
    assert np.abs(ratio - 1).max() < 4 * math.sqrt(2 / n_resamples)
    drawn = np.array([redrawn(p.tolist(), 0, "", i, 2) for i in range(20_000)])
    table = np.histogram2d(*drawn.T, bins=[[0, 1, 2, 5], [0, 1, 2, 5]])[0]
    assert stats.chi2_contingency(table).pvalue > 6e-5  # 4 standard errors


def test_probabilities_far_below_the_resolution_of_32_bits_are_drawn():
    n, tiny = 50_000, 2e-5
    p = np.array([1 - 1e-11 - tiny, 1e-11, tiny])
    state = CalibrationState(3, Canonical(), RedrawnCells(EqualWidth(1), 200)).update(
        np.zeros(n, dtype=int), np.tile(p, (n, 1))
    )
    counts = state._answers().sums.outcomes[1:, 0].sum(axis=0)
    expected = n * 200 * tiny
    assert abs(counts[2] - expected) < 4 * math.sqrt(expected)
    assert counts[1] <= 1


@pytest.mark.parametrize("kind", ["vague", "sharp", "decimals"])
def test_pvalues_agree_with_those_in_memory(kind):
    y, p = problem(kind, 400)
    y = np.where(np.random.default_rng(3).random(400) < 0.05, 0, y)
    cells = RedrawnCells(EqualWidth(4), 1999)
    state = CalibrationState(4, Canonical(), cells).update(y, p)
    for statistic in (ECE(EqualWidth(2)), SquaredL2(EqualWidth(4)), TemperatureScore()):
        options = {"lens": Canonical(), "statistic": statistic, "method": "monte-carlo", "n_resamples": 1999}
        expected = caltest.calibration_test(y, p, rng=0, **options)
        found = state.test(statistic)
        error = math.sqrt(expected.pvalue * (1 - expected.pvalue) * 2 / 2000)
        assert abs(found.pvalue - expected.pvalue) < 4 * error + 1e-3, statistic
        spread = math.sqrt(2 / 2000) * expected.null.std
        assert abs(found.noise_floor - expected.noise_floor) < 4 * spread, statistic


def check_level(kind, n_sets):
    """With 19 draws p-values are multiples of 1 / 20, and at most 1 / 20 in one of 20 data sets."""
    n = 60
    rng = np.random.default_rng(4)
    _, p = problem(kind, n)
    small = 0
    for r in range(n_sets):
        y = (rng.random((n, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        state = CalibrationState(4, Canonical(), RedrawnCells(EqualWidth(4), 19, rng=r)).update(y, p)
        small += state.test().pvalue <= 0.05
    assert small <= stats.binom.isf(6e-5, n_sets, 0.05)


@pytest.mark.slow(few_draws=True)
def test_level():
    check_level("ties", 100)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["ties", "vague", "sharp", "rare"])
def test_level_in_many_data_sets(kind):
    check_level(kind, 1000)


def test_an_impossible_label_has_the_smallest_pvalue():
    y, p = problem("one-hot", 100)
    state = CalibrationState(4, Canonical(), CELLS).update(y, p)
    assert state.test().pvalue == 1.0
    state.update([(y[0] + 1) % 4], p[:1])
    result = state.test()
    assert result.pvalue == 0.01
    assert [note.code for note in result.notes if note.code == "C201"] == ["C201"]
    assert state.log_score() == math.inf
    assert state.error(TemperatureScore()) == math.inf


def test_many_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(1000, 0.02), 300)
    y = np.argmax(p, axis=1)
    tree = FixedTree.grow(p[:100], caltest.VarianceTree(max_cells=4))
    state = CalibrationState(1000, Canonical(), RedrawnCells(tree, 19)).update(y, p)
    expected = caltest.calibration_error(y, p, lens=Canonical(), statistic=ECE(tree))
    assert state.error() == pytest.approx(expected, rel=1e-12)
    assert state.error() <= state.test().null.values.max()
    assert state.update(rng.integers(1000, size=300), p).test(TemperatureScore()).pvalue == 0.05


@pytest.mark.slow(few_draws=True)
def test_a_scan_gives_the_same_draws_for_any_workers(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    y, p = problem("vague", 3000)
    columns = {"label": y, **{f"p_{k}": p[:, k] for k in range(4)}}
    table = pa.table(columns)
    for k in range(3):
        pq.write_table(table.slice(1000 * k, 1000), tmp_path / f"{k}.parquet", row_group_size=300)
    options = {"lens": Canonical(), "micro_cells": CELLS}
    found = scan(tmp_path, **options)
    assert scan(tmp_path, workers=3, **options) == found
    output = tmp_path / "state.npz"
    scan(tmp_path / "0.parquet", output=output, **options)
    assert scan(tmp_path, output=output, **options) == found
    whole = CalibrationState(4, **options).update(y, p)
    for statistic in STATISTICS:
        assert found.error(statistic) == whole.error(statistic)
    assert abs(found.test().noise_floor - whole.test().noise_floor) < 4 * math.sqrt(2 / 99) * whole.test().null.std
    assert scan(table, **options) == whole
    assert (scan(table, name="monday", **options) + whole).n_samples == 6000
    with pytest.raises(ValueError, match="`name`"):
        scan(tmp_path, name="monday", **options)
    with pytest.raises(ValueError, match="counted already"):
        found + scan(tmp_path / "0.parquet", **options)
    again = tmp_path / "again"
    again.mkdir()
    pq.write_table(table.slice(0, 900), again / "0.parquet")
    [first], [second] = ([*scan(tmp_path / "0.parquet", **options)._table.rows], [*scan(again, **options)._table.rows])
    assert first[0].split()[-1] != second[0].split()[-1]  # the same name, another content


def test_a_file_is_the_same_by_every_path(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    y, p = problem("vague", 100)
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"label": y, **{f"p_{k}": p[:, k] for k in range(4)}}), tmp_path / "a" / "0.parquet")
    monkeypatch.chdir(tmp_path)
    options = {"lens": Canonical(), "micro_cells": CELLS}
    relative, absolute = scan("a/0.parquet", **options), scan(tmp_path / "a", **options)
    assert relative == absolute
    with pytest.raises(ValueError, match="counted already"):
        relative + absolute
    paths = ["a/0.parquet", tmp_path / "a" / "0.parquet"]
    assert scan(paths, **options) == relative
    assert scan(paths, lens=caltest.Confidence()).n_samples == 100


def test_a_partition_without_a_name_is_told_apart_by_its_rows():
    import pyarrow as pa

    y, p = problem("vague", 400)
    table = pa.table({"label": y, **{f"p_{k}": p[:, k] for k in range(4)}})
    function = arrow_states("label", [f"p_{k}" for k in range(4)], lens=Canonical(), micro_cells=CELLS)

    def state_of(part):
        [found] = function(part.to_batches(max_chunksize=70))
        return CalibrationState.from_bytes(found["state"][0].as_py())

    first, second = state_of(table.slice(0, 200)), state_of(table.slice(200))
    both = first + second
    assert both.n_samples == 400
    assert both.error() == CalibrationState(4, Canonical(), CELLS).update(y, p).error()
    with pytest.raises(ValueError, match="counted already"):
        both + first


def test_a_refused_batch_or_state_changes_nothing(monkeypatch):
    y, p = problem("vague", 100)
    state = CalibrationState(4, Canonical(), CELLS).update(y, p)
    before = state.to_bytes()
    for refused in (
        lambda: state.update(y, np.where(np.arange(100)[:, None] == 99, np.nan, p)),
        lambda: state.update(y, p, first_row=50),
        lambda: state.merge(CalibrationState(4, Canonical(), CELLS).update(y[:1], p[:1])),
        lambda: state.update([4], p[:1]),
    ):
        with pytest.raises(ValueError, match=r"finite|counted already|y_true"):
            refused()
        assert state.to_bytes() == before
    monkeypatch.setattr("caltest.streaming.states._table.MOST_COUNTS", 100 * 4 * 3)
    with pytest.raises(ValueError, match="more than 3 cells"):
        CalibrationState(4, Canonical(), CELLS).update(y, p)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: RedrawnCells(caltest.EqualMass(4)), TypeError, "FixedTree"),
        (lambda: RedrawnCells(EqualWidth("sqrt")), ValueError, "number of observations"),
        (lambda: RedrawnCells(n_resamples=0), ValueError, "n_resamples"),
        (lambda: RedrawnCells(rng=-1), ValueError, "rng"),
        (lambda: CalibrationState(1000, Canonical()), ValueError, "FixedTree"),
        (lambda: CalibrationState(4, Canonical(), RedrawnCells(SimplexGrid(3))), ValueError, "three outcomes"),
        (lambda: CalibrationState(4, Canonical()).update([0], [[0.25] * 4], first_row=-1), ValueError, "first_row"),
        (lambda: CalibrationState(4, Canonical()).update([0], [[0.25] * 4], first_row=2**70), ValueError, "first_row"),
        (lambda: small().error(ECE(EqualWidth(3))), ValueError, "divides 4"),
        (lambda: small().error(ECE()), ValueError, "divides 4"),
        (lambda: small().error(caltest.KS()), ValueError, "10 outcomes|4 outcomes"),
        (lambda: small().test(caltest.statistics.TCal(3)), ValueError, "estimates no error"),
        (lambda: small().test(3), TypeError, "statistic"),
        (lambda: small().test(n_resamples=99), ValueError, "n_resamples=99"),
        (lambda: small().curve(), ValueError, "Confidence"),
        (lambda: equal_mass_cells(small()), ValueError, "two outcomes"),
        (lambda: CalibrationState(4, Canonical()).test(), ValueError, "empty"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def small() -> CalibrationState:
    return CalibrationState(4, Canonical()).update([0], [[0.25] * 4])


def test_the_report_names_the_draws():
    y, p = problem("vague", 200)
    text = str(CalibrationState(4, Canonical()).update(y, p).test())
    assert "199 Monte Carlo draws of the outcomes of every observation" in " ".join(text.split())


def test_integers_of_numpy_are_kept():
    """A state that took them must be saved, and be that of plain integers."""
    y, p = problem("vague", 50)
    plain = CalibrationState(4, Canonical(), RedrawnCells(EqualWidth(2), 19, rng=3)).update(y, p)
    cells = RedrawnCells(EqualWidth(np.int64(2)), np.int32(19), rng=np.int64(3))
    state = CalibrationState(np.int64(4), Canonical(), cells).update(y, p)
    assert state.to_bytes() == plain.to_bytes()
    assert (state + CalibrationState.from_bytes(CalibrationState(4, Canonical(), cells).to_bytes())) == plain
    two = CalibrationState(np.int64(4), caltest.ClassWise(np.int64(1)), np.int64(4096))
    assert two.fingerprint == CalibrationState(4, caltest.ClassWise(1)).fingerprint


def test_draws_that_were_made_take_no_other_seed():
    y, p = problem("vague", 50)
    state = CalibrationState(4, Canonical()).update(y, p)
    with pytest.raises(ValueError, match=r"`rng` is not for this state, .* RedrawnCells\(rng=\.\.\.\), got 3"):
        state.test(rng=3)


def test_a_large_tree_is_named_by_its_size():
    """In reports, refusals and code; different trees are told apart."""
    y, p = problem("vague", 400)
    trees = [caltest.FixedTree.grow(p[:n], caltest.VarianceTree(max_cells=32)) for n in (300, 400)]
    one, other = (CalibrationState(4, Canonical(), RedrawnCells(tree)).update(y, p) for tree in trees)
    assert repr(trees[0]) != repr(trees[1])
    with pytest.raises(ValueError, match="must have the same settings") as refused:
        one.merge(other)
    for text in (repr(one), str(refused.value)):
        assert repr(trees[0]) in text
    assert len(str(one.test())) < 2000
    small = caltest.FixedTree.grow(p, caltest.VarianceTree(max_cells=4))
    assert eval(repr(small), {"FixedTree": caltest.FixedTree}) == small


def test_the_least_probabilities_score_as_in_memory():
    """Probabilities below the smallest normal number of the machine are no zeros."""
    p = np.array([[1.0, 5e-324, 1e-310]] * 3)
    score = caltest.TemperatureScore()
    state = CalibrationState(3, Canonical(), CELLS).update([0, 1, 2], p)
    np.testing.assert_allclose(state.error(score), caltest.calibration_error([0, 1, 2], p, statistic=score), rtol=1e-12)
    two = CalibrationState().update([1, 0], [5e-324, 0.5])
    expected = caltest.calibration_error([1, 0], [5e-324, 0.5], statistic=score)
    np.testing.assert_allclose(two.error(score), expected, rtol=1e-12)


def test_a_source_may_have_any_text():
    """Names of files that are no UTF-8 have such characters."""
    state = CalibrationState(3, caltest.Canonical()).update([0], [[0.5, 0.25, 0.25]], source="\udcff\0é")
    assert CalibrationState.from_bytes(state.to_bytes()) == state
    assert state.test().pvalue > 0
