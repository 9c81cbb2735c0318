"""Flowcharts of pages as pictures: Mermaid, which GitHub draws, is drawn here as SVG, so that no script is needed.

What is read: nodes ``name["words<br/><i>small words</i>"]`` and arrows ``a --> b -->|yes| c``. A node stands below what
leads to it, in the column of the first such node where that is free, otherwise in the next one.
"""

import re
from html import escape, unescape

NODE = re.compile(r'^\s*(\w+)\["(.+?)"\]\s*$', flags=re.MULTILINE)
ARROW = re.compile(r"(\w+)\s*-->\s*(?:\|([^|]*)\|)?\s*(?=(\w+))")
BLOCK = re.compile(r"```mermaid\n(.*?)```", flags=re.DOTALL)
WIDTH, HEIGHT, ACROSS, DOWN = 340, 52, 40, 40
"""Of a node, and the room between nodes."""


def places(arrows: list[tuple[str, str, str]]) -> dict[str, tuple[int, int]]:
    """The row and the column of each node."""
    names = dict.fromkeys(name for first, _, second in arrows for name in (first, second))
    row = dict.fromkeys(names, 0)
    for _ in names:
        for first, _, second in arrows:
            row[second] = max(row[second], row[first] + 1)
    found: dict[str, tuple[int, int]] = {}
    for name in sorted(names, key=row.get):
        before = [found[first][1] for first, _, second in arrows if second == name]
        column = min(before, default=0)
        while (row[name], column) in found.values():
            column += 1
        found[name] = row[name], column
    return found


def svg(source: str) -> str:
    """A flowchart as SVG in the colours of the page."""
    words = dict(NODE.findall(source))
    arrows = [(first, label, second) for first, label, second in ARROW.findall(source)]
    found = places(arrows)
    corner = {name: (column * (WIDTH + ACROSS), row * (HEIGHT + DOWN)) for name, (row, column) in found.items()}
    width = max(x for x, _ in corner.values()) + WIDTH + 2
    height = max(y for _, y in corner.values()) + HEIGHT + 2
    parts = []
    for first, label, second in arrows:
        (x, y), (u, v) = corner[first], corner[second]
        x, y, u = x + WIDTH / 2, y + HEIGHT, u + WIDTH / 2
        parts.append(f'<path class="arrow" d="M{x} {y} C{x} {y + DOWN * 0.7} {u} {v - DOWN * 0.7} {u} {v - 6}"/>')
        parts.append(f'<path class="tip" d="M{u - 4} {v - 8} L{u + 4} {v - 8} L{u} {v} z"/>')
        if label:
            parts.append(f'<text class="label" x="{u + 8}" y="{v - 12}">{escape(label)}</text>')
    for name, (x, y) in corner.items():
        large, _, small = words[name].partition("<br/>")
        small = re.sub(r"</?i>", "", small)
        parts.append(f'<rect x="{x + 1}" y="{y + 1}" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="6"/>')
        for text, down, kind in ((large, 21, "large"), (small, 40, "small")):
            shown = escape(unescape(text))
            parts.append(f'<text class="{kind}" x="{x + WIDTH / 2}" y="{y + down}">{shown}</text>')
    told = escape("; ".join(f"{re.sub('<.*', '', words[a])} to {re.sub('<.*', '', words[b])}" for a, _, b in arrows))
    return (
        f'<div class="flowchart"><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{told}">{"".join(parts)}</svg></div>'
    )


def drawn(text: str) -> str:
    """The text of a page with its flowcharts drawn."""
    return BLOCK.sub(lambda found: f"\n{svg(found[1])}\n", text)
