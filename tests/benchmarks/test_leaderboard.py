"""Coverage of the ranks: the page has the table of its data, and batches are those of the designs."""

import csv

import numpy as np

from benchmarks import leaderboard


def rows():
    """The rows of the data."""
    with leaderboard.PLACE.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_is_made_from_its_data():
    text = leaderboard.PAGE.read_text(encoding="utf-8")
    assert text == leaderboard.with_coverage(text, rows()), "python -m benchmarks.leaderboard"
    assert [row["design"] for row in rows()] == [design.name for design in leaderboard.DESIGNS]


def test_all_sets_hold_the_ranks_with_the_level_but_for_noise():
    for row in rows():
        n_sets = int(row["sets"])
        assert n_sets >= 250
        assert float(row["covered"]) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / n_sets)


def test_batches_and_arrays_separate_the_same_share():
    """Of models that differ clearly, the two ways tell about as many apart."""
    share = {row["design"]: float(row["separated"]) for row in rows()}
    assert abs(share["ten apart"] - share["ten apart, in batches"]) < 0.02
