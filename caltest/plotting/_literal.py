"""Names in pictures: shown as they are, also where matplotlib would read mathematics."""

from __future__ import annotations


def literal(text: object) -> str:
    r"""Return a text in which dollar signs are escaped.

    Of a text with two dollar signs matplotlib draws what is between them as mathematics, or refuses it. Every text that
    names classes, models, lenses or methods of the user comes through here on its way into a picture.

    Parameters
    ----------
    text : object
        A name or a sentence.

    Returns
    -------
    str
        The text that matplotlib shows as it was.
    """
    return str(text).replace("$", r"\$")
