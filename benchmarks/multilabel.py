"""Several labels of each observation: how often is any calibrated label rejected, and how often a wrong one?

``python -m benchmarks.multilabel`` measures all settings, writes docs/data/multilabel.csv and the table of
docs/several-labels.md. It takes some 10 minutes on one core. Beside the corrections of `multilabel_table` stand two
methods that it does not have: the smallest p-value of labels that are drawn jointly, as if they were independent, and
random signs of whole observations, which learn the dependence from the data.
"""

import zlib
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

import caltest
from benchmarks.markdown import table
from benchmarks.pages import Studies
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._signs import SignDraws
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._pvalues import correct_pvalues
from caltest.resampling.engine._run import _draw_until, settle
from caltest.resampling.engine._stopping import Stopping

SEED = 20261128
N_RESAMPLES = 599
"""With which 5 % divided by 3 or by 10 labels is a possible p-value."""
LEVEL = 0.05
SHARED = 0.6
"""Part of the variance of the latent normal variables of labels that those of an observation share."""
METHODS = {"holm": "Holm", "hommel": "Hommel", "joint": "joint draws", "signs": "random signs"}

Floats = NDArray[np.float64]


class Setting(NamedTuple):
    """Predictions of some labels, how these depend on each other, and how wrong their log odds are."""

    dependence: str
    labels: int
    rate: float
    n: int = 200
    wrong: str = ""


class Row(NamedTuple):
    """How often each method rejects."""

    study: str
    dependence: str
    labels: int
    rate: float
    n: int
    wrong: str
    holm: float
    hommel: float
    joint: float
    signs: float
    sets: int


LEVELS = [
    *(Setting(how, 3, rate) for rate in (0.2, 0.01) for how in ("independent", "shared", "copies")),
    *(Setting(how, 10, 0.2) for how in ("independent", "shared", "copies")),
]
POWER = [Setting("independent", 10, 0.2, 500, wrong) for wrong in ("one", "all")]
_SHIFTS = {"one": np.r_[0.5, np.zeros(9)], "all": np.full(10, 0.25), "": np.zeros(1)}
"""What is added to the log odds of each label."""


def simulated(setting: Setting, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return labels and predictions ``(n, labels)``; copies are one label with one prediction."""
    shape = setting.n, setting.labels
    spread = np.repeat(rng.normal(size=(setting.n, 1)), shape[1], 1) if setting.dependence == "copies" else None
    prob = expit(logit(setting.rate) + (rng.normal(size=shape) if spread is None else spread))
    share = {"independent": 0.0, "shared": SHARED, "copies": 1.0}[setting.dependence]
    common, own = rng.normal(size=(setting.n, 1)), rng.normal(size=shape)
    chance = norm.cdf(np.sqrt(share) * common + np.sqrt(1 - share) * own)
    truth = expit(logit(prob) + _SHIFTS[setting.wrong])
    return (chance < truth).astype(float), prob


def asked_of(label: Floats, prob: Floats, *, whole_observations: bool) -> tuple[Sample, list[Question]]:
    """Return all labels as one sample, whose groups may be the observations, and a question for each label."""
    n, labels = prob.shape
    event = np.column_stack([1 - prob.T.ravel(), prob.T.ravel()])
    outcome = label.T.ravel().astype(np.int64)
    base = induce(event, outcome, group=np.tile(np.arange(n), labels) if whole_observations else None)
    whole = LensView.of(caltest.Canonical(), event, outcome, base)
    own = np.repeat(np.arange(labels), n)[base.row]
    views = [whole.take(np.flatnonzero(own == k)) for k in range(labels)]
    return base, [Question(settle(caltest.Omnibus(), view.sample), view) for view in views]


def rejected(label: Floats, prob: Floats, rng: np.random.Generator) -> list[bool]:
    """Return whether each method rejects that all labels are calibrated."""
    own = [test.pvalue for test in caltest.multilabel_table(label, prob, n_resamples=N_RESAMPLES, rng=rng)]
    pvalues = [min(correct_pvalues(own, correction)) for correction in ("holm", "hommel")]
    stopping = {"stopping": Stopping(N_RESAMPLES), "workers": 1, "progress": None}
    for draws, whole in ((OutcomeDraws, False), (SignDraws, True)):
        base, asked = asked_of(label, prob, whole_observations=whole)
        pvalues.append(_draw_until(asked, base, draws.of(N_RESAMPLES, rng), **stopping).pvalue)
    return [pvalue <= LEVEL + 1e-9 for pvalue in pvalues]


def measure(study: str, data_sets: int) -> Iterator[Row]:
    """Yield a row for each setting: the rates of the methods. Many labels are measured on half of the data sets."""
    for setting in LEVELS + POWER:
        rng = np.random.default_rng([SEED, zlib.crc32(repr(tuple(setting)).encode())])
        sets = max(1, data_sets // (1 if setting.labels == LEVELS[0].labels else 2))
        found = np.array([rejected(*simulated(setting, rng), rng) for _ in range(sets)])
        yield Row(study, *setting, *found.mean(axis=0).tolist(), sets)


def shown(frame: pd.DataFrame) -> str:
    """Return the table; rates of calibrated labels above 5 % by more than four standard errors are bold."""
    words = {"independent": "independent", "shared": "dependent", "copies": "copies of one label"}
    wrong = {"one": ", one of them wrong", "all": ", all of them a little wrong"}
    rows = []
    for row in frame.to_dict("records"):
        limit = LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / row["sets"])
        bold = {name: "**" if not row["wrong"] and row[name] > limit else "" for name in METHODS}
        texts = [f"{mark}{100 * row[name]:.1f}{mark}" for name, mark in bold.items()]
        what = f"{row['labels']} labels, {words[row['dependence']]}{wrong.get(row['wrong'], '')}"
        rows.append((what, f"{row['n']}", f"{100 * row['rate']:g} %", *texts, f"{row['sets']}"))
    head = ("labels", "observations", "events", *METHODS.values(), "data sets")
    return table(head, rows)


STUDIES = Studies(
    program="multilabel",
    seed=SEED,
    n_resamples=N_RESAMPLES,
    data_sets=400,
    studies={"rejections": (partial(measure, "rejections"), shown, "several-labels.md")},
)


if __name__ == "__main__":
    STUDIES.main("Several labels of each observation.")
