"""A scan that goes on knows the files that it has counted, however they are named."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltest.predictions import Canonical
from caltest.streaming import CalibrationState, scan

P, _CHANCE = np.random.default_rng(0).random((2, 200))
Y = (_CHANCE < P).astype(np.int64)


@pytest.fixture(scope="module", name="everything")
def state_of_all_rows():
    return CalibrationState().update(Y, P)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a file of the first 100 rows, and the state of it; a second file is there afterwards."""
    (tmp_path / "work" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    pq.write_table(pa.table({"label": Y[:100], "prob": P[:100]}), "data/0.parquet")
    scan("data", output="state.npz")
    pq.write_table(pa.table({"label": Y[100:], "prob": P[100:]}), "data/1.parquet")
    return tmp_path / "work" / "data"


def test_a_path_may_be_spelled_in_any_way(data, tmp_path, monkeypatch, everything):
    (tmp_path / "link").symlink_to(data)
    assert scan([f"data/../data/{k}.parquet" for k in range(2)], output="state.npz") == everything
    assert scan(data, output="state.npz") == everything
    assert scan(tmp_path / "link", output="state.npz") == everything
    monkeypatch.chdir(data)
    assert scan("*.parquet", output="../state.npz") == everything


def test_folders_may_be_moved(data, tmp_path, everything):
    moved = data.parent.rename(tmp_path / "moved")
    assert scan(moved / "data", output=moved / "state.npz") == everything
    (moved / "elsewhere").mkdir()
    output = shutil.copy2(moved / "state.npz", moved / "elsewhere" / "state.npz")
    assert scan(moved / "data", output=output) == everything
    shutil.move(moved / "data", moved / "new")
    assert scan(moved / "new", output=output) == everything


def test_files_of_one_name_in_several_folders_are_told_apart(data, everything):
    """Each is counted, even if name, size, time of change and content agree."""
    (data / "copy").mkdir()
    shutil.copy2(data / "0.parquet", data / "copy" / "0.parquet")
    twice = everything + CalibrationState().update(Y[:100], P[:100])
    assert scan(data, output="state.npz") == twice
    assert scan(data, output="state.npz") == twice


def test_a_change_is_noticed_by_every_path(data):
    before = os.stat(data / "0.parquet")
    pq.write_table(pa.table({"label": 1 - Y[:100], "prob": P[:100]}), data / "0.parquet")
    os.utime(data / "0.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    for source in ("data", data):
        with pytest.raises(ValueError, match=r"0\.parquet was changed since the output was written; remove the output"):
            scan(source, output="state.npz")


def test_a_link_of_another_name_is_the_file(data, tmp_path):
    """Draws of outcomes are those of the file too."""
    (tmp_path / "link.parquet").symlink_to(data / "0.parquet")
    assert scan(tmp_path / "link.parquet", output="state.npz").n_samples == 100
    assert scan(tmp_path / "link.parquet", output="linked.npz") == scan("data/0.parquet", output="linked.npz")
    k = np.arange(100)
    pq.write_table(pa.table({"label": k % 3, "p0": k / 200, "p1": k / 200, "p2": 1 - k / 100}), tmp_path / "3.parquet")
    (tmp_path / "link3.parquet").symlink_to(tmp_path / "3.parquet")
    assert scan(tmp_path / "link3.parquet", lens=Canonical()) == scan(tmp_path / "3.parquet", lens=Canonical())


def test_a_file_that_was_moved_is_watched_at_its_new_path(data):
    (data / "1.parquet").unlink()
    shutil.move(data, "new")
    assert scan("new", output="state.npz").n_samples == 100
    pq.write_table(pa.table({"label": Y[100:], "prob": P[100:]}), "new/0.parquet")
    with pytest.raises(ValueError, match="was changed since"):
        scan("new", output="state.npz")


def test_one_of_several_copies_is_the_file_that_was_moved(data):
    """The state is that of a scan that was not interrupted."""
    (data / "1.parquet").unlink()
    for name in ("new/a", "new/b"):
        shutil.copytree(data, name)
    shutil.rmtree(data)
    assert scan("new", output="state.npz") == scan("new")
    assert scan("new", output="state.npz").n_samples == 200
