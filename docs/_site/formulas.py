"""Formulas as MathML, which browsers draw themselves: no script, no font and no network is needed.

MathJax would be 2 MB that npm has to download at each build, or that the repository would have to hold. The converter
of LaTeX is that of docutils, which Sphinx needs anyway; a formula that it cannot read fails the build.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

OTHER_SPELLINGS = [
    (r"\\dots\b", r"\\ldots"),
    (r"\\[bB]ig(?=[|/])", ""),
    (r"\\([bB]ig)(?=\()", r"\\\1l"),
    (r"\\([bB]ig)(?=\))", r"\\\1r"),
]
"""What docutils does not know, as patterns, and how it knows it."""

log = logging.getLogger(__name__)


def mathml(node: nodes.Node, *, as_block: bool) -> str:
    """The MathML of a formula, or a warning and its source."""
    source = node.astext()
    for pattern, other in OTHER_SPELLINGS:
        source = re.sub(pattern, other, source)
    try:
        return latex2mathml.tex2mathml(source, as_block=as_block)
    except MathError as error:
        log.warning("formula not understood: %s (%s)", node.astext(), error, location=node)
        return ""


def inline(self: Any, node: nodes.Node) -> None:
    """Write a formula into a line."""
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.Node) -> None:
    """Write a displayed formula, which scrolls where the screen is narrow."""
    self.body.append(f'<div class="math-display">{mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the renderer known as ``mathml``."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
