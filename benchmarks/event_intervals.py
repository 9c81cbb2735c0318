"""How often intervals of observed/expected and of the calibration slope hold the truth.

``python -m benchmarks.event_intervals`` writes docs/data/event-intervals.csv, from which
``python benchmarks/validity.py --page`` makes a part of docs/validity.md.
"""

import argparse
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import special, stats

from caltest.estimation import calibration_in_the_large, calibration_slope

SEED = 20261126
ROOT = Path(__file__).parents[1]
LEAST = 0.93
"""Coverage that intervals of 95 % must have."""

PREDICTIONS = {
    "mild": lambda n, rng: special.expit(rng.normal(0, 1, n)),
    "sharp": lambda n, rng: special.expit(rng.normal(0, 4, n)),
    "risks": lambda n, rng: special.expit(rng.normal(-1.6, 1.2, n)),
    "1 %": lambda n, rng: special.expit(rng.normal(-5.1, 1, n)),
    "0.1 %": lambda n, rng: special.expit(rng.normal(-7.4, 1, n)),
    "sharp, 2 %": lambda n, rng: special.expit(rng.normal(-6, 3, n)),
    "3 values": lambda n, rng: rng.choice([0.1, 0.3, 0.6], n),
}


@dataclass(frozen=True)
class Design:
    """Predictions of a kind, and true probabilities whose logit is ``shift + slope * logit(prediction)``.

    With ``groups`` the n observations are in so many groups of unequal size, whose labels share a latent normal
    variable with this ``correlation``. ``weights`` is the standard deviation of the logarithm of the weights.
    """

    predictions: str
    n: int
    shift: float = 0.0
    slope: float = 1.0
    groups: int = 0
    correlation: float = 0.0
    weights: float = 0.0

    def data(self, rng):
        """Return labels, predictions, true probabilities, and the design of one data set."""
        prob = PREDICTIONS[self.predictions](self.n, rng)
        truth = special.expit(self.shift + self.slope * special.logit(prob))
        latent, design = rng.standard_normal(self.n), {}
        if self.groups:
            share = rng.dirichlet(np.full(self.groups, 4.0))
            design["groups"] = group = np.r_[
                np.arange(self.groups), rng.choice(self.groups, self.n - self.groups, p=share)
            ]
            shock = rng.standard_normal(self.groups)[group]
            latent = np.sqrt(self.correlation) * shock + np.sqrt(1 - self.correlation) * latent
        if self.weights:
            design["sample_weight"] = np.exp(self.weights * rng.standard_normal(self.n))
        return (special.ndtr(latent) < truth).astype(int), prob, truth, design


def designs():
    """Return the designs of the table."""
    independent = [
        ("mild", 10),
        ("mild", 20, 0.0, 0.6),
        ("mild", 40),
        ("mild", 400, 0.0, 0.6),
        ("mild", 4_000),
        ("sharp", 20),
        ("sharp", 100, 0.0, 0.6),
        ("sharp", 1_000),
        ("1 %", 500),
        ("1 %", 1_000),
        ("1 %", 2_000),
        ("1 %", 5_000, 0.7),
        ("0.1 %", 5_000),
        ("0.1 %", 20_000),
        ("0.1 %", 5_000, 0.0, 0.6),
        ("sharp, 2 %", 200),
        ("sharp, 2 %", 1_000, 0.0, 1.5),
        ("3 values", 20, 0.0, 0.6),
        ("3 values", 200, 0.0, 1.5),
    ]
    grouped = [
        ("risks", 150, 0.0, 1.0, 5, 0.1),
        ("risks", 280, 0.4, 0.8, 10, 0.1),
        ("risks", 560, 0.0, 1.0, 20, 0.1),
        ("risks", 1_400, 0.0, 1.0, 50, 0.1),
        ("1 %", 560, 0.0, 1.0, 20, 0.1),
        ("1 %", 1_400, 0.0, 1.0, 50, 0.1),
        ("1 %", 1_400, 0.7, 1.0, 50, 0.1),
        ("1 %", 1_400, 0.0, 1.0, 50, 0.0),
    ]
    weighted = [
        ("risks", 50, 0.0, 1.0, 0, 0.0, 0.5),
        ("risks", 500, 0.0, 0.7, 0, 0.0, 1.0),
        ("1 %", 1_000, 0.0, 1.0, 0, 0.0, 0.5),
        ("1 %", 5_000, 0.7, 1.0, 0, 0.0, 1.0),
    ]
    return [Design(*one) for one in (*independent, *grouped, *weighted)]


def measure(design, number):
    """Return, for one data set, the events, and for ratio and slope: no interval, truth above, and below it."""
    rng = np.random.default_rng([SEED, *np.frombuffer(repr(design).encode(), np.uint8), number])
    label, prob, truth, options = design.data(rng)
    weight = options.get("sample_weight", np.ones(design.n))
    targets = weight @ truth / (weight @ prob), design.slope
    found = [float(label.sum())]
    for function, target in zip((calibration_in_the_large, calibration_slope), targets, strict=True):
        low, high = function(label, prob, **options).confidence_interval
        found += [np.isnan(low), target > high, target < low]
    return found


RATES = tuple(f"{what}_{how}" for what in ("ratio", "slope") for how in ("none", "above", "below"))


def coverages(frame, what):
    """Return the coverage of an interval among the data sets that have one, NaN without any."""
    known = 1 - frame[f"{what}_none"]
    missed = frame[f"{what}_above"] + frame[f"{what}_below"]
    return (1 - missed / known.where(known > 0)).to_numpy()


def least_coverage(sets):
    """Return the coverage that is so low by chance in one of a thousand cells, if the true one is `LEAST`."""
    sets = np.maximum(sets, 1)
    return stats.binom.ppf(1e-3, sets, LEAST) / sets


def main():
    """Measure, or go on with what is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--part", default="", help="only designs whose text has this part")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "data" / "event-intervals.csv")
    options = parser.parse_args()
    names = [field.name for field in fields(Design)]
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    known = {tuple(row[name] for name in names) for row in rows if row["sets"] >= options.sets}
    for design in designs():
        if astuple(design) in known or options.part not in repr(design):
            continue
        jobs = (joblib.delayed(measure)(design, number) for number in range(options.sets))
        events, *rates = np.array(joblib.Parallel(options.workers)(jobs), dtype=float).mean(axis=0).round(6).tolist()
        rows.append(
            {name: getattr(design, name) for name in names}
            | {"sets": options.sets, "events": events}
            | dict(zip(RATES, rates, strict=True))
        )
        frame = pd.DataFrame(rows)
        print(design, *(f"{coverages(frame, what)[-1]:.3f}" for what in ("ratio", "slope")), flush=True)
        frame.to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
