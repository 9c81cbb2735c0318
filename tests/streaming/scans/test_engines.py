"""Threads, workers of Dask and engines that map Arrow batches: the state of all rows, each counted once."""

import itertools
import os
import pickle
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltest.predictions import Canonical, ClassWise, EqualWidth
from caltest.streaming import CalibrationState, RedrawnCells, arrow_states, scan
from caltest.streaming.scans._engines import _join, _piece_of
from caltest.streaming.scans._fragments import CsvFormat, Reading, fragments_of

P, _CHANCE = np.random.default_rng(0).random((2, 4000))
Y = (_CHANCE < P).astype(np.int64)
READING = Reading("label", ("prob",), None, 2)


def write(folder, n_files, n_rows, bad=None):
    for k in range(n_files):
        rows = slice(n_rows * k, n_rows * (k + 1))
        p = P[rows].copy()
        if k == bad:
            p[-1] = np.nan
        pq.write_table(pa.table({"label": Y[rows], "prob": p}), folder / f"{k:02}.parquet", row_group_size=300)
    return sorted(map(str, folder.glob("*.parquet")))


@pytest.fixture
def small_fragments(monkeypatch):
    monkeypatch.setattr("caltest.streaming.scans._fragments._FRAGMENT_ROWS", 600)


def test_fragments_are_all_rows_once(tmp_path, small_fragments):
    [name] = write(tmp_path, 1, 2000)
    parts = fragments_of(name, CsvFormat())
    assert [part.groups for part in parts] == [(0, 1), (2, 3), (4, 5), (6,)]
    assert [part.first_row for part in parts] == [0, 600, 1200, 1800]
    size = os.stat(name).st_size
    assert size - 4 <= sum(part.n_bytes for part in parts) <= size
    whole = CalibrationState().update(Y[:2000], P[:2000])
    for workers in (1, 3):
        assert scan(name, workers=workers) == whole


def test_progress_is_in_bytes(tmp_path, small_fragments):
    files = write(tmp_path, 2, 2000)
    seen = []
    scan(files, workers=2, progress=lambda *step: seen.append(step))
    done, total = zip(*seen, strict=True)
    assert set(total) == {done[-1]}
    assert list(done) == sorted(done)
    assert len(seen) == 8
    assert sum(os.stat(name).st_size for name in files) - 8 <= done[-1]


def test_pieces_of_a_file_that_failed_are_left_out(tmp_path, small_fragments):
    files = write(tmp_path, 3, 1000, bad=1)
    pieces = [_join([_piece_of(READING, part) for part in fragments_of(name, CsvFormat())]) for name in files]
    assert [piece.state is None for piece in pieces] == [False, True, False]
    found = _join(pieces)
    assert found.files == (files[0], files[2])
    assert "row group 3, batch that begins at row 900 of the file" in str(found.errors[0])
    kept = [*range(1000), *range(2000, 3000)]
    assert CalibrationState.from_bytes(found.state) == CalibrationState().update(Y[kept], P[kept])
    assert _join([pieces[1]]).state is None
    assert pickle.loads(pickle.dumps(found)).files == found.files


def test_arrow_batches_become_one_state():
    table = pa.table({"y": Y, "p": P})
    function = pickle.loads(pickle.dumps(arrow_states("y", ["p"])))
    cuts = [0, 500, 500, 1700, 4000]  # partitions, one of them empty
    found = [
        batch
        for a, b in itertools.pairwise(cuts)
        for batch in function(table.slice(a, b - a).to_batches(max_chunksize=333))
    ]
    assert [batch.schema for batch in found] == [pa.schema([("state", pa.binary())])] * 3
    total = CalibrationState()
    for batch in found:
        total.merge(CalibrationState.from_bytes(batch["state"][0].as_py()))
    assert total == CalibrationState().update(Y, P)


def test_arrow_batches_of_several_classes():
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), 100)
    label = rng.integers(3, size=100)
    names = np.array(["ant", "bee", "cat"])
    batch = pa.record_batch({"y": names[label]} | {name: prob[:, k] for k, name in enumerate(names.tolist())})
    options = {"classes": ["cat", "bee", "ant"], "lens": ClassWise(0)}
    [found] = arrow_states("y", ["cat", "bee", "ant"], **options)([batch])
    expected = CalibrationState(3, ClassWise(0)).update(2 - label, prob[:, ::-1])
    assert CalibrationState.from_bytes(found["state"][0].as_py()) == expected


@pytest.mark.slow(few_draws=True)
def test_refusals(tmp_path):
    with pytest.raises(TypeError, match="column names"):
        arrow_states("y", "p")
    with pytest.raises(ValueError, match="column names"):
        arrow_states("y", [])
    bad = pa.record_batch({"y": [0, 1], "p": [0.5, np.nan]})
    with pytest.raises(ValueError, match=r"begins at row 0 of the partition: .* row 1"):
        list(arrow_states("y", ["p"])([bad]))
    with pytest.raises(ValueError, match="q"):
        list(arrow_states("y", ["q"])([bad]))
    files = write(tmp_path, 1, 100)
    with pytest.raises(TypeError, match="scheduler"):
        scan(files, scheduler=3)
    with pytest.raises(ValueError, match="scheduler"):
        scan([(Y, P)], scheduler="tcp://nowhere")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_of_dask_is_killed(tmp_path):
    """What it had done is done again by the other ones, and counted once."""
    import distributed

    n_files, n_rows = 40, 300_000
    generator = np.random.default_rng(5)
    whole = CalibrationState()
    for k in range(n_files):
        p = generator.random(n_rows)
        y = (generator.random(n_rows) < p).astype(np.int64)
        whole.update(y, p)
        pq.write_table(pa.table({"label": y, "prob": p}), tmp_path / f"{k:02}.parquet", row_group_size=100_000)
    output, killed = tmp_path / "state.npz", []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        client = distributed.Client(cluster)

        def kill(done, total):
            if not killed and done < total:
                killed.append(done)
                pids = client.run(os.getpid)
                os.kill(next(iter(pids.values())), signal.SIGKILL)

        found = scan(tmp_path, scheduler=client, output=output, progress=kill)
        assert killed
        assert found == whole
        assert CalibrationState.from_bytes(output.read_bytes()) == whole
        assert scan(tmp_path, scheduler=cluster.scheduler_address) == whole
        bad = pa.table({"label": np.zeros(10), "prob": np.full(10, 2.0)})
        pq.write_table(bad, tmp_path / "99.parquet")
        with pytest.raises(ValueError, match=r"99\.parquet, row group 0"):
            scan(tmp_path, scheduler=client, output=output)
        assert CalibrationState.from_bytes(output.read_bytes()) == whole
        client.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_draws_the_same_outcomes(tmp_path):
    """States of more than two outcomes do not depend on who reads which file, nor on a worker that is killed."""
    import distributed

    generator = np.random.default_rng(6)
    for k in range(24):
        prob = generator.dirichlet([1.0, 2.0, 3.0], 20_000)
        columns = {"label": generator.integers(3, size=20_000), **{f"p_{j}": prob[:, j] for j in range(3)}}
        pq.write_table(pa.table(columns), tmp_path / f"{k:02}.parquet", row_group_size=8000)
    options = {"lens": Canonical(), "micro_cells": RedrawnCells(EqualWidth(3), 49)}
    expected, killed = scan(tmp_path, **options), []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        client = distributed.Client(cluster)

        def kill(done, total):
            if not killed and done < total:
                killed.append(done)
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        found = scan(tmp_path, scheduler=client, progress=kill, **options)
        client.close()
    assert killed
    assert found == expected
    assert found.to_bytes() == expected.to_bytes()
