"""How often bars of reliability curves with weights and groups, and bands of smooth ones, contain what they should.

``python -m benchmarks.bars`` writes docs/data/bars.csv and the tables of docs/grouped-evidence.md and
docs/where-miscalibrated.md; ``python benchmarks/validity.py --page`` makes a part of docs/validity.md from the data.
"""

import argparse
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy.stats import norm

import caltest
from benchmarks.markdown import table
from caltest.estimation.curves._bars import EffectiveCounts

LEVEL = 0.9
N_RESAMPLES = 199
SEED = 20261123
STEP = 1e-8  # between the predictions of two sets, relative
RATES = (0.001, 0.01, 0.05, 0.2, 0.5)
SIZES = (5, 20, 100, 500)
CORRELATIONS = (0.0, 0.3, 0.5)
WEIGHTS = {
    "20 : 1, half of each": lambda n, rng: rng.choice([1.0, 20.0], n),
    "20 : 1, one in 20": lambda n, rng: np.where(np.arange(n) < max(1, n // 20), 20.0, 1.0),
    "Pareto, index 2": lambda n, rng: rng.pareto(2.0, n) + 1,
    "Pareto, index 1": lambda n, rng: rng.pareto(1.0, n) + 1,
}
GROUPS = {
    "5 groups of 20": [20] * 5,
    "20 groups of 20": [20] * 20,
    "20 groups of 100": [100] * 20,
    "50 groups of 10": [10] * 50,
    "200 groups of 5": [5] * 200,
    "10 groups of 5 and 10 of 35": [5] * 10 + [35] * 10,
    "5 groups of 60 and 100 of 1": [60] * 5 + [1] * 100,
}
PREDICTIONS = {
    "rare: Beta(0.5, 500)": (0.5, 500),
    "Beta(1, 30)": (1, 30),
    "uniform": (1, 1),
    "sharp: Beta(0.3, 0.3)": (0.3, 0.3),
}
SMOOTH_SIZES = (200, 2000)


def weighted(name, n, rate, n_sets, seed):
    """Return the coverage of both kinds of bars of one cell with weights."""
    rng = np.random.default_rng(seed)
    label = rng.random((n_sets, n)) < rate
    weight = np.array([WEIGHTS[name](n, rng) for _ in range(n_sets)])
    counts = EffectiveCounts.of_cells(label.ravel(), weight.ravel(), None, np.repeat(np.arange(n_sets), n), n_sets)
    inside, _ = _inside(label, rate, rng, sample_weight=weight)
    row = {"kind": "weights", "design": name, "parameter": n, "rate": rate, "data sets": n_sets}
    return row | _confidence(counts, rate) | {"consistency": inside.mean()}


def grouped(name, correlation, rate, n_sets, seed):
    """Return the coverage of both kinds of bars of one cell with groups, and the level of its test at 10 %."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(GROUPS[name])), GROUPS[name])
    shared = rng.standard_normal((n_sets, len(GROUPS[name])))[:, group]
    own = rng.standard_normal((n_sets, len(group)))
    label = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own < norm.ppf(rate)
    every = np.arange(n_sets)[:, None] * len(GROUPS[name]) + group
    cell = np.repeat(np.arange(n_sets), len(group))
    counts = EffectiveCounts.of_cells(label.ravel(), np.ones(label.size), every.ravel(), cell, n_sets)
    inside, pvalue = _inside(label, rate, rng, groups=every)
    row = {"kind": "groups", "design": name, "parameter": correlation, "rate": rate, "data sets": n_sets}
    tests = {"consistency": inside.mean(), "rejected": np.mean(pvalue <= 1 - LEVEL)}
    return row | _confidence(counts, rate) | tests


def _inside(label, rate, rng, **design):
    """Return whether each set ``(n_sets, n)`` is inside its consistency bar, and its p-value: one cell for each set."""
    n_sets, n = label.shape
    prob = np.repeat(rate * (1 + STEP * np.arange(n_sets)), n)
    curve = caltest.reliability_curve(
        label.ravel(),
        prob,
        partition=lambda given: np.rint((given[:, 1] / rate - 1) / STEP).astype(int),
        n_resamples=N_RESAMPLES,
        rng=rng,
        **{name: values.ravel() for name, values in design.items()},
    )
    return ~curve.outside, curve.pvalue


def _confidence(counts, rate):
    low, high = counts.intervals(LEVEL)
    inside = (low <= rate) & (rate <= high)
    return {"confidence": np.mean(inside), "above": np.mean(low > rate), "below": np.mean(high < rate)}


def smooth(name, n, n_sets, seed):
    """Return how often calibrated curves leave the simultaneous band, and the coverage of the confidence band."""
    rng, left, held, densest = np.random.default_rng(seed), [], [], []
    for _ in range(n_sets):
        prob = rng.beta(*PREDICTIONS[name], n)
        label = rng.random(n) < prob
        curve = caltest.smooth_reliability_curve(label, prob, n_resamples=N_RESAMPLES, simultaneous=True, rng=rng)
        # The truth is the prediction, and differences of 0 are smoothed to 0.
        inside = (curve.confidence_lower <= curve.point) & (curve.point <= curve.confidence_upper)
        left.append(curve.outside.any())
        held.append(inside[curve.confidence_upper - curve.confidence_lower < 1].mean())
        densest.append(inside[curve.density.argmax()])
    found = {"left": np.mean(left), "confidence": np.mean(held), "densest": np.mean(densest)}
    return {"kind": "smooth", "design": name, "parameter": n, "data sets": n_sets, **found}


def _percent(value):
    return "" if pd.isna(value) else f"{100 * value:.1f}"


def tables(frame):
    """Return the three tables of the pages by the names of their places."""
    found = {}
    for kind, head in (("weights", "weights, observations"), ("groups", "groups, correlation")):
        own = frame[frame["kind"] == kind]
        rows = []
        for (design, parameter), part in own.groupby(["design", "parameter"], sort=False):
            of = part.set_index("rate")
            name = f"{design}, {int(parameter)}" if kind == "weights" else f"{design}, {parameter:.1f}"
            rows.append((
                name,
                *(f"{_percent(of.confidence[p])} / {_percent(of.consistency[p])}" for p in RATES),
            ))  # fmt: skip
        note = f"{int(own['data sets'].min())} data sets in each cell.\n"
        found[kind] = f"{table((head, *(f'{100 * p:g} %' for p in RATES)), rows)}\n{note}"
    own = frame[frame["kind"] == "smooth"]
    rows = [
        (f"{row.design}, {int(row.parameter):,}", *map(_percent, (row.left, row.confidence, row.densest)))
        for row in own.itertuples()
    ]
    head = ("predictions, observations", "left the band of 90 %", "confidence, points", "confidence, densest point")
    found["smooth"] = f"{table(head, rows)}\n{int(own['data sets'].min())} data sets in each row.\n"
    return found


def with_table(text, name, content):
    """Return the text of a page with the table of this name."""
    begin, end = f"<!-- {name}: made by benchmarks/bars.py -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def main():
    """Measure, and write data and tables."""
    parser = argparse.ArgumentParser(description="Bars and bands with weights and groups.")
    parser.add_argument("--data-sets", type=int, default=400, help="data sets per design (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: all processors)")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the tables from the data")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of data and pages")
    options = parser.parse_args()
    data, n_sets = options.docs / "data" / "bars.csv", options.data_sets
    if not options.page:
        tasks = [(weighted, name, n, rate) for name in WEIGHTS for n in SIZES for rate in RATES]
        tasks += [(smooth, name, n) for name in PREDICTIONS for n in SMOOTH_SIZES]
        tasks += [(grouped, name, c, rate) for name in GROUPS for c in CORRELATIONS for rate in RATES]
        rows = joblib.Parallel(n_jobs=options.jobs, verbose=5)(
            joblib.delayed(task)(*arguments, n_sets, [SEED, number]) for number, (task, *arguments) in enumerate(tasks)
        )
        pd.DataFrame(rows).round(4).to_csv(data, index=False)
    found = tables(pd.read_csv(data))
    for file, names in (("grouped-evidence.md", ("weights", "groups")), ("where-miscalibrated.md", ("smooth",))):
        page = options.docs / file
        text = page.read_text()
        for name in names:
            text = with_table(text, name, found[name])
        page.write_text(text)


if __name__ == "__main__":
    main()
