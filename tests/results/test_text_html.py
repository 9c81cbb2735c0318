"""Descriptions as HTML: well-formed, escaped, with real tables."""

from html.parser import HTMLParser

import numpy as np

import caltest as ct
from caltest.results import Note
from caltest.results._description import Description, Table
from caltest.results._text import to_html
from tests.results.examples import EXAMPLES, example

VILE = "<script>alert('&\"')</script>"


class Reader(HTMLParser):
    """Checks that tags are nested, and collects them and the text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.rows = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append(0)
        if tag in {"td", "th"}:
            self.rows[-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [], "every tag is closed"
    return reader


def test_every_result_is_well_formed():
    for kind in EXAMPLES:
        result = example(kind)
        described, reader = result._describe(), read(result._repr_html_())
        numbers = [] if described.numbers is None else [described.numbers]
        tables = [*numbers, *described.tables]
        rows = [len(table.head) for table in tables for _ in range(any(table.head) + len(table.rows))]
        assert reader.tags.count("table") == len(tables), kind
        assert reader.tags.count("tr") == len(rows), kind
        assert reader.rows == rows, kind
        assert "pre" not in reader.tags, kind
        said = [described.title, *described.conclusion, *described.advice, *described.remarks]
        said += [note.text for note in described.notes]
        assert [words for words in said if words not in reader.text] == [], kind
        cells = [cell for table in tables for row in table.rows for cell in row]
        assert [cell for cell in cells if cell not in reader.text] == [], kind


def test_everything_is_escaped():
    table = Table((VILE, "p"), [(VILE, VILE)])
    html = to_html(Description(VILE, [VILE, VILE], [table], [VILE], [Note("C201", VILE)]))
    assert "<script" not in html
    reader = read(html)
    assert "script" not in reader.tags
    assert reader.text.count(VILE) == 8


def test_names_of_classes_models_subgroups_and_functions_are_escaped():
    rng = np.random.default_rng(0)
    y_true, y_prob = rng.integers(0, 2, 60), rng.random(60)
    classes = ["fine", VILE]
    labels = np.array(classes)[y_true]

    def region(prob):
        return prob[:, 0] > 0.1

    region.__name__ = VILE
    options = {"n_resamples": 99, "rng": 0}
    for result in [
        ct.calibration_test(labels, y_prob, classes=classes, lens=ct.ClassWise(1), **options),
        ct.calibration_table(labels, y_prob, classes=classes, lenses=[ct.ClassWise(1), ct.ClassWise(0)], **options),
        ct.subgroup_tests(y_true, y_prob, subgroup=labels[::-1], **options),
        ct.compare_models(y_true, {VILE: y_prob, "other": y_prob**2}, **options),
        ct.l2_interval(labels, y_prob, classes=classes, lens=ct.ClassWise(1), region=region),
    ]:
        html = result._repr_html_()
        assert "<script" not in html, type(result)
        assert "script" not in read(html).tags, type(result)
    assert VILE in read(result._repr_html_()).text or VILE not in str(result)


def test_numbers_are_aligned_to_the_right_and_names_to_the_left():
    html = to_html(Description("T", (), [Table(("name", "value"), [("a", "1")])]))
    assert '<td style="text-align: left">a</td><td style="text-align: right">1</td>' in html


def test_notes_link_to_their_paragraph():
    html = to_html(Description("Title", ["Conclusion."], notes=[Note("C201", "Impossible & rare.")]))
    assert 'Impossible &amp; rare. <a href="docs/notes.md#c201"><code>C201</code></a>' in html
