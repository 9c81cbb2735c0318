"""The data of the table that validity-table.md filters: what the package holds, as a script, which needs no network."""

from importlib.resources import files

from sphinx.application import Sphinx

DATA = files("caltest.cli") / "measured.json"
PAGE = "validity-table"


def add(app: Sphinx, page: str, *_: object) -> None:
    """Load the scripts on the page of the table only."""
    if page == PAGE:
        app.add_js_file(None, body=f"window.MEASURED = {DATA.read_text(encoding='utf-8')};")
        app.add_js_file("filter.js", defer="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the scripts when the page is written."""
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
