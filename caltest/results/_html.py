"""Descriptions as HTML for notebooks."""

from __future__ import annotations

from html import escape

from caltest.results._description import Description, Table


def to_html(description: Description) -> str:
    """Return a description as HTML with real tables."""
    parts = [f"<h4>{escape(description.title)}</h4>"]
    parts += [f"<p><strong>{escape(words)}</strong></p>" for words in description.conclusion[:1]]
    parts += [f"<p>{escape(words)}</p>" for words in description.conclusion[1:]]
    parts += [_table(table) for table in description.tables]
    parts += [f"<p>{escape(words)}</p>" for words in description.remarks]
    if description.notes:
        items = "".join(f"<li>{escape(note.text)} <code>{escape(note.code)}</code></li>" for note in description.notes)
        parts.append(f"<ul>{items}</ul>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    align = [f' style="text-align: {"left" if table.is_left(k) else "right"}"' for k in range(len(table.head))]
    head = "".join(f"<th{how}>{escape(name)}</th>" for how, name in zip(align, table.head, strict=True))
    body = (
        "<tr>" + "".join(f"<td{how}>{escape(cell)}</td>" for how, cell in zip(align, row, strict=True)) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
