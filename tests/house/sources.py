"""The files of the package, their syntax trees, and who imports whom: what the rules of this folder read."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import caltest

PACKAGE = Path(caltest.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}

TABLES = {("recalibration/maps/_saved_map.py", "_ROOMS")}
"""Tables of rooms from which a file puts names of modules together. `cli` may import every room and needs none."""

LOADERS = {"import_module", "__import__", "find_spec", "resolve_name"}
"""Functions that are given the name of a module."""

IN_A_STRING = re.compile("|".join((r"[\"']caltest\b", r"\bmodules\[", *LOADERS)))
"""What a text has that imports by a string; the trees of other files need not be searched."""


class Import(NamedTuple):
    file: Path
    line: int
    module: str
    in_function: bool
    kind: Literal["run", "for types", "by a string"] = "run"

    @property
    def head(self) -> str:
        return self.module.split(".")[0]

    @property
    def room(self) -> str:
        """The room of the package that is imported; "?" if the name is put together when the program runs."""
        return [*self.module.split("."), "?"][1] if self.head == "caltest" else ""

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree of a file, parsed once."""
    return ast.parse(file.read_text())


@cache
def imports_of(file: Path) -> list[Import]:
    """Every import of a file: by statements, for type checkers, by strings, and by a table of names."""
    tree = tree_of(file)
    found = [
        Import(file, node.lineno, module, inside, "for types" if for_types else "run")
        for node, inside, for_types in statements(tree)
        for module in modules_of(node)
    ]
    tables = [name for path, name in TABLES if PACKAGE / path == file]
    strings = named_in_strings(tree) if IN_A_STRING.search(file.read_text()) else ()
    named = [*strings, *(entry for name in tables for entry in named_in_table(tree, name))]
    found += [Import(file, *entry, True, "by a string") for entry in named if not (tables and entry[1] == "caltest.?")]
    stub = file.with_suffix(".pyi")
    if stub.exists() and file.parent != PACKAGE:  # lazy_loader imports what the stub says
        aliases = [node for node in ast.walk(tree_of(stub)) if isinstance(node, ast.ImportFrom)]
        found += [
            Import(file, node.lineno, str(node.module), True, "by a string") for node in aliases if node.level != 1
        ]
    return found


def statements(
    node: ast.AST, in_function: bool = False, for_types: bool = False
) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every statement, whether it stands in a function, and whether only type checkers read it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # holds no statement
            continue
        inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        checked = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
        yield child, inside, for_types
        yield from statements(child, inside, checked)


def modules_of(node: ast.AST) -> list[str]:
    """The modules of an import statement; none for other statements."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        if node.module == "caltest":
            return [f"caltest.{alias.name}" for alias in node.names]
        return [str(node.module)]
    return []


def named_in_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the name of modules of the package that stand in a string, whatever is done with it.

    A name that is put together when the program runs is an import of `caltest.?`. The package itself may be asked for
    its version by a string, and for nothing else.
    """
    nodes = list(ast.walk(tree))
    asked = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "__version__"}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and names_a_room(node.value):
            yield node.lineno, node.value
        elif (given := loaded(node)) is not None and id(node) not in asked:
            if not isinstance(given, ast.Constant):
                yield node.lineno, "caltest.?"
            elif given.value == "caltest":
                yield node.lineno, "caltest"


def names_a_room(text: str) -> bool:
    """Whether a text is the name of a room, of a file in it, or of something that is defined there."""
    if not text.startswith("caltest."):
        return False
    return text.split(".")[1] in ROOMS and all(part.isidentifier() for part in text.split("."))


def loaded(node: ast.AST) -> ast.expr | None:
    """What a loader is given or `sys.modules` is asked for; None for other expressions."""
    if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "modules":
        return node.slice
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOADERS:
        return next(iter([*node.args, *(keyword.value for keyword in node.keywords)]), None)
    return None


def named_in_table(tree: ast.Module, name: str) -> list[tuple[int, str]]:
    """The line of a table of rooms, which is a constant of its file, with each of its rooms."""
    (table,) = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name]
    return [(table.lineno, f"caltest.{room}") for room in ast.literal_eval(table.value)]


def room_of(file: Path) -> str:
    """The room that a file stands in."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imports() -> list[Import]:
    """All imports of the package."""
    return [found for file in FILES for found in imports_of(file)]


@cache
def files_by_name() -> dict[str, Path]:
    """The file of each module; those of packages import by stubs and are not among them."""
    files = [file for file in FILES if file.name != "__init__.py"]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}


def files_imported(by: Path) -> set[Path]:
    """The files of the package that a file imports."""
    named = files_by_name()
    found = set()
    for node, _, _ in statements(tree_of(by)):
        modules = modules_of(node)
        if isinstance(node, ast.ImportFrom):
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {named[module] for module in modules if module in named}
    return found | {named[found.module] for found in imports_of(by) if found.module in named}


def circles_of(arrows: dict[Path, set[Path]]) -> set[frozenset[Path]]:
    """Groups of files that import each other, directly or through others."""
    reached = {file: set(others) for file, others in arrows.items()}
    for middle in arrows:
        for file in arrows:
            if middle in reached[file]:
                reached[file] |= reached[middle]
    circles = {frozenset(other for other in reached[file] if file in reached[other]) for file in arrows}
    return circles - {frozenset()}
