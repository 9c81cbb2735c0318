"""Every rejection rate and every coverage that was measured, as one table: the site filters it, and so does the
command ``caltest validity``. `benchmarks.certificate_page` writes it from the data of docs/.

A row is a method on data sets of one kind. Of a test it has the share of data sets of calibrated models that are
rejected at the levels of 1 %, 5 % and 10 %; of an interval the share of data sets whose interval contains the truth,
and the shares where the truth lies above and below it.
"""

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom

from benchmarks import certificate_page, clinical_page, coverage, event_intervals
from benchmarks.machine import ROOT
from benchmarks.markdown import table
from benchmarks.pages import mark, with_table

DATA = (
    "validity.csv",
    "coverage.csv",
    *(
        f"data/{name}.csv"
        for name in ("groups", "folds", "event-intervals", "groups-intervals", "groups-comparisons", "bars", "clinical")
    ),
)
"""Rejection rates, coverage, groups, folds, intervals of events; with groups or weights intervals, comparisons and
bars; clinical validations, of which `benchmarks.clinical` makes another page."""
STORED = ROOT / "caltest" / "cli" / "measured.json"
CHANCE = 0.001
"""A single rate or coverage that is worse with at most this probability is marked."""


@dataclass(frozen=True)
class Row:
    """What was measured. Rates are shares; a test whose rate is known at 5 % only has None for the others."""

    kind: str  # "test" or "interval"
    name: str
    how: str
    data: str
    n: int | None
    sets: int
    level: float
    rates: tuple[float | None, float | None, float | None]
    is_worse: bool = False


def judged(row: Row) -> Row:
    """Return a row with the mark if it is worse than it should be by more than chance explains."""
    if row.kind == "interval":
        covered = round(row.rates[0] * row.sets)
        return replace(row, is_worse=bool(binom.cdf(covered, row.sets, row.level) < CHANCE))
    return replace(row, is_worse=bool(binom.sf(round(row.rates[1] * row.sets) - 1, row.sets, row.level) < CHANCE))


def interval(name: str, data: str, n: int | None, sets: int, coverage: float, **more: object) -> Row:
    """Return the row of an interval; ``sides`` are where the truth lies above and below it."""
    sides, level = more.get("sides", (None, None)), more.get("level", 0.95)
    return Row("interval", name, str(more.get("how", "")), data, n, sets, level, (coverage, *sides))


def size(text: str) -> int | None:
    """Return how many observations a design has, from its words; None where groups differ in size."""
    groups = re.search(r"(\d+) groups of (\d+)(?! to|\d)", text)
    alone = re.search(r"(\d+) observations", text)
    return int(groups[1]) * int(groups[2]) if groups else int(alone[1]) if alone else None


def of_certificate(frame: pd.DataFrame) -> Iterator[Row]:
    """All valid tests together have one limit, which they exceed by chance with the probability of the certificate."""
    above = certificate_page.exceeding(frame).any(axis=1)
    for row, worse in zip(frame.itertuples(), above, strict=True):
        counts = np.array([row.rejected_1pct, row.rejected_5pct, row.rejected_10pct]) / row.n_replicates
        rates = tuple(float(rate) for rate in counts)
        data = f"{row.model}, {row.lens}"
        yield Row("test", row.test, row.null, data, row.n_samples, row.n_replicates, 0.05, rates, bool(worse))


