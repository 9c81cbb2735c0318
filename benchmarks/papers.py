"""Every item of the five papers: what it says, the call that gives it, the number there and the number here.

``docs/papers/items.csv`` has one row for each system, estimator, definition, equation, theorem, figure, table,
experiment and numerical claim; ``docs/papers/printed.csv`` has the numbers of the printed tables.
``python benchmarks/papers.py`` computes the numbers that come from a call again, writes them into the rows, and makes
the tables of ``docs/papers/*.md``.

The call of an item may use the names of `names`. Its number is that of the call where the column ``source`` says so,
and otherwise that of a file.
"""

import ast
import csv
import importlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # this checkout, whatever is installed

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.special import expit, logit  # noqa: E402
from scipy.stats import norm  # noqa: E402

import caltest  # noqa: E402
from benchmarks.markdown import table  # noqa: E402
from benchmarks.pages import mark, read, with_table  # noqa: E402

FOLDER = ROOT / "docs" / "papers"
COLUMNS = (
    *("paper", "kind", "item", "place", "says", "call", "published", "here", "source", "state", "evidence", "remark"),
)
PAPERS = {
    "vaicenavicius-2019": "Vaicenavicius et al. (2019)",
    "nixon-2019": "Nixon et al. (2019)",
    "laves-2020": "Laves et al. (2020)",
    "gupta-2020": "Gupta et al. (2020)",
    "posocco-2021": "Posocco and Bonnefoy (2021)",
}
KINDS = ("definition", "method", "theorem", "figure", "table", "claim")
STATES = ("there", "partly", "open", "needs data")
"""``needs data``: data that cannot be had here, such as predictions of networks that were never published."""
MISPRINTS = ("Misprint: ", "Contradiction: ")
"""How remarks begin where a paper prints something else than it computed, or than its own tables show."""
BY_CALL = "call"

Item = dict[str, str]


