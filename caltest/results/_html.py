"""Descriptions as HTML for notebooks."""

from __future__ import annotations

from html import escape

from caltest.results._description import Description, Table
from caltest.results._note import Note


def to_html(description: Description) -> str:
    """Return a description as HTML with real tables."""
    parts = [f"<h4>{escape(description.title)}</h4>"]
    parts += [f"<p><strong>{escape(words)}</strong></p>" for words in description.conclusion[:1]]
    parts += [f"<p>{escape(words)}</p>" for words in description.conclusion[1:]]
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
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
