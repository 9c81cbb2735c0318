"""The built site in a real browser, at 400 and 1,600 pixels: no error, no missing image, no link that leads nowhere."""

import json
import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = [400, 1600]
PAGES = ["index", "guides", "theory", "statistics", "examples/index", "examples/reliability", "reference/index"]
PAGES += ["reference/generated/caltest.calibration_test", "search", "validity-table", "how-a-call-runs"]
"""Opened in the browser; links are followed on all pages."""

LOOK = """
<script>
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement;
  parent.postMessage(JSON.stringify({
    width: innerWidth,
    sideways: root.scrollWidth - root.clientWidth,
    images: [...document.images].filter((i) => !(i.complete && i.naturalWidth > 0)).map((i) => i.src),
    loaded: performance.getEntriesByType("resource").map((r) => r.name).filter((n) => !n.startsWith("file:")),
  }), "*");
}, 500));
</script>
"""

FRAME = """<!doctype html><iframe src="{page}" style="width: {width}px; height: 1000px; border: 0"></iframe>
<script>addEventListener("message", (e) => {{
  const out = document.createElement("pre"); out.id = "found"; out.textContent = e.data; document.body.append(out);
}});</script>"""
"""A window is at least 500 pixels wide, a frame is not."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the site in"),
    pytest.mark.skipif(
        not os.environ.get("SITE"), reason="SITE names no built site: python -m sphinx docs site, SITE=site"
    ),
]


class Places(HTMLParser):
    """The links, images and ids of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        self.targets += [found[name] for name in ("href", "src") if found.get(name)]


@pytest.fixture(scope="module")
def site():
    return Path(os.environ["SITE"]).resolve()


def test_every_link_leads_somewhere(site):
    pages = {
        path: Places(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    assert len(pages) > 300
    wrong = set()
    for path, places in pages.items():
        for target in places.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].ids):
                wrong.add(f"{path.relative_to(site)}: {target}")
    assert sorted(wrong) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_open_without_errors(site, tmp_path, width):
    problems = {}
    for name in PAGES:
        place = site / f"{name}.html"
        copy = place.with_name(f"look-{width}-{place.name}")
        copy.write_text(place.read_text(encoding="utf-8").replace("</body>", LOOK + "</body>"), encoding="utf-8")
        frame = place.with_name(f"frame-{copy.name}")
        frame.write_text(FRAME.format(page=copy.name, width=width), encoding="utf-8")
        try:
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--dump-dom"]
            options += [
                f"--window-size={width + 100},1100",
                "--virtual-time-budget=5000",
                f"--user-data-dir={tmp_path}",
            ]
            command = [CHROMIUM, *options, frame.as_uri()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        finally:
            copy.unlink()
            frame.unlink()
        text = done.stdout.partition('<pre id="found">')[2].partition("</pre>")[0]
        found = json.loads(text.replace("&amp;", "&")) if text else {"page": "not opened"}
        console = [
            line for line in done.stderr.splitlines() if ":CONSOLE" in line and "[PST]" not in line
        ]  # of the theme
        if found != {"width": width, "sideways": 0, "images": [], "loaded": []} or console:
            problems[name] = (found, console)
    assert problems == {}
