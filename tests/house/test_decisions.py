"""Decisions at a level are made by `results/_decision.py` alone, so that text and pictures cannot contradict."""

import ast
import re
from collections.abc import Iterator

from tests.house.sources import FILES, PACKAGE, tree_of

PVALUE = re.compile(r"p_?val", re.IGNORECASE)
LEVEL = re.compile(r"(?:^|_)alpha(?:_of)?$|confidence_level", re.IGNORECASE)
SMALLEST = re.compile(r"^_?SMALLEST_")
"""Names of p-values, of levels, and of the smallest numbers that are computed or shown."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

NO_DECISIONS = {
    (
        "estimation/curves/_bars.py",
        "np.min(_tails(self.rate, self.number(1 - alpha), expected), axis=0) < alpha / 2",
    ): "which interval excludes a frequency?",
    ("estimation/curves/_bars.py", "tail(end) >= alpha"): "is the end of the range in the interval?",
    ("estimation/curves/_bars.py", "tail(middle) >= alpha"): "is a frequency in the interval?",
    ("hypothesis_tests/_fold_tests.py", "self.pvalue * (n + 1) > len(self.fold_names) + 0.5"): "the smallest possible?",
    ("results/_test_result.py", "self.pvalue * (self.n_resamples + 1) > 1.5"): "the smallest possible one?",
    ("simulation/studies/_sample_size.py", "power <= alpha"): "a power that the level reaches by itself is refused",
    ("statistics/_squared_l2_distribution.py", "self.evidence > alpha"): "is there a crossing to search for?",
}
"""Comparisons of other kinds, each with what it asks."""


def names_in(expression: ast.expr) -> Iterator[str]:
    """Names, attributes, and columns of frames."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def has(pattern: re.Pattern[str], expression: ast.expr) -> bool:
    return any(pattern.search(name) for name in names_in(expression))


def is_decision(one: ast.expr, other: ast.expr) -> bool:
    """Whether one side is a p-value and the other is not, or one side is a level and the other is not a number."""
    if has(PVALUE, one):
        return not has(PVALUE, other) and not has(SMALLEST, other)
    return has(LEVEL, one) and any(names_in(other))


def decisions_in(tree: ast.Module) -> list[tuple[int, str]]:
    """The line and the code of comparisons that decide by hand."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            if any(isinstance(op, ORDERS) and (is_decision(a, b) or is_decision(b, a)) for a, op, b in pairs):
                found.append((node.lineno, ast.unparse(node)))
    return found


def test_what_is_a_decision_by_hand():
    decisions = (
        "model.pvalue_adjusted <= 1 - comparison.confidence_level",
        "smallest > alpha_of(level)",
        "p <= self._alpha",
        "low.pvalue_adjusted <= self._alpha < high.pvalue_adjusted",
        "frame['pvalue'] < 0.05",
        "0.05 >= test.pvalue * n_tests",
        "pvalue > _DIRECTION_LEVEL",
        "rule.pvalue([one]) <= limit",
    )
    others = (
        "0 < alpha < 1",
        "one.pvalue > other.pvalue",
        "pvalue <= _SMALLEST_SHOWN",
        "alpha == 0.05",
        "level > 1",
    )
    assert [code for code in decisions if not decisions_in(ast.parse(code))] == []
    assert [code for code in others if decisions_in(ast.parse(code))] == []


def test_decisions_at_a_level_are_made_in_one_place():
    found = {
        (str(file.relative_to(PACKAGE)), code): f"{file.relative_to(PACKAGE)}:{line}: {code}"
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] != "_compiled" and file.name != "_decision.py"
        for line, code in decisions_in(tree_of(file))
    }
    unknown = [text for key, text in found.items() if key not in NO_DECISIONS]
    assert unknown == [], "call `rejects` of caltest/results/_decision.py"
    assert [key for key in NO_DECISIONS if key not in found] == []
