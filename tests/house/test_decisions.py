"""Decisions at a level are made in one place: no other file compares a p-value with a level."""

import ast
from pathlib import Path

import pytest

import caltest

PACKAGE = Path(caltest.__file__).parent
ALLOWED = {PACKAGE / "results" / "_decision.py"}
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def decisions(source):
    """The comparisons of a source that put a p-value and a level in order."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(op, ORDERED) for op in node.ops):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            of_pvalue = [any(word in side for word in ("pvalue", "adjusted", "smallest")) for side in sides]
            of_level = [any(word in side for word in ("alpha", "confidence_level")) for side in sides]
            if any(of_pvalue) and any(of_level):
                found.append(ast.unparse(node))
    return found


def test_the_rule_notices_decisions_by_hand():
    assert decisions("model.pvalue_adjusted <= 1 - comparison.confidence_level")
    assert decisions("low.pvalue <= self._alpha < high.pvalue")
    assert not decisions("rejects(pvalue, alpha)\nn <= 1 / alpha\npvalue < smallest")


@pytest.mark.parametrize(
    "room", sorted(p.name for p in PACKAGE.iterdir() if p.is_dir() and not p.name.startswith("__"))
)
def test_only_one_file_decides_at_a_level(room):
    files = [path for path in (PACKAGE / room).rglob("*.py") if path not in ALLOWED]
    found = {str(path.relative_to(PACKAGE)): decisions(path.read_text()) for path in files}
    assert {path: by_hand for path, by_hand in found.items() if by_hand} == {}
