"""How tests are written: on data of their own, with skips whose reason a stranger understands."""

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, tree_of

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
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            given = {id(part) for call in calls for part in (*call.args, *(one.value for one in call.keywords))}
            for call in calls:
                name = str(getattr(call.func, "attr", getattr(call.func, "id", "")))
                is_left = name in GENERATORS and id(call) not in asked | given
                if is_left or name == "seed":
                    yield call.lineno


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


@pytest.mark.slow(few_draws=True)
def test_no_tests_share_a_generator():
    assert list(shared_generators(ast.parse(SHARED))) == [2, 4, 5, 6]
    assert list(shared_generators(ast.parse(GONE))) == []
    outside = re.compile(rf"^class |^\S.*\b({'|'.join(GENERATORS)}|seed)\(", re.MULTILINE)
    files = [file for file in TEST_FILES if outside.search(file.read_text())]
    assert [f"{file}:{line}" for file in files for line in shared_generators(tree_of(file))] == []


FEWEST_WORDS = 5
WITH_THE_TESTS = {"dateutil", "jinja2", "joblib", "matplotlib", "numba", "scipy", "sklearn"}
"""Modules that are installed with the tests, besides those that are called like their package."""


def poor_skips(tree: ast.Module) -> Iterator[int]:
    """The lines of skips without a reason in words, and of those that wait for what is installed with the tests."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*settings["dependencies"], *settings["optional-dependencies"]["test"]]
    present = {re.split(r"[^\w-]", one)[0].replace("-", "_") for one in listed} | WITH_THE_TESTS
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        name = str(getattr(call.func, "attr", ""))
        if name not in {"skip", "skipif", "importorskip"}:
            continue
        reason = next((one.value for one in call.keywords if one.arg == "reason"), None)
        if name == "skip" and reason is None and call.args:
            reason = call.args[0]
        in_words = isinstance(reason, ast.Name) or len(ast.unparse(reason).split() if reason else []) >= FEWEST_WORDS
        waits = name == "importorskip" and ast.literal_eval(call.args[0]).split(".")[0] in present
        if not in_words or waits:
            yield call.lineno


POOR = """
pytest.importorskip("ray")
pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
pytest.skip("no chromium")
pytest.mark.skipif(A is None, reason="not here")
pytest.skip()
"""

GOOD = """
pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
pytest.skip(NOT_DISTRIBUTED)
pytest.skip(f"images are of matplotlib {VERSION}, this is another")
"""


@pytest.mark.slow(few_draws=True)
def test_skips_say_why_to_a_stranger():
    """A package that `pip install '.[test]'` installs is there: its absence is a failure, not a reason to skip."""
    assert list(poor_skips(ast.parse(POOR))) == [2, 3, 4, 5, 6]
    assert list(poor_skips(ast.parse(GOOD))) == []
    files = [file for file in TEST_FILES if "skip" in file.read_text()]
    assert [f"{file}:{line}" for file in files for line in poor_skips(tree_of(file))] == []
