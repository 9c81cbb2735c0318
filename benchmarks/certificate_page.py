"""The page of the certificate, made from its data alone."""

import io
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import binom

from benchmarks import bars, coverage, event_intervals, groups_comparisons, groups_intervals
from benchmarks.markdown import table

ERROR = 0.001
"""Probability, at most, that any of the valid tests exceeds its limit by chance."""
LEVELS = (0.01, 0.05, 0.1)
COLUMNS = {level: f"rejected_{100 * level:.0f}pct" for level in LEVELS}
VALID = ("Monte Carlo", "exact distribution", "finite-sample bound")
DATA = (
    "validity.csv",
    "coverage.csv",
    *(
        f"data/{name}.csv"
        for name in ("groups", "folds", "event-intervals", "groups-intervals", "groups-comparisons", "bars")
    ),
)
"""What the page is made from: rejection rates, coverage, groups, folds, intervals of events; with groups intervals,
comparisons and bars."""


HEAD = """# How often are calibrated models rejected?

This page answers whether the p-values of caltest are valid. A p-value is valid if it is at most 0.05 in at most 5 % of
all data sets of a calibrated model, and the same for every other level. The tables have the measured rejection rates of
every test of the package, through every lens that it accepts.

Written by `python benchmarks/validity.py --out DIR --shares {shares}` from [validity.csv](validity.csv)
({facts}); a stopped measurement goes on in
its folder. The slow tests of the package check some of its cells on new data every day.

* **Models.** Predictions have a Dirichlet distribution, and labels are drawn from these predictions:
  `DirichletModel(3, 0.5)` (spread over the simplex) and `DirichletModel(10, 0.1)` (sharp: most class probabilities are
  near 0). All tests are applied to the same data.
* **Populations of practice** ([benchmarks/populations.py](../benchmarks/populations.py)), for the tests that are used
  most: predictions with ties (2 decimals; 4 decimals, 10 classes), exact zeros (55 % of the events; half of 10
  classes), events of 1 % and of 0.1 %, half of the predictions one-hot, multiples of 1/10, and half of them sharp and
  half almost flat.
* **Tests.** Every statistic at its defaults with {n_resamples} draws, so that (B + 1) times each level is an integer
  and the p-value can be exact; the same with computed null distributions where they are known; limit distributions.
* **Numbers** are rejection rates in percent at the levels {levels}. The standard error of 5 % is {se_many:.2g} points
  with {many:,} data sets and {se_few:.2g} with {few:,}. **Bold**: above the one-sided binomial limit. All valid tests
  together exceed it with probability {error} at most (at 5 % the limits are {limit_many:.2f} % and {limit_few:.2f} %).
"""


DEPENDENT = """## Observations that depend on each other

With `groups=`, rejection rates in percent at the 5 % level for calibrated models whose labels share a latent normal
variable within a group: the smallest and the largest rate of {n_statistics} statistics, {n_groups} data sets a row
(standard error of 5 %: about one point). They were measured with random signs and independent labels, which fail where
events are rare, strongly correlated and few groups have one. There the test also simulates labels that are alike within
groups; its [rates](dependent-observations.md#few-groups-with-events) are measured separately
([few-groups.csv](data/few-groups.csv)), and its result warns of fewer than ten such groups ([C303](notes.md#c303)). All
rates, and why the test is valid in the limit only: [dependent-observations.md](dependent-observations.md); data:
[groups.csv](data/groups.csv).

{groups}
## Cross-validated predictions

With `folds=`, and pooled as if the predictions were those of one model: rejection rates in percent at the 5 % level of
models that are calibrated exactly, whatever they were fitted to; {n_learners} learners, {n_folds} folds, {n_data_sets}
data sets each. Pooled tests are not valid. More: [cross-validation.md](cross-validation.md); data:
[folds.csv](data/folds.csv).

{folds}"""


CLINICAL = """## Clinical validations

Intervals and tests of [clinical prediction models](clinical.md) have a [page of their own](clinical-validity.md).
"""


