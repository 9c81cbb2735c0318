"""The page in a real browser, where there is one: at 400 and 1,600 pixels, light and dark."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from caltest.page import write_page
from caltest.recalibration import TemperatureScaling, recalibration_study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to open the page in"),
]

MEASURE = """
<script>
addEventListener("load", () => {
  const look = (element) => { const s = getComputedStyle(element); return [s.color, s.backgroundColor]; };
  const seen = (e) => !e.closest(".unseen, thead, svg");
  const width = () => {
    const all = [...document.querySelectorAll("body *")].filter(seen);
    const right = document.documentElement.clientWidth + 1;
    return {
      sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      wide: all.filter((e) => e.getBoundingClientRect().right > right).map((e) => e.tagName + " " + e.textContent),
      cut: all.filter((e) => e.clientWidth > 0 && getComputedStyle(e).display !== "inline"
        && e.scrollWidth > e.clientWidth + 1).map((e) => e.tagName + " " + e.textContent),
    };
  };
  const closed = width();
  const word = document.querySelector(".word");
  for (const one of document.querySelectorAll("details")) one.open = true;
  const found = {
    closed: closed,
    open: width(),
    inside: innerWidth,
    images: [...document.images].map((i) => i.complete && i.naturalWidth > 0),
    unnamed: [...document.images].filter((i) => !i.alt).length,
    headings: [...document.querySelectorAll("h1, h2, h3, h4")].map((h) => Number(h.tagName[1])),
    small: Math.min(...[...document.querySelectorAll("p, td, th, dd, figcaption, li")]
      .map((e) => parseFloat(getComputedStyle(e).fontSize))),
    colours: ["body", "p.about", "figcaption", "caption", "td", "dt"].map((n) => look(document.querySelector(n))),
    word: look(word),
    list: getComputedStyle(document.querySelector("td")).display === "block",
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
    links: [...document.links].every((a) => document.getElementById(a.hash.slice(1))),
    tables: [...document.querySelectorAll("table")].every((t) => t.caption && t.tHead.rows[0].cells[0].scope === "col"),
    language: document.documentElement.lang,
  };
  const out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(found);
  parent.document.body.append(out);
});
</script>
"""


def browse(path, *options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", *options]
    return subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.full(4, 0.5), 500)
    y_true = (np.cumsum(prob, axis=1)[:, :-1] < rng.random((500, 1))).sum(axis=1)
    models = {"a model with a very long name " * 3: prob, "other": prob**2 / (prob**2).sum(axis=1, keepdims=True)}
    path = tmp_path_factory.mktemp("page") / "page.html"
    subgroup = {"a column with a very long name " * 2: rng.choice(["first", "second" * 10], 500)}
    study = recalibration_study(y_true, models, {"temperature": TemperatureScaling()}, n_resamples=499, rng=0)
    repaired = {name: study.before_after("temperature", name) for name in models}
    write_page(y_true, models, path, subgroup=subgroup, repaired=repaired, n_resamples=299, rng=0)
    return path.read_text(encoding="utf-8").replace("</body>", f"{MEASURE}</body>")


def contrast(first, second):
    """The contrast ratio of WCAG 2, from texts such as "rgb(1, 2, 3)"."""

    def luminance(colour):
        parts = np.array([float(x) for x in re.findall(r"[0-9.]+", colour)[:3]]) / 255
        return np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_the_page_is_readable(page, width, scheme, tmp_path):
    frame = tmp_path / "frame.html"  # windows have a smallest width, frames have none
    content = f'<iframe style="border: 0" width="{width}" height="2000" srcdoc="{html.escape(page)}"></iframe>'
    frame.write_text(f"<!DOCTYPE html><body>{content}</body>", encoding="utf-8")
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    shown = browse(frame, "--window-size=1700,2000", "--dump-dom", *dark)
    assert "CONSOLE" not in shown.stderr
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, re.DOTALL)[1]))
    assert found["inside"] == width
    for state in ("closed", "open"):
        assert found[state] == {"sideways": 0, "wide": [], "cut": []}
    assert found["images"]
    assert all(found["images"])
    assert found["unnamed"] == 0
    assert found["headings"][0] == 1
    assert found["headings"].count(1) == 1
    assert max(np.diff(found["headings"])) <= 1, "a level of headings is left out"
    assert found["small"] >= 12
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["tables"]
    assert found["links"]
    assert found["list"] is (width == 400)
    assert found["language"] == "en"
    body = found["colours"][0][1]
    assert bool(contrast(body, "rgb(255, 255, 255)") > 10) is (scheme == "dark")
    for colour, _ in found["colours"]:
        assert contrast(colour, body) >= 4.5
    assert contrast(*found["word"]) >= 4.5


@pytest.mark.skipif("AXE" not in os.environ, reason="AXE does not name axe.min.js of axe-core, a checker")
@pytest.mark.parametrize("width", [400, 1600])
def test_axe_finds_nothing(page, width, tmp_path):
    axe = Path(os.environ["AXE"]).read_text(encoding="utf-8").replace("</script>", "<\\/script>")
    run = "axe.run().then((r) => { const o = document.createElement('pre'); o.id = 'axe';"
    run += " o.textContent = JSON.stringify(r.violations.map((v) => [v.id, v.impact, v.nodes[0].html]));"
    run += " document.body.append(o); })"
    unfold = "document.querySelectorAll('details').forEach((d) => { d.open = true; });"
    content = f"<script>{axe}</script><script>addEventListener('load', () => {{ {unfold} {run} }})</script></body>"
    path = tmp_path / "axe.html"
    path.write_text(page.replace(MEASURE, "").replace("</body>", content), encoding="utf-8")
    shown = browse(path, f"--window-size={width},2000", "--virtual-time-budget=20000", "--dump-dom")
    assert json.loads(html.unescape(re.search(r'<pre id="axe">(.*?)</pre>', shown.stdout, re.DOTALL)[1])) == []
