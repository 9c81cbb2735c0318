"""Numbers that programs for clinical validation print: ours are computed, and have the same digits."""

import pytest

from benchmarks import clinical_programs
from tests.reference.cases import mostly_slow

ROWS = clinical_programs.rows()
PROGRAMS = list(dict.fromkeys(row["program"] for row in ROWS))


@pytest.mark.parametrize("program", mostly_slow(PROGRAMS))
def test_printed_numbers(program):
    """All printed digits, but for numbers that are named as different."""
    for row in ROWS:
        if row["program"] == program:
            found = clinical_programs.as_printed(clinical_programs.here(row), row["printed"])
            assert (found == row["printed"]) == (row["differs"] == ""), row


def test_numbers_are_written_as_they_are_printed():
    for value, text in ((0.81426731, "0.81"), (5.4321e-13, "5.4e-13"), (74.79, "74.8"), (13.2, "13")):
        assert clinical_programs.as_printed(value, text) == text


@pytest.mark.slow(few_draws=True)
def test_the_page_has_these_tables():
    text = clinical_programs.PAGE.read_text()
    assert clinical_programs.with_tables(text) == text
    assert text.count("<!-- made by benchmarks/clinical_programs.py") == len(PROGRAMS)
