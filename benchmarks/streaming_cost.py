"""Cost of a state against rows, micro-cells, classes and workers: the figure of `benchmarks/streaming.py --figure`."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from caltest.predictions import ClassWise, Confidence
from caltest.streaming import CalibrationState, scan
from caltest.streaming.states._micro_cells import LARGEST, SMALLEST, MicroCells
from caltest.streaming.states._table import MicroTable

ROUNDS = 7
VALUES = 4_000_000  # predicted probabilities of several classes, all rows together
N_FILES = 8
LABELS = {
    "rows": "rows (2 classes)",
    "cells": "micro-cells of equal width (2 classes)",
    "classes": "classes",
    "workers": "workers",
}


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    rows: tuple[int, ...] = (10**4, 10**5, 10**6, 10**7)
    cells: tuple[int, ...] = tuple(2**k for k in range(6, 17, 2))
    classes: tuple[int, ...] = (2, 5, 10, 30, 100, 300, 1000)
    workers: tuple[int, ...] = (1, 2)


def measure(sizes: Sizes) -> pd.DataFrame:
    """Return ns per row: processor time on one thread, and time that passes where workers are compared."""
    parts = (_by_rows, _by_cells, _by_classes, _by_workers)
    found = [point for part in parts for point in part(sizes)]
    return pd.DataFrame(found, columns=["axis", "curve", "x", "ns_per_row"])


Point = tuple[str, str, int, float]


def _predictions(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    kinds = {"uniform predictions": rng.random(n), "sharp predictions": rng.beta(0.1, 0.1, n)}
    return {name: ((rng.random(n) < p).astype(np.uint8), p) for name, p in kinds.items()}


def _median(task: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the median of several runs in ns, after one that compiles; short tasks are repeated to last 50 ms."""
    task()
    start = clock()
    task()
    often = max(1, int(0.05 / max(clock() - start, 1e-6)))
    times = []
    for _ in range(ROUNDS):
        start = clock()
        for _ in range(often):
            task()
        times.append((clock() - start) / often)
    return statistics.median(times) * 1e9


def _by_rows(sizes: Sizes) -> Iterator[Point]:
    def add(y: np.ndarray, p: np.ndarray) -> None:
        CalibrationState().update(y, p)

    for name, (y, p) in _predictions(max(sizes.rows)).items():
        for n in sizes.rows:
            yield "rows", name, n, _median(partial(add, y[:n], p[:n]), time.process_time) / n


def _by_cells(sizes: Sizes) -> Iterator[Point]:
    n = min(10**6, max(sizes.rows))
    for name, (y, p) in _predictions(n).items():
        for n_cells in sizes.cells:
            table = MicroTable(MicroCells.of(n_cells))
            yield "cells", name, n_cells, _median(partial(table.add, p, y), time.process_time) / n


def _by_classes(sizes: Sizes) -> Iterator[Point]:
    rng = np.random.default_rng(0)
    for k in sizes.classes:
        n = max(min(VALUES, max(sizes.rows)) // k, 100)
        prob = rng.exponential(size=(n, k))
        prob /= prob.sum(axis=1, keepdims=True)
        label = rng.integers(k, size=n)
        for lens in (Confidence(), ClassWise(0)):
            state = CalibrationState(k, lens)
            yield "classes", str(lens), k, _median(partial(state.update, label, prob), time.process_time) / n


def _by_workers(sizes: Sizes) -> Iterator[Point]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = max(sizes.rows) // N_FILES * N_FILES
    y, p = (part[:n] for part in _predictions(n)["uniform predictions"])
    parts = [(y[i::N_FILES].copy(), p[i::N_FILES].copy()) for i in range(N_FILES)]

    def merged(workers: int) -> CalibrationState:
        with ThreadPoolExecutor(workers) as pool:
            states = list(pool.map(lambda part: CalibrationState().update(*part), parts))
        return sum(states[1:], states[0])

    with tempfile.TemporaryDirectory() as folder:
        for i, (label, prob) in enumerate(parts):
            pq.write_table(pa.table({"label": label, "prob": prob}), Path(folder) / f"{i}.parquet")
        for w in sizes.workers:
            yield "workers", "arrays in threads, merged", w, _median(partial(merged, w), time.perf_counter) / n
            yield (
                "workers",
                "scan of Parquet files",
                w,
                _median(partial(scan, folder, workers=w), time.perf_counter) / n,
            )


def draw(found: pd.DataFrame, file: Path) -> None:
    """Write the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
    for axis, (name, label) in zip(axes.flat, LABELS.items(), strict=True):
        panel = found[found["axis"] == name]
        for i, (curve, points) in enumerate(panel.groupby("curve", sort=False)):
            axis.plot(points["x"], points["ns_per_row"], label=curve, color=f"C{i}", marker="os"[i % 2])
        if name == "cells":
            axis.axvspan(SMALLEST, LARGEST, color="0.9", label="numbers that a state may have")
        if name == "workers":
            axis.set_xticks(sorted(panel["x"].unique()))
        else:
            axis.set_xscale("log", base=2 if name == "cells" else 10)
        if name == "classes":
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.1 * panel["ns_per_row"].max())
        axis.set_xlabel(label, fontsize=12)
        clock = "time that passes" if name == "workers" else "processor time"
        axis.set_ylabel(f"ns per row ({clock})", fontsize=12)
        axis.grid(visible=True, which="major", alpha=0.4)
        axis.legend(fontsize=10)
    figure.suptitle("Adding rows of predictions and labels to a CalibrationState", fontsize=14)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def write(docs: Path, sizes: Sizes) -> None:
    """Measure, and write the data and the figure below ``docs``."""
    found = measure(sizes)
    found.to_csv(docs / "data" / "streaming-cost.csv", index=False, float_format="%.4g")
    draw(found, docs / "images" / "streaming-cost.png")
    print(found.to_string(index=False, float_format=lambda x: f"{x:.1f}"))
