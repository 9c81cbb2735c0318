"""Notebooks run without network and print what stands in them. They are executed here: Jupyter is not needed."""

import contextlib
import io
import json

import pytest

from tests.house.sources import ROOT

NOTEBOOKS = {path.name: path for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}


def test_there_is_a_notebook_and_the_first_page_leads_to_it():
    assert "first-look.ipynb" in NOTEBOOKS
    assert "](notebooks/first-look.ipynb)" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_print_what_stands_below_them(name, monkeypatch):
    def no_network(*_):
        message = "a notebook asked for the network"
        raise AssertionError(message)

    monkeypatch.setattr("socket.getaddrinfo", no_network)
    monkeypatch.setattr("socket.socket.connect", no_network)
    cells = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in cells if cell["cell_type"] == "code"]
    assert cells
    names = {}
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{name}, {cell['id']}", "exec"), names)
        assert printed.getvalue() == "".join("".join(output["text"]) for output in cell["outputs"]), cell["id"]
