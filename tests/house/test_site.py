"""The site: every page has a place, links lead to pages, every public name is in a group. .ci/run builds it."""

import re
from importlib import import_module
from pathlib import PurePosixPath

import pytest

from tests.house.sources import ROOT
from tests.house.test_docstrings import PUBLIC

DOCS = ROOT / "docs"
MADE = {"reference", "examples"}
"""Folders that the build makes."""

MOST_WORDS = 2_500
REFERENCES = {
    "changes-in-detail": "a line for every change",
    "grouped-evidence": "tables of simulations",
    "notes": "a section for each code",
    "other-packages": "a table for each package",
    "papers/gupta-2020": "a row for each item of the paper",
    "papers/laves-2020": "a row for each item of the paper",
    "papers/nixon-2019": "a row for each item of the paper",
    "papers/recalibration-compared": "tables of two papers",
    "papers/vaicenavicius-2019": "a row for each item of the paper",
}
"""Pages in which one looks something up, and which may have more words, each with its reason."""


@pytest.fixture
def site(monkeypatch):
    pytest.importorskip("sphinx", reason="Sphinx is needed: pip install '.[docs]'")
    monkeypatch.syspath_prepend(str(DOCS))
    return lambda name: import_module(f"_site.{name}")


def test_every_page_has_one_place(site):
    """A new page gets a row in docs/guides.md, fields.md, evidence.md, inside.md or project.md."""
    contents = site("pages").contents()
    placed = ["index", *(page for pages in contents.values() for page in pages)]
    pages = {
        str(path.relative_to(DOCS).with_suffix("").as_posix())
        for path in DOCS.rglob("*.md")
        if path.relative_to(DOCS).parts[0] not in MADE
    }
    assert pages - set(placed) == set()
    assert {page for page in placed if page.split("/")[0] not in MADE} - pages == set()
    assert len(placed) == len(set(placed))


def words_of(text):
    """The number of words of a page; lines between cells of tables are none."""
    return sum(any(character.isalnum() for character in word) for word in text.split())


def test_pages_are_short():
    """One question a page; what answers another one, and tables of simulations, get pages of their own."""
    assert words_of("a b | 1 |\n|---|\n-- c") == 4
    words = {
        path.relative_to(DOCS).with_suffix("").as_posix(): words_of(path.read_text()) for path in DOCS.rglob("*.md")
    }
    words = {page: number for page, number in words.items() if page.split("/")[0] not in MADE}
    assert {page: number for page, number in words.items() if number > MOST_WORDS and page not in REFERENCES} == {}
    assert {page for page in REFERENCES if words.get(page, 0) <= MOST_WORDS} == set()


def test_links_are_seen_from_the_page_that_shows_a_file(site):
    redirected = site("pages").redirected
    docs, root = PurePosixPath("docs"), PurePosixPath(".")
    assert redirected("[a](../CONTRIBUTING.md#b)", "files", docs) == "[a](contributing.md#b)"
    assert redirected("[a](../../CHANGELOG.md)", "papers/index", docs / "papers") == "[a](../changes.md)"
    assert redirected("[a](docs/papers/index.md)", "changes", root) == "[a](papers/index.md)"
    assert redirected("[a](README.md) [b](LICENSE)", "changes", root) == "[a](index.md) [b](../LICENSE)"
    assert redirected("[a](../tests/x.py) [b](https://c.d)", "files", docs) == "[a](../tests/x.py) [b](https://c.d)"
    assert redirected("[a](#b) ![c](images/d.png)", "files", docs) == "[a](#b) ![c](images/d.png)"


def test_every_public_name_is_in_one_group(site):
    groups = site("reference").grouped()
    listed = [path for paths in groups.values() for path in paths]
    assert set(PUBLIC) <= set(listed)
    assert len(listed) == len(set(listed))
    assert groups["tests"][0] == "caltest.calibration_test"
    assert "caltest.estimation.ReliabilityCurve" in groups["curves"], "beside the function that returns it"


def test_scripts_of_the_gallery_are_short():
    scripts = sorted((DOCS / "gallery").glob("*.py"))
    assert len(scripts) >= 20
    assert {script.name: n for script in scripts if (n := len(script.read_text().splitlines())) > 30} == {}


