"""Tables and numbers as the report writes them."""

from collections.abc import Iterable, Sequence

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns after the first are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it, to three digits."""
    scale, unit = next((pair for pair in UNITS if seconds >= pair[0]), UNITS[-1])
    return f"{seconds / scale:.3g} {unit}"


def ratio(value: float) -> str:
    """Return a ratio to two digits or more."""
    return f"{value:.0f}x" if value >= 20 else f"{value:.1f}x" if value >= 2 else f"{value:.2f}x"


def verdict(reached: bool) -> str:
    """Return how a target fared."""
    return "reached" if reached else "**missed**"
