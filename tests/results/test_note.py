"""Notes: every code is explained in docs/notes.md, and every explanation has a code."""

import re
from pathlib import Path

import caltest
from caltest.results import Note
from caltest.results._note import PAGE

ROOT = Path(caltest.__file__).parents[1]
SOURCES = [file.read_text() for file in Path(caltest.__file__).parent.rglob("*.py")]


def used():
    """Codes in the strings of the package: those of its notes."""
    return {code for text in SOURCES for _, code in re.findall(r"""(["'])(C\d{3})\1""", text)}


def explained():
    """Codes with a section, in the order of the page."""
    return re.findall(r"^## (\w+)$", (ROOT / PAGE).read_text(), flags=re.MULTILINE)


def test_every_code_is_explained_and_every_explanation_used():
    assert len(used()) > 20
    assert used() == set(explained())
    assert explained() == sorted(set(explained())), "each once, in order"


def test_explanations_say_more_than_a_heading():
    for section in (ROOT / PAGE).read_text().split("\n## ")[1:]:
        code, _, text = section.partition("\n")
        assert text.strip().startswith("**"), code
        assert len(text.split()) > 20, code


def test_note():
    note = Note("C201", "A label had been given probability 0.")
    assert str(note) == "A label had been given probability 0. [C201]"
    assert note.link == "docs/notes.md#c201"
    assert (ROOT / note.link.partition("#")[0]).is_file()
    assert note.to_dict() == {"code": "C201", "text": "A label had been given probability 0.", "link": note.link}
    assert note == Note("C201", "A label had been given probability 0.")
    assert len({note, Note("C201", "A label had been given probability 0.")}) == 1