def test_links_of_the_readme_are_absolute_where_the_address_is_known(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    absolute = import_module("hatch_build").absolute
    text = "[a](docs/a.md) ![b](docs/b.png) [c](https://c.d) [e](#e)"
    assert absolute(text, "https://github.com/OWNER/caltest") == text, "no address is known yet"
    assert absolute(text, "https://e.f/g") == (
        "[a](https://e.f/g/blob/main/docs/a.md) ![b](https://e.f/g/raw/main/docs/b.png) [c](https://c.d) [e](#e)"
    )


CLICKS = {
    "test a CSV": [("from a CSV", "start"), "caltest test predictions.csv"],
    "test my file of another format": [("from a CSV", "start"), ("How columns are", "files"), "Parquet"],
    "compare two networks": [("compare two networks", "comparing-models"), "compare_models("],
    "what p = 0.2 means": [("what p = 0.2 means", "reading-a-p-value"), "p = 0.2"],
    "an interval for the error": [("with an interval", "how-much"), "l2_interval("],
    "repair": [("repair (recalibrate)", "recalibration"), "recalibration_study("],
    "how many observations": [("how many observations", "how-many-observations"), "detectable_error("],
    "slope and O/E": [("observed / expected and the calibration slope", "how-much"), "calibration_slope"],
    "subgroups": [("which subgroups", "where-miscalibrated"), "subgroup_tests("],
    "fairness": [("for everybody", "fairness"), "depth=2"],
    "language models": [("language model", "language-models"), "stated confidence"],
    "forecasts": [("outcomes are known later", "forecasts"), "lead="],
    "drift": [("drift in production", "monitoring"), "caltest watch"],
    "val.prob": [("clinical prediction model", "clinical"), "val.prob"],
    "rain": [("guides by field", "fields"), ("Weather", "weather"), "climatology"],
    "probability of default": [("guides by field", "fields"), ("probability of default", "credit"), "Jeffreys"],
    "Kaggle": [("guides by field", "fields"), ("Kaggle", "leaderboard"), "leaderboard("],
    "dependent observations": [("Guides by question", "guides"), ("one patient", "dependent-observations"), "groups="],
    "the ECE of netcal": [("netcal", "other-packages"), "netcal"],
    "an API reference": [("API reference", "reference/index")],
}
"""What newcomers look for: the words that they see on each page, and where these lead; then what they want to find."""


@pytest.mark.parametrize("wanted", CLICKS)
def test_newcomers_find_it_in_two_clicks(site, wanted):
    """Each link stands in a paragraph or row with words that people use."""
    clicks = [click for click in CLICKS[wanted] if isinstance(click, tuple)]
    found = [word for word in CLICKS[wanted] if isinstance(word, str)]
    pages = site("pages")
    page = "index"
    assert len(clicks) <= 2
    for words, target in clicks:
        text = pages.text_of(page)
        places = [part for part in re.split(r"\n(?=[|\n])", text) if words.lower() in " ".join(part.lower().split())]
        links = [pages.inside(link.group(1), pages.folder_of(page)) for link in pages.LINK.finditer(" ".join(places))]
        assert target in links or target in pages.SECTIONS.get(page, []), f"{page}: {words}"
        page = target
    assert all(word.lower() in pages.text_of(page).lower() for word in found)


def test_the_readme_fits_on_a_screen_or_two():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    table = lines[lines.index("| what you want | what to call |") + 2 :]
    assert len(lines) <= 120
    assert table.index("") <= 15
    assert sum(line.count("![") for line in lines) >= 3


def test_formulas_become_mathml(site):
    nodes = pytest.importorskip("docutils.nodes", reason="Sphinx is needed: pip install '.[docs]'")
    mathml = site("formulas").mathml
    found = mathml(nodes.math("", r"\Big(\frac{1}{n}, \dots\Big)"), as_block=True)
    assert found.startswith("<math")
    assert "<mfrac>" in found


def test_a_flowchart_becomes_a_picture(site):
    chart = site("flowchart")
    text = (DOCS / "how-a-call-runs.md").read_text()
    source = chart.BLOCK.search(text)[1]
    names = [name for name, _ in chart.NODE.findall(source)]
    arrows = chart.ARROW.findall(source)
    assert len(names) == 12
    assert {name for first, _, second in arrows for name in (first, second)} == set(names)
    found = chart.places(arrows)
    assert len(set(found.values())) == 12, "no two in one place"
    assert all(found[second][0] > found[first][0] for first, _, second in arrows), "what comes later stands below"
    drawn = chart.drawn(text)
    assert "mermaid" not in drawn
    assert drawn.count("<rect") == 12
    assert drawn.count('class="arrow"') == len(arrows) == 12
