"""The page says what the functions say, is complete in itself, and can be repeated."""

import base64
import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import caltest as ct
from caltest.page import write_page

FEW = {"n_resamples": 299, "rng": 3}
VOID = {"meta", "link", "img"}


class Reader(HTMLParser):
    """Texts by element; elements must be closed in the order in which they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.attributes = [], {}, {}

    def handle_starttag(self, tag, attrs):
        self.attributes.setdefault(tag, []).append(dict(attrs))
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    assert reader.open == []
    return reader


def problem(n_classes, n=400, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(n_classes, 0.5), n)
    return (np.cumsum(prob, axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1), prob


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    return write_page(y_true, y_prob, tmp_path_factory.mktemp("page") / "page.html", **FEW)


def test_the_verdict_is_that_of_the_table(page):
    y_true, y_prob = (part[:1000] for part in ct.datasets.load_cifar10_vgg16())
    table = ct.calibration_table(y_true, y_prob, **FEW)
    text = " ".join(read(page).texts["main"][0].split())
    assert text.startswith(f"Verdict {' '.join(table.first_sentences)} {' '.join(table.size_sentences)}")
    assert table[0].direction_words.removeprefix("The") in text
    assert table[0].l2_error.conclusion.removeprefix("The") in text
    ece = table[0].components[0]
    assert f"ECE {ece.statistic:.4g}; a calibrated model with these predictions has {ece.noise_floor:.4g} on" in text
    assert "has by chance" not in text
    assert not re.search(r"\d %\) ?(of|is)", text)  # no share of an error: docs/reading-a-p-value.md
    for test, adjusted in zip(table, table.pvalue_adjusted, strict=True):
        assert test.l2_error.root_text in text
        assert f"{adjusted:.4g}" in text


def test_parts_stand_in_the_order_of_reading(page):
    assert read(page).texts["h2"] == [
        "Verdict",
        "Which classes are worst?",
        "Do frequencies follow the predictions?",
        "Tests through several lenses",
        "Tests by several statistics",
        "What would recalibration gain?",
        "How to read this page",
        "How it was computed",
    ]


def test_classes_have_their_short_names(page):
    names = read(page).texts["th"]
    assert {"class 0", "class 9"} <= set(names)
    assert [name for name in names if "against the rest" in name] == []


def test_the_page_is_complete_in_itself(page):
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "@import" not in text
    assert len(text.encode()) < 2_000_000
    for picture in read(page).attributes["img"]:
        assert picture["alt"].startswith("Reliability diagram")
        kind, content = picture["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(content)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_page(tmp_path):
    y_true, y_prob = problem(3, n=100)
    first, second = (write_page(y_true, y_prob, tmp_path / name, **FEW) for name in ("one.html", "two.html"))
    assert first.read_bytes() == second.read_bytes()
    path = write_page(y_true, y_prob, tmp_path / "three.html", n_resamples=299)
    unseeded = read(path)
    seed = int(dict(zip(unseeded.texts["dt"], unseeded.texts["dd"], strict=True))["seed"])
    again = write_page(y_true, y_prob, tmp_path / "four.html", n_resamples=299, rng=seed)
    assert again.read_bytes() == path.read_bytes()


def test_a_verdict_that_rejects_nothing_says_that_nothing_is_proved(tmp_path):
    main = " ".join(read(write_page(*problem(3), tmp_path / "page.html", **FEW)).texts["main"][0].split())
    assert main.startswith("Verdict Calibration is not rejected (global p = ")
    assert "This does not prove that the model is calibrated." in main.split("The l2 calibration error")[0]


@pytest.mark.slow
def test_three_classes_have_a_triangle_and_two_have_no_class_table(tmp_path):
    three = read(write_page(*problem(3), tmp_path / "three.html", **FEW))
    assert "Which classes are confused?" in three.texts["h2"]
    two = read(write_page(*problem(2), tmp_path / "two.html", **FEW))
    assert "Which classes are worst?" not in two.texts["h2"]


@pytest.mark.slow
def test_several_models_are_compared(tmp_path):
    y_true, y_prob = problem(3)
    models = {"a <b> & c": y_prob, "other " * 12: y_prob**2 / (y_prob**2).sum(axis=1, keepdims=True)}
    path = write_page(y_true, models, tmp_path / "models.html", title="Two <models>", **FEW)
    found = read(path)
    assert found.texts["h1"] == ["Two <models>"]
    assert found.texts["h3"] == list(models)
    assert found.texts["h2"][1] == "Which model is better calibrated?"
    assert "a <b> & c: Tests through several lenses" in found.texts["h2"]
    assert escape("a <b> & c") in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_frames_weights_and_groups(tmp_path):
    y_true, y_prob = problem(3)
    names = np.array(["cat", "dog", "eel"])
    frame = pd.DataFrame(y_prob[:, ::-1], columns=list(names[::-1]))
    design = {"sample_weight": np.linspace(1, 2, 400), "groups": np.arange(400) // 8}
    found = read(write_page(names[y_true], frame, tmp_path / "frame.html", **design, **FEW))
    text = found.texts["main"][0]
    assert "Label -> column: cat -> cat, dog -> dog, eel -> eel." in text
    assert "400 weighted observations in 50 groups" in text
    assert "What would recalibration gain?" in found.texts["h2"]


@pytest.mark.parametrize("n", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 10))])
def test_few_observations(tmp_path, n):
    assert "Verdict" in read(write_page(*problem(3, n), tmp_path / "few.html", **FEW)).texts["h2"]


@pytest.mark.slow
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
    assert not path.exists()


def test_the_decomposition_is_weighted(tmp_path):
    """Observations of weight 2 count as often as observations that are there twice."""
    y_true, y_prob = problem(2, 300)
    weight = 1.0 + (np.arange(300) % 3 == 0)
    text = " ".join(
        read(write_page(y_true, y_prob, tmp_path / "weighted.html", sample_weight=weight, **FEW))
        .texts["main"][0]
        .split()
    )
    assert "What would recalibration gain?" in text
    twice = np.repeat(np.arange(300), weight.astype(int))
    for found in (
        ct.score_decomposition(y_true, y_prob, sample_weight=weight),
        ct.score_decomposition(y_true[twice], y_prob[twice]),
    ):
        assert found.conclusion in text
    assert "300 weighted observations" in text


def test_a_page_of_few_groups_cannot_decide(tmp_path):
    rng = np.random.default_rng(0)
    y_true, group = (rng.random(240) < 0.24).astype(int), np.arange(240) % 3
    text = " ".join(
        read(write_page(y_true, np.full(240, 0.9), tmp_path / "few.html", groups=group, **FEW)).texts["main"][0].split()
    )
    assert text.startswith("Verdict These data cannot decide: with 3 groups no p-value below 0.25 is possible")
    assert "is not rejected" not in text
