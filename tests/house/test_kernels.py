"""Kernels are compiled when they are first called, once, whatever is passed, and found again in the cache."""

import json

import pytest

from benchmarks import cold_start
from tests.house.processes import in_fresh_process

COUNT_SIGNATURES = """
import importlib, json, pkgutil
from caltest import _compiled
def modules():
    return [importlib.import_module("caltest._compiled." + m.name) for m in pkgutil.iter_modules(_compiled.__path__)]
def signatures():
    return {
        f"{module.__name__}.{name}": [str(s) for s in kernel.signatures]
        for module in modules()
        for name, kernel in vars(module).items()
        if hasattr(kernel, "signatures")
    }
"""

RUN_ON_ALL_KINDS = """
import numpy as np
import caltest
from caltest import Confidence, Consistency, ECE, EqualWidth, KS, TopK
from caltest.statistics import GCE
rng = np.random.default_rng(0)
prob = (rng.multinomial(61, [0.5, 0.25, 0.25], size=120) + 1) / 64
label = rng.integers(3, size=120)
frozen = np.asfortranarray(prob)
frozen.flags.writeable = False
label_frozen = label.astype(np.int32)
label_frozen.flags.writeable = False
heavy = 1.0 + np.arange(120) % 3
kinds = [prob, prob.astype(np.float32), frozen, np.repeat(prob, 2, axis=0)[::2], prob.tolist()]
for y_prob in kinds:
    for y_true in (label, label_frozen, label.astype(float), label.tolist()):
        for lens in (None, Confidence(), TopK(2)):
            caltest.calibration_test(y_true, y_prob, lens=lens, n_resamples=19, rng=0)
            caltest.CalibrationMonitor(lens=lens).update(y_true, y_prob)
            caltest.CalibrationMonitor(lens=lens, lead=2).update(y_true, y_prob, time=np.arange(120) // 2)
            for weight in (None, heavy, heavy.astype(np.float32)):
                caltest.calibration_error(y_true, y_prob, lens=lens, sample_weight=weight)
                options = {"lens": lens, "sample_weight": weight}
                caltest.calibration_error(y_true, y_prob, **options, statistic=caltest.statistics.SCE())
    caltest.l2_interval(label, y_prob, sample_weight=heavy, groups=np.arange(120) // 3)
    event = np.asarray(y_prob)[:, 1]
    caltest.l2_interval(label == 1, event, sample_weight=heavy)
    for y_true in (label == 1, (label == 1).tolist(), (label == 1).astype(np.uint8)):
        caltest.calibration_test(y_true, event, n_resamples=300, rng=0, workers=2, region=lambda p: p[:, 1] > 0.1)
        caltest.calibration_test(y_true, event, statistic=KS(), n_resamples=19, rng=np.random.default_rng(1))
        caltest.calibration_test(y_true, event, statistic=KS(), sample_weight=heavy, n_resamples=19, rng=0)
        caltest.calibration_test(y_true, event, statistic=caltest.statistics.IsotonicError(), n_resamples=19, rng=0)
        caltest.calibration_error(y_true, event, statistic=caltest.statistics.ICI("spline"), sample_weight=heavy)
        caltest.estimation.calibration_in_the_large(y_true, event)
        caltest.score_decomposition(y_true, event, score="log")
        caltest.streaming.CalibrationState().update(y_true, event).error()
        caltest.streaming.CalibrationState(3).update(label, y_prob)
        caltest.streaming.CalibrationState(3, caltest.Canonical()).update(label, y_prob).test()
        caltest.calibration_error(y_true, event, statistic=ECE(EqualWidth(15)))
        caltest.CalibrationMonitor().update(y_true, event)
        for statistic in (caltest.statistics.ConvexECE(), caltest.statistics.MonotonicSweepECE(), caltest.SquaredL2()):
            caltest.calibration_test(y_true, event, statistic=statistic, n_resamples=19, rng=0)
            caltest.calibration_error(y_true, event, statistic=statistic, sample_weight=heavy)
    caltest.calibration_test(label, y_prob, statistic=caltest.SquaredL2(), n_resamples=19, rng=0)
    for statistic in (caltest.SKCE(), caltest.SKCE(caltest.statistics.gaussian_kernel)):
        caltest.calibration_test(label, y_prob, statistic=statistic, n_resamples=19, rng=0)
        caltest.skce_test(label, y_prob, statistic=statistic, n_resamples=19, rng=0)
    caltest.calibration_test(label == 1, event, statistic=caltest.statistics.MMCE(), n_resamples=19, rng=0)
    caltest.calibration_table(label, y_prob, n_resamples=99, rng=0)
    caltest.gce_table(label, y_prob, n_resamples=639, rng=0)
    for statistic in (caltest.statistics.GCE(), caltest.statistics.TACE(), caltest.statistics.UCE()):
        for lens in (None, Confidence()):
            caltest.calibration_test(label, y_prob, lens=lens, statistic=statistic, n_resamples=300, workers=2)
    for partition in (EqualWidth(2), caltest.EqualMass(2), caltest.VarianceTree(min_leaf=40)):
        rows = Consistency(resample_predictions=True)
        for statistic in (ECE(partition), caltest.MCE(partition)):
            caltest.calibration_test(label == 1, event, statistic=statistic, resampling=rows, n_resamples=19, rng=0)
        caltest.calibration_test(label, y_prob, statistic=ECE(lambda p: p[:, 0] > 0.5), resampling=rows, n_resamples=19)
    tree = ECE(caltest.VarianceTree(min_leaf=100))  # a single cell, whatever is drawn
    caltest.calibration_test(label, y_prob, statistic=tree, resampling=rows, n_resamples=19)
    caltest.calibration_test(label, y_prob, statistic=caltest.statistics.MatrixScore(), n_resamples=19)
    score = caltest.TemperatureScore()
    caltest.calibration_test(label, y_prob, statistic=score, resampling=rows, n_resamples=19)
    caltest.calibration_test(label == 1, event, statistic=score, resampling=rows, n_resamples=19)
    caltest.calibration_test(event < 0.5, event, statistic=ECE(EqualWidth(2)))
    caltest.calibration_test(event < 0.5, event, statistic=ECE(EqualWidth(2)), method="monte-carlo", n_resamples=19)
    caltest.calibration_test(label, y_prob, lens=Confidence(), statistic=ECE(EqualWidth(5)), n_resamples=19)
    for statistic in (caltest.statistics.Bridge(), caltest.statistics.TCal(), caltest.statistics.CoxScore()):
        caltest.calibration_test(label == 1, event, statistic=statistic, n_resamples=19, rng=0)
    for statistic in (None, caltest.SKCE()):
        caltest.calibration_test(label, y_prob, statistic=statistic, groups=label, n_resamples=19)
    days = {"time": np.arange(120) // 2, "lead": 3, "n_resamples": 99, "rng": 0}
    caltest.calibration_table(label, y_prob, **days)
    caltest.calibration_test(label == 1, event, sample_weight=heavy, **days)
    half = y_prob[::-1] if isinstance(y_prob, np.ndarray) else y_prob
    for lens in (None, Confidence()):
        caltest.paired_test(label, y_prob, half, lens=lens, groups=np.arange(120) // 3, n_resamples=40)
        caltest.paired_test(label, y_prob, half, lens=lens, sample_weight=1.0 + np.arange(120), n_resamples=40)
    caltest.leaderboard(label, {"a": y_prob, "b": half}, by="brier", n_resamples=19, rng=0)
    many = caltest.VarianceTree(max_cells=32, min_leaf=2)
    caltest.paired_test(label, y_prob, half, groups=label, partition=many, n_resamples=40)
    caltest.unpaired_test(label, y_prob, label, half, groups_a=label, groups_b=label, n_resamples=40)
    caltest.reliability_curve(label, y_prob)
    for partition in (None, caltest.VarianceTree(max_cells=1)):
        caltest.simplex_diagram(label, y_prob, partition=partition, n_resamples=19, rng=0)
    caltest.simplex_diagram(label, y_prob, groups=np.arange(120) // 3, n_resamples=19, rng=0)
    caltest.simplex_diagram(label, y_prob, sample_weight=heavy, n_resamples=19, rng=0)
    caltest.calibration_band(label, y_prob, n_resamples=19, rng=0)
    caltest.reliability_curve(label == 1, event, simultaneous=True)
    caltest.smooth_reliability_curve(label == 1, event, n_resamples=19)
    for statistic in (caltest.statistics.KDEError(), caltest.SmoothECE(), caltest.statistics.SmoothCalibrationError()):
        caltest.calibration_test(label == 1, event, statistic=statistic, n_resamples=19)
        caltest.calibration_test(label == 1, event / 1000, statistic=statistic, n_resamples=19)
    rho = Consistency(calibration_function=lambda p: p[:, [0, 2, 1]])
    caltest.calibration_test(label, y_prob, resampling=rho, n_resamples=19, rng=0)
    refit = Consistency(resample_predictions=True)
    statistic = ECE(EqualWidth(2))
    caltest.calibration_test(label, y_prob, lens=Confidence(), statistic=statistic, resampling=refit, n_resamples=19)
from caltest.simulation import DirichletModel, bias_study
for partition in (EqualWidth(5, closed="right"), caltest.EqualMass(5), caltest.VarianceTree()):
    statistics = [ECE(partition), caltest.SquaredL2(partition), KS(), caltest.statistics.GCE()]
    bias_study([DirichletModel(2), DirichletModel(3)], statistics, 20, 2, lenses=Confidence(), rng=0)
from caltest.predictions.inputs import _validation
from caltest.resampling.draws import _labels as _draws
from caltest.resampling.draws import _path_blocks
many = _validation.MANY, _validation.LARGE
_validation.MANY = _validation.LARGE = _draws.FEW = _path_blocks.FEW = 2  # kernels of large problems of many classes
caltest.calibration_table(label, y_prob, lenses=[caltest.Canonical(), Confidence()], n_resamples=40, rng=0)
(_validation.MANY, _validation.LARGE), _draws.FEW, _path_blocks.FEW = many, 32, 32
bundled = caltest.datasets.load_cifar10_vgg16()
caltest.calibration_error(*bundled, statistic=caltest.SKCE())  # so many pairs that a sample brackets their median
caltest.reliability_curve(*bundled)  # cells of thousands of rows
sharp = bundled[0][:500], bundled[1][:500]  # labels by their departures from the usual ones
for statistic in (caltest.Omnibus(), caltest.statistics.Kuiper()):
    caltest.calibration_test(*sharp, lens=Confidence(), statistic=statistic, method="monte-carlo", n_resamples=19)
caltest.calibration_test(*sharp, n_resamples=19)
for model in (caltest.simulation.GaussianMixture1D(), caltest.simulation.BentPosterior(
    caltest.simulation.GaussianMixture([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0], [0, 1]), caltest.simulation.Temperature(2.0)
)):
    for partition in (EqualWidth(5), caltest.EqualMass(5)):
        caltest.simulation.bias_study(model, [ECE(partition), caltest.SquaredL2(partition)], [40, 70], 3, rng=0)
    caltest.simulation.bias_study(model, [GCE("equal-mass"), ECE(caltest.VarianceTree())], [40, 70], 3, rng=0)
"""


