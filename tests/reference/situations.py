"""Situations that people meet, and what the first sentence of an answer must and must not say in each."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.reference.examples import draw_labels


@dataclass(frozen=True)
class Situation:
    """Labels and predictions of a row of the table, and what must (``says``) and must not (``never``) be said."""

    name: str
    kind: str
    y_true: np.ndarray
    y_prob: np.ndarray
    design: dict[str, Any]
    says: str
    never: str

    @property
    def complement(self) -> "Situation":
        """The same data told of the other outcome; what is said of averages changes sides."""
        swapped = self.says, self.never
        swapped = (text.replace("too low", "too HIGH").replace("too high", "too low") for text in swapped)
        swapped = tuple(text.replace("HIGH", "high") for text in swapped)
        return Situation(self.name, self.kind, 1 - self.y_true, 1 - self.y_prob, self.design, *swapped)

    def permuted(self) -> "Situation":
        """The same data with the classes in another order."""
        order = np.roll(np.arange(self.y_prob.shape[1]), 1)
        place = np.argsort(order)
        return Situation(self.name, self.kind, place[self.y_true], self.y_prob[:, order], {}, self.says, self.never)


def situations() -> Iterator[Situation]:
    """Yield the situations of the table."""
    with Path(__file__).with_suffix(".csv").open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            how = dict(part.partition("=")[::2] for part in row["make"].split())
            make = _classes if row["kind"] == "classes" else _event
            y_true, y_prob, design = make(np.random.default_rng(number), int(row["n"]), how)
            yield Situation(row["name"], row["kind"], y_true, y_prob, design, row["says"], row["never"])


def _event(rng, n, how):
    centre, spread = (0.0, 1.2) if "centre" in how else (-1.0, 1.2)
    logit = rng.normal(centre, spread, n)
    if "rare" in how:
        logit = rng.normal(np.log(float(how["rare"])), 0.8, n) - 0.32
    if "sharp" in how:
        logit *= 3
    prob = 1 / (1 + np.exp(-logit))
    if "equal" in how:
        prob[:] = float(how["equal"])
    if "values" in how:
        prob = rng.choice([0.2, 0.5, 0.8], n)
    if "digits" in how:
        prob = np.clip(prob.round(int(how["digits"])), 0.01, 0.99)
    if "half" in how:
        prob[: n // 2] = 0.0
    if "certain" in how:
        prob = (prob > 0.3).astype(float)
    with np.errstate(divide="ignore"):
        told = np.log(prob) - np.log1p(-prob)
    bend = float(how.get("wave", 0)) * np.sin(1.5 * np.clip(told, -50, 50))
    truth = 1 / (1 + np.exp(-(float(how.get("shift", 0)) + float(how.get("slope", 1)) * told + bend)))
    if "region" in how:
        low, high, rate = map(float, how["region"].split(":"))
        truth[(prob > low) & (prob < high)] = rate
    y = (rng.random(n) < truth).astype(int)
    if "none" in how or "certain" in how:
        y = prob.astype(int) * ("certain" in how)
    if "zeros" in how:
        prob[:40], y[:2], y[2:40] = 0.0, 1, 0
    design = {}
    if "groups" in how:
        design["groups"] = np.arange(n) % int(how["groups"])
    if "weights" in how:
        design["sample_weight"] = rng.exponential(size=n)
    return y, prob, design


def _classes(rng, n, how):
    prob = rng.dirichlet(np.full(int(how["k"]), 0.7), n)
    temperature = float(how.get("temperature", 1))
    y = draw_labels(prob, rng)
    if "swap" in how:
        y[(y == 0) & (rng.random(n) < 0.4)] = 1
    if "zeros" in how:
        prob[0, y[0]] = 0.0
        prob[0] /= prob[0].sum()
    told = prob**temperature
    return y, told / told.sum(axis=1, keepdims=True), {}
