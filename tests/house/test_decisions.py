"""Decisions at a level are made by `results/_decision.py` alone, so that text and pictures cannot contradict."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.sources import FILES, PACKAGE, room_of, tree_of

PVALUE = re.compile(r"p_?val", re.IGNORECASE)
LEVEL = re.compile(r"(?:^|_)alpha(?:_of)?$|confidence_level", re.IGNORECASE)
SMALLEST = re.compile(r"^_?SMALLEST_")
INTERVAL = re.compile(r"interval")
"""Names of p-values, of levels, of the smallest numbers that are computed or shown, and of intervals."""

WORTH_READING = re.compile(r"p_?val|alpha|confidence_level|interval", re.IGNORECASE)
"""What a file or a function has that compares any of these."""

SHOWN_ONLY = {"plotting", "page", "cli"}
"""Rooms that show what others have decided: there the ends of intervals are not compared with numbers either."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
METHODS = {"le", "lt", "ge", "gt"}
FUNCTIONS = METHODS | {"less", "less_equal", "greater", "greater_equal"}
COPIES = re.compile(r"(^|\.)(float|min|max|sorted|round|minimum|maximum|a?s?array|to_numpy|ravel|copy|list|tuple)$")
"""Operators, methods of a frame, functions of NumPy, and functions whose value is a p-value if they are given one."""

NO_DECISIONS = {
    (
        "estimation/curves/_bars.py",
        "np.min(_tails(self.rate, self.number(1 - alpha), expected), axis=0) < alpha / 2",
    ): "which interval excludes a frequency?",
    ("estimation/curves/_bars.py", "tail(end) >= alpha"): "is the end of the range in the interval?",
    ("estimation/curves/_bars.py", "tail(middle) >= alpha"): "is a frequency in the interval?",
    ("hypothesis_tests/_by_fold.py", "number < EXCEEDANCES"): "did the draws go on, because few are larger?",
    ("hypothesis_tests/_subgroups.py", "np.abs((moved - event) @ weight) >= needed"): "is it large enough?",
    ("hypothesis_tests/_power_curve.py", "power <= alpha"): "a power that the level reaches by itself is refused",
    ("resampling/engine/_pvalues.py", "smallest * n < 1.5"): "do the draws allow one p-value or more?",
    ("results/_test_result.py", "self.pvalue * (self.n_resamples + 1) <= len(self.folds) + 0.5"): "and by fold?",
    ("results/_test_result.py", "self.pvalue * (self.n_resamples + 1) > 1.5"): "the smallest possible one?",
    ("statistics/_squared_l2_distribution.py", "self.evidence > alpha"): "is there a crossing to search for?",
}
"""Comparisons of other kinds, each with what it asks."""


Roles = dict[str, str]
"""Names of a function that stand for a p-value, a level or an interval, with a name that says so."""


def names_in(expression: ast.expr, roles: Roles) -> Iterator[str]:
    """Names, attributes, and columns of frames; a name that was given to a p-value counts as one."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield roles.get(node.id, node.id)
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value)


def has(pattern: re.Pattern[str], expression: ast.expr, roles: Roles) -> bool:
    return any(pattern.search(name) for name in names_in(expression, roles))


def is_decision(one: ast.expr, other: ast.expr, roles: Roles) -> bool:
    """Whether one side is a p-value and the other is not, or one side is a level and the other is not a number."""
    if is_zero_or_one(other) or getattr(getattr(one, "func", None), "id", "") == "len":
        return False
    if has(PVALUE, one, roles):
        return not has(PVALUE, other, roles) and not has(SMALLEST, other, roles)
    return has(LEVEL, one, roles) and any(names_in(other, roles))


def is_zero_or_one(expression: ast.expr) -> bool:
    """Whether an expression is an end of the range of probabilities, which is no level."""
    return isinstance(expression, ast.Constant) and expression.value in {0, 1}


def excludes(one: ast.expr, other: ast.expr, roles: Roles) -> bool:
    """Whether one side is the end of an interval and the other a number: whether it excludes the number decides."""
    return has(INTERVAL, one, roles) and not any(names_in(other, roles))


def bindings(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Names of a tree, each with what it is given by an assignment, a loop, or one over `zip`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter


def roles_of(tree: ast.AST) -> Roles:
    """The names that hold the p-values, levels or intervals of other expressions, also through several names."""
    roles: Roles = {}
    pairs = []
    for target, value in bindings(tree):
        each = [target]
        values = [value]
        if isinstance(target, ast.Tuple):
            zipped = isinstance(value, ast.Call) and ast.unparse(value.func) == "zip"
            each, values = target.elts, value.args if zipped else getattr(value, "elts", [])
        pairs += [(a.id, b) for a, b in zip(each, values, strict=False) if isinstance(a, ast.Name)]
    for _ in range(2):
        for name, value in pairs:
            held = value
            while isinstance(held, ast.Call) and COPIES.search(ast.unparse(held.func)):
                held = held.func.value if isinstance(held.func, ast.Attribute) and not held.args else held.args[0]
            if isinstance(held, ast.Name | ast.Attribute | ast.Subscript | ast.ListComp | ast.GeneratorExp | ast.BinOp):
                last = held.elt if isinstance(held, ast.ListComp | ast.GeneratorExp) else held
                known = [word for word in names_in(last, roles) if any(one.search(word) for one in (PVALUE, LEVEL))]
                if known:
                    roles.setdefault(name, known[-1])
    return roles


def comparisons(tree: ast.AST) -> Iterator[tuple[ast.expr, list[tuple[ast.expr, ast.expr]]]]:
    """Expressions that ask which of two is larger, with the sides: by operators, by methods, and by functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            yield (
                node,
                [(a, b) for a, op, b in zip(sides, node.ops, sides[1:], strict=False) if isinstance(op, ORDERS)],
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in FUNCTIONS and len(node.args) > 1:
                yield node, [(node.args[0], node.args[1])]
            elif node.func.attr in METHODS:
                yield node, [(node.func.value, node.args[0])]
            elif node.func.attr in {"query", "eval"} and isinstance(node.args[0], ast.Constant):
                yield from ((node, pairs) for _, pairs in comparisons(ast.parse(str(node.args[0].value))))


def decisions_in(tree: ast.Module, *, intervals: bool = False) -> list[tuple[int, str]]:
    """The line and the code of comparisons that decide by hand; also by intervals, where results are only shown."""
    found = []
    for scope in filter(is_worth_reading, scopes(tree)):
        roles = roles_of(scope)
        for node, pairs in comparisons(scope):
            decides = any(
                is_decision(*sides, roles) or (intervals and excludes(*sides, roles))
                for a, b in pairs
                for sides in ((a, b), (b, a))
            )
            if decides:
                found.append((node.lineno, ast.unparse(node)))
    return found


def scopes(tree: ast.Module | ast.ClassDef) -> Iterator[ast.AST]:
    """Functions, methods and other statements: what a name means in one of them, it does not mean in the next."""
    rest = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from scopes(node)
        elif isinstance(node, ast.FunctionDef):
            yield node
        else:
            rest.append(node)
    yield ast.Module(rest, [])


def is_worth_reading(scope: ast.AST) -> bool:
    """Whether a name or a text of it may be any of these."""
    words = (getattr(node, field, "") for node in ast.walk(scope) for field in ("id", "attr", "value"))
    return any(WORTH_READING.search(word) for word in words if isinstance(word, str))


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
        "(pvalues >= 0) & (pvalues <= 1)",
        "alpha == 0.05",
        "level > 1",
    )
    assert [code for code in decisions if not decisions_in(ast.parse(code))] == []
    assert [code for code in others if decisions_in(ast.parse(code))] == []


