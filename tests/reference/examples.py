"""Small problems, and examples of every lens, partition, distance and statistic of the package.

A new class of the package needs an example here: tests that collect all classes, such as
`tests/statistics/test_base.py`, fail without.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import caltest
import caltest.predictions._lenses
from caltest import statistics
from caltest.results._naming import describe

SHARED = Path(__file__).parents[3] / "shared" / "data"
NOT_DISTRIBUTED = (
    "needs predictions of Widmann et al. (2019) or Lee et al. (2022), which were published without a licence: they may "
    "not be part of this repository, and the maintainers run this test"
)
"""Why a test of real predictions that may not be bundled is skipped."""


# Problems.


def counted(prob, outcome, weight):
    """Predictions, outcomes and relative weights of the observations that count; without weights all do."""
    if weight is None:
        return prob, outcome, None
    kept = weight > 0
    return prob[kept], outcome[kept], weight[kept] / weight[kept].mean()


@dataclass(frozen=True, eq=False)
class Problem:
    """Predictions, labels that may have followed them, and weights of which some are 0."""

    name: str
    y_prob: np.ndarray
    y_true: np.ndarray

    @property
    def n_classes(self) -> int:
        return self.y_prob.shape[1]

    @cached_property
    def weight(self) -> np.ndarray:
        rng = np.random.default_rng(len(self.y_true))
        return np.maximum(rng.exponential(size=len(self.y_true)) - 0.2, 0.0) + (len(self.y_true) == 1)


def draw_labels(prob: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels that follow the predictions; never one of probability 0."""
    cumulative = np.cumsum(prob, axis=1)
    u = rng.random((len(prob), 1)) * cumulative[:, -1:]
    return np.asarray((u >= cumulative).sum(axis=1))


def follow(name: str, prob: np.ndarray, seed: int) -> Problem:
    """A problem whose labels follow the predictions."""
    return Problem(name, prob, draw_labels(prob.astype(float), np.random.default_rng(seed)))


def make_dirichlet(n: int, n_classes: int) -> Problem:
    """Sharp and vague predictions without ties."""
    prob = np.random.default_rng(n).dirichlet(np.full(n_classes, 0.5), size=n)
    return follow(f"dirichlet_{n_classes}", prob, n)


def make_ties() -> Problem:
    """Multiples of 1/8: sums are exact, ties abound, in a row and between rows."""
    prob = np.random.default_rng(5).multinomial(8, [0.4, 0.3, 0.2, 0.1], size=48) / 8
    return follow("ties_4", prob, 6)


def make_zeros_and_ones() -> Problem:
    """Certain, half-certain and vague predictions."""
    corner = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.25, 0.75], [0.375, 0.25, 0.375]]
    return follow("zeros_and_ones_3", np.repeat(np.array(corner, dtype=float), 6, axis=0), 7)


def make_float32() -> Problem:
    """What a network hands out: rows miss 1 by some 1e-7, and the rest of a lens may lie below 0."""
    logits = np.random.default_rng(8).normal(scale=12, size=(60, 5)).astype(np.float32)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return follow("float32_5", odds / odds.sum(axis=1, keepdims=True), 9)


def make_impossible() -> Problem:
    """Labels that had been given probability 0: in the first, a middle and the last class."""
    prob = np.random.default_rng(10).dirichlet(np.ones(4), size=30)
    label = draw_labels(prob, np.random.default_rng(11))
    for row, k in [(3, 0), (11, 2), (20, 3)]:
        prob[row, k] = 0
        prob[row] /= prob[row].sum()
        label[row] = k
    return Problem("impossible_4", prob, label)


def make_certain() -> Problem:
    """Certainties, one of which is contradicted; class 2 is excluded everywhere and never happens."""
    label = np.tile([0, 1], 6)
    prob = np.eye(3)[label]
    label[4] = 1
    return Problem("certain_3", prob, label)


