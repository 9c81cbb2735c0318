"""The explanations of cautions inside the page."""

import re
from html.parser import HTMLParser

from caltest.page._details import codes_in, explain, linked
from caltest.results._note import PAGE
from tests.house.sources import ROOT

CODES = re.findall(r"^## (C\d{3})$", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)


class Balance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_code_is_explained_in_html():
    assert len(CODES) > 30
    for code in CODES:
        html = explain(code)
        reader = Balance()
        reader.feed(html)
        assert reader.open == []
        assert html.startswith("<p><strong>")
        assert re.findall(r"\]\(|\*\*|\$|`", html) == []


def test_codes_are_followed_and_linked():
    assert codes_in(["A caution [C601]."]) == ["C201", "C601"]  # C601 mentions C201
    assert codes_in(["no code, and an unknown one C999"]) == []
    html = linked(f"a < b, `x_y` [C101: {PAGE}] C999", ["C101"])
    assert html == 'a &lt; b, <code>x_y</code> [<a href="#c101">C101</a>] C999'
