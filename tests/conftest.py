"""Fixtures that run a test over every problem, lens, partition, distance and statistic, found rather than listed."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as many tests run at once as there are processors

import inspect
import math
from pathlib import Path
from typing import Any

import pytest

import caltest
import caltest.predictions._lenses
from caltest.hypothesis_tests import _power_curve
from caltest.results._naming import describe
from caltest.statistics import _squared_l2_inversion
from tests.reference.examples import (
    ALL_PARTITIONS,
    LENSES,
    NOT_DISTRIBUTED,
    PARTITIONS,
    PROBLEMS,
    SHARED,
    VIEWS,
    Problem,
    View,
    defined_in,
    subclasses,
)


@pytest.fixture
def lens_classes() -> dict[type, bool]:
    """Every lens class, and whether it has an example."""
    kinds = defined_in(caltest.predictions._lenses, inspect.isclass)
    return {kind: kind in LENSES for kind in kinds if not inspect.isabstract(kind)}


@pytest.fixture
def partition_classes() -> dict[type, bool]:
    """Every partition class, and whether it has an example."""
    return {kind: kind in PARTITIONS for kind in subclasses(caltest.predictions.Partition)}


@pytest.fixture(params=PROBLEMS, ids=lambda problem: problem.name)
def any_problem(request: pytest.FixtureRequest) -> Problem:
    """Every problem."""
    return request.param


@pytest.fixture
def views(any_problem: Problem) -> list[View]:
    """Every problem, one at a time, through all lenses."""
    return [view for view in VIEWS if view.problem is any_problem]


@pytest.fixture(params=ALL_PARTITIONS, ids=describe)
def any_partition(request: pytest.FixtureRequest) -> Any:
    """Every partition, a user's function among them."""
    return request.param


@pytest.fixture(autouse=True)
def few_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What results find besides p-values, smallest errors and intervals, is found from few draws, as that takes long.

    It is found as for users in tests of a mark without `few_draws=True`, and in those of these numbers, which ask for
    `usual_draws`.
    """
    marks = [mark for mark in request.node.iter_markers() if mark.name in {"slow", "nightly", "release"}]
    as_for_users = any("few_draws" not in mark.kwargs for mark in marks)
    if not as_for_users and "usual_draws" not in request.fixturenames:
        monkeypatch.setattr(_power_curve, "_MANY", 80)
        monkeypatch.setattr(_power_curve, "_ROUNDS", 1)
        monkeypatch.setattr(_squared_l2_inversion, "_DRAWS", ((math.inf, 199),))


@pytest.fixture
def usual_draws() -> None:
    """Smallest errors and intervals are found from as many draws as for users."""


@pytest.fixture
def shared_data() -> Path:
    """The folder of real predictions beside the repository."""
    if not SHARED.is_dir():
        pytest.skip(NOT_DISTRIBUTED)
    return SHARED
