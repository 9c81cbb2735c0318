"""Forecasts in time whose conditional probabilities are known, at any lead.

A stream has predictions that are the probabilities of the outcomes given everything known when they are made; the
outcomes are known ``lead`` steps later. The predictions are calibrated, and outcomes less than a lead apart depend on
each other even given all predictions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

YEAR = 365
BATCH = 50


@dataclass(frozen=True, eq=False)
class Stream:
    """Predictions ``y_prob (n,)`` or ``(n, n_classes)`` made at ``time (n,)``, and ``y_true (n,)``."""

    time: NDArray[np.int64]
    y_prob: NDArray[np.float64]
    y_true: NDArray[np.int64]


def autoregression(rng, phi, n):
    """Return a stationary autoregression ``(n,)`` with variance 1."""
    from scipy.signal import lfilter

    noise = rng.standard_normal(n)
    noise[1:] *= np.sqrt(1 - phi * phi)
    return lfilter([1.0], [1.0, -phi], noise)


def exceedances(rng, n, lead, *, phi=0.8, rate=0.3, season=0.0):
    """Return forecasts that an autoregression will exceed a limit, which may have a season of a year."""
    x, step = autoregression(rng, phi, n + lead), np.arange(n)
    limit = ndtri(1 - rate) + season * np.cos(2 * np.pi * (step + lead + rng.integers(YEAR)) / YEAR)
    prob = ndtr((phi**lead * x[:n] - limit) / np.sqrt(1 - phi ** (2 * lead)))
    return Stream(step, prob, (x[lead:] > limit).astype(np.int64))


def classes(rng, n, lead, phi=0.8, n_classes=5):
    """Return forecasts of which of several ranges of equal probability an autoregression will lie in."""
    x, ends = autoregression(rng, phi, n + lead), ndtri(np.arange(1, n_classes) / n_classes)
    below = ndtr((ends - phi**lead * x[:n, None]) / np.sqrt(1 - phi ** (2 * lead)))
    prob = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return Stream(np.arange(n), prob, np.searchsorted(ends, x[lead:]))


def markov(rng, n, lead, stay=(0.95, 0.85)):
    """Return forecasts of the state of a persistent chain of two states: predictions have two values."""
    uniform, state = rng.random(n + lead), np.empty(n + lead, dtype=np.int64)
    state[0] = uniform[0] < (1 - stay[0]) / (2 - sum(stay))
    for i in range(1, n + lead):
        state[i] = state[i - 1] if uniform[i] < stay[state[i - 1]] else 1 - state[i - 1]
    step = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    return Stream(np.arange(n), np.linalg.matrix_power(step, lead)[state[:n], 1], state[lead:])


def shared(rng, times, lead, prob, correlation):
    """Return outcomes ``(n,)`` that share the shocks between a prediction and its outcome."""
    total = np.append(0.0, np.cumsum(rng.standard_normal(times.max() + 1 + lead)))
    common = (total[lead:] - total[:-lead])[times] / np.sqrt(lead)
    latent = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.standard_normal(len(prob))
    return (latent < ndtri(prob)).astype(np.int64)


def shocks(rng, n, lead, correlation=0.3):
    """Return one forecast for each time, unrelated to the last one; outcomes share shocks such as those of a market."""
    step, prob = np.arange(n), ndtr(0.9 * rng.standard_normal(n) - 0.5)
    return Stream(step, prob, shared(rng, step, lead, prob, correlation))


def batches(rng, n, lead, correlation=0.05, size=BATCH):
    """Return some forecasts for each time, such as credit scores of a week."""
    times = np.arange(n // size).repeat(size)
    prob = ndtr(0.9 * rng.standard_normal(len(times)) - 0.5)
    return Stream(times, prob, shared(rng, times, lead, prob, correlation))


STREAMS: dict[str, Callable[..., Stream]] = {
    "AR(.5)": partial(exceedances, phi=0.5),
    "AR(.8)": partial(exceedances, phi=0.8),
    "AR(.9)": partial(exceedances, phi=0.9),
    "AR(.95)": partial(exceedances, phi=0.95),
    "season": partial(exceedances, phi=0.8, season=1.0),
    "rare, 1 %": partial(exceedances, phi=0.8, rate=0.01),
    "Markov": markov,
    "shocks": shocks,
    "batches of 50": batches,
    "5 classes": classes,
}


def powered(prob, power):
    """Return the probabilities of classes, or of the event, that are proportional to powers."""
    both = np.clip(prob if prob.ndim == 2 else np.column_stack([1 - prob, prob]), 1e-9, None) ** power
    both /= both.sum(axis=1, keepdims=True)
    return both if prob.ndim == 2 else both[:, 1]


def distorted(stream, kind):
    """Return a stream whose predictions are wrong: "vague", or of two outcomes "shift", "slope", or "region"."""
    if kind == "vague":
        return Stream(stream.time, powered(stream.y_prob, 0.6), stream.y_true)
    score = logit(np.clip(stream.y_prob, 1e-9, 1 - 1e-9))
    if kind == "shift":
        score = score + 0.3
    elif kind == "slope":
        score = 1.5 * score
    elif kind == "region":
        low, high = np.quantile(score, [0.6, 0.8])
        score = np.where((score >= low) & (score <= high), score + 0.8, score)
    return Stream(stream.time, expit(score), stream.y_true)
