"""What the default test costs where labels are drawn by their departures, and where all of them are drawn.

    python benchmarks/departures.py

writes docs/data/departures.csv, the figure docs/images/departures.png and the table of docs/how-it-is-fast.md.
"""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import caltest
from benchmarks.machine import commit
from benchmarks.markdown import duration, ratio, table
from benchmarks.timing import costs
from caltest.resampling.draws import _points

ROOT = Path(__file__).parents[1]
N_RESAMPLES, SEED = 9_999, 20190416
COLUMNS = ("departures_fixed", "departures_draw", "all_fixed", "all_draw")
SHARPNESS = (100, 50, 20, 10, 6, 4, 3, 2, 1)
"""Factors of standard normal logits: the larger, the fewer labels depart from the most probable one."""
SIZES = (200, 1_000, 10_000, 100_000, 1_000_000)
CLASSES = (2, 3, 10, 32)
TICKS = {
    "departures": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    "observations": SIZES,
    "classes": CLASSES,
}
BEGIN, END = "<!-- made by benchmarks/departures.py -->", "<!-- end -->"


def problem(n_samples: int, n_classes: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and calibrated predictions, the softmax of normal logits."""
    rng = np.random.default_rng(SEED)
    logit = factor * rng.normal(size=(n_samples, n_classes))
    prob = np.exp(logit - logit.max(axis=1, keepdims=True))
    prob /= prob.sum(axis=1, keepdims=True)
    label = (np.cumsum(prob, axis=1)[:, :-1] < rng.random((n_samples, 1))).sum(axis=1)
    return label, prob


def settings() -> list[tuple[str, int, int, float]]:
    """Return the study, observations, classes and factor of every setting."""
    return [
        *(("departures", 10_000, 10, factor) for factor in SHARPNESS),
        *(("observations", n, 10 if n < SIZES[-1] else 2, 10) for n in SIZES),
        *(("classes", 10_000, k, 10) for k in CLASSES),
    ]


def measure(repeats: int) -> pd.DataFrame:
    """Return what both ways of drawing cost, in seconds of processor time: the preparation, and one draw."""
    usual = _points.LARGEST_DEPARTURE, _points.MOST_ENTRIES
    rows = []
    for study, n, k, factor in settings():
        label, prob = problem(n, k, factor)
        call = partial(caltest.calibration_test, label, prob, rng=0)
        runs = {"departures": partial(_as_if, call, 2.0, 2**31), "all labels": partial(_as_if, call, -1.0, 0)}
        found = costs(runs, N_RESAMPLES, repeats, least=8)
        departing = float((1 - prob.max(axis=1)).mean())
        times = [(cost.fixed, cost.per_resample) for cost in found.values()]
        rows.append((study, n, k, departing, *times[0], *times[1]))
        print(*rows[-1])
    _points.LARGEST_DEPARTURE, _points.MOST_ENTRIES = usual
    return pd.DataFrame(rows, columns=["study", "n_samples", "n_classes", "departing", *COLUMNS])


def _as_if(call: Callable[..., object], largest: float, most: int, n_resamples: int) -> None:
    _points.LARGEST_DEPARTURE, _points.MOST_ENTRIES = largest, most
    call(n_resamples=n_resamples)


def rows_of(frame: pd.DataFrame) -> str:
    """Return the table of the page."""
    shown = [
        (
            f"{row.n_samples:,} x {row.n_classes}",
            f"{100 * row.departing:.1f} %",
            *(duration(getattr(row, column)) for column in COLUMNS),
            ratio(row.all_draw / row.departures_draw),
        )
        for row in frame.drop_duplicates(["n_samples", "n_classes", "departing"]).itertuples()
    ]
    head = ("observations x classes", "labels that depart", "preparation", "a draw", "preparation", "a draw", "ratio")
    return table(head, shown)


def draw(frame: pd.DataFrame, file: Path) -> None:
    """Write the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained", sharey=True)
    for axis, (study, column, label) in zip(
        axes,
        (
            ("departures", "departing", "mean chance that a label departs\n(10,000 observations, 10 classes)"),
            ("observations", "n_samples", "observations\n(about 10 % depart)"),
            ("classes", "n_classes", "classes\n(10,000 observations)"),
        ),
        strict=True,
    ):
        own = frame[frame["study"] == study].sort_values(column)
        for name, shown, style in (("departures", "labels that depart", "o-"), ("all", "all labels", "s--")):
            axis.loglog(own[column], own[f"{name}_draw"] * 1e6, style, label=shown)
        axis.set_xlabel(label, fontsize=12)
        axis.set_xticks(TICKS[study], [f"{tick:,}" for tick in TICKS[study]])
        axis.minorticks_off()
        axis.tick_params(labelsize=11)
        axis.grid(visible=True, which="major", alpha=0.4)
    axes[0].axvline(_points.LARGEST_DEPARTURE, color="0.4", linestyle=":", label="where caltest changes")
    axes[0].set_ylabel("microseconds a draw (default test)", fontsize=12)
    axes[0].legend(fontsize=11)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, and write data, figure and table."""
    parser = argparse.ArgumentParser(description="The default test by departures and by all labels.")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write figure and table from the data")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of data, figure and page")
    asked = parser.parse_args()
    data, page = asked.docs / "data" / "departures.csv", asked.docs / "how-it-is-fast.md"
    if not asked.page:
        about = f"# commit: {commit()}; date: {datetime.now(UTC):%Y-%m-%d}; seed: {SEED}\n"
        data.write_text(about + measure(asked.repeats).to_csv(index=False, float_format="%.5g"))
    frame = pd.read_csv(data, comment="#")
    draw(frame, asked.docs / "images" / "departures.png")
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{rows_of(frame)}\n{END}{rest.partition(END)[2]}")
    print(f"written: {data}, {page}")


if __name__ == "__main__":
    main()
