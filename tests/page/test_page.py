"""The page says what the verdict says, is complete in itself, and can be repeated."""

import re
from html import escape
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from caltest.page import write_page
from caltest.recalibration import TemperatureScaling

FEW = {"n_resamples": 299, "rng": 3}
VOID = {"meta", "link", "img"}
NOT_READ = {"style", "title", "svg"}
FIRST = ["Where", "What to do", "What could be missed", "For statisticians"]
MOST_WORDS = 150
"""From the top to "What to do", without tables: about a minute, read aloud."""


class Reader(HTMLParser):
    """Texts by element; elements must be closed in the order in which they were opened.

    Attributes
    ----------
    above : str
        What is not folded.
    words : str
        What is read aloud: before "What to do", without tables and what is folded.
    """

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.attributes, self.ids = [], {}, {}, set()
        self.above, self.words, self.is_before = "", "", True

    def handle_starttag(self, tag, attrs):
        self.attributes.setdefault(tag, []).append(dict(attrs))
        self.ids |= {value for name, value in attrs if name == "id"}
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data
        if NOT_READ & set(self.open) or "details" in self.open:
            return
        self.above += data
        self.is_before &= data.strip() != "What to do"
        if self.is_before and "table" not in self.open:
            self.words += data


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


def flat(text):
    return " ".join(text.split())


