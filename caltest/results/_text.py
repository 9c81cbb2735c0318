"""Descriptions as text for the terminal, and as HTML for notebooks."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from html import escape
from io import StringIO
from typing import Any

from caltest.results._description import Description, Table
from caltest.results._note import Note

NARROWEST, WIDEST, USUAL = 80, 120, 100  # columns
_WIDEST_WORD = 30  # that a table is not to break
_NARROWEST_TEXT, _GAP = 10, 2  # columns of a text in a table that is too wide, and between the columns of the table
_COMMAND = re.compile(r"`caltest [^`]*`")
_PIECE, _INNER = re.compile(r"[^\s=,-]*[=,-]+|[^\s=,-]+"), re.compile(r"[^(]*\(|[^(]+")


def terminal_width() -> int:
    """Return how wide text may be: that of the terminal within limits, 100 columns where there is none."""
    return min(max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


def to_text(description: Description, width: int | None = None) -> str:
    """Return a description as text of at most ``width`` columns."""
    columns = terminal_width() if width is None else width
    if description.numbers is None:
        blocks = [_paragraphs([description.title, *description.conclusion, *description.advice], columns)]
    else:
        blocks = [_paragraphs([description.title], columns), _paragraphs(description.conclusion, columns)]
        blocks += [_lines(description.numbers, columns), _paragraphs(description.advice, columns)]
    blocks += [_lines(table, columns) for table in description.tables]
    blocks.append(_paragraphs(description.remarks, columns, indent="  "))
    blocks.append(_paragraphs([f"Note: {note}" for note in description.notes], columns, indent="  "))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _paragraphs(sentences: Iterable[str], width: int, indent: str = "") -> list[str]:
    further = indent + ("  " if indent else "")
    return [
        line for words in sentences for line in wrap(words, width, initial_indent=indent, subsequent_indent=further)
    ]


def wrap(words: str, width: int, **how: Any) -> list[str]:
    """Return text in lines of at most ``width`` columns; a command in backquotes, which people copy, stays in one."""
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", "\0"), words)
    lines = textwrap.wrap(whole, width, break_on_hyphens=False, break_long_words=whole == words, **how)
    return [line.replace("\0", " ") for line in lines]


def _lines(table: Table, width: int) -> list[str]:
    """Return the lines of a table; cells that are too wide are folded, between words where possible."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(
        box=None, pad_edge=False, padding=(0, 1, 0, 1), header_style="", show_edge=False, show_header=any(table.head)
    )
    widths = _widths(table, width)
    for column, (name, columns) in enumerate(zip(table.head, widths, strict=True)):
        justify = "left" if table.is_left(column) else "right"
        grid.add_column(_fold(name, columns), justify=justify, overflow="fold", width=columns)  # type: ignore[arg-type]
    for row in table.rows:
        grid.add_row(*(_fold(cell, columns) for cell, columns in zip(row, widths, strict=True)))
    page = StringIO()
    options: dict[str, Any] = {"color_system": None, "legacy_windows": False, "markup": False, "highlight": False}
    Console(file=page, width=width - 1, emoji=False, **options).print(grid)
    return [f" {line}".rstrip() for line in page.getvalue().splitlines()]


def _widths(table: Table, width: int) -> list[int]:
    """Return the widths of the columns of a table that fits: long cells are folded, and nothing is cut off.

    The widest columns become narrower first: at first between words, then between pieces of code, then within pieces
    of texts, at last numbers.
    """
    from rich.cells import cell_len

    cells = [[name, *(row[k] for row in table.rows)] for k, name in enumerate(table.head)]
    widths = [max(map(cell_len, column)) for column in cells]
    words = [min(max(map(cell_len, " ".join(column).split()), default=0), _WIDEST_WORD) for column in cells]
    pieces = [max(map(cell_len, _PIECE.findall(" ".join(column))), default=0) for column in cells]
    pieces = [min(own) if table.is_left(k) else own[0] for k, own in enumerate(zip(words, pieces, strict=True))]
    texts = [min(_NARROWEST_TEXT, own) if table.is_left(k) else own for k, own in enumerate(pieces)]
    room = width - 1 - _GAP * (len(widths) - 1)
    for least in (words, pieces, texts, [1] * len(widths)):
        while sum(widths) > room and (wide := [k for k, value in enumerate(widths) if value > least[k]]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _fold(text: str, width: int) -> str:
    """Return a text in lines of a width: broken between words, then after marks of code, then before what is in ()."""
    from rich.cells import cell_len

    lines = [""]
    for word in text.split(" "):
        gap = " " if lines[-1] else ""
        parts = [word] if cell_len(word) <= width else _PIECE.findall(word)
        parts = [part for whole in parts for part in ([whole] if cell_len(whole) <= width else _INNER.findall(whole))]
        for part in parts:
            if lines[-1] and cell_len(lines[-1] + gap + part) > width:
                lines.append(part)
            else:
                lines[-1] += gap + part
            gap = ""
    return "\n".join(lines)


def to_html(description: Description) -> str:
    """Return a description as HTML with real tables."""
    parts = [f"<h4>{escape(description.title)}</h4>"]
    parts += [f"<p><strong>{escape(words)}</strong></p>" for words in description.conclusion[:1]]
    parts += [f"<p>{escape(words)}</p>" for words in description.conclusion[1:]]
    parts += [] if description.numbers is None else [_table(description.numbers)]
    parts += [f"<p>{escape(words)}</p>" for words in description.advice]
    parts += [_table(table) for table in description.tables]
    parts += [f"<p>{escape(words)}</p>" for words in description.remarks]
    if description.notes:
        parts.append(f"<ul>{''.join(map(_note, description.notes))}</ul>")
    return "\n".join(parts)


def _note(note: Note) -> str:
    return f'<li>{escape(note.text)} <a href="{escape(note.link)}"><code>{escape(note.code)}</code></a></li>'


def _table(table: Table) -> str:
    align = [f' style="text-align: {"left" if table.is_left(k) else "right"}"' for k in range(len(table.head))]
    head = "".join(f"<th{how}>{escape(name)}</th>" for how, name in zip(align, table.head, strict=True))
    body = (
        "<tr>" + "".join(f"<td{how}>{escape(cell)}</td>" for how, cell in zip(align, row, strict=True)) + "</tr>"
        for row in table.rows
    )
    named = f"<thead><tr>{head}</tr></thead>" if any(table.head) else ""
    return f"<table>{named}<tbody>{''.join(body)}</tbody></table>"