def of_coverage(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame.itertuples():
        data = f"{row.predictions}, {row.truth}"
        more = {"sides": (row.above, row.below), "level": row.level}
        yield interval(row.interval, data, row.n_samples, row.n_replicates, row.coverage, **more)


def of_groups(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame.to_dict("records"):
        data = f"{row['predictions']}, {row['groups']}, correlation {row['correlation']:g}"
        for statistic in list(row)[4:]:
            if not np.isnan(row[statistic]):
                name, _, lens = statistic.partition(", ")
                seen = f"{data}, Confidence()" if lens else data
                rates = (None, row[statistic], None)
                yield Row("test", name, "groups", seen, size(row["groups"]), row["data sets"], 0.05, rates)


def of_folds(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame[frame["study"] == "level"].itertuples():
        name, _, how = row.method.partition(", ")
        data = f"{row.learner}, {row.n_folds} folds"
        yield Row("test", name, f"folds, {how}", data, row.n_samples, row.data_sets, 0.05, (None, row.rate, None))


def of_events(frame: pd.DataFrame) -> Iterator[Row]:
    names = {"ratio": "calibration_in_the_large", "slope": "calibration_slope"}
    for what, name in names.items():
        for row, covered in zip(frame.to_dict("records"), event_intervals.coverages(frame, what), strict=True):
            known = 1 - row[f"{what}_none"]
            if known <= 0:
                continue
            data = f"{row['predictions']}, shift {row['shift']:g}, slope {row['slope']:g}"
            data += f", {row['groups']} groups, correlation {row['correlation']:g}" if row["groups"] else ""
            data += f", weights {row['weights']:g}" if row["weights"] else ""
            sides = tuple(row[f"{what}_{side}"] / known for side in ("above", "below"))
            how = "groups" if row["groups"] else "weights" if row["weights"] else ""
            yield interval(name, data, row["n"], round(known * row["sets"]), covered, sides=sides, how=how)


def of_grouped_intervals(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame.to_dict("records"):
        unequal = {"equal": "", "unequal": "about ", "half": "half of all and "}[row["sizes"]]
        alone = row["size"] == 1
        data = f"predictions {row['base']}" + ", within groups" * (row["vary"] and not alone)
        data += "" if alone else f", {row['n_groups']} groups of {unequal}{row['size']}"
        data += "" if alone else f", correlation {row['correlation']:g}"
        data += "" if row["weights"] == "one" else f", weights {row['weights']}"
        data += f", shifted by {row['shift']:g}" if row["shift"] else ", calibrated"
        n, sets, how = row["n_groups"] * row["size"], row["sets"], "weights" if alone else "groups"
        lower = row["lower_end"]
        yield interval("l2_interval, lower end", data, n, sets, 1 - lower, sides=(None, lower), level=0.975, how=how)
        if row["shift"]:
            upper = row["interval"]
            yield interval("l2_interval, upper end", data, n, sets, 1 - upper, sides=(upper, None), how=how)
            yield Row("test", "equivalence_test", how, data, n, sets, 0.05, (None, row["certificate"], None))


def of_comparisons(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame.to_dict("records"):
        name = "unpaired_test" if row["design"].startswith("unpaired") else "paired_test"
        data = f"{row['design'].removeprefix('unpaired, ')}, correlation {row['correlation']:g}"
        sides = row["interval below"], row["interval above"]
        how = "groups" if "groups" in row["design"] else "weights"
        more = {"sides": sides, "how": how}
        yield interval(name, data, size(row["design"]), row["data sets"], 1 - row["missed"], **more)


def of_bars(frame: pd.DataFrame) -> Iterator[Row]:
    for row in frame[frame["kind"] != "smooth"].to_dict("records"):
        weighted = row["kind"] == "weights"
        of = f"{row['parameter']:g} observations" if weighted else f"correlation {row['parameter']:g}"
        data = f"{row['design']}, {of}, events {100 * row['rate']:g} %"
        n = int(row["parameter"]) if weighted else size(row["design"])
        for bars in ("confidence", "consistency"):
            more = {"level": 0.9, "how": row["kind"]}
            if bars == "confidence":
                more["sides"] = row["above"], row["below"]
            yield interval(f"reliability_curve, {bars} bars", data, n, row["data sets"], row[bars], **more)


def of_clinical(frame: pd.DataFrame) -> Iterator[Row]:
    """The studies of `benchmarks.clinical` that have levels and coverages; sizes are those of a hospital, if any."""
    names = {**clinical_page.NAMES, "c_statistic": "c-statistic"}
    functions = {"sites": "calibration_by_site, ", "decomposition": "cross_fitted_decomposition, "}
    for row in frame[~frame["measure"].str.contains("bootstrap|of a site")].to_dict("records"):
        name, _, detail = row["measure"].removesuffix(", p-value").partition("(")
        first, _, rest = name.strip().partition(", ")
        words = [names.get(first, first), *([rest] if rest else [])]
        name = functions.get(row["study"], "") + ", ".join(words)
        data = f"{row['predictions']}, {row['events']:,} events" + (f" ({detail}" if detail else "")
        share, how = (row["above"] + row["below"]) / row["sets"], "clusters" if "clusters" in data else ""
        if row["kind"] == "level":
            how = ", ".join(["clinical", *([how] if how else [])])
            yield Row("test", name, how, data, row["n"], row["sets"], clinical_page.LEVEL, (None, share, None))
        elif row["kind"] == "coverage":
            more = {"sides": (row["below"] / row["sets"], row["above"] / row["sets"]), "how": how}
            yield interval(name, data, row["n"], row["sets"], 1 - share, level=clinical_page.nominal(name), **more)


def rows(texts: Iterable[str]) -> list[Row]:
    """Return all rows of the data files of the certificate, in their order."""
    makers = (
        of_certificate,
        of_coverage,
        of_groups,
        of_folds,
        of_events,
        of_grouped_intervals,
        of_comparisons,
        of_bars,
        of_clinical,
    )
    found = []
    for make, text in zip(makers, texts, strict=True):
        frame = pd.read_csv(io.StringIO(text), comment="#", keep_default_na=make is not of_certificate)
        found += make(frame) if make is of_certificate else map(judged, make(frame))
    return found


def stored(found: Iterable[Row]) -> str:
    """Return the rows as JSON of columns: texts are numbers of a list, shares are per thousand."""
    listed = sorted(found, key=lambda row: (row.kind != "test", row.name.casefold(), row.how, row.data, row.n or 0))
    columns: dict[str, object] = {}
    for name in ("kind", "name", "how", "data"):
        values = [getattr(row, name) for row in listed]
        words = list(dict.fromkeys(values))
        columns[name] = {"words": words, "rows": [words.index(value) for value in values]}
    for name in ("n", "sets"):
        columns[name] = [getattr(row, name) for row in listed]
    columns["level"] = [round(1000 * row.level) for row in listed]
    for number, name in enumerate(("first", "second", "third")):
        shares = (row.rates[number] if number < 2 or row.kind == "test" else None for row in listed)
        columns[name] = [None if share is None or np.isnan(share) else round(1000 * share) for share in shares]
    columns["worse"] = [number for number, row in enumerate(listed) if row.is_worse]
    parts = (f"{json.dumps(name)}: {json.dumps(column, ensure_ascii=False)}" for name, column in columns.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


VALID = {"Monte Carlo": "Monte Carlo, predictions fixed (the default)", "exact distribution": "exact distribution"}
FAMILIES = {
    "l2_interval": "`l2_interval`, two-sided",
    "l2_interval, upper end": "`l2_interval`, upper end",
    "l2_interval, lower end": "`l2_interval`, lower end",
    "calibration_band": "`calibration_band`",
    "confidence bars": "`reliability_curve`, confidence bars",
    "consistency bars": "`reliability_curve`, consistency bars",
    "reliability_curve, confidence bars": "`reliability_curve`, confidence bars",
    "reliability_curve, consistency bars": "`reliability_curve`, consistency bars",
    "smooth_reliability_curve": "`smooth_reliability_curve`",
    "calibration_in_the_large": "`calibration_in_the_large`",
    "calibration_slope": "`calibration_slope`",
    "paired_test": "`paired_test`",
    "unpaired_test": "`unpaired_test`",
    **dict.fromkeys(("O/E", "intercept", "slope"), "O/E, intercept and slope of `clinical_calibration`"),
    **dict.fromkeys(
        ("Brier", "scaled Brier", "D", "U", "Q", "R2", "c-statistic", "net benefit", "gain"), "its other measures"
    ),
    **dict.fromkeys(("ICI", "E50", "E90", "Emax", "ECI"), "ICI, E50, E90, Emax and ECI"),
    "cutoff_interval": "`cutoff_interval`",
    "giviti_belt": "`giviti_belt`",
    "calibration_by_site": "`calibration_by_site`, means over hospitals",
    "cross_fitted_decomposition": "`cross_fitted_decomposition`",
    "bootstrap_interval": "`bootstrap_interval`, as an interval of the true error (it is not one)",
}


def worst_of_tests(found: Iterable[Row]) -> str:
    """Return the table of the largest rejection rates."""
    groups: dict[str, list[Row]] = {what: [] for what in VALID.values()}
    for row in found:
        if row.kind == "test":
            what = VALID.get(row.how, f"{row.name} ({row.how})")
            what = (
                row.how
                if row.how.startswith(("groups", "folds", "clinical")) and row.name != "equivalence_test"
                else what
            )
            groups.setdefault(what, []).append(row)
    lines = []
    for what, rows_of_it in ((what, own) for what, own in groups.items() if own):
        worst = max(rows_of_it, key=lambda row: row.rates[1])
        number, worse = len(rows_of_it), sum(row.is_worse for row in rows_of_it)
        where = f"{worst.name}, {worst.data}" if worst.name not in what else worst.data
        where += f", n = {worst.n:,}" if worst.n else ""
        lines.append((what, f"{number:,}", f"{worse}", f"{100 * worst.rates[1]:.1f} %", f"{worst.sets:,}", where))
    return table(("p-values", "settings", "too high", "largest at 5 %", "data sets", "there"), lines)


def worst_of_intervals(found: Iterable[Row]) -> str:
    """Return the table of the smallest coverages."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        if row.kind == "interval":
            family = FAMILIES.get(row.name) or FAMILIES[row.name.partition(",")[0]]
            level = f"{100 * row.level:g} %"
            groups.setdefault((f"{family}{', with groups or weights' if row.how else ''}", level), []).append(row)
    lines = []
    for (what, level), rows_of_it in groups.items():
        worst = min(rows_of_it, key=lambda row: row.rates[0])
        number, worse = len(rows_of_it), sum(row.is_worse for row in rows_of_it)
        where = worst.data + (f", n = {worst.n:,}" if worst.n else "")
        lines.append((what, level, f"{number}", f"{worse}", f"{100 * worst.rates[0]:.1f} %", f"{worst.sets:,}", where))
    return table(("interval", "level", "coverages", "too low", "smallest", "data sets", "there"), lines)


def targets() -> str:
    """Return the table of what the intervals of the certificate should contain."""
    rows_of_it = [(f"{one.name}, {100 * one.level:g} %", one.holds) for one in coverage.INTERVALS]
    return table(("interval", "should contain"), rows_of_it)


def pages(docs: Path) -> dict[Path, str]:
    """Return the files that the data make, with their texts."""
    found = rows((docs / name).read_text() for name in DATA)
    rules, legend = docs / "validity.md", docs / "validity-table.md"
    text = with_table(rules.read_text(), mark("validity", "tests"), worst_of_tests(found))
    return {
        STORED: stored(found),
        rules: with_table(text, mark("validity", "intervals"), worst_of_intervals(found)),
        legend: with_table(legend.read_text(), mark("validity", "targets"), targets()),
    }
