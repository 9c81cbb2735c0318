"""Files: short, documented, importable alone, without paths of one machine."""

import ast
import importlib
import inspect
import re

from tests.house.sources import FILES, PACKAGE, ROOT, tree_of
from tests.house.test_docstrings import PUBLIC

MAX_LINES = 600
LONGER: dict[str, str] = {}
"""Files that may be longer, each with its reason."""


def test_every_module_says_what_it_is_for():
    said = re.compile(r'r?"""\s*[^\s"]')
    silent = [
        str(file.relative_to(ROOT)) for file in FILES if not said.match(file.read_text()) and file.name != "__main__.py"
    ]
    assert silent == []


def test_files_are_short():
    length = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in FILES}
    assert {file: n for file, n in length.items() if n > MAX_LINES and file not in LONGER} == {}
    assert {file for file in LONGER if length.get(file, 0) <= MAX_LINES} == set()


def test_no_path_of_one_machine():
    """What works for its author only."""
    machine = re.compile(r"(?<![\w.:/-])/(?:work|farm|root|home|Users|mnt)/\w")
    texts = [
        file
        for folder in ("caltest", "tests", "benchmarks", "docs")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".md", ".toml", ".txt", ".sh"} and file.is_file()
    ] + [file for file in ROOT.iterdir() if file.suffix in {".md", ".toml"}]
    assert len(texts) > len(FILES)
    wrong = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in texts
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if machine.search(line)
    ]
    assert wrong == []


def test_documentation_uses_public_names_only():
    """What a reader needs for an own statistic, lens, partition or result is in a room, never in a private module."""
    private = re.compile(r"(?<!python -m )caltest(?:\.\w+)*\._[a-z]|from +caltest(?:\.\w+)* +import +(?:\w+, *)*_")
    assert private.search("from caltest.results._note import Note")
    assert private.search("from caltest.cli import a, _b")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py")]
    texts = {str(page.relative_to(ROOT)): page.read_text() for page in pages}
    texts |= {path: inspect.getdoc(thing) or "" for path, thing in PUBLIC.items()}
    assert {"docs/extending.md", "docs/figures/cell_tests.py", "caltest.calibration_test"} <= set(texts)
    assert [name for name, text in texts.items() if private.search(text)] == []


def test_every_module_can_be_imported_alone():
    files = [file for file in FILES if file.name != "__main__.py"]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]
    assert [name for name in names if importlib.import_module(name).__name__ != name] == []


WRITES = {"write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "rename", "savefig", "to_csv"}
WRITES |= {"to_parquet", "savez", "savez_compressed"}
STREAMS = {"stream", "buffer"}


def written_by_name(tree):
    """The lines of the calls that write a file which they open by its name."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [str(one.value) for one in given if isinstance(one, ast.Constant)]
        opened = name in {"open", "ZipFile"} and any(re.fullmatch("[wax][bt+]*", mode) for mode in modes)
        saved = name == "save" and ast.unparse(call.func) == "np.save"
        if (name in WRITES or opened or saved) and not (call.args and ast.unparse(call.args[0]) in STREAMS):
            yield call.lineno


def test_every_file_is_written_by_the_atomic_writer():
    """Elsewhere half a file could be left, or a symbolic link be followed whose name was known before."""
    wrong = ['p.write_text("")', 'open(p, "w")', 'p.open(mode="ab")', "np.savez(p, a=1)", 'zipfile.ZipFile(p, "w")']
    right = ["open(p)", "figure.savefig(stream, dpi=150)", "fitted.save(p)", 'zipfile.ZipFile(buffer, "w")']
    assert list(written_by_name(ast.parse("\n".join(wrong + right)))) == [1, 2, 3, 4, 5]
    files = [file for file in FILES if any(name in file.read_text() for name in (*WRITES, "open", "ZipFile", "save"))]
    found = {str(file.relative_to(PACKAGE)) for file in files if list(written_by_name(tree_of(file)))}
    assert found == {"results/_atomic_file.py"}
