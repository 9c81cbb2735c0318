"""``caltest validity``: the rows of the certificate in the terminal."""

import json
from pathlib import Path

import pandas as pd
import pytest

from caltest.cli._validity import measured

DOCS = Path(__file__).parents[2] / "docs"


def test_rows_are_those_of_the_certificate():
    frame = pd.read_csv(DOCS / "validity.csv", comment="#")
    chosen = frame[frame["test"].eq("KS") & frame["null"].eq("Monte Carlo") & frame["n_samples"].eq(100)]
    found = [row for row in measured() if (row["name"], row["how"], row["n"]) == ("KS", "Monte Carlo", 100)]
    wanted = {f"{row.model}, {row.lens}": row for row in chosen.itertuples()}
    assert len(wanted) == len(found) > 10
    for row in found:
        counts = [round(rate * row["sets"] / 100) for rate in row["rates"].values()]
        own = wanted[row["data"]]
        assert row["sets"] == own.n_replicates
        rates = [own.rejected_1pct, own.rejected_5pct, own.rejected_10pct]
        assert counts == pytest.approx(rates, abs=0.0005 * row["sets"])  # stored per thousand


def test_sides_of_an_interval():
    frame = pd.read_csv(DOCS / "coverage.csv", comment="#").iloc[0]
    data = f"{frame['predictions']}, {frame['truth']}"
    (row,) = [
        row for row in measured() if (row["name"], row["data"], row["n"]) == ("l2_interval", data, frame["n_samples"])
    ]
    assert row["level"] == 95
    wanted = [100 * frame[name] for name in ("coverage", "above", "below")]
    assert list(row["rates"].values()) == pytest.approx(wanted, abs=0.1)


def test_the_nearest_sizes_are_shown(run):
    code, text, err = run("validity", "--statistic", "KS()", "--n", "200", "--data", "ties 2")
    assert (code, err) == (0, "")
    assert "nearest to 200 observations" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(" KS")]
    assert [row[-5] for row in rows] == ["100", "500"]
    _, text, _ = run("validity", "--statistic", "l2_interval", "--n", "1000", "--data", "ties", "--json")
    assert {row["n"] for row in json.loads(text)["rows"]} == {1000}
    _, text, _ = run("validity", "--statistic", "KS", "--n", "1", "--json")
    assert min(row["n"] for row in json.loads(text)["rows"]) == 50


@pytest.mark.slow(few_draws=True)
def test_the_worst_of_every_method(run):
    code, text, _ = run("validity", "--json")
    assert code == 0
    assert len(json.loads(text)["rows"]) == len(list(measured()))
    lines = run("validity")[1]
    assert lines.startswith("The worst of every method.")
    assert "54.2" in lines


def test_what_was_not_measured_is_refused(run):
    code, text, err = run("validity", "--statistic", "best")
    assert (code, text) == (2, "")
    assert "nothing was measured of 'best'; the names are ACE, " in err
    code, text, err = run("validity", "--data", "moon")
    assert (code, text) == (2, "")
    assert "no row has the words 'moon'" in err
    code, text, err = run("validity", "--data", "groups of 1 to 39", "--statistic", "paired_test", "--n", "200")
    assert (code, text) == (2, "")
    assert "--n: the groups of these data differ in size" in err
