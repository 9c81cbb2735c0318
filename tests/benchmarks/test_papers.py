"""The items of the five papers: calls and evidence exist, numbers are those of the calls, pages those of the rows."""

import re

import pytest

from benchmarks import papers

ROWS = papers.items()


@pytest.fixture(scope="module")
def known():
    return papers.names()


def test_rows_are_right_and_different():
    assert {f"{row['paper']}, {row['item']}": found for row in ROWS if (found := papers.wrong(row))} == {}
    keys = [(row["paper"], row["kind"], row["item"]) for row in ROWS]
    assert len(set(keys)) == len(keys) > 350
    assert {row["paper"] for row in ROWS} == set(papers.PAPERS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "done"}, "state is 'done'"),
        ({"call": "caltest.no_such_name(y_true)"}, "no name caltest.no_such_name"),
        ({"call": "caltest.estimation.calibration_error(y_true, y_prob, bins=15)"}, "takes no bins"),
        ({"call": "caltest.ECE("}, "no expression"),
        ({"call": "python benchmarks/no_such_file.py"}, "no file"),
        ({"evidence": ""}, "no evidence"),
        ({"evidence": "tests/benchmarks/test_papers.py::test_nothing"}, "no test"),
        ({"evidence": "docs/no-such-page.md"}, "no file"),
        ({"state": "open", "remark": ""}, "no remark"),
        ({"here": "1", "source": ""}, "belong together"),
        ({"says": ""}, "no says"),
    ],
)
def test_a_wrong_row_is_found(change, words):
    right = next(row for row in ROWS if row["state"] == "there" and not row["source"])
    assert papers.wrong(right) == []
    assert words in "; ".join(papers.wrong(right | change))


@pytest.mark.slow
def test_numbers_of_calls_are_those_of_the_file(known):
    stored = {row["call"]: row["here"] for row in ROWS if row["source"] == papers.BY_CALL}
    assert len(stored) > 150
    found = {call: papers.computed(call, known) for call in stored}
    assert {call: value for call, value in found.items() if not same(value, stored[call])} == {}


def same(found, stored):
    """Whether two texts have the same words and the same numbers, to five digits."""
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    one, other = ([float(value) for value in re.findall(number, text)] for text in (found, stored))
    return re.sub(number, "", found) == re.sub(number, "", stored) and one == pytest.approx(other, rel=2e-5, abs=1e-9)


def test_numbers_are_compared():
    assert same("0.123456, all", "0.123457, all")
    assert not same("0.1234, all", "0.1235, all")
    assert not same("0.1", "0.1, 0.1")


@pytest.mark.slow(few_draws=True)
def test_printed_tables_are_whole():
    shapes = {
        (paper, name): papers.printed(paper, name).shape
        for paper, name in papers._printed()[["paper", "table"]].drop_duplicates().itertuples(index=False)
    }
    assert {shapes["gupta-2020", name] for name in "12456"} == {(13, 6)}
    assert shapes["nixon-2019", "5"] == (8, 32)
    for column in papers.printed("nixon-2019", "5"):
        assert sorted(papers.printed("nixon-2019", "5")[column]) == list(range(8))
    assert papers.printed("vaicenavicius-2019", "1").sum(axis=1).to_numpy() == pytest.approx(2)


def test_pages_have_the_tables_of_the_rows():
    """`python benchmarks/papers.py` writes them."""
    for page in ("index", *papers.PAPERS):
        text = (papers.FOLDER / f"{page}.md").read_text()
        assert text == papers.with_tables(page, text, ROWS), page
        made = {"counts", "open", "needs data", "misprints"}
        if page != "index":
            made = {row["kind"] for row in ROWS if row["paper"] == page}  # no table is empty
        for name in {*made, *papers.KINDS}:
            assert (papers.mark("papers", name) in text) == (name in made), (page, name)
