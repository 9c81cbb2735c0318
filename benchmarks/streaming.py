"""Rows per second of a state against group-bys of duckdb and polars, and of a scan against reading alone.

Run `python benchmarks/streaming.py [--rows 10000000]`. All are measured in the same run, interleaved, in process time
(of all threads; one each); reading also in the time that a user waits, with all threads. With `--generated 1000000000`
so many generated rows are added to one state for each processor, and the largest memory is printed at a hundredth of
them, at the end, and after the tests. `--redrawn` measures states of whole predictions, whose labels are simulated
while they are added, against a NumPy loop that simulates and counts as many. `--figure` draws the cost against rows,
micro-cells, classes and workers in about a minute: `docs/images/streaming-cost.png`, and its data.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parents[1])  # this checkout, whatever is installed

from benchmarks import machine, streaming_cost  # noqa: E402
from caltest import Canonical, VarianceTree  # noqa: E402
from caltest.predictions import FixedTree  # noqa: E402
from caltest.streaming import CalibrationState, RedrawnCells, scan  # noqa: E402

ROUNDS = 5


def seconds(tasks: dict[str, Callable[[], object]], clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            start = clock()
            task()
            found[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in found.items()}


def add_generated(n_rows: int) -> None:
    """Add rows that are generated block by block: a million probabilities again and again, with new labels."""
    block, workers = 10**6, os.cpu_count() or 1
    p = np.random.default_rng(0).random(block)

    def fill(worker: int, n_blocks: int) -> tuple[CalibrationState, float]:
        state, rng, spent = CalibrationState(), np.random.default_rng(worker), 0.0
        for _ in range(n_blocks):
            y = rng.random(block, dtype=np.float32) < p
            start = time.thread_time()
            state.update(y, p)
            spent += time.thread_time() - start
        return state, spent

    def largest() -> str:
        return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MB"

    fill(0, 1)  # compiles
    states = []
    for n in (n_rows // 100, n_rows):
        start = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(fill, range(workers), [max(n // block // workers, 1)] * workers))
        passed = time.perf_counter() - start
        state = sum((one for one, _ in found[1:]), found[0][0])
        update = sum(spent for _, spent in found) / state.n_samples * 1e9
        print(
            f"{state.n_samples:13,d} rows, {workers} threads: {state.n_samples / passed / 1e6:.1f} million rows per "
            f"second with the generation, update {update:.1f} ns per row, largest memory {largest()}",
            flush=True,
        )
        states.append(state)
    for state in states:  # only now: a test loads code, and its null distribution takes memory too
        print(f"{state.n_samples:13,d} rows: p = {state.test().pvalue:.3f}, largest memory {largest()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--generated", type=int)
    parser.add_argument("--figure", action="store_true", help="write the figure of the cost and its data; some minutes")
    parser.add_argument("--redrawn", action="store_true")
    options = parser.parse_args()
    if options.figure:
        streaming_cost.write(machine.ROOT / "docs", streaming_cost.Sizes())
    elif options.redrawn:
        compare_simulation()
    elif options.generated:
        add_generated(options.generated)
    else:
        compare(options.rows)


def compare_simulation() -> None:
    """Print the time of states of whole predictions and of NumPy's, for each row and draw."""
    for n_classes, n, concentration in ((3, 10**5, 1.0), (10, 10**5, 1.0), (10, 10**5, 0.05), (1000, 10**4, 0.02)):
        time_, in_numpy = simulate_one(n_classes, n, concentration)
        print(
            f"{n_classes:5d} classes, Dirichlet({concentration:g}): {time_:7.2f} ns per row and draw, NumPy "
            f"{in_numpy:7.2f} ns, {in_numpy / time_:.1f} times",
            flush=True,
        )


