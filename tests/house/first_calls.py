"""Small calls that reach nearly all compiled functions, so that workers can compile different ones at first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress

import numpy as np

import caltest as ct
from caltest.streaming import CalibrationState, RedrawnCells

FEW = {"n_resamples": 19, "rng": 0}
PROB = np.random.default_rng(0).dirichlet(np.ones(3), 60)
LABEL, EVENT, RISK = np.arange(60) % 3, np.arange(60) % 2, PROB[:, 1]
GROUP, WEIGHT = np.arange(60) // 3, 1.0 + np.arange(60) % 4
SHARP = tuple(part[:300] for part in ct.datasets.load_cifar10_vgg16())
TREE, LENS = ct.VarianceTree(min_leaf=5), ct.Confidence()
ROWS = ct.Consistency(resample_predictions=True)


def _test(*arguments: object, **options: object) -> Callable[[], object]:
    return lambda: ct.calibration_test(*arguments, **FEW, **options)


def _error(statistic: object, *arguments: object) -> Callable[[], object]:
    return lambda: ct.calibration_error(*arguments, statistic=statistic)


CALLS: list[Callable[[], object]] = [
    lambda: ct.bootstrap_interval(LABEL, PROB, statistic=ct.ECE(TREE), **FEW),
    lambda: ct.bootstrap_interval(EVENT, RISK, statistic=ct.ECE(TREE), **FEW),
    _test(LABEL, PROB, lens=LENS, statistic=ct.ECE(ct.EqualMass(3)), resampling=ROWS),
    lambda: ct.paired_test(LABEL, PROB, PROB[::-1], groups=GROUP, n_resamples=40, rng=0),
    lambda: ct.l2_interval(LABEL, PROB, groups=GROUP),
    _test(LABEL, PROB, groups=GROUP),
    _test(EVENT, RISK, time=np.arange(60), lead=3),
    lambda: ct.skce_test(LABEL, PROB, **FEW),
    lambda: ct.calibration_band(EVENT, RISK, **FEW),
    lambda: ct.simplex_diagram(LABEL, PROB, **FEW),
    lambda: CalibrationState(3, ct.Canonical(), RedrawnCells(n_resamples=9)).update(LABEL, PROB).test(),
    lambda: ct.CalibrationMonitor().update(EVENT, RISK),
    lambda: ct.CalibrationMonitor(lead=3).update(EVENT, RISK, time=np.arange(60)),
    lambda: ct.simulation.bias_study(
        ct.simulation.GaussianMixture1D(), [ct.ECE(cells) for cells in (ct.EqualWidth(3), ct.EqualMass(3), TREE)], 40, 3
    ),
    lambda: CalibrationState().update(EVENT, RISK).test(ct.ECE(ct.EqualWidth(3)), **FEW),
    _test(EVENT, RISK, statistic=ct.ECE(ct.EqualWidth(3)), resampling=ROWS),
    _test(LABEL, PROB, statistic=ct.ECE(ct.EqualWidth(3)), resampling=ROWS),
    _test(EVENT, RISK, statistic=ct.statistics.KDEError()),
    _test(EVENT, RISK, statistic=ct.SmoothECE()),
    _test(EVENT, RISK, statistic=ct.statistics.SmoothCalibrationError()),
    _test(EVENT, RISK, statistic=ct.statistics.ICI(smoother="spline")),
    lambda: ct.leaderboard(LABEL, {"a": PROB, "b": PROB[::-1]}, by=("brier",), **FEW),
    _error(ct.statistics.MMCE(), EVENT, RISK),
    lambda: ct.l2_interval(EVENT, RISK, partition=TREE, groups=np.arange(60) // 30),
    lambda: ct.smooth_reliability_curve(EVENT, RISK, **FEW),
    _test(LABEL, PROB, statistic=ct.ECE(ct.EqualWidth(3)), method="monte-carlo"),
    _test(np.arange(80) % 40, np.random.default_rng(1).dirichlet(np.ones(40), 80)),
    _test(EVENT, RISK, statistic=ct.ECE(ct.EqualWidth(3))),
    _test(LABEL, PROB, lens=ct.TopRank(2)),
    _test(*SHARP, statistic=ct.SKCE()),
    _test(*SHARP, lens=LENS, statistic=ct.Omnibus(), method="monte-carlo"),
    _test(*SHARP, method="monte-carlo"),
    _test(*SHARP),
    _test(EVENT, RISK, statistic=ct.statistics.MonotonicSweepECE()),
    _test(EVENT, RISK, statistic=ct.statistics.IsotonicError()),
    _test(LABEL, PROB, lens=LENS, statistic=ct.Omnibus(), sample_weight=WEIGHT),
    lambda: ct.compare_models(LABEL, {"a": PROB, "b": PROB[::-1]}, **FEW),
    _test(EVENT, RISK),
    _test(LABEL, PROB),
]


def make(calls: Iterable[Callable[[], object]]) -> None:
    """Make calls, whatever they warn of; a test reports what fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            with suppress(Exception):
                call()
