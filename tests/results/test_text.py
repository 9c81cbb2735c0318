"""Descriptions as text: they fit every terminal, and tables stay tables."""

import re

import numpy as np
import pytest

import caltest as ct
from caltest.results import Note
from caltest.results._description import Description, Table, join
from caltest.results._text import terminal_width, to_text, wrap
from tests.results.examples import EXAMPLES, described, example

WIDTHS = range(80, 201)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("part", range(5))
def test_text_fits_every_width(part):
    """Every kind of result at every thirtieth width, others for the next kind, and at the narrowest."""
    for number, kind in list(enumerate(EXAMPLES))[part::5]:
        for width in {80, *WIDTHS[number % 30 :: 30]}:
            lines = to_text(described(kind), width).splitlines()
            assert [line for line in lines if len(line) > width] == [], (kind, width)
            assert [line for line in lines if line != line.rstrip()] == [], (kind, width)


@pytest.mark.slow(few_draws=True)
def test_long_words_are_folded():
    """Names of classes, functions and statistics may be as long as users like."""
    long = "a-very-long-name-of-a-class-" * 6
    described = Description(
        f"Test of {long}",
        [f"{long} is rejected."],
        [Table(("what", "value", long), [(long, "0.1", long), ("short", "0.25", long * 3)], left=(long,))],
        [f"Hypothesis: {long * 2}."],
        [Note("C999", f"{long} differs.")],
    )
    for width in WIDTHS:
        lines = to_text(described, width).splitlines()
        assert max(map(len, lines)) <= width, width
    text = re.sub(r"\s", "", to_text(described, 80))
    assert f"Testof{long}" in text
    assert f"{long}differs.[C999]" in text


@pytest.mark.slow(few_draws=True)
def test_no_column_is_cut_off():
    """Many columns of long words: names are folded until every number of every column is there."""
    names = [f"SquaredL2(EqualMass({10**k}))" for k in range(3)]
    numbers = [[f"{k}.{column}772156" for column in range(5)] for k in range(3)]
    head = ("model", "lens", *(f"number {k}" for k in range(5)))
    rows = [(f"{name} of a mixture", "Confidence()", *values) for name, values in zip(names, numbers, strict=True)]
    for width in WIDTHS:
        lines = to_text(Description("Title", (), [Table(head, rows)]), width).splitlines()
        assert max(map(len, lines)) <= width, width
        text = "\n".join(lines)
        assert [number for values in numbers for number in values if number not in text] == [], width
        assert text.count("number") == 5, width


def test_layout():
    described = Description(
        "Title (9 observations)",
        ["Verdict first.", "Size second."],
        [Table(("name", "value", "direction"), [("a", "1.5", "over"), ("bb", "10", "")], left=("direction",))],
        ["A remark."],
        [Note("C201", "A caution.")],
    )
    expected = """\
Title (9 observations)
Verdict first.
Size second.

 name  value  direction
 a       1.5  over
 bb       10

  A remark.

  Note: A caution. [C201]"""
    assert to_text(described, 80) == expected


def test_hyphens_do_not_break_lines():
    words = "under-confident one-vs-rest log-likelihood " * 10
    for width in (80, 91, 100):
        text = to_text(Description("Title", [words.strip()]), width)
        assert not any(line.endswith("-") for line in text.splitlines()), width


def test_markup_of_names_is_printed_as_it_is():
    """Class names may look like the markup of the library that draws tables."""
    table = Table(("class", "p"), [("[bold]cat[/bold]", "0.5"), (":smile:", "0.1"), ("[red]", "1e-3")])
    text = to_text(Description("Title", (), [table]), 80)
    for name in ("[bold]cat[/bold]", ":smile:", "[red]"):
        assert name in text
    assert "\x1b" not in text


def test_user_names_reach_the_text():
    y, p = np.array(["[x]", ":b:"])[[0, 1] * 20], np.full((40, 2), 0.5)
    text = str(ct.calibration_test(y, p, classes=["[x]", ":b:"], lens=ct.ClassWise(0), n_resamples=19, rng=0))
    assert "[x]" in text


def test_width_is_that_of_the_terminal_within_limits(monkeypatch):
    for columns, width in [("40", 80), ("95", 95), ("300", 120)]:
        monkeypatch.setenv("COLUMNS", columns)
        assert terminal_width() == width
    monkeypatch.setenv("COLUMNS", "80")
    assert str(example(ct.results.TestResult)) == to_text(example(ct.results.TestResult)._describe(), 80)


def test_join():
    assert join(["a"]) == "a"
    assert join(["a", "b"]) == "a and b"
    assert join(iter(["a", "b", "c"])) == "a, b and c"


def test_code_in_a_table_is_broken_after_its_marks():
    rows = [("ECE(partition=EqualWidth(15))", "under-confident", "1" * 20, "2" * 20)] * 2
    text = to_text(Description("Title", (), [Table(("statistic", "direction", "a", "b"), rows)]), 80)
    lines = [line.split()[:1] for line in text.splitlines()]
    assert ["ECE(partition="] in lines
    assert ["EqualWidth(15))"] in lines
    assert "1" * 20 in text


def test_commands_stay_in_one_line():
    command = "`caltest repair 'a long name of a file.csv' --groups site -o repaired.csv`"
    found = wrap(f"Do not use these predictions as they are. {command} recalibrates them.", 60)
    assert found == ["Do not use these predictions as they are.", command, "recalibrates them."]
    assert max(map(len, wrap("x" * 200, 60))) == 60
