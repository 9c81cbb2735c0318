"""`calibration_test` from raw arrays, validation included, against NumPy loops that do the same, in the same run.

``pytest benchmarks/bench_test.py``: times of pytest-benchmark, and the ratios from interleaved repetitions. The loops
run a part of the resamples; their time is linear in the number of resamples and is scaled up.
"""

from statistics import median
from time import perf_counter

import numpy as np
import pytest
from numpy_loop import N_CELLS, plain_loop, tuned_loop

import caltest

B = 9999
B_TUNED = 999
B_PLAIN = 199
REPEATS = 7


@pytest.fixture(scope="module")
def arrays():
    """10,000 x 10 float32 predictions and labels, bundled."""
    return caltest.datasets.load_cifar10_vgg16()


def ece_test(arrays, seed=0, workers=1):
    return caltest.calibration_test(
        *arrays,
        lens=caltest.Confidence(),
        statistic=caltest.ECE(partition=caltest.EqualWidth(N_CELLS)),
        method="monte-carlo",
        n_resamples=B,
        workers=workers,
        rng=seed,
    )


def standard_error(*samples):
    """Of the difference between the means of independent samples."""
    return np.sqrt(sum(sample.var(ddof=1) / len(sample) for sample in samples))


def check_agreement(result, observed, null):
    """The loop and the package estimate the same null distribution, and see the same error."""
    assert observed == pytest.approx(result.statistic, rel=1e-6)
    difference = null.mean() - result.noise_floor
    assert abs(difference) < 4 * standard_error(null, result.null_distribution)


def test_ece(benchmark, arrays):
    benchmark.group = "confidence ECE, 15 cells, 10,000 rows"
    benchmark.extra_info["n_resamples"] = B
    result = benchmark.pedantic(ece_test, args=(arrays,), rounds=REPEATS, warmup_rounds=1)
    assert result.pvalue == 1 / (B + 1)


@pytest.mark.parametrize(("loop", "n_resamples"), [(tuned_loop, B_TUNED), (plain_loop, B_PLAIN)])
def test_loop(benchmark, arrays, loop, n_resamples):
    benchmark.group = "confidence ECE, 15 cells, 10,000 rows"
    benchmark.extra_info["n_resamples"] = n_resamples
    observed, null = benchmark.pedantic(loop, args=(*arrays, n_resamples, 1), rounds=REPEATS, warmup_rounds=1)
    check_agreement(ece_test(arrays), observed, null)


def test_default(benchmark, arrays):
    benchmark.group = "default test (Omnibus, canonical), 10,000 rows"
    benchmark.extra_info["n_resamples"] = B
    result = benchmark.pedantic(
        caltest.calibration_test, args=arrays, kwargs={"n_resamples": B, "rng": 0}, rounds=3, warmup_rounds=1
    )
    assert result.pvalue == 1 / (B + 1)


def test_ratio(arrays, capsys):
    """Interleaved, so that a busy moment of the machine hits all of them."""
    runs = {
        "calibration_test, workers=1": (lambda seed: ece_test(arrays, seed), 1),
        "calibration_test, workers=2": (lambda seed: ece_test(arrays, seed, workers=2), 1),
        "tuned NumPy loop": (lambda seed: tuned_loop(*arrays, B_TUNED, seed), B / B_TUNED),
        "plain NumPy loop": (lambda seed: plain_loop(*arrays, B_PLAIN, seed), B / B_PLAIN),
    }
    seconds = {name: [] for name in runs}
    answers = {}
    for repeat in range(REPEATS + 1):
        for name, (run, scale) in runs.items():
            begin = perf_counter()
            answers[name] = run(repeat)
            if repeat:  # the first round warms up
                seconds[name].append(scale * (perf_counter() - begin))
    result = answers["calibration_test, workers=1"]
    for name in ("tuned NumPy loop", "plain NumPy loop"):
        check_agreement(result, *answers[name])
    assert answers["calibration_test, workers=2"].pvalue == result.pvalue
    own = median(seconds["calibration_test, workers=1"])
    with capsys.disabled():
        print(
            f"\n\nconfidence ECE, {N_CELLS} cells, 10,000 rows, {B} resamples (loops: {B_TUNED} and {B_PLAIN}, scaled)"
        )
        for name, times in seconds.items():
            row = f"{median(times):7.3f} s (min {min(times):.3f})  {median(times) / own:6.1f} x"
            print(f"  {name:<28} {row}")