def test_what_is_a_decision_in_other_clothes():
    """As a plot would make it: under another name, by a method, by a function, in a text, by an interval."""
    decisions = (
        "p = model.pvalue_adjusted\nface = 'white' if p > limit else 'black'",
        "p = np.array([one.pvalue for one in models])\nmarked = p <= cut",
        "for one, p in zip(names, result.pvalues):\n    p < 0.05",
        "marked = [p < 0.05 for p in result.pvalues]",
        "p = test.pvalue\nsmall = float(p)\nsmall < cut",
        "def draw(test, ax):\n    p = test.pvalue\n    ax.plot(marker='*' if p < ax.limit else 'o')",
        "limit = 1 - comparison.confidence_level\nmarked = smallest <= limit",
        "np.less_equal(frame.pvalue, cut)",
        "frame['pvalue'].le(cut)",
        "operator.lt(test.pvalue, 0.05)",
        "frame.query('pvalue < 0.05')",
    )
    by_interval = ("row.confidence_interval.low > 0", "interval = row.interval\n0 < interval[0]")
    others = (
        "def f(test):\n    p = test.pvalue\ndef g(p):\n    return p > 0.5",
        "shown = [row for row in rows if rejects(row.pvalue, alpha)]\nlen(shown) > 3",
        "p = rejects(test.pvalue, alpha)\np.sum() > 3",
        "np.less(x, y)",
        "ax.interval_width > other.width",
    )
    assert [code for code in decisions if not decisions_in(ast.parse(code))] == []
    assert [code for code in by_interval if not decisions_in(ast.parse(code), intervals=True)] == []
    assert [code for code in others if decisions_in(ast.parse(code), intervals=True)] == []


@pytest.mark.slow(few_draws=True)
def test_decisions_at_a_level_are_made_in_one_place():
    found = {
        (str(file.relative_to(PACKAGE)), code): f"{file.relative_to(PACKAGE)}:{line}: {code}"
        for file in FILES
        if room_of(file) != "_compiled" and file.name != "_decision.py"
        if WORTH_READING.search(file.read_text())
        for line, code in decisions_in(tree_of(file), intervals=room_of(file) in SHOWN_ONLY)
    }
    unknown = [text for key, text in found.items() if key not in NO_DECISIONS]
    assert unknown == [], "call `rejects` of caltest/results/_decision.py"
    assert [key for key in NO_DECISIONS if key not in found] == []


def test_pvalues_and_counts_are_written_in_one_way():
    """Columns of p-values had mixed decimals, and 20000 stood beside 20,000.

    `show_pvalue`, `align_pvalue` and "{pvalue:p}" of a table write p-values; counts have their thousands separated.
    """
    own_decimals = re.compile(r"\{[^{}]*p_?value[^{}]*:\.\d+[efg]\}")
    without_mark = re.compile(r"\{[^{}:!]*\} (weighted )?(observations|draws)\b")
    sources = {file: file.read_text() for file in FILES if file.name != "_decision.py"}
    constants = re.compile(r"\{_?[A-Z_]+\}|\{'the same'")  # small ones, and words
    found = [
        f"{file.name}: {hit[0]}"
        for file, text in sources.items()
        for rule in (own_decimals, without_mark)
        for hit in rule.finditer(text)
        if not constants.match(hit[0]) and "{result.pvalue" not in hit[0]  # an example
    ]
    assert not found