def items() -> list[Item]:
    """Return the rows of the file."""
    with (FOLDER / "items.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Item]) -> None:
    """Write the rows."""
    with (FOLDER / "items.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# What calls may use.


@cache
def _printed() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "printed.csv", dtype={"table": str, "row": str, "column": str})


@cache
def printed(paper: str, name: str) -> pd.DataFrame:
    """Return a table of a paper as it is printed."""
    found = _printed().query("paper == @paper and table == @name")
    rows, columns = (found[part].drop_duplicates() for part in ("row", "column"))
    return found.pivot(index="row", columns="column", values="value").loc[rows, columns]


@cache
def data(name: str) -> pd.DataFrame:
    """Return a file of docs/data; its first column is the index."""
    frame = read((ROOT / "docs" / "data" / f"{name}.csv").read_text())
    return frame.set_index(frame.columns[0])


def cells_limit(n_cells: int) -> float:
    """Return the limit of the ECE of equal-width cells for ``GaussianMixture1D(1, 1)``, by quadrature in each cell."""
    edge = np.concatenate([[-12.0], logit(np.arange(1, n_cells) / n_cells) - 1, [12.0]])
    node, weight = np.polynomial.legendre.leggauss(80)
    half = np.diff(edge)[:, None] / 2
    x = edge[:-1, None] + half * (1 + node)
    density = (norm.pdf(x, -1) + norm.pdf(x, 1)) / 2
    return float(np.abs(((expit(-2 * x) - expit(1 + x)) * density * half) @ weight).sum())


def top_and_rest(error: float, n_classes: int, n_others: int | None = None) -> np.ndarray:
    """Return one prediction whose top class has 1 - error, and some others, by default all, the rest in equal parts."""
    others = n_classes - 1 if n_others is None else n_others
    return np.array([[1 - error, *[error / others] * others, *[0] * (n_classes - 1 - others)]])


def example() -> tuple[np.ndarray, np.ndarray]:
    """Return ten observations of each prediction of table 1 of Vaicenavicius et al., with the frequencies there."""
    cells = printed("vaicenavicius-2019", "1").to_numpy()
    y_true = np.concatenate([np.repeat([0, 1, 2], np.rint(10 * row[3:]).astype(int)) for row in cells])
    return y_true, np.repeat(cells[:, :3], 10, axis=0)


def halves(
    lens: caltest.predictions.Lens, run_out: str = "linear", n_knots: int = 6
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return outcome and prediction of an event of VGG-16 after the spline of Gupta et al., on both halves.

    The spline goes through the cumulative labels of the first half, the calibration half.
    """
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    fitted, test = ((y_prob[half].astype(float), y_true[half]) for half in (slice(5000), slice(5000, None)))
    spline = caltest.recalibration.SplineCalibration(n_knots, lens, curve="labels", run_out=run_out).fit(*fitted)
    return [(lens(prob, label)[1], spline.predict_event(prob)) for prob, label in (fitted, test)]


def names() -> dict[str, Any]:
    """Return what the call of an item may use, by name.

    ``y_true`` and ``y_prob`` are the bundled predictions of VGG-16, ``toy`` is section 7.2 of Laves et al. (1,000
    predictions of (.6, .4), right in 60 %), and ``pathology`` figure 4 of Nixon et al.
    """
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    toy = np.repeat([0, 1], [600, 400]), np.tile([0.6, 0.4], (1000, 1))
    pathology = np.repeat([1, 0], [450, 550]), np.repeat([[0.52, 0.48], [0.58, 0.42]], [450, 550], axis=0)
    functions = (printed, data, cells_limit, top_and_rest, example, halves)
    own = {function.__name__: function for function in functions}
    return own | {"caltest": caltest, "np": np, "y_true": y_true, "y_prob": y_prob, "toy": toy, "pathology": pathology}


def shown(value: Any) -> str:
    """Return a number or several as they stand in the file: six digits, and 0 for what is left by rounding."""
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if np.ndim(value):
        return ("; " if isinstance(np.ravel(value)[0], str) else ", ").join(map(shown, np.ravel(value)))
    number = float(value)
    return "0" if abs(number) < 1e-12 else f"{number:.6g}"


def computed(call: str, known: Mapping[str, Any]) -> str:
    """Return the number that a call gives."""
    return shown(eval(call, dict(known)))


# What must hold.


def _chain(node: ast.AST) -> str:
    """Return the dotted name of an expression; nothing if it is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def _thing(path: str) -> Any:
    """Return what a dotted name of the package is, or None."""
    found: Any = caltest
    for number, part in enumerate(path.split(".")[1:], 2):
        if isinstance(found, ModuleType) and not hasattr(found, part):
            try:
                found = importlib.import_module(".".join(path.split(".")[:number]))
            except ImportError:
                return None
        else:
            found = getattr(found, part, None)
    return found


def _wrong_call(call: str) -> Iterator[str]:
    if call.startswith("python "):
        script = call.split()[1]
        if not (ROOT / script).is_file():
            yield f"no file {script}"
        return
    try:
        tree = ast.parse(call, mode="eval")
    except SyntaxError:
        yield f"no expression: {call}"
        return
    for node in ast.walk(tree):
        path = _chain(node)
        if path.startswith("caltest.") and not path.startswith("caltest.torch.") and _thing(path) is None:
            yield f"no name {path}"
        if isinstance(node, ast.Call) and callable(thing := _thing(_chain(node.func)) if _chain(node.func) else None):
            taken = inspect.signature(thing).parameters
            free = any(one.kind is one.VAR_KEYWORD for one in taken.values())
            for one in node.keywords:
                if not free and one.arg and one.arg not in taken:
                    yield f"{_chain(node.func)} takes no {one.arg}"


def _wrong_evidence(evidence: str) -> Iterator[str]:
    for one in filter(None, evidence.split("; ")):
        path, _, name = one.partition("::")
        file = ROOT / path.partition("#")[0]
        if not file.is_file():
            yield f"no file {path}"
        elif name and name not in _functions(file):
            yield f"no test {one}"


@cache
def _functions(file: Path) -> set[str]:
    return set(re.findall(r"^def (\w+)\(", file.read_text(), flags=re.MULTILINE))


def wrong(row: Item) -> list[str]:
    """Return what is wrong with a row, in words."""
    found = [
        f"{column} is {row[column]!r}"
        for column, allowed in (("paper", PAPERS), ("kind", KINDS), ("state", STATES))
        if row[column] not in allowed
    ]
    found += [f"no {column}" for column in ("item", "place", "says") if not row[column]]
    found += _wrong_call(row["call"]) if row["call"] else []
    found += _wrong_evidence(row["evidence"])
    if row["state"] in {"there", "partly"} and not row["evidence"]:
        found.append("no evidence")
    if row["state"] != "there" and not row["remark"]:
        found.append("no remark on what is missing")
    if row["source"] not in {"", BY_CALL} and not (ROOT / row["source"]).is_file():
        found.append(f"no file {row['source']}")
    if bool(row["here"]) != bool(row["source"]):
        found.append("a number and its source belong together")
    return found


# Pages.


def _link(row: Item) -> str:
    """Return the state of an item, which leads to its evidence."""
    first = row["evidence"].split("; ")[0]
    if not first:
        return row["state"]
    path, _, _ = first.partition("::")
    place = path.removeprefix("docs/papers/") if path.startswith("docs/papers/") else f"../../{path}"
    return f"[{row['state']}]({place.replace('../../docs/', '../')})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def of_kind(rows: list[Item], paper: str, kind: str) -> str:
    """Return the table of a page: all items of a paper of one kind."""
    cells = [
        (
            f"{_cell(row['item'])} ({_cell(row['place'])})" if row["place"] != row["item"] else _cell(row["item"]),
            _cell(row["says"]),
            _code(row["call"]),
            _cell(row["published"]),
            _cell(row["here"]),
            _link(row),
            _cell(row["remark"]),
        )
        for row in rows
        if (row["paper"], row["kind"]) == (paper, kind)
    ]
    text = table(("item", "what it says", "call", "paper", "here", "state", "remark"), cells)
    return text.replace("|---|---:|---:|---:|---:|---:|---:|", "|---|---|---|---:|---:|---|---|")


def counts(rows: list[Item]) -> str:
    """Return the table of the hub: how many items of each paper are in each state."""
    found = Counter((row["paper"], row["state"]) for row in rows)
    cells = [
        (f"[{name}]({paper}.md)", *(str(found[paper, state]) for state in STATES)) for paper, name in PAPERS.items()
    ]
    total = [str(sum(found[paper, state] for paper in PAPERS)) for state in STATES]
    return table(("paper", *STATES), [*cells, ("all", *total)])


def chosen(rows: list[Item], states: tuple[str, ...]) -> str:
    """Return the items of the hub in some states, with what is missing."""
    cells = [
        (PAPERS[row["paper"]], f"{_cell(row['item'])} ({_cell(row['place'])})", row["state"], _cell(row["remark"]))
        for row in rows
        if row["state"] in states
    ]
    text = table(("paper", "item", "state", "what is missing"), cells) if cells else "None.\n"
    return text.replace("|---|---:|---:|---:|", "|---|---|---|---|")


def misprints(rows: list[Item]) -> str:
    """Return the items of the hub in which a paper contradicts itself or what can be computed."""
    cells = [
        (PAPERS[row["paper"]], f"{_cell(row['item'])} ({_cell(row['place'])})", _cell(row["published"]),
         _cell(row["here"]), _cell(row["remark"]))
        for row in rows
        if row["remark"].startswith(MISPRINTS)
    ]  # fmt: skip
    text = table(("paper", "item", "printed", "computed", "what it is"), cells)
    return text.replace("|---|---:|---:|---:|---:|", "|---|---|---|---|---|")


def with_tables(page: str, text: str, rows: list[Item]) -> str:
    """Return the text of a page with its tables made from the rows."""
    if page == "index":
        made = {
            "counts": counts(rows),
            "open": chosen(rows, ("partly", "open")),
            "needs data": chosen(rows, ("needs data",)),
            "misprints": misprints(rows),
        }
    else:
        made = {kind: of_kind(rows, page, kind) for kind in KINDS}
    for name, content in made.items():
        text = with_table(text, mark("papers", name), content)
    return text


def main() -> None:
    """Compute the numbers of calls again, and write file and pages."""
    rows, known = items(), names()
    for row in rows:
        if row["source"] == BY_CALL:
            row["here"] = computed(row["call"], known)
        for fault in wrong(row):
            print(f"{row['paper']}, {row['item']}: {fault}")
    write(rows)
    for page in ("index", *PAPERS):
        file = FOLDER / f"{page}.md"
        file.write_text(with_tables(page, file.read_text(), rows))
    print(dict(Counter(row["state"] for row in rows)), f"of {len(rows)}")


if __name__ == "__main__":
    main()
