"""The order of the rooms: who imports whom, and where heavy libraries live."""

import ast

import pytest

from tests.house.sources import (
    FILES,
    PACKAGE,
    ROOT,
    circles_of,
    files_imported,
    imports,
    imports_of,
    modules_of,
    named_in_strings,
    room_of,
    statements,
    tree_of,
)

ROOMS = [
    {"_compiled", "results", "datasets"},
    {"predictions"},
    {"resampling"},
    {"statistics"},
    {"estimation"},
    {"hypothesis_tests"},
    {"comparison", "scorers", "streaming", "simulation", "torch"},
    {"recalibration"},
    {"clinical"},
    {"ranking"},
    {"plotting"},
    {"page"},
    {"cli"},
]
"""A room imports itself and the rooms of earlier lines; `caltest/__init__.py` imports none until a name is used."""

LAZY = {
    "matplotlib",
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


KNOWN: set[str] = set()
"""Circles of files and imports of later rooms that are still to be mended; what is mended is taken from this list."""

MOST_ARROWS = 116
"""Pairs of a room and another one that it imports, in any way; benchmarks/ counts as a room. Fewer are simpler.

Thirteen are those of `ranking`, which takes scores, tests, decisions and states from the rooms that have them."""


def line_of(room: str) -> int:
    """The line of `ROOMS` in which a room stands; a name that is not known before the program runs is in the last."""
    return next((i for i, rooms in enumerate(ROOMS) if room in rooms), len(ROOMS))


def short(file) -> str:
    """The path of a file inside the package."""
    return str(file.relative_to(PACKAGE))


def test_the_reader_of_imports_reads():
    """Guards the rules below: a reader that finds nothing would let everything pass."""
    source = (
        "import numba\nif TYPE_CHECKING:\n    import pandas\nclass A:\n    import rich\n"
        "def f():\n    from scipy.stats import norm\n"
    )
    found = [(m, inside, types) for node, inside, types in statements(ast.parse(source)) for m in modules_of(node)]
    assert found == [
        ("numba", False, False),
        ("pandas", False, True),
        ("rich", False, False),
        ("scipy.stats", True, False),
    ]
    assert {"caltest.predictions.inputs._validation", "numba", "numpy", "scipy.stats"} <= {i.module for i in imports()}


def test_the_reader_of_strings_reads():
    imported = {
        "import_module('caltest.plotting')": "caltest.plotting",
        "importlib.import_module(name='caltest.page._page').write_report(x)": "caltest.page._page",
        "__import__('caltest.plotting', fromlist=['*'])": "caltest.plotting",
        "sys.modules['caltest.page']": "caltest.page",
        "PICTURES = {'band': 'caltest.plotting.plot_band'}": "caltest.plotting.plot_band",
        "lazy_loader.load('caltest.plotting')": "caltest.plotting",
        "import_module(f'caltest.{room}')": "caltest.?",
        "import_module(name)": "caltest.?",
        "import_module('.plotting', 'caltest')": "",
        "import_module('caltest').plotting": "caltest",
        "sys.modules['caltest'].plotting": "caltest",
        "sys.modules['caltest'].__version__": "",
        "import_module('caltest').__version__": "",
        "'caltest.CalibrationMonitor'": "",
        "'caltest test FILE'": "",
        "import_module('torch')": "",
    }
    assert {code: "".join(name for _, name in named_in_strings(ast.parse(code))) for code in imported} == imported


def test_the_reader_of_circles_reads():
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a", "f"}, "g": set()}
    assert {"".join(sorted(circle)) for circle in circles_of(arrows)} == {"abc", "de", "f"}


def test_every_module_stands_in_a_room():
    """`ls caltest` shows rooms and nothing else."""
    loose = [path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix == ".py"]
    assert loose == ["__init__.py"]
    assert {room_of(file) for file in FILES} - {"__init__"} <= set().union(*ROOMS)


def test_imports_point_to_earlier_rooms_and_files_import_each_other_in_no_circle():
    """Imports for type checkers and by a name in a string too: they tie files together as others do."""
    upward = {
        f"{short(found.file)} imports {found.module}"
        for found in imports()
        if found.head == "caltest" and (room := room_of(found.file)) not in {"__init__", "cli"}
        if not (found.room == room or line_of(found.room) < line_of(room))
        or (found.module == f"caltest.{room}" and found.kind != "by a string")  # its own face, which hides circles
    }
    circles = circles_of({file: files_imported(file) for file in FILES})
    assert upward | {f"circle: {', '.join(sorted(map(short, circle)))}" for circle in circles} == KNOWN


def test_a_room_imports_few_others():
    pairs = {(room_of(found.file), found.room) for found in imports() if found.head == "caltest"}
    for file in sorted((ROOT / "benchmarks").rglob("*.py")):
        pairs |= {("benchmarks", found.room) for found in imports_of(file) if found.kind == "run"}
    arrows = {(one, other) for one, other in pairs if one != other and other in set().union(*ROOMS)}
    assert len(arrows) <= MOST_ARROWS


def test_kernel_files_stand_alone():
    """Numba's cache does not see an edit in another file and would return stale results."""
    compiling = "imports caltest._compiled._jit"  # the decorator, which is never compiled itself
    found = [str(i) for i in imports() if room_of(i.file) == "_compiled" and i.head == "caltest"]
    assert [line for line in found if not line.endswith(compiling)] == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_has_one_home(library):
    elsewhere = [i for i in imports() if i.head == library and i.kind == "run" and room_of(i.file) != ONLY_IN[library]]
    assert list(map(str, elsewhere)) == []


def test_heavy_libraries_are_imported_inside_functions():
    early = [i for i in imports() if i.head in LAZY and not i.in_function and i.kind == "run"]
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
    assert names == {"kernel", "reduction", "inner", "njit(inline='always')"}
    assert len(decorators) > 5
    compiled = (PACKAGE / "_compiled" / "_jit.py").read_text()
    assert compiled.count("njit(nogil=True") == 1
    assert compiled.count('options |= {"nogil": True') == 1
    assert compiled.count("njit(**options)") == 1
    assert compiled.count("njit(cache=True, **options)") == 1
    assert "parallel" not in compiled
