"""How often the confidence sets of a leaderboard contain all true ranks: `docs/data/leaderboard.csv`.

Every design draws questions, losses of many models on them, and asks `caltest.ranking` for the sets. The losses are
drawn directly, so that the true ranks are known: a model has a quality, and a question a difficulty that all models
share. A set of ranks is right if it contains the true ranks of all models; the share of right sets must not be below
the level.

    python -m benchmarks.leaderboard --sets 1000    # adds the sets that are missing, and writes the table of the page
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.pages import mark, with_table
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._times import validate_timing
from caltest.ranking._measures import Judged
from caltest.ranking._separation import Contributions
from caltest.ranking._summed_losses import SummedLosses, sums_of_losses
from caltest.results._decision import level_of

DOCS = Path(__file__).parent.parent / "docs"
PLACE, PAGE = DOCS / "data" / "leaderboard.csv", DOCS / "leaderboard.md"
LEVEL, DRAWS = 0.95, 199
COLUMNS = ("design", "models", "questions", "sets", "covered", "standard_error", "separated", "best")


@dataclass(frozen=True)
class Design:
    """A kind of leaderboard.

    Attributes
    ----------
    name : str
        What is drawn.
    quality : array of shape (n_models,)
        Mean losses of the models but for what all have.
    n_questions : int
        Number of questions.
    noise : callable
        From a generator and a shape to what models lose by chance, with mean 0 for all models.
    cluster : int
        Questions of a cluster, which share their noise.
    copies : int
        So many models are copies of the one before.
    is_weighted : bool
        Whether questions have unequal weights.
    lead : int
        Questions in time: those closer than this share noise, the sum of the shocks of so many steps.
    n_batches : int
        So many batches are added up by a `LeaderboardState`; 0 of arrays.
    """

    name: str
    quality: np.ndarray
    n_questions: int
    noise: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    cluster: int = 1
    copies: int = 0
    is_weighted: bool = False
    lead: int = 0
    n_batches: int = 0

    def shares(self, rng: np.random.Generator) -> np.ndarray:
        """Return the share of the weight of each unit; unequal ones have an exponential distribution."""
        n_units = self.n_questions // self.cluster
        weight = rng.exponential(1, n_units) if self.is_weighted else np.ones(n_units)
        return weight / weight.sum()

    def losses(self, rng: np.random.Generator) -> np.ndarray:
        """Return losses ``(n_models, n_units)``: means over the questions of a cluster."""
        n_units = self.n_questions // self.cluster
        difficulty = rng.exponential(1, n_units)
        noise = self.noise(rng, (len(self.quality), n_units + max(self.lead - 1, 0)))
        if self.lead:
            noise = np.lib.stride_tricks.sliding_window_view(noise, self.lead, axis=1).sum(axis=2)
        found = self.quality[:, None] + noise + difficulty
        if self.cluster > 1:  # half of the variance is that of the questions within clusters
            within = self.noise(rng, (len(self.quality), n_units * self.cluster))
            found += within.reshape(len(self.quality), n_units, self.cluster).mean(axis=2)
        for model in range(1, self.copies + 1):
            found[-model] = found[-model - self.copies]
        return found

    @property
    def ranks(self) -> np.ndarray:
        """The true ranks."""
        quality = self.quality.copy()
        for model in range(1, self.copies + 1):
            quality[-model] = quality[-model - self.copies]
        return 1 + (quality[None, :] < quality[:, None]).sum(axis=1)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Noise of a normal distribution."""
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Noise with a long right tail, as log scores have: lognormal, skewness 6."""
    return np.exp(rng.standard_normal(shape)) - np.exp(0.5)


def unequal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Lognormal noise of every second model, normal noise of the others: differences are skewed."""
    found = rng.standard_normal(shape)
    found[::2] = np.exp(found[::2]) - np.exp(0.5)
    return found


