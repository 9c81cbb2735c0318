"""The tables of docs/clinical-validity.md and docs/clinical-development.md, made from docs/data/clinical.csv alone."""

import math
from collections.abc import Callable

import pandas as pd

from benchmarks.markdown import table
from benchmarks.pages import mark, with_table

LEVEL, FAR = 0.05, 3.0
_FEWER = 0.8  # share of data sets from which on a table has one number of them
NAMES = {
    "observed_expected": "O/E",
    "calibration_slope": "slope",
    "scaled_brier": "scaled Brier",
    "discrimination_index": "D",
    "quality_index": "Q",
    "unreliability_index": "U",
    "r2": "R2",
    "brier": "Brier",
    "c_statistic": "c",
    "net_benefit": "net benefit",
    "mean_score": "Brier score",
}
"""How measures are called in the heads of tables."""


def nominal(measure: str) -> float:
    """Return the share of data sets in which an interval should contain its target."""
    return 0.8 if "80 %" in measure else 1 - LEVEL


def is_far(row: pd.Series) -> bool:
    """Return whether a coverage is below its level, or a level above 5 %, by more than three standard errors."""
    level = LEVEL if row["kind"] == "level" else 1 - nominal(row["measure"])
    missed = (row["above"] + row["below"]) / row["sets"]
    return missed > level + FAR * math.sqrt(level * (1 - level) / row["sets"]) + 1e-9


def _share(row: pd.Series) -> str:
    missed = 100 * (row["above"] + row["below"]) / row["sets"]
    shown = f"{missed if row['kind'] == 'level' else 100 - missed:.1f}"
    return f"**{shown}**" if is_far(row) else shown


def _short(measure: str) -> str:
    name, _, rest = measure.removesuffix(", p-value").partition(", ")
    return ", ".join([NAMES.get(name, name), *([rest] if rest else [])])


def _kind(predictions: str) -> str:
    """Return a kind of patients without what most of them share."""
    words = [word for word in predictions.split(", ") if word != "calibrated"]
    return ", ".join(words if len(words) == 1 else [word for word in words if word != "usual risks"])


def by_design(frame: pd.DataFrame) -> str:
    """Return a table with a row for each design and a column for each measure."""
    measures = [name for name in dict.fromkeys(frame["measure"]) if name != "intercept"]  # as that of O/E
    rows = []
    for (predictions, events), part in frame.groupby(["predictions", "events"], sort=False):
        of = {row["measure"]: _share(row) for _, row in part.iterrows()}
        size = [f"{events:,}"] if events else []
        rows.append([_kind(predictions), *size, _sets(part["sets"]), *(of.get(name, "") for name in measures)])
    size = ["events"] if (frame["events"] > 0).all() else []
    return table(["predictions", *size, "data sets", *map(_short, measures)], rows)


def _sets(sets: pd.Series) -> str:
    """Return the number of data sets, or the range of it if some measures were computed again on fewer."""
    low, high = sets.min(), sets.max()
    return f"{high:,}" if low >= _FEWER * high else f"{low:,} to {high:,}"


def by_test(frame: pd.DataFrame) -> str:
    """Return a table with a row for each test and a column for each design."""
    designs = list(dict.fromkeys(zip(frame["predictions"], frame["events"], strict=True)))
    rows = []
    for measure, part in frame.groupby("measure", sort=False):
        of = {(row["predictions"], row["events"]): _share(row) for _, row in part.iterrows()}
        rows.append([measure, *(of.get(design, "") for design in designs)])
    sets = [f"{frame[(frame['predictions'] == a) & (frame['events'] == b)]['sets'].max():,}" for a, b in designs]
    heads = [f"{_kind(kind)}, {events}" for kind, events in designs]
    return table(["test", *heads], [*rows, ["data sets", *sets]])


def of_sites(frame: pd.DataFrame) -> str:
    """Return the table of summaries over hospitals."""
    new = frame["measure"].str.endswith("new hospital")
    means = frame[new].assign(cell=[f"{100 * value:.1f}" for value in frame[new]["value"]])
    others = frame[~new]
    others = others.assign(cell=[_share(row) for _, row in others.iterrows()])
    frame = pd.concat([others, means]).sort_index()
    measures = list(dict.fromkeys(frame["measure"]))
    rows = []
    for (predictions, events), part in frame.groupby(["predictions", "events"], sort=False):
        of = dict(zip(part["measure"], part["cell"], strict=True))
        kind = predictions.replace(" hospitals", "").replace("logits ", "")
        rows.append([kind, f"{events}", f"{part['sets'].max():,}", *(of.get(name, "") for name in measures)])
    return table(["hospitals", "events in each", "data sets", *map(_short, measures)], rows)


def of_widths(frame: pd.DataFrame) -> str:
    """Return the table of widths that are reached."""
    rows = [
        [
            NAMES[name] + row["measure"].removeprefix("width") + f", {kind}",
            f"{row['n']:,}",
            "0.1" if name == "c_statistic" else "0.2",
            f"{row['value']:.3f}",
            f"{100 * (1 - row['above'] / row['sets']):.0f} %",
            f"{row['sets']:,}",
        ]
        for _, row in frame.iterrows()
        for name, _, kind in [row["predictions"].partition(", ")]
    ]
    return table(["measure", "patients", "wanted", "mean width", "not wider than wanted", "data sets"], rows)


def of_optimism(frame: pd.DataFrame) -> str:
    """Return the table of optimism that is left."""
    rows = []
    for events, part in frame.groupby("events", sort=False):
        of = {row["measure"]: f"{row['value']:.3f}" for _, row in part.iterrows()}
        rows.append([f"{events}", f"{part['sets'].max()}", *of.values()])
    return table(["events", "data sets", *map(_short, dict.fromkeys(frame["measure"]))], rows)


def _of_kind(kind: str) -> Callable[[pd.DataFrame], str]:
    return lambda frame: by_design(frame[frame["kind"] == kind])


TABLES: dict[str, tuple[list[str], Callable[[pd.DataFrame], str]]] = {
    "measures": (["measures"], _of_kind("coverage")),
    "curves": (["curves"], _of_kind("coverage")),
    "levels of curves": (["curves"], _of_kind("level")),
    "cutoffs": (["cutoffs"], by_design),
    "tests": (["tests"], by_test),
    "other tests": (["updates", "segments"], by_test),
    "fitted": (["fitted"], by_test),
    "levels of giviti": (["giviti"], _of_kind("level")),
    "giviti": (["giviti"], _of_kind("coverage")),
    "sites": (["sites"], of_sites),
    "widths": (["widths"], of_widths),
    "decomposition": (["decomposition"], by_design),
    "optimism": (["optimism"], of_optimism),
}
"""The tables of the pages, by their marks: studies, and what makes the table."""
PAGES = "clinical-validity.md", "clinical-development.md"


def page(text: str, frame: pd.DataFrame) -> str:
    """Return the text of a page with those tables that it has, made from the data."""
    for name, (studies, make) in TABLES.items():
        own = frame[frame["study"].isin(studies)]
        if len(own) and mark("clinical", name) in text:
            text = with_table(text, mark("clinical", name), make(own))
    return text