def simulate_one(n_classes: int, n: int, concentration: float) -> list[float]:
    prob = np.random.default_rng(0).dirichlet(np.full(n_classes, concentration), n)
    label = np.argmax(prob, axis=1)
    tree = FixedTree.grow(prob[:5000], VarianceTree(max_cells=64))
    cells = RedrawnCells(tree)
    found = seconds({
        "state": lambda: CalibrationState(n_classes, Canonical(), cells).update(label, prob),
        "NumPy": lambda: numpy_counts(prob, tree, cells.n_resamples),
    })  # fmt: skip
    return [time_ / n / cells.n_resamples * 1e9 for time_ in found.values()]


def numpy_counts(prob: np.ndarray, tree: FixedTree, n_resamples: int) -> np.ndarray:
    """Return numbers of simulated labels in cells ``(n_resamples, n_cells * n_classes)``.

    Block by block, so that the cumulative probabilities stay in the cache; few classes are compared column by column,
    and of many all are searched at once, each row between its own whole numbers.
    """
    n, k = prob.shape
    rng = np.random.default_rng(1)
    labels = np.unique(tree.fit(prob)(prob), return_inverse=True)[1]
    counts = np.zeros((n_resamples, (labels.max() + 1) * k), dtype=np.int64)
    size = max(2**16 // k, 1)
    for start in range(0, n, size):
        below = np.cumsum(prob[start : start + size], axis=1)
        below /= below[:, -1:]
        first = labels[start : start + size] * k
        columns = np.ascontiguousarray(below[:, :-1].T)
        rows = np.arange(len(below))
        shifted = (below + rows[:, None]).ravel()
        for b in range(n_resamples):
            u = rng.random(len(below))
            if k <= 32:
                drawn = first.copy()
                for column in columns:
                    drawn += u >= column
            else:
                drawn = first + np.minimum(np.searchsorted(shifted, u + rows, side="right") - rows * k, k - 1)
            counts[b] += np.bincount(drawn, minlength=counts.shape[1])
    return counts


def compare(n: int) -> None:
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.uint8)
    frame = pl.DataFrame({"y": y, "p": p})
    database = duckdb.connect()
    database.execute("set threads = 1")
    database.register("frame", frame.to_arrow())
    cell = (pl.col("p") * 4096).cast(pl.Int32).alias("cell")
    sums = [pl.len(), pl.col("p").sum(), (pl.col("p") ** 2).sum().alias("squares")]
    sql = "select cast(floor(p * 4096) as int) c, y, count(*), sum(p), sum(p * p) from frame group by c, y"
    table = CalibrationState()._table
    few, sharp, ordered = min(n, 10**6), rng.beta(0.1, 0.1, n), np.sort(p)
    prob = rng.dirichlet(np.ones(10), few)
    label = rng.integers(10, size=few)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({"label": y, "prob": p}), file)

        def bare(*, use_threads: bool = False) -> None:
            for _ in ds.dataset(file).to_batches(batch_size=2**17, use_threads=use_threads):
                pass

        found = seconds({
            "table alone": lambda: table.add(p, y, "", None),
            "table alone, sharp": lambda: table.add(sharp, y, "", None),
            "table alone, sorted": lambda: table.add(ordered, y, "", None),
            "update": lambda: CalibrationState().update(y, p),
            "duckdb group by": lambda: database.execute(sql).fetchall(),
            "polars group by": lambda: frame.lazy().group_by(cell, "y").agg(sums).collect(engine="streaming"),
            "bare to_batches": bare,
            "scan of Parquet": lambda: scan(file),
        })  # fmt: skip
        found["update, 10 classes (per row and class)"] = (
            seconds({"": lambda: CalibrationState(10).update(label, prob)})[""] * n / few / 10
        )
        waited = seconds(
            {
                "bare to_batches, all threads": lambda: bare(use_threads=True),
                "scan of Parquet, all threads": lambda: scan(file, workers=-1),
            },
            time.perf_counter,
        )
    for name, time_ in waited.items():
        print(f"{name:40s} {time_ / n * 1e9:8.1f} ns per row of waiting")
    for name, time_ in found.items():
        print(f"{name:40s} {time_ / n * 1e9:8.1f} ns per row   {time_ / found['update']:6.2f} of update")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MB")


if __name__ == "__main__":
    main()
