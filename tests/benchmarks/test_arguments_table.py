"""The table of what functions take is made from their signatures."""

import caltest
from benchmarks.arguments_table import ARGUMENTS, BEGIN, PAGE, ROOMS, functions, page, table


def test_the_page_holds_the_table_of_today():
    """`python benchmarks/arguments_table.py` writes it."""
    text = PAGE.read_text()
    assert BEGIN in text
    assert page(text) == text


def test_a_line_says_what_the_function_takes():
    rows = {line.split("`")[1]: line.split("|")[2:-1] for line in table().splitlines()[2:]}
    assert set(rows) == set(functions())
    took = dict(zip(ARGUMENTS, rows["hypothesis_tests.calibration_test"], strict=True))
    assert {mark.strip() for mark in took.values()} == {"yes"}
    took = dict(zip(ARGUMENTS, rows["hypothesis_tests.cox_test"], strict=True))
    assert [name for name, mark in took.items() if mark.strip()] == ["region", "lens", "classes", "workers"]
    assert {name.split(".")[1] for name in rows} <= {name for room in ROOMS for name in getattr(caltest, room).__all__}