def make_constant() -> Problem:
    """The same prediction in every row."""
    return follow("constant_3", np.tile([0.5, 0.375, 0.125], (20, 1)), 12)


def make_single_row() -> Problem:
    """One row."""
    return Problem("one_row_3", np.array([[0.25, 0.125, 0.625]]), np.array([1]))


PROBLEMS = [
    make_dirichlet(37, 2),
    make_dirichlet(50, 3),
    make_dirichlet(60, 10),
    make_ties(),
    make_zeros_and_ones(),
    make_float32(),
    make_impossible(),
    make_certain(),
    make_constant(),
    make_single_row(),
]


# One example or more of every class.


def reverse(prob: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A user's lens: the classes in reverse order."""
    return prob[:, ::-1], prob.shape[1] - 1 - outcome


def thirds(prob: np.ndarray) -> np.ndarray:
    """A user's partition: by the last probability, with labels that are neither dense nor positive."""
    return np.floor(3 * prob[:, -1]).astype(int) * 7 - 5


def hellinger(predicted: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """A user's distance."""
    return np.sqrt(np.square(np.sqrt(np.clip(predicted, 0, None)) - np.sqrt(observed)).sum(axis=-1) / 2)


def inner_product_kernel(p: np.ndarray, q: np.ndarray, bandwidth: float) -> np.ndarray:
    """A user's kernel: not of a distance, and not 1 between equal rows."""
    return 1 + (p * q).sum(axis=-1) / bandwidth


LENSES: dict[type, Callable[[int], list[Any]]] = {
    caltest.Canonical: lambda n: [caltest.Canonical()],
    caltest.Confidence: lambda n: [caltest.Confidence()],
    caltest.TopK: lambda n: [caltest.TopK(k) for k in (1, 2) if k < n],
    caltest.TopRank: lambda n: [caltest.TopRank(2)],
    caltest.WithinTop: lambda n: [caltest.WithinTop(min(2, n - 1))],
    caltest.ClassWise: lambda n: [caltest.ClassWise(0), caltest.ClassWise(n - 1)],
    caltest.ClassGroups: lambda n: [
        caltest.ClassGroups([range(1, n), [0]]),
        *([caltest.ClassGroups([[0, n - 1], [2], [1, *range(3, n - 1)]])] if n > 3 else []),
    ],
}

PARTITIONS: dict[type, list[Any]] = {
    caltest.EqualWidth: [
        caltest.EqualWidth(10),
        caltest.EqualWidth(3, closed="right"),
        caltest.EqualWidth(5, closed="outer"),
        caltest.EqualWidth(4, axes="all"),
        caltest.EqualWidth(8, axes="all", closed="right"),
        caltest.EqualWidth("sqrt"),
    ],
    caltest.EqualMass: [
        caltest.EqualMass(5),
        caltest.EqualMass(1000),
        caltest.EqualMass("sqrt"),
        caltest.EqualMass("cube-root"),
        caltest.EqualMass(5, cut="floor"),
        caltest.EqualMass(5, cut="halfway"),
        caltest.EqualMass(1000, cut="halfway"),
    ],
    caltest.EqualSpread: [
        caltest.EqualSpread(5),
        caltest.EqualSpread(1000),
    ],
    caltest.VarianceTree: [
        caltest.VarianceTree(),
        caltest.VarianceTree(min_leaf=3),
        caltest.VarianceTree(min_split=5),
        caltest.VarianceTree(split="mean", min_split=5),
        caltest.VarianceTree(min_leaf=2, max_cells=6),
        caltest.VarianceTree(min_split=2, max_cells=5),
        caltest.VarianceTree(max_cells=3),
    ],
    caltest.AgainstRest: [
        caltest.AgainstRest(),
        caltest.AgainstRest(1, caltest.EqualWidth(4)),
        caltest.AgainstRest(1, caltest.Edges([0.25, 0.5])),
    ],
    caltest.Edges: [caltest.Edges([0.25, 0.5, 0.875]), caltest.Edges([0.25, 0.5, 0.875], closed="right")],
    caltest.FixedTree: [
        caltest.FixedTree([1, 0, 0], [0.5, 0.0, 0.0], [1, -1, -1]),
        caltest.FixedTree([1, 0, 1, 0, 0, 0, 0], [0.5, 0.25, 0.875, 0, 0, 0, 0], [1, 3, 5, -1, -1, -1, -1]),
    ],
    caltest.SimplexGrid: [caltest.SimplexGrid(n) for n in (1, 4, 6)],
}

NOT_OF_TWO = (caltest.AgainstRest, caltest.FixedTree, caltest.SimplexGrid)
"""Partitions that are made for more than two outcomes."""

NO_TWIN = (*NOT_OF_TWO, caltest.EqualSpread)
"""Partitions whose inner edges the twin of `ConvexECE` does not know."""

STATISTICS: dict[type, Callable[..., list[Any]]] = {
    caltest.ECE: lambda: [*binned(caltest.ECE), caltest.ECE(caltest.EqualWidth(5), scale_weight="p(1-p)")],
    caltest.MCE: lambda: binned(caltest.MCE),
    caltest.TemperatureScore: lambda: [caltest.TemperatureScore()],
    caltest.statistics.OverConfidence: lambda: [caltest.statistics.OverConfidence()],
    caltest.statistics.UnderConfidence: lambda: [caltest.statistics.UnderConfidence()],
    caltest.statistics.ConfidenceECE: lambda: [caltest.statistics.ConfidenceECE(), caltest.statistics.ConfidenceECE(3)],
    caltest.statistics.MatrixScore: lambda: [caltest.statistics.MatrixScore()],
    caltest.KS: lambda: [caltest.KS(), caltest.KS(scale_weight="(1-2p)^2")],
    caltest.statistics.Kuiper: lambda: [caltest.statistics.Kuiper()],
    caltest.statistics.ClasswiseKS: lambda: [caltest.statistics.ClasswiseKS()],
    caltest.statistics.Classwise: lambda: [
        caltest.statistics.Classwise(),
        caltest.statistics.Classwise(caltest.KS(), "max"),
        caltest.statistics.Classwise(caltest.statistics.KDEError(0.1, reference="mean")),
    ],
    caltest.statistics.ConvexECE: lambda: [
        *(caltest.statistics.ConvexECE(several[0]) for kind, several in PARTITIONS.items() if kind not in NO_TWIN),
        *(
            caltest.statistics.ConvexECE(caltest.EqualWidth(4), distance=distance)
            for distance in [*distances(), hellinger]
        ),
        caltest.statistics.ConvexECE(caltest.EqualWidth(6), low=0.25),
        caltest.statistics.ConvexECE(caltest.EqualMass(6, cut="halfway"), share="swapped"),
    ],
    statistics.MonotonicSweepECE: lambda: [
        statistics.MonotonicSweepECE(),
        statistics.MonotonicSweepECE(norm="l2"),
    ],
    caltest.SquaredL2: lambda: [
        *(caltest.SquaredL2(partition) for partition in partitions_of_two()),
        *(caltest.SquaredL2(caltest.EqualWidth(4), estimator) for estimator in ("t-cal", "kumar")),
    ],
    caltest.statistics.GCE: lambda: [
        caltest.statistics.GCE(),
        caltest.statistics.GCE(norm="l2", threshold=0.2, n_cells=4),
        caltest.statistics.GCE(max_prob=True, n_cells=3),
        caltest.statistics.GCE(max_prob=True, class_conditional=False, norm="l2"),
        caltest.statistics.GCE(class_conditional=False, threshold=0.01),
        caltest.statistics.GCE("equal-mass"),
        caltest.statistics.GCE("equal-mass", norm="l2", threshold=0.1, n_cells=4),
        caltest.statistics.GCE("equal-mass", max_prob=True, norm="l2", n_cells=2),
        caltest.statistics.GCE("equal-mass", class_conditional=False, n_cells=7),
    ],
    statistics.SCE: lambda: [
        statistics.SCE(),
        statistics.SCE(4, average="sum"),
        statistics.SCE(8, closed="right"),
    ],
    statistics.ACE: lambda: [
        statistics.ACE(),
        statistics.ACE(4, cell_weight="observations"),
        statistics.ACE(6, "equal-mass-floor", cell_weight="occupied"),
        statistics.ACE(5, "equal-width", max_prob=True, cell_weight="occupied"),
    ],
    statistics.TACE: lambda: [
        statistics.TACE(),
        statistics.TACE(3, threshold=0.25, cell_weight="observations"),
        statistics.TACE(50, threshold=0.5, cell_weight="occupied"),
    ],
    statistics.RMSCE: lambda: [
        statistics.RMSCE(),
        statistics.RMSCE(4, "equal-width"),
        statistics.RMSCE(samples_per_cell=7),
    ],
    statistics.ClassConditionalECE: lambda: [
        statistics.ClassConditionalECE(),
        statistics.ClassConditionalECE(3, class_weight="observations"),
    ],
    statistics.ClassConditionalUCE: lambda: [
        statistics.ClassConditionalUCE(),
        statistics.ClassConditionalUCE(4, "observations"),
    ],
    statistics.UCE: lambda: [statistics.UCE(), statistics.UCE(4)],
    statistics.EntropyDifference: lambda: [statistics.EntropyDifference()],
    caltest.statistics.KDEError: lambda: [
        caltest.statistics.KDEError(),
        caltest.statistics.KDEError(0.1, reference="mean"),
        caltest.statistics.KDEError(0.2, kernel="gaussian", grid=(-0.5, 1.5, 42)),
        caltest.statistics.KDEError(0.05, grid=(-1.0, 2.0, 64)),
    ],
    statistics.GiViTI: lambda: [statistics.GiViTI(), statistics.GiViTI(2, 2, 0.5)],
    statistics.Stukel: lambda: [statistics.Stukel()],
    statistics.OsiusRojek: lambda: [statistics.OsiusRojek()],
    statistics.LeCessie: lambda: [statistics.LeCessie()],
    statistics.ICI: lambda: [statistics.ICI(), statistics.ICI("lowess"), statistics.ICI(span=0.4)],
    statistics.E50: lambda: [statistics.E50(), statistics.E50("lowess", 0.9)],
    statistics.E90: lambda: [statistics.E90("lowess")],
    statistics.Emax: lambda: [statistics.Emax()],
    statistics.ECI: lambda: [statistics.ECI(), statistics.ECI("lowess", 0.5)],
    statistics.SmoothCalibrationError: lambda: [statistics.SmoothCalibrationError()],
    caltest.SmoothECE: lambda: [caltest.SmoothECE(0.1, n_points=50), caltest.SmoothECE(n_points=32)],
    caltest.statistics.Spiegelhalter: lambda: [caltest.statistics.Spiegelhalter()],
    caltest.HosmerLemeshow: lambda: [
        caltest.HosmerLemeshow(),
        caltest.HosmerLemeshow(caltest.EqualWidth(3), covariance="mean"),
        caltest.HosmerLemeshow(thirds),
        caltest.HosmerLemeshow(caltest.VarianceTree(), covariance="mean"),
    ],
    caltest.statistics.CoxScore: lambda: [
        caltest.statistics.CoxScore(part) for part in ("joint", "intercept", "slope")
    ],
    caltest.statistics.Bridge: lambda: [caltest.statistics.Bridge()],
    caltest.statistics.TCal: list,  # a combination, without a value of its own
    caltest.statistics.IsotonicError: lambda: [
        caltest.statistics.IsotonicError(),
        caltest.statistics.IsotonicError("log"),
    ],
    caltest.SKCE: lambda: [
        caltest.SKCE(),
        caltest.SKCE(estimator="biased"),
        caltest.SKCE(caltest.statistics.euclidean_kernel, estimator="block"),
        caltest.SKCE(caltest.statistics.gaussian_kernel, bandwidth=0.25, estimator="biased"),
        caltest.SKCE(inner_product_kernel, bandwidth=2.0),
    ],
    statistics.MMCE: lambda: [statistics.MMCE(), statistics.MMCE(bandwidth=0.01)],
    caltest.Omnibus: list,  # a combination, without a value of its own
}


TWO_OUTCOMES = tuple(kind for kind in STATISTICS if kind.n_outcomes == 2)
"""Statistics of one probability: they need a two-outcome lens."""


def binned(kind: type) -> list[Any]:
    """A binned statistic with every partition and every distance."""
    return [
        *(kind(partition) for partition in partitions_of_two()),
        *(kind(caltest.EqualWidth(4), distance) for distance in [*distances(), hellinger]),
    ]


def partitions_of_two() -> list[Any]:
    """Every partition that can cut two outcomes."""
    return [partition for partition in [*flat(PARTITIONS), thirds] if getattr(partition, "n_outcomes", None) != 3]


def flat(examples: dict[type, list[Any]]) -> list[Any]:
    """All examples in one list."""
    return [example for several in examples.values() for example in several]


ALL_PARTITIONS = [*flat(PARTITIONS), thirds]
"""Every partition, a user's function among them, which is the last one."""


BY_TEXT = {"MeanScore"}
"""Statistics that users name by a text such as "brier", tested where scores are."""


def subclasses(kind: type) -> list[type]:
    """Concrete classes of the package below a base class, whether it names them in public or not."""
    below = [found for child in kind.__subclasses__() for found in (child, *subclasses(child))]
    ours = [found for found in below if found.__module__.startswith("caltest.") and found.__name__ not in BY_TEXT]
    return [found for found in ours if not inspect.isabstract(found)]


def defined_in(module: Any, what: Callable[[Any], bool]) -> list[Any]:
    """Public things that a module defines."""
    members = inspect.getmembers(module, what)
    return [found for name, found in members if found.__module__ == module.__name__ and not name.startswith("_")]


def distances() -> list[Any]:
    """Every distance of the package."""
    found = defined_in(caltest.predictions._distances, inspect.isfunction)
    return [function for function in found if not function.__name__.startswith("validate_")]


@dataclass(frozen=True, eq=False)
class View:
    """A problem through a lens."""

    problem: Problem
    lens: Any

    def __str__(self) -> str:
        return f"{self.problem.name}-{describe(self.lens)}"

    @property
    def y_true(self) -> np.ndarray:
        return self.problem.y_true

    @property
    def y_prob(self) -> np.ndarray:
        return self.problem.y_prob

    @cached_property
    def induced(self) -> tuple[np.ndarray, np.ndarray]:
        """What is seen, in the caller's order."""
        prob, outcome = self.lens(self.y_prob.astype(float), self.y_true)
        return np.asarray(prob), np.asarray(outcome)


def simple_statistics() -> list[Any]:
    """Examples of every statistic that has a value of its own."""
    return [example for make in STATISTICS.values() for example in make()]


def default_statistics() -> list[Any]:
    """Every statistic with its defaults."""
    return [kind() for kind in subclasses(caltest.statistics.Statistic)]


def components_of(some: list[Any]) -> list[Any]:
    """Those that have a value of their own."""
    return [statistic for statistic in some if statistic.components == (statistic,)]


def plain_statistics() -> list[Any]:
    """Every statistic that has a value of its own, with its defaults, and two more of the binned ones."""
    more = [caltest.ECE(caltest.EqualWidth(4)), caltest.MCE(thirds, hellinger)]
    return [*components_of(default_statistics()), *more]


VIEWS = [
    View(problem, lens)
    for problem in PROBLEMS
    for lens in [*(lens for make in LENSES.values() for lens in make(problem.n_classes)), reverse]
]