def test_importing_compiles_nothing():
    signatures = json.loads(in_fresh_process(f"{COUNT_SIGNATURES}\nimport caltest\nprint(json.dumps(signatures()))"))
    assert len(signatures) > 5
    assert {name for name, compiled in signatures.items() if compiled} == set()


@pytest.mark.slow
def test_compiled_are_compiled_once_whatever_is_passed():
    """Validation hands every kernel one type of array: another dtype, order or flag would compile it again.

    A new kernel needs a call in RUN_ON_ALL_KINDS that reaches it.
    """

    def run():
        return json.loads(in_fresh_process(f"{RUN_ON_ALL_KINDS}\n{COUNT_SIGNATURES}\nprint(json.dumps(signatures()))"))

    signatures = run()
    if any(len(compiled) > 1 for compiled in signatures.values()):
        signatures = run()  # the first one has filled the cache
    assert len(signatures) > 5
    called = {name: compiled for name, compiled in signatures.items() if not name.split(".")[-1].startswith("_")}
    assert {name: compiled for name, compiled in called.items() if len(compiled) != 1} == {}
    # Kernels that only kernels call come compiled into their callers, once the cache is warm.
    assert {name: compiled for name, compiled in signatures.items() if len(compiled) > 1} == {}


@pytest.mark.slow
def test_first_calls_reach_most_kernels():
    """Workers begin with them from either end (conftest.py), so that the second one does not compile the same."""
    code = f"""
{COUNT_SIGNATURES}
import warnings
from tests.house.first_calls import CALLS
warnings.simplefilter("ignore")
for call in CALLS:
    call()
print(json.dumps(signatures()))
"""
    signatures = json.loads(in_fresh_process(code))
    called = {name: found for name, found in signatures.items() if not name.rpartition(".")[2].startswith("_")}
    missed = [name for name, found in called.items() if not found]
    assert len(missed) < 0.25 * len(called), missed


