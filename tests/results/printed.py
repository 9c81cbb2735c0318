"""What a result prints at 80 columns."""

from caltest.results import Result
from caltest.results._text import to_text


def printed(result: Result) -> str:
    """Return the printed text of a result, no line of which is wider than 80 columns."""
    text = to_text(result._describe(), 80)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    return text
