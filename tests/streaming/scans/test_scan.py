"""Scans: files, tables and batches give the state of all observations, whatever they are cut into."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltest.streaming import CalibrationState, scan
from caltest.streaming.scans._fragments import Reading

P, _CHANCE = np.random.default_rng(0).random((2, 3000))
Y = (_CHANCE < P).astype(np.int64)


@pytest.fixture
def folder(tmp_path):
    for k in range(3):
        rows = slice(1000 * k, 1000 * (k + 1))
        pq.write_table(pa.table({"label": Y[rows], "prob": P[rows]}), tmp_path / f"{k}.parquet", row_group_size=300)
    return tmp_path


def test_every_source_gives_the_same_state(folder, tmp_path):
    whole = CalibrationState().update(Y, P)
    table = pa.table({"label": Y, "prob": P})
    sources = [
        folder,
        str(folder / "*.parquet"),
        sorted(folder.iterdir()),
        table,
        table.to_pandas(),
        ((Y[i : i + 700], P[i : i + 700]) for i in range(0, 3000, 700)),
        table.to_batches(max_chunksize=999),
    ]
    for source in sources:
        assert scan(source) == whole, source
    assert scan(folder, workers=3) == whole
    lines = "\n".join(f"{y},{p!r}" for y, p in zip(Y.tolist(), P.tolist(), strict=True))
    (folder / "text.csv").write_text(f"label,prob\n{lines}\n")
    assert scan(folder / "text.csv") == whole


def test_many_classes_with_names(folder):
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), 500)
    names = np.array(["ant", "bee", "cat"])
    y = names[rng.integers(3, size=500)]
    columns = {name: prob[:, k] for k, name in enumerate(names.tolist())}
    table = pa.table({"truth": y} | dict(reversed(columns.items())))
    pq.write_table(table, folder / "named.parquet")
    expected = CalibrationState(3).update(np.searchsorted(names, y), prob)
    assert scan(folder / "named.parquet", label="truth") == expected


def test_a_bad_row_is_named_and_finished_files_are_kept(folder, monkeypatch):
    output = folder / "state.npz"
    bad = P[:1000].copy()
    bad[700] = np.nan
    broken = folder / "3.parquet"
    pq.write_table(pa.table({"label": Y[:1000], "prob": bad}), broken, row_group_size=300)
    with pytest.raises(ValueError, match=r"3\.parquet, row group 2, .* row 600 .*row 100"):
        scan(folder, output=output)
    kept = CalibrationState.from_bytes(output.read_bytes())
    assert kept == CalibrationState().update(Y, P)
    pq.write_table(pa.table({"label": Y[:1000], "prob": P[:1000]}), broken)
    read = []
    original = Reading.state_of
    monkeypatch.setattr(Reading, "state_of", lambda self, part: read.append(part.file) or original(self, part))
    assert scan(folder, output=output) == CalibrationState().update(Y, P).update(Y[:1000], P[:1000])
    assert read == [str(broken)]
    pq.write_table(pa.table({"label": Y[:10], "prob": P[:10]}), broken)
    with pytest.raises(ValueError, match="changed since"):
        scan(folder, output=output)
    with pytest.raises(ValueError, match="holds a state with other settings"):
        scan(sorted(folder.glob("[012].parquet")), output=output, micro_cells=8192)


def test_a_state_of_other_columns_is_not_continued(tmp_path):
    """Finished files are not read again, so that the old columns would answer for the new ones."""
    table = pa.table({"label": Y, "p": P, "q": P**2})
    pq.write_table(table, tmp_path / "rows.parquet")
    output = tmp_path / "state.npz"
    first = scan(tmp_path / "rows.parquet", label="label", prob=["p"], output=output)
    assert scan(tmp_path / "rows.parquet", label="label", prob=["p"], output=output) == first
    with pytest.raises(ValueError, match=r"other columns, label 'label' and probabilities p"):
        scan(tmp_path / "rows.parquet", label="label", prob=["q"], output=output)
    assert CalibrationState.from_bytes(output.read_bytes()) == first


def test_row_groups_outlive_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr("caltest.streaming.scans._fragments._FRAGMENT_ROWS", 300)
    output, kept, file = (tmp_path / name for name in ("state.npz", "state.npz.unfinished", "rows.parquet"))
    pq.write_table(pa.table({"label": Y, "prob": P}), file, row_group_size=300)
    expected, n_groups = CalibrationState().update(Y, P), -(-len(Y) // 300)
    read = []
    original = Reading.state_of

    def until_killed(reading, part):
        read.append(part.first_row)
        if len(read) == 4:
            raise KeyboardInterrupt
        return original(reading, part)

    monkeypatch.setattr(Reading, "state_of", until_killed)
    with pytest.raises(KeyboardInterrupt):
        scan(file, output=output)
    assert not output.exists()
    assert kept.exists()
    assert scan(file, output=output) == expected
    assert len(set(read)) == n_groups
    assert len(read) <= n_groups + 2  # of those that were being read
    assert CalibrationState.from_bytes(output.read_bytes()) == expected
    assert not kept.exists()
    n_read = len(read)
    assert scan(file, output=output) == expected
    assert len(read) == n_read


def test_what_was_kept_of_a_file_that_changed_is_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("caltest.streaming.scans._fragments._FRAGMENT_ROWS", 300)
    output, kept, file = (tmp_path / name for name in ("state.npz", "state.npz.unfinished", "rows.parquet"))
    bad = P.copy()
    bad[-1] = np.nan
    pq.write_table(pa.table({"label": Y, "prob": bad}), file, row_group_size=300)
    with pytest.raises(ValueError, match="row group"):
        scan(file, output=output)
    assert kept.exists()
    with pytest.raises(ValueError, match=r"holds rows of .*4096.*; choose the same settings, or remove it"):
        scan(file, output=output, micro_cells=8192)
    whole = kept.read_bytes()
    kept.write_bytes(whole[:100])
    with pytest.raises(ValueError, match="is damaged; remove it"):
        scan(file, output=output)
    kept.write_bytes(whole)
    pq.write_table(pa.table({"label": Y[:1000], "prob": P[:1000]}), file, row_group_size=300)
    assert scan(file, output=output) == CalibrationState().update(Y[:1000], P[:1000])
    assert not kept.exists()


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("no/such/*.parquet", ValueError, "no file"),
        (3, TypeError, "source"),
        ([], ValueError, "at least one batch"),
        ([3], TypeError, "pair"),
        ([([0], [0.5]), ([0], [2.0])], ValueError, "batch 1, whose first row is row 1"),
    ],
)
def test_refusals(source, error, words):
    with pytest.raises(error, match=words):
        scan(source)


def test_files_without_rows_are_passed_over(folder):
    pq.write_table(pa.table({"label": Y[:0], "prob": P[:0]}), folder / "00.parquet")
    (folder / "01.csv").write_text("label,prob\n")
    assert scan(folder) == CalibrationState().update(Y, P)
    with pytest.raises(ValueError, match=r"00\.parquet: there are no rows, nor in the other files"):
        scan([folder / "00.parquet", folder / "01.csv"])
    (folder / "02.csv").write_text("")
    with pytest.raises(ValueError, match=r"02\.csv: the file is empty; a CSV file needs a line with the names"):
        scan(folder / "02.csv")
    (folder / "none").mkdir()
    with pytest.raises(ValueError, match="no file for"):
        scan(folder / "none")


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(folder, monkeypatch):
    monkeypatch.setattr(Reading, "state_of", lambda self, part: pytest.fail("it was read"))
    with pytest.raises(FileNotFoundError):
        scan(folder, output=folder / "no" / "state.npz")


def test_folders_may_be_named_like_files(tmp_path):
    """As Spark names them."""
    (tmp_path / "rows.parquet").mkdir()
    pq.write_table(pa.table({"label": Y, "prob": P}), tmp_path / "rows.parquet" / "part-0.parquet")
    for source in (tmp_path, tmp_path / "rows.parquet", tmp_path / "*.parquet"):
        assert scan(source) == CalibrationState().update(Y, P)
    (tmp_path / "lost.parquet").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"lost\.parquet"):
        scan(tmp_path)


def test_an_output_may_be_a_symbolic_link(folder, tmp_path):
    (tmp_path / "there").mkdir()
    output = tmp_path / "link.npz"
    output.symlink_to(tmp_path / "there" / "state.npz")
    state = scan(folder, output=output)
    assert output.is_symlink()
    assert CalibrationState.from_bytes((tmp_path / "there" / "state.npz").read_bytes()) == state


def test_an_output_that_does_not_know_its_files_is_refused(folder, tmp_path):
    """A merged state might hold the files that are scanned."""
    output = tmp_path / "state.npz"
    output.write_bytes(scan(folder).to_bytes())
    with pytest.raises(ValueError, match=r"state\.npz holds a state that does not know its files"):
        scan(folder, output=output)
    output.write_bytes(b"label,prob\n")
    with pytest.raises(ValueError, match=r"state\.npz: `data` must be the bytes of a calibration state"):
        scan(folder, output=output)
    assert output.read_bytes() == b"label,prob\n"
