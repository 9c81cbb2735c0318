"""Tests stand where the code stands: who changes a file finds its tests, and who reads a test finds the file."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.house.sources import FILES, PACKAGE, ROOT, tree_of

TESTS = ROOT / "tests"
OF_ALL_ROOMS = {"benchmarks", "house", "reference"}

THROUGH = {
    "cli/_recalibrated_file.py": "cli/test_apply.py",
    "estimation/simplex/_simplex_cells.py": "estimation/simplex/test_simplex_diagram.py",
    "plotting/_error_curves.py": "plotting/test_plotting_curves.py",
    "plotting/_prediction_axis.py": "plotting/test_reliability.py",
    "plotting/_studies.py": "plotting/test_plotting.py",
    "predictions/files/_formats.py": "predictions/files/test_read.py",
    "predictions/files/_values.py": "predictions/files/test_read.py",
    "predictions/inputs/_frames.py": "predictions/inputs/test_arguments.py",
    "recalibration/maps/_columns.py": "recalibration/maps/test_base.py",
    "recalibration/study/_study_entries.py": "recalibration/study/test_study.py",
    "recalibration/study/_study_result.py": "recalibration/study/test_study.py",
    "results/_before_after.py": "recalibration/study/test_study.py",
    "resampling/engine/_statistic.py": "statistics/test_base.py",
    "simulation/models/_level_sets.py": "simulation/models/test_gaussian_mixture_feature_models.py",
    "hypothesis_tests/_evidence.py": "results/test_verdict.py",
    "streaming/monitors/_bets.py": "streaming/monitors/test_monitor.py",
    "streaming/states/_micro_cells.py": "streaming/states/test_state.py",
}
"""Files with public names or numbers that are tested through other functions, with the path of these tests."""


def words(name: str) -> str:
    """The name of a class or a function as the name of a file: `EqualMass` is `equal_mass`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def public_names() -> dict[Path, set[str]]:
    """The public names of each file, as the stubs of the rooms list them."""
    found: dict[Path, set[str]] = {}
    for stub in PACKAGE.glob("*/__init__.pyi"):
        for node in tree_of(stub).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                file = stub.parent / f"{node.module.replace('.', '/')}.py"
                found.setdefault(file, set()).update(alias.name for alias in node.names)
    return found


@cache
def subjects_of(file: Path) -> set[str]:
    """What a test of a file may be called: like the file, or like a public name that it defines."""
    return {file.stem.strip("_")} | {
        form for name in public_names().get(file, ()) for form in (words(name), name.lower())
    }


def folder_of(file: Path) -> Path:
    """The folder of tests that mirrors the folder of a file."""
    return TESTS / file.parent.relative_to(PACKAGE)


@cache
def text_of(test: Path) -> str:
    """What a test file says, read once for all files that it may be about."""
    return test.read_text()


def is_about(test: Path, subject: str) -> bool:
    """Whether a test is called like its subject, or like an aspect of it."""
    return test.stem == f"test_{subject}" or test.stem.startswith(f"test_{subject}_")


def has_numbers(file: Path) -> bool:
    """Whether a function of a file returns an array."""
    functions = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.FunctionDef) and node.returns]
    return any(re.search("NDArray|Floats|Integers|Booleans", ast.unparse(node.returns)) for node in functions)


def is_tested(file: Path) -> bool:
    """Whether a test is called like the file, or one in the mirrored folder uses what it defines."""
    tests = list(folder_of(file).glob("test_*.py"))
    if any(is_about(test, subject) for test in tests for subject in subjects_of(file)):
        return True
    texts = [text_of(test) for test in tests]
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    used = [rf"\b{re.escape(module)}\b", *(rf"\b{name}\b" for name in public_names().get(file, ()))]
    return any(re.search(word, text) for word in used for text in texts)


def test_every_test_is_called_like_what_it_tests():
    """`test_<file>.py`, `test_<public name>.py`, or `test_<folder>.py` for what its files have in common."""
    lost = []
    for test in sorted(TESTS.rglob("test_*.py")):
        place = test.parent.relative_to(TESTS)
        if place.parts and place.parts[0] not in OF_ALL_ROOMS:
            files = [file for file in FILES if file.parent == PACKAGE / place]
            subjects = {place.name}.union(*map(subjects_of, files))
            if not any(is_about(test, subject) for subject in subjects):
                lost.append(str(test.relative_to(TESTS)))
    assert lost == []


def test_every_file_with_public_names_or_numbers_has_tests():
    """Compiled functions are tested by the loops of `tests/reference` and by `test_kernels.py`."""
    files = [file for file in FILES if file in public_names() or has_numbers(file)]
    untested = [file for file in files if file.parent != PACKAGE / "_compiled" and not is_tested(file)]
    assert {str(file.relative_to(PACKAGE)) for file in untested} == set(THROUGH)


@pytest.mark.parametrize("file", THROUGH)
def test_what_is_tested_elsewhere_is_tested(file):
    assert (TESTS / THROUGH[file]).exists()


def test_folders_of_tests_are_folders_of_the_package():
    folders = {test.parent.relative_to(TESTS) for test in TESTS.rglob("test_*.py")}
    assert [
        str(place) for place in folders if place.parts[0] not in OF_ALL_ROOMS and not (PACKAGE / place).is_dir()
    ] == []


def test_the_names_of_tests_are_read():
    assert words("EqualMass") == "equal_mass"
    assert is_about(Path("test_bars_with_groups.py"), "bars")
    assert not is_about(Path("test_barsoom.py"), "bars")
