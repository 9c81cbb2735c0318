"""Bias studies against NumPy loops: ``python benchmarks/studies.py [--replicates 40]``.

The study is that of docs/figures/appendix_c.py: three models, 5 sizes, 5 numbers of cells; first of the ECE alone, then
with one kind of statistics after the other of `benchmarks.loops.bias`. All are measured in the same run, interleaved,
in process time; each time is a median of 5.
"""

import argparse
import statistics
import time
from functools import partial
from itertools import accumulate

import caltest
from benchmarks.loops import bias
from caltest.simulation import GaussianMixture1D, bias_study

BETAS = ((0, -2), (0, 0), (1, 1))
CELLS = (5, 10, 20, 50, 100)
SAMPLES = (100, 300, 1000, 3000, 10_000)
ROUNDS = 5


def statistics_of(kinds, cells=CELLS):
    """Return the statistics of some kinds, in the order of the loops."""
    tree, masses = caltest.VarianceTree(), [caltest.EqualMass(count) for count in cells]
    all_kinds = {
        "ECE": [caltest.ECE(caltest.EqualWidth(count)) for count in cells],
        "equal mass, SquaredL2 and KS": [
            *(make(mass) for make in (caltest.ECE, caltest.SquaredL2) for mass in masses),
            caltest.KS(),
        ],
        "GCE": [
            caltest.statistics.GCE(scheme, n_cells=count) for count in cells for scheme in ("equal-width", "equal-mass")
        ],
        "trees": [caltest.ECE(tree), caltest.SquaredL2(tree)],
    }
    return [statistic for kind in bias.KINDS if kind in kinds for statistic in all_kinds[kind]]


def of_package(kinds, n_replicates, seed):
    """Run the study."""
    models = [GaussianMixture1D(*beta) for beta in BETAS]
    options = {"lenses": caltest.Canonical(), "truth": _none, "rng": seed}
    return bias_study(models, statistics_of(kinds), SAMPLES, n_replicates, **options)


def of_loop(loop, kinds, n_replicates, seed):
    """Run the same with a loop."""
    return [loop(beta, n, CELLS, kinds, n_replicates=n_replicates, seed=seed) for beta in BETAS for n in SAMPLES]


def _none(model, lens, statistic):
    return float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=40)
    count = parser.parse_args().replicates
    for kinds in [*accumulate([kind] for kind in bias.KINDS), ["GCE"], ["trees"]]:
        tasks = {
            "caltest": of_package,
            "bincount": partial(of_loop, bias.tuned),
            "masks": partial(of_loop, bias.plain),
        }
        of_package(kinds, 2, 0)  # compiles
        spent = {name: [] for name in tasks}
        for seed in range(ROUNDS):
            for name, task in tasks.items():
                start = time.process_time()
                task(kinds, count, seed)
                spent[name].append(time.process_time() - start)
        median = {name: statistics.median(times) for name, times in spent.items()}
        ratios = ", ".join(f"{name} {median[name] / median['caltest']:.1f}" for name in ("bincount", "masks"))
        print(f"{', '.join(kinds)}: {median['caltest']:.3f} s; times of loops to that: {ratios}", flush=True)


if __name__ == "__main__":
    main()
