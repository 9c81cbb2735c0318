"""The order of the rooms: who imports whom, and where heavy libraries live."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import caltest

PACKAGE = Path(caltest.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))

ROOMS = [
    {"_compiled", "results", "datasets"},
    {"predictions"},
    {"resampling"},
    {"statistics"},
    {"estimation"},
    {"hypothesis_tests"},
    {"comparison", "scorers", "streaming", "simulation", "torch"},
    {"recalibration"},
    {"plotting"},
    {"page"},
    {"cli"},
]
"""A room imports itself and the rooms of earlier lines; `caltest/__init__.py` imports none until a name is used."""

LAZY = {
    "matplotlib",
    "statsmodels",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sklearn",
    "rich",
    "joblib",
    "jinja2",
    "torch",
    "plotly",
}
"""Imported inside functions only: what does not need them does not wait for them."""

AT_THE_TOP = {("sklearn", "recalibration")}
"""Exceptions, each with its room: estimators inherit from scikit-learn's classes, and the room itself is lazy."""

ONLY_IN = {"numba": "_compiled", "llvmlite": "_compiled", "matplotlib": "plotting", "plotly": "plotting"}


class Import(NamedTuple):
    file: Path
    line: int
    module: str
    in_function: bool

    @property
    def head(self) -> str:
        return self.module.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file, parsed once."""
    return ast.parse(file.read_text())


@cache
def imports_of(file: Path) -> list[Import]:
    return [
        Import(file, node.lineno, module, in_function)
        for node, in_function in statements(tree_of(file))
        for module in modules_of(node)
    ]


def statements(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement that is run, and whether it stands in a function; imports for type checkers are not run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # holds no statement
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield child, inside
        yield from statements(child, inside)


def modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        if node.module == "caltest":
            return [f"caltest.{alias.name}" for alias in node.names]
        return [str(node.module)]
    return []


def room_of(file: Path) -> str:
    """The room that a file stands in."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def line_of(room: str) -> int:
    """The line of `ROOMS` in which a room stands."""
    return next(i for i, rooms in enumerate(ROOMS) if room in rooms)


@cache
def imports() -> list[Import]:
    """All imports of the package."""
    return [found for file in FILES for found in imports_of(file)]


def test_the_reader_of_imports_reads():
    """Guards the rules below: a reader that finds nothing would let everything pass."""
    source = (
        "import numba\nif TYPE_CHECKING:\n    import pandas\nclass A:\n    import rich\n"
        "def f():\n    from scipy.stats import norm\n"
    )
    found = [(m, inside) for node, inside in statements(ast.parse(source)) for m in modules_of(node)]
    assert found == [("numba", False), ("rich", False), ("scipy.stats", True)]
    assert {"caltest.predictions.inputs._validation", "numba", "numpy", "statsmodels.stats.proportion"} <= {
        i.module for i in imports()
    }


def test_every_module_stands_in_a_room():
    """`ls caltest` shows rooms and nothing else."""
    loose = [path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix == ".py"]
    assert loose == ["__init__.py"]
    assert {room_of(file) for file in FILES} - {"__init__"} <= set().union(*ROOMS)


def test_imports_stay_in_their_room_or_point_to_an_earlier_one():
    wrong = []
    for found in imports():
        room, parts = room_of(found.file), found.module.split(".")
        if found.head != "caltest" or room in {"__init__", "cli"}:
            continue
        if len(parts) == 1 or not (parts[1] == room or line_of(parts[1]) < line_of(room)):
            wrong.append(str(found))
    assert wrong == []


def test_kernel_files_stand_alone():
    """Numba's cache does not see an edit in another file and would return stale results."""
    compiling = "imports caltest._compiled._jit"  # the decorator, which is never compiled itself
    found = [str(i) for i in imports() if room_of(i.file) == "_compiled" and i.head == "caltest"]
    assert [line for line in found if not line.endswith(compiling)] == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_has_one_home(library):
    assert [str(i) for i in imports() if i.head == library and room_of(i.file) != ONLY_IN[library]] == []


def test_heavy_libraries_are_imported_inside_functions():
    early = [i for i in imports() if i.head in LAZY and not i.in_function]
    assert [str(i) for i in early if (i.head, room_of(i.file)) not in AT_THE_TOP] == []
    assert {(i.head, room_of(i.file)) for i in early} == AT_THE_TOP


@pytest.mark.parametrize("file", sorted((PACKAGE / "_compiled").glob("*.py")), ids=lambda file: file.stem)
def test_compiled_draw_from_their_own_generator(file):
    """np.random in compiled code is slower than NumPy and depends on threads."""
    tree = tree_of(file)
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "random"}
    assert not used & {"np.random", "numpy.random"}
    assert not [i for i in imports_of(file) if i.module.startswith(("numpy.random", "random"))]


def test_compiled_are_compiled_when_called_and_release_the_lock():
    decorators = [
        decorator
        for file in (PACKAGE / "_compiled").glob("*.py")
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if "jit" in ast.unparse(decorator) or ast.unparse(decorator).startswith(("kernel", "reduction", "inner"))
    ]
    names = {ast.unparse(decorator).split("(_")[0] for decorator in decorators}  # an argument is a function of the file
    assert names == {"kernel", "kernel_unless_one", "reduction", "inner", "njit(inline='always')"}
    assert len(decorators) > 5
    compiled = (PACKAGE / "_compiled" / "_jit.py").read_text()
    assert compiled.count("njit(nogil=True") == 1
    assert compiled.count('options |= {"nogil": True') == 1
    assert compiled.count("njit(**options)") == 1
    assert compiled.count("njit(cache=True, **options)") == 1
    assert "parallel" not in compiled
