"""``caltest validity``: how often calibrated models were rejected, and how often intervals held the truth."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from caltest.cli._messages import refuse_if, show
from caltest.cli._options import add_command, add_option, parse_count
from caltest.predictions.inputs._refusals import shortened

_EXAMPLES = """
examples:
  caltest validity                            the worst of every method
  caltest validity --statistic KS --n 200
  caltest validity --statistic l2_interval --data ties
  caltest validity --data "groups rare"

A valid test rejects at most 5 % of all calibrated models at the level of 5 %,
and a valid interval of 95 % contains the truth in at least 95 % of all data
sets. What is worse by more than chance explains has a mark (*). The rules:
docs/validity.md.
"""
_RATES = ("at 1 %", "at 5 %", "at 10 %")
_COVERAGES = ("covered", "above", "below")


def add_to(commands: Any) -> None:
    """Add ``validity`` to the commands of a parser."""
    validity = add_command(
        commands,
        "validity",
        _run,
        help="how often a test rejected calibrated models, and an interval held the truth",
        description="Show what was measured on simulated data whose truth is known: how often a test rejects "
        "calibrated models, and how often an interval contains the truth. No data of yours are read.",
        epilog=_EXAMPLES,
    )
    add = validity.add_argument
    add("--statistic", metavar="NAME", help="name of a test, statistic or interval, such as KS, Omnibus or l2_interval")
    add("--n", type=parse_count, metavar="N", help="number of observations: rows of the nearest sizes are shown")
    add("--data", metavar="WORDS", help="words that the data must have, such as ties, groups or Confidence")
    add_option(validity, "--json", "print JSON instead of text")


def measured() -> Iterator[dict[str, Any]]:
    """Return the rows of the package's table, shares in percent.

    Examples
    --------
    >>> row = next(row for row in measured() if row["name"] == "KS")
    >>> row["kind"], row["rates"]["at 5 %"] < 7
    ('test', True)
    """
    columns = json.loads((files(__package__) / "measured.json").read_text(encoding="utf-8"))
    texts = {name: columns.pop(name) for name in ("kind", "name", "how", "data")}
    worse = set(columns.pop("worse"))
    for number, (n, sets, level, *shares) in enumerate(zip(*columns.values(), strict=True)):
        row = {name: text["words"][text["rows"][number]] for name, text in texts.items()}
        is_test = row["kind"] == "test"
        if not is_test:
            shares[2] = None if shares[1] is None else max(1000 - shares[0] - shares[1], 0)
        rates = {
            name: None if share is None else share / 10
            for name, share in zip(_RATES if is_test else _COVERAGES, shares, strict=True)
        }
        yield row | {"n": n, "sets": sets, "level": level / 10, "rates": rates, "worse": number in worse}


def _run(options: argparse.Namespace) -> int:
    rows = list(measured())
    names = dict.fromkeys(row["name"] for row in rows)
    if options.statistic is not None:
        wanted = options.statistic.split("(")[0].casefold()
        rows = [row for row in rows if wanted in (row["name"].casefold(), row["name"].casefold().partition(",")[0])]
        refuse_if(not rows, f"--statistic: nothing was measured of {options.statistic!r}; {_listed(names)}")
    for word in (options.data or "").casefold().split():
        rows = [row for row in rows if word in f"{row['how']}, {row['data']}".casefold()]
    refuse_if(not rows, f"--data: no row has the words {options.data!r}")
    if options.n is not None:
        rows = _nearest(rows, options.n)
        refuse_if(
            not rows, "--n: the groups of these data differ in size, so that no row has one number of observations"
        )
    whole = options.statistic is None and options.n is None and options.data is None
    show(options, _text(_worst(rows) if whole else rows, options, whole), {"n_rows": len(rows)}, rows=rows)
    return 0


def _listed(names: dict[str, None]) -> str:
    """Return the first words of all names."""
    first = sorted({name.partition(",")[0] for name in names}, key=str.casefold)
    return f"the names are {shortened(first, len(first))}"


def _nearest(rows: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Return the rows of each method whose number of observations is the nearest above and below ``n``."""
    sizes: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if row["n"] is not None:
            sizes.setdefault((row["name"], row["how"]), set()).add(row["n"])
    near = {
        key: {max((size for size in own if size <= n), default=0), min((size for size in own if size >= n), default=0)}
        for key, own in sizes.items()
    }
    return [row for row in rows if row["n"] in near.get((row["name"], row["how"]), ())]


def _worst(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the worst row of each method: the one with most rejections at 5 %, or the smallest coverage."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["name"], row["how"]
        if key not in found or _badness(row) > _badness(found[key]):
            found[key] = row
    return list(found.values())


def _badness(row: dict[str, Any]) -> float:
    return row["rates"]["at 5 %"] if row["kind"] == "test" else row["level"] - row["rates"]["covered"]


def _text(rows: list[dict[str, Any]], options: argparse.Namespace, whole: bool) -> str:
    """Return the rows as tables, tests before intervals."""
    from caltest.results._description import Description, Table
    from caltest.results._text import to_text

    words = "The worst of every method. " if whole else ""
    tables = []
    for kind, heads in (("test", _RATES), ("interval", _COVERAGES)):
        own = [row for row in rows if row["kind"] == kind]
        if own:
            head = ("test" if kind == "test" else "interval", "how", "data", "n", "data sets", *heads)
            tables.append(Table(head, [_cells(row, heads) for row in own], left=("how", "data")))
    marked = sum(row["worse"] for row in rows)
    verdict = f"{marked} of {len(rows):,} rows are worse than they should be by more than chance explains (*)."
    said = [words + verdict, "Numbers are percentages of simulated data sets."]
    if any(row["kind"] == "test" for row in rows):
        said.append("Tests: how many calibrated models are rejected at each level.")
    if any(row["kind"] == "interval" for row in rows):
        said.append("Intervals: how many contain the truth, and where it lies above or below them.")
    if options.n is not None:
        said.append(f"Measured sizes nearest to {options.n:,} observations are shown.")
    return to_text(Description(said[0], said[1:], tables))


def _cells(row: dict[str, Any], heads: tuple[str, ...]) -> list[str]:
    shown = ["" if row["rates"][head] is None else f"{row['rates'][head]:.1f}" for head in heads]
    name = row["name"] if row["kind"] == "test" else f"{row['name']}, {row['level']:g} %"
    size = "" if row["n"] is None else f"{row['n']:,}"
    return [f"{name}{' *' if row['worse'] else ''}", row["how"], row["data"], size, f"{row['sets']:,}", *shown]