def test_kernels_are_few():
    """A new path replaces an old one; who needs one more says why beside the number."""
    assert cold_start.MOST_KERNELS - 10 < cold_start.n_kernels() <= cold_start.MOST_KERNELS


@pytest.mark.slow
@pytest.mark.parametrize("call", cold_start.FIRST_CALLS)
def test_first_calls_compile_few_kernels(call):
    compiled = cold_start.compiled_first(call)
    assert 0 < len(compiled) <= cold_start.MOST_COMPILED[call], compiled


@pytest.mark.slow
def test_compilation_is_announced_once():
    code = """
import numpy as np
from caltest._compiled import _jit
twice = _jit.inner(lambda x: 2 * x)
with _jit.announced_compilation(lambda: print("compiling")):
    print(twice(1), twice(1.5), twice(2))
    twice(np.ones(1))
twice(1j)
"""
    assert in_fresh_process(code) == "compiling\n2 3.0 4\n"


@pytest.mark.slow
def test_a_second_process_only_reads_the_cache(tmp_path):
    """What the first process compiles, the second one finds: no cache misses."""
    code = f"""
{COUNT_SIGNATURES}
import caltest
caltest.calibration_test([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], statistic=caltest.KS(), n_resamples=19, rng=0)
found = [kernel.stats for module in modules() for kernel in vars(module).values() if hasattr(kernel, "stats")]
print(json.dumps([sum(sum(c.values()) for c in of_all) for of_all in zip(*(stats[1:] for stats in found))]))
"""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    hits, misses = json.loads(in_fresh_process(code, **environment))
    assert hits == 0
    assert misses > 0
    hits, missed = json.loads(in_fresh_process(code, **environment))
    assert hits > 0  # fewer than were compiled: a function that kernels call stands in their files
    assert missed == 0


@pytest.mark.slow
def test_an_installation_that_cannot_be_written_to_works():
    """No folder for Numba's cache, as in a read-only installation without a home: kernels are compiled all the same."""
    code = """
from numba.core import caching
caching.CompileResultCacheImpl._locator_classes = []
import caltest
print(caltest.calibration_error([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], statistic=caltest.ECE(caltest.EqualWidth(15))))
"""
    assert in_fresh_process(code) == in_fresh_process(
        code.replace("caching.CompileResultCacheImpl._locator_classes = []", "")
    )
