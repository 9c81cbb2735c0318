"""How tests are written: on data of their own, with skips whose reason a stranger understands."""

import ast
from collections.abc import Iterator

from tests.house.sources import ROOT

TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))

GENERATORS = {"default_rng", "RandomState", "Random", "Generator", "generator"}


def shared_generators(tree: ast.Module | ast.ClassDef) -> Iterator[int]:
    """The lines that make a generator which several tests may draw from, so that their order changes their data.

    A generator of which something is asked at once, as in `default_rng(0).random(3)`, is gone afterwards.
    """
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from shared_generators(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.With | ast.If | ast.For):
            nodes = list(ast.walk(statement))
            asked = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
            given = {
                id(part)
                for node in nodes
                if isinstance(node, ast.Call)
                for part in [*node.args, *(one.value for one in node.keywords)]
            }
            for node in nodes:
                made = isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in GENERATORS
                seeded = isinstance(node, ast.Call) and ast.unparse(node.func) in {"np.random.seed", "random.seed"}
                if (made and id(node) not in asked | given) or seeded:
                    yield node.lineno


SHARED = """
RNG = np.random.default_rng(0)
class A:
    rng = default_rng(1)
np.random.seed(0)
rng: Any = RandomState(3)
"""

GONE = """
P = np.random.default_rng(0).random(3)
X = draw(5, np.random.default_rng(1), other=default_rng(2))
def f():
    rng = default_rng(0)
"""


def test_no_tests_share_a_generator():
    assert list(shared_generators(ast.parse(SHARED))) == [2, 4, 5, 6]
    assert list(shared_generators(ast.parse(GONE))) == []
    trees = {str(file.relative_to(ROOT)): ast.parse(file.read_text()) for file in TEST_FILES}
    assert [f"{file}:{line}" for file, tree in trees.items() for line in shared_generators(tree)] == []