def problem(n_classes, n=400, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.5), n)
    return (np.cumsum(prob, axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1), prob


def too_low(n=500):
    rng = np.random.default_rng(0)
    prob = rng.beta(1, 4, n)
    return (rng.random(n) < np.sqrt(prob)).astype(int), prob


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(*too_low(), tmp_path_factory.mktemp("page") / "page.html", **FEW)


def test_all_sentences_come_from_the_verdict(page):
    y_true, y_prob = too_low()
    verdict = ct.calibration_table(y_true, y_prob, **FEW).verdict
    found = read(page)
    text = flat(found.above)
    assert verdict.decision == "rejected"
    assert flat(found.texts["p"][0]) == "Wrong"
    place = -1
    for words in verdict.sentences(brief=True):
        assert (place := text.index(words, place + 1)) > 0
    for number in verdict.numbers:
        assert flat(f"{number.name} {number.shown} {number.meaning}") in text
    assert "Do not use these predictions as they are." in text
    assert f"{len(y_true)} observations, events ({y_true.sum()}, " in text


def test_parts_stand_in_the_order_of_reading(page):
    found = read(page)
    assert found.texts["h1"] == ["Is the model calibrated?"]
    assert found.texts["h2"] == FIRST
    assert [flat(words) for words in found.texts["summary"]] == [
        "Test of the event",
        "Tests by several statistics",
        "Deviations from the diagonal",
        "What recalibration would gain",
        "Notes: what the codes mean",
        "How to read this page",
        "How it was computed",
    ]
    assert len(found.words.split()) <= MOST_WORDS


def no_names_of_python(text):
    known = {
        name for room in (ct, ct.statistics, ct.predictions) for name in dir(room) if "_" in name or name[1:2].isupper()
    }
    words = set(re.findall(r"\w+", text))
    return re.findall(r"\w\(\)|`|caltest\.|[a-z]_[a-z]", text) == [] and not words & known


def test_nothing_above_the_fold_is_a_name_of_python(page):
    assert no_names_of_python(read(page).above)
    assert not no_names_of_python("caltest.recalibration_study")
    assert not no_names_of_python("ECE 0.02")


def test_no_error_is_told_as_a_share(page):
    """docs/reading-a-p-value.md: an error minus its noise floor does not estimate the miscalibration."""
    text = flat(read(page).texts["main"][0])
    assert "has by chance" not in text
    assert not re.search(r"\d %\) ?(of|is)", text)


def test_the_page_is_complete_in_itself(page):
    text, found = page.read_text(encoding="utf-8"), read(page)
    assert "<script" not in text
    links = re.findall(r'(?:src|href)="(?!data:)([^"]*)', text)
    assert {link[1:] for link in links if link.startswith("#")} <= found.ids
    assert [link for link in links if not link.startswith("#")] == []
    assert "@import" not in text
    assert "docs/" not in text
    assert len(text.encode()) < 1_000_000
    for picture in found.attributes["img"]:
        assert picture["alt"].startswith("Reliability diagram")
        kind, content = picture["src"].split(",", 1)
        assert kind == "data:image/svg+xml"
        assert ElementTree.fromstring(unquote(content)).tag.endswith("svg")


def test_codes_are_explained_inside_the_page(page):
    text = page.read_text(encoding="utf-8")
    assert '[<a href="#c101">C101</a>]' in text
    assert '<dt id="c101">C101</dt>' in text


@pytest.mark.slow(few_draws=True)
def test_the_same_seed_gives_the_same_page(tmp_path):
    y_true, y_prob = problem(3, n=100)
    first, second = (write_page(y_true, y_prob, tmp_path / name, **FEW) for name in ("one.html", "two.html"))
    assert first.read_bytes() == second.read_bytes()
    path = write_page(y_true, y_prob, tmp_path / "three.html", n_resamples=299)
    seed = int(re.search(r"<dt>seed</dt>\s*<dd>(\d+)</dd>", path.read_text(encoding="utf-8"))[1])
    again = write_page(y_true, y_prob, tmp_path / "four.html", n_resamples=299, rng=seed)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize(
    ("n", "word"), [(2000, "No error found"), (40, "Too few data"), (10, "Cannot tell"), (1, "Cannot tell")]
)
def test_the_word_is_that_of_the_verdict(tmp_path, n, word):
    rng = np.random.default_rng(1)
    prob = rng.beta(2, 5, n)
    found = read(write_page((rng.random(n) < prob).astype(int), prob, tmp_path / "page.html", **FEW))
    assert flat(found.texts["p"][0]) == word
    text = flat(found.above)
    assert ("too few to approve" in text) is (word == "Too few data")
    assert ("Nothing speaks against these predictions" in text) is (word == "No error found")
    assert ("an error is found with 80 % probability from" in text) is (n >= 40)
    assert no_names_of_python(text)


@pytest.mark.slow(few_draws=True)
def test_impossible_labels_come_first(tmp_path):
    rng = np.random.default_rng(1)
    prob = np.append([0.0, 0.0], rng.beta(2, 5, 400))
    y_true = np.append([1, 1], rng.random(400) < prob[2:]).astype(int)
    found = read(write_page(y_true, prob, tmp_path / "page.html", **FEW))
    assert flat(found.texts["p"][0]) == "Wrong"
    assert "Impossible: 2 observations predicted with 0 % had the event." in flat(found.above)


@pytest.mark.slow(few_draws=True)
def test_several_classes_have_their_totals_and_three_a_triangle(tmp_path):
    three = read(write_page(*problem(3), tmp_path / "three.html", **FEW))
    assert three.texts["h2"] == ["Where", "Which classes", *FIRST[1:]]
    assert "Which classes are confused" in map(flat, three.texts["summary"])
    assert "Classes against the rest" in map(flat, three.texts["summary"])
    assert no_names_of_python(three.above)


@pytest.mark.slow(few_draws=True)
def test_subgroups_and_recalibration(tmp_path):
    rng = np.random.default_rng(0)
    prob, site = rng.beta(2, 5, 2000), rng.choice(["north", "south"], 2000)
    y_true = (rng.random(2000) < prob + 0.15 * (site == "north")).astype(int)
    subgroup = {"site": site, "age": rng.normal(60, 10, 2000).round()}
    study = ct.recalibration_study(y_true, {"net": prob}, {"temperature": TemperatureScaling()}, **FEW)
    repaired = study.before_after("temperature")
    found = read(write_page(y_true, prob, tmp_path / "page.html", subgroup=subgroup, repaired=repaired, **FEW))
    assert found.texts["h2"] == ["Where", "For whom", *FIRST[1:]]
    assert found.texts["h3"] == ["Before and after"]
    assert {"site=north", "site=south"} <= set(found.texts["th"])
    assert re.search(r"Calibration is rejected in \d of 6 subgroups", flat(found.above))
    assert all(flat(said) in flat(found.above) for said in (repaired.headline, repaired.advice, *repaired.places))
    assert "neither" in repaired.advice or "Do not use" not in flat(found.above)
    rows = flat(found.above.split("Before and after")[1])
    assert all(name in rows for name in ("observed / expected", "calibration slope", "typical error"))
    assert len(found.words.split()) <= MOST_WORDS


@pytest.mark.slow(few_draws=True)
def test_several_models_are_compared(tmp_path):
    y_true, y_prob = problem(3)
    models = {"a <b> & c": y_prob, "other " * 12: y_prob**2 / (y_prob**2).sum(axis=1, keepdims=True)}
    path = write_page(y_true, models, tmp_path / "models.html", title="Two <models>", **FEW)
    found = read(path)
    assert found.texts["h1"] == ["Two <models>"]
    assert found.texts["h2"] == [*models, "For statisticians"]
    assert found.texts["h3"] == 2 * ["Where", "Which classes", *FIRST[1:-1]]
    conclusion = ct.compare_models(y_true, models, **FEW).conclusion
    text = flat(found.above)
    assert text.index(flat(conclusion)) < text.index("observations")
    assert flat(found.texts["tbody"][0]).startswith("a <b> & c Too few data")
    assert escape("a <b> & c") in path.read_text(encoding="utf-8")


@pytest.mark.slow(few_draws=True)
def test_frames_weights_and_groups(tmp_path):
    y_true, y_prob = problem(3)
    names = np.array(["cat", "dog", "eel"])
    frame = pd.DataFrame(y_prob[:, ::-1], columns=list(names[::-1]))
    design = {"sample_weight": np.linspace(1, 2, 400), "groups": np.arange(400) // 8}
    found = read(write_page(names[y_true], frame, tmp_path / "frame.html", **design, **FEW))
    text = found.texts["main"][0]
    assert "Label -> column: cat -> cat, dog -> dog, eel -> eel." in text
    assert "400 weighted observations in 50 groups" in flat(text)
    assert {"cat", "dog", "eel"} <= set(found.texts["th"])
    assert "The 50 groups are independent of each other" in text


@pytest.mark.slow(few_draws=True)
def test_a_report_writes_the_page_with_its_own_tests(tmp_path):
    y_true, y_prob = problem(3)
    report = ct.calibration_report(y_true, y_prob, n_resamples=199, rng=3)
    path = write_page(y_true, y_prob, tmp_path / "report.html", report=report, n_resamples=299, title="A report", rng=3)
    text = path.read_text(encoding="utf-8")
    assert "199 Monte Carlo draws" in text
    assert "299 Monte Carlo draws" in text
    path = tmp_path / "other.html"
    part = ct.calibration_report(y_true, y_prob, n_resamples=199, region=lambda p: p[:, 0] > 0.1)
    with pytest.raises(ValueError, match=r"`report` must be of the same 400 observations, got one of \d+\."):
        write_page(y_true, y_prob, path, report=part, **FEW)
    with pytest.raises(ValueError, match="`report` is of one model and the page of 2; leave it out"):
        write_page(y_true, {"one": y_prob, "two": y_prob}, path, report=report, **FEW)
    with pytest.raises(TypeError, match=r"`report` must be a CalibrationReport from .*, got CalibrationTable\."):
        write_page(y_true, y_prob, path, report=ct.calibration_table(y_true, y_prob, **FEW), **FEW)
    assert not path.exists()


def test_bad_input_writes_nothing(tmp_path):
    y_true, y_prob = problem(3)
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="`y_prob`"):
        write_page(y_true, y_prob * 2, path)
    with pytest.raises(TypeError, match="`rng`"):
        write_page(y_true, y_prob, path, rng="seed")
    with pytest.raises(ValueError, match="'site' has the same value for all observations"):
        write_page(y_true, y_prob, path, subgroup={"site": ["north"] * 400})
    assert not path.exists()


@pytest.mark.slow(few_draws=True)
def test_the_decomposition_is_weighted(tmp_path):
    """Observations of weight 2 count as often as observations that are there twice."""
    y_true, y_prob = problem(2, 300)
    weight = 1.0 + (np.arange(300) % 3 == 0)
    text = flat(
        read(write_page(y_true, y_prob, tmp_path / "weighted.html", sample_weight=weight, **FEW)).texts["main"][0]
    )
    twice = np.repeat(np.arange(300), weight.astype(int))
    for found in (
        ct.score_decomposition(y_true, y_prob, sample_weight=weight),
        ct.score_decomposition(y_true[twice], y_prob[twice]),
    ):
        assert found.conclusion in text
    assert "300 weighted observations" in text


@pytest.mark.slow(few_draws=True)
def test_a_page_of_few_groups_cannot_decide(tmp_path):
    rng = np.random.default_rng(0)
    y_true, group = (rng.random(240) < 0.24).astype(int), np.arange(240) % 3
    found = read(write_page(y_true, np.full(240, 0.9), tmp_path / "few.html", groups=group, **FEW))
    text = flat(found.above)
    assert flat(found.texts["p"][0]) == "Cannot tell"
    assert "These data cannot decide: with 3 groups no p-value below 0.25 is possible" in text
    assert "Collect data from more groups." in text
    assert "is not rejected" not in text
    assert no_names_of_python(text)
