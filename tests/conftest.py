"""Fixtures that run a test over every problem, lens, partition, distance and statistic, found rather than listed."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import inspect
from pathlib import Path
from typing import Any

import pytest

import caltest
import caltest.predictions._lenses
from caltest.results._naming import describe
from tests.reference.examples import (
    LENSES,
    PARTITIONS,
    PROBLEMS,
    SHARED,
    STATISTICS,
    VIEWS,
    Problem,
    View,
    components_of,
    default_statistics,
    defined_in,
    distances,
    flat,
    hellinger,
    simple_statistics,
    subclasses,
    thirds,
)


@pytest.fixture
def lens_classes() -> dict[type, bool]:
    """Every lens class, and whether it has an example."""
    return {kind: kind in LENSES for kind in defined_in(caltest.predictions._lenses, inspect.isclass)}


@pytest.fixture
def partition_classes() -> dict[type, bool]:
    """Every partition class, and whether it has an example."""
    return {kind: kind in PARTITIONS for kind in subclasses(caltest.Partition)}


@pytest.fixture
def statistic_classes() -> dict[type, bool]:
    """Every statistic class, and whether it has an example."""
    return {kind: kind in STATISTICS for kind in subclasses(caltest.Statistic)}


@pytest.fixture(params=PROBLEMS, ids=lambda problem: problem.name)
def any_problem(request: pytest.FixtureRequest) -> Problem:
    """Every problem."""
    return request.param


@pytest.fixture
def views(any_problem: Problem) -> list[View]:
    """Every problem, one at a time, through all lenses."""
    return [view for view in VIEWS if view.problem is any_problem]


@pytest.fixture(params=VIEWS, ids=str)
def any_view(request: pytest.FixtureRequest) -> View:
    """Every problem through every lens."""
    return request.param


@pytest.fixture(params=[*flat(PARTITIONS), thirds], ids=describe)
def any_partition(request: pytest.FixtureRequest) -> Any:
    """Every partition, a user's function among them."""
    return request.param


@pytest.fixture(params=[*distances(), hellinger], ids=describe)
def any_distance(request: pytest.FixtureRequest) -> Any:
    """Every distance, a user's function among them."""
    return request.param


@pytest.fixture(params=simple_statistics(), ids=describe)
def any_statistic(request: pytest.FixtureRequest) -> Any:
    """Every statistic that has a value, with every partition and every distance."""
    return request.param


@pytest.fixture(
    params=[*components_of(default_statistics()), caltest.ECE(caltest.EqualWidth(4)), caltest.MCE(thirds, hellinger)],
    ids=describe,
)
def any_simple_statistic(request: pytest.FixtureRequest) -> Any:
    """Every statistic that has a value, with its defaults, and two more of the binned ones."""
    return request.param


@pytest.fixture(params=default_statistics(), ids=describe)
def any_default_statistic(request: pytest.FixtureRequest) -> Any:
    """Every statistic with its defaults, combinations among them."""
    return request.param


@pytest.fixture
def shared_data() -> Path:
    """The folder of real predictions beside the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"real predictions that are not bundled: {SHARED} is absent")
    return SHARED
