"""The tables of ``docs/papers/recalibration-compared.md``, made from the data of `benchmarks.recalibration`."""

import io

import numpy as np
import pandas as pd

from benchmarks.markdown import table
from benchmarks.pages import mark, with_table

LEVEL = 0.05
BEFORE = "Uncalibrated"
METHODS = (
    "class-conditional histogram binning",
    "bootstrap histogram binning",
    "isotonic regression",
    "temperature scaling",
    "temperature scaling by ECE",
    "vector scaling",
    "matrix scaling",
    "neural network scaling",
)
"""Of Nixon's table 5, in the order of their numbers."""
PROPERTIES = {
    "equal-width": "Even Binning Scheme",
    "equal-mass": "Adaptive Binning Scheme",
    "top prediction": "Max Probs True",
    "all entries": "Max Probs False",
    "classes apart": "Class Conditional",
    "classes together": "Class Unconditional",
    "thresholded": "Thresholded",
    "unthresholded": "Unthresholded",
    "l1": "L1 Norm",
    "l2": "L2 Norm",
}
"""Rows of Nixon's tables 3 and 4, and their names in the paper."""


def read(path):
    """Return the rows of a data file."""
    return pd.read_csv(io.StringIO(path.read_text()), comment="#")


def same_as(best, pairs):
    """Return the methods that are not distinguished from the best one of a row."""
    near = pairs[pairs["adjusted"] > LEVEL]
    return set(near.loc[near["a"] == best, "b"]) | set(near.loc[near["b"] == best, "a"])


def marked(values, pairs):
    """Return the entries of a table: bold where best, starred where alike, with noise floors."""
    larger = values["table"].iloc[0] == "gupta-5"
    methods = list(dict.fromkeys(values["method"]))
    lines = []
    for network, entries in values.groupby("network", sort=False):
        row = entries.set_index("method")
        best = row["value"].idxmax() if larger else row["value"].idxmin()
        same = same_as(best, pairs[pairs["network"] == network])
        cells = []
        for method in methods:
            if method not in row.index:
                cells.append("–")
                continue
            value, spread, floor, pvalue = row.loc[method, ["value", "spread", "floor", "pvalue"]].astype(float)
            text = f"{100 * value:.2f}"
            text = f"**{text}**" if method == best else text + ("\\*" if method in same else "")
            text += f" ± {100 * spread:.2f}"
            cells.append(text + ("" if np.isnan(floor) else f" ({100 * floor:.2f}{', ok' if pvalue > LEVEL else ''})"))
        lines.append((network, *cells))
    return table(("network", *methods), lines)


def summary(pairs):
    """Return how many pairs of methods are distinguished, with and without uncalibrated models; networks and digits."""
    lines = []
    for name, group in pairs[~pairs["table"].str.startswith("nixon-5")].groupby("table", sort=True):
        digits, first = group["network"].str.startswith("digits"), group["a"] == BEFORE
        parts = [group[kind & some] for kind in (~digits, digits) for some in (first, ~first)]
        lines.append((name, *(f"{(part['adjusted'] <= LEVEL).sum()} of {len(part)}" for part in parts)))
    heads = ("a method and no recalibration", "two methods")
    return table(("table", *heads, *(f"digits: {head}" for head in heads)), lines)


def temperatures(folder):
    """Return table 3 of Nixon et al.: errors at the temperatures that minimise the metrics with each property."""
    found = pd.read_csv(folder / "disagreement-temperatures.csv", index_col=0)
    rows = PROPERTIES | {"log score": "log score (not in the paper)", "temperature 1": "Uncalibrated"}
    cells = [
        (name, *(f"{found.loc[key, f'{kind} mean']:.4f} ± {found.loc[key, f'{kind} std']:.4f}" for kind in KINDS))
        for key, name in rows.items()
    ]
    return table(("Property", "CIFAR-10", "CIFAR-10 Control CE"), cells)


KINDS = ("judged", "control")


def correlations(folder):
    """Return table 4 of Nixon et al.: mean rank correlation of the metrics with each property, over ten networks."""
    found = pd.read_csv(folder / "disagreement-networks.csv", index_col=0)
    columns = ("between_metrics", "between_halves")
    cells = [(name, *(f"{found.loc[key, column]:.2f}" for column in columns)) for key, name in PROPERTIES.items()]
    return table(("Property", "digits", "a metric with itself on two halves"), cells)


def orders(values, pairs):
    """Return table 5 of Nixon et al.: the numbers of the methods in the order of each of 32 metrics, best first.

    A star follows the methods that are not distinguished from the best one; the last row has the pairs that are.
    """
    columns, apart = [], []
    for number in range(32):
        key = f"nixon-5 {number}"
        row = values[values["table"] == key].set_index("method")["value"]
        tested = pairs[pairs["table"] == key]
        order = row.sort_values(kind="stable").index
        same = same_as(order[0], tested)
        columns.append([f"{METHODS.index(method)}" + ("\\*" if method in same else "") for method in order])
        apart.append(f"{(tested['adjusted'] <= LEVEL).sum()}")
    lines = [(str(place + 1), *row) for place, row in enumerate(zip(*columns, strict=True))]
    names = ", ".join(f"{number}: {method}" for number, method in enumerate(METHODS))
    return f"{table(('place', *map(str, range(32))), [*lines, ('pairs of 28 distinguished', *apart)])}\n{names}.\n"


def with_tables(text, values, pairs, folder):
    """Return the text of the page with its tables made from the data."""
    shown = values[~values["table"].str.startswith("nixon-5")]
    made = {key: marked(group, pairs[pairs["table"] == key]) for key, group in shown.groupby("table", sort=False)}
    made |= {"summary": summary(pairs), "nixon-5": orders(values, pairs)}
    made |= {"nixon-3": temperatures(folder), "nixon-4": correlations(folder)}
    for name, content in made.items():
        text = with_table(text, mark("recalibration", name), content)
    return text
