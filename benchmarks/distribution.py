"""Whether wheel and source hold what they should: ``python -m build``, ``python benchmarks/distribution.py dist``."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 2_000_000
"""Of the wheel."""


def wanted() -> set[str]:
    """The files of the package that a wheel holds."""
    files = {f for f in (ROOT / "caltest").rglob("*") if f.is_file() and "__pycache__" not in f.parts}
    files = {f for f in files if f.suffix not in {".nbi", ".nbc"}}
    return {f.relative_to(ROOT).as_posix() for f in files} | {"caltest/page/notes.md"}


def problems_of_wheel(path: Path) -> list[str]:
    """What is wrong with a wheel, in sentences."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (about,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(about).decode())
    found = [f"is missing: {name}" for name in sorted(wanted() - names)]
    found += [f"does not belong there: {name}" for name in sorted(names - wanted())]
    if path.stat().st_size > MOST_BYTES:
        found.append(f"{path.stat().st_size:,} bytes, at most {MOST_BYTES:,} are allowed")
    if not str(metadata.get_payload()).startswith("# caltest"):
        found.append("the README is not in the metadata")
    return found


def problems_of_source(path: Path) -> list[str]:
    """What is wrong with a source archive: it must build and test itself."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "conftest.py",
        "docs/notes.md",
        "docs/conf.py",
    }
    found = [f"is missing: {name}" for name in sorted((needed | wanted() - {"caltest/page/notes.md"}) - names)]
    made = ("docs/reference/", "docs/examples/", "site/")
    return found + [f"does not belong there: {name}" for name in sorted(names) if name.startswith(made)]


def main(folder: str = "dist") -> int:
    """Print what is wrong; the exit code is 1 if something is."""
    found = []
    for path in sorted(Path(folder).iterdir()):
        check = {".whl": problems_of_wheel, ".gz": problems_of_source}.get(path.suffix)
        found += [f"{path.name}: {problem}" for problem in check(path)] if check else []
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    print("\n".join(found) or "nothing is missing, and nothing too much")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
