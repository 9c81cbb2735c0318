"""Real engines that map Arrow batches, where they are installed: Ray and Spark give the state of all rows."""

import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltest.streaming import CalibrationState, arrow_states

SCHEMA = pa.schema([("state", pa.binary())])
FUNCTION = arrow_states("label", ["prob"])


@pytest.fixture
def rows(tmp_path):
    """Return a folder of four files, and the state of their rows."""
    rng = np.random.default_rng(0)
    prob = rng.random(20_000)
    label = (rng.random(20_000) < prob).astype(np.int64)
    for k in range(4):
        pq.write_table(pa.table({"label": label[k::4], "prob": prob[k::4]}), tmp_path / f"{k}.parquet")
    return str(tmp_path), CalibrationState().update(label, prob)


def sum_of(states):
    return sum(map(CalibrationState.from_bytes, states), CalibrationState())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray(rows):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'caltest[ray]'")
    pytest.importorskip("ray.data", reason="Ray is installed without ray.data: pip install 'caltest[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        found = (
            ray.data.read_parquet(rows[0])
            .map_batches(
                lambda table: pa.Table.from_batches(FUNCTION(table.to_batches()), SCHEMA),
                batch_format="pyarrow",
                batch_size=1000,
            )
            .take_all()
        )
    finally:
        ray.shutdown()
    assert len(found) > 1
    assert sum_of(row["state"] for row in found) == rows[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark(rows, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed: pip install pyspark, and Java")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        frame = session.read.parquet(rows[0]).repartition(5)
        found = frame.mapInArrow(FUNCTION, "state binary").collect()
    finally:
        session.stop()
    assert len(found) == 5
    assert sum_of(row.state for row in found) == rows[1]
