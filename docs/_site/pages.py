"""The order of the pages, read from the links of the section pages, and links that leave docs/.

The pages are also read in the repository, so they hold no directives of Sphinx: a section page is a list or table of
links, and its links in their order are its table of contents. A page that no section page links to fails the build.
"""

import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

from _site.flowchart import drawn

DOCS = Path(__file__).resolve().parents[1]

SECTIONS = {
    "index": [
        "start",
        "guides",
        "fields",
        "examples/index",
        "other-packages",
        "papers/index",
        "statistics",
        "reference/index",
        "evidence",
        "inside",
        "glossary",
        "reference/bibliography",
        "project",
    ],
    "guides": [],
    "fields": [],
    "papers/index": [],
    "evidence": [],
    "inside": [],
    "project": [],
}
"""Section pages in the order of reading. An empty list is filled with what the page links to first."""

WHOLE = {
    "changes": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "benchmarks": "benchmarks/README.md",
    "security": "SECURITY.md",
    "conduct": "CODE_OF_CONDUCT.md",
}
"""Pages that show a file which stands elsewhere in the repository."""

LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def inside(target: str, folder: PurePosixPath) -> str | None:
    """The page inside docs/ that a link from ``folder`` (a path in the repository) leads to, without its suffix."""
    parts: list[str] = []
    for part in (folder / target).parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    path = "/".join(parts)
    shown = {file: page for page, file in WHOLE.items()} | {"README.md": "index"}
    if path in shown:
        return shown[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/").removesuffix(".md")
    return None


def redirected(text: str, page: str, folder: PurePosixPath) -> str:
    """The text with its links as seen from ``page``, though it was written for ``folder`` of the repository."""
    up = "../" * page.count("/")
    place = "../" + up

    def link(match: re.Match) -> str:
        target, anchor = match.group(1), match.group(2) or ""
        if re.match(r"[a-z]+:", target):
            return match.group()
        found = inside(target, folder)
        if target.endswith("GALLERY_HEADER.rst"):
            return f"]({up}examples/index.rst)"
        if found:
            return f"]({up}{found}.md{anchor})"
        if folder.parts[:1] == ("docs",):
            return match.group()
        return f"]({place}{(folder / target).as_posix()}{anchor})"

    return LINK.sub(link, text)


def folder_of(page: str) -> PurePosixPath:
    """The folder of the repository for which the text of a page was written."""
    return PurePosixPath(WHOLE[page]).parent if page in WHOLE else (PurePosixPath("docs") / page).parent


def text_of(page: str) -> str:
    """The text of a page or of the file that it shows."""
    return (DOCS.parent / WHOLE[page] if page in WHOLE else DOCS / f"{page}.md").read_text(encoding="utf-8")


def contents() -> dict[str, list[str]]:
    """The pages under each section page: a page belongs to the first section that links to it."""
    placed = {"index", *SECTIONS["index"]}
    found = {}
    for section, pages in SECTIONS.items():
        links = [inside(match.group(1), folder_of(section)) for match in LINK.finditer(text_of(section))]
        found[section] = pages or list(dict.fromkeys(page for page in links if page and page not in placed))
        placed.update(found[section])
    return found


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page its links and, if it is a section page, its table of contents."""
    if not (DOCS / f"{page}.md").exists():
        return
    if page in WHOLE:
        app.env.note_dependency(str(DOCS.parent / WHOLE[page]))
    source[0] = drawn(redirected(text_of(page), page, folder_of(page)))
    under = app.config.site_contents.get(page, [])
    if under:
        entries = "\n".join(f"/{entry}" for entry in under)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Read the order of the pages once, and change each page when it is read."""
    app.add_config_value("site_contents", contents(), "env")
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
