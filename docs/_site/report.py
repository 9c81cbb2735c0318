"""The page that ``caltest report`` writes, made when the site is built, to be looked at without installing."""

from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sphinx.application import Sphinx

import caltest

MARK = "<!-- the report stands here on the site -->"
"""In docs/index.md: the repository has no such page to lead to."""

FILE = "report.html"


def show(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page a link to the report."""
    link = f'<a href="{FILE}">Open the report of a naive Bayes classifier of tumours</a>, as it was written.'
    source[0] = source[0].replace(MARK, f"```{{raw}} html\n<p>{link}</p>\n```")


def write(app: Sphinx, problem: Exception | None) -> None:
    """Write the report of the model of docs/start.md."""
    if problem is None and app.builder.format == "html":
        x_train, x_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
        y_prob = GaussianNB().fit(x_train, y_train).predict_proba(x_test)
        caltest.page.write_page(y_test, y_prob, Path(app.outdir) / FILE, rng=0)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the report when the site is made."""
    app.connect("source-read", show, priority=900)  # after the links were redirected
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