def wrong(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Wrong answers to a tenth of the questions."""
    return (rng.random(shape) < 0.1) - 0.1


def ladder(n_models: int, step: float) -> np.ndarray:
    """Qualities that are equally far apart."""
    return step * np.arange(float(n_models))


def ties(n_models: int, n_ties: int, step: float) -> np.ndarray:
    """Qualities of which some are equal."""
    return step * (np.arange(n_models) // n_ties).astype(float)


DESIGNS = (
    Design("two equally good", np.zeros(2), 100, normal),
    Design("two, long tail of one", np.zeros(2), 100, unequal),
    Design("ten equally good", np.zeros(10), 100, normal),
    Design("ten, long tails", np.zeros(10), 100, heavy),
    Design("ten, long tails of half", np.zeros(10), 100, unequal),
    Design("ten, long tails of half", np.zeros(10), 1_000, unequal),
    Design("ten, unequal weights", np.zeros(10), 100, normal, is_weighted=True),
    Design("ten equally good, in time", np.zeros(10), 1_000, normal, lead=10),
    Design("ten, in time, long tails of half", np.zeros(10), 1_000, unequal, lead=10),
    Design("fifty equally good, little time", np.zeros(50), 200, normal, lead=7),
    Design("ten apart, in time", ladder(10, 1), 1_000, normal, lead=10),
    Design("ten apart", ladder(10, 0.1), 1_000, normal),
    Design("ties of five", ties(20, 5, 0.2), 1_000, normal),
    Design("twenty equally good, wrong answers", np.zeros(20), 1_000, wrong),
    Design("clusters of ten", ties(20, 5, 0.2), 1_000, normal, cluster=10),
    Design("clusters of ten, long tails", np.zeros(20), 1_000, heavy, cluster=10),
    Design("fifty, ten of them copies", ladder(50, 0.02), 1_000, normal, copies=10),
    Design("two hundred equally good", np.zeros(200), 100, normal),
    Design("two hundred equally good", np.zeros(200), 1_000, normal),
    Design("two hundred apart", ladder(200, 0.01), 1_000, normal),
    Design("two hundred, long tails of half", np.zeros(200), 1_000, unequal),
    Design("two hundred, long tails", np.zeros(200), 10_000, heavy),
    Design("two equally good, in batches", np.zeros(2), 100, normal, n_batches=5),
    Design("two, long tail of one, in batches", np.zeros(2), 100, unequal, n_batches=5),
    Design("two, wrong answers, in batches", np.zeros(2), 100, wrong, n_batches=5),
    Design("ten, long tails of half, in batches", np.zeros(10), 100, unequal, n_batches=5),
    Design("ten, long tails of half, in batches", np.zeros(10), 1_000, unequal, n_batches=5),
    Design("ten, long tails of half, in batches", np.zeros(10), 100_000, unequal, n_batches=10),
    Design("ten apart, in batches", ladder(10, 0.1), 1_000, normal, n_batches=5),
    Design("fifty equally good, in batches", np.zeros(50), 1_000, normal, n_batches=5),
)


def one(design: Design, rng: np.random.Generator) -> tuple[bool, float, int]:
    """Return whether all sets contain the true ranks, the share of pairs that are separated, and the first tier."""
    losses, shares = design.losses(rng), design.shares(rng)
    adds, n_models = losses * shares, len(losses)
    if design.lead:
        timing = validate_timing(np.arange(len(shares)), design.lead, len(shares))
        asked = np.full((len(shares), 2), 0.5), np.zeros(len(shares), dtype=np.int64)
        judged = Judged(LEVEL, 0.5, induce(*asked, lens=Canonical(), timing=timing), *asked, shares)
        adds = np.stack([judged.in_units(each) for each in adds])
        shares = judged.in_units(shares)
    known = np.ones(n_models, dtype=bool)
    found: Contributions | SummedLosses
    if design.n_batches:
        batches = np.array_split(losses, design.n_batches, axis=1)
        found = SummedLosses(len(shares), sum(sums_of_losses(batch, np.zeros(n_models)) for batch in batches))
    else:
        found = Contributions(adds, shares, np.zeros((n_models, n_models)), known, in_time=design.lead > 0)
    is_better = found.separate(DRAWS, rng).pvalue <= level_of(LEVEL)
    low, high = 1 + is_better.sum(axis=0), n_models - is_better.sum(axis=1)
    covered = bool(((low <= design.ranks) & (design.ranks <= high)).all())
    return covered, is_better.sum() / (n_models * (n_models - 1) / 2), int((low == 1).sum())


def simulate(design: Design, known: dict[str, str], n_sets: int) -> dict[str, object]:
    """Return the row of a design, from the sets of a row that is known and those that are missing."""
    start, name = int(known.get("sets", 0)), [ord(letter) for letter in design.name]
    drawn = [one(design, np.random.default_rng([number, design.n_questions, *name])) for number in range(start, n_sets)]
    before = [start * float(known.get(column, 0)) for column in ("covered", "separated", "best")]
    covered, separated, best = (np.sum(np.array(drawn, dtype=float), axis=0) + before) / n_sets
    return {
        "design": design.name,
        "models": len(design.quality),
        "questions": design.n_questions,
        "sets": n_sets,
        "covered": f"{covered:.4f}",
        "standard_error": f"{np.sqrt(covered * (1 - covered) / n_sets):.4f}",
        "separated": f"{separated:.4f}",
        "best": f"{best:.2f}",
    }


def with_coverage(text: str, rows: Iterable[dict[str, Any]]) -> str:
    """Return the text of the page with its table."""
    head = ("losses", "models", "questions", "data sets", "all ranks in their sets", "pairs told apart")
    lines = [
        (
            row["design"],
            str(row["models"]),
            f"{int(row['questions']):,}",
            str(row["sets"]),
            f"{float(row['covered']):.1%} ± {100 * float(row['standard_error']):.1f}".replace("%", " %"),
            f"{float(row['separated']):.1%}".replace("%", " %"),
        )
        for row in rows
    ]
    return with_table(text, mark("leaderboard"), table(head, lines))


def main() -> None:
    """Write the designs: an eighth of the sets of each, then a quarter, and so on, beginning with what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=PLACE)
    chosen = parser.parse_args()
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if chosen.out.exists():
        with chosen.out.open(newline="") as file:
            rows = {(row["design"], row["questions"]): row for row in csv.DictReader(file)}
    for share in (8, 4, 2, 1):
        for design in DESIGNS:
            place = design.name, str(design.n_questions)
            if int(rows.get(place, {}).get("sets", 0)) >= chosen.sets // share:
                continue
            rows[place] = simulate(design, rows.get(place, {}), chosen.sets // share)
            with chosen.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                names = [(one.name, str(one.n_questions)) for one in DESIGNS]
                writer.writerows(rows[name] for name in names if name in rows)
            print(rows[place], flush=True)
    if chosen.out == PLACE:
        PAGE.write_text(with_coverage(PAGE.read_text(encoding="utf-8"), rows.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