def read(text: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of the data file and the facts of its first line."""
    first, _, rest = text.partition("\n")
    facts = dict(fact.split(": ") for fact in first.removeprefix("# ").split("; "))
    return pd.read_csv(io.StringIO(rest), keep_default_na=False), facts


def limits(frame: pd.DataFrame, error: float = ERROR) -> dict[float, np.ndarray]:
    """Return the largest count of each row that is no evidence, by level; ``error`` is shared by the valid tests."""
    each = error / max(len(LEVELS) * int(frame["null"].isin(VALID).sum()), 1)
    return {level: binom.isf(each, frame["n_replicates"], level).astype(int) for level in LEVELS}


def exceeding(frame: pd.DataFrame, error: float = ERROR) -> pd.DataFrame:
    """Return for every row and level whether the count lies above its limit."""
    bounds = limits(frame, error)
    return pd.DataFrame({level: frame[COLUMNS[level]] > bounds[level] for level in LEVELS}, index=frame.index)


def page(*texts: str) -> str:
    """Return the page that the data make, in the order of `DATA`."""
    rejections, coverages, groups, folds, *grouped = texts
    events, intervals, comparisons, reliability = grouped
    frame, facts = read(rejections)
    frame["above"] = exceeding(frame).to_numpy().tolist()
    valid = frame[frame["null"].isin(VALID)]
    others = frame[~frame["null"].isin(VALID)]
    parts = [
        _head(frame, facts),
        "## Valid at every size\n",
        _verdict(valid),
        *_tables(valid),
        "## Valid in large samples only\n",
        "Limit distributions, and predictions that are resampled with the labels. A rate above its limit shows where\n"
        "they fail; the valid version of each test is in the tables above.\n",
        _failures(others),
        *_tables(others),
        "## What was left out\n",
        _left_out(frame),
        coverage.section(read(coverages)[0]),
        _dependent(pd.read_csv(io.StringIO(groups), comment="#"), pd.read_csv(io.StringIO(folds), comment="#")),
        event_intervals.section(pd.read_csv(io.StringIO(events))),
        CLINICAL,
        groups_intervals.section(pd.read_csv(io.StringIO(intervals), dtype={"base": str})),
        groups_comparisons.section(pd.read_csv(io.StringIO(comparisons))),
        bars.section(pd.read_csv(io.StringIO(reliability))),
    ]
    return "\n".join(parts)


def _dependent(groups: pd.DataFrame, folds: pd.DataFrame) -> str:
    """Return the part of the page about observations that depend on each other, and about cross-validation."""
    designs = ["predictions", "groups", "correlation", "data sets"]
    rates = groups.drop(columns=designs)
    worst = rates.max(axis=1)
    by_design = groups[designs].assign(smallest=rates.min(axis=1), largest=worst, statistic=rates.idxmax(axis=1))
    rows = [
        (
            f"{row.predictions}, {row.groups}",
            f"{row.correlation:.2f}",
            *_percent(row.smallest, row.largest),
            row.statistic,
        )
        for row in by_design.itertuples()
    ]
    level = folds[folds["study"] == "level"]
    by_method = level.groupby("method", sort=False)["rate"].agg(["min", "mean", "max"])
    shown = [(method, *_percent(*found)) for method, found in zip(by_method.index, by_method.to_numpy(), strict=True)]
    return DEPENDENT.format(
        n_statistics=rates.shape[1],
        n_groups=int(groups["data sets"].max()),
        groups=table(("predictions, groups", "correlation", "smallest", "largest", "of"), rows),
        n_learners=level["learner"].nunique(),
        n_folds=", ".join(str(n) for n in sorted(level["n_folds"].unique())),
        n_data_sets=int(level["data_sets"].max()),
        folds=table(("test", "smallest", "mean", "largest"), shown),
    )


def _percent(*rates: float) -> list[str]:
    return [f"{100 * rate:.1f}" for rate in rates]


def _head(frame: pd.DataFrame, facts: dict[str, str]) -> str:
    many, few = int(frame["n_replicates"].max()), int(frame["n_replicates"].min())
    bounds = limits(frame)[0.05] / frame["n_replicates"]
    shown = {name: value for name, value in facts.items() if name not in ("resamples", "shares")}
    return HEAD.format(
        facts=", ".join(f"{name} {value}" for name, value in shown.items()),
        n_resamples=facts["resamples"],
        shares=facts["shares"],
        levels=", ".join(f"{100 * level:g} %" for level in LEVELS),
        many=many,
        few=few,
        error=ERROR,
        se_many=100 * np.sqrt(0.05 * 0.95 / many),
        se_few=100 * np.sqrt(0.05 * 0.95 / few),
        limit_many=100 * bounds[frame["n_replicates"] == many].iloc[0],
        limit_few=100 * bounds[frame["n_replicates"] == few].iloc[0],
    )


def _verdict(valid: pd.DataFrame) -> str:
    rates = len(LEVELS) * len(valid)
    above = [row for row in valid.itertuples() if any(row.above)]
    said = f"{sum(map(sum, (row.above for row in above)))} of {rates:,} rates are above their limit"
    listed = "".join(
        f"* {_named(row.test, row.null)}, {row.model}, {row.lens}, n = {row.n_samples:,}\n" for row in above
    )
    return f"{said}.\n" if not above else f"{said}:\n\n{listed}"


def _failures(others: pd.DataFrame) -> str:
    rows = []
    for (test, null), group in others.groupby(["test", "null"], sort=False):
        failed = group[[any(above) for above in group["above"]]]
        rate = group[COLUMNS[0.05]] / group["n_replicates"]
        worst = group.loc[rate.idxmax()]
        fails = ", ".join(
            f"{model}, {lens} (n = {', '.join(f'{n:,}' for n in part['n_samples'])})"
            for (model, lens), part in failed.groupby(["model", "lens"], sort=False)
        )
        largest = f"{100 * rate.max():.1f} % ({worst.lens}, n = {worst.n_samples:,})"
        rows.append((_named(test, null), largest, fails or "nowhere"))
    return table(("test", "largest rate at 5 %", "fails at"), rows)


def _tables(frame: pd.DataFrame) -> Iterable[str]:
    for (model, lens), group in frame.groupby(["model", "lens"], sort=False):
        sizes = sorted(group["n_samples"].unique())
        cells = {(row.test, row.null, row.n_samples): _cell(row) for row in group.itertuples()}
        tests = dict.fromkeys((row.test, row.null) for row in group.itertuples())
        rows = [(_named(*test), *(cells.get((*test, n), "") for n in sizes)) for test in tests]
        yield f"### {model}, `{lens}`\n"
        yield table(("test", *(f"n = {n:,}" for n in sizes)), rows)


def _named(test: str, null: str) -> str:
    return test if null == "Monte Carlo" else f"{test} ({null})"


def _cell(row: object) -> str:
    rates = [f"{100 * getattr(row, column) / row.n_replicates:.1f}" for column in COLUMNS.values()]
    return " / ".join(f"**{rate}**" if above else rate for rate, above in zip(rates, row.above, strict=True))


def _left_out(frame: pd.DataFrame) -> str:
    """List what has fewer data sets than the others of its size, and what has none."""
    sizes = sorted(frame["n_samples"].unique())
    full = frame.groupby("n_samples")["n_replicates"].max()
    lines = [f"* n = {n:,}: {full[n]:,} data sets, except where listed here." for n in sizes]
    for (test, null), group in frame.groupby(["test", "null"], sort=False):
        fewer = [
            f"{int(part['n_replicates'].min()):,} data sets at n = {n:,}"
            for n, part in group.groupby("n_samples")
            if part["n_replicates"].min() < full[n]
        ]
        absent = [f"n = {n:,}" for n in sizes if n not in set(group["n_samples"])]
        none = [f"none at {', '.join(absent)}"] if absent else []
        if fewer or none:
            lines.append(f"* {_named(test, null)}: {'; '.join(fewer + none)}.")
    lines.append("* Tests that need two outcomes are not measured through lenses with more.")
    return "\n".join(lines) + "\n"
