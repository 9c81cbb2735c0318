"""Write the table of docs/what-may-be-passed.md: which public function takes which argument, from their signatures.

python benchmarks/arguments_table.py
"""

import importlib
import inspect
from pathlib import Path

ROOMS = ("hypothesis_tests", "estimation", "comparison", "recalibration", "simulation", "streaming", "page")
ARGUMENTS = ("sample_weight", "groups", "time", "folds", "region", "lens", "classes", "workers")
DATA = {"y_true", "y_prob", "y_true_a", "X", "source", "logits"}
"""Arguments of functions that are given predictions."""

PAGE = Path(__file__).parents[1] / "docs" / "what-may-be-passed.md"
BEGIN, END = "<!-- made by benchmarks/arguments_table.py -->\n", "<!-- end -->\n"


def functions() -> dict[str, inspect.Signature]:
    """Return the signatures of the public functions that are given predictions, by the names that users type."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"caltest.{room}")
        for name in sorted(module.__all__):
            function = getattr(module, name)
            if not inspect.isfunction(function):
                continue
            signature = inspect.signature(function)
            if DATA & set(signature.parameters):
                found[f"{room}.{name}"] = signature
    return found


def table() -> str:
    """Return the table in Markdown: one line for each function."""
    lines = [f"| function | {' | '.join(f'`{name}`' for name in ARGUMENTS)} |", f"|---|{'---|' * len(ARGUMENTS)}"]
    for name, signature in functions().items():
        marks = ["yes" if {argument, f"{argument}_a"} & set(signature.parameters) else "" for argument in ARGUMENTS]
        lines.append(f"| `{name}` | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the text of the page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
