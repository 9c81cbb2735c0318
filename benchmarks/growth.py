"""How the cost of a public call grows with observations, classes, cells and draws: log-log."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import caltest
from benchmarks import problems
from benchmarks.cases import CASES, CONFIDENCE, GRID, MASS, RESAMPLED, TREE, Case, ece
from benchmarks.timing import costs, seconds

LONGEST = 5.0  # seconds; a curve ends where 128 resamples would take longer

Call = Callable[[int], object]
Panel = tuple[str, dict[str, list[tuple[int, float]]]]


def panels(sizes: list[int], n_resamples: int, repeats: int) -> list[Panel]:
    """Return for each panel its axis and its curves of (x, seconds)."""
    n = min(10_000, sizes[-1])
    few = len(sizes) < 3
    classes = [2, 10] if few else [2, 5, 10, 30, 100, 300, 1000]
    cells = [5, 50] if few else [5, 15, 50, 150, 500, 1500]
    counts = [99, 999] if few else [99, 999, 9_999, 99_999]

    def curves(calls: dict[str, Callable[[int], Call]], values: list[int]) -> dict[str, list[tuple[int, float]]]:
        def timed(make: Callable[[int], Call]) -> Callable[[int], float | None]:
            return lambda x: _timed(make(x), n_resamples, repeats)

        return {name: _curve(timed(make), values) for name, make in calls.items()}

    fixed = {name: make(n) for name, make in _by_samples().items()}
    grown = {name: _curve(lambda x, call=call: _timed(call, x, repeats), counts) for name, call in fixed.items()}
    return [
        ("observations (10 classes)", curves(_by_samples(), sizes)),
        (f"classes ({n:,} observations)", curves(_by_classes(n), classes)),
        (f"cells (confidence, {n:,} observations)", curves(_by_cells(n), cells)),
        (f"draws ({n:,} observations, 10 classes)", grown),
    ]


def _curve(timed: Callable[[int], float | None], values: Iterable[int]) -> list[tuple[int, float]]:
    points = []
    for value in values:
        taken = timed(value)
        if taken is None:
            break
        points.append((value, taken))
    return points


def _timed(call: Call, n_resamples: int, repeats: int) -> float | None:
    """Return the median seconds of a call, None where it would take too long."""
    call(2)
    if 128 * (seconds(partial(call, 10)) - seconds(partial(call, 2))) / 8 > LONGEST:
        return None
    return costs({"caltest": call}, n_resamples, repeats, {"caltest": 1.0}, least=8)["caltest"].at(n_resamples)


def _case(arrays: tuple, options: dict) -> Call:
    return partial(Case("", problems.simplex, options, None, None, None).call, arrays)


def _exact(arrays: tuple, partition: object) -> Call:
    statistic = caltest.ECE(partition=partition)
    return lambda _: caltest.calibration_test(*arrays, lens=CONFIDENCE, statistic=statistic, method="exact")


def _default(arrays: tuple) -> Call:
    return lambda n_resamples: caltest.calibration_test(*arrays, n_resamples=n_resamples, rng=0)


def _by_samples() -> dict[str, Callable[[int], Call]]:
    return {
        "default test": lambda n: _default(problems.simplex(n)),
        "confidence ECE, exact": lambda n: _exact(problems.simplex(n), caltest.EqualWidth(15)),
        "confidence ECE, observations resampled": lambda n: _case(
            problems.simplex(n), CASES["confidence-resampled"].options
        ),
        "canonical ECE, predictions fixed": lambda n: _case(problems.simplex(n), ece(GRID)),
        "canonical ECE, observations resampled": lambda n: _case(problems.simplex(n), ece(GRID, resampling=RESAMPLED)),
        "canonical ECE, tree re-fitted": lambda n: _case(problems.simplex(n), ece(TREE, resampling=RESAMPLED)),
    }


def _by_classes(n: int) -> dict[str, Callable[[int], Call]]:
    tree = caltest.VarianceTree()
    return {
        "default test": lambda k: _default(problems.simplex(n, k)),
        "confidence ECE, exact": lambda k: _exact(problems.simplex(n, k), caltest.EqualWidth(15)),
        "canonical ECE, predictions fixed": lambda k: _case(problems.simplex(n, k), ece(tree)),
        "canonical ECE, tree re-fitted": lambda k: _case(problems.simplex(n, k), ece(tree, resampling=RESAMPLED)),
    }


def _by_cells(n: int) -> dict[str, Callable[[int], Call]]:
    arrays = problems.simplex(n)
    return {
        "confidence ECE, exact": lambda m: _exact(arrays, caltest.EqualWidth(m)),
        "confidence ECE, predictions fixed, drawn": lambda m: _case(arrays, ece(caltest.EqualWidth(m), CONFIDENCE)),
        "confidence ECE, observations resampled": lambda m: _case(
            arrays, ece(caltest.EqualWidth(m), CONFIDENCE, RESAMPLED)
        ),
        "confidence ECE, equal mass re-fitted": lambda m: _case(arrays, ece(type(MASS)(m), CONFIDENCE, RESAMPLED)),
    }


def draw(found: list[Panel], n_resamples: int, file: Path) -> None:
    """Write the figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(name for _, curves in found for name in curves))
    style = {name: {"color": f"C{i % 10}", "marker": "os^Dvpx*hd"[i % 10]} for i, name in enumerate(names)}
    figure, axes = plt.subplots(2, 2, figsize=(12, 11), layout="constrained")
    for axis, (label, curves) in zip(axes.flat, found, strict=True):
        for name, points in curves.items():
            if points:
                axis.loglog(*zip(*points, strict=True), label=name, **style[name])
        axis.set_xlabel(label, fontsize=13)
        axis.set_ylabel("seconds", fontsize=13)
        axis.tick_params(labelsize=11)
        axis.grid(visible=True, which="major", alpha=0.4)
    known = {name: line for axis in axes.flat for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known, loc="outside lower center", ncols=3, fontsize=11)
    figure.suptitle(
        f"One call of calibration_test, one thread, {n_resamples:,} draws unless the axis shows another number",
        fontsize=15,
    )
    figure.savefig(file, dpi=110)
    plt.close(figure)
